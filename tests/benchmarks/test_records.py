import os
import subprocess
import sys

import pytest

from benchmarks.records import RecordFile, read_records, split_records
from solver import ProblemError


def test_records_come_back(tmp_path):
    path = tmp_path / "r.jsonl"
    with RecordFile(path) as file:
        file.append({"key": "a", "makespan": 1})
        file.append({"key": "b", "makespan": 2})
    with RecordFile(path) as file:
        assert sorted(file.done) == ["a", "b"]
        assert file.dropped == ""
    assert read_records([path]) == [{"key": "a", "makespan": 1}, {"key": "b", "makespan": 2}]


@pytest.mark.parametrize("torn", ['{"key": "b"', '{"key": "b"}', '{"key', "\x00\x00\n", '{"key": "b"\n'])
def test_a_torn_last_line_is_dropped_and_the_rest_kept(torn, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"key": "a"}\n' + torn)
    assert read_records([path]) == [{"key": "a"}]
    with RecordFile(path) as file:
        assert file.dropped == torn.removesuffix("\n")
        assert list(file.done) == ["a"]
        file.append({"key": "c"})
    assert path.read_text() == '{"key": "a"}\n{"key": "c"}\n'


@pytest.mark.parametrize("line", ["garbage", "[1]", '{"no": "key"}'])
def test_a_broken_line_in_the_middle_is_no_torn_line(line):
    with pytest.raises(ProblemError, match=r"r\.jsonl: line 2"):
        split_records(f'{{"key": "a"}}\n{line}\n{{"key": "b"}}\n'.encode(), "r.jsonl")


def test_two_sweeps_do_not_share_a_file(tmp_path):
    with (
        RecordFile(tmp_path / "r.jsonl"),
        pytest.raises(ProblemError, match="another sweep"),
        RecordFile(tmp_path / "r.jsonl"),
    ):
        pass


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(ProblemError, match="cannot be opened"), RecordFile(tmp_path / "missing" / "r.jsonl"):
        pass
    with pytest.raises(ProblemError, match="cannot be read"):
        read_records([tmp_path / "none.jsonl"])


FILL = """
import resource, sys
from benchmarks.records import RecordFile
from solver import ProblemError
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # as a full disk: what is over 100 bytes is not written
with RecordFile(sys.argv[1]) as file:
    file.append({"key": "a", "text": "x" * 40})
    try:
        file.append({"key": "b", "text": "x" * 40})
    except ProblemError as err:
        print(err)
"""


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_a_full_disk_loses_no_record_and_leaves_no_half_line(tmp_path):
    path = tmp_path / "r.jsonl"
    run = subprocess.run([sys.executable, "-c", FILL, str(path)], capture_output=True, text=True, check=True)
    assert "cannot be written" in run.stdout
    assert "1 records are safe" in run.stdout
    assert path.read_text() == '{"key": "a", "text": "' + "x" * 40 + '"}\n'
    with RecordFile(path) as file:
        assert (list(file.done), file.dropped) == (["a"], "")


@pytest.mark.parametrize("make", ["mkfifo", "mkdir"])
def test_only_a_regular_file_is_opened(make, tmp_path):
    getattr(os, make)(tmp_path / "r.jsonl")
    with pytest.raises(ProblemError, match=r"r\.jsonl: is no regular file"), RecordFile(tmp_path / "r.jsonl"):
        pass
