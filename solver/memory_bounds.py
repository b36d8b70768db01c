"""Lower bounds from memory: what a device must wait because it cannot hold more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from solver.bound import Bound, by_value, in_time
from solver.goal import Goal
from solver.graph import heads, longest_paths, tails
from solver.metrics import busy_ticks
from solver.ops import OpKind
from solver.problem import Problem


def memory_ramp(problem: Problem, goal: Goal) -> Bound:
    """Idle time that memory forces before a device's first gradient and after its last forward.

    Before the first gradient (of the device's last stage) only forwards run, and only as many as memory holds. When the
    last forward starts, only what memory holds then has gradients and weight gradients left. Both idles add where the
    last forward must come after the first gradient: where all forwards at once do not fit. Valid for any routes,
    recipes and caps; generalises the bound of one stage a device to several.
    """
    rooms = goal.rooms(problem)
    return max((_ramp(problem, d, rooms[d], goal.minimize == "span") for d in range(problem.devices)), key=by_value)


@dataclass(frozen=True)
class _Local:
    """The stages of one route on one device: ``first`` to ``last``, for ``copies`` micro-batches."""

    route: int
    stages: tuple[int, ...]
    copies: int


def _locals(problem: Problem, device: int) -> list[_Local]:
    found = []
    for r, route in enumerate(problem.placement.routes):
        stages = tuple(s for s, d in enumerate(route) if d == device)
        copies = int((problem.route == r).sum())
        if stages and copies:
            found.append(_Local(r, stages, copies))
    return found


def _ramp(problem: Problem, device: int, room: int | None, local_only: bool) -> Bound:
    mine = _locals(problem, device)
    work = int(busy_ticks(problem)[device])
    if not mine:
        return Bound(0, "memory ramp", device, f"device {device} has no ops")
    if not all(problem.duration[:, s][problem.exists[:, s]].all() for own in mine for s in own.stages):
        room = None  # ops of no duration can pass each other in time, and hold nothing
    before = max(0, _first_gradient(problem, mine, local_only) - _most_forwards(problem, mine, room))
    after = min(_after_last_forward(problem, mine, own, room, local_only) for own in mine)
    if room is None or sum(own.copies * _opened(problem, own.stages) for own in mine) <= room:
        before, after = max((before, 0), (0, after), key=sum)
    text = (
        f"device {device} has {in_time(problem, work)} of work, must wait {in_time(problem, before)} before its first "
        f"gradient, as memory admits no more forwards, and {in_time(problem, after)} after its last forward"
    )
    return Bound(before + work + after, "memory ramp", device, text)


def _first_gradient(problem: Problem, mine: list[_Local], local_only: bool) -> int:
    """Least ticks before any gradient of the device starts, from 0 or from its first op."""
    times = []
    for own in mine:
        node = problem.stages[own.stages[-1]].recipe.gradient, own.stages[-1]
        head = heads(problem)[own.route]
        start = longest_paths(problem, (OpKind.F, own.stages[0]))[node][own.route] if local_only else head[node]
        times.append(int(start))
    return min(times)


def _most_forwards(problem: Problem, mine: list[_Local], room: int | None) -> int:
    """Most forward work with no gradient in between."""
    items = [
        (_opened(problem, (s,)), int(problem.duration[OpKind.F, s]), own.copies) for own in mine for s in own.stages
    ]
    return _knapsack(items, room)


def _after_last_forward(problem: Problem, mine: list[_Local], own: _Local, room: int | None, local_only: bool) -> int:
    """Least idle ticks after the start of the device's last forward, if that is of route ``own``."""
    last, first = own.stages[-1], own.stages[0]
    left = None if room is None else room - _opened(problem, own.stages)
    items = [item for other in mine for s in other.stages for item in _backward_items(problem, s, other.copies)]
    # The last micro-batch itself still has all of its backward to run.
    own_work = sum(int(problem.duration[kind, s]) for s in own.stages for kind in OpKind if kind != OpKind.F)
    pending = int(problem.duration[OpKind.F, last]) + own_work + _knapsack(items, left)
    gradient = problem.stages[first].recipe.gradient, first
    way = longest_paths(problem, (OpKind.F, last))[gradient][own.route] + int(problem.duration[gradient])
    out = way if local_only else int(tails(problem)[own.route, OpKind.F, last])
    return max(0, out - pending)


def _backward_items(problem: Problem, stage: int, copies: int) -> list[tuple[int, int, int]]:
    """(size, work, copies) of micro-batches before their gradient, and of those with only W to run."""
    gradient, weight = problem.stages[stage].recipe.gradient, int(problem.duration[OpKind.W, stage])
    kept = sum(h.size for h in problem.holds if h.stage == stage and h.closes == OpKind.W)
    items = [(_opened(problem, (stage,)), int(problem.duration[gradient, stage]) + weight, copies)]
    return items + ([(kept, weight, copies)] if gradient == OpKind.I else [])


def _opened(problem: Problem, stages: tuple[int, ...]) -> int:
    """What one micro-batch holds on ``stages`` once its forwards started."""
    return sum(h.size for h in problem.holds if h.stage in stages and h.opens == OpKind.F)


def _knapsack(items: list[tuple[int, int, int]], room: int | None) -> int:
    """Most work of (size, work, copies) items that fit ``room``: exact, on the frontier of (size, work)."""
    if room is None:
        return sum(work * copies for _, work, copies in items)
    frontier = [(0, 0)]
    for size, work, copies in items:
        fits = copies if not size else min(copies, max(room, 0) // size)
        reached = sorted((s + n * size, -w - n * work) for s, w in frontier for n in range(fits + 1))
        frontier = []
        for s, w in reached:
            if s <= max(room, 0) and (not frontier or -w > frontier[-1][1]):
                frontier.append((s, -w))
    return frontier[-1][1]


def ramps_by_value(problem: Problem, goal: Goal) -> list[Bound]:
    """The memory ramp of every device, the largest first."""
    rooms = goal.rooms(problem)
    found = [_ramp(problem, d, rooms[d], goal.minimize == "span") for d in range(problem.devices)]
    return sorted(found, key=by_value, reverse=True)


def memory_rounds(problem: Problem, goal: Goal) -> Bound:
    """Micro-batches go in rounds of k, as many as memory holds between F and its gradient on the first stage.

    start of F(m + k) >= start of F(m) + round, the round trip to the end of the gradient, and W too where its memory is
    needed. After q rounds the rest of the micro-batches are a problem of their own, whose bounds add. Valid for one
    route; for equal fused stages it is the closed form ceil(M/k) P (F+B) + (r-1)(F+B), r = M - k(ceil(M/k)-1).
    """
    start, room = problem.placement.routes[0][0], goal.rooms(problem)[problem.placement.routes[0][0]]
    opened = _opened(problem, (0,))
    if problem.routes > 1 or room is None or not opened or not problem.duration[:, 0][problem.exists[:, 0]].all():
        return Bound(0, "memory rounds", None, "memory limits no round")
    size, length = max(room, 0) // opened, _round(problem, room)
    total = -(-problem.microbatches // size) if size else 1
    # Any number of rounds is valid; what is left shrinks evenly but for the last few, so that the best is at an end.
    rounds = sorted({0, *range(max(0, total - 4), total)})
    rests = {q: _rest(problem, goal, q * size) for q in rounds}
    best = max(rounds, key=lambda q: q * length + rests[q])
    text = (
        f"device {start} holds at most {size} micro-batches between forward and gradient, so they go in rounds of "
        f"{in_time(problem, length)}; after {best} rounds the rest still need {in_time(problem, rests[best])}"
    )
    return Bound(best * length + rests[best], "memory rounds", start, text)


def _round(problem: Problem, room: int) -> int:
    """Least ticks from F(m) to F(m + k) on the first stage."""
    gradient = problem.stages[0].recipe.gradient, 0
    trip = longest_paths(problem, (OpKind.F, 0))[gradient][0] + int(problem.duration[gradient])
    kept = sum(h.size for h in problem.holds if h.stage == 0 and h.closes == OpKind.W)
    if gradient[0] == OpKind.I and room // _opened(problem, (0,)) * _opened(problem, (0,)) + kept > room:
        # k + 1 fit only once W(m) has run too; or one more gradient, whose forward came at least an F later.
        trip += int(min(problem.duration[OpKind.W, 0], problem.duration[OpKind.F, 0]))
    return trip


def _rest(problem: Problem, goal: Goal, done: int) -> int:
    """A bound on the last micro-batches alone."""
    from solver.bounds import critical_path, device_load

    rest = replace(problem, microbatches=problem.microbatches - done)
    return max(rule(rest, goal).value for rule in (critical_path, device_load, memory_ramp))
