"""PyTorch pipelining plans: the ``compute_only`` CSV that ``_PipelineScheduleRuntime`` loads (torch 2.9 and newer).

One row a rank in rank order, no header; a cell is an action such as ``2F0``. Idle time is not in the file: ranks run
their actions as early as they can. Where W directly follows its I the file says B, which is one call in the runtime
(it sends the gradient on only when both halves are done, so such a plan may run a little later than its schedule).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path

from solver.errors import OrderError, ProblemError, UnsupportedProblem
from solver.export.files import read_text, write_text
from solver.ops import Op, OpKind
from solver.problem import Problem
from solver.schedule import DeviceOrder, Schedule
from solver.simulate import simulate


def write(schedules: Mapping[str, Schedule], path: Path) -> None:
    """Write the plan; UnsupportedProblem where a stage runs on two ranks or a rank has no stage: no plan says that."""
    (schedule,) = schedules.values()
    write_text(path, torch_csv(schedule))


def torch_csv(schedule: Schedule) -> str:
    """The plan as text, micro-batches renumbered so that the last stage runs its forwards in ascending order.

    >>> from solver import DeviceOrder, Placement, SPLIT, Workload, simulate
    >>> problem = Workload.uniform(2, 1, input_grad=1, weight_grad=1).problem(Placement.linear(2), SPLIT)
    >>> print(torch_csv(simulate(problem, DeviceOrder.parse(["0F0 0I0 0W0", "1F0 1I0 1W0"]))), end="")
    0F0,0B0
    1F0,1B0
    """
    rows = actions(schedule)
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([map(str, row) for row in rows])
    return text.getvalue()


def actions(schedule: Schedule) -> list[list[Op]]:
    """The ops of each rank in order, renumbered, with I and W joined to B where they are neighbours."""
    _check_ranks(schedule.problem)
    order = in_last_stage_order(schedule.problem, schedule.order())
    return [_join_halves(row) for row in order.ops]


def _check_ranks(problem: Problem) -> None:
    for stage, homes in enumerate(zip(*problem.placement.routes, strict=True)):
        if len(set(homes)) > 1:
            devices = ", ".join(map(str, sorted(set(homes))))
            raise UnsupportedProblem(
                f"stage {stage} runs on devices {devices}, but a PyTorch plan puts each stage on one rank: "
                f"{problem.placement} schedules cannot be written as CSV; use .json instead"
            )
    idle = set(range(problem.devices)) - set(problem.placement.routes[0])
    if idle:
        raise UnsupportedProblem(f"device {min(idle)} has no stage, but every rank of a PyTorch plan needs one")


def in_last_stage_order(problem: Problem, order: DeviceOrder) -> DeviceOrder:
    """The same order with micro-batches, which are equal, numbered as the last stage runs their forwards.

    PyTorch computes wrong gradients, and says nothing, when the last stage's forwards are out of order.
    """
    last = len(problem.stages) - 1
    forwards = [op.microbatch for row in order.ops for op in row if (op.stage, op.kind) == (last, OpKind.F)]
    number = {old: new for new, old in enumerate(forwards)}
    return DeviceOrder.of((Op(op.stage, op.kind, number[op.microbatch]) for op in row) for row in order.ops)


def _join_halves(row: Iterable[Op]) -> list[Op]:
    joined: list[Op] = []
    for op in row:
        if op.kind == OpKind.W and joined and joined[-1] == Op(op.stage, OpKind.I, op.microbatch):
            joined[-1] = Op(op.stage, OpKind.B, op.microbatch)
        else:
            joined.append(op)
    return joined


def read_torch_csv(path: str | Path, problem: Problem) -> Schedule:
    """The plan in a ``compute_only`` CSV as a schedule of ``problem``, every op as early as it can start.

    Strict where PyTorch's loader is not: every op exactly once and on its own rank, no rank without a row, the last
    stage's forwards in ascending order, and no circular waiting. Raises ProblemError, OrderError or DeadlockError.
    """
    try:
        return simulate(problem, parse_torch_csv(read_text(Path(path)), problem))
    except (ProblemError, OrderError) as err:
        raise type(err)(f"{path}: {err}") from None


def parse_torch_csv(text: str, problem: Problem) -> DeviceOrder:
    """The order that a plan's text holds, B read as I and W on stages with a split backward."""
    _check_ranks(problem)
    rows = text.removesuffix("\n").split("\n")
    if len(rows) != problem.devices:
        raise ProblemError(f"has {len(rows)} rows, one a rank, where the problem has {problem.devices} devices")
    order = DeviceOrder.of(_parse_row(row, rank, problem) for rank, row in enumerate(rows))
    order.check(problem)
    if in_last_stage_order(problem, order) != order:
        raise OrderError(
            f"the last stage ({len(problem.stages) - 1}) must run its forwards in ascending micro-batch order, "
            "or PyTorch computes wrong gradients; renumber the micro-batches"
        )
    return order


def _parse_row(row: str, rank: int, problem: Problem) -> Iterator[Op]:
    for column, cell in enumerate(row.strip("\r").split(",")):
        if cell.strip():  # a blank is idle time, and carries none
            yield from _parse_cell(cell.strip(), f"row {rank}, cell {column}", problem)


def _parse_cell(cell: str, key: str, problem: Problem) -> Iterator[Op]:
    try:
        op = Op.parse(cell)
    except ProblemError as err:
        raise ProblemError(err.rule, key) from None
    kinds = problem.stages[op.stage].recipe.kinds if op.stage < len(problem.stages) else ()
    if op.kind == OpKind.B and OpKind.B not in kinds:
        yield from (Op(op.stage, kind, op.microbatch) for kind in kinds if kind != OpKind.F)
    else:
        yield op
