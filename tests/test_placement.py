from decimal import Decimal

import numpy as np
import pytest

from solver import Placement, ProblemError


def test_linear_runs_stage_s_on_device_s() -> None:
    assert Placement.linear(3).routes == ((0, 1, 2),)
    assert Placement.linear(1).routes == ((0,),)


def test_looped_goes_round() -> None:
    assert Placement.looped(2, 3).routes == ((0, 1, 0, 1, 0, 1),)


def test_wave_goes_forth_and_back() -> None:
    assert Placement.wave(3, 2).routes == ((0, 1, 2, 2, 1, 0),)
    assert Placement.wave(2, 3).routes == ((0, 1, 1, 0, 0, 1),)
    assert Placement.wave(3, 1).routes == Placement.linear(3).routes


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
def test_bidirectional_runs_odd_microbatches_up(devices: int) -> None:
    placement = Placement.bidirectional(devices)
    assert placement.route_of(0) == placement.route_of(2) == tuple(range(devices))
    assert placement.route_of(1) == tuple(reversed(range(devices)))


def test_custom_counts_its_devices() -> None:
    assert Placement.custom([[0, 3], [3, 0]]).devices == 4
    assert Placement.custom([[0, 1]], devices=5).devices == 5
    assert Placement.custom([[0, 1], [1, 0], [1, 1]]).route_of(5) == (1, 1)  # 5 mod 3


def test_equal_numbers_of_any_type_make_equal_placements() -> None:
    for two in (2.0, "2", Decimal(2), np.int64(2)):
        placement = Placement.bidirectional(two)  # type: ignore[arg-type]
        assert placement == Placement.bidirectional(2)
        assert type(placement.devices) is int
    assert Placement([[0.0, "1"]], 2) == Placement(((0, 1),), 2)  # type: ignore[arg-type,list-item]
    assert hash(Placement([[0, 1]], 2)) == hash(Placement(((0, 1),), 2))  # type: ignore[arg-type]
    assert Placement.custom(np.array([[0, 1]])) == Placement.custom([[0, 1]])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("routes", "rule"),
    [
        ([], "at least one route"),
        ([[]], "at least one route"),
        ([[0, 1], [0]], r"routes\[1\]: has 1 stages where the first route has 2"),
        ([[0, -1]], "must not be negative"),
        ([[0, 0.5]], "whole number"),
        ([[0, "x"]], "finite number"),
        ([0, 1], "must be a list"),
        (5, "must be a list"),
        ("01", "must be a list"),
        ({0: [0]}, "must be a list"),
        ([[10**8]], "devices.count: must be at most 1,024"),
    ],
)
def test_wrong_routes_are_named(routes: object, rule: str) -> None:
    with pytest.raises(ProblemError, match=rule):
        Placement.custom(routes)  # type: ignore[arg-type]


def test_a_device_that_does_not_exist_is_named() -> None:
    with pytest.raises(ProblemError, match=r"routes\[0\]\[1\]: device 2 does not exist: .* 0 to 1"):
        Placement.custom([[0, 2]], devices=2)


@pytest.mark.parametrize("kind", ["linear", "looped", "wave", "bidirectional"])
@pytest.mark.parametrize("devices", [0, -1, 1.5, "many", 10**30, None, float("nan")])
def test_wrong_device_counts_are_named(kind: str, devices: object) -> None:
    with pytest.raises(ProblemError, match=r"^devices\.count: must"):
        getattr(Placement, kind)(devices)


@pytest.mark.parametrize("chunks", [0, -1, 10**12, "x"])
@pytest.mark.parametrize("kind", ["looped", "wave"])
def test_wrong_chunks_are_named(kind: str, chunks: object) -> None:
    with pytest.raises(ProblemError, match=r"^placement\.chunks: must"):
        getattr(Placement, kind)(2, chunks)


def test_it_says_what_it_is() -> None:
    assert str(Placement.linear(2)) == "linear"
    assert str(Placement.wave(2, 4)) == "wave (V=4)"
