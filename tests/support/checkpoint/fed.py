"""A feed without Spark: batches are handed over as its callback does it, without PySpark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import specstream as ss
from specstream.checkpoint.run.batch import Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.checkpoint.run.feed_stats import FeedStats
from specstream.checkpoint.run.prefetch import Prefetch, catch_up
from specstream.checkpoint.run.stream_options import StreamOptions

__all__ = ["Fed"]


class Fed:
    """What ``BatchFeed`` does, but for what is Spark's own; with the options of foreach_batch."""

    def __init__(self, engine: ss.Engine, **options: Any) -> None:
        self.engine = engine
        self.prefetch: Prefetch | None = None
        self.runner = BatchRunner(engine, StreamOptions(**options), self._in_use)
        try:
            catch_up(self.runner)
        except BaseException:
            self.runner.close()
            raise
        if self.runner.options.prefetch:
            self.prefetch = Prefetch(self.runner)

    def _in_use(self) -> bool:
        return self.prefetch is not None and self.prefetch.busy

    @property
    def checkpoint(self) -> Checkpoint:
        """The one that it was made with."""
        assert self.runner.checkpoint is not None
        return self.runner.checkpoint

    @property
    def stats(self) -> FeedStats:
        """What was done so far."""
        return self.runner.stats

    def apply(self, batch_id: int, rows: pa.Table, query: str = "q") -> None:
        """Runs a batch that has not been applied."""
        self.runner.run(Batch(batch_id, query, rows))

    def send(self, batch_id: int, rows: pa.Table, query: str = "q") -> None:
        """What the callback does with a batch, whether it comes again or not."""
        prefetch = self.prefetch
        follows = prefetch is not None and prefetch.follows(query, batch_id)
        if not follows and self.runner.repeat(query, batch_id):
            return
        if prefetch is None:
            self.apply(batch_id, rows, query)
        else:
            prefetch.take(Batch(batch_id, query, rows))

    def wait(self) -> None:
        """Until the last batch is through."""
        if self.prefetch is not None:
            self.prefetch.wait()

    def close(self) -> None:
        """Closes the engine and the checkpoint."""
        try:
            self.wait()
        finally:
            self.runner.close()
            self.engine.close()
            if self.runner.checkpoint is not None:
                self.runner.checkpoint.close()
