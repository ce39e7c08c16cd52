"""Unknown events and the rows that they emit, as the oracle's code has them."""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from specstream.compiler.oracle_objects.forms import Formed
from specstream.declarations.derived import Scalar
from specstream.declarations.element_types import Storage, storage_of
from specstream.declarations.schema import Column, Schema
from specstream.pipelines.oracle import VertexState
from specstream.verify.elements import load, sort_of, store
from specstream.verify.paths import is_walked, path, refuse
from specstream.verify.values import INT, Bool, Float, Int, String, bits

__all__ = ["Derived", "Emit", "Event", "EventView", "Row", "SeenEvent", "column_storage"]


def column_storage(column: Column) -> Storage:
    return storage_of({"int": int, "float": float, "bool": bool, "str": str}[column.kind], "")


class Event:
    """An event whose values are terms by name.

    Attributes:
        schema: its columns.
        terms: ``column`` and ``column?`` for whether it is null, ``#time``, ``#sequence``, and what
            Python derives or draws.
        facts: what holds of every event.
    """

    def __init__(self, schema: Schema, suffix: str = "") -> None:
        self.schema, self._suffix = schema, suffix
        self.terms: dict[str, Any] = {}
        self.facts: list[Any] = []
        for name, column in schema:
            sort = sort_of(column_storage(column))
            term = self.terms[name] = z3.Const(f"event:{name}{suffix}", sort)
            null = None
            if column.nullable:
                null = self.terms[f"{name}?"] = z3.Const(f"event:{name}?{suffix}", z3.BoolSort())
                zero = z3.FPVal(0.0, sort) if column.kind == "float" else False
                zero = bits(0) if column.kind in ("int", "str") else zero
                self.facts.append(z3.Implies(null, term == zero))
            if column.kind == "str":
                is_text = term != 0
                self.facts.append(is_text if null is None else z3.Or(null, is_text))
            if column.bounds is not None:
                low, high = column.bounds
                self.facts += [term >= low, term <= high]
        self.terms["#time"] = z3.Const(f"event:#time{suffix}", INT)
        self.terms["#sequence"] = z3.Const(f"event:#sequence{suffix}", INT)


class EventView:
    """The event, as the oracle's code has it."""

    def __init__(self, event: Event) -> None:
        vars(self).update(_event=event, _drawn={})

    def null_of(self, name: str) -> Any:
        return self._event.terms.get(f"{name}?")

    def is_null(self, name: str) -> Any:
        return Bool(self._event.terms[f"{name}?"])

    def __getattr__(self, name: str) -> Any:
        event: Event = vars(self)["_event"]
        if name == "timestamp":
            return Int(event.terms["#time"])
        if name == "sequence":
            return Int(event.terms["#sequence"])
        if name == "source":
            return Int(bits(0))
        column = next((of for one, of in event.schema if one == name), None)
        if column is not None:
            return load(column_storage(column), event.terms[name])
        if any(one.startswith(f"{name}.") for one in event.schema.names):
            return VertexState(self, name)  # of a source: event.source.column
        derived = event.schema.derived_place(name)
        if derived is None:
            raise AttributeError(f"the event has no column {name!r}")
        if name not in self._drawn:
            self._drawn[name] = self._derived(derived, event.schema)
        return self._drawn[name]

    def _derived(self, of: Any, schema: Schema) -> Any:
        """What Python derives: any value, or any exception."""
        one = schema.derived[of.number]
        text = one.text
        if not one.is_seen:
            return "?"  # it only goes into the text of an exception
        if of.part is not None and of.part.kind == "list":
            refuse(f"{text}, which Python computes before", "keep it in a column")
        if path().fork(path().any_value(z3.BoolSort(), f"whether {text} raises")):
            raise Derived(text)
        if of.part is None:
            return False
        kinds: dict[Scalar, type] = {"int": int, "float": float, "bool": bool, "str": str}
        storage = storage_of(kinds[of.part.kind], "")
        found = load(storage, path().any_value(sort_of(storage), text))
        if of.part.nullable:
            null = path().any_value(z3.BoolSort(), f"whether {text} is None")
            return None if path().fork(null) else found
        return found

    def random(self, draw: Any) -> Any:
        found = path().any_value(sort_of(storage_of(float, "")), "event.random")
        low, high = z3.FPVal(0.0, found.sort()), z3.FPVal(1.0, found.sort())
        path().require(z3.And(z3.fpGEQ(found, low), z3.fpLT(found, high)))
        return Float(found)

    def random_bits(self, draw: Any) -> Any:
        return Int(path().any_value(INT, "event.random_bits"), False)

    def normal(self, draw: Any) -> Any:
        found = path().any_value(sort_of(storage_of(float, "")), "event.normal")
        path().require(z3.Not(z3.Or(z3.fpIsNaN(found), z3.fpIsInf(found))))
        return Float(found)

    def integer(self, low: Any, high: Any, draw: Any) -> Any:
        if not low < high:
            raise ValueError("event.integer: the range is empty")
        found = Int(path().any_value(INT, "event.integer"))
        path().require((found >= low).term)
        path().require((found < high).term)
        return found

    def choice(self, count: Any, draw: Any) -> Any:
        if count <= 0:
            raise ValueError("event.choice: there is nothing to choose from")
        return self.integer(0, count, draw)


class SeenEvent(EventView):
    """An event as a property sees it: a null is None, as it is in Python."""

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        null = self.null_of(name)
        if null is None:
            return value
        if not is_walked():
            refuse(
                f"event.{name}, which may be null, inside of all, any or sum",
                "give it a name before",
            )
        return None if path().fork(null) else value


class Derived(Exception):
    """Stands for whatever what Python computes before the event raises."""


# ---- the rows ----


@dataclass
class Row:
    """An emitted row: of each column its term, and whether it is null, as a term or a bool."""

    schema: Schema
    terms: dict[str, Any]
    nulls: dict[str, bool]

    def __getattr__(self, name: str) -> Any:
        schema: Schema = vars(self)["schema"]
        column = next((of for one, of in schema if one == name), None)
        if column is None and any(one.startswith(f"{name}.") for one in schema.names):
            return VertexState(self, name)  # of a sink: row.sink.column
        if column is None:
            raise AttributeError(
                f"a row has no column {name!r}; it has {', '.join(schema.names) or 'none'}"
            )
        return None if self.nulls[name] else load(column_storage(column), self.terms[name])


class Emit:
    """Collects the rows of an event."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.rows: list[Row] = []
        # As the oracle's has them, for pipelines: nobody asks here.
        self.answers: list[Any] = []
        self.by_vertex: dict[str, tuple[int, int]] = {}

    def __call__(self, *values: Any, **named: Any) -> None:
        schema = self._schema
        if named or len(values) != len(schema):
            values = schema.row(values, named)
        terms: dict[str, Any] = {}
        nulls: dict[str, bool] = {}
        for (name, column), value in zip(schema, values, strict=True):
            nulls[name] = value is None and column.nullable
            if isinstance(value, Formed):
                terms[name] = path().any_value(INT, "a formatted string")
            elif not nulls[name]:
                terms[name] = _emitted(column, value, f"emitted column {name!r}")
        self.rows.append(Row(schema, terms, nulls))


def _emitted(column: Column, value: Any, what: str) -> Any:
    storage = column_storage(column)
    if column.kind == "str" and isinstance(value, Int):
        term = value.term  # a code that was kept in a field of ints
    else:
        term = store(storage, value, what)
        if column.kind == "str" and isinstance(value, String):
            term = value.term
    if column.bounds is not None:
        low, high = column.bounds
        if not path().fork(z3.And(term >= low, term <= high)):
            raise OverflowError(f"{what} is declared {column}, which does not hold it")
    return term
