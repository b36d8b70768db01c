"""The strengthenings, each of which can be switched off."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Switches:
    """What the search adds to the textbook model; none changes the optimum.

    ``microbatch_order``: within (route, stage, kind), equal micro-batches run in order of number. Valid always: sort
    the starts, and every dependency and the memory profile survive.
    ``domains``: windows from heads and tails instead of [0, horizon].
    ``round_trips``: every hold is at least as long as the longest path inside it.
    ``memory_precedences``: with micro-batches in order, memory for at most k of them makes F(m + k) wait for the end
    of what frees m. Valid with ``microbatch_order`` only.
    ``memory_order``: on devices with one stage, memory is counted by order (see ``cpsat.order``) instead of by a
    cumulative constraint over time. Valid with ``microbatch_order`` only, and while ops take time.
    ``bounds``: the bounds of ``solver.bounds``: a floor of the objective, and the end once a schedule meets it.
    ``relaxations``: some devices alone, with the delays of the others, give a bound.
    ``warm_starts``: list scheduling gives the search its first schedule.
    ``neighbourhoods``: windows of the best schedule are searched again with the rest kept in order.
    """

    microbatch_order: bool = True
    domains: bool = True
    round_trips: bool = True
    memory_precedences: bool = True
    memory_order: bool = True
    bounds: bool = True
    relaxations: bool = True
    warm_starts: bool = True
    neighbourhoods: bool = True

    def without(self, name: str) -> Switches:
        """All but one."""
        return replace(self, **{name: False})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Every switch."""
        return tuple(f.name for f in fields(cls))

    @classmethod
    def textbook(cls) -> Switches:
        """None at all: the plain model."""
        return cls(**dict.fromkeys(cls.names(), False))
