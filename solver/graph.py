"""The one place that computes dependencies: the DAG of one micro-batch, and longest paths on it."""

from __future__ import annotations

from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import numpy as np

from solver.ops import Op, OpKind
from solver.problem import IntArray, Problem

if TYPE_CHECKING:
    DiGraph = nx.DiGraph[tuple[OpKind, int]]


class Arc(NamedTuple):
    """(stage, kind) ``before`` must end, and its result arrive, before ``after`` starts.

    ``lag[r]`` is the least time from start to start on route r: the duration of ``before`` plus the latency.
    """

    before: tuple[OpKind, int]
    after: tuple[OpKind, int]
    lag: tuple[int, ...]


@lru_cache(maxsize=64)
def arcs(problem: Problem) -> tuple[Arc, ...]:
    """The dependencies of one micro-batch: each stage's recipe, activations down, gradients up."""
    pairs = []
    for s, stage in enumerate(problem.stages):
        pairs += [((a, s), (b, s)) for a, b in stage.recipe.arcs]
    for s in range(len(problem.stages) - 1):
        pairs.append(((OpKind.F, s), (OpKind.F, s + 1)))
        pairs.append(((problem.stages[s + 1].recipe.gradient, s + 1), (problem.stages[s].recipe.gradient, s)))
    return tuple(Arc(before, after, _lag(problem, before, after)) for before, after in pairs)


def _lag(problem: Problem, before: tuple[OpKind, int], after: tuple[OpKind, int]) -> tuple[int, ...]:
    source, target = problem.device[:, before[1]], problem.device[:, after[1]]
    return tuple((problem.duration[before] + problem.latency_ticks[source, target]).tolist())


def template_graph(problem: Problem, route: int = 0) -> DiGraph:
    """The DAG of one micro-batch on ``route``: nodes (kind, stage) with duration and device, arcs with ``lag``.

    >>> from solver import Placement, Workload
    >>> problem = Workload.uniform(devices=2, microbatches=4).problem(Placement.linear(2))
    >>> template_graph(problem).number_of_nodes()
    4
    """
    graph: DiGraph = nx.DiGraph()
    for kind, stage in np.argwhere(problem.exists).tolist():
        device, duration = int(problem.device[route, stage]), int(problem.duration[kind, stage])
        graph.add_node((OpKind(kind), stage), duration=duration, device=device)
    graph.add_edges_from((arc.before, arc.after, {"lag": arc.lag[route]}) for arc in arcs(problem))
    return graph


def full_graph(problem: Problem) -> nx.DiGraph[Op]:
    """The DAG of all micro-batches: nodes are ops with duration and device, arcs have ``lag`` (start to start)."""
    graph: nx.DiGraph[Op] = nx.DiGraph()
    for op in problem.all_ops():
        device = int(problem.op_device[op.kind, op.stage, op.microbatch])
        graph.add_node(op, duration=int(problem.duration[op.kind, op.stage]), device=device)
    for (k, s), (k2, s2), lag in arcs(problem):
        for m in range(problem.microbatches):
            graph.add_edge(Op(s, k, m), Op(s2, k2, m), lag=lag[m % problem.routes])
    return graph


@lru_cache(maxsize=64)
def _topological(problem: Problem) -> tuple[tuple[OpKind, int], ...]:
    return tuple(nx.topological_sort(template_graph(problem)))


@lru_cache(maxsize=64)
def _ordered_arcs(problem: Problem) -> tuple[Arc, ...]:
    rank = {node: i for i, node in enumerate(_topological(problem))}
    return tuple(sorted(arcs(problem), key=lambda arc: rank[arc.before]))


def rank(problem: Problem) -> IntArray:
    """A topological rank of each [kind, stage]; 0 where there is no such op."""
    ranks = np.zeros(problem.shape[:2], dtype=np.int64)
    for i, node in enumerate(_topological(problem)):
        ranks[node] = i
    return ranks


@lru_cache(maxsize=64)
def heads(problem: Problem) -> IntArray:
    """Ticks before each [route, kind, stage] can start, by the longest path to it."""
    head = np.zeros((problem.routes, *problem.shape[:2]), dtype=np.int64)
    for before, after, lag in _ordered_arcs(problem):
        head[:, *after] = np.maximum(head[:, *after], head[:, *before] + lag)
    return head


@lru_cache(maxsize=64)
def tails(problem: Problem) -> IntArray:
    """Ticks from the start of each [route, kind, stage] to the end of its micro-batch, by the longest path."""
    tail = np.repeat(problem.duration[None], problem.routes, axis=0)
    for before, after, lag in reversed(_ordered_arcs(problem)):
        tail[:, *before] = np.maximum(tail[:, *before], tail[:, *after] + np.array(lag))
    return tail


@lru_cache(maxsize=4096)
def longest_paths(problem: Problem, source: tuple[OpKind, int]) -> dict[tuple[OpKind, int], tuple[int, ...]]:
    """Least ticks from the start of ``source`` to the start of each (kind, stage) after it, one a route."""
    longest = {source: (0,) * problem.routes}
    for before, after, lag in _ordered_arcs(problem):
        if before in longest:
            reached = tuple(map(add, longest[before], lag))
            longest[after] = tuple(map(max, longest.get(after, reached), reached))
    return longest


@lru_cache(maxsize=256)
def projection(problem: Problem, devices: tuple[int, ...]) -> tuple[tuple[Arc, ...], ...]:
    """The dependencies among the ops of ``devices``, one tuple of arcs a route: the delays of the others are kept.

    Arcs that follow from two others are left out, so that for all devices these are ``arcs`` without the redundant.
    """
    return tuple(_project(problem, route, set(devices)) for route in range(problem.routes))


def _project(problem: Problem, route: int, devices: set[int]) -> tuple[Arc, ...]:
    kept = [node for node in _topological(problem) if int(problem.device[route, node[1]]) in devices]
    way = {a: {b: t[route] for b, t in longest_paths(problem, a).items() if b != a} for a in kept}
    found = []
    for i, before in enumerate(kept):
        for j in range(i + 1, len(kept)):
            after = kept[j]
            lag = way[before].get(after)
            between = (c for c in kept[i + 1 : j] if c in way[before] and after in way[c])
            if lag is not None and all(way[before][c] + way[c][after] < lag for c in between):
                found.append(Arc(before, after, (lag,)))
    return tuple(found)


def round_trip(problem: Problem, stage: int, opens: OpKind, closes: OpKind) -> tuple[int, ...]:
    """Least ticks from the start of ``opens`` to the end of ``closes`` on ``stage``, one a route."""
    last = int(problem.duration[closes, stage])
    return tuple(way + last for way in longest_paths(problem, (opens, stage))[closes, stage])
