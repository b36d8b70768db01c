"""The variables: a start for every op, within the window that its dependencies leave it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from solver.cpsat.switches import Switches
from solver.goal import Goal
from solver.graph import heads, tails
from solver.ops import OpKind
from solver.problem import Problem, StageHold

Key = tuple[OpKind, int, int]


@dataclass
class Variables:
    """A CP-SAT model and its start variables by (kind, stage, micro-batch)."""

    problem: Problem
    goal: Goal
    switches: Switches
    horizon: int
    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    starts: dict[Key, cp_model.IntVar] = field(default_factory=dict)
    metric: dict[str, cp_model.IntVar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, stage, micro in self.keys():
            first, last = self.window(kind, stage, micro)
            self.starts[kind, stage, micro] = self.model.new_int_var(first, max(first, last), "")
            if last < first:
                self.model.add_bool_or([])

    def keys(self) -> Iterator[Key]:
        """Every op, by kind, stage and micro-batch."""
        for op in self.problem.all_ops():
            yield op.kind, op.stage, op.microbatch

    def window(self, kind: OpKind, stage: int, micro: int) -> tuple[int, int]:
        """Earliest and latest start: the longest path before and after, or just the horizon."""
        if not self.switches.domains:
            return 0, self.horizon - int(self.problem.duration[kind, stage])
        route = micro % self.problem.routes
        return int(heads(self.problem)[route, kind, stage]), self.horizon - int(tails(self.problem)[route, kind, stage])

    def end(self, kind: OpKind, stage: int, micro: int) -> cp_model.LinearExpr:
        """The end of an op."""
        return self.starts[kind, stage, micro] + int(self.problem.duration[kind, stage])

    def on_device(self, device: int) -> list[Key]:
        """The ops of a device."""
        return [key for key in self.keys() if int(self.problem.op_device[key]) == device]

    def held_on(self, device: int) -> list[tuple[StageHold, int]]:
        """The holds of a device, one a micro-batch."""
        problem = self.problem
        return [
            (hold, m)
            for hold in problem.holds
            for m in range(problem.microbatches)
            if int(problem.op_device[hold.opens, hold.stage, m]) == device
        ]
