"""Memory counted by order: at the start of an op, what is held is what opened before it less what closed before it.

For one stage and route a device this replaces the cumulative constraint: it is exact while ops take time, and the
search learns from "W(2) before F(5)" instead of from times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from solver.cpsat.strengthen import delayed_forwards
from solver.cpsat.variables import Key, Variables
from solver.graph import longest_paths
from solver.ops import OpKind

Literal = cp_model.IntVar | int
"""A Boolean variable, or 0 or 1 where the dependencies decide."""


@dataclass
class OrderLiterals:
    """Whether op ``x`` ends before op ``o`` of the same device starts, each pair once."""

    v: Variables
    known: dict[tuple[Key, Key], Literal] = field(default_factory=dict)
    delays: dict[tuple[int, int], dict[OpKind, int]] = field(default_factory=dict)

    def before(self, x: Key, o: Key) -> Literal:
        """The literal of a pair."""
        if (x, o) not in self.known:
            self.known[x, o] = self._decided(x, o)
        return self.known[x, o]

    def _decided(self, x: Key, o: Key) -> Literal:
        """Equal micro-batches run in order, so that a path in one decides for later ones too."""
        (*_, m), (*_, n), problem = x, o, self.v.problem
        if (m - n) % problem.routes == 0:
            if m < n and x[:2] == o[:2]:
                return 1
            if m <= n and o[:2] in longest_paths(problem, x[:2]):
                return int(x != o)
            if m >= n and x[:2] in longest_paths(problem, o[:2]):
                return 0
            waits = self._delays(o[1], n % problem.routes).get(x[0]) if o[0] == OpKind.F else None
            if waits is not None and x[1] == o[1] and n - m >= waits * problem.routes:
                return 1
        return self._literal(x, o)

    def _delays(self, stage: int, route: int) -> dict[OpKind, int]:
        if (stage, route) not in self.delays:
            self.delays[stage, route] = delayed_forwards(self.v, stage, route)
        return self.delays[stage, route]

    def _literal(self, x: Key, o: Key) -> cp_model.IntVar:
        model, starts = self.v.model, self.v.starts
        first = model.new_bool_var("")
        model.add(starts[o] >= self.v.end(*x)).only_enforce_if(first)
        model.add(starts[x] >= self.v.end(*o)).only_enforce_if(~first)
        return first

    def chain(self) -> None:
        """What holds for a micro-batch holds for the next: before(x + 1, o) => before(x, o) => before(x, o + 1)."""
        for (x, o), literal in self.known.items():
            for pair, weaker in (((self._next(x), o), False), ((x, self._next(o)), True)):
                other = self.known.get(pair)
                if other is not None and not (isinstance(literal, int) and isinstance(other, int)):
                    low, high = (literal, other) if weaker else (other, literal)
                    self.v.model.add(low <= high)

    def _next(self, key: Key) -> Key:
        return (*key[:2], key[2] + self.v.problem.routes)


def memory_is_counted_by_order(v: Variables, device: int, room: int) -> None:
    """Right after each op that opens holds started, the open holds of ``device`` fit ``room``."""
    order, held = OrderLiterals(v), v.held_on(device)
    opened: dict[Key, int] = {}
    for hold, m in held:
        key = (hold.opens, hold.stage, m)
        opened[key] = opened.get(key, 0) + hold.size
    for op, size in opened.items():
        literals, sizes = [], []
        for hold, m in held:
            if (hold.opens, hold.stage, m) != op:
                literals.append(order.before((hold.opens, hold.stage, m), op))
                literals.append(order.before((hold.closes, hold.stage, m), op))
                sizes += [hold.size, -hold.size]
        v.model.add(cp_model.LinearExpr.weighted_sum(literals, sizes) <= room - size)
    order.chain()
