from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from solver import DeviceOrder, Op, Placement, Problem, Schedule, Stage, memory, metrics, simulate
from solver.graph import full_graph
from solver.metrics import METRICS
from tests.instances import random_order, random_problem
from tests.oracles import _Instance

GPIPE = DeviceOrder.parse(["0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"])


def test_gpipe_by_hand() -> None:
    # Half units: F 0.5, B 1. Device 0: 0F0 [0,.5) 0F1 [.5,1) 0B0 [2.5,3.5) 0B1 [3.5,4.5); device 1: 1F0 [.5,1)
    # 1F1 [1,1.5) 1B0 [1.5,2.5) 1B1 [2.5,3.5). Activations 3, static 2: both hold 2 of them.
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(0.5, 1, 3, 2)] * 2)
    schedule = simulate(problem, GPIPE)
    assert metrics.makespan(schedule) == Fraction(9, 2)
    assert metrics.span(schedule) == Fraction(9, 2)
    assert metrics.busy(schedule) == [3, 3]
    assert metrics.idle(schedule) == [Fraction(3, 2)] * 2
    assert metrics.peak_memory(schedule) == [8, 8]
    assert metrics.bubble_ratio(schedule) == pytest.approx(1 / 3)  # (P-1)/(M+P-1)
    assert metrics.bubble_over_work(schedule) == pytest.approx(1 / 2)  # (P-1)/M
    assert metrics.bubble_ratio_span(schedule) == pytest.approx(1 / 3)
    assert type(metrics.busy(schedule)[0]) is int


def test_span_leaves_out_the_wait_before_the_first_op() -> None:
    # Device 1 is far: [11, 14) with 0F0 [0,1) and 0B0 [24,26). Span is device 0's 26, device 1 alone would have 3.
    problem = Problem.of(Placement.linear(2), 1, [Stage.fused(1, 2)] * 2, latency=10)
    schedule = simulate(problem, DeviceOrder.parse(["0F0 0B0", "1F0 1B0"]))
    assert metrics.makespan(schedule) == metrics.span(schedule) == 26
    shifted = Schedule(problem, np.where(schedule.starts < 0, -1, schedule.starts + 100))
    assert (metrics.makespan(shifted), metrics.span(shifted)) == (126, 26)
    # A span below the makespan: the last stage's ops run late and the first ends early, as with weight gradients.
    split = Problem.of(Placement.linear(2), 1, [Stage.split(1, 1, 1), Stage.split(1, 1, 9)])
    late = simulate(split, DeviceOrder.parse(["0F0 0I0 0W0", "1F0 1I0 1W0"]))
    # device 0: F [0,1) I [3,4) W [4,5); device 1: F [1,2) I [2,3) W [3,12): makespan 12, spans 5 and 11
    assert (metrics.makespan(late), metrics.span(late)) == (12, 11)
    # bubble 1 - (3 + 11) / (2 x 12) and 1 - 14 / (2 x 11)
    assert metrics.bubble_ratio(late) == pytest.approx(10 / 24)
    assert metrics.bubble_ratio_span(late) == pytest.approx(8 / 22)


def test_an_idle_device_counts_in_every_bubble() -> None:
    problem = Problem.of(Placement.custom([[0]], devices=3), 1, [Stage.fused(1, 2, 1, 1)])
    schedule = simulate(problem, DeviceOrder.parse(["0F0 0B0", "", ""]))
    assert metrics.busy(schedule) == [3, 0, 0]
    assert metrics.idle(schedule) == [0, 3, 3]
    assert metrics.peak_memory(schedule) == [2, 0, 0]
    assert metrics.span(schedule) == 3
    assert metrics.bubble_ratio(schedule) == pytest.approx(2 / 3)


def test_no_time_at_all_is_no_bubble() -> None:
    schedule = simulate(Problem.of(Placement.linear(1), 2, [Stage.fused(0, 0)]), DeviceOrder.parse(["0F0 0B0 0F1 0B1"]))
    assert metrics.makespan(schedule) == metrics.span(schedule) == 0
    assert (
        metrics.bubble_ratio(schedule) == metrics.bubble_ratio_span(schedule) == metrics.bubble_over_work(schedule) == 0
    )
    assert metrics.peak_memory(schedule) == [0]  # holds of no length hold nothing
    assert metrics.critical_path(schedule)[-1] == Op.parse("0B1")


def test_releases_come_before_openings_at_equal_times() -> None:
    problem = Problem.of(Placement.linear(1), 2, [Stage.fused(1, 1, 5)])
    one = simulate(problem, DeviceOrder.parse(["0F0 0B0 0F1 0B1"]))
    assert metrics.peak_memory(one) == [5]
    both = simulate(problem, DeviceOrder.parse(["0F0 0F1 0B0 0B1"]))
    assert metrics.peak_memory(both) == [10]


def test_each_hold_of_a_split_backward() -> None:
    # F [0,1) opens 1 + 2; I [1,2) adds 4: 7; its end leaves 2 + 4, F1 [2,3) adds 3: 9; W0 [3,4) leaves 3, I1 adds 4: 7.
    problem = Problem.of(Placement.linear(1), 2, [Stage.split(1, 1, 1, 1, 2, 4)])
    schedule = simulate(problem, DeviceOrder.parse(["0F0 0I0 0F1 0W0 0I1 0W1"]))
    times, levels = memory.profile(problem, schedule.starts, 0)
    at = dict(zip(times.tolist(), levels.tolist(), strict=True))  # the last change at a time wins
    assert at == {0: 3, 1: 7, 2: 9, 4: 7, 5: 6, 6: 0}
    assert metrics.peak_memory(schedule) == [9]


@pytest.mark.parametrize("seed", range(80))
def test_peak_memory_depends_on_order_alone(seed: int) -> None:
    """Rule 9: any later valid times of the same order have the same peaks, while durations are positive."""
    rng = Random(seed)
    problem = random_problem(rng, max_ops=30)
    schedule = simulate(problem, random_order(rng, problem))
    later = Schedule(problem, delayed(rng, schedule))
    assert later.order() == schedule.order()
    assert metrics.peak_memory(later) == metrics.peak_memory(schedule)


def delayed(rng: Random, schedule: Schedule) -> np.ndarray:
    """All ops in their order, each put off by 0 to 3 more than those before force it."""
    problem = schedule.problem
    graph = full_graph(problem)
    for row in schedule.order().ops:
        for before, after in pairwise(row):
            lag = max(graph.nodes[before]["duration"], graph.get_edge_data(before, after, {}).get("lag", 0))
            graph.add_edge(before, after, lag=lag)
    starts = schedule.starts.copy()
    for op in sorted(graph, key=lambda o: schedule.starts[o.kind, o.stage, o.microbatch]):
        ready = [starts[b.kind, b.stage, b.microbatch] + d["lag"] for b, _, d in graph.in_edges(op, data=True)]
        starts[op.kind, op.stage, op.microbatch] = max(ready, default=0) + rng.randint(0, 3)
    return starts


@pytest.mark.parametrize("seed", range(80))
def test_metrics_are_those_of_the_definitions(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=30, zeros=True)
    schedule = simulate(problem, random_order(rng, problem))
    rows = schedule.entries()
    plain = _Instance(problem, {})
    starts = [int(schedule.starts[op.kind, op.stage, op.microbatch]) for op in plain.ops]
    assert METRICS["peak_memory"].ticks(schedule) == plain.peak(starts)
    assert metrics.makespan(schedule) == max(e.end for e in rows)
    per_device = [[e for e in rows if e.device == d] for d in range(problem.devices)]
    spans = [max(e.end for e in row) - min(e.start for e in row) for row in per_device if row]
    assert metrics.span(schedule) == max(spans)
    assert metrics.busy(schedule) == [sum(e.end - e.start for e in row) for row in per_device]
    total = problem.devices * metrics.makespan(schedule)
    assert sum(metrics.idle(schedule)) + sum(metrics.busy(schedule)) == total


@pytest.mark.parametrize("seed", range(80))
def test_the_critical_path_is_tight_from_start_to_end(seed: int) -> None:
    """In a semi-active schedule: from time 0, each op right where the one before lets it, to the makespan.

    Ops of no duration at one instant have no order of their own: then the chain may end before time 0 is reached.
    """
    rng = Random(seed)
    zeros = bool(seed % 2)
    problem = random_problem(rng, max_ops=30, zeros=zeros)
    schedule = simulate(problem, random_order(rng, problem))
    path = metrics.critical_path(schedule)
    timetable = {e.op: e for e in schedule.entries()}
    graph = full_graph(problem)
    assert zeros or timetable[path[0]].start == 0
    assert timetable[path[-1]].end == metrics.makespan(schedule)
    assert len(set(path)) == len(path)
    for before, after in pairwise(path):
        a, b = timetable[before], timetable[after]
        depends = graph.has_edge(before, after) and a.start + graph[before][after]["lag"] * problem.time_unit == b.start
        assert depends or (a.device == b.device and a.end == b.start)


def test_metrics_of_a_schedule_that_misses_ops_are_of_those_that_run() -> None:
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2)] * 2)
    starts = np.full(problem.shape, -1)
    starts[0, 0, 0] = 4
    assert metrics.makespan(Schedule(problem, starts)) == 5
    assert metrics.span(Schedule(problem, starts)) == 1
