"""The syntax tree of a function, rewritten for Numba.

What an operator does becomes calls of core functions, which stand beside their instructions in
files of their own, each with the table by which they are found: operators in ``arithmetic``, what
is called in the files that ``rewrite_calls`` names. Here are operators, conditions and names, and
the table of what becomes of each kind of node.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from specstream.compiler.backend.exception_status import TELLS
from specstream.compiler.backend.instructions import OperatorFault
from specstream.compiler.facts.refused_constructs import Check
from specstream.compiler.frontend.made_nodes import assign_name, constant, load
from specstream.compiler.frontend.nullable_flows import is_null_read
from specstream.compiler.frontend.operator_analysis import Analysis, FunctionSource
from specstream.compiler.language import numbers
from specstream.compiler.library import (
    arithmetic,
    comparison_chains,
    none_rules,
    reductions,
)
from specstream.compiler.library.event_lists import (
    ItemRead,
    RecordMade,
    item_list,
    item_read,
    list_hint,
)
from specstream.compiler.lowering import (
    assignments,
    comprehensions,
    control_flow,
    indices,
    match_statement,
    nested,
    rewrite_calls,
    rewrite_local,
    rewrite_none,
    rewrite_records,
    starred_arguments,
)
from specstream.compiler.lowering.native_rewriter import RUN, Handler, NativeRewriter
from specstream.compiler.lowering.nested import find_nested
from specstream.compiler.lowering.rewrite_calls import native_constant
from specstream.compiler.lowering.rewrite_none import condition, none_test, null_read
from specstream.compiler.lowering.rewrite_records import owner

__all__ = ["rewrite_native"]

# CPython's compiler: so many arguments lie on the stack.
_MANY = 30


def _item_read(rewriter: NativeRewriter, node: ItemRead) -> Any:
    value: ast.expr = rewriter.core(item_read, node.status, node.value, at=node)
    if node.part is None:
        return value
    hint = constant(list_hint(node.part), node)
    return rewriter.make(item_list, value, hint, at=node)


def _record_made(rewriter: NativeRewriter, node: RecordMade) -> Any:
    rewriter.source.native_namespace[node.name] = node.record
    made = load(node.name, node)
    return ast.copy_location(ast.Call(made, list(map(rewriter.visit, node.elts)), []), node)


def _binary(rewriter: NativeRewriter, node: ast.BinOp) -> Any:
    rewriter.generic_visit(node)
    return rewriter.core(arithmetic.OPERATORS[type(node.op)], node.left, node.right, at=node)


def _compare(rewriter: NativeRewriter, node: ast.Compare) -> Any:
    test = none_test(rewriter, node)
    if test is not None:
        return test
    rewriter.generic_visit(node)
    if len(node.ops) == 1:
        return _comparison(rewriter, node.ops[0], node.left, node.comparators[0], node)
    # What stands in the middle is evaluated once, and the rest only if all before it holds.
    # Python's own instructions do that; comparison_chains.py makes the operators ours.
    operands = [
        rewriter.core(_operand(rewriter, one), one, at=one)
        for one in (node.left, *node.comparators)
    ]
    return ast.copy_location(ast.Compare(operands[0], node.ops, [*operands[1:]]), node)


def _expression_statement(rewriter: NativeRewriter, node: ast.Expr) -> list[ast.stmt]:
    """Python collects many arguments in a list, which Numba follows in straight code only: what
    chooses among values is evaluated before."""
    node.value = rewriter.visit(node.value)
    call, before = node.value, list[ast.stmt]()
    if isinstance(call, ast.Call) and len(call.args) > _MANY:
        changed = {one.target.id for one in ast.walk(call) if isinstance(one, ast.NamedExpr)}
        for at, given in enumerate(call.args):
            is_name = isinstance(given, ast.Name) and given.id not in changed
            if is_name or isinstance(given, ast.Constant):
                continue
            name = rewriter.new_name("given")
            before.append(assign_name(name, given, node))
            call.args[at] = load(name)
    ast.fix_missing_locations(node)
    return [*before, node]


def _operand(rewriter: NativeRewriter, node: ast.expr) -> Any:
    is_global = isinstance(node, ast.Name) and node.id in rewriter.check.constants
    is_written_out = is_global or isinstance(node, ast.Constant)
    return comparison_chains.literal_operand if is_written_out else comparison_chains.operand


def _comparison(
    rewriter: NativeRewriter, op: ast.cmpop, left: ast.expr, right: ast.expr, node: ast.AST
) -> ast.expr:
    if isinstance(op, ast.In | ast.NotIn):
        found: ast.expr = rewriter.core(reductions.contains, left, right, at=node)
        if isinstance(op, ast.NotIn):
            found = rewriter.core(arithmetic.OPERATORS[ast.Not], found, at=node)
        return found
    return rewriter.core(arithmetic.OPERATORS[type(op)], left, right, at=node)


def _constant(rewriter: NativeRewriter, node: ast.Constant) -> Any:
    if isinstance(node.value, str):
        rewriter.analysis.strings.append(node.value)
        return rewriter.text(node.value, node)
    return node


def _if(rewriter: NativeRewriter, node: ast.If) -> Any:
    known = rewriter.none.known_by(node.test, node.body)
    elsewhere = rewriter.none.known_by(node.test, node.orelse, holds=False)
    node.test = condition(rewriter, node.test)
    rewriter.none.there |= known
    node.body = rewriter.statements(node.body) or [ast.copy_location(ast.Pass(), node)]
    rewriter.none.there -= known
    rewriter.none.tested |= elsewhere
    node.orelse = rewriter.statements(node.orelse)
    rewriter.none.tested -= elsewhere
    return node


def _attribute(rewriter: NativeRewriter, node: ast.Attribute) -> Any:
    if is_null_read(node):
        return null_read(rewriter, node)
    if isinstance(node.value, ast.Name) and node.value.id not in rewriter.check.locals:
        module = rewriter.check.resolved.get(node.value.id)
        constants = {math: numbers.MATH_CONSTANTS, np: numbers.NUMPY_CONSTANTS}
        if module in (math, np):
            value = constants[module].get(node.attr)
            if value is None:
                rewriter.check.refuse(node, f"{node.value.id}.{node.attr} is not called", "call it")
            return constant(value, node)
    node.value = owner(rewriter, node.value)
    return node


def _name(rewriter: NativeRewriter, node: ast.Name) -> Any:
    if node.id in rewriter.nested.defined:
        rewriter.check.refuse(
            node,
            f"{node.id!r} is a function and is not called here",
            f"call it, {node.id}(...); to pass it on, write its code where it is called",
        )
    if isinstance(node.ctx, ast.Load) and node.id not in rewriter.check.locals:
        value = rewriter.check.resolved.get(node.id)
        if isinstance(value, str):
            return rewriter.text(value, node)
        if (
            node.id not in rewriter.check.constants
            and node.id != RUN
            and not (node.id.startswith("__ss_"))
        ):
            rewriter.check.refuse(
                node,
                f"{node.id!r} is not called, and is not a value",
                f"call it: {node.id}(...); define another name for a function, or an attribute "
                "of it, outside the operator",
            )
    if node.id in rewriter.none.there and isinstance(node.ctx, ast.Load):
        return rewriter.core(none_rules.some, node, at=node)
    if node.id in rewriter.none.tested and isinstance(node.ctx, ast.Load):
        return rewriter.core(none_rules.tested, node, at=node)
    return node


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.UnaryOp: NativeRewriter.visit_UnaryOp,
    ItemRead: _item_read,
    RecordMade: _record_made,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.Expr: _expression_statement,
    ast.Constant: _constant,
    ast.If: _if,
    ast.Attribute: _attribute,
    ast.Name: _name,
    **assignments.HANDLERS,
    **comprehensions.HANDLERS,
    **control_flow.HANDLERS,
    **indices.HANDLERS,
    **match_statement.HANDLERS,
    **nested.HANDLERS,
    **rewrite_calls.HANDLERS,
    **rewrite_local.HANDLERS,
    **rewrite_none.HANDLERS,
    **rewrite_records.HANDLERS,
    **starred_arguments.HANDLERS,
}


def rewrite_native(analysis: Analysis, source: FunctionSource, check: Check) -> ast.FunctionDef:
    """A function as calls of core functions; what these are goes to its native namespace."""
    functions = find_nested(source, check)
    namespace = source.native_namespace
    namespace["__ss_Fault"] = OperatorFault
    if analysis.tells:
        namespace[TELLS] = True
    for name, value in check.constants.items():
        namespace[name] = native_constant(value)
    tree = NativeRewriter(analysis, source, check, HANDLERS, functions).rewrite()
    # All are positional to Numba; a call of a helper gives each of them.
    names = (RUN, *source.parameters)
    tree.args = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    return tree
