"""None in the rewriting for Numba: ``is None``, and which names and expressions may give it."""

from __future__ import annotations

import ast
import dis
import types
from collections.abc import Collection, Sequence
from typing import Any

from specstream.compiler.frontend.nullable_flows import is_none, is_none_test, is_null_read
from specstream.compiler.frontend.scopes import bound_names
from specstream.compiler.language.builtin_functions import GIVES_A_NUMBER
from specstream.compiler.language.operations import is_singleton_test
from specstream.compiler.library import arithmetic, none_rules
from specstream.compiler.library.conversions import bool_
from specstream.compiler.lowering.match_statement import is_singleton
from specstream.compiler.lowering.rewriter_base import NativeParts

__all__ = ["MaybeNone"]


class MaybeNone(NativeParts):
    """What the native rewriting does with None."""

    def none_test(self, node: ast.Compare) -> ast.expr | None:
        """``x is None``, ``x != None``, ``x is True``; None: another comparison."""
        tested = is_none_test(node)
        negated = isinstance(node.ops[0], ast.IsNot | ast.NotEq)
        if tested is not None:
            if isinstance(tested, ast.Attribute) and isinstance(tested.value, ast.Name):
                owner, value = self.visit(tested.value), self.column_read(tested)
                name = ast.copy_location(ast.Constant(tested.attr), tested)
                found = self.core(none_rules.attribute_is_none, owner, value, name, at=node)
            else:
                test = none_rules.is_not_none if negated else none_rules.is_none
                return self.core(test, self.visit(tested), at=node)
        elif is_singleton_test(node):
            found = self.core(is_singleton, self.visit(node.left), node.comparators[0], at=node)
        else:
            return None
        return self.core(arithmetic.not_, found, at=node) if negated else found

    def column_read(self, node: ast.Attribute) -> ast.expr:
        """An attribute as it is."""
        value = ast.Attribute(self.visit(node.value), node.attr, ast.Load())
        return ast.copy_location(value, node)

    def null_read(self, node: ast.Attribute) -> ast.expr:
        """A nullable column that is kept, with whether it is null."""
        name = ast.copy_location(ast.Constant(node.attr), node)
        owner = self.visit(node.value)
        return self.core(none_rules.column, owner, self.column_read(node), name, at=node)

    # ---- values that have to be there ----

    there: set[str]
    tested: set[str]

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
            self.check.names_of_none = names_of_none(self.source.tree, self.may_give_none)
        return self.check.names_of_none

    def may_be_none(self, node: ast.expr) -> bool:
        return may_be_none(node, self.names, self.may_give_none)

    def some(self, node: ast.expr, rewritten: ast.expr) -> ast.expr:
        """A rewritten expression, where None is no value."""
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.core(none_rules.some, rewritten, at=node)
        return rewritten

    # ---- truths: Numba would take the value of what may be None, and raise where it is ----

    def condition(self, node: ast.expr) -> ast.expr:
        """What stands as a condition, rewritten."""
        if isinstance(node, ast.BoolOp):
            node.values = [self.condition(one) for one in node.values]
            return node
        may_be_none = self.may_be_none(node)
        rewritten: ast.expr = self.visit(node)
        return self.core(bool_, rewritten, at=node) if may_be_none else rewritten

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        here = self.known_by(node.test, [node.body])
        elsewhere = self.known_by(node.test, [node.orelse], holds=False)
        node.test = self.condition(node.test)
        self.tested |= here
        node.body = self.visit(node.body)
        self.tested ^= here | elsewhere
        node.orelse = self.visit(node.orelse)
        self.tested -= elsewhere
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """A value: of ``best or x`` it is what best is, where that is true."""
        first, *others = node.values
        if not any(self.may_be_none(one) or _is_looked_up(one) for one in node.values[:-1]):
            return self.generic_visit(node)
        more = ast.copy_location(ast.BoolOp(node.op, others), node)
        rest = others[0] if len(others) == 1 else more
        if not self.may_be_none(first) and not _is_looked_up(first):
            node.values = [self.visit(first), self.visit(rest)]
            return node
        name = self.new_name("chosen")
        kept = ast.NamedExpr(ast.Name(name, ast.Store()), self.visit(first))
        test = self.core(bool_, ast.copy_location(kept, node), at=node)
        chosen, other = ast.Name(name, ast.Load()), self.visit(rest)
        ways = (self.core(none_rules.tested, chosen, at=node), other)
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
