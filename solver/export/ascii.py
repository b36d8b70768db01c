"""ASCII timelines in a text file, several one below the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from solver import metrics
from solver.export.files import write_text
from solver.schedule import Schedule
from solver.timeline import timeline
from solver.units import to_json

WIDTH = 240


def write(schedules: Mapping[str, Schedule], path: Path) -> None:
    """Write each schedule's title, makespan, bubble and timeline."""
    write_text(path, "\n\n".join(_block(title, schedule) for title, schedule in schedules.items()) + "\n")


def _block(title: str, schedule: Schedule) -> str:
    makespan, bubble = to_json(metrics.makespan(schedule)), metrics.bubble_ratio(schedule)
    return f"{title or 'schedule'}: makespan {makespan}, bubble {bubble:.1%}\n{timeline(schedule, WIDTH)}"
