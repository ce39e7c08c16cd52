"""Rows of several streams side by side: the first of each, the second of each, and so on.

Each input has a queue, first in, first out. Rows meet as soon as every input has one, so that which
of them came first changes neither values nor order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.container_fields import deque
from specstream.declarations.container_fields import dict as dict_field
from specstream.declarations.options import integer, refused, refuses_unknown
from specstream.declarations.schema import Schema
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verbs.mapping import kept_if, results
from specstream.verbs.writing import (
    ZEROS,
    Keys,
    Writer,
    columns_given,
    entry,
    indented,
    nullable_value,
    own_function,
    read,
)

__all__ = ["Zipped", "letters", "zip"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(count: int) -> list[str]:
    """Names of that many inputs.

    >>> letters(3), letters(27)[-2:]
    (['a', 'b', 'c'], ['z', 'a2'])
    """
    return [_LETTERS[at % 26] + (str(at // 26 + 1) if at >= 26 else "") for at in range(count)]


@refuses_unknown
def zip(*events: Any, key: str | Sequence[str] = (), limit: int = 2**24) -> Zipped:
    """Two or more streams whose rows are taken one of each.

    Args:
        events: columns of each.
        key: the columns of the key, which all of them have: there are queues for each key then, and
            rows have it in front.
        limit: the most rows that wait in one queue; of all keys together, if there is one.

    Returns:
        What has ``map``, ``filter`` and ``rows``, each of which makes an operator with the inputs
        ``a``, ``b`` and so on.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> TICK, MEAN = {"price": float}, {"mean": float}
    >>> above = ss.verbs.zip(TICK, MEAN).map(lambda tick, mean: tick.price - mean.mean, by=float)
    >>> list(above.inputs)
    ['a', 'b']
    """
    if len(events) < 2:
        raise ConfigurationError(
            f"zip gets {len(events)} streams; expected two or more: zip(TICK, MEAN)"
        )
    limit = integer("zip: limit", limit, 1, 2**31)
    schemas = [dict(Schema.of(one, "event")) for one in events]
    names: tuple[str, ...] = ()
    for columns in schemas:
        names = Keys.of("zip", columns, key, None, None).columns
        if [kept_as(columns[one]) for one in names] != [kept_as(schemas[0][one]) for one in names]:
            raise ConfigurationError(
                f"zip: key={key!r} has other types in one stream than in another: map one of them"
            )
    return Zipped(dict(_pairs(letters(len(events)), schemas)), names, limit)


def _pairs(names: Sequence[str], values: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(name, values[at]) for at, name in enumerate(names)]


@dataclass(frozen=True)
class Zipped:
    """Streams side by side; made by :func:`zip`.

    Attributes:
        inputs: columns of each.
        key: columns of the key.
        limit: the most rows that wait in a queue.
    """

    inputs: dict[str, dict[str, Any]]
    key: tuple[str, ...] = ()
    limit: int = 2**24
    called: Mapping[str, str] = field(default_factory=dict)

    def named(self, **called: str) -> Zipped:
        """The same, of which messages call the inputs so."""
        return replace(self, called=called)

    def map(
        self, f: Callable[..., Any], /, *, emits: Any = None, name: str = "zip_map", **columns: Any
    ) -> Operator:
        """A row for each one: what a function gives of a row of each input.

        Args:
            f: a function with one argument for each input, whose columns are its attributes; it
                gives the value of the only column, or a tuple of all.
            emits: the columns of the rows, in place of ``columns``.
            name: of the operator.
            columns: of the rows, by name.

        Raises:
            ConfigurationError: an option is not what it must be; names it.
        """
        given = columns_given("zip.map", emits, columns)
        writer = self._writer("zip.map", name)
        writer.names["f"] = own_function("zip.map: f", f, "a function", self._takes())
        lines, values = results(f"f({', '.join(self._rows(writer))})", given)
        writer.emitting(given)
        return self._made(writer, [*lines, *writer.emission(values)])

    def filter(self, f: Callable[..., Any], /, *, name: str = "zip_filter") -> Operator:
        """The rows of the first input for which a function of a row of each says True.

        Args:
            f: a function with one argument for each input that gives a bool.
            name: of the operator.

        Raises:
            ConfigurationError: an option is not what it must be; names it.
        """
        writer = self._writer("zip.filter", name)
        writer.names["f"] = own_function("zip.filter: f", f, "a function", self._takes())
        test = f"f({', '.join(self._rows(writer))})"
        return self._made(writer, self._kept_if(writer, test))

    def filter_by(self, *, name: str = "filter") -> Operator:
        """The rows of the first input for which the only column of the second is true.

        Raises:
            ConfigurationError: the second has several columns, or none of truth values.
        """
        _, flags = self.inputs
        columns = {one: of for one, of in self.inputs[flags].items() if one not in self.key}
        if len(columns) != 1 or next(iter(columns.values())).kind != "bool":
            found = ", ".join(f"{one}: {of}" for one, of in columns.items())
            raise ConfigurationError(
                f"filter: the stream of flags has the columns {found}; expected one of truth "
                "values: map it to a bool"
            )
        writer = self._writer("filter", name, "?")
        (column,) = columns
        local = self._locals(flags)[column]
        test = f"False if {local} is None else {local}" if columns[column].nullable else local
        return self._made(writer, self._kept_if(writer, test))

    def rows(
        self, *, suffix: str | Sequence[str] | None = None, name: str = "zip_rows"
    ) -> Operator:
        """A row for each one, with the columns of all.

        Args:
            suffix: of columns that several of them have: a text for each input, or, of two, one for
                those of the second.
            name: of the operator.

        Raises:
            ConfigurationError: two columns have one name.
        """
        suffixes = self._suffixes(suffix)
        writer = self._writer("zip.rows", name)
        given: dict[str, Any] = {}
        values: list[str] = []
        for at, (one, columns) in enumerate(self.inputs.items()):
            for column, of in columns.items():
                if column in self.key:
                    continue
                shared = sum(column in other for other in self.inputs.values()) > 1
                called = f"{column}{suffixes[at]}" if shared else column
                if called in given or called in self.key:
                    raise ConfigurationError(
                        f"zip.rows: two columns are called {called!r}; expected another name for "
                        'each: give suffix=, like suffix="_other" or suffix=("_a", "_b")'
                    )
                given[called] = of
                local = self._locals(one)[column]
                values.append(nullable_value(local) if of.nullable else local)
        writer.emits = {**writer.key_columns, **given}
        return self._made(writer, writer.emission(values))

    def _suffixes(self, suffix: str | Sequence[str] | None) -> list[str]:
        count = len(self.inputs)
        if suffix is None:
            return [""] * count
        if isinstance(suffix, str):
            if count == 2:
                return ["", suffix]
            raise ConfigurationError(
                f"zip.rows: suffix={suffix!r} is one text for {count} streams; expected one for "
                "each"
            )
        found = list(suffix)
        if len(found) != count or not all(isinstance(one, str) for one in found):
            raise refused("zip.rows: suffix", suffix, f"a text for each of the {count} streams")
        return found

    def _takes(self) -> str:
        """What its functions get, one argument for each stream."""
        return ", ".join(f"a row of {self.called.get(one, one)}" for one in self.inputs)

    # ---- text ----

    def _writer(self, what: str, name: str, sign: str = "zip") -> Writer:
        first = next(iter(self.inputs.values()))
        return Writer(what, name, first, Keys(self.key), sign, limit=self.limit)

    def _kept_if(self, writer: Writer, test: str) -> list[str]:
        first = next(iter(self.inputs))
        found = self._locals(first)
        columns = writer.others
        values = [
            nullable_value(found[one]) if of.nullable else found[one] for one, of in columns.items()
        ]
        return kept_if(writer, test, values, columns)

    def _locals(self, one: str) -> dict[str, str]:
        """Of the columns of an input, the names that the values of its first row get."""
        return {column: f"{one}_{at}" for at, column in enumerate(self.inputs[one])}

    def _rows(self, writer: Writer) -> list[str]:
        """Expressions for a row of each input."""
        found = []
        for one, columns in self.inputs.items():
            local = self._locals(one)
            values = [local[column] for column in columns]
            found.append(f"{writer.row(columns)}({', '.join(values)})")
        return found

    def _made(self, writer: Writer, body: list[str]) -> Operator:
        queues = [
            _queue(writer, one, columns, self.called.get(one, one), bool(self.key), self.limit)
            for one, columns in self.inputs.items()
        ]
        lines = []
        for queue in queues:
            push = queue.push()
            tests = [f'event.changed("{queue.name}")']
            tests += [
                f"event.{queue.name}.{one} is not None"
                for one in self.key
                if self.inputs[queue.name][one].nullable
            ]
            if self.key:
                reads = [read(one, f"event.{queue.name}") for one in self.key]
                push = [f"key = {entry(reads)}", *push]
            lines += [f"if {' and '.join(tests)}:", *indented(push)]
            if self.key:
                lines += indented(_taken(queues, self, body))
        if not self.key:
            lines += _taken(queues, self, body)
        writer.keys = Keys()  # told from the inputs' columns already
        return writer.made(lines, inputs=self.inputs)


def _taken(queues: Sequence[Queue], of: Zipped, body: Sequence[str]) -> list[str]:
    """Statements that take a row of each queue, if all have one, and go on with them."""
    tests = " and ".join(one.test() for one in queues)
    lines = []
    for queue in queues:
        lines += queue.pop(of._locals(queue.name))
    return [f"if {tests}:", *indented([*lines, *body])]


@dataclass
class Queue:
    """The rows of an input that wait: a deque for each column, and another one for its nulls."""

    name: str
    columns: Mapping[str, Any]

    def field(self, column: str) -> str:
        return f"{self.name}_{column}"

    def test(self) -> str:
        return f"state.{self.field(next(iter(self.columns)))}"

    def push(self) -> list[str]:
        lines = []
        for column, of in self.columns.items():
            value, name = read(column, f"event.{self.name}"), self.field(column)
            if of.nullable:
                zero = ZEROS[kept_as(of)]
                lines.append(f"state.{name}_null.append({value} is None)")
                value = f"{zero!r} if {value} is None else {value}"
            lines.append(f"state.{name}.append({value})")
        return lines

    def pop(self, names: Mapping[str, str]) -> list[str]:
        lines = []
        for column, of in self.columns.items():
            name, local = self.field(column), names[column]
            if of.nullable:
                lines += [
                    f"{local}_value = state.{name}.popleft()",
                    f"{local} = None if state.{name}_null.popleft() else {local}_value",
                ]
            else:
                lines.append(f"{local} = state.{name}.popleft()")
        return lines


@dataclass
class QueueByKey(Queue):
    """The same of each key: rows by number in one dict, and the numbers that wait in another."""

    key: Sequence[str]

    def numbered(self, number: str) -> str:
        return f"({', '.join(self.key)}, {number})"

    def test(self) -> str:
        return f"key in state.{self.name}_ends"

    def push(self) -> list[str]:
        lines, values = [], []
        for at, (column, of) in enumerate(self.columns.items()):
            value, local = read(column, f"event.{self.name}"), f"new_{at}"
            if of.nullable:
                lines.append(f"{local} = {ZEROS[kept_as(of)]!r} if {value} is None else {value}")
                values.append(f"{value} is None")
            else:
                lines.append(f"{local} = {value}")
            values.append(local)
        ends = f"state.{self.name}_ends"
        return [
            *lines,
            f"first, following = {ends}.get(key, (0, 0))",
            f"state.{self.name}_rows[{self.numbered('following')}] = {entry(values)}",
            f"{ends}[key] = (first, following + 1)",
        ]

    def pop(self, names: Mapping[str, str]) -> list[str]:
        targets, lines = [], []
        for column, of in self.columns.items():
            local = names[column]
            if of.nullable:
                targets += [f"{local}_null", f"{local}_value"]
                lines.append(f"{local} = None if {local}_null else {local}_value")
            else:
                targets.append(local)
        ends = f"state.{self.name}_ends"
        taken = f"state.{self.name}_rows.pop({self.numbered('first')})"
        return [
            f"first, following = {ends}[key]",
            f"{', '.join(targets)} = {taken}",
            "if first + 1 == following:",
            f"    del {ends}[key]",
            "else:",
            f"    {ends}[key] = (first + 1, following)",
            *lines,
        ]


def _queue(
    writer: Writer, name: str, columns: Mapping[str, Any], called: str, by_key: bool, limit: int
) -> Queue:
    """A queue, whose fields are in the state."""
    full = (
        f"{writer.name}: limit={limit} rows of {called} wait already, for rows of the other "
        "streams: give a larger limit=, or take fewer of them"
    )
    if by_key:
        parts: list[type] = []
        for of in columns.values():
            parts += [bool, kept_as(of)] if of.nullable else [kept_as(of)]
        row = parts[0] if len(parts) == 1 else tuple(parts)
        rows = dict_field(writer.key_type(int), row, limit=limit)
        writer.fields[f"{name}_rows"] = replace(rows, full=full)
        writer.fields[f"{name}_ends"] = dict_field(writer.key_type(), (int, int), limit=limit)
        return QueueByKey(name, columns, writer.key_parts())
    for column, of in columns.items():
        made = replace(deque(kept_as(of), limit=limit), full=full)
        writer.fields[f"{name}_{column}"] = made
        if of.nullable:
            writer.fields[f"{name}_{column}_null"] = replace(deque(bool, limit=limit), full=full)
    return Queue(name, columns)
