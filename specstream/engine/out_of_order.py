"""Events that are submitted to an engine out of order, and commit below the frontier.

``sources.py`` and ``pending_events.py`` keep the sources and the events; what is here hands them to
the runtime, whose *open job* takes events while it runs, and brings back what they emit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import lib
from specstream.columns.events import (
    column,
    keys_with_firings,
    rows_to_table,
    sequence_numbers,
)
from specstream.columns.python_values import row_tuples
from specstream.declarations.options import flag, integer, number, one_of, refused, text
from specstream.engine.early_results import Changes, EarlyAnswer, EarlyResults
from specstream.engine.early_statistics import EarlyCount
from specstream.engine.interrupts import LatePartial
from specstream.engine.native import WAIT_MILLISECONDS
from specstream.engine.operator_errors import (
    failed_event,
    failed_timer,
    failure_of,
    timer_failure,
)
from specstream.engine.parts import Parts
from specstream.engine.pending_events import Before, Numbers, PendingEvents
from specstream.engine.segments import Segment
from specstream.engine.sources import END, Name, Source
from specstream.engine.string_sweep import StringSweep
from specstream.engine.time_phases import TimePhases
from specstream.errors import (
    ConfigurationError,
    FailedEventsError,
    InputError,
    Partial,
    SpecstreamError,
)
from specstream.predictors.checked import longest_of, open_of

__all__ = ["OutOfOrder"]

T = TypeVar("T")

# Nothing is below it: there is no earlier key.
NO_FRONTIER = (-(2**63), -(2**63))
# Between two looks at the rows of events that are committing.
DRAIN_SECONDS = 0.001
WAIT_SECONDS = WAIT_MILLISECONDS / 1000


class OutOfOrder:
    """The open job of one engine. The public calls are documented at :class:`specstream.Engine`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._native = parts.native
        self._lifetime = parts.lifetime
        self._flight = parts.flight
        self._committed = parts.committed
        self._emits = parts.operator.emits
        self._timers = parts.operator.layout.timers
        self._lasting = parts.operator.layout.lasting
        self._frontier = NO_FRONTIER  # that the open job was told
        self._highest = NO_FRONTIER  # key of the last event that it was given
        self._joined = 0  # sources that the frontier was looked at for
        self._early = EarlyResults(self._native, self._emits, parts.operator.rows)
        self._applied = 0  # events of the open job that a poll has told of
        self._aside = 0  # events that were set aside since a poll has told of some
        self._taken: list[
            tuple[int, npt.NDArray[np.int64]]
        ] = []  # rows that nobody has, by edition
        self._pause = DRAIN_SECONDS
        self._too_many: FailedEventsError | None = None
        # What a poll was to raise that was interrupted before: the next one raises it.
        self._owed: BaseException | None = None
        self._firings: dict[int, int] = {}  # time of the timers that have emitted some, by number
        self.strings = StringSweep(parts)

    def sweep_if_due(self) -> None:
        """Drops strings that nothing refers to, if it is time."""
        if self.strings.is_due:
            if self._flight.is_open:
                self._parts.turn.taken(self.sweep)
            else:
                self.sweep()

    def sweep(self) -> None:
        """Drops them now; with the turn, or while nothing runs."""
        self.strings.sweep(self.words())

    def words(self) -> Iterator[npt.NDArray[np.int64]]:
        """Words of rows that nobody has, codes of strings among them."""
        yield from (rows for _, rows in self._taken)
        yield from self._early.words()

    @property
    def early_count(self) -> EarlyCount | None:
        """Figures of early results; None: there are none."""
        return self._early.count if self._parts.options.early else None

    def submit(
        self,
        table: Any,
        *,
        order_by: str,
        source: Name | None = None,
        source_column: str | None = None,
        ordered: bool = False,
        final: bool = True,
        sequence_by: str | None = None,
    ) -> None:
        """See :meth:`specstream.Engine.submit`."""
        order_by = text("order_by", order_by, "the name of a column")  # type: ignore[assignment]
        source_column = column("source_column", source_column)
        ordered = flag("ordered", ordered)
        if order_by is None:
            raise refused("order_by", order_by, "the name of a column: the time of the events")
        if source is not None and source_column is not None:
            raise ConfigurationError(
                "source and source_column were both given: name the one source of the table, or "
                "the column that names each row's"
            )
        if source is None:
            source_column = self._parts.operator.source_column(source_column)
        numbers = self._numbers(table, flag("final", final), sequence_by, ordered)
        with self._lifetime.exclusive():
            self.sweep_if_due()
            pending = self._committed.pending
            self._take(
                pending.before(),
                lambda: pending.read(
                    self._parts.operator.events_table(
                        table, f"operator {self._parts.name!r}", (order_by, source_column), source
                    ),
                    order_by,
                    0 if source is None and source_column is None else source,
                    source_column,
                    ordered,
                    numbers,
                ),
            )
            self._send()

    def _numbers(
        self, table: Any, final: bool, sequence_by: str | None, ordered: bool
    ) -> Numbers | None:
        """Sequence numbers of tentative events; None: they are not tentative."""
        sequence_by = column("sequence_by", sequence_by)
        if final:
            if sequence_by is not None:
                raise ConfigurationError(
                    "sequence_by= numbers tentative events: leave it out, or give final=False"
                )
            return None
        self._check_tentative("final=False", ordered)
        if sequence_by is None:
            return ()
        return sequence_numbers(table, sequence_by, f"operator {self._parts.name!r}")

    def _check_tentative(self, what: str, ordered: bool = False) -> None:
        if not self._parts.options.early:
            raise ConfigurationError(
                f"{what}: tentative events are for engines with early results; expected "
                "Engine(..., early=True)"
            )
        if ordered:
            raise ConfigurationError(
                "ordered=True says that nothing earlier comes, and of a tentative event another "
                "version may: leave it out, and advance() the source"
            )

    def submit_event(
        self,
        timestamp: Any,
        source: Name,
        ordered: bool,
        values: Mapping[str, Any],
        final: bool = True,
        sequence: int | None = None,
    ) -> None:
        """See :meth:`specstream.Engine.submit_event`."""
        if ordered is not False and ordered is not True:
            ordered = flag("ordered", ordered)
        if final is not True or sequence is not None:
            number = self._number(flag("final", final), sequence, ordered)
        else:
            number = None
        values = self._parts.operator.event_values(source, values)
        with self._lifetime.exclusive():
            self.sweep_if_due()
            pending = self._committed.pending
            self._take(
                pending.before(source),
                lambda: pending.one(source, timestamp, values, ordered, number),
            )
            self._send()

    def _number(self, final: bool, sequence: int | None, ordered: bool) -> int | None:
        """Of a tentative event, or -1 for the next one; None: it is not tentative."""
        if final:
            if sequence is None:
                return None
            raise ConfigurationError(
                f"sequence={sequence!r} numbers a tentative event; expected final=False with it"
            )
        self._check_tentative("final=False", ordered)
        return -1 if sequence is None else integer("sequence", sequence, 0, 2**62)

    # ---- tentative events ----

    def confirm(self, source: Name, up_to: int | None) -> None:
        """See :meth:`specstream.Engine.confirm`."""
        self._check_tentative("confirm")
        with self._lifetime.exclusive():
            pending = self._committed.pending
            known = self._known(source, "confirm")
            number = (
                known.next_sequence - 1
                if up_to is None
                else integer("up_to", up_to, -1, 2**62, " or None")
            )
            for segment in pending.tentative.confirmable(known, number):
                if segment.native.submitted and self._flight.is_open:
                    self._native.confirm(segment.native)
                else:
                    segment.native.is_tentative = False
            pending.tentative.note_confirmed(known, number)
            self._send()

    def revise(self, source: Name, sequence: int, version: int, values: Mapping[str, Any]) -> None:
        """See :meth:`specstream.Engine.revise`."""
        self._check_tentative("revise")
        sequence = integer("sequence", sequence, 0, 2**62)
        version = integer("version", version, 1, 2**62)
        if not values:
            raise InputError(
                f"operator {self._parts.name!r}: revise of event {sequence} of source {source!r} "
                "changes no column; expected values, by the names of columns"
            )
        with self._lifetime.exclusive():
            pending = self._committed.pending
            known = self._known(source, "revise")
            old = pending.tentative.find(known, sequence, version)
            if old is None:
                return
            operator = self._parts.operator
            inside = operator.values_of(source, values)
            reads: Iterable[str] = operator.event.names
            # What a pipeline reads is told by vertex; and Python reads what no syntax shows.
            if not operator.sources and not operator.is_interpreted:
                reads = operator.explain().columns_read

            def revised() -> list[Segment]:
                return pending.revised(old, version, inside, reads)

            before = len(pending.unsent)
            self._take(pending.before(source), revised)
            if len(pending.unsent) == before:
                pending.tentative.note_version(old, version)
            self._send()

    def retract(self, source: Name, sequence: int) -> None:
        """See :meth:`specstream.Engine.retract`."""
        self._check_tentative("retract")
        sequence = integer("sequence", sequence, 0, 2**62)
        with self._lifetime.exclusive():
            pending = self._committed.pending
            old = pending.tentative.find(self._known(source, "retract"), sequence, None)
            if old is not None:
                self._withdraw(old)
                pending.tentative.note_retracted(old)
            self._send()

    def _known(self, source: Name, call: str) -> Source:
        known = self._committed.pending.sources.known(source)
        if known is None:
            names = ", ".join(repr(one.name) for one in self._committed.pending.sources) or "none"
            raise InputError(
                f"operator {self._parts.name!r}: {call}: nothing has come of source {source!r}; "
                f"known: {names}"
            )
        return known

    def _withdraw(self, segment: Segment) -> None:
        """It never came. May be begun anew."""
        if segment.native.submitted and self._flight.is_open:
            self._native.withdraw(segment.native)
        else:
            segment.native.is_withdrawn, segment.native.left = True, 0

    def _take(self, before: Before, read: Callable[[], list[Segment]]) -> None:
        """Takes segments to be sent, or leaves all as it was before."""
        pending, lifetime = self._committed.pending, self._lifetime
        lifetime.unsettled = before.bring_back
        try:
            unsent = [*read(), *pending.unsent]
            pending.unsent, lifetime.unsettled = unsent, None  # at one go
        except BaseException:
            lifetime.settle()
            raise

    def advance(self, source: Name, to: Any = None) -> None:
        """See :meth:`specstream.Engine.advance`."""
        with self._lifetime.exclusive():
            pending = self._committed.pending
            before = pending.before(source)
            try:
                pending.advance(pending.sources.get(source), to)
            except BaseException:
                before.bring_back()
                raise
            self._send()

    def poll(self, timeout: float | None = 0.0) -> Any:
        """See :meth:`specstream.Engine.poll`."""
        return self._poll(timeout, self._as_given)

    def poll_whole(self, timeout: float | None = 0.0) -> pa.Table:
        """With the rows of all sinks in one table."""
        return self._poll(timeout, self._as_table)

    def poll_rows(self, timeout: float | None = 0.0) -> list[tuple[Any, ...]]:
        """See :meth:`specstream.Engine.poll_rows`."""
        return self._poll(timeout, self._as_tuples)

    def _poll(self, timeout: float | None, made: Callable[[Any], tuple[T, Partial]]) -> T:
        """What ``made`` makes of the outcome and of all rows that are there for a poll."""
        until = _deadline(timeout)
        given: Partial | None = None
        try:
            while True:
                with self._lifetime.exclusive():
                    wait, outcome = self._collect(until)
                    if wait is None:
                        output, told = made(outcome)
                        failure, go_on = self._failure(outcome, told)
                        applied = self._applied if outcome is None else outcome.consumed
                        aside = self._aside if outcome is None else 0
                        # The caller's from here on: by the return, or by the exception. No call
                        # in between.
                        given, self._taken, self._committed.pending.held = told, [], None
                        self._firings, self._applied, self._aside = {}, applied, aside
                        self._owed, self._lifetime.unsettled = failure, go_on
                        self._lifetime.settle()
                        self._committed.pending.forget()
                        # Nor from here on.
                        self._owed = None
                        if failure is not None:
                            raise failure
                        return output
                # Without the lock, as somebody else may bring what we wait for.
                self._lifetime.inside(wait)
        except BaseException as error:
            # Here, as a signal handler may raise when all is done and the engine is given back.
            if given is not None:
                error.specstream_partial = given  # type: ignore[attr-defined]
            raise

    def _as_given(self, outcome: Any) -> tuple[Any, Partial]:
        output, told = self._as_table(outcome)
        given = self._parts.operator.rows(output)
        return given, Partial(given, told.consumed)

    def _as_table(self, outcome: Any) -> tuple[pa.Table, Partial]:
        output = self._polled()
        return output, Partial(output, self._consumed(outcome))

    def _as_tuples(self, outcome: Any) -> tuple[list[tuple[Any, ...]], Partial]:
        failed = self._has_to_tell or (outcome is not None and outcome.failed)
        consumed = self._consumed(outcome)
        if failed or self._parts.options.keys or self._committed.pending.held is not None:
            output, told = self._as_table(outcome)
            columns = [output[name].to_pylist() for name in self._emits.names]
            return list(zip(*columns, strict=True)), told
        words, strings = self._taken_rows(), self._committed.strings
        late = LatePartial(
            lambda: Partial(rows_to_table(words, self._emits, strings, None), consumed)
        )
        return row_tuples(self._emits, words, strings), late

    def poll_early(self, timeout: float | None, changes: Changes) -> EarlyAnswer:
        """See :meth:`specstream.Engine.poll_early`."""
        if not self._parts.options.early:
            raise ConfigurationError(
                f"poll_early: the engine of {self._parts.name!r} was made without early results; "
                "expected Engine(..., early=True)"
            )
        one_of("changes", changes, ("upsert", "retract"))
        self._early.tells = True
        until = _deadline(timeout, "all events to be applied")
        given: EarlyAnswer | None = None
        try:
            while True:
                with self._lifetime.exclusive():
                    if self._committed.pending.unsent:
                        self._send()
                    wait, answer = self._collect_early(until, changes)
                    if answer is not None:
                        given = answer
                        return answer
                self._lifetime.inside(wait)
        except BaseException as error:
            if given is not None:
                error.specstream_partial = given  # type: ignore[attr-defined]
            raise

    @property
    def incarnation(self) -> int:
        """See :attr:`Durable.incarnation`."""
        return self._early.incarnation

    def begin_early(self, incarnation: int) -> None:
        """See :meth:`Durable.begin_early`."""
        with self._lifetime.exclusive():
            self.end_job()
            self._early.begin_at(incarnation)

    def _collect_early(
        self, until: float | None, changes: Changes
    ) -> tuple[Callable[[], object], EarlyAnswer | None]:
        """What to wait for, or what has changed."""
        rest = math.inf if until is None else until - time.monotonic()
        if not self._flight.is_open:
            answer = self._early.answer(changes, self._committed.strings)
            self._early.finish()
            return _nothing, answer

        def tell() -> EarlyAnswer | None:
            told = self._gather()
            if told.no_memory:
                raise MemoryError(f"engine of {self._parts.name!r}: no memory for early results")
            if not told.is_settled and rest > 0:
                return None
            if not told.is_whole:  # taken back, and not yet done again
                self._early.leave()
                return self._early.nothing(changes, self._committed.strings)
            answer = self._early.answer(changes, self._committed.strings)
            self._early.finish()
            self._native.told_early(True)
            return answer

        told = self._parts.turn.taken(tell)
        return partial(self._native.await_early, min(max(rest, 0.0), WAIT_SECONDS)), told

    def go_back(self) -> None:
        """The state is another one: early results forget what is not final in it."""
        pending = self._committed.pending
        waiting = {
            (segment.source.name, segment.first_sequence + at)
            for segment in pending.segments
            if not segment.is_released
            for at in range(segment.count - segment.not_applied, segment.count)
        }

        def is_final(source: Name | None, sequence: int) -> bool:
            if source is None:
                return sequence < self._fired
            known = pending.sources.known(source)
            has_come = known is not None and sequence < known.next_sequence
            return has_come and (source, sequence) not in waiting

        if self._parts.options.early:
            self._early.go_back(is_final)

    @property
    def _fired(self) -> int:
        """How many timers have fired, as the state says."""
        if self._timers is None:
            return 0
        return int(self._committed.words[self._timers.offset + lib.SS_HEADER_FIRED])

    def _gather(self) -> Any:
        """With the turn: takes what early results have to tell."""
        pending = self._committed.pending
        return self._early.gather(pending.sources, pending.type or pa.int64())

    def late(self) -> pa.Table | None:
        """See :meth:`specstream.Engine.late`."""
        with self._lifetime.exclusive():
            return self._committed.pending.take_late()

    @property
    def _given(self) -> PendingEvents | TimePhases:
        """What the runtime has the rows of: events, or phases of them."""
        pending = self._committed.pending
        return pending.phases or pending

    def _send(self) -> None:
        """Has a job that has all events and the frontier as it is. May be begun anew."""
        if self._timers is not None and self._is_over():
            return
        if self._lasting:
            self._settle_times()
        if not self._flight.is_open:
            self._start_job()
        # Before what is sent: a source that has joined may have moved it back. Else after it: what
        # lies below it commits at once, though earlier ones were to follow.
        if len(self._committed.pending.sources) != self._joined:
            if self._reached() < self._frontier:
                self._move_frontier()
            self._joined = len(self._committed.pending.sources)
        unsent, phases = self._committed.pending.unsent, self._committed.pending.phases
        while unsent:
            segment = unsent[-1]
            source, until = segment.source, segment.until
            if phases is None:
                self._give(segment)
            else:
                phases.take(segment)
            if segment.is_ordered and (source.frontier is None or source.frontier < until):
                source.frontier = until
            unsent.pop()
        if phases is not None:
            reached = self._reached()
            below = reached[0] if reached != (END, END) else END + 1
            while (made := phases.following(below)) is not None:
                self._give(made)
        self._move_frontier()

    def _give(self, segment: Segment) -> None:
        """Gives the runtime a segment, if it has not got it. May be begun anew."""
        rank = segment.source.rank
        if not segment.native.submitted and not segment.native.is_withdrawn:
            old = segment.replaces
            if old is not None and old.native.submitted:
                segment.native.replaces = old.native
            elif old is not None:
                self._withdraw(old)
            elif not segment.native.is_tentative:
                self._check((segment.since, rank), self._frontier, "an event")
            self._native.submit(segment.native)
        self._highest = max(self._highest, (segment.until, rank))

    def _is_over(self) -> bool:
        """Whether the input has ended and nothing is left to do. A job that would begin now would
        end it once more."""
        pending = self._committed.pending
        if self._reached() != (END, END):
            pending.has_ended = False  # or a source has joined since
        waits = pending.unsent or pending.pending or pending.due
        return pending.has_ended and not waits and not self._flight.is_open

    def _settle_times(self) -> None:
        """Before the runtime is given the first event."""
        committed = self._committed
        of = committed.pending.type
        if of is None or committed.knows_times:
            return

        def settle() -> None:
            committed.settle_times(of)

        if self._flight.is_open:
            self._parts.turn.taken(settle)
        else:
            settle()

    def _start_job(self) -> None:
        if not self._parts.options.is_ordered:
            raise ConfigurationError(
                'events can be submitted to an engine with execution="ordered" only'
            )
        predictor, longest = self._parts.predictor, self._parts.longest
        horizon, chunk = open_of(predictor, longest)
        early = self._parts.options.early
        if early and self._parts.options.chunk == "auto":
            chunk = 1  # the unit of what is published again or has to run again
        if early or horizon > 0:
            self._parts.code.compile_ahead(self._native)
        before = self._native.outcome().job
        self._lifetime.unsettled = lambda: self._note_job(before)
        early_bytes = self._parts.options.limits.early if early else 0
        self._native.start(
            chunk=chunk,
            horizon=horizon,
            longest_horizon=longest_of(predictor, longest),
            mode=lib.SS_MODE_OPEN,
            early_bytes=early_bytes,
        )
        self._lifetime.settle()
        if self._early.tells:
            self._parts.turn.taken(self._native.tell_early)  # it has to keep what it tells of
        pending = self._committed.pending
        if pending.due and pending.ending:
            self._native.go_on_ending(self._committed.end_stamp)

    def _note_job(self, before: int) -> None:
        """Takes the open job for begun, if a job was begun since that one."""
        if not self._flight.is_open and self._native.outcome().job != before:
            self._applied = 0
            self._flight.locate = None
            self._frontier = self._highest = NO_FRONTIER
            self._joined = 0
            self._early.count.begun()
            self._flight.is_open = True

    def end_job(self) -> None:
        """Ends the open job, if there is one; what it has emitted is kept for the next poll.

        Events that are not applied are forgotten by the runtime. May be begun anew.
        """
        if self._flight.is_open:
            self._native.end_job()
            self._early.count.ended()
            # Its event is still pending: it will be asked again.
            self._parts.hooks.refusal = None
            self._parts.turn.taken(self.hold_rows)
            self._committed.pending.forget()
            self._early.begin_anew()
            self._flight.is_open = False

    def advance_all(self, reached: Mapping[Name, int | None]) -> None:
        """Moves frontiers, given as they are kept: order keys of the order column's values.

        None: the source has ended.
        """
        with self._lifetime.exclusive():
            self._committed.pending.sources.advance(reached)
            self._send()

    def _reached(self) -> tuple[int, int]:
        """What may commit ends there; of whole timestamps no source's comes before another's."""
        pending = self._committed.pending
        reached = pending.sources.frontier() or NO_FRONTIER
        if pending.phases is not None and reached != (END, END):
            return reached[0], NO_FRONTIER[1]
        return reached

    def _move_frontier(self) -> None:
        frontier = self._reached()
        if frontier != self._frontier:
            self._check(frontier, min(self._frontier, self._highest), "the frontier")
            if self._timers is not None:
                self._move_before_the_end(frontier)
            self._native.advance(frontier)
            self._frontier = frontier
            self._committed.pending.has_ended = self._timers is not None and frontier == (END, END)

    def _move_before_the_end(self, frontier: tuple[int, int]) -> None:
        """What timers do at the end depends on how far the frontier came before it."""
        pending = self._committed.pending
        sources = pending.sources
        if frontier[0] != END:
            sources.reached = max(frontier, sources.reached or frontier)
        elif pending.ending:
            pass  # it has begun before this job, and what is due before it was set since
        elif sources.reached is not None and self._frontier < sources.reached:
            # This job begins at the end, and what was due before is still to fire as such.
            self._native.advance(sources.reached)

    def _check(self, at: tuple[int, int], committed: tuple[int, int], what: str) -> None:
        """What the runtime relies on: nothing comes below what may be committed already.

        Late events were sorted out by their sources' frontiers, so this can only be a bug here; but
        the answer would be wrong without a word.
        """
        if at < committed:
            raise SpecstreamError(
                f"operator {self._parts.name!r}: {what} lies at {at}, and events are committed up "
                f"to (timestamp, source) = {committed}; expected nothing below. This is a bug in "
                "specstream: please report it, and make a new engine from an earlier snapshot"
            )

    def _collect(self, until: float | None) -> tuple[Callable[[], None] | None, Any]:
        """Takes rows emitted since the last poll.

        Returns:
            What to wait for, without the lock, before the next look; None: that was the last. And
            then the C side's outcome; None: no job is open.
        """
        pending = self._committed.pending
        if pending.unsent or (pending.due and not self._flight.is_open):
            self._send()
        if not self._flight.is_open:
            return None, None
        if until is None:
            # All rows of events below the frontier, or of those before one that has failed.
            outcome, settled = self._parts.turn.taken(self._take_settled)
            if self._set_aside(outcome):
                self._pause = DRAIN_SECONDS / 16  # another one may be near
                return partial(self._wait, WAIT_SECONDS), None
            if outcome.failed or settled or self._has_to_tell:
                return None, outcome
            # Rows keep coming; who fetched each of them would keep others from committing.
            pause = self._pause if outcome.row_count else 0.0
            self._pause = min(2 * self._pause, DRAIN_SECONDS)
            return partial(self._wait, WAIT_SECONDS, pause), None
        rest = until - time.monotonic()
        if self._native.await_news(0) or self._has_to_tell or rest <= 0:
            outcome = self._parts.turn.taken(self._take_rows)
            if not self._set_aside(outcome):
                return None, outcome
            outcome, is_over = self._go_on(outcome)
            rest = until - time.monotonic()
            if is_over or rest <= 0 or any(len(rows) for _, rows in self._taken):
                return None, outcome
        return partial(self._wait, min(rest, WAIT_SECONDS)), None

    def _go_on(self, outcome: Any) -> tuple[Any, bool]:
        """An event was set aside that has kept those behind it from committing: takes their rows as
        well, for a while, so that who polls now and then does not fall behind.

        Returns:
            The outcome then, and whether there is nothing more to wait for.
        """
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            self._native.await_news(DRAIN_SECONDS)
            outcome, settled = self._parts.turn.taken(self._take_settled)
            if self._set_aside(outcome):
                continue
            if settled or outcome.failed or self._has_to_tell:
                return outcome, True
        return outcome, False

    def _set_aside(self, outcome: Any) -> bool:
        """Sets the event or the timer aside that has failed, and has the job go on behind it;
        False: none has, or not because its function raises, or it is to be raised, perhaps as one
        too many.
        """
        failed, pending = self._committed.failed, self._committed.pending
        hooks = self._parts.hooks
        if not (outcome.failed and failed.sets_aside) or self._has_to_tell:
            return False
        if hooks.refusal is not None:
            return False
        if outcome.timer_failed:
            times = pending.type or pa.int64()
            kept = failed_timer(self._parts, outcome, times, pending.sources.type)
        elif outcome.failed_row >= 0:
            segment, row = self._given.find(outcome.failed_row)
            kept = failed_event(self._parts, outcome, segment.events, row, segment.first_sequence)
        else:
            return False
        if kept is None:
            return False
        what, error = kept
        try:
            failed.check(what, error)
        except FailedEventsError as too_many:
            self._too_many = too_many  # with what was applied before
            return False
        aside = self._aside + (not outcome.timer_failed)

        def step() -> None:
            failed.keep(what)
            self._parts.code.forget(error)  # before the job goes on
            self._aside = aside
            self._resume(outcome)

        self._lifetime.finish(lambda: self._parts.turn.taken(step))
        outcome.failed = False  # nobody has to hear of it any more
        return True

    @property
    def _has_to_tell(self) -> bool:
        """Whether a poll raises something, whatever becomes of the events."""
        return self._owed is not None or self._parts.hooks.error is not None

    def _resume(self, heard: Any) -> None:
        """With the turn: the job goes on behind what has failed, of which somebody has heard, if
        nothing else has failed since. May be begun anew."""
        now = self._native.outcome()
        same = now.failed and now.failed_row == heard.failed_row
        if same and now.timer_failed and heard.timer_failed:
            same = now.failed_timer.number == heard.failed_timer.number
        if same and now.timer_failed == heard.timer_failed:
            self._native.resume(heard.failed_row)

    def _wait(self, seconds: float, at_least: float = 0.0) -> None:
        if at_least:
            time.sleep(at_least)
        self._native.await_news(seconds)

    def _take_rows(self) -> Any:
        """With the turn: takes the emitted rows of the open job; its outcome."""
        outcome = self._native.outcome()
        if self._has_heard(outcome):
            self._native.resume(outcome.failed_row)
            outcome.failed = False
        if self._early.tells:
            # Now, as it is still known which events their rows are of.
            self._gather()
            self._early.leave()
        rows = self._native.rows(outcome, self._emits.row_words).copy()
        self._firings.update(self._native.firings(outcome))
        edition = int(outcome.edition)
        if self._taken and self._taken[-1][0] == edition:
            # Who took them was interrupted before they were cleared; there may be more by now.
            self._taken[-1] = edition, rows
        else:
            self._taken.append((edition, rows))
        self._native.clear_rows()
        pending = self._committed.pending
        # The job knows by now. Whoever keeps the engine asks it.
        pending.due, pending.ending = False, 0
        pending.settle()
        return outcome

    def _take_settled(self) -> tuple[Any, bool]:
        return self._take_rows(), self._native.is_settled()

    def _taken_rows(self) -> npt.NDArray[np.int64]:
        if len(self._taken) == 1:
            return self._taken[0][1]
        nothing = np.empty((0, self._emits.row_words), np.int64)
        return np.concatenate([nothing, *(rows for _, rows in self._taken)])

    def _are_due(self, outcome: Any, settled: bool) -> bool:
        """Whether timers are to fire at the frontier, or one has failed and nobody has heard."""
        return self._timers is not None and bool(outcome.timer_failed or not settled)

    def check_nothing_due(self, what: str) -> None:
        """Refuses a batch while timers are due at the frontier, as while events wait.

        Raises:
            InputError: some are.
        """
        due = self._committed.pending.due
        if self._flight.is_open:
            due = self._parts.turn.taken(
                lambda: self._are_due(self._native.outcome(), self._native.is_settled())
            )
        if due:
            raise InputError(
                f"{what}: timers are due at the frontier and have not fired, or nobody has heard "
                "that one has failed: poll() first"
            )

    def abandon(self) -> None:
        """Ends the open job, if there is one, with the engine."""
        if self._flight.is_open:
            self._native.end_job()
            self._early.count.ended()
            self._flight.is_open = False

    def hold_rows(self) -> Any:
        """With the turn: keeps what nobody has polled for the next poll.

        Returns:
            The job's outcome, which tells of the timer that has failed and that nobody has heard
            of, if there is one.
        """
        outcome, settled = self._take_settled()
        unheard = outcome.failed_timer if outcome.timer_failed else None
        if unheard is not None and unheard.stamp == 0:
            unheard = None  # it is still set
        # The next poll of who goes on from here begins a job for them.
        pending = self._committed.pending
        pending.due, pending.ending = self._are_due(outcome, settled), 0
        if pending.due and outcome.ending:
            self._committed.note_end(outcome.ending, unheard)
            pending.due = bool(pending.ending)
        output = self._polled()
        # None, if there are no rows: they would only make snapshots of one state differ.
        held = output if output.num_rows else None
        pending.held, self._taken, self._firings = held, [], {}
        return outcome

    def _polled(self) -> pa.Table:
        """All that is there for a poll."""
        rows = self._taken_rows()
        keys = None
        if self._parts.options.keys:
            firings = list(self._firings.items())
            keys = keys_with_firings(rows[:, 0], self._given.keys, firings)
        output = rows_to_table(rows, self._emits, self._committed.strings, keys)
        return self._committed.pending.with_held(output)

    def _consumed(self, outcome: Any) -> int:
        """Events that were applied and that no poll has told of."""
        return 0 if outcome is None else int(outcome.consumed - self._applied) + self._aside

    def _failure(
        self, outcome: Any, told: Partial
    ) -> tuple[BaseException | None, Callable[[], object] | None]:
        """One thing that keeps the events from going on, to be raised; and the step that has them
        go on, when that is certain. After the last they go on."""
        if self._owed is not None:
            return self._owed, None  # they do already
        failure = self._parts.hooks.error
        is_failed = outcome is not None and outcome.failed
        if failure is not None:
            # Whatever else has failed is for the next call.
            return failure, lambda: self._go_on_behind(failure, outcome, by_hook=True)
        if not is_failed:
            return None, None
        failure = self._too_many or self._parts.hooks.refusal
        if failure is None and outcome.timer_failed:
            failure = timer_failure(self._parts, outcome, told)
        elif failure is None and outcome.failed_row >= 0:
            segment, row = self._given.find(outcome.failed_row)
            first = segment.first_sequence
            failure = failure_of(self._parts, outcome, segment.events, row, first, told)
        elif failure is None:
            failure = MemoryError(f"engine of {self._parts.name!r}: no memory for more events")
        return failure, lambda: self._go_on_behind(failure, outcome)

    def _go_on_behind(self, failure: BaseException, outcome: Any, *, by_hook: bool = False) -> None:
        """Somebody hears of what has failed. May be begun anew."""
        self._parts.hooks.forget(failure)
        if self._too_many is failure:
            self._too_many = None
        self._parts.code.forget(failure)
        if outcome is None or not outcome.failed:
            return
        if not by_hook or self._has_heard(outcome):
            self._parts.turn.taken(lambda: self._resume(outcome))

    def _has_heard(self, outcome: Any) -> bool:
        """Whether the job waits for nothing but that somebody hears of hooks that have raised.

        A hook's thread may halt the job only when its error is taken already.
        """
        by_hook = outcome.failed and outcome.failed_row == lib.SS_NO_ROW_FOR_HOOK
        return bool(by_hook and self._parts.hooks.error is None)


def _nothing() -> None:
    """What there is to wait for where no job is open."""


def _deadline(timeout: float | None, whole: str = "all events below the frontier") -> float | None:
    """Until when a poll waits; None: for the whole of it."""
    if timeout is None:
        return None
    seconds = f"seconds, 0 or more, or None to wait for {whole}"
    return time.monotonic() + number("timeout", timeout, 0, math.inf, seconds)
