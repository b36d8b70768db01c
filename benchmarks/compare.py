"""``minbubble compare``: every hand-made schedule on one model, beside the optimum of its own placement and memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from baselines import BASELINES, Baseline, get
from benchmarks.measured import Measured, measured
from benchmarks.options import model_options, read_workload, solver_options
from benchmarks.render import Column, number, percent, progress_line, rounded, show_table
from solver import (
    DeviceOrder,
    Problem,
    ProblemError,
    Result,
    Schedule,
    Status,
    UnsupportedProblem,
    Workload,
    metrics,
    solve,
)
from solver.metrics import METRICS
from solver.units import plain, to_json
from solver.validate import violations


@dataclass(frozen=True)
class Row:
    """One schedule on the model: its ``schedule``, or the ``reason`` it does not apply; ``optimum`` once solved.

    ``metric`` is what is compared: "makespan", or "span" for schedules made for it. ``caps`` is the memory the optimum
    may use: the user's, or else the schedule's own largest peak on every device.
    """

    baseline: Baseline
    placement: str
    metric: str = "makespan"
    schedule: Schedule | None = None
    reason: str = ""
    caps: tuple[Fraction | None, ...] = ()
    over_cap: bool = False
    optimum: Result | None = None
    measured: Measured | None = None

    @property
    def judged(self) -> Schedule:
        """The schedule of a row that has one."""
        if self.schedule is None:
            raise UnsupportedProblem(self.reason)
        return self.schedule

    @property
    def value(self) -> int | Fraction:
        """What the metric says of the schedule."""
        metric = METRICS[self.metric]
        return metric.in_units(self.judged.problem, metric.ticks(self.judged))

    @property
    def bubble_ratio(self) -> float:
        """Idle / total of the metric compared."""
        ratio = metrics.bubble_ratio if self.metric == "makespan" else metrics.bubble_ratio_span
        return ratio(self.judged)

    @property
    def problem(self) -> Problem:
        """What the optimum is of: this placement and recipe, under ``caps``."""
        return replace(self.judged.problem, memory_cap=self.caps)

    @property
    def peak(self) -> tuple[int | Fraction, int]:
        """The most activations any device holds, in device-stages (1/P of the model's), and that device."""
        schedule = self.judged
        problem = schedule.problem
        whole = sum((stage.activation for stage in problem.stages), Fraction(0))
        held = [p - problem.in_memory(s) for p, s in zip(metrics.peak_memory(schedule), problem.static, strict=True)]
        most = max(held)
        return plain(Fraction(most) * problem.devices / whole) if whole else 0, held.index(most)

    @property
    def weight_copies(self) -> int | Fraction:
        """How often the model's weights are held: each distinct (stage, device) pair of the routes once."""
        routes = self.judged.problem.placement.routes
        return plain(Fraction(len({pair for route in routes for pair in enumerate(route)}), len(routes[0])))

    @property
    def above(self) -> Fraction | None:
        """(value - optimum) / optimum; where the optimum is not proven, against what it is at least."""
        if self.optimum is None or self.over_cap:
            return None
        bound = self.optimum.lower_bound
        return Fraction(self.value) / bound - 1 if bound and not isinstance(bound, tuple) else None


def rows(
    workload: Workload, names: Iterable[str] = BASELINES, chunks: int | None = None, metric: str = "makespan"
) -> list[Row]:
    """A row for each named schedule of the model, not yet held against an optimum."""
    timed = measured(workload.name)
    found = [_row(BASELINES[name], workload, chunks, metric) for name in names]
    return [replace(row, measured=timed.get(row.baseline.name)) for row in found]


def _row(baseline: Baseline, workload: Workload, chunks: int | None, metric: str) -> Row:
    options = {"chunks": chunks} if chunks and "chunks" in baseline.options else {}
    placement = str(baseline.placement(workload.devices, **{**baseline.options, **options}))
    try:
        schedule = baseline.schedule(workload, **options)
    except (UnsupportedProblem, ProblemError) as err:
        return Row(baseline, placement, metric, reason=str(err))
    caps = workload.memory_cap
    if all(cap is None for cap in caps):
        caps = (Fraction(max(metrics.peak_memory(schedule))),) * workload.devices
    return Row(baseline, placement, metric, schedule, caps=caps, over_cap=bool(violations(schedule)))


def with_optima(
    rows: Sequence[Row],
    time_limit: float,
    workers: int | None = None,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """The rows with the best schedule of each one's placement and memory; equal problems are solved once.

    Every schedule on the same placement is a hint. After an interruption the rest stays unsolved.
    """
    optima: dict[Problem, Result] = {}
    solved = []
    for row in rows:
        if row.schedule is not None and row.problem not in optima:
            if any(result.interrupted for result in optima.values()):
                solved.append(row)
                continue
            report(f"proving {row.baseline.name} ({len(solved) + 1} of {len(rows)})")
            optima[row.problem] = solve(
                row.problem, row.metric, None, time_limit, workers, seed, hints=_hints(rows, row.problem)
            )
        solved.append(row if row.schedule is None else replace(row, optimum=optima[row.problem]))
    return solved


def _hints(rows: Iterable[Row], problem: Problem) -> list[DeviceOrder]:
    """Orders of every schedule made for the same stages on the same placement."""
    schedules = [row.schedule for row in rows if row.schedule is not None]
    return [
        s.order() for s in schedules if (s.problem.placement, s.problem.stages) == (problem.placement, problem.stages)
    ]


def columns(metric: str) -> tuple[Column, ...]:
    """The headings of the table."""
    measures = (metric, "bubble", "peak activations", "device", "weights", "optimum", "above")
    return Column("placement"), Column("schedule"), *(Column(name, True) for name in measures), Column("proof")


@click.command("compare")
@model_options
@click.option("--chunks", type=click.IntRange(1, 1024), help="Stages a device of schedules that leave it open.")
@click.option("--minimize", type=click.Choice(["makespan", "span"]), default="makespan", help="What to compare.")
@click.option("--only", metavar="NAMES", help="Only these schedules: 1f1b,chimera.")
@click.option("--except", "leave_out", metavar="NAMES", help="All but these.")
@solver_options(3, "Seconds for each optimum.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, one object a schedule.")
def compare_command(
    file: Path | None,
    chunks: int | None,
    minimize: str,
    only: str | None,
    leave_out: str | None,
    time_limit: float,
    workers: int | None,
    seed: int,
    as_json: bool,
    **flags: str | None,
) -> None:
    """Every hand-made schedule on one model, beside the proven optimum of its own placement and memory.

    The model is FILE's stages, or as flags say, on every placement in turn. "Its memory" is the cap given, or
    without one the schedule's own largest peak, on every device. Activations are counted in device-stages (1/P of the
    model). "above" is how much longer the schedule is than the optimum; "at most", where that is not proven.

    \b
    Examples:
      minbubble compare                                  4 devices, 8 micro-batches, backward = 2 forward
      minbubble compare --devices 8 --microbatches 32 --chunks 4
      minbubble compare --memory-cap 4 --only 1f1b,chimera
      minbubble compare --input-grad 1 --weight-grad 1   split backward: the zero-bubble schedules too
      minbubble compare plan.toml --minimize span        the metric of the zero-bubble papers
    """
    workload = read_workload(file, flags)
    with progress_line("simulating") as report:
        found = rows(workload, _chosen(only, leave_out), chunks, minimize)
        found = with_optima(found, time_limit, workers, seed, report)
    if as_json:
        click.echo(json.dumps([row_to_mapping(row) for row in found], indent=1))
        return
    show_table(columns(minimize), [[_cells(row) for row in group] for group in by_placement(found)])
    for note in _notes(found):
        click.echo(note)


def _chosen(only: str | None, leave_out: str | None) -> list[str]:
    """Names to show, in the registry's order; ProblemError lists the known ones for any other."""
    included, excluded = (
        None if text is None else {get(name.strip()).name for name in text.split(",")} for text in (only, leave_out)
    )
    return [name for name in BASELINES if (included is None or name in included) and name not in (excluded or ())]


def by_placement(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows in groups of one placement, in the order in which placements first come up."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.placement, []).append(row)
    return list(groups.values())


def _cells(row: Row) -> tuple[str, ...]:
    name = row.baseline.name + ("*" if row.baseline.re_derived else "")
    if row.schedule is None:
        return (row.placement, name, *["-"] * 7, row.reason)
    activations, device = row.peak
    return (
        row.placement,
        name,
        rounded(row.value),
        percent(row.bubble_ratio),
        rounded(activations) + (" over cap" if row.over_cap else ""),
        str(device),
        f"{rounded(row.weight_copies)}x",
        *_optimum_cells(row),
    )


def _optimum_cells(row: Row) -> tuple[str, str, str]:
    result = row.optimum
    if result is None or isinstance(result.lower_bound, tuple):
        return "-", "-", "stopped before this one"
    if result.status == Status.OPTIMAL:
        return rounded(result.lower_bound), percent(row.above), result.proof
    best = f"not proven; best {rounded(result.value(row.metric))}, gap {percent(result.gap)}"
    return f">= {rounded(result.lower_bound)}", "-" if row.above is None else f"<= {percent(row.above)}", best


def _notes(rows: Sequence[Row]) -> list[str]:
    notes = []
    for row in rows:
        if row.measured is not None and row.schedule is not None:
            simulated = metrics.makespan(row.judged)
            error = Fraction(simulated) / row.measured.makespan - 1
            notes.append(
                f"measured {row.baseline.name}: {row.measured.makespan}; simulated: {number(simulated)} "
                f"({float(error):+.2%}). Source: {row.measured.source}."
            )
    if any(row.baseline.re_derived for row in rows):
        notes.append("* re-derived: no full text of the rule was at hand")
    return ["", *notes] if notes else []


def row_to_mapping(row: Row) -> dict[str, Any]:
    """The row as plain JSON values, numbers in the model's units; ``reason`` alone where it does not apply."""
    if row.schedule is None:
        return {"schedule": row.baseline.name, "placement": row.placement, "reason": row.reason}
    result = row.optimum
    activations, device = row.peak
    return {
        "schedule": row.baseline.name,
        "placement": row.placement,
        "minimize": row.metric,
        "makespan": to_json(metrics.makespan(row.schedule)),
        "span": to_json(metrics.span(row.schedule)),
        "bubble_ratio": metrics.bubble_ratio(row.schedule),
        "peak_memory": [to_json(peak) for peak in metrics.peak_memory(row.schedule)],
        "peak_activations": to_json(activations),
        "peak_device": device,
        "weight_copies": to_json(row.weight_copies),
        "memory_cap": ["none" if cap is None else to_json(cap) for cap in row.caps],
        "over_cap": row.over_cap,
        "optimum": None if result is None else _optimum_mapping(row.metric, result),
        "above": None if row.above is None else float(row.above),
        "measured": None if row.measured is None else row.measured.makespan,
    }


def _optimum_mapping(metric: str, result: Result) -> dict[str, Any]:
    bound, value = result.lower_bound, result.value(metric)
    return {
        "status": result.status.value,
        metric: None if value is None else to_json(value),
        "lower_bound": None if isinstance(bound, tuple) else to_json(bound),
        "gap": result.gap,
        "proof": result.proof,
        "wall_time": round(result.wall_time, 3),
    }
