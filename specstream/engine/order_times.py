"""The times that events are ordered by: all of one type, which the first of them settles.

They are kept as int64 keys of the same order. Frontiers that are given before there is a type are
kept as they were given until then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from specstream.columns.conversion import of_order
from specstream.columns.conversion import time_type as in_unit
from specstream.columns.events import CheckTimes, check_unit_declared, order_key
from specstream.declarations.options import shown
from specstream.declarations.schema import Schema
from specstream.engine.sources import Source
from specstream.errors import InputError

__all__ = ["OrderTimes"]

_INT64 = pa.int64()


class OrderTimes:
    """Those of the submitted events of one engine.

    Args:
        check_times: asked whether times may be of a type; None: they may be of each.
        schema: of the events, which says in which unit the operator counts.
        what: names the operator in messages.

    Attributes:
        type: of the order column; None: nothing has come that has one. All timestamps must be of
            one type, or they could not be compared.
        frontiers: those given before any event.
    """

    def __init__(self, check_times: CheckTimes | None, schema: Schema, what: str) -> None:
        self._check_times = check_times
        self._schema = schema
        self._what = what
        self.type: pa.DataType | None = None
        self.frontiers: list[tuple[Source, Any]] = []

    def settle(self, time_type: pa.DataType) -> None:
        """All timestamps are of this type from now on.

        Raises:
            InputError: a frontier that was given before is not; nothing has changed.
        """
        reached = []
        for known, to in self.frontiers:
            try:
                reached.append((known, self.key(to, time_type)))
            except InputError:
                raise InputError(
                    f"{self._what}: the frontier {_shown(to)} of source {known.name!r} is no "
                    f"{time_type}, as the events have it: advance() the source to a time of that "
                    "type first"
                ) from None
        self.type, self.frontiers = time_type, []
        for known, at in reached:
            known.frontier = at if known.frontier is None else max(known.frontier, at)

    def type_of(self, time: Any, whose: str = "") -> pa.DataType:
        """Of the first of all times; ``whose`` it is stands in messages.

        Raises:
            InputError: it is no time.
        """
        if isinstance(time, int) and not isinstance(time, bool):
            return pa.int64()
        try:
            found = pa.array([time]).type
            if getattr(time, "nanosecond", 0):  # of pandas
                found = pa.timestamp("ns", found.tz)
        except Exception:  # of Arrow, or of an object that it asks what it is
            found = None
        if found is None or of_order(pa.array([], found)) is None:
            raise InputError(
                f"{self._what}: time {_shown(time)}{whose}; expected an integer, a float, "
                "a timestamp or a date"
            )
        found = self.in_unit(found)
        check_unit_declared(found, self._schema, f"the time{whose or ' of the event'}", self._what)
        return found

    def in_unit(self, of: pa.DataType) -> pa.DataType:
        """The type that times of a type are kept in: that of the operator's unit."""
        return in_unit(of, self._schema.time_unit)

    def advance(self, source: Source, to: Any) -> None:
        """Moves a source's frontier; one that lies behind changes nothing."""
        if to is None:
            source.end()
        elif self.type is None:
            whose = f" of source {source.name!r}'s frontier"
            time_type = self.type_of(to, whose)
            if self._check_times is not None:
                self._check_times(time_type, f"the frontier of source {source.name!r}")
            self.key(to, time_type, whose)
            # One of another type takes the place of those before.
            self.frontiers = [
                (known, before)
                for known, before in self.frontiers
                if known is not source or self.type_of(before, whose) == time_type
            ]
            self.frontiers.append((source, to))
        else:
            reached = self.key(to)
            if source.frontier is None or reached > source.frontier:
                source.frontier = reached

    def key(self, time: Any, time_type: pa.DataType | None = None, whose: str = "") -> int:
        """A time as it is kept; of the type that the events have, or are to have.

        Raises:
            InputError: it is not of that type.
        """
        before = ", as the events before have it" if time_type is None else ""
        time_type = self.type if time_type is None else time_type
        if type(time) is int and time_type == _INT64 and -(2**63) <= time < 2**63:
            return time
        try:
            if (
                isinstance(time, pa.Scalar)
                and in_unit(time.type, self._schema.time_unit) == time_type
            ):
                time = time.cast(time_type)  # which refuses to cut off digits
            array = pa.array([time], time_type)
        except (pa.ArrowException, OverflowError, TypeError):
            array = None
        is_finer = pa.types.is_temporal(time_type) and time_type != pa.timestamp(
            "ns", getattr(time_type, "tz", None)
        )
        if not pa.types.is_floating(time_type) and (
            _is_float(time) or (is_finer and getattr(time, "nanosecond", 0))
        ):
            array = None  # Arrow would cut off what is behind the point
        if array is None or array.null_count:
            raise InputError(
                f"{self._what}: time {_shown(time)}{whose} is no {time_type}{before}: give a value "
                "of that type; a frontier may be None, the end of the source"
            )
        if whose and pa.types.is_floating(time_type) and time != time:
            raise InputError(
                f"{self._what}: time {time!r}{whose} has no place in an order: give a number"
            )
        return int(order_key(array, "timestamp", self._what)[0])


def _shown(time: Any) -> str:
    """A time in a message; one of a snapshot is Arrow's, which may have no way to show it."""
    if not isinstance(time, pa.Scalar):
        return shown(time)
    try:
        return str(time)
    except (KeyError, OverflowError, ValueError):  # no such zone, no such year
        return f"of type {time.type}"


def _is_float(time: Any) -> bool:
    if isinstance(time, pa.Scalar):
        return bool(pa.types.is_floating(time.type))
    return isinstance(time, float | np.floating)
