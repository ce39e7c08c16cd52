"""Lengths of time: as users write them, as whole nanoseconds, and as descriptions have them."""

from __future__ import annotations

import datetime

from specstream.errors import ConfigurationError, SpecstreamError

__all__ = [
    "DAY",
    "PER_SECOND",
    "TICKS",
    "UNIT_NAMES",
    "UNIT_TICKS",
    "described_duration",
    "duration_text",
    "nanoseconds",
]

DAY = 24 * 60 * 60 * 10**9
# Of the units that Arrow counts times in.
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UNIT_TICKS = {**{name: 10**9 // many for name, many in PER_SECOND.items()}, "day": DAY}
"""Units that an operator may count times in, and their lengths in nanoseconds."""
UNIT_NAMES = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "day": "days",
}
# From one time to the next, in these and in days.
TICKS = tuple(UNIT_TICKS.values())
_MOST = 2**63 - 1
_UNITS = {
    "days": DAY,
    "hours": 60 * 60 * 10**9,
    "minutes": 60 * 10**9,
    "seconds": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}


def nanoseconds(
    option: str,
    amount: str | datetime.timedelta,
    error: type[SpecstreamError] = ConfigurationError,
) -> int:
    """A duration, which may be below zero, in nanoseconds.

    Raises:
        error: the text is no duration, or it is longer than int64 has nanoseconds.

    >>> nanoseconds("watermark", "1 minute 30 seconds")
    90000000000
    """
    try:
        found = _of_timedelta(amount) if type(amount) is datetime.timedelta else _parsed(amount)
        if not -_MOST <= found <= _MOST:
            raise ValueError("it is longer than 292 years")
    except ImportError:
        raise error(
            f"{option}={amount!r}: texts are read by pandas, which is not installed: give a "
            "datetime.timedelta, or install pandas"
        ) from None
    except (ValueError, OverflowError) as reason:
        raise error(
            f'{option}={amount!r} is no duration ({reason}); expected one such as "10 seconds", '
            '"1 minute 30 seconds", "500 ms" or "2 days"'
        ) from None
    return found


def _of_timedelta(amount: datetime.timedelta) -> int:
    return amount // datetime.timedelta(microseconds=1) * 1000


def _parsed(amount: str | datetime.timedelta) -> int:
    import pandas  # of the Spark extra; slow to import

    # A plain number in quotes would be nanoseconds to pandas; here it has no unit.
    if isinstance(amount, str) and not any(map(str.isalpha, amount)):
        raise ValueError("it has no unit")
    parsed = pandas.Timedelta(amount)
    if parsed is pandas.NaT:
        raise ValueError("it is no time")
    return int(parsed.value)


def duration_text(length: int) -> str:
    """A duration in the largest unit that it is a multiple of; each has one such text.

    >>> duration_text(5400 * 10**9), duration_text(DAY)
    ('90 minutes', '1 day')
    """
    unit = next(unit for unit, of in _UNITS.items() if length % of == 0)
    number = length // _UNITS[unit]
    return f"{number} {unit.removesuffix('s') if number == 1 and len(unit) > 2 else unit}"


def described_duration(text: str) -> int | None:
    """What :func:`duration_text` gave, in nanoseconds; None: it gave no such text."""
    number, _, unit = text.partition(" ")
    of = _UNITS.get(unit) or _UNITS.get(unit + "s")
    if of is None or not (number.isascii() and number.isdecimal()) or len(number) > 19:
        return None
    length = int(number) * of
    return length if 0 < length <= _MOST and duration_text(length) == text else None
