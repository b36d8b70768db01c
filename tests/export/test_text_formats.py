"""ASCII timelines and trace events."""

import json
from collections import Counter

import pytest

from solver import metrics
from solver.export import save
from solver.export.chrome_trace import trace_events
from tests.export import schedules


def test_ascii_shows_title_numbers_and_timeline(tmp_path):
    save({"one": schedules.split(), "two": schedules.split()}, tmp_path / "plans.txt")
    # F1 F0 on 0 [0,2), stage 1: F1 [1,2) I1 [2,3) W1 [3,4) F0 [4,5) I0 [5,6) W0 [6,7); stage 0's W0 ends at 9:
    # I1 [3,4), I0 [6,7), W1 [7,8), W0 [8,9). Busy 6 each of 2 x 9: bubble 1/3.
    block = "makespan 9, bubble 33.3%\n0 | F1F0..I1....I0W1W0\n1 | ..F1I1W1F0I0W0....\n"
    assert (tmp_path / "plans.txt").read_text() == f"one: {block}\ntwo: {block}"


@pytest.fixture
def events(tmp_path):
    save(schedules.fused(), tmp_path / "plan.trace.json")
    content = json.loads((tmp_path / "plan.trace.json").read_text())
    assert content["displayTimeUnit"] == "ms"
    return content["traceEvents"]


def test_every_op_is_a_complete_event_on_its_devices_track(events):
    ops = [e for e in events if e["ph"] == "X"]
    expected = {(str(e.op), e.device, float(e.start), float(e.end - e.start)) for e in schedules.fused().entries()}
    assert {(e["name"], e["tid"], e["ts"], e["dur"]) for e in ops} == expected
    assert len(ops) == 12


def test_every_transfer_is_an_arrow_between_two_ops(events):
    # Three micro-batches, each one activation down and one gradient up.
    starts, ends = ([e for e in events if e["ph"] == ph] for ph in "sf")
    assert Counter(e["id"] for e in starts) == Counter(e["id"] for e in ends) == Counter({e["id"]: 1 for e in starts})
    assert len(starts) == 6
    ops = {(e["name"], e["tid"]): e for e in events if e["ph"] == "X"}
    for arrow in starts:
        sender = ops[arrow["name"], arrow["tid"]]
        assert sender["ts"] <= arrow["ts"] < sender["ts"] + sender["dur"]
    for arrow in ends:
        assert any(op["ts"] == arrow["ts"] and op["tid"] == arrow["tid"] for op in ops.values())


def test_counters_reach_the_peak_and_return_to_nothing(events):
    peaks = [float(p) for p in metrics.peak_memory(schedules.fused())]
    for device, peak in enumerate(peaks):
        levels = [e["args"]["in use"] for e in events if e["ph"] == "C" and e["name"] == f"memory of device {device}"]
        assert (max(levels), levels[-1]) == (peak, 0)


def test_several_schedules_are_several_processes():
    events = list(trace_events({"a": schedules.fused(), "b": schedules.wave()}))
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {0: "a", 1: "b"}
    assert {e["tid"] for e in events if e["ph"] == "X" and e["pid"] == 1} == {0, 1}
