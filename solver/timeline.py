"""ASCII timelines: one row a device, time from left to right."""

from __future__ import annotations

from collections.abc import Iterable

from solver.schedule import Entry, Schedule

MAX_WIDTH = 120


def timeline(schedule: Schedule, width: int = MAX_WIDTH) -> str:
    """Rows such as ``0 | F0F1..B0--B1--``: letter and micro-batch (``2F0`` with several stages a device).

    A dash continues an op, a dot is idle. Drawn to scale in at most about ``width`` columns; labels that do not
    fit shrink to the op's letter.
    """
    return draw(schedule.entries(), schedule.problem.devices, width)


def draw(entries: Iterable[Entry], devices: int, width: int = MAX_WIDTH) -> str:
    """A timeline of any entries, valid or not; entries on devices that do not exist are left out."""
    rows: list[list[Entry]] = [[] for _ in range(devices)]
    for entry in entries:
        if 0 <= entry.device < devices:
            rows[entry.device].append(entry)
    several = any(len({e.op.stage for e in row}) > 1 for row in rows)
    scale = _columns_per_unit(rows, several, width)
    end = max((e.end for row in rows for e in row), default=0)
    margin = len(str(devices - 1))
    lines = [f"{d:>{margin}} | {_row(row, several, scale, round(end * scale))}" for d, row in enumerate(rows)]
    return "\n".join(lines)


def _label(entry: Entry, several: bool) -> str:
    return str(entry.op) if several else f"{entry.op.kind}{entry.op.microbatch}"


def _columns_per_unit(rows: list[list[Entry]], several: bool, width: int) -> float:
    """Enough columns that every op shows its label, but no more than ``width`` in all."""
    entries = [entry for row in rows for entry in row]
    needed = [len(_label(e, several)) / (e.end - e.start) for e in entries if e.end > e.start]
    fitting = [width / e.end for e in entries if e.end > 0]
    return float(min(max(needed, default=1), min(fitting, default=1)))


def _row(row: list[Entry], several: bool, scale: float, columns: int) -> str:
    cells = ["."] * columns
    for entry in sorted(row, key=lambda e: (e.start, e.end)):
        first, last = round(entry.start * scale), round(entry.end * scale)
        label = _label(entry, several)
        text = label if len(label) <= last - first else str(entry.op.kind)
        for i in range(max(first, 0), min(last, columns)):
            cells[i] = text[i - first] if i - first < len(text) else "-"
    return "".join(cells)
