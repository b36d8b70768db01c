"""Each rule alone: trivially kept, broken, just kept; and the message names ops, device and times."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from solver import InvalidSchedule, Op, OpKind, Placement, Problem, ProblemError, Schedule, Stage, simulate, validate
from solver.schedule import DeviceOrder, Entry
from solver.validate import entry_violations, violations
from tests.instances import random_order, random_problem

F, B, I, W = OpKind
#  device 0: 0F0 [0,1) 0B0 [7,9); device 1: 1F0 [2,3) 1B0 [3,5): latency 1 there, 2 back
PROBLEM = Problem.of(Placement.linear(2), 1, [Stage.fused(1, 2, 3)] * 2, [[0, 1], [2, 0]])
VALID = [("0F0", 0, 0, 1), ("0B0", 0, 7, 9), ("1F0", 1, 2, 3), ("1B0", 1, 3, 5)]


def entries(*rows: tuple) -> list[Entry]:
    return [Entry(Op.parse(op), device, start, end) for op, device, start, end in rows]


def judge(*rows: tuple, problem: Problem = PROBLEM) -> list[str]:
    return [str(v) for v in entry_violations(problem, entries(*rows))]


def test_the_tightest_schedule_is_valid_and_a_late_one_too() -> None:
    assert judge(*VALID) == []
    assert judge(*[(op, d, 2 * s + 5, 2 * s + 5 + e - s) for op, d, s, e in VALID]) == []


def test_a_missing_op() -> None:
    assert judge(*VALID[:3]) == ["missing op: 1B0 never runs; it belongs on device 1"]
    assert [v.split(":")[0] for v in judge()] == ["missing op"] * 4


def test_a_repeated_op() -> None:
    (text,) = judge(*VALID, ("0F0", 0, 20, 21))
    assert text == "duplicate op: 0F0 [0, 1) on device 0 runs again as 0F0 [20, 21) on device 0; every op runs once"


@pytest.mark.parametrize("op", ["0F1", "2F0", "0W0", "0I0", "999999999F0"])
def test_an_op_the_problem_does_not_have(op: str) -> None:
    assert judge(*VALID, (op, 0, 20, 21)) == [f"unknown op: {op} on device 0 at 20 is no op of this problem"]


def test_a_wrong_device() -> None:
    moved = judge(*VALID[:3], ("1B0", 0, 3, 5))
    assert moved == ["wrong device: 1B0 [3, 5) runs on device 0; its route puts stage 1 on device 1"]


@pytest.mark.parametrize("device", [-1, 2, -(10**30), 10**30])
def test_a_device_that_does_not_exist(device: int) -> None:
    (text,) = judge(*VALID[:3], ("1B0", device, 3, 5))
    assert "wrong device: 1B0 [3, 5) runs on a device that does not exist" in text


def test_a_wrong_duration() -> None:
    assert judge(*VALID[:3], ("1B0", 1, 3, 4)) == [
        "wrong duration: 1B0 [3, 4) on device 1 takes 1; it must take 2",
    ]
    backwards = judge(("0F0", 0, 0, 1), ("0B0", 0, 9, 7), *VALID[2:])
    assert "wrong duration: 0B0 [9, 7) on device 0 takes -2; it must take 2" in backwards


def test_a_negative_start() -> None:
    assert judge(("0F0", 0, -1, 0), *VALID[1:]) == ["negative start: 0F0 [-1, 0) on device 0 starts before 0"]


def test_overlap_broken_and_just_kept() -> None:
    two = Problem.of(Placement.linear(1), 2, [Stage.fused(2, 2)])

    def at(start: int | Fraction) -> list[str]:
        rows = [("0F0", 0, 0, 2), ("0F1", 0, start, start + 2), ("0B0", 0, 10, 12), ("0B1", 0, 12, 14)]
        return judge(*rows, problem=two)

    assert at(2) == at(8) == []
    assert at(Fraction(3, 2)) == [
        "overlap: 0F0 [0, 2) and 0F1 [1.5, 3.5) overlap on device 0; it runs one op at a time"
    ]
    assert at(0) == ["overlap: 0F0 [0, 2) and 0F1 [0, 2) overlap on device 0; it runs one op at a time"]


def test_overlap_with_an_op_that_is_not_the_one_before() -> None:
    # 0F0 [0,9) covers both 0F1 [2,4) and 0F2 [5,7), which touch each other nowhere; ops of no duration inside it too.
    stage = Problem.of(Placement.linear(1), 3, [Stage.fused(9, 0)])
    rows = [("0F0", 0, 0, 9), ("0F1", 0, 2, 11), ("0F2", 0, 12, 21), ("0B0", 0, 9, 9), ("0B1", 0, 15, 15)]
    found = judge(*rows, ("0B2", 0, 21, 21), problem=stage)
    assert [v for v in found if v.startswith("overlap")] == [
        "overlap: 0F0 [0, 9) and 0F1 [2, 11) overlap on device 0; it runs one op at a time",
        "overlap: 0F1 [2, 11) and 0B0 [9, 9) overlap on device 0; it runs one op at a time",
        "overlap: 0F2 [12, 21) and 0B1 [15, 15) overlap on device 0; it runs one op at a time",
    ]


def test_ops_of_no_duration_may_share_an_instant() -> None:
    nothing = Problem.of(Placement.linear(1), 2, [Stage.fused(0, 0, 5)], memory_cap=0)
    assert judge(("0F0", 0, 3, 3), ("0B0", 0, 3, 3), ("0F1", 0, 3, 3), ("0B1", 0, 3, 3), problem=nothing) == []


@pytest.mark.parametrize(
    ("op", "early", "text"),
    [
        ("1F0", ("1F0", 1, 1, 2), "1F0 [1, 2) on device 1 starts before 2, when the result of 0F0 [0, 1) on device 0"),
        ("1B0", ("1B0", 1, 4, 6), "1B0 [4, 6) on device 1 starts before 5, when the result of 1F0 [4, 5) on device 1"),
        ("0B0", ("0B0", 0, 6, 8), "0B0 [6, 8) on device 0 starts before 7, when the result of 1B0 [3, 5) on device 1"),
    ],
)
def test_a_dependency_broken_by_one_tick(op: str, early: tuple, text: str) -> None:
    rows = [row for row in VALID if row[0] != op] + [early]
    if op == "1B0":
        rows = [("1F0", 1, 4, 5) if row[0] == "1F0" else row for row in rows]
    assert f"broken dependency: {text} is there" in judge(*rows)


def test_the_last_stages_backward_follows_its_own_forward() -> None:
    one = Problem.of(Placement.linear(1), 1, [Stage.split(1, 1, 1)])
    assert judge(("0F0", 0, 0, 1), ("0I0", 0, 1, 2), ("0W0", 0, 2, 3), problem=one) == []
    assert (
        "0I0 [0, 1) on device 0 starts before 2"
        in judge(("0F0", 0, 1, 2), ("0I0", 0, 0, 1), ("0W0", 0, 2, 3), problem=one)[0]
    )
    assert (
        "0W0 [1, 2) on device 0 starts before 3"
        in judge(("0F0", 0, 0, 1), ("0I0", 0, 2, 3), ("0W0", 0, 1, 2), problem=one)[0]
    )


def test_latency_counts_from_where_a_route_runs_and_not_from_where_the_entry_says() -> None:
    # On one route both stages share device 0: no latency; on the other they are 5 apart.
    both = Problem.of(Placement.custom([[0, 0], [0, 1]]), 2, [Stage.fused(1, 1)] * 2, latency=5)
    rows = [("0F0", 0, 0, 1), ("1F0", 0, 1, 2), ("1B0", 0, 2, 3), ("0B0", 0, 3, 4)]
    rows += [("0F1", 0, 4, 5), ("1F1", 1, 10, 11), ("1B1", 1, 11, 12), ("0B1", 0, 17, 18)]
    assert judge(*rows, problem=both) == []
    rows[-1] = ("0B1", 0, 16, 17)
    assert len(judge(*rows, problem=both)) == 1


def test_memory_over_the_cap_and_just_within() -> None:
    # Two micro-batches of 3 each and static 2: 8 while both are open, 5 one at a time. At 4, B0's end releases before
    # F1 opens.
    def with_cap(cap: int, start: int) -> list[str]:
        problem = Problem.of(Placement.linear(1), 2, [Stage.fused(2, 2, 3, 2)], memory_cap=cap)
        rows = [("0F0", 0, 0, 2), ("0B0", 0, 2, 4), ("0F1", 0, start, start + 2), ("0B1", 0, 8, 10)]
        return [v for v in judge(*rows, problem=problem) if v.startswith("memory")]

    assert with_cap(5, 4) == with_cap(8, 3) == []
    assert with_cap(7, 3) == [
        "memory over cap: device 0 holds 8 at time 3, over its cap of 7: static 2 and what 0F0, 0F1 opened"
    ]


def test_each_hold_of_a_split_backward_counts_its_own_time() -> None:
    # F [0,1) opens 1 + 2, I [1,2) opens 4 (peak 7), end of I leaves 2 + 4 until W's end. F1 at 3 meets 6: 6 + 3 = 9.
    def peak_within(cap: int) -> bool:
        problem = Problem.of(Placement.linear(1), 2, [Stage.split(1, 1, 1, 1, 2, 4)], memory_cap=cap)
        rows = [("0F0", 0, 0, 1), ("0I0", 0, 1, 2), ("0F1", 0, 3, 4), ("0W0", 0, 4, 5)]
        return judge(*rows, ("0I1", 0, 5, 6), ("0W1", 0, 6, 7), problem=problem) == []

    assert peak_within(9)
    assert not peak_within(8)


def test_caps_are_per_device_and_none_is_none() -> None:
    def found(cap: list) -> list[str]:
        problem = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 1, 1)] * 2, memory_cap=cap)
        gpipe = DeviceOrder.parse(["0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"])
        return [str(v.device) for v in violations(simulate(problem, gpipe))]

    assert found([None, None]) == found([2, 2]) == []
    assert found([1, 2]) == ["0"]
    assert found([None, 1]) == ["1"]
    assert found([1, 1]) == ["0", "1"]


def test_every_breach_is_reported_at_once_and_drawn() -> None:
    starts = np.zeros(PROBLEM.shape, dtype=np.int64)
    with pytest.raises(InvalidSchedule) as error:
        validate(Schedule(PROBLEM, starts))
    # all four at 0: an overlap a device, and F0 F1, F1 B1, B1 B0, F0 B0
    assert sorted(v.rule for v in error.value.violations) == ["broken dependency"] * 4 + ["overlap"] * 2
    assert "0 | " in str(error.value)


def test_a_long_list_is_cut() -> None:
    problem = Problem.of(Placement.linear(1), 30, [Stage.fused(1, 1)])
    with pytest.raises(InvalidSchedule, match=r"violations:(.|\n)*and \d+ more"):
        validate(Schedule(problem, np.zeros(problem.shape, dtype=np.int64)))


def test_times_of_finer_ticks_than_the_problems_are_exact() -> None:
    third = Fraction(1, 3)
    late = [(op, d, s + third, e + third) for op, d, s, e in VALID]
    assert judge(*late) == []
    late[1] = ("0B0", 0, 7 + third - Fraction(1, 10**9), 9 + third - Fraction(1, 10**9))
    assert [v.split(":")[0] for v in judge(*late)] == ["broken dependency"]


@pytest.mark.parametrize("start", [Fraction(1, 10**30), 10**30])
def test_times_beyond_64_bits_are_one_error(start: Fraction) -> None:
    with pytest.raises(ProblemError, match="64 bits; round them"):
        judge(("0F0", 0, start, start + 1), *VALID[1:])


def test_a_tick_that_only_the_latency_overflows_is_an_error_too() -> None:
    far = Problem.of(Placement.linear(2), 1, [Stage.fused(1, 1)] * 2, latency=10**15)
    tiny = Fraction(1, 10**9)
    with pytest.raises(ProblemError, match="64 bits; round them"):
        judge(("0F0", 0, tiny, 1 + tiny), problem=far)


@pytest.mark.parametrize("seed", range(120))
def test_moving_one_op_is_noticed(seed: int) -> None:
    """In a semi-active schedule no op can be earlier; and any op moved onto another of its device overlaps it."""
    rng = Random(seed)
    problem = random_problem(rng, max_ops=30)
    schedule = simulate(problem, random_order(rng, problem))
    op = rng.choice(problem.all_ops())
    key = op.kind, op.stage, op.microbatch
    starts = schedule.starts.copy()
    starts[key] -= 1
    found = {v.rule for v in violations(Schedule(problem, starts)) if v.rule != "memory over cap"}
    assert found <= {"overlap", "broken dependency", "missing op"}  # a start of -1 is none
    assert found
