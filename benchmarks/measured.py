"""``minbubble measured``: iterations measured on real machines beside simulated ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

SUITES = Path(__file__).parent / "suites"
VOCABULARY_PARALLELISM = "VocabularyParallelism, arXiv 2411.05288, measured results of its code"


@dataclass(frozen=True)
class Measured:
    """``makespan`` of one iteration of ``schedule`` on the suite of this name, in its time unit."""

    problem: str
    schedule: str
    makespan: int
    source: str


MEASURED = (
    Measured("a100-128k", "1f1b", 8_202_600, VOCABULARY_PARALLELISM),
    Measured("a100-256k", "1f1b", 11_722_200, VOCABULARY_PARALLELISM),
)
"""Both in microseconds, on 8 A100s."""


def measured(problem: str) -> dict[str, Measured]:
    """What was measured for the problem of this name, by schedule."""
    return {row.schedule: row for row in MEASURED if row.problem == problem}


@click.command("measured")
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
def measured_command(markdown: bool) -> None:
    """Iterations measured on real machines, beside the simulated ones and the least that is possible there.

    \b
    Examples:
      minbubble measured
      minbubble measured --markdown
    """
    from benchmarks.render import Column, markdown_table, show_table

    numbers = ("measured", "simulated", "difference", "least possible")
    columns = (Column("suite"), Column("schedule"), *(Column(name, True) for name in numbers))
    cells = [_cells(row) for row in MEASURED]
    if markdown:
        click.echo(markdown_table(columns, cells))
    else:
        show_table(columns, [cells])


def _cells(row: Measured) -> tuple[str, ...]:
    from benchmarks.comparison import rows, with_optima
    from benchmarks.render import number
    from solver import Status, load_problem, metrics
    from solver.workload import workload_of

    workload = workload_of(load_problem(SUITES / f"{row.problem}.toml"))
    (compared,) = with_optima(rows(workload, [row.schedule]), time_limit=20)
    simulated, best = metrics.makespan(compared.judged), compared.optimum
    least = "not proven" if best is None or best.status != Status.OPTIMAL else number(best.makespan)
    difference = f"{float(simulated / row.makespan - 1):+.2%}"
    return (row.problem, row.schedule, number(row.makespan), number(simulated), difference, least)
