"""What sets of interpreted operators do that those of ``collections.abc`` do not.

A set of Python's own has its strings in another order in every process, so that an answer which
depends on it is another one each time. What ``state.a | state.b`` and the like give keeps the order
in which its elements came: :class:`specstream.declarations.ordered_set.OrderedSet`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any

from specstream.compiler.oracle_objects.keyed import StateDict
from specstream.declarations.ordered_set import MutableInOrder, OrderedSet

__all__ = ["StateSet"]


class StateSet(MutableInOrder, MutableSet[Any]):
    """A set of the state, with the methods of Python's own."""

    __slots__ = ("_members",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, members: StateDict) -> None:
        self._members = members

    def __contains__(self, one: object) -> bool:
        return one in self._members

    def __iter__(self) -> Iterator[Any]:
        return self._members.walk(iter(self._members.entries), "Set")

    def __len__(self) -> int:
        return len(self._members)

    def add(self, one: Any) -> None:
        if self._members.store.of.expires or one not in self._members:
            self._members[one] = None

    def discard(self, one: Any) -> None:
        self._members.pop(one, None)

    def pop(self) -> Any:
        one = self._members.store.last("pop from an empty set")
        del self._members[one]
        return one

    def clear(self) -> None:
        self._members.clear()

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
