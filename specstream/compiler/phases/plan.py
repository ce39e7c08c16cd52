"""What is known of a pipeline when its phases are compiled: its streams, vertices, and one schema.

To everybody else a pipeline is an operator. Its state has the fields of all vertices, called
``vertex.field``, and the last values of inputs that somebody reads later. With one source its
events are those of the source; with several they have the columns of all, called
``source.column``, and one that names the source. Likewise its rows and its sinks.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

from specstream.compiler.backend.interpreted_vertex import InterpretedVertex
from specstream.compiler.frontend.inputs import column_of, flattened
from specstream.compiler.frontend.program import Program
from specstream.declarations.forms import Form
from specstream.declarations.schema import Kind, Schema
from specstream.declarations.state_layout import Layout

__all__ = [
    "MOST_INLINED",
    "SINK",
    "SOURCE",
    "TYPES",
    "Input",
    "Last",
    "Plan",
    "Planned",
    "Sink",
    "Source",
    "column_among",
]

SOURCE = "stream"
"""The column that names an event's source, where a pipeline has several."""
SINK = "sink"
"""The column that names a row's sink, likewise."""

MOST_INLINED = 4
"""In so many places the code of an operator becomes part of the function that runs a phase."""

TYPES: dict[Kind, type] = {"int": int, "float": float, "bool": bool, "str": str}


def column_among(several: Collection[str], of: str, name: str) -> str:
    """What a pipeline calls a column of one of its sources, or sinks: as that does, if it is the
    only one."""
    return name if len(several) == 1 else column_of(of, name)


@dataclass(frozen=True)
class Source:
    """Where events come in.

    Attributes:
        name: of the source.
        columns: of its events, as declared.
    """

    name: str
    columns: Schema


@dataclass(frozen=True)
class Input:
    """One input of a vertex.

    Attributes:
        name: as the operator calls it; empty for the only input of one that takes events.
        columns: that the operator reads of it.
        stream: name of the source or vertex that it reads.
    """

    name: str
    columns: Schema
    stream: str


@dataclass(frozen=True)
class Sink:
    """Where rows leave.

    Attributes:
        name: of the sink.
        stream: name of the source or vertex whose rows it gets.
        columns: of these rows.
    """

    name: str
    stream: str
    columns: Schema


@dataclass(frozen=True)
class Last:
    """The fields of the state that keep the last value of an input's column.

    Attributes:
        value: the value.
        null: whether it was null; None: it never is.
    """

    value: str
    null: str | None


@dataclass(frozen=True)
class Planned:
    """A vertex, ready to be compiled.

    Attributes:
        name: of the vertex.
        operator: name of its operator.
        inputs: in the order in which the operator declares them.
        declared_inputs: columns of each input that the operator declares; empty: it takes events.
        declared_event: columns of such events.
        declared_emits: columns of its rows.
        program: its operator's function, rewritten for this place; that of another vertex of the
            same operator, where both can have one.
        layout: of its state; where it is moved, as in a state of its own.
        moved: how far behind that its fields lie, by space; None: they do not.
        many: whether more than one row may come of it in a phase.
        axis: of a path, that counts the rows of each of its runs; None: there is at most one.
        last: of each input, the columns whose last values are kept.
        known: of each input, the field that says whether it ever had a row; None: nobody asks.
        salt: what its random numbers differ by from those of other vertices.
        python: where Python runs its function as it is written, what is to be known for that.
    """

    name: str
    operator: str
    inputs: tuple[Input, ...]
    declared_inputs: dict[str, Schema]
    declared_event: Schema
    declared_emits: Schema
    program: Program
    layout: Layout
    moved: dict[str, int] | None
    many: bool
    axis: int | None
    last: tuple[dict[str, Last], ...]
    known: tuple[str | None, ...]
    salt: int
    python: InterpretedVertex | None = None

    @cached_property  # the oracle asks in every run
    def emits(self) -> Schema:
        """Of its rows, with its formatted strings."""
        return replace(self.declared_emits, forms=self.program.forms)

    @cached_property
    def event(self) -> Schema:
        """Columns of its events, as its function reads them."""
        inputs = self.declared_inputs
        return flattened(inputs) if inputs else self.declared_event


@dataclass(frozen=True)
class Plan:
    """A pipeline, ready to be compiled.

    Attributes:
        pipeline: its name, for messages.
        sources: by name, in the order of their declaration.
        by_time: a phase is all events of one timestamp.
        vertices: by name, in the order of their numbers.
        sinks: by name, in the order of their declaration.
        order: names of sources and vertices, by their numbers.
        event: columns of the pipeline's events.
        emits: of its rows.
        layout: of its state.
        levels: a path has a number for each of these, as at others there is never a second row: a
            vertex is on level n where there are n vertices, itself counted, on the longest way
            from a source to it. A source is on level 0.
    """

    pipeline: str
    sources: dict[str, Source]
    by_time: bool
    vertices: dict[str, Planned]
    sinks: dict[str, Sink]
    order: list[str]
    event: Schema
    emits: Schema
    layout: Layout
    levels: tuple[int, ...]

    @property
    def in_python(self) -> tuple[InterpretedVertex, ...]:
        """The vertices that Python runs as they are written, by their numbers."""
        return tuple(one.python for one in self.vertices.values() if one.python is not None)

    @property
    def axes(self) -> int:
        """Numbers of a path."""
        return len(self.levels)

    @property
    def timed(self) -> list[str]:
        """Vertices that have timers, in the order in which those fire that are due at one time."""
        return [name for name, one in self.vertices.items() if one.program.on_timer is not None]

    @property
    def behind_timers(self) -> set[str]:
        """Vertices that may get a row when a timer fires."""
        found: set[str] = set()
        timed = self.timed
        for name, one in self.vertices.items():
            if any(of.stream in found or of.stream in timed for of in one.inputs):
                found.add(name)
        return found

    def readers(self, stream: str) -> list[str]:
        """The vertices that read a stream."""
        return self._readers.get(stream, [])

    def sinks_of(self, stream: str) -> list[Sink]:
        """The sinks that get a stream."""
        return self._sinks_of.get(stream, [])

    @cached_property
    def _readers(self) -> dict[str, list[str]]:
        found: dict[str, dict[str, None]] = {}
        for name, vertex in self.vertices.items():
            for one in vertex.inputs:
                found.setdefault(one.stream, {})[name] = None
        return {stream: list(names) for stream, names in found.items()}

    @cached_property
    def _sinks_of(self) -> dict[str, list[Sink]]:
        found: dict[str, list[Sink]] = {}
        for sink in self.sinks.values():
            found.setdefault(sink.stream, []).append(sink)
        return found

    def column_of_event(self, source: str, name: str) -> str:
        """The column of the pipeline's events that a column of a source is."""
        return column_among(self.sources, source, name)

    def first_column(self, sink: Sink) -> int:
        """Which of the pipeline's columns of rows the first one of a sink is."""
        return self._columns[column_among(self.sinks, sink.name, sink.columns.names[0])]

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.emits.names)}

    def forms(self, sink: Sink) -> tuple[Form, ...]:
        """The formatted strings of a sink's stream."""
        planned = self.vertices.get(sink.stream)
        return () if planned is None else planned.program.forms

    def first_form(self, sink: Sink) -> int:
        """Which of the pipeline's formatted strings the first one of a sink's stream is."""
        return self._first_forms[sink.name]

    @cached_property
    def _first_forms(self) -> dict[str, int]:
        counts = [len(self.forms(one)) for one in self.sinks.values()]
        return dict(zip(self.sinks, itertools.accumulate(counts, initial=0), strict=False))

    def described(self) -> str:
        """Everything about it that decides what machine code does, beside its vertices' code."""
        described = [repr((self.order, self.levels, [*self.sources.values()]))]
        described += ["by time"] * self.by_time
        for one in self.vertices.values():
            described.append(
                repr((one.name, one.inputs, one.emits, one.many, one.axis, one.last, one.known))
                + repr(one.moved)
            )
            described.append(one.program.fingerprint)
            if one.program.on_timer is not None:
                described.append(one.program.on_timer.fingerprint)
        described.append(repr([*self.sinks.values()]))
        return "\n".join(described)
