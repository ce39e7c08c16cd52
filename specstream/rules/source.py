"""A rule's operator as a module of Python that runs alone."""

from __future__ import annotations

import ast
import inspect
import math
import types
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from specstream.compiler.language.definitions import definition_of, is_lambda
from specstream.compiler.language.parsing import parse
from specstream.declarations.pure import pure_mark
from specstream.declarations.schema import Column, Schema

__all__ = ["module_text", "names_given"]

_PLAIN = {pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool", pa.string(): "str"}


def module_text(
    name: str,
    text: str,
    names: Mapping[str, Any],
    event: Mapping[str, Any],
    emits: Mapping[str, Any],
    time_unit: str | None,
) -> str:
    """The text of a module.

    Args:
        name: of the operator's function.
        text: the classes of its state and its functions.
        names: what other names in it stand for.
        event: columns of its events.
        emits: those of its rows.
        time_unit: that it counts times in.
    """
    imports = {"import specstream as ss"}
    written: dict[str, str] = {}
    for one, value in names.items():
        _write(one, value, imports, written)
    options = [f"event={_columns(event, imports)}", f"emits={_columns(emits, imports)}"]
    if "class State(" in text:
        options.insert(0, "state=State")
    if "\ndef on_timer(" in f"\n{text}":
        options.append("on_timer=on_timer")
    if time_unit is not None:
        options.append(f"time_unit={time_unit!r}")
    decorator = "@ss.operator(\n" + "".join(f"    {one},\n" for one in options) + ")\n"
    text = f"\n{text}".replace(f"\ndef {name}(", f"\n{decorator}def {name}(").lstrip("\n")
    constants = "".join(f"{of}\n" for of in written.values() if "\n" not in of)
    helpers = "".join(f"{of.rstrip()}\n\n\n" for of in written.values() if "\n" in of)
    head = "\n".join(sorted(imports, key=lambda one: (one.startswith("from"), one))) + "\n\n"
    return f"{head}{constants}{'' if not constants else chr(10)}\n{helpers}{text}"


def names_given(text: str) -> set[str]:
    """The names that a text gives to something."""
    found: set[str] = set()
    for node in ast.walk(parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
    return found


def _write(name: str, value: Any, imports: set[str], written: dict[str, str]) -> None:
    """Takes in a line, or a definition, for a name."""
    if name in written:
        return
    module = getattr(value, "__module__", None)
    qualified = getattr(value, "__qualname__", "")
    if isinstance(value, types.ModuleType):
        imports.add(f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}"))
        return
    of_user = isinstance(value, types.FunctionType) and pure_mark(value) is None
    if of_user and not str(module).startswith(("specstream.", "numpy", "math")):
        definition = definition_of(value)
        if definition is not None:
            written[name] = ""  # it may call itself
            outside = inspect.getclosurevars(value)
            for one, inner in {**outside.globals, **outside.nonlocals}.items():
                _write(one, inner, imports, written)
            del written[name]
            text = inspect.cleandoc("\n" + definition.text) + "\n"
            if is_lambda(value):
                text = f"{name} = {text.partition('=')[2].strip()}"
            elif value.__name__ != name:
                text += f"\n\n{name} = {value.__name__}\n"
            written[name] = text
            return
    if callable(value) and module is not None and qualified.isidentifier():
        public = "specstream.structures" if module.startswith("specstream.structures") else module
        imports.add(f"from {public} import {qualified}" + _as(qualified, name))
        return
    is_odd = isinstance(value, float) and not math.isfinite(value)
    written[name] = f"{name} = float('{value}')" if is_odd else f"{name} = {value!r}"


def _as(qualified: str, name: str) -> str:
    return "" if qualified == name else f" as {name}"


def _columns(columns: Mapping[str, Any], imports: set[str]) -> str:
    found = [f"{one!r}: {_type(of, imports)}" for one, of in Schema.of(dict(columns), "event")]
    return "{" + ", ".join(found) + "}"


def _type(column: Column, imports: set[str]) -> str:
    of = column.arrow
    if of in _PLAIN:
        found = _PLAIN[of]
    elif pa.types.is_timestamp(of):
        found = f"ss.timestamp({of.unit!r}, {of.tz!r})"
    else:
        imports.add("import pyarrow as pa")
        text = str(of).replace("[day]", "").replace("[ms]", "")
        found = f"pa.{text}" if "(" in text else f"pa.{text}()"
    return f"ss.nullable({found})" if column.nullable else found
