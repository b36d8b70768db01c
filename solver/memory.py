"""The one place that computes held memory over time (``validate`` apart, on purpose)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solver.errors import ProblemError
from solver.ops import OpKind

if TYPE_CHECKING:
    from solver.problem import Problem

IntArray = NDArray[np.int64]


def profile(problem: Problem, starts: IntArray, device: int) -> tuple[IntArray, IntArray]:
    """Times at which ``device``'s memory changes, and the ticks in use from each on, static included.

    ``starts`` is [kind, stage, micro-batch]. At equal times releases come first.
    """
    opened, closed, sizes = [], [], []
    for stage, opens, closes, amount in problem.holds:
        here = problem.op_device[opens, stage] == device
        opened.append(starts[opens, stage, here])
        closed.append(starts[closes, stage, here] + problem.duration[closes, stage])
        sizes.append(np.full(int(here.sum()), amount, dtype=np.int64))
    start, end, size = (np.concatenate([np.empty(0, np.int64), *part]) for part in (opened, closed, sizes))
    times, changes = np.concatenate([end, start]), np.concatenate([-size, size])
    order = np.argsort(times, kind="stable")
    return times[order], problem.static[device] + np.cumsum(changes[order])


def peaks(problem: Problem, starts: IntArray) -> IntArray:
    """Largest memory ticks in use per device, static included."""
    return np.array(
        [
            max(int(problem.static[d]), int(profile(problem, starts, d)[1].max(initial=0)))
            for d in range(problem.devices)
        ],
        dtype=np.int64,
    )


def one_microbatch_peaks(problem: Problem) -> IntArray:
    """Memory ticks per device when each micro-batch runs alone, every W right after its I."""
    alone = [_alone(problem, route) for route in range(problem.routes)]
    turn = max(int((starts + problem.duration).max()) for starts in alone)
    starts = [alone[m % problem.routes] + m * turn for m in range(problem.microbatches)]
    return peaks(problem, np.stack(starts, axis=2))


def _alone(problem: Problem, route: int) -> IntArray:
    """Start of each [kind, stage] of a micro-batch that has all devices of ``route`` to itself."""
    starts, free = np.zeros(problem.shape[:2], dtype=np.int64), [0] * problem.devices
    recipes = [stage.recipe for stage in problem.stages]
    chain = [(OpKind.F, s) for s in range(len(recipes))]
    chain += [(kind, s) for s in reversed(range(len(recipes))) for kind in recipes[s].kinds if kind != OpKind.F]
    sender, sent = int(problem.device[route, 0]), 0
    for kind, s in chain:
        device = int(problem.device[route, s])
        arrives = sent + int(problem.latency_ticks[sender, device])
        starts[kind, s] = max(free[device], arrives)
        free[device] = int(starts[kind, s] + problem.duration[kind, s])
        if kind in (OpKind.F, recipes[s].gradient):
            sender, sent = device, free[device]
    return starts


def check_one_microbatch_fits(problem: Problem) -> None:
    """ProblemError where a device's cap cannot hold one micro-batch run alone."""
    if all(cap is None for cap in problem.memory_cap):
        return
    for d, (peak, cap) in enumerate(zip(one_microbatch_peaks(problem), problem.memory_cap, strict=True)):
        if cap is not None and int(peak) * problem.memory_unit > cap:
            raise ProblemError(
                f"device {d} needs {problem.in_memory(peak)} for its static memory and one micro-batch alone, "
                f"more than its cap of {cap}; raise the cap or spread the stages over more devices",
                "devices.memory_cap",
            )
