"""What is known of an expression, where a name is assigned, and who is asked about functions."""

from __future__ import annotations

import ast
import types
from abc import ABC, abstractmethod
from dataclasses import dataclass

from specstream.compiler.facts.value_types import Type
from specstream.compiler.frontend.operator_analysis import FunctionSource

__all__ = ["CONSTANT", "EVENT", "STATE", "Binding", "Fact", "Results"]

CONSTANT, EVENT, STATE = range(3)
"""What an expression depends on: nothing that changes, the event alone, or more than that."""


@dataclass(frozen=True)
class Fact:
    """What is known of an expression.

    Attributes:
        depends: CONSTANT, EVENT or STATE.
        type: what it is for Python.
        compiled: what it is for compiled code, where that can compute it; None: it cannot.
        bound: which comprehensions and lambdas around it, from the outermost on, have variables
            that it uses.
        is_staged: Python computes it before.
        is_wide: it is an int that may well not fit 64 bits, like that of a digest, so that what is
            computed of it is Python's as well: ``int(digest, 16) % 16``.
    """

    depends: int
    type: Type
    compiled: Type | None = None
    bound: frozenset[int] = frozenset()
    is_staged: bool = False
    is_wide: bool = False

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


class Results(ABC):
    """What functions of the user's give, which Python calls: see
    :mod:`specstream.compiler.facts.return_types`."""

    @abstractmethod
    def bound(
        self, function: types.FunctionType, parts: list[Fact], names: list[str | None]
    ) -> dict[str, Fact] | None:
        """What the parameters are, of a call with these parts, the last ones by their names; None:
        there can be no such call."""

    @abstractmethod
    def compiles(self, source: FunctionSource, given: dict[str, Fact], of_numbers: bool) -> bool:
        """Whether a function is compiled along, or refused by whoever tries; what takes only
        numbers is, unless it makes of them what only Python has."""

    @abstractmethod
    def uses_own(
        self, function: types.FunctionType, given: dict[str, Fact]
    ) -> tuple[bool, tuple[str, str] | None]:
        """Whether a function takes dates, times and decimals for Python's own values; and what it
        does with them that has no answer."""

    @abstractmethod
    def of(self, function: types.FunctionType, given: list[Type]) -> Type:
        """What a function gives, of parameters of these types."""

    @abstractmethod
    def of_bound(self, function: types.FunctionType, given: dict[str, Type]) -> Type:
        """The same, with the parameters by their names."""

    @abstractmethod
    def method(self, owner: Type, name: str, arguments: list[ast.expr], given: list[Type]) -> Type:
        """What a method gives, of these arguments and their types."""

    @abstractmethod
    def attribute(self, owner: Type, name: str) -> Type:
        """What an attribute is."""
