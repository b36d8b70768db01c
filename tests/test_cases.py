"""Thirty-six small problems of every placement and recipe, and their least makespans."""

import json
from pathlib import Path

import pytest

from solver import Status, load_problem, metrics, solve
from solver.problem_file import problem_from_mapping, problem_to_mapping

CASES = Path(__file__).parent / "cases"
EXPECTED = json.loads((CASES / "expected.json").read_text())


def test_every_file_has_its_expected_value():
    assert {path.stem for path in CASES.glob("*.toml")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_case_is_solved_to_its_optimum(name):
    problem = load_problem(CASES / f"{name}.toml")
    assert problem_from_mapping(problem_to_mapping(problem)) == problem
    result = solve(problem)
    assert result.status == Status.OPTIMAL
    assert metrics.makespan(result.schedule) == EXPECTED[name]
