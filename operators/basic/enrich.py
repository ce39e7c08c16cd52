"""Events get columns from a table that changes slowly: a join with the latest value of a key
(Brito 2010, 2.1.2: a join whose right window is the latest event of each key).

The table is a stream as well: a row of it replaces the value of its key. Values are kept in a dict,
so that an event conflicts only with a change of the value that it has read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import specstream as ss
from specstream.declarations.options import function, integer, one_of

__all__ = ["enrich"]


def enrich(
    event: Any,
    table: Any,
    key: Any,
    value: Any,
    event_key: Callable[..., Any],
    table_key: Callable[..., Any],
    table_value: Callable[..., Any],
    row: Callable[..., Any],
    emits: Any,
    missing: str = "drop",
    limit: int = 2**24,
) -> ss.Operator:
    """Every event with the latest value that the table has for its key.

    It is a vertex of a :class:`specstream.Pipeline` with the inputs ``event`` and ``table``. An
    event sees the rows of the table that came before it. Of one time the sources come in the order
    of their names; where both inputs have a row in one phase, the table's comes first.

    Args:
        event: columns of the input ``event``.
        table: columns of the input ``table``.
        key: the type of a key, as ``ss.dict`` takes it: ``int``, ``str``, ``(str, int)``.
        value: the type of a value: a number, ``str``, a tuple, or a class of records.
        event_key: of the event, its key: ``event.event.symbol``.
        table_key: of the event, the key of the table's row: ``event.table.symbol``.
        table_value: of the event, the value of the table's row.
        row: of the event and the value, the emitted columns, as a tuple in the order of ``emits``.
        emits: columns of an emitted row.
        missing: what becomes of an event whose key the table has not: ``"drop"``, it emits
            nothing; ``"none"``, ``row`` is called with None in place of the value; ``"raise"``,
            KeyError.
        limit: keys that are kept at most, 1 to 2**31; one more raises OverflowError.

    State: ``values``, a dict of the latest value of each key.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: ``event``, ``table``, ``key``, ``value`` or ``emits`` declares nothing.

    >>> import specstream as ss
    >>> from specstream.operators.basic import enrich
    >>> def sold(event):
    ...     return event.event.item
    >>> def priced(event):
    ...     return event.table.item
    >>> def price(event):
    ...     return event.table.price
    >>> def row(event, price):
    ...     return event.event.item, None if price is None else event.event.count * price
    >>> sale, item = {"item": str, "count": int}, {"item": str, "price": float}
    >>> emits = {"item": str, "cost": ss.nullable(float)}
    >>> costs = enrich(
    ...     sale, item, str, float, sold, priced, price, row, emits, missing="none"
    ... )
    >>> p = ss.Pipeline("costs")
    >>> p.sink("costs", p.add(costs, event=p.source("sales", sale), table=p.source("items", item)))
    >>> day = {
    ...     "sales": {"time": [2, 3, 5], "item": ["tea", "jam", "tea"], "count": [2, 1, 1]},
    ...     "items": {"time": [1, 4], "item": ["tea", "tea"], "price": [4.0, 4.5]},
    ... }
    >>> with ss.Engine(p, threads=2) as engine:
    ...     print(engine.process(day, order_by="time").to_pydict())
    {'item': ['tea', 'jam', 'tea'], 'cost': [8.0, None, 4.5]}
    """
    event_key = function("enrich: event_key", event_key, "a function of the event")
    table_key = function("enrich: table_key", table_key, "a function of the event")
    table_value = function("enrich: table_value", table_value, "a function of the event")
    row = function("enrich: row", row, "a function of the event and the value")
    missing = one_of("enrich: missing", missing, ("drop", "none", "raise"))
    limit = integer("enrich: limit", limit, 1, 2**31)

    class EnrichState(ss.State):
        values = ss.dict(key, value, limit=limit)

    @ss.operator(
        state=EnrichState, inputs={"event": event, "table": table}, emits=emits, name="enrich"
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        if event.changed("table"):
            state.values[table_key(event)] = table_value(event)
        if event.changed("event"):
            this = event_key(event)
            if this in state.values or missing == "none":
                emit(*row(event, state.values.get(this)))
            elif missing == "raise":
                state.values[this]  # raises KeyError

    return process
