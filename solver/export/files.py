"""Reading and writing text files with errors in one line."""

from __future__ import annotations

import contextlib
import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from solver.errors import ProblemError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")
DPI = 150
MAX_BYTES = 256 * 2**20


def read_text(path: Path) -> str:
    """The text of ``path``; ProblemError where it cannot be read, is larger than 256 MB or is no UTF-8."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ProblemError(f"is larger than {MAX_BYTES >> 20} MB")
        return path.read_text(encoding="utf-8-sig")
    except OSError as err:
        raise ProblemError(f"cannot be read: {err.strerror or err}") from None
    except UnicodeDecodeError:
        raise ProblemError("is no UTF-8 text") from None


def write_text(path: Path, text: str) -> None:
    """Write ``path`` whole or not at all: a reader never sees half a file.

    A symbolic link stays and the file it leads to is written; a device or a pipe is written to, never replaced.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """As ``write_text``; ProblemError where the file cannot be written."""
    try:
        if os.path.lexists(path) and not path.is_file():  # a device, a pipe, a link to one or to nothing
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as err:
        raise ProblemError(f"cannot be written: {err.strerror or err}", str(path)) from None


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def write_figure(figure: Figure, path: Path) -> None:
    """Write a matplotlib figure; the suffix, one of ``PICTURES``, chooses the format."""
    if path.suffix.lower() not in PICTURES:
        raise ProblemError(f"the suffix of a picture must be one of {', '.join(PICTURES)}", str(path))
    picture = BytesIO()
    figure.savefig(picture, format=path.suffix[1:].lower(), dpi=DPI)
    write_bytes(path, picture.getvalue())
