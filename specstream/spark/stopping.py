"""Stopping a query on a signal: the batch under way is finished, and no other begins.

``StreamingQuery.stop()`` does not do that. It interrupts the batch, which Spark sends again after
the restart: nothing is lost, but its time is, and a slow batch may never get to its end.

Spark asks before each batch whether the query's state is TERMINATED, and only there. So the state
is set, as ``stop()`` sets it, and ``stop()`` is called when no batch is under way. Spark then
acknowledges the batch and leaves its loop as after the last batch of ``availableNow``.

A signal's handler runs in the main thread, which waits for an answer of the JVM in most programs,
and must not ask it anything else meanwhile. So it starts a thread.

A process in the foreground shares its signals with its group, and the JVM is in it. It would shut
Spark down at once; hence :func:`shielded_session`.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from specstream.declarations.options import items, refused, refuses_unknown, shown, whole
from specstream.errors import ConfigurationError

__all__ = ["StopOnSignal", "ending_on_sigterm", "shielded_session", "stop_on_signal"]

POLL_SECONDS = 0.05


class _Closable(Protocol):
    def close(self) -> object: ...


class StopOnSignal:
    """The handler of a signal that stops queries; made by :func:`stop_on_signal`.

    As a context manager it is in place until the end of the block, which waits until the queries
    have ended if a signal came.

    Args:
        queries: running queries, as ``start()`` returned them.
        close: what has ``close()``, to be closed when the queries have ended.
        signals: which signals.

    Attributes:
        requested: set when a signal has come, and no query begins another batch.
    """

    def __init__(
        self,
        queries: Iterable[StreamingQuery],
        close: Iterable[_Closable],
        signals: Iterable[signal.Signals],
    ) -> None:
        expected = "a list of what has close()"
        for one in (closing := items("close", close, expected)):
            if not callable(getattr(one, "close", None)):
                raise refused("close", closing, expected)
        expected = "a list of signals, like [signal.SIGTERM]"
        numbers = items("signals", signals, expected)
        if not all(whole(number) in set(signal.Signals) for number in numbers):
            raise refused("signals", numbers, expected)
        self.requested = threading.Event()
        self._queries = [_Ending(query) for query in queries]
        self._close = list(closing)
        self._before: dict[signal.Signals, Any] = {}
        self._thread: threading.Thread | None = None
        if threading.current_thread() is not threading.main_thread():
            raise ConfigurationError(
                "stop_on_signal: Python lets only the main thread handle signals: call it there"
            )
        for number in numbers:
            self._before[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # The next signal does what it did before: by default, it ends the process at once.
        self.cancel()
        # Not a daemon: the interpreter waits for it, so that engines are closed at the end.
        self._thread = threading.Thread(target=self._stop, name="stop on signal")
        self._thread.start()

    def _stop(self) -> None:
        try:
            for query in self._queries:
                query.begin_no_batch()
            self.requested.set()
            for query in self._queries:
                query.stop_between_batches()
        finally:
            for closable in self._close:
                closable.close()

    def cancel(self) -> None:
        """Gives the signals back to whoever handled them before."""
        for number, handler in self._before.items():
            # None: set by C code, which Python cannot put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()
        if self._thread is not None:
            self._thread.join()


class _Ending:
    """A query that is to end between two batches."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        # Found now, and not when the signal comes: what Spark has here is no public interface.
        try:
            self._state = query._jsq.streamingQuery().state()
            # The states lie in one package, which is another one before Spark 4.1.
            package, _, _ = self._state.get().getClass().getName().rpartition(".")
            jvm: Any = SparkContext._jvm
            self._terminated = getattr(getattr(jvm, f"{package}.TERMINATED$"), "MODULE$")
        except (AttributeError, TypeError, Py4JError) as error:
            raise ConfigurationError(
                f"stop_on_signal: {shown(query)} is no streaming query of PySpark 4 in this "
                "process; expected one as writeStream.start() returns it without Spark Connect"
            ) from error

    def begin_no_batch(self) -> None:
        """Lets the batch under way be the last."""
        with contextlib.suppress(Py4JError, OSError):  # the JVM has ended
            self._state.set(self._terminated)

    def stop_between_batches(self) -> None:
        """Waits for the batch under way, and stops the query."""
        with contextlib.suppress(Py4JError, OSError):
            while True:
                # Raises what the batch has raised, which is for whoever waits for the query.
                with contextlib.suppress(StreamingQueryException):
                    self._query.awaitTermination(POLL_SECONDS)  # type: ignore[arg-type]
                if not self._query.status["isTriggerActive"]:
                    break
            self._query.stop()


@refuses_unknown
def stop_on_signal(
    *queries: StreamingQuery,
    close: Iterable[_Closable] = (),
    signals: Iterable[signal.Signals] = (signal.SIGTERM,),
) -> StopOnSignal:
    """Lets a signal stop streaming queries after the batch under way, which is acknowledged.

    ``query.awaitTermination()`` then returns, so that the program comes to its end and exits with
    0; its next start goes on with the next batch. A second signal does what it did before this
    call: by default, it ends the process at once, which loses nothing either, as no crash does.

    Only a signal to this process alone is harmless to Spark's JVM, a child of it. Where the whole
    process group gets it (``timeout``, a terminal, ``kill -- -PID``), make the session with
    :func:`specstream.spark.shielded_session` or :func:`specstream.spark.local_session`.

    Args:
        queries: running queries, as ``start()`` returned them.
        close: feeds, engines, or whatever has ``close()``, to be closed when the queries have
            ended. With ``prefetch=True`` give the feed, which first waits for the batch under way.
        signals: which signals.

    Returns:
        The handler; as a context manager it is in place until the end of the block.

    Raises:
        ConfigurationError: called off the main thread, or ``queries`` are none of PySpark 4's.

    ::

        with ss.Engine(operator) as engine:
            feed = ss.spark.foreach_batch(engine, order_by="time", to=sink, checkpoint=path)
            query = stream.writeStream.foreachBatch(feed).start()
            with ss.spark.stop_on_signal(query):
                query.awaitTermination()
    """
    return StopOnSignal(queries, close, signals)


@contextlib.contextmanager
def ending_on_sigterm(query: StreamingQuery, wait: Callable[[], object]) -> Iterator[None]:
    """SIGTERM ends the program behind the batch under way, for who awaits the query in here.

    Where the signal would have ended the process at once, it does so later. A handler of the
    user's own stays in place, and so do threads other than the main one, which have no signals.

    Args:
        query: a running query, which the block awaits.
        wait: waits for the batch under way where Spark does not.

    Raises:
        SystemExit: with 143, at the end of the block, if the signal came; as the shell has it.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    with stop_on_signal(query) as stop:
        yield
    if stop.requested.is_set():
        wait()
        raise SystemExit(128 + signal.SIGTERM)


@refuses_unknown
def shielded_session(builder: SparkSession.Builder) -> SparkSession:
    """``builder.getOrCreate()``, with a JVM that signals to this process's group do not reach.

    The JVM is started in a session of its own. It ends when this process ends, however that ends.
    Where a JVM runs already, as under ``spark-submit``, nothing can be changed about it.

    Args:
        builder: as made by ``SparkSession.builder.master(...).config(...)``.

    ::

        session = ss.spark.shielded_session(SparkSession.builder.appName("top"))
    """
    if SparkContext._gateway is None:
        settings = SparkConf(loadDefaults=False)
        for key, value in builder._options.items():
            settings.set(key, str(value))
        gateway = launch_gateway(  # type: ignore[no-untyped-call]
            settings, {"start_new_session": True}
        )
        SparkContext._ensure_initialized(gateway=gateway)
    return builder.getOrCreate()
