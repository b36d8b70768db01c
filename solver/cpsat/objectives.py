"""The metrics as variables; their names and meanings are those of ``solver.metrics``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ortools.sat.python import cp_model

from solver.cpsat.constraints import hold_interval
from solver.cpsat.variables import Variables
from solver.graph import tails


def makespan(v: Variables) -> cp_model.IntVar:
    """At least the end of every op, and of what must follow it."""
    value = v.model.new_int_var(0, v.horizon, "makespan")
    for (kind, stage, m), start in v.starts.items():
        tail = (
            tails(v.problem)[m % v.problem.routes, kind, stage]
            if v.switches.domains
            else v.problem.duration[kind, stage]
        )
        v.model.add(value >= start + int(tail))
    return value


def span(v: Variables) -> cp_model.IntVar:
    """At least (last end - first start) of every device."""
    value = v.model.new_int_var(0, v.horizon, "span")
    for keys in filter(None, map(v.ops_of.get, v.devices)):
        first, last = (v.model.new_int_var(0, v.horizon, "") for _ in range(2))
        for key in keys:
            v.model.add(first <= v.starts[key])
            v.model.add(last >= v.end(*key))
        v.model.add(value >= last - first)
    return value


def peak_memory(v: Variables) -> cp_model.IntVar:
    """At least static plus open holds of every device at any time."""
    static = {d: int(v.problem.static[d]) for d in v.devices}
    held = {d: v.held_on(d) for d in v.devices}
    most = max(static[d] + sum(hold.size for hold, _ in held[d]) for d in v.devices)
    value = v.model.new_int_var(max(static.values()), most, "peak_memory")
    for device in v.devices:
        intervals = [hold_interval(v, *item) for item in held[device]]
        v.model.add_cumulative(intervals, [hold.size for hold, _ in held[device]], value - static[device])
    return value


OBJECTIVES: Mapping[str, Callable[[Variables], cp_model.IntVar]] = {
    "makespan": makespan,
    "span": span,
    "peak_memory": peak_memory,
}
