"""Which suffix means which format. To add one: a module with ``write(schedules, path)`` beside this, a line here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from solver.errors import ProblemError
from solver.problem import Problem
from solver.schedule import Schedule


class Format(NamedTuple):
    """A file format: the ``module`` whose ``write(schedules, path)`` makes it, and whether it holds ``several``."""

    module: str
    meaning: str
    several: bool = False


FORMATS: Mapping[str, Format] = {
    ".trace.json": Format("chrome_trace", "trace for Perfetto or chrome://tracing", several=True),
    ".json": Format("json_file", "schedule with its problem"),
    ".csv": Format("torch_csv", "PyTorch pipelining plan (compute_only)"),
    ".txt": Format("ascii", "ASCII timeline", several=True),
    ".png": Format("gantt", "picture", several=True),
    ".svg": Format("gantt", "picture", several=True),
    ".pdf": Format("gantt", "picture", several=True),
    ".html": Format("html_page", "page to zoom and hover in", several=True),
}
"""Suffix -> format; of two suffixes that match, the longer wins."""


def save(schedules: Schedule | Mapping[str, Schedule], path: str | Path) -> None:
    """Write a schedule, or several by title, in the format that the suffix of ``path`` names.

    Raises ProblemError for an unknown suffix, several schedules where the format holds one, or a file that cannot be
    written; UnsupportedProblem where the format cannot say what the schedule does.
    """
    path = Path(path)
    chosen = format_of(path)
    named = {schedules.problem.name: schedules} if isinstance(schedules, Schedule) else dict(schedules)
    if len(named) != 1 and not (chosen.several and named):
        several = ", ".join(suffix for suffix, known in FORMATS.items() if known.several)
        raise ProblemError(f"this format holds one schedule, got {len(named)}; several go into {several}", str(path))
    import_module(f"solver.export.{chosen.module}").write(named, path)


def format_of(path: Path) -> Format:
    """The format that a file name asks for; ProblemError lists the known suffixes.

    >>> format_of(Path("plan.trace.json")).module, format_of(Path("plan.json")).module
    ('chrome_trace', 'json_file')
    """
    matching = [suffix for suffix in FORMATS if path.name.lower().endswith(suffix)]
    if not matching:
        raise ProblemError(f"unknown suffix {path.suffix!r}; known are {', '.join(FORMATS)}", str(path))
    return FORMATS[max(matching, key=len)]


def load_schedule(path: str | Path, problem: Problem | None = None) -> Schedule:
    """The valid schedule in a ``.json`` file, or in a PyTorch ``.csv`` plan of ``problem``.

    Raises ProblemError for a malformed file and InvalidSchedule for one that breaks a rule.
    """
    from solver.export.json_file import read_schedule, schedule_of
    from solver.export.torch_csv import read_torch_csv
    from solver.validate import validate

    if Path(path).suffix.lower() != ".csv":
        return schedule_of(*read_schedule(path, problem))
    if problem is None:
        raise ProblemError("a PyTorch plan has no times: give its problem too (--problem FILE)", str(path))
    schedule = read_torch_csv(path, problem)
    validate(schedule)
    return schedule
