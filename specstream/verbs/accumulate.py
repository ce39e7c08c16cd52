"""A running value: each row is computed of the one before and of an event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.options import refused, shown
from specstream.declarations.schema import Column, Schema
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verbs.mapping import results
from specstream.verbs.writing import ZEROS, Keys, Writer, columns_given, own_function, verb

__all__ = ["accumulate", "first_values"]


@verb
def accumulate(
    f: Callable[..., Any],
    start: Any,
    /,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    emits: Any = None,
    limit: int = 2**24,
    name: str = "accumulate",
    **columns: Any,
) -> Operator:
    """A running value: row i is ``f(row i-1, event i)``, and the first ``f(start, event 0)``. A
    chain by nature without a key.

    Each event reads what the one before has written, so that without a key such an operator keeps
    to one core; events of different keys run beside each other.

    Args:
        f: a function of the row before and of an event, which gives the row: of one column its bare
            value, and of several a tuple, while the row before has them as attributes.
        start: in place of the row before the first one: a value, or a tuple of several.
        event: as of :func:`map`, as are ``key``, ``to_all``, ``forget``, ``emits``, ``name`` and
            ``columns``.
        key: see there.
        to_all: see there.
        forget: see there.
        emits: see there.
        limit: the most keys.
        name: see there.
        columns: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> total = ss.verbs.accumulate(lambda sum, e: sum + e.x, 0, event={"x": int}, sum=int)
    >>> with ss.Engine(total) as engine:
    ...     engine.process({"x": [1, 2, 3]})["sum"].to_pylist()
    [1, 3, 6]
    """
    what = "accumulate"
    writer = Writer(what, name, event, sign="Σ", limit=limit)
    writer.keys = Keys.of(what, writer.event, key, to_all, forget)
    writer.names["f"] = own_function(f"{what}: f", f, "a function", "the row before and the event")
    given = columns_given(what, emits, columns)
    writer.emitting(given)
    kept = writer.kept(given, "last")
    values = kept.values()
    for column, value in first_values(f"{what}: start", start, given).items():
        stored, of, is_nullable = kept.columns[column]
        values[stored] = (of, ZEROS[of] if value is None else value)
        if is_nullable:
            values[f"{stored}_null"] = (bool, value is None)
    cell = writer.cell("last", **values)
    before = kept.given()
    row = before[0] if len(before) == 1 else f"{writer.row(given)}({', '.join(before)})"
    lines, sent = results(f"f({row}, event)", given)
    now = dict(zip(given, (f"given_{at}" for at in range(len(given))), strict=True))
    return writer.made(
        [*cell.load(), *lines, *cell.store(**kept.stored(now)), *writer.emission(sent)]
    )


def first_values(option: str, given: Any, columns: dict[str, Any]) -> dict[str, Any]:
    """Values that a row begins with, by column.

    Args:
        given: a value of one column, a tuple of several, or a dict.

    Raises:
        ConfigurationError: they are no values of these columns; names the first.
    """
    if isinstance(given, dict):
        by_name = given
    elif len(columns) == 1:
        by_name = dict(zip(columns, (given,), strict=True))
    elif isinstance(given, tuple | list) and len(given) == len(columns):
        by_name = dict(zip(columns, given, strict=True))
    else:
        raise refused(option, given, f"a tuple of {len(columns)} values: {', '.join(columns)}")
    missing = [one for one in columns if one not in by_name]
    extra = [one for one in by_name if one not in columns]
    if missing or extra:
        problem = f"lacks {missing[0]!r}" if missing else f"has {extra[0]!r}"
        raise ConfigurationError(
            f"{option}={shown(given)} {problem}; expected the columns {', '.join(columns)}"
        )
    return {name: _value(option, name, by_name[name], of) for name, of in columns.items()}


_TAKEN: dict[type, tuple[type, ...]] = {
    int: (int,),
    float: (int, float),
    bool: (bool,),
    str: (str,),
}


def _value(option: str, name: str, value: Any, declared: Any) -> Any:
    (column,) = Schema.of({name: declared}, "emits").columns
    of = kept_as(declared)
    if value is None and column.nullable:
        return None
    is_bool = isinstance(value, bool)
    is_wide = of is int and isinstance(value, int) and not -(2**63) <= value < 2**63
    if not isinstance(value, _TAKEN[of]) or (is_bool and of is not bool) or is_wide:
        raise ConfigurationError(
            f"{option}: column {name!r} is {shown(value)}; expected {_expected(column, of)}"
        )
    return of(value)


def _expected(column: Column, of: type) -> str:
    article = "an" if of is int else "a"
    count = "" if column.is_plain else f", which is what an operator has of a {column.arrow}"
    return f"{article} {of.__name__}{count}{', or None' if column.nullable else ''}"
