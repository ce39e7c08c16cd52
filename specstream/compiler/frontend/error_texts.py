"""The texts of caught exceptions: what ``emit(str(error))`` emits.

Compiled code has no texts. Where an operator asks for one, the status of an exception says not only
its class but also its *site*: which raise statement it comes from, or which of Python's own texts
it has, if no values are in that. What the text of a raise statement is made of is put down by the
run; a row takes both, and the exception is made again, and asked for its text, when rows become a
table (:mod:`specstream.declarations.forms`).

Of other exceptions compiled code does not know the text: those that Python makes of values inside
of an operation, those made of another one that was caught, or of what no row could hold. There the
event asks (``answers.c``), and the oracle, which runs it on the same state, answers.
"""

from __future__ import annotations

import ast
import copy
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from specstream.columns.exception_texts import error_of, python_error, record_of
from specstream.compiler.frontend.try_and_raise import Part, change_arguments, parts_of
from specstream.compiler.language.error_classes import CLASSES, LEAVES, ErrorClasses
from specstream.compiler.language.text import Text
from specstream.declarations.forms import MOST_TOLD

__all__ = [
    *("NOT_A_NUMBER", "NO_ELEMENT", "NO_ITEM", "NO_KEY", "ErrorTexts", "no_element"),
    *("RECORDED", "as_told", "division_site", "tells_text", "with_texts_in_place"),
]


def _says(function: Callable[[], Any]) -> tuple[type[Exception], str]:
    try:
        function()
    except Exception as error:
        return type(error), str(error)
    raise AssertionError("it raises")


_zero: Any = 0
_none: list[int] = []
_DIVISIONS = {
    ("/", False): _says(lambda: 1 / _zero),
    ("//", False): _says(lambda: 1 // _zero),
    ("%", False): _says(lambda: 1 % _zero),
    ("divmod", False): _says(lambda: divmod(1, _zero)),
    ("divmod", True): _says(lambda: divmod(1.0, _zero)),
    ("/", True): _says(lambda: 1.0 / _zero),
    ("//", True): _says(lambda: 1.0 // _zero),
    ("%", True): _says(lambda: 1.0 % _zero),
}
_NOT_A_NUMBER = _says(lambda: int(math.nan))
_NO_ITEM = _says(lambda: _none[0])
_PYTHONS = tuple(dict.fromkeys((*_DIVISIONS.values(), _NOT_A_NUMBER, _NO_ITEM)))
"""Texts that have no values in them, as this version of Python has them."""

NO_KEY = len(_PYTHONS) + 1
"""The site of a KeyError of a dict or set; the key is put down."""
NO_ELEMENT = NO_KEY + 1
"""The site of an element that an array has not; the index, the axis and its length are put down."""
_RECORDED = NO_ELEMENT + 1
"""The site of what Python has raised, before the operator ran or in the oracle; what it says is put
down (:mod:`specstream.columns.exception_texts`)."""
RECORDED = CLASSES * _RECORDED
"""The status of such a one whose class does not matter any more."""
_FIRST = 64


def _site_of(found: tuple[type[Exception], str]) -> int:
    return _PYTHONS.index(found) + 1 if found in _PYTHONS else 0


def division_site(what: str, is_float: bool) -> int:
    """The site of a division by zero."""
    return _site_of(_DIVISIONS[what, is_float])


NOT_A_NUMBER = _site_of(_NOT_A_NUMBER)
"""The site of int() of a NaN."""
NO_ITEM = _site_of(_NO_ITEM)
"""The site of an item that a list has not."""


def tells_text(tree: ast.FunctionDef) -> bool:
    """Whether a function uses a caught exception otherwise than to raise."""
    return any(
        isinstance(node, ast.ExceptHandler)
        and node.name is not None
        and any(_names(one, node.name) for one in node.body)
        for node in ast.walk(tree)
    )


def _names(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Raise):
        return False
    if isinstance(node, ast.Name) and node.id == name:
        return True
    return any(_names(child, name) for child in ast.iter_child_nodes(node))


def with_texts_in_place(handler: ast.ExceptHandler, tree: ast.FunctionDef) -> list[ast.stmt]:
    """A handler's statements, with the caught exception's text in place of each name for it.

    Of ``message = str(error)``, ``str(error)`` is written wherever ``message`` stands.

    A text does not change, so that is the same, if the name has no other meaning.
    """
    kept: list[ast.stmt] = []
    for statement in handler.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if (
            isinstance(statement, ast.Assign)
            and isinstance(target, ast.Name)
            and len(statement.targets) == 1
            and _is_text_of(statement.value, handler.name)
            and _uses(tree, target.id) == _uses(handler, target.id)
            and [type(one.ctx) for one in _uses(tree, target.id)].count(ast.Store) == 1
        ):
            place = _InPlace(target.id, statement.value)
            rest = handler.body[handler.body.index(statement) + 1 :]
            return with_texts_in_place(
                ast.ExceptHandler(
                    handler.type, handler.name, [*kept, *(place.visit(one) for one in rest)]
                ),
                tree,
            )
        kept.append(statement)
    return kept


def _uses(tree: ast.AST, name: str) -> list[ast.Name]:
    return [node for node in ast.walk(tree) if _is_name(node) and node.id == name]


def _is_text_of(value: ast.expr, name: str | None) -> bool:
    """Whether a value is a text of the caught exception alone, such as ``str(error)``."""
    names = {node.id for node in ast.walk(value) if _is_name(node)}
    is_call = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    is_text = isinstance(value, ast.JoinedStr) or (is_call and names & {"str", "repr"})
    return bool(is_text) and name in names and names <= {name, "str", "repr"}


class _InPlace(ast.NodeTransformer):
    """Writes a value where a name is read, and into the formatted strings where it stands."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name = name
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.value) if node.id == self.name else node


@dataclass(frozen=True)
class Site:
    """A raise statement.

    Attributes:
        count: of the parts that its exception is made of.
        function: makes it of them.
    """

    count: int
    function: Callable[..., Exception]


class ErrorTexts:
    """The sites of an operator."""

    def __init__(self, errors: ErrorClasses) -> None:
        self.errors = errors
        self.sites: list[Site] = []

    def site(
        self, call: ast.expr, error: type[Exception], caught: set[str], filename: str
    ) -> tuple[int, list[Part]]:
        """The site of a raise statement, and the parts of its exception; 0: nobody knows it."""
        parts = list(parts_of(call, set()))
        names = {node.id for part in parts for node in ast.walk(part.value) if _is_name(node)}
        if len(parts) > MOST_TOLD or names & caught or _makes_own_text(error):
            return 0, []
        made = copy.deepcopy(call) if isinstance(call, ast.Call) else ast.Call(call, [], [])
        made.func = ast.Name("__ss_class", ast.Load())
        arguments = [ast.arg(f"part_{at}") for at in range(len(parts))]
        slots = iter(arguments)

        def slot() -> ast.expr:
            return ast.Name(next(slots).arg, ast.Load())

        def named(value: ast.expr) -> ast.expr:
            if isinstance(value, ast.JoinedStr):
                for one in value.values:
                    if isinstance(one, ast.FormattedValue):
                        one.value = slot()
                return value
            return value if isinstance(value, ast.Constant) else slot()

        change_arguments(made, named)
        given = ast.arguments([], arguments, None, [], [], None, [])
        body = ast.fix_missing_locations(ast.Expression(ast.Lambda(given, made)))
        ast.increment_lineno(body, getattr(call, "lineno", 1) - 1)
        function = eval(compile(body, filename, "eval"), {"__ss_class": error})
        self.sites.append(Site(len(parts), function))
        return _FIRST + len(self.sites) - 1, parts

    def made(self, status: int, parts: Sequence[Any]) -> Exception:
        """The exception of a status, again."""
        site = status // CLASSES
        if site == _RECORDED:
            return error_of(parts[0]) or Exception(parts[0])
        if site == NO_KEY:
            return KeyError(*parts[:1])
        if site == NO_ELEMENT:
            return no_element(*parts[:3])
        if site < _FIRST:
            error, text = _PYTHONS[site - 1]
            return error(text)
        of = self.sites[site - _FIRST]
        return of.function(*parts[: of.count])

    def status_of(self, error: Exception) -> int:
        """What compiled code raises for an exception of what Python computed before."""
        number = self.errors.status_of(error)
        is_told = number != LEAVES and record_of(error) is not None
        return number + CLASSES * _RECORDED if is_told else number

    # ---- for the oracle ----

    def raised(self, number: int, *parts: Any) -> Exception:
        """The exception of a raise statement."""
        return self.sites[number - _FIRST].function(*map(as_told, parts))

    @staticmethod
    def known(error: Exception) -> Exception:
        """An exception as plain Python raises it, where that of the oracle says more."""
        if type(error) is KeyError:
            return KeyError(*map(as_told, error.args))
        return python_error(error)


def _makes_own_text(error: type[Exception]) -> bool:
    """Whether code of the user's makes the text of an exception of a class, which may raise."""
    methods = [getattr(error, name) for name in ("__str__", "__repr__", "__format__")]
    return any(isinstance(one, types.FunctionType) for one in methods)


def no_element(index: int, axis: int, length: int) -> IndexError:
    """What NumPy raises; an exception that gets out names the field."""
    return IndexError(f"index {index} is out of bounds for axis {axis} with size {length}")


def as_told(part: Any) -> Any:
    """A part of a caught exception's text, made again of a row: of a null string None."""
    if isinstance(part, tuple):
        return tuple(map(as_told, part))
    return None if isinstance(part, Text) and part.code == 0 else part


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)
