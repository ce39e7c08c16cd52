"""A pipeline's graph: sources, vertices and sinks."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NoReturn

from specstream.compiler.language.hints import names_it_has
from specstream.compiler.phases.plan import Input, Sink, Source
from specstream.declarations.schema import Column, Schema
from specstream.definition.operator import Operator
from specstream.errors import DeclarationError
from specstream.pipelines.numbering import numbered

__all__ = ["Graph", "Vertex"]


@dataclass(frozen=True)
class Vertex:
    """An operator in its place.

    Attributes:
        name: of the vertex.
        operator: that runs in it.
        inputs: in the order in which the operator declares them.
    """

    name: str
    operator: Operator
    inputs: tuple[Input, ...]


@dataclass
class Graph:
    """All of it.

    Attributes:
        name: of the pipeline, for messages.
        sources: by name, in the order of their declaration, as are the others.
        by_time: a phase is all events of one timestamp.

    Who reads what is known of a graph that has been checked.
    """

    name: str
    sources: dict[str, Source] = field(default_factory=dict)
    vertices: dict[str, Vertex] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    by_time: bool = False
    _readers: dict[str, list[tuple[Vertex, int]]] = field(default_factory=dict, repr=False)
    _sinks_of: dict[str, list[Sink]] = field(default_factory=dict, repr=False)

    def refuse(self, problem: str, hint: str) -> NoReturn:
        """Raises DeclarationError."""
        raise DeclarationError(f"pipeline {self.name!r}: {problem}; {hint}")

    @property
    def names(self) -> Collection[str]:
        """Of sources and vertices, in this order."""
        return ChainMap[str, object](self.vertices, self.sources)  # type: ignore[arg-type]

    def columns(self, stream: str) -> Schema:
        """Columns of the rows that a source or a vertex sends."""
        if stream in self.sources:
            return self.sources[stream].columns
        return self.vertices[stream].operator.emits.declared

    def predecessors(self) -> dict[str, list[str]]:
        """Of each source and vertex."""
        found: dict[str, list[str]] = {name: [] for name in self.sources}
        for name, vertex in self.vertices.items():
            found[name] = [one.stream for one in vertex.inputs]
        return found

    def readers(self, stream: str) -> list[tuple[Vertex, int]]:
        """The vertices that read a stream, and which of their inputs do."""
        return self._readers.get(stream, [])

    def sinks_of(self, stream: str) -> list[Sink]:
        """The sinks that get a stream."""
        return self._sinks_of.get(stream, [])

    def _look(self) -> None:
        """Notes who reads what."""
        self._readers, self._sinks_of = defaultdict(list), defaultdict(list)
        for vertex in self.vertices.values():
            for number, one in enumerate(vertex.inputs):
                self._readers[one.stream].append((vertex, number))
        for sink in self.sinks.values():
            self._sinks_of[sink.stream].append(sink)

    # ---- checks ----

    def check_fits(self, vertex: str, one: Input) -> None:
        """Whether the columns of a stream are those that an input of a vertex declares."""
        has = dict(self.columns(one.stream))
        reader = _reader(vertex, one)
        producer = f"{'source' if one.stream in self.sources else 'vertex'} {one.stream!r}"
        for name, wanted in one.columns:
            column = has.get(name)
            if column is None:
                self.refuse(
                    f"{reader} reads the column {name!r}, which {producer} does not send",
                    names_it_has(name, has),
                )
            if not _fits(column, wanted):
                self.refuse(
                    f"{reader} reads the column {name!r} as {wanted}, and {producer} sends "
                    f"{column}",
                    "declare both alike" + _more(column, wanted),
                )

    def check(self) -> list[str]:
        """Looks at the whole of it; the order of the vertices' numbers.

        Raises:
            DeclarationError: names both ends of what does not fit.
        """
        self._look()
        if not self.sources:
            self.refuse("it has no source", 'expected p.source("name", {"column": type, ...})')
        if not self.sinks:
            self.refuse("it has no sink", 'expected p.sink("name", stream)')
        for name, vertex in self.vertices.items():
            for one in vertex.inputs:
                if one.stream not in self.names:
                    reader = _reader(name, one)
                    self.refuse(
                        f"{reader} reads {one.stream!r}, which is neither a source nor a vertex",
                        names_it_has(one.stream, self.names),
                    )
                self.check_fits(name, one)
        order = numbered(self.predecessors())
        if len(order) < len(self.names):
            self._refuse_cycle(set(order))
        self._check_ends(order)
        for name in self.names:
            # Who emits no columns is there for its state.
            if len(self.columns(name)) and not self.readers(name) and not self.sinks_of(name):
                what = "source" if name in self.sources else "vertex"
                self.refuse(
                    f"nobody reads {what} {name!r}",
                    f"let a vertex read it, add p.sink({name!r}, stream), or leave it out",
                )
        if self.by_time:
            self._check_of_phases()
        return order

    def _check_ends(self, order: list[str]) -> None:
        """Whether nobody waits for the end behind what speaks then: no timer that is set at the end
        fires."""
        speaks: dict[str, str] = {}
        for name in order:
            vertex = self.vertices.get(name)
            if vertex is None:
                continue
            before = next((speaks[one.stream] for one in vertex.inputs if one.stream in speaks), "")
            if before and vertex.operator.speaks_at_end:
                self.refuse(
                    f"vertex {name!r} waits for the end of the stream, and is behind vertex "
                    f"{before!r}, which sends its rows then",
                    "leave one of the two out, or let them read the same stream",
                )
            if before or vertex.operator.speaks_at_end:
                speaks[name] = before or name

    def _check_of_phases(self) -> None:
        """Whether nobody asks for what only an event has."""
        for name, vertex in self.vertices.items():
            operator = vertex.operator
            read = operator.explain().columns_read if operator.has_source else ()
            for one in ("source", "sequence"):
                if one in read:
                    self.refuse(
                        f'vertex {name!r} reads event.{one}, and with phases="time" a phase is '
                        "all events of one time, which may be of several sources",
                        "read event.timestamp, or a column that the events have",
                    )

    def _refuse_cycle(self, numbered: set[str]) -> NoReturn:
        before = self.predecessors()
        name = next(one for one in self.names if one not in numbered)
        way: list[str] = []
        while name not in way:
            way.append(name)
            name = next(one for one in before[name] if one not in numbered)
        circle = [*way[way.index(name) :], name][::-1]
        self.refuse(
            f"vertex {circle[-2]!r} reads what comes from itself: {' -> '.join(circle)}",
            "a phase goes from the sources to the sinks once; keep what is to come back in the "
            "state of one vertex",
        )


def _reader(vertex: str, one: Input) -> str:
    return f"input {one.name!r} of vertex {vertex!r}" if one.name else f"vertex {vertex!r}"


def _fits(column: Column, wanted: Column) -> bool:
    return column.reads_as(wanted) and (wanted.nullable or not column.nullable)


def _more(column: Column, wanted: Column) -> str:
    return f", like ss.nullable({column.kind})" if column.reads_as(wanted) else ""
