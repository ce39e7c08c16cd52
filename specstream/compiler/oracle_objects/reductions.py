"""What the oracle makes of all elements of an array: ``sum``, ``mean``, ``max`` and the like.

From left to right, over Python's numbers; a NaN is the least and the greatest, as among NumPy's
floats.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any

import numpy as np

from specstream.columns.exception_texts import in_python
from specstream.compiler.language.numbers import Int64

__all__ = ["NAMES", "Reductions", "floats", "reduction"]

NAMES = ("sum", "mean", "std", "var", "min", "max", "argmin", "argmax", "any", "all")


def _of_nothing(what: str) -> Exception:
    """What NumPy raises for an array without elements."""
    try:
        getattr(np.empty(0), what)()
    except ValueError as error:
        return error
    raise AssertionError("it raises")


class Reductions(ABC):
    """Something with elements."""

    zero: Any = Int64(0)

    @abstractmethod
    def _values(self) -> list[Any]:
        """The elements, the last axis first."""

    def _numbers(self, what: str) -> list[Any]:
        """The elements, for what only numbers have."""
        return self._values()

    def sum(self) -> Any:
        total, *rest = self._numbers("sum") or [self.zero]
        total = Int64(total) if isinstance(total, bool) else total
        for value in rest:
            total = total + value
        # NumPy begins with 0.0, which shows only where all elements are -0.0.
        return total + 0.0 if isinstance(total, float) else total

    def mean(self) -> float:
        count = len(self._values())
        return float(self.sum() / count) if count else math.nan

    def var(self) -> float:
        count, mean = len(self._values()), self.mean()
        distances = [float(value) - mean for value in self._values()]
        total = 0.0
        for at, distance in enumerate(distances):
            total = total + distance * distance if at else distance * distance
        return total / count if count else math.nan

    def std(self) -> float:
        return math.sqrt(self.var())

    def _extremum(self, what: str, wins: Callable[[Any, Any], bool]) -> tuple[int, Any]:
        values = self._numbers(what)
        if not values:
            error = ValueError(f"{what} of an empty array; test len(x) > 0 first")
            raise in_python(error, _of_nothing(what))
        best = 0
        for at, value in enumerate(values[1:], start=1):
            if values[best] == values[best] and (value != value or wins(value, values[best])):
                best = at
        return best, values

    def min(self) -> Any:
        at, values = self._extremum("min", operator.le)
        return values[at]

    def max(self) -> Any:
        at, values = self._extremum("max", operator.ge)
        return values[at]

    def argmin(self) -> Int64:
        return Int64(self._extremum("argmin", operator.lt)[0])

    def argmax(self) -> Int64:
        return Int64(self._extremum("argmax", operator.gt)[0])

    def any(self) -> bool:
        return any(self._values())

    def all(self) -> bool:
        return all(self._values())


class _Listed(Reductions):
    """A list of the event's own."""

    def __init__(self, values: list[Any]) -> None:
        self._list = values

    def _values(self) -> list[Any]:
        return self._list


class _Floats:
    """What is added up or multiplied, and is floats also where there are none."""

    zero = 0.0

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)


def floats(values: Any) -> _Floats:
    return _Floats(values)


def reduction(name: str) -> Callable[[Any], Any]:
    """What the oracle makes of all elements of an array by ``np.sum`` or ``np.max``."""

    def reduced(values: Any) -> Any:
        if not isinstance(values, Reductions):
            if name == "sum" or not isinstance(values, MutableSequence):
                raise TypeError(f"np.{name} of {type(values).__name__}")
            values = _Listed(list(values))
        return getattr(values, name)()

    return reduced
