"""DualPipe and DualPipeV: two streams of micro-batches, the forward of one paired with the backward of the other."""

from __future__ import annotations

from baselines.bidirectional import require_even_devices, require_two_routes
from baselines.registry import Baseline
from baselines.steps import require, require_routes, require_split
from baselines.tape import F0, F1, I0, I1, Stream, Tape, W
from solver.ops import SPLIT
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder


def dualpipe(problem: Problem) -> DeviceOrder:
    """Micro-batches enter from both ends, and each forward of one direction is paired with a backward of the other.

    On a device of half rank h = min(d, P-1-d), stream 0 enters from its own end and stream 1 from the far one; with
    H = P/2 and n = M/2 it runs 2(H-h-1) times F0; h+1 times F0 F1; H-h-1 times I1 W1 F1; n-P+h+1 times F0 B1 F1 B0;
    H-h-1 times B1 F1 B0; h+1 times B1 B0, the last half of these backwards without their W; H-h-1 times W I0; and
    the h+1 W left. The paper overlaps the ops of a pair such as F0 B1; here they run one after the other.

    Closed form: makespan = span = M(F+I+W) + (P/2-1)(F+I-W); peak P+1 activations on every device, two copies of the
    weights. The repository counts idle (P/2-1)(F&B + B - 3W) with an overlapped pair F&B, where B = I+W: I more than
    here, as a pair there passes nothing on before both its parts are done. Equal stages, no latency, W <= I <= F <= B,
    even P, even M >= 2P, all memory held until W.

    Reference: DeepSeek-AI 2024, DeepSeek-V3 Technical Report, 2412.19437, section 3.2.1, and the DualPipe code.

    >>> from solver import Workload
    >>> print(DUALPIPE.schedule(Workload.uniform(devices=2, microbatches=6, input_grad=1, weight_grad=1)))
    0 | 0F01F10F21I11W11F30I00W00F41I31W31F50I20W21I51W50I40W4
    1 | 0F11F00F31I01W01F20I10W10F51I21W21F40I30W31I41W40I50W5
    """
    require_two_routes(problem, "DualPipe")
    require_even_devices(problem, "DualPipe")
    require_split(problem, "DualPipe")
    devices, micros = problem.devices, problem.microbatches
    require(micros % 2 == 0 and micros >= 2 * devices, "DualPipe needs an even number of micro-batches, at least 2P")
    tapes = []
    for d in range(devices):
        down, up = Stream(d, range(0, micros, 2)), Stream(devices - 1 - d, range(1, micros, 2))
        near, far = (down, up) if d < devices // 2 else (up, down)
        tapes.append(_record(Tape(problem, near, far), min(d, devices - 1 - d), devices // 2, micros // 2))
    return DeviceOrder.of(tape.ops for tape in tapes)


def dualpipe_v(problem: Problem) -> DeviceOrder:
    """DualPipe cut in half: the second direction is each micro-batch's own way back through a V placement.

    As DualPipe with P for its H, device d for its h, M for its n, and chunk 0 and 1 of a device for its two streams.

    Closed form: makespan = span = M(F+I+W) + (P-1)(F+I-W)/2 with times of a whole device; peak 2P+1 chunks on every
    device. The repository counts idle (P-1)(F&B + B - 3W) in chunk times, I more than here, see dualpipe. Equal
    stages, no latency, W <= I <= F <= I+W, M >= 2P, all memory held until W.

    Reference: DeepSeek-AI 2025, the DualPipe repository (DualPipeV), after Qi et al. 2025, "cut in half".

    >>> from solver import Workload
    >>> model = Workload.uniform(devices=2, microbatches=4, forward=2, input_grad=2, weight_grad=2)
    >>> print(DUALPIPE_V.schedule(model))
    0 | 0F00F10F23F03I03W03F10F33I13W13F20I00W03I23W23F30I10W13I33W30I20W2...0I30W3
    1 | ...1F02F01F12F11F22I02W02F21I01W01F32I12W12F31I11W12I22W21I21W22I31I32W31W3
    """
    devices, micros = problem.devices, problem.microbatches
    require_routes(problem, Placement.wave(devices), "DualPipeV needs two chunks a device, forth and back")
    require_split(problem, "DualPipeV")
    require(micros >= 2 * devices, "DualPipeV needs at least 2P micro-batches")
    tapes = []
    for d in range(devices):
        out, back = Stream(d, range(micros)), Stream(2 * devices - 1 - d, range(micros))
        tapes.append(_record(Tape(problem, out, back), d, devices, micros))
    return DeviceOrder.of(tape.ops for tape in tapes)


def _record(tape: Tape, rank: int, half: int, micros: int) -> Tape:
    """The eight steps of one device: ``rank`` devices from where stream 0 enters, ``micros`` a stream."""
    inner, outer = half - rank - 1, rank + 1
    tape.play(2 * inner, F0)
    tape.play(outer, F0, F1)
    tape.play(inner, I1, W, F1)
    tape.play(micros - 2 * half + outer, F0, I1, W, F1, I0, W)
    tape.play(inner, I1, W, F1, I0, W)
    for turn, cue in enumerate((I1, I0) * outer):
        tape.play(1, cue, *([W] if turn < outer else []))
    tape.play(inner, W, I0)
    tape.play(outer, W)
    return tape


DUALPIPE = Baseline("dualpipe", dualpipe, Placement.bidirectional, SPLIT)
DUALPIPE_V = Baseline("dualpipe-v", dualpipe_v, Placement.wave, SPLIT)
