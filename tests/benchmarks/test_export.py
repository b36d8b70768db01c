import json

import pytest
from click.testing import CliRunner

from benchmarks.cli import cli
from solver import ProblemError, UnsupportedProblem, load_schedule, metrics, save
from tests.export import schedules


@pytest.fixture
def plan(tmp_path):
    save(schedules.split(), tmp_path / "plan.json")
    return tmp_path / "plan.json"


def export(*arguments):
    return CliRunner().invoke(cli, ["export", *map(str, arguments)], standalone_mode=False)


@pytest.mark.parametrize("suffix", [".csv", ".png", ".svg", ".pdf", ".html", ".trace.json", ".txt", ".json"])
def test_every_format_by_its_suffix(suffix, plan, tmp_path):
    result = export(plan, tmp_path / f"out{suffix}")
    assert result.return_value == 0, result.output
    assert (tmp_path / f"out{suffix}").stat().st_size > 0


def test_there_and_back_through_a_pytorch_plan(plan, tmp_path):
    export(plan, tmp_path / "out.csv")
    schedules.split().problem.save(tmp_path / "problem.toml")
    result = export("--problem", tmp_path / "problem.toml", tmp_path / "out.csv", tmp_path / "back.json")
    assert result.return_value == 0
    assert metrics.makespan(load_schedule(tmp_path / "back.json")) == metrics.makespan(schedules.split())


def test_several_schedules_are_named_by_their_files(plan, tmp_path):
    save(schedules.fused(), tmp_path / "other.json")
    export(plan, tmp_path / "other.json", tmp_path / "both.txt")
    text = (tmp_path / "both.txt").read_text()
    assert text.startswith("plan: makespan 9")
    assert "\n\nother: makespan" in text


def test_mistakes_are_told(plan, tmp_path):
    assert "unknown suffix" in str(export(plan, tmp_path / "out.docx").exception)
    save(schedules.bidirectional(), tmp_path / "both-ways.json")
    assert isinstance(export(tmp_path / "both-ways.json", tmp_path / "out.csv").exception, UnsupportedProblem)
    content = json.loads(plan.read_text())
    plan.write_text(json.dumps({**content, "schedule": []}))
    assert isinstance(export(plan, tmp_path / "out.txt").exception, ProblemError)
    content["schedule"][0]["start"] += 100
    plan.write_text(json.dumps(content))
    assert "violations" in str(export(plan, tmp_path / "out.txt").exception)
    assert not (tmp_path / "out.txt").exists()


def test_hand_made_schedules_by_name_beside_a_file(tmp_path):
    save(schedules.fused(), tmp_path / "plan.json")
    result = export(tmp_path / "plan.json", "gpipe", "chimera", tmp_path / "three.txt")
    assert result.return_value == 0, result.exception
    titles = [block.partition(":")[0] for block in (tmp_path / "three.txt").read_text().split("\n\n")]
    assert titles == ["plan", "gpipe", "chimera"]


def test_a_hand_made_schedule_needs_a_model(tmp_path):
    assert "--problem" in export("1f1b", tmp_path / "out.txt").exception.message
    schedules.fused().problem.save(tmp_path / "problem.toml")
    assert export("1f1b", tmp_path / "out.json", "--problem", tmp_path / "problem.toml").return_value == 0
    assert load_schedule(tmp_path / "out.json").entries() == schedules.fused().entries()
    assert "cannot be read" in str(export("2f2b", tmp_path / "out.txt").exception)
