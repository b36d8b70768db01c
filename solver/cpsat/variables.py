"""The variables: a start for every op of the devices at hand, within the window that its dependencies leave it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ortools.sat.python import cp_model

from solver.cpsat.switches import Switches
from solver.goal import Goal
from solver.graph import heads, tails
from solver.ops import OpKind
from solver.problem import Problem, StageHold

Key = tuple[OpKind, int, int]


@dataclass
class Variables:
    """A CP-SAT model and its start variables by (kind, stage, micro-batch).

    With some ``devices`` only, it is the relaxation in which the others can run any number of ops at once.
    """

    problem: Problem
    goal: Goal
    switches: Switches
    horizon: int
    devices: tuple[int, ...]
    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    starts: dict[Key, cp_model.IntVar] = field(default_factory=dict)
    metric: dict[str, cp_model.IntVar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for device in self.devices:
            for key in self.ops_of[device]:
                first, last = self.window(*key)
                self.starts[key] = self.model.new_int_var(first, max(first, last), "")
                if last < first:
                    self.model.add_bool_or([])

    @cached_property
    def ops_of(self) -> dict[int, list[Key]]:
        """The ops of each device, by kind, stage and micro-batch."""
        rows: dict[int, list[Key]] = {d: [] for d in range(self.problem.devices)}
        home = self.problem.op_device.tolist()
        for op in self.problem.all_ops():
            rows[home[op.kind][op.stage][op.microbatch]].append((op.kind, op.stage, op.microbatch))
        return rows

    def window(self, kind: OpKind, stage: int, micro: int) -> tuple[int, int]:
        """Earliest and latest start: the longest path before and after, or just the horizon."""
        if not self.switches.domains:
            return 0, self.horizon - int(self.problem.duration[kind, stage])
        route = micro % self.problem.routes
        return int(heads(self.problem)[route, kind, stage]), self.horizon - int(tails(self.problem)[route, kind, stage])

    def end(self, kind: OpKind, stage: int, micro: int) -> cp_model.LinearExpr:
        """The end of an op."""
        return self.starts[kind, stage, micro] + int(self.problem.duration[kind, stage])

    def held_on(self, device: int) -> list[tuple[StageHold, int]]:
        """The holds of a device, one a micro-batch."""
        problem = self.problem
        return [
            (hold, m)
            for hold in problem.holds
            for m in range(problem.microbatches)
            if int(problem.op_device[hold.opens, hold.stage, m]) == device
        ]
