"""Mean and standard deviation of the last n values of each key, in constant time and without drift.

The window is a last part of one block of n values and a first part of the next one, as in
:mod:`specstream.operators.signals.moving_average`. Of each part the mean and the sum of squared
deviations from it are kept. A value is put into a part by Welford's step (1962), and two parts are
put together by the formula of Chan, Golub and LeVeque (1983). Sums of squares, which cancel where
the deviation is small beside the mean, do not occur; and equal values have exactly the deviation 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import column_name, named_column
from specstream.declarations.options import integer, number, refuses_unknown

__all__ = ["bollinger_bands"]


@refuses_unknown
def bollinger_bands(
    n: int = 20,
    k: float = 2.0,
    min_periods: int | None = None,
    key: type | Mapping[str, type] = str,
    limit: int = 2**16,
    value: str = "value",
) -> ss.Operator:
    """The mean of the last ``n`` values of each key, and ``k`` standard deviations around it.

    Events have the columns ``key`` and ``value``, a float. Each emits one row ``(key, lower, mean,
    upper, side)`` as soon as its key has had ``min_periods`` values; as long as there are less than
    ``n``, they are all in the window. The window ends with the event's own value, and the deviation
    is that of all values of the window (divided by their number, not by one less). ``side`` is 1
    where the value is above the upper band, -1 below the lower one, and else 0.

    A NaN or an infinity makes the bands of the ``n`` windows that hold it NaN, their mean NaN or
    infinite, and no later ones; values beyond 1e150, whose squares leave the floats, may as well
    make bands NaN or infinite. An event takes constant time, but each ``n``-th of a key a time that
    grows with ``n``.

    Args:
        n: values in a window, 2 to 65536.
        k: width of a band in standard deviations, 0 or more.
        min_periods: values that a key needs before it emits rows, 1 to ``n``; ``n`` if left out.
        key: type of the column ``key``, ``int`` or ``str``; with another name for it
            ``{"user": str}``.
        limit: keys at most, of which each keeps ``2 * n`` numbers; ``limit * n`` is less than
            2**28. The operator raises OverflowError for one more.
        value: name of the column ``value``.

    State: ``newest``, a dict by key of how many values there were, and ``mean`` and ``squares`` of
    the unfinished block; and ``parts``, a dict by key and place in the block, of the same two of
    the last parts of the block before. Events of different keys never conflict; those of one key
    always do.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.signals import bollinger_bands
    >>> prices = {"key": ["A"] * 5, "value": [4.0, 4.0, 4.0, 4.0, 14.0]}
    >>> with ss.Engine(bollinger_bands(n=5, k=1.5), threads=2) as engine:
    ...     print(engine.process(prices).to_pylist())
    [{'key': 'A', 'lower': 0.0, 'mean': 6.0, 'upper': 12.0, 'side': 1}]
    """
    # One piece: state and operator are read together, and close over the same numbers.
    n = integer("bollinger_bands: n", n, 2, 2**16)
    k = float(number("bollinger_bands: k", k, 0.0, 1.7e308, "a finite number of at least 0"))
    if min_periods is None:
        min_periods = n
    min_periods = integer("bollinger_bands: min_periods", min_periods, 1, n, " or None")
    keyed, key = named_column(
        "bollinger_bands: key", key, "key", taken=("lower", "mean", "upper", "side")
    )
    value = column_name("bollinger_bands: value", value, (keyed,))
    bound = f", as limit * n is less than 2**28, and n={n}"
    limit = integer("bollinger_bands: limit", limit, 1, (2**28 - 1) // n, bound)

    class Newest(ss.Record):
        count: int = 0
        mean: float = 0.0
        squares: float = 0.0

    class BollingerState(ss.State):
        newest = ss.dict(key, Newest, limit=limit)
        parts = ss.dict((key, int), (float, float), limit=limit * n)

    @ss.operator(
        state=BollingerState,
        event={keyed: key, value: float},
        emits={keyed: key, "lower": float, "mean": float, "upper": float, "side": int},
        name="bollinger_bands",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        key, x = getattr(event, keyed), getattr(event, value)
        newest = state.newest.get(key)
        if newest is None:
            newest = Newest()
            state.newest[key] = newest

        at = newest.count % n
        if at == 0:
            if newest.count > 0:  # a block is full: each place gets the part from there to the end
                mean, squares = 0.0, 0.0
                for place in range(n - 1, -1, -1):
                    one, _ = state.parts[key, place]
                    mean, squares = with_value(n - 1 - place, mean, squares, one)
                    state.parts[key, place] = mean, squares
            newest.mean = 0.0
            newest.squares = 0.0

        count = at + 1
        mean, squares = with_value(at, newest.mean, newest.squares, x)
        newest.mean = mean
        newest.squares = squares
        if newest.count >= n and count < n:
            older_mean, older_squares = state.parts[key, count]
            difference = older_mean - mean
            mean += difference * (n - count) / n
            squares += older_squares + difference * difference * count * (n - count) / n
            count = n
        state.parts[key, at] = x, 0.0
        newest.count += 1

        if count >= min_periods:
            # What has left the floats may be less than 0.
            band = k * math.sqrt(squares / count) if squares >= 0.0 else math.nan
            side = 1 if x > mean + band else -1 if x < mean - band else 0
            emit(key, mean - band, mean, mean + band, side)

    return process


def with_value(count: int, mean: float, squares: float, value: float) -> tuple[float, float]:
    """Mean and sum of squared deviations of ``count`` values and one more."""
    difference = value - mean
    mean += difference / (count + 1)
    return mean, squares + difference * (value - mean)
