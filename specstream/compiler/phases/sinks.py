"""Rows that leave a pipeline, in machine code: from a stream to the output."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from numba.core import cgutils

from specstream.columns.strings import string_code
from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import EmitType, EventType
from specstream.compiler.library.emit import OutputRow
from specstream.compiler.library.event import event_column, event_null
from specstream.compiler.phases.plan import SINK, Plan, Sink
from specstream.compiler.phases.streams import Rows, word_at
from specstream.declarations.schema import Schema

__all__ = ["SinkWriter"]


class SinkWriter:
    """Writes the rows of sinks into the function of a phase."""

    def __init__(self, run: Run, plan: Plan, event: EventType, emit: EmitType) -> None:
        self.run, self.plan, self.event, self.emit = run, plan, event, emit
        self.builder = run.builder

    def rows(self, sink: Sink, rows: Rows, stream: Value) -> None:
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
            return builder.load(word_at(builder, row, at))

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

    def events(self, sink: Sink, count: Value | None, first: Value | None) -> None:
        """The events of a source to the output, as they came."""
        if first is None:
            if count is None:
                self.put_event(sink, None)
                return
            with self.builder.if_then(self.builder.icmp_unsigned("!=", count, I64(0))):
                self.put_event(sink, None)
            return
        with cgutils.for_range(self.builder, count) as loop:
            self.put_event(sink, self.builder.add(first, loop.index))

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
        writer = OutputRow(self.run.context, builder, self.emit, self.run.pointer)
        row = writer.begin()
        first = self.plan.first_column(sink)
        own = range(first, first + len(values))
        marks = {at: I64(0) for at, _ in schema.null_bits.values()}
        for number, column in enumerate(schema.columns):
            value, null = I64(0), I64(1)
            if schema.names[number] == SINK and len(self.plan.sinks) > 1:
                value = I64(string_code(sink.name))
            elif number in own:
                value, null = values[number - first], nulls.get(number - first, I64(0))
            builder.store(value, word_at(builder, row, 1 + number))
            if column.nullable:
                at, bit = schema.null_bits[number]
                marks[at] = builder.or_(marks[at], builder.shl(null, I64(bit)))
        for at, mark in marks.items():
            builder.store(mark, word_at(builder, row, at))
        ends = [*schema.form_words.values(), schema.row_words][1:]
        for (number, at), end in zip(schema.form_words.items(), ends, strict=True):
            stored = forms.get(number - first, []) if number in own else []
            stored += [I64(0)] * (end - at - len(stored))
            for offset, word in enumerate(stored):
                builder.store(word, word_at(builder, row, at + offset))
        writer.end()
