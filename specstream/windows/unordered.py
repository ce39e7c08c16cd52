"""Windows by times that do not come in order, with results that are corrected."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pyarrow import types as is_of

from specstream.declarations.container_fields import priority_queue
from specstream.declarations.options import integer, refused, refuses_unknown
from specstream.declarations.record_types import columns_declared
from specstream.declarations.records import Record
from specstream.declarations.schema import Column, Schema
from specstream.declarations.state_layout import State, scalar
from specstream.definition.operator import Operator, operator
from specstream.windows.declared import (
    EARLY,
    LATE,
    LIMIT,
    LONGEST,
    NEVER,
    ON_TIME,
    Clock,
    alike,
    declared,
    kept_in_dict,
    not_too_many,
    takes,
    ticks,
    within,
)

__all__ = ["by_column"]

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls


@refuses_unknown
def by_column(
    record: Any,
    add: Callable[..., Any],
    time: str,
    length: int | str | datetime.timedelta,
    step: int | str | datetime.timedelta | None = None,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    delay: int | str | datetime.timedelta = 0,
    lateness: int | str | datetime.timedelta = 0,
    result: Callable[..., Any] | None = None,
    emits: Any = None,
    early: int = 0,
    origin: int = 0,
    unit: Any = None,
    limit: int = LIMIT,
    name: str = "by_column",
) -> Operator:
    """Windows by the times in a column, in the order in which the events come.

    :func:`by_time` needs all events of a window in order, as an engine with frontiers or a
    watermark gives them. This one takes events as they come, and corrects the rows that it has
    emitted. Its own *watermark* is the largest time of all events so far, less ``delay``. Rows of a
    window are told apart by their ``kind``:

    - ``"early"``: the watermark has not reached the end of the window; after every ``early`` events
      of it;
    - ``"on time"``: the watermark has reached the end; once for each window that has an event by
      then;
    - ``"late"``: one more event has come since, and the row includes it.

    Rows on time come in the order of the windows' ends, those of one end in the order in which the
    windows got their first event. An event that is too late for all of its windows, as the
    watermark is ``lateness`` behind their ends, is left out and counted.

    Args:
        record: as of :func:`by_time`, as are ``add``, ``step``, ``event``, ``key``, ``result``,
            ``emits``, ``origin``, ``limit`` and ``name``.
        add: see there.
        time: column of the time: an int, a timestamp or a date.
        length: of a window, in the unit of that column, or a duration.
        step: see there.
        event: see there.
        key: see there.
        delay: how long after the latest event one is on time.
        lateness: how long a window is kept for late events.
        result: see there.
        emits: see there.
        early: emit a row also after every so many events of a window that has not ended; 0: none.
        origin: see there.
        unit: of the column ``time`` where that is of ints and a duration is given: s, ms, us or
            ns, by default us. A column of timestamps or dates has its own.
        limit: see there.
        name: see there.

    State: ``dropped`` counts the events that were left out; ``windows`` and what finds them.
    Windows that the watermark has not come to at the end of the stream are not emitted. Where
    ``result`` raises for a window, the event that would end it is not applied, nor is any that is
    later in time: so ``result`` must not raise. An event whose time is the largest so far moves the
    watermark, which all others read: they conflict.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> class Count(ss.Record):
    ...     clicks: int = 0
    >>> def add(count, event):
    ...     count.clicks += 1
    >>> clicks = ss.windows.by_column(Count, add, "at", 10, event={"at": int}, lateness=20)
    >>> with ss.Engine(clicks) as engine:
    ...     for row in engine.process({"at": [3, 12, 7, 35, 8]}).to_pylist():
    ...         print(*row.values())
    ...     engine.state.dropped
    0 10 on time 1
    0 10 late 2
    10 20 on time 1
    1
    """
    what = "by_column"
    given = columns_declared(event, "event")
    column_of_time = Schema.of({time: given[time]}, "event").columns[0] if time in given else None
    if column_of_time is None or column_of_time.kind != "int" or column_of_time.nullable:
        raise refused(f"{what}: time", time, "a column of the events: an int or a time, no null")
    clock = _clock(f"{what}: unit", unit, time, column_of_time)
    given = {"length": length, "step": step, "delay": delay, "lateness": lateness}
    length = ticks(f"{what}: length", length, clock)
    step = length if step is None else ticks(f"{what}: step", step, clock)
    delay = ticks(f"{what}: delay", delay, clock, 0)
    lateness = ticks(f"{what}: lateness", lateness, clock, 0)
    alike(what, given.items())
    not_too_many(what, length, step, given)
    origin = integer(f"{what}: origin", origin, -LONGEST, LONGEST)
    early = integer(f"{what}: early", early, 0, 2**62)
    takes(what, "add", add, "window", "event")
    of = declared(what, record, event, key, result, emits, limit, name, time=clock.column)
    columns, values = of.columns, of.values
    fields_of_place = dict(zip((*columns, "start"), of.place, strict=True))
    place: Any = type("Place", (Record,), {"__annotations__": fields_of_place})
    fields: dict[str, Any] = {
        "latest": scalar(int, NEVER),
        "dropped": scalar(int),
        "windows": kept_in_dict(of, of.place, record),
        "counts": kept_in_dict(of, of.place, int),
        # The windows of each end, numbered; and the ends that the watermark has to come to.
        "places": kept_in_dict(of, (int, int), place),
        "ends": kept_in_dict(of, int, int),
        "open": replace(priority_queue(int, limit=of.limit), full=of.full),
        "kept": replace(priority_queue(int, limit=of.limit), full=of.full),
    }

    def at_of(state, end, number):
        found = state.places[(end, number)]
        return (*tuple(getattr(found, name) for name in columns), found.start)

    def opened(state, at, key, start, end, watermark):
        state.windows[at] = record()
        state.counts[at] = 0
        if end not in state.ends:
            state.ends[end] = 0
            state.kept.push(end)
            if end > watermark:
                state.open.push(end)
        state.places[(end, state.ends[end])] = place(*key, start)
        state.ends[end] += 1

    @operator(
        state=type("WindowsByColumn", (State,), fields),
        event=of.event,
        emits=of.emits,
        name=name,
    )
    def process(state, event, emit):
        key = tuple(getattr(event, name) for name in columns)
        moment = getattr(event, time)
        within(moment)
        watermark = state.latest - delay if state.latest > NEVER else NEVER
        last = (moment - origin) // step * step + origin
        is_in = last + length <= moment  # between two windows it is in none, and not late
        for start in range(last, moment - length, -step):
            end = start + length
            if end + lateness <= watermark:
                continue
            is_in = True
            at = (*key, start)
            if at not in state.windows:
                opened(state, at, key, start, end, watermark)
            add(state.windows[at], event)
            state.counts[at] += 1
            if end <= watermark:
                row = values(state.windows[at])
                if row is not None:
                    emit(*at, end, LATE, *row)
            elif early > 0 and state.counts[at] % early == 0 and end > moment - delay:
                row = values(state.windows[at])
                if row is not None:
                    emit(*at, end, EARLY, *row)
        if not is_in:
            state.dropped += 1
        if moment > state.latest:
            state.latest = moment
            watermark = moment - delay
            while len(state.open) > 0 and state.open.peek() <= watermark:
                end = state.open.pop()
                for number in range(state.ends[end]):
                    at = at_of(state, end, number)
                    row = values(state.windows[at])
                    if row is not None:
                        emit(*at, end, ON_TIME, *row)
            while len(state.kept) > 0 and state.kept.peek() + lateness <= watermark:
                end = state.kept.pop()
                for number in range(state.ends.pop(end)):
                    at = at_of(state, end, number)
                    del state.windows[at], state.counts[at], state.places[(end, number)]

    return process


def _clock(option: str, unit: Any, time: str, column: Column) -> Clock:
    """That of the column, where it says so."""
    if column.is_plain or not (is_of.is_timestamp(column.arrow) or is_of.is_date(column.arrow)):
        return Clock.of(option, "us" if unit is None else unit)
    clock = Clock.of(option, column)
    if unit is not None and unit != clock.unit:
        raise refused(option, unit, f"{clock.unit!r}, which {time!r} is in, or none")
    return clock
