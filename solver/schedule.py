"""Schedule: a start for every op. DeviceOrder: only the order on every device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from solver.errors import OrderError
from solver.ops import Op, OpKind
from solver.problem import IntArray, Problem


class Entry(NamedTuple):
    """One line of a timetable: what ran where and when, in the problem's time unit."""

    op: Op
    device: int
    start: int | Fraction
    end: int | Fraction


@dataclass(frozen=True, eq=False)
class Schedule:
    """A start for every op of ``problem``: ``starts`` is int64 [kind, stage, micro-batch] in ticks, -1 for no op.

    ``str(schedule)`` is an ASCII timeline. Whether the starts obey the rules is for ``validate`` to say.
    """

    problem: Problem
    starts: IntArray

    def __post_init__(self) -> None:
        if self.starts.shape != self.problem.shape:
            raise OrderError(f"starts have shape {self.starts.shape}, the problem needs {self.problem.shape}")
        if not np.issubdtype(self.starts.dtype, np.integer):
            raise OrderError(f"starts are whole ticks of {self.problem.time_unit}, got {self.starts.dtype}")
        frozen = np.where(self.problem.exists[:, :, None], self.starts, -1).astype(np.int64)
        frozen.setflags(write=False)
        object.__setattr__(self, "starts", frozen)

    @cached_property
    def ends(self) -> IntArray:
        """End of each [kind, stage, micro-batch] in ticks, -1 for no op."""
        return np.where(self.starts < 0, -1, self.starts + self.problem.duration[:, :, None])

    def entries(self) -> list[Entry]:
        """The timetable, device by device in order of time."""
        problem = self.problem
        return [
            Entry(
                op,
                device,
                problem.in_time(self.starts[op.kind, op.stage, op.microbatch]),
                problem.in_time(self.ends[op.kind, op.stage, op.microbatch]),
            )
            for device, ops in enumerate(self.order().ops)
            for op in ops
        ]

    def order(self) -> DeviceOrder:
        """The op order on every device; ops of no duration at one instant go in order of dependency."""
        from solver.graph import rank

        kinds, stages, micros = np.nonzero(self.starts >= 0)
        starts, ends = self.starts[kinds, stages, micros], self.ends[kinds, stages, micros]
        sorting = np.lexsort((micros, rank(self.problem)[kinds, stages], ends, starts))
        devices: list[list[Op]] = [[] for _ in range(self.problem.devices)]
        for i in sorting.tolist():
            op = Op(int(stages[i]), OpKind(int(kinds[i])), int(micros[i]))
            devices[int(self.problem.op_device[op.kind, op.stage, op.microbatch])].append(op)
        return DeviceOrder.of(devices)

    def __str__(self) -> str:
        from solver.timeline import timeline

        return timeline(self)


@dataclass(frozen=True)
class DeviceOrder:
    """The order in which every device runs its ops; ``simulate`` gives it times.

    >>> str(DeviceOrder.parse(["0F0 0B0", "1F0 1B0"]))
    '0: 0F0 0B0\\n1: 1F0 1B0'
    """

    ops: tuple[tuple[Op, ...], ...]

    @classmethod
    def of(cls, devices: Iterable[Iterable[Op]]) -> DeviceOrder:
        """The order given as one iterable of ops a device."""
        return cls(tuple(tuple(row) for row in devices))

    @classmethod
    def parse(cls, rows: Sequence[str]) -> DeviceOrder:
        """The order written as one line of ops a device."""
        return cls.of([Op.parse(word) for word in row.split()] for row in rows)

    def __str__(self) -> str:
        return "\n".join(f"{d}: {' '.join(map(str, row))}" for d, row in enumerate(self.ops))

    def check(self, problem: Problem) -> None:
        """OrderError unless every op of ``problem`` stands exactly once, on its own device."""
        seen: set[Op] = set()
        known = set(problem.all_ops())
        if len(self.ops) != problem.devices:
            raise OrderError(f"the order has {len(self.ops)} devices, the problem {problem.devices}")
        for device, row in enumerate(self.ops):
            for op in row:
                if op not in known:
                    raise OrderError(f"device {device} lists {op}, which the problem does not have")
                home = int(problem.op_device[op.kind, op.stage, op.microbatch])
                if home != device:
                    raise OrderError(f"device {device} lists {op}, which belongs on device {home}")
                if op in seen:
                    raise OrderError(f"device {device} lists {op} twice; every op runs once")
                seen.add(op)
        if len(seen) < len(known):
            missing = min(known - seen)
            raise OrderError(
                f"the order lacks {missing} and {len(known) - len(seen) - 1} other ops; every op runs once"
            )
