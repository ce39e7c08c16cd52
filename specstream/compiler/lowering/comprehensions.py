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
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from specstream.compiler.frontend.scopes import Comprehension, own_name
from specstream.compiler.frontend.try_and_raise import UntoldRaise
from specstream.compiler.language.builtin_functions import BUILTINS, READY
from specstream.compiler.lowering.nested import NestedFunctions
from specstream.compiler.lowering.rewrite_local import LocalContainers

__all__ = ["CONSUMERS", "Comprehensions"]

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
        return ast.Return(ast.Tuple([value, *map(_load, self.assigned)], ast.Load()))


class Comprehensions(NestedFunctions, LocalContainers):
    """What the native rewriting does with generators and comprehensions."""

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        self.check.refuse(
            node,
            "a generator is not consumed where it is written",
            f"give it to {', '.join(CONSUMERS)}, sorted, list, set or dict, or write the loop out; "
            "what is assigned or passed on can be a list",
        )

    def consume(self, node: ast.Call, name: str) -> ast.expr | None:
        """A builtin over one iterable, as a loop; None: another form of it, not meant here."""
        node.args = [self.as_generator(one) for one in node.args]
        is_keyed = any(one.arg == "key" for one in node.keywords)
        if len(node.args) > 1 and is_keyed and name in ("min", "max"):
            node.args = [ast.copy_location(ast.Tuple(node.args, ast.Load()), node)]
        is_next = name == "next"
        if not node.args or len(node.args) > (2 if name == "sum" or is_next else 1):
            if any(isinstance(one, ast.GeneratorExp) for one in node.args):
                takes = "one generator, and sum a start" if name == "sum" else "one generator"
                self.check.refuse(node, f"{name} takes {takes}", "write one loop for each of them")
            return None
        if is_next and not isinstance(node.args[0], ast.GeneratorExp):
            self.check.refuse(
                node,
                "next takes a generator that is written out",
                "write next((x for x in ... if ...), default); an operator has no other iterators",
            )
        if is_next and node.keywords:
            self.check.refuse(node, "next takes no keyword", "give the default by position")
        iterable, is_plain = node.args[0], len(node.args) == 1 and not node.keywords
        is_generator = isinstance(iterable, ast.GeneratorExp)
        is_list = isinstance(iterable, ast.ListComp) and is_plain
        is_loop = is_generator or is_list or self.iterator(iterable) in (range, reversed)
        if not (is_loop or name in ("any", "all")) and is_plain:
            return None
        options = self.options(node, name)
        generators: list[ast.comprehension]
        item: ast.expr
        if isinstance(iterable, ast.GeneratorExp) or (
            is_list and isinstance(iterable, ast.ListComp)
        ):
            generators = iterable.generators
            item = iterable.elt
        else:
            part = ast.comprehension(ast.Name("__ss_item", ast.Store()), iterable, [], 0)
            generators = [part]
            item = _load("__ss_item")
        key = options.pop("key", None)
        given = dict(options)
        inside: dict[str, ast.expr] = {one: _load(f"__ss_{one}") for one in options}
        start = given.get("start")
        if isinstance(start, ast.Constant):
            inside["start"] = given.pop("start")  # its type may depend on its value
        loop = self.begin_loop(node, generators, iterable, [item, *([key] if key else [])])
        loop.outside |= {f"__ss_{one}": value for one, value in given.items()}
        if name in ("any", "all"):
            body = _any_loop(loop, item, name == "any", is_list)
        elif is_next:
            body = _next_loop(loop, item, inside.get("default"))
        elif name == "sum":
            body = _sum_loop(loop, item, inside.get("start"))
        else:
            before, value = ([], None) if key is None else self.key(key)
            body = _extremum_loop(loop, item, name == "min", before, value, inside.get("default"))
        return self.call_loop(node, loop, body)

    def options(self, node: ast.Call, name: str) -> dict[str, ast.expr]:
        given = dict(zip(CONSUMERS[name], node.args[1:], strict=False))
        for keyword in node.keywords:
            assert keyword.arg is not None
            if keyword.arg not in CONSUMERS[name] or keyword.arg in given:
                takes = " and ".join(f"{one}=" for one in CONSUMERS[name])
                self.check.refuse(
                    node,
                    f"{name} takes no {keyword.arg!r} here",
                    f"beside one iterable it takes {takes or 'nothing'}",
                )
            given[keyword.arg] = keyword.value
        return given

    def key(self, key: ast.expr) -> tuple[list[ast.stmt], ast.expr | None]:
        """What is done before the key of an item is computed, and the computation."""
        item = _load("__ss_value")
        if isinstance(key, ast.Lambda):
            names = [one.arg for one in (*key.args.posonlyargs, *key.args.args)]
            if len(names) != 1 or key.args.kwonlyargs:
                self.check.refuse(
                    key, "a key is a function of one value", "write key=lambda x: ..."
                )
            return [ast.Assign([ast.Name(names[0], ast.Store())], item)], key.body
        if not isinstance(key, ast.Name | ast.Attribute):
            self.check.refuse(
                key, "a key is a function by its name, or a lambda", "write key=lambda x: ..."
            )
        return [], ast.copy_location(ast.Call(key, [item], []), key)

    # ---- loops as functions ----

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return self.collect(node, "list", [node.elt])

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        return self.collect(node, "set", [node.elt])

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        return self.collect(node, "dict", [node.key, node.value])

    def collected(self, node: ast.Call, builtin: str) -> ast.expr | None:
        """``list(...)``, ``set(...)`` or ``dict(...)`` of a generator; None: of something else."""
        given = self.as_generator(node.args[0]) if len(node.args) == 1 else None
        if not isinstance(given, ast.GeneratorExp) or builtin == "tuple":
            return None
        if builtin == "sorted":
            node.args[0] = self.as_made(given)
            return None
        if builtin == "dict":
            item = given.elt
            if not isinstance(item, ast.Tuple) or len(item.elts) != 2:
                self.check.refuse(
                    node,
                    "dict() takes a generator of pairs that are written out",
                    "write {key: value for ...}",
                )
            return self.collect(given, builtin, item.elts)
        return self.collect(given, builtin, [given.elt])

    def collect(self, node: Comprehension, kind: str, values: list[ast.expr]) -> ast.expr:
        loop = self.begin_loop(node, node.generators, node, values)
        made = ast.Assign([ast.Name("__ss_made", ast.Store())], self.new(kind, node))
        added = ast.Expr(self.add(kind, _load("__ss_made"), *values, at=node))
        return self.call_loop(
            node, loop, [made, *loop.around([added]), loop.give(_load("__ss_made"))]
        )

    def begin_loop(
        self,
        at: ast.expr,
        generators: list[ast.comprehension],
        comprehension: ast.expr,
        inside: list[ast.expr],
    ) -> _Loop:
        """A loop, with its first iterable taken out."""
        loop = _Loop(copy.deepcopy(generators))
        if any(part.is_async for part in generators):
            self.check.refuse(at, "async for cannot be compiled", "operators are plain functions")
        for part in loop.generators:
            read = [*inside, *part.ifs, *(one.iter for one in loop.generators)]
            part.iter = self.by_columns(part.iter, part.target, read)
        first = loop.generators[0]
        first.iter = self.taken_apart(first.iter, loop.outside)
        parts: list[ast.AST] = [*loop.generators, *inside]
        loop.assigned = sorted({name for part in parts for name in _assigned_outside(part)})
        before: frozenset[str] = getattr(comprehension, "assigned_before", frozenset())
        for name in loop.assigned:
            if name not in before:
                self.check.refuse(
                    at,
                    f"{name!r} may be undefined after this, because it is assigned inside a "
                    "comprehension",
                    f"assign {own_name(name)!r} before, or write the loop out",
                )
        return loop

    @abstractmethod
    def name_starred(self, node: ast.Call) -> None:
        """Each value of what has a star in a call, by itself."""

    def iterator(self, iterable: ast.expr) -> Any:
        """The builtin that gives what is gone through, or another global that is called."""
        if not isinstance(iterable, ast.Call) or not isinstance(iterable.func, ast.Name):
            return None
        name = iterable.func.id
        return None if name in self.check.locals else self.check.resolved.get(name)

    def taken_apart(self, iterable: ast.expr, outside: dict[str, ast.expr]) -> ast.expr:
        """An iterable inside of the function; what is evaluated before goes to ``outside``."""
        if isinstance(iterable, ast.Constant):
            return iterable
        if isinstance(iterable, ast.Call) and self.iterator(iterable) in _ITERATORS:
            if any(isinstance(one, ast.Starred) for one in iterable.args):
                self.name_starred(iterable)
            arguments = [self.taken_apart(one, outside) for one in iterable.args]
            keywords = [
                ast.keyword(one.arg, self.taken_apart(one.value, outside))
                for one in iterable.keywords
            ]
            return ast.copy_location(ast.Call(iterable.func, arguments, keywords), iterable)
        name = f"__ss_iterable_{len(outside)}"
        outside[name] = iterable
        return ast.copy_location(_load(name), iterable)

    def call_loop(self, node: ast.expr, loop: _Loop, body: list[ast.stmt]) -> ast.expr:
        for statement in body:
            for part in ast.walk(statement):
                if not hasattr(part, "lineno"):
                    ast.copy_location(part, node)
        captured = self.captured(body, set(loop.assigned))
        lifted = self.lift([*loop.outside, *captured], body, node)
        arguments = [self.visit(value) for value in loop.outside.values()]
        call: ast.expr = self.call(lifted, arguments, [], captured, node)
        if loop.assigned:
            call = self.with_assigned(call, loop.assigned)
        ast.copy_location(call, node)
        return ast.fix_missing_locations(call)

    def with_assigned(self, call: ast.expr, names: Sequence[str]) -> ast.expr:
        """The first part of what a function gives; the others go to names."""
        given = self.new_name("given")

        def part(at: int) -> ast.expr:
            return ast.Subscript(_load(given), ast.Constant(at), ast.Load())

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
    inner = ast.If(test, [_assign("__ss_found", ast.Constant(found))], [])
    before = _assign("__ss_found", ast.Constant(not found))
    return [before, *loop.around([inner]), loop.give(_load("__ss_found"))]


def _next_loop(loop: _Loop, item: ast.expr, default: ast.expr | None) -> list[ast.stmt]:
    """The loop of a generator in ``next``, for its own function: returns the first item."""
    missing: ast.stmt = UntoldRaise(ast.Call(_load("StopIteration"), [], []), None)
    return [*loop.around([loop.give(item)]), missing if default is None else loop.give(default)]


def _sum_loop(loop: _Loop, item: ast.expr, start: ast.expr | None) -> list[ast.stmt]:
    # A literal that begins a sum of floats is a float, by the name (see pipeline.py).
    is_literal = start is None or isinstance(start, ast.Constant)
    total = "__ss_total" if is_literal else "__ss_sum"
    added = _assign(total, ast.BinOp(_load(total), ast.Add(), item))
    before = _assign(total, start or ast.Constant(0))
    return [before, *loop.around([added]), loop.give(_load(total))]


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
    wins = ast.Compare(_load(compared), [ast.Lt() if is_least else ast.Gt()], [_load(best)])

    def taken() -> list[ast.stmt]:
        kept_key = [] if key is None else [_assign(best, _load(compared))]
        return [_assign("__ss_best", _load("__ss_value")), *kept_key]

    first = [*taken(), _assign("__ss_found", ast.Constant(True))]
    is_first = ast.UnaryOp(ast.Not(), _load("__ss_found"))
    choice = ast.If(is_first, first, [ast.If(wins, taken(), [])])
    keyed = [] if key is None else [*before_key, _assign("__ss_key", key)]
    inner = [_assign("__ss_value", item), *keyed, choice]
    missing: ast.stmt = UntoldRaise(
        ast.Call(_load("ValueError"), [ast.Constant("an empty iterable")], []), None
    )
    if default is not None:
        missing = loop.give(default)
    return [
        _assign("__ss_found", ast.Constant(False)),
        *loop.around(inner),
        ast.If(_load("__ss_found"), [loop.give(_load("__ss_best"))], []),
        missing,
    ]


def _assigned_outside(node: ast.AST) -> set[str]:
    """Names that ``:=`` gives values to in a comprehension; its own function returns these.

    They are names of the function around it."""
    if isinstance(node, ast.Lambda):
        return set()
    own = {node.target.id} if isinstance(node, ast.NamedExpr) else set()
    return own.union(*map(_assigned_outside, ast.iter_child_nodes(node)))


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())
