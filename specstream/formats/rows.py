"""A function of a text that gives rows: what those of all formats have in common.

It is an object, and no plain function, so that it can be pickled: with what it was made of, of
which the other side makes it again. An operator calls it like a function marked as pure, and a
source by ``decode=``. A format finds the nodes of a text, each of which is a row, and their values.
"""

from __future__ import annotations

import inspect
import itertools
import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from specstream.columns.message_values import Misfit, expected, problem
from specstream.declarations.options import meant, one_of, shown
from specstream.declarations.plain_values import plain
from specstream.declarations.pure import Pure
from specstream.declarations.schema import Column
from specstream.errors import ConfigurationError, DeclarationError
from specstream.formats.columns import (
    Field,
    annotation,
    as_message,
    as_seen,
    declared,
    row_class,
    type_text,
)

__all__ = ["Malformed", "Rows", "has", "short", "utf8"]

# Of what a stranger's text has, messages show so much.
_NAMES, _CHARACTERS = 12, 300

# What a format asks of a text besides its nodes.
Context = Any


class Malformed(Exception):
    """A text that is none of the format; says where, and what is wrong.

    >>> str(Malformed("a tag is open", 2, 7))
    'the text is malformed at line 2, column 7: a tag is open'
    """

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        at = f" at line {line}, column {column}" if line else ""
        super().__init__(f"the text is malformed{at}: {short(problem)}")


class Rows(ABC):
    """A function of a text, and of the arguments that its paths have.

    Args:
        path: selects the nodes.
        of: the type of the values themselves; None: rows have columns.
        malformed: ``"raise"`` or ``"null"``.
        columns: of the rows.

    Attributes:
        Row: the named tuple of a row; None: the function gives values.
        arguments: names of the arguments, in the order in which paths have them first.
    """

    format: str

    def __init__(self, path: Any, of: Any, malformed: Any, columns: Mapping[str, Any]) -> None:
        self.__name__ = self.format
        what = f"ss.formats.{self.format}"
        if not isinstance(path, str):
            raise DeclarationError(f"{what}: path is {shown(path)}; expected a text")
        one_of(f"{what}: malformed", malformed, ("raise", "null"), DeclarationError)
        self._path = path
        self._malformed = malformed
        self._what = f"{self.format}({path!r})"
        self._fields = declared(f"ss.formats.{self._what}", of, columns)
        self.arguments: tuple[str, ...] = ()
        self.Row: Any = None
        item = annotation(self._fields[0].of)
        if columns:
            item = self.Row = row_class(tuple(field.of_row for field in self._fields))
        self.__specstream_pure__ = Pure(list[item], False, self)  # type: ignore[valid-type]

    @property
    def _declared(self) -> tuple[Column | None, dict[str, Any]]:
        """The type of the values, and the columns, as they are declared."""
        if self.Row is None:
            return self._fields[0].of, {}
        given = {
            one.name: one.of if one.path is None else (one.path, one.of) for one in self._fields
        }
        return None, given

    def __repr__(self) -> str:
        given = [repr(self._path)]
        for one in self._fields:
            of = type_text(one.of) if one.path is None else f"({one.path!r}, {type_text(one.of)})"
            given.append(f"{one.name}={of}" if one.name else of)
        if self._malformed != "raise":
            given.append(f"malformed={self._malformed!r}")
        return f"ss.formats.{self.format}({', '.join([*given, *self._options])})"

    @property
    def _options(self) -> list[str]:
        """Other arguments that it was made with, as they are written."""
        return []

    @property
    def __signature__(self) -> inspect.Signature:
        kinds = inspect.Parameter
        names = [kinds(one, kinds.POSITIONAL_OR_KEYWORD) for one in self.arguments]
        return inspect.Signature([kinds("__text", kinds.POSITIONAL_ONLY), *names])

    def __call__(self, text: Any, /, *values: Any, **named: Any) -> list[Any]:
        """The rows, or values, of a text.

        Args:
            text: str or bytes.
            values: the arguments that the paths have, in the order in which they have them first.
            named: the same by name.

        Raises:
            ValueError: the text is malformed; or a row lacks a value, or has one that its column
                cannot have. Says where.
            TypeError: the arguments are not those of the paths.
        """
        given = self._given(values, named) if values or named or self.arguments else ()
        columns = self._columns(text, given, as_seen)
        if not columns:
            return []
        if self.Row is None:
            return list(columns[0])
        return list(itertools.starmap(self.Row, zip(*columns, strict=True)))

    @property
    def __specstream_events__(self) -> Callable[[bytes], list[dict[str, Any]]]:
        """What makes events of a message, for a source; see ``decode=``.

        Raises:
            ConfigurationError: it cannot.
        """
        lacks = "gives values without names" if self.Row is None else ""
        if self.arguments:
            lacks = f"needs {', '.join(f'${one}' for one in self.arguments)}"
        if lacks:
            raise ConfigurationError(
                f"decode={self!r} {lacks}; expected rows of a message alone: name columns, like "
                "price=float, and write the paths without $"
            )
        return self._events

    def _events(self, text: bytes) -> list[dict[str, Any]]:
        columns = self._columns(text, (), as_message)
        names = [field.name for field in self._fields]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    # ---- arguments ----

    def _named_in_paths(self, names: Sequence[str]) -> None:
        """Keeps the names of the arguments.

        Raises:
            DeclarationError: one cannot be an argument.
        """
        for name in names:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise DeclarationError(
                    f"ss.formats.{self._what}: ${name} cannot be an argument of a function; "
                    "expected an identifier of Python: give it another name"
                )
        self.arguments = tuple(names)

    def _given(self, values: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call, in their order.

        Raises:
            TypeError: one is missing, or there are others.
        """
        names = self.arguments
        given = dict(zip(names, values, strict=False))
        wrong = next((one for one in named if one not in names or one in given), None)
        if len(values) > len(names) or wrong is not None:
            has = f"{len(values)} by position" if wrong is None else f"{wrong}="
            takes = ", ".join(names) or "none"
            raise TypeError(f"{self._what} takes a text and, of its paths, {takes}; got {has}")
        given |= named
        for name in names:
            if name not in given:
                raise TypeError(f"{self._what} needs {name!r}, which a path has as ${name}")
        return tuple(self._argument(name, plain(given[name])) for name in names)

    @abstractmethod
    def _argument(self, name: str, value: Any) -> Any:
        """An argument as the paths take it.

        Raises:
            TypeError: it cannot be one.
            ValueError: nor can this one of its kind.
        """

    def _refused(self, name: str, value: Any, wanted: str) -> str:
        return f"{self._what}: ${name} is {shown(value)}; expected {wanted}"

    # ---- nodes and values ----

    @abstractmethod
    def _select(self, text: Any, given: tuple[Any, ...]) -> tuple[Sequence[Any], Context]:
        """The nodes of a text, and what their values are to be asked with.

        Raises:
            Malformed: it is none of the format.
            ValueError: what the path selects can be no row.
        """

    @abstractmethod
    def _value(self, number: int, node: Any, context: Context) -> Any:
        """The value that a node has for a field of that number, as JSON has it; None: it has none.

        Raises:
            ValueError: it has several.
        """

    @abstractmethod
    def _place(self, at: int, nodes: Sequence[Any], context: Context) -> str:
        """Where a node is, for a message."""

    def _has(self, field: Field, node: Any) -> str:
        """What a node has where a column is missing, as a part of a message."""
        return ""

    def _wanted(self, of: Column) -> str:
        """What values of a column are, in a text of the format."""
        return expected(of)

    def _columns(self, text: Any, given: tuple[Any, ...], convert: Any) -> list[Sequence[Any]]:
        """The columns of a text; none where no node is selected."""
        try:
            nodes, context = self._select(text, given)
        except Malformed as wrong:
            if self._malformed == "raise":
                raise ValueError(f"{self._what}: {wrong}") from None
            return []
        if not nodes:
            return []
        return [
            self._column(number, nodes, context, convert) for number in range(len(self._fields))
        ]

    def _column(
        self, number: int, nodes: Sequence[Any], context: Context, convert: Any
    ) -> Sequence[Any]:
        field = self._fields[number]
        values = [self._value(number, node, context) for node in nodes]
        if not field.of.nullable and any(one is None for one in values):
            at = next(at for at, one in enumerate(values) if one is None)
            raise ValueError(
                f"{self._what}: {field.shown} is missing in {self._place(at, nodes, context)}"
                f"{self._has(field, nodes[at])}; expected {self._wanted(field.of)}: declare it "
                "ss.nullable(...) where it need not be there"
            )
        try:
            found: Sequence[Any] = convert(values, field.of)
            return found
        except Misfit as misfit:
            for at, value in enumerate(values):
                wrong = problem(value, field.of, self._wanted(field.of))
                if wrong is not None:
                    raise ValueError(
                        f"{self._what}: {field.shown} {wrong}, in {self._place(at, nodes, context)}"
                    ) from None
            raise ValueError(f"{self._what}: {field.shown}: {misfit}") from None


def short(text: str) -> str:
    """A text on one line, and no longer than a message may be.

    >>> short("a   b"), len(short("a" * 1000))
    ('a b', 300)
    """
    text = " ".join(text[: 2 * _CHARACTERS].split())
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."


def has(name: str, names: Iterable[str]) -> str:
    """What there is in place of a column that is missing, as a part of a message.

    >>> has("price", ["prize", "n"])
    " (it has prize, n) (did you mean 'prize'?)"
    """
    first = [short(one) for one in itertools.islice(names, _NAMES + 1)]
    listed = ", ".join(first if len(first) <= _NAMES else [*first[:_NAMES], "..."])
    return f" (it has {listed or 'nothing'}){meant(name, first)}"


def utf8(text: Any) -> bytes:
    """A text as bytes: those of a str in UTF-8, bytes as they are.

    Raises:
        Malformed: it has a lone surrogate, or is null.
        TypeError: it is no text.
    """
    text = plain(text)
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            column = error.start - text.rfind("\n", 0, error.start)
            raise Malformed("half of a surrogate pair is no character", line, column) from None
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    if text is None:
        raise Malformed("it is null")
    raise TypeError(f"expected a text or its bytes, got {shown(text)}")
