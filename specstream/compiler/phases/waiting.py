"""Many vertices in a phase, of which few have a message: those are found by their bits."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from specstream.compiler.backend.instructions import BIT, I64, Value
from specstream.compiler.backend.numba_types import BASES
from specstream.compiler.phases.streams import WORDS, word_at
from specstream.compiler.phases.vertex import Compiled, Sent, Vertex, VertexWriter
from specstream.compiler.phases.vertex_events import first_kept

__all__ = ["MOST_VERTICES", "Waiting"]

# So many of those that read sources alone are looked at in every phase, before any bits.
_MOST_IN_FRONT = 4
_BITS = 64
MOST_VERTICES = _BITS * _BITS


class Waiting:
    """Runs those vertices of a phase that have a message: a bit each, the lowest first; a few that
    read sources stand in front, without one.

    Who sends to others sets their bits, which are higher ones, so that a vertex that has no message
    costs nothing. What sets vertices apart that share their instructions is in a table.
    """

    # Words of a vertex in the table: where its frame begins, what is kept, salt, readers, moved.
    _MOVED = ("state", "scratch", *BASES)
    _OWN = 5 + len(_MOVED)
    _INPUT = 2  # where the frame of the stream begins, and the number of its vertex

    def __init__(self, phase: VertexWriter, sources: dict[str, Sent]) -> None:
        self.phase, self.sources, self.plan = phase, sources, phase.plan
        self.builder, self.vertices = phase.builder, phase.vertices
        self.numbers = {one.planned.name: at for at, one in enumerate(self.vertices)}
        self.begins: dict[str, int] = {}
        words = 0
        for one in self.vertices:
            self.begins[one.planned.name] = words
            words += one.given[3].rows.frame_words
        self.memory, self.in_front = phase.frame(words), self._few_in_front()
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
        return self.builder.bitcast(whole, WORDS)

    def _row(self, compiled: Compiled) -> list[int]:
        planned = compiled.planned
        moved = planned.moved or dict.fromkeys(self._MOVED, 0)
        readers = self.readers_of(planned.name)
        row = [self.begins[planned.name], first_kept(planned, self.plan), planned.salt]
        row += [len(self.readers), len(readers), *(moved[one] for one in self._MOVED)]
        self.readers += readers
        for one in planned.inputs:
            is_vertex = one.stream in self.begins
            row += [self.begins[one.stream], self.numbers[one.stream]] if is_vertex else [0, 0]
        return row + [0] * (self.width - len(row))

    def readers_of(self, stream: str) -> list[int]:
        """The numbers of the vertices that read a stream."""
        return [self.numbers[name] for name in self.plan.readers(stream)]

    def _few_in_front(self) -> int:
        """How many vertices read sources alone; these have the lowest numbers. 0 if not few, and
        where a timer fires: then no source has a row."""
        if self.phase.fires is not None:
            return 0
        read = [{of.stream for of in one.planned.inputs} for one in self.vertices]
        count = sum(streams <= self.sources.keys() for streams in read)
        return count if count <= _MOST_IN_FRONT else 0

    def _wake_first(self) -> None:
        """Runs those in front and sets the bits of those behind that have a row; where a timer
        fires, sets that of its vertex."""
        phase = self.phase
        if phase.fires is not None:
            numbers = self.constant("timed", [self.numbers[name] for name in self.plan.timed])
            number = self.builder.gep(numbers, [phase.fires], inbounds=True)
            self.wake(self.builder.load(number))
            return
        front = self.vertices[: self.in_front]
        streams = {one.planned.name: self.stream(one.planned.name) for one in front}
        for compiled in front:
            phase.in_place(compiled, self.sources, streams)
        for name in [*self.sources, *streams]:
            with phase.where_some(phase.count(self.sources, streams, name)):
                for number in self.readers_of(name):
                    if number >= self.in_front:
                        self.wake(I64(number))

    def write(self) -> None:
        builder, phase = self.builder, self.phase
        builder.store(I64(0), self.active)
        builder.store(I64(0), self.used)
        self._wake_first()
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

    def _kinds(self) -> list[list[Compiled]]:
        """The vertices, by what instructions they have."""
        kinds: dict[Any, list[Compiled]] = {}
        for one in self.vertices[self.in_front :]:
            sources = tuple(of.stream for of in one.planned.inputs if of.stream in self.sources)
            sinks = tuple(of.name for of in self.plan.sinks_of(one.planned.name))
            kinds.setdefault((id(one.process), one.given, sources, sinks), []).append(one)
        return list(kinds.values())

    def _vertex(self, compiled: Compiled, row: Value) -> Vertex:
        builder, planned = self.builder, compiled.planned

        def word(at: int) -> Value:
            return builder.load(word_at(builder, row, at))

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
        return Vertex(compiled, frame(0), streams, counts, firsts, word(1), word(2), moved)

    def wake_readers(self, row: Value) -> None:
        """Sets the bits of those that read a vertex."""
        builder = self.builder
        first, count = (builder.load(word_at(builder, row, at)) for at in (3, 4))
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
