"""Zero Bubble's search for an order under a memory cap: ZB-1p and ZB-2p."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from baselines.registry import Baseline
from baselines.steps import forward, input_grad, require, weight_grad
from baselines.zero_bubble import require_split_line
from solver import metrics
from solver.ops import SPLIT, Op, OpKind
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder
from solver.simulate import simulate
from solver.units import Number, exact

F, I, W = OpKind.F, OpKind.I, OpKind.W


def zb_heuristic(problem: Problem, *, limit: Number | None = None) -> DeviceOrder:
    """Greedy search under a memory cap: warm-up as memory allows, weight gradients into gaps, the best of 8 runs.

    Before its first I a device runs the forwards that memory holds and that the wait for that I leaves time for, at
    least one more than the device below it. Then each round is at most one F and one I a device. A W runs where a
    gap has room for it, where memory is full, and in a smaller gap that would raise the largest idle time so far.
    Three switches are tried in all combinations: warm-up may delay the first I; a forward that would delay the
    arriving I waits a round; a W fills every gap. The order of least span wins, then of least makespan.

    ``limit`` caps each device at ``limit`` x P activations (ZB-1p: 1, ZB-2p: 2) on top of the problem's own cap.
    By default it is that cap alone, or P activations on a device without one.

    Closed form: none for the makespan, which is no less than (P-1)F + M(F+I+W); the span comes near M(F+I+W) from
    2P activations up; peak at most the cap.

    Reference: Qi et al. 2023, Zero Bubble Pipeline Parallelism, 2401.10241, section 3.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=3, microbatches=6, input_grad=1, weight_grad=1)
    >>> print(ZB_HEURISTIC.schedule(model, limit=2))
    0 | F0F1F2F3F4I0F5I1W0I2W1I3W2I4W3I5W4W5....
    1 | ..F0F1F2I0F3I1F4I2F5I3W0I4W1I5W2W3W4W5..
    2 | ....F0I0F1I1F2I2F3I3F4I4F5I5W0W1W2W3W4W5
    """
    require_split_line(problem, "the Zero Bubble heuristic")
    runs = (_Search(problem, limit, *switches).order() for switches in product((False, True), repeat=3))
    return min(runs, key=lambda order: _cost(problem, order))


def _cost(problem: Problem, order: DeviceOrder) -> tuple[int, int]:
    schedule = simulate(problem, order)
    return metrics.span_ticks(schedule), metrics.makespan_ticks(schedule)


@dataclass
class _Device:
    """What one device has done so far; a stage that runs both halves as one has its B in the place of I, and no W."""

    problem: Problem
    stage: int
    limit: Number | None
    ops: list[Op] = field(default_factory=list)
    done: dict[OpKind, int] = field(default_factory=lambda: {F: 0, I: 0, W: 0})
    clock: int = 0
    idle: int = 0
    held: int = 0

    def __post_init__(self) -> None:
        gradient = self.problem.stages[self.stage].recipe.gradient
        kinds = {F: F, I: gradient, W: W}
        holds = [hold for hold in self.problem.holds if hold.stage == self.stage]
        self.time = {role: int(self.problem.duration[kind, self.stage]) for role, kind in kinds.items()}
        self.takes = {role: sum(h.size for h in holds if h.opens == kind) for role, kind in kinds.items()}
        self.frees = {role: sum(h.size for h in holds if h.closes == kind) for role, kind in kinds.items()}
        # an op of no duration gives back before it takes
        given = {role: 0 if self.time[role] else self.frees[role] for role in kinds}
        self.needs = {role: max(0, self.takes[role] - given[role]) for role in kinds}
        self.splits = gradient == I
        self.room = self._room()
        require(self.takes[F] + self.needs[I] <= self.room, "the limit must hold one micro-batch on every device")

    def _room(self) -> int:
        """Memory ticks for holds: the problem's own cap, and ``limit`` where given or where there is no cap."""
        own, usual = self.problem.room[self.stage], self.problem.devices * self.takes[F]
        if self.limit is None:
            return max(usual, self.takes[F] + self.needs[I]) if own is None else own
        limit = int(exact(self.limit, "limit") * usual)
        return limit if own is None else min(limit, own)

    @property
    def waiting(self) -> int:
        """Weight gradients that could run now."""
        return self.done[I] - self.done[W] if self.splits else 0

    def weights_before(self, role: OpKind) -> int:
        """How many weight gradients must run before memory has room for ``role``."""
        over = self.held + self.needs[role] - self.room
        return max(0, -(-over // self.frees[W])) if self.frees[W] else 0

    def admits_forward(self) -> bool:
        """Whether one more forward, and its I after it, fits once the waiting weight gradients are done."""
        least = self.held - self.waiting * self.frees[W]
        more = self.done[F] < self.problem.microbatches
        return more and least + self.takes[F] + self.needs[I] <= self.room

    def run(self, role: OpKind, arrival: int = 0) -> None:
        """Run the next op of ``role``, at ``arrival`` or as soon as the device is free."""
        start = max(self.clock, arrival)
        self.idle += start - self.clock if self.ops else 0
        self.clock = start + self.time[role]
        self.held += self.takes[role] - self.frees[role]
        m = self.done[role]
        self.done[role] += 1
        if role == W:
            self.ops += weight_grad(self.problem, self.stage, m)
        else:
            self.ops.append(forward(self.stage, m) if role == F else input_grad(self.problem, self.stage, m))


@dataclass
class _Search:
    """One run of the search under one setting of its switches."""

    problem: Problem
    limit: Number | None
    delay_first: bool
    backward_first: bool
    fill_every_gap: bool

    def __post_init__(self) -> None:
        self.line = [_Device(self.problem, d, self.limit) for d in range(self.problem.devices)]
        ends = [[0] * self.problem.microbatches for _ in self.line]
        self.ends = {F: ends, I: [row[:] for row in ends]}

    def order(self) -> DeviceOrder:
        """The order this run finds."""
        for device in self.line:
            self._run(device, F)
        for device, extra in zip(self.line, self._warmup(), strict=True):
            for _ in range(extra):
                self._run(device, F)
        for device in reversed(self.line):
            self._run(device, I)
        for _ in range(1, self.problem.microbatches):
            self._round()
        for device in self.line:
            while device.waiting:
                device.run(W)
        return DeviceOrder.of(device.ops for device in self.line)

    def _lag(self, source: _Device, target: _Device) -> int:
        return int(self.problem.latency_ticks[source.stage, target.stage])

    def _arrival(self, device: _Device, role: OpKind) -> int:
        """When the next op of ``role`` has what it waits for from the neighbour."""
        source = device.stage + (-1 if role == F else 1)
        if not 0 <= source < len(self.line):
            return 0
        return self.ends[role][source][device.done[role]] + self._lag(self.line[source], device)

    def _warmup(self) -> list[int]:
        """Forwards each device adds to its first one before its first I, from the last device up."""
        extra = [0] * len(self.line)
        gradient = self.line[-1].clock + self.line[-1].time[I]
        for device in reversed(self.line[:-1]):
            arrival = gradient + self._lag(self.line[device.stage + 1], device)
            extra[device.stage], clock = self._fill(device, arrival)
            gradient = max(clock, arrival) + device.time[I]
        for d in range(1, len(self.line)):
            extra[d] = min(extra[d], max(0, extra[d - 1] - 1))
        return extra

    def _fill(self, device: _Device, until: int) -> tuple[int, int]:
        """How many forwards fit memory and the time until ``until``, and when they end."""
        count, clock, step = 0, device.clock, device.time[F]
        room = device.room - device.held - device.needs[I]
        while device.done[F] + count < self.problem.microbatches and (count + 1) * device.takes[F] <= room:
            if (clock >= until) if self.delay_first else (clock + step > until):
                break
            count, clock = count + 1, clock + step
        return count, clock

    def _round(self) -> None:
        """At most one forward a device, down the line, then one I a device, up the line."""
        below = True
        wanted = []
        for device in reversed(self.line):
            must = device.done[F] == device.done[I]
            below = must or (below and self._wants_forward(device))
            wanted.append(below)
        for device, wants in zip(self.line, reversed(wanted), strict=True):
            if wants and (device.stage == 0 or self.line[device.stage - 1].done[F] > device.done[F]):
                self._run(device, F)
        for device in reversed(self.line):
            self._run(device, I)

    def _wants_forward(self, device: _Device) -> bool:
        """Whether the device takes a forward in this round, rather than wait for its I."""
        if not device.admits_forward():
            return False
        if not self.backward_first or device is self.line[-1]:
            return True
        below = self.line[device.stage + 1]
        if device.done[F] < below.done[F] + 2:
            return True
        arrival = below.clock + below.time[F] + below.time[I] + self._lag(below, device)
        work = device.weights_before(F) * device.time[W] + device.time[F]
        if device.clock >= arrival:
            return False
        return device.clock + work <= arrival or arrival - device.clock > self._most_idle() - device.idle

    def _most_idle(self) -> int:
        return max(device.idle for device in self.line)

    def _run(self, device: _Device, role: OpKind) -> None:
        """Run ``role``, with weight gradients before it where memory or the gap calls for them."""
        arrival = self._arrival(device, role)
        for _ in range(min(device.waiting, device.weights_before(role))):
            device.run(W)
        while device.waiting and device.clock + device.time[W] <= arrival:
            device.run(W)
        gap = arrival - device.clock
        if device.waiting and gap > 0 and (self.fill_every_gap or gap > self._most_idle() - device.idle):
            device.run(W)
        micro = device.done[role]
        device.run(role, arrival)
        self.ends[role][device.stage][micro] = device.clock


ZB_HEURISTIC = Baseline(
    "zb-heuristic", zb_heuristic, lambda devices, **_: Placement.linear(devices), SPLIT, {"limit": None}
)
