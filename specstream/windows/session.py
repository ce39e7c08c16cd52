"""Windows of events that are not far from each other."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.container_fields import timers as timers_field
from specstream.declarations.options import integer
from specstream.declarations.records import Record
from specstream.declarations.state import State
from specstream.operator.operator import Operator, operator
from specstream.windows.declared import (
    EARLY,
    LIMIT,
    ON_TIME,
    Clock,
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
    unit: Any = "us",
    limit: int = LIMIT,
    name: str = "by_session",
) -> Operator:
    """Sessions: events of a key of which each comes less than ``gap`` after the one before.

    A session's row has the ``start``, which is the time of its first event, and the ``end``, which
    is that of its last one and the gap: then it is emitted.

    Args:
        record: as of :func:`by_time`, as are ``add``, ``event``, ``key``, ``result``, ``emits``,
            ``unit``, ``limit`` and ``name``.
        add: see there.
        gap: the time without an event that ends a session.
        event: see there.
        key: see there.
        result: see there.
        emits: see there.
        early: emit a row as well behind each so many events of a session, whose ``end`` is the one
            that it has so far; 0: none.
        unit: see there.
        limit: see there.
        name: see there.

    Its state has timers, so it takes tables with times (``order_by=``).

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
    clock = Clock.of(f"{what}: unit", unit)
    gap = ticks(f"{what}: gap", gap, clock)
    early = integer(f"{what}: early", early, 0, 2**62)
    takes(what, "add", add, "window", "event")
    of = declared(what, record, event, key, result, emits, limit, name, time=clock.column)
    columns, values = of.columns, of.values
    fields: dict[str, Any] = {
        "windows": kept_in_dict(of, of.place, record),
        "sessions": kept_in_dict(of, of.place, Session),
        "ends": timers_field(of.place),
    }

    def ended(state, timer, emit):
        session = state.sessions.pop(timer.key)
        window = state.windows.pop(timer.key)
        emit(*timer.key[:-1], session.start, timer.at, ON_TIME, *values(window))

    @operator(
        state=type("Sessions", (State,), fields),
        event=of.event,
        emits=of.emits,
        on_timer=ended,
        name=name,
    )
    def process(state, event, emit):
        key = tuple(getattr(event, name) for name in columns)
        within(event.timestamp)
        at = (*key, 0)
        # One whose result has raised is over, and still there.
        if at not in state.windows or event.timestamp - state.sessions[at].last >= gap:
            state.windows[at] = record()
            state.sessions[at] = Session(event.timestamp, event.timestamp, 0)
        add(state.windows[at], event)
        state.sessions[at].last = event.timestamp
        state.sessions[at].count += 1
        end = event.timestamp + gap
        state.ends.set(at, end)
        session = state.sessions[at]
        if early > 0 and session.count % early == 0:
            emit(*key, session.start, end, EARLY, *values(state.windows[at]))

    return process
