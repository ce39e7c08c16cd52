"""A run on the command line, looked at every so often.

A thread of its own takes the numbers, and only looks (``engine.stats``): the run does not wait for
whoever reads.
"""

from __future__ import annotations

import datetime
import threading
import time
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow.dataset

from specstream.engine.engine import Engine
from specstream.engine.statistics import Statistics
from specstream.monitoring.live import JsonLines, LiveTable, PlainLines, Progress

if TYPE_CHECKING:
    from specstream.spark.feed import BatchFeed

__all__ = ["Watch", "newest_time"]


def newest_time(dataset: pyarrow.dataset.Dataset, column: str) -> Any:
    """The last order time of Parquet files, by their own statistics; None: they do not tell."""
    newest: Any = None
    try:
        for fragment in dataset.get_fragments():
            for group in fragment.row_groups:
                last = group.statistics[column]["max"]
                newest = last if newest is None else max(newest, last)
    except (KeyError, TypeError):
        return None
    return newest


def order_number(value: Any) -> float:
    """A value of an order column as a number: seconds where it is a time.

    >>> order_number(datetime.datetime(1970, 1, 2)), order_number(datetime.date(1970, 1, 3))
    (86400.0, 172800.0)
    """
    if isinstance(value, datetime.datetime):
        zone = value.tzinfo or datetime.UTC
        return value.replace(tzinfo=zone).timestamp()
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).total_seconds()
    return float(value)


@dataclass(frozen=True)
class _Look:
    at: float
    stats: Statistics


class Watch:
    """Looks at a run every so often and has the numbers shown, from ``begin`` on until its end.

    Args:
        engine: a new one, which works for this run alone.
        feed: of the run.
        rows: of the whole input.
        newest: the last order time of the input; None: not known.
        to: shows the numbers.
        every: seconds from look to look.
    """

    def __init__(
        self,
        engine: Engine,
        feed: BatchFeed,
        *,
        rows: int,
        newest: Any,
        to: JsonLines | LiveTable | PlainLines,
        every: float,
    ) -> None:
        self._engine, self._feed = engine, feed
        self._rows, self._newest = rows, newest
        self._to = to
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="specstream-watch", daemon=True)
        self._started = 0.0

    def __enter__(self) -> Watch:
        self._to.wait()
        return self

    def begin(self) -> None:
        """Spark is there, and the run begins."""
        self._started = time.perf_counter()
        self._to.begin()
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._to.close(failed=kind is not None)

    def _watch(self) -> None:
        before = self._look()
        while not self._over.wait(self._every):
            now = self._look()
            try:
                self._to.show(self._progress(before, now))
            except OSError:
                return  # nobody reads any more
            before = now

    def _look(self) -> _Look:
        return _Look(time.perf_counter(), self._engine.stats)

    def _progress(self, before: _Look, now: _Look) -> Progress:
        stats, earlier = now.stats, before.stats
        seconds = max(now.at - before.at, 1e-9)
        commits = stats.commits - earlier.commits
        aborts = sum(stats.aborts.values()) - sum(earlier.aborts.values())
        reached = stats.to_dict()["reached"]
        lag = stats.lag
        # Firings that failed are of no row.
        done = stats.events + stats.failed_events - stats.failed_timers
        done += stats.rejected_rows + stats.late
        if self._newest is not None and stats.reached is not None:
            lag = order_number(self._newest) - order_number(stats.reached)
        return {
            "event": "progress",
            "operator": self._engine.name,
            "seconds": round(now.at - self._started, 3),
            "batches": self._feed.stats.batches,
            "rows_in": stats.events,
            "rows_out": self._feed.stats.rows,
            # How many rows a source without Spark has is not known: those that wait are.
            "rows_pending": max(self._rows - done, stats.pending),
            "failed": stats.failed_events,
            "events_per_second": (stats.events - earlier.events) / seconds,
            "commits": stats.commits,
            "commits_per_second": commits / seconds,
            "commit_rate": commits / (commits + aborts) if commits + aborts else None,
            "aborts": dict(stats.aborts),
            "aborts_per_second": aborts / seconds,
            "threads": stats.threads,
            "horizon": stats.horizon,
            "chunk": stats.chunk,
            "one_core": stats.why_one_core or None,
            "wait_queue": stats.waiting,
            "reached": reached,
            "lag": lag,
            "lag_is_time": isinstance(stats.reached, datetime.date),
            "memory": stats.memory + stats.state_bytes + stats.string_bytes,
            "early": None if stats.early is None else asdict(stats.early),
        }
