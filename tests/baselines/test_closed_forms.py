"""Every schedule takes what its paper says, wherever the formula holds; deviations are accounted for."""

import pytest

from baselines import BASELINES, get
from solver import Workload, metrics, violations
from tests.published import CLOSED_FORMS, DEVIATIONS, MEASURED, ClosedForm, Deviation, Measured


@pytest.mark.parametrize("form", CLOSED_FORMS, ids=str)
def test_the_papers_closed_form_is_met(form: ClosedForm):
    points = form.points()
    assert len(points) >= 10
    for point in points:
        schedule = get(form.schedule).schedule(point.workload(), **form.options)
        if form.makespan:
            assert metrics.makespan(schedule) == form.makespan(point), point
        if form.span:
            assert metrics.span(schedule) == form.span(point), point
        if form.peaks:
            assert metrics.peak_memory(schedule) == form.peaks(point), point
        if form.peak:
            assert max(metrics.peak_memory(schedule)) == form.peak(point), point


def test_every_schedule_with_a_formula_has_it_tested():
    searched = {"zb-heuristic"}  # a search: its values are in test_zero_bubble
    assert {form.schedule for form in CLOSED_FORMS} == set(BASELINES) - searched


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=str)
def test_a_deviation_from_a_paper_is_what_it_is_said_to_be(deviation: Deviation):
    schedule = get(deviation.schedule).schedule(deviation.point.workload(), **deviation.options)
    assert getattr(metrics, deviation.metric)(schedule) == deviation.here
    assert deviation.here != deviation.said


@pytest.mark.parametrize("trial", MEASURED, ids=str)
def test_simulated_1f1b_is_within_one_percent_of_the_measured_iteration(trial: Measured):
    milliseconds = float(metrics.makespan(get("1f1b").schedule(trial.workload()))) / 1000
    assert milliseconds == pytest.approx(trial.simulated, rel=1e-4)
    assert milliseconds == pytest.approx(trial.iteration, rel=0.01)


def test_the_first_backward_of_gpipe_and_1f1b_starts_when_the_loss_is_there():
    # P = M = 4: 1F1B's B0 on device 0 starts at P F + (P-1) B = 10 for B = 2F, 7 for B = F; GPipe's at 13 and 10.
    for name, b, start in (("1f1b", 2, 10), ("1f1b", 1, 7), ("gpipe", 2, 13), ("gpipe", 1, 10)):
        schedule = get(name).schedule(Workload.uniform(4, 4, 1, b))
        assert min(e.start for e in schedule.entries() if str(e.op).startswith("0B")) == start


@pytest.mark.parametrize(
    ("name", "model", "options", "makespan", "peak"),
    [
        # Chimera's own unit, P = M = 4, B = 2F: P F + (2P-2) B = 16; concatenated at M = 8: 24 + 2 (2 + 1) = 30
        ("chimera", Workload.uniform(4, 4), {}, 16, 4),
        ("chimera", Workload.uniform(4, 8), {}, 30, 4),
        # P = 8, M = 16: 48 + 6 (2 + 1) = 66
        ("chimera", Workload.uniform(8, 16), {}, 66, 8),
        # backward halving of M = 4 whole micro-batches: 8 halves, the same as forward doubling of 8: 24 + 2 * 3/2
        ("chimera", Workload.uniform(4, 8), {"backward_halving": True}, 27, 8),
        # Megatron's order at P=4 V=2 M=8, chunks of 1 and 2: 48 + 3 * 6 / 2 = 57 at 11 chunks of 1/2
        ("interleaved", Workload.uniform(4, 8, 2, 4), {}, 57, 11 / 2),
        # GEMS nears 4P + 2 a pair for B = 2F: 4 + 8 * 8 + 7 at M = 8
        ("gems", Workload.uniform(4, 8), {}, 75, 1),
    ],
)
def test_known_values(name: str, model: Workload, options: dict[str, object], makespan: int, peak: float):
    schedule = get(name).schedule(model, **options)
    assert metrics.makespan(schedule) == makespan
    assert max(metrics.peak_memory(schedule)) == peak
    assert violations(schedule) == []


def test_with_latency_lean_warm_up_costs():
    # P=4 V=2 M=8, chunks of 10 and 20, latency 3: 612 with Megatron's warm-up, 660 with the lean one
    model = Workload.uniform(4, 8, 20, 40, latency=3)
    times = [metrics.makespan(get("interleaved").schedule(model, lean_warmup=lean)) for lean in (False, True)]
    assert times == [612, 660]


def test_the_group_size_orders_micro_batches_as_megatron_does():
    # P=2 V=2 N=3 M=5: micro-batches 0 1 2 0 1 2 3 4 3 4 on chunks 0 0 0 1 1 1 0 0 1 1
    baseline = get("interleaved")
    row = baseline.order(baseline.problem(Workload.uniform(2, 5)), group=3).ops[0]
    forwards = [(op.microbatch, op.stage // 2) for op in row if str(op.kind) == "F"]
    assert forwards == list(zip([0, 1, 2, 0, 1, 2, 3, 4, 3, 4], [0, 0, 0, 1, 1, 1, 0, 0, 1, 1], strict=True))
