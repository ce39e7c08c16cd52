"""The C harness: the entries of ``native.c`` as contestants."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.harness import setting_of
from bench.native import shared_library
from bench.workloads import UPDATED_WORDS
from specstream.tuning.contest import Contestant

__all__ = ["NativeContestant", "library", "native_rounds_for"]

# An emitted row: the event's row, and one value.
ROW_WORDS = 2
WAIT_MILLISECONDS = 50


@functools.cache
def library() -> tuple[Any, Any]:
    """The library and its declarations."""
    return shared_library(
        Path(__file__).with_name("native.c"),
        """
        ss_entry speed_entry(int updates, enum ss_variant variant);
        uint64_t speed_load(struct ss_run *run, uint64_t word);
        void speed_store(struct ss_run *run, uint64_t word, uint64_t value);
        """,
    )


class NativeContestant(Contestant):
    """The entries of ``native.c`` in an engine of the C runtime.

    Args:
        updates: words that an event updates: 5, 20 or 100.
        execution: "ordered", "speculate", "log_free" or "locked".
        protocol: "value" or "eager".
    """

    def __init__(
        self,
        name: str,
        updates: int,
        threads: int,
        horizon: int,
        chunk: int,
        execution: str,
        protocol: str = "value",
    ) -> None:
        super().__init__(
            name, execution != "locked" or threads == 1, setting_of(execution, horizon, chunk)
        )
        self.horizon, self.chunk = horizon, chunk
        ffi, lib = library()
        self.mode = getattr(lib, f"SS_MODE_{execution.upper()}")
        self.state = np.zeros(UPDATED_WORDS, np.int64)
        config = ffi.new(
            "struct ss_config *",
            {
                "state": ffi.cast("uint64_t *", self.state.ctypes.data),
                "state_words": UPDATED_WORDS,
                "emit_words": ROW_WORDS,
                "threads": threads,
                "locks": 1,
                # As an engine has them by default.
                "read_limit": 1 << 14,
                "redo_limit": 1 << 12,
                "emit_limit": 1 << 10,
                "protocol": getattr(lib, f"SS_PROTOCOL_{protocol.upper()}"),
            },
        )
        self.engine = lib.ss_engine_new(config)
        if self.engine == ffi.NULL:
            raise MemoryError("no memory or no threads for an engine of the C harness")
        for variant in ("PLAIN", "TRANSACTIONAL", "LOG_FREE", "LOCKED", "EAGER"):
            number = getattr(lib, f"SS_{variant}")
            entry = lib.speed_entry(updates, number)
            if entry == ffi.NULL:
                raise ValueError(f"native.c has no entry for {updates} updates")
            lib.ss_engine_set_entry(self.engine, number, entry)
        self._start = self.state.copy()

    def process(self, events: pa.Table) -> npt.NDArray[np.int64]:
        """Runs events; their rows (events, 2), a view that the next call writes over."""
        ffi, lib = library()
        columns = [events[name].to_numpy() for name in ("value", "native_work")]
        job = ffi.new(
            "struct ss_job *",
            {
                "columns": (
                    pointers := ffi.new(
                        "void *[]", [ffi.cast("void *", column.ctypes.data) for column in columns]
                    )
                ),
                "count": events.num_rows,
                "chunk": self.chunk,
                "horizon": self.horizon,
                "mode": self.mode,
            },
        )
        if not lib.ss_engine_start(self.engine, job):
            raise MemoryError("no memory for the logs of the C harness")
        while not lib.ss_engine_wait(self.engine, WAIT_MILLISECONDS):
            pass
        del pointers  # the job is over
        outcome = lib.ss_engine_outcome(self.engine)
        if outcome.failed or outcome.consumed != events.num_rows:
            raise RuntimeError(f"the C harness stopped at event {outcome.consumed}")
        words = outcome.row_count * ROW_WORDS
        buffer = ffi.buffer(outcome.rows, words * 8)
        return np.frombuffer(buffer, np.int64).reshape(-1, ROW_WORDS)

    def warm_up(self, events: pa.Table) -> npt.NDArray[np.int64]:
        """Runs events before the first batch; their rows, until the next call."""
        rows = self.process(events)
        self._start = self.state.copy()
        return rows

    def run(self, batch: pa.Table, number: int) -> None:
        """Its rows are not compared: a busy loop of its own has other values."""
        statistics = library()[1].ss_engine_statistics
        before = statistics(self.engine)
        began = time.perf_counter()
        self.process(batch)
        self.walls[number] = (time.perf_counter() - began) / batch.num_rows
        after = statistics(self.engine)
        self.times[number] = (after.nanoseconds - before.nanoseconds) / 1e9 / batch.num_rows
        self.runs[number] = after.speculative_runs - before.speculative_runs
        self.dropped[number] = sum(after.aborts) - sum(before.aborts)

    def restart(self) -> None:
        self.state[:] = self._start

    def close(self) -> None:
        library()[1].ss_engine_free(self.engine)


def native_rounds_for(updates: int, seconds: float) -> int:
    """Rounds of the busy loop in C with which an event takes so long, the rest of it included."""
    engine = NativeContestant("calibration", updates, 1, 0, 1, "log_free")

    def least(work: int, count: int) -> float:
        value = np.random.default_rng(1).integers(0, 2**62, count)
        events = pa.table({"value": value, "native_work": np.full(count, work)})
        for number in range(7):
            engine.run(events, number)
        return min(engine.times.values())

    try:
        empty = least(0, 20_000)
        return max(0, round((seconds - empty) / ((least(5_000, 400) - empty) / 5_000)))
    finally:
        engine.close()
