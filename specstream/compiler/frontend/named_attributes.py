"""Columns and fields that are named by strings: ``getattr(event, NAME)``.

Who writes an operator for columns that somebody else chooses has their names as values. Where such
a value is known when the operator is made, the attribute is written out in the syntax tree, before
anybody looks at it: of ``tuple(getattr(event, name) for name in NAMES)`` comes
``(event.x, event.y)``.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Collection
from typing import Any, NoReturn

__all__ = ["write_out"]

_WAY_OUT = (
    "the name must be known when the operator is declared: a constant, or a string of the module "
    "or closure; for several, tuple(getattr(event, name) for name in NAMES)"
)


def write_out(
    tree: ast.FunctionDef,
    local: Collection[str],
    look_up: Callable[[str], Any],
    refuse: Callable[[ast.AST, str, str], NoReturn],
) -> dict[str, Any]:
    """Writes out ``getattr(event, NAME)`` as ``event.x``, in the tree of a function.

    Gives what the names stood for that it has taken out.

    Args:
        tree: the function.
        local: names that it binds somewhere.
        look_up: what another name stands for.
        refuse: raises, of a node.

    >>> tree = ast.parse("def f(event): return tuple(getattr(event, n) for n in NAMES)").body[0]
    >>> write_out(tree, {"event", "n"}, {"NAMES": ("x", "y"), "tuple": tuple,
    ...     "getattr": getattr}.get, lambda *of: print(of))
    {'NAMES': ('x', 'y')}
    >>> print(ast.unparse(tree.body[0]))
    return (event.x, event.y)
    """
    writer = _Writer(local, look_up, refuse)
    tree.body = [writer.visit(one) for one in tree.body]
    return writer.met


class _Writer(ast.NodeTransformer):
    def __init__(
        self,
        local: Collection[str],
        look_up: Callable[[str], Any],
        refuse: Callable[[ast.AST, str, str], NoReturn],
    ) -> None:
        self.local, self.look_up, self.refuse = local, look_up, refuse
        self.met: dict[str, Any] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if self.is_builtin(node.func, "tuple") and len(node.args) == 1 and not node.keywords:
            (of,) = node.args
            if isinstance(of, ast.GeneratorExp) and (parts := self.parts(of)) is not None:
                return ast.copy_location(ast.Tuple(parts, ast.Load()), node)
        if not self.is_builtin(node.func, "getattr") or len(node.args) != 2 or node.keywords:
            return self.generic_visit(node)
        owner, name = node.args
        text = self.value_of(name)
        if not isinstance(text, str) or not text.isidentifier():
            shown = ast.unparse(name)
            self.refuse(node, f"getattr(..., {shown}) names no attribute", _WAY_OUT)
        return ast.copy_location(ast.Attribute(self.visit(owner), text, ast.Load()), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        parts = self.parts(node)
        if parts is None:
            return self.generic_visit(node)
        return ast.copy_location(ast.List(parts, ast.Load()), node)

    def parts(self, node: ast.GeneratorExp | ast.ListComp) -> list[ast.expr] | None:
        """What ``getattr(event, name) for name in NAMES`` is written out as, one for each name.

        None: it is no such comprehension."""
        first, *more = node.generators
        if more or first.ifs or first.is_async or not isinstance(first.target, ast.Name):
            return None
        variable = first.target.id
        named = [
            one
            for one in ast.walk(node.elt)
            if isinstance(one, ast.Call) and self.is_builtin(one.func, "getattr")
        ]
        if not any(_is_name(argument, variable) for one in named for argument in one.args):
            return None
        names = self.value_of(first.iter)
        if not isinstance(names, tuple | list) or not all(type(one) is str for one in names):
            return None
        made = []
        for name in names:
            one = _Replaced(variable, name).visit(copy.deepcopy(node.elt))
            made.append(self.visit(one))
        return made

    def is_builtin(self, node: ast.expr, name: str) -> bool:
        is_named = _is_name(node, name) and name not in self.local
        return is_named and self.look_up(name) is getattr(builtins, name)

    def value_of(self, node: ast.expr) -> Any:
        """Names that ``getattr`` gets: a constant, what a global stands for, or a display."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(map(self.value_of, node.elts))
        if isinstance(node, ast.Name) and node.id not in self.local:
            value = self.look_up(node.id)
            if isinstance(value, str | tuple | list):
                self.met[node.id] = value
                return value
        return None


class _Replaced(ast.NodeTransformer):
    """A name by a string."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not _is_name(node, self.name):
            return node
        return ast.copy_location(ast.Constant(self.text), node)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
