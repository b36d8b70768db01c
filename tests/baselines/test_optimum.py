"""No schedule beats what is proven for its own placement and memory."""

from dataclasses import replace
from fractions import Fraction

import pytest

from baselines import BASELINES, Baseline, get
from solver import FUSED, Problem, Schedule, Workload, metrics, simulate, violations
from solver.bounds import lower_bound
from solver.solve import solve
from tests.baselines.models import applicable, model

every_baseline = pytest.mark.parametrize("baseline", BASELINES.values(), ids=list(BASELINES))


def within_own_memory(schedule: Schedule) -> Problem:
    """The schedule's problem with its own largest device peak as every device's cap."""
    cap = Fraction(max(metrics.peak_memory(schedule)))
    return replace(schedule.problem, memory_cap=(cap,) * schedule.problem.devices)


@every_baseline
def test_no_schedule_beats_the_bound_of_its_placement_and_memory(baseline: Baseline):
    for where, problem in applicable(baseline, counts=(2, 4)):
        schedule = simulate(problem, baseline.order(problem))
        assert lower_bound(within_own_memory(schedule)).value <= metrics.makespan_ticks(schedule), where


@every_baseline
@pytest.mark.parametrize("trait", ["equal", "unequal"])
def test_no_schedule_beats_the_proven_optimum_of_its_placement_and_memory(baseline: Baseline, trait: str):
    size = (3, 6) if baseline.recipe == FUSED and baseline.name != "chimera" else (2, 4)
    equal = Workload.uniform(*size, 2, input_grad=3, weight_grad=1)
    schedule = baseline.schedule(equal if trait == "equal" else model(2, 4, trait))
    problem = within_own_memory(schedule)
    assert violations(Schedule(problem, schedule.starts)) == []
    result = solve(problem, time_limit=20, workers=1)
    assert result.status.name == "OPTIMAL"
    assert result.makespan is not None
    assert result.makespan <= metrics.makespan(schedule)


@pytest.mark.parametrize(("name", "k"), [("naive", 1), ("1f1b", 4), ("gpipe", 4)])
def test_linear_schedules_that_meet_the_optimum_at_their_memory(name: str, k: int):
    # Theory, cap k <= P activations: ceil(M/k) P (F+B) + (r-1)(F+B) with r = M - k (ceil(M/k) - 1). GPipe holds more
    # than it needs: its time is the optimum at P = 4 activations already.
    for micros in range(4, 13):
        rounds = -(-micros // k)
        optimum = (rounds * 4 + micros - k * (rounds - 1) - 1) * 3
        assert metrics.makespan(get(name).schedule(Workload.uniform(4, micros))) == optimum


@pytest.mark.parametrize("name", ["zb-v", "v-min", "v-half", "v-zb", "dualpipe-v"])
def test_v_schedules_keep_above_the_bound_of_the_v_placement(name: str):
    # F = I = W = 1 a chunk, k chunks held from F to W, k < 2M: 6M + 6P - 3k - 1, or 6M + P-1 where work binds.
    # V-Min meets it at P = 4: 48 + 24 - 12 - 1 = 59.
    for devices in (2, 3, 4, 6):
        micros = 2 * devices
        schedule = get(name).schedule(Workload.uniform(devices, micros, 2, input_grad=2, weight_grad=2))
        chunks = 2 * max(metrics.peak_memory(schedule))
        bound = 6 * micros + max(devices - 1, 6 * devices - 3 * chunks - 1)
        assert metrics.makespan(schedule) >= bound
        if (name, devices) == ("v-min", 4):
            assert metrics.makespan(schedule) == bound == 59


@pytest.mark.parametrize(
    ("name", "micros", "options", "optimum"),
    [
        # proven at B = 2F on the bidirectional placement, P = 4: M = 4: 16; M = 8: 28 at cap 4, 27 at 5 or more
        ("chimera", 4, {}, 16),
        ("chimera", 8, {}, 28),
        ("chimera", 8, {"forward_doubling": True}, 27),
        ("gems", 8, {}, 27),
        # proven on the looped placement, P = 4, V = 2, M = 8, chunks of 1 and 2: 57 at 8 chunks and more
        ("interleaved", 8, {}, Fraction(57, 2)),
        ("interleaved", 8, {"lean_warmup": True}, Fraction(57, 2)),
        ("looped-bfs", 8, {}, Fraction(57, 2)),
    ],
)
def test_no_schedule_beats_a_known_optimum(name: str, micros: int, options: dict[str, object], optimum: Fraction):
    assert metrics.makespan(get(name).schedule(Workload.uniform(4, micros), **options)) >= optimum
