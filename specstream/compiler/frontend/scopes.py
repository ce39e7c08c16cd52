"""One name for one variable: what an inner scope calls like something outside of it is renamed.

A nested function, a lambda and a comprehension have names of their own. Everything that looks at an
operator's names takes a function as one scope, and so may, after this: where a name means different
things in one function, the inner ones are told apart by a number behind a middle dot, which no user
writes. The oracle gets the user's own names back, and so do messages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

__all__ = [
    "COMPREHENSIONS",
    "Comprehension",
    "bound_names",
    "own_name",
    "own_names",
    "repeated",
    "separate",
    "version_name",
]

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_NUMBERED = re.compile(r"__ss_(?=\w*·0)|·\d+")
_VERSION = re.compile(r"·v\d+")
# Where a node keeps a name as a string, and binds it.
_STRINGS: dict[type[ast.AST], str] = {
    ast.arg: "arg",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.ExceptHandler: "name",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
}


def own_name(name: str) -> str:
    """A name as the user wrote it, or a message with such names.

    >>> own_name("total·2")
    'total'
    """
    return _VERSION.sub("", _NUMBERED.sub("", name))


def version_name(name: str, number: int) -> str:
    """The name of a function that is there several times in one scope, which the oracle keeps."""
    return f"{name}·v{number}"


def own_names(tree: ast.AST) -> None:
    """Gives a tree the user's names back, but for versions of functions."""
    for node in ast.walk(tree):
        field = _name_field(node)
        if field is not None and getattr(node, field) is not None:
            setattr(node, field, _NUMBERED.sub("", getattr(node, field)))


def bound_names(tree: ast.AST) -> set[str]:
    """Every name that something in a tree gives a value to, in whatever scope."""
    return {
        getattr(node, field)
        for node in ast.walk(tree)
        if (field := _name_field(node)) is not None
        and not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        and getattr(node, field) is not None
    }


def _name_field(node: ast.AST) -> str | None:
    return "id" if isinstance(node, ast.Name) else _STRINGS.get(type(node))


class _Scope:
    """One scope: names that it binds, and each place where it has a name."""

    def __init__(self, outer: _Scope | None, is_function: bool) -> None:
        self.outer = outer
        self.is_function = is_function
        self.bound: set[str] = set()
        self.places: list[tuple[ast.AST, str]] = []

    def owner(self, name: str) -> _Scope | None:
        """The scope that a name belongs to from here; None: it is a global."""
        if name in self.bound:
            return self
        return None if self.outer is None else self.outer.owner(name)


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.scopes: list[_Scope] = []
        self.scope: Any = None

    def enter(self, is_function: bool) -> _Scope:
        before: _Scope = self.scope
        self.scope = _Scope(before, is_function)
        self.scopes.append(self.scope)
        return before

    def place(self, node: ast.AST, name: str | None, binds: bool) -> None:
        if name is not None:
            self.scope.places.append((node, name))
            if binds:
                self.scope.bound.add(name)

    def visit_Name(self, node: ast.Name) -> None:
        self.place(node, node.id, not isinstance(node.ctx, ast.Load))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        inside = self.scope
        while not self.scope.is_function:  # a comprehension binds outside of itself
            self.scope = self.scope.outer
        self.visit(node.target)
        self.scope = inside

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        if self.scope is not None:
            for default in (*arguments.defaults, *arguments.kw_defaults):
                if default is not None:
                    self.visit(default)
            if not isinstance(node, ast.Lambda):
                self.place(node, node.name, True)
                node.returns = None
        before = self.enter(True)
        for parameter in ast.walk(arguments):
            if isinstance(parameter, ast.arg):
                parameter.annotation = None
                self.place(parameter, parameter.arg, True)
        for part in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(part)
        self.scope = before

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def comprehension(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)
        before = self.enter(False)
        for number, part in enumerate(node.generators):
            self.visit(part.target)
            if number:
                self.visit(part.iter)
            for condition in part.ifs:
                self.visit(condition)
        for value in _values(node):
            self.visit(value)
        self.scope = before

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # Python evaluates no annotation inside a function. What is lifted has its type of it, and
        # an empty list, dict or set what it is to hold.
        node.declared = node.annotation  # type: ignore[attr-defined]
        node.said = ast.unparse(node.annotation)  # type: ignore[attr-defined]
        node.annotation = ast.copy_location(ast.Constant(0), node)
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        field = _STRINGS.get(type(node))
        if field is not None:
            self.place(node, getattr(node, field), True)
        super().generic_visit(node)


def _values(node: Comprehension) -> Iterator[ast.expr]:
    if isinstance(node, ast.DictComp):
        yield node.key
        yield node.value
    else:
        yield node.elt


def separate(tree: ast.FunctionDef) -> None:
    """Renames what inner scopes of a function call like something outside; drops annotations, but
    for those of assignments, which are ``declared``."""
    finder = _Finder()
    finder.visit(tree)
    owners: dict[str, list[_Scope | None]] = {}
    places: dict[tuple[str, _Scope | None], list[ast.AST]] = {}
    for scope in finder.scopes:
        for node, name in scope.places:
            owner = scope.owner(name)
            known = owners.setdefault(name, [])
            if owner not in known:
                known.append(owner)
            places.setdefault((name, owner), []).append(node)
    outermost = (None, finder.scopes[0])
    for name, found in owners.items():
        found.sort(key=lambda owner: owner not in outermost)
        for number, owner in enumerate(found[1:], start=2):
            for node in places[name, owner]:
                setattr(node, str(_name_field(node)), f"{name}·{number}")


def repeated(node: ast.AST) -> set[int]:
    """What may run several times while a node runs once, as an inner scope or a loop does.

    The nodes below it, by their ids.
    """
    parts: list[ast.AST] = []
    if isinstance(node, ast.For):
        parts = [*node.body]
    elif isinstance(node, ast.While):
        parts = [node.test, *node.body]
    elif isinstance(node, ast.Lambda):
        parts = [node.body]
    elif isinstance(node, COMPREHENSIONS):
        once = set(map(id, ast.walk(node.generators[0].iter)))
        return set(map(id, ast.walk(node))) - once
    return {id(one) for part in parts for one in ast.walk(part)}
