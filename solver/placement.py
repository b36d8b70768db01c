"""Which device runs each stage: one route, or several that micro-batches take in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from solver.errors import ProblemError
from solver.units import whole


@dataclass(frozen=True)
class Placement:
    """The device of each stage, one tuple a route; micro-batch m takes route m mod R.

    >>> Placement.wave(2, chunks=2).routes
    ((0, 1, 1, 0),)
    """

    routes: tuple[tuple[int, ...], ...]
    devices: int
    kind: str = "custom"
    chunks: int = 1

    def __post_init__(self) -> None:
        whole(self.devices, "devices.count", 1)
        if not self.routes or not self.routes[0]:
            raise ProblemError("needs at least one route with at least one stage", "placement.routes")
        for r, route in enumerate(self.routes):
            self._check(route, f"placement.routes[{r}]")

    def _check(self, route: Sequence[int], key: str) -> None:
        if len(route) != self.stages:
            raise ProblemError(f"has {len(route)} stages where the first route has {self.stages}", key)
        for s, device in enumerate(route):
            if whole(device, f"{key}[{s}]", 0) >= self.devices:
                raise ProblemError(
                    f"device {device} does not exist: devices are counted from 0 to {self.devices - 1}", f"{key}[{s}]"
                )

    @property
    def stages(self) -> int:
        """Number of stages, S."""
        return len(self.routes[0])

    def route_of(self, microbatch: int) -> tuple[int, ...]:
        """The device of each stage for ``microbatch``."""
        return self.routes[microbatch % len(self.routes)]

    def __str__(self) -> str:
        return f"{self.kind} (V={self.chunks})" if self.chunks > 1 else self.kind

    @classmethod
    def linear(cls, devices: int) -> Placement:
        """Stage s on device s."""
        return cls((tuple(range(whole(devices, "devices.count", 1))),), devices, "linear")

    @classmethod
    def looped(cls, devices: int, chunks: int = 2) -> Placement:
        """Stage s on device s mod P: V chunks a device (Megatron-LM, 2104.04473, section 2.2)."""
        devices, chunks = whole(devices, "devices.count", 1), whole(chunks, "placement.chunks", 1)
        return cls((tuple(range(devices)) * chunks,), devices, "looped", chunks)

    @classmethod
    def wave(cls, devices: int, chunks: int = 2) -> Placement:
        """Forth and back over the devices: V = 2 is the V placement (2405.15362), V = 2W is Hanayo's W waves."""
        devices, chunks = whole(devices, "devices.count", 1), whole(chunks, "placement.chunks", 1)
        forth = tuple(range(devices))
        return cls((sum((forth[:: (-1) ** c] for c in range(chunks)), ()),), devices, "wave", chunks)

    @classmethod
    def bidirectional(cls, devices: int) -> Placement:
        """Even micro-batches down the devices, odd ones up; each device holds two stages' weights (Chimera)."""
        down = tuple(range(whole(devices, "devices.count", 1)))
        return cls((down, down[::-1]), devices, "bidirectional")

    @classmethod
    def custom(cls, routes: Sequence[Sequence[int]], devices: int | None = None) -> Placement:
        """Any routes; ``devices`` defaults to the highest device named, plus one."""
        fixed = tuple(tuple(whole(d, f"placement.routes[{r}]", 0) for d in route) for r, route in enumerate(routes))
        return cls(fixed, max((max(r, default=0) for r in fixed), default=0) + 1 if devices is None else devices)


PLACEMENTS: Mapping[str, Callable[[int, int], Placement]] = {
    "linear": lambda devices, chunks: Placement.linear(devices),
    "looped": Placement.looped,
    "wave": Placement.wave,
    "bidirectional": lambda devices, chunks: Placement.bidirectional(devices),
}
"""Name -> placement of (devices, chunks); the names are those of the problem file."""
