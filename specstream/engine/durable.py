"""What a checkpoint records of an engine, and the few things that it does with one.

Whoever makes an engine durable (``checkpoint/``, ``spark/``) uses :attr:`Engine.durable`, and no
private name of the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.rejected_rows import RejectedRows
from specstream.columns.strings import StringTable
from specstream.engine.pending_events import PendingEvents
from specstream.engine.sources import Late, Name

__all__ = ["Durable"]


class Durable:
    """What is committed, as it stands. Nothing of it is a copy: look inside :meth:`exclusive`.

    Attributes, all to be read only:
        words: the state, int64.
        strings: the string table.
        next_sequence: number of the next event.
        reached: order time of the last event applied; None: there is none.
        pending: submitted events that are not committed, and their sources.
        rejected: rows that could not be events and that nobody has fetched, and the policy.
        keys: whether the output has the columns of the order key.
        late: what happens to late events.
        sources: names of the declared sources.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    @property
    def words(self) -> npt.NDArray[np.int64]:
        words: npt.NDArray[np.int64] = self._engine._words
        return words

    @property
    def strings(self) -> StringTable:
        strings: StringTable = self._engine._strings
        return strings

    @property
    def next_sequence(self) -> int:
        return int(self._engine._next_sequence)

    @property
    def reached(self) -> Any:
        return self._engine._reached

    @property
    def pending(self) -> PendingEvents:
        pending: PendingEvents = self._engine._arrivals
        return pending

    @property
    def rejected(self) -> RejectedRows:
        rejected: RejectedRows = self._engine._rejected
        return rejected

    @property
    def keys(self) -> bool:
        return bool(self._engine._keys)

    @property
    def late(self) -> Late:
        late: Late = self._engine._late
        return late

    @property
    def sources(self) -> tuple[Name, ...]:
        sources: tuple[Name, ...] = self._engine._declared
        return sources

    def exclusive(self) -> AbstractContextManager[None]:
        """Inside, nobody else calls the engine; it is not closed."""
        alone: AbstractContextManager[None] = self._engine._open()
        return alone

    def image(self) -> bytes:
        """A snapshot, inside :meth:`exclusive`."""
        image: bytes = self._engine._image()
        return image

    def expect(self, sources: Iterable[Name], late: Late | None = None) -> None:
        """Declares more sources, and what happens to late events; None: that stays."""
        self._engine._expect(sources, late)

    def advance(self, reached: Mapping[Name, int]) -> None:
        """Moves frontiers, given as they are kept: order keys of the order column's values."""
        self._engine._advance_all(reached)
