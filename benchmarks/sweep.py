"""``minbubble sweep``: a suite's grid of problems, schedules and solver settings, recorded one line each."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.render import percent

if TYPE_CHECKING:
    from rich.progress import Progress

    from benchmarks.executors import Submitter
    from benchmarks.records import Record, RecordFile
    from benchmarks.suite import Task


@click.command("sweep")
@click.argument("suite")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Records; default: NAME.jsonl in this folder.")
@click.option("--jobs", type=click.IntRange(1, 10_000), help="Tasks side by side; default: as many as the cores hold.")
@click.option("--executor", default="local", show_default=True, help="local, dask://HOST:PORT or slurm.")
def sweep_command(suite: str, output: Path | None, jobs: int | None, executor: str) -> int:
    """Run the grid in SUITE, a TOML file or the name of one that comes with minbubble, and record every result.

    Each record is one JSON line, on disk before the next is begun. Stopped at any moment, the same command goes on
    where it was: what is on record is not run again. minbubble table makes tables of the records.

    \b
    Examples:
      minbubble sweep generations -o records.jsonl
      minbubble sweep mine.toml --executor dask://scheduler:8786

    Exit code: 0 all is on record, 1 some tasks failed, 2 the suite or the usage is wrong.
    """
    from benchmarks.records import read_records
    from benchmarks.suite import load_suite

    found, tasks = load_suite(suite)
    path = output or Path(f"{found.name}.jsonl")
    code = record_all(tasks, path, jobs, executor)
    click.echo(f"{len(read_records([path]))} records in {path}")
    return code


def record_all(tasks: Sequence[Task], path: Path, jobs: int | None = None, executor: str = "local") -> int:
    """Run what is not on record in ``path`` yet, and say how it goes: 0 if all is there in the end, 1 if not."""
    from benchmarks.records import RecordFile
    from benchmarks.runner import Sweep

    with RecordFile(path) as file:
        _say_where_it_stands(file, tasks)
        with _display(len(tasks), sum(task.key in file.done for task in tasks)) as display:
            sweep = Sweep(file, _submitter(executor, jobs, tasks), display.recorded, display.running)
            try:
                sweep.run(tasks)
            except KeyboardInterrupt:
                click.echo(f"{len(file.done)} records are in {path}; the same command goes on from there", err=True)
                raise
        for task, reason in sweep.failed:
            click.echo(f"failed: {task}: {reason}", err=True)
    return 1 if sweep.failed else 0


def _say_where_it_stands(file: RecordFile, tasks: Sequence[Task]) -> None:
    if file.dropped:
        click.echo(f"warning: {file.path}: dropped a torn last line of {len(file.dropped)} characters", err=True)
    done = sum(task.key in file.done for task in tasks)
    if done:
        click.echo(f"{done} of {len(tasks)} tasks are on record", err=True)


def _submitter(executor: str, jobs: int | None, tasks: Sequence[Task]) -> Submitter:
    from benchmarks.executors import Pool, dask_cluster, slurm_cluster
    from benchmarks.runner import default_jobs

    if executor == "local":
        return Pool(jobs or default_jobs(tasks))
    if executor.startswith("dask://"):
        return dask_cluster(executor.replace("dask://", "tcp://", 1))
    if executor == "slurm":
        settings = [task.solver for task in tasks if task.solver]
        threads = max((s.workers for s in settings), default=1)
        minutes = int(max((s.time_limit for s in settings), default=0) // 60 * 2 + 10)
        return slurm_cluster(jobs or 100, threads, minutes, "slurm-logs")
    raise click.UsageError(f"--executor is local, dask://HOST:PORT or slurm, got {executor!r}")


class Display:
    """Where a sweep says what it is at: here, a line a record on stderr."""

    def recorded(self, task: Task, record: Record) -> None:
        """A record is on disk."""
        click.echo(f"{task}: {outcome_text(record)}", err=True)

    def running(self, tasks: Collection[Task]) -> None:
        """These tasks run now."""


class LiveDisplay(Display):
    """On a terminal: a bar with what is done and the time left, and below it what is proven, open and running."""

    def __init__(self, bar: Progress, total: int, done: int) -> None:
        self._bar, self._row = bar, bar.add_task("", total=total, completed=done)
        self._gaps: list[float] = []
        self._now = ""

    def recorded(self, task: Task, record: Record) -> None:
        """Print the record above the bar."""
        if record.get("gap") is not None:
            self._gaps.append(record["gap"])
        self._bar.console.print(f"{task}: {outcome_text(record)}", markup=False, highlight=False)
        self._bar.update(self._row, advance=1)

    def running(self, tasks: Collection[Task]) -> None:
        """Show how many are proven, the largest gap, and what runs."""
        open_gaps = [gap for gap in self._gaps if gap]
        largest = f" (largest gap {max(open_gaps):.2%})" if open_gaps else ""
        known = f"{len(self._gaps) - len(open_gaps)} proven, {len(open_gaps)} open{largest}"
        first = f", {len(tasks)} running: {next(iter(tasks))}" if tasks else ""
        self._bar.update(self._row, description=known + first)


@contextmanager
def _display(total: int, done: int) -> Iterator[Display]:
    if not sys.stderr.isatty():
        yield Display()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    what = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True))
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), what)
    with Progress(*columns, console=Console(stderr=True), expand=True) as bar:
        yield LiveDisplay(bar, total, done)


def outcome_text(record: Record) -> str:
    """A record in a few words: "makespan 33, OPTIMAL in 0.02 s"."""
    if record.get("makespan") is None:
        return f"{record['status']}: {record.get('reason') or 'no schedule was found'}"
    if record.get("wall_time") is None:
        over = ", over the cap" if record["violations"] else ""
        return f"makespan {record['makespan']}, bubble {percent(record['bubble_ratio'])}{over}"
    gap = f", gap {record['gap']:.2%}" if record["gap"] else ""
    return f"makespan {record['makespan']}, {record['status']}{gap} in {record['wall_time']:.2f} s"
