"""Random problems of every kind, each from a seeded ``random.Random``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from solver import DeviceOrder, Op, Placement, Problem, Stage, memory
from solver.graph import full_graph


def random_problem(rng: Random, max_ops: int = 12, longest: int = 4, zeros: bool = False) -> Problem:
    """Any placement and recipe, with at most ``max_ops`` ops of up to ``longest`` ticks; ``zeros`` allows none."""
    while True:
        placement = random_placement(rng)
        stages = random_stages(rng, placement.stages, longest, zeros)
        per_microbatch = sum(len(s.recipe.kinds) for s in stages)
        if per_microbatch <= max_ops:
            break
    microbatches = rng.randint(1, max_ops // per_microbatch)
    latency = random_latency(rng, placement.devices)
    free = Problem.of(placement, microbatches, stages, latency)
    return replace(free, memory_cap=random_cap(rng, free))


def random_placement(rng: Random) -> Placement:
    devices = rng.choice([1, 2, 2, 2, 3, 3, 4])
    kind = rng.choice(["linear", "looped", "wave", "bidirectional", "custom", "custom"])
    if kind == "custom":
        stages = rng.randint(1, 3)
        routes = [[rng.randrange(devices) for _ in range(stages)] for _ in range(rng.choice([1, 1, 2, 3]))]
        return Placement.custom(routes, devices)
    if kind in ("looped", "wave"):
        return getattr(Placement, kind)(devices, rng.choice([1, 2, 2, 3]))
    return getattr(Placement, kind)(devices)


def random_stages(rng: Random, count: int, longest: int, zeros: bool) -> list[Stage]:
    """All fused, all split, or a mix; equal stages half of the time."""
    mix = rng.choice(["fused", "split", "mixed"])
    recipes = [rng.choice(["fused", "split"]) if mix == "mixed" else mix for _ in range(count)]
    stages = {recipe: random_stage(rng, recipe, longest, zeros) for recipe in ("fused", "split")}
    equal = rng.random() < 0.5
    return [stages[r] if equal else random_stage(rng, r, longest, zeros) for r in recipes]


def random_stage(rng: Random, recipe: str, longest: int, zeros: bool) -> Stage:
    def time() -> int:
        return rng.choice([0, rng.randint(1, longest)]) if zeros else rng.randint(1, longest)

    static = rng.choice([0, 0, 1, 2])
    if recipe == "fused":
        return Stage.fused(time(), time(), rng.choice([0, 1, 1, 2, 3]), static)
    sizes = [rng.choice([0, 1, 2]), rng.choice([0, 1, 1, 2]), rng.choice([0, 0, 1])]
    return Stage.split(time(), time(), time(), *sizes, static)


def random_latency(rng: Random, devices: int) -> int | list[list[int]]:
    kind = rng.choice(["none", "none", "scalar", "matrix"])
    if kind == "matrix":
        return [[0 if a == b else rng.randint(0, 3) for b in range(devices)] for a in range(devices)]
    return rng.randint(1, 3) if kind == "scalar" else 0


def random_cap(rng: Random, free: Problem) -> tuple[Fraction | None, ...]:
    """None, one for all, or one a device: from just enough for one micro-batch to a few activations more."""
    need = [Fraction(free.in_memory(p)) for p in memory.one_microbatch_peaks(free)]
    kind = rng.choice(["none", "scalar", "device", "device"])
    if kind == "none":
        return (None,) * free.devices
    if kind == "scalar":
        return (max(need) + rng.randint(0, 3),) * free.devices
    return tuple(rng.choice([None, n, n + 1, n + rng.randint(0, 4)]) for n in need)


def random_order(rng: Random, problem: Problem) -> DeviceOrder:
    """Any order that does not deadlock: the ops in a random order of dependency, device by device."""
    graph = full_graph(problem)
    waiting = dict(graph.in_degree())
    ready = [op for op, count in waiting.items() if not count]
    rows: list[list[Op]] = [[] for _ in range(problem.devices)]
    while ready:
        op = ready.pop(rng.randrange(len(ready)))
        rows[graph.nodes[op]["device"]].append(op)
        for after in graph.successors(op):
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    return DeviceOrder.of(rows)
