"""Where the moving average of a few values crosses that of many: the "golden cross" of charts.

Both averages are made as in :mod:`specstream.operators.signals.moving_average`, without drift: an
average that is off by a rounding error of long ago would cross where there is no crossing. What
remains is the rounding of the sums themselves: three times 0.1, divided by three, is not 0.1. So
two means that agree in nine digits count as equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import column_name, named_column
from specstream.declarations.options import integer, refuses_unknown
from specstream.operators.signals.moving_average import Window, moving_sum

__all__ = ["crossing"]


@refuses_unknown
def crossing(
    short: int = 50,
    long: int = 200,
    key: type | Mapping[str, type] = str,
    limit: int = 2**14,
    value: str = "value",
) -> ss.Operator:
    """Tells when the mean of a key's last ``short`` values crosses that of its last ``long``.

    Events have the columns ``key`` and ``value``, a float. A row ``(key, up, short, long)`` is
    emitted when the short mean has got above the long one (``up`` is true), or below, after it was
    on the other side; the last two columns are the means. Where the two are equal (up to a
    billionth of the larger one), or one is NaN, the side stays what it was. The first side that a
    key is on, with its ``long``-th value or later, emits nothing.

    Args:
        short: values of the short mean, 1 to ``long - 1``.
        long: values of the long mean, 2 to 65536.
        key: type of the column ``key``, ``int`` or ``str``; with another name for it
            ``{"user": str}``.
        limit: keys at most; ``limit * long`` is less than 2**28. The operator raises OverflowError
            for one more.
        value: name of the column ``value``.

    State: ``short_windows``, ``short_sums``, ``long_windows`` and ``long_sums``, as of
    :func:`~specstream.operators.signals.moving_average`; and ``above``, a dict by key, whether the
    short mean is the larger one. Events of different keys never conflict.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.signals import crossing
    >>> prices = [3.0, 2.0, 1.0, 2.0, 3.0, 1.0]
    >>> with ss.Engine(crossing(short=1, long=3), threads=2) as engine:
    ...     engine.process({"key": ["A"] * 6, "value": prices})["up"].to_pylist()
    [True, False]
    """
    # One piece: state and operator are read together, and close over the same numbers.
    long = integer("crossing: long", long, 2, 2**16)
    short = integer("crossing: short", short, 1, long - 1)
    keyed, key = named_column("crossing: key", key, "key", taken=("up", "short", "long"))
    value = column_name("crossing: value", value, (keyed,))
    bound = f", as limit * long is less than 2**28, and long={long}"
    limit = integer("crossing: limit", limit, 1, (2**28 - 1) // long, bound)

    class CrossingState(ss.State):
        short_windows = ss.dict(key, Window, limit=limit)
        short_sums = ss.dict((key, int), float, limit=limit * short)
        long_windows = ss.dict(key, Window, limit=limit)
        long_sums = ss.dict((key, int), float, limit=limit * long)
        above = ss.dict(key, bool, limit=limit)

    @ss.operator(
        state=CrossingState,
        event={keyed: key, value: float},
        emits={keyed: key, "up": bool, "short": float, "long": float},
        name="crossing",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        key, x = getattr(event, keyed), getattr(event, value)
        total, count = moving_sum(state.short_windows, state.short_sums, key, x, short)
        short_mean = total / count
        total, count = moving_sum(state.long_windows, state.long_sums, key, x, long)
        long_mean = total / count

        are_equal = math.isclose(short_mean, long_mean, rel_tol=1e-9)
        is_nan = math.isnan(short_mean) or math.isnan(long_mean)
        if count == long and not are_equal and not is_nan:
            above = short_mean > long_mean
            before = state.above.get(key)
            if before is not None and before != above:
                emit(key, above, short_mean, long_mean)
            state.above[key] = above

    return process
