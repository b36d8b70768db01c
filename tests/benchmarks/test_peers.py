import pytest

from baselines import BASELINES
from benchmarks.peers import ENGINES, check_settings, switches_of
from benchmarks.suite import SolverSettings
from solver import Placement, ProblemError, Status, Workload, metrics, solve, validate

SPLIT_MODEL = Workload.uniform(2, 3, forward=2, input_grad=3, weight_grad=1, latency=1)
FUSED_MODEL = Workload.uniform(2, 2, forward=1, backward=2)


def test_textbook_is_every_strengthening_off_and_a_start_is_still_used():
    cold = switches_of(SolverSettings(textbook=True))
    warm = switches_of(SolverSettings(textbook=True, start="1f1b"))
    assert not any(vars(cold).values())
    assert [name for name, on in vars(warm).items() if on] == ["warm_starts"]
    assert [name for name, on in vars(switches_of(SolverSettings(without=("bounds",)))).items() if not on] == ["bounds"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (SolverSettings(engine="cbc"), "solver.engine: unknown 'cbc'"),
        (SolverSettings(minimize=("energy",)), "solver.minimize"),
        (SolverSettings(without=("luck",)), "solver.without"),
        (SolverSettings(engine="zb-ilp", minimize=("peak_memory",)), "makespan or span"),
        (SolverSettings(start="2f2b"), "2f2b"),
    ],
)
def test_settings_that_do_not_exist_are_named(settings, message):
    with pytest.raises(ProblemError, match=message):
        check_settings(settings)


@pytest.mark.parametrize("minimize", ["makespan", "span"])
@pytest.mark.parametrize(
    ("model", "placement", "cap"),
    [
        (SPLIT_MODEL, Placement.linear(2), 1),
        (SPLIT_MODEL, Placement.linear(2), 2),
        (SPLIT_MODEL.with_microbatches(2), Placement.wave(2), "1.5"),
        (FUSED_MODEL, Placement.looped(2), 1),
        (FUSED_MODEL, Placement.bidirectional(2), 2),
        (FUSED_MODEL, Placement.linear(2), None),
    ],
    ids=["split-linear-1", "split-linear-2", "split-wave", "fused-looped", "fused-bidirectional", "fused-linear"],
)
@pytest.mark.parametrize("engine", ["textbook", "zb-ilp"])
def test_the_peers_and_the_solver_agree(engine, model, placement, cap, minimize):
    if engine == "zb-ilp":
        pytest.importorskip("highspy", reason="HiGHS is not installed: the Zero Bubble ILP is not tried")
    problem = model.problem(placement, memory_cap=cap)
    outcome = ENGINES[engine](problem, SolverSettings(engine=engine, minimize=(minimize,), time_limit=60), ())
    validate(outcome.schedule)
    assert outcome.status is Status.OPTIMAL
    assert metrics.METRICS[minimize].in_units(problem, metrics.METRICS[minimize].ticks(outcome.schedule)) == (
        solve(problem, minimize=minimize).objective
    )


@pytest.mark.parametrize("engine", ["textbook", "zb-ilp"])
def test_a_start_is_not_lost(engine):
    if engine == "zb-ilp":
        pytest.importorskip("highspy", reason="HiGHS is not installed: the Zero Bubble ILP is not tried")
    problem = SPLIT_MODEL.problem(Placement.linear(2), memory_cap=2)
    start = BASELINES["zb-h1"].schedule(SPLIT_MODEL)
    outcome = ENGINES[engine](problem, SolverSettings(engine=engine, time_limit=1), (start,))
    assert outcome.schedule is not None
    assert metrics.makespan(outcome.schedule) <= metrics.makespan(start)
