"""Read and write problem files: TOML, or JSON with the same keys. Every error names the file, the key and the rule."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solver.errors import ProblemError
from solver.ops import FUSED, SPLIT
from solver.placement import CHUNKED, PLACEMENTS, Placement
from solver.problem import MAX_OPS, Problem
from solver.stage import Stage
from solver.units import to_json

if TYPE_CHECKING:
    from solver.problem_schema import Amounts, PlacementTable, ProblemTable

MAX_BYTES = 16 * 2**20


def load_problem(path: str | Path) -> Problem:
    """The problem in a TOML or JSON file; ``-`` reads standard input.

    Raises ProblemError, on one line, for a file that cannot be read or that breaks a rule of the format.
    """
    return problem_from_mapping(read_mapping(path), str(path))


def problem_from_mapping(data: object, source: str = "") -> Problem:
    """The problem in a mapping with the keys of a problem file; ``source`` opens every error message.

    >>> data = {"microbatches": 8, "devices": {"count": 4}, "time": {"forward": 1, "backward": 2}}
    >>> problem_from_mapping(data).ops
    64
    """
    from solver.problem_schema import read_table

    try:
        return _problem(read_table(data))
    except ProblemError as err:
        raise _in_file(err, source) from None


def save_problem(problem: Problem, path: str | Path) -> None:
    """Write a problem file; the suffix, .toml or .json, chooses the format. Reading it back gives an equal problem."""
    write_mapping(problem_to_mapping(problem), path)


def problem_to_mapping(problem: Problem) -> dict[str, Any]:
    """The keys and values of the problem's file; numbers that no decimal writes are text such as "1/3"."""
    head = {"name": problem.name} if problem.name else {}
    return {
        **head,
        "microbatches": problem.microbatches,
        "devices": _devices_mapping(problem),
        "placement": _placement_mapping(problem.placement),
        **_costs_mapping(problem),
    }


# Reading -------------------------------------------------------------------------------------------------------------


def read_mapping(path: str | Path) -> object:
    """The values in a TOML or JSON file (by suffix, else by its first character), decimals exact."""
    source = str(path)
    try:
        return _parse_text(_read_text(path), Path(source).suffix.lower())
    except RecursionError:
        raise ProblemError("is nested too deeply", source) from None
    except OSError as err:
        raise ProblemError(f"cannot be read: {err.strerror or err}", source) from None
    except ProblemError as err:
        raise _in_file(err, source) from None


def _read_text(path: str | Path) -> str:
    if "\0" in str(path):
        raise ProblemError("is no file name: it contains a zero byte")
    if str(path) == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ProblemError("is larger than 16 MB, the most a file may have")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProblemError("is not text in UTF-8; a TOML or JSON file is needed") from None
    if not text.strip():
        raise ProblemError("is empty; a TOML or JSON file is needed")
    return text


def _parse_text(text: str, suffix: str) -> object:
    import tomllib

    as_json = suffix == ".json" or (suffix != ".toml" and text.lstrip()[:1] in "{[")
    try:
        if not as_json:
            return tomllib.loads(text, parse_float=Decimal)
        return json.loads(text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=_without_duplicates)
    except ProblemError:
        raise
    except ValueError as err:
        reason = " ".join(str(err).split())[:200]
        raise ProblemError(f"is not valid {'JSON' if as_json else 'TOML'}: {reason}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ProblemError("is given twice", twice if twice.isprintable() else repr(twice))
    return table


def _in_file(err: ProblemError, source: str) -> ProblemError:
    return ProblemError(err.rule, ": ".join(part for part in (source, err.key) if part))


def _problem(table: ProblemTable) -> Problem:
    placement = _placement(table.placement, table.devices.count)
    if table.microbatches * placement.stages * 2 > MAX_OPS:
        raise ProblemError(f"more than {MAX_OPS:,} ops; use fewer micro-batches or stages", "microbatches")
    stages = _split_stages(table, placement.stages) if _is_split(table) else _fused_stages(table, placement.stages)
    devices = table.devices
    return Problem.of(placement, table.microbatches, stages, devices.latency, devices.memory_cap, table.name)


def _placement(table: PlacementTable, devices: int) -> Placement:
    if table.kind == "custom":
        if table.routes is None:
            raise ProblemError("is required for a custom placement: the device of each stage", "placement.routes")
        return Placement.custom(table.routes, devices)
    if table.routes is not None:
        raise ProblemError(f'belongs to kind = "custom", not to {table.kind!r}', "placement.routes")
    chunked = table.kind in CHUNKED
    if table.chunks not in (None, 1) and not chunked:
        raise ProblemError(f"is for {' and '.join(CHUNKED)}; a {table.kind} placement has 1", "placement.chunks")
    return PLACEMENTS[table.kind](devices, table.chunks or (2 if chunked else 1))


def _is_split(table: ProblemTable) -> bool:
    """Which form of backward the file gives; ProblemError for both, neither or half of one."""
    time = table.time
    halves = {"input_grad": time.input_grad, "weight_grad": time.weight_grad}
    given = [name for name, value in halves.items() if value is not None]
    if time.backward is not None and (given or time.fused_stages):
        other = given[0] if given else "fused_stages"
        raise ProblemError(f"give either backward or the split form, not both (found {other})", "time.backward")
    if time.backward is None and not given:
        raise ProblemError("is required and missing; or give input_grad and weight_grad", "time.backward")
    if len(given) == 1:
        missing = next(name for name in halves if name not in given)
        raise ProblemError(f"is required beside {given[0]}", f"time.{missing}")
    return time.backward is None


def _fused_stages(table: ProblemTable, count: int) -> list[Stage]:
    time, memory = table.time, table.memory
    _refuse_sizes(table, [hold.name for hold in SPLIT.holds], "activation", "a fused backward")
    columns = [
        _per_stage(time.forward, count, "time.forward"),
        _per_stage(time.backward, count, "time.backward"),
        _per_stage(memory.activation, count, "memory.activation", 1),
        _per_stage(memory.static, count, "memory.static"),
    ]
    return [Stage.fused(*row) for row in zip(*columns, strict=True)]


def _split_stages(table: ProblemTable, count: int) -> list[Stage]:
    time, memory = table.time, table.memory
    _refuse_sizes(table, ["activation"], "activation_until_input_grad and activation_until_weight_grad", "a split one")
    columns = [_per_stage(getattr(time, name), count, f"time.{name}") for name in SPLIT.times]
    for hold in SPLIT.holds:
        default = 1 if hold.name == "activation_until_weight_grad" else 0
        columns.append(_per_stage(getattr(memory, hold.name), count, f"memory.{hold.name}", default))
    columns.append(_per_stage(memory.static, count, "memory.static"))
    for i, stage in enumerate(time.fused_stages):
        if stage >= count:
            raise ProblemError(f"stage {stage} does not exist; stages are 0 to {count - 1}", f"time.fused_stages[{i}]")
    fused = set(time.fused_stages)
    stages = [Stage.split(*row) for row in zip(*columns, strict=True)]
    return [stage.as_recipe(FUSED) if s in fused else stage for s, stage in enumerate(stages)]


def _refuse_sizes(table: ProblemTable, names: Sequence[str], instead: str, form: str) -> None:
    for name in names:
        if getattr(table.memory, name) is not None:
            raise ProblemError(f"does not belong to {form}; give {instead}", f"memory.{name}")


def _per_stage(value: Amounts | None, count: int, key: str, default: int = 0) -> tuple[Fraction, ...]:
    if value is None:
        value = Fraction(default)
    if isinstance(value, Fraction):
        return (value,) * count
    if len(value) != count:
        raise ProblemError(f"must be one number or one per stage ({count}), got {len(value)}", key)
    return value


# Writing -------------------------------------------------------------------------------------------------------------


def write_mapping(data: Mapping[str, Any], path: str | Path) -> None:
    """Write a mapping as TOML or JSON, by suffix; ProblemError for another suffix or where writing fails."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ProblemError(f"the suffix must be .toml or .json, got {suffix or 'none'}", str(path))
    if suffix == ".json":
        text = json.dumps(data, indent=1) + "\n"
    else:
        import tomli_w

        text = tomli_w.dumps(data)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as err:
        raise ProblemError(f"cannot be written: {err.strerror or err}", str(path)) from None


def _devices_mapping(problem: Problem) -> dict[str, Any]:
    devices: dict[str, Any] = {"count": problem.devices}
    if any(cap is not None for cap in problem.memory_cap):
        devices["memory_cap"] = _short([cap if cap is not None else "none" for cap in problem.memory_cap])
    pairs = {v for a, row in enumerate(problem.latency) for b, v in enumerate(row) if a != b}
    if len(pairs) > 1:
        devices["latency"] = [[to_json(v) for v in row] for row in problem.latency]
    elif any(pairs):
        devices["latency"] = to_json(pairs.pop())
    return devices


def _placement_mapping(placement: Placement) -> dict[str, Any]:
    build = PLACEMENTS.get(placement.kind)
    if build is None or build(placement.devices, placement.chunks) != placement:
        return {"kind": "custom", "routes": [list(route) for route in placement.routes]}
    chunks = {"chunks": placement.chunks} if placement.kind in CHUNKED else {}
    return {"kind": placement.kind, **chunks}


def _costs_mapping(problem: Problem) -> dict[str, Any]:
    """``time`` and ``memory``; beside split stages, a fused one is written as halves of which the second is 0."""
    if problem.recipes - {FUSED, SPLIT}:
        raise ProblemError("a problem file holds fused and split stages only", "time")
    recipe = SPLIT if SPLIT in problem.recipes else FUSED
    times = [_padded(stage.times, len(recipe.times)) for stage in problem.stages]
    sizes = [_padded(stage.sizes, len(recipe.holds)) for stage in problem.stages]
    time = {name: _short(column) for name, column in zip(recipe.times, zip(*times, strict=True), strict=True)}
    memory = {hold.name: _short(column) for hold, column in zip(recipe.holds, zip(*sizes, strict=True), strict=True)}
    fused = [s for s, stage in enumerate(problem.stages) if stage.recipe != recipe]
    if fused:
        time["fused_stages"] = fused
    static = [stage.static for stage in problem.stages]
    return {"time": time, "memory": {**memory, "static": _short(static)} if any(static) else memory}


def _padded(values: tuple[Fraction, ...], count: int) -> tuple[Fraction, ...]:
    return values + (Fraction(0),) * (count - len(values))


def _short(values: Sequence[Fraction | str]) -> object:
    """One number where all are equal, else the list."""
    written = [value if isinstance(value, str) else to_json(value) for value in values]
    return written[0] if len(set(values)) == 1 else written
