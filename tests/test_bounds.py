"""No bound exceeds the truth: by hand, against brute force, and against any schedule of larger problems."""

from dataclasses import replace
from random import Random

import pytest

from solver import Placement, Problem, ProblemError, Stage, Workload, solve
from solver.bounds import BOUNDS, lower_bound
from solver.cpsat.switches import Switches
from solver.goal import Goal
from solver.metrics import METRICS
from tests.instances import random_problem
from tests.oracles import oracle


def filled(rng: Random, ops: int, longest: int) -> Problem:
    """A random problem with as many micro-batches as ``ops`` allow: where memory throttles."""
    problem = random_problem(rng, ops, longest)
    try:
        return replace(problem, microbatches=ops // (problem.ops // problem.microbatches))
    except ProblemError:  # a route that nothing took before may not fit the caps
        return problem


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(200))
def test_no_bound_exceeds_brute_force(seed: int, metric: str) -> None:
    rng = Random(seed)
    problem = filled(rng, 12, rng.choice([2, 4, 9]))
    best = oracle(problem, metric)
    for rule in BOUNDS[metric]:
        assert rule(problem, Goal(metric)).value <= best, rule.__name__


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(500, 540))
def test_no_bound_exceeds_brute_force_with_ops_of_no_duration(seed: int, metric: str) -> None:
    problem = random_problem(Random(seed), max_ops=5, longest=2, zeros=True)
    best = oracle(problem, metric)
    for rule in BOUNDS[metric]:
        assert rule(problem, Goal(metric)).value <= best, rule.__name__


@pytest.mark.parametrize("seed", range(1000, 1100))
def test_no_bound_exceeds_brute_force_under_limits(seed: int) -> None:
    """A limit on one metric may raise the bound on another, never above the best that keeps it."""
    rng = Random(seed)
    problem = filled(rng, 10, 4)
    metric, other = rng.sample(list(METRICS), 2)
    limits = {other: oracle(problem, other) + rng.choice([0, 0, 1])}
    best = oracle(problem, metric, limits)
    for rule in BOUNDS[metric]:
        assert rule(problem, Goal(metric, limits)).value <= best, rule.__name__


@pytest.mark.parametrize("seed", range(2000, 2040))
def test_no_bound_exceeds_the_textbook_model_on_larger_problems(seed: int) -> None:
    rng = Random(seed)
    problem = filled(rng, 30, rng.choice([2, 5]))
    metric = rng.choice(list(METRICS))
    found = solve(problem, metric, time_limit=1, workers=1, switches=Switches.textbook()).claims[0].value
    for rule in BOUNDS[metric]:
        assert rule(problem, Goal(metric)).value <= found, rule.__name__


def test_every_bound_says_what_and_where_and_why() -> None:
    problem = Workload.uniform(devices=4, microbatches=8).problem(Placement.linear(4), memory_cap=3)
    for metric, rules in BOUNDS.items():
        for rule in rules:
            bound = rule(problem, Goal(metric))
            assert bound.name
            assert len(bound.sentence) > 20
            assert "\n" not in bound.sentence
            assert bound.device is None or 0 <= bound.device < 4
            assert rule.__doc__


@pytest.mark.parametrize(("devices", "micros"), [(1, 1), (2, 3), (4, 8), (8, 4)])
@pytest.mark.parametrize(("forward", "backward"), [(1, 1), (1, 2), (3, 2)])
def test_linear_equal_stages_need_what_gpipe_takes(devices: int, micros: int, forward: int, backward: int) -> None:
    # Device P-1 cannot start before (P-1)F, works M(F+B), and (P-1)B must follow: (M+P-1)(F+B).
    problem = Problem.of(Placement.linear(devices), micros, [Stage.fused(forward, backward)] * devices)
    assert lower_bound(problem).value == (micros + devices - 1) * (forward + backward)


def test_linear_split_stages_need_the_way_down_and_the_work() -> None:
    # (P-1)F + M(F+I+W) on the last device, whose weight gradients may come last: 3 + 8 x 3 = 27.
    problem = Problem.of(Placement.linear(4), 8, [Stage.split(1, 1, 1)] * 4)
    assert lower_bound(problem).value >= 27
    assert solve(problem, workers=1).makespan == 27


@pytest.mark.parametrize(("devices", "micros"), [(2, 2), (4, 4), (4, 8), (6, 6)])
def test_bidirectional_equal_stages(devices: int, micros: int) -> None:
    # A middle device waits (P/2-1)F for its first op of either direction, works M(F+B), and (P/2-1)B must follow.
    problem = Problem.of(Placement.bidirectional(devices), micros, [Stage.fused(1, 2)] * devices)
    assert lower_bound(problem).value >= micros * 3 + (devices // 2 - 1) * 3


def test_the_first_backward_on_device_0_waits_for_the_whole_way() -> None:
    # P F + (P-1) B: 7 for B = F and 10 for B = 2F at P = 4; a diagram that starts it at 4 is infeasible.
    from solver.graph import heads
    from solver.ops import OpKind

    for backward, start in ((1, 7), (2, 10)):
        problem = Problem.of(Placement.linear(4), 4, [Stage.fused(1, backward)] * 4)
        assert heads(problem)[0, OpKind.B, 0] == start


@pytest.mark.parametrize(("cap", "least"), [(8, 51), (6, 53), (5, 56), (4, 59)])
def test_the_v_placement_under_a_cap(cap: int, least: int) -> None:
    # 6M + 6P - 3k - 1 where memory binds, P = 4, M = 8: 53, 56, 59; at k = 8 work binds: 51. The bound is no more.
    problem = Problem.of(Placement.wave(4, 2), 8, [Stage.split(1, 1, 1)] * 8, memory_cap=cap)
    assert 48 < lower_bound(problem).value <= least


def test_a_route_that_no_microbatch_takes_binds_nothing() -> None:
    # Route 1 has two hops, route 0 one: 3 x (2 + 4) + 2 x 1.
    problem = Problem.of(Placement.custom([[1, 1, 0], [1, 0, 1]]), 1, [Stage.fused(2, 4)] * 3, latency=1)
    assert lower_bound(problem).value == 20
