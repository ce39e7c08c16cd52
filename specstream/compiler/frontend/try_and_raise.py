"""The ``try`` and ``raise`` statements of an operator: what they catch, raise, and with what.

What ``except`` matches has to be known when the operator is compiled, so classes are written by
their names. Of an exception native code has the class alone. Its text is made by the oracle, and
only of one that gets out; but what the text is made *of* is evaluated in native code as well where
the operator catches anything, because an exception may come from there instead.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from specstream.compiler.frontend.exception_making import problem_of_making
from specstream.compiler.frontend.nullable_flows import is_none
from specstream.declarations.pure import pure_mark
from specstream.declarations.updates import update_name
from specstream.errors import SpecstreamError

__all__ = [
    "ExceptionCheck",
    "Part",
    "UntoldRaise",
    "catches_anything",
    "caught_classes",
    "change_arguments",
    "has_try",
    "is_caught",
    "named_value",
    "parts_of",
    "steps_aside",
    "trees_reached",
]

_CLASS = "name a class of your own, or one of Python's: ValueError, IndexError, ZeroDivisionError"
_TEXT = "give it constants, names, and formatted text: raise SomeError(f'{x} of {y}')"


def steps_aside(error: BaseException) -> bool:
    """Whether an exception in the oracle is none of the operator's: it passes every handler."""
    return isinstance(error, SpecstreamError) or not isinstance(error, Exception)


def _value_of_name(function: types.FunctionType, name: str) -> Any:
    """The value of a global or closure variable, as in ``raise X``; None: there is none."""
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return None
    return function.__globals__.get(name)


def named_value(function: types.FunctionType, node: ast.AST) -> Any:
    """The value of ``X`` or ``module.X`` where a function has it, such as in ``raise X``.

    None: what only a run knows.
    """
    if isinstance(node, ast.Attribute):
        owner = named_value(function, node.value)
        return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None
    return _value_of_name(function, node.id) if isinstance(node, ast.Name) else None


def trees_reached(
    function: types.FunctionType, tree_of: Callable[[types.FunctionType], ast.FunctionDef | None]
) -> Iterator[ast.FunctionDef]:
    """The trees of a function and of those that it calls, to look for exceptions in their text.

    They are those that can be read.
    """
    seen = {function}
    waiting = [function]
    while waiting:
        one = waiting.pop()
        tree = tree_of(one)
        if tree is None:
            continue
        yield tree
        for node in _body_of(tree):
            called = named_value(one, node)
            called = called.func if isinstance(called, functools.partial) else called
            if isinstance(called, types.FunctionType) and called not in seen:
                seen.add(called)
                if update_name(called) is None and pure_mark(called) is None:
                    waiting.append(called)


def _body_of(tree: ast.FunctionDef) -> Iterator[ast.AST]:
    # Not in the decorators: those run once, and by Python.
    return (part for statement in tree.body for part in ast.walk(statement))


def has_try(tree: ast.FunctionDef) -> bool:
    """Whether a function catches anything."""
    return any(isinstance(node, ast.Try) for node in _body_of(tree))


def _classes_written(value: Any) -> tuple[type[BaseException], ...] | None:
    """The classes in ``except X`` or ``raise X`` by the value of X; None: it is no class."""
    found = value if isinstance(value, tuple) else (value,)
    are_classes = all(isinstance(one, type) and issubclass(one, BaseException) for one in found)
    return found if are_classes else None


def caught_classes(
    node: ast.expr, resolve: Callable[[ast.expr], Any]
) -> tuple[type[BaseException], ...] | None:
    """The exception classes that are written behind ``except`` in an operator's text.

    ``resolve`` gives what a name stands for; None: there are none.
    """
    written = tuple(map(resolve, node.elts)) if isinstance(node, ast.Tuple) else resolve(node)
    return _classes_written(written)


def catches_anything(errors: tuple[type[BaseException], ...]) -> bool:
    return Exception in errors or BaseException in errors


def change_arguments(call: ast.Call, change: Callable[[ast.expr], ast.expr]) -> None:
    """Puts what ``change`` makes of each argument of a raised exception in its place."""
    call.args = list(map(change, call.args))
    for keyword in call.keywords:
        keyword.value = change(keyword.value)


class UntoldRaise(ast.Raise):
    """A raise that no user has written, and whose text is not Python's."""


@dataclass(frozen=True)
class Part:
    """A value that the text of an exception is made of, and how it is formatted."""

    value: ast.expr
    spec: str = ""
    is_text: bool = False  # str() or repr() of it is


def parts_of(call: ast.expr | None, caught: set[str]) -> Iterator[Part]:
    """What a ``raise`` statement evaluates for its exception, one after the other.

    The exceptions that are named there are not among it.
    """
    if not isinstance(call, ast.Call):
        return
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from _parts(argument, caught)


def _parts(value: ast.expr, caught: set[str]) -> Iterator[Part]:
    if isinstance(value, ast.JoinedStr):
        for one in value.values:
            if isinstance(one, ast.FormattedValue) and not is_caught(one.value, caught):
                yield Part(one.value, _spec(one), one.conversion != -1)
    elif not isinstance(value, ast.Constant) and not is_caught(value, caught):
        yield Part(value)


def _spec(value: ast.FormattedValue) -> str:
    parts = value.format_spec.values if isinstance(value.format_spec, ast.JoinedStr) else []
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))


def is_caught(value: ast.expr, caught: set[str]) -> bool:
    """Whether an expression is the name of ``except X as name``, or its text, ``str(name)``."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        is_text = value.func.id in ("str", "repr") and not value.keywords
        return is_text and len(value.args) == 1 and is_caught(value.args[0], caught)
    return isinstance(value, ast.Name) and value.id in caught


class ExceptionCheck:
    """Goes through one function's try and raise statements.

    Attributes:
        exempt: nodes that no other rule of operators is for.
        caught: every name that a caught exception gets.
    """

    def __init__(
        self,
        tree: ast.FunctionDef,
        catches: bool,
        resolve: Callable[[ast.expr], Any],
        refuse: Callable[[ast.AST, str, str], NoReturn],
    ) -> None:
        self.catches = catches
        self.resolve = resolve
        self.refuse = refuse
        self.exempt: set[ast.AST] = set()
        self.caught = {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ExceptHandler) and node.name
        }
        assigned = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        } | {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and node.name in assigned:
                self.refuse(
                    node,
                    f"{node.name!r} is a caught exception here and a variable elsewhere",
                    "give the exception a name of its own",
                )
        self.block(tree.body, (), False)

    def block(self, body: list[ast.stmt], names: tuple[str, ...], in_handler: bool) -> None:
        for statement in body:
            self.statement(statement, names, in_handler)

    def statement(self, node: ast.AST, names: tuple[str, ...], in_handler: bool) -> None:
        if isinstance(node, ast.Raise):
            self.raised(node, names, in_handler)
        elif isinstance(node, ast.Assert):
            if node.msg is not None:
                self.text(node.msg, names)
        elif isinstance(node, ast.Try):
            self.block(node.body, names, in_handler)
            for handler in node.handlers:
                self.handler(handler, names)
            self.block(node.orelse, names, in_handler)
            # What is being handled there depends on how the body was left.
            self.block(node.finalbody, names, False)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.FunctionDef | ast.Lambda):
                    self.statement(child, (), False)
                elif isinstance(child, ast.stmt | ast.match_case):
                    self.statement(child, names, in_handler)

    def handler(self, node: ast.ExceptHandler, names: tuple[str, ...]) -> None:
        if node.type is not None:
            self.exempt.update(ast.walk(node.type))
            errors = self.classes(node.type)
            for error in errors:
                if error is BaseException:
                    continue
                if not issubclass(error, Exception) or issubclass(error, SpecstreamError):
                    self.refuse(
                        node,
                        f"{error.__name__} cannot be caught in an operator",
                        "catch what its own code raises: Exception, or a class of it",
                    )
        if node.name in names:
            self.refuse(
                node,
                f"{node.name!r} is caught inside an except clause that uses the same name",
                "give the inner one another name",
            )
        self.block(node.body, (*names, node.name) if node.name else names, True)

    def classes(self, node: ast.expr) -> tuple[type[BaseException], ...]:
        errors = caught_classes(node, self.resolve)
        if errors is None:
            self.refuse(node, f"except takes classes, and {ast.unparse(node)} is not one", _CLASS)
        return errors

    def raised(self, node: ast.Raise, names: tuple[str, ...], in_handler: bool) -> None:
        if node.exc is None:
            if not in_handler:
                self.refuse(
                    node,
                    "raise without an exception is outside an except clause",
                    "write raise SomeError(...)",
                )
            return
        self.made(node.exc, names)
        if node.cause is not None and not is_none(node.cause):
            self.made(node.cause, names)
        elif node.cause is not None:
            self.exempt.add(node.cause)

    def made(self, node: ast.expr, names: tuple[str, ...]) -> None:
        """An exception: a caught one, a class, or a call of one."""
        if not self.catches:
            self.exempt.update(ast.walk(node))
            return
        if isinstance(node, ast.Name) and node.id in names:
            self.exempt.add(node)
            return
        if isinstance(node, ast.Name) and node.id in self.caught:
            self.refuse(
                node,
                f"{node.id!r} is a caught exception, which no longer exists after its except "
                "clause",
                "raise it there",
            )
        called = node.func if isinstance(node, ast.Call) else node
        self.exempt.update({node, *ast.walk(called)})
        errors = _classes_written(self.resolve(called))
        if errors is None or isinstance(self.resolve(called), tuple):
            self.refuse(
                node,
                f"{ast.unparse(called)} is not an exception class, and this operator catches "
                "exceptions",
                _CLASS,
            )
        (error,) = errors
        if not issubclass(error, Exception) or issubclass(error, SpecstreamError):
            self.refuse(node, f"{error.__name__} cannot be raised in an operator", _CLASS)
        call = node if isinstance(node, ast.Call) else ast.Call(called, [], [])
        problem = problem_of_making(error, call)
        if problem is not None:
            self.refuse(node, problem, _TEXT)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            self.text(argument, names)

    def text(self, node: ast.expr, names: tuple[str, ...]) -> None:
        """Checks a value in a ``raise`` statement, with which the exception is made."""
        if not self.catches:
            self.exempt.update(ast.walk(node))
            return
        if is_caught(node, set(names)):
            self.exempt.update(ast.walk(node))
        elif isinstance(node, ast.JoinedStr):
            self.exempt.add(node)
            for part in node.values:
                self.exempt.add(part)
                if not isinstance(part, ast.FormattedValue):
                    continue
                if is_caught(part.value, set(names)):
                    self.exempt.update(ast.walk(part.value))
                spec = part.format_spec
                if spec is None:
                    continue
                self.exempt.update(ast.walk(spec))
                if any(isinstance(one, ast.FormattedValue) for one in ast.walk(spec)):
                    self.refuse(node, "a format that is computed", "write the format out")
