"""The rules of a schedule as constraints, one short function each."""

from __future__ import annotations

from ortools.sat.python import cp_model

from solver.cpsat.order import memory_is_counted_by_order
from solver.cpsat.variables import Variables
from solver.graph import projection, round_trip
from solver.problem import StageHold


def dependencies_hold(v: Variables) -> None:
    """start(after) >= start(before) + lag, the durations and latencies on the way."""
    for route, arcs in enumerate(projection(v.problem, v.devices)):
        for (kind, stage), (kind2, stage2), (lag,) in arcs:
            for m in range(route, v.problem.microbatches, v.problem.routes):
                v.model.add(v.starts[kind2, stage2, m] >= v.starts[kind, stage, m] + lag)


def devices_run_one_op_at_a_time(v: Variables) -> None:
    """No two intervals [start, start + duration) of a device overlap."""
    for device in v.devices:
        v.model.add_no_overlap(
            v.model.new_fixed_size_interval_var(v.starts[key], int(v.problem.duration[key[:2]]), "")
            for key in v.ops_of[device]
        )


def memory_stays_within_room(v: Variables) -> None:
    """At any time, the sizes of a device's open holds add up to at most its room."""
    rooms = v.goal.rooms(v.problem)
    for device in v.devices:
        room, held = rooms[device], v.held_on(device)
        if room is not None and room < 0:
            v.model.add_bool_or([])  # static memory alone is over the limit
        if room is None or sum(hold.size for hold, _ in held) <= room:
            continue
        if v.switches.microbatch_order and v.switches.memory_order and _one_stage_with_time(v, device):
            memory_is_counted_by_order(v, device, room)
        else:
            intervals = [hold_interval(v, *item) for item in held]
            v.model.add_cumulative(intervals, [hold.size for hold, _ in held], room)


def _one_stage_with_time(v: Variables, device: int) -> bool:
    """Whether a device runs a single stage of a single route, and no op of no duration."""
    kinds = {key[:2] for key in v.ops_of[device]}
    routes = {key[2] % v.problem.routes for key in v.ops_of[device]}
    return len({s for _, s in kinds}) == len(routes) == 1 and all(v.problem.duration[k] > 0 for k in kinds)


def hold_interval(v: Variables, hold: StageHold, micro: int) -> cp_model.IntervalVar:
    """[start of ``opens``, end of ``closes``), at least as long as its round trip."""
    shortest = round_trip(v.problem, hold.stage, hold.opens, hold.closes)[micro % v.problem.routes]
    size = v.model.new_int_var(shortest if v.switches.round_trips else 0, max(shortest, v.horizon), "")
    start, end = v.starts[hold.opens, hold.stage, micro], v.end(hold.closes, hold.stage, micro)
    return v.model.new_interval_var(start, size, end, "")


def limits_are_kept(v: Variables) -> None:
    """Metrics in ``goal.at_most`` stay below their limits; that on peak memory is part of the rooms."""
    for name, limit in v.goal.at_most.items():
        if name in v.metric:
            v.model.add(v.metric[name] <= limit)
