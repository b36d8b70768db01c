import pytest

from solver import (
    DeviceOrder,
    OrderError,
    Placement,
    Problem,
    ProblemError,
    Stage,
    UnsupportedProblem,
    Workload,
    metrics,
    simulate,
)
from solver.errors import DeadlockError
from solver.export import load_schedule, save
from solver.export.torch_csv import parse_torch_csv, torch_csv
from tests.export import schedules


def test_one_row_a_rank_without_header_or_blank_line():
    assert torch_csv(schedules.fused()) == "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"


def test_microbatches_are_renumbered_by_the_last_stage_and_neighbouring_halves_join():
    # Stage 1 runs forwards 1, 0: so 1 becomes 0. Its I and W are neighbours; stage 0's W0 waits, W1 does not follow I1.
    assert torch_csv(schedules.split()) == "0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1B0,1F1,1I1,1W1\n".replace("1I1,1W1", "1B1")


def test_a_wave_lists_both_stages_of_a_rank():
    assert torch_csv(schedules.wave()) == "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n"


def test_bidirectional_is_refused_with_the_reason(tmp_path):
    with pytest.raises(UnsupportedProblem, match="stage 0 runs on devices 0, 1, but a PyTorch plan puts each stage on"):
        save(schedules.bidirectional(), tmp_path / "plan.csv")
    assert not list(tmp_path.iterdir())


def test_a_rank_without_a_stage_is_refused():
    problem = Problem.of(Placement.custom([[0, 2]], 3), 1, [Stage.fused(1, 2)] * 2)
    with pytest.raises(UnsupportedProblem, match="device 1 has no stage"):
        torch_csv(simulate(problem, DeviceOrder.parse(["0F0 0B0", "", "1F0 1B0"])))


@pytest.mark.parametrize("name", ["fused", "split", "wave"])
def test_a_plan_reads_back_as_the_same_schedule(name, tmp_path):
    schedule = getattr(schedules, name)()
    save(schedule, tmp_path / "plan.csv")
    read = load_schedule(tmp_path / "plan.csv", schedule.problem)
    assert metrics.makespan(read) == metrics.makespan(schedule)
    assert metrics.peak_memory(read) == metrics.peak_memory(schedule)
    assert torch_csv(read) == (tmp_path / "plan.csv").read_text()


def test_blank_cells_carry_no_time():
    problem = schedules.fused().problem
    text = "0F0,0F1,,,0B0,0F2,0B1,0B2\r\n,1F0,1B0,1F1,1B1,1F2,1B2,\r\n"
    assert parse_torch_csv(text, problem) == DeviceOrder.parse(schedules.ORDER_1F1B)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ("0F0,0F1,0B0,0F2,0B1,0B2", ProblemError, "1 rows"),
        ("0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n\n", ProblemError, "3 rows"),
        ("0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2,1B2\n", OrderError, "lists 1B2 twice"),
        ("0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2\n", OrderError, "lacks 1B2"),
        ("1F0,1B0,1F1,1B1,1F2,1B2\n0F0,0F1,0B0,0F2,0B1,0B2\n", OrderError, "belongs on device 1"),
        ("0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1X2\n", ProblemError, "row 1, cell 5: an op is written"),
        ("0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1W2\n", OrderError, "1W2, which the problem does not have"),
        ("0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F2,1B1,1F1,1B2\n", OrderError, "ascending"),
        ("0B0,0F0,0F1,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n", DeadlockError, "circle"),
        ("", ProblemError, "1 rows"),
    ],
)
def test_the_reader_is_strict_where_pytorch_is_not(rows, error, message, tmp_path):
    (tmp_path / "plan.csv").write_text(rows)
    with pytest.raises(error, match=message):
        load_schedule(tmp_path / "plan.csv", schedules.fused().problem)


def test_a_plan_needs_its_problem(tmp_path):
    (tmp_path / "plan.csv").write_text("0F0,0B0\n")
    with pytest.raises(ProblemError, match="--problem"):
        load_schedule(tmp_path / "plan.csv")


def test_a_plan_of_a_bidirectional_problem_is_refused(tmp_path):
    (tmp_path / "plan.csv").write_text("0F0,0B0\n")
    with pytest.raises(UnsupportedProblem):
        load_schedule(tmp_path / "plan.csv", Workload.uniform(2, 2).problem(Placement.bidirectional(2)))
