"""Every schedule obeys every rule wherever it applies, and says which rule it needs where it does not."""

import pytest

from baselines import BASELINES, Baseline, get
from solver import (
    FUSED,
    SPLIT,
    Placement,
    Problem,
    ProblemError,
    Stage,
    UnsupportedProblem,
    Workload,
    metrics,
    simulate,
    violations,
)
from tests.baselines.models import applicable

OPTIONS: dict[str, list[dict[str, object]]] = {
    "kfkb": [{"k": 3}],
    "zb-heuristic": [{"limit": 2}],
    "interleaved": [{"chunks": 3}, {"group": 4}, {"lean_warmup": True}],
    "interleaved-zb": [{"chunks": 3, "group": 4}],
    "hanayo": [{"waves": 2}],
    "chimera": [{"forward_doubling": True}, {"backward_halving": True}],
}

variants = [(b, options) for name, b in BASELINES.items() for options in [{}, *OPTIONS.get(name, [])]]


@pytest.mark.parametrize(("baseline", "options"), variants, ids=[f"{b.name}-{o}" for b, o in variants])
def test_every_schedule_is_valid(baseline: Baseline, options: dict[str, object]):
    tried = 0
    for where, problem in applicable(baseline, **options):
        tried += 1
        assert violations(simulate(problem, baseline.order(problem, **options))) == [], where
    assert tried >= 16


@pytest.mark.parametrize("name", [name for name, b in BASELINES.items() if b.recipe == FUSED])
def test_a_fused_rule_runs_both_halves_of_a_split_backward_together(name: str):
    model = Workload.uniform(4, 8, 2, input_grad=2, weight_grad=2)
    fused = get(name).schedule(model)
    problem = model.problem(get(name).problem(model).placement, SPLIT)
    split = simulate(problem, get(name).order(problem))
    assert violations(split) == []
    assert metrics.makespan(split) <= metrics.makespan(fused)  # the gradient leaves a W earlier


@pytest.mark.parametrize("name", [name for name, b in BASELINES.items() if b.recipe == SPLIT])
def test_a_split_rule_needs_a_split_stage_and_takes_fused_ones_among_them(name: str):
    fused = Workload.uniform(4, 8)
    with pytest.raises(UnsupportedProblem, match="input_grad and weight_grad"):
        get(name).schedule(fused)
    placement = get(name).problem(Workload.uniform(4, 8, input_grad=1, weight_grad=1)).placement
    with pytest.raises(UnsupportedProblem, match="in two halves"):
        get(name).order(fused.problem(placement))
    stages = [Stage.fused(1, 2), *[Stage.split(1, 1, 1)] * (placement.stages - 1)]  # stage 0 as PyTorch runs it
    mixed = Problem.of(placement, 8, stages)
    assert violations(simulate(mixed, get(name).order(mixed))) == []


@pytest.mark.parametrize(
    ("name", "placement", "microbatches", "rule"),
    [
        ("naive", Placement.looped(4), 4, "stage s on device s"),
        ("gpipe", Placement.custom([[3, 2, 1, 0]]), 4, "stage s on device s"),
        ("1f1b", Placement.bidirectional(4), 4, "stage s on device s"),
        ("eager-1f1b", Placement.wave(4), 4, "stage s on device s"),
        ("kfkb", Placement.looped(4), 4, "stage s on device s"),
        ("zb-h1", Placement.wave(4), 4, "stage s on device s"),
        ("zb-h2", Placement.looped(4), 4, "stage s on device s"),
        ("zb-heuristic", Placement.bidirectional(4), 4, "stage s on device s"),
        ("interleaved", Placement.wave(4), 4, "stage s on device s mod P"),
        ("interleaved", Placement.linear(4), 4, "at least 2 chunks"),
        ("interleaved", Placement.looped(4), 3, "groups of N, P <= N <= M"),
        ("interleaved", Placement.looped(4), 6, "a last group of at least P"),
        ("interleaved-zb", Placement.looped(4), 3, "groups of N, P <= N <= M"),
        ("looped-bfs", Placement.linear(4), 4, "at least 2 chunks"),
        ("hanayo", Placement.looped(4), 4, "forth and back"),
        ("hanayo", Placement.wave(4, 3), 4, "an even number of chunks"),
        ("zb-v", Placement.looped(4), 4, "two chunks a device, forth and back"),
        ("v-min", Placement.linear(4), 4, "two chunks a device, forth and back"),
        ("v-half", Placement.wave(4, 4), 4, "two chunks a device, forth and back"),
        ("v-zb", Placement.looped(4), 4, "two chunks a device, forth and back"),
        ("dualpipe-v", Placement.linear(4), 8, "two chunks a device, forth and back"),
        ("dualpipe-v", Placement.wave(4), 7, "at least 2P micro-batches"),
        ("chimera", Placement.linear(4), 4, "two routes, down and up"),
        ("chimera", Placement.bidirectional(3), 4, "an even number of devices"),
        ("gems", Placement.wave(4), 4, "two routes, down and up"),
        ("dualpipe", Placement.linear(4), 8, "two routes, down and up"),
        ("dualpipe", Placement.bidirectional(3), 8, "an even number of devices"),
        ("dualpipe", Placement.bidirectional(4), 9, "an even number of micro-batches, at least 2P"),
        ("dualpipe", Placement.bidirectional(4), 6, "an even number of micro-batches, at least 2P"),
    ],
)
def test_where_a_schedule_does_not_apply_it_says_the_rule(
    name: str, placement: Placement, microbatches: int, rule: str
):
    model = Workload.uniform(placement.devices, microbatches, input_grad=1, weight_grad=1)
    with pytest.raises(UnsupportedProblem, match=rule):
        get(name).order(model.problem(placement))


@pytest.mark.parametrize(
    ("name", "options", "error", "text"),
    [
        ("kfkb", {"k": 0}, ProblemError, "k: must be a whole number of at least 1"),
        ("interleaved", {"group": 0}, ProblemError, "group: must be a whole number of at least 1"),
        ("interleaved", {"chunks": 1}, UnsupportedProblem, "at least 2 chunks"),
        ("hanayo", {"waves": 0}, ProblemError, "waves: must be a whole number of at least 1"),
        ("zb-heuristic", {"limit": "much"}, ProblemError, "limit: must be a finite number"),
        ("zb-heuristic", {"limit": 0.1}, UnsupportedProblem, "must hold one micro-batch"),
        ("chimera", {"forward_doubling": True, "backward_halving": True}, UnsupportedProblem, "not both"),
        ("chimera", {"backward_halving": True}, UnsupportedProblem, "M must be a multiple of 4"),
    ],
)
def test_an_option_that_makes_no_sense_is_an_error(name: str, options: dict[str, object], error: type, text: str):
    with pytest.raises(error, match=text):
        get(name).schedule(Workload.uniform(4, 6, input_grad=1, weight_grad=1), **options)
