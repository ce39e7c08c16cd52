"""ADWIN: a window of recent values that shrinks when their mean has changed.

Bifet and Gavalda 2007, with exponential buckets (their ADWIN2). A window grows with every value. As
soon as it can be split into an older and a newer part whose means differ by more than chance would
explain, its oldest values are dropped. So it is long while nothing changes, short after a change,
and nobody has to choose how long.

Not the values are kept but buckets of 1, 2, 4, 8, ... of them: mean and sum of squared deviations,
at most ``buckets`` of each size. One more, and the two oldest of that size become one of the next
(as in the exponential histogram of Datar, Gionis, Indyk and Motwani 2002). Splits between buckets
are tried, of which there are as many as the logarithm of the window's length, times ``buckets``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import specstream as ss
from specstream.declarations.chosen_columns import column_name, named_column
from specstream.declarations.options import integer, number, refuses_unknown

__all__ = ["adwin"]

_SIZES = 48  # of buckets, up to 2**47 values: no stream comes to a larger one


@refuses_unknown
def adwin(
    delta: float = 0.002,
    span: float = 1.0,
    buckets: int = 5,
    key: type | Mapping[str, type] = str,
    limit: int = 2**16,
    value: str = "value",
) -> ss.Operator:
    """Tells when the mean of a key's values has changed, with the mean before and after.

    Events have the columns ``key`` and ``value``, a float. When values are dropped from the window
    of a key, a row ``(key, before, after, dropped, width)`` is emitted: the mean of those dropped,
    the mean of those that are left, and how many both are. The window then holds newer values only,
    of the time after the change mostly; a change may be told in several steps.

    Older and newer values, ``n0`` and ``n1`` of them, are of different means if these differ by at
    least ``sqrt(2 v l / m) + 2 l span / (3 m)``, with ``1 / m = 1 / n0 + 1 / n1``, the variance
    ``v`` of the whole window, ``n`` its length and ``l = ln(2 ln(n) / delta)``.

    Args:
        delta: about the probability that an event drops values although the mean is the same; more
            than 0, less than 1.
        span: the largest value that may come less the smallest one, more than 0. For values of 0
            and 1, like errors of a model, it is 1. Too small a span makes more false alarms.
        buckets: of each size, 2 to 64. More give more splits to choose from.
        key: type of the column ``key``, ``int`` or ``str``; with another name for it
            ``{"user": str}``.
        limit: keys at most, 1 to 2**18. The operator raises OverflowError for one more.
        value: name of the column ``value``.

    State: ``sizes``, a dict by key of how many sizes of buckets it has; ``counts``, by key and
    size, of how many buckets there are of it; and ``moments``, by key, size and place, oldest
    first, of mean and sum of squared deviations. An event takes time that grows with the logarithm
    of the window's length. Events of different keys never conflict; those of one key always do.

    The operator raises ValueError for a value that is NaN or larger than 1e100 (or less than
    -1e100).

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.signals import adwin
    >>> errors = {"key": ["A"] * 90, "value": [0.0] * 60 + [1.0] * 30}
    >>> with ss.Engine(adwin(), threads=2) as engine:
    ...     output = engine.process(errors).to_pylist()
    >>> for row in output:
    ...     print(row["before"], round(row["after"], 2), row["dropped"], row["width"])
    0.0 0.21 8 66
    0.0 0.25 8 59
    0.0 0.31 8 52
    0.0 0.4 8 47
    0.0 0.55 8 44
    """
    # One piece: state and operator are read together, and close over the same numbers.
    expected = "a number between 0 and 1"
    delta = float(number("adwin: delta", delta, 5e-324, 1.0 - 2.0**-53, expected))
    span = float(number("adwin: span", span, 5e-324, 1e100, "a number above 0, at most 1e100"))
    buckets = integer("adwin: buckets", buckets, 2, 64)
    keyed, key = named_column(
        "adwin: key", key, "key", taken=("before", "after", "dropped", "width")
    )
    value = column_name("adwin: value", value, (keyed,))
    limit = integer("adwin: limit", limit, 1, 2**18)
    most = _SIZES * (buckets + 1)

    class AdwinState(ss.State):
        sizes = ss.dict(key, int, limit=limit)
        counts = ss.dict((key, int), int, limit=limit * _SIZES)
        moments = ss.dict((key, int, int), (float, float), limit=min(limit * most, 2**28))
        # The window of the running event, bucket by bucket: of how many values, their mean, and the
        # mean of all up to there.
        widths = ss.scratch(int, most)
        means = ss.scratch(float, most)
        older_means = ss.scratch(float, most)

    def is_split(state: Any, last: int, width: int, variance: float) -> bool:
        """Whether two parts of the window, which meet between buckets, have different means."""
        log = math.log(2.0 * math.log(width) / delta)
        newer = 0
        newer_mean = 0.0
        for at in range(last, 0, -1):
            newer_mean = merged(newer, newer_mean, 0.0, state.widths[at], state.means[at], 0.0)[0]
            newer += state.widths[at]
            inverse = 1.0 / newer + 1.0 / (width - newer)
            bound = math.sqrt(2.0 * variance * log * inverse) + 2.0 / 3.0 * log * span * inverse
            if abs(newer_mean - state.older_means[at - 1]) >= bound:
                return True
        return False

    @ss.operator(
        state=AdwinState,
        event={keyed: key, value: float},
        emits={keyed: key, "before": float, "after": float, "dropped": int, "width": int},
        name="adwin",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        key, x = getattr(event, keyed), getattr(event, value)
        if not -1e100 <= x <= 1e100:
            raise ValueError(f"adwin: {value}={x}; expected a number up to 1e100")
        add_bucket(state, key, 0, x, 0.0)
        size = 0
        while state.counts[key, size] > buckets:
            mean, squares = state.moments[key, size, 0]
            other_mean, other_squares = state.moments[key, size, 1]
            mean, squares = merged(2**size, mean, squares, 2**size, other_mean, other_squares)
            drop_bucket(state, key, size)
            drop_bucket(state, key, size)
            size += 1
            add_bucket(state, key, size, mean, squares)

        dropped = 0
        before = 0.0
        while True:
            # All of the window, from the oldest bucket to the newest.
            width = 0
            mean, squares = 0.0, 0.0
            last = -1
            for size in range(state.sizes[key] - 1, -1, -1):
                for place in range(state.counts[key, size]):
                    one_mean, one_squares = state.moments[key, size, place]
                    mean, squares = merged(width, mean, squares, 2**size, one_mean, one_squares)
                    width += 2**size
                    last += 1
                    state.widths[last] = 2**size
                    state.means[last] = one_mean
                    state.older_means[last] = mean
            if width == 1 or not is_split(state, last, width, squares / width):
                break

            size = state.sizes[key] - 1
            before = merged(dropped, before, 0.0, 2**size, state.means[0], 0.0)[0]
            dropped += 2**size
            drop_bucket(state, key, size)
            while state.counts[key, state.sizes[key] - 1] == 0:
                state.sizes[key] -= 1
                del state.counts[key, state.sizes[key]]
        if dropped > 0:
            emit(key, before, mean, dropped, width)

    return process


def merged(
    count: int, mean: float, squares: float, other: int, other_mean: float, other_squares: float
) -> tuple[float, float]:
    """Mean and sum of squared deviations of two parts together (Chan, Golub and LeVeque 1983)."""
    difference = other_mean - mean
    share = other / (count + other)
    return (
        mean + difference * share,
        squares + other_squares + difference * difference * (count * share),
    )


def add_bucket(state: Any, key: Any, size: int, mean: float, squares: float) -> None:
    """Adds the newest bucket of a size."""
    if size >= state.sizes.get(key, 0):
        state.sizes[key] = size + 1
    count = state.counts.get((key, size), 0)
    state.moments[key, size, count] = mean, squares
    state.counts[key, size] = count + 1


def drop_bucket(state: Any, key: Any, size: int) -> None:
    """Takes the oldest bucket of a size away."""
    count = state.counts[key, size] - 1
    for place in range(count):
        state.moments[key, size, place] = state.moments[key, size, place + 1]
    del state.moments[key, size, count]
    state.counts[key, size] = count
