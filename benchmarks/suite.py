"""Suites: TOML files that describe a grid of problems, schedules and solver settings; each point is a task.

A suite has ``problems`` (files, or the keys of a problem file in place) and ``schedules`` (baselines, and "optimum"),
optionally ``microbatches``, ``placements`` and ``memory_caps`` to vary, and a ``[[solver]]`` table for each way to look
for the optimum. A memory cap such as "0.75x" is that many times the activations of one micro-batch in the whole model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from solver import Placement, Problem, ProblemError, load_problem
from solver.placement import PLACEMENTS
from solver.problem import device_caps
from solver.problem_file import problem_from_mapping, problem_to_mapping, read_mapping
from solver.units import exact, to_json, whole
from solver.workload import workload_of

SUITES = Path(__file__).parent / "suites"
OPTIMUM = "optimum"


class SolverSettings(BaseModel):
    """One way to look for the optimum: ``[[solver]]``.

    ``engine`` is "minbubble", or a peer of ``benchmarks.peers``. ``without`` names strengthenings and bounds to switch
    off, ``textbook`` switches off all strengthenings; the engine "textbook" has no bound or warm start of ours either.
    ``start`` is a baseline whose schedule the search starts from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = "minbubble"
    engine: str = "minbubble"
    minimize: tuple[str, ...] = ("makespan",)
    time_limit: float = Field(default=60, ge=0)
    workers: int = Field(default=1, ge=1, le=1024)
    seed: int = Field(default=0, ge=0)
    textbook: bool = False
    without: tuple[str, ...] = ()
    start: str | None = None


class Suite(BaseModel):
    """A suite file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    question: str = ""
    problems: tuple[str | dict[str, Any], ...] = Field(min_length=1)
    schedules: tuple[str, ...] = Field(min_length=1)
    microbatches: tuple[int | None, ...] = (None,)
    placements: tuple[str | None, ...] = (None,)
    memory_caps: tuple[str | int | float | None, ...] = (None,)
    solver: tuple[SolverSettings, ...] = (SolverSettings(),)


@dataclass(frozen=True)
class Task:
    """One point of the grid: a problem (as the text of its file's keys) with what varies, and who schedules it."""

    suite: str
    problem: str
    microbatches: int | None
    placement: str | None
    memory_cap: str | None
    schedule: str
    solver: SolverSettings | None = None

    @property
    def key(self) -> str:
        """What this task is, whatever the suite's name: the same key, the same result."""
        content = asdict(replace(self, suite="", solver=None))
        content["solver"] = None if self.solver is None else self.solver.model_dump()
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        title = json.loads(self.problem).get("name") or "unnamed"
        varied = [
            f"M={self.microbatches}" if self.microbatches else "",
            self.placement or "",
            f"cap {self.memory_cap}" if self.memory_cap else "",
        ]
        who = self.schedule if self.solver is None else self.solver.name
        return ", ".join(part for part in (title, *varied, who) if part)

    def build(self) -> Problem:
        """The problem, with this task's micro-batches, placement and cap."""
        problem = problem_from_mapping(json.loads(self.problem))
        if self.microbatches:
            problem = replace(problem, microbatches=self.microbatches)
        if self.placement:
            model = replace(workload_of(problem), memory_cap=(None,) * problem.devices)
            moved = model.problem(placement_of(self.placement, problem.devices))
            problem = replace(moved, memory_cap=problem.memory_cap)
        if self.memory_cap:
            problem = replace(problem, memory_cap=device_caps(cap_of(self.memory_cap, problem), problem.devices))
        return problem


def placement_of(text: str, devices: int) -> Placement:
    """A placement by name, its chunks after a colon: "linear", "wave:2"."""
    kind, _, chunks = text.partition(":")
    if kind not in PLACEMENTS:
        raise ProblemError(f"unknown placement {kind!r}; choose from {', '.join(PLACEMENTS)}", "placements")
    return PLACEMENTS[kind](devices, whole(chunks or 2, "placements", 1))


def cap_of(text: str, problem: Problem) -> Fraction | None:
    """A cap in memory units, "none", or "0.75x" times one micro-batch's activations of the whole model."""
    if text == "none":
        return None
    if not text.endswith("x"):
        return exact(text, "memory_caps")
    activations = sum((stage.activation for stage in problem.stages), Fraction(0))
    return exact(text[:-1], "memory_caps") * activations


def load_suite(name: str) -> tuple[Suite, list[Task]]:
    """The suite in a TOML file, or one of ``benchmarks/suites/grids`` by its bare name, and its tasks in order.

    Raises ProblemError, naming file and key, for what is no suite.
    """
    path = Path(name)
    if not path.exists() and (SUITES / "grids" / f"{name}.toml").exists():
        path = SUITES / "grids" / f"{name}.toml"
    data = read_mapping(path)
    try:
        suite = Suite.model_validate(data)
        tasks = list(dict.fromkeys(_tasks(suite, path.parent)))
    except ValidationError as err:
        first = err.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ProblemError(first["msg"].lower(), f"{path}: {key}") from None
    except ProblemError as err:
        raise ProblemError(err.rule, f"{path}: {err.key}" if err.key else str(path)) from None
    return suite, tasks


def _tasks(suite: Suite, folder: Path) -> Iterator[Task]:
    """Every combination; a baseline has its own placement and no solver, so those axes do not multiply it."""
    from baselines import get
    from benchmarks.peers import check_settings

    for settings in suite.solver:
        check_settings(settings)
    problems = [_problem_text(item, folder) for item in suite.problems]
    for problem, m, placement, cap in product(problems, suite.microbatches, suite.placements, suite.memory_caps):
        limit = None if cap is None else str(cap)
        for schedule in suite.schedules:
            if schedule != OPTIMUM:
                yield Task(suite.name, problem, m, None, limit, get(schedule).name)
                continue
            for settings in suite.solver:
                yield Task(suite.name, problem, m, placement, limit, OPTIMUM, settings)


def _problem_text(item: str | Mapping[str, Any], folder: Path) -> str:
    if isinstance(item, str):
        near, known = folder / item, SUITES / f"{item}.toml"
        problem = load_problem(near if near.exists() or not known.exists() else known)
    else:
        problem = problem_from_mapping(item)
    return json.dumps(problem_to_mapping(problem), sort_keys=True)


def fingerprint(problem: Problem) -> str:
    """The same for equal problems, whatever their name or file."""
    content = {key: value for key, value in problem_to_mapping(problem).items() if key != "name"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def caps_to_json(problem: Problem) -> list[int | float | str | None]:
    """The cap of each device, None where there is none."""
    return [None if cap is None else to_json(cap) for cap in problem.memory_cap]
