"""Conditions about two events: where they say that values of both are equal, these are looked up."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specstream.rules.formula import (
    TRUE,
    And,
    Atom,
    Formula,
    Temporal,
    conjunction,
    free,
    has_future,
    lowered,
    negation,
    variable,
)

if TYPE_CHECKING:
    from specstream.rules.generate import Generator

__all__ = ["Sliced", "equalities", "sliced"]


@dataclass(frozen=True)
class Sliced:
    """An operator that has a value for each value that both events are to share.

    Attributes:
        formula: itself.
        inner: of the event that it looks at, what is to be equal.
        outer: of the event that it looks from.
        goal: what else is to come, of the first one.
        held: what else is to hold; an event of another slice cannot break it.
    """

    formula: Temporal
    inner: tuple[str, ...]
    outer: tuple[str, ...]
    goal: Formula
    broken: Formula

    @property
    def closed(self) -> tuple[Formula, ...]:
        """The formulas about the other event alone."""
        return (self.goal, self.broken)

    def lines(self, rule: Generator, name: str) -> list[str]:
        raise NotImplementedError


def sliced(formula: Temporal) -> Sliced | None:
    """The same by slices, where that is possible."""
    return None


def equalities(formula: Formula, depth: int) -> tuple[list[tuple[str, str]], list[Formula]]:
    """Of a conjunction, what is to be equal of the event at a depth and of those around it, and the
    rest."""
    found: list[tuple[str, str]] = []
    rest: list[Formula] = []
    own = variable(depth)
    for one in formula.parts if isinstance(formula, And) else (formula,):
        sides = _sides(one)
        if sides is not None:
            left, right = (free(Atom(side)) for side in sides)
            if left == {own} and right and own not in right:
                found.append(sides)
                continue
            if right == {own} and left and own not in left:
                found.append((sides[1], sides[0]))
                continue
        rest.append(one)
    return found, rest


def _sides(formula: Formula) -> tuple[str, str] | None:
    if not isinstance(formula, Atom):
        return None
    tree = ast.parse(formula.code, mode="eval").body
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq):
        return ast.unparse(tree.left), ast.unparse(tree.comparators[0])
    return None
