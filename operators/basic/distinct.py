"""Duplicates are dropped: a stateful filter (Brito 2010, 2.1.2).

An event is forwarded if its key was not seen before. The keys are a set, so that two events
conflict only if they have the same key. Where duplicates come close together, the set need not
grow with the stream: its entries expire by the time of the events.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import specstream as ss
from specstream.declarations.options import function, integer

__all__ = ["distinct"]


def distinct(
    event: Any,
    key: Callable[..., Any],
    of: Any,
    row: Callable[..., Any],
    emits: Any = None,
    forget_after: int | str | timedelta | None = None,
    limit: int = 2**24,
) -> ss.Operator:
    """The first event of each key; those with a key that was seen are dropped.

    ``key`` and ``row`` are plain functions of the event, which are compiled along. For an event
    with a new key one row is emitted, whose columns ``row`` gives.

    Args:
        event: columns of an event, in any form that ``@ss.operator`` takes.
        key: of an event, its key: an int, a string, a bool, or a tuple of these.
        of: the type of a key, as ``ss.set`` takes it: ``int``, ``str``, ``(str, int)``.
        row: of an event, the emitted columns, as a tuple in the order of ``emits``.
        emits: columns of an emitted row; those of the event if it is None.
        forget_after: how long after it was forwarded a key counts as seen: a duration such as
            ``"1 hour"``, or an integer in the unit of the order column, which is needed then. The
            duplicates that are dropped do not prolong it. None: for ever.
        limit: keys that are kept at most, 1 to 2**31; one more raises OverflowError.

    State: ``seen``, the set of keys.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: ``event``, ``of``, ``emits`` or ``forget_after`` declares nothing.

    Where a table begins at earlier times than the one before has ended, keys that have expired
    stay forgotten. Take ``watermark=`` in Spark, so that events come in the order of their times.

    >>> import specstream as ss
    >>> from specstream.operators.basic import distinct
    >>> def visit(event):
    ...     return event.user, event.page
    >>> def row(event):
    ...     return event.user, event.page, event.price
    >>> once = distinct({"user": str, "page": int, "price": float}, visit, (str, int), row)
    >>> visits = {"user": ["a", "b", "a", "a"], "page": [1, 1, 1, 2], "price": [5.0, 5.0, 5.0, 7.0]}
    >>> with ss.Engine(once, threads=2) as engine:
    ...     for visited in engine.process(visits).to_pylist():
    ...         print(*visited.values())
    a 1 5.0
    b 1 5.0
    a 2 7.0
    """
    key = function("distinct: key", key, "a function of the event")
    row = function("distinct: row", row, "a function of the event")
    limit = integer("distinct: limit", limit, 1, 2**31)

    class DistinctState(ss.State):
        seen = ss.set(of, limit=limit, expire_after=forget_after)

    @ss.operator(
        state=DistinctState,
        event=event,
        emits=event if emits is None else emits,
        name="distinct",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        this = key(event)
        if this not in state.seen:
            state.seen.add(this)
            emit(*row(event))

    return process
