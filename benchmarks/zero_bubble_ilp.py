"""The mixed-integer program of Zero Bubble (Qi et al. 2023, arXiv 2401.10241, the ILP of its appendix) on HiGHS.

A start for every op, a binary for the order of every two ops on a device, big-M constraints for one op at a time, and
the memory before an op as the sum of the deltas of the ops that the binaries put before it. Written for any problem:
several stages a device and several routes too. Micro-batches of one stage and kind run in order of number, which
loses nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import combinations

import highspy
import numpy as np

from solver import Problem, Schedule, metrics, simulate
from solver.errors import DeadlockError
from solver.graph import arcs
from solver.heuristics import one_at_a_time
from solver.ops import Op, OpKind
from solver.schedule import DeviceOrder

Terms = dict[int, float]


class Program:
    """The program of one problem: columns are starts, order binaries and the objective."""

    def __init__(self, problem: Problem, minimize: str) -> None:
        self.problem = problem
        self.highs = highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        self.horizon = float(metrics.makespan_ticks(simulate(problem, one_at_a_time(problem))))
        self.ops = problem.all_ops()
        self.start = {op: self._column(self.horizon) for op in self.ops}
        self.before: dict[tuple[Op, Op], int] = {}
        self.objective = self._column(self.horizon, cost=1.0)
        self._dependencies()
        for device in range(problem.devices):
            mine = [op for op in self.ops if self._home(op) == device]
            self._one_at_a_time(mine)
            self._memory(mine, problem.room[device])
            self._value(mine, minimize)

    def _column(self, upper: float, cost: float = 0.0, binary: bool = False) -> int:
        index = int(self.highs.getNumCol())
        self.highs.addCol(cost, 0.0, upper, 0, [], [])
        if binary:
            self.highs.changeColIntegrality(index, highspy.HighsVarType.kInteger)
        return index

    def _at_least(self, terms: Terms, bound: float) -> None:
        columns = np.array(list(terms), dtype=np.int32)
        self.highs.addRow(bound, highspy.kHighsInf, len(terms), columns, np.array(list(terms.values()), dtype=float))

    def _home(self, op: Op) -> int:
        return int(self.problem.op_device[op.kind, op.stage, op.microbatch])

    def _length(self, op: Op) -> int:
        return int(self.problem.duration[op.kind, op.stage])

    def _dependencies(self) -> None:
        """start(after) - start(before) >= lag."""
        for (kind, stage), (kind2, stage2), lag in arcs(self.problem):
            for m in range(self.problem.microbatches):
                columns = {self.start[Op(stage2, kind2, m)]: 1.0, self.start[Op(stage, kind, m)]: -1.0}
                self._at_least(columns, lag[m % len(lag)])

    def _one_at_a_time(self, mine: Sequence[Op]) -> None:
        """Either a ends before b starts, or b before a; ops of one stage and kind go in order of number."""
        for a, b in combinations(mine, 2):
            if (a.stage, a.kind) == (b.stage, b.kind) and self._same_route(a, b):
                self._at_least({self.start[b]: 1.0, self.start[a]: -1.0}, self._length(a))
                continue
            order = self.before[a, b] = self._column(1.0, binary=True)
            far = self.horizon
            self._at_least({self.start[b]: 1.0, self.start[a]: -1.0, order: -far}, self._length(a) - far)
            self._at_least({self.start[a]: 1.0, self.start[b]: -1.0, order: far}, self._length(b))

    def _same_route(self, a: Op, b: Op) -> bool:
        return (a.microbatch - b.microbatch) % self.problem.routes == 0

    def _memory(self, mine: Sequence[Op], room: int | None) -> None:
        """What op o opens, and the deltas of all ops before it, fit: checked where something opens."""
        if room is None:
            return
        for o in mine:
            if not (opened := self._opens(o)):
                continue
            terms: Terms = {}
            held = float(opened)
            for a in mine:
                delta = self._opens(a) - self._closes(a)
                if a == o or not delta:
                    continue
                if (a, o) in self.before:
                    terms[self.before[a, o]] = -float(delta)
                elif (o, a) in self.before:
                    held += delta
                    terms[self.before[o, a]] = float(delta)
                elif a.microbatch < o.microbatch:
                    held += delta
            self._at_least(terms, held - room)

    def _opens(self, op: Op) -> int:
        return sum(h.size for h in self.problem.holds if (h.stage, h.opens) == (op.stage, op.kind))

    def _closes(self, op: Op) -> int:
        return sum(h.size for h in self.problem.holds if (h.stage, h.closes) == (op.stage, op.kind))

    def _value(self, mine: Sequence[Op], minimize: str) -> None:
        """objective >= every last end, less every first start where the span counts."""
        last: dict[tuple[int, OpKind, int], Op] = {}
        first: dict[tuple[int, OpKind, int], Op] = {}
        for op in mine:
            key = (op.stage, op.kind, op.microbatch % self.problem.routes)
            last[key] = op
            first.setdefault(key, op)
        for end in last.values():
            if minimize == "makespan":
                self._at_least({self.objective: 1.0, self.start[end]: -1.0}, self._length(end))
                continue
            for begin in first.values():
                if begin != end:
                    terms = {self.objective: 1.0, self.start[end]: -1.0, self.start[begin]: 1.0}
                    self._at_least(terms, self._length(end))

    def offer(self, schedule: Schedule, minimize: str) -> None:
        """Give HiGHS a schedule to start from."""
        values = np.zeros(int(self.highs.getNumCol()))
        for op, column in self.start.items():
            values[column] = schedule.starts[op.kind, op.stage, op.microbatch]
        for (a, b), column in self.before.items():
            values[column] = float(values[self.start[a]] + self._length(a) <= values[self.start[b]])
        values[self.objective] = metrics.METRICS[minimize].ticks(schedule)
        solution = highspy.HighsSolution()
        solution.col_value = list(values)
        self.highs.setSolution(solution)

    def orders(self) -> Iterator[list[Op]]:
        """Each device's ops by their starts in HiGHS's solution."""
        values = self.highs.getSolution().col_value
        for device in range(self.problem.devices):
            mine = [op for op in self.ops if self._home(op) == device]
            yield sorted(mine, key=lambda op: (round(values[self.start[op]], 3), self._length(op), op))


def minimize_with_highs(
    problem: Problem, minimize: str, time_limit: float, workers: int, seed: int, hints: Sequence[Schedule]
) -> tuple[Schedule | None, int, float]:
    """The best schedule HiGHS finds, its bound in ticks, and seconds of wall time, building the program included."""
    began = time.monotonic()
    program = Program(problem, minimize)
    for hint in hints:
        program.offer(hint, minimize)
    highs = program.highs
    highs.resetGlobalScheduler(True)
    highs.setOptionValue("threads", workers)
    highs.setOptionValue("random_seed", seed)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 0.999)  # the value is whole ticks
    highs.setOptionValue("time_limit", max(0.1, time_limit - (time.monotonic() - began)))
    highs.run()
    info = highs.getInfo()
    bound = 0 if math.isinf(info.mip_dual_bound) else max(0, math.ceil(info.mip_dual_bound - 1e-3))
    found = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        try:
            found = simulate(problem, DeviceOrder.of(program.orders()))
        except DeadlockError:
            found = None
    return found, bound, time.monotonic() - began
