"""The scheduler under protocol ``eager``, as discrete events.

The model follows ``stm_native/src/eager.c`` and ``wait_queue.c``. A store locks the record of its
word, and of two transactions that want one record the earlier one has it:

- who loads from or stores to a record that an earlier transaction has locked aborts, waits until
  that one has committed, and runs again;
- who stores to a record that a later one has locked takes the lock over; the later one notices at
  its next access, or when it is finished, and waits for who took it;
- a load that finds a newer version than the run's validity interval looks through all that the run
  has read; if some of it has changed, the run starts again at once.

The head is a transaction as any other. Only what no transaction can do, an event that raises or
passes a limit, is run in place.

A run goes from one *contested* access to the next: one to a record that another transaction within
the horizon writes, or reads where this one writes. All others find what the last commit left.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.model.costs import Costs
from specstream.model.simulation import Machine, Outcome
from specstream.model.workload import Transactions, Workload

__all__ = ["Accesses", "Records", "simulate_eager"]

Numbers = npt.NDArray[np.int64]


class Records:
    """The ownership record of each key, where a region's words share one by 2 to its shift.

    That records are used again where there are too many words is left out.

    Args:
        regions: as of ``Layout.regions``: (first word, log2 of words per record).

    >>> import numpy as np
    >>> Records([(0, 0), (10, 3)]).of(8 * np.array([9, 10, 17, 18])).tolist()
    [9, 10, 10, 11]
    """

    def __init__(self, regions: list[tuple[int, int]]) -> None:
        self.firsts = np.array([first for first, _ in regions])
        self.shifts = np.array([shift for _, shift in regions])
        most = (np.diff(self.firsts) - 1 >> self.shifts[:-1]) + 1
        self.starts = np.concatenate([[0], np.cumsum(most)])

    def of(self, keys: Numbers) -> Numbers:
        """Keys count bytes."""
        words = keys // 8
        region = np.searchsorted(self.firsts, words, side="right") - 1
        found: Numbers = self.starts[region] + (words - self.firsts[region] >> self.shifts[region])
        return found


class Accesses:
    """Loads from records and stores to them: of each event the first of each kind to each record.

    Reads are taken to be spread evenly over an event. What is stored to a word that was read is
    stored right after; other stores are spread evenly as well.

    Attributes, by access, in the order of events and of their accesses:
        event, record: numbers.
        part: of the event, after which it is done.
        stores: it is a store, which locks the record.

    And ``updated``, by event: records of updates that commute, which the commit marks and nobody
    locks before.
    """

    def __init__(self, workload: Workload, records: Records) -> None:
        event: list[int] = []
        keys: list[int] = []
        part: list[float] = []
        stores: list[bool] = []
        self.updated: list[set[int]] = []
        for number, of_event in enumerate(workload.events):
            steps = len(of_event.reads) + 1
            read = {key: step / steps for step, (key, _) in enumerate(of_event.reads, start=1)}
            # The first read of a key is the one that may find it locked, the last one comes before
            # the store to it.
            firsts = {
                key: 1 - step / steps for step, (key, _) in enumerate(reversed(of_event.reads), 1)
            }
            stored = [key for key, _ in of_event.writes if key not in of_event.updates]
            keys += firsts
            part += firsts.values()
            keys += stored
            part += [read.get(key, at / (len(stored) + 1)) for at, key in enumerate(stored, 1)]
            stores += [False] * len(firsts) + [True] * len(stored)
            event += [number] * (len(firsts) + len(stored))
            self.updated.append(
                set(records.of(np.array(sorted(of_event.updates), np.int64)).tolist())
            )
        self.event = np.array(event, np.int64)
        self.part = np.array(part, np.float64)
        self.stores = np.array(stores, np.bool_)
        self.record = records.of(np.array(keys, np.int64))
        in_order = np.lexsort((self.stores, self.part, self.event))
        self._take(in_order)
        kinds = np.stack([self.event, self.record, self.stores])
        _, first = np.unique(kinds, axis=1, return_index=True)
        self._take(np.sort(first))

    def _take(self, places: Numbers) -> None:
        self.event, self.part = self.event[places], self.part[places]
        self.stores, self.record = self.stores[places], self.record[places]


def simulate_eager(
    workload: Workload, accesses: Accesses, chunk: int, most: int, threads: int, horizon: int,
    costs: Costs,
) -> Outcome:  # fmt: skip
    """Runs transactions of ``chunk`` events, at most so many of them.

    Args:
        workload: the events, with the times of runs under this protocol.
        accesses: what they do to records.
        chunk: events in one transaction.
        most: transactions.
        threads: each on a core of its own.
        horizon: how many transactions may start ahead of the head; at least 1.
        costs: of everything but the events.

    >>> from specstream.model.simulation import simulate_plain
    >>> from specstream.model.workload import Event
    >>> events = Workload([Event(1000.0, 1000.0, [(64 * n, 0)], [(64 * n, 1)]) for n in range(400)])
    >>> accesses = Accesses(events, Records([(0, 0)]))
    >>> outcome = simulate_eager(events, accesses, 1, 400, 4, 16, Costs())
    >>> simulate_plain(events.in_chunks(1, 400)) / outcome.nanoseconds
    4.0
    """
    work = workload.in_chunks(chunk, most)
    touches = _Touches(workload, accesses, chunk, len(work), horizon)
    return _EagerMachine(work, touches, threads, horizon, costs).run()


class _Touches:
    """By transaction: its accesses, and which of them others within the horizon may meet."""

    def __init__(
        self, workload: Workload, accesses: Accesses, chunk: int, count: int, horizon: int
    ) -> None:
        took = np.array([event.speculative for event in workload.events])
        begins = np.concatenate([[0.0], np.cumsum(took)])
        used = accesses.event < count * chunk
        event, record, stores = accesses.event[used], accesses.record[used], accesses.stores[used]
        number = event // chunk
        begin, end = number * chunk, np.minimum((number + 1) * chunk, len(workload))
        passed = begins[event] - begins[begin] + accesses.part[used] * took[event]
        part = passed / np.maximum(begins[end] - begins[begin], 1e-9)
        self.updated: list[set[int]] = [
            set().union(*accesses.updated[at : at + chunk]) for at in range(0, count * chunk, chunk)
        ]
        marks = [(n, one) for n, marked in enumerate(self.updated) for one in marked]
        marked_by, marked = np.array(marks, np.int64).reshape(-1, 2).T

        def places(transactions: Numbers, records: Numbers) -> Numbers:
            # Of one record, all transactions beside each other; those of two records far apart.
            found: Numbers = records * (count + 2 * horizon + 2) + transactions
            return found

        mine = places(number, record)
        changed = np.concatenate([mine[stores], places(marked_by, marked)])
        contested = _near(mine, np.sort(changed), horizon)
        all_of_them = np.sort(np.concatenate([mine, changed]))
        contested[stores] = _near(mine[stores], all_of_them, horizon)
        self.parts = _by_transaction(number, count, part)
        self.stored = [set(one) for one in _by_transaction(number[stores], count, record[stores])]
        met = number[contested]
        self.contested: list[list[tuple[float, int, bool]]] = [
            list(zip(*one, strict=True))
            for one in zip(
                _by_transaction(met, count, part[contested]),
                _by_transaction(met, count, record[contested]),
                _by_transaction(met, count, stores[contested]),
                strict=True,
            )
        ]


def _near(places: Numbers, others: Numbers, distance: int) -> npt.NDArray[np.bool_]:
    """Whether another one, of a sorted row of them, is so near."""
    far = np.iinfo(np.int64).max // 2
    padded = np.concatenate([[-far], others, [far]])
    before = padded[np.searchsorted(padded, places, side="left") - 1]
    after = padded[np.searchsorted(padded, places, side="right")]
    found: npt.NDArray[np.bool_] = (places - before <= distance) | (after - places <= distance)
    return found


def _by_transaction(number: Numbers, count: int, values: npt.NDArray[Any]) -> list[list[Any]]:
    ends = np.searchsorted(number, np.arange(count + 1))
    listed = values.tolist()
    return [listed[ends[at] : ends[at + 1]] for at in range(count)]


@dataclass
class _Run:
    """One speculative run of a transaction, from its begin to its commit or abort."""

    thread: int
    began: float
    valid_to: int
    step: int = 0
    delay: float = 0.0  # what validation has taken
    next_at: float = 0.0
    finished: bool = False
    doomed_by: int = -1
    reads: dict[int, int] = field(default_factory=dict)  # record: its version
    owned: set[int] = field(default_factory=set)


class _EagerMachine(Machine):
    head_speculates = True

    def __init__(
        self, work: Transactions, touches: _Touches, threads: int, horizon: int, costs: Costs
    ) -> None:
        super().__init__(work, threads, horizon, costs)
        self.touches = touches
        self.clock = 0
        self.versions: dict[int, int] = {}
        self.owners: dict[int, int] = {}  # record: the transaction that has locked it
        self.alive: dict[int, _Run] = {}
        self.waits_for: dict[int, int] = {}  # dropped, or doomed and finished: for whom

    # ---- a run ----

    def go_on(self, now: float, thread: int, number: int) -> None:
        missing = self.caches.read(self.work.read_lines[number], thread)
        self.alive[number] = run = _Run(thread, now + missing, self.clock)
        self.expect(run, number)

    def expect(self, run: _Run, number: int) -> None:
        """The next contested access, or the end of the run."""
        contested = self.touches.contested[number]
        part = contested[run.step][0] if run.step < len(contested) else 1.0
        self.expect_at(run, number, part)

    def expect_at(self, run: _Run, number: int, part: float) -> None:
        run.next_at = run.began + run.delay + part * self.work.speculative[number]
        heapq.heappush(self.agenda, (run.next_at, run.thread, number, run.began))

    def is_over(self, now: float, thread: int, number: int, began: float) -> bool:
        run = self.alive.get(number)
        if run is None or run.thread != thread or run.began != began or run.next_at != now:
            return False  # of a run that is over, or that was doomed since and is expected earlier
        if run.doomed_by >= 0:
            return self.drop(now, number, run.doomed_by)
        if run.step < len(self.touches.contested[number]):
            _, record, stores = self.touches.contested[number][run.step]
            lost_to = self.access(now, run, number, record, stores)
            if lost_to is not None:
                return self.drop(now, number, lost_to)
            run.step += 1
            self.expect(run, number)
            return False
        if self.work.retried[number]:
            self.give_back(run, number)
        run.finished = True
        self.finished[number] = (began, thread)
        return True

    def access(self, now: float, run: _Run, number: int, record: int, stores: bool) -> int | None:
        """None: it went well; else whom the run was lost to, -1 for nobody in particular."""
        owner = self.owners.get(record, number)
        if owner < number:
            return owner
        if stores:
            if owner > number:
                self.doom(now, owner, record, number)
            self.owners[record] = number
            run.owned.add(record)
            return None
        version = self.versions.get(record, 0)
        run.reads.setdefault(record, version)
        if version > run.valid_to:
            run.delay += self.work.entries[number] * self.costs.entry
            if not self.reads_hold(run, number):
                return -1
            run.valid_to = self.clock
        return None

    def reads_hold(self, run: _Run, number: int) -> bool:
        return all(
            self.versions.get(record, 0) == version and self.owners.get(record, number) >= number
            for record, version in run.reads.items()
        )

    def doom(self, now: float, number: int, record: int, thief: int) -> None:
        """A transaction loses a lock to an earlier one, and notices at its next access."""
        run = self.alive[number]
        run.owned.discard(record)
        if run.doomed_by >= 0:
            return
        run.doomed_by = thief
        if run.finished:
            self.waits_for[number] = thief
            return
        part = (now - run.began - run.delay) / max(self.work.speculative[number], 1e-9)
        following = bisect_right(self.touches.parts[number], part)
        left = self.touches.parts[number][following:]
        self.expect_at(run, number, left[0] if left else 1.0)

    def give_back(self, run: _Run, number: int) -> None:
        for record in run.owned:
            del self.owners[record]
        run.owned.clear()

    def drop(self, now: float, number: int, lost_to: int) -> bool:
        """Ends a run that lost; True: its thread is free."""
        run = self.alive.pop(number)
        self.give_back(run, number)
        self.aborts += 1
        if lost_to < self.head:
            self.again(now, run.thread, number)
            return False
        self.waits_for[number] = lost_to
        return True

    def again(self, now: float, thread: int, number: int) -> None:
        self.runs += 1
        self.go_on(now + self.costs.start, thread, number)

    def retry(self, now: float, thread: int) -> bool:
        ready = [number for number, other in self.waits_for.items() if other < self.head]
        if not ready:
            return False
        number = min(ready)
        del self.waits_for[number]
        if number in self.finished:
            del self.finished[number]
            self.give_back(self.alive.pop(number), number)
            self.aborts += 1
        self.again(now, thread, number)
        return True

    # ---- the head ----

    def commit(self, now: float, thread: int, number: int, began: float, core: int) -> float:
        run = self.alive[number]
        work, costs = self.work, self.costs
        now += costs.commit + self.fetch(thread, number, core)
        if work.retried[number]:
            return self.rerun(now, thread, number)
        doomed = run.doomed_by >= 0
        if doomed or not self.reads_hold(run, number):
            del self.alive[number]
            self.give_back(run, number)
            self.aborts += 1
            self.waits_for[number] = -1
            return 0.0
        moved = self.clock != run.valid_to
        entries = work.entries[number] if moved else len(work.written_lines[number])
        return now + entries * costs.entry + self.caches.write(work.written_lines[number], thread)

    def committed(self, now: float) -> None:
        """Its records have a new version, and whoever else has locked one of them loses it."""
        number = self.head
        super().committed(now)
        run = self.alive.pop(number)
        marked = self.touches.stored[number] | self.touches.updated[number]
        if not marked:
            return
        self.clock += 1
        for record in marked:
            owner = self.owners.pop(record, number)
            self.versions[record] = self.clock
            if owner != number:
                self.doom(now, owner, record, number)
        run.owned.clear()
