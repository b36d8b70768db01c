import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure

from solver import Placement, ProblemError, Workload, simulate
from solver.export import save
from solver.export.gantt import draw_gantt, gantt_figure, step_curve
from solver.export.palette import COLOURS, chunk_table, fill, ink
from solver.export.pareto import FrontPoint, draw_pareto, save_pareto
from solver.ops import OpKind
from solver.schedule import DeviceOrder
from tests.export import schedules

MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def drawn(figure, kind):
    return [c for ax in figure.axes for c in ax.collections if type(c) is kind]


@pytest.mark.parametrize("suffix", MAGIC)
def test_the_suffix_chooses_the_format(suffix, tmp_path):
    save({"a": schedules.fused(), "b": schedules.wave()}, tmp_path / f"plan{suffix}")
    assert (tmp_path / f"plan{suffix}").read_bytes().startswith(MAGIC[suffix])


def test_every_op_is_a_box_at_its_time_on_its_device():
    figure = gantt_figure({"": schedules.fused()})
    boxes = drawn(figure, PolyCollection)[1].get_paths()
    found = sorted((int(b.get_extents().y0), b.get_extents().x0, b.get_extents().x1) for b in boxes)
    assert found == sorted((e.device, float(e.start), float(e.end)) for e in schedules.fused().entries())


def test_numbers_stand_where_they_fit():
    # Three micro-batches on two devices, F and B each: 12 numbers when the figure is wide, none when a row is 0.1 inch.
    wide, narrow = Figure().subplots(), Figure().subplots()
    draw_gantt(wide, schedules.fused(), label_inches=(8, 0.5))
    draw_gantt(narrow, schedules.fused(), label_inches=(0.1, 0.5))
    count = [sum(len(c.get_offsets()) for c in ax.collections if type(c) is PathCollection) for ax in (wide, narrow)]
    assert count == [12, 0]


def test_the_cap_is_a_line_and_the_curve_reaches_it():
    figure = gantt_figure({"": schedules.fused()})
    (caps,) = drawn(figure, LineCollection)
    curves = drawn(figure, PolyCollection)[2]
    tops = [path.get_extents().y0 for path in curves.get_paths()]
    # 1F1B on two devices peaks at 2 and 1 activations under a cap of 2: only device 0 touches its line.
    assert tops[0] == pytest.approx(caps.get_segments()[0][0][1])
    assert tops[1] > caps.get_segments()[1][0][1]


def test_the_memory_curve_starts_at_static_and_ends_where_it_settles():
    workload = Workload.uniform(1, 2, static="0.5")
    schedule = simulate(workload.problem(Placement.linear(1)), DeviceOrder.parse(["0F0 0B0 0F1 0B1"]))
    times, levels = step_curve(schedule, 0, 6.0)
    assert times.tolist() == [0, 3, 6, 6]
    assert levels.tolist() == [1.5, 1.5, 0.5, 0.5]


def lightness(colour):
    red, green, blue = (((int(colour[i : i + 2], 16) / 255 + 0.055) / 1.055) ** 2.4 for i in (1, 3, 5))
    return 116 * (0.2126 * red + 0.7152 * green + 0.0722 * blue) ** (1 / 3) - 16


def test_kinds_differ_in_greyscale():
    values = [lightness(COLOURS[kind]) for kind in (OpKind.F, OpKind.I, OpKind.W)]
    assert np.diff(values).min() > 18


# Linear RGB as the three kinds of dichromats see it (Machado, Oliveira and Fernandes 2009, severity 1.0).
BLINDNESS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
def test_kinds_differ_for_the_colour_blind(kind):
    rgb = np.array([[int(COLOURS[k][i : i + 2], 16) / 255 for i in (1, 3, 5)] for k in (OpKind.F, OpKind.I, OpKind.W)])
    seen = np.clip(rgb**2.2 @ np.array(BLINDNESS[kind]).T, 0, 1) ** (1 / 2.2)
    distances = [np.linalg.norm(seen[a] - seen[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert min(distances) > 0.3


def test_later_chunks_are_paler_and_numbers_readable():
    assert lightness(fill(OpKind.F, 1, 2)) > lightness(fill(OpKind.F, 0, 2)) + 15
    assert ink(fill(OpKind.F)) == "#ffffff"
    assert {ink(fill(kind, 1, 2)) for kind in OpKind} == {"#000000"}
    assert chunk_table(schedules.wave().problem) == {(0, 0): (0, 2), (0, 3): (1, 2), (1, 1): (0, 2), (1, 2): (1, 2)}


def test_the_front_is_drawn_on_the_callers_axes():
    ax = Figure().subplots()
    draw_pareto(ax, [FrontPoint(2, 51), FrontPoint(1, 96, proven=False)], {"a": (2, 51), "b": (2, 51), "c": (8, 33)})
    staircase, *_ = ax.lines
    assert staircase.get_xydata().tolist() == [[1, 96], [2, 51]]
    assert sorted(text.get_text() for text in ax.texts) == ["a, b", "c"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "front, proven",
        "front, best found",
        "hand-made",
    ]


def test_a_front_is_a_picture_or_refused(tmp_path):
    save_pareto([FrontPoint(1, 2)], {}, tmp_path / "front.svg")
    assert (tmp_path / "front.svg").read_bytes().startswith(MAGIC[".svg"])
    with pytest.raises(ProblemError, match=r"\.png, \.svg, \.pdf"):
        save_pareto([FrontPoint(1, 2)], {}, tmp_path / "front.txt")


@pytest.mark.parametrize("suffix", [".png", ".html", ".txt", ".trace.json", ".json", ".csv"])
def test_ops_of_no_duration_and_no_memory_can_be_shown(suffix, tmp_path):
    problem = Workload.uniform(1, 2, forward=0, backward=0, activation=0).problem(Placement.linear(1))
    save(simulate(problem, DeviceOrder.parse(["0F0 0B0 0F1 0B1"])), tmp_path / f"plan{suffix}")
    assert (tmp_path / f"plan{suffix}").stat().st_size > 0


def test_the_legend_names_what_is_there():
    def legend(**named):
        return [text.get_text() for text in gantt_figure(named).legends[0].get_texts()]

    assert legend(a=schedules.fused()) == ["F forward", "B backward", "memory, peak at the right", "memory cap"]
    assert legend(a=schedules.split(), b=schedules.wave()) == [
        "F forward",
        "B backward, I input gradient",
        "W weight gradient",
        "paler: a device's later stages",
        "memory, peak at the right",
    ]


def test_a_name_is_no_formula(tmp_path):
    with rc_context({"svg.fonttype": "none"}):  # text as text; a formula would be split into pieces
        save({"costs $5_ & {more} $": schedules.fused()}, tmp_path / "plan.svg")
        save_pareto([FrontPoint(1, 2)], {}, tmp_path / "front.svg", title="$_")
    assert ">costs $5_ &amp; {more} $   makespan" in (tmp_path / "plan.svg").read_text()
    assert ">$_</text>" in (tmp_path / "front.svg").read_text()
