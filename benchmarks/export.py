"""``minbubble export``: a schedule, or several, in the format of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from solver import Problem, Schedule


@click.command("export")
@click.argument("schedules", nargs=-1, required=True)
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--problem", "problem_file", type=click.Path(path_type=Path), help="For .csv plans and hand-made ones.")
def export_command(schedules: Sequence[str], output: Path, problem_file: Path | None) -> int:
    """Write SCHEDULES to OUTPUT in the format of its suffix.

    \b
      .csv                PyTorch pipelining plan (compute_only), for _PipelineScheduleRuntime
      .png .svg .pdf      picture with memory curves; several schedules on one time axis
      .html               page to zoom and hover in; no network needed
      .trace.json         trace for Perfetto or chrome://tracing
      .txt                ASCII timeline
      .json               schedule with its problem, for minbubble verify

    A schedule is a file that minbubble solve -o saved, a .csv plan, or the name of a hand-made schedule, which is then
    made for the model in --problem, or else in the first file. A file whose schedule breaks a rule is not written.

    \b
    Examples:
      minbubble export best.json plan.csv
      minbubble export best.json 1f1b chimera comparison.png
      minbubble export zb-h1 zb-h1.json --problem plan.toml
    """
    from solver import save
    from solver.export.registry import format_of

    format_of(output)
    save(_titled(schedules, problem_file), output)
    click.echo(f"wrote {output}", err=True)
    return 0


def _titled(names: Sequence[str], problem_file: Path | None) -> dict[str, Schedule]:
    """Each schedule by a title: its file's or its rule's name, or the problem's where there is one file alone."""
    from solver import load_problem, load_schedule

    given = None if problem_file is None else load_problem(problem_file)
    files = {name: load_schedule(name, given) for name in names if not _is_hand_made(name)}
    model = given or next((schedule.problem for schedule in files.values()), None)
    titles: dict[str, Schedule] = {}
    for name in names:
        schedule = files[name] if name in files else _hand_made(name, model)
        stem = Path(name).stem if name in files else name
        titles[stem if stem not in titles else name] = schedule
    if len(titles) == 1 and files:
        return {schedule.problem.name or title: schedule for title, schedule in titles.items()}
    return titles


def _is_hand_made(name: str) -> bool:
    from baselines import BASELINES

    return name in BASELINES and not Path(name).exists()


def _hand_made(name: str, problem: Problem | None) -> Schedule:
    from baselines import get
    from solver.workload import workload_of

    if problem is None:
        raise click.UsageError(f"{name} is a rule for any model: give the model's file (--problem FILE)")
    return get(name).schedule(workload_of(problem))
