"""Micro-batches into an engine, emitted rows out to a sink.

Spark runs the callback of a streaming query on a thread of its own, one batch at a time, and
acknowledges batch N when the callback returns. When the callback raises, the query stops; the
next start of the query runs batch N again, with the same rows. So the state must be at the start
of batch N whenever the callback raises, whatever it raises.

Two more facts decide the shape of this file. A `BaseException` that is not an `Exception`, such
as `SystemExit`, never reaches Spark: the query would hang in silence. And stopping a query while
its callback fetches rows makes the fetch raise; if the callback returned normally after that,
Spark would acknowledge a batch that nobody processed.

With a checkpoint, the batch is recorded between the engine and the sink; `checkpoint.py` says why
there. Then a sink that raises undoes nothing: the batch comes again, and the sink gets its rows
from the record.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JError

from specstream.engine import Engine
from specstream.errors import ConfigurationError, EngineClosedError, InputError
from specstream.snapshot import Migrate
from specstream.spark.checkpoint import Checkpoint
from specstream.spark.listener import BatchFigures, BatchLog
from specstream.spark.steps import reached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchFeed", "FeedStats", "Sink", "foreach_batch"]

Sink = Callable[[pa.Table, int], object]


@dataclass(frozen=True)
class FeedStats:
    """What a feed has done so far; batches that failed are left out.

    Attributes:
        batches: micro-batches applied.
        repeated: batches that came again after they were applied, and were answered from the
            record.
        events: rows taken in.
        rows: rows emitted.
        reading: seconds spent in fetching rows from Spark.
        running: seconds spent in the engine.
        recording: seconds spent on the checkpoint.
        writing: seconds spent in the sink.
    """

    batches: int = 0
    repeated: int = 0
    events: int = 0
    rows: int = 0
    reading: float = 0.0
    running: float = 0.0
    recording: float = 0.0
    writing: float = 0.0


class _Tenancy:
    """Which query an engine works for, and the last batch that it applied for it."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.query: str | None = None
        self.session: SparkSession | None = None
        self.batch_id: int | None = None
        self.output: pa.Table | None = None

    def in_use(self) -> bool:
        """Whether a batch is under way, or the query may send one."""
        if self.turn.locked():
            return True
        if self.query is None or self.session is None:
            return False
        try:
            return _is_active(self.query, self.session)
        except (Py4JError, OSError):  # the JVM has ended, and its queries with it
            return False


_tenancies: weakref.WeakKeyDictionary[Engine, _Tenancy] = weakref.WeakKeyDictionary()
_tenancies_guard = threading.Lock()


def _tenancy(engine: Engine) -> _Tenancy:
    with _tenancies_guard:
        return _tenancies.setdefault(engine, _Tenancy())


class BatchFeed:
    """The callback for ``foreachBatch``; made by :func:`foreach_batch`.

    Attributes:
        engine: the engine that the rows go to.
        error: what the last call raised, as it was raised; None after a call that succeeded.
            Spark passes on only its text.
        stats: a frozen record of what was done so far.
        checkpoint: the images that are written, or None.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        order_by: str | None = None,
        source: str | None = None,
        to: Sink,
        checkpoint: str | os.PathLike[str] | None = None,
        migrate: Migrate | None = None,
    ) -> None:
        if not isinstance(engine, Engine):
            raise ConfigurationError(
                f"engine={engine!r}: foreach_batch expects an ss.Engine, like "
                "foreach_batch(ss.Engine(operator), ...)"
            )
        for option, column in (("order_by", order_by), ("source", source)):
            if column is not None and not isinstance(column, str):
                raise ConfigurationError(
                    f"{option}={column!r}: expected the name of a column or None"
                )
        if not callable(to):
            raise ConfigurationError(
                f"to={to!r}: expected a sink such as ss.spark.parquet_sink(path), or any function "
                "(pyarrow.Table, batch_id)"
            )
        if migrate is not None and checkpoint is None:
            raise ConfigurationError(
                "migrate= converts the fields of a checkpoint: give checkpoint= as well"
            )
        self.engine = engine
        self.order_by = order_by
        self.source = source
        self.to = to
        self.error: Exception | None = None
        self.stats = FeedStats()
        self._tenancy = _tenancy(engine)
        self._log = BatchLog(self)
        self.checkpoint = (
            None
            if checkpoint is None
            else Checkpoint(engine, checkpoint, migrate=migrate, in_use=self._tenancy.in_use)
        )

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Runs one micro-batch; Spark calls this."""
        self.error = None
        try:
            self._run(frame, batch_id)
        except Py4JError as error:
            # The Java exception is tied to a call that stop() may have cut short; Spark gets a
            # fresh one, which fails the batch.
            self.error = RuntimeError(
                f"{self._what(batch_id)}: Spark failed or was stopped while its rows were read or "
                f"written ({_first_line(error)}); the batch is not acknowledged, and comes again "
                "when the query is started again"
            )
            raise self.error from None
        except Exception as error:
            self.error = error
            raise
        except BaseException as error:
            self.error = RuntimeError(
                f"{self._what(batch_id)}: {type(error).__name__} raised in the callback of a "
                "streaming query, which must raise ordinary exceptions only; the batch is not "
                "acknowledged"
            )
            raise self.error from error

    def _what(self, batch_id: int) -> str:
        return f"operator {self.engine.name!r}, batch {batch_id}"

    def _run(self, frame: DataFrame, batch_id: int) -> None:
        tenancy = self._tenancy
        if not tenancy.turn.acquire(blocking=False):
            raise ConfigurationError(
                f"{self._what(batch_id)}: the engine is busy with a batch of another query; use "
                "one engine per query"
            )
        try:
            query, run = _query_id(frame), _run_id(frame)
            before = self.stats, self.engine.stats
            self._move_in(query, frame, batch_id)
            recorded = self._recorded(query, batch_id)
            if recorded is not None:
                # Applied already; Spark was stopped before it could note that. Applying it
                # once more would count its events twice.
                self.to(recorded, batch_id)
                self.stats = replace(self.stats, repeated=self.stats.repeated + 1)
            else:
                self._apply(query, frame, batch_id)
            after = self.stats, self.engine.stats
            self._log.note(BatchFigures(query, run, batch_id, before, after))
        finally:
            tenancy.turn.release()

    def _recorded(self, query: str | None, batch_id: int) -> pa.Table | None:
        """The rows of a batch that was applied; None if it was not."""
        if self.checkpoint is not None:
            answer = self.checkpoint.answer(query, batch_id)
            # An empty one may have been given to an engine that has worked for the query before.
            if self.checkpoint.recorded is not None:
                return answer
        tenancy = self._tenancy
        return tenancy.output if query is not None and batch_id == tenancy.batch_id else None

    def _move_in(self, query: str | None, frame: DataFrame, batch_id: int) -> None:
        """Ties the engine to a query, unless a query that still runs has it."""
        tenancy = self._tenancy
        if tenancy.query == query:
            return
        if tenancy.query is not None and _is_active(tenancy.query, frame.sparkSession):
            raise ConfigurationError(
                f"{self._what(batch_id)}: the engine already works for the streaming query "
                f"{tenancy.query}, which is still running; use one engine per query, because the "
                "batches of two queries have no order between them"
            )
        tenancy.query, tenancy.batch_id, tenancy.output = query, None, None
        tenancy.session = frame.sparkSession

    def _apply(self, query: str | None, frame: DataFrame, batch_id: int) -> None:
        tenancy, checkpoint = self._tenancy, self.checkpoint
        started = time.perf_counter()
        table = self._needed(frame, batch_id).toArrow()
        fetched = time.perf_counter()
        reached("before-run", batch_id)
        mark = self.engine.mark() if checkpoint is None else checkpoint.mark()
        try:
            output = self.engine.process(table, order_by=self.order_by, source=self.source)
            emitted = recorded = time.perf_counter()
            if checkpoint is None:
                self.to(output, batch_id)
            else:
                checkpoint.record(query, batch_id, output)
                recorded = time.perf_counter()
        except BaseException:
            if checkpoint is not None:
                mark = checkpoint.mark()  # of what is recorded: with this batch, or without it
            # A closed engine has no state to restore; what must be seen is the first error.
            with contextlib.suppress(EngineClosedError):
                self.engine.rewind(mark)
            raise
        tenancy.batch_id, tenancy.output = batch_id, output
        if checkpoint is not None:
            reached("before-sink", batch_id)
            self.to(output, batch_id)
            reached("after-sink", batch_id)
        stats = self.stats
        self.stats = FeedStats(
            batches=stats.batches + 1,
            repeated=stats.repeated,
            events=stats.events + table.num_rows,
            rows=stats.rows + output.num_rows,
            reading=stats.reading + fetched - started,
            running=stats.running + emitted - fetched,
            recording=stats.recording + recorded - emitted,
            writing=stats.writing + time.perf_counter() - recorded,
        )

    def _needed(self, frame: DataFrame, batch_id: int) -> DataFrame:
        """The columns that the operator reads; a missing one is named before rows are fetched."""
        needed = dict.fromkeys(self.engine.operator.event.names, "the operator reads")
        if self.order_by is not None:
            needed.setdefault(self.order_by, "order_by= names")
        if self.source is not None:
            needed.setdefault(self.source, "source= names")
        for column, why in needed.items():
            if column not in frame.columns:
                raise InputError(
                    f"{self._what(batch_id)}: {why} column {column!r}, which the stream has not "
                    f"(columns: {', '.join(frame.columns)}): select or rename it before writeStream"
                )
        # Backticks, or Spark would take a dot in a name for the field of a struct.
        return frame.select(*("`" + column.replace("`", "``") + "`" for column in needed))


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _query_id(frame: DataFrame) -> str | None:
    """The id of the query that a batch belongs to; None for a call by hand.

    The id stays the same when a query is started again from its checkpoint.
    """
    found: str | None = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    return found


def _run_id(frame: DataFrame) -> str | None:
    """The id of the query's present run: another one whenever it is started."""
    found: str | None = frame.sparkSession.sparkContext.getLocalProperty("spark.jobGroup.id")
    return found


def _is_active(query: str, session: SparkSession) -> bool:
    """Whether a query of that id runs in this Spark application."""
    # The batch's session is a clone, whose own list of queries is empty; the list that all
    # sessions share is reached through the JVM.
    active = session._jsparkSession.sharedState().activeStreamingQueries()
    uuid = session._jvm.java.util.UUID.fromString(query)  # type: ignore[union-attr]
    return bool(active.containsKey(uuid))


def foreach_batch(
    engine: Engine,
    *,
    order_by: str | None = None,
    source: str | None = None,
    to: Sink,
    checkpoint: str | os.PathLike[str] | None = None,
    migrate: Migrate | None = None,
) -> BatchFeed:
    """A callback for Spark's ``foreachBatch`` that runs each micro-batch through an engine.

    Inside a micro-batch the events run in the order (``order_by``, ``source``, position in the
    batch); batches run in the order of their ids. The engine's state lives on from batch to batch.
    When anything raises, the operator, the engine or the sink, the state is put back to the start
    of the batch and the query fails; started again with the same engine, Spark runs that batch
    again and it emits the same rows. Two queries need two engines.

    Args:
        engine: the engine; it must stay open while the query runs.
        order_by: column of the event time; without it rows run in the order in which Spark
            delivers them, which is the order of the file only with one file per trigger.
        source: column that tells apart the sources of events with equal times.
        to: a sink such as :func:`specstream.spark.parquet_sink`, or any function
            ``(pyarrow.Table, batch_id)``. It is called once for each batch, also with no rows, and
            again for a batch that is run again. To be exact through crashes it must be idempotent
            by batch id: two calls with one id leave what one leaves. With ``checkpoint`` all calls
            with one id have the same rows.
        checkpoint: a directory of this query's own, beside Spark's ``checkpointLocation`` and
            never inside it: a path, or a URI that ``pyarrow.fs.FileSystem.from_uri`` reaches. It is
            made if it is not there. What it holds comes before the state that the engine has.
        migrate: with ``checkpoint``: see :meth:`specstream.Engine.restore`.

    Returns:
        The callback.

    Raises:
        ConfigurationError: an argument is not what it must be, or ``checkpoint`` is in use.
        SnapshotError: ``checkpoint`` is of another operator or layout (names the field), or nothing
            in it is whole.
    """
    return BatchFeed(
        engine, order_by=order_by, source=source, to=to, checkpoint=checkpoint, migrate=migrate
    )
