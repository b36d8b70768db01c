"""Every schedule obeys every rule wherever it applies, and says which rule it needs where it does not."""

import pytest

from baselines import BASELINES, Baseline, get
from solver import SPLIT, Placement, UnsupportedProblem, Workload, simulate, violations
from tests.baselines.models import applicable

OPTIONS = {
    "interleaved": [{"chunks": 3}, {"group": 4}],
}

variants = [(b, options) for name, b in BASELINES.items() for options in [{}, *OPTIONS.get(name, [])]]


@pytest.mark.parametrize(("baseline", "options"), variants, ids=[f"{b.name}-{o}" for b, o in variants])
def test_every_schedule_is_valid(baseline: Baseline, options: dict[str, object]):
    tried = 0
    for where, problem in applicable(baseline, **options):
        tried += 1
        assert violations(simulate(problem, baseline.order(problem, **options))) == [], where
    assert tried >= 20


@pytest.mark.parametrize("name", ["naive", "gpipe", "1f1b", "interleaved", "chimera"])
def test_a_fused_rule_runs_both_halves_of_a_split_backward_together(name: str):
    model = Workload.uniform(4, 8, 2, input_grad=2, weight_grad=2)
    fused = get(name).schedule(model)
    split = model.problem(get(name).problem(model).placement, SPLIT)
    assert max(simulate(split, get(name).order(split)).ends.ravel()) <= max(fused.ends.ravel())


@pytest.mark.parametrize(
    ("name", "placement", "microbatches", "rule"),
    [
        ("naive", Placement.looped(4), 4, "stage s on device s"),
        ("gpipe", Placement.custom([[3, 2, 1, 0]]), 4, "stage s on device s"),
        ("1f1b", Placement.bidirectional(4), 4, "stage s on device s"),
        ("interleaved", Placement.wave(4), 4, "stage s on device s mod P"),
        ("interleaved", Placement.linear(4), 4, "at least 2 chunks"),
        ("interleaved", Placement.looped(4), 3, "groups of N, P <= N <= M"),
        ("interleaved", Placement.looped(4), 6, "a last group of at least P"),
        ("chimera", Placement.linear(4), 4, "two routes, down and up"),
        ("chimera", Placement.bidirectional(3), 4, "an even number of devices"),
    ],
)
def test_where_a_schedule_does_not_apply_it_says_the_rule(
    name: str, placement: Placement, microbatches: int, rule: str
):
    problem = Workload.uniform(placement.devices, microbatches).problem(placement)
    with pytest.raises(UnsupportedProblem, match=rule):
        get(name).order(problem)
