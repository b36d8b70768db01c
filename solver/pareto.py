"""The front of two metrics: what one more unit of the second buys of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from solver.metrics import METRICS
from solver.problem import Problem
from solver.result import Result
from solver.schedule import DeviceOrder, Schedule
from solver.solve import solve
from solver.units import Number


def pareto_front(
    problem: Problem,
    first: str = "makespan",
    second: str = "peak_memory",
    time_limit: float = 60,
    points: int = 20,
    workers: int | None = None,
    seed: int = 0,
    subject_to: Mapping[str, Number] | None = None,
    on_point: Callable[[Result], None] | None = None,
    hints: Iterable[Schedule | DeviceOrder] = (),
) -> list[Result]:
    """The schedules that no other beats in both metrics, least ``first`` first; each minimises (first, second).

    Each point must need less of ``second`` than the one before: at least one tick, and so much that about ``points``
    reach from the first point to the least ``second`` there is. ``time_limit`` is for each point; a point is proven
    where its status is OPTIMAL. ``on_point`` is called with each as it comes; ``hints`` are schedules or orders that
    each point may start from. Ctrl-C ends the front where it is.

    >>> from solver import Placement, Workload
    >>> problem = Workload.uniform(devices=2, microbatches=4).problem(Placement.linear(2))
    >>> [r.objective for r in pareto_front(problem)]
    [(15, 2), (24, 1)]
    """
    front: list[Result] = []
    limits, hints = dict(subject_to or {}), tuple(hints)
    step = METRICS[second].unit(problem) if second in METRICS else Fraction(1)
    while not (front and front[-1].interrupted):
        result = solve(problem, (first, second), limits, time_limit, workers, seed, hints)
        if result.schedule is None:
            break
        front.append(result)
        if on_point:
            on_point(result)
        reached = Fraction(result.value(second) or 0)
        if len(front) == 1:
            step = max(step, (reached - _least(problem, second)) / max(points - 1, 1))
        if reached < step:
            break
        limits = {**limits, second: reached - step}
    return front


def _least(problem: Problem, metric: str) -> Fraction:
    """A bound on the least value of a metric, whatever the others come to."""
    from solver.bounds import lower_bound
    from solver.goal import Goal

    return Fraction(METRICS[metric].in_units(problem, lower_bound(problem, Goal(metric)).value))
