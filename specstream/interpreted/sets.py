"""What sets of interpreted operators do, and the sets that they make: in the order of insertion.

A set of Python's own has its strings in another order in every process, so that an answer which
depends on it is another one each time. What ``state.a | state.b`` and the like give keeps the order
in which its elements came, and is else what Python's own is: equal to one, compared and joined with
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSet
from collections.abc import Set as AnySet
from typing import Any

__all__ = ["Ordered", "SetMethods"]


class SetMethods(MutableSet[Any]):
    """The methods of Python's own sets that those of ``collections.abc`` have not."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _from_iterable(cls, given: Iterable[Any]) -> Any:
        return Ordered(given)

    def __and__(self, other: AnySet[Any]) -> Any:
        return self.intersection(other) if isinstance(other, AnySet) else NotImplemented

    __rand__ = __and__

    # Those of ``collections.abc`` take whatever can be iterated over.
    def __or__(self, other: AnySet[Any]) -> Any:
        return self.union(other) if isinstance(other, AnySet) else NotImplemented

    def __ror__(self, other: AnySet[Any]) -> Any:
        return Ordered(other).union(self) if isinstance(other, AnySet) else NotImplemented

    def __sub__(self, other: AnySet[Any]) -> Any:
        return self.difference(other) if isinstance(other, AnySet) else NotImplemented

    def __rsub__(self, other: AnySet[Any]) -> Any:
        return Ordered(other).difference(self) if isinstance(other, AnySet) else NotImplemented

    def __xor__(self, other: AnySet[Any]) -> Any:
        return self.symmetric_difference(other) if isinstance(other, AnySet) else NotImplemented

    def __rxor__(self, other: AnySet[Any]) -> Any:
        return Ordered(other) ^ self if isinstance(other, AnySet) else NotImplemented

    def __ior__(self, other: AnySet[Any]) -> Any:
        return self._changed_by(self.update, other)

    def __iand__(self, other: AnySet[Any]) -> Any:
        return self._changed_by(self.intersection_update, other)

    def __isub__(self, other: AnySet[Any]) -> Any:
        return self._changed_by(self.difference_update, other)

    def __ixor__(self, other: AnySet[Any]) -> Any:
        return self._changed_by(self.symmetric_difference_update, other)

    def _changed_by(self, change: Callable[[Iterable[Any]], None], other: object) -> Any:
        if not isinstance(other, AnySet):
            return NotImplemented
        change(other)
        return self

    def copy(self) -> Ordered:
        return Ordered(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Ordered:
        return self.copy()  # keys are numbers, strings and tuples of them

    def update(self, *given: Iterable[Any]) -> None:
        for other in given:
            for one in list(other):
                self.add(one)

    def union(self, *given: Iterable[Any]) -> Ordered:
        made = self.copy()
        made.update(*given)
        return made

    def intersection(self, *given: Iterable[Any]) -> Ordered:
        others = list(map(set, given))
        return Ordered(one for one in self if all(one in other for other in others))

    def difference(self, *given: Iterable[Any]) -> Ordered:
        others = set().union(*given)
        return Ordered(one for one in self if one not in others)

    def symmetric_difference(self, given: Iterable[Any]) -> Ordered:
        other = Ordered(given)
        return self.difference(other).union(other.difference(self))

    def intersection_update(self, *given: Iterable[Any]) -> None:
        for one in self.difference(self.intersection(*given)):
            self.discard(one)

    def difference_update(self, *given: Iterable[Any]) -> None:
        for one in list(self.intersection(set().union(*given))):
            self.discard(one)

    def symmetric_difference_update(self, given: Iterable[Any]) -> None:
        for one in Ordered(given):
            if one in self:
                self.discard(one)
            else:
                self.add(one)

    def issubset(self, given: Iterable[Any]) -> bool:
        return self <= set(given)

    def issuperset(self, given: Iterable[Any]) -> bool:
        return all(one in self for one in given)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self else "set()"


class Ordered(SetMethods):
    """A set in no state.

    >>> (Ordered("ba") | {"c"}) == {"a", "b", "c"}, list(Ordered("ba") & {"a", "b"})
    (True, ['b', 'a'])
    """

    __slots__ = ("_members",)

    def __init__(self, given: Iterable[Any] = ()) -> None:
        self._members = dict.fromkeys(given)

    def __contains__(self, one: object) -> bool:
        return one in self._members

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def add(self, one: Any) -> None:
        self._members[one] = None

    def discard(self, one: Any) -> None:
        self._members.pop(one, None)

    def pop(self) -> Any:
        """The last one."""
        if not self._members:
            raise KeyError("pop from an empty set")
        return self._members.popitem()[0]
