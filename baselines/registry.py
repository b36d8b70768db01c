"""What a hand-made schedule is, and how it meets a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from solver.ops import Recipe
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder, Schedule
from solver.simulate import simulate
from solver.workload import Workload


@dataclass(frozen=True)
class Baseline:
    """A hand-made schedule: a pure order rule, and the placement and recipe it is made for.

    ``rule(problem, **options)`` gives the order, or raises UnsupportedProblem with the rule it needs.
    ``placement(devices, **options)`` is where it runs; ``options`` are its keywords with their defaults.
    ``closed_form`` states makespan and peak memory with their validity, ``reference`` the paper and section.
    ``re_derived`` marks a rule that no full text confirmed; tables footnote it.
    """

    name: str
    rule: Callable[..., DeviceOrder]
    placement: Callable[..., Placement]
    recipe: Recipe
    reference: str
    closed_form: str
    options: Mapping[str, object] = field(default_factory=dict)
    re_derived: bool = False

    def order(self, problem: Problem, **options: object) -> DeviceOrder:
        """The op order on a problem at hand."""
        return self.rule(problem, **{**self.options, **options})

    def problem(self, workload: Workload, **options: object) -> Problem:
        """The model on this schedule's own placement and recipe."""
        placement = self.placement(workload.devices, **{**self.options, **options})
        return workload.problem(placement, self.recipe)

    def schedule(self, workload: Workload, **options: object) -> Schedule:
        """The schedule of the model, on its own placement and recipe."""
        problem = self.problem(workload, **options)
        return simulate(problem, self.order(problem, **options))
