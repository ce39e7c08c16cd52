"""Duplicates are dropped in fixed memory: a stateful filter (Brito 2010, 2.1.2) on Bloom filters.

A Bloom filter (Bloom 1970) keeps a set as bits: a key sets several, which hashes of it select, and
counts as seen if all are set. It never forgets a key, and takes more and more new ones for seen the
fuller it is. So there are two of them, of which one is filled; when it has its capacity, the other
one is emptied and filled from then on. A key is looked up in both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import specstream as ss
from specstream.declarations.chosen_columns import columns_of, key_of
from specstream.declarations.options import integer, number, refuses_unknown
from specstream.operators.synopses.hashing import mixed
from specstream.structures import increment

__all__ = ["distinct_bloom"]


@refuses_unknown
def distinct_bloom(
    columns: Mapping[str, Any],
    key: str | Sequence[str],
    capacity: int = 100_000,
    error: float = 0.01,
) -> ss.Operator:
    """The first event of each key, but for a few that are taken for duplicates by mistake.

    A key counts as seen until ``capacity`` others were forwarded after it, at least, and 2 *
    ``capacity`` at most. A key that is new is dropped with a probability of at most about
    ``error``, somewhat less on average.

    Args:
        columns: of an event, ``{name: type}``; they are emitted as they came.
        key: the column, or several, by which events are the same; no float, and none that may be
            null.
        capacity: keys of a filter, 1 to 2**26.
        error: share of new keys that may be dropped, 1e-6 to 0.5.

    State: ``bits``, two rows of words, together 22 bits for each key of the capacity for 0.01, and
    256 at least; and ``forwarded``, the number of keys that were put in. An event conflicts with
    one before it that has changed a word that it reads, or has emptied a filter, once in
    ``capacity``.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: a column has a type that none can have.

    >>> import specstream as ss
    >>> from specstream.operators.basic import distinct_bloom
    >>> once = distinct_bloom({"user": str, "price": float}, key="user")
    >>> with ss.Engine(once, threads=2) as engine:
    ...     engine.process({"user": ["a", "b", "a"], "price": [5.0, 6.0, 7.0]}).to_pydict()
    {'user': ['a', 'b'], 'price': [5.0, 6.0]}
    """
    columns = columns_of("distinct_bloom: columns", columns)
    names = tuple(columns)
    key = key_of("distinct_bloom: key", key, columns)
    capacity = integer("distinct_bloom: capacity", capacity, 1, 2**26)
    error = number("distinct_bloom: error", error, 1e-6, 0.5, "a number from 1e-6 to 0.5")
    # Each of the two may be wrong half as often. The best number of bits leaves half of them unset.
    bits_of_key = max(1, round(-math.log2(error / 2.0)))
    # That goes by averages, which are none of a few bits; so there is a word of them at least.
    size = max(64, math.ceil(capacity * -math.log(error / 2.0) / math.log(2.0) ** 2))

    class BloomState(ss.State):
        bits = ss.array(np.uint64, (2, size // 64 + 1))
        forwarded = ss.scalar(int)

    @ss.operator(state=BloomState, event=columns, emits=columns, name="distinct_bloom")
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        this = 0
        for part in tuple(getattr(event, name) & -1 for name in key):  # of a string its code
            this = int(mixed(this ^ part) >> np.uint64(1))
        places = [_place(this, number, size) for number in range(1, bits_of_key + 1)]
        for one in range(2):
            for at in places:
                if not _is_set(state.bits, one, at):
                    break
            else:
                return

        before = increment(state, "forwarded") - 1
        filled = before // capacity % 2
        if before % capacity == 0 and before >= 2 * capacity:
            state.bits[filled] = np.uint64(0)
        for at in places:
            state.bits[filled, at >> 6] |= np.uint64(1) << np.uint64(at & 63)
        # A null that is not asked for would be emitted as 0.
        emit(
            *tuple(None if getattr(event, name) is None else getattr(event, name) for name in names)
        )

    return process


def _place(key: Any, number: Any, size: Any) -> Any:
    return (int(mixed(key, number) >> np.uint64(32)) * size) >> 32


def _is_set(bits: Any, one: Any, at: Any) -> Any:
    return (bits[one, at >> 6] >> np.uint64(at & 63)) & np.uint64(1) != np.uint64(0)
