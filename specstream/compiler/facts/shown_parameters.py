"""Parameters that a function of the user's makes a text of, itself or by a function that it calls.

A date, time or decimal of the event has Python's text there, which compiled code has not.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator

from specstream.compiler.facts.name_bindings import look_up
from specstream.compiler.frontend.operator_analysis import FunctionSource

__all__ = ["arguments_of", "is_of_ints", "shown_in", "source_tree"]

_SHOWING = {"str", "repr", "format", "ascii"}
_OF_INTS = tuple("bcdoxX")


Parse = Callable[[types.FunctionType], FunctionSource]
Functions = frozenset[types.FunctionType]


def source_tree(function: types.FunctionType, parse: Parse) -> ast.FunctionDef | None:
    """The tree of a function; None: its source cannot be read."""
    try:
        return parse(function).tree
    except Exception:
        return None


def shown_in(
    tree: ast.FunctionDef, function: types.FunctionType, parse: Parse, met: Functions = frozenset()
) -> set[str]:
    """The names of these parameters.

    Args:
        tree: what is gone through, and whose parameters are meant.
        function: by whose names it goes.
        parse: gives the source of functions that are called.
        met: functions that have been gone through.
    """
    shown: set[str] = set()
    for node in ast.walk(tree):
        shown |= {one.id for one in _shown(node) if isinstance(one, ast.Name)}
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        called = look_up(function, node.func.id)
        if isinstance(called, types.FunctionType) and called not in met:
            inside = source_tree(called, parse)
            if inside is not None:
                names = shown_in(inside, called, parse, met | {called})
                given = arguments_of(inside, node).items()
                shown |= {
                    one.id for name, one in given if name in names and isinstance(one, ast.Name)
                }
    return shown & set(_parameters(tree))


def arguments_of(tree: ast.FunctionDef, node: ast.Call) -> dict[str, ast.expr]:
    """What a call gives each parameter, to see what its function makes a text of.

    That is as far as it is written out.
    """
    given: dict[str, ast.expr] = {}
    for name, one in zip(_parameters(tree), node.args, strict=False):
        if isinstance(one, ast.Starred):
            break
        given[name] = one
    return given | {one.arg: one.value for one in node.keywords if one.arg is not None}


def is_of_ints(spec: ast.expr) -> bool:
    """Whether a parameter shown as ``{x:05d}`` is an int by that: no date, time or decimal."""
    formats = spec.values if isinstance(spec, ast.JoinedStr) else []
    ends = [str(one.value) for one in formats if isinstance(one, ast.Constant)]
    return "".join(ends).endswith(_OF_INTS)


def _parameters(tree: ast.FunctionDef) -> list[str]:
    given = tree.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _shown(node: ast.AST) -> Iterator[ast.expr]:
    """What a node makes a text of; a format of ints is none of a date or decimal."""
    for part in getattr(node, "shown", ()):  # of a call of emit that is rewritten already
        yield from _shown(part)
    if isinstance(node, ast.FormattedValue):
        if node.format_spec is None or not is_of_ints(node.format_spec):
            yield node.value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            yield from node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _SHOWING:
            yield from node.args[:1]
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            yield from (*node.args, *(one.value for one in node.keywords))
