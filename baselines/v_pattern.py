"""The building block of the V schedules: one micro-batch's slots, repeated and squeezed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from solver.ops import OpKind

Slots = tuple[int, ...]
"""The slots of one micro-batch's six ops on one device, by role."""

F0, F1, I1, I0, W1, W0 = range(6)
"""Roles of a device's ops, in the order a micro-batch meets them; chunk 0 is on the way down, chunk 1 on the way up."""

KIND = (OpKind.F, OpKind.F, OpKind.I, OpKind.I, OpKind.W, OpKind.W)
CHUNK = (0, 1, 1, 0, 1, 0)

LIVES = ((F0, W0), (F1, W1))
"""From where to where a chunk's activation is held."""

PERIOD = 6
"""Slots from one micro-batch's pattern to the next: as many as a device has roles."""


def building_block(devices: int, down: int, up: int) -> list[Slots]:
    """Each device's slots, ``down`` and ``up`` slots apart from device to device, without collision when repeated.

    Of all waits of 1 to 6 slots at the three turns: the least memory, then least waiting, then most at the first.

    >>> building_block(2, down=1, up=1)
    [(0, 3, 4, 7, 5, 8), (1, 2, 5, 6, 9, 10)]
    """
    last, blocks = devices - 1, []
    for waits in product(range(1, PERIOD + 1), repeat=3):
        f1 = last * down + waits[0]
        i1 = f1 + last * up + waits[1]
        i0 = i1 + last * down + waits[2]
        block = [(d * down, f1 + (last - d) * up, i1 + d * down, i0 + (last - d) * up) for d in range(devices)]
        if all(len({slot % PERIOD for slot in row}) == len(row) for row in block):
            placed = [_with_weights(row) for row in block]
            blocks.append((max(map(_peak, placed)), sum(waits), -waits[0], placed))
    return min(blocks)[-1]


def _with_weights(row: Slots) -> Slots:
    """Each W in one of the two slots left over in every period, soonest after the I's in sum."""
    free = {slot % PERIOD for slot in range(PERIOD)} - {slot % PERIOD for slot in row}
    a, b = sorted(free)
    choices = [(_next(row[I1], w1), _next(row[I0], w0)) for w1, w0 in ((a, b), (b, a))]
    return row + min(choices, key=sum)


def _next(after: int, residue: int) -> int:
    """The first slot after ``after`` that is ``residue`` in its period."""
    return after + 1 + (residue - after - 1) % PERIOD


def _peak(row: Slots) -> int:
    """Most chunks held at once, from F to W, when the pattern repeats for ever."""
    lives = [(row[first], row[last]) for first, last in LIVES]
    return max(sum((t - f) // PERIOD + (w - t) // PERIOD + 1 for f, w in lives) for t in range(PERIOD))


def squeezed(block: Sequence[Slots], microbatches: int) -> list[list[tuple[OpKind, int, int]]]:
    """Each device's (kind, chunk, micro-batch) in order, from the pattern repeated ``microbatches`` times.

    In order of slots, each op moves to its device's first free slot after what it depends on, a forward only as far as
    the peak memory of the repeated pattern allows.

    >>> [f"{kind}{chunk}" for kind, chunk, _ in squeezed(building_block(1, down=1, up=1), 1)[0]]
    ['F0', 'F1', 'I1', 'I0', 'W1', 'W0']
    """
    rows = [_Row(slots, microbatches) for slots in block]
    peak = max(int(row.held.max()) for row in rows)
    ops = product(range(len(block)), range(PERIOD), range(microbatches))
    for device, role, m in sorted(ops, key=lambda op: block[op[0]][op[1]] + PERIOD * op[2]):
        before = _before(device, role, len(block))
        first = rows[before[0]].at[before[1]][m] + 1 if before else 0
        rows[device].squeeze(role, m, max(first, rows[device].at[role][m - 1] + 1 if m else 0), peak)
    return [row.order() for row in rows]


def _before(device: int, role: int, devices: int) -> tuple[int, int] | None:
    """The (device, role) of the same micro-batch that ``role`` on ``device`` waits for."""
    if role in (F0, I1) and device > 0:
        return device - 1, role
    if role in (F1, I0) and device < devices - 1:
        return device + 1, role
    own = {F1: F0, I1: F1, I0: I1, W1: I1, W0: I0}
    return (device, own[role]) if role in own else None


class _Row:
    """One device's slots of every [role][micro-batch], which of them are settled, and the chunks held in each slot."""

    def __init__(self, slots: Slots, microbatches: int) -> None:
        width = max(slots) + PERIOD * microbatches
        self.at = [[slot + PERIOD * m for m in range(microbatches)] for slot in slots]
        self.settled = [False] * width
        self.held = np.zeros(width, dtype=np.int64)
        for first, last in LIVES:
            for f, w in zip(self.at[first], self.at[last], strict=True):
                self.held[f : w + 1] += 1

    def squeeze(self, role: int, m: int, first: int, peak: int) -> None:
        """Settle an op in the first free slot from ``first`` on, a forward no further than ``peak`` allows."""
        old = self.at[role][m]
        if role in (F0, F1):
            full = np.flatnonzero(self.held[first:old] >= peak)
            first += int(full[-1]) + 1 if full.size else 0
        new = self.settled.index(False, first)
        self.settled[new], self.at[role][m] = True, new
        if role in (F0, F1):
            self.held[new:old] += 1
        elif role in (W1, W0):
            self.held[new + 1 : old + 1] -= 1

    def order(self) -> list[tuple[OpKind, int, int]]:
        """(kind, chunk, micro-batch) in order of slots."""
        placed = [(slot, role, m) for role, slots in enumerate(self.at) for m, slot in enumerate(slots)]
        return [(KIND[role], CHUNK[role], m) for _, role, m in sorted(placed)]
