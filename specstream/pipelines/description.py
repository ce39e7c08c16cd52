"""What a pipeline consists of, as plain data and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from specstream.pipelines.arrangement import at_most_one_row, several_rows
from specstream.pipelines.graph import Graph

__all__ = ["DescribedSink", "DescribedSource", "DescribedVertex", "Description", "described"]

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DescribedSource:
    """Where events come in.

    Attributes:
        name: of the source.
        columns: name and type.
    """

    name: str
    columns: Columns


@dataclass(frozen=True)
class DescribedVertex:
    """An operator in its place.

    Attributes:
        name: of the vertex.
        operator: name of the operator.
        number: its place in the order in which a phase runs them, sources included; from 1.
        level: vertices on the longest way from a source to it, itself counted.
        inputs: name of each input, empty where it has none, and what it reads.
        emits: name and type of the columns of its rows.
        at_most_one_row: whether one run of it emits one row at most, whatever comes.
        several_rows: whether there may be more than one row of it in a phase, perhaps because its
            inputs have more than one.
        state_words: of 8 bytes, that the fields of its state take, but for containers.
    """

    name: str
    operator: str
    number: int
    level: int
    inputs: tuple[tuple[str, str], ...]
    emits: Columns
    at_most_one_row: bool
    several_rows: bool
    state_words: int


@dataclass(frozen=True)
class DescribedSink:
    """Where rows leave.

    Attributes:
        name: of the sink.
        stream: the source or vertex whose rows it gets.
        columns: name and type.
    """

    name: str
    stream: str
    columns: Columns


@dataclass(frozen=True)
class Description:
    """What a pipeline consists of.

    ``str(...)`` gives it in words.

    Attributes:
        name: of the pipeline.
        sources: as they were declared.
        vertices: in the order in which a phase runs them.
        sinks: as they were declared.
        by_time: whether a phase is all events of one timestamp.
    """

    name: str
    sources: tuple[DescribedSource, ...]
    vertices: tuple[DescribedVertex, ...]
    sinks: tuple[DescribedSink, ...]
    by_time: bool = False

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join([f"pipeline {self.name!r}", *self.rows()])

    def rows(self) -> Iterator[str]:
        """The lines behind the first."""
        if self.by_time:
            yield "a phase is all events of one time"
        yield from ("", "sources")
        for source in self.sources:
            yield f"  {source.name}: {_columns(source.columns)}"
        yield from ("", "vertices, in the order in which a phase runs them")
        for vertex in self.vertices:
            of = "" if vertex.operator == vertex.name else f" ({vertex.operator})"
            reads = ", ".join(f"{one} = {of}" if one else of for one, of in vertex.inputs)
            yield f"  {vertex.number}. {vertex.name}{of}, level {vertex.level}, reads {reads}"
            rows = "at most one row in a phase"
            if vertex.several_rows:
                rows = "at most one row a run" if vertex.at_most_one_row else "several rows"
            words = f"{vertex.state_words:,} word{'' if vertex.state_words == 1 else 's'}"
            emits = f"{rows}: {_columns(vertex.emits)}" if vertex.emits else "nothing"
            yield f"       emits {emits}"
            yield f"       state of {words}"
        yield from ("", "sinks")
        for sink in self.sinks:
            yield f"  {sink.name}: of {sink.stream}: {_columns(sink.columns)}"


def _columns(columns: Columns) -> str:
    return ", ".join(f"{name} {of}" for name, of in columns) or "no columns"


def described(graph: Graph) -> Description:
    """What a graph consists of.

    Raises:
        DeclarationError: it is none that can be run.
    """
    order = graph.check()
    several, once = several_rows(graph), at_most_one_row(graph)
    levels = dict.fromkeys(graph.sources, 0)
    vertices = []
    for number, name in enumerate(order, start=1):
        if name in graph.sources:
            continue
        vertex = graph.vertices[name]
        levels[name] = 1 + max(levels[one.stream] for one in vertex.inputs)
        fields = vertex.operator.layout.fields
        vertices.append(
            DescribedVertex(
                name,
                vertex.operator.name,
                number,
                levels[name],
                tuple((one.name, one.stream) for one in vertex.inputs),
                tuple(vertex.operator.emits.describe()),
                name in once,
                name in several,
                sum(one.words for one in fields if one.space == "state" and one.container is None),
            )
        )
    return Description(
        graph.name,
        tuple(DescribedSource(n, tuple(of.columns.describe())) for n, of in graph.sources.items()),
        tuple(vertices),
        tuple(
            DescribedSink(n, of.stream, tuple(of.columns.describe()))
            for n, of in graph.sinks.items()
        ),
        graph.by_time,
    )
