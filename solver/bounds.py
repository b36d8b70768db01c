"""Lower bounds without search: each says what it is, on which device, and why, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from solver.bound import Bound, by_value, in_time
from solver.goal import Goal
from solver.graph import heads, tails
from solver.memory_bounds import memory_ramp, memory_rounds
from solver.metrics import busy_ticks
from solver.problem import Problem
from solver.units import to_json

BoundRule = Callable[[Problem, Goal], Bound]


def critical_path(problem: Problem, goal: Goal) -> Bound:
    """The longest path of one micro-batch; valid always."""
    taken = (heads(problem) + tails(problem))[: problem.microbatches]
    longest = int(taken.max(where=problem.exists[None], initial=0))
    text = f"one micro-batch alone takes {in_time(problem, longest)} through all its stages"
    return Bound(longest, "critical path", None, text)


def device_load(problem: Problem, goal: Goal) -> Bound:
    """For any ops of a device: the earliest can start, all run one by one, the shortest way out follows.

    The subsets tried are those of ops with a head of at least h and a tail of at least q, which suffices (Jackson's
    preemptive one-machine bound); valid always.
    """
    return max((_load(problem, d) for d in range(problem.devices)), key=by_value)


def _load(problem: Problem, device: int) -> Bound:
    head, work, tail = _ops_of(problem, device)
    best = (0, 0, 0, 0)
    for h in set(head.tolist()):
        for q in set(tail.tolist()):
            total = int(work[(head >= h) & (tail >= q)].sum())
            best = max(best, (h + total + q if total else 0, h, total, q))
    value, h, total, q = best
    text = (
        f"device {device} cannot start some of its ops before {in_time(problem, h)}, runs them for "
        f"{in_time(problem, total)}, and {in_time(problem, q)} must follow elsewhere"
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


def device_work(problem: Problem, goal: Goal) -> Bound:
    """For span: the work of the busiest device; valid always."""
    work = busy_ticks(problem)
    device = int(work.argmax())
    text = f"device {device} has {in_time(problem, work[device])} of work"
    return Bound(int(work[device]), "device work", device, text)


def one_microbatch_memory(problem: Problem, goal: Goal) -> Bound:
    """For peak memory: static plus all that one op has open at once, on the fullest device."""
    most = problem.static.copy()
    for r, route in enumerate(problem.placement.routes):
        for s, device in enumerate(route):
            if r < problem.microbatches:
                most[device] = max(most[device], problem.static[device] + _least_hold(problem, s))
    device = int(most.argmax())
    text = f"device {device} holds {to_json(problem.in_memory(most[device]))} with one micro-batch alone"
    return Bound(int(most[device]), "one micro-batch", device, text)


def memory_for_makespan(problem: Problem, goal: Goal) -> Bound:
    """For peak memory under a limit on makespan or span: with less, that metric's own bound is over its limit.

    Valid as those bounds do not fall when memory shrinks; the least memory they admit is found by bisection, to a tick
    unless the problem is large.
    """
    least, most = int(problem.static.max()), Goal("peak_memory").worst(problem)
    tightest = ""
    for metric in sorted({"makespan", "span"} & goal.at_most.keys()):
        low, high = least, most
        for _ in range(STEPS if problem.ops > MANY_OPS else most.bit_length()):
            if low >= high:
                break
            middle = (low + high) // 2
            aim = Goal(metric, {**goal.at_most, "peak_memory": middle})
            fits = max(rule(problem, aim).value for rule in BOUNDS[metric]) <= goal.at_most[metric]
            low, high = (low, middle) if fits else (middle + 1, high)
        if low > least:
            least, tightest = low, metric
    metric = tightest or "makespan"
    text = f"with less than {to_json(problem.in_memory(least))} on some device, {metric} is over its limit"
    return Bound(least, f"memory for {metric}", None, text)


def _least_hold(problem: Problem, stage: int) -> int:
    """What one micro-batch holds on ``stage`` right after F, if F takes time."""
    opened = [h for h in problem.holds if h.stage == stage and problem.duration[h.opens, stage] > 0]
    return max((sum(h.size for h in opened if h.opens == kind) for kind in {h.opens for h in opened}), default=0)


MANY_OPS, STEPS = 2000, 6
"""From so many ops a bound takes so long that a bisection gets few steps."""

BOUNDS: Mapping[str, tuple[BoundRule, ...]] = {
    "makespan": (critical_path, device_load, memory_ramp, memory_rounds),
    "span": (device_work, memory_ramp),
    "peak_memory": (one_microbatch_memory, memory_for_makespan),
}
"""The bounds of each metric."""


def lower_bound(problem: Problem, goal: Goal | None = None) -> Bound:
    """The best bound on what ``goal`` minimises (default: the makespan).

    >>> from solver import Placement, Workload
    >>> lower_bound(Workload.uniform(devices=4, microbatches=8).problem(Placement.linear(4))).value
    33
    """
    aim = goal or Goal()
    return max((rule(problem, aim) for rule in BOUNDS[aim.minimize]), key=by_value)
