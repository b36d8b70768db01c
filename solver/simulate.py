"""The one place that computes time: the earliest start of every op, given the order on every device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from solver.errors import DeadlockError
from solver.graph import Arc, arcs
from solver.ops import Op, OpKind
from solver.problem import Problem
from solver.schedule import DeviceOrder, Schedule

Sequences = Sequence[Sequence[int]]
"""One list a device of flat op indices, as ``flat_index`` numbers them."""


def simulate(problem: Problem, order: DeviceOrder) -> Schedule:
    """The schedule that runs every device in ``order`` and every op as early as it can; O(ops).

    Raises OrderError for an op missing, repeated or misplaced, DeadlockError for ops that wait in a circle.
    Caps are for ``validate`` to judge.

    >>> from solver import Placement, Workload
    >>> problem = Workload.uniform(devices=2, microbatches=1).problem(Placement.linear(2))
    >>> print(simulate(problem, DeviceOrder.parse(["0F0 0B0", "1F0 1B0"])))
    0 | F0......B0--
    1 | ..F0B0--....
    """
    order.check(problem)
    flat = [[flat_index(problem, op) for op in row] for row in order.ops]
    return Schedule(problem, np.array(earliest_starts(problem, flat), dtype=np.int64).reshape(problem.shape))


def latest(schedule: Schedule) -> Schedule:
    """The same order with every op as late as it can be while each device's last op stays: the least span of these.

    Schedules with ops of no duration come back as they are.
    """
    problem = schedule.problem
    if not problem.takes_time:
        return schedule
    order = schedule.order().ops
    follower = {a: b for row in order for a, b in pairwise(row)}
    after: dict[tuple[OpKind, int], list[Arc]] = {}
    for arc in arcs(problem):
        after.setdefault(arc.before, []).append(arc)
    starts = schedule.starts.copy()
    for op in sorted((op for row in order for op in row), key=lambda o: -starts[o.kind, o.stage, o.microbatch]):
        limits = [
            int(starts[(*arc.after, op.microbatch)]) - arc.lag[op.microbatch % problem.routes]
            for arc in after.get((op.kind, op.stage), ())
        ]
        if op in follower:
            later = follower[op]
            limits.append(int(starts[later.kind, later.stage, later.microbatch] - problem.duration[op.kind, op.stage]))
            starts[op.kind, op.stage, op.microbatch] = min(limits)
    return Schedule(problem, starts)


def flat_index(problem: Problem, op: Op) -> int:
    """The position of ``op`` in a flattened [kind, stage, micro-batch] array."""
    return (op.kind * len(problem.stages) + op.stage) * problem.microbatches + op.microbatch


def predecessors(problem: Problem) -> list[list[list[tuple[int, int]]]]:
    """For each [route][kind * S + stage]: (distance in the flat array, lag) of each op it waits for."""
    table: list[list[list[tuple[int, int]]]] = [[[] for _ in range(problem.exists.size)] for _ in range(problem.routes)]
    width = len(problem.stages)
    for (kind, stage), (kind2, stage2), lag in arcs(problem):
        node, node2 = kind * width + stage, kind2 * width + stage2
        for route in range(problem.routes):
            table[route][node2].append(((node - node2) * problem.microbatches, lag[route]))
    return table


def earliest_starts(problem: Problem, sequences: Sequences) -> list[int]:
    """Start of every op in the flattened array, -1 where there is none; DeadlockError for a circle."""
    table, routes, width = predecessors(problem), problem.routes, problem.microbatches
    durations = problem.duration.ravel().tolist()
    starts = [-1] * int(np.prod(problem.shape))
    position, free = [0] * len(sequences), [0] * len(sequences)
    blocked: dict[int, list[int]] = {}
    ready = list(range(len(sequences)))
    while ready:
        device = ready.pop()
        row = sequences[device]
        while position[device] < len(row):
            op = row[position[device]]
            node, micro = divmod(op, width)
            begin, missing = free[device], -1
            for distance, lag in table[micro % routes][node]:
                before = starts[op + distance]
                if before < 0:
                    missing = op + distance
                    break
                begin = max(begin, before + lag)
            if missing >= 0:
                blocked.setdefault(missing, []).append(device)
                break
            starts[op], free[device] = begin, begin + durations[node]
            position[device] += 1
            ready += blocked.pop(op, ())
    if blocked:
        raise _deadlock(problem, sequences, position, blocked)
    return starts


def _deadlock(
    problem: Problem, sequences: Sequences, position: list[int], blocked: dict[int, list[int]]
) -> DeadlockError:
    """Walk from a stuck device to the device that should run what it waits for, until one repeats."""
    awaited = {device: op for op, devices in blocked.items() for device in devices}
    home = {op: d for d, row in enumerate(sequences) for op in row}
    device, visited = next(iter(awaited)), []
    while device not in visited:
        visited.append(device)
        device = home[awaited[device]]
    cycle: list[Op] = []
    said, late = [], ""
    for d in visited[visited.index(device) :]:
        head, waits = (op_at(problem, flat) for flat in (sequences[d][position[d]], awaited[d]))
        cycle += [head, waits]
        elsewhere = home[awaited[d]]
        said.append(f"device {d} is at {head}, which waits for {waits} on device {elsewhere}")
        blocker = op_at(problem, sequences[elsewhere][position[elsewhere]])
        if waits != blocker:
            late = f"{waits} before {blocker} on device {elsewhere}"
    distinct = [op for i, op in enumerate(cycle) if op != cycle[i - 1]]
    return DeadlockError(f"the order waits in a circle: {'; '.join(said)}. Move {late}.", distinct)


def op_at(problem: Problem, flat: int) -> Op:
    """The op at a position of the flattened [kind, stage, micro-batch] array."""
    node, micro = divmod(flat, problem.microbatches)
    kind, stage = divmod(node, len(problem.stages))
    return Op(stage, OpKind(kind), micro)
