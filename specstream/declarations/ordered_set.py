"""Sets that keep the order in which their elements came, as the sets of a state do.

``pop()`` and loops of an operator go by that order, so what is read out of a state to be given to
another one has to keep it, and what Python computes of an event must not depend on the process.
They are a ``set`` and a ``frozenset`` for whoever asks, and equal one with the same elements.
The sets that operators see under Python have these methods as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

__all__ = ["InOrder", "MutableInOrder", "OrderedFrozenSet", "OrderedSet"]


class InOrder:
    """What all have that go through their elements in an order: the sets made of them are ordered.

    Where one of two sets is one of Python's own, in whatever order, the other's order counts.
    """

    __slots__ = ()

    def _made(self, elements: Iterable[Any]) -> Any:
        """A set of these."""
        return _like(self, elements)

    def _taken(self, others: Iterable[Iterable[Any]]) -> Iterable[Iterable[Any]]:
        """What is given to a method."""
        return others

    def union(self: Any, *others: Iterable[Any]) -> Any:
        return self._made(itertools.chain(self, *self._taken(others)))

    def intersection(self: Any, *others: Iterable[Any]) -> Any:
        kept = set(self).intersection(*self._taken(others))
        return self._made(one for one in self if one in kept)

    def difference(self: Any, *others: Iterable[Any]) -> Any:
        kept = set(self).difference(*self._taken(others))
        return self._made(one for one in self if one in kept)

    def symmetric_difference(self: Any, other: Iterable[Any]) -> Any:
        others = dict.fromkeys(*self._taken([other]))
        ours = [one for one in self if one not in others]
        return self._made([*ours, *(one for one in others if one not in self)])

    def __or__(self, other: Any) -> Any:
        return self.union(other) if isinstance(other, AbstractSet) else NotImplemented

    def __and__(self, other: Any) -> Any:
        return self.intersection(other) if isinstance(other, AbstractSet) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return self.difference(other) if isinstance(other, AbstractSet) else NotImplemented

    def __xor__(self, other: Any) -> Any:
        is_set = isinstance(other, AbstractSet)
        return self.symmetric_difference(other) if is_set else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return _like(other, other) | self if isinstance(other, AbstractSet) else NotImplemented

    def __rand__(self: Any, other: Any) -> Any:
        if not isinstance(other, AbstractSet):
            return NotImplemented
        return _like(other, (one for one in self if one in other))

    def __rsub__(self, other: Any) -> Any:
        return _like(other, other) - self if isinstance(other, AbstractSet) else NotImplemented

    def __rxor__(self, other: Any) -> Any:
        return _like(other, other) ^ self if isinstance(other, AbstractSet) else NotImplemented


class MutableInOrder(InOrder):
    """The same with what changes a set, by its ``add`` and ``discard``."""

    __slots__ = ()

    def update(self: Any, *others: Iterable[Any]) -> None:
        for other in self._taken(others):
            for one in list(other):
                self.add(one)

    def difference_update(self: Any, *others: Iterable[Any]) -> None:
        for other in self._taken(others):
            for one in list(other):
                self.discard(one)

    def intersection_update(self: Any, *others: Iterable[Any]) -> None:
        self.difference_update(self.difference(self.intersection(*others)))

    def symmetric_difference_update(self: Any, other: Iterable[Any]) -> None:
        for one in dict.fromkeys(*self._taken([other])):
            (self.discard if one in self else self.add)(one)

    def __ior__(self, other: Any) -> Any:
        return self._changed_by(self.update, other)

    def __isub__(self, other: Any) -> Any:
        return self._changed_by(self.difference_update, other)

    def __iand__(self, other: Any) -> Any:
        return self._changed_by(self.intersection_update, other)

    def __ixor__(self, other: Any) -> Any:
        return self._changed_by(self.symmetric_difference_update, other)

    def _changed_by(self, change: Callable[[Iterable[Any]], None], other: object) -> Any:
        if not isinstance(other, AbstractSet):
            return NotImplemented
        change(other)
        return self


def _like(of: object, elements: Iterable[Any]) -> Any:
    """An ordered set of the kind that something is of."""
    return (OrderedFrozenSet if isinstance(of, frozenset) else OrderedSet)(elements)


class OrderedFrozenSet(InOrder, frozenset[Any]):
    """A frozenset that iterates in the order of insertion.

    >>> kept = OrderedFrozenSet([3, 9, 1])
    >>> list(kept), list(kept | {5}), kept == frozenset({1, 3, 9}), hash(kept) == hash(kept.copy())
    ([3, 9, 1], [3, 9, 1, 5], True, True)
    """

    __slots__ = ("_order",)
    _order: dict[Any, None]

    def __new__(cls, elements: Iterable[Any] = ()) -> OrderedFrozenSet:
        order = dict.fromkeys(elements)
        made = super().__new__(cls, order)
        made._order = order
        return made

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)

    def __reduce__(self) -> Any:
        return type(self), (list(self),)

    def __repr__(self) -> str:
        return f"frozenset({{{', '.join(map(repr, self))}}})" if self else "frozenset()"

    def copy(self) -> OrderedFrozenSet:
        return self


class OrderedSet(MutableInOrder, set[Any]):
    """A set that iterates in the order of insertion; ``pop()`` takes the last element.

    It keeps the order when it is changed, and so do the sets that are made of it.

    >>> kept = OrderedSet([3, 9, 1])
    >>> kept.add(5)
    >>> kept.discard(9)
    >>> list(kept), list(kept - {1}), kept == {1, 3, 5}, kept.pop()
    ([3, 1, 5], [3, 5], True, 5)
    """

    __slots__ = ("_order",)
    _order: dict[Any, None]

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._order = dict.fromkeys(elements)
        super().__init__(self._order)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)

    def __reduce__(self) -> Any:
        return type(self), (list(self),)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self else "set()"

    def copy(self) -> OrderedSet:
        return OrderedSet(self)

    def add(self, element: Any) -> None:
        super().add(element)
        self._order[element] = None

    def discard(self, element: Any) -> None:
        if element in self:
            self.remove(element)

    def remove(self, element: Any) -> None:
        super().remove(element)
        del self._order[element]

    def pop(self) -> Any:
        if not self:
            raise KeyError("pop from an empty set")
        last = next(reversed(self._order))
        self.remove(last)
        return last

    def clear(self) -> None:
        super().clear()
        self._order.clear()
