"""Runs CP-SAT so that it can be watched, limited and interrupted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from solver.background import Job
from solver.cpsat.variables import Variables
from solver.problem import IntArray

Watch = Callable[[IntArray | None, int], bool]
"""Called with (starts of a new best schedule or None, the bound so far); True stops the search."""


@dataclass(frozen=True)
class Limits:
    """What a search may use: wall ``seconds``, ``workers``, ``seed``, and ``effort`` in CP-SAT's deterministic time."""

    seconds: float
    workers: int
    seed: int = 0
    effort: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What a search ended with: the best starts or None, the bound, and whether nothing obeys the constraints."""

    starts: IntArray | None
    bound: int
    infeasible: bool = False


class _Listener(cp_model.CpSolverSolutionCallback):
    def __init__(self, v: Variables, watch: Watch) -> None:
        super().__init__()
        self.v, self.watch = v, watch

    def on_solution_callback(self) -> None:
        if self.watch(_starts(self.v, self.value), _ceil(self.best_objective_bound)):
            self.stop_search()


def run(v: Variables, limits: Limits, watch: Watch) -> Outcome:
    """Search until proven or out of limits; on Ctrl-C stop, then raise KeyboardInterrupt again."""
    solver = configured(limits)

    def on_bound(bound: float) -> None:
        if watch(None, _ceil(bound)):
            solver.stop_search()

    solver.best_bound_callback = on_bound
    status = [cp_model.UNKNOWN]

    def search() -> None:
        status[0] = solver.solve(v.model, _Listener(v, watch))

    Job(search).wait(solver.stop_search, poll=lambda: on_bound(0))
    return _outcome(v, solver, status[0])


def configured(limits: Limits) -> cp_model.CpSolver:
    """A CP-SAT solver within ``limits``.

    Its first worker goes without linear relaxation: on these models that proves in seconds what the default does not
    in minutes; further workers are CP-SAT's own neighbourhood searches.
    """
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(limits.seconds, 0.01)
    solver.parameters.num_workers = limits.workers
    solver.parameters.random_seed = limits.seed
    solver.parameters.catch_sigint_signal = False  # the caller hears Ctrl-C, and keeps what was found
    if limits.workers == 1:
        solver.parameters.linearization_level = 0
    else:
        solver.parameters.subsolvers.extend(["no_lp", "quick_restart_no_lp", "default_lp"][: limits.workers - 1])
    if limits.effort is not None:
        solver.parameters.max_deterministic_time = limits.effort
    return solver


def _outcome(v: Variables, solver: cp_model.CpSolver, status: cp_model.CpSolverStatus) -> Outcome:
    """A model too large for CP-SAT's own sums (MODEL_INVALID) counts as not searched."""
    if status == cp_model.INFEASIBLE:
        return Outcome(None, 0, infeasible=True)
    if status in (cp_model.UNKNOWN, cp_model.MODEL_INVALID):
        known = status == cp_model.UNKNOWN and np.isfinite(solver.best_objective_bound)
        return Outcome(None, _ceil(solver.best_objective_bound) if known else 0)
    return Outcome(_starts(v, solver.value), _ceil(solver.best_objective_bound))


def _starts(v: Variables, value: Callable[[cp_model.IntVar], int]) -> IntArray:
    starts = np.full(v.problem.shape, -1, dtype=np.int64)
    for key, variable in v.starts.items():
        starts[key] = value(variable)
    return starts


def _ceil(bound: float) -> int:
    """CP-SAT reports integer bounds as floats; the small step down forgives rounding."""
    return int(np.ceil(bound - 1e-6))
