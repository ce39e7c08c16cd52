"""Binding times of operators, displays, items and comprehensions: their types, and what compiles.

Rules of :mod:`specstream.compiler.facts.binding_times`.
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
    has_string,
    held,
    is_number,
    is_scalar,
    item,
    joined,
    makes_container,
)
from specstream.compiler.facts.binding_times import BindingTimes, Rule
from specstream.compiler.facts.dates_and_decimals import is_of_time
from specstream.compiler.facts.fact import CONSTANT, EVENT, STATE, Fact
from specstream.compiler.facts.refused_constructs import (
    REFUSED,
)
from specstream.compiler.facts.value_types import ANY, BOOL, FLOAT, INT, STR, Type
from specstream.compiler.language.operations import refusal

__all__ = ["RULES"]

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


def _of_bool_op(times: BindingTimes, node: ast.BoolOp) -> Fact:
    parts = [times.of(value) for value in node.values]
    compiled = {part.compiled for part in parts}
    same = len(compiled) == 1 and is_scalar(parts[0].compiled)
    mixed = all(part.compiled is not None and is_scalar(part.compiled) for part in parts)
    times.dates.meet(node.values, are_alike=True)
    given = of.chosen(node.op, [times.dates.type_here(value) for value in node.values])
    return joined(parts, given, same or mixed)


def _of_if_exp(times: BindingTimes, node: ast.IfExp) -> Fact:
    test, body, orelse = times.truth(node.test), times.of(node.body), times.of(node.orelse)
    times.dates.meet([node.body, node.orelse], are_alike=True)
    parts = ((node.body, True), (node.orelse, False))
    given = of.join(
        of.required(times.dates.type_here(one))
        if times.elements.is_there(one, node.test, holds)
        else times.dates.type_here(one)
        for one, holds in parts
    )
    compiles = None not in (test.compiled, body.compiled, orelse.compiled)
    found = joined([test, body, orelse], given, compiles)
    if compiles and body.compiled == orelse.compiled:
        found = replace(found, compiled=body.compiled)
    return found


def _of_unary_op(times: BindingTimes, node: ast.UnaryOp) -> Fact:
    if isinstance(node.op, ast.Not):
        return times.truth(node)
    operand = times.of(node.operand)
    given = INT if isinstance(node.op, ast.Invert) else of.required(operand.type)
    given = of.computed(INT, given) if given in (INT, BOOL) else given
    return joined([operand], given, is_number(operand))


def _of_bin_op(times: BindingTimes, node: ast.BinOp) -> Fact:
    left, right = times.of(node.left), times.of(node.right)
    kinds = (left.compiled, right.compiled)
    if isinstance(node.op, _BITS) and STR in kinds and set(kinds) <= {STR, INT, BOOL, ANY}:
        # The bits of a string are those of its code, which Python's strings have not got.
        return Fact(STATE, INT, INT, left.bound | right.bound)
    times.dates.meet([node.left, node.right])
    if isinstance(node.op, ast.Mod) and left.type == STR:
        times.dates.fill_in(node.right)
    else:
        times.dates.check_operation(node)
    types = [of.required(times.dates.type_here(one)) for one in (node.left, node.right)]
    given = library.operation(node.op, *types)
    given = _moved_in_time(node.op, *types) or of.computed(given, *types)
    given = ANY if node in times.dates.never else given
    if isinstance(node.op, ast.Add) and _is_text_and_unknown(left, right):
        given = STR  # or it raises
    power: Any = getattr(node.right, "value", None)
    if isinstance(node.op, ast.Pow) and left.type == INT and type(power) is int and power >= 0:
        given = INT
    if STR in kinds and given == ANY:
        return Fact(STATE, ANY, ANY, left.bound | right.bound)  # no such: to be refused
    compiles = is_number(left) and is_number(right)
    is_wide = given == INT and (left.is_wide or right.is_wide)
    if is_wide and max(left.depends, right.depends) < STATE:
        # A remainder of what fits does fit.
        is_small = isinstance(node.op, ast.Mod) and not right.is_wide
        is_small = is_small or (isinstance(node.op, ast.BitAnd) and not right.is_wide)
        return replace(joined([left, right], given, False), is_wide=not is_small)
    if makes_container(node):  # [0.0] * n
        compiles = None not in kinds
    found = joined([left, right], given, compiles)
    tuples = [one for one in kinds if one is not None and one.name == "tuple"]
    if isinstance(node.op, ast.Add) and len(tuples) == 2:
        both = of.tuple_of(*(part for one in tuples for part in one.of))
        found = replace(found, compiled=both)
    return found


def _is_text_and_unknown(*operands: Fact) -> bool:
    """Whether one is a string, and the other what only Python knows."""
    unknown = [one for one in operands if one.type == ANY and one.compiled is None]
    are_known = max(one.depends for one in operands) < STATE
    return are_known and len(unknown) == 1 and STR in [one.type for one in operands]


def _of_compare(times: BindingTimes, node: ast.Compare) -> Fact:
    nodes = [node.left, *node.comparators]
    operands = [times.of(one) for one in nodes]
    times.dates.meet(nodes)
    for op, left, right in zip(node.ops, nodes, nodes[1:], strict=False):
        times.dates.check_compared(node, op, left, right)
    depends = max(one.depends for one in operands)
    compiles = all(
        _compares(op, left, right, node.comparators[at], depends)
        for at, (op, left, right) in enumerate(zip(node.ops, operands, operands[1:], strict=False))
    )
    return joined(operands, BOOL, compiles)


def _compares(op: ast.cmpop, left: Fact, right: Fact, container: ast.expr, depends: int) -> bool:
    """Whether compiled code has the comparison, or is to say that it has not; ``depends``: on what
    the whole chain does, as strings are compared before the operator runs if that can be."""
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


def _of_joined_str(times: BindingTimes, node: ast.JoinedStr) -> Fact:
    parts = [times.of(value) for value in node.values]
    return joined(parts, STR, False)


def _of_formatted_value(times: BindingTimes, node: ast.FormattedValue) -> Fact:
    parts = [times.of(node.value)]
    if is_of_time(node.format_spec) and parts[0].depends < STATE:
        times.dates.make_own(node.value)
    if node.format_spec is not None:
        parts.append(times.of(node.format_spec))
    return joined(parts, STR, False)


def _of_tuple(times: BindingTimes, node: ast.Tuple) -> Fact:
    if any(isinstance(one, ast.Starred) for one in node.elts):
        return _display(times, node, ANY)
    return _display(times, node, of.tuple_of(*(times.of(one).type for one in node.elts)))


def _of_list(times: BindingTimes, node: ast.List) -> Fact:
    times.dates.meet(node.elts, are_alike=True)
    return _display(
        times, node, of.list_of(of.join(times.dates.type_here(one) for one in node.elts))
    )


def _display(times: BindingTimes, node: ast.Tuple | ast.List | ast.Set, given: Type) -> Fact:
    parts = [times.of(one) for one in node.elts]
    compiles = type(node) not in REFUSED and all(part.compiled for part in parts)
    found = joined(parts, given, compiles)
    if compiles and isinstance(node, ast.Tuple) and given != ANY:
        compiled = tuple(part.compiled for part in parts if part.compiled)
        return replace(found, compiled=of.tuple_of(*compiled))
    return replace(found, compiled=ANY) if compiles else found


def _of_dict(times: BindingTimes, node: ast.Dict) -> Fact:
    parts = [times.of(one) for one in (*node.keys, *node.values) if one is not None]
    written = [one for one in node.keys if one is not None]
    times.dates.meet(node.values)
    times.dates.meet(written)
    values = of.join(map(times.dates.type_here, node.values))
    compiles = ast.Dict not in REFUSED and all(part.compiled for part in parts)
    keys = of.join(map(times.dates.type_here, written))
    found = joined(parts, of.dict_of(values, keys), compiles)
    return replace(found, compiled=ANY) if compiles else found


def _of_named_expr(times: BindingTimes, node: ast.NamedExpr) -> Fact:
    value = times.of(node.value)
    if ast.NamedExpr in REFUSED and value.depends == EVENT:
        return replace(value, compiled=None, is_staged=False)
    return replace(value, is_staged=False)


def _of_subscript(times: BindingTimes, node: ast.Subscript) -> Fact:
    owner, index = times.of(node.value), times.of(node.slice)
    parts = [owner, index]
    is_view = owner.depends == STATE and owner.type == ANY
    if is_view or times.is_event(node.value):
        return Fact(STATE, ANY, ANY, owner.bound | index.bound)
    whole = of.required(owner.type)
    if whole.name == "dict":
        times.dates.meet([node.value, node.slice])
        whole = of.required(times.dates.type_here(node.value))
    if isinstance(node.slice, ast.Slice):
        given = whole if whole.name != "tuple" else ANY
    elif whole.of and whole.name in ("tuple", "object") and isinstance(node.slice, ast.Constant):
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
    cls = times.constant(node.value)
    if isinstance(cls, type) and issubclass(cls, enum.Enum):
        given, compiles = of.of_class(cls), False
    is_dict = whole.name == "dict" and index.compiled is not None
    compiles = compiles and (is_number(index) or isinstance(node.slice, ast.Slice) or is_dict)
    return held(joined(parts, given, compiles))


def _of_slice(times: BindingTimes, node: ast.Slice) -> Fact:
    parts = [times.of(one) for one in (node.lower, node.upper, node.step) if one is not None]
    return joined(parts, ANY, all(part.compiled for part in parts))


def _of_starred(times: BindingTimes, node: ast.Starred) -> Fact:
    """By itself it is no value, and never staged."""
    value = times.of(node.value)
    compiles = value.compiled is not None and value.compiled not in LETTERS
    return replace(value, type=ANY, compiled=ANY if compiles else None, is_staged=False)


def _of_generator_exp(
    times: BindingTimes, node: ast.GeneratorExp | ast.ListComp | ast.SetComp
) -> Fact:
    parts, given = _comprehended(times, node.generators, [node.elt])
    return _comprehension(times, node, parts, of.list_of(given[0]))


def _of_dict_comp(times: BindingTimes, node: ast.DictComp) -> Fact:
    parts, given = _comprehended(times, node.generators, [node.key, node.value])
    return _comprehension(times, node, parts, of.dict_of(given[1], given[0]))


def _comprehension(times: BindingTimes, node: ast.expr, parts: list[Fact], given: Type) -> Fact:
    compiles = type(node) not in REFUSED and all(part.compiled for part in parts)
    found = joined(parts, given, compiles)
    compiled = ANY if compiles else None
    generators = node.generators  # type: ignore[attr-defined]
    own = {len(times.bound)} | {
        number for number, one in times.elements.loops.items() if one in generators
    }
    return replace(found, compiled=compiled, bound=found.bound - own)


def _comprehended(
    times: BindingTimes, generators: list[ast.comprehension], results: list[ast.expr]
) -> tuple[list[Fact], list[Type]]:
    parts = []
    times.bound.append({})
    for one in generators:
        iterated = times.of(one.iter)
        parts.append(iterated)
        is_first = one is generators[0]
        items = (
            times.elements.goes_through(one)
            if is_first or times.elements.is_of_records(one)
            else None
        )
        facts = None if items is None else times.elements.taken_apart(one, items)
        if facts is not None:
            times.bound[-1] |= facts
            parts += [replace(iterated, compiled=None), *map(times.truth, one.ifs)]
            continue
        if of.required(iterated.type) in LETTERS:
            parts.append(replace(iterated, compiled=None))
        element = of.element(iterated.type) if iterated.depends < STATE else ANY
        is_known = iterated.compiled is not None and of.required(iterated.type) not in LETTERS
        for name, given in _targets(times, one.target, element):
            compiled = given if is_known or given in (STR, INT, FLOAT, BOOL) else None
            inside = iterated.bound | {len(times.bound) - 1}
            times.bound[-1][name] = Fact(iterated.depends, given, compiled, inside)
        parts += [times.truth(test) for test in one.ifs]
    found = [times.of(result) for result in results]
    times.bound.pop()
    return [*parts, *found], [one.type for one in found]


def _targets(times: BindingTimes, target: ast.expr, given: Type) -> Iterator[tuple[str, Type]]:
    """The names of a loop's target, and what they are."""
    if isinstance(target, ast.Name):
        yield target.id, given
    elif isinstance(target, ast.Tuple | ast.List):
        for at, one in enumerate(target.elts):
            is_star = isinstance(one, ast.Starred)
            yield from _targets(
                times,
                one.value if isinstance(one, ast.Starred) else one,
                ANY if is_star else item(given, at, len(target.elts)),
            )


def _of_lambda(times: BindingTimes, node: ast.Lambda) -> Fact:
    names = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
    inside = frozenset({len(times.bound)})
    times.bound.append({name: Fact(CONSTANT, ANY, ANY, inside) for name in names})
    body = times.of(node.body)
    times.bound.pop()
    compiled = None if ast.Lambda in REFUSED or body.compiled is None else ANY
    return Fact(body.depends, ANY, compiled, body.bound - inside)


RULES: dict[type[ast.expr], Rule] = {
    ast.BoolOp: _of_bool_op,
    ast.IfExp: _of_if_exp,
    ast.UnaryOp: _of_unary_op,
    ast.BinOp: _of_bin_op,
    ast.Compare: _of_compare,
    ast.JoinedStr: _of_joined_str,
    ast.FormattedValue: _of_formatted_value,
    ast.Tuple: _of_tuple,
    ast.List: _of_list,
    ast.Dict: _of_dict,
    ast.NamedExpr: _of_named_expr,
    ast.Subscript: _of_subscript,
    ast.Slice: _of_slice,
    ast.Starred: _of_starred,
    ast.GeneratorExp: _of_generator_exp,
    ast.DictComp: _of_dict_comp,
    ast.Lambda: _of_lambda,
    ast.Set: _of_list,
    ast.ListComp: _of_generator_exp,
    ast.SetComp: _of_generator_exp,
}
