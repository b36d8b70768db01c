"""solve against brute force, and its promises: statuses, limits, tuples, hints, time limit, seeds, progress, Ctrl-C."""

import signal
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from solver import (
    DeviceOrder,
    Placement,
    Problem,
    ProblemError,
    Result,
    Schedule,
    Stage,
    Status,
    Workload,
    metrics,
    simulate,
    solve,
    violations,
)
from solver.metrics import METRICS
from tests.instances import random_order, random_problem
from tests.oracles import lexicographic, oracle

LINEAR = Workload.uniform(devices=4, microbatches=8).problem(Placement.linear(4), memory_cap=4)
SMALL = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2)] * 2)
HARD = Workload.uniform(devices=8, microbatches=24, forward=11, input_grad=12, weight_grad=7).problem(
    Placement.linear(8), memory_cap=3
)


def quick(problem: Problem, minimize="makespan", **options) -> Result:
    return solve(problem, minimize, **{"workers": 1, "time_limit": 30, **options})


def in_units(problem: Problem, bounds: dict[str, int]) -> dict:
    return {name: METRICS[name].in_units(problem, ticks) for name, ticks in bounds.items()}


def check(result: Result) -> None:
    """What every result must keep, whatever its status."""
    if result.schedule is None:
        assert result.status in (Status.INFEASIBLE, Status.UNKNOWN)
        assert result.makespan is result.objective is None
        return
    assert violations(result.schedule) == []
    assert result.makespan == metrics.makespan(result.schedule)
    for claim in result.claims:
        assert claim.bound <= claim.value
    assert (result.status == Status.OPTIMAL) == (result.gap == 0)
    assert result.proof
    assert result.explain().count("\n") == len(result.claims) - 1


@pytest.mark.parametrize("seed", range(150))
def test_one_metric_is_what_brute_force_finds(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=10)
    metric = rng.choice(list(METRICS))
    result = quick(problem, metric)
    check(result)
    assert result.status == Status.OPTIMAL
    assert result.claims[0].value == result.claims[0].bound == oracle(problem, metric)


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_ops_of_no_duration(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=5, longest=2, zeros=True)
    metric = rng.choice(list(METRICS))
    result = quick(problem, metric)
    check(result)
    assert (result.status, result.claims[0].value) == (Status.OPTIMAL, oracle(problem, metric))


@pytest.mark.parametrize("seed", range(2000, 2100))
def test_bounds_on_other_metrics_are_kept_or_impossible(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=8)
    minimized, bounded = rng.sample(list(METRICS), 2)
    bounds = {bounded: max(0, oracle(problem, bounded) + rng.choice([-1, 0, 0, 1, 2]))}
    expected = oracle(problem, minimized, bounds)
    result = quick(problem, minimized, subject_to=in_units(problem, bounds))
    check(result)
    if expected is None:
        assert result.status == Status.INFEASIBLE
        assert result.explain().startswith("No schedule")
    else:
        assert (result.status, result.claims[0].value) == (Status.OPTIMAL, expected)
        assert METRICS[bounded].ticks(result.schedule) <= bounds[bounded]


@pytest.mark.parametrize("seed", range(3000, 3060))
def test_several_metrics_are_minimised_first_things_first(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=8)
    names = tuple(rng.sample(list(METRICS), rng.choice([2, 3])))
    result = quick(problem, names)
    check(result)
    assert result.minimize == names
    assert result.status == Status.OPTIMAL
    assert [claim.value for claim in result.claims] == lexicographic(problem, names)
    assert result.objective == tuple(result.value(name) for name in names)


@pytest.mark.parametrize("seed", range(4000, 4030))
def test_several_workers_find_the_same_value(seed: int) -> None:
    problem = random_problem(Random(seed), max_ops=12)
    result = quick(problem, workers=2)
    check(result)
    assert (result.status, result.claims[0].value) == (Status.OPTIMAL, oracle(problem))


def test_values_are_in_the_problems_own_units() -> None:
    # F 1/3, B 2/3, P = M = 2: (M + P - 1)(F + B) = 3; with F 0.25, B 0.5: 9/4
    thirds = Problem.of(Placement.linear(2), 2, [Stage.fused("1/3", "2/3")] * 2)
    assert quick(thirds).makespan == 3
    quarters = quick(Problem.of(Placement.linear(2), 2, [Stage.fused(0.25, 0.5)] * 2))
    assert quarters.makespan == quarters.lower_bound == Fraction(9, 4)


def test_least_memory_at_the_best_makespan() -> None:
    # GPipe and 1F1B both take 33; 1F1B holds 4 activations, and fewer than P cannot keep the first device busy.
    result = quick(LINEAR, ("makespan", "peak_memory"))
    assert result.status == Status.OPTIMAL
    assert result.objective == (33, 4)
    assert result.lower_bound == (33, 4)


def test_limits_are_in_units_and_round_to_what_ticks_can_keep() -> None:
    # One micro-batch at a time takes 2 x (2 x 3) = 12 and holds 1; two at once take 9 and hold 2.
    assert quick(SMALL, subject_to={"peak_memory": 1}).makespan == 12
    assert quick(SMALL, subject_to={"peak_memory": "1.9"}).makespan == 12
    assert quick(SMALL, "peak_memory", subject_to={"makespan": "23/2"}).objective == 2
    assert quick(SMALL, "peak_memory", subject_to={"makespan": 12}).objective == 1
    assert quick(SMALL, "peak_memory", subject_to={"makespan": 10**30}).objective == 1


@pytest.mark.parametrize(
    "limits", [{"makespan": 8}, {"peak_memory": 0}, {"span": 0}, {"makespan": 11, "peak_memory": 1}]
)
def test_impossible_limits_are_infeasible(limits: dict) -> None:
    result = quick(SMALL, "makespan", subject_to=limits)
    check(result)
    assert result.status == Status.INFEASIBLE


def test_a_limit_below_static_memory_is_infeasible() -> None:
    # 1 of static memory and nothing held; and a device that holds a route's weights without running an op.
    stage = Stage.fused(2, 1, 0, 1)
    assert quick(Problem.of(Placement.linear(1), 2, [stage]), subject_to={"peak_memory": 0}).status == Status.INFEASIBLE
    # Static 5 and 1 held by each micro-batch: even 6 is needed, with each micro-batch alone: 3 x 2 x (1 + 2).
    held = Problem.of(Placement.linear(2), 3, [Stage.fused(1, 2, 1, 5)] * 2)
    for metric in METRICS:
        for limit in (0, 3, 5):
            result = quick(held, metric, subject_to={"peak_memory": limit})
            check(result)
            assert result.status == Status.INFEASIBLE
    assert quick(held, subject_to={"peak_memory": 6}).makespan == 18
    unused = Problem.of(Placement.custom([[0], [1]]), 1, [Stage.fused(2, 1, 3, 1)])
    assert quick(unused, subject_to={"peak_memory": 0}).status == Status.INFEASIBLE
    assert quick(unused, subject_to={"peak_memory": 4}).makespan == 3
    assert quick(unused, "peak_memory").objective == 4


def test_the_minimised_metric_may_be_limited_too() -> None:
    assert quick(SMALL, subject_to={"makespan": 9}).makespan == 9
    assert quick(SMALL, subject_to={"makespan": 8}).status == Status.INFEASIBLE
    assert quick(SMALL, "span", subject_to={"span": 8}).status == Status.INFEASIBLE


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"minimize": "speed"}, "minimize: unknown metric 'speed'; choose from makespan, span, peak_memory"),
        ({"minimize": ()}, "minimize: name at least one"),
        ({"minimize": ("span", "span")}, "each once"),
        ({"subject_to": {"speed": 1}}, "subject_to: unknown metric"),
        ({"subject_to": {"makespan": -1}}, r"subject_to\.makespan: must not be negative"),
        ({"subject_to": {"makespan": float("nan")}}, r"subject_to\.makespan: must be a finite"),
    ],
)
def test_wrong_usage_is_one_line(options: dict, rule: str) -> None:
    with pytest.raises(ProblemError, match=rule):
        solve(SMALL, **options)


def test_no_time_at_all_still_gives_a_valid_answer() -> None:
    for limit in (0, 1e-9):
        result = solve(HARD, time_limit=limit, workers=1)
        check(result)
        assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
        assert result.gap < 1


@pytest.mark.parametrize("seed", [*range(6000, 6010), 11])
def test_no_time_for_a_tuple_keeps_the_schedule_of_its_first_metric(seed: int) -> None:
    """A best span is of later starts than simulation gives: the schedule must survive as it is."""
    problem = random_problem(Random(seed), 40, 5)
    result = solve(problem, ("span", "makespan"), time_limit=0, workers=1)
    check(result)
    assert result.schedule is not None
    assert [claim.value for claim in result.claims] == [
        METRICS[name].ticks(result.schedule) for name in result.minimize
    ]


def test_a_short_limit_gives_the_best_so_far() -> None:
    result = solve(HARD, time_limit=2, workers=1)
    check(result)
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
    # 24 micro-batches of 30 each on a device are work for 720.
    assert 720 <= result.lower_bound <= result.makespan


@pytest.mark.parametrize("minimize", ["makespan", "span", "peak_memory"])
def test_one_worker_and_one_seed_give_one_result(minimize: str) -> None:
    problem = Problem.of(Placement.looped(2, 2), 4, [Stage.split(2, 3, 1)] * 4, latency=1, memory_cap=5)
    one, two = (quick(problem, minimize, seed=7) for _ in range(2))
    assert one.schedule is not None
    assert two.schedule is not None
    assert np.array_equal(one.schedule.starts, two.schedule.starts)
    assert one.objective == quick(problem, minimize, seed=8).objective


def test_hints_of_any_kind_are_taken_and_bad_ones_passed_over() -> None:
    gpipe = DeviceOrder.parse(["0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"])
    deadlock = DeviceOrder.parse(["0B0 0F0 0F1 0B1", "1F0 1F1 1B0 1B1"])
    invalid = Schedule(SMALL, np.zeros(SMALL.shape, dtype=np.int64))
    result = quick(SMALL, hints=[deadlock, invalid, gpipe, simulate(SMALL, gpipe)])
    check(result)
    assert result.makespan == 9


@pytest.mark.parametrize("seed", range(5000, 5040))
def test_hints_change_no_optimum(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=10)
    hints = [random_order(rng, problem) for _ in range(3)]
    result = quick(problem, hints=hints)
    check(result)
    assert (result.status, result.claims[0].value) == (Status.OPTIMAL, oracle(problem))


def test_a_good_hint_is_kept_when_time_is_out() -> None:
    best = quick(LINEAR).schedule
    result = solve(LINEAR, time_limit=0, hints=[best])
    assert result.makespan == 33


def test_progress_only_gets_better_and_ends_at_the_result() -> None:
    seen = []
    problem = Problem.of(Placement.bidirectional(4), 8, [Stage.fused("1/2", 1)] * 4, memory_cap=4)
    result = quick(problem, on_progress=seen.append)
    assert seen
    values = [p.best for p in seen if p.best is not None]
    assert values == sorted(values, reverse=True)
    assert [p.bound for p in seen] == sorted(p.bound for p in seen)
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)
    assert all(p.best is None or p.bound <= p.best for p in seen)
    # The proven optimum of this placement at cap 4 is 28 with F = 1, B = 2 (facts of bidirectional placements): half.
    assert values[-1] == result.makespan == 14


def test_ctrl_c_returns_the_best_schedule_so_far() -> None:
    code = textwrap.dedent("""
        import os, signal, threading
        import solver.cpsat.engine  # not to interrupt the import
        from solver import Placement, Workload, solve
        problem = Workload.uniform(8, 24, forward=11, input_grad=12, weight_grad=7).problem(
            Placement.linear(8), memory_cap=3)
        threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
        result = solve(problem, time_limit=50, workers=1)
        print(result.status, result.interrupted, result.schedule is not None)
        print(result.explain())
    """)
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "FEASIBLE True True"
    assert "makespan" in done.stdout
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_results_cannot_be_more_certain_than_their_claims() -> None:
    result = solve(HARD, time_limit=0, workers=1)
    assert result.status == Status.FEASIBLE
    assert result.gap > 0
    assert "the optimum is at least" in result.explain()
    assert "is optimal" in quick(SMALL).explain()


@pytest.mark.parametrize(
    ("placement", "micros", "stages"),
    [
        (Placement.linear(1), 1, 1),
        (Placement.linear(1), 7, 1),
        (Placement.linear(3), 1, 3),
        (Placement.wave(1, 3), 2, 3),
        (Placement.bidirectional(3), 1, 3),
        (Placement.bidirectional(3), 3, 3),
        (Placement.custom([[0, 0], [2, 2], [0, 2]], devices=4), 2, 2),
        (Placement.custom([[0], [1], [2]]), 5, 1),
    ],
    ids=str,
)
def test_odd_sizes(placement: Placement, micros: int, stages: int) -> None:
    for stage in (Stage.fused(1, 2), Stage.split(1, 1, 1), Stage.fused(0, 0), Stage.split(1, 0, 0, 1, 1, 1)):
        for metric in METRICS:
            result = quick(Problem.of(placement, micros, [stage] * stages, memory_cap=8), metric)
            check(result)
            assert result.status == Status.OPTIMAL


def test_large_ticks_solve_exactly() -> None:
    # Times of 10**15 ticks and their successor: 1F1B's (M + P - 1)(F + B) with F = 10**15, B = 10**15 + 1.
    stage = Stage.fused(10**15, 10**15 + 1)
    result = quick(Problem.of(Placement.linear(2), 2, [stage] * 2))
    check(result)
    assert result.makespan == 3 * (2 * 10**15 + 1)
