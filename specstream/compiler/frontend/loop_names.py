"""One name for one use: what several loops or cases call the same gets names of its own.

A name says what a value depends on if it is assigned in one place. ``word`` is the target of one
loop and of the next, ``n`` is captured by two cases, ``word = word.strip()`` begins a loop's body:
each is a value of its own. As with names of inner scopes
(:mod:`specstream.compiler.frontend.scopes`), a number behind a middle dot is added, and nobody sees
it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator

__all__ = ["tell_apart"]

_FIRST = 1000  # inner scopes count from 1


def tell_apart(tree: ast.FunctionDef) -> None:
    """Gives names of their own to what stands in one loop or case of a function only.

    Two ways of writing are made one before. A loop over ``map(f, y)`` or over a generator, which
    call and compute at each turn, becomes a loop over y; and the sort of a list that was made the
    line before becomes ``sorted``, which strings of the event alone can be.
    """
    numbers = itertools.count(_FIRST)
    _Forms(numbers, tree).visit(tree)
    places = _Places(tree)
    for node in ast.walk(tree):
        for name in _stored(node.target) if isinstance(node, ast.For) else ():
            assert isinstance(node, ast.For)
            _tell_target_apart(node, name, places, numbers)
    places = _Places(tree)
    regions: dict[str, list[set[int]]] = {}
    for node in ast.walk(tree):
        for name in _own_of(node):
            inside = _nodes_of(node)
            regions.setdefault(name, []).append(
                {id(one) for one in places.of.get(name, ()) if id(one) in inside}
            )
    for name, found in regions.items():
        everywhere = {id(one) for one in places.of[name]}
        if len(found) < 2 or set().union(*found) != everywhere:
            continue
        if sum(map(len, found)) != len(everywhere):
            continue  # one lies in another
        if any(isinstance(one, ast.Global | ast.Nonlocal) for one in places.of[name]):
            continue
        for region in found:
            _rename(places, name, region, f"{name}·{next(numbers)}")


class _Forms(ast.NodeTransformer):
    """Brings loops over ``map``, and sorts, into the form that is understood."""

    def __init__(self, numbers: Iterator[int], tree: ast.AST) -> None:
        self.numbers = numbers
        self.names = _Places(tree).of

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        called = node.iter
        if isinstance(called, ast.GeneratorExp) and len(called.generators) == 1:
            (one,) = called.generators
            given = ast.copy_location(ast.Assign([node.target], called.elt), called)
            node.target, node.iter = one.target, one.iter
            body: list[ast.stmt] = [given, *node.body]
            if one.ifs:
                test = one.ifs[0] if len(one.ifs) == 1 else ast.BoolOp(ast.And(), one.ifs)
                body = [ast.If(test, body, [])]
            node.body = body
            return ast.fix_missing_locations(node)
        if (
            isinstance(called, ast.Call)
            and isinstance(called.func, ast.Name)
            and called.func.id == "map"
            and len(called.args) == 2
            and not called.keywords
            and not isinstance(called.args[0], ast.Constant)
            and not any(isinstance(one.ctx, ast.Store) for one in self.loads("map"))
        ):
            item = f"__ss_mapped_{next(self.numbers)}"
            function, iterated = called.args
            value = ast.Call(function, [ast.Name(item, ast.Load())], [])
            given = ast.copy_location(ast.Assign([node.target], value), called)
            node.target, node.iter = ast.Name(item, ast.Store()), iterated
            node.body.insert(0, given)
            ast.fix_missing_locations(node)
        return node

    def loads(self, name: str) -> list[ast.Name]:
        return [one for one in self.names.get(name, ()) if isinstance(one, ast.Name)]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            for at in range(len(block) - 1, 0, -1) if isinstance(block, list) else ():
                assert isinstance(block, list)
                made = _sort_in_assignment(block[at - 1], block[at])
                if made is not None:
                    block[at - 1 : at + 1] = [made]
        return node


def _sort_in_assignment(assigned: ast.stmt, sort: ast.stmt) -> ast.stmt | None:
    """Before loops' names are told apart: ``x = s.split()``, ``x.sort()`` as one statement."""
    if not (
        isinstance(assigned, ast.Assign)
        and len(assigned.targets) == 1
        and isinstance(assigned.targets[0], ast.Name)
        and isinstance(assigned.value, ast.Call)
        and isinstance(assigned.value.func, ast.Attribute)
        and assigned.value.func.attr in ("split", "rsplit", "splitlines", "findall")
        and isinstance(sort, ast.Expr)
        and isinstance(sort.value, ast.Call)
        and isinstance(sort.value.func, ast.Attribute)
        and sort.value.func.attr == "sort"
        and isinstance(sort.value.func.value, ast.Name)
        and sort.value.func.value.id == assigned.targets[0].id
        and not sort.value.args
    ):
        return None
    name = ast.copy_location(ast.Name("sorted", ast.Load()), sort)
    value = ast.Call(name, [assigned.value], sort.value.keywords)
    made = ast.Assign(assigned.targets, ast.copy_location(value, sort))
    return ast.copy_location(made, assigned)


class _Places:
    """The nodes that have a name in them."""

    def __init__(self, tree: ast.AST) -> None:
        self.of: dict[str, list[ast.AST]] = {}
        for node in ast.walk(tree):
            for name in _names_in(node):
                self.of.setdefault(name, []).append(node)


def _names_in(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Global | ast.Nonlocal):
        return node.names
    if isinstance(node, ast.arg):
        return [node.arg]
    name = getattr(node, "rest" if isinstance(node, ast.MatchMapping) else "name", None)
    return [name] if isinstance(name, str) else []


def _rename(places: _Places, name: str, which: set[int], new: str) -> None:
    for node in places.of[name]:
        if id(node) in which:
            field = "id" if isinstance(node, ast.Name) else "name"
            setattr(node, field, new)


def _nodes_of(node: ast.AST) -> set[int]:
    """What belongs to a loop or case: not what a loop goes through, nor its ``else``."""
    parts: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.For):
        parts = [node.target, *node.body]
    return {id(one) for part in parts for one in ast.walk(part)}


def _own_of(node: ast.AST) -> Iterator[str]:
    """Names that have a value of their own in a loop or case whenever it begins."""
    if isinstance(node, ast.match_case):
        yield from sorted(
            {
                part.name
                for part in ast.walk(node.pattern)
                if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name
            }
        )
    if isinstance(node, ast.For):
        targets = set(_stored(node.target))
        before: set[str] = set()
        for statement in node.body:
            if isinstance(statement, ast.Assign):
                before |= set(_names(statement.value))
                targets |= {
                    name for one in statement.targets for name in _stored(one) if name not in before
                }
            before |= set(_names(statement))
        yield from sorted(targets)


def _stored(target: ast.expr) -> Iterator[str]:
    for one in ast.walk(target):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one.id


def _names(node: ast.AST) -> Iterable[str]:
    return (name for one in ast.walk(node) for name in _names_in(one))


def _tell_target_apart(loop: ast.For, name: str, places: _Places, numbers: Iterator[int]) -> None:
    """Tells a loop's target apart from what its body calls the same: ``w = w.strip()``.

    In ``for w in words: w = w.strip()`` the target gets another name than what it becomes.
    """
    inside = _nodes_of(loop)
    everywhere = places.of[name]
    stores = [one for one in everywhere if not _is_load(one)]
    again = [
        at
        for at, statement in enumerate(loop.body)
        if isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == name
    ]
    inner = [one for one in stores if id(one) in inside]
    if not again or len(inner) != len(again) + 1:
        return
    if any(id(one) not in inside and _is_load(one) for one in everywhere):
        return  # what the loop leaves is read
    functions = [one for one in ast.walk(loop) if isinstance(one, ast.Lambda | ast.FunctionDef)]
    if any(name in _names(one) for one in functions):
        return  # what it is there is told when that is called
    begin: list[ast.AST] = [loop.target]
    for at, statement in enumerate(loop.body):
        if at in again:
            assert isinstance(statement, ast.Assign)
            _rename(places, name, _ids([*begin, statement.value]), f"{name}·{next(numbers)}")
            begin = [*statement.targets]
        else:
            begin.append(statement)
    _rename(places, name, _ids(begin), f"{name}·{next(numbers)}")
    places.of[name] = [one for one in everywhere if name in _names_in(one)]


def _ids(nodes: list[ast.AST]) -> set[int]:
    return {id(one) for node in nodes for one in ast.walk(node)}


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
