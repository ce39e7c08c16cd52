"""Windows by the time of the events."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.container_fields import timers as timers_field
from specstream.declarations.options import integer, refuses_unknown
from specstream.declarations.state_layout import State, scalar
from specstream.definition.operator import Operator, operator
from specstream.errors import ConfigurationError
from specstream.windows.contents import Grid, Kept, contents_of
from specstream.windows.declared import (
    EARLY,
    IN_ORDER,
    LIMIT,
    LONGEST,
    NEVER,
    ON_TIME,
    Clock,
    alike,
    counted_in,
    declared,
    kept_in_dict,
    not_too_many,
    ticks,
    within,
)

__all__ = ["by_time"]

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

_FIRST = -(2**63) + 1


@refuses_unknown
def by_time(
    record: Any,
    add: Callable[..., Any],
    length: int | str | datetime.timedelta,
    step: int | str | datetime.timedelta | None = None,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    result: Callable[..., Any] | None = None,
    emits: Any = None,
    merge: Callable[..., Any] | None = None,
    remove: Callable[..., Any] | None = None,
    collect: bool = False,
    early: int = 0,
    origin: int = 0,
    unit: Any = None,
    limit: int = LIMIT,
    name: str = "by_time",
) -> Operator:
    """Windows of a length of time, one every ``step``, of each key.

    Windows begin at the multiples of ``step`` (from ``origin`` on). A window has the events whose
    time is not before its start, and before its end. It ends when an event of any key, or the
    frontier, reaches its end. Then, if it has an event, a row is emitted:

    - the columns of the key; ``start`` and ``end``, ints in the unit of the order column (see
      ``unit``);
    - ``kind``, which is ``"on time"``, or ``"early"`` for a window that has not ended;
    - the fields of the record, or what ``result`` gives.

    Args:
        record: a class of records, that says what is known of a window; its defaults are those of a
            window without events.
        add: ``add(window, event)`` changes the record.
        length: of a window: a number in the unit of the order column, or a duration, ``"1 hour"``.
        step: from the start of one to the start of the next; by default ``length``. If it is
            shorter an event is in several windows, at most 100,000, if it is longer in one or none.
            Both are numbers, or both durations. With ``merge`` a window has at most 100,000 times
            the greatest common divisor of both.
        event: columns of the events.
        key: column, or columns, of ints or strings; without, all events are in one.
        result: ``result(window)`` gives the columns ``emits``, as a tuple.
        emits: columns that ``result`` gives.
        merge: ``merge(window, other)`` adds what another record knows, of later events. Both have
            events. With it an event costs the same however many windows it is in.
        remove: ``remove(window, other)`` takes back what ``merge`` has added, of the earliest
            events, if others are left. With both, one record is kept per key; leave it out for what
            cannot be taken back (a maximum), or loses digits (a sum of floats).
        collect: ``add(event)`` gives the record that is kept of an event, and ``result(rows)`` gets
            a list of those in a window: any function, whose cost grows with the window.
        early: emit a row also after every so many events of a window; 0: none. Not with ``merge``
            or ``collect``.
        origin: where a window begins.
        unit: that lengths, ``start`` and ``end`` count, as ``time_unit=`` of an operator: s, ms, us
            or ns; by default us if a duration is given. An order column of times is cast to it.
            Or a type of columns, ``ss.timestamp("ms", "UTC")`` or ``datetime.date``: then ``start``
            and ``end`` are of it too, and not ints.
        limit: windows, panes or rows that are kept at most, of all keys together; one more raises
            OverflowError.
        name: of the operator.

    Its state has timers, so it takes tables with times (``order_by=``), within 2**62 of 0: an event
    whose time is not raises OverflowError. Events of different keys conflict only where windows are
    opened and closed at once. Where ``result`` raises, the window has ended without a row, and what
    was kept of it stays in the state.

    An event may be older than one before it, as in a later table: ``add`` gets it behind the
    others, and ``collect`` keeps it there. The operator raises ValueError for one that has come too
    late for one of its windows: a window with the same end or a later one, of any key, has ended.
    So the windows are those of all other events in the order of their times. With ``submit``, or
    ``watermark=`` in Spark, there are no such events.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> class Volume(ss.Record):
    ...     trades: int = 0
    ...     shares: int = 0
    >>> def add(volume, event):
    ...     volume.trades += 1
    ...     volume.shares += event.shares
    >>> columns = {"symbol": str, "shares": int}
    >>> volumes = ss.windows.by_time(Volume, add, 10, 5, event=columns, key="symbol")
    >>> day = {"time": [1, 7, 30], "symbol": ["A", "A", "A"], "shares": [100, 200, 300]}
    >>> with ss.Engine(volumes) as engine:
    ...     for row in engine.process(day, order_by="time", end=True).to_pylist():
    ...         print(*row.values())
    A -5 5 on time 1 100
    A 0 10 on time 2 300
    A 5 15 on time 1 200
    A 25 35 on time 1 300
    A 30 40 on time 1 300
    """
    what = "by_time"
    clock = Clock.counting(f"{what}: unit", unit, length)
    given = {"length": length, "step": step}
    length = ticks(f"{what}: length", length, clock)
    step = length if step is None else ticks(f"{what}: step", step, clock)
    alike(what, given.items())
    not_too_many(what, length, step, given, None if merge is None else math.gcd(length, step))
    origin = integer(f"{what}: origin", origin, -LONGEST, LONGEST)
    early = integer(f"{what}: early", early, 0, 2**62)
    of = declared(what, record, event, key, result, emits, limit, name, collect, clock.column)

    def opened(state, at):
        if at not in state.ends:
            end = at[-1] + length
            if end <= state.ended:
                raise ValueError(
                    f"{name}: an event of the window from {at[-1]} to {end}, and windows up to "
                    f"{state.ended} have ended; {IN_ORDER}"
                )
            state.ends.set(at, end)

    def goes_on(state, at):
        return (*at[:-1], at[-1] + step) in state.ends

    grid = Grid(length, step, origin, _FIRST)
    known = (opened, goes_on, _is_past)
    every = Kept(record, add, of.values, grid, of.place, of.limit, of.full, *known)
    kept = contents_of(what, every, merge, remove, collect)
    put, value, columns = kept.put, kept.value, of.columns
    fields: dict[str, Any] = {**kept.fields, "ends": timers_field(of.place)}
    fields["ended"] = scalar(int, NEVER)
    if early and "windows" not in kept.fields:
        raise ConfigurationError(
            f"{what}: early={early} goes with windows that are kept each by itself: leave merge= "
            "and collect= out"
        )
    counted, forgotten = _uncounted, _unforgotten
    if early:
        fields["counts"] = kept_in_dict(of, of.place, int)
        values = of.values

        def counted(state, key, time, emit):
            last = (time - origin) // step * step + origin
            for start in range(last, time - length, -step):
                at = (*key, start)
                state.counts[at] = state.counts.get(at, 0) + 1
                if state.counts[at] % early == 0:
                    row = values(state.windows[at])
                    if row is not None:
                        emit(*at, start + length, EARLY, *row)

        def forgotten(state, at):
            del state.counts[at]

    def ended(state, timer, emit):
        state.ended = timer.at
        forgotten(state, timer.key)
        row = value(state, timer.key)
        if row is not None:
            emit(*timer.key, timer.key[-1] + length, ON_TIME, *row)

    @operator(
        state=type("WindowsByTime", (State,), fields),
        event=of.event,
        emits=of.emits,
        on_timer=ended,
        name=name,
        time_unit=clock.time_unit,
    )
    def process(state, event, emit):
        key = tuple(getattr(event, name) for name in columns)
        within(event.timestamp)
        put(state, key, event.timestamp, event)
        counted(state, key, event.timestamp, emit)

    return counted_in(process, clock, "length", given["length"])


def _is_past(state, key, pane):
    """Whether the window of a key that has ended last had the pane, or one behind it."""
    span = state.spans.get(key)
    return span is not None and pane < span.until


def _uncounted(state, key, time, emit):
    """Where no row is emitted early."""


def _unforgotten(state, at):
    """Likewise."""
