"""What an engine has committed: state, strings, sequence numbers; and what is not yet committed.

Whoever reads or changes it sees to it that nobody commits meanwhile (``turn.py``).
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from specstream._native import lib
from specstream.columns.events import rows_to_table
from specstream.columns.failed_events import FailedEvents, Numbers
from specstream.columns.field_values import initial_state
from specstream.columns.lifetimes import check_unit, is_settled, settle_unit
from specstream.columns.rejected_rows import RejectedRows
from specstream.columns.strings import StringTable, string_code
from specstream.declarations.codes import Texts
from specstream.declarations.container_words import set_apart, stamped, used_bytes
from specstream.declarations.state_content import StateContent, fixed_words
from specstream.declarations.state_layout import Field
from specstream.declarations.state_view import Words
from specstream.display.values import size
from specstream.engine.options import Options
from specstream.engine.pending_bytes import (
    check_held,
    pack_pending,
    pending_codes,
    pending_words,
    restore_pending,
)
from specstream.engine.pending_events import PendingEvents
from specstream.engine.snapshot import Migrate, Snapshot, refused
from specstream.engine.sources import Late, Name, Sources, checked_late, checked_sources
from specstream.engine.untold_finals import UntoldFinals
from specstream.errors import InputError, SnapshotError

__all__ = ["Committed", "Savepoint"]


@dataclass(frozen=True, eq=False)
class Savepoint:
    """The engine between two batches, kept in memory. See :meth:`Engine.savepoint`."""

    state: StateContent
    next_sequence: int
    strings: StringTable  # which keeps the texts of its codes as long as the savepoint is there
    rejected_rows: tuple[int, tuple[pa.Table, ...]] = (0, ())
    pending: bytes = b""
    pending_codes: tuple[Words, ...] = ()  # words of the pending events, the codes among them
    reached: Any = None
    failed_events: tuple[Numbers, tuple[pa.Table, ...]] = ((0, 0), ())

    def __post_init__(self) -> None:
        self.strings.held_by.add(self)

    @property
    def words(self) -> tuple[Words, ...]:
        """Those that may be codes of strings."""
        return (self.state.fixed, *self.state.rows, *self.pending_codes)

    def __repr__(self) -> str:
        held = sum(memoryview(part).nbytes for part in self.state.buffers())
        name = self.state.layout.name
        return f"Savepoint({name}, {size(held)}, next sequence number {self.next_sequence:,})"


class Committed:
    """State, strings and sequence numbers of one engine.

    Attributes:
        words: the state.
        constants: codes of the operator's own strings, with which a table begins.
        next_sequence: number of the next event of a batch.
        reached: order time of the last event of the batches before; None: there is none.
        rejected: rows that could not be events.
        failed: events that were set aside.
        pending: submitted events that are not committed, and their sources.
        sources: names of the sources that were declared.
        late: what happens to late events.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._operator = options.operator
        self.words = options.operator.layout.allocate()
        # Of the runtime, when there is one. Weakly, as its hooks may lead back here: both would go
        # with the collector then, and not with the engine.
        self.uses: Callable[[], Callable[[StringTable], None] | None] = _by_nobody
        self.strings = StringTable(options.operator.program.strings)
        self.constants = np.array(
            [string_code(text) for text in options.operator.program.strings], np.int64
        )
        self.next_sequence = 0
        # As a snapshot says: see Snapshot.early and Snapshot.early_rows.
        self.told_early: tuple[int, UntoldFinals | None] = 0, None
        self.reached: Any = None
        self.rejected = RejectedRows(options.rejected_rows)
        # Held by itself, the state would go with the collector, and not with its engine.
        held = weakref.ref(self)

        def strings() -> StringTable:
            committed = held()
            assert committed is not None
            return committed.strings

        self.failed = FailedEvents(
            options.errors,
            options.operator.event,
            strings,
            is_pipeline=bool(options.operator.layout.parts),
            has_timers=options.operator.has_timers,
        )
        self.sources: tuple[Name, ...] = tuple(options.sources)
        self.late: Late = options.late
        self.pending = self._no_events(self.strings)

    @property
    def strings(self) -> StringTable:
        """The string table."""
        return self._strings

    @strings.setter
    def strings(self, strings: StringTable) -> None:
        self._strings = strings
        if (use := self.uses()) is not None:
            use(strings)

    def _no_events(self, strings: StringTable) -> PendingEvents:
        operator = self._operator
        what = f"operator {operator.name!r}"
        pending = PendingEvents(
            Sources(strings, what),
            operator.event,
            strings,
            self.late,
            self.rejected,
            operator.program.reads_timestamp,
            self.check_times if operator.layout.lasting else None,
            what,
        )
        pending.sources.declare(self.sources)
        return pending

    def _pending_of(self, strings: StringTable, packed: bytes) -> PendingEvents:
        """What :func:`pack_pending` gave, as pending events.

        Raises:
            SnapshotError: events or rows are in it that do not fit the operator, or it is none.
        """
        pending = self._no_events(strings)
        restore_pending(pending, packed)
        emits = self._operator.emits
        nothing = np.empty((0, emits.row_words), np.int64)
        keys = pending.segments.keys(nothing[:, 0]) if self._options.keys else None
        check_held(pending, rows_to_table(nothing, emits, strings, keys).schema)
        return pending

    @property
    def state_bytes(self) -> int:
        """Bytes of the state; of containers those that they have ever used."""
        layout, words = self._operator.layout, self.words
        containers = sum(used_bytes(words, field) for field in layout.containers)
        return 8 * layout.words("state") + containers

    def fields(self, copied: bool) -> tuple[Words | StateContent, Texts]:
        """The state, live, or of its fields that are no containers a copy; and its strings."""
        if not copied:
            return self.words, lambda codes: self.strings.objects(codes)
        layout = self._operator.layout
        content = StateContent(layout, fixed_words(layout, self.words).copy())
        # The strings that it holds as well: a rollback may take them out of the table.
        return content, self.strings.part(content.codes)

    def expect(self, sources: Iterable[Name], late: Late | None) -> None:
        """Declares more sources, and what happens to late events."""
        declared = (*self.sources, *checked_sources(sources))
        late = self.late if late is None else checked_late(late)
        self.pending.expect(declared, late)
        self.sources, self.late = declared, late

    def finality(self) -> Callable[[Name | None, int], bool]:
        """Says whether the event of a source with a sequence number is committed; or, where the
        source is None, whether the timer of that number has fired."""
        pending, timers = self.pending, self._operator.layout.timers
        waiting = {
            (segment.source.name, segment.first_sequence + at)
            for segment in pending.segments.by_row
            if not segment.is_released
            for at in range(segment.count - segment.not_applied, segment.count)
        }
        fired = 0 if timers is None else int(self.words[timers.offset + lib.SS_HEADER_FIRED])

        def is_final(source: Name | None, sequence: int) -> bool:
            if source is None:
                return sequence < fired
            known = pending.sources.known(source)
            has_come = known is not None and sequence < known.next_sequence
            return has_come and (source, sequence) not in waiting

        return is_final

    def check_nothing_pending(self, what: str) -> None:
        """Refuses a batch while submitted events wait.

        Raises:
            InputError: some do.
        """
        pending = self.pending.segments.left
        if pending:
            raise InputError(
                f"{what}: {pending} submitted event(s) are not committed: advance() their sources "
                "and poll() first, or submit() this table as well"
            )

    # ---- the unit of the times ----

    def check_times(self, of: pa.DataType, whose: str) -> None:
        """Refuses times of a type that entries cannot expire by.

        Raises:
            InputError: see :func:`specstream.columns.lifetimes.check_unit`.
        """
        operator = self._operator
        check_unit(operator.layout, self.words, of, whose, f"operator {operator.name!r}")

    @property
    def knows_times(self) -> bool:
        """Whether the unit is settled that entries expire by, or none expires so."""
        return is_settled(self._operator.layout, self.words)

    def settle_times(self, of: pa.DataType) -> None:
        """Settles it, if it is not yet; before an event that has such times runs."""
        settle_unit(self._operator.layout, self.words, of)

    # ---- kept and brought back ----

    def _content(self, unheard: Any) -> StateContent:
        """A copy of the state, in which a timer (``struct ss_firing``) that has failed, and that
        nobody has heard of, has not fired: else nobody ever would."""
        layout = self._operator.layout
        content = StateContent.of(layout, self.words)
        if unheard is None or layout.timers is None:
            return content
        # Nothing has committed since, so that all else is as it was before.
        content.kept(layout.timers)[:] = [unheard.number, unheard.clock ^ -(2**63)]
        at = int(unheard.container)
        timers = layout.containers[at]
        assert timers.container is not None
        key = np.array(list(unheard.key)[: timers.container.key.words], np.uint64)
        row = [*key.view(np.int64), unheard.at]
        before = self._timers_up_to(timers, unheard.stamp)
        rows = np.insert(content.rows_of(timers), before, row, axis=0)
        return replace(content, rows=(*content.rows[:at], rows, *content.rows[at + 1 :]))

    def _timers_up_to(self, timers: Field, stamp: int) -> int:
        """How many of those that are set have a stamp up to this one."""
        return int(np.searchsorted(stamped(self.words, timers)[0], stamp, side="right"))

    # ---- an end of the input that has begun ----

    def note_end(self, stamp: int, unheard: Any) -> None:
        """At the end timers with a stamp up to this one fire, ``unheard`` among them: notes how
        many there are, as stamps are not kept."""
        layout = self._operator.layout
        counts = []
        for field in layout.all_timers:
            is_in = unheard is not None and layout.containers[unheard.container] == field
            counts.append((field.name, self._timers_up_to(field, stamp) + is_in))
        found = [one for one in counts if one[1]]
        is_pipeline = any("." in name for name, _ in counts)
        self.pending.ending = found if is_pipeline else sum(count for _, count in found)

    @property
    def _ending(self) -> dict[str, int]:
        """How many of the first timers of each field fire at an end that has begun."""
        noted, timers = self.pending.ending, self._operator.layout.timers
        if isinstance(noted, list):
            return dict(noted)
        return {} if timers is None else {timers.name: noted}

    @property
    def end_stamp(self) -> int:
        """Timers with a stamp up to this one fire at it; of a state that was just put back."""
        return max(self._ending.values(), default=0)

    def _put(self, state: StateContent, pending: PendingEvents) -> None:
        """Puts a state back, and what is pending: stamps are 1, 2 and so on in each field. But of
        timers that do not fire at an end that has begun they are above those of all that do."""
        state.put_into(self.words)
        self.pending = pending
        if pending.ending:
            for field in self._operator.layout.all_timers:
                set_apart(self.words, field, self._ending.get(field.name, 0), self.end_stamp)

    @property
    def event_types(self) -> tuple[pa.DataType, pa.DataType]:
        """Those of the times and the sources of events."""
        return self.pending.times.type or pa.int64(), self.pending.sources.type

    def content(
        self,
        done: int,
        state: StateContent | None = None,
        unheard: Any = None,
        early: int = 0,
        untold: UntoldFinals | None = None,
    ) -> Snapshot:
        """For a snapshot; ``done`` events of the batch in flight are in the state, of which
        ``state`` is what the caller has looked at, or else a copy is made, in which ``unheard`` has
        not fired. ``early`` and ``untold``: see :class:`Snapshot`."""
        if state is None:
            state = self._content(unheard)
            told = () if untold is None else (untold.rows,)
            strings = pa.chunked_array(
                [self.strings.referred(itertools.chain(self._words(state), told))]
            )
        else:
            # Whoever builds increments on it takes all that was in the table for known.
            strings = self.strings.to_arrow()
        return Snapshot(
            state,
            self.next_sequence + done,
            strings,
            pack_pending(self.pending),
            self.rejected.to_bytes(),
            self.failed.to_bytes(),
            early,
            b"" if untold is None else untold.to_bytes(),
        )

    def _words(self, content: StateContent) -> Iterator[Words]:
        """Those of a snapshot that may be codes of strings, and those that an engine begins with.
        No others, so that snapshots of one state are the same."""
        yield self.constants
        yield content.fixed
        yield from content.rows
        yield from pending_codes(self.pending)

    def restored(self, snapshot: bytes, migrate: Migrate | None) -> _Restored:
        """What a snapshot holds, checked; nothing is changed.

        Raises:
            SnapshotError: it does not fit; says why.
            Exception: what ``migrate`` raised.
        """
        operator = self._operator
        what = f"engine of {operator.name!r}"
        content = Snapshot.from_bytes(snapshot, operator.layout, what, migrate)
        with refused(what):
            strings = content.table(operator.program.strings)
            pending = self._pending_of(strings, content.pending)
            if len(pending.tentative) and not self._options.early:
                raise SnapshotError(
                    f"{what}: the snapshot holds {len(pending.tentative)} tentative event(s), "
                    "which are for engines with early results; expected Engine(..., early=True)"
                )
            if operator.layout.lasting and pending.segments.left:
                self._check_waiting(pending)
            rejected = RejectedRows.read(content.rejected_rows)
            failed = FailedEvents.read(content.failed_events)
            untold = UntoldFinals.read(content.early_rows, operator.emits.row_words)
        return _Restored(content, strings, pending, rejected, failed, untold)

    def _check_waiting(self, pending: PendingEvents) -> None:
        """An operator may have had no entries that expire after a duration when these came."""
        unsettled = np.zeros(self._operator.layout.words("state"), np.int64)
        assert pending.times.type is not None
        try:
            check_unit(
                self._operator.layout,
                unsettled,
                pending.times.type,
                "the events that the snapshot holds and that are not committed",
                f"engine of {self._operator.name!r}",
            )
        except InputError as error:
            raise SnapshotError(str(error)) from None

    def begin_with(self, initial: object) -> None:
        """Begins with values of the user's. See :class:`specstream.Engine`, ``initial``.

        Raises:
            ConfigurationError: they do not fit; names the field.
        """
        operator = self._operator
        what = f"engine of {operator.name!r}"
        initial_state(operator.layout, self.strings, initial, what).put_into(self.words)

    def take_over(self, restored: _Restored) -> None:
        """Goes on from what :meth:`restored` gave."""
        self._put(restored.content.state, restored.pending)
        self.next_sequence = restored.content.next_sequence
        self.told_early = restored.content.early, restored.untold
        self.strings = restored.strings
        self.rejected.take_over(restored.rejected)
        self.failed.take_over(restored.failed)
        self.reached = None

    def savepoint(self, unheard: Any = None) -> Savepoint:
        """A copy, for :meth:`rollback`, in which the timer ``unheard`` has not fired."""
        return Savepoint(
            self._content(unheard),
            self.next_sequence,
            self.strings,
            self.rejected.savepoint(),
            pack_pending(self.pending),
            tuple(pending_words(self.pending)),
            self.reached,
            self.failed.savepoint(),
        )

    def strings_of(self, to: Savepoint) -> StringTable:
        """A table that has the strings of a savepoint."""
        if to.strings is self.strings:
            return self.strings
        # Of another engine, or from before a snapshot was restored.
        table = StringTable(self._operator.program.strings)
        table.add_all(to.strings.referred(to.words))
        return table

    def rollback(self, to: Savepoint, strings: StringTable) -> None:
        """Back to a savepoint, whose strings ``strings`` has."""
        self.next_sequence = to.next_sequence
        self.strings = strings
        self.rejected.rollback(to.rejected_rows)
        self.failed.rollback(to.failed_events)
        self._put(to.state, self._pending_of(self.strings, to.pending))
        self.reached = to.reached


@dataclass(frozen=True)
class _Restored:
    """A snapshot that fits the engine."""

    content: Snapshot
    strings: StringTable
    pending: PendingEvents
    rejected: list[pa.Table]
    failed: list[pa.Table]
    untold: UntoldFinals | None


def _by_nobody() -> None:
    """Before there is a runtime."""
