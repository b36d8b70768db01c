import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from solver.errors import ProblemError
from solver.units import common_tick, exact, listed, plain, shown, to_json, whole


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, Fraction(3)),
        (0.1, Fraction(1, 10)),  # by repr, not the binary value 3602879701896397/2**55
        (1e-7, Fraction(1, 10**7)),
        ("0.601", Fraction(601, 1000)),
        ("1/3", Fraction(1, 3)),
        (" 2.50 ", Fraction(5, 2)),
        ("1e3", Fraction(1000)),
        (Decimal("18.522"), Fraction(9261, 500)),
        (Fraction(2, 7), Fraction(2, 7)),
        (-0.0, Fraction(0)),
        ("0e999999999", Fraction(0)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        ("9" * 100, Fraction(10**100 - 1)),
    ],
)
def test_numbers_are_taken_exactly(value: object, number: Fraction) -> None:
    got = exact(value)
    assert got == number
    assert type(got.numerator) is int  # a numpy integer inside would overflow silently


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        ("nan", "finite"),
        ("-inf", "finite"),
        (Decimal("sNaN"), "finite"),
        ("", "finite"),
        ("four", "finite"),
        ("1/0", "finite"),
        ("1e5/3", "finite"),
        ("1_000", "finite"),
        ("٣", "finite"),  # a digit elsewhere, no digit of a file format
        (-1, "negative"),
        ("-1/3", "negative"),
        (-(10**200), "out of range"),
        ("1e101", "out of range"),
        ("1e400", "out of range"),
        ("1e-400", "out of range"),
        ("1e999999999", "out of range"),
        (5e-324, "out of range"),
        (10**200, "out of range"),
        ("9" * 5000, "out of range"),
        ("1/" + "9" * 200, "out of range"),
        (Fraction(1, 10**5000), "out of range"),
        ("0." + "3" * 100_000, "out of range"),
        (True, "must be a number"),
        (None, "must be a number"),
        ([1], "must be a number"),
        (b"1", "must be a number"),
        (1j, "must be a number"),
    ],
)
def test_what_is_no_number_is_one_line_with_its_key(value: object, rule: str) -> None:
    with pytest.raises(ProblemError, match=rule) as error:
        exact(value, "time.forward[2]")
    message = str(error.value)
    assert message.startswith("time.forward[2]: ")
    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize("value", [4, 4.0, "4", Decimal(4), np.int32(4)])
def test_whole_numbers_come_out_as_int(value: object) -> None:
    assert type(whole(value, "n", 1)) is int
    assert whole(value, "n", 1) == 4


@pytest.mark.parametrize(("value", "rule"), [(0, "at least 1"), (1.5, "at least 1"), (9, "at most 8"), ("x", "finite")])
def test_whole_numbers_stay_in_range(value: object, rule: str) -> None:
    with pytest.raises(ProblemError, match=rule):
        whole(value, "n", 1, 8)


def test_the_common_tick_is_the_largest_that_divides_all() -> None:
    # 3/4 and 1/2 are 3 and 2 quarters; 6 and 4 are 3 and 2 twos; 2/3 and 4/5 are 5 and 6 times 2/15.
    assert common_tick([Fraction(3, 4), Fraction(1, 2)]) == Fraction(1, 4)
    assert common_tick([Fraction(6), Fraction(4), Fraction(0)]) == 2
    assert common_tick([Fraction(2, 3), Fraction(4, 5)]) == Fraction(2, 15)
    assert common_tick([]) == common_tick([Fraction(0)]) == 1


@pytest.mark.parametrize(
    "value",
    [
        Fraction(0),
        Fraction(7),
        Fraction(10**40),
        Fraction(1, 3),
        Fraction(601, 1000),
        Fraction(1, 2**20),
        Fraction(1, 2**30),
        Fraction(7, 5**20),
        Fraction(12345678901234567890123 * 1024 + 1, 1024),  # 33 digits: no float has them
        Fraction(10**40 + 1, 10),
    ],
)
def test_json_numbers_read_back_as_they_were(value: Fraction) -> None:
    written = to_json(value)
    assert isinstance(written, (int, float, str))
    assert exact(written) == value


def test_json_takes_floats_and_ints_as_they_are() -> None:
    assert to_json(0.25) == 0.25
    assert to_json(3) == 3
    assert to_json(Fraction(-1, 2)) == -0.5
    assert math.isclose(float(to_json(Fraction(1, 8))), 0.125)


def test_plain_numbers_are_int_where_whole() -> None:
    assert type(plain(Fraction(4, 2))) is int
    assert plain(Fraction(1, 2)) == Fraction(1, 2)


def test_quotes_are_short_even_of_what_python_will_not_print() -> None:
    assert shown("x" * 1000) == "'" + "x" * 36 + "..."
    assert "digits" in shown(10**5000)
    with pytest.raises(ProblemError, match="out of range, got a number of thousands of digits"):
        exact(10**5000)


def test_lists_are_any_iterable_but_text() -> None:
    assert listed(np.array([1, 2]), "key") == (1, 2)
    for value in (5, "ab", b"ab", {"a": 1}, None):
        with pytest.raises(ProblemError, match="key: must be a list"):
            listed(value, "key")
