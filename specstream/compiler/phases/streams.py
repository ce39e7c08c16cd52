"""A stream in machine code: its rows in memory, and ``emit`` of the vertex that sends them.

A stream is a frame in the function that runs a phase: how many rows there are, and the one row, if
there cannot be more; the optimiser makes registers of it. Otherwise the rows lie in the worker's
arena, each with its path in front.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba.core import cgutils, types
from numba.extending import models, register_model

from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.local_types import kinds_of
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import EmitType
from specstream.compiler.library.array_expressions import new_list
from specstream.compiler.library.emit import WRITERS
from specstream.compiler.phases.plan import Planned
from specstream.declarations.schema import Schema

__all__ = ["WORDS", "Rows", "StreamEmitType", "StreamRow", "pointer_at", "word_at"]

WORDS = I64.as_pointer()
_FIRST_ROWS = 8


@dataclass(frozen=True)
class Rows:
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
        words = pointer_at(builder, frame, 2)
        return builder.gep(words, [builder.mul(number, I64(self.stride))], inbounds=True)

    def content(self, builder: Any, row: Value) -> Value:
        """The row without its path."""
        return builder.gep(row, [I64(self.axes)], inbounds=True) if self.many else row


def word_at(builder: Any, words: Value, at: int) -> Value:
    return builder.gep(words, [I64(at)], inbounds=True)


def pointer_at(builder: Any, words: Value, at: int) -> Value:
    place = builder.bitcast(word_at(builder, words, at), WORDS.as_pointer())
    return builder.load(place)


def _store_pointer(builder: Any, words: Value, at: int, pointer: Value) -> None:
    builder.store(pointer, builder.bitcast(word_at(builder, words, at), WORDS.as_pointer()))


class StreamEmitType(EmitType):
    """``emit`` of a vertex: a row goes to its stream."""

    def __init__(self, planned: Planned, axes: int) -> None:
        super().__init__(planned.emits)
        self.rows, self.axis = Rows(planned.emits, planned.many, axes), planned.axis
        types.Type.__init__(
            self, f"specstream.stream({planned.emits}, {planned.many}, {planned.axis}, {axes})"
        )


@register_model(StreamEmitType)
class _StreamEmitModel(models.StructModel):
    def __init__(self, manager: object, emit: StreamEmitType) -> None:
        # `run` of the vertex: where its path stands, see _Frame.
        members = [("run", types.voidptr), ("stream", types.voidptr), ("frame", types.voidptr)]
        super().__init__(manager, emit, members)


class StreamRow:
    """Writes a row of a stream."""

    def __init__(self, context: Any, builder: Any, emit: StreamEmitType, value: Value) -> None:
        of = cgutils.create_struct_proxy(emit)(context, builder, value=value)
        self.run, self.builder, self.emit = Run(context, builder, of.run), builder, emit
        self.stream = builder.bitcast(of.stream, WORDS)
        self.frame = builder.bitcast(of.frame, WORDS)

    def begin(self) -> Value:
        builder, rows = self.builder, self.emit.rows
        count = builder.load(self.stream)
        following = builder.add(count, I64(1))
        if not rows.many:
            builder.store(following, self.stream)
            return rows.row(builder, self.stream, count)
        room = builder.load(word_at(builder, self.stream, 1))
        with builder.if_then(builder.icmp_unsigned("==", count, room), likely=False):
            self._grow(count, room)
        row = rows.row(builder, self.stream, count)
        builder.store(following, self.stream)
        number = word_at(builder, self.stream, 3)
        for axis in range(rows.axes):
            part = builder.load(word_at(builder, self.frame, axis))
            if axis == self.emit.axis:
                part = builder.load(number)
                builder.store(builder.add(part, I64(1)), number)
            builder.store(part, word_at(builder, row, axis))
        return rows.content(builder, row)

    def _grow(self, count: Value, room: Value) -> None:
        builder, rows = self.builder, self.emit.rows
        more = builder.mul(room, I64(2))
        none = builder.icmp_unsigned("==", room, I64(0))
        more = builder.select(none, I64(_FIRST_ROWS), more)
        width = I64(rows.stride)
        _, words = new_list(self.run, kinds_of(types.int64), builder.mul(more, width))
        words = builder.bitcast(words, WORDS)
        with builder.if_then(builder.not_(none)):
            old = pointer_at(builder, self.stream, 2)
            cgutils.raw_memcpy(builder, words, old, builder.mul(count, width), 8)
        _store_pointer(builder, self.stream, 2, words)
        builder.store(more, word_at(builder, self.stream, 1))

    def end(self) -> None:
        pass


WRITERS[StreamEmitType] = StreamRow
