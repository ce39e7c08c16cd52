"""Binding times of calls: whether compiled code can make them, and what they return in Python.

A rule of :mod:`specstream.compiler.facts.binding_times`.
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
    bound_in,
    has_string,
    held,
    is_scalar,
    joined,
)
from specstream.compiler.facts.binding_times import BindingTimes
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

__all__ = ["given_by", "is_impure", "is_of_a_library", "of_call"]

_OUTSIDE = set(FORBIDDEN_MODULES) - {"datetime", "uuid"}
_OUTSIDE |= {"posix", "nt", "_io", "io", "_socket", "socket", "_thread", "threading", "subprocess"}
# Of types that are otherwise fine: what they give depends on when they are called.
_IMPURE = {"now", "today", "utcnow", "random", "urandom", "uuid1", "uuid4"}


# What gives values that it is given, as they are.
_CHOOSING = (min, max, next)
# By their names the types of what the methods of numbers give, which are compiled.
_OF_NUMBERS = {one.name: Type(one.returns) for one in METHODS.values() if one.of in NUMBERS}


def of_call(times: BindingTimes, node: ast.Call) -> Fact:
    parts = [_of_argument(times, node, one) for one in (*node.args, *node.keywords)]
    callee = node.func
    if isinstance(callee, ast.Attribute) and times.is_event(callee.value):
        is_test = callee.attr == "is_null"
        return Fact(EVENT, BOOL, BOOL) if is_test else Fact(STATE, ANY, ANY)
    value = times.constant(callee)
    is_method = isinstance(callee, ast.Attribute) and times.of(callee.value).type != ANY
    if value is format and len(node.args) == 2 and is_of_time(node.args[1]):
        times.dates.make_own(node.args[0])
    if value is not MISSING and not is_method:
        return _called(times, node, value, parts)
    if isinstance(callee, ast.Lambda):  # called where it is written
        times.of(callee)
    if not isinstance(callee, ast.Attribute):
        return Fact(STATE, ANY, ANY, bound_in(parts))
    owner = times.of(callee.value)
    if owner.depends == STATE and owner.type == ANY:
        return Fact(STATE, ANY, ANY, owner.bound)
    is_test = callee.attr in ("startswith", "endswith") and owner.compiled == STR
    if is_test and any(part.depends == STATE for part in parts):
        return Fact(STATE, BOOL, BOOL, bound_in([owner, *parts]))
    times.dates.ask(callee)
    times.dates.meet([callee.value, *node.args])
    if callee.attr == "format" and is_of_time(callee.value):
        for one in (*node.args, *(keyword.value for keyword in node.keywords)):
            times.dates.make_own(one)
    if of.is_number(owner.type) and callee.attr in _OF_NUMBERS and not parts:
        return joined([owner], _OF_NUMBERS[callee.attr], True)
    if owner.compiled == ANY and callee.attr in _OF_NUMBERS and owner.type == ANY:
        return joined([owner], _OF_NUMBERS[callee.attr], True)
    own = times.dates.type_here(callee.value)
    given = times.returns.method(own, callee.attr, node.args, _given_types(times, node))
    value = times.constant(callee.value)
    if isinstance(value, re.Pattern) and callee.attr == "findall":
        given = library.groups_found(value)
    compiles = (
        owner.compiled == ANY
        and owner.type.name in ("list", "dict")
        and all(part.compiled is not None for part in parts)
    )
    return held(joined([owner, *parts], given, compiles))


def _given_types(times: BindingTimes, node: ast.Call) -> list[Type]:
    """The types of what a call gives by position; of None, functions raise."""
    return [of.required(times.dates.type_here(one)) for one in node.args]


def _of_argument(times: BindingTimes, node: ast.Call, given: Any) -> Fact:
    """What is known of an argument; a function that is to be called inside is no value."""
    is_key = isinstance(given, ast.keyword) and given.arg == "key"
    is_first = bool(node.args) and given is node.args[0]
    value = given.value if isinstance(given, ast.keyword) else given
    if is_key or (is_first and times.constant(node.func) in (map, filter)):
        function = times.constant(value)
        is_written = isinstance(function, type | types.BuiltinFunctionType | types.FunctionType)
        if is_written and not _is_of_a_library_of_strings(function):
            return Fact(CONSTANT, ANY, ANY)
    return times.of(value)


def _called(times: BindingTimes, node: ast.Call, value: Any, parts: list[Fact]) -> Fact:
    """A call of a global."""
    here = Fact(STATE, ANY, ANY, bound_in(parts))
    depends = max((part.depends for part in parts), default=CONSTANT)
    mark = pure_mark(value)
    if mark is not None:
        if not mark.is_batch:
            _give_own(times, node, mark.function, parts)
        return joined(parts, of.given_by(mark.returns, mark.function), False)
    if value is when:
        return joined(parts, of.WHEN, False)
    if is_impure(value):
        return here
    if isinstance(value, types.FunctionType) and not is_of_a_library(value):
        return _helper(times, node, value, parts)
    if isinstance(value, functools.partial) and isinstance(value.func, types.FunctionType):
        return here
    cached: Any = getattr(value, "__wrapped__", None)
    is_cached = isinstance(value, functools._lru_cache_wrapper)
    if is_cached and depends < STATE and not is_of_a_library(cached):
        _give_own(times, node, cached, parts)
        return joined(parts, times.returns.of(cached, _given_types(times, node)), False)
    if isinstance(value, Frozen):  # an enum, in an operator that was pickled
        return held(joined(parts, ANY, all(part.compiled for part in parts)))
    if is_record(value) or is_row(value):
        return here
    if isinstance(value, type) and not _is_of_numbers(value):
        if depends == STATE or issubclass(value, BaseException):
            return here
        times.dates.meet([*node.args, *(one.value for one in node.keywords)])
        made = joined(parts, library.function(value, _given_types(times, node)), False)
        is_frozen = times.of_constant(value).compiled is not None
        compiles = is_frozen and all(part.compiled for part in parts)
        return replace(made, compiled=ANY) if compiles else made
    is_text = any(part.compiled in LETTERS for part in parts)
    if _is_numeric(value, is_text):
        return here
    known = builtin_name(value) is not None or math_name(value) is not None
    if value in (bool,) and len(parts) == 1:
        return joined(parts, BOOL, parts[0].compiled is not None and is_scalar(parts[0].compiled))
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
    found = joined(parts, _result(times, node, value), compiles)
    is_digits = value is int and bool(parts)
    is_digits = is_digits and (len(parts) > 1 or not of.is_column(parts[0].type))
    return replace(found, is_wide=is_digits or value == int.from_bytes)


def _give_own(times: BindingTimes, node: ast.Call, function: Any, parts: list[Fact]) -> bool:
    """Gives a function dates, times and decimals as Python's own, if it makes use of that."""
    written = [*node.args, *(one.value for one in node.keywords)]
    if not isinstance(function, types.FunctionType) or any(
        isinstance(one, ast.Starred) for one in node.args
    ):
        return False
    if not any(of.counted(times.of(one).type) != of.counted(ANY) for one in written):
        return False
    given = times.returns.bound(function, parts, [one.arg for one in node.keywords])
    if given is None:
        return False
    is_own, never = times.returns.uses_own(function, given)
    if never is not None:
        ways = [way for one in written if (way := as_own(one, times.of(one).type)) is not None]
        if ways and not is_own:
            never = never[0], f"give it Python's own value, {' and '.join(ways)}"
        times.dates.never[node] = never
    if is_own:
        for one in written:
            times.dates.make_own(one)
    return is_own


def _result(times: BindingTimes, node: ast.Call, value: Any) -> Type:
    """What a function that is not the user's gives."""
    arguments = [*node.args, *(one.value for one in node.keywords)]
    times.dates.meet(arguments, are_alike=value in (min, max, sum))
    if value is isinstance and len(node.args) == 2:
        _ask_class(times, node)
    given = _given_types(times, node)
    if value in (min, max, sorted, filter) and given:
        _learn_key(times, node, given)
    if value in (min, max):
        given += [times.dates.type_here(one.value) for one in node.keywords if one.arg == "default"]
        if len(node.args) == 1 and given[1:]:
            return of.join([of.element(given[0]), *given[1:]])
    if value in (map, functools.reduce, filter) and len(given) > 1:
        return _applied(times, node, value, given)
    if value is re.findall and node.args:
        return library.groups_found(_constant_of(times, node.args[0]))
    found = library.function(value, given)
    return found if value in _CHOOSING else of.computed(found, *given)


def _learn_key(times: BindingTimes, node: ast.Call, given: list[Type]) -> None:
    """Calls with a function for each element, such as ``min(..., key=f)``: what f takes.

    A lambda asks of dates what dates have."""
    keys = [one.value for one in node.keywords if one.arg == "key"]
    if times.constant(node.func) is filter:
        keys, given = node.args[:1], given[1:]
    item = of.element(given[0]) if len(given) == 1 else of.join(given)
    for key in keys:
        function = times.constant(key)
        if isinstance(key, ast.Lambda):
            given_by(times, key, [item])
        elif isinstance(function, types.FunctionType) and not is_of_a_library(function):
            _check_key(times, node, key, function, item)


def _check_key(
    times: BindingTimes, node: ast.Call, key: ast.expr, function: types.FunctionType, item: Type
) -> None:
    """Refuses a function that uses its argument as a date: only the body of a lambda is
    rewritten to get one, and a function gets the number."""
    bound = times.returns.bound(function, [Fact(EVENT, item, None)], [])
    if bound is not None and of.counted(item) != of.counted(ANY):
        is_own, _ = times.returns.uses_own(function, bound)
        if is_own:
            name = ast.unparse(key)
            times.dates.never[node] = (
                f"{name} takes dates, times or decimals, and gets their numbers here",
                f"write out in a lambda what {name} does, like key=lambda x: x.year",
            )


def _ask_class(times: BindingTimes, node: ast.Call) -> None:
    """A call ``isinstance(event.day, datetime.date)``, for which Python is given a date."""
    classes = times.constant(node.args[1])
    asked = classes if isinstance(classes, tuple) else (classes,)
    if any(isinstance(one, type) and issubclass(one, OWN_CLASSES) for one in asked):
        times.dates.make_own(node.args[0])


def _applied(times: BindingTimes, node: ast.Call, value: Any, given: list[Type]) -> Type:
    """What a function gives that is given a function."""
    if value is filter:
        return of.list_of(of.element(given[1]))
    if value is map:
        return of.list_of(given_by(times, node.args[0], list(map(of.element, given[1:]))))
    item = of.element(given[1])
    first = given[2] if len(given) > 2 else item
    return of.join([first, given_by(times, node.args[0], [first, item])])


def given_by(times: BindingTimes, function: ast.expr, given: list[Type]) -> Type:
    """What a function or lambda gives that is itself given to a function."""
    if isinstance(function, ast.Lambda):
        names = [one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)]
        found, times.found = times.found, {}
        inside = frozenset({len(times.bound)})
        typed = {
            name: Fact(EVENT, one, None, inside) for name, one in zip(names, given, strict=False)
        }
        times.bound.append(typed)
        body = times.of(function.body)
        times.bound.pop()
        times.found = found
        return body.type
    if isinstance(function, ast.Name):
        inner = times.inner_result(function.id, given)
        if inner is not None:
            return inner
    value = times.constant(function)
    if isinstance(value, types.FunctionType) and not is_of_a_library(value):
        return times.returns.of(value, given)
    if value is MISSING and isinstance(function, ast.Attribute):
        return times.returns.method(times.of(function.value).type, function.attr, [], given)
    owner = getattr(value, "__objclass__", None)  # str.strip
    if owner is not None and given:
        return times.returns.method(of.of_class(owner), value.__name__, [], given[1:])
    return library.function(value, given)


def _constant_of(times: BindingTimes, node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else times.constant(node)


def _helper(
    times: BindingTimes, node: ast.Call, function: types.FunctionType, parts: list[Fact]
) -> Fact:
    """A call of a plain function: compiled along if it can be, and else staged as it is."""
    here = Fact(STATE, ANY, ANY, bound_in(parts))
    if update_name(function) is not None or not parts:
        return here
    if max(part.depends for part in parts) == STATE:
        return here
    if of.required(parts[-1].type).name == "dict":
        function = OF_MAPPINGS.get(function, function)
    is_of_numbers = all(part.compiled and of.is_number(part.compiled) for part in parts)
    given = times.returns.bound(function, parts, [one.arg for one in node.keywords])
    if given is None:
        return here  # a call that is wrong, which whoever compiles it says
    try:
        source = times.parse(function)
    except Exception:
        return here if is_of_numbers else joined(parts, ANY, False)
    is_own = _give_own(times, node, function, parts)
    if keeps(function, times.parse):
        return here
    is_shown = not is_own and _is_shown(times, source, given)
    if not (is_own or is_shown) and times.returns.compiles(source, given, is_of_numbers):
        return here
    types_given = {name: own_type(one.type) if is_own else one.type for name, one in given.items()}
    return joined(parts, times.returns.of_bound(function, types_given), False)


def _is_shown(times: BindingTimes, source: FunctionSource, given: dict[str, Fact]) -> bool:
    """Whether it makes a text of a date, time or decimal, which is left to Python."""
    names = {name for name, one in given.items() if is_of_column(of.required(one.type))}
    return bool(names) and bool(names & shown_in(source.tree, source.original, times.parse))


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
