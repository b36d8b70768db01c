"""``minbubble sweep``: a suite's grid of problems, schedules and solver settings, recorded one line each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.render import percent

if TYPE_CHECKING:
    from benchmarks.executors import Submitter
    from benchmarks.records import Record, RecordFile
    from benchmarks.suite import Task

Report = Callable[["Task", "Record"], None]


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
    from benchmarks.records import RecordFile
    from benchmarks.runner import Sweep
    from benchmarks.suite import load_suite

    found, tasks = load_suite(suite)
    path = output or Path(f"{found.name}.jsonl")
    with RecordFile(path) as file:
        _say_where_it_stands(file, tasks)
        with _progress(tasks, len([task for task in tasks if task.key in file.done])) as report:
            sweep = Sweep(file, _submitter(executor, jobs, tasks), report)
            try:
                sweep.run(tasks)
            except KeyboardInterrupt:
                raise click.ClickException(f"stopped; the same command goes on from {len(file.done)} records") from None
        for task, reason in sweep.failed:
            click.echo(f"failed: {task}: {reason}", err=True)
        click.echo(f"{len(file.done)} records in {path}")
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


@contextmanager
def _progress(tasks: Sequence[Task], done: int) -> Iterator[Report]:
    """A live bar with time left and the largest gap so far on a terminal; elsewhere a line a record."""
    if not sys.stderr.isatty():
        yield lambda task, record: click.echo(f"{task}: {outcome_text(record)}", err=True)
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

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        row = bar.add_task("starting", total=len(tasks), completed=done)
        gaps: list[float] = []

        def report(task: Task, record: Record) -> None:
            if record.get("gap") is not None:
                gaps.append(record["gap"])
            bar.console.print(f"{task}: {outcome_text(record)}", markup=False, highlight=False)
            open_gaps = [gap for gap in gaps if gap]
            largest = f", largest gap {max(open_gaps):.2%}" if open_gaps else ""
            bar.update(
                row, advance=1, description=f"{len(gaps) - len(open_gaps)} proven, {len(open_gaps)} open{largest}"
            )

        yield report


def outcome_text(record: Record) -> str:
    """A record in a few words: "makespan 33, OPTIMAL in 0.02 s"."""
    if record.get("makespan") is None:
        return f"{record['status']}: {record.get('reason') or 'no schedule was found'}"
    if record.get("wall_time") is None:
        over = ", over the cap" if record["violations"] else ""
        return f"makespan {record['makespan']}, bubble {percent(record['bubble_ratio'])}{over}"
    gap = f", gap {record['gap']:.2%}" if record["gap"] else ""
    return f"makespan {record['makespan']}, {record['status']}{gap} in {record['wall_time']:.2f} s"
