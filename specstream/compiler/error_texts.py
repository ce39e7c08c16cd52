"""The texts of caught exceptions: what ``emit(str(error))`` emits.

Compiled code has no texts. Where an operator asks for one, the status of an exception says not only
its class but also its *site*: which raise statement it comes from, or which of Python's own texts
it has, if no values are in that. What the text of a raise statement is made of is put down by the
run; a row takes both, and the exception is made again, and asked for its text, when rows become a
table (:mod:`specstream.declarations.forms`).

Of other exceptions the text is not known: those that Python makes of values inside of an operation,
such as an index of an array. The event is then left, and the oracle says so.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from specstream.compiler.error_classes import CLASSES, ErrorClasses
from specstream.compiler.exceptions import Part, parts_of
from specstream.compiler.text import Text, refuse
from specstream.declarations.forms import MOST_TOLD

__all__ = [
    *("NOT_A_NUMBER", "NO_ITEM", "ErrorTexts"),
    *("division_site", "tell_lifted", "tells_text"),
]

_UNKNOWN = (
    "the text of this exception is known to Python alone",
    "raise it yourself, with a text of your own, or emit a text of your own in a clause for its "
    "class",
)


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
    ("/", True): _says(lambda: 1.0 / _zero),
    ("//", True): _says(lambda: 1.0 // _zero),
    ("%", True): _says(lambda: 1.0 % _zero),
}
_NOT_A_NUMBER = _says(lambda: int(math.nan))
_NO_ITEM = _says(lambda: _none[0])
_PYTHONS = tuple(dict.fromkeys((*_DIVISIONS.values(), _NOT_A_NUMBER, _NO_ITEM)))
"""Texts that have no values in them, as this version of Python has them."""

_LIFTED = len(_PYTHONS) + 1
"""The site of what Python computed before the operator ran."""
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
        if len(parts) > MOST_TOLD or names & caught:
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

        made.args = list(map(named, made.args))
        for keyword in made.keywords:
            keyword.value = named(keyword.value)
        given = ast.arguments([], arguments, None, [], [], None, [])
        body = ast.fix_missing_locations(ast.Expression(ast.Lambda(given, made)))
        ast.increment_lineno(body, getattr(call, "lineno", 1) - 1)
        function = eval(compile(body, filename, "eval"), {"__ss_class": error})
        self.sites.append(Site(len(parts), function))
        return _FIRST + len(self.sites) - 1, parts

    def made(self, status: int, parts: Sequence[Any]) -> Exception:
        """The exception of a status, again."""
        site = status // CLASSES
        if site == _LIFTED:
            known = {number: one for one, number in self.errors.known().items()}
            found: Any = known[status % CLASSES](*parts[:1])
            assert isinstance(found, Exception)
            return found
        if site < _FIRST:
            error, text = _PYTHONS[site - 1]
            return error(text)
        of = self.sites[site - _FIRST]
        return of.function(*parts[: of.count])

    def status_of(self, error: Exception) -> int:
        """What compiled code raises for an exception of what Python computed before."""
        number = self.errors.status_of(error)
        exact = self.errors.known().get(type(error)) == number
        return number + CLASSES * _LIFTED if exact and is_its_text(error) else number

    # ---- for the oracle ----

    def raised(self, number: int, *parts: Any) -> Exception:
        """The exception of a raise statement, which is told from others later."""
        error = self.sites[number - _FIRST].function(*parts)
        if all(isinstance(part, int | float | Text) for part in parts):
            error.__dict__["__ss_told"] = True
        return error

    @staticmethod
    def known(error: Exception) -> Exception:
        """An exception whose text compiled code knows as well; refuses others."""
        is_told = "__ss_told" in vars(error) or _site_of((type(error), str(error)))
        if not is_told:
            refuse(*_UNKNOWN)
        return error


def tell_lifted(error: Exception, status: int) -> None:
    """Notes that compiled code knows the text of what Python raised before the operator ran."""
    if status >= CLASSES:
        error.__dict__["__ss_told"] = True


def is_its_text(error: Exception) -> bool:
    """Whether an exception was made of its text alone."""
    return len(error.args) == 1 and type(error.args[0]) is str and str(error) == error.args[0]


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)
