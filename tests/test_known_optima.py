"""Proven optima of the linear, looped, wave and bidirectional placements, with their derivation or source.

P devices, M micro-batches, k activations a device's cap holds (in the problem's own stages). Numbers without another
source were proven by exhaustive search with independent models before.
"""

import math
from fractions import Fraction

import pytest

from solver import Placement, Problem, Result, Stage, Status, solve

UNIT = Stage.split(1, 1, 1)
DOUBLE = Stage.fused(1, 2)


def proven(problem: Problem, minimize: str | tuple[str, ...] = "makespan", seconds: float = 60) -> Result:
    result = solve(problem, minimize, time_limit=seconds, workers=2)
    assert result.status == Status.OPTIMAL
    return result


@pytest.mark.parametrize(("devices", "micros"), [(1, 5), (2, 1), (3, 5), (4, 8), (5, 3)])
@pytest.mark.parametrize("backward", [1, 2, 3])
def test_linear_without_cap(devices: int, micros: int, backward: int) -> None:
    # (M + P - 1)(F + B): GPipe (1811.06965) and 1F1B (1806.03377) meet it; the last device's way in, work and way out
    # take it.
    problem = Problem.of(Placement.linear(devices), micros, [Stage.fused(1, backward)] * devices)
    assert proven(problem).makespan == (micros + devices - 1) * (1 + backward)


def rounds(devices: int, micros: int, cap: int, both: int) -> int:
    """ceil(M/k) P (F+B) + (r-1)(F+B), r = M - k(ceil(M/k) - 1): k micro-batches go round and come back, then k more."""
    turns = math.ceil(micros / cap)
    return turns * devices * both + (micros - cap * (turns - 1) - 1) * both


@pytest.mark.parametrize(("cap", "best"), [(4, 33), (3, 39), (2, 51), (1, 96)])
def test_linear_under_a_cap(cap: int, best: int) -> None:
    problem = Problem.of(Placement.linear(4), 8, [DOUBLE] * 4, memory_cap=cap)
    assert rounds(4, 8, cap, 3) == best
    assert proven(problem).makespan == best


@pytest.mark.parametrize(
    ("devices", "micros", "cap"), [(2, 3, 1), (2, 5, 2), (3, 5, 2), (3, 6, 3), (4, 6, 3), (4, 5, 2)]
)
@pytest.mark.parametrize("backward", [1, 2])
def test_linear_under_a_cap_by_the_closed_form(devices: int, micros: int, cap: int, backward: int) -> None:
    problem = Problem.of(Placement.linear(devices), micros, [Stage.fused(1, backward)] * devices, memory_cap=cap)
    assert proven(problem).makespan == rounds(devices, micros, cap, 1 + backward)


@pytest.mark.parametrize(("cap", "best"), [(4, 27), (3, 31), (2, 41)])
def test_linear_split(cap: int, best: int) -> None:
    # (P-1)F + M(F+I+W) = 3 + 24 = 27 at cap P, which ZB-H1 meets (2401.10241); tighter caps by search.
    assert proven(Problem.of(Placement.linear(4), 8, [UNIT] * 4, memory_cap=cap)).makespan == best


def test_linear_split_longer_under_half_the_memory() -> None:
    # Zero Bubble's heuristic and its ILP reach 101 here, Tessel 67.
    assert proven(Problem.of(Placement.linear(6), 12, [UNIT] * 6, memory_cap=3)).makespan == 60


@pytest.mark.parametrize(
    ("latency", "share", "best"), [(6, "1/2", 6993), (6, "3/4", 5319), (6, "1", 4563), (60, "1", 5211)]
)
def test_profiled_split_times_under_tight_caps(latency: int, share: str, best: int) -> None:
    # F 185, I 181, W 93; a micro-batch holds 131, of which I frees 83 and W 48; the cap is a share of P of them.
    stage = Stage.split(185, 181, 93, 83, 48)
    problem = Problem.of(Placement.linear(4), 8, [stage] * 4, latency, Fraction(share) * 4 * 131)
    assert proven(problem).makespan == best


@pytest.mark.parametrize(("cap", "best"), [(8, 51), (6, 53), (5, 56), (4, 59)])
def test_v_placement(cap: int, best: int) -> None:
    # 6M + 6P - 3k - 1 where memory binds and k < 2M: 48 + 24 - 3k - 1; at k = 8 work binds: 3 + 48.
    problem = Problem.of(Placement.wave(4, 2), 8, [UNIT] * 8, memory_cap=cap)
    assert best == (71 - 3 * cap if cap < 8 else 51)
    assert proven(problem).makespan == best


def test_v_placement_with_few_microbatches() -> None:
    # The form above would say 12 + 24 - 12 - 1 = 23, but k < 2M fails.
    assert proven(Problem.of(Placement.wave(4, 2), 2, [UNIT] * 8, memory_cap=4)).makespan == 19


@pytest.mark.parametrize(("cap", "best"), [(11, 57), (8, 57), (6, 65)])
def test_looped(cap: int, best: int) -> None:
    # V = 2 chunks, times of a chunk: MV(F+B) + (P-1)(F+B) = 48 + 9 = 57 (2104.04473, section 2.2), where Megatron's
    # order holds VP + P - 1 = 11 chunks on device 0; 8 are enough.
    assert proven(Problem.of(Placement.looped(4, 2), 8, [DOUBLE] * 8, memory_cap=cap)).makespan == best


@pytest.mark.parametrize(
    ("devices", "micros", "cap", "best"),
    [(4, 4, 4, 16), (4, 4, None, 16), (8, 8, 8, 36), (8, 8, None, 36), (4, 8, 4, 28), (4, 8, 5, 27), (4, 8, None, 27)],
)
def test_bidirectional(devices: int, micros: int, cap: int | None, best: int) -> None:
    # Chimera (2107.06925) meets 16 and 36 at N = D; concatenated it takes 30 at P = 4, M = 8. The bound without a cap
    # is M(F+B) + (P/2-1)(F+B): 24 + 3 = 27.
    problem = Problem.of(Placement.bidirectional(devices), micros, [DOUBLE] * devices, memory_cap=cap)
    assert proven(problem).makespan == best


def test_zb_h1_is_optimal_for_equal_times_and_memory() -> None:
    # F = I = W = 1: (P-1)F + M(F+I+W) = 27 with P = 4 activations (2401.10241, section 2.3); at cap 3 it is 31.
    assert proven(Problem.of(Placement.linear(4), 8, [UNIT] * 4), ("makespan", "peak_memory")).objective == (27, 4)


def test_1f1b_holds_the_least_memory_at_the_best_makespan() -> None:
    # 33 = (8 + 4 - 1) x 3; at cap 3 it is 39, so 4 activations are the least.
    assert proven(Problem.of(Placement.linear(4), 8, [DOUBLE] * 4), ("makespan", "peak_memory")).objective == (33, 4)


@pytest.mark.slow
def test_bidirectional_eight_devices_under_a_cap() -> None:
    # Chimera concatenated takes 66.
    problem = Problem.of(Placement.bidirectional(8), 16, [DOUBLE] * 8, memory_cap=8)
    assert proven(problem, seconds=120).makespan == 60


@pytest.mark.slow
@pytest.mark.parametrize("cap", [16, 23])
def test_looped_eight_devices(cap: int) -> None:
    # MV(F+B) + (P-1)(F+B) = 96 + 21 = 117; Megatron's order holds VP + P - 1 = 23 chunks.
    problem = Problem.of(Placement.looped(8, 2), 16, [DOUBLE] * 16, memory_cap=cap)
    assert proven(problem, seconds=120).makespan == 117


def test_the_one_and_a_half_billion_preset_at_1f1bs_memory() -> None:
    # Zero Bubble's profiled times (2401.10241), µs: a micro-batch holds 34h + 5as, of which W frees 32h.
    h, a, s = 2304, 24, 1024
    activation = 34 * h + 5 * a * s
    stage = Stage.split(18522, 18086, 9337, activation - 32 * h, 32 * h)
    problem = Problem.of(Placement.linear(8), 24, [stage] * 8, 601, 8 * activation)
    assert proven(problem, seconds=120).makespan == 1310405
