"""Engines that look for the optimum, all under one judge: minbubble itself, and peers to measure it against."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from solver import Problem, ProblemError, Schedule, Status, metrics, solve, violations

if TYPE_CHECKING:
    from benchmarks.suite import SolverSettings
    from solver.cpsat.switches import Switches


class Outcome(NamedTuple):
    """What an engine found: the best schedule, and what it claims the minimised metric cannot be less than."""

    status: Status
    schedule: Schedule | None
    lower_bound: int | Fraction | tuple[int | Fraction, ...]
    gap: float
    proof: str
    wall_time: float


Engine = Callable[[Problem, "SolverSettings", tuple[Schedule, ...]], Outcome]


def minbubble(problem: Problem, settings: SolverSettings, hints: tuple[Schedule, ...]) -> Outcome:
    """``solver.solve`` with the settings' strengthenings and bounds."""
    from benchmarks.ablation import without_bounds

    import_module("solver.cpsat.model")  # before the clock starts: a process's first wall time has no import in it
    import_module("solver.cpsat.engine")
    with without_bounds(settings.without):
        result = solve(
            problem,
            minimize=settings.minimize,
            time_limit=settings.time_limit,
            workers=settings.workers,
            seed=settings.seed,
            hints=hints,
            switches=switches_of(settings),
        )
    return Outcome(result.status, result.schedule, result.lower_bound, result.gap, result.proof, result.wall_time)


def switches_of(settings: SolverSettings) -> Switches:
    """All strengthenings, all but some, or none; a start given from outside is used even by the textbook model."""
    from dataclasses import replace

    from solver.cpsat.switches import Switches

    switches = Switches.textbook() if settings.textbook else Switches()
    off = [name for name in settings.without if name in Switches.names()]
    changed = dict.fromkeys(off, False) | ({"warm_starts": True} if settings.start else {})
    return replace(switches, **changed)


def textbook(problem: Problem, settings: SolverSettings, hints: tuple[Schedule, ...]) -> Outcome:
    """The plain CP-SAT model: every strengthening off, no bound and no schedule but what is given from outside."""
    from solver.cpsat.engine import Limits, run
    from solver.cpsat.model import build, hint
    from solver.cpsat.switches import Switches
    from solver.goal import Goal

    began = time.monotonic()
    goal = Goal(settings.minimize[0], {})
    model = build(problem, goal, Switches.textbook(), goal.horizon(problem))
    for schedule in hints:
        hint(model, schedule.starts)
    left = settings.time_limit - (time.monotonic() - began)
    outcome = run(model, Limits(left, settings.workers, settings.seed), lambda starts, bound: False)
    found = None if outcome.starts is None else Schedule(problem, outcome.starts)
    return _judged(problem, settings, found, max(0, outcome.bound), "CP-SAT", time.monotonic() - began)


def zero_bubble_ilp(problem: Problem, settings: SolverSettings, hints: tuple[Schedule, ...]) -> Outcome:
    """The mixed-integer program of Zero Bubble's paper on HiGHS (extra ``highs``)."""
    try:
        from benchmarks.zero_bubble_ilp import minimize_with_highs
    except ImportError:
        raise ProblemError("needs HiGHS: pip install 'minbubble[highs]'", "engine zb-ilp") from None
    found, bound, seconds = minimize_with_highs(
        problem, settings.minimize[0], settings.time_limit, settings.workers, settings.seed, hints
    )
    return _judged(problem, settings, found, bound, "HiGHS", seconds)


def _judged(
    problem: Problem, settings: SolverSettings, found: Schedule | None, bound: int, proof: str, seconds: float
) -> Outcome:
    """What a peer found counts if the judge finds nothing wrong with it; ``bound`` is in ticks."""
    metric = metrics.METRICS[settings.minimize[0]]
    lower_bound = metric.in_units(problem, bound)
    if found is None or violations(found):
        return Outcome(Status.UNKNOWN, None, lower_bound, 1.0, proof, seconds)
    value = metric.ticks(found)
    gap = max(0.0, (value - bound) / value) if value else 0.0
    return Outcome(Status.FEASIBLE if gap else Status.OPTIMAL, found, lower_bound, gap, proof, seconds)


ENGINES: Mapping[str, Engine] = {"minbubble": minbubble, "textbook": textbook, "zb-ilp": zero_bubble_ilp}
"""The engines that a suite's ``[[solver]]`` may name."""


def check_settings(settings: SolverSettings) -> None:
    """ProblemError for an engine, metric, strengthening, bound or starting schedule that does not exist."""
    from baselines import get
    from benchmarks.ablation import bound_names
    from solver.cpsat.switches import Switches

    known = (
        ("engine", (settings.engine,), tuple(ENGINES)),
        ("minimize", settings.minimize, tuple(metrics.METRICS)),
        ("without", settings.without, (*Switches.names(), *bound_names())),
    )
    for key, names, choices in known:
        for name in names:
            if name not in choices:
                raise ProblemError(f"unknown {name!r}; choose from {', '.join(choices)}", f"solver.{key}")
    if settings.engine != "minbubble" and settings.minimize not in (("makespan",), ("span",)):
        raise ProblemError("a peer minimises makespan or span alone", "solver.minimize")
    if settings.start:
        get(settings.start)
