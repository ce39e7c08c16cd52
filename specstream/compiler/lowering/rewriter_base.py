"""The base class of the native rewriting: what its parts need of each other.

The rewriting for Numba is one class, put together of one mixin for each idea, in a file of its own.
What a mixin calls and does not have is declared here.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from specstream.compiler.oracle.common_rewriting import Rewriter

__all__ = ["NativeParts"]


class NativeParts(Rewriter, ABC):
    """What each mixin of the native rewriting may call."""

    @abstractmethod
    def core(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.Call:
        """A call of a core function; its arguments are rewritten already."""

    @staticmethod
    @abstractmethod
    def run() -> ast.expr:
        """The running transaction."""

    @abstractmethod
    def begin(self, nested: Any = None) -> None:
        """Makes ready for a function, or for one nested in it."""

    @abstractmethod
    def new_name(self, what: str) -> str:
        """A name that no user can write, and that is assigned in one place only."""

    @abstractmethod
    def assign(self, target: ast.expr, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        """An assignment of a rewritten value to any target."""

    @abstractmethod
    def index(self, node: ast.expr) -> ast.expr:
        """An index as an expression that may be an argument: slices as calls of slice()."""

    @abstractmethod
    def positional(self, node: ast.Call, name: str) -> None:
        """Refuses keywords in a call."""

    @abstractmethod
    def as_generator(self, node: ast.expr) -> ast.expr:
        """``map(f, xs)`` and ``filter(f, xs)`` as the generators that they are."""

    @abstractmethod
    def by_columns(
        self, iterable: ast.expr, target: ast.expr, inside: Sequence[ast.AST]
    ) -> ast.expr:
        """What a loop goes through, where that is ``zip(*rows)``."""

    @abstractmethod
    def condition(self, node: ast.expr) -> ast.expr:
        """What stands as a condition, rewritten."""

    @abstractmethod
    def some(self, node: ast.expr, rewritten: ast.expr) -> ast.expr:
        """A rewritten expression, where None is no value."""
