"""Exact numbers in, integer ticks inside, exact numbers out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

from solver.errors import ProblemError

Number = int | float | str | Decimal | Fraction
"""What files and constructors accept; floats by their repr, strings such as "1/3" and "0.601" too."""

MAX_TICKS = 2**60
"""Largest sum of ticks a problem may reach: sums of two such stay inside int64."""


def exact(value: object, key: str = "value") -> Fraction:
    """The exact value of a non-negative number.

    Raises ProblemError, naming ``key``, for text that is no number, NaN, infinity and negatives.

    >>> exact(0.1), exact("1/3"), exact(Decimal("0.601"))
    (Fraction(1, 10), Fraction(1, 3), Fraction(601, 1000))
    """
    number = _fraction(value, key)
    if number < 0:
        raise ProblemError(f"must not be negative, got {value}", key)
    return number


def _fraction(value: object, key: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal, Rational)):
        raise ProblemError(f"must be a number, got {_short(value)}", key)
    text = repr(float(value)) if isinstance(value, float) else value
    try:
        number = Decimal(text) if isinstance(text, str) and "/" not in text else text
        if isinstance(number, Decimal) and abs(number.adjusted()) > 100 and number.is_finite() and number:
            raise ProblemError(f"is out of range, got {_short(value)}; use a larger or smaller unit", key)
        return Fraction(number)
    except (ValueError, ArithmeticError):
        raise ProblemError(f"must be a finite number, got {_short(value)}", key) from None


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, (str, bytes)) else str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def whole(value: object, key: str, at_least: int) -> int:
    """An integer of at least ``at_least``; ProblemError otherwise."""
    number = exact(value, key)
    if number.denominator != 1 or number < at_least:
        raise ProblemError(f"must be a whole number of at least {at_least}, got {_short(value)}", key)
    return int(number)


def common_tick(values: Iterable[Fraction]) -> Fraction:
    """The largest unit of which every value is a whole multiple (1 if all are 0).

    >>> common_tick([Fraction(1, 2), Fraction(3, 4)])
    Fraction(1, 4)
    """
    distinct = {v for v in values if v}
    denominator = math.lcm(*(v.denominator for v in distinct))
    numerator = math.gcd(*(int(v * denominator) for v in distinct))
    return Fraction(numerator or 1, denominator)


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
    twos_and_fives = value.denominator
    for prime in (2, 5):
        while twos_and_fives % prime == 0:
            twos_and_fives //= prime
    if twos_and_fives > 1:
        return str(value)
    digits = max(1, value.denominator.bit_length())
    whole_part = value * 10**digits
    return f"{Decimal(int(whole_part)).scaleb(-digits).normalize():f}" if digits < 25 else str(value)
