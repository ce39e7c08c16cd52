"""Windows from one event to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.options import integer, refuses_unknown
from specstream.declarations.records import Record
from specstream.declarations.state_layout import State
from specstream.definition.operator import Operator, operator
from specstream.windows.declared import (
    EARLY,
    IN_ORDER,
    LIMIT,
    ON_TIME,
    declared,
    kept_in_dict,
    takes,
)

__all__ = ["by_landmark"]

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls


class Landmark(Record):
    """When a window began, when its last event came, and how many it has."""

    start: int = 0
    last: int = 0
    count: int = 0


@refuses_unknown
def by_landmark(
    record: Any,
    add: Callable[..., Any],
    begins: Callable[..., Any],
    ends: Callable[..., Any],
    *,
    event: Any,
    key: str | Sequence[str] = (),
    result: Callable[..., Any] | None = None,
    emits: Any = None,
    early: int = 0,
    limit: int = LIMIT,
    name: str = "by_landmark",
) -> Operator:
    """Windows of a key from an event that begins one to an event that ends it, both included.

    An event for which ``begins(event)`` is true begins a window, unless one is open; what comes
    while none is open is in none. An event for which ``ends(event)`` is true ends it, which may be
    the one that began it. A window's row has the times of these two as ``start`` and ``end``. One
    that is open at the end of the stream is not emitted.

    Args:
        record: as of :func:`by_time`, as are ``add``, ``event``, ``key``, ``result``, ``emits``,
            ``limit`` and ``name``.
        add: see there.
        begins: of an event, whether it begins a window.
        ends: of an event, whether it ends one.
        event: see there.
        key: see there.
        result: see there.
        emits: see there.
        early: emit a row also after every so many events of a window, whose ``end`` is the time of
            the last one; 0: none.
        limit: see there.
        name: see there.

    Without ``order_by=`` times are numbers of events. An event may be older than one before it, as
    in a later table: events count in the order in which they come, so that the window that it
    begins may have earlier times than one that has ended. But within a window times do not go back:
    the operator raises ValueError for an event before the last one of the open window of its key.
    With ``submit``, or ``watermark=`` in Spark, there is none.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> class Trip(ss.Record):
    ...     stops: int = 0
    >>> def add(trip, event):
    ...     trip.stops += 1
    >>> def starts(event):
    ...     return event.door == "out"
    >>> def arrives(event):
    ...     return event.door == "in"
    >>> trips = ss.windows.by_landmark(Trip, add, starts, arrives, event={"door": str})
    >>> with ss.Engine(trips) as engine:
    ...     rows = engine.process({"door": ["in", "out", "stop", "in", "stop"]}).to_pylist()
    >>> [tuple(row.values()) for row in rows]
    [(1, 3, 'on time', 3)]
    """
    what = "by_landmark"
    early = integer(f"{what}: early", early, 0, 2**62)
    takes(what, "add", add, "window", "event")
    takes(what, "begins", begins, "event")
    takes(what, "ends", ends, "event")
    of = declared(what, record, event, key, result, emits, limit, name)
    columns, values = of.columns, of.values
    fields: dict[str, Any] = {
        "windows": kept_in_dict(of, of.place, record),
        "landmarks": kept_in_dict(of, of.place, Landmark),
    }

    @operator(
        state=type("WindowsByLandmark", (State,), fields),
        event=of.event,
        emits=of.emits,
        name=name,
    )
    def process(state, event, emit):
        key = tuple(getattr(event, name) for name in columns)
        at = (*key, 0)
        if at not in state.windows:
            if not begins(event):
                return
            state.windows[at] = record()
            state.landmarks[at] = Landmark(event.timestamp, event.timestamp, 0)
        landmark = state.landmarks[at]
        if event.timestamp < landmark.last:
            raise ValueError(
                f"{name}: an event at {event.timestamp}, and the last one of the open window of "
                f"its key was at {landmark.last}; {IN_ORDER}"
            )
        landmark.last = event.timestamp
        landmark.count += 1
        add(state.windows[at], event)
        if ends(event):
            row = values(state.windows[at])
            if row is not None:
                emit(*key, landmark.start, event.timestamp, ON_TIME, *row)
            del state.windows[at], state.landmarks[at]
        elif early > 0 and landmark.count % early == 0:
            row = values(state.windows[at])
            if row is not None:
                emit(*key, landmark.start, event.timestamp, EARLY, *row)

    return process
