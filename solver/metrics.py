"""What a schedule costs, in the problem's own units; exact where the value is a time or a size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from solver import memory
from solver.graph import arcs
from solver.ops import Op
from solver.problem import IntArray, Problem
from solver.schedule import Schedule


def makespan(schedule: Schedule) -> int | Fraction:
    """Time from 0 to the end of the last op anywhere."""
    return schedule.problem.in_time(makespan_ticks(schedule))


def span(schedule: Schedule) -> int | Fraction:
    """Largest over devices of (last end - first start); Zero Bubble's metric (2401.10241, section 5.1)."""
    return schedule.problem.in_time(span_ticks(schedule))


def peak_memory(schedule: Schedule) -> list[int | Fraction]:
    """Largest memory in use on each device, static included.

    While durations are positive it depends only on each device's op order, as every hold opens and closes there.
    """
    return [schedule.problem.in_memory(p) for p in memory.peaks(schedule.problem, schedule.starts)]


def busy(schedule: Schedule) -> list[int | Fraction]:
    """Time each device spends running ops."""
    return [schedule.problem.in_time(t) for t in busy_ticks(schedule.problem)]


def idle(schedule: Schedule) -> list[int | Fraction]:
    """Time each device waits between 0 and the makespan."""
    total = makespan_ticks(schedule)
    return [schedule.problem.in_time(total - t) for t in busy_ticks(schedule.problem)]


def bubble_ratio(schedule: Schedule) -> float:
    """Idle / total = 1 - busy / (P x makespan), 0 if the makespan is 0 (GPipe, Chimera, Zero Bubble)."""
    return _bubble(schedule, makespan_ticks(schedule))


def bubble_ratio_span(schedule: Schedule) -> float:
    """Bubble of the span instead of the makespan: what the Zero Bubble papers publish."""
    return _bubble(schedule, span_ticks(schedule))


def bubble_over_work(schedule: Schedule) -> float:
    """Idle / busy, Megatron's denominator (2104.04473, section 2.2.1); 0 if there is no work."""
    work = int(busy_ticks(schedule.problem).sum())
    return (schedule.problem.devices * makespan_ticks(schedule) - work) / work if work else 0.0


def _bubble(schedule: Schedule, total: int) -> float:
    work = int(busy_ticks(schedule.problem).sum())
    return float(1 - Fraction(work, schedule.problem.devices * total)) if total else 0.0


def makespan_ticks(schedule: Schedule) -> int:
    """``makespan`` in ticks."""
    return int(schedule.ends.max())


def span_ticks(schedule: Schedule) -> int:
    """``span`` in ticks."""
    device, present = schedule.problem.op_device, schedule.starts >= 0
    spans = [0]
    for d in range(schedule.problem.devices):
        here = present & (device == d)
        if here.any():
            spans.append(int(schedule.ends[here].max() - schedule.starts[here].min()))
    return max(spans)


def peak_memory_ticks(schedule: Schedule) -> int:
    """The largest device's ``peak_memory`` in ticks: the objective ``peak_memory``."""
    return int(memory.peaks(schedule.problem, schedule.starts).max())


def busy_ticks(problem: Problem) -> IntArray:
    """Ticks of work per device: the same for every schedule."""
    work = np.zeros(problem.devices, dtype=np.int64)
    per_stage = problem.duration.sum(axis=0)
    for r in range(problem.routes):
        np.add.at(work, problem.device[r], per_stage * int((problem.route == r).sum()))
    return work


@dataclass(frozen=True)
class Metric:
    """Something ``solve`` can minimise or bound: its value in ticks, and how to say ticks in the user's unit."""

    ticks: Callable[[Schedule], int]
    in_units: Callable[[Problem, int], int | Fraction]
    unit: Callable[[Problem], Fraction]


METRICS: Mapping[str, Metric] = {
    "makespan": Metric(makespan_ticks, Problem.in_time, lambda problem: problem.time_unit),
    "span": Metric(span_ticks, Problem.in_time, lambda problem: problem.time_unit),
    "peak_memory": Metric(peak_memory_ticks, Problem.in_memory, lambda problem: problem.memory_unit),
}
"""The names that ``minimize`` and ``subject_to`` take."""


def critical_path(schedule: Schedule) -> list[Op]:
    """A chain of ops, each starting just when the one before lets it, from time 0 to the makespan.

    Why the makespan is what it is: nothing gets shorter until an op of this chain does. A chain that ends before
    time 0 is reached met an op that starts later than it had to.
    """
    order = schedule.order().ops
    previous = {op: before for row in order for before, op in pairwise(row)}
    op = max((row[-1] for row in order if row), key=lambda o: _end(schedule, o))
    path = [op]
    while (before := _blocker(schedule, op, previous.get(op))) is not None:
        path.append(before)
        op = before
    return path[::-1]


def _start(schedule: Schedule, op: Op) -> int:
    return int(schedule.starts[op.kind, op.stage, op.microbatch])


def _end(schedule: Schedule, op: Op) -> int:
    return int(schedule.ends[op.kind, op.stage, op.microbatch])


def _blocker(schedule: Schedule, op: Op, previous: Op | None) -> Op | None:
    """The op that ``op`` starts right after: one it depends on, else the one before it on its device."""
    start = _start(schedule, op)
    for (kind, stage), after, lag in arcs(schedule.problem):
        before = Op(stage, kind, op.microbatch)
        if after == (op.kind, op.stage) and _start(schedule, before) + lag[op.microbatch % len(lag)] == start:
            return before
    return previous if previous is not None and _end(schedule, previous) == start else None
