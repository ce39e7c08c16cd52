"""Aggregates of all values of a key so far (Brito 2010, 2.1.2, over a window without an end).

Mean and variance are updated by Welford's method (1962), which takes no difference of two large
sums, so that it stays exact to a few bits where all values are large and close together.
"""

from __future__ import annotations

from typing import Any

import specstream as ss
from specstream.declarations.options import integer, refused

__all__ = ["running_aggregate"]

_LARGEST = 1e150  # a square of the difference of two such values is a float


class _Aggregate(ss.Record):
    count: int
    sum: float
    mean: float
    squares: float  # sum of the squared distances from the mean
    least: float
    greatest: float


def running_aggregate(key: Any = str, limit: int = 2**24) -> ss.Operator:
    """Count, sum, mean, least, greatest and variance of each key's values so far.

    Events have the columns ``key`` and ``value``, a float. For each event one row ``(key, count,
    sum, mean, min, max, variance)`` is emitted, the event included. The variance is that of a
    sample, with count - 1 in the denominator, and null for the first value of a key. The sum goes
    from the first value to the last, as ``sum`` does.

    Args:
        key: type of the column ``key``, ``int``, ``str`` or ``bool``.
        limit: keys that are kept at most, 1 to 2**31; one more raises OverflowError.

    State: ``aggregates``, a dict with a record of each key: ``count``, ``sum``, ``mean``,
    ``squares`` (the sum of the squared distances from the mean), ``least`` and ``greatest``. Two
    events conflict if they have the same key.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    The operator raises ValueError for a value that is NaN, infinite, or beyond 1e150, whose
    square is not a float.

    >>> import specstream as ss
    >>> from specstream.operators.basic import running_aggregate
    >>> with ss.Engine(running_aggregate(), threads=2) as engine:
    ...     output = engine.process({"key": ["a", "b", "a"], "value": [1.0, 5.0, 4.0]})
    >>> for row in output.to_pylist():
    ...     print(*row.values())
    a 1 1.0 1.0 1.0 1.0 None
    b 1 5.0 5.0 5.0 5.0 None
    a 2 5.0 2.5 1.0 4.0 4.5
    """
    if key not in (int, str, bool):
        raise refused("running_aggregate: key", key, "int, str or bool")
    limit = integer("running_aggregate: limit", limit, 1, 2**31)

    class AggregateState(ss.State):
        aggregates = ss.dict(key, _Aggregate, limit=limit)

    @ss.operator(
        state=AggregateState,
        event={"key": key, "value": float},
        emits={
            "key": key,
            "count": int,
            "sum": float,
            "mean": float,
            "min": float,
            "max": float,
            "variance": ss.nullable(float),
        },
        name="running_aggregate",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        value = event.value
        if not abs(value) <= _LARGEST:
            raise ValueError(f"value {value} is not a number from -1e150 to 1e150")
        one = state.aggregates.get(event.key)
        if one is None:
            state.aggregates[event.key] = _Aggregate(1, value, value, 0.0, value, value)
            emit(event.key, 1, value, value, value, value, None)
            return
        one.count += 1
        one.sum += value
        distance = value - one.mean
        one.mean += distance / one.count
        one.squares += distance * (value - one.mean)
        one.least = min(one.least, value)
        one.greatest = max(one.greatest, value)
        variance = one.squares / (one.count - 1)
        emit(event.key, one.count, one.sum, one.mean, one.least, one.greatest, variance)

    return process
