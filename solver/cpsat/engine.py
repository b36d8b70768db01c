"""Runs CP-SAT so that it can be watched, limited and interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from solver.cpsat.variables import Variables
from solver.problem import IntArray

Watch = Callable[[IntArray | None, int], None]
"""Called with (starts of a new best schedule or None, the bound so far) from the search's own threads."""


@dataclass(frozen=True)
class Limits:
    """What a search may use: wall ``seconds``, ``workers``, ``seed``, and ``effort`` in CP-SAT's deterministic time."""

    seconds: float
    workers: int
    seed: int = 0
    effort: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What a search ended with: the best starts or None, the bound, and whether the search was exhausted."""

    starts: IntArray | None
    bound: int
    exhausted: bool


class _Listener(cp_model.CpSolverSolutionCallback):
    def __init__(self, v: Variables, watch: Watch) -> None:
        super().__init__()
        self.v, self.watch = v, watch

    def on_solution_callback(self) -> None:
        self.watch(_starts(self.v, self.value), _ceil(self.best_objective_bound))


def run(v: Variables, limits: Limits, watch: Watch) -> Outcome:
    """Search until proven or out of limits; on Ctrl-C stop, then raise KeyboardInterrupt again."""
    solver = cp_model.CpSolver()
    _configure(solver, limits)
    solver.best_bound_callback = lambda bound: watch(None, _ceil(bound))
    status: list[cp_model.CpSolverStatus] = []
    search = threading.Thread(target=lambda: status.append(solver.solve(v.model, _Listener(v, watch))), daemon=True)
    search.start()
    try:
        while search.is_alive():
            search.join(0.5)
    except KeyboardInterrupt:
        solver.stop_search()
        search.join()
        raise
    return _outcome(v, solver, status[0])


def _configure(solver: cp_model.CpSolver, limits: Limits) -> None:
    solver.parameters.max_time_in_seconds = max(limits.seconds, 0.01)
    solver.parameters.num_workers = limits.workers
    solver.parameters.random_seed = limits.seed
    solver.parameters.catch_sigint_signal = False  # the caller hears Ctrl-C, and keeps what was found
    if limits.effort is not None:
        solver.parameters.max_deterministic_time = limits.effort


def _outcome(v: Variables, solver: cp_model.CpSolver, status: cp_model.CpSolverStatus) -> Outcome:
    if status == cp_model.MODEL_INVALID:
        raise OverflowError(v.model.validate())
    if status == cp_model.INFEASIBLE:
        return Outcome(None, v.horizon + 1, exhausted=True)
    bound = _ceil(solver.best_objective_bound)
    if status == cp_model.UNKNOWN:
        return Outcome(None, bound, exhausted=False)
    return Outcome(_starts(v, solver.value), bound, exhausted=status == cp_model.OPTIMAL)


def _starts(v: Variables, value: Callable[[cp_model.IntVar], int]) -> IntArray:
    starts = np.full(v.problem.shape, -1, dtype=np.int64)
    for key, variable in v.starts.items():
        starts[key] = value(variable)
    return starts


def _ceil(bound: float) -> int:
    """CP-SAT reports integer bounds as floats; the small step down forgives rounding."""
    return int(np.ceil(bound - 1e-6))
