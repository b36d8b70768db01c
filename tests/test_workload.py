from fractions import Fraction
from itertools import combinations, pairwise

import pytest

from solver import FUSED, SPLIT, OpKind, Placement, Problem, ProblemError, Stage, UnsupportedProblem, Workload
from solver.workload import balanced_cuts, workload_of

LAYERS = [Stage.fused(1, 2, 1, 3)] * 5 + [Stage.fused(4, 8, 2, 9)]


def totals(problem: Problem) -> tuple[Fraction, Fraction, Fraction]:
    """Work of one micro-batch, its activations and the static memory of one copy."""
    stages = problem.stages
    return (
        sum((t for s in stages for t in s.times), Fraction(0)),
        sum((s.activation for s in stages), Fraction(0)),
        sum((s.static for s in stages), Fraction(0)),
    )


@pytest.mark.parametrize(
    "placement",
    [Placement.linear(4), Placement.looped(4, 3), Placement.wave(4, 2), Placement.bidirectional(4)],
    ids=str,
)
def test_one_model_costs_the_same_on_every_placement(placement: Placement) -> None:
    model = Workload.uniform(devices=4, microbatches=3, forward=1, backward=2, activation=5, static=7)
    assert totals(model.problem(placement)) == (12, 20, 28)  # 4 x (1 + 2), 4 x 5, 4 x 7


def test_a_stage_becomes_consecutive_chunks_of_equal_parts() -> None:
    # Rule 12: stage j turns into stages jV..jV+V-1 with 1/V each.
    model = Workload.of([Stage.fused(2, 4, 6, 8), Stage.fused(10, 20, 30, 40)], 2, 3)
    problem = model.problem(Placement.wave(2, 2))
    assert problem.stages == (Stage.fused(1, 2, 3, 4),) * 2 + (Stage.fused(5, 10, 15, 20),) * 2
    assert problem.placement.routes == ((0, 1, 1, 0),)


def test_chunks_merge_back_to_stages() -> None:
    model = Workload.of([Stage.fused(2, 4, 6, 8), Stage.fused(10, 20, 30, 40)], 2, 3)
    for placement in (Placement.wave(2, 2), Placement.looped(2, 3)):
        again = workload_of(model.problem(placement)).problem(Placement.linear(2))
        assert again.stages == model.problem(Placement.linear(2)).stages


def test_two_stages_become_three_by_thirds() -> None:
    # Three parts of each stage make six, two a new stage: 2/3 of stage 0 | 1/3 of each | 2/3 of stage 1.
    model = Workload.of([Stage.fused(3, 6), Stage.fused(6, 12)], 3, 1)
    assert model.problem(Placement.linear(3)).stages == (
        Stage.fused(2, 4, "2/3"),
        Stage.fused(1 + 2, 2 + 4, "2/3"),
        Stage.fused(4, 8, "2/3"),
    )


def test_recipes_become_fused_and_never_split() -> None:
    model = Workload.uniform(devices=2, microbatches=3, forward=1, input_grad=2, weight_grad=3, activation=4)
    assert model.problem(Placement.linear(2), FUSED).stages == (Stage.fused(1, 5, 4),) * 2
    assert model.problem(Placement.linear(2), SPLIT).recipes == {SPLIT}
    fused = Workload.uniform(devices=2, microbatches=3)
    with pytest.raises(UnsupportedProblem, match="no known halves"):
        fused.problem(Placement.linear(2), SPLIT)


def test_mixed_stages_merge_to_fused_and_cut_as_they_are() -> None:
    model = Workload.of([Stage.fused(2, 4), Stage.split(2, 2, 2)], 2, 1)
    assert [s.recipe for s in model.problem(Placement.looped(2, 2)).stages] == [FUSED, FUSED, SPLIT, SPLIT]
    one = Workload.of(model.pieces, 1, 1).problem(Placement.linear(1))
    assert one.stages == (Stage.fused(4, 8, 2),)


def test_caps_and_names_travel_and_can_be_replaced() -> None:
    model = Workload.uniform(devices=2, microbatches=3, memory_cap=4, latency="1/2", name="mine")
    problem = model.problem(Placement.linear(2))
    assert (problem.memory_cap, problem.latency[0][1], problem.name) == ((4, 4), Fraction(1, 2), "mine")
    assert model.problem(Placement.linear(2), memory_cap=[2, "none"]).memory_cap == (2, None)


def test_another_number_of_microbatches() -> None:
    model = Workload.uniform(devices=2, microbatches=3)
    assert model.with_microbatches(7).problem(Placement.linear(2)).microbatches == 7
    with pytest.raises(ProblemError, match="microbatches"):
        model.with_microbatches(0)


def test_a_placement_for_other_devices_does_not_apply() -> None:
    with pytest.raises(UnsupportedProblem, match="3 devices, the model is on 2"):
        Workload.uniform(devices=2, microbatches=3).problem(Placement.linear(3))


@pytest.mark.parametrize("seed", range(20))
def test_layers_are_cut_so_that_the_largest_stage_is_least(seed: int) -> None:
    times = [Fraction((seed * 7 + i * i * 5) % 11) for i in range(7)]
    for count in range(1, 8):
        cuts = balanced_cuts(times, count)
        runs = [times[a:b] for a, b in pairwise(cuts)]
        assert all(runs)
        assert [t for run in runs for t in run] == times
        every = [(0, *inner, 7) for inner in combinations(range(1, 7), count - 1)]
        best = min(max(sum(times[a:b]) for a, b in pairwise(c)) for c in every)
        assert max(map(sum, runs)) == best


def test_layers_stay_whole() -> None:
    # Layer times 3 3 3 3 3 12: the largest of two stages is 15 at best, of four 12, the last layer alone.
    model = Workload.from_layers(LAYERS, 2, 4)
    two, four = model.problem(Placement.linear(2)).stages, model.problem(Placement.looped(2, 2)).stages
    assert max(sum(s.times) for s in two) == 15
    assert max(sum(s.times) for s in four) == 12
    assert four[3] == LAYERS[5]
    assert sum(s.static for s in four) == 5 * 3 + 9
    with pytest.raises(UnsupportedProblem, match="6 layers cannot fill 8 stages"):
        model.problem(Placement.looped(2, 4))


def test_an_explicit_split_holds_where_it_fits() -> None:
    model = Workload.from_layers(LAYERS, 2, 4, split=[1, 5])
    assert model.problem(Placement.linear(2)).stages[0] == LAYERS[0]
    assert max(sum(s.times) for s in model.problem(Placement.looped(2, 2)).stages) == 12


@pytest.mark.parametrize("split", [[3, 2], [0, 6], [7, -1], [6.5, 1], 6, "33"])
def test_a_wrong_split_is_refused(split: object) -> None:
    with pytest.raises(ProblemError, match="split"):
        Workload.from_layers(LAYERS, 2, 4, split=split)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"devices": 0}, r"devices\.count"),
        ({"devices": 10**30}, r"devices\.count"),
        ({"microbatches": 0}, "microbatches"),
        ({"microbatches": 1.5}, "microbatches"),
        ({"forward": "x"}, r"time\.forward"),
        ({"backward": -1}, r"time\.backward"),
        ({"activation": float("inf")}, r"memory\.activation"),
        ({"latency": [1, 2]}, r"devices\.latency"),
        ({"memory_cap": [1]}, r"devices\.memory_cap"),
        ({"input_grad": 1}, "both input_grad and weight_grad"),
        ({"input_grad": 1, "weight_grad": 1, "backward": 2}, "either backward, or both"),
    ],
)
def test_wrong_values_are_named(options: dict, rule: str) -> None:
    with pytest.raises(ProblemError, match=rule):
        Workload.uniform(**{"devices": 2, "microbatches": 3, **options})


def test_a_model_has_pieces() -> None:
    with pytest.raises(ProblemError, match="at least one stage"):
        Workload.of([], 2, 3)


def test_uniform_split_holds_until_the_weight_gradient() -> None:
    stage = Workload.uniform(2, 1, input_grad=1, weight_grad=1, activation=3).pieces[0]
    assert stage == Stage.split(1, 1, 1, 0, 3, 0)
    assert stage.time(OpKind.B) is None
