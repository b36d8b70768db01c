"""What a hand-made schedule is, and how it meets a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from solver.errors import ProblemError
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
    ``re_derived`` marks a rule that no full text confirmed; tables footnote it. What the schedule is, its closed
    form and its reference are read from the rule's docstring, where they are written once.
    """

    name: str
    rule: Callable[..., DeviceOrder]
    placement: Callable[..., Placement]
    recipe: Recipe
    options: Mapping[str, object] = field(default_factory=dict)
    re_derived: bool = False

    def order(self, problem: Problem, **options: object) -> DeviceOrder:
        """The op order on a problem at hand."""
        return self.rule(problem, **self._with_defaults(options))

    def problem(self, workload: Workload, **options: object) -> Problem:
        """The model on this schedule's own placement and recipe."""
        placement = self.placement(workload.devices, **self._with_defaults(options))
        return workload.problem(placement, self.recipe)

    def schedule(self, workload: Workload, **options: object) -> Schedule:
        """The schedule of the model, on its own placement and recipe."""
        problem = self.problem(workload, **options)
        return simulate(problem, self.order(problem, **options))

    @property
    def summary(self) -> str:
        """The rule in one sentence."""
        return (inspect.getdoc(self.rule) or "").partition("\n")[0]

    @property
    def closed_form(self) -> str:
        """Makespan and peak memory with their validity."""
        return self._section("Closed form")

    @property
    def reference(self) -> str:
        """Authors, year, paper and section."""
        return self._section("Reference")

    def _section(self, title: str) -> str:
        """The paragraph of the rule's docstring that opens with ``title``, without it; empty if there is none."""
        paragraphs = (inspect.getdoc(self.rule) or "").split("\n\n")
        texts = (p.removeprefix(f"{title}: ") for p in paragraphs if p.startswith(f"{title}: "))
        return " ".join(next(texts, "").split())

    def _with_defaults(self, options: Mapping[str, object]) -> dict[str, object]:
        for name in options.keys() - self.options.keys():
            known = ", ".join(self.options) or "none"
            raise ProblemError(f"{self.name} has no such option; its options: {known}", name)
        return {**self.options, **options}
