"""Events of one source that came together, as the runtime takes them out of order.

The C side refers to their columns until all of them are applied, so each segment keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi
from specstream.columns.events import ALL, Events
from specstream.columns.unentered import ColumnTexts
from specstream.declarations.schema import Schema
from specstream.engine.sources import Source, Sources

if TYPE_CHECKING:
    from specstream._native import ss_segment_p

__all__ = ["Block", "Segment", "SingleEvent", "TextsOfOne", "keys_of_segments", "shifted"]


class Segment:
    """Events of one source that came together, in order; kept until all are applied.

    Attributes:
        first: row of its first event; rows run on from segment to segment.
        source: where they came from.
        first_sequence: sequence number of the first event.
        since: timestamp of the first event.
        until: timestamp of the last event.
        is_ordered: its source sends no earlier event later.
        native: ``struct ss_segment``; ``left`` says how many are not applied.
        kept: what ``native`` points to.
        replaces: an event that this one stands for, which has to be withdrawn before; None: none.
    """

    def __init__(
        self,
        first: int,
        source: Source,
        native: ss_segment_p,
        kept: Any,
        events: Events | None = None,
    ) -> None:
        self.first = first
        self.source = source
        self.first_sequence = source.next_sequence
        self.since = self.until = source.last
        self.is_ordered = False
        self.native = native
        self.kept = kept
        self.replaces: Segment | None = None
        self._events = events

    @property
    def events(self) -> Events:
        """Their columns, and their keys as they were given."""
        assert self._events is not None
        return self._events

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """Those of the events."""
        return self.events.columns

    @property
    def count(self) -> int:
        """How many events there are."""
        return self.events.count

    def keep_last(self, count: int) -> None:
        """Takes its events for applied, but for so many; of a segment that no runtime has."""
        self.native.left = count

    @property
    def left(self) -> int:
        """Events that are not applied; those of a chunk count until all of it is."""
        return 0 if self.native.is_withdrawn else int(self.native.left)

    @property
    def not_applied(self) -> int:
        """With the turn: the same, exactly, though a chunk be applied in part."""
        return 0 if self.native.is_withdrawn else int(self.native.left - self.native.ahead)

    @property
    def is_done(self) -> bool:
        """Whether all are applied, and on_post_commit has been told of each."""
        return bool(self.native.left == 0 and self.native.untold == 0)

    def release(self) -> None:
        """All its events are applied, and nobody asks for them any more."""
        # Whoever asks for them looks first whether it is released.
        self.native = None  # type: ignore[assignment]
        self.kept = self._events = None

    @property
    def is_released(self) -> bool:
        """Whether :meth:`release` was called."""
        return self.native is None


class SingleEvent(Segment):
    """One event in a block that it shares with others; a table only where somebody asks for it."""

    def __init__(
        self, first: int, source: Source, native: ss_segment_p, block: Block, at: int
    ) -> None:
        super().__init__(first, source, native, block)
        self.at = at

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        return tuple(column[self.at : self.at + 1] for column in self.kept.columns)

    @property
    def count(self) -> int:
        return 1

    @property
    def events(self) -> Events:
        block: Block = self.kept
        keys = (pa.array([block.given[self.at]], block.type), pa.array([self.source.name]))
        texts = TextsOfOne(block.texts[self.at])
        return Events(1, self.columns, keys, np.zeros(1, np.int64), texts=texts)


class TextsOfOne(Mapping[str, ColumnTexts]):
    """The texts of one event, made columns of where somebody asks for them."""

    def __init__(self, texts: dict[str, str | None]) -> None:
        self._texts = texts

    def __getitem__(self, name: str) -> ColumnTexts:
        return ColumnTexts(pa.array([self._texts[name]], pa.large_string()))

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class Block:
    """Columns for single events, to be filled one after the other."""

    SIZE = 1024

    def __init__(self, schema: Schema, first: int, of: pa.DataType) -> None:
        self.type = of
        self.first = first
        self.used = 0
        self.given: list[Any] = []
        self.texts: list[dict[str, str | None]] = []  # of columns that are not entered
        self.held: list[Any] = []  # what columns of addresses point into
        dtypes: list[Any] = [np.int64, np.int64, *schema.dtypes]
        columns: list[npt.NDArray[Any]] = [np.empty(self.SIZE, dtype) for dtype in dtypes]
        self.columns = tuple(columns)
        self.pointers = shifted(self.columns, first)

    def follows(self, row: int, of: pa.DataType) -> bool:
        """Whether the event of that row can be put into it."""
        return self.used < self.SIZE and row == self.first + self.used and of == self.type


def keys_of_segments(
    segments: Sequence[Segment],
    rows: npt.NDArray[np.int64],
    of: pa.DataType | None,
    sources: Sources,
) -> dict[str, pa.Array]:
    """The order-key columns of what is in segments, by the rows.

    Args:
        segments: by row.
        rows: of events.
        of: type of their times; None: there are none.
        sources: those of the engine.
    """
    starts = np.array([segment.first for segment in segments], np.int64)
    where = np.searchsorted(starts, rows, side="right") - 1
    timestamps, names, sequences = [], [], np.empty(len(rows), np.int64)
    for number in np.unique(where):
        segment = segments[number]
        inside = np.flatnonzero(where == number)
        local = rows[inside] - segment.first
        timestamps.append(segment.events.keys[0].take(pa.array(local)))
        names.append(segment.events.keys[1].take(pa.array(local)))
        sequences[inside] = segment.events.sequence_at(local, segment.first_sequence)
    # The pieces come segment by segment; this brings each row back to its place.
    back = pa.array(np.argsort(np.argsort(where, kind="stable"), kind="stable"))
    return {
        "timestamp": _joined(timestamps, of).take(back),
        "source": _joined(names, sources.type).take(back),
        "sequence": pa.array(sequences),
    }


def _joined(parts: list[pa.Array], of: pa.DataType | None) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.array([], of or pa.int64())


def shifted(columns: Iterable[npt.NDArray[Any]], first: int, own: int = ALL) -> Any:
    """Columns as the C side wants them: such that row ``first`` is their first element; but only
    the first ``own`` of them."""
    return ffi.new(
        "void *[]",
        [
            ffi.cast(
                "void *",
                (column.ctypes.data - (first if at < own else 0) * column.itemsize) % 2**64,
            )
            for at, column in enumerate(columns)
        ],
    )
