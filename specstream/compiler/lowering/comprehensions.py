"""Generators in the rewriting for Numba: a loop in a function of its own, which returns early.

``any(x > limit for x in state.a)`` becomes a call of ::

    def nested(run, iterable, limit):
        for x in iterable:
            if x > limit:
                return True
        return False

The first iterable is evaluated where the expression stands, before the other arguments, as in
Python. What a generator does is done between the items, so it may only stand where it is used up
at once.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from specstream.compiler.frontend.made_nodes import assign_name, at_place, load
from specstream.compiler.frontend.scopes import Comprehension, own_name
from specstream.compiler.frontend.try_and_raise import UntoldRaise
from specstream.compiler.language.builtin_functions import BUILTINS, READY
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter
from specstream.compiler.lowering.nested import call, captured, lift
from specstream.compiler.lowering.rewrite_local import (
    add,
    as_generator,
    as_made,
    key_of,
    new,
)
from specstream.compiler.lowering.starred_arguments import by_columns, name_starred

__all__ = ["CONSUMERS", "HANDLERS", "collected", "consume"]

CONSUMERS = {one.name: one.others for one in BUILTINS.values() if one.consumes}
"""Builtins that use an iterable up in one loop, and what else they take."""
# Builtins that make an iterator: what they are given is evaluated, and they are called inside.
_ITERATORS = (range, *(getattr(builtins, name) for name in READY))


@dataclass
class _Loop:
    """A comprehension on its way to a function.

    Attributes:
        outside: by the name of a parameter, what is evaluated where the expression stands.
        assigned: names of the enclosing function that ``:=`` assigns to inside.
    """

    generators: list[ast.comprehension]
    outside: dict[str, ast.expr] = field(default_factory=dict)
    assigned: list[str] = field(default_factory=list)

    def around(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body in all its loops and conditions."""
        for part in reversed(self.generators):
            for condition in reversed(part.ifs):
                body = [ast.If(condition, body, [])]
            body = [ast.For(part.target, part.iter, body, [])]
        return body

    def give(self, value: ast.expr) -> ast.stmt:
        """Returns a value, with what was assigned on the way."""
        if not self.assigned:
            return ast.Return(value)
        return ast.Return(ast.Tuple([value, *map(load, self.assigned)], ast.Load()))


def _refuse_generator(rewriter: NativeRewriter, node: ast.GeneratorExp) -> Any:
    rewriter.check.refuse(
        node,
        "a generator is not consumed where it is written",
        f"give it to {', '.join(CONSUMERS)}, sorted, list, set or dict, or write the loop out; "
        "what is assigned or passed on can be a list",
    )


def consume(rewriter: NativeRewriter, node: ast.Call, name: str) -> ast.expr | None:
    """A builtin over one iterable, as a loop; None: another form of it, not meant here."""
    node.args = [as_generator(rewriter, one) for one in node.args]
    is_keyed = any(one.arg == "key" for one in node.keywords)
    if len(node.args) > 1 and is_keyed and name in ("min", "max"):
        node.args = [ast.copy_location(ast.Tuple(node.args, ast.Load()), node)]
    is_next = name == "next"
    if not node.args or len(node.args) > (2 if name == "sum" or is_next else 1):
        if any(isinstance(one, ast.GeneratorExp) for one in node.args):
            takes = "one generator, and sum a start" if name == "sum" else "one generator"
            rewriter.check.refuse(node, f"{name} takes {takes}", "write one loop for each of them")
        return None
    if is_next and not isinstance(node.args[0], ast.GeneratorExp):
        rewriter.check.refuse(
            node,
            "next takes a generator that is written out",
            "write next((x for x in ... if ...), default); an operator has no other iterators",
        )
    if is_next and node.keywords:
        rewriter.check.refuse(node, "next takes no keyword", "give the default by position")
    iterable, is_plain = node.args[0], len(node.args) == 1 and not node.keywords
    is_generator = isinstance(iterable, ast.GeneratorExp)
    is_list = isinstance(iterable, ast.ListComp) and is_plain
    is_loop = is_generator or is_list or _iterator(rewriter, iterable) in (range, reversed)
    if not (is_loop or name in ("any", "all")) and is_plain:
        return None
    options = _options(rewriter, node, name)
    generators: list[ast.comprehension]
    item: ast.expr
    if isinstance(iterable, ast.GeneratorExp) or (is_list and isinstance(iterable, ast.ListComp)):
        generators = iterable.generators
        item = iterable.elt
    else:
        part = ast.comprehension(ast.Name("__ss_item", ast.Store()), iterable, [], 0)
        generators = [part]
        item = load("__ss_item")
    key = options.pop("key", None)
    given = dict(options)
    inside: dict[str, ast.expr] = {one: load(f"__ss_{one}") for one in options}
    start = given.get("start")
    if isinstance(start, ast.Constant):
        inside["start"] = given.pop("start")  # its type may depend on its value
    loop = _begin_loop(rewriter, node, generators, iterable, [item, *([key] if key else [])])
    loop.outside |= {f"__ss_{one}": value for one, value in given.items()}
    if name in ("any", "all"):
        body = _any_loop(loop, item, name == "any", is_list)
    elif is_next:
        body = _next_loop(loop, item, inside.get("default"))
    elif name == "sum":
        body = _sum_loop(loop, item, inside.get("start"))
    else:
        before, value = ([], None) if key is None else _key(rewriter, key)
        body = _extremum_loop(loop, item, name == "min", before, value, inside.get("default"))
    return _call_loop(rewriter, node, loop, body)


def _options(rewriter: NativeRewriter, node: ast.Call, name: str) -> dict[str, ast.expr]:
    given = dict(zip(CONSUMERS[name], node.args[1:], strict=False))
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg not in CONSUMERS[name] or keyword.arg in given:
            takes = " and ".join(f"{one}=" for one in CONSUMERS[name])
            rewriter.check.refuse(
                node,
                f"{name} takes no {keyword.arg!r} here",
                f"beside one iterable it takes {takes or 'nothing'}",
            )
        given[keyword.arg] = keyword.value
    return given


def _key(rewriter: NativeRewriter, key: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
    """What is done before the key of an item is computed, and the computation."""
    name, computed = key_of(rewriter, key, "__ss_value")
    if isinstance(key, ast.Lambda):
        return [assign_name(name, load("__ss_value"))], computed
    return [], ast.copy_location(computed, key)


def _comprehension(rewriter: NativeRewriter, node: ast.ListComp | ast.SetComp) -> ast.expr:
    kind = "list" if isinstance(node, ast.ListComp) else "set"
    return _collect(rewriter, node, kind, [node.elt])


def _dict_comprehension(rewriter: NativeRewriter, node: ast.DictComp) -> ast.expr:
    return _collect(rewriter, node, "dict", [node.key, node.value])


def collected(rewriter: NativeRewriter, node: ast.Call, builtin: str) -> ast.expr | None:
    """``list(...)``, ``set(...)`` or ``dict(...)`` of a generator; None: of something else."""
    given = as_generator(rewriter, node.args[0]) if len(node.args) == 1 else None
    if not isinstance(given, ast.GeneratorExp) or builtin == "tuple":
        return None
    if builtin == "sorted":
        node.args[0] = as_made(rewriter, given)
        return None
    if builtin == "dict":
        item = given.elt
        if not isinstance(item, ast.Tuple) or len(item.elts) != 2:
            rewriter.check.refuse(
                node,
                "dict() takes a generator of pairs that are written out",
                "write {key: value for ...}",
            )
        return _collect(rewriter, given, builtin, item.elts)
    return _collect(rewriter, given, builtin, [given.elt])


def _collect(
    rewriter: NativeRewriter, node: Comprehension, kind: str, values: list[ast.expr]
) -> ast.expr:
    loop = _begin_loop(rewriter, node, node.generators, node, values)
    made = ast.Assign([ast.Name("__ss_made", ast.Store())], new(rewriter, kind, node))
    added = ast.Expr(add(rewriter, kind, load("__ss_made"), *values, at=node))
    return _call_loop(
        rewriter, node, loop, [made, *loop.around([added]), loop.give(load("__ss_made"))]
    )


def _begin_loop(
    rewriter: NativeRewriter,
    at: ast.expr,
    generators: list[ast.comprehension],
    comprehension: ast.expr,
    inside: list[ast.expr],
) -> _Loop:
    """A loop, with its first iterable taken out."""
    loop = _Loop(copy.deepcopy(generators))
    if any(part.is_async for part in generators):
        rewriter.check.refuse(at, "async for cannot be compiled", "operators are plain functions")
    for part in loop.generators:
        read = [*inside, *part.ifs, *(one.iter for one in loop.generators)]
        part.iter = by_columns(rewriter, part.iter, part.target, read)
    first = loop.generators[0]
    first.iter = _taken_apart(rewriter, first.iter, loop.outside)
    parts: list[ast.AST] = [*loop.generators, *inside]
    loop.assigned = sorted({name for part in parts for name in _assigned_outside(part)})
    before: frozenset[str] = getattr(comprehension, "assigned_before", frozenset())
    for name in loop.assigned:
        if name not in before:
            rewriter.check.refuse(
                at,
                f"{name!r} may be undefined after this, because it is assigned inside a "
                "comprehension",
                f"assign {own_name(name)!r} before, or write the loop out",
            )
    return loop


def _iterator(rewriter: NativeRewriter, iterable: ast.expr) -> Any:
    """The builtin that gives what is gone through, or another global that is called."""
    if not isinstance(iterable, ast.Call) or not isinstance(iterable.func, ast.Name):
        return None
    name = iterable.func.id
    return None if name in rewriter.check.locals else rewriter.check.resolved.get(name)


def _taken_apart(
    rewriter: NativeRewriter, iterable: ast.expr, outside: dict[str, ast.expr]
) -> ast.expr:
    """An iterable inside of the function; what is evaluated before goes to ``outside``."""
    if isinstance(iterable, ast.Constant):
        return iterable
    if isinstance(iterable, ast.Call) and _iterator(rewriter, iterable) in _ITERATORS:
        if any(isinstance(one, ast.Starred) for one in iterable.args):
            name_starred(rewriter, iterable)
        arguments = [_taken_apart(rewriter, one, outside) for one in iterable.args]
        keywords = [
            ast.keyword(one.arg, _taken_apart(rewriter, one.value, outside))
            for one in iterable.keywords
        ]
        return ast.copy_location(ast.Call(iterable.func, arguments, keywords), iterable)
    name = f"__ss_iterable_{len(outside)}"
    outside[name] = iterable
    return ast.copy_location(load(name), iterable)


def _call_loop(
    rewriter: NativeRewriter, node: ast.expr, loop: _Loop, body: list[ast.stmt]
) -> ast.expr:
    for statement in body:
        at_place(statement, node)
    outside = captured(rewriter, body, set(loop.assigned))
    lifted = lift(rewriter, [*loop.outside, *outside], body, node)
    arguments = [rewriter.visit(value) for value in loop.outside.values()]
    called: ast.expr = call(rewriter, lifted, arguments, [], outside, node)
    if loop.assigned:
        called = _with_assigned(rewriter, called, loop.assigned)
    ast.copy_location(called, node)
    return ast.fix_missing_locations(called)


def _with_assigned(rewriter: NativeRewriter, call: ast.expr, names: Sequence[str]) -> ast.expr:
    """The first part of what a function gives; the others go to names."""
    given = rewriter.new_name("given")

    def part(at: int) -> ast.expr:
        return ast.Subscript(load(given), ast.Constant(at), ast.Load())

    steps: list[ast.expr] = [ast.NamedExpr(ast.Name(given, ast.Store()), call)]
    steps += [
        ast.NamedExpr(ast.Name(name, ast.Store()), part(at))
        for at, name in enumerate(names, start=1)
    ]
    steps.append(part(0))
    return ast.Subscript(ast.Tuple(steps, ast.Load()), ast.Constant(len(steps) - 1), ast.Load())


def _any_loop(loop: _Loop, item: ast.expr, found: bool, is_list: bool) -> list[ast.stmt]:
    """The loop of a generator in ``any``, or ``all`` of the opposite, for its own function.

    A list is made whole before."""
    test = item if found else ast.UnaryOp(ast.Not(), item)
    if not is_list:
        inner = ast.If(test, [loop.give(ast.Constant(found))], [])
        return [*loop.around([inner]), loop.give(ast.Constant(not found))]
    inner = ast.If(test, [assign_name("__ss_found", ast.Constant(found))], [])
    before = assign_name("__ss_found", ast.Constant(not found))
    return [before, *loop.around([inner]), loop.give(load("__ss_found"))]


def _next_loop(loop: _Loop, item: ast.expr, default: ast.expr | None) -> list[ast.stmt]:
    """The loop of a generator in ``next``, for its own function: returns the first item."""
    missing: ast.stmt = UntoldRaise(ast.Call(load("StopIteration"), [], []), None)
    return [*loop.around([loop.give(item)]), missing if default is None else loop.give(default)]


def _sum_loop(loop: _Loop, item: ast.expr, start: ast.expr | None) -> list[ast.stmt]:
    # A literal that begins a sum of floats is a float, by the name (see pipeline.py).
    is_literal = start is None or isinstance(start, ast.Constant)
    total = "__ss_total" if is_literal else "__ss_sum"
    added = assign_name(total, ast.BinOp(load(total), ast.Add(), item))
    before = assign_name(total, start or ast.Constant(0))
    return [before, *loop.around([added]), loop.give(load(total))]


def _extremum_loop(
    loop: _Loop,
    item: ast.expr,
    is_least: bool,
    before_key: list[ast.stmt],
    key: ast.expr | None,
    default: ast.expr | None,
) -> list[ast.stmt]:
    """The loop of a generator in ``min`` or ``max``, for its own function.

    It gives the first of the least or greatest items."""
    compared = "__ss_value" if key is None else "__ss_key"
    best = "__ss_best" if key is None else "__ss_best_key"
    wins = ast.Compare(load(compared), [ast.Lt() if is_least else ast.Gt()], [load(best)])

    def taken() -> list[ast.stmt]:
        kept_key = [] if key is None else [assign_name(best, load(compared))]
        return [assign_name("__ss_best", load("__ss_value")), *kept_key]

    first = [*taken(), assign_name("__ss_found", ast.Constant(True))]
    is_first = ast.UnaryOp(ast.Not(), load("__ss_found"))
    choice = ast.If(is_first, first, [ast.If(wins, taken(), [])])
    keyed = [] if key is None else [*before_key, assign_name("__ss_key", key)]
    inner = [assign_name("__ss_value", item), *keyed, choice]
    missing: ast.stmt = UntoldRaise(
        ast.Call(load("ValueError"), [ast.Constant("an empty iterable")], []), None
    )
    if default is not None:
        missing = loop.give(default)
    return [
        assign_name("__ss_found", ast.Constant(False)),
        *loop.around(inner),
        ast.If(load("__ss_found"), [loop.give(load("__ss_best"))], []),
        missing,
    ]


def _assigned_outside(node: ast.AST) -> set[str]:
    """Names that ``:=`` gives values to in a comprehension; its own function returns these.

    They are names of the function around it."""
    if isinstance(node, ast.Lambda):
        return set()
    own = {node.target.id} if isinstance(node, ast.NamedExpr) else set()
    return own.union(*map(_assigned_outside, ast.iter_child_nodes(node)))


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.GeneratorExp: _refuse_generator,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _dict_comprehension,
}
