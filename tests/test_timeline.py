from fractions import Fraction
from random import Random

import pytest

from solver import DeviceOrder, Op, Placement, Problem, Stage, simulate
from solver.schedule import Entry
from solver.timeline import draw, timeline
from tests.instances import random_order, random_problem


def test_one_stage_a_device_shows_letter_and_microbatch() -> None:
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2)] * 2)
    one_f_one_b = DeviceOrder.parse(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"])
    # two columns a unit: F0 F1 B0-- ; device 0's B0 starts at 4, when 1B0 [2,4) is done
    assert str(simulate(problem, one_f_one_b)) == "0 | F0F1....B0--..B1--\n1 | ..F0B0--F1B1--...."


def test_several_stages_a_device_show_the_stage_too() -> None:
    problem = Problem.of(Placement.wave(1, 2), 1, [Stage.fused(1, 1)] * 2)
    assert str(simulate(problem, DeviceOrder.parse(["0F0 1F0 1B0 0B0"]))) == "0 | 0F01F01B00B0"


def test_fractions_are_drawn_to_scale() -> None:
    problem = Problem.of(Placement.linear(1), 1, [Stage.fused("1/3", "2/3")])
    assert str(simulate(problem, DeviceOrder.parse(["0F0 0B0"]))) == "0 | F0B0--"


def test_a_long_schedule_shrinks_to_the_width() -> None:
    problem = Problem.of(Placement.linear(2), 40, [Stage.fused(1, 1000)] * 2)
    order = DeviceOrder.parse([" ".join(f"{s}F{m} {s}B{m}" for m in range(40)) for s in range(2)])
    rows = timeline(simulate(problem, order), width=60).splitlines()
    assert len(rows) == 2
    assert all(len(row) == len("0 | ") + 60 for row in rows)


@pytest.mark.parametrize("seed", range(60))
def test_all_rows_are_equally_long_and_within_the_width(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng, max_ops=60, longest=rng.choice([4, 1000]), zeros=True)
    schedule = simulate(problem, random_order(rng, problem))
    for width in (1, 40, 120):
        rows = timeline(schedule, width).splitlines()
        assert len(rows) == problem.devices
        assert len({len(row) for row in rows}) == 1
        assert len(rows[0]) <= len("0 | ") + width


def test_what_cannot_be_is_drawn_too() -> None:
    def entry(text: str, device: int, start: int | Fraction, end: int | Fraction) -> Entry:
        return Entry(Op.parse(text), device, start, end)

    assert draw([], 2) == "0 | \n1 | "
    assert draw([entry("0F0", 5, 0, 1), entry("0F0", -1, 0, 1)], 1) == "0 | "
    overlapping = [entry("0F0", 0, 0, 4), entry("0F1", 0, 2, 6), entry("0B0", 0, 9, 7), entry("0B1", 0, -3, -1)]
    assert draw(overlapping, 1).startswith("0 | F")
    assert draw([entry("0F0", 0, 10**40, 10**40 + 1)], 1, width=30).count(".") <= 30
