"""Rows out of texts of JSON (RFC 8259), by paths of JMESPath (Saryerwinnie 2013).

A text that is nested more deeply than 256 is refused by its depth, whatever stack the caller has
left: one engine must not take what another refuses. Of keys that an object has twice the last
counts, as in Python's ``json`` and in messages of sources. A number is as exact as its column: of
a decimal, and of one beyond floats, the digits are kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from specstream.columns.message_values import decimal_of, float_of
from specstream.declarations.options import shown
from specstream.formats.columns import Field
from specstream.formats.json_path import JsonPath
from specstream.formats.rows import Malformed, Rows, has, utf8

__all__ = ["JsonRows", "json"]

_DEEPEST = 256
_DEEP = f"it is nested more than {_DEEPEST} deep"
_BOM = b"\xef\xbb\xbf"
_BYTE = re.compile(r" \(byte (\d+)\)$")
_BRACKET = re.compile(rb'"(?:\\.|[^"\\])*"|[\[{\]}]', re.DOTALL)
# Texts, and numbers with more digits than Python reads.
_PART = re.compile(rb'"(?:\\.|[^"\\])*"|(?P<number>\d{4000,})', re.DOTALL)


def json(path: str, of: Any = None, /, *, malformed: str = "raise", **columns: Any) -> JsonRows:
    """A function of a text of JSON, which gives a row for each object that a path selects.

    Operators call it with what depends on the event alone, as a function marked ``@ss.pure``, and
    loop over the rows; a source takes it as ``decode=``; anybody else calls it with a text.

    Args:
        path: of JMESPath, from the whole text on, which is ``@``. What it selects is a list, of
            which each element is a row, or one row; null is none. ``$name`` is an argument of the
            function, a number, bool, text or None, by name or in the order of the names.
        of: the type of the values, where the function gives the selected values themselves, and not
            rows.
        malformed: ``"raise"`` raises ValueError for a text that is not JSON; for ``"null"`` it has
            no rows.
        columns: of a row, the type by the key of the object; or a pair of a path from the object on
            and the type. Types are those of an event's columns, and values are converted like those
            of messages: a time is ISO 8601 or a whole number in its unit, a decimal a text or a
            number, and nothing else is made of a text. Of a time, date or decimal a row has the int
            that operators see.

    Returns:
        A function ``f(text, **arguments)``, text a str or bytes in UTF-8, that gives a list of
        named tuples, or of values. It can be pickled. ``f.Row`` is the class of the named tuples.
        It raises ValueError, with the place, for a text that is malformed, or nested more than 256
        deep; a value that is missing or null, unless its column is ``ss.nullable``; a value that
        does not fit its column; and where the path selects what is no object.

    Raises:
        DeclarationError: a path is wrong, and where; a column has no type of an event's.
        ImportError: msgspec or jmespath is not installed: ``pip install "specstream[json]"``.

    >>> import specstream as ss
    >>> orders = ss.formats.json("orders[?price > $above]", id=int, price=float)
    >>> orders('{"orders": [{"id": 1, "price": 2.5}, {"id": 2, "price": 1}]}', above=2)
    [Row(id=1, price=2.5)]
    >>> ss.formats.json("orders[].id", int)(b'{"orders": [{"id": 7}]}')
    [7]
    """
    return JsonRows(path, of, malformed, columns)


def _msgspec() -> Any:
    try:
        import msgspec
    except ImportError as missing:
        raise ImportError(
            'ss.formats.json needs msgspec: pip install "specstream[json]"'
        ) from missing
    return msgspec


class _Written(float):
    """A float that knows how it was written."""

    text: str


# Functions of JMESPath go by the name of a value's class.
_Written.__name__ = "float"


def _written(text: str) -> _Written:
    made = _Written(text)
    made.text = text
    return made


class JsonRows(Rows):
    """A function of a text of JSON; see :func:`json`."""

    format = "json"

    def __init__(self, path: str, of: Any, malformed: str, columns: Mapping[str, Any]) -> None:
        super().__init__(path, of, malformed, columns)
        msgspec = _msgspec()
        names: list[str] = []
        self._all = JsonPath(path, "ss.formats.json: path", names)
        self._paths = [
            None
            if one.path is None
            else JsonPath(one.path, f"ss.formats.json: path of {one.shown}", names)
            for one in self._fields
        ]
        self._named_in_paths(names)
        self._exact = msgspec.json.Decoder(float_hook=_written).decode
        is_exact = any(pa.types.is_decimal(one.of.arrow) for one in self._fields)
        self._decode = self._exact if is_exact else msgspec.json.Decoder().decode
        self._error, self._beyond = msgspec.DecodeError, msgspec.ValidationError

    def __reduce__(self) -> Any:
        of, columns = self._declared
        return JsonRows, (self._path, of, self._malformed, columns)

    def _argument(self, name: str, value: Any) -> Any:
        if value is not None and not isinstance(value, bool | int | float | str):
            raise TypeError(self._refused(name, value, "a number, a bool, a text or None"))
        return value

    def _select(self, text: Any, given: tuple[Any, ...]) -> tuple[Sequence[Any], tuple[Any, ...]]:
        found = self._all.search(self._document(utf8(text).removeprefix(_BOM)), given)
        nodes = found if isinstance(found, list) else [] if found is None else [found]
        if self.Row is not None:
            for at, node in enumerate(nodes):
                if not isinstance(node, dict):
                    raise ValueError(
                        f"{self._what} selects {shown(node)} as {self._place(at, nodes, given)}; "
                        "expected an object, which has columns: for values themselves write one "
                        "type"
                    )
        return nodes, given

    def _document(self, content: bytes) -> Any:
        """What a text is, with lists, dicts, and numbers.

        Raises:
            Malformed: it is none of JSON.
        """
        try:
            try:
                found = self._decode(content)
            except self._beyond:
                found = self._exact(content)
        except self._error as error:
            raise _malformed(content, str(error)) from None
        except UnicodeDecodeError:  # of older versions
            raise _malformed(content, "Invalid UTF-8 encoded string") from None
        except RecursionError:
            deep = _too_deep(content)
            if deep is None:  # it is the caller who has no stack left
                raise
            raise deep from None
        opened = content.count(b"[") + content.count(b"{")
        if opened > _DEEPEST and _is_deep(found):
            raise _too_deep(content) or Malformed(_DEEP, 1, 1)
        return found

    def _value(self, number: int, node: Any, context: tuple[Any, ...]) -> Any:
        field, path = self._fields[number], self._paths[number]
        if path is not None:
            found = path.search(node, context)
        else:
            found = node.get(field.name) if field.name else node
        return _as_column_has(found, field) if isinstance(found, float) else found

    def _place(self, at: int, nodes: Sequence[Any], context: Any) -> str:
        return f"element {at} of those selected" if len(nodes) > 1 else "what is selected"

    def _has(self, field: Field, node: Any) -> str:
        if field.path is not None or not field.name:
            return ""
        if field.name in node:
            return ", where it is null"
        return has(field.name, node)


def _as_column_has(number: float, field: Field) -> Any:
    """A number that has a point or an exponent, as exactly as its column may need it."""
    if not isinstance(number, _Written):
        return number
    if pa.types.is_decimal(field.of.arrow):
        return decimal_of(number.text)
    return float_of(number.text) if math.isinf(number) else float(number)


def _is_deep(found: Any) -> bool:
    """Whether lists and dicts lie in one another too deeply, level by level."""
    level = [found]
    for _ in range(_DEEPEST):
        level = [
            one
            for outer in level
            for one in (outer.values() if type(outer) is dict else outer)
            if type(one) is dict or type(one) is list
        ]
        if not level:
            return False
    return True


def _too_deep(content: bytes) -> Malformed | None:
    """Says where a text is nested too deeply; None: it is not."""
    depth = 0
    for found in _BRACKET.finditer(content):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
        if depth > _DEEPEST:
            return Malformed(_DEEP, *_line_and_column(content, found.start()))
    return None


def _malformed(content: bytes, problem: str) -> Malformed:
    """What is wrong with a text, by lines and characters."""
    found = _BYTE.search(problem)
    if found is not None:
        # Of what follows the text it says where the second character would be.
        at = int(found[1]) - ("trailing characters" in problem)
        problem = problem[: found.start()]
    else:
        at = _place_of(content, problem)
    if not content.strip():
        return Malformed("it is empty", 1, 1)
    problem = problem.removeprefix("JSON is malformed: ")
    return Malformed(problem, *_line_and_column(content, at))


def _line_and_column(content: bytes, at: int) -> tuple[int, int]:
    """Those of a byte, in lines and characters from 1 on."""
    before = content[:at].decode(errors="replace")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _place_of(content: bytes, problem: str) -> int:
    """Where the parser has stopped, which does not always say so."""
    if "UTF-8" in problem:
        try:
            content.decode()
        except UnicodeDecodeError as error:
            return error.start
    if "range" in problem:
        numbers = (one for one in _PART.finditer(content) if one["number"] is not None)
        return next((one.start() for one in numbers), 0)
    return len(content)
