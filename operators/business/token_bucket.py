"""A rate limit by a token bucket for each key, by the time of the events.

A bucket holds ``capacity`` tokens at most and is full at first; tokens flow in at a steady rate,
and a request is allowed if the bucket has the tokens that it costs (Turner 1986, who calls it a
leaky bucket as a meter). So a key may send a burst of ``capacity``, and no more than the rate in
the long run.

Arithmetic is exact: a bucket's level is an integer in units of 1 / ``per`` of a token. Each unit of
time adds ``refill`` of these, and a token is ``per`` of them, so no fraction is ever rounded, and
none is lost by who asks often. The level is brought up to date when its key is asked for, not by a
clock. A bucket that nobody has asked for so long that it would be full is as good as none, and
expires.
"""

from __future__ import annotations

from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, refuses_unknown

__all__ = ["token_bucket"]

_MOST = 2**62


@refuses_unknown
def token_bucket(
    capacity: int = 10,
    refill: int = 1,
    per: int = 1,
    key: type | Mapping[str, type] = str,
    time_unit: str | None = None,
) -> ss.Operator:
    """Which requests of each key are within its rate: ``refill`` tokens ``per`` units of time.

    Events have the columns ``key`` and ``cost``, how many tokens a request takes; they are ordered
    by a column of times or integers (``order_by=``). Each emits one row: ``key``; ``allowed``;
    ``remaining``, the whole tokens that are left then; and ``wait``, how many units of
    ``event.timestamp`` later the same request would be allowed if nothing else came: 0 for one that
    is allowed, null for one that costs more than the capacity. A request that is not allowed takes
    nothing.

    Args:
        capacity: tokens that a bucket holds, at least 1.
        refill: tokens that flow in during ``per`` units of time, at least 1.
        per: units of ``event.timestamp``, at least 1: with timestamps in microseconds 100 requests
            a second are ``refill=100, per=1_000_000``. All together, ``capacity * per + refill`` is
            less than 2**62.
        key: type of the column, ``int`` or ``str``; with another name for it ``{"user": str}``.
        time_unit: of ``per``, as of :func:`specstream.operator`: an order column of times
            is cast to it.

    State: ``buckets``, a dict from keys to records: ``level`` in units of 1 / ``per`` token, and
    ``at``, the time for which it holds. Events of different keys do not conflict. A bucket goes
    when it would be full; an event of its key soon after that may run twice.

    The operator raises ValueError for a negative cost, and for a request before the last one of its
    key, as a later batch may have; with ``submit``, or ``watermark=`` in Spark, there is none. If
    its bucket has gone by then, it finds a full one instead.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.business import token_bucket
    >>> requests = {"key": ["a", "a", "a", "b", "a"], "cost": [1] * 5, "time": [0, 1, 2, 2, 7]}
    >>> with ss.Engine(token_bucket(capacity=2, refill=1, per=4), threads=2) as engine:
    ...     for row in engine.process(requests, order_by="time").to_pylist():
    ...         print(row)
    {'key': 'a', 'allowed': True, 'remaining': 1, 'wait': 0}
    {'key': 'a', 'allowed': True, 'remaining': 0, 'wait': 0}
    {'key': 'a', 'allowed': False, 'remaining': 0, 'wait': 2}
    {'key': 'b', 'allowed': True, 'remaining': 1, 'wait': 0}
    {'key': 'a', 'allowed': True, 'remaining': 0, 'wait': 0}
    """
    # One piece: state and operator are read together, and close over the same numbers.
    capacity = integer("token_bucket: capacity", capacity, 1, _MOST)
    refill = integer("token_bucket: refill", refill, 1, _MOST)
    per = integer("token_bucket: per", per, 1, _MOST)
    named, key = named_column(
        "token_bucket: key", key, "key", taken=("cost", "allowed", "remaining", "wait")
    )
    full = capacity * per
    if full + refill >= _MOST:
        raise ss.ConfigurationError(
            f"token_bucket: capacity={capacity}, refill={refill} and per={per} make levels of "
            f"{full + refill}; expected less than 2**62: give the rate in lower terms"
        )
    filling = -(-full // refill)  # from empty to full, rounded up

    class Bucket(ss.Record):
        level: int
        at: int

    class TokenBucketState(ss.State):
        buckets = ss.dict(key, Bucket, expire_after=filling)

    @ss.operator(
        state=TokenBucketState,
        event={named: key, "cost": int},
        emits={named: key, "allowed": bool, "remaining": int, "wait": ss.nullable(int)},
        name="token_bucket",
        time_unit=time_unit,
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        this = getattr(event, named)
        cost = event.cost
        if cost < 0:
            raise ValueError(f"token_bucket: cost={cost}; expected at least 0")
        now = event.timestamp
        level = full
        bucket = state.buckets.get(this)
        if bucket is not None:
            if now < bucket.at:
                raise ValueError(
                    f"token_bucket: request at {now}; the last was at {bucket.at}; sort the events "
                    "of all tables, submit() them, or take watermark= in Spark"
                )
            # What has not expired was written less than `filling` ago, so nothing overflows here.
            level = min(full, bucket.level + (now - bucket.at) * refill)

        wait = None
        allowed = cost <= capacity and cost * per <= level
        if allowed:
            level -= cost * per
            wait = 0
        elif cost <= capacity:
            wait = -((level - cost * per) // refill)
        state.buckets[this] = Bucket(level, now)
        emit(this, allowed, level // per, wait)

    return process
