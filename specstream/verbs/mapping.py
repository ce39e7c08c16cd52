"""A row for each event: computed, with more columns, or left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from specstream.declarations.schema import Schema
from specstream.definition.operator import Operator
from specstream.verbs.writing import Keys, Writer, columns_given, nullable_value, own_function, verb

__all__ = ["computed", "filter", "map", "results", "with_columns"]

_ROW = "a function that gives a row"


def results(call: str, emits: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Statements that call a function that gives a row, and expressions for its columns: one
    column is a bare value, several are a tuple."""
    names = [f"given_{at}" for at in range(len(emits))]
    nullable = Schema.of(emits, "emits").nullable
    values = [
        nullable_value(one) if column in nullable else one
        for one, column in zip(names, emits, strict=True)
    ]
    return [f"{', '.join(names)} = {call}"], values


def computed(writer: Writer, emits: Mapping[str, Any], call: str) -> Operator:
    """An operator whose rows a function gives."""
    lines, values = results(call, emits)
    writer.emitting(emits)
    return writer.made([*lines, *writer.emission(values)])


@verb
def map(
    f: Callable[..., Any],
    /,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    emits: Any = None,
    name: str = "map",
    **columns: Any,
) -> Operator:
    """A row for each event: what a function gives of it.

    Args:
        f: a function of an event: the value of the only column, or a tuple of all.
        event: columns of the events.
        key: the columns of the key, which its rows have in front; an event whose key is null is
            dropped.
        to_all: a function of an event: whether it goes to every key there is; see :func:`keyed`.
        forget: a function of a row: whether its key is gone behind it; see :func:`keyed`.
        emits: the columns of the rows, in place of ``columns``.
        name: of the operator.
        columns: of the rows, by name.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> squares = ss.verbs.map(lambda e: e.x**2, event={"x": float}, square=float)
    >>> with ss.Engine(squares) as engine:
    ...     engine.process({"x": [3.0]}).to_pylist()
    [{'square': 9.0}]
    """
    writer = Writer("map", name, event, sign="ƒ")
    writer.keys = Keys.of("map", writer.event, key, to_all, forget)
    writer.names["f"] = own_function("map: f", f, _ROW, "the event")
    return computed(writer, columns_given("map", emits, columns), "f(event)")


@verb
def with_columns(
    f: Callable[..., Any],
    /,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    emits: Any = None,
    name: str = "with_columns",
    **columns: Any,
) -> Operator:
    """Each event with more columns, or others in place of those of the same name.

    Args:
        f: as of :func:`map`, as are the others.
        event: see there.
        key: see there.
        to_all: see there.
        forget: see there.
        emits: see there.
        name: see there.
        columns: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> taxed = ss.verbs.with_columns(lambda e: e.price * 1.2, event={"price": float}, gross=float)
    >>> with ss.Engine(taxed) as engine:
    ...     engine.process({"price": [10.0]}).to_pylist()
    [{'price': 10.0, 'gross': 12.0}]
    """
    writer = Writer("with_columns", name, event, sign="+ƒ")
    writer.keys = Keys.of("with_columns", writer.event, key, to_all, forget)
    writer.names["f"] = own_function("with_columns: f", f, _ROW, "the event")
    given = columns_given("with_columns", emits, columns)
    writer.emitting(given)
    lines, values = results("f(event)", given)
    found = dict(zip(given, values, strict=True))
    rest = {
        **writer.others,
        **{one: of for one, of in given.items() if one not in writer.keys.columns},
    }
    writer.emits = {**writer.key_columns, **rest}
    sent = [found[one] if one in found else writer.value(one) for one in rest]
    return writer.made([*lines, *writer.emission(sent)])


@verb
def filter(
    f: Callable[..., Any],
    /,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    name: str = "filter",
) -> Operator:
    """The events of which a function says True.

    Args:
        f: a function of an event that gives a bool. Anything else is an error of the event.
        event: as of :func:`map`, as are the others.
        key: see there.
        to_all: see there.
        forget: see there.
        name: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> large = ss.verbs.filter(lambda e: e.x > 2, event={"x": int})
    >>> with ss.Engine(large) as engine:
    ...     engine.process({"x": [1, 2, 3]}).to_pylist()
    [{'x': 3}]
    """
    writer = Writer("filter", name, event, sign="?")
    writer.keys = Keys.of("filter", writer.event, key, to_all, forget)
    writer.names["f"] = own_function(
        "filter: f", f, "a function that gives True or False", "the event"
    )
    return writer.made(kept_if(writer, "f(event)", writer.values(writer.others), writer.others))


def kept_if(
    writer: Writer, test: str, values: Sequence[str], columns: Mapping[str, Any]
) -> list[str]:
    """Statements that send a row if a test says True."""
    writer.emits = {**writer.key_columns, **columns}
    error = f"{writer.name}: the function of a filter gives neither True nor False"
    return [
        f"is_kept = {test}",
        "if is_kept is True:",
        *(f"    {line}" for line in writer.emission(values)),
        "elif is_kept is not False:",
        f"    raise TypeError({error!r})",
    ]
