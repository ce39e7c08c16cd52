"""What the two rewritings, for the oracle and for Numba, have in common.

Both start from one syntax tree, so that they cannot drift apart.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable
from typing import Any

from specstream.columns.strings import string_code
from specstream.compiler.facts.refused_constructs import Check
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.frontend.operator_analysis import Analysis, FunctionSource
from specstream.compiler.language import numbers
from specstream.compiler.language.frozen import Frozen, is_frozen
from specstream.compiler.language.text import Text
from specstream.compiler.oracle_objects.frozen import in_oracle
from specstream.declarations.updates import update_name

__all__ = [
    "Rewriter",
    "expand_augmented",
    "oracle_constant",
    "targets_in",
    "without_slices",
]


class Rewriter(ast.NodeTransformer):
    """What both rewritings share: literals of strings, negative literals, the signature."""

    def __init__(self, analysis: Analysis, source: FunctionSource, check: Check) -> None:
        self.analysis = analysis
        self.source = source
        self.check = check

    def rewrite(self) -> ast.FunctionDef:
        # A copy, because the other rewriting starts from the same tree.
        tree = copy.deepcopy(self.source.tree)
        tree.decorator_list = []
        tree.returns = None
        tree.body = self.statements(tree.body) or [ast.Pass()]
        return tree

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        rewritten: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring, or an ellipsis for a body
            result = self.visit(statement)
            rewritten.extend(result if isinstance(result, list) else [result])
        return rewritten

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        # -2**63 is a literal of its own, not the negation of an unsigned one.
        operand = node.operand
        if (
            isinstance(node.op, ast.USub)
            and isinstance(operand, ast.Constant)
            and type(operand.value) is int
        ):
            return self.visit(ast.copy_location(ast.Constant(-operand.value), node))
        return self.unary(node)

    def unary(self, node: ast.UnaryOp) -> Any:
        return self.generic_visit(node)

    def updated_scalar(self, node: ast.Call) -> ast.Constant | None:
        """The name of the scalar field that an update is about: the name itself, not the code of a
        string."""
        if not isinstance(node.func, ast.Name) or not self.is_update(node.func):
            return None
        name = node.args[1] if len(node.args) > 1 else None
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return name
        return None

    def is_update(self, callee: ast.Name) -> bool:
        value = None if callee.id in self.check.locals else self.check.resolved.get(callee.id)
        return isinstance(value, types.FunctionType) and update_name(value) is not None

    def number_in_text(self, node: ast.Call) -> ast.Constant | None:
        """Text of float("inf") and the like: a number's and no string's, in both rewritings."""
        callee = node.func.id if isinstance(node.func, ast.Name) else ""
        is_float = callee not in self.check.locals and self.check.resolved.get(callee) is float
        text = node.args[0] if is_float and len(node.args) == 1 else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            return text
        return None


def targets_in(target: ast.expr) -> list[ast.expr]:
    """Targets of an assignment, for both rewritings, one by one; starred ones as they are."""
    if isinstance(target, ast.Tuple | ast.List):
        return [part for element in target.elts for part in targets_in(element)]
    return [target]


def oracle_constant(value: Any) -> Any:
    if isinstance(value, Frozen) or is_frozen(value):
        return in_oracle(value)
    if isinstance(value, tuple):
        return tuple(oracle_constant(element) for element in value)
    if isinstance(value, str):
        return Text(string_code(value), value)
    return numbers.to_oracle(value)


def expand_augmented(
    node: ast.AugAssign, combine: Callable[[ast.expr, ast.expr], ast.expr]
) -> list[ast.stmt]:
    """``target op= value`` with the target's parts evaluated once, as Python does; what is stored
    is ``combine(target, value)``."""
    target = node.target
    before: list[ast.stmt] = []

    def once(part: ast.expr, name: str) -> Callable[[], ast.expr]:
        before.append(ast.Assign([ast.Name(name, ast.Store())], part))
        return lambda: ast.Name(name, ast.Load())

    if isinstance(target, ast.Name):
        load: ast.expr = ast.Name(target.id, ast.Load())
        store: ast.expr = ast.Name(target.id, ast.Store())
    elif isinstance(target, ast.Attribute):
        owner = once(target.value, "__ss_owner")
        load = ast.Attribute(owner(), target.attr, ast.Load())
        store = ast.Attribute(owner(), target.attr, ast.Store())
    else:
        owner = once(target.value, "__ss_owner")
        index = once(without_slices(target.slice), "__ss_index")
        load = ast.Subscript(owner(), index(), ast.Load())
        store = ast.Subscript(owner(), index(), ast.Store())
    statements = [*before, ast.Assign([store], combine(load, node.value))]
    for statement in statements:
        at_place(statement, node)
    return statements


def without_slices(index: ast.expr) -> ast.expr:
    """An index that a name can be given to: slices as calls of slice()."""
    if isinstance(index, ast.Tuple):
        return ast.Tuple([without_slices(part) for part in index.elts], ast.Load())
    if not isinstance(index, ast.Slice):
        return index
    parts = [part or ast.Constant(None) for part in (index.lower, index.upper)]
    if index.step is not None:
        parts.append(index.step)
    return ast.Call(ast.Name("__ss_slice", ast.Load()), parts, [])
