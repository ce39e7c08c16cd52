"""Who takes part: each way to run a workload, as a contestant.

Work beside the accesses of an event is the same for all: half of it comes before them and half
after, in a loop or asleep. Under locks it lies outside of them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import specstream as ss
from bench.chapter4.slowed import SlowedEngine
from bench.locked import under_sorted_locks
from bench.transactional.ordered import OrderedEngine
from bench.transactional.workloads import Workload
from specstream.tuning.contest import Contestant
from specstream.tuning.rivals import under_one_lock

__all__ = ["AUTO", "COARSE", "DETERMINISTIC", "EXACT", "FINE", "PLAIN", "RIVALS", "Scheme"]

PLAIN, AUTO = "plain", "Auto"
COARSE, FINE, DETERMINISTIC = "global lock", "fine-grained locks", "deterministic locks"
# Those that run on several threads in a setting of their own.
RIVALS = ("value", "eager", DETERMINISTIC, COARSE, FINE)
# Those that promise the sequential answer.
EXACT = (PLAIN, AUTO, "value", "eager", DETERMINISTIC)


@functools.cache
def _under_locks(workload: Workload, name: str) -> ss.Operator:
    if name == COARSE:
        return under_one_lock(workload.operator)
    return under_sorted_locks(workload.operator, workload.keys, workload.locks, workload.most)


class Scheme(Contestant):
    """A workload under a scheme, in an engine of its own.

    Args:
        name: of the scheme.
        workload: what it runs.
        threads: that run events; ``plain`` has one.
        horizon: of speculation.
        chunk: events that a thread takes at a time.
        warm_up: events before the first batch; not timed.
    """

    def __init__(
        self,
        name: str,
        workload: Workload,
        threads: int = 1,
        horizon: int = 0,
        chunk: int = 1,
        warm_up: pa.Table | None = None,
    ) -> None:
        super().__init__(name, exact=name in EXACT)
        self.work: Mapping[str, Any] = {}
        if name == DETERMINISTIC:
            self.slowed: SlowedEngine = OrderedEngine(workload, threads, chunk)
            self.setting = f"{chunk}"
        elif name in (COARSE, FINE):
            options: dict[str, Any] = {"threads": threads, "chunk": chunk, "execution": "locked"}
            self.slowed = SlowedEngine(_under_locks(workload, name), **options)
            self.setting = f"{chunk}"
        elif name == PLAIN:
            self.slowed = SlowedEngine(workload.operator, threads=1, horizon=0)
        elif name == AUTO:
            self.slowed = SlowedEngine(workload.operator, threads=threads)
        else:
            options = {"threads": threads, "horizon": horizon, "chunk": chunk, "protocol": name}
            self.slowed = SlowedEngine(workload.operator, **options)
            self.setting = f"{horizon}, {chunk}"
        self.engine = self.slowed.engine
        if warm_up is not None:
            self.process(warm_up)
        self._start = self.engine.savepoint()

    def _begin(self, events: pa.Table) -> None:
        if isinstance(self.slowed, OrderedEngine):
            self.slowed.begin(events)
        if any(self.work.values()):
            self.slowed.pace(before=0.5, **self.work)
        else:
            self.slowed.unpaced()

    def run(self, batch: pa.Table, number: int) -> pa.Table | None:
        before = self.engine.stats
        rows = self.process(batch)
        after = self.engine.stats
        self.times[number] = (after.seconds - before.seconds) / batch.num_rows
        self.walls[number] = self.times[number]
        self.runs[number] = after.speculative_runs - before.speculative_runs
        self.dropped[number] = sum(after.aborts.values()) - sum(before.aborts.values())
        return rows if self.exact else None

    def process(self, batch: pa.Table) -> pa.Table:
        """The rows of a batch; those of locks are put in the order of their events."""
        self._begin(batch)
        rows = self.engine.process(batch)
        if self.name not in (DETERMINISTIC, COARSE, FINE):
            return rows
        return rows.take(np.argsort(rows["number"].to_numpy()))

    def latency(self, batch: pa.Table) -> npt.NDArray[np.int64]:
        """Nanoseconds from dequeuing an event until it is committed, or has run under locks."""
        self._begin(batch)
        return self.slowed.waits(batch, before=0.5, **self.work)

    def restart(self) -> None:
        self.engine.rollback(self._start)

    def close(self) -> None:
        self.slowed.close()
