"""The backend of a sequential run: words of the state, and containers as dicts and lists.

It knows nothing of transactions, and shares no line with the runtime: what an engine gives is
compared with what it gives. The fields that are no containers lie in the words that it is given.
Containers are held as the oracle's are (:mod:`specstream.compiler.oracle_objects.entries` and
``memory_sequence``), and are words again when somebody looks at those (:meth:`Memory.settle`). A
journal takes back what an event has done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.compiler.oracle_objects.codec import Codec
from specstream.compiler.oracle_objects.entries import MemoryTimers, memory_entries
from specstream.compiler.oracle_objects.memory_sequence import MemorySequence
from specstream.declarations.container_words import replace
from specstream.declarations.state_layout import Layout
from specstream.interpreted.records import CellRecords

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
        self._journal, self._is_bool, self._dtype = of.journal, kind == ord("?"), dtype
        self._held = memoryview(words.view(dtype))

    def __getitem__(self, at: int) -> Any:
        value = self._held[at]
        return bool(value) if self._is_bool else value

    def __setitem__(self, at: int, value: Any) -> None:
        self._journal.append((self._held.__setitem__, at, self._held[at]))
        self._held[at] = value

    def read(self, first: int, length: int) -> bytes:
        return bytes(self._held[first : first + length])

    def write(self, first: int, values: bytes) -> None:
        for at, value in enumerate(np.frombuffer(values, self._dtype).tolist()):
            self[first + at] = value


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
        self.words_given: Sequence[Any] = ()
        self.containers: list[Any] = [None] * len(layout.containers)

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

    def store(self, number: int, codec: Codec, slots: CellRecords | None) -> Any:
        """What has the entries or elements of a container."""
        if self.containers[number] is None:
            field = self._layout.containers[number]
            assert field.container is not None
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
                replace(self.words, field, held.rows())
            if isinstance(held, MemoryTimers):
                held.write(self.words)
