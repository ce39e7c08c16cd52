"""Records in the rewriting for Numba: making one, and attributes.

An attribute may be asked of what may be None, and is that of an object then; and where it is asked
of an item of the state, the item need not become an object (``state_records.py``).
"""

from __future__ import annotations

import ast
import types
from typing import Any

from specstream.compiler.frontend.made_nodes import constant, load
from specstream.compiler.frontend.signatures import Parameters, bind
from specstream.compiler.library import state_records
from specstream.compiler.lowering.indices import index
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter
from specstream.compiler.lowering.rewrite_none import some
from specstream.declarations.records import record_fields

__all__ = ["HANDLERS", "as_owner", "owner", "record"]


class _Owner(ast.expr):
    """What an attribute is read and then written of; evaluated once."""

    _fields = ("value",)

    def __init__(self, value: ast.expr) -> None:
        super().__init__()
        self.value = value


def record(rewriter: NativeRewriter, node: ast.Call, name: str, cls: type) -> ast.expr:
    """``Order(price=1.0, quantity=2)``."""
    fields = record_fields(cls)
    names = tuple(one.name for one in fields)
    optional = frozenset(one.name for one in fields if one.has_default)
    given = bind(node, name, Parameters(names, names, optional), rewriter.check.refuse)
    for one in fields:
        if one.name not in given:
            given[one.name] = constant(one.default, node)
    rewriter.source.native_namespace[f"__ss_record_{name}"] = state_records.record_class(cls)
    made = load(f"__ss_record_{name}", node)
    # With the types, so that the code is another one where they are others.
    order = constant(",".join(given), node)
    values = [rewriter.visit(value) for value in given.values()]
    return rewriter.make(state_records.record_new, made, order, *values, at=node)


def owner(rewriter: NativeRewriter, node: ast.expr) -> ast.expr:
    """What an attribute is asked of, rewritten."""
    if not rewriter.analysis.has_records:
        rewritten: ast.expr = rewriter.visit(node)
        return rewritten
    if isinstance(node, ast.Name) and not _may_be_object(rewriter, node.id):
        return rewriter.visit(node)  # type: ignore[no-any-return]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        of = some(rewriter, node.value, rewriter.visit(node.value))
        at = index(rewriter, node.slice)
        return rewriter.core(state_records.place_of_item, of, at, at=node)
    if isinstance(node, ast.Attribute) and node.attr in rewriter.analysis.record_fields:
        name = constant(node.attr, node)
        return rewriter.core(
            state_records.place_of_field, rewriter.visit(node.value), name, at=node
        )
    return rewriter.core(state_records.object_there, rewriter.visit(node), at=node)


def _owner(rewriter: NativeRewriter, node: _Owner) -> Any:
    return owner(rewriter, node.value)


def as_owner(rewriter: NativeRewriter, target: ast.Attribute, value: ast.expr) -> None:
    """Of ``target op= value``: whether what has the attribute is evaluated as an object."""
    if not rewriter.analysis.has_records or any(
        _may_be_another(rewriter, one) for one in ast.walk(value)
    ):
        return
    target.value = ast.copy_location(_Owner(target.value), target.value)


def _may_be_object(rewriter: NativeRewriter, name: str) -> bool:
    is_operator = len(rewriter.analysis.open) == 1
    is_given = name in rewriter.source.parameters[:3] and is_operator
    return (name in rewriter.check.locals and not is_given) or name.startswith("__ss_owner")


def _may_be_another(rewriter: NativeRewriter, node: ast.AST) -> bool:
    """Whether what is there may be another after it."""
    if not isinstance(node, ast.Call):
        return False
    callee = node.func
    if not isinstance(callee, ast.Name) or callee.id in rewriter.check.locals:
        return True
    return isinstance(rewriter.check.resolved.get(callee.id), types.FunctionType)


HANDLERS: dict[type[ast.AST], Handler] = {
    _Owner: _owner,
}
