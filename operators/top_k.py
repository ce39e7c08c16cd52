"""The most frequent items of a stream, in bounded memory (Brito 2010, 2.1.1 and 2.1.3).

Counting every item exactly takes memory that grows with the stream. A *count sketch* [CCFC04] takes
a fixed matrix instead. Each of its rows has two hash functions of the item: one selects a column,
the other is +1 or -1. An event adds the sign of its item to one counter of each row. A counter
times the sign of an item is that row's estimate of how often the item came: what other items left
in the counter has either sign with equal probability and cancels out on average. The median over
the rows is robust against the one row in which a frequent item happens to share the column.

Listing 2.3 writes ``median(estimates) * bin_hash(x)``, with one sign outside of the median and a
sign function per *column*. Read literally this is wrong: rows with different signs would have their
median taken before the signs are undone, and two items of one column would always have the same
sign, so that nothing cancels. Here, as in [CCFC04], each row has a sign function of the item, and
is multiplied by it before the median.

By Listing 2.6 every event looks at its estimate and at the whole list, and so conflicts with every
event that counts an item of the list. The answer needs less. Of an item in the list nobody asks for
the estimate: its counters are added to unread, and its count is a predicted counter. Any other
item matters only if its estimate is above the least count, which never falls. So a threshold is
kept that is not above it, and is brought up to it only where an estimate is above the threshold:
an event that stays below it reads no count, and of the sketch just over half of its counters.
"""

from __future__ import annotations

from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, refuses_unknown
from specstream.structures import add, increment

__all__ = ["hash_constants", "top_k"]

_MASK = 0xFFFFFFFF


@refuses_unknown
def top_k(
    k: int = 5,
    rows: int = 5,
    width: int = 1024,
    item: type | Mapping[str, type] = int,
) -> ss.Operator:
    """The ``k`` most frequent items: an event whose item is or becomes one of them is forwarded.

    Events have one column ``item``. Rows emitted are ``(item, count)``: at most one per event, with
    the item's new count. An item enters the list when its estimate is larger than the least count
    there, and takes the first place that has it. A count is exact from then on, up to the error of
    that estimate. Items outside of the list emit nothing.

    Args:
        k: length of the list, 1 to 65536.
        rows: rows of the count sketch, odd, 1 to 63; more rows make a bad estimate rarer.
        width: columns of the count sketch, 1 to 2**31; the error of an estimate goes down with the
            square root of it.
        item: type of the column, ``int`` or ``str``; with another name for it ``{"page": str}``.

    State: ``sketch`` (rows, width), ``items`` and ``counts`` (k), and ``threshold``, all int64. An
    entry of the list with count 0 is free, whatever its item; the code of a string stands for it.
    The threshold is at most the least count. A snapshot of a version without it can be restored.

    Two events conflict if they have the same item outside of the list, share a counter of which the
    later one needs the value, or if one changes which items are in the list. Events of the same
    item of the list conflict only where its count is not among the four that are predicted
    (:func:`specstream.structures.increment`), or is predicted wrongly; and as long as the list has
    had room for all items.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: the state would take 2**32 words or more.

    >>> import specstream as ss
    >>> from specstream.operators import top_k
    >>> with ss.Engine(top_k(k=2), threads=2) as engine:
    ...     output = engine.process({"item": [7, 7, 3, 9, 7]})
    ...     dict(zip(engine.state.items.tolist(), engine.state.counts.tolist()))
    {7: 3, 3: 1}
    >>> list(zip(output["item"].to_pylist(), output["count"].to_pylist()))
    [(7, 1), (7, 2), (3, 1), (7, 3)]
    """
    # One piece: state and operator are read together, and close over the same numbers.
    k = _checked("k", k, 1, 2**16)
    rows = _checked("rows", rows, 1, 63)
    if rows % 2 == 0:
        raise ss.ConfigurationError(
            f"top_k: rows={rows}; expected an odd number: the median of an "
            f"even number of estimates is none of them, try {rows + 1}"
        )
    width = _checked("width", width, 1, 2**31)
    named, item = named_column("top_k: item", item, "item", taken=("count",))

    hashes = hash_constants(rows)
    middle = rows // 2

    class TopKState(ss.State):
        sketch = ss.array(int, (rows, width))
        items = ss.array(int, k, fill=-1)
        counts = ss.array(int, k)
        threshold = ss.scalar(int)
        estimates = ss.scratch(int, rows)

    @ss.operator(
        state=TopKState, event={named: item}, emits={named: item, "count": int}, name="top_k"
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        item = getattr(event, named)
        threshold = state.threshold

        # The list (Listing 2.6). Its free entries are those with count 0: an item may have any
        # value, also the one that they are filled with. Above a threshold of 0 there are none.
        place = -1
        for i in range(k):
            if state.items[i] == item and (threshold > 0 or state.counts[i] > 0):
                place = i
                break

        # Count sketch (Listing 2.3). One strongly universal hash per row gives both functions: for
        # fixed random a, b, c the upper 33 bits of (a + high) * (b + low) + c, modulo 2**64, are
        # pairwise independent over all 64-bit items. The top bit decides the sign, the next 32
        # the column. Nobody asks for the estimate of an item of the list, and once most rows are
        # not above the threshold, neither is the median: then counters are added to unread.
        low = item & _MASK
        high = (item >> 32) & _MASK
        below = 0 if place < 0 else rows
        for row, (a, b, c) in enumerate(hashes):
            h = (a + high) * (b + low) + c
            sign = (h >> 63) | 1
            column = (((h >> 31) & _MASK) * width) >> 32
            if below > middle:
                add(state.sketch, (row, column), sign)
            else:
                counter = state.sketch[row, column] + sign
                state.sketch[row, column] = counter
                state.estimates[row] = counter * sign
                if counter * sign <= threshold:
                    below += 1

        if place >= 0:
            emit(item, increment(state.counts, place))
            return
        if below > middle:
            return

        # It may enter, by the exact least count.
        estimate = sorted(state.estimates)[middle]
        smallest = state.counts.argmin()
        least = state.counts[smallest]
        if least != threshold:
            state.threshold = least
        if least < estimate:
            state.items[smallest] = item
            state.counts[smallest] = estimate
            emit(item, estimate)

    return process


def _checked(option: str, value: object, low: int, high: int) -> int:
    return integer(f"top_k: {option}", value, low, high)


def hash_constants(rows: int) -> tuple[tuple[int, int, int], ...]:
    """The constants a, b and c of each row's hash: the same in every run, so that snapshots fit."""
    return tuple(
        (_random(3 * row), _random(3 * row + 1), _random(3 * row + 2)) for row in range(rows)
    )


def _random(number: int) -> int:
    """Output ``number`` of the generator splitmix64, as int64."""
    x = ((number + 1) * 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) % 2**64
    x ^= x >> 31
    return x - 2**64 if x >= 2**63 else x
