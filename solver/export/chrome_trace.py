"""Chrome trace events, for https://ui.perfetto.dev and chrome://tracing: one process a schedule, one track a device.

Ops are ``X`` events, transfers are flow arrows, memory in use is a ``C`` counter a device. One time unit of the
problem is one microsecond of the trace. Format: Google's "Trace Event Format" document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from solver import memory
from solver.export.files import write_text
from solver.graph import arcs
from solver.ops import Op
from solver.schedule import Schedule
from solver.units import to_json

Event = dict[str, Any]


def write(schedules: Mapping[str, Schedule], path: Path) -> None:
    """Write all schedules into one trace, one event a line."""
    lines = ",\n".join(json.dumps(event) for event in trace_events(schedules))
    write_text(path, f'{{"displayTimeUnit": "ms", "traceEvents": [\n{lines}\n]}}\n')


def trace_events(schedules: Mapping[str, Schedule]) -> Iterator[Event]:
    """The events of every schedule; the process number is its position."""
    for pid, (title, schedule) in enumerate(schedules.items()):
        yield from _names(title or "schedule", schedule.problem.devices, pid)
        yield from _ops(schedule, pid)
        yield from _transfers(schedule, pid)
        yield from _memory(schedule, pid)


def _names(title: str, devices: int, pid: int) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": title}}
    for device in range(devices):
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": device, "args": {"name": f"device {device}"}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": device, "args": {"sort_index": device}}


def _ops(schedule: Schedule, pid: int) -> Iterator[Event]:
    for op, device, start, end in schedule.entries():
        yield {
            "ph": "X",
            "name": str(op),
            "cat": op.kind.name,
            "pid": pid,
            "tid": device,
            "ts": float(start),
            "dur": float(end - start),
            "args": {"stage": op.stage, "microbatch": op.microbatch, "start": to_json(start), "end": to_json(end)},
        }


def _transfers(schedule: Schedule, pid: int) -> Iterator[Event]:
    """An arrow from near the end of the sending op, where viewers still find it inside the op, to the receiver."""
    problem = schedule.problem
    home = problem.op_device
    for arc in arcs(problem):
        for m in range(problem.microbatches):
            source, target = (*arc.before, m), (*arc.after, m)
            if home[source] == home[target]:
                continue
            start, end = (float(problem.in_time(t[source])) for t in (schedule.starts, schedule.ends))
            name = str(Op(arc.before[1], arc.before[0], m))
            flow = {"cat": "transfer", "name": name, "pid": pid, "id": f"{pid}:{name}"}
            yield {**flow, "ph": "s", "tid": int(home[source]), "ts": end - (end - start) / 100}
            arrival = float(problem.in_time(schedule.starts[target]))
            yield {**flow, "ph": "f", "bp": "e", "tid": int(home[target]), "ts": arrival}


def _memory(schedule: Schedule, pid: int) -> Iterator[Event]:
    problem = schedule.problem
    for device in range(problem.devices):
        times, levels = memory.profile(problem, schedule.starts, device)
        settled = {0: int(problem.static[device])} | dict(zip(times.tolist(), levels.tolist(), strict=True))
        for ticks, level in settled.items():
            yield {
                "ph": "C",
                "name": f"memory of device {device}",
                "pid": pid,
                "ts": float(problem.in_time(ticks)),
                "args": {"in use": float(problem.in_memory(level))},
            }
