"""Entries of a dict or a set of the state that the oracle looks up one by one.

For the error of one event the oracle runs over the state of an engine, which it leaves as it is. A
dict there may have millions of entries, of which the event asks for two: all of them would be made
Python's objects for each event that fails. So an entry is made when somebody asks for its key. Only
who goes through all of them gets all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["ABSENT", "FoundEntries", "NoStamps"]

ABSENT: Any = object()


class FoundEntries(dict[Any, Any]):
    """A dict of which the entries are somewhere else until they are asked for.

    Args:
        count: how many there are.
        find: gives the value of a key, or ``ABSENT``.
        all_of_them: gives all entries, in their order.

    >>> there = {3: "c", 1: "a", 2: "b"}
    >>> found = FoundEntries(3, lambda key: there.get(key, ABSENT), lambda: there)
    >>> found[1], 7 in found, len(found)
    ('a', False, 3)
    >>> del found[3]
    >>> found[3], found[2] = "again", "changed"
    >>> list(found.items())
    [(1, 'a'), (2, 'changed'), (3, 'again')]
    """

    def __init__(
        self,
        count: int,
        find: Callable[[Any], Any],
        all_of_them: Callable[[], dict[Any, Any]],
    ) -> None:
        super().__init__()
        self._count, self._find = count, find
        self._all: Callable[[], dict[Any, Any]] | None = all_of_them  # None: they are here
        self._gone: set[Any] = set()  # of those that were there, also if they have come again
        self._come: dict[Any, None] = {}  # since, in their order

    def __contains__(self, key: object) -> bool:
        if dict.__contains__(self, key):
            return True
        if self._all is None or key in self._gone:
            return False
        value = self._find(key)
        if value is ABSENT:
            return False
        dict.__setitem__(self, key, value)
        return True

    def __getitem__(self, key: Any) -> Any:
        if key not in self:
            raise KeyError(key)
        return dict.__getitem__(self, key)

    def get(self, key: Any, default: Any = None) -> Any:
        return dict.__getitem__(self, key) if key in self else default

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self:
            self._count += 1
            self._come[key] = None
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        self._count -= 1
        dict.__delitem__(self, key)
        if key in self._come:
            del self._come[key]
        else:
            self._gone.add(key)

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        self._all, self._count = None, 0
        dict.clear(self)

    # -- all of them --

    def _whole(self) -> FoundEntries:
        if self._all is not None:
            held = {key: one for key, one in self._all().items() if key not in self._gone}
            # Those that were asked for are here already, and may have changed.
            held = {key: dict.get(self, key, one) for key, one in held.items()}
            held |= {key: dict.__getitem__(self, key) for key in self._come}
            self._all = None
            dict.clear(self)
            dict.update(self, held)
        return self

    def __iter__(self) -> Iterator[Any]:
        return dict.__iter__(self._whole())

    def __reversed__(self) -> Iterator[Any]:
        return dict.__reversed__(self._whole())

    def keys(self) -> Any:
        return dict.keys(self._whole())

    def values(self) -> Any:
        return dict.values(self._whole())

    def items(self) -> Any:
        return dict.items(self._whole())

    def copy(self) -> dict[Any, Any]:
        return dict(dict.items(self._whole()))


class NoStamps(dict[Any, int]):
    """Numbers of insertions that nobody will ask for: those that are not here are 0."""

    def __missing__(self, key: Any) -> int:
        return 0

    def __delitem__(self, key: Any) -> None:
        self.pop(key, None)
