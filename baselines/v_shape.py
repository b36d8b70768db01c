"""Two chunks a device on a V, backward in halves: ZB-V, and the V schedules of controllable memory."""

from __future__ import annotations

from baselines.registry import Baseline
from baselines.steps import flat, require_routes, require_split, work
from baselines.tape import F0, F1, I0, I1, Stream, Tape, W
from baselines.v_pattern import building_block, squeezed
from solver.ops import SPLIT
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder


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

    See v_half for how the pattern is built and squeezed.

    Closed form: makespan = span = M(F+I+W) + (4P-5) F/2, less F/2 where P mod 3 = 2, near the paper's bubble of 2P/3M;
    peak floor((P+4)/3) activations. Equal stages, F = I = W of a whole device, no latency, P > 3, M >= P, all memory
    held until W.

    Reference: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, 2405.15362, section 3.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=3, forward=2, input_grad=2, weight_grad=2)
    >>> print(V_MIN.schedule(model))
    0 | 0F00F10F23F03I03W03F10I00W03I13W1...0I10W13F23I23W2...0I20W2
    1 | ...1F02F01F12F12I01I02W01W01F22I11I12F22W11W1...2I21I22W21W2
    """
    return _repeated(problem, "V-Min", 1, 1)


def v_half(problem: Problem) -> DeviceOrder:
    """The V pattern at half of 1F1B's memory: offsets (2, 1) between neighbouring devices.

    One micro-batch's pattern is a slot for each of its six ops on each device: going down the devices a chunk's op
    comes the first offset later from one to the next, going up the second offset; F0 goes down, F1 up, I1 down, I0
    up. Where the direction turns it waits 1 to 6 slots, chosen so that no device needs a slot twice when the pattern
    repeats every 6 slots, then for least memory, least waiting, and waiting at the first turn. W takes the first free
    slot after its I.

    The repeated pattern is squeezed: in order of slots, each op moves to the first free slot of its device after what
    it depends on, a forward only as far as the pattern's own peak memory allows.

    Closed form: makespan = span = M(F+I+W) + (7P-12) F/4, or (7P-9) F/4 for odd P, near the paper's bubble of P/2M;
    peak floor((P+2)/2) activations. Equal stages, F = I = W of a whole device, no latency, P > 2, M >= P, all memory
    held until W.

    Reference: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, 2405.15362, section 3.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=3, forward=2, input_grad=2, weight_grad=2)
    >>> print(V_HALF.schedule(model))
    0 | 0F00F10F23F03I03W03F10I00W03I13W13F23I20I10W13W2...0I20W2
    1 | ...1F02F01F12F12I01I02W01F21W02F22I11I12W11W12I21I22W21W2
    """
    return _repeated(problem, "V-Half", 2, 1)


def v_zb(problem: Problem) -> DeviceOrder:
    """The V pattern at 1F1B's memory without idle time between micro-batches: offsets (4, 2) between devices.

    See v_half for how the pattern is built and squeezed.

    Closed form: makespan = span = M(F+I+W) + (2P-3) F/2, all of it before the pattern is steady (the paper has none
    in the span; zb_v, with a warm-up of its own at the same memory, has none); peak P activations on every device.
    Equal stages, F = I = W of a whole device, no latency, P > 1, M >= 2P, all memory held until W.

    Reference: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, 2405.15362, section 3.

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=3, forward=2, input_grad=2, weight_grad=2)
    >>> print(V_ZB.schedule(model))
    0 | 0F00F10F23F03I03W03F13I10I03W10W03F23I20I13W20W1...0I20W2
    1 | ...1F02F01F12F12I01I02W01W01F22F22I11I12W11W12I21I22W21W2
    """
    return _repeated(problem, "V-ZB", 4, 2)


def _repeated(problem: Problem, name: str, down: int, up: int) -> DeviceOrder:
    """Every device in order of the slots of its pattern, repeated for each micro-batch and squeezed."""
    require_split_v(problem, name)
    rows = squeezed(building_block(problem.devices, down, up), problem.microbatches)
    last = 2 * problem.devices - 1
    return DeviceOrder.of(
        flat(work(problem, kind, last - device if chunk else device, m) for kind, chunk, m in row)
        for device, row in enumerate(rows)
    )


ZB_V = Baseline("zb-v", zb_v, Placement.wave, SPLIT)
V_MIN = Baseline("v-min", v_min, Placement.wave, SPLIT)
V_HALF = Baseline("v-half", v_half, Placement.wave, SPLIT)
V_ZB = Baseline("v-zb", v_zb, Placement.wave, SPLIT, re_derived=True)
