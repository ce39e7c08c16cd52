"""Recorded events as the machine replays them: arrays of events, accesses, and the state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.tuning.forecast.events import Access, Event

__all__ = ["Trace"]

LOAD, STORE, ADD = range(3)  # enum replay_kind
WORD = 2**64 - 1
_ACCESS = np.dtype([("byte", "<u8"), ("value", "<u8"), ("size", "<u4"), ("kind", "<u4")])
_EVENT = np.dtype(
    [
        *((name, np.int64) for name in ("plain", "speculative", "first", "last", "row_words")),
        ("is_dropped", np.int64),
    ]
)


class Trace:
    """What events do, one after the other, from the state that they found.

    Within an event reads are taken to be spread evenly. What is stored to an element that was read
    is stored right behind; other stores are spread evenly as well. An update that commutes is
    replayed as what it adds to its word, whatever it did.

    Args:
        events: in their order.
        state_words: of the operator; more if they access more.
        regions: of protocol ``eager``, as of ``Layout.regions``.

    Attributes:
        events, accesses: arrays of ``struct replay_event`` and ``struct replay_access``.
        words: of the state, that some event accesses.
        before, behind: their values at the beginning, and when all events have run.

    >>> trace = Trace([Event(9.0, 9.0, [Access(8, 5)], [Access(8, 6)], updates=frozenset())])
    >>> trace.words.tolist(), trace.before.tolist(), trace.behind.tolist()
    ([1], [5], [6])
    """

    def __init__(
        self,
        events: Sequence[Event],
        state_words: int = 0,
        regions: Sequence[tuple[int, int]] = ((0, 0),),
    ) -> None:
        self.replays_all = not any(event.retried for event in events)
        self._sizes: dict[int, int] = {}
        for event in events:
            for one in (*event.reads, *event.writes):
                word = one.byte // 8
                self._sizes[word] = min(one.size, self._sizes.get(word, 8))
        self._before: dict[int, int] = {}
        self._now: dict[int, int] = {}
        self._known: dict[int, int] = {}
        accesses: list[tuple[int, int, int, int]] = []
        self.events: npt.NDArray[Any] = np.zeros(len(events), _EVENT)
        for number, event in enumerate(events):
            first = len(accesses)
            accesses += self._in_order(event)
            self.events[number] = (
                round(event.plain),
                round(event.speculative),
                first,
                len(accesses),
                event.row_words,
                event.retried,
            )
        self.accesses: npt.NDArray[Any] = np.array(accesses, _ACCESS)
        words = sorted(self._sizes)
        self.words = np.array(words, np.uint64)
        self.before = np.array([self._before.get(word, 0) for word in words], np.uint64)
        self.behind = np.array([self._now.get(word, 0) for word in words], np.uint64)
        self.state_words = max(state_words, *(word + 1 for word in words[-1:]), 1)
        self.regions = np.array(regions, np.uint64).ravel()

    def __len__(self) -> int:
        return len(self.events)

    @property
    def plain_nanoseconds(self) -> int:
        """Of all events, in place."""
        return int(self.events["plain"].sum())

    def _in_order(self, event: Event) -> list[tuple[int, int, int, int]]:
        """The accesses of an event by the time at which it does them; the state goes on."""
        reads = [one for read in event.reads for one in self._split(read)]
        writes = [one for written in event.writes for one in self._split(written)]
        steps = len(reads) + 1
        last_read = {one.byte: step / steps for step, one in enumerate(reads, start=1)}
        found: list[tuple[float, tuple[int, int, int, int]]] = []
        for step, one in enumerate(reads, start=1):
            self._set(one, is_read=True)
            found.append((step / steps, (one.byte, 0, one.size, LOAD)))
        for step, one in enumerate(writes, start=1):
            part = last_read.get(one.byte, step / (len(writes) + 1))
            if one.size == 8 and one.byte in event.updates:
                added = (one.value - self._now.get(one.byte // 8, 0)) & WORD
                found.append((part, (one.byte, added, 8, ADD)))
            else:
                found.append((part, (one.byte, one.value, one.size, STORE)))
            self._set(one, is_read=False)
        found.sort(key=lambda one: one[0])
        return [access for _, access in found]

    def _split(self, access: Access) -> Iterator[Access]:
        """Into accesses of the size that all accesses to the word have."""
        size = self._sizes[access.byte // 8]
        for at in range(0, access.size, size):
            value = access.value >> 8 * at & (1 << 8 * size) - 1
            yield Access(access.byte + at, value, size)

    def _set(self, access: Access, is_read: bool) -> None:
        word, shift = access.byte // 8, access.byte % 8 * 8
        known = self._known.get(word, 0)
        mask = (1 << 8 * access.size) - 1 << shift
        if is_read:
            # What nobody has read or stored before was there at the beginning. Who reads anything
            # else than what is known reads what a timer has stored, or a key that is absent, of
            # which only the place counts: neither is replayed.
            mask &= ~known
            self._before[word] = self._before.get(word, 0) | access.value << shift & mask
        self._known[word] = known | mask
        self._now[word] = self._now.get(word, 0) & ~mask | access.value << shift & mask
