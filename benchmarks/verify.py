"""``minbubble verify``: judge a schedule made anywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.render import number

if TYPE_CHECKING:
    from solver import Problem
    from solver.schedule import Entry
    from solver.validate import Violation


@click.command("verify")
@click.argument("schedule", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--problem", "problem_file", type=click.Path(path_type=Path), help="Judge by this problem file instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify_command(schedule: Path, problem_file: Path | None, as_json: bool) -> int:
    """Judge a schedule made anywhere: prints every violation of the rules, and the timeline.

    SCHEDULE is a .json or .toml file with the keys "schedule", a list of {"op": "0F0", "device": 0, "start": 0,
    "end": 1}, and "problem", the keys of a problem file; or a PyTorch pipelining plan (.csv, with --problem).

    \b
    Examples:
      minbubble solve -o best.json && minbubble verify best.json
      minbubble verify mine.json --problem plan.toml

    Exit code: 0 the schedule obeys every rule, 1 it does not, 2 the file is no schedule.
    """
    from solver.validate import entry_violations

    problem, entries = _read(schedule, problem_file)
    found = entry_violations(problem, entries)
    click.echo(_as_json(problem, entries, found) if as_json else _as_text(problem, entries, found))
    return 1 if found else 0


def _read(path: Path, problem_file: Path | None) -> tuple[Problem, Sequence[Entry]]:
    from solver import ProblemError, load_problem
    from solver.export.json_file import read_schedule
    from solver.export.torch_csv import read_torch_csv

    problem = None if problem_file is None else load_problem(problem_file)
    if path.suffix.lower() != ".csv":
        return read_schedule(path, problem)
    if problem is None:
        raise ProblemError("a PyTorch plan has no times; give its problem too: --problem FILE", str(path))
    return problem, read_torch_csv(path, problem).entries()


def _as_text(problem: Problem, entries: Sequence[Entry], found: Sequence[Violation]) -> str:
    from solver.timeline import draw

    end = max((entry.end for entry in entries), default=0)
    verdict = [f"valid: makespan {number(end)}, every rule obeyed by all {len(entries)} ops"]
    if found:
        verdict = [f"{len(found)} violation{'s' if len(found) > 1 else ''}", *map(str, found)]
    return "\n".join([*verdict, "", draw(entries, problem.devices)])


def _as_json(problem: Problem, entries: Sequence[Entry], found: Sequence[Violation]) -> str:
    breaches = [{"rule": v.rule, "text": v.text, "ops": [str(op) for op in v.ops], "device": v.device} for v in found]
    return json.dumps({"name": problem.name, "valid": not found, "ops": len(entries), "violations": breaches}, indent=1)
