"""The engine: one operator, its state, its threads; batches in, batches out."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi, lib
from specstream.columns.events import (
    KEY_COLUMNS,
    Events,
    as_table,
    read_events,
)
from specstream.columns.python_values import event_values, row_tuples
from specstream.columns.rejected_rows import Policy, RejectedRows
from specstream.columns.strings import StringTable
from specstream.compiler.types import PROFILED, VARIANTS, Variant
from specstream.compiler.variants import Entry, compile_entry, compile_operation
from specstream.declarations.deprecated import renamed
from specstream.declarations.limits import Limits
from specstream.declarations.state import StateView
from specstream.engine.batch import run_batch
from specstream.engine.durable import Durable
from specstream.engine.figures import statistics_of
from specstream.engine.hooks import Hook, Hooks, Notification
from specstream.engine.out_of_order import NO_FRONTIER, OutOfOrder
from specstream.engine.snapshot import Migrate, Snapshot, refused
from specstream.engine.sources import Late, Name, checked_sources
from specstream.engine.statistics import ABORT_REASONS, Statistics
from specstream.engine.turn import WAIT_MILLISECONDS, native_turn, turn
from specstream.errors import (
    ConfigurationError,
    DeclarationError,
    EngineClosedError,
    SpecstreamError,
)
from specstream.operator.operator import Operator
from specstream.predictors.automatic import Auto
from specstream.predictors.checked import checked_predictor, least_of
from specstream.predictors.fixed import Fixed
from specstream.predictors.predictor import (
    LONGEST_CHUNK,
    LONGEST_HORIZON,
    Predictor,
    check_range,
)
from specstream.profiling import HotPlace, Profile, hot_places, profile_of

__all__ = ["Engine", "Savepoint"]

# That a look at the figures waits at most for a plain run to count what it has done.
ASK_NANOSECONDS = 1_000_000
NOBODY: frozenset[int] = frozenset()
# From a request to stop until the event in flight is rolled back.
GRACE_SECONDS = 1.0

Amount = int | Literal["auto"]
Execution = Literal["ordered", "speculate", "log_free", "locked"]
_EXECUTIONS: dict[str, tuple[int, tuple[Variant, ...]]] = {
    "ordered": (lib.SS_MODE_ORDERED, ("plain", "transactional")),
    "speculate": (lib.SS_MODE_SPECULATE, ("plain", "transactional")),
    "log_free": (lib.SS_MODE_LOG_FREE, ("log_free",)),
    "locked": (lib.SS_MODE_LOCKED, ("locked",)),
}

# What a protocol is to the runtime, and the variant that speculates under it.
_PROTOCOLS: dict[str, tuple[int, Variant]] = {
    "value": (lib.SS_PROTOCOL_VALUE, "transactional"),
    "eager": (lib.SS_PROTOCOL_EAGER, "eager"),
}


@dataclass(frozen=True)
class Savepoint:
    """The engine between two batches, kept in memory. See :meth:`Engine.savepoint`."""

    words: npt.NDArray[np.int64]
    next_sequence: int
    strings: int
    rejected_rows: tuple[int, tuple[pa.Table, ...]] = (0, ())
    arrivals: bytes = b""
    reached: Any = None
    texts: pa.ChunkedArray | None = None  # the strings; None: the table still begins with them


class Engine(OutOfOrder):
    """Runs one operator over batches of events, on several threads, with the sequential answer.

    Args:
        operator: made by :func:`specstream.operator`.
        threads: worker threads, at least 1.
        horizon: how many transactions may start ahead of the next to commit; 0 runs the operator
            plainly on one thread; "auto" leaves it to :class:`specstream.Auto`, which goes by the
            measured time per event. With one thread that is 0.
        chunk: consecutive events in one transaction, or "auto". With a horizon and a chunk given,
            the setting is fixed; what alone is given holds whenever the engine speculates. Other
            executions than "ordered" take 8 for "auto".
        predictor: moves horizon and chunk itself; takes the place of both.
        protocol: how conflicts are found: "value" compares what was read with the state at commit;
            "eager" locks what is written at the access, as in the dissertation (Brito 2010, 4.2).
        record_shift: protocol "eager": 2 to this power neighbouring words share one lock, where a
            field does not say otherwise (``ss.array(..., share=...)``).
        seed: of ``event.random`` and ``event.random_bits``.
        keys: add the columns timestamp, source and sequence to the output.
        limits: what one speculative run may log; see :class:`specstream.Limits`.
        memory: the most bytes that logs and buffers may take, the state not counted; None: no
            bound. An "auto" horizon and those of predictors are shortened to fit. What the head
            writes in one event and a batch emits has to be kept whatever it takes: it is counted
            in ``stats.memory``, and not bounded.
        restore: a snapshot to start from.
        migrate: with ``restore``: see :meth:`restore`.
        execution: "ordered" for results. For benchmarks: "speculate" never runs the head in place
            at its first try, "log_free" is one thread without any log, "locked" runs all threads
            without order under the operator's own locks; see :func:`specstream.locks`.
        profile: count the lines that conflicts come from, for :meth:`profile`. Speculation then
            takes a little more time.
        sources: of events that are submitted out of order: those that hold back commits from the
            start, though they be silent; others join when their first event comes.
        late: what :meth:`submit` does with events below their source's frontier: "error" refuses
            the table, "drop" leaves them out and counts them, "side" keeps them for :meth:`late`.
        rejected_rows: what happens to rows that cannot be events, because of a null in a column
            that is not nullable, a value that does not fit, or a NaN in the order column: "error"
            refuses the table, "side" leaves them out, counts them, and keeps them for
            :meth:`rejected_rows`.
        on_abort: called before a dropped run is repeated.
        on_commit: called in order, when an event's run is validated and nobody has seen its effects
            yet; ``raise ss.Abort`` has the event run again.
        on_post_commit: called after a commit, in no order.
        bad_rows: old name of ``rejected_rows``, for one release.

    A hook is called with a :class:`specstream.Notification`, in a thread of the engine. It may look
    at ``stats`` and ``profile()``; all else that it asks of the engine, closing it included, raises
    SpecstreamError, as the engine waits for the hook. What a hook raises ends the batch: out of
    ``on_commit``, like something that the event itself raises. With a hook a transaction is one
    event.

    Raises:
        ConfigurationError: an option has a value that it cannot have, or ``memory`` is too little;
            says how much it takes.
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
        restore: bytes | None = None,
        migrate: Migrate | None = None,
        execution: Execution = "ordered",
        profile: bool = False,
        sources: Iterable[Name] = (),
        late: Late = "error",
        rejected_rows: Policy = "error",
        on_abort: Hook | None = None,
        on_commit: Hook | None = None,
        on_post_commit: Hook | None = None,
        bad_rows: Policy | None = None,
    ) -> None:
        if bad_rows is not None:
            renamed("Engine(bad_rows=)", "Engine(rejected_rows=)")
            rejected_rows = bad_rows
        self._closed = True  # until there is something to close
        self._process = os.getpid()
        if not isinstance(operator, Operator):
            raise DeclarationError(
                f"Engine got {type(operator).__name__}; expected an operator: decorate the "
                "function with @ss.operator(...)"
            )
        self.operator = operator
        self.name = operator.name
        check_range("threads", threads, 1, 256)
        self._predictor = (
            _predictor(threads, horizon, chunk, execution)
            if predictor is None
            else checked_predictor(predictor)
        )
        self._longest = LONGEST_HORIZON  # horizon that its memory allows
        check_range("seed", seed, 0, 2**64 - 1)
        check_range("record_shift", record_shift, 0, 32)
        if protocol not in _PROTOCOLS:
            raise ConfigurationError(f"protocol={protocol!r}; expected 'value' or 'eager'")
        if execution not in _EXECUTIONS:
            raise ConfigurationError(
                f"execution={execution!r}; expected one of {', '.join(_EXECUTIONS)}"
            )
        limits = Limits() if limits is None else limits
        if not isinstance(limits, Limits):
            raise ConfigurationError(f"limits={limits!r}; expected ss.Limits(...)")
        if memory is not None:
            check_range("memory", memory, 1, 2**63 - 1, " or None")
        if migrate is not None and restore is None:
            raise ConfigurationError(
                "migrate= converts the fields of a snapshot: give restore=, the snapshot, as well"
            )
        clash = [name for name in KEY_COLUMNS if name in operator.emits.names]
        if keys and clash:
            raise ConfigurationError(
                f"keys=True adds the column {clash[0]!r}, which operator {self.name!r} emits "
                "itself: rename that column"
            )
        self.threads, self.seed, self.limits = threads, seed, limits
        self.protocol = protocol
        self._keys = keys
        kind, speculative = _PROTOCOLS[protocol]
        speculative = PROFILED[speculative] if profile else speculative
        self._profiles, self._record_shift = profile, record_shift
        self._hot_places: tuple[HotPlace, ...] = ()
        self._mode, variants = _EXECUTIONS[execution]
        variants = tuple(speculative if v == "transactional" else v for v in variants)
        # One caller at a time. Never taken twice by one thread; but its owner is known.
        self._lock = threading.RLock()
        self._closing = False
        # Who is inside, each call with its thread. A signal handler or a finaliser may come at any
        # point of a call, in the same thread, and use the engine or raise. So there is no lock for
        # this: entries come and go by operations that the interpreter does not divide.
        self._users: dict[object, int] = {}
        self._enders: list[tuple[int, object]] = []  # who came to end it; the first one does
        self._workers = NOBODY
        self._strings = StringTable(operator.program.strings)
        self._hooks = Hooks(
            {"on_abort": on_abort, "on_commit": on_commit, "on_post_commit": on_post_commit},
            self._notification,
        )
        if self._hooks and execution not in ("ordered", "speculate"):
            raise ConfigurationError(
                f'execution={execution!r} calls no hooks; expected execution="ordered" with '
                "on_abort, on_commit or on_post_commit"
            )
        self._late: Late = late
        self._rejected = RejectedRows(rejected_rows)
        self._declared = checked_sources(sources)
        self._arrivals = self._new_arrivals(self._strings)
        self._is_open = False  # an open job takes submitted events
        self._frontier = NO_FRONTIER  # that the open job was told
        self._taken = []
        self._applied = 0  # events of the open job that a poll has told of
        # Finds a hook's event in a batch: row -> (events, row, key); None: in what was submitted.
        self._locate: Any = None
        self._next_sequence = 0
        # Rows of the batch in flight that earlier stretches have done; None: no batch is in flight.
        # With the count of the stretch in flight it says how far the state is: hence the lock.
        self._begun: int | None = None
        self._between = threading.Lock()
        # Held by who looks at the figures: of two looks, the later one sees no less.
        self._figures = threading.RLock()
        self._seconds = 0.0  # that a look has told of
        # The batch in flight, if it has order times, and the events applied before it.
        self._in_flight: tuple[Events, int] | None = None
        self._reached: Any = None  # order time of the last event of the batches before
        program, layout = operator.program, operator.layout
        self._words = layout.allocate()
        regions = layout.regions(record_shift)
        native_regions = ffi.new("struct ss_region[]", regions)
        config = ffi.new(
            "struct ss_config *",
            {
                "state": ffi.cast("uint64_t *", self._words.ctypes.data),
                "state_words": layout.words("state"),
                "scratch_words": layout.words("scratch"),
                "emit_words": operator.emits.row_words,
                "threads": threads,
                "locks": layout.words("locks"),
                "read_limit": limits.reads,
                "redo_limit": limits.writes,
                "emit_limit": limits.rows,
                "seed": seed,
                "protocol": kind,
                "record_shift": record_shift,
                "regions": native_regions,
                "region_count": len(regions),
                "operations": len(layout.operations),
                "boosted_first": min((f.offset for f, _ in layout.operations), default=0),
                "boosted_end": max((f.offset + f.words for f, _ in layout.operations), default=0),
            },
        )
        if memory is not None:
            self._fit(config, memory)
        if restore is not None:
            self.restore(restore, migrate=migrate, _new=True)
        # Where only submitted events may run ahead of their turn, the code for that is compiled
        # when the first one comes.
        if not self._predictor.speculates and execution == "ordered":
            variants = ("plain",)
        self._entries: dict[Variant, Entry] = {
            variant: compile_entry(program, layout, operator.event, operator.emits, variant)
            for variant in variants
        }
        self._speculative: Variant = speculative
        # Each operation on a boosted field, and its inverse.
        self._operations = [
            [
                compile_operation(program, layout, operator.event, operator.emits, number, inverse)
                for inverse in ((False, True) if operation.inverse is not None else (False,))
            ]
            for number, (_, operation) in enumerate(layout.operations)
        ]
        self._native = lib.ss_engine_new(config)
        if self._native == ffi.NULL:
            raise MemoryError(f"engine of {self.name!r}: no memory or no threads to be had")
        self._closed = False
        self._workers = frozenset(lib.ss_engine_thread(self._native, n) for n in range(threads))
        for variant in self._entries:
            self._set_entry(variant)
        for number in range(len(layout.operations)):
            self._set_operation(number)
        self._hooks.set_in(self._native)
        self._count()

    def _fit(self, config: Any, memory: int) -> None:
        """Keeps the predictor to horizons whose logs fit, or refuses the engine."""

        def needed(horizon: int) -> Any:
            return lib.ss_memory_needed(config, horizon, self._mode)

        least = least_of(self._predictor)
        figures = needed(least)
        if figures.total > memory:
            others = figures.fixed + config.threads * figures.thread
            raise ConfigurationError(
                f"memory={memory}: the engine of {self.name!r} needs {figures.total} bytes for its "
                f"logs and buffers: {others} for itself and {config.threads} thread(s), and "
                f"{figures.transactions} (twice horizon {least}, rounded up to a power of two) "
                f"transactions of {figures.transaction} each: lower horizon, threads or "
                "limits=ss.Limits(...), or raise memory"
            )
        longest = least
        # The ring is a power of two, and longer than twice the horizon.
        while longest < LONGEST_HORIZON and needed(2 * longest + 1).total <= memory:
            longest = 2 * longest + 1
        self._predictor.cap(longest)
        self._longest = min(longest, LONGEST_HORIZON)

    def _set_entry(self, variant: Variant) -> None:
        address = ffi.cast("ss_entry", self._entries[variant].address)
        lib.ss_engine_set_entry(self._native, VARIANTS[variant], address)

    def _set_operation(self, number: int) -> None:
        field, _ = self.operator.layout.operations[number]
        entry, *inverse = [
            ffi.cast("ss_operation_entry", one.address) for one in self._operations[number]
        ]
        native = {"entry": entry, "first": field.offset, "words": field.words}
        if inverse:
            native["inverse"] = inverse[0]
        native = ffi.new("struct ss_boosted *", native)
        lib.ss_engine_set_operation(self._native, number, native)

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
            if self._in_hook():
                # The collector ran in one of our own threads, or the hook was the last to hold us:
                # somebody else has to wait for its end.
                threading.Thread(target=self.close).start()
            else:
                self.close()
        except Exception:
            return

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        if self._is_inherited():
            state = f"of process {self._process}"
        return (
            f"Engine({self.name!r}, threads={self.threads}, "
            f"{type(self._predictor).__name__}, {state})"
        )

    def close(self) -> None:
        """Ends the threads. A batch in flight ends at its next event, with EngineClosedError.

        Closing twice does nothing. Views of the state stay valid. In a process forked from the
        engine's, nothing is closed but this process's use of it.

        Any thread may close the engine, whatever others do with it: their calls end with
        EngineClosedError. Called in the middle of another call of the same thread, by a signal
        handler for example, it returns at once, and that call ends the threads when it ends.

        Raises:
            SpecstreamError: it was called by a hook, which the engine waits for.
        """
        if self._closed:
            return
        if self._is_inherited():
            # There is no thread to join, and a mutex may be held by one that will never be here:
            # what the native runtime holds is left to the end of the process.
            self._closed = True
            return
        self._check_hook()
        self._closing = True
        self._await_end()

    def _await_end(self) -> bool:
        """Waits until a closing engine has ended; False: this thread itself is to end it, later."""
        while not self._closed:
            if self._is_inside() or (self._enders and self._enders[0][0] == threading.get_ident()):
                return False
            self._end()
            if not self._closed:
                time.sleep(0.001)
        return True

    def _end(self) -> None:
        """Ends a closing engine if nobody is inside. Only the first who comes that far does it."""
        if self._users or self._is_inherited():
            return
        # A signal handler may come at any point, and call this as well, or raise; but only where
        # something is called. So what must not be left half done is no call, or in `finally`.
        mine = threading.get_ident(), object()
        try:
            self._enders.append(mine)
            if self._enders[0] is mine:
                if self._is_open:
                    self._end_job()
                self._hot_places = hot_places(self._native, self.threads)
                self._count()
        finally:
            if self._enders[:1] == [mine]:
                try:
                    lib.ss_engine_free(self._native)
                finally:
                    self._native, self._workers, self._is_open = ffi.NULL, NOBODY, False
                    self._closed = True

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` has ended it, or is about to."""
        return self._closed or self._closing

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """The engine does not end before this is left."""
        use = object()
        try:
            self._users[use] = threading.get_ident()
            # Who closes sees that we are here, or we see that it closes: each looks after it spoke.
            self._check_open()
            yield
        finally:
            self._users.pop(use, None)
            if self._closing:
                self._end()

    def _is_inside(self) -> bool:
        """Whether the calling thread is, so that it is interrupted in another call."""
        # A copy is made at one go; the others come and go meanwhile.
        return threading.get_ident() in self._users.copy().values()

    @contextlib.contextmanager
    def _try_lock(self, seconds: float = 0.0) -> Iterator[bool]:
        """True: nobody else has the lock, or he gave it back in time; it is ours inside."""
        try:
            yield self._lock.acquire(timeout=seconds)
        finally:
            # Not asked first whether it is ours: a signal handler may raise after each question.
            try:  # noqa: SIM105
                self._lock.release()
            except RuntimeError:
                pass

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """One caller at a time, on an engine that is not closed."""
        self._check_open()
        self._check_caller()
        with self._inside(), self._lock:
            self._check_open()
            yield

    def _is_inherited(self) -> bool:
        """This process was forked from the engine's: neither its threads are here, nor the threads
        that held its locks."""
        return os.getpid() != self._process

    def _check_open(self) -> None:
        if self._is_inherited() and self._native != ffi.NULL:
            raise EngineClosedError(
                f"engine of {self.name!r} was made in process {self._process}, and this is process "
                f"{os.getpid()}, forked from it, where the engine's threads do not exist: make a "
                "new one here; Engine(operator, restore=engine.snapshot()) goes on from its state"
            )
        if self._closed or self._closing:
            raise EngineClosedError(
                f"engine of {self.name!r} is closed: make a new one; "
                "Engine(operator, restore=snapshot) goes on from a snapshot"
            )

    def _in_hook(self) -> bool:
        # Workers run no other Python.
        return threading.get_ident() in self._workers

    def _check_hook(self) -> None:
        if self._in_hook():
            raise SpecstreamError(
                f"engine of {self.name!r}: a hook uses the engine that called it, which waits for "
                "the hook: use what the notification holds"
            )

    def _check_caller(self) -> None:
        """Refuses who must not wait for the engine."""
        self._check_hook()
        if self._is_inside():
            raise SpecstreamError(
                f"engine of {self.name!r} is used in the middle of another call of this thread: a "
                "signal handler, a finaliser, migrate= or a predictor may ask for stats and "
                "profile(), and close(): have the rest done when the call has returned, or by "
                "another thread"
            )

    # ---- batches ----

    def process(
        self, table: Any, *, order_by: str | None = None, source: str | None = None
    ) -> pa.Table:
        """Runs the events of a table, in order, and returns the emitted rows.

        Args:
            table: pyarrow Table or RecordBatch, pandas DataFrame, or dict of arrays, with at least
                the columns of the operator's event schema.
            order_by: order the rows by (this column, ``source``, position).
            source: column that names each event's source: integers or strings.

        Returns:
            A table with the columns of ``emits``, and the order key with ``keys=True``.

        Raises:
            InputError: the table does not fit; nothing was run.
            EngineClosedError: the engine is closed, or was closed during the call.
            Exception: what the operator raised. Its event is not applied, the rows after it are
                not run, and the engine goes on with the next call. ``specstream_partial`` on the
                exception holds the output and number of the rows before it.
            OperatorCrashError: likewise, where the operator's machine code crashed.
            MemoryError: likewise, where there was no memory for what an event stores or emits.
            KeyboardInterrupt: likewise, with what was applied until then.

        Calls from several threads run one after the other.
        """
        with self._open():
            operator = self.operator
            what = f"operator {self.name!r}"
            self._check_nothing_pending(what)
            self._end_open_job()
            known = len(self._strings)
            try:
                events = read_events(
                    as_table(table, what),
                    operator.event,
                    self._strings,
                    what,
                    self._next_sequence,
                    order_by=order_by,
                    source=source,
                    reads_timestamp=operator.program.reads_timestamp,
                    rejected_rows=self._rejected.policy,
                )
            except BaseException:
                self._strings.truncate(known)
                raise
            self._rejected.keep(events.rejected)
            return run_batch(self, events, ordered=order_by is not None)

    def _end_job(self) -> None:
        """Ends the job in flight, whatever its events do; the threads are idle afterwards."""
        lib.ss_engine_stop(self._native)
        deadline = time.monotonic() + GRACE_SECONDS
        while True:
            try:
                if lib.ss_engine_wait(self._native, WAIT_MILLISECONDS):
                    return
            except KeyboardInterrupt:
                deadline = time.monotonic()  # a second Ctrl-C: no more grace
            if time.monotonic() >= deadline:
                lib.ss_engine_kill(self._native)

    def _rows(self, outcome: Any) -> npt.NDArray[np.int64]:
        """A job's emitted rows; valid until the next job."""
        width = self.operator.emits.row_words
        buffer = ffi.buffer(outcome.rows, outcome.row_count * width * 8)
        return np.frombuffer(buffer, np.int64).reshape(-1, width)

    def rejected_rows(self) -> pa.Table | None:
        """Rows that could not be events, since the last call; None: none.

        They are as they were given, with a last column ``reason``. Where tables of different calls
        do not go together, because a column has another type, the next call gives the rest. Engines
        made with ``rejected_rows="side"`` keep them; ``stats.rejected_rows`` counts them.

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
        with self._open():
            return self._rejected.take()

    def bad_rows(self) -> pa.Table | None:
        """Old name of :meth:`rejected_rows`, for one release."""
        renamed("Engine.bad_rows()", "Engine.rejected_rows()")
        return self.rejected_rows()

    # ---- hooks ----

    def _notification(self, occasion: Any) -> Notification:
        """An occasion of the C side, as a hook is told of it."""
        locate = self._locate or self._locate_arrival
        events, row, timestamp, source, sequence = locate(occasion.row)
        values = event_values(self.operator.event, events, row, self._strings)
        rows: list[tuple[Any, ...]] = []
        reason = ""
        if occasion.kind == lib.SS_ON_COMMIT:
            rows = row_tuples(self.operator.emits, self._rows(occasion), self._strings)
        elif occasion.kind == lib.SS_ON_ABORT:
            reason = next(name for name, at in ABORT_REASONS.items() if at == occasion.reason)
        return Notification(timestamp, source, sequence, values, rows, reason)

    # ---- state ----

    @property
    def state(self) -> StateView:
        """Committed state: a live read-only view, or a copy while a batch is in flight.

        It always shows a whole number of events. It can be read after ``close()``, and in a process
        forked from the engine's while no batch was in flight.

        Raises:
            EngineClosedError: this process was forked from the engine's during a batch.
            SpecstreamError: it was asked for by a hook, or in the middle of another call of the
                same thread, by a signal handler for example.
        """
        if not self._closed or self._is_inherited():
            try:
                with turn(self) as idle:
                    words = self._words if idle else self._words.copy()
                    return StateView(self.operator.layout, words)
            except EngineClosedError:
                if not self._closing or self._is_inherited() or not self._await_end():
                    raise
        return StateView(self.operator.layout, self._words)

    @property
    def stats(self) -> Statistics:
        """Figures since the engine was made, as they are at this instant.

        Any thread may ask for them at any time, also while a batch is in flight in another: events
        go on meanwhile. They can be read after ``close()``; in a process forked from the engine's
        they stand still.
        """
        if self._is_inherited():
            self._count_inherited()
            return self._stats
        with contextlib.suppress(EngineClosedError), self._inside(), self._figures:
            if self._begun is not None:
                lib.ss_engine_ask(self._native, ASK_NANOSECONDS)
            self._count()
        return self._stats

    def profile(self) -> Profile:
        """The words that speculative runs were dropped for, since the engine was made.

        Each with its field, its index and the lines that accessed it; with ``profile=True`` those
        that were executed, counted, else all that name the field. What is counted is kept in a
        table of fixed size, in which no word is forgotten that matters, at no cost for runs that
        commit. While a batch is in flight, it is what was known before; it can be read after
        ``close()``.
        """
        stats = self.stats
        if not self._is_inside():
            with contextlib.suppress(EngineClosedError), self._inside(), self._try_lock() as mine:
                if mine:
                    self._hot_places = hot_places(self._native, self.threads)
        operator = self.operator
        return profile_of(
            operator.program,
            operator.layout,
            stats,
            self._hot_places,
            self.protocol,
            self._record_shift,
            self._profiles,
        )

    def _count(self) -> None:
        self._stats = statistics_of(
            self, lib.ss_engine_memory(self._native), lib.ss_engine_waiting(self._native)
        )

    def _count_inherited(self) -> None:
        """In a forked process: no mutex may be asked for, and what was in flight has no end."""
        if not self._closed and self._lock.acquire(blocking=False):
            try:
                self._stats = statistics_of(self, self._stats.memory, 0)
            finally:
                self._lock.release()

    def snapshot(self) -> bytes:
        """Committed state, strings, sequence numbers, and submitted events, as bytes.

        Of events out of order it holds those that are not committed, the sources and their
        frontiers, and the output that was not polled; and it holds the rejected rows and the late
        events that nobody has fetched.

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
        ...     image = engine.snapshot()
        >>> with ss.Engine(count, horizon=0, restore=image) as engine:
        ...     engine.state.count
        2
        """
        if self._closed or not self._is_inherited():
            self._check_open()
        with turn(self):
            content = self._content()
        return content.to_bytes(self.operator.layout)

    def _image(self) -> bytes:
        """:meth:`snapshot` for who has the engine to himself already."""
        with native_turn(self):
            content = self._content()
        return content.to_bytes(self.operator.layout)

    def _content(self) -> Snapshot:
        with self._between:
            done = 0
            if self._begun is not None:
                done = self._begun + lib.ss_engine_outcome(self._native).consumed
            if self._is_open and not self._is_inherited():
                # What is committed and was not polled would be lost with this engine.
                self._hold_rows()
            return Snapshot(
                self._words.copy(),
                self._next_sequence + done,
                self._strings.to_arrow(),
                self._arrivals.to_bytes(),
                self._rejected.to_bytes(),
            )

    def restore(self, image: bytes, *, migrate: Migrate | None = None, _new: bool = False) -> None:
        """Goes on from a snapshot: state, strings, sequence numbers, submitted events, rejected
        rows.

        Events that were submitted to this engine and are not committed are forgotten, and so are
        its rejected rows. Those of the snapshot run with the next call of :meth:`submit`,
        :meth:`advance` or :meth:`poll`.

        Fields are matched by name. One that the snapshot has not gets its fill; one that the
        operator has not, or that has another shape or type there, is an error, unless ``migrate``
        converts it.

        Args:
            image: what :meth:`snapshot` returned.
            migrate: called with the snapshot's fields, arrays by name as ``state.to_dict()`` has
                them; returns the new state's fields likewise. Those that it leaves out get their
                fill. It is called whenever it is given, whatever the snapshot's fields are.

        Raises:
            SnapshotError: it is damaged or no snapshot, or its fields, those returned by
                ``migrate``, its events or its output do not fit the operator; names what it is.
                The engine stays as it was.
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
        ...     image = engine.snapshot()
        >>> def migrate(fields):
        ...     return {"seconds": fields["milliseconds"] / 1000}
        >>> with ss.Engine(new, horizon=0, restore=image, migrate=migrate) as engine:
        ...     _ = engine.process({"ms": [500]})
        ...     engine.state.seconds, engine.state.events
        (2.0, 1)
        """
        what = f"engine of {self.name!r}"
        with contextlib.nullcontext() if _new else self._open():
            content = Snapshot.from_bytes(image, self.operator.layout, what, migrate)
            with refused(what):
                strings = content.table(self.operator.program.strings)
                arrivals = self._arrivals_of(strings, content.arrivals)
                rejected_rows = RejectedRows.read(content.rejected_rows)
            self._end_open_job()
            # Who has seen a batch in flight may still be looking.
            with contextlib.nullcontext() if _new else native_turn(self):
                self._words[:] = content.words
                if not _new:
                    lib.ss_engine_state_changed(self._native)
                self._next_sequence = content.next_sequence
                self._strings = strings
                self._rejected.take_over(rejected_rows)
                self._arrivals = arrivals
                self._reached = None

    def savepoint(self) -> Savepoint:
        """The engine as it is now, kept in memory; :meth:`rollback` goes back to it.

        It holds a copy of the state, and of submitted events that are not committed, and keeps the
        strings, rejected rows and late events that are there now.
        """
        with self._open(), native_turn(self):
            if self._is_open:
                self._hold_rows()
            return Savepoint(
                self._words.copy(),
                self._next_sequence,
                len(self._strings),
                self._rejected.savepoint(),
                self._arrivals.to_bytes(),
                self._reached,
                self._strings.to_arrow(),
            )

    def rollback(self, to: Savepoint) -> None:
        """Back to a savepoint: state, strings, next sequence number, rejected rows, pending events.

        Events that were pending run again from the start, with the next call of :meth:`submit`,
        :meth:`advance` or :meth:`poll`. Whatever came since the savepoint, a restored snapshot or
        an earlier savepoint that was gone back to, it can be gone back to, again and again.
        """
        with self._open():
            strings = self._strings
            if to.texts is not None and not strings.begins_with(to.texts):
                strings = _table_of(to.texts)
            self._end_open_job()
            with native_turn(self):
                self._words[:] = to.words
                lib.ss_engine_state_changed(self._native)
                self._next_sequence = to.next_sequence
                self._strings = strings
                self._strings.truncate(to.strings)
                self._rejected.rollback(to.rejected_rows)
                self._arrivals = self._arrivals_of(self._strings, to.arrivals)
                self._reached = to.reached

    def mark(self) -> Savepoint:
        """Old name of :meth:`savepoint`, for one release."""
        renamed("Engine.mark()", "Engine.savepoint()")
        return self.savepoint()

    def rewind(self, mark: Savepoint) -> None:
        """Old name of :meth:`rollback`, for one release."""
        renamed("Engine.rewind()", "Engine.rollback()")
        self.rollback(mark)

    @property
    def durable(self) -> Durable:
        """What a checkpoint records of the engine: for specstream's own rooms, not for users."""
        return Durable(self)


def _table_of(texts: pa.ChunkedArray, first: Iterable[str] = ()) -> StringTable:
    table = StringTable(first)
    for chunk in texts.chunks:
        table.add_all(chunk)
    return table


def _predictor(threads: int, horizon: Amount, chunk: Amount, execution: str) -> Predictor:
    """The predictor that the options ask for."""
    if execution != "ordered":
        # Those of benchmarks have no plain side to choose, and must not be cut into stretches.
        horizon = 8 if horizon == "auto" else horizon
        chunk = 8 if chunk == "auto" else chunk
    if horizon != "auto":
        check_range("horizon", horizon, 0, LONGEST_HORIZON, ' or "auto"')
    if chunk != "auto":
        check_range("chunk", chunk, 1, LONGEST_CHUNK, ' or "auto"')
    if horizon != "auto" and (chunk != "auto" or horizon == 0):
        return Fixed(horizon, 1 if chunk == "auto" else chunk)
    return Auto(
        threads,
        horizon=None if horizon == "auto" else horizon,
        chunk=None if chunk == "auto" else chunk,
    )
