"""Chunks forth and back over the devices: Hanayo's waves."""

from __future__ import annotations

from baselines.registry import Baseline
from baselines.steps import by_slots, require, require_routes
from solver.ops import FUSED
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder
from solver.units import whole


def hanayo(problem: Problem, *, waves: int = 1) -> DeviceOrder:
    """Chimera folded onto half the devices: one copy of the weights, each micro-batch in waves forth and back.

    W waves are V = 2W chunks a device, S = 2WP stages. A unit is P micro-batches; its i-th takes slot 2i + s for the
    forward and slot 2i + 2S-1-s for the backward on stage s, and a device runs its ops in order of slots: with W = 1
    these are one direction's slots of Chimera on 2P devices. The next unit starts 2S slots later; the last one may be
    short. ``waves`` chooses the placement; on a problem at hand its routes say how many.

    Closed form: with k = M/P units, makespan M(F+B) + (P-1)(B + (k-1)(B-F))/W with times of a whole device, so for
    M = P and B = 2F a bubble of (2P-2)/(3PW+2P-2); peak (2W-1)P + 1 + d chunks on device d, P activations on the last.
    Equal stages, no latency, P divides M, B >= F.

    Reference: Liu et al. 2023, Hanayo, 2308.15762, section 3; slots derived from Chimera's, as the paper derives
    its waves. The bubble quoted for it, (2P-2)/(3PW+P-1), is not met.

    >>> from solver import Workload
    >>> print(HANAYO.schedule(Workload.uniform(devices=2, microbatches=2)))
    0 | 0F00F1...3F03B0---3F13B1---...0B0---......0B1---
    1 | ...1F02F01F12F1...2B0---1B0---2B1---1B1---......
    """
    chunks = max(1, problem.placement.stages // problem.devices)
    require_routes(
        problem, Placement.wave(problem.devices, chunks), "Hanayo needs its stages forth and back over the devices"
    )
    require(chunks % 2 == 0, f"Hanayo needs an even number of chunks a device, got {chunks}")
    return by_slots(problem, problem.devices)


HANAYO = Baseline(
    "hanayo",
    hanayo,
    lambda devices, waves: Placement.wave(devices, 2 * whole(waves, "waves", 1)),
    FUSED,
    {"waves": 1},
    re_derived=True,
)
