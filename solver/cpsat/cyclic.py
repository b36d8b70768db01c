"""Cyclic schedules: one unit (a micro-batch of every route) laid out once and repeated every period.

The model's size does not depend on the number of micro-batches, so it gives warm starts where the whole problem is
out of reach. Modulo scheduling as compilers do it for loops; the building blocks of 2405.15362, section 4, are a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from ortools.sat.python import cp_model

from solver.cpsat.engine import Limits, configured
from solver.graph import arcs, tails
from solver.ops import Op, OpKind
from solver.problem import Problem
from solver.schedule import DeviceOrder

PRECISION = 40
"""Grains of time that the longest op gets."""

Node = tuple[int, OpKind, int]
"""(route, kind, stage) of a unit's op."""


def cyclic_order(problem: Problem, rooms: Sequence[int | None], limits: Limits) -> DeviceOrder | None:
    """The order of the best cyclic schedule found, for all micro-batches; None if none was found.

    Its memory never exceeds that of the endless repetition, which the model keeps within ``rooms``.
    """
    unit = _Unit(problem, rooms)
    solver = configured(limits)
    if solver.solve(unit.model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    period = solver.value(unit.period)
    times = {node: solver.value(time) for node, time in unit.times.items()}
    timed = [
        (times[route, kind, stage] + (m // problem.routes) * period, Op(stage, kind, m))
        for route, kind, stage in times
        for m in range(route, problem.microbatches, problem.routes)
    ]
    rows: list[list[Op]] = [[] for _ in range(problem.devices)]
    for _, op in sorted(timed, key=lambda pair: pair[0]):
        rows[int(problem.op_device[op.kind, op.stage, op.microbatch])].append(op)
    return DeviceOrder.of(rows)


@dataclass
class _Unit:
    """start(node) = origin of its device + place within the period + period x turn; the origin is the device's first F.

    The period is cut at the origin, an op's start, so that no op wraps around.
    """

    problem: Problem
    rooms: Sequence[int | None]
    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    places: dict[Node, cp_model.IntVar] = field(default_factory=dict)
    turns: dict[Node, cp_model.IntVar] = field(default_factory=dict)
    times: dict[Node, cp_model.LinearExpr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problem = self.problem
        self.units = -(-problem.microbatches // problem.routes)
        self.grain = max(1, int(problem.duration.max()) // PRECISION)
        self.horizon = sum(sum(lag) for *_, lag in arcs(problem)) // self.grain + 4 * len(arcs(problem))
        self.period = self.model.new_int_var(1, self.horizon, "period")
        for device in range(problem.devices):
            nodes = self.on_device(device)
            if nodes:
                self._add_device(nodes)
                self._memory_stays_within_room(device, nodes)
        self._dependencies_hold()
        self._end_comes_early()

    def on_device(self, device: int) -> list[Node]:
        """The unit's ops on a device, first stages first."""
        return [
            (route, kind, stage)
            for kind, stage, route in product(OpKind, range(len(self.problem.stages)), range(self.problem.routes))
            if self.problem.exists[kind, stage] and int(self.problem.device[route, stage]) == device
        ]

    def length(self, node: Node) -> int:
        """Duration of an op, in grains."""
        return self.grains(int(self.problem.duration[node[1:]]))

    def grains(self, ticks: int) -> int:
        """Ticks in grains, rounded up: the order is all that is kept of the times."""
        return -(-ticks // self.grain)

    def _add_device(self, nodes: list[Node]) -> None:
        origin = self.model.new_int_var(0, self.horizon, "")
        for node in nodes:
            first = node == nodes[0]
            place = self.model.new_int_var(0, 0 if first else self.horizon, "")
            turn = self.model.new_int_var(0 if first else -self.units, 0 if first else self.units, "")
            shift = self.model.new_int_var(-self.horizon, self.horizon, "")
            self.model.add_multiplication_equality(shift, [self.period, turn])
            self.model.add(place + self.length(node) <= self.period)
            self.places[node], self.turns[node] = place, turn
            self.times[node] = origin + place + shift
            self.model.add(self.times[node] >= 0)
        self.model.add_no_overlap(
            self.model.new_fixed_size_interval_var(self.places[node], self.length(node), "") for node in nodes
        )

    def _dependencies_hold(self) -> None:
        for (kind, stage), (kind2, stage2), lag in arcs(self.problem):
            for route in range(self.problem.routes):
                self.model.add(
                    self.times[route, kind2, stage2] >= self.times[route, kind, stage] + self.grains(lag[route])
                )

    def _memory_stays_within_room(self, device: int, nodes: list[Node]) -> None:
        """At each opening op: a hold counts once per turn between its ends, and by its place within the period."""
        room = self.rooms[device]
        if room is None:
            return
        held = [
            (hold.size, (route, hold.opens, hold.stage), (route, hold.closes, hold.stage))
            for hold in self.problem.holds
            for route in range(self.problem.routes)
            if (route, hold.opens, hold.stage) in nodes
        ]
        for op in dict.fromkeys(opens for _, opens, _ in held):
            level = [
                size * (self.turns[closes] - self.turns[opens] + self._begun(opens, op) - self._ended(closes, op))
                for size, opens, closes in held
            ]
            self.model.add(sum(level) <= room)

    def _begun(self, x: Node, op: Node) -> cp_model.IntVar | int:
        return 1 if x == op else self._ended(x, op)

    def _ended(self, x: Node, op: Node) -> cp_model.IntVar | int:
        """Whether ``x`` ends before ``op`` starts, within the period."""
        if x == op:
            return 0
        literal = self.model.new_bool_var("")
        self.model.add(self.places[op] >= self.places[x] + self.length(x)).only_enforce_if(literal)
        self.model.add(self.places[x] >= self.places[op] + self.length(op)).only_enforce_if(~literal)
        return literal

    def _end_comes_early(self) -> None:
        """Minimise the end of the last unit, as far as its dependencies tell."""
        end = self.model.new_int_var(0, 2 * self.horizon, "")
        for (route, kind, stage), time in self.times.items():
            self.model.add(end >= time + self.grains(int(tails(self.problem)[route, kind, stage])))
        self.model.minimize((self.units - 1) * self.period + end)
