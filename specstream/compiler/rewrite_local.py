"""Lists, dicts and sets of an event's own in the rewriting for Numba.

Displays, comprehensions (by what lowers them), methods, ``del`` and the builtins that make one
become calls of the core functions in :mod:`~specstream.compiler.local_lists` and
:mod:`~specstream.compiler.local_tables`. Each that makes one is given the run.
"""

from __future__ import annotations

import ast
import functools
import types
from typing import Any

from specstream.compiler import list_methods, local_lists, local_tables, table_methods
from specstream.compiler.check import is_none
from specstream.compiler.local_methods import METHODS
from specstream.compiler.rewrite import Rewriter

__all__ = ["CONTAINERS", "LocalContainers"]

CONTAINERS = ("list", "dict", "set", "sorted", "reversed")
"""Builtins that make one, or that are about them alone."""


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

    def index(self, node: ast.expr) -> ast.expr:
        raise NotImplementedError

    def positional(self, node: ast.Call, name: str) -> None:
        raise NotImplementedError

    @functools.cached_property
    def makes_any(self) -> bool:
        """Whether the function makes one that may hold nobody knows what."""
        makes = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
        return any(
            isinstance(node, makes)
            or (isinstance(node, ast.Call) and ast.unparse(node.func) in CONTAINERS)
            for node in ast.walk(self.source.tree)
        )

    def argument(self, value: ast.expr) -> ast.expr:
        """What a function of the user's is given."""
        if not self.makes_any or isinstance(value, ast.Constant):
            return value
        return self.core(local_lists.argument, value, at=value)

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

    def container_method(self, node: ast.Call, callee: ast.Attribute) -> ast.expr:
        """A method of a list, dict or set."""
        owner = self.visit(callee.value)
        if callee.attr == "sort":
            return self.sort(owner, node)
        self.positional(node, callee.attr)
        arguments = [self.visit(argument) for argument in node.args]
        return self.core(METHODS[callee.attr], owner, *arguments, at=node)

    def sort(self, owner: ast.expr, node: ast.Call) -> ast.expr:
        if node.args:
            self.check.refuse(
                node, "sort takes keywords only", "write x.sort(key=f, reverse=True), or either"
            )
        key, backwards = self.sort_options(node)
        if key is None:
            return self.core(METHODS["sort"], owner, backwards, at=node)
        return self.core(list_methods.sort_by, self.run(), owner, key, backwards, at=node)

    def sort_options(self, node: ast.Call) -> tuple[ast.expr | None, ast.expr]:
        """The function that makes keys, and whether to sort backwards."""
        given = {one.arg: one.value for one in node.keywords}
        name = node.func.attr if isinstance(node.func, ast.Attribute) else "sorted"
        wrong = sorted(str(one) for one in given if one not in ("key", "reverse"))
        if wrong:
            self.check.refuse(node, f"{name} has no {wrong[0]!r}", "it has key= and reverse=")
        backwards = self.visit(given.get("reverse") or self.constant(False, node))
        if "key" not in given or is_none(given["key"]):
            return None, backwards
        return self.key_function(given["key"], node), backwards

    def key_function(self, key: ast.expr, node: ast.Call) -> ast.expr:
        """A compiled function of the run and an element."""
        value = None
        if isinstance(key, ast.Name) and key.id not in self.check.locals:
            value = self.check.resolved.get(key.id)
        if not isinstance(value, types.FunctionType):
            self.check.refuse(
                node, "the key of a sort is no plain function", "define one: def by_price(x): ..."
            )
        assert isinstance(key, ast.Name)
        name = f"__ss_function_{key.id}"
        self.source.native_namespace[name] = self.analysis.compiled(value)
        return ast.copy_location(ast.Name(name, ast.Load()), key)

    @staticmethod
    def constant(value: Any, at: ast.AST) -> ast.expr:
        return ast.copy_location(ast.Constant(value), at)

    def made_of(self, builtin: str, node: ast.Call) -> ast.expr:
        """``list(x)``, ``sorted(x)`` and the like."""
        if builtin == "sorted":
            return self.sorted(node)
        self.positional(node, builtin)
        arguments = [self.visit(argument) for argument in node.args]
        if builtin == "reversed":
            return self.core(list_methods.reversed_list, *arguments, at=node)
        if not arguments:
            return self.new(builtin, node)
        if len(arguments) > 1:
            self.check.refuse(node, f"{builtin} takes one value", f"write {builtin}(x)")
        self.analysis.uses_arena = True
        made = {
            "list": list_methods.list_from,
            "dict": table_methods.dict_from,
            "set": table_methods.set_from,
        }
        return self.core(made[builtin], self.run(), *arguments, at=node)

    def sorted(self, node: ast.Call) -> ast.expr:
        if len(node.args) != 1:
            self.check.refuse(node, "sorted takes one value", "write sorted(x)")
        self.analysis.uses_arena = True
        made = self.core(list_methods.list_from, self.run(), self.visit(node.args[0]), at=node)
        key, backwards = self.sort_options(node)
        if key is None:
            return self.core(list_methods.list_sorted, made, backwards, at=node)
        return self.core(list_methods.sorted_by, self.run(), made, key, backwards, at=node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        statements: list[ast.stmt] = []
        for target in node.targets:
            assert isinstance(target, ast.Subscript)
            owner, index = self.visit(target.value), self.index(target.slice)
            call = self.core(list_methods.delete_item, owner, index, at=node)
            statements.append(ast.copy_location(ast.Expr(call), node))
        return statements
