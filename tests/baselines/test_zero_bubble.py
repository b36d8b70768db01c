"""Zero Bubble's published numbers: bubbles of the span on its four profiled models, and its heuristic under caps."""

from random import Random

import pytest

from baselines import get
from solver import Placement, Problem, Stage, Workload, metrics, simulate, violations
from solver.memory import one_microbatch_peaks
from tests.published import PRESETS, TIGHT_CAPS, Preset, TightCap


@pytest.mark.parametrize("preset", PRESETS, ids=str)
@pytest.mark.parametrize("name", ["1f1b", "zb-h1", "zb-h2"])
def test_published_bubbles_of_the_presets_to_four_digits(preset: Preset, name: str):
    schedule = get(name).schedule(preset.workload())
    assert round(metrics.bubble_ratio_span(schedule), 4) == preset.bubbles[name]


@pytest.mark.parametrize("preset", PRESETS, ids=str)
@pytest.mark.parametrize(("limit", "column"), [(1, "zb-1p"), (2, "zb-2p")])
def test_the_heuristic_is_no_worse_than_published(preset: Preset, limit: int, column: str):
    schedule = get("zb-heuristic").schedule(preset.workload(), limit=limit)
    assert round(metrics.bubble_ratio_span(schedule), 4) <= preset.bubbles[column]
    assert max(metrics.peak_memory(schedule)) <= limit * preset.devices * preset.activation


@pytest.mark.parametrize("case", TIGHT_CAPS, ids=str)
def test_the_heuristic_under_a_cap_is_no_worse_than_zero_bubbles_own(case: TightCap):
    schedule = get("zb-heuristic").schedule(case.workload)
    assert violations(schedule) == []
    assert metrics.makespan(schedule) <= case.heuristic
    assert metrics.makespan(schedule) >= (case.optimum or 0)


def test_the_default_limit_is_the_cap_or_else_p_activations():
    model = Workload.uniform(4, 12, input_grad=1, weight_grad=1)
    capped = Workload.uniform(4, 12, input_grad=1, weight_grad=1, memory_cap=6)
    heuristic = get("zb-heuristic")
    assert max(metrics.peak_memory(heuristic.schedule(model))) == 4
    assert max(metrics.peak_memory(heuristic.schedule(capped))) == 6
    assert max(metrics.peak_memory(heuristic.schedule(capped, limit=1))) == 4


def test_zb_h1_at_11_11_8():
    # P=8, M=24: work 24 * 30 = 720 and idle 7 (11 + 11 - 8) = 98
    schedule = get("zb-h1").schedule(Workload.uniform(8, 24, 11, input_grad=11, weight_grad=8))
    assert metrics.makespan(schedule) == 818


def random_problem(random: Random) -> Problem:
    """Unequal stages, one in six running both halves as one, with caps from one micro-batch's need up to six more."""
    devices, micros, latency = random.randint(1, 5), random.randint(1, 9), random.randint(0, 3)
    stages = [Stage.split(*(random.randint(1, 4) for _ in range(3)), *(random.randint(0, 3) for _ in range(4)))]
    for _ in range(devices - 1):
        times, sizes = [random.randint(1, 4) for _ in range(3)], [random.randint(0, 3) for _ in range(4)]
        split = random.random() < 5 / 6
        stages.append(Stage.split(*times, *sizes) if split else Stage.fused(*times[:2], *sizes[:2]))
    free = Problem.of(Placement.linear(devices), micros, stages, latency)
    caps = [int(need) * free.memory_unit + random.randint(0, 6) for need in one_microbatch_peaks(free)]
    return Problem.of(Placement.linear(devices), micros, stages, latency, caps)


def test_the_heuristic_finds_a_schedule_within_any_cap():
    random = Random(0)
    for _ in range(200):
        problem = random_problem(random)
        assert violations(simulate(problem, get("zb-heuristic").order(problem))) == []
