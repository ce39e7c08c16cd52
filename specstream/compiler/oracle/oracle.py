"""The oracle: the user's function under plain Python, one event after the other.

State, event and emit are thin wrappers over the same words, columns and rows that native code uses.
Everything that is promised about native runs is promised as "equal to this".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.derived import NO_TEXTS, Texts, computed_again, item_again, raise_again
from specstream.columns.exception_texts import record_of
from specstream.columns.phases import first_column
from specstream.columns.strings import StringTable
from specstream.compiler.frontend.error_texts import as_told
from specstream.compiler.frontend.program import CompiledOperation, InterpretedVertices, Program
from specstream.compiler.language.numbers import Int64, Uint64
from specstream.compiler.language.reserved import RESERVED_COLUMNS
from specstream.compiler.language.text import Text, python_string, refuse, tell_texts
from specstream.compiler.language.typing_refusals import TIMER_NAMES
from specstream.compiler.library.event_lists import oracle_list
from specstream.compiler.oracle_objects.containers import Find, loaded
from specstream.compiler.oracle_objects.draws import RandomNumbers
from specstream.compiler.oracle_objects.elements import (
    LOAD,
    STORE,
    OverlaidWords,
    TextWords,
    elements_of,
    emitted,
    load_int,
    store_of,
)
from specstream.compiler.oracle_objects.entries import Due, Journal, MemoryTimers
from specstream.compiler.oracle_objects.firing import Firing
from specstream.compiler.oracle_objects.forms import Formed, form_words, is_elsewhere
from specstream.compiler.oracle_objects.records import forget, record_view, scalar_record
from specstream.compiler.oracle_objects.view import View, strides_of
from specstream.declarations.container_words import replace
from specstream.declarations.derived import Place
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Field, Layout, Space
from specstream.declarations.updates import misfit_of_field

__all__ = [
    *("Draws", "Oracle", "OracleEmit", "OracleEvent", "OracleLocks", "OraclePhase"),
    *("OracleTimer", "beside_of", "field_of", "seed_of", "strings_of"),
]


class OracleState:
    """The state under Python: scalars as attributes, arrays as :class:`View`, containers made of
    their words when they are first asked for."""

    def __init__(
        self,
        layout: Layout,
        memory: npt.NDArray[np.int64],
        elements: dict[tuple[Space, str], Any],
        journal: Journal,
        operations: Iterable[CompiledOperation],
        find: Find | None,
        beside: InterpretedVertices | None,
    ) -> None:
        views: dict[str, Any] = {}
        scalars = {}
        records = {}
        met: list[Any] = []
        for field in layout.fields:
            if field.space == "locks":
                self.__dict__[field.name] = OracleLocks(field.name, field.size)
                continue
            if field.container is not None:
                continue
            if field.record is not None:
                if len(field.shape) == 1:
                    records[field.name] = scalar_record(field, elements, journal, met)
                else:
                    views[field.name] = record_view(field, elements, journal, met)
                continue
            storage = field.storage
            words = elements[field.space, storage.name]
            if field.shape == ():
                convert = store_of(storage)
                scalars[field.name] = (words, field.start, LOAD[storage.number], convert)
                continue
            strides = strides_of(field.shape)
            views[field.name] = View(
                field.name, storage, words, journal, field.start, field.shape, strides
            )
        declared = [field.name for field, _ in layout.operations]
        for name in dict.fromkeys(declared):
            of_field = [one for at, one in zip(declared, operations, strict=True) if at == name]
            views[name] = OracleBoosted(name, views[name], of_field, journal)
        self.__dict__.update(views)
        self.__dict__["_scalars"] = scalars
        self.__dict__["_records"] = records
        self.__dict__["_met"] = met
        self.__dict__["_journal"] = journal
        self.__dict__["_name"] = layout.name
        self.__dict__["_layout"] = layout
        self.__dict__["_memory"] = memory
        self.__dict__["_texts"] = None
        self.__dict__["_now"] = [0]
        self.__dict__["_find"] = find
        self.__dict__["_beside"] = beside

    def __getattr__(self, name: str) -> Any:
        scalar = self.__dict__["_scalars"].get(name)
        if scalar is None:
            record = self.__dict__["_records"].get(name)
            return self._container(name) if record is None else record[0]()
        words, offset, load, _ = scalar
        return load(words[offset])

    def __ss_check_update__(self, name: str, key: Any) -> None:
        found = misfit_of_field(name, self._layout, key)
        if found is not None:
            refuse(*found)

    def _container(self, name: str) -> Any:
        field = self._layout.field(name)
        if field is None or field.container is None:
            raise AttributeError(f"state {self._name!r} has no field {name!r}")
        now = self._now
        made = loaded(
            *(self._memory, field, self._journal, self._texts, self._met),
            *(lambda: now[0], self._find),
        )
        self.__dict__[name] = made
        return made

    def settle(self) -> None:
        beside = self._beside
        for field in self._layout.containers:
            if beside is not None and beside.has(field.name):
                continue
            if field.name in self.__dict__:
                store = self.__dict__[field.name].store
                replace(self._memory, field, store.rows())
                if isinstance(store, MemoryTimers):
                    store.write(self._memory)
        if beside is not None:
            beside.settle()

    def __setattr__(self, name: str, value: Any) -> None:
        scalar = self.__dict__["_scalars"].get(name)
        if scalar is None:
            record = self.__dict__["_records"].get(name)
            if record is not None:
                record[1](value)
                return
            if value is self.__dict__.get(name, self):  # state.x |= other
                return
            known = _why_not_set(self._layout.field(name))
            raise AttributeError(f"{name!r} of state {self._name!r} {known}")
        words, offset, _, convert = scalar
        stored = convert(value, f"state.{name}")
        self._journal.append((words.__setitem__, offset, words[offset]))
        words[offset] = stored


def _why_not_set(field: Field | None) -> str:
    """Why the oracle does not set a field of its state: it is no field, or an array or such."""
    if field is None:
        return "is no field"
    what = "an array" if field.container is None else f"a {field.container.kind}"
    return f"is {what} and cannot be replaced"


def undo(journal: Journal, done: int) -> None:
    """Takes back what an event changed in the oracle since the journal had so many entries."""
    for take_back, *arguments in reversed(journal[done:]):
        take_back(*arguments)
    del journal[done:]


class OracleBoosted:
    """A boosted field under Python: its operations, and nothing else."""

    def __init__(
        self,
        name: str,
        view: View,
        operations: Iterable[CompiledOperation],
        journal: Journal,
    ) -> None:
        self._name = name
        self._journal = journal
        for one in operations:
            self.__dict__[one.declared.name] = self._operation(view, one)

    def _operation(self, view: View, one: CompiledOperation) -> Callable[..., Any]:
        kinds = one.declared.kinds
        what = f"state.{self._name}.{one.declared.name}"

        def operation(*values: Any) -> Any:
            if len(values) != len(kinds):
                raise TypeError(f"{what} takes {len(kinds)} number(s) and gets {len(values)}")
            taken = [
                LOAD[kind](STORE["uint64" if kind == "uint" else kind](value, what))
                for kind, value in zip(kinds, values, strict=True)
            ]
            done = len(self._journal)
            try:
                return one.oracle(view, *taken)
            except BaseException:
                # An operation is done, or has changed nothing.
                undo(self._journal, done)
                raise

        return operation

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"state.{self._name} is boosted and has no {name!r}: use its operations"
        )


class OracleLocks:
    """A field of locks under Python: one event at a time needs none."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> OracleLocks:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"state.{self._name} is indexed with {index!r}: write int(x)")
        if not -self._count <= index < self._count:
            raise IndexError(
                f"index {int(index)} is out of bounds for the {self._count} locks of "
                f"state.{self._name}"
            )
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    acquire = release = __enter__


class Draws(RandomNumbers):
    """An event that draws machine numbers."""

    timestamp: Any
    source: Any
    sequence: Any
    __ss_signed__ = Int64
    __ss_unsigned__ = functools.partial(int.__new__, Uint64)

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __ss_key__(self, draw: int) -> tuple[int, int, int, int, int]:
        key = int(self.timestamp), int(self.source), int(self.sequence)
        return self._seed, *key, int(draw)


class OracleEvent(Draws):
    """The running event under Python."""

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[npt.NDArray[Any]],
        first_sequence: int,
        seed: int,
        sequences: npt.NDArray[np.int64] | None,
        strings: StringTable | None,
        texts: Texts = NO_TEXTS,
    ) -> None:
        super().__init__(seed)
        self._schema, self._arrays, self._strings = schema, columns, strings
        self._own_texts = texts
        self._first_sequence = first_sequence
        self._sequences = None if sequences is None else elements_of(sequences)
        self._columns = [elements_of(column) for column in columns]
        self._readers: dict[str, tuple[Any, Callable[[Any], Any]]] = {
            name: (self._columns[number], load_int) for number, name in enumerate(RESERVED_COLUMNS)
        }
        for number, (name, column) in enumerate(schema, start=len(RESERVED_COLUMNS)):
            reader = self._text if column.kind == "str" else LOAD[column.kind]
            self._readers[name] = (self._columns[number], reader)
        nulls = self._columns[len(RESERVED_COLUMNS) + len(schema) :]
        self._nulls = dict(zip(schema.nullable, nulls, strict=False))
        self._row = 0

    def __getattr__(self, name: str) -> Any:
        if name == "sequence":
            sequences = self._sequences
            if sequences is not None:
                return Int64(sequences[self._row])
            return Int64(self._first_sequence + self._row)
        reader = self.__dict__["_readers"].get(name)
        if reader is None:
            place = self._schema.derived_place(name)
            if place is not None:
                return self._derived(place)
            raise AttributeError(
                f"the event has no column {name!r}; it has {', '.join(self._readers)}, sequence"
            )
        column, load = reader
        texts = self.__dict__["_own_texts"].get(name)
        if texts is not None:
            return Text(column[self._row], texts[self._row] or "")
        return load(column[self._row])

    def __repr__(self) -> str:
        """Its columns, for who looks at it in a debugger."""
        shown = ((name, self._shown(name)) for name in self._readers)
        return f"event({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def _shown(self, name: str) -> Any:
        nulls = self._nulls.get(name)
        return (
            None if nulls is not None and nulls[self._row] else python_string(getattr(self, name))
        )

    def _derived(self, place: Place) -> Any:
        """A derived value; what its function raised is raised here."""
        first, row = len(RESERVED_COLUMNS), self._row
        if not self._schema.derived[place.number].is_seen:
            assert self._strings is not None
            return computed_again(
                *(self._schema, self._arrays, row, self._strings, place.number), self._own_texts
            )
        if self._columns[first + place.raised][row]:
            assert self._strings is not None
            raise_again(
                *(self._schema, self._arrays, row, self._strings, place.number), self._own_texts
            )
        if place.part is None:
            return False
        if place.part.nullable and self._columns[first + place.values + 1][row]:
            return None
        value = self._columns[first + place.values][row]
        if place.part.kind == "list":
            return oracle_list(place.part, value, self._strings, self._item_again(place), ())
        return self._text(value) if place.part.kind == "str" else LOAD[place.part.kind](value)

    def _item_again(self, place: Place) -> Callable[[Sequence[tuple[int, int]]], Any]:
        """Gives what was raised in place of an item of a list."""
        row = self._row

        def again(path: Sequence[tuple[int, int]]) -> Any:
            assert self._strings is not None
            return item_again(
                *(self._schema, self._arrays, row, self._strings, place, path), self._own_texts
            )

        return again

    def _text(self, code: int) -> Text:
        return Text(code, self._strings)

    def is_null(self, name: str) -> bool:
        return bool(self._nulls[name][self._row])


class OraclePhase(OracleEvent):
    """The events of one timestamp under Python; see :mod:`specstream.columns.phases`."""

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[npt.NDArray[Any]],
        first_sequence: int,
        seed: int,
        sequences: npt.NDArray[np.int64] | None,
        strings: StringTable | None,
        texts: Texts = NO_TEXTS,
    ) -> None:
        first = first_column(schema)
        own = columns[len(RESERVED_COLUMNS) : first]
        times = np.repeat(columns[0], sum(own[1::2]))
        members = (times, np.zeros(len(times), np.int64), *columns[first:])
        super().__init__(schema, members, first_sequence, seed, sequences, strings, texts)
        self._columns[0] = elements_of(columns[0])  # of the phases
        self._numbers = [elements_of(column) for column in own]

    def __getattr__(self, name: str) -> Any:
        if name == "timestamp":
            return Int64(self._columns[0][self._row])
        raise AttributeError(f"a phase has no column {name!r}: its events have")

    def events(self, source: int) -> list[OracleEvent]:
        """The events of a source, by its number, in the phase that the oracle runs."""
        first, count = (of[self._row] for of in self._numbers[2 * source : 2 * source + 2])
        made = []
        for row in range(first, first + count):
            one = object.__new__(OracleEvent)
            one.__dict__.update(self.__dict__)
            one._row = row
            made.append(one)
        return made


def seed_of(event: Draws) -> int:
    """The seed of an event's random numbers; a column may have that name."""
    return event._seed


def strings_of(event: OracleEvent) -> StringTable | None:
    """The strings in an event's columns, likewise."""
    return event._strings


def beside_of(state: Any) -> Any:
    """What has the interpreted vertices of a pipeline, whose fields may have any name."""
    return state.__dict__["_beside"]


def field_of(timer: OracleTimer) -> Field:
    """The field of the state that a timer was in, likewise."""
    return timer._field


class OracleTimer(OracleEvent):
    """What ``on_timer`` gets as its timer."""

    def __init__(
        self,
        schema: Schema,
        at: int,
        key: Any,
        time: int,
        number: int,
        seed: int,
        field: Field,
        strings: StringTable | None,
    ) -> None:
        Draws.__init__(self, seed)
        self._schema, self._nulls, self._readers = schema, {}, {}
        self._field, self._strings, self._own_texts = field, strings, NO_TEXTS
        self.key, self.at = key, Int64(at)
        self.timestamp, self.source, self.sequence = Int64(time), Int64(-(2**63)), Int64(number)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the timer has no {name!r}; it has {', '.join(TIMER_NAMES)}")


class OracleEmit:
    """Collects rows: the event's row number, the values, and the words of the nulls."""

    def __init__(self, schema: Schema, strings: StringTable | None) -> None:
        self._schema = schema
        self._strings = strings
        self._null_bits = schema.null_bits
        self._null_words = schema.declared.row_words - 1 - len(schema)
        self.rows: list[tuple[Any, ...]] = []
        self.row = 0
        # What the event's caught exceptions say, or the status of what that raises.
        self.answers: list[tuple[str, int]] = []
        # Of a pipeline: how often each vertex ran, and how many rows it emitted.
        self.by_vertex: dict[str, tuple[int, int]] = {}

    def __call__(self, *values: Any, **named: Any) -> None:
        schema = self._schema
        if named or len(values) != len(schema):
            values = schema.row(values, named)
        if schema.forms:
            values = tuple(map(self._told, values))
        nulls = [0] * self._null_words
        if self._null_words:
            for number, (word, bit) in self._null_bits.items():
                if values[number] is None:
                    nulls[word - 1 - len(schema)] |= 1 << bit
        converted = [
            0 if is_elsewhere(value, column) else emitted(value, column, name, self._strings)
            for (name, column), value in zip(schema, values, strict=True)
        ]
        forms = form_words(schema, values) if schema.forms else []
        self.rows.append((self.row, *converted, *nulls, *forms))

    def _told(self, value: Any) -> Any:
        """A formatted string with the text of an exception, put together here and now."""
        form = self._schema.forms[value.number] if isinstance(value, Formed) else None
        if form is None or not form.errors:
            return value
        assert self._strings is not None
        given = [record_of(value.parts[at], whole=False) or "" for at in form.errors]
        try:
            text = form.function(*map(as_told, value.parts))
            text.encode()
        except Exception as error:
            assert form.status is not None
            self.answers.append(("", form.status(error)))
            raise
        self.answers += [(one, 0) for one in given]
        return Text(self._strings.add(text), text)


class Oracle(Firing):
    """Runs an operator's oracle over one set of columns.

    Args:
        program: what is run.
        layout: the state's layout.
        words: state words, changed in place (int64, as :meth:`Layout.allocate` makes them).
        over: leave ``words`` as they are, those of an engine, and run one event or firing, for
            what it raises: nothing fires before it, and what it has changed is not undone. Entries
            of dicts and sets are looked up there.
        sent: then, of a pipeline, what its interpreted vertices have sent: they are not run again.
    """

    def __init__(
        self,
        program: Program,
        layout: Layout,
        words: npt.NDArray[np.int64],
        over: Find | None = None,
        sent: Any = None,
    ) -> None:
        super().__init__(program, layout)
        self._function = program.oracle
        self._is_over = over is not None
        self._goes_by_time = layout.goes_by_time
        self._journal: Journal = []
        self._texts: list[TextWords] = []
        scratch = np.zeros(layout.words("scratch"), np.int64)
        self._scratch = scratch
        elements: dict[tuple[Space, str], Any] = {}
        for field in layout.fields:
            if field.space == "locks" or field.container is not None:
                continue
            of_space = words if field.space == "state" else scratch
            for storage in [field.storage] if field.record is None else field.record.parts:
                view: Any = elements_of(of_space.view(storage.dtype))
                if storage.number == "str":
                    view = TextWords(view)
                    self._texts.append(view)
                is_overlaid = self._is_over and field.space == "state"
                elements.setdefault(
                    (field.space, storage.name), OverlaidWords(view) if is_overlaid else view
                )
        self._beside = None if program.beside is None else program.beside(words, sent)
        self._state = OracleState(
            layout, words, elements, self._journal, program.operations, over, self._beside
        )

    def begin(
        self,
        event: Schema,
        emits: Schema,
        columns: Sequence[npt.NDArray[Any]],
        first_sequence: int,
        seed: int,
        sequences: npt.NDArray[np.int64] | None = None,
        strings: StringTable | None = None,
        texts: Texts = NO_TEXTS,
    ) -> None:
        """Sets the columns that :meth:`run` takes its events from.

        Their sequence numbers run on from ``first_sequence``, unless ``sequences`` has them. The
        texts of the columns are in ``strings``, which is needed where values are derived, and
        ``texts`` has those of columns that are not entered.
        """
        for words in self._texts:
            words.texts = strings
        self._state.__dict__["_texts"] = strings
        self._seed = seed
        if self._beside is not None:
            self._beside.begin(strings, seed)
        make = OraclePhase if event.phases else OracleEvent
        self._event = make(event, columns, first_sequence, seed, sequences, strings, texts)
        self._emit = OracleEmit(emits, strings)

    def settle(self) -> None:
        """Writes what the containers hold into the words, for whoever looks at those."""
        self._state.settle()

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Emitted rows so far: (row of the event, value, value ...)."""
        return self._emit.rows

    def run(self, row: int) -> None:
        """Fires the timers that are due before it, and runs one event; what raises changes nothing
        and emits nothing.

        Of a timer that raises, ``failed_timer`` tells; it has fired, and the event is still to run.
        """
        if self._goes_by_time:
            time = int(self._event._columns[0][row])
            if not self._is_over:  # there all that is due has fired
                self.fire(time)
            self._state._now[0] = time
        self._event._row = row
        self._run(self._function, self._event, row)
        if self._timers:
            self.clocked.clock = max(self.clocked.clock, time)

    def _run(self, function: Callable[..., None], event: Any, row: int) -> None:
        self._journal.clear()
        forget(self._state._met)
        self._scratch[:] = 0
        if self._beside is not None:
            self._beside.begin_event()
        self._emit.row = row
        self._emit.answers.clear()
        emitted = len(self._emit.rows)
        try:
            function(self._state, event, self._emit)
        except BaseException as error:
            tell_texts(error)
            if not self._is_over:
                self.take_back()
                del self._emit.rows[emitted:]
            raise

    def take_back(self) -> None:
        """Takes back what the event or firing that ran last has changed; its rows stay."""
        undo(self._journal, 0)
        if self._beside is not None:
            self._beside.undo()

    @property
    def has_changed(self) -> bool:
        """Whether the event or firing that ran last may have changed anything."""
        return bool(self._journal) or self._beside is not None

    @property
    def answers(self) -> list[tuple[str, int]]:
        """What the event that ran last has emitted of caught exceptions, in order: what each says
        (:mod:`specstream.columns.exception_texts`), or the status of what its text raises."""
        return self._emit.answers

    @property
    def by_vertex(self) -> dict[str, tuple[int, int]]:
        """Of a pipeline: how often each vertex ran, and how many rows it emitted."""
        return self._emit.by_vertex

    # ---- timers ----

    def store(self, field: Field) -> Any:
        """The entries of a field."""
        if self._beside is not None and self._beside.has(field.name):
            return self._beside.store(field.name)
        return getattr(self._state, field.name).store

    def _run_timer(self, program: Program, field: Field, due: Due, time: int, number: int) -> None:
        at, _, key = due
        self._state._now[0] = time
        strings = strings_of(self._event)
        timer = OracleTimer(program.event, at, key, time, number, self._seed, field, strings)
        self._run(program.oracle, timer, number - 2**63)
