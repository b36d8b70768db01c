"""``minbubble claims``: what a well-read article on pipeline schedules states, held against papers and proof.

Every verdict is computed from the numbers beside it: "right" is said only where the stated value equals the simulated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import click

from baselines import BASELINES
from benchmarks.render import Column, markdown_table, number, percent, progress_line, rounded, show_table
from solver import Op, OpKind, Placement, Problem, Result, Schedule, Status, Workload, metrics, solve
from solver.graph import heads
from solver.schedule import Entry
from solver.units import to_json
from solver.validate import entry_violations

Quantity = Fraction | int | str | None
TIME_LIMIT = 20.0


@dataclass(frozen=True)
class Claim:
    """One statement on one ``instance``: the article's value, the papers', the simulated and the proven best one.

    ``show`` says how its numbers are written; a quantity that is text already is shown as it is.
    """

    statement: str
    instance: str
    article: Quantity
    papers: Quantity
    simulated: Quantity
    optimum: Quantity
    verdict: str
    show: Callable[[Fraction], str] = rounded

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        values = (self.article, self.papers, self.simulated, self.optimum)
        return (self.statement, self.instance, *(self._cell(value) for value in values), self.verdict)

    def _cell(self, value: Quantity) -> str:
        return value if isinstance(value, str) else "-" if value is None else self.show(Fraction(value))


def equal_model(devices: int, microbatches: int, backward: int = 2) -> Workload:
    """P equal stages, forward 1, activation 1."""
    return Workload.uniform(devices=devices, microbatches=microbatches, forward=1, backward=backward)


def bubble(schedule: Schedule) -> Fraction:
    """``metrics.bubble_ratio`` as an exact fraction."""
    busy = sum(Fraction(b) for b in metrics.busy(schedule))
    return 1 - busy / (schedule.problem.devices * Fraction(metrics.makespan(schedule)))


def best(schedule: Schedule, minimize: str = "makespan", limits: Mapping[str, Fraction | int] | None = None) -> Result:
    """The optimum on the schedule's own placement, with its largest peak as every device's memory."""
    peak = Fraction(max(metrics.peak_memory(schedule)))
    own = schedule.problem
    problem = Problem(own.placement, own.microbatches, own.stages, own.latency, (peak,) * own.devices)
    return solve(problem, minimize=minimize, subject_to=dict(limits or {}), time_limit=TIME_LIMIT, hints=[schedule])


def proven(result: Result, value: Callable[[Schedule], Fraction | int] | None = None) -> Quantity:
    """The optimum, or "not proven"."""
    if result.status != Status.OPTIMAL or result.schedule is None:
        return "not proven"
    objective = result.objective
    return value(result.schedule) if value else objective if not isinstance(objective, tuple) else None


def verdict(article: Quantity, papers: Quantity, simulated: Quantity, optimum: Quantity) -> str:
    """Right where the article's value is the simulated one; then what the papers and the optimum add."""
    said = "right" if article == simulated else "wrong"
    if said == "wrong" and papers is not None:
        said += "; the papers' form holds" if papers == simulated else "; so is the papers' form here"
    if isinstance(optimum, str) or isinstance(simulated, str) or optimum is None or simulated is None:
        return said
    return said if optimum >= simulated else f"{said}; not optimal"


def _bubble_claim(
    name: str, instance: str, model: Workload, article: Fraction, papers: Fraction, **options: int
) -> Claim:
    """A stated bubble (idle / total) of a schedule."""
    schedule = BASELINES[name].schedule(model, **options)
    simulated, optimum = bubble(schedule), proven(best(schedule), bubble)
    text = verdict(article, papers, simulated, optimum)
    return Claim(f"{name}: bubble", instance, article, papers, simulated, optimum, text, percent)


def _bubbles() -> list[Claim]:
    """The closed forms of the article's table, P devices, M micro-batches, V chunks."""
    p, m, v = 8, 32, 4
    fill = Fraction(p - 1, p - 1 + m)
    return [
        _bubble_claim("naive", "P=4 M=8 B=2F", equal_model(4, 8), Fraction(3, 4), Fraction(3, 4)),
        _bubble_claim("gpipe", "P=8 M=32 B=F", equal_model(p, m, 1), fill, fill),
        _bubble_claim("gpipe", "P=8 M=32 B=2F", equal_model(p, m), fill, fill),
        _bubble_claim("1f1b", "P=8 M=32 B=F", equal_model(p, m, 1), fill, fill),
        _bubble_claim("1f1b", "P=8 M=32 B=2F", equal_model(p, m), fill, fill),
        _bubble_claim(
            "interleaved",
            "P=8 M=32 V=4 B=2F",
            equal_model(p, m),
            Fraction(v * p - 1, v * p - 1 + m),
            Fraction(p - 1, v * m + p - 1),
            chunks=v,
        ),
        _interleaved_against_1f1b(p, m, v),
        _bubble_claim(
            "chimera",
            "P=8 M=32 B=F",
            equal_model(p, m, 1),
            Fraction(p - 1, 2 * (p - 1) + m),
            Fraction(p - 2, 2 * m + p - 2),
        ),
    ]


def _interleaved_against_1f1b(p: int, m: int, v: int) -> Claim:
    """The article's forms make interleaving worse than 1F1B, as they count V P full-size devices."""
    ours = BASELINES["interleaved"].schedule(equal_model(p, m), chunks=v)
    other = BASELINES["1f1b"].schedule(equal_model(p, m))
    article = Fraction(v * p - 1, v * p - 1 + m) - Fraction(p - 1, p - 1 + m)
    papers = Fraction(p - 1, v * m + p - 1) - Fraction(p - 1, p - 1 + m)
    simulated = bubble(ours) - bubble(other)
    text = "right" if (article > 0) == (simulated > 0) else "wrong: it is better"
    optimum = _difference(proven(best(ours), bubble), bubble(other))
    return Claim(
        "interleaved: bubble less 1f1b's",
        "P=8 M=32 V=4 B=2F",
        article,
        papers,
        simulated,
        optimum,
        text,
        _signed_percent,
    )


def _difference(value: Quantity, reference: Fraction) -> Quantity:
    """``value`` less ``reference``; text stays as it is."""
    return Fraction(value) - reference if isinstance(value, (int, Fraction)) else value


def _signed_percent(value: Fraction) -> str:
    return f"{float(value):+.1%}"


def _memory_claim(name: str, stated: str, article: Quantity, papers: Quantity, extra: str = "") -> Claim:
    """A stated peak of activations, in device-stages; the optimum is the least memory at the same makespan."""
    schedule = BASELINES[name].schedule(equal_model(4, 8))
    simulated = max(metrics.peak_memory(schedule))
    least = proven(best(schedule, "peak_memory", {"makespan": metrics.makespan(schedule)}))
    text = verdict(article, papers, simulated, least) + extra
    return Claim(f"{name}: activations {stated}", "P=4 M=8 B=2F", article, papers, simulated, least, text)


def _memories() -> list[Claim]:
    p, m, v = 4, 8, 2
    more_chunks = max(metrics.peak_memory(BASELINES["interleaved"].schedule(equal_model(p, m), chunks=2 * v)))
    in_stages = f"; {rounded(more_chunks)} at V={2 * v}"
    return [
        _memory_claim("naive", "O(1)", 1, 1),
        _memory_claim("gpipe", "O(M)", m, m),
        _memory_claim("1f1b", "O(P)", p, p),
        _memory_claim("interleaved", "O(VP), V=2", v * p, p + Fraction(p - 1, v), in_stages),
        _memory_claim("chimera", "2 x O(P)", 2 * p, p, "; the weights are twice"),
    ]


def _below_20_percent() -> list[Claim]:
    """The least M for which 1F1B on 48 devices idles less than 20 %, by both denominators."""
    p, stated = 48, 236
    total, no_less = _least_microbatches(p, 187, bubble)
    work, no_less_work = _least_microbatches(p, 234, lambda schedule: bubble(schedule) / (1 - bubble(schedule)))
    own = "right" if total == stated else f"wrong by its own idle/total: M > {total - 1} is enough"
    megatron = "right" if work == stated else "wrong"
    return [
        Claim("1f1b: least M for idle/total < 20 %", "P=48", stated, 4 * (p - 1) + 1, total, no_less, own),
        Claim("1f1b: least M for idle/work < 20 %", "P=48", stated, 5 * (p - 1) + 1, work, no_less_work, megatron),
    ]


def _least_microbatches(p: int, start: int, ratio: Callable[[Schedule], Fraction]) -> tuple[int, Quantity]:
    """The first M from ``start`` on where 1F1B's ratio is below 1/5; the same again if no schedule does with M - 1."""
    m, schedule = start, BASELINES["1f1b"].schedule(equal_model(p, start))
    while True:
        after = BASELINES["1f1b"].schedule(equal_model(p, m + 1))
        if ratio(after) < Fraction(1, 5):
            break
        m, schedule = m + 1, after
    least = proven(best(schedule), ratio)
    return m + 1, m + 1 if isinstance(least, Fraction) and least >= Fraction(1, 5) else least


def _half_the_microbatches(p: int, m: int, backward: int, papers: Fraction) -> Claim:
    """Chimera with M/2 micro-batches against 1F1B with M: the difference of their bubbles, at most 0 if it keeps up."""
    chimera = BASELINES["chimera"].schedule(equal_model(p, m // 2, backward))
    reference = Fraction(p - 1, p - 1 + m)
    own_form = Fraction(p - 1, 2 * (p - 1) + m // 2) - reference
    other = bubble(BASELINES["1f1b"].schedule(equal_model(p, m, backward)))
    simulated = bubble(chimera) - other
    text = "right" if simulated <= 0 else "wrong"
    if (own_form <= 0) != (simulated <= 0):
        text += ", though not by its own form"
    return Claim(
        "chimera with M/2 idles no more than 1f1b with M",
        f"P={p} M={m} {_ratio(backward)}",
        own_form,
        papers - reference,
        simulated,
        _difference(proven(best(chimera), bubble), other),
        text,
        _signed_percent,
    )


def _ratio(backward: int) -> str:
    return "B=F" if backward == 1 else f"B={backward}F"


def _chimera_concatenated() -> Claim:
    """With B = 2F, concatenated units idle (P-2)(M/P+1) F: no better than 1F1B even at the same M."""
    p, m = 4, 16
    chimera = BASELINES["chimera"].schedule(equal_model(p, m))
    reference = metrics.makespan(BASELINES["1f1b"].schedule(equal_model(p, m)))
    simulated = metrics.makespan(chimera)
    optimum = proven(best(chimera))
    text = f"{'shorter' if simulated < reference else 'longer'} than 1f1b's {number(reference)}"
    papers = m * 3 + (p - 2) * (m // p + 1)
    return Claim("chimera concatenated: makespan", "P=4 M=16 B=2F", None, papers, simulated, optimum, text)


def _first_backward(backward: int) -> Claim:
    """A diagram starts GPU 0's first backward at 4; gradients cannot be there before P F + (P-1) B."""
    p = 4
    schedule = BASELINES["gpipe"].schedule(equal_model(p, p, backward))
    earliest = Fraction(int(heads(schedule.problem)[0, OpKind.B, 0])) * schedule.problem.time_unit
    simulated = next(entry.start for entry in schedule.entries() if entry.op == Op(0, OpKind.B, 0))
    text = "wrong: infeasible" if earliest > 4 else "right" if simulated == 4 else "wrong"
    papers = p + (p - 1) * backward
    return Claim(
        "gpipe diagram: start of GPU 0's first B", f"P=M=4 {_ratio(backward)}", 4, papers, simulated, earliest, text
    )


def _naive_diagram() -> Claim:
    """A diagram runs the backward of the naive schedule from GPU 0 up to the last."""
    problem = equal_model(4, 1).problem(Placement.linear(4))
    diagram = [Entry(Op(s, OpKind.F, 0), s, s, s + 1) for s in range(4)]
    diagram += [Entry(Op(s, OpKind.B, 0), s, 4 + 2 * s, 6 + 2 * s) for s in range(4)]
    broken = len(entry_violations(problem, diagram))
    simulated = [e for e in BASELINES["naive"].schedule(equal_model(4, 1)).entries() if e.op.kind == OpKind.B]
    order = " ".join(str(e.device) for e in sorted(simulated, key=lambda e: e.start))
    earliest = heads(problem)[0, OpKind.B]
    forced = " ".join(map(str, sorted(range(4), key=lambda s: int(earliest[s]))))
    text = f"wrong: infeasible, {broken} dependencies broken" if broken else "right"
    return Claim("naive diagram: order of GPUs in the backward", "P=4 M=1", "0 1 2 3", "3 2 1 0", order, forced, text)


def claims(report: Callable[[str], None] = lambda text: None) -> list[Claim]:
    """Every claim, checked anew."""
    found: list[Claim] = []
    parts: tuple[Callable[[], list[Claim]], ...] = (_bubbles, _memories, _below_20_percent, _chimeras, _diagrams)
    for part in parts:
        report(f"{part.__name__.strip('_').replace('_', ' ')} ({len(found)} claims checked)")
        found += part()
    return found


def _chimeras() -> list[Claim]:
    return [
        _half_the_microbatches(8, 32, 1, Fraction(8 - 2, 2 * 16 + 8 - 2)),
        _half_the_microbatches(4, 16, 2, Fraction((4 - 2) * (8 // 4 + 1), 8 * 3 + (4 - 2) * (8 // 4 + 1))),
        _chimera_concatenated(),
    ]


def _diagrams() -> list[Claim]:
    return [_first_backward(1), _first_backward(2), _naive_diagram()]


COLUMNS = (
    Column("claim"),
    Column("instance"),
    Column("article", True),
    Column("papers", True),
    Column("simulated", True),
    Column("optimum", True),
    Column("verdict"),
)


@click.command("claims")
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, one object a claim.")
def claims_command(markdown: bool, as_json: bool) -> None:
    """What a well-read article states of the four generations, held against papers, simulation and proof.

    The article's closed forms (bubble, activation memory), two of its statements and two of its diagrams; beside
    each the papers' value, what a simulation gives, the proven optimum (for a bubble: on that placement and in that
    memory; for memory: at that makespan; for a start: the earliest possible; for an order: that of the earliest
    starts), and a verdict computed from them.

    \b
    Examples:
      minbubble claims
      minbubble claims --markdown
    """
    with progress_line("checking") as report:
        found = claims(report)
    if as_json:
        click.echo(json.dumps([_mapping(claim) for claim in found], indent=1))
    elif markdown:
        click.echo(markdown_table(COLUMNS, [claim.cells() for claim in found]))
    else:
        show_table(COLUMNS, [[claim.cells() for claim in found]])


def _mapping(claim: Claim) -> dict[str, object]:
    values = {name: getattr(claim, name) for name in ("article", "papers", "simulated", "optimum")}
    numbers = {name: to_json(v) if isinstance(v, (int, Fraction)) else v for name, v in values.items()}
    return {"claim": claim.statement, "instance": claim.instance, **numbers, "verdict": claim.verdict}
