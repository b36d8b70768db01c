"""What becomes of the thing that is written to: a file is replaced whole, anything else stays what it is."""

import os
import threading

import pytest

from solver import ProblemError
from solver.export.files import write_text


def test_a_file_is_replaced_and_nothing_left_beside_it(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("old")
    write_text(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["plan.json"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_file_is_written(there, tmp_path):
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / "real.json", tmp_path / "link.json"
    if there:
        target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path / "kept") == ["real.json"]


@pytest.mark.parametrize("linked", [True, False])
def test_a_pipe_is_written_to(linked, tmp_path):
    pipe = path = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    if linked:
        path = tmp_path / "link.json"
        path.symlink_to(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(path, "new")
    reader.join(timeout=10)
    assert received == ["new"]
    assert pipe.is_fifo()


def test_a_folder_or_a_link_to_itself_is_an_error_and_stays(tmp_path):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    for name in ("folder.json", "loop.json"):
        with pytest.raises(ProblemError, match=rf"{name}: cannot be written"):
            write_text(tmp_path / name, "new")
    assert sorted(os.listdir(tmp_path)) == ["folder.json", "loop.json"]
