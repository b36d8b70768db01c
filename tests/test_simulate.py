from itertools import pairwise
from random import Random

import networkx as nx
import numpy as np
import pytest

from solver import (
    DeadlockError,
    DeviceOrder,
    OpKind,
    OrderError,
    Placement,
    Problem,
    Schedule,
    Stage,
    metrics,
    simulate,
)
from solver.graph import full_graph
from solver.simulate import flat_index, op_at
from solver.validate import violations
from tests.instances import random_order, random_problem

TWO = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2)] * 2)


def longest_paths(problem: Problem, order: DeviceOrder) -> dict:
    """Start of every op as the longest path through dependencies and device orders, by networkx."""
    graph = full_graph(problem)
    for row in order.ops:
        for before, after in pairwise(row):
            lag = max(graph.nodes[before]["duration"], graph.get_edge_data(before, after, {}).get("lag", 0))
            graph.add_edge(before, after, lag=lag)
    starts = dict.fromkeys(graph, 0)
    for op in nx.topological_sort(graph):
        for after, data in graph[op].items():
            starts[after] = max(starts[after], starts[op] + data["lag"])
    return starts


@pytest.mark.parametrize("seed", range(150))
def test_every_op_starts_as_early_as_order_and_dependencies_let_it(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=40, zeros=True)
    order = random_order(rng, problem)
    schedule = simulate(problem, order)
    expected = longest_paths(problem, order)
    assert {e.op: e.start for e in schedule.entries()} == {op: problem.in_time(t) for op, t in expected.items()}
    assert [v.rule for v in violations(schedule) if v.rule != "memory over cap"] == []


@pytest.mark.parametrize("seed", range(60))
def test_the_order_of_a_schedule_gives_the_schedule_again(seed: int) -> None:
    """Or a better one, where ops of no duration at one instant are put in order of dependency."""
    rng = Random(seed)
    zeros = bool(seed % 2)
    problem = random_problem(rng, max_ops=40, zeros=zeros)
    schedule = simulate(problem, random_order(rng, problem))
    again = simulate(problem, schedule.order())
    assert (again.starts <= schedule.starts).all()
    assert zeros or np.array_equal(again.starts, schedule.starts)


def test_gpipe_and_1f1b_take_what_their_papers_say() -> None:
    # P = 2, M = 3, F = 1, B = 2: both (M + P - 1)(F + B) = 4 * 3 = 12 (Huang et al. 1811.06965; Narayanan et al.
    # 1806.03377). GPipe holds M = 3 activations, 1F1B P - d: 2 and 1.
    problem = Problem.of(Placement.linear(2), 3, [Stage.fused(1, 2)] * 2)
    gpipe = DeviceOrder.parse(["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"])
    one_f_one_b = DeviceOrder.parse(["0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"])
    for order, peaks in ((gpipe, [3, 3]), (one_f_one_b, [2, 1])):
        schedule = simulate(problem, order)
        assert metrics.makespan(schedule) == 12
        assert metrics.peak_memory(schedule) == peaks


@pytest.mark.parametrize(("devices", "micros"), [(1, 1), (1, 4), (2, 1), (3, 2), (4, 8), (5, 7)])
@pytest.mark.parametrize("backward", [1, 2])
def test_1f1b_by_hand_takes_its_closed_form(devices: int, micros: int, backward: int) -> None:
    # Device d: min(P - d - 1, M) forwards, then F and B in turn, then the rest of the backwards.
    rows = []
    for d in range(devices):
        warm = min(devices - d - 1, micros)
        steady = [f"{d}F{warm + i} {d}B{i}" for i in range(micros - warm)]
        rest = [f"{d}B{i}" for i in range(micros - warm, micros)]
        rows.append(" ".join([f"{d}F{i}" for i in range(warm)] + steady + rest))
    problem = Problem.of(Placement.linear(devices), micros, [Stage.fused(1, backward)] * devices)
    schedule = simulate(problem, DeviceOrder.parse(rows))
    assert metrics.makespan(schedule) == (micros + devices - 1) * (1 + backward)
    assert metrics.peak_memory(schedule) == [min(micros, devices - d) for d in range(devices)]


def test_latency_delays_and_occupies_no_device() -> None:
    # 0F0 [0,1), 10 down, 1F0 [11,12), 1B0 [12,14), 20 up, 0B0 [34,36); 0F1 runs meanwhile at once after 0F0: [1,2),
    # 1F1 [12 + 2 = 14, 15) after 1B0, 1B1 [15,17), 0B1 [37,39).
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2)] * 2, [[0, 10], [20, 0]])
    schedule = simulate(problem, DeviceOrder.parse(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]))
    assert [e.start for e in schedule.entries()] == [0, 1, 34, 37, 11, 12, 14, 15]


def test_a_circle_is_shown_with_the_way_out() -> None:
    # Device 0 wants 0B0 before 0F1; device 1 runs 1F1 first, which needs 0F1.
    order = DeviceOrder.parse(["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"])
    with pytest.raises(DeadlockError) as error:
        simulate(TWO, order)
    message = str(error.value)
    assert "device 0 is at 0B0, which waits for 1B0 on device 1" in message
    assert "device 1 is at 1F1, which waits for 0F1 on device 0" in message
    assert message.count("Move") == 1


@pytest.mark.parametrize("seed", range(150))
def test_every_circle_is_one(seed: int) -> None:
    """Each op of ``cycle`` waits for the next: by dependency, or as it stands later on the same device."""
    rng = Random(seed)
    problem = random_problem(rng, max_ops=30)
    rows = [list(row) for row in random_order(rng, problem).ops]
    for row in rows:
        rng.shuffle(row)
    try:
        simulate(problem, DeviceOrder.of(rows))
    except DeadlockError as error:
        graph, cycle = full_graph(problem), error.cycle
        assert len(set(cycle)) == len(cycle) >= 2
        for op, waits_for in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            follows = any(op in row and waits_for in row[: row.index(op)] for row in rows)
            assert graph.has_edge(waits_for, op) or follows
        moved, ahead = str(error).rsplit("Move ", 1)[1].split(" on ")[0].split(" before ")
        row = next(row for row in rows if any(str(op) == moved for op in row))
        names = [str(op) for op in row]
        assert names.index(moved) > names.index(ahead)


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (["0F0 0B0 0F1 0B1"], "1 devices, the problem 2"),
        (["0F0 0B0 0F1", "1F0 1B0 1F1 1B1"], "lacks 0B1 and 0 other ops"),
        (["0F0 0F0 0B0 0F1 0B1", "1F0 1B0 1F1 1B1"], "device 0 lists 0F0 twice"),
        (["0F0 0B0 0F1 0B1 1F0", "1B0 1F1 1B1"], "device 0 lists 1F0, which belongs on device 1"),
        (["0F0 0B0 0F1 0B1 0F2", "1F0 1B0 1F1 1B1"], "0F2, which the problem does not have"),
        (["0F0 0B0 0F1 0B1 0W0", "1F0 1B0 1F1 1B1"], "0W0, which the problem does not have"),
        (["0F0 0B0 0F1 0B1 7F0", "1F0 1B0 1F1 1B1"], "7F0, which the problem does not have"),
    ],
)
def test_an_order_that_is_none_is_refused(rows: list[str], rule: str) -> None:
    with pytest.raises(OrderError, match=rule):
        simulate(TWO, DeviceOrder.parse(rows))


def test_flat_numbers_are_those_of_the_flattened_array() -> None:
    problem = random_problem(Random(3), max_ops=30)
    numbers = np.arange(np.prod(problem.shape)).reshape(problem.shape)
    for op in problem.all_ops():
        assert flat_index(problem, op) == numbers[op.kind, op.stage, op.microbatch]
        assert op_at(problem, flat_index(problem, op)) == op


def test_an_order_reads_back_as_it_is_written() -> None:
    order = random_order(Random(1), TWO)
    lines = [line.split(": ")[1] for line in str(order).splitlines()]
    assert DeviceOrder.parse(lines) == order


@pytest.mark.parametrize(
    "bad", [np.zeros((4, 2, 3), dtype=np.int64), np.zeros((4, 2, 2)), np.zeros((4, 2, 2), dtype=bool)]
)
def test_starts_are_whole_ticks_of_the_right_shape(bad: np.ndarray) -> None:
    with pytest.raises(OrderError, match="starts"):
        Schedule(TWO, bad)


def test_a_schedule_cannot_be_changed() -> None:
    starts = np.zeros(TWO.shape, dtype=np.int64)
    schedule = Schedule(TWO, starts)
    starts += 5
    assert schedule.starts.max() == 0
    assert schedule.starts[OpKind.W].max() == -1
    with pytest.raises(ValueError, match="read-only"):
        schedule.starts[0, 0, 0] = 1
