"""Schedules as JSON, each with its problem: what ``minbubble solve -o plan.json`` writes and ``verify`` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from solver import metrics
from solver.errors import InvalidSchedule, ProblemError
from solver.export.files import write_text
from solver.ops import Op
from solver.problem import MAX_OPS, Problem
from solver.problem_file import problem_from_mapping, problem_to_mapping, read_mapping
from solver.schedule import Entry, Schedule
from solver.units import exact, plain, to_json, whole
from solver.validate import entry_violations


def schedule_to_mapping(schedule: Schedule) -> dict[str, Any]:
    """The schedule, its metrics and its problem as plain JSON values, in the problem's units.

    Keys: name, makespan, span, bubble_ratio, peak_memory (per device), schedule (list of op, device, start, end),
    problem (the keys of the problem file). A value that is no exact decimal is a string such as "1/3".
    """
    return {
        "name": schedule.problem.name,
        "makespan": to_json(metrics.makespan(schedule)),
        "span": to_json(metrics.span(schedule)),
        "bubble_ratio": metrics.bubble_ratio(schedule),
        "peak_memory": [to_json(peak) for peak in metrics.peak_memory(schedule)],
        "schedule": entries_to_list(schedule.entries()),
        "problem": problem_to_mapping(schedule.problem),
    }


def entries_to_list(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Timetable entries as plain JSON values.

    >>> entries_to_list([Entry(Op.parse("0F0"), 0, 0, Fraction(1, 3))])
    [{'op': '0F0', 'device': 0, 'start': 0, 'end': '1/3'}]
    """
    return [{"op": str(e.op), "device": e.device, "start": to_json(e.start), "end": to_json(e.end)} for e in entries]


def write(schedules: Mapping[str, Schedule], path: Path) -> None:
    """Write ``schedule_to_mapping`` of the one schedule, one op a line."""
    (schedule,) = schedules.values()
    write_text(path, schedule_json(schedule_to_mapping(schedule)))


def schedule_json(content: Mapping[str, Any]) -> str:
    """JSON text of a mapping with a ``schedule``, one op a line."""
    entries = ",\n  ".join(json.dumps(entry) for entry in content["schedule"])
    head = json.dumps({key: value for key, value in content.items() if key != "schedule"}, indent=1)
    return f'{head.removesuffix("}").rstrip()},\n "schedule": [\n  {entries}\n ]\n}}\n'


def read_schedule(path: str | Path, problem: Problem | None = None) -> tuple[Problem, list[Entry]]:
    """The problem and the timetable in a JSON or TOML file, unjudged: ``entry_violations`` says what is wrong there.

    ``problem`` stands in for the file's own. Raises ProblemError, naming file and key, for what is no such file.
    """
    content = read_mapping(path)
    try:
        if not isinstance(content, dict):
            raise ProblemError('must be one object with the keys "problem" and "schedule"')
        if problem is None:
            problem = _problem(content.get("problem"))
        return problem, entries_from_list(content.get("schedule"))
    except ProblemError as err:
        raise ProblemError(err.rule, ": ".join(part for part in (str(path), err.key) if part)) from None


def _problem(content: object) -> Problem:
    if content is None:
        raise ProblemError("is missing; give the problem file too (--problem FILE)", "problem")
    try:
        return problem_from_mapping(content)
    except ProblemError as err:
        raise ProblemError(err.rule, f"problem.{err.key}" if err.key else "problem") from None


def schedule_of(problem: Problem, entries: Sequence[Entry]) -> Schedule:
    """The schedule that a timetable is; InvalidSchedule, listing every breach, unless it obeys the rules.

    Starts between two of the problem's ticks go down to the tick, which breaks no rule: every duration and latency is
    whole ticks, so what ended before still does, and no two holds meet that did not.
    """
    if not entries:
        raise ProblemError("is empty: no schedule was found", "schedule")
    found = entry_violations(problem, entries)
    if found:
        shown = "\n".join(str(v) for v in found[:20])
        raise InvalidSchedule(f"{len(found)} violations:\n{shown}", found)
    starts = np.full(problem.shape, -1, dtype=np.int64)
    for e in entries:
        starts[e.op.kind, e.op.stage, e.op.microbatch] = e.start // problem.time_unit
    return Schedule(problem, starts)


def entries_from_list(items: object) -> list[Entry]:
    """Timetable entries from a JSON list; ProblemError names the first item and key that is malformed."""
    if not isinstance(items, list):
        raise ProblemError("must be a list of ops, each with op, device, start and end", "schedule")
    return [_entry(item, f"schedule[{i}]") for i, item in enumerate(items)]


def _entry(item: object, key: str) -> Entry:
    if not isinstance(item, dict):
        raise ProblemError('must be an object such as {"op": "0F0", "device": 0, "start": 0, "end": 1}', key)
    for name in Entry._fields:
        if name not in item:
            raise ProblemError("is missing", f"{key}.{name}")
    try:
        op = Op.parse(str(item["op"]))
    except ProblemError as err:
        raise ProblemError(err.rule, f"{key}.op") from None
    device = whole(item["device"], f"{key}.device", 0)
    if device > MAX_OPS:
        raise ProblemError(f"device {item['device']} does not exist", f"{key}.device")
    return Entry(op, device, _time(item["start"], f"{key}.start"), _time(item["end"], f"{key}.end"))


def _time(value: object, key: str) -> int | Fraction:
    """A time of either sign: a negative one is for the judge to report, not for the reader."""
    text = str(value) if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool) else ""
    return plain(-exact(text[1:], key) if text.startswith("-") else exact(value, key))
