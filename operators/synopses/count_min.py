"""How often each item came, in bounded memory (Cormode and Muthukrishnan 2005).

A *count-min sketch* is a matrix of counters, each row with a hash function of the item that selects
a column. An event adds one to a counter of each row. Other items can only add to a counter, so each
row's is an upper bound, and the least of them is the estimate. *Conservative update* (Estan and
Varghese 2002) raises only those counters that are below the new estimate: it is still an upper
bound, and never a larger one.
"""

from __future__ import annotations

from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import flag, integer, refuses_unknown
from specstream.operators.synopses.hashing import pairwise
from specstream.operators.top_k import hash_constants

__all__ = ["count_min"]


@refuses_unknown
def count_min(
    width: int = 1024,
    rows: int = 5,
    item: type | Mapping[str, type] = int,
    conservative: bool = False,
) -> ss.Operator:
    """How often the item of each event came so far, never too low.

    Events have one column ``item``. For each event one row ``(item, count)`` is emitted, the event
    included. After n events a count is not lower than the true one, and exceeds it by more than
    e * n / width with a probability of at most exp(-rows).

    Args:
        width: columns of the sketch, 1 to 2**31.
        rows: rows of the sketch, 1 to 63.
        item: type of the column, ``int`` or ``str``; with another name for it ``{"page": str}``.
        conservative: raise only the counters that have to be raised; estimates become better, most
            of all those of rare items.

    State: ``sketch`` (rows, width), int64. Two events conflict if they share a counter: always if
    they have the same item, and else with a probability of rows / width.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: the state would take 2**32 words or more.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import count_min
    >>> with ss.Engine(count_min(item=str), threads=2) as engine:
    ...     output = engine.process({"item": ["a", "b", "a", "a"]})
    >>> output["count"].to_pylist()
    [1, 1, 2, 3]
    """
    width = integer("count_min: width", width, 1, 2**31)
    rows = integer("count_min: rows", rows, 1, 63)
    conservative = flag("count_min: conservative", conservative)
    column, item = named_column("count_min: item", item, "item", taken=("count",))
    hashes = hash_constants(rows)

    class CountMinState(ss.State):
        sketch = ss.array(int, (rows, width))

    @ss.operator(
        state=CountMinState,
        event={column: item},
        emits={column: item, "count": int},
        name="count_min",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        this = getattr(event, column)
        places = [(pairwise(this, constants) * width) >> 32 for constants in hashes]
        count = 1 + min([state.sketch[row, place] for row, place in enumerate(places)])
        for row, place in enumerate(places):
            if conservative:
                state.sketch[row, place] = max(state.sketch[row, place], count)
            else:
                state.sketch[row, place] += 1
        emit(this, count)

    return process
