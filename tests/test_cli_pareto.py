"""``minbubble pareto``: the front by hand, where hand-made schedules stand, the picture, and what Ctrl-C leaves."""

import json
import os
import signal
import threading
import time
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest

from benchmarks.front_picture import Place, front_figure
from benchmarks.pareto import Front, find_front, front_points, memories_between, point_text, undominated
from solver import Placement, Status, Workload, pareto_front, solve
from solver.export.pareto import FrontPoint
from tests.test_cli import drain, started

SMALL = ("--devices", 2, "--microbatches", 4)
# P = 2, M = 4, F = 1, B = 2. At cap 2: (M + P - 1)(F + B) = 5 x 3; at cap 1 one micro-batch at a time: 4 x 2 x 3.
SMALL_FRONT = [[15, 2], [24, 1]]


def test_the_front_and_the_schedules_on_it(minbubble):
    code, out, err = minbubble("pareto", *SMALL, "--json")
    answer = json.loads(out)
    assert (code, err, answer["interrupted"]) == (0, "", False)
    assert [point["objective"] for point in answer["points"]] == SMALL_FRONT
    assert {point["status"] for point in answer["points"]} == {"OPTIMAL"}
    assert answer["points"][0]["lower_bound"] == SMALL_FRONT[0]
    assert max(answer["points"][1]["peak_memory"]) == 1
    rows = {row["schedule"]: row for row in answer["hand_made"]}
    # on the front: 1f1b at 2, naive at 1; gpipe takes 4 activations for the same 15
    assert [(rows[n]["makespan"], max(rows[n]["peak_memory"]), rows[n]["above"]) for n in ("1f1b", "naive")] == [
        (15, 2, 0),
        (24, 1, 0),
    ]
    assert (rows["gpipe"]["peak_memory"], rows["gpipe"]["above"]) == ([4, 4], 0)
    # on another placement: shown, not held against this front
    assert (rows["chimera"]["placement"], rows["chimera"]["above"]) == ("bidirectional", None)
    assert "halves" in rows["zb-h1"]["reason"]


def test_the_tables_show_points_then_schedules(minbubble):
    code, out, _ = minbubble("pareto", *SMALL)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert [line[:4] for line in lines[2:4]] == [["15", "2", "20.0%", "OPTIMAL"], ["24", "1", "50.0%", "OPTIMAL"]]
    assert "2 points on linear; hand-made:" in out
    assert ["linear", "1f1b", "15", "2", "20.0%", "0.0%"] in lines
    assert "not zb-h1, zb-h2" in out


def test_a_schedule_over_the_cap_is_marked_and_not_compared(minbubble):
    code, out, _ = minbubble("pareto", *SMALL, "--memory-cap", 1)
    assert code == 0
    assert ["linear", "1f1b", "15", "2", "over", "cap", "20.0%", "-"] in [line.split() for line in out.splitlines()]


def test_a_placement_and_chunks_as_solve_takes_them(minbubble):
    code, out, _ = minbubble("pareto", *SMALL, "--placement", "looped", "--points", 1, "--time-limit", 5, "--json")
    answer = json.loads(out)
    # chunk times 1/2 and 1: 4 x 3 of work after 1/2, before 1
    assert (code, answer["points"][0]["makespan"]) == (0, 13.5)
    assert {row["placement"] for row in answer["hand_made"] if row.get("above") is not None} == {"looped (V=2)"}


def test_a_time_limit_of_nothing_still_gives_the_best_hand_made_one_for_each_memory(minbubble):
    code, out, _ = minbubble("pareto", "--time-limit", 0, "--points", 20)
    assert code == 0
    # 1f1b at 4 activations, (8 + 3) x 3, which a bound proves; below that one micro-batch at a time, 8 x 4 x 3; the
    # memory rounds bound: 3 activations, 3 x 12 + 3
    first, second = out.splitlines()[2:4]
    assert first.split()[:2] == ["33", "4"]
    assert second.lstrip().startswith("96 (>= 39)")
    assert "FEASIBLE" in second


def test_points_say_what_they_are_at_least():
    problem = Workload.uniform(devices=4, microbatches=8).problem(Placement.linear(4))
    point = solve(problem, ("makespan", "peak_memory"), time_limit=0)
    assert point_text(point, "makespan") == "96 (>= 33)"
    assert point_text(solve(problem, time_limit=20), "peak_memory").endswith("(not minimised)")


def test_points_that_a_later_one_beats_are_left_out():
    problem = Workload.uniform(devices=2, microbatches=4).problem(Placement.linear(2))
    best, slow = pareto_front(problem)
    assert undominated([best, slow], "makespan") == (best, slow)
    assert undominated([slow, best, slow], "makespan") == (best, slow)


def test_a_hand_made_schedule_between_two_points_adds_its_own():
    workload = Workload.uniform(devices=4, microbatches=8, forward=1, input_grad=1, weight_grad=1)
    problem = workload.problem(Placement.linear(4))
    front = find_front(problem, points=2, time_limit=0)
    assert front.points
    assert all((front.above(row) or 0) >= 0 for row in front.hand_made if front.fits(row))
    # one micro-batch at a time takes 8 x 4 x 3: ZB-H1 with 4 activations and ZB-H2 with 7 are ahead, at 27
    slow = solve(problem, subject_to={"peak_memory": 1}, time_limit=0)
    assert {4, 7} <= set(memories_between(replace(front, points=(slow,))))
    assert memories_between(replace(front, points=())) == []


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_picture_by_suffix(suffix, minbubble, tmp_path):
    path = tmp_path / f"front{suffix}"
    code, _, err = minbubble("pareto", *SMALL, "-o", path, "-o", tmp_path / "front.json")
    assert (code, err) == (0, "")
    assert path.read_bytes().startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix])
    saved = json.loads((tmp_path / "front.json").read_text())
    assert [point["objective"] for point in saved["points"]] == SMALL_FRONT


def test_an_unknown_suffix_or_folder_is_said_before_any_search(minbubble, tmp_path):
    code, _, err = minbubble("pareto", "-o", tmp_path / "front.txt")
    assert (code, ".png or .svg or .pdf or .json" in err) == (2, True)
    code, _, err = minbubble("pareto", "-o", tmp_path / "nowhere" / "front.png")
    assert (code, "there is no folder" in err) == (2, True)
    assert minbubble("pareto", "--points", 0)[0] == 2
    assert minbubble("pareto", tmp_path / "missing.toml")[0] == 2


def test_every_schedule_is_in_the_picture_and_no_name_covers_another():
    problem = Workload.uniform(devices=2, microbatches=4, input_grad=1, weight_grad=1).problem(Placement.linear(2))
    front = find_front(problem)
    made = [row for row in front.hand_made if row.schedule is not None]
    places = [
        Place(row.baseline.name, row.placement, Fraction(i % 4), Fraction(15 + i // 8)) for i, row in enumerate(made)
    ]
    ax = front_figure(front_points(front.points), places, "makespan", "t$_").axes[0]
    shown = [name for text in ax.texts for name in text.get_text().split(", ")]
    assert sorted(shown) == sorted(row.baseline.name for row in made)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend[:2] == ["front, proven", "hand-made, linear"]
    # few spots for many names
    boxes = [super(type(text), text).get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize(("slowest", "scale"), [(39, "linear"), (40, "log")])
def test_one_slow_schedule_does_not_press_the_others_together(slowest, scale):
    places = [Place("a", "linear", Fraction(4), Fraction(10)), Place("b", "linear", Fraction(1), Fraction(slowest))]
    assert front_figure([FrontPoint(4, 10)], places, "makespan", "").axes[0].get_yscale() == scale


def test_no_point_is_exit_code_1(minbubble, monkeypatch):
    problem = Workload.uniform(devices=2, microbatches=2).problem(Placement.linear(2))
    empty = Front(problem, "makespan", ())
    assert not empty.interrupted
    monkeypatch.setattr("benchmarks.pareto.find_front", lambda *_: empty)
    assert minbubble("pareto")[0] == 1


def test_ctrl_c_keeps_the_points_found():
    pty = pytest.importorskip("pty")
    here, there = pty.openpty()
    # many points, none proven in its two seconds
    flags = "--devices 8 --microbatches 32 --input-grad 3 --weight-grad 2 --forward 3 --latency 1 --time-limit 2"
    process = started("pareto", *flags.split(), "--points", 100, "--json", stderr=there)
    os.close(there)
    shown = b""
    while b"point 2" not in shown:
        shown += os.read(here, 1 << 16)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    threading.Thread(target=drain, args=(here,), daemon=True).start()
    out, _ = process.communicate(timeout=60)
    answer = json.loads(out)
    assert (process.returncode, answer["interrupted"]) == (0, True)
    assert answer["points"]
    assert {point["status"] for point in answer["points"]} <= {Status.OPTIMAL, Status.FEASIBLE}
