"""Events that came out of order and are not committed: their columns, in the order of their keys.

Events run as they come; they commit in the order of their keys (timestamp, source, sequence) once
the frontiers of all sources have passed them (``sources.py``; Brito 2010, 4.3.1). The C side keeps
that order; what is here keeps the events' columns until then, for output, messages and snapshots.
One piece, as all of it reads and changes the same lists, and brings them back together.
"""

from __future__ import annotations

import bisect
import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi
from specstream.columns.conversion import of_order, order_distance, order_values, time_at
from specstream.columns.derived import NO_TEXTS, Texts, derived_columns
from specstream.columns.events import (
    CheckTimes,
    Events,
    called,
    check_int64,
    order_key,
    read_events,
    read_value,
    some_rows,
)
from specstream.columns.lists import Addresses
from specstream.columns.rejected_rows import RejectedRows, RowError, take_together
from specstream.columns.strings import StringTable
from specstream.columns.tables import in_zones
from specstream.columns.unentered import number_of
from specstream.declarations.options import shown
from specstream.declarations.schema import Column, OneOf, Schema
from specstream.engine.packed_pending import Waiting, column_names, columns_of, packed, unpacked
from specstream.engine.segments import (
    Block,
    Segment,
    SingleEvent,
    TextsOfOne,
    keys_of_segments,
    shifted,
)
from specstream.engine.sources import Late, Name, Source, Sources, checked_late
from specstream.engine.tentative import TentativeEvents
from specstream.engine.time_phases import TimePhases
from specstream.errors import InputError, SnapshotError
from specstream.files.untrusted import Malformed

if TYPE_CHECKING:
    from specstream._native import ss_segment_p

__all__ = ["Before", "PendingEvents"]


_INT64 = pa.int64()
_SEGMENT = ffi.typeof("struct ss_segment *")
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
        self._schema = schema
        # What is asked of each column for each event.
        self._columns = tuple(
            (name, column, column.kind if column.is_plain else None) for name, column in schema
        )
        # Strings that are not entered: the number of the column, and the literals that it meets.
        self._literals = dict(schema.unentered)
        self._unentered = [
            (number, name, self._literals[name])
            for number, name in enumerate(schema.names)
            if name in self._literals
        ]
        self._strings = strings
        self._late: Late = checked_late(late)
        self._rejected = rejected_rows
        self._reads_timestamp = reads_timestamp
        self._check_times = check_times
        self._what = what
        self._segments: list[Segment] = []  # by row
        # The same by the key of their last event: in this order they are done.
        self._ending: list[tuple[tuple[int, int, int], Segment]] = []
        self._applied: list[Segment] = []
        self._forgotten = 0  # of the segments
        self._rows = 0
        # Of the order column: all timestamps must be of one type, or they could not be compared.
        self._type: pa.DataType | None = None
        self._given: list[tuple[Source, Any]] = []  # frontiers given before any event
        self._side: list[pa.Table] = []
        self._block: Block | None = None
        self.held: pa.Table | None = None  # see :meth:`with_held`
        self.unsent: list[Segment] = []  # that the runtime does not have
        self.due = False  # timers wait for an open job, which has ended since
        # If so: only the first so many, at an end that has begun; 0: it has not. See Waiting.
        self.ending: int | list[tuple[str, int]] = 0
        self.batch_id: int | None = None  # of a feed, whose rows are read
        # Of what the runtime is given phases by time; None: it is given the events.
        self.phases: TimePhases | None = None
        if schema.phases:
            self.phases = TimePhases(sources, schema, lambda: self._type)
        sources.whole_times = bool(schema.phases)
        self.has_ended = False  # timers have been told of the end of the sources that there are
        self.tentative = TentativeEvents(what)

    @property
    def pending(self) -> int:
        """Events submitted and not applied."""
        left = sum([segment.left for _, segment in list(self._ending)])
        return left if self.phases is None else left - self.phases.applied

    @property
    def type(self) -> pa.DataType | None:
        """Of the order column; None: nothing has come that has one."""
        return self._type

    @property
    def late(self) -> int:
        """Events that came below their source's frontier."""
        return self.sources.late + sum(source.late for source in self.sources)

    def expect(self, sources: Iterable[Name], late: Late) -> None:
        """Declares more sources, and sets the policy for late events."""
        self.sources.declare(sources)
        self._late = checked_late(late)

    def lag(self) -> float | None:
        """Order time from the frontier to the last event; None unless both exist."""
        highest, reached, of = self.sources.highest, self.sources.frontier(), self._type
        if highest is None or reached is None or of is None:
            return None
        return order_distance(of, highest[0], min(highest[0], reached[0]))

    # ---- in ----

    def before(self, source: Name | None = None) -> Before:
        """All as it is now, before an event of this source comes, or a table."""
        # The first of all events settles the type, and with it frontiers that were given.
        if source is None or self._type is None:
            return Before(self, list(self.sources))
        known = self.sources.known(source)
        return Before(self, [] if known is None else [known])

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

        What else it changes, :meth:`before` can bring back.

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
        if not nothing and self._type is not None and of != self._type:
            raise InputError(
                f"{self._what}: order column {order_by!r} has type {of}, and the events before had "
                f"{self._type}: cast it"
            )
        events = read_events(
            table,
            self._schema,
            self._strings,
            self._what,
            0,
            order_by=order_by,
            source=source_column,
            reads_timestamp=self._reads_timestamp,
            rejected_rows=self._rejected.policy,
            check_times=self._check_times,
            enters_all=False,
        )
        events = replace(events, texts={name: of.kept() for name, of in events.texts.items()})
        if self._type is None and not nothing:
            self._settle_type(of)
        known_before = len(self.sources)
        pieces = self._on_time(table, events, source, order_by)
        self.sources.leave_out(known_before, (source for source, _ in pieces))
        self._rejected.keep(events.rejected)
        if numbers is not None:
            return [one for piece in pieces for one in self._tentative(*piece, numbers)]
        segments = [self._segment(*piece) for piece in pieces]
        for segment in segments:
            segment.is_ordered = ordered
        return segments

    def _on_time(
        self, table: pa.Table, events: Events, source: Name | None, order_by: str
    ) -> list[tuple[Source, Events]]:
        """The events that are not late, by source."""
        pieces = []
        late: list[tuple[Source, Events]] = []
        for name, rows in _by_source(events, source):
            known = self.sources.get(name)
            mine = events if rows is None else events.take(rows)
            count = mine.count if known.ended else 0
            if known.frontier is not None and not known.ended:
                count = int(np.searchsorted(mine.columns[0], known.frontier, side="left"))
            if count:
                late.append((known, mine.take(np.arange(count))))
                mine = mine.take(np.arange(count, mine.count))
            if mine.count:
                pieces.append((known, mine))
        if late and self._late == "error":
            raise self._are_late(late, order_by)
        for known, below in late:
            known.late += below.count
        if late and self._late == "side":
            self._side.append(self._late_rows(table, late))
        return pieces

    def _are_late(self, late: list[tuple[Source, Events]], order_by: str) -> InputError:
        known, below = late[0]
        frontier = known.frontier
        why = "which has ended" if known.ended or frontier is None else "below its frontier"
        told = (
            f"{sum(some.count for _, some in late)} event(s) are late, the first of source "
            f"{known.name!r} at {order_by}={time_at(below.keys[0], 0)}, {why}"
        )
        if self.batch_id is None:
            return InputError(
                f"{self._what}: {told}: nothing was submitted; send events before advance(), or "
                'use late="drop" or late="side"'
            )
        if self._type is not None and frontier is not None and not known.ended:
            told += f" {time_at(order_values(np.array([frontier]), self._type), 0)}"
        return InputError(
            f"{self._what}, batch {self.batch_id}: {told}: nothing of the batch is applied; start "
            'again with late="drop", or late="side" and late_to=; a longer watermark= helps later '
            "events only"
        )

    def _late_rows(self, table: pa.Table, late: list[tuple[Source, Events]]) -> pa.Table:
        """The rows of the table that are late, as they were given."""
        positions = np.concatenate([below.positions for _, below in late])
        which = np.zeros(table.num_rows, np.bool_)
        which[positions] = True
        return some_rows(table, which, self._what)

    def _segment(self, source: Source, events: Events) -> Segment:
        """The events with the source's next sequence numbers."""
        first = self._rows
        code = np.full(events.count, source.code, np.int64)
        events = replace(
            events,
            columns=(events.columns[0], code, *events.columns[2:]),
            keys=(events.keys[0], pa.repeat(source.name, events.count)),
        )
        pointers = shifted(events.columns, first)
        native = self._native(pointers, source, events.count)
        segment = Segment(first, source, native, pointers, events)
        times = events.columns[0]
        self._append(segment, events.count, int(times[0]), int(times[-1]))
        return segment

    def _tentative(self, source: Source, events: Events, numbers: Numbers) -> list[Segment]:
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
        pointers = shifted(events.columns, self._rows)
        keys = events.keys[0], pa.repeat(source.name, count)
        made: list[Segment] = []
        for at in range(count):
            native = self._native(pointers, source, 1)
            own = Events(
                1,
                tuple(column[at : at + 1] for column in events.columns),
                (keys[0].slice(at, 1), keys[1].slice(at, 1)),
                np.zeros(1, np.int64),
                texts={name: of.slice(at, 1) for name, of in events.texts.items()},
            )
            segment = Segment(self._rows, source, native, (pointers, events), own)
            self._number(segment, int(given[at]))
            time = int(events.columns[0][at])
            self._append(segment, 1, time, time)
            made.append(segment)
        source.next_sequence = int(given.max()) + 1
        return made

    def _number(self, segment: Segment, sequence: int, version: int = 1) -> None:
        """A tentative event gets its sequence number."""
        segment.first_sequence = sequence
        segment.native.first_sequence = sequence - segment.first
        self.tentative.take(segment, sequence, version)

    def revised(
        self, old: Segment, version: int, values: Mapping[str, Any], reads: Iterable[str]
    ) -> list[Segment]:
        """A tentative event with other values, as the segment that replaces it; none: it has them
        already, in all columns that the operator ``reads``.

        Raises:
            InputError: a value does not fit.
        """
        events = old.events
        names = list(self._schema.names)
        nullable = list(self._schema.nullable)
        own: list[Any] = [
            events.texts[name][0] if name in events.texts else column[0]
            for name, column in zip(names, events.columns[2:], strict=False)
        ]
        nulls: list[Any] = [
            column[0] for column in events.columns[2 + len(names) :][: len(nullable)]
        ]
        self._check_known(values)
        for number, (name, column, kind) in enumerate(self._columns):
            if name in values:
                own[number], null = self._fit(name, column, kind, values[name])
                if column.nullable:
                    nulls[nullable.index(name)] = null
        fitting = [*own, *nulls]
        read = set(reads)
        texts = [events.texts.get(name) for name in names] + [None] * len(nullable)
        asked = [name in read for name in (*names, *nullable)]
        if all(
            np.asarray(value, column.dtype).tobytes() == column[:1].tobytes()
            if of is None
            else value == of[0]
            for value, column, of, is_read in zip(
                fitting, events.columns[2:], texts, asked, strict=False
            )
            if is_read
        ):
            return []
        sequence = old.first_sequence
        segment = self._single(events.keys[0][0], old.source, int(old.since), fitting)
        self._number(segment, sequence, version)
        old.source.next_sequence -= 1  # it has the number that it had
        segment.replaces = old
        return [segment]

    def _native(self, pointers: Any, source: Source, count: int) -> ss_segment_p:
        native: ss_segment_p = ffi.new(_SEGMENT)
        native.columns = pointers
        native.first = self._rows
        native.last = self._rows + count
        native.source = source.rank
        native.first_sequence = source.next_sequence - self._rows
        native.left = count
        return native

    def _append(self, segment: Segment, count: int, first: int, last: int) -> None:
        segment.since, segment.until = first, last
        self._segments.append(segment)
        heapq.heappush(self._ending, ((last, segment.source.rank, segment.first), segment))
        self._rows += count
        segment.source.next_sequence += count
        self.sources.note(first, last, segment.source)

    def one(
        self,
        source: Name,
        timestamp: Any,
        values: Mapping[str, Any],
        ordered: bool = False,
        sequence: int | None = None,
    ) -> list[Segment]:
        """A single event as a segment; none: it was late or bad, and that is no error.

        What else it changes, :meth:`before` can bring back.

        Args:
            source: of the event.
            timestamp: its time.
            values: of its columns.
            ordered: no earlier event comes later.
            sequence: of a tentative event: its number, or one below 0 for the next.

        Raises:
            InputError: it does not fit.
        """
        if self._type is None and timestamp is not None:
            self._settle_type(self._type_of(timestamp, ""))
        if self._type is not None:
            if self._check_times is not None:
                self._check_times(self._type, f"the time of source {source!r}")
            if self._reads_timestamp:
                check_int64(self._type, f"the time of source {source!r}", self._what)
        try:
            if timestamp is None:
                raise RowError(
                    f"{self._what}: the event of source {source!r} has no time, but None: give it "
                    'one, drop it, or use rejected_rows="side"',
                    np.ones(1, np.bool_),
                    "the time is null",
                )
            at = self._timestamp(timestamp)
            fitting = self._fitting(values)
        except RowError as error:
            if self._rejected.policy == "error":
                raise
            row = self._row(timestamp, source, values)
            self._rejected.keep(row.append_column("reason", pa.array([error.reason])))
            return []
        known_before = len(self.sources)
        known = self.sources.get(source)
        if known.ended or (known.frontier is not None and at < known.frontier):
            if self._late == "error":
                why = "the source has ended" if known.ended else "below its frontier"
                raise InputError(
                    f"{self._what}: the event of source {source!r} at {timestamp} is late, {why}: "
                    'send events before advance(), or use late="drop" or late="side"'
                )
            known.late += 1
            self.sources.leave_out(known_before, ())
            if self._late == "side":
                self._side.append(self._row(timestamp, source, values))
            return []
        if sequence is not None and sequence >= 0:
            self.tentative.check_numbers(known, np.array([sequence]))
        number = known.next_sequence if sequence is None or sequence < 0 else sequence
        segment = self._single(timestamp, known, at, fitting)
        segment.is_ordered = ordered
        if sequence is not None:
            self._number(segment, number)
            known.next_sequence = number + 1
        return [segment]

    def _single(self, timestamp: Any, known: Source, at: int, fitting: list[Any]) -> SingleEvent:
        if self._block is None or not self._block.follows(self._rows, self._type):
            self._block = Block(self._schema, self._rows, self._type)
        block = self._block
        row = block.used
        texts = {}
        if self._unentered:
            fitting = list(fitting)
            for number, name, literals in self._unentered:
                texts[name] = fitting[number]
                fitting[number] = number_of(texts[name], literals)
        for column, value in zip(block.columns, (at, known.code, *fitting), strict=False):
            column[row] = value
        if self._schema.derived:
            declared = 2 + len(fitting)
            own = [column[row : row + 1] for column in block.columns]
            of_one = TextsOfOne(texts)
            derived = derived_columns(self._schema, own[:declared], self._strings, of_one)
            for column, array in zip(own[declared:], derived, strict=True):
                column[:] = array
                if isinstance(array, Addresses):
                    block.held.append(array)
        block.given.append(timestamp)
        block.texts.append(texts)
        block.used += 1
        native = self._native(block.pointers, known, 1)
        segment = SingleEvent(self._rows, known, native, block, row)
        self._append(segment, 1, at, at)
        return segment

    def _fitting(self, values: Mapping[str, Any]) -> list[Any]:
        """An event's values in the order of the schema, as its columns hold them."""
        fitting: list[Any] = []
        nulls = []
        for name, column, kind in self._columns:
            if name not in values:
                raise InputError(f"{self._what}: the event has no value for column {name!r}")
            value, null = self._fit(name, column, kind, values[name])
            fitting.append(value)
            if column.nullable:
                nulls.append(null)
        if len(values) > len(fitting):
            self._check_known(values)
        if self._schema.one_of is not None:
            self._check_required(self._schema.one_of, values, nulls)
        return fitting + nulls

    def _fit(self, name: str, column: Column, kind: str | None, value: Any) -> tuple[Any, bool]:
        """A value as its column holds it, and whether it is null; of a column that is not entered
        the text, and None where it is null."""
        if name in self._literals:
            return self._fit_text(name, column, value)
        if kind == "str" and type(value) is str:
            return self._strings.add(value), False
        if (
            (kind == "int" and type(value) is int and -(2**63) <= value < 2**63)
            or (kind == "float" and type(value) is float)
            or (kind == "bool" and type(value) is bool)
        ):
            return value, False  # the common cases, which need no conversion
        of = self._schema.one_of
        value, null = read_value(value, name, column, self._strings, self._what, of)
        return value, bool(null)

    def _fit_text(self, name: str, column: Column, value: Any) -> tuple[str | None, bool]:
        """The same for a column that is not entered."""
        if type(value) is str and value.isascii():
            return value, False
        strings = StringTable()  # that takes what the engine's would, or refuses it
        if type(value) is str:
            strings.add(value)
            return value, False
        of = self._schema.one_of
        code, null = read_value(value, name, column, strings, self._what, of)
        return None if null else strings.text(code), bool(null)

    def _check_known(self, values: Mapping[str, Any]) -> None:
        """Whether the operator declares all columns that an event has values for."""
        for unknown in values:
            if unknown in self._schema.names:
                continue
            whose, shown = called(self._what, unknown, self._schema.one_of)
            whole = [called("", name, self._schema.one_of) for name in self._schema.names]
            known = [name for of, name in whole if self._what + of == whose]
            raise InputError(
                f"{whose}: the event has a value for {shown!r}, which the operator does not "
                f"declare; it declares {', '.join(known)}"
            )

    def _check_required(self, of: OneOf, values: Mapping[str, Any], nulls: list[bool]) -> None:
        """Whether an event of one of several kinds has what that requires."""
        null = dict(zip(self._schema.nullable, nulls, strict=True))
        for name in dict(of.required).get(values[of.tag], ()):
            if null[name]:
                whose, shown = called(self._what, name, of)
                raise RowError(
                    f"{whose}: column {shown!r} gets None: give it a value, declare the column "
                    'ss.nullable(...), or use rejected_rows="side"',
                    np.ones(1, np.bool_),
                    f"column {name!r} is null",
                )

    def _row(self, timestamp: Any, source: Name, values: Mapping[str, Any]) -> pa.Table:
        """A single event that is put aside, as a table."""
        columns = dict(self._schema)
        return pa.table(
            {
                "timestamp": _given(timestamp, self._type),
                "source": _given(source),
                **{name: _given(value, columns[name].arrow) for name, value in values.items()},
            }
        )

    def know_times(self, events: Events) -> None:
        """Events of a batch are to run, whose timers may be due at a frontier: what that counts is
        not left to the first event that is submitted.

        Raises:
            InputError: a frontier that was given before is of another type; nothing has changed.
        """
        if self._type is None:
            self._settle_type(events.keys[0].type)

    def _settle_type(self, of: pa.DataType) -> None:
        """All timestamps are of this type from now on.

        Raises:
            InputError: a frontier that was given before is not; nothing has changed.
        """
        reached = []
        for known, to in self._given:
            try:
                reached.append((known, self._timestamp(to, of)))
            except InputError:
                raise InputError(
                    f"{self._what}: the frontier {_shown(to)} of source {known.name!r} is no "
                    f"{of}, as the events have it: advance() the source to a time of that type "
                    "first"
                ) from None
        self._type, self._given = of, []
        for known, at in reached:
            known.frontier = at if known.frontier is None else max(known.frontier, at)

    def _type_of(self, time: Any, of_whom: str) -> pa.DataType:
        """Of the first of all times.

        Raises:
            InputError: it is no time.
        """
        if isinstance(time, int) and not isinstance(time, bool):
            return pa.int64()
        try:
            of = pa.array([time]).type
            if getattr(time, "nanosecond", 0):  # of pandas
                of = pa.timestamp("ns", of.tz)
        except Exception:  # of Arrow, or of an object that it asks what it is
            of = None
        if of is None or of_order(pa.array([], of)) is None:
            raise InputError(
                f"{self._what}: time {_shown(time)}{of_whom}; expected an integer, a float, "
                "a timestamp or a date"
            )
        return of

    def advance(self, source: Source, to: Any) -> None:
        """Moves a source's frontier; one that lies behind changes nothing."""
        if to is None:
            source.end()
        elif self._type is None:
            whom = f" of source {source.name!r}'s frontier"
            of = self._type_of(to, whom)
            if self._check_times is not None:
                self._check_times(of, f"the frontier of source {source.name!r}")
            self._timestamp(to, of, whom)
            # One of another type takes the place of those before.
            self._given = [
                (known, before)
                for known, before in self._given
                if known is not source or self._type_of(before, whom) == of
            ]
            self._given.append((source, to))
        else:
            reached = self._timestamp(to)
            if source.frontier is None or reached > source.frontier:
                source.frontier = reached

    def _timestamp(self, value: Any, of: pa.DataType | None = None, of_whom: str = "") -> int:
        """As it is kept; of the type that the events have, or are to have."""
        before = ", as the events before have it" if of is None else ""
        of = self._type if of is None else of
        if type(value) is int and of == _INT64 and -(2**63) <= value < 2**63:
            return value
        try:
            array = pa.array([value], of)
        except (pa.ArrowException, OverflowError, TypeError):
            array = None
        is_finer = pa.types.is_temporal(of) and of != pa.timestamp("ns", getattr(of, "tz", None))
        if not pa.types.is_floating(of) and (
            _is_float(value) or (is_finer and getattr(value, "nanosecond", 0))
        ):
            array = None  # Arrow would cut off what is behind the point
        if array is None or array.null_count:
            raise InputError(
                f"{self._what}: time {_shown(value)}{of_whom} is no {of}{before}: give a value "
                "of that type; a frontier may be None, the end of the source"
            )
        if of_whom and pa.types.is_floating(of) and value != value:
            raise InputError(
                f"{self._what}: time {value!r}{of_whom} has no place in an order: give a number"
            )
        return int(order_key(array, "timestamp", self._what)[0])

    # ---- snapshots ----

    def to_bytes(self) -> bytes:
        """The sources, and the events that are not applied; while nothing commits."""
        numbers = {source.name: number for number, source in enumerate(self.sources)}
        if not numbers:
            return b""
        if self.phases is not None:
            self.phases.note()
        pieces: list[pa.Table] = []
        segments: list[tuple[int, int, int]] = []
        tentative: list[tuple[int, int]] = []
        for segment in self._segments:
            left = 0 if segment.is_released else segment.not_applied
            if not left:
                continue
            events = segment.events
            done = events.count - left
            if segment.native.is_tentative:
                tentative.append((len(segments), self.tentative.version(segment)))
            segments.append((numbers[segment.source.name], segment.first_sequence + done, left))
            # What is derived of them is derived again, maybe by another version of the operator.
            own = 2 + len(self._schema.declared_dtypes)
            columns = [pa.array(column[done:]) for column in events.columns[:own]]
            del columns[1]  # the source
            for number, name, _ in self._unentered:
                columns[1 + number] = events.texts[name].slice(done).array()
            names = ["key", *column_names(self._schema)]
            pieces.append(pa.table([events.keys[0].slice(done), *columns], names=names))
        about = Waiting(
            list(self.sources),
            self.sources.highest,
            self._schema.describe(),
            segments,
            self.held is not None,
            self.sources.lowest,
            [numbers[source.name] for source, _ in self._given],
            len(self._side),
            self.sources.late,
            self.sources.reached,
            self.due,
            self.ending,
            self.has_ended,
            tentative,
            self.tentative.confirmed(numbers),
            self.tentative.retracted(numbers),
        )
        tables = [] if self.held is None else [self.held]
        if self._given:
            tables.append(pa.table({str(at): _given(to) for at, (_, to) in enumerate(self._given)}))
        tables += self._side
        table = pa.concat_tables(pieces) if pieces else pa.table({"key": pa.array([], self._type)})
        return packed(about, table, tables)

    def codes(self) -> Iterator[npt.NDArray[np.int64]]:
        """Codes of strings in what :meth:`to_bytes` gives, and those of the sources."""
        yield np.array([source.code for source in self.sources], np.int64)
        texts = [2 + at for at, (_, column) in enumerate(self._schema) if column.kind == "str"]
        for segment in self._segments:
            left = 0 if segment.is_released else segment.not_applied
            if left and texts:
                columns = segment.columns
                yield from (columns[at][len(columns[at]) - left :] for at in texts)

    def words(self) -> Iterator[npt.NDArray[np.int64]]:
        """Words of the events that somebody may still ask for, codes of strings among them, and the
        codes of the sources."""
        yield np.array([source.code for source in self.sources], np.int64)
        blocks: dict[int, Block] = {}
        for segment in self._segments:
            if isinstance(segment, SingleEvent) and not segment.is_released:
                blocks[id(segment.kept)] = segment.kept
            elif not segment.is_released:
                yield from words_of(segment.columns[2:])
        for block in blocks.values():
            yield from words_of(column[: block.used] for column in block.columns[2:])
            yield from words_of(block.held)

    def from_bytes(self, content: bytes) -> None:
        """Takes over what :meth:`to_bytes` gave; the events are to be submitted again.

        Raises:
            Malformed: it gave none such.
            SnapshotError: events are pending that do not fit the operator.
        """
        if not content:
            return
        about, table, self.held, given, side = unpacked(content)
        expected = self._schema.describe()
        if about.segments and _without_zones(about.event) != _without_zones(expected):
            raise SnapshotError(
                f"{self._what}: the snapshot holds {table.num_rows} event(s) that are not "
                f"committed, with the columns {dict(about.event)}, and the operator declares "
                f"{dict(expected)}: poll until nothing is pending before a snapshot "
                "for another operator"
            )
        columns: tuple[npt.NDArray[Any], ...] = ()
        texts: Texts = NO_TEXTS
        if about.segments:
            columns, texts = columns_of(table, self._schema, self._strings)
            declared = (columns[0], columns[0], *columns[1:])
            derived = derived_columns(self._schema, declared, self._strings, texts)
            columns = (*columns, *derived)
        key = table.column("key")
        self._type = None if pa.types.is_null(key.type) else key.type
        self.sources.restore(
            [replace(source) for source in about.sources],
            about.highest,
            about.lowest,
            about.late,
            about.reached,
        )
        self.due, self.ending, self.has_ended = about.due, about.ending, about.has_ended
        known = list(self.sources)
        self._given = [(known[number], to) for number, to in zip(about.given, given, strict=True)]
        self._side = side
        begin = 0
        versions = dict(about.tentative)
        self.tentative.restore(
            [(known[number].name, up_to) for number, up_to in about.confirmed],
            [(known[number].name, at, time) for number, at, time in about.retracted],
        )
        for at, (number, sequence, count) in enumerate(about.segments):
            piece = slice(begin, begin + count)
            begin += count
            times = columns[0][piece]
            if (times[1:] < times[:-1]).any():
                raise Malformed(f"events of source {known[number].name!r} are not in order")
            events = Events(
                count,
                (times, times, *(column[piece] for column in columns[1:])),
                (key.slice(piece.start, count).combine_chunks(), pa.array([])),
                np.arange(count),
                texts={name: of.slice(piece.start, count) for name, of in texts.items()},
            )
            source = known[number]
            following = source.next_sequence
            source.next_sequence = sequence
            segment = self._segment(source, events)
            source.next_sequence = following
            if at in versions:
                self._number(segment, sequence, versions[at])
            self.unsent.append(segment)

    def check_held(self, expected: pa.Schema) -> None:
        """Looks whether what :attr:`held` has goes together with later output.

        Raises:
            SnapshotError: it is of another operator, or of an engine with another ``keys``.
        """
        if self.held is None:
            return
        self.held = in_zones(self.held, expected)
        if self.held.schema != expected:
            columns = [
                ", ".join(f"{field.name} ({field.type})" for field in schema)
                for schema in (self.held.schema, expected)
            ]
            raise SnapshotError(
                f"{self._what}: the snapshot holds {self.held.num_rows} row(s) that nobody has "
                f"polled, with the columns {columns[0]}, and the engine's output has {columns[1]}: "
                "poll before a snapshot for another operator, or restore with the same keys="
            )

    def with_held(self, output: pa.Table) -> pa.Table:
        """Output behind that which was taken from the C side and is ``held`` for the next poll."""
        return output if self.held is None else pa.concat_tables([self.held, output])

    # ---- out ----

    @property
    def segments(self) -> Sequence[Segment]:
        """What has come and is not all applied, by row."""
        return self._segments

    def find(self, row: int) -> tuple[Segment, int]:
        """The segment of an event, and the event's row in it; in any thread."""
        segments = self._segments  # once: :meth:`forget` may put another list there
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
        return keys_of_segments(self._segments, rows, self._type, self.sources)

    def settle(self) -> None:
        """Notes what is applied; while nothing commits, so that it fits what was emitted."""
        if self.phases is not None:
            self.phases.settle()
        while self._ending and self._ending[0][1].is_done:
            # First noted, then taken out: a signal handler may raise in between, and then it is
            # noted twice, which changes nothing.
            self._applied.append(self._ending[0][1])
            heapq.heappop(self._ending)

    def forget(self) -> None:
        """Lets go of what was applied when :meth:`settle` was called."""
        if self.phases is not None:
            self.phases.forget()
        if not self._applied:
            return
        for segment in self._applied:
            segment.release()
        forgotten = self._forgotten + len(self._applied)
        self._forgotten, self._applied = forgotten, []
        # Taking each out at once would move all that are behind it, each time.
        if 2 * self._forgotten >= len(self._segments):
            self._segments = [segment for segment in self._segments if not segment.is_released]
            self._forgotten = 0

    def take_late(self) -> pa.Table | None:
        """Late events of policy "side" since the last call."""
        return take_together(self._side)


class Before:
    """What pending events were before a table, or an event, came that may yet be refused."""

    def __init__(self, pending: PendingEvents, sources: list[Source]) -> None:
        self._pending = pending
        self._known = len(pending.sources)
        self._sources = [(source, source.__dict__.copy()) for source in sources]
        self._reached = pending.sources.highest, pending.sources.lowest, pending.sources.late
        self._rows, self._type, self._given = pending._rows, pending._type, pending._given
        self._side = len(pending._side)
        self._rejected = pending._rejected.savepoint()

    def bring_back(self) -> None:
        """May be begun anew."""
        pending = self._pending
        if pending._rows != self._rows or (
            pending._segments and pending._segments[-1].first >= self._rows
        ):
            ending = [one for one in pending._ending if one[1].first < self._rows]
            heapq.heapify(ending)
            pending._segments = [one for one in pending._segments if one.first < self._rows]
            pending._ending = ending
        pending._rows, pending._type, pending._given = self._rows, self._type, self._given
        pending._block = None  # it may hold the event
        del pending._side[self._side :]
        pending._rejected.rollback(self._rejected)
        for source, before in self._sources:
            vars(source).update(before)
        pending.tentative.leave_out(self._rows)
        pending.sources.truncate(self._known)
        pending.sources.bring_back(*self._reached)


def words_of(columns: Iterable[npt.NDArray[Any]]) -> Iterator[npt.NDArray[np.int64]]:
    """Those of columns that may hold codes of strings, and of the lists that they point to."""
    for column in columns:
        if column.dtype == np.int64:
            yield column
        yield from getattr(column, "held", ())


def _given(value: Any, of: pa.DataType | None = None) -> pa.Array:
    """A value as an array: of the type if it can be, else of its own, else as text."""
    for type_ in (of, None):
        try:
            return pa.array([value], type_)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            pass
    return pa.array([repr(value)])


def _without_zones(described: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Columns as a snapshot describes them, but for the zones of times, which are no part of what
    an operator reads."""
    return [(name, re.sub(r", tz=[^]]+", "", of)) for name, of in described]


def _shown(time: Any) -> str:
    """A time in a message; one of a snapshot is Arrow's, which may have no way to show it."""
    if not isinstance(time, pa.Scalar):
        return shown(time)
    try:
        return str(time)
    except (KeyError, OverflowError, ValueError):  # no such zone, no such year
        return f"of type {time.type}"


def _is_float(value: Any) -> bool:
    if isinstance(value, pa.Scalar):
        return bool(pa.types.is_floating(value.type))
    return isinstance(value, float | np.floating)


def _by_source(
    events: Events, source: Name | None
) -> Iterator[tuple[Name, npt.NDArray[np.int64] | None]]:
    """Names of sources, each with the rows of its events; None: all of them."""
    if source is not None:
        yield source, None
        return
    codes, first, which = np.unique(events.columns[1], return_index=True, return_inverse=True)
    for number, row in enumerate(first):
        name = events.keys[1][int(row)].as_py()
        yield name, None if len(codes) == 1 else np.flatnonzero(which == number)
