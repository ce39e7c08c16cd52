"""Strings that int fields keep as their codes, and what of that is emitted as a string again.

An operator may store ``event.name`` in an int field and emit the field into a column of strings.
Any other int that is emitted there is a mistake, as no string has it for its code. What compiled
code sees of both is an int, so it is told from the text: whether some function stores a string
where ints are kept, and whether what is emitted may have come from there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from specstream.compiler.language.builtin_functions import GIVES_A_NUMBER
from specstream.compiler.language.methods import names_where
from specstream.declarations.derived import numbers_of
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Layout

__all__ = ["is_kept", "keeps_codes", "may_be_code"]

_STORING = names_where(lambda one: one.keeps is not None or (one.changes and one.takes_iterables))


def keeps_codes(trees: Iterable[ast.FunctionDef], layout: Layout, event: Schema) -> bool:
    """Whether a string may be stored where an operator keeps ints."""
    if not any(_has_ints(layout, field.name) for field in layout.fields):
        return False
    return any(
        _may_be_text(value, tree, layout, event, frozenset())
        for tree in trees
        for target, value in _stores(tree)
        if _field_of(target, tree, layout) is not None
    )


def may_be_code(node: ast.expr, event: Schema, layout: Layout) -> bool:
    """Whether a value may be one that was kept: what is computed, or of the event, is none.

    Args:
        node: the value.
        event: the columns of the event.
        layout: of the state.
    """
    if isinstance(node, ast.IfExp):
        return any(may_be_code(one, event, layout) for one in (node.body, node.orelse))
    if isinstance(node, ast.BoolOp):
        return any(may_be_code(one, event, layout) for one in node.values)
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id in GIVES_A_NUMBER)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        is_column = node.attr in event.names and layout.field(node.attr) is None
        return not is_column and numbers_of(node.attr) is None
    return not isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp | ast.Compare)


def is_kept(node: ast.expr, tree: ast.FunctionDef, layout: Layout) -> bool:
    """Whether a value is read where an operator keeps ints, and no strings beside them."""
    field = _field_of(node, tree, layout)
    return field is not None and "str" not in _kinds_kept_in(layout, field)


def _has_ints(layout: Layout, name: str) -> bool:
    return "int" in _kinds_kept_in(layout, name)


def _kinds_kept_in(layout: Layout, name: str) -> set[str]:
    """What a field keeps: ints, which may be codes of strings, other numbers, or strings.

    Nothing where there is no such field.
    """
    field = layout.field(name)
    if field is None or field.space == "locks":
        return set()
    parts = [part for shape in (field.record,) if shape is not None for part in shape.parts]
    if field.container is not None:
        shapes = (field.container.key, field.container.value)
        parts += [part for shape in shapes if shape is not None for part in shape.parts]
    return {part.number for part in parts} if parts else {str(field.kind)}


def _stores(tree: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Where something is stored, and what."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _taken_apart(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            given = node.args if node.func.attr in _STORING else []
            yield from ((node.func.value, one) for one in given)


def _taken_apart(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple | ast.List):
        values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        for at, one in enumerate(target.elts):
            yield from _taken_apart(one, values[at] if at < len(values) else value)
    else:
        yield target, value


def _field_of(node: ast.expr, tree: ast.FunctionDef, layout: Layout) -> str | None:
    """The field with ints in it that an expression reads or stores into, through local names."""
    met = set[str]()
    while True:
        is_field = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if is_field and _has_ints(layout, node.attr):  # type: ignore[attr-defined]
            return node.attr  # type: ignore[attr-defined, no-any-return]
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Name) and node.id not in met:
            met.add(node.id)
            found = _values_given_to(node.id, tree)
            if not found:
                return None
            node = found[0]
        else:
            return None


def _values_given_to(name: str, tree: ast.FunctionDef) -> list[ast.expr]:
    """What a local name is assigned, or goes through: it may be a field that keeps codes."""
    found = [
        value
        for target, value in _stores(tree)
        if isinstance(target, ast.Name) and target.id == name
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            names = {one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)}
            found += [node.iter] if name in names else []
        elif isinstance(node, ast.NamedExpr) and node.target.id == name:
            found.append(node.value)
    return found


def _may_be_text(
    node: ast.expr, tree: ast.FunctionDef, layout: Layout, event: Schema, met: frozenset[str]
) -> bool:
    def may_be(one: ast.expr) -> bool:
        return _may_be_text(one, tree, layout, event, met)

    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.attr in event.names and event.kind(node.attr) == "str":
            return True
        field = layout.field(node.attr)
        return field is not None and field.kind == "str"
    if isinstance(node, ast.Name):
        if node.id in met:
            return False
        met = met | {node.id}
        parameters = [one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)]
        return node.id in parameters or any(map(may_be, _values_given_to(node.id, tree)))
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
        return False
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in GIVES_A_NUMBER
    ):
        return False
    parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    return any(map(may_be, parts))
