"""What a lower bound says."""

from __future__ import annotations

from dataclasses import dataclass

from solver.problem import Problem
from solver.units import to_json


@dataclass(frozen=True)
class Bound:
    """No schedule has less than ``value`` ticks of the metric; ``sentence`` says why to a user."""

    value: int
    name: str
    device: int | None
    sentence: str


def by_value(bound: Bound) -> int:
    """The key to compare bounds by."""
    return bound.value


def in_time(problem: Problem, ticks: int) -> str:
    """Time ticks in words."""
    return str(to_json(problem.in_time(ticks)))
