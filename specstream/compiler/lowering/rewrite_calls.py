"""Calls in an operator, rewritten for Numba: of builtins, functions of modules, methods, emit.

A call of what the compiler has becomes that of a core function, which is found in a table beside
its instructions; one of the user's own function a call of what that was compiled to.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import types
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from specstream.compiler.facts.kept_codes import is_kept, may_be_code
from specstream.compiler.facts.refused_constructs import (
    builtin_name,
    default_name,
    is_true,
    math_name,
    numpy_name,
)
from specstream.compiler.frontend.made_nodes import constant, load
from specstream.compiler.frontend.nullable_flows import is_none
from specstream.compiler.frontend.signatures import bind, defaults_of, parameters_of_function
from specstream.compiler.frontend.unclear_text_names import why_not_of_event
from specstream.compiler.language import builtin_functions, numbers, standard_library
from specstream.compiler.language.frozen import EnumMembers, is_frozen
from specstream.compiler.language.hints import is_of_a_library, of_library
from specstream.compiler.language.methods import method_of
from specstream.compiler.language.text import refusal
from specstream.compiler.library import (
    array_methods,
    boosting,
    conversions,
    delta,
    draws,
    event,
    iteration,
    locking,
    method_dispatch,
    reductions,
)
from specstream.compiler.library.counter_methods import by_argument
from specstream.compiler.library.emit import KEPT, emit_row
from specstream.compiler.library.frozen_types import enum_member, native
from specstream.compiler.library.iteration import as_long_as
from specstream.compiler.library.math_exact import DEFAULTS, MATH
from specstream.compiler.library.number_builtins import BUILTINS
from specstream.compiler.library.numpy_functions import NUMPY
from specstream.compiler.lowering.comprehensions import (
    CONSUMERS,
    collected,
    consume,
)
from specstream.compiler.lowering.indices import bounds_for_none, index, slice_bounds
from specstream.compiler.lowering.native_rewriter import CONTAINERS, Handler, NativeRewriter, run
from specstream.compiler.lowering.nested import call_lambda, call_nested
from specstream.compiler.lowering.rewrite_local import (
    as_generator,
    as_made,
    container_method,
    made_of,
)
from specstream.compiler.lowering.rewrite_none import some
from specstream.compiler.lowering.rewrite_records import record
from specstream.compiler.lowering.starred_arguments import name_starred
from specstream.compiler.oracle.common_rewriting import (
    oracle_constant,
)
from specstream.compiler.oracle_objects.forms import EmittedForm
from specstream.declarations.deprecated import NEXT_GONE_WITH
from specstream.declarations.records import is_record
from specstream.declarations.rows import is_row
from specstream.declarations.updates import update_name
from specstream.errors import CompileError

__all__ = ["HANDLERS", "native_constant"]


def native_constant(value: Any) -> Any:
    """The constant that a rewritten call gets for a value, such as a parameter's default."""
    if is_frozen(value):
        return native(value)
    constant = oracle_constant(value)
    if isinstance(constant, tuple):
        return tuple(map(native_constant, constant))
    if isinstance(constant, numbers.Uint64):
        return np.uint64(constant)
    return int(constant) if isinstance(constant, numbers.Int64) else constant


class _AsLong(ast.expr):
    """What is to have the length of something else."""

    _fields = ("value", "other")

    def __init__(self, value: ast.expr, other: ast.expr) -> None:
        super().__init__()
        self.value = value
        self.other = other


def _call(rewriter: NativeRewriter, node: ast.Call) -> Any:
    if any(isinstance(one, ast.Starred) for one in node.args):
        name_starred(rewriter, node)
    callee = node.func
    if isinstance(callee, ast.Attribute):
        return _method(rewriter, node, callee)
    if isinstance(callee, ast.Lambda):
        return call_lambda(rewriter, node, callee)
    assert isinstance(callee, ast.Name)
    if callee.id in rewriter.nested.defined:
        return call_nested(rewriter, node, callee.id)
    if callee.id.startswith("__ss_"):
        return _written_before(rewriter, node, callee)
    if callee.id in rewriter.check.locals:
        return _emit(rewriter, node, callee)
    value = rewriter.check.resolved[callee.id]
    if isinstance(value, types.FunctionType):
        update = update_name(value)
        if update is not None:
            return _update(rewriter, node, callee, delta.UPDATES[update])
        return _helper(rewriter, node, callee, value)
    if is_record(value):
        return record(rewriter, node, callee.id, value)
    if is_row(value):
        rewriter.positional(node, callee.id)
        made = rewriter.bound(f"__ss_row_{callee.id}", value, node)
        return ast.copy_location(ast.Call(made, list(map(rewriter.visit, node.args)), []), node)
    if isinstance(value, EnumMembers):
        members = rewriter.bound(f"{callee.id}.__by_value__", native(value.by_value), node)
        rewriter.positional(node, callee.id)
        return rewriter.core(enum_member, members, *map(rewriter.visit, node.args), at=node)
    if isinstance(value, functools.partial):
        completed = _completed(rewriter, node, callee.id, value)
        assert isinstance(value.func, types.FunctionType)
        return _helper(rewriter, completed, callee, value.func)
    return _builtin(rewriter, node, callee.id, value)


def _written_before(rewriter: NativeRewriter, node: ast.Call, callee: ast.Name) -> ast.expr:
    ends = bounds_for_none(node.args[2] if len(node.args) > 2 else None)
    rewriter.generic_visit(node)
    if callee.id == "__ss_slice":
        bounds = slice_bounds(rewriter, list(node.args), ends)
        node.args = [one for one in bounds if one is not None]
    return node


def _update(rewriter: NativeRewriter, node: ast.Call, callee: ast.Name, native: Any) -> ast.expr:
    rewriter.positional(node, callee.id)
    original = rewriter.check.resolved[callee.id]
    parameters = list(inspect.signature(original).parameters)
    if len(node.args) != len(parameters):
        rest = ", x" * (len(parameters) - 2)
        rewriter.check.refuse(
            node,
            f"{callee.id} takes ({', '.join(parameters)})",
            f'write {callee.id}(state.array, i{rest}), or {callee.id}(state, "scalar"{rest})',
        )
    container, key, *values = node.args
    arguments = [rewriter.visit(container), rewriter.updated_scalar(node) or index(rewriter, key)]
    arguments += [some(rewriter, one, rewriter.visit(one)) for one in values]
    return rewriter.core(native, *arguments, at=node)


def _emit(rewriter: NativeRewriter, node: ast.Call, callee: ast.Name) -> ast.expr:
    if callee.id not in rewriter.source.parameters:
        rewriter.check.refuse(
            node,
            f"{callee.id!r} is a variable and cannot be called",
            "call emit, or a plain function by its own name",
        )
    names = rewriter.analysis.emits.names
    expected = f"expected emit({', '.join(names)})"
    if len(node.args) > len(names):
        rewriter.check.refuse(
            node, f"emit takes {len(names)} values, got {len(node.args)}", expected
        )
    given: dict[str, ast.expr] = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg not in names:
            rewriter.check.refuse(node, f"emit has no column {keyword.arg!r}", expected)
        if keyword.arg in given:
            rewriter.check.refuse(node, f"emit gets column {keyword.arg!r} twice", expected)
        given[keyword.arg] = keyword.value
    columns = dict(rewriter.analysis.emits)
    missing = [name for name in names if name not in given and not columns[name].nullable]
    if missing:
        rewriter.check.refuse(node, f"emit lacks {', '.join(map(repr, missing))}", expected)
    for name, value in given.items():
        if not columns[name].nullable and any(map(is_none, _emitted_values(value))):
            rewriter.check.refuse(
                value,
                f"emitted column {name!r} is declared {columns[name]} and may get None",
                f"declare it as emits={{{name!r}: ss.nullable(...)}}",
            )
        if isinstance(value, ast.Tuple) and not isinstance(value, EmittedForm):
            rewriter.check.refuse(
                value,
                f"emitted column {name!r} gets a tuple",
                f"give each column its own value, like emit({', '.join(names)})",
            )
    # In the order in which they are written, which is that of their evaluation.
    names_given: list[str] = []
    values: list[ast.expr] = []
    for name, value in given.items():
        if isinstance(value, EmittedForm):
            names_given.append(f"{name}:{value.number}")
            values += map(rewriter.visit, value.elts)
        else:
            names_given.append(f"{name}{KEPT}" if _is_code(rewriter, name, value) else name)
            values.append(rewriter.visit(value))
    columns_given = constant(",".join(names_given), node)
    return rewriter.core(emit_row, callee, columns_given, *values, at=node)


def _is_code(rewriter: NativeRewriter, name: str, value: ast.expr) -> bool:
    """Whether a column of strings may get the code that an int field keeps of one."""
    column = dict(rewriter.analysis.emits)[name]
    if column.kind != "str" or not rewriter.analysis.keeps_codes:
        return False
    if not may_be_code(value, rewriter.analysis.event, rewriter.analysis.layout):
        return False
    module = rewriter.source.original.__module__
    is_ready = module.startswith("specstream.operators")  # nobody can change it
    if not is_ready and is_kept(value, rewriter.source.tree, rewriter.analysis.layout):
        warnings.warn_explicit(
            f"operator {rewriter.analysis.operator!r}: {ast.unparse(value)} is the code of a "
            f"string, kept in a field of ints, and emitted into column {name!r}; that goes "
            f"with version {NEXT_GONE_WITH}: declare the field str, like ss.scalar(str)",
            DeprecationWarning,
            rewriter.source.filename,
            getattr(value, "lineno", rewriter.source.tree.lineno),
            module,
        )
    return True


def _method(rewriter: NativeRewriter, node: ast.Call, callee: ast.Attribute) -> ast.expr:
    owner = callee.value
    if isinstance(owner, ast.Name) and owner.id not in rewriter.check.locals:
        module = rewriter.check.resolved.get(owner.id)
        tables: dict[Any, Any] = {
            math: MATH | array_methods.MATH,
            np: NUMPY | array_methods.NUMPY,
        }
        table = tables.get(module)
        if table is not None and callee.attr in table:
            return _function_of_numbers(rewriter, node, callee.attr, table[callee.attr])
    if callee.attr == "is_null" and method_of("event", "is_null"):
        name = node.args[0]  # the name itself, not the code of a string
        return rewriter.core(event.event_is_null, rewriter.visit(owner), name, at=node)
    if callee.attr in locking.METHODS and not node.args and not node.keywords:
        return rewriter.core(locking.METHODS[callee.attr], run(), rewriter.visit(owner), at=node)
    if callee.attr in rewriter.analysis.operations:
        rewriter.positional(node, callee.attr)
        owner, name = rewriter.visit(owner), constant(callee.attr, node)
        values = [some(rewriter, argument, rewriter.visit(argument)) for argument in node.args]
        return rewriter.core(boosting.call_operation, run(), owner, name, *values, at=node)
    if callee.attr in draws.METHODS or callee.attr in method_dispatch.FUNCTIONS:
        return container_method(rewriter, node, callee)
    if callee.attr not in draws.INTRINSICS or not method_of("event", callee.attr):
        if hasattr(str, callee.attr) and not callee.attr.startswith("_"):
            source = rewriter.source
            first, inside = source.tree.lineno, source.original.__name__
            named = why_not_of_event(source.text, first, inside, node.lineno, callee.attr)
            rewriter.check.refuse(node, *(named or refusal(callee.attr)))
        name = constant(callee.attr, node)
        return rewriter.core(method_dispatch.unknown_method, rewriter.visit(owner), name, at=node)
    rewriter.positional(node, callee.attr)
    if len(node.args) != 1:
        rewriter.check.refuse(
            node,
            f"{callee.attr} takes one number",
            f"write event.{callee.attr}(0), and other numbers for more draws",
        )
    draw = some(rewriter, node.args[0], rewriter.visit(node.args[0]))
    return rewriter.core(draws.INTRINSICS[callee.attr], rewriter.visit(owner), draw, at=node)


def _function_of_numbers(
    rewriter: NativeRewriter, node: ast.Call, name: str, native: Any
) -> ast.expr:
    """Of a module, or a builtin; with keywords where it has such."""
    given = node.args[0] if node.args else None
    if name in ("fsum", "prod") and given is not None:
        node.args[0] = as_made(rewriter, given)
    if name not in DEFAULTS:
        rewriter.positional(node, ast.unparse(node.func))
        return rewriter.core(native, *map(rewriter.visit, node.args), at=node)
    return rewriter.core(native, *_with_defaults(rewriter, node, DEFAULTS[name]), at=node)


def _with_defaults(
    rewriter: NativeRewriter, node: ast.Call, parameters: tuple[tuple[str, Any], ...]
) -> list[ast.expr]:
    """All arguments by their positions, those that are left out by their defaults."""
    names, name = [one for one, _ in parameters], ast.unparse(node.func)
    given = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in names or keyword.arg in given:
            takes = ", ".join(names)
            rewriter.check.refuse(node, f"{name} takes ({takes})", "give each parameter once")
        given[keyword.arg] = keyword.value
    places = [names.index(one) for one in given]
    if len(node.args) > len(names) or places != sorted(places):
        rewriter.check.refuse(
            node,
            f"{name} takes ({', '.join(names)})",
            "give them in this order, which is then the order of evaluation",
        )
    arguments: list[ast.expr] = []
    for one, default in parameters:
        if one not in given and default is ...:
            rewriter.check.refuse(node, f"{name} lacks {one!r}", f"it takes ({', '.join(names)})")
        value = given.get(one)
        if value is None:
            arguments.append(constant(default, node))
        else:
            arguments.append(rewriter.visit(value))
    return arguments


def _not_strict(rewriter: NativeRewriter, node: ast.Call) -> None:
    """``zip(..., strict=False)`` is what zip is without."""
    for keyword in node.keywords:
        constant = keyword.value
        if keyword.arg == "strict" and not (
            isinstance(constant, ast.Constant) and constant.value is False
        ):
            if is_true(constant) and not rewriter.analysis.catches:
                _same_lengths(rewriter, node)
                continue
            rewriter.check.refuse(
                node,
                "zip checks lengths where they end, which is not compiled",
                "test if len(x) != len(y): raise ValueError before, and write strict=False",
            )
    node.keywords = [one for one in node.keywords if one.arg != "strict"]


def _same_lengths(rewriter: NativeRewriter, node: ast.Call) -> None:
    """Tests the lengths before: nobody can see what was done until they were found different,
    as nothing is caught, and the event is undone as a whole."""
    first = rewriter.new_name("first")
    for at, given in enumerate(node.args):
        given = as_made(rewriter, given)
        name = ast.Name(first, ast.Store() if at == 0 else ast.Load())
        made = ast.NamedExpr(name, given) if at == 0 else _AsLong(given, name)
        node.args[at] = ast.fix_missing_locations(ast.copy_location(made, given))


def _as_long(rewriter: NativeRewriter, node: _AsLong) -> Any:
    return rewriter.core(as_long_as, rewriter.visit(node.value), node.other, at=node)


def _by_position(rewriter: NativeRewriter, node: ast.Call, names: tuple[str, ...]) -> ast.Call:
    """A call with its keywords as positional arguments, where they come in that order."""
    following = [keyword.arg for keyword in node.keywords]
    at = len(node.args)
    if following != list(names[at : at + len(following)]):
        called = ast.unparse(node.func)
        rewriter.check.refuse(
            node,
            f"{called} takes ({', '.join(names)})",
            "give them in this order, each once",
        )
    values = [keyword.value for keyword in node.keywords]
    return ast.copy_location(ast.Call(node.func, [*node.args, *values], []), node)


def _helper(
    rewriter: NativeRewriter, node: ast.Call, callee: ast.Name, value: types.FunctionType
) -> ast.expr:
    function = rewriter.bound(
        f"__ss_function_{callee.id}", _compiled(rewriter, value, callee), callee
    )
    given = bind(node, callee.id, parameters_of_function(value), rewriter.check.refuse)
    of_mapping = standard_library.OF_MAPPINGS.get(value)
    if of_mapping is not None:
        name = f"__ss_function_{callee.id}_of_mapping"
        other = rewriter.bound(name, _compiled(rewriter, of_mapping, callee), callee)
        arguments = [run(), *map(rewriter.visit, node.args)]
        return rewriter.core(by_argument, function, other, *arguments, at=node)
    # Keywords stay keywords: the order in which they are written is that of their evaluation.
    arguments = [run(), *(rewriter.argument(rewriter.visit(one)) for one in node.args)]
    named = list(given.items())[len(node.args) :]
    named += [
        (name, _frozen(rewriter, f"{callee.id}_{name}", default, f"the default of {name!r}", node))
        for name, default in defaults_of(value).items()
        if name not in given
    ]
    keywords = [
        ast.keyword(name, rewriter.argument(rewriter.visit(argument))) for name, argument in named
    ]
    return ast.copy_location(ast.Call(function, arguments, keywords), node)


def _compiled(rewriter: NativeRewriter, value: types.FunctionType, callee: ast.Name) -> Any:
    """A plain function; what is wrong with one of a library is told where it is called."""
    library = of_library(value)
    if library is None or is_of_a_library(rewriter.source.original):
        return rewriter.analysis.compiled(value)
    with suppress(CompileError):
        return rewriter.analysis.compiled(value)
    return rewriter.check.refuse(callee, f"{callee.id!r} {library[0]}", library[1])


def _completed(
    rewriter: NativeRewriter, node: ast.Call, name: str, value: functools.partial[Any]
) -> ast.Call:
    """A call with the arguments that were bound before."""
    if not isinstance(value.func, types.FunctionType):
        rewriter.check.refuse(
            node,
            f"{name!r} is a partial of something that is not a plain function",
            "write a function that calls it",
        )

    def frozen(what: str, argument: Any) -> ast.expr:
        return _frozen(rewriter, f"{name}_{what}", argument, f"what {name!r} binds", node)

    given = {keyword.arg for keyword in node.keywords}
    first = [frozen(str(at), argument) for at, argument in enumerate(value.args)]
    named = [
        ast.keyword(one, frozen(one, argument))
        for one, argument in value.keywords.items()
        if one not in given
    ]
    call = ast.Call(node.func, [*first, *node.args], [*named, *node.keywords])
    return ast.copy_location(call, node)


def _frozen(rewriter: NativeRewriter, name: str, value: Any, what: str, at: ast.AST) -> ast.Name:
    """A name, to be visited, for a value that was read when the operator was declared."""
    name = default_name(name)
    rewriter.check.resolve(at, name, value, what)
    if name in rewriter.check.constants:
        rewriter.source.native_namespace[name] = native_constant(rewriter.check.constants[name])
    return load(name, at)


def _builtin(rewriter: NativeRewriter, node: ast.Call, name: str, value: Any) -> ast.expr:
    if value in (map, filter):
        generator: ast.expr = rewriter.visit(as_generator(rewriter, node))
        return generator
    if builtin_name(value) in CONSUMERS:
        consumed = consume(rewriter, node, str(builtin_name(value)))
        if consumed is not None:
            return consumed
    if builtin_name(value) in CONTAINERS:
        made = str(builtin_name(value))
        gathered = collected(rewriter, node, made)
        return made_of(rewriter, made, node) if gathered is None else gathered
    keywords = builtin_functions.of_keywords(str(builtin_name(value)))
    if keywords and node.keywords:
        node = _by_position(rewriter, node, keywords)
    if value is zip:
        _not_strict(rewriter, node)
    rewriter.positional(node, name)
    number = rewriter.number_in_text(node)
    if number is not None:
        return rewriter.core(conversions.float_, number, at=node)
    builtin = builtin_name(value)
    arguments = [rewriter.visit(argument) for argument in node.args]
    if builtin in iteration.BUILTINS or builtin in reductions.OF_AN_ARRAY:
        arguments = list(map(functools.partial(some, rewriter), node.args, arguments))
    if builtin in reductions.OF_AN_ARRAY and len(arguments) == 1:
        return rewriter.core(reductions.OF_AN_ARRAY[builtin], *arguments, at=node)
    if builtin == "len" and len(arguments) != 1:
        rewriter.check.refuse(node, f"len takes one array, got {len(arguments)}", "write len(x)")
    if builtin == "enumerate" and len(arguments) == 2:
        arguments[1] = rewriter.core(conversions.enumerate_start, arguments[1], at=node)
    if builtin in iteration.BUILTINS:
        rewriter.source.native_namespace[f"__ss_{builtin}"] = iteration.BUILTINS[builtin]
        function = load(f"__ss_{builtin}", node)
        return ast.copy_location(ast.Call(function, arguments, []), node)
    if builtin is not None and builtin in BUILTINS:
        return rewriter.core(BUILTINS[builtin], *arguments, at=node)
    mathematical, numeric = math_name(value), numpy_name(value)
    if mathematical is not None:
        table = MATH | array_methods.MATH
        return _function_of_numbers(rewriter, node, mathematical, table[mathematical])
    if numeric is not None:
        return rewriter.core(NUMPY[numeric], *arguments, at=node)
    return rewriter.check.refuse(
        node,
        f"{name}() cannot be used in an operator",
        "use arithmetic, math functions, and plain functions of your own",
    )


def _emitted_values(value: ast.expr) -> list[ast.expr]:
    """In a call of ``emit``, rewritten: the values that a column may get by conditions."""
    if isinstance(value, ast.IfExp):
        return _emitted_values(value.body) + _emitted_values(value.orelse)
    return [value]


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.Call: _call,
    _AsLong: _as_long,
}
