"""The functions of an operator as plain data, and back: so that an operator can be pickled.

The usual ways do not do. A function pickled by name is looked up in its module, which need not be
where the operator goes, and holds the operator under that name. A function pickled by value, as
bytecode, has no source, and the analysis starts from the source; and its globals would be those of
now, not those that were frozen when the operator was declared.

So what travels is the text of each function and the values that its names stood for. The other
side makes functions of them and analyses these again. The rewritten code, and with it the key of
the compiled code on disk, comes out the same.

A file name with a digest of the text keeps apart what came from one file at different times. The
text is left in :mod:`linecache`, from where the analysis, tracebacks and pdb read it.

Functions of the user's own that only Python calls, marked as pure or plain, go along with all that
they call, unless they belong to an installed package: that is looked for where the operator goes.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import linecache
import sys
import sysconfig
import textwrap
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from specstream.compiler.facts.name_bindings import MISSING, look_up
from specstream.compiler.facts.value_types import evaluated
from specstream.compiler.frontend.program import Written
from specstream.compiler.frontend.signatures import leave_out_computed
from specstream.compiler.language.definitions import definition_of
from specstream.compiler.language.frozen import Frozen
from specstream.compiler.language.parsing import parse
from specstream.declarations.pure import marked, pure_mark

__all__ = ["Packed", "called_by", "inner_function", "pack", "unpack", "written_as"]


_INSTALLED = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})


@dataclass(frozen=True)
class _Function:
    """Stands for a function of the same operator: its place among the packed ones."""

    place: int


@dataclass(frozen=True)
class _Module:
    """Stands for a module."""

    name: str


@dataclass(frozen=True)
class _Raised:
    """Stands for an exception class: where it is, and what it derives from."""

    module: str
    qualname: str
    bases: tuple[_Raised, ...]

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A record of version 0.1 has the name of the builtin class that it derives from.
        base = state.pop("base", None)
        if base is not None:
            state["bases"] = (_Raised("builtins", base, ()),)
        self.__dict__.update(state)


@dataclass(frozen=True)
class _Partial:
    """Stands for a function with arguments that were bound before."""

    function: Any
    arguments: tuple[Any, ...]
    named: dict[str, Any]


@dataclass(frozen=True)
class _Pure:
    """Stands for a function that is marked as pure."""

    function: Any
    returns: Any
    is_batch: bool


@dataclass(frozen=True)
class Packed:
    """A function: its source, what its names stand for, and its defaults, those of keyword-only
    parameters by name. One that only Python calls is not analysed again."""

    name: str
    qualname: str
    module: str
    filename: str
    text: str
    line: int
    names: dict[str, Any]
    defaults: tuple[tuple[Any, ...] | None, dict[str, Any] | None] = (None, None)
    is_called: bool = False


def pack(written: Mapping[types.FunctionType, Written]) -> tuple[Packed, ...]:
    """The functions as plain data, in their order, the operator's own the last of them; and behind
    them those that only Python calls."""
    called = called_by(written)
    places = {function: place for place, function in enumerate((*written, *called))}
    return tuple(
        Packed(
            function.__name__,
            function.__qualname__,
            function.__module__,
            function.__code__.co_filename,
            source.text,
            source.line,
            {name: _stand_in(value, places) for name, value in source.names.items()},
            (function.__defaults__, function.__kwdefaults__),
            function in called,
        )
        for function, source in (*written.items(), *called.items())
    )


def unpack(packed: tuple[Packed, ...]) -> list[types.FunctionType]:
    """The functions, made from their source, in the same order, without those that only Python
    calls."""
    errors: dict[_Raised, Any] = {}
    made = [_made(function) for function in packed]
    for function, one in zip(made, packed, strict=True):
        for name, value in one.names.items():
            function.__globals__[name] = _original(value, made, errors)
    return [function for function, one in zip(made, packed, strict=True) if not one.is_called]


def _stand_in(value: Any, places: Mapping[types.FunctionType, int]) -> Any:
    if isinstance(value, Frozen):
        return value
    if isinstance(value, types.ModuleType):
        return _Module(value.__name__)
    if isinstance(value, types.FunctionType) and value in places:
        return _Function(places[value])
    mark = pure_mark(value)
    inner: Any = None if mark is None else mark.function
    if mark is not None and isinstance(inner, types.FunctionType) and inner in places:
        # There the names of its module need not be.
        returns = evaluated(mark.returns, inner)
        return _Pure(_Function(places[inner]), returns, mark.is_batch)
    if isinstance(value, functools.partial):
        return _Partial(_stand_in(value.func, places), value.args, value.keywords)
    if isinstance(value, type) and issubclass(value, BaseException):
        return _raised(value)
    if isinstance(value, tuple):
        return tuple(_stand_in(one, places) for one in value)
    return value


def _raised(error: type[BaseException]) -> _Raised:
    is_pythons = error.__module__ == "builtins"
    bases = [one for one in error.__bases__ if issubclass(one, BaseException)]
    return _Raised(
        error.__module__,
        error.__qualname__,
        () if is_pythons else tuple(map(_raised, bases)),
    )


def _original(value: Any, made: list[types.FunctionType], errors: dict[_Raised, Any]) -> Any:
    if isinstance(value, Frozen):
        return value
    if isinstance(value, _Module):
        return importlib.import_module(value.name)
    if isinstance(value, _Function):
        return made[value.place]
    if isinstance(value, tuple):
        return tuple(_original(one, made, errors) for one in value)
    if isinstance(value, _Partial):
        of = _original(value.function, made, errors)
        return functools.partial(of, *value.arguments, **value.named)
    if isinstance(value, _Pure):
        of = _original(value.function, made, errors)
        return marked(of, value.returns, value.is_batch)
    return _exception_class(value, errors) if isinstance(value, _Raised) else value


def _exception_class(raised: _Raised, errors: dict[_Raised, Any]) -> Any:
    """The class, or one of its name where its module cannot be imported: one for all functions,
    derived from what it was derived from, so that ``except`` matches the same."""
    if raised not in errors:
        errors[raised] = _found_class(raised, errors)
    return errors[raised]


def _found_class(raised: _Raised, errors: dict[_Raised, Any]) -> Any:
    try:
        found: Any = importlib.import_module(raised.module)
        for part in raised.qualname.split("."):
            found = getattr(found, part)
        return found
    except (ImportError, AttributeError):
        bases = tuple(_exception_class(one, errors) for one in raised.bases)
        return type(raised.qualname, bases, {"__module__": raised.module})


def _made(function: Packed) -> types.FunctionType:
    """The function, before its names stand for anything."""
    # Two functions of a file may have the same text, as lambdas do, on different lines.
    digest = hashlib.sha256(f"{function.line}\n{function.text}".encode()).hexdigest()[:12]
    mark = f" ({function.name} {digest})"
    filename = function.filename.removesuffix(mark) + mark
    lines = ["\n"] * (function.line - 1) + function.text.splitlines(keepends=True)
    # Without a modification time the entry is never held against a file.
    linecache.cache[filename] = (sum(map(len, lines)), None, lines, filename)
    tree = parse(textwrap.dedent(function.text))
    ast.increment_lineno(tree, function.line - 1)
    definition: Any = tree.body[0]
    name = function.name
    # Annotations and defaults may name what was not taken along; the defaults' values were.
    if isinstance(definition, ast.FunctionDef):
        definition.returns = None
    else:  # name = lambda ...
        name, definition = definition.targets[0].id, definition.value
    leave_out_computed(definition.args)
    ast.fix_missing_locations(definition)
    namespace: dict[str, Any] = {"__name__": function.module}
    exec(compile(tree, filename, "exec"), namespace)
    made: types.FunctionType = namespace[name]
    made.__qualname__ = function.qualname
    positional, named = function.defaults
    made.__defaults__, made.__kwdefaults__ = positional, named and dict(named)
    return made


def called_by(
    written: Mapping[types.FunctionType, Written],
) -> dict[types.FunctionType, Written]:
    """The user's own functions to be pickled along: called, and not among those given."""
    found: dict[types.FunctionType, Written] = {}
    waiting = list(_functions(written.values()))
    while waiting:
        function = waiting.pop()
        if function in written or function in found:
            continue
        source = written_as(function)
        if source is not None:
            found[function] = source
            waiting += _functions([source])
    return found


def inner_function(value: Any) -> Any:
    """The function to pickle for one marked as pure, which the mark wraps; else the value."""
    mark = pure_mark(value)
    return value if mark is None else mark.function


def _functions(written: Iterable[Written]) -> list[types.FunctionType]:
    values = (inner_function(value) for one in written for value in one.names.values())
    return [value for value in values if isinstance(value, types.FunctionType)]


def written_as(function: types.FunctionType) -> Written | None:
    """The text of a function to pickle; None: it is an installed package's, or has no text.

    It comes with the values that its names stood for.
    """
    code = function.__code__
    root = str(function.__module__).split(".")[0]
    is_installed = root == "specstream" or root in sys.stdlib_module_names - {"__main__"}
    if is_installed or code.co_filename.startswith(_INSTALLED):
        return None
    found = definition_of(function)
    if found is None:
        return None
    values = {name: look_up(function, name) for name in sorted(_names_read(code))}
    names = {name: value for name, value in values.items() if value is not MISSING}
    return Written(found.text, found.line, code.co_filename, 0, names)


def _names_read(code: types.CodeType) -> set[str]:
    """The names that a function to be pickled reads, itself or in what is nested in it."""
    nested = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(_names_read, nested))
