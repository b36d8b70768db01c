"""List scheduling for any problem: orders in which every device, whenever free, takes the best op at hand."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from solver.admission import Admission
from solver.graph import arcs, rank
from solver.ops import Op, OpKind
from solver.problem import Problem
from solver.schedule import DeviceOrder


@dataclass(frozen=True)
class Policy:
    """The choices list scheduling leaves open.

    ``admit``: how many micro-batches each stage may have between forward and gradient (None: as memory admits).
    ``patience``: a weight gradient starts if the next op arrives no earlier than this share of its duration.
    ``gradient_first``: gradients go before forwards; else forwards while they are admitted.
    ``weight_first``: a pending weight gradient goes before a forward.
    """

    admit: tuple[int, ...] | None = None
    patience: float = 1.0
    gradient_first: bool = True
    weight_first: bool = False


def policies(problem: Problem, rooms: Sequence[int | None] | None = None) -> Iterator[Policy]:
    """The policies worth trying within ``rooms`` (default: the problem's), the most often best first."""
    has_weights = bool(problem.exists[OpKind.W].any())
    weights = product((False, True), (True, False)) if has_weights else [(False, True), (False, False)]
    for weight_first, gradient_first in weights:
        for admit, patience in product(
            _admissions(problem, problem.room if rooms is None else rooms), (1.0, 0.5, 0.0) if has_weights else (1.0,)
        ):
            yield Policy(admit, patience, gradient_first, weight_first)


SHARES = (
    (1, 0.5), (0.9, 0.99), (0.85, 0.99), (0.8, 1.25), (0.8, 1.5), (0.85, 1.25),
    (1.1, 0.5), (1, 0.25), (1, 0.75), (1, 0), (1.1, 0),
)  # fmt: skip
"""Multiples of the fair share and what is added before rounding down; found by trial on wave and linear placements."""


def _admissions(problem: Problem, rooms: Sequence[int | None]) -> list[tuple[int, ...] | None]:
    """As memory admits; 1F1B's, twice that, that less one in the second half; memory shared out in that proportion."""
    stages = len(problem.stages)
    found: list[tuple[int, ...] | None] = [None, *(tuple(n * (stages - s) for s in range(stages)) for n in (1, 2))]
    found.append(tuple(max(1, 2 * (stages - s) - (2 * s >= stages)) for s in range(stages)))
    share = _fair_share(problem, rooms)
    for factor, extra in SHARES if share else ():
        found.append(tuple(max(1, int(share * factor * (stages - s) + extra)) for s in range(stages)))
    return list(dict.fromkeys(found))


def _fair_share(problem: Problem, rooms: Sequence[int | None]) -> float:
    """The multiple of 1F1B's micro-batches in flight, S - s at stage s, that fits every device; 0 without caps."""
    shares = []
    for device, room in enumerate(rooms):
        mine = [h for h in problem.holds if h.opens == OpKind.F and device in problem.device[:, h.stage]]
        whole = sum(h.size * (len(problem.stages) - h.stage) for h in mine)
        if room is not None and whole:
            shares.append(room / whole)
    return min(shares, default=0)


def one_at_a_time(problem: Problem) -> DeviceOrder:
    """Micro-batches one after another, each W right after its I: needs the least memory of all orders that end."""
    rows: list[list[Op]] = [[] for _ in range(problem.devices)]
    stages = range(len(problem.stages))
    chain = [(OpKind.F, s) for s in stages]
    chain += [(kind, s) for s in reversed(stages) for kind in problem.stages[s].recipe.kinds[1:]]
    for m in range(problem.microbatches):
        route = problem.placement.route_of(m)
        for kind, stage in chain:
            rows[route[stage]].append(Op(stage, kind, m))
    return DeviceOrder.of(rows)


def list_order(problem: Problem, policy: Policy, rooms: Sequence[int | None] | None = None) -> DeviceOrder:
    """The order that ``policy`` leads to, within ``rooms`` (default: the problem's); O(ops x streams of a device).

    Never deadlocks: an op starts only if afterwards the micro-batches begun could still finish one after another.
    """
    return _Dispatcher(problem, policy, problem.room if rooms is None else rooms).run()


@dataclass(eq=False)
class _Stream:
    """The ops of one kind, stage and route: they run in order of micro-batch, so only its next op ever counts."""

    kind: OpKind
    stage: int
    device: int
    duration: int
    depth: int
    micros: Sequence[int]
    after: list[tuple[_Stream, int]] = field(default_factory=list)
    waits: int = 0
    next: int = 0
    missing: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)

    def ready_at(self) -> int | None:
        """When its next op can start; None if that is not known, or there is none."""
        return self.ready[self.next] if self.next < len(self.micros) and not self.missing[self.next] else None


def _streams(problem: Problem) -> list[_Stream]:
    """Every stream, linked to those that wait for it; ``depth`` counts the ops before it in its micro-batch."""
    depth = rank(problem)
    found = {}
    for kind, stage in product(OpKind, range(len(problem.stages))):
        for route in range(problem.routes) if problem.exists[kind, stage] else ():
            micros = range(route, problem.microbatches, problem.routes)
            device, duration = int(problem.device[route, stage]), int(problem.duration[kind, stage])
            found[kind, stage, route] = _Stream(kind, stage, device, duration, int(depth[kind, stage]), micros)
    for before, after, lag in arcs(problem):
        for route in range(problem.routes):
            found[*before, route].after.append((found[*after, route], lag[route]))
            found[*after, route].waits += 1
    for stream in found.values():
        stream.missing, stream.ready = [stream.waits] * len(stream.micros), [0] * len(stream.micros)
    return list(found.values())


class _Dispatcher:
    """Plays one policy: wakes a device when it gets free or an op arrives, and lets it choose."""

    def __init__(self, problem: Problem, policy: Policy, rooms: Sequence[int | None]) -> None:
        self.problem, self.policy = problem, policy
        self.ledgers = [Admission(problem, d, room) for d, room in enumerate(rooms)]
        self.devices: list[list[_Stream]] = [[] for _ in range(problem.devices)]
        for stream in _streams(problem):
            self.devices[stream.device].append(stream)
        self.gradients = {(s.stage, s.micros): s for row in self.devices for s in row if s.kind in (OpKind.B, OpKind.I)}
        self.free = [0] * problem.devices
        self.rows: list[list[Op]] = [[] for _ in range(problem.devices)]
        self.events = [(0, d) for d in range(problem.devices)]

    def run(self) -> DeviceOrder:
        while self.events:
            now, device = heapq.heappop(self.events)
            stream = self._choose(device, now) if now >= self.free[device] else None
            if stream is not None:
                self._start(stream, now)
        return DeviceOrder.of(self.rows)

    def _start(self, stream: _Stream, now: int) -> None:
        turn, device = stream.next, stream.device
        stream.next += 1
        self.rows[device].append(Op(stream.stage, stream.kind, stream.micros[turn]))
        self.ledgers[device].start(stream.kind, stream.stage, stream.micros[turn])
        self.free[device] = now + stream.duration
        heapq.heappush(self.events, (self.free[device], device))
        for later, lag in stream.after:
            later.ready[turn] = max(later.ready[turn], now + lag)
            later.missing[turn] -= 1
            if not later.missing[turn]:
                heapq.heappush(self.events, (later.ready[turn], later.device))

    def _choose(self, device: int, now: int) -> _Stream | None:
        """The op to start now, or None to wait."""
        weights: list[_Stream] = []
        forwards: list[_Stream] = []
        gradients: list[_Stream] = []
        blocked = False
        arrival = None
        for stream in self.devices[device]:
            ready = stream.ready_at()
            if ready is None or (stream.kind == OpKind.F and not self._admitted(stream)):
                continue
            if stream.kind == OpKind.W:
                weights.append(stream)
            elif not self.ledgers[device].admits(stream.kind, stream.stage, stream.micros[stream.next]):
                blocked = blocked or ready <= now
            elif ready > now:
                arrival = ready if arrival is None else min(arrival, ready)
            else:
                (forwards if stream.kind == OpKind.F else gradients).append(stream)
        return self._pick(weights, forwards, gradients, blocked, None if arrival is None else arrival - now)

    def _pick(
        self, weights: list[_Stream], forwards: list[_Stream], gradients: list[_Stream], blocked: bool, gap: int | None
    ) -> _Stream | None:
        policy = self.policy
        if gradients and (policy.gradient_first or not forwards):
            return min(gradients, key=self._turn)
        if forwards and not (weights and policy.weight_first):
            return min(forwards, key=self._turn)
        if weights:
            weight = min(weights, key=self._turn)
            if forwards or blocked or gap is None or gap >= policy.patience * weight.duration:
                return weight
        return None

    def _admitted(self, stream: _Stream) -> bool:
        """Whether the policy lets one more micro-batch into the stage."""
        admit, begun = self.policy.admit, stream.next - self.gradients[stream.stage, stream.micros].next
        return admit is None or begun < admit[stream.stage]

    def _turn(self, stream: _Stream) -> tuple[int, int]:
        """The latest stage first, then the oldest micro-batch."""
        return -stream.depth, stream.micros[stream.next]
