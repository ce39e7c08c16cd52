"""None in the rewriting for Numba: ``is None``, and which names and expressions may give it."""

from __future__ import annotations

import ast
from typing import Any

from specstream.compiler.frontend.made_nodes import constant, load
from specstream.compiler.frontend.nullable_flows import is_none, is_none_test
from specstream.compiler.language.operations import is_singleton_test
from specstream.compiler.library import arithmetic, none_rules
from specstream.compiler.library.conversions import bool_
from specstream.compiler.lowering.match_statement import is_singleton
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter

__all__ = ["HANDLERS", "condition", "none_test", "null_read", "some"]


def none_test(rewriter: NativeRewriter, node: ast.Compare) -> ast.expr | None:
    """``x is None``, ``x != None``, ``x is True``; None: another comparison."""
    tested = is_none_test(node)
    negated = isinstance(node.ops[0], ast.IsNot | ast.NotEq)
    if tested is not None:
        if isinstance(tested, ast.Attribute) and isinstance(tested.value, ast.Name):
            owner, value = rewriter.visit(tested.value), _column_read(rewriter, tested)
            name = constant(tested.attr, tested)
            found = rewriter.core(none_rules.attribute_is_none, owner, value, name, at=node)
        else:
            test = none_rules.is_not_none if negated else none_rules.is_none
            return rewriter.core(test, rewriter.visit(tested), at=node)
    elif is_singleton_test(node):
        found = rewriter.core(is_singleton, rewriter.visit(node.left), node.comparators[0], at=node)
    else:
        return None
    return rewriter.core(arithmetic.not_, found, at=node) if negated else found


def _column_read(rewriter: NativeRewriter, node: ast.Attribute) -> ast.expr:
    """An attribute as it is."""
    value = ast.Attribute(rewriter.visit(node.value), node.attr, ast.Load())
    return ast.copy_location(value, node)


def null_read(rewriter: NativeRewriter, node: ast.Attribute) -> ast.expr:
    """A nullable column that is kept, with whether it is null."""
    name = constant(node.attr, node)
    owner = rewriter.visit(node.value)
    return rewriter.core(none_rules.column, owner, _column_read(rewriter, node), name, at=node)


def some(rewriter: NativeRewriter, node: ast.expr, rewritten: ast.expr) -> ast.expr:
    """A rewritten expression, where None is no value."""
    if isinstance(node, ast.Name) and node.id in rewriter.none.names:
        return rewriter.core(none_rules.some, rewritten, at=node)
    return rewritten


def condition(rewriter: NativeRewriter, node: ast.expr) -> ast.expr:
    """What stands as a condition, rewritten."""
    if isinstance(node, ast.BoolOp):
        node.values = [condition(rewriter, one) for one in node.values]
        return node
    may_be_none = rewriter.none.may_be_none(node)
    rewritten: ast.expr = rewriter.visit(node)
    return rewriter.core(bool_, rewritten, at=node) if may_be_none else rewritten


def _conditional(rewriter: NativeRewriter, node: ast.IfExp) -> Any:
    here = rewriter.none.known_by(node.test, [node.body])
    elsewhere = rewriter.none.known_by(node.test, [node.orelse], holds=False)
    node.test = condition(rewriter, node.test)
    rewriter.none.tested |= here
    node.body = rewriter.visit(node.body)
    rewriter.none.tested ^= here | elsewhere
    node.orelse = rewriter.visit(node.orelse)
    rewriter.none.tested -= elsewhere
    return node


def _bool_op(rewriter: NativeRewriter, node: ast.BoolOp) -> Any:
    """A value: of ``best or x`` it is what best is, where that is true."""
    first, *others = node.values
    if not any(rewriter.none.may_be_none(one) or _is_looked_up(one) for one in node.values[:-1]):
        return rewriter.generic_visit(node)
    more = ast.copy_location(ast.BoolOp(node.op, others), node)
    rest = others[0] if len(others) == 1 else more
    if not rewriter.none.may_be_none(first) and not _is_looked_up(first):
        node.values = [rewriter.visit(first), rewriter.visit(rest)]
        return node
    name = rewriter.new_name("chosen")
    kept = ast.NamedExpr(ast.Name(name, ast.Store()), rewriter.visit(first))
    test = rewriter.core(bool_, ast.copy_location(kept, node), at=node)
    chosen, other = load(name), rewriter.visit(rest)
    ways = (rewriter.core(none_rules.tested, chosen, at=node), other)
    if isinstance(node.op, ast.And):
        ways = (other, chosen)
    return ast.fix_missing_locations(ast.copy_location(ast.IfExp(test, *ways), node))


def _is_looked_up(value: ast.expr) -> bool:
    """Whether ``and`` or ``or`` is rewritten for Numba with a test for None: of ``d.get(key)``.

    That is ``d.get(key)`` or ``d.pop(key, None)``, or a name of what may be one."""
    if isinstance(value, ast.Name):
        return True
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    default = value.args[1:]
    return value.func.attr in ("get", "pop") and all(map(is_none, default))


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.IfExp: _conditional,
    ast.BoolOp: _bool_op,
}
