"""Facts from papers and public code, each with its source: closed forms and numbers that the tests compare with.

P devices, M micro-batches, V chunks a device; f, i, w, b are times of a whole device-stage, b = i + w. Peaks are in
activations of a whole device-stage, one a device. A closed form holds where ``valid`` says so; always with equal stages
and no latency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from solver import Workload


@dataclass(frozen=True)
class Point:
    """One uniform model: P devices, M micro-batches, times of a device-stage."""

    p: int
    m: int
    f: int
    i: int
    w: int

    @property
    def b(self) -> int:
        return self.i + self.w

    @property
    def work(self) -> int:
        """What every device must run."""
        return self.m * (self.f + self.b)

    def workload(self) -> Workload:
        return Workload.uniform(self.p, self.m, self.f, input_grad=self.i, weight_grad=self.w)


GRID = tuple(
    Point(p, m, *times)
    for p in (1, 2, 3, 4, 6, 8)
    for m in sorted({1, 2, 3, p, p + 1, 2 * p, 2 * p + 1, 3 * p, 4 * p})
    for times in ((2, 2, 2), (4, 4, 4), (4, 5, 3), (6, 4, 2), (2, 6, 4))
)
"""P from 1 to 8, M from 1 to 4P, and F:I:W both equal and not, B above and below F."""

SMALL_GRID = tuple(point for point in GRID if point.p <= 4 and point.m <= 2 * point.p)


@dataclass(frozen=True)
class ClosedForm:
    """What a paper says a schedule takes; None for what it does not say."""

    schedule: str
    source: str
    valid: Callable[[Point], bool]
    makespan: Callable[[Point], Fraction | int] | None = None
    span: Callable[[Point], Fraction | int] | None = None
    peaks: Callable[[Point], list[Fraction | int]] | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.schedule, *(f"{k}={v}" for k, v in self.options.items())])


def _always(_: Point) -> bool:
    return True


def _one_f_one_b_peaks(x: Point) -> list[Fraction | int]:
    return [min(x.m, x.p - d) for d in range(x.p)]


LINEAR = (
    ClosedForm(
        "naive",
        "GPipe, 1811.06965, figure 2b: bubble (P-1)/P",
        _always,
        makespan=lambda x: x.p * x.work,
        peaks=lambda x: [1] * x.p,
    ),
    ClosedForm(
        "gpipe",
        "GPipe, 1811.06965, section 2.3: bubble (P-1)/(M+P-1)",
        _always,
        makespan=lambda x: (x.m + x.p - 1) * (x.f + x.b),
        peaks=lambda x: [x.m] * x.p,
    ),
    ClosedForm(
        "1f1b",
        "PipeDream-2BW, 2006.09503, section 2.2; DAPPLE, 2007.01045, section 3: as GPipe, min(M, P-d) activations",
        _always,
        makespan=lambda x: (x.m + x.p - 1) * (x.f + x.b),
        peaks=_one_f_one_b_peaks,
    ),
)


def _interleaved(v: int, group: int | None) -> ClosedForm:
    """Megatron-LM: idle (P-1)(F+B)/V; device 0 holds min((V-1)N + 2P-1, MV) chunks, device d 2d fewer."""

    def valid(x: Point) -> bool:
        n = group or x.p
        return x.p <= n <= x.m and (x.m % n == 0 or x.m % n >= x.p)

    def peaks(x: Point) -> list[Fraction | int]:
        n = group or x.p
        return [Fraction(min((v - 1) * n + 2 * (x.p - d) - 1, x.m * v), v) for d in range(x.p)]

    return ClosedForm(
        "interleaved",
        "Megatron-LM, 2104.04473, section 2.2.2: bubble over ideal (1/V)(P-1)/M",
        valid,
        makespan=lambda x: x.work + Fraction((x.p - 1) * (x.f + x.b), v),
        peaks=peaks,
        options={"chunks": v, "group": group},
    )


INTERLEAVED = tuple(_interleaved(v, group) for v, group in product((2, 3, 4), (None, 4, 5)))

CHIMERA = (
    ClosedForm(
        "chimera",
        "Chimera, 2107.06925, sections 3.1 and 3.5 and table 2, direct concatenation of k = M/P units",
        lambda x: x.p % 2 == 0 and x.m % x.p == 0 and x.b >= x.f,
        makespan=lambda x: x.work + (x.p - 2) * (x.b + (x.m // x.p - 1) * (x.b - x.f)),
        peaks=lambda x: [x.p // 2 + 1 + min(d, x.p - 1 - d) for d in range(x.p)],
    ),
)

CLOSED_FORMS = LINEAR + INTERLEAVED + CHIMERA


def closed_form_points() -> Iterator[tuple[ClosedForm, list[Point]]]:
    """Every closed form with the points of the grid where it holds."""
    for form in CLOSED_FORMS:
        yield form, [point for point in GRID if form.valid(point)]
