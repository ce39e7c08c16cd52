"""A histogram whose range need not be known before (Ben-Haim and Tom-Tov 2010).

A bin has a centre and a count. A value becomes a bin of its own; if there are too many then, the
two that are closest together become one, at the mean of their values. So the sum of all counts is
that of the values, and a bin's centre is the mean of the values that it has counted.

Bins are joined by their distance, whatever their counts. So the centres of many values lie roughly
evenly between the least and the largest: where values are dense, counts are larger, and bins hardly
closer together. For a resolution that goes by how many values there are, take
:func:`specstream.operators.synopses.quantiles`.
"""

from __future__ import annotations

import bisect

import specstream as ss
from specstream.declarations.chosen_columns import column_name
from specstream.declarations.options import integer, refuses_unknown
from specstream.structures import increment

__all__ = ["adaptive_histogram"]


@refuses_unknown
def adaptive_histogram(bins: int = 64, every: int = 1000, value: str = "value") -> ss.Operator:
    """A histogram of all values so far with a bounded number of bins, every so many events.

    Events have one column ``value``, a float. At every ``every``-th event a row ``(centre, count)``
    is emitted for each bin, the lowest first. While there are no more different values than bins,
    it is exact. Otherwise nothing is promised of a single count: about half of a bin's values lie
    on each side of its centre, if they lie evenly.

    Args:
        bins: at most, 2 to 4096.
        every: events from one output to the next, 1 to 2**31.
        value: name of the column ``value``.

    State: ``bins``, a list of (centre, count) in order; and ``events``. Nearly every event moves
    bins, so that every two conflict: it runs at the speed of one core. The time of an event grows
    with the number of bins.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    The operator raises ValueError for a value that is NaN or infinite.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import adaptive_histogram
    >>> with ss.Engine(adaptive_histogram(bins=3, every=5), threads=2) as engine:
    ...     output = engine.process({"value": [1.0, 8.0, 4.0, 2.0, 8.0]})
    >>> for row in output.to_pylist():
    ...     print(*row.values())
    1.5 2
    4.0 1
    8.0 2
    """
    most = integer("adaptive_histogram: bins", bins, 2, 4096)
    every = integer("adaptive_histogram: every", every, 1, 2**31)
    value = column_name("adaptive_histogram: value", value)
    infinity = float("inf")

    class AdaptiveHistogramState(ss.State):
        bins = ss.list((float, int), limit=most + 1)
        events = ss.scalar(int)

    @ss.operator(
        state=AdaptiveHistogramState,
        event={value: float},
        emits={"centre": float, "count": int},
        name="adaptive_histogram",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = getattr(event, value)
        if not abs(x) < infinity:
            raise ValueError(f"{value} {x} is no finite number")
        at = bisect.bisect_left(state.bins, (x, 0))
        if at < len(state.bins) and state.bins[at][0] == x:
            state.bins[at] = (state.bins[at][0], state.bins[at][1] + 1)
        else:
            state.bins.insert(at, (x, 1))

        if len(state.bins) > most:
            closest = 1
            least = infinity
            for at in range(1, len(state.bins)):
                distance = state.bins[at][0] - state.bins[at - 1][0]
                if distance < least:
                    least = distance
                    closest = at
            low, fewer = state.bins[closest - 1]
            high, more = state.bins.pop(closest)
            count = fewer + more
            mean = low * (fewer / count) + high * (more / count)
            # Rounding must not take it past its neighbours.
            state.bins[closest - 1] = (min(max(mean, low), high), count)

        if increment(state, "events") % every == 0:
            for centre, count in state.bins:
                emit(centre, count)

    return process
