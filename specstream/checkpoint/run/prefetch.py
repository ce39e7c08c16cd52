"""Batch n+1 is fetched from Spark while batch n runs.

Spark sends one batch at a time: it plans batch n+1 when the callback for batch n has returned, and
takes batch n for done by then. Inside of a batch there is little to overlap, because events have to
be put in order, for which all rows must be there. So the callback has to return before its batch
has run, and what is promised for crashes must not change by that.

It does not if the rows themselves are kept first. The callback for batch n fetches them, writes
them beside the checkpoint files, durably, waits until batch n-1 is through, hands batch n to a
thread, and returns. The thread does what the callback does otherwise: run, record, sink; then the
rows are deleted. A crash leaves the files up to some batch and the rows of at most two batches
after it, and Spark goes on with the last of these, if it was not acknowledged, or with the one
behind it. The next start first runs what was kept, in order; then the state is what Spark takes it
to be.

The price is one more file for each batch, and that what a batch raises is raised by the callback of
the batch after it, or by ``wait()``.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from specstream.checkpoint.format.store import Store
from specstream.checkpoint.run.batch import Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.errors import ConfigurationError, SnapshotError
from specstream.files.arrow_stream import stream_of
from specstream.files.untrusted import Malformed, read_table

__all__ = ["Prefetch", "catch_up", "kept_rows", "read_rows"]

_NAME = re.compile(r"([0-9]{10})\.rows")
_QUERY = b"specstream.query"


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}.rows"


def kept_rows(store: Store) -> list[int]:
    """The batches whose rows are kept, early ones first."""
    matches = map(_NAME.fullmatch, store.names())
    return sorted(int(match[1]) for match in matches if match)


def _keep(checkpoint: Checkpoint, query: str | None, rows: pa.Table, batch_id: int) -> None:
    if query is not None:
        rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), _QUERY: query})
    checkpoint.store.write(_name(batch_id), [b"", stream_of(rows)], batch_id)


def read_rows(store: Store, batch_id: int) -> tuple[str | None, pa.Table]:
    """The query and the rows that were kept of a batch.

    Raises:
        FileNotFoundError: there are none.
        SnapshotError: they are damaged.
    """
    name = _name(batch_id)
    try:
        rows = read_table(store.read(name), "it")
        query = (rows.schema.metadata or {}).get(_QUERY)
        return None if query is None else query.decode(), rows
    except (Malformed, UnicodeDecodeError) as error:
        raise SnapshotError(
            f"{name} in {store!r} cannot be used, the rows of a batch that Spark takes "
            f"for done: {error}: put a copy of it back"
        ) from None


def catch_up(runner: BatchRunner) -> None:
    """Runs the batches that were kept and are not through, in order.

    Raises:
        ConfigurationError: there are files and rows of batches that do not follow each other.
        SnapshotError: rows that were kept are damaged.
        Exception: what the operator or the sink raised; the rows stay where they are.
    """
    checkpoint = runner.checkpoint
    if checkpoint is None:
        return
    for batch_id in kept_rows(checkpoint.store):
        recorded = checkpoint.recorded
        if recorded is not None and batch_id == recorded.batch_id:
            runner.deliver(recorded.result, batch_id)  # to the sinks, which may not have had it
        elif recorded is None or batch_id == recorded.batch_id + 1:
            query, rows = read_rows(checkpoint.store, batch_id)
            runner.run(Batch(batch_id, query, rows))
        elif batch_id > recorded.batch_id:
            raise ConfigurationError(
                f"checkpoint={checkpoint.store!r} holds the state after batch "
                f"{recorded.batch_id} and the rows of batch {batch_id}; expected those of batch "
                f"{recorded.batch_id + 1}: put back what is missing, from one copy"
            )
        checkpoint.store.delete(_name(batch_id))


class Prefetch:
    """Takes batches from Spark's thread and runs them in another, one after the other.

    Args:
        runner: runs them; it has a checkpoint, beside whose files the rows are kept.
    """

    def __init__(self, runner: BatchRunner) -> None:
        assert runner.checkpoint is not None
        self._runner, self._checkpoint = runner, runner.checkpoint
        # Not a daemon: at the end of the process the interpreter waits for the batch under way.
        self._worker = ThreadPoolExecutor(1, "specstream-prefetch")
        self._running: Future[None] | None = None
        self._last: tuple[str | None, int] | None = None

    @property
    def busy(self) -> bool:
        """Whether a batch is under way."""
        return self._running is not None and not self._running.done()

    def follows(self, query: str | None, batch_id: int) -> bool:
        """Whether the batch comes right behind one that is under way.

        If not, all that was kept is run first: then the checkpoint says whether the batch may come.
        """
        if self._running is not None and self._last == (query, batch_id - 1):
            return True
        self.wait()
        catch_up(self._runner)
        return False

    def take(self, batch: Batch) -> None:
        """Has a batch run; returns when its rows cannot be lost any more.

        Raises:
            Exception: what the batch before it raised.
        """
        assert batch.rows is not None
        began = time.perf_counter()
        _keep(self._checkpoint, batch.query, batch.rows, batch.batch_id)
        batch = replace(batch, reading=batch.reading + time.perf_counter() - began)
        self.wait()
        self._last = batch.query, batch.batch_id
        self._running = self._worker.submit(self._run, batch)

    def _run(self, batch: Batch) -> None:
        self._runner.run(batch)
        self._checkpoint.store.delete(_name(batch.batch_id))

    def wait(self) -> None:
        """Waits until the last batch is through.

        Raises:
            Exception: what it raised.
        """
        running, self._running = self._running, None
        if running is not None:
            running.result()
