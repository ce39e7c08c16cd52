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
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from specstream.compiler.facts.kept_codes import is_kept, may_be_code
from specstream.compiler.facts.lengths import argument_groups
from specstream.compiler.facts.refused_constructs import (
    builtin_name,
    default_name,
    is_true,
    math_name,
    numpy_name,
)
from specstream.compiler.frontend.nullable_flows import is_none
from specstream.compiler.frontend.signatures import bind, defaults_of, parameters_of_function
from specstream.compiler.frontend.unclear_text_names import why_not_of_event
from specstream.compiler.language import builtin_functions, numbers, standard_library
from specstream.compiler.language.frozen import EnumMembers, is_frozen
from specstream.compiler.language.hints import is_of_a_library, of_library
from specstream.compiler.language.methods import CHANGING, method_of
from specstream.compiler.language.standard_library import PREFIX
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
from specstream.compiler.lowering.comprehensions import CONSUMERS, Comprehensions
from specstream.compiler.lowering.rewrite_local import CONTAINERS
from specstream.compiler.lowering.rewrite_none import MaybeNone
from specstream.compiler.lowering.rewrite_records import RecordRewriter
from specstream.compiler.oracle.common_rewriting import (
    oracle_constant,
)
from specstream.compiler.oracle_objects.forms import EmittedForm
from specstream.declarations.deprecated import NEXT_GONE_WITH
from specstream.declarations.records import is_record, record_fields
from specstream.declarations.rows import is_row
from specstream.declarations.updates import update_name
from specstream.errors import CompileError

__all__ = ["CallRewriter", "native_constant"]


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


class _Spread(ast.expr):
    """What has a star in a call: so many values, which get a name.

    Attributes:
        least: values that a tuple may have: for those behind it has, there is None.
        columns: of emit, those that the values are for; "": of another function.
    """

    _fields = ("value", "target")

    def __init__(
        self, value: ast.expr, count: int, target: ast.Name, least: int, columns: str
    ) -> None:
        super().__init__()
        self.value = value
        self.count = count
        self.least = least
        self.columns = columns
        self.target = target


_USE_UP = builtin_functions.names_where(
    lambda one: (
        one.reads_no_element or (one.goes_through and (one.consumes or one.returns == "list"))
    )
)
"""What gives the same of a list as of a tuple, and keeps neither."""


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_list_of_rows(node: ast.expr | None) -> bool:
    """Whether what a call ``zip(*rows)`` is given is written as a list of lists."""
    if isinstance(node, ast.ListComp):
        return isinstance(node.elt, ast.List | ast.ListComp)
    return (
        isinstance(node, ast.List)
        and bool(node.elts)
        and all(isinstance(one, ast.List | ast.ListComp) for one in node.elts)
    )


def _may_get_lists(target: ast.expr, inside: Sequence[ast.AST]) -> bool:
    """Rewriting calls for Numba: whether that of ``zip(*rows)`` may give lists, not tuples."""
    if not isinstance(target, ast.Name):
        return isinstance(target, ast.Tuple)
    allowed: set[int] = set()
    reads: list[ast.Name] = []
    for part in inside:
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id == target.id:
                reads.append(node)
            elif isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
                is_used_up = isinstance(node.func, ast.Name) and node.func.id in _USE_UP
                allowed |= {id(node.args[0])} if is_used_up else set()
            elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
                allowed.add(id(node.value))
            elif isinstance(node, ast.For | ast.comprehension):
                allowed.add(id(node.iter))
    return all(isinstance(one.ctx, ast.Load) and id(one) in allowed for one in reads)


class CallRewriter(MaybeNone, Comprehensions, RecordRewriter, ABC):
    """The part of the rewriting that is about calls."""

    def visit_Call(self, node: ast.Call) -> Any:
        if any(isinstance(one, ast.Starred) for one in node.args):
            self.name_starred(node)
        callee = node.func
        if isinstance(callee, ast.Attribute):
            return self.method(node, callee)
        if isinstance(callee, ast.Lambda):
            return self.call_lambda(node, callee)
        assert isinstance(callee, ast.Name)
        if callee.id in self.nested.defined:
            return self.call_nested(node, callee.id)
        if callee.id.startswith("__ss_"):
            return self.written_before(node, callee)
        if callee.id in self.check.locals:
            return self.emit(node, callee)
        value = self.check.resolved[callee.id]
        if isinstance(value, types.FunctionType):
            update = update_name(value)
            if update is not None:
                return self.update(node, callee, delta.UPDATES[update])
            return self.helper(node, callee, value)
        if is_record(value):
            return self.record(node, callee.id, value)
        if is_row(value):
            self.positional(node, callee.id)
            made = self.bound(f"__ss_row_{callee.id}", value, node)
            return ast.copy_location(ast.Call(made, list(map(self.visit, node.args)), []), node)
        if isinstance(value, EnumMembers):
            members = self.bound(f"{callee.id}.__by_value__", native(value.by_value), node)
            self.positional(node, callee.id)
            return self.core(enum_member, members, *map(self.visit, node.args), at=node)
        if isinstance(value, functools.partial):
            completed = self.completed(node, callee.id, value)
            assert isinstance(value.func, types.FunctionType)
            return self.helper(completed, callee, value.func)
        return self.builtin(node, callee.id, value)

    @abstractmethod
    def written_before(self, node: ast.Call, callee: ast.Name) -> ast.expr:
        """A call that another rewriting has written; its arguments are the user's."""

    def by_columns(
        self, iterable: ast.expr, target: ast.expr, inside: Sequence[ast.AST]
    ) -> ast.expr:
        rows = self.lists_in(iterable)
        if rows is None or not _may_get_lists(target, inside):
            return iterable
        if any(self.may_change(one) for part in inside for one in ast.walk(part)):
            return iterable  # zip looks at a row when it gets there
        name = f"{PREFIX}{standard_library.transposed.__name__}"
        self.check.resolved[name] = standard_library.transposed
        made = ast.Call(ast.Name(name, ast.Load()), [rows], [])
        return ast.fix_missing_locations(ast.copy_location(made, iterable))

    def may_change(self, node: ast.AST) -> bool:
        """Whether a node may change a local list."""
        if isinstance(node, ast.Subscript):
            return not isinstance(node.ctx, ast.Load)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute):
            return node.func.attr in CHANGING
        called = self.check.resolved.get(getattr(node.func, "id", ""))
        return isinstance(called, types.FunctionType)

    def lists_in(self, iterable: ast.expr) -> ast.Name | None:
        """The local list of lists, as it is written, of which ``zip`` is given each one."""
        if not isinstance(iterable, ast.Call) or len(iterable.args) != 1 or iterable.keywords:
            return None
        (starred,) = iterable.args
        is_zip = isinstance(iterable.func, ast.Name) and (
            self.check.resolved.get(iterable.func.id) is zip
        )
        if not is_zip or not isinstance(starred, ast.Starred):
            return None
        rows = starred.value
        if not isinstance(rows, ast.Name) or rows.id not in self.check.locals:
            return None
        stored = [
            one.value if any(_is_name(target, rows.id) for target in one.targets) else None
            for one in ast.walk(self.source.tree)
            if isinstance(one, ast.Assign)
            and any(_is_name(part, rows.id) for target in one.targets for part in ast.walk(target))
        ]
        return rows if stored and all(map(_is_list_of_rows, stored)) else None

    def name_starred(self, node: ast.Call) -> None:
        """``f(*pair)``: each value of what has the star by itself. How many there are, the program
        says, or the number of parameters that are left."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        called = self.check.resolved.get(name)
        takes: int | None = None
        is_emit = name in self.source.parameters and name in self.check.locals
        if is_emit:
            takes = len(self.analysis.emits.names)
        elif name in self.check.locals:
            pass
        elif isinstance(called, type) and is_record(called):
            takes = len(record_fields(called))
        elif isinstance(called, types.FunctionType):
            names = parameters_of_function(called)
            takes = len(names.positional) - len(names.optional & set(names.positional))
        groups = argument_groups(node, self.lengths, takes)
        if any(group.count is None for group in groups):
            self.check.refuse(
                node,
                f"a star in a call of {ast.unparse(node.func)}",
                "loop over the columns with for i in range(len(rows[0]))"
                if name == "zip"
                else "write the values out, x[0], x[1]; of a list, max(xs) and min(xs)",
            )
        arguments: list[ast.expr] = []
        for group in groups:
            one, *others = group.arguments
            if not isinstance(one, ast.Starred):
                arguments.append(one)
                continue
            assert group.count is not None
            whole = ast.Tuple(group.arguments, ast.Load()) if others else one.value
            least, columns = group.count, ""
            if self.lengths.of(one.value) is None and is_emit:
                schema = list(self.analysis.emits)[group.first : group.first + group.count]
                columns = ", ".join(name for name, _ in schema)
                if group is groups[-1] and not node.keywords:
                    while least > 0 and schema[least - 1][1].nullable:
                        least -= 1
            parts = self.new_name("parts")
            spread = _Spread(whole, group.count, ast.Name(parts, ast.Store()), least, columns)
            for at in range(group.count):
                of = spread if at == 0 else ast.Name(parts, ast.Load())
                item = ast.Subscript(of, ast.Constant(at), ast.Load())
                arguments.append(ast.fix_missing_locations(ast.copy_location(item, node)))
        node.args = arguments

    def visit__Spread(self, node: _Spread) -> Any:
        value = self.spread(
            self.visit(self.as_made(node.value)), node.count, node, node.least, node.columns
        )
        return ast.copy_location(ast.NamedExpr(node.target, value), node)

    def update(self, node: ast.Call, callee: ast.Name, native: Any) -> ast.expr:
        self.positional(node, callee.id)
        original = self.check.resolved[callee.id]
        parameters = list(inspect.signature(original).parameters)
        if len(node.args) != len(parameters):
            rest = ", x" * (len(parameters) - 2)
            self.check.refuse(
                node,
                f"{callee.id} takes ({', '.join(parameters)})",
                f'write {callee.id}(state.array, i{rest}), or {callee.id}(state, "scalar"{rest})',
            )
        container, key, *values = node.args
        arguments = [self.visit(container), self.updated_scalar(node) or self.index(key)]
        arguments += [self.some(one, self.visit(one)) for one in values]
        return self.core(native, *arguments, at=node)

    def emit(self, node: ast.Call, callee: ast.Name) -> ast.expr:
        if callee.id not in self.source.parameters:
            self.check.refuse(
                node,
                f"{callee.id!r} is a variable and cannot be called",
                "call emit, or a plain function by its own name",
            )
        names = self.analysis.emits.names
        expected = f"expected emit({', '.join(names)})"
        if len(node.args) > len(names):
            self.check.refuse(
                node, f"emit takes {len(names)} values, got {len(node.args)}", expected
            )
        given: dict[str, ast.expr] = dict(zip(names, node.args, strict=False))
        for keyword in node.keywords:
            assert keyword.arg is not None
            if keyword.arg not in names:
                self.check.refuse(node, f"emit has no column {keyword.arg!r}", expected)
            if keyword.arg in given:
                self.check.refuse(node, f"emit gets column {keyword.arg!r} twice", expected)
            given[keyword.arg] = keyword.value
        columns = dict(self.analysis.emits)
        missing = [name for name in names if name not in given and not columns[name].nullable]
        if missing:
            self.check.refuse(node, f"emit lacks {', '.join(map(repr, missing))}", expected)
        for name, value in given.items():
            if not columns[name].nullable and any(map(is_none, _emitted_values(value))):
                self.check.refuse(
                    value,
                    f"emitted column {name!r} is declared {columns[name]} and may get None",
                    f"declare it as emits={{{name!r}: ss.nullable(...)}}",
                )
            if isinstance(value, ast.Tuple) and not isinstance(value, EmittedForm):
                self.check.refuse(
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
                values += map(self.visit, value.elts)
            else:
                names_given.append(f"{name}{KEPT}" if self.is_code(name, value) else name)
                values.append(self.visit(value))
        columns_given = ast.copy_location(ast.Constant(",".join(names_given)), node)
        return self.core(emit_row, callee, columns_given, *values, at=node)

    def is_code(self, name: str, value: ast.expr) -> bool:
        """Whether a column of strings may get the code that an int field keeps of one."""
        column = dict(self.analysis.emits)[name]
        if column.kind != "str" or not self.analysis.keeps_codes:
            return False
        if not may_be_code(value, self.analysis.event, self.analysis.layout):
            return False
        module = self.source.original.__module__
        is_ready = module.startswith("specstream.operators")  # nobody can change it
        if not is_ready and is_kept(value, self.source.tree, self.analysis.layout):
            warnings.warn_explicit(
                f"operator {self.analysis.operator!r}: {ast.unparse(value)} is the code of a "
                f"string, kept in a field of ints, and emitted into column {name!r}; that goes "
                f"with version {NEXT_GONE_WITH}: declare the field str, like ss.scalar(str)",
                DeprecationWarning,
                self.source.filename,
                getattr(value, "lineno", self.source.tree.lineno),
                module,
            )
        return True

    def method(self, node: ast.Call, callee: ast.Attribute) -> ast.expr:
        owner = callee.value
        if isinstance(owner, ast.Name) and owner.id not in self.check.locals:
            module = self.check.resolved.get(owner.id)
            tables: dict[Any, Any] = {
                math: MATH | array_methods.MATH,
                np: NUMPY | array_methods.NUMPY,
            }
            table = tables.get(module)
            if table is not None and callee.attr in table:
                return self.function_of_numbers(node, callee.attr, table[callee.attr])
        if callee.attr == "is_null" and method_of("event", "is_null"):
            name = node.args[0]  # the name itself, not the code of a string
            return self.core(event.event_is_null, self.visit(owner), name, at=node)
        if callee.attr in locking.METHODS and not node.args and not node.keywords:
            return self.core(locking.METHODS[callee.attr], self.run(), self.visit(owner), at=node)
        if callee.attr in self.analysis.operations:
            self.positional(node, callee.attr)
            owner, name = self.visit(owner), ast.copy_location(ast.Constant(callee.attr), node)
            values = [self.some(argument, self.visit(argument)) for argument in node.args]
            return self.core(boosting.call_operation, self.run(), owner, name, *values, at=node)
        if callee.attr in draws.METHODS or callee.attr in method_dispatch.FUNCTIONS:
            return self.container_method(node, callee)
        if callee.attr not in draws.INTRINSICS or not method_of("event", callee.attr):
            if hasattr(str, callee.attr) and not callee.attr.startswith("_"):
                source = self.source
                first, inside = source.tree.lineno, source.original.__name__
                named = why_not_of_event(source.text, first, inside, node.lineno, callee.attr)
                self.check.refuse(node, *(named or refusal(callee.attr)))
            name = ast.copy_location(ast.Constant(callee.attr), node)
            return self.core(method_dispatch.unknown_method, self.visit(owner), name, at=node)
        self.positional(node, callee.attr)
        if len(node.args) != 1:
            self.check.refuse(
                node,
                f"{callee.attr} takes one number",
                f"write event.{callee.attr}(0), and other numbers for more draws",
            )
        draw = self.some(node.args[0], self.visit(node.args[0]))
        return self.core(draws.INTRINSICS[callee.attr], self.visit(owner), draw, at=node)

    def function_of_numbers(self, node: ast.Call, name: str, native: Any) -> ast.expr:
        """Of a module, or a builtin; with keywords where it has such."""
        given = node.args[0] if node.args else None
        if name in ("fsum", "prod") and given is not None:
            node.args[0] = self.as_made(given)
        if name not in DEFAULTS:
            self.positional(node, ast.unparse(node.func))
            return self.core(native, *map(self.visit, node.args), at=node)
        return self.core(native, *self.with_defaults(node, DEFAULTS[name]), at=node)

    def with_defaults(
        self, node: ast.Call, parameters: tuple[tuple[str, Any], ...]
    ) -> list[ast.expr]:
        """All arguments by their positions, those that are left out by their defaults."""
        names, name = [one for one, _ in parameters], ast.unparse(node.func)
        given = dict(zip(names, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in names or keyword.arg in given:
                takes = ", ".join(names)
                self.check.refuse(node, f"{name} takes ({takes})", "give each parameter once")
            given[keyword.arg] = keyword.value
        places = [names.index(one) for one in given]
        if len(node.args) > len(names) or places != sorted(places):
            self.check.refuse(
                node,
                f"{name} takes ({', '.join(names)})",
                "give them in this order, which is then the order of evaluation",
            )
        arguments: list[ast.expr] = []
        for one, default in parameters:
            if one not in given and default is ...:
                self.check.refuse(node, f"{name} lacks {one!r}", f"it takes ({', '.join(names)})")
            value = given.get(one)
            if value is None:
                arguments.append(ast.copy_location(ast.Constant(default), node))
            else:
                arguments.append(self.visit(value))
        return arguments

    def not_strict(self, node: ast.Call) -> None:
        """``zip(..., strict=False)`` is what zip is without."""
        for keyword in node.keywords:
            constant = keyword.value
            if keyword.arg == "strict" and not (
                isinstance(constant, ast.Constant) and constant.value is False
            ):
                if is_true(constant) and not self.analysis.catches:
                    self.same_lengths(node)
                    continue
                self.check.refuse(
                    node,
                    "zip checks lengths where they end, which is not compiled",
                    "test if len(x) != len(y): raise ValueError before, and write strict=False",
                )
        node.keywords = [one for one in node.keywords if one.arg != "strict"]

    def same_lengths(self, node: ast.Call) -> None:
        """Tests the lengths before: nobody can see what was done until they were found different,
        as nothing is caught, and the event is undone as a whole."""
        first = self.new_name("first")
        for at, given in enumerate(node.args):
            given = self.as_made(given)
            name = ast.Name(first, ast.Store() if at == 0 else ast.Load())
            made = ast.NamedExpr(name, given) if at == 0 else _AsLong(given, name)
            node.args[at] = ast.fix_missing_locations(ast.copy_location(made, given))

    def visit__AsLong(self, node: _AsLong) -> Any:
        return self.core(as_long_as, self.visit(node.value), node.other, at=node)

    def by_position(self, node: ast.Call, names: tuple[str, ...]) -> ast.Call:
        """A call with its keywords as positional arguments, where they come in that order."""
        following = [keyword.arg for keyword in node.keywords]
        at = len(node.args)
        if following != list(names[at : at + len(following)]):
            called = ast.unparse(node.func)
            self.check.refuse(
                node,
                f"{called} takes ({', '.join(names)})",
                "give them in this order, each once",
            )
        values = [keyword.value for keyword in node.keywords]
        return ast.copy_location(ast.Call(node.func, [*node.args, *values], []), node)

    def positional(self, node: ast.Call, name: str) -> None:
        if node.keywords:
            self.check.refuse(node, f"{name} takes no keywords", "give the values by position")

    def helper(self, node: ast.Call, callee: ast.Name, value: types.FunctionType) -> ast.expr:
        function = self.bound(f"__ss_function_{callee.id}", self.compiled(value, callee), callee)
        given = bind(node, callee.id, parameters_of_function(value), self.check.refuse)
        of_mapping = standard_library.OF_MAPPINGS.get(value)
        if of_mapping is not None:
            name = f"__ss_function_{callee.id}_of_mapping"
            other = self.bound(name, self.compiled(of_mapping, callee), callee)
            arguments = [self.run(), *map(self.visit, node.args)]
            return self.core(by_argument, function, other, *arguments, at=node)
        # Keywords stay keywords: the order in which they are written is that of their evaluation.
        arguments = [self.run(), *(self.argument(self.visit(one)) for one in node.args)]
        named = list(given.items())[len(node.args) :]
        named += [
            (name, self.frozen(f"{callee.id}_{name}", default, f"the default of {name!r}", node))
            for name, default in defaults_of(value).items()
            if name not in given
        ]
        keywords = [
            ast.keyword(name, self.argument(self.visit(argument))) for name, argument in named
        ]
        return ast.copy_location(ast.Call(function, arguments, keywords), node)

    def compiled(self, value: types.FunctionType, callee: ast.Name) -> Any:
        """A plain function; what is wrong with one of a library is told where it is called."""
        library = of_library(value)
        if library is None or is_of_a_library(self.source.original):
            return self.analysis.compiled(value)
        with suppress(CompileError):
            return self.analysis.compiled(value)
        return self.check.refuse(callee, f"{callee.id!r} {library[0]}", library[1])

    def completed(self, node: ast.Call, name: str, value: functools.partial[Any]) -> ast.Call:
        """A call with the arguments that were bound before."""
        if not isinstance(value.func, types.FunctionType):
            self.check.refuse(
                node,
                f"{name!r} is a partial of something that is not a plain function",
                "write a function that calls it",
            )

        def frozen(what: str, argument: Any) -> ast.expr:
            return self.frozen(f"{name}_{what}", argument, f"what {name!r} binds", node)

        given = {keyword.arg for keyword in node.keywords}
        first = [frozen(str(at), argument) for at, argument in enumerate(value.args)]
        named = [
            ast.keyword(one, frozen(one, argument))
            for one, argument in value.keywords.items()
            if one not in given
        ]
        call = ast.Call(node.func, [*first, *node.args], [*named, *node.keywords])
        return ast.copy_location(call, node)

    def bound(self, name: str, value: Any, at: ast.AST) -> ast.Name:
        """A name for something that the native code calls."""
        self.source.native_namespace[name] = value
        return ast.copy_location(ast.Name(name, ast.Load()), at)

    def frozen(self, name: str, value: Any, what: str, at: ast.AST) -> ast.Name:
        """A name, to be visited, for a value that was read when the operator was declared."""
        name = default_name(name)
        self.check.resolve(at, name, value, what)
        if name in self.check.constants:
            self.source.native_namespace[name] = native_constant(self.check.constants[name])
        return ast.copy_location(ast.Name(name, ast.Load()), at)

    def builtin(self, node: ast.Call, name: str, value: Any) -> ast.expr:
        if value in (map, filter):
            generator: ast.expr = self.visit(self.as_generator(node))
            return generator
        if builtin_name(value) in CONSUMERS:
            consumed = self.consume(node, str(builtin_name(value)))
            if consumed is not None:
                return consumed
        if builtin_name(value) in CONTAINERS:
            made = str(builtin_name(value))
            collected = self.collected(node, made)
            return self.made_of(made, node) if collected is None else collected
        keywords = builtin_functions.of_keywords(str(builtin_name(value)))
        if keywords and node.keywords:
            node = self.by_position(node, keywords)
        if value is zip:
            self.not_strict(node)
        self.positional(node, name)
        number = self.number_in_text(node)
        if number is not None:
            return self.core(conversions.float_, number, at=node)
        builtin = builtin_name(value)
        arguments = [self.visit(argument) for argument in node.args]
        if builtin in iteration.BUILTINS or builtin in reductions.OF_AN_ARRAY:
            arguments = list(map(self.some, node.args, arguments))
        if builtin in reductions.OF_AN_ARRAY and len(arguments) == 1:
            return self.core(reductions.OF_AN_ARRAY[builtin], *arguments, at=node)
        if builtin == "len" and len(arguments) != 1:
            self.check.refuse(node, f"len takes one array, got {len(arguments)}", "write len(x)")
        if builtin == "enumerate" and len(arguments) == 2:
            arguments[1] = self.core(conversions.enumerate_start, arguments[1], at=node)
        if builtin in iteration.BUILTINS:
            self.source.native_namespace[f"__ss_{builtin}"] = iteration.BUILTINS[builtin]
            function = ast.copy_location(ast.Name(f"__ss_{builtin}", ast.Load()), node)
            return ast.copy_location(ast.Call(function, arguments, []), node)
        if builtin is not None and builtin in BUILTINS:
            return self.core(BUILTINS[builtin], *arguments, at=node)
        mathematical, numeric = math_name(value), numpy_name(value)
        if mathematical is not None:
            table = MATH | array_methods.MATH
            return self.function_of_numbers(node, mathematical, table[mathematical])
        if numeric is not None:
            return self.core(NUMPY[numeric], *arguments, at=node)
        return self.check.refuse(
            node,
            f"{name}() cannot be used in an operator",
            "use arithmetic, math functions, and plain functions of your own",
        )


def _emitted_values(value: ast.expr) -> list[ast.expr]:
    """In a call of ``emit``, rewritten: the values that a column may get by conditions."""
    if isinstance(value, ast.IfExp):
        return _emitted_values(value.body) + _emitted_values(value.orelse)
    return [value]
