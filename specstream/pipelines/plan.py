"""What a pipeline's graph comes to: one state, one kind of event, one kind of row, one order.

A pipeline is an operator to everybody else. Its state has the fields of all vertices, called
``vertex.field``, and the last values of inputs that somebody reads later. With one source its
events are those of the source; with several they have the columns of all, called
``source.column``, and one that names the source. Likewise its rows and its sinks.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from specstream.compiler.backend.interpreted_vertex import Input as OfPython
from specstream.compiler.backend.interpreted_vertex import InterpretedVertex
from specstream.compiler.backend.types import BASES
from specstream.compiler.driver import Place
from specstream.compiler.frontend.inputs import column_of, flattened
from specstream.compiler.frontend.program import Program
from specstream.declarations.derived import Derived
from specstream.declarations.forms import Form
from specstream.declarations.schema import Column, Kind, OneOf, Schema
from specstream.declarations.state import Field, Layout, scalar
from specstream.errors import CompileError
from specstream.operator.operator import Operator
from specstream.pipelines.emissions import emits_at_most_once
from specstream.pipelines.graph import Graph, Input, Sink, Vertex

__all__ = ["MOST_INLINED", "SINK", "SOURCE", "TYPES", "Last", "Plan", "Planned"]

SOURCE = "stream"
"""The column that names an event's source, where a pipeline has several."""
SINK = "sink"
"""The column that names a row's sink, likewise."""

MOST_INLINED = 4
"""In so many places the code of an operator becomes part of the function that runs a phase."""

_NAME = Column("str", pa.string())
_BEHIND = (
    "Python computes what depends on an event alone before a phase begins, of columns of a source: "
    "do it in a vertex with event= that reads a source, and emit what comes of it"
)
TYPES: dict[Kind, type] = {"int": int, "float": float, "bool": bool, "str": str}


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
        vertex: as it was declared.
        program: its operator's function, rewritten for this place; that of another vertex of the
            same operator, where both can have one.
        layout: of its state; where it is moved, as in a state of its own.
        moved: how far behind that its fields lie, see ``_moved``; None: they do not.
        many: whether more than one row may come of it in a phase.
        axis: of a path, that counts the rows of each of its runs; None: there is at most one.
        last: of each input, the columns whose last values are kept.
        known: of each input, the field that says whether it ever had a row; None: nobody asks.
        salt: what its random numbers differ by from those of other vertices.
        python: where Python runs its function as it is written, what is to be known for that.
    """

    vertex: Vertex
    program: Program
    layout: Layout
    moved: dict[str, int] | None
    many: bool
    axis: int | None
    last: tuple[dict[str, Last], ...]
    known: tuple[str | None, ...]
    salt: int
    python: InterpretedVertex | None = None

    @property
    def name(self) -> str:
        return self.vertex.name

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.vertex.inputs

    @cached_property  # the oracle asks in every run
    def emits(self) -> Schema:
        """Of its rows, with its formatted strings."""
        return replace(self.vertex.operator.emits.declared, forms=self.program.forms)

    @cached_property
    def event(self) -> Schema:
        """Columns of its events, as its function reads them."""
        inputs = self.vertex.operator.inputs
        return flattened(inputs) if inputs else self.vertex.operator.event.declared


class Plan:
    """A graph that has been looked at, and what is made of it.

    Attributes:
        graph: the graph.
        order: names of sources and vertices, by their numbers.
        vertices: by name, in that order.
        event: columns of the pipeline's events.
        emits: of its rows.
        layout: of its state.
        levels: a path has a number for each of these, as at others there is never a second row: a
            vertex is on level n where there are n vertices, itself counted, on the longest way
            from a source to it. A source is on level 0.

    Raises:
        DeclarationError: the graph is none that can be run.
        CompileError: a vertex needs what only Python can compute, and its events are another
            vertex's rows.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.order = graph.check()
        if len(graph.sources) > 1 and SOURCE in graph.sources:
            graph.refuse(
                f"a source is called {SOURCE!r}, as is the column that names the source of each "
                "event where there are several",
                "give it another name",
            )
        vertices = [graph.vertices[name] for name in self.order if name in graph.vertices]
        levels = dict.fromkeys(graph.sources, 0)
        for vertex in vertices:
            levels[vertex.name] = 1 + max(levels[one.stream] for one in vertex.inputs)
        operators = dict.fromkeys(one.operator for one in vertices)
        once = {operator for operator in operators if emits_at_most_once(operator)}
        counting = {one.name for one in vertices if one.operator not in once}
        of_time = set(graph.sources) if graph.by_time else set()
        counting |= of_time
        self.levels = tuple(sorted({levels[name] for name in counting}))
        at = {level: axis for axis, level in enumerate(self.levels)}
        kept = {vertex.name: _kept(vertex) for vertex in vertices}
        uses = Counter(vertex.operator for vertex in vertices)
        moves = {
            one for one in operators if not one.is_interpreted and _moves(one.layout, uses[one])
        }
        self.layout = Layout.joined(
            graph.name,
            {vertex.name: vertex.operator.layout for vertex in vertices},
            _layout_of([field for _, _, fields in kept.values() for field in fields.items()]),
            len(BASES) if any(one.layout.containers for one in moves) else 0,
        )
        declared = self._events()
        self.vertices: dict[str, Planned] = {}
        derived: tuple[Derived, ...] = ()
        shared: dict[tuple[Operator, bool], Program] = {}
        site = 1
        many = of_time
        for vertex in vertices:
            name, operator = vertex.name, vertex.operator
            source = vertex.inputs[0].stream if not operator.inputs else ""
            last, known, _ = kept[name]
            lifts = source in graph.sources
            moved = _moved(self.layout, vertex) if operator in moves else None
            program = shared.get((operator, lifts)) if moved is not None else None
            layout = operator.layout
            if moved is None:
                layout = self.layout.part(name, layout.name)
            if program is None:
                try:
                    program = operator.compiled_as(
                        Place(site, derived, lifts),
                        operator.event.declared,
                        operator.emits.declared,
                        layout,
                        name if moved is None else None,
                    )
                except CompileError as error:
                    way_out = None if lifts or not operator.program.derived else _BEHIND
                    raise error.in_vertex(operator.name, name, graph.name, way_out) from None
                own = program.derived[len(derived) :]
                derived += tuple(self._of_source(source, one) for one in own)
                site += sum(len(one.text.splitlines()) for one in program.written.values())
                if not own:
                    shared[operator, lifts] = program
            if name in counting or any(one.stream in many for one in vertex.inputs):
                many.add(name)
            digest = hashlib.sha256(name.encode()).digest()
            self.vertices[name] = Planned(
                vertex,
                program,
                layout,
                moved,
                name in many,
                at[levels[name]] if name in counting else None,
                last,
                known,
                int.from_bytes(digest[:8], "little"),
            )
            if operator.is_interpreted:
                self.vertices[name] = self._in_python(self.vertices[name])
        self.event = replace(declared, derived=derived)
        self.emits = self._rows()
        for planned in self.vertices.values():
            self._check_texts(planned)

    def _in_python(self, planned: Planned) -> Planned:
        """A vertex with what is to be known where Python runs it."""

        def field(name: str | None) -> Field | None:
            return None if name is None else self.layout.field(name)

        inputs = []
        for one, last, known in zip(planned.inputs, planned.last, planned.known, strict=True):
            kept = {}
            for name, of in last.items():
                value = field(of.value)
                assert value is not None
                kept[name] = value, field(of.null)
            inputs.append(OfPython(one.name, one.columns, kept, field(known)))
        made = InterpretedVertex(
            planned.name,
            self.graph.name,
            planned.program,
            planned.layout,
            planned.emits,
            tuple(inputs),
            self.levels,
            self.graph.by_time,
            planned.salt,
        )
        return replace(planned, python=made)

    @property
    def in_python(self) -> tuple[InterpretedVertex, ...]:
        """The vertices that Python runs as they are written, by their numbers."""
        return tuple(one.python for one in self.vertices.values() if one.python is not None)

    def _check_texts(self, planned: Planned) -> None:
        """A formatted string has no text until its row leaves: nobody can read it before."""
        for one in planned.inputs:
            writer = self.vertices.get(one.stream)
            formed = {form.column for form in writer.program.forms} if writer else set()
            read = [name for name in one.columns.names if name in formed]
            if read:
                what = f"input {one.name!r} of vertex" if one.name else "vertex"
                self.graph.refuse(
                    f"{what} {planned.name!r} reads the column {read[0]!r}, in which vertex "
                    f"{one.stream!r} emits formatted strings",
                    "their texts are put together when rows leave by a sink: emit the parts in "
                    "columns of their own, and format them in the vertex before the sink",
                )

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

    # ---- events ----

    def column_of_event(self, source: str, name: str) -> str:
        """The column of the pipeline's events that a column of a source is."""
        return name if len(self.graph.sources) == 1 else column_of(source, name)

    def _events(self) -> Schema:
        phases = tuple(self.graph.sources) if self.graph.by_time else ()
        if len(self.graph.sources) == 1:
            return replace(next(iter(self.graph.sources.values())).columns, phases=phases)
        columns = {SOURCE: _NAME}
        for name, source in self.graph.sources.items():
            # Of another source's event they are null.
            columns |= {
                self.column_of_event(name, one): replace(column, nullable=True)
                for one, column in source.columns
            }
        required = tuple(
            (
                name,
                tuple(
                    self.column_of_event(name, one) for one, of in source.columns if not of.nullable
                ),
            )
            for name, source in self.graph.sources.items()
        )
        kinds = OneOf(SOURCE, required)
        return Schema(tuple(columns), tuple(columns.values()), one_of=kinds, phases=phases)

    def _of_source(self, source: str, derived: Derived) -> Derived:
        """A derived value with its inputs called as the pipeline's events have them."""

        def called(one: str | int) -> str | int:
            is_column = isinstance(one, str) and one != "timestamp"
            return self.column_of_event(source, str(one)) if is_column else one

        return replace(derived, inputs=tuple(map(called, derived.inputs)))

    # ---- rows ----

    def column_of_row(self, sink: str, name: str) -> str:
        """The column of the pipeline's rows that a column of a sink is."""
        return name if len(self.graph.sinks) == 1 else column_of(sink, name)

    def first_column(self, sink: Sink) -> int:
        """Which of the pipeline's columns of rows the first one of a sink is."""
        return self._places[self.column_of_row(sink.name, sink.columns.names[0])]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.emits.names)}

    def _forms(self, sink: Sink) -> tuple[Form, ...]:
        planned = self.vertices.get(sink.stream)
        return () if planned is None else planned.program.forms

    def first_form(self, sink: Sink) -> int:
        """Which of the pipeline's formatted strings the first one of a sink's stream is."""
        return self._first_forms[sink.name]

    @cached_property
    def _first_forms(self) -> dict[str, int]:
        counts = [len(self._forms(one)) for one in self.graph.sinks.values()]
        return dict(zip(self.graph.sinks, itertools.accumulate(counts, initial=0), strict=False))

    def _rows(self) -> Schema:
        sinks = self.graph.sinks.values()
        columns = {} if len(sinks) == 1 else {SINK: _NAME}
        forms: list[Form] = []
        for sink in sinks:
            for name, column in sink.columns:
                more = column if len(sinks) == 1 else replace(column, nullable=True)
                columns[self.column_of_row(sink.name, name)] = more
            forms += [
                replace(one, column=self.column_of_row(sink.name, one.column))
                for one in self._forms(sink)
            ]
        return Schema(tuple(columns), tuple(columns.values()), forms=tuple(forms))

    def described(self) -> str:
        """Everything about it that decides what machine code does, beside its vertices' code."""
        told = [repr((self.order, self.levels, [*self.graph.sources.values()]))]
        told += ["by time"] * self.graph.by_time
        for one in self.vertices.values():
            told.append(
                repr((one.name, one.inputs, one.emits, one.many, one.axis, one.last, one.known))
                + repr(one.moved)
            )
            told.append(one.program.fingerprint)
            if one.program.on_timer is not None:
                told.append(one.program.on_timer.fingerprint)
        told.append(repr([*self.graph.sinks.values()]))
        return "\n".join(told)


def _moves(own: Layout, uses: int) -> bool:
    """Whether vertices of an operator with such a state share its code. Where the containers are
    has to be read then, so that few vertices rather have code of their own."""
    if own.operations or own.timers or any(one.space == "locks" for one in own.fields):
        return False
    return not own.containers or uses > MOST_INLINED


def _moved(whole: Layout, vertex: Vertex) -> dict[str, int]:
    """How far the fields of a vertex are moved, which is all that sets them apart: in words by
    space; and its containers, by what :data:`BASES` tells of them."""
    own = vertex.operator.layout
    moved = {"state": 0, "scratch": 0, **dict.fromkeys(BASES, 0)}
    for one in reversed(own.fields):
        placed = whole.field(f"{vertex.name}.{one.name}")
        assert placed is not None
        moved[one.space] = placed.offset - one.offset
        if one.container is not None and placed.container is not None:
            # Regions begin with pages, and so lie in the same distances from each other.
            moved["region"] = placed.container.region - one.container.region
    if own.containers:
        part = whole.part(vertex.name, own.name)
        moved["header"] = moved["state"]
        moved["number"] = part.first_container
        moved["change"] = part.first_change_word - own.first_change_word
    return moved


Kept = tuple[tuple[dict[str, Last], ...], tuple[str | None, ...], dict[str, type | bool]]


def _kept(vertex: Vertex) -> Kept:
    """The fields that keep what a vertex reads of inputs that have no row: only one that has
    several inputs ever does."""
    if not vertex.operator.inputs:
        return ({},), (None,), {}
    read = vertex.operator.program.attributes
    lasts: list[dict[str, Last]] = []
    knowns: list[str | None] = []
    fields: dict[str, type | bool] = {}
    for one in vertex.inputs:
        last: dict[str, Last] = {}
        for name, column in one.columns:
            if column_of(one.name, name) not in read:
                continue
            value = f"{vertex.name}.{one.name}.{name}"
            fields[value] = TYPES[column.kind]
            null = f"{value}.null" if column.nullable else None
            if null is not None:
                fields[null] = True  # until there is a row
            last[name] = Last(value, null)
        known = f"{vertex.name}.{one.name}.known"
        asks = column_of("known", one.name) in read
        if asks:
            fields[known] = bool
        lasts.append(last)
        knowns.append(known if asks else None)
    return tuple(lasts), tuple(knowns), fields


def _layout_of(fields: Iterable[tuple[str, type | bool]]) -> Layout | None:
    """Scalars of these types; where there is a bool in place of a type, that to begin with."""
    declared = {
        name: scalar(bool, of) if isinstance(of, bool) else scalar(of) for name, of in fields
    }
    return Layout.pack("last values", declared) if declared else None
