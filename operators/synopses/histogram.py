"""How many values lie in each of some equally wide bins (Brito 2010, 2.1.1: static histograms)."""

from __future__ import annotations

import math

import specstream as ss
from specstream.declarations.chosen_columns import column_name
from specstream.declarations.options import integer, number, refused, refuses_unknown
from specstream.structures import add, increment

__all__ = ["histogram"]


@refuses_unknown
def histogram(
    low: float, high: float, bins: int = 100, every: int = 1000, value: str = "value"
) -> ss.Operator:
    """Counts of the values in bins between two bounds, given out every so many events.

    Events have one column ``value``, a float. At every ``every``-th event a row ``(low, high,
    count)`` is emitted for each bin that has values, the lowest first. A bin has its lower bound
    and not its upper one, up to rounding. What is below ``low`` is in a first bin from minus
    infinity; ``high`` and what is above in a last one to infinity. Infinities are counted there.

    Args:
        low: lower bound of the bins, -1e300 to 1e300.
        high: upper bound, likewise, and above ``low``.
        bins: bins between them, 1 to 2**24, each at least as wide as neighbouring floats are apart.
        every: events from one output to the next, 1 to 2**31.
        value: name of the column ``value``.

    State: ``counts`` (bins + 2), the first of those below, the last of those above; and ``events``.
    Events only add to counts, so that they conflict only with those that give them out.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    The operator raises ValueError for NaN.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import histogram
    >>> with ss.Engine(histogram(0.0, 1.0, bins=4, every=5), threads=2) as engine:
    ...     output = engine.process({"value": [0.1, 0.25, 0.3, 0.9, 7.0]})
    >>> for row in output.to_pylist():
    ...     print(*row.values())
    0.0 0.25 1
    0.25 0.5 2
    0.75 1.0 1
    1.0 inf 1
    """
    low = float(number("histogram: low", low, -1e300, 1e300, "a number from -1e300 to 1e300"))
    high = float(number("histogram: high", high, -1e300, 1e300, "a number from -1e300 to 1e300"))
    if low >= high:
        raise refused("histogram: high", high, f"a number above low={low}")
    bins = integer("histogram: bins", bins, 1, 2**24)
    if (high - low) / bins < math.ulp(max(abs(low), abs(high))):
        expected = f"fewer: from low={low} to high={high} there are not as many floats"
        raise refused("histogram: bins", bins, expected)
    every = integer("histogram: every", every, 1, 2**31)
    value = column_name("histogram: value", value)
    span = high - low
    infinity = float("inf")

    class HistogramState(ss.State):
        counts = ss.array(int, bins + 2)
        events = ss.scalar(int)

    @ss.operator(
        state=HistogramState,
        event={value: float},
        emits={"low": float, "high": float, "count": int},
        name="histogram",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = getattr(event, value)
        if x != x:
            raise ValueError(f"{value} is NaN, which no bin has")
        if x < low:
            at = 0
        elif x >= high:
            at = bins + 1
        else:  # a value just below the upper bound may be rounded up to it
            at = 1 + min(int((x - low) / span * bins), bins - 1)
        add(state.counts, at, 1)

        if increment(state, "events") % every == 0:
            for at in range(bins + 2):
                count = state.counts[at]
                if count > 0:
                    below = low + span * ((at - 1) / bins) if at > 0 else -infinity
                    above = low + span * (at / bins) if at <= bins else infinity
                    emit(below, above, count)

    return process
