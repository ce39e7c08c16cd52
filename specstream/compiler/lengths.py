"""How many values an expression gives, where the program says it.

What ``tuple(...)`` makes, and what a star puts into a call, has its length from there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

__all__ = ["length_of"]

_AS_LONG = ("list", "tuple", "sorted", "reversed", "enumerate")


def length_of(node: ast.expr, shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """The length of what an expression gives; None: only a run knows.

    Args:
        node: the expression.
        shapes: of the arrays of the state, by their names.
    """
    if isinstance(node, ast.Tuple | ast.List):
        is_starred = any(isinstance(one, ast.Starred) for one in node.elts)
        return None if is_starred else len(node.elts)
    if isinstance(node, ast.Attribute) and node.attr in shapes:
        return shapes[node.attr][0] if shapes[node.attr] else None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        shape = shapes.get(node.value.attr, ())
        if isinstance(node.slice, ast.Slice | ast.Tuple) or len(shape) < 2:
            return None
        return shape[1]
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        only = node.generators[0]
        is_plain = len(node.generators) == 1 and not only.ifs
        return length_of(only.iter, shapes) if is_plain else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if node.func.id in _AS_LONG and node.args:
        return length_of(node.args[0], shapes)
    if node.func.id == "map" and len(node.args) == 2:
        return length_of(node.args[1], shapes)
    if node.func.id == "range" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        count = node.args[0].value
        return max(count, 0) if isinstance(count, int) else None
    return None
