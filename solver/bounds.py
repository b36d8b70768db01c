"""Lower bounds without search: each says what it is, on which device, and why, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from solver.goal import Goal
from solver.graph import heads, longest_paths, tails
from solver.metrics import busy_ticks
from solver.ops import OpKind
from solver.problem import Problem


@dataclass(frozen=True)
class Bound:
    """No schedule has less than ``value`` ticks of the metric; ``sentence`` says why to a user."""

    value: int
    name: str
    device: int | None
    sentence: str


BoundRule = Callable[[Problem, Goal], Bound]


def critical_path(problem: Problem, goal: Goal) -> Bound:
    """The longest path of one micro-batch; valid always."""
    taken = (heads(problem) + tails(problem))[: problem.microbatches]
    longest = int(taken.max(where=problem.exists[None], initial=0))
    text = f"one micro-batch alone takes {_time(problem, longest)} through all its stages"
    return Bound(longest, "critical path", None, text)


def device_load(problem: Problem, goal: Goal) -> Bound:
    """For any ops of a device: the earliest can start, all run one by one, the shortest way out follows.

    The subsets tried are those of ops with a head of at least h and a tail of at least q, which suffices (Jackson's
    preemptive one-machine bound); valid always.
    """
    return max((_load(problem, d) for d in range(problem.devices)), key=_value)


def _load(problem: Problem, device: int) -> Bound:
    head, work, tail = _ops_of(problem, device)
    best = (0, 0, 0, 0)
    for h in set(head.tolist()):
        for q in set(tail.tolist()):
            total = int(work[(head >= h) & (tail >= q)].sum())
            best = max(best, (h + total + q if total else 0, h, total, q))
    value, h, total, q = best
    text = (
        f"device {device} cannot start some of its ops before {_time(problem, h)}, runs them for "
        f"{_time(problem, total)}, and {_time(problem, q)} must follow elsewhere"
    )
    return Bound(value, "device load", device, text)


def _ops_of(problem: Problem, device: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Head, total work and tail after the end, of each (route, kind, stage) on ``device``."""
    here = problem.exists[None] & (problem.device == device)[:, None, :]
    copies = np.array([int((problem.route == r).sum()) for r in range(problem.routes)])[:, None, None]
    here = here & (copies > 0)
    duration = np.broadcast_to(problem.duration, here.shape)
    after = tails(problem) - duration
    return heads(problem)[here], (duration * copies)[here], after[here]


def memory_ramp(problem: Problem, goal: Goal) -> Bound:
    """Idle time that memory forces before a device's first gradient and after its last forward.

    Before the first gradient (of the device's last stage) only forwards run, and only as many as memory holds. When the
    last forward starts, only what memory holds then has gradients and weight gradients left. Both idles add where the
    last forward must come after the first gradient: where all forwards at once do not fit. Valid for any routes,
    recipes and caps; generalises the bound of one stage a device to several.
    """
    rooms = goal.rooms(problem)
    return max((_ramp(problem, d, rooms[d], goal.minimize == "span") for d in range(problem.devices)), key=_value)


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
        f"device {device} has {_time(problem, work)} of work, must wait {_time(problem, before)} before its first "
        f"gradient, as memory admits no more forwards, and {_time(problem, after)} after its last forward"
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


def device_work(problem: Problem, goal: Goal) -> Bound:
    """For span: the work of the busiest device; valid always."""
    work = busy_ticks(problem)
    device = int(work.argmax())
    text = f"device {device} has {_time(problem, work[device])} of work"
    return Bound(int(work[device]), "device work", device, text)


def one_microbatch_memory(problem: Problem, goal: Goal) -> Bound:
    """For peak memory: static plus all that one op has open at once, on the fullest device."""
    most = problem.static.copy()
    for r, route in enumerate(problem.placement.routes):
        for s, device in enumerate(route):
            if r < problem.microbatches:
                most[device] = max(most[device], problem.static[device] + _least_hold(problem, s))
    device = int(most.argmax())
    text = f"device {device} holds {problem.in_memory(most[device])} with one micro-batch alone"
    return Bound(int(most[device]), "one micro-batch", device, text)


def _least_hold(problem: Problem, stage: int) -> int:
    """What one micro-batch holds on ``stage`` right after F, if F takes time."""
    opened = [h for h in problem.holds if h.stage == stage and problem.duration[h.opens, stage] > 0]
    return max((sum(h.size for h in opened if h.opens == kind) for kind in {h.opens for h in opened}), default=0)


BOUNDS: Mapping[str, tuple[BoundRule, ...]] = {
    "makespan": (critical_path, device_load, memory_ramp),
    "span": (device_work, memory_ramp),
    "peak_memory": (one_microbatch_memory,),
}
"""The bounds of each metric."""


def lower_bound(problem: Problem, goal: Goal | None = None) -> Bound:
    """The best bound on what ``goal`` minimises (default: the makespan).

    >>> from solver import Placement, Workload
    >>> lower_bound(Workload.uniform(devices=4, microbatches=8).problem(Placement.linear(4))).value
    33
    """
    aim = goal or Goal()
    return max((rule(problem, aim) for rule in BOUNDS[aim.minimize]), key=_value)


def bounds_by_value(problem: Problem, goal: Goal) -> list[Bound]:
    """The memory ramp of every device, the largest first."""
    rooms = goal.rooms(problem)
    found = [_ramp(problem, d, rooms[d], goal.minimize == "span") for d in range(problem.devices)]
    return sorted(found, key=_value, reverse=True)


def _value(bound: Bound) -> int:
    return bound.value


def _time(problem: Problem, ticks: int) -> str:
    return str(problem.in_time(ticks))
