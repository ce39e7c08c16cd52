"""What an expression depends on, of what type it is, and whether it can be compiled.

Of each expression of a function this finds whether it depends on the event and constants alone. If
it does and cannot be compiled, and a column can hold what it gives, it is *staged*: Python computes
it before the operator runs (:mod:`specstream.compiler.staging.staging`). What gives something else,
like the list of ``event.name.split("-")``, makes what stands around it such an expression:
``event.name.split("-")[0]``.

A local name counts as the event's if it is assigned in one place only, and from what depends on the
event alone. The analysis of definite assignment sees to it that no read comes before; and what
depends on the event alone has one value for as long as the event runs, however often a loop assigns
it.

The rules for names are here, those for other kinds of expressions in
:mod:`specstream.compiler.facts.binding_time_operations` and
:mod:`specstream.compiler.facts.binding_time_calls`.

This and :mod:`specstream.compiler.facts.literal_promotion` both infer types over one tree. They are
two because they ask two questions. Here a type is Python's, of what is computed before the operator
runs, and not to know it is an answer: the expression is left alone. There kinds are those of
compiled code, of the state as well; a name has all its assignments at once, and literals change by
what is found.
"""

from __future__ import annotations

import ast
import enum
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from specstream.compiler.facts import library_types as library
from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_time_base import (
    LETTERS,
    bound_in,
    held,
    is_scalar,
    item,
    joined,
    makes_container,
)
from specstream.compiler.facts.dates_and_decimals import OwnValues, counts, is_counted
from specstream.compiler.facts.element_facts import Elements
from specstream.compiler.facts.fact import CONSTANT, EVENT, STATE, Fact, Results
from specstream.compiler.facts.name_bindings import MISSING, bindings_of, look_up
from specstream.compiler.facts.refused_constructs import is_constant
from specstream.compiler.facts.value_types import ANY, BOOL, FLOAT, INT, NONE, STR, Type
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.language.frozen import is_container
from specstream.compiler.library.frozen_types import can_freeze
from specstream.declarations.schema import Schema

__all__ = [
    "CONSTANT",
    "EVENT",
    "STATE",
    "BindingTimes",
    "Fact",
    "Rule",
]

_KINDS = {"int": INT, "float": FLOAT, "bool": BOOL, "str": STR}


class BindingTimes:
    """The expressions of one function.

    Args:
        source: the function.
        schema: of the event.
        events: parameters that are the event.
        parameters: of other parameters, what is known of them.
        parse: gives the source of functions that are called.
        returns: tells what they give.
        rules: for expressions, by their classes (``RULES`` of ``binding_time_rules``).

    Attributes:
        found: what is known of each expression that was asked about.
        truths: expressions of which only the truth is staged.
        bindings: the names that are assigned in one place.
        places: all that names are assigned.
        dates: which expressions are Python's own dates, times and decimals.
        elements: what is known of the elements of lists.
    """

    def __init__(
        self,
        source: FunctionSource,
        schema: Schema,
        events: frozenset[str],
        parameters: dict[str, Fact],
        parse: Callable[[types.FunctionType], FunctionSource],
        returns: Results,
        rules: Mapping[type[ast.expr], Rule],
    ) -> None:
        self.returns = returns
        self.source = source
        self.schema = schema
        self.events = events
        self.parameters = parameters
        self.parse = parse
        self.rules = rules
        self.found: dict[ast.expr, Fact] = {}
        self.truths: set[ast.expr] = set()
        self.locals, self.bindings, self.places = bindings_of(source.tree)
        self.bound: list[dict[str, Fact]] = []
        self.open: set[str] = set()
        self.constants: dict[int, tuple[Any, bool, Type]] = {}
        self.dates = OwnValues(self.of, self.constant, self.forget, self.bindings)
        self.elements = Elements(source, parse, self.bindings, self.of, self.constant)

    def of(self, node: ast.expr) -> Fact:
        """What is known of an expression."""
        known = self.found.get(node)
        if known is None:
            rule = self.rules.get(type(node), BindingTimes.of_other)
            known = self.found[node] = self.staged(node, rule(self, node))
        return known

    def staged(self, node: ast.expr, found: Fact) -> Fact:
        """The same, staged where it has to be and can be."""
        if found.compiled is not None or found.depends == STATE:
            return found
        is_computed = isinstance(node, ast.Call | ast.JoinedStr | ast.Subscript | ast.BinOp)
        if found.depends == CONSTANT and not (self.events and is_computed):
            return found
        of_element = self.elements.is_of_element(found) and (
            of.is_scalar(found.type)
            or (of.is_scalar(of.required(found.type)) and self.elements.is_field(node))
        )
        if of_element or (not found.is_bound and of.is_column(found.type)):
            return replace(found, compiled=found.type, is_staged=True)
        return found

    def truth(self, node: ast.expr) -> Fact:
        """What is known of an expression of which only the truth matters."""
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(value) for value in node.values]
            known = joined(parts, BOOL, all(part.compiled for part in parts))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = self.truth(node.operand)
            known = replace(operand, type=BOOL, is_staged=False)
            known = replace(known, compiled=BOOL if operand.compiled else None)
        else:
            known = self.of(node)
            if known.compiled is not None and is_scalar(known.compiled):
                return known
            if known.depends == EVENT and (
                not known.is_bound or self.elements.is_of_element(known)
            ):
                self.truths.add(node)
                known = replace(known, type=BOOL, compiled=BOOL, is_staged=True)
            else:
                known = replace(known, type=BOOL)
        known = self.found[node] = self.staged(node, known)
        return known

    def inner_result(self, name: str, given: list[Type]) -> Type | None:
        """What a function inside of this one gives, if somebody keeps these; None: nobody does."""
        return None

    def of_other(self, node: ast.expr) -> Fact:
        """What is computed where it stands; parts of it may be staged."""
        parts = [self.of(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return Fact(STATE, ANY, ANY, bound_in(parts))

    def is_event(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.events

    def forget(self, node: ast.expr) -> None:
        """Asks about an expression anew, as its parts give another thing now."""
        del self.found[node]

    def of_Constant(self, node: ast.Constant) -> Fact:
        given = of.of_value(node.value)
        return Fact(CONSTANT, given, given)

    def of_Name(self, node: ast.Name) -> Fact:
        for scope in reversed(self.bound):
            if node.id in scope:
                return scope[node.id]
        if node.id in self.parameters:
            return self.parameters[node.id]
        if node.id in self.locals:
            return self.of_local(node.id)
        value = look_up(self.source.original, node.id)
        return Fact(STATE, ANY, ANY) if value is MISSING else self.of_constant(value)

    def of_constant(self, value: Any) -> Fact:
        """What is known of a global."""
        if id(value) not in self.constants:
            is_frozen = is_container(value) and can_freeze(value)
            self.constants[id(value)] = value, is_frozen, library.constant(value)
        _, is_frozen, given = self.constants[id(value)]
        if is_frozen:
            # Compiled code reads it where it lies; of arrays only compiled code knows more.
            is_python = given != ANY or isinstance(value, type)
            return Fact(CONSTANT if is_python else STATE, given, ANY)
        return Fact(CONSTANT, given, given if is_constant(value) else None)

    def of_local(self, name: str) -> Fact:
        """What is known of a local name: that of the value which it is given, if there is one."""
        binding = self.bindings.get(name)
        if binding is None or name in self.open:
            return Fact(STATE, ANY, ANY)
        self.open.add(name)
        bound, self.bound = self.bound, []
        value = self.of(binding.value)
        self.bound = bound
        if binding.loop is not None:
            element = self.elements.element(binding)
            self.open.remove(name)
            return element
        self.open.remove(name)
        if value.depends == STATE:
            return Fact(STATE, ANY, ANY)
        is_whole = binding.at is None or binding.at[0] == binding.star
        if (
            is_whole
            and of.required(value.type).name in ("list", "dict")
            and name in self.elements.changed
        ):
            return Fact(STATE, ANY, ANY)
        if isinstance(binding.value, ast.DictComp):
            first = binding.value.generators[0]
            if self.elements.goes_through(first) is not None:
                return Fact(STATE, ANY, ANY)  # compiled code makes the dict
        inside = value.bound & self.elements.loops.keys()
        if not all(self.elements.stays_in(name, self.elements.loops[one]) for one in inside):
            return Fact(STATE, ANY, ANY)
        declared = None if binding.annotation is None else of.annotated(binding.annotation)
        given, compiled = declared or value.type, value.compiled
        if declared == value.type:
            given = value.type  # which knows what a number counts
        if binding.at is not None:
            given = item(given, *binding.at, binding.star)
            compiled = None if compiled is None else item(compiled, *binding.at)
        if compiled is not None and self.makes(binding.value, given):
            return Fact(STATE, ANY, ANY)  # statements change what it holds
        if compiled is None and declared is not None and value.depends == EVENT:
            compiled = declared if of.is_column(declared) else None
        if binding.at is not None and compiled is None and of.is_column(given):
            compiled = given  # the whole is staged as a tuple of so many
        is_wide = value.is_wide and binding.at is None and declared is None
        if inside and (compiled is None or not of.is_scalar(compiled)):
            compiled = None
        return Fact(value.depends, given, compiled, inside, is_wide=is_wide)

    def makes(self, node: ast.expr, given: Type) -> bool:
        """Whether an expression makes a list, dict or set, in compiled code."""
        if given == ANY:  # part of what a module holds
            return makes_container(node) or any(
                isinstance(one, ast.Slice) for one in ast.walk(node)
            )
        return of.required(given).name in ("list", "dict") and self.constant(node) is MISSING

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

    def of_Attribute(self, node: ast.Attribute) -> Fact:
        if self.is_event(node.value):
            return self.column(node.attr)
        value = self.constant(node)
        if value is not MISSING:
            return self.of_constant(value)
        owner = self.of(node.value)
        if owner.depends == STATE:
            return Fact(STATE, ANY, ANY, owner.bound)
        self.dates.ask(node)
        compiles = owner.compiled == ANY and _can_compile_attribute(owner.type, node.attr)
        given = self.returns.attribute(self.dates.type_here(node.value), node.attr)
        given = STR if given == ANY and node.attr == "__name__" else given  # of any class
        found = held(joined([owner], given, compiles))
        return replace(found, is_wide=given == INT and node.attr == "int")

    def column(self, name: str) -> Fact:
        if name == "timestamp":
            return Fact(EVENT, INT, INT)
        if name not in self.schema.names:
            return Fact(STATE, ANY, ANY)
        column = self.schema.columns[self.schema.names.index(name)]
        given = counts(column) if is_counted(column) else _KINDS[column.kind]
        return Fact(EVENT, of.optional(given) if column.nullable else given, given)

    def refused(self) -> dict[ast.expr, tuple[str, str]]:
        """What of a function of values of the event has no answer."""
        self.compiles()
        return self.dates.never

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
                compiles &= of.required(self.of(node.iter).type) not in LETTERS
        only = any(
            found.compiled is None and found.depends == EVENT and not of.is_number(found.type)
            for found in self.found.values()
            if found.type not in (ANY, NONE)
        )
        return compiles, only


Rule: TypeAlias = Callable[[BindingTimes, Any], Fact]


def _can_compile_attribute(given: Type, name: str) -> bool:
    """Whether ``x.name`` can be compiled and is not staged, where ``x`` names a record or enum.

    Compiled code has such records itself.
    """
    cls = of.required(given).cls
    if cls is None:
        return given == ANY
    if issubclass(cls, enum.Enum):
        return name in ("name", "value") and not issubclass(cls, int | str)
    names: Any = getattr(cls, "_fields", None) or getattr(cls, "__dataclass_fields__", ())
    return name in names


def _own_nodes(tree: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in tree.body:
        yield from ast.walk(statement)
