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
from solver.units import plain, to_json
from solver.validate import violations


@dataclass(frozen=True)
class Row:
    """One schedule on the model: its ``schedule``, or the ``reason`` it does not apply; ``optimum`` once solved.

    ``caps`` is the memory the optimum may use: the user's, or else the schedule's own largest peak on every device.
    """

    baseline: Baseline
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
        """(makespan - least proven makespan) / the latter: an upper limit where the optimum is not proven."""
        if self.optimum is None or self.over_cap:
            return None
        bound = self.optimum.lower_bound
        return Fraction(metrics.makespan(self.judged)) / bound - 1 if bound and not isinstance(bound, tuple) else None


def rows(workload: Workload, names: Iterable[str] = BASELINES, chunks: int | None = None) -> list[Row]:
    """A row for each named schedule of the model, not yet held against an optimum."""
    found = [_row(BASELINES[name], workload, chunks) for name in names]
    timed = measured(workload.name)
    return [replace(row, measured=timed.get(row.baseline.name)) for row in found]


def _row(baseline: Baseline, workload: Workload, chunks: int | None) -> Row:
    options = {"chunks": chunks} if chunks and "chunks" in baseline.options else {}
    try:
        schedule = baseline.schedule(workload, **options)
    except (UnsupportedProblem, ProblemError) as err:
        return Row(baseline, reason=str(err))
    caps = workload.memory_cap
    if all(cap is None for cap in caps):
        caps = (Fraction(max(metrics.peak_memory(schedule))),) * workload.devices
    return Row(baseline, schedule, caps=caps, over_cap=bool(violations(schedule)))


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
            hints = _hints(rows, row.problem)
            optima[row.problem] = solve(row.problem, time_limit=time_limit, workers=workers, seed=seed, hints=hints)
        solved.append(row if row.schedule is None else replace(row, optimum=optima[row.problem]))
    return solved


def _hints(rows: Iterable[Row], problem: Problem) -> list[DeviceOrder]:
    """Orders of every schedule made for the same stages on the same placement."""
    schedules = [row.schedule for row in rows if row.schedule is not None]
    return [
        s.order() for s in schedules if (s.problem.placement, s.problem.stages) == (problem.placement, problem.stages)
    ]


COLUMNS = (
    Column("placement"),
    Column("schedule"),
    Column("makespan", True),
    Column("bubble", True),
    Column("peak activations", True),
    Column("device", True),
    Column("weights", True),
    Column("optimum", True),
    Column("above", True),
    Column("proof"),
)


@click.command("compare")
@model_options
@click.option("--chunks", type=click.IntRange(1, 1024), help="Stages a device of schedules that leave it open.")
@click.option("--only", metavar="NAMES", help="Only these schedules: 1f1b,chimera.")
@click.option("--except", "leave_out", metavar="NAMES", help="All but these.")
@solver_options(3, "Seconds for each optimum.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, one object a schedule.")
def compare_command(
    file: Path | None,
    chunks: int | None,
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
      minbubble compare plan.toml --time-limit 30
    """
    workload = read_workload(file, flags)
    with progress_line("simulating") as report:
        found = rows(workload, _chosen(only, leave_out), chunks)
        found = with_optima(found, time_limit, workers, seed, report)
    if as_json:
        click.echo(json.dumps([row_to_mapping(row) for row in found], indent=1))
        return
    show_table(COLUMNS, [[_cells(row) for row in group] for group in by_placement(found)])
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
        groups.setdefault(_placement(row), []).append(row)
    return list(groups.values())


def _placement(row: Row) -> str:
    return "-" if row.schedule is None else str(row.schedule.problem.placement)


def _cells(row: Row) -> tuple[str, ...]:
    if row.schedule is None:
        return (_placement(row), row.baseline.name, *["-"] * 7, row.reason)
    activations, device = row.peak
    optimum, above, proof = _optimum_cells(row)
    return (
        _placement(row),
        row.baseline.name + ("*" if row.baseline.re_derived else ""),
        rounded(metrics.makespan(row.schedule)),
        percent(metrics.bubble_ratio(row.schedule)),
        rounded(activations) + (" over cap" if row.over_cap else ""),
        str(device),
        f"{rounded(row.weight_copies)}x",
        optimum,
        above,
        proof,
    )


def _optimum_cells(row: Row) -> tuple[str, str, str]:
    result = row.optimum
    if result is None or isinstance(result.lower_bound, tuple):
        return "-", "-", "stopped before this one"
    if result.status == Status.OPTIMAL:
        return rounded(result.lower_bound), percent(row.above), result.proof
    best = f"not proven; best {rounded(result.makespan)}, gap {percent(result.gap)}"
    return f">= {rounded(result.lower_bound)}", "-" if row.above is None else f"<= {percent(row.above)}", best


def _notes(rows: Sequence[Row]) -> list[str]:
    notes = []
    for row in rows:
        if row.measured is not None and row.schedule is not None:
            simulated = metrics.makespan(row.schedule)
            error = Fraction(simulated) / row.measured.makespan - 1
            notes.append(
                f"measured {row.baseline.name}: {row.measured.makespan}; simulated: {number(simulated)} "
                f"({float(error):+.2%}). Source: {row.measured.source}."
            )
    if any(row.baseline.re_derived and row.schedule is not None for row in rows):
        notes.append("* re-derived: no full text of the rule was at hand")
    return ["", *notes] if notes else []


def row_to_mapping(row: Row) -> dict[str, Any]:
    """The row as plain JSON values, numbers in the model's units; ``reason`` alone where it does not apply."""
    if row.schedule is None:
        return {"schedule": row.baseline.name, "reason": row.reason}
    result = row.optimum
    activations, device = row.peak
    return {
        "schedule": row.baseline.name,
        "placement": row.schedule.problem.placement.kind,
        "chunks": row.schedule.problem.placement.chunks,
        "makespan": to_json(metrics.makespan(row.schedule)),
        "span": to_json(metrics.span(row.schedule)),
        "bubble_ratio": metrics.bubble_ratio(row.schedule),
        "peak_memory": [to_json(peak) for peak in metrics.peak_memory(row.schedule)],
        "peak_activations": to_json(activations),
        "peak_device": device,
        "weight_copies": to_json(row.weight_copies),
        "memory_cap": ["none" if cap is None else to_json(cap) for cap in row.caps],
        "over_cap": row.over_cap,
        "optimum": None if result is None else _optimum_mapping(result),
        "above": None if row.above is None else float(row.above),
        "measured": None if row.measured is None else row.measured.makespan,
    }


def _optimum_mapping(result: Result) -> dict[str, Any]:
    bound = result.lower_bound
    return {
        "status": result.status.value,
        "makespan": None if result.makespan is None else to_json(result.makespan),
        "lower_bound": None if isinstance(bound, tuple) else to_json(bound),
        "gap": result.gap,
        "proof": result.proof,
        "wall_time": round(result.wall_time, 3),
    }
