"""Spark's micro-batches, handed to a :class:`BatchRunner`.

Spark runs the callback of a streaming query on a thread of its own, one batch at a time, and
acknowledges batch N when the callback returns. When the callback raises, the query stops; the
next start of the query runs batch N again, with the same rows. So the state must be at the start
of batch N whenever the callback raises, whatever it raises: ``batch_runner.py`` sees to that.

What is Spark's own is here: the ids of a batch, the columns that are fetched, and errors in words
that Spark passes on. A `BaseException` that is not an `Exception`, such as `SystemExit`, never
reaches Spark: the query would hang in silence. And stopping a query while its callback fetches rows
makes the fetch raise; if the callback returned normally after that, Spark would acknowledge a batch
that nobody processed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from py4j.protocol import Py4JError

from specstream.checkpoint.run.batch import Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.checkpoint.run.delivery import Sink
from specstream.checkpoint.run.feed_stats import FeedStats
from specstream.checkpoint.run.prefetch import Prefetch, catch_up
from specstream.checkpoint.run.stream_options import StreamOptions, listing
from specstream.declarations.options import refused
from specstream.engine.engine import Engine
from specstream.errors import ConfigurationError
from specstream.spark.fetching import reason, result_is_too_large
from specstream.spark.needed import check_columns
from specstream.spark.packing import quoted
from specstream.spark.tenancy import any_runs, tenancy_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BatchFeed", "FeedStats", "Sink", "foreach_batch"]

P = ParamSpec("P")

# Of options, until version 0.3.
FORMER_NAMES = {"bad_rows_to": "rejected_rows_to", "ahead": "prefetch"}


class BatchFeed:
    """The callback for ``foreachBatch``; made by :func:`foreach_batch`.

    Attributes:
        engine: the engine that the rows go to.
        runner: runs the batches.
        error: what the last call raised, as it was raised; None after a call that succeeded.
            Spark passes on only its text.
    """

    def __init__(self, engine: Engine, options: StreamOptions) -> None:
        if not isinstance(engine, Engine):
            raise refused("engine", engine, "an ss.Engine: foreach_batch(ss.Engine(operator), ...)")
        self.engine = engine
        self.error: Exception | None = None
        self._tenancy = tenancy_of(engine)
        self._prefetch: Prefetch | None = None
        self.runner = BatchRunner(engine, options, self._in_use)
        # Also without prefetch=: the program may have had it before.
        try:
            catch_up(self.runner)
        except BaseException:
            self.runner.close()
            raise
        if options.prefetch:
            self._prefetch = Prefetch(self.runner)

    @property
    def stats(self) -> FeedStats:
        """A frozen record of what was done so far."""
        return self.runner.stats

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Where the batches are recorded, or None."""
        return self.runner.checkpoint

    def _in_use(self) -> bool:
        return self._tenancy.in_use() or (self._prefetch is not None and self._prefetch.busy)

    def wait(self) -> None:
        """Waits until the last batch that Spark has handed over is in the sink.

        With ``prefetch=True`` that may be after the query has ended; otherwise there is nothing to
        wait for.

        Raises:
            Exception: what that batch raised.
        """
        if self._prefetch is not None:
            self._prefetch.wait()

    def close(self) -> None:
        """Waits until the last batch is in the sink, and closes the engine and the checkpoint.

        Raises:
            Exception: what that batch raised; all is closed nevertheless.
        """
        try:
            self.wait()
        finally:
            self.runner.close()
            self.engine.close()
            if self.checkpoint is not None:
                self.checkpoint.close()

    def finish(self) -> None:
        """Ends the stream: commits the events that wait for the watermark, fires the timers that
        are left then, and gives their rows on.

        The sinks get them under the batch id that follows the last one. Afterwards no batch is
        taken any more. Call it when the query has ended, and only where nothing more can come:
        events that wait are kept by the engine, and by the checkpoint, until the query goes on.
        It may be called again, also after a crash: all calls give the sinks the same rows.

        Raises:
            ConfigurationError: the feed has no watermark and its operator no timers; its query
                still runs; or a newer file of the checkpoint cannot be used, and no batch has come
                since, so that Spark may be further.
            Exception: what the operator or a sink raised; state and waiting events are as before.
        """
        self.runner.check_finish()
        tenancy = self._tenancy
        query = tenancy.query if tenancy.in_use() else self._unserved()
        if tenancy.turn.locked() or query is not None:
            raise ConfigurationError(
                f"operator {self.engine.name!r}: finish() while the query {query} runs: "
                "stop it, or await its end, first"
            )
        self.wait()
        with tenancy.turn:
            self.runner.finish()

    def _unserved(self) -> str | None:
        """Id of a query that runs, and that may send this feed a batch though it has sent none."""
        if self._tenancy.query is not None:
            return None
        recorded = None if self.checkpoint is None else self.checkpoint.recorded
        if recorded is not None:
            # Without a query its batches were given by hand.
            return None if recorded.query is None else any_runs(recorded.query)
        return any_runs(None) if self.engine.stats.events == 0 else None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Runs one micro-batch; Spark calls this."""
        self.error = None
        try:
            self._run(frame, batch_id)
        except Py4JError as error:
            # The Java exception is tied to a call that stop() may have cut short; Spark gets a
            # fresh one, which fails the batch.
            why = reason(error)
            hint = (
                ". Start it again in a session with a larger spark.driver.maxResultSize (0: no "
                "limit), because this batch stays as it is; later ones are smaller with less for "
                "each trigger: maxFilesPerTrigger, maxBytesPerTrigger, maxOffsetsPerTrigger"
            )
            self.error = RuntimeError(
                f"{self.runner.what(batch_id)}: Spark failed or was stopped while its rows were "
                f"read or written ({why}); the batch is not acknowledged, and comes again when the "
                f"query is started again{hint if result_is_too_large(why) else ''}"
            )
            raise self.error from None
        except Exception as error:
            self.error = error
            raise
        except BaseException as error:
            self.error = RuntimeError(
                f"{self.runner.what(batch_id)}: {type(error).__name__} raised in the callback of a "
                "streaming query, which must raise ordinary exceptions only; the batch is not "
                "acknowledged"
            )
            raise self.error from error

    def _run(self, frame: DataFrame, batch_id: int) -> None:
        tenancy, runner, prefetch = self._tenancy, self.runner, self._prefetch
        what = runner.what(batch_id)
        if not tenancy.turn.acquire(blocking=False):
            raise ConfigurationError(
                f"{what}: the engine is busy with a batch of another query; use "
                "one engine per query"
            )
        try:
            query, run = _query_id(frame), _run_id(frame)
            if tenancy.move_in(query, frame.sparkSession, what):
                runner.forget()
            follows = prefetch is not None and prefetch.follows(query, batch_id)
            if not follows and (
                runner.is_over(query, batch_id) or runner.repeat(query, batch_id, run)
            ):
                return
            began = time.perf_counter()
            rows = self._needed(frame, what).toArrow()
            batch = Batch(batch_id, query, rows, time.perf_counter() - began, run)
            if prefetch is None:
                runner.run(batch)
            else:
                prefetch.take(batch)
        finally:
            tenancy.turn.release()

    def _needed(self, frame: DataFrame, what: str) -> DataFrame:
        """The columns that the operator reads; a missing one is named before rows are fetched."""
        options = self.runner.options
        needed = check_columns(
            frame,
            self.engine.operator,
            {"order_by": options.order_by, "source": options.source},
            what,
            "the stream",
            "select or rename it before writeStream",
        )
        # Late and rejected rows go on as they came. And where all columns are read, another plan
        # for the same rows would have to be analysed first.
        whole = options.late_to is not None or options.rejected_rows_to is not None
        if whole or sorted(frame.columns) == sorted(needed):
            return frame
        return frame.select(*map(quoted, needed))


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


def _takes(
    options: Callable[P, StreamOptions],
) -> Callable[[Callable[..., BatchFeed]], Callable[Concatenate[Engine, P], BatchFeed]]:
    """Gives a function the options, one by one, of the class that lists them.

    Type checkers see a function of an engine and of all the options, and so do ``help()`` and the
    errors of a wrong call; the former names are taken as well.
    """

    return lambda function: listing(function, options, FORMER_NAMES)


@_takes(StreamOptions)
def foreach_batch(engine: Engine, **options: Any) -> BatchFeed:
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
        to: a sink such as :func:`specstream.sinks.parquet_sink`, any function
            ``(pyarrow.Table, batch_id)``, or an object with ``prepare(pyarrow.Table, batch_id)``,
            which stores the rows unseen while the checkpoint is written, and returns an object with
            ``commit()`` and ``abort()``. It is called once for each batch, also with no rows, and
            again for a batch that is run again. To be exact through crashes it must be idempotent
            by batch id: two calls with one id leave what one leaves. With ``checkpoint`` all calls
            with one id have the same rows. Of a pipeline with several sinks: one for each, by its
            name, as in ``{"signals": sink, "audit": other}``. Each gets its own rows of every
            batch; where one of them fails, the batch comes again for all.
        checkpoint: a directory of this query's own, beside Spark's ``checkpointLocation`` and
            never inside it: a path, or a URI that ``pyarrow.fs.FileSystem.from_uri`` reaches. It is
            made if it is not there. What it holds comes before the state that the engine has.
        keep_batches: with ``checkpoint``: so many batches, the latest ones, can be replayed by
            ``specstream replay``: their rows are kept as well, and the files that lead to them.
            Whatever it is, the rows of a batch that fails are kept until it has been applied.
        rejected_rows_to: a second sink, for the rows that an engine made with
            ``rejected_rows="side"`` leaves out: as they came, with a last column ``reason``. It is
            called after ``to``, for the batches that have such rows, and what is said of ``to``
            holds for it as well. Without it they are in ``engine.rejected_rows()``.
        errors_to: likewise, for events whose function raises, of an engine made with
            ``errors="side"``: their order key and columns, and ``error``, ``message`` and
            ``traceback``, as :meth:`specstream.Engine.failed_events` has them. The query goes on
            behind them.
        errors_limit: so many events of a batch may fail; above it the batch fails with a
            :class:`~specstream.errors.FailedEventsError`, which says what the first one has raised.
            None: all may.
        migrate: with ``checkpoint``: see :meth:`specstream.Engine.restore`.
        rename: with ``checkpoint``: ``{"old": "new"}``, where the operator was called ``old`` when
            the checkpoint was written. It may stay: what is recorded from now on has the new name.
        prefetch: with ``checkpoint``: Spark goes on to the next batch when the rows of this one are
            on disk, and it runs meanwhile. Call :meth:`BatchFeed.wait` after the query has ended:
            the last batch may still be under way. What a batch raises is raised by the batch after
            it, or by ``wait``.
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
        early_to: with ``watermark`` and ``checkpoint``, and an engine made with ``early=True``: a
            sink for results that are not final yet, such as
            :func:`specstream.sinks.early_delta_sink`. It is called last, for each batch, with what
            has changed since the one before: the ``changes`` of
            :meth:`specstream.Engine.poll_early`, those that are final now among them. Any function
            ``(pyarrow.Table, batch_id)`` will do, and those sinks that ``to`` takes; an object with
            ``apply(answer, batch_id)`` gets the whole
            :class:`~specstream.engine.early_results.EarlyAnswer`, and so ``reset``, ``void_below``
            and ``final_up_to``. Changes come at least once: a batch that comes again brings its
            changes again, or, after a restart, its final rows and all that is applied by then, with
            ``reset``. Versions rise across restarts. Of a pipeline with several sinks a dict of
            such sinks by name, for some of them or for all.
        lease: with ``checkpoint`` in a store that has no locks: for so many seconds a process that
            writes there, and has not been heard of, is waited for; then another one takes the
            directory over, and that one commits nothing more.

    Returns:
        The callback.

    Raises:
        ConfigurationError: an argument is not what it must be, or ``checkpoint`` is in use.
        SnapshotError: ``checkpoint`` is of another operator or layout (names the field), or of a
            query with another ``order_by``, ``source`` or seed, or with ``watermark`` and now
            without or the other way round (names the option); or nothing in it is whole.
    """
    return BatchFeed(engine, StreamOptions(**options))
