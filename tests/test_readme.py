"""Everything shown in README.md runs, and prints what it shows there, but for times of the clock.

``python -m tests.test_readme`` writes what the commands print now into the README.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
COLUMNS_BEFORE_OPTIMUM = 7
CLOCK = re.compile(r"\b\d+\.\d+ s\b")
SEARCHED = re.compile(r"\b(search|[a-z0-9]+-device relaxation)\b")  # whichever of the searches ends first


class Block(NamedTuple):
    """A fenced block, or what stands between ``<!-- $ command -->`` and ``<!-- end -->``, with its line numbers."""

    language: str
    lines: tuple[str, ...]
    start: int
    end: int


def blocks(text: str) -> list[Block]:
    return sorted([*_fenced(text.splitlines()), *_generated(text.splitlines())], key=lambda block: block.start)


def _fenced(lines: list[str]) -> Iterator[Block]:
    fences = [i for i, line in enumerate(lines) if line.startswith("```")]
    for start, end in zip(fences[::2], fences[1::2], strict=True):
        yield Block(lines[start].removeprefix("```"), tuple(lines[start + 1 : end]), start + 1, end)


def _generated(lines: list[str]) -> Iterator[Block]:
    for i, line in enumerate(lines):
        if match := re.fullmatch(r"<!-- (\$ .*) -->", line):
            end = lines.index("<!-- end -->", i)
            yield Block("generated", (match[1], *lines[i + 2 : end - 1]), i + 2, end - 1)


def shell(command: str, folder: Path) -> str:
    """What a command prints, run in ``folder`` with this Python's commands first on the path."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ran(block: Block, folder: Path) -> list[str]:
    """The lines of a console block or generated part as they would be printed now."""
    lines: list[str] = []
    for line in block.lines:
        if line.startswith("$ "):
            shown = [] if block.language == "generated" else [line]
            lines += shown + shell(line.removeprefix("$ "), folder).rstrip().splitlines()
    return lines


def python(block: Block, folder: Path) -> list[str]:
    code = "\n".join(block.lines)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def prepare(folder: Path) -> Path:
    """A folder in which the README's commands find the suites and the files it shows."""
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    for block in blocks(README.read_text()):
        if block.language == "toml":
            (folder / block.lines[0].removeprefix("# ")).write_text("\n".join(block.lines))
    return folder


def cells(line: str) -> list[str]:
    """The columns of a line, without what differs from run to run; a column's width depends on its other rows."""
    return re.split(r"\s{2,}", SEARCHED.sub("SEARCH", CLOCK.sub("TIME", line)).strip())


def same(now: str, shown: str) -> bool:
    """Equal; of a row whose optimum the time limit left open in either, what comes before the optimum."""
    pair = [cells(now), cells(shown)]
    if any("not proven" in row[-1] for row in pair):
        pair = [row[:COLUMNS_BEFORE_OPTIMUM] for row in pair]
    return pair[0] == pair[1]


BLOCKS = blocks(README.read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("readme"))


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.language in ("console", "generated")], ids=lambda b: b.lines[0]
)
def test_commands_print_what_the_readme_shows(block, folder):
    shown = block.lines[1:] if block.language == "generated" else block.lines
    printed = ran(block, folder)
    assert len(printed) == len(shown), "\n".join(printed)
    for now, then in zip(printed, shown, strict=True):
        assert same(now, then), f"the README shows\n{then}\nand now it prints\n{now}"


@pytest.mark.parametrize("index", [i for i, b in enumerate(BLOCKS) if b.language == "python"])
def test_python_prints_what_the_readme_shows(index, folder):
    assert BLOCKS[index + 1].language == "text"
    assert python(BLOCKS[index], folder) == list(BLOCKS[index + 1].lines)


def test_every_block_is_of_a_kind_that_is_run():
    assert {block.language for block in BLOCKS} <= {"sh", "toml", "console", "generated", "python", "text"}


def test_set_up_commands_are_two_and_ci_runs_the_second():
    first, second = (block.lines for block in BLOCKS if block.language == "sh")
    assert first == ("python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/minbubble compare",)
    assert second[0].startswith("python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest")
    # .ci/run reads the line that this pattern finds in the README
    script = (ROOT / ".ci" / "run").read_text()
    pattern = re.search(r"grep '(.*)' README.md", script)
    assert pattern
    assert [line for line in README.read_text().splitlines() if re.search(pattern[1], line)] == list(second)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert target.startswith("http") or (ROOT / target).exists(), target


def rewrite() -> None:
    """Put what the commands print now into the README, from the last block to the first."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as name:
        place = prepare(Path(name))
        lines = README.read_text().splitlines()
        new: dict[int, list[str]] = {}
        for i, block in enumerate(BLOCKS):
            if block.language in ("console", "generated"):
                new[i] = ran(block, place)
            elif block.language == "python":
                new[i + 1] = python(block, place)
        for i in sorted(new, reverse=True):
            lines[BLOCKS[i].start : BLOCKS[i].end] = new[i]
        README.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    rewrite()
