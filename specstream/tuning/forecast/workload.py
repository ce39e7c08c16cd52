"""Events as the simulation sees them: durations, and who has to wait for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Access", "Event", "Transactions", "Workload"]

# An access of one event: (key, value); the key is a word, or a byte of a word of narrow elements.
Access = tuple[int, int]
# A cache line holds 8 words; keys count bytes.
LINE = 64


@dataclass(frozen=True)
class Event:
    """What one event did when it ran in sequence.

    Attributes:
        plain: nanoseconds in place.
        speculative: nanoseconds of a speculative run.
        reads: accesses to the state, in order.
        writes: what it left in the state.
        entries: log entries, reads and writes.
        row_words: words of emitted rows.
        retried: a speculative run of it never commits: it passes a limit, or raises.
        updates: keys of writes that commute or were foretold: they were not read, and nobody locks
            them.
    """

    plain: float
    speculative: float
    reads: Sequence[Access] = ()
    writes: Sequence[Access] = ()
    entries: int = 0
    row_words: int = 0
    retried: bool = False
    updates: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Transactions:
    """The events of a workload in chunks; all lists are by number of the transaction.

    Attributes:
        plain, speculative: nanoseconds of a run.
        needs: (part of the run after which it reads, transaction that must have committed by then).
        read_lines, written_lines: cache lines of the state.
        log_lines: cache lines of its logs and rows.
        entries: log entries.
        retried: a speculative run never commits.
    """

    chunk: int
    plain: list[float] = field(default_factory=list)
    speculative: list[float] = field(default_factory=list)
    needs: list[list[tuple[float, int]]] = field(default_factory=list)
    read_lines: list[list[int]] = field(default_factory=list)
    written_lines: list[list[int]] = field(default_factory=list)
    log_lines: list[int] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    retried: list[bool] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.plain)


class Workload:
    """Events in their order, with the earlier event that each read depends on.

    A read depends on the latest earlier event that *changed* the word: a store of the value that is
    there already is no conflict under protocol ``value``, and none here.

    >>> same = Event(100.0, 120.0, reads=[(0, 5)], writes=[(0, 5)])
    >>> changing = [Event(100.0, 120.0, reads=[(0, n)], writes=[(0, n + 1)]) for n in range(3)]
    >>> [needs for needs in Workload([same] * 3).needs]
    [[], [], []]
    >>> [needs for needs in Workload(changing).needs]
    [[], [(0.5, 0)], [(0.5, 1)]]
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = list(events)
        self.needs: list[list[tuple[float, int]]] = []
        self._made: dict[tuple[int, int], Transactions] = {}
        self._lines = [(lines(event.reads), lines(event.writes)) for event in self.events]
        values: dict[int, int] = {}
        changed: dict[int, int] = {}
        for number, event in enumerate(self.events):
            needs: list[tuple[float, int]] = []
            latest = -1
            steps = len(event.reads) + 1
            for step, (key, value) in enumerate(event.reads, start=1):
                values[key] = value
                writer = changed.get(key, -1)
                # A later read of what is older conflicts only where this one does.
                if writer > latest:
                    latest = writer
                    needs.append((step / steps, writer))
            self.needs.append(needs)
            for key, value in event.writes:
                if values.get(key) != value:
                    changed[key] = number
                values[key] = value

    def __len__(self) -> int:
        return len(self.events)

    def in_chunks(self, chunk: int, most: int) -> Transactions:
        """Transactions of ``chunk`` events, at most so many of them."""
        if (chunk, most) in self._made:
            return self._made[chunk, most]
        made = self._made[chunk, most] = Transactions(chunk)
        for first in range(0, min(len(self.events), chunk * most), chunk):
            self._add(made, first, self.events[first : first + chunk])
        return made

    def _add(self, made: Transactions, first: int, events: Sequence[Event]) -> None:
        speculative = sum(event.speculative for event in events)
        needs: list[tuple[float, int]] = []
        latest = -1
        passed = 0.0
        for number, event in enumerate(events, start=first):
            for part, writer in self.needs[number]:
                transaction = writer // made.chunk
                if transaction > latest and writer < first:
                    latest = transaction
                    at = passed + part * event.speculative
                    needs.append((at / max(speculative, 1e-9), transaction))
            passed += event.speculative
        entries = sum(event.entries for event in events)
        rows = sum(event.row_words for event in events)
        made.plain.append(sum(event.plain for event in events))
        made.speculative.append(speculative)
        made.needs.append(needs)
        of_events = self._lines[first : first + len(events)]
        made.read_lines.append(sorted(set().union(*(read for read, _ in of_events))))
        made.written_lines.append(sorted(set().union(*(written for _, written in of_events))))
        made.log_lines.append(-(-(2 * entries + rows) * 8 // LINE))
        made.entries.append(entries)
        made.retried.append(any(event.retried for event in events))


def lines(accesses: Sequence[Access]) -> set[int]:
    """The cache lines of accesses.

    >>> sorted(lines([(0, 1), (8, 1), (64, 3)]))
    [0, 1]
    """
    return {key // LINE for key, _ in accesses}
