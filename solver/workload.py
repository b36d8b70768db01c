"""Workload: one model on given devices, to be put on any placement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import accumulate, pairwise
from operator import add

from solver.errors import ProblemError, UnsupportedProblem
from solver.ops import Recipe
from solver.placement import MAX_DEVICES, Placement
from solver.problem import Matrix, Problem, device_caps, latency_matrix
from solver.stage import Stage
from solver.units import Number, listed, whole


@dataclass(frozen=True)
class Workload:
    """A model as consecutive ``pieces``, on ``devices`` devices, for ``microbatches`` micro-batches.

    ``problem(placement)`` puts the same model on any placement. Pieces given as stages are ``divisible``: they cut
    into equal parts. Pieces given as layers are not: a placement's stages are contiguous runs of layers.
    """

    pieces: tuple[Stage, ...]
    devices: int
    microbatches: int
    latency: Matrix
    memory_cap: tuple[Fraction | None, ...]
    divisible: bool = True
    split: tuple[int, ...] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "devices", whole(self.devices, "devices.count", 1, MAX_DEVICES))
        object.__setattr__(self, "microbatches", whole(self.microbatches, "microbatches", 1))
        if not self.pieces:
            raise ProblemError("a model needs at least one stage or layer", "time.forward")
        object.__setattr__(self, "latency", latency_matrix(self.latency, self.devices))
        object.__setattr__(self, "memory_cap", device_caps(self.memory_cap, self.devices))
        if self.split is not None and (sum(self.split) != len(self.pieces) or min(self.split, default=0) < 1):
            raise ProblemError(
                f"the layers per stage must be at least 1 each and add up to {len(self.pieces)}, got {self.split}",
                "split",
            )

    @classmethod
    def of(
        cls,
        pieces: Sequence[Stage],
        devices: int,
        microbatches: int,
        latency: Number | Sequence[Sequence[Number]] = 0,
        memory_cap: Number | Sequence[Number | None] | None = None,
        divisible: bool = True,
        split: Sequence[int] | None = None,
        name: str = "",
    ) -> Workload:
        """A workload from plain numbers; ``latency`` and ``memory_cap`` as for ``Problem.of``."""
        count = whole(devices, "devices.count", 1, MAX_DEVICES)
        matrix, caps = latency_matrix(latency, count), device_caps(memory_cap, count)
        layers_per_stage = None if split is None else tuple(whole(n, "split", 1) for n in listed(split, "split"))
        return cls(tuple(pieces), count, microbatches, matrix, caps, divisible, layers_per_stage, name)

    @classmethod
    def uniform(
        cls,
        devices: int,
        microbatches: int,
        forward: Number = 1,
        backward: Number | None = None,
        activation: Number = 1,
        *,
        input_grad: Number | None = None,
        weight_grad: Number | None = None,
        static: Number = 0,
        latency: Number | Sequence[Sequence[Number]] = 0,
        memory_cap: Number | Sequence[Number | None] | None = None,
        name: str = "",
    ) -> Workload:
        """Equal costs per device-stage (1/P of the model): V chunks a device get 1/V of them each.

        Give ``backward`` (default 2), or ``input_grad`` and ``weight_grad`` for a split one, whose ``activation``
        is held until the weight gradient.

        >>> Workload.uniform(devices=4, microbatches=8).problem(Placement.looped(4)).stages[0].times
        (Fraction(1, 2), Fraction(1, 1))
        """
        if input_grad is None and weight_grad is None:
            stage = Stage.fused(forward, 2 if backward is None else backward, activation, static)
        elif input_grad is None or weight_grad is None or backward is not None:
            raise ProblemError("give either backward, or both input_grad and weight_grad", "time.backward")
        else:
            stage = Stage.split(forward, input_grad, weight_grad, 0, activation, 0, static)
        count = whole(devices, "devices.count", 1, MAX_DEVICES)
        return cls.of((stage,) * count, count, microbatches, latency, memory_cap, name=name)

    @classmethod
    def from_layers(
        cls,
        layers: Sequence[Stage],
        devices: int,
        microbatches: int,
        *,
        split: Sequence[int] | None = None,
        latency: Number | Sequence[Sequence[Number]] = 0,
        memory_cap: Number | Sequence[Number | None] | None = None,
        name: str = "",
    ) -> Workload:
        """Measured layers, whole: each stage is a contiguous run that minimises the largest stage's time.

        ``split`` fixes the number of layers of each stage instead, for placements with that many stages.
        """
        return cls.of(layers, devices, microbatches, latency, memory_cap, divisible=False, split=split, name=name)

    def problem(
        self,
        placement: Placement,
        recipe: Recipe | None = None,
        memory_cap: Number | Sequence[Number | None] | None = None,
    ) -> Problem:
        """This model on ``placement``, under ``recipe`` (default: as given); ``memory_cap`` replaces its own.

        Raises UnsupportedProblem where the model has no such form: a fused backward does not split, other devices.
        """
        if placement.devices != self.devices:
            raise UnsupportedProblem(f"placement is for {placement.devices} devices, the model is on {self.devices}")
        stages = self.stages(placement.stages)
        if recipe is not None and any(s.recipe != recipe for s in stages):
            try:
                stages = tuple(s.as_recipe(recipe) for s in stages)
            except ProblemError as err:
                raise UnsupportedProblem(err.rule) from None
        caps = self.memory_cap if memory_cap is None else device_caps(memory_cap, self.devices)
        return Problem(placement, self.microbatches, stages, self.latency, caps, self.name)

    def stages(self, count: int) -> tuple[Stage, ...]:
        """The model as ``count`` consecutive stages.

        Divisible pieces are cut to the least common multiple and merged again, so that half or double the stages
        cost exactly what they must.
        """
        if not self.divisible:
            return tuple(reduce(add, run) for run in self._partition(count))
        parts = math.lcm(count, len(self.pieces))
        cut = [piece / (parts // len(self.pieces)) for piece in self.pieces for _ in range(parts // len(self.pieces))]
        size = parts // count
        return tuple(reduce(add, cut[i : i + size]) for i in range(0, parts, size))

    def _partition(self, count: int) -> list[tuple[Stage, ...]]:
        if count > len(self.pieces):
            raise UnsupportedProblem(f"{len(self.pieces)} layers cannot fill {count} stages")
        if self.split is not None and len(self.split) == count:
            cuts = [0, *accumulate(self.split)]
        else:
            cuts = balanced_cuts([sum(layer.times, Fraction(0)) for layer in self.pieces], count)
        return [self.pieces[a:b] for a, b in pairwise(cuts)]

    def with_microbatches(self, microbatches: int) -> Workload:
        """The same model and devices for another number of micro-batches."""
        return replace(self, microbatches=microbatches)


def balanced_cuts(times: Sequence[Fraction], count: int) -> list[int]:
    """Where to cut ``times`` into ``count`` non-empty runs so that the largest sum is least; O(count x n^2).

    >>> balanced_cuts([Fraction(t) for t in (3, 1, 1, 2, 2)], 3)
    [0, 1, 3, 5]
    """
    before = [Fraction(0), *accumulate(times)]
    best = [(total, [0, i]) for i, total in enumerate(before)]
    for parts in range(2, count + 1):
        best = [
            min(
                ((max(best[k][0], before[i] - before[k]), [*best[k][1], i]) for k in range(parts - 1, i)),
                default=(Fraction(0), []),
            )
            for i in range(len(before))
        ]
    return best[-1][1]


def workload_of(problem: Problem) -> Workload:
    """The model behind a problem: its stages, to be put on other placements (rule 12)."""
    return Workload(
        problem.stages, problem.devices, problem.microbatches, problem.latency, problem.memory_cap, name=problem.name
    )
