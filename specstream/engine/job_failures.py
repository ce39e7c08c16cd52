"""What fails while the open job runs: events and timers that are set aside or raised by a poll.

The job waits at what has failed until somebody has heard of it, and then goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from specstream.engine.emitted_rows import EmittedRows
from specstream.engine.operator_errors import (
    failed_event,
    failed_timer,
    failure_of,
    timer_failure,
)
from specstream.engine.parts import Parts
from specstream.errors import FailedEventsError, Partial

if TYPE_CHECKING:
    from specstream._native import ss_outcome

__all__ = ["JobFailures"]


class JobFailures:
    """Those of one engine.

    Args:
        parts: of the engine.
        rows: counts the events that are set aside.

    Attributes:
        owed: what a poll was to raise that was interrupted before: the next one raises it.
    """

    def __init__(self, parts: Parts, rows: EmittedRows) -> None:
        self._parts = parts
        self._native = parts.native
        self._committed = parts.committed
        self._rows = rows
        self._too_many: FailedEventsError | None = None
        self.owed: BaseException | None = None

    @property
    def are_owed(self) -> bool:
        """Whether a poll raises something, whatever becomes of the events."""
        return self.owed is not None or self._parts.hooks.error is not None

    def set_aside(self, outcome: ss_outcome) -> bool:
        """Sets the event or the timer aside that has failed, and has the job go on behind it;
        False: none has, or not because its function raises, or it is to be raised, perhaps as one
        too many.
        """
        failed, pending = self._committed.failed, self._committed.pending
        hooks = self._parts.hooks
        if not (outcome.failed and failed.sets_aside) or self.are_owed:
            return False
        if hooks.refusal is not None:
            return False
        if outcome.timer_failed:
            times = pending.times.type or pa.int64()
            kept = failed_timer(self._parts, outcome, times, pending.sources.type)
        elif outcome.failed_row >= 0:
            segment, row = pending.segments.scheduled.find(outcome.failed_row)
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
        aside = self._rows.set_aside + (not outcome.timer_failed)

        def step() -> None:
            failed.keep(what)
            self._parts.code.forget(error)  # before the job goes on
            self._rows.set_aside = aside
            self._resume(outcome)

        self._parts.lifetime.finish(lambda: self._parts.turn.taken(step))
        outcome.failed = False  # nobody has to hear of it any more
        return True

    def next_failure(
        self, outcome: ss_outcome, partial: Partial
    ) -> tuple[BaseException | None, Callable[[], object] | None]:
        """One thing that keeps the events from going on, to be raised; and the step that has them
        go on, when that is certain. After the last they go on."""
        if self.owed is not None:
            return self.owed, None  # they do already
        failure = self._parts.hooks.error
        is_failed = outcome is not None and outcome.failed
        if failure is not None:
            # Whatever else has failed is for the next call.
            return failure, lambda: self._go_on_behind(failure, outcome, by_hook=True)
        if not is_failed:
            return None, None
        failure = self._too_many or self._parts.hooks.refusal
        if failure is None and outcome.timer_failed:
            failure = timer_failure(self._parts, outcome, partial)
        elif failure is None and outcome.failed_row >= 0:
            scheduled = self._committed.pending.segments.scheduled
            segment, row = scheduled.find(outcome.failed_row)
            first = segment.first_sequence
            failure = failure_of(self._parts, outcome, segment.events, row, first, partial)
        elif failure is None:
            failure = MemoryError(f"engine of {self._parts.name!r}: no memory for more events")
        return failure, lambda: self._go_on_behind(failure, outcome)

    def _go_on_behind(
        self, failure: BaseException, outcome: ss_outcome, *, by_hook: bool = False
    ) -> None:
        """Somebody hears of what has failed. May be begun anew."""
        self._parts.hooks.forget(failure)
        if self._too_many is failure:
            self._too_many = None
        self._parts.code.forget(failure)
        if outcome is None or not outcome.failed:
            return
        if not by_hook or self._parts.hooks.may_go_on(outcome):
            self._parts.turn.taken(lambda: self._resume(outcome))

    def _resume(self, heard: Any) -> None:
        """With the turn: the job goes on behind what has failed, of which somebody has heard, if
        nothing else has failed since. May be begun anew."""
        now = self._native.outcome()
        same = now.failed and now.failed_row == heard.failed_row
        if same and now.timer_failed and heard.timer_failed:
            same = now.failed_timer.number == heard.failed_timer.number
        if same and now.timer_failed == heard.timer_failed:
            self._native.resume(heard.failed_row)
