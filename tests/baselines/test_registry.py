"""A registered schedule is complete: documented, referenced, drawn, and named as tables name it."""

import inspect

import pytest

from baselines import BASELINES, Baseline, get
from solver import Placement, ProblemError, Workload

every_baseline = pytest.mark.parametrize("baseline", BASELINES.values(), ids=list(BASELINES))


@every_baseline
def test_a_baseline_says_what_it_is(baseline: Baseline):
    assert baseline.summary.endswith(".")
    assert "makespan" in baseline.closed_form or "span" in baseline.closed_form
    assert "peak" in baseline.closed_form
    assert "20" in baseline.reference, "the year is missing"


@every_baseline
def test_a_baseline_shows_its_own_timeline(baseline: Baseline):
    doc = inspect.getdoc(baseline.rule) or ""
    assert ">>> print(" in doc
    assert "\n0 | " in doc


@every_baseline
def test_a_baseline_takes_the_options_it_declares(baseline: Baseline):
    declared = {
        name
        for name, parameter in inspect.signature(baseline.rule).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert declared == set(baseline.options)


def test_names_are_keys():
    assert all(name == baseline.name for name, baseline in BASELINES.items())


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ProblemError, match=r"2f2b: no such schedule; known are naive, gpipe, 1f1b"):
        get("2f2b")


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(ProblemError, match=r"waves: interleaved has no such option; its options: chunks, group"):
        get("interleaved").schedule(Workload.uniform(2, 4), waves=2)


def test_a_schedule_applies_to_a_problem_at_hand_by_its_routes():
    custom = Workload.uniform(3, 4).problem(Placement.custom([[0, 1, 2]]))
    assert get("1f1b").order(custom) == get("1f1b").order(Workload.uniform(3, 4).problem(Placement.linear(3)))
