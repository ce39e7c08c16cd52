"""The open job: the runtime's job that takes submitted events while it runs.

It begins when there is something to send, is given all events and the frontier as they are, and
ends before a batch runs or another state is put into place (the runtime's side: ``open_job.c``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specstream._native import lib
from specstream.engine.early_results import EarlyResults
from specstream.engine.emitted_rows import EmittedRows
from specstream.engine.parts import Parts
from specstream.engine.segments import Segment
from specstream.engine.sources import END
from specstream.errors import ConfigurationError, InputError, SpecstreamError
from specstream.predictors.checked import longest_of, open_of

if TYPE_CHECKING:
    from specstream._native import ss_outcome

__all__ = ["OpenJob"]

# Nothing is below it: there is no earlier key.
NO_FRONTIER = (-(2**63), -(2**63))


class OpenJob:
    """That of one engine, whether it runs or not.

    Args:
        parts: of the engine.
        rows: takes what the job has emitted.
        early: early results of the job.
    """

    def __init__(self, parts: Parts, rows: EmittedRows, early: EarlyResults) -> None:
        self._parts = parts
        self._native = parts.native
        self._flight = parts.flight
        self._committed = parts.committed
        self._timers = parts.operator.layout.timers
        self._lasting = parts.operator.layout.lasting
        self._rows = rows
        self._early = early
        self._frontier = NO_FRONTIER  # that the job has
        self._highest = NO_FRONTIER  # key of the last event that it was given
        self._joined = 0  # sources that the frontier was looked at for

    def send(self) -> None:
        """Has a job that has all events and the frontier as it is. May be begun anew."""
        if self._timers is not None and self._is_over():
            return
        if self._lasting:
            self._settle_times()
        if not self._flight.is_open:
            self._start()
        # Before what is sent: a source that has joined may have moved it back. Else after it: what
        # lies below it commits at once, though earlier ones were to follow.
        pending = self._committed.pending
        if len(pending.sources) != self._joined:
            if self._reached() < self._frontier:
                self._move_frontier()
            self._joined = len(pending.sources)
        unsent, phases = pending.unsent, pending.segments.phases
        while unsent:
            segment = unsent[-1]
            source, until = segment.source, segment.until
            if phases is None:
                self._submit(segment)
            else:
                phases.take(segment)
            if segment.is_ordered and (source.frontier is None or source.frontier < until):
                source.frontier = until
            unsent.pop()
        if phases is not None:
            reached = self._reached()
            below = reached[0] if reached != (END, END) else END + 1
            while (made := phases.following(below)) is not None:
                self._submit(made)
        self._move_frontier()

    def _submit(self, segment: Segment) -> None:
        """Gives the runtime a segment, if it has not got it. May be begun anew."""
        rank = segment.source.rank
        if not segment.native.submitted and not segment.native.is_withdrawn:
            old = segment.replaces
            if old is not None and old.native.submitted:
                segment.native.replaces = old.native
            elif old is not None:
                self.withdraw(old)
            elif not segment.native.is_tentative:
                self._check((segment.since, rank), self._frontier, "an event")
            self._native.submit(segment.native)
        self._highest = max(self._highest, (segment.until, rank))

    def confirm(self, segment: Segment) -> None:
        """A tentative event is final when its turn has come."""
        if segment.native.submitted and self._flight.is_open:
            self._native.confirm(segment.native)
        else:
            segment.native.is_tentative = False

    def withdraw(self, segment: Segment) -> None:
        """It never came. May be begun anew."""
        if segment.native.submitted and self._flight.is_open:
            self._native.withdraw(segment.native)
        else:
            segment.native.is_withdrawn, segment.native.left = True, 0

    def _is_over(self) -> bool:
        """Whether the input has ended and nothing is left to do. A job that would begin now would
        end it once more."""
        pending = self._committed.pending
        if self._reached() != (END, END):
            pending.has_ended = False  # or a source has joined since
        waits = pending.unsent or pending.segments.left or pending.due
        return pending.has_ended and not waits and not self._flight.is_open

    def _settle_times(self) -> None:
        """Before the runtime is given the first event."""
        committed = self._committed
        time_type = committed.pending.times.type
        if time_type is None or committed.knows_times:
            return

        def settle() -> None:
            committed.settle_times(time_type)

        if self._flight.is_open:
            self._parts.turn.taken(settle)
        else:
            settle()

    def _reached(self) -> tuple[int, int]:
        """What may commit ends there; of whole timestamps no source's comes before another's."""
        pending = self._committed.pending
        reached = pending.sources.frontier() or NO_FRONTIER
        if pending.segments.phases is not None and reached != (END, END):
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

    def _start(self) -> None:
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
        self._parts.lifetime.unsettled = lambda: self._note_start(before)
        early_bytes = self._parts.options.limits.early if early else 0
        self._native.start(
            chunk=chunk,
            horizon=horizon,
            longest_horizon=longest_of(predictor, longest),
            mode=lib.SS_MODE_OPEN,
            early_bytes=early_bytes,
        )
        self._parts.lifetime.settle()
        if self._early.tells:
            self._parts.turn.taken(self._native.tell_early)  # it has to keep what it tells of
        pending = self._committed.pending
        if pending.due and pending.ending:
            self._native.go_on_ending(self._committed.end_stamp)

    def _note_start(self, before: int) -> None:
        """Takes the open job for begun, if a job was begun since that one."""
        if not self._flight.is_open and self._native.outcome().job != before:
            self._rows.applied = 0
            self._flight.locate = None
            self._frontier = self._highest = NO_FRONTIER
            self._joined = 0
            self._early.count.begun()
            self._flight.is_open = True

    def end(self) -> None:
        """Ends the open job, if there is one; what it has emitted is kept for the next poll.

        Events that are not applied are forgotten by the runtime. May be begun anew.
        """
        if self._flight.is_open:
            self._native.end_job()
            self._early.count.ended()
            # Its event is still pending: it will be asked again.
            self._parts.hooks.refusal = None
            self._parts.turn.taken(self.hold_rows)
            self._committed.pending.segments.forget()
            self._early.begin_anew()
            self._flight.is_open = False

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
        outcome, settled = self._rows.take_settled()
        unheard = outcome.failed_timer if outcome.timer_failed else None
        if unheard is not None and unheard.stamp == 0:
            unheard = None  # it is still set
        # The next poll of who goes on from here begins a job for them.
        pending = self._committed.pending
        pending.due, pending.ending = self._are_due(outcome, settled), 0
        if pending.due and outcome.ending:
            self._committed.note_end(outcome.ending, unheard)
            pending.due = bool(pending.ending)
        output = self._rows.table()
        # None, if there are no rows: they would only make snapshots of one state differ.
        held = output if output.num_rows else None
        pending.held, self._rows.taken, self._rows.firings = held, [], {}
        return outcome

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

    def _are_due(self, outcome: ss_outcome, settled: bool) -> bool:
        """Whether timers are to fire at the frontier, or one has failed and nobody has heard."""
        return self._timers is not None and bool(outcome.timer_failed or not settled)
