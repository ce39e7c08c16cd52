"""Windows by the number of the events."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.options import integer, refuses_unknown
from specstream.declarations.state_layout import State
from specstream.definition.operator import Operator, operator
from specstream.windows.contents import Grid, Kept, contents_of
from specstream.windows.declared import LIMIT, ON_TIME, declared, kept_in_dict, not_too_many

__all__ = ["by_count"]

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls


@refuses_unknown
def by_count(
    record: Any,
    add: Callable[..., Any],
    length: int,
    step: int | None = None,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    result: Callable[..., Any] | None = None,
    emits: Any = None,
    merge: Callable[..., Any] | None = None,
    remove: Callable[..., Any] | None = None,
    collect: bool = False,
    limit: int = LIMIT,
    name: str = "by_count",
) -> Operator:
    """Windows of ``length`` events of a key, one every ``step`` of them.

    The events of each key are numbered from 0. A window begins at each multiple of ``step``, and is
    emitted by its last event: ``start`` is the number of its first event, ``end`` the number after
    its last one, and ``kind`` is ``"on time"``. A window that is not full at the end of the stream
    is not emitted.

    Args:
        record: as of :func:`by_time`, as are ``add``, ``event``, ``key``, ``result``, ``emits``,
            ``merge``, ``remove``, ``collect``, ``limit`` and ``name``.
        add: see there.
        length: events of a window, 1 to 2**62.
        step: events from the start of one to the start of the next; by default ``length``. An event
            is in at most 100,000 windows, and with ``merge`` a window has at most 100,000 times the
            greatest common divisor of both.
        event: see there.
        key: see there.
        result: see there.
        emits: see there.
        merge: see there.
        remove: see there.
        collect: see there.
        limit: see there.
        name: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> class Price(ss.Record):
    ...     price: float = 0.0
    >>> def keep(event):
    ...     return Price(event.price)
    >>> def median(rows):
    ...     prices = sorted(row.price for row in rows)
    ...     return (prices[len(prices) // 2],)
    >>> medians = ss.windows.by_count(
    ...     Price, keep, 3, 1, collect=True, event={"price": float},
    ...     result=median, emits={"median": float},
    ... )
    >>> with ss.Engine(medians) as engine:
    ...     engine.process({"price": [5.0, 1.0, 3.0, 2.0]})["median"].to_pylist()
    [3.0, 2.0]
    """
    return counted(
        "by_count",
        record,
        add,
        length,
        step,
        event=event,
        key=key,
        result=result,
        emits=emits,
        merge=merge,
        remove=remove,
        collect=collect,
        limit=limit,
        name=name,
    )


def counted(
    what: str,
    record: Any,
    add: Callable[..., Any],
    length: int,
    step: int | None,
    *,
    event: Any,
    key: str | Sequence[str],
    result: Callable[..., Any] | None,
    emits: Any,
    merge: Callable[..., Any] | None,
    remove: Callable[..., Any] | None,
    collect: bool = False,
    limit: int,
    name: str,
    is_bare: bool = False,
) -> Operator:
    """Windows by count.

    Args:
        what: they are called in errors.
        is_bare: rows have neither start nor end nor kind, and ``result`` may give one bare value;
            the others are those of :func:`by_count`.
    """
    length = integer(f"{what}: length", length, 1, 2**62)
    given = {"length": length, "step": step}
    step = length if step is None else integer(f"{what}: step", step, 1, 2**62)
    not_too_many(what, length, step, given, None if merge is None else math.gcd(length, step))
    of = declared(what, record, event, key, result, emits, limit, name, collect, is_bare=is_bare)
    grid = Grid(length, step, 0, 0)
    known = (_open, _goes_on, _is_past)
    every = Kept(record, add, of.values, grid, of.place, of.limit, of.full, *known)
    kept = contents_of(what, every, merge, remove, collect)
    put, value, columns = kept.put, kept.value, of.columns
    fields = {**kept.fields, "counts": kept_in_dict(of, of.place, int)}

    declaring = operator(
        state=type("WindowsByCount", (State,), fields), event=of.event, emits=of.emits, name=name
    )
    if is_bare:

        @declaring
        def latest(state, event, emit):
            key = tuple(getattr(event, name) for name in columns)
            number = state.counts.get((*key, 0), 0)
            state.counts[(*key, 0)] = number + 1
            put(state, key, number, event)
            start = number + 1 - length
            if start >= 0 and start % step == 0:
                row = value(state, (*key, start))
                if row is not None:
                    emit(*key, *row)

        return latest

    @declaring
    def process(state, event, emit):
        key = tuple(getattr(event, name) for name in columns)
        number = state.counts.get((*key, 0), 0)
        state.counts[(*key, 0)] = number + 1
        put(state, key, number, event)
        start = number + 1 - length
        if start >= 0 and start % step == 0:
            row = value(state, (*key, start))
            if row is not None:
                emit(*key, start, number + 1, ON_TIME, *row)

    return process


def _open(state, at):
    """No timer ends them."""


def _goes_on(state, at):
    """The next event may always come."""
    return True


def _is_past(state, key, pane):
    """Numbers come in their order."""
    return False
