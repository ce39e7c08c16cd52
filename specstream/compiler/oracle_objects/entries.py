"""Entries of dicts, sets and timers in Python's memory, with a journal that takes changes back.

They are those of the oracle, and of interpreted operators that run one event after the other. They
are made of the words of the state, and are words again when somebody looks at those. What operators
see of them is in :mod:`specstream.compiler.oracle_objects.keyed`.
"""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from specstream._native import lib
from specstream.compiler.oracle_objects.codec import Codec
from specstream.compiler.oracle_objects.lookup import NoStamps
from specstream.declarations.container_words import Words, entries
from specstream.declarations.containers import Container
from specstream.declarations.state_layout import Field

__all__ = [
    *("Due", "Expiry", "Journal", "Made", "MemoryEntries", "MemoryTimers"),
    *("full", "memory_entries", "too_early"),
]

Journal = list[tuple[Any, ...]]
"""What takes back each change: a function and its arguments."""
Due = tuple[int, int, Any]
"""Time, stamp and key of a timer."""
_SIGN = 2**63


def full(name: str, of: Container) -> NoReturn:
    """Raises what a container that is full does."""
    raise OverflowError(
        of.full
        or f"state.{name} is full: it holds limit={of.limit} entries: declare a larger limit=, or "
        "remove some"
    )


def too_early(name: str, floor: int, at: int) -> NoReturn:
    """Raises what a timer does that sets another one for a time that is not after its own."""
    raise ValueError(
        f"state.{name}.set: the timer that fires is for {floor} and sets one for {at}; expected a "
        "later time"
    )


class Made:
    """What is made of each item of a view, both ways."""

    def __init__(self, view: Callable[[], Any], made: Callable[[Any], Any]) -> None:
        self._view, self._made = view, made

    def __iter__(self) -> Iterator[Any]:
        return map(self._made, self._view())

    def __reversed__(self) -> Iterator[Any]:
        return map(self._made, reversed(self._view()))


class _MadeEntries:
    """Entries whose values are made of what is held, each time that they are read."""

    def __init__(self, held: dict[Any, Any], made: Callable[[Any], Any]) -> None:
        self._held, self._made = held, made

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held)

    def __reversed__(self) -> Iterator[Any]:
        found: Iterator[Any] = reversed(self._held)
        return found

    def __getitem__(self, key: Any) -> Any:
        return self._made(self._held[key])

    def get(self, key: Any, default: Any = None) -> Any:
        return self._made(self._held[key]) if key in self._held else default

    def keys(self) -> Any:
        return self._held.keys()

    def values(self) -> Made:
        return Made(self._held.values, self._made)

    def items(self) -> Made:
        made = self._made
        return Made(self._held.items, lambda item: (item[0], made(item[1])))


class MemoryEntries:
    """The entries of one field.

    Args:
        field: which.
        journal: of what holds the state.
        codec: says what keys and values are.
        held: the entries.
        slots: of the records that it holds; else None.
        made: what makes a value of what is held, when it is read; None: it is the same.
        stamps: of the entries; None: as they come.

    Attributes:
        entries: what is held, by key, in the order of insertion.
        reader: the same as operators read it.
        stamps: of each key, the number of its insertion.
        changes: how often keys have come or gone.
        expiry: when entries go; None: they stay.
    """

    def __init__(
        self,
        field: Field,
        journal: Journal,
        codec: Codec,
        held: dict[Any, Any],
        slots: Any = None,
        made: Callable[[Any], Any] | None = None,
        stamps: dict[Any, int] | None = None,
    ) -> None:
        assert field.container is not None
        self.field, self.of, self.name = field, field.container, field.name
        self._journal, self._limit, self._codec = journal, field.container.limit, codec
        self.entries, self.slots = held, slots
        self.reader: Any = held if made is None else _MadeEntries(held, made)
        self.expiry: Expiry | None = None
        self.changes = 0
        self._stamp = len(held)
        self.stamps = dict(zip(held, itertools.count())) if stamps is None else stamps

    def put(self, key: Any, value: Any) -> None:
        """Stores a value that was checked."""
        held, slots = self.entries, self.slots
        is_there = key in held
        if not is_there and len(held) >= self._limit:
            full(self.name, self.of)
        if self.expiry is not None:
            self.expiry.written(key)
        if is_there:
            before = held[key]
            if slots is not None:
                if slots.is_same(before, value):
                    return
                slots.left(before)
                value = slots.kept(value)
            self._journal.append((held.__setitem__, key, before))
            held[key] = value
            return
        if slots is not None:
            value = slots.kept(value)
        self._journal.append((self._forget, key))
        held[key] = value
        self._stamp += 1
        self.stamps[key] = self._stamp
        self.changes += 1

    def _forget(self, key: Any) -> None:
        del self.stamps[key]
        del self.entries[key]

    def remove(self, key: Any) -> None:
        """Raises ``KeyError`` where there is none."""
        value = self.entries[key]
        if self.slots is not None:
            self.slots.left(value)
        self._journal.append((self._remember, key, value, self.stamps[key]))
        self._forget(key)
        self.changes += 1

    def _remember(self, key: Any, value: Any, stamp: int) -> None:
        """Puts an entry back where it was."""
        is_last = not self.stamps or stamp > next(reversed(self.stamps.values()))
        self.entries[key] = value
        self.stamps[key] = stamp
        if not is_last:
            order = sorted(self.stamps, key=self.stamps.__getitem__)
            self._restore(
                {one: self.entries[one] for one in order},
                {one: self.stamps[one] for one in order},
            )

    def _restore(self, held: dict[Any, Any], stamps: dict[Any, int]) -> None:
        self.entries.clear()
        self.entries.update(held)
        self.stamps = stamps

    def clear(self) -> None:
        if self.entries:
            if self.slots is not None:
                for one in self.entries.values():
                    self.slots.left(one)
            self._journal.append((self._restore, self.entries.copy(), self.stamps.copy()))
            self.entries.clear()
            self.stamps.clear()
            self.changes += 1

    def last(self, problem: str) -> Any:
        """The key that came last; raises ``KeyError`` with that text where there is none."""
        for key in reversed(self.entries):
            return key
        raise KeyError(problem)

    def expire(self, time: int) -> None:
        """Removes what has gone by that time; between two events."""
        assert self.expiry is not None
        for key in self.expiry.due(time):
            if key in self.entries and self.expiry.is_over(key, time):
                self.remove(key)

    def rows(self) -> Words:
        """What it holds, as ``container_words.replace`` takes it."""
        of, codec = self.of, self._codec
        rows = np.zeros((len(self.entries), of.row_words), np.int64)
        codec.fill(rows, self.entries, of.key)
        if of.value.words:
            codec.fill(rows[:, of.key.words :], self._values(), of.value)
        if self.expiry is not None:
            rows[:, -1] = [self.expiry.times[key] for key in self.entries]
        return rows

    def _values(self) -> Iterable[Any]:
        values = self.entries.values()
        return values if self.slots is None else map(self.slots.parts, values)

    def packed(self, now: int) -> bytes:
        """What it holds: its keys, its values, and its times, counted from now on."""
        found = self._codec.packed(self.entries, self.of.key)
        if self.of.value.words:
            found += self._codec.packed(self._packed_values(now), self.of.value)
        if self.expiry is not None:
            times = [self.expiry.times[key] - now for key in self.entries]
            found += struct.pack(f"<{len(times)}q", *times)
        return found

    def _packed_values(self, now: int) -> Iterable[Any]:
        return self._values()

    def unpack(self, data: bytes, now: int) -> None:
        """Holds what :meth:`packed` has said, between two events."""
        of, codec = self.of, self._codec
        count = len(data) // (8 * of.row_words)
        end = 8 * count * of.key.words
        last = end + 8 * count * of.value.words
        keys = codec.unpacked(data[:end], of.key)
        values: Iterable[Any] = itertools.repeat(None, count)
        if of.value.words:
            values = codec.unpacked(data[end:last], of.value)
        if self.slots is not None:
            values = map(self.slots.made, values)
        self.entries.clear()
        self.entries.update(zip(keys, values, strict=True))
        self.stamps, self._stamp = dict(zip(keys, itertools.count())), count
        if self.expiry is not None:
            times = struct.unpack(f"<{count}q", data[last:])
            self.expiry.load(dict(zip(keys, [now + one for one in times], strict=True)))


class MemoryTimers(MemoryEntries):
    """Timers: their times by key, and which is due.

    Attributes:
        fired: of the first of a pipeline's: how many of all have fired.
        clock: likewise, the largest time of events and firings so far.
        floor: time of the timer that fires now; None: none does.
    """

    def begin(self, words: Words, fires: bool = True) -> None:
        """Takes what the header says; of what one event is run on alone, nothing fires."""
        at = self.field.offset
        self.floor: int | None = None
        self.fired = int(words[at + lib.SS_HEADER_FIRED])
        self.clock = int(words[at + lib.SS_HEADER_CLOCK]) % 2**64 ^ _SIGN
        if self.clock >= _SIGN:
            self.clock -= 2**64
        self._heap: list[Due] = [
            (int(time), self.stamps[key], key)
            for key, time in (self.entries.items() if fires else ())
        ]
        heapq.heapify(self._heap)

    def _packed_values(self, now: int) -> Iterable[Any]:
        return [time - now for time in self.entries.values()]

    def unpack(self, data: bytes, now: int) -> None:
        super().unpack(data, now)
        for key, after in self.entries.items():
            self.entries[key] = after + now
        self._heap = [(int(time), self.stamps[key], key) for key, time in self.entries.items()]
        heapq.heapify(self._heap)
        self.clock, self.fired = now, 0

    def write(self, words: Words) -> None:
        """The header's words."""
        at, clock = self.field.offset, self.clock % 2**64 ^ _SIGN
        words[at + lib.SS_HEADER_FIRED] = self.fired
        words[at + lib.SS_HEADER_CLOCK] = clock - 2**64 if clock >= _SIGN else clock

    def set_timer(self, key: Any, at: Any) -> None:
        if self.floor is not None and at <= self.floor:
            too_early(self.name, self.floor, int(at))
        if key in self.entries:
            self.remove(key)
        self.put(key, at)
        heapq.heappush(self._heap, (int(at), self.stamps[key], key))

    @property
    def last_stamp(self) -> int:
        """That of the timer that was set last; between two events."""
        return max(self.stamps.values(), default=0)

    def due(self, time: int, stamp: int | None = None) -> Due | None:
        """The next that is due by ``time``, or has a stamp up to that; between two events."""
        later = []
        found: Due | None = None
        while self._heap:
            at, own, key = self._heap[0]
            if self.stamps.get(key) != own:
                heapq.heappop(self._heap)
            elif stamp is not None and own > stamp:
                later.append(heapq.heappop(self._heap))
            else:
                found = (at, own, key) if stamp is not None or at <= time else None
                break
        for item in later:
            heapq.heappush(self._heap, item)
        return found


class Expiry:
    """When the entries of a dict or set go.

    Args:
        after: how long after their last write.
        now: gives the time of what runs.

    Attributes:
        times: of the last write of each key, also of such as are not there any more.
    """

    def __init__(self, after: int, now: Callable[[], int], journal: Journal) -> None:
        self.times: dict[Any, int] = {}
        self._after, self._now, self._journal = after, now, journal
        self._due: list[tuple[int, int, Any]] = []
        self._count = itertools.count()

    def load(self, times: dict[Any, int]) -> None:
        """Takes what was written before, in place of what it has."""
        self.times.clear()
        self._due.clear()
        for key, time in times.items():
            self._put(key, time)

    def written(self, key: Any) -> None:
        self._journal.append((self._put_back, key, self.times.get(key)))
        self._put(key, self._now())

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


def memory_entries(
    field: Field,
    words: Words,
    journal: Journal,
    codec: Codec,
    slots: Any,
    now: Callable[[], int],
    found: dict[Any, Any] | None = None,
) -> MemoryEntries:
    """The entries of a field, made of words of the state.

    Args:
        found: looks them up one by one, of an event that runs alone; None: all are made.
    """
    of = field.container
    assert of is not None
    kind = MemoryTimers if of.kind == "timers" else MemoryEntries
    if found is not None:
        made = kind(field, journal, codec, found, slots, stamps=NoStamps())
    else:
        rows = entries(words, field)
        values: list[Any] = [None] * len(rows)
        if of.value.words:
            values = codec.values(rows[:, of.key.words :], of.value)
        if slots is not None:
            values = list(map(slots.made, values))
        held = dict(zip(codec.values(rows, of.key), values, strict=True))
        making = codec.maker(of.value) if slots is None else slots.load
        made = kind(field, journal, codec, held, slots, making)
    if of.expires:
        after = of.expires_after(int(words[field.offset + lib.SS_HEADER_TICK]))
        made.expiry = Expiry(after, now, journal)
        if found is None:
            made.expiry.load(dict(zip(made.entries, rows[:, -1].tolist(), strict=True)))
    if isinstance(made, MemoryTimers):
        made.begin(words, fires=found is None)
    return made
