"""Records of a sweep: one JSON object a line, appended so that a crash at any moment loses at most the last line."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solver import ProblemError

Record = Mapping[str, Any]


class RecordFile:
    """An open file of records, locked against a second sweep; use it as a context manager.

    ``done`` has the records that were there, by key. ``dropped`` is a torn last line that was cut off.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.done: dict[str, Record] = {}
        self.dropped = ""

    def __enter__(self) -> RecordFile:
        try:
            if self.path.exists() and not self.path.is_file():
                raise ProblemError("is no regular file", str(self.path))
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as err:
            raise ProblemError(f"cannot be opened: {err.strerror}", str(self.path)) from None
        self._lock()
        records, good, self.dropped = split_records(self.path.read_bytes(), str(self.path))
        self.done = {str(record["key"]): record for record in records}
        if self.dropped:
            os.ftruncate(self._file, good)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def _lock(self) -> None:
        with contextlib.suppress(ImportError):  # no such locks on Windows
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._file)
                raise ProblemError("another sweep is writing this file", str(self.path)) from None

    def append(self, record: Record) -> None:
        """Write one record and wait until it is on disk; a line that did not fit is cut off again."""
        line = (json.dumps(record, sort_keys=True) + "\n").encode()
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) < len(line):
                raise OSError(None, "the disk is full")
            os.fsync(self._file)
        except OSError as err:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            kept = f"its {len(self.done)} records are safe, and the same command goes on from there"
            raise ProblemError(f"cannot be written: {err.strerror}; {kept}", str(self.path)) from None
        self.done[str(record["key"])] = record


def split_records(content: bytes, source: str) -> tuple[list[Record], int, str]:
    """The records in a file's bytes, the length of what is whole, and a torn last line (empty if there is none).

    Raises ProblemError for a line that is no record, unless it is the last: only that one can be torn.
    """
    records: list[Record] = []
    good = 0
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        whole = number < len(lines)
        try:
            record = json.loads(line) if whole and line.strip() else None
            if record is not None and "key" not in record:
                raise ValueError
        except (ValueError, TypeError):
            if number < len(lines) - 1 or lines[-1]:
                raise ProblemError("is no record: a JSON object with a key", f"{source}: line {number}") from None
            return records, good, line.decode(errors="replace")
        if record is not None:
            records.append(record)
        good += len(line) + 1 if whole else 0
    return records, good, lines[-1].decode(errors="replace")


def read_records(paths: list[Path]) -> list[Record]:
    """The records of all files; of two with one key the later counts. A torn last line is passed over."""
    found: dict[str, Record] = {}
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as err:
            raise ProblemError(f"cannot be read: {err.strerror}", str(path)) from None
        for record in split_records(content, str(path))[0]:
            found[str(record["key"])] = record
    return list(found.values())
