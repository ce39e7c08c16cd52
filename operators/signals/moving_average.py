"""The mean of the last n values of each key, in constant time and without drift.

A running sum that adds what comes and subtracts what goes keeps every rounding error that it has
ever made: once a value of 1e17 has come and gone, it is off by 8 and more for good. Here nothing is
subtracted. The stream of a key is cut into blocks of n values. A window that ends inside of a
block is a first part of this block and a last part of the one before. The sum of the first part is
added up as the values come. The sums of all last parts are made when a block is full, from its end
to its beginning, and take the places of its values. (The same with the maximum in place of the sum:
van Herk 1992, Gil and Werman 1993.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import specstream as ss
from specstream.declarations.chosen_columns import column_name, named_column
from specstream.declarations.options import integer, refuses_unknown

__all__ = ["Window", "moving_average", "moving_sum"]


@refuses_unknown
def moving_average(
    n: int = 20,
    min_periods: int | None = None,
    key: type | Mapping[str, type] = str,
    limit: int = 2**16,
    value: str = "value",
) -> ss.Operator:
    """The mean of the last ``n`` values of each key, for each value that comes.

    Events have the columns ``key`` and ``value``, a float. Each emits one row ``(key, mean)`` as
    soon as its key has had ``min_periods`` values; as long as there are less than ``n``, the mean
    is that of all.

    A mean is wrong by at most ``n * 2**-53`` times the mean of the absolute values (to first
    order), however long the stream. A NaN or an infinity makes the means of the ``n`` windows that
    hold it NaN or infinite, and no later one; values may as well whose sum leaves the floats. An
    event takes constant time, but each ``n``-th of a key a time that grows with ``n``.

    Args:
        n: values in a window, 1 to 65536.
        min_periods: values that a key needs before it emits rows, 1 to ``n``; ``n`` if left out.
        key: type of the column ``key``, ``int`` or ``str``; with another name for it
            ``{"user": str}``.
        limit: keys at most, of which each keeps ``n`` numbers; ``limit * n`` is less than 2**28.
            The operator raises OverflowError for one more.
        value: name of the column ``value``.

    State: ``windows``, a dict by key of how many values there were and the ``newest`` sum, that of
    the values of the unfinished block; and ``sums``, a dict by key and place in the block: of the
    unfinished block its values, behind them the sums of the last parts of the one before. Events of
    different keys never conflict; those of one key always do.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.signals import moving_average
    >>> prices = {"key": ["A", "B", "A", "A"], "value": [1.0, 5.0, 2.0, 4.0]}
    >>> with ss.Engine(moving_average(n=2), threads=2) as engine:
    ...     engine.process(prices).to_pydict()
    {'key': ['A', 'A'], 'mean': [1.5, 3.0]}
    """
    # One piece: state and operator are read together, and close over the same numbers.
    n = integer("moving_average: n", n, 1, 2**16)
    if min_periods is None:
        min_periods = n
    min_periods = integer("moving_average: min_periods", min_periods, 1, n, " or None")
    keyed, key = named_column("moving_average: key", key, "key", taken=("mean",))
    value = column_name("moving_average: value", value, (keyed,))
    bound = f", as limit * n is less than 2**28, and n={n}"
    limit = integer("moving_average: limit", limit, 1, (2**28 - 1) // n, bound)

    class MovingAverageState(ss.State):
        windows = ss.dict(key, Window, limit=limit)
        sums = ss.dict((key, int), float, limit=limit * n)

    @ss.operator(
        state=MovingAverageState,
        event={keyed: key, value: float},
        emits={keyed: key, "mean": float},
        name="moving_average",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        key = getattr(event, keyed)
        total, count = moving_sum(state.windows, state.sums, key, getattr(event, value), n)
        if count >= min_periods:
            emit(key, total / count)

    return process


class Window(ss.Record):
    """How many values of a key there were, and the sum of those of its unfinished block."""

    count: int = 0
    newest: float = 0.0


def moving_sum(windows: Any, sums: Any, key: Any, value: float, n: int) -> tuple[float, int]:
    """The sum of the last ``n`` values of a key with this one, and how many these are."""
    window = windows.get(key)
    if window is None:
        window = Window()
        windows[key] = window
    at = window.count % n

    older = 0.0
    if window.count >= n:
        if at == 0:  # a block is full: each place gets the sum from there to the end
            window.newest = 0.0
            last_part = 0.0
            for place in range(n - 1, -1, -1):
                last_part += sums[key, place]
                sums[key, place] = last_part
        if at + 1 < n:
            older = sums[key, at + 1]

    sums[key, at] = value
    window.newest += value
    window.count += 1
    return older + window.newest, min(window.count, n)
