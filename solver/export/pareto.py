"""A picture of a Pareto front: what more memory buys, and where hand-made schedules stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from solver.export.files import write_figure
from solver.export.palette import CAP, COLOURS
from solver.ops import OpKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Number = int | float | Fraction


class FrontPoint(NamedTuple):
    """One point of the front; ``proven`` where no schedule can lie left below it."""

    x: Number
    y: Number
    proven: bool = True


def draw_pareto(ax: Axes, front: Iterable[FrontPoint], others: Mapping[str, tuple[Number, Number]]) -> None:
    """Draw the front as a staircase on ``ax``, proven points filled, and ``others`` by name, one label a place.

    The caller's axes have no labels yet: set them to what x and y are.
    """
    points = sorted((float(p.x), float(p.y), p.proven) for p in front)
    line = COLOURS[OpKind.F]
    ax.step([x for x, _, _ in points], [y for _, y, _ in points], where="post", color=line, linewidth=1.2, zorder=2)
    for proven, face, label in ((True, line, "front, proven"), (False, "white", "front, best found")):
        chosen = [(x, y) for x, y, known in points if known == proven]
        if chosen:
            ax.plot(
                *zip(*chosen, strict=True), "o", color=line, markerfacecolor=face, markersize=6, zorder=4, label=label
            )
    _draw_others(ax, others)
    ax.grid(color="#e4e6e9", linewidth=0.6)
    ax.margins(x=0.12, y=0.1)
    ax.legend(fontsize=7, frameon=False)


def _draw_others(ax: Axes, others: Mapping[str, tuple[Number, Number]]) -> None:
    names_at: dict[tuple[float, float], list[str]] = defaultdict(list)
    for name, (x, y) in others.items():
        names_at[float(x), float(y)].append(name)
    for i, ((x, y), names) in enumerate(names_at.items()):
        label = "" if i else "hand-made"
        ax.plot([x], [y], "x", color=CAP, markersize=6, markeredgewidth=1.5, zorder=5, label=label)
        ax.annotate(", ".join(names), (x, y), (6, 5), textcoords="offset points", fontsize=7)


def save_pareto(
    front: Iterable[FrontPoint],
    others: Mapping[str, tuple[Number, Number]],
    path: str | Path,
    x: str = "peak memory",
    y: str = "makespan",
    title: str = "",
) -> None:
    """Write the picture of a front; the suffix chooses PNG, SVG or PDF.

    Raises ProblemError for another suffix or a file that cannot be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    draw_pareto(ax, front, others)
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(title, parse_math=False)
    write_figure(figure, Path(path))
