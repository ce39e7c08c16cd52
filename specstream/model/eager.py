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
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from specstream.model.costs import Costs
from specstream.model.simulation import Machine, Outcome
from specstream.model.workload import Event, Transactions, Workload

__all__ = ["Accesses", "Records", "accesses", "records_of_words", "simulate_eager"]

# From a key, which counts bytes, to its ownership record.
Records = Callable[[int], int]
# An access: (part of the run after which it is done, record, whether it is a store, which locks).
Touch = tuple[float, int, bool]


@dataclass(frozen=True)
class Accesses:
    """To ownership records, by transaction.

    Attributes:
        touches: loads and stores in their order.
        updated: records of updates that commute, which the commit marks and nobody locks before.
    """

    touches: list[list[Touch]] = field(default_factory=list)
    updated: list[set[int]] = field(default_factory=list)


def records_of_words(regions: list[tuple[int, int]]) -> Records:
    """The record of each key, where a region's words share one by 2 to its shift.

    That records are used again where there are too many words is left out.

    Args:
        regions: as of ``Layout.regions``: (first word, log2 of words per record).

    >>> record_of = records_of_words([(0, 0), (10, 3)])
    >>> record_of(8 * 9), record_of(8 * 10) == record_of(8 * 17), record_of(8 * 18) - record_of(80)
    (9, True, 1)
    """
    firsts = [first for first, _ in regions]
    starts, used = [], 0
    for number, (first, shift) in enumerate(regions):
        starts.append(used)
        if number + 1 < len(regions):
            used += (firsts[number + 1] - first - 1 >> shift) + 1

    def record_of(key: int) -> int:
        word = key // 8
        region = bisect_right(firsts, word) - 1
        return starts[region] + (word - firsts[region] >> regions[region][1])

    return record_of


def accesses(workload: Workload, chunk: int, most: int, record_of: Records) -> Accesses:
    """What each transaction of ``chunk`` events does to records; at most so many of them.

    Reads are taken to be spread evenly over an event. What is stored to a word that was read is
    stored right after; other stores are spread evenly as well.
    """
    made = Accesses()
    for first in range(0, min(len(workload), chunk * most), chunk):
        events = workload.events[first : first + chunk]
        whole = max(sum(event.speculative for event in events), 1e-9)
        touches: list[Touch] = []
        passed = 0.0
        for event in events:
            touches += [
                ((passed + at * event.speculative) / whole, record, stores)
                for at, stores, record in _in_order(event, record_of)
            ]
            passed += event.speculative
        made.touches.append(touches)
        made.updated.append({record_of(key) for event in events for key in event.updates})
    return made


def _in_order(event: Event, record_of: Records) -> list[tuple[float, bool, int]]:
    """First load and first store of each record: (part of the event, is a store, record)."""
    steps = len(event.reads) + 1
    when: dict[tuple[bool, int], float] = {}
    read_at: dict[int, float] = {}
    for step, (key, _) in enumerate(event.reads, start=1):
        read_at[key] = step / steps
        when.setdefault((False, record_of(key)), step / steps)
    stored = [key for key, _ in event.writes if key not in event.updates]
    for step, key in enumerate(stored, start=1):
        at = read_at.get(key, step / (len(stored) + 1))
        place = (True, record_of(key))
        when[place] = min(at, when.get(place, 1.0))
    return sorted((at, stores, record) for (stores, record), at in when.items())


def simulate_eager(
    work: Transactions, found: Accesses, threads: int, horizon: int, costs: Costs
) -> Outcome:
    """Runs transactions on so many threads.

    Args:
        work: the transactions, with the times of runs under this protocol.
        found: their accesses, of :func:`accesses`.
        threads: each on a core of its own.
        horizon: how many transactions may start ahead of the head; at least 1.
        costs: of everything but the events.

    >>> from specstream.model.simulation import simulate_plain
    >>> from specstream.model.workload import Event
    >>> events = Workload([Event(1000.0, 1000.0, [(64 * n, 0)], [(64 * n, 1)]) for n in range(400)])
    >>> work, found = events.in_chunks(1, 400), accesses(events, 1, 400, records_of_words([(0, 0)]))
    >>> simulate_plain(work) / simulate_eager(work, found, 4, 16, Costs()).nanoseconds
    4.0
    """
    return _EagerMachine(work, found, threads, horizon, costs).run()


def _contested(work: Accesses, horizon: int) -> list[list[int]]:
    """By transaction, the places in its touches where others within the horizon may meet it."""
    users: dict[int, list[int]] = {}  # record: transactions, in their order
    changers: dict[int, list[int]] = {}
    for number, touches in enumerate(work.touches):
        for _, record, stores in touches:
            users.setdefault(record, []).append(number)
            if stores:
                changers.setdefault(record, []).append(number)
        for record in work.updated[number]:
            users.setdefault(record, []).append(number)
            changers.setdefault(record, []).append(number)

    def meets(others: list[int], number: int) -> bool:
        own = bisect_right(others, number) - bisect_left(others, number)
        near = bisect_right(others, number + horizon) - bisect_left(others, number - horizon)
        return near > own

    return [
        [
            place
            for place, (_, record, stores) in enumerate(touches)
            if meets((users if stores else changers).get(record, []), number)
        ]
        for number, touches in enumerate(work.touches)
    ]


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
        self, work: Transactions, found: Accesses, threads: int, horizon: int, costs: Costs
    ) -> None:
        super().__init__(work, threads, horizon, costs)
        self.touches = found.touches
        self.updated = found.updated
        self.contested = _contested(found, horizon)
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
        places = self.contested[number]
        part = self.touches[number][places[run.step]][0] if run.step < len(places) else 1.0
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
        if run.step < len(self.contested[number]):
            _, record, stores = self.touches[number][self.contested[number][run.step]]
            lost_to = self.access(run, number, record, stores)
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

    def access(self, run: _Run, number: int, record: int, stores: bool) -> int | None:
        """None: it went well; else whom the run was lost to, -1 for nobody in particular."""
        owner = self.owners.get(record, number)
        if owner < number:
            return owner
        if stores:
            if owner > number:
                self.doom(owner, record, number)
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

    def doom(self, number: int, record: int, thief: int) -> None:
        """A transaction loses a lock to an earlier one, and notices at its next access."""
        run = self.alive[number]
        run.owned.discard(record)
        if run.doomed_by >= 0:
            return
        run.doomed_by = thief
        if run.finished:
            self.waits_for[number] = thief
            return
        places = self.contested[number]
        done = places[run.step - 1] if run.step else -1
        following = self.touches[number][done + 1 :]
        self.expect_at(run, number, following[0][0] if following else 1.0)

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
        stored = {record for _, record, stores in self.touches[number] if stores}
        if not stored and not self.updated[number]:
            return
        self.clock += 1
        for record in stored | self.updated[number]:
            owner = self.owners.pop(record, number)
            self.versions[record] = self.clock
            if owner != number:
                self.doom(owner, record, number)
        run.owned.clear()
