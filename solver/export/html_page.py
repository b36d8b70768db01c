"""A self-contained page (no network) to zoom, pan and hover in: ``page.html`` with the schedules put into it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from solver import memory, metrics
from solver.export.captions import caption
from solver.export.files import write_text
from solver.export.palette import CAP, COLOURS, EDGE, IDLE, MEANINGS, MEMORY, chunk_table, fill, ink
from solver.ops import OpKind
from solver.schedule import Schedule

MAX_TITLE = 80


def write(schedules: Mapping[str, Schedule], path: Path) -> None:
    """Write the page of all schedules, one below the other on one time axis."""
    write_text(path, page(schedules))


def page(schedules: Mapping[str, Schedule]) -> str:
    """The page as text."""
    template = files("solver.export").joinpath("page.html").read_text(encoding="utf-8")
    heading = ", ".join(title or "schedule" for title in schedules)
    data = json.dumps(page_data(schedules), separators=(",", ":")).replace("<", "\\u003c")
    shown = heading if len(heading) <= MAX_TITLE else heading[: MAX_TITLE - 3] + "..."
    return template.replace("{{title}}", html.escape(shown)).replace("{{data}}", data)


def page_data(schedules: Mapping[str, Schedule]) -> dict[str, Any]:
    """What the page draws: colours, and each schedule in ticks with its units."""
    kinds = sorted({kind for s in schedules.values() for stage in s.problem.stages for kind in stage.recipe.kinds})
    return {
        "colours": {"memory": MEMORY, "cap": CAP, "edge": EDGE, "idle": IDLE},
        "kinds": {kind.name: {"meaning": MEANINGS[kind], "colour": COLOURS[kind]} for kind in kinds},
        "schedules": [_schedule(title or "schedule", schedule) for title, schedule in schedules.items()],
    }


def _schedule(title: str, schedule: Schedule) -> dict[str, Any]:
    problem = schedule.problem
    fills, shades = _shades(schedule)
    return {
        "title": title,
        "summary": caption(schedule),
        "timeUnit": _ratio(problem.time_unit),
        "memoryUnit": _ratio(problem.memory_unit),
        "end": metrics.makespan_ticks(schedule),
        "fills": fills,
        "inks": [ink(colour) for colour in fills],
        "devices": [_device(schedule, device, shades) for device in range(problem.devices)],
    }


def _ratio(unit: Fraction) -> list[int]:
    return [unit.numerator, unit.denominator]


def _shades(schedule: Schedule) -> tuple[list[str], dict[tuple[int, OpKind, int], int]]:
    """The colours a schedule uses, and which of them (device, kind, stage) has."""
    chunk = chunk_table(schedule.problem)
    colour = {
        (device, kind, stage): fill(kind, *place)
        for (device, stage), place in chunk.items()
        for kind in schedule.problem.stages[stage].recipe.kinds
    }
    fills = sorted(set(colour.values()))
    return fills, {key: fills.index(value) for key, value in colour.items()}


def _device(schedule: Schedule, device: int, shades: Mapping[tuple[int, OpKind, int], int]) -> dict[str, Any]:
    """One device: its ops as columns in order of start, and its memory as times and levels."""
    problem = schedule.problem
    kinds, stages, micros = np.nonzero(problem.op_device == device)
    starts, ends = schedule.starts[kinds, stages, micros], schedule.ends[kinds, stages, micros]
    order = np.lexsort((ends, starts))
    times, levels = memory.profile(problem, schedule.starts, device)
    settled = {0: int(problem.static[device])} | dict(zip(times.tolist(), levels.tolist(), strict=True))
    cap = problem.memory_cap[device]
    return {
        "kind": "".join(OpKind(k).name for k in kinds[order].tolist()),
        "stage": stages[order].tolist(),
        "micro": micros[order].tolist(),
        "start": starts[order].tolist(),
        "end": ends[order].tolist(),
        "fill": [
            shades[device, OpKind(k), s] for k, s in zip(kinds[order].tolist(), stages[order].tolist(), strict=True)
        ],
        "times": list(settled),
        "levels": list(settled.values()),
        "cap": None if cap is None else int(cap / problem.memory_unit),
    }
