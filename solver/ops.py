"""What one (stage, micro-batch) does: op kinds, ops, and the recipes that tie them together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from solver.errors import ProblemError
from solver.units import shown


class OpKind(IntEnum):
    """Kinds of work, by PyTorch's letters; the value is the kind's row in every [kind, stage, ...] array.

    Zero Bubble papers write "B" for what is I here.
    """

    F = 0  # forward
    B = 1  # full backward
    I = 2  # input-gradient half
    W = 3  # weight-gradient half

    def __str__(self) -> str:
        return self.name


F, B, I, W = OpKind


@dataclass(frozen=True, order=True)
class Op:
    """One unit of work: ``kind`` for ``microbatch`` on ``stage``; all counted from 0.

    >>> str(Op(2, OpKind.F, 0)), Op.parse("2F0") == Op(2, OpKind.F, 0)
    ('2F0', True)
    """

    stage: int
    kind: OpKind
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind.name}{self.microbatch}"

    __repr__ = __str__

    @classmethod
    def parse(cls, text: str) -> Op:
        """The op written as "stage letter micro-batch"; ProblemError for anything else."""
        match = re.fullmatch(r"(0|[1-9][0-9]{0,8})([FBIW])(0|[1-9][0-9]{0,8})", text)
        if not match:
            raise ProblemError(
                f"an op is written stage, letter (F, B, I or W), micro-batch, such as 2F0; got {shown(text)}"
            )
        return cls(int(match[1]), OpKind[match[2]], int(match[3]))


@dataclass(frozen=True)
class Hold:
    """Memory kept from the start of op ``opens`` to the end of op ``closes``, on the stage's device."""

    name: str
    opens: OpKind
    closes: OpKind


@dataclass(frozen=True)
class Recipe:
    """What one micro-batch does on one stage.

    ``times`` names the duration of each kind, ``arcs`` are its own dependencies, ``gradient`` is the kind that
    waits for the gradient from the next stage and sends it to the previous one, ``holds`` is the memory it keeps.
    """

    name: str
    kinds: tuple[OpKind, ...]
    times: tuple[str, ...]
    arcs: tuple[tuple[OpKind, OpKind], ...]
    gradient: OpKind
    holds: tuple[Hold, ...]

    def __str__(self) -> str:
        return self.name


FUSED = Recipe(
    name="fused",
    kinds=(F, B),
    times=("forward", "backward"),
    arcs=((F, B),),
    gradient=B,
    holds=(Hold("activation", F, B),),
)
"""F, then one full backward B (GPipe, 1F1B, Megatron)."""

SPLIT = Recipe(
    name="split",
    kinds=(F, I, W),
    times=("forward", "input_grad", "weight_grad"),
    arcs=((F, I), (I, W)),
    gradient=I,
    holds=(
        Hold("activation_until_input_grad", F, I),
        Hold("activation_until_weight_grad", F, W),
        Hold("gradient_until_weight_grad", I, W),
    ),
)
"""F, then the backward in two halves: I sends the gradient on, W may wait (Zero Bubble, 2401.10241, section 2)."""
