"""``minbubble compare``: the table of every hand-made schedule beside the proven optimum."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from baselines import BASELINES, get
from benchmarks.comparison import Row, rows, with_optima
from benchmarks.options import SPLIT_BACKWARD, model_options, read_workload, solver_options
from benchmarks.render import Column, number, percent, progress_line, rounded, show_table
from solver import Result, Status, metrics
from solver.units import to_json


def columns(metric: str) -> tuple[Column, ...]:
    """The headings of the table."""
    measures = (metric, "bubble ratio", "peak activations", "peak device", "weight copies", "optimum", "above")
    return Column("placement"), Column("schedule"), *(Column(name, True) for name in measures), Column("proof")


@click.command("compare")
@model_options
@click.option("--chunks", type=click.IntRange(1, 1024), help="Stages a device of schedules that leave it open.")
@click.option("--minimize", type=click.Choice(["makespan", "span"]), default="makespan", help="What to compare.")
@click.option("--only", metavar="NAMES", help="Only these schedules: 1f1b,chimera.")
@click.option("--except", "leave_out", metavar="NAMES", help="All but these.")
@solver_options(3, "Seconds for all optima together.")
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

    The model is FILE's stages, or as flags say, on every placement in turn; schedules with a fused backward run
    both halves of a split one. "Its memory" is the cap given, or without one the schedule's own largest peak, on every
    device. Activations are counted in device-stages (1/P of the model). "above" is how much longer the schedule is than
    the optimum; "at most", where that is not proven.

    \b
    Examples:
      minbubble compare                                  4 devices, 8 micro-batches, backward = 2 forward, in halves
      minbubble compare --devices 8 --microbatches 32 --chunks 4
      minbubble compare --memory-cap 4 --only 1f1b,chimera
      minbubble compare --forward 11 --input-grad 11 --weight-grad 8
      minbubble compare plan.toml --minimize span        the metric of the zero-bubble papers
    """
    workload = read_workload(file, flags, SPLIT_BACKWARD)
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
    """Names to show, in the registry's order; ProblemError for an unknown one, UsageError if none is left."""
    included, excluded = (
        None if text is None else {get(name.strip()).name for name in text.split(",")} for text in (only, leave_out)
    )
    chosen = [name for name in BASELINES if (included is None or name in included) and name not in (excluded or ())]
    if not chosen:
        raise click.UsageError("--only and --except together leave no schedule")
    return chosen


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
        rounded(row.weight_copies),
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
