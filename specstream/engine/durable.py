"""What a checkpoint records of an engine, and the few things that it does with one.

Whoever makes an engine durable (``checkpoint/``, ``spark/``) uses :attr:`Engine.durable`, and no
private name of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from specstream.columns.failed_events import FailedEvents
from specstream.columns.rejected_rows import RejectedRows
from specstream.columns.strings import StringTable
from specstream.declarations.state_content import StateContent
from specstream.engine.committed_state import Savepoint
from specstream.engine.early_results import EarlyResults
from specstream.engine.emitted_rows import EmittedRows
from specstream.engine.open_job import OpenJob
from specstream.engine.parts import Parts
from specstream.engine.pending_events import PendingEvents
from specstream.engine.snapshot import Migrate, Snapshot
from specstream.engine.sources import Late, Name
from specstream.engine.string_sweep import StringSweep
from specstream.files.untrusted import Buffer

if TYPE_CHECKING:
    from specstream._native import ss_outcome

__all__ = ["Durable"]


class Durable:
    """What is committed, as it stands. Nothing of it is a copy: look inside :meth:`exclusive`.

    Attributes, all to be read only:
        words: the state, int64.
        strings: the string table.
        next_sequence: number of the next event.
        reached: order time of the last event applied; None: there is none.
        pending: submitted events that are not committed, and their sources.
        rejected: rows that could not be events and that nobody has fetched, and the policy.
        failed: failed events likewise.
        keys: whether the output has the columns of the order key.
        late: what happens to late events.
        sources: names of the declared sources.
        early: whether there are early results.
        incarnation: of their versions; it rises whenever what is applied is told anew.
    """

    def __init__(
        self,
        parts: Parts,
        job: OpenJob,
        rows: EmittedRows,
        early: EarlyResults,
        sweep: StringSweep,
    ) -> None:
        self._parts = parts
        self._job = job
        self._rows = rows
        self._early = early
        self._sweep = sweep

    @property
    def words(self) -> npt.NDArray[np.int64]:
        return self._parts.committed.words

    @property
    def strings(self) -> StringTable:
        return self._parts.committed.strings

    @property
    def next_sequence(self) -> int:
        return self._parts.committed.next_sequence

    @property
    def reached(self) -> Any:
        return self._parts.committed.reached

    @property
    def pending(self) -> PendingEvents:
        return self._parts.committed.pending

    @property
    def rejected(self) -> RejectedRows:
        return self._parts.committed.rejected

    @property
    def failed(self) -> FailedEvents:
        return self._parts.committed.failed

    @property
    def keys(self) -> bool:
        return self._parts.options.keys

    @property
    def late(self) -> Late:
        return self._parts.committed.late

    @property
    def sources(self) -> tuple[Name, ...]:
        return self._parts.committed.sources

    @property
    def early(self) -> bool:
        return self._parts.options.early

    @property
    def incarnation(self) -> int:
        return self._early.incarnation

    def begin_early(self, incarnation: int) -> None:
        """All that was told early and is not final is void; versions are of this incarnation, or of
        the present one, which is later. The next answer says so, and tells what is applied."""
        with self.exclusive():
            self._job.end()
            self._early.begin_at(incarnation)

    def exclusive(self) -> AbstractContextManager[object]:
        """Inside, nobody else calls the engine; it is not closed."""
        return self._parts.lifetime.exclusive()

    def snapshot_of(self, state: StateContent) -> list[Buffer]:
        """The engine as a snapshot, inside :meth:`exclusive`, to be written in parts, which share
        the memory of its state as the caller has it."""
        return self._parts.turn.taken(lambda: self.content(state)).to_parts()

    def content(self, state: StateContent | None = None) -> Snapshot:
        """What a snapshot holds, while nobody commits; with a copy of the state, or ``state``."""
        flight = self._parts.flight
        with flight.between:
            done, unheard = 0, self._hold_rows()
            if flight.counted is None and self._parts.lifetime.is_exclusive():
                self._sweep.sweep()
            if flight.counted is not None:
                done, counted = flight.counted
                outcome = self._parts.native.outcome()
                unheard = flight.unheard
                if outcome.job != counted:
                    unheard = outcome
                    done += outcome.consumed
                if flight.batch is not None:  # of phases there are fewer than events
                    done = flight.batch[0].events_before(done)
            # A checkpoint keeps what was told by itself.
            early, untold = 0, None
            if state is None and self._early.tells:
                early, untold = self._early.incarnation, self._early.untold()
            return self._parts.committed.content(done, state, _failed_timer(unheard), early, untold)

    def savepoint(self) -> Savepoint:
        """The engine as it is, kept in memory."""
        with self.exclusive():
            return self._parts.turn.taken(self._savepoint)

    def _savepoint(self) -> Savepoint:
        unheard = self._hold_rows()  # which keeps what is looked at
        return self._parts.committed.savepoint(_failed_timer(unheard))

    def _hold_rows(self) -> Any:
        """What is committed and was not polled would be lost with this engine; and so would a timer
        that has failed, of which the outcome that it returns tells."""
        if self._parts.flight.is_open and not self._parts.lifetime.is_inherited():
            return self._job.hold_rows()
        return None

    def rollback(self, to: Savepoint) -> None:
        """Back to a savepoint."""
        committed = self._parts.committed
        with self.exclusive():
            strings = committed.strings_of(to)
            self._go_on_from(lambda: committed.rollback(to, strings))

    def restore(self, snapshot: bytes, migrate: Migrate | None) -> None:
        """Goes on from a snapshot. See :meth:`specstream.Engine.restore`."""
        committed = self._parts.committed
        with self.exclusive():
            restored = committed.restored(snapshot, migrate)

            def take_over() -> None:
                committed.take_over(restored)
                if self.early:
                    self._early.follow(*committed.told_early, committed.event_types)

            self._go_on_from(take_over)

    def _go_on_from(self, take_over: Callable[[], None]) -> None:
        """Goes on from another state, which a step that may be begun anew puts into place."""
        strings = self._parts.committed.strings

        def changed() -> None:
            native = self._parts.native
            native.change(True)
            take_over()
            native.state_changed()
            native.change(False)

        def step() -> None:
            # With what follows: the runtime forgets events that are pending until then.
            self._job.end()
            # Who has seen a batch in flight may still be looking.
            self._parts.turn.taken(changed)
            if self.early:
                self._early.go_back(self._parts.committed.finality())
            # What is final and was not told stays, and its strings may be nowhere else.
            now = self._parts.committed.strings
            if now is not strings:
                now.add_all(strings.referred(self._rows.words()))

        self._parts.lifetime.finish(step)

    def expect(self, sources: Iterable[Name], late: Late | None = None) -> None:
        """Declares more sources, and what happens to late events; None: that stays."""
        with self.exclusive():
            self._parts.committed.expect(sources, late)

    def advance(self, reached: Mapping[Name, int | None]) -> None:
        """Moves frontiers, given as they are kept: order keys of the order column's values.

        None: the source has ended.
        """
        with self.exclusive():
            self._parts.committed.pending.sources.advance(reached)
            self._job.send()


def _failed_timer(outcome: ss_outcome) -> Any:
    """The timer that a job has ended or waits for, as it failed and nobody has heard of it; None:
    there is none, or it is still set. A part of the outcome, which the caller keeps."""
    if outcome is None or not outcome.timer_failed or not outcome.failed_timer.stamp:
        return None
    return outcome.failed_timer
