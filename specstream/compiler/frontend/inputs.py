"""Events of an operator that has several inputs: one column for each column of each input.

``event.fast.mean`` is the column ``fast.mean``, ``event.changed("fast")`` the bool column
``changed.fast``, and ``event.known("fast")`` is ``known.fast``; no user can declare such names.
That happens to the syntax tree before anything else is done with it, so that all behind it knows
events with columns only. Which names are the event, in the operator's function and in those that it
hands the event to, is told from the calls.
"""

from __future__ import annotations

import ast
import types
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NoReturn

from specstream.compiler.frontend.signatures import parameters_of
from specstream.compiler.frontend.try_and_raise import named_value
from specstream.compiler.language.hints import names_it_has
from specstream.declarations.schema import EVENT_ATTRIBUTES, Column, Schema

__all__ = ["ASKED", "Events", "column_of", "flatten", "flattened"]

ASKED = ("changed", "known")
"""What an event tells of an input: whether this run has a row of it; whether it ever had one."""

_BOOL = Schema.of({"x": bool}, "event").columns[0]

Refuse = Callable[[ast.AST, str, str], NoReturn]
Scope = ast.FunctionDef | ast.Lambda


def column_of(name: str, of: str) -> str:
    """The column of the event that a column of an input is, or what an event tells of the input.

    >>> column_of("fast", "mean"), column_of("changed", "fast")
    ('fast.mean', 'changed.fast')
    """
    return f"{name}.{of}"


def flattened(inputs: Mapping[str, Schema]) -> Schema:
    """The columns of the event."""
    columns: dict[str, Column] = {}
    for name, schema in inputs.items():
        columns |= {column_of(name, one): column for one, column in schema}
    for asked in ASKED:
        columns |= {column_of(asked, name): _BOOL for name in inputs}
    return Schema(tuple(columns), tuple(columns.values()))


class Events:
    """Which parameters are the event, of an operator's function and of what it hands the event to.

    Args:
        function: the operator's.
        event: its parameter.
        tree_of: the syntax tree of a function; None: it cannot be read.
    """

    def __init__(
        self,
        function: types.FunctionType,
        event: str,
        tree_of: Callable[[types.FunctionType], ast.FunctionDef | None],
    ) -> None:
        self._given: dict[types.FunctionType, set[str]] = defaultdict(set)
        self._given[function] = {event}
        waiting = [function]
        while waiting:
            one = waiting.pop()
            tree = tree_of(one)
            if tree is None:
                continue
            for called, name in self.names(one, tree).handed_on:
                if name not in self._given[called]:
                    self._given[called].add(name)
                    waiting.append(called)

    def names(self, function: types.FunctionType, tree: ast.FunctionDef) -> _Names:
        """The names that are the event in a function."""
        return _Names(function, tree, self._given.get(function, set()))


class _Names:
    """The names that are the event in a function and in those inside of it.

    Attributes:
        of: the names, by the function.
        handed_on: other functions that get the event, and by which parameter.
    """

    def __init__(
        self, function: types.FunctionType, tree: ast.FunctionDef, given: set[str]
    ) -> None:
        self.of: dict[Scope, set[str]] = {tree: given}
        self.handed_on: set[tuple[types.FunctionType, str]] = set()
        self._function = function
        self._inside = {
            name: inner
            for one in ast.walk(tree)
            if one is not tree
            for name, inner in _inner_function(one).items()
        }
        if given:
            before = -1
            while before != (before := sum(map(len, self.of.values()))):
                self._scope(tree, set())

    def _scope(self, scope: Scope, outer: set[str]) -> None:
        names = self.of.setdefault(scope, set())
        own = set(parameters_of(scope.args).names)
        names |= outer - own
        inner: list[Scope] = []
        waiting: list[ast.AST] = [scope.body] if isinstance(scope, ast.Lambda) else [*scope.body]
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, Scope):
                inner.append(node)
                continue
            if isinstance(node, ast.Assign) and _is_one_of(node.value, names):
                names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
            elif isinstance(node, ast.Call):
                self._call(node, names)
            waiting += ast.iter_child_nodes(node)
        for one in inner:
            self._scope(one, names)

    def _call(self, node: ast.Call, names: set[str]) -> None:
        at = [place for place, one in enumerate(node.args) if _is_one_of(one, names)]
        by_name = {one.arg for one in node.keywords if one.arg and _is_one_of(one.value, names)}
        if not (at or by_name):
            return
        inside = self._inside.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if inside is not None:
            takes = parameters_of(inside.args)
            given = self.of.setdefault(inside, set())
            given |= by_name & set(takes.keyword)
            given |= {takes.positional[one] for one in at if one < len(takes.positional)}
            return
        called = named_value(self._function, node.func)
        if isinstance(called, types.FunctionType):
            code = called.__code__
            positional = code.co_varnames[: code.co_argcount]
            every = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            found = by_name & set(every)
            found |= {positional[one] for one in at if one < len(positional)}
            self.handed_on |= {(called, name) for name in found}


def _inner_function(node: ast.AST) -> dict[str, Scope]:
    """By its name, a function inside another, which may hand it the event of several inputs."""
    if isinstance(node, ast.FunctionDef):
        return {node.name: node}
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        return {one.id: node.value for one in node.targets if isinstance(one, ast.Name)}
    return {}


def _is_one_of(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def flatten(
    tree: ast.FunctionDef, names: _Names, inputs: tuple[str, ...], schema: Schema, refuse: Refuse
) -> None:
    """Makes reads of an input's columns reads of the event's.

    Args:
        names: that are the event.
        refuse: raises for a place in the source, with the problem and the way out.
    """
    _Flatten(names, inputs, schema, refuse).visit(tree)


class _Flatten(ast.NodeTransformer):
    def __init__(
        self, names: _Names, inputs: tuple[str, ...], schema: Schema, refuse: Refuse
    ) -> None:
        self.names, self.inputs, self.schema, self.refuse = names, inputs, schema, refuse
        self.events: set[str] = set()
        self.event = "event"  # as it was called last

    def _visit_scope(self, node: Scope) -> ast.AST:
        outer, self.events = self.events, self.names.of.get(node, set())
        found = self.generic_visit(node)
        self.events = outer
        return found

    visit_FunctionDef = visit_Lambda = _visit_scope

    def is_event(self, node: ast.AST) -> bool:
        is_event = _is_one_of(node, self.events)
        self.event = node.id if is_event else self.event  # type: ignore[attr-defined]
        return is_event

    def input_of(self, node: ast.AST) -> str | None:
        """Which of an operator's several inputs ``event.fast`` is; None: none of them."""
        is_read = isinstance(node, ast.Attribute) and self.is_event(node.value)
        return node.attr if is_read and node.attr in self.inputs else None  # type: ignore[attr-defined]

    def column(self, name: str, of: str, node: ast.AST) -> str:
        column = column_of(name, of)
        if column not in self.schema.names:
            own = [one.partition(".")[2] for one in self.schema.names if one.startswith(f"{name}.")]
            self.refuse(node, f"input {name!r} has no column {of!r}", names_it_has(of, own))
        return column

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = self.input_of(node.value)
        if name is not None:
            made = ast.Attribute(
                node.value.value,  # type: ignore[attr-defined]
                self.column(name, node.attr, node),
                node.ctx,
            )
            return ast.copy_location(made, node)
        if self.is_event(node.value):
            if node.attr in self.inputs:
                way = f"read its columns one by one, like {self.event}.{node.attr}.x"
                self.refuse(node, f"input {node.attr!r} is used as a value", way)
            if node.attr not in EVENT_ATTRIBUTES:
                way = names_it_has(node.attr, self.inputs)
                self.refuse(node, f"the event has no input {node.attr!r}", way)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        callee = node.func
        if isinstance(callee, ast.Attribute) and callee.attr == "is_null":
            if self.is_event(callee.value):
                way = f'write {self.event}.{self.inputs[0]}.is_null("x")'
                self.refuse(node, "is_null is asked of an input, which has columns", way)
            name = self.input_of(callee.value)
            if name is not None:
                of = node.args[0] if len(node.args) == 1 else None
                if isinstance(of, ast.Constant) and isinstance(of.value, str):
                    of.value = self.column(name, of.value, node)
                    callee.value = callee.value.value  # type: ignore[attr-defined]
                    return node
        asks = isinstance(callee, ast.Attribute) and callee.attr in ASKED
        if not (asks and self.is_event(callee.value)):  # type: ignore[attr-defined]
            return self.generic_visit(node)
        assert isinstance(callee, ast.Attribute)
        of = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if not (isinstance(of, ast.Constant) and isinstance(of.value, str)):
            way = f'write {self.event}.{callee.attr}("{self.inputs[0]}")'
            self.refuse(node, f"{callee.attr} takes the name of one input, written out", way)
        if of.value not in self.inputs:
            way = names_it_has(of.value, self.inputs)
            self.refuse(node, f"the event has no input {of.value!r}", way)
        made = ast.Attribute(callee.value, column_of(callee.attr, of.value), ast.Load())
        return ast.copy_location(made, node)
