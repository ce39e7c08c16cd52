"""The operators whose left side may be a bool: they ask it first, and make an integer of it.

Where that may be, :mod:`specstream.compiler.facts.bools` finds out.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from specstream.compiler.language.numbers import Int64, Uint64, shown_as

__all__ = ["OF_BOOLS", "NullBool"]


@shown_as("bool")
class NullBool(int):
    """A bool of a nullable column that is null, kept in a name: it is like False, of whose class
    none can derive, and knows what it is."""

    __slots__ = ()
    plain = False

    def __repr__(self) -> str:
        return "False"

    __str__ = __repr__


def _of_bools(operation: Callable[[Any, Any], Any], keeps: bool) -> Callable[[Any, Any], Any]:
    """An operator whose left side may be a bool; ``keeps``: of two bools it makes one."""

    def compute(left: Any, right: Any) -> Any:
        left = False if left.__class__ is NullBool else left
        right = False if right.__class__ is NullBool else right
        if left.__class__ is bool and not (keeps and right.__class__ is bool):
            left = Uint64(left) if right.__class__ is Uint64 else Int64(left)
        return operation(left, right)

    return compute


OF_BOOLS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: _of_bools(operator.add, False),
    ast.Sub: _of_bools(operator.sub, False),
    ast.Mult: _of_bools(operator.mul, False),
    ast.FloorDiv: _of_bools(operator.floordiv, False),
    ast.Mod: _of_bools(operator.mod, False),
    ast.LShift: _of_bools(operator.lshift, False),
    ast.RShift: _of_bools(operator.rshift, False),
    ast.BitAnd: _of_bools(operator.and_, True),
    ast.BitOr: _of_bools(operator.or_, True),
    ast.BitXor: _of_bools(operator.xor, True),
}
"""The operators that ask their left side first."""
