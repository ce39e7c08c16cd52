"""The names of a function: which are local, and what those hold that are assigned in one place.

A name that a pattern captures is assigned what stands there in the subject of its ``match``, if
that is written out: in several cases it is the same place.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from specstream.compiler import standard_library
from specstream.compiler.standard_library import PREFIX

__all__ = ["MISSING", "Binding", "bindings_of", "declared_type", "look_up"]

MISSING = object()


@dataclass(frozen=True)
class Binding:
    """The one place where a name is assigned.

    Attributes:
        value: what is assigned.
        annotation: its declared type.
        at: which element of the value, of so many; None: the value itself.
    """

    value: ast.expr
    annotation: ast.expr | None = None
    at: tuple[int, int] | None = None


def look_up(function: types.FunctionType, name: str) -> Any:
    """What a name that is not local stands for in a function; MISSING: nothing."""
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING
    if name.startswith(PREFIX):
        return getattr(standard_library, name.removeprefix(PREFIX))
    return function.__globals__.get(name, getattr(builtins, name, MISSING))


def bindings_of(tree: ast.FunctionDef) -> tuple[frozenset[str], dict[str, Binding]]:
    """The local names, and of those that are assigned in one place only what they are given."""
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
                    names = [one for one in target.elts if isinstance(one, ast.Name)]
                    if len(names) == len(target.elts):
                        for at, name in enumerate(names):
                            place(name.id, Binding(node.value, None, (at, len(names))))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None:
                place(node.target.id, Binding(node.value, declared_type(node)))
        elif isinstance(node, ast.NamedExpr):
            place(node.target.id, Binding(node.value))
        elif isinstance(node, ast.Match):
            for case in node.cases:
                for captured, value in _captures(case.pattern, node.subject):
                    place(captured, Binding(value))
    single = {
        name: given[0]
        for name, given in places.items()
        if counts.get(name) == len(given) and all(one == given[0] for one in given)
    }
    return frozenset(counts), single


def _captures(pattern: ast.pattern, subject: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that a pattern captures, and the parts of the subject that they are."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.name is not None:
            yield pattern.name, subject
        if pattern.pattern is not None:
            yield from _captures(pattern.pattern, subject)
    elif isinstance(pattern, ast.MatchOr):
        for one in pattern.patterns:
            yield from _captures(one, subject)
    elif isinstance(pattern, ast.MatchSequence) and isinstance(subject, ast.Tuple):
        starred = any(isinstance(one, ast.MatchStar) for one in pattern.patterns)
        if not starred and len(pattern.patterns) == len(subject.elts):
            for one, part in zip(pattern.patterns, subject.elts, strict=True):
                yield from _captures(one, part)


def declared_type(node: ast.AnnAssign) -> ast.expr:
    """The annotation of an assignment, as it was written."""
    written: ast.expr = getattr(node, "declared", node.annotation)
    return written


def _outer(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without those of functions inside and of what has names of its own."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from _outer(child)
