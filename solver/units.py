"""Exact numbers in, integer ticks inside, exact numbers out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

from solver.errors import ProblemError

Number = int | float | str | Decimal | Fraction
"""What files and constructors accept; floats by their repr, strings such as "1/3" and "0.601" too."""

NUMBER_TYPES = (int, float, str, Decimal, Rational)

MAX_TICKS = 2**53
"""Largest sum of ticks a problem may reach: far inside int64, and whole in a float, as CP-SAT reports its bounds."""


MAX_DIGITS = 100
"""Most digits of a number's numerator and denominator: no measurement has more, and arithmetic stays quick."""


def exact(value: object, key: str = "value") -> Fraction:
    """The exact value of a non-negative number.

    Raises ProblemError, naming ``key``, for text that is no number, NaN, infinity and negatives.

    >>> exact(0.1), exact("1/3"), exact(Decimal("0.601"))
    (Fraction(1, 10), Fraction(1, 3), Fraction(601, 1000))
    """
    if isinstance(value, bool) or not isinstance(value, NUMBER_TYPES):
        raise ProblemError(f"must be a number, got {shown(value)}", key)
    try:
        number = _fraction(value)
    except OverflowError:
        rule = f"is out of range, got {shown(value)}; use another unit, or round to fewer than {MAX_DIGITS} digits"
        raise ProblemError(rule, key) from None
    except (ValueError, ArithmeticError):
        raise ProblemError(f"must be a finite number, got {shown(value)}", key) from None
    if number < 0:
        raise ProblemError(f"must not be negative, got {shown(value)}", key)
    return number


def _fraction(value: int | float | str | Decimal | Rational) -> Fraction:
    """OverflowError for a number of too many digits, ValueError or ArithmeticError for none at all."""
    if isinstance(value, Fraction) and type(value.numerator) is type(value.denominator) is int:
        number = value  # the same object: equal problems then compare by identity
    elif isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))  # numpy's integers too
    elif isinstance(value, str) and not (value.isascii() and "_" not in value):
        raise ValueError(value)
    elif isinstance(value, str) and "/" in value:
        number = Fraction(value)
    else:
        number = _from_decimal(Decimal(repr(float(value)) if isinstance(value, float) else value))
    if max(abs(number.numerator), number.denominator) >= 10**MAX_DIGITS:
        raise OverflowError
    return number


def _from_decimal(number: Decimal) -> Fraction:
    """Without working out the digits of 1e999999 first."""
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(number)
    if number and (exponent < -MAX_DIGITS or number.adjusted() > MAX_DIGITS):
        raise OverflowError
    return Fraction(number) if number else Fraction(0)


def shown(value: object) -> str:
    """``value`` as an error quotes it, in at most 40 characters."""
    try:
        text = repr(value) if isinstance(value, (str, bytes)) else str(value)
    except ValueError:  # Python writes no integer of over 4300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= 40 else text[:37] + "..."


def whole(value: object, key: str, at_least: int, at_most: int | None = None) -> int:
    """An integer from ``at_least`` to ``at_most``; ProblemError otherwise."""
    number = exact(value, key)
    if number.denominator != 1 or number < at_least:
        raise ProblemError(f"must be a whole number of at least {at_least}, got {shown(value)}", key)
    if at_most is not None and number > at_most:
        raise ProblemError(f"must be at most {at_most:,}, got {shown(value)}", key)
    return int(number)


def listed(value: object, key: str, kind: str = "a list") -> tuple[Any, ...]:
    """The items of a list or the like; ProblemError for a single value or a text."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ProblemError(f"must be {kind}, got {shown(value)}", key)
    return tuple(value)


def common_tick(values: Iterable[int | Fraction]) -> Fraction:
    """The largest unit of which every value is a whole multiple (1 if all are 0).

    >>> common_tick([Fraction(1, 2), Fraction(3, 4)])
    Fraction(1, 4)
    """
    distinct = {v for v in values if v}
    denominator = math.lcm(*(v.denominator for v in distinct))
    numerator = math.gcd(*(v.numerator * (denominator // v.denominator) for v in distinct))
    return Fraction(numerator or 1, denominator)


def in_ticks(value: int | Fraction, unit: Fraction) -> int:
    """How many times ``unit`` goes into ``value``; in whole numbers, as Fraction's own arithmetic is slow."""
    return value.numerator * unit.denominator // (value.denominator * unit.numerator)


def of_ticks(ticks: int, unit: Fraction) -> int | Fraction:
    """``ticks`` times ``unit``, as an int where it is whole.

    >>> of_ticks(3, Fraction(1, 2)), of_ticks(4, Fraction(1, 2)), in_ticks(2, Fraction(1, 2))
    (Fraction(3, 2), 2, 4)
    """
    whole_part, rest = divmod(ticks * unit.numerator, unit.denominator)
    return Fraction(ticks * unit.numerator, unit.denominator) if rest else whole_part


def plain(value: Fraction) -> int | Fraction:
    """The same number, as an int where it is whole."""
    return int(value) if value.denominator == 1 else value


def to_json(value: int | float | Fraction) -> int | float | str:
    """A JSON number, or a string such as "1/3" for a value that no float writes back exactly.

    >>> to_json(Fraction(3)), to_json(Fraction(601, 1000)), to_json(Fraction(1, 3))
    (3, 0.601, '1/3')
    """
    if not isinstance(value, Fraction):
        return value
    if value.denominator == 1:
        return int(value)
    return float(value) if Fraction(repr(float(value))) == value else _decimal_text(value)


def _decimal_text(value: Fraction) -> str:
    """All digits of a decimal of up to 25 places, else numerator/denominator."""
    places = next((n for n in range(1, 26) if 10**n % value.denominator == 0), None)
    if places is None:
        return str(value)
    digits = str(abs(int(value * 10**places))).zfill(places + 1)
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
