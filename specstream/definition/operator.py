"""The operator: one plain sequential function, and what it declares."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa

from specstream.columns.events import (
    Events,
    column,
    keys_of,
    keys_with_firings,
    read_events,
    rows_to_table,
)
from specstream.columns.failed_events import (
    Errors,
    Failed,
    FailedEvents,
    check_names,
    checked_errors,
    failed_firing,
    failed_of,
)
from specstream.columns.field_values import initial_state
from specstream.columns.lifetimes import check_unit, settle_unit
from specstream.columns.phases import phases_of
from specstream.columns.python_values import note_raised
from specstream.columns.rejected_rows import Policy, checked_policy
from specstream.columns.strings import StringTable
from specstream.columns.tables import as_table, key_names
from specstream.compiler.driver import ALONE, Place, analyse
from specstream.compiler.frontend.inputs import ASKED, flattened
from specstream.compiler.frontend.program import Program
from specstream.compiler.oracle.oracle import Oracle
from specstream.compiler.pickling import pack, unpack
from specstream.declarations.deprecated import renamed, takes_old_name
from specstream.declarations.durations import UNIT_TICKS
from specstream.declarations.options import (
    flag,
    function,
    integer,
    one_of,
    refuses_bare,
    refuses_unknown,
    shown,
    text,
)
from specstream.declarations.record_types import Record
from specstream.declarations.schema import EVENT_ATTRIBUTES, Schema
from specstream.declarations.state_layout import Layout, State
from specstream.declarations.state_view import StateView
from specstream.definition.counted_times import counts_times
from specstream.definition.explanation import Explanation, explained
from specstream.display.sheet import Sheet
from specstream.errors import (
    CompileError,
    DeclarationError,
    InputError,
    Partial,
    is_of_signal_handler,
)
from specstream.interpreted.program import interpreted_program
from specstream.interpreted.sequential import Sequential

__all__ = [
    *("Operator", "SequentialRun", "VertexCounts", "check_order", "operator", "sequential"),
]


_NO_SOURCE = "the source of its function cannot be read; define it in a file or a notebook cell"
_SHOWN_ERRORS = 3
_SHOWN_VERTICES = 20


@dataclass(frozen=True)
class VertexCounts:
    """What a vertex of a pipeline did.

    Attributes:
        runs: of its function.
        rows: that it emitted.
    """

    runs: int
    rows: int


@dataclass(frozen=True, repr=False)
class SequentialRun:
    """What a sequential run has made of a table.

    Attributes:
        output: emitted rows; of a pipeline with several sinks a dict of their tables.
        state: the state after the last event.
        raised: (row, exception) of the events that raised, with ``on_error="skip"`` or
            ``errors="side"``; of a timer that raised the row is None, and ``specstream_timer`` on
            the exception its key and time; of a phase by time it is that of the first event.
        rejected_rows: rows that cannot be events, with ``rejected_rows="side"``: as they were
            given, with a column "reason"; None: there are none.
        failed_events: events that raised, with ``errors="side"``, as
            :meth:`specstream.Engine.failed_events` gives them; None: there are none.
        vertices: of a pipeline, what each vertex did in the phases that were applied.
    """

    output: pa.Table
    state: StateView
    raised: tuple[tuple[int | None, Exception], ...]
    rejected_rows: pa.Table | None = None
    vertices: Mapping[str, VertexCounts] = field(default_factory=dict)
    failed_events: pa.Table | None = None

    @property
    def bad_rows(self) -> pa.Table | None:
        """Old name of ``rejected_rows``, until version 0.3."""
        renamed("SequentialRun.bad_rows", "SequentialRun.rejected_rows")
        return self.rejected_rows

    def __repr__(self) -> str:
        return f"{self._sheet().text()}\n{self.state!r}"

    def _repr_html_(self) -> str:
        return self._sheet().html() + self.state._repr_html_()

    def _sheet(self) -> Sheet:
        rejected = 0 if self.rejected_rows is None else self.rejected_rows.num_rows
        # Of a pipeline with several sinks a table for each.
        tables = self.output if isinstance(self.output, dict) else {"": self.output}
        facts = [
            fact
            for sink, of in tables.items()
            for fact in (
                (f"rows of sink {sink}" if sink else "emitted rows", f"{of.num_rows:,}"),
                ("columns", ", ".join(f"{one.name}: {one.type}" for one in of.schema)),
            )
        ]
        facts += [
            (f"vertex {name}", f"{of.runs:,} runs, {of.rows:,} rows")
            for name, of in list(self.vertices.items())[:_SHOWN_VERTICES]
        ]
        facts += [
            ("events that raised", f"{len(self.raised):,}"),
            ("rejected rows", f"{rejected:,}"),
        ]
        of_first = [
            f"row {'of a timer' if row is None else row} raised {type(error).__name__}: {error}"
            for row, error in self.raised[:_SHOWN_ERRORS]
        ]
        return Sheet("Sequential run", facts, notes=of_first)


class Operator:
    """A stateful stream operator. Made by :func:`operator`.

    It can be pickled, also where its module cannot be imported later: with its functions' source
    and the values that its globals and closures had when it was declared.

    Attributes:
        name: used in messages.
        function: the plain function, as written.
        layout: where the state's fields lie.
        event: columns of an event; its times count in the unit of ``time_unit=``, if one was given.
        emits: columns of an emitted row.
        on_timer: the function that runs when a timer fires, as written; None: it has no timers.
        inputs: columns of each input by its name, of a vertex that has several; ``event`` then has
            those of all of them. Empty: it takes events.
        is_interpreted: whether Python runs its function as it is written (``interpreted=``).
        speculates: whether events may run ahead of their turn (``speculate=``).
        sign: of a verb, as pictures show it; empty: it has none.
        again: of a verb or a rule, makes another one with these options instead; None: it is
            neither.
        speaks_at_end: of a verb, whether it gives a row when the stream ends.
        notes: what is said of its cost when it is explained.
        compares_times: of a rule, whether it has lengths of time, and so needs an order.
        reads_rows_only: of a verb with several inputs, whether it never reads an input that has no
            row, so that no last values are kept for it.
    """

    is_interpreted = False
    speculates = True
    sign = ""
    again: Callable[..., Operator] | None = None
    speaks_at_end = False
    reads_rows_only = False
    notes: tuple[str, ...] = ()
    compares_times = False

    def __init__(
        self,
        function: Callable[..., None],
        state: type[State] | None,
        event: Record | None,
        emits: Record,
        name: str | None,
        on_timer: Callable[..., None] | None = None,
        inputs: Mapping[str, Record] | None = None,
        interpreted: bool = False,
        speculate: bool = True,
        time_unit: str | None = None,
    ) -> None:
        if state is not None and not (isinstance(state, type) and issubclass(state, State)):
            raise DeclarationError(
                f"state= is {shown(state)}; expected a class: class MyState(ss.State): ..."
            )
        text("name", name, "a text, or None", DeclarationError)
        name = name or str(getattr(function, "__name__", "operator"))
        if (event is None) == (inputs is None):
            raise DeclarationError(
                f"operator {name!r} is declared with {'neither' if event is None else 'both'} "
                "event= and inputs=; expected one of them: event={...}, or for a vertex of a "
                'pipeline that has several inputs inputs={"left": {...}, "right": {...}}'
            )
        of_inputs = {} if inputs is None else _inputs(inputs)
        self.is_interpreted = flag("interpreted", interpreted)
        self.speculates = flag("speculate", speculate)
        if time_unit is not None:
            time_unit = one_of("time_unit", time_unit, UNIT_TICKS, DeclarationError)
        columns = flattened(of_inputs) if event is None else Schema.of(event, "event")
        self._declare(
            function,
            name,
            Layout(name, ()) if state is None else state.layout(),
            replace(columns, time_unit=time_unit),
            Schema.of(emits, "emits"),
            on_timer,
            of_inputs,
        )

    @classmethod
    def of_layout(
        cls,
        function: Callable[..., None],
        name: str,
        layout: Layout,
        event: Schema,
        emits: Schema,
        on_timer: Callable[..., None] | None = None,
    ) -> Self:
        """An operator made of declarations that are read already: another one's, perhaps changed.

        Raises:
            CompileError: the function has something that cannot be compiled.
        """
        made = cls.__new__(cls)
        made._declare(function, name, layout, event, emits, on_timer)
        return made

    def _declare(
        self,
        function: Callable[..., None],
        name: str,
        layout: Layout,
        event: Schema,
        emits: Schema,
        on_timer: Callable[..., None] | None = None,
        inputs: Mapping[str, Schema] | None = None,
    ) -> None:
        self.function = function
        self.on_timer = on_timer
        self.name = name
        self.layout = layout
        self.inputs: dict[str, Schema] = dict(inputs or {})
        self.program: Program = self.compiled_as(ALONE, event.declared, emits.declared)
        self.event = replace(
            event,
            derived=self.program.derived,
            unentered=self.program.unentered,
            counts_times=event.counts_times or counts_times(self.program, self.layout),
        )
        self.emits = replace(emits, forms=self.program.forms)
        self.__doc__ = function.__doc__

    def compiled_as(
        self,
        place: Place,
        event: Schema,
        emits: Schema,
        layout: Layout | None = None,
        name: str | None = None,
    ) -> Program:
        """Its function rewritten, perhaps for a place beside others; an interpreted one as it is.

        Args:
            event: columns of its events, as declared.
            emits: of its rows, likewise.
            layout: where the fields of its state lie; None: as in a state of its own.
            name: what it is called in messages; None: as ever.
        """
        name = self.name if name is None else name
        layout = self.layout if layout is None else layout
        if self.is_interpreted:
            site = place.first_site
            return interpreted_program(self.function, name, event, layout, self.on_timer, site)
        return analyse(
            self.function,
            name,
            event,
            emits,
            layout,
            self.on_timer,
            self.inputs,
            place,
        )

    def __getstate__(self) -> dict[str, Any]:
        # By value: the module that it was declared in need not be where it is unpickled.
        if self.is_interpreted:
            self._look_again()
        fired = self.program.on_timer
        written = (fired.written if fired is not None else {}) | self.program.written
        # The operator's own function last, as of all that has no timers.
        function: Any = self.function
        written[function] = written.pop(function)
        places: dict[Any, int] = {one: at for at, one in enumerate(written)}
        return {
            "name": self.name,
            "layout": self.layout,
            "event": self.event.declared,
            "emits": self.emits.declared,
            "functions": pack(written),
            "operations": tuple(
                (places[one.function], None if one.inverse is None else places[one.inverse])
                for _, one in self.layout.operations
            ),
            "on_timer": None if self.on_timer is None else places[self.on_timer],
            "inputs": self.inputs,
            "interpreted": self.is_interpreted,
            "speculate": self.speculates,
            "sign": self.sign,
            "speaks_at_end": self.speaks_at_end,
            "reads_rows_only": self.reads_rows_only,
            "notes": self.notes,
            "compares_times": self.compares_times,
        }

    def _look_again(self) -> None:
        """Before it travels: with what the names in its function stand for by now."""
        self.program = interpreted_program(
            self.function, self.name, self.event, self.layout, self.on_timer
        )
        if not self.has_source:
            raise pickle.PicklingError(f"operator {self.name!r} cannot be pickled: {_NO_SOURCE}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        functions = unpack(state.pop("functions"))
        operations = [
            one.with_functions(functions[at], None if inverse is None else functions[inverse])
            for (_, one), (at, inverse) in zip(
                state["layout"].operations, state.pop("operations"), strict=True
            )
        ]
        state["layout"] = state["layout"].with_operations(operations)
        # A record of version 0.2 has neither.
        self.is_interpreted = state.pop("interpreted", False)
        self.speculates = state.pop("speculate", True)
        self.sign = state.pop("sign", "")
        self.speaks_at_end = state.pop("speaks_at_end", False)
        self.reads_rows_only = state.pop("reads_rows_only", False)
        self.notes = state.pop("notes", ())
        self.compares_times = state.pop("compares_times", False)
        place = state.pop("on_timer", None)
        state["on_timer"] = None if place is None else functions[place]
        self._declare(functions[-1], **state)

    def __repr__(self) -> str:
        return f"Operator({self.name!r})"

    @property
    def calls_python(self) -> bool:
        """Whether it is interpreted, or a pipeline's vertex is."""
        return self.is_interpreted

    @property
    def has_source(self) -> bool:
        """Whether the source of its function can be read, as that of all that is compiled."""
        return self.function in self.program.written

    @property
    def has_timers(self) -> bool:
        """Whether it has timers, or a pipeline's vertex has."""
        return self.layout.timers is not None

    def check_alone(self) -> None:
        """Whether it can run by itself.

        Raises:
            DeclarationError: it has several inputs.
        """
        if self.inputs:
            raise DeclarationError(
                f"operator {self.name!r} has the inputs {', '.join(self.inputs)}, and takes no "
                "events by itself: add it to a pipeline, ss.Pipeline(...).add(...)"
            )

    def events_table(
        self, data: Any, what: str, more: Sequence[str | None], source: object = None
    ) -> pa.Table:
        """The table of events that a user's data are.

        Args:
            data: as for :meth:`specstream.Engine.process`.
            what: the operator, in errors.
            more: names of the columns of times and of sources, if they are read.
            source: what all rows are of, where somebody says so.
        """
        names = (*self.event.names, *more)
        by_time = self.program.reads_timestamp
        return as_table(data, what, names, self.event, *key_names(more), by_time)

    def source_column(self, given: str | None) -> str | None:
        """The column that names each event's source.

        Args:
            given: as somebody says; None: nobody does.
        """
        return given

    def event_values(self, source: object, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """One event's values, by its columns.

        Args:
            source: that it is of.
            values: as a user gives them.
        """
        return values

    def values_of(self, source: object, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Some values of an event, by its columns.

        Args:
            source: that it is of.
            values: as a user gives them.
        """
        return values

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """Names of a pipeline's sources, and of their columns; empty: it is none."""
        return {}

    @property
    def sinks(self) -> tuple[str, ...]:
        """Names of a pipeline's sinks; empty: it is none, and has one output."""
        return ()

    def rows(self, table: pa.Table) -> Any:
        """Emitted rows as a user gets them.

        Args:
            table: of all of them.
        """
        return table

    @property
    def output_schema(self) -> pa.Schema:
        """Arrow schema of the output."""
        return self.emits.arrow()

    def explain(self) -> Explanation:
        """The operator in words: source, layout of the state, accesses, what could conflict.

        It is found from the syntax alone: nothing runs, nothing is compiled. All branches count, so
        it says what an event may do; which conflicts happen, and how often, depends on the events
        (:meth:`specstream.Engine.profile`).

        Returns:
            What ``print`` shows as text, a notebook with tables, and ``to_dict()`` gives as data.

        Raises:
            DeclarationError: it is interpreted, and the source of its function cannot be read.

        >>> import specstream as ss
        >>> from specstream.structures import add
        >>> class Seen(ss.State):
        ...     count = ss.scalar(int)
        ...     last = ss.array(float, 10)
        >>> @ss.operator(state=Seen, event={"item": int, "price": float}, emits={"change": float})
        ... def changes(state, event, emit):
        ...     add(state, "count", 1)
        ...     emit(event.price - state.last[event.item])
        ...     state.last[event.item] = event.price
        >>> print(str(changes.explain()).partition("state:")[2])  # doctest: +ELLIPSIS
         11 words of 8 bytes
          count: int, 8 bytes, 1 word
              updated unread: add of count in line 3
          last: 10 float, 80 bytes, 10 words
              read: last[event.item] in line 4
              written: last[event.item] in line 5
        <BLANKLINE>
        what could conflict, of an earlier and a later event that run at once
          one writes last[event.item] (line 5), a later one reads last[event.item] (line 4): where
          both have the same element
        """
        if not self.has_source:
            raise DeclarationError(f"operator {self.name!r} cannot be explained: {_NO_SOURCE}")
        found = explained(self.program, self.layout, self.event, self.emits)
        return replace(found, notes=self.notes) if self.notes else found

    @takes_old_name("run_sequential", "bad_rows", "rejected_rows")
    @refuses_unknown
    def run_sequential(
        self,
        table: Any,
        *,
        seed: int = 0,
        order_by: str | None = None,
        source: str | None = None,
        keys: bool = False,
        initial: Mapping[str, Any] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        errors: Errors = "raise",
        rejected_rows: Policy = "error",
        progress: Callable[[int], None] | None = None,
        bad_rows: Policy | None = None,
        end: bool = False,
    ) -> SequentialRun:
        """Runs the plain function over a table, one event after the other, from a new state.

        This is the oracle: what an engine gives is identical to it, bit for bit. It is slow, and a
        debugger works in it.

        Args:
            table: as for :meth:`specstream.Engine.process`.
            seed: of ``event.random``.
            order_by: column to order the rows by; ``source`` breaks ties.
            source: column that names each event's source.
            keys: add the order-key columns to the output.
            initial: values to start with, by field name, as for :class:`specstream.Engine`.
            on_error: "skip" goes on after an event that raises, which is not applied, and after a
                timer that raises, which has fired.
            errors: "side" goes on as well, and sets what failed aside, as an engine does.
            rejected_rows: "side" leaves out rows that cannot be events, as an engine does.
            progress: called with the number of events done, about every thousand.
            bad_rows: old name of ``rejected_rows``, until version 0.3.
            end: no event follows: the timers that are left fire, once.

        Raises:
            InputError: the table does not fit.
            ConfigurationError: another argument is not what it must be.
            Exception: whatever the function raises, with ``specstream_partial``.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     count = ss.scalar(int)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
        ... def running_total(state, event, emit):
        ...     state.count += event.x
        ...     emit(state.count)
        >>> running_total.run_sequential({"x": [1, 2, 3]}).output["total"].to_pylist()
        [1, 3, 6]
        """
        # Long for what it says; the code is one loop.
        self.check_alone()
        one_of("on_error", on_error, ("raise", "skip"))
        what = f"operator {self.name!r}"
        if checked_errors(errors) == "side":
            check_names(what, self.event.names)
        source = self.source_column(source)
        seed, keys = integer("seed", seed, 0, 2**64 - 1), flag("keys", keys)
        end = flag("end", end)
        check_order(self, order_by)
        order_by = column("order_by", order_by)
        source = column("source", source)
        if progress is not None:
            function("progress", progress, "a function of the number of events done")
        strings = StringTable(self.program.strings)
        words = self.layout.allocate()
        if initial is not None:
            initial_state(self.layout, strings, initial, what).put_into(words)
        events = read_events(
            self.events_table(table, what, (order_by, source)),
            self.event,
            strings,
            what,
            0,
            order_by=order_by,
            source=source,
            reads_timestamp=self.program.reads_timestamp,
            rejected_rows=checked_policy(rejected_rows),
            check_times=partial(check_unit, self.layout, words, what=what),
        )
        if self.event.phases:
            events = phases_of(events, self.event)
        settle_unit(self.layout, words, events.keys[0].type)
        oracle = sequential(self.program, self.layout, words)
        oracle.begin(self.event, self.emits, events.columns, 0, seed, strings=strings)

        def output() -> Any:
            rows = pack_rows(oracle.rows, self.emits)
            return self.rows(
                rows_to_table(rows, self.emits, strings, key_columns(rows) if keys else None)
            )

        def key_columns(rows: Any) -> dict[str, pa.Array]:
            return keys_with_firings(
                rows[:, 0], lambda rows: keys_of(events, rows, 0), oracle.firings
            )

        failed = FailedEvents(
            errors,
            self.event,
            lambda: strings,
            is_pipeline=bool(self.layout.parts),
            has_timers=self.has_timers,
        )
        run = _Run(self, oracle, events, strings, on_error == "skip", failed, output)
        run.all(progress)
        if end and self.has_timers:
            run.end()
        oracle.settle()
        return SequentialRun(
            output(),
            StateView(self.layout, words, strings.objects),
            tuple(run.raised),
            events.rejected,
            {name: VertexCounts(*oracle.by_vertex.get(name, (0, 0))) for name in self.layout.parts},
            failed.take(),
        )


def sequential(program: Program, layout: Layout, words: Any) -> Oracle | Sequential:
    """What runs an operator's function sequentially, over the words of a state."""
    if program.is_interpreted:
        return Sequential(program, layout, words)
    return Oracle(program, layout, words)


@dataclass
class _Run:
    """The events under Python, one after the other.

    Attributes:
        operator: that is run.
        oracle: that has their columns.
        events: in order.
        strings: their texts.
        skips: one that raises does not end it.
        failed: takes those that raise; so it may set them aside.
        output: makes the rows so far.
        raised: (row, exception) of those that it has gone on behind.
    """

    operator: Operator
    oracle: Oracle | Sequential
    events: Events
    strings: StringTable
    skips: bool
    failed: FailedEvents
    output: Callable[[], Any]
    raised: list[tuple[int | None, Exception]] = field(default_factory=list)

    def all(self, progress: Callable[[int], None] | None) -> None:
        """Runs them.

        Raises:
            Exception: what one has raised, unless it is skipped, with the output of those before.
        """
        oracle, events, row = self.oracle, self.events, 0
        while row < events.count:
            try:
                oracle.run(row)
            except Exception as error:
                if oracle.failed_timer is not None:
                    self._skip(error, events.events_before(row))
                    continue  # the event is still to run
                self._skip(error, events.events_before(row), row)
            if progress is not None and row % 1024 == 1023:
                progress(row + 1)
            row += 1

    def end(self) -> None:
        """Fires the timers that are left, likewise."""
        while True:
            try:
                self.oracle.end()
                return
            except Exception as error:
                self._skip(error, self.events.events_before(self.events.count))

    def _skip(self, error: Exception, done: int, row: int | None = None) -> None:
        """Goes on behind what has raised, or raises it.

        Args:
            error: what it was.
            done: events before it.
            row: of the event or phase; None: it was a timer.
        """
        operator, events = self.operator, self.events
        if is_of_signal_handler(error):
            raise error
        goes_on = self.skips or self.failed.sets_aside
        if goes_on and self.failed.sets_aside and not isinstance(error, CompileError):
            self.failed.keep(self._failed(error, row))
        if row is not None:
            note_raised(error, operator.name, operator.event, events, row, 0, self.strings)
        if not goes_on or isinstance(error, CompileError):
            error.specstream_partial = Partial(self.output(), done)  # type: ignore[attr-defined]
            raise error
        self.raised.append((None if row is None else done, error))

    def _failed(self, error: Exception, row: int | None) -> tuple[Failed, ...]:
        events, keys = self.events, self.events.keys
        if row is not None:
            return failed_of(error, self.operator.event, events, row, 0)
        number, time = self.oracle.firings[-1]
        return failed_firing(error, time, number, keys[0].type, keys[1].type)


def check_order(operator: Operator, order_by: str | None) -> None:
    """Refuses a table without times for an operator whose state goes by time.

    Raises:
        InputError: it says how to give them.
    """
    by_time = bool(operator.event.phases)
    compares = operator.compares_times
    if (operator.layout.goes_by_time or by_time or compares) and order_by is None:
        what = "timers, which fire" if operator.has_timers else "entries that expire"
        what = "phases" if by_time else "lengths of time" if compares else what
        raise InputError(
            f"operator {operator.name!r} has {what} by the time of the events: give order_by=, the "
            "column that has it"
        )


def pack_rows(rows: list[tuple[Any, ...]], emits: Schema) -> Any:
    """The oracle's rows as words, in the form that native code emits."""
    packed = np.empty((len(rows), emits.row_words), np.int64)
    kinds = ("int", *emits.kinds)
    if rows:
        for number, values in enumerate(zip(*rows, strict=True)):
            if kinds[number : number + 1] == ("float",):
                packed[:, number] = np.array(values, np.float64).view(np.int64)
            else:
                packed[:, number] = np.array(values, np.int64)
    return packed


def _inputs(declared: Mapping[str, Record]) -> dict[str, Schema]:
    if not isinstance(declared, Mapping) or not declared:
        raise DeclarationError(
            f"inputs= is {shown(declared)}; expected the columns of each input by its name: "
            'inputs={"left": {"price": float}, "right": {"price": float}}'
        )
    taken = (*EVENT_ATTRIBUTES, *ASKED, "name")
    for name in declared:
        if not isinstance(name, str) or not name.isidentifier() or name in taken:
            raise DeclarationError(
                f"inputs= has an input {name!r}; expected a Python identifier, other than "
                f"{', '.join(taken)}, because the operator reads event.{name}.column: rename it"
            )
    return {name: Schema.of(of, f"inputs, {name!r}") for name, of in declared.items()}


@refuses_bare("@ss.operator(state=..., event={...}, emits={...})")
def operator(
    *,
    state: type[State] | None = None,
    event: Record | None = None,
    inputs: Mapping[str, Record] | None = None,
    emits: Record | None = None,
    name: str | None = None,
    on_timer: Callable[..., None] | None = None,
    interpreted: bool = False,
    speculate: bool = True,
    time_unit: str | None = None,
) -> Callable[[Callable[..., None]], Operator]:
    """Turns a plain function ``process(state, event, emit)`` into an operator; without a state the
    function is ``process(event, emit)``.

    The function is analysed at once: constants of its globals and closure are frozen, and what
    cannot be compiled is refused with its line.

    Args:
        state: class of the state, derived from :class:`specstream.State`; None: it has none.
        event: columns that the function reads: name to ``int``, ``float``, ``bool``, ``str``,
            ``datetime.datetime``, ``datetime.date``, ``ss.timestamp(...)``, ``ss.decimal(...)``, or
            ``ss.nullable(...)`` of one of these, which is also written ``float | None``. Or a
            dataclass, ``TypedDict`` or ``NamedTuple`` class, a ``pyarrow.Schema``, or Spark's
            ``StructType``.
        inputs: in place of ``event``, of a vertex of a :class:`specstream.Pipeline` that has
            several inputs: the columns of each by its name. The function reads
            ``event.left.price``, and asks ``event.changed("left")`` and ``event.known("left")``.
        emits: columns of the rows it emits, declared likewise.
        name: used in messages; the function's name by default.
        on_timer: a plain function ``on_timer(state, timer, emit)``, which runs when a timer fires,
            if the state has :func:`specstream.timers`.
        interpreted: the function is not compiled: Python runs it as it is written, in the engine's
            threads. It may call anything; events run at the same time where the interpreter lock is
            released (NumPy, models, waiting for a network), and are run again where they conflict.
            For events of 10 µs and more; see the guide, "Interpreted operators".
        speculate: False: events run one after the other. Use it where code that the operator calls
            could not cope with values that never existed together, or where effects outside must
            not be repeated.
        time_unit: that the numbers of times in the function count: "s", "ms", "us", "ns" or "day".
            An order column of times in another unit is cast to it; values that are not whole in it
            are refused. An order column of integers stays as it is. An operator that adds a number
            to ``event.timestamp``, or sets timers, needs it for order columns of times.

    Raises:
        DeclarationError: state or columns are not declared as they must be.
        CompileError: the function uses what cannot be compiled.
    """
    declared = {} if emits is None else emits
    return lambda function: Operator(
        function, state, event, declared, name, on_timer, inputs, interpreted, speculate, time_unit
    )
