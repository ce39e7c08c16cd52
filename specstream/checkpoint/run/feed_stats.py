"""What a feed has done so far, and how long each part of it took."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FeedStats"]


@dataclass(frozen=True)
class FeedStats:
    """What a feed has done so far; batches that failed are left out.

    Attributes:
        batches: micro-batches applied.
        repeated: batches that came again after they were applied, and were answered from the
            record.
        events: rows taken in.
        late: of these, rows that came below their source's frontier, and were not applied.
        failed: events and firings of timers whose function has raised, and that were set aside.
        rows: rows emitted.
        reading: seconds spent in fetching rows from Spark, and with ``prefetch=True`` in keeping
            them.
        running: seconds spent in the engine.
        recording: seconds spent on the checkpoint; a sink in two steps prepares meanwhile.
        writing: seconds spent in the sinks after that, which includes waiting for what they are
            still preparing. So the parts of a batch add up to the time that it took.
    """

    batches: int = 0
    repeated: int = 0
    events: int = 0
    late: int = 0
    failed: int = 0
    rows: int = 0
    reading: float = 0.0
    running: float = 0.0
    recording: float = 0.0
    writing: float = 0.0
