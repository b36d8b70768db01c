"""The straight line: bound, warm starts, search, judge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from solver.errors import ProblemError
from solver.goal import Goal
from solver.metrics import METRICS
from solver.problem import Problem
from solver.result import Claim, Progress, Result, Status
from solver.schedule import DeviceOrder, Schedule
from solver.search import Search
from solver.units import Number, exact, whole
from solver.validate import validate

if TYPE_CHECKING:
    from solver.cpsat.switches import Switches


def solve(
    problem: Problem,
    minimize: str | Sequence[str] = "makespan",
    subject_to: Mapping[str, Number] | None = None,
    time_limit: float = 60,
    workers: int | None = None,
    seed: int = 0,
    hints: Iterable[Schedule | DeviceOrder] = (),
    on_progress: Callable[[Progress], None] | None = None,
    switches: Switches | None = None,
) -> Result:
    """The schedule of ``problem`` with the least ``minimize``, and what is proven of it.

    ``minimize`` is "makespan", "span" or "peak_memory", or several of them, first things first. ``subject_to`` bounds
    metrics in the problem's own units. ``hints`` are schedules or orders to start from; those that break a rule are
    passed over. ``on_progress`` is called with a Progress whenever the best schedule or the bound improves.
    ``time_limit`` is in seconds of wall time, for all metrics together; ``workers`` defaults to the cores at hand.
    With one worker the same ``seed`` gives the same result unless the time limit cuts in.

    Returns the best schedule so far on the time limit and on Ctrl-C. Raises ProblemError for unknown metrics.

    >>> from solver import Placement, Workload
    >>> problem = Workload.uniform(devices=4, microbatches=8).problem(Placement.linear(4), memory_cap=4)
    >>> result = solve(problem)
    >>> result.status.name, result.makespan
    ('OPTIMAL', 33)
    """
    from solver.cpsat.switches import Switches

    names, hints = _metric_names(minimize), tuple(hints)
    exact(time_limit, "time_limit")
    whole(seed, "seed", 0, 2**31 - 1)
    workers = available_cores() if workers is None else whole(workers, "workers", 1, 1024)
    limits = _limits(problem, subject_to or {})
    search = Search(problem, switches or Switches(), time_limit, workers, seed, on_progress)
    claims: list[Claim] = []
    for name in names:
        goal = Goal(name, limits)
        claims.append(search.minimize(goal, hints if not claims else ()))
        if claims[-1].value is None:
            break
        limits = {**limits, name: claims[-1].value}
    return _result(search, tuple(claims))


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _metric_names(minimize: str | Sequence[str]) -> tuple[str, ...]:
    names = (minimize,) if isinstance(minimize, str) else tuple(minimize)
    for name in names:
        _check_metric(name, "minimize")
    if not names or len(set(names)) < len(names):
        raise ProblemError("name at least one metric, each once", "minimize")
    return names


def _check_metric(name: str, key: str) -> None:
    if name not in METRICS:
        raise ProblemError(f"unknown metric {name!r}; choose from {', '.join(METRICS)}", key)


def _limits(problem: Problem, subject_to: Mapping[str, Number]) -> dict[str, int]:
    """Limits in ticks, rounded down: every schedule's metrics are whole ticks."""
    for name in subject_to:
        _check_metric(name, "subject_to")
    exactly = {name: exact(value, f"subject_to.{name}") for name, value in subject_to.items()}
    return {name: int(value / METRICS[name].unit(problem)) for name, value in exactly.items()}


def _result(search: Search, claims: tuple[Claim, ...]) -> Result:
    """The judged result; ``validate`` has the last word."""
    if search.best is not None:
        validate(search.best)
    status = _status(search, claims)
    return Result(search.problem, status, search.best, claims, search.seconds(), search.interrupted)


def _status(search: Search, claims: tuple[Claim, ...]) -> Status:
    if search.best is None:
        infeasible = claims[-1].bound > search.goal.worst(search.problem)
        return Status.INFEASIBLE if infeasible else Status.UNKNOWN
    return Status.OPTIMAL if all(c.proven for c in claims) else Status.FEASIBLE
