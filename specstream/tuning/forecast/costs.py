"""What transactions and cache lines cost, in nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass

from specstream._native import ffi, lib

__all__ = ["Costs", "measured_transfer"]


@dataclass(frozen=True)
class Costs:
    """Constants of the simulation, in nanoseconds; all 0: only the events count.

    Attributes:
        start: of a speculative run: claiming it, clearing the logs, saying that it is finished.
        commit: of a finished transaction, besides its log entries.
        entry: of comparing or publishing one log entry.
        head: of a run in place, besides the run.
        latency: one cache line from another core, waited for.
        bulk: one of many cache lines from another core.
        wake: from the end of a wait that was too long to spin, to going on.
    """

    start: float = 0.0
    commit: float = 0.0
    entry: float = 0.0
    head: float = 0.0
    latency: float = 0.0
    bulk: float = 0.0
    wake: float = 0.0


def measured_transfer() -> tuple[float, float]:
    """Latency and bulk cost of a cache line; zeros where there is one core only."""
    found = ffi.new("struct ss_transfer *")
    if not lib.ss_measure_transfer(found):
        return 0.0, 0.0
    return float(found.latency), float(found.bulk)
