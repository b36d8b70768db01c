"""``minbubble export``: a schedule, or several, in the format of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from solver import Schedule


@click.command("export")
@click.argument("schedules", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--problem", "problem_file", type=click.Path(path_type=Path), help="The problem of a PyTorch plan (.csv)."
)
def export_command(schedules: Sequence[Path], output: Path, problem_file: Path | None) -> int:
    """Write SCHEDULES, as ``minbubble solve -o`` saved them, to OUTPUT in the format of its suffix.

    \b
      .csv                PyTorch pipelining plan (compute_only), for _PipelineScheduleRuntime
      .png .svg .pdf      picture with memory curves; several schedules on one time axis
      .html               page to zoom and hover in; no network needed
      .trace.json         trace for Perfetto or chrome://tracing
      .txt                ASCII timeline
      .json               schedule with its problem, for minbubble verify

    \b
    Examples:
      minbubble export best.json plan.csv
      minbubble export best.json hand-made.json both.png

    Every schedule is judged first: one that breaks a rule is not written.
    """
    from solver import save
    from solver.export.registry import format_of

    format_of(output)
    save(_titled(schedules, problem_file), output)
    click.echo(f"wrote {output}")
    return 0


def _titled(paths: Sequence[Path], problem_file: Path | None) -> dict[str, Schedule]:
    """Each schedule by its problem's name, or by its file's where that is missing or there are several."""
    from solver import load_problem, load_schedule

    problem = None if problem_file is None else load_problem(problem_file)
    read = {path: load_schedule(path, problem) for path in paths}
    if len(read) == 1:
        return {schedule.problem.name or path.stem: schedule for path, schedule in read.items()}
    by_stem = {path.stem: schedule for path, schedule in read.items()}
    return by_stem if len(by_stem) == len(read) else {str(path): schedule for path, schedule in read.items()}
