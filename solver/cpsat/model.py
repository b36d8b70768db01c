"""The whole model of a problem and a goal."""

from __future__ import annotations

from collections.abc import Sequence

from solver.cpsat.constraints import (
    dependencies_hold,
    devices_run_one_op_at_a_time,
    limits_are_kept,
    memory_stays_within_room,
)
from solver.cpsat.objectives import OBJECTIVES
from solver.cpsat.strengthen import equal_microbatches_run_in_order, full_memory_delays_forwards
from solver.cpsat.switches import Switches
from solver.cpsat.variables import Variables
from solver.goal import Goal
from solver.problem import IntArray, Problem


def build(
    problem: Problem, goal: Goal, switches: Switches, horizon: int, floor: int = 0, devices: Sequence[int] | None = None
) -> Variables:
    """The model that minimises ``goal`` within ``horizon`` ticks; ``floor`` is a known bound on the objective.

    With some ``devices`` only, the relaxation that drops the capacity and memory of the others.
    """
    v = Variables(problem, goal, switches, horizon, tuple(range(problem.devices) if devices is None else devices))
    dependencies_hold(v)
    devices_run_one_op_at_a_time(v)
    memory_stays_within_room(v)
    if switches.microbatch_order:
        equal_microbatches_run_in_order(v)
        full_memory_delays_forwards(v)
    for name in {goal.minimize, *goal.at_most} - ({"peak_memory"} - {goal.minimize}):
        v.metric[name] = OBJECTIVES[name](v)
    limits_are_kept(v)
    v.model.add(v.metric[goal.minimize] >= floor)
    v.model.minimize(v.metric[goal.minimize])
    return v


def hint(v: Variables, starts: IntArray) -> None:
    """Tell the search of a schedule, its micro-batches put in order as the model wants them."""
    ordered = in_order(v.problem, starts) if v.switches.microbatch_order else starts
    for key, variable in v.starts.items():
        v.model.add_hint(variable, int(ordered[key]))


def in_order(problem: Problem, starts: IntArray) -> IntArray:
    """The same schedule with equal micro-batches renumbered within (route, stage, kind): sorted starts."""
    ordered = starts.copy()
    for route in range(problem.routes):
        ordered[:, :, route :: problem.routes].sort(axis=2)
    return ordered
