"""How often each item came, in bounded memory, neither too high nor too low on average.

A *count sketch* (Charikar, Chen and Farach-Colton 2002; Brito 2010, 2.1.1, Listing 2.3) is a matrix
of counters, each row with two hash functions of the item: one selects a column, the other is +1 or
-1. An event adds the sign of its item to a counter of each row. A counter times the sign of an item
is that row's estimate: what other items added has either sign, and cancels out on average. The
median over the rows is robust against those in which a frequent item shares the counter. Where
Listing 2.3 differs, and why it is not followed there, stands in ``operators/top_k.py``.

The error of a count-min sketch goes by the number of all events divided by the width; this one's
by the root of the sum of squares of the counts, divided by that of the width. This is less in a
long stream, unless few items make up much of it; but the error has either sign.
"""

from __future__ import annotations

from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, refused, refuses_unknown
from specstream.operators.synopses.hashing import pairwise
from specstream.operators.top_k import hash_constants

__all__ = ["count_sketch"]


@refuses_unknown
def count_sketch(
    width: int = 1024,
    rows: int = 5,
    item: type | Mapping[str, type] = int,
) -> ss.Operator:
    """How often the item of each event came so far, by the median of estimates without bias.

    Events have one column ``item``. For each event one row ``(item, count)`` is emitted, the event
    included. A count may be too high or too low: by more than 3 * L2 / sqrt(width) with a
    probability of at most 0.63**rows, where L2 is the square root of the sum of squares of the true
    counts of all other items. The count of a rare item may be zero or less. Where few items make up
    much of the stream, :func:`specstream.operators.synopses.count_min` has smaller errors at worst.

    Args:
        width: columns of the sketch, 1 to 2**31.
        rows: rows of the sketch, odd, 1 to 63.
        item: type of the column, ``int`` or ``str``; with another name for it ``{"page": str}``.

    State: ``sketch`` (rows, width), int64. Two events conflict if they share a counter: always if
    they have the same item, and else with a probability of rows / width.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: the state would take 2**32 words or more.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import count_sketch
    >>> with ss.Engine(count_sketch(item=str), threads=2) as engine:
    ...     output = engine.process({"item": ["a", "b", "a", "a"]})
    >>> output["count"].to_pylist()
    [1, 1, 2, 3]
    """
    width = integer("count_sketch: width", width, 1, 2**31)
    rows = integer("count_sketch: rows", rows, 1, 63)
    if rows % 2 == 0:
        raise refused("count_sketch: rows", rows, f"an odd number, such as {rows + 1}")
    column, item = named_column("count_sketch: item", item, "item", taken=("count",))
    # Signs have hashes of their own: the bound needs them to be independent of the columns. By
    # Chebyshev's inequality a row is beyond it with a probability of 1/9, and by Chernoff's bound
    # more than half of the rows are with one of (4 * 1/9 * 8/9) ** (rows / 2).
    constants = hash_constants(2 * rows)
    hashes = tuple(zip(constants[:rows], constants[rows:], strict=True))

    class CountSketchState(ss.State):
        sketch = ss.array(int, (rows, width))

    @ss.operator(
        state=CountSketchState,
        event={column: item},
        emits={column: item, "count": int},
        name="count_sketch",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        this = getattr(event, column)
        estimates = []
        for row, (of_place, of_sign) in enumerate(hashes):
            place = (pairwise(this, of_place) * width) >> 32
            sign = 1 if pairwise(this, of_sign) >> 31 else -1
            state.sketch[row, place] += sign
            estimates.append(state.sketch[row, place] * sign)
        emit(this, sorted(estimates)[rows // 2])

    return process
