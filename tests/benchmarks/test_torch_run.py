"""Exported plans train as a plain model does, in PyTorch's own runtime (optional: needs torch)."""

from pathlib import Path

import pytest

from baselines import BASELINES
from solver import FUSED, Placement, Schedule, Status, UnsupportedProblem, Workload, solve

pytest.importorskip("torch", reason="torch is not installed: plans are not run in PyTorch's runtime")

from benchmarks.torch_run import TOLERANCE, run_plans, run_schedules, write_plan

MODEL = Workload.uniform(2, 4, input_grad=1, weight_grad=1)


def optimal(placement: Placement, cap: object) -> Schedule:
    result = solve(MODEL.problem(placement, memory_cap=cap), time_limit=60)
    assert result.status is Status.OPTIMAL
    return result.schedule


def test_gradients_and_order_of_four_plans_in_one_process_group(tmp_path: Path) -> None:
    schedules = {
        "1f1b": BASELINES["1f1b"].schedule(MODEL),
        "split in the memory of one micro-batch": optimal(Placement.linear(2), 1),
        "looped": optimal(Placement.looped(2), 2),
        "wave": optimal(Placement.wave(2), "1.5"),
    }
    plans = [write_plan(title, s, tmp_path / f"{title}.csv") for title, s in schedules.items()]
    # Where the last stage's forwards are out of order, PyTorch takes one micro-batch's loss for another's and says
    # nothing: the exporter renumbers for that reason, and the comparison must be able to see it.
    wrong = write_plan("wrong", BASELINES["gpipe"].schedule(MODEL), tmp_path / "wrong.csv")
    text = Path(wrong.csv).read_text()
    assert "1F0,1F1" in text
    Path(wrong.csv).write_text(text.replace("1F0,1F1", "1F1,1F0"))

    *runs, bad = run_plans(2, [*plans, wrong])
    assert [run.title for run in runs] == list(schedules)
    assert [run.in_order for run in runs] == [True] * 4
    assert max(run.difference for run in runs) <= TOLERANCE
    assert bad.difference > 1e-3


def test_three_ranks() -> None:
    model = Workload.uniform(3, 4)
    (run,) = run_schedules({"gpipe": BASELINES["gpipe"].schedule(model)})
    assert run.good


def test_a_stage_on_two_ranks_is_refused_before_any_process_starts() -> None:
    problem = Workload.uniform(2, 2).problem(Placement.bidirectional(2), FUSED)
    with pytest.raises(UnsupportedProblem, match="one rank"):
        run_schedules({"chimera": solve(problem).schedule})
