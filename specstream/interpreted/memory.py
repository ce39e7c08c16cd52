"""The backend of a sequential run: words of the state, and containers as dicts and lists.

It knows nothing of transactions, and shares no line with the runtime: what an engine gives is
compared with what it gives. The fields that are no containers lie in the words that it is given.
Entries and elements of containers lie in cells of its own, whose numbers are above those of all
words, and are words again when somebody looks at those (:meth:`Memory.settle`). A journal takes
back what an event has done.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream._native import lib
from specstream.declarations.container_words import entries, replace
from specstream.declarations.state_layout import Field, Layout

__all__ = ["Memory"]

_DTYPES = {
    **{(ord("i"), size): np.dtype(f"i{size}") for size in (1, 2, 4, 8)},
    **{(ord("u"), size): np.dtype(f"u{size}") for size in (1, 2, 4, 8)},
    (ord("d"), 8): np.dtype("f8"),
    (ord("f"), 4): np.dtype("f4"),
    (ord("?"), 1): np.dtype("?"),
    (ord("?"), 8): np.dtype("i8"),
}
_SIGN = 2**63
_LAST = 2**63 - 1


class _Elements:
    """Elements of one type, with a journal."""

    def __init__(self, of: Memory, kind: int, words: npt.NDArray[np.int64], dtype: Any) -> None:
        self._of, self._kind, self._dtype = of, kind, dtype
        self._held = memoryview(words.view(dtype))
        self._length = len(self._held)

    def __getitem__(self, at: int) -> Any:
        if at >= self._length:
            return self._unpacked(self._of.cells.get(at, 0))
        value = self._held[at]
        return bool(value) if self._kind == ord("?") else value

    def __setitem__(self, at: int, value: Any) -> None:
        of = self._of
        if at >= self._length:
            of.journal.append((of.cells.__setitem__, at, of.cells.get(at, 0)))
            of.cells[at] = self._packed(value)
            return
        of.journal.append((self._held.__setitem__, at, self._held[at]))
        self._held[at] = value

    def _unpacked(self, word: int) -> Any:
        if self._kind == ord("d"):
            return struct.unpack("<d", struct.pack("<q", word))[0]
        return bool(word) if self._kind == ord("?") else word

    def _packed(self, value: Any) -> int:
        if self._kind == ord("d"):
            word: int = struct.unpack("<q", struct.pack("<d", value))[0]
            return word
        return int(value)

    def read(self, first: int, length: int) -> bytes:
        return bytes(self._held[first : first + length])

    def write(self, first: int, values: bytes) -> None:
        for at, value in enumerate(np.frombuffer(values, self._dtype).tolist()):
            self[first + at] = value


class _Keyed:
    """A keyed container: cells of entries by their keys, in the order of insertion."""

    def __init__(self, field: Field) -> None:
        assert field.container is not None
        self.field, self.of = field, field.container
        self.entries: dict[tuple[int, ...], int] = {}
        self.keys: dict[int, tuple[int, ...]] = {}
        self.stamps: dict[int, int] = {}
        self.changes = 0
        self.is_ordered = True

    def ordered(self) -> list[int]:
        if not self.is_ordered:
            order = sorted(self.entries.items(), key=lambda item: self.stamps[item[1]])
            self.entries, self.is_ordered = dict(order), True
        return list(self.entries.values())


class Memory:
    """A backend over words: what the wrappers of :mod:`specstream.interpreted.state` call.

    Attributes:
        row: of the event that runs; its columns are in ``columns``.
        journal: what takes back each change of the event: a function and its arguments.
        clock: the largest time of events and firings so far.
        fired: how many timers have.
        floors: by the number of a container, the time of its timer that fires now.
        words_given: what the vertex of a pipeline that runs now gets of its event.

    Args:
        layout: of the state.
        words: of it.
        own: numbers of the containers that it has; None: all.
    """

    def __init__(
        self, layout: Layout, words: npt.NDArray[np.int64], own: Sequence[int] | None = None
    ) -> None:
        self._layout, self.words = layout, words
        self._scratch = np.zeros(layout.words("scratch"), np.int64)
        self.columns: Sequence[npt.NDArray[Any]] = ()
        self.row, self.first_sequence = 0, 0
        self.sequences: Any = None
        self.journal: list[tuple[Any, ...]] = []
        self.cells: dict[int, int] = {}
        # A whole number of elements of each size.
        self._next_cell, self._next_stamp = 2**40, 0
        self.containers: list[Any] = []
        self._due: dict[int, list[tuple[int, int, int]]] = {}
        self.floors: dict[int, int] = {}
        self.words_given: Sequence[Any] = ()
        self.clock, self.fired = -_SIGN, 0
        for number, field in enumerate(layout.containers):
            is_own = own is None or number in own
            self.containers.append(self._loaded(field, number) if is_own else None)

    def _loaded(self, field: Field, number: int) -> Any:
        of, rows = field.container, entries(self.words, field).tolist()
        assert of is not None
        if not of.is_keyed:
            return [self._filled(self._new_cell(of.entry_words), row) for row in rows]
        made = _Keyed(field)
        self.containers.append(made)
        for row in rows:
            self._filled(self._enter(number, tuple(row[: of.key.words])) + 1, row)
            self._note_time(number, made.entries[tuple(row[: of.key.words])])
        self.containers.pop()
        if of.kind == "timers":
            self._due.setdefault(number, [])
            header = self.words[field.offset : field.offset + lib.SS_HEADER_WORDS].tolist()
            clock = header[lib.SS_HEADER_CLOCK] % 2**64 ^ _SIGN
            self.fired = header[lib.SS_HEADER_FIRED]
            self.clock = clock - 2**64 if clock >= _SIGN else clock
        return made

    def _filled(self, first: int, row: list[int]) -> int:
        for at, word in enumerate(row):
            self.cells[first + at] = word
        return first

    def _new_cell(self, words: int) -> int:
        first, self._next_cell = self._next_cell, self._next_cell + words
        return first

    # ---- events ----

    def begin(self) -> None:
        self.journal.clear()
        self._scratch[:] = 0

    def undo(self) -> None:
        for take_back, *arguments in reversed(self.journal):
            take_back(*arguments)
        self.journal.clear()

    def column(self, number: int, kind: int, size: int) -> Any:
        value = self.columns[number][self.row].item()
        return bool(value) if kind == ord("?") else value

    def sequence(self) -> int:
        if self.sequences is not None:
            return int(self.sequences[self.row])
        return self.first_sequence + self.row

    def given(self, at: int, kind: int) -> Any:
        value = self.words_given[at]
        if kind == ord("?"):
            return bool(value)
        return float(value) if kind == ord("d") else int(value)

    def poll(self) -> None:
        pass

    def speculates(self) -> bool:
        return False

    def elements(self, kind: int, size: int, length: int, is_scratch: bool) -> _Elements:
        words = self._scratch if is_scratch else self.words
        return _Elements(
            self,
            kind,
            words[: self._layout.state_words] if not is_scratch else words,
            _DTYPES[kind, size],
        )

    # ---- keyed containers ----

    def _enter(self, number: int, key: tuple[int, ...]) -> int:
        at = self.containers[number]
        entry = self._new_cell(at.of.entry_words)
        self._next_stamp += 1
        at.entries[key], at.keys[entry], at.stamps[entry] = entry, key, self._next_stamp
        at.changes += 1
        return entry

    def keyed_find(self, number: int, key: tuple[int, ...]) -> int:
        found: int = self.containers[number].entries.get(key, -1)
        return found

    def keyed_insert(self, number: int, key: tuple[int, ...]) -> int:
        at = self.containers[number]
        if len(at.entries) >= at.of.limit:
            return -2
        entry = self._enter(number, key)
        self.journal.append((self._leave, number, entry))
        return entry

    def keyed_remove(self, number: int, entry: int) -> None:
        at = self.containers[number]
        self.journal.append((self._back, number, entry, at.keys[entry], at.stamps[entry]))
        self._leave(number, entry)

    def _leave(self, number: int, entry: int) -> None:
        at = self.containers[number]
        del at.entries[at.keys.pop(entry)]
        del at.stamps[entry]
        at.changes += 1

    def _back(self, number: int, entry: int, key: tuple[int, ...], stamp: int) -> None:
        at = self.containers[number]
        at.entries[key], at.keys[entry], at.stamps[entry] = entry, key, stamp
        at.is_ordered = False

    def keyed_clear(self, number: int) -> None:
        for entry in list(self.containers[number].keys):
            self.keyed_remove(number, entry)

    def keyed_count(self, number: int) -> int:
        return len(self.containers[number].entries)

    def keyed_changes(self, number: int) -> int:
        changes: int = self.containers[number].changes
        return changes

    def keyed_entries(self, number: int) -> list[int]:
        found: list[int] = self.containers[number].ordered()
        return found

    def keyed_key(self, number: int, entry: int, words: int) -> tuple[int, ...]:
        key: tuple[int, ...] = self.containers[number].keys[entry]
        return key

    def keyed_rewound(self, number: int, entry: int) -> None:
        pass

    # ---- sequences ----

    def sequence_count(self, number: int) -> int:
        return len(self.containers[number])

    def sequence_element(self, number: int, at: int) -> int:
        word: int = self.containers[number][at]
        return word

    def sequence_insert(self, number: int, at: int) -> int:
        of = self._layout.containers[number].container
        assert of is not None
        held = self.containers[number]
        if len(held) >= of.limit:
            return -2
        cell = self._new_cell(of.entry_words)
        held.insert(at, cell)
        self.journal.append((held.__delitem__, at))
        return cell

    def sequence_delete(self, number: int, first: int, step: int, length: int) -> None:
        held = self.containers[number]
        before = list(held)
        self.journal.append((held.__setitem__, slice(None), before))
        del held[first : first + step * length : step]

    # ---- what goes by time ----

    def timer_set(self, number: int, key: tuple[int, ...], at: int) -> int:
        held = self.containers[number]
        if number in self.floors and at <= self.floors[number]:
            return int(lib.SS_TIMER_TOO_EARLY)
        if key in held.entries:
            self.keyed_remove(number, held.entries[key])
        entry = self.keyed_insert(number, key)
        if entry == -2:
            return int(lib.SS_TIMERS_FULL)
        self.cells[entry + 1 + held.of.key.words] = at
        self._note_time(number, entry)
        return int(lib.SS_TIMER_IS_SET)

    def _note_time(self, number: int, entry: int) -> None:
        held = self.containers[number]
        if held.of.kind == "timers":
            at = self.cells[entry + 1 + held.of.key.words]
            heapq.heappush(self._due.setdefault(number, []), (at, held.stamps[entry], entry))

    def due(self, time: int, ends: dict[int, int] | None) -> tuple[int, int] | None:
        """The timer that is due by ``time`` and comes first: container and entry. Or of those with
        a stamp up to that of ``ends``, whatever their time is."""
        found: tuple[int, int, int] | None = None
        for number in self._due:
            due = self.due_in(number, time, None if ends is None else ends[number])
            if due is not None and (found is None or due[0] < found[0]):
                found = due[0], number, due[2]
        return None if found is None else found[1:]

    def due_in(self, number: int, time: int, stamp: int | None) -> tuple[int, int, int] | None:
        """Likewise in one container: time, stamp and entry."""
        stamps, heap = self.containers[number].stamps, self._due[number]
        later, found = [], None
        while heap:
            at, own, entry = heap[0]
            if stamps.get(entry) != own:
                heapq.heappop(heap)
            elif stamp is not None and own > stamp:
                later.append(heapq.heappop(heap))
            else:
                found = heap[0] if stamp is not None or at <= time else None
                break
        for item in later:
            heapq.heappush(heap, item)
        return found

    def stamps(self) -> dict[int, int]:
        """Of each container of timers the last stamp."""
        return {number: self.last_stamp(number) for number in self._due}

    def last_stamp(self, number: int) -> int:
        return max(self.containers[number].stamps.values(), default=0)

    def expire(self, time: int) -> None:
        """Removes what has not been written for so long; between two events."""
        for number, held in enumerate(self.containers):
            if isinstance(held, _Keyed) and held.of.expires:
                self.expire_in(number, time)

    def expire_in(self, number: int, time: int) -> None:
        """Likewise in one container."""
        held = self.containers[number]
        tick = int(self.words[held.field.offset + lib.SS_HEADER_TICK])
        last, lives = held.of.entry_words - 1, held.of.expires_after(tick)
        for entry in list(held.keys):
            if min(self.cells[entry + last] + lives, _LAST) <= time:
                self._leave(number, entry)

    # ---- for who looks at the words ----

    def settle(self) -> None:
        """Writes what the containers hold into the words."""
        for number, field in enumerate(self._layout.containers):
            of, held = field.container, self.containers[number]
            assert of is not None
            if held is None:
                continue
            first = held.ordered() if of.is_keyed else held
            rows = np.zeros((len(first), of.row_words), np.int64)
            for row, cell in enumerate(first):
                if of.is_keyed:
                    rows[row, : of.key.words] = held.keys[cell]
                    cell += 1
                for at in range(of.key.words if of.is_keyed else 0, of.row_words):
                    rows[row, at] = self.cells.get(cell + at, 0)
            replace(self.words, field, rows)
            if of.kind == "timers":
                clock = self.clock % 2**64 ^ _SIGN
                header = self.words[field.offset : field.offset + lib.SS_HEADER_WORDS]
                header[lib.SS_HEADER_FIRED] = self.fired
                header[lib.SS_HEADER_CLOCK] = clock - 2**64 if clock >= _SIGN else clock
