"""What one micro-batch costs on one stage (or layer): exact times and sizes in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from solver.errors import ProblemError
from solver.ops import FUSED, SPLIT, OpKind, Recipe
from solver.units import Number, exact


@dataclass(frozen=True)
class Stage:
    """Costs of a stage: ``times`` follow ``recipe.kinds``, ``sizes`` follow ``recipe.holds``; ``static`` counts once.

    Stages add (two consecutive ones merged) and divide (cut into equal parts).

    >>> (Stage.fused(1, 2) + Stage.fused(1, 2)) / 2 == Stage.fused(1, 2)
    True
    """

    recipe: Recipe
    times: tuple[Fraction, ...]
    sizes: tuple[Fraction, ...]
    static: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if len(self.times) != len(self.recipe.kinds) or len(self.sizes) != len(self.recipe.holds):
            raise ProblemError(
                f"a {self.recipe} stage has {len(self.recipe.kinds)} times and {len(self.recipe.holds)} sizes, "
                f"got {len(self.times)} and {len(self.sizes)}"
            )
        for name, value in zip(self.recipe.times, self.times, strict=True):
            exact(value, f"time.{name}")
        for hold, value in zip(self.recipe.holds, self.sizes, strict=True):
            exact(value, f"memory.{hold.name}")
        exact(self.static, "memory.static")

    @classmethod
    def fused(cls, forward: Number, backward: Number, activation: Number = 1, static: Number = 0) -> Stage:
        """A stage with one full backward."""
        return cls(
            FUSED,
            (exact(forward, "time.forward"), exact(backward, "time.backward")),
            (exact(activation, "memory.activation"),),
            exact(static, "memory.static"),
        )

    @classmethod
    def split(
        cls,
        forward: Number,
        input_grad: Number,
        weight_grad: Number,
        activation_until_input_grad: Number = 0,
        activation_until_weight_grad: Number = 1,
        gradient_until_weight_grad: Number = 0,
        static: Number = 0,
    ) -> Stage:
        """A stage with the backward in two halves."""
        times = (forward, input_grad, weight_grad)
        sizes = (activation_until_input_grad, activation_until_weight_grad, gradient_until_weight_grad)
        return cls(
            SPLIT,
            tuple(exact(v, f"time.{name}") for v, name in zip(times, SPLIT.times, strict=True)),
            tuple(exact(v, f"memory.{hold.name}") for v, hold in zip(sizes, SPLIT.holds, strict=True)),
            exact(static, "memory.static"),
        )

    def time(self, kind: OpKind) -> Fraction | None:
        """Duration of ``kind``, None if this stage has no such op."""
        return self.times[self.recipe.kinds.index(kind)] if kind in self.recipe.kinds else None

    @property
    def activation(self) -> Fraction:
        """What one micro-batch holds right after its forward."""
        return sum((v for v, h in zip(self.sizes, self.recipe.holds, strict=True) if h.opens == OpKind.F), Fraction(0))

    def as_recipe(self, recipe: Recipe) -> Stage:
        """The same stage under another recipe: SPLIT to FUSED adds the halves; the reverse does not exist.

        The activation is the sum of both activation holds; a gradient kept between the halves has no place in FUSED.
        """
        if recipe == self.recipe:
            return self
        if recipe != FUSED:
            raise ProblemError("a fused backward has no known halves: give input_grad and weight_grad instead", "time")
        forward, *halves = self.times
        return Stage(FUSED, (forward, sum(halves, Fraction(0))), (self.activation,), self.static)

    def __add__(self, other: Stage) -> Stage:
        if self.recipe != other.recipe:
            return self.as_recipe(FUSED) + other.as_recipe(FUSED)
        times = tuple(a + b for a, b in zip(self.times, other.times, strict=True))
        sizes = tuple(a + b for a, b in zip(self.sizes, other.sizes, strict=True))
        return Stage(self.recipe, times, sizes, self.static + other.static)

    def __truediv__(self, parts: int) -> Stage:
        return Stage(
            self.recipe,
            tuple(v / parts for v in self.times),
            tuple(v / parts for v in self.sizes),
            self.static / parts,
        )
