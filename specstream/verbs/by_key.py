"""A state for each key, as a plain function of a record and an event; and all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.options import refused
from specstream.declarations.records import is_record, record_fields
from specstream.declarations.state_layout import scalar
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verbs.mapping import results
from specstream.verbs.writing import Keys, Writer, columns_given, indented, own_function, verb

__all__ = ["across", "keyed", "record_given"]


def record_given(option: str, record: Any) -> Any:
    """A class of records all of whose fields have defaults.

    Raises:
        ConfigurationError: it is none.
    """
    if not is_record(record):
        raise refused(option, record, "a class of records, class Order(ss.Record)")
    bare = [one.name for one in record_fields(record) if not one.has_default]
    if bare:
        raise ConfigurationError(
            f"{option}={record.__name__}, whose field {bare[0]!r} has no default; expected what it "
            f"is before the first event: {bare[0]}: ... = ..."
        )
    return record


@verb
def keyed(
    record: Any,
    step: Callable[..., Any],
    /,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    emits: Any = None,
    limit: int = 2**24,
    name: str = "keyed",
    **columns: Any,
) -> Operator:
    """A record for each key, and a plain function that an event of the key goes through.

    Args:
        record: a class of records, whose defaults are what it is before the first event.
        step: a function of the record, which it may change, and of the event. It gives a row, of
            one column its bare value and of several a tuple, or None: no row.
        event: columns of the events.
        key: the columns of the key, which rows have in front; an event whose key is null is
            dropped. Empty: there is one record.
        to_all: a function of an event: whether it goes to every key there is, in the order of their
            first events, as if it were of each. It makes no key, and before the first key nothing
            comes of it.
        forget: a function of a row: whether its key is gone behind it. Its next event begins anew.
        emits: the columns of the rows, in place of ``columns``.
        limit: the most keys.
        name: of the operator.
        columns: of the rows, by name.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> class Seen(ss.Record):
    ...     count: int = 0
    >>> def third(seen, event):
    ...     seen.count += 1
    ...     return seen.count if seen.count % 3 == 0 else None
    >>> thirds = ss.verbs.keyed(Seen, third, event={"user": str}, key="user", nth=int)
    >>> with ss.Engine(thirds) as engine:
    ...     engine.process({"user": ["a", "b", "a", "a"]}).to_pylist()
    [{'user': 'a', 'nth': 3}]
    """
    what = "keyed"
    writer = Writer(what, name, event, sign="ƒ", limit=limit)
    writer.keys = Keys.of(what, writer.event, key, to_all, forget)
    writer.names["Record"] = record_given(f"{what}: record", record)
    writer.names["step"] = own_function(
        f"{what}: step", step, "a function of a record and an event"
    )
    given = columns_given(what, emits, columns)
    writer.emitting(given)
    lines = kept_record(writer, "records", "record")
    sent, values = results("row_given", given)
    return writer.made(
        [
            *lines,
            "row_given = step(record, event)",
            "if row_given is not None:",
            *indented([*sent, *writer.emission(values)]),
        ]
    )


def kept_record(writer: Writer, field: str, name: str) -> list[str]:
    """Statements that give the key's record a name; there is one from then on.

    The class of the record is called ``Record`` in the text."""
    record = writer.names["Record"]
    if not writer.keys.columns:
        writer.fields[field] = scalar(record)
        return [f"{name} = state.{field}"]
    writer.fields[field] = writer.by_key(record)
    writer.forgets += [f"if key in state.{field}:", f"    del state.{field}[key]"]
    return [
        f"{name} = state.{field}.get(key)",
        f"if {name} is None:",
        f"    {name} = Record()",
        f"    state.{field}[key] = {name}",
    ]


@verb
def across(
    record: Any,
    add: Callable[..., Any],
    remove: Callable[..., Any],
    result: Callable[..., Any],
    /,
    *,
    event: Any,
    key: str | Sequence[str],
    leave: Callable[..., Any] | None = None,
    emits: Any = None,
    limit: int = 2**24,
    name: str = "across",
    **columns: Any,
) -> Operator:
    """What the latest rows of all keys come to, with each new one of them. A chain by nature.

    The row that a new one replaces is removed first, so that a step takes the same time however
    many keys there are. All events change one record, so that such an operator keeps to one core.

    Args:
        record: a class of records: what is known of all latest rows.
        add: ``add(record, row)`` takes a row in.
        remove: ``remove(record, row)`` takes one out again, which has been added.
        result: ``result(record)`` gives a row, of one column its bare value, or None: no row. It
            does not see the row that came.
        event: columns of the rows.
        key: the columns of the key. A row whose key is null is dropped.
        leave: a function of a row: whether its key is taken out, and the row not added.
        emits: the columns of what comes out, in place of ``columns``.
        limit: the most keys.
        name: of the operator.
        columns: of what comes out, by name.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> class Sum(ss.Record):
    ...     of: float = 0.0
    >>> def add(sum, row):
    ...     sum.of += row.price
    >>> def remove(sum, row):
    ...     sum.of -= row.price
    >>> worth = ss.verbs.across(
    ...     Sum, add, remove, lambda sum: sum.of,
    ...     event={"item": str, "price": float}, key="item", sum=float,
    ... )
    >>> day = {"item": ["a", "b", "a"], "price": [1.0, 2.0, 5.0]}
    >>> with ss.Engine(worth) as engine:
    ...     engine.process(day)["sum"].to_pylist()
    [1.0, 3.0, 7.0]
    """
    what = "across"
    writer = Writer(what, name, event, sign="for all", limit=limit)
    keys = Keys.of(what, writer.event, key, None, None)
    if not keys.columns:
        raise refused(f"{what}: key", key, f"columns of the key, of {', '.join(writer.columns)}")
    writer.names["Record"] = record_given(f"{what}: record", record)
    takes = {"add": "the record and a row", "remove": "the record and a row"}
    for option, given in (("add", add), ("remove", remove), ("result", result), ("leave", leave)):
        if given is not None:
            called = takes.get(option, "the record" if option == "result" else "the row")
            writer.names[option] = own_function(f"{what}: {option}", given, "a function", called)
    emitted = columns_given(what, emits, columns)
    writer.keys = keys
    every = writer.others
    kept = writer.kept(every, "kept")
    cell = writer.cell("latest", is_known=(bool, False), **kept.values())
    writer.fields["record"] = scalar(record)
    parts = dict(zip([*keys.columns, *every], [*writer.key_parts(), *kept.given()], strict=True))
    row = f"{writer.row(writer.columns)}({', '.join(parts[one] for one in writer.columns)})"
    local, named = writer.named(every)
    enters = [
        *named,
        *cell.store(is_known="True", **kept.stored(local)),
        "add(record, event)",
    ]
    leaves = [
        "leaves = leave(event)",
        "if leaves is True:",
        *indented(cell.forget()),
        *writer.no_bool("leave", "leaves"),
        "else:",
    ]
    if leave is not None:
        enters = [*leaves, *indented(enters)]
    sent, values = results("row_given", emitted)
    writer.emits = dict(emitted)
    body = [
        "record = state.record",
        *cell.load(),
        "if is_known:",
        f"    remove(record, {row})",
        *enters,
        "row_given = result(record)",
        "if row_given is not None:",
        *indented([*sent, f"emit({', '.join(values)})"]),
    ]
    return writer.made(body)
