"""``minbubble solve``: one problem, its best schedule and the proof."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.options import model_options, read_problem, read_workload, solver_options
from benchmarks.render import number, percent, progress_line, progress_text

if TYPE_CHECKING:
    from solver import Problem, Result

Value = int | Fraction
PLACEMENT_NAMES = ("linear", "looped", "wave", "bidirectional")
"""Those of solver.placement, which --help need not wait for."""


@click.command("solve")
@model_options
@click.option(
    "--placement", type=click.Choice(PLACEMENT_NAMES), help="Where the stages run, without FILE; default linear."
)
@click.option("--chunks", type=click.IntRange(1, 1024), help="Stages a device, for looped and wave; default 2.")
@click.option("--minimize", multiple=True, help="makespan (default), span, peak_memory; several: first things first.")
@click.option("--subject-to", multiple=True, metavar="METRIC=VALUE", help="Keep a metric at or below a value.")
@solver_options(60, "Seconds, for everything.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-o", "--output", multiple=True, type=click.Path(path_type=Path), help="Also write a file; see below.")
def solve_command(
    file: Path | None,
    placement: str | None,
    chunks: int | None,
    minimize: tuple[str, ...],
    subject_to: tuple[str, ...],
    time_limit: float,
    workers: int | None,
    seed: int,
    as_json: bool,
    output: tuple[Path, ...],
    **flags: str | None,
) -> int:
    """The provably best schedule of the problem in FILE (TOML or JSON; - reads standard input).

    Without FILE, flags describe a model of equal stages: times are of one device's share of the model, of which each
    of V chunks gets 1/V, and a share's activation counts 1. With FILE, --microbatches, --latency and --memory-cap
    change what it says.

    \b
    Examples:
      minbubble solve                                     4 devices, 8 micro-batches, backward = 2 forward
      minbubble solve --memory-cap 2                      the same in half the memory
      minbubble solve --placement wave --input-grad 1 --weight-grad 1
      minbubble solve plan.toml --minimize makespan,peak_memory
      minbubble solve plan.toml --minimize peak_memory --subject-to makespan=33
      minbubble solve plan.toml --time-limit 20 -o best.json

    -o writes what --json prints to .json or .toml. Ctrl-C, like the time limit, gives the best schedule so far.
    """
    from solver import solve

    for path in output:
        check_output(path)
    problem = problem_at_hand(file, placement, chunks, flags)
    with progress_line("bounding") as report:
        result = solve(
            problem,
            minimize=_names(minimize),
            subject_to=_limits(subject_to),
            time_limit=time_limit,
            workers=workers,
            seed=seed,
            on_progress=lambda moment: report(progress_text(moment)),
        )
    for path in output:
        write_output(result, path)
    click.echo(result_json(result) if as_json else summary(result))
    return 0 if result.schedule is not None else 1


def problem_at_hand(
    file: Path | None, placement: str | None, chunks: int | None, flags: dict[str, str | None]
) -> Problem:
    """The problem in ``file``, or that of the flags on a placement; UsageError for flags that contradict each other."""
    from solver.placement import CHUNKED, PLACEMENTS

    if file is not None and (placement or chunks):
        raise click.UsageError(f"--placement and --chunks are for a model without a file; {file} has its own")
    if file is not None:
        return read_problem(file, flags)
    if chunks and placement not in CHUNKED:
        raise click.UsageError(f"--chunks is for --placement {' and '.join(CHUNKED)}")
    workload = read_workload(None, flags)
    return workload.problem(PLACEMENTS[placement or "linear"](workload.devices, chunks or 2))


def _names(minimize: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for text in minimize for name in text.split(",")) or ("makespan",)


def _limits(subject_to: Sequence[str]) -> dict[str, str]:
    limits: dict[str, str] = {}
    for part in (part for text in subject_to for part in text.split(",")):
        name, sign, value = (word.strip() for word in part.partition("="))
        if not sign:
            raise click.UsageError(f"--subject-to takes METRIC=VALUE, such as makespan=33; got {part!r}")
        if name in limits:
            raise click.UsageError(f"--subject-to: {name} is limited twice")
        limits[name] = value
    return limits


def check_output(path: Path, suffixes: Sequence[str] = (".json", ".toml")) -> None:
    """ProblemError now, rather than after the search, for a file that cannot be written."""
    from solver import ProblemError

    if path.suffix.lower() not in suffixes:
        raise ProblemError(f"the suffix must be {' or '.join(suffixes)}, got {path.suffix or 'none'}", str(path))
    if not path.absolute().parent.is_dir():
        raise ProblemError(f"cannot be written: there is no folder {path.parent}", str(path))


def write_output(result: Result, path: Path) -> None:
    """Write the result; the suffix chooses JSON or TOML, which has no null and leaves such keys out."""
    from solver.problem_file import write_mapping

    content = result_to_mapping(result)
    if path.suffix.lower() == ".toml":
        content = {key: value for key, value in content.items() if value is not None}
    write_mapping(content, path)


def result_to_mapping(result: Result) -> dict[str, Any]:
    """The result as plain JSON values, numbers in the problem's units; null where there is no schedule."""
    from solver.export.json_file import schedule_to_mapping
    from solver.problem_file import problem_to_mapping

    empty = dict.fromkeys(("makespan", "span", "bubble_ratio", "peak_memory"))
    found = empty if result.schedule is None else schedule_to_mapping(result.schedule)
    head = {
        "name": result.problem.name,
        "status": result.status.value,
        "minimize": list(result.minimize),
        "objective": _json(result.objective),
        "lower_bound": _json(result.lower_bound),
        "gap": result.gap,
        "proof": result.proof,
    }
    tail = {"wall_time": round(result.wall_time, 3), "problem": problem_to_mapping(result.problem)}
    return {**head, **found, **tail, "schedule": found.get("schedule", [])}


def result_json(result: Result) -> str:
    """The result as JSON text, one op a line."""
    from solver.export.json_file import schedule_json

    return schedule_json(result_to_mapping(result)).rstrip()


def _json(value: Value | tuple[Value, ...] | None) -> object:
    """One number, or a list of them for several minimised metrics."""
    from solver.units import to_json

    if isinstance(value, tuple):
        return [to_json(v) for v in value]
    return None if value is None else to_json(value)


def summary(result: Result) -> str:
    """The result for people: what was found, what proves it, and the timeline."""
    problem = result.problem
    lines = [
        f"problem       {problem.name or 'unnamed'}: {problem.devices} devices, {problem.microbatches} micro-batches, "
        f"{problem.placement}, {problem.ops} ops",
        f"status        {result.status}{' (stopped by hand)' if result.interrupted else ''}",
    ]
    if result.schedule is not None:
        lines += _metric_lines(result)
    lines += [f"wall time     {result.wall_time:.2f} s", "", result.explain()]
    if result.schedule is not None:
        lines += ["", str(result.schedule)]
    return "\n".join(lines)


def _each(value: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,)


def _metric_lines(result: Result) -> list[str]:
    from solver import metrics

    schedule = result.schedule
    if schedule is None:
        return []
    return [
        f"makespan      {number(metrics.makespan(schedule))}",
        f"span          {number(metrics.span(schedule))}",
        f"bubble ratio  {percent(metrics.bubble_ratio(schedule))}",
        f"peak memory   {' '.join(number(peak) for peak in metrics.peak_memory(schedule))} (device 0, 1, ...)",
        f"lower bound   {' '.join(map(number, _each(result.lower_bound)))} (of {', '.join(result.minimize)})",
        f"gap           {result.gap:.2%}",
        f"proof         {result.proof}",
    ]
