"""The judge of schedules: derives every rule anew from the problem, without graph, simulate, memory or any solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from solver.errors import InvalidSchedule, ProblemError
from solver.ops import Op, OpKind
from solver.problem import Problem
from solver.schedule import Entry, Schedule
from solver.units import common_tick, in_ticks, of_ticks, shown, to_json

IntArray = NDArray[np.int64]

MAX_TIME = 2**60
"""Latest time in ticks: sums of two such stay inside int64."""


@dataclass(frozen=True)
class Violation:
    """One breach: ``rule`` names it, ``text`` shows ops, device and times."""

    rule: str
    text: str
    ops: tuple[Op, ...]
    device: int | None = None

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


def validate(schedule: Schedule) -> None:
    """Raise InvalidSchedule, listing every breach and drawing the grid, unless the schedule obeys every rule."""
    found = violations(schedule)
    if found:
        shown = "\n".join(str(v) for v in found[:20])
        more = f"\n... and {len(found) - 20} more" if len(found) > 20 else ""
        raise InvalidSchedule(f"{len(found)} violations:\n{shown}{more}\n{schedule}", found)


def violations(schedule: Schedule) -> list[Violation]:
    """Every breach of the rules by ``schedule``; an empty list means it is valid."""
    problem, starts = schedule.problem, schedule.starts.tolist()
    entries = []
    for s, stage in enumerate(problem.stages):
        for kind, length in zip(stage.recipe.kinds, stage.times, strict=True):
            for m, start in enumerate(starts[kind][s]):
                if start >= 0:
                    begin = problem.in_time(start)
                    home = problem.placement.route_of(m)[s]
                    entries.append(Entry(Op(s, kind, m), home, begin, begin + length))
    return entry_violations(problem, entries)


def entry_violations(problem: Problem, entries: Sequence[Entry]) -> list[Violation]:
    """Every breach of the rules by a timetable made anywhere, in the problem's own units.

    Checks in turn: no op missing, repeated or unknown; right device, duration and no negative start; one op at a
    time on a device; every dependency with its latency; memory within the caps.
    """
    found = [*_unknown_ops(problem, entries)]
    table = _Timetable.of(problem, [e for e in entries if _knows(problem, e.op)])
    for rule in (_missing_ops, _duplicate_ops, _wrong_places, _overlaps, _broken_dependencies, _memory_over_caps):
        found += rule(table)
    return found


def _knows(problem: Problem, op: Op) -> bool:
    return (
        0 <= op.microbatch < problem.microbatches
        and 0 <= op.stage < len(problem.stages)
        and op.kind in problem.stages[op.stage].recipe.kinds
    )


@dataclass(frozen=True)
class _Timetable:
    """Entries as arrays in ticks of ``unit``; ``slot`` [kind, stage, micro-batch] is an op's first entry, or -1."""

    problem: Problem
    ops: tuple[Op, ...]
    device: IntArray
    start: IntArray
    end: IntArray
    slot: IntArray
    unit: Fraction

    @classmethod
    def of(cls, problem: Problem, entries: Sequence[Entry]) -> _Timetable:
        times = (v for e in entries for v in (e.start, e.end))
        values: list[int | Fraction] = [v if isinstance(v, int) else Fraction(v) for v in times]
        unit = common_tick([problem.time_unit, *values])
        own: list[int | Fraction] = [v for s in problem.stages for v in s.times]
        own += [v for row in problem.latency for v in row]
        if max(abs(in_ticks(v, unit)) for v in own + values) > MAX_TIME:
            raise ProblemError(f"times need a tick of {shown(unit)}, too fine for 64 bits; round them", "schedule")
        ticks = np.array([in_ticks(v, unit) for v in values], dtype=np.int64).reshape(-1, 2)
        slot = np.full(problem.shape, -1, dtype=np.int64)
        for i in reversed(range(len(entries))):
            op = entries[i].op
            slot[op.kind, op.stage, op.microbatch] = i
        device = np.array([min(max(e.device, -1), problem.devices) for e in entries], dtype=np.int64)
        return cls(problem, tuple(e.op for e in entries), device, ticks[:, 0], ticks[:, 1], slot, unit)

    def ticks(self, value: Fraction) -> int:
        return in_ticks(value, self.unit)

    def time(self, ticks: int) -> str:
        return _say(of_ticks(int(ticks), self.unit))

    def when(self, i: int) -> str:
        return f"{self.ops[i]} [{self.time(self.start[i])}, {self.time(self.end[i])})"


def _name(problem: Problem, device: int) -> str:
    return f"device {device}" if 0 <= device < problem.devices else "a device that does not exist"


def _say(value: int | Fraction) -> str:
    return str(to_json(value))


def _unknown_ops(problem: Problem, entries: Sequence[Entry]) -> Iterator[Violation]:
    for entry in entries:
        if not _knows(problem, entry.op):
            text = f"{entry.op} on device {entry.device} at {_say(entry.start)} is no op of this problem"
            yield Violation("unknown op", text, (entry.op,), entry.device)


def _missing_ops(table: _Timetable) -> Iterator[Violation]:
    for stage, costs in enumerate(table.problem.stages):
        for kind in costs.recipe.kinds:
            for m in np.flatnonzero(table.slot[kind, stage] < 0).tolist():
                op, home = Op(stage, kind, m), table.problem.placement.route_of(m)[stage]
                yield Violation("missing op", f"{op} never runs; it belongs on device {home}", (op,), home)


def _duplicate_ops(table: _Timetable) -> Iterator[Violation]:
    for i, op in enumerate(table.ops):
        first = int(table.slot[op.kind, op.stage, op.microbatch])
        if first != i:
            text = (
                f"{table.when(first)} on device {table.device[first]} runs again as "
                f"{table.when(i)} on device {table.device[i]}; every op runs once"
            )
            yield Violation("duplicate op", text, (op,), int(table.device[i]))


def _wrong_places(table: _Timetable) -> Iterator[Violation]:
    problem = table.problem
    for i, op in enumerate(table.ops):
        home = problem.placement.route_of(op.microbatch)[op.stage]
        device, took = int(table.device[i]), int(table.end[i] - table.start[i])
        due = table.ticks(problem.stages[op.stage].time(op.kind) or Fraction(0))
        if device != home:
            text = f"{table.when(i)} runs on {_name(problem, device)}; its route puts stage {op.stage} on device {home}"
            yield Violation("wrong device", text, (op,), device)
        if took != due:
            text = f"{table.when(i)} on device {device} takes {table.time(took)}; it must take {table.time(due)}"
            yield Violation("wrong duration", text, (op,), device)
        if table.start[i] < 0:
            yield Violation("negative start", f"{table.when(i)} on device {device} starts before 0", (op,), device)


def _overlaps(table: _Timetable) -> Iterator[Violation]:
    """Against the op that ends last among those that started before: on a clean device that is the one before."""
    for device in range(table.problem.devices):
        here = np.flatnonzero(table.device == device)
        here = here[np.lexsort((table.end[here], table.start[here]))]
        latest = np.maximum.accumulate(table.end[here])
        for j in (np.flatnonzero(table.start[here][1:] < latest[:-1]) + 1).tolist():
            other = here[int(np.argmax(table.end[here][:j]))]
            text = f"{table.when(other)} and {table.when(here[j])} overlap on device {device}; it runs one op at a time"
            yield Violation("overlap", text, (table.ops[other], table.ops[here[j]]), device)


def _dependencies(problem: Problem) -> Iterator[tuple[OpKind, int, OpKind, int]]:
    """(kind, stage) before (kind, stage), as part 2 of the rules words it."""
    last = len(problem.stages) - 1
    for s, stage in enumerate(problem.stages):
        if s < last:
            above = problem.stages[s + 1].recipe
            yield OpKind.F, s, OpKind.F, s + 1
            yield above.gradient, s + 1, stage.recipe.gradient, s
        yield from ((a, s, b, s) for a, b in stage.recipe.arcs)


def _broken_dependencies(table: _Timetable) -> Iterator[Violation]:
    problem = table.problem
    latency = np.array([[table.ticks(v) for v in row] for row in problem.latency], dtype=np.int64)
    homes = np.array([problem.placement.route_of(m) for m in range(problem.microbatches)], dtype=np.int64)
    for kind, stage, kind2, stage2 in _dependencies(problem):
        before, after = table.slot[kind, stage], table.slot[kind2, stage2]
        lag = latency[homes[:, stage], homes[:, stage2]]
        both = np.flatnonzero((before >= 0) & (after >= 0))
        late = table.end[before[both]] + lag[both] > table.start[after[both]]
        for m in both[late].tolist():
            i, j = int(before[m]), int(after[m])
            arrives = table.time(table.end[i] + lag[m])
            text = (
                f"{table.when(j)} on device {table.device[j]} starts before {arrives}, "
                f"when the result of {table.when(i)} on device {table.device[i]} is there"
            )
            yield Violation("broken dependency", text, (table.ops[i], table.ops[j]), int(table.device[j]))


def _memory_over_caps(table: _Timetable) -> Iterator[Violation]:
    problem = table.problem
    for device, cap in enumerate(problem.memory_cap):
        if cap is not None:
            yield from _memory_over_cap(table, device, cap)


def _memory_over_cap(table: _Timetable, device: int, cap: Fraction) -> Iterator[Violation]:
    """One violation, at the device's worst moment; sizes are exact, so they are summed as ticks of their own."""
    problem = table.problem
    static = sum(
        (s.static for i, s in enumerate(problem.stages) if any(r[i] == device for r in problem.placement.routes)),
        Fraction(0),
    )
    opened, closed, sizes, owners = _held(table, device)
    unit = common_tick([cap, static, *set(sizes)])
    ticks = np.array([in_ticks(s, unit) for s in sizes], dtype=np.int64)
    times, changes = np.concatenate([closed, opened]), np.concatenate([-ticks, ticks])
    order = np.argsort(times, kind="stable")
    level = np.cumsum(changes[order])
    worst = int(np.argmax(level)) if len(level) else 0
    most = static + (max(int(level[worst]), 0) if len(level) else 0) * unit
    if most <= cap:
        return
    at = int(times[order][worst]) if len(level) else 0
    holders = tuple(op for op, a, b in zip(owners, opened, closed, strict=True) if a <= at < b)
    names = ", ".join(str(op) for op in holders[:12]) + (", ..." if len(holders) > 12 else "")
    text = (
        f"device {device} holds {_say(most)} at time {table.time(at)}, over its cap of {_say(cap)}: "
        f"static {_say(static)} and what {names or 'no op'} opened"
    )
    yield Violation("memory over cap", text, holders, device)


def _held(table: _Timetable, device: int) -> tuple[IntArray, IntArray, list[Fraction], list[Op]]:
    """Opening and closing times, sizes and opening ops of every hold on ``device`` whose ops all run."""
    opened, closed, sizes, owners = [], [], [], []
    for s, stage in enumerate(table.problem.stages):
        homes = [table.problem.placement.route_of(m)[s] == device for m in range(table.problem.microbatches)]
        for hold, size in zip(stage.recipe.holds, stage.sizes, strict=True):
            first, last = table.slot[hold.opens, s], table.slot[hold.closes, s]
            for m in np.flatnonzero(np.array(homes) & (first >= 0) & (last >= 0)).tolist():
                opened.append(int(table.start[first[m]]))
                closed.append(int(table.end[last[m]]))
                sizes.append(size)
                owners.append(table.ops[first[m]])
    return np.array(opened, dtype=np.int64), np.array(closed, dtype=np.int64), sizes, owners
