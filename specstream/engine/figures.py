"""What an engine has done so far, counted by the native runtime and put together here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specstream._native import lib
from specstream.columns.conversion import order_distance, time_at
from specstream.engine.statistics import Statistics

if TYPE_CHECKING:
    from specstream.engine.engine import Engine

__all__ = ["statistics_of"]


def statistics_of(engine: Engine, memory: int, waiting: int) -> Statistics:
    """Since the engine was made; bytes of its logs and buffers, and events that wait, are given."""
    counted = lib.ss_engine_statistics(engine._native)
    engine._seconds = max(engine._seconds, int(counted.nanoseconds) / 1e9)
    reached, lag = _progress(engine, int(counted.events))
    return Statistics.of(
        counted,
        engine._seconds,
        memory,
        engine._words.nbytes,
        engine._strings.memory,
        engine.threads,
        engine._predictor,
        engine._arrivals,
        engine._rejected.count,
        engine._begun is not None,
        waiting,
        reached,
        lag,
    )


def _progress(engine: Engine, events: int) -> tuple[Any, float | None]:
    """Order time of the last event applied, and how far it lies behind what has come."""
    in_flight = engine._in_flight
    if in_flight is None or not in_flight[0].count:
        lag = engine._arrivals.lag()
        return engine._reached, 0.0 if lag is None and engine._reached is not None else lag
    batch, before = in_flight
    times, numbers = batch.keys[0], batch.columns[0]
    row = min(events - before, batch.count) - 1
    reached = time_at(times, row) if row >= 0 else engine._reached
    return reached, order_distance(times.type, int(numbers[-1]), int(numbers[max(row, 0)]))
