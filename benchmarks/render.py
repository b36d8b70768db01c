"""How tables, numbers and progress look: rich on a terminal, plain text elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol

import click

from solver.units import to_json

if TYPE_CHECKING:
    from solver.result import Progress as Moment


class Column(NamedTuple):
    """A column's heading, and whether it holds numbers (flush right)."""

    heading: str
    number: bool = False


class Reporter(Protocol):
    """Where a running command says what it is at."""

    def __call__(self, text: str) -> None:
        """Replace the line shown."""


def number(value: int | float | Fraction | None) -> str:
    """A number as JSON writes it: 33, 0.601, 1/3; a dash for none."""
    return "-" if value is None else str(to_json(value))


def percent(ratio: float | Fraction | None) -> str:
    """A ratio in percent; a dash for none."""
    return "-" if ratio is None else f"{float(ratio):.1%}"


def rounded(value: int | Fraction | None, digits: int = 2) -> str:
    """A number to at most ``digits`` decimals; a dash for none."""
    return "-" if value is None else f"{float(value):.{digits}f}".rstrip("0").rstrip(".")


def show_table(columns: Sequence[Column], groups: Sequence[Sequence[Sequence[str]]]) -> None:
    """Print groups of rows under one heading; plainly where standard output is no terminal, or one too narrow."""
    plain = plain_table(columns, groups)
    if sys.stdout.isatty() and max(map(len, plain.splitlines())) + 2 <= shutil.get_terminal_size().columns:
        _show_rich(columns, groups)
    else:
        click.echo(plain)


def plain_table(columns: Sequence[Column], groups: Sequence[Sequence[Sequence[str]]]) -> str:
    """Aligned columns two spaces apart, a blank line between groups, no trailing blanks."""
    rows = [row for group in groups for row in group]
    widths = [max(len(text) for text in column) for column in zip(*(rows or [[""] * len(columns)]), strict=True)]
    widths = [max(width, len(column.heading)) for width, column in zip(widths, columns, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = zip(cells, columns, widths, strict=True)
        return "  ".join(f"{text:{'>' if column.number else '<'}{width}}" for text, column, width in padded).rstrip()

    head = line([column.heading for column in columns])
    return "\n\n".join([head, *("\n".join(line(row) for row in group) for group in groups if group)])


def _show_rich(columns: Sequence[Column], groups: Sequence[Sequence[Sequence[str]]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in columns:
        table.add_column(column.heading, justify="right" if column.number else "left")
    for group in groups:
        for row in group:
            table.add_row(*(Text(cell) for cell in row))
        table.add_section()
    Console().print(table)


@contextmanager
def progress_line(first: str) -> Iterator[Reporter]:
    """A live line on stderr while a command works; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(escape(first), total=None)
        yield lambda text: progress.update(task, description=escape(text))


def progress_text(moment: Moment) -> str:
    """Best, bound and gap of a running solve."""
    best, bound = moment.best, moment.bound
    gap = f", gap {percent(Fraction(best - bound) / best)}" if best else ""
    return f"best {number(best)}, bound {number(bound)}{gap}"


def markdown_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """The rows as a Markdown table, numbers flush right."""
    lines = [[column.heading for column in columns], ["---:" if column.number else "---" for column in columns], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
