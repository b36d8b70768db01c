"""Several chunks a device, device s mod P for stage s: Megatron-LM's interleaved 1F1B."""

from __future__ import annotations

from baselines.registry import Baseline
from baselines.steps import alternate, backward, forward, require, require_routes
from solver.ops import FUSED
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder


def looped_chunks(problem: Problem, name: str) -> int:
    """The number of chunks a device, V, on a looped placement; UnsupportedProblem on any other."""
    chunks = max(1, problem.placement.stages // problem.devices)
    require_routes(problem, Placement.looped(problem.devices, chunks), f"{name} needs stage s on device s mod P")
    require(chunks > 1, f"{name} needs at least 2 chunks a device")
    return chunks


def grouped(problem: Problem, chunks: int, group: int | None, name: str) -> list[tuple[int, int]]:
    """(chunk, micro-batch) in forward order: ``group`` micro-batches (default P) through every chunk, then the next."""
    size, devices, micros = group or problem.devices, problem.devices, problem.microbatches
    require(
        devices <= size <= micros and (micros % size == 0 or micros % size >= devices),
        f"{name} takes its micro-batches in groups of N, P <= N <= M, with a last group of at least P: "
        f"P={devices}, N={size}, M={micros} do not fit",
    )
    return [
        (chunk, m)
        for first in range(0, micros, size)
        for chunk in range(chunks)
        for m in range(first, min(first + size, micros))
    ]


def interleaved(problem: Problem, *, chunks: int = 2, group: int | None = None) -> DeviceOrder:
    """Groups of micro-batches go through a device's chunks in turn, one forward and one backward alternating.

    Device d runs 2(P-d-1) + (V-1)N forwards ahead; backwards follow the forward order with the chunks reversed.
    ``group`` is N (default P). ``chunks`` chooses the placement; on a problem at hand its routes say how many.

    Closed form: makespan M(F+B) + (P-1)(F+B)/V with F and B of a whole device; peak min((V-1)N + 2P-1, MV) chunks on
    device 0, P + (P-1)/V stages for N = P < M. Equal stages, no latency, P <= N <= M and M mod N either 0 or >= P.

    Reference: Narayanan et al. 2021, Megatron-LM, 2104.04473, section 2.2.2 (where P divides M); group size and
    remainder as in Megatron-LM's later code.

    >>> from solver import Workload
    >>> print(INTERLEAVED.schedule(Workload.uniform(devices=2, microbatches=4)))
    0 | 0F00F12F02F10F2...2B0---0F32B1---2F20B0---2F30B1---...2B2---...2B3---0B2---0B3---
    1 | ...1F01F13F03B0---3F13B1---1F21B0---1F31B1---3F23B2---3F33B3---1B2---1B3---......
    """
    chunks = looped_chunks(problem, "interleaved 1F1B")
    size, devices = group or problem.devices, problem.devices
    turns = grouped(problem, chunks, group, "interleaved 1F1B")
    return DeviceOrder.of(
        alternate(
            [[forward(c * devices + d, m)] for c, m in turns],
            [backward(problem, (chunks - 1 - c) * devices + d, m) for c, m in turns],
            2 * (devices - d - 1) + (chunks - 1) * size,
        )
        for d in range(devices)
    )


def _placement(devices: int, chunks: int, **_: object) -> Placement:
    return Placement.looped(devices, chunks)


INTERLEAVED = Baseline("interleaved", interleaved, _placement, FUSED, {"chunks": 2, "group": None})
