"""Dicts, sets and timers of the state, as interpreted operators see them.

Each does what a few primitives of a backend do: find, insert and remove an entry, count them, walk
through them in the order of insertion.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    ItemsView,
    Iterator,
    KeysView,
    MappingView,
    MutableMapping,
    ValuesView,
)
from copy import deepcopy
from typing import Any

from specstream._native import lib
from specstream.declarations.element_types import storage_of
from specstream.declarations.state_layout import Field
from specstream.interpreted.coded import Begin, Coded, ElementsOf, full
from specstream.interpreted.records import Records
from specstream.interpreted.sets import SetMethods
from specstream.interpreted.values import INT64, whole

__all__ = ["Entries", "StateDict", "StateSet", "StateTimers"]

_INT = storage_of(int, "a time")


class Entries:
    """The entries of a keyed container: what a dict, a set and timers do with them."""

    def __init__(self, field: Field, number: int, run: Any, elements_of: ElementsOf, begin: Begin):
        assert field.container is not None
        self.of, self.name, self.number, self.run = field.container, field.name, number, run
        self.key = Coded(self.of.key, f"a key of state.{field.name}", elements_of)
        self.records: Records | None = None
        self.value: Coded | None = None
        what = f"state.{field.name}"
        if self.of.value.record is not None:
            self.records = Records(what, self.of.value, elements_of, begin)
        elif self.of.value.words:
            self.value = Coded(self.of.value, what, elements_of)
        self._first = 1 + self.of.key.words
        self._times = elements_of("state", _INT) if self.of.expires else None

    def codes(self, key: Any) -> tuple[int, ...]:
        return self.key.codes(self.key.parts(key))

    def find(self, key: Any) -> int:
        """The entry of a key; -1: it has none. None is no part of any key."""
        if key is None or (isinstance(key, tuple) and None in key):
            return -1
        found: int = self.run.keyed_find(self.number, self.codes(key))
        return found

    def has(self, entry: int) -> Any:
        """The value of an entry."""
        first = self._first
        if self.records is not None:
            return self.records.at(entry, lambda: entry + first)
        return None if self.value is None else self.value.load(entry + first)

    def put(self, key: Any, value: Any) -> None:
        first, records, parts = self._first, self.records, ()
        codes = self.codes(key)
        if records is not None:
            values = records.values(value)
        elif self.value is not None:
            parts = self.value.parts(value)
        entry = self.run.keyed_find(self.number, codes)
        is_new = entry == -1
        if is_new:
            entry = self.run.keyed_insert(self.number, codes)
            if entry == -2:
                full(self.name, self.of)
        self._written(entry, is_new)
        if records is not None:
            records.put(entry, lambda: entry + first, value, values)
        elif self.value is not None:
            self.value.store(entry + first, parts)

    def _written(self, entry: int, is_new: bool) -> None:
        times = self._times
        if times is None:
            return
        time, word = self.run.column(0, ord("i"), 8), entry + self.of.entry_words - 1
        # Who keeps what expires counts on times that grow; otherwise it has to be told.
        if not self.run.speculates() and time < times[word]:
            self.run.keyed_rewound(self.number, entry)
        times[word] = time

    def remove(self, entry: int) -> None:
        if self.records is not None:
            self.records.left(entry)
        self.run.keyed_remove(self.number, entry)

    def clear(self) -> None:
        if self.records is not None:
            for entry in list(self.records.objects):
                self.records.left(entry)
        self.run.keyed_clear(self.number)

    def count(self) -> int:
        found: int = self.run.keyed_count(self.number)
        return found

    def key_of(self, entry: int) -> Any:
        return self.key.of_codes(self.run.keyed_key(self.number, entry, self.of.key.words))

    def item(self, entry: int) -> tuple[Any, Any]:
        return self.key_of(entry), self.has(entry)

    def walk(self, what: str, backwards: bool = False) -> Iterator[int]:
        """The entries in the order of their insertion."""
        run, number = self.run, self.number
        changes = run.keyed_changes(number)
        entries = run.keyed_entries(number)

        def check() -> None:
            if run.keyed_changes(number) != changes:
                raise RuntimeError(f"{what} changed size during iteration")

        for entry in reversed(entries) if backwards else entries:
            check()
            yield entry
        check()  # Python notices what the last round has done as well

    def last(self, problem: str) -> int:
        entries = self.run.keyed_entries(self.number)
        if not entries:
            raise KeyError(problem)
        last: int = entries[-1]
        return last


class _Walked(MappingView):
    """A view of a dict: what is made of each entry, both ways."""

    def __init__(self, of: StateDict, made: Callable[[int], Any]) -> None:
        super().__init__(of)
        self._walk, self._made = of._entries.walk, made

    def __iter__(self) -> Iterator[Any]:
        return map(self._made, self._walk("dictionary"))

    def __reversed__(self) -> Iterator[Any]:
        return map(self._made, self._walk("dictionary", backwards=True))


class _Keys(_Walked, KeysView[Any]):
    def __repr__(self) -> str:
        return f"dict_keys({list(self)!r})"


class _Values(_Walked, ValuesView[Any]):
    def __repr__(self) -> str:
        return f"dict_values({list(self)!r})"


class _Items(_Walked, ItemsView[Any, Any]):
    def __repr__(self) -> str:
        return f"dict_items({list(self)!r})"


class StateDict(MutableMapping[Any, Any]):
    """A dict of the state."""

    __slots__ = ("_entries",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def __getitem__(self, key: Any) -> Any:
        entry = self._entries.find(key)
        if entry < 0:
            raise KeyError(key)
        return self._entries.has(entry)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._entries.put(key, value)

    def __delitem__(self, key: Any) -> None:
        entry = self._entries.find(key)
        if entry < 0:
            raise KeyError(key)
        self._entries.remove(entry)

    def __contains__(self, key: object) -> bool:
        return self._entries.find(key) >= 0

    def get(self, key: Any, default: Any = None) -> Any:
        entry = self._entries.find(key)
        return default if entry < 0 else self._entries.has(entry)

    def __len__(self) -> int:
        return self._entries.count()

    def __iter__(self) -> Iterator[Any]:
        return map(self._entries.key_of, self._entries.walk("dictionary"))

    def __reversed__(self) -> Iterator[Any]:
        return map(self._entries.key_of, self._entries.walk("dictionary", backwards=True))

    def keys(self) -> KeysView[Any]:
        return _Keys(self, self._entries.key_of)

    def values(self) -> ValuesView[Any]:
        return _Values(self, self._entries.has)

    def items(self) -> ItemsView[Any, Any]:
        return _Items(self, self._entries.item)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[Any, Any]:
        entry = self._entries.last("popitem(): dictionary is empty")
        pair = self._entries.item(entry)
        self._entries.remove(entry)
        return pair

    def clear(self) -> None:
        self._entries.clear()

    def copy(self) -> dict[Any, Any]:
        return dict(self.items())

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> dict[Any, Any]:
        return deepcopy(self.copy(), memo)

    def __or__(self, other: Any) -> Any:
        return (
            self.copy() | dict(other)
            if isinstance(other, MutableMapping | dict)
            else NotImplemented
        )

    def __ror__(self, other: Any) -> Any:
        return dict(other) | self.copy() if isinstance(other, dict) else NotImplemented

    def __ior__(self, other: Any) -> StateDict:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return repr(self.copy())


class StateSet(SetMethods):
    """A set of the state."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def __contains__(self, one: object) -> bool:
        return self._entries.find(one) >= 0

    def __iter__(self) -> Iterator[Any]:
        return map(self._entries.key_of, self._entries.walk("Set"))

    def __len__(self) -> int:
        return self._entries.count()

    def add(self, one: Any) -> None:
        if self._entries.of.expires or one not in self:
            self._entries.put(one, None)

    def discard(self, one: Any) -> None:
        entry = self._entries.find(one)
        if entry >= 0:
            self._entries.remove(entry)

    def pop(self) -> Any:
        entry = self._entries.last("pop from an empty set")
        one = self._entries.key_of(entry)
        self._entries.remove(entry)
        return one

    def clear(self) -> None:
        self._entries.clear()


class StateTimers:
    """The timers of the state."""

    __slots__ = ("_entries",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def set(self, key: Any, at: Any) -> None:
        of = self._entries
        at = whole(at, f"the time of a timer of state.{of.name}", "int", *INT64)
        answer = of.run.timer_set(of.number, of.codes(key), at)
        if answer == lib.SS_TIMER_TOO_EARLY:
            raise ValueError(
                f"state.{of.name}.set: the timer that fires sets one for {at}, which is not after "
                "its own time; expected a later one"
            )
        if answer == lib.SS_TIMERS_FULL:
            full(of.name, of.of)

    def cancel(self, key: Any) -> None:
        entry = self._entries.find(key)
        if entry >= 0:
            self._entries.remove(entry)

    def get(self, key: Any) -> int | None:
        entry = self._entries.find(key)
        return None if entry < 0 else self._entries.has(entry)

    def clear(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return self._entries.count()

    def __contains__(self, key: object) -> bool:
        return self._entries.find(key) >= 0

    def __iter__(self) -> Iterator[Any]:
        return map(self._entries.key_of, self._entries.walk("dictionary"))
