"""A phase in LLVM instructions: the vertices in the order of their numbers, in one function.

A stream is a frame in the function that runs a phase: how many rows there are, and the one row, if
there cannot be more; the optimiser makes registers of it. Otherwise the rows lie in the worker's
arena, each with its path in front. A vertex that has no message costs a look at the counts of its
inputs. Machine code of its operator is called once for each distinct path among them.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import NumbaError
from numba.extending import intrinsic, models, register_model

from specstream._native import lib
from specstream.columns.strings import string_code
from specstream.compiler.backend.diagnosis import translate
from specstream.compiler.backend.instructions import BIT, F64, I32, I64, POINTER, Value
from specstream.compiler.backend.interpreted_vertex import KEY, InterpretedVertex
from specstream.compiler.backend.local_types import kinds_of
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.pipeline import COMPILE_OPTIONS, OperatorCompiler
from specstream.compiler.backend.types import (
    BASES,
    PROFILED,
    EmitType,
    EventType,
    MovedStateType,
    StateType,
    Variant,
)
from specstream.compiler.frontend.inputs import ASKED
from specstream.compiler.frontend.program import Program
from specstream.compiler.language.refusals import refuse
from specstream.compiler.language.reserved import RESERVED_COLUMNS
from specstream.compiler.library.array_expressions import new_list
from specstream.compiler.library.emit import WRITERS, OutputRow
from specstream.compiler.library.event import (
    READERS,
    event_column,
    event_null,
    order_key,
    phase_column,
)
from specstream.compiler.library.state_timers import TimerType, timer_place
from specstream.declarations.codes import EMPTY
from specstream.declarations.derived import numbers_of
from specstream.declarations.element_types import storage_of
from specstream.declarations.schema import Kind, Schema
from specstream.declarations.state import Field
from specstream.pipelines.graph import Sink
from specstream.pipelines.plan import MOST_INLINED, SINK, SOURCE, TYPES, Plan, Planned

__all__ = ["MOST_VERTICES", "phase_functions"]

_WORDS = I64.as_pointer()
_FIRST_ROWS = 8
# So many vertices are looked at one after the other; among more, those that have a message are
# found by their bits.
_MOST_IN_LINE = 64
# So many of those that read sources alone are looked at in every phase, before any bits.
_MOST_IN_FRONT = 4
# Whether streams have a row is asked where at least so many vertices each depend on it.
_GATES_PAY = 3
_BITS = 64
MOST_VERTICES = _BITS * _BITS


# ---- streams ----


@dataclass(frozen=True)
class _Rows:
    """How the rows of a stream lie in memory.

    A frame is [count][row] where there is at most one row; else [count][room][rows][number of the
    next row of this run], and a row has its path in front. A row is as in the output: a word that
    means nothing here, the values, the nulls, the formatted strings.
    """

    schema: Schema
    many: bool
    axes: int

    @property
    def frame_words(self) -> int:
        return 4 if self.many else 1 + self.schema.row_words

    @property
    def stride(self) -> int:
        return self.axes + self.schema.row_words

    def row(self, builder: Any, frame: Value, number: Value) -> Value:
        """Where a row's path begins, or the only row."""
        if not self.many:
            return builder.gep(frame, [I64(1)], inbounds=True)
        words = _pointer_at(builder, frame, 2)
        return builder.gep(words, [builder.mul(number, I64(self.stride))], inbounds=True)

    def content(self, builder: Any, row: Value) -> Value:
        """The row without its path."""
        return builder.gep(row, [I64(self.axes)], inbounds=True) if self.many else row


def _word(builder: Any, words: Value, at: int) -> Value:
    return builder.gep(words, [I64(at)], inbounds=True)


def _pointer_at(builder: Any, words: Value, at: int) -> Value:
    place = builder.bitcast(_word(builder, words, at), _WORDS.as_pointer())
    return builder.load(place)


def _store_pointer(builder: Any, words: Value, at: int, pointer: Value) -> None:
    builder.store(pointer, builder.bitcast(_word(builder, words, at), _WORDS.as_pointer()))


# ---- emit ----


class StreamEmitType(EmitType):
    """``emit`` of a vertex: a row goes to its stream."""

    def __init__(self, planned: Planned, axes: int) -> None:
        super().__init__(planned.emits)
        self.rows, self.axis = _Rows(planned.emits, planned.many, axes), planned.axis
        types.Type.__init__(
            self, f"specstream.stream({planned.emits}, {planned.many}, {planned.axis}, {axes})"
        )


@register_model(StreamEmitType)
class _StreamEmitModel(models.StructModel):
    def __init__(self, manager: object, emit: StreamEmitType) -> None:
        # `run` of the vertex: where its path stands, see _Frame.
        members = [("run", types.voidptr), ("stream", types.voidptr), ("frame", types.voidptr)]
        super().__init__(manager, emit, members)


class _StreamRow:
    """Writes a row of a stream."""

    def __init__(self, context: Any, builder: Any, emit: StreamEmitType, value: Value) -> None:
        of = cgutils.create_struct_proxy(emit)(context, builder, value=value)
        self.run, self.builder, self.emit = Run(context, builder, of.run), builder, emit
        self.stream = builder.bitcast(of.stream, _WORDS)
        self.frame = builder.bitcast(of.frame, _WORDS)

    def begin(self) -> Value:
        builder, rows = self.builder, self.emit.rows
        count = builder.load(self.stream)
        following = builder.add(count, I64(1))
        if not rows.many:
            builder.store(following, self.stream)
            return rows.row(builder, self.stream, count)
        room = builder.load(_word(builder, self.stream, 1))
        with builder.if_then(builder.icmp_unsigned("==", count, room), likely=False):
            self._grow(count, room)
        row = rows.row(builder, self.stream, count)
        builder.store(following, self.stream)
        number = _word(builder, self.stream, 3)
        for axis in range(rows.axes):
            part = builder.load(_word(builder, self.frame, axis))
            if axis == self.emit.axis:
                part = builder.load(number)
                builder.store(builder.add(part, I64(1)), number)
            builder.store(part, _word(builder, row, axis))
        return rows.content(builder, row)

    def _grow(self, count: Value, room: Value) -> None:
        builder, rows = self.builder, self.emit.rows
        more = builder.mul(room, I64(2))
        none = builder.icmp_unsigned("==", room, I64(0))
        more = builder.select(none, I64(_FIRST_ROWS), more)
        width = I64(rows.stride)
        _, words = new_list(self.run, kinds_of(types.int64), builder.mul(more, width))
        words = builder.bitcast(words, _WORDS)
        with builder.if_then(builder.not_(none)):
            old = _pointer_at(builder, self.stream, 2)
            cgutils.raw_memcpy(builder, words, old, builder.mul(count, width), 8)
        _store_pointer(builder, self.stream, 2, words)
        builder.store(more, _word(builder, self.stream, 1))

    def end(self) -> None:
        pass


WRITERS[StreamEmitType] = _StreamRow


# ---- events ----


@dataclass(frozen=True)
class _Port:
    """One input of a vertex, as machine code reads it.

    Attributes:
        prefix: of its columns in the vertex's event.
        source: of the pipeline's event, where it reads a source: the prefix of its columns there;
            else None.
        rows: of its stream, where it reads a vertex.
        counts: it reads a source of which a phase may have several events.
    """

    prefix: str
    source: str | None
    rows: _Rows | None
    counts: bool = False

    @property
    def many(self) -> bool:
        """Whether there may be several rows in a phase."""
        return self.counts or (self.rows is not None and self.rows.many)


@dataclass(frozen=True)
class _Kept:
    """Where what is kept of an input lies, in words from the vertex's first one of this kind.

    Attributes:
        last: of each column that is kept: its value, and whether it was null.
        known: whether there ever was a row.
    """

    last: tuple[tuple[str, int, int | None], ...]
    known: int | None


class VertexEventType(EventType):
    """The event of a vertex: rows of its inputs, or last values, or the pipeline's own event.

    It says nothing of which vertex that is: those that differ in nothing else share their code.
    """

    def __init__(self, planned: Planned, plan: Plan, whole: EventType, variant: Variant) -> None:
        super().__init__(planned.event)
        self.schema = _with_derived(planned.event, plan.event)
        self.names = tuple(one for one in planned.event.names if not _is_asked(one))
        self.variant, self.whole, self.levels = variant, whole, plan.levels
        self.inputs = tuple(planned.vertex.operator.inputs)
        self.ports = tuple(_ports(planned, plan))
        self.kept = tuple(_kept(planned, plan))
        told = [planned.event, self.inputs, self.ports, self.kept, variant, plan.levels]
        types.Type.__init__(self, f"specstream.vertex_event({told}, {whole})")

    @property
    def axes(self) -> int:
        """Numbers of a path."""
        return len(self.levels)

    def port(self, name: str) -> tuple[int, str]:
        """Which input has a column, and how that calls it."""
        if not self.inputs:
            return 0, name
        of, _, column = name.partition(".")
        return self.inputs.index(of), column


def _first_kept(planned: Planned, plan: Plan) -> int:
    """The first word of what is kept of the inputs of a vertex."""
    names = [one.value for last in planned.last for one in last.values()]
    names += [one for one in planned.known if one is not None]
    return min((_field(plan, name).offset for name in names), default=0)


def _field(plan: Plan, name: str) -> Field:
    found = plan.layout.field(name)
    assert found is not None
    return found


def _kept(planned: Planned, plan: Plan) -> Iterator[_Kept]:
    first = _first_kept(planned, plan)

    def at(name: str | None) -> int | None:
        return None if name is None else _field(plan, name).offset - first

    for last, known in zip(planned.last, planned.known, strict=True):
        places = []
        for column, of in last.items():
            value = at(of.value)
            assert value is not None
            places.append((column, value, at(of.null)))
        yield _Kept(tuple(places), at(known))


def _is_asked(name: str) -> bool:
    return name.partition(".")[0] in ASKED and "." in name


def _with_derived(schema: Schema, whole: Schema) -> Schema:
    return Schema(schema.names, schema.columns, derived=whole.derived)


def _ports(planned: Planned, plan: Plan) -> Iterator[_Port]:
    for one in planned.inputs:
        prefix = f"{one.name}." if one.name else ""
        if one.stream in plan.graph.sources:
            whole = plan.column_of_event(one.stream, "")
            yield _Port(prefix, whole, None, plan.graph.by_time)
        else:
            reads = plan.vertices[one.stream]
            yield _Port(prefix, None, _Rows(reads.emits, reads.many, plan.axes))


@register_model(VertexEventType)
class _VertexEventModel(models.StructModel):
    def __init__(self, manager: object, event: VertexEventType) -> None:
        # `kept`: the first word of what is kept; `salt`: of random numbers.
        members = [("run", types.voidptr), ("frame", types.voidptr)]
        super().__init__(manager, event, [*members, ("kept", types.int64), ("salt", types.int64)])


class _VertexReader:
    """Reads the event of a vertex.

    Its frame has the path of the run, and behind it one word for each input: the address of the
    row that is read, of a source 1 and the number of the event; 0: none.
    """

    def __init__(self, context: Any, builder: Any, event: VertexEventType, value: Value) -> None:
        of = cgutils.create_struct_proxy(event)(context, builder, value=value)
        self.context, self.builder, self.event = context, builder, event
        self.run = Run(context, builder, of.run)
        self.frame = builder.bitcast(of.frame, _WORDS)
        self.first_kept, self.salt = of.kept, of.salt

    def changed(self, port: int) -> Value:
        word = self.builder.load(_word(self.builder, self.frame, self.event.axes + port))
        return self.builder.icmp_unsigned("!=", word, I64(0))

    def column(self, name: str) -> Value:
        event = self.event
        if numbers_of(name) is not None:
            return event_column(self.run, event.whole, name, self.number(0))
        if name in ("timestamp", "source", "sequence"):
            return dict(zip(("timestamp", "source", "sequence"), self.key(), strict=True))[name]
        of, _, asked = name.partition(".")
        if of in ASKED and asked:
            port, _ = event.port(f"{asked}.")
            return self.known(port) if of == "known" else self.changed(port)
        kind = event.schema.kind(name)
        assert kind is not None
        port, column = event.port(name)
        value, null = self.places(port, column)
        read = self.now_or_last(
            port, lambda: self.now(port, column, kind), value, kind, _zero(kind)
        )
        if kind == "str" and null is not None:  # no string is kept as the empty one
            return self.builder.select(self.null(name), I64(0), read)
        return read

    def null(self, name: str) -> Value:
        port, column = self.event.port(name)
        _, null = self.places(port, column)
        return self.now_or_last(port, lambda: self.null_now(port, column), null, "bool", BIT(1))

    def key(self) -> list[Value]:
        """Of the pipeline's event, or of the timer that has fired; of a phase by time its time."""
        key = order_key(self.run, self.event.whole)
        if self.event.whole.schema.phases:
            # What it is counted as depends on how the events came; a timer has a source of its own.
            is_phase = self.builder.icmp_unsigned("==", key[1], I64(0))
            key[2] = self.builder.select(is_phase, I64(0), key[2])
        return key

    def seed(self) -> Value:
        """Of random numbers: those of two vertices, and of two paths, are independent."""
        builder = self.builder
        seed = self.run.load_member("seed", invariant=True)
        seed = builder.xor(seed, self.salt)
        for axis, level in enumerate(self.event.levels):
            part = builder.load(_word(builder, self.frame, axis))
            arguments = (seed, I64(level), part, I64(0), I64(0))
            other = self.run.call("ss_random_bits", I64, *arguments)
            seed = builder.select(builder.icmp_unsigned("==", part, I64(0)), seed, other)
        return seed

    # -- where a value lies --

    def places(self, port: int, column: str) -> tuple[int | None, int | None]:
        """Where the last value of a column is kept, and whether it was null."""
        for name, value, null in self.event.kept[port].last:
            if name == column:
                return value, null
        return None, None

    def word(self, at: int) -> Value:
        return self.builder.add(self.first_kept, I64(at))

    def load(self, at: int, kind: Kind) -> Value:
        storage = storage_of(TYPES[kind], "a last value")
        return self.run.load("state", self.event.variant, storage, self.word(at))

    def store(self, at: int, kind: Kind, value: Value) -> None:
        storage = storage_of(TYPES[kind], "a last value")
        self.run.store("state", self.event.variant, storage, self.word(at), value)

    def now_or_last(
        self,
        port: int,
        now: Callable[[], Value],
        at: int | None,
        kind: Kind,
        never: Value,
    ) -> Value:
        """What the row of this run has, else what is kept; ``never`` where nothing is."""
        builder = self.builder
        if not self.event.inputs:
            return now()
        with builder.if_else(self.changed(port)) as (changed, same):
            with changed:
                of_row = now()
                from_row = builder.block
            with same:
                kept = never if at is None else self.load(at, kind)
                from_state = builder.block
        phi = builder.phi(of_row.type)
        phi.add_incoming(of_row, from_row)
        phi.add_incoming(kept, from_state)
        return phi

    def known(self, port: int) -> Value:
        at = self.event.kept[port].known
        return self.now_or_last(port, lambda: BIT(1), at, "bool", BIT(0))

    def keep(self, port: int) -> None:
        """The row of this run becomes the last one of the input."""
        if self.event.variant in PROFILED.values():
            # It stands on no line: not on that of whatever ran before.
            self.run.store_member("site", ir.IntType(16)(0))
        kept, kinds = self.event.kept[port], self.event.schema
        for column, value, null in kept.last:
            name = f"{self.event.ports[port].prefix}{column}"
            kind = kinds.kind(name)
            assert kind is not None
            self.store(value, kind, self.now(port, column, kind))
            if null is not None:
                self.store(null, "bool", self.null_now(port, column))
        if kept.known is not None:
            self.store(kept.known, "bool", BIT(1))

    def row(self, port: int) -> Value:
        builder = self.builder
        return _pointer_at(builder, self.frame, self.event.axes + port)

    def number(self, port: int) -> Value | None:
        """Which event is read of a source that may have several; None: the only one."""
        if not self.event.ports[port].counts:
            return None
        word = self.builder.load(_word(self.builder, self.frame, self.event.axes + port))
        return self.builder.sub(word, I64(1))

    def now(self, port: int, column: str, kind: Kind) -> Value:
        of = self.event.ports[port]
        if of.source is not None:
            name = of.source + column
            return event_column(self.run, self.event.whole, name, self.number(port))
        assert of.rows is not None
        number = of.rows.schema.names.index(column)
        bits = self.builder.load(_word(self.builder, self.row(port), 1 + number))
        return _from_bits(self.builder, kind, bits)

    def null_now(self, port: int, column: str) -> Value:
        of, builder = self.event.ports[port], self.builder
        if of.source is not None:
            name = of.source + column
            if name not in self.event.whole.schema.nullable:
                return BIT(0)
            return event_null(self.run, self.event.whole, name, self.number(port))
        assert of.rows is not None
        schema = of.rows.schema
        place = schema.null_bits.get(schema.names.index(column))
        if place is None:
            return BIT(0)
        word, bit = place
        nulls = builder.load(_word(builder, self.row(port), word))
        return builder.trunc(builder.lshr(nulls, I64(bit)), ir.IntType(1))


READERS[VertexEventType] = _VertexReader


def _from_bits(builder: Any, kind: Kind, bits: Value) -> Value:
    if kind == "float":
        return builder.bitcast(bits, F64)
    if kind == "bool":
        return builder.icmp_unsigned("!=", bits, I64(0))
    return bits


def _zero(kind: Kind) -> Value:
    if kind == "float":
        return F64(0.0)
    if kind == "bool":
        return BIT(0)
    return I64(EMPTY if kind == "str" else 0)


# ---- the timer of a vertex ----


class VertexTimerType(TimerType):
    """What ``on_timer`` of a vertex gets as its timer."""

    def __init__(self, planned: Planned, fired: Program) -> None:
        timers = planned.layout.timers
        assert timers is not None
        assert timers.container is not None
        super().__init__(fired.event, timers.container.key)
        self.salt = planned.salt
        types.Type.__init__(self, f"specstream.vertex_{self.name}({planned.salt})")


register_model(VertexTimerType)(models.OpaqueModel)


class _TimerReader:
    """Reads the timer of a vertex."""

    def __init__(self, context: Any, builder: Any, timer: VertexTimerType, value: Value) -> None:
        self.run, self.timer = Run(context, builder, value), timer

    def column(self, name: str) -> Value:
        return event_column(self.run, self.timer, name)

    def key(self) -> list[Value]:
        return order_key(self.run, self.timer)

    def seed(self) -> Value:
        """Of random numbers: those of two vertices are independent."""
        seed = self.run.load_member("seed", invariant=True)
        return self.run.builder.xor(seed, I64(self.timer.salt))


READERS[VertexTimerType] = _TimerReader


# ---- a phase ----


def phase_functions(plan: Plan) -> tuple[Callable[..., None], Callable[..., None] | None]:
    """Functions for Numba that run one phase: of an event, with the parameters (run, state, event,
    emit), and of a timer that fires, with (run, state, timer, emit), if a vertex has timers."""
    programs = [one.program for one in plan.vertices.values() if one.python is None]
    programs += [one.on_timer for one in programs if one.on_timer is not None]
    uses = collections.Counter(map(id, programs))
    processes: dict[int, Any] = {}
    for program in programs:
        inlines = {"forceinline": True} if uses[id(program)] <= MOST_INLINED else {}
        make = numba.njit(pipeline_class=OperatorCompiler, **inlines, **COMPILE_OPTIONS)
        if id(program) not in processes:
            processes[id(program)] = make(program.native)

    def code_of(
        typing_context: Any, planned: Planned, program: Program, run: Any, event: EventType
    ) -> _Code:
        process = processes.get(id(program), program)
        of_state = StateType if planned.moved is None else MovedStateType
        given = (
            run,
            of_state(planned.layout, run.variant, program),
            event,
            StreamEmitType(planned, plan.axes),
        )
        if planned.python is not None:
            return _Code(process, given)
        try:
            called = types.Dispatcher(process).get_call_type(typing_context, given, {})
            if called.return_type != types.none:
                raise refuse("the operator returns a value: emit(...) it instead")
        except NumbaError as error:
            told = translate(error, program)
            of = planned.vertex.operator.name, planned.name, plan.graph.name
            raise told.in_vertex(*of) from None
        return _Code(process, given)

    def compiled(typing_context: Any, planned: Planned, run: Any, event: EventType) -> _Compiled:
        of_vertex = VertexEventType(planned, plan, event, run.variant)
        code = code_of(typing_context, planned, planned.program, run, of_vertex)
        return _Compiled(code.process, code.given, planned)

    @intrinsic
    def run_phase(typing_context: Any, run: Any, state: Any, event: Any, emit: Any) -> Any:
        vertices = [compiled(typing_context, one, run, event) for one in plan.vertices.values()]

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            _Phase(context, builder, plan, vertices, args[0], event, emit).write()
            return context.get_dummy_value()

        return types.void(run, state, event, emit), code

    def phase(run: Any, state: Any, event: Any, emit: Any) -> None:
        run_phase(run, state, event, emit)

    timed, behind = plan.timed, plan.behind_timers
    if not timed:
        return phase, None

    @intrinsic
    def run_timer(typing_context: Any, run: Any, state: Any, timer: Any, emit: Any) -> Any:
        event, vertices = EventType(plan.event), []
        for name, planned in plan.vertices.items():
            if name not in behind and name not in timed:
                continue
            one = compiled(typing_context, planned, run, event)
            fired = planned.program.on_timer
            if fired is not None:
                of_timer = VertexTimerType(planned, fired)
                on_timer = code_of(typing_context, planned, fired, run, of_timer)
                one = replace(one, on_timer=on_timer, place=timed.index(name))
            vertices.append(one)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            _TimerPhase(context, builder, plan, vertices, args[0], event, emit).write()
            return context.get_dummy_value()

        return types.void(run, state, timer, emit), code

    def timer_phase(run: Any, state: Any, timer: Any, emit: Any) -> None:
        run_timer(run, state, timer, emit)

    return phase, timer_phase


@dataclass(frozen=True)
class _Sent:
    """What a source sends in a phase.

    Attributes:
        count: how many events; None: always one.
        first: number of the first of them; None: there is at most one, with no number.
    """

    count: Value | None
    first: Value | None = None


@dataclass(frozen=True)
class _Code:
    """Machine code of an operator, or the program of one that Python runs, and the types of what
    that is given."""

    process: Any
    given: tuple[Any, Any, Any, StreamEmitType]


@dataclass(frozen=True)
class _Compiled(_Code):
    """A vertex with its code; ``given[2]`` is a :class:`VertexEventType`.

    Attributes:
        on_timer: where timers fire: what a timer of its own runs; None: it has none.
        place: then, of its timers among those of all.
    """

    planned: Planned
    on_timer: _Code | None = None
    place: int = 0


@dataclass(frozen=True)
class _Vertex:
    """A vertex where its instructions are written: what is known now, or when they run.

    Attributes:
        compiled: the vertex, or one of several that share the instructions.
        stream: its frame.
        streams: that of each input; None: it reads a source.
        counts: how many rows each input has in this phase; None: always one.
        firsts: the number of the first, of a source that may have several.
        kept: the first word of what is kept of its inputs.
        salt: of its random numbers.
        moved: how far its fields and containers are moved.
    """

    compiled: _Compiled
    stream: Value
    streams: list[Value | None]
    counts: list[Value | None]
    firsts: list[Value | None]
    kept: Value
    salt: Value
    moved: dict[str, Value]


class _Phase:
    """Writes the function."""

    in_timer = False

    def __init__(
        self,
        context: Any,
        builder: Any,
        plan: Plan,
        vertices: Sequence[_Compiled],
        pointer: Value,
        event: EventType,
        emit: EmitType,
    ) -> None:
        self.context, self.builder, self.plan, self.vertices = context, builder, plan, vertices
        self.run, self.event, self.emit = Run(context, builder, pointer), event, emit

    def write(self) -> None:
        sources = self.sources()
        self.all_vertices(sources)
        for name, sent in sources.items():
            for sink in self.plan.graph.sinks_of(name):
                self.sink_of_source(sink, sent)

    def all_vertices(self, sources: dict[str, _Sent]) -> None:
        if len(self.vertices) <= _MOST_IN_LINE:
            self.in_line(sources)
        else:
            _Waiting(self, sources).write()

    def wake_first(self, waiting: _Waiting) -> None:
        """Runs those in front, and sets the bits of those behind that have a row."""
        front = self.vertices[: waiting.in_front]
        streams = {one.planned.name: waiting.stream(one.planned.name) for one in front}
        for compiled in front:
            self.in_place(compiled, waiting.sources, streams)
        names = [*waiting.sources, *streams]
        for name in names:
            with self.where_some(self.count(waiting.sources, streams, name)):
                for number in waiting.readers_of(name):
                    if number >= waiting.in_front:
                        waiting.wake(I64(number))

    def in_front(self, sources: dict[str, _Sent]) -> int:
        """How many vertices read sources alone; these have the lowest numbers. 0 if not few."""
        count = sum(all(of.stream in sources for of in one.planned.inputs) for one in self.vertices)
        return count if count <= _MOST_IN_FRONT else 0

    def in_line(self, sources: dict[str, _Sent]) -> None:
        """One vertex after the other, as far as there are rows."""
        streams: dict[str, Value] = {}
        gates: list[str] = []
        with ExitStack() as silence:
            for at, compiled in enumerate(self.vertices):
                rest, before = self.vertices[at:], gates
                gates = self.gates(rest)
                if gates != before and _GATES_PAY * len(gates) <= len(rest):
                    counts = [self.count(sources, streams, name) for name in gates]
                    silence.enter_context(self.where_some(self.any_of(counts)))
                self.in_place(compiled, sources, streams)

    def gates(self, rest: Sequence[_Compiled]) -> list[str]:
        """The streams from which alone something can come to these vertices, the first of which is
        the next in line. Without a row in them the phase is over."""
        own = {one.planned.name for one in rest}
        read = dict.fromkeys(of.stream for one in rest for of in one.planned.inputs)
        return [name for name in read if name not in own]

    def in_place(
        self, compiled: _Compiled, sources: dict[str, _Sent], streams: dict[str, Value]
    ) -> None:
        """A vertex that is looked at in every phase; its stream becomes one of the streams."""
        planned = compiled.planned
        if planned.name not in streams:
            streams[planned.name] = self.frame(compiled.given[3].rows.frame_words)
        vertex = _Vertex(
            compiled,
            streams[planned.name],
            [streams.get(one.stream) for one in planned.inputs],
            [self.count(sources, streams, one.stream) for one in planned.inputs],
            [self.first_of(sources, one.stream) for one in planned.inputs],
            I64(_first_kept(planned, self.plan)),
            I64(planned.salt),
            {what: I64(words) for what, words in (planned.moved or {}).items()},
        )
        self.vertex(vertex)

    def count(
        self, sources: dict[str, _Sent], streams: dict[str, Value], name: str
    ) -> Value | None:
        """How many rows a stream has; None: always one."""
        return self.builder.load(streams[name]) if name in streams else sources[name].count

    def any_of(self, counts: Sequence[Value | None]) -> Value | None:
        """Not 0 if one of these is not; None: one never is."""
        if None in counts:
            return None
        return functools.reduce(self.builder.or_, counts)

    def frame(self, words: int) -> Value:
        """Memory of the function, as it happens to be."""
        with self.builder.goto_entry_block():
            made = self.builder.alloca(ir.ArrayType(I64, max(words, 1)))
        return self.builder.bitcast(made, _WORDS)

    @contextmanager
    def where(self, condition: Value | None) -> Iterator[None]:
        """Instructions for where a condition holds; None: it always does."""
        if condition is None:
            yield
        else:
            with self.builder.if_then(condition):
                yield

    def where_some(self, count: Value | None) -> Any:
        """The same for where there are some; None: always one."""
        if count is None:
            return self.where(None)
        return self.where(self.builder.icmp_unsigned("!=", count, I64(0)))

    def first_of(self, sources: dict[str, _Sent], stream: str) -> Value | None:
        return sources[stream].first if stream in sources else None

    def sources(self) -> dict[str, _Sent]:
        """What each source sends in this phase."""
        names, builder = list(self.plan.graph.sources), self.builder
        if self.plan.graph.by_time:
            return {
                name: _Sent(phase_column(self.run, at + 1), phase_column(self.run, at))
                for name, at in zip(names, itertools.count(len(RESERVED_COLUMNS), 2), strict=False)
            }
        if len(names) == 1:
            return {names[0]: _Sent(None)}
        given = event_column(self.run, self.event, SOURCE)
        found = {name: builder.icmp_unsigned("==", given, I64(string_code(name))) for name in names}
        known = BIT(0)
        for one in found.values():
            known = builder.or_(known, one)
        self.run.fault_if(builder.not_(known), ValueError)
        return {name: _Sent(builder.zext(one, I64)) for name, one in found.items()}

    # -- a vertex --

    def vertex(self, vertex: _Vertex) -> None:
        """What a vertex does in a phase, and the sinks of its rows."""
        builder, axes = self.builder, self.plan.axes
        ports, rows = vertex.compiled.given[2].ports, vertex.compiled.given[3].rows
        builder.store(I64(0), vertex.stream)
        if rows.many:
            builder.store(I64(0), _word(builder, vertex.stream, 1))
        self.runs(vertex, self.frame(axes + len(ports)))
        for sink in self.plan.graph.sinks_of(vertex.compiled.planned.name):
            self.sink(sink, rows, vertex.stream)

    def runs(self, vertex: _Vertex, frame: Value) -> None:
        """All of its runs."""
        ports = vertex.compiled.given[2].ports
        if any(port.many for port in ports):
            self.runs_by_path(vertex, frame)
        else:
            self.begin_path(frame)
            self.run_if_there(vertex, frame)

    def begin_path(self, frame: Value) -> None:
        """The path of a row that is no row of another one."""
        for axis in range(self.plan.axes):
            self.builder.store(I64(0), _word(self.builder, frame, axis))

    def run_if_there(self, vertex: _Vertex, frame: Value) -> None:
        """Once, if at least one input has its one row."""
        builder, axes = self.builder, self.plan.axes
        some: Value | None = BIT(0)
        for number, port in enumerate(vertex.compiled.given[2].ports):
            count, stream = vertex.counts[number], vertex.streams[number]
            address = I64(1)
            if port.rows is not None and stream is not None:
                address = builder.ptrtoint(port.rows.row(builder, stream, I64(0)), I64)
            if count is None:
                some = None
            else:
                is_there = builder.icmp_unsigned("!=", count, I64(0))
                address = builder.select(is_there, address, I64(0))
                some = None if some is None else builder.or_(some, is_there)
            builder.store(address, _word(builder, frame, axes + number))
        with self.where(some):
            self.run_once(vertex, frame)

    def runs_by_path(self, vertex: _Vertex, frame: Value) -> None:
        """Once for each path among the inputs, in lexicographic order: a merge."""
        builder, axes = self.builder, self.plan.axes
        ports = vertex.compiled.given[2].ports
        cursors = self.frame(len(ports))
        for number in range(len(ports)):
            builder.store(I64(0), _word(builder, cursors, number))
        counts = [I64(1) if count is None else count for count in vertex.counts]
        loop, body, after = (builder.append_basic_block(one) for one in ("paths", "path", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        left: list[Value] = []
        paths: list[list[Value]] = []
        for number, port in enumerate(ports):
            cursor = builder.load(_word(builder, cursors, number))
            left.append(builder.icmp_unsigned("<", cursor, counts[number]))
            stream = vertex.streams[number]
            if port.rows is not None and port.rows.many and stream is not None:
                paths.append(self.path_at(port.rows, stream, cursor, left[-1]))
            elif port.counts:
                paths.append([cursor] + [I64(0)] * (axes - 1))  # level 0 comes first
            else:
                paths.append([I64(0)] * axes)
        least = [I64(-1)] * axes  # above all others
        some = BIT(0)
        for is_left, path in zip(left, paths, strict=True):
            is_less = builder.and_(is_left, self.is_below(path, least))
            least = [builder.select(is_less, *pair) for pair in zip(path, least, strict=True)]
            some = builder.or_(some, is_left)
        builder.cbranch(some, body, after)
        builder.position_at_end(body)
        for axis, part in enumerate(least):
            builder.store(part, _word(builder, frame, axis))
        for number, port in enumerate(ports):
            takes = left[number]
            for part, of_least in zip(paths[number], least, strict=True):
                takes = builder.and_(takes, builder.icmp_unsigned("==", part, of_least))
            at = _word(builder, cursors, number)
            cursor = builder.load(at)
            builder.store(builder.add(cursor, builder.zext(takes, I64)), at)
            address, stream, first = I64(1), vertex.streams[number], vertex.firsts[number]
            if first is not None:
                address = builder.add(builder.add(first, cursor), I64(1))
            if port.rows is not None and stream is not None:
                row = port.rows.row(builder, stream, cursor)
                address = builder.ptrtoint(port.rows.content(builder, row), I64)
            taken = builder.select(takes, address, I64(0))
            builder.store(taken, _word(builder, frame, axes + number))
        self.run_once(vertex, frame)
        self.run.poll()
        builder.branch(loop)
        builder.position_at_end(after)

    def path_at(self, rows: _Rows, stream: Value, cursor: Value, is_left: Value) -> list[Value]:
        """The path of a row, where there is one."""
        builder = self.builder
        before = builder.block
        with builder.if_then(is_left):
            row = rows.row(builder, stream, cursor)
            found = [builder.load(_word(builder, row, axis)) for axis in range(rows.axes)]
            inside = builder.block
        path = []
        for part in found:
            phi = builder.phi(I64)
            phi.add_incoming(I64(0), before)
            phi.add_incoming(part, inside)
            path.append(phi)
        return path

    def is_below(self, path: list[Value], other: list[Value]) -> Value:
        builder = self.builder
        below, same = BIT(0), BIT(1)
        for one, another in zip(path, other, strict=True):
            less = builder.icmp_unsigned("<", one, another)
            below = builder.or_(below, builder.and_(same, less))
            same = builder.and_(same, builder.icmp_unsigned("==", one, another))
        return below

    def run_once(self, vertex: _Vertex, frame: Value) -> None:
        """One run of a vertex; before it, what it reads of its inputs becomes their last values."""
        builder, context = self.builder, self.context
        event = vertex.compiled.given[2]
        pointer = self.run.pointer
        of_event = cgutils.create_struct_proxy(event)(context, builder)
        of_event.run, of_event.frame = pointer, builder.bitcast(frame, POINTER)
        of_event.kept, of_event.salt = vertex.kept, vertex.salt
        reader = _VertexReader(context, builder, event, of_event._getvalue())
        for port, kept in enumerate(event.kept):
            if kept.last or kept.known is not None:
                with builder.if_then(reader.changed(port)):
                    reader.keep(port)
        self.call(vertex.compiled, vertex, frame, of_event._getvalue())

    def call(self, code: _Code, vertex: _Vertex, frame: Value, event: Value) -> None:
        """Calls code of a vertex for the path that stands in a frame."""
        builder, context, emit = self.builder, self.context, code.given[3]
        if emit.rows.many:
            builder.store(I64(0), _word(builder, vertex.stream, 3))
        pointer = self.run.pointer
        of_emit = cgutils.create_struct_proxy(emit)(context, builder)
        of_emit.run, of_emit.frame = pointer, builder.bitcast(frame, POINTER)
        of_emit.stream = builder.bitcast(vertex.stream, POINTER)
        if vertex.compiled.planned.python is not None:
            self.call_python(code, vertex.compiled.planned.python, frame, event)
            self.take_rows(_StreamRow(context, builder, emit, of_emit._getvalue()))
            return
        overload = code.process.overloads[code.given]
        context.add_linking_libs((overload.library,))
        function = context.declare_function(builder.module, overload.fndesc)
        arguments = [pointer, self.state(vertex), event, of_emit._getvalue()]
        status, _ = context.call_conv.call_function(
            builder, function, overload.signature.return_type, code.given, arguments
        )
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_status_propagate(builder, status)

    def call_python(
        self, code: _Code, python: InterpretedVertex, frame: Value, event: Value
    ) -> None:
        """Hands over what a vertex reads, and has Python run it."""
        builder, of_event = self.builder, code.given[2]
        fires = isinstance(of_event, VertexTimerType)
        reader = READERS[type(of_event)](self.context, builder, of_event, event)
        words = self.frame(len(python.given))

        def put(name: str, bits: Value) -> None:
            builder.store(bits, _word(builder, words, python.given[name]))

        for name, bits in zip(KEY, (*reader.key(), reader.seed()), strict=True):
            put(name, bits)
        for axis in range(self.plan.axes):
            put(f"path.{axis}", builder.load(_word(builder, frame, axis)))
        for port, one in enumerate(() if fires else python.inputs):
            changed = reader.changed(port)
            put(f"changed.{one.name}", builder.zext(changed, I64))
            with builder.if_then(changed):
                for name, column in one.columns:
                    value = reader.now(port, name, column.kind)
                    put(f"{one.name}.{name}", self.run.to_bits(column.kind, value))
                    if column.nullable:
                        null = reader.null_now(port, name)
                        put(f"null {one.name}.{name}", builder.zext(null, I64))
        call = I64(lib.SS_VERTEX_TIMER if fires else lib.SS_VERTEX_ROW)
        number = I64(self.plan.in_python.index(python))
        given = (call, number, I64(int(self.in_timer)), words)
        ends = self.run.call("ss_vertex_interpret", I32, self.run.pointer, *given)
        self.run.leave_if(builder.icmp_unsigned("!=", ends, I32(0)))

    def take_rows(self, writer: _StreamRow) -> None:
        """The rows that Python has sent become those of the stream."""
        builder, width = self.builder, writer.emit.rows.schema.row_words - 1
        sent = self.run.load_member("sent", POINTER)
        sent = builder.bitcast(sent, _WORDS)
        with cgutils.for_range(builder, self.run.load_member("sent_rows")) as loop:
            row = _word(builder, writer.begin(), 1)
            of_python = builder.gep(sent, [builder.mul(loop.index, I64(width))])
            cgutils.raw_memcpy(builder, row, of_python, I64(width), 8)

    def state(self, vertex: _Vertex) -> Value:
        """The state of a vertex."""
        planned = vertex.compiled.planned
        if planned.moved is None:
            return self.run.pointer
        if planned.layout.containers:
            words = self.builder.bitcast(self.run.load_member("scratch", POINTER), _WORDS)
            for at, base in enumerate(BASES):
                self.builder.store(vertex.moved[base], _word(self.builder, words, at))
        of = cgutils.create_struct_proxy(vertex.compiled.given[1])(self.context, self.builder)
        of.run = self.run.pointer
        of.state, of.scratch = vertex.moved["state"], vertex.moved["scratch"]
        return of._getvalue()

    # -- sinks --

    def sink(self, sink: Sink, rows: _Rows, stream: Value) -> None:
        builder = self.builder
        count = builder.load(stream)
        if not rows.many:
            with builder.if_then(builder.icmp_unsigned("!=", count, I64(0))):
                self.copy(sink, rows.schema, rows.row(builder, stream, I64(0)))
            return
        with cgutils.for_range(builder, count) as loop:
            row = rows.row(builder, stream, loop.index)
            self.copy(sink, rows.schema, rows.content(builder, row))

    def copy(self, sink: Sink, schema: Schema, row: Value) -> None:
        """A row of a stream to the output."""
        builder = self.builder

        def word(at: int) -> Value:
            return builder.load(_word(builder, row, at))

        values = [word(1 + number) for number in range(len(schema))]
        nulls = {}
        for number, (at, bit) in schema.null_bits.items():
            nulls[number] = builder.and_(builder.lshr(word(at), I64(bit)), I64(1))
        forms = {}
        ends = [*schema.form_words.values(), schema.row_words][1:]
        for (number, at), end in zip(schema.form_words.items(), ends, strict=True):
            head = word(at)
            shifted = builder.add(head, I64(self.plan.first_form(sink)))
            none = builder.icmp_unsigned("==", head, I64(0))
            forms[number] = [builder.select(none, head, shifted)]
            forms[number] += [word(one) for one in range(at + 1, end)]
        self.put(sink, values, nulls, forms)

    def sink_of_source(self, sink: Sink, sent: _Sent) -> None:
        """The events of a source to the output, as they came."""
        if sent.first is None:
            with self.where_some(sent.count):
                self.put_event(sink, None)
            return
        with cgutils.for_range(self.builder, sent.count) as loop:
            self.put_event(sink, self.builder.add(sent.first, loop.index))

    def put_event(self, sink: Sink, row: Value | None) -> None:
        values, nulls = [], {}
        for number, (name, column) in enumerate(sink.columns):
            whole = self.plan.column_of_event(sink.stream, name)
            value = event_column(self.run, self.event, whole, row)
            values.append(self.run.to_bits(column.kind, value))
            if column.nullable:
                null = event_null(self.run, self.event, whole, row)
                nulls[number] = self.builder.zext(null, I64)
        self.put(sink, values, nulls, {})

    def put(
        self,
        sink: Sink,
        values: list[Value],
        nulls: dict[int, Value],
        forms: dict[int, list[Value]],
    ) -> None:
        builder, schema = self.builder, self.plan.emits
        writer = OutputRow(self.context, builder, self.emit, self.run.pointer)
        row = writer.begin()
        first = self.plan.first_column(sink)
        own = range(first, first + len(values))
        marks = {at: I64(0) for at, _ in schema.null_bits.values()}
        for number, column in enumerate(schema.columns):
            value, null = I64(0), I64(1)
            if schema.names[number] == SINK and len(self.plan.graph.sinks) > 1:
                value = I64(string_code(sink.name))
            elif number in own:
                value, null = values[number - first], nulls.get(number - first, I64(0))
            builder.store(value, _word(builder, row, 1 + number))
            if column.nullable:
                at, bit = schema.null_bits[number]
                marks[at] = builder.or_(marks[at], builder.shl(null, I64(bit)))
        for at, mark in marks.items():
            builder.store(mark, _word(builder, row, at))
        ends = [*schema.form_words.values(), schema.row_words][1:]
        for (number, at), end in zip(schema.form_words.items(), ends, strict=True):
            stored = forms.get(number - first, []) if number in own else []
            stored += [I64(0)] * (end - at - len(stored))
            for offset, word in enumerate(stored):
                builder.store(word, _word(builder, row, at + offset))
        writer.end()


class _TimerPhase(_Phase):
    """Writes the function for a timer that fires: its vertex runs ``on_timer``, and then those that
    are behind it. No source has a row, nor has any vertex that is behind none with timers."""

    in_timer = True

    def write(self) -> None:
        self.fires = timer_place(self.run)
        names = {one.planned.name for one in self.vertices}
        self.all_vertices({name: _Sent(I64(0)) for name in self.plan.order if name not in names})

    # A timer may be that of any vertex.

    def gates(self, rest: Sequence[_Compiled]) -> list[str]:
        return []

    def in_front(self, sources: dict[str, _Sent]) -> int:
        return 0

    def wake_first(self, waiting: _Waiting) -> None:
        """Sets the bit of the vertex whose timer fires."""
        builder = self.builder
        numbers = waiting.constant("timed", [waiting.numbers[name] for name in self.plan.timed])
        waiting.wake(builder.load(builder.gep(numbers, [self.fires], inbounds=True)))

    def runs(self, vertex: _Vertex, frame: Value) -> None:
        on_timer = vertex.compiled.on_timer
        if on_timer is None:
            super().runs(vertex, frame)
            return
        place = I64(vertex.compiled.place)
        is_its = self.builder.icmp_unsigned("==", self.fires, place)
        with self.builder.if_else(is_its) as (fires, has_rows):
            with fires:
                self.begin_path(frame)
                self.call(on_timer, vertex, frame, self.run.pointer)
            with has_rows:
                super().runs(vertex, frame)


# ---- many vertices, of which few have a message ----


class _Waiting:
    """Runs those vertices of a phase that have a message: a bit each, the lowest first; a few that
    read sources stand in front, without one.

    Who sends to others sets their bits, which are higher ones, so that a vertex that has no message
    costs nothing. What sets vertices apart that share their instructions is in a table.
    """

    # Words of a vertex in the table: where its frame begins, what is kept, salt, readers, moved.
    _MOVED = ("state", "scratch", *BASES)
    _OWN = 5 + len(_MOVED)
    _INPUT = 2  # where the frame of the stream begins, and the number of its vertex

    def __init__(self, phase: _Phase, sources: dict[str, _Sent]) -> None:
        self.phase, self.sources, self.plan = phase, sources, phase.plan
        self.builder, self.vertices = phase.builder, phase.vertices
        self.numbers = {one.planned.name: at for at, one in enumerate(self.vertices)}
        self.begins: dict[str, int] = {}
        words = 0
        for one in self.vertices:
            self.begins[one.planned.name] = words
            words += one.given[3].rows.frame_words
        self.memory, self.in_front = phase.frame(words), phase.in_front(sources)
        words = -(-len(self.vertices) // _BITS)
        self.waiting, self.ran = phase.frame(words), phase.frame(words)
        # A bit for each of these words: whether there is a bit in it, and whether it is in use.
        self.active, self.used = phase.frame(1), phase.frame(1)
        most = max(len(one.planned.inputs) for one in self.vertices)
        self.width = self._OWN + self._INPUT * most
        self.readers: list[int] = []
        rows = [self._row(one) for one in self.vertices]
        self.table = self.constant("vertices", [word for row in rows for word in row])
        self.of_readers = self.constant("readers", self.readers or [0])

    def stream(self, name: str) -> Value:
        """The frame of a vertex's stream."""
        return self.builder.gep(self.memory, [I64(self.begins[name])], inbounds=True)

    def constant(self, name: str, words: list[int]) -> Value:
        made = ir.Constant(ir.ArrayType(I64, len(words)), words)
        whole = cgutils.global_constant(self.builder, f"specstream.{name}", made)
        return self.builder.bitcast(whole, _WORDS)

    def _row(self, compiled: _Compiled) -> list[int]:
        planned = compiled.planned
        moved = planned.moved or dict.fromkeys(self._MOVED, 0)
        readers = self.readers_of(planned.name)
        row = [self.begins[planned.name], _first_kept(planned, self.plan), planned.salt]
        row += [len(self.readers), len(readers), *(moved[one] for one in self._MOVED)]
        self.readers += readers
        for one in planned.inputs:
            is_vertex = one.stream in self.begins
            row += [self.begins[one.stream], self.numbers[one.stream]] if is_vertex else [0, 0]
        return row + [0] * (self.width - len(row))

    def readers_of(self, stream: str) -> list[int]:
        """The numbers of the vertices that read a stream."""
        names = dict.fromkeys(one.name for one, _ in self.plan.graph.readers(stream))
        return [self.numbers[name] for name in names]

    def write(self) -> None:
        builder, phase = self.builder, self.phase
        builder.store(I64(0), self.active)
        builder.store(I64(0), self.used)
        phase.wake_first(self)
        search, found, after = map(builder.append_basic_block, ("search", "found", "done"))
        builder.branch(search)
        builder.position_at_end(search)
        active = builder.load(self.active)
        builder.cbranch(builder.icmp_unsigned("!=", active, I64(0)), found, after)
        builder.position_at_end(found)
        word = builder.cttz(active, BIT(1))
        place = builder.gep(self.waiting, [word], inbounds=True)
        bits = builder.load(place)
        left = self._without_lowest(bits)
        builder.store(left, place)
        is_last = builder.icmp_unsigned("==", left, I64(0))
        builder.store(builder.select(is_last, self._without_lowest(active), active), self.active)
        lowest = builder.cttz(bits, BIT(1))
        number = builder.add(builder.mul(word, I64(_BITS)), lowest)
        place = builder.gep(self.ran, [word], inbounds=True)
        builder.store(builder.or_(builder.load(place), builder.shl(I64(1), lowest)), place)
        row = builder.gep(self.table, [builder.mul(number, I64(self.width))], inbounds=True)
        choose = builder.switch(number, after)
        for alike in self._kinds():
            block = builder.append_basic_block("vertices")
            for one in alike:
                choose.add_case(I64(self.numbers[one.planned.name]), block)
            builder.position_at_end(block)
            vertex = self._vertex(alike[0], row)
            phase.vertex(vertex)
            count = builder.load(vertex.stream)
            with builder.if_then(builder.icmp_unsigned("!=", count, I64(0))):
                self.wake_readers(row)
            builder.branch(search)
        builder.position_at_end(after)

    def _kinds(self) -> list[list[_Compiled]]:
        """The vertices, by what instructions they have."""
        kinds: dict[Any, list[_Compiled]] = {}
        for one in self.vertices[self.in_front :]:
            sources = tuple(of.stream for of in one.planned.inputs if of.stream in self.sources)
            sinks = tuple(of.name for of in self.plan.graph.sinks_of(one.planned.name))
            kinds.setdefault((id(one.process), one.given, sources, sinks), []).append(one)
        return list(kinds.values())

    def _vertex(self, compiled: _Compiled, row: Value) -> _Vertex:
        builder, planned = self.builder, compiled.planned

        def word(at: int) -> Value:
            return builder.load(_word(builder, row, at))

        def frame(at: int) -> Value:
            return builder.gep(self.memory, [word(at)], inbounds=True)

        streams: list[Value | None] = []
        counts: list[Value | None] = []
        for number, one in enumerate(planned.inputs):
            at = self._OWN + self._INPUT * number
            if one.stream in self.sources:
                streams.append(None)
                counts.append(self.sources[one.stream].count)
                continue
            streams.append(frame(at))
            count = builder.load(streams[-1])
            counts.append(builder.select(self.has_run(word(at + 1)), count, I64(0)))
        firsts = [self.phase.first_of(self.sources, one.stream) for one in planned.inputs]
        moved = {one: word(5 + at) for at, one in enumerate(self._MOVED)}
        return _Vertex(compiled, frame(0), streams, counts, firsts, word(1), word(2), moved)

    def wake_readers(self, row: Value) -> None:
        """Sets the bits of those that read a vertex."""
        builder = self.builder
        first, count = (builder.load(_word(builder, row, at)) for at in (3, 4))
        with cgutils.for_range(builder, count) as loop:
            at = builder.add(first, loop.index)
            self.wake(builder.load(builder.gep(self.of_readers, [at], inbounds=True)))

    def wake(self, number: Value) -> None:
        """Sets a vertex's bit."""
        builder = self.builder
        word, mark, of_word = self._bit_of(number)
        used = builder.load(self.used)
        waiting = builder.gep(self.waiting, [word], inbounds=True)
        is_new = builder.icmp_unsigned("==", builder.and_(used, of_word), I64(0))
        with builder.if_then(is_new):
            builder.store(I64(0), waiting)
            builder.store(I64(0), builder.gep(self.ran, [word], inbounds=True))
            builder.store(builder.or_(used, of_word), self.used)
        builder.store(builder.or_(builder.load(waiting), mark), waiting)
        builder.store(builder.or_(builder.load(self.active), of_word), self.active)

    def has_run(self, number: Value) -> Value:
        """Whether a vertex has run in this phase."""
        builder = self.builder
        word, mark, of_word = self._bit_of(number)
        ran = builder.load(builder.gep(self.ran, [word], inbounds=True))
        is_used = builder.icmp_unsigned(
            "!=", builder.and_(builder.load(self.used), of_word), I64(0)
        )
        is_marked = builder.icmp_unsigned("!=", builder.and_(ran, mark), I64(0))
        is_in_front = builder.icmp_unsigned("<", number, I64(self.in_front))
        return builder.select(is_used, builder.or_(is_marked, is_in_front), is_in_front)

    def _bit_of(self, number: Value) -> tuple[Value, Value, Value]:
        """The word of a vertex's bit, the bit, and the bit of the word."""
        builder = self.builder
        word = builder.lshr(number, I64(_BITS.bit_length() - 1))
        within = builder.and_(number, I64(_BITS - 1))
        return word, builder.shl(I64(1), within), builder.shl(I64(1), word)

    def _without_lowest(self, bits: Value) -> Value:
        return self.builder.and_(bits, self.builder.sub(bits, I64(1)))
