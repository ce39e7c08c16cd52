"""What :meth:`specstream.Pipeline.explain` returns: a pipeline in words, vertex by vertex."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from specstream.compiler.frontend.inputs import ASKED, column_of
from specstream.declarations.schema import EVENT_ATTRIBUTES, Schema
from specstream.definition.accesses import Access
from specstream.definition.explanation import (
    Explanation,
    FieldUse,
    PossibleConflict,
    Source,
    prefixed,
)
from specstream.pipelines.description import Description, described
from specstream.pipelines.graph import Graph, Vertex

__all__ = ["LastValue", "PipelineExplanation", "explained_pipeline"]

_USES = ("read", "written", "updated", "operated", "locked")
_CONFLICTS = "what could conflict"


@dataclass(frozen=True)
class LastValue:
    """What is kept of an input, because its vertex also runs when that has no row.

    A phase with a row of the input writes it; a later phase without one reads it, and has to be
    repeated where it did so too early.

    Attributes:
        vertex: that has the input.
        input: its name.
        stream: that it reads.
        fields: of the pipeline's state.
    """

    vertex: str
    input: str
    stream: str
    fields: tuple[str, ...]

    def __str__(self) -> str:
        what = "it" if len(self.fields) == 1 else "them"
        return (
            f"a phase with a row of {self.stream} writes {', '.join(self.fields)}, a later one in "
            f"which {self.vertex} runs without such a row may read {what}"
        )


@dataclass(frozen=True, kw_only=True)
class PipelineExplanation(Explanation):
    """A pipeline in words.

    It is an :class:`Explanation` of all of it, in which fields are called ``vertex.field``, and
    beside that tells of each vertex.

    Attributes:
        description: sources, vertices and sinks.
        vertices: of each vertex by name, its operator's explanation, with these names of fields.
        last_values: of inputs.

    >>> import specstream as ss
    >>> class Mean(ss.State):
    ...     sum = ss.scalar(float)
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Mean, event={"price": float}, emits={"mean": float})
    ... def average(state, event, emit):
    ...     state.sum += event.price
    ...     state.count += 1
    ...     emit(state.sum / state.count)
    >>> p = ss.Pipeline("means")
    >>> p.sink("all", p.add(average, p.source("ticks", {"price": float}), name="slow"))
    >>> [field.name for field in p.explain().fields]
    ['slow.sum', 'slow.count']
    >>> print(p.explain().conflicts[0].text.partition(":")[0])
    one writes slow.sum (line 3), a later one reads slow.sum (line 3)
    """

    description: Description
    vertices: Mapping[str, Explanation]
    last_values: tuple[LastValue, ...]

    def __str__(self) -> str:
        rows = [str(self.description)]
        shown: dict[tuple[Source, ...], str] = {}
        for name, of in self.vertices.items():
            rows += ["", f"vertex {name!r}: operator {of.operator!r}"]
            if of.functions in shown:
                rows += ["", f"the functions of vertex {shown[of.functions]!r}"]
            else:
                shown[of.functions] = name
                for source in of.functions:
                    rows += ["", source.filename, source.numbered()]
            for title, lines in of.sections():
                if not title.startswith(_CONFLICTS):
                    rows += ["", title, *(f"  {line}" for line in lines)]
        rows += ["", f"{_CONFLICTS}, of an earlier and a later phase that run at once"]
        rows += [f"  {line}" for line in self._told()]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        parts = [f"<pre>{html.escape(str(self.description))}</pre>"]
        for name, of in self.vertices.items():
            parts.append(
                f"<details><summary>vertex <code>{html.escape(name)}</code></summary>"
                f"{of._repr_html_()}</details>"
            )
        items = "".join(f"<li>{html.escape(line)}</li>" for line in self._told())
        parts.append(f"<h5>{_CONFLICTS} between phases</h5><ul>{items}</ul>")
        return "".join(parts)

    def _told(self) -> Iterator[str]:
        for conflict in self.conflicts:
            yield conflict.text
        for last in self.last_values:
            yield str(last)
        if not self.conflicts and not self.last_values:
            yield "nothing: no phase needs what another one changes"


def explained_pipeline(graph: Graph) -> PipelineExplanation:
    """A pipeline in words, from its graph and the syntax of its operators alone.

    Raises:
        DeclarationError: the graph cannot be run.
    """
    description = described(graph)
    vertices = {
        one.name: _of_vertex(graph, graph.vertices[one.name]) for one in description.vertices
    }
    accesses: list[Access] = []
    fields: list[FieldUse] = []
    conflicts: list[PossibleConflict] = []
    for of in vertices.values():
        behind = len(accesses)
        accesses += of.accesses
        fields += [_behind(field, behind) for field in of.fields]
        conflicts += [
            replace(one, earlier=one.earlier + behind, later=one.later + behind)
            for one in of.conflicts
        ]
    functions = dict.fromkeys(one for of in vertices.values() for one in of.functions)
    sources = {name: of.columns for name, of in graph.sources.items()}
    return PipelineExplanation(
        operator=graph.name,
        functions=tuple(functions),
        staged=tuple(text for of in vertices.values() for text in of.staged),
        event=_columns(sources),
        columns_read=tuple(dict.fromkeys(_columns_read(graph, vertices))),
        emits=_columns({name: of.columns for name, of in graph.sinks.items()}),
        fields=tuple(fields),
        accesses=tuple(accesses),
        conflicts=tuple(conflicts),
        description=description,
        vertices=vertices,
        last_values=tuple(
            last for name, of in vertices.items() for last in _last_values(graph.vertices[name], of)
        ),
    )


def _of_vertex(graph: Graph, vertex: Vertex) -> Explanation:
    found = prefixed(vertex.operator.explain(), f"{vertex.name}.")
    # Python sees the events of sources alone before the pipeline runs.
    stages = not vertex.operator.inputs and vertex.inputs[0].stream in graph.sources
    return found if stages else replace(found, staged=())


def _behind(field: FieldUse, count: int) -> FieldUse:
    moved: dict[str, Any] = {use: tuple(at + count for at in getattr(field, use)) for use in _USES}
    return replace(field, **moved)


def _columns(of: Mapping[str, Schema]) -> tuple[tuple[str, str], ...]:
    """As the pipeline's own tables have them."""
    one = len(of) == 1
    return tuple(
        (column if one else column_of(name, column), text)
        for name, schema in of.items()
        for column, text in schema.describe()
    )


def _columns_read(graph: Graph, vertices: Mapping[str, Explanation]) -> Iterator[str]:
    one = len(graph.sources) == 1
    for name, of in vertices.items():
        inputs = {each.name: each.stream for each in graph.vertices[name].inputs}
        for column in of.columns_read:
            if column in EVENT_ATTRIBUTES:
                yield column
                continue
            port, dot, rest = column.partition(".")
            stream = inputs.get(port if dot else "")
            if stream in graph.sources:
                own = rest if dot else column
                yield own if one else column_of(str(stream), own)


def _last_values(vertex: Vertex, of: Explanation) -> Iterator[LastValue]:
    if len({one.stream for one in vertex.inputs}) == 1:
        return  # one row for all inputs, or none
    for one in vertex.inputs:
        read = [name for name in one.columns.names if column_of(one.name, name) in of.columns_read]
        read += [ASKED[1]] * (column_of(ASKED[1], one.name) in of.columns_read)
        if read:
            fields = tuple(f"{vertex.name}.{one.name}.{name}" for name in read)
            yield LastValue(vertex.name, one.name, one.stream, fields)
