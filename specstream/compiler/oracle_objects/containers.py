"""Dicts, sets, lists, deques and priority queues of the state in the oracle.

They are those of an event (:mod:`specstream.compiler.oracle_objects.local`), but that they hold
what was declared, are full at their limit, and are put back as they were when the event raises.
They are made of the words of the state when they are first asked for, and are words again when
somebody looks at those (:func:`rows_of`).
"""

# Operators' functions carry no types, nor do the library's for them.
# mypy: allow-untyped-calls

from __future__ import annotations

import collections
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from specstream.columns.strings import StringTable
from specstream.compiler.language import standard_library
from specstream.compiler.language.numbers import Int64, shown_as
from specstream.compiler.language.text import refuse
from specstream.compiler.language.typing_refusals import unnamed_copy
from specstream.compiler.oracle_objects.codec import Codec, MachineCodec
from specstream.compiler.oracle_objects.entries import Journal, full, memory_entries
from specstream.compiler.oracle_objects.keyed import StateSet, keyed
from specstream.compiler.oracle_objects.local import List
from specstream.compiler.oracle_objects.lookup import ABSENT, FoundEntries
from specstream.compiler.oracle_objects.records import RecordSlots, values_of
from specstream.compiler.oracle_objects.view import ByValue, by_value
from specstream.declarations.container_words import Words, count, entries
from specstream.declarations.containers import Container
from specstream.declarations.state_layout import Field

__all__ = ["Find", "key_of", "loaded", "rows_of"]

Find = Callable[[Field, Words], Words | None]
"""The words of an entry, without its stamp, by those of its key; None: there is none."""


def key_of(words: Words, field: Field, texts: StringTable | None) -> Any:
    """A key of a dict, a set or timers, made of its words."""
    assert field.container is not None
    return MachineCodec(texts).values(words.reshape(1, -1), field.container.key)[0]


def loaded(
    words: Words,
    field: Field,
    journal: Journal,
    texts: StringTable | None,
    met: list[Any],
    now: Callable[[], int],
    find: Find | None = None,
) -> Any:
    """The container of a field, a :class:`StateDict` or another, made of words of the state.

    ``met``: what :class:`RecordSlots` notes there;
    ``now``: gives the time of what runs; ``find``: an entry's words by those of its key, of one
    that is changed once and then forgotten."""
    of, codec = field.container, MachineCodec(texts)
    assert of is not None
    slots = None
    if of.value.record is not None:
        slots = RecordSlots(f"state.{field.name}", of.value, journal, met)
    if not of.is_keyed:
        values = codec.values(entries(words, field), of.value)
        if slots is not None:
            values = list(map(slots.made, values))
        return _SEQUENCES[of.kind](field.name, of, journal, codec, values, slots)
    found = None if find is None else _found(words, field, codec, slots, find)
    store = memory_entries(words, field, journal, codec, slots, now, found)
    return keyed(store, codec, StateSet)


def _found(
    words: Words, field: Field, codec: Codec, slots: RecordSlots | None, find: Find
) -> FoundEntries:
    """The entries of a field as they are asked for."""
    of = field.container
    assert of is not None

    words_of = codec.to_words(of.key)

    def values_in(rows: Words) -> list[Any]:
        if not of.value.words:
            return [None] * len(rows)
        values = codec.values(rows[:, of.key.words :], of.value)
        return values if slots is None else list(map(slots.made, values))

    def value_of(key: Any) -> Any:
        if key is None:
            return ABSENT
        row = find(field, np.array(words_of(key), np.int64))
        return ABSENT if row is None else values_in(row.reshape(1, -1))[0]

    def all_of_them() -> dict[Any, Any]:
        rows = entries(words, field)
        return dict(zip(codec.values(rows, of.key), values_in(rows), strict=True))

    return FoundEntries(count(words, field), value_of, all_of_them)


def rows_of(field: Field, container: Any, texts: StringTable | None) -> Words:
    """What a container holds, as ``container_words.replace`` takes it."""
    of, codec = field.container, MachineCodec(texts)
    assert of is not None
    if of.is_keyed:
        found: Words = container.store.rows(codec)
        return found
    rows = np.zeros((len(container), of.row_words), np.int64)
    values: Any = container if of.value.record is None else map(values_of, container)
    codec.fill(rows, values, of.value)
    return rows


# ---- sequences ----


@shown_as("list")
class StateList(List):
    """A list of the state: every change of it replaces a few neighbours by others."""

    __slots__ = ("_convert", "_journal", "_limit", "_name", "_of", "_record_slots")

    def __init__(
        self,
        name: str,
        of: Container,
        journal: Journal,
        codec: Codec,
        values: list[Any],
        slots: RecordSlots | None = None,
    ) -> None:
        super().__init__(values)
        self._record_slots = slots
        self._name = name
        self._of = of
        self._limit = of.limit
        self._journal = journal
        self._convert = codec.check(of.value, f"state.{name}") if slots is None else slots.check

    @property
    def zero(self) -> Any:
        return 0.0 if self._of.value.parts[0].number == "float" else Int64(0)

    def _splice(self, start: int, stop: int, values: list[Any]) -> None:
        """Replaces the elements from ``start`` on, up to ``stop``."""
        if len(self) - (stop - start) + len(values) > max(self._limit, len(self)):
            full(self._name, self._of)
        replaced = list.__getitem__(self, slice(start, stop))
        if self._record_slots is not None:
            values = self._record_slots.replaced(replaced, values)
        back = slice(start, start + len(values))
        self._journal.append((list.__setitem__, self, back, replaced))
        list.__setitem__(self, slice(start, stop), values)

    def _place(self, index: Any, problem: str) -> int:
        if index is None:
            self._empty[index]  # which raises
        if not -len(self) <= index < len(self):
            raise IndexError(problem)
        return int(index) % len(self)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            at = self._place(index, "list assignment index out of range")
            self._splice(at, at + 1, [self._convert(value)])
            return
        values = [self._convert(one) for one in value]
        start, stop, step = index.indices(len(self))
        if step == 1:
            self._splice(start, max(start, stop), values)
        else:
            changed = list(self)
            changed[index] = values
            self._splice(0, len(self), changed)

    def __delitem__(self, index: Any) -> None:
        if not isinstance(index, slice):
            at = self._place(index, "list assignment index out of range")
            self._splice(at, at + 1, [])
            return
        start, stop, step = index.indices(len(self))
        if step == 1:
            self._splice(start, max(start, stop), [])
        else:
            rest = list(self)
            del rest[index]
            self._splice(0, len(self), rest)

    def append(self, value: Any) -> None:
        self._splice(len(self), len(self), [self._convert(value)])

    def extend(self, values: Iterable[Any]) -> None:
        for one in list(values):
            self.append(one)

    def __iadd__(self, values: Iterable[Any]) -> StateList:  # type: ignore[misc]
        self.extend(values)
        return self

    def insert(self, at: Any, value: Any) -> None:
        start, _, _ = slice(operator.index(at), None).indices(len(self))
        self._splice(start, start, [self._convert(value)])

    def pop(self, at: Any = -1) -> Any:
        at = operator.index(at)
        if not self:
            raise IndexError("pop from empty list")
        place = self._place(at, "pop index out of range")
        value = list.__getitem__(self, place)
        self._splice(place, place + 1, [])
        return value

    def clear(self) -> None:
        self._splice(0, len(self), [])

    def reverse(self) -> None:
        self._splice(0, len(self), list(reversed(self)))


@shown_as("collections.deque")
class StateDeque(StateList):
    """A deque of the state."""

    __slots__ = ("changes",)
    _empty: ClassVar[Any] = collections.deque()

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.changes = 0

    @property
    def maxlen(self) -> Int64 | None:
        return None if self._of.maxlen is None else Int64(self._of.maxlen)

    def __repr__(self) -> str:
        most = self._of.maxlen
        return repr(collections.deque(self, None if most is None else int(most)))

    def __iter__(self) -> Iterator[Any]:
        changes = self.changes
        for value in super().__iter__():
            yield value
            self._unchanged_since(changes)

    def __reversed__(self) -> Iterator[Any]:
        changes = self.changes
        for at in range(len(self) - 1, -1, -1):
            self._unchanged_since(changes)  # CPython does not look once it is at the end
            yield list.__getitem__(self, at)

    def _unchanged_since(self, changes: int) -> None:
        if self.changes != changes:
            raise RuntimeError("deque mutated during iteration")

    def __getitem__(self, index: Any) -> Any:
        return list.__getitem__(self, self._place(index, "deque index out of range"))

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self._place(index, "deque index out of range")
        self._splice(at, at + 1, [self._convert(value)])

    def __delitem__(self, index: Any) -> None:
        at = self._place(index, "deque index out of range")
        self._splice(at, at + 1, [])
        self.changes += 1

    def _put(self, at: int, value: Any, dropped: int) -> None:
        """Puts an element in at an end; of one that has ``maxlen``, the other end drops out."""
        value = self._convert(value)
        if self._of.maxlen is not None and len(self) >= self._of.maxlen:
            if not self._of.maxlen:
                return
            self._splice(dropped, dropped + 1, [])
            at = min(at, len(self))
        self._splice(at, at, [value])
        self.changes += 1

    def append(self, value: Any) -> None:
        self._put(len(self), value, 0)

    def appendleft(self, value: Any) -> None:
        self._put(0, value, len(self) - 1)

    def extendleft(self, values: Iterable[Any]) -> None:
        for one in list(values):
            self.appendleft(one)

    def insert(self, at: Any, value: Any) -> None:
        at = operator.index(at)
        if self._of.maxlen is not None and len(self) >= self._of.maxlen:
            raise IndexError("deque already at its maximum size")
        super().insert(at, value)
        self.changes += 1

    def pop(self) -> Any:  # type: ignore[override]
        return self._taken(len(self) - 1)

    def popleft(self) -> Any:
        return self._taken(0)

    def _taken(self, at: int) -> Any:
        if not self:
            raise IndexError("pop from an empty deque")
        value = list.__getitem__(self, at)
        del self[at]
        return value

    def clear(self) -> None:
        self.changes += 1
        super().clear()

    def __imul__(self, times: Any) -> Any:
        name = f"state.{self._name}"
        refuse(
            f"*= is not supported for a deque of the state, {name}",
            f"write {name}.extend(list({name}) * (n - 1)), where n is 1 or more",
        )

    def copy(self) -> Any:
        refuse(*unnamed_copy(f"state.{self._name}"))

    def rotate(self, by: Any = 1) -> None:
        by = operator.index(by)
        if len(self) < 2:
            return
        self.changes += 1
        cut = -by % len(self)
        values = list.copy(self)
        self._splice(0, len(self), values[cut:] + values[:cut])


class StateQueue:
    """A heap of the state, whose items lie as those of ``heapq`` do."""

    __slots__ = ("_heap", "items")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *given: Any) -> None:
        self.items = StateList(*given)
        self._heap = _Compared(self.items)

    @property
    def zero(self) -> Any:
        return self.items.zero

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __contains__(self, value: object) -> bool:
        return value in self.items

    def push(self, value: Any) -> None:
        standard_library.heappush(self._heap, value)

    def pop(self) -> Any:
        self.peek()
        return _plain(standard_library.heappop(self._heap))

    def peek(self) -> Any:
        if not self.items:
            raise IndexError("the priority queue is empty")
        return self.items[0]

    def pushpop(self, value: Any) -> Any:
        value = self.items._convert(value)
        return _plain(standard_library.heappushpop(self._heap, by_value(value)))

    def replace(self, value: Any) -> Any:
        self.peek()
        return _plain(standard_library.heapreplace(self._heap, value))

    def clear(self) -> None:
        self.items.clear()


class _Compared:
    """The items of a heap, compared by value, as compiled code compares them."""

    __slots__ = ("_items",)

    def __init__(self, items: StateList) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: int) -> Any:
        return by_value(self._items[at])

    def __setitem__(self, at: int, value: Any) -> None:
        self._items[at] = _plain(value)

    def append(self, value: Any) -> None:
        self._items.append(value)

    def pop(self) -> Any:
        return by_value(self._items.pop())


def _plain(value: Any) -> Any:
    return value.plain if isinstance(value, ByValue) else value


_SEQUENCES: dict[str, Callable[..., Any]] = {
    "list": StateList,
    "deque": StateDeque,
    "priority_queue": StateQueue,
}
