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

With a watermark, events outlive their batch: what a batch begins with is state and waiting events,
and both come back on any error. `event_time.py` says which events wait.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JError

from specstream.checkpoint.checkpoint import Answer, Checkpoint, Recorded
from specstream.checkpoint.delivery import Deliveries, Portion, Sink, is_sink, portions
from specstream.checkpoint.event_time import Amount, EventTime, check_late
from specstream.checkpoint.failpoints import reached
from specstream.checkpoint.inputs import Inputs
from specstream.checkpoint.prefetch import Ahead, catch_up
from specstream.engine.engine import Engine
from specstream.engine.snapshot import Migrate
from specstream.engine.sources import Late, Name, checked_sources
from specstream.engine.statistics import Statistics
from specstream.errors import ConfigurationError, EngineClosedError, InputError
from specstream.spark.fetching import reason, result_is_too_large
from specstream.spark.listener import BatchFigures, BatchLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchFeed", "FeedStats", "Sink", "foreach_batch"]


@dataclass(frozen=True)
class FeedStats:
    """What a feed has done so far; batches that failed are left out.

    Attributes:
        batches: micro-batches applied.
        repeated: batches that came again after they were applied, and were answered from the
            record.
        events: rows taken in.
        late: of these, rows that came below their source's frontier, and were not applied.
        rows: rows emitted.
        reading: seconds spent in fetching rows from Spark, and with ``ahead=True`` in keeping
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
        self.answer: Answer | None = None
        self.finished = False

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
        keep_batches: int = 0,
        bad_rows_to: Sink | None = None,
        migrate: Migrate | None = None,
        ahead: bool = False,
        watermark: Amount | None = None,
        idle_timeout: Amount | None = None,
        sources: Iterable[Name] = (),
        late: Late | None = None,
        late_to: Sink | None = None,
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
        if not is_sink(to):
            raise ConfigurationError(
                f"to={to!r}: expected a sink such as ss.spark.parquet_sink(path), or any function "
                "(pyarrow.Table, batch_id)"
            )
        if migrate is not None and checkpoint is None:
            raise ConfigurationError(
                "migrate= converts the fields of a checkpoint: give checkpoint= as well"
            )
        _check_keep(keep_batches, checkpoint)
        _check_bad_rows(engine, bad_rows_to)
        if ahead and checkpoint is None:
            raise ConfigurationError(
                "ahead=True lets Spark go on before a batch has run, and keeps its rows beside the "
                "images until then: give checkpoint= as well"
            )
        self.engine = engine
        self.order_by = order_by
        self.source = source
        self.to = to
        self.late_to = late_to
        self.bad_rows_to = bad_rows_to
        self.error: Exception | None = None
        self.stats = FeedStats()
        self._tenancy = _tenancy(engine)
        self._log = BatchLog(self)
        self._query_run: str | None = None
        self._ahead: Ahead | None = None
        self._delivered: int | None = None  # batch that the sinks have had
        self._deliveries = Deliveries()
        self._event_time = None
        if watermark is not None:
            if order_by is None:
                raise ConfigurationError(
                    f"watermark={watermark!r} without order_by: give order_by=, the column of the "
                    "event time, as well"
                )
            check_late(engine.durable.late if late is None else late, late_to)
            self._event_time = EventTime(
                engine,
                order_by=order_by,
                watermark=watermark,
                source=source,
                idle_timeout=idle_timeout,
                sources=sources,
                late=late,
            )
        elif (
            idle_timeout is not None
            or checked_sources(sources)
            or late is not None
            or late_to is not None
        ):
            raise ConfigurationError(
                "idle_timeout, sources, late and late_to are about events that wait for a "
                "watermark: give watermark= as well, or leave them out"
            )
        self.checkpoint = (
            None
            if checkpoint is None
            else Checkpoint(
                engine,
                checkpoint,
                migrate=migrate,
                in_use=self._in_use,
                keep_batches=keep_batches,
                # The other options may change: docs/spark.md says what follows then.
                settings={
                    "order_by": order_by,
                    "source": source,
                    "watermark": None if watermark is None else "given",
                },
            )
        )
        self._inputs: Inputs | None = None
        if self.checkpoint is not None:
            in_time = None if self._event_time is None else self._event_time.describe()
            place = self.checkpoint.place
            self._inputs = Inputs(place, engine, keep_batches, order_by, source, in_time)
            # Also without ahead=: the program may have had it before.
            try:
                catch_up(self.checkpoint, self._apply, self._deliver_recorded)
            except BaseException:
                self._deliveries.close()
                raise
            if ahead:
                self._ahead = Ahead(self.checkpoint, self._apply, self._deliver_recorded)

    def _in_use(self) -> bool:
        return self._tenancy.in_use() or (self._ahead is not None and self._ahead.busy)

    def wait(self) -> None:
        """Waits until the last batch that Spark has handed over is in the sink.

        With ``ahead=True`` that may be after the query has ended; otherwise there is nothing to
        wait for.

        Raises:
            Exception: what that batch raised.
        """
        if self._ahead is not None:
            self._ahead.wait()

    def close(self) -> None:
        """Waits until the last batch is in the sink, and closes the engine and the checkpoint.

        Raises:
            Exception: what that batch raised; all is closed nevertheless.
        """
        try:
            self.wait()
        finally:
            self._deliveries.close()
            self.engine.close()
            if self.checkpoint is not None:
                self.checkpoint.close()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Runs one micro-batch; Spark calls this."""
        self.error = None
        try:
            self._run(frame, batch_id)
        except Py4JError as error:
            # The Java exception is tied to a call that stop() may have cut short; Spark gets a
            # fresh one, which fails the batch.
            why = reason(error)
            way_out = (
                ". Start it again in a session with a larger spark.driver.maxResultSize (0: no "
                "limit), because this batch stays as it is; later ones are smaller with less for "
                "each trigger: maxFilesPerTrigger, maxBytesPerTrigger, maxOffsetsPerTrigger"
            )
            self.error = RuntimeError(
                f"{self._what(batch_id)}: Spark failed or was stopped while its rows were read or "
                f"written ({why}); the batch is not acknowledged, and comes again when the query "
                f"is started again{way_out if result_is_too_large(why) else ''}"
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
            ahead = self._ahead
            if ahead is None or not ahead.follows(query, batch_id):
                # Nothing is under way now: the run of the query may be another one.
                self._query_run = run
                if self._is_over(query, batch_id):
                    return
                recorded = self._recorded(query, batch_id)
                if recorded is not None:
                    # Applied already; Spark was stopped before it could note that. Applying it
                    # once more would count its events twice.
                    self._deliver(recorded, batch_id)
                    self.stats = replace(self.stats, repeated=self.stats.repeated + 1)
                    self._note(query, batch_id, before)
                    return
            if ahead is not None:
                ahead.take(query, lambda: self._needed(frame, batch_id).toArrow(), batch_id)
                return
            began = time.perf_counter()
            table = self._needed(frame, batch_id).toArrow()
            self._apply(query, table, batch_id, time.perf_counter() - began)
        finally:
            tenancy.turn.release()

    def _recorded(self, query: str | None, batch_id: int) -> Answer | None:
        """What a batch that was applied has for the sinks; None if it was not."""
        if self.checkpoint is not None:
            output = self.checkpoint.answer(query, batch_id)
            # An empty one may have been given to an engine that has worked for the query before.
            if self.checkpoint.recorded is not None:
                return None if output is None else self.checkpoint.recorded.answer
        tenancy = self._tenancy
        return tenancy.answer if query is not None and batch_id == tenancy.batch_id else None

    def _is_over(self, query: str | None, batch_id: int) -> bool:
        """Whether finish() came after this batch, which Spark has not acknowledged.

        Raises:
            ConfigurationError: it came, and the batch is one that follows.
        """
        checkpoint, tenancy = self.checkpoint, self._tenancy
        if checkpoint is not None and checkpoint.is_over(query, batch_id):
            return True
        recorded = checkpoint is not None and checkpoint.recorded is not None
        if recorded or not tenancy.finished:
            return False  # what a checkpoint has recorded it says itself
        if tenancy.batch_id is not None and batch_id == tenancy.batch_id - 1:
            return True
        raise ConfigurationError(
            f"{self._what(batch_id)}: finish() has ended the stream of this engine; begin a new "
            "one with a new engine, or let events wait, instead of calling finish(), where more "
            "can come"
        )

    def _portions(self, answer: Answer, batch_id: int) -> list[Portion]:
        what = self._what(batch_id)
        return portions(answer, self.to, self.late_to, self.bad_rows_to, what)

    def _deliver(self, answer: Answer, batch_id: int) -> None:
        """Gives the sinks what a batch has for them."""
        with self._deliveries.of(batch_id) as delivery:
            delivery.prepare(self._portions(answer, batch_id))
            delivery.commit()
        self._delivered = batch_id

    def _deliver_recorded(self, recorded: Recorded) -> None:
        self._deliver(recorded.answer, recorded.batch_id)

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
        tenancy.query, tenancy.batch_id, tenancy.answer = query, None, None
        tenancy.session = frame.sparkSession

    def _apply(self, query: str | None, table: pa.Table, batch_id: int, reading: float) -> None:
        """Runs a batch whose rows took so many seconds to fetch: events, image, sinks."""
        if self.checkpoint is not None and self._inputs is not None:
            self._inputs.begin(batch_id, query, table, self.checkpoint.image)
        before = self.stats, self.engine.stats
        self._run_whole(query, batch_id, lambda: self._events(table), table.num_rows, reading)
        self._note(query, batch_id, before)

    def _note(self, query: str | None, batch_id: int, before: tuple[FeedStats, Statistics]) -> None:
        """Keeps the figures of a batch for who watches."""
        after = self.stats, self.engine.stats
        self._log.note(BatchFigures(query, self._query_run, batch_id, before, after))

    def _events(self, table: pa.Table) -> pa.Table:
        try:
            if self._event_time is not None:
                return self._event_time.run(table)
            return self.engine.process(table, order_by=self.order_by, source=self.source)
        except BaseException as error:
            if self._inputs is not None:
                self._inputs.failed(error)
            raise

    def _run_whole(
        self,
        query: str | None,
        batch_id: int,
        run: Callable[[], pa.Table],
        events: int = 0,
        reading: float = 0.0,
        finished: bool = False,
    ) -> None:
        """A batch, applied, recorded and given to the sinks; or nothing of it."""
        tenancy, checkpoint = self._tenancy, self.checkpoint
        started = time.perf_counter()
        reached("before-run", batch_id)
        late_before = self.engine.durable.pending.late
        mark = self.engine.savepoint() if checkpoint is None else checkpoint.mark()
        with self._deliveries.of(batch_id) as delivery:
            try:
                answer = Answer(
                    run(),
                    None if self._event_time is None else self.engine.late(),
                    None if self.bad_rows_to is None else self.engine.rejected_rows(),
                )
                emitted = recorded = time.perf_counter()
                delivery.prepare(self._portions(answer, batch_id))
                if checkpoint is None:
                    delivery.commit()
                else:
                    checkpoint.record(query, batch_id, *answer, finished=finished)
                    recorded = time.perf_counter()
            except BaseException:
                if checkpoint is not None:
                    mark = checkpoint.mark()  # of what is recorded: with this batch, or without it
                # A closed engine has no state to restore; what must be seen is the first error.
                with contextlib.suppress(EngineClosedError):
                    self.engine.rollback(mark)
                raise
            tenancy.batch_id, tenancy.answer = batch_id, answer
            tenancy.finished = finished
            if checkpoint is not None:
                if self._inputs is not None:
                    self._inputs.applied(batch_id)
                reached("before-sink", batch_id)
                delivery.commit()
                reached("after-sink", batch_id)
        self._delivered = batch_id
        stats = self.stats
        self.stats = FeedStats(
            batches=stats.batches + 1,
            repeated=stats.repeated,
            events=stats.events + events,
            late=stats.late + self.engine.durable.pending.late - late_before,
            rows=stats.rows + answer.output.num_rows,
            reading=stats.reading + reading,
            running=stats.running + emitted - started,
            recording=stats.recording + recorded - emitted,
            writing=stats.writing + time.perf_counter() - recorded,
        )

    def finish(self) -> None:
        """Ends the stream: commits the events that wait for the watermark, and gives their rows on.

        The sinks get them under the batch id that follows the last one. Afterwards no batch is
        taken any more. Call it when the query has ended, and only where nothing more can come:
        events that wait are kept by the engine, and by the checkpoint, until the query goes on.
        It may be called again, also after a crash: all calls give the sinks the same rows.

        Raises:
            ConfigurationError: the feed has no watermark, or its query still runs.
            Exception: what the operator or a sink raised; state and waiting events are as before.
        """
        if self._event_time is None:
            raise ConfigurationError(
                "finish() without watermark=: all events are applied with their batch, and nothing "
                "waits"
            )
        tenancy = self._tenancy
        if tenancy.in_use():
            raise ConfigurationError(
                f"operator {self.engine.name!r}: finish() while the query {tenancy.query} runs: "
                "stop it, or await its end, first"
            )
        self.wait()
        with tenancy.turn:
            query, last, finished = tenancy.query, tenancy.batch_id, tenancy.finished
            answer = tenancy.answer
            if self.checkpoint is not None and self.checkpoint.recorded is not None:
                recorded = self.checkpoint.recorded
                query, last, finished = recorded.query, recorded.batch_id, recorded.finished
                answer = recorded.answer
            if last is None or answer is None:
                return  # no batch has come
            if self._delivered != last:
                self._deliver(answer, last)
            if not finished:
                self._run_whole(query, last + 1, self._event_time.finish, finished=True)

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
        # Late and bad rows go on as they came. And where all columns are read, another plan for the
        # same rows would have to be analysed first.
        whole = self.late_to is not None or self.bad_rows_to is not None
        if whole or sorted(frame.columns) == sorted(needed):
            return frame
        # Backticks, or Spark would take a dot in a name for the field of a struct.
        return frame.select(*("`" + column.replace("`", "``") + "`" for column in needed))


def _check_keep(keep_batches: int, checkpoint: object) -> None:
    if isinstance(keep_batches, bool) or not isinstance(keep_batches, int) or keep_batches < 0:
        raise ConfigurationError(
            f"keep_batches={keep_batches!r}: expected the number of batches whose rows are kept "
            "for replay; 0 keeps those of a batch that fails"
        )
    if keep_batches and checkpoint is None:
        raise ConfigurationError(
            f"keep_batches={keep_batches} keeps rows beside a checkpoint: give checkpoint= as well"
        )


def _check_bad_rows(engine: Engine, sink: object) -> None:
    if sink is None:
        return
    if not is_sink(sink):
        raise ConfigurationError(
            f"bad_rows_to={sink!r}: expected a sink such as ss.spark.parquet_sink(path), or any "
            "function (pyarrow.Table, batch_id)"
        )
    if engine.durable.rejected.policy != "side":
        raise ConfigurationError(
            f"bad_rows_to= gets the rows that the engine of {engine.name!r} leaves out, and it "
            'leaves out none: make it with rejected_rows="side"'
        )


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
    keep_batches: int = 0,
    bad_rows_to: Sink | None = None,
    migrate: Migrate | None = None,
    ahead: bool = False,
    watermark: Amount | None = None,
    idle_timeout: Amount | None = None,
    sources: Iterable[Name] = (),
    late: Late | None = None,
    late_to: Sink | None = None,
) -> BatchFeed:
    """A callback for Spark's ``foreachBatch`` that runs each micro-batch through an engine.

    Inside a micro-batch the events run in the order (``order_by``, ``source``, position in the
    batch); batches run in the order of their ids. The engine's state lives on from batch to batch.
    When anything raises, the operator, the engine or the sink, the state is put back to the start
    of the batch and the query fails; started again with the same engine, Spark runs that batch
    again and it emits the same rows. Two queries need two engines.

    With ``watermark`` the order is that of the event time across batches as well: an event commits
    when no earlier one is to be expected any more, in this batch or a later one. Until then it
    waits in the engine, and in the checkpoint.

    Args:
        engine: the engine; it must stay open while the query runs.
        order_by: column of the event time; without it rows run in the order in which Spark
            delivers them, which is the order of the file only with one file per trigger.
        source: column that tells apart the sources of events with equal times.
        to: a sink such as :func:`specstream.spark.parquet_sink`, any function
            ``(pyarrow.Table, batch_id)``, or an object with ``prepare(pyarrow.Table, batch_id)``,
            which stores the rows unseen while the checkpoint is written, and returns an object with
            ``commit()`` and ``abort()``. It is called once for each batch, also with no rows, and
            again for a batch that is run again. To be exact through crashes it must be idempotent
            by batch id: two calls with one id leave what one leaves. With ``checkpoint`` all calls
            with one id have the same rows.
        checkpoint: a directory of this query's own, beside Spark's ``checkpointLocation`` and
            never inside it: a path, or a URI that ``pyarrow.fs.FileSystem.from_uri`` reaches. It is
            made if it is not there. What it holds comes before the state that the engine has.
        keep_batches: with ``checkpoint``: so many batches, the latest ones, can be replayed by
            ``specstream replay``: their rows are kept as well, and the images that lead to them.
            Whatever it is, the rows of a batch that fails are kept until it has been applied.
        bad_rows_to: a second sink, for the rows that an engine made with ``rejected_rows="side"``
            leaves out: as they came, with a last column ``reason``. It is called after ``to``, for
            the batches that have such rows, and what is said of ``to`` holds for it as well.
            Without it they are in ``engine.rejected_rows()``.
        migrate: with ``checkpoint``: see :meth:`specstream.Engine.restore`.
        ahead: with ``checkpoint``: Spark goes on to the next batch when the rows of this one are on
            disk, and it runs meanwhile. Call :meth:`BatchFeed.wait` after the query has ended: the
            last batch may still be under way. What a batch raises is raised by the batch after it,
            or by ``wait``.
        watermark: how far events may come out of order: a source's frontier stays so far behind
            its largest time. A duration such as ``"10 seconds"`` or a ``timedelta`` for timestamps
            and dates; for columns of numbers, a number in the column's own unit.
        idle_timeout: a source does not hold back the others once they are ahead of it, in event
            time, by more than this; likewise one of ``sources`` that never sent anything, counted
            from the stream's first time. None: every source holds back the stream.
        sources: names of sources, as the column ``source`` has them, that the stream waits for from
            the start; others join with their first event, where the frontier stands then.
        late: what happens to rows below their source's frontier: "error" fails the batch, "drop"
            counts them, "side" counts them and gives them to ``late_to``. None: as the engine was
            made, which is "error" by default.
        late_to: a sink for late rows, with all columns of the stream; called after ``to``, with the
            same batch id, for batches that have any.

    Returns:
        The callback.

    Raises:
        ConfigurationError: an argument is not what it must be, or ``checkpoint`` is in use.
        SnapshotError: ``checkpoint`` is of another operator or layout (names the field), or of a
            query with another ``order_by``, ``source`` or seed, or with ``watermark`` and now
            without or the other way round (names the option); or nothing in it is whole.
    """
    return BatchFeed(
        engine,
        order_by=order_by,
        source=source,
        to=to,
        checkpoint=checkpoint,
        keep_batches=keep_batches,
        bad_rows_to=bad_rows_to,
        migrate=migrate,
        ahead=ahead,
        watermark=watermark,
        idle_timeout=idle_timeout,
        sources=sources,
        late=late,
        late_to=late_to,
    )
