"""Events get columns from a table that changes slowly: a join with the latest row of a key
(Brito 2010, 2.1.2: a join whose right window is the latest event of each key).

The table is a stream as well: a row of it replaces that of its key. Rows are kept in a dict, so
that an event conflicts only with a change of the row that it has read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import specstream as ss
from specstream.declarations.chosen_columns import columns_of, kept_as, key_of
from specstream.declarations.containers import MOST_IN_ENTRY, MOST_IN_KEY
from specstream.declarations.options import integer, one_of, refused, refuses_unknown

__all__ = ["enrich"]


@refuses_unknown
def enrich(
    event: Mapping[str, Any],
    table: Mapping[str, Any],
    key: str | Sequence[str],
    missing: str = "drop",
    limit: int = 2**24,
) -> ss.Operator:
    """Every event with the latest row that the table has for its key.

    It is a vertex of a :class:`specstream.Pipeline` with the inputs ``event`` and ``table``. Rows
    emitted have the columns of the event, and behind them those of the table but for the key. An
    event sees the rows of the table that came before it. Of one time the sources come in the order
    of their names; where both inputs have a row in one phase, the table's comes first.

    Args:
        event: columns of the input ``event``, ``{name: type}``.
        table: columns of the input ``table``, up to 31; besides the key they have other names than
            those of the event, and none may be null.
        key: the column, or up to 8, that both have; no float, and none that may be null.
        missing: what becomes of an event whose key the table has not: ``"drop"``, it emits
            nothing; ``"null"``, the columns of the table are null; ``"raise"``, KeyError.
        limit: keys that are kept at most, 1 to 2**31; one more raises OverflowError.

    State: ``rows``, a dict of tuples: of the key's columns the table's others.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.
        DeclarationError: a column has a type that none can have, or ``limit`` makes a state of
            2**32 words or more.

    >>> import specstream as ss
    >>> from specstream.operators.basic import enrich
    >>> sale, item = {"item": str, "count": int}, {"item": str, "price": float}
    >>> p = ss.Pipeline("shop")
    >>> sales, items = p.source("sales", sale), p.source("items", item)
    >>> p.sink("priced", p.add(enrich(sale, item, "item", "null"), event=sales, table=items))
    >>> day = {
    ...     "sales": {"time": [2, 3, 5], "item": ["tea", "jam", "tea"], "count": [2, 1, 1]},
    ...     "items": {"time": [1, 4], "item": ["tea", "tea"], "price": [4.0, 4.5]},
    ... }
    >>> with ss.Engine(p, threads=2) as engine:
    ...     for sold in engine.process(day, order_by="time").to_pylist():
    ...         print(*sold.values())
    tea 2 4.0
    jam 1 None
    tea 1 4.5
    """
    event = columns_of("enrich: event", event)
    table = columns_of("enrich: table", table)
    key_of("enrich: key", key, table, most=MOST_IN_KEY)
    key = key_of("enrich: key", key, event)
    for name in key:
        if ss.nullable(event[name]) != ss.nullable(table[name]):
            raise refused("enrich: table", table, f"{name!r} to be of the type of the event's")
    own = tuple(event)
    added = tuple(name for name in table if name not in key)
    for name in added:
        if name in event:
            expected = f"{name!r} to be no column of the event, or of the key: rename it"
            raise refused("enrich: table", table, expected)
        if ss.nullable(table[name]) == table[name]:
            raise refused("enrich: table", table, f"columns without nulls: {name!r} is nullable")
    if not added:
        raise refused("enrich: table", table, "a column besides the key")
    if len(table) > MOST_IN_ENTRY:
        raise refused("enrich: table", table, f"at most {MOST_IN_ENTRY} columns")
    missing = one_of("enrich: missing", missing, ("drop", "null", "raise"))
    limit = integer("enrich: limit", limit, 1, 2**31)
    kept_key = tuple(kept_as(event[name]) for name in key)
    kept = tuple(kept_as(table[name]) for name in added)
    new = {name: ss.nullable(table[name]) if missing == "null" else table[name] for name in added}

    class EnrichState(ss.State):
        rows = ss.dict(kept_key, kept, limit=limit)

    # A null that is not asked for would be emitted as 0.
    def null(event, emit):  # type: ignore[no-untyped-def]
        emit(
            *tuple(
                None if getattr(event.event, name) is None else getattr(event.event, name)
                for name in own
            )
        )

    otherwise = {"drop": _drop, "null": null, "raise": _raise}[missing]

    @ss.operator(
        state=EnrichState,
        inputs={"event": event, "table": table},
        emits={**event, **new},
        name="enrich",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        if event.changed("table"):
            this = tuple(getattr(event.table, name) for name in key)
            state.rows[this] = tuple(getattr(event.table, name) for name in added)
        if event.changed("event"):
            this = tuple(getattr(event.event, name) for name in key)
            if this in state.rows:
                emit(
                    *tuple(
                        None if getattr(event.event, name) is None else getattr(event.event, name)
                        for name in own
                    ),
                    *state.rows[this],
                )
            else:
                otherwise(event, emit)

    return process


def _drop(event: Any, emit: Any) -> None:
    pass


def _raise(event: Any, emit: Any) -> None:
    raise KeyError("the table has no row with the key of this event")
