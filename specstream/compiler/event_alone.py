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
import enum
import functools
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from specstream.columns.instants import when
from specstream.compiler import library_types as library
from specstream.compiler import value_types as of
from specstream.compiler.analysis import FunctionSource
from specstream.compiler.bindings import MISSING, bindings_of, look_up
from specstream.compiler.check import (
    FORBIDDEN_CALLS,
    FORBIDDEN_MODULES,
    REFUSED,
    builtin_name,
    is_constant,
    is_container,
    math_name,
)
from specstream.compiler.elements import Elements
from specstream.compiler.found import CONSTANT, EVENT, STATE, Found, Results
from specstream.compiler.frozen import Frozen
from specstream.compiler.frozen_types import can_freeze
from specstream.compiler.keeping import keeps
from specstream.compiler.list_use import groups_found
from specstream.compiler.value_types import ANY, BOOL, FLOAT, INT, NONE, STR, Type
from specstream.declarations.pure import pure_mark
from specstream.declarations.schema import Schema
from specstream.declarations.updates import update_name

__all__ = [
    "CONSTANT",
    "EVENT",
    "STATE",
    "EventAlone",
    "Found",
]


# As they call themselves; what os has of the system is of posix.
_OUTSIDE = set(FORBIDDEN_MODULES) - {"datetime", "uuid"}
_OUTSIDE |= {"posix", "nt", "_io", "io", "_socket", "socket", "_thread", "threading", "subprocess"}
_KINDS = {"int": INT, "float": FLOAT, "bool": BOOL, "str": STR}
_LETTERS = (STR, of.BYTES)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# Of types that are otherwise fine: what they give depends on when they are called.
_IMPURE = {"now", "today", "utcnow", "random", "urandom", "uuid1", "uuid4"}


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
        returns: tells what they give.

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
        returns: Results,
    ) -> None:
        self.returns = returns
        self.source = source
        self.schema = schema
        self.events = events
        self.parameters = parameters
        self.parse = parse
        self.found: dict[ast.expr, Found] = {}
        self.truths: set[ast.expr] = set()
        self.locals, self.bindings = bindings_of(source.tree)
        self.bound: list[dict[str, Found]] = []
        self.open: set[str] = set()
        self.constants: dict[int, tuple[Any, bool, Type]] = {}
        super().__init__()

    def of(self, node: ast.expr) -> Found:
        """What is known of an expression."""
        known = self.found.get(node)
        if known is None:
            rule = getattr(self, f"of_{type(node).__name__}", self.of_other)
            known = self.found[node] = self.lifted(node, rule(node))
        return known

    def lifted(self, node: ast.expr, found: Found) -> Found:
        """The same, lifted where it has to be and can be."""
        if found.compiled is not None or found.depends == STATE:
            return found
        is_computed = isinstance(node, ast.Call | ast.JoinedStr | ast.Subscript | ast.BinOp)
        if found.depends == CONSTANT and not (self.events and is_computed):
            return found
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
        known = self.found[node] = self.lifted(node, known)
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
        return Found(STATE, ANY, ANY) if value is MISSING else self.of_constant(value)

    def of_constant(self, value: Any) -> Found:
        """What is known of a global."""
        if id(value) not in self.constants:
            is_frozen = is_container(value) and can_freeze(value)
            self.constants[id(value)] = value, is_frozen, library.constant(value)
        _, is_frozen, given = self.constants[id(value)]
        if is_frozen:
            # Compiled code reads it where it lies; of arrays only compiled code knows more.
            is_python = given != ANY or isinstance(value, type)
            return Found(CONSTANT if is_python else STATE, given, ANY)
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
        self.open.remove(name)
        if value.depends == STATE:
            return Found(STATE, ANY, ANY)
        if of.required(value.type).name in ("list", "dict") and name in self.changed:
            return Found(STATE, ANY, ANY)
        if binding.loop is not None:
            return self.element(binding, value)
        inside = value.bound & self.loops.keys()
        if not all(self.stays_in(name, self.loops[one]) for one in inside):
            return Found(STATE, ANY, ANY)
        declared = None if binding.annotation is None else of.annotated(binding.annotation)
        given, compiled = declared or value.type, value.compiled
        if binding.at is not None:
            given = self.item(given, *binding.at, binding.star)
            compiled = None if compiled is None else self.item(compiled, *binding.at)
        if compiled is not None and self.makes(binding.value, given):
            return Found(STATE, ANY, ANY)  # statements change what it holds
        if compiled is None and declared is not None and value.depends == EVENT:
            compiled = declared if of.is_column(declared) else None
        if binding.at is not None and compiled is None and of.is_column(given):
            compiled = given  # the whole is lifted as a tuple of so many
        is_wide = value.is_wide and binding.at is None and declared is None
        if inside and (compiled is None or not of.is_scalar(compiled)):
            compiled = None
        return Found(value.depends, given, compiled, inside, is_wide=is_wide)

    def makes(self, node: ast.expr, given: Type) -> bool:
        """Whether an expression makes a list, dict or set, in compiled code."""
        if given == ANY:  # part of what a module holds
            return _makes(node) or any(isinstance(one, ast.Slice) for one in ast.walk(node))
        return of.required(given).name in ("list", "dict") and self.constant(node) is MISSING

    @staticmethod
    def item(given: Type, at: int, count: int, star: int | None = None) -> Type:
        given = of.required(given)
        if star is not None:
            return of.list_of(of.element(given)) if at == star else of.element(given)
        if given.name == "tuple" or (given.name == "object" and given.of):
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

    def is_event(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.events

    def of_Attribute(self, node: ast.Attribute) -> Found:
        if self.is_event(node.value):
            return self.column(node.attr)
        value = self.constant(node)
        if value is not MISSING:
            return self.of_constant(value)
        owner = self.of(node.value)
        if owner.depends == STATE:
            return Found(STATE, ANY, ANY, owner.bound)
        compiles = owner.compiled == ANY and _has_field(owner.type, node.attr)
        given = self.returns.attribute(owner.type, node.attr)
        found = self.held(self.joined([owner], given, compiles))
        return replace(found, is_wide=given == INT and node.attr == "int")

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
        given = of.chosen(node.op, [part.type for part in parts])
        return self.joined(parts, given, same or mixed)

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
        given = INT if given == BOOL else given
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
        given = library.operation(node.op, of.required(left.type), of.required(right.type))
        power: Any = getattr(node.right, "value", None)
        if isinstance(node.op, ast.Pow) and left.type == INT and type(power) is int and power >= 0:
            given = INT
        if STR in kinds and given == ANY:
            return Found(STATE, ANY, ANY, left.bound | right.bound)  # no such: to be refused
        compiles = self.is_number(left) and self.is_number(right)
        is_wide = given == INT and (left.is_wide or right.is_wide)
        if is_wide and max(left.depends, right.depends) < STATE:
            # A remainder of what fits does fit.
            is_small = isinstance(node.op, ast.Mod) and not right.is_wide
            is_small = is_small or (isinstance(node.op, ast.BitAnd) and not right.is_wide)
            return replace(self.joined([left, right], given, False), is_wide=not is_small)
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
        if any(isinstance(one, ast.Starred) for one in node.elts):
            return self.display(node, ANY)
        return self.display(node, of.tuple_of(*(self.of(one).type for one in node.elts)))

    def of_List(self, node: ast.List) -> Found:
        return self.display(node, of.list_of(of.join(self.of(one).type for one in node.elts)))

    of_Set = of_List

    def display(self, node: ast.Tuple | ast.List | ast.Set, given: Type) -> Found:
        parts = [self.of(one) for one in node.elts]
        compiles = type(node) not in REFUSED and all(part.compiled for part in parts)
        found = self.joined(parts, given, compiles)
        if compiles and isinstance(node, ast.Tuple) and given != ANY:
            compiled = tuple(part.compiled for part in parts if part.compiled)
            return replace(found, compiled=of.tuple_of(*compiled))
        return replace(found, compiled=ANY) if compiles else found

    def of_Dict(self, node: ast.Dict) -> Found:
        parts = [self.of(one) for one in (*node.keys, *node.values) if one is not None]
        values = of.join(self.of(one).type for one in node.values)
        compiles = ast.Dict not in REFUSED and all(part.compiled for part in parts)
        keys = of.join(self.of(one).type for one in node.keys if one is not None)
        found = self.joined(parts, of.dict_of(values, keys), compiles)
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
        compiles = owner.compiled is not None and owner.compiled not in _LETTERS
        cls = self.constant(node.value)
        if isinstance(cls, type) and issubclass(cls, enum.Enum):
            given, compiles = of.of_class(cls), False
        is_dict = whole.name == "dict" and index.compiled is not None
        compiles = compiles and (
            self.is_number(index) or isinstance(node.slice, ast.Slice) or is_dict
        )
        return self.held(self.joined(parts, given, compiles))

    @staticmethod
    def held(found: Found) -> Found:
        """What compiled code has of a list or dict: other types than scalars are its own."""
        if found.compiled is None or (_is_scalar(found.compiled) and found.type == found.compiled):
            return found
        return replace(found, compiled=found.compiled if found.compiled.name == "tuple" else ANY)

    def of_Slice(self, node: ast.Slice) -> Found:
        parts = [self.of(one) for one in (node.lower, node.upper, node.step) if one is not None]
        return self.joined(parts, ANY, all(part.compiled for part in parts))

    def of_Starred(self, node: ast.Starred) -> Found:
        """By itself it is no value, and never lifted."""
        value = self.of(node.value)
        compiles = value.compiled is not None and value.compiled not in _LETTERS
        return replace(value, type=ANY, compiled=ANY if compiles else None, is_lifted=False)

    # ---- what binds names of its own ----

    def of_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> Found:
        parts, given = self.comprehended(node.generators, [node.elt])
        return self.comprehension(node, parts, of.list_of(given[0]))

    of_ListComp = of_SetComp = of_GeneratorExp

    def of_DictComp(self, node: ast.DictComp) -> Found:
        parts, given = self.comprehended(node.generators, [node.key, node.value])
        return self.comprehension(node, parts, of.dict_of(given[1], given[0]))

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
            for name, given in self.targets(one.target, element):
                compiled = given if is_known or given in (STR, INT, FLOAT, BOOL) else None
                inside = iterated.bound | {len(self.bound) - 1}
                self.bound[-1][name] = Found(iterated.depends, given, compiled, inside)
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
        parts = [self.of_argument(node, one) for one in (*node.args, *node.keywords)]
        callee = node.func
        if isinstance(callee, ast.Attribute) and self.is_event(callee.value):
            is_test = callee.attr == "is_null"
            return Found(EVENT, BOOL, BOOL) if is_test else Found(STATE, ANY, ANY)
        value = self.constant(callee)
        is_method = isinstance(callee, ast.Attribute) and self.of(callee.value).type != ANY
        if value is not MISSING and not is_method:
            return self.called(node, value, parts)
        if not isinstance(callee, ast.Attribute):
            return Found(STATE, ANY, ANY, _bound(parts))
        owner = self.of(callee.value)
        if owner.depends == STATE and owner.type == ANY:
            return Found(STATE, ANY, ANY, owner.bound)
        if of.is_number(owner.type) and callee.attr in _OF_NUMBERS and not parts:
            return self.joined([owner], _OF_NUMBERS[callee.attr], True)
        if owner.compiled == ANY and callee.attr in _OF_NUMBERS and owner.type == ANY:
            return self.joined([owner], _OF_NUMBERS[callee.attr], True)
        given = self.returns.method(owner.type, callee.attr, node.args, self.given_types(node))
        value = self.constant(callee.value)
        if isinstance(value, re.Pattern) and callee.attr == "findall":
            given = groups_found(value)
        compiles = (
            owner.compiled == ANY
            and owner.type.name in ("list", "dict")
            and all(part.compiled is not None for part in parts)
        )
        return self.held(self.joined([owner, *parts], given, compiles))

    def given_types(self, node: ast.Call) -> list[Type]:
        """The types of what a call gives by position; of None, functions raise."""
        return [of.required(self.of(one).type) for one in node.args]

    def of_argument(self, node: ast.Call, given: Any) -> Found:
        """What is known of an argument; a function that is to be called inside is no value."""
        is_key = isinstance(given, ast.keyword) and given.arg == "key"
        is_first = bool(node.args) and given is node.args[0]
        value = given.value if isinstance(given, ast.keyword) else given
        if is_key or (is_first and self.constant(node.func) in (map, filter)):
            function = self.constant(value)
            is_written = isinstance(function, type | types.BuiltinFunctionType | types.FunctionType)
            if is_written and not _is_of_a_library_of_strings(function):
                return Found(CONSTANT, ANY, ANY)
        return self.of(value)

    def called(self, node: ast.Call, value: Any, parts: list[Found]) -> Found:
        """A call of a global."""
        here = Found(STATE, ANY, ANY, _bound(parts))
        depends = max((part.depends for part in parts), default=CONSTANT)
        mark = pure_mark(value)
        if mark is not None:
            return self.joined(parts, of.annotated(mark.returns) or ANY, False)
        if value is when:
            return self.joined(parts, of.WHEN, False)
        if is_impure(value):
            return here
        if isinstance(value, types.FunctionType) and not is_of_a_library(value):
            return self.helper(node, value, parts)
        if isinstance(value, functools.partial) and isinstance(value.func, types.FunctionType):
            return here
        cached: Any = getattr(value, "__wrapped__", None)
        is_cached = isinstance(value, functools._lru_cache_wrapper)
        if is_cached and depends < STATE and not is_of_a_library(cached):
            return self.joined(parts, self.returns.of(cached, self.given_types(node)), False)
        if isinstance(value, Frozen):  # an enum, in an operator that was pickled
            return self.held(self.joined(parts, ANY, all(part.compiled for part in parts)))
        if isinstance(value, type) and not _is_of_numbers(value):
            if depends == STATE or issubclass(value, BaseException):
                return here
            made = self.joined(parts, library.function(value, self.given_types(node)), False)
            is_frozen = self.of_constant(value).compiled is not None
            compiles = is_frozen and all(part.compiled for part in parts)
            return replace(made, compiled=ANY) if compiles else made
        is_text = any(part.compiled in _LETTERS for part in parts)
        if _is_numeric(value, is_text):
            return here
        known = builtin_name(value) is not None or math_name(value) is not None
        if value in (bool,) and len(parts) == 1:
            return self.truth_of_call(node, parts[0])
        compiles = known and not is_text and all(part.compiled for part in parts)
        compiles = compiles and not any(
            part.compiled and part.compiled.name == "optional" for part in parts
        )
        if value in (sorted, min, max) and depends < STATE:  # strings have an order in Python only
            compiles &= not any(_has_string(part.type) for part in parts)
        if value is float and isinstance(node.args[0] if node.args else None, ast.Constant):
            compiles = True  # of a text that is written out
        found = self.joined(parts, self.result(node, value), compiles)
        is_digits = value is int and bool(parts)
        is_digits = is_digits and (len(parts) > 1 or not of.is_column(parts[0].type))
        return replace(found, is_wide=is_digits or value == int.from_bytes)

    def result(self, node: ast.Call, value: Any) -> Type:
        """What a function that is not the user's gives."""
        given = self.given_types(node)
        if value in (min, max):
            given += [self.of(one.value).type for one in node.keywords if one.arg == "default"]
            if len(node.args) == 1 and given[1:]:
                return of.join([of.element(given[0]), *given[1:]])
        if value in (map, functools.reduce, filter) and len(given) > 1:
            return self.applied(node, value, given)
        if value is re.findall and node.args:
            return groups_found(self.constant_of(node.args[0]))
        return library.function(value, given)

    def applied(self, node: ast.Call, value: Any, given: list[Type]) -> Type:
        """What a function gives that is given a function."""
        if value is filter:
            return of.list_of(of.element(given[1]))
        if value is map:
            return of.list_of(self.given_by(node.args[0], list(map(of.element, given[1:]))))
        item = of.element(given[1])
        first = given[2] if len(given) > 2 else item
        return of.join([first, self.given_by(node.args[0], [first, item])])

    def given_by(self, function: ast.expr, given: list[Type]) -> Type:
        """What a function or lambda gives that is itself given to a function."""
        if isinstance(function, ast.Lambda):
            names = [one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)]
            found, self.found = self.found, {}
            inside = frozenset({len(self.bound)})
            typed = {
                name: Found(EVENT, one, None, inside)
                for name, one in zip(names, given, strict=False)
            }
            self.bound.append(typed)
            body = self.of(function.body)
            self.bound.pop()
            self.found = found
            return body.type
        value = self.constant(function)
        if isinstance(value, types.FunctionType) and not is_of_a_library(value):
            return self.returns.of(value, given)
        if value is MISSING and isinstance(function, ast.Attribute):
            return self.returns.method(self.of(function.value).type, function.attr, [], given)
        owner = getattr(value, "__objclass__", None)  # str.strip
        if owner is not None and given:
            return self.returns.method(of.of_class(owner), value.__name__, [], given[1:])
        return library.function(value, given)

    def constant_of(self, node: ast.expr) -> Any:
        return node.value if isinstance(node, ast.Constant) else self.constant(node)

    def truth_of_call(self, node: ast.Call, part: Found) -> Found:
        compiles = part.compiled is not None and _is_scalar(part.compiled)
        return self.joined([part], BOOL, compiles)

    def helper(self, node: ast.Call, function: types.FunctionType, parts: list[Found]) -> Found:
        """A call of a plain function: compiled along if it can be, and else lifted as it is."""
        here = Found(STATE, ANY, ANY, _bound(parts))
        if update_name(function) is not None or not parts:
            return here
        if max(part.depends for part in parts) == STATE:
            return here
        is_of_numbers = all(part.compiled and of.is_number(part.compiled) for part in parts)
        given = self.returns.bound(function, parts, [one.arg for one in node.keywords])
        if given is None:
            return here  # a call that is wrong, which whoever compiles it says
        try:
            source = self.parse(function)
        except Exception:
            return here if is_of_numbers else self.joined(parts, ANY, False)
        if keeps(function, self.parse) or self.returns.compiles(source, given, is_of_numbers):
            return here
        types_given = {name: one.type for name, one in given.items()}
        return self.joined(parts, self.returns.of_bound(function, types_given), False)

    def compiles(self) -> tuple[bool, bool]:
        """Whether a function of values of the event can be compiled; and if not, whether it makes
        what only Python has, and not just something that is to be refused."""
        compiles = True
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
        only = any(
            found.compiled is None and found.depends == EVENT and not of.is_number(found.type)
            for found in self.found.values()
            if found.type not in (ANY, NONE)
        )
        return compiles, only


def _is_of_numbers(cls: type) -> bool:
    """Whether the compiler is to say what becomes of it: what it makes are numbers, lists, records,
    or loops."""
    return cls.__module__.split(".")[0] in ("builtins", "numpy", "specstream")


def _is_of_a_library_of_strings(function: Any) -> bool:
    """Whether only Python has a function: it is no builtin of numbers, and none of the user's."""
    if isinstance(function, types.FunctionType):
        return pure_mark(function) is not None or is_of_a_library(function)
    return builtin_name(function) is None and math_name(function) is None


def is_of_a_library(function: types.FunctionType) -> bool:
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


def _has_field(given: Type, name: str) -> bool:
    """Whether compiled code has the attribute of what it has itself: a record of a module."""
    cls = of.required(given).cls
    if cls is None:
        return given == ANY
    if issubclass(cls, enum.Enum):
        return name in ("name", "value") and not issubclass(cls, int | str)
    names: Any = getattr(cls, "_fields", None) or getattr(cls, "__dataclass_fields__", ())
    return name in names


def _is_compared(given: Type | None) -> bool:
    """Whether compiled code compares it: a scalar, or a tuple or list of such."""
    if given is not None and given.name in ("tuple", "list"):
        return all(map(_is_compared, given.of))
    return _is_scalar(given)


def _has_string(given: Type | None) -> bool:
    """Whether a tuple, list or dict has strings in it."""
    if given is None or given.name not in ("tuple", "list", "dict"):
        return False
    return any(one == STR or _has_string(one) for one in given.of)


def is_impure(value: Any) -> bool:
    """Whether what a function gives depends on more than its arguments."""
    name = getattr(value, "__name__", "")
    if name in FORBIDDEN_CALLS and value is getattr(builtins, name, None):
        return name not in ("list", "dict", "set", "sorted", "str", "isinstance", "pow", "reversed")
    owner = getattr(value, "__self__", None)
    module = getattr(value, "__module__", None) or getattr(owner, "__name__", "")
    root = str(module).split(".")[0]
    return name in _IMPURE or root in _OUTSIDE


def _makes(node: ast.expr) -> bool:
    """Whether an expression makes a list, dict or set."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("dict", "list", "set", "sorted", "map", "filter")
    if isinstance(node, ast.BinOp):  # [0] * n
        return _makes(node.left) or _makes(node.right)
    return isinstance(
        node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    )


def _own_nodes(tree: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in tree.body:
        yield from ast.walk(statement)
