"""Two chunks a device on a V, backward in halves: ZB-V, and the V schedules of controllable memory."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from baselines.registry import Baseline
from baselines.steps import flat, forward, input_grad, require_routes, require_split, weight_grad
from baselines.tape import F0, F1, I0, I1, Stream, Tape, W
from solver.ops import SPLIT, Op
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder

PERIOD = 6
"""Slots between one micro-batch's pattern and the next: F, I and W of two chunks."""


def require_split_v(problem: Problem, name: str) -> None:
    """UnsupportedProblem unless two chunks a device go forth and back, with backwards in halves."""
    require_routes(problem, Placement.wave(problem.devices), f"{name} needs two chunks a device, forth and back")
    require_split(problem, name)


def zb_v(problem: Problem) -> DeviceOrder:
    """No idle time between a device's first op and its last, at 1F1B's memory, balanced over the devices.

    Chunk 0 of device d is stage d, chunk 1 is stage 2P-1-d. The device runs 2(P-d)-1 times F0; d times F1 F0; P-d
    times F1 I1 W1; then F0 I0 W0 F1 I1 W1 in turn; d times I0 I1 once forwards are done; P-d times I0 and the W that
    waits longest; and the W left. With M < 2P-1 the ops of missing micro-batches are left out.

    Closed form: span M(F+I+W) and makespan M(F+I+W) + (P-1)F/2 with times of a whole device; peak 2P chunks = P
    activations on every device. Equal stages, no latency, F = I = W, M >= 2P-1, all memory held until W.

    Reference: Qi et al. 2023, Zero Bubble Pipeline Parallelism, 2401.10241, section 6.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=4, forward=2, input_grad=2, weight_grad=2)
    >>> print(ZB_V.schedule(model))
    0 | 0F00F10F23F03I03W03F13I13W10F30I00W03F23I23W20I10W13F33I33W30I20W20I30W3...
    1 | ...1F02F01F12F12I02W01F21I01W02F22I12W11F31I11W12F32I22W21I22I31I31W22W31W3
    """
    require_split_v(problem, "ZB-V")
    devices, micros = problem.devices, range(problem.microbatches)
    tapes = []
    for d in range(devices):
        tape = Tape(problem, Stream(d, micros), Stream(2 * devices - 1 - d, micros))
        tape.play(2 * (devices - d) - 1, F0)
        tape.play(d, F1, F0)
        tape.play(devices - d, F1, I1, W)
        tape.play(max(devices - 1, len(micros) - devices), F0, I0, W, F1, I1, W)
        tape.play(d, I0, I1)
        tape.play(devices - d, I0, W)
        tape.play(2 * d, W)
        tapes.append(tape)
    return DeviceOrder.of(tape.ops for tape in tapes)


def v_min(problem: Problem) -> DeviceOrder:
    """The V pattern of least memory, about a third of 1F1B's: offsets (1, 1) between neighbouring devices.

    See v_half for how the pattern is built.

    Closed form: makespan = span = M(F+I+W) + (4P-5) F/2, or (4P-3) F/2 where 3 divides P, near the paper's bubble of
    2P/3M; peak floor((P+4)/3) activations. Equal stages, F = I = W of a whole device, no latency, P > 1, M >= P, all
    memory held until W.

    Reference: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, 2405.15362, section 3.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=3, forward=2, input_grad=2, weight_grad=2)
    >>> print(V_MIN.schedule(model))
    0 | 0F0......3F03I03W00F10I00W03F13I13W10F20I10W13F23I23W2...0I20W2
    1 | ...1F02F0......2I01I01F12F12W01W02I11I11F22F22W11W12I21I22W21W2
    """
    return _repeated(problem, "V-Min", 1, 1)


def v_half(problem: Problem) -> DeviceOrder:
    """The V pattern at half of 1F1B's memory: offsets (2, 1) between neighbouring devices.

    One micro-batch's pattern is a slot for each of its six ops on each device: going down the devices a chunk's op
    comes the first offset later from one to the next, going up the second offset; F0 goes down, F1 up, I1 down, I0
    up. Where the direction turns it waits 1 to 6 slots, chosen so that no device needs a slot twice when the pattern
    repeats every 6 slots, and then for least memory and least waiting. W takes the first free slot after its I. Devices
    run their ops in the order of these slots, as early as they can (the paper's squeezing; it also reorders warm-up
    and cool-down, which is left out here).

    Closed form: makespan = span = M(F+I+W) + (7P-7) F/4, or (7P-4) F/4 for even P > 2, near the paper's bubble of
    P/2M; peak floor((P+2)/2) activations. Equal stages, F = I = W of a whole device, no latency, P > 2, M >= P, all
    memory held until W.

    Reference: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, 2405.15362, section 3.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=3, forward=2, input_grad=2, weight_grad=2)
    >>> print(V_HALF.schedule(model))
    0 | 0F0......3F00F13I03W03F10F2...0I03I13W13F20W0...0I13I23W20W1...0I20W2
    1 | ...1F02F0......1F12F12I02W01I01W01F22F22I12W11I11W1...2I22W21I21W2...
    """
    return _repeated(problem, "V-Half", 2, 1)


def v_zb(problem: Problem) -> DeviceOrder:
    """The V pattern at 1F1B's memory without idle time between micro-batches: offsets (4, 2) between devices.

    See v_half for how the pattern is built.

    Closed form: makespan = span = M(F+I+W) + (2P-3) F/2, all of it before the pattern is steady (the paper, which
    reorders warm-up, has none); peak P activations on every device. Equal stages, F = I = W of a whole device, no
    latency, P > 1, M >= 2P, all memory held until W.

    Reference: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, 2405.15362, section 3.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=3, forward=2, input_grad=2, weight_grad=2)
    >>> print(V_ZB.schedule(model))
    0 | 0F00F1...3F03I03W00F23F13I10I03W10W03F23I20I13W20W10I20W2
    1 | ...1F02F01F12F12I01I02W01W01F22F22I11I12W11W12I21I22W21W2
    """
    return _repeated(problem, "V-ZB", 4, 2)


class Slots(NamedTuple):
    """The slots of one micro-batch's six ops on one device."""

    f0: int
    f1: int
    i1: int
    i0: int
    w1: int
    w0: int


def building_block(devices: int, down: int, up: int) -> list[Slots]:
    """One micro-batch's slots on each device: of those that repeat without collision, the least memory, then wait.

    >>> building_block(2, down=1, up=1)
    [Slots(f0=0, f1=3, i1=4, i0=7, w1=5, w0=8), Slots(f0=1, f1=2, i1=5, i0=6, w1=9, w0=10)]
    """
    last, blocks = devices - 1, []
    for waits in product(range(1, PERIOD + 1), repeat=3):
        f1 = last * down + waits[0]
        i1 = f1 + last * up + waits[1]
        i0 = i1 + last * down + waits[2]
        block = [(d * down, f1 + (last - d) * up, i1 + d * down, i0 + (last - d) * up) for d in range(devices)]
        if all(len({slot % PERIOD for slot in row}) == len(row) for row in block):
            placed = [_with_weights(*row) for row in block]
            blocks.append((max(map(_peak, placed)), sum(waits), placed))
    return min(blocks)[-1]


def _with_weights(f0: int, f1: int, i1: int, i0: int) -> Slots:
    """Each W in one of the two slots left over in every period, soonest after the I's in sum."""
    a, b = {slot % PERIOD for slot in range(PERIOD)} - {slot % PERIOD for slot in (f0, f1, i1, i0)}
    choices = (Slots(f0, f1, i1, i0, _next(i1, w1), _next(i0, w0)) for w1, w0 in ((a, b), (b, a)))
    return min(choices, key=lambda slots: slots.w1 + slots.w0)


def _next(after: int, residue: int) -> int:
    return after + 1 + (residue - after - 1) % PERIOD


def _peak(slots: Slots) -> int:
    """Most chunks held at once when the pattern repeats for ever."""
    return max(
        sum(
            (now - first) // PERIOD + (last - now) // PERIOD + 1
            for first, last in ((slots.f0, slots.w0), (slots.f1, slots.w1))
        )
        for now in range(PERIOD)
    )


def _repeated(problem: Problem, name: str, down: int, up: int) -> DeviceOrder:
    """Every device in order of the slots of its pattern, repeated for each micro-batch."""
    require_split_v(problem, name)
    rows = []
    for device, slots in enumerate(building_block(problem.devices, down, up)):
        far = 2 * problem.devices - 1 - device
        row: list[tuple[int, list[Op]]] = []
        for m in range(problem.microbatches):
            forwards = [[forward(stage, m)] for stage in (device, far)]
            backwards = [[input_grad(problem, stage, m)] for stage in (far, device)]
            ops = [*forwards, *backwards, *(weight_grad(problem, stage, m) for stage in (far, device))]
            row += [(slot + PERIOD * m, op) for slot, op in zip(slots, ops, strict=True)]
        rows.append(flat(op for _, op in sorted(row, key=lambda pair: pair[0])))
    return DeviceOrder.of(rows)


ZB_V = Baseline("zb-v", zb_v, Placement.wave, SPLIT)
V_MIN = Baseline("v-min", v_min, Placement.wave, SPLIT)
V_HALF = Baseline("v-half", v_half, Placement.wave, SPLIT)
V_ZB = Baseline("v-zb", v_zb, Placement.wave, SPLIT, re_derived=True)
