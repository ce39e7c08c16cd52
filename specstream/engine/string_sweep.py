"""Which strings are still referred to: the string table of an engine, swept like a heap.

Every string that an event brings is entered into the table, and most are asked for once: an order
id that is only counted. So from time to time the table is *swept* (mark and sweep, McCarthy 1960):
whatever may hold the code of a string is looked through, and strings that nobody refers to go. A
code is a hash of its text, so a string that comes again has the same code, and no answer changes.

The *roots* are the words of the state (those of int fields too, which may keep codes), the
constants of the operator, the events that are not committed, their hidden columns and sources, what
the event has been answered that asked last, rows that are committed and not fetched, savepoints,
and with early results what applied transactions have logged. Words that only look like a code keep
a string for nothing, which does no harm.

The logs of other runs are no roots. What a compiled run has in hand comes from the state, from its
event or from a constant; and it commits only if the state still is as it was read, or is so again.
By then its string is there for another reason, or it cannot be so again. But interpreted
runs make strings of their own, and so does what Python answers to compiled ones; so those that were
added since the oldest run in flight began stay.

A sweep is due when the strings that have come since the last one are as many as it has left, and an
eighth of the words of the state: so the work for each string that has come is bounded, a table
holds at most twice what is referred to, and a large state is not looked through for the sake of a
small table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from specstream.columns.strings import StringTable
from specstream.declarations.container_words import used_bytes
from specstream.declarations.state_layout import Layout
from specstream.engine.parts import Parts
from specstream.engine.pending_bytes import pending_words

__all__ = ["StringSweep"]

Words = npt.NDArray[np.int64]

# Fewer new strings than these are no reason.
LEAST = 4096
WORDS_FOR_EACH = 8


class StringSweep:
    """Sweeps the string table of one engine, for whoever has the engine to himself.

    Args:
        parts: of the engine.
        unfetched: gives the words of rows that nobody has fetched.

    Attributes:
        count: sweeps so far.
        dropped: strings that they have dropped.
        seconds: that they have taken.
        longest: the longest of them, in seconds.
    """

    def __init__(self, parts: Parts, unfetched: Callable[[], Iterable[Words]]) -> None:
        self._parts = parts
        self._unfetched = unfetched
        # The transactions that were formed when an epoch of the table began.
        self._formed: list[tuple[int, int]] = [(0, 0)]
        self._table = parts.committed.strings
        self._left = 0  # strings that the last sweep has left
        self._swept_to = 0  # the mark of the table then
        self.count = self.dropped = 0
        self.seconds = self.longest = 0.0

    def sweep_if_due(self) -> None:
        """Drops strings that nothing refers to, if it is time."""
        if self.is_due:
            if self._parts.flight.is_open:
                self._parts.turn.taken(self.sweep)
            else:
                self.sweep()

    @property
    def is_due(self) -> bool:
        """Whether it is time. Between two batches, or while an open job runs."""
        new = self._strings.mark - self._swept_to  # that have come since the last sweep
        if new < LEAST or new < self._left:
            return False
        return new * WORDS_FOR_EACH >= sum(words.size for words in self._state())

    def sweep(self) -> None:
        """Drops them now; with the turn, or while nothing runs."""
        if self._has_failed:
            return  # what is told of it may be made of strings that nothing else refers to
        begin = time.monotonic()
        self._parts.committed.failed.close()  # whose texts are looked up now
        table = self._strings
        self.dropped += table.sweep(self._roots(), self._touched_since)
        self._note_epoch(table.epoch)
        self._left, self._swept_to = len(table), table.mark
        took = time.monotonic() - begin
        self.count += 1
        self.seconds += took
        self.longest = max(self.longest, took)

    @property
    def _has_failed(self) -> bool:
        """Whether something has failed that nobody has heard of."""
        flight = self._parts.flight
        if flight.is_open:
            return bool(self._parts.native.outcome().failed)
        return flight.unheard is not None and bool(flight.unheard.failed)

    @property
    def _strings(self) -> StringTable:
        """The table, which is another one since a snapshot was restored."""
        table = self._parts.committed.strings
        if table is not self._table:
            self._table, self._left, self._swept_to = table, 0, 0
            self._formed = [(table.epoch, 0)]
        return table

    # ---- roots ----

    def _roots(self) -> Iterator[Words]:
        parts = self._parts
        committed, native = parts.committed, parts.native
        yield committed.constants
        yield from self._state()
        yield from pending_words(committed.pending)
        for savepoint in list(committed.strings.held_by):
            yield from savepoint.words
        yield from self._unfetched()
        yield parts.flight.answered
        if parts.flight.is_open:
            yield native.rows(native.outcome(), parts.operator.emits.row_words)
            image = native.early_image(len(committed.words))
            if image is not None:
                yield from words_in_use(parts.operator.layout, image)
                yield native.early_words()

    def _state(self) -> Iterator[Words]:
        return words_in_use(self._parts.operator.layout, self._parts.committed.words)

    def _touched_since(self) -> int | None:
        """The epoch in which the oldest run in flight began; None: there is none."""
        parts = self._parts
        if not parts.flight.is_open:
            return None
        formed, before_first = parts.native.formed()
        if formed == before_first:
            return None
        return max(epoch for epoch, by_then in self._formed if by_then <= before_first)

    def _note_epoch(self, epoch: int) -> None:
        formed, before_first = self._parts.native.formed()
        # Of those before the oldest run one is enough.
        known = [one for one in self._formed if one[1] <= before_first][-1:]
        later = [one for one in self._formed if one[1] > before_first]
        self._formed = [*known, *later, (epoch, formed)]


def words_in_use(layout: Layout, words: Words) -> Iterator[Words]:
    """The words of a state, but for those of containers that were never taken; views."""
    for first, end in layout.stretches:
        yield words[first:end]
    for field in layout.containers:
        assert field.container is not None
        begin = field.container.region
        yield words[begin : begin + used_bytes(words, field) // 8]
