"""Aggregates of all values of a key so far (Brito 2010, 2.1.2, over a window without an end).

Mean and variance are updated by Welford's method (1962), which takes no difference of two large
sums, so that it stays exact to a few bits where all values are large and close together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import specstream as ss
from specstream.declarations.chosen_columns import column_name, columns_of, kept_as, key_of
from specstream.declarations.containers import MOST_IN_KEY
from specstream.declarations.options import integer, refused, refuses_unknown

__all__ = ["running_aggregate"]

_LARGEST = 1e150  # a square of the difference of two such values is a float


_EMITTED = {
    "count": int,
    "sum": float,
    "mean": float,
    "min": float,
    "max": float,
    "variance": ss.nullable(float),
}


class _Aggregate(ss.Record):
    count: int
    sum: float
    mean: float
    squares: float  # sum of the squared distances from the mean
    least: float
    greatest: float


@refuses_unknown
def running_aggregate(
    key: Mapping[str, Any], value: str = "value", limit: int = 2**24
) -> ss.Operator:
    """Count, sum, mean, least, greatest and variance of each key's values so far.

    For each event one row is emitted: the columns of the key, and ``count``, ``sum``, ``mean``,
    ``min``, ``max`` and ``variance`` of all values of this key so far, the event's included. The
    variance is that of a sample, with count - 1 in the denominator, and null for the first value of
    a key. The sum is that of ``+``, from the first value to the last, without the compensation of
    rounding errors that Python's ``sum`` has from 3.12 on.

    Args:
        key: the columns by which values are grouped, ``{name: type}``, up to 8; no float, and none
            that may be null.
        value: the column of the values, a float.
        limit: keys that are kept at most, 1 to 2**31; one more raises OverflowError.

    State: ``aggregates``, a dict with a record of each key: ``count``, ``sum``, ``mean``,
    ``squares`` (the sum of the squared distances from the mean), ``least`` and ``greatest``. Two
    events conflict if they have the same key.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: a column has a type that none can have, or ``limit`` makes a state of
            2**32 words or more.

    The operator raises ValueError for a value that is NaN, infinite, or beyond 1e150, whose
    square is not a float.

    >>> import specstream as ss
    >>> from specstream.operators.basic import running_aggregate
    >>> with ss.Engine(running_aggregate({"shop": str}, "paid"), threads=2) as engine:
    ...     output = engine.process({"shop": ["a", "b", "a"], "paid": [1.0, 5.0, 4.0]})
    >>> for row in output.to_pylist():
    ...     print(*row.values())
    a 1 1.0 1.0 1.0 1.0 None
    b 1 5.0 5.0 5.0 5.0 None
    a 2 5.0 2.5 1.0 4.0 4.5
    """
    key = columns_of("running_aggregate: key", key)
    names = key_of("running_aggregate: key", tuple(key), key, most=MOST_IN_KEY)
    value = column_name("running_aggregate: value", value, key)
    if not _EMITTED.keys().isdisjoint(key):
        raise refused("running_aggregate: key", key, f"no column named as one of {list(_EMITTED)}")
    limit = integer("running_aggregate: limit", limit, 1, 2**31)
    kept = tuple(kept_as(of) for of in key.values())

    class AggregateState(ss.State):
        aggregates = ss.dict(kept, _Aggregate, limit=limit)

    @ss.operator(
        state=AggregateState,
        event={**key, value: float},
        emits={**key, **_EMITTED},
        name="running_aggregate",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = getattr(event, value)
        if not abs(x) <= _LARGEST:
            raise ValueError(f"{value} {x} is not a number from -1e150 to 1e150")
        this = tuple(getattr(event, name) for name in names)
        one = state.aggregates.get(this)
        if one is None:
            state.aggregates[this] = _Aggregate(1, x, x, 0.0, x, x)
            emit(*this, 1, x, x, x, x, None)
            return
        one.count += 1
        one.sum += x
        distance = x - one.mean
        one.mean += distance / one.count
        one.squares += distance * (x - one.mean)
        one.least = min(one.least, x)
        one.greatest = max(one.greatest, x)
        variance = one.squares / (one.count - 1)
        emit(*this, one.count, one.sum, one.mean, one.least, one.greatest, variance)

    return process
