"""The straight line: bound, warm starts, search, judge."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from solver.bounds import Bound, lower_bound
from solver.errors import DeadlockError, ProblemError
from solver.goal import Goal
from solver.heuristics import one_at_a_time
from solver.metrics import METRICS
from solver.problem import IntArray, Problem
from solver.result import Claim, Progress, Result, Status
from solver.schedule import DeviceOrder, Schedule
from solver.simulate import simulate
from solver.units import Number, exact
from solver.validate import validate, violations

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

    names = _metric_names(minimize)
    limits = _limits(problem, subject_to or {})
    search = _Search(problem, switches or Switches(), time_limit, workers or available_cores(), seed, on_progress)
    claims: list[Claim] = []
    try:
        for name in names:
            claims.append(search.minimize(Goal(name, limits), tuple(hints) if not claims else ()))
            if claims[-1].value is None:
                break
            limits = {**limits, name: claims[-1].value}
    except KeyboardInterrupt:
        search.interrupted = True
        claims.append(search.claim())
    return search.result(tuple(claims))


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


NOTHING = Bound(0, "none", None, "nothing is known yet")


@dataclass
class _Search:
    """What is known so far of one metric at a time; survives an interruption."""

    problem: Problem
    switches: Switches
    time_limit: float
    workers: int
    seed: int
    on_progress: Callable[[Progress], None] | None
    started: float = field(default_factory=time.monotonic)
    goal: Goal = field(default_factory=Goal)
    best: Schedule | None = None
    value: int | None = None
    bound: Bound = NOTHING
    interrupted: bool = False

    def minimize(self, goal: Goal, hints: Sequence[Schedule | DeviceOrder]) -> Claim:
        """Bound, warm starts, and stop at once where they meet; else search."""
        self.goal, self.value = goal, None
        self.bound = lower_bound(self.problem, goal)
        self._offer_all(hints)
        self._offer_all([one_at_a_time(self.problem)])
        if not self._met():
            self._cpsat()
        return self.claim()

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def left(self) -> float:
        return self.time_limit - self.seconds()

    def claim(self) -> Claim:
        return Claim(self.goal.minimize, self.value, self.bound.value, self.bound.name, self.bound.sentence)

    def _met(self) -> bool:
        return self.value is not None and self.bound.value >= self.value

    def _offer_all(self, hints: Iterable[Schedule | DeviceOrder]) -> None:
        if self.best is not None:
            self._offer(self.best)
        for hint in hints:
            try:
                self._offer(simulate(self.problem, hint if isinstance(hint, DeviceOrder) else hint.order()))
            except DeadlockError:
                continue

    def _offer(self, schedule: Schedule) -> None:
        """Take a schedule that is valid, within the limits and better than the best."""
        value = METRICS[self.goal.minimize].ticks(schedule)
        if self.value is not None and value >= self.value:
            return
        if any(METRICS[name].ticks(schedule) > limit for name, limit in self.goal.at_most.items()):
            return
        if not violations(schedule):
            self.best, self.value = schedule, value
            self._report()

    def _raise_bound(self, value: int) -> None:
        if value > self.bound.value:
            self.bound = Bound(value, "search", None, "CP-SAT searched every order that could be shorter")
            self._report()

    def _report(self) -> None:
        if self.on_progress:
            in_units = METRICS[self.goal.minimize].in_units
            best = None if self.value is None else in_units(self.problem, self.value)
            self.on_progress(Progress(self.seconds(), best, in_units(self.problem, self.bound.value)))

    def _watch(self, starts: IntArray | None, bound: int) -> None:
        if starts is not None:
            self._offer(Schedule(self.problem, starts))
        self._raise_bound(bound if self.value is None else min(bound, self.value))

    def _cpsat(self) -> None:
        from solver.cpsat.engine import Limits, run
        from solver.cpsat.model import build, hint

        horizon = self.goal.horizon(self.problem)
        if self.goal.minimize == "makespan" and self.value is not None:
            horizon = min(horizon, self.value)
        model = build(self.problem, self.goal, self.switches, horizon, self.bound.value if self.switches.bounds else 0)
        if self.best is not None and self.switches.warm_starts:
            hint(model, self.best.starts)
        outcome = run(model, Limits(self.left(), self.workers, self.seed), self._watch)
        self._watch(outcome.starts, outcome.bound)

    def result(self, claims: tuple[Claim, ...]) -> Result:
        """The judged result; ``validate`` has the last word."""
        if self.best is not None:
            validate(self.best)
        return Result(self.problem, self._status(claims), self.best, claims, self.seconds(), self.interrupted)

    def _status(self, claims: tuple[Claim, ...]) -> Status:
        if self.best is None:
            infeasible = claims[-1].bound > self.goal.horizon(self.problem)
            return Status.INFEASIBLE if infeasible else Status.UNKNOWN
        return Status.OPTIMAL if all(c.proven for c in claims) else Status.FEASIBLE
