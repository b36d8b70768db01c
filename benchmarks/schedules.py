"""``minbubble schedules``: the hand-made schedules, each with its rule, closed form, reference and a timeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from baselines import Baseline
    from solver import Schedule


@click.command("schedules")
@click.argument("names", nargs=-1)
@click.option("--markdown", is_flag=True, help="Print a gallery in Markdown.")
def schedules_command(names: tuple[str, ...], markdown: bool) -> None:
    """The hand-made schedules: rule, closed form, reference, and a timeline of 4 devices.

    \b
    Examples:
      minbubble schedules                    all of them
      minbubble schedules 1f1b chimera       some of them
    """
    from baselines import BASELINES, get

    chosen = [get(name) for name in names] or list(BASELINES.values())
    click.echo("\n\n".join(_markdown(chosen) if markdown else map(_text, chosen)))


def example(baseline: Baseline) -> Schedule:
    """The schedule on 4 equal devices, forward 1, backward 2 in two halves, 4 micro-batches or the 8 that some need."""
    from solver import UnsupportedProblem, Workload

    model = Workload.uniform(devices=4, microbatches=4, input_grad=1, weight_grad=1)
    try:
        return baseline.schedule(model)
    except UnsupportedProblem:
        return baseline.schedule(model.with_microbatches(8))


def _text(baseline: Baseline) -> str:
    schedule = example(baseline)
    lines = [
        f"{baseline.name} ({schedule.problem.placement}, {baseline.recipe} backward)",
        baseline.summary,
        f"Closed form: {baseline.closed_form}",
        f"Reference: {baseline.reference}",
    ]
    if baseline.re_derived:
        lines.append("Re-derived: no full text of the rule was at hand.")
    return "\n".join([*lines, "", str(schedule)])


def _markdown(chosen: Iterable[Baseline]) -> list[str]:
    parts = []
    for baseline in chosen:
        schedule = example(baseline)
        drawn = "\n".join(f"    {line}" for line in str(schedule).splitlines())
        parts.append(f"**{baseline.name}**, {schedule.problem.placement}. {baseline.summary}\n\n{drawn}")
    return parts
