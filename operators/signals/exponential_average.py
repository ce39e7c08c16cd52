"""A mean in which a value counts for half after each half-life, by key.

The mean is that of all values so far, with the weight ``0.5 ** (age / half_life)``. Only it and the
sum of the weights have to be kept: when the clock moves on, all weights shrink by one factor. With
the sum of the weights the first value is one like others; the simpler ``mean += alpha * (value -
mean)`` gives it the weight of all that came before it, which nobody has seen. A step towards the
new value also rounds better than two sums that are divided: equal values have exactly that mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import column_name, named_column
from specstream.declarations.options import integer, number, one_of, refuses_unknown

__all__ = ["exponential_average"]


@refuses_unknown
def exponential_average(
    half_life: float = 10.0,
    by: str = "event",
    key: type | Mapping[str, type] = str,
    limit: int = 2**20,
    value: str = "value",
    time_unit: str | None = None,
) -> ss.Operator:
    """The exponentially weighted mean of each key, for each value that comes.

    Events have the columns ``key`` and ``value``, a float. Each emits one row ``(key, mean)``.

    Args:
        half_life: the age at which a value has half of its weight, more than 0: in events of the
            key, or in units of ``event.timestamp``: 3_600_000_000 is an hour with
            ``time_unit="us"``.
        by: what the age of a value is, ``"event"``, the number of later events of its key, or
            ``"time"``, the time since. By time an event that is older than those before it gets the
            lower weight of its age: the mean is the same in whichever order the events come, up
            to rounding.
        key: type of the column ``key``, ``int`` or ``str``; with another name for it
            ``{"user": str}``.
        limit: keys at most, 1 to 2**28. The operator raises OverflowError for one more.
        value: name of the column ``value``.
        time_unit: of the half-life by time, as of :func:`specstream.operator`: an order column of
            times is cast to it.

    State: ``averages``, a dict by key of ``mean``, ``weight``, the sum of all weights, and
    ``newest``, the time of age 0. Events of different keys never conflict; those of one key always
    do.

    The operator raises ValueError where the mean would be NaN or infinite.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.signals import exponential_average
    >>> values = {"key": ["A"] * 3, "value": [0.0, 8.0, 8.0], "time": [0, 10, 40]}
    >>> with ss.Engine(exponential_average(half_life=10, by="time"), threads=2) as engine:
    ...     output = engine.process(values, order_by="time")
    >>> [round(mean, 3) for mean in output["mean"].to_pylist()]
    [0.0, 5.333, 7.579]
    """
    # One piece: state and operator are read together, and close over the same numbers.
    half_life = float(
        number(
            "exponential_average: half_life", half_life, 5e-324, 1.7e308, "a finite number above 0"
        )
    )
    is_by_time = one_of("exponential_average: by", by, ("event", "time")) == "time"
    keyed, key = named_column("exponential_average: key", key, "key", taken=("mean",))
    value = column_name("exponential_average: value", value, (keyed,))
    limit = integer("exponential_average: limit", limit, 1, 2**28)
    decay_of_an_event = 0.5 ** (1.0 / half_life)

    class Average(ss.Record):
        mean: float = 0.0
        weight: float = 0.0
        newest: int = 0

    class ExponentialAverageState(ss.State):
        averages = ss.dict(key, Average, limit=limit)

    def faded(age: int) -> float:
        """What is left of a weight; an age below 0 is one that does not fit into 64 bits."""
        return 0.5 ** (age / half_life) if age >= 0 else 0.0

    @ss.operator(
        state=ExponentialAverageState,
        event={keyed: key, value: float},
        emits={keyed: key, "mean": float},
        name="exponential_average",
        time_unit=time_unit,
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        key, x = getattr(event, keyed), getattr(event, value)
        average = state.averages.get(key)
        if average is None:
            average = Average(newest=event.timestamp)
            state.averages[key] = average

        weight = 1.0
        if not is_by_time:
            average.weight *= decay_of_an_event
        elif event.timestamp >= average.newest:
            average.weight *= faded(event.timestamp - average.newest)
            average.newest = event.timestamp
        else:
            weight = faded(average.newest - event.timestamp)

        # From the heavier of the two, so that a large mean that has almost no weight leaves no
        # rounding error of its own size.
        older = average.weight
        average.weight += weight
        if weight > older:
            mean = x + (average.mean - x) * (older / average.weight)
        else:
            mean = average.mean + (x - average.mean) * (weight / average.weight)
        if not math.isfinite(mean):
            raise ValueError(f"exponential_average: {value}={x} makes the mean {mean}")
        average.mean = mean
        emit(key, mean)

    return process
