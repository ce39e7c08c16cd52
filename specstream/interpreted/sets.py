"""What sets of interpreted operators do that those of ``collections.abc`` do not.

A set of Python's own has its strings in another order in every process, so that an answer which
depends on it is another one each time. What ``state.a | state.b`` and the like give keeps the order
in which its elements came: :class:`specstream.declarations.ordered_set.OrderedSet`.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableSet
from typing import Any

from specstream.declarations.ordered_set import MutableInOrder, OrderedSet

__all__ = ["SetMethods"]


class SetMethods(MutableInOrder, MutableSet[Any]):
    """The methods of Python's own sets, of elements that lie in the state."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> OrderedSet:
        return OrderedSet(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> OrderedSet:
        return self.copy()  # keys are numbers, strings and tuples of them

    def issubset(self, given: Iterable[Any]) -> bool:
        return self <= set(given)

    def issuperset(self, given: Iterable[Any]) -> bool:
        return all(one in self for one in given)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self else "set()"
