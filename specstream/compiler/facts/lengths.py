"""How many values an expression gives, where the program says it.

What ``tuple(...)`` makes, and what a star puts into a call, has its length from there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from specstream.compiler.language.builtin_functions import names_where

__all__ = ["ArgumentGroup", "Lengths", "argument_groups"]

_AS_LONG = names_where(lambda one: one.is_as_long)


class Lengths:
    """The lengths of a function's expressions.

    Args:
        tree: the function.
        shapes: of the arrays of the state, by their names.
    """

    def __init__(self, tree: ast.FunctionDef, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.tree = tree
        self.shapes = shapes

    def of(self, node: ast.expr) -> int | None:
        """The length of what an expression gives; None: only a run knows."""
        rule = getattr(self, f"of_{type(node).__name__}", None)
        found: int | None = None if rule is None else rule(node)
        return found

    def of_Name(self, node: ast.Name) -> int | None:
        """A name of tuples, which stay as long as they are."""
        values = [
            one.value
            for one in ast.walk(self.tree)
            if isinstance(one, ast.Assign)
            and any(isinstance(of, ast.Name) and of.id == node.id for of in one.targets)
        ]
        stores = sum(
            isinstance(one, ast.Name) and one.id == node.id and not isinstance(one.ctx, ast.Load)
            for one in ast.walk(self.tree)
        )
        are_tuples = all(isinstance(one, ast.Tuple) or _is_tuple_call(one) for one in values)
        if not values or stores != len(values) or not are_tuples:
            return None
        found = {self.of(one) for one in values}
        return found.pop() if len(found) == 1 else None

    def of_Tuple(self, node: ast.Tuple | ast.List) -> int | None:
        is_starred = any(isinstance(one, ast.Starred) for one in node.elts)
        return None if is_starred else len(node.elts)

    of_List = of_Tuple

    def of_Attribute(self, node: ast.Attribute) -> int | None:
        shape = self.shapes.get(node.attr, ())
        return shape[0] if shape else None

    def of_Subscript(self, node: ast.Subscript) -> int | None:
        """A row of a field."""
        field = node.value.attr if isinstance(node.value, ast.Attribute) else ""
        shape = self.shapes.get(field, ())
        is_row = not isinstance(node.slice, ast.Slice | ast.Tuple) and len(shape) > 1
        return shape[1] if is_row else None

    def of_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> int | None:
        only = node.generators[0]
        is_plain = len(node.generators) == 1 and not only.ifs
        return self.of(only.iter) if is_plain else None

    of_GeneratorExp = of_ListComp

    def of_Call(self, node: ast.Call) -> int | None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        given = node.args
        if name in _AS_LONG and given:
            return self.of(given[0])
        if name == "map" and len(given) == 2:
            return self.of(given[1])
        if name == "range" and len(given) == 1 and isinstance(given[0], ast.Constant):
            count = given[0].value
            return max(count, 0) if isinstance(count, int) else None
        return None


@dataclass(frozen=True)
class ArgumentGroup:
    """What a call gives to parameters beside each other: one argument, or several with stars.

    Attributes:
        arguments: one; or from the first to the last star whose length only a run knows.
        first: the index of the first parameter that they are for.
        count: how many values they are; None: only a run knows.
    """

    arguments: list[ast.expr]
    first: int
    count: int | None


def argument_groups(call: ast.Call, lengths: Lengths, takes: int | None) -> list[ArgumentGroup]:
    """The arguments of a call by position, and the parameters that they are for.

    Stars whose length only a run knows have together what the other arguments leave.

    Args:
        call: of a function without defaults.
        lengths: of what has the stars.
        takes: how many parameters the function has; None: that is not known.
    """
    counts = [lengths.of(a.value) if isinstance(a, ast.Starred) else 1 for a in call.args]
    groups = [([argument], count) for argument, count in zip(call.args, counts, strict=True)]
    if None in counts:
        first, end = counts.index(None), len(counts) - counts[::-1].index(None)
        groups[first:end] = [(call.args[first:end], None)]
    others = len(call.keywords) + sum(count or 0 for _, count in groups)
    left = None if takes is None else max(takes - others, 0)
    found: list[ArgumentGroup] = []
    at = 0
    for arguments, count in groups:
        given = left if count is None else count
        found.append(ArgumentGroup(arguments, at, given))
        at += given or 0
    return found


def _is_tuple_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "tuple"
