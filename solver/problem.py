"""Problem: one pipeline to schedule, checked and exact; its arrays are in integer ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver import memory
from solver.errors import ProblemError
from solver.ops import Op, OpKind, Recipe
from solver.placement import Placement
from solver.stage import Stage
from solver.units import MAX_TICKS, NUMBER_TYPES, Number, common_tick, exact, listed, of_ticks, shown, whole

IntArray = NDArray[np.int64]
Matrix = tuple[tuple[Fraction, ...], ...]

MAX_OPS = 1_000_000


class StageHold(NamedTuple):
    """One hold of one stage, ``size`` memory ticks a micro-batch."""

    stage: int
    opens: OpKind
    closes: OpKind
    size: int


@dataclass(frozen=True)
class Problem:
    """A placement, M micro-batches and the costs of each stage, in the user's own units.

    ``latency[a][b]`` is the time from device a to b; ``memory_cap`` has one limit (or None) a device. Construction
    raises ProblemError where a length is wrong, a number is negative, the ticks overflow, or a cap cannot hold one
    micro-batch run alone, so every Problem has a schedule.

    >>> Problem.of(Placement.linear(2), 3, [Stage.fused(1, 2)] * 2, memory_cap=2).ops
    12
    """

    placement: Placement
    microbatches: int
    stages: tuple[Stage, ...]
    latency: Matrix
    memory_cap: tuple[Fraction | None, ...]
    name: str = ""

    @classmethod
    def of(
        cls,
        placement: Placement,
        microbatches: int,
        stages: Sequence[Stage],
        latency: Number | Sequence[Sequence[Number]] = 0,
        memory_cap: Number | Sequence[Number | None] | None = None,
        name: str = "",
    ) -> Problem:
        """A problem from plain numbers: one latency or a P x P matrix, one cap, one a device, or None."""
        latencies = latency_matrix(latency, placement.devices)
        caps = device_caps(memory_cap, placement.devices)
        return cls(placement, microbatches, tuple(stages), latencies, caps, name)

    def __post_init__(self) -> None:
        object.__setattr__(self, "microbatches", whole(self.microbatches, "microbatches", 1))
        if len(self.stages) != self.placement.stages:
            raise ProblemError(
                f"placement {self.placement} has {self.placement.stages} stages, got costs for {len(self.stages)}",
                "time",
            )
        if self.microbatches * sum(len(s.recipe.kinds) for s in self.stages) > MAX_OPS:
            raise ProblemError(f"more than {MAX_OPS:,} ops; use fewer micro-batches", "microbatches")
        object.__setattr__(self, "latency", latency_matrix(self.latency, self.devices))
        object.__setattr__(self, "memory_cap", device_caps(self.memory_cap, self.devices))
        self._check_ticks()
        memory.check_one_microbatch_fits(self)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Worked out once: problems are keys of caches, and hash hundreds of fractions."""
        return hash((self.placement, self.microbatches, self.stages, self.latency, self.memory_cap, self.name))

    def _check_ticks(self) -> None:
        """The longest sensible schedule, and all memory at once, must stay within MAX_TICKS."""
        hops = 2 * self.placement.stages * max(max(row) for row in self.latency)
        work = self.microbatches * (sum(sum(s.times, Fraction(0)) for s in self.stages) + hops)
        sizes = sum(sum(s.sizes, s.static) for s in self.stages) * self.microbatches * len(self.placement.routes)
        largest = max(sizes, *(c or Fraction(0) for c in self.memory_cap))
        for key, total, unit in (("time", work, self.time_unit), ("memory", largest, self.memory_unit)):
            if total / unit > MAX_TICKS:
                raise ProblemError(
                    f"these numbers need a tick of {shown(unit)}, and their sum overflows 2^53 of it; "
                    "round them to fewer digits or use a larger unit",
                    key,
                )

    @property
    def devices(self) -> int:
        """Number of devices, P."""
        return self.placement.devices

    @property
    def routes(self) -> int:
        """Number of routes, R."""
        return len(self.placement.routes)

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Shape of every [kind, stage, micro-batch] array."""
        return len(OpKind), len(self.stages), self.microbatches

    @property
    def ops(self) -> int:
        """Number of ops."""
        return int(self.exists.sum()) * self.microbatches

    @property
    def recipes(self) -> frozenset[Recipe]:
        """The recipes its stages use."""
        return frozenset(s.recipe for s in self.stages)

    @cached_property
    def time_unit(self) -> Fraction:
        """One time tick, in the user's unit."""
        return common_tick([t for s in self.stages for t in s.times] + [v for row in self.latency for v in row])

    @cached_property
    def memory_unit(self) -> Fraction:
        """One memory tick, in the user's unit."""
        sizes = [v for s in self.stages for v in (*s.sizes, s.static)]
        return common_tick(sizes + [c for c in self.memory_cap if c is not None])

    def in_time(self, ticks: int) -> int | Fraction:
        """Time ticks in the user's unit."""
        return of_ticks(int(ticks), self.time_unit)

    def in_memory(self, ticks: int) -> int | Fraction:
        """Memory ticks in the user's unit."""
        return of_ticks(int(ticks), self.memory_unit)

    @cached_property
    def duration(self) -> IntArray:
        """Ticks of each [kind, stage]; 0 where the stage has no such op (see ``exists``)."""
        rows = [[s.time(kind) or Fraction(0) for s in self.stages] for kind in OpKind]
        return np.array([[int(t / self.time_unit) for t in row] for row in rows], dtype=np.int64)

    @cached_property
    def exists(self) -> NDArray[np.bool_]:
        """Whether each [kind, stage] has ops."""
        return np.array([[kind in s.recipe.kinds for s in self.stages] for kind in OpKind])

    @cached_property
    def takes_time(self) -> bool:
        """Whether every op has a duration, so that starts alone tell a device's ops apart."""
        return bool((self.duration[self.exists] > 0).all())

    @cached_property
    def device(self) -> IntArray:
        """The device of each [route, stage]."""
        return np.array(self.placement.routes, dtype=np.int64)

    @cached_property
    def route(self) -> IntArray:
        """The route of each micro-batch."""
        return np.arange(self.microbatches, dtype=np.int64) % self.routes

    @cached_property
    def op_device(self) -> IntArray:
        """The device of each [kind, stage, micro-batch]; -1 where there is no such op."""
        full = np.broadcast_to(self.device[self.route].T, self.shape)
        return np.where(self.exists[:, :, None], full, -1)

    @cached_property
    def latency_ticks(self) -> IntArray:
        """Ticks from device to device."""
        return np.array([[int(v / self.time_unit) for v in row] for row in self.latency], dtype=np.int64)

    @cached_property
    def holds(self) -> tuple[StageHold, ...]:
        """Every hold that takes memory."""
        return tuple(
            StageHold(s, hold.opens, hold.closes, int(size / self.memory_unit))
            for s, stage in enumerate(self.stages)
            for hold, size in zip(stage.recipe.holds, stage.sizes, strict=True)
            if size
        )

    @cached_property
    def static(self) -> IntArray:
        """Static memory ticks per device: each distinct (stage, device) pair of the routes once."""
        total = np.zeros(self.devices, dtype=np.int64)
        for stage, device in {(s, d) for route in self.placement.routes for s, d in enumerate(route)}:
            total[device] += int(self.stages[stage].static / self.memory_unit)
        return total

    @cached_property
    def room(self) -> tuple[int | None, ...]:
        """Memory ticks each device has for holds: its cap less static, None without a cap."""
        return tuple(
            None if cap is None else int(cap / self.memory_unit) - int(static)
            for cap, static in zip(self.memory_cap, self.static, strict=True)
        )

    def all_ops(self) -> list[Op]:
        """Every op, by kind, stage and micro-batch."""
        pairs = np.argwhere(self.exists).tolist()
        return [Op(stage, OpKind(kind), m) for kind, stage in pairs for m in range(self.microbatches)]

    def save(self, path: str | Path) -> None:
        """Write the problem file; the suffix chooses TOML or JSON."""
        from solver.problem_file import save_problem

        save_problem(self, path)


def latency_matrix(latency: Number | Sequence[Sequence[Number]], devices: int) -> Matrix:
    """One latency between any two devices, or a matrix [from][to], as an exact matrix."""
    key, kind = "devices.latency", f"one number or a {devices} x {devices} matrix"
    if isinstance(latency, NUMBER_TYPES):
        value, zero = exact(latency, key), Fraction(0)
        return tuple(tuple(zero if a == b else value for b in range(devices)) for a in range(devices))
    rows = [listed(row, key, kind) for row in listed(latency, key, kind)]
    if len(rows) != devices or any(len(row) != devices for row in rows):
        raise ProblemError(f"must be {kind}", key)
    matrix = tuple(tuple(exact(v, f"{key}[{a}][{b}]") for b, v in enumerate(row)) for a, row in enumerate(rows))
    for d in range(devices):
        if matrix[d][d]:
            raise ProblemError("a device reaches itself in no time: the diagonal must be 0", f"{key}[{d}][{d}]")
    return matrix


def device_caps(cap: Number | Sequence[Number | None] | None, devices: int) -> tuple[Fraction | None, ...]:
    """One cap for every device, one a device, or none; the text "none" stands for a device without."""
    key, kind = "devices.memory_cap", f"one number or one per device ({devices})"
    if cap is None or isinstance(cap, NUMBER_TYPES):
        return (_cap(cap, key),) * devices
    caps = listed(cap, key, kind)
    if len(caps) != devices:
        raise ProblemError(f"must be {kind}, got {len(caps)}", key)
    return tuple(_cap(c, f"{key}[{d}]") for d, c in enumerate(caps))


def _cap(cap: Number | None, key: str) -> Fraction | None:
    return None if cap is None or cap == "none" else exact(cap, key)
