"""Engines whose events take as long as an experiment wants, by a busy loop or asleep."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import specstream as ss
from bench.native import shared_library
from specstream._native import ffi as engine_ffi
from specstream._native import lib as engine_lib

__all__ = ["Runs", "Slept", "SlowedEngine", "busy_rounds"]

DECLARATIONS = """
struct pace;
struct work { int64_t sleep; int64_t rounds; };
struct pace *pace_open(struct ss_engine *engine, const uint64_t *state,
                       int64_t (*progress)(struct ss_engine *engine));
void pace_close(struct pace *pace);
ss_entry pace_entry(struct pace *pace, enum ss_variant variant, ss_entry entry);
bool pace_set(struct pace *pace, struct work before, struct work after, int64_t rows);
void pace_read(struct pace *pace, int64_t *taken);
int64_t pace_asked(const struct pace *pace);
int64_t pace_slept(const struct pace *pace);
"""

VARIANTS = {"plain": 0, "transactional": 1, "log_free": 2, "locked": 3, "eager": 4}


@functools.cache
def _library() -> tuple[Any, Any]:
    return shared_library(Path(__file__).with_name("slowed.c"), DECLARATIONS, runtime=False)


@dataclass(frozen=True)
class Runs:
    """How often events were run in vain.

    Attributes:
        speculative: speculative runs.
        dropped: those that were dropped.
        transactions: committed, of one event each.
    """

    speculative: int
    dropped: int
    transactions: int

    @property
    def dropped_per_run(self) -> float:
        """Dropped runs per speculative run."""
        return self.dropped / max(self.speculative, 1)

    @property
    def dropped_per_transaction(self) -> float:
        """Dropped runs per committed transaction, which is what the text's percentages are."""
        return self.dropped / max(self.transactions, 1)

    def __sub__(self, other: Runs) -> Runs:
        return Runs(
            self.speculative - other.speculative,
            self.dropped - other.dropped,
            self.transactions - other.transactions,
        )


@dataclass(frozen=True)
class Slept:
    """Seconds that threads wanted to sleep, and that they did, all together."""

    asked: float
    took: float

    @property
    def ratio(self) -> float:
        """How much longer a sleep took than was asked for; 1: nobody slept."""
        return self.took / self.asked if self.asked else 1.0

    def __sub__(self, other: Slept) -> Slept:
        return Slept(self.asked - other.asked, self.took - other.took)


class SlowedEngine:
    """An engine whose events have work beside their accesses, as in Listing 4.2 after them.

    A run that is dropped in the middle of its accesses, or that raises, has no work after them; if
    it is run again it has all of it again.

    Args:
        operator: the operator.
        options: of :class:`specstream.Engine`.
    """

    def __init__(self, operator: ss.Operator, **options: Any) -> None:
        self._ffi, self._lib = _library()
        self.engine = ss.Engine(operator, **options)
        native = int(engine_ffi.cast("intptr_t", self.engine.parts.native.pointer))
        progress = engine_ffi.addressof(engine_lib, "ss_engine_progress")
        self._pace = self._lib.pace_open(
            self._ffi.cast("struct ss_engine *", native),
            self._ffi.cast("uint64_t *", self.engine.durable.words.ctypes.data),
            self._ffi.cast(
                "int64_t (*)(struct ss_engine *)", int(engine_ffi.cast("intptr_t", progress))
            ),
        )
        if self._pace == self._ffi.NULL:
            raise RuntimeError("too many slowed engines at once")
        self._wrap()

    def _wrap(self) -> None:
        for variant, entry in self.engine.parts.code.entries.items():
            number = VARIANTS[variant]
            address = self._ffi.cast("ss_entry", self.address(variant, entry.address))
            around = self._lib.pace_entry(self._pace, number, address)
            self._set(number, int(self._ffi.cast("intptr_t", around)))

    def _set(self, variant: int, address: int) -> None:
        engine_lib.ss_engine_set_entry(
            self.engine.parts.native.pointer, variant, engine_ffi.cast("ss_entry", address)
        )

    def address(self, variant: str, entry: int) -> int:
        """What the pace stands around: the compiled entry, unless a subclass has more to say."""
        return entry

    def unpaced(self) -> None:
        """From now on events have no work, and nothing stands around them to look at it."""
        for variant, entry in self.engine.parts.code.entries.items():
            self._set(VARIANTS[variant], self.address(variant, entry.address))

    def pace(
        self, *, sleep: float = 0.0, rounds: int = 0, before: float = 0.0, rows: int = 0
    ) -> None:
        """From now on each event has ``sleep`` seconds and ``rounds`` of a busy loop as its work.

        Args:
            before: share of the work that stands before the accesses, 0 to 1.
            rows: of how many rows to note when they are dequeued and committed.
        """
        # For submitted events some code is compiled when the first one comes.
        self._wrap()
        first = round(before * sleep * 1e9), round(before * rounds)
        rest = round(sleep * 1e9) - first[0], rounds - first[1]
        if not self._lib.pace_set(self._pace, first, rest, rows):
            raise MemoryError("no memory to note when events are dequeued")

    def run(
        self, events: pa.Table, *, sleep: float = 0.0, rounds: int = 0, before: float = 0.0
    ) -> float:
        """Seconds that the events took at that pace."""
        self.pace(sleep=sleep, rounds=rounds, before=before)
        began = self.engine.stats.seconds
        self.engine.process(events)
        return self.engine.stats.seconds - began

    def waits(
        self, events: pa.Table, *, sleep: float = 0.0, rounds: int = 0, before: float = 0.0
    ) -> npt.NDArray[np.int64]:
        """Nanoseconds from dequeuing to commit of each event; the chunk has to be 1. Under locks
        nothing commits: to the end of its run."""
        self.pace(sleep=sleep, rounds=rounds, before=before, rows=events.num_rows)
        self.engine.process(events)
        taken = np.zeros(events.num_rows, np.int64)
        self._lib.pace_read(self._pace, self._ffi.cast("int64_t *", taken.ctypes.data))
        return taken

    def runs(self) -> Runs:
        """The runs so far; of two looks the difference tells of what lies between."""
        stats = self.engine.stats
        return Runs(stats.speculative_runs, sum(stats.aborts.values()), stats.events)

    def slept(self) -> Slept:
        """The sleep so far; of two looks the difference tells of what lies between."""
        asked, took = self._lib.pace_asked(self._pace), self._lib.pace_slept(self._pace)
        return Slept(asked / 1e9, took / 1e9)

    def close(self) -> None:
        self.engine.close()
        self._lib.pace_close(self._pace)

    def __enter__(self) -> SlowedEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Nothing(ss.State):
    word = ss.scalar(int)


@ss.operator(state=_Nothing, event={"x": int}, emits={})
def _nothing(state, event, emit):  # type: ignore[no-untyped-def]
    state.word = event.x


@functools.cache
def busy_rounds() -> float:
    """Rounds of the busy loop per second."""
    events = pa.table({"x": np.zeros(200, np.int64)})
    with SlowedEngine(_nothing, threads=1, horizon=0) as slowed:
        slowed.run(events)
        return 2000 * 200 / min(slowed.run(events, rounds=2000) for _ in range(7))
