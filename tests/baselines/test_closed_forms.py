"""Every schedule takes exactly what its paper says, wherever the paper's formula holds."""

import pytest

from baselines import BASELINES
from solver import metrics
from tests.published import ClosedForm, Point, closed_form_points


@pytest.mark.parametrize(("form", "points"), [pytest.param(f, p, id=str(f)) for f, p in closed_form_points()])
def test_the_papers_closed_form_is_met(form: ClosedForm, points: list[Point]):
    assert len(points) >= 10
    for point in points:
        schedule = BASELINES[form.schedule].schedule(point.workload(), **form.options)
        if form.makespan:
            assert metrics.makespan(schedule) == form.makespan(point), point
        if form.span:
            assert metrics.span(schedule) == form.span(point), point
        if form.peaks:
            assert metrics.peak_memory(schedule) == form.peaks(point), point
