"""What every picture, page and text says above a schedule."""

from __future__ import annotations

from solver import metrics
from solver.schedule import Schedule
from solver.units import to_json


def caption(schedule: Schedule) -> str:
    """Makespan and bubble, and whether a device holds more than its cap.

    >>> from solver import DeviceOrder, Placement, Workload, simulate
    >>> problem = Workload.uniform(1, 2, memory_cap=1).problem(Placement.linear(1))
    >>> caption(simulate(problem, DeviceOrder.parse(["0F0 0F1 0B0 0B1"])))
    'makespan 6, bubble 0.0%, over the memory cap'
    """
    peaks = zip(metrics.peak_memory(schedule), schedule.problem.memory_cap, strict=True)
    over = ", over the memory cap" if any(cap is not None and peak > cap for peak, cap in peaks) else ""
    return f"makespan {to_json(metrics.makespan(schedule))}, bubble {metrics.bubble_ratio(schedule):.1%}{over}"
