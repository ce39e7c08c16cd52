"""A recorded micro-batch once more, alone, under plain Python.

What a batch did is a function of four things: the operator, the state before it, its rows, and the
engine's seed. The checkpoint file of the batch before has the state, the batch's *input* has the
rest (see ``inputs.py``). So the batch can be replayed anywhere and at any time, without Spark, with
a debugger, and with the operator as it was or as it has become since. What comes out is compared
with what the batch's own file has recorded (``recorded_batch.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.checkpoint.inspect.committing import (
    Committing,
    committing,
    first_difference_of_waiting,
)
from specstream.checkpoint.inspect.debugger import Debugger
from specstream.checkpoint.inspect.difference import (
    Difference,
    first_difference,
    first_difference_of_states,
)
from specstream.checkpoint.inspect.recorded_batch import (
    RecordedBatch,
    newest_batch,
    read_batch,
    restored,
)
from specstream.checkpoint.run.inputs import Origin, Raised
from specstream.checkpoint.run.run_directory import recorded_store
from specstream.columns.conversion import order_values, time_at
from specstream.columns.events import (
    Events,
    keys_of,
    keys_with_firings,
    read_events,
    rows_to_table,
)
from specstream.columns.failed_events import FailedEvents, failed_firing, failed_of
from specstream.columns.lifetimes import check_unit, settle_unit
from specstream.columns.python_values import event_text, phase_text
from specstream.columns.strings import StringTable
from specstream.columns.tables import in_zones
from specstream.declarations.options import flag, function, integer, refuses_unknown
from specstream.declarations.state_view import StateView
from specstream.definition.operator import Operator, pack_rows, sequential
from specstream.engine.options import checked_operator
from specstream.engine.snapshot import Snapshot, refused
from specstream.errors import (
    CompileError,
    ConfigurationError,
    FailedEventsError,
    InputError,
    SnapshotError,
)

__all__ = ["Replay", "replay"]


@dataclass(frozen=True)
class Replay:
    """What a replay has found.

    Attributes:
        batch_id: the micro-batch.
        operator: that was run.
        events: how many the batch has; with a watermark, how many it commits: of those that waited
            before it, and of its own. Of a pipeline with phases by time it is phases that are
            counted, here and below.
        done: how many of them were applied, or set aside.
        output: emitted rows; of a pipeline with several sinks those of all of them in one table,
            with a column ``sink`` and columns ``sink.column``.
        places: the event of each row: its place in the batch's order, from 0; -1: it is a timer's.
        state: after the last event that was applied.
        error: what the operator raised, at event ``done``; None: nothing.
        recorded: the rows that the batch emitted when it ran; None: no record of it is there.
        raised: what the batch raised when it ran, according to its input.
        difference: the first one from what was recorded; None: everything is the same in every bit,
            or nothing was recorded.
        is_whole: whether all events were run; False: somebody left the debugger.
        waiting: how many events wait for the watermark afterwards.
        timers: by the row that a timer has emitted, its place in ``output``: the timer's key, of
            a pipeline its vertex and its key, and the time for which it was set (a number, where
            the batch has no column of times).
        failed: events that were set aside, as :meth:`specstream.Engine.failed_events` gives them;
            None: none was.
    """

    batch_id: int
    operator: Operator
    events: int
    done: int
    output: pa.Table
    places: npt.NDArray[np.int64]
    state: StateView
    error: Exception | None
    recorded: pa.Table | None
    raised: Raised | None
    difference: Difference | None
    is_whole: bool = True
    waiting: int = 0
    timers: Mapping[int, tuple[Any, Any]] = field(default_factory=dict)
    failed: pa.Table | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether there is anything to compare with."""
        return self.recorded is not None or self.raised is not None


@refuses_unknown
def replay(
    checkpoint: str | os.PathLike[str],
    batch: int | None = None,
    operator: Operator | None = None,
    *,
    pdb: bool = False,
    event: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Runs a recorded micro-batch under plain Python, and compares it with the record.

    The state is brought to where the batch began, and the plain function runs for one event after
    the other, in their order, until the end or until one raises; with an engine that has set such
    events aside, these are set aside as well. Nothing is written, and no query
    is disturbed that uses the checkpoint.

    Args:
        checkpoint: what ``foreach_batch(checkpoint=...)`` got, a path or a URI; or what
            ``specstream run --checkpoint`` got.
        batch: id of the batch; one whose input was kept (``keep_batches=``), or that failed. None:
            the newest of them, which the one that failed is.
        operator: what is run; None: the operator as it was declared when the batch ran. It is
            unpickled from the record, so that a record has to be trusted like a program.
        pdb: stop in the debugger at ``event``, and where the operator raises.
        event: place in the order of the batch's events, from 0.
        progress: called with the events done and their number, about every thousand.

    Raises:
        ConfigurationError: there is no such directory, batch or event.
        SnapshotError: what is needed is damaged, or not there any more; says what was not kept, or
            which field does not fit the operator.

    ::

        found = ss.spark.replay("/data/top/checkpoint", batch=12)
        found.output, found.state.counts, found.difference
    """
    store = recorded_store(checkpoint)
    batch = newest_batch(store) if batch is None else integer("batch", batch, 0)
    pdb, event = flag("pdb", pdb), integer("event", event, 0)
    if operator is not None:
        checked_operator(operator)
    if progress is not None:
        function("progress", progress, "a function of the events done and their number")
    recorded = read_batch(store, batch)
    origin, after = recorded.given.origin, recorded.after
    what = f"batch {batch} of {store!r}"
    if origin.event_time is None and (origin.waits or (after is not None and after.pending)):
        raise SnapshotError(
            f"{what} cannot be replayed: events wait in its engine for the frontier of their "
            "source, and how far a batch moves it is not in the record: they were submitted beside "
            "the batches, or an older specstream has written the record"
        )
    the_operator = recorded.given.operator() if operator is None else operator
    start = restored(recorded.before, the_operator.layout, what)
    with refused(what):
        strings = start.table(the_operator.program.strings)
    run = _Run(the_operator, origin, start, strings)
    is_whole = run.all(recorded.given.rows, what, pdb, event, progress)
    output, failed = run.output(), run.failed.take()
    state = StateView(the_operator.layout, run.words, strings.objects)
    return Replay(
        batch,
        the_operator,
        run.count,
        run.done,
        output,
        run.places(),
        state,
        run.error,
        None if after is None else after.output,
        None if after is not None else origin.raised,
        _difference(recorded, run, output, state, failed, what) if is_whole else None,
        is_whole,
        run.waiting,
        run.timers(),
        failed,
    )


def _difference(
    recorded: RecordedBatch,
    run: _Run,
    output: pa.Table,
    state: StateView,
    failed: pa.Table | None,
    what: str,
) -> Difference | None:
    """Between the record and a run that got through all of its events."""
    after = recorded.after
    if after is None:
        raised = recorded.given.origin.raised
        return None if raised is None else _difference_of_errors(raised, run.raised())
    layout = run.operator.layout
    content = restored(after.snapshot, layout, what)
    with refused(what):
        texts = content.table(()).objects
    return (
        _difference_of_errors(None, run.raised())
        or first_difference(in_zones(after.output, output.schema), output)
        or _difference_of_failed(after.failed, failed)
        or first_difference_of_states(StateView(layout, content.state, texts), state)
        or run.difference_of_waiting(after.pending)
    )


def _difference_of_errors(recorded: Raised | None, found: Raised | None) -> Difference | None:
    if recorded == found:
        return None
    return Difference("error", "", (), recorded and str(recorded), found and str(found))


def _difference_of_failed(
    recorded: pa.Table | None, replayed: pa.Table | None
) -> Difference | None:
    """Without their tracebacks: the operator may be in another file here."""
    if recorded is None:
        return None  # or they were for no sink
    if replayed is None:
        return Difference("failed", "", (), recorded.num_rows, None)
    found = first_difference(recorded.drop(["traceback"]), replayed.drop(["traceback"]))
    return None if found is None else replace(found, where="failed")


def _is_fired(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which emitted rows are of timers; see :func:`keys_with_firings`."""
    return rows < -(2**62)


class _Run:
    """The batch under way."""

    def __init__(
        self, operator: Operator, origin: Origin, start: Snapshot, strings: StringTable
    ) -> None:
        self.operator = operator
        self.origin = origin
        self.strings = strings
        self.first = start.next_sequence
        self.pending = start.pending
        self.committing: Committing | None = None  # in event time
        self.words = start.state.words()
        self.oracle = sequential(operator.program, operator.layout, self.words)
        self.events: Events | None = None
        self.done = 0
        self.error: Exception | None = None
        self.failed = FailedEvents(
            origin.errors,
            operator.event,
            lambda: self.strings,
            is_pipeline=bool(operator.layout.parts),
            has_timers=operator.has_timers,
        )

    @property
    def count(self) -> int:
        return 0 if self.events is None else self.events.count

    @property
    def waiting(self) -> int:
        return 0 if self.committing is None else self.committing.waiting

    def difference_of_waiting(self, recorded: bytes) -> Difference | None:
        """Of what was recorded of the events that wait."""
        if self.committing is None:
            return None
        return first_difference_of_waiting(recorded, self.committing.pending)

    def read(self, rows: pa.Table) -> Events:
        """The events that the batch commits, in order."""
        operator, origin = self.operator, self.origin
        what = f"operator {operator.name!r}"
        rows = operator.events_table(rows, what, (origin.order_by, origin.source))
        if origin.event_time is not None:
            self.committing = committing(
                operator, origin, rows, self.pending, self.strings, self.words
            )
            return self.committing.events
        events = read_events(
            rows,
            operator.event,
            self.strings,
            what,
            self.first,
            order_by=origin.order_by,
            source=origin.source,
            reads_timestamp=operator.program.reads_timestamp,
            rejected_rows=origin.bad_rows,
            check_times=partial(check_unit, operator.layout, self.words, what=what),
        )
        settle_unit(operator.layout, self.words, events.keys[0].type)
        return events

    def sequences(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The sequence numbers of events, by their rows in the batch's order."""
        return rows + self.first if self.committing is None else self.committing.sequences[rows]

    def all(
        self,
        rows: pa.Table,
        what: str,
        pdb: bool,
        event: int,
        progress: Callable[[int, int], None] | None,
    ) -> bool:
        """Runs the events; False: somebody left the debugger."""
        operator, origin = self.operator, self.origin
        try:
            self.events = events = self.read(rows)
        except InputError as error:
            self.error = error
            return True
        if not 0 <= event < max(events.count, 1):
            raise ConfigurationError(
                f"event={event}: {what} has {events.count} event(s), from 0 to {events.count - 1}"
            )
        sequences = None if self.committing is None else self.committing.sequences
        self.oracle.begin(
            operator.event,
            operator.emits,
            events.columns,
            self.first,
            origin.seed,
            sequences,
            self.strings,
            events.texts,
        )
        debugger = Debugger() if pdb else None

        def run(until: int) -> None:
            while self.done < until:
                self.oracle.run(self.done)
                self.done += 1
                if progress is not None and self.done % 1024 == 0:
                    progress(self.done, events.count)

        def run_all() -> None:
            run(events.count)
            frontier = None if self.committing is None else self.committing.frontier
            if origin.ends:
                if operator.has_timers:
                    self.oracle.end()
            elif frontier is not None and operator.layout.goes_by_time:
                self.oracle.fire(frontier)

        named = f"operator {origin.operator!r}, batch {origin.batch_id}"
        with self.failed.batch(named, origin.errors_limit):
            if debugger is None:
                self._go_on(run_all)
            elif self._go_on(lambda: run(event)):
                print(self.shown(event))
                self._go_on(lambda: debugger.runcall(run_all), debugger)
        self.oracle.settle()
        return self.done == events.count or self.error is not None

    def _go_on(self, run: Callable[[], object], debugger: Debugger | None = None) -> bool:
        """Runs what goes on where it was; again behind each event that is set aside.

        Returns:
            Whether it came to its end; if not, ``error`` says why.
        """
        while True:
            try:
                run()
                return True
            except Exception as error:
                if debugger is not None:
                    print(f"{type(error).__name__}: {error}\n{self.shown(self.done)}")
                    debugger.post_mortem(error, self.operator.program)
                try:
                    if self._set_aside(error):
                        continue
                    self.error = error
                except FailedEventsError as too_many:
                    self.error = too_many
                return False

    def _set_aside(self, error: Exception) -> bool:
        """Sets the event or the timer aside that has raised; False: it ends the batch.

        Raises:
            FailedEventsError: it is one too many.
        """
        if not self.failed.sets_aside or isinstance(error, CompileError):
            return False
        assert self.events is not None
        is_event = self.oracle.failed_timer is None
        if is_event:
            number = int(self.sequences(np.array([self.done]))[0])
            first = number - self.done
            failed = failed_of(error, self.operator.event, self.events, self.done, first)
        else:
            number, time = self.oracle.firings[-1]
            keys = self.events.keys
            failed = failed_firing(error, time, number, keys[0].type, keys[1].type)
        self.failed.check(failed, error)
        self.failed.keep(failed)
        self.done += is_event
        return True

    def shown(self, row: int) -> str:
        """An event with its order key, its strings as texts."""
        if row >= self.count:
            return "the batch has no events"
        assert self.events is not None
        schema, keys = self.operator.event, self.events.keys
        if schema.phases:
            shown = phase_text(schema, self.events, row, self.strings)
            return f"phase {row}, of time {time_at(keys[0], row)}: {shown}"
        values = event_text(schema, self.events, row, self.strings)
        return (
            f"event {row}, (timestamp, source, sequence) = "
            f"({time_at(keys[0], row)}, {keys[1][row]}, {self.sequences(np.array([row]))[0]}): "
            f"{values}"
        )

    def raised(self) -> Raised | None:
        """The error, as an input keeps it."""
        error = self.error
        if error is None:
            return None
        event = None if self.events is None else self.done
        return Raised(event, type(error).__name__, str(error))

    def rows(self) -> npt.NDArray[np.int64]:
        emitted = self.oracle.rows if self.events is not None else []
        rows: npt.NDArray[np.int64] = pack_rows(emitted, self.operator.emits)
        return rows

    def places(self) -> npt.NDArray[np.int64]:
        """The event of each emitted row; -1: it is a timer's."""
        found = self.rows()[:, 0]
        return np.where(_is_fired(found), np.int64(-1), found)

    def timers(self) -> dict[int, tuple[Any, Any]]:
        """Key and time of the timers that have emitted rows, by the row."""
        found = self.rows()[:, 0]
        if self.events is None:
            return {}
        timers: dict[int, tuple[Any, Any]] = {}
        for row in np.flatnonzero(_is_fired(found)).tolist():
            key, at = self.oracle.fired[int(found[row]) + 2**63]
            times = order_values(np.array([at], np.int64), self.events.keys[0].type)
            timers[row] = key, time_at(times, 0)
        return timers

    def _keys(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        assert self.events is not None
        sequence = pa.array(self.sequences(rows))
        return keys_of(self.events, rows, self.first) | {"sequence": sequence}

    def output(self) -> pa.Table:
        rows, keys = self.rows(), None
        if self.origin.keys and self.events is not None:
            keys = keys_with_firings(rows[:, 0], self._keys, self.oracle.firings)
        return rows_to_table(rows, self.operator.emits, self.strings, keys)
