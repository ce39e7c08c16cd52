"""Turns the numbers of date, time and decimal columns into Python's own dates and decimals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from specstream.columns.instants import Counted
from specstream.declarations.ordered_set import OrderedFrozenSet, OrderedSet

__all__ = ["Scaled", "own_value"]


class Scaled(Counted):
    """The number that an operator has of a decimal, and how many digits are behind the point.

    Attributes:
        scale: that many.
    """

    scale: int

    @classmethod
    def of(cls, number: int, scale: int) -> Scaled:
        """A number of so many digits behind the point."""
        made = cls(number)
        made.scale = scale
        return made

    def own(self) -> Decimal:
        # Not scaleb, which rounds to the digits of the context.
        sign, digits, _ = Decimal(int(self)).as_tuple()
        return Decimal((sign, digits, -self.scale))

    def __reduce__(self) -> Any:
        return Scaled.of, (int(self), self.scale)


def own_value(value: Any) -> Any:
    """The date, time or decimal that a number stands for, also inside of tuples, lists, sets and
    dicts; what is none stays.

    >>> own_value((Scaled.of(150, 2), 3))
    (Decimal('1.50'), 3)
    """
    if isinstance(value, Counted):
        return value.own()
    if type(value) is dict:
        return {own_value(key): own_value(one) for key, one in value.items()}
    if type(value) in (tuple, list, set, frozenset, OrderedSet, OrderedFrozenSet):
        return type(value)(map(own_value, value))
    return value
