"""Redundant constraints that make the search see more; each behind its switch."""

from __future__ import annotations

from itertools import pairwise

from solver.cpsat.variables import Variables
from solver.graph import round_trip
from solver.ops import OpKind


def equal_microbatches_run_in_order(v: Variables) -> None:
    """start(m + R) >= end(m) within a route, stage and kind."""
    problem = v.problem
    for kind, stage in sorted({key[:2] for key in v.starts}):
        for route in range(problem.routes):
            mine = range(route, problem.microbatches, problem.routes)
            for m, later in pairwise(m for m in mine if (kind, stage, m) in v.starts):
                v.model.add(v.starts[kind, stage, later] >= v.end(kind, stage, m))


def full_memory_delays_forwards(v: Variables) -> None:
    """start of F(m + k + 1) >= end of what frees micro-batch m, for each stage and route alone.

    If m's ``closes`` had not ended when F(m + k + 1) starts, then, in order, neither had that of the k after m: k + 1
    micro-batches would each keep what is freed at ``closes`` or later, beside all that F(m + k + 1) opens.
    """
    for route, stages in enumerate(v.problem.placement.routes):
        for stage, device in enumerate(stages):
            if device in v.devices:
                _delay_forwards(v, stage, route)


def _delay_forwards(v: Variables, stage: int, route: int) -> None:
    problem = v.problem
    room = v.goal.rooms(problem)[int(problem.device[route, stage])]
    opened = [h for h in problem.holds if h.stage == stage and h.opens == OpKind.F]
    mine = range(route, problem.microbatches, problem.routes)
    # A hold whose round trip takes no time may hold nothing.
    first = sum(h.size for h in opened if round_trip(problem, *h[:3])[route] > 0)
    if room is None or room < first:
        return
    for closes in {h.closes for h in opened}:
        kept = sum(h.size for h in opened if h.closes >= closes)  # kinds are numbered in order of time
        for m, later in zip(mine, mine[(room - first) // kept + 1 :], strict=False):
            v.model.add(v.starts[OpKind.F, stage, later] >= v.end(closes, stage, m))
