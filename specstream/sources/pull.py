"""The rows that an engine gives for a source, one by one: events are taken in on demand.

Who asks for a row of a sink gets one that waits, or has the engine run the next event. Rows of the
other sinks wait until they are asked for, perhaps on other threads. That an event is done
(``ahead.py``), and that its rows wait, changes by assignments with no call between them, so that an
exception of a signal handler neither loses a row nor repeats one (``engine/interrupts.py``).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from specstream.columns.events import column
from specstream.columns.rejected_rows import RowError
from specstream.compiler.phases.plan import SOURCE
from specstream.declarations.options import flag, instance, integer, meant, refuses_unknown, shown
from specstream.definition.operator import check_order
from specstream.engine.engine import Engine
from specstream.errors import ConfigurationError, EngineClosedError, SpecstreamError
from specstream.sources.ahead import PATIENCE, Ahead, End, Event, Reading, is_interrupt
from specstream.sources.source import Source, Wanted, checked_source
from specstream.sources.union import UnionSource, union

__all__ = ["PulledRows", "pull"]

Row = dict[str, Any]


class _Queue:
    """Rows of one sink.

    Attributes:
        rows: some that came, in order; the first ``at`` of them were given.
        told: the failure behind the last row was raised.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.at = 0
        self.told = False


class _Behind(NamedTuple):
    """Rows that wait behind those of a queue: of the last event, and of those before it.

    A linked list that is never changed: a new event is put in front. So the lists of all sinks can
    change in one assignment.
    """

    rows: list[Row]
    total: int
    before: _Behind | None


class _Pulling:
    """An engine that takes events in, and the rows that wait.

    Args:
        engine: the engine.
        ahead: its events.
        limit: how many rows of one sink may wait when another sink takes an event in.
        order_by: as of :meth:`specstream.Engine.process`.
        source: likewise.
        finish: the engine is told the end.

    Attributes:
        ahead: likewise.
        sinks: names of the sinks; an operator has one, without a name.
    """

    def __init__(
        self,
        engine: Engine,
        ahead: Ahead,
        limit: int,
        order_by: str | None,
        source: str | None,
        finish: bool,
    ) -> None:
        self.engine, self.ahead = engine, ahead
        self.sinks = engine.operator.sinks or ("",)
        self._limit, self._finish = limit, finish
        self._order_by, self._source = order_by, source
        self._queues = {sink: _Queue() for sink in self.sinks}
        self._behind: dict[str, _Behind | None] = dict.fromkeys(self.sinks)
        self._lock = threading.RLock()
        # Neither the thread nor the sources refer to this: dropping the rows ends them.
        weakref.finalize(self, ahead.leave)
        self._is_over = False
        self._failure: BaseException | None = None
        # What the engine was given, and what has come of it and is not settled.
        self._event: Event | None = None
        self._last: Event | None = None
        self._rejected = 0
        self._came: pa.Table | None = None
        self._raised: BaseException | None = None

    # ---- for the caller ----

    def take(self, sink: str, once: bool) -> Row | None:
        """The next row of a sink; None: none comes, or with ``once`` not by one more event."""
        queue = self._queues[sink]
        is_tried = False
        while True:
            if queue.at < len(queue.rows):
                row = queue.rows[queue.at]
                # No call from here to the caller: it has the row, or the row still waits.
                queue.at += 1
                return row
            if once and is_tried:
                return None
            if self._lock._is_owned():  # type: ignore[attr-defined]
                raise SpecstreamError(
                    f"{self._what}: rows are asked for in the middle of another call of this "
                    "thread, by a signal handler or by the source: ask when that has returned"
                )
            with self._lock:
                self._settle()
                if self._behind[sink] is None:
                    if self._is_over:
                        self.ahead.leave()
                        break
                    self._check_limit(sink)
                    is_tried = True
                    self._take_in()
                self._move_up(sink)
        if self._failure is not None and not queue.told:
            raise self._tell(queue)
        return None

    def waiting(self, sink: str) -> int:
        """How many rows of a sink wait."""
        queue, behind = self._queues[sink], self._behind[sink]
        return len(queue.rows) - queue.at + (0 if behind is None else behind.total)

    def has_ended(self, sink: str) -> bool:
        """Whether nothing more comes for a sink."""
        is_told = self._failure is None or self._queues[sink].told
        is_settled = self._came is None and self._raised is None
        is_over = self._is_over or self.ahead.closed
        return is_over and is_settled and is_told and not self.waiting(sink)

    def close(self) -> None:
        """Takes nothing more in."""
        self.ahead.stop()
        if self._lock._is_owned():  # type: ignore[attr-defined]
            return  # a step of this thread is in the middle of reading
        try:
            if self._lock.acquire(timeout=PATIENCE):
                self.ahead.close()
        finally:
            # Not asked first whether it is ours: a signal handler may raise after each question.
            try:  # noqa: SIM105
                self._lock.release()
            except RuntimeError:
                pass

    @property
    def _what(self) -> str:
        return f"operator {self.engine.name!r}"

    # ---- with the lock ----

    def _move_up(self, sink: str) -> None:
        """Fills a queue, which is empty, with the rows behind it."""
        behind = self._behind[sink]
        if behind is None:
            return
        parts = []
        while behind is not None:
            parts.append(behind.rows)
            behind = behind.before
        rows = [row for part in reversed(parts) for row in part]
        rest = {**self._behind, sink: None}
        queue = self._queues[sink]
        # No call from here to the end.
        queue.rows, queue.at, self._behind = rows, 0, rest

    def _check_limit(self, sink: str) -> None:
        for other in self.sinks:
            waiting = self.waiting(other)
            if other != sink and waiting > self._limit:
                raise ConfigurationError(
                    f"{self._what}: {waiting} rows of sink {other!r} wait while those of {sink!r} "
                    f"are asked for; expected limit={self._limit} at most: take some from "
                    f"rows[{other!r}], which has them all, or give pull() a higher limit="
                )

    def _take_in(self) -> None:
        """Has the engine run the next event, or the end; rows and failures wait then.

        Raises:
            BaseException: what a signal handler raises.
        """
        if not self.ahead.closed:
            try:
                # In a forked process nobody reads, and there would be no end of waiting.
                self.engine.parts.lifetime.check_open()
            except EngineClosedError as error:
                self._failure, self._is_over = error, True
                return
        came = self.ahead.event()
        if isinstance(came, End):
            if came.error is not None:
                self._failure, self._is_over = came.error, True
                self.ahead.forget()
                return
            if not came.is_whole or not self._finish or not self.engine.operator.has_timers:
                self._is_over = True
                return
            data, self._event = self._nothing(), None
        else:
            data, self._event, self._last = _data(came), came, came
        self._rejected = self.engine.durable.rejected.count
        try:
            self._came = self.engine.process_whole(
                data, order_by=self._order_by, source=self._source, end=self._event is None
            )
        except BaseException as error:
            self._raised = error
            self._settle()
            if not self._is_over:
                raise
        self._settle()

    def _nothing(self) -> Any:
        """No events, of the types of the last one."""
        if self._last is not None:
            return _data(self._last._replace(table=self._last.table.slice(0, 0)))
        names = [*self.engine.operator.event.names, self._order_by, self._source]
        return pa.table({name: pa.nulls(0) for name in names if name is not None})

    def _settle(self) -> None:
        """Takes over what has come of the event that the engine was given: its rows wait, and a
        failure behind them. May be begun anew."""
        rows, error, event = self._came, self._raised, self._event
        if rows is None and error is None:
            return
        is_done, failure = True, None
        if error is not None:
            partial = getattr(error, "specstream_partial", None)
            rows = None if partial is None else partial.output
            is_done = partial is not None and partial.consumed > 0
            if is_interrupt(error):
                is_done = is_done or self.engine.durable.rejected.count > self._rejected
            else:
                failure = _located(error, event)
                is_done = is_done or _is_of_event(error)
        done = self.ahead.done + (is_done and event is not None)
        is_over = failure is not None or (event is None and error is None)
        behind = self._behind if rows is None else self._with(rows)
        # No call from here to the end: all of it, or none.
        self._behind, self.ahead.done = behind, done
        self._failure, self._is_over = failure, is_over
        self._came = self._raised = self._event = None
        self.ahead.go_on()

    def _with(self, emitted: pa.Table) -> dict[str, _Behind | None]:
        """What waits behind the queues, with rows that were emitted added."""
        tables = self.engine.operator.rows(emitted)
        if len(self.sinks) == 1:
            tables = {self.sinks[0]: tables}
        behind = dict(self._behind)
        for sink, table in tables.items():
            if table.num_rows:
                before = behind[sink]
                total = table.num_rows + (0 if before is None else before.total)
                behind[sink] = _Behind(table.to_pylist(), total, before)
        return behind

    def _tell(self, queue: _Queue) -> BaseException:
        """The failure, to be raised once for each sink.

        It is dropped after the last one: its traceback refers to this, and both would keep the
        engine until the garbage collector comes.
        """
        failure, others = self._failure, [one for one in self._queues.values() if one is not queue]
        left = None if all(one.told for one in others) else failure
        assert failure is not None
        # No call from here to the caller.
        queue.told, self._failure = True, left
        return failure


def _data(event: Event) -> Any:
    """An event as an engine takes it."""
    return event.table if event.source is None else {event.source: event.table}


def _is_of_event(error: BaseException) -> bool:
    """Whether it is the event that has failed; else it has not run."""
    is_others = isinstance(error, EngineClosedError) or hasattr(error, "specstream_timer")
    return hasattr(error, "specstream_partial") and not is_others


def _located(error: BaseException, event: Event | None) -> BaseException:
    """What an event has raised, with where it stood."""
    if event is None:
        return error
    if isinstance(error, RowError):
        return error.at(event.place)
    note = f"raised by {event.place}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error


class PulledRows(Iterator[Row]):
    """The rows that an engine gives for a source; see :func:`pull`, which makes it.

    ``next(rows)`` takes events in until there is a row, and ``rows["alerts"]`` are those of one
    sink of a pipeline, which each have their own pace. Rows of different sinks may be asked for on
    different threads, those of one sink on one at a time.
    """

    def __init__(self, pulling: _Pulling, sink: str | None) -> None:
        self._pulling = pulling
        self._sink = sink

    def __iter__(self) -> PulledRows:
        return self

    def __next__(self) -> Row:
        row = self._pulling.take(self._one_sink(), False)
        if row is None:
            raise StopIteration
        return row

    def step(self) -> Row | None:
        """A row that waits, or the first row of exactly one more event.

        Returns:
            The row; None: the event gave none, or nothing more comes (:attr:`ended`). Behind the
            last event the engine is told the end, which is a step as well.

        Raises:
            Exception: as of ``next(rows)``; see :func:`pull`.
        """
        return self._pulling.take(self._one_sink(), True)

    def __getitem__(self, sink: str) -> PulledRows:
        sinks, what = self._pulling.engine.operator.sinks, self._what
        if not sinks:
            raise ConfigurationError(
                f"{what} has no sinks, and rows[{shown(sink)}] none: iterate over rows itself"
            )
        if sink not in sinks:
            hint = meant(sink, sinks) if isinstance(sink, str) else ""
            raise ConfigurationError(
                f"{what} has no sink {shown(sink)}; expected one of {', '.join(sinks)}{hint}"
            )
        return PulledRows(self._pulling, sink)

    @property
    def ended(self) -> bool:
        """Whether nothing more comes: a call has found the end, and all rows were given."""
        sinks = self._pulling.sinks if self._sink is None else (self._sink,)
        return all(map(self._pulling.has_ended, sinks))

    @property
    def pending(self) -> int:
        """How many events were read from the source and did not reach the engine yet.

        When the rows are closed they never will: of a source that cannot send again they are lost.
        """
        return self._pulling.ahead.pending

    def close(self) -> None:
        """Takes no more events in: ends the thread, and closes the source, of an iterator
        ``close()``. Rows that wait are still given.

        An iterator that does not come back with its next item is not waited for longer than a
        second: it is closed when it does. The engine stays open, and is told no end.

        Raises:
            Exception: what the source raised as it was closed.
        """
        self._pulling.close()

    def __enter__(self) -> PulledRows:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        sink = "" if self._sink is None else f", sink {self._sink!r}"
        state = "ended" if self.ended else f"{self.pending} events read ahead"
        return f"PulledRows({self._pulling.engine.name!r}{sink}, {state})"

    @property
    def _what(self) -> str:
        return f"operator {self._pulling.engine.name!r}"

    def _one_sink(self) -> str:
        if self._sink is not None:
            return self._sink
        sinks = self._pulling.sinks
        if len(sinks) > 1:
            raise ConfigurationError(
                f"{self._what} has the sinks {', '.join(sinks)}: ask for the rows of one of them, "
                f"as in next(rows[{sinks[0]!r}])"
            )
        return sinks[0]


@refuses_unknown
def pull(
    engine: Engine,
    events: Source | Mapping[str, Source],
    *,
    prefetch: int = 64,
    limit: int = 100_000,
    order_by: str | None = None,
    source: str | None = None,
    finish: bool = True,
) -> PulledRows:
    """An iterator over the rows that an engine gives for a source: for scripts, notebooks, tests.

    ``next(rows)`` has the engine run events until there is a row. ``rows.step()`` gives a row that
    waits, or runs exactly one event and gives its first row, or None. Rows are dicts, as
    ``Table.to_pylist()`` gives them, and all together those that ``process()`` gives for the same
    events; of several that one event emits each comes by itself. Of a pipeline with several sinks
    ``rows["alerts"]`` is such an iterator for each of them.

    Events run in the order in which the source gives them; the rows of a table are events one by
    one. Nothing is recorded: use :func:`run` where rows must survive the process.

    Args:
        engine: the engine, of an operator or a pipeline. It stays open.
        events: where they come from, as of :func:`run`; for a pipeline with several sources a dict
            of such by name, or their :func:`union`. Their events run in the order of ``order_by``,
            those of one time in that of their sources' names, as far as each source is in order.
            The next event is known when every source has given one, or has ended.
        prefetch: so many events a thread reads ahead of the engine, from this call on, and waits
            then until there is room. 0: there is no thread, and the source is read when rows are
            asked for. Sources that receive over a network, and asynchronous iterators, need one.
        limit: more rows than this of another sink must not wait when one sink asks for the next
            event; they are an error then, and stay where they are.
        order_by: as of :meth:`specstream.Engine.process`.
        source: likewise.
        finish: the end of ``events`` is that of the stream, which the engine is told: timers that
            are left fire. False: they wait.

    Returns:
        The rows; ``with`` closes them, and so does whoever drops them.

    Raises:
        ConfigurationError: an argument is not what it must be, ``events`` were read before, or the
            engine has submitted events that are not committed.
        InputError: the source lacks a column, or the operator needs ``order_by``.
        EngineClosedError: the engine is closed.
        SourceError: the source cannot be reached.
        Exception: out of ``next(rows)`` and ``rows.step()``: what the source or the operator
            raises, behind the rows that come before it; then the iterator has ended, for each sink
            by itself. The engine goes on with the next call. With ``errors="side"`` a failed event
            is set aside, and the next one is run.
        KeyboardInterrupt: and whatever else a signal handler raises, at once: no row is lost, and
            the next call goes on. Without a thread a generator that was interrupted itself cannot:
            a SourceError says so.

    When the rows are closed before the end, events that were read and have not run are lost where
    the source cannot send again: ``rows.pending`` counts them, at most ``prefetch`` and the rest of
    the table that was read last, and of several sources one more each. Nothing is acknowledged: a
    work queue of NATS, and the group of a consumer of Kafka, still have all events.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     total = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"x": int, "total": int})
    ... def running_total(state, event, emit):
    ...     state.total += event.x
    ...     if event.x > 1:
    ...         emit(event.x, state.total)
    >>> with ss.Engine(running_total, threads=2) as engine:
    ...     events = ss.sources.iterate({"x": x} for x in (1, 2, 3, 1))
    ...     with ss.sources.pull(engine, events) as rows:
    ...         next(rows)
    ...         rows.step(), rows.step()
    ...         list(rows), rows.ended
    {'x': 2, 'total': 3}
    ({'x': 3, 'total': 6}, None)
    ([], True)
    """
    instance("engine", engine, Engine, "an ss.Engine: pull(ss.Engine(operator), ...)")
    prefetch = integer("prefetch", prefetch, 0, other=", so many events are read ahead; 0: none")
    limit = integer("limit", limit, 0, other=", so many rows may wait for another sink")
    order_by, source = column("order_by", order_by), column("source", source)
    finish = flag("finish", finish)
    operator, what = engine.operator, f"operator {engine.name!r}"
    _check_engine(engine, order_by, what)
    source = operator.source_column(source)
    named = {"order_by": order_by, "source": source}
    sets_aside = engine.durable.rejected.policy == "side"
    wanted = Wanted(
        what=what,
        operator=operator,
        columns=dict(operator.event),
        beside={option: name for option, name in named.items() if name is not None},
        sets_aside=sets_aside,
        whole=sets_aside,
        # Sources decode so many at once, and an error has to come behind what is before it.
        rows=1,
        ahead=False,
    )
    readings = _readings(events, wanted)
    if len(readings) > 1 and order_by is None:
        raise ConfigurationError(
            f"{what}: events of {len(readings)} sources have no common order: give order_by=, the "
            "column of each that has the time"
        )
    for one in readings:
        if not prefetch and one.source.needs_thread:
            raise ConfigurationError(
                f"prefetch=0 with {one.source.name}, which needs a thread that receives while "
                "nobody asks; expected at least 1"
            )
    names = [name for name in (order_by, source) if name is not None and name != SOURCE]
    ahead = Ahead(readings, prefetch, names, what)
    pulling = _Pulling(engine, ahead, limit, order_by, source, finish)
    try:
        ahead.start()
    except BaseException:
        ahead.leave()
        raise
    return PulledRows(pulling, None)


def _check_engine(engine: Engine, order_by: str | None, what: str) -> None:
    """Whether an engine can run events one by one.

    Raises:
        ConfigurationError: it cannot, or not now.
        InputError: it needs an order.
        EngineClosedError: it is closed.
    """
    with engine.durable.exclusive():
        left = engine.durable.pending.segments.left
    if left:
        raise ConfigurationError(
            f"engine of {engine.name!r}: {left} submitted event(s) are not committed, and pull() "
            "would run others before them; expected an engine without such: advance() their "
            "sources and poll() first"
        )
    if engine.operator.event.phases:
        raise ConfigurationError(
            f"pipeline {engine.name!r} has phases by time, and pull() runs events one by one, "
            "when nobody knows whether a time is complete: ss.sources.run(..., watermark=) does, "
            "and process(..., end=True) of a table with all events of its times"
        )
    check_order(engine.operator, order_by)


def _readings(events: object, wanted: Wanted) -> list[Reading]:
    """Of each source one, in the order of their names."""
    if isinstance(events, Mapping):
        events = union(events)
    if not isinstance(events, UnionSource):
        return [Reading(None, checked_source(events), wanted)]
    parts = events.parts(wanted)
    return [Reading(name, *parts[name]) for name in sorted(parts)]
