"""Who may import whom, and the manners that hold everywhere."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from solver import OpKind, Placement, Problem, Schedule, Stage, violations
from solver.validate import Violation

ROOT = Path(__file__).parent.parent
FILES = {
    path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8"))
    for package in ("solver", "baselines", "benchmarks")
    for path in sorted((ROOT / package).rglob("*.py"))
}
LIBRARY = {path: tree for path, tree in FILES.items() if path.parts[0] != "benchmarks"}
ENGINE = {path: tree for path, tree in LIBRARY.items() if path.parts[0] == "solver"}


def imports(tree: ast.AST) -> set[str]:
    """Every module named by an import, wherever it stands; ``from a import b`` names a and a.b."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def within(names: set[str], *modules: str) -> set[str]:
    return {n for n in names for m in modules if n == m or n.startswith(m + ".")}


def offenders(files: dict[Path, ast.Module], *modules: str) -> dict[str, set[str]]:
    found = {path: within(imports(tree), *modules) for path, tree in files.items()}
    return {str(path): names for path, names in found.items() if names}


def test_there_is_something_to_look_at() -> None:
    assert len(ENGINE) > 15


def test_only_cpsat_imports_ortools() -> None:
    rest = {path: tree for path, tree in FILES.items() if path.parts[:2] != ("solver", "cpsat")}
    assert offenders(rest, "ortools") == {}


NOT_FOR_THE_JUDGE = ("graph", "simulate", "memory", "metrics", "bounds", "heuristics", "solve", "cpsat")


def test_the_judge_derives_the_rules_itself() -> None:
    judge = {path: tree for path, tree in FILES.items() if path == Path("solver/validate.py")}
    assert offenders(judge, *(f"solver.{part}" for part in NOT_FOR_THE_JUDGE)) == {}


def modules_run(call: Callable[[], object]) -> set[str]:
    """Names of the modules of which any function runs during ``call``, however it was reached."""
    names: set[str] = set()
    sys.setprofile(lambda frame, event, argument: names.add(frame.f_globals.get("__name__", "")))
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("shift", [0, -1])
def test_the_judge_runs_on_its_own(shift: int) -> None:
    """A valid GPipe schedule, and one whose second stage starts too early, written down here: nothing is cached."""
    problem = Problem.of(Placement.linear(2), 2, [Stage.fused("1/7", "2/7")] * 2, memory_cap=2)
    starts = np.full(problem.shape, -1)
    starts[OpKind.F] = [[0, 1], [1 + shift, 2 + shift]]
    starts[OpKind.B] = [[5, 7], [3, 5]]
    schedule = Schedule(problem, starts)
    found: list[Violation] = []
    names = modules_run(lambda: found.extend(violations(schedule)))
    assert {violation.rule for violation in found} == ({"broken dependency"} if shift else set())
    assert "solver.validate" in names
    assert within(names, *(f"solver.{part}" for part in NOT_FOR_THE_JUDGE)) == set()


def test_solver_never_imports_baselines_or_benchmarks() -> None:
    assert offenders(ENGINE, "baselines", "benchmarks") == {}


def test_baselines_never_import_a_solver() -> None:
    baselines = {path: tree for path, tree in FILES.items() if path.parts[0] == "baselines"}
    assert (
        offenders(baselines, "solver.solve", "solver.cpsat", "solver.bounds", "solver.heuristics", "benchmarks") == {}
    )


HEAVY = {"ortools", "pandas", "matplotlib", "torch", "rich", "pydantic"}


@pytest.mark.parametrize("module", ["solver", "baselines", "benchmarks.cli"])
def test_importing_the_api_or_the_command_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not HEAVY & set(done.stdout.split())


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


def test_functions_are_short() -> None:
    lengths = {f"{path}:{f.name}": body_lines(f) for path, tree in FILES.items() for f in functions(tree)}
    assert {name: n for name, n in lengths.items() if n > 60} == {}
    assert sorted(lengths.values())[len(lengths) // 2] <= 9
    assert sum(n > 35 for n in lengths.values()) <= len(lengths) // 50


def test_files_are_short() -> None:
    lengths = {str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: n for name, n in lengths.items() if n > 350} == {}


def test_nothing_is_asserted_or_printed_in_the_libraries() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, tree in LIBRARY.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print")
    ]
    assert found == []


def is_public(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")


def test_every_public_name_and_module_has_a_docstring() -> None:
    missing = [str(path) for path, tree in LIBRARY.items() if not ast.get_docstring(tree)]
    for path, tree in LIBRARY.items():
        missing += [f"{path}:{node.name}" for node in tree.body if is_public(node) and not ast.get_docstring(node)]
    assert missing == []


def test_every_module_name_is_one_or_two_plain_words() -> None:
    for path in FILES:
        assert re.fullmatch(r"(_?_?[a-z0-9]+_?)+(__)?", path.stem), path


def string_constants(tree: ast.Module) -> list[str]:
    """Strings of the code, docstrings left out."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs
    ]


NO_ENGINE = {Path("solver/placement.py"), Path("solver/problem_file.py"), Path("solver/problem_schema.py")}


def test_no_engine_module_knows_a_placement_or_a_baseline_by_name() -> None:
    """Placements, files and exports apart, nothing may branch on a name."""
    names = {"linear", "looped", "wave", "bidirectional", "gpipe", "1f1b", "interleaved", "chimera", "naive", "zb-h1"}
    found = {
        str(path): sorted(names & set(string_constants(tree)))
        for path, tree in ENGINE.items()
        if path not in NO_ENGINE and "export" not in path.parts
    }
    assert {path: hits for path, hits in found.items() if hits} == {}
