"""How deep a function is nested: what goes through a tree goes one call deeper for each level.

A chain of ``elif`` is nested, each branch in the one before; so are the terms of a sum. Python
itself runs chains that are longer than what is analysed here in as many levels of calls.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from specstream.errors import CompileError

__all__ = ["DeepCode", "deepest", "too_deep"]

# Below it, it is not the function that is deep, but whoever declares the operator, or what Python
# computes for it.
_DEEP = 50
_WAYS_OUT = (
    "look the value up in a dict or list of the module, have a plain function do a part of it, "
    "or write several statements"
)


@dataclass(frozen=True)
class DeepCode:
    """The place in a function that is nested deepest.

    Attributes:
        line: in the tree's own lines.
        depth: how many levels of the tree are above it.
        made_of: the most frequent kind of them, and how many they are.
    """

    line: int
    depth: int
    made_of: tuple[type[ast.AST], int]

    @property
    def is_deep(self) -> bool:
        """Whether so deep that the analysis may run out of calls."""
        return self.depth >= _DEEP

    def told(self) -> tuple[str, str]:
        """What is wrong, and the ways out.

        >>> deepest(ast.parse("x = " + "+".join("a" * 300))).told()[0]
        'a chain of 299 operators in one expression is nested too deep to be compiled'
        """
        kind, count = self.made_of
        what = f"code of {self.depth} levels, one inside the other,"
        if kind is ast.If:
            what = f"a chain of {count} if and elif"
        elif kind is ast.IfExp:
            what = f"a chain of {count} conditional expressions"
        elif kind is ast.BinOp:
            what = f"a chain of {count} operators in one expression"
        elif kind in (ast.Call, ast.Attribute):
            what = f"an expression of {self.depth} calls and names, one inside the other,"
        return f"{what} is nested too deep to be compiled", _WAYS_OUT


def deepest(tree: ast.AST) -> DeepCode:
    """The deepest place of a tree, found without a call for each level.

    >>> deepest(ast.parse("a = 1\\nif a:\\n    b = a + (a + 1)")).line
    3
    """
    found = DeepCode(0, -1, (ast.AST, 0))
    above: list[ast.AST] = []
    todo = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        del above[depth:]  # where the last node was, but for what both have above them
        above.append(node)
        if depth > found.depth and hasattr(node, "lineno"):
            kinds = Counter(map(type, above))
            found = DeepCode(node.lineno, depth, kinds.most_common(1)[0])
        todo += [(one, depth + 1) for one in ast.iter_child_nodes(node)]
    return found


def too_deep(
    error: Exception, operator: str, functions: Iterable[tuple[str, ast.AST]]
) -> Exception:
    """What is raised where the compiler has run out of calls.

    Args:
        error: what was raised.
        functions: those that it has met, file and tree, with the lines of the file.

    Returns:
        The refusal of the deepest place; where none is deep a RecursionError, as it is.
    """
    places = [(filename, deepest(tree)) for filename, tree in functions]
    filename, place = max(places, key=lambda one: one[1].depth)
    if place.is_deep:
        return CompileError(operator, filename, place.line, *place.told())
    if not isinstance(error, RecursionError):
        error = RecursionError("maximum recursion depth exceeded")
    error.add_note(
        f"Nothing in operator {operator!r} is nested deep: it is declared, or its engine made, "
        "many calls deep; or what Python computes for it calls itself without end."
    )
    return error
