import csv
import io
import json
import re

import pytest
from click.testing import CliRunner

from benchmarks.cli import cli
from benchmarks.table import TABLE_FORMATS, TABLE_NAMES, table_command
from benchmarks.tables import FORMATS, TABLES, table
from solver import ProblemError


def record(**changes):
    """A record of a proven optimum, but for what is changed."""
    settings = {"minimize": ["makespan"]}
    found = {
        "key": json.dumps(changes, sort_keys=True),
        "problem": "P4-M8",
        "placement": "linear",
        "devices": 4,
        "microbatches": 8,
        "ops": 64,
        "cap": "1x",
        "schedule": "optimum",
        "solver": "minbubble",
        "settings": settings,
        "status": "OPTIMAL",
        "makespan": 33,
        "span": 33,
        "bubble_ratio": 3 / 11,
        "bubble_ratio_span": 3 / 11,
        "peak_activations": 4.0,
        "violations": [],
        "lower_bound": 33,
        "gap": 0.0,
        "wall_time": 0.05,
    }
    return found | changes


def hand_made(schedule, **changes):
    return (
        record(schedule=schedule, solver=None, settings=None, status="HAND_MADE", gap=None, lower_bound=None) | changes
    )


OPEN = record(solver="textbook", makespan=40, gap=0.175, status="FEASIBLE", wall_time=60.0)
NOTHING = record(solver="zb-ilp", makespan=None, gap=1.0, status="UNKNOWN", wall_time=60.0)


def rows(records, name):
    return table(records, name).to_dict("records")


def test_values_say_what_is_known_of_them():
    gpipe = hand_made("gpipe", violations=["memory over cap"])
    assert [r["makespan"] for r in rows([gpipe, record(), OPEN], "generations")] == [
        "33 (over the cap)",
        "33",
        "40 (>= 33)",
    ]
    assert [r["schedule"] for r in rows([gpipe, record(), OPEN], "generations")] == ["gpipe", "optimum", "best found"]


def test_placements_side_by_side():
    wave = record(placement="wave (V=2)", makespan=30)
    assert rows([record(), wave, record(cap="0.5x", makespan=51)], "placements") == [
        {"model": "P4-M8", "M": 8, "cap": "0.5x", "linear": "51", "wave (V=2)": "-"},
        {"model": "P4-M8", "M": 8, "cap": "1x", "linear": "33", "wave (V=2)": "30"},
    ]


def test_ablation_and_scaling_show_time_or_gap():
    assert rows([OPEN, NOTHING, record()], "ablation") == [
        {"solver": "minbubble", "P4-M8, linear, 1x": "0.05 s"},
        {"solver": "textbook", "P4-M8, linear, 1x": "gap 17.50%"},
        {"solver": "zb-ilp", "P4-M8, linear, 1x": "nothing found"},
    ]
    assert [r["P"] for r in rows([record(devices=8), record()], "scaling")] == [4, 8]


def test_published_bubbles_stand_beside_ours():
    # 1F1B on the 1.5B preset: published .2431. A least span of 100 at bubble 1/4 means 75 busy; a bound of 80: 1/16.
    ours = hand_made("1f1b", problem="zb-1.5b", cap="none", bubble_ratio_span=0.24312)
    best = record(
        problem="zb-1.5b", settings={"minimize": ["span"]}, span=100, bubble_ratio_span=0.25, lower_bound=80, gap=0.2
    )
    first, second = rows([ours, best], "zero-bubble")
    assert (first["schedule"], first["published"], first["simulated here"]) == ("1f1b", "0.2431", "0.2431")
    assert (second["schedule"], second["least span"], second["at least"]) == ("ZB-1p", "0.2500", "0.0625")


def test_published_peers_stand_beside_ours():
    (row,) = rows(
        [record(problem="unit-P4-M8", cap="0.5x", makespan=41), hand_made("zb-h1", problem="unit-P4-M8", cap="0.5x")],
        "tight-caps",
    )
    assert row["minbubble"] == "41 in 0.05 s"
    assert row["published: Tessel on Z3"] == "44"
    assert row["zb-h1"] == "33"


def test_predicted_against_measured():
    # Measured 11,722,200 us; a prediction of 11,640,144 is 0.70 % less.
    (row,) = rows([hand_made("1f1b", problem="a100-256k", makespan=11_640_144)], "measured")
    assert row["difference"] == "-0.70%"


def test_a_schedule_that_does_not_apply_keeps_its_row():
    missing = {
        "key": "x",
        "cap": None,
        "schedule": "chimera",
        "solver": None,
        "status": "NOT_APPLICABLE",
        "reason": "odd",
    }
    (row,) = rows([missing], "records")
    assert (row["schedule"], row["status"], row["makespan"]) == ("chimera", "NOT_APPLICABLE", "-")


def test_unknown_and_empty_tables_are_refused():
    with pytest.raises(ProblemError, match="known are records, generations"):
        table([record()], "figures")
    with pytest.raises(ProblemError, match="hold nothing"):
        table([record()], "measured")


def test_rows_stand_in_one_order_whenever_they_were_made():
    made = [
        record(cap=cap, placement=placement) for cap in ("none", "10", "0.5x", "2x") for placement in ("wave", "linear")
    ]
    shown = [(r["cap"], r["placement"]) for r in rows(made, "records")]
    assert shown == [(c, p) for c in ("0.5x", "2x", "10", "none") for p in ("linear", "wave")]
    assert rows(made[::-1], "records") == rows(made, "records")


def test_formats_hold_the_same_cells():
    frame = table([record(problem="A_b & 50%"), OPEN], "placements")
    markdown, latex, text = (FORMATS[name](frame) for name in ("markdown", "latex", "csv"))
    assert markdown.splitlines()[0] == "| model | M | cap | linear |"
    assert markdown.splitlines()[2] == "| A_b & 50% | 8 | 1x | 33 |"
    assert re.fullmatch(r"\\begin\{tabular\}\{lrrr\}\n\\toprule\n.*\\bottomrule\n\\end\{tabular\}", latex, re.DOTALL)
    assert r"A\_b \& 50\% & 8 & 1x & 33 \\" in latex
    assert r"40 ($\geq$ 33)" in latex
    assert list(csv.reader(io.StringIO(text)))[1] == ["A_b & 50%", "8", "1x", "33"]


def test_the_command_offers_and_explains_every_table(tmp_path):
    assert tuple(TABLES) == TABLE_NAMES
    assert tuple(FORMATS) == TABLE_FORMATS
    for name, known in TABLES.items():
        assert re.search(rf"^ +{name} +{known.meaning}$", table_command.help, re.MULTILINE), name
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(record()) + "\n")
    result = CliRunner().invoke(cli, ["table", str(path), "--table", "scaling", "-o", str(tmp_path / "t.md")])
    assert result.exit_code == 0, result.output
    assert "| P4-M8 |" in (tmp_path / "t.md").read_text()
