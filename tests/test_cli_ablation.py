"""``minbubble ablation``: every strengthening and every bound has its row, and none changes an optimum."""

import csv
import io
import json

import pytest

from benchmarks.ablation import ablation_rows, ablation_tasks, bound_names, without_bounds
from benchmarks.peers import check_settings, switches_of
from benchmarks.records import read_records
from benchmarks.suite import SolverSettings
from solver import Placement, ProblemError, Workload, bounds
from solver.bounds import BOUNDS, lower_bound
from solver.cpsat.switches import Switches

SUITE = """
name = "tiny"
schedules = ["1f1b", "optimum"]
[[problems]]
name = "one"
microbatches = 3
devices = { count = 2, memory_cap = 1 }
time = { forward = 1, backward = 2 }
[[problems]]
name = "two"
microbatches = 3
devices = { count = 2 }
placement = { kind = "wave" }
time = { forward = 1, input_grad = 1, weight_grad = 1 }
[[solver]]
time_limit = 60
[[solver]]
name = "passed over"
"""
PROBLEM = Workload.uniform(devices=4, microbatches=8).problem(Placement.linear(4))


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(SUITE)
    return path


def test_each_thing_that_can_be_off_has_its_row():
    rows = {row.name: row for row in ablation_rows(SolverSettings(time_limit=7))}
    switches, rules = Switches.names(), bound_names(("makespan",))
    assert rules == tuple(rule.__name__ for rule in BOUNDS["makespan"])
    assert (next(iter(rows)), next(reversed(rows))) == ("all on", "all off")
    # all on, all off; a row for each switch, of which "bounds" is joined by every rule; a row for each rule
    assert len(rows) == 2 + len(switches) + len(rules)
    assert switches_of(rows["all on"]) == Switches()
    assert switches_of(rows["no domains"]) == Switches().without("domains")
    assert rows["no device_load bound"].without == ("device_load",)
    assert set(rows["no bounds"].without) == {"bounds", *rules}
    assert switches_of(rows["all off"]) == Switches.textbook()
    assert {row.time_limit for row in rows.values()} == {7}
    for row in rows.values():
        check_settings(row)


def test_bounds_are_off_within_the_block_only():
    # (M + P - 1)(F + B) = 11 x 3 by the load of device 0; one micro-batch takes 4 x 3
    assert lower_bound(PROBLEM).value == 33
    with without_bounds(set(bound_names(("makespan",))) - {"critical_path"}):
        assert lower_bound(PROBLEM).value == 12
    with without_bounds(bound_names()):
        assert (lower_bound(PROBLEM).value, lower_bound(PROBLEM).name) == (0, "none")
    with pytest.raises(ZeroDivisionError), without_bounds(["device_load"]):
        raise ZeroDivisionError
    assert bounds.BOUNDS is BOUNDS


def test_a_suite_may_name_bounds_but_not_what_does_not_exist():
    check_settings(SolverSettings(without=("memory_ramp", "domains")))
    with pytest.raises(ProblemError, match="unknown 'luck'"):
        check_settings(SolverSettings(without=("luck",)))


def test_a_task_for_each_problem_and_row_of_the_first_solver(suite):
    name, tasks = ablation_tasks(str(suite), 3)
    assert name == "tiny"
    assert len(tasks) == 2 * len(ablation_rows(SolverSettings()))
    assert {task.solver.time_limit for task in tasks} == {3}
    assert "passed over" not in {task.solver.name for task in tasks}


def test_every_row_proves_the_same_optimum_and_is_not_run_twice(suite, minbubble, tmp_path):
    records = tmp_path / "records.jsonl"
    code, out, _ = minbubble("ablation", suite, "-o", records, "--format", "json")
    table = json.loads(out)
    assert code == 0
    assert [row["solver"] for row in (table[0], table[-1])] == ["all on", "all off"]
    assert len(table) == len(ablation_rows(SolverSettings()))
    assert set(table[0]) == {"solver", "one, linear", "two, wave (V=2)"}
    assert all(cell.endswith(" s") for row in table for column, cell in row.items() if column != "solver")
    found = read_records([records])
    # one micro-batch at a time: 3 x 2 x 3. Wave: device 1 has 3 x 6 of work and starts after one forward
    assert {(r["problem"], r["makespan"]) for r in found} == {("one", 18), ("two", 19)}
    before = records.read_bytes()
    code, out, err = minbubble("ablation", suite, "-o", records, "--format", "csv")
    assert (code, records.read_bytes()) == (0, before)
    assert f"{len(found)} of {len(found)} tasks are on record" in err
    assert next(csv.reader(io.StringIO(out))) == ["solver", "one, linear", "two, wave (V=2)"]


def test_a_limit_shows_gaps(suite, minbubble, tmp_path):
    code, out, _ = minbubble("ablation", suite, "-o", tmp_path / "r.jsonl", "--time-limit", 0)
    assert code == 0
    assert "| all off | gap 100.00% | gap 100.00% |" in out


def test_a_suite_that_does_not_exist_is_exit_code_2(minbubble):
    code, _, err = minbubble("ablation", "nowhere.toml")
    assert (code, "nowhere.toml" in err) == (2, True)
