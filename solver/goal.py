"""What to minimise and what to keep below a limit, in ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from solver.graph import arcs
from solver.problem import Problem


@dataclass(frozen=True)
class Goal:
    """One metric to ``minimize``, others to keep ``at_most`` some ticks."""

    minimize: str = "makespan"
    at_most: Mapping[str, int] = field(default_factory=dict)

    def rooms(self, problem: Problem) -> tuple[int | None, ...]:
        """Memory ticks each device has for holds, under its cap and a limit on ``peak_memory``."""
        limit = self.at_most.get("peak_memory")
        if limit is None:
            return problem.room
        left = [limit - int(static) for static in problem.static]
        return tuple(mine if room is None else min(room, mine) for room, mine in zip(problem.room, left, strict=True))

    def horizon(self, problem: Problem) -> int:
        """A makespan within which a best schedule exists: a limit, or no instant without an op or a transfer."""
        return min(serial_ticks(problem), self.at_most.get("makespan", serial_ticks(problem)))

    def worst(self, problem: Problem) -> int:
        """A value of the minimised metric that some schedule within the limits stays below, if there is any."""
        if self.minimize == "peak_memory":
            return int(problem.static.max()) + problem.microbatches * sum(h.size for h in problem.holds)
        return self.horizon(problem)


def serial_ticks(problem: Problem) -> int:
    """Ticks of all ops and all transfers one after another.

    Any schedule with an instant at which nothing runs and nothing is on its way can be closed up there.
    """
    per_route = [
        int(problem.duration.sum()) + sum(a.lag[r] - int(problem.duration[a.before]) for a in arcs(problem))
        for r in range(problem.routes)
    ]
    return sum(per_route[r] for r in problem.route.tolist())
