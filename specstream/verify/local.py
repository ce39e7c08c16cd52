"""Dicts and sets of an event's own, and of a module, with keys that need not be known.

They are the oracle's, over entries that are found by going through them: whether a key is one of
them is asked of each, and forks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from specstream.compiler.oracle_objects import local

__all__ = ["Dict", "Set", "of_frozen"]


class _Entries:
    """What the oracle's dicts ask of Python's dict, in the order of insertion."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        self._pairs = list(pairs)

    def _place(self, key: Any) -> int | None:
        places = (at for at, (own, _) in enumerate(self._pairs) if local.equal(own, key))
        return next(places, None)

    def __len__(self) -> int:
        return len(self._pairs)

    def __contains__(self, key: object) -> bool:
        return self._place(key) is not None

    def __getitem__(self, key: Any) -> Any:
        at = self._place(key)
        if at is None:
            raise KeyError("?")
        return self._pairs[at][1]

    def get(self, key: Any, default: Any = None) -> Any:
        at = self._place(key)
        return default if at is None else self._pairs[at][1]

    def __setitem__(self, key: Any, value: Any) -> None:
        at = self._place(key)
        if at is None:
            self._pairs.append((key, value))
        else:
            self._pairs[at] = self._pairs[at][0], value

    def __delitem__(self, key: Any) -> None:
        at = self._place(key)
        if at is None:
            raise KeyError("?")
        del self._pairs[at]

    def __iter__(self) -> Iterator[Any]:
        yield from self.keys()

    def __reversed__(self) -> Iterator[Any]:
        yield from reversed(self.keys())

    def keys(self) -> list[Any]:
        return [key for key, _ in self._pairs]

    def values(self) -> list[Any]:
        return [value for _, value in self._pairs]

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._pairs)

    def popitem(self) -> tuple[Any, Any]:
        if not self._pairs:
            raise KeyError("popitem(): dictionary is empty")
        return self._pairs.pop()

    def clear(self) -> None:
        self._pairs.clear()


class Dict(local.Dict):
    """A dict of the event's own."""

    __slots__ = ()

    def __init__(self, given: Any = ()) -> None:
        self.changes = 0
        self.entries: Any = _Entries()
        self.update(given)

    def copy(self) -> Dict:
        return Dict(self)


class Set(local.Set):
    """A set of the event's own."""

    __slots__ = ()
    members_of = Dict

    def _made(self, elements: Iterable[Any]) -> Any:
        return Set(elements)


def of_frozen(value: Any) -> Any:
    """A value of a module as the oracle has it, whose keys may be asked for by unknown ones."""
    if isinstance(value, local.Dict) and not isinstance(value, Dict):
        return Dict([(key, of_frozen(one)) for key, one in value.items()])
    if isinstance(value, local.Set) and not isinstance(value, Set):
        return Set(value)
    return value
