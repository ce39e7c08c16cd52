"""The event of a vertex in machine code: its inputs' rows or last values, its key and its seed.

Of an input it reads the row of this run, or the last values, which are kept in the state; the
order key is that of the pipeline's event, or of a timer. What a vertex does with its event is in
:mod:`specstream.compiler.phases.vertex`.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import models, register_model

from specstream.compiler.backend.instructions import BIT, F64, I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import PROFILED, EventType, Variant
from specstream.compiler.frontend.inputs import ASKED
from specstream.compiler.library.event import READERS, event_column, event_null, order_key
from specstream.compiler.phases.plan import TYPES, Plan, Planned
from specstream.compiler.phases.streams import WORDS, Rows, pointer_at, word_at
from specstream.declarations.codes import EMPTY
from specstream.declarations.derived import numbers_of
from specstream.declarations.element_types import storage_of
from specstream.declarations.schema import Kind, Schema
from specstream.declarations.state_layout import Field

__all__ = ["VertexEventType", "VertexReader", "first_kept"]


@dataclass(frozen=True)
class Port:
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
    rows: Rows | None
    counts: bool = False

    @property
    def many(self) -> bool:
        """Whether there may be several rows in a phase."""
        return self.counts or (self.rows is not None and self.rows.many)


@dataclass(frozen=True)
class Kept:
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
        self.inputs = tuple(planned.declared_inputs)
        self.ports = tuple(_ports(planned, plan))
        self.kept = tuple(_kept(planned, plan))
        parts = [planned.event, self.inputs, self.ports, self.kept, variant, plan.levels]
        types.Type.__init__(self, f"specstream.vertex_event({parts}, {whole})")

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


def first_kept(planned: Planned, plan: Plan) -> int:
    """The first word of the last values that the event of a vertex keeps of its inputs."""
    names = [one.value for last in planned.last for one in last.values()]
    names += [one for one in planned.known if one is not None]
    return min((_field(plan, name).offset for name in names), default=0)


def _field(plan: Plan, name: str) -> Field:
    found = plan.layout.field(name)
    assert found is not None
    return found


def _kept(planned: Planned, plan: Plan) -> Iterator[Kept]:
    first = first_kept(planned, plan)

    def at(name: str | None) -> int | None:
        return None if name is None else _field(plan, name).offset - first

    for last, known in zip(planned.last, planned.known, strict=True):
        places = []
        for column, of in last.items():
            value = at(of.value)
            assert value is not None
            places.append((column, value, at(of.null)))
        yield Kept(tuple(places), at(known))


def _is_asked(name: str) -> bool:
    return name.partition(".")[0] in ASKED and "." in name


def _with_derived(schema: Schema, whole: Schema) -> Schema:
    return Schema(schema.names, schema.columns, derived=whole.derived)


def _ports(planned: Planned, plan: Plan) -> Iterator[Port]:
    for one in planned.inputs:
        prefix = f"{one.name}." if one.name else ""
        if one.stream in plan.sources:
            whole = plan.column_of_event(one.stream, "")
            yield Port(prefix, whole, None, plan.by_time)
        else:
            reads = plan.vertices[one.stream]
            yield Port(prefix, None, Rows(reads.emits, reads.many, plan.axes))


@register_model(VertexEventType)
class _VertexEventModel(models.StructModel):
    def __init__(self, manager: object, event: VertexEventType) -> None:
        # `kept`: the first word of what is kept; `salt`: of random numbers.
        members = [("run", types.voidptr), ("frame", types.voidptr)]
        super().__init__(manager, event, [*members, ("kept", types.int64), ("salt", types.int64)])


class VertexReader:
    """Reads the event of a vertex.

    Its frame has the path of the run, and behind it one word for each input: the address of the
    row that is read, of a source 1 and the number of the event; 0: none.
    """

    def __init__(self, context: Any, builder: Any, event: VertexEventType, value: Value) -> None:
        of = cgutils.create_struct_proxy(event)(context, builder, value=value)
        self.context, self.builder, self.event = context, builder, event
        self.run = Run(context, builder, of.run)
        self.frame = builder.bitcast(of.frame, WORDS)
        self.first_kept, self.salt = of.kept, of.salt

    def changed(self, port: int) -> Value:
        word = self.builder.load(word_at(self.builder, self.frame, self.event.axes + port))
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
        """The order key of the event of a vertex.

        Of the pipeline's event, or of the timer that has fired; of a phase by time its time."""
        key = order_key(self.run, self.event.whole)
        if self.event.whole.schema.phases:
            # What it is counted as depends on how the events came; a timer has a source of its own.
            is_phase = self.builder.icmp_unsigned("==", key[1], I64(0))
            key[2] = self.builder.select(is_phase, I64(0), key[2])
        return key

    def seed(self) -> Value:
        """The seed of the event of a vertex, in machine code, for its random numbers.

        Those of two vertices, and of two paths, are independent."""
        builder = self.builder
        seed = self.run.load_member("seed", invariant=True)
        seed = builder.xor(seed, self.salt)
        for axis, level in enumerate(self.event.levels):
            part = builder.load(word_at(builder, self.frame, axis))
            arguments = (seed, I64(level), part, I64(0), I64(0))
            other = self.run.call("ss_random_bits", I64, *arguments)
            seed = builder.select(builder.icmp_unsigned("==", part, I64(0)), seed, other)
        return seed

    # -- where a value lies --

    def places(self, port: int, column: str) -> tuple[int | None, int | None]:
        """Where an input's last values are kept for the event of a vertex: one column.

        Its value, and whether it was null."""
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
        """A value of the event of a vertex: of the input's row in this run, else the last one.

        ``never`` where none is kept."""
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
        """Keeps an input's row of this run as the last values for the event of a vertex."""
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
        return pointer_at(builder, self.frame, self.event.axes + port)

    def number(self, port: int) -> Value | None:
        """Which event of a source the event of a vertex is read from, where there are several.

        None: the only one."""
        if not self.event.ports[port].counts:
            return None
        word = self.builder.load(word_at(self.builder, self.frame, self.event.axes + port))
        return self.builder.sub(word, I64(1))

    def now(self, port: int, column: str, kind: Kind) -> Value:
        of = self.event.ports[port]
        if of.source is not None:
            name = of.source + column
            return event_column(self.run, self.event.whole, name, self.number(port))
        assert of.rows is not None
        number = of.rows.schema.names.index(column)
        bits = self.builder.load(word_at(self.builder, self.row(port), 1 + number))
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
        nulls = builder.load(word_at(builder, self.row(port), word))
        return builder.trunc(builder.lshr(nulls, I64(bit)), ir.IntType(1))


READERS[VertexEventType] = VertexReader


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
