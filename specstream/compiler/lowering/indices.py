"""Indices and slices in the rewriting for Numba."""

from __future__ import annotations

import ast
from typing import Any

from specstream.compiler.language import numbers
from specstream.compiler.library import conversions
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter
from specstream.compiler.lowering.rewrite_none import some
from specstream.compiler.oracle.common_rewriting import without_slices

__all__ = ["HANDLERS", "bounds_for_none", "index", "slice_bounds"]


def bounds_for_none(step: ast.expr | None) -> tuple[int | None, ...]:
    """In the rewriting for Numba, what bounds of a slice that turn out to be None stand for.

    It is as Numba's slices have it; the direction has to be known for that. A step has none.
    """
    sign = 1
    if isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub):
        step, sign = step.operand, -1
    size = getattr(step, "value", ...) if isinstance(step, ast.Constant) else ...
    if step is None or size is None:
        size = 1
    if not isinstance(size, int):
        return None, None, None
    if size * sign > 0:
        return 0, numbers.INT64_MAX, None
    return numbers.INT64_MAX, numbers.INT64_MIN, None


def index(rewriter: NativeRewriter, node: ast.expr) -> ast.expr:
    """An index as an expression that may be an argument: slices as calls of slice()."""
    if isinstance(node, ast.Tuple):
        return ast.copy_location(
            ast.Tuple([index(rewriter, element) for element in node.elts], ast.Load()), node
        )
    if isinstance(node, ast.Slice):
        rewriter.source.native_namespace["__ss_slice"] = slice
        node = ast.copy_location(without_slices(node), node)
    rewritten: ast.expr = rewriter.visit(node)
    return rewritten


def _subscript(rewriter: NativeRewriter, node: ast.Subscript) -> Any:
    node.value = some(rewriter, node.value, rewriter.visit(node.value))
    node.slice = rewriter.visit(node.slice)
    return node


def _slice(rewriter: NativeRewriter, node: ast.Slice) -> Any:
    ends = bounds_for_none(node.step)
    rewriter.generic_visit(node)
    parts = slice_bounds(rewriter, [node.lower, node.upper, node.step], ends)
    return ast.copy_location(ast.Slice(*parts), node)


def slice_bounds(
    rewriter: NativeRewriter, parts: list[ast.expr | None], ends: tuple[int | None, ...]
) -> list[ast.expr | None]:
    """Lower and upper bound and step, as far as they are there."""
    return [
        None if one is None else _slice_bound(rewriter, one, end)
        for one, end in zip(parts, ends, strict=False)
    ]


def _slice_bound(rewriter: NativeRewriter, bound: ast.expr, end: int | None = None) -> ast.expr:
    """A bound or step as what Numba's slices take: an int64. ``end``: what None stands for."""
    value = bound.value if isinstance(bound, ast.Constant) else ...
    if value is None or (type(value) is int and value <= numbers.INT64_MAX):
        return bound
    if end is not None:
        return rewriter.core(conversions.slice_bound, bound, ast.Constant(end), at=bound)
    return rewriter.core(conversions.slice_bound, bound, at=bound)


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.Subscript: _subscript,
    ast.Slice: _slice,
}
