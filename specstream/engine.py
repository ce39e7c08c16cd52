"""The engine: one operator, its state, its threads; batches in, batches out."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi, lib
from specstream.auto import Auto
from specstream.columns import KEY_COLUMNS, Events, as_table, read_events, rows_to_table
from specstream.compiler.oracle import Oracle
from specstream.compiler.types import VARIANTS, Variant
from specstream.compiler.variants import Entry, compile_entry
from specstream.errors import (
    ConfigurationError,
    DeclarationError,
    EngineClosedError,
    Partial,
    SpecstreamError,
)
from specstream.operator import Operator
from specstream.predictor import Fixed, Measurement, Predictor, Setting
from specstream.snapshot import Snapshot
from specstream.state import StateView
from specstream.stats import ABORT_REASONS, Statistics
from specstream.strings import StringTable

__all__ = ["Engine", "Mark"]

# Between two looks at the interpreter's signals.
WAIT_MILLISECONDS = 50
# From a request to stop until the event in flight is rolled back.
GRACE_SECONDS = 1.0

# Limits of a speculative run; one that needs more waits and runs as the head, which has none.
READ_LIMIT = 1 << 14
REDO_LIMIT = 1 << 12
EMIT_LIMIT = 1 << 10

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
class Mark:
    """The engine between two batches, kept in memory. See :meth:`Engine.mark`."""

    words: npt.NDArray[np.int64]
    next_sequence: int
    strings: int


class Engine:
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
        record_shift: protocol "eager": 2 to this power neighbouring words share one lock.
        seed: of ``event.random`` and ``event.random_bits``.
        keys: add the columns timestamp, source and sequence to the output.
        restore: a snapshot to start from.
        execution: "ordered" for results. For benchmarks: "speculate" never runs the head in place
            at its first try, "log_free" is one thread without any log, "locked" runs all threads
            without order under the operator's own locks.
        locks: number of locks that a "locked" operator uses.

    Raises:
        ConfigurationError: an option has a value that it cannot have.
        CompileError: the operator's types do not fit.
        SnapshotError: ``restore`` is of another layout, or damaged.

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
        restore: bytes | None = None,
        execution: Execution = "ordered",
        locks: int = 1,
    ) -> None:
        self._closed = True  # until there is something to close
        if not isinstance(operator, Operator):
            raise DeclarationError(
                f"Engine got {type(operator).__name__}; expected an operator: decorate the "
                "function with @ss.operator(...)"
            )
        self.operator = operator
        self.name = operator.name
        _check_range("threads", threads, 1, 256)
        self._predictor = predictor or _predictor(threads, horizon, chunk, execution)
        _check_range("seed", seed, 0, 2**64 - 1)
        _check_range("locks", locks, 1, 1 << 20)
        _check_range("record_shift", record_shift, 0, 32)
        if protocol not in _PROTOCOLS:
            raise ConfigurationError(f"protocol={protocol!r}; expected 'value' or 'eager'")
        if execution not in _EXECUTIONS:
            raise ConfigurationError(
                f"execution={execution!r}; expected one of {', '.join(_EXECUTIONS)}"
            )
        clash = [name for name in KEY_COLUMNS if name in operator.emits.names]
        if keys and clash:
            raise ConfigurationError(
                f"keys=True adds the column {clash[0]!r}, which operator {self.name!r} emits "
                "itself: rename that column"
            )
        self.threads, self.seed = threads, seed
        self.protocol = protocol
        self._keys = keys
        kind, speculative = _PROTOCOLS[protocol]
        self._mode, variants = _EXECUTIONS[execution]
        variants = tuple(speculative if v == "transactional" else v for v in variants)
        self._lock = threading.RLock()
        self._closing = False
        self._strings = StringTable(operator.program.strings)
        self._next_sequence = 0
        # Rows of the batch in flight that earlier stretches have done; None: no batch is in flight.
        # With the count of the stretch in flight it says how far the state is: hence the lock.
        self._begun: int | None = None
        self._between = threading.Lock()
        self._words = operator.layout.allocate()
        if restore is not None:
            self.restore(restore, _new=True)

        program, layout = operator.program, operator.layout
        plain_only = isinstance(self._predictor, Fixed) and self._predictor.horizon == 0
        if plain_only and execution == "ordered":
            variants = ("plain",)
        self._entries: dict[Variant, Entry] = {
            variant: compile_entry(program, layout, operator.event, operator.emits, variant)
            for variant in variants
        }
        config = ffi.new(
            "struct ss_config *",
            {
                "state": ffi.cast("uint64_t *", self._words.ctypes.data),
                "state_words": layout.words("state"),
                "scratch_words": layout.words("scratch"),
                "emit_words": 1 + len(operator.emits),
                "threads": threads,
                "locks": locks,
                "read_limit": READ_LIMIT,
                "redo_limit": REDO_LIMIT,
                "emit_limit": EMIT_LIMIT,
                "seed": seed,
                "protocol": kind,
                "record_shift": record_shift,
            },
        )
        self._native = lib.ss_engine_new(config)
        if self._native == ffi.NULL:
            raise MemoryError(f"engine of {self.name!r}: no memory or no threads to be had")
        for variant, entry in self._entries.items():
            lib.ss_engine_set_entry(
                self._native, VARIANTS[variant], ffi.cast("ss_entry", entry.address)
            )
        self._closed = False
        self._count()

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
            self.close()
        except Exception:
            return

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return (
            f"Engine({self.name!r}, threads={self.threads}, "
            f"{type(self._predictor).__name__}, {state})"
        )

    def close(self) -> None:
        """Ends the threads. A batch in flight ends at its next event, with EngineClosedError.

        Closing twice does nothing. Views of the state stay valid.
        """
        if self._closed:
            return
        self._closing = True
        while not self._lock.acquire(timeout=WAIT_MILLISECONDS / 1000):
            pass  # the thread in process() sees _closing and ends its batch
        try:
            if not self._closed:
                self._count()
                self._closed = True
                lib.ss_engine_free(self._native)
                self._native = ffi.NULL
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """One caller at a time, on an engine that is not closed."""
        self._check_open()
        with self._lock:
            self._check_open()
            yield

    def _check_open(self) -> None:
        if self._closed or self._closing:
            raise EngineClosedError(
                f"engine of {self.name!r} is closed: make a new one; "
                "Engine(operator, restore=snapshot) goes on from a snapshot"
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
            KeyboardInterrupt: likewise, with what was applied until then.

        Calls from several threads run one after the other.
        """
        with self._open():
            operator = self.operator
            what = f"operator {self.name!r}"
            known = len(self._strings)
            try:
                events = read_events(
                    as_table(table, what),
                    operator.event,
                    self._strings,
                    what,
                    self._next_sequence,
                    order_by,
                    source,
                    operator.program.reads_timestamp,
                )
            except BaseException:
                self._strings.truncate(known)
                raise
            return self._run(events)

    def _run(self, events: Events) -> pa.Table:
        """Runs a batch, stretch by stretch, each with the predictor's setting."""
        first = self._next_sequence
        done = 0
        failed = False
        parts: list[pa.Table] = []
        try:
            while done < events.count and not failed:
                setting = self._predictor.next()
                outcome, interruption = self._run_stretch(events, done, setting)
                # At once, because the next stretch writes over the rows; and not gathered, because
                # copying the rows of short events takes a fifth of the events' own time.
                parts.append(self._table(self._rows(outcome), events, done, first))
                done += outcome.consumed
                failed = outcome.failed
                if interruption is not None:
                    raise interruption
        except BaseException as error:
            output = self._joined(parts, events, first)
            error.specstream_partial = Partial(output, done)  # type: ignore[attr-defined]
            raise
        finally:
            with self._between:
                # The failing event keeps its own number.
                self._next_sequence = first + done + (1 if failed else 0)
                self._begun = None
        output = self._joined(parts, events, first)
        if failed:
            self._raise_for(events, done, first, output)
        return output

    def _run_stretch(
        self, events: Events, begin: int, setting: Setting
    ) -> tuple[Any, BaseException | None]:
        """Runs events from ``begin`` on; gives the outcome, and what cut the batch short."""
        columns = ffi.new(
            "void *[]",
            [ffi.cast("void *", c.ctypes.data + begin * c.itemsize) for c in events.columns],
        )
        job = ffi.new(
            "struct ss_job *",
            {
                "columns": columns,
                "count": min(setting.events, events.count - begin),
                "first_sequence": self._next_sequence + begin,
                "chunk": setting.chunk,
                "horizon": setting.horizon,
                "mode": self._mode,
            },
        )
        before = lib.ss_engine_statistics(self._native)
        interruption: BaseException | None = None
        try:
            with self._between:
                if not lib.ss_engine_start(self._native, job):
                    raise MemoryError(
                        f"engine of {self.name!r}: no memory for logs: use a smaller horizon"
                    )
                self._begun = begin
            limit = None if setting.seconds is None else time.monotonic() + setting.seconds
            while True:
                milliseconds = WAIT_MILLISECONDS
                if limit is not None:
                    rest = max(int(1000 * (limit - time.monotonic())), 1)
                    milliseconds = min(milliseconds, rest)
                if lib.ss_engine_wait(self._native, milliseconds):
                    break
                if self._closing:
                    raise EngineClosedError(f"engine of {self.name!r} was closed during process()")
                if limit is not None and time.monotonic() >= limit:
                    lib.ss_engine_stop(self._native)
        except BaseException as error:
            self._end_job()
            interruption = error
        outcome = lib.ss_engine_outcome(self._native)
        self._predictor.record(setting, _difference(before, lib.ss_engine_statistics(self._native)))
        return outcome, interruption

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
        width = 1 + len(self.operator.emits)
        buffer = ffi.buffer(outcome.rows, outcome.row_count * width * 8)
        return np.frombuffer(buffer, np.int64).reshape(-1, width)

    def _table(
        self, rows: npt.NDArray[np.int64], events: Events, begin: int, first: int
    ) -> pa.Table:
        """A stretch's rows; it began at row ``begin`` of the batch."""
        keys = events if self._keys else None
        return rows_to_table(rows, self.operator.emits, self._strings, keys, first, begin)

    def _joined(self, parts: list[pa.Table], events: Events, first: int) -> pa.Table:
        """The batch's output, of one chunk for each stretch."""
        if not parts:
            return self._table(
                np.empty((0, 1 + len(self.operator.emits)), np.int64), events, 0, first
            )
        return parts[0] if len(parts) == 1 else pa.concat_tables(parts)

    def _raise_for(self, events: Events, row: int, first: int, output: pa.Table) -> None:
        """Raises what the event in ``row`` raises, from the user's own line.

        Native code only says that it raised. The real exception comes from the oracle, over an
        overlay of the committed state.
        """
        operator = self.operator
        oracle = Oracle(operator.program.oracle, operator.layout, self._words, overlay=True)
        oracle.begin(operator.event, operator.emits, events.columns, first, self.seed)
        key = f"({events.keys[0][row]}, {events.keys[1][row]}, {first + row})"
        partial = Partial(output, row)
        try:
            oracle.run(row)
        except Exception as error:
            values = ", ".join(
                f"{name}={self._show(kind, column[row])}"
                for (name, kind), column in zip(operator.event, events.columns[2:], strict=True)
            )
            error.add_note(
                f"raised by operator {self.name!r} at event (timestamp, source, sequence) = {key}, "
                f"row {row} of the batch in order: {values}"
            )
            error.specstream_partial = partial  # type: ignore[attr-defined]
            raise
        failure = SpecstreamError(
            f"operator {self.name!r}: compiled code raised at event {key}, and Python does not; "
            "the event is not applied. Please report the operator and the event"
        )
        failure.specstream_partial = partial  # type: ignore[attr-defined]
        raise failure

    def _show(self, kind: str, value: Any) -> str:
        if kind == "str":
            return repr(self._strings.text(int(value)))
        return repr(bool(value)) if kind == "bool" else repr(value.item())

    # ---- state ----

    @contextlib.contextmanager
    def _turn(self) -> Iterator[bool]:
        """The state stands still inside; True: no batch is in flight."""
        if self._lock.acquire(blocking=False):
            try:
                yield True
            finally:
                self._lock.release()
            return
        # A batch is in flight in another thread, which keeps the engine open while it waits.
        self._check_open()
        lib.ss_engine_take_turn(self._native)
        try:
            yield False
        finally:
            lib.ss_engine_release_turn(self._native)

    @property
    def state(self) -> StateView:
        """Committed state: a live read-only view, or a copy while a batch is in flight.

        It always shows a whole number of events. It can be read after ``close()``.
        """
        if self._closed:
            return StateView(self.operator.layout, self._words)
        with self._turn() as idle:
            return StateView(self.operator.layout, self._words if idle else self._words.copy())

    @property
    def stats(self) -> Statistics:
        """Figures since the engine was made; while a batch is in flight, those before it.

        They can be read after ``close()``.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._count()
            finally:
                self._lock.release()
        return self._stats

    def _count(self) -> None:
        if not self._closed:
            self._stats = Statistics.of(
                lib.ss_engine_statistics(self._native),
                lib.ss_engine_memory(self._native),
                self.threads,
                self._predictor,
            )

    def snapshot(self) -> bytes:
        """Committed state, string table and next sequence number, as bytes.

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
        self._check_open()
        with self._turn(), self._between:
            done = 0
            if self._begun is not None:
                done = self._begun + lib.ss_engine_outcome(self._native).consumed
            content = Snapshot(
                self._words.copy(), self._next_sequence + done, self._strings.strings()
            )
        return content.to_bytes(self.operator.layout)

    def restore(self, image: bytes, *, _new: bool = False) -> None:
        """Goes on from a snapshot: state, string table and next sequence number.

        Raises:
            SnapshotError: it is damaged or of another layout; the engine stays as it was.
        """
        what = f"engine of {self.name!r}"
        with contextlib.nullcontext() if _new else self._open():
            content = Snapshot.from_bytes(image, self.operator.layout, what)
            strings = StringTable(self.operator.program.strings)
            for text in content.strings:
                strings.add(text)
            self._words[:] = content.words
            self._next_sequence = content.next_sequence
            self._strings = strings

    def mark(self) -> Mark:
        """The engine as it is now, kept in memory; :meth:`rewind` goes back to it."""
        with self._open():
            return Mark(self._words.copy(), self._next_sequence, len(self._strings))

    def rewind(self, mark: Mark) -> None:
        """Back to a mark: state, string table and next sequence number."""
        with self._open():
            self._words[:] = mark.words
            self._next_sequence = mark.next_sequence
            self._strings.truncate(mark.strings)


def _predictor(threads: int, horizon: Amount, chunk: Amount, execution: str) -> Predictor:
    """The predictor that the options ask for."""
    if execution != "ordered":
        # Those of benchmarks have no plain side to choose, and must not be cut into stretches.
        horizon = 8 if horizon == "auto" else horizon
        chunk = 8 if chunk == "auto" else chunk
    if horizon != "auto":
        _check_range("horizon", horizon, 0, 1 << 16, ' or "auto"')
    if chunk != "auto":
        _check_range("chunk", chunk, 1, 1 << 20, ' or "auto"')
    if horizon != "auto" and (chunk != "auto" or horizon == 0):
        return Fixed(horizon, 1 if chunk == "auto" else chunk)
    if threads == 1:
        return Fixed(0, 1)  # speculation by one thread never pays
    return Auto(
        threads,
        horizon=None if horizon == "auto" else horizon,
        chunk=None if chunk == "auto" else chunk,
    )


def _difference(before: Any, after: Any) -> Measurement:
    return Measurement(
        events=int(after.events - before.events),
        seconds=int(after.nanoseconds - before.nanoseconds) / 1e9,
        commits=int(after.commits - before.commits),
        aborts=sum(after.aborts[at] - before.aborts[at] for at in ABORT_REASONS.values()),
    )


def _check_range(option: str, value: object, low: int, high: int, other: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigurationError(
            f"{option}={value!r}; expected an integer from {low} to {high}{other}"
        )
