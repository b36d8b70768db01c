"""Runs a sweep's tasks side by side and records each as it ends; what is on record is not run again."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.executors import Submitter
from benchmarks.peers import ENGINES, Outcome
from benchmarks.records import Record, RecordFile
from benchmarks.suite import SolverSettings, Task, caps_to_json, fingerprint
from solver import MinbubbleError, Problem, Schedule, metrics, violations
from solver.solve import available_cores
from solver.units import to_json
from solver.workload import workload_of

PACKAGES = ("minbubble", "ortools", "highspy", "numpy", "networkx")
RETRIES = 2


def run_task(task: Task) -> dict[str, Any]:
    """The record of one task: always one, with a reason where the schedule or the problem does not apply."""
    try:
        found = _optimum(task, task.solver) if task.solver else _hand_made(task)
    except MinbubbleError as err:
        found = {"status": "NOT_APPLICABLE", "reason": str(err).splitlines()[0]}
    settings = task.solver.model_dump(mode="json") if task.solver else None
    return {
        "key": task.key,
        "suite": task.suite,
        "schedule": task.schedule,
        "solver": task.solver.name if task.solver else None,
        "settings": settings,
        "cap": task.memory_cap,
        **found,
        "environment": environment(),
    }


def _hand_made(task: Task) -> dict[str, Any]:
    from baselines import get

    problem = task.build()
    schedule = get(task.schedule).schedule(workload_of(problem))
    return {**_about(schedule.problem), **_measures(schedule), "status": "HAND_MADE", "wall_time": None}


def _optimum(task: Task, settings: SolverSettings) -> dict[str, Any]:
    problem = task.build()
    outcome: Outcome = ENGINES[settings.engine](problem, settings, _hints(problem, settings))
    measures = {} if outcome.schedule is None else _measures(outcome.schedule)
    bound = outcome.lower_bound
    return {
        **_about(problem),
        **measures,
        "status": outcome.status.value,
        "lower_bound": [to_json(b) for b in bound] if isinstance(bound, tuple) else to_json(bound),
        "gap": outcome.gap,
        "proof": outcome.proof,
        "wall_time": round(outcome.wall_time, 3),
    }


def _hints(problem: Problem, settings: SolverSettings) -> tuple[Schedule, ...]:
    from baselines import get
    from solver import simulate

    return (simulate(problem, get(settings.start).order(problem)),) if settings.start else ()


def _about(problem: Problem) -> dict[str, Any]:
    return {
        "problem": problem.name,
        "fingerprint": fingerprint(problem),
        "placement": str(problem.placement),
        "recipe": "+".join(sorted(map(str, problem.recipes))),
        "devices": problem.devices,
        "microbatches": problem.microbatches,
        "ops": problem.ops,
        "memory_cap": caps_to_json(problem),
    }


def _measures(schedule: Schedule) -> dict[str, Any]:
    """The schedule's numbers, judged: any breach but of the cap is a bug, and is said."""
    broken = sorted({violation.rule for violation in violations(schedule)})
    return {
        "makespan": to_json(metrics.makespan(schedule)),
        "span": to_json(metrics.span(schedule)),
        "bubble_ratio": metrics.bubble_ratio(schedule),
        "bubble_ratio_span": metrics.bubble_ratio_span(schedule),
        "peak_memory": [to_json(peak) for peak in metrics.peak_memory(schedule)],
        "peak_activations": _peak_activations(schedule),
        "violations": broken,
    }


def _peak_activations(schedule: Schedule) -> float:
    """The most any device holds beyond static memory, in device-stages: 1/P of one micro-batch's activations."""
    problem = schedule.problem
    whole = sum(stage.activation for stage in problem.stages)
    static = [problem.in_memory(s) for s in problem.static]
    most = max(peak - s for peak, s in zip(metrics.peak_memory(schedule), static, strict=True))
    return float(most * problem.devices / whole) if whole else 0.0


@cache
def environment() -> dict[str, Any]:
    """Versions and machine: what a reader needs to judge a wall time."""
    return {
        "python": platform.python_version(),
        **{name: installed for name in PACKAGES if (installed := _version(name))},
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": available_cores(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


@dataclass
class Sweep:
    """A running sweep: what runs, what ended how.

    ``on_record`` is called after each record is on disk, ``on_change`` with the running tasks whenever they change.
    """

    file: RecordFile
    submitter: Submitter
    on_record: Callable[[Task, Record], None]
    on_change: Callable[[Collection[Task]], None] = lambda running: None
    running: dict[Future[dict[str, Any]], Task] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    failed: list[tuple[Task, str]] = field(default_factory=list)

    def run(self, tasks: Iterable[Task]) -> None:
        """Run what is not on record. A task whose process died is tried again, twice; other failures are kept."""
        waiting = [task for task in tasks if task.key not in self.file.done]
        try:
            while waiting or self.running:
                while waiting and len(self.running) < self.submitter.ahead:
                    self._submit(waiting.pop(0))
                self.on_change(self.running.values())
                ended, _ = wait(self.running, return_when=FIRST_COMPLETED)
                for future in ended:
                    waiting += self._take(future, self.running.pop(future))
        finally:
            self.submitter.stop()

    def _submit(self, task: Task) -> None:
        self.attempts[task.key] = self.attempts.get(task.key, 0) + 1
        self.running[self.submitter.submit(run_task, task)] = task

    def _take(self, future: Future[dict[str, Any]], task: Task) -> list[Task]:
        """Record what the future brought; the task again if its process died and it may be tried once more."""
        try:
            record = future.result()
        except (BrokenProcessPool, CancelledError) as err:
            if self.attempts[task.key] <= RETRIES:
                return [task]
            self.failed.append((task, f"its process died {RETRIES + 1} times: {err}"))
        except Exception as err:  # a bug in one task must not end the others
            self.failed.append((task, f"{type(err).__name__}: {err}"))
        else:
            self.file.append(record)
            self.on_record(task, record)
        return []


def default_jobs(tasks: Iterable[Task]) -> int:
    """As many tasks side by side as the cores hold, if each uses the threads its settings ask for."""
    threads = max((task.solver.workers for task in tasks if task.solver), default=1)
    return max(1, available_cores() // threads)
