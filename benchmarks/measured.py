"""Iterations measured on real machines; their stage times are the suites of the same name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """``makespan`` of one iteration of ``schedule`` on the problem of this name, in the problem's time unit."""

    problem: str
    schedule: str
    makespan: int
    source: str


MEASURED = (
    Measured("a100-128k", "1f1b", 8_202_600, "VocabularyParallelism (arXiv 2411.05288), measured results of its code"),
    Measured("a100-256k", "1f1b", 11_722_200, "VocabularyParallelism (arXiv 2411.05288), measured results of its code"),
)
"""Both in microseconds, on 8 A100s."""


def measured(problem: str) -> dict[str, Measured]:
    """What was measured for the problem of this name, by schedule."""
    return {row.schedule: row for row in MEASURED if row.problem == problem}
