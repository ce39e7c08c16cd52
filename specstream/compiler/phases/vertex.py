"""A vertex in machine code: what it does in a phase.

Machine code of its operator is called once for each distinct path among the rows of its inputs; an
interpreted one is handed to Python in the same place.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from specstream._native import lib
from specstream.compiler.backend.instructions import BIT, I32, I64, POINTER, Value
from specstream.compiler.backend.interpreted_vertex import KEY, InterpretedVertex
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import BASES, EmitType, EventType
from specstream.compiler.library.event import READERS
from specstream.compiler.phases.plan import Plan, Planned
from specstream.compiler.phases.sinks import SinkWriter
from specstream.compiler.phases.streams import WORDS, Rows, StreamEmitType, StreamRow, word_at
from specstream.compiler.phases.timers import VertexTimerType
from specstream.compiler.phases.vertex_events import VertexReader, first_kept

__all__ = ["Code", "Compiled", "Sent", "Vertex", "VertexWriter"]


@dataclass(frozen=True)
class Sent:
    """What a source sends in a phase.

    Attributes:
        count: how many events; None: always one.
        first: number of the first of them; None: there is at most one, with no number.
    """

    count: Value | None
    first: Value | None = None


@dataclass(frozen=True)
class Code:
    """Machine code of an operator, or the program of one that Python runs, and the types of what
    that is given."""

    process: Any
    given: tuple[Any, Any, Any, StreamEmitType]


@dataclass(frozen=True)
class Compiled(Code):
    """A vertex with its code; ``given[2]`` is a :class:`VertexEventType`.

    Attributes:
        on_timer: where timers fire: what a timer of its own runs; None: it has none.
        place: then, of its timers among those of all.
    """

    planned: Planned
    on_timer: Code | None = None
    place: int = 0


@dataclass(frozen=True)
class Vertex:
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

    compiled: Compiled
    stream: Value
    streams: list[Value | None]
    counts: list[Value | None]
    firsts: list[Value | None]
    kept: Value
    salt: Value
    moved: dict[str, Value]


class VertexWriter:
    """Writes what vertices do into the function of a phase.

    Attributes:
        fires: in the phase of a timer, whose it is among those of all; None: it is an event's.
    """

    def __init__(
        self,
        context: Any,
        builder: Any,
        plan: Plan,
        vertices: Sequence[Compiled],
        pointer: Value,
        event: EventType,
        emit: EmitType,
    ) -> None:
        self.context, self.builder, self.plan, self.vertices = context, builder, plan, vertices
        self.run, self.event = Run(context, builder, pointer), event
        self.sinks = SinkWriter(self.run, plan, event, emit)
        self.fires: Value | None = None

    def in_place(
        self, compiled: Compiled, sources: dict[str, Sent], streams: dict[str, Value]
    ) -> None:
        """A vertex that is looked at in every phase; its stream becomes one of the streams."""
        planned = compiled.planned
        if planned.name not in streams:
            streams[planned.name] = self.frame(compiled.given[3].rows.frame_words)
        vertex = Vertex(
            compiled,
            streams[planned.name],
            [streams.get(one.stream) for one in planned.inputs],
            [self.count(sources, streams, one.stream) for one in planned.inputs],
            [self.first_of(sources, one.stream) for one in planned.inputs],
            I64(first_kept(planned, self.plan)),
            I64(planned.salt),
            {what: I64(words) for what, words in (planned.moved or {}).items()},
        )
        self.vertex(vertex)

    def count(self, sources: dict[str, Sent], streams: dict[str, Value], name: str) -> Value | None:
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
        return self.builder.bitcast(made, WORDS)

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

    def first_of(self, sources: dict[str, Sent], stream: str) -> Value | None:
        return sources[stream].first if stream in sources else None

    # ---- one vertex ----

    def vertex(self, vertex: Vertex) -> None:
        """What a vertex does in a phase, and the sinks of its rows."""
        builder, axes = self.builder, self.plan.axes
        ports, rows = vertex.compiled.given[2].ports, vertex.compiled.given[3].rows
        builder.store(I64(0), vertex.stream)
        if rows.many:
            builder.store(I64(0), word_at(builder, vertex.stream, 1))
        self.runs(vertex, self.frame(axes + len(ports)))
        for sink in self.plan.sinks_of(vertex.compiled.planned.name):
            self.sinks.rows(sink, rows, vertex.stream)

    def runs(self, vertex: Vertex, frame: Value) -> None:
        """All of its runs; where a timer fires, its vertex runs ``on_timer``."""
        on_timer = vertex.compiled.on_timer
        if self.fires is None or on_timer is None:
            self.runs_of_rows(vertex, frame)
            return
        is_its = self.builder.icmp_unsigned("==", self.fires, I64(vertex.compiled.place))
        with self.builder.if_else(is_its) as (fires, has_rows):
            with fires:
                self.begin_path(frame)
                self.call(on_timer, vertex, frame, self.run.pointer)
            with has_rows:
                self.runs_of_rows(vertex, frame)

    def runs_of_rows(self, vertex: Vertex, frame: Value) -> None:
        """Those for rows of its inputs."""
        ports = vertex.compiled.given[2].ports
        if any(port.many for port in ports):
            self.runs_by_path(vertex, frame)
        else:
            self.begin_path(frame)
            self.run_if_there(vertex, frame)

    def begin_path(self, frame: Value) -> None:
        """The path of a row that is no row of another one."""
        for axis in range(self.plan.axes):
            self.builder.store(I64(0), word_at(self.builder, frame, axis))

    def run_if_there(self, vertex: Vertex, frame: Value) -> None:
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
            builder.store(address, word_at(builder, frame, axes + number))
        with self.where(some):
            self.run_once(vertex, frame)

    def runs_by_path(self, vertex: Vertex, frame: Value) -> None:
        """Once for each path among the inputs, in lexicographic order: a merge."""
        builder, axes = self.builder, self.plan.axes
        ports = vertex.compiled.given[2].ports
        cursors = self.frame(len(ports))
        for number in range(len(ports)):
            builder.store(I64(0), word_at(builder, cursors, number))
        counts = [I64(1) if count is None else count for count in vertex.counts]
        loop, body, after = (builder.append_basic_block(one) for one in ("paths", "path", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        left: list[Value] = []
        paths: list[list[Value]] = []
        for number, port in enumerate(ports):
            cursor = builder.load(word_at(builder, cursors, number))
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
            builder.store(part, word_at(builder, frame, axis))
        for number, port in enumerate(ports):
            takes = left[number]
            for part, of_least in zip(paths[number], least, strict=True):
                takes = builder.and_(takes, builder.icmp_unsigned("==", part, of_least))
            at = word_at(builder, cursors, number)
            cursor = builder.load(at)
            builder.store(builder.add(cursor, builder.zext(takes, I64)), at)
            address, stream, first = I64(1), vertex.streams[number], vertex.firsts[number]
            if first is not None:
                address = builder.add(builder.add(first, cursor), I64(1))
            if port.rows is not None and stream is not None:
                row = port.rows.row(builder, stream, cursor)
                address = builder.ptrtoint(port.rows.content(builder, row), I64)
            taken = builder.select(takes, address, I64(0))
            builder.store(taken, word_at(builder, frame, axes + number))
        self.run_once(vertex, frame)
        self.run.poll()
        builder.branch(loop)
        builder.position_at_end(after)

    def path_at(self, rows: Rows, stream: Value, cursor: Value, is_left: Value) -> list[Value]:
        """The path of a row, where there is one."""
        builder = self.builder
        before = builder.block
        with builder.if_then(is_left):
            row = rows.row(builder, stream, cursor)
            found = [builder.load(word_at(builder, row, axis)) for axis in range(rows.axes)]
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

    def run_once(self, vertex: Vertex, frame: Value) -> None:
        """One run of a vertex; before it, what it reads of its inputs becomes their last values."""
        builder, context = self.builder, self.context
        event = vertex.compiled.given[2]
        pointer = self.run.pointer
        of_event = cgutils.create_struct_proxy(event)(context, builder)
        of_event.run, of_event.frame = pointer, builder.bitcast(frame, POINTER)
        of_event.kept, of_event.salt = vertex.kept, vertex.salt
        reader = VertexReader(context, builder, event, of_event._getvalue())
        for port, kept in enumerate(event.kept):
            if kept.last or kept.known is not None:
                with builder.if_then(reader.changed(port)):
                    reader.keep(port)
        self.call(vertex.compiled, vertex, frame, of_event._getvalue())

    def call(self, code: Code, vertex: Vertex, frame: Value, event: Value) -> None:
        """Calls code of a vertex for the path that stands in a frame."""
        builder, context, emit = self.builder, self.context, code.given[3]
        if emit.rows.many:
            builder.store(I64(0), word_at(builder, vertex.stream, 3))
        pointer = self.run.pointer
        of_emit = cgutils.create_struct_proxy(emit)(context, builder)
        of_emit.run, of_emit.frame = pointer, builder.bitcast(frame, POINTER)
        of_emit.stream = builder.bitcast(vertex.stream, POINTER)
        if vertex.compiled.planned.python is not None:
            self.call_python(code, vertex.compiled.planned.python, frame, event)
            self.take_rows(StreamRow(context, builder, emit, of_emit._getvalue()))
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
        self, code: Code, python: InterpretedVertex, frame: Value, event: Value
    ) -> None:
        """Hands over what a vertex reads, and has Python run it."""
        builder, of_event = self.builder, code.given[2]
        fires = isinstance(of_event, VertexTimerType)
        reader = READERS[type(of_event)](self.context, builder, of_event, event)
        words = self.frame(len(python.given))

        def put(name: str, bits: Value) -> None:
            builder.store(bits, word_at(builder, words, python.given[name]))

        for name, bits in zip(KEY, (*reader.key(), reader.seed()), strict=True):
            put(name, bits)
        for axis in range(self.plan.axes):
            put(f"path.{axis}", builder.load(word_at(builder, frame, axis)))
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
        given = (call, number, I64(int(self.fires is not None)), words)
        ends = self.run.call("ss_vertex_interpret", I32, self.run.pointer, *given)
        self.run.leave_if(builder.icmp_unsigned("!=", ends, I32(0)))

    def take_rows(self, writer: StreamRow) -> None:
        """The rows that Python has sent become those of the stream."""
        builder, width = self.builder, writer.emit.rows.schema.row_words - 1
        sent = self.run.load_member("sent", POINTER)
        sent = builder.bitcast(sent, WORDS)
        with cgutils.for_range(builder, self.run.load_member("sent_rows")) as loop:
            row = word_at(builder, writer.begin(), 1)
            of_python = builder.gep(sent, [builder.mul(loop.index, I64(width))])
            cgutils.raw_memcpy(builder, row, of_python, I64(width), 8)

    def state(self, vertex: Vertex) -> Value:
        """The state of a vertex."""
        planned = vertex.compiled.planned
        if planned.moved is None:
            return self.run.pointer
        if planned.layout.containers:
            words = self.builder.bitcast(self.run.load_member("scratch", POINTER), WORDS)
            for at, base in enumerate(BASES):
                self.builder.store(vertex.moved[base], word_at(self.builder, words, at))
        of = cgutils.create_struct_proxy(vertex.compiled.given[1])(self.context, self.builder)
        of.run = self.run.pointer
        of.state, of.scratch = vertex.moved["state"], vertex.moved["scratch"]
        return of._getvalue()
