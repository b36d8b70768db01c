"""What is known of a goal, and the ways to know more: bounds, warm starts, windows, CP-SAT."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from solver.background import Job, wait_for_all
from solver.bound import Bound
from solver.bounds import lower_bound
from solver.errors import DeadlockError, OrderError
from solver.goal import Goal
from solver.heuristics import list_order, one_at_a_time, policies
from solver.memory_bounds import ramps_by_value
from solver.metrics import METRICS
from solver.problem import IntArray, Problem
from solver.result import Claim, Progress
from solver.schedule import DeviceOrder, Schedule
from solver.simulate import latest, simulate
from solver.validate import violations

if TYPE_CHECKING:
    from solver.cpsat.switches import Switches

SMALL = 160
"""Ops up to which CP-SAT takes the whole problem at once."""

MEDIUM = 400
"""Ops up to which CP-SAT tries the whole problem for a moment first."""

LARGE = 700
"""Ops up to which the search of the whole problem gets most of the time, not the windows."""

HUGE = 4000
"""Ops from which the whole problem is more than CP-SAT can search."""

PATIENCE = 60
"""Windows without a better schedule after which the whole problem is searched instead."""


NOTHING = Bound(0, "none", None, "nothing is known yet")


@dataclass
class Search:
    """The best schedule and bound so far; whatever interrupts a phase leaves them whole."""

    problem: Problem
    switches: Switches
    time_limit: float
    workers: int
    seed: int
    on_progress: Callable[[Progress], None] | None
    started: float = field(default_factory=time.monotonic)
    goal: Goal = field(default_factory=Goal)
    best: Schedule | None = None
    value: int | None = None
    bound: Bound = field(default_factory=lambda: NOTHING)
    interrupted: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)

    def minimize(self, goal: Goal, hints: Sequence[Schedule | DeviceOrder]) -> Claim:
        """The best schedule of a goal, as far as time and Ctrl-C let; once interrupted, only what is there counts."""
        self.goal, self.value, self.bound = goal, None, NOTHING
        try:
            if self.best is not None:
                self.offer(self.best)
            if self.switches.bounds:
                self.bound = lower_bound(self.problem, goal)
            if not self.interrupted:
                self._phases(hints)
        except KeyboardInterrupt:
            self.interrupted = True
            self.stop()
        return self.claim()

    def _phases(self, hints: Sequence[Schedule | DeviceOrder]) -> None:
        """Warm starts, and stop where they meet the bound; else search windows and devices, then everything."""
        self.offer_all([*hints, one_at_a_time(self.problem)])
        if self.switches.warm_starts and not self.finished():
            self._list_schedules()
        if not self.finished():
            # Loading the search in a thread of its own: Ctrl-C in the middle of its import would be an ImportError.
            Job(lambda: import_module("solver.cpsat.lns")).wait(self.stop)
        if self.problem.ops <= MEDIUM:
            self._relax(self.time_limit, counts=(1,))
            self._search_all(workers=1, effort=20 if self.problem.ops <= SMALL else 4)
        if self.problem.ops > SMALL and self.goal.minimize == "makespan" and not self.finished():
            self._windows_and_relaxations()
        if self.problem.ops <= HUGE:
            self._search_all(self.workers)

    def claim(self) -> Claim:
        """What is known now."""
        return Claim(self.goal.minimize, self.value, self.bound.value, self.bound.name, self.bound.sentence)

    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    def left(self) -> float:
        """Seconds until the time limit."""
        return self.time_limit - self.seconds()

    def finished(self) -> bool:
        """Whether the bound meets the value, or the time is over."""
        return (self.value is not None and self.bound.value >= self.value) or self.left() <= 0

    def stop(self) -> None:
        """Let every phase end: the time is over."""
        self.time_limit = 0

    def offer_all(self, hints: Iterable[Schedule | DeviceOrder]) -> None:
        """Offer schedules, and orders at the times ``simulate`` gives them; what does not fit is passed over."""
        for hint in hints:
            try:
                if isinstance(hint, Schedule):
                    self.offer(Schedule(self.problem, hint.starts))
                self.offer(simulate(self.problem, hint if isinstance(hint, DeviceOrder) else hint.order()))
            except (DeadlockError, OrderError):
                continue

    def offer(self, schedule: Schedule) -> None:
        """Take a schedule that is better than the best, within the limits, and valid."""
        schedule = latest(schedule) if self.goal.minimize == "span" else schedule
        value = METRICS[self.goal.minimize].ticks(schedule)
        with self.lock:
            if self.value is not None and value >= self.value:
                return
            if any(METRICS[name].ticks(schedule) > limit for name, limit in self.goal.at_most.items()):
                return
            if not violations(schedule):
                self.best, self.value = schedule, value
                self._report()

    def raise_bound(self, bound: Bound) -> None:
        """Take a better bound; never above the value, which a search within it cannot exceed."""
        with self.lock:
            value = bound.value if self.value is None else min(bound.value, self.value)
            if value > self.bound.value:
                self.bound = replace(bound, value=value)
                self._report()

    def _report(self) -> None:
        if self.on_progress:
            in_units = METRICS[self.goal.minimize].in_units
            best = None if self.value is None else in_units(self.problem, self.value)
            self.on_progress(Progress(self.seconds(), best, in_units(self.problem, self.bound.value)))

    def _list_schedules(self) -> None:
        """Every policy, for at most a third of the time."""
        until = self.seconds() + self.left() / 3
        rooms = self.goal.rooms(self.problem)
        for policy in policies(self.problem, rooms):
            while not self.finished() and self.seconds() < until:
                value = self.value
                self.offer_all([list_order(self.problem, policy, rooms)])
                if self.goal.minimize != "peak_memory" or self.value is None or self.value == value:
                    break
                rooms = Goal("peak_memory", {"peak_memory": self.value - 1}).rooms(self.problem)

    def _windows_and_relaxations(self) -> None:
        """Windows in threads while relaxations raise the bound; one after the other with one worker."""
        share = 0.4 if self.problem.ops <= LARGE else 0.8 if self.problem.ops <= HUGE else 1
        until = self.seconds() + self.left() * share
        counts = (2, 4) if self.problem.ops <= MEDIUM else (1, 2, 4)
        if self.workers == 1:
            self._relax(until, counts)
            self._improve(until, 0)
            return
        jobs = [Job(partial(self._improve, until, number)) for number in range(1, self.workers)]
        try:
            self._relax(until, counts)
            jobs.append(Job(partial(self._improve, until, 0)))
        except BaseException:
            self.stop()
            raise
        finally:
            wait_for_all(jobs, self.stop)

    def _improve(self, until: float, number: int) -> None:
        """Search windows of the best schedule again until too many in a row bring nothing."""
        if not self.switches.neighbourhoods or self.best is None or not self.problem.takes_time:
            return
        from solver.cpsat.lns import Improver
        from solver.cpsat.neighbourhoods import Layout

        improver = Improver(Layout(self.problem, self.goal.rooms(self.problem)), self.seed + number)
        current, length, fruitless = self.best, self.value or 0, 0
        while fruitless < PATIENCE and self.seconds() < until and not self.finished():
            with self.lock:
                if self.value is not None and self.value < length:
                    current, length, fruitless = self.best, self.value, 0
            found = improver.step(current, length, until - self.seconds())
            fruitless += 1
            if found is not None:
                current = found
                self.offer(found)

    def _relax(self, until: float, counts: Sequence[int]) -> None:
        """The device whose memory makes it wait longest, alone, then with the next ones, for a moment each."""
        if not self.switches.relaxations or self.goal.minimize == "peak_memory":
            return
        order = [b.device for b in ramps_by_value(self.problem, self.goal) if b.device is not None]
        for count in counts:
            if count >= len(order) or self.finished() or self.seconds() > until:
                break
            devices = tuple(sorted(order[:count]))
            name = "one-device relaxation" if count == 1 else f"{count}-device relaxation"
            names = f"device{'s' * (count > 1)} {', '.join(map(str, devices))}"
            text = f"CP-SAT excluded less for {names} alone, with the delays of the others"
            self._run(devices, Bound(0, name, devices[0], text), until - self.seconds(), 1, effort=4)

    def _search_all(self, workers: int, effort: float | None = None) -> None:
        if not self.finished():
            proof = Bound(0, "search", None, "CP-SAT excluded every order below that")
            self._run(tuple(range(self.problem.devices)), proof, self.left(), workers, effort)

    def _run(
        self, devices: tuple[int, ...], proof: Bound, seconds: float, workers: int, effort: float | None = None
    ) -> None:
        """CP-SAT on the ops of ``devices``: its bound is named by ``proof``, its schedules count if they are whole."""
        from solver.cpsat.engine import Limits, run
        from solver.cpsat.model import build, hint

        whole = len(devices) == self.problem.devices
        model = build(self.problem, self.goal, self.switches, self._horizon(), self.bound.value, devices)
        if whole and self.best is not None and self.switches.warm_starts:
            hint(model, self.best.starts)

        def watch(starts: IntArray | None, bound: int) -> bool:
            if whole and starts is not None:
                self.offer(Schedule(self.problem, starts))
            self.raise_bound(replace(proof, value=bound))
            return self.finished()

        outcome = run(model, Limits(seconds, workers, self.seed, effort), watch)
        if outcome.infeasible and self.value is None:
            where = "" if whole else f" of device {devices[0]}"
            proof = replace(proof, sentence=f"CP-SAT excluded every order{where}")
        watch(outcome.starts, self.goal.worst(self.problem) + 1 if outcome.infeasible else outcome.bound)

    def _horizon(self) -> int:
        horizon = self.goal.horizon(self.problem)
        return min(horizon, self.value) if self.goal.minimize == "makespan" and self.value is not None else horizon
