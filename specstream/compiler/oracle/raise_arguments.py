"""The arguments of a ``raise``, in the oracle: Python computes them, of Python's values.

They are not compiled, and computed when the event has failed. So nothing need be refused there that
compiled code cannot do. What is read becomes Python's where it is read: strings, integers, nulls.
Containers and records stay the oracle's while they are only asked for something, as a copy could be
large; whoever else gets them gets Python's. Functions are called as they are written, but for those
that are given the state, the event or emit: these go on with the values that operators have.
"""

from __future__ import annotations

import ast
import collections
import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from specstream.columns.strings import string_code
from specstream.compiler.frontend.try_and_raise import change_arguments
from specstream.compiler.language.numbers import Int64
from specstream.compiler.language.text import Text, python_string
from specstream.compiler.oracle_objects.local import Dict, List, Set
from specstream.compiler.oracle_objects.nulls import is_none, null_or_value
from specstream.compiler.oracle_objects.records import OracleRecord, class_of, values_of
from specstream.compiler.oracle_objects.sequences import StateDeque, StateList, StateQueue
from specstream.compiler.oracle_objects.view import View

__all__ = ["RaiseArguments", "of_python"]

_OURS = (Dict, Set, List, StateList, View, StateQueue)
# What asks for no more than they tell of themselves.
_ASKING = (len, bool)


def of_python(value: Any) -> Any:
    """A string, integer or null behind ``raise`` as Python has it, and all else as it is.

    >>> from specstream.columns.strings import string_code
    >>> from specstream.compiler.language.text import Text
    >>> of_python(Text(string_code("a"), "a")) + "b"
    'ab'
    """
    if is_none(value):
        return None
    return int(value) if type(value) is Int64 else python_string(value)


def settled(value: Any) -> Any:
    """An argument of a ``raise`` as the exception keeps it: containers and records are copied.

    Others than the oracle are given the same: all as it is before it is undone.
    """
    match value:
        case Dict():
            return {settled(key): settled(one) for key, one in value.items()}
        case Set():
            return Set(map(settled, value))
        case StateDeque():
            return collections.deque(
                map(settled, value), None if value.maxlen is None else int(value.maxlen)
            )
        case List() | StateList() | StateQueue():
            return list(map(settled, value))
        case View():
            return value.plain()
        case OracleRecord():
            return class_of(value)(*map(settled, values_of(value)))
        case types.MethodType() if isinstance(value.__self__, _OURS):
            return functools.partial(asked, value.__self__, value.__name__)
        case Iterator():
            return map(settled, value)
    if type(value) is dict:
        return {settled(key): settled(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(settled, value))
    return of_python(value)


class _Array(np.ndarray[Any, Any]):
    """An array of the state for a function that goes through it: of Python's values."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist()) if self.ndim == 1 else super().__iter__()

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


def _given(value: Any) -> Any:
    """What a function gets."""
    return value.plain().view(_Array) if isinstance(value, View) else settled(value)


def _as_operators_have(value: Any) -> Any:
    """A string in the arguments of a ``raise``, as the oracle's containers have it.

    So it is in a key of several.
    """
    if isinstance(value, tuple):
        return tuple(map(_as_operators_have, value))
    return Text(string_code(value), value) if isinstance(value, str) else value


def asked(receiver: Any, name: str, *args: Any, **named: Any) -> Any:
    """Calls a method in the arguments of a ``raise``: of a container, or of anything else.

    A method of a container gets what operators have, one of anything else what Python has.
    """
    given = _as_operators_have if isinstance(receiver, _OURS) else _given
    named = {key: given(value) for key, value in named.items()}
    return _method_result(getattr(receiver, name)(*map(given, args), **named))


def _method_result(value: Any) -> Any:
    """What a method gives behind ``raise``; a view of a dict is a list of what is in it.

    That is a view of its keys, values or items.
    """
    is_view = type(value).__module__ == Dict.__module__ and not isinstance(value, _OURS)
    return list(map(settled, value)) if is_view else of_python(value)


def called(function: Any, *args: Any, **named: Any) -> Any:
    """Calls a function in the arguments of a ``raise``, as it is written."""
    given = of_python if function in _ASKING else _given
    values = {key: given(value) for key, value in named.items()}
    return of_python(function(*map(given, args), **values))


def item(container: Any, key: Any) -> Any:
    """``container[key]``."""
    return of_python(container[_as_operators_have(key) if isinstance(container, _OURS) else key])


def is_in(value: Any, container: Any) -> bool:
    """``value in container``."""
    return (_as_operators_have(value) if isinstance(container, _OURS) else value) in container


class RaiseArguments(ast.NodeTransformer):
    """Rewrites what an exception is made of.

    Args:
        visit: of the oracle's rewriter, for what goes on with an operator's values.
        ours: makes a call of a function of ours.
        bound: makes a name for a value.
        told: the globals that stand there, and their values.
        given: names that are the state, the event or emit.
    """

    def __init__(
        self,
        visit: Callable[[ast.expr], Any],
        ours: Callable[..., ast.expr],
        bound: Callable[[str, Any, ast.AST], ast.expr],
        told: Mapping[str, Any],
        given: frozenset[str],
    ) -> None:
        self.as_elsewhere = visit
        self.ours = ours
        self.bound = bound
        self.told = told
        self.given = given

    def argument(self, node: ast.expr) -> Any:
        """One of those of the call that makes it."""
        value = self.visit(node)
        return value if isinstance(node, ast.Starred) else self.ours(settled, value, at=node)

    def visit_ItemRead(self, node: ast.expr) -> ast.expr:
        return self.ours(of_python, self.as_elsewhere(node), at=node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self.generic_visit(node)
        node.value = self.ours(settled, node.value, at=node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return node
        if node.id in self.told:
            return self.bound(f"__ss_told_{node.id}", self.told[node.id], node)
        return self.ours(of_python, node, at=node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        name = ast.Constant(node.attr)
        value = self.ours(null_or_value, self.visit(node.value), name, at=node)
        return self.ours(of_python, value, at=node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = self.visit(node.value)
        if isinstance(node.slice, ast.Slice) or not isinstance(node.ctx, ast.Load):
            node.value, node.slice = value, self.visit(node.slice)
            return self.ours(of_python, node, at=node)
        return self.ours(item, value, self.visit(node.slice), at=node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if isinstance(node.ops[0], ast.In | ast.NotIn) and len(node.ops) == 1:
            found = self.ours(is_in, node.left, node.comparators[0], at=node)
            if isinstance(node.ops[0], ast.In):
                return found
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "is_null":
            return self.as_elsewhere(node)
        if self.is_of_operators(node):
            return self.ours(of_python, self.as_elsewhere(node), at=node)
        if isinstance(function, ast.Attribute):
            name = ast.Constant(function.attr)
            call = self.ours(asked, self.visit(function.value), name, at=node)
        else:
            call = self.ours(called, self.visit(function), at=node)
        assert isinstance(call, ast.Call)
        change_arguments(node, self.visit)
        call.args += node.args
        call.keywords = node.keywords
        return call

    def is_of_operators(self, node: ast.Call) -> bool:
        """Whether a function is given what only the oracle has."""
        value = self.told.get(node.func.id) if isinstance(node.func, ast.Name) else None
        arguments = [*node.args, *(one.value for one in node.keywords)]
        names = {one.id for one in arguments if isinstance(one, ast.Name)}
        return isinstance(value, types.FunctionType) and bool(names & self.given)
