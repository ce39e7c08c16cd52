"""Events that came out of order and are not committed, as segments for the runtime.

Events run as they come; they commit in the order of their keys (timestamp, source, sequence) once
the frontiers of all sources have passed them (``sources.py``; Brito 2010, 4.3.1). What is here
takes them in, from tables or one by one: it gives them their sequence numbers, sorts out those that
are late or bad, and brings all back as it was where they are refused. Their columns stay until they
are applied, for output, messages and snapshots (``pending_bytes.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.conversion import order_distance
from specstream.columns.events import CheckTimes, Events, check_int64, read_events
from specstream.columns.rejected_rows import REASON, RejectedRows, RowError
from specstream.columns.strings import StringTable
from specstream.declarations.schema import Schema
from specstream.engine.event_columns import EventColumns
from specstream.engine.late_events import LateEvents
from specstream.engine.order_times import OrderTimes
from specstream.engine.pending_segments import PendingSegments
from specstream.engine.segments import Segment, shifted
from specstream.engine.sources import Late, Name, Source, Sources, checked_late
from specstream.engine.tentative import TentativeEvents
from specstream.errors import InputError

__all__ = ["Numbers", "PendingEvents", "RollbackPoint"]

# Sequence numbers of tentative events; none: the next ones.
Numbers = npt.NDArray[np.int64] | tuple[()]


class PendingEvents:
    """What one engine was given out of order and has not committed.

    Args:
        sources: of the engine.
        schema: of the events.
        strings: the engine's table.
        late: what happens to events below their source's frontier.
        rejected_rows: takes rows that cannot be events.
        reads_timestamp: the operator uses ``event.timestamp``.
        check_times: asked whether times may be of a type; None: they may be of each.
        what: names the operator in messages.

    Attributes:
        times: what the events are ordered by.
        segments: the events.
        late: late ones.
        rejected: rows that cannot be events.
        columns: of single events.
        tentative: those that may still change.
        held: output that was taken from the C side and is kept for the next poll; None: none.
        unsent: segments that the runtime does not have.
        due: timers wait for an open job, which has ended since.
        ending: if so: only the first so many, at an end that has begun; 0: it has not. See
            :class:`specstream.engine.packed_pending.Waiting`.
        has_ended: timers have been told of the end of the sources that there are.
    """

    def __init__(
        self,
        sources: Sources,
        schema: Schema,
        strings: StringTable,
        late: Late,
        rejected_rows: RejectedRows,
        reads_timestamp: bool,
        check_times: CheckTimes | None,
        what: str,
    ) -> None:
        self.sources = sources
        self.schema = schema
        self.strings = strings
        self.what = what
        self.times = OrderTimes(check_times, schema, what)
        self.segments = PendingSegments(sources, schema, self.times)
        self.late = LateEvents(late, sources, self.times, what)
        self.rejected = rejected_rows
        self.columns = EventColumns(schema, strings, what)
        self.tentative = TentativeEvents(what)
        self._reads_timestamp = reads_timestamp
        self._check_times = check_times
        self.held: pa.Table | None = None
        self.unsent: list[Segment] = []
        self.due = False
        self.ending: int | list[tuple[str, int]] = 0
        self.has_ended = False

    def expect(self, sources: Iterable[Name], late: Late) -> None:
        """Declares more sources, and sets the policy for late events."""
        self.sources.declare(sources)
        self.late.policy = checked_late(late)

    def lag(self) -> float | None:
        """Order time from the frontier to the last event; None unless both exist."""
        highest, reached, time_type = self.sources.highest, self.sources.frontier(), self.times.type
        if highest is None or reached is None or time_type is None:
            return None
        return order_distance(time_type, highest[0], min(highest[0], reached[0]))

    def know_times(self, events: Events) -> None:
        """Events of a batch are to run, whose timers may be due at a frontier: what that counts is
        not left to the first event that is submitted.

        Raises:
            InputError: a frontier that was given before is of another type; nothing has changed.
        """
        if self.times.type is None:
            self.times.settle(events.keys[0].type)

    def with_held(self, output: pa.Table) -> pa.Table:
        """Output behind that which is :attr:`held`."""
        return output if self.held is None else pa.concat_tables([self.held, output])

    def rollback_point(self, source: Name | None = None) -> RollbackPoint:
        """All as it is now, before an event of this source comes, or a table."""
        # The first of all events settles the type, and with it frontiers that were given.
        if source is None or self.times.type is None:
            return RollbackPoint(self, list(self.sources))
        known = self.sources.known(source)
        return RollbackPoint(self, [] if known is None else [known])

    def read(
        self,
        table: pa.Table,
        order_by: str,
        source: Name | None,
        source_column: str | None,
        ordered: bool = False,
        numbers: Numbers | None = None,
    ) -> list[Segment]:
        """The table's events as segments to be sent, one for each source, late ones sorted out.

        What else it changes, :meth:`rollback_point` can bring back.

        Args:
            table: see :meth:`specstream.Engine.submit`, as all that follows.
            order_by: column of the times.
            source: of all events.
            source_column: of each.
            ordered: no earlier event comes later.
            numbers: of tentative events, which are a segment each: their sequence numbers, by row
                of the table, or () for the next ones.

        Raises:
            InputError: the table does not fit, or has late events and the policy is "error".
        """
        found = table.schema.get_all_field_indices(order_by)
        of = table.schema.field(found[0]).type if len(found) == 1 else None
        nothing = of is None or pa.types.is_null(of)
        of = None if of is None else self.times.in_unit(of)
        if not nothing and self.times.type is not None and of != self.times.type:
            raise InputError(
                f"{self.what}: order column {order_by!r} has type {of}, and the events before had "
                f"{self.times.type}: cast it"
            )
        events = read_events(
            table,
            self.schema,
            self.strings,
            self.what,
            0,
            order_by=order_by,
            source=source_column,
            reads_timestamp=self._reads_timestamp,
            rejected_rows=self.rejected.policy,
            check_times=self._check_times,
            enters_all=False,
        )
        events = events.kept()
        if self.times.type is None and not nothing:
            self.times.settle(of)
        known_before = len(self.sources)
        pieces = self.late.sort_out(table, events, source, order_by)
        self.sources.leave_out(known_before, (source for source, _ in pieces))
        self.rejected.keep(events.rejected)
        if numbers is not None:
            return [one for piece in pieces for one in self._tentative_segments(*piece, numbers)]
        segments = [self.add(*piece) for piece in pieces]
        for segment in segments:
            segment.is_ordered = ordered
        return segments

    def add(self, source: Source, events: Events) -> Segment:
        """The events as a segment, with the source's next sequence numbers."""
        first = self.segments.rows
        code = np.full(events.count, source.code, np.int64)
        events = replace(
            events,
            columns=(events.columns[0], code, *events.columns[2:]),
            keys=(events.keys[0], pa.repeat(source.name, events.count)),
        )
        pointers = shifted(events.columns, first)
        native = self.segments.native(pointers, source, events.count)
        segment = Segment(first, source, native, pointers, events)
        times = events.columns[0]
        self.segments.append(segment, events.count, int(times[0]), int(times[-1]))
        return segment

    def _tentative_segments(
        self, source: Source, events: Events, numbers: Numbers
    ) -> list[Segment]:
        """The events as segments of one each, in the order of their sequence numbers."""
        count = events.count
        if len(numbers) == 0:
            given = np.arange(count) + source.next_sequence
        else:
            given = np.asarray(numbers)[events.positions]
            self.tentative.check_numbers(source, given)
        events = replace(
            events, columns=(events.columns[0], np.full(count, source.code), *events.columns[2:])
        )
        pointers = shifted(events.columns, self.segments.rows)
        keys = events.keys[0], pa.repeat(source.name, count)
        made: list[Segment] = []
        for at in range(count):
            native = self.segments.native(pointers, source, 1)
            own = Events(
                1,
                tuple(column[at : at + 1] for column in events.columns),
                (keys[0].slice(at, 1), keys[1].slice(at, 1)),
                np.zeros(1, np.int64),
                texts={name: of.slice(at, 1) for name, of in events.texts.items()},
            )
            segment = Segment(self.segments.rows, source, native, (pointers, events), own)
            self.add_tentative(segment, int(given[at]))
            time = int(events.columns[0][at])
            self.segments.append(segment, 1, time, time)
            made.append(segment)
        source.next_sequence = int(given.max()) + 1
        return made

    def add_tentative(self, segment: Segment, sequence: int, version: int = 1) -> None:
        """A tentative event gets its sequence number."""
        segment.first_sequence = sequence
        segment.native.first_sequence = sequence - segment.first
        self.tentative.take(segment, sequence, version)

    def read_event(
        self,
        source: Name,
        timestamp: Any,
        values: Mapping[str, Any],
        ordered: bool = False,
        sequence: int | None = None,
    ) -> list[Segment]:
        """A single event as a segment; none: it was late or bad, and that is no error.

        What else it changes, :meth:`rollback_point` can bring back.

        Args:
            source: of the event.
            timestamp: its time.
            values: of its columns.
            ordered: no earlier event comes later.
            sequence: of a tentative event: its number, or one below 0 for the next.

        Raises:
            InputError: it does not fit.
        """
        times = self.times
        if times.type is None and timestamp is not None:
            times.settle(times.type_of(timestamp))
        if times.type is not None:
            if self._check_times is not None:
                self._check_times(times.type, f"the time of source {source!r}")
            if self._reads_timestamp:
                check_int64(times.type, f"the time of source {source!r}", self.what)
        try:
            if timestamp is None:
                raise RowError(
                    f"{self.what}: the event of source {source!r} has no time, but None: give it "
                    'one, drop it, or use rejected_rows="side"',
                    np.ones(1, np.bool_),
                    "the time is null",
                )
            at = times.key(timestamp)
            fitting = self.columns.fitting(values)
        except RowError as error:
            if self.rejected.policy == "error":
                raise
            row = self.columns.as_table(timestamp, source, values, times.type)
            self.rejected.keep(row.append_column(REASON, pa.array([error.reason])))
            return []
        known_before = len(self.sources)
        known = self.sources.get(source)
        if known.ended or (known.frontier is not None and at < known.frontier):
            if self.late.policy == "error":
                why = "the source has ended" if known.ended else "below its frontier"
                raise InputError(
                    f"{self.what}: the event of source {source!r} at {timestamp} is late, {why}: "
                    'send events before advance(), or use late="drop" or late="side"'
                )
            known.late += 1
            self.sources.leave_out(known_before, ())
            if self.late.policy == "side":
                row = self.columns.as_table(timestamp, source, values, times.type)
                self.late.side.append(row)
            return []
        if sequence is not None and sequence >= 0:
            self.tentative.check_numbers(known, np.array([sequence]))
        number = known.next_sequence if sequence is None or sequence < 0 else sequence
        assert times.type is not None
        segment = self.columns.append(self.segments, times.type, timestamp, known, at, fitting)
        segment.is_ordered = ordered
        if sequence is not None:
            self.add_tentative(segment, number)
            known.next_sequence = number + 1
        return [segment]

    def revised(
        self, old: Segment, version: int, values: Mapping[str, Any], reads: Iterable[str]
    ) -> list[Segment]:
        """A tentative event with other values, as the segment that replaces it; none: it has them
        already, in all columns that the operator ``reads``.

        Raises:
            InputError: a value does not fit.
        """
        events = old.events
        fitting = self.columns.revised(events, values, reads)
        if fitting is None:
            return []
        assert self.times.type is not None
        sequence = old.first_sequence
        segment: Segment = self.columns.append(
            self.segments,
            self.times.type,
            events.keys[0][0],
            old.source,
            int(old.since),
            fitting,
        )
        self.add_tentative(segment, sequence, version)
        old.source.next_sequence -= 1  # it has the number that it had
        segment.replaces = old
        return [segment]


class RollbackPoint:
    """What pending events were before a table, or an event, came that may yet be refused."""

    def __init__(self, pending: PendingEvents, sources: list[Source]) -> None:
        self._pending = pending
        self._known = len(pending.sources)
        self._sources = [(source, source.__dict__.copy()) for source in sources]
        self._reached = pending.sources.highest, pending.sources.lowest, pending.sources.late
        self._rows = pending.segments.rows
        self._type, self._frontiers = pending.times.type, pending.times.frontiers
        self._side = len(pending.late.side)
        self._rejected = pending.rejected.savepoint()

    def restore(self) -> None:
        """May be begun anew."""
        pending = self._pending
        pending.segments.truncate(self._rows)
        pending.times.type, pending.times.frontiers = self._type, self._frontiers
        pending.columns.leave_block()
        del pending.late.side[self._side :]
        pending.rejected.rollback(self._rejected)
        for source, before in self._sources:
            vars(source).update(before)
        pending.tentative.leave_out(self._rows)
        pending.sources.truncate(self._known)
        pending.sources.bring_back(*self._reached)
