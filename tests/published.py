"""Facts from papers and public code, each with its source: closed forms and numbers that the tests compare with.

P devices, M micro-batches, V chunks a device; f, i, w, b are times of a whole device-stage, b = i + w. Peaks are in
activations of a whole device-stage, one a device. A closed form holds where ``valid`` says so; always with equal stages
and no latency, and with all memory held until W.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from solver import Stage, Workload

Value = Fraction | int


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
    for p in (1, 2, 3, 4, 6)
    for m in sorted({1, 2, 3, p, p + 1, 2 * p, 2 * p + 1, 3 * p, 4 * p})
    for times in ((2, 2, 2), (4, 4, 4), (4, 5, 3), (6, 4, 2), (2, 6, 4))
) + tuple(Point(8, m, *times) for m in (7, 8, 16, 24) for times in ((4, 4, 4), (4, 5, 3)))
"""P from 1 to 8, M from 1 to 4P, and F:I:W both equal and not, B at twice F, above and below."""


@dataclass(frozen=True)
class ClosedForm:
    """What a schedule takes; None for what its source does not say."""

    schedule: str
    source: str
    valid: Callable[[Point], bool]
    makespan: Callable[[Point], Value] | None = None
    span: Callable[[Point], Value] | None = None
    peaks: Callable[[Point], list[Value]] | None = None
    peak: Callable[[Point], Value] | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.schedule, *(f"{k}={v}" for k, v in self.options.items())])

    def points(self) -> list[Point]:
        return [point for point in GRID if self.valid(point)]


def _always(_: Point) -> bool:
    return True


def _flush(x: Point) -> Value:
    """GPipe and 1F1B: bubble (P-1)/(M+P-1) of the total."""
    return (x.m + x.p - 1) * (x.f + x.b)


LINEAR = (
    ClosedForm(
        "naive",
        "GPipe, 1811.06965, figure 2b: bubble (P-1)/P",
        _always,
        makespan=lambda x: x.p * x.work,
        peaks=lambda x: [1] * x.p,
    ),
    ClosedForm("gpipe", "GPipe, 1811.06965, section 2.3", _always, makespan=_flush, peaks=lambda x: [x.m] * x.p),
    ClosedForm(
        "1f1b",
        "PipeDream-2BW, 2006.09503; DAPPLE, 2007.01045, section 3",
        _always,
        makespan=_flush,
        peaks=lambda x: [min(x.m, x.p - d) for d in range(x.p)],
    ),
    ClosedForm(
        "eager-1f1b",
        "On Optimizing the Communication of Model Parallelism, 2211.05322",
        _always,
        makespan=_flush,
        peaks=lambda x: [min(x.m, 2 * (x.p - d) - 1) for d in range(x.p)],
    ),
    *(
        ClosedForm(
            "kfkb",
            "derived: k times 1F1B's memory, 1F1B's time; Ada-Grouper, 2303.01675, says about",
            _always,
            makespan=_flush,
            peaks=lambda x, k=k: [min(x.m, k * (x.p - d)) for d in range(x.p)],
            options={"k": k},
        )
        for k in (1, 2, 3)
    ),
    ClosedForm(
        "zb-h1",
        "Zero Bubble, 2401.10241, table 1: idle (P-1)(F+I-W), memory P",
        lambda x: x.w <= x.f and x.m >= x.p,
        span=lambda x: x.work + (x.p - 1) * (x.f + x.i - x.w),
        peaks=lambda x: [x.p] * x.p,
    ),
    ClosedForm(
        "zb-h1",
        "derived: the span is the makespan where W <= I too",
        lambda x: x.w <= min(x.f, x.i) and x.m >= x.p,
        makespan=lambda x: x.work + (x.p - 1) * (x.f + x.i - x.w),
    ),
    ClosedForm(
        "zb-h2",
        "Zero Bubble, 2401.10241, table 1: idle (P-1)(F+I-2W), memory 2P-1",
        lambda x: x.w <= x.f and 2 * x.w <= x.f + x.i and x.m >= 2 * x.p - 1,
        span=lambda x: x.work + (x.p - 1) * (x.f + x.i - 2 * x.w),
        peaks=lambda x: [2 * x.p - 1] * x.p,
    ),
)


def _groups_fit(x: Point, group: int | None) -> bool:
    size = group or x.p
    return x.p <= size <= x.m and (x.m % size == 0 or x.m % size >= x.p)


def _interleaved(v: int, group: int | None, lean: bool = False) -> ClosedForm:
    """Megatron-LM: idle (P-1)(F+B)/V; device 0 holds min((V-1)N + 2P-1, MV) chunks, device d 2d fewer.

    PipeOffload's lean warm-up: min(N(V-1) + P-d, MV) chunks at the same idle.
    """

    def peaks(x: Point) -> list[Value]:
        ahead = [(x.p - d) if lean else 2 * (x.p - d) - 1 for d in range(x.p)]
        return [Fraction(min((v - 1) * (group or x.p) + a, x.m * v), v) for a in ahead]

    return ClosedForm(
        "interleaved",
        "Megatron-LM, 2104.04473, section 2.2.2: idle over ideal (1/V)(P-1)/M; PipeOffload, 2503.01328, for lean",
        lambda x: _groups_fit(x, group),
        makespan=lambda x: x.work + Fraction((x.p - 1) * (x.f + x.b), v),
        peaks=peaks,
        options={"chunks": v, "group": group, "lean_warmup": lean},
    )


def _interleaved_zb(v: int, group: int | None) -> ClosedForm:
    """PipeOffload's GIS idle, (P-1)(F+I) in chunk times, less the W that fill it; (V-1)N + P chunks everywhere."""
    return ClosedForm(
        "interleaved-zb",
        "derived: ZB-H1's idle over V",
        lambda x: x.w <= x.f and _groups_fit(x, group),
        span=lambda x: x.work + Fraction((x.p - 1) * (x.f + x.i - x.w), v),
        peaks=lambda x: [Fraction(min((v - 1) * (group or x.p) + x.p, x.m * v), v)] * x.p,
        options={"chunks": v, "group": group},
    )


LOOPED = (
    *(_interleaved(v, group) for v, group in product((2, 3, 4), (None, 4))),
    _interleaved(2, None, lean=True),
    _interleaved(3, 4, lean=True),
    _interleaved_zb(2, None),
    _interleaved_zb(3, 4),
    *(
        ClosedForm(
            "looped-bfs",
            "Breadth-First Pipeline Parallelism, 2211.05953: idle over ideal (P-1)/(MV)",
            lambda x: x.m >= x.p,
            makespan=lambda x, v=v: x.work + Fraction((x.p - 1) * (x.f + x.b), v),
            peaks=lambda x: [x.m] * x.p,
            options={"chunks": v},
        )
        for v in (2, 3)
    ),
)


def _equal(x: Point) -> bool:
    return x.f == x.i == x.w


def _paired(x: Point) -> bool:
    """Where a forward and a backward of DualPipe's pairs keep step."""
    return x.w <= x.i <= x.f <= x.b


def _hanayo(waves: int) -> ClosedForm:
    """Chimera's idle on the folded placement: S = 2WP stages of 1/2W of a device's time each."""
    return ClosedForm(
        "hanayo",
        "derived from Chimera's slots; Hanayo, 2308.15762",
        lambda x: x.m % x.p == 0 and x.b >= x.f,
        makespan=lambda x: x.work + Fraction((x.p - 1) * (x.b + (x.m // x.p - 1) * (x.b - x.f)), waves),
        peaks=lambda x: [Fraction((2 * waves - 1) * x.p + 1 + d, 2 * waves) for d in range(x.p)],
        options={"waves": waves},
    )


WAVE = (
    _hanayo(1),
    _hanayo(2),
    ClosedForm(
        "zb-v",
        "Zero Bubble, 2401.10241, section 6: no idle time for F = I = W, memory P, balanced",
        lambda x: _equal(x) and x.m >= 2 * x.p - 1,
        makespan=lambda x: x.work + Fraction((x.p - 1) * x.f, 2),
        span=lambda x: x.work,
        peaks=lambda x: [x.p] * x.p,
    ),
    ClosedForm(
        "v-min",
        "Controllable Memory, 2405.15362: memory floor((P+4)/3); idle derived, near its 2P/3M of ideal",
        lambda x: _equal(x) and x.p > 3 and x.m >= x.p,
        makespan=lambda x: x.work + Fraction((4 * x.p - (6 if x.p % 3 == 2 else 5)) * x.f, 2),
        peak=lambda x: (x.p + 4) // 3,
    ),
    ClosedForm(
        "v-half",
        "Controllable Memory, 2405.15362: memory floor((P+2)/2); idle derived, near its P/2M of ideal",
        lambda x: _equal(x) and x.p > 2 and x.m >= x.p,
        makespan=lambda x: x.work + Fraction((7 * x.p - (9 if x.p % 2 else 12)) * x.f, 4),
        peak=lambda x: (x.p + 2) // 2,
    ),
    ClosedForm(
        "v-zb",
        "Controllable Memory, 2405.15362: memory P; idle derived",
        lambda x: _equal(x) and x.p > 1 and x.m >= 2 * x.p,
        makespan=lambda x: x.work + Fraction((2 * x.p - 3) * x.f, 2),
        peaks=lambda x: [x.p] * x.p,
    ),
    ClosedForm(
        "dualpipe-v",
        "DualPipe repository: memory 2P+1 chunks; idle derived for a pair run one after the other",
        lambda x: _paired(x) and x.m >= 2 * x.p,
        makespan=lambda x: x.work + Fraction((x.p - 1) * (x.f + x.i - x.w), 2),
        span=lambda x: x.work + Fraction((x.p - 1) * (x.f + x.i - x.w), 2),
        peaks=lambda x: [x.p + Fraction(1, 2)] * x.p,
    ),
)

BIDIRECTIONAL = (
    ClosedForm(
        "chimera",
        "Chimera, 2107.06925, sections 3.1 and 3.5 and table 2, direct concatenation of k = M/P units",
        lambda x: x.p % 2 == 0 and x.m % x.p == 0 and x.b >= x.f,
        makespan=lambda x: x.work + (x.p - 2) * (x.b + (x.m // x.p - 1) * (x.b - x.f)),
        peaks=lambda x: [x.p // 2 + 1 + min(d, x.p - 1 - d) for d in range(x.p)],
    ),
    ClosedForm(
        "chimera",
        "derived: Chimera, 2107.06925, section 3.5, forward doubling with a forward's slot as two ops",
        lambda x: x.p % 2 == 0 and x.m % (2 * x.p) == 0 and x.f <= x.b <= 2 * x.f,
        makespan=lambda x: x.work + Fraction((x.p - 2) * (x.f + x.b), 2),
        peaks=lambda x: [3 * x.p // 2 + 1 + min(d, x.p - 1 - d) for d in range(x.p)],
        options={"forward_doubling": True},
    ),
    ClosedForm(
        "gems",
        "derived; Chimera, 2107.06925, table 2: bubble about (P-1)/(P+1/2), one activation",
        lambda x: x.b >= x.f,
        makespan=lambda x: x.p * x.f + x.m * x.p * x.b + (x.m - 1) * x.f,
        peaks=lambda x: [1] * x.p,
    ),
    ClosedForm(
        "dualpipe",
        "DualPipe repository: memory P+1; idle derived for a pair run one after the other",
        lambda x: x.p % 2 == 0 and _paired(x) and x.m % 2 == 0 and x.m >= 2 * x.p,
        makespan=lambda x: x.work + (x.p // 2 - 1) * (x.f + x.i - x.w),
        span=lambda x: x.work + (x.p // 2 - 1) * (x.f + x.i - x.w),
        peaks=lambda x: [x.p + 1] * x.p,
    ),
)

CLOSED_FORMS = LINEAR + LOOPED + WAVE + BIDIRECTIONAL


@dataclass(frozen=True)
class Deviation:
    """Where a schedule here takes another time than is said of it, and why: ``said`` and ``here`` at one point."""

    schedule: str
    source: str
    reason: str
    point: Point
    said: Value
    here: Value
    metric: str = "makespan"
    options: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.schedule} P={self.point.p} M={self.point.m}"


_PAIR = "an overlapped pair passes nothing on before both its parts are done; run one after the other, each passes on"
_ABOUT = "the paper's figure is approximate"

DEVIATIONS = (
    Deviation(
        "zb-h1",
        "Zero Bubble, 2401.10241, table 1: idle (P-1)(F+I-W) = 0, so 48",
        "holds for W <= F: a longer W makes the op after it late",
        Point(4, 8, 1, 2, 3),
        said=48,
        here=54,
    ),
    Deviation(
        "zb-h1",
        "Zero Bubble, 2401.10241, table 1: idle (P-1)(F+I-W) = 3, so 9",
        "holds for M >= P: with fewer micro-batches no W is left to fill the gaps",
        Point(4, 2, 1, 1, 1),
        said=9,
        here=11,
    ),
    Deviation(
        "chimera",
        "Chimera, 2107.06925, section 3.5: bubble (P-2)/(3M/2+P-2), so idle (P-2)B = 4 on 24",
        "the doubled forward is two ops here, and the first passes on before the second has run: (P-2)(F+B)/2 = 3",
        Point(4, 8, 1, 1, 1),
        said=28,
        here=27,
        options={"forward_doubling": True},
    ),
    Deviation(
        "hanayo",
        "quoted of Hanayo, 2308.15762: bubble (2P-2)/(3PW+P-1) = 6/15, so 12/(1 - 6/15)",
        "second-hand; with Chimera's slots on the folded placement it is (2P-2)/(3PW+2P-2) = 6/18",
        Point(4, 4, 1, 1, 1),
        said=20,
        here=18,
    ),
    Deviation(
        "dualpipe",
        "DualPipe repository: idle (P/2-1)(F&B + B - 3W) = (3 + 2 - 3), F&B = F + B, on 24",
        _PAIR,
        Point(4, 8, 1, 1, 1),
        said=26,
        here=25,
    ),
    Deviation(
        "dualpipe-v",
        "DualPipe repository: idle (P-1)(F&B + B - 3W) in chunk times = 3 (3 + 2 - 3), on 48 of F=I=W=1 a chunk",
        _PAIR,
        Point(4, 8, 2, 2, 2),
        said=48 + 6,
        here=48 + 3,
    ),
    Deviation(
        "v-min",
        "Controllable Memory, 2405.15362: idle about 2P/3M of ideal = 1/3 of 48",
        _ABOUT,
        Point(4, 8, 2, 2, 2),
        said=48 + 16,
        here=48 + 11,
    ),
    Deviation(
        "v-half",
        "Controllable Memory, 2405.15362: idle about P/2M of ideal = 1/4 of 96",
        _ABOUT,
        Point(8, 16, 2, 2, 2),
        said=96 + 24,
        here=96 + 22,
    ),
    Deviation(
        "v-zb",
        "Controllable Memory, 2405.15362: no idle time in the span",
        "the paper's warm-up is not described in full; zb-v has one of its own that leaves no idle time",
        Point(4, 8, 2, 2, 2),
        said=48,
        here=48 + 5,
        metric="span",
    ),
)
"""Every place known where formula and schedule part."""


@dataclass(frozen=True)
class Preset:
    """One of Zero Bubble's models: profiled microseconds, hidden size h, heads a, and published bubbles of the span."""

    name: str
    devices: int
    microbatches: int
    times: tuple[int, int, int]
    latency: int
    hidden: int
    heads: int
    bubbles: Mapping[str, float]

    @property
    def activation(self) -> int:
        """Of one micro-batch and stage until W, at sequence length 1024: 34h + 5as."""
        return 34 * self.hidden + 5 * self.heads * 1024

    def workload(self, cap: Fraction | int | None = None) -> Workload:
        """The preset; ``cap`` in units of P activations. W frees 32h, I the rest."""
        until_w = 32 * self.hidden
        stage = Stage.split(*self.times, self.activation - until_w, until_w)
        limit = None if cap is None else cap * self.devices * self.activation
        return Workload.of([stage] * self.devices, self.devices, self.microbatches, self.latency, limit)

    def __str__(self) -> str:
        return self.name


_COLUMNS = ("1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p")

PRESETS = tuple(
    Preset(name, p, m, times, latency, h, a, dict(zip(_COLUMNS, bubbles, strict=True)))
    for name, p, m, times, latency, h, a, bubbles in (
        ("1.5B", 8, 24, (18522, 18086, 9337), 601, 2304, 24, (0.2431, 0.1585, 0.1083, 0.1585, 0.0433)),
        ("6.2B", 8, 24, (29718, 29444, 19927), 527, 4096, 32, (0.2347, 0.1323, 0.0698, 0.1323, 0.0029)),
        ("14.6B", 16, 48, (11347, 11248, 8132), 377, 5120, 40, (0.2552, 0.1397, 0.0672, 0.1397, 0.0066)),
        ("28.3B", 32, 96, (10419, 10207, 7715), 408, 6144, 48, (0.2646, 0.1421, 0.0641, 0.1421, 0.0038)),
    )
)
"""Zero Bubble, 2401.10241, appendix (profiled times) and the table of bubble rates."""


@dataclass(frozen=True)
class TightCap:
    """What the Zero Bubble heuristic reaches under a cap, and the proven optimum where known."""

    name: str
    workload: Workload
    heuristic: int
    optimum: int | None = None

    def __str__(self) -> str:
        return self.name


def _profiled(latency: int, cap: Fraction) -> Workload:
    """185/181/93 with memory 131, of which I frees 83 and W 48, P=4, M=8; ``cap`` in units of P activations."""
    return Workload.of([Stage.split(185, 181, 93, 83, 48)] * 4, 4, 8, latency, cap * 4 * 131)


def _unit(devices: int, microbatches: int, cap: int) -> Workload:
    return Workload.uniform(devices, microbatches, input_grad=1, weight_grad=1, memory_cap=cap)


HALF, THREE_QUARTERS = Fraction(1, 2), Fraction(3, 4)

TIGHT_CAPS = (
    TightCap("P=4 M=8 unit, cap 2", _unit(4, 8, 2), 51, 41),
    TightCap("P=6 M=12 unit, cap 3", _unit(6, 12, 3), 101, 60),
    TightCap("185/181/93 latency 6, cap 0.5x", _profiled(6, HALF), 9447, 6993),
    TightCap("185/181/93 latency 6, cap 0.75x", _profiled(6, THREE_QUARTERS), 6801, 5319),
    TightCap("185/181/93 latency 6, cap 1x", _profiled(6, Fraction(1)), 4563, 4563),
    TightCap("185/181/93 latency 60, cap 1x", _profiled(60, Fraction(1)), 5265, 5211),
    TightCap("1.5B, cap 0.5x", PRESETS[0].workload(HALF), 4631100 + 50),
    TightCap("1.5B, cap 0.75x", PRESETS[0].workload(THREE_QUARTERS), 2891900),
    TightCap("1.5B, cap 1x", PRESETS[0].workload(1), 1310405, 1310405),
)
"""Zero Bubble's own heuristic replayed with an independent checker; its makespans at 1.5B are rounded to 0.1 ms."""


@dataclass(frozen=True)
class Measured:
    """1F1B on 8 A100s, 128 micro-batches of sequence length 2k: microseconds per stage, measured and simulated ms."""

    name: str
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    iteration: float
    simulated: float

    def workload(self) -> Workload:
        stages = [Stage.fused(f, b) for f, b in zip(self.forward, self.backward, strict=True)]
        return Workload.of(stages, len(stages), 128)

    def __str__(self) -> str:
        return self.name


MEASURED = (
    Measured(
        "vocabulary 128k",
        (10599, 10616, 10637, 10612, 10352, 10540, 10470, 24152),
        (23338, 20978, 20968, 21162, 20785, 21242, 21067, 37615),
        8202.6,
        8130,
    ),
    Measured(
        "vocabulary 256k",
        (10572, 10591, 10475, 10725, 10360, 10444, 10381, 36818),
        (25185, 21108, 20737, 21143, 20805, 21030, 20827, 52363),
        11722.2,
        11640,
    ),
)
"""VocabularyParallelism's measured results file, 4B model, without latency."""
