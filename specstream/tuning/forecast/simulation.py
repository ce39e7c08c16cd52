"""The scheduler as discrete events. Protocol ``value`` is here, ``eager.py`` adds what differs.

It follows ``stm_native/src/scheduler.c`` step by step. A thread, again and again, does the
first of these that it can:

1. Take the turn and advance the head: commit the finished transaction there, or, where its values
   no longer hold, run it again in place; or claim a head that nobody has claimed, and run it in
   place.
2. Claim the next transaction within the horizon and run it speculatively.
3. Wait until the head has moved or the turn is free; a long wait ends with being woken.

A speculative run conflicts when it has read a word before the transaction that last changed it had
committed. Each core has a cache of its own: what another core has written since is transferred, at
a price, when it is read, written, compared or published. One core is one thread.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from specstream.tuning.forecast.costs import Costs
from specstream.tuning.forecast.workload import Transactions

__all__ = ["Machine", "Outcome", "simulate", "simulate_plain"]

# As the runtime: a wait spins for about one transaction, within these bounds; then it sleeps, and
# looks up after a while in any case.
LEAST_SPIN, MOST_SPIN = 200.0, 20_000.0
SLEEP = 1e6
LOOK, LOOK_UP = -1, -2


@dataclass(frozen=True)
class Outcome:
    """What a simulated run did.

    Attributes:
        nanoseconds: from its start to the last commit.
        speculative_runs: of them so many.
        aborts: speculative runs that were dropped.
        in_place: transactions that the head ran in place at their first try.
    """

    nanoseconds: float
    speculative_runs: int
    aborts: int
    in_place: int


def simulate_plain(work: Transactions) -> float:
    """Nanoseconds of the plain run."""
    return sum(work.plain)


def simulate(
    work: Transactions, threads: int, horizon: int, costs: Costs, forced: bool = False
) -> Outcome:
    """Runs transactions on so many threads.

    Args:
        work: the transactions.
        threads: each on a core of its own.
        horizon: how many transactions may start ahead of the head; at least 1.
        costs: of everything but the events.
        forced: the head is never run in place at its first try.

    >>> from specstream.tuning.forecast.workload import Event, Workload
    >>> apart = Workload([Event(1000.0, 1000.0)] * 400).in_chunks(1, 400)
    >>> simulate_plain(apart) / simulate(apart, 4, 16, Costs()).nanoseconds
    4.0
    """
    return Machine(work, threads, horizon, costs, forced).run()


class _Caches:
    """Which cores have the current content of a line; of a line that nobody wrote, all have."""

    def __init__(self, bulk: float) -> None:
        self.bulk = bulk
        self.holders: dict[int, int] = {}

    def read(self, lines: list[int], core: int) -> float:
        missed = 0
        bit = 1 << core
        for line in lines:
            held = self.holders.get(line)
            if held is not None and not held & bit:
                self.holders[line] = held | bit
                missed += 1
        return missed * self.bulk

    def write(self, lines: list[int], core: int) -> float:
        missed = 0
        bit = 1 << core
        for line in lines:
            held = self.holders.get(line)
            if held != bit:
                missed += held is not None
                self.holders[line] = bit
        return missed * self.bulk


class Machine:
    """Threads at work; its arguments are those of :func:`simulate`."""

    head_speculates = False

    def __init__(
        self,
        work: Transactions,
        threads: int,
        horizon: int,
        costs: Costs,
        forced: bool = False,
    ) -> None:
        self.work = work
        self.threads = threads
        self.horizon = horizon
        self.costs = costs
        self.forced = forced
        self.caches = _Caches(costs.bulk)
        self.count = len(work)
        self.head = 0
        self.next_start = 0
        self.finished: dict[int, tuple[float, int]] = {}  # number: when it began, on which core
        self.committed_at = [0.0] * self.count
        self.holder = -1  # of the turn
        self.last_holder = 0
        self.last_claimer = 0
        self.was_rerun = False
        self.rerunning = False
        self.waiting: dict[int, float] = {}  # thread: since when
        self.runs = self.aborts = self.in_place = 0
        # What each thread does next: (time, thread, transaction that it is running, or LOOK; or
        # LOOK_UP, which counts if it still sleeps since the time given last; of a transaction, the
        # time at which it began).
        self.agenda: list[tuple[float, int, int, float]] = [
            (0.0, thread, LOOK, 0.0) for thread in range(threads)
        ]

    def run(self) -> Outcome:
        """Runs all transactions, to the last commit."""
        now = 0.0
        while self.head < self.count:
            now, thread, ran, since = heapq.heappop(self.agenda)
            if ran == LOOK_UP:
                if self.waiting.get(thread) != since:
                    continue
                del self.waiting[thread]
            elif ran >= 0 and not self.is_over(now, thread, ran, since):
                continue
            if self.holder == thread:
                self.committed(now)
            self.work_on(now, thread)
        return Outcome(now, self.runs, self.aborts, self.in_place)

    def is_over(self, now: float, thread: int, number: int, began: float) -> bool:
        """A speculative run has come to where it was expected; it is at its end."""
        self.finished[number] = (began, thread)
        return True

    def committed(self, now: float) -> None:
        """The head is."""
        self.committed_at[self.head] = now
        self.head += 1
        self.rerunning = False

    def retry(self, now: float, thread: int) -> bool:
        """Runs again what was dropped, if there is any such thing: the head does that here."""
        return False

    def work_on(self, now: float, thread: int) -> None:
        """What a thread does that looks for work, having the turn or not."""
        was_holder = self.holder == thread
        if was_holder or self.holder < 0:
            took = 0.0
            if not was_holder and self.last_holder != thread:
                took = 2 * self.costs.latency  # the turn, and where the head is
            advanced = self.advance(now + took, thread)
            if advanced > 0.0:
                self.holder = self.last_holder = thread
                heapq.heappush(self.agenda, (advanced, thread, LOOK, 0.0))
                if was_holder:  # the head has moved, and so has the horizon
                    self.wake(now, all_of_them=False)
                return
            if was_holder:
                self.holder = -1
                self.wake(now, all_of_them=True)
        if self.retry(now, thread):
            return
        reach = self.horizon
        if self.rerunning and self.threads - 1 < reach:
            reach = max(self.threads - 1, 1)
        number = self.next_start
        if number < self.count and number <= self.head + reach:
            self.next_start += 1
            self.start(now, thread, number)
        else:
            self.waiting[thread] = now
            heapq.heappush(self.agenda, (now + self.spin(now) + SLEEP, thread, LOOK_UP, now))

    def advance(self, now: float, thread: int) -> float:
        """When the holder of the turn is done with the head; 0.0: there is nothing to do."""
        number, work = self.head, self.work
        if number == self.count:
            return 0.0
        if number in self.finished:
            began, core = self.finished.pop(number)
            return self.commit(now, thread, number, began, core)
        if self.next_start != number or self.forced or self.head_speculates:
            return 0.0
        self.next_start += 1
        self.in_place += 1
        if self.last_claimer != thread:
            now += self.costs.latency
            self.last_claimer = thread
        return now + self.costs.head + self.place(thread, number) + work.plain[number]

    def place(self, thread: int, number: int) -> float:
        """What a run in place has to get from other cores."""
        read = self.caches.read(self.work.read_lines[number], thread)
        return read + self.caches.write(self.work.written_lines[number], thread)

    def commit(self, now: float, thread: int, number: int, began: float, core: int) -> float:
        """When a finished transaction is committed; began, and on which core: its run."""
        work, costs = self.work, self.costs
        now += costs.commit + work.entries[number] * costs.entry
        now += self.fetch(thread, number, core)
        now += self.caches.read(work.read_lines[number], thread)
        took = work.speculative[number]
        if not work.retried[number] and all(
            self.committed_at[need] <= began + part * took for part, need in work.needs[number]
        ):
            self.was_rerun = False
            return now + self.caches.write(work.written_lines[number], thread)
        return self.rerun(now, thread, number)

    def fetch(self, thread: int, number: int, core: int) -> float:
        """The logs of a run, from the core that ran it."""
        if core == thread:
            return 0.0
        return self.costs.latency + self.work.log_lines[number] * self.costs.bulk

    def rerun(self, now: float, thread: int, number: int) -> float:
        """The head once more, in place."""
        self.aborts += 1
        self.rerunning, self.was_rerun = self.was_rerun, True
        return now + self.costs.head + self.place(thread, number) + self.work.plain[number]

    def start(self, now: float, thread: int, number: int) -> None:
        """A speculative run; the line of the claims comes from who claimed last."""
        self.runs += 1
        now += self.costs.start
        if self.last_claimer != thread:
            now += self.costs.latency
            self.last_claimer = thread
        if self.last_holder != thread:
            now += self.costs.latency  # where the head is
        self.go_on(now, thread, number)

    def go_on(self, now: float, thread: int, number: int) -> None:
        """From the first access of a speculative run to its end."""
        missing = self.caches.read(self.work.read_lines[number], thread)
        done = now + missing + self.work.speculative[number]
        heapq.heappush(self.agenda, (done, thread, number, now))

    def spin(self, now: float) -> float:
        """How long a thread that waits looks again and again before it sleeps."""
        return min(max(now / max(self.head, 1), LEAST_SPIN), MOST_SPIN)

    def wake(self, now: float, all_of_them: bool) -> None:
        """Who spins notices at once; who sleeps is woken when the turn is given back."""
        spin = self.spin(now)
        for thread, since in list(self.waiting.items()):
            asleep = now - since > spin
            if asleep and not all_of_them:
                continue
            del self.waiting[thread]
            delay = self.costs.wake if asleep else self.costs.latency
            heapq.heappush(self.agenda, (now + delay, thread, LOOK, 0.0))
