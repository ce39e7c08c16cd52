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
import heapq
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from specstream._native import lib
from specstream.columns.strings import StringTable
from specstream.compiler.language import standard_library
from specstream.compiler.language.numbers import Int64, shown_as
from specstream.compiler.language.text import Text, refuse
from specstream.compiler.language.typing_refusals import unnamed_copy
from specstream.compiler.oracle_objects.elements import LOAD, store_of
from specstream.compiler.oracle_objects.local import Dict, List, Set
from specstream.compiler.oracle_objects.lookup import ABSENT, FoundEntries, NoStamps
from specstream.compiler.oracle_objects.nulls import is_none
from specstream.compiler.oracle_objects.records import RecordSlots, values_of
from specstream.compiler.oracle_objects.timers import StateTimers
from specstream.compiler.oracle_objects.view import ByValue, by_value
from specstream.declarations.codes import EMPTY
from specstream.declarations.container_words import Words, count, entries
from specstream.declarations.containers import Container, Shape
from specstream.declarations.state_layout import Field

__all__ = ["Find", "Journal", "key_of", "loaded", "rows_of"]

Journal = list[tuple[Any, ...]]
"""What takes back each change: a function and its arguments."""
Find = Callable[[Field, Words], Words | None]
"""The words of an entry, without its stamp, by those of its key; None: there is none."""


# ---- what containers hold, as values and as words ----


def _container_check(shape: Shape, what: str) -> Callable[[Any], Any]:
    """What a container of the state, in the oracle, checks keys, values or elements by."""
    if shape.record is not None:
        return RecordSlots(what, shape, [], []).check
    parts = [(store_of(part), LOAD[part.number]) for part in shape.parts]
    if not shape.is_tuple:
        store, load = parts[0]
        return lambda value: load(store(value, what))

    def converted(value: Any) -> Any:
        if not isinstance(value, tuple) or len(value) != len(parts):
            raise TypeError(f"{what} is declared {shape} and gets {value!r}")
        pairs = zip(parts, value, strict=True)
        return tuple(load(store(one, what)) for (store, load), one in pairs)

    return converted


def _values_of_part(words: Words, number: str, texts: StringTable | None) -> list[Any]:
    """One part of everything that a container of the state holds, as the oracle's values."""
    if number == "str":
        return [Text(code or EMPTY, texts if code else "") for code in words.tolist()]
    if number == "float":
        found: list[float] = words.copy().view(np.float64).tolist()
        return found
    return [LOAD[number](word) for word in words.tolist()]


def _values(words: Words, shape: Shape, texts: StringTable | None) -> list[Any]:
    columns = [
        _values_of_part(words[:, at], part.number, texts) for at, part in enumerate(shape.parts)
    ]
    several = shape.is_tuple or shape.record is not None
    return list(zip(*columns, strict=True)) if several else columns[0]


def key_of(words: Words, field: Field, texts: StringTable | None) -> Any:
    """A key of a :class:`StateDict` or :class:`StateSet`, made of its words."""
    of = field.container
    assert of is not None
    return _values(words.reshape(1, -1), of.key, texts)[0]


def _words(values: Iterable[Any], shape: Shape, into: npt.NDArray[np.int64]) -> None:
    rows = list(values) if shape.record is None else list(map(values_of, values))
    several = shape.is_tuple or shape.record is not None
    columns = zip(*rows, strict=True) if several else [rows]
    for at, (part, column) in enumerate(zip(shape.parts, columns, strict=False)):
        if part.number == "float":
            into[:, at] = np.array(column, np.float64).view(np.int64)
        elif part.number == "str":
            into[:, at] = [0 if text.code == EMPTY else text.code for text in column]
        else:
            into[:, at] = column


def loaded(
    words: Words,
    field: Field,
    journal: Journal,
    texts: StringTable | None,
    met: list[Any] | None = None,
    now: list[int] | None = None,
    find: Find | None = None,
) -> Any:
    """The container of a field, a :class:`StateDict` or another, made of words of the state.

    ``met``: what :class:`RecordSlots` notes there;
    ``now``: holds the time of what runs; ``find``: an entry's words by those of its key, of one
    that is changed once and then forgotten."""
    of = field.container
    assert of is not None
    slots = RecordSlots(f"state.{field.name}", of.value, journal, [] if met is None else met)
    if find is not None and of.is_keyed:
        return _loaded_by_entry(words, field, journal, texts, slots, now, find)
    rows = entries(words, field)
    values = _values(rows[:, of.key.words :], of.value, texts) if of.value.words else []
    if of.value.record is not None:
        values = list(map(slots.made, values))
    if not of.is_keyed:
        return _SEQUENCES[of.kind](field.name, of, journal, values, slots)
    keys = _values(rows, of.key, texts)
    if of.kind == "set":
        values = [None] * len(keys)
    made = StateDict(field.name, of, journal, keys, values, slots)
    if of.expires:
        after = of.expires_after(int(words[field.offset + lib.SS_HEADER_TICK]))
        made.expiry = Expiry(after, [0] if now is None else now, journal)
        made.expiry.load(dict(zip(keys, rows[:, -1].tolist(), strict=True)))
    if of.kind == "set":
        return StateSet(made)
    return StateTimers(made, field, words) if of.kind == "timers" else made


def _loaded_by_entry(
    words: Words,
    field: Field,
    journal: Journal,
    texts: StringTable | None,
    slots: RecordSlots,
    now: list[int] | None,
    find: Find,
) -> Any:
    """A :class:`StateDict` or :class:`StateSet` that loads entries as they are asked for."""
    of = field.container
    assert of is not None

    def values_in(rows: Words) -> list[Any]:
        if not of.value.words:
            return [None] * len(rows)
        values = _values(rows[:, of.key.words :], of.value, texts)
        return values if of.value.record is None else list(map(slots.made, values))

    def value_of(key: Any) -> Any:
        if key is None or (isinstance(key, tuple) and any(one is None for one in key)):
            return ABSENT
        key_words = np.zeros((1, of.key.words), np.int64)
        _words([key], of.key, key_words)
        row = find(field, key_words[0])
        return ABSENT if row is None else values_in(row.reshape(1, -1))[0]

    def all_of_them() -> dict[Any, Any]:
        rows = entries(words, field)
        return dict(zip(_values(rows, of.key, texts), values_in(rows), strict=True))

    made = StateDict(field.name, of, journal, [], [], slots)
    made.entries = FoundEntries(count(words, field), value_of, all_of_them)
    made._stamps = NoStamps()
    if of.expires:
        after = of.expires_after(int(words[field.offset + lib.SS_HEADER_TICK]))
        made.expiry = Expiry(after, [0] if now is None else now, journal)
    if of.kind == "set":
        return StateSet(made)
    return StateTimers(made, field, words, fires=False) if of.kind == "timers" else made


def rows_of(field: Field, container: Any) -> Words:
    """What a container holds, as ``container_words.replace`` takes it."""
    of = field.container
    assert of is not None
    rows = np.zeros((len(container), of.row_words), np.int64)
    held = container.members if of.kind in ("set", "timers") else container
    if of.is_keyed:
        _words(held.entries.keys(), of.key, rows)
    if of.value.words:
        values = held.entries.values() if of.is_keyed else held
        _words(values, of.value, rows[:, of.key.words :])
    if of.expires:
        rows[:, -1] = [held.expiry.times[key] for key in held.entries]
    return rows


def _full(name: str, of: Container) -> NoReturn:
    raise OverflowError(
        of.full
        or f"state.{name} is full: it holds limit={of.limit} entries: declare a larger limit=, or "
        "remove some"
    )


# ---- keyed ----


@shown_as("dict")
class StateDict(Dict):
    """A dict of the state; of a set, each value is None."""

    __slots__ = (
        *(
            "_journal",
            "_key",
            "_limit",
            "_name",
            "_of",
            "_record_slots",
            "_stamp",
            "_stamps",
            "_value",
        ),
        "expiry",
    )

    def __init__(
        self,
        name: str,
        of: Container,
        journal: Journal,
        keys: list[Any],
        values: list[Any],
        slots: RecordSlots | None = None,
    ) -> None:
        self._record_slots = slots if of.value.record is not None else None
        self.expiry: Expiry | None = None
        self.changes = 0
        self.entries = dict(zip(keys, values, strict=True))
        self._name = name
        self._of = of
        self._limit = of.limit
        self._journal = journal
        self._key = _container_check(of.key, f"a key of state.{name}")
        self._value: Callable[[Any], Any] = (
            _container_check(of.value, f"state.{name}") if of.value.words else lambda value: None
        )
        self._stamp = len(keys)
        self._stamps = dict(zip(keys, range(self._stamp), strict=True))

    @property
    def stamps(self) -> dict[Any, int]:
        """Of each key, the number of its insertion."""
        return self._stamps

    def held_key(self, key: Any) -> Any:
        """A key as it is held."""
        return self._key(key)

    def _asked(self, key: Any) -> Any:
        """A key that may be there: of no key is a part None."""
        is_none = key is None or (isinstance(key, tuple) and any(one is None for one in key))
        return key if is_none else self._key(key)

    def __getitem__(self, key: Any) -> Any:
        return self.entries[self._asked(key)]

    def __contains__(self, key: object) -> bool:
        return self._asked(key) in self.entries

    def get(self, key: Any, default: Any = None) -> Any:
        key = self._asked(key)
        return self.entries[key] if key in self.entries else self._given(default)

    def pop(self, key: Any, *default: Any) -> Any:
        is_there = not default or key in self
        return super().pop(key) if is_there else self._given(*default)

    def _given(self, default: Any) -> Any:
        """A default has the type of the values in compiled code. A string is of such a type, or
        stands behind ``raise``, where Python computes."""
        is_kept = is_none(default) or isinstance(default, Text) or self._record_slots is not None
        return default if is_kept else self._value(default)

    def __setitem__(self, key: Any, value: Any) -> None:
        key, value = self._key(key), self._value(value)
        if self.expiry is not None and (key in self.entries or len(self.entries) < self._limit):
            self.expiry.written(key)
        if key in self.entries:
            before = self.entries[key]
            if self._record_slots is not None:
                if value._cell is before._cell:
                    return
                self._record_slots.left(before)
                value = self._record_slots.kept(value)
            self._journal.append((self._overwrite, key, before))
            self._overwrite(key, value)
            return
        if len(self.entries) >= self._limit:
            _full(self._name, self._of)
        if self._record_slots is not None:
            value = self._record_slots.kept(value)
        self._journal.append((self._forget, key))
        self.entries[key] = value
        self._stamp += 1
        self._stamps[key] = self._stamp
        self.changes += 1

    def expire(self, time: int) -> None:
        """Removes what has gone by that time; between two events."""
        assert self.expiry is not None
        for key in self.expiry.due(time):
            if key in self.entries and self.expiry.is_over(key, time):
                del self[key]

    # What takes back may make new dicts, so that each step asks which are there.

    def _overwrite(self, key: Any, value: Any) -> None:
        self.entries[key] = value

    def _forget(self, key: Any) -> None:
        del self._stamps[key]
        del self.entries[key]

    def __delitem__(self, key: Any) -> None:
        key = self._asked(key)
        value = self.entries[key]
        if self._record_slots is not None:
            self._record_slots.left(value)
        self._journal.append((self._remember, key, value, self._stamps[key]))
        self._forget(key)
        self.changes += 1

    def _remember(self, key: Any, value: Any, stamp: int) -> None:
        """Puts an entry back where it was."""
        is_last = not self._stamps or stamp > next(reversed(self._stamps.values()))
        self.entries[key] = value
        self._stamps[key] = stamp
        if not is_last:
            order = sorted(self._stamps, key=self._stamps.__getitem__)
            self.entries = {one: self.entries[one] for one in order}
            self._stamps = {one: self._stamps[one] for one in order}

    def popitem(self) -> tuple[Any, Any]:
        if not self.entries:
            return self.entries.popitem()  # which raises
        key = next(reversed(self.entries))
        pair = key, self.entries[key]
        del self[key]
        return pair

    def clear(self) -> None:
        if self.entries:
            if self._record_slots is not None:
                for one in self.entries.values():
                    self._record_slots.left(one)
            self._journal.append((self._restore, self.entries.copy(), self._stamps.copy()))
            self.entries.clear()
            self._stamps.clear()
            self.changes += 1

    def _restore(self, held: dict[Any, Any], stamps: dict[Any, int]) -> None:
        self.entries, self._stamps = held, stamps


class Expiry:
    """When the entries of a dict or set go.

    Attributes:
        times: of the last write of each key, also of such as are not there any more.
    """

    def __init__(self, after: int, now: list[int], journal: Journal) -> None:
        self.times: dict[Any, int] = {}
        self._after, self._now, self._journal = after, now, journal
        self._due: list[tuple[int, int, Any]] = []
        self._count = itertools.count()

    def load(self, times: dict[Any, int]) -> None:
        """Takes what was written before."""
        for key, time in times.items():
            self._put(key, time)

    def written(self, key: Any) -> None:
        self._journal.append((self._put_back, key, self.times.get(key)))
        self._put(key, self._now[0])

    def _put(self, key: Any, time: int) -> None:
        self.times[key] = time
        heapq.heappush(self._due, (self._end_of(time), next(self._count), key))

    def _put_back(self, key: Any, time: int | None) -> None:
        if time is None:
            del self.times[key]
        else:
            self.times[key] = time

    def is_over(self, key: Any, time: int) -> bool:
        return self._end_of(self.times[key]) <= time

    def _end_of(self, time: int) -> int:
        """When what was written at that time goes; there is no later time than the last."""
        return min(time + self._after, 2**63 - 1)

    def due(self, time: int) -> Iterator[Any]:
        """What may have gone by that time."""
        while self._due and self._due[0][0] <= time:
            yield heapq.heappop(self._due)[2]


@shown_as("set")
class StateSet(Set):
    """A set of the state."""

    __slots__ = ()

    def __init__(self, members: StateDict) -> None:
        self.members: StateDict = members

    def add(self, one: Any) -> None:
        if self.members.expiry is not None or one not in self.members:
            self.members[one] = None

    def symmetric_difference_update(self, given: Iterable[Any]) -> None:
        for one in list(Set(given)):
            if one in self:
                self.remove(one)
            else:
                self.add(one)


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
        values: list[Any],
        slots: RecordSlots | None = None,
    ) -> None:
        super().__init__(values)
        self._record_slots = slots if of.value.record is not None else None
        self._name = name
        self._of = of
        self._limit = of.limit
        self._journal = journal
        self._convert = _container_check(of.value, f"state.{name}")

    @property
    def zero(self) -> Any:
        return 0.0 if self._of.value.parts[0].number == "float" else Int64(0)

    def _splice(self, start: int, stop: int, values: list[Any]) -> None:
        """Replaces the elements from ``start`` on, up to ``stop``."""
        if len(self) - (stop - start) + len(values) > max(self._limit, len(self)):
            _full(self._name, self._of)
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
