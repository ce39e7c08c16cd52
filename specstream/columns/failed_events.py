"""Failed events: events whose function raises, set aside with the error, and the stream goes on.

Stream systems know such a place as a dead-letter queue. A failed event leaves no trace in the state
and emits nothing; what is kept of it is its order key, its columns, and what its function raised. A
timer whose function raises is kept likewise: it has fired, and has no columns.

Rows that cannot be events at all are another matter (``rejected_rows.py``).
"""

from __future__ import annotations

import contextlib
import itertools
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.columns.conversion import order_values, time_at, to_arrow
from specstream.columns.events import KEY_COLUMNS, Events
from specstream.columns.rejected_rows import take_together
from specstream.columns.strings import StringTable
from specstream.declarations.options import one_of
from specstream.declarations.schema import Schema
from specstream.errors import ConfigurationError, FailedEventsError
from specstream.files.arrow_stream import stream_of
from specstream.files.untrusted import Malformed, read_tables

__all__ = [
    "Errors",
    "Failed",
    "FailedEvents",
    "Numbers",
    "check_names",
    "checked_errors",
    "failed_firing",
    "failed_of",
    "user_traceback",
]

Errors = Literal["raise", "side"]
# How many, and how many of them are firings of timers.
Numbers = tuple[int, int]
_POLICIES = ("raise", "side")

_TOLD = ("error", "message", "traceback")
# Frames in them are the package's, and not of whoever wrote the function.
_ROOMS = (
    *("checkpoint", "cli", "columns", "compiler", "definition", "engine", "interpreted"),
    *("pipelines", "sources", "spark"),
)
_OURS = tuple(f"{Path(__file__).parents[1] / room}/" for room in _ROOMS)


def checked_errors(errors: Errors) -> Errors:
    """The policy.

    Raises:
        ConfigurationError: there is no such.
    """
    one_of("errors", errors, _POLICIES)
    return errors


def check_names(what: str, names: Sequence[str]) -> None:
    """Whether the columns of events leave room for those that say why one has failed.

    Raises:
        ConfigurationError: one has the name of such a column.
    """
    for name in (*_TOLD, "timer", "vertex"):
        if name in names:
            raise ConfigurationError(
                f'{what}: errors="side" sets events aside with a column {name!r} beside their own, '
                "and they have one of that name: rename it in the operator and its input"
            )


@dataclass(frozen=True, slots=True)
class Failed:
    """One failed event, or firing of a timer.

    Attributes:
        timestamp: of its order key, as the order column has it.
        source: likewise; of a firing a null.
        sequence: its number; of a firing that of the firing.
        values: its columns, as operators read them, those of nulls behind; of a column that is not
            entered the text. None: it is a firing.
        error: name of the exception's class.
        message: its text.
        traceback: the lines of the function that led there, and the exception.
        vertex: of a pipeline, the vertex whose function raised; None: none did.
        timer: of a firing, the timer's key and time.
    """

    timestamp: pa.Scalar
    source: pa.Scalar
    sequence: int
    values: tuple[Any, ...] | None
    error: str
    message: str
    traceback: str
    vertex: str | None = None
    timer: str | None = None

    def __str__(self) -> str:
        time = time_at(pa.array([self.timestamp]), 0)
        key = f"({time}, {self.source}, {self.sequence})"
        where = f"(timestamp, source, sequence) = {key}"
        if self.timer is not None:
            where = f"the timer {self.timer}"
        elif self.vertex is not None:
            where += f", vertex {self.vertex!r}"
        return f"{where}: {self.error}: {self.message}"


def failed_of(
    error: BaseException,
    schema: Schema,
    events: Events,
    row: int,
    first_sequence: int,
) -> tuple[Failed, ...]:
    """What is kept of the event in a row, or of all events of a phase.

    Args:
        error: what it raised, before anybody has said on it which event that was.
        schema: of the events.
        events: among which it is.
        row: of the event or phase.
        first_sequence: sequence number of the first event.
    """
    described = _described(error)
    rows, sequences = range(row, row + 1), None
    if events.starts is not None:
        assert events.members is not None
        rows = range(events.events_before(row), events.events_before(row + 1))
        events, sequences = events.members
    own = events.columns[2 : 2 + len(schema.declared_dtypes)]
    texts = [events.texts.get(name) for name in (*schema.names, *("" for _ in schema.nullable))]
    return tuple(
        Failed(
            events.keys[0][at],
            events.keys[1][at],
            first_sequence + at if sequences is None else int(sequences[at]),
            tuple(
                column[at] if of is None else _whole(of[at] or "")
                for column, of in zip(own, texts, strict=True)
            ),
            **described,
        )
        for at in rows
    )


def failed_firing(
    error: BaseException,
    time: int,
    number: int,
    times: pa.DataType,
    sources: pa.DataType,
) -> tuple[Failed, ...]:
    """What is kept of a timer that has fired.

    Args:
        error: what its function raised; it says which timer that was.
        time: of the firing.
        number: so many have fired before.
        times: type of the events' order column.
        sources: type of their sources.
    """
    at = order_values(np.array([time], np.int64), times)[0]
    source, described = pa.scalar(None, sources), _described(error)
    key, set_for = vars(error)["specstream_timer"]
    if described["vertex"] is not None:
        _, key = key  # of a pipeline with the vertex
    timer = f"{key!r}, set for {set_for}"
    return (Failed(at, source, number, None, timer=timer, **described),)


def _described(error: BaseException) -> dict[str, Any]:
    return {
        "error": type(error).__name__,
        "message": _whole(_text(error)),
        "traceback": _whole(user_traceback(error)),
        "vertex": getattr(error, "specstream_vertex", None),
    }


def user_traceback(error: BaseException) -> str:
    """The traceback of what an operator's function has raised, without frames of the package."""
    shown = traceback.TracebackException.from_exception(error)
    _leave_users(shown)
    return "".join(shown.format())


def _leave_users(shown: traceback.TracebackException) -> None:
    """Takes out the frames of the package: an engine raises in others than the sequential run."""
    shown.stack = traceback.StackSummary.from_list(
        [one for one in shown.stack if not one.filename.startswith(_OURS)]
    )
    for one in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if one is not None:
            _leave_users(one)


def _text(error: BaseException) -> str:
    """What an exception says, in the words of tracebacks where its own method fails."""
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"


def _whole(text: str) -> str:
    """A text that Arrow takes: half of a surrogate pair is none."""
    return text.encode(errors="backslashreplace").decode()


@dataclass
class _Batch:
    """What belongs together and fails together.

    Attributes:
        what: names it in errors.
        limit: so many of its events may fail; None: all.
        before: number of failed events at its begin.
        first: of its failed events, and what it raised.
    """

    what: str
    limit: int | None
    before: int
    first: list[tuple[Failed, BaseException]] = field(default_factory=list)


class FailedEvents:
    """The failed events that nobody has fetched.

    Args:
        policy: what happens to an event that raises.
        schema: of the events.
        strings: gives the table of their strings.
        is_pipeline: vertices are told.
        has_timers: timers are told.
    """

    def __init__(
        self,
        policy: Errors,
        schema: Schema,
        strings: Callable[[], StringTable],
        *,
        is_pipeline: bool,
        has_timers: bool,
    ) -> None:
        self.policy = checked_errors(policy)
        self._schema, self._strings = schema, strings
        self._more = (*(("vertex",) if is_pipeline else ()), *(("timer",) if has_timers else ()))
        # Those behind these tables, each with the numbers of all up to it and of the firings among
        # them: tables of one row each would take a hundred times as long.
        self._open: list[tuple[Numbers, tuple[Failed, ...]]] = []
        self._kept: list[pa.Table] = []
        self._before: Numbers = (0, 0)
        self._batch: _Batch | None = None

    @property
    def sets_aside(self) -> bool:
        """Whether an event that raises is set aside."""
        return self.policy == "side"

    @property
    def count(self) -> int:
        """All that were kept; in any thread."""
        return self._numbers[0]

    @property
    def firings(self) -> int:
        """Of these, firings of timers."""
        return self._numbers[1]

    @property
    def _numbers(self) -> Numbers:
        opened = self._open
        return opened[-1][0] if opened else self._before

    @contextlib.contextmanager
    def batch(self, what: str, limit: int | None) -> Iterator[None]:
        """Inside, no more than so many events may fail."""
        self._batch = _Batch(what, limit, self.count)
        try:
            yield
        finally:
            self._batch = None

    def check(self, failed: tuple[Failed, ...], error: BaseException) -> None:
        """Before these are kept, which have raised that.

        Raises:
            FailedEventsError: they are more than may fail of a batch.
        """
        batch = self._batch
        if batch is None or batch.limit is None:
            return
        if not batch.first:
            batch.first.append((failed[0], error))
        count = self.count - batch.before + len(failed)
        if count > batch.limit:
            first, cause = batch.first[0]
            raise FailedEventsError(batch.what, count, batch.limit, str(first)) from cause

    def keep(self, failed: tuple[Failed, ...]) -> None:
        """Keeps an event, or those of a phase, if they are not the last that are kept."""
        if self._open and self._open[-1][1] is failed:
            return
        count, firings = self._numbers
        firings += sum(one.values is None for one in failed)
        self._open.append(((count + len(failed), firings), failed))  # at one go

    def close(self) -> None:
        """Makes tables of those that are kept one by one. May be begun anew."""
        opened = self._open
        if opened:
            kept = [*self._kept, *self._tables([one for _, of in opened for one in of])]
            count = opened[-1][0]
            # No call in between; and who looks at the number in between finds no less.
            self._kept, self._before, self._open = kept, count, []

    def _tables(self, failed: list[Failed]) -> Iterator[pa.Table]:
        """A table for each stretch of them whose keys have the same types."""

        def types(one: Failed) -> tuple[pa.DataType, pa.DataType]:
            return one.timestamp.type, one.source.type

        for (times, sources), stretch in itertools.groupby(failed, types):
            some = list(stretch)
            columns: dict[str, Any] = {
                "timestamp": pa.array([one.timestamp for one in some], times),
                "source": pa.array([one.source for one in some], sources),
                "sequence": pa.array([one.sequence for one in some], pa.int64()),
            }
            columns |= self._columns(some)
            for name in (*_TOLD, *self._more):
                columns[name] = pa.array([getattr(one, name) for one in some], pa.string())
            yield pa.table(columns)

    def _columns(self, failed: list[Failed]) -> dict[str, pa.Array]:
        """Those of the events, null where it is a firing."""
        schema = self._schema
        fired = np.array([one.values is None for one in failed])
        nulls = {name: len(schema) + at for at, name in enumerate(schema.nullable)}
        found = {}
        for number, (name, column) in enumerate(schema):
            values = [0 if one.values is None else one.values[number] for one in failed]
            null = fired
            if name in nulls:
                at = nulls[name]
                null = fired | [one.values is not None and one.values[at] != 0 for one in failed]
            array: Any
            if column.kind == "str":
                array = self._texts(values)
            elif column.kind == "float":
                array = to_arrow(np.array(values, np.float64).view(np.int64), column)
            else:
                array = to_arrow(np.array(values, np.int64), column)
            if null.any():
                array = pc.if_else(pa.array(null), pa.scalar(None, array.type), array)
            found[name] = array
        return found

    def _texts(self, values: list[Any]) -> pa.Array:
        """A column of strings: codes, and texts that are not entered."""
        codes = [0 if isinstance(value, str) else value for value in values]
        entered = self._strings().texts(np.array(codes, np.int64)).cast(pa.string())
        own = [value if isinstance(value, str) else None for value in values]
        return pc.coalesce(pa.array(own, pa.string()), entered)

    # ---- kept and brought back ----

    def to_bytes(self) -> bytes:
        """Those that nobody has fetched: Arrow streams, one behind the other."""
        self.close()
        return b"".join(map(stream_of, self._kept))

    @staticmethod
    def read(content: bytes) -> list[pa.Table]:
        """What :meth:`to_bytes` gave, as tables.

        Raises:
            Malformed: it gave none such.
        """
        tables = read_tables(content, "failed events")
        for table in tables:
            texts = {one.name for one in table.schema if one.type == pa.string()}
            if not texts.issuperset(_TOLD) or not set(table.column_names).issuperset(KEY_COLUMNS):
                raise Malformed(
                    f"failed events have the columns {', '.join(map(ascii, table.column_names))}; "
                    f"expected {', '.join((*KEY_COLUMNS, *_TOLD))} among them"
                )
        return tables

    def take_over(self, kept: list[pa.Table]) -> None:
        """Keeps these in place of what is here; they are not counted."""
        count, kept = self._numbers, list(kept)
        self._kept, self._before, self._open = kept, count, []

    def savepoint(self) -> tuple[Numbers, tuple[pa.Table, ...]]:
        """What is here, for :meth:`rollback`."""
        self.close()
        return self._before, tuple(self._kept)

    def rollback(self, to: tuple[Numbers, tuple[pa.Table, ...]]) -> None:
        """Back to a savepoint, whatever was kept or fetched since."""
        count, of = to
        kept = list(of)
        self._kept, self._before, self._open = kept, count, []

    def take(self) -> pa.Table | None:
        """Those kept so far, as many as fit into one table; None: there are none."""
        self.close()
        return take_together(self._kept)
