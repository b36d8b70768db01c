"""Large-neighbourhood search: a window of the best schedule is searched again, everything else keeps its order.

With the order outside fixed, all that the rest adds to the makespan is a tail behind each op of the window, so the
model has the window's ops only. Needs ops that take time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ortools.sat.python import cp_model

from solver.cpsat.engine import Limits, configured
from solver.graph import arcs
from solver.problem import Problem
from solver.schedule import Schedule
from solver.simulate import flat_index

Flat = list[int]


@dataclass(frozen=True)
class Window:
    """What may change: ops that start in [``first``, ``last``), in any order on ``devices``, elsewhere as they were."""

    first: int
    last: int
    devices: frozenset[int]


class Layout:
    """The problem as flat lists: op i of [kind, stage, micro-batch] flattened."""

    def __init__(self, problem: Problem, rooms: Sequence[int | None]) -> None:
        stages, width = len(problem.stages), problem.microbatches
        self.problem, self.rooms = problem, rooms
        self.duration: Flat = problem.duration.ravel().tolist()
        self.device: Flat = problem.op_device.ravel().tolist()
        self.after: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.before: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (kind, stage), (kind2, stage2), lag in arcs(problem):
            for m in range(width):
                source, target = (kind * stages + stage) * width + m, (kind2 * stages + stage2) * width + m
                self.after[source].append((target, lag[m % problem.routes]))
                self.before[target].append((source, lag[m % problem.routes]))
        self.holds: list[list[tuple[int, int, int]]] = [[] for _ in range(problem.devices)]
        for stage, opens, closes, size in problem.holds:
            for m in range(width):
                opener, closer = (opens * stages + stage) * width + m, (closes * stages + stage) * width + m
                self.holds[self.device[opener]].append((opener, closer, size))

    def length(self, op: int) -> int:
        """Duration of an op."""
        return self.duration[op // self.problem.microbatches]


@dataclass
class Neighbourhood:
    """A schedule laid open for windows: its device sequences, starts, and tails under that order."""

    layout: Layout
    schedule: Schedule
    sequences: list[Flat] = field(init=False)
    starts: Flat = field(init=False)
    tails: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        problem = self.layout.problem
        self.sequences = [[flat_index(problem, op) for op in row] for row in self.schedule.order().ops]
        self.starts = self.schedule.starts.ravel().tolist()
        self.tails = self._tails()

    def _tails(self) -> dict[int, int]:
        """Ticks from the start of each op to the end of all that the order makes wait for it."""
        follower = {a: b for row in self.sequences for a, b in pairwise(row)}
        tails: dict[int, int] = {}
        for op in sorted((op for row in self.sequences for op in row), key=self.starts.__getitem__, reverse=True):
            length = self.layout.length(op)
            ways = [lag + tails[later] for later, lag in self.layout.after[op]]
            behind = tails[follower[op]] if op in follower else 0
            tails[op] = max(length + behind, *ways) if ways else length + behind
        return tails

    def improve(self, window: Window, best: int, limits: Limits) -> tuple[list[Flat], bool] | None:
        """Device sequences with makespan at most ``best`` and shorter paths, and whether the window was exhausted."""
        model = _WindowModel(self, window, best)
        if not model.starts:
            return None
        solver = configured(limits)
        status = solver.solve(model.model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        found = {op: solver.value(start) for op, start in model.starts.items()}
        return [self._reordered(row, found) for row in self.sequences], status == cp_model.OPTIMAL

    def _reordered(self, row: Flat, found: dict[int, int]) -> Flat:
        mine = iter(sorted((op for op in row if op in found), key=found.__getitem__))
        return [next(mine) if op in found else op for op in row]


class _WindowModel:
    """The ops of one window as variables."""

    def __init__(self, around: Neighbourhood, window: Window, best: int) -> None:
        self.around, self.window, self.best = around, window, best
        self.model = cp_model.CpModel()
        self.rows = [[op for op in row if window.first <= around.starts[op] < window.last] for row in around.sequences]
        self.starts: dict[int, cp_model.IntVar] = {}
        self.tail: dict[int, int] = {}
        for device, row in enumerate(self.rows):
            self._add_device(device, row)
        self._dependencies_hold()
        for device in window.devices:
            self._memory_stays_within_room(device)
        self._paths_get_short()

    def _add_device(self, device: int, row: Flat) -> None:
        """Variables between what is fixed before and after; then free or ordered."""
        around, layout = self.around, self.around.layout
        whole = around.sequences[device]
        first = whole.index(row[0]) if row else 0
        free_at = around.starts[whole[first - 1]] + layout.length(whole[first - 1]) if row and first else 0
        follower = whole[first + len(row)] if row and first + len(row) < len(whole) else None
        behind = around.tails[follower] if follower is not None else 0
        for op in row:
            fixed = (around.starts[b] + lag for b, lag in layout.before[op] if around.starts[b] < self.window.first)
            ways = (lag + around.tails[a] for a, lag in layout.after[op] if around.starts[a] >= self.window.last)
            self.tail[op] = max(layout.length(op) + behind, *ways, 0)
            begin = max(free_at, *fixed, 0)
            self.starts[op] = self.model.new_int_var(begin, max(begin, self.best - self.tail[op]), "")
            self.model.add_hint(self.starts[op], around.starts[op])
        if device in self.window.devices:
            self._runs_one_at_a_time(row)
        else:
            for op, later in pairwise(row):
                self.model.add(self.starts[later] >= self.starts[op] + layout.length(op))

    def _runs_one_at_a_time(self, row: Flat) -> None:
        layout = self.around.layout
        width, routes = layout.problem.microbatches, layout.problem.routes
        self.model.add_no_overlap(
            self.model.new_fixed_size_interval_var(self.starts[op], layout.length(op), "") for op in row
        )
        for op in row:
            if op % width + routes < width and op + routes in self.starts:
                self.model.add(self.starts[op + routes] >= self.starts[op] + layout.length(op))

    def _dependencies_hold(self) -> None:
        for op, start in self.starts.items():
            for later, lag in self.around.layout.after[op]:
                if later in self.starts:
                    self.model.add(self.starts[later] >= start + lag)

    def _memory_stays_within_room(self, device: int) -> None:
        layout, room = self.around.layout, self.around.layout.rooms[device]
        if room is None:
            return
        intervals, sizes = [], []
        for opener, closer, size in layout.holds[device]:
            if self._is_before(closer) or self._is_after(opener):
                continue
            begin: cp_model.LinearExprT = self.starts.get(opener, 0)
            end: cp_model.LinearExprT = self.best
            if closer in self.starts:
                end = self.starts[closer] + layout.length(closer)
            length = self.model.new_int_var(0, self.best, "")
            intervals.append(self.model.new_interval_var(begin, length, end, ""))
            sizes.append(size)
        self.model.add_cumulative(intervals, sizes, room)

    def _is_before(self, op: int) -> bool:
        return self.around.starts[op] < self.window.first

    def _is_after(self, op: int) -> bool:
        return self.around.starts[op] >= self.window.last

    def _paths_get_short(self) -> None:
        """Minimise the makespan first, then each device's longest path: what is not yet critical may get so."""
        longest = self.model.new_int_var(0, self.best, "")
        paths = []
        for row in filter(None, self.rows):
            path = self.model.new_int_var(0, self.best, "")
            for op in row:
                self.model.add(path >= self.starts[op] + self.tail[op])
            self.model.add(longest >= path)
            paths.append(path)
        self.model.minimize(2 * len(paths) * longest + sum(paths))
