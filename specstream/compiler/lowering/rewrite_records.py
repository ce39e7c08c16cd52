"""Records in the rewriting for Numba: making one, and attributes.

An attribute may be asked of what may be None, and is that of an object then; and where it is asked
of an item of the state, the item need not become an object (``state_records.py``).
"""

from __future__ import annotations

import ast
import types
from typing import Any

from specstream.compiler.frontend.signatures import Parameters, bind
from specstream.compiler.library import state_records
from specstream.compiler.lowering.rewriter_base import NativeParts
from specstream.declarations.records import record_fields

__all__ = ["RecordRewriter"]


class _Owner(ast.expr):
    """What an attribute is read and then written of; evaluated once."""

    _fields = ("value",)

    def __init__(self, value: ast.expr) -> None:
        super().__init__()
        self.value = value


class RecordRewriter(NativeParts):
    """What the native rewriting does with records."""

    def record(self, node: ast.Call, name: str, cls: type) -> ast.expr:
        """``Order(price=1.0, quantity=2)``."""
        self.analysis.uses_arena = True
        fields = record_fields(cls)
        names = tuple(one.name for one in fields)
        optional = frozenset(one.name for one in fields if one.has_default)
        given = bind(node, name, Parameters(names, names, optional), self.check.refuse)
        for one in fields:
            if one.name not in given:
                given[one.name] = ast.copy_location(ast.Constant(one.default), node)
        self.source.native_namespace[f"__ss_record_{name}"] = state_records.record_class(cls)
        made = ast.copy_location(ast.Name(f"__ss_record_{name}", ast.Load()), node)
        # With the types, so that the code is another one where they are others.
        order = ast.copy_location(ast.Constant(",".join(given)), node)
        values = [self.visit(value) for value in given.values()]
        return self.core(state_records.record_new, self.run(), made, order, *values, at=node)

    def owner(self, node: ast.expr) -> ast.expr:
        """What an attribute is asked of, rewritten."""
        if not self.analysis.has_records:
            rewritten: ast.expr = self.visit(node)
            return rewritten
        if isinstance(node, ast.Name) and not self._may_be_object(node.id):
            return self.visit(node)  # type: ignore[no-any-return]
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            of = self.some(node.value, self.visit(node.value))
            index = self.index(node.slice)
            return self.core(state_records.place_of_item, of, index, at=node)
        if isinstance(node, ast.Attribute) and node.attr in self.analysis.record_fields:
            name = ast.copy_location(ast.Constant(node.attr), node)
            return self.core(state_records.place_of_field, self.visit(node.value), name, at=node)
        return self.core(state_records.object_there, self.visit(node), at=node)

    def _may_be_object(self, name: str) -> bool:
        is_operator = len(self.analysis.open) == 1
        is_given = name in self.source.parameters[:3] and is_operator
        return (name in self.check.locals and not is_given) or name.startswith("__ss_owner")

    def visit__Owner(self, node: _Owner) -> Any:
        return self.owner(node.value)

    def as_owner(self, target: ast.Attribute, value: ast.expr) -> None:
        """Of ``target op= value``: whether what has the attribute is evaluated as an object."""
        if not self.analysis.has_records or any(map(self._may_change, ast.walk(value))):
            return
        target.value = ast.copy_location(_Owner(target.value), target.value)

    def _may_change(self, node: ast.AST) -> bool:
        """Whether what is there may be another after it."""
        if not isinstance(node, ast.Call):
            return False
        callee = node.func
        if not isinstance(callee, ast.Name) or callee.id in self.check.locals:
            return True
        return isinstance(self.check.resolved.get(callee.id), types.FunctionType)
