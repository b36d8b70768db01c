"""List scheduling ends, obeys the rules, and never deadlocks on memory, whatever the routes, recipes and caps."""

from dataclasses import replace
from random import Random

import pytest

from solver import Placement, Problem, ProblemError, Stage, metrics, simulate, violations
from solver.heuristics import list_order, one_at_a_time, policies
from solver.memory import one_microbatch_peaks
from tests.instances import random_problem


def filled(rng: Random, ops: int) -> Problem:
    """A random problem with as many micro-batches as ``ops`` allow, at the tightest caps half of the time."""
    problem = random_problem(rng, ops)
    try:
        problem = replace(problem, microbatches=ops // (problem.ops // problem.microbatches))
    except ProblemError:  # a route that nothing took before may not fit the caps
        return problem
    if rng.random() < 0.5:
        tight = tuple(problem.in_memory(peak) for peak in one_microbatch_peaks(problem))
        problem = Problem.of(problem.placement, problem.microbatches, problem.stages, problem.latency, tight)
    return problem


@pytest.mark.parametrize("seed", range(80))
def test_every_policy_gives_a_valid_schedule(seed: int) -> None:
    rng = Random(seed)
    problem = filled(rng, 48)
    for policy in rng.sample(list(policies(problem)), 6):
        assert violations(simulate(problem, list_order(problem, policy))) == []


@pytest.mark.parametrize("seed", range(40))
def test_one_microbatch_at_a_time_needs_what_one_alone_needs(seed: int) -> None:
    problem = filled(Random(seed), 48)
    schedule = simulate(problem, one_at_a_time(problem))
    assert violations(schedule) == []
    assert metrics.peak_memory(schedule) == [problem.in_memory(peak) for peak in one_microbatch_peaks(problem)]


@pytest.mark.parametrize("seed", range(40))
def test_rooms_below_the_caps_are_kept(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, 30)
    free = replace(problem, memory_cap=(None,) * problem.devices)
    needed = [int(peak - static) for peak, static in zip(one_microbatch_peaks(free), free.static, strict=True)]
    rooms = [need + rng.randint(0, 2) for need in needed]
    for policy in rng.sample(list(policies(free)), 4):
        schedule = simulate(free, list_order(free, policy, rooms))
        for d, peak in enumerate(metrics.peak_memory(schedule)):
            assert peak <= free.in_memory(rooms[d] + int(free.static[d]))


def best(problem: Problem) -> object:
    return min(metrics.makespan(simulate(problem, list_order(problem, policy))) for policy in policies(problem))


def test_equal_stages_come_out_as_1f1b_and_zb_h1() -> None:
    # (M + P - 1)(F + B) = 11 x 3 at P = 4 activations, as 1F1B; (P-1)F + M(F+I+W) = 27, as ZB-H1.
    assert best(Problem.of(Placement.linear(4), 8, [Stage.fused(1, 2)] * 4, memory_cap=4)) == 33
    assert best(Problem.of(Placement.linear(4), 8, [Stage.split(1, 1, 1)] * 4, memory_cap=4)) == 27
