"""The backend of a sequential run: words of the state, and containers as dicts and lists.

It knows nothing of transactions, and shares no line with the runtime: what an engine gives is
compared with what it gives. The fields that are no containers lie in the words that it is given.
Containers are held as the oracle's are (:mod:`specstream.compiler.oracle_objects.entries` and
``memory_sequence``), and are words again when somebody looks at those (:meth:`Memory.settle`).
Records in them lie in cells, whose numbers are above those of all words. A journal takes back what
an event has done.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.compiler.oracle_objects.codec import Codec
from specstream.compiler.oracle_objects.entries import MemoryTimers, memory_entries
from specstream.compiler.oracle_objects.memory_sequence import MemorySequence
from specstream.declarations.container_words import replace
from specstream.declarations.state_layout import Layout
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
    """The records of a container, each in a cell.

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

    def replaced(self, before: list[int], after: list[Any]) -> list[int]:
        """Cells in place of others: they are among those, or are to be made."""
        new = iter(self._records.to_copy([one for one in after if not isinstance(one, int)]))
        for cell in set(before).difference(one for one in after if isinstance(one, int)):
            self.left(cell)
        return [one if isinstance(one, int) else self.kept(next(new)) for one in after]

    def load(self, cell: int) -> Any:
        return self._records.at(cell, lambda: cell)


class Memory:
    """A backend over words: what the wrappers of :mod:`specstream.interpreted.state` call.

    Attributes:
        row: of the event that runs; its columns are in ``columns``.
        journal: what takes back each change of the event: a function and its arguments.
        containers: by their numbers; None: not yet asked for.
        words_given: what the vertex of a pipeline that runs now gets of its event.

    Args:
        layout: of the state.
        words: of it.
    """

    def __init__(self, layout: Layout, words: npt.NDArray[np.int64]) -> None:
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
        self.containers: list[Any] = [None] * len(layout.containers)

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

    # ---- containers ----

    def store(self, number: int, codec: Codec, records: Records | None) -> Any:
        """What has the entries or elements of a container."""
        if self.containers[number] is None:
            self._codec, field = codec, self._layout.containers[number]
            assert field.container is not None
            slots = None
            if records is not None:
                slots = _RecordCells(records, self, field.container.value.words)
            given = self.words, self.journal, codec, slots
            if field.container.is_keyed:
                self.containers[number] = memory_entries(field, *given, self._now)
            else:
                self.containers[number] = MemorySequence(field, *given)
        return self.containers[number]

    def _now(self) -> int:
        return int(self.column(0, ord("i"), 8))

    # ---- for who looks at the words ----

    def settle(self) -> None:
        """Writes what the containers hold into the words."""
        for field, held in zip(self._layout.containers, self.containers, strict=True):
            if held is not None:
                assert self._codec is not None
                replace(self.words, field, held.rows(self._codec))
            if isinstance(held, MemoryTimers):
                held.write(self.words)
