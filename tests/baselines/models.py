"""Models on which every baseline must be valid: equal and unequal stages, with and without latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from baselines import Baseline
from solver import Problem, Stage, UnsupportedProblem, Workload

TRAITS = ("equal", "latency", "unequal", "instant")


def model(devices: int, microbatches: int, trait: str) -> Workload:
    """A split model of P device-stages that has ``trait``."""
    if trait == "unequal":
        stages = [
            Stage.split(2 + d % 3, 1 + (2 * d) % 5, 1 + (d * d) % 4, 1 + d % 2, d % 3, d % 2, 1) for d in range(devices)
        ]
        matrix = [[0 if a == b else 1 + (3 * a + b) % 4 for b in range(devices)] for a in range(devices)]
        return Workload.of(stages, devices, microbatches, matrix)
    times = (0, 3, 0) if trait == "instant" else (2, 2, 2)
    stage = Stage.split(*times)
    return Workload.of([stage] * devices, devices, microbatches, 3 if trait == "latency" else 0)


def applicable(
    baseline: Baseline, counts: Sequence[int] = (1, 2, 3, 4), **options: object
) -> Iterator[tuple[str, Problem]]:
    """Every (description, problem) of the grid, on ``counts`` devices, to which the baseline applies."""
    for devices, trait in product(counts, TRAITS):
        for microbatches in sorted({1, 3, devices, 2 * devices, 2 * devices + 1, 3 * devices}):
            problem = baseline.problem(model(devices, microbatches, trait), **options)
            try:
                baseline.order(problem, **options)
            except UnsupportedProblem:
                continue
            yield f"P={devices} M={microbatches} {trait}", problem
