"""Values of timestamp and date columns as dates and times of a calendar."""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo
from typing import Any

from specstream.declarations.durations import DAY, PER_SECOND

__all__ = ["Instant", "When", "when"]

_DAY = DAY // 10**9  # in seconds
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Instant(int):
    """The number that an operator has of a timestamp or a date, and what it counts.

    Attributes:
        unit: "s", "ms", "us", "ns", or "day".
        zone: of the column; None: none.
    """

    unit: str
    zone: str | None

    @classmethod
    def of(cls, number: int, unit: str, zone: str | None) -> Instant:
        """The number of units since 1970-01-01 UTC as an instant."""
        made = cls(number)
        made.unit, made.zone = unit, zone
        return made

    def __add__(self, other: Any) -> Any:
        return self._moved(int.__add__(self, other), other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._moved(int.__sub__(self, other), other)

    def _moved(self, number: Any, by: Any) -> Any:
        if number is NotImplemented or isinstance(by, Instant):
            return number
        return Instant.of(number, self.unit, self.zone)

    def __reduce__(self) -> Any:
        return Instant.of, (int(self), self.unit, self.zone)


class When(datetime.datetime):
    """A ``datetime.datetime``, which has nanoseconds beside its microseconds.

    Attributes:
        nanosecond: from 0 to 999; of a column of nanoseconds.
    """

    nanosecond = 0


def when(value: int, unit: str | None = None, zone: str | None = None) -> When:
    """The date and time that the value of a timestamp or date column stands for.

    In an operator it is computed before the operator runs, and its value has to depend on the event
    alone: ``ss.when(event.time).hour``.

    Args:
        value: of a column; a day is its midnight.
        unit: "s", "ms", "us", "ns" or "day", where the value is a plain number.
        zone: the zone of the calendar, like "Europe/Berlin"; that of the column by default, or UTC.

    Raises:
        TypeError: the value is a plain number, and no unit is given.
        OverflowError: it is no year from 1 to 9999.

    >>> when(86_400, "s").isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    if unit is None:
        if not isinstance(value, Instant):
            raise TypeError(
                f"ss.when takes the value of a timestamp or date column, and gets {value!r}: "
                'say what it counts, ss.when(x, "us")'
            )
        unit = value.unit
    if zone is None and isinstance(value, Instant):
        zone = value.zone
    number, nanosecond = int(value), 0
    if unit == "ns":
        number, nanosecond = divmod(number, 1000)
        unit = "us"
    if unit == "day":
        since = datetime.timedelta(days=number)
    elif unit in PER_SECOND:
        per_second = PER_SECOND[unit]
        seconds, rest = divmod(number, per_second)
        since = datetime.timedelta(
            days=seconds // _DAY,
            seconds=seconds % _DAY,
            microseconds=rest * (10**6 // per_second),
        )
    else:
        raise ValueError(f"ss.when has the unit {unit!r}; expected s, ms, us, ns or day")
    found = (_EPOCH + since).astimezone(_zone(zone))
    made = When.combine(found.date(), found.timetz()).replace(fold=found.fold)
    made.nanosecond = nanosecond
    return made


@functools.cache
def _zone(name: str | None) -> datetime.tzinfo:
    if name is None or name == "UTC":
        return datetime.UTC
    offset = re.fullmatch(r"([+-])(\d\d):(\d\d)", name)
    if offset:
        minutes = 60 * int(offset[2]) + int(offset[3])
        return datetime.timezone(datetime.timedelta(minutes=minutes * int(offset[1] + "1")))
    return zoneinfo.ZoneInfo(name)
