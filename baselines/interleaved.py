"""Several chunks a device, stage s on device s mod P: interleaved 1F1B, its zero-bubble form, breadth first."""

from __future__ import annotations

from collections.abc import Sequence

from baselines.registry import Baseline
from baselines.steps import (
    Step,
    alternate,
    backward,
    flat,
    forward,
    input_grad,
    lockstep,
    require,
    require_routes,
    require_split,
    weight_grad,
)
from solver.ops import FUSED, SPLIT
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder
from solver.units import whole


def looped_chunks(problem: Problem, name: str) -> int:
    """The number of chunks a device, V, on a looped placement; UnsupportedProblem on any other."""
    chunks = max(1, problem.placement.stages // problem.devices)
    require_routes(problem, Placement.looped(problem.devices, chunks), f"{name} needs stage s on device s mod P")
    require(chunks > 1, f"{name} needs at least 2 chunks a device")
    return chunks


def group_size(problem: Problem, group: int | None, name: str) -> int:
    """N, by default P; UnsupportedProblem where the micro-batches do not fall into such groups."""
    devices, micros = problem.devices, problem.microbatches
    size = devices if group is None else whole(group, "group", 1)
    require(
        devices <= size <= micros and (micros % size == 0 or micros % size >= devices),
        f"{name} takes its micro-batches in groups of N, P <= N <= M, with a last group of at least P: "
        f"P={devices}, N={size}, M={micros} do not fit",
    )
    return size


def grouped(micros: int, chunks: int, size: int) -> list[tuple[int, int]]:
    """(chunk, micro-batch) in forward order: a group of micro-batches through every chunk, then the next group.

    >>> grouped(3, chunks=2, size=2)
    [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2)]
    """
    return [
        (chunk, m)
        for first in range(0, micros, size)
        for chunk in range(chunks)
        for m in range(first, min(first + size, micros))
    ]


def interleaved(
    problem: Problem, *, chunks: int = 2, group: int | None = None, lean_warmup: bool = False
) -> DeviceOrder:
    """Groups of micro-batches go through a device's chunks in turn, one forward and one backward alternating.

    Device d runs 2(P-d-1) + (V-1)N forwards ahead; backwards follow the forward order with the chunks reversed.
    ``lean_warmup`` runs P-d-1 + (V-1)N ahead instead: less memory at the same makespan, though latency may cost more.
    ``group`` is N (default P). ``chunks`` chooses the placement; on a problem at hand its routes say how many.

    Closed form: makespan M(F+B) + (P-1)(F+B)/V with F and B of a whole device; peak min((V-1)N + 2(P-d) - 1, MV)
    chunks on device d, so P + (P-1)/V activations for N = P < M; with lean warm-up min((V-1)N + P - d, MV). Equal
    stages, no latency, P <= N <= M and M mod N either 0 or at least P.

    Reference: Narayanan et al. 2021, Megatron-LM, 2104.04473, section 2.2.2 (where P divides M); group size and
    remainder as in Megatron-LM's later code; lean warm-up as in Wan et al. 2025, PipeOffload, 2503.01328.

    >>> from solver import Workload
    >>> print(INTERLEAVED.schedule(Workload.uniform(devices=2, microbatches=4)))
    0 | 0F00F12F02F10F2...2B0---0F32B1---2F20B0---2F30B1---...2B2---...2B3---0B2---0B3---
    1 | ...1F01F13F03B0---3F13B1---1F21B0---1F31B1---3F23B2---3F33B3---1B2---1B3---......
    """
    chunks = looped_chunks(problem, "interleaved 1F1B")
    size = group_size(problem, group, "interleaved 1F1B")
    turns = grouped(problem.microbatches, chunks, size)
    return DeviceOrder.of(
        alternate(
            _forwards(problem, d, turns),
            [backward(problem, s, m) for s, m in _reversed(problem, d, turns)],
            (1 if lean_warmup else 2) * (problem.devices - d - 1) + (chunks - 1) * size,
        )
        for d in range(problem.devices)
    )


def interleaved_zb(problem: Problem, *, chunks: int = 2, group: int | None = None) -> DeviceOrder:
    """Interleaved 1F1B with lean warm-up, and weight gradients put off as in ZB-H1.

    In step x = 0, 1, ... device d runs the x-th forward of the interleaved order, the input gradient of
    (V-1)N + P-d-1 steps ago and the weight gradient of (V-1)N + P-1 steps ago, whichever exist. With V = 1 this is
    ZB-H1. Options as for interleaved.

    Closed form: span idle (P-1)(F+I-W)/V with times of a whole device, and makespan = span where also W <= I; peak
    min((V-1)N + P, MV) chunks on every device. Equal stages, no latency, W <= F, memory held until W, and P, N and M
    as for interleaved.

    Reference: the warm-up and the lag of W are those of PyTorch's ScheduleInterleavedZeroBubble (2024), after Qi et al.
    2023, Zero Bubble Pipeline Parallelism, 2401.10241, section 2.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=4, forward=2, input_grad=2, weight_grad=2)
    >>> print(INTERLEAVED_ZB.schedule(model))
    0 | 0F00F12F02F1...2I02W00F22I12W10F30I00W02F20I10W12F32I22W22I32W30I20W20I30W3
    1 | ...1F01F13F03I03F13I13W01F21I03W11F31I11W03F23I21W13F33I33W21I23W31I31W21W3
    """
    chunks = looped_chunks(problem, "interleaved zero bubble")
    require_split(problem, "interleaved zero bubble")
    size = group_size(problem, group, "interleaved zero bubble")
    turns = grouped(problem.microbatches, chunks, size)
    last, ahead = problem.devices - 1, (chunks - 1) * size
    return DeviceOrder.of(
        lockstep(
            _forwards(problem, d, turns),
            [[input_grad(problem, s, m)] for s, m in _reversed(problem, d, turns)],
            [weight_grad(problem, s, m) for s, m in _reversed(problem, d, turns)],
            ahead + last - d,
            ahead + last,
        )
        for d in range(problem.devices)
    )


def looped_bfs(problem: Problem, *, chunks: int = 2) -> DeviceOrder:
    """Every micro-batch through a device's first chunk, then through the next; backwards in reverse chunk order.

    ``chunks`` chooses the placement; on a problem at hand its routes say how many.

    Closed form: makespan M(F+B) + (P-1)(F+B)/V with F and B of a whole device; peak M activations on every device.
    Equal stages, no latency, M >= P.

    Reference: Lamy-Poirier 2022, Breadth-First Pipeline Parallelism, 2211.05953, section 4.

    >>> from solver import Workload
    >>> print(LOOPED_BFS.schedule(Workload.uniform(devices=2, microbatches=3)))
    0 | 0F00F10F22F02F12F2.........2B0---2B1---2B2---0B0---0B1---0B2---
    1 | ...1F01F11F23F03F13F23B0---3B1---3B2---1B0---1B1---1B2---......
    """
    chunks = looped_chunks(problem, "looped BFS")
    turns = [(chunk, m) for chunk in range(chunks) for m in range(problem.microbatches)]
    return DeviceOrder.of(
        flat(_forwards(problem, d, turns)) + flat(backward(problem, s, m) for s, m in _reversed(problem, d, turns))
        for d in range(problem.devices)
    )


def _forwards(problem: Problem, device: int, turns: Sequence[tuple[int, int]]) -> list[Step]:
    return [[forward(chunk * problem.devices + device, m)] for chunk, m in turns]


def _reversed(problem: Problem, device: int, turns: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(stage, micro-batch) of the backwards: the turns with the last chunk first."""
    last = problem.placement.stages - problem.devices + device
    return [(last - chunk * problem.devices, m) for chunk, m in turns]


def _placement(devices: int, chunks: int, **_: object) -> Placement:
    return Placement.looped(devices, chunks)


INTERLEAVED = Baseline(
    "interleaved", interleaved, _placement, FUSED, {"chunks": 2, "group": None, "lean_warmup": False}
)
INTERLEAVED_ZB = Baseline("interleaved-zb", interleaved_zb, _placement, SPLIT, {"chunks": 2, "group": None})
LOOPED_BFS = Baseline("looped-bfs", looped_bfs, _placement, FUSED, {"chunks": 2})
