"""A pipeline under plain Python: phase after phase, vertex after vertex, path after path.

It is what compiled code is compared with, and shares nothing with it but the plan. What rows,
events and nulls are is said by :class:`Words`: over another library a pipeline runs as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from specstream._native import lib
from specstream.columns.strings import string_code
from specstream.compiler.backend.interpreted_vertex import note_vertex, shown_path
from specstream.compiler.frontend.program import Program
from specstream.compiler.language.numbers import Int64
from specstream.compiler.language.text import Text
from specstream.compiler.oracle.oracle import (
    Draws,
    OracleEmit,
    OracleEvent,
    OraclePhase,
    OracleTimer,
    beside_of,
    field_of,
    seed_of,
    strings_of,
)
from specstream.compiler.oracle_objects.elements import LOAD
from specstream.compiler.phases.plan import SINK, SOURCE, Plan, Planned, Sink
from specstream.declarations.codes import EMPTY
from specstream.declarations.derived import numbers_of
from specstream.declarations.schema import Column, Kind, Schema

__all__ = ["Path", "VertexRun", "Words", "phase_oracle", "timer_oracle"]

_OF_EVENT = ("timestamp", "source", "sequence")
Path = tuple[int, ...]
Rows = dict[Path, Any]
"""Of one stream in one phase: each row, as ``emit`` makes it, by its path."""


def phase_oracle(plan: Plan, words: Words | None = None) -> Callable[[Any, Any, Any], None]:
    """What runs one phase; parameters (state, event, emit).

    Args:
        plan: of the pipeline.
        words: what rows, events and nulls are; those of the oracle.
    """
    library = words or Words()

    def phase(state: Any, event: Any, emit: Any) -> None:
        events = _events_of(plan, event, library)
        _vertices(plan, state, event, emit, events, library)
        for source, of_source in events.items():
            for sink in plan.sinks_of(source):
                for path in sorted(of_source):
                    row = library.row_of_event(plan, sink, of_source[path])
                    library.to_sink(plan, sink, sink.columns, row, emit)

    return phase


def timer_oracle(plan: Plan) -> Callable[[Any, Any, Any], None]:
    """What runs the phase of a timer that fires; parameters (state, timer, emit)."""

    def phase(state: Any, timer: OracleTimer, emit: OracleEmit) -> None:
        fires = field_of(timer).name.rpartition(".")[0]
        events: dict[str, dict[Path, Any]] = {name: {} for name in plan.sources}
        _vertices(plan, state, timer, emit, events, Words(), fires)

    return phase


def _vertices(
    plan: Plan,
    state: Any,
    event: Any,
    emit: Any,
    events: dict[str, dict[Path, Any]],
    words: Words,
    fires: str | None = None,
) -> None:
    """What the vertices do in a phase: of events, or of the timer of a vertex that ``fires``."""
    sent: dict[str, Rows] = {name: {} for name in plan.order}
    runs: dict[str, int] = {}
    for name, planned in plan.vertices.items():
        run = VertexRun(plan, planned, state, event, emit.answers, words)
        runs[name] = run.fire(sent) if name == fires else run.phase(sent, events)
        for sink in plan.sinks_of(name):
            for path in sorted(sent[name]):
                words.to_sink(plan, sink, planned.emits, sent[name][path], emit)
    for name, count in runs.items():  # nothing has raised
        ran, rows = emit.by_vertex.get(name, (0, 0))
        emit.by_vertex[name] = ran + count, rows + len(sent[name])


def _events_of(plan: Plan, event: Any, words: Words) -> dict[str, dict[Path, Any]]:
    """The events of a phase by their paths, of each source."""
    names, zeros = list(plan.sources), (0,) * plan.axes
    if isinstance(event, OraclePhase):
        return {
            name: {(number, *zeros[1:]): one for number, one in enumerate(event.events(at))}
            for at, name in enumerate(names)
        }
    source = names[0] if len(names) == 1 else words.source_of(plan, event)
    return {name: {zeros: event} if name == source else {} for name in names}


class Words:
    """What the rows, events and nulls of vertices are: of the oracle, words and bits of words.

    Another library has these methods as well (:mod:`specstream.verify.phase`).
    """

    def source_of(self, plan: Plan, event: Any) -> str:
        """Which source an event is of."""
        given = str(getattr(event, SOURCE))
        if given not in plan.sources:
            raise ValueError(
                f"the event is of {given!r}, which is no source of pipeline {plan.pipeline!r}: it "
                f"has {', '.join(plan.sources)}"
            )
        return given

    def is_true(self, value: Any) -> bool:
        """Whether a null or a mark is set."""
        return bool(value)

    def event(
        self, run: VertexRun, own: Any, path: Path, values: dict[str, Any], nulls: set[str]
    ) -> Any:
        """What a run of a vertex reads of an event, ``own``, and of its inputs."""
        plan, by_level = run.plan, list(zip(run.plan.levels, path, strict=True))
        return _Event(own, run.planned.salt, by_level, values, nulls, plan.by_time)

    def rows_of(self, run: VertexRun, program: Program, event: Any, path: Path) -> Sequence[Any]:
        """The rows that a vertex emits in a run."""
        planned = run.planned
        emit = OracleEmit(planned.emits, strings_of(run.event))
        emit.answers = run.answers
        with run.noted(path):
            program.oracle(VertexState(run.state, planned.name), event, emit)
        return [row[1:] for row in emit.rows]

    def value_in(self, run: VertexRun, schema: Schema, row: Any, name: str) -> tuple[Any, bool]:
        """The value of a row's column, and whether it is null."""
        number = schema.names.index(name)
        place = schema.null_bits.get(number)
        null = place is not None and bool(row[place[0] - 1] >> place[1] & 1)
        return self._loaded(run, schema.columns[number].kind, row[number]), null

    def _loaded(self, run: VertexRun, kind: Kind, word: Any) -> Any:
        if kind == "str":
            return Text(word, strings_of(run.event))
        return LOAD[kind](word)

    def never_seen(self, column: Column) -> Any:
        """The value of an input that had no row yet."""
        zeros = {"int": Int64(0), "float": 0.0, "bool": False, "str": Text(EMPTY, "")}
        return zeros[column.kind]

    def no_string(self, run: VertexRun) -> Any:
        """The value of a string that is null."""
        return Text(0, strings_of(run.event))

    def row_of_event(self, plan: Plan, sink: Sink, event: Any) -> Any:
        """An event as a row of the stream that its source sends."""
        return _row_of_event(plan, sink, event)

    def to_sink(self, plan: Plan, sink: Sink, of: Schema, row: Any, emit: Any) -> None:
        """A row leaves through a sink."""
        emit.rows.append((emit.row, *_of_sink(plan, sink, of, row)))


class VertexState:
    """The fields of one vertex in the state of all."""

    def __init__(self, state: Any, vertex: str) -> None:
        self.__dict__["_of"] = state, vertex

    def __getattr__(self, name: str) -> Any:
        state, vertex = self.__dict__["_of"]
        return getattr(state, f"{vertex}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        state, vertex = self.__dict__["_of"]
        setattr(state, f"{vertex}.{name}", value)


class _Event(Draws):
    """What one run of a vertex reads: columns that are there, or kept, or of the event itself."""

    def __init__(
        self,
        whole: OracleEvent,
        salt: int,
        path: Sequence[tuple[int, int]],
        values: dict[str, Any],
        nulls: set[str],
        by_time: bool,
    ) -> None:
        self._whole, self._values, self._nulls = whole, values, nulls
        self._by_time = by_time
        seed = (seed_of(whole) ^ salt) & (2**64 - 1)
        for level, number in path:
            if number:
                seed = int(lib.ss_random_bits(seed, level, number, 0, 0))
        super().__init__(seed)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__["_values"]
        if name in values:
            return values[name]
        whole = self.__dict__["_whole"]
        of_phase = self.__dict__["_by_time"] and not isinstance(whole, OracleTimer)
        if of_phase and name in ("source", "sequence"):
            return Int64(0)  # as random numbers have it
        if name in _OF_EVENT or numbers_of(name) is not None:
            return getattr(whole, name)
        raise AttributeError(f"the event has no column {name!r}; it has {', '.join(values)}")

    def is_null(self, name: str) -> bool:
        return name in self._nulls


class _Timer(Draws):
    """What a vertex's ``on_timer`` gets."""

    def __init__(self, whole: Any, salt: int) -> None:
        super().__init__((seed_of(whole) ^ salt) & (2**64 - 1))
        self.key, self.at, self.timestamp = whole.key, whole.at, whole.timestamp
        self.source, self.sequence = whole.source, whole.sequence


class VertexRun:
    """A vertex in one phase."""

    def __init__(
        self,
        plan: Plan,
        planned: Planned,
        state: Any,
        event: Any,
        answers: list[Any],
        words: Words,
    ) -> None:
        self.plan, self.planned, self.state, self.event = plan, planned, state, event
        self.answers, self.words = answers, words  # answers of the whole phase, in order

    def phase(self, sent: dict[str, Rows], events: dict[str, dict[Path, Any]]) -> int:
        """All of its runs; how many there were."""
        planned = self.planned
        rows: list[Any] = [events.get(one.stream, sent[one.stream]) for one in planned.inputs]
        paths = {path for of in rows for path in of}
        for path in sorted(paths):
            changed = [path in of for of in rows]
            values, nulls = self.read(path, rows, changed)
            # What is derived of an event is for a vertex that reads nothing else.
            own = rows[0][path] if planned.inputs[0].stream in events and changed[0] else self.event
            event = self.words.event(self, own, path, values, nulls)
            if planned.python is None:
                self.run(planned.program, event, path, sent)
            else:
                given = path, changed, values, nulls
                rows_of = partial(beside_of(self.state).run, planned.name, event, *given)
                self.run_in_python(rows_of, path, sent)
        return len(paths)

    def fire(self, sent: dict[str, Rows]) -> int:
        """Its timer fires; one run."""
        fired = self.planned.program.on_timer
        assert fired is not None
        timer, path = _Timer(self.event, self.planned.salt), (0,) * self.plan.axes
        if self.planned.python is None:
            self.run(fired, timer, path, sent)
        else:
            rows_of = partial(beside_of(self.state).fire, self.planned.name, timer)
            self.run_in_python(rows_of, path, sent)
        return 1

    def run(self, program: Program, event: Any, path: Path, sent: dict[str, Rows]) -> None:
        self.send(self.words.rows_of(self, program, event, path), path, sent)

    def run_in_python(
        self, rows_of: Callable[[], Sequence[tuple[Any, ...]]], path: Path, sent: dict[str, Rows]
    ) -> None:
        """A run that Python does as the function is written."""
        with self.noted(path):
            rows = rows_of()
        self.send(rows, path, sent)

    @contextmanager
    def noted(self, path: Path) -> Iterator[None]:
        """What is raised in here, this vertex has raised."""
        try:
            yield
        except Exception as error:
            plan = self.plan
            shown = shown_path(plan.levels, plan.by_time, path)
            note_vertex(error, self.planned.name, plan.pipeline, shown)
            raise

    def send(self, rows: Sequence[Any], path: Path, sent: dict[str, Rows]) -> None:
        """The rows of a run go to its readers."""
        planned = self.planned
        for number, row in enumerate(rows):
            own = list(path)
            if planned.axis is not None:
                own[planned.axis] = number
            sent[planned.name][tuple(own)] = row

    def read(
        self, path: Path, rows: Sequence[Any], changed: Sequence[bool]
    ) -> tuple[dict[str, Any], set[str]]:
        """The columns of this run, and which of them are null; and keeps the last values."""
        values: dict[str, Any] = {}
        nulls: set[str] = set()
        for port, one in enumerate(self.planned.inputs):
            prefix = f"{one.name}." if one.name else ""
            for name, column in one.columns:
                if changed[port]:
                    value, null = self.now(port, path, rows[port], name, column)
                    self.keep(port, name, value, null)
                else:
                    value, null = self.last(port, name, column)
                values[prefix + name] = value
                if self.words.is_true(null):
                    nulls.add(prefix + name)
            known = self.planned.known[port]
            if known is not None:
                if changed[port]:
                    setattr(self.state, known, True)
                values[f"known.{one.name}"] = getattr(self.state, known)
            if one.name:
                values[f"changed.{one.name}"] = changed[port]
        return values, nulls

    def now(self, port: int, path: Path, rows: Any, name: str, column: Column) -> tuple[Any, bool]:
        one = self.planned.inputs[port]
        if one.stream in self.plan.sources:
            whole, event = self.plan.column_of_event(one.stream, name), rows[path]
            is_nullable = whole in self.plan.event.nullable
            null = is_nullable and column.nullable and event.is_null(whole)
            return getattr(event, whole), null
        schema = self.plan.vertices[one.stream].emits
        return self.words.value_in(self, schema, rows[path], name)

    def keep(self, port: int, name: str, value: Any, null: bool) -> None:
        kept = self.planned.last[port].get(name)
        if kept is not None:
            setattr(self.state, kept.value, value)
            if kept.null is not None:
                setattr(self.state, kept.null, null)

    def last(self, port: int, name: str, column: Column) -> tuple[Any, bool]:
        kept = self.planned.last[port].get(name)
        if kept is None:
            return self.words.never_seen(column), column.nullable
        null = getattr(self.state, kept.null) if kept.null is not None else False
        if column.kind == "str" and self.words.is_true(null):  # none is kept as the empty one
            return self.words.no_string(self), True
        return getattr(self.state, kept.value), null


# ---- sinks ----


def _of_sink(plan: Plan, sink: Sink, of: Schema, row: Sequence[Any]) -> list[Any]:
    """A row of a stream as one of the pipeline's rows, without the number of the event."""
    schema = plan.emits
    words: list[Any] = [0.0 if kind == "float" else 0 for kind in schema.kinds]
    words += [0] * (schema.row_words - 1 - len(schema))
    first = plan.first_column(sink)
    own = range(first, first + len(of))
    for number, column in enumerate(schema.columns):
        null = True
        if number in own:
            at = number - first
            words[number] = row[at]
            place = of.null_bits.get(at)
            null = place is not None and bool(row[place[0] - 1] >> place[1] & 1)
        elif schema.names[number] == SINK and len(plan.sinks) > 1:
            words[number], null = string_code(sink.name), False
        if column.nullable and null:
            word, bit = schema.null_bits[number]
            words[word - 1] |= 1 << bit
    ends = [*of.form_words.values(), of.row_words][1:]
    for (number, at), end in zip(of.form_words.items(), ends, strict=True):
        to = schema.form_words[first + number]
        words[to - 1 : to - 1 + end - at] = row[at - 1 : end - 1]
        if words[to - 1]:
            words[to - 1] += plan.first_form(sink)
    return words


def _row_of_event(plan: Plan, sink: Sink, event: OracleEvent) -> tuple[Any, ...]:
    """An event as a row of the stream that its source sends."""
    values = []
    for name, column in sink.columns:
        whole = plan.column_of_event(sink.stream, name)
        null = column.nullable and event.is_null(whole)
        values.append(None if null else getattr(event, whole))
    emit = OracleEmit(sink.columns, strings_of(event))
    emit(*values)
    return emit.rows[0][1:]
