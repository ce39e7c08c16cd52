"""The frequent items of a stream, and bounds of how often they came (Metwally and others 2005).

There are k counters. An item that has none takes over the least counter when all are in use, and
counts on from it: that was the error that the new item can have at most.

The least counter is found by a priority queue with one entry for each counter, which may be behind:
an event whose item has a counter raises only that one. When a counter is to be taken over, entries
that are behind are put back with their new count until one is up to date. Each time is paid for by
an event that has raised the counter.
"""

from __future__ import annotations

from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, refuses_unknown

__all__ = ["space_saving"]


@refuses_unknown
def space_saving(k: int = 100, item: type | Mapping[str, type] = int) -> ss.Operator:
    """For each event its item, a count that is not too low, and its error at most.

    Events have one column ``item``. For each event one row ``(item, count, error)`` is emitted, the
    event included: the item came at least ``count - error`` times and at most ``count`` times.
    After n events the error is at most n / k, and every item that came more than n / k times has a
    counter.

    Args:
        k: counters, 1 to 2**20.
        item: type of the column, ``int`` or ``str``; with another name for it ``{"page": str}``.

    State: ``counters``, a dict of the number of each item's counter; arrays ``items``, ``counts``
    and ``errors`` (k); and ``least``, the queue of (count, number). Two events conflict if they
    have the same item, or if neither of their items has a counter.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import space_saving
    >>> with ss.Engine(space_saving(k=2, item=str), threads=2) as engine:
    ...     output = engine.process({"item": ["a", "a", "b", "c", "a"]})
    >>> for row in output.to_pylist():
    ...     print(*row.values())
    a 1 0
    a 2 0
    b 1 0
    c 2 1
    a 3 0
    """
    k = integer("space_saving: k", k, 1, 2**20)
    column, of = named_column("space_saving: item", item, "item", taken=("count", "error"))

    class SpaceSavingState(ss.State):
        counters = ss.dict(of, int, limit=k)
        items = ss.array(of, k)
        counts = ss.array(int, k)
        errors = ss.array(int, k)
        least = ss.priority_queue((int, int), limit=k)

    @ss.operator(
        state=SpaceSavingState,
        event={column: of},
        emits={column: of, "count": int, "error": int},
        name="space_saving",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        item = getattr(event, column)
        if item in state.counters:
            at = state.counters[item]
            state.counts[at] += 1
        elif len(state.counters) < k:
            at = len(state.counters)
            state.counters[item] = at
            state.items[at] = item
            state.counts[at] = 1
            state.least.push((1, at))
        else:
            count, at = state.least.peek()
            while count < state.counts[at]:  # behind
                state.least.replace((state.counts[at], at))
                count, at = state.least.peek()
            del state.counters[state.items[at]]
            state.counters[item] = at
            state.items[at] = item
            state.errors[at] = count
            state.counts[at] = count + 1
        emit(item, state.counts[at], state.errors[at])

    return process
