"""Values of timestamp and date columns as dates and times of a calendar."""

from __future__ import annotations

import datetime
import functools
import operator
import re
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from specstream.declarations.durations import DAY, PER_SECOND
from specstream.declarations.options import refuses_unknown

__all__ = ["Counted", "Instant", "When", "when"]

_DAY = DAY // 10**9  # in seconds
_FIRST_DAY = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Counted(int):
    """A number that stands for a date, a time or a decimal. Compared with one or shown as a text,
    it is one.

    Attributes:
        number_formats: the ends of formats that are of numbers, and show the number.
    """

    number_formats = "bcdoxX"

    def own(self) -> Any:
        """What it stands for, as Python has it."""
        raise NotImplementedError

    def shown(self) -> Any:
        """What stands for it in a text."""
        return self.own()

    def __str__(self) -> str:
        return str(self.shown())

    def __repr__(self) -> str:
        return repr(self.shown())

    def __format__(self, spec: str) -> str:
        is_of_number = "%" not in spec and spec.endswith(tuple(self.number_formats))
        return format(int(self) if is_of_number else self.shown(), spec)

    def _compared(self, how: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, datetime.date | datetime.time | datetime.timedelta | Decimal):
            return how(self.own(), other)
        return how(int(self), int(other) if isinstance(other, Counted) else other)

    def __eq__(self, other: Any) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: Any) -> Any:
        return self._compared(operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(operator.ge, other)

    __hash__ = int.__hash__


class Instant(Counted):
    """The number that an operator has of a timestamp or a date, and what it counts.

    Attributes:
        unit: "s", "ms", "us", "ns", or "day".
        zone: of the column; None: none.
        is_moved: whether it was computed of one, by an addition; a text has its number then.
    """

    number_formats = "bcdoxXeEfFgGn"
    unit: str
    zone: str | None
    is_moved = False

    @classmethod
    def of(cls, number: int, unit: str, zone: str | None, is_moved: bool = False) -> Instant:
        """The number of units since 1970-01-01 UTC as an instant."""
        made = cls(number)
        made.unit, made.zone, made.is_moved = unit, zone, is_moved
        return made

    def own(self) -> datetime.date:
        if self.unit == "day":
            return _FIRST_DAY + datetime.timedelta(days=int(self))
        found = when(self)
        return found if self.zone is not None else found.without_zone()

    def shown(self) -> Any:
        return int(self) if self.is_moved else self.own()

    def __add__(self, other: Any) -> Any:
        return self._moved(int.__add__(self, other), other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._moved(int.__sub__(self, other), other)

    def _moved(self, number: Any, by: Any) -> Any:
        if number is NotImplemented or isinstance(by, Instant):
            return number
        return Instant.of(number, self.unit, self.zone, is_moved=True)

    def __reduce__(self) -> Any:
        return Instant.of, (int(self), self.unit, self.zone, self.is_moved)


class When(datetime.datetime):
    """A ``datetime.datetime``, which has nanoseconds beside its microseconds.

    Attributes:
        nanosecond: from 0 to 999; of a column of nanoseconds.
    """

    nanosecond = 0

    def without_zone(self) -> When:
        """The same on the clock, and in no zone."""
        return _with_nanosecond(self.replace(tzinfo=None), self.nanosecond)

    def __repr__(self) -> str:
        plain = datetime.datetime.combine(self.date(), self.timetz())
        return repr(plain.replace(fold=self.fold))

    def _ranked(self, compared: Any, equal: Callable[[int, int], bool], other: Any) -> Any:
        """What a comparison gives, of which the microseconds may not say all."""
        if compared is NotImplemented or datetime.datetime.__ne__(self, other):
            return compared
        return equal(self.nanosecond, getattr(other, "nanosecond", 0))

    def __eq__(self, other: Any) -> Any:
        return self._ranked(super().__eq__(other), operator.eq, other)

    def __ne__(self, other: Any) -> Any:
        return self._ranked(super().__ne__(other), operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._ranked(super().__lt__(other), operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._ranked(super().__le__(other), operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._ranked(super().__gt__(other), operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._ranked(super().__ge__(other), operator.ge, other)

    __hash__ = datetime.datetime.__hash__

    def __add__(self, other: Any) -> Any:
        return self._moved(super().__add__(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._moved(super().__sub__(other))

    def _moved(self, found: Any) -> Any:
        return _with_nanosecond(found, self.nanosecond) if isinstance(found, When) else found


def _with_nanosecond(moment: When, nanosecond: int) -> When:
    moment.nanosecond = nanosecond
    return moment


@refuses_unknown
def when(value: int, unit: str | None = None, zone: str | None = None) -> When:
    """The date and time that the value of a timestamp or date column stands for.

    In an operator it is computed before the operator runs, and its value has to depend on the event
    alone: ``ss.when(event.time).hour``.

    Args:
        value: of a column; a date stands for its midnight.
        unit: "s", "ms", "us", "ns" or "day", where the value is a plain number.
        zone: the zone of the calendar, like "Europe/Berlin"; that of the column by default, or UTC.

    Raises:
        TypeError: the value is a plain number, and no unit is given.
        OverflowError: the year is not from 1 to 9999.

    >>> when(86_400, "s").isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    if unit is None:
        if isinstance(value, datetime.date):
            return _of_own(value, zone)
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
    return _with_nanosecond(made, nanosecond)


def _of_own(value: datetime.date, zone: str | None) -> When:
    """The same of what is a date or time already: a function has it so if it compares it."""
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    found = value if zone is None else value.astimezone(_zone(zone))
    made = When.combine(found.date(), found.timetz()).replace(fold=found.fold)
    return _with_nanosecond(made, getattr(value, "nanosecond", 0))


@functools.cache
def _zone(name: str | None) -> datetime.tzinfo:
    if name is None or name == "UTC":
        return datetime.UTC
    offset = re.fullmatch(r"([+-])(\d\d):(\d\d)", name)
    if offset:
        minutes = 60 * int(offset[2]) + int(offset[3])
        return datetime.timezone(datetime.timedelta(minutes=minutes * int(offset[1] + "1")))
    return zoneinfo.ZoneInfo(name)
