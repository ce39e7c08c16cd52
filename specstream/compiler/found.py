"""What is known of an expression, and where a name is assigned."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from specstream.compiler.value_types import Type

__all__ = ["CONSTANT", "EVENT", "STATE", "Binding", "Found"]

CONSTANT, EVENT, STATE = range(3)
"""What an expression depends on: nothing that changes, the event alone, or more than that."""


@dataclass(frozen=True)
class Found:
    """What is known of an expression.

    Attributes:
        depends: CONSTANT, EVENT or STATE.
        type: what it is for Python.
        compiled: what it is for compiled code, where that can compute it; None: it cannot.
        bound: which comprehensions and lambdas around it, from the outermost on, have variables
            that it uses.
        is_lifted: Python computes it before.
    """

    depends: int
    type: Type
    compiled: Type | None = None
    bound: frozenset[int] = frozenset()
    is_lifted: bool = False

    @property
    def is_bound(self) -> bool:
        """Whether it means nothing outside of what stands around it."""
        return bool(self.bound)


@dataclass(frozen=True)
class Binding:
    """The one place where a name is assigned.

    Attributes:
        value: what is assigned.
        annotation: its declared type.
        at: which element of the value, of so many; None: the value itself.
        star: which of so many is a list of what the others leave.
        loop: gives each element of the value to the name, one after the other.
    """

    value: ast.expr
    annotation: ast.expr | None = None
    at: tuple[int, int] | None = None
    star: int | None = None
    loop: ast.For | None = None
