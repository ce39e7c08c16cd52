"""Elements of lists, deques and queues in Python's memory, with a journal that takes changes back.

They are those of the oracle, and of interpreted operators that run one event after the other. What
operators see of them is in :mod:`specstream.compiler.oracle_objects.sequences`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from specstream.compiler.oracle_objects.codec import Codec
from specstream.compiler.oracle_objects.entries import Journal, full
from specstream.declarations.container_words import Words, entries
from specstream.declarations.state_layout import Field

__all__ = ["MemorySequence"]


class _MadeItems:
    """Elements that are made of what is held, each time that they are read."""

    def __init__(self, held: list[Any], made: Callable[[Any], Any]) -> None:
        self._held, self._made = held, made

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, at: int) -> Any:
        return self._made(self._held[at])

    def __iter__(self) -> Iterator[Any]:
        return map(self._made, self._held)


class MemorySequence:
    """The elements of one field, made of words of the state.

    Args:
        field: which.
        words: of the state.
        journal: of what holds it.
        codec: says what the elements are.
        slots: of the records that it holds; else None.

    Attributes:
        reader: the elements, as operators read them.
    """

    def __init__(
        self, field: Field, words: Words, journal: Journal, codec: Codec, slots: Any
    ) -> None:
        assert field.container is not None
        self.of, self.name, self.slots = field.container, field.name, slots
        self._journal, self._limit, self._codec = journal, self.of.limit, codec
        held = codec.values(entries(words, field), self.of.value)
        self._held = held if slots is None else list(map(slots.made, held))
        made = codec.maker(self.of.value) if slots is None else slots.load
        self.reader: Any = self._held if made is None else _MadeItems(self._held, made)

    def _splice(self, start: int, stop: int, values: list[Any]) -> None:
        """Replaces the elements from ``start`` on, up to ``stop``."""
        held = self._held
        if len(held) - (stop - start) + len(values) > max(self._limit, len(held)):
            full(self.name, self.of)
        replaced = held[start:stop]
        if self.slots is not None:
            values = self.slots.replaced(replaced, values)
        self._journal.append((held.__setitem__, slice(start, start + len(values)), replaced))
        held[start:stop] = values

    def _changed(self, values: list[Any]) -> None:
        self._splice(0, len(self._held), values)

    def put(self, at: int, value: Any) -> None:
        """Stores a value that was checked."""
        held, slots = self._held, self.slots
        before = held[at]
        if slots is not None:
            if slots.is_same(before, value):
                return
            slots.left(before)
            value = slots.kept(value)
        self._journal.append((held.__setitem__, at, before))
        held[at] = value

    def insert(self, at: int, value: Any) -> None:
        held = self._held
        if len(held) >= self._limit:
            full(self.name, self.of)
        if self.slots is not None:
            value = self.slots.kept(value)
        self._journal.append((held.__delitem__, at))
        held.insert(at, value)

    def delete(self, places: range) -> None:
        """Removes the elements at places, which ascend."""
        if len(places) == 1:
            held, at = self._held, places.start
            if self.slots is not None:
                self.slots.left(held[at])
            self._journal.append((held.insert, at, held[at]))
            del held[at]
            return
        if places.step == 1:
            self._splice(places.start, max(places.start, places.stop), [])
            return
        rest = self._held.copy()
        del rest[places.start : places.stop : places.step]
        self._changed(rest)

    def replace(self, places: range, values: list[Any]) -> None:
        """Stores values in place of those there; as many, or the places are neighbours."""
        if places.step == 1:
            self._splice(places.start, places.stop, values)
            return
        changed = self._held.copy()
        for at, value in zip(places, values, strict=True):
            changed[at] = value
        self._changed(changed)

    def permute(self, order: list[int]) -> None:
        """Puts the element ``order[i]`` to place i."""
        self._changed([self._held[at] for at in order])

    def rows(self) -> Words:
        """What it holds, as ``container_words.replace`` takes it."""
        rows = np.zeros((len(self._held), self.of.row_words), np.int64)
        self._codec.fill(rows, self._values(), self.of.value)
        return rows

    def _values(self) -> Iterable[Any]:
        return self._held if self.slots is None else map(self.slots.parts, self._held)

    def packed(self, now: int) -> bytes:
        """What it holds."""
        return self._codec.packed(self._values(), self.of.value)

    def unpack(self, data: bytes, now: int) -> None:
        """Holds what :meth:`packed` has said, between two events."""
        values = self._codec.unpacked(data, self.of.value)
        self._held[:] = values if self.slots is None else map(self.slots.made, values)
