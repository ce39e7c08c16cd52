"""A set that keeps the order in which its elements came, as the sets of a state do.

``pop()`` and loops of an operator go by that order, so what is read out of a state to be given to
another one has to keep it. It is a ``set`` for whoever asks, and equals one with the same elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Self

__all__ = ["OrderedSet"]


class OrderedSet(set[Any]):
    """A set that iterates in the order of insertion; ``pop()`` takes the last element.

    It keeps the order when it is changed. What ``|``, ``&``, ``-`` and ``^`` make of it are plain
    sets, which have none.

    >>> kept = OrderedSet([3, 9, 1])
    >>> kept.add(5)
    >>> kept.discard(9)
    >>> list(kept), kept == {1, 3, 5}, kept.pop()
    ([3, 1, 5], True, 5)
    """

    __slots__ = ("_order",)

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._order = dict.fromkeys(elements)
        super().__init__(self._order)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self else "set()"

    def __reduce__(self) -> Any:
        return OrderedSet, (list(self),)

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

    def update(self, *others: Iterable[Any]) -> None:
        for other in others:
            for one in list(other):
                self.add(one)

    def difference_update(self, *others: Iterable[Any]) -> None:
        for other in others:
            for one in list(other):
                self.discard(one)

    def intersection_update(self, *others: Iterable[Any]) -> None:
        self.difference_update(self.difference(self.intersection(*others)))

    def symmetric_difference_update(self, other: Iterable[Any]) -> None:
        for one in dict.fromkeys(other):
            (self.discard if one in self else self.add)(one)

    def __ior__(self, other: AbstractSet[Any]) -> Self:  # type: ignore[misc]
        return self._changed(self.update, other)

    def __isub__(self, other: AbstractSet[Any]) -> Self:  # type: ignore[misc]
        return self._changed(self.difference_update, other)

    def __iand__(self, other: AbstractSet[Any]) -> Self:  # type: ignore[misc]
        return self._changed(self.intersection_update, other)

    def __ixor__(self, other: AbstractSet[Any]) -> Self:  # type: ignore[misc]
        return self._changed(self.symmetric_difference_update, other)

    def _changed(self, change: Any, other: object) -> Self:
        if not isinstance(other, AbstractSet):
            raise TypeError(f"expected a set, not {type(other).__name__}")
        change(other)
        return self
