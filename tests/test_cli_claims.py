"""The claims table: its numbers, derived by hand, and verdicts that follow from them."""

import json
from fractions import Fraction

import pytest

from benchmarks import cli
from benchmarks.claims import claims, verdict


@pytest.fixture(scope="module")
def table():
    return {(claim.statement, claim.instance): claim for claim in claims()}


def values(claim):
    return claim.article, claim.papers, claim.simulated, claim.optimum


EXPECTED = {
    ("naive: bubble", "P=4 M=8 B=2F"): (Fraction(3, 4),) * 4,
    ("gpipe: bubble", "P=8 M=32 B=F"): (Fraction(7, 39),) * 4,
    ("1f1b: bubble", "P=8 M=32 B=2F"): (Fraction(7, 39),) * 4,
    # 31/63 stated; (P-1)/(VM+P-1) = 7/135
    ("interleaved: bubble", "P=8 M=32 V=4 B=2F"): (Fraction(31, 63), *[Fraction(7, 135)] * 3),
    # 7/46 stated; (D-2)/(2N+D-2) = 6/70, which is the least: M(F+B) + (D/2-1)(F+B) = 70
    ("chimera: bubble", "P=8 M=32 B=F"): (Fraction(7, 46), *[Fraction(6, 70)] * 3),
    ("gpipe: activations O(M)", "P=4 M=8 B=2F"): (8, 8, 8, 4),
    ("1f1b: activations O(P)", "P=4 M=8 B=2F"): (4, 4, 4, 4),
    # 47/M < 1/5 from M = 236; 47/(M+47) < 1/5 from M = 189
    ("1f1b: least M for idle/total < 20 %", "P=48"): (236, 189, 189, 189),
    ("1f1b: least M for idle/work < 20 %", "P=48"): (236, 236, 236, 236),
    # P F + (P-1) B = 4 + 3 or 4 + 6; GPipe waits for all forwards: (2P-2) F + F + (P-1) B = 7 + 3 or 7 + 6
    ("gpipe diagram: start of GPU 0's first B", "P=M=4 B=F"): (4, 7, 10, 7),
    ("gpipe diagram: start of GPU 0's first B", "P=M=4 B=2F"): (4, 10, 13, 10),
    ("naive diagram: order of GPUs in the backward", "P=4 M=1"): ("0 1 2 3", "3 2 1 0", "3 2 1 0", "3 2 1 0"),
}


@pytest.mark.parametrize("key", EXPECTED)
def test_values(key, table):
    assert values(table[key]) == EXPECTED[key]


def test_interleaved_memory_is_in_stages(table):
    claim = table["interleaved: activations O(VP), V=2", "P=4 M=8 B=2F"]
    # VP+P-1 = 11 chunks = 5.5 stages; at V=4 19 chunks = 4.75 stages
    assert (claim.papers, claim.simulated) == (Fraction(11, 2), Fraction(11, 2))
    assert "4.75 at V=4" in claim.verdict


def test_half_the_microbatches(table):
    # B=F: 6/38 against 7/39; B=2F: 6/30 against 3/19, while the best bidirectional schedule, 28, idles 4/28
    fused = table["chimera with M/2 idles no more than 1f1b with M", "P=8 M=32 B=F"]
    assert (fused.simulated, fused.verdict) == (Fraction(6, 38) - Fraction(7, 39), "right, though not by its own form")
    double = table["chimera with M/2 idles no more than 1f1b with M", "P=4 M=16 B=2F"]
    assert (double.simulated, double.optimum) == (Fraction(6, 30) - Fraction(3, 19), Fraction(4, 28) - Fraction(3, 19))
    assert double.verdict == "wrong"


def test_chimera_concatenated_is_longer_than_1f1b(table):
    claim = table["chimera concatenated: makespan", "P=4 M=16 B=2F"]
    # 16 x 3 + (4-2)(16/4+1) = 58 against (16+3) x 3 = 57
    assert (claim.papers, claim.simulated, claim.verdict) == (58, 58, "longer than 1f1b's 57")
    assert claim.optimum < 57


def test_verdicts_follow_from_the_numbers(table):
    for claim in table.values():
        if claim.article is not None and "diagram" not in claim.statement and "no more" not in claim.statement:
            right = claim.article == claim.simulated or (
                "less" in claim.statement and (claim.article > 0) == (claim.simulated > 0)
            )
            assert claim.verdict.startswith("right") == right, claim
    assert verdict(1, 1, 1, 1) == "right"
    assert verdict(1, 2, 2, 2) == "wrong; the papers' form holds"
    assert verdict(1, 1, 2, 2) == "wrong; so is the papers' form here"
    assert verdict(2, 2, 2, 1) == "right; not optimal"


def test_no_schedule_beats_a_proven_optimum(table):
    for claim in table.values():
        assert claim.optimum != "not proven", claim
        if not isinstance(claim.simulated, str):
            assert claim.optimum <= claim.simulated, claim


def test_command_prints_the_rows(capsys, monkeypatch, table):
    monkeypatch.setattr("benchmarks.claims.claims", lambda report: list(table.values()))
    assert cli.run(["claims", "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| claim | instance | article |")
    assert len(lines) == len(table) + 2
    assert cli.run(["claims", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(table)
    assert cli.run(["claims"]) == 0
    assert "49.2%" in capsys.readouterr().out
