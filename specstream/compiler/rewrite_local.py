"""Lists, dicts and sets of an event's own in the rewriting for Numba.

Displays, comprehensions (by what lowers them), methods, ``del`` and the builtins that make one
become calls of the core functions in :mod:`~specstream.compiler.local_lists` and
:mod:`~specstream.compiler.local_tables`. Each that makes one is given the run.
"""

from __future__ import annotations

import ast
from typing import Any

from specstream.compiler import local_lists, local_tables
from specstream.compiler.local_methods import METHODS
from specstream.compiler.rewrite import Rewriter

__all__ = ["CONTAINERS", "LocalContainers"]

CONTAINERS = ("list", "dict", "set")
"""Builtins that make one."""


class LocalContainers(Rewriter):
    """What the native rewriting does with lists, dicts and sets.

    For what lowers comprehensions: :meth:`new` and :meth:`add` are expressions that make a list,
    dict or set, and that put something into one. Their arguments are rewritten already.
    """

    def core(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.Call:
        raise NotImplementedError

    @staticmethod
    def run() -> ast.expr:
        raise NotImplementedError

    def new(self, kind: str, at: ast.AST) -> ast.Call:
        """An empty "list", "dict" or "set"; what it holds is told by what is put into it."""
        self.analysis.uses_arena = True
        made = {
            "list": local_lists.list_new,
            "dict": local_tables.dict_new,
            "set": local_tables.set_new,
        }
        return self.core(made[kind], self.run(), at=at)

    def add(self, kind: str, container: ast.expr, *values: ast.expr, at: ast.AST) -> ast.Call:
        """Appends a value to a "list", sets key and value of a "dict", adds one to a "set"."""
        added = {
            "list": local_lists.list_append,
            "dict": local_tables.dict_set,
            "set": local_tables.set_add,
        }
        return self.core(added[kind], container, *values, at=at)

    def visit_List(self, node: ast.List) -> Any:
        self.generic_visit(node)
        if not node.elts:
            return self.new("list", node)
        self.analysis.uses_arena = True
        return self.core(local_lists.list_of, self.run(), *node.elts, at=node)

    def visit_Set(self, node: ast.Set) -> Any:
        self.generic_visit(node)
        self.analysis.uses_arena = True
        return self.core(local_tables.set_of, self.run(), *node.elts, at=node)

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        if not node.keys:
            return self.new("dict", node)
        self.analysis.uses_arena = True
        pairs = [part for pair in zip(node.keys, node.values, strict=True) for part in pair if part]
        return self.core(local_tables.dict_of, self.run(), *pairs, at=node)

    def made_of(self, builtin: str, arguments: list[ast.expr], node: ast.Call) -> ast.expr:
        """``list(...)`` and the like."""
        if not arguments:
            return self.new(builtin, node)
        return self.check.refuse(node, "not yet", "later")

    def container_method(self, node: ast.Call, callee: ast.Attribute) -> ast.expr:
        """A method of a list, dict or set."""
        owner = self.visit(callee.value)
        arguments = [self.visit(argument) for argument in node.args]
        return self.core(METHODS[callee.attr], owner, *arguments, at=node)
