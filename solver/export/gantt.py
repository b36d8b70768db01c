"""Gantt charts by matplotlib: a lane of ops a device, its memory below it, several schedules on one time axis.

``draw_gantt`` draws on the caller's axes; ``gantt_figure`` makes the figure that ``save`` writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver import memory, metrics
from solver.export.captions import caption
from solver.export.files import write_figure
from solver.export.palette import CAP, COLOURS, EDGE, IDLE, MEANINGS, MEMORY, chunk_table, fill, ink
from solver.ops import OpKind
from solver.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]

OPS_LANE = (0.06, 0.62)  # top and bottom of the ops within a device's row of height 1
MEMORY_LANE = (0.7, 0.95)
SMALLEST, LARGEST = 4.5, 8.0  # font sizes of micro-batch numbers, points


class Bars(NamedTuple):
    """The ops that last, as arrays: where they are drawn and what is written on them."""

    start: FloatArray
    width: FloatArray
    device: FloatArray
    colours: list[str]
    labels: list[str]


def write(schedules: Mapping[str, Schedule], path: Path) -> None:
    """Write a picture of all schedules on one time axis; the suffix chooses PNG, SVG or PDF."""
    write_figure(gantt_figure(schedules), path)


def gantt_figure(schedules: Mapping[str, Schedule], show_memory: bool = True) -> Figure:
    """A figure of one or several schedules stacked on one time axis, wide enough for the numbers where possible."""
    from matplotlib.figure import Figure

    end = max((float(metrics.makespan(s)) for s in schedules.values()), default=0.0)
    rows = [s.problem.devices for s in schedules.values()]
    row_height = float(np.clip(14 / max(rows), 0.42, 0.55))
    heights = [n * row_height + 0.75 for n in rows]
    width = max(_width_in_inches(s, end) for s in schedules.values())
    figure = Figure(figsize=(width, sum(heights) + 0.35), layout="constrained")
    axes = figure.subplots(len(rows), squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    for ax, (title, schedule) in zip(axes, schedules.items(), strict=True):
        ax.set_xlim(0, end * 1.002 or 1)
        ax.set_title(f"{title or 'schedule'}   {caption(schedule)}", loc="left", fontsize=9, parse_math=False)
        draw_gantt(ax, schedule, show_memory=show_memory, label_inches=(width - 1.6, row_height))
    axes[-1].set_xlabel("time")
    _legend(figure, list(schedules.values()), show_memory)
    return figure


def _width_in_inches(schedule: Schedule, end: float) -> float:
    """0.2 inches for a typical op, within what fits a page and a screen."""
    durations = schedule.problem.duration[schedule.problem.duration > 0]
    typical = float(np.median(durations)) * float(schedule.problem.time_unit) if durations.size else 1.0
    return float(np.clip(0.2 * end / typical + 1.6, 7.5, 40))


def draw_gantt(
    ax: Axes, schedule: Schedule, *, show_memory: bool = True, label_inches: tuple[float, float] | None = None
) -> None:
    """Draw the ops of every device on ``ax``, time in the problem's unit, and below each the memory it uses.

    Colours are by kind, paler for later chunks of a device; a dashed line is the device's cap. Micro-batch numbers
    stand where they fit, judged by ``label_inches``, the width of the x axis and the height of a row as drawn
    (default: what ``ax`` measures now).
    """
    problem = schedule.problem
    bars = _bars(schedule)
    end = float(metrics.makespan(schedule))
    if ax.get_xlim() == (0.0, 1.0):
        ax.set_xlim(0, end * 1.002 or 1)
    ax.set_ylim(problem.devices, 0)
    lane = OPS_LANE if show_memory else (0.1, 0.9)
    inches = label_inches or _measure(ax, problem.devices)
    _draw_bars(ax, bars, lane, end, problem.devices)
    _draw_labels(ax, bars, lane, inches)
    if show_memory:
        _draw_memory(ax, schedule, end)
    _draw_frame(ax, problem.devices, lane)


def _measure(ax: Axes, devices: int) -> tuple[float, float]:
    box = ax.get_window_extent()
    dpi = ax.figure.dpi
    return box.width / dpi, box.height / dpi / devices


def _bars(schedule: Schedule) -> Bars:
    problem = schedule.problem
    unit = float(problem.time_unit)
    chunk = chunk_table(problem)
    kinds, stages, micros = np.nonzero((schedule.starts >= 0) & (problem.duration > 0)[:, :, None])
    device = problem.op_device[kinds, stages, micros]
    colours = [
        fill(OpKind(k), *chunk[d, s]) for k, s, d in zip(kinds.tolist(), stages.tolist(), device.tolist(), strict=True)
    ]
    start = schedule.starts[kinds, stages, micros].astype(np.float64) * unit
    width = problem.duration[kinds, stages].astype(np.float64) * unit
    return Bars(start, width, device.astype(float), colours, [str(m) for m in micros.tolist()])


def _draw_bars(ax: Axes, bars: Bars, lane: tuple[float, float], end: float, devices: int) -> None:
    from matplotlib.collections import PolyCollection

    rows = np.arange(devices, dtype=float)
    idle = _rectangles(np.zeros(devices), np.full(devices, end), rows + lane[0], rows + lane[1])
    ax.add_collection(PolyCollection(idle, facecolors=IDLE, edgecolors="none", zorder=1), autolim=False)
    boxes = _rectangles(bars.start, bars.start + bars.width, bars.device + lane[0], bars.device + lane[1])
    thin = 0.4 if len(bars.labels) < 2000 else 0.2
    ax.add_collection(
        PolyCollection(boxes, facecolors=bars.colours, edgecolors=EDGE, linewidths=thin, zorder=2), autolim=False
    )


def _rectangles(left: FloatArray, right: FloatArray, top: FloatArray, bottom: FloatArray) -> list[FloatArray]:
    corners = np.stack([left, top, right, top, right, bottom, left, bottom], axis=-1)
    return list(corners.reshape(-1, 4, 2))


def _draw_labels(ax: Axes, bars: Bars, lane: tuple[float, float], inches: tuple[float, float]) -> None:
    """Numbers as shared glyph paths, one collection a number and ink: thousands of them cost little."""
    from matplotlib.collections import PathCollection
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    left, right = ax.get_xlim()
    room = bars.width * inches[0] * 72 / (right - left)
    size = _font_size(bars, room, (lane[1] - lane[0]) * inches[1] * 72)
    places: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for i, label in enumerate(bars.labels):
        if _text_width(label, size) <= room[i]:
            middle = (bars.start[i] + bars.width[i] / 2, bars.device[i] + sum(lane) / 2)
            places[label, ink(bars.colours[i])].append(middle)
    points = Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans
    for (label, colour), offsets in places.items():
        glyphs = TextPath((0, 0), label, size=size)
        box = glyphs.get_extents()
        centred = glyphs.transformed(Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2))
        numbers = PathCollection(
            [centred], offsets=offsets, offset_transform=ax.transData, facecolors=colour, linewidths=0, zorder=3
        )
        numbers.set_transform(points)
        ax.add_collection(numbers, autolim=False)


def _font_size(bars: Bars, room: FloatArray, height: float) -> float:
    """The largest size at which nine of ten numbers fit."""
    if not bars.labels:
        return LARGEST
    per_point = np.array([_text_width(label, 1.0) for label in bars.labels])
    fitting = float(np.quantile(room / per_point, 0.1))
    return float(np.clip(min(fitting, 0.8 * height), SMALLEST, LARGEST))


def _text_width(label: str, size: float) -> float:
    """Points that a number takes, with a little air: digits of the default font are 0.64 of its size wide."""
    return (0.64 * len(label) + 0.15) * size


def _draw_memory(ax: Axes, schedule: Schedule, end: float) -> None:
    """Memory in use as a filled step curve a device, all to one scale, and caps as dashed lines."""
    from matplotlib.collections import LineCollection, PolyCollection

    problem = schedule.problem
    peaks = [float(p) for p in metrics.peak_memory(schedule)]
    caps = [None if cap is None else float(cap) for cap in problem.memory_cap]
    scale = max(*peaks, *(cap for cap in caps if cap is not None), 0.0) or 1.0
    top, base = MEMORY_LANE
    height = (base - top) / scale
    curves = []
    for device in range(problem.devices):
        times, levels = step_curve(schedule, device, end)
        xs = np.concatenate([times[:1], np.repeat(times, 2)[1:], times[-1:]])
        ys = np.concatenate([[0.0], np.repeat(levels, 2)[:-1], [0.0]])
        curves.append(np.column_stack([xs, device + base - ys * height]))
    lines = [
        [(0.0, d + base - cap * height), (end, d + base - cap * height)]
        for d, cap in enumerate(caps)
        if cap is not None
    ]
    ax.add_collection(PolyCollection(curves, facecolors=MEMORY, edgecolors="none", zorder=2), autolim=False)
    ax.add_collection(
        LineCollection(lines, colors=CAP, linewidths=0.9, linestyles=(0, (4, 2)), zorder=3), autolim=False
    )
    _write_peaks(ax, peaks, caps)


def step_curve(schedule: Schedule, device: int, end: float) -> tuple[FloatArray, FloatArray]:
    """Times at which ``device``'s memory settles on a new level, from 0 to ``end``, and the levels, in user units."""
    problem = schedule.problem
    times, levels = memory.profile(problem, schedule.starts, device)
    settled = {0: int(problem.static[device])} | dict(zip(times.tolist(), levels.tolist(), strict=True))
    last = levels[-1] if len(levels) else problem.static[device]
    xs = np.array([*settled], dtype=float) * float(problem.time_unit)
    ys = np.array([*settled.values()], dtype=float) * float(problem.memory_unit)
    return np.append(xs, end), np.append(ys, float(last) * float(problem.memory_unit))


def _write_peaks(ax: Axes, peaks: list[float], caps: list[float | None]) -> None:
    for device, (peak, cap) in enumerate(zip(peaks, caps, strict=True)):
        text = f"{peak:.4g}" if cap is None else f"{peak:.4g} / {cap:.4g}"
        at = (1.004, device + sum(MEMORY_LANE) / 2)
        ax.text(*at, text, transform=ax.get_yaxis_transform(), fontsize=6, va="center", color="#444444")


def _draw_frame(ax: Axes, devices: int, lane: tuple[float, float]) -> None:
    ax.set_yticks([d + sum(lane) / 2 for d in range(devices)], [str(d) for d in range(devices)])
    ax.set_ylabel("device")
    ax.tick_params(axis="y", length=0, labelsize=7)
    ax.tick_params(axis="x", labelsize=7)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def _legend(figure: Figure, schedules: list[Schedule], show_memory: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    present = sorted({kind for s in schedules for stage in s.problem.stages for kind in stage.recipe.kinds})
    meanings: dict[str, str] = {}
    for kind in present:
        meanings[COLOURS[kind]] = ", ".join(filter(None, (meanings.get(COLOURS[kind]), MEANINGS[kind])))
    handles: list[Patch | Line2D] = [
        Patch(facecolor=colour, edgecolor=EDGE, linewidth=0.4, label=text) for colour, text in meanings.items()
    ]
    if any(chunks > 1 for s in schedules for _, chunks in chunk_table(s.problem).values()):
        pale = fill(present[0], 1, 2)
        handles.append(Patch(facecolor=pale, edgecolor=EDGE, linewidth=0.4, label="paler: a device's later stages"))
    if show_memory:
        handles.append(Patch(facecolor=MEMORY, label="memory, peak at the right"))
        if any(cap is not None for s in schedules for cap in s.problem.memory_cap):
            handles.append(Line2D([], [], color=CAP, linewidth=0.9, linestyle=(0, (4, 2)), label="memory cap"))
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), fontsize=7, frameon=False)
