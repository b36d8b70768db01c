"""The picture of a Pareto front with every hand-made schedule on it: one marker a placement, no name over another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

    from solver.export.pareto import FrontPoint

MARKERS = "x^vsD*P"
WIDE = 4
"""How many times the least the largest value is, for a logarithmic axis."""

NEAR = [(6, 4), (6, -10), (-6, 4), (-6, -10)]
FAR = [(x, y) for y, x in product((22, -28, 40, -46, 58, -64, 76, -82), (16, -16, 60, -60))]
"""Where a name may stand, in points from its marker; left of it where the first number is negative."""


class Place(NamedTuple):
    """A schedule by ``name``, where it lies, and the placement it runs on."""

    name: str
    placement: str
    memory: Fraction
    value: Fraction


def save_front(front: Iterable[FrontPoint], places: Sequence[Place], path: Path, metric: str, title: str) -> None:
    """Write the picture; the suffix chooses PNG, SVG or PDF."""
    from solver.export.files import write_figure

    write_figure(front_figure(front, places, metric, title), path)


def front_figure(front: Iterable[FrontPoint], places: Sequence[Place], metric: str, title: str) -> Figure:
    """The front as a staircase over peak memory, and a marker for each place."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from solver.export.pareto import draw_pareto

    points = list(front)
    figure = Figure(figsize=(8, 5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ax = figure.subplots()
    draw_pareto(ax, points, {})
    _draw_markers(ax, places)
    ax.set(xlabel="peak memory", ylabel=metric)
    _spread(ax, [*(float(p.y) for p in points), *(float(place.value) for place in places)])
    ax.set_title(title, parse_math=False)
    ax.legend(fontsize=7, frameon=False)
    figure.draw(canvas.get_renderer())  # type: ignore[no-untyped-call] # only now is it known where everything is
    _draw_names(ax, places, [_around(ax, (float(p.x), float(p.y))) for p in points])
    return figure


def _spread(ax: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis where one slow schedule would press the others together."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    if not values or min(values) <= 0 or max(values) < WIDE * min(values):
        return
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 4, 6, 8)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.9g}"))


def _draw_markers(ax: Axes, places: Sequence[Place]) -> None:
    from solver.export.palette import CAP

    for i, placement in enumerate(dict.fromkeys(place.placement for place in places)):
        here = [(float(p.memory), float(p.value)) for p in places if p.placement == placement]
        marker = MARKERS[i % len(MARKERS)]
        (line,) = ax.plot(*zip(*here, strict=True), marker, color=CAP, label=f"hand-made, {placement}", zorder=5)
        line.set(markersize=6, markerfacecolor="none", markeredgewidth=1.3)


def _draw_names(ax: Axes, places: Sequence[Place], points: Sequence[Bbox]) -> None:
    """A label a place, each where it covers no other label, marker or point, if there is such a spot."""
    names: dict[tuple[float, float], list[str]] = {}
    for place in places:
        names.setdefault((float(place.memory), float(place.value)), []).append(place.name)
    taken = [*points, *(_around(ax, place) for place in names)]
    for point in sorted(names, key=lambda at: (at[0], -at[1])):
        taken.append(_place(ax, ", ".join(names[point]), point, taken))


def _place(ax: Axes, text: str, point: tuple[float, float], taken: Sequence[Bbox]) -> Bbox:
    from matplotlib.text import Text

    label: Annotation | None = None
    for offset in (*NEAR, *FAR):
        if label is not None:
            label.remove()
        label = _label(ax, text, point, offset)
        label.get_window_extent()  # only this moves it to its place, but counts the line to the marker too
        box = Text.get_window_extent(label)
        inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 and ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1
        if inside and not any(box.overlaps(other) for other in taken):
            return box
    return box


def _label(ax: Axes, text: str, point: tuple[float, float], offset: tuple[int, int]) -> Annotation:
    line = {"arrowstyle": "-", "color": "#9aa0a6", "linewidth": 0.5} if offset in FAR else None
    side = "left" if offset[0] > 0 else "right"
    return ax.annotate(
        text, point, offset, textcoords="offset points", ha=side, fontsize=7, arrowprops=line, parse_math=False
    )


def _around(ax: Axes, point: tuple[float, float]) -> Bbox:
    """The square of a marker at ``point``, in pixels."""
    from matplotlib.transforms import Bbox

    x, y = ax.transData.transform(point)
    return Bbox.from_extents(x - 6, y - 6, x + 6, y + 6)
