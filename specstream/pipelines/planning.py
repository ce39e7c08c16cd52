"""What a pipeline's graph comes to: one state, one kind of event, one kind of row, one order."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from specstream.compiler.backend.interpreted_vertex import Input as OfPython
from specstream.compiler.backend.interpreted_vertex import InterpretedVertex
from specstream.compiler.backend.numba_types import BASES
from specstream.compiler.driver import Place
from specstream.compiler.frontend.inputs import column_of
from specstream.compiler.frontend.program import Program
from specstream.compiler.phases.plan import (
    MOST_INLINED,
    SINK,
    SOURCE,
    TYPES,
    Last,
    Plan,
    Planned,
    column_among,
)
from specstream.declarations.derived import Derived
from specstream.declarations.forms import Form
from specstream.declarations.schema import Column, OneOf, Schema
from specstream.declarations.state_layout import Field, Layout, scalar
from specstream.definition.operator import Operator
from specstream.errors import CompileError
from specstream.pipelines.emissions import emits_at_most_once
from specstream.pipelines.graph import Graph, Vertex

__all__ = ["plan_of"]

_NAME = Column("str", pa.string())
_BEHIND = (
    "Python computes what depends on an event alone before a phase begins, of columns of a source: "
    "do it in a vertex with event= that reads a source, and emit what comes of it"
)


def plan_of(graph: Graph) -> Plan:
    """Looks at a graph, and plans what is made of it.

    Raises:
        DeclarationError: the graph cannot be run.
        CompileError: a vertex needs what only Python can compute, and its events are another
            vertex's rows.
    """
    order = graph.check()
    if len(graph.sources) > 1 and SOURCE in graph.sources:
        graph.refuse(
            f"a source is called {SOURCE!r}, as is the column that names the source of each "
            "event where there are several",
            "give it another name",
        )
    return _Planning(graph, order).plan()


@dataclass(frozen=True)
class _Kept:
    """What a vertex keeps of inputs that have no row.

    Attributes:
        last: of each input, the columns that are kept.
        known: of each input, the field that says whether it ever had a row; None: nobody asks.
        fields: of the state, with their types; a bool in place of one: what it is to begin with.
    """

    last: tuple[dict[str, Last], ...]
    known: tuple[str | None, ...]
    fields: dict[str, type | bool]


class _Planning:
    """What several vertices are planned with."""

    def __init__(self, graph: Graph, order: list[str]) -> None:
        self.graph, self.order = graph, order
        self.vertices = [graph.vertices[name] for name in order if name in graph.vertices]
        self.placed = dict.fromkeys(graph.sources, 0)
        for vertex in self.vertices:
            self.placed[vertex.name] = 1 + max(self.placed[one.stream] for one in vertex.inputs)
        operators = dict.fromkeys(one.operator for one in self.vertices)
        once = {operator for operator in operators if emits_at_most_once(operator)}
        self.counting = {one.name for one in self.vertices if one.operator not in once}
        self.of_time = set(graph.sources) if graph.by_time else set()
        self.counting |= self.of_time
        self.levels = tuple(sorted({self.placed[name] for name in self.counting}))
        self.kept = {vertex.name: _kept(vertex) for vertex in self.vertices}
        uses = Counter(vertex.operator for vertex in self.vertices)
        self.moves = {
            one for one in operators if not one.is_interpreted and _moves(one.layout, uses[one])
        }
        self.layout = Layout.joined(
            graph.name,
            {vertex.name: vertex.operator.layout for vertex in self.vertices},
            _layout_of([field for one in self.kept.values() for field in one.fields.items()]),
            len(BASES) if any(one.layout.containers for one in self.moves) else 0,
        )

    def plan(self) -> Plan:
        graph = self.graph
        declared = self._events()
        vertices: dict[str, Planned] = {}
        derived: tuple[Derived, ...] = ()
        shared: dict[tuple[Operator, bool], Program] = {}
        site = 1
        many = set(self.of_time)
        for vertex in self.vertices:
            name, operator = vertex.name, vertex.operator
            source = vertex.inputs[0].stream if not operator.inputs else ""
            stages = source in graph.sources
            moved = _moved(self.layout, vertex) if operator in self.moves else None
            program = shared.get((operator, stages)) if moved is not None else None
            layout = operator.layout
            if moved is None:
                layout = self.layout.part(name, layout.name)
            if program is None:
                program = self._compiled(
                    vertex, Place(site, derived, stages), layout, moved is None
                )
                own = program.derived[len(derived) :]
                derived += tuple(self._of_source(source, one) for one in own)
                site += sum(len(one.text.splitlines()) for one in program.written.values())
                if not own:
                    shared[operator, stages] = program
            if name in self.counting or any(one.stream in many for one in vertex.inputs):
                many.add(name)
            vertices[name] = self._planned(vertex, program, layout, moved, name in many)
        plan = Plan(
            graph.name,
            graph.sources,
            graph.by_time,
            vertices,
            graph.sinks,
            self.order,
            replace(declared, derived=derived),
            self._rows(vertices),
            self.layout,
            self.levels,
        )
        for planned in vertices.values():
            self._check_texts(plan, planned)
        return plan

    def _compiled(self, vertex: Vertex, place: Place, layout: Layout, has_own: bool) -> Program:
        """The function of a vertex's operator, rewritten for its place."""
        operator = vertex.operator
        try:
            return operator.compiled_as(
                place,
                operator.event.declared,
                operator.emits.declared,
                layout,
                vertex.name if has_own else None,
            )
        except CompileError as error:
            hint = None if place.stages or not operator.program.derived else _BEHIND
            raise error.in_vertex(operator.name, vertex.name, self.graph.name, hint) from None

    def _planned(
        self,
        vertex: Vertex,
        program: Program,
        layout: Layout,
        moved: dict[str, int] | None,
        is_many: bool,
    ) -> Planned:
        name, operator = vertex.name, vertex.operator
        kept = self.kept[name]
        axis = self.levels.index(self.placed[name]) if name in self.counting else None
        digest = hashlib.sha256(name.encode()).digest()
        planned = Planned(
            name,
            operator.name,
            vertex.inputs,
            dict(operator.inputs),
            operator.event.declared,
            operator.emits.declared,
            program,
            layout,
            moved,
            is_many,
            axis,
            kept.last,
            kept.known,
            int.from_bytes(digest[:8], "little"),
        )
        return self._in_python(planned) if operator.is_interpreted else planned

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

    def _check_texts(self, plan: Plan, planned: Planned) -> None:
        """A formatted string has no text until its row leaves: nobody can read it before."""
        for one in planned.inputs:
            writer = plan.vertices.get(one.stream)
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

    def _events(self) -> Schema:
        """Columns of the pipeline's events; times are those of all vertices, in one unit."""
        counting = {
            vertex.name: vertex.operator.event.counts_times
            for vertex in self.vertices
            if vertex.operator.event.counts_times
        }
        name = next(iter(counting), "")
        counts_times = f"vertex {name!r}: {counting[name]}" if name else ""
        return replace(self._columns(), time_unit=self._time_unit(), counts_times=counts_times)

    def _time_unit(self) -> str | None:
        """That in which the vertices count times; None: none says it.

        Raises:
            DeclarationError: they say several.
        """
        units = {
            vertex.operator.event.time_unit: vertex.name
            for vertex in self.vertices
            if vertex.operator.event.time_unit is not None
        }
        if len(units) > 1:
            (one, first), (other, second), *_ = units.items()
            self.graph.refuse(
                f"vertex {first!r} counts times in time_unit={one!r}, and vertex {second!r} in "
                f"{other!r}",
                "all vertices of a pipeline have one order column: declare the same unit for both, "
                "and change the numbers of one",
            )
        return next(iter(units), None)

    def _columns(self) -> Schema:
        phases = tuple(self.graph.sources) if self.graph.by_time else ()
        if len(self.graph.sources) == 1:
            return replace(next(iter(self.graph.sources.values())).columns, phases=phases)
        columns = {SOURCE: _NAME}
        for name, source in self.graph.sources.items():
            # Of another source's event they are null.
            columns |= {
                column_among(self.graph.sources, name, one): replace(column, nullable=True)
                for one, column in source.columns
            }
        required = tuple(
            (
                name,
                tuple(
                    column_among(self.graph.sources, name, one)
                    for one, of in source.columns
                    if not of.nullable
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
            return column_among(self.graph.sources, source, str(one)) if is_column else one

        return replace(derived, inputs=tuple(map(called, derived.inputs)))

    def _rows(self, vertices: dict[str, Planned]) -> Schema:
        sinks = self.graph.sinks.values()
        is_only = len(sinks) == 1
        columns = {} if is_only else {SINK: _NAME}
        forms: list[Form] = []
        for sink in sinks:
            names = {
                one: column_among(self.graph.sinks, sink.name, one) for one in sink.columns.names
            }
            for name, column in sink.columns:
                columns[names[name]] = column if is_only else replace(column, nullable=True)
            planned = vertices.get(sink.stream)
            of_stream = () if planned is None else planned.program.forms
            forms += [replace(one, column=names[one.column]) for one in of_stream]
        return Schema(tuple(columns), tuple(columns.values()), forms=tuple(forms))


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


def _kept(vertex: Vertex) -> _Kept:
    """The fields that keep what a vertex reads of inputs that have no row: only one that has
    several inputs ever does."""
    if not vertex.operator.inputs:
        return _Kept(({},), (None,), {})
    if vertex.operator.reads_rows_only:
        count = len(vertex.inputs)
        return _Kept(({},) * count, (None,) * count, {})
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
    return _Kept(tuple(lasts), tuple(knowns), fields)


def _layout_of(fields: Iterable[tuple[str, type | bool]]) -> Layout | None:
    """Scalars of these types; where there is a bool in place of a type, that to begin with."""
    declared = {
        name: scalar(bool, of) if isinstance(of, bool) else scalar(of) for name, of in fields
    }
    return Layout.pack("last values", declared) if declared else None
