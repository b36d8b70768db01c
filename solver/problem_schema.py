"""The keys of a problem file and what each may hold, as pydantic models; imported only when a file is read."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError
from pydantic_core import ErrorDetails

from solver.errors import ProblemError
from solver.placement import PLACEMENTS
from solver.units import exact, shown, whole

Amounts = Fraction | tuple[Fraction, ...]
"""One number for every stage, or one per stage."""


def _amounts(value: object) -> Amounts:
    if isinstance(value, (list, tuple)):
        return tuple(exact(v, f"[{i}]") for i, v in enumerate(value))
    return exact(value, "")


def _cap(value: object, key: str = "") -> Fraction | None:
    return None if value is None or value == "none" else exact(value, key)


def _caps(value: object) -> Fraction | tuple[Fraction | None, ...] | None:
    if isinstance(value, (list, tuple)):
        return tuple(_cap(v, f"[{i}]") for i, v in enumerate(value))
    return _cap(value)


def _latency(value: object) -> Fraction | tuple[tuple[Fraction, ...], ...]:
    if not isinstance(value, (list, tuple)):
        return exact(value, "")
    for a, row in enumerate(value):
        if not isinstance(row, (list, tuple)):
            raise ProblemError("must be a list: the latencies from one device to every device", f"[{a}]")
    return tuple(tuple(exact(v, f"[{a}][{b}]") for b, v in enumerate(row)) for a, row in enumerate(value))


def _whole(value: object, key: str, at_least: int) -> int:
    if isinstance(value, str):
        raise ProblemError(f"must be a whole number, got text {shown(value)}", key)
    return whole(value, key, at_least)


def _count(value: object) -> int:
    return _whole(value, "", 1)


def _indices(value: object, key: str = "") -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        raise ProblemError("must be a list of whole numbers", key)
    return tuple(_whole(v, f"{key}[{i}]", 0) for i, v in enumerate(value))


def _routes(value: object) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, (list, tuple)):
        raise ProblemError("must be a list of routes, each the device of every stage")
    return tuple(_indices(route, f"[{r}]") for r, route in enumerate(value))


def _kind(value: object) -> str:
    known = (*PLACEMENTS, "custom")
    if value not in known:
        raise ProblemError(f"must be one of {', '.join(known)}, got {str(value)[:40]!r}{_near(value, known)}")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ProblemError("must be text")
    if not value.isprintable():
        raise ProblemError("must be printable text on one line")
    return value


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Devices(_Table):
    """``[devices]``."""

    count: Annotated[int, PlainValidator(_count)]
    memory_cap: Annotated[Any, PlainValidator(_caps)] = None
    latency: Annotated[Any, PlainValidator(_latency)] = Fraction(0)


class PlacementTable(_Table):
    """``[placement]``."""

    kind: Annotated[str, PlainValidator(_kind)] = "linear"
    chunks: Annotated[int | None, PlainValidator(_count)] = None
    routes: Annotated[tuple[tuple[int, ...], ...] | None, PlainValidator(_routes)] = None


class Time(_Table):
    """``[time]``."""

    forward: Annotated[Amounts, PlainValidator(_amounts)]
    backward: Annotated[Amounts | None, PlainValidator(_amounts)] = None
    input_grad: Annotated[Amounts | None, PlainValidator(_amounts)] = None
    weight_grad: Annotated[Amounts | None, PlainValidator(_amounts)] = None
    fused_stages: Annotated[tuple[int, ...], PlainValidator(_indices)] = ()


class Memory(_Table):
    """``[memory]``."""

    activation: Annotated[Amounts | None, PlainValidator(_amounts)] = None
    activation_until_input_grad: Annotated[Amounts | None, PlainValidator(_amounts)] = None
    activation_until_weight_grad: Annotated[Amounts | None, PlainValidator(_amounts)] = None
    gradient_until_weight_grad: Annotated[Amounts | None, PlainValidator(_amounts)] = None
    static: Annotated[Amounts, PlainValidator(_amounts)] = Fraction(0)


class ProblemTable(_Table):
    """The whole file."""

    name: Annotated[str, PlainValidator(_text)] = ""
    microbatches: Annotated[int, PlainValidator(_count)]
    devices: Devices
    placement: PlacementTable = PlacementTable()
    time: Time
    memory: Memory = Memory()


SECTIONS: dict[str, type[_Table]] = {
    "devices": Devices,
    "placement": PlacementTable,
    "time": Time,
    "memory": Memory,
}


def read_table(data: object) -> ProblemTable:
    """``data`` as a checked table; ProblemError names the first key that is wrong, unknown keys before all else."""
    try:
        return ProblemTable.model_validate(data)
    except ValidationError as err:
        found = sorted(err.errors(), key=lambda e: e["type"] != "extra_forbidden")
        raise _problem_error(found[0]) from None


def _problem_error(error: ErrorDetails) -> ProblemError:
    key = ".".join(str(part) if str(part).isprintable() else repr(part) for part in error["loc"])[:80]
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, ProblemError):
        return ProblemError(cause.rule, key + cause.key)
    if error["type"] == "extra_forbidden":
        return ProblemError(f"unknown key{_near_key(str(error['loc'][-1]))}", key)
    if error["type"] == "missing":
        return ProblemError("is required and missing", key)
    return ProblemError("must be a table of keys" if key else "must be a table of keys at the top", key)


def _all_keys() -> Iterator[str]:
    for name in ProblemTable.model_fields:
        yield name
    for section, table in SECTIONS.items():
        for name in table.model_fields:
            yield f"{section}.{name}"


def _near_key(key: str) -> str:
    """A hint at the key most like ``key``, wherever in the file it belongs."""
    places = {dotted.rpartition(".")[2]: dotted for dotted in _all_keys()}
    near = get_close_matches(key[:80], places, n=1)
    return f"; did you mean {places[near[0]]}?" if near else f"; the keys are {', '.join(places)}"


def _near(value: object, known: tuple[str, ...]) -> str:
    near = get_close_matches(str(value)[:40], known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
