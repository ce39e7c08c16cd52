"""A stream without Spark: what has come is a micro-batch, and runs as soon as the engine is free.

Batches go the way that Spark's go, through a :class:`BatchRunner`: run, recorded, given to the
sinks. Spark writes down before a batch which rows are in it. Here that is recorded with its result:
where the source stands behind it. A crash before the record leaves state and position of the batch
before, and no sink has seen anything; its rows come again, perhaps cut into other batches, which
nobody can tell. A crash after it leaves a batch whose rows the sinks get from the record, and the
source goes on behind them.

So a source has to give the rows behind a position again. Of one that cannot, what had come and was
not recorded is gone: with ``at_most_once=True`` that is agreed to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any, Concatenate, ParamSpec, TypeVar

from specstream.checkpoint.run.batch import OF_SOURCES, Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.checkpoint import Checkpoint, Recorded
from specstream.checkpoint.run.feed_stats import FeedStats
from specstream.checkpoint.run.stream_options import listing
from specstream.columns.rejected_rows import RowError
from specstream.declarations.options import instance
from specstream.engine.engine import Engine
from specstream.errors import ConfigurationError, SnapshotError
from specstream.files.untrusted import Malformed, json_of
from specstream.sources.options import RunOptions
from specstream.sources.source import IDLE, Position, Source, Wanted, checked_source

__all__ = ["SourceFeed", "Stop", "arun", "run", "stopping_on"]

P = ParamSpec("P")
R = TypeVar("R")


class SourceFeed:
    """Feeds an engine from a source.

    Args:
        engine: the engine; it stays open.
        source: the source.
        options: what the stream is run with.
        loop: the event loop of the caller; None: it has none.

    Attributes:
        runner: runs the batches.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        options: RunOptions,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        instance("engine", engine, Engine, "an ss.Engine: run(ss.Engine(operator), ...)")
        checked_source(source)
        if options.checkpoint is not None and not (source.can_replay or options.at_most_once):
            raise ConfigurationError(
                f"checkpoint= with {source.name}, which cannot send again what had come and was "
                "not recorded when the process was killed: say at_most_once=True (specstream run: "
                "--at-most-once) if such rows may be lost, leave out checkpoint=, or put a log in "
                "between (NATS JetStream, Kafka)"
            )
        self._source = source
        self._options = options
        self.runner = BatchRunner(engine, options)
        named = {"order_by": self.runner.options.order_by, "source": self.runner.options.source}
        self._wanted = Wanted(
            what=f"operator {engine.name!r}",
            operator=engine.operator,
            columns=dict(engine.operator.event),
            beside={option: name for option, name in named.items() if name is not None},
            sets_aside=engine.durable.rejected.policy == "side",
            whole=options.late_to is not None or options.rejected_rows_to is not None,
            rows=options.max_rows,
            loop=loop,
        )

    @property
    def stats(self) -> FeedStats:
        """A frozen record of what was done so far."""
        return self.runner.stats

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Where the batches are recorded, or None."""
        return self.runner.checkpoint

    def run(self, stop: threading.Event) -> None:
        """Runs what comes until the source ends, or ``stop`` is set: then behind the batch under
        way, and what a source has taken in and cannot give again.

        Raises:
            Exception: of the operator, the source, the checkpoint or a sink.
        """
        source = self._source
        try:
            position, is_over = self._go_on()
            source.open(self._wanted, position)
            if position is not None:
                source.commit(position)
            if is_over:
                self._check_over()
                return
            has_stopped = self._run(stop)
            if self._options.finish and not has_stopped and self.runner.has_end:
                self.runner.finish()
        finally:
            source.close()

    def _run(self, stop: threading.Event) -> bool:
        """Until the end; True: somebody has stopped it."""
        source, runner, options = self._source, self.runner, self._options
        has_stopped = False
        while True:
            if stop.is_set() and not has_stopped:
                has_stopped = True
                source.stop()
            began = time.perf_counter()
            rows = source.read(options.max_rows, options.max_wait, IDLE)
            if rows is None:
                return has_stopped
            if not rows.table.num_rows:
                continue
            batch_id = runner.next_batch
            reading = time.perf_counter() - began
            position = self._recorded(rows.position)
            try:
                runner.run(Batch(batch_id, OF_SOURCES, rows.table, reading, position=position))
            except Exception as error:
                note = f"raised by batch {batch_id}: {rows.place}"
                if not isinstance(error, RowError) or rows.row is None:
                    error.add_note(note)
                    raise
                located = error.at(rows.row(int(error.wrong.argmax())))
                located.add_note(note)
                raise located from None
            source.commit(rows.position)

    def close(self) -> None:
        """Closes the checkpoint; not the engine."""
        self.runner.close()
        if self.runner.checkpoint is not None:
            self.runner.checkpoint.close()

    # ---- positions ----

    def _recorded(self, position: Position) -> bytes | None:
        """A position as the checkpoint has it."""
        if self.runner.checkpoint is None:
            return None
        return json.dumps({"source": self._source.name, "position": position}).encode()

    def _go_on(self) -> tuple[Position | None, bool]:
        """Where the source goes on, and whether the stream is over; the sinks have all until there.

        Raises:
            SnapshotError: the checkpoint is not one of this source, or its newest file is damaged.
        """
        checkpoint = self.runner.checkpoint
        if checkpoint is None or checkpoint.recorded is None:
            return None, False
        recorded = checkpoint.recorded
        what = f"checkpoint {checkpoint.store!r} of {self._wanted.what}"
        if checkpoint.skipped is not None:
            raise SnapshotError(
                f"{what}: the newest file that can be used is that of batch {recorded.batch_id}, "
                f"and there were files up to batch {checkpoint.skipped}, whose rows the sinks may "
                "have. They would be cut into other batches now: put a copy of the directory back; "
                f"or go back to batch {recorded.batch_id} with specstream checkpoint rollback, "
                "which says what to take out of the sinks, and start again"
            )
        position = self._position_of(recorded, what)
        self.runner.deliver(recorded.result, recorded.batch_id, ends=recorded.finished)
        return position, recorded.finished

    def _position_of(self, recorded: Recorded, what: str) -> Position:
        if recorded.position is None:
            raise SnapshotError(
                f"{what} says nothing of a source: foreach_batch has written it, for a query of "
                "Spark's. Go on with that, or begin anew with a new checkpoint= and empty sinks"
            )
        try:
            found = json_of(recorded.position, "the position of the source")
            source, position = found["source"], found["position"]
        except (Malformed, KeyError, TypeError) as error:
            raise SnapshotError(f"{what}: the position of the source is none: {error}") from None
        if source != self._source.name:
            raise SnapshotError(
                f"{what} was written for {source}, and this is {self._source.name}: give the "
                "source that it was begun with, or begin anew with a new checkpoint= and empty "
                "sinks"
            )
        return position

    def _check_over(self) -> None:
        """Whether nothing has come behind the end of the stream.

        Raises:
            ConfigurationError: there is more.
        """
        rows = self._source.read(1, 0, IDLE)
        if rows is not None and rows.table.num_rows:
            raise ConfigurationError(
                f"{self._wanted.what}: the stream has ended with what waited being committed, and "
                f"there is more now: {rows.place}. Begin a new one with a new checkpoint=; where "
                "more can come, say finish=False, so that events wait instead"
            )


class Stop(threading.Event):
    """Set when a signal has come.

    Attributes:
        signal: its number; None: none has come.
    """

    def __init__(self) -> None:
        super().__init__()
        self.signal: int | None = None


@contextlib.contextmanager
def stopping_on(signals: Iterable[signal.Signals]) -> Iterator[Stop]:
    """Sets an event when a signal comes, and lets the next one do what it did before.

    A handler of the user's own stays in place, and so do threads other than the main one, which
    have no signals.
    """
    stop = Stop()
    before: dict[signal.Signals, Any] = {}

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        before.clear()

    def handle(number: int, frame: FrameType | None) -> None:
        put_back()
        stop.signal = number
        stop.set()

    if threading.current_thread() is threading.main_thread():
        for number in signals:
            handler = signal.getsignal(number)
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = handler
                signal.signal(number, handle)
    try:
        yield stop
    finally:
        put_back()


def _takes(
    options: Callable[P, RunOptions],
) -> Callable[[Callable[..., R]], Callable[Concatenate[Engine, Source, P], R]]:
    """Gives a function of an engine and a source all the options, one by one."""
    return lambda function: listing(function, options)


@_takes(RunOptions)
def run(engine: Engine, events: Source, **options: Any) -> FeedStats:
    """Feeds an engine from a source, without Spark, until the source ends or a signal comes.

    A micro-batch is whatever has come: it begins with the first row, and runs ``max_wait`` seconds
    later, or as soon as it has ``max_rows``. What comes meanwhile waits in a bounded buffer; where
    that is full nothing is read, and the sender has to wait. Inside of a batch the events run in
    the order (``order_by``, ``source``, position), with ``watermark`` across batches as well.

    With ``checkpoint`` the state, the rows of the batch and the position of the source are written
    in one file before the sinks get the rows. So a run that was killed at any instant goes on where
    it was, and a sink that is idempotent by batch id has every row once. Where a source cannot send
    again, that is refused, unless ``at_most_once`` says that what was under way may be lost.

    SIGTERM and SIGINT end the run after the batch under way; a second one has its usual effect.

    Args:
        engine: the engine, of an operator or a pipeline. It stays open.
        events: where they come from: :func:`nats`, :func:`kafka`, :func:`tcp`, :func:`dataset`,
            :func:`iterate`, or, for a pipeline with several sources, a :func:`union` of such.
        max_rows: the most rows of a micro-batch.
        max_wait: seconds that a batch waits for more rows behind its first; 0 takes what is there.
        finish: the end of ``events`` is that of the stream: what waits for the watermark is
            committed, and timers fire. False: they wait, and a later run goes on.
        at_most_once: with ``checkpoint``, and events that cannot be sent again: what was under way
            when the process was killed may be lost; state and recorded batches are not.
        signals: the signals that end the run. Those that the program handles are left to it; off
            the main thread there are none.
        to: this one and all that follow are as of :func:`specstream.spark.foreach_batch`.
        order_by: see there.
        source: see there.
        checkpoint: see there. The directory is of this run alone, and no query's of Spark.
        keep_batches: see there.
        rejected_rows_to: see there. Messages that cannot be decoded are among the rows, with their
            bytes in ``raw``, and in ``error`` what is wrong with them.
        errors_to: see there.
        errors_limit: see there.
        migrate: see there.
        rename: see there.
        prefetch: False; sources read ahead by themselves.
        watermark: see there.
        idle_timeout: see there.
        sources: see there.
        late: see there.
        late_to: see there.
        early_to: see there.
        lease: see there.

    Returns:
        What was done.

    Raises:
        ConfigurationError: an argument is not what it must be, or ``checkpoint`` is in use.
        SnapshotError: ``checkpoint`` is of another operator, layout or source.
        SourceError: the source cannot be reached, or has lost what was not read.
        InputError: a message cannot be an event; names where it stands, and the column.
        Exception: what the operator or a sink raised; the state is that before the batch.
    """
    given = RunOptions(**options)
    feed = SourceFeed(engine, events, given)
    try:
        with stopping_on(given.signals) as stop:
            feed.run(stop)
    finally:
        feed.close()
    return feed.stats


@_takes(RunOptions)
async def arun(engine: Engine, events: Source, **options: Any) -> FeedStats:
    """:func:`run` for a program with an event loop, which goes on meanwhile.

    Batches run on a thread. An asynchronous iterator is asked in the loop of the caller. When the
    task is cancelled, the batch under way is finished first; signals are left to the program.

    Args:
        engine: as of :func:`run`, like all others: events, max_rows, max_wait, finish,
            at_most_once, signals, to, order_by, source, checkpoint, keep_batches, rejected_rows_to,
            errors_to, errors_limit, migrate, rename, prefetch, watermark, idle_timeout, sources,
            late, late_to, early_to, lease.

    Returns:
        What was done.

    Raises:
        Exception: as of :func:`run`.

    >>> import asyncio
    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"place": int})
    ... def number(state, event, emit):
    ...     state.count += 1
    ...     emit(state.count)
    >>> async def main():
    ...     queue, places = asyncio.Queue(), []
    ...     async def events():
    ...         while (event := await queue.get()) is not None:
    ...             yield event
    ...     with ss.Engine(number) as engine:
    ...         sink = lambda rows, batch_id: places.extend(rows["place"].to_pylist())
    ...         source = ss.sources.iterate(events())
    ...         run = asyncio.create_task(ss.sources.arun(engine, source, to=sink))
    ...         for event in ({"x": 7}, {"x": 8}, None):
    ...             await queue.put(event)
    ...         stats = await run
    ...     return places, stats.events
    >>> asyncio.run(main())
    ([1, 2], 2)
    """
    loop, stop = asyncio.get_running_loop(), threading.Event()

    def work() -> FeedStats:
        feed = SourceFeed(engine, events, RunOptions(**options), loop)
        try:
            feed.run(stop)
        finally:
            feed.close()
        return feed.stats

    running = loop.run_in_executor(None, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await running
        raise
