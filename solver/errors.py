"""Every error minbubble raises on purpose: one root, few leaves.

A message says what is wrong, where, which rule it breaks and the way out.
"""

from __future__ import annotations

from collections.abc import Sequence


class MinbubbleError(Exception):
    """Root of all errors a user can cause."""


class ProblemError(MinbubbleError, ValueError):
    """A number, a length or a combination that no problem can have.

    ``key`` is the offending field in the words of the problem file, such as ``time.forward[2]``.
    """

    def __init__(self, rule: str, key: str = "") -> None:
        super().__init__(f"{key}: {rule}" if key else rule)
        self.rule, self.key = rule, key


class UnsupportedProblem(MinbubbleError):
    """A schedule rule that does not apply to this problem; the message names the rule it needs."""


class OrderError(MinbubbleError, ValueError):
    """An op order that lacks an op, repeats one, or lists it on another device."""


class DeadlockError(MinbubbleError):
    """An op order in which some ops wait for each other in a circle.

    ``cycle`` lists the ops of the circle: each waits for the next, the last for the first.
    """

    def __init__(self, message: str, cycle: Sequence[object]) -> None:
        super().__init__(message)
        self.cycle = tuple(cycle)


class InvalidSchedule(MinbubbleError, ValueError):
    """A schedule that breaks a rule; ``violations`` lists every breach."""

    def __init__(self, message: str, violations: Sequence[object]) -> None:
        super().__init__(message)
        self.violations = tuple(violations)
