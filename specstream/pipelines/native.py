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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from specstream.columns.strings import string_code
from specstream.compiler.array_expressions import new_list
from specstream.compiler.emit import WRITERS, OutputRow
from specstream.compiler.event import READERS, event_column, event_null
from specstream.compiler.inputs import ASKED
from specstream.compiler.instructions import BIT, F64, I64, POINTER, Value
from specstream.compiler.local_types import kinds_of
from specstream.compiler.memory import Run
from specstream.compiler.pipeline import COMPILE_OPTIONS, OperatorCompiler
from specstream.compiler.types import EmitType, EventType, MovedStateType, StateType, Variant
from specstream.declarations.codes import EMPTY
from specstream.declarations.derived import numbers_of
from specstream.declarations.element_types import storage_of
from specstream.declarations.schema import Kind, Schema
from specstream.declarations.state import Field
from specstream.pipelines.graph import Sink
from specstream.pipelines.plan import SINK, SOURCE, Plan, Planned

__all__ = ["phase_function"]

_WORDS = I64.as_pointer()
_TYPES: dict[Kind, type] = {"int": int, "float": float, "bool": bool, "str": str}
_FIRST_ROWS = 8
# In so many places the code of an operator becomes part of the function that runs a phase.
_MOST_INLINED = 4
# So many vertices are looked at one after the other; among more, those that have a message are
# found by their bits.
_MOST_IN_LINE = 64
_BITS = 64


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
    """

    prefix: str
    source: str | None
    rows: _Rows | None


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
            yield _Port(prefix, plan.column_of_event(one.stream, ""), None)
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
    row that is read, of a source 1; 0: none.
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
        if name in ("timestamp", "source", "sequence") or numbers_of(name) is not None:
            return event_column(self.run, event.whole, name)
        of, _, asked = name.partition(".")
        if of in ASKED and asked:
            port, _ = event.port(f"{asked}.")
            return self.known(port) if of == "known" else self.changed(port)
        kind = event.schema.kind(name)
        assert kind is not None
        port, column = event.port(name)
        value, _ = self.places(port, column)
        return self.now_or_last(
            port, lambda: self.now(port, column, kind), value, kind, _zero(kind)
        )

    def null(self, name: str) -> Value:
        port, column = self.event.port(name)
        _, null = self.places(port, column)
        return self.now_or_last(port, lambda: self.null_now(port, column), null, "bool", BIT(1))

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
        storage = storage_of(_TYPES[kind], "a last value")
        return self.run.load("state", self.event.variant, storage, self.word(at))

    def store(self, at: int, kind: Kind, value: Value) -> None:
        storage = storage_of(_TYPES[kind], "a last value")
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

    def now(self, port: int, column: str, kind: Kind) -> Value:
        of = self.event.ports[port]
        if of.source is not None:
            return event_column(self.run, self.event.whole, of.source + column)
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
            return event_null(self.run, self.event.whole, name)
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


# ---- a phase ----


def phase_function(plan: Plan) -> Callable[..., None]:
    """A function for Numba that runs one phase; parameters (run, state, event, emit)."""
    uses = collections.Counter(id(one.program) for one in plan.vertices.values())
    processes: dict[int, Any] = {}
    for planned in plan.vertices.values():
        key = id(planned.program)
        inlines = {"forceinline": True} if uses[key] <= _MOST_INLINED else {}
        make = numba.njit(pipeline_class=OperatorCompiler, **inlines, **COMPILE_OPTIONS)
        if key not in processes:
            processes[key] = make(planned.program.native)

    @intrinsic
    def run_phase(typing_context: Any, run: Any, state: Any, event: Any, emit: Any) -> Any:
        vertices = []
        for planned in plan.vertices.values():
            process = processes[id(planned.program)]
            of_state = StateType if planned.moved is None else MovedStateType
            given = (
                run,
                of_state(planned.layout, run.variant, planned.program),
                VertexEventType(planned, plan, event, run.variant),
                StreamEmitType(planned, plan.axes),
            )
            types.Dispatcher(process).get_call_type(typing_context, given, {})
            vertices.append(_Compiled(planned, process, given))

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            _Phase(context, builder, plan, vertices, args[0], event, emit).write()
            return context.get_dummy_value()

        return types.void(run, state, event, emit), code

    def phase(run: Any, state: Any, event: Any, emit: Any) -> None:
        run_phase(run, state, event, emit)

    return phase


@dataclass(frozen=True)
class _Compiled:
    """A vertex with the machine code of its operator, and the types of what that is given."""

    planned: Planned
    process: Any
    given: tuple[Any, Any, VertexEventType, StreamEmitType]


class _Phase:
    """Writes the function."""

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
        self.streams: dict[str, Value] = {}
        self.ran: Value | None = None

    def write(self) -> None:
        sources = self.sources()
        for compiled in self.vertices:
            words = compiled.given[3].rows.frame_words
            self.streams[compiled.planned.name] = self.frame(words)
        if len(self.vertices) <= _MOST_IN_LINE:
            for compiled in self.vertices:
                self.one_phase_of(compiled, sources)
        else:
            self.those_that_wait(sources)
        for name, is_there in sources.items():
            for sink in self.plan.graph.sinks_of(name):
                with self.where(is_there):
                    self.sink_of_source(sink)

    def one_phase_of(self, compiled: _Compiled, sources: dict[str, Value | None]) -> None:
        """A vertex, and the sinks of its rows."""
        name, rows = compiled.planned.name, compiled.given[3].rows
        stream = self.streams[name]
        self.builder.store(I64(0), stream)
        if rows.many:
            self.builder.store(I64(0), _word(self.builder, stream, 1))
        self.vertex(compiled, sources)
        for sink in self.plan.graph.sinks_of(name):
            self.sink(sink, rows, stream)

    def frame(self, words: int) -> Value:
        """Memory of the function, as it happens to be."""
        with self.builder.goto_entry_block():
            made = self.builder.alloca(ir.ArrayType(I64, max(words, 1)))
        return self.builder.bitcast(made, _WORDS)

    # -- many vertices, of which few have a message --

    def those_that_wait(self, sources: dict[str, Value | None]) -> None:
        """One after the other the vertices that have a message: a bit each, the lowest first. Who
        sends to others sets their bits, which are higher ones. A vertex that has none costs
        nothing."""
        builder, vertices = self.builder, self.vertices
        numbers = {one.planned.name: number for number, one in enumerate(vertices)}
        words = -(-len(vertices) // _BITS)
        self.waiting, self.ran = self.frame(words), self.frame(words)
        self.numbers = numbers
        for bits in (self.waiting, self.ran):
            for at in range(words):
                builder.store(I64(0), _word(builder, bits, at))
        for name, is_there in sources.items():
            with self.where(is_there):
                self.wake(name)
        at = self.frame(1)
        builder.store(I64(0), at)
        of_word, search, after = (
            builder.append_basic_block(one) for one in ("word", "vertex", "done")
        )
        next_word = builder.append_basic_block("next")
        builder.branch(of_word)
        builder.position_at_end(of_word)
        number = builder.load(at)
        builder.cbranch(builder.icmp_unsigned("<", number, I64(words)), search, after)
        builder.position_at_end(next_word)
        builder.store(builder.add(builder.load(at), I64(1)), at)
        builder.branch(of_word)
        builder.position_at_end(search)
        word = builder.load(at)
        place = builder.gep(self.waiting, [word], inbounds=True)
        bits = builder.load(place)
        found = builder.append_basic_block("found")
        builder.cbranch(builder.icmp_unsigned("!=", bits, I64(0)), found, next_word)
        builder.position_at_end(found)
        # Without the lowest bit.
        builder.store(builder.and_(bits, builder.sub(bits, I64(1))), place)
        lowest = builder.cttz(bits, BIT(1))
        ran = builder.gep(self.ran, [word], inbounds=True)
        mark = builder.shl(I64(1), lowest)
        builder.store(builder.or_(builder.load(ran), mark), ran)
        which = builder.add(builder.mul(word, I64(_BITS)), lowest)
        choose = builder.switch(which, after)
        for number_of, compiled in enumerate(vertices):
            block = builder.append_basic_block(f"vertex_{number_of}")
            choose.add_case(I64(number_of), block)
            builder.position_at_end(block)
            self.one_phase_of(compiled, sources)
            count = builder.load(self.streams[compiled.planned.name])
            with builder.if_then(builder.icmp_unsigned("!=", count, I64(0))):
                self.wake(compiled.planned.name)
            builder.branch(search)
        builder.position_at_end(after)

    def wake(self, stream: str) -> None:
        """Sets the bits of those that read a stream."""
        builder = self.builder
        marks: dict[int, int] = {}
        for vertex, _ in self.plan.graph.readers(stream):
            number = self.numbers[vertex.name]
            marks[number // _BITS] = marks.get(number // _BITS, 0) | 1 << number % _BITS
        for at, mark in marks.items():
            place = _word(builder, self.waiting, at)
            builder.store(builder.or_(builder.load(place), I64(mark)), place)

    def count(self, stream: str) -> Value:
        """How many rows a stream has in this phase."""
        builder = self.builder
        count = builder.load(self.streams[stream])
        if self.ran is None:
            return count
        number = self.numbers[stream]
        bits = builder.load(_word(builder, self.ran, number // _BITS))
        has_run = builder.trunc(builder.lshr(bits, I64(number % _BITS)), ir.IntType(1))
        return builder.select(has_run, count, I64(0))

    @contextmanager
    def where(self, condition: Value | None) -> Iterator[None]:
        """Instructions for where a condition holds; None: it always does."""
        if condition is None:
            yield
        else:
            with self.builder.if_then(condition):
                yield

    def sources(self) -> dict[str, Value | None]:
        """Of each source, whether the event is one of its own."""
        names = list(self.plan.graph.sources)
        if len(names) == 1:
            return {names[0]: None}
        builder = self.builder
        given = event_column(self.run, self.event, SOURCE)
        found = {name: builder.icmp_unsigned("==", given, I64(string_code(name))) for name in names}
        known = BIT(0)
        for one in found.values():
            known = builder.or_(known, one)
        self.run.fault_if(builder.not_(known), ValueError)
        return {**found}

    # -- a vertex --

    def vertex(self, compiled: _Compiled, sources: dict[str, Value | None]) -> None:
        builder, axes = self.builder, self.plan.axes
        planned, event = compiled.planned, compiled.given[2]
        frame = self.frame(axes + len(event.ports))
        for axis in range(axes):
            builder.store(I64(0), _word(builder, frame, axis))
        if any(port.rows is not None and port.rows.many for port in event.ports):
            self.runs_by_path(compiled, frame, sources)
            return
        there: list[Value | None] = []
        for number, (one, port) in enumerate(zip(planned.inputs, event.ports, strict=True)):
            at = _word(builder, frame, axes + number)
            if port.rows is None:
                is_there = sources[one.stream]
                builder.store(I64(1) if is_there is None else builder.zext(is_there, I64), at)
            else:
                stream = self.streams[one.stream]
                is_there = builder.icmp_unsigned("!=", self.count(one.stream), I64(0))
                address = builder.ptrtoint(port.rows.row(builder, stream, I64(0)), I64)
                builder.store(builder.select(is_there, address, I64(0)), at)
            there.append(is_there)
        some: Value | None = None
        if None not in there:
            some = BIT(0)
            for is_there in there:
                some = builder.or_(some, is_there)
        with self.where(some):
            self.run_once(compiled, frame)

    def runs_by_path(
        self, compiled: _Compiled, frame: Value, sources: dict[str, Value | None]
    ) -> None:
        """Once for each path among the inputs, in lexicographic order: a merge."""
        builder, axes = self.builder, self.plan.axes
        planned, ports = compiled.planned, compiled.given[2].ports
        cursors = self.frame(len(ports))
        counts = []
        for number, (one, port) in enumerate(zip(planned.inputs, ports, strict=True)):
            builder.store(I64(0), _word(builder, cursors, number))
            if port.rows is None:
                is_there = sources[one.stream]
                counts.append(I64(1) if is_there is None else builder.zext(is_there, I64))
            else:
                counts.append(self.count(one.stream))
        loop, body, after = (builder.append_basic_block(one) for one in ("paths", "path", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        left = []
        paths = []
        for number, (one, port) in enumerate(zip(planned.inputs, ports, strict=True)):
            cursor = builder.load(_word(builder, cursors, number))
            is_left = builder.icmp_unsigned("<", cursor, counts[number])
            left.append(is_left)
            if port.rows is not None and port.rows.many:
                paths.append(self.path_at(port.rows, self.streams[one.stream], cursor, is_left))
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
        for number, (one, port) in enumerate(zip(planned.inputs, ports, strict=True)):
            takes = left[number]
            for part, of_least in zip(paths[number], least, strict=True):
                takes = builder.and_(takes, builder.icmp_unsigned("==", part, of_least))
            at = _word(builder, cursors, number)
            cursor = builder.load(at)
            builder.store(builder.add(cursor, builder.zext(takes, I64)), at)
            address = I64(1)
            if port.rows is not None:
                row = port.rows.row(builder, self.streams[one.stream], cursor)
                address = builder.ptrtoint(port.rows.content(builder, row), I64)
            taken = builder.select(takes, address, I64(0))
            builder.store(taken, _word(builder, frame, axes + number))
        self.run_once(compiled, frame)
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

    def run_once(self, compiled: _Compiled, frame: Value) -> None:
        """One run of a vertex; before it, what it reads of its inputs becomes their last values."""
        builder, context = self.builder, self.context
        run, state, event, emit = compiled.given
        stream = self.streams[compiled.planned.name]
        if emit.rows.many:
            builder.store(I64(0), _word(builder, stream, 3))
        pointer = self.run.pointer
        of_event = cgutils.create_struct_proxy(event)(context, builder)
        of_event.run, of_event.frame = pointer, builder.bitcast(frame, POINTER)
        of_event.kept = I64(_first_kept(compiled.planned, self.plan))
        of_event.salt = I64(compiled.planned.salt)
        reader = _VertexReader(context, builder, event, of_event._getvalue())
        for port, kept in enumerate(event.kept):
            if kept.last or kept.known is not None:
                with builder.if_then(reader.changed(port)):
                    reader.keep(port)
        of_emit = cgutils.create_struct_proxy(emit)(context, builder)
        of_emit.run, of_emit.frame = pointer, builder.bitcast(frame, POINTER)
        of_emit.stream = builder.bitcast(stream, POINTER)
        overload = compiled.process.overloads[compiled.given]
        context.add_linking_libs((overload.library,))
        function = context.declare_function(builder.module, overload.fndesc)
        arguments = [pointer, self.state(compiled), of_event._getvalue(), of_emit._getvalue()]
        status, _ = context.call_conv.call_function(
            builder, function, overload.signature.return_type, (run, state, event, emit), arguments
        )
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_status_propagate(builder, status)

    def state(self, compiled: _Compiled) -> Value:
        """The state of a vertex."""
        moved = compiled.planned.moved
        if moved is None:
            return self.run.pointer
        of_state = cgutils.create_struct_proxy(compiled.given[1])(self.context, self.builder)
        of_state.run = self.run.pointer
        of_state.state, of_state.scratch = I64(moved["state"]), I64(moved["scratch"])
        return of_state._getvalue()

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

    def sink_of_source(self, sink: Sink) -> None:
        """An event to the output, as it came."""
        values, nulls = [], {}
        for number, (name, column) in enumerate(sink.columns):
            whole = self.plan.column_of_event(sink.stream, name)
            value = event_column(self.run, self.event, whole)
            values.append(self.run.to_bits(column.kind, value))
            if column.nullable:
                null = event_null(self.run, self.event, whole)
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
        first = schema.names.index(self.plan.column_of_row(sink.name, sink.columns.names[0]))
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
