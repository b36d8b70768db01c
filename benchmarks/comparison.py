"""Every hand-made schedule on one model, beside the optimum of its own placement and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from baselines import BASELINES, Baseline
from benchmarks.measured import Measured, measured
from benchmarks.render import progress_text
from solver import (
    DeviceOrder,
    Problem,
    ProblemError,
    Progress,
    Result,
    Schedule,
    Status,
    UnsupportedProblem,
    Workload,
    metrics,
    solve,
)
from solver.metrics import METRICS
from solver.units import plain
from solver.validate import violations


@dataclass(frozen=True)
class Row:
    """One schedule on the model: its ``schedule``, or the ``reason`` it does not apply; ``optimum`` once solved.

    ``metric`` is what is compared: "makespan", or "span" for schedules made for it. ``caps`` is the memory the optimum
    may use: the user's, or else the schedule's own largest peak on every device.
    """

    baseline: Baseline
    placement: str
    metric: str = "makespan"
    schedule: Schedule | None = None
    reason: str = ""
    caps: tuple[Fraction | None, ...] = ()
    over_cap: bool = False
    optimum: Result | None = None
    measured: Measured | None = None

    @property
    def judged(self) -> Schedule:
        """The schedule of a row that has one."""
        if self.schedule is None:
            raise UnsupportedProblem(self.reason)
        return self.schedule

    @property
    def value(self) -> int | Fraction:
        """What the metric says of the schedule."""
        metric = METRICS[self.metric]
        return metric.in_units(self.judged.problem, metric.ticks(self.judged))

    @property
    def bubble_ratio(self) -> float:
        """Idle / total of the metric compared."""
        ratio = metrics.bubble_ratio if self.metric == "makespan" else metrics.bubble_ratio_span
        return ratio(self.judged)

    @property
    def problem(self) -> Problem:
        """What the optimum is of: this placement and recipe, under ``caps``."""
        return replace(self.judged.problem, memory_cap=self.caps)

    @property
    def peak(self) -> tuple[int | Fraction, int]:
        """The most activations any device holds, in device-stages (1/P of the model's), and that device."""
        schedule = self.judged
        problem = schedule.problem
        whole = sum((stage.activation for stage in problem.stages), Fraction(0))
        held = [p - problem.in_memory(s) for p, s in zip(metrics.peak_memory(schedule), problem.static, strict=True)]
        most = max(held)
        return plain(Fraction(most) * problem.devices / whole) if whole else 0, held.index(most)

    @property
    def weight_copies(self) -> int | Fraction:
        """How often the model's weights are held: each distinct (stage, device) pair of the routes once."""
        routes = self.judged.problem.placement.routes
        return plain(Fraction(len({pair for route in routes for pair in enumerate(route)}), len(routes[0])))

    @property
    def above(self) -> Fraction | None:
        """(value - optimum) / optimum; where the optimum is not proven, against what it is at least."""
        if self.optimum is None or self.over_cap:
            return None
        bound = self.optimum.lower_bound
        return Fraction(self.value) / bound - 1 if bound and not isinstance(bound, tuple) else None


def rows(
    workload: Workload, names: Iterable[str] = BASELINES, chunks: int | None = None, metric: str = "makespan"
) -> list[Row]:
    """A row for each named schedule of the model, not yet held against an optimum."""
    timed = measured(workload.name)
    found = [_row(BASELINES[name], workload, chunks, metric) for name in names]
    return [replace(row, measured=timed.get(row.baseline.name)) for row in found]


def _row(baseline: Baseline, workload: Workload, chunks: int | None, metric: str) -> Row:
    options = {"chunks": chunks} if chunks and "chunks" in baseline.options else {}
    placement = str(baseline.placement(workload.devices, **{**baseline.options, **options}))
    try:
        schedule = baseline.schedule(workload, **options)
    except (UnsupportedProblem, ProblemError) as err:
        return Row(baseline, placement, metric, reason=str(err))
    caps = workload.memory_cap
    if all(cap is None for cap in caps):
        caps = (Fraction(max(metrics.peak_memory(schedule))),) * workload.devices
    return Row(baseline, placement, metric, schedule, caps=caps, over_cap=bool(violations(schedule)))


def with_optima(
    rows: Sequence[Row],
    time_limit: float,
    workers: int | None = None,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """The rows with the best schedule of each one's placement and memory, all within ``time_limit`` seconds.

    Equal problems are solved once, hinted with every schedule made for the same placement. A first round takes what is
    quickly proven; the time left is shared by the rest. An interruption leaves the rows that follow unsolved.
    """
    optima: dict[Problem, Result] = {}
    distinct = {row.problem: row for row in rows if row.schedule is not None}
    deadline = time.monotonic() + time_limit
    for quick in (time_limit / 10, None):
        waiting = [p for p in distinct if p not in optima or optima[p].status != Status.OPTIMAL]
        for i, problem in enumerate(waiting):
            row, left = distinct[problem], max(0.0, deadline - time.monotonic())
            if quick is None and not left:
                break
            title = f"{row.baseline.name} ({i + 1} of {len(waiting)})"
            report(title)
            limit = left / (len(waiting) - i) if quick is None else min(quick, left)
            hints = _hints(rows, problem, optima.get(problem))
            watch = partial(_watch, report, title)
            optima[problem] = solve(problem, row.metric, None, limit, workers, seed, hints, watch)
            if optima[problem].interrupted:
                return [_solved(row, optima) for row in rows]
    return [_solved(row, optima) for row in rows]


def _watch(report: Callable[[str], None], title: str, moment: Progress) -> None:
    report(f"{title}: {progress_text(moment)}")


def _solved(row: Row, optima: Mapping[Problem, Result]) -> Row:
    return row if row.schedule is None else replace(row, optimum=optima.get(row.problem))


def _hints(rows: Iterable[Row], problem: Problem, earlier: Result | None) -> list[DeviceOrder]:
    """Orders of every schedule made for the same stages on the same placement, and of an earlier solve."""
    schedules = [row.schedule for row in rows] + ([earlier.schedule] if earlier else [])
    found = [s for s in schedules if s is not None]
    return [s.order() for s in found if (s.problem.placement, s.problem.stages) == (problem.placement, problem.stages)]
