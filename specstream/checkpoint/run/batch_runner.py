"""The way of a batch: run, recorded, given to the sinks; or nothing of it.

A batch comes from whoever has its rows: Spark's callback, the thread that runs what was prefetched,
a restart that catches up, the end of the stream. All of them give a :class:`Batch` to one
:class:`BatchRunner`, and get its :class:`Result`. When anything raises, the state is that of the
start of the batch, so that the same batch can come again.

With a checkpoint, the batch is recorded between the engine and the sinks; ``checkpoint.py`` says
why there. Then a sink that raises undoes nothing: the batch comes again, and the sink gets its rows
from the record.

With a watermark, events outlive their batch: what a batch begins with is state and waiting events,
and both come back on any error. ``event_time.py`` says which events wait.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from specstream.checkpoint.format import failpoints
from specstream.checkpoint.run.batch import OF_SOURCES, Batch, Result
from specstream.checkpoint.run.batch_log import BatchFigures, BatchLog
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.checkpoint.run.delivery import Deliveries, Sinks
from specstream.checkpoint.run.early_changes import EarlyChanges
from specstream.checkpoint.run.event_time import EventTime, check_late
from specstream.checkpoint.run.feed_stats import FeedStats
from specstream.checkpoint.run.inputs import Inputs
from specstream.checkpoint.run.stream_options import StreamOptions
from specstream.engine.engine import Engine
from specstream.engine.statistics import Statistics
from specstream.errors import ConfigurationError, EngineClosedError

__all__ = ["BatchRunner"]


@dataclass
class _Last:
    """The last batch that an engine has applied, whichever feed it came from."""

    query: str | None = None
    batch_id: int | None = None
    result: Result | None = None
    finished: bool = False


_lasts: weakref.WeakKeyDictionary[Engine, _Last] = weakref.WeakKeyDictionary()
_lasts_guard = threading.Lock()


def _last_of(engine: Engine) -> _Last:
    with _lasts_guard:
        return _lasts.setdefault(engine, _Last())


class BatchRunner:
    """Runs batches through an engine, one after the other; not from two threads at once.

    Args:
        engine: the engine.
        options: what the stream is run with.
        in_use: whether a query works with the checkpoint now (see :class:`Checkpoint`).

    Raises:
        ConfigurationError: an option is not what it must be, or the checkpoint is in use.
        SnapshotError: as of :class:`Checkpoint`.

    Attributes:
        engine: the engine.
        options: as they were given, meant for the operator.
        sinks: where the rows go.
        checkpoint: where the batches are recorded, or None.
        inputs: what is kept for a replay; None without a checkpoint.
        stats: what was done so far.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"x": int, "place": int})
    ... def number(state, event, emit):
    ...     state.count += 1
    ...     emit(event.x, state.count)
    >>> with ss.Engine(number, horizon=0) as engine:
    ...     options = StreamOptions(to=lambda rows, batch_id: print(batch_id, rows.num_rows))
    ...     runner = BatchRunner(engine, options)
    ...     runner.run(Batch(0, None, pa.table({"x": [7, 8]}))).output["place"].to_pylist()
    0 2
    [1, 2]
    """

    def __init__(
        self, engine: Engine, options: StreamOptions, in_use: Callable[[], bool] = lambda: True
    ) -> None:
        options.check(engine)
        options = options.of(engine.operator)
        self.engine = engine
        self.options = options
        self.sinks = Sinks(
            options.to,
            options.late_to,
            options.rejected_rows_to,
            options.errors_to,
            options.early_to,
        )
        self.stats = FeedStats()
        self._log = BatchLog(engine.name)
        self._last = _last_of(engine)
        self._delivered: int | None = None  # batch that the sinks have had
        self._deliveries = Deliveries(engine.name, is_recorded=options.checkpoint is not None)
        self._event_time = _event_time(engine, options)
        self.checkpoint: Checkpoint | None = None
        self.inputs: Inputs | None = None
        if options.checkpoint is not None:
            self.checkpoint = Checkpoint(
                engine,
                options.checkpoint,
                migrate=options.migrate,
                rename=options.rename,
                in_use=in_use,
                keep_batches=options.keep_batches,
                # The other options may change: docs/guides/production.md says what follows then.
                settings={
                    "order_by": options.order_by,
                    "source": options.source,
                    "watermark": None if options.watermark is None else "given",
                    "phases": "time" if engine.operator.event.phases else "event",
                },
                lease=options.lease,
            )
            self.inputs = Inputs(
                self.checkpoint.store,
                engine,
                options.keep_batches,
                options.order_by,
                options.source,
                None if self._event_time is None else self._event_time.describe(),
                options.errors_limit,
            )
        self._early: EarlyChanges | None = None
        if options.early_to is not None and self.checkpoint is not None:
            self._early = EarlyChanges(engine, options.early_to, self.checkpoint.store)

    @property
    def next_batch(self) -> int:
        """Id of the batch that follows the last one."""
        recorded = None if self.checkpoint is None else self.checkpoint.recorded
        last = self._last.batch_id if recorded is None else recorded.batch_id
        return 0 if last is None else last + 1

    @property
    def has_end(self) -> bool:
        """Whether something may be left for :meth:`finish`: events that wait, or timers."""
        return self._event_time is not None or self.engine.operator.has_timers

    def what(self, batch_id: int) -> str:
        """Names a batch in messages."""
        return f"operator {self.engine.name!r}, batch {batch_id}"

    def run(self, batch: Batch) -> Result:
        """Runs a batch that was not applied yet: events, record, sinks.

        Raises:
            Exception: what the operator, the checkpoint or a sink raised. State and waiting events
                are as before the batch, or, where it is recorded, as after it.
        """
        if batch.batch_id == 0:
            # Before anything is recorded: the query can be started again with other sinks. Without
            # our checkpoint, Spark may send the batch again, and a source begins anew.
            if self.checkpoint is None:
                is_new = batch.query == OF_SOURCES
            else:
                is_new = self.checkpoint.recorded is None
                self.checkpoint.store.check_place()  # Spark has made its own by now
            self.sinks.check_first_batch(0, is_new=is_new)
        if self.inputs is not None and self.checkpoint is not None:
            ends = batch.rows is None
            rows = self._nothing() if batch.rows is None else batch.rows
            self.inputs.begin(batch.batch_id, batch.query, rows, self.checkpoint.newest, ends)
        before = self.stats, self.engine.stats
        result = self._run(batch)
        if batch.rows is not None:
            self._note(batch, before)
        return result

    def _run(self, batch: Batch) -> Result:
        checkpoint, batch_id, finished = self.checkpoint, batch.batch_id, batch.rows is None
        started = time.perf_counter()
        failpoints.hit("before-run", batch_id)
        late_before = self.engine.durable.pending.late.count
        failed_before = self.engine.durable.failed.count
        savepoint = self.engine.savepoint() if checkpoint is None else checkpoint.savepoint()
        with self._deliveries.of(batch_id, ends=finished) as delivery:
            try:
                result = Result(
                    self._events(batch),
                    None if self._event_time is None else self.engine.late(),
                    None if self.sinks.rejected_rows_to is None else self.engine.rejected_rows(),
                    None if self._early is None else self._early.take(batch_id),
                    None if self.sinks.errors_to is None else self.engine.failed_events(),
                )
                emitted = recorded = time.perf_counter()
                self._check_held()
                delivery.prepare(self.sinks.portions(result, self.what(batch_id)))
                if checkpoint is None:
                    delivery.commit()
                else:
                    checkpoint.record(
                        batch.query,
                        batch_id,
                        *result,
                        finished=finished,
                        position=batch.position,
                    )
                    recorded = time.perf_counter()
            except BaseException:
                if checkpoint is not None:
                    # Of what is recorded: with this batch, or without it.
                    savepoint = checkpoint.savepoint()
                # A closed engine has no state to restore; what must be seen is the first error.
                with contextlib.suppress(EngineClosedError):
                    self.engine.rollback(savepoint)
                    if self._early is not None:
                        self._early.roll_back()
                raise
            last = self._last
            last.query, last.batch_id, last.result = batch.query, batch_id, result
            last.finished = finished
            if checkpoint is not None:
                if self.inputs is not None:
                    self.inputs.applied(batch_id)
                failpoints.hit("before-sink", batch_id)
                delivery.commit(self._check_held)
                failpoints.hit("after-sink", batch_id)
        self._deliver_early(result, batch_id)
        self._delivered = batch_id
        stats = self.stats
        self.stats = FeedStats(
            batches=stats.batches + 1,
            repeated=stats.repeated,
            events=stats.events + (0 if batch.rows is None else batch.rows.num_rows),
            late=stats.late + self.engine.durable.pending.late.count - late_before,
            failed=stats.failed + self.engine.durable.failed.count - failed_before,
            rows=stats.rows + result.output.num_rows,
            reading=stats.reading + batch.reading,
            running=stats.running + emitted - started,
            recording=stats.recording + recorded - emitted,
            writing=stats.writing + time.perf_counter() - recorded,
        )
        return result

    def _check_held(self) -> None:
        """Looks whether the batch is still this process's own to deliver."""
        if self.checkpoint is not None:
            self.checkpoint.check_held()

    def _events(self, batch: Batch) -> pa.Table:
        what, limit = self.what(batch.batch_id), self.options.errors_limit
        try:
            with self.engine.durable.failed.batch(what, limit):
                return self._applied(batch)
        except BaseException as error:
            if self.inputs is not None:
                self.inputs.failed(error)
            raise

    def _applied(self, batch: Batch) -> pa.Table:
        if batch.rows is None:
            return self._end()
        if self._event_time is not None:
            return self._event_time.run(batch.rows, batch.batch_id)
        options = self.options
        return self.engine.process_whole(
            batch.rows, order_by=options.order_by, source=options.source
        )

    def _end(self) -> pa.Table:
        """The rows of events that still wait, and of timers."""
        if self._event_time is not None:
            return self._event_time.finish()
        options = self.options
        return self.engine.process_whole(
            self._nothing(), order_by=options.order_by, source=options.source, end=True
        )

    def _nothing(self) -> pa.Table:
        """A batch without rows; its times and sources are of the types of those before, which its
        output has as well, and all else of whatever types."""
        options, last = self.options, self._last.result
        if self.checkpoint is not None and self.checkpoint.recorded is not None:
            last = self.checkpoint.recorded.result
        types = dict.fromkeys(self.engine.operator.event.names, pa.null())
        event, source = self.engine.operator.event, options.source
        is_text = source in event.names and event.kind(source) == "str"
        keys = {"timestamp": pa.null(), "source": pa.string() if is_text else pa.int64()}
        if last is not None and self.engine.durable.keys:
            keys = {name: last.output.schema.field(name).type for name in keys}
        if options.order_by is not None:
            types[options.order_by] = keys["timestamp"]
        if source is not None:
            types[source] = keys["source"]
        return pa.table({name: pa.nulls(0, of) for name, of in types.items()})

    def _note(self, batch: Batch, before: tuple[FeedStats, Statistics]) -> None:
        """Keeps the figures of a batch for who watches."""
        after = self.stats, self.engine.stats
        self._log.note(BatchFigures(batch.query, batch.run, batch.batch_id, before, after))

    # ---- batches that were applied before ----

    def recorded(self, query: str | None, batch_id: int) -> Result | None:
        """What a batch that was applied has for the sinks; None if it was not.

        Raises:
            ConfigurationError: as of :meth:`Checkpoint.answer`.
        """
        if self.checkpoint is not None:
            output = self.checkpoint.answer(query, batch_id)
            # An empty one may have been given to an engine that has worked for the query before.
            if self.checkpoint.recorded is not None:
                return None if output is None else self.checkpoint.recorded.result
        last = self._last
        return last.result if query is not None and batch_id == last.batch_id else None

    def repeat(self, query: str | None, batch_id: int, run: str | None = None) -> bool:
        """Gives the sinks what a batch has for them that was applied already; False: it was not.

        Spark was stopped before it could note that. Applying the batch once more would count its
        events twice.
        """
        before = self.stats, self.engine.stats
        result = self.recorded(query, batch_id)
        if result is None:
            return False
        self.deliver(result, batch_id)
        self.stats = replace(self.stats, repeated=self.stats.repeated + 1)
        self._note(Batch(batch_id, query, None, run=run), before)
        return True

    def deliver(self, result: Result, batch_id: int, *, ends: bool = False) -> None:
        """Gives the sinks what a batch has for them."""
        with self._deliveries.of(batch_id, ends=ends) as delivery:
            self._check_held()
            delivery.prepare(self.sinks.portions(result, self.what(batch_id)))
            delivery.commit(self._check_held)
        self._deliver_early(result, batch_id)
        self._delivered = batch_id

    def _deliver_early(self, result: Result, batch_id: int) -> None:
        """Behind the final rows, whose sinks know nothing of it."""
        if self._early is not None:
            failpoints.hit("before-early", batch_id)
            self._check_held()
            self._early.deliver(batch_id, result.early)

    def forget(self) -> None:
        """The engine works for another query: what it has applied says nothing of its batches."""
        self._last.query, self._last.batch_id, self._last.result = None, None, None

    # ---- the end ----

    def is_over(self, query: str | None, batch_id: int) -> bool:
        """Whether :meth:`finish` came after this batch, which Spark has not acknowledged.

        Raises:
            ConfigurationError: it came, and the batch is one that follows.
        """
        checkpoint, last = self.checkpoint, self._last
        if checkpoint is not None and checkpoint.is_over(query, batch_id):
            return True
        recorded = checkpoint is not None and checkpoint.recorded is not None
        if recorded or not last.finished:
            return False  # what a checkpoint has recorded it says itself
        if last.batch_id is not None and batch_id == last.batch_id - 1:
            return True
        raise ConfigurationError(
            f"{self.what(batch_id)}: finish() has ended the stream of this engine; begin a new "
            "one with a new engine, or let events wait, instead of calling finish(), where more "
            "can come"
        )

    def check_finish(self) -> None:
        """Whether the stream can have an end.

        Raises:
            ConfigurationError: it is not in event time, and has no timers; or Spark may be further
                than the checkpoint.
        """
        if not self.has_end:
            raise ConfigurationError(
                "finish() without watermark=: all events are applied with their batch, and nothing "
                "waits"
            )
        if self.checkpoint is not None:
            self.checkpoint.check_finish()

    def finish(self) -> None:
        """Ends the stream: what waits, events and timers, is committed under the batch id after the
        last one.

        It may be called again, also after a crash: all calls give the sinks the same rows.

        Raises:
            ConfigurationError: as of :meth:`check_finish`.
            Exception: what the operator or a sink raised; state and waiting events are as before.
        """
        self.check_finish()
        last = self._last
        query, batch_id, finished, result = last.query, last.batch_id, last.finished, last.result
        position = None
        if self.checkpoint is not None and self.checkpoint.recorded is not None:
            recorded = self.checkpoint.recorded
            query, batch_id = recorded.query, recorded.batch_id
            finished, result = recorded.finished, recorded.result
            position = recorded.position
        if batch_id is None or result is None:
            return  # no batch has come
        if self._delivered != batch_id:
            self.deliver(result, batch_id, ends=True)
        if not finished:
            self.run(Batch(batch_id + 1, query, None, position=position))

    def close(self) -> None:
        """Ends the thread that prepares rows for the sinks; not the engine, nor the checkpoint."""
        self._deliveries.close()


def _event_time(engine: Engine, options: StreamOptions) -> EventTime | None:
    if options.watermark is None or options.order_by is None:
        return None
    check_late(engine.durable.late if options.late is None else options.late, options.late_to)
    return EventTime(
        engine,
        order_by=options.order_by,
        watermark=options.watermark,
        source=options.source,
        idle_timeout=options.idle_timeout,
        sources=options.sources,
        late=options.late,
    )
