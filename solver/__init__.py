"""minbubble: provably shortest pipeline-parallel training schedules.

Glossary: a *problem* is the dependency DAG of one micro-batch, repeated M times, plus what each device can do at once
and hold. A *schedule* is a start time for every op. P devices, S stages, M micro-batches, V chunks (stages per device).
F forward, B full backward, I its input-gradient half (Zero Bubble papers write "B" for it), W its weight-gradient half.
"""

from solver import metrics
from solver.errors import (
    DeadlockError,
    InvalidSchedule,
    MinbubbleError,
    OrderError,
    ProblemError,
    UnsupportedProblem,
)
from solver.export import load_schedule, save
from solver.ops import FUSED, SPLIT, Op, OpKind
from solver.pareto import pareto_front
from solver.placement import Placement
from solver.problem import Problem
from solver.problem_file import load_problem
from solver.result import Progress, Result, Status
from solver.schedule import DeviceOrder, Schedule
from solver.simulate import simulate
from solver.solve import solve
from solver.stage import Stage
from solver.validate import validate, violations
from solver.workload import Workload

__all__ = [
    "FUSED",
    "SPLIT",
    "DeadlockError",
    "DeviceOrder",
    "InvalidSchedule",
    "MinbubbleError",
    "Op",
    "OpKind",
    "OrderError",
    "Placement",
    "Problem",
    "ProblemError",
    "Progress",
    "Result",
    "Schedule",
    "Stage",
    "Status",
    "UnsupportedProblem",
    "Workload",
    "load_problem",
    "load_schedule",
    "metrics",
    "pareto_front",
    "save",
    "simulate",
    "solve",
    "validate",
    "violations",
]
