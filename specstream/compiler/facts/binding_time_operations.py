"""Binding times of operators, displays, items and comprehensions: their types, and what compiles.

One of the three files of rules behind :mod:`specstream.compiler.facts.binding_times`.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from specstream.compiler.facts import library_types as library
from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_time_base import (
    LETTERS,
    Expressions,
    has_string,
    is_scalar,
    makes_container,
)
from specstream.compiler.facts.dates_and_decimals import is_of_time
from specstream.compiler.facts.fact import CONSTANT, EVENT, STATE, Fact
from specstream.compiler.facts.refused_constructs import (
    REFUSED,
)
from specstream.compiler.facts.value_types import ANY, BOOL, FLOAT, INT, STR, Type
from specstream.compiler.language.operations import refusal

__all__ = ["Operations"]

_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _moved_in_time(op: ast.operator, left: Type, right: Type) -> Type | None:
    """Binding times of ``+`` and ``-``: a time or date plus or minus a number is one."""
    if isinstance(op, ast.Add | ast.Sub) and (left, right) == (INT, INT):
        for one, other in ((left, right), (right, left)):
            is_moved = one.counts is not None and other.counts is None
            if is_moved and not one.is_computed and not pa.types.is_decimal(one.counts.arrow):
                return None if one is right and isinstance(op, ast.Sub) else one
    return None


def _is_compared(given: Type | None) -> bool:
    """Whether a comparison of such operands compiles: scalars, or tuples or lists of such."""
    if given is not None and given.name in ("tuple", "list"):
        return all(map(_is_compared, given.of))
    return is_scalar(given)


class Operations(Expressions):
    """What is known of operations."""

    def of_BoolOp(self, node: ast.BoolOp) -> Fact:
        parts = [self.of(value) for value in node.values]
        compiled = {part.compiled for part in parts}
        same = len(compiled) == 1 and is_scalar(parts[0].compiled)
        mixed = all(part.compiled is not None and is_scalar(part.compiled) for part in parts)
        self.meet(node.values, are_alike=True)
        given = of.chosen(node.op, [self.type_here(value) for value in node.values])
        return self.joined(parts, given, same or mixed)

    def of_IfExp(self, node: ast.IfExp) -> Fact:
        test, body, orelse = self.truth(node.test), self.of(node.body), self.of(node.orelse)
        self.meet([node.body, node.orelse], are_alike=True)
        parts = ((node.body, True), (node.orelse, False))
        given = of.join(
            of.required(self.type_here(one))
            if self.is_there(one, node.test, holds)
            else self.type_here(one)
            for one, holds in parts
        )
        compiles = None not in (test.compiled, body.compiled, orelse.compiled)
        found = self.joined([test, body, orelse], given, compiles)
        if compiles and body.compiled == orelse.compiled:
            found = replace(found, compiled=body.compiled)
        return found

    def of_UnaryOp(self, node: ast.UnaryOp) -> Fact:
        if isinstance(node.op, ast.Not):
            return self.truth(node)
        operand = self.of(node.operand)
        given = INT if isinstance(node.op, ast.Invert) else of.required(operand.type)
        given = of.computed(INT, given) if given in (INT, BOOL) else given
        return self.joined([operand], given, self.is_number(operand))

    def of_BinOp(self, node: ast.BinOp) -> Fact:
        left, right = self.of(node.left), self.of(node.right)
        kinds = (left.compiled, right.compiled)
        if isinstance(node.op, _BITS) and STR in kinds and set(kinds) <= {STR, INT, BOOL, ANY}:
            # The bits of a string are those of its code, which Python's strings have not got.
            return Fact(STATE, INT, INT, left.bound | right.bound)
        self.meet([node.left, node.right])
        if isinstance(node.op, ast.Mod) and left.type == STR:
            self.fill_in(node.right)
        else:
            self.check_operation(node)
        types = [of.required(self.type_here(one)) for one in (node.left, node.right)]
        given = library.operation(node.op, *types)
        given = _moved_in_time(node.op, *types) or of.computed(given, *types)
        given = ANY if node in self.never else given
        if isinstance(node.op, ast.Add) and self.is_text_and_unknown(left, right):
            given = STR  # or it raises
        power: Any = getattr(node.right, "value", None)
        if isinstance(node.op, ast.Pow) and left.type == INT and type(power) is int and power >= 0:
            given = INT
        if STR in kinds and given == ANY:
            return Fact(STATE, ANY, ANY, left.bound | right.bound)  # no such: to be refused
        compiles = self.is_number(left) and self.is_number(right)
        is_wide = given == INT and (left.is_wide or right.is_wide)
        if is_wide and max(left.depends, right.depends) < STATE:
            # A remainder of what fits does fit.
            is_small = isinstance(node.op, ast.Mod) and not right.is_wide
            is_small = is_small or (isinstance(node.op, ast.BitAnd) and not right.is_wide)
            return replace(self.joined([left, right], given, False), is_wide=not is_small)
        if makes_container(node):  # [0.0] * n
            compiles = None not in kinds
        found = self.joined([left, right], given, compiles)
        tuples = [one for one in kinds if one is not None and one.name == "tuple"]
        if isinstance(node.op, ast.Add) and len(tuples) == 2:
            joined = of.tuple_of(*(part for one in tuples for part in one.of))
            found = replace(found, compiled=joined)
        return found

    @staticmethod
    def is_text_and_unknown(*operands: Fact) -> bool:
        """Whether one is a string, and the other what only Python knows."""
        unknown = [one for one in operands if one.type == ANY and one.compiled is None]
        are_known = max(one.depends for one in operands) < STATE
        return are_known and len(unknown) == 1 and STR in [one.type for one in operands]

    def of_Compare(self, node: ast.Compare) -> Fact:
        nodes = [node.left, *node.comparators]
        operands = [self.of(one) for one in nodes]
        self.meet(nodes)
        for op, left, right in zip(node.ops, nodes, nodes[1:], strict=False):
            self.check_compared(node, op, left, right)
        depends = max(one.depends for one in operands)
        compiles = all(
            self.compares(op, left, right, node.comparators[at], depends)
            for at, (op, left, right) in enumerate(
                zip(node.ops, operands, operands[1:], strict=False)
            )
        )
        return self.joined(operands, BOOL, compiles)

    def compares(
        self, op: ast.cmpop, left: Fact, right: Fact, container: ast.expr, depends: int
    ) -> bool:
        """Whether compiled code has the comparison, or is to say that it has not; ``depends``: on
        what the whole chain does, as strings are compared before the operator runs if that can be.
        """
        written: Any = container.value if isinstance(container, ast.Constant) else ...
        is_singleton = written is None or isinstance(written, bool)
        if isinstance(op, ast.Is | ast.IsNot) and is_singleton:
            return left.compiled is not None
        if written is None:
            return left.compiled is not None
        if refusal(type(op)) is not None:
            return False
        if left.compiled is None or (right.compiled is None and not isinstance(op, ast.In)):
            return left.depends == STATE or right.depends == STATE
        if isinstance(op, ast.In | ast.NotIn):
            if right.compiled == STR and depends == STATE:
                return left.compiled in (STR, ANY)
            return right.compiled not in (None, *LETTERS) and _is_compared(left.compiled)
        kinds = (left.compiled, right.compiled)
        if isinstance(op, _ORDER) and (
            kinds == (STR, STR) or any(has_string(one) for one in kinds if one is not None)
        ):
            return depends == STATE
        return all(map(_is_compared, kinds))

    def of_JoinedStr(self, node: ast.JoinedStr) -> Fact:
        parts = [self.of(value) for value in node.values]
        return self.joined(parts, STR, False)

    def of_FormattedValue(self, node: ast.FormattedValue) -> Fact:
        parts = [self.of(node.value)]
        if is_of_time(node.format_spec) and parts[0].depends < STATE:
            self.make_own(node.value)
        if node.format_spec is not None:
            parts.append(self.of(node.format_spec))
        return self.joined(parts, STR, False)

    def of_Tuple(self, node: ast.Tuple) -> Fact:
        if any(isinstance(one, ast.Starred) for one in node.elts):
            return self.display(node, ANY)
        return self.display(node, of.tuple_of(*(self.of(one).type for one in node.elts)))

    def of_List(self, node: ast.List) -> Fact:
        self.meet(node.elts, are_alike=True)
        return self.display(node, of.list_of(of.join(self.type_here(one) for one in node.elts)))

    of_Set = of_List

    def display(self, node: ast.Tuple | ast.List | ast.Set, given: Type) -> Fact:
        parts = [self.of(one) for one in node.elts]
        compiles = type(node) not in REFUSED and all(part.compiled for part in parts)
        found = self.joined(parts, given, compiles)
        if compiles and isinstance(node, ast.Tuple) and given != ANY:
            compiled = tuple(part.compiled for part in parts if part.compiled)
            return replace(found, compiled=of.tuple_of(*compiled))
        return replace(found, compiled=ANY) if compiles else found

    def of_Dict(self, node: ast.Dict) -> Fact:
        parts = [self.of(one) for one in (*node.keys, *node.values) if one is not None]
        written = [one for one in node.keys if one is not None]
        self.meet(node.values)
        self.meet(written)
        values = of.join(map(self.type_here, node.values))
        compiles = ast.Dict not in REFUSED and all(part.compiled for part in parts)
        keys = of.join(map(self.type_here, written))
        found = self.joined(parts, of.dict_of(values, keys), compiles)
        return replace(found, compiled=ANY) if compiles else found

    def of_NamedExpr(self, node: ast.NamedExpr) -> Fact:
        value = self.of(node.value)
        if ast.NamedExpr in REFUSED and value.depends == EVENT:
            return replace(value, compiled=None, is_staged=False)
        return replace(value, is_staged=False)

    # ---- elements ----

    def of_Subscript(self, node: ast.Subscript) -> Fact:
        owner, index = self.of(node.value), self.of(node.slice)
        parts = [owner, index]
        is_view = owner.depends == STATE and owner.type == ANY
        if is_view or self.is_event(node.value):
            return Fact(STATE, ANY, ANY, owner.bound | index.bound)
        whole = of.required(owner.type)
        if whole.name == "dict":
            self.meet([node.value, node.slice])
            whole = of.required(self.type_here(node.value))
        if isinstance(node.slice, ast.Slice):
            given = whole if whole.name != "tuple" else ANY
        elif (
            whole.of and whole.name in ("tuple", "object") and isinstance(node.slice, ast.Constant)
        ):
            at: Any = node.slice.value
            is_there = isinstance(at, int) and -len(whole.of) <= at < len(whole.of)
            given = whole.of[at] if is_there else ANY
        elif whole.name == "dict":
            given = whole.of[0]
        elif whole.name == "Match" and isinstance(node.slice, ast.Constant):
            given = library.method(whole, "group", [node.slice], [])
        else:
            given = of.element(whole)
        compiles = owner.compiled is not None and owner.compiled not in LETTERS
        cls = self.constant(node.value)
        if isinstance(cls, type) and issubclass(cls, enum.Enum):
            given, compiles = of.of_class(cls), False
        is_dict = whole.name == "dict" and index.compiled is not None
        compiles = compiles and (
            self.is_number(index) or isinstance(node.slice, ast.Slice) or is_dict
        )
        return self.held(self.joined(parts, given, compiles))

    def of_Slice(self, node: ast.Slice) -> Fact:
        parts = [self.of(one) for one in (node.lower, node.upper, node.step) if one is not None]
        return self.joined(parts, ANY, all(part.compiled for part in parts))

    def of_Starred(self, node: ast.Starred) -> Fact:
        """By itself it is no value, and never staged."""
        value = self.of(node.value)
        compiles = value.compiled is not None and value.compiled not in LETTERS
        return replace(value, type=ANY, compiled=ANY if compiles else None, is_staged=False)

    # ---- what binds names of its own ----

    def of_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> Fact:
        parts, given = self.comprehended(node.generators, [node.elt])
        return self.comprehension(node, parts, of.list_of(given[0]))

    of_ListComp = of_SetComp = of_GeneratorExp

    def of_DictComp(self, node: ast.DictComp) -> Fact:
        parts, given = self.comprehended(node.generators, [node.key, node.value])
        return self.comprehension(node, parts, of.dict_of(given[1], given[0]))

    def comprehension(self, node: ast.expr, parts: list[Fact], given: Type) -> Fact:
        compiles = type(node) not in REFUSED and all(part.compiled for part in parts)
        found = self.joined(parts, given, compiles)
        compiled = ANY if compiles else None
        generators = node.generators  # type: ignore[attr-defined]
        own = {len(self.bound)} | {
            number for number, one in self.loops.items() if one in generators
        }
        return replace(found, compiled=compiled, bound=found.bound - own)

    def comprehended(
        self, generators: list[ast.comprehension], results: list[ast.expr]
    ) -> tuple[list[Fact], list[Type]]:
        parts = []
        self.bound.append({})
        for one in generators:
            iterated = self.of(one.iter)
            parts.append(iterated)
            is_first = one is generators[0]
            items = self.goes_through(one) if is_first or self.is_of_records(one) else None
            if items is not None and self.take_apart(one, items):
                parts += [replace(iterated, compiled=None), *map(self.truth, one.ifs)]
                continue
            if of.required(iterated.type) in LETTERS:
                parts.append(replace(iterated, compiled=None))
            element = of.element(iterated.type) if iterated.depends < STATE else ANY
            is_known = iterated.compiled is not None and of.required(iterated.type) not in LETTERS
            for name, given in self.targets(one.target, element):
                compiled = given if is_known or given in (STR, INT, FLOAT, BOOL) else None
                inside = iterated.bound | {len(self.bound) - 1}
                self.bound[-1][name] = Fact(iterated.depends, given, compiled, inside)
            parts += [self.truth(test) for test in one.ifs]
        found = [self.of(result) for result in results]
        self.bound.pop()
        return [*parts, *found], [one.type for one in found]

    def targets(self, target: ast.expr, given: Type) -> Iterator[tuple[str, Type]]:
        """The names of a loop's target, and what they are."""
        if isinstance(target, ast.Name):
            yield target.id, given
        elif isinstance(target, ast.Tuple | ast.List):
            for at, one in enumerate(target.elts):
                is_star = isinstance(one, ast.Starred)
                yield from self.targets(
                    one.value if isinstance(one, ast.Starred) else one,
                    ANY if is_star else self.item(given, at, len(target.elts)),
                )

    def of_Lambda(self, node: ast.Lambda) -> Fact:
        names = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        inside = frozenset({len(self.bound)})
        self.bound.append({name: Fact(CONSTANT, ANY, ANY, inside) for name in names})
        body = self.of(node.body)
        self.bound.pop()
        compiled = None if ast.Lambda in REFUSED or body.compiled is None else ANY
        return Fact(body.depends, ANY, compiled, body.bound - inside)
