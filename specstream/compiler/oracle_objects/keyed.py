"""Dicts, sets and timers of the state, as operators see them.

Where their entries lie is a *store*: Python's memory
(:class:`specstream.compiler.oracle_objects.entries.MemoryEntries`), or the logs of a run
(:class:`specstream.interpreted.logged.LoggedEntries`). What keys and values are as Python's
objects, a :class:`specstream.compiler.oracle_objects.codec.Codec` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from copy import deepcopy
from typing import Any

from specstream.compiler.language.numbers import shown_as
from specstream.compiler.oracle_objects.codec import Codec
from specstream.compiler.oracle_objects.local import Dict, Set, is_mapping, iterate
from specstream.compiler.oracle_objects.lookup import ABSENT
from specstream.declarations.element_types import storage_of

__all__ = ["StateDict", "StateSet", "StateTimers", "keyed"]

_INT = storage_of(int, "a time")


@shown_as("dict")
class StateDict(Dict):
    """A dict of the state; of a set, each value is None."""

    __slots__ = ("_check", "_codec", "_key", "store")
    entries: Any

    def __init__(self, store: Any, codec: Codec) -> None:
        self.store, self._codec, self.entries = store, codec, store.reader
        of, what = store.of, f"state.{store.name}"
        self._key = codec.check(of.key, f"a key of {what}")
        self._check: Callable[[Any], Any] = lambda value: None
        if store.slots is not None:
            self._check = store.slots.check
        elif of.value.words:
            self._check = codec.check(of.value, what)

    def held_key(self, key: Any) -> Any:
        """A key as it is held."""
        return self._key(key)

    def _asked(self, key: Any) -> Any:
        """A key that may be there; None: there is none of which a part is None."""
        is_none = key is None or (isinstance(key, tuple) and any(one is None for one in key))
        return None if is_none else self._key(key)

    def walk(self, items: Iterator[Any], what: str = "dictionary") -> Iterator[Any]:
        return iterate(self.store, items, what)

    def __getitem__(self, key: Any) -> Any:
        held = self._asked(key)
        try:
            return self.entries[held]
        except KeyError:
            raise self._codec.missing(key, held) from None

    def __contains__(self, key: object) -> bool:
        return self._asked(key) in self.entries

    def get(self, key: Any, default: Any = None) -> Any:
        found = self.entries.get(self._asked(key), ABSENT)
        return self._codec.default(default, self._check) if found is ABSENT else found

    def pop(self, key: Any, *default: Any) -> Any:
        if default and key not in self:
            return self._codec.default(default[0], self._check)
        return super().pop(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.store.put(self._key(key), self._check(value))

    def __delitem__(self, key: Any) -> None:
        held = self._asked(key)
        try:
            self.store.remove(held)
        except KeyError:
            raise self._codec.missing(key, held) from None

    def popitem(self) -> tuple[Any, Any]:
        key = self.store.last("popitem(): dictionary is empty")
        pair = key, self.entries[key]
        self.store.remove(key)
        return pair

    def update(self, given: Any = (), /, **named: Any) -> None:
        pairs = given
        if is_mapping(given):
            pairs = given.items()
        elif hasattr(given, "keys"):
            keys = given.keys()
            pairs = ((key, given[key]) for key in keys)
        for key, value in self._codec.gathered(pairs):
            self[key] = value
        for name, value in named.items():
            self[name] = value

    def clear(self) -> None:
        self.store.clear()

    def copy(self) -> Any:
        return self._codec.dict_of(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Any:
        return deepcopy(self.copy(), memo)

    def __ror__(self, other: Any) -> Any:
        return dict(other) | self.copy() if isinstance(other, dict) else NotImplemented


MutableMapping.register(StateDict)


@shown_as("set")
class StateSet(Set):
    """A set of the state."""

    __slots__ = ("_codec",)
    members: StateDict

    def __init__(self, members: StateDict, codec: Codec) -> None:
        self.members, self._codec = members, codec

    @property
    def store(self) -> Any:
        return self.members.store

    def _made(self, elements: Iterable[Any]) -> Any:
        return self._codec.set_of(elements)

    def _taken(self, others: Iterable[Iterable[Any]]) -> Iterable[Iterable[Any]]:
        return self._codec.sets(others)

    def add(self, one: Any) -> None:
        if self.store.of.expires or one not in self.members:
            self.members[one] = None

    def pop(self) -> Any:
        one = self.store.last("pop from an empty set")
        self.store.remove(one)
        return one

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()  # keys are numbers, strings and tuples of them


class StateTimers:
    """The timers of the state, or of a vertex."""

    __slots__ = ("_at", "_members")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, members: StateDict, codec: Codec) -> None:
        self._members = members
        self._at = codec.part(_INT, f"the time of a timer of state.{members.store.name}")

    @property
    def store(self) -> Any:
        return self._members.store

    def set(self, key: Any, at: Any) -> None:
        at = self._at(at)
        self.store.set_timer(self._members.held_key(key), at)

    def cancel(self, key: Any) -> None:
        if key in self._members:
            del self._members[key]

    def get(self, key: Any) -> Any:
        return self._members.get(key)

    def clear(self) -> None:
        self._members.clear()

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, key: object) -> bool:
        return key in self._members

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)


def keyed(store: Any, codec: Codec) -> Any:
    """What operators see of a store."""
    made = StateDict(store, codec)
    kinds = {"set": StateSet, "timers": StateTimers}
    return kinds[store.of.kind](made, codec) if store.of.kind in kinds else made
