"""What an expression depends on, of what type it is, and whether it can be compiled.

Of each expression of a function this finds whether it depends on the event and constants alone. If
it does and cannot be compiled, and a column can hold what it gives, it is *lifted*: Python computes
it before the operator runs (:mod:`specstream.compiler.lifting`). What gives something else, like
the list of ``event.name.split("-")``, makes what stands around it such an expression:
``event.name.split("-")[0]``.

A local name counts as the event's if it is assigned in one place only, and from what depends on the
event alone. The analysis of definite assignment sees to it that no read comes before; and what
depends on the event alone has one value for as long as the event runs, however often a loop assigns
it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from specstream.columns.instants import when
from specstream.compiler import value_types as of
from specstream.compiler.analysis import FunctionSource
from specstream.compiler.check import (
    FORBIDDEN_CALLS,
    FORBIDDEN_MODULES,
    REFUSED,
    builtin_name,
    is_constant,
    is_container,
    math_name,
)
from specstream.compiler.elements import Elements, captured
from specstream.compiler.found import CONSTANT, EVENT, STATE, Binding, Found
from specstream.compiler.frozen_types import can_freeze
from specstream.compiler.list_use import groups_found, made_of
from specstream.compiler.value_types import ANY, BOOL, FLOAT, INT, NONE, STR, Type
from specstream.declarations.pure import pure_mark
from specstream.declarations.schema import Schema
from specstream.declarations.updates import update_name

__all__ = [
    "CONSTANT",
    "EVENT",
    "MISSING",
    "STATE",
    "Binding",
    "EventAlone",
    "Found",
    "declared_type",
    "look_up",
]

MISSING = object()

_KINDS = {"int": INT, "float": FLOAT, "bool": BOOL, "str": STR}
_LETTERS = (STR, of.BYTES)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# Of types that are otherwise fine: what they give depends on when they are called.
_PARAMETER = frozenset({-1})
_IMPURE = {"now", "today", "utcnow", "random", "urandom", "uuid1", "uuid4"}


def look_up(function: types.FunctionType, name: str) -> Any:
    """What a name that is not local stands for in a function; MISSING: nothing."""
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING
    return function.__globals__.get(name, getattr(builtins, name, MISSING))


# Methods of numbers that are compiled.
_OF_NUMBERS = {"is_integer": BOOL, "bit_count": INT, "bit_length": INT}


class EventAlone(Elements):
    """The expressions of one function.

    Args:
        source: the function.
        schema: of the event.
        events: parameters that are the event.
        parameters: of other parameters, what is known of them.
        parse: gives the source of functions that are called.

    Attributes:
        found: what is known of each expression that was asked about.
        truths: expressions of which only the truth is lifted.
        bindings: the names that are assigned in one place.
    """

    def __init__(
        self,
        source: FunctionSource,
        schema: Schema,
        events: frozenset[str],
        parameters: dict[str, Found],
        parse: Callable[[types.FunctionType], FunctionSource],
    ) -> None:
        self.source = source
        self.schema = schema
        self.events = events
        self.parameters = parameters
        self.parse = parse
        self.found: dict[ast.expr, Found] = {}
        self.truths: set[ast.expr] = set()
        self.locals, self.bindings = _bindings(source.tree)
        self.bound: list[dict[str, Found]] = []
        self.open: set[str] = set()
        self.frozen: dict[int, bool] = {}
        super().__init__()

    def of(self, node: ast.expr) -> Found:
        """What is known of an expression."""
        known = self.found.get(node)
        if known is None:
            rule = getattr(self, f"of_{type(node).__name__}", self.of_other)
            known = self.found[node] = self.lifted(rule(node))
        return known

    def lifted(self, found: Found) -> Found:
        """The same, lifted where it has to be and can be."""
        if found.depends == EVENT and found.compiled is None:
            of_element = self.is_of_element(found) and of.is_scalar(found.type)
            if of_element or (not found.is_bound and of.is_column(found.type)):
                return replace(found, compiled=found.type, is_lifted=True)
        return found

    def truth(self, node: ast.expr) -> Found:
        """What is known of an expression of which only the truth matters."""
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(value) for value in node.values]
            known = self.joined(parts, BOOL, all(part.compiled for part in parts))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = self.truth(node.operand)
            known = replace(operand, type=BOOL, is_lifted=False)
            known = replace(known, compiled=BOOL if operand.compiled else None)
        else:
            known = self.of(node)
            if known.compiled is not None and _is_scalar(known.compiled):
                return known
            if known.depends == EVENT and (not known.is_bound or self.is_of_element(known)):
                self.truths.add(node)
                known = replace(known, type=BOOL, compiled=BOOL, is_lifted=True)
            else:
                known = replace(known, type=BOOL)
        known = self.found[node] = self.lifted(known)
        return known

    @staticmethod
    def joined(parts: list[Found], given: Type, compiles: bool) -> Found:
        """What is made of parts and gives a type."""
        return Found(
            max((part.depends for part in parts), default=CONSTANT),
            given,
            of.required(given) if compiles else None,
            _bound(parts),
        )

    def of_other(self, node: ast.expr) -> Found:
        """What is computed where it stands; parts of it may be lifted."""
        parts = [self.of(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return Found(STATE, ANY, ANY, _bound(parts))

    # ---- names ----

    def of_Constant(self, node: ast.Constant) -> Found:
        given = of.of_value(node.value)
        return Found(CONSTANT, given, given)

    def of_Name(self, node: ast.Name) -> Found:
        for scope in reversed(self.bound):
            if node.id in scope:
                return scope[node.id]
        if node.id in self.parameters:
            return self.parameters[node.id]
        if node.id in self.locals:
            return self.of_local(node.id)
        value = look_up(self.source.original, node.id)
        if value is MISSING or self.is_frozen(value):
            return Found(STATE, ANY, ANY)
        given = of.of_value(value)
        return Found(CONSTANT, given, given if is_constant(value) else None)

    def of_local(self, name: str) -> Found:
        """What is known of a local name: that of the value which it is given, if there is one."""
        binding = self.bindings.get(name)
        if binding is None or name in self.open:
            return Found(STATE, ANY, ANY)
        self.open.add(name)
        bound, self.bound = self.bound, []
        value = self.of(binding.value)
        self.bound = bound
        if binding.loop is not None:
            element = self.element(binding)
            self.open.remove(name)
            return element
        self.open.remove(name)
        if value.depends == STATE or (value.compiled is not None and _makes(binding.value)):
            return Found(STATE, ANY, ANY)  # the latter: statements change what it holds
        is_whole = binding.at is None or binding.at[0] == binding.star
        if is_whole and of.required(value.type).name in ("list", "dict") and name in self.changed:
            return Found(STATE, ANY, ANY)
        if isinstance(binding.value, ast.DictComp):
            first = binding.value.generators[0]
            if self.goes_through(first) is not None:
                return Found(STATE, ANY, ANY)  # compiled code makes the dict
        inside = value.bound & self.loops.keys()
        if not all(self.stays_in(name, self.loops[one]) for one in inside):
            return Found(STATE, ANY, ANY)
        declared = None if binding.annotation is None else of.annotated(binding.annotation)
        given = declared or value.type
        if binding.at is not None:
            given = self.item(given, *binding.at, binding.star)
        compiled = value.compiled
        if binding.at is not None and compiled is not None:
            compiled = self.item(compiled, *binding.at)
        if compiled is None and declared is not None and value.depends == EVENT:
            compiled = declared if of.is_column(declared) else None
        if binding.at is not None and compiled is None and of.is_column(given):
            compiled = given  # the whole is lifted as a tuple of so many
        if inside and (compiled is None or not of.is_scalar(compiled)):
            compiled = None
        return Found(value.depends, given, compiled, inside)

    @staticmethod
    def item(given: Type, at: int, count: int, star: int | None = None) -> Type:
        given = of.required(given)
        if star is not None:
            return of.list_of(of.element(given)) if at == star else of.element(given)
        if given.name == "tuple":
            return given.of[at] if len(given.of) == count else ANY
        return of.element(given)

    def constant(self, node: ast.expr) -> Any:
        """The value of a global, or of an attribute of one; MISSING: it is no such."""
        if isinstance(node, ast.Name):
            is_local = node.id in self.locals or node.id in self.source.parameters
            if is_local or any(node.id in scope for scope in self.bound):
                return MISSING
            return look_up(self.source.original, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.constant(node.value)
            return MISSING if owner is MISSING else getattr(owner, node.attr, MISSING)
        return MISSING

    def is_frozen(self, value: Any) -> bool:
        """Whether compiled code reads it where it lies: lists, dicts and the like of a module."""
        if value is MISSING or not is_container(value):
            return False
        if id(value) not in self.frozen:
            self.frozen[id(value)] = can_freeze(value)
        return self.frozen[id(value)]

    def is_event(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.events

    def of_Attribute(self, node: ast.Attribute) -> Found:
        if self.is_event(node.value):
            return self.column(node.attr)
        value = self.constant(node)
        if self.is_frozen(value):
            return Found(STATE, ANY, ANY)
        if value is not MISSING:
            given = of.of_value(value)
            return Found(CONSTANT, given, given if is_constant(value) else None)
        owner = self.of(node.value)
        if owner.depends == STATE:
            return Found(STATE, ANY, ANY, owner.bound)
        return self.joined([owner], of.attribute(owner.type, node.attr), False)

    def column(self, name: str) -> Found:
        if name == "timestamp":
            return Found(EVENT, INT, INT)
        if name not in self.schema.names:
            return Found(STATE, ANY, ANY)
        column = self.schema.columns[self.schema.names.index(name)]
        given = _KINDS[column.kind]
        return Found(EVENT, of.optional(given) if column.nullable else given, given)

    # ---- operators ----

    def of_BoolOp(self, node: ast.BoolOp) -> Found:
        parts = [self.of(value) for value in node.values]
        compiled = {part.compiled for part in parts}
        same = len(compiled) == 1 and _is_scalar(parts[0].compiled)
        mixed = all(part.compiled is not None and _is_scalar(part.compiled) for part in parts)
        return self.joined(parts, of.join(part.type for part in parts), same or mixed)

    def of_IfExp(self, node: ast.IfExp) -> Found:
        test, body, orelse = self.truth(node.test), self.of(node.body), self.of(node.orelse)
        given = of.join((body.type, orelse.type))
        compiles = None not in (test.compiled, body.compiled, orelse.compiled)
        found = self.joined([test, body, orelse], given, compiles)
        if compiles and body.compiled == orelse.compiled:
            found = replace(found, compiled=body.compiled)
        return found

    def of_UnaryOp(self, node: ast.UnaryOp) -> Found:
        if isinstance(node.op, ast.Not):
            return self.truth(node)
        operand = self.of(node.operand)
        given = INT if isinstance(node.op, ast.Invert) else of.required(operand.type)
        return self.joined([operand], given, self.is_number(operand))

    @staticmethod
    def is_number(found: Found) -> bool:
        """Compiled code has a number of it, or what only it knows."""
        return found.compiled is not None and (
            of.is_number(found.compiled) or found.compiled == ANY
        )

    def of_BinOp(self, node: ast.BinOp) -> Found:
        left, right = self.of(node.left), self.of(node.right)
        kinds = (left.compiled, right.compiled)
        if isinstance(node.op, _BITS) and STR in kinds and set(kinds) <= {STR, INT, BOOL, ANY}:
            # The bits of a string are those of its code, which Python's strings have not got.
            return Found(STATE, INT, INT, left.bound | right.bound)
        given = _arithmetic(node.op, of.required(left.type), of.required(right.type))
        if STR in kinds and given == ANY:
            return Found(STATE, ANY, ANY, left.bound | right.bound)  # no such: to be refused
        compiles = self.is_number(left) and self.is_number(right)
        if _makes(node):  # [0.0] * n
            compiles = None not in kinds
        found = self.joined([left, right], given, compiles)
        tuples = [one for one in kinds if one is not None and one.name == "tuple"]
        if isinstance(node.op, ast.Add) and len(tuples) == 2:
            joined = of.tuple_of(*(part for one in tuples for part in one.of))
            found = replace(found, compiled=joined)
        return found

    def of_Compare(self, node: ast.Compare) -> Found:
        operands = [self.of(one) for one in (node.left, *node.comparators)]
        compiles = all(
            self.compares(op, left, right, node.comparators[at])
            for at, (op, left, right) in enumerate(
                zip(node.ops, operands, operands[1:], strict=False)
            )
        )
        return self.joined(operands, BOOL, compiles)

    def compares(self, op: ast.cmpop, left: Found, right: Found, container: ast.expr) -> bool:
        """Whether compiled code has the comparison, or is to say that it has not."""
        written: Any = container.value if isinstance(container, ast.Constant) else ...
        is_singleton = written is None or isinstance(written, bool)
        if isinstance(op, ast.Is | ast.IsNot) and is_singleton:
            return left.compiled is not None
        if written is None:
            return left.compiled is not None
        if type(op) in REFUSED:
            return False
        if left.compiled is None or (right.compiled is None and not isinstance(op, ast.In)):
            return left.depends == STATE or right.depends == STATE
        if isinstance(op, ast.In | ast.NotIn):
            return right.compiled not in (None, *_LETTERS) and _is_compared(left.compiled)
        kinds = (left.compiled, right.compiled)
        if isinstance(op, _ORDER) and (
            kinds == (STR, STR) or any(_has_string(one) for one in kinds if one is not None)
        ):
            return False
        return all(map(_is_compared, kinds))

    def of_JoinedStr(self, node: ast.JoinedStr) -> Found:
        parts = [self.of(value) for value in node.values]
        return self.joined(parts, STR, False)

    def of_FormattedValue(self, node: ast.FormattedValue) -> Found:
        parts = [self.of(node.value)]
        if node.format_spec is not None:
            parts.append(self.of(node.format_spec))
        return self.joined(parts, STR, False)

    def of_Tuple(self, node: ast.Tuple) -> Found:
        return self.display(node, of.tuple_of(*(self.of(one).type for one in node.elts)))

    def of_List(self, node: ast.List) -> Found:
        return self.display(node, of.list_of(of.join(self.of(one).type for one in node.elts)))

    of_Set = of_List

    def display(self, node: ast.Tuple | ast.List | ast.Set, given: Type) -> Found:
        parts = [self.of(one) for one in node.elts]
        compiles = type(node) not in REFUSED and all(part.compiled for part in parts)
        found = self.joined(parts, given, compiles)
        if compiles and isinstance(node, ast.Tuple):
            compiled = tuple(part.compiled for part in parts if part.compiled)
            return replace(found, compiled=of.tuple_of(*compiled))
        return replace(found, compiled=ANY) if compiles else found

    def of_Dict(self, node: ast.Dict) -> Found:
        parts = [self.of(one) for one in (*node.keys, *node.values) if one is not None]
        values = of.join(self.of(one).type for one in node.values) if node.values else ANY
        compiles = ast.Dict not in REFUSED and all(part.compiled for part in parts)
        found = self.joined(parts, Type("dict", (values,)), compiles)
        return replace(found, compiled=ANY) if compiles else found

    def of_NamedExpr(self, node: ast.NamedExpr) -> Found:
        value = self.of(node.value)
        if ast.NamedExpr in REFUSED and value.depends == EVENT:
            return replace(value, compiled=None, is_lifted=False)
        return replace(value, is_lifted=False)

    # ---- elements ----

    def of_Subscript(self, node: ast.Subscript) -> Found:
        owner, index = self.of(node.value), self.of(node.slice)
        parts = [owner, index]
        is_view = owner.depends == STATE and owner.type == ANY
        if is_view or self.is_event(node.value):
            return Found(STATE, ANY, ANY, owner.bound | index.bound)
        whole = of.required(owner.type)
        if isinstance(node.slice, ast.Slice):
            given = whole if whole.name != "tuple" else ANY
        elif whole.name == "tuple" and isinstance(node.slice, ast.Constant):
            at: Any = node.slice.value
            is_there = isinstance(at, int) and -len(whole.of) <= at < len(whole.of)
            given = whole.of[at] if is_there else ANY
        elif whole.name == "dict":
            given = whole.of[0]
        elif whole.name == "match" and isinstance(node.slice, ast.Constant):
            given = of.method(whole, "group", [node.slice], [])
        else:
            given = of.element(whole)
        compiles = owner.compiled is not None and owner.compiled not in _LETTERS
        compiles = compiles and (self.is_number(index) or isinstance(node.slice, ast.Slice))
        return self.joined(parts, given, compiles)

    def of_Slice(self, node: ast.Slice) -> Found:
        parts = [self.of(one) for one in (node.lower, node.upper, node.step) if one is not None]
        return self.joined(parts, ANY, all(part.compiled for part in parts))

    def of_Starred(self, node: ast.Starred) -> Found:
        value = self.of(node.value)
        return replace(value, compiled=None, is_lifted=False)

    # ---- what binds names of its own ----

    def of_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> Found:
        parts, given = self.comprehended(node.generators, [node.elt])
        return self.comprehension(node, parts, of.list_of(given[0]))

    of_ListComp = of_SetComp = of_GeneratorExp

    def of_DictComp(self, node: ast.DictComp) -> Found:
        parts, given = self.comprehended(node.generators, [node.key, node.value])
        return self.comprehension(node, parts, Type("dict", (given[1],)))

    def comprehension(self, node: ast.expr, parts: list[Found], given: Type) -> Found:
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
    ) -> tuple[list[Found], list[Type]]:
        parts = []
        self.bound.append({})
        for one in generators:
            iterated = self.of(one.iter)
            parts.append(iterated)
            items = self.goes_through(one) if one is generators[0] else None
            if items is not None and self.take_apart(one, items):
                parts += [replace(iterated, compiled=None), *map(self.truth, one.ifs)]
                continue
            if of.required(iterated.type) in _LETTERS:
                parts.append(replace(iterated, compiled=None))
            element = of.element(iterated.type) if iterated.depends < STATE else ANY
            is_known = iterated.compiled is not None and of.required(iterated.type) not in _LETTERS
            for name in ast.walk(one.target):
                if isinstance(name, ast.Name):
                    given = element if isinstance(one.target, ast.Name) else ANY
                    compiled = given if is_known or given in (STR, INT, FLOAT, BOOL) else None
                    inside = iterated.bound | {len(self.bound) - 1}
                    self.bound[-1][name.id] = Found(iterated.depends, given, compiled, inside)
            parts += [self.truth(test) for test in one.ifs]
        found = [self.of(result) for result in results]
        self.bound.pop()
        return [*parts, *found], [one.type for one in found]

    def of_Lambda(self, node: ast.Lambda) -> Found:
        names = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        inside = frozenset({len(self.bound)})
        self.bound.append({name: Found(CONSTANT, ANY, ANY, inside) for name in names})
        body = self.of(node.body)
        self.bound.pop()
        compiled = None if ast.Lambda in REFUSED or body.compiled is None else ANY
        return Found(body.depends, ANY, compiled, body.bound - inside)

    # ---- calls ----

    def of_Call(self, node: ast.Call) -> Found:
        parts = [self.of(one) for one in (*node.args, *(one.value for one in node.keywords))]
        callee = node.func
        if isinstance(callee, ast.Attribute) and self.is_event(callee.value):
            is_test = callee.attr == "is_null"
            return Found(EVENT, BOOL, BOOL) if is_test else Found(STATE, ANY, ANY)
        value = self.constant(callee)
        owner_value = self.constant(callee.value) if isinstance(callee, ast.Attribute) else MISSING
        if self.is_frozen(owner_value) or self.is_frozen(value):
            return Found(STATE, ANY, ANY, _bound(parts))
        is_method = isinstance(callee, ast.Attribute) and self.of(callee.value).type != ANY
        if value is not MISSING and not is_method:
            return self.called(node, value, parts)
        if isinstance(callee, ast.Attribute):
            owner = self.of(callee.value)
            if owner.depends == STATE and owner.type == ANY:
                return Found(STATE, ANY, ANY, owner.bound)
            if of.is_number(owner.type) and callee.attr in _OF_NUMBERS and not parts:
                return self.joined([owner], _OF_NUMBERS[callee.attr], True)
            types_given = [self.of(one).type for one in node.args]
            given = of.method(owner.type, callee.attr, node.args, types_given)
            if isinstance(owner_value, re.Pattern) and callee.attr == "findall":
                given = groups_found(owner_value)
            return self.joined([owner, *parts], given, False)
        return Found(STATE, ANY, ANY, _bound(parts))

    def called(self, node: ast.Call, value: Any, parts: list[Found]) -> Found:
        """A call of a global."""
        given = [of.required(part.type) for part in parts]  # of None, they raise
        mark = pure_mark(value)
        if mark is not None:
            return self.joined(parts, of.annotated(mark.returns) or ANY, False)
        if value is when:
            return self.joined(parts, of.WHEN, False)
        if _is_impure(value):
            return Found(STATE, ANY, ANY)
        if isinstance(value, types.FunctionType) and not _is_of_a_library(value):
            return self.helper(node, value, parts)
        if isinstance(value, functools.partial) and isinstance(value.func, types.FunctionType):
            return Found(STATE, ANY, ANY, _bound(parts))
        is_text = any(part.compiled in _LETTERS for part in parts)
        is_of_numbers = all(part.compiled and of.is_number(part.compiled) for part in parts)
        may_compile = is_of_numbers and of.function(value, given) == ANY
        if _is_numeric(value, is_text) or (may_compile and _is_of_the_user(value)):
            return Found(STATE, ANY, ANY, _bound(parts))
        known = builtin_name(value) is not None or math_name(value) is not None
        if value in (bool,) and len(parts) == 1:
            return self.truth_of_call(node, parts[0])
        compiles = known and not is_text and all(part.compiled for part in parts)
        compiles = compiles and not any(
            part.compiled and part.compiled.name == "optional" for part in parts
        )
        if value is float and isinstance(node.args[0] if node.args else None, ast.Constant):
            compiles = True  # of a text that is written out
        is_math = math_name(value) is not None
        result = _of_math(value) if is_math else self.made(node, value, given)
        return self.joined(parts, result, compiles)

    def made(self, node: ast.Call, value: Any, given: list[Type]) -> Type:
        """What a function gives that is no user's."""

        def result(element: Type) -> Type:
            function = self.constant(node.args[0])
            mark = pure_mark(function)
            if mark is not None:
                return of.annotated(mark.returns) or ANY
            if getattr(function, "__objclass__", None) is str and element == STR:
                return of.method(STR, function.__name__, [], [])
            return ANY if function is MISSING else of.function(function, [element])

        known = made_of(value, node, given, result)
        if value is re.findall and node.args and isinstance(node.args[0], ast.Constant):
            known = groups_found(node.args[0].value)
        return of.function(value, given) if known is None else known

    def truth_of_call(self, node: ast.Call, part: Found) -> Found:
        compiles = part.compiled is not None and _is_scalar(part.compiled)
        return self.joined([part], BOOL, compiles)

    def helper(self, node: ast.Call, function: types.FunctionType, parts: list[Found]) -> Found:
        """A call of a plain function: compiled along if it can be, and else lifted as it is."""
        here = Found(STATE, ANY, ANY, _bound(parts))
        if update_name(function) is not None or not parts:
            return here
        inner: dict[str, Found] = {}
        if max(part.depends for part in parts) == STATE or node.keywords:
            return here
        if all(part.compiled is not None and of.is_number(part.compiled) for part in parts):
            depends = max(part.depends for part in parts)
            return replace(here, depends=STATE) if depends == EVENT else here
        try:
            source = self.parse(function)
        except Exception:
            return self.joined(parts, ANY, False)
        for name, part in zip(source.parameters, parts, strict=False):
            inner[name] = replace(part, depends=EVENT, bound=_PARAMETER, is_lifted=False)
        body = EventAlone(source, self.schema, frozenset(), inner, self.parse)
        returned, compiles = body.body()
        return self.joined(parts, returned, False) if not compiles else here

    def body(self) -> tuple[Type, bool]:
        """What a function of values of the event returns, and whether it can be compiled."""
        compiles, returned = True, []
        for node in _own_nodes(self.source.tree):
            if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
                compiles &= self.truth(node.test).compiled is not None
            for _, value in ast.iter_fields(node):
                for one in value if isinstance(value, list) else [value]:
                    if isinstance(node, ast.stmt) and isinstance(one, ast.expr):
                        found = self.of(one)
                        compiles &= found.compiled is not None
            if isinstance(node, ast.For):
                compiles &= of.required(self.of(node.iter).type) not in _LETTERS
            if isinstance(node, ast.Return):
                returned.append(NONE if node.value is None else self.of(node.value).type)
        annotation = self.source.original.__annotations__.get("return", MISSING)
        declared = None if annotation is MISSING else of.annotated(annotation)
        return declared or of.join(returned), compiles


def _is_of_the_user(value: Any) -> bool:
    """Whether the compiler is to say what becomes of it: it takes some of these along."""
    return isinstance(value, functools.partial | type | types.FunctionType)


def _is_of_a_library(function: types.FunctionType) -> bool:
    """Whether a function is the standard library's, which no operator takes along."""
    return str(function.__module__).split(".")[0] in sys.stdlib_module_names - {"__main__"}


def _bound(parts: list[Found]) -> frozenset[int]:
    return frozenset[int]().union(*(part.bound for part in parts))


def _is_numeric(value: Any, is_text: bool) -> bool:
    """Whether a function is compiled or refused, and nothing else: its numbers are compiled code's,
    or it takes no strings."""
    module = str(getattr(value, "__module__", None)).split(".")[0]
    if module == "math" and math_name(value) is None:
        return True
    return module == "numpy" or (is_text and (module == "math" or value in (abs, round, pow)))


def _is_scalar(given: Type | None) -> bool:
    return given in (INT, FLOAT, BOOL, STR, ANY)


def _is_compared(given: Type | None) -> bool:
    """Whether compiled code compares it: a scalar, or a tuple or list of such."""
    if given is not None and given.name in ("tuple", "list"):
        return all(map(_is_compared, given.of))
    return _is_scalar(given)


def _has_string(given: Type | None) -> bool:
    """Whether a tuple or list has strings in it."""
    if given is None or given.name not in ("tuple", "list"):
        return False
    return any(one == STR or _has_string(one) for one in given.of)


def _arithmetic(op: ast.operator, left: Type, right: Type) -> Type:
    """The type of an operation between two values."""
    kinds = (left, right)
    if isinstance(op, ast.Add) and left == right and left in _LETTERS:
        return left
    if isinstance(op, ast.Add) and left.name == right.name == "tuple":
        return of.tuple_of(*left.of, *right.of)
    if isinstance(op, ast.Add) and left.name == right.name == "list":
        return of.list_of(of.join((of.element(left), of.element(right))))
    if isinstance(op, ast.Mod) and left == STR:
        return STR
    if isinstance(op, ast.Mult) and STR in kinds and INT in kinds:
        return STR
    if isinstance(op, ast.Sub) and left.name == right.name == "datetime":
        return of.DELTA
    if of.DELTA in kinds and isinstance(op, ast.Add | ast.Sub):
        return next((one for one in kinds if one != of.DELTA), of.DELTA)
    if not all(of.is_number(one) for one in kinds):
        return ANY
    if isinstance(op, ast.Div) or FLOAT in kinds:
        return FLOAT
    if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and kinds == (BOOL, BOOL):
        return BOOL
    return ANY if isinstance(op, ast.Pow) else INT


def _of_math(value: Any) -> Type:
    name = value.__name__
    if name.startswith("is"):
        return BOOL
    integers = ("floor", "ceil", "trunc", "gcd", "lcm", "isqrt", "comb", "perm", "factorial")
    return INT if name in integers else ANY if name in ("modf", "frexp", "prod") else FLOAT


def _is_impure(value: Any) -> bool:
    """Whether what a function gives depends on more than its arguments."""
    name = getattr(value, "__name__", "")
    if name in FORBIDDEN_CALLS and value is getattr(builtins, name, None):
        return name not in ("list", "dict", "set", "sorted", "str", "isinstance", "pow", "reversed")
    owner = getattr(value, "__self__", None)
    module = getattr(value, "__module__", None) or getattr(owner, "__name__", "")
    root = str(module).split(".")[0]
    return name in _IMPURE or root in (set(FORBIDDEN_MODULES) - {"datetime"} | {"secrets"})


def _makes(node: ast.expr) -> bool:
    """Whether an expression makes a list, dict or set."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("dict", "list", "set", "sorted")
    if isinstance(node, ast.BinOp):  # [0] * n
        return _makes(node.left) or _makes(node.right)
    return isinstance(
        node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    )


def _own_nodes(tree: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in tree.body:
        yield from ast.walk(statement)


def _bindings(tree: ast.FunctionDef) -> tuple[frozenset[str], dict[str, Binding]]:
    """The local names, and of those that are assigned in one place only what they are given."""
    counts: dict[str, int] = {}
    places: dict[str, Binding] = {}

    def count(name: str | None) -> None:
        if name is not None:
            counts[name] = counts.get(name, 0) + 1

    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            count(node.id)
        elif isinstance(node, ast.arg):
            count(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs):
            count(None if node is tree else node.name)
        elif isinstance(node, ast.MatchStar):
            count(node.name)
        elif isinstance(node, ast.MatchMapping):
            count(node.rest)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            counts |= dict.fromkeys(node.names, 2)
    for node in _outer(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    places[target.id] = Binding(node.value)
                elif isinstance(target, ast.Tuple | ast.List):
                    stars = [
                        at for at, one in enumerate(target.elts) if isinstance(one, ast.Starred)
                    ]
                    star = stars[0] if stars else None
                    parts = [
                        one.value if isinstance(one, ast.Starred) else one for one in target.elts
                    ]
                    names = [one for one in parts if isinstance(one, ast.Name)]
                    if len(names) == len(parts):
                        for at, name in enumerate(names):
                            places[name.id] = Binding(node.value, None, (at, len(names)), star)
        elif isinstance(node, ast.For):
            if isinstance(node.target, ast.Name):
                places[node.target.id] = Binding(node.iter, loop=node)
            elif isinstance(node.target, ast.Tuple):
                for at, part in enumerate(node.target.elts):
                    if isinstance(part, ast.Name):
                        count_of = (at, len(node.target.elts))
                        places[part.id] = Binding(node.iter, at=count_of, loop=node)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                for name_of, value in captured(case.pattern, node.subject):
                    places[name_of] = Binding(value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None:
                places[node.target.id] = Binding(node.value, declared_type(node))
        elif isinstance(node, ast.NamedExpr):
            places[node.target.id] = Binding(node.value)
    single = {name: place for name, place in places.items() if counts.get(name) == 1}
    return frozenset(counts), single


def declared_type(node: ast.AnnAssign) -> ast.expr:
    """The annotation of an assignment, as it was written."""
    written: ast.expr = getattr(node, "declared", node.annotation)
    return written


def _outer(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without those of functions inside and of what has names of its own."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from _outer(child)
