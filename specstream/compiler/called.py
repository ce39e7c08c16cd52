"""The functions that Python calls for an operator, as they were written: they travel with it.

Those that an operator's functions call are compiled, and known from the analysis. What is lifted
calls others, marked as pure or plain; they are taken along with all that they call, by their source
and by what their names stand for, unless they belong to an installed package: that is looked for
where the operator goes.
"""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
import textwrap
import types
from collections.abc import Iterable, Mapping
from typing import Any

from specstream.compiler.bindings import MISSING, look_up
from specstream.compiler.program import Written
from specstream.declarations.pure import pure_mark

__all__ = ["called_by", "inner_function", "written_as"]

_INSTALLED = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})


def called_by(
    written: Mapping[types.FunctionType, Written],
) -> dict[types.FunctionType, Written]:
    """The functions of the user's own that are called, and are not among those."""
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
    """The function that is marked as pure, of what the mark has made of it; else the value."""
    mark = pure_mark(value)
    return value if mark is None else mark.function


def _functions(written: Iterable[Written]) -> list[types.FunctionType]:
    values = (inner_function(value) for one in written for value in one.names.values())
    return [value for value in values if isinstance(value, types.FunctionType)]


def written_as(function: types.FunctionType) -> Written | None:
    """A function as it was written; None: it is an installed package's, or nobody has its text."""
    code = function.__code__
    root = str(function.__module__).split(".")[0]
    is_installed = root == "specstream" or root in sys.stdlib_module_names - {"__main__"}
    if is_installed or code.co_filename.startswith(_INSTALLED):
        return None
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return None
    text = "".join(lines[definition.lineno - 1 :])
    values = {name: look_up(function, name) for name in sorted(_names(code))}
    names = {name: value for name, value in values.items() if value is not MISSING}
    line = first + definition.lineno - 1
    return Written(text, line, code.co_filename, 0, names)


def _names(code: types.CodeType) -> set[str]:
    """The names that are read, in the function and in what is nested in it."""
    nested = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(_names, nested))
