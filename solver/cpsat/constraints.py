"""The rules of a schedule as constraints, one short function each."""

from __future__ import annotations

from ortools.sat.python import cp_model

from solver.cpsat.variables import Variables
from solver.graph import arcs, round_trip
from solver.problem import StageHold


def dependencies_hold(v: Variables) -> None:
    """start(after) >= start(before) + lag, the duration and the latency."""
    for (kind, stage), (kind2, stage2), lag in arcs(v.problem):
        for m in range(v.problem.microbatches):
            v.model.add(v.starts[kind2, stage2, m] >= v.starts[kind, stage, m] + lag[m % len(lag)])


def devices_run_one_op_at_a_time(v: Variables) -> None:
    """No two intervals [start, start + duration) of a device overlap."""
    for device in range(v.problem.devices):
        v.model.add_no_overlap(
            v.model.new_fixed_size_interval_var(v.starts[key], int(v.problem.duration[key[:2]]), "")
            for key in v.on_device(device)
        )


def memory_stays_within_room(v: Variables) -> None:
    """At any time, the sizes of a device's open holds add up to at most its room."""
    for device, room in enumerate(v.goal.rooms(v.problem)):
        held = v.held_on(device)
        if room is None or sum(hold.size for hold, _ in held) <= room:
            continue
        intervals = [hold_interval(v, *item) for item in held]
        v.model.add_cumulative(intervals, [hold.size for hold, _ in held], room)


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
