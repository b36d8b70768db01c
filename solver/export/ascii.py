"""ASCII timelines in a text file, several one below the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from solver.export.captions import caption
from solver.export.files import write_text
from solver.schedule import Schedule
from solver.timeline import timeline

WIDTH = 240


def write(schedules: Mapping[str, Schedule], path: Path) -> None:
    """Write each schedule's title, makespan, bubble and timeline."""
    write_text(path, "\n\n".join(_block(title, schedule) for title, schedule in schedules.items()) + "\n")


def _block(title: str, schedule: Schedule) -> str:
    return f"{title or 'schedule'}: {caption(schedule)}\n{timeline(schedule, WIDTH)}"
