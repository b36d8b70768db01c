"""The problem file: exact round trips, and one line that names file, key and rule for everything wrong."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver import FUSED, SPLIT, Placement, Problem, ProblemError, Stage
from solver.problem_file import MAX_BYTES, load_problem, problem_from_mapping, problem_to_mapping
from solver.problem_schema import Devices, Memory, PlacementTable, ProblemTable, Time

GOOD = {
    "microbatches": 8,
    "devices": {"count": 4},
    "time": {"forward": 1, "backward": 2},
}

FULL = """
name = "four stages"
microbatches = 8

[devices]
count = 4
memory_cap = [4, "none", 3.5, "1/3"]
latency = [[0, 0.1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]

[placement]
kind = "linear"
chunks = 1

[time]
forward = 0.1
input_grad = [1, 2, 3, 4]
weight_grad = "2/3"
fused_stages = [0]

[memory]
activation_until_input_grad = 0.1
activation_until_weight_grad = "1/30"
gradient_until_weight_grad = 0.05
"""


def changed(**changes):
    """GOOD with some keys replaced, ``devices__count`` for a key of a section; None takes the key out."""
    data = json.loads(json.dumps(GOOD))
    for path, value in changes.items():
        *section, key = path.split("__")
        table = data.setdefault(section[0], {}) if section else data
        table[key] = value
        if value is None:
            del table[key]
    return data


def test_full_file_is_read_exactly(tmp_path: Path):
    path = tmp_path / "plan.toml"
    path.write_text(FULL)
    problem = load_problem(path)
    third = Fraction(1, 3)
    assert problem.name == "four stages"
    assert problem.memory_cap == (4, None, Fraction(7, 2), third)
    assert problem.latency[0] == (0, Fraction(1, 10), 0, 0)
    # stage 0 runs both halves as one B: 1 + 2/3; its activation is 0.1 + 1/30
    assert problem.stages[0] == Stage.fused("0.1", "5/3", Fraction(1, 10) + Fraction(1, 30))
    assert problem.stages[1] == Stage.split("0.1", 2, "2/3", "0.1", "1/30", "0.05")


def test_defaults():
    problem = problem_from_mapping(GOOD)
    assert problem == Problem.of(Placement.linear(4), 8, [Stage.fused(1, 2, activation=1)] * 4)
    split = problem_from_mapping(changed(time__backward=None, time__input_grad=1, time__weight_grad=1))
    assert split.stages[0] == Stage.split(1, 1, 1, 0, 1, 0)


@pytest.mark.parametrize(
    "placement",
    [
        Placement.linear(4),
        Placement.looped(4, 1),
        Placement.looped(2, 2),
        Placement.wave(2, 2),
        Placement.bidirectional(4),
        Placement.custom([[0, 1, 1, 3], [2, 1, 1, 0]], 5),
        Placement.custom([[0, 1, 2, 3]]),
    ],
)
@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_placements_round_trip(placement, suffix, tmp_path):
    stages = [Stage.fused("1/3", 2.5, 0.1, 7), Stage.fused(1, 0, 10**12), Stage.fused(0, 1), Stage.fused(1, 1)]
    problem = Problem.of(placement, 3, stages, latency="1/7", name='a "name" \\ with ünicode')
    problem.save(tmp_path / f"plan.{suffix}")
    assert load_problem(tmp_path / f"plan.{suffix}") == problem


numbers = st.one_of(
    st.integers(0, 10**6),
    st.decimals(0, 1000, places=3).map(str),
    st.fractions(0, 50, max_denominator=12),
)


@st.composite
def problems(draw):
    devices = draw(st.integers(1, 3))
    split = draw(st.booleans())
    stages = [Stage.split(*(draw(numbers) for _ in range(7))) for _ in range(devices)]
    stages = [s if split and draw(st.booleans()) else s.as_recipe(FUSED) for s in stages]
    latency = [[0 if a == b else draw(numbers) for b in range(devices)] for a in range(devices)]
    caps = [draw(st.none() | st.integers(10**8, 10**9)) for _ in range(devices)]
    return Problem.of(Placement.linear(devices), draw(st.integers(1, 4)), stages, latency, caps)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["toml", "json"]))
def test_any_problem_round_trips(tmp_path_factory, problem, suffix):
    path = tmp_path_factory.mktemp("plan") / f"plan.{suffix}"
    problem.save(path)
    assert load_problem(path) == problem


def test_mixed_recipes_round_trip():
    stages = [Stage.split(1, 1, 1).as_recipe(FUSED), Stage.split(1, 1, 1)]
    problem = Problem.of(Placement.linear(2), 4, stages)
    again = problem_from_mapping(problem_to_mapping(problem))
    assert again == problem
    assert again.recipes == {FUSED, SPLIT}


WRONG = {
    "unknown key": (changed(time__foward=1), "time.foward: unknown key; did you mean time.forward?"),
    "unknown section": (changed(tme={}), "tme: unknown key; did you mean time?"),
    "key of another section": (changed(latency=1), "latency: unknown key; did you mean devices.latency?"),
    "missing microbatches": (changed(microbatches=None), "microbatches: is required and missing"),
    "missing count": (changed(devices__count=None), "devices.count: is required and missing"),
    "missing forward": (changed(time__forward=None), "time.forward: is required and missing"),
    "missing backward": (changed(time__backward=None), "time.backward: is required and missing"),
    "half a split": (changed(time__backward=None, time__input_grad=1), "time.weight_grad: is required beside"),
    "both backwards": (changed(time__input_grad=1), "time.backward: give either"),
    "fused stages of a fused model": (changed(time__fused_stages=[0]), "time.backward: give either"),
    "no table": ([1, 2], "must be a table of keys"),
    "section is a number": (changed(time=3), "time: must be a table of keys"),
    "wrong length": (changed(time__forward=[1, 2, 3]), "time.forward: must be one number or one per stage (4), got 3"),
    "wrong length of caps": (changed(devices__memory_cap=[9] * 3), "devices.memory_cap: must be one number or one per"),
    "latency is a list": (changed(devices__latency=[1, 2, 3, 4]), "devices.latency[0]: must be a list"),
    "latency is too small": (changed(devices__latency=[[0]]), "devices.latency: must be one number or a 4 x 4"),
    "latency to itself": (
        changed(devices__count=1, devices__latency=[[1]]),
        "devices.latency[0][0]: a device reaches itself",
    ),
    "NaN": (changed(time__forward=[1, 1, 1, float("nan")]), "time.forward[3]: must be a finite number, got NaN"),
    "infinity": (changed(devices__latency=float("inf")), "devices.latency: must be a finite number, got Infinity"),
    "negative": (changed(memory__activation=-1), "memory.activation: must not be negative, got -1"),
    "negative in a matrix": (
        changed(devices__count=1, devices__latency=[[-2]]),
        "devices.latency[0][0]: must not be negative, got -2",
    ),
    "text for a number": (changed(time__forward="fast"), "time.forward: must be a finite number, got 'fast'"),
    "text for a count": (changed(microbatches="8"), "microbatches: must be a whole number, got text '8'"),
    "truth for a number": (changed(time__forward=True), "time.forward: must be a number, got True"),
    "no devices": (changed(devices__count=0), "devices.count: must be a whole number of at least 1, got 0"),
    "no micro-batches": (changed(microbatches=0), "microbatches: must be a whole number of at least 1, got 0"),
    "half a device": (changed(devices__count=1.5), "devices.count: must be a whole number"),
    "very many devices": (changed(devices__count=10**8), "devices.count: must be at most 1,024"),
    "very many micro-batches": (changed(microbatches=10**8), "microbatches: more than 1,000,000 ops"),
    "digits without end": (changed(time__forward="0." + "3" * 200), "time.forward: is out of range, got '0.333"),
    "number without end": (changed(time__forward=10**400), "time.forward: is out of range, got 1000"),
    "number for text": (changed(name=3), "name: must be text"),
    "two lines of text": (changed(name="a\nb"), "name: must be printable text on one line"),
    "unknown placement": (changed(placement__kind="loped"), "placement.kind: must be one of linear, looped"),
    "chunks of a linear one": (changed(placement__chunks=2), "placement.chunks: is for looped and wave"),
    "custom without routes": (changed(placement__kind="custom"), "placement.routes: is required"),
    "routes of a linear one": (changed(placement__routes=[[0]]), "placement.routes: belongs to kind"),
    "a route is a number": (
        changed(placement={"kind": "custom", "routes": [0, 1]}),
        "placement.routes[0]: must be a list",
    ),
    "no such device": (
        changed(placement={"kind": "custom", "routes": [[0, 1], [1, 4]]}),
        "placement.routes[1][1]: device 4 does not exist: devices are counted from 0 to 3",
    ),
    "no such fused stage": (
        changed(time={"forward": 1, "input_grad": 1, "weight_grad": 1, "fused_stages": [4]}),
        "time.fused_stages[0]: stage 4 does not exist",
    ),
    "cap below one micro-batch": (changed(devices__memory_cap=0.5), "devices.memory_cap"),
    "sizes of the other form": (
        changed(memory__activation_until_input_grad=1),
        "memory.activation_until_input_grad: does not belong to a fused backward; give activation",
    ),
    "too fine a tick": (changed(time__forward=["1/999999999989", "1/999999999961", 1, 1]), "time: these numbers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_name_file_key_and_rule(case, tmp_path):
    data, message = WRONG[case]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ProblemError) as caught:
        load_problem(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


BROKEN = {
    "empty.toml": (b" \n", "is empty"),
    "binary.toml": (bytes(range(256)), "is not text in UTF-8"),
    "syntax.toml": (b"microbatches = = 8", "is not valid TOML: Invalid value (at line 1"),
    "twice.toml": (b"name = 'a'\nname = 'b'", "is not valid TOML: Cannot overwrite a value"),
    "syntax.json": (b'{"microbatches": 8', "is not valid JSON: Expecting ',' delimiter: line 1"),
    "twice.json": (b'{"name": "a", "name": "b"}', "name: is given twice"),
    "list.json": (b"[1, 2]", "must be a table of keys at the top"),
    "deep.json": (b"[" * 100_000, "is nested too deeply"),
    "deep.toml": (b"a = " + b"[" * 100_000, "is nested too deeply"),
    "digits.toml": (b"microbatches = " + b"9" * 10_000, "is not valid TOML"),
    "guess": (b'{"microbatches": 8', "is not valid JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_one_line(name, tmp_path):
    content, message = BROKEN[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ProblemError) as caught:
        load_problem(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ProblemError, match="cannot be read: No such file"):
        load_problem(tmp_path / "missing.toml")
    with pytest.raises(ProblemError, match="cannot be read: Is a directory"):
        load_problem(tmp_path)
    with pytest.raises(ProblemError, match="zero byte"):
        load_problem("a\0b")


def test_a_file_over_16_mb_is_refused_unread(tmp_path):
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ProblemError, match="larger than 16 MB"):
        load_problem(path)


def test_nan_and_infinity_as_json_and_toml_write_them(tmp_path):
    for name, text in (("a.json", '{"microbatches": NaN}'), ("a.toml", "microbatches = -inf")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ProblemError, match="microbatches: must be"):
            load_problem(tmp_path / name)


def test_saving_refuses_other_suffixes(tmp_path):
    with pytest.raises(ProblemError, match=r"the suffix must be .toml or .json, got .yaml"):
        problem_from_mapping(GOOD).save(tmp_path / "plan.yaml")
    with pytest.raises(ProblemError, match="cannot be written"):
        problem_from_mapping(GOOD).save(tmp_path / "missing" / "plan.toml")


odd = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5) | st.just("none"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=6,
)
SECTIONS = {"": ProblemTable, "devices": Devices, "placement": PlacementTable, "time": Time, "memory": Memory}
PATHS = [f"{section}__{key}".removeprefix("__") for section, table in SECTIONS.items() for key in table.model_fields]


def refusal(data):
    """The message with which a mapping is refused; empty if it is read, and then written and read again."""
    try:
        problem = problem_from_mapping(data, "plan.json")
    except ProblemError as err:
        return str(err)
    assert problem_from_mapping(problem_to_mapping(problem)) == problem
    return ""


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(PATHS), odd, min_size=1, max_size=3), st.booleans())
def test_any_value_anywhere_is_read_or_refused_in_one_line(changes, custom):
    data = changed(**({"placement__kind": "custom", "placement__routes": [[0, 1], [1, 0]]} if custom else {}))
    for path, value in changes.items():
        section, _, key = path.rpartition("__")
        table = data.setdefault(section, {}) if section else data
        if isinstance(table, dict):
            table[key] = value
    message = refusal(data)
    assert not message or message.startswith("plan.json: ")
    assert len(message.splitlines()) <= 1
