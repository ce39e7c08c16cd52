"""The pipeline, as a user declares it; to all else it is an operator."""

from __future__ import annotations

import os
import types
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from specstream.compiler.frontend.program import CompiledOperation, Program, Written
from specstream.compiler.phases.functions import phase_functions
from specstream.compiler.phases.plan import SINK, SOURCE, Input, Plan, Sink, Source
from specstream.compiler.phases.waiting import MOST_VERTICES
from specstream.declarations.options import one_of, refused, refuses_unknown, shown, text
from specstream.declarations.record_types import Record
from specstream.declarations.schema import Schema
from specstream.definition.operator import Operator
from specstream.errors import DeclarationError, InputError
from specstream.files.writing import writing
from specstream.pipelines.arrangement import arranged
from specstream.pipelines.description import Description, described
from specstream.pipelines.drawing import svg, to_dot
from specstream.pipelines.explanation import PipelineExplanation, explained_pipeline
from specstream.pipelines.graph import Graph, Vertex
from specstream.pipelines.interpreted_vertices import InterpretedVertices, Recorded
from specstream.pipelines.oracle import phase_oracle, timer_oracle
from specstream.pipelines.planning import plan_of
from specstream.pipelines.stream import Stream, ZippedStreams
from specstream.pipelines.tables import by_sink, events_table

__all__ = ["Pipeline"]

# Boxes of a picture in a notebook.
_MOST_SHOWN = 200


# What an engine's state has beside fields and vertices.
_TAKEN = ("table", "to_dict")


class Pipeline(Operator):
    """A graph of operators that feed each other, with the answer of one phase after the other.

    A phase is one event on its way from its source to the sinks. In it a vertex runs when at least
    one of its inputs has a row, and not at all otherwise. An input without a row has the values of
    its last one; the operator can ask, with ``event.changed("input")`` and
    ``event.known("input")``. After Zimmerman and Chandy, *A Parallel Algorithm for Correlating
    Event Streams*.

    Everything that takes an operator takes a pipeline. Its graph is fixed from the first use on.

    Args:
        name: used in messages, and in checkpoints.
        phases: what a phase is: "event", or "time": all events of one timestamp, of all sources,
            together. That needs frontiers (:meth:`specstream.Engine.submit`), a watermark, or a
            table that is known to be whole.

    Raises:
        DeclarationError: from the methods, and with the first use: names both ends of what does
            not fit.

    >>> import specstream as ss
    >>> class Mean(ss.State):
    ...     sum = ss.scalar(float)
    ...     count = ss.scalar(int)
    >>> class Seen(ss.State):
    ...     alerts = ss.scalar(int)
    >>> @ss.operator(state=Mean, event={"price": float}, emits={"mean": float})
    ... def average(state, event, emit):
    ...     state.sum += event.price
    ...     state.count += 1
    ...     emit(state.sum / state.count)
    >>> @ss.operator(
    ...     state=Seen,
    ...     inputs={"tick": {"price": float}, "mean": {"mean": float}},
    ...     emits={"price": float, "mean": float},
    ... )
    ... def above(state, event, emit):
    ...     if event.tick.price > 1.5 * event.mean.mean:
    ...         state.alerts += 1
    ...         emit(event.tick.price, event.mean.mean)
    >>> p = ss.Pipeline("alerts")
    >>> ticks = p.source("ticks", {"price": float})
    >>> p.sink("alerts", p.add(above, tick=ticks, mean=p.add(average, ticks)))
    >>> with ss.Engine(p, threads=2) as engine:
    ...     engine.process({"price": [1.0, 1.0, 4.0]}).to_pylist()
    [{'price': 4.0, 'mean': 2.0}]
    """

    @refuses_unknown
    def __init__(self, name: str, *, phases: Literal["event", "time"] = "event") -> None:
        if not text("name", name, "a text", DeclarationError):
            raise refused("name", name, "a text", DeclarationError)
        one_of("phases", phases, ("event", "time"), DeclarationError)
        self._begin(name, phases == "time")

    def _begin(self, name: str, by_time: bool) -> None:
        """Without sources, vertices and sinks."""
        self._graph = Graph(name, by_time=by_time)
        self._settled: Plan | None = None
        self._program: Program | None = None
        self.name = name
        self.function = None  # type: ignore[assignment]
        self.on_timer = None
        self.inputs = {}

    def __getstate__(self) -> dict[str, Any]:
        # The graph as it was declared; its operators travel by value.
        graph = self._graph
        return {
            "name": self.name,
            "by_time": graph.by_time,
            "sources": {one.name: one.columns for one in graph.sources.values()},
            "vertices": [
                (one.name, one.operator, {of.name: of.stream for of in one.inputs})
                for one in graph.vertices.values()
            ],
            "sinks": {one.name: one.stream for one in graph.sinks.values()},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin(state["name"], state.get("by_time", False))
        for name, columns in state["sources"].items():
            self._graph.sources[name] = Source(name, columns)
        for name, operator, streams in state["vertices"]:
            if operator.inputs:
                self.add(operator, name=name, **streams)
            else:
                self.add(operator, *streams.values(), name=name)
        for name, stream in state["sinks"].items():
            self.sink(name, stream)

    def __repr__(self) -> str:
        graph = self._graph
        counts = [
            f"{len(of)} {one if len(of) == 1 else more}"
            for of, one, more in (
                (graph.sources, "source", "sources"),
                (graph.vertices, "vertex", "vertices"),
                (graph.sinks, "sink", "sinks"),
            )
        ]
        return f"Pipeline({self.name!r}: {', '.join(counts)})"

    # ---- declaration ----

    def source(self, name: str, columns: Record) -> Stream:
        """Where events come in.

        Args:
            name: of the source.
            columns: of its events, as of :func:`specstream.operator`.
        """
        self._new(name, "source")
        schema = Schema.of(columns, "event")
        if not len(schema):
            self._graph.refuse(f"source {name!r} has no columns", "declare at least one")
        self._graph.sources[name] = Source(name, schema)
        return self._stream(name)

    @refuses_unknown
    def add(
        self,
        operator: Operator,
        /,  # whatever the inputs of operators are called
        *stream: Stream | str,
        name: str | None = None,
        **streams: Stream | str,
    ) -> Stream:
        """A vertex: an operator that reads streams.

        Args:
            operator: made by :func:`specstream.operator`.
            stream: what it reads, if it is declared with ``event=``: the stream, or the name of a
                source or vertex, which may be declared later.
            name: of the vertex; by default the operator's.
            streams: of an operator that is declared with ``inputs=``, what each input reads.

        Returns:
            The stream of the rows that it emits.
        """
        if not isinstance(operator, Operator) or isinstance(operator, Pipeline):
            found = f"pipeline {operator.name!r}" if isinstance(operator, Pipeline) else None
            self._graph.refuse(
                f"add takes an operator, and gets {found or shown(operator)}",
                "expected what @ss.operator(...) has made",
            )
        name = operator.name if name is None else name
        self._new(name, "vertex")
        if len(self._graph.vertices) == MOST_VERTICES:
            self._graph.refuse(
                f"vertex {name!r} is one too many: it has {MOST_VERTICES} already",
                "divide it into several pipelines",
            )
        what = f"vertex {name!r}"
        if not operator.inputs:
            if len(stream) != 1 or streams:
                self._graph.refuse(
                    f"{what} reads one stream, and gets {len(stream) + len(streams)}"
                    + (" by name" if streams else ""),
                    f"write p.add({operator.name}, stream)",
                )
            given = {"": (stream[0], operator.event.declared)}
        else:
            missing = [one for one in operator.inputs if one not in streams]
            extra = [one for one in streams if one not in operator.inputs]
            if stream or missing or extra:
                problems = [f"nothing for input {missing[0]!r}"] if missing else []
                problems += (
                    [f"a stream for {extra[0]!r}, which is none of its inputs"] if extra else []
                )
                problems += ["a stream without the name of an input"] if stream else []
                ways = ", ".join(f"{one}=stream" for one in operator.inputs)
                self._graph.refuse(
                    f"{what} gets {' and '.join(problems)}", f"write p.add({operator.name}, {ways})"
                )
            given = {one: (streams[one], of) for one, of in operator.inputs.items()}
        inputs = tuple(
            Input(one, columns, self._name_of(of, f"input {one!r} of {what}" if one else what))
            for one, (of, columns) in given.items()
        )
        self._graph.vertices[name] = Vertex(name, operator, inputs)
        for one in inputs:
            if one.stream in self._graph.names and one.stream != name:
                try:
                    self._graph.check_fits(name, one)
                except DeclarationError:
                    del self._graph.vertices[name]
                    raise
        return self._stream(name)

    def sink(self, name: str, stream: Stream | str) -> None:
        """Where rows leave.

        Args:
            name: of the sink.
            stream: whose rows it gets.
        """
        self._check_open()
        if not isinstance(name, str) or not name.isidentifier():
            self._graph.refuse(f"a sink is called {shown(name)}", "expected a Python identifier")
        if name in self._graph.sinks:
            other = self._graph.sinks[name].stream
            self._graph.refuse(
                f"there are two sinks {name!r}, of {other!r} and of "
                f"{self._name_of(stream, f'sink {name!r}')!r}",
                "rename one",
            )
        of = self._name_of(stream, f"sink {name!r}")
        if of not in self._graph.names:
            self._graph.refuse(
                f"sink {name!r} gets {of!r}, which is neither a source nor a vertex",
                "declare that first",
            )
        columns = self._graph.columns(of)
        if not len(columns):
            self._graph.refuse(
                f"sink {name!r} gets {of!r}, which emits no columns",
                "declare emits= of its operator",
            )
        self._graph.sinks[name] = Sink(name, of, columns)

    def _check_open(self) -> None:
        if self._settled is not None:
            self._graph.refuse("it is in use, and its graph is settled", "make a new pipeline")

    def _new(self, name: object, what: str) -> None:
        self._check_open()
        if not isinstance(name, str) or not name.isidentifier():
            way = ': give name=, like p.add(operator, stream, name="fast")'
            self._graph.refuse(
                f"a {what} is called {shown(name)}",
                f"expected a Python identifier{way if what == 'vertex' else ''}",
            )
        if what == "vertex" and name in _TAKEN:
            self._graph.refuse(
                f"vertex {name!r} has the name of something that engine.state has",
                "give it another, with name=",
            )
        if name in self._graph.names:
            other = "source" if name in self._graph.sources else "vertex"
            self._graph.refuse(
                f"{what} {name!r} has the name of a {other} that is there already",
                f"give it another{', with name=' if what == 'vertex' else ''}",
            )

    def _stream(self, name: str) -> Stream:
        return Stream(self.name, name, self._graph.columns(name), self._graph, self)

    def _name_of(self, stream: object, reader: str) -> str:
        if isinstance(stream, str):
            return stream
        if not isinstance(stream, Stream):
            if isinstance(stream, ZippedStreams):
                self._graph.refuse(
                    f"{reader} gets streams side by side", "call map, filter or rows of zip(...)"
                )
            self._graph.refuse(
                f"{reader} gets {shown(stream)}",
                "expected a stream, as source() and add() return it, or the name of one",
            )
        if stream.graph is not self._graph:
            self._graph.refuse(
                f"{reader} gets the stream {stream.name!r} of pipeline {stream.pipeline!r}",
                "streams belong to one pipeline: declare it here as well",
            )
        return stream.name

    # ---- what one looks at ----

    def describe(self) -> Description:
        """What it consists of: sources with their columns, vertices with their operators, numbers
        and inputs, sinks.

        Returns:
            What ``print`` shows in words, and ``to_dict()`` gives as data.

        Raises:
            DeclarationError: the graph cannot be run.
        """
        return described(self._graph)

    def explain(self) -> PipelineExplanation:
        """The pipeline in words: the graph, each vertex as :meth:`Operator.explain` describes it,
        and what could conflict between phases. Fields are called ``vertex.field``.

        It is found from the syntax alone: nothing runs, nothing is compiled.

        Raises:
            DeclarationError: the graph cannot be run.
        """
        return explained_pipeline(self._graph)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz, also of one that is not finished.

        >>> import specstream as ss
        >>> p = ss.Pipeline("raw")
        >>> p.sink("all", p.source("ticks", {"price": float}))
        >>> print(p.to_dot())
        digraph "raw" {
          rankdir=LR;
          node [fontname=monospace];
          edge [fontname=monospace];
          "ticks" [shape=oval, label="ticks\\nprice: float"];
          "sink all" [shape=house, orientation=270, label="all"];
          "ticks" -> "sink all";
        }
        <BLANKLINE>
        """
        return to_dot(self._graph)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draws the graph into a file, also one that is not finished; the picture then says what is
        wrong.

        From left to right: sources, with round ends; vertices, in the order of the longest way from
        a source, with the names of their inputs where the lines arrive; sinks, which point to the
        right. A thick line may carry more than one row in a phase.

        Args:
            path: the file; its ending says the format: ``.svg``, ``.dot`` or ``.gv``, or whatever
                matplotlib knows (``.png``, ``.pdf``).

        Raises:
            ImportError: the format is one for matplotlib, which is not installed.
            OSError: it cannot be written; the error names the file.
        """
        path = Path(path)
        if path.suffix in (".svg", ".dot", ".gv"):
            text = svg(arranged(self._graph)) if path.suffix == ".svg" else self.to_dot()
            with writing(path):
                path.write_text(text, encoding="utf-8")
            return
        try:
            from specstream.pipelines.picture import save_picture
        except ImportError as missing:
            raise ImportError(
                f"drawing a pipeline into {str(path)!r} needs {missing.name}: pip install "
                '"specstream[plot]", or take a name that ends in .svg or .dot'
            ) from missing
        save_picture(arranged(self._graph), path)

    def _repr_svg_(self) -> str | None:
        if len([*self._graph.names, *self._graph.sinks]) > _MOST_SHOWN:
            return None  # the text, then
        return svg(arranged(self._graph))

    # ---- what it is as an operator ----

    @property
    def plan(self) -> Plan:
        """What runs the graph, which is fixed from now on."""
        if self._settled is None:
            self._settled = plan_of(self._graph)
        return self._settled

    @property
    def layout(self) -> Any:  # type: ignore[override]
        """Where the fields of its state lie."""
        return self.plan.layout

    @property
    def event(self) -> Schema:  # type: ignore[override]
        """Columns of its events."""
        return self.plan.event

    @property
    def emits(self) -> Schema:  # type: ignore[override]
        """Columns of its rows."""
        return self.plan.emits

    def events_table(
        self, data: Any, what: str, more: Sequence[str | None], source: object = None
    ) -> pa.Table:
        """The table of events that a user's data are.

        Args:
            data: as for :meth:`specstream.Engine.process`.
            what: the pipeline, in errors.
            more: names of the columns of times and of sources, if they are read.
            source: what all rows are of, where somebody says so.
        """
        by_time = self.program.reads_timestamp
        return events_table(self.plan, data, what, more, source, by_time)

    def source_column(self, given: str | None) -> str | None:
        """The column that names each event's source; with several sources it breaks ties in time.

        Args:
            given: as somebody says; None: nobody does.
        """
        return SOURCE if given is None and len(self._graph.sources) > 1 else given

    def event_values(self, source: object, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """One event's values: of several sources' columns those of the others are null.

        Args:
            source: that it is of.
            values: by the names of that source's columns, or as events are inside.
        """
        sources = self._graph.sources
        if len(sources) == 1 or SOURCE in values:
            return values
        if source not in sources:
            raise InputError(
                f"pipeline {self.name!r}: an event of {shown(source)}, which is none of its "
                f"sources: it has {', '.join(sources)}"
            )
        name, own = str(source), self.values_of(source, values)
        return {SOURCE: name, **dict.fromkeys(self.plan.event.names[1:]), **own}

    def values_of(self, source: object, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Some values of an event, by the names of its source's columns, as events are inside."""
        if len(self._graph.sources) == 1:
            return values
        plan, name = self.plan, str(source)
        return {plan.column_of_event(name, one): value for one, value in values.items()}

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """Names of its sources, and of their columns."""
        return {name: of.columns.names for name, of in self._graph.sources.items()}

    @property
    def sinks(self) -> tuple[str, ...]:
        """Names of its sinks."""
        return tuple(self._graph.sinks)

    def rows(self, table: pa.Table) -> Any:
        """Emitted rows as a user gets them: of several sinks a table each, by name.

        Args:
            table: of all of them.
        """
        return by_sink(table)

    @property
    def calls_python(self) -> bool:
        """Whether Python runs some of its vertices as they are written."""
        return any(one.operator.is_interpreted for one in self._graph.vertices.values())

    @property
    def speculates(self) -> bool:  # type: ignore[override]
        """Whether events may run ahead of their turn: those of all vertices may."""
        return all(one.operator.speculates for one in self._graph.vertices.values())

    @property
    def program(self) -> Program:  # type: ignore[override]
        """All of its vertices as one."""
        if self._program is None:
            self._program = _program(self.plan)
        return self._program


def _program(plan: Plan) -> Program:
    programs = {name: one.program for name, one in plan.vertices.items()}
    native, timer = phase_functions(plan)
    several = [
        *((SOURCE, *plan.sources) if len(plan.sources) > 1 else ()),
        *((SINK, *plan.sinks) if len(plan.sinks) > 1 else ()),
    ]
    strings = [one for of in programs.values() for one in of.strings]
    operations: list[CompiledOperation] = []
    for name, of in programs.items():
        operations += [_renamed(one, name) for one in of.operations]
    return Program(
        operator=plan.pipeline,
        oracle=phase_oracle(plan),
        native=native,
        helpers=tuple(dict.fromkeys(one for of in programs.values() for one in of.helpers)),
        strings=tuple(dict.fromkeys((*plan.layout.strings, *strings, *several))),
        fingerprint=plan.described(),
        reads_timestamp=any(of.reads_timestamp for of in programs.values()),
        attributes=frozenset().union(*(of.attributes for of in programs.values())),
        written=_written(programs),
        operations=tuple(operations),
        catches=any(of.catches for of in programs.values()),
        derived=plan.event.derived,
        forms=plan.emits.forms,
        uses_arena=any(of.uses_arena for of in programs.values())
        or any(one.many for one in plan.vertices.values()),
        reads_frozen=any(of.reads_frozen for of in programs.values()),
        calls_python=bool(plan.in_python),
        beside=partial(_beside, plan) if plan.in_python else None,
        on_timer=None if timer is None else _timer_program(plan, timer),
    )


def _beside(plan: Plan, words: Any, sent: Any) -> InterpretedVertices | Recorded:
    """The interpreted vertices in the oracle: over a state, or what they have sent before."""
    return (
        InterpretedVertices(plan.in_python, plan.layout, words) if sent is None else Recorded(sent)
    )


def _timer_program(plan: Plan, native: Any) -> Program:
    """What runs when the timer of a vertex fires: a phase of its own."""
    fired = {name: plan.vertices[name].program.on_timer for name in plan.timed}
    behind = {name: plan.vertices[name].program for name in plan.behind_timers}
    programs = [one for one in (*fired.values(), *behind.values()) if one is not None]
    return Program(
        operator=plan.pipeline,
        oracle=timer_oracle(plan),
        native=native,
        helpers=tuple(dict.fromkeys(one for of in programs for one in of.helpers)),
        strings=(),
        fingerprint=f"timers\n{plan.described()}",
        reads_timestamp=True,
        written=_written({name: of for name, of in fired.items() if of is not None}),
        catches=any(of.catches for of in programs),
        uses_arena=True,
        reads_frozen=any(of.reads_frozen for of in programs),
        calls_python=bool(plan.in_python),
        is_on_timer=True,
        event=programs[0].event,
    )


def _written(programs: Mapping[str, Program]) -> dict[types.FunctionType, Written]:
    """The functions of all vertices, each called ``vertex.function``.

    They are copies: two vertices may have the same ones, with lines that are counted apart.
    """
    found = {}
    for vertex, of in programs.items():
        for function, one in of.written.items():
            copy = types.FunctionType(
                function.__code__,
                function.__globals__,
                f"{vertex}.{function.__name__}",
                function.__defaults__,
                function.__closure__,
            )
            found[copy] = one
    return found


def _renamed(one: CompiledOperation, vertex: str) -> CompiledOperation:
    return CompiledOperation(
        f"{vertex}.{one.field}", one.declared, one.native, one.inverse, one.oracle
    )
