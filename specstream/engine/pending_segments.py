"""The segments of events that are not committed, by row and by key: which are applied and may go.

Events commit in the order of their keys (timestamp, source, sequence). The C side keeps that order;
what is here numbers rows and segments, finds an event by its row, and forgets what is applied.
"""

from __future__ import annotations

import bisect
import heapq
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi
from specstream.columns.conversion import time_at
from specstream.columns.events import Events
from specstream.declarations.schema import Schema
from specstream.engine.order_times import OrderTimes
from specstream.engine.segments import Segment, keys_of_segments
from specstream.engine.sources import Source, Sources
from specstream.engine.time_phases import TimePhases

if TYPE_CHECKING:
    from specstream._native import ss_segment_p

__all__ = ["PendingSegments"]

_SEGMENT = ffi.typeof("struct ss_segment *")


class PendingSegments:
    """Those of one engine.

    Args:
        sources: of the events.
        schema: of the events.
        times: of the events.

    Attributes:
        by_row: what has come and is not all applied, by row.
        rows: row of the next event.
        phases: what the runtime is given, phases by time; None: it is given the events.
    """

    def __init__(self, sources: Sources, schema: Schema, times: OrderTimes) -> None:
        self._sources = sources
        self._times = times
        self.by_row: list[Segment] = []
        self.rows = 0
        # The same by the key of their last event: in this order they are done.
        self._by_last_key: list[tuple[tuple[int, int, int], Segment]] = []
        self._applied: list[Segment] = []
        self._forgotten = 0  # of those by row
        self.phases: TimePhases | None = None
        if schema.phases:
            self.phases = TimePhases(sources, schema, lambda: times.type)
        sources.whole_times = bool(schema.phases)

    @property
    def left(self) -> int:
        """Events submitted and not applied."""
        left = sum([segment.left for _, segment in list(self._by_last_key)])
        return left if self.phases is None else left - self.phases.applied

    @property
    def scheduled(self) -> PendingSegments | TimePhases:
        """What the runtime has the rows of: the events, or phases of them."""
        return self.phases or self

    def native(self, pointers: Any, source: Source, count: int) -> ss_segment_p:
        """The C side's description of the next segment."""
        native: ss_segment_p = ffi.new(_SEGMENT)
        native.columns = pointers
        native.first = self.rows
        native.last = self.rows + count
        native.source = source.rank
        native.first_sequence = source.next_sequence - self.rows
        native.left = count
        return native

    def append(self, segment: Segment, count: int, first: int, last: int) -> None:
        """The next segment, of so many events from one timestamp to another."""
        segment.since, segment.until = first, last
        self.by_row.append(segment)
        heapq.heappush(self._by_last_key, ((last, segment.source.rank, segment.first), segment))
        self.rows += count
        segment.source.next_sequence += count
        self._sources.note(first, last, segment.source)

    def truncate(self, rows: int) -> None:
        """Forgets events from that row on. May be begun anew."""
        if self.rows != rows or (self.by_row and self.by_row[-1].first >= rows):
            by_last_key = [one for one in self._by_last_key if one[1].first < rows]
            heapq.heapify(by_last_key)
            self.by_row = [one for one in self.by_row if one.first < rows]
            self._by_last_key = by_last_key
        self.rows = rows

    def find(self, row: int) -> tuple[Segment, int]:
        """The segment of an event, and the event's row in it; in any thread."""
        segments = self.by_row  # once: :meth:`forget` may put another list there
        segment = segments[bisect.bisect(segments, row, key=lambda segment: segment.first) - 1]
        return segment, row - segment.first

    def locate(self, row: int) -> tuple[Events, int, Any, Any, int]:
        """An event for a hook: (events, row among them, timestamp, source, sequence)."""
        segment, at = self.find(row)
        events = segment.events
        time = time_at(events.keys[0], at)
        return events, at, time, segment.source.name, segment.first_sequence + at

    def keys(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """The order-key columns of events, by their rows."""
        return keys_of_segments(self.by_row, rows, self._times.type, self._sources)

    def settle(self) -> None:
        """Notes what is applied; while nothing commits, so that it fits what was emitted."""
        if self.phases is not None:
            self.phases.settle()
        while self._by_last_key and self._by_last_key[0][1].is_done:
            # First noted, then taken out: a signal handler may raise in between, and then it is
            # noted twice, which changes nothing.
            self._applied.append(self._by_last_key[0][1])
            heapq.heappop(self._by_last_key)

    def forget(self) -> None:
        """Lets go of what was applied when :meth:`settle` was called."""
        if self.phases is not None:
            self.phases.forget()
        if self._applied:
            for segment in self._applied:
                segment.release()
            forgotten = self._forgotten + len(self._applied)
            self._forgotten, self._applied = forgotten, []
        # Taking each out at once would move all that are behind it, each time. A signal handler may
        # raise in here: then the next call does it.
        if self._forgotten and 2 * self._forgotten >= len(self.by_row):
            self.by_row = [segment for segment in self.by_row if not segment.is_released]
            self._forgotten = 0
