"""Windows of events that are not far from each other."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.container_fields import timers as timers_field
from specstream.declarations.options import integer, refuses_unknown
from specstream.declarations.records import Record
from specstream.declarations.state_layout import State, scalar
from specstream.definition.operator import Operator, operator
from specstream.windows.declared import (
    EARLY,
    IN_ORDER,
    LIMIT,
    NEVER,
    ON_TIME,
    Clock,
    counted_in,
    declared,
    kept_in_dict,
    takes,
    ticks,
    within,
)

__all__ = ["by_session"]

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls


class Session(Record):
    """When it began, when its last event came, and how many it has."""

    start: int = 0
    last: int = 0
    count: int = 0


@refuses_unknown
def by_session(
    record: Any,
    add: Callable[..., Any],
    gap: int | str | datetime.timedelta,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    result: Callable[..., Any] | None = None,
    emits: Any = None,
    early: int = 0,
    unit: Any = None,
    limit: int = LIMIT,
    name: str = "by_session",
) -> Operator:
    """Sessions: events of a key, each less than ``gap`` after the one before.

    A session's row has ``start``, the time of its first event, and ``end``, the time of its last
    one plus ``gap``, at which it is emitted.

    Args:
        record: as of :func:`by_time`, as are ``add``, ``event``, ``key``, ``result``, ``emits``,
            ``unit``, ``limit`` and ``name``.
        add: see there.
        gap: the time without an event that ends a session.
        event: see there.
        key: see there.
        result: see there.
        emits: see there.
        early: emit a row also after every so many events of a session, whose ``end`` is the one
            that it has so far; 0: none.
        unit: see there.
        limit: see there.
        name: see there.

    Its state has timers, so it takes tables with times (``order_by=``).

    An event may be older than one before it, as in a later table. Within the open session of its
    key it is one more, which ``add`` gets behind the others; less than ``gap`` before its start, it
    is the new start. The operator raises ValueError for an event that might belong to a session
    that has been emitted: its time is before the end of the last one of any key, and not within an
    open one of its own key. It also raises for one whose time is ``gap`` or more before the start
    of the open one. So the sessions are those of all other events in the order of their times. With
    ``submit``, or ``watermark=`` in Spark, there are no such events.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> class Visit(ss.Record):
    ...     pages: int = 0
    >>> def add(visit, event):
    ...     visit.pages += 1
    >>> visits = ss.windows.by_session(Visit, add, 30, event={"user": str}, key="user")
    >>> day = {"time": [0, 10, 35, 90], "user": ["ann", "bob", "bob", "ann"]}
    >>> with ss.Engine(visits) as engine:
    ...     for row in engine.process(day, order_by="time", end=True).to_pylist():
    ...         print(*row.values())
    ann 0 30 on time 1
    bob 10 65 on time 2
    ann 90 120 on time 1
    """
    what = "by_session"
    clock = Clock.counting(f"{what}: unit", unit, gap)
    given_gap = gap
    gap = ticks(f"{what}: gap", gap, clock)
    early = integer(f"{what}: early", early, 0, 2**62)
    takes(what, "add", add, "window", "event")
    of = declared(what, record, event, key, result, emits, limit, name, time=clock.column)
    columns, values = of.columns, of.values
    fields: dict[str, Any] = {
        "windows": kept_in_dict(of, of.place, record),
        "sessions": kept_in_dict(of, of.place, Session),
        "ends": timers_field(of.place),
        "ended": scalar(int, NEVER),
    }

    def ended(state, timer, emit):
        session = state.sessions.pop(timer.key)
        window = state.windows.pop(timer.key)
        state.ended = timer.at
        row = values(window)
        if row is not None:
            emit(*timer.key[:-1], session.start, timer.at, ON_TIME, *row)

    def begins(state, at, time):
        """A session begins at this time, which no session that was emitted has."""
        if time < state.ended:
            raise ValueError(
                f"{name}: an event at {time}, and sessions have ended up to {state.ended}; "
                f"{IN_ORDER}"
            )
        state.sessions[at].start = time

    @operator(
        state=type("Sessions", (State,), fields),
        event=of.event,
        emits=of.emits,
        on_timer=ended,
        name=name,
        time_unit=clock.time_unit,
    )
    def process(state, event, emit):
        key = tuple(getattr(event, name) for name in columns)
        time = event.timestamp
        within(time)
        at = (*key, 0)
        # Without a timer it is over: its result has raised.
        if at not in state.ends:
            state.windows[at] = record()
            state.sessions[at] = Session(time, time, 0)
            begins(state, at, time)
        session = state.sessions[at]
        if time <= session.start - gap:
            raise ValueError(
                f"{name}: an event at {time}, and the open session of its key begins at "
                f"{session.start}, no less than {gap} later; {IN_ORDER}"
            )
        if time < session.start:
            begins(state, at, time)
        if time >= session.last:
            session.last = time
            state.ends.set(at, time + gap)
        add(state.windows[at], event)
        session.count += 1
        if early > 0 and session.count % early == 0:
            row = values(state.windows[at])
            if row is not None:
                emit(*key, session.start, session.last + gap, EARLY, *row)

    return counted_in(process, clock, "gap", given_gap)
