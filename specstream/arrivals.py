"""Events that come out of order, from several sources (Brito 2010, 4.3.1).

Each source says how far it has come: its *frontier*, the time below which it sends nothing more.
Events run as they come; they commit in the order of their keys (timestamp, source, sequence) once
the frontiers of all sources have passed them. The C side keeps the order (``arrivals.c``); what is
here keeps the sources, and the columns of events that are not yet committed.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi
from specstream.bad_rows import BadRows, RowError, as_stream, take_together
from specstream.columns import Events, order_key, read_events, read_value, some_rows
from specstream.conversion import of_order, order_distance, time_at
from specstream.errors import ConfigurationError, InputError, SnapshotError
from specstream.schema import Schema
from specstream.strings import StringTable, string_code
from specstream.untrusted import MOST, Malformed, json_of, made_of, natural, read_tables

__all__ = [
    "END",
    "Arrivals",
    "Late",
    "Name",
    "Segment",
    "Source",
    "Sources",
    "Waiting",
    "checked_late",
    "checked_sources",
    "unpacked",
]

Late = Literal["error", "drop", "side"]
LATE: tuple[str, ...] = ("error", "drop", "side")


def checked_late(late: Late) -> Late:
    """The policy.

    Raises:
        ConfigurationError: there is no such.
    """
    if late not in LATE:
        raise ConfigurationError(f"late={late!r}; expected one of {', '.join(LATE)}")
    return late


Name = int | str


def checked_sources(sources: Iterable[Name]) -> tuple[Name, ...]:
    """The names, of which a string would be as many as it has characters.

    Raises:
        ConfigurationError: it is no list of names.
    """
    if isinstance(sources, str | bytes) or not isinstance(sources, Iterable):
        raise ConfigurationError(
            f"sources={sources!r}; expected a list of sources' names: write sources=[{sources!r}]"
        )
    return tuple(sources)


END = 2**63 - 1
# Between the ranks of sources that are declared or come later: room for names in between.
_STEP = 2**40


@dataclass
class Source:
    """One source of events.

    Attributes:
        name: as it was given.
        rank: its place among sources where timestamps are equal.
        code: what ``event.source`` is inside an operator.
        frontier: no event below this timestamp comes any more; None: anything may come.
        next_sequence: number of its next event.
        last: the highest timestamp of its events.
        late: its events that came below its frontier.
    """

    name: Name
    rank: int
    code: int
    frontier: int | None
    next_sequence: int = 0
    last: int = -(2**63)
    late: int = 0


class Sources:
    """The sources of an engine, ordered by number or by text."""

    def __init__(self, strings: StringTable, what: str) -> None:
        self._strings = strings
        self._what = what
        self._known: dict[Name, Source] = {}
        self._highest: tuple[int, int] | None = None  # (timestamp, rank) of all events
        self.lowest: int | None = None  # timestamp of all events

    def __iter__(self) -> Iterator[Source]:
        # A copy, because others may look while a new source comes.
        return iter(list(self._known.values()))

    def __len__(self) -> int:
        return len(self._known)

    def truncate(self, length: int) -> None:
        """Forgets all but the first ``length`` sources."""
        for name in list(self._known)[length:]:
            del self._known[name]

    def declare(self, names: Iterable[Name]) -> None:
        """Sources that hold back commits from the start, also while they are silent."""
        known = [_checked(name, self._what) for name in names]
        for name in sorted(known, key=lambda name: (isinstance(name, str), name)):
            self.get(name)

    def get(self, name: Name) -> Source:
        """The source of that name; a new one begins where nothing is committed yet."""
        known = self._known.get(name)
        if known is not None:
            return known
        name = _checked(name, self._what)
        kinds = {type(other) for other in self._known}
        if kinds - {type(name)}:
            raise InputError(
                f"{self._what}: source {name!r} is {type(name).__name__}, and the sources before "
                f"are {kinds.pop().__name__}: name them all alike"
            )
        reached = self.frontier()
        if reached is not None and reached[0] == END:
            # All sources have ended; what comes after their last event is still to be applied.
            reached = self._highest
        rank = self._rank(name)
        code = name if isinstance(name, int) else self._strings.add(name)
        start = None
        if reached is not None:
            # What may commit ends at (timestamp, rank): an event before that comes no more.
            start = reached[0] + (1 if rank < reached[1] else 0)
        source = Source(name, rank, code, start)
        self._known[name] = source
        return source

    def _rank(self, name: Name) -> int:
        """A number that sorts as the name does; those given out before stay."""
        if isinstance(name, int):
            return name
        names = sorted(other for other in self._known if isinstance(other, str))
        at = bisect.bisect(names, name)
        before = self._known[names[at - 1]].rank if at > 0 else None
        after = self._known[names[at]].rank if at < len(names) else None
        if before is None:
            return 0 if after is None else after - _STEP
        if after is None:
            return before + _STEP
        if after - before < 2:
            raise InputError(
                f"{self._what}: no place is left for source {name!r} between {names[at - 1]!r} "
                f"and {names[at]!r}: declare the sources, Engine(..., sources=[...])"
            )
        return (before + after) // 2

    @property
    def type(self) -> pa.DataType:
        """Of the sources' names."""
        named = any(isinstance(name, str) for name in self._known)
        return pa.string() if named else pa.int64()

    @property
    def highest(self) -> tuple[int, int] | None:
        """(timestamp, rank) of the last of all events."""
        return self._highest

    def restore(
        self, sources: list[Source], highest: Iterable[int] | None, lowest: int | None
    ) -> None:
        """Takes over the sources of a snapshot; those declared since stay."""
        before = self._known
        self._known = {source.name: source for source in sources}
        if highest is not None:
            timestamp, rank = highest
            self._highest = timestamp, rank
        self.lowest = lowest
        for name in before:
            self.get(name)

    def note(self, first: int, last: int, source: Source) -> None:
        """Events of the source were submitted, from one timestamp to another."""
        source.last = max(source.last, last)
        self.lowest = first if self.lowest is None else min(self.lowest, first)
        here = (last, source.rank)
        self._highest = here if self._highest is None else max(self._highest, here)

    def advance(self, reached: Mapping[Name, int]) -> None:
        """Moves frontiers, given as they are kept; one that lies behind changes nothing."""
        for name, to in reached.items():
            source = self.get(name)
            source.frontier = to if source.frontier is None else max(source.frontier, to)

    def frontier(self) -> tuple[int, int] | None:
        """The last (timestamp, rank) whose events may commit; None: none yet."""
        reached = []
        for source in self:
            if source.frontier is None:
                return None
            reached.append((source.frontier, END if source.frontier == END else source.rank))
        return min(reached, default=None)


def _checked(name: object, what: str) -> Name:
    if isinstance(name, np.integer):
        name = int(name)
    if isinstance(name, bool) or not isinstance(name, int | str):
        raise InputError(f"{what}: source {name!r}; expected an integer or a string")
    if isinstance(name, int) and not -(2**63) <= name < END:
        raise InputError(f"{what}: source {name!r}; expected an integer from -2**63 to {END - 1}")
    return name


class Segment:
    """Events of one source that came together, in order; kept until all are applied.

    Attributes:
        first: row of its first event; rows run on from segment to segment.
        source: where they came from.
        first_sequence: sequence number of the first event.
        until: timestamp of the last event.
        native: ``struct ss_segment``; ``left`` says how many are not applied.
        kept: what ``native`` points to.
    """

    def __init__(
        self, first: int, source: Source, native: Any, kept: Any, events: Events | None = None
    ) -> None:
        self.first = first
        self.source = source
        self.first_sequence = source.next_sequence
        self.until = source.last
        self.native = native
        self.kept = kept
        self._events = events

    @property
    def events(self) -> Events:
        """Their columns, and their keys as they were given."""
        assert self._events is not None
        return self._events

    @property
    def left(self) -> int:
        """Events that are not applied; those of a chunk count until all of it is."""
        return int(self.native.left)

    @property
    def not_applied(self) -> int:
        """With the turn: the same, exactly, though a chunk be applied in part."""
        return int(self.native.left - self.native.ahead)

    @property
    def is_done(self) -> bool:
        """Whether all are applied, and on_post_commit has been told of each."""
        return bool(self.native.left == 0 and self.native.untold == 0)

    def release(self) -> None:
        """All its events are applied, and nobody asks for them any more."""
        self.native = self.kept = self._events = None

    @property
    def is_released(self) -> bool:
        """Whether :meth:`release` was called."""
        return self.native is None


class _Single(Segment):
    """One event in a block that it shares with others; a table only where somebody asks for it."""

    def __init__(self, first: int, source: Source, native: Any, block: _Block, at: int) -> None:
        super().__init__(first, source, native, block)
        self.at = at

    @property
    def events(self) -> Events:
        block: _Block = self.kept
        columns = tuple(column[self.at : self.at + 1] for column in block.columns)
        keys = (pa.array([block.given[self.at]], block.type), pa.array([self.source.name]))
        return Events(1, columns, keys, np.zeros(1, np.int64))


class _Block:
    """Columns for single events, to be filled one after the other."""

    SIZE = 1024

    def __init__(self, schema: Schema, first: int, of: pa.DataType) -> None:
        self.type = of
        self.first = first
        self.used = 0
        self.given: list[Any] = []
        dtypes: list[Any] = [np.int64, np.int64, *schema.dtypes]
        columns: list[npt.NDArray[Any]] = [np.empty(self.SIZE, dtype) for dtype in dtypes]
        self.columns = tuple(columns)
        self.pointers = _shifted(self.columns, first)

    def follows(self, row: int, of: pa.DataType) -> bool:
        """Whether the event of that row can be put into it."""
        return self.used < self.SIZE and row == self.first + self.used and of == self.type


def _shifted(columns: Iterable[npt.NDArray[Any]], first: int) -> Any:
    """Columns as the C side wants them: such that row ``first`` is their first element."""
    return ffi.new(
        "void *[]",
        [
            ffi.cast("void *", (column.ctypes.data - first * column.itemsize) % 2**64)
            for column in columns
        ],
    )


class Arrivals:
    """What one engine was given out of order and has not committed.

    Args:
        sources: of the engine.
        schema: of the events.
        strings: the engine's table.
        late: what happens to events below their source's frontier.
        bad_rows: takes rows that cannot be events.
        reads_timestamp: the operator uses ``event.timestamp``.
        what: names the operator in messages.
    """

    def __init__(
        self,
        sources: Sources,
        schema: Schema,
        strings: StringTable,
        late: Late,
        bad_rows: BadRows,
        reads_timestamp: bool,
        what: str,
    ) -> None:
        self.sources = sources
        self._schema = schema
        self._strings = strings
        self._late: Late = checked_late(late)
        self._bad_rows = bad_rows
        self._reads_timestamp = reads_timestamp
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
        self._block: _Block | None = None
        self._held: pa.Table | None = None
        self.unsent: list[Segment] = []  # of a snapshot, for the next open job

    @property
    def pending(self) -> int:
        """Events submitted and not applied."""
        return sum(segment.left for _, segment in list(self._ending))

    @property
    def late(self) -> int:
        """Events that came below their source's frontier."""
        return sum(source.late for source in self.sources)

    def expect(self, sources: Iterable[Name], late: Late) -> None:
        """Declares more sources, and sets the policy for late events."""
        self.sources.declare(sources)
        self._late = checked_late(late)

    def lag(self) -> float | None:
        """Order time from the frontier to the last event; None: there is not one and the other."""
        highest, reached, of = self.sources.highest, self.sources.frontier(), self._type
        if highest is None or reached is None or of is None:
            return None
        return order_distance(of, highest[0], min(highest[0], reached[0]))

    # ---- in ----

    def read(
        self, table: pa.Table, order_by: str, source: Name | None, source_column: str | None
    ) -> list[Segment]:
        """The table's events as segments, one for each source, late ones sorted out.

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
            order_by,
            source_column,
            self._reads_timestamp,
            self._bad_rows.policy,
        )
        if self._type is None and not nothing:
            self._settle_type(of)
        known_before = len(self.sources)
        try:
            pieces = self._on_time(table, events, source, order_by)
        except BaseException:
            self.sources.truncate(known_before)
            raise
        self._bad_rows.keep(events.bad)
        return [self._segment(*piece) for piece in pieces]

    def _on_time(
        self, table: pa.Table, events: Events, source: Name | None, order_by: str
    ) -> list[tuple[Source, Events]]:
        """The events that are not late, by source."""
        pieces = []
        late: list[tuple[Source, Events]] = []
        for name, rows in _by_source(events, source):
            known = self.sources.get(name)
            mine = events if rows is None else events.take(rows)
            count = 0
            if known.frontier is not None:
                count = int(np.searchsorted(mine.columns[0], known.frontier, side="left"))
            if count:
                late.append((known, mine.take(np.arange(count))))
                mine = mine.take(np.arange(count, mine.count))
            if mine.count:
                pieces.append((known, mine))
        if late and self._late == "error":
            known, below = late[0]
            raise InputError(
                f"{self._what}: {sum(some.count for _, some in late)} event(s) are late, the first "
                f"of source {known.name!r} at {order_by}={time_at(below.keys[0], 0)}, below its "
                "frontier: nothing was submitted; send events before advance(), or use "
                'late="drop" or late="side"'
            )
        for known, below in late:
            known.late += below.count
        if late and self._late == "side":
            self._side.append(self._late_rows(table, late))
        return pieces

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
        pointers = _shifted(events.columns, first)
        native = self._native(pointers, source, events.count)
        segment = Segment(first, source, native, pointers, events)
        times = events.columns[0]
        self._append(segment, events.count, int(times[0]), int(times[-1]))
        return segment

    def _native(self, pointers: Any, source: Source, count: int) -> Any:
        native = ffi.new("struct ss_segment *")
        native.columns = pointers
        native.first = self._rows
        native.last = self._rows + count
        native.source = source.rank
        native.first_sequence = source.next_sequence - self._rows
        native.left = count
        return native

    def _append(self, segment: Segment, count: int, first: int, last: int) -> None:
        segment.until = last
        self._segments.append(segment)
        heapq.heappush(self._ending, ((last, segment.source.rank, segment.first), segment))
        self._rows += count
        segment.source.next_sequence += count
        self.sources.note(first, last, segment.source)

    def one(self, source: Name, timestamp: Any, values: Mapping[str, Any]) -> Segment | None:
        """A single event as a segment; None: it was late or bad, and that is no error.

        Raises:
            InputError: it does not fit.
        """
        if self._type is None and timestamp is not None:
            self._settle_type(self._type_of(timestamp, ""))
        try:
            if timestamp is None:
                raise RowError(
                    f"{self._what}: the event of source {source!r} has no time, but None: give it "
                    'one, drop it, or use bad_rows="side"',
                    np.ones(1, np.bool_),
                    "the time is null",
                )
            is_int64 = self._type == pa.int64() and type(timestamp) is int
            if is_int64 and -(2**63) <= timestamp < 2**63:
                at = timestamp
            else:
                at = self._timestamp(timestamp)
            fitting = self._fitting(values)
        except RowError as error:
            if self._bad_rows.policy == "error":
                raise
            row = self._row(timestamp, source, values)
            self._bad_rows.keep(row.append_column("reason", pa.array([error.reason])))
            return None
        known_before = len(self.sources)
        known = self.sources.get(source)
        if known.frontier is not None and at < known.frontier:
            if self._late == "error":
                self.sources.truncate(known_before)
                raise InputError(
                    f"{self._what}: the event of source {source!r} at {timestamp} is late, below "
                    'its frontier: send events before advance(), or use late="drop" or late="side"'
                )
            known.late += 1
            if self._late == "side":
                self._side.append(self._row(timestamp, source, values))
            return None
        if self._block is None or not self._block.follows(self._rows, self._type):
            self._block = _Block(self._schema, self._rows, self._type)
        block = self._block
        row = block.used
        for column, value in zip(block.columns, (at, known.code, *fitting), strict=True):
            column[row] = value
        block.given.append(timestamp)
        block.used += 1
        native = self._native(block.pointers, known, 1)
        segment = _Single(self._rows, known, native, block, row)
        self._append(segment, 1, at, at)
        return segment

    def _fitting(self, values: Mapping[str, Any]) -> list[Any]:
        """An event's values in the order of the schema, as its columns hold them."""
        fitting: list[Any] = []
        nulls = []
        for name, column in self._schema:
            if name not in values:
                raise InputError(f"{self._what}: the event has no value for column {name!r}")
            value, null = values[name], False
            kind = column.kind if column.is_plain else None
            if kind == "str" and type(value) is str:
                value = self._strings.add(value)
            elif (
                (kind == "int" and type(value) is int and -(2**63) <= value < 2**63)
                or (kind == "float" and type(value) is float)
                or (kind == "bool" and type(value) is bool)
            ):
                pass  # the common cases, which need no conversion
            else:
                value, null = read_value(value, name, column, self._strings, self._what)
            fitting.append(value)
            if column.nullable:
                nulls.append(null)
        if len(values) > len(fitting):
            unknown = next(name for name in values if name not in self._schema.names)
            raise InputError(
                f"{self._what}: the event has a value for {unknown!r}, which the operator does not "
                f"declare; it declares {', '.join(self._schema.names)}"
            )
        return fitting + nulls

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
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
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
            source.frontier = END
        elif self._type is None:
            whom = f" of source {source.name!r}'s frontier"
            of = self._type_of(to, whom)
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
        try:
            array = pa.array([value], of)
        except (pa.ArrowException, OverflowError, TypeError):
            array = None
        if not pa.types.is_floating(of) and _is_float(value):
            array = None  # Arrow would cut off what is behind the point
        if array is None or array.null_count:
            raise InputError(
                f"{self._what}: time {_shown(value)}{of_whom} is no {of}{before}: give a value "
                "of that type; a frontier may be None, the end of the source"
            )
        if of_whom and pa.types.is_floating(of) and value != value:
            raise InputError(f"{self._what}: time {value!r}{of_whom} has no place in an order")
        return int(order_key(array, "timestamp", self._what)[0])

    # ---- snapshots ----

    def to_bytes(self) -> bytes:
        """The sources, and the events that are not applied; while nothing commits.

        Arrow streams: of the events, with the sources as JSON in the schema's metadata; of the
        output that nobody has polled; of frontiers given before any event; of late events that
        nobody has fetched. Those of which there is something.
        """
        numbers = {source.name: number for number, source in enumerate(self.sources)}
        if not numbers:
            return b""
        pieces, segments = [], []
        for segment in self._segments:
            left = 0 if segment.is_released else segment.not_applied
            if not left:
                continue
            events = segment.events
            done = events.count - left
            segments.append((numbers[segment.source.name], segment.first_sequence + done, left))
            columns = [
                pa.array(column[done:]) for column in (events.columns[0], *events.columns[2:])
            ]
            names = ["key", *self._column_names()]
            pieces.append(pa.table([events.keys[0].slice(done), *columns], names=names))
        about = Waiting(
            list(self.sources),
            self.sources.highest,
            self._schema.describe(),
            segments,
            self._held is not None,
            self.sources.lowest,
            [numbers[source.name] for source, _ in self._given],
            len(self._side),
        )
        tables = [] if self._held is None else [self._held]
        if self._given:
            tables.append(pa.table({str(at): _given(to) for at, (_, to) in enumerate(self._given)}))
        tables += self._side
        table = pa.concat_tables(pieces) if pieces else pa.table({"key": pa.array([], self._type)})
        table = table.replace_schema_metadata({"arrivals": json.dumps(about, default=vars)})
        return b"".join(map(as_stream, [table, *tables]))

    def from_bytes(self, image: bytes) -> None:
        """Takes over what :meth:`to_bytes` gave; the events are to be submitted again.

        Raises:
            Malformed: it gave none such.
            SnapshotError: events are pending that do not fit the operator.
        """
        if not image:
            return
        about, table, self._held, given, side = unpacked(image)
        if about.segments and about.event != self._schema.describe():
            raise SnapshotError(
                f"{self._what}: the snapshot holds {table.num_rows} event(s) that are not "
                f"committed, with the columns {dict(about.event)}, and the operator declares "
                f"{dict(self._schema.describe())}: poll until nothing is pending before a snapshot "
                "for another operator"
            )
        columns = self._columns_of(table) if about.segments else ()
        key = table.column("key")
        self._type = None if pa.types.is_null(key.type) else key.type
        self.sources.restore(
            [replace(source) for source in about.sources], about.highest, about.lowest
        )
        known = list(self.sources)
        self._given = [(known[number], to) for number, to in zip(about.given, given, strict=True)]
        self._side = side
        begin = 0
        for number, sequence, count in about.segments:
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
            )
            source = known[number]
            following = source.next_sequence
            source.next_sequence = sequence
            self.unsent.append(self._segment(source, events))
            source.next_sequence = following

    def _columns_of(self, table: pa.Table) -> tuple[npt.NDArray[Any], ...]:
        """The columns of events that :meth:`to_bytes` has written: as C reads them, so checked."""
        names = self._column_names()
        dtypes: list[Any] = [np.int64, *self._schema.dtypes]
        if table.column_names != ["key", *names]:
            raise Malformed(
                f"events have the columns {', '.join(map(ascii, table.column_names))}; expected "
                f"{', '.join(['key', *names])}"
            )
        columns = []
        for name, dtype in zip(names, dtypes, strict=True):
            column = table.column(name)
            if column.type != pa.from_numpy_dtype(dtype) or column.null_count:
                raise Malformed(
                    f"events: {name} is of type {column.type} with {column.null_count} null(s); "
                    f"expected {np.dtype(dtype)} without"
                )
            # Aligned: a stream may have its buffers anywhere.
            columns.append(np.require(column.to_numpy(), requirements=["C", "A"]))
        if not np.array_equal(columns[0], _order_key(table.column("key"))):
            raise Malformed("events: key and timestamp are not the same times")
        nulls = dict(zip(self._schema.nullable, columns[1 + len(self._schema) :], strict=True))
        for (name, column), values in zip(self._schema, columns[1:], strict=False):
            flags = [values] if column.kind == "bool" else []
            flags += [nulls[name]] if name in nulls else []
            if any(flag.max() > 1 for flag in flags):
                raise Malformed(f"events: column {name!r} holds what is neither true nor false")
            if pa.types.is_date(column.arrow) and (values != values.astype(np.int32)).any():
                raise Malformed(f"events: column {name!r} holds what is no day")
            if column.kind == "str":
                codes = np.unique(values[nulls[name] == 0] if name in nulls else values)
                if self._strings.texts(codes).null_count:
                    raise Malformed(f"events: column {name!r} holds codes of no known string")
        return tuple(columns)

    def _column_names(self) -> list[str]:
        """Of the events' columns in a snapshot, behind their key."""
        return [
            "timestamp",
            *(f"column {name}" for name in self._schema.names),
            *(f"null {name}" for name in self._schema.nullable),
        ]

    def check_held(self, expected: pa.Schema) -> None:
        """Looks whether what :meth:`hold` has kept goes together with later output.

        Raises:
            SnapshotError: it is of another operator, or of an engine with another ``keys``.
        """
        if self._held is not None and self._held.schema != expected:
            columns = [
                ", ".join(f"{field.name} ({field.type})" for field in schema)
                for schema in (self._held.schema, expected)
            ]
            raise SnapshotError(
                f"{self._what}: the snapshot holds {self._held.num_rows} row(s) that nobody has "
                f"polled, with the columns {columns[0]}, and the engine's output has {columns[1]}: "
                "poll before a snapshot for another operator, or restore with the same keys="
            )

    def hold(self, output: pa.Table) -> None:
        """Keeps output that was taken from the C side for the next poll."""
        if output.num_rows == 0:
            return  # it would only make snapshots of one state differ
        self._held = output if self._held is None else pa.concat_tables([self._held, output])

    @property
    def has_held(self) -> bool:
        """Whether :meth:`hold` has kept anything."""
        return self._held is not None

    def take_held(self) -> pa.Table | None:
        """What :meth:`hold` has kept."""
        held, self._held = self._held, None
        return held

    # ---- out ----

    def find(self, row: int) -> tuple[Segment, int]:
        """The segment of an event, and the event's row in it; in any thread."""
        segments = self._segments  # once: :meth:`forget` may put another list there
        segment = segments[bisect.bisect(segments, row, key=lambda segment: segment.first) - 1]
        return segment, row - segment.first

    def keys(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """The order-key columns of events, by their rows."""
        starts = np.array([segment.first for segment in self._segments], np.int64)
        where = np.searchsorted(starts, rows, side="right") - 1
        timestamps, names, sequences = [], [], np.empty(len(rows), np.int64)
        for number in np.unique(where):
            segment = self._segments[number]
            inside = np.flatnonzero(where == number)
            local = rows[inside] - segment.first
            timestamps.append(segment.events.keys[0].take(pa.array(local)))
            names.append(segment.events.keys[1].take(pa.array(local)))
            sequences[inside] = local + segment.first_sequence
        # The pieces come segment by segment; this brings each row back to its place.
        back = pa.array(np.argsort(np.argsort(where, kind="stable"), kind="stable"))
        return {
            "timestamp": _joined(timestamps, self._type).take(back),
            "source": _joined(names, self.sources.type).take(back),
            "sequence": pa.array(sequences),
        }

    def settle(self) -> None:
        """Notes what is applied; while nothing commits, so that it fits what was emitted."""
        while self._ending and self._ending[0][1].is_done:
            self._applied.append(heapq.heappop(self._ending)[1])

    def forget(self) -> None:
        """Lets go of what was applied when :meth:`settle` was called."""
        if not self._applied:
            return
        for segment in self._applied:
            segment.release()
        self._forgotten += len(self._applied)
        self._applied = []
        # Taking each out at once would move all that are behind it, each time.
        if 2 * self._forgotten >= len(self._segments):
            self._segments = [segment for segment in self._segments if not segment.is_released]
            self._forgotten = 0

    def take_late(self) -> pa.Table | None:
        """Late events of policy "side" since the last call."""
        return take_together(self._side)


@dataclass(frozen=True)
class Waiting:
    """What a snapshot says of events that are not committed.

    Attributes:
        sources: of the engine.
        highest: (timestamp, rank) of the last of all their events.
        event: the operator's event schema.
        segments: place of the source, sequence number of the first event, and number of events.
        held: whether there is output that nobody has polled.
        lowest: timestamp of the first of all events; earlier snapshots have not got it, nor:
        given: places of the sources whose frontier was given before any event.
        side: number of tables of late events that nobody has fetched.
    """

    sources: list[Source]
    highest: tuple[int, int] | None
    event: list[tuple[str, str]]
    segments: list[tuple[int, int, int]]
    held: bool
    lowest: int | None = None
    given: list[int] = field(default_factory=list)
    side: int = 0


class Unpacked(NamedTuple):
    """What :meth:`Arrivals.to_bytes` gave.

    Attributes:
        about: what it says.
        events: those that wait.
        held: output that nobody has polled.
        given: frontiers given before any event, as Arrow has them.
        side: late events that nobody has fetched.
    """

    about: Waiting
    events: pa.Table
    held: pa.Table | None
    given: list[pa.Scalar]
    side: list[pa.Table]


def unpacked(image: bytes) -> Unpacked:
    """What :meth:`Arrivals.to_bytes` gave.

    Raises:
        Malformed: it gave none such.
    """
    what = "events that wait"
    tables = read_tables(image, what)
    metadata = (tables[0].schema.metadata or {}) if tables else {}
    about = made_of(json_of(metadata.get(b"arrivals", b""), what), Waiting, what)
    natural(about.side, f"{what}: tables of late events", len(tables))
    expected = 1 + about.held + bool(about.given) + about.side
    if len(tables) != expected:
        raise Malformed(f"{what}: {len(tables)} Arrow streams; expected {expected}")
    events = tables.pop(0)
    held = tables.pop(0) if about.held else None
    given = _frontiers(about, tables.pop(0)) if about.given else []
    if events.column_names.count("key") != 1:
        raise Malformed(f"{what} have not one column 'key'")
    _check_sources(about)
    left = events.num_rows
    ends: list[tuple[int, int, int]] = []
    for number, sequence, count in about.segments:
        natural(number, f"{what}: place of a source", len(about.sources) - 1)
        natural(count - 1, f"{what}: number of events, less one,", left - 1)
        left -= count
        natural(sequence, f"{what}: a sequence number", about.sources[number].next_sequence - count)
        ends.append((number, sequence, sequence + count))
    ends.sort()
    if left or any(a[0] == b[0] and b[1] < a[2] for a, b in itertools.pairwise(ends)):
        raise Malformed(f"{what}: {left} of no segment, or two with one sequence number")
    key = events.column("key")
    if key.null_count or (len(key) == 0 and not pa.types.is_null(key.type)):
        # Without events no time was looked at; the type must be one that times can have.
        _order_key(key.slice(0, 0))
    if key.null_count:
        raise Malformed(f"{what}: {key.null_count} without a time")
    return Unpacked(about, events, held, given, tables)


def _frontiers(about: Waiting, table: pa.Table) -> list[pa.Scalar]:
    """Those given before any event, one in each column."""
    what = "frontiers given before any event"
    for number in about.given:
        natural(number, f"{what}: place of a source", len(about.sources) - 1)
    if table.num_rows != 1 or table.num_columns != len(about.given):
        raise Malformed(
            f"{what}: {table.num_rows} row(s) of {table.num_columns}; "
            f"expected one of {len(about.given)}"
        )
    given = [column[0] for column in table.columns]
    if not all(to.is_valid for to in given):
        raise Malformed(f"{what}: one is null")
    for column in table.columns:
        _order_key(column)
    return given


def _check_sources(about: Waiting) -> None:
    """Looks whether sources are such as :class:`Sources` makes."""
    what = "sources of events that wait"
    names = [source.name for source in about.sources]
    if len(set(names)) < len(names) or len({type(name) for name in names}) > 1:
        raise Malformed(f"{what} have one name twice, or numbers and texts for names")
    numbers = [*(about.highest or ()), *(() if about.lowest is None else (about.lowest,))]
    for source in about.sources:
        of = f"source {source.name!r}"
        if isinstance(source.name, int):
            code, rank = source.name, source.name
        else:
            code, rank = string_code(source.name), max(-MOST, min(source.rank, MOST))
        if source.code != code or source.rank != rank or source.name == END:
            raise Malformed(f"{of} has code {source.code} and rank {source.rank}")
        natural(source.next_sequence, f"{of}: next_sequence")
        natural(source.late, f"{of}: late")
        numbers += [source.last, source.rank if source.frontier is None else source.frontier]
    if not all(-(2**63) <= number <= END for number in numbers):
        raise Malformed(f"{what}: a time does not fit int64")
    ranks = [source.rank for source in sorted(about.sources, key=_by_name)]
    if any(later <= earlier for earlier, later in itertools.pairwise(ranks)):
        raise Malformed(f"{what} are not ranked in the order of their names")
    sent = [
        (source.last, source.rank)
        for source in about.sources
        if source.next_sequence or source.last > -(2**63)
    ]
    if about.highest != max(sent, default=None) or (about.lowest is not None and not sent):
        raise Malformed(f"{what}: {about.highest} is not the last of their events")


def _by_name(source: Source) -> Any:
    return source.name


def _order_key(times: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The order column of a snapshot's events as int64 of the same order."""
    try:
        return order_key(times.combine_chunks(), "key", "events that wait")
    except (InputError, pa.ArrowException) as error:
        raise Malformed(f"times of events: {error}") from None


def _given(value: Any, of: pa.DataType | None = None) -> pa.Array:
    """A value as an array: of the type if it can be, else of its own, else as text."""
    for type_ in (of, None):
        try:
            return pa.array([value], type_)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            pass
    return pa.array([repr(value)])


def _shown(time: Any) -> str:
    """A time in a message; one of a snapshot is Arrow's, which may have no way to show it."""
    if not isinstance(time, pa.Scalar):
        return repr(time)
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


def _joined(parts: list[pa.Array], of: pa.DataType | None) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.array([], of or pa.int64())
