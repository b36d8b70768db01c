"""One stage a device and the backward in two halves: ZB-H1 and ZB-H2."""

from __future__ import annotations

from baselines.registry import Baseline
from baselines.steps import forward, input_grad, lockstep, require_routes, require_split, weight_grad
from solver.ops import SPLIT
from solver.placement import Placement
from solver.problem import Problem
from solver.schedule import DeviceOrder


def require_split_line(problem: Problem, name: str) -> None:
    """UnsupportedProblem unless stage s is on device s and backwards come in halves."""
    require_routes(problem, Placement.linear(problem.devices), f"{name} needs stage s on device s")
    require_split(problem, name)


def zb_h1(problem: Problem) -> DeviceOrder:
    """1F1B's memory with weight gradients put off to where 1F1B idles.

    In step x = 0, 1, ... device d runs F(x), then I(x - (P-1-d)), then W(x - (P-1)), whichever exist.

    Closed form: span idle (P-1)(F+I-W), so makespan = span = M(F+I+W) + (P-1)(F+I-W) where also W <= I; peak P
    activations on every device. Equal stages, no latency, W <= F, M >= P, all memory held until W.

    Reference: Qi et al. 2023, Zero Bubble Pipeline Parallelism, 2401.10241, section 2.

    >>> from solver import Workload
    >>> print(ZB_H1.schedule(Workload.uniform(devices=4, microbatches=5, input_grad=1, weight_grad=1)))
    0 | F0F1F2F3......I0W0F4I1W1I2W2I3W3I4W4
    1 | ..F0F1F2....I0F3I1W0F4I2W1I3W2I4W3W4
    2 | ....F0F1..I0F2I1F3I2W0F4I3W1I4W2W3W4
    3 | ......F0I0F1I1F2I2F3I3W0F4I4W1W2W3W4
    """
    return _lockstep(problem, "ZB-H1", 1)


def zb_h2(problem: Problem) -> DeviceOrder:
    """Twice the warm-up of ZB-H1, so that no device waits between its first op and its last.

    In step x = 0, 1, ... device d runs F(x), then I(x - 2(P-1-d)), then W(x - 2(P-1)), whichever exist.

    Closed form: span idle (P-1)(F+I-2W), none for F = I = W; the makespan is no less than (P-1)F + M(F+I+W); peak
    2P-1 activations on every device. Equal stages, no latency, W <= F, 2W <= F+I, M >= 2P-1, all memory held until W.

    Reference: Qi et al. 2023, Zero Bubble Pipeline Parallelism, 2401.10241, section 2.

    >>> from solver import Workload
    >>> print(ZB_H2.schedule(Workload.uniform(devices=3, microbatches=6, input_grad=1, weight_grad=1)))
    0 | F0F1F2F3F4I0W0F5I1W1I2W2I3W3I4W4I5W5....
    1 | ..F0F1F2I0F3I1F4I2W0F5I3W1I4W2I5W3W4W5..
    2 | ....F0I0F1I1F2I2F3I3F4I4W0F5I5W1W2W3W4W5
    """
    return _lockstep(problem, "ZB-H2", 2)


def _lockstep(problem: Problem, name: str, pace: int) -> DeviceOrder:
    """Device d's I follow its F by ``pace`` steps for each device below it, its W by as many for the whole line."""
    require_split_line(problem, name)
    last, micros = problem.devices - 1, range(problem.microbatches)
    return DeviceOrder.of(
        lockstep(
            [[forward(d, m)] for m in micros],
            [[input_grad(problem, d, m)] for m in micros],
            [weight_grad(problem, d, m) for m in micros],
            pace * (last - d),
            pace * last,
        )
        for d in range(problem.devices)
    )


ZB_H1 = Baseline("zb-h1", zb_h1, Placement.linear, SPLIT)
ZB_H2 = Baseline("zb-h2", zb_h2, Placement.linear, SPLIT)
