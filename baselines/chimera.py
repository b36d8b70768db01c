"""Two routes, down and up the devices: Chimera."""

from __future__ import annotations

from collections.abc import Iterator

from baselines.registry import Baseline
from baselines.steps import Step, backward, flat, forward, require, require_routes
from solver.ops import FUSED
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder


def require_two_routes(problem: Problem, name: str) -> None:
    """UnsupportedProblem unless even micro-batches go down an even number of devices and odd ones up."""
    rule = f"{name} needs two routes, down and up the devices"
    require_routes(problem, Placement.bidirectional(problem.devices), rule)
    require(problem.devices % 2 == 0, f"{name} needs an even number of devices, got {problem.devices}")


def chimera(problem: Problem) -> DeviceOrder:
    """Two pipelines in opposite directions share the devices, each filling the other's bubbles.

    A unit is P micro-batches, half of them each way. Its i-th micro-batch of a direction takes slot 2i + s for the
    forward and slot 2i + 2P-1-s for the backward on stage s; a device runs its ops in order of slots. The next unit
    starts 2P slots later (direct concatenation); the last one may be short.

    Closed form: with k = M/P units, makespan M(F+B) + (P-2)(B + (k-1)(B-F)): for one unit a bubble of (P-2)/(2M+P-2)
    at B = F and (P-2)/(3M/2+P-2) at B = 2F; peak P/2 + 1 + min(d, P-1-d) activations on device d, two copies of the
    weights. Equal stages, no latency, P divides M, B >= F.

    Reference: Li and Hoefler 2021, Chimera, 2107.06925, sections 3.1 and 3.5.

    >>> from solver import Workload
    >>> print(CHIMERA.schedule(Workload.uniform(devices=4, microbatches=4)))
    0 | 0F00F2...3F13B1---3F33B3---...0B0---......0B2---
    1 | ...1F02F11F22F3...2B1---1B0---2B3---1B2---......
    2 | ...1F12F01F32F2...2B0---1B1---2B2---1B3---......
    3 | 0F10F3...3F03B0---3F23B2---...0B1---......0B3---
    """
    require_two_routes(problem, "Chimera")
    return DeviceOrder.of(
        flat(step for _, step in sorted(_slots(problem, device), key=lambda slot: slot[0]))
        for device in range(problem.devices)
    )


def _slots(problem: Problem, device: int) -> Iterator[tuple[int, Step]]:
    """(slot, step) of every forward and backward on ``device``."""
    depth = problem.devices
    for m in range(problem.microbatches):
        stage = problem.placement.route_of(m).index(device)
        unit, i = divmod(m // 2, depth // 2)
        first = 2 * depth * unit + 2 * i
        yield first + stage, [forward(stage, m)]
        yield first + 2 * depth - 1 - stage, backward(problem, stage, m)


CHIMERA = Baseline("chimera", chimera, Placement.bidirectional, FUSED)
