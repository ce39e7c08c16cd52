"""Quantiles of all values so far, to a relative error (DDSketch: Masson, Rim and Lee 2019).

Values are counted in buckets whose bounds grow by a constant factor, so that no value is farther
than the error from the middle of its bucket, relative to its size. The buckets lie in an array in
the order of their values: negative ones, zero, positive ones. A quantile is found by adding up
counts until its rank is reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import specstream as ss
from specstream.declarations.chosen_columns import column_name
from specstream.declarations.options import integer, items, number, refused, refuses_unknown
from specstream.structures import add, increment

__all__ = ["quantiles"]


@refuses_unknown
def quantiles(
    probabilities: Iterable[float] = (0.5, 0.9, 0.99),
    error: float = 0.01,
    smallest: float = 1e-6,
    largest: float = 1e9,
    every: int = 1000,
    value: str = "value",
) -> ss.Operator:
    """Quantiles of all values so far, given out every so many events.

    Events have one column ``value``, a float. At every ``every``-th event a row ``(probability,
    value)`` is emitted for each probability, in the order given. Of n values in order, from 0, the
    value of p is that of rank floor(p * (n - 1)), with a relative error of at most ``error`` up to
    rounding; values closer to 0 than ``smallest`` count as 0.

    Args:
        probabilities: one to 100 numbers from 0 to 1.
        error: relative error, 0.0001 to 0.5. There are about log(largest / smallest) / error
            buckets: 3,459 with the defaults.
        smallest: the least distance from 0 that is told from 0, 1e-300 to 1e300.
        largest: the greatest distance from 0 that a value may have, ``smallest`` to 1e300.
        every: events from one output to the next, 1 to 2**31.
        value: name of the column ``value``.

    State: ``counts``, one for each bucket, and ``events``. Events only add to counts, so that they
    conflict only with those that give out quantiles.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    The operator raises ValueError for NaN, and for a value that is farther from 0 than ``largest``.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import quantiles
    >>> with ss.Engine(quantiles([0.5, 1.0], every=100), threads=2) as engine:
    ...     output = engine.process({"value": [float(i) for i in range(1, 101)]})
    >>> [round(one, 1) for one in output["value"].to_pylist()]
    [49.9, 100.5]
    """
    ranks = _probabilities(probabilities)
    error = _number("error", error, 0.0001, 0.5)
    smallest = _number("smallest", smallest, 1e-300, 1e300)
    largest = _number("largest", largest, smallest, 1e300)
    every = integer("quantiles: every", every, 1, 2**31)
    value = column_name("quantiles: value", value)
    factor = (1.0 + error) / (1.0 - error)
    per_log = 1.0 / math.log(factor)
    first = math.floor(math.log(smallest) * per_log)
    buckets = math.ceil(math.log(largest) * per_log) - first + 1  # of one sign
    middle = 2.0 / (factor + 1.0)

    class QuantileState(ss.State):
        counts = ss.array(int, 2 * buckets + 1)
        events = ss.scalar(int)

    @ss.operator(
        state=QuantileState,
        event={value: float},
        emits={"probability": float, "value": float},
        name="quantiles",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = getattr(event, value)
        size = abs(x)
        if not size <= largest:
            raise ValueError(f"{value} {x} is not a number from {-largest} to {largest}")
        at = buckets
        if size >= smallest:
            step = math.ceil(math.log(size) * per_log) - first + 1
            at += step if x > 0.0 else -step
        add(state.counts, at, 1)

        count = increment(state, "events")
        if count % every != 0:
            return
        for probability in ranks:
            rank = math.floor(probability * (count - 1))
            before = 0
            for at in range(len(state.counts)):
                before += state.counts[at]
                if before > rank:
                    break
            step = abs(at - buckets)
            size = middle * factor ** (step + first - 1) if step > 0 else 0.0
            emit(probability, size if at >= buckets else -size)

    return process


def _number(option: str, value: object, low: float, high: float) -> float:
    expected = f"a number from {low} to {high}"
    return float(number(f"quantiles: {option}", value, low, high, expected))


def _probabilities(given: object) -> tuple[float, ...]:
    expected = "one to 100 numbers from 0 to 1"
    found = items("quantiles: probabilities", given, expected)
    if not 1 <= len(found) <= 100:
        raise refused("quantiles: probabilities", given, expected)
    return tuple(
        float(number("quantiles: probabilities", one, 0.0, 1.0, expected)) for one in found
    )
