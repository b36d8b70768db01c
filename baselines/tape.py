"""A device's row written cue by cue, for rules that say "the next forward of this stream, then a weight gradient"."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from baselines.steps import forward, input_grad, weight_grad
from solver.ops import Op, OpKind
from solver.problem import Problem


class Stream(NamedTuple):
    """The micro-batches that pass one stage of a device, in their order."""

    stage: int
    microbatches: Sequence[int]


class Cue(NamedTuple):
    """The next forward or input gradient of a stream, or the weight gradient that waits longest."""

    kind: OpKind
    stream: int = 0


F0, F1 = Cue(OpKind.F, 0), Cue(OpKind.F, 1)
I0, I1 = Cue(OpKind.I, 0), Cue(OpKind.I, 1)
W = Cue(OpKind.W)


class Tape:
    """The row of one device; a cue of a stream that has ended, or for a W where none waits, writes nothing."""

    def __init__(self, problem: Problem, *streams: Stream) -> None:
        self.problem = problem
        self.stages = [stream.stage for stream in streams]
        self.next = {Cue(kind, s): iter(x.microbatches) for s, x in enumerate(streams) for kind in (F0.kind, I0.kind)}
        self.waiting: deque[list[Op]] = deque()
        self.ops: list[Op] = []

    def play(self, times: int, *cues: Cue) -> None:
        """Write ``cues`` in turn, ``times`` times."""
        for cue in cues * times:
            if cue == W:
                self.ops += self.waiting.popleft() if self.waiting else []
            elif (m := next(self.next[cue], None)) is not None:
                self._write(cue, self.stages[cue.stream], m)

    def _write(self, cue: Cue, stage: int, m: int) -> None:
        if cue.kind == OpKind.F:
            self.ops.append(forward(stage, m))
        else:
            self.ops.append(input_grad(self.problem, stage, m))
            self.waiting.append(weight_grad(self.problem, stage, m))
