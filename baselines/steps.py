"""What the order rules share: the ops of a step, the alternation of forwards and backwards, what a rule needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from solver.errors import UnsupportedProblem
from solver.ops import Op, OpKind
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder

Step = Sequence[Op]
"""Ops that a rule moves as one: a forward, a whole backward, or a group of either."""


def forward(stage: int, microbatch: int) -> Op:
    """The forward of a micro-batch on a stage."""
    return Op(stage, OpKind.F, microbatch)


def backward(problem: Problem, stage: int, microbatch: int) -> list[Op]:
    """The whole backward under any recipe: B, or I and W one after the other."""
    return [Op(stage, kind, microbatch) for kind in problem.stages[stage].recipe.kinds if kind != OpKind.F]


def input_grad(problem: Problem, stage: int, microbatch: int) -> Op:
    """What sends the gradient on: I, or B on a stage that runs both halves as one."""
    return Op(stage, problem.stages[stage].recipe.gradient, microbatch)


def weight_grad(problem: Problem, stage: int, microbatch: int) -> list[Op]:
    """What may wait: W, or nothing on a stage that runs both halves as one."""
    return [op for op in backward(problem, stage, microbatch) if op != input_grad(problem, stage, microbatch)]


def work(problem: Problem, kind: OpKind, stage: int, microbatch: int) -> list[Op]:
    """The ops that take the part of F, I or W under any recipe."""
    if kind == OpKind.F:
        return [forward(stage, microbatch)]
    return [input_grad(problem, stage, microbatch)] if kind == OpKind.I else weight_grad(problem, stage, microbatch)


def flat(steps: Iterable[Step]) -> list[Op]:
    """The ops of all steps in their order."""
    return list(chain.from_iterable(steps))


def alternate(forwards: Sequence[Step], backwards: Sequence[Step], warmup: int) -> list[Op]:
    """``warmup`` forwards, then a forward and a backward in turn, then the backwards that are left."""
    turns = zip_longest(forwards[warmup:], backwards, fillvalue=())
    return flat(forwards[:warmup]) + flat(chain.from_iterable(turns))


def lockstep(
    forwards: Sequence[Step], gradients: Sequence[Step], weights: Sequence[Step], gradient_lag: int, weight_lag: int
) -> list[Op]:
    """In step x the x-th forward, the (x - lag)-th input gradient and the (x - lag)-th weight gradient that exist."""
    row: list[Op] = []
    for x in range(len(forwards) + weight_lag):
        for steps, lag in ((forwards, 0), (gradients, gradient_lag), (weights, weight_lag)):
            if 0 <= x - lag < len(steps):
                row += steps[x - lag]
    return row


def by_slots(problem: Problem, unit: int, together: int = 1) -> DeviceOrder:
    """Every device in order of slots; each slot holds a backward, or ``together`` forwards of a route.

    A unit is ``unit`` backwards a route. With S stages its j-th micro-batch of a route takes slot 2 floor(j/together)
    + s for the forward on stage s and 2j + 2S-1-s for the backward; the next unit starts (1 + together) S slots later.
    """
    rows: list[list[tuple[int, Step]]] = [[] for _ in range(problem.devices)]
    depth = problem.placement.stages
    for m in range(problem.microbatches):
        number, j = divmod(m // problem.routes, unit)
        first = (1 + together) * depth * number
        for stage, device in enumerate(problem.placement.route_of(m)):
            rows[device].append((first + 2 * (j // together) + stage, [forward(stage, m)]))
            rows[device].append((first + 2 * j + 2 * depth - 1 - stage, backward(problem, stage, m)))
    return DeviceOrder.of(flat(step for _, step in sorted(row, key=lambda pair: pair[0])) for row in rows)


def require(condition: bool, rule: str) -> None:
    """UnsupportedProblem with ``rule`` unless ``condition`` holds."""
    if not condition:
        raise UnsupportedProblem(rule)


def require_routes(problem: Problem, placement: Placement, rule: str) -> None:
    """UnsupportedProblem unless the problem's routes are those of ``placement``, whatever its kind is called."""
    require(problem.placement.routes == placement.routes, f"{rule}; this placement is {problem.placement}")


def require_split(problem: Problem, name: str) -> None:
    """UnsupportedProblem unless some stage has a weight gradient of its own."""
    split = any(len(stage.recipe.kinds) > 2 for stage in problem.stages)
    require(split, f"{name} needs a backward in two halves: give input_grad and weight_grad")
