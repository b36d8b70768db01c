"""The metrics as variables; their names and meanings are those of ``solver.metrics``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ortools.sat.python import cp_model

from solver.cpsat.constraints import hold_interval
from solver.cpsat.variables import Variables


def makespan(v: Variables) -> cp_model.IntVar:
    """At least the end of every op."""
    value = v.model.new_int_var(0, v.horizon, "makespan")
    v.model.add_max_equality(value, [v.end(*key) for key in v.starts])
    return value


def span(v: Variables) -> cp_model.IntVar:
    """At least (last end - first start) of every device."""
    value = v.model.new_int_var(0, v.horizon, "span")
    for device in range(v.problem.devices):
        keys = v.on_device(device)
        if keys:
            first, last = (v.model.new_int_var(0, v.horizon, "") for _ in range(2))
            v.model.add_min_equality(first, [v.starts[key] for key in keys])
            v.model.add_max_equality(last, [v.end(*key) for key in keys])
            v.model.add(value >= last - first)
    return value


def peak_memory(v: Variables) -> cp_model.IntVar:
    """At least static plus open holds of every device at any time."""
    most = [int(v.problem.static[d]) + sum(h.size for h, _ in v.held_on(d)) for d in range(v.problem.devices)]
    value = v.model.new_int_var(int(v.problem.static.max()), max(most), "peak_memory")
    for device in range(v.problem.devices):
        held = v.held_on(device)
        intervals = [hold_interval(v, *item) for item in held]
        v.model.add_cumulative(intervals, [h.size for h, _ in held], value - int(v.problem.static[device]))
    return value


OBJECTIVES: Mapping[str, Callable[[Variables], cp_model.IntVar]] = {
    "makespan": makespan,
    "span": span,
    "peak_memory": peak_memory,
}
