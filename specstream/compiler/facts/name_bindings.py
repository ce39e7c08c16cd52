"""The names of a function: which are local, what each is assigned, and what globals stand for.

A name that a ``match`` pattern captures is bound to the part of the subject at that position, if
the subject is written out. Captures at one position in several cases count as one assignment.
"""

from __future__ import annotations

import ast
import builtins
import copy
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from specstream.compiler.facts.fact import Binding
from specstream.compiler.language import standard_library
from specstream.compiler.language.standard_library import PREFIX

__all__ = ["MISSING", "as_now", "bindings_of", "declared_type", "look_up"]

MISSING = object()


def look_up(function: types.FunctionType, name: str) -> Any:
    """The binding of a name that is not local to a function: by its closure, or as a global.

    MISSING: nothing."""
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING
    if name.startswith(PREFIX):
        return getattr(standard_library, name.removeprefix(PREFIX))
    return function.__globals__.get(name, getattr(builtins, name, MISSING))


def as_now(value: Any) -> Any:
    """The value that a global name is bound to now; a copy, where that may be changed later."""
    is_changing = isinstance(value, list | dict | set | bytearray | np.ndarray)
    return copy.deepcopy(value) if is_changing else value


def bindings_of(
    tree: ast.FunctionDef,
) -> tuple[frozenset[str], dict[str, Binding], dict[str, list[Binding]]]:
    """The local names, of those that are assigned in one place only what they are given, and all
    that others are."""
    counts: dict[str, int] = {}
    places: dict[str, list[Binding]] = {}

    def place(name: str, binding: Binding) -> None:
        places.setdefault(name, []).append(binding)

    def count(name: str | None) -> None:
        if name is not None:
            counts[name] = counts.get(name, 0) + 1

    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            count(node.id)
        elif isinstance(node, ast.arg):
            count(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs):
            count(None if node is tree else node.name)
        elif isinstance(node, ast.MatchStar):
            count(node.name)
        elif isinstance(node, ast.MatchMapping):
            count(node.rest)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            counts |= dict.fromkeys(node.names, 2)
    for node in _outer(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    place(target.id, Binding(node.value))
                elif isinstance(target, ast.Tuple | ast.List):
                    _bind_parts(target.elts, node.value, place)
        elif isinstance(node, ast.For):
            if isinstance(node.target, ast.Name):
                place(node.target.id, Binding(node.iter, loop=node))
            elif isinstance(node.target, ast.Tuple):
                for at, part in enumerate(node.target.elts):
                    if isinstance(part, ast.Name):
                        count_of = (at, len(node.target.elts))
                        place(part.id, Binding(node.iter, at=count_of, loop=node))
        elif isinstance(node, ast.Match):
            for case in node.cases:
                for name_of, value in _bindings_in_pattern(case.pattern, node.subject):
                    place(name_of, Binding(value))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None:
                place(node.target.id, Binding(node.value, declared_type(node)))
        elif isinstance(node, ast.NamedExpr):
            place(node.target.id, Binding(node.value))
    single = {
        name: given[0]
        for name, given in places.items()
        if counts.get(name) == len(given) and all(one == given[0] for one in given)
    }
    return frozenset(counts), single, places


def _bind_parts(
    targets: list[ast.expr], value: ast.expr, place: Callable[[str, Binding], None]
) -> None:
    """Binds the names of ``a, b = value``, each to its part of the value."""
    stars = [at for at, one in enumerate(targets) if isinstance(one, ast.Starred)]
    parts = [one.value if isinstance(one, ast.Starred) else one for one in targets]
    if all(isinstance(one, ast.Name) for one in parts):
        for at, one in enumerate(parts):
            assert isinstance(one, ast.Name)
            place(one.id, Binding(value, None, (at, len(parts)), stars[0] if stars else None))


def _bindings_in_pattern(pattern: ast.pattern, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Bindings of the names in a ``match`` pattern: each to its part of the subject."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.name is not None:
            yield pattern.name, value
        if pattern.pattern is not None:
            yield from _bindings_in_pattern(pattern.pattern, value)
    if isinstance(pattern, ast.MatchOr):
        for alternative in pattern.patterns:
            yield from _bindings_in_pattern(alternative, value)
    if not isinstance(pattern, ast.MatchSequence):
        return
    parts = pattern.patterns
    stars = [at for at, part in enumerate(parts) if isinstance(part, ast.MatchStar)]
    for at, part in enumerate(parts):
        place: ast.expr = ast.Constant(at if not stars or at <= stars[0] else at - len(parts))
        if isinstance(part, ast.MatchStar):
            behind = at + 1 - len(parts)
            end = ast.UnaryOp(ast.USub(), ast.Constant(-behind)) if behind else None
            place = ast.Slice(place, end)
        written = value.elts if isinstance(value, ast.Tuple) and not stars else []
        item = (
            written[at]
            if len(written) == len(parts)
            else ast.copy_location(ast.Subscript(value, place, ast.Load()), value)
        )
        for one in ast.walk(place):
            ast.copy_location(one, value)
        if isinstance(part, ast.MatchStar):
            if part.name is not None:
                yield part.name, item
        else:
            yield from _bindings_in_pattern(part, item)


def declared_type(node: ast.AnnAssign) -> ast.expr:
    """The annotation with which a name is bound, ``name: int = 0``, as it was written."""
    written: ast.expr = getattr(node, "declared", node.annotation)
    return written


def _outer(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without those of functions inside and of what has names of its own."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from _outer(child)
