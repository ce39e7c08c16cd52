"""How a feed and its engine stood before and after each of the latest batches, for who watches.

Whoever watches a query looks from another thread, and perhaps long after a batch is over. So the
figures of the latest batches are kept, each with query, run and batch id.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from dataclasses import asdict, dataclass, fields
from typing import Any

from specstream.checkpoint.run.feed_stats import FeedStats
from specstream.engine.statistics import Statistics

__all__ = ["BatchFigures", "BatchLog", "figures_of"]

Record = dict[str, Any]

# Batches that a feed remembers; who lags farther behind finds nothing.
REMEMBERED = 256
# Figures of an engine that add up; those of one batch are told as well.
ADDED_UP = ("events", "commits", "head_runs", "speculative_runs", "reruns", "late", "seconds")


@dataclass(frozen=True)
class BatchFigures:
    """How a feed and its engine stood after a batch, and before it."""

    query: str | None
    run: str | None
    batch_id: int
    before: tuple[FeedStats, Statistics]
    after: tuple[FeedStats, Statistics]

    def record(self, operator: str) -> Record:
        """As plain data: what the batch took, and the totals."""
        (feed_before, before), (feed, stats) = self.before, self.after
        took = {
            field.name: getattr(feed, field.name) - getattr(feed_before, field.name)
            for field in fields(feed)
            if isinstance(getattr(feed, field.name), int | float)
        }
        engine: Record = {name: getattr(stats, name) - getattr(before, name) for name in ADDED_UP}
        engine["aborts"] = {
            reason: count - before.aborts[reason] for reason, count in stats.aborts.items()
        }
        return {
            "operator": operator,
            "batch": {**took, "engine": engine},
            "feed": asdict(feed),
            "engine": stats.to_dict(),
        }


class BatchLog:
    """The latest batches of one feed, for listeners; they are on other threads."""

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self._figures: deque[BatchFigures] = deque(maxlen=REMEMBERED)
        self._queries: set[str] = set()

    def note(self, figures: BatchFigures) -> None:
        """A batch is over, and Spark has not told of it yet."""
        query = figures.query
        if query is None:
            return  # the callback was called by hand
        self._figures.append(figures)
        if query not in self._queries:
            self._queries.add(query)
            with _logs_guard:
                _logs.setdefault(query, weakref.WeakSet()).add(self)

    def find(self, query: str, run: str, batch_id: int) -> BatchFigures | None:
        """The figures of a batch; None: this feed had no part in it."""
        for figures in reversed(self._figures.copy()):
            if (figures.query, figures.run, figures.batch_id) == (query, run, batch_id):
                return figures
        return None


# By query id; one query may feed several engines, one after the other in its callback.
_logs: dict[str, weakref.WeakSet[BatchLog]] = {}
_logs_guard = threading.Lock()


def figures_of(query: str, run: str, batch_id: int) -> list[Record]:
    """The figures of a batch, one record for each engine that took part in it."""
    with _logs_guard:
        mine = sorted(_logs.get(query, ()), key=lambda one: one.operator)
    found = [(one.operator, one.find(query, run, batch_id)) for one in mine]
    return [figures.record(operator) for operator, figures in found if figures is not None]
