"""Every format holds whatever schedule a random problem has: recipes, routes, latencies, ops of no duration."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from solver import UnsupportedProblem, metrics, simulate
from solver.export.chrome_trace import trace_events
from solver.export.gantt import gantt_figure
from solver.export.html_page import page_data
from solver.export.json_file import entries_from_list, schedule_of, schedule_to_mapping
from solver.export.torch_csv import parse_torch_csv, torch_csv
from solver.problem_file import problem_from_mapping
from tests.instances import random_order, random_problem


@pytest.fixture(params=range(60))
def schedule(request):
    rng = Random(request.param)
    problem = random_problem(rng, max_ops=36, zeros=True)
    free = replace(problem, memory_cap=(None,) * problem.devices)
    return simulate(free, random_order(rng, free))


def test_json_loses_nothing(schedule):
    content = schedule_to_mapping(schedule)
    read = schedule_of(problem_from_mapping(content["problem"]), entries_from_list(content["schedule"]))
    assert (read.starts == schedule.starts).all()
    assert read.problem.stages == schedule.problem.stages
    assert read.problem.placement.routes == schedule.problem.placement.routes


def test_a_pytorch_plan_keeps_the_order_or_says_why_not(schedule):
    problem = schedule.problem
    try:
        text = torch_csv(schedule)
    except UnsupportedProblem:
        routes = problem.placement.routes
        assert len(set(routes)) > 1 or set(routes[0]) != set(range(problem.devices))
        return
    read = simulate(problem, parse_torch_csv(text, problem))
    assert metrics.makespan(read) <= metrics.makespan(schedule)
    if (problem.duration[problem.exists] > 0).all():  # ops of no duration at one instant have no order of their own
        assert torch_csv(read) == text
        assert metrics.makespan(read) == metrics.makespan(schedule)
        assert metrics.peak_memory(read) == metrics.peak_memory(schedule)


def test_traces_pages_and_pictures_hold_every_op(schedule):
    problem = schedule.problem
    events = Counter(event["ph"] for event in trace_events({"": schedule}))
    assert events["X"] == problem.ops
    assert events["s"] == events["f"]
    (page,) = page_data({"": schedule})["schedules"]
    assert sum(len(device["micro"]) for device in page["devices"]) == problem.ops
    assert gantt_figure({"": schedule}).axes
