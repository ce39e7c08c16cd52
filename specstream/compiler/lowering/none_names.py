"""Names that may be None, in the rewriting for Numba, and where a test says they are not."""

from __future__ import annotations

import ast
import dis
import types
from collections.abc import Collection, Sequence
from typing import Any

from specstream.compiler.facts.refused_constructs import Check
from specstream.compiler.frontend.nullable_flows import is_none, is_none_test, is_null_read
from specstream.compiler.frontend.scopes import bound_names
from specstream.compiler.language.builtin_functions import GIVES_A_NUMBER

__all__ = ["NoneNames"]


class NoneNames:
    """The names of a function that may be None.

    Attributes:
        there: those that are not None here, as was tested.
        tested: others of which a test has left nothing else.
    """

    def __init__(self, tree: ast.AST, check: Check) -> None:
        self.tree = tree
        self.check = check
        self.there: set[str] = set()
        self.tested: set[str] = set()

    def known_by(
        self, test: ast.expr, body: Sequence[ast.stmt | ast.expr], holds: bool = True
    ) -> set[str]:
        """Names that a condition says are not None, and that stay what they are where it holds, or
        does not."""
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or if holds else ast.And):
            return set()
        found: set[str] = set()
        for part in parts:
            tested = is_none_test(part)
            is_negated = isinstance(part, ast.Compare) and isinstance(
                part.ops[0], ast.IsNot | ast.NotEq
            )
            if isinstance(tested, ast.Name) and is_negated == holds:
                found.add(tested.id)
        given = {name for statement in body for name in bound_names(statement)} if found else set()
        return found - given - self.there - self.tested

    def filled_by(self, node: ast.If) -> str | None:
        """For the rewriting for Numba: the name that ``if x is None: x = 0`` makes not None."""
        tested = is_none_test(node.test)
        if not isinstance(tested, ast.Name):
            return None
        storing = [one for one in node.body if tested.id in bound_names(one)]
        last = storing[-1] if storing else None
        if not isinstance(last, ast.Assign):
            return None
        is_negated = isinstance(node.test.ops[0], ast.IsNot | ast.NotEq)  # type: ignore[attr-defined]
        is_given = [one.id for one in last.targets if isinstance(one, ast.Name)] == [tested.id]
        known = tested.id in self.there | self.tested
        if is_negated or known or not is_given or self.may_be_none(last.value):
            return None
        return tested.id if _is_something(last.value) else None

    def may_give_none(self, callee: str) -> bool:
        """For the rewriting for Numba: whether a function may return None.

        As far as its text tells."""
        value = self.check.resolved.get(callee)
        if not isinstance(value, types.FunctionType):
            return callee in self.check.locals
        return any(
            one.argval is None
            for one in dis.get_instructions(value)
            if one.opname in ("LOAD_CONST", "RETURN_CONST")
        )

    @property
    def names(self) -> frozenset[str]:
        """Names that may be None."""
        if self.check.names_of_none is None:
            self.check.names_of_none = names_of_none(self.tree, self.may_give_none)
        return self.check.names_of_none

    def may_be_none(self, node: ast.expr) -> bool:
        return may_be_none(node, self.names, self.may_give_none)


def _is_something(value: ast.expr) -> bool:
    """For the rewriting for Numba: whether an expression certainly gives something, not None.

    It is one that may not give None as far as its text tells."""
    if isinstance(value, ast.IfExp):
        return _is_something(value.body) and _is_something(value.orelse)
    if isinstance(value, ast.BoolOp):
        return all(map(_is_something, value.values))
    if isinstance(value, ast.Call):
        called = value.func.id if isinstance(value.func, ast.Name) else ""
        return called in (*GIVES_A_NUMBER, "min", "max") and not value.keywords
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute)
    return isinstance(value, ast.Constant | ast.BinOp | ast.UnaryOp | ast.Attribute)


def may_be_none(value: ast.expr | None, names: Collection[str], gives_none: Any) -> bool:
    """For the rewriting for Numba: whether an expression may give None.

    As far as its text tells.

    Args:
        value: the expression; None: there is none.
        names: those that may be None.
        gives_none: whether a function of a name may give None.
    """

    def may_be(node: ast.expr) -> bool:
        return may_be_none(node, names, gives_none)

    if value is None:
        return False
    if isinstance(value, ast.Name):
        return value.id in names
    if isinstance(value, ast.IfExp):
        return may_be(value.body) or may_be(value.orelse)
    if isinstance(value, ast.BoolOp):
        return any(map(may_be, value.values))
    if isinstance(value, ast.NamedExpr):
        return may_be(value.value)
    if isinstance(value, ast.Tuple):
        return any(map(may_be, value.elts))
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return bool(gives_none(value.func.id))
    return is_none(value) or is_null_read(value)


def names_of_none(tree: ast.AST, is_none_call: Any) -> frozenset[str]:
    """Rewriting None for Numba: the names that may be None.

    Assigned to them is None, or what may be None; or they are tested for it."""
    found: set[str] = set()

    def may_be(value: ast.expr | None) -> bool:
        return may_be_none(value, found, is_none_call)

    for node in ast.walk(tree):
        tested = is_none_test(node)
        if isinstance(tested, ast.Name):
            found.add(tested.id)
    while True:
        before = len(found)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and may_be(node.value):
                targets: list[ast.expr] = node.targets
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and may_be(node.value):
                targets = [node.target]
            else:
                continue
            found |= {
                one.id
                for target in targets
                for one in ast.walk(target)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            }
        if len(found) == before:
            return frozenset(found)
