"""``minbubble compare``: every number of a row, derived by hand."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.comparison import rows, with_optima
from solver import Placement, Problem, Stage, Status, Workload
from solver.workload import workload_of

SUITES = Path(__file__).parent.parent / "benchmarks" / "suites"
FIVE = ("naive", "gpipe", "1f1b", "interleaved", "chimera")


def compared(workload, names=FIVE, **options):
    return {row.baseline.name: row for row in with_optima(rows(workload, names, **options), time_limit=20)}


def test_default_comparison(minbubble):
    code, out, err = minbubble("compare", "--only", ",".join(FIVE), "--json")
    table = {row["schedule"]: row for row in json.loads(out)}
    assert (code, err) == (0, "")
    # naive M P (F+B); GPipe and 1F1B (M+P-1)(F+B); interleaved idles (P-1)(F+B)/V less; Chimera 4 x 6 + 2 x 3
    assert {n: r["makespan"] for n, r in table.items()} == dict(zip(FIVE, (96, 33, 33, 28.5, 30), strict=True))
    # M; M; P; P + (P-1)/V; P
    assert {n: r["peak_activations"] for n, r in table.items()} == dict(zip(FIVE, (1, 8, 4, 5.5, 4), strict=True))
    assert {n: r["weight_copies"] for n, r in table.items()} == dict(zip(FIVE, (1, 1, 1, 1, 2), strict=True))
    # at its own memory each is optimal on its placement, but for Chimera: 28 is proven at 4 activations
    assert {n: r["optimum"]["makespan"] for n, r in table.items()} == dict(
        zip(FIVE, (96, 33, 33, 28.5, 28), strict=True)
    )
    assert all(row["optimum"]["status"] == "OPTIMAL" for row in table.values())
    assert table["chimera"]["above"] == pytest.approx(30 / 28 - 1)


def test_the_users_cap_is_everyones_memory():
    found = compared(Workload.uniform(devices=4, microbatches=8, memory_cap=3), ("naive", "gpipe", "1f1b"))
    # cap 3: r = 8 - 3 x 2 = 2, 3 x 4 x 3 + 1 x 3 = 39 for all three; GPipe holds 8 and 1F1B 4 at once
    assert [row.optimum.makespan for row in found.values()] == [39, 39, 39]
    assert [row.over_cap for row in found.values()] == [False, True, True]
    assert found["naive"].above == Fraction(96, 39) - 1
    assert found["gpipe"].above is None
    # one problem, so one solve
    assert len({id(row.optimum) for row in found.values()}) == 1


def test_over_cap_rows_stay_and_say_so(minbubble):
    code, out, _ = minbubble("compare", "--memory-cap", "3", "--only", "gpipe")
    assert code == 0
    assert "8 over cap" in out


def test_schedules_that_do_not_apply_show_the_reason(minbubble):
    code, out, _ = minbubble("compare", "--devices", "3", "--only", "1f1b,chimera")
    assert code == 0
    assert "Chimera needs an even number of devices" in out


def test_a_cap_that_a_placement_cannot_meet_is_a_reason():
    # both directions hold both stages' weights, 2 x 3, and one micro-batch: 7 > 5; one direction holds 3 + 1
    stages = [Stage.fused(1, 2, 1, static=3)] * 2
    workload = workload_of(Problem.of(Placement.linear(2), 2, stages, memory_cap=5))
    found = compared(workload, ("1f1b", "chimera"))
    assert found["1f1b"].schedule is not None
    assert "more than its cap of 5" in found["chimera"].reason


def test_activations_are_counted_without_static_memory():
    workload = Workload.uniform(devices=4, microbatches=8, activation=3, static=100)
    (row,) = rows(workload, ["1f1b"])
    assert row.peak == (4, 0)


def test_chunks_reach_the_schedules_that_have_them(minbubble):
    _, out, _ = minbubble("compare", "--only", "interleaved", "--chunks", "4", "--json")
    # (M F + M B) + (P-1)(F+B)/V = 24 + 9/4
    assert json.loads(out)[0]["makespan"] == 26.25


def test_only_and_except_choose(minbubble):
    _, out, _ = minbubble("compare", "--only", "chimera, gpipe,1f1b", "--except", "1f1b", "--json")
    assert [row["schedule"] for row in json.loads(out)] == ["gpipe", "chimera"]


def test_rows_are_grouped_by_placement(minbubble):
    _, out, _ = minbubble("compare", "--only", ",".join(FIVE))
    placements = [line.split()[0] for line in out.splitlines()[1:] if line]
    assert placements == ["linear"] * 3 + ["looped", "bidirectional"]


def test_span_is_compared_with_span(minbubble):
    _, out, _ = minbubble(
        "compare", "--only", "zb-h2", "--minimize", "span", "--json", "--input-grad", 1, "--weight-grad", 1
    )
    (row,) = json.loads(out)
    # F = I = W = 1: work 24; idle (P-1)(F+I-2W) = 0, which nothing beats
    assert (row["minimize"], row["span"], row["optimum"]["span"], row["above"]) == ("span", 24, 24, 0)


@pytest.mark.parametrize(("suite", "measured"), [("a100-128k", 8_202_600), ("a100-256k", 11_722_200)])
def test_1f1b_on_a100s_is_within_one_percent_of_the_measured_iteration(suite, measured, minbubble):
    path = SUITES / f"{suite}.toml"
    _, out, _ = minbubble("compare", path, "--only", "1f1b", "--json", "--time-limit", "20")
    (row,) = json.loads(out)
    assert row["measured"] == measured
    assert abs(row["makespan"] / measured - 1) < 0.01
    # the last stage runs without a pause once its first forward is in: nothing is faster on this placement
    assert row["optimum"]["status"] == Status.OPTIMAL
    assert row["above"] == 0
    _, text, _ = minbubble("compare", path, "--only", "1f1b")
    assert f"measured 1f1b: {measured}; simulated: {row['makespan']}" in text
