"""Zero Bubble's published numbers: bubbles of the span on its four profiled models, and its heuristic under caps."""

import pytest

from baselines import get
from solver import Workload, metrics, violations
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
