"""Rows that the open job has emitted and nobody has fetched.

They are taken from the runtime with the turn and kept here until a poll hands them out. What early
results have to report is gathered at the same time, while it is known which events their rows are
of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.events import keys_with_firings, rows_to_table
from specstream.engine.early_results import EarlyResults
from specstream.engine.parts import Parts

if TYPE_CHECKING:
    from specstream._native import ss_outcome

__all__ = ["EmittedRows"]


class EmittedRows:
    """Those of one engine.

    Args:
        parts: of the engine.
        early: its early results.

    Attributes:
        taken: rows that nobody has, by the runtime's edition.
        firings: times of the timers that have emitted some of them, by number.
        applied: events of the open job that a poll has reported.
        set_aside: events that were set aside since a poll has reported some.
    """

    def __init__(self, parts: Parts, early: EarlyResults) -> None:
        self._parts = parts
        self._native = parts.native
        self._committed = parts.committed
        self._emits = parts.operator.emits
        self._early = early
        self.taken: list[tuple[int, npt.NDArray[np.int64]]] = []
        self.firings: dict[int, int] = {}
        self.applied = 0
        self.set_aside = 0

    def take(self) -> Any:
        """With the turn: takes the emitted rows of the open job; its outcome."""
        outcome = self._native.outcome()
        if self._parts.hooks.may_go_on(outcome):
            self._native.resume(outcome.failed_row)
            outcome.failed = False
        if self._early.tells:
            # Now, as it is still known which events their rows are of.
            self.gather_early()
            self._early.leave()
        rows = self._native.rows(outcome, self._emits.row_words).copy()
        self.firings.update(self._native.firings(outcome))
        edition = int(outcome.edition)
        if self.taken and self.taken[-1][0] == edition:
            # Who took them was interrupted before they were cleared; there may be more by now.
            self.taken[-1] = edition, rows
        else:
            self.taken.append((edition, rows))
        self._native.clear_rows()
        pending = self._committed.pending
        # The job knows by now. Whoever keeps the engine asks it.
        pending.due, pending.ending = False, 0
        pending.segments.settle()
        return outcome

    def take_settled(self) -> tuple[Any, bool]:
        """The same, and whether all events below the frontier have committed."""
        return self.take(), self._native.is_settled()

    def gather_early(self) -> Any:
        """With the turn: takes what early results have to report; ``struct ss_early_told``."""
        times, _ = self._committed.event_types
        return self._early.gather(self._committed.pending.sources, times)

    @property
    def array(self) -> npt.NDArray[np.int64]:
        """Those that were taken, as words."""
        if len(self.taken) == 1:
            return self.taken[0][1]
        nothing = np.empty((0, self._emits.row_words), np.int64)
        return np.concatenate([nothing, *(rows for _, rows in self.taken)])

    def table(self) -> pa.Table:
        """All that is there for a poll."""
        rows = self.array
        pending = self._committed.pending
        keys = None
        if self._parts.options.keys:
            firings = list(self.firings.items())
            keys = keys_with_firings(rows[:, 0], pending.segments.scheduled.keys, firings)
        output = rows_to_table(rows, self._emits, self._committed.strings, keys)
        return pending.with_held(output)

    def consumed(self, outcome: ss_outcome) -> int:
        """Events that were applied and that no poll has reported."""
        return 0 if outcome is None else int(outcome.consumed - self.applied) + self.set_aside

    def words(self) -> Iterator[npt.NDArray[np.int64]]:
        """Words of rows that nobody has, early ones included; codes of strings among them."""
        yield from (rows for _, rows in self.taken)
        yield from self._early.words()
