"""The front of two metrics, against brute force."""

from random import Random

import pytest

from solver import Placement, Problem, ProblemError, Stage, Status, pareto_front, violations
from tests.instances import random_problem
from tests.oracles import lexicographic


def brute_force(problem: Problem, first: str, second: str) -> list[list[int]]:
    front, bounds = [], {}
    while point := lexicographic(problem, (first, second), bounds):
        front.append(point)
        if not point[1]:
            break
        bounds = {second: point[1] - 1}
    return front


@pytest.mark.parametrize("metrics", [("makespan", "peak_memory"), ("peak_memory", "makespan"), ("span", "peak_memory")])
@pytest.mark.parametrize("seed", range(20))
def test_every_point_is_on_the_front_and_none_is_missing(seed: int, metrics: tuple[str, str]) -> None:
    problem = random_problem(Random(seed), max_ops=8)
    front = pareto_front(problem, *metrics, points=10_000, workers=1)
    assert all(r.status == Status.OPTIMAL and violations(r.schedule) == [] for r in front)
    assert [[claim.value for claim in r.claims] for r in front] == brute_force(problem, *metrics)


def test_few_points_are_some_of_the_front() -> None:
    # P = 2, M = 6, F = 1, B = 2: k activations take 21 at k >= 2 and 36 at k = 1 (ceil(M/k) P (F+B) + (r-1)(F+B)).
    problem = Problem.of(Placement.linear(2), 6, [Stage.fused(1, 2)] * 2)
    for points in (1, 2, 5):
        objectives = [r.objective for r in pareto_front(problem, points=points, workers=1)]
        assert objectives[0] == (21, 2)
        assert objectives[1:] in ([], [(36, 1)])


def test_limits_hold_on_every_point() -> None:
    problem = Problem.of(Placement.linear(2), 4, [Stage.fused("1/2", 1)] * 2)
    # (M + P - 1)(F + B) = 7.5 with 2 activations; one at a time takes 12.
    assert [r.objective for r in pareto_front(problem, workers=1)] == [(7.5, 2), (12, 1)]
    assert [r.objective for r in pareto_front(problem, workers=1, subject_to={"makespan": 11})] == [(7.5, 2)]
    assert pareto_front(problem, workers=1, subject_to={"makespan": 7}) == []


def test_points_are_shown_as_they_come() -> None:
    shown = []
    problem = Problem.of(Placement.linear(2), 4, [Stage.fused(1, 2)] * 2)
    assert pareto_front(problem, workers=1, on_point=shown.append) == shown != []


def test_unknown_metrics_are_named() -> None:
    problem = Problem.of(Placement.linear(1), 1, [Stage.fused(1, 2)])
    for pair in (("speed", "makespan"), ("makespan", "speed"), ("makespan", "makespan")):
        with pytest.raises(ProblemError, match="minimize"):
            pareto_front(problem, *pair)


def test_each_point_starts_from_the_hints() -> None:
    # without time, a hint is all there is: P = 4, M = 8 at cap 4, (8 + 3) x 3
    problem = Problem.of(Placement.linear(4), 8, [Stage.fused(1, 2)] * 4)
    hint = pareto_front(problem, points=1)[0].schedule
    (first, *_) = pareto_front(problem, points=2, time_limit=0, hints=[hint])
    assert first.objective == (33, 4)
