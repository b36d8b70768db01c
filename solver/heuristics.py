"""List scheduling for any problem: the solver's own warm starts."""

from __future__ import annotations

from solver.ops import Op, OpKind
from solver.problem import Problem
from solver.schedule import DeviceOrder


def one_at_a_time(problem: Problem) -> DeviceOrder:
    """Micro-batches one after another, each W right after its I: needs the least memory of all orders that end."""
    rows: list[list[Op]] = [[] for _ in range(problem.devices)]
    stages = range(len(problem.stages))
    for m in range(problem.microbatches):
        route = problem.placement.route_of(m)
        for s in stages:
            rows[route[s]].append(Op(s, OpKind.F, m))
        for s in reversed(stages):
            rows[route[s]] += [Op(s, kind, m) for kind in problem.stages[s].recipe.kinds[1:]]
    return DeviceOrder.of(rows)
