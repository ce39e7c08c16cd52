"""The syntax tree of a function, rewritten for Numba.

What an operator does becomes calls of core functions, which stand beside their instructions in
files of their own, each with the table by which they are found: operators in ``arithmetic``, what
is called in the files that ``rewrite_calls`` names. Here are expressions, indices and assignments.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from specstream.columns.strings import string_code
from specstream.compiler.backend.exception_status import TELLS
from specstream.compiler.backend.instructions import OperatorFault
from specstream.compiler.frontend.definite_assignment import leaves
from specstream.compiler.frontend.nullable_flows import is_null_read
from specstream.compiler.frontend.scopes import bound_names
from specstream.compiler.language import numbers
from specstream.compiler.language.text import text_of
from specstream.compiler.library import (
    arithmetic,
    comparison_chains,
    conversions,
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
from specstream.compiler.library.item_assignment import SET_ITEM, set_item, updated
from specstream.compiler.library.row_assignment import assigned
from specstream.compiler.library.state_fields import set_field
from specstream.compiler.library.unpacking import listed, taken_apart, unpacked
from specstream.compiler.lowering.control_flow import LeavingRewriter
from specstream.compiler.lowering.match_statement import MatchStatements
from specstream.compiler.lowering.nested import RUN, Nested
from specstream.compiler.lowering.rewrite_calls import CallRewriter, native_constant
from specstream.compiler.oracle.common_rewriting import (
    expand_augmented,
    without_slices,
)

__all__ = ["NativeRewriter"]

SET_ITEM.append(assigned)

# CPython's compiler: so many arguments lie on the stack.
_MANY = 30


def _core_name(function: Any) -> str:
    for attribute in ("name", "__name__", "_name"):
        name = getattr(function, attribute, None)
        if isinstance(name, str):
            return name
    raise AssertionError(function)


def _bounds_for_none(step: ast.expr | None) -> tuple[int | None, ...]:
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


class _InPlace(ast.BinOp):
    """What an augmented assignment to a name or a field stores."""


class NativeRewriter(CallRewriter, MatchStatements, LeavingRewriter):
    def begin(self, nested: Nested | None = None) -> None:
        self.leave_nothing()
        self.there: set[str] = set()  # names that are not None here, as was tested
        self.tested: set[str] = set()  # others of which a test has left nothing else
        self.nested = self.find_nested() if nested is None else nested

    def rewrite(self) -> ast.FunctionDef:
        self.begin()
        namespace = self.source.native_namespace
        namespace["__ss_Fault"] = OperatorFault
        if self.analysis.tells:
            namespace[TELLS] = True
        for name, value in self.check.constants.items():
            namespace[name] = native_constant(value)
        tree = super().rewrite()
        # All are positional to Numba; a call of a helper gives each of them.
        names = (RUN, *self.source.parameters)
        tree.args = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        return tree

    def core(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.Call:
        """A call of a core function, bound under a name no user can write."""
        name = f"__ss_{_core_name(function)}"
        known = self.source.native_namespace.setdefault(name, function)
        assert known is function, name
        call = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
        ast.copy_location(call, at)
        ast.copy_location(call.func, at)
        return call

    @staticmethod
    def run() -> ast.expr:
        return ast.Name(RUN, ast.Load())

    def unary(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self.core(arithmetic.OPERATORS[type(node.op)], node.operand, at=node)

    def visit__InPlace(self, node: _InPlace) -> Any:
        self.generic_visit(node)
        return self.core(arithmetic.IN_PLACE[type(node.op)], node.left, node.right, at=node)

    def visit_ItemRead(self, node: ItemRead) -> Any:
        value: ast.expr = self.core(item_read, node.status, node.value, at=node)
        if node.part is None:
            return value
        self.analysis.uses_arena = True
        hint = self.constant(list_hint(node.part), node)
        return self.core(item_list, self.run(), value, hint, at=node)

    def visit_RecordMade(self, node: RecordMade) -> Any:
        self.source.native_namespace[node.name] = node.record
        made = ast.copy_location(ast.Name(node.name, ast.Load()), node)
        return ast.copy_location(ast.Call(made, list(map(self.visit, node.elts)), []), node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return self.core(arithmetic.OPERATORS[type(node.op)], node.left, node.right, at=node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        test = self.none_test(node)
        if test is not None:
            return test
        self.generic_visit(node)
        if len(node.ops) == 1:
            return self.comparison(node.ops[0], node.left, node.comparators[0], node)
        # What stands in the middle is evaluated once, and the rest only if all before it holds.
        # Python's own instructions do that; comparison_chains.py makes the operators ours.
        operands = [
            self.core(
                comparison_chains.literal_operand
                if self.is_written_out(one)
                else comparison_chains.operand,
                one,
                at=one,
            )
            for one in (node.left, *node.comparators)
        ]
        return ast.copy_location(ast.Compare(operands[0], node.ops, [*operands[1:]]), node)

    def new_name(self, what: str) -> str:
        """A name that no user can write, and that is assigned in one place only."""
        self.nested.names += 1
        return f"__ss_{what}_{self.nested.names}"

    def visit_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        """Python collects many arguments in a list, which Numba follows in straight code only: what
        chooses among values is evaluated before."""
        node.value = self.visit(node.value)
        call, before = node.value, list[ast.stmt]()
        if isinstance(call, ast.Call) and len(call.args) > _MANY:
            changed = {one.target.id for one in ast.walk(call) if isinstance(one, ast.NamedExpr)}
            for at, given in enumerate(call.args):
                is_name = isinstance(given, ast.Name) and given.id not in changed
                if is_name or isinstance(given, ast.Constant):
                    continue
                name = self.new_name("given")
                before.append(ast.Assign([ast.Name(name, ast.Store())], given))
                call.args[at] = ast.Name(name, ast.Load())
        for one in before:
            ast.fix_missing_locations(ast.copy_location(one, node))
        ast.fix_missing_locations(node)
        return [*before, node]

    def is_written_out(self, node: ast.expr) -> bool:
        is_global = isinstance(node, ast.Name) and node.id in self.check.constants
        return is_global or isinstance(node, ast.Constant)

    def comparison(self, op: ast.cmpop, left: ast.expr, right: ast.expr, node: ast.AST) -> ast.expr:
        if isinstance(op, ast.In | ast.NotIn):
            found: ast.expr = self.core(reductions.contains, left, right, at=node)
            if isinstance(op, ast.NotIn):
                found = self.core(arithmetic.OPERATORS[ast.Not], found, at=node)
            return found
        return self.core(arithmetic.OPERATORS[type(op)], left, right, at=node)

    def text(self, text: str, at: ast.AST) -> ast.expr:
        return self.core(text_of, ast.copy_location(ast.Constant(string_code(text)), at), at=at)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, str):
            self.analysis.strings.append(node.value)
            return self.text(node.value, node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        operator = arithmetic.IN_PLACE[type(node.op)]
        operation = self.core(operator, at=node).func
        if isinstance(node.target, ast.Attribute):
            self.as_owner(node.target, node.value)
        self.source.native_namespace["__ss_slice"] = slice

        def combine(load: ast.expr, value: ast.expr) -> ast.expr:
            if isinstance(load, ast.Subscript):  # of an element, or of a row or slice
                return self.core(updated, load, operation, value, at=node)
            return _InPlace(load, node.op, value)

        return [
            part
            for statement in expand_augmented(node, combine)
            for part in self.statements([statement])
        ]

    def visit_Assign(self, node: ast.Assign) -> Any:
        if isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
            return self.define(node.targets[0].id, node.value, node)
        if any(isinstance(one, ast.Tuple | ast.List) for one in node.targets):
            node.value = self.as_made(node.value)
        if len(node.targets) == 1:
            value = self.visit(node.value)
            if isinstance(node.targets[0], ast.Tuple | ast.List):
                value = self.some(node.value, value)
            return self.assign(node.targets[0], value, node)
        name = self.new_name("value")
        statements: list[ast.stmt] = [
            ast.copy_location(
                ast.Assign([ast.Name(name, ast.Store())], self.visit(node.value)), node
            )
        ]
        for target in node.targets:
            statements += self.assign(target, ast.Name(name, ast.Load()), node)
        return statements

    def assign(self, target: ast.expr, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            return [ast.copy_location(ast.Assign([target], value), node)]
        if isinstance(target, ast.Attribute):
            owner = self.owner(target.value)
            call = self.core(set_field, value, owner, ast.Constant(target.attr), at=node)
            return [ast.copy_location(ast.Expr(call), node)]
        if isinstance(target, ast.Subscript):
            array = self.visit(target.value)
            index = self.index(target.slice)
            call = self.core(set_item, value, array, index, at=node)
            return [ast.copy_location(ast.Expr(call), node)]
        assert isinstance(target, ast.Tuple | ast.List)
        starred = [isinstance(element, ast.Starred) for element in target.elts]
        if any(starred):
            return self.assign_starred(target.elts, starred.index(True), value, node)
        target = ast.copy_location(ast.Tuple(target.elts, ast.Store()), target)
        if all(isinstance(element, ast.Name) for element in target.elts):
            return [ast.copy_location(ast.Assign([target], value), node)]
        names = [self.new_name("part") for _ in target.elts]
        parts: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        statements: list[ast.stmt] = [
            ast.copy_location(ast.Assign([ast.Tuple(parts, ast.Store())], value), node)
        ]
        for name, element in zip(names, target.elts, strict=True):
            statements += self.assign(element, ast.Name(name, ast.Load()), node)
        return statements

    def assign_starred(
        self, targets: list[ast.expr], star: int, value: ast.expr, node: ast.AST
    ) -> list[ast.stmt]:
        """``a, *rest, z = value``: what the star takes is a list, as in Python."""
        name, after = self.new_name("parts"), len(targets) - star - 1
        counts = [ast.copy_location(ast.Constant(count), node) for count in (star, after)]
        self.analysis.uses_arena = True
        if not isinstance(value, ast.Tuple):
            value = self.core(taken_apart, self.run(), value, at=node)
        taken = self.core(unpacked, value, *counts, at=node)
        targets = [one.value if isinstance(one, ast.Starred) else one for one in targets]
        statements = self.assign(ast.Name(name, ast.Store()), taken, node)
        for at, target in enumerate(targets):
            part: ast.expr = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(at), ast.Load())
            if at == star and self.is_read(target):
                part = self.core(listed, self.run(), part, at=node)
            statements += self.assign(target, ast.copy_location(part, node), node)
        return statements

    def is_read(self, target: ast.expr) -> bool:
        """Whether somebody may read what a target is given: ``*_`` is given what nobody wants."""
        return not isinstance(target, ast.Name) or any(
            isinstance(one, ast.Name) and one.id == target.id and isinstance(one.ctx, ast.Load)
            for one in ast.walk(self.source.tree)
        )

    def index(self, node: ast.expr) -> ast.expr:
        """An index as an expression that may be an argument: slices as calls of slice()."""
        if isinstance(node, ast.Tuple):
            return ast.copy_location(
                ast.Tuple([self.index(element) for element in node.elts], ast.Load()), node
            )
        if isinstance(node, ast.Slice):
            self.source.native_namespace["__ss_slice"] = slice
            node = ast.copy_location(without_slices(node), node)
        rewritten: ast.expr = self.visit(node)
        return rewritten

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node.value = self.some(node.value, self.visit(node.value))
        node.slice = self.visit(node.slice)
        return node

    def visit_Slice(self, node: ast.Slice) -> Any:
        ends = _bounds_for_none(node.step)
        self.generic_visit(node)
        parts = self.slice_bounds([node.lower, node.upper, node.step], ends)
        return ast.copy_location(ast.Slice(*parts), node)

    def slice_bounds(
        self, parts: list[ast.expr | None], ends: tuple[int | None, ...]
    ) -> list[ast.expr | None]:
        """Lower and upper bound and step, as far as they are there."""
        return [
            None if one is None else self.slice_bound(one, end)
            for one, end in zip(parts, ends, strict=False)
        ]

    def slice_bound(self, bound: ast.expr, end: int | None = None) -> ast.expr:
        """A bound or step as what Numba's slices take: an int64. ``end``: what None stands for."""
        value = bound.value if isinstance(bound, ast.Constant) else ...
        if value is None or (type(value) is int and value <= numbers.INT64_MAX):
            return bound
        if end is not None:
            return self.core(conversions.slice_bound, bound, ast.Constant(end), at=bound)
        return self.core(conversions.slice_bound, bound, at=bound)

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Behind ``if x is None: return`` x is there, as in an else, until it is given again, and
        behind ``if x is None: x = 0``."""
        for at, one in enumerate(body):
            if not isinstance(one, ast.If) or one.orelse:
                continue
            if (name := self.filled_by(one)) is not None:
                rest = range(at + 1, len(body))
                given = next((e for e in rest if name in bound_names(body[e])), len(body))
                begun = super().statements(body[: at + 1])
                self.tested.add(name)
                begun += self.statements(body[at + 1 : given])
                self.tested.remove(name)
                return begun + self.statements(body[given:])
            if not leaves(one.body):
                continue
            ends = range(len(body), at + 1, -1)
            end = next((e for e in ends if self.known_by(one.test, body[at + 1 : e], False)), None)
            if end is not None:
                one.orelse = body[at + 1 : end]
                return super().statements(body[: at + 1]) + self.statements(body[end:])
        return super().statements(body)

    def visit_If(self, node: ast.If) -> Any:
        known = self.known_by(node.test, node.body)
        elsewhere = self.known_by(node.test, node.orelse, holds=False)
        node.test = self.condition(node.test)
        self.there |= known
        node.body = self.statements(node.body) or [ast.copy_location(ast.Pass(), node)]
        self.there -= known
        self.tested |= elsewhere
        node.orelse = self.statements(node.orelse)
        self.tested -= elsewhere
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if is_null_read(node):
            return self.null_read(node)
        if isinstance(node.value, ast.Name) and node.value.id not in self.check.locals:
            module = self.check.resolved.get(node.value.id)
            constants = {math: numbers.MATH_CONSTANTS, np: numbers.NUMPY_CONSTANTS}
            if module in (math, np):
                value = constants[module].get(node.attr)
                if value is None:
                    self.check.refuse(node, f"{node.value.id}.{node.attr} is not called", "call it")
                return ast.copy_location(ast.Constant(value), node)
        node.value = self.owner(node.value)
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self.nested.defined:
            self.check.refuse(
                node,
                f"{node.id!r} is a function and is not called here",
                f"call it, {node.id}(...); to pass it on, write its code where it is called",
            )
        if isinstance(node.ctx, ast.Load) and node.id not in self.check.locals:
            value = self.check.resolved.get(node.id)
            if isinstance(value, str):
                return self.text(value, node)
            if (
                node.id not in self.check.constants
                and node.id != RUN
                and not (node.id.startswith("__ss_"))
            ):
                self.check.refuse(
                    node,
                    f"{node.id!r} is not called, and is not a value",
                    f"call it: {node.id}(...); define another name for a function, or an attribute "
                    "of it, outside the operator",
                )
        if node.id in self.there and isinstance(node.ctx, ast.Load):
            return self.core(none_rules.some, node, at=node)
        if node.id in self.tested and isinstance(node.ctx, ast.Load):
            return self.core(none_rules.tested, node, at=node)
        return node

    def written_before(self, node: ast.Call, callee: ast.Name) -> ast.expr:
        ends = _bounds_for_none(node.args[2] if len(node.args) > 2 else None)
        self.generic_visit(node)
        if callee.id == "__ss_slice":
            bounds = self.slice_bounds(list(node.args), ends)
            node.args = [one for one in bounds if one is not None]
        return node
