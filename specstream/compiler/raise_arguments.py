"""What stands behind ``raise``, in the oracle: Python computes it, of Python's strings.

It is not compiled, and computed when the event has failed. So nothing need be refused there that a
string of the state cannot do in compiled code; what is read is made a string of Python's where it
is read. What belongs to the state, and helpers, go on with the values that they know.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator
from typing import Any

from specstream.compiler.exceptions import change_arguments
from specstream.compiler.oracle_containers import StateQueue
from specstream.compiler.oracle_local import Dict, List, Set
from specstream.compiler.oracle_nulls import is_none, null_or_value
from specstream.compiler.oracle_records import OracleRecord, class_of, values_of
from specstream.compiler.oracle_view import View
from specstream.compiler.text import python_string

__all__ = ["RaiseArguments", "of_python"]


def of_python(value: Any) -> Any:
    """A string and a null as Python has them, and anything else as it is.

    >>> from specstream.columns.strings import string_code
    >>> from specstream.compiler.text import Text
    >>> of_python(Text(string_code("a"), "a")) + "b"
    'ab'
    """
    if is_none(value):
        return None
    return python_string(value)


def settled(value: Any) -> Any:
    """What an exception keeps: containers and records as they are before all is undone."""
    match value:
        case Dict():
            return {settled(key): settled(one) for key, one in value.items()}
        case Set():
            return Set(map(settled, value))
        case list() | StateQueue():
            return list(map(settled, value))
        case View():
            return value.plain()
        case OracleRecord():
            return class_of(value)(*map(settled, values_of(value)))
    return of_python(value)


def _all_of_python(value: Any) -> Any:
    if isinstance(value, list | tuple | Iterator):
        return [_all_of_python(one) for one in value]
    return of_python(value)


def asked(receiver: Any, name: str, *args: Any, **named: Any) -> Any:
    """A method of a string gets Python's strings, one of anything else the oracle's."""
    if isinstance(receiver, str):
        args = tuple(map(_all_of_python, args))
        named = {key: _all_of_python(value) for key, value in named.items()}
    return of_python(getattr(receiver, name)(*args, **named))


def is_in(value: Any, container: Any) -> bool:
    """The same of ``value in container``."""
    is_ours = isinstance(container, Dict | Set | List | View)
    return (value if is_ours else of_python(value)) in container


class RaiseArguments(ast.NodeTransformer):
    """Rewrites what an exception is made of.

    Args:
        visit: of the oracle's rewriter, for what does not take Python's strings.
        ours: makes a call of a function of ours.
        static_value: what a name stands for; None: what only a run knows.
    """

    def __init__(
        self,
        visit: Callable[[ast.expr], Any],
        ours: Callable[..., ast.expr],
        static_value: Callable[[ast.expr], Any],
    ) -> None:
        self.as_elsewhere = visit
        self.ours = ours
        self.static_value = static_value

    def argument(self, node: ast.expr) -> Any:
        """One of those of the call that makes it."""
        value = self.visit(node)
        return value if isinstance(node, ast.Starred) else self.ours(settled, value, at=node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.ours(of_python, node, at=node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        name = ast.Constant(node.attr)
        value = self.ours(null_or_value, self.visit(node.value), name, at=node)
        return self.ours(of_python, value, at=node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self.visit(node.value)
        node.slice = self.as_elsewhere(node.slice)
        return self.ours(of_python, node, at=node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if isinstance(node.ops[0], ast.In | ast.NotIn) and len(node.ops) == 1:
            value, container = self.as_elsewhere(node.left), self.visit(node.comparators[0])
            found = self.ours(is_in, value, container, at=node)
            if isinstance(node.ops[0], ast.In):
                return found
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        if isinstance(self.static_value(function), types.FunctionType):
            return self.ours(of_python, self.as_elsewhere(node), at=node)
        if not isinstance(function, ast.Attribute):
            change_arguments(node, self.visit)
            return node
        if function.attr == "is_null":
            return self.as_elsewhere(node)
        call = self.ours(asked, self.visit(function.value), ast.Constant(function.attr), at=node)
        assert isinstance(call, ast.Call)
        change_arguments(node, self.as_elsewhere)
        call.args += node.args
        call.keywords = node.keywords
        return call
