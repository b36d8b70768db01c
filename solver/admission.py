"""Whether a device may start an op without running into a memory deadlock later."""

from __future__ import annotations

from dataclasses import dataclass, field

from solver.ops import OpKind
from solver.problem import Problem


@dataclass(frozen=True)
class _Chain:
    """One route's ops on a device, W aside, in their only order.

    ``held[j]`` is what a micro-batch holds after j of them with its W's run, ``need[j]`` how much more it may come to.
    """

    held: tuple[int, ...]
    need: tuple[int, ...]


@dataclass
class Admission:
    """The memory ledger of one device: an op is admitted if all micro-batches begun could still finish, oldest first.

    That is Dijkstra's banker's rule with one fixed order. The order is the same on every device, so the oldest
    unfinished micro-batch can always go on: no deadlock.
    """

    problem: Problem
    device: int
    room: int | None
    held: int = 0
    oldest: int = 0
    newest: int = -1
    chains: list[_Chain] = field(init=False)
    progress: list[int] = field(init=False)
    pending: list[int] = field(init=False)

    def __post_init__(self) -> None:
        problem = self.problem
        self.chains = [_chain(problem, route, self.device) for route in range(problem.routes)]
        self.progress, self.pending = [0] * problem.microbatches, [0] * problem.microbatches
        # One micro-batch that needs no more after its first op: fitting now is enough.
        self.simple = len(self.chains) == 1 and max(self.chains[0].need[1:], default=0) == 0

    def admits(self, kind: OpKind, stage: int, micro: int) -> bool:
        """Whether the op fits now, and leaves every micro-batch begun a way to finish."""
        if self.room is None or kind == OpKind.W:
            return True
        if self.held + self._opened(kind, stage) > self.room:
            return False
        return self.simple or self._safe_after(kind, stage, micro)

    def start(self, kind: OpKind, stage: int, micro: int) -> None:
        """Book the op; what it closes is freed too, as the device is busy until its end."""
        kept = _size(self.problem, stage, closes=OpKind.W)
        before = self._of(micro)
        if kind == OpKind.W:
            self.pending[micro] -= kept
        else:
            self.progress[micro] += 1
            self.pending[micro] += kept if kind == OpKind.I else 0
        self.held += self._of(micro) - before
        self.newest = max(self.newest, micro)
        while self.oldest <= self.newest and self._finished(self.oldest):
            self.oldest += 1

    def _chain_of(self, micro: int) -> _Chain:
        return self.chains[micro % len(self.chains)]

    def _of(self, micro: int) -> int:
        return self._chain_of(micro).held[self.progress[micro]] + self.pending[micro]

    def _finished(self, micro: int) -> bool:
        return self.progress[micro] == len(self._chain_of(micro).held) - 1 and not self.pending[micro]

    def _opened(self, kind: OpKind, stage: int) -> int:
        return _size(self.problem, stage, opens=kind)

    def _safe_after(self, kind: OpKind, stage: int, micro: int) -> bool:
        room = self.room or 0
        newest = max(self.newest, micro)
        kept = _size(self.problem, stage, closes=OpKind.W) if kind == OpKind.I else 0
        self.progress[micro] += 1
        self.pending[micro] += kept
        left = sum(map(self._of, range(self.oldest, newest + 1)))
        safe = True
        for m in range(self.oldest, newest + 1):
            chain, done = self._chain_of(m), self.progress[m]
            left -= self.pending[m]
            safe = safe and left + chain.need[done] <= room
            left -= chain.held[done]
        self.progress[micro] -= 1
        self.pending[micro] -= kept
        return safe


def _chain(problem: Problem, route: int, device: int) -> _Chain:
    mine = [s for s, d in enumerate(problem.placement.routes[route]) if d == device]
    steps = [(OpKind.F, s) for s in mine] + [(problem.stages[s].recipe.gradient, s) for s in reversed(mine)]
    held, peaks = [0], []
    for kind, s in steps:
        opened = _size(problem, s, opens=kind)
        weight = _size(problem, s, closes=OpKind.W) if kind == OpKind.I else 0
        peaks.append(held[-1] + opened)
        held.append(held[-1] + opened - _size(problem, s, closes=kind) - weight)
    need = [max(0, *(p - held[j] for p in peaks[j:])) if peaks[j:] else 0 for j in range(len(held))]
    return _Chain(tuple(held), tuple(need))


def _size(problem: Problem, stage: int, opens: OpKind | None = None, closes: OpKind | None = None) -> int:
    """What the holds of a stage that open, or close, with a kind take together."""
    return sum(
        h.size for h in problem.holds if h.stage == stage and opens in (None, h.opens) and closes in (None, h.closes)
    )
