"""Flags that several commands share, and the problem they describe."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from solver import Problem, Workload

Command = TypeVar("Command", bound=Callable[..., Any])

KEYS = {
    "devices": "devices.count",
    "microbatches": "microbatches",
    "forward": "time.forward",
    "backward": "time.backward",
    "input_grad": "time.input_grad",
    "weight_grad": "time.weight_grad",
    "latency": "devices.latency",
    "memory_cap": "devices.memory_cap",
}
"""Flag -> the key of the problem file that it stands for."""

WITH_FILE = ("microbatches", "latency", "memory_cap")
"""Flags that may change what a file says; the others are instead of a file."""

DEFAULTS = {"devices": "4", "microbatches": "8", "forward": "1"}
FUSED_BACKWARD = {"backward": "2"}
SPLIT_BACKWARD = {"input_grad": "1", "weight_grad": "1"}
"""The same 2 in two halves, so that schedules with either form apply."""


def _chain(options: list[Callable[[Command], Command]], command: Command) -> Command:
    return reduce(lambda decorated, option: option(decorated), reversed(options), command)


def model_options(command: Command) -> Command:
    """``[FILE]``, or the flags of a model whose stages are all equal."""
    return _chain(
        [
            click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True)),
            click.option("--devices", metavar="P", help="Number of devices; default 4."),
            click.option("--microbatches", metavar="M", help="Number of micro-batches; default 8."),
            click.option("--forward", metavar="TIME", help="Forward of one device's share of the model; default 1."),
            click.option("--backward", metavar="TIME", help="Its full backward; default 2. Or split:"),
            click.option("--input-grad", metavar="TIME", help="The input-gradient half ..."),
            click.option("--weight-grad", metavar="TIME", help="... and the weight-gradient half."),
            click.option("--latency", metavar="TIME", help="From any device to another; default 0."),
            click.option(
                "--memory-cap",
                metavar="SIZE",
                help="Per device, in activations of its share; or one a device: 4,4,3,3.",
            ),
        ],
        command,
    )


def solver_options(time_limit: float, meaning: str) -> Callable[[Command], Command]:
    """``--time-limit``, ``--workers``, ``--seed``."""
    return lambda command: _chain(
        [
            click.option(
                "--time-limit",
                type=click.FloatRange(min=0, max=10**7),
                default=time_limit,
                show_default=True,
                callback=_finite,
                help=meaning,
            ),
            click.option("--workers", type=click.IntRange(1, 1024), help="Search threads; default: the cores at hand."),
            click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True),
        ],
        command,
    )


def _finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("must be a number of seconds")
    return value


def read_problem(file: Path | None, flags: dict[str, str | None], backward: dict[str, str] = FUSED_BACKWARD) -> Problem:
    """The problem in ``file``, with what some flags change; or, without a file, of the flags, one stage a device.

    ``backward`` is the default where no flag gives one.
    """
    from solver.problem_file import problem_from_mapping, read_mapping

    given = {name: value for name, value in flags.items() if value is not None}
    if file is None:
        return _named_after_flags(lambda: problem_from_mapping(_mapping({}, _with_defaults(given, backward))))
    for name in given:
        if name not in WITH_FILE:
            raise click.UsageError(f"{_flag(name)} is for a model without a file; {file} has its own")
    data = read_mapping(file)
    return problem_from_mapping(_mapping(data, given) if isinstance(data, dict) else data, str(file))


def read_workload(
    file: Path | None, flags: dict[str, str | None], backward: dict[str, str] = FUSED_BACKWARD
) -> Workload:
    """The model behind ``read_problem``, for any placement."""
    from solver.workload import workload_of

    return workload_of(read_problem(file, flags, backward))


def _with_defaults(given: dict[str, str], backward: dict[str, str]) -> dict[str, str]:
    chosen = given.keys() & {"backward", "input_grad", "weight_grad"}
    return {**DEFAULTS, **({} if chosen else backward), **given}


def _mapping(data: dict[str, Any], flags: dict[str, str]) -> dict[str, Any]:
    """``data`` with every flag's value in its place."""
    for name, text in flags.items():
        *section, key = KEYS[name].split(".")
        table = data.setdefault(section[0], {}) if section else data
        if isinstance(table, dict):
            table[key] = _value(name, text)
    return data


def _value(name: str, text: str) -> object:
    if name in ("devices", "microbatches"):
        return _whole_or_text(text)
    parts = [part.strip() for part in text.split(",")]
    return parts if len(parts) > 1 else parts[0]


def _whole_or_text(text: str) -> int | str:
    """Counts are numbers in a file: what is none stays text, which the format refuses."""
    try:
        return int(text)
    except ValueError:
        return text


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _named_after_flags(read: Callable[[], Problem]) -> Problem:
    """The problem, its errors in terms of the flags instead of the file's keys."""
    from solver.errors import ProblemError

    try:
        return read()
    except ProblemError as err:
        for name, key in KEYS.items():
            if err.key.startswith(key):
                raise ProblemError(err.rule, _flag(name) + err.key.removeprefix(key)) from None
        raise
