"""Tables from a sweep's records: the standard ones of the field, by name, as pandas frames of text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.measured import MEASURED
from benchmarks.published import TIGHT_CAPS, ZERO_BUBBLE
from benchmarks.render import Column, markdown_table
from solver import ProblemError

if TYPE_CHECKING:
    from pandas import DataFrame

    from benchmarks.records import Record

ABSENT = "-"


class Table(NamedTuple):
    """A named table: its rows from the records, and what it shows."""

    rows: Callable[[Sequence[Record]], Iterable[Mapping[str, object]]]
    meaning: str


def table(records: Sequence[Record], name: str) -> DataFrame:
    """The table called ``name``; ProblemError for an unknown name, or where no record belongs in it."""
    import pandas as pd

    if name not in TABLES:
        raise ProblemError(f"no such table; known are {', '.join(TABLES)}", name)
    found = TABLES[name].rows(sorted(records, key=_place))
    rows = [{key: ABSENT if value is None else value for key, value in row.items()} for row in found]
    if not rows:
        raise ProblemError(f"the records hold nothing for it: {TABLES[name].meaning}", name)
    return pd.DataFrame(rows, dtype=object).fillna(ABSENT)


def _place(record: Record) -> tuple[object, ...]:
    """Where a record stands in every table, whenever it was made: by problem, size, cap, placement, hand-made first."""
    size = (record.get("devices") or 0, record.get("microbatches") or 0)
    solver = record["solver"] or ""
    placement = str(record.get("placement"))
    return str(record.get("problem")), *size, _cap_order(record["cap"]), solver, placement, record["schedule"]


def _cap_order(cap: str | None) -> float:
    number = re.match(r"[\d.]+", cap or "")
    return float(number[0]) if number else float("inf")


# What a cell says -----------------------------------------------------------------------------------------------------


def ratio(value: float | None) -> str | None:
    """A ratio in percent with one decimal."""
    return None if value is None else f"{value:.1%}"


def value_text(record: Record, metric: str = "makespan") -> str | None:
    """A makespan or span; with its bound where that is not met: "60 (>= 57)"; marked where it is over the cap."""
    value = record.get(metric)
    if value is None:
        return None
    if record.get("violations"):
        return f"{value} (over the cap)"
    return f"{value} (>= {record['lower_bound']})" if record.get("gap") else str(value)


def effort_text(record: Record) -> str:
    """Seconds to the proof, or the gap at the limit, or that nothing was found."""
    if record["status"] == "OPTIMAL":
        return f"{record['wall_time']:.2f} s"
    return f"gap {record['gap']:.2%}" if record.get("makespan") is not None else "nothing found"


def optima(records: Sequence[Record]) -> list[Record]:
    """Records of a search, as opposed to hand-made schedules."""
    return [r for r in records if r["solver"] is not None and r.get("problem") is not None]


def hand_made(records: Sequence[Record]) -> list[Record]:
    """Records of hand-made schedules that apply."""
    return [r for r in records if r["solver"] is None and r.get("makespan") is not None]


def _pivot(
    records: Iterable[Record],
    index: Callable[[Record], Mapping[str, object]],
    column: Callable[[Record], str],
    cell: Callable[[Record], object],
) -> list[dict[str, object]]:
    """One row an index, one column a name, in the order of the records."""
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for record in records:
        head = dict(index(record))
        rows.setdefault(tuple(head.values()), head)[column(record)] = cell(record)
    return list(rows.values())


# The tables -----------------------------------------------------------------------------------------------------------


def _all(records: Sequence[Record]) -> Iterable[dict[str, object]]:
    for r in records:
        yield {
            "problem": r.get("problem"),
            "placement": r.get("placement"),
            "P": r.get("devices"),
            "M": r.get("microbatches"),
            "cap": r["cap"],
            "schedule": r["schedule"],
            "solver": r["solver"],
            "status": r["status"],
            "makespan": r.get("makespan"),
            "span": r.get("span"),
            "bubble": ratio(r.get("bubble_ratio")),
            "peak activations": r.get("peak_activations"),
            "lower bound": r.get("lower_bound"),
            "gap": None if r.get("gap") is None else f"{r['gap']:.2%}",
            "wall time": r.get("wall_time"),
        }


def _generations(records: Sequence[Record]) -> Iterable[dict[str, object]]:
    for r in records:
        if r.get("makespan") is None:
            continue
        yield {
            "model": r["problem"],
            "cap": r["cap"],
            "placement": r["placement"],
            "schedule": "best found" if r.get("gap") else r["schedule"],
            "makespan": value_text(r),
            "bubble": ratio(r.get("bubble_ratio")),
            "peak activations": None if r.get("peak_activations") is None else f"{r['peak_activations']:g}",
        }


def _placements(records: Sequence[Record]) -> Iterable[dict[str, object]]:
    return _pivot(
        optima(records),
        lambda r: {"model": r["problem"], "M": r["microbatches"], "cap": r["cap"]},
        lambda r: str(r["placement"]),
        value_text,
    )


def _zero_bubble(records: Sequence[Record]) -> Iterable[dict[str, object]]:
    """Bubbles of the span: published, simulated here, and the best possible in the memory of ZB-1p and ZB-2p."""
    for model, published in ZERO_BUBBLE.items():
        mine = [r for r in records if r.get("problem") == model and r.get("makespan") is not None]
        for name, bubble in published.items():
            cap = {"ZB-1p": "1x", "ZB-2p": "2x"}.get(name)
            rule = ("zb-heuristic" if cap else name, cap or "none")
            here = [r for r in hand_made(mine) if (r["schedule"], r["cap"]) == rule]
            best = [r for r in optima(mine) if cap and r["cap"] == cap and r["settings"]["minimize"][0] == "span"]
            least = min(best, key=lambda r: Fraction(str(r["span"])), default=None)
            if here or least:
                yield {
                    "model": model,
                    "schedule": name,
                    "published": f"{bubble:.4f}",
                    "simulated here": f"{here[0]['bubble_ratio_span']:.4f}" if here else None,
                    "least span": f"{least['bubble_ratio_span']:.4f}" if least else None,
                    "at least": max(map(_bubble_at, best), default=None),
                }


def _bubble_at(record: Record) -> str:
    """The bubble that a span of the lower bound would have: busy time is the same for every schedule."""
    span, bound = (Fraction(str(v)) for v in (record["span"], record["lower_bound"]))
    busy = Fraction(1 - record["bubble_ratio_span"]) * span
    return f"{float(max(1 - busy / bound, Fraction(0))):.4f}" if bound else ABSENT


def _tight_caps(records: Sequence[Record]) -> Iterable[dict[str, object]]:
    """Published peers, peers run here and our search, all makespans from one judge."""
    chosen = [r for r in records if r.get("makespan") is not None or r["solver"]]
    rows = _pivot(
        chosen,
        lambda r: {"case": r.get("problem"), "cap": r["cap"]},
        lambda r: r["solver"] or r["schedule"],
        lambda r: _with_effort(r) if r["solver"] else value_text(r),
    )
    return [{**row, **_peers(str(row["case"]), str(row["cap"]))} for row in rows if row["case"]]


def _peers(case: str, cap: str) -> dict[str, str]:
    names = list(dict.fromkeys(name for row in TIGHT_CAPS.values() for name in row))
    values = TIGHT_CAPS.get((case, cap), {})
    return {f"published: {name}": str(values.get(name, ABSENT)) for name in names}


def _with_effort(record: Record) -> str:
    """A makespan with the seconds that prove it, or with its gap at the limit."""
    if record.get("makespan") is None:
        return effort_text(record)
    return f"{record['makespan']}{' in ' if record['status'] == 'OPTIMAL' else ', '}{effort_text(record)}"


def _measured(records: Sequence[Record]) -> Iterable[dict[str, object]]:
    for row in MEASURED:
        for r in hand_made(records):
            if (r["problem"], r["schedule"]) == (row.problem, row.schedule):
                yield {
                    "model": row.problem,
                    "schedule": row.schedule,
                    "predicted": r["makespan"],
                    "measured": row.makespan,
                    "difference": f"{r['makespan'] / row.makespan - 1:+.2%}",
                }


def _ablation(records: Sequence[Record]) -> Iterable[dict[str, object]]:
    """A row a solver setting, all on first and all off last; a column a problem."""
    found = sorted(optima(records), key=lambda r: (r["solver"] == "all off", r["solver"] != "all on"))
    return _pivot(
        found,
        lambda r: {"solver": r["solver"]},
        lambda r: ", ".join(str(part) for part in (r["problem"], r["placement"], r["cap"]) if part),
        effort_text,
    )


def _scaling(records: Sequence[Record]) -> Iterable[dict[str, object]]:
    for r in sorted(optima(records), key=lambda r: (r["devices"], r["microbatches"])):
        yield {
            "problem": r["problem"],
            "placement": r["placement"],
            "P": r["devices"],
            "M": r["microbatches"],
            "ops": r["ops"],
            "cap": r["cap"],
            "solver": r["solver"],
            "makespan": value_text(r),
            "bound": r["lower_bound"],
            "time to proof, or gap": effort_text(r),
        }


TABLES: Mapping[str, Table] = {
    "records": Table(_all, "every record, one row each"),
    "generations": Table(_generations, "the four generations and the optima of their placements on one model"),
    "placements": Table(_placements, "least makespan by memory cap, one column a placement"),
    "zero-bubble": Table(_zero_bubble, "the Zero Bubble presets against the published bubbles"),
    "tight-caps": Table(_tight_caps, "makespans under tight caps: ours, peers run here, published peers"),
    "measured": Table(_measured, "predicted against measured iterations"),
    "ablation": Table(_ablation, "time to proof, or gap at the limit, one column a problem"),
    "scaling": Table(_scaling, "time to proof, or gap at the limit, by problem size"),
}
"""The named tables."""


# Formats --------------------------------------------------------------------------------------------------------------


def markdown(frame: DataFrame) -> str:
    """A Markdown table, numbers flush right."""
    columns = [Column(str(name), _is_numeric(frame[name])) for name in frame.columns]
    return markdown_table(columns, _cells(frame))


def latex(frame: DataFrame) -> str:
    """A LaTeX tabular in booktabs rules: the document needs \\usepackage{booktabs}."""
    layout = "".join("r" if _is_numeric(frame[name]) else "l" for name in frame.columns)
    head, *rows = [[str(name) for name in frame.columns], *_cells(frame)]
    lines = [" & ".join(map(_escape, row)) + r" \\" for row in (head, *rows)]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{layout}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def csv(frame: DataFrame) -> str:
    """Comma-separated values with a header."""
    return str(frame.to_csv(index=False)).rstrip("\n")


def as_json(frame: DataFrame) -> str:
    """A JSON list, one object a row."""
    return json.dumps(frame.to_dict("records"), indent=1)


FORMATS: Mapping[str, Callable[[Any], str]] = {"markdown": markdown, "latex": latex, "csv": csv, "json": as_json}
"""What ``--format`` takes."""


def _cells(frame: DataFrame) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in frame.itertuples(index=False)]


def _is_numeric(column: Any) -> bool:  # noqa: ANN401 - a pandas column of any type
    """Whether every cell is a number, with what may follow one: a unit, a bound, a mark."""
    return all(cell == ABSENT or re.match(r"[+-]?\d+([./]\d+)?(%|x?$|[ ,])", str(cell)) for cell in column)


SPECIAL = str.maketrans({"\\": r"\textbackslash{}", **{sign: "\\" + sign for sign in "&%$#_{}"}})


def _escape(text: str) -> str:
    return text.translate(SPECIAL).replace(">=", r"$\geq$")
