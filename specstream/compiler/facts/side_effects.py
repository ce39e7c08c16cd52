"""Which functions keep something from one call to the next.

What such a function gives depends on the calls before, so Python may not compute it ahead, once for
each distinct value: it is compiled, and refused where it stores.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator

from specstream.compiler.facts.name_bindings import bindings_of, look_up
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.language.hints import is_of_a_library
from specstream.compiler.language.methods import CHANGING
from specstream.declarations.pure import pure_mark

__all__ = ["keeps"]

_MUTABLE = (list, dict, set)


def keeps(
    function: types.FunctionType,
    parse: Callable[[types.FunctionType], FunctionSource],
    seen: frozenset[types.FunctionType] = frozenset(),
) -> bool:
    """Whether a function, or a plain one that it calls, changes what was there before the call: a
    global, what a closure or a module holds, or a parameter's default."""
    if function in seen or pure_mark(function) is not None or is_of_a_library(function):
        return False  # the library's caches change nothing that it gives
    try:
        tree = parse(function).tree
    except Exception:  # of which nothing can be known
        return False
    local, *_ = bindings_of(tree)
    shared = set(_mutable_defaults(function))

    def is_kept(node: ast.AST) -> bool:
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and (node.id not in local or node.id in shared)

    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            return True
        if isinstance(node, ast.Attribute | ast.Subscript):
            changes = not isinstance(node.ctx, ast.Load) and is_kept(node)
            if changes:
                return True
        if not isinstance(node, ast.Call):
            continue
        callee = node.func
        if isinstance(callee, ast.Attribute) and callee.attr in CHANGING and is_kept(callee.value):
            return True
        called = look_up(function, callee.id) if isinstance(callee, ast.Name) else None
        if isinstance(called, types.FunctionType) and keeps(called, parse, seen | {function}):
            return True
    return False


def _mutable_defaults(function: types.FunctionType) -> Iterator[str]:
    """Parameters whose default is a list, dict or set: calls can change it for later ones."""
    code, given = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    for name, value in (*zip(names, given, strict=True), *(function.__kwdefaults__ or {}).items()):
        if isinstance(value, _MUTABLE):
            yield name
