"""Cumulative sums: an alarm when the mean of a key has shifted (Page 1954).

How far each value is above the target, less some drift that is allowed for, is added up; where the
sum would be negative it begins again at 0. As long as the mean is on target the sum returns to 0
again and again; once the mean is higher by more than the drift, the sum grows until it passes the
threshold. A second sum does the same for values below. The event at which the sum left 0 for the
last time is the usual estimate of when the shift happened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import column_name, named_column
from specstream.declarations.options import integer, number, refuses_unknown

__all__ = ["cusum"]

_LARGEST = 1.7e308


@refuses_unknown
def cusum(
    threshold: float,
    drift: float = 0.0,
    target: float | None = None,
    warm_up: int = 20,
    key: type | Mapping[str, type] = str,
    limit: int = 2**20,
    value: str = "value",
) -> ss.Operator:
    """Two-sided CUSUM: an alarm when the values of a key have shifted up or down.

    Events have the columns ``key`` and ``value``, a float. An alarm is a row ``(key, up, sum,
    since)``: whether the values have gone up, the sum that has passed the threshold, and the time
    of the event with which it left 0: its number, without ``order_by=``. Then both sums begin at 0
    again.

    Usual settings, in standard deviations of the values when all is well: a drift of half of the
    shift that matters, like 0.5, and a threshold of 4 or 5.

    Args:
        threshold: what a sum has to be above for an alarm, more than 0, in units of ``value``.
        drift: how far a value may be from the target and not count, 0 or more, in the same units.
        target: the mean when all is well; None: the mean of the first ``warm_up`` values of a key,
            and, after each alarm, of the next ``warm_up`` ones, which are not tested themselves.
        warm_up: see ``target``; at least 1.
        key: type of the column ``key``, ``int`` or ``str``; with another name for it
            ``{"user": str}``.
        limit: keys at most, 1 to 2**28. The operator raises OverflowError for one more.
        value: name of the column ``value``.

    State: ``sums``, a dict by key: the sums ``high`` and ``low``, the event since which each is
    above 0, the ``target`` and how many values it was ``learned`` of. Events of different keys
    never conflict; those of one key mostly do, as each changes its sums.

    The operator raises ValueError for a value that is NaN, infinite, or too far from the target.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.signals import cusum
    >>> values = {"key": ["A"] * 6, "value": [0.1, -0.2, 1.5, 1.0, 1.2, 0.9]}
    >>> with ss.Engine(cusum(threshold=2.0, drift=0.5, target=0.0), threads=2) as engine:
    ...     print(engine.process(values).to_pylist())
    [{'key': 'A', 'up': True, 'sum': 2.2, 'since': 2}]
    """
    # One piece: state and operator are read together, and close over the same numbers.
    threshold = float(
        number("cusum: threshold", threshold, 5e-324, _LARGEST, "a finite number above 0")
    )
    drift = float(number("cusum: drift", drift, 0.0, _LARGEST, "a finite number of at least 0"))
    if target is not None:
        target = number("cusum: target", target, -_LARGEST, _LARGEST, "a finite number or None")
    warm_up = integer("cusum: warm_up", warm_up, 1)
    keyed, key = named_column("cusum: key", key, "key", taken=("up", "sum", "since"))
    value = column_name("cusum: value", value, (keyed,))
    limit = integer("cusum: limit", limit, 1, 2**28)

    begin = 0.0 if target is None else float(target)
    to_learn = warm_up if target is None else 0

    class Sums(ss.Record):
        target: float = begin
        learned: int = 0
        high: float = 0.0
        high_since: int = 0
        low: float = 0.0
        low_since: int = 0

    class CusumState(ss.State):
        sums = ss.dict(key, Sums, limit=limit)

    @ss.operator(
        state=CusumState,
        event={keyed: key, value: float},
        emits={keyed: key, "up": bool, "sum": float, "since": int},
        name="cusum",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        key, x = getattr(event, keyed), getattr(event, value)
        sums = state.sums.get(key)
        if sums is None:
            sums = Sums()
            state.sums[key] = sums
        above = x - sums.target
        if not math.isfinite(above):
            raise ValueError(f"cusum: {value}={x} is not finite, or too far from the target")
        if sums.learned < to_learn:
            sums.learned += 1
            sums.target += above / sums.learned
            return

        if sums.high == 0.0:
            sums.high_since = event.timestamp
        if sums.low == 0.0:
            sums.low_since = event.timestamp
        sums.high = max(0.0, sums.high + above - drift)
        sums.low = max(0.0, sums.low - above - drift)

        # Not both: the value that takes one sum above the threshold brings the other one down.
        if sums.high > threshold:
            emit(key, True, sums.high, sums.high_since)
        elif sums.low > threshold:
            emit(key, False, sums.low, sums.low_since)
        else:
            return
        sums.high = 0.0
        sums.low = 0.0
        sums.target = begin
        sums.learned = 0

    return process
