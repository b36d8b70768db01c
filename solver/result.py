"""What ``solve`` gives back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from solver.metrics import METRICS
from solver.problem import Problem
from solver.schedule import Schedule
from solver.units import to_json


class Status(StrEnum):
    """OPTIMAL only where a bound equals the value or the search was exhausted."""

    OPTIMAL = "OPTIMAL"
    FEASIBLE = "FEASIBLE"
    INFEASIBLE = "INFEASIBLE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Progress:
    """One moment of a running solve: ``best`` (None before the first schedule) and ``bound`` in the user's units."""

    seconds: float
    best: int | Fraction | None
    bound: int | Fraction


@dataclass(frozen=True)
class Claim:
    """What is known of one minimised metric: its value in ticks (None without a schedule) and why it is no less."""

    metric: str
    value: int | None
    bound: int
    proof: str
    sentence: str

    @property
    def proven(self) -> bool:
        """Whether the bound meets the value."""
        return self.value is not None and self.bound >= self.value

    @property
    def gap(self) -> float:
        """(value - bound) / value: 0 when proven, 1 when nothing is known."""
        if self.value is None:
            return 1.0
        return (self.value - self.bound) / self.value if self.value > self.bound else 0.0


@dataclass(frozen=True)
class Result:
    """The best schedule found and what is proven of it; ``claims`` has one entry a minimised metric, in order."""

    problem: Problem
    status: Status
    schedule: Schedule | None
    claims: tuple[Claim, ...]
    wall_time: float
    interrupted: bool = False

    @property
    def minimize(self) -> tuple[str, ...]:
        """Names of the minimised metrics, first things first."""
        return tuple(c.metric for c in self.claims)

    def value(self, metric: str) -> int | Fraction | None:
        """Any metric of the schedule in the user's units; None without a schedule."""
        if self.schedule is None:
            return None
        return METRICS[metric].in_units(self.problem, METRICS[metric].ticks(self.schedule))

    @property
    def makespan(self) -> int | Fraction | None:
        """The schedule's makespan, whatever was minimised."""
        return self.value("makespan")

    @property
    def objective(self) -> int | Fraction | tuple[int | Fraction, ...] | None:
        """The minimised value; a tuple of them if several were."""
        values = tuple(v for v in map(self.value, self.minimize) if v is not None)
        if not values:
            return None
        return values if len(self.claims) > 1 else values[0]

    @property
    def lower_bound(self) -> int | Fraction | tuple[int | Fraction, ...] | None:
        """What the minimised value cannot be less than; of a tuple, each given the ones before; None if INFEASIBLE."""
        if self.status == Status.INFEASIBLE:
            return None
        bounds = tuple(METRICS[c.metric].in_units(self.problem, c.bound) for c in self.claims)
        return bounds if len(self.claims) > 1 else bounds[0]

    @property
    def gap(self) -> float:
        """The largest (value - bound) / value: 0 when OPTIMAL, 1 when there is no schedule."""
        return max(c.gap for c in self.claims)

    @property
    def proof(self) -> str:
        """The name of what proves the bound: one of ``solver.bounds``, or "search"; several joined by ", "."""
        return ", ".join(c.proof for c in self.claims)

    def explain(self) -> str:
        """In a sentence a metric: its value, and what proves that it cannot be less."""
        if self.status == Status.INFEASIBLE:
            return "No schedule obeys these limits: " + self.claims[-1].sentence + "."
        return "\n".join(map(self._explain, range(len(self.claims))))

    def _explain(self, number: int) -> str:
        claim, before = self.claims[number], self.claims[:number]
        in_units = METRICS[claim.metric].in_units
        bound = to_json(in_units(self.problem, claim.bound))
        if claim.value is None:
            return f"No schedule was found; {claim.metric} cannot be below {bound}: {claim.sentence}."
        value = to_json(in_units(self.problem, claim.value))
        if claim.proven:
            given = f" at {before[-1].metric} {to_json(self.value(before[-1].metric) or 0)}" if before else ""
            return f"{claim.metric} {value} is optimal{given}: {claim.sentence}."
        return f"{claim.metric} {value}; the optimum is at least {bound}, {claim.gap:.2%} less: {claim.sentence}."
