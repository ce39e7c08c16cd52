"""Entries of dicts, sets and timers that lie in the words of a run, behind its logs.

The other store of :mod:`specstream.compiler.oracle_objects.keyed`, for interpreted operators in an
engine's threads. It does what a few functions of the runtime do: find, insert and remove an entry,
count them, walk through them in the order of insertion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specstream._native import lib
from specstream.compiler.language.reserved import RESERVED_COLUMNS
from specstream.compiler.oracle_objects.codec import Codec
from specstream.compiler.oracle_objects.entries import Made, full, too_early
from specstream.declarations.element_types import storage_of
from specstream.declarations.state_layout import Field
from specstream.interpreted.coded import Coded, ElementsOf
from specstream.interpreted.records import Records

__all__ = ["LoggedEntries"]

_INT = storage_of(int, "a time")
_WORD = ord("i"), 8


class LoggedEntries:
    """The entries of one field, as one worker has them.

    Args:
        number: of the container.
        run: of the worker.
        slots: of the records that it holds; else None.
    """

    def __init__(
        self,
        field: Field,
        number: int,
        run: Any,
        codec: Codec,
        elements_of: ElementsOf,
        slots: Records | None,
    ) -> None:
        assert field.container is not None
        self.of, self.name, self.slots = field.container, field.name, slots
        self.reader = self
        self._number, self._run, self._key_words = number, run, self.of.key.words
        self._words_of, self._key_of_words = (
            codec.to_words(self.of.key),
            codec.of_words(self.of.key),
        )
        value = self.of.value
        self._value = Coded(value, elements_of) if value.words and slots is None else None
        self._first = 1 + self.of.key.words
        self._times = elements_of("state", _INT) if self.of.expires else None

    @property
    def changes(self) -> int:
        found: int = self._run.keyed_changes(self._number)
        return found

    # ---- what is read ----

    def _find(self, key: Any) -> int:
        """The entry of a key; -1: it has none."""
        if key is None:
            return -1
        found: int = self._run.keyed_find(self._number, self._words_of(key))
        return found

    def _has(self, entry: int) -> Any:
        """The value of an entry."""
        first = entry + self._first
        if self.slots is not None:
            return self.slots.at(entry, lambda: first)
        return None if self._value is None else self._value.load(first)

    def _key_of(self, entry: int) -> Any:
        return self._key_of_words(self._run.keyed_key(self._number, entry, self._key_words))

    def _entries(self) -> list[int]:
        found: list[int] = self._run.keyed_entries(self._number)
        return found

    def __len__(self) -> int:
        found: int = self._run.keyed_count(self._number)
        return found

    def __contains__(self, key: object) -> bool:
        return self._find(key) >= 0

    def __getitem__(self, key: Any) -> Any:
        entry = self._find(key)
        if entry < 0:
            raise KeyError(key)
        return self._has(entry)

    def get(self, key: Any, default: Any = None) -> Any:
        entry = self._find(key)
        return default if entry < 0 else self._has(entry)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self.keys())

    def keys(self) -> Made:
        return Made(self._entries, self._key_of)

    def values(self) -> Made:
        return Made(self._entries, self._has)

    def items(self) -> Made:
        return Made(self._entries, lambda entry: (self._key_of(entry), self._has(entry)))

    def last(self, problem: str) -> Any:
        """The key that came last; raises ``KeyError`` with that text where there is none."""
        for key in reversed(self):
            return key
        raise KeyError(problem)

    # ---- what is written ----

    def put(self, key: Any, value: Any) -> None:
        """Stores a value that was checked."""
        run, words = self._run, self._words_of(key)
        entry = run.keyed_find(self._number, words)
        if entry == -1:
            entry = run.keyed_insert(self._number, words)
            if entry == -2:
                full(self.name, self.of)
        self._written(entry)
        first = entry + self._first
        if self.slots is not None:
            self.slots.put(entry, lambda: first, *value)
        elif self._value is not None:
            self._value.store(first, value)

    def _written(self, entry: int) -> None:
        times, run = self._times, self._run
        if times is None:
            return
        time, word = run.column(0, *_WORD), entry + self.of.entry_words - 1
        # Who keeps what expires counts on times that grow; otherwise it has to be told.
        if not run.speculates() and time < times[word]:
            run.keyed_rewound(self._number, entry)
        times[word] = time

    def remove(self, key: Any) -> None:
        """Raises ``KeyError`` where there is none."""
        entry = self._find(key)
        if entry < 0:
            raise KeyError(key)
        if self.slots is not None:
            self.slots.left(entry)
        self._run.keyed_remove(self._number, entry)

    def clear(self) -> None:
        if self.slots is not None:
            for entry in list(self.slots.objects):
                self.slots.left(entry)
        self._run.keyed_clear(self._number)

    def set_timer(self, key: Any, at: int) -> None:
        run = self._run
        answer = run.timer_set(self._number, self._words_of(key), at)
        if answer == lib.SS_TIMER_TOO_EARLY:
            too_early(self.name, run.column(len(RESERVED_COLUMNS), *_WORD), at)
        if answer == lib.SS_TIMERS_FULL:
            full(self.name, self.of)
