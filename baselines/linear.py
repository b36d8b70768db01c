"""One stage a device, whole backwards: naive, GPipe, 1F1B and its kin."""

from __future__ import annotations

from baselines.registry import Baseline
from baselines.steps import alternate, backward, flat, forward, require_routes
from solver.ops import FUSED
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder
from solver.units import whole


def _after_warmup(problem: Problem, name: str, warmups: list[int], size: int = 1) -> DeviceOrder:
    """Device d runs ``warmups[d]`` groups of ``size`` forwards, then groups of forwards and backwards in turn."""
    require_routes(problem, Placement.linear(problem.devices), f"{name} needs stage s on device s")
    micros = range(problem.microbatches)
    groups = [micros[first : first + size] for first in micros[::size]]
    return DeviceOrder.of(
        alternate(
            [[forward(d, m) for m in group] for group in groups],
            [flat(backward(problem, d, m) for m in group) for group in groups],
            warmup,
        )
        for d, warmup in enumerate(warmups)
    )


def naive(problem: Problem) -> DeviceOrder:
    """One micro-batch at a time: its forwards down the devices, then its backwards up, then the next one.

    Closed form: makespan M P (F+B), so a bubble of (P-1)/P; peak 1 activation a device. Equal stages, no latency,
    any M.

    Reference: model parallelism without a pipeline; Huang et al. 2019, GPipe, 1811.06965, figure 2b.

    >>> from solver import Workload
    >>> print(NAIVE.schedule(Workload.uniform(devices=2, microbatches=2)))
    0 | F0......B0--F1......B1--
    1 | ..F0B0--......F1B1--....
    """
    return _after_warmup(problem, "naive", [0] * problem.devices)


def gpipe(problem: Problem) -> DeviceOrder:
    """Every forward, then every backward.

    Backwards go in ascending order; the paper's figure reverses them, at the same makespan.

    Closed form: makespan (M+P-1)(F+B), so a bubble of (P-1)/(M+P-1); peak M activations a device. Equal stages, no
    latency, any M.

    Reference: Huang et al. 2019, GPipe, 1811.06965, sections 2.2 and 2.3.

    >>> from solver import Workload
    >>> print(GPIPE.schedule(Workload.uniform(devices=4, microbatches=4)))
    0 | F0F1F2F3..................B0--B1--B2--B3--
    1 | ..F0F1F2F3............B0--B1--B2--B3--....
    2 | ....F0F1F2F3......B0--B1--B2--B3--........
    3 | ......F0F1F2F3B0--B1--B2--B3--............
    """
    return _after_warmup(problem, "GPipe", [problem.microbatches] * problem.devices)


def one_f_one_b(problem: Problem) -> DeviceOrder:
    """Device d runs P-d-1 forwards ahead, then one forward and one backward in turn.

    Closed form: makespan (M+P-1)(F+B), as GPipe; peak min(M, P-d) activations on device d. Equal stages, no latency,
    any M.

    Reference: Narayanan et al. 2021, PipeDream-2BW, 2006.09503 (PipeDream-Flush); Fan et al. 2021,
    DAPPLE, 2007.01045, section 3.

    >>> from solver import Workload
    >>> print(ONE_F_ONE_B.schedule(Workload.uniform(devices=4, microbatches=4)))
    0 | F0F1F2F3............B0--..B1--..B2--..B3--
    1 | ..F0F1F2........B0--F3B1--..B2--..B3--....
    2 | ....F0F1....B0--F2B1--F3B2--..B3--........
    3 | ......F0B0--F1B1--F2B2--F3B3--............
    """
    return _after_warmup(problem, "1F1B", [problem.devices - d - 1 for d in range(problem.devices)])


def eager_1f1b(problem: Problem) -> DeviceOrder:
    """1F1B with twice the forwards ahead, so that transfers hide behind computation.

    Device d runs 2(P-d-1) forwards, then one forward and one backward in turn.

    Closed form: makespan (M+P-1)(F+B), as 1F1B; peak min(M, 2(P-d)-1) activations on device d. Equal stages, no
    latency, any M.

    Reference: Zhuang et al. 2022, On Optimizing the Communication of Model Parallelism, 2211.05322, and its code in
    Alpa.

    >>> from solver import Workload
    >>> print(EAGER_1F1B.schedule(Workload.uniform(devices=3, microbatches=6, latency=1)))
    0 | F0F1F2F3F4............B0--F5B1--..B2--..B3--..B4--..B5--
    1 | ....F0F1F2......B0--F3B1--F4B2--F5B3--..B4--..B5--......
    2 | ........F0B0--F1B1--F2B2--F3B3--F4B4--F5B5--............
    """
    return _after_warmup(problem, "eager 1F1B", [2 * (problem.devices - d - 1) for d in range(problem.devices)])


def kfkb(problem: Problem, *, k: int = 2) -> DeviceOrder:
    """1F1B in groups of k micro-batches: k forwards, then k backwards, in turn.

    Device d runs P-d-1 groups of forwards ahead. k = 1 is 1F1B, k >= M is GPipe; the last group may be short.

    Closed form: makespan (M+P-1)(F+B), as 1F1B; peak min(M, k(P-d)) activations on device d. Equal stages, no latency,
    any M.

    Reference: Wang et al. 2023, Ada-Grouper, 2303.01675.

    >>> from solver import Workload
    >>> print(KFKB.schedule(Workload.uniform(devices=3, microbatches=6)))
    0 | F0F1F2F3F4F5....B0--B1--....B2--B3--....B4--B5--
    1 | ..F0F1F2F3..B0--B1--F4F5B2--B3--....B4--B5--....
    2 | ....F0F1B0--B1--F2F3B2--B3--F4F5B4--B5--........
    """
    return _after_warmup(problem, "kFkB", [problem.devices - d - 1 for d in range(problem.devices)], whole(k, "k", 1))


NAIVE = Baseline("naive", naive, Placement.linear, FUSED)
GPIPE = Baseline("gpipe", gpipe, Placement.linear, FUSED)
ONE_F_ONE_B = Baseline("1f1b", one_f_one_b, Placement.linear, FUSED)
EAGER_1F1B = Baseline("eager-1f1b", eager_1f1b, Placement.linear, FUSED)
KFKB = Baseline("kfkb", kfkb, lambda devices, **_: Placement.linear(devices), FUSED, {"k": 2}, re_derived=True)
