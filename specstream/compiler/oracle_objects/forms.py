"""Formatted strings in ``emit``: what the rewritings and the oracle have of them."""

from __future__ import annotations

import ast
import copy
import struct
from collections.abc import Collection, Sequence
from typing import Any

from specstream.compiler.frontend.error_texts import ErrorTexts
from specstream.compiler.frontend.joined_strings import as_written
from specstream.compiler.language.numbers import Uint64
from specstream.compiler.language.text import Text
from specstream.compiler.oracle_objects.elements import STORE
from specstream.declarations.forms import MOST_PARTS, Form, head_of
from specstream.declarations.schema import Column, Schema

__all__ = [
    "CaughtName",
    "EmittedForm",
    "Formed",
    "form_of",
    "form_words",
    "is_elsewhere",
]


_DOUBLE = struct.Struct("<d")


class EmittedForm(ast.Tuple):
    """The parts of a formatted string in a call of emit.

    Attributes:
        number: that of the form.
        shown: how each of the parts is shown, as it is written.
    """

    number: int
    shown: list[ast.FormattedValue]


class CaughtName(ast.Name):
    """A part that is a caught exception."""


class Formed:
    """The same in the oracle."""

    def __init__(self, number: int, *parts: Any) -> None:
        self.number = number
        self.parts = parts


def form_of(
    node: ast.JoinedStr, column: str, filename: str, caught: Collection[str], texts: ErrorTexts
) -> tuple[Form, list[ast.expr]]:
    """The form of what ``emit`` gets as ``f"..."``, for oracle and rewritings; its parts.

    ``caught`` are names of caught exceptions: what is made of one, like str(error), is no part.

    Raises:
        ValueError: it has a format that can be told only when the event runs; says what, and after
            a colon the way out.
    """
    made = copy.deepcopy(node)
    names: list[str] = []
    errors: list[int] = []
    asking: set[int] = set()
    originals: list[ast.expr] = []
    for value in made.values:
        if not isinstance(value, ast.FormattedValue):
            continue
        spec = value.format_spec
        formats = [] if not isinstance(spec, ast.JoinedStr) else spec.values
        if not all(isinstance(one, ast.Constant) for one in formats):
            raise ValueError(
                "a format in a format, in a string that is emitted: write its width and precision "
                "out"
            )
        if any(str(one.value).endswith("c") for one in formats if isinstance(one, ast.Constant)):
            raise ValueError("the format c, in a string that is emitted: emit the number")
        names.append(f"part_{len(names)}")
        part = ast.copy_location(ast.Name(names[-1], ast.Load()), node)
        used = _names_caught(value.value, caught)
        if used:
            if any(isinstance(one, ast.Subscript) for one in ast.walk(value.value)):
                asking.add(len(originals))
            errors.append(len(originals))
            originals.append(ast.copy_location(CaughtName(used[0].id, ast.Load()), used[0]))
            value.value = _Renamed(used[0].id, part).visit(value.value)
        else:
            originals.append(value.value)
            value.value = part
    if len(names) > MOST_PARTS:
        raise ValueError(
            f"a string that is emitted has {len(names)} parts; {MOST_PARTS} are the most: emit two "
            "columns"
        )
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    body = ast.copy_location(ast.Lambda(arguments, made), node)
    function = ast.fix_missing_locations(ast.Expression(body))
    text = as_written(node)
    compiled = eval(compile(function, filename, "eval"), {})
    # Of the parts as they were written more is known than of copies.
    written = [one.value for one in node.values if isinstance(one, ast.FormattedValue)]
    for at in errors:
        written[at] = originals[at]
    status = texts.errors.status_of
    form = Form(
        text, column, len(names), compiled, tuple(errors), frozenset(asking), texts.made, status
    )
    return form, written


def _names_caught(node: ast.expr, caught: Collection[str]) -> list[ast.Name]:
    """For a part of a form, what ``emit`` has of a string: the caught exceptions it is made of.

    Raises:
        ValueError: something is made of one that is not known outside; says the way out.
    """
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    found = [one for one in names if one.id in caught]
    if found:
        others = {one.id for one in names} - {found[0].id, "str", "repr", "type", "len"}
        attributes = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        if others or attributes - {"args", "__name__"}:
            raise ValueError(
                f"{ast.unparse(node)} in a string that is emitted: of a caught exception take "
                "str(error), repr(error), error.args[i] or type(error).__name__"
            )
    return found


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, to: ast.expr) -> None:
        self.name = name
        self.to = to

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.to if node.id == self.name else node


def is_elsewhere(value: Any, column: Column) -> bool:
    """Whether the column's own word says nothing: of a null, and of a formatted string."""
    return isinstance(value, Formed) or (value is None and column.nullable)


def form_words(schema: Schema, values: Sequence[Any]) -> list[int]:
    """The words of the forms of a row's formatted strings, which the oracle's ``emit`` made."""
    words = []
    starts = schema.form_words
    following = [*starts.values(), schema.row_words][1:]
    for (column, at), end in zip(starts.items(), following, strict=True):
        stored: list[int] = []
        value = values[column]
        if isinstance(value, Formed):
            kinds = tuple(map(_kind, value.parts))
            schema.forms[value.number].check(kinds)
            stored.append(head_of(value.number, kinds))
            stored += map(_bits, value.parts, kinds)
        words += stored + [0] * (end - at - len(stored))
    return words


def _kind(part: Any) -> str:
    if isinstance(part, Text):
        return "str"
    if isinstance(part, bool):
        return "bool"
    if isinstance(part, Uint64):
        return "uint"
    if isinstance(part, int):
        return "int"
    if isinstance(part, float):
        return "float"
    raise TypeError(f"a formatted string that is emitted has a part {part!r}")


def _bits(part: Any, kind: str) -> int:
    if kind == "float":
        stored = STORE["float"](part, "a part")
        return int.from_bytes(_DOUBLE.pack(stored), "little", signed=True)
    number = int(part.code) if isinstance(part, Text) else int(part)
    return number - (1 << 64) if number >= 1 << 63 else number
