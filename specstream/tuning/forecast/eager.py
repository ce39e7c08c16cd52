"""The scheduler under protocol ``eager``, as discrete events.

It follows ``stm_native/src/eager.c`` and ``retry_queue.c``. A store locks the record of its
word, and of two transactions that want one record the earlier one has it:

- who loads from or stores to a record that an earlier transaction has locked aborts, waits until
  that one has committed, and runs again;
- who stores to a record that a later one has locked takes the lock over; the later one notices at
  its next access, or when it is finished, and waits for who took it;
- a load that finds a newer version than the run's validity interval looks through all that the run
  has read; if some of it has changed, the run starts again at once.

Beside the words, their records and the clock go from core to core as well.

The head is a transaction as any other. Only what no transaction can do, an event that raises or
passes a limit, is run in place.

A run goes from one *contested* access to the next: one to a record that another transaction within
the horizon writes, or reads where this one writes. All others find what the last commit left.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from dataclasses import dataclass, field

from specstream.tuning.forecast.accesses import Accesses, Touches
from specstream.tuning.forecast.costs import Costs
from specstream.tuning.forecast.simulation import Machine, Outcome
from specstream.tuning.forecast.workload import Transactions, Workload

__all__ = ["simulate_eager"]


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

    >>> from specstream.tuning.forecast.accesses import Records
    >>> from specstream.tuning.forecast.simulation import simulate_plain
    >>> from specstream.tuning.forecast.workload import Event
    >>> events = Workload([Event(1000.0, 1000.0, [(64 * n, 0)], [(64 * n, 1)]) for n in range(400)])
    >>> accesses = Accesses(events, Records([(0, 0)]))
    >>> outcome = simulate_eager(events, accesses, 1, 400, 4, 16, Costs())
    >>> simulate_plain(events.in_chunks(1, 400)) / outcome.nanoseconds
    4.0
    """
    work = workload.in_chunks(chunk, most)
    touches = Touches(workload, accesses, chunk, len(work), horizon)
    return _EagerMachine(work, touches, threads, horizon, costs).run()


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
        self, work: Transactions, touches: Touches, threads: int, horizon: int, costs: Costs
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
        missing += self.caches.read(self.touches.read_lines[number], thread)
        missing += self.caches.write(self.touches.locked_lines[number], thread)
        if self.last_holder != thread:
            missing += self.costs.latency  # the clock, which each commit moves
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
        entries = len(work.written_lines[number])
        if self.clock != run.valid_to:  # what it has read is looked at once more
            entries = work.entries[number]
            now += self.caches.read(self.touches.read_lines[number], thread)
        now += self.caches.write(self.touches.locked_lines[number], thread)
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
