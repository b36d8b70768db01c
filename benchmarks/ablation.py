"""``minbubble ablation``: what each strengthening and each bound contributes, switched off one at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.table import TABLE_FORMATS

if TYPE_CHECKING:
    from benchmarks.suite import SolverSettings, Task

ALL_ON = "all on"
ALL_OFF = "all off"


@click.command("ablation")
@click.argument("suite", default="ablation")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Records; default: NAME.jsonl in this folder.")
@click.option("--time-limit", type=click.FloatRange(min=0), help="Seconds for each solve, instead of the suite's.")
@click.option("--jobs", type=click.IntRange(1, 10_000), help="Solves side by side; default: as many as the cores hold.")
@click.option("--format", "layout", type=click.Choice(TABLE_FORMATS), default="markdown", show_default=True)
def ablation_command(suite: str, output: Path | None, time_limit: float | None, jobs: int | None, layout: str) -> int:
    """Solve each problem in SUITE with everything on, with one thing off at a time, and with all off.

    SUITE is a sweep's file or the name of one that comes with minbubble; of its [[solver]] tables the first one holds.
    What is switched off: each strengthening of the search, each bound, all bounds together ("no bounds"); "all off" is
    the textbook model. A row each, a column a problem: the seconds to the proof, or the gap at the time limit.

    Each solve is on record before the next is begun: stopped at any moment, the same command goes on where it was.

    \b
    Examples:
      minbubble ablation
      minbubble ablation mine.toml --time-limit 10 -o records.jsonl --format csv

    Exit code: 0 all is on record, 1 some solves failed, 2 the suite or the usage is wrong.
    """
    from benchmarks.records import read_records
    from benchmarks.sweep import record_all
    from benchmarks.tables import FORMATS, table

    name, tasks = ablation_tasks(suite, time_limit)
    path = output or Path(f"{name}.jsonl")
    code = record_all(tasks, path, jobs)
    keys = {task.key for task in tasks}
    click.echo(FORMATS[layout](table([r for r in read_records([path]) if r["key"] in keys], "ablation")))
    return code


def ablation_tasks(suite: str, time_limit: float | None = None) -> tuple[str, list[Task]]:
    """The suite's name, and a task for each problem and row of the table."""
    from dataclasses import replace

    from benchmarks.suite import load_suite

    found, tasks = load_suite(suite)
    base = found.solver[0]
    if time_limit is not None:
        base = base.model_copy(update={"time_limit": time_limit})
    problems = [task for task in tasks if task.solver == found.solver[0]]
    return found.name, [replace(task, solver=row) for task in problems for row in ablation_rows(base)]


def ablation_rows(base: SolverSettings) -> list[SolverSettings]:
    """All on; each strengthening and each bound of the minimised metrics off; all bounds off; all off."""
    from solver.cpsat.switches import Switches

    rules = bound_names(base.minimize)
    off: dict[str, tuple[str, ...]] = {ALL_ON: ()}
    off |= {f"no {name}": (name,) for name in Switches.names() if name != "bounds"}
    off |= {f"no {name} bound": (name,) for name in rules}
    off |= {"no bounds": ("bounds", *rules), ALL_OFF: (*Switches.names(), *rules)}
    return [
        base.model_copy(update={"name": name, "without": names, "textbook": False, "start": None})
        for name, names in off.items()
    ]


def bound_names(metrics: Collection[str] = ()) -> tuple[str, ...]:
    """The rules of ``solver.bounds`` for these metrics, or for any, by name."""
    from solver.bounds import BOUNDS

    return tuple(dict.fromkeys(rule.__name__ for metric in metrics or BOUNDS for rule in BOUNDS[metric]))


@contextmanager
def without_bounds(names: Collection[str]) -> Iterator[None]:
    """In this process, as if ``solver.bounds`` had no rules of these names."""
    from solver import bounds
    from solver.bound import Bound
    from solver.goal import Goal
    from solver.problem import Problem

    def nothing(problem: Problem, goal: Goal) -> Bound:
        return Bound(0, "none", None, "every bound is switched off")

    known = bounds.BOUNDS
    kept = {metric: tuple(r for r in rules if r.__name__ not in names) for metric, rules in known.items()}
    bounds.BOUNDS = {metric: rules or (nothing,) for metric, rules in kept.items()}
    try:
        yield
    finally:
        bounds.BOUNDS = known
