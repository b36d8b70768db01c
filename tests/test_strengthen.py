"""What the search adds to the textbook model changes no optimum: each switch off, and all of them."""

from random import Random

import pytest

from solver import Placement, Problem, Stage, Status, solve
from solver.cpsat.switches import Switches
from solver.metrics import METRICS
from tests.instances import random_problem
from tests.oracles import oracle

VARIANTS = {name: Switches().without(name) for name in Switches.names()} | {"textbook": Switches.textbook()}


def only(name: str) -> Switches:
    textbook = {other: other == name for other in Switches.names()}
    return Switches(**textbook)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(25))
def test_each_switched_off_finds_what_brute_force_finds(seed: int, variant: str) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=10)
    metric = rng.choice(list(METRICS))
    result = solve(problem, metric, workers=1, switches=VARIANTS[variant])
    assert (result.status, result.claims[0].value) == (Status.OPTIMAL, oracle(problem, metric))


@pytest.mark.parametrize("name", Switches.names())
@pytest.mark.parametrize("seed", range(100, 120))
def test_each_alone_finds_what_brute_force_finds(seed: int, name: str) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=10)
    metric = rng.choice(list(METRICS))
    result = solve(problem, metric, workers=1, switches=only(name))
    assert (result.status, result.claims[0].value) == (Status.OPTIMAL, oracle(problem, metric))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(200, 210))
def test_under_limits_too(seed: int, variant: str) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=8)
    metric, other = rng.sample(list(METRICS), 2)
    limit = max(0, oracle(problem, other) + rng.choice([-1, 0, 1]))
    expected = oracle(problem, metric, {other: limit})
    units = {other: METRICS[other].in_units(problem, limit)}
    result = solve(problem, metric, subject_to=units, workers=1, switches=VARIANTS[variant])
    assert result.claims[-1].value == expected
    assert result.status == (Status.INFEASIBLE if expected is None else Status.OPTIMAL)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(300, 306))
def test_ops_of_no_duration_too(seed: int, variant: str) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=5, longest=2, zeros=True)
    metric = rng.choice(list(METRICS))
    result = solve(problem, metric, workers=1, switches=VARIANTS[variant])
    assert (result.status, result.claims[0].value) == (Status.OPTIMAL, oracle(problem, metric))


@pytest.mark.parametrize("variant", ["none", "neighbourhoods", "relaxations", "warm_starts", "bounds"])
@pytest.mark.parametrize("seed", range(400, 420))
def test_what_large_problems_go_through_first(seed: int, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows and relaxations to some devices, here on problems small enough for brute force."""
    monkeypatch.setattr("solver.search.SMALL", 0)
    rng = Random(seed)
    problem = random_problem(rng, max_ops=12)
    switches = Switches() if variant == "none" else Switches().without(variant)
    result = solve(problem, workers=rng.choice([1, 2]), switches=switches)
    assert (result.status, result.claims[0].value) == (Status.OPTIMAL, oracle(problem))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("cap", "best"), [(3, 21), (2, 27), (1, 45)])
def test_a_tight_pipeline(variant: str, cap: int, best: int) -> None:
    # ceil(M/k) P (F+B) + (r-1)(F+B) with r = M - k(ceil(M/k) - 1), see test_known_optima; P = 3, M = 5, F = 1, B = 2:
    # 2 x 9 + 1 x 3, 3 x 9 + 0, 5 x 9 + 0.
    problem = Problem.of(Placement.linear(3), 5, [Stage.fused(1, 2)] * 3, memory_cap=cap)
    result = solve(problem, workers=1, time_limit=30, switches=VARIANTS[variant])
    assert (result.status, result.makespan) == (Status.OPTIMAL, best)


def test_every_switch_says_what_it_does() -> None:
    for name in Switches.names():
        assert f"``{name}``:" in (Switches.__doc__ or "")
        assert getattr(Switches(), name)
        assert not getattr(Switches().without(name), name)
        assert not getattr(Switches.textbook(), name)
