"""Lists, dicts and sets of an event's own in the rewriting for Numba.

Displays, methods and the builtins that make one become calls of the core functions in
:mod:`~specstream.compiler.library.local_lists` and
:mod:`~specstream.compiler.library.local_tables`. Each that makes one is given the run.
"""

from __future__ import annotations

import ast
import functools
import itertools
from typing import Any

from specstream.compiler.frontend.made_nodes import at_place, constant, load
from specstream.compiler.frontend.nullable_flows import is_none
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
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter, run

__all__ = [
    "HANDLERS",
    "add",
    "as_generator",
    "as_made",
    "container_method",
    "key_of",
    "made_of",
    "new",
    "spread",
]

_TAKING_SETS = names_where(lambda one: one.takes_iterables, ("set",)) - {"update"}
_TAKING_LISTS = names_where(lambda one: one.takes_iterables, ("list", "deque"))
_WITHOUT_DDOF = names_where(lambda one: one.most == 0, ("array",)) & {"std", "var"}


def new(rewriter: NativeRewriter, kind: str, at: ast.AST) -> ast.Call:
    """An empty "list", "dict" or "set"; what it holds is told by what is put into it."""
    made = {
        "list": local_lists.list_new,
        "dict": local_tables.dict_new,
        "set": local_tables.set_new,
    }
    return rewriter.make(made[kind], at=at)


def add(
    rewriter: NativeRewriter, kind: str, container: ast.expr, *values: ast.expr, at: ast.AST
) -> ast.Call:
    """Appends a value to a "list", sets key and value of a "dict", adds one to a "set"."""
    added = {
        "list": local_lists.list_append,
        "dict": local_tables.dict_set,
        "set": local_tables.set_add,
    }
    return rewriter.core(added[kind], container, *values, at=at)


def _list(rewriter: NativeRewriter, node: ast.List) -> Any:
    if any(isinstance(one, ast.Starred) for one in node.elts):
        return _joined(rewriter, local_list_methods.list_from, arithmetic.iadd, node, ast.List)
    rewriter.generic_visit(node)
    if not node.elts:
        return new(rewriter, "list", node)
    return rewriter.make(local_lists.list_of, *node.elts, at=node)


def _joined(rewriter: NativeRewriter, whole: Any, join: Any, node: Any, kind: Any) -> ast.expr:
    """A display with stars, as the joint of its parts; ``whole`` makes a part of what has a
    star."""
    parts: list[ast.expr] = []
    for is_starred, group in itertools.groupby(node.elts, lambda one: isinstance(one, ast.Starred)):
        if is_starred:
            for one in group:
                given = rewriter.visit(as_made(rewriter, one.value))
                parts.append(rewriter.make(whole, given, at=one))
        else:
            plain = kind(list(group))
            plain.ctx = ast.Load()
            parts.append(rewriter.visit(ast.copy_location(plain, node)))
    return _joint(rewriter, join, parts, node)


def _joint(rewriter: NativeRewriter, join: Any, parts: list[ast.expr], node: ast.AST) -> ast.expr:
    return functools.reduce(lambda made, part: rewriter.core(join, made, part, at=node), parts)


def _tuple(rewriter: NativeRewriter, node: ast.Tuple) -> Any:
    if isinstance(node.ctx, ast.Load) and any(isinstance(one, ast.Starred) for one in node.elts):
        return _joined(rewriter, local_tuples.tuple_whole, arithmetic.add, node, ast.Tuple)
    literal = [isinstance(one, ast.Constant) for one in node.elts]
    rewriter.generic_visit(node)
    if not isinstance(node.ctx, ast.Load) or not any(literal) or all(literal):
        return node
    return rewriter.core(local_tuples.tuple_of, *node.elts, at=node)


def _set(rewriter: NativeRewriter, node: ast.Set) -> Any:
    if any(isinstance(one, ast.Starred) for one in node.elts):
        return _joined(rewriter, local_table_methods.set_from, arithmetic.ior, node, ast.Set)
    rewriter.generic_visit(node)
    return rewriter.make(local_tables.set_of, *node.elts, at=node)


def _dict(rewriter: NativeRewriter, node: ast.Dict) -> Any:
    if None in node.keys:
        return _joined_dict(rewriter, node)
    rewriter.generic_visit(node)
    if not node.keys:
        return new(rewriter, "dict", node)
    pairs = [part for pair in zip(node.keys, node.values, strict=True) for part in pair if part]
    return rewriter.make(local_tables.dict_of, *pairs, at=node)


def _joined_dict(rewriter: NativeRewriter, node: ast.Dict) -> ast.expr:
    """``{**d, key: value}``, as what its parts make when each updates those before it."""
    parts: list[ast.expr] = []
    pairs = zip(node.keys, node.values, strict=True)
    for is_whole, group in itertools.groupby(pairs, lambda pair: pair[0] is None):
        if is_whole:
            for _, one in group:
                given = rewriter.visit(one)
                parts.append(rewriter.make(local_table_methods.dict_from, given, at=node))
        else:
            plain = ast.Dict(*map(list, zip(*group, strict=True)))
            parts.append(rewriter.visit(ast.copy_location(plain, node)))
    return _joint(rewriter, arithmetic.ior, parts, node)


def container_method(rewriter: NativeRewriter, node: ast.Call, callee: ast.Attribute) -> ast.expr:
    """A method of a list, dict or set."""
    owner = rewriter.visit(callee.value)
    if callee.attr == "sort":
        return _sort(rewriter, owner, node)
    if node.keywords and callee.attr in _WITHOUT_DDOF:
        rewriter.check.refuse(
            node,
            f"{callee.attr} of an array takes nothing in an operator",
            f"write x.{callee.attr}(); x.var() * len(x) / (len(x) - 1) is the variance of ddof=1",
        )
    rewriter.positional(node, callee.attr)
    arguments = [rewriter.visit(as_made(rewriter, argument)) for argument in node.args]
    if callee.attr in _TAKING_SETS:
        # What these take may be whatever a loop goes over.
        arguments = [rewriter.make(local_set_methods.as_set, one, at=node) for one in arguments]
    elif len(arguments) == 1 and callee.attr in _TAKING_LISTS:
        arguments = [rewriter.make(local_list_methods.as_list, *arguments, at=node)]
    elif callee.attr == "update":
        rewriter.analysis.uses_arena = True
        arguments.insert(0, run())
    return rewriter.core(FUNCTIONS[callee.attr], owner, *arguments, at=node)


def as_generator(rewriter: NativeRewriter, node: ast.expr) -> ast.expr:
    """``map(f, xs)`` and ``filter(f, xs)`` as the generators that they are."""
    callee = node.func if isinstance(node, ast.Call) else None
    name = callee.id if isinstance(callee, ast.Name) else ""
    known = None if name in rewriter.check.locals else rewriter.check.resolved.get(name)
    if not isinstance(node, ast.Call) or known not in (map, filter):
        return node
    rewriter.positional(node, name)
    if len(node.args) < 2 or (known is filter and len(node.args) > 2):
        rewriter.check.refuse(node, f"{name} takes a function and a list", f"write {name}(f, xs)")
    function, *given = node.args
    if any(isinstance(one, ast.Starred) for one in given):
        rewriter.check.refuse(
            node,
            f"a star in a call of {name}",
            "write the loop out over the columns, with for i in range(len(rows[0]))",
        )
    items: list[str] = [rewriter.new_name("item") for _ in given]
    made: ast.expr
    if isinstance(function, ast.Lambda) and len(function.args.args) == len(given):
        items = [one.arg for one in function.args.args]
        made = function.body
    elif is_none(function) and known is filter:
        made = load(items[0])
    else:
        made = ast.Call(function, [load(one) for one in items], [])
    targets: list[ast.expr] = [ast.Name(one, ast.Store()) for one in items]
    target, iterable = targets[0], given[0]
    if len(given) > 1:
        rewriter.check.resolved.setdefault("zip", zip)
        target = ast.Tuple(targets, ast.Store())
        iterable = ast.Call(load("zip"), given, [])
    loop = ast.comprehension(target, iterable, [made] if known is filter else [], 0)
    if known is filter:
        made = load(items[0])
    generator = ast.copy_location(ast.GeneratorExp(made, [loop]), node)
    return at_place(generator, node)


def as_made(rewriter: NativeRewriter, given: ast.expr) -> ast.expr:
    """A generator as the list that it makes: what a method takes is gone through first."""
    given = as_generator(rewriter, given)
    if not isinstance(given, ast.GeneratorExp):
        return given
    made = ast.copy_location(ast.ListComp(given.elt, given.generators), given)
    before: frozenset[str] = getattr(given, "assigned_before", frozenset())
    made.assigned_before = before  # type: ignore[attr-defined]
    return made


def _sort(rewriter: NativeRewriter, owner: ast.expr, node: ast.Call) -> ast.expr:
    if node.args:
        rewriter.check.refuse(
            node, "sort takes keywords only", "write x.sort(key=f, reverse=True), or either"
        )
    key, backwards = _sort_options(rewriter, node)
    if key is None:
        return rewriter.core(FUNCTIONS["sort"], owner, backwards, at=node)
    made = _sorted_by_keys(rewriter, owner, key, backwards, node)
    return rewriter.core(local_list_methods.nothing, made, at=node)


def _sort_options(rewriter: NativeRewriter, node: ast.Call) -> tuple[ast.expr | None, ast.expr]:
    """The function that makes keys, as it is written, and whether to sort backwards."""
    given = {one.arg: one.value for one in node.keywords}
    name = node.func.attr if isinstance(node.func, ast.Attribute) else "sorted"
    wrong = sorted(str(one) for one in given if one not in ("key", "reverse"))
    if wrong:
        rewriter.check.refuse(node, f"{name} has no {wrong[0]!r}", "it has key= and reverse=")
    backwards = rewriter.visit(given.get("reverse") or constant(False, node))
    if "key" not in given or is_none(given["key"]):
        return None, backwards
    return given["key"], backwards


def _sorted_by_keys(
    rewriter: NativeRewriter, values: ast.expr, key: ast.expr, backwards: ast.expr, node: ast.Call
) -> ast.expr:
    """A list sorted by what a function makes of its elements, which is called before."""
    name = rewriter.new_name("sorted")
    kept = ast.NamedExpr(ast.Name(name, ast.Store()), values)
    of, made = key_of(rewriter, key, "__ss_item")
    target = ast.Name(of, ast.Store())
    loop = ast.comprehension(target, load(name), [], 0)
    keys = ast.copy_location(ast.ListComp(made, [loop]), node)
    keys.assigned_before = frozenset()  # type: ignore[attr-defined]
    ast.fix_missing_locations(ast.copy_location(kept, node))
    at_place(keys, node)
    sort = local_list_methods.list_sorted_by
    return rewriter.core(sort, kept, backwards, rewriter.visit(keys), at=node)


def key_of(rewriter: NativeRewriter, key: ast.expr, item: str) -> tuple[str, ast.expr]:
    """What is given as key=: what it calls a value, ``item`` if it is no lambda, and the key."""
    if isinstance(key, ast.Lambda):
        names = [one.arg for one in (*key.args.posonlyargs, *key.args.args)]
        if len(names) != 1 or key.args.kwonlyargs:
            rewriter.check.refuse(
                key, "a key is a function of one value", "write key=lambda x: ..."
            )
        return names[0], key.body
    if not isinstance(key, ast.Name | ast.Attribute):
        rewriter.check.refuse(
            key, "a key is a function by its name, or a lambda", "write key=lambda x: ..."
        )
    return item, ast.Call(key, [load(item)], [])


def made_of(rewriter: NativeRewriter, builtin: str, node: ast.Call) -> ast.expr:
    """``list(x)``, ``sorted(x)`` and the like."""
    if builtin == "sorted":
        return _sorted(rewriter, node)
    if builtin == "tuple":
        return _tuple_made(rewriter, node)
    rewriter.positional(node, builtin)
    arguments = [rewriter.visit(argument) for argument in node.args]
    if builtin == "reversed":
        return rewriter.core(local_list_methods.reversed_list, *arguments, at=node)
    if not arguments:
        return new(rewriter, builtin, node)
    if len(arguments) > 1:
        rewriter.check.refuse(node, f"{builtin} takes one value", f"write {builtin}(x)")
    made = {
        "list": local_list_methods.list_from,
        "dict": local_table_methods.dict_from,
        "set": local_table_methods.set_from,
    }
    return rewriter.make(made[builtin], *arguments, at=node)


def _tuple_made(rewriter: NativeRewriter, node: ast.Call) -> ast.expr:
    """``tuple(x)`` of what has so many values in the program itself."""
    given = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if given is None:
        rewriter.check.refuse(node, "tuple takes one value", "write (a, b), or tuple(x)")
    count = rewriter.lengths.of(given)
    return spread(rewriter, rewriter.visit(as_made(rewriter, given)), count, node)


def spread(
    rewriter: NativeRewriter,
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
    wanted = -1 if count is None else count
    arguments = (wanted, wanted if least is None else least, columns)
    constants = (constant(one, at) for one in arguments)
    return rewriter.make(unpacking.spread, value, *constants, at=at)


def _sorted(rewriter: NativeRewriter, node: ast.Call) -> ast.expr:
    if len(node.args) != 1:
        rewriter.check.refuse(node, "sorted takes one value", "write sorted(x)")
    made = rewriter.make(local_list_methods.list_from, rewriter.visit(node.args[0]), at=node)
    key, backwards = _sort_options(rewriter, node)
    if key is None:
        return rewriter.core(local_list_methods.list_sorted, made, backwards, at=node)
    return _sorted_by_keys(rewriter, made, key, backwards, node)


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
}
