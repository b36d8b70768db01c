"""Steady colours of op kinds, in pictures and pages alike.

Blue, orange and pale yellow keep their order of lightness (about 46, 71 and 91 of 100) in greyscale, and stay apart
for the three common kinds of colour blindness. Both B and I are the backward's colour: no stage has both.
"""

from __future__ import annotations

from collections.abc import Mapping

from solver.ops import OpKind
from solver.problem import Problem

COLOURS: Mapping[OpKind, str] = {
    OpKind.F: "#3b6fb6",
    OpKind.B: "#ee9b1f",
    OpKind.I: "#ee9b1f",
    OpKind.W: "#fbe6a6",
}
MEANINGS: Mapping[OpKind, str] = {
    OpKind.F: "F forward",
    OpKind.B: "B backward",
    OpKind.I: "I input gradient",
    OpKind.W: "W weight gradient",
}
MEMORY, CAP, EDGE, IDLE = "#8d99a6", "#b3202c", "#2b2b2b", "#f1f2f4"
FADE = 0.45
"""How far the last of a device's chunks fades to white."""


def fill(kind: OpKind, chunk: int = 0, chunks: int = 1) -> str:
    """The colour of an op of the device's stage number ``chunk`` of ``chunks``: later ones are paler.

    >>> fill(OpKind.F), fill(OpKind.F, 1, 2)
    ('#3b6fb6', '#93b0d7')
    """
    share = FADE * chunk / (chunks - 1) if chunks > 1 else 0.0
    return "#" + "".join(f"{round(v + (255 - v) * share):02x}" for v in _rgb(COLOURS[kind]))


def ink(colour: str) -> str:
    """Black or white, whichever reads better on ``colour``."""
    red, green, blue = _rgb(colour)
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < 130 else "#000000"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def chunk_table(problem: Problem) -> dict[tuple[int, int], tuple[int, int]]:
    """(device, stage) -> (position of the stage among the device's, how many those are)."""
    table: dict[tuple[int, int], tuple[int, int]] = {}
    for device in range(problem.devices):
        stages = sorted({s for route in problem.placement.routes for s, home in enumerate(route) if home == device})
        table |= {(device, stage): (i, len(stages)) for i, stage in enumerate(stages)}
    return table
