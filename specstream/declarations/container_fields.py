"""What a state class writes for a dict, set, list, deque or priority queue."""

from __future__ import annotations

import datetime
from typing import Any

from specstream.declarations.containers import Declared
from specstream.declarations.options import refuses_unknown

__all__ = ["deque", "dict", "list", "priority_queue", "set", "timers"]


@refuses_unknown
def dict(
    key: Any,
    value: Any,
    *,
    capacity: int | None = None,
    limit: int | None = None,
    expire_after: int | str | datetime.timedelta | None = None,
) -> Any:
    """A dict of the state, with the methods of Python's, in the order of insertion.

    Two events conflict only over what both touch: the same key, or the number of entries where one
    inserts or removes and the other asks for length, truth or iterates.

    Args:
        key: int, str, bool, or a tuple of these, like ``(int, str)`` or ``tuple[int, str]``.
        value: int, float, bool, str, a tuple of these, or a class of :class:`Record`.
        capacity: entries to reserve space for; it can grow beyond that.
        limit: the most entries, by default 2**24; one more raises OverflowError.
        expire_after: how long after its last write an entry expires. The first event or firing of a
            timer that is so much later, or more, removes the entry for good, also for older events
            that come afterwards (a later batch without ``watermark=`` may have some). An int is in
            the unit of ``event.timestamp``; a duration such as ``"1 hour"``, or a ``timedelta``, is
            for order columns of timestamps and dates. ``d[k] = v``, ``update``, and a
            ``setdefault`` that inserts are writes; reading is not, nor is changing a field of a
            record in place.

    Raises:
        DeclarationError: when the state is laid out; names the field.

    >>> import datetime
    >>> import specstream as ss
    >>> class Recent(ss.State):
    ...     last = ss.dict(str, int, expire_after="1 minute 30 seconds")
    >>> @ss.operator(state=Recent, event={"k": str, "x": int}, emits={"before": int})
    ... def previous(state, event, emit):
    ...     emit(state.last.get(event.k, 0))
    ...     state.last[event.k] = event.x
    >>> time = [datetime.datetime(2026, 3, 1, 12, minute) for minute in (0, 1, 3)]
    >>> events = {"time": time, "k": ["a", "a", "a"], "x": [1, 2, 3]}
    >>> previous.run_sequential(events, order_by="time").output["before"].to_pylist()
    [0, 1, 0]
    """
    return Declared("dict", key, value, capacity, limit, expires=expire_after)


@refuses_unknown
def set(
    key: Any,
    *,
    capacity: int | None = None,
    limit: int | None = None,
    expire_after: int | str | datetime.timedelta | None = None,
) -> Any:
    """A set of the state, in the order of insertion; it conflicts as the keys of :func:`dict` do.

    Args:
        key: as of :func:`dict`.
        capacity: keys to reserve space for; it can grow beyond that.
        limit: the most keys, by default 2**24; one more raises OverflowError.
        expire_after: as of :func:`dict`: how long after its last ``add`` a key expires. An ``add``
            of a key that is there counts as well.

    Raises:
        DeclarationError: when the state is laid out; names the field.
    """
    return Declared("set", key, None, capacity, limit, expires=expire_after)


@refuses_unknown
def list(value: Any, *, capacity: int | None = None, limit: int | None = None) -> Any:
    """A list of the state, with the methods of Python's.

    Args:
        value: type of an element, as the values of :func:`dict`.
        capacity: elements to reserve space for; it can grow beyond that.
        limit: the most elements, by default 2**24; one more raises OverflowError.

    Raises:
        DeclarationError: when the state is laid out; names the field.
    """
    return Declared("list", None, value, capacity, limit)


@refuses_unknown
def deque(
    value: Any,
    maxlen: int | None = None,
    *,
    capacity: int | None = None,
    limit: int | None = None,
) -> Any:
    """A ``collections.deque`` of the state.

    Args:
        value: type of an element, as the values of :func:`dict`.
        maxlen: the most elements; when one more is added, the one at the other end drops out. None:
            ``limit`` alone bounds it.
        capacity: elements to reserve space for; it can grow beyond that.
        limit: the most elements, by default 2**24; one more raises OverflowError.

    Raises:
        DeclarationError: when the state is laid out; names the field.
    """
    return Declared("deque", None, value, capacity, limit, maxlen)


@refuses_unknown
def priority_queue(value: Any, *, capacity: int | None = None, limit: int | None = None) -> Any:
    """A heap: ``push(x)``, ``pop()``, ``peek()``, the least first; equal ones in any order.

    Args:
        value: type of an element: int, float, bool, or a tuple of these.
        capacity: elements to reserve space for; it can grow beyond that.
        limit: the most elements, by default 2**24; one more raises OverflowError.

    Raises:
        DeclarationError: when the state is laid out; names the field.
    """
    return Declared("priority_queue", None, value, capacity, limit)


@refuses_unknown
def timers(key: Any, *, capacity: int | None = None, limit: int | None = None) -> Any:
    """The timers of an operator: ``state.timers.set(key, at)`` schedules a call of its
    ``on_timer``.

    Each key has one timer at most. ``set(key, at)`` sets it, or sets it anew; ``cancel(key)`` takes
    it away if there is one; ``get(key)`` is its time or None; ``key in state.timers``, ``len`` and
    iteration are as of a set. ``at`` is an int in the unit of ``event.timestamp``.

    A timer fires before the first event whose time is not before ``at``, or when the frontier comes
    to ``at``; a firing runs ``on_timer(state, timer, emit)`` with ``timer.key`` and ``timer.at``.
    Those that are due together fire in the order of ``at``, and of one ``at`` in the order in which
    they were set. One for a time that has passed fires before the next event; ``on_timer`` cannot
    set one for a time that is not after ``timer.at``: that raises ValueError.

    A state has one such field; where there are several kinds of timers, put the kind into the key.

    Args:
        key: int, str, bool, or a tuple of these, like ``(str, int)``.
        capacity: as of :func:`dict`.
        limit: the most timers, by default 2**24; one more raises OverflowError.

    Raises:
        DeclarationError: when the state is laid out; names the field.
    """
    return Declared("timers", key, int, capacity, limit)
