"""Where the value of a nullable column is kept, given away or returned, so that it may be asked
later whether it is None.

Everywhere else a null reads 0 at once. Both rewritings look at the marks made here, so that oracle
and native code know of a null in the same places.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

__all__ = ["is_none", "is_none_test", "is_null_read", "mark_null_reads"]


def is_none(node: ast.AST) -> bool:
    """Whether it says ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def is_none_test(node: ast.AST) -> ast.expr | None:
    """What a comparison asks to be None, or not to be; None: it is another comparison."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    if not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        return None
    left, right = node.left, node.comparators[0]
    if is_none(right):
        return left
    return right if is_none(left) else None


def is_null_read(node: ast.AST) -> bool:
    """Whether a read of a column has to tell of a null."""
    return hasattr(node, "may_be_null")


def mark_null_reads(
    tree: ast.AST, nullable: Collection[str], locals_: Collection[str], called: Collection[str]
) -> list[ast.expr]:
    """Marks the reads of nullable columns that may be asked later.

    Args:
        called: names of the user's functions.

    Returns:
        All that is kept, given away or returned in the same way.
    """
    kept: list[ast.expr] = []
    asked: set[str] = set()
    assigned: list[tuple[str, ast.expr]] = []
    for node in ast.walk(tree):
        test = is_none_test(node)
        if test is not None:
            asked |= _names(test)
            if not isinstance(test, ast.Attribute):  # of a column itself, the null bit is read
                kept += _flowing(test)
        elif isinstance(node, ast.Match):
            kept += _flowing(node.subject)
        elif isinstance(node, ast.Return) and node.value is not None:
            kept += _flowing(node.value)
        elif isinstance(node, ast.Lambda):
            kept += _flowing(node.body)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in called or node.func.id in _defined(tree):
                for value in (*node.args, *(one.value for one in node.keywords)):
                    kept += _flowing(value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                assigned += _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            assigned += _pairs(node.target, node.value)
    asked |= {name for value in kept for name in _names(value)}
    while True:
        into = [pair for pair in assigned if pair[0] in asked]
        assigned = [pair for pair in assigned if pair[0] not in asked]
        if not into:
            break
        for _, value in into:
            kept += _flowing(value)
            asked |= {name for one in _flowing(value) for name in _names(one)}
    for value in kept:
        if not isinstance(value, ast.Attribute) or not isinstance(value.value, ast.Name):
            continue
        if value.attr in nullable and value.value.id in locals_:
            value.may_be_null = True  # type: ignore[attr-defined]
    return kept


def _defined(tree: ast.AST) -> set[str]:
    """Functions that are nested in one."""
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment gives values to, with these."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, part in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, part)


def _flowing(value: ast.expr) -> list[ast.expr]:
    """What a value may be as it is: the parts that are not computed with."""
    if isinstance(value, ast.IfExp):
        return _flowing(value.body) + _flowing(value.orelse)
    if isinstance(value, ast.BoolOp):
        return [part for one in value.values for part in _flowing(one)]
    if isinstance(value, ast.NamedExpr):
        return _flowing(value.value)
    if isinstance(value, ast.Tuple):
        return [part for one in value.elts for part in _flowing(one)]
    return [value]


def _names(value: ast.expr) -> set[str]:
    return {one.id for one in _flowing(value) if isinstance(one, ast.Name)}
