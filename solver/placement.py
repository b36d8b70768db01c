"""Which device runs each stage: one route, or several that micro-batches take in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from solver.errors import ProblemError
from solver.units import listed, whole

MAX_DEVICES = 1024
MAX_CHUNKS = 1024


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
        object.__setattr__(self, "devices", whole(self.devices, "devices.count", 1, MAX_DEVICES))
        routes = listed(self.routes, "placement.routes", "a list of routes, each the device of every stage")
        checked = tuple(self._checked(route, f"placement.routes[{r}]") for r, route in enumerate(routes))
        object.__setattr__(self, "routes", checked)
        if not checked or not checked[0]:
            raise ProblemError("needs at least one route with at least one stage", "placement.routes")
        for r, route in enumerate(checked):
            if len(route) != self.stages:
                rule = f"has {len(route)} stages where the first route has {self.stages}"
                raise ProblemError(rule, f"placement.routes[{r}]")

    def _checked(self, route: object, key: str) -> tuple[int, ...]:
        devices = tuple(
            whole(d, f"{key}[{s}]", 0) for s, d in enumerate(listed(route, key, "a list: the device of each stage"))
        )
        for s, device in enumerate(devices):
            if device >= self.devices:
                rule = f"device {device} does not exist: devices are counted from 0 to {self.devices - 1}"
                raise ProblemError(rule, f"{key}[{s}]")
        return devices

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
        return cls((_all(devices),), devices, "linear")

    @classmethod
    def looped(cls, devices: int, chunks: int = 2) -> Placement:
        """Stage s on device s mod P: V chunks a device (Megatron-LM, 2104.04473, section 2.2)."""
        chunks = whole(chunks, "placement.chunks", 1, MAX_CHUNKS)
        return cls((_all(devices) * chunks,), devices, "looped", chunks)

    @classmethod
    def wave(cls, devices: int, chunks: int = 2) -> Placement:
        """Forth and back over the devices: V = 2 is the V placement (2405.15362), V = 2W is Hanayo's W waves."""
        forth, chunks = _all(devices), whole(chunks, "placement.chunks", 1, MAX_CHUNKS)
        return cls((sum((forth[:: (-1) ** c] for c in range(chunks)), ()),), devices, "wave", chunks)

    @classmethod
    def bidirectional(cls, devices: int) -> Placement:
        """Even micro-batches down the devices, odd ones up; each device holds two stages' weights (Chimera)."""
        down = _all(devices)
        return cls((down, down[::-1]), devices, "bidirectional")

    @classmethod
    def custom(cls, routes: Sequence[Sequence[int]], devices: int | None = None) -> Placement:
        """Any routes; ``devices`` defaults to the highest device named, plus one."""
        key = "placement.routes"
        fixed = tuple(listed(route, key, "a list of lists") for route in listed(routes, key, "a list of routes"))
        if devices is None:
            devices = 1 + max((whole(device, key, 0) for route in fixed for device in route), default=0)
        return cls(fixed, devices)


def _all(devices: object) -> tuple[int, ...]:
    return tuple(range(whole(devices, "devices.count", 1, MAX_DEVICES)))


PLACEMENTS: Mapping[str, Callable[[int, int], Placement]] = {
    "linear": lambda devices, chunks: Placement.linear(devices),
    "looped": Placement.looped,
    "wave": Placement.wave,
    "bidirectional": lambda devices, chunks: Placement.bidirectional(devices),
}
"""Name -> placement of (devices, chunks); the names are those of the problem file."""

CHUNKED = ("looped", "wave")
"""The names of those with a choice of chunks; the others have 1."""
