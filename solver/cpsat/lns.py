"""Which windows of a schedule to search again, and how large."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from solver.cpsat.engine import Limits
from solver.cpsat.neighbourhoods import Layout, Neighbourhood, Window
from solver.schedule import Schedule
from solver.simulate import earliest_starts

EFFORT = 1.0
"""CP-SAT's deterministic time for a window, about a second."""


@dataclass
class Improver:
    """Draws windows of about ``size`` ops at random; windows that are too easy make the next larger, and back."""

    layout: Layout
    seed: int
    size: float = 120
    around: Neighbourhood | None = None
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def step(self, schedule: Schedule, makespan: int, seconds: float) -> Schedule | None:
        """A schedule no longer than ``schedule``, after one window of it was searched again; None if none was found."""
        if self.around is None or self.around.schedule is not schedule:
            self.around = Neighbourhood(self.layout, schedule)
        limits = Limits(seconds, 1, self.rng.randrange(2**31), EFFORT)
        found = self.around.improve(self._draw(makespan), makespan, limits)
        exhausted = found is not None and found[1]
        self.size = min(max(self.size * (1.03 if exhausted else 0.9), 24), 400)
        if found is None:
            return None
        problem = self.layout.problem
        starts = np.array(earliest_starts(problem, found[0]), dtype=np.int64).reshape(problem.shape)
        return Schedule(problem, starts)

    def _draw(self, makespan: int) -> Window:
        """A stretch of time on a run of neighbouring devices, all of them or at least four."""
        devices, ops = self.layout.problem.devices, self.layout.problem.ops
        count = max(min(devices, 4), devices >> self.rng.choice((0, 0, 1, 2)))
        first = self.rng.randrange(devices - count + 1)
        length = int(makespan * self.size / ops * devices / count) + 1
        begin = self.rng.randrange(-length // 2, max(1, makespan - length // 2))
        return Window(max(begin, 0), begin + length, frozenset(range(first, first + count)))
