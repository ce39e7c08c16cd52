"""Exception classes as numbers: what compiled code has of an exception.

A compiled function that raises returns the number of the exception's class as its status. Whether
``except`` matches is known for each number when the operator is compiled. The text is the oracle's:
it runs an event again whose exception got out of it.

Python's own classes have the same numbers everywhere; those of an operator are counted from
:data:`FIRST_OWN` on, as they are met.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable

from specstream.errors import SpecstreamError

__all__ = ["CLASSES", "FIRST_OWN", "LEAVES", "ErrorClasses", "number_of"]

# The event is left, whatever stands in the way: the runtime asked for it, or Numba's own code
# raised what has no number. It is the status of Numba's for an exception.
LEAVES = 1
FIRST_OWN = 1000
CLASSES = 1 << 12
"""A status is the number of a class, plus so much for each site (error_texts.py)."""

_PYTHONS: dict[type[BaseException], int] = {
    one: number
    for number, one in enumerate(
        (
            one
            for name, one in sorted(vars(builtins).items())
            if isinstance(one, type) and issubclass(one, Exception) and one.__name__ == name
        ),
        LEAVES + 1,
    )
}


def number_of(error: type[BaseException]) -> int:
    """The number of one of Python's own classes; LEAVES for one that has none."""
    return _PYTHONS.get(error, LEAVES)


class ErrorClasses:
    """The exception classes of one operator, by their numbers."""

    def __init__(self) -> None:
        self.own: dict[type[Exception], int] = {}
        self.caught: dict[type[Exception], None] = {}

    def number(self, error: type[Exception]) -> int:
        """The number of a class that the operator raises or catches."""
        known = number_of(error)
        return known if known != LEAVES else self.own.setdefault(error, FIRST_OWN + len(self.own))

    def catch(self, errors: Iterable[type[Exception]]) -> None:
        """Notes that the operator has a handler for these classes."""
        for one in errors:
            self.number(one)
            self.caught[one] = None

    def caught_by(self, errors: Iterable[type[Exception]]) -> list[int]:
        """The numbers that ``except`` of any of these classes matches, in their order."""
        caught = tuple(errors)
        return sorted(number for one, number in self.known().items() if issubclass(one, caught))

    def status_of(self, error: Exception) -> int:
        """What is raised for an exception that was met outside of compiled code: the number of a
        class that the same handlers match; LEAVES: there is none, or it is none of the operator's.
        """
        if isinstance(error, SpecstreamError):
            return LEAVES
        known = self.known()
        matched = [issubclass(type(error), one) for one in self.caught]
        for one in (*type(error).__mro__, *known):
            if one in known and matched == [issubclass(one, caught) for caught in self.caught]:
                return known[one]
        return LEAVES

    def described(self) -> str:
        """Everything about the operator's own classes that decides what the code does."""
        pythons = [one.__name__ for one in _PYTHONS]  # others in another version
        return repr(
            pythons
            + [
                (one.__module__, one.__qualname__, number, self.matched_by(one))
                for one, number in self.own.items()
            ]
        )

    def matched_by(self, error: type[Exception]) -> list[int]:
        """The numbers of the classes that it is one of."""
        return sorted(number for one, number in self.known().items() if issubclass(error, one))

    def known(self) -> dict[type[BaseException], int]:
        """All numbers of classes, and Python's own."""
        return _PYTHONS | dict[type[BaseException], int](self.own.items())
