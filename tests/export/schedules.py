"""Small schedules that the export tests share."""

from solver import SPLIT, DeviceOrder, Placement, Problem, Schedule, Stage, Workload, simulate

ORDER_1F1B = ["0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"]


def fused() -> Schedule:
    """1F1B on two devices, three micro-batches, latency 1/2, cap 2."""
    workload = Workload.uniform(2, 3, latency="1/2", memory_cap=2, name="two <devices> & 1F1B")
    return simulate(workload.problem(Placement.linear(2)), DeviceOrder.parse(ORDER_1F1B))


def split() -> Schedule:
    """Two devices, stage 0 delays its first W, the micro-batches run in the order 1, 0."""
    workload = Workload.uniform(2, 2, input_grad=1, weight_grad=1, name="split")
    rows = ["0F1 0F0 0I1 0I0 0W1 0W0", "1F1 1I1 1W1 1F0 1I0 1W0"]
    return simulate(workload.problem(Placement.linear(2), SPLIT), DeviceOrder.parse(rows))


def wave() -> Schedule:
    """The V placement: device 0 has stages 0 and 3, device 1 has 1 and 2."""
    problem = Workload.uniform(2, 1, latency="0.1").problem(Placement.wave(2))
    return simulate(problem, DeviceOrder.parse(["0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"]))


def bidirectional() -> Schedule:
    """One micro-batch down, one up."""
    problem = Workload.uniform(2, 2).problem(Placement.bidirectional(2))
    return simulate(problem, DeviceOrder.parse(["0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1"]))


def thirds() -> Schedule:
    """Times that no decimal writes."""
    problem = Problem.of(Placement.linear(1), 2, [Stage.fused("1/3", "0.7")])
    return simulate(problem, DeviceOrder.parse(["0F0 0B0 0F1 0B1"]))
