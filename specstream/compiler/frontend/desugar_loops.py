"""``reduce``, ``takewhile`` and ``dropwhile`` with a function of the user's, as loops.

Each becomes a function inside of the user's, in front of the statement that calls it: there the
function is called where it is written, and reads the same names.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from specstream.compiler.language.parsing import parse

__all__ = ["LOOPS", "Loops"]

LOOPS: dict[Any, dict[int, str]] = {
    functools.reduce: {
        2: """
def loop(values):
    items = list(values)
    if len(items) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    total = items[0]
    for item in items[1:]:
        total = function(total, item)
    return total
""",
        3: """
def loop(values):
    total = start
    for item in values:
        total = function(total, item)
    return total
""",
    },
    itertools.takewhile: {
        2: """
def loop(values):
    items = list(values)
    count = 0
    for item in items:
        if not function(item):
            break
        count += 1
    return items[:count]
"""
    },
    itertools.dropwhile: {
        2: """
def loop(values):
    items = list(values)
    count = 0
    for item in items:
        if not function(item):
            break
        count += 1
    return items[count:]
"""
    },
}
"""By the number of arguments, what is done; ``function`` is the first of them, and ``start`` the
third."""

_MARK = "specstream_"  # no name of a user's


class Loops:
    """The functions that stand for such calls, statement by statement."""

    def __init__(self, refuse: Callable[[ast.AST, str, str], NoReturn]) -> None:
        self.refuse = refuse
        self.count = 0
        self.defined: list[ast.stmt] = []
        # Names of lambdas and comprehensions around an expression.
        self.bound: list[str] = []

    @contextmanager
    def before(self) -> Iterator[list[ast.stmt]]:
        """Gives the functions that the expressions of a statement need."""
        outer, self.defined = self.defined, []
        bound, self.bound = self.bound, []
        try:
            yield self.defined
        finally:
            self.defined, self.bound = outer, bound

    @contextmanager
    def inside(self, node: ast.AST) -> Iterator[None]:
        """While an expression is gone through, which may have names of its own."""
        names: list[str] = []
        if isinstance(node, ast.Lambda):
            names = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            names = [
                one.id
                for part in node.generators
                for one in ast.walk(part.target)
                if isinstance(one, ast.Name)
            ]
        self.bound += names
        try:
            yield
        finally:
            del self.bound[len(self.bound) - len(names) :]

    def called(self, node: ast.Call, forms: dict[int, str]) -> ast.expr:
        """The call of the function that stands for a call."""
        name = ast.unparse(node.func)
        form = forms.get(len(node.args))
        if form is None or node.keywords or any(isinstance(x, ast.Starred) for x in node.args):
            self.refuse(
                node,
                f"{ast.unparse(node)} cannot be used in an operator: so many arguments",
                f"write {name}(f, xs), or the loop",
            )
        function, values, *start = node.args
        inner = {
            one.id
            for part in (function, *start)
            for one in ast.walk(part)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
        }
        taken = inner.intersection(self.bound)
        if taken:
            self.refuse(
                node,
                f"the function of {name} reads {sorted(taken)[0]!r} of the lambda or comprehension "
                "around it",
                "write the loop, or this in a function of its own that takes it",
            )
        self.count += 1
        made = parse(form).body[0]
        assert isinstance(made, ast.FunctionDef)
        made.name = f"{_MARK}loop_{self.count}"
        filled = {"function": function} | ({"start": start[0]} if start else {})
        _Filled(filled).visit(made)
        for part in ast.walk(made):
            if isinstance(part, ast.expr | ast.stmt | ast.arg | ast.keyword):
                ast.copy_location(part, node)
        self.defined.append(made)
        call = ast.Call(ast.Name(made.name, ast.Load()), [values], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


class _Filled(ast.NodeTransformer):
    """A form with names of its own, and what the user has given in it."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.given:
            return self.given[node.id]
        is_own = node.id in ("items", "total", "item", "count", "values")
        return ast.Name(f"{_MARK}{node.id}", node.ctx) if is_own else node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(f"{_MARK}{node.arg}")
