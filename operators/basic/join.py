"""Two streams are joined: a row for every two events that match (Brito 2010, 2.1.2).

Of each input there is a window of its latest events. An event that comes is compared with all
events in the window of the other input, and then put into its own one. So each pair is found once,
when the later of the two comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

import specstream as ss
from specstream.declarations.options import function, integer, one_of, refused, refuses_unknown

__all__ = ["join"]


@refuses_unknown
def join(
    left: type[ss.Record],
    right: type[ss.Record],
    matches: Callable[..., Any],
    window: str = "time",
    left_window: int = 100,
    right_window: int = 100,
    suffix: str = "_right",
    limit: int = 2**20,
    time_unit: str | None = None,
) -> ss.Operator:
    """Every pair of a left and a right event that match, while both are in their windows.

    It is a vertex of a :class:`specstream.Pipeline` with the inputs ``left`` and ``right``. Rows
    emitted have the columns of both. For an event that comes, the other window is gone through from
    the oldest to the latest event. Where both inputs have an event in a phase, the left one comes
    first, and the two are compared as well.

    Args:
        left: a class of records, whose fields are the columns of the input ``left``.
        right: that of the input ``right``.
        matches: a plain function of a left and a right record: whether they are a pair. It is
            compiled along.
        window: ``"time"``: an event stays in its window as long as the time of the event that comes
            is not more than the window's size after its own, in the unit of the order column;
            ``"count"``: a window has the latest events of its input.
        left_window: size of the left window: for ``"time"`` 0 to 2**62; for ``"count"`` 1 to 2**20
            events.
        right_window: that of the right window, likewise.
        suffix: what is put behind the names of right columns that the left ones have as well.
        limit: events that a window by time may have, 1 to 2**31; one more raises OverflowError.
        time_unit: of windows by time, as of :func:`specstream.operator`: an order column of times
            is cast to it.

    State: deques ``lefts`` and ``rights`` of records, and ``left_times`` and ``right_times``, their
    timestamps where the windows go by time.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: a class of records has fields that none can have, or ``limit`` makes a
            state of 2**32 words or more.

    An event takes time in proportion to the other window, whatever matches, and what it has read
    there conflicts with every event of that input. Where what matches is equality with the latest
    value of a key, :func:`enrich` does it without both. Windows by time need events in the order of
    their times: the operator raises ValueError for one before the last one of either input, as a
    later table may have; with ``submit``, or ``watermark=`` in Spark, there is none.

    >>> import specstream as ss
    >>> from specstream.operators.basic import join
    >>> class Order(ss.Record):
    ...     symbol: str
    ...     limit: float
    >>> class Quote(ss.Record):
    ...     symbol: str
    ...     price: float
    >>> def fits(order, quote):
    ...     return order.symbol == quote.symbol and quote.price <= order.limit
    >>> p = ss.Pipeline("market")
    >>> orders = p.source("orders", {"symbol": str, "limit": float})
    >>> quotes = p.source("quotes", {"symbol": str, "price": float})
    >>> p.sink("fills", p.add(join(Order, Quote, fits, right_window=10), left=orders, right=quotes))
    >>> day = {
    ...     "orders": {"time": [4, 12], "symbol": ["A", "A"], "limit": [9.0, 8.0]},
    ...     "quotes": {"time": [1, 5], "symbol": ["A", "A"], "price": [8.5, 7.5]},
    ... }
    >>> with ss.Engine(p, threads=2) as engine:
    ...     for fill in engine.process(day, order_by="time").to_pylist():
    ...         print(*fill.values())
    A 9.0 A 8.5
    A 9.0 A 7.5
    A 8.0 A 7.5
    """
    for option, record in (("left", left), ("right", right)):
        if not (isinstance(record, type) and issubclass(record, ss.Record)):
            raise refused(f"join: {option}", record, "a class of records, class Order(ss.Record)")
    matches = function("join: matches", matches, "a function of a left and a right record")
    by_time = one_of("join: window", window, ("time", "count")) == "time"
    low, high = (0, 2**62) if by_time else (1, 2**20)
    left_window = integer("join: left_window", left_window, low, high)
    right_window = integer("join: right_window", right_window, low, high)
    if not isinstance(suffix, str) or not f"a{suffix}".isidentifier() or not suffix:
        raise refused("join: suffix", suffix, "text that a name may end with")
    limit = integer("join: limit", limit, 1, 2**31)
    left_length, left_limit = (None, limit) if by_time else (left_window, left_window)
    right_length, right_limit = (None, limit) if by_time else (right_window, right_window)

    of_left, of_right = get_type_hints(left), get_type_hints(right)
    left_names, right_names = tuple(of_left), tuple(of_right)
    emits = dict(of_left)
    for name, of in of_right.items():
        emits[name + suffix if name in of_left else name] = of
    if len(emits) < len(of_left) + len(of_right):
        raise refused("join: suffix", suffix, "one that makes names that no other column has")

    class JoinState(ss.State):
        lefts = ss.deque(left, maxlen=left_length, limit=left_limit)
        rights = ss.deque(right, maxlen=right_length, limit=right_limit)
        left_times = ss.deque(int, maxlen=left_length, limit=left_limit)
        right_times = ss.deque(int, maxlen=right_length, limit=right_limit)

    @ss.operator(
        state=JoinState,
        inputs={"left": left, "right": right},
        emits=emits,
        name="join",
        time_unit=time_unit,
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        if by_time:
            _check_order(state.left_times, event.timestamp)
            _check_order(state.right_times, event.timestamp)
            _forget(state.lefts, state.left_times, event.timestamp, left_window)
            _forget(state.rights, state.right_times, event.timestamp, right_window)
        if event.changed("left"):
            one = left(*tuple(getattr(event.left, name) for name in left_names))
            for other in state.rights:
                if matches(one, other):
                    emit(
                        *tuple(getattr(one, name) for name in left_names),
                        *tuple(getattr(other, name) for name in right_names),
                    )
            state.lefts.append(one)
            if by_time:
                state.left_times.append(event.timestamp)
        if event.changed("right"):
            other = right(*tuple(getattr(event.right, name) for name in right_names))
            for one in state.lefts:
                if matches(one, other):
                    emit(
                        *tuple(getattr(one, name) for name in left_names),
                        *tuple(getattr(other, name) for name in right_names),
                    )
            state.rights.append(other)
            if by_time:
                state.right_times.append(event.timestamp)

    return process


def _check_order(times: Any, now: Any) -> None:
    """Inside an operator: what has left a window cannot be found by an event that is older."""
    if times and now < times[-1]:
        raise ValueError(
            f"join: an event at {now}, and the last one was at {times[-1]}; sort the events "
            "of all tables, submit() them, or take watermark= in Spark"
        )


def _forget(kept: Any, times: Any, now: Any, window: Any) -> None:
    """Inside an operator: what is older than the window leaves it."""
    before = now - window
    if before > now:  # it has wrapped: no time is that long ago
        return
    while times and times[0] < before:
        times.popleft()
        kept.popleft()
