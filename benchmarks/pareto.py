"""``minbubble pareto``: what more memory buys, every point with its proof, and where the hand-made schedules stand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.options import model_options, solver_options
from benchmarks.render import Column, Reporter, number, percent, progress_line, rounded, show_table
from benchmarks.solving import PLACEMENT_NAMES, check_output, problem_at_hand, result_to_mapping

if TYPE_CHECKING:
    from benchmarks.comparison import Row
    from benchmarks.front_picture import Place
    from solver import Problem, Result
    from solver.export.pareto import FrontPoint

Value = int | Fraction
SECOND = "peak_memory"
SUFFIXES = (".png", ".svg", ".pdf", ".json")


@dataclass(frozen=True)
class Front:
    """The points of ``problem``, least ``first`` first, and every hand-made schedule of the same model.

    ``interrupted``: Ctrl-C ended it before its end.
    """

    problem: Problem
    first: str
    points: tuple[Result, ...]
    hand_made: tuple[Row, ...] = ()
    interrupted: bool = False

    def is_at_home(self, row: Row) -> bool:
        """Whether the schedule runs on the front's own placement."""
        return row.schedule is not None and row.schedule.problem.placement == self.problem.placement

    def fits(self, row: Row) -> bool:
        """Whether it is of the front's own stages too, so that the front's search may start from it."""
        return self.is_at_home(row) and row.judged.problem.stages == self.problem.stages

    def above(self, row: Row) -> float | None:
        """How much longer the schedule is than the front in the same memory; None where that cannot be said."""
        if not self.is_at_home(row) or row.over_cap:
            return None
        memory = largest_peak(row)
        within = [p for p in self.points if _known(p.value(SECOND)) <= memory]
        best = min((_known(p.value(self.first)) for p in within), default=Fraction(0))
        return float(Fraction(row.value) / best - 1) if best else None


@click.command("pareto")
@model_options
@click.option(
    "--placement", type=click.Choice(PLACEMENT_NAMES), help="Where the stages run, without FILE; default linear."
)
@click.option("--chunks", type=click.IntRange(1, 1024), help="Stages a device, for looped and wave; default 2.")
@click.option("--minimize", type=click.Choice(["makespan", "span"]), default="makespan", help="What memory buys.")
@click.option("--points", type=click.IntRange(1, 10_000), default=20, show_default=True, help="About so many at most.")
@solver_options(60, "Seconds for each point.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-o", "--output", multiple=True, type=click.Path(path_type=Path), help="Also write a file; see below.")
def pareto_command(
    file: Path | None,
    placement: str | None,
    chunks: int | None,
    minimize: str,
    points: int,
    time_limit: float,
    workers: int | None,
    seed: int,
    as_json: bool,
    output: tuple[Path, ...],
    **flags: str | None,
) -> int:
    """The makespan that each amount of memory buys, on the problem in FILE or of the flags (as minbubble solve).

    Each point is the least makespan in its memory, and then the least peak memory at that makespan. What is not proven
    shows what it is at least: "60 (>= 57)". Below stand the hand-made schedules of the same model, each on its own
    placement; "above" is how much longer one is than the front in the memory it takes.

    \b
    Examples:
      minbubble pareto                                   4 devices, 8 micro-batches, backward = 2 forward
      minbubble pareto plan.toml --time-limit 10 -o front.png
      minbubble pareto --placement wave --input-grad 1 --weight-grad 1 --points 5

    -o writes a picture of the front and of every hand-made schedule (.png, .svg, .pdf), or what --json prints (.json).
    Ctrl-C keeps the points found.
    """
    for path in output:
        check_output(path, SUFFIXES)
    problem = problem_at_hand(file, placement, chunks, flags)
    with progress_line("hand-made schedules, then point 1") as report:
        found = find_front(problem, minimize, points, time_limit, workers, seed, report)
    for path in output:
        write_front(found, path)
    if as_json:
        click.echo(json.dumps(front_to_mapping(found), indent=1))
    else:
        show_front(found)
    return 0 if found.points else 1


def find_front(
    problem: Problem,
    first: str = "makespan",
    points: int = 20,
    time_limit: float = 60,
    workers: int | None = None,
    seed: int = 0,
    report: Reporter = lambda text: None,
) -> Front:
    """The front of ``first`` and peak memory, and the hand-made schedules of its model; what Ctrl-C leaves of it.

    The search starts from those made for the same stages and placement. Those that lie between two points add one, so
    that none of them beats the front.
    """
    from solver import solve
    from solver.pareto import pareto_front

    front = Front(problem, first, (), hand_made(problem, first))
    hints = [row.schedule for row in front.hand_made if row.schedule is not None and front.fits(row)]
    found: list[Result] = []
    interrupted = False

    def keep(point: Result) -> None:
        found.append(point)
        report(f"point {len(found) + 1}; last: {first} {point_text(point, first)}, memory {point_text(point, SECOND)}")

    try:
        pareto_front(problem, first, SECOND, time_limit, points, workers, seed, on_point=keep, hints=hints)
        for memory in memories_between(replace(front, points=tuple(found))):
            keep(solve(problem, (first, SECOND), {SECOND: memory}, time_limit, workers, seed, hints))
    except KeyboardInterrupt:
        interrupted = True
    interrupted = interrupted or any(point.interrupted for point in found)
    return replace(front, points=undominated(found, first), interrupted=interrupted)


def memories_between(front: Front) -> list[Fraction]:
    """Peak memory of the hand-made schedules that beat the front, as they lie between two of its points."""
    if not front.points or front.points[-1].interrupted:
        return []
    ahead = [row for row in front.hand_made if front.fits(row) and (front.above(row) or 0) < 0]
    return sorted({largest_peak(row) for row in ahead}, reverse=True)


def undominated(points: Sequence[Result], first: str) -> tuple[Result, ...]:
    """By falling memory, without points that one of no more memory matches in ``first``: the time limit cut those."""
    points = sorted(points, key=lambda point: (-_known(point.value(SECOND)), -_known(point.value(first))))
    values = [_known(point.value(first)) for point in points]
    return tuple(point for i, point in enumerate(points) if all(values[i] < later for later in values[i + 1 :]))


def hand_made(problem: Problem, first: str) -> tuple[Row, ...]:
    """A row for every hand-made schedule of the problem's model, on its own placement, with as many chunks."""
    from benchmarks.comparison import rows
    from solver.workload import workload_of

    chunks = problem.placement.stages // problem.devices
    return tuple(rows(workload_of(problem), chunks=chunks if chunks > 1 else None, metric=first))


def largest_peak(row: Row) -> Fraction:
    """Peak memory as the front has it: of the fullest device, static included."""
    from solver import metrics

    return Fraction(max(metrics.peak_memory(row.judged)))


def _known(value: Value | None) -> Fraction:
    return Fraction(value or 0)


# What is shown --------------------------------------------------------------------------------------------------------


def point_text(point: Result, metric: str) -> str:
    """A metric of a point; with its bound where that is not met: "60 (>= 57)"."""
    from solver.metrics import METRICS

    value = number(point.value(metric))
    claim = next((c for c in point.claims if c.metric == metric), None)
    if claim is None or claim.value is None:
        return f"{value} (not minimised)"
    return value if claim.proven else f"{value} (>= {number(METRICS[metric].in_units(point.problem, claim.bound))})"


def show_front(front: Front) -> None:
    """Print the points, then the schedules by placement, then those that do not apply."""
    from benchmarks.compare import by_placement

    headings = Column(front.first, True), Column("peak memory", True), Column("bubble ratio", True)
    points = [_point_cells(front, point) for point in front.points]
    show_table((*headings, Column("status"), Column("proof")), [points])
    stopped = " before Ctrl-C" if front.interrupted else ""
    click.echo(f"\n{len(points)} point{'s' * (len(points) != 1)}{stopped} on {front.problem.placement}; hand-made:\n")
    columns = Column("placement"), Column("schedule"), *headings, Column("above", True)
    made = [row for row in front.hand_made if row.schedule is not None]
    show_table(columns, [[_row_cells(front, row) for row in group] for group in by_placement(made)])
    for note in _reasons(front.hand_made):
        click.echo(note)


def _reasons(rows: Sequence[Row]) -> list[str]:
    """A line for each reason why schedules do not apply, with their names."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.schedule is None:
            reasons.setdefault(row.reason, []).append(row.baseline.name)
    notes = [f"not {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return ["", *notes] if notes else []


def _point_cells(front: Front, point: Result) -> tuple[str, ...]:
    from solver import metrics

    ratio = metrics.bubble_ratio if front.first == "makespan" else metrics.bubble_ratio_span
    bubble = None if point.schedule is None else ratio(point.schedule)
    both = (point_text(point, metric) for metric in (front.first, SECOND))
    return *both, percent(bubble), str(point.status), point.proof


def _row_cells(front: Front, row: Row) -> tuple[str, ...]:
    memory = rounded(largest_peak(row)) + (" over cap" if row.over_cap else "")
    cells = rounded(row.value), memory, percent(row.bubble_ratio), percent(front.above(row))
    return row.placement, row.baseline.name, *cells


def front_to_mapping(front: Front) -> dict[str, Any]:
    """The front as plain JSON values, numbers in the problem's units."""
    from solver.problem_file import problem_to_mapping

    points = [result_to_mapping(point) for point in front.points]
    return {
        "name": front.problem.name,
        "minimize": [front.first, SECOND],
        "interrupted": front.interrupted,
        "points": [{key: value for key, value in point.items() if key not in ("name", "problem")} for point in points],
        "hand_made": [_row_to_mapping(front, row) for row in front.hand_made],
        "problem": problem_to_mapping(front.problem),
    }


def _row_to_mapping(front: Front, row: Row) -> dict[str, Any]:
    from solver import metrics
    from solver.units import to_json

    head = {"schedule": row.baseline.name, "placement": row.placement}
    if row.schedule is None:
        return {**head, "reason": row.reason}
    return {
        **head,
        "makespan": to_json(metrics.makespan(row.schedule)),
        "span": to_json(metrics.span(row.schedule)),
        "bubble_ratio": metrics.bubble_ratio(row.schedule),
        "peak_memory": [to_json(peak) for peak in metrics.peak_memory(row.schedule)],
        "over_cap": row.over_cap,
        "above": front.above(row),
    }


# Files ----------------------------------------------------------------------------------------------------------------


def write_front(front: Front, path: Path) -> None:
    """Write the picture, or the JSON; the suffix chooses."""
    from benchmarks.front_picture import save_front
    from solver.export.files import write_text

    if path.suffix.lower() == ".json":
        write_text(path, json.dumps(front_to_mapping(front), indent=1) + "\n")
        return
    title = f"{front.problem.name or 'unnamed'}, {front.problem.placement}"
    save_front(front_points(front.points), _places(front), path, front.first, title)


def _places(front: Front) -> list[Place]:
    """Every hand-made schedule that applies, those of the front's own placement first."""
    from benchmarks.front_picture import Place

    made = sorted((row for row in front.hand_made if row.schedule is not None), key=lambda r: not front.is_at_home(r))
    marked = [(row, row.baseline.name + (" over cap" if row.over_cap else "")) for row in made]
    return [Place(name, row.placement, largest_peak(row), Fraction(row.value)) for row, name in marked]


def front_points(points: Sequence[Result]) -> list[FrontPoint]:
    """Where the points lie: memory to the right, the metric upwards."""
    from solver import Status
    from solver.export.pareto import FrontPoint

    return [
        FrontPoint(_known(p.value(SECOND)), _known(p.value(p.minimize[0])), p.status == Status.OPTIMAL) for p in points
    ]
