"""Duplicates are dropped in fixed memory: a stateful filter (Brito 2010, 2.1.2) on Bloom filters.

A Bloom filter (Bloom 1970) keeps a set as bits: a key sets several, which hashes of it select, and
counts as seen if all are set. It never forgets a key, and takes more and more new ones for seen the
fuller it is. So there are two of them, of which one is filled; when it has its capacity, the other
one is emptied and filled from then on. A key is looked up in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import specstream as ss
from specstream.declarations.options import function, integer, number
from specstream.operators.synopses.hashing import mixed
from specstream.structures import increment

__all__ = ["distinct_bloom"]


def distinct_bloom(
    event: Any,
    key: Callable[..., Any],
    row: Callable[..., Any],
    emits: Any = None,
    capacity: int = 100_000,
    error: float = 0.01,
) -> ss.Operator:
    """The first event of each key, but for a few that are taken for duplicates by mistake.

    ``key`` and ``row`` are plain functions of the event, which are compiled along. For an event
    whose key does not count as seen one row is emitted, whose columns ``row`` gives. A key counts
    as seen until ``capacity`` others were forwarded after it, at least, and 2 * ``capacity`` at
    most. A key that is new is dropped with a probability of at most about ``error``, half of that
    on average.

    Args:
        event: columns of an event, in any form that ``@ss.operator`` takes.
        key: of an event, its key: an int or a string. For several columns a string of them will do:
            ``f"{event.user} {event.page}"``.
        row: of an event, the emitted columns, as a tuple in the order of ``emits``.
        emits: columns of an emitted row; those of the event if it is None.
        capacity: keys of a filter, 1 to 2**26.
        error: share of new keys that may be dropped, 1e-6 to 0.5.

    State: ``bits``, two rows of words, together 22 bits for each key of the capacity for 0.01;
    and ``forwarded``, the number of keys that were put in. An event conflicts with one before it
    that has forwarded a key with a common word, or has emptied a filter.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: ``event`` or ``emits`` declares nothing.

    >>> import specstream as ss
    >>> from specstream.operators.basic import distinct_bloom
    >>> def user(event):
    ...     return event.user
    >>> def row(event):
    ...     return event.user, event.price
    >>> once = distinct_bloom({"user": str, "price": float}, user, row)
    >>> with ss.Engine(once, threads=2) as engine:
    ...     engine.process({"user": ["a", "b", "a"], "price": [5.0, 6.0, 7.0]}).to_pydict()
    {'user': ['a', 'b'], 'price': [5.0, 6.0]}
    """
    key = function("distinct_bloom: key", key, "a function of the event")
    row = function("distinct_bloom: row", row, "a function of the event")
    capacity = integer("distinct_bloom: capacity", capacity, 1, 2**26)
    error = number("distinct_bloom: error", error, 1e-6, 0.5, "a number from 1e-6 to 0.5")
    # Each of the two may be wrong half as often: n keys of k bits in m leave a share of 1/2 unset.
    size = math.ceil(capacity * -math.log(error / 2.0) / math.log(2.0) ** 2)
    bits_of_key = max(1, round(size / capacity * math.log(2.0)))

    class BloomState(ss.State):
        bits = ss.array(np.uint64, (2, size // 64 + 1))
        forwarded = ss.scalar(int)

    @ss.operator(
        state=BloomState,
        event=event,
        emits=event if emits is None else emits,
        name="distinct_bloom",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        this = key(event)
        places = [_place(this, number, size) for number in range(1, bits_of_key + 1)]
        for one in range(2):
            for at in places:
                if not _is_set(state.bits, one, at):
                    break
            else:
                return

        before = increment(state, "forwarded") - 1
        filled = before // capacity % 2
        if before % capacity == 0:
            state.bits[filled] = np.uint64(0)
        for at in places:
            state.bits[filled, at >> 6] |= np.uint64(1) << np.uint64(at & 63)
        emit(*row(event))

    return process


def _place(key: Any, number: Any, size: Any) -> Any:
    return (int(mixed(key, number) >> np.uint64(32)) * size) >> 32


def _is_set(bits: Any, one: Any, at: Any) -> Any:
    return (bits[one, at >> 6] >> np.uint64(at & 63)) & np.uint64(1) != np.uint64(0)
