"""Finds look-ups whose key is known from the event alone, so that they can be prefetched.

The keys of the coming events are known before these events run. So the dict entries of several
events are looked up together (``ss_keyed_ahead``), and the processor waits for memory once instead
of once for each event. A look-up is found in the text: ``state.seen`` with ``event.key`` or a tuple
of columns, in a statement that every event reaches. Names that are assigned once, at the top, stand
for their value. A look-up that is not found costs time and nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from specstream._native import lib
from specstream.compiler.frontend.program import LookUp
from specstream.compiler.language.methods import names_where
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Layout

__all__ = ["look_ups"]

_BY_KEY = names_where(lambda one: one.has_key, ("dict", "set"))
_LEAVING = (ast.Return, ast.Raise)


def look_ups(tree: ast.FunctionDef, layout: Layout, event: Schema) -> tuple[LookUp, ...]:
    """Of an operator's function, one for each field at most, in the order of the text."""
    keyed = {
        field.name: field.container.key.words
        for field in layout.containers
        if field.container is not None and field.container.kind in ("dict", "set")
    }
    if not keyed:
        return ()
    state, of_event = (one.arg for one in tree.args.args[:2])
    names = _names_in_look_ups(tree)
    found: dict[str, tuple[str, ...]] = {}
    for container, key in _asked(tree):
        container, key = _meant(container, names), _meant(key, names)
        field = _attribute(container, state)
        parts = key.elts if isinstance(key, ast.Tuple) else [key]
        columns = [_attribute(_meant(part, names), of_event) for part in parts]
        words = keyed.get(field or "", 0)
        if field is None or len(columns) != words or words > lib.SS_MOST_AHEAD_WORDS:
            continue
        keys = tuple(one for one in columns if one and event.kind(one) in ("int", "str"))
        if len(keys) == words:
            found.setdefault(field, keys)
    return tuple(found.items())


def _names_in_look_ups(tree: ast.FunctionDef) -> Mapping[str, ast.expr]:
    """Names that stand for their values in prefetched look-ups: assigned once, at the top."""
    given: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            given.setdefault(node.id, []).append(None)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and len(given[target.id]) == 1:
                given[target.id] = [statement.value]
    return {name: values[0] for name, values in given.items() if values[0] is not None}


def _meant(node: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    return names.get(node.id, node) if isinstance(node, ast.Name) else node


def _attribute(node: ast.expr, of: str) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == of:
        return node.attr
    return None


def _asked(tree: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Containers and keys, of the statements that every event comes to."""
    for statement in tree.body:
        yield from _in_expressions(
            statement.test if isinstance(statement, ast.If | ast.While) else statement
        )
        if any(isinstance(one, _LEAVING) for one in ast.walk(statement)):
            return


def _in_expressions(root: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(root, ast.For | ast.With | ast.Try | ast.Match):
        return
    for node in ast.walk(root):
        if isinstance(node, ast.Subscript):
            yield node.value, node.slice
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            yield node.comparators[0], node.left
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _BY_KEY
            and node.args
        ):
            yield node.func.value, node.args[0]
