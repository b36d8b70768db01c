"""The two brute-force searches agree with each other and with numbers derived by hand."""

from random import Random

import pytest

from solver import Placement, Problem, Stage
from tests.instances import random_problem
from tests.oracles import METRICS, exhaustive, lexicographic, oracle


@pytest.mark.parametrize("seed", range(60))
def test_every_order_finds_what_every_start_time_finds(seed: int) -> None:
    problem = random_problem(Random(seed), max_ops=4, longest=2)
    best = {metric: oracle(problem, metric) for metric in METRICS}
    assert best == {metric: exhaustive(problem, metric) for metric in METRICS}
    for bounded, value in best.items():
        for metric in METRICS:
            assert oracle(problem, metric, {bounded: value}) == exhaustive(problem, metric, {bounded: value})
        assert oracle(problem, "makespan", {bounded: value - 1}) is None


def test_two_microbatches_on_two_equal_stages() -> None:
    # Device 1 works M (F+B) = 6; device 0 runs an F before the first of it and a B after the last: 1 + 6 + 2 = 9, as
    # makespan and as device 0's span; 1F1B and GPipe meet it.
    # One micro-batch at a time holds 1 and takes 2 * (2 * 3) = 12.
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2)] * 2)
    assert oracle(problem) == 9
    assert oracle(problem, "span") == 9
    assert oracle(problem, "peak_memory") == 1
    assert oracle(problem, "makespan", {"peak_memory": 1}) == 12
    assert lexicographic(problem, ("makespan", "peak_memory")) == [9, 2]
    assert lexicographic(problem, ("peak_memory", "makespan")) == [1, 12]


def test_a_device_may_start_late_to_shorten_its_span() -> None:
    # Device 1 runs one F (1) and one B (1) a micro-batch; device 0 runs F in 1 and B in 5. With M = 1 device 1 is busy
    # from 1 to 3: span of device 0 is 1 + 2 + 5 = 8.
    problem = Problem.of(Placement.linear(2), 1, [Stage.fused(1, 5), Stage.fused(1, 1)])
    assert oracle(problem, "span") == 8
    # Two stages on devices 0 and 1, two micro-batches on opposite routes, latency 10: each device has F of one
    # micro-batch at its start and of the other after the latency. Device 0: 0F0 ... 0B0 takes 1+10+1+2+10+2 = 26.
    both = Problem.of(Placement.bidirectional(2), 2, [Stage.fused(1, 2)] * 2, latency=10)
    assert oracle(both, "span") == 26


def test_no_schedule_keeps_an_impossible_bound() -> None:
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2)] * 2)
    assert oracle(problem, "makespan", {"peak_memory": 0}) is None
    assert oracle(problem, "span", {"makespan": 8}) is None


def test_no_duration_makes_memory_a_matter_of_times() -> None:
    # Nothing takes time and nothing is far: all at 0, and a hold of no length holds nothing.
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(0, 0)] * 2)
    assert oracle(problem, "peak_memory") == 0
    # A latency of 1 each way keeps stage 0's hold open for 2, one micro-batch after the other: 4; together: 2.
    far = Problem.of(Placement.linear(2), 2, [Stage.fused(0, 0)] * 2, latency=1)
    assert oracle(far, "peak_memory") == 1
    assert lexicographic(far, ("makespan", "peak_memory")) == [2, 2]
    assert lexicographic(far, ("peak_memory", "makespan")) == [1, 4]
