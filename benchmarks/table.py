"""``minbubble table``: a sweep's records as a table for a paper, a page or a spreadsheet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

TABLE_NAMES = (
    "records",
    "generations",
    "placements",
    "zero-bubble",
    "tight-caps",
    "measured",
    "ablation",
    "scaling",
)
TABLE_FORMATS = ("markdown", "latex", "csv", "json")


@click.command("table")
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--table", "name", type=click.Choice(TABLE_NAMES), default="records", show_default=True)
@click.option("--format", "layout", type=click.Choice(TABLE_FORMATS), default="markdown", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write a file instead.")
def table_command(records: Sequence[Path], name: str, layout: str, output: Path | None) -> int:
    """A table of RECORDS, the files that minbubble sweep wrote; LaTeX tables use booktabs.

    \b
      records      every record, one row each
      generations  the four generations and the optima of their placements on one model
      placements   least makespan by memory cap, one column a placement
      zero-bubble  the Zero Bubble presets against the published bubbles
      tight-caps   makespans under tight caps: ours, peers run here, published peers
      measured     predicted against measured iterations
      ablation     time to proof, or gap at the limit, one column a problem
      scaling      time to proof, or gap at the limit, by problem size

    \b
    Examples:
      minbubble table generations.jsonl --table generations
      minbubble table tight-caps.jsonl --table tight-caps --format latex -o tight.tex
    """
    from benchmarks.records import read_records
    from benchmarks.tables import FORMATS, table
    from solver.export.files import write_text

    text = FORMATS[layout](table(read_records(list(records)), name))
    if output is None:
        click.echo(text)
    else:
        write_text(output, text + "\n")
    return 0
