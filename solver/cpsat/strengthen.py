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
    """start of F(m + n) >= end of what frees micro-batch m, with n from ``delayed_forwards``."""
    problem = v.problem
    for route, stages in enumerate(problem.placement.routes):
        mine = range(route, problem.microbatches, problem.routes)
        for stage in (s for s, device in enumerate(stages) if device in v.devices):
            for closes, distance in delayed_forwards(v, stage, route).items():
                for m, later in zip(mine, mine[distance:], strict=False):
                    v.model.add(v.starts[OpKind.F, stage, later] >= v.end(closes, stage, m))


def delayed_forwards(v: Variables, stage: int, route: int) -> dict[OpKind, int]:
    """For each kind that frees memory, how many micro-batches of the route later a forward must wait for its end.

    If m's ``closes`` had not ended when F(m + k + 1) starts, then, in order, neither had that of the k after m: k + 1
    micro-batches would each keep what is freed at ``closes`` or later, beside all that F(m + k + 1) opens.
    """
    problem = v.problem
    room = v.goal.rooms(problem)[int(problem.device[route, stage])]
    opened = [h for h in problem.holds if h.stage == stage and h.opens == OpKind.F]
    # A hold whose round trip takes no time may hold nothing.
    first = sum(h.size for h in opened if round_trip(problem, *h[:3])[route] > 0)
    if room is None or room < first or not v.switches.memory_precedences:
        return {}
    # Kinds are numbered in order of time.
    kept = {h.closes: sum(other.size for other in opened if other.closes >= h.closes) for h in opened}
    return {closes: (room - first) // size + 1 for closes, size in kept.items()}
