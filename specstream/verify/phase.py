"""A phase of a pipeline over unknown values: its vertices, one after the other.

What happens in a phase is said once, by :mod:`specstream.pipelines.oracle`; here is what rows,
events and nulls are. Whether a vertex has a row is known on each path, as its function forks.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from specstream.columns.strings import string_code
from specstream.compiler.frontend.program import Program
from specstream.compiler.phases.plan import SINK, SOURCE, Plan, Sink
from specstream.declarations.schema import Column, Schema
from specstream.definition.operator import Operator
from specstream.pipelines.oracle import Path, VertexRun, VertexState, Words, phase_oracle
from specstream.pipelines.pipeline import Pipeline
from specstream.verify.elements import load, term_of
from specstream.verify.events import Emit, Event, Row, column_storage
from specstream.verify.library import meaning
from specstream.verify.paths import path
from specstream.verify.values import Bool, String, bits, truth

__all__ = ["function_of", "of_one_source", "programs_of"]


def function_of(operator: Operator) -> Callable[[Any, Any, Any], None]:
    """What an event does to an unknown state: of an operator, or a phase of a pipeline."""
    if isinstance(operator, Pipeline):
        return phase_oracle(operator.plan, _Terms())
    return operator.program.oracle_over(meaning)


def programs_of(operator: Operator) -> list[Program]:
    """Its program, or of a pipeline those of its vertices."""
    if isinstance(operator, Pipeline):
        return [one.program for one in operator.plan.vertices.values()]
    return [operator.program]


def of_one_source(operator: Operator, event: Event) -> list[Any]:
    """What holds of every event of a pipeline with several sources: it is of one of them, and
    columns of the others are null."""
    if not isinstance(operator, Pipeline) or len(operator.plan.sources) == 1:
        return []
    plan = operator.plan
    facts = [z3.Or(*(event.terms[SOURCE] == string_code(name) for name in plan.sources))]
    for source, of in plan.sources.items():
        is_of = event.terms[SOURCE] == string_code(source)
        for name, column in of.columns:
            null = event.terms.get(f"{plan.column_of_event(source, name)}?")
            if null is None:
                continue
            facts.append(z3.Implies(z3.Not(is_of), null))
            if not column.nullable:
                facts.append(z3.Implies(is_of, z3.Not(null)))
    return facts


class _VertexEvent:
    """What a vertex reads: its columns, which are there or kept, else the event itself."""

    def __init__(self, whole: Any, values: dict[str, Any], nulls: set[str]) -> None:
        vars(self).update(_whole=whole, _values=values, _nulls=nulls)

    def null_of(self, name: str) -> Any:
        return z3.BoolVal(True) if name in self._nulls else None

    def is_null(self, name: str) -> Any:
        return Bool(z3.BoolVal(name in self._nulls))

    def __getattr__(self, name: str) -> Any:
        values = vars(self)["_values"]
        return values[name] if name in values else getattr(vars(self)["_whole"], name)


class _Terms(Words):
    """Rows, events and nulls as terms."""

    def __init__(self) -> None:
        self._functions: dict[int, Callable[..., None]] = {}

    def source_of(self, plan: Plan, event: Any) -> str:
        given = getattr(event, SOURCE).term
        *names, last = plan.sources
        for name in names:
            if path().fork(given == string_code(name)):
                return name
        return last

    def is_true(self, value: Any) -> bool:
        return value if isinstance(value, bool) else path().fork(truth(value))

    def event(
        self, run: VertexRun, own: Any, path: Path, values: dict[str, Any], nulls: set[str]
    ) -> Any:
        return _VertexEvent(own, values, nulls)

    def rows_of(self, run: VertexRun, program: Program, event: Any, path: Path) -> Sequence[Any]:
        function = self._functions.get(id(program))
        if function is None:
            function = self._functions[id(program)] = program.oracle_over(meaning)
        emit = Emit(run.planned.emits)
        with run.noted(path):
            function(VertexState(run.state, run.planned.name), event, emit)
        return emit.rows

    def value_in(self, run: VertexRun, schema: Schema, row: Any, name: str) -> tuple[Any, bool]:
        column = schema.columns[schema.names.index(name)]
        if row.nulls[name]:
            return self.never_seen(column), True
        return load(column_storage(column), row.terms[name]), False

    def never_seen(self, column: Column) -> Any:
        storage = column_storage(column)
        return load(storage, term_of(storage, "" if column.kind == "str" else 0))

    def no_string(self, run: VertexRun) -> Any:
        return String(bits(0))

    def row_of_event(self, plan: Plan, sink: Sink, event: Any) -> Any:
        emit = Emit(sink.columns)
        values = []
        for name, column in sink.columns:
            whole = plan.column_of_event(sink.stream, name)
            null = column.nullable and self.is_true(event.is_null(whole))
            values.append(None if null else getattr(event, whole))
        emit(*values)
        return emit.rows[0]

    def to_sink(self, plan: Plan, sink: Sink, of: Schema, row: Any, emit: Any) -> None:
        schema = plan.emits
        terms: dict[str, Any] = {}
        nulls = dict.fromkeys(schema.names, True)
        first = plan.first_column(sink)
        for name, whole in zip(of.names, schema.names[first:], strict=False):
            nulls[whole] = row.nulls[name]
            if not row.nulls[name]:
                terms[whole] = row.terms[name]
        if len(plan.sinks) > 1:
            terms[SINK], nulls[SINK] = bits(string_code(sink.name)), False
        emit.rows.append(Row(schema, terms, nulls))
