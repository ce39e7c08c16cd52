"""Lists, dicts and sets of an event's own in the rewriting for Numba.

Displays, comprehensions (by what lowers them), methods, ``del`` and the builtins that make one
become calls of the core functions in :mod:`~specstream.compiler.library.local_lists` and
:mod:`~specstream.compiler.library.local_tables`. Each that makes one is given the run.
"""

from __future__ import annotations

import ast
import functools
import itertools
from typing import Any

from specstream.compiler.facts.lengths import Lengths
from specstream.compiler.frontend.nullable_flows import is_none
from specstream.compiler.language import builtin_functions
from specstream.compiler.language.methods import names_where
from specstream.compiler.library import (
    arithmetic,
    local_list_methods,
    local_lists,
    local_set_methods,
    local_table_methods,
    local_tables,
    local_tuples,
    unpacking,
)
from specstream.compiler.library.method_dispatch import FUNCTIONS
from specstream.compiler.lowering.rewriter_base import NativeParts
from specstream.compiler.oracle.common_rewriting import targets_in

__all__ = ["CONTAINERS", "LocalContainers"]

CONTAINERS = builtin_functions.names_where(lambda one: one.collects)
"""Builtins that make one, or that are about them alone."""
_TAKING_SETS = names_where(lambda one: one.takes_iterables, ("set",)) - {"update"}
_TAKING_LISTS = names_where(lambda one: one.takes_iterables, ("list", "deque"))
_WITHOUT_DDOF = names_where(lambda one: one.most == 0, ("array",)) & {"std", "var"}
EMPTY = ("[]", "{}", "list()", "dict()", "set()")


class LocalContainers(NativeParts):
    """What the native rewriting does with lists, dicts and sets.

    For what lowers comprehensions: :meth:`new` and :meth:`add` are expressions that make a list,
    dict or set, and that put something into one. Their arguments are rewritten already.
    """

    @functools.cached_property
    def makes_any(self) -> bool:
        """Whether the function makes one that may hold nobody knows what."""
        makes = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
        return any(
            isinstance(node, makes)
            or (isinstance(node, ast.Call) and ast.unparse(node.func) in CONTAINERS)
            for statement in self.source.tree.body  # and not of the decorator's arguments
            for node in ast.walk(statement)
        )

    @functools.cached_property
    def lengths(self) -> Lengths:
        return Lengths(self.source.tree, self.analysis.shapes)

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

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """What an empty list, dict or set holds may be said where it is made."""
        said: str = getattr(node, "said", "")
        if node.value is None or ast.unparse(node.value) not in EMPTY or "[" not in said:
            return super().visit_AnnAssign(node)
        self.analysis.uses_arena = True
        made = self.core(local_lists.declared, self.run(), self.constant(said, node), at=node)
        return self.assign(node.target, made, node)

    def visit_List(self, node: ast.List) -> Any:
        if any(isinstance(one, ast.Starred) for one in node.elts):
            return self.joined(local_list_methods.list_from, arithmetic.iadd, node, ast.List)
        self.generic_visit(node)
        if not node.elts:
            return self.new("list", node)
        self.analysis.uses_arena = True
        return self.core(local_lists.list_of, self.run(), *node.elts, at=node)

    def joined(self, whole: Any, join: Any, node: Any, kind: Any) -> ast.expr:
        """A display with stars, as the joint of its parts; ``whole`` makes a part of what has a
        star."""
        self.analysis.uses_arena = True
        made: ast.expr | None = None
        for is_starred, group in itertools.groupby(
            node.elts, lambda one: isinstance(one, ast.Starred)
        ):
            parts: list[ast.expr] = []
            if is_starred:
                parts = [
                    self.core(whole, self.run(), self.visit(self.as_made(one.value)), at=one)
                    for one in group
                ]
            else:
                plain = kind(list(group))
                plain.ctx = ast.Load()
                parts = [self.visit(ast.copy_location(plain, node))]
            for part in parts:
                made = part if made is None else self.core(join, made, part, at=node)
        assert made is not None
        return made

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        if isinstance(node.ctx, ast.Load) and any(
            isinstance(one, ast.Starred) for one in node.elts
        ):
            return self.joined(local_tuples.tuple_whole, arithmetic.add, node, ast.Tuple)
        literal = [isinstance(one, ast.Constant) for one in node.elts]
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not any(literal) or all(literal):
            return node
        return self.core(local_tuples.tuple_of, *node.elts, at=node)

    def visit_Set(self, node: ast.Set) -> Any:
        if any(isinstance(one, ast.Starred) for one in node.elts):
            return self.joined(local_table_methods.set_from, arithmetic.ior, node, ast.Set)
        self.generic_visit(node)
        self.analysis.uses_arena = True
        return self.core(local_tables.set_of, self.run(), *node.elts, at=node)

    def visit_Dict(self, node: ast.Dict) -> Any:
        if None in node.keys:
            return self.joined_dict(node)
        self.generic_visit(node)
        if not node.keys:
            return self.new("dict", node)
        self.analysis.uses_arena = True
        pairs = [part for pair in zip(node.keys, node.values, strict=True) for part in pair if part]
        return self.core(local_tables.dict_of, self.run(), *pairs, at=node)

    def joined_dict(self, node: ast.Dict) -> ast.expr:
        """``{**d, key: value}``, as what its parts make when each updates those before it."""
        self.analysis.uses_arena = True
        made: ast.expr | None = None
        pairs = zip(node.keys, node.values, strict=True)
        for is_whole, group in itertools.groupby(pairs, lambda pair: pair[0] is None):
            parts = []
            if is_whole:
                parts = [
                    self.core(local_table_methods.dict_from, self.run(), self.visit(one), at=node)
                    for _, one in group
                ]
            else:
                plain = ast.Dict(*map(list, zip(*group, strict=True)))
                parts = [self.visit(ast.copy_location(plain, node))]
            for part in parts:
                made = part if made is None else self.core(arithmetic.ior, made, part, at=node)
        assert made is not None
        return made

    def container_method(self, node: ast.Call, callee: ast.Attribute) -> ast.expr:
        """A method of a list, dict or set."""
        owner = self.visit(callee.value)
        if callee.attr == "sort":
            return self.sort(owner, node)
        if node.keywords and callee.attr in _WITHOUT_DDOF:
            self.check.refuse(
                node,
                f"{callee.attr} of an array takes nothing in an operator",
                f"write x.{callee.attr}(); x.var() * len(x) / (len(x) - 1) is the variance of "
                "ddof=1",
            )
        self.positional(node, callee.attr)
        arguments = [self.visit(self.as_made(argument)) for argument in node.args]
        if callee.attr in _TAKING_SETS:
            # What these take may be whatever a loop goes over.
            self.analysis.uses_arena = True
            arguments = [
                self.core(local_set_methods.as_set, self.run(), one, at=node) for one in arguments
            ]
        elif len(arguments) == 1 and callee.attr in _TAKING_LISTS:
            self.analysis.uses_arena = True
            arguments = [self.core(local_list_methods.as_list, self.run(), *arguments, at=node)]
        elif callee.attr == "update":
            self.analysis.uses_arena = True
            arguments.insert(0, self.run())
        return self.core(FUNCTIONS[callee.attr], owner, *arguments, at=node)

    def as_generator(self, node: ast.expr) -> ast.expr:
        """``map(f, xs)`` and ``filter(f, xs)`` as the generators that they are."""
        callee = node.func if isinstance(node, ast.Call) else None
        name = callee.id if isinstance(callee, ast.Name) else ""
        known = None if name in self.check.locals else self.check.resolved.get(name)
        if not isinstance(node, ast.Call) or known not in (map, filter):
            return node
        self.positional(node, name)
        if len(node.args) < 2 or (known is filter and len(node.args) > 2):
            self.check.refuse(node, f"{name} takes a function and a list", f"write {name}(f, xs)")
        function, *given = node.args
        if any(isinstance(one, ast.Starred) for one in given):
            self.check.refuse(
                node,
                f"a star in a call of {name}",
                "write the loop out over the columns, with for i in range(len(rows[0]))",
            )
        items: list[str] = [self.new_name("item") for _ in given]
        made: ast.expr
        if isinstance(function, ast.Lambda) and len(function.args.args) == len(given):
            items = [one.arg for one in function.args.args]
            made = function.body
        elif is_none(function) and known is filter:
            made = ast.Name(items[0], ast.Load())
        else:
            made = ast.Call(function, [ast.Name(one, ast.Load()) for one in items], [])
        targets: list[ast.expr] = [ast.Name(one, ast.Store()) for one in items]
        target, iterable = targets[0], given[0]
        if len(given) > 1:
            self.check.resolved.setdefault("zip", zip)
            target = ast.Tuple(targets, ast.Store())
            iterable = ast.Call(ast.Name("zip", ast.Load()), given, [])
        loop = ast.comprehension(target, iterable, [made] if known is filter else [], 0)
        if known is filter:
            made = ast.Name(items[0], ast.Load())
        generator = ast.copy_location(ast.GeneratorExp(made, [loop]), node)
        for part in ast.walk(generator):
            if isinstance(part, ast.expr) and not hasattr(part, "lineno"):
                ast.copy_location(part, node)
        return generator

    def as_made(self, given: ast.expr) -> ast.expr:
        """A generator as the list that it makes: what a method takes is gone through first."""
        given = self.as_generator(given)
        if not isinstance(given, ast.GeneratorExp):
            return given
        made = ast.copy_location(ast.ListComp(given.elt, given.generators), given)
        before: frozenset[str] = getattr(given, "assigned_before", frozenset())
        made.assigned_before = before  # type: ignore[attr-defined]
        return made

    def sort(self, owner: ast.expr, node: ast.Call) -> ast.expr:
        if node.args:
            self.check.refuse(
                node, "sort takes keywords only", "write x.sort(key=f, reverse=True), or either"
            )
        key, backwards = self.sort_options(node)
        if key is None:
            return self.core(FUNCTIONS["sort"], owner, backwards, at=node)
        made = self.sorted_by_keys(owner, key, backwards, node)
        return self.core(local_list_methods.nothing, made, at=node)

    def sort_options(self, node: ast.Call) -> tuple[ast.expr | None, ast.expr]:
        """The function that makes keys, as it is written, and whether to sort backwards."""
        given = {one.arg: one.value for one in node.keywords}
        name = node.func.attr if isinstance(node.func, ast.Attribute) else "sorted"
        wrong = sorted(str(one) for one in given if one not in ("key", "reverse"))
        if wrong:
            self.check.refuse(node, f"{name} has no {wrong[0]!r}", "it has key= and reverse=")
        backwards = self.visit(given.get("reverse") or self.constant(False, node))
        if "key" not in given or is_none(given["key"]):
            return None, backwards
        return given["key"], backwards

    def sorted_by_keys(
        self, values: ast.expr, key: ast.expr, backwards: ast.expr, node: ast.Call
    ) -> ast.expr:
        """A list sorted by what a function makes of its elements, which is called before."""
        name = self.new_name("sorted")
        kept = ast.NamedExpr(ast.Name(name, ast.Store()), values)
        item: ast.expr = ast.Name("__ss_item", ast.Load())
        target: ast.expr = ast.Name("__ss_item", ast.Store())
        made: ast.expr = ast.Call(key, [item], [])
        if isinstance(key, ast.Lambda):
            parameters = [*key.args.posonlyargs, *key.args.args]
            if len(parameters) != 1 or key.args.kwonlyargs:
                self.check.refuse(
                    key, "a key is a function of one value", "write key=lambda x: ..."
                )
            target, made = ast.Name(parameters[0].arg, ast.Store()), key.body
        elif not isinstance(key, ast.Name | ast.Attribute):
            self.check.refuse(
                key, "a key is a function by its name, or a lambda", "write key=lambda x: ..."
            )
        loop = ast.comprehension(target, ast.Name(name, ast.Load()), [], 0)
        keys = ast.copy_location(ast.ListComp(made, [loop]), node)
        keys.assigned_before = frozenset()  # type: ignore[attr-defined]
        for part in (kept, *ast.walk(keys)):
            if not hasattr(part, "lineno"):
                ast.copy_location(part, node)
        ast.fix_missing_locations(kept)
        sort = local_list_methods.list_sorted_by
        return self.core(sort, kept, backwards, self.visit(keys), at=node)

    @staticmethod
    def constant(value: Any, at: ast.AST) -> ast.expr:
        return ast.copy_location(ast.Constant(value), at)

    def made_of(self, builtin: str, node: ast.Call) -> ast.expr:
        """``list(x)``, ``sorted(x)`` and the like."""
        if builtin == "sorted":
            return self.sorted(node)
        if builtin == "tuple":
            return self.tuple_made(node)
        self.positional(node, builtin)
        arguments = [self.visit(argument) for argument in node.args]
        if builtin == "reversed":
            return self.core(local_list_methods.reversed_list, *arguments, at=node)
        if not arguments:
            return self.new(builtin, node)
        if len(arguments) > 1:
            self.check.refuse(node, f"{builtin} takes one value", f"write {builtin}(x)")
        self.analysis.uses_arena = True
        made = {
            "list": local_list_methods.list_from,
            "dict": local_table_methods.dict_from,
            "set": local_table_methods.set_from,
        }
        return self.core(made[builtin], self.run(), *arguments, at=node)

    def tuple_made(self, node: ast.Call) -> ast.expr:
        """``tuple(x)`` of what has so many values in the program itself."""
        given = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if given is None:
            self.check.refuse(node, "tuple takes one value", "write (a, b), or tuple(x)")
        count = self.lengths.of(given)
        return self.spread(self.visit(self.as_made(given)), count, node)

    def spread(
        self,
        value: ast.expr,
        count: int | None,
        at: ast.AST,
        least: int | None = None,
        columns: str = "",
    ) -> ast.expr:
        """A tuple of so many values; None: it has to be a tuple.

        Of a tuple that has ``least`` values or more, the others are None; ``columns`` are those
        that get the values, if they are emitted.
        """
        self.analysis.uses_arena = True
        wanted = -1 if count is None else count
        arguments = (wanted, wanted if least is None else least, columns)
        constants = (self.constant(one, at) for one in arguments)
        return self.core(unpacking.spread, self.run(), value, *constants, at=at)

    def sorted(self, node: ast.Call) -> ast.expr:
        if len(node.args) != 1:
            self.check.refuse(node, "sorted takes one value", "write sorted(x)")
        self.analysis.uses_arena = True
        made = self.core(
            local_list_methods.list_from, self.run(), self.visit(node.args[0]), at=node
        )
        key, backwards = self.sort_options(node)
        if key is None:
            return self.core(local_list_methods.list_sorted, made, backwards, at=node)
        return self.sorted_by_keys(made, key, backwards, node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        """Of a list or dict an item; a name that is deleted is read no more (flow.py)."""
        statements: list[ast.stmt] = []
        for target in node.targets:
            for part in targets_in(target):
                if isinstance(part, ast.Subscript):
                    owner, index = self.visit(part.value), self.index(part.slice)
                    call = self.core(local_list_methods.delete_item, owner, index, at=node)
                    statements.append(ast.copy_location(ast.Expr(call), node))
                elif not isinstance(part, ast.Name):
                    self.check.refuse(
                        node,
                        f"{ast.unparse(part)} cannot be deleted",
                        "assign another value to it; the fields of the state stay",
                    )
        return statements or ast.copy_location(ast.Pass(), node)
