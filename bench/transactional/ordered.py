"""Engines under deterministic locks, as ``ordered.c`` has them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.chapter4.slowed import SlowedEngine
from bench.native import shared_library
from bench.transactional.workloads import Workload

__all__ = ["OrderedEngine"]


@functools.cache
def _library() -> tuple[Any, Any]:
    return shared_library(
        Path(__file__).with_name("ordered.c"),
        """
        struct ordered;
        struct ordered *ordered_open(const uint64_t *state, uint32_t locks);
        void ordered_close(struct ordered *ordered);
        ss_entry ordered_entry(struct ordered *ordered, ss_entry entry);
        bool ordered_begin(struct ordered *ordered, const int32_t *keys, int64_t rows,
                           int64_t width);
        """,
        runtime=False,
    )


class OrderedEngine(SlowedEngine):
    """An engine whose events run under deterministic locks: what they make of the state, and of the
    rows when these are put in order, is what one thread makes of them.

    The operator is the plain one; the locks stand around each event, and its work around these.

    Args:
        workload: says which keys an event touches.
        threads: that run events.
        chunk: events that a thread takes at a time.
    """

    def __init__(self, workload: Workload, threads: int, chunk: int = 1) -> None:
        self._workload = workload
        self._own_ffi, self._own_lib = _library()
        self._ordered = self._own_ffi.NULL
        super().__init__(workload.operator, threads=threads, chunk=chunk, execution="locked")

    def address(self, variant: str, entry: int) -> int:
        if variant != "locked":
            return entry
        ffi, lib = self._own_ffi, self._own_lib
        if self._ordered == ffi.NULL:
            state = ffi.cast("uint64_t *", self.engine.durable.words.ctypes.data)
            self._ordered = lib.ordered_open(state, self._workload.locks)
            if self._ordered == ffi.NULL:
                raise RuntimeError("no memory for locks, or too many engines under them at once")
        around = lib.ordered_entry(self._ordered, ffi.cast("ss_entry", entry))
        return int(ffi.cast("intptr_t", around))

    def begin(self, events: pa.Table) -> None:
        """To be called before each table that is processed: which locks its events want."""
        # Kept until the next one: the engine's threads read it.
        self._keys = np.ascontiguousarray(self._workload.touched(events), np.int32)
        rows, width = self._keys.shape
        keys = self._own_ffi.cast("int32_t *", self._keys.ctypes.data)
        if not self._own_lib.ordered_begin(self._ordered, keys, rows, width):
            raise ValueError(f"{self._workload.name}: an event wants a lock that there is not")

    def close(self) -> None:
        super().close()
        if self._ordered != self._own_ffi.NULL:
            self._own_lib.ordered_close(self._ordered)
            self._ordered = self._own_ffi.NULL
