"""Duplicates are dropped: a stateful filter (Brito 2010, 2.1.2).

An event is forwarded if its key was not seen before. The keys are a set, so that two events
conflict only if they have the same key. Where duplicates come close together, the set need not
grow with the stream: its entries expire by the time of the events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import specstream as ss
from specstream.declarations.chosen_columns import columns_of, kept_as, key_of
from specstream.declarations.containers import MOST_IN_KEY, lifetime
from specstream.declarations.options import integer, refuses_unknown

__all__ = ["distinct"]


@refuses_unknown
def distinct(
    columns: Mapping[str, Any],
    key: str | Sequence[str],
    forget_after: int | str | timedelta | None = None,
    limit: int = 2**24,
) -> ss.Operator:
    """The first event of each key; those with a key that was seen are dropped.

    Args:
        columns: of an event, ``{name: type}``; they are emitted as they came.
        key: the column, or up to 8, by which events are the same; no float, and none that may be
            null.
        forget_after: how long after it was forwarded a key counts as seen: a duration such as
            ``"1 hour"``, or an integer in the unit of the order column, which is needed then. The
            duplicates that are dropped do not prolong it. None: for ever.
        limit: keys that are kept at most, 1 to 2**31; one more raises OverflowError.

    State: ``seen``, the set of keys, which are tuples of the key's columns.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: a column has a type that none can have, or ``limit`` makes a state of
            2**32 words or more.

    Where a table begins at earlier times than the one before has ended, keys that have expired stay
    forgotten. Take ``watermark=`` in Spark, so that events come in the order of their times.

    >>> import specstream as ss
    >>> from specstream.operators.basic import distinct
    >>> once = distinct({"user": str, "page": int, "price": float}, key=["user", "page"])
    >>> visits = {"user": ["a", "b", "a", "a"], "page": [1, 1, 1, 2], "price": [5.0, 5.0, 5.0, 7.0]}
    >>> with ss.Engine(once, threads=2) as engine:
    ...     for visit in engine.process(visits).to_pylist():
    ...         print(*visit.values())
    a 1 5.0
    b 1 5.0
    a 2 7.0
    """
    columns = columns_of("distinct: columns", columns)
    names = tuple(columns)
    key = key_of("distinct: key", key, columns, most=MOST_IN_KEY)
    limit = integer("distinct: limit", limit, 1, 2**31)
    lifetime("distinct: forget_after", forget_after, ss.ConfigurationError)
    kept = tuple(kept_as(columns[name]) for name in key)

    class DistinctState(ss.State):
        seen = ss.set(kept, limit=limit, expire_after=forget_after)

    @ss.operator(state=DistinctState, event=columns, emits=columns, name="distinct")
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        this = tuple(getattr(event, name) for name in key)
        if this not in state.seen:
            state.seen.add(this)
            # A null that is not asked for would be emitted as 0.
            emit(
                *tuple(
                    None if getattr(event, name) is None else getattr(event, name) for name in names
                )
            )

    return process
