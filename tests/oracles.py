"""Brute force: exact optima of tiny problems, with no CP-SAT, no bounds and no longest-path module.

Two independent searches, so that one can be held against the other:

``oracle`` tries every order. It appends ops one by one, in increasing (start, end, rank, micro-batch), each at its
earliest start: so every order that does not deadlock comes up exactly once, as its semi-active schedule. For makespan
and memory that is enough while durations are positive: moving ops earlier in a fixed order never hurts. Span may want
ops delayed, so an order's least span is computed exactly (``_Paths``).

``exhaustive`` tries every whole start time up to a horizon and reads each metric off its definition. It is the
definition itself, and for very small problems only. ``oracle`` hands over to it where an op of no duration makes
memory depend on times and not only on orders.

Neither assumes that equal micro-batches may be sorted, nor any other strengthening. Both prune only by what is certain:
a device still has to do the ops it has not done, and memory in the past does not change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from solver.ops import Op, OpKind
from solver.problem import Problem

METRICS = ("makespan", "span", "peak_memory")


def oracle(problem: Problem, minimize: str = "makespan", subject_to: Mapping[str, int] | None = None) -> int | None:
    """The least value, in ticks, of one metric, others bounded in ticks; None if no schedule keeps the bounds."""
    bounds = dict(subject_to or {})
    if memory_depends_on_times(problem, minimize, bounds):
        return exhaustive(problem, minimize, bounds)
    instance = _Instance(problem, bounds)
    return _OrderSearch(instance, minimize, bounds).run() if min(instance.room) >= 0 else None


def lexicographic(
    problem: Problem, minimize: tuple[str, ...], subject_to: Mapping[str, int] | None = None
) -> list[int]:
    """The best value of each metric in turn, the earlier ones held at their best."""
    bounds, values = dict(subject_to or {}), []
    for metric in minimize:
        value = oracle(problem, metric, bounds)
        if value is None:
            return []
        values.append(value)
        bounds[metric] = min(value, bounds.get(metric, value))
    return values


def memory_depends_on_times(problem: Problem, minimize: str, bounds: Mapping[str, int]) -> bool:
    """Rule 9 needs positive durations; without caps or a question about memory it does not matter."""
    zero = bool((problem.duration[problem.exists] == 0).any())
    asked = minimize == "peak_memory" or "peak_memory" in bounds or any(r is not None for r in problem.room)
    return zero and asked and bool(problem.holds)


def exhaustive(problem: Problem, minimize: str = "makespan", subject_to: Mapping[str, int] | None = None) -> int | None:
    """As ``oracle``, over every whole start time up to all work and all latencies one after the other."""
    bounds = dict(subject_to or {})
    instance = _Instance(problem, bounds)
    return _TimeSearch(instance, minimize, bounds).run() if min(instance.room) >= 0 else None


class _Instance:
    """The problem as plain lists, dependencies derived here from the rules."""

    def __init__(self, problem: Problem, bounds: Mapping[str, int]) -> None:
        self.problem = problem
        self.ops = self._topological(problem)
        index = {op: i for i, op in enumerate(self.ops)}
        self.duration = [int(problem.duration[op.kind, op.stage]) for op in self.ops]
        self.device = [problem.placement.route_of(op.microbatch)[op.stage] for op in self.ops]
        self.before: list[list[tuple[int, int]]] = [[] for _ in self.ops]
        for a, b in self._dependencies(problem):
            i, j = index[a], index[b]
            lag = self.duration[i] + int(problem.latency_ticks[self.device[i], self.device[j]])
            self.before[j].append((i, lag))
        self.holds = [
            (index[Op(s, opens, m)], index[Op(s, closes, m)], size)
            for s, opens, closes, size in problem.holds
            for m in range(problem.microbatches)
        ]
        self.static = problem.static.tolist()
        self.room = self._room(problem, bounds)
        self.work = [0] * problem.devices
        for i, d in enumerate(self.device):
            self.work[d] += self.duration[i]
        self.horizon = sum(self.duration) + sum(lag - self.duration[i] for arcs in self.before for i, lag in arcs)

    @staticmethod
    def _room(problem: Problem, bounds: Mapping[str, int]) -> list[float]:
        limit = bounds.get("peak_memory", math.inf)
        own = [math.inf if room is None else room for room in problem.room]
        return [min(r, limit - static) for r, static in zip(own, problem.static.tolist(), strict=True)]

    @staticmethod
    def _topological(problem: Problem) -> list[Op]:
        """Forwards down the stages, then backwards up, then weight gradients; per stage, then per micro-batch."""
        stages = range(len(problem.stages))
        nodes = [(OpKind.F, s) for s in stages]
        nodes += [(k, s) for s in reversed(stages) for k in (OpKind.B, OpKind.I, OpKind.W) if problem.exists[k, s]]
        return [Op(s, k, m) for k, s in nodes for m in range(problem.microbatches)]

    @staticmethod
    def _dependencies(problem: Problem) -> Iterator[tuple[Op, Op]]:
        split = [bool(problem.exists[OpKind.W, s]) for s in range(len(problem.stages))]
        grad = [OpKind.I if halves else OpKind.B for halves in split]
        for m in range(problem.microbatches):
            for s, halves in enumerate(split):
                yield Op(s, OpKind.F, m), Op(s, grad[s], m)
                if halves:
                    yield Op(s, OpKind.I, m), Op(s, OpKind.W, m)
                if s + 1 < len(split):
                    yield Op(s, OpKind.F, m), Op(s + 1, OpKind.F, m)
                    yield Op(s + 1, grad[s + 1], m), Op(s, grad[s], m)

    def floor(self, metric: str) -> int:
        """What no schedule goes below: a device's work, or one micro-batch on one stage (durations positive)."""
        if metric != "peak_memory":
            return max(self.work)
        problem, least = self.problem, [0]
        for s in range(len(problem.stages)):
            size = sum(hold.size for hold in problem.holds if hold.stage == s)
            least += [self.static[problem.placement.route_of(m)[s]] + size for m in range(problem.microbatches)]
        return max(least)

    def level(self, device: int, time: int, start: list[int]) -> int:
        """Memory held on ``device`` at ``time`` by what is placed so far (start -1: not yet)."""
        return sum(
            size
            for opens, closes, size in self.holds
            if self.device[opens] == device
            and 0 <= start[opens] <= time
            and (start[closes] < 0 or time < start[closes] + self.duration[closes])
        )

    def peak(self, start: list[int]) -> int:
        """Largest memory on any device: it can only rise when an op starts."""
        levels = [self.static[d] + self.level(d, start[i], start) for i, d in enumerate(self.device)]
        return max([*levels, *self.static])


@dataclass
class _Paths:
    """What an order forces: ``first`` and ``last`` are each device's earliest first start and last end, and
    ``between[d][e]`` the longest path from the first start on d to the last end on e (-inf where there is none)."""

    first: list[float]
    last: list[float]
    between: list[list[float]]

    def least_makespan(self, span: float) -> float | None:
        """With no device's span over ``span``; None if that cannot be.

        With x[d] the first start on d, span asks x[e] + span >= x[d] + between[d][e]: lower bounds on x that settle
        within P rounds or grow for ever (longest paths with no or with a positive circle).
        """
        devices = range(len(self.first))
        x = [max(self.first[d], self.last[d] - span) for d in devices]
        for _ in range(len(x) + 1):
            raised = [max(x[e], *(x[d] + self.between[d][e] - span for d in devices)) for e in devices]
            if raised == x:
                return max(x[d] + self.between[d][e] for d in devices for e in devices)
            x = raised
        return None

    def least_span(self, makespan: float) -> float | None:
        """The least whole span whose least makespan is within ``makespan``; None if there is none."""

        def enough(span: int) -> bool:
            least = self.least_makespan(span)
            return least is not None and least <= makespan

        low, high = int(max(self.between[d][d] for d in range(len(self.first)))), int(max(self.last))
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        return low if enough(low) else None


@dataclass
class _OrderSearch:
    instance: _Instance
    minimize: str
    bounds: Mapping[str, int]
    best: float = math.inf
    floor: int = 0
    start: list[int] = field(default_factory=list)
    reach: list[list[float]] = field(default_factory=list)

    def run(self) -> int | None:
        instance = self.instance
        count, self.floor = len(instance.ops), instance.floor(self.minimize)
        self.start, self.reach = [-1] * count, [[]] * count
        devices = len(instance.work)
        self._extend([0] * devices, [-1] * devices, [-1] * devices, list(instance.work), (-1, -1, -1))
        return None if self.best == math.inf else int(self.best)

    def _extend(
        self, free: list[int], first: list[int], last: list[int], left: list[int], after: tuple[int, int, int]
    ) -> None:
        """Append every op that may come next; ``after`` is the key of the op appended last."""
        ops = self.instance
        if self.best <= self.floor:
            return
        if min(self.start) >= 0:
            self.best = min(self.best, self._value(first, last))
            return
        for i in range(len(ops.ops)):
            if self.start[i] >= 0 or any(self.start[j] < 0 for j, _ in ops.before[i]):
                continue
            d = ops.device[i]
            begin = max([free[d], *(self.start[j] + lag for j, lag in ops.before[i])])
            key = (begin, begin + ops.duration[i], i)
            if key <= after or self._hopeless(begin + left[d]):
                continue
            self._append(i, d, begin, last[d])
            if self._memory_fits(d, begin):
                now = [*free[:d], key[1], *free[d + 1 :]], [*left[:d], left[d] - ops.duration[i], *left[d + 1 :]]
                opening = first if first[d] >= 0 else [*first[:d], i, *first[d + 1 :]]
                self._extend(now[0], opening, [*last[:d], i, *last[d + 1 :]], now[1], key)
            self.start[i] = -1

    def _append(self, i: int, d: int, begin: int, previous: int) -> None:
        """Place op i, and note the longest path to it from the first start of each device."""
        ops = self.instance
        self.start[i] = begin
        behind = [(previous, ops.duration[previous])] if previous >= 0 else []
        reach = [-math.inf] * len(ops.work)
        for j, lag in behind + ops.before[i]:
            reach = [max(r, there + lag) for r, there in zip(reach, self.reach[j], strict=True)]
        if previous < 0:
            reach[d] = max(reach[d], 0)
        self.reach[i] = reach

    def _hopeless(self, end: int) -> bool:
        """``end``: when a device that starts now and never waits again is done."""
        too_late = end > self.bounds.get("makespan", math.inf)
        return too_late or (self.minimize == "makespan" and end >= self.best)

    def _memory_fits(self, device: int, now: int) -> bool:
        """An op that starts when all before it have ended sees what they left (durations are positive here)."""
        held = self.instance.level(device, now, self.start)
        over = held > self.instance.room[device]
        return not over and not (self.minimize == "peak_memory" and self.instance.static[device] + held >= self.best)

    def _value(self, first: list[int], last: list[int]) -> float:
        span_bound, bound = self.bounds.get("span", math.inf), self.bounds.get("makespan", math.inf)
        paths = self._paths(first, last)
        makespan = max(paths.last) if span_bound == math.inf else paths.least_makespan(span_bound)
        if makespan is None or makespan > bound:
            return math.inf
        if self.minimize == "makespan":
            return makespan
        if self.minimize == "peak_memory":
            return self.instance.peak(self.start)
        span = paths.least_span(bound)
        return span if span is not None and span <= span_bound else math.inf

    def _paths(self, first: list[int], last: list[int]) -> _Paths:
        used = [d for d, i in enumerate(first) if i >= 0]
        length = self.instance.duration
        return _Paths(
            first=[self.start[first[d]] for d in used],
            last=[self.start[last[d]] + length[last[d]] for d in used],
            between=[[self.reach[last[e]][d] + length[last[e]] for e in used] for d in used],
        )


@dataclass
class _TimeSearch:
    instance: _Instance
    minimize: str
    bounds: Mapping[str, int]
    best: float = math.inf
    start: list[int] = field(default_factory=list)

    def run(self) -> int | None:
        self.start = [-1] * len(self.instance.ops)
        self._place(0)
        return None if self.best == math.inf else int(self.best)

    def _place(self, i: int) -> None:
        """Give op i (in topological order) every start that its dependencies and its device allow."""
        ops = self.instance
        if i == len(ops.ops):
            self._judge()
            return
        earliest = max((self.start[j] + lag for j, lag in ops.before[i]), default=0)
        for begin in range(earliest, int(self._limit()) - ops.duration[i] + 1):
            if begin + ops.duration[i] <= self._limit() and not self._clash(i, begin):
                self.start[i] = begin
                self._place(i + 1)
                self.start[i] = -1

    def _limit(self) -> float:
        """The latest end worth trying."""
        better = self.best - 1 if self.minimize == "makespan" else math.inf
        return min(self.instance.horizon, self.bounds.get("makespan", math.inf), better)

    def _clash(self, i: int, begin: int) -> bool:
        """Whether op i would run while another does; an op of no duration may not lie inside another either."""
        ops, end = self.instance, begin + self.instance.duration[i]
        return any(
            self.start[j] >= 0
            and ops.device[j] == ops.device[i]
            and begin < self.start[j] + ops.duration[j]
            and self.start[j] < end
            for j in range(i)
        )

    def _judge(self) -> None:
        ops = self.instance
        if any(ops.level(d, self.start[i], self.start) > ops.room[d] for i, d in enumerate(ops.device)):
            return
        values = {"makespan": self._makespan(), "span": self._span(), "peak_memory": ops.peak(self.start)}
        if all(values[name] <= bound for name, bound in self.bounds.items()):
            self.best = min(self.best, values[self.minimize])

    def _makespan(self) -> int:
        return max(s + d for s, d in zip(self.start, self.instance.duration, strict=True))

    def _span(self) -> int:
        ops = self.instance
        of_device = [[i for i, d in enumerate(ops.device) if d == device] for device in range(len(ops.work))]
        return max(
            max(self.start[i] + ops.duration[i] for i in row) - min(self.start[i] for i in row)
            for row in of_device
            if row
        )
