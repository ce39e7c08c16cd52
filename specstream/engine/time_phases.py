"""Submitted events of a pipeline whose phases are all events of one timestamp.

Its events wait as they are, and are kept so in snapshots. When the frontier has passed a time, all
that there will ever be of it is here: then they are gathered into a phase, which is what the
runtime is given. So it runs nothing ahead of the frontier. Phases come in the order of their times;
what of the events is applied follows from the time that the runtime has come to.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi
from specstream.columns.conversion import order_values
from specstream.columns.events import Events
from specstream.columns.lists import joined
from specstream.columns.phases import phases_of
from specstream.declarations.schema import Schema
from specstream.engine.segments import Segment, keys_of_segments, shifted
from specstream.engine.sources import Source, Sources

if TYPE_CHECKING:
    from specstream._native import ss_segment_p

__all__ = ["TimePhases"]

_Times = npt.NDArray[np.int64]
# Of the events of a segment: which is the first, and which the first that is not among them.
_Taken = tuple[Segment, int, int]
# The time of its first event that is not gathered, its first row, the number of that event.
_Waiting = tuple[int, int, int, Segment]
_Open = tuple[Segment, _Times]


class _Phases(Segment):
    """Some phases, and their times also when it is released: other threads may still ask."""

    def __init__(
        self, first: int, source: Source, native: ss_segment_p, kept: Any, phases: Events
    ) -> None:
        super().__init__(first, source, native, kept, phases)
        self.times = phases.columns[0]
        self.since, self.until = int(self.times[0]), int(self.times[-1])


class TimePhases:
    """The phases that the runtime was given, and the events that it was not.

    Args:
        sources: of the events.
        schema: of the events.
        times: gives the type of their times; None: no event has come.
    """

    def __init__(
        self, sources: Sources, schema: Schema, times: Callable[[], pa.DataType | None]
    ) -> None:
        self._sources, self._schema, self._times = sources, schema, times
        self._source = Source("", 0, 0, None)  # of all phases
        self._waiting: list[_Waiting] = []  # a heap
        # Made and not yet noted: what waits behind it, and the events that are in it.
        self._made: tuple[_Phases, list[_Waiting], dict[int, _Open]] | None = None
        self._segments: list[_Phases] = []  # in order
        self._done = 0  # so many of the first that a poll may let go of
        self._rows = 0
        self._next: int | None = None  # no later phase is below this time
        # By first row: events that are gathered, at least the first, and not known to be applied.
        self._open: dict[int, _Open] = {}

    # ---- in ----

    def take(self, segment: Segment) -> None:
        """Events that are to be gathered. May be called again with the same."""
        heapq.heappush(self._waiting, (segment.since, segment.first, 0, segment))

    def following(self, until: int) -> _Phases | None:
        """The phases below a time that the runtime is to be given next; None: there are none.

        May be begun anew.
        """
        self._note_made()
        last = self._segments[-1] if self._segments else None
        if last is not None and not last.is_released and not last.native.submitted:
            return last
        if not self._waiting or self._waiting[0][0] >= until:
            return None
        waiting, taken = self._waiting.copy(), dict[int, _Taken]()
        while waiting and waiting[0][0] < until:
            _, first, begin, segment = heapq.heappop(waiting)
            if first in taken:
                continue  # it was taken twice
            times = segment.columns[0]
            end = len(times)
            if segment.until >= until:
                end = int(np.searchsorted(times, until))
                heapq.heappush(waiting, (int(times[end]), first, end, segment))
            taken[first] = segment, begin, end
        made = self._segment(self._phases(list(taken.values())), [*taken.values()])
        opened = {first: (one, one.columns[0]) for first, (one, _, _) in taken.items()}
        self._made = made, waiting, opened
        self._note_made()
        return made

    def _note_made(self) -> None:
        """May be begun anew."""
        if self._made is None:
            return
        made, waiting, events = self._made
        if not self._segments or self._segments[-1] is not made:
            self._segments.append(made)
        self._open.update(events)
        rows, following = made.first + len(made.times), made.until + 1
        # At one go.
        self._waiting, self._rows, self._next, self._made = waiting, rows, following, None

    def _phases(self, taken: list[_Taken]) -> Events:
        """The phases of events that are all there are of their times."""
        parts = [[column[a:b] for column in one.columns] for one, a, b in taken]
        columns = [joined(list(part)) for part in zip(*parts, strict=True)]
        lengths = [b - a for _, a, b in taken]
        ranks = np.repeat([one.source.rank for one, _, _ in taken], lengths)
        sequences = np.concatenate([np.arange(a, b) + one.first_sequence for one, a, b in taken])
        order = np.lexsort((sequences, ranks, columns[0]))
        names = pa.array([one.source.name for one, _, _ in taken], self._sources.type)
        of = np.repeat(np.arange(len(taken)), lengths)[order]
        times = columns[0][order]
        of_times = self._times()
        assert of_times is not None
        events = Events(
            len(order),
            tuple(column[order] for column in columns),
            (order_values(times, of_times), names.take(pa.array(of))),
            np.arange(len(order)),
        )
        return phases_of(events, self._schema, sequences[order])

    def _segment(self, phases: Events, kept: list[_Taken]) -> _Phases:
        pointers = shifted(phases.columns, self._rows, phases.own)
        native: ss_segment_p = ffi.new("struct ss_segment *")
        native.columns = pointers
        native.first = self._rows
        native.last = self._rows + phases.count
        native.source = self._source.rank
        native.first_sequence = -self._rows
        native.left = phases.count
        return _Phases(self._rows, self._source, native, (pointers, kept), phases)

    # ---- out ----

    def find(self, row: int) -> tuple[Segment, int]:
        """The segment of a phase, and the phase's row in it."""
        segments = self._segments
        segment = segments[bisect.bisect(segments, row, key=lambda segment: segment.first) - 1]
        return segment, row - segment.first

    def keys(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """The order-key columns of phases, by their rows: of the first event of each."""
        return keys_of_segments(self._segments, rows, self._times(), self._sources)

    def _reached(self, is_exact: bool) -> int | None:
        """The time of the first phase that is not applied, or above that of the last one."""
        for segment in list(self._segments):
            native = segment.native
            if native is None:
                continue
            left = int(native.left - (native.ahead if is_exact else 0))
            if left:
                return int(segment.times[len(segment.times) - left])
        return self._next

    def note(self) -> None:
        """Notes what of the events is applied; while nothing commits. May be begun anew."""
        self._note_made()
        reached = self._reached(is_exact=True)
        for first, (segment, times) in list(self._open.items()):
            left = _left(times, reached)
            segment.keep_last(left)
            if not left:
                self._open.pop(first, None)

    def settle(self) -> None:
        """The same, and which phases are; all that they have emitted was taken."""
        self.note()
        done = 0
        for segment in self._segments:
            if not (segment.is_released or segment.is_done):
                break
            done += 1
        self._done = done

    def forget(self) -> None:
        """Lets go of the phases that were applied when :meth:`settle` was called."""
        for segment in self._segments[: self._done]:
            segment.release()
        rest = self._segments[self._done :]
        self._segments, self._done = rest, 0

    @property
    def applied(self) -> int:
        """Events that are applied and not yet noted so; in any thread."""
        reached, count = self._reached(is_exact=False), 0
        for segment, times in list(self._open.values()):
            native = segment.native
            if native is not None:
                count += int(native.left) - _left(times, reached)
        return count


def _left(times: _Times, reached: int | None) -> int:
    """How many events of these times are not applied, where all below one are."""
    if reached is None:
        return len(times)
    if times[-1] < reached:
        return 0
    return len(times) - int(np.searchsorted(times, reached))
