import json

import pytest

from solver import InvalidSchedule, ProblemError, validate
from solver.export import load_schedule, save
from solver.export.json_file import read_schedule, schedule_of, schedule_to_mapping
from solver.schedule import Entry
from solver.validate import entry_violations
from tests.export import schedules


@pytest.mark.parametrize("name", ["fused", "split", "wave", "bidirectional", "thirds"])
def test_a_schedule_survives_the_file(name, tmp_path):
    schedule = getattr(schedules, name)()
    save(schedule, tmp_path / "plan.json")
    read = load_schedule(tmp_path / "plan.json")
    assert read.problem == schedule.problem
    assert read.entries() == schedule.entries()


def test_the_mapping_speaks_the_words_of_the_metrics():
    # F 1/3 and B 7/10, twice in a row on one device: 2 x 31/30.
    content = schedule_to_mapping(schedules.thirds())
    assert content["makespan"] == "31/15"
    assert content["bubble_ratio"] == 0
    assert content["peak_memory"] == [1]
    assert content["schedule"][0] == {"op": "0F0", "device": 0, "start": 0, "end": "1/3"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": None}, "schedule: must be a list"),
        ({"schedule": [3]}, r"schedule\[0\]: must be an object"),
        ({"schedule": [{"op": "0F0", "device": 0, "start": 0}]}, r"schedule\[0\]\.end: is missing"),
        ({"schedule": [{"op": "F0", "device": 0, "start": 0, "end": 1}]}, r"schedule\[0\]\.op: an op is written"),
        ({"schedule": [{"op": ["0F0"], "device": 0, "start": 0, "end": 1}]}, r"schedule\[0\]\.op"),
        ({"schedule": [{"op": "0F0", "device": -1, "start": 0, "end": 1}]}, r"schedule\[0\]\.device"),
        ({"schedule": [{"op": "0F0", "device": 10**30, "start": 0, "end": 1}]}, r"schedule\[0\]\.device"),
        ({"schedule": [{"op": "0F0", "device": True, "start": 0, "end": 1}]}, r"schedule\[0\]\.device"),
        ({"schedule": [{"op": "0F0", "device": 0, "start": float("nan"), "end": 1}]}, r"schedule\[0\]\.start"),
        ({"schedule": [{"op": "0F0", "device": 0, "start": "soon", "end": 1}]}, r"schedule\[0\]\.start"),
        ({"schedule": [{"op": "0F0", "device": 0, "start": None, "end": 1}]}, r"schedule\[0\]\.start"),
        ({"problem": None}, "problem: is missing"),
        ({"problem": []}, "problem"),
        ({"problem": {"microbatches": 0}}, r"problem\."),
    ],
)
def test_a_malformed_file_is_one_line_that_names_the_key(change, message, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(schedule_to_mapping(schedules.fused()) | change))
    with pytest.raises(ProblemError, match=rf"plan\.json: {message}") as caught:
        read_schedule(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b"{", b"\xff\xfe\x00", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(content, tmp_path):
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(ProblemError, match=r"plan\.json") as caught:
        read_schedule(path)
    assert "\n" not in str(caught.value)


def test_negative_times_are_read_and_judged():
    schedule = schedules.fused()
    content = schedule_to_mapping(schedule)
    content["schedule"][0] |= {"start": -1.5, "end": "-1/2"}
    from solver.export.json_file import entries_from_list

    entries = entries_from_list(content["schedule"])
    assert str(entries[0].start) == "-3/2"
    assert entry_violations(schedule.problem, entries)
    with pytest.raises(InvalidSchedule, match="violations"):
        schedule_of(schedule.problem, entries)


def test_starts_between_ticks_go_down_and_stay_valid():
    # One device, 1 tick = 1: ops shifted by 1/2 still fit, and go back to where they were.
    schedule = schedules.split()
    moved = [Entry(e.op, e.device, e.start + 0.5, e.end + 0.5) for e in schedule.entries()]
    read = schedule_of(schedule.problem, moved)
    validate(read)
    assert read.entries() == schedule.entries()


def test_a_problem_beside_the_file_replaces_its_own(tmp_path):
    schedule = schedules.fused()
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"schedule": schedule_to_mapping(schedule)["schedule"]}))
    with pytest.raises(ProblemError, match="problem: is missing"):
        load_schedule(path)
    assert load_schedule(path, schedule.problem).entries() == schedule.entries()


def test_unwritable_and_unknown_files_are_named(tmp_path):
    with pytest.raises(ProblemError, match="cannot be written"):
        save(schedules.fused(), tmp_path / "missing" / "plan.json")
    with pytest.raises(ProblemError, match=r"unknown suffix '\.docx'.*\.csv"):
        save(schedules.fused(), tmp_path / "plan.docx")
    with pytest.raises(ProblemError, match="holds one schedule, got 2"):
        save({"a": schedules.fused(), "b": schedules.split()}, tmp_path / "plan.json")
