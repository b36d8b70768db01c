from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from solver import Op, OpKind, Placement, Problem, ProblemError, Stage
from tests.oracles import oracle

F, B, I, W = OpKind
UNIT = Stage.fused(1, 2)


def of(**changes) -> Problem:
    options = {"placement": Placement.linear(2), "microbatches": 3, "stages": [UNIT, UNIT], **changes}
    return Problem.of(**options)


def test_arrays_are_kind_stage_microbatch() -> None:
    problem = of(stages=[Stage.fused(1, 2), Stage.split(3, 4, 5)], placement=Placement.bidirectional(2))
    assert problem.shape == (4, 2, 3)
    assert problem.duration.tolist() == [[1, 3], [2, 0], [0, 4], [0, 5]]
    assert problem.exists.tolist() == [[True, True], [True, False], [False, True], [False, True]]
    assert problem.op_device[F].tolist() == [[0, 1, 0], [1, 0, 1]]  # stage 0 down on device 0, up on 1
    assert problem.op_device[B].tolist() == [[0, 1, 0], [-1, -1, -1]]
    assert problem.ops == len(problem.all_ops()) == 15  # 3 x (2 + 3)
    assert problem.all_ops()[0] == Op(0, F, 0)


def test_one_tick_for_all_times_and_one_for_all_sizes() -> None:
    # 0.5, 1/3 and latency 0.25: the tick is 1/12, and they are 6, 4 and 3 of it. Sizes 1.5 and cap 4: the tick is 1/2.
    problem = of(stages=[Stage.fused(0.5, "1/3", Decimal("1.5"))] * 2, latency=0.25, memory_cap=4)
    assert problem.time_unit == Fraction(1, 12)
    assert problem.duration[:2, 0].tolist() == [6, 4]
    assert problem.latency_ticks.tolist() == [[0, 3], [3, 0]]
    assert problem.memory_unit == Fraction(1, 2)
    assert problem.room == (8, 8)
    assert problem.in_time(24) == 2
    assert problem.in_time(6) == Fraction(1, 2)
    assert problem.in_memory(3) == Fraction(3, 2)


def test_static_memory_counts_once_for_each_stage_and_device() -> None:
    stages = [Stage.fused(1, 1, 1, 5), Stage.fused(1, 1, 1, 7)]
    assert of(stages=stages).static.tolist() == [5, 7]
    assert of(stages=stages, placement=Placement.bidirectional(2)).static.tolist() == [12, 12]
    # Both routes put stage 0 on device 0: one copy there. Stage 1 has one on device 0 and one on device 1.
    twice = Placement.custom([[0, 0], [0, 1]])
    assert of(stages=stages, placement=twice).static.tolist() == [12, 7]
    # A route that no micro-batch takes keeps its weights all the same.
    assert of(stages=stages, placement=twice, microbatches=1).static.tolist() == [12, 7]


def test_holds_of_no_size_are_left_out() -> None:
    problem = of(stages=[Stage.split(1, 1, 1, 0, 2, 3), Stage.fused(1, 1, 0)])
    assert [(h.stage, h.opens, h.closes, h.size) for h in problem.holds] == [(0, F, W, 2), (0, I, W, 3)]


def test_equal_numbers_make_equal_problems() -> None:
    same = of(microbatches=3.0, latency=np.zeros((2, 2)), memory_cap=["4", Decimal(4)])
    assert same == of(memory_cap=4)
    assert hash(same) == hash(of(memory_cap=4))
    assert type(same.microbatches) is int
    direct = Problem(Placement.linear(2), 3, (UNIT, UNIT), [[0, 1], [1, 0]], [4, None])  # type: ignore[arg-type]
    assert direct == of(latency=1, memory_cap=[4, "none"])


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"microbatches": 0}, "^microbatches: must be a whole number of at least 1"),
        ({"microbatches": -3}, "^microbatches: must not be negative"),
        ({"microbatches": 2.5}, "^microbatches"),
        ({"microbatches": "many"}, "^microbatches"),
        ({"microbatches": 10**30}, "^microbatches: more than 1,000,000 ops"),
        ({"stages": [UNIT]}, "^time: placement linear has 2 stages, got costs for 1"),
        ({"latency": -1}, r"^devices\.latency: must not be negative"),
        ({"latency": float("nan")}, r"^devices\.latency: must be a finite"),
        ({"latency": [1, 2]}, r"^devices\.latency: must be one number or a 2 x 2 matrix"),
        ({"latency": [[0, 1]]}, r"^devices\.latency: must be one number or a 2 x 2 matrix"),
        ({"latency": [[0, 1], [1]]}, r"^devices\.latency: must be one number or a 2 x 2 matrix"),
        ({"latency": ["01", "10"]}, r"^devices\.latency: must be one number or a 2 x 2 matrix"),
        ({"latency": [[0, 1], [1, 2]]}, r"^devices\.latency\[1\]\[1\]: a device reaches itself in no time"),
        ({"latency": [[0, "x"], [1, 0]]}, r"^devices\.latency\[0\]\[1\]: must be a finite"),
        ({"memory_cap": [1]}, r"^devices\.memory_cap: must be one number or one per device \(2\)"),
        ({"memory_cap": {0: 1}}, r"^devices\.memory_cap: must be one number or one per device"),
        ({"memory_cap": "much"}, r"^devices\.memory_cap: must be a finite"),
        ({"memory_cap": [1, float("inf")]}, r"^devices\.memory_cap\[1\]: must be a finite"),
        ({"memory_cap": 0.5}, r"^devices\.memory_cap: device 0 needs 1 .* more than its cap of 1/2"),
        ({"stages": [Stage.fused("1e60", 1), UNIT]}, "^time: these numbers need a tick of 1,.*overflows 2.53 of it"),
        ({"stages": [Stage.fused("1/999999999999", "1e9"), UNIT]}, "^time: .* round them"),
        ({"latency": 10**20}, "^time: .* round them"),
        ({"memory_cap": 1e90}, "^memory: .* round them"),
        ({"stages": [Stage.fused(1, 1, "1e50"), UNIT]}, "^memory: .* round them"),
    ],
)
def test_what_no_problem_can_have_is_one_line(changes: dict, rule: str) -> None:
    with pytest.raises(ProblemError, match=rule) as error:
        of(**changes)
    assert "\n" not in str(error.value)


def test_a_cap_holds_one_microbatch_alone() -> None:
    # V placement on one device: both chunks' activations are open when the second one's backward runs: 2 + 3 = 5,
    # beside static 1 + 1.
    stages = [Stage.fused(1, 1, 2, 1), Stage.fused(1, 1, 3, 1)]
    assert of(placement=Placement.wave(1, 2), stages=stages, memory_cap=7).room == (5,)
    with pytest.raises(ProblemError, match="device 0 needs 7"):
        of(placement=Placement.wave(1, 2), stages=stages, memory_cap=6)


def test_a_cap_holds_the_worst_moment_of_a_split_backward() -> None:
    # F opens 1 + 2; I opens 4 more while both are held: 7; W right after: 2 + 4.
    stages = [Stage.split(1, 1, 1, 1, 2, 4)] * 2
    assert of(stages=stages, memory_cap=7).room == (7, 7)
    with pytest.raises(ProblemError, match="needs 7"):
        of(stages=stages, memory_cap=6)
    # On one device, each W right after its I: stage 1 is done with its 7 before stage 0's I opens: 3 + 7 = 10.
    assert of(placement=Placement.wave(1, 2), stages=stages, memory_cap=10).room == (10,)
    with pytest.raises(ProblemError, match="needs 10"):
        of(placement=Placement.wave(1, 2), stages=stages, memory_cap=9)


def test_a_microbatch_alone_waits_for_its_transfers() -> None:
    # Nothing takes time on the devices, but stage 0 keeps its activation for the way there and back.
    nothing = [Stage.fused(0, 0)] * 2
    assert oracle(of(stages=nothing, memory_cap=0)) == 0
    with pytest.raises(ProblemError, match="device 0 needs 1"):
        of(stages=nothing, memory_cap=0, latency=1)
    assert oracle(of(stages=nothing, memory_cap=[1, 0], latency=1, microbatches=2)) == 4


def test_one_of_everything_is_a_problem() -> None:
    least = Problem.of(Placement.linear(1), 1, [Stage.fused(0, 0, 0)])
    assert (least.ops, least.time_unit, least.memory_unit) == (2, 1, 1)
