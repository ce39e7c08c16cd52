"""Events of an operator that has several inputs: one column for each column of each input.

``event.fast.mean`` is the column ``fast.mean``, ``event.changed("fast")`` the bool column
``changed.fast``, and ``event.known("fast")`` is ``known.fast``; no user can declare such names.
That happens to the syntax tree before anything else is done with it, so that all behind it knows
events with columns only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import NoReturn

from specstream.compiler.ways_out import names_it_has
from specstream.declarations.schema import EVENT_ATTRIBUTES, Column, Schema

__all__ = ["ASKED", "column_of", "flatten", "flattened"]

ASKED = ("changed", "known")
"""What an event tells of an input: whether this run has a row of it; whether it ever had one."""

_BOOL = Schema.of({"x": bool}, "event").columns[0]

Refuse = Callable[[ast.AST, str, str], NoReturn]


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


def flatten(
    tree: ast.FunctionDef, event: str, inputs: tuple[str, ...], schema: Schema, refuse: Refuse
) -> None:
    """Makes reads of an input's columns reads of the event's.

    Args:
        event: the parameter that the event is, here and in what is called.
        refuse: raises for a place in the source, with the problem and the way out.
    """
    _Flatten(event, inputs, schema, refuse).visit(tree)


class _Flatten(ast.NodeTransformer):
    def __init__(self, event: str, inputs: tuple[str, ...], schema: Schema, refuse: Refuse) -> None:
        self.event, self.inputs, self.schema, self.refuse = event, inputs, schema, refuse

    def is_event(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.event

    def input_of(self, node: ast.AST) -> str | None:
        """The input that ``event.fast`` is."""
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
