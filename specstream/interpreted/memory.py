"""The backend of a sequential run: words of the state, and containers as dicts and lists.

It knows nothing of transactions, and shares no line with the runtime: what an engine gives is
compared with what it gives. The fields that are no containers lie in the words that it is given.
Dicts, sets and timers have their entries as the oracle's have
(:mod:`specstream.compiler.oracle_objects.entries`). Elements of sequences, and records, lie in
cells of its own, whose numbers are above those of all words, and are words again when somebody
looks at those (:meth:`Memory.settle`). A journal takes back what an event has done.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.compiler.oracle_objects.codec import Codec
from specstream.compiler.oracle_objects.entries import MemoryEntries, MemoryTimers, memory_entries
from specstream.declarations.container_words import entries, replace
from specstream.declarations.state_layout import Field, Layout
from specstream.interpreted.records import Records

__all__ = ["Memory"]

_DTYPES = {
    **{(ord("i"), size): np.dtype(f"i{size}") for size in (1, 2, 4, 8)},
    **{(ord("u"), size): np.dtype(f"u{size}") for size in (1, 2, 4, 8)},
    (ord("d"), 8): np.dtype("f8"),
    (ord("f"), 4): np.dtype("f4"),
    (ord("?"), 1): np.dtype("?"),
    (ord("?"), 8): np.dtype("i8"),
}


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


class _RecordCells:
    """The records of a keyed container, each in a cell.

    Args:
        words: of a record.
    """

    def __init__(self, records: Records, memory: Memory, words: int) -> None:
        self._records, self._memory, self._words = records, memory, words
        self.check, self.left, self.values = records.check, records.left, records.read

    def is_same(self, cell: int, checked: tuple[Any, list[Any]]) -> bool:
        """Whether a record that is to be kept is that of the cell already."""
        return self._records.objects.get(cell) is checked[0]

    def made(self, values: Iterable[Any]) -> int:
        cell = self._memory.new_cell(self._words)
        self._records.write(cell, list(values))
        return cell

    def kept(self, checked: tuple[Any, list[Any]]) -> int:
        value, values = checked
        cell = self.made(values)
        self._records.adopt(cell, lambda: cell, value)
        return cell

    def load(self, cell: int) -> Any:
        return self._records.at(cell, lambda: cell)


class Memory:
    """A backend over words: what the wrappers of :mod:`specstream.interpreted.state` call.

    Attributes:
        row: of the event that runs; its columns are in ``columns``.
        journal: what takes back each change of the event: a function and its arguments.
        containers: by their numbers; those with keys from when they were asked for first.
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
        self._next_cell = 2**40
        self._codec: Codec | None = None
        self.words_given: Sequence[Any] = ()
        self.containers: list[Any] = [
            self._loaded(field) if own is None or number in own else None
            for number, field in enumerate(layout.containers)
        ]

    def _loaded(self, field: Field) -> Any:
        of = field.container
        assert of is not None
        if of.is_keyed:
            return None
        rows = entries(self.words, field).tolist()
        return [self._filled(self.new_cell(of.entry_words), row) for row in rows]

    def _filled(self, first: int, row: list[int]) -> int:
        for at, word in enumerate(row):
            self.cells[first + at] = word
        return first

    def new_cell(self, words: int) -> int:
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

    def keyed(self, number: int, codec: Codec, records: Records | None) -> MemoryEntries:
        """The entries of a container."""
        if self.containers[number] is None:
            self._codec, field = codec, self._layout.containers[number]
            assert field.container is not None
            slots = None
            if records is not None:
                slots = _RecordCells(records, self, field.container.value.words)
            self.containers[number] = memory_entries(
                *(self.words, field, self.journal, codec, slots),
                lambda: int(self.column(0, ord("i"), 8)),
            )
        found: MemoryEntries = self.containers[number]
        return found

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
        cell = self.new_cell(of.entry_words)
        held.insert(at, cell)
        self.journal.append((held.__delitem__, at))
        return cell

    def sequence_delete(self, number: int, first: int, step: int, length: int) -> None:
        held = self.containers[number]
        before = list(held)
        self.journal.append((held.__setitem__, slice(None), before))
        del held[first : first + step * length : step]

    def expire(self, time: int) -> None:
        """Removes what has not been written for so long; between two events."""
        for one in self.containers:
            if isinstance(one, MemoryEntries) and one.expiry is not None:
                one.expire(time)

    # ---- for who looks at the words ----

    def settle(self) -> None:
        """Writes what the containers hold into the words."""
        for field, held in zip(self._layout.containers, self.containers, strict=True):
            of = field.container
            assert of is not None
            if held is None:
                continue
            if isinstance(held, MemoryEntries):
                assert self._codec is not None
                replace(self.words, field, held.rows(self._codec))
                if isinstance(held, MemoryTimers):
                    held.write(self.words)
                continue
            rows = np.zeros((len(held), of.row_words), np.int64)
            for row, cell in enumerate(held):
                rows[row] = [self.cells.get(cell + at, 0) for at in range(of.row_words)]
            replace(self.words, field, rows)
