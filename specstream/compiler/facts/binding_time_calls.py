"""Binding times of calls: whether compiled code can make them, and what they return in Python.

One of the three files of rules behind :mod:`specstream.compiler.facts.binding_times`.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import types
from dataclasses import replace
from typing import Any

import numpy as np

from specstream.columns.instants import when
from specstream.compiler.facts import library_types as library
from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_time_base import (
    LETTERS,
    Expressions,
    bound_in,
    has_string,
    is_scalar,
)
from specstream.compiler.facts.dates_and_decimals import (
    OWN_CLASSES,
    as_own,
    is_of_column,
    is_of_time,
    own_type,
)
from specstream.compiler.facts.fact import CONSTANT, EVENT, STATE, Fact
from specstream.compiler.facts.name_bindings import MISSING
from specstream.compiler.facts.refused_constructs import (
    FORBIDDEN_MODULES,
    builtin_name,
    math_name,
)
from specstream.compiler.facts.shown_parameters import shown_in
from specstream.compiler.facts.side_effects import keeps
from specstream.compiler.facts.value_types import ANY, BOOL, STR, Type
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.language import builtin_functions
from specstream.compiler.language.frozen import Frozen
from specstream.compiler.language.methods import METHODS, NUMBERS
from specstream.compiler.language.standard_library import OF_MAPPINGS
from specstream.declarations.pure import pure_mark
from specstream.declarations.records import is_record
from specstream.declarations.rows import is_row
from specstream.declarations.updates import update_name

__all__ = ["Calls", "is_impure", "is_of_a_library"]

_OUTSIDE = set(FORBIDDEN_MODULES) - {"datetime", "uuid"}
_OUTSIDE |= {"posix", "nt", "_io", "io", "_socket", "socket", "_thread", "threading", "subprocess"}
# Of types that are otherwise fine: what they give depends on when they are called.
_IMPURE = {"now", "today", "utcnow", "random", "urandom", "uuid1", "uuid4"}


# What gives values that it is given, as they are.
_CHOOSING = (min, max, next)
# By their names the types of what the methods of numbers give, which are compiled.
_OF_NUMBERS = {one.name: Type(one.returns) for one in METHODS.values() if one.of in NUMBERS}


class Calls(Expressions):
    """What is known of calls."""

    def of_Call(self, node: ast.Call) -> Fact:
        parts = [self.of_argument(node, one) for one in (*node.args, *node.keywords)]
        callee = node.func
        if isinstance(callee, ast.Attribute) and self.is_event(callee.value):
            is_test = callee.attr == "is_null"
            return Fact(EVENT, BOOL, BOOL) if is_test else Fact(STATE, ANY, ANY)
        value = self.constant(callee)
        is_method = isinstance(callee, ast.Attribute) and self.of(callee.value).type != ANY
        if value is format and len(node.args) == 2 and is_of_time(node.args[1]):
            self.make_own(node.args[0])
        if value is not MISSING and not is_method:
            return self.called(node, value, parts)
        if isinstance(callee, ast.Lambda):  # called where it is written
            self.of(callee)
        if not isinstance(callee, ast.Attribute):
            return Fact(STATE, ANY, ANY, bound_in(parts))
        owner = self.of(callee.value)
        if owner.depends == STATE and owner.type == ANY:
            return Fact(STATE, ANY, ANY, owner.bound)
        is_test = callee.attr in ("startswith", "endswith") and owner.compiled == STR
        if is_test and any(part.depends == STATE for part in parts):
            return Fact(STATE, BOOL, BOOL, bound_in([owner, *parts]))
        self.ask(callee)
        self.meet([callee.value, *node.args])
        if callee.attr == "format" and is_of_time(callee.value):
            for one in (*node.args, *(keyword.value for keyword in node.keywords)):
                self.make_own(one)
        if of.is_number(owner.type) and callee.attr in _OF_NUMBERS and not parts:
            return self.joined([owner], _OF_NUMBERS[callee.attr], True)
        if owner.compiled == ANY and callee.attr in _OF_NUMBERS and owner.type == ANY:
            return self.joined([owner], _OF_NUMBERS[callee.attr], True)
        own = self.type_here(callee.value)
        given = self.returns.method(own, callee.attr, node.args, self.given_types(node))
        value = self.constant(callee.value)
        if isinstance(value, re.Pattern) and callee.attr == "findall":
            given = library.groups_found(value)
        compiles = (
            owner.compiled == ANY
            and owner.type.name in ("list", "dict")
            and all(part.compiled is not None for part in parts)
        )
        return self.held(self.joined([owner, *parts], given, compiles))

    def given_types(self, node: ast.Call) -> list[Type]:
        """The types of what a call gives by position; of None, functions raise."""
        return [of.required(self.type_here(one)) for one in node.args]

    def of_argument(self, node: ast.Call, given: Any) -> Fact:
        """What is known of an argument; a function that is to be called inside is no value."""
        is_key = isinstance(given, ast.keyword) and given.arg == "key"
        is_first = bool(node.args) and given is node.args[0]
        value = given.value if isinstance(given, ast.keyword) else given
        if is_key or (is_first and self.constant(node.func) in (map, filter)):
            function = self.constant(value)
            is_written = isinstance(function, type | types.BuiltinFunctionType | types.FunctionType)
            if is_written and not _is_of_a_library_of_strings(function):
                return Fact(CONSTANT, ANY, ANY)
        return self.of(value)

    def called(self, node: ast.Call, value: Any, parts: list[Fact]) -> Fact:
        """A call of a global."""
        here = Fact(STATE, ANY, ANY, bound_in(parts))
        depends = max((part.depends for part in parts), default=CONSTANT)
        mark = pure_mark(value)
        if mark is not None:
            if not mark.is_batch:
                self.give_own(node, mark.function, parts)
            return self.joined(parts, of.given_by(mark.returns, mark.function), False)
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
            self.give_own(node, cached, parts)
            return self.joined(parts, self.returns.of(cached, self.given_types(node)), False)
        if isinstance(value, Frozen):  # an enum, in an operator that was pickled
            return self.held(self.joined(parts, ANY, all(part.compiled for part in parts)))
        if is_record(value) or is_row(value):
            return here
        if isinstance(value, type) and not _is_of_numbers(value):
            if depends == STATE or issubclass(value, BaseException):
                return here
            self.meet([*node.args, *(one.value for one in node.keywords)])
            made = self.joined(parts, library.function(value, self.given_types(node)), False)
            is_frozen = self.of_constant(value).compiled is not None
            compiles = is_frozen and all(part.compiled for part in parts)
            return replace(made, compiled=ANY) if compiles else made
        is_text = any(part.compiled in LETTERS for part in parts)
        if _is_numeric(value, is_text):
            return here
        known = builtin_name(value) is not None or math_name(value) is not None
        if value in (bool,) and len(parts) == 1:
            return self.truth_of_call(node, parts[0])
        # Strings of the state have an order in compiled code as well.
        is_ordered = value in (sorted, min, max) and depends == STATE
        compiles = known and (is_ordered or not is_text) and all(part.compiled for part in parts)
        compiles = compiles and not any(
            part.compiled and part.compiled.name == "optional" for part in parts
        )
        if value in (sorted, min, max) and depends < STATE:  # strings have an order in Python only
            compiles &= not any(has_string(part.type) for part in parts)
        if value is float and isinstance(node.args[0] if node.args else None, ast.Constant):
            compiles = True  # of a text that is written out
        found = self.joined(parts, self.result(node, value), compiles)
        is_digits = value is int and bool(parts)
        is_digits = is_digits and (len(parts) > 1 or not of.is_column(parts[0].type))
        return replace(found, is_wide=is_digits or value == int.from_bytes)

    def give_own(self, node: ast.Call, function: Any, parts: list[Fact]) -> bool:
        """Gives a function dates, times and decimals as Python's own, if it makes use of that."""
        written = [*node.args, *(one.value for one in node.keywords)]
        if not isinstance(function, types.FunctionType) or any(
            isinstance(one, ast.Starred) for one in node.args
        ):
            return False
        if not any(of.counted(self.of(one).type) != of.counted(ANY) for one in written):
            return False
        given = self.returns.bound(function, parts, [one.arg for one in node.keywords])
        if given is None:
            return False
        is_own, never = self.returns.uses_own(function, given)
        if never is not None:
            ways = [way for one in written if (way := as_own(one, self.of(one).type)) is not None]
            if ways and not is_own:
                never = never[0], f"give it Python's own value, {' and '.join(ways)}"
            self.never[node] = never
        if is_own:
            for one in written:
                self.make_own(one)
        return is_own

    def result(self, node: ast.Call, value: Any) -> Type:
        """What a function that is not the user's gives."""
        arguments = [*node.args, *(one.value for one in node.keywords)]
        self.meet(arguments, are_alike=value in (min, max, sum))
        if value is isinstance and len(node.args) == 2:
            self.ask_class(node)
        given = self.given_types(node)
        if value in (min, max, sorted, filter) and given:
            self.learn_key(node, given)
        if value in (min, max):
            given += [self.type_here(one.value) for one in node.keywords if one.arg == "default"]
            if len(node.args) == 1 and given[1:]:
                return of.join([of.element(given[0]), *given[1:]])
        if value in (map, functools.reduce, filter) and len(given) > 1:
            return self.applied(node, value, given)
        if value is re.findall and node.args:
            return library.groups_found(self.constant_of(node.args[0]))
        found = library.function(value, given)
        return found if value in _CHOOSING else of.computed(found, *given)

    def learn_key(self, node: ast.Call, given: list[Type]) -> None:
        """Calls with a function for each element, such as ``min(..., key=f)``: what f takes.

        A lambda asks of dates what dates have."""
        keys = [one.value for one in node.keywords if one.arg == "key"]
        if self.constant(node.func) is filter:
            keys, given = node.args[:1], given[1:]
        item = of.element(given[0]) if len(given) == 1 else of.join(given)
        for key in keys:
            function = self.constant(key)
            if isinstance(key, ast.Lambda):
                self.given_by(key, [item])
            elif isinstance(function, types.FunctionType) and not is_of_a_library(function):
                self.check_key(node, key, function, item)

    def check_key(
        self, node: ast.Call, key: ast.expr, function: types.FunctionType, item: Type
    ) -> None:
        """Refuses a function that uses its argument as a date: only the body of a lambda is
        rewritten to get one, and a function gets the number."""
        bound = self.returns.bound(function, [Fact(EVENT, item, None)], [])
        if bound is not None and of.counted(item) != of.counted(ANY):
            is_own, _ = self.returns.uses_own(function, bound)
            if is_own:
                name = ast.unparse(key)
                self.never[node] = (
                    f"{name} takes dates, times or decimals, and gets their numbers here",
                    f"write out in a lambda what {name} does, like key=lambda x: x.year",
                )

    def ask_class(self, node: ast.Call) -> None:
        """A call ``isinstance(event.day, datetime.date)``, for which Python is given a date."""
        classes = self.constant(node.args[1])
        asked = classes if isinstance(classes, tuple) else (classes,)
        if any(isinstance(one, type) and issubclass(one, OWN_CLASSES) for one in asked):
            self.make_own(node.args[0])

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
                name: Fact(EVENT, one, None, inside)
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

    def truth_of_call(self, node: ast.Call, part: Fact) -> Fact:
        compiles = part.compiled is not None and is_scalar(part.compiled)
        return self.joined([part], BOOL, compiles)

    def helper(self, node: ast.Call, function: types.FunctionType, parts: list[Fact]) -> Fact:
        """A call of a plain function: compiled along if it can be, and else staged as it is."""
        here = Fact(STATE, ANY, ANY, bound_in(parts))
        if update_name(function) is not None or not parts:
            return here
        if max(part.depends for part in parts) == STATE:
            return here
        if of.required(parts[-1].type).name == "dict":
            function = OF_MAPPINGS.get(function, function)
        is_of_numbers = all(part.compiled and of.is_number(part.compiled) for part in parts)
        given = self.returns.bound(function, parts, [one.arg for one in node.keywords])
        if given is None:
            return here  # a call that is wrong, which whoever compiles it says
        try:
            source = self.parse(function)
        except Exception:
            return here if is_of_numbers else self.joined(parts, ANY, False)
        is_own = self.give_own(node, function, parts)
        if keeps(function, self.parse):
            return here
        is_shown = not is_own and self.is_shown(source, given)
        if not (is_own or is_shown) and self.returns.compiles(source, given, is_of_numbers):
            return here
        types_given = {
            name: own_type(one.type) if is_own else one.type for name, one in given.items()
        }
        return self.joined(parts, self.returns.of_bound(function, types_given), False)

    def is_shown(self, source: FunctionSource, given: dict[str, Fact]) -> bool:
        """Whether it makes a text of a date, time or decimal, which is left to Python."""
        names = {name for name, one in given.items() if is_of_column(of.required(one.type))}
        return bool(names) and bool(names & shown_in(source.tree, source.original, self.parse))


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


def _is_numeric(value: Any, is_text: bool) -> bool:
    """Whether a function is compiled or refused, and nothing else: its numbers are compiled code's,
    or it takes no strings."""
    module = str(getattr(value, "__module__", None)).split(".")[0]
    if module == "math" and math_name(value) is None:
        return True
    # Before NumPy 2.2 a ufunc did not say its module.
    if module == "numpy" or isinstance(value, np.ufunc):
        return True
    return is_text and (module == "math" or value in (abs, round, pow))


def is_impure(value: Any) -> bool:
    """Whether a call has no binding time, as its result depends on more than its arguments."""
    name = getattr(value, "__name__", "")
    if builtin_functions.is_forbidden(value):
        return not builtin_functions.REFUSED[name].is_pure
    owner = getattr(value, "__self__", None)
    module = getattr(value, "__module__", None) or getattr(owner, "__name__", "")
    root = str(module).split(".")[0]
    return name in _IMPURE or root in _OUTSIDE
