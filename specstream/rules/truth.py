"""Streams of truth values: answers that need what comes later, and the connectives of logic."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeVar

from specstream.declarations.options import refuses_unknown
from specstream.declarations.schema import Schema, nullable
from specstream.definition.operator import Operator
from specstream.errors import DeclarationError
from specstream.verbs.writing import Keys, Writer, indented

__all__ = ["always", "both", "either", "eventually", "implies", "negated", "until"]


class _Truths(Protocol):
    """A stream of a pipeline, as far as it goes here."""

    name: str
    columns: Schema
    key: tuple[str, ...]

    def add(self, operator: Operator, /, *, name: str | None = None) -> Any: ...
    def by(self, *key: str) -> Any: ...
    def free_name(self, verb: str) -> str: ...
    def zip(self, *others: Any) -> Any: ...


Truths = TypeVar("Truths", bound=_Truths)
_VALUE = "value"


@refuses_unknown
def always(truths: Truths, /, *, name: str | None = None) -> Truths:
    """Whether all from each row on are true: false, once one is not; before that nothing.

    A row without an answer waits, also behind the end of the stream.

    Args:
        truths: a stream with one column of truth values, beside those of its key; a null says
            nothing.
        name: of the vertex.

    Returns:
        A stream with the column ``value``: one for each row, in their order.

    Raises:
        DeclarationError: it is no such stream.

    >>> import specstream as ss
    >>> p = ss.Pipeline("calm")
    >>> p.sink("out", ss.rules.always(p.source("x", {"calm": bool})))
    >>> p.run_sequential({"calm": [True, True, False, True]}).output["value"].to_pylist()
    [False, False, False]
    """
    return _answered("always", "□", truths, False, name)


@refuses_unknown
def eventually(truths: Truths, /, *, name: str | None = None) -> Truths:
    """Whether some from each row on is true: true, once one is; before that nothing.

    Args:
        truths: as of :func:`always`.
        name: see there.

    Raises:
        DeclarationError: see there.

    >>> import specstream as ss
    >>> p = ss.Pipeline("paid")
    >>> p.sink("out", ss.rules.eventually(p.source("x", {"paid": bool})))
    >>> p.run_sequential({"paid": [False, True, False]}).output["value"].to_pylist()
    [True, True]
    """
    return _answered("eventually", "◇", truths, True, name)


@refuses_unknown
def until(before: Truths, then: Any, /, *, name: str | None = None) -> Truths:
    """Whether one stream is true from each row on until another one is: true for all rows that wait
    once that is true, or false for all once the first is not; before that nothing.

    Args:
        before: as of :func:`always`.
        then: likewise; its rows belong to those of the first, one to one.
        name: of the vertex that answers.

    Raises:
        DeclarationError: see there.

    >>> import specstream as ss
    >>> p = ss.Pipeline("open")
    >>> x = p.source("x", {"is_open": bool, "closes": bool})
    >>> a, b = (x.map(f, value=bool) for f in (lambda e: e.is_open, lambda e: e.closes))
    >>> p.sink("out", ss.rules.until(a, b))
    >>> day = {"is_open": [True, True, False], "closes": [False, True, False]}
    >>> p.run_sequential(day).output["value"].to_pylist()
    [True, True, False]
    """
    known = _together("until", before, then, _until, None)
    answers: Truths = _settled("until", "U", known, name or before.free_name("until"))
    return answers


@refuses_unknown
def both(one: Truths, other: Any, /, *, name: str | None = None) -> Truths:
    """SQL's AND of two streams of truth values, row by row.

    Args:
        one: as of :func:`always`.
        other: likewise.
        name: of the vertex.

    Raises:
        DeclarationError: see there.

    >>> import specstream as ss
    >>> p = ss.Pipeline("both")
    >>> x = p.source("x", {"a": ss.nullable(bool), "b": ss.nullable(bool)})
    >>> truth = ss.nullable(bool)
    >>> a, b = x.map(lambda e: e.a, value=truth), x.map(lambda e: e.b, value=truth)
    >>> p.sink("out", ss.rules.both(a, b))
    >>> day = {"a": [True, True, None], "b": [True, None, False]}
    >>> p.run_sequential(day).output["value"].to_pylist()
    [True, None, False]
    """
    found: Truths = _together("both", one, other, _both, name)
    return found


@refuses_unknown
def either(one: Truths, other: Any, /, *, name: str | None = None) -> Truths:
    """SQL's OR of two streams of truth values, row by row.

    Args:
        one: as of :func:`always`.
        other: likewise.
        name: of the vertex.

    Raises:
        DeclarationError: see there.
    """
    found: Truths = _together("either", one, other, _either, name)
    return found


@refuses_unknown
def implies(one: Truths, other: Any, /, *, name: str | None = None) -> Truths:
    """SQL's ``NOT one OR other`` of two streams of truth values, row by row.

    Args:
        one: as of :func:`always`.
        other: likewise.
        name: of the vertex.

    Raises:
        DeclarationError: see there.

    >>> import specstream as ss
    >>> p = ss.Pipeline("answered")
    >>> calls = p.source("calls", {"what": str})
    >>> asked = calls.map(lambda e: e.what == "a", value=bool)
    >>> replied = ss.rules.eventually(calls.map(lambda e: e.what == "b", value=bool))
    >>> p.sink("out", calls.filter(ss.rules.implies(asked, replied)))
    >>> p.run_sequential({"what": ["a", "c", "c", "b"]}).output["what"].to_pylist()
    ['a', 'c', 'c', 'b']
    """
    found: Truths = _together("implies", one, other, _implies, name)
    return found


@refuses_unknown
def negated(truths: Truths, /, *, name: str | None = None) -> Truths:
    """SQL's NOT of a stream of truth values, row by row.

    Args:
        truths: as of :func:`always`.
        name: of the vertex.

    Raises:
        DeclarationError: see there.
    """
    writer, column = _writer("negated", "¬", truths)
    value = writer.value(column)
    writer.emits = {**writer.key_columns, _VALUE: writer.columns[column]}
    is_nullable = writer.columns[column].nullable
    sent = f"None if event.{column} is None else not event.{column}"
    made = writer.made(writer.emission([sent if is_nullable else f"not {value}"]))
    found: Truths = _added("negated", truths, made, name)
    return found


# ---- what makes the vertices ----


def _answered(
    what: Literal["always", "eventually"],
    sign: str,
    truths: Truths,
    answer: bool,
    name: str | None,
) -> Truths:
    writer, column = _writer(what, sign, truths)
    value = f"event.{column}"
    given = f"{value} is not None and " if writer.columns[column].nullable else ""
    test = f"{given}{value}" if answer else f"{given}not {value}"
    found: Truths = _added(what, truths, _waiting(writer, test, str(answer)), name)
    return found


def _settled(what: str, sign: str, known: Any, name: str) -> Any:
    """The answers for all rows that wait, where one is known; null: not yet."""
    writer, column = _writer(what, sign, known)
    made = _waiting(writer, f"event.{column} is not None", f"event.{column}")
    return _added(what, known, made, name)


def _waiting(writer: Writer, test: str, answer: str) -> Operator:
    """An operator that sends an answer for each row that waits, the latest included, where a test
    holds."""
    writer.emits = {**writer.key_columns, _VALUE: bool}
    cell = writer.cell("waiting", waiting=(int, 0))
    return writer.made(
        [
            *cell.load(),
            f"if {test}:",
            *indented(cell.store(waiting="0")),
            "    for _ in range(waiting + 1):",
            *indented(indented(writer.emission([answer]))),
            "else:",
            *indented(cell.store(waiting="waiting + 1")),
        ]
    )


def _writer(what: str, sign: str, truths: Any) -> tuple[Writer, str]:
    column = _column(what, truths)
    return Writer(what, what, dict(truths.columns), Keys(truths.key), sign), column


def _column(what: str, truths: Any) -> str:
    """The column of truth values of a stream."""
    if not hasattr(truths, "columns") or not hasattr(truths, "zip"):
        raise DeclarationError(
            f"{what} gets {truths!r}; expected a stream of a pipeline, with one column of truth "
            "values"
        )
    columns = {name: of for name, of in truths.columns if name not in truths.key}
    if len(columns) != 1 or next(iter(columns.values())).kind != "bool":
        found = ", ".join(f"{name}: {of}" for name, of in columns.items())
        raise DeclarationError(
            f"{what} gets the stream {truths.name!r}, with {found}; expected one column of truth "
            "values: map it, like map(lambda e: e.price > 1, value=bool)"
        )
    (name,) = columns
    return str(name)


def _added(what: str, truths: Any, made: Operator, name: str | None) -> Any:
    """The stream of a vertex, whose operator has the key already."""
    key = truths.key
    sent = truths.by().add(made, name=name or truths.free_name(what))
    return sent.by(*key) if key else sent


def _together(what: str, one: Any, other: Any, table: Any, name: str | None) -> Any:
    # Both are looked at before one has a vertex more.
    columns = [_column(what, of) for of in (one, other)]
    a, b = (
        of if column == _VALUE else of.map(_reading(column), emits={_VALUE: nullable(bool)})
        for of, column in zip((one, other), columns, strict=True)
    )
    called = name or one.free_name(what)
    return a.zip(b).map(table, name=called, emits={_VALUE: nullable(bool)})


def _reading(column: str) -> Any:
    def value(event):  # type: ignore[no-untyped-def]
        return getattr(event, column)

    return value


def _both(one, other):  # type: ignore[no-untyped-def]
    a, b = one.value, other.value
    if (a is not None and not a) or (b is not None and not b):
        return False
    return None if a is None or b is None else True


def _either(one, other):  # type: ignore[no-untyped-def]
    a, b = one.value, other.value
    if (a is not None and a) or (b is not None and b):
        return True
    return None if a is None or b is None else False


def _implies(one, other):  # type: ignore[no-untyped-def]
    a, b = one.value, other.value
    if (a is not None and not a) or (b is not None and b):
        return True
    return None if a is None or b is None else False


def _until(before, then):  # type: ignore[no-untyped-def]
    a, b = before.value, then.value
    if b is not None and b:
        return True
    if a is not None and not a:
        return False
    return None
