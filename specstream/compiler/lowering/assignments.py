"""Assignments in the rewriting for Numba, and ``del``."""

from __future__ import annotations

import ast
from typing import Any

from specstream.compiler.frontend.made_nodes import constant, load
from specstream.compiler.library import arithmetic, local_list_methods, local_lists
from specstream.compiler.library.item_assignment import SET_ITEM, set_item, updated
from specstream.compiler.library.row_assignment import assigned
from specstream.compiler.library.state_fields import set_field
from specstream.compiler.library.unpacking import listed, taken_apart, unpacked
from specstream.compiler.lowering.indices import index
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter
from specstream.compiler.lowering.nested import define
from specstream.compiler.lowering.rewrite_local import as_made
from specstream.compiler.lowering.rewrite_none import some
from specstream.compiler.lowering.rewrite_records import as_owner, owner
from specstream.compiler.oracle.common_rewriting import expand_augmented, targets_in

__all__ = ["HANDLERS", "assign"]

SET_ITEM.append(assigned)
_EMPTY = ("[]", "{}", "list()", "dict()", "set()")


class _InPlace(ast.BinOp):
    """What an augmented assignment to a name or a field stores."""


def _assignment(rewriter: NativeRewriter, node: ast.Assign) -> Any:
    if isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        return define(rewriter, node.targets[0].id, node.value, node)
    if any(isinstance(one, ast.Tuple | ast.List) for one in node.targets):
        node.value = as_made(rewriter, node.value)
    if len(node.targets) == 1:
        value = rewriter.visit(node.value)
        if isinstance(node.targets[0], ast.Tuple | ast.List):
            value = some(rewriter, node.value, value)
        return assign(rewriter, node.targets[0], value, node)
    name = rewriter.new_name("value")
    statements: list[ast.stmt] = [
        ast.copy_location(
            ast.Assign([ast.Name(name, ast.Store())], rewriter.visit(node.value)), node
        )
    ]
    for target in node.targets:
        statements += assign(rewriter, target, load(name), node)
    return statements


def _annotated(rewriter: NativeRewriter, node: ast.AnnAssign) -> Any:
    """What an empty list, dict or set holds may be said where it is made."""
    said: str = getattr(node, "said", "")
    if node.value is None or ast.unparse(node.value) not in _EMPTY or "[" not in said:
        return rewriter.visit_AnnAssign(node)
    made = rewriter.make(local_lists.declared, constant(said, node), at=node)
    return assign(rewriter, node.target, made, node)


def _augmented(rewriter: NativeRewriter, node: ast.AugAssign) -> Any:
    operator = arithmetic.IN_PLACE[type(node.op)]
    operation = rewriter.core(operator, at=node).func
    if isinstance(node.target, ast.Attribute):
        as_owner(rewriter, node.target, node.value)
    rewriter.source.native_namespace["__ss_slice"] = slice

    def combine(load: ast.expr, value: ast.expr) -> ast.expr:
        if isinstance(load, ast.Subscript):  # of an element, or of a row or slice
            return rewriter.core(updated, load, operation, value, at=node)
        return _InPlace(load, node.op, value)

    return [
        part
        for statement in expand_augmented(node, combine)
        for part in rewriter.statements([statement])
    ]


def _in_place(rewriter: NativeRewriter, node: _InPlace) -> Any:
    rewriter.generic_visit(node)
    return rewriter.core(arithmetic.IN_PLACE[type(node.op)], node.left, node.right, at=node)


def assign(
    rewriter: NativeRewriter, target: ast.expr, value: ast.expr, node: ast.AST
) -> list[ast.stmt]:
    if isinstance(target, ast.Name):
        return [ast.copy_location(ast.Assign([target], value), node)]
    if isinstance(target, ast.Attribute):
        of, field = owner(rewriter, target.value), ast.Constant(target.attr)
        return [rewriter.do(set_field, value, of, field, at=node)]
    if isinstance(target, ast.Subscript):
        array, at = rewriter.visit(target.value), index(rewriter, target.slice)
        return [rewriter.do(set_item, value, array, at, at=node)]
    assert isinstance(target, ast.Tuple | ast.List)
    starred = [isinstance(element, ast.Starred) for element in target.elts]
    if any(starred):
        return _assign_starred(rewriter, target.elts, starred.index(True), value, node)
    target = ast.copy_location(ast.Tuple(target.elts, ast.Store()), target)
    if all(isinstance(element, ast.Name) for element in target.elts):
        return [ast.copy_location(ast.Assign([target], value), node)]
    names = [rewriter.new_name("part") for _ in target.elts]
    parts: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
    statements: list[ast.stmt] = [
        ast.copy_location(ast.Assign([ast.Tuple(parts, ast.Store())], value), node)
    ]
    for name, element in zip(names, target.elts, strict=True):
        statements += assign(rewriter, element, load(name), node)
    return statements


def _assign_starred(
    rewriter: NativeRewriter, targets: list[ast.expr], star: int, value: ast.expr, node: ast.AST
) -> list[ast.stmt]:
    """``a, *rest, z = value``: what the star takes is a list, as in Python."""
    name, after = rewriter.new_name("parts"), len(targets) - star - 1
    counts = [constant(count, node) for count in (star, after)]
    rewriter.analysis.uses_arena = True
    if not isinstance(value, ast.Tuple):
        value = rewriter.make(taken_apart, value, at=node)
    taken = rewriter.core(unpacked, value, *counts, at=node)
    targets = [one.value if isinstance(one, ast.Starred) else one for one in targets]
    statements = assign(rewriter, ast.Name(name, ast.Store()), taken, node)
    for at, target in enumerate(targets):
        part: ast.expr = ast.Subscript(load(name), ast.Constant(at), ast.Load())
        if at == star and _is_read(rewriter, target):
            part = rewriter.make(listed, part, at=node)
        statements += assign(rewriter, target, ast.copy_location(part, node), node)
    return statements


def _is_read(rewriter: NativeRewriter, target: ast.expr) -> bool:
    """Whether somebody may read what a target is given: ``*_`` is given what nobody wants."""
    return not isinstance(target, ast.Name) or any(
        isinstance(one, ast.Name) and one.id == target.id and isinstance(one.ctx, ast.Load)
        for one in ast.walk(rewriter.source.tree)
    )


def _deletion(rewriter: NativeRewriter, node: ast.Delete) -> Any:
    """Of a list or dict an item; a name that is deleted is read no more (flow.py)."""
    statements: list[ast.stmt] = []
    for target in node.targets:
        for part in targets_in(target):
            if isinstance(part, ast.Subscript):
                of, at = rewriter.visit(part.value), index(rewriter, part.slice)
                statements.append(rewriter.do(local_list_methods.delete_item, of, at, at=node))
            elif not isinstance(part, ast.Name):
                rewriter.check.refuse(
                    node,
                    f"{ast.unparse(part)} cannot be deleted",
                    "assign another value to it; the fields of the state stay",
                )
    return statements or ast.copy_location(ast.Pass(), node)


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.Assign: _assignment,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _deletion,
    _InPlace: _in_place,
}
