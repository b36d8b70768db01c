from random import Random

import networkx as nx
import numpy as np
import pytest

from solver import OpKind, Placement, Problem, Stage
from solver.graph import arcs, full_graph, heads, rank, round_trip, tails, template_graph
from tests.instances import random_problem

F, B, I, W = OpKind


def longest(graph: nx.DiGraph, source: object, target: object) -> int:
    return max(nx.path_weight(graph, path, "lag") for path in nx.all_simple_paths(graph, source, target))


def test_the_template_of_a_mixed_problem() -> None:
    # Stage 0 fused on device 0, stage 1 split on device 1, latency 10 down and 20 up.
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2), Stage.split(3, 4, 5)], [[0, 10], [20, 0]])
    graph = template_graph(problem)
    assert {(str(a), s, str(b), t): lag for (a, s), (b, t), lag in graph.edges(data="lag")} == {
        ("F", 0, "F", 1): 11,  # 1 + 10
        ("F", 1, "I", 1): 3,
        ("I", 1, "W", 1): 4,
        ("I", 1, "B", 0): 24,  # 4 + 20
        ("F", 0, "B", 0): 1,
    }
    assert dict(graph.nodes(data="device")) == {(F, 0): 0, (B, 0): 0, (F, 1): 1, (I, 1): 1, (W, 1): 1}
    assert nx.is_directed_acyclic_graph(graph)


def test_heads_tails_and_round_trips_by_hand() -> None:
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused(1, 2), Stage.split(3, 4, 5)], [[0, 10], [20, 0]])
    head, tail = heads(problem)[0], tails(problem)[0]
    # F0 at 0, F1 at 11, I1 at 14, W1 at 18, B0 at 14 + 24 = 38
    assert [head[F, 0], head[F, 1], head[I, 1], head[W, 1], head[B, 0]] == [0, 11, 14, 18, 38]
    # backwards: B0 2, W1 5, I1 max(24 + 2, 4 + 5) = 26, F1 29, F0 40
    assert [tail[B, 0], tail[W, 1], tail[I, 1], tail[F, 1], tail[F, 0]] == [2, 5, 26, 29, 40]
    assert round_trip(problem, 0, F, B) == (40,)
    assert round_trip(problem, 1, F, I) == (7,)
    assert round_trip(problem, 1, F, W) == (12,)
    assert round_trip(problem, 1, I, W) == (9,)


@pytest.mark.parametrize("seed", range(40))
def test_longest_paths_are_those_of_all_simple_paths(seed: int) -> None:
    problem = random_problem(Random(seed), max_ops=18, zeros=True)
    for route in range(problem.routes):
        graph = template_graph(problem, route)
        sources = [n for n in graph if not graph.in_degree(n)]
        sinks = [n for n in graph if not graph.out_degree(n)]
        for node in graph:
            ways_in = [longest(graph, s, node) for s in sources if s != node and nx.has_path(graph, s, node)]
            ways_out = [
                longest(graph, node, t) + graph.nodes[t]["duration"]
                for t in sinks
                if t != node and nx.has_path(graph, node, t)
            ]
            assert heads(problem)[route, *node] == max(ways_in, default=0)
            assert tails(problem)[route, *node] == max([*ways_out, graph.nodes[node]["duration"]])
        for hold in problem.holds:
            ends = (hold.opens, hold.stage), (hold.closes, hold.stage)
            expected = longest(graph, *ends) + graph.nodes[ends[1]]["duration"]
            assert round_trip(problem, *hold[:3])[route] == expected


@pytest.mark.parametrize("seed", range(20))
def test_the_full_graph_is_one_template_a_microbatch(seed: int) -> None:
    problem = random_problem(Random(seed), max_ops=24)
    graph = full_graph(problem)
    assert graph.number_of_nodes() == problem.ops
    assert graph.number_of_edges() == problem.microbatches * len(arcs(problem))
    for m in range(problem.microbatches):
        own = graph.subgraph([op for op in graph if op.microbatch == m])
        template = template_graph(problem, m % problem.routes)
        assert {((a.kind, a.stage), (b.kind, b.stage), lag) for a, b, lag in own.edges(data="lag")} == set(
            template.edges(data="lag")
        )
        for op, data in own.nodes(data=True):
            assert data == template.nodes[op.kind, op.stage]


@pytest.mark.parametrize("seed", range(20))
def test_every_arc_goes_up_in_rank(seed: int) -> None:
    problem = random_problem(Random(seed), max_ops=24)
    ranks = rank(problem)
    assert all(ranks[before] < ranks[after] for before, after, _ in arcs(problem))
    existing = ranks[problem.exists]
    assert len(np.unique(existing)) == len(existing)
