"""Two routes, down and up the devices, with two copies of the weights: Chimera and GEMS."""

from __future__ import annotations

from baselines.registry import Baseline
from baselines.steps import backward, by_slots, flat, forward, require, require_routes
from solver.ops import FUSED
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder


def require_two_routes(problem: Problem, name: str) -> None:
    """UnsupportedProblem unless even micro-batches go down the devices and odd ones up."""
    require_routes(
        problem, Placement.bidirectional(problem.devices), f"{name} needs two routes, down and up the devices"
    )


def require_even_devices(problem: Problem, name: str) -> None:
    """UnsupportedProblem for an odd number of devices."""
    require(problem.devices % 2 == 0, f"{name} needs an even number of devices, got {problem.devices}")


def chimera(problem: Problem, *, forward_doubling: bool = False, backward_halving: bool = False) -> DeviceOrder:
    """Two pipelines in opposite directions share the devices, each filling the other's bubbles.

    A unit is P micro-batches, half of them each way. Its i-th micro-batch of a direction takes slot 2i + s for the
    forward and slot 2i + 2P-1-s for the backward on stage s; a device runs its ops in order of slots. The next unit
    starts 2P slots later (direct concatenation); the last one may be short.

    ``forward_doubling`` puts two forwards into a forward's slot, so a unit is 2P micro-batches and the next one starts
    3P slots later: no bubble between units where B = 2F, at twice the activations. ``backward_halving`` is the same
    order read the other way: the problem's micro-batches are then the halves (twice as many at half the cost), whose
    forwards run together as one whole micro-batch and whose backwards run apart.

    Closed form: with k = M/P units, makespan M(F+B) + (P-2)(B + (k-1)(B-F)): for one unit a bubble of (P-2)/(2M+P-2)
    at B = F and (P-2)/(3M/2+P-2) at B = 2F; peak P/2 + 1 + min(d, P-1-d) activations on device d, two copies of the
    weights. P divides M, B >= F. Forward doubling: makespan M(F+B) + (P-2)(F+B)/2; peak 3P/2 + 1 + min(d, P-1-d). 2P
    divides M, F <= B <= 2F. (The paper runs the pair of forwards as one op and so counts idle (P-2) B at B = 2F, a
    bubble of (P-2)/(3M/2+P-2).) Equal stages, no latency.

    Reference: Li and Hoefler 2021, Chimera, 2107.06925, sections 3.1 and 3.5.

    >>> from solver import Workload
    >>> print(CHIMERA.schedule(Workload.uniform(devices=4, microbatches=4)))
    0 | 0F00F2...3F13B1---3F33B3---...0B0---......0B2---
    1 | ...1F02F11F22F3...2B1---1B0---2B3---1B2---......
    2 | ...1F12F01F32F2...2B0---1B1---2B2---1B3---......
    3 | 0F10F3...3F03B0---3F23B2---...0B1---......0B3---
    """
    require_two_routes(problem, "Chimera")
    require_even_devices(problem, "Chimera")
    require(not (forward_doubling and backward_halving), "Chimera doubles forwards or halves backwards, not both")
    require(
        not backward_halving or problem.microbatches % 4 == 0,
        "backward halving counts halves, two of each micro-batch each way: M must be a multiple of 4",
    )
    together = 2 if forward_doubling or backward_halving else 1
    return by_slots(problem, together * problem.devices // 2, together)


def gems(problem: Problem) -> DeviceOrder:
    """One micro-batch at a time, in alternate directions, so that a forward follows the backward before it.

    Every device runs F and B of micro-batch 0, then of micro-batch 1, and so on: while the backward of one leaves the
    devices in turn, the forward of the next, on the other route, moves in behind it.

    Closed form: makespan P F + M P B + (M-1) F for B >= F, so a bubble that nears (P-1)/(P+1/2) for B = 2F and many
    micro-batches; peak 1 activation on every device, two copies of the weights. Equal stages, no latency.

    Reference: Jain et al. 2020, GEMS, SC '20, as Li and Hoefler 2021, Chimera, 2107.06925, section 2 and table 2,
    describe and count it.

    >>> from solver import Workload
    >>> print(GEMS.schedule(Workload.uniform(devices=3, microbatches=3)))
    0 | 0F0..................0B0---2F12B1---0F2........................0B2---
    1 | ...1F0.........1B0---1F1............1B1---1F2............1B2---......
    2 | ......2F02B0---0F1........................0B1---2F22B2---............
    """
    require_two_routes(problem, "GEMS")
    stages = [
        [(problem.placement.route_of(m).index(d), m) for m in range(problem.microbatches)]
        for d in range(problem.devices)
    ]
    return DeviceOrder.of(flat([forward(s, m), *backward(problem, s, m)] for s, m in row) for row in stages)


CHIMERA = Baseline(
    "chimera",
    chimera,
    lambda devices, **_: Placement.bidirectional(devices),
    FUSED,
    {"forward_doubling": False, "backward_halving": False},
)
GEMS = Baseline("gems", gems, Placement.bidirectional, FUSED, re_derived=True)
