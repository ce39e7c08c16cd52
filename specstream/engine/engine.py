"""The engine: one operator, its state, its threads; batches in, batches out.

What users see of it. It checks and delegates: its parts, each in a file of its name, do the work.
Most of the length is what users read of each call, with an example; hence it is one piece.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

import pyarrow as pa

from specstream.columns.events import column, read_events
from specstream.columns.failed_events import Errors
from specstream.columns.phases import phases_of
from specstream.columns.rejected_rows import Policy
from specstream.declarations.deprecated import by_old_name, renamed, takes_old_name
from specstream.declarations.limits import Limits
from specstream.declarations.options import (
    flag,
    instance,
    refused,
    refuses_unknown,
    unknown_option,
)
from specstream.declarations.state_view import StateView
from specstream.definition.operator import Operator, check_order
from specstream.engine.answers import Answering
from specstream.engine.batch import Batch
from specstream.engine.committed_state import Committed, Savepoint
from specstream.engine.durable import Durable
from specstream.engine.early_results import Changes, EarlyAnswer, EarlyResults
from specstream.engine.emitted_rows import EmittedRows
from specstream.engine.flight import Flight
from specstream.engine.hooks import Describer, Hook, Hooks
from specstream.engine.interpreted_code import InterpretedCode
from specstream.engine.lifetime import Lifetime, check_unused
from specstream.engine.live_state import LiveState
from specstream.engine.machine_code import MachineCode
from specstream.engine.memory import fit
from specstream.engine.native import Native, configuration
from specstream.engine.open_job import OpenJob
from specstream.engine.options import Amount, Execution, Options
from specstream.engine.parts import Parts
from specstream.engine.polling import Poller
from specstream.engine.snapshot import Migrate, checked_snapshot
from specstream.engine.sources import Late, Name
from specstream.engine.statistics import Counted, Statistics
from specstream.engine.string_sweep import StringSweep
from specstream.engine.submitting import Submitter
from specstream.engine.turn import Turn
from specstream.errors import ConfigurationError, InputError, SnapshotError
from specstream.predictors.checked import speculates_of
from specstream.predictors.predictor import Predictor
from specstream.profiling import Profile, conflicts_by_vertex, profile_of
from specstream.profiling.container_parts import part_of

__all__ = ["Amount", "Engine", "Savepoint", "check_engine_options"]


class Engine:
    """Runs one operator over batches of events, on several threads, with the sequential answer.

    Args:
        operator: made by :func:`specstream.operator`.
        threads: worker threads, at least 1.
        horizon: how many transactions may start ahead of the next to commit; 0 runs the operator
            plainly on one thread; "auto" leaves it to :class:`specstream.Auto`, which goes by the
            measured time per event. With one thread that is 0.
        chunk: consecutive events in one transaction, or "auto". With both horizon and chunk given,
            the setting is fixed; one that is given alone holds whenever the engine speculates. With
            an ``execution`` other than "ordered", "auto" means 8.
        predictor: moves horizon and chunk itself; takes the place of both. It serves one open
            engine at a time; see :class:`specstream.predictors.Predictor` for one of your own.
        protocol: how conflicts are found: "value" compares what was read with the state at commit;
            "eager" locks what is written at the access, as in the dissertation (Brito 2010, 4.2).
        record_shift: with protocol "eager", 2 to this power neighbouring words share one lock,
            unless a field says otherwise (``ss.array(..., share=...)``).
        seed: of ``event.random`` and ``event.random_bits``.
        keys: add the columns timestamp, source and sequence to the output.
        limits: what one speculative run may log; see :class:`specstream.Limits`.
        memory: the most bytes that logs and buffers may take, the state not counted; None: no
            bound. An "auto" horizon and those of predictors are shortened to fit. What the head
            writes in one event, and what a batch emits, has to be kept whatever its size: it counts
            in ``stats.memory`` and has no bound.
        initial: values to start with, by field name: numbers, strings or arrays; for a dict field a
            mapping, pairs, or a table with columns ``key`` and ``value``, as ``state.table()``
            gives it; for other containers an iterable, an array or a table. Fields that are not
            among them have their fill.
        restore: a snapshot to start from.
        migrate: with ``restore``: see :meth:`restore`.
        execution: "ordered" for results. For benchmarks: "speculate" never runs the head in place
            at its first try, "log_free" is one thread without any log, "locked" runs all threads
            without order under the operator's own locks; see :func:`specstream.locks`. These two
            undo nothing: an event that raises, or that Ctrl-C or :meth:`close` interrupts, may
            leave part of its changes in the state.
        profile: count the lines that conflicts come from, for :meth:`profile`. Speculation then
            takes a little more time.
        sources: for events that are submitted out of order: the sources that hold back commits from
            the start, even before their first event; others join with their first event.
        late: what :meth:`submit` does with events below their source's frontier: "error" refuses
            the table, "drop" leaves them out and counts them, "side" keeps them for :meth:`late`.
        rejected_rows: what happens to rows that cannot be events, because of a null in a column
            that is not nullable, a value that does not fit, or a NaN in the order column: "error"
            refuses the table, "side" leaves them out, counts them, and keeps them for
            :meth:`rejected_rows`.
        errors: what happens when the operator raises: "raise" raises it, and the rows after the
            event are not run; "side" sets the event aside for :meth:`failed_events`, counts it, and
            goes on with the next one.
        early: apply submitted events at once, in the order known so far, and report their results
            before they are final: see :meth:`poll_early`. It takes twice the memory of the state,
            and what ``limits.early`` allows for events that are not final.
        on_abort: called before a dropped run is repeated.
        on_commit: called in order, when an event's run is validated and nobody has seen its effects
            yet; ``raise ss.Abort`` has the event run again.
        on_post_commit: called after a commit, in no order.
        bad_rows: old name of ``rejected_rows``, until version 0.3.

    A hook is called with a :class:`specstream.Notification`, in a thread of the engine. It may look
    at ``stats`` and ``profile()``; all else that it asks of the engine, closing it included, raises
    SpecstreamError, as the engine waits for the hook. What a hook raises ends the batch: out of
    ``on_commit``, like something that the event itself raises. With a hook a transaction is one
    event.

    Raises:
        ConfigurationError: an option has a value that it cannot have, a value of ``initial`` does
            not fit its field, or ``memory`` is too little; says how much it takes.
        CompileError: the operator's types do not fit.
        SnapshotError: ``restore`` is damaged, or its fields do not fit the operator's state.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
    ... def running_total(state, event, emit):
    ...     state.count += event.x
    ...     emit(state.count)
    >>> with ss.Engine(running_total, threads=2, horizon=4, chunk=2) as engine:
    ...     output = engine.process({"x": [1, 2, 3]})
    ...     engine.state.count
    6
    >>> output["total"].to_pylist()
    [1, 3, 6]
    """

    @takes_old_name("Engine", "bad_rows", "rejected_rows")
    @refuses_unknown
    def __init__(
        self,
        operator: Operator,
        *,
        threads: int = 2,
        horizon: Amount = "auto",
        chunk: Amount = "auto",
        predictor: Predictor | None = None,
        protocol: str = "value",
        record_shift: int = 0,
        seed: int = 0,
        keys: bool = False,
        limits: Limits | None = None,
        memory: int | None = None,
        initial: Mapping[str, Any] | None = None,
        restore: bytes | None = None,
        migrate: Migrate | None = None,
        execution: Execution = "ordered",
        profile: bool = False,
        sources: Iterable[Name] = (),
        late: Late = "error",
        rejected_rows: Policy = "error",
        errors: Errors = "raise",
        early: bool = False,
        on_abort: Hook | None = None,
        on_commit: Hook | None = None,
        on_post_commit: Hook | None = None,
        bad_rows: Policy | None = None,
    ) -> None:
        self._lifetime: Lifetime | None = None  # until there is something to close
        options = Options(
            operator=operator,
            threads=threads,
            horizon=horizon,
            chunk=chunk,
            predictor=predictor,
            protocol=protocol,
            record_shift=record_shift,
            seed=seed,
            keys=keys,
            limits=Limits() if limits is None else limits,
            memory=memory,
            execution=execution,
            profile=profile,
            sources=sources,
            late=late,
            rejected_rows=rejected_rows,
            errors=errors,
            early=early,
        )
        checked_snapshot("restore", restore, migrate)
        if initial is not None and restore is not None:
            raise ConfigurationError(
                "initial= and restore= both say with what the state begins: give one of them; "
                "migrate= changes the fields of a snapshot"
            )
        if migrate is not None and restore is None:
            raise ConfigurationError(
                "migrate= converts the fields of a snapshot: give restore=, the snapshot, as well"
            )
        self.operator, self.name = operator, operator.name
        self.threads, self.seed = options.threads, options.seed
        self.limits, self.protocol = options.limits, options.protocol
        hooks = {"on_abort": on_abort, "on_commit": on_commit, "on_post_commit": on_post_commit}
        self._parts = parts = _parts(options, hooks, initial, restore, migrate)
        self._lifetime = parts.lifetime
        early_results = EarlyResults(parts.native, operator.emits, operator.rows)
        if options.early:
            early_results.follow(*parts.committed.told_early, parts.committed.event_types)
        rows = EmittedRows(parts, early_results)
        self._sweep = StringSweep(parts, rows.words)
        self._job = OpenJob(parts, rows, early_results)
        self._submitter = Submitter(parts, self._job, self._sweep)
        self._poller = Poller(parts, self._job, rows, early_results)
        self._durable = Durable(parts, self._job, rows, early_results, self._sweep)
        self._counted = Counted(parts, early_results.count if options.early else None, self._sweep)
        parts.lifetime.at_end += [
            self._job.abandon,
            self._counted.take_places,
            self._counted.count,
        ]

    # ---- life ----

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # At interpreter exit module globals may be gone; the process ends the threads then.
        try:
            if self._lifetime is None:
                return
            if self._lifetime.in_hook():
                # The collector ran in one of our own threads, or the hook was the last to hold us:
                # somebody else has to wait for its end.
                threading.Thread(target=self.close).start()
            else:
                self.close()
        except Exception:
            return

    def __reduce__(self) -> Any:
        # A copy would close the engine when nobody has it any more.
        raise TypeError(
            f"engine of {self.name!r} has threads, and can be neither copied nor pickled: make "
            "another one where it is wanted, Engine(operator, restore=engine.snapshot())"
        )

    def __repr__(self) -> str:
        stats = self.stats
        return (
            f"Engine({self.name!r}, threads={self.threads}, {self._predictor_name}, "
            f"{self._condition}: {stats.events:,} events, "
            f"{sum(stats.aborts.values()):,} aborts)"
        )

    def _repr_html_(self) -> str:
        # Nothing in it waits for a batch in flight; the state, which might, has a view of its own.
        title = f"Engine of operator {self.name}, {self._condition}"
        setting = f"{self._predictor_name}, protocol {self.protocol}, now "
        return self.stats.sheet(title, setting).html()

    @property
    def _predictor_name(self) -> str:
        return type(self._parts.predictor).__name__

    @property
    def _condition(self) -> str:
        lifetime = self._parts.lifetime
        if lifetime.is_inherited():
            return f"of process {lifetime.process}"
        return "closed" if lifetime.closed else "open"

    def close(self) -> None:
        """Ends the threads. A batch in flight ends at its next event, with EngineClosedError.

        Closing twice does nothing. Views of the state stay valid. In a process forked from the
        engine's, nothing is closed but this process's use of it.

        Any thread may close the engine, whatever others do with it: their calls end with
        EngineClosedError. Called in the middle of another call of the same thread, by a signal
        handler for example, it returns at once, and the threads end when that call has.

        Raises:
            SpecstreamError: it was called by a hook, which the engine waits for.
        """
        self._parts.lifetime.close()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` has ended it, or is about to."""
        return self._parts.lifetime.closed or self._parts.lifetime.closing

    # ---- batches ----

    @refuses_unknown
    def process(
        self,
        table: Any,
        *,
        order_by: str | None = None,
        source: str | None = None,
        end: bool = False,
    ) -> Any:
        """Runs the events of a table, in order, and returns the emitted rows.

        Args:
            table: with at least the columns of the operator's event schema: a pyarrow Table,
                RecordBatch or RecordBatchReader; a pandas or polars DataFrame, a DuckDB relation,
                or whatever else speaks the Arrow interface; a dict of arrays; a list of rows
                (dicts, objects of a dataclass, named tuples), where what a row lacks is null. Of a
                pipeline with several sources a dict of such, by source.
            order_by: order the rows by (this column, ``source``, position).
            source: column that names each event's source: integers or strings. Of a pipeline with
                several sources those are the names.
            end: no event follows: the timers that are left fire, in order, but not those that they
                set. A pipeline with phases by time takes whole timestamps only, and so needs this.

        Returns:
            A table with the columns of ``emits``, and the order key with ``keys=True``. Of a
            pipeline with several sinks a dict of tables, by sink.

        Raises:
            InputError: the table does not fit, or could end in the midst of a phase by time;
                nothing was run.
            ConfigurationError: ``order_by`` or ``source`` is no name.
            EngineClosedError: the engine is closed, or was closed during the call.
            Exception: what the operator raised. Its event is not applied, the rows after it are not
                run, and the engine goes on with the next call. ``specstream_partial`` on the
                exception holds the output and number of the rows before it. With ``errors="side"``
                none of this is raised, and the rows after it are run, except for an
                OperatorCrashError or a MemoryError, which are not the fault of the event. What
                ``on_timer`` raised, likewise: the timer has fired, its changes are undone, and
                ``specstream_timer`` on the exception names it, as (key, at); no event has failed.
                In a phase by time no event is applied; ``specstream_phase`` on the exception has
                its time and their number.
            OperatorCrashError: likewise, where the operator's machine code crashed.
            MemoryError: likewise, where there was no memory for what an event stores or emits.
            KeyboardInterrupt: likewise, and whatever else a signal handler raises, with what was
                applied until then. Without ``specstream_partial``: nothing was run.

        Calls from several threads run one after the other.
        """
        return self._process(table, order_by, source, end, self.operator.rows)

    def _process(
        self,
        table: Any,
        order_by: str | None,
        source: str | None,
        end: bool,
        given: Callable[[pa.Table], Any],
    ) -> Any:
        """:meth:`process`; ``given`` makes of emitted rows what the caller gets."""
        order_by = column("order_by", order_by)
        source = column("source", source)
        end = flag("end", end)
        check_order(self.operator, order_by)
        if self.operator.event.phases and not end:
            raise InputError(
                f"pipeline {self.name!r} has phases by time, and a batch could cut a timestamp in "
                "two: submit() the events and advance() their sources; in Spark give watermark=; "
                "of a table that has all events of its times say end=True"
            )
        batch: Batch | None = None
        try:
            with self._parts.lifetime.exclusive():
                batch = self._batch(table, order_by, source, end)
                partial = batch.partial.of(given)
                return given(batch.run())
        except BaseException as error:
            # Here, as a signal handler may raise when all is done and the engine is given back; and
            # without a call, in which another one may.
            if batch is not None and batch.has_begun:
                error.specstream_partial = partial  # type: ignore[attr-defined]
                self._parts.flight.end_is_unheard = True
            raise

    def _batch(self, table: Any, order_by: str | None, source: str | None, end: bool) -> Batch:
        """The table as a batch, which no submitted event is to come before."""
        parts, committed = self._parts, self._parts.committed
        operator = self.operator
        source = operator.source_column(source)
        what = f"operator {self.name!r}"
        committed.check_nothing_pending(what)
        self._job.check_nothing_due(what)
        if parts.flight.is_open:
            parts.lifetime.finish(self._job.end)
        self._sweep.sweep_if_due()
        events = read_events(
            operator.events_table(table, what, (order_by, source)),
            operator.event,
            committed.strings,
            what,
            committed.next_sequence,
            order_by=order_by,
            source=source,
            reads_timestamp=operator.program.reads_timestamp,
            rejected_rows=committed.rejected.policy,
            check_times=committed.check_times,
            enters_all=False,
        )
        if order_by is not None and operator.has_timers and events.count:
            committed.pending.know_times(events)
        if operator.event.phases:
            events = phases_of(events, operator.event)
        return Batch(parts, events, ordered=order_by is not None, ends_input=end)

    def rejected_rows(self) -> pa.Table | None:
        """Rows that could not be events, since the last call; None: none.

        The rows are as they were given, with ``reason`` as a last column. Where tables of different
        calls cannot be joined, because a column has another type, the next call returns the rest.
        Engines made with ``rejected_rows="side"`` keep them; ``stats.rejected_rows`` counts them.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     count = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
        ... def running_total(state, event, emit):
        ...     state.count += event.x
        ...     emit(state.count)
        >>> with ss.Engine(running_total, rejected_rows="side") as engine:
        ...     engine.process({"x": [1, None, 3]})["total"].to_pylist()
        ...     engine.rejected_rows().to_pylist()
        [1, 4]
        [{'x': None, 'reason': "column 'x' is null"}]
        """
        with self._parts.lifetime.exclusive():
            return self._parts.committed.rejected.take()

    def failed_events(self) -> pa.Table | None:
        """Events whose function has raised, since the last call, in their order; None: none.

        Engines made with ``errors="side"`` keep them; ``stats.failed_events`` counts them. Such an
        event has changed nothing and emitted nothing, and those behind it have run. Submitted
        events are among them when :meth:`poll` has come to them.

        The columns are the order key (``timestamp``, ``source``, ``sequence``), those of the event
        schema, and ``error``, the name of the exception's class, ``message``, its text, and
        ``traceback``, the lines of the operator that led there. Of a pipeline there is ``vertex``,
        the one that raised; of phases by time all events of the phase. With timers there is
        ``timer``, the key and the time of a timer that has raised: it has fired, has no source, and
        the columns of events are null. As with :meth:`rejected_rows`, the next call may return the
        rest.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     total = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
        ... def sums(state, event, emit):
        ...     state.total += event.x
        ...     if event.x < 0:
        ...         raise ValueError("x is negative")
        ...     emit(state.total)
        >>> with ss.Engine(sums, errors="side") as engine:
        ...     engine.process({"x": [1, -2, 3]})["total"].to_pylist()
        ...     failed = engine.failed_events()
        [1, 4]
        >>> failed.select(["sequence", "x", "error", "message"]).to_pylist()
        [{'sequence': 1, 'x': -2, 'error': 'ValueError', 'message': 'x is negative'}]
        """
        with self._parts.lifetime.exclusive():
            return self._parts.committed.failed.take()

    def bad_rows(self) -> pa.Table | None:
        """Old name of :meth:`rejected_rows`, until version 0.3."""
        renamed("Engine.bad_rows()", "Engine.rejected_rows()")
        return self.rejected_rows()

    # ---- events out of order ----

    @refuses_unknown
    def submit(
        self,
        table: Any,
        *,
        order_by: str,
        source: Name | None = None,
        source_column: str | None = None,
        ordered: bool = False,
        final: bool = True,
        sequence_by: str | None = None,
    ) -> None:
        """Submits events that may be out of order with earlier ones; does not wait for them.

        Events run at once, ahead of their turn, and commit in the order of (timestamp, source,
        sequence number within the source), when the frontiers of all sources have passed them. The
        outcome is that of one sequential run in this order. Those of a pipeline with phases by time
        run when the frontiers have passed them. :meth:`advance` moves a frontier, :meth:`poll` gets
        what was emitted.

        Args:
            table: as for :meth:`process`.
            order_by: column of the timestamps; of one type in all tables.
            source: name of the source that all rows are of; 0 by default.
            source_column: instead of ``source``: the column that names each row's source.
            ordered: the source will send no earlier event: moves its frontier to the table's last
                timestamp.
            final: False: the events are tentative. They are applied like others, but neither they
                nor later events become final before :meth:`confirm`; until then :meth:`revise` and
                :meth:`retract` can change them. For engines with ``early=True``.
            sequence_by: for tentative events: the column of the sequence numbers that identify
                them, each higher than earlier ones of the source. Left out, the events get the next
                numbers.

        Raises:
            InputError: the table does not fit, or has late events and the engine was made with
                ``late="error"``; nothing is submitted.
            ConfigurationError: another argument is not what it must be.
            KeyboardInterrupt: or whatever else a signal handler raises: the whole table is
                submitted, or nothing of it; ``stats.pending`` counts events that are not committed.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     count = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={"x": int, "place": int})
        ... def number(state, event, emit):
        ...     state.count += 1
        ...     emit(event.x, state.count)
        >>> with ss.Engine(number, threads=2, horizon=8, chunk=1, sources=["a", "b"]) as engine:
        ...     engine.submit({"time": [10, 30], "x": [1, 3]}, order_by="time", source="a")
        ...     engine.submit({"time": [20], "x": [2]}, order_by="time", source="b")
        ...     engine.advance("a", 40)
        ...     engine.advance("b", 25)
        ...     engine.poll(timeout=5)["x"].to_pylist()
        [1, 2]
        """
        self._submitter.submit(
            table,
            order_by=order_by,
            source=source,
            source_column=source_column,
            ordered=ordered,
            final=final,
            sequence_by=sequence_by,
        )

    def submit_event(
        self,
        timestamp: Any,
        source: Name = 0,
        *,
        ordered: bool = False,
        final: bool = True,
        sequence: int | None = None,
        **values: Any,
    ) -> None:
        """:meth:`submit` for one event, without the cost of a table.

        Args:
            timestamp: its time; an integer costs least.
            source: the source that it is of.
            ordered: as for :meth:`submit`.
            final: as for :meth:`submit`.
            sequence: of a tentative event: its number.
            values: of all columns of the operator's event schema, by name.

        Raises:
            InputError: the event does not fit, or is late and the engine was made with
                ``late="error"``; it is not submitted.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     count = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": float}, emits={"x": float, "place": int})
        ... def number(state, event, emit):
        ...     state.count += 1
        ...     emit(event.x, state.count)
        >>> with ss.Engine(number, threads=2) as engine:
        ...     engine.submit_event(7, x=0.5, ordered=True)
        ...     engine.poll_rows(timeout=5)
        [(0.5, 1)]
        """
        self._submitter.submit_event(timestamp, source, ordered, values, final, sequence)

    def confirm(self, source: Name, up_to: int | None = None) -> None:
        """Makes tentative events of a source definite: nothing can change them any more.

        Args:
            source: the one that sent them.
            up_to: those with sequence numbers up to this one, including events that come later;
                None: all that have come.

        Raises:
            InputError: the source is not known.
            ConfigurationError: the engine was made without ``early=True``.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     total = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
        ... def sums(state, event, emit):
        ...     state.total += event.x
        ...     emit(state.total)
        >>> with ss.Engine(sums, sources=["a"], early=True) as engine:
        ...     for number in (1, 2, 3):
        ...         engine.submit_event(10 * number, "a", final=False, sequence=number, x=number)
        ...     print(engine.poll_early(timeout=None).changes["total"].to_pylist())
        ...     engine.revise("a", 2, version=2, x=20)
        ...     engine.retract("a", 1)
        ...     print(engine.poll_early(timeout=None).changes["total"].to_pylist())
        ...     engine.confirm("a", up_to=2)
        ...     engine.advance("a", 100)
        ...     print(engine.poll(timeout=None)["total"].to_pylist())
        [1, 3, 6]
        [1, 20, 23]
        [20]
        """
        self._submitter.confirm(source, up_to)

    def revise(self, source: Name, sequence: int, version: int, **values: Any) -> None:
        """Gives a tentative event other values; its time and its place in the order stay the same.

        What it has changed is taken back, and what depends on it runs again; an event that has
        other values only in columns that the operator does not read costs nothing.

        Args:
            source: of the event.
            sequence: its sequence number.
            version: of the change, above that of the change before; a new event has version 1. A
                change that has been made before has no effect.
            values: of the columns that change, by name; one at least.

        Raises:
            InputError: there is no such event, it is confirmed or retracted, or a value does not
                fit; nothing has changed.
            ConfigurationError: the engine was made without ``early=True``.
        """
        self._submitter.revise(source, sequence, version, values)

    def retract(self, source: Name, sequence: int) -> None:
        """Takes back a tentative event, as if it never came; its sequence number is not used again.

        To move an event in time, retract it and submit it anew.

        Args:
            source: of the event.
            sequence: its sequence number. Retracting an event again changes nothing.

        Raises:
            InputError: there is no such event, or it is confirmed; nothing has changed.
            ConfigurationError: the engine was made without ``early=True``.
        """
        self._submitter.retract(source, sequence)

    def advance(self, source: Name, to: Any = None) -> None:
        """Moves a source's frontier: says that no event below ``to`` comes from it any more.

        Args:
            source: its name; a new name declares a source.
            to: a timestamp of the order column's type; None: the source has ended. A frontier never
                moves back: an earlier ``to`` changes nothing.

        Raises:
            InputError: ``to`` is of another type.
        """
        self._submitter.advance(source, to)

    def poll(self, timeout: float | None = 0.0) -> Any:
        """What submitted events have emitted since the last call, in the order of their keys.

        Pending events of a snapshot or a savepoint run on with the first call of this method,
        :meth:`submit` or :meth:`advance` after it was restored.

        Args:
            timeout: seconds to wait for rows; less if events have committed without emitting any,
                and no other can commit now. None: waits until all events below the frontier have
                committed, so that the rows depend on the events and frontiers alone.

        Returns:
            A table as :meth:`process` gives it. Its events are committed.

        Raises:
            Exception: what the operator raised. Its event is not applied; later ones are, and
                the next call goes on behind it. ``specstream_partial`` on the exception holds what
                this call would have returned, and how many events were applied since the last.
            KeyboardInterrupt: or whatever else a signal handler raises: likewise with
                ``specstream_partial``; without it, the next call returns the rows.
        """
        return self._poller.poll(timeout)

    def poll_rows(self, timeout: float | None = 0.0) -> list[tuple[Any, ...]]:
        """:meth:`poll` for few rows at a time: tuples of the columns of ``emits``, without keys.

        Args:
            timeout: seconds to wait for rows, as of :meth:`poll`; None: until all events below the
                frontier have committed.

        Raises:
            Exception: as :meth:`poll` does.
        """
        return self._poller.poll_rows(timeout)

    @refuses_unknown
    def poll_early(
        self, timeout: float | None = 0.0, *, changes: Changes = "upsert"
    ) -> EarlyAnswer:
        """What has changed in the results of submitted events, final or not.

        For engines made with ``early=True``. Each answer is the difference between what was
        reported last and what is applied now: all events that have come, in the order of their
        keys, as if no earlier one were to follow. A late event takes back what it changes, and the
        next answer says so. Changes are recorded from the first call on. Make it before the first
        event comes: otherwise it begins with what is applied and not final by then. What the
        operator raises is raised by :meth:`poll`, when its event is final.

        Args:
            timeout: seconds to wait until all that was submitted is applied; None: as long as that
                takes. It does not wait for what cannot be applied before earlier events are final:
                an event that exceeds ``limits``, or events beyond ``limits.early``.
            changes: "upsert" gives a changed row anew; "retract" gives the old row with -1, and the
                new one with +1.

        Returns:
            See :class:`specstream.engine.early_results.EarlyAnswer`.

        Raises:
            ConfigurationError: the engine was made without ``early=True``, or an argument is not
                what it must be.
            KeyboardInterrupt: or whatever else a signal handler raises: the answer is in
                ``specstream_partial`` on the exception, or comes with the next call.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     total = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
        ... def sums(state, event, emit):
        ...     state.total += event.x
        ...     emit(state.total)
        >>> with ss.Engine(sums, sources=["a", "b"], early=True) as engine:
        ...     engine.submit({"time": [10, 30], "x": [1, 3]}, order_by="time", source="a")
        ...     print(engine.poll_early(timeout=None).changes["total"].to_pylist())
        ...     engine.submit({"time": [20], "x": [2]}, order_by="time", source="b")
        ...     late = engine.poll_early(timeout=None).changes
        ...     print(late["timestamp"].to_pylist(), late["total"].to_pylist())
        [1, 4]
        [20, 30] [3, 6]
        """
        return self._poller.poll_early(timeout, changes)

    def late(self) -> pa.Table | None:
        """Late events since the last call, as they were given; None: none.

        They are kept by engines made with ``late="side"``; ``stats.late`` counts them under every
        policy but "error".
        """
        return self._poller.late()

    # ---- state ----

    @property
    def state(self) -> StateView:
        """Committed state: a live read-only view, or a copy while a batch is in flight.

        It always shows a whole number of events. Containers are read when you ask for them, a list
        or a whole dict at one instant; ``state.positions.get(key)``, ``key in state.positions`` and
        ``len`` do not keep commits waiting. It can be read after ``close()``, and in a process
        forked from the engine's while no batch was in flight.

        Raises:
            EngineClosedError: this process was forked from the engine's during a batch.
            SpecstreamError: it was asked for by a hook, or in the middle of another call of the
                same thread, by a signal handler for example.
        """
        return LiveState(self._parts).view()

    @property
    def stats(self) -> Statistics:
        """Statistics since the engine was made, as they are at this instant.

        Any thread may ask for them at any time, also while a batch is in flight in another: events
        go on meanwhile. They can be read after ``close()``; in a process forked from the engine's
        they stand still.
        """
        return self._counted.look()

    def profile(self) -> Profile:
        """The words that speculative runs were dropped for, since the engine was made.

        Each has its field, its index and the lines that accessed it: with ``profile=True`` those
        that were executed, with counts; otherwise all that name the field. The counts are in a
        table of fixed size that keeps every word that matters; runs that commit do not pay for it.
        While a batch is in flight, it is what was known before; it can be read after ``close()``.
        """
        stats = self.stats
        self._counted.look_at_places()
        operator, options = self.operator, self._parts.options
        committed = self._parts.committed
        return profile_of(
            operator.program,
            operator.layout,
            stats,
            self._counted.hot_places,
            options.protocol,
            options.record_shift,
            options.profile,
            lambda field, word: part_of(field, word, committed.words, committed.strings.objects),
        )

    def conflicts_by_vertex(self) -> dict[str, int]:
        """Speculative runs of a pipeline that were dropped for each vertex's state, a lower bound.

        The vertex with the most comes first, and those without any are left out. As with
        :meth:`profile`, runs that commit do not pay for the counts.
        """
        if not self.operator.layout.parts:
            return {}
        self._counted.look_at_places()
        return conflicts_by_vertex(self.operator.layout, self._counted.hot_places)

    def snapshot(self) -> bytes:
        """Committed state, strings, sequence numbers, and submitted events, as bytes.

        Of events out of order it holds those that are not committed, the sources and their
        frontiers, and the output that was not polled. It also holds the rejected rows, failed
        events and late events that nobody has fetched.

        While a batch is in flight, its commits wait for one copy of the state. At its peak it takes
        twice the state's size, the bytes that it returns included.

        Raises:
            EngineClosedError: the engine is closed, or this process was forked from the engine's
                during a batch.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     count = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={})
        ... def count(state, event, emit):
        ...     state.count += 1
        >>> with ss.Engine(count, horizon=0) as engine:
        ...     _ = engine.process({"x": [1, 2]})
        ...     snapshot = engine.snapshot()
        >>> with ss.Engine(count, horizon=0, restore=snapshot) as engine:
        ...     engine.state.count
        2
        """
        lifetime = self._parts.lifetime
        if lifetime.closed or not lifetime.is_inherited():
            lifetime.check_open()
        content = self._parts.turn.still(lambda idle: self._durable.content())
        return content.to_bytes()

    def restore(
        self,
        snapshot: bytes = b"",
        *,
        migrate: Migrate | None = None,
        image: bytes | None = None,
    ) -> None:
        """Goes on from a snapshot: state, strings, sequence numbers, submitted events, rejected
        rows.

        Events that were submitted to this engine and are not committed are forgotten, and so are
        its rejected rows and failed events. Those of the snapshot run with the next call of
        :meth:`submit`, :meth:`advance` or :meth:`poll`.

        Fields are matched by name. One that the snapshot lacks gets its fill; one that the operator
        lacks, or has with another shape or type, is an error unless ``migrate`` converts it.

        Args:
            snapshot: what :meth:`snapshot` returned.
            migrate: called with the snapshot's fields, arrays by name as ``state.to_dict()`` has
                them; returns the new state's fields likewise. Those that it leaves out get their
                fill. It is called whenever it is given, whatever the snapshot's fields are.
            image: the former name of ``snapshot``, until version 0.3.

        Raises:
            SnapshotError: it is damaged or no snapshot, or its fields, those returned by
                ``migrate``, its events or its output do not fit the operator; says which. The
                engine stays as it was.
            ConfigurationError: ``migrate`` is no function.
            Exception: what ``migrate`` raised. The engine stays as it was.

        >>> import specstream as ss
        >>> class Old(ss.State):
        ...     milliseconds = ss.scalar(int)
        >>> class New(ss.State):
        ...     seconds = ss.scalar(float)
        ...     events = ss.scalar(int)
        >>> @ss.operator(state=Old, event={"ms": int})
        ... def old(state, event, emit):
        ...     state.milliseconds += event.ms
        >>> @ss.operator(state=New, event={"ms": int})
        ... def new(state, event, emit):
        ...     state.seconds += event.ms / 1000
        ...     state.events += 1
        >>> with ss.Engine(old, horizon=0) as engine:
        ...     _ = engine.process({"ms": [1500]})
        ...     snapshot = engine.snapshot()
        >>> def migrate(fields):
        ...     return {"seconds": fields["milliseconds"] / 1000}
        >>> with ss.Engine(new, horizon=0, restore=snapshot, migrate=migrate) as engine:
        ...     _ = engine.process({"ms": [500]})
        ...     engine.state.seconds, engine.state.events
        (2.0, 1)
        """
        if image is not None:
            old, new = "Engine.restore(image=)", "Engine.restore(snapshot=)"
            snapshot = by_old_name(old, new, image, snapshot != b"")
        if snapshot is None:
            raise refused("snapshot", snapshot, "what snapshot() returned", SnapshotError)
        checked_snapshot("snapshot", snapshot, migrate)
        self._durable.restore(snapshot, migrate)

    def savepoint(self) -> Savepoint:
        """The engine as it is now, kept in memory; :meth:`rollback` goes back to it.

        It holds a copy of the state, and of submitted events that are not committed, and keeps the
        strings, rejected rows and late events that are there now.
        """
        return self._durable.savepoint()

    def rollback(self, to: Savepoint) -> None:
        """Back to a savepoint: state, strings, next sequence number, rejected rows, failed and
        pending events.

        Events that were pending run again from the start, with the next call of :meth:`submit`,
        :meth:`advance` or :meth:`poll`. You can go back to a savepoint again and again, also after
        another snapshot was restored, or after going back to an earlier savepoint.
        """
        self._durable.rollback(instance("to", to, Savepoint, "what savepoint() returned"))

    def mark(self) -> Savepoint:
        """Old name of :meth:`savepoint`, until version 0.3."""
        renamed("Engine.mark()", "Engine.savepoint()")
        return self.savepoint()

    def rewind(self, mark: Savepoint) -> None:
        """Old name of :meth:`rollback`, until version 0.3."""
        renamed("Engine.rewind()", "Engine.rollback()")
        self.rollback(mark)

    # ---- for specstream's own rooms ----

    @property
    def durable(self) -> Durable:
        """What a checkpoint records of the engine: for specstream's own packages, not for users."""
        return self._durable

    def process_whole(
        self,
        table: Any,
        *,
        order_by: str | None = None,
        source: str | None = None,
        end: bool = False,
    ) -> pa.Table:
        """:meth:`process` with the rows of all sinks in one table: for specstream's own packages,
        not for users."""
        output: pa.Table = self._process(table, order_by, source, end, lambda rows: rows)
        return output

    def poll_whole(self, timeout: float | None = 0.0) -> pa.Table:
        """:meth:`poll`, likewise."""
        return self._poller.poll_whole(timeout)

    @property
    def parts(self) -> Parts:
        """What the engine is made of: for specstream's own packages and tests, not for users."""
        return self._parts


def check_engine_options(taker: Callable[..., Any], options: Iterable[str]) -> None:
    """Looks whether an engine has options of these names; ``taker`` hands them to one.

    Raises:
        OptionNameError: it has not; names the option, and the nearest of the two.
    """
    own = inspect.signature(taker).parameters.values()
    known = [one.name for one in own if one.kind is not one.VAR_KEYWORD]
    known += [name for name in inspect.signature(Engine).parameters if name not in known]
    for name in options:
        if name not in known:
            raise unknown_option(taker.__name__, name, known)


def _parts(
    options: Options,
    given: Mapping[str, Hook | None],
    initial: object,
    restore: bytes | None,
    migrate: Migrate | None,
) -> Parts:
    """All parts of an engine; the last of them starts its threads."""
    operator, name = options.operator, options.operator.name
    predictor = options.made_predictor()
    check_unused(predictor)
    committed, flight = Committed(options), Flight()
    hooks = Hooks(given, Describer(operator, committed, flight).describe)
    if hooks and options.execution not in ("ordered", "speculate"):
        raise ConfigurationError(
            f'execution={options.execution!r} calls no hooks; expected execution="ordered" with '
            "on_abort, on_commit or on_post_commit"
        )
    if hooks and operator.has_timers:
        raise ConfigurationError(
            f"operator {name!r} has timers, and hooks get events only: leave on_abort, "
            "on_commit and on_post_commit out"
        )
    if hooks and operator.event.phases:
        raise ConfigurationError(
            f"pipeline {name!r} has phases by time, and hooks get single events: leave "
            "on_abort, on_commit and on_post_commit out"
        )
    config, _kept = configuration(
        operator,
        committed.words,
        threads=options.threads,
        read_limit=options.limits.reads,
        redo_limit=options.limits.writes,
        emit_limit=options.limits.rows,
        element_limit=options.limits.elements if operator.program.uses_arena else 0,
        seed=options.seed,
        protocol=options.native_protocol,
        record_shift=options.record_shift,
    )
    longest = fit(config, options, predictor)
    if restore is not None:
        committed.take_over(committed.restored(restore, migrate))
    if initial is not None:
        committed.begin_with(initial)
    code: MachineCode | InterpretedCode
    if operator.program.is_interpreted:
        code = InterpretedCode(options, lambda: committed.strings)
    else:
        code = MachineCode(options, speculates_of(predictor), lambda: committed.strings)
    native = Native(config, name)
    code.set_in(native)
    native.use_strings(committed.strings)
    committed.uses = weakref.WeakMethod(native.use_strings)
    hooks.set_in(native)
    lifetime = Lifetime(native, name)
    lifetime.serve(predictor)
    turn = Turn(native, lifetime, flight, name)
    parts = Parts(
        options=options,
        predictor=predictor,
        longest=longest,
        committed=committed,
        code=code,
        native=native,
        lifetime=lifetime,
        flight=flight,
        turn=turn,
        hooks=hooks,
    )
    if not operator.program.is_interpreted:
        Answering(parts).set_in(parts)
    return parts
