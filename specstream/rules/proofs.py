"""Why a rule says what it says of an event: the smallest proof, from the events of a table."""

from __future__ import annotations

import ast
import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from specstream.columns.conversion import order_values, time_at, time_type
from specstream.columns.events import Events, column, read_events
from specstream.columns.lifetimes import check_unit
from specstream.columns.python_values import event_values
from specstream.columns.strings import StringTable
from specstream.compiler.language.numbers import Int64
from specstream.compiler.language.parsing import parse
from specstream.compiler.oracle.oracle import Draws
from specstream.compiler.oracle_objects.elements import LOAD
from specstream.declarations.options import integer, refused, shown
from specstream.declarations.schema import Schema
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.files.writing import writing
from specstream.rules.formula import Atom, Formula, Not, Or, Temporal, variable, walk
from specstream.rules.proof_picture import svg_of
from specstream.rules.proof_text import (
    Line,
    html_of,
    line_of,
    rows_text,
    shown_name,
    text_of,
    verdict_text,
)
from specstream.rules.proving import Found, Prover, RaisedError, is_implicit, shown_as

__all__ = ["Node", "Proof", "ProofEvent", "proof_of"]


@dataclass(frozen=True)
class ProofEvent:
    """An event that a proof speaks of.

    Attributes:
        row: of it in the table, as that was given.
        time: what the order column has there; None: there is none.
        columns: its values, by name.
    """

    row: int
    time: Any
    columns: Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class Node:
    """A step of a proof.

    Attributes:
        formula: a part of the rule, as it is written.
        event: that it is about.
        verdict: True, False, or None: what comes decides it.
        children: the steps from which it follows; of one that is open, what it waits for.
        note: what the children do not say: which events an operator has looked at, and so on.
        values: of a comparison of two events, both sides; None: it is no such.
        where: what the variables of ``all`` and ``any`` stand for, those that it names.
        part: the same as a tree.
        is_supposed: it is a case that is told apart further up.
        cases: of a step that holds either way, the part that is supposed to be true in the first
            child and false in the second, and what its variables stand for; else None.
    """

    formula: str
    event: ProofEvent
    verdict: bool | None
    children: tuple[Node, ...] = ()
    note: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    part: Formula = field(kw_only=True)
    is_supposed: bool = False
    cases: tuple[Formula, Mapping[str, Any]] | None = None
    values: tuple[Any, Any] | None = None

    def __repr__(self) -> str:
        return f"Node({self.formula!r}, row {self.event.row}, {verdict_text(self.verdict)})"

    def walk(self) -> Iterator[Node]:
        """This step and all below."""
        yield self
        for one in self.children:
            yield from one.walk()

    def to_dict(self) -> dict[str, Any]:
        """The step and all below, of what JSON has."""
        found: dict[str, Any] = {
            "formula": self.formula,
            "row": self.event.row,
            "time": _plain(self.event.time),
            "columns": {name: _plain(value) for name, value in self.event.columns.items()},
            "verdict": self.verdict,
            "note": self.note,
            "where": {shown_name(name): _plain(value) for name, value in self.where.items()},
            "children": [one.to_dict() for one in self.children],
        }
        return found


@dataclass(frozen=True, repr=False)
class Proof:
    """Why a rule says what it says of an event. Made by :meth:`specstream.rules.Rule.why`.

    ``print`` shows it as a tree; a notebook shows it with a picture.

    Attributes:
        rule: its name.
        root: the last step, which has the rule's verdict.
        order_by: the order column; None: there is none.
        reads: the columns that the rule reads, which are shown of events.
        key: columns whose values are traces of their own.
        failed: rows of the trace at which a condition raised, and what. To the rule they did not
            come.
    """

    rule: str
    root: Node
    order_by: str | None
    reads: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    failed: Mapping[int, Exception] = field(default_factory=dict)

    @property
    def verdict(self) -> bool | None:
        """Of the rule at the event; None: what comes decides it."""
        return self.root.verdict

    @property
    def event(self) -> ProofEvent:
        """That the verdict is about."""
        return self.root.event

    @property
    def size(self) -> int:
        """Steps of the proof."""
        return sum(1 for _ in self.root.walk())

    def walk(self) -> Iterator[Node]:
        """All steps, each before those from which it follows."""
        return self.root.walk()

    def to_dict(self) -> dict[str, Any]:
        """The proof as what JSON has: the rule's name, and the steps."""
        return {
            "rule": self.rule,
            "verdict": self.verdict,
            "failed": {str(row): repr(error) for row, error in self.failed.items()},
            "proof": self.root.to_dict(),
        }

    def __str__(self) -> str:
        return text_of(self._lines())

    def __repr__(self) -> str:
        return (
            f"Proof(rule {self.rule!r} is {verdict_text(self.verdict)} at row {self.event.row}, "
            f"{self.size} steps)"
        )

    def _repr_html_(self) -> str:
        return f"{html_of(self._lines())}{self.svg()}"

    def svg(self) -> str:
        """A picture: the events that matter along a line, and what each part says of them."""
        return svg_of(self.rule, self.root, self.order_by)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draws the picture into a file.

        Args:
            path: the file, whose name ends in ``.svg``.

        Raises:
            ConfigurationError: its name ends otherwise.
            OSError: it cannot be written; the error names the file.
        """
        path = Path(path)
        if path.suffix != ".svg":
            raise refused("draw: path", str(path), "a name that ends in .svg")
        with writing(path):
            path.write_text(self.svg(), encoding="utf-8")

    def _lines(self) -> list[Line]:
        first = line_of(self.root, self.order_by, self.reads, self.key)
        raised = [
            Line(f"row {row} raised {type(error).__name__} and does not count: {error}")
            for row, error in self.failed.items()
        ]
        return [first, *raised]


def proof_of(
    operator: Operator,
    formula: Formula,
    names: Mapping[str, Any],
    key: tuple[str, ...],
    at_end: str,
    table: Any,
    order_by: str | None,
    at: Any,
    of_key: Any,
    numbered: str | None = None,
) -> Proof:
    """The smallest proof of a rule's verdict; see :meth:`specstream.rules.Rule.why`.

    Args:
        operator: made of the rule.
        formula: what it says.
        names: what names in its conditions stand for.
        key: columns whose values are traces of their own.
        at_end: "open" or "closed".
        table: with the events.
        order_by: its column of times.
        at: the row of the event; with a key its time.
        of_key: the value of the key; None: ``at`` is a row.
        numbered: its column of the numbers that rows are shown with; None: as they stand in it.
    """
    what = f"rule {operator.name!r}"
    order_by = column("order_by", order_by)
    bounds = (one for one in walk(formula) if isinstance(one, Temporal))
    for bound in bounds if order_by is None else ():
        if bound.within is not None or bound.after:
            raise ConfigurationError(
                f"{what}: why is given no order_by=, and {bound.text} has a length of time; "
                'expected the name of the column that has the times, like order_by="time"'
            )
    read = _Table(operator, table, order_by, what, numbered)
    asked = read.row_at(at, key, of_key)
    trace = read.trace(asked, key)
    if is_implicit(formula):
        # Of a rule that is but a negation a proof says what the rule says.
        formula = Not(formula.part, text=f"not ({formula.part.text})")  # type: ignore[attr-defined]
    failed: dict[int, Exception] = {}
    while True:
        prover = Prover(
            formula,
            names,
            [read.event(one) for one in trace],
            [read.times[one] for one in trace],
            at_end == "closed",
        )
        try:
            found = prover.explained(trace.index(asked))
            break
        except RaisedError as raised:
            wrong = trace[raised.position]
            row = read.row(wrong)
            if wrong == asked:
                raised.error.add_note(f"raised by {what} at row {row}, so that it has no verdict")
                raise raised.error from None
            failed[row] = raised.error
            trace.remove(wrong)
    reads = _reads(formula, read.schema.names)
    shown_by = None if order_by == numbered else order_by
    return Proof(operator.name, _Nodes(read, trace).node(found), shown_by, reads, key, failed)


class _Table:
    """The events of a table, in order.

    Args:
        operator: that would take them.
        table: as a user has it.
        order_by: its column of times.
        what: names the rule.
        numbered: its column of the numbers of rows; None: they are numbered as they stand.
    """

    def __init__(
        self,
        operator: Operator,
        table: Any,
        order_by: str | None,
        what: str,
        numbered: str | None,
    ) -> None:
        self.what, self.order_by, self.numbered = what, order_by, numbered
        self.schema: Schema = operator.event.declared
        self.strings = StringTable(operator.program.strings)
        layout = operator.layout
        self.events: Events = read_events(
            operator.events_table(table, what, (order_by, None)),
            self.schema,
            self.strings,
            what,
            0,
            order_by=order_by,
            reads_timestamp=operator.program.reads_timestamp and order_by is not None,
            check_times=partial(check_unit, layout, layout.allocate(), what=what),
        )
        self.times: list[int] = self.events.columns[0].tolist()
        self.unit = operator.event.time_unit

    def row(self, number: int) -> int:
        """The row in the table of an event, by its number in order."""
        if self.numbered is None:
            return int(self.events.positions[number])
        return int(self.events.columns[2 + self.schema.names.index(self.numbered)][number])

    def time(self, number: int) -> Any:
        """What the order column has for it."""
        is_ordered = self.order_by not in (None, self.numbered)
        return time_at(self.events.keys[0], number) if is_ordered else None

    def time_of(self, number: int) -> Any:
        """A time, as the order column would have it."""
        of = time_type(self.events.keys[0].type, self.unit)
        return time_at(order_values(np.array([number]), of), 0)

    def event(self, number: int) -> _Read:
        """An event, as conditions read it."""
        return _Read(self.schema, self.events, number, self.strings)

    def shown(self, number: int) -> ProofEvent:
        """An event, as a proof shows it."""
        values = dict(event_values(self.schema, self.events, number, self.strings))
        values.pop(self.numbered or "", None)
        return ProofEvent(self.row(number), self.time(number), values)

    def row_at(self, at: Any, key: tuple[str, ...], of_key: Any) -> int:
        """The number in order of the event that is asked about.

        Raises:
            ConfigurationError: there is no such event.
        """
        count = self.events.count
        if count == 0:
            raise ConfigurationError(f"{self.what}: why is given a table without rows")
        if of_key is None:
            if isinstance(at, datetime.date):
                raise ConfigurationError(
                    f"{self.what}: at={shown(at)} is a time; expected the number of a row of the "
                    "table, or beside it key=, the value of the key (key=() of a rule without one)"
                )
            row = integer(f"{self.what}: at", at, 0, count - 1)
            return int(np.flatnonzero(self.events.positions == row)[0])
        given = tuple(of_key) if isinstance(of_key, tuple | list) else (of_key,)
        if len(given) != len(key):
            expected = f"a value for each of {', '.join(key)}" if key else "key=()"
            raise ConfigurationError(
                f"{self.what}: key={shown(of_key)}; expected {expected}, as the rule has "
                + (f"the key {', '.join(key)}" if key else "no key")
            )
        if self.order_by is None:
            raise ConfigurationError(
                f"{self.what}: with key= at= is a time, and there is no order_by=; expected "
                "order_by=, the column that has it, or the number of a row alone"
            )
        of_trace = [one for one in range(count) if self.key(one, key) == given]
        if not of_trace:
            raise ConfigurationError(f"{self.what}: key={shown(of_key)} is the key of no row")
        found = [one for one in of_trace if at in (self.times[one], self.time(one))]
        if len(found) != 1:
            rows = sorted(map(self.row, found))
            times = [str(self.time(one)) for one in of_trace]
            raise ConfigurationError(
                f"{self.what}: at={shown(at)} is the time of "
                + (
                    f"rows {', '.join(map(str, rows[:9]))} with this key; expected one of them, "
                    "at=row without key="
                    if rows
                    else f"no row with this key; expected one of {', '.join(times[:9])}"
                    + (", ..." if len(times) > 9 else "")
                )
            )
        return found[0]

    def key(self, number: int, key: tuple[str, ...]) -> tuple[Any, ...]:
        event = self.event(number)
        return tuple(getattr(event, name) for name in key)

    def trace(self, asked: int, key: tuple[str, ...]) -> list[int]:
        """The numbers in order of the events that have the key of one.

        Raises:
            ConfigurationError: its key is null.
        """
        columns = self.events.columns
        nulls = dict(zip(self.schema.nullable, columns[2 + len(self.schema) :], strict=False))
        which = np.ones(self.events.count, np.bool_)
        for name in key:
            if name in nulls:
                if nulls[name][asked]:
                    raise ConfigurationError(
                        f"{self.what}: row {self.row(asked)} is in no trace, because its key "
                        f"{name!r} is null; expected a row with a key"
                    )
                which &= nulls[name] == 0
            values = columns[2 + self.schema.names.index(name)]
            which &= values == values[asked]
        return [int(one) for one in np.flatnonzero(which)]


class _Read(Draws):
    """An event, as conditions read it."""

    def __init__(self, schema: Schema, events: Events, number: int, strings: StringTable) -> None:
        super().__init__(0)
        self._schema, self._events, self._strings = schema, events, strings
        self.timestamp, self.source = (Int64(events.columns[at][number]) for at in (0, 1))
        self.sequence = Int64(number)

    def __getattr__(self, name: str) -> Any:
        schema: Schema = self.__dict__["_schema"]
        if name not in schema.names:
            raise AttributeError(f"the event has no column {name!r}")
        at, number = schema.names.index(name), int(self.sequence)
        if schema.columns[at].nullable and self.is_null(name):
            return None
        word = self._events.columns[2 + at][number]
        kind = schema.columns[at].kind
        value = self._strings.text(int(word)) if kind == "str" else LOAD[kind](word.item())
        self.__dict__[name] = value
        return value

    def is_null(self, name: str) -> bool:
        schema = self._schema
        nulls = self._events.columns[2 + len(schema) + schema.nullable.index(name)]
        return bool(nulls[int(self.sequence)])


class _Nodes:
    """Makes what the search has found into what users see.

    Args:
        read: the table.
        trace: numbers in its order of the events of the trace.
    """

    def __init__(self, read: _Table, trace: Sequence[int]) -> None:
        self.read, self.trace = read, trace
        self.events: dict[int, ProofEvent] = {}

    def event(self, position: int) -> ProofEvent:
        if position not in self.events:
            self.events[position] = self.read.shown(self.trace[position])
        return self.events[position]

    def node(self, found: Found) -> Node:
        part = found.part
        children = tuple(self.node(one) for one in found.children)
        if found.verdict is False and isinstance(part, Temporal) and len(part.parts) == 2:
            broken = shown_as(part.parts[0])
            children = tuple(
                replace(one, note="which ends it")
                if one.part == broken != shown_as(part.parts[1]) and not one.note
                else one
                for one in children
            )
        return Node(
            part.text or str(getattr(part, "value", "")),
            self.event(found.position),
            found.verdict,
            children,
            self.note(found),
            found.where,
            part=part,
            is_supposed=found.is_supposed,
            cases=found.cases,
            values=self.values(found),
        )

    def values(self, found: Found) -> tuple[Any, Any] | None:
        """Both sides of a comparison of columns of two events."""
        if not isinstance(found.part, Atom) or len(found.events) != 2:
            return None
        match parse(found.part.code, "eval").body:
            case ast.Compare(
                left=ast.Attribute(value=ast.Name(id=one), attr=left),
                ops=[_],
                comparators=[ast.Attribute(value=ast.Name(id=other), attr=right)],
            ):
                sides = [(self.event(found.events[of]), of) for of in (one, other)]
                names = (left, right)
                if all(name in of.columns for (of, _), name in zip(sides, names, strict=True)):
                    a, b = (of.columns[name] for (of, _), name in zip(sides, names, strict=True))
                    return a, b
        return None

    def bounds(self, part: Temporal, position: int) -> str:
        """Which times an operator looks at; "": it has no bounds."""
        if (part.within is None and not part.after) or self.read.order_by is None:
            return ""
        now, way = self.read.times[self.trace[position]], 1 if part.is_future else -1
        near = self.read.time_of(now + way * part.after)
        if part.within is None:
            return f"from time {near} on" if part.is_future else f"up to time {near}"
        far = self.read.time_of(now + way * part.within)
        first, last = (near, far) if part.is_future else (far, near)
        return f"at time {first}" if first == last else f"from time {first} to {last}"

    def note(self, found: Found) -> str:
        """What the children of a step do not say."""
        if found.is_supposed:
            return "in this case"
        if found.cases is not None:
            return f"whatever {found.cases[0].text} is"
        part, verdict = found.part, found.verdict
        if not isinstance(part, Temporal):
            is_vacuous = (
                isinstance(part, Or)
                and part.text.startswith("implies(")
                and verdict is True
                and [one.part for one in found.children] == [shown_as(part.parts[0])]
            )
            return "which asks nothing of this event" if is_vacuous else ""
        if verdict is None:
            return "" if found.children else _AWAITED.get(part.name, "events to come decide")
        if part.name.endswith("_event"):
            side = "after" if part.is_future else "before"
            few = "is no event" if part.n == 1 else f"are fewer than {part.n} events"
            return "" if found.children else f"there {few} {side} it"
        bounds = self.bounds(part, found.events.get(variable(part.at), found.position))
        missed = ""
        if found.missed is not None:
            number = self.trace[found.missed]
            missed = f"; row {self.read.row(number)} would, at time {self.read.time(number)}"
        if found.window is None:
            return "" if found.children else f"no event lies {bounds or 'there'}{missed}"
        first, last = found.window
        rows = [self.read.row(self.trace[one]) for one in range(first, last + 1)]
        shown_rows = rows_text(rows)
        of_rows = f"the {shown_rows}" if shown_rows[0].isdigit() else shown_rows
        if part.name in ("historically", "always"):
            said = f"all of {of_rows} do" if verdict else ""
        else:
            is_broken = any(one.part == shown_as(part.parts[0]) for one in found.children)
            is_goal = part.name in ("once", "eventually") or not is_broken
            said = f"none of {of_rows} does" if not verdict and is_goal else ""
        if said and len(rows) == 1:
            said = f"only {shown_rows} lies" if bounds else ""
            return f"{said} {bounds}{missed}" if bounds else ""
        return (f"{said}, {bounds}" if said and bounds else said or bounds) + missed


_AWAITED = {
    "next_event": "the event has not come yet",
    "eventually": "an event to come may do",
    "always": "an event to come may not do",
}


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else repr(value)
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _reads(formula: Formula, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that conditions name."""
    codes = [getattr(one, "code", getattr(one, "domain", "")) for one in walk(formula)]
    found = {
        node.attr
        for code in codes
        if code
        for node in ast.walk(parse(code, "eval"))
        if isinstance(node, ast.Attribute)
    }
    return tuple(name for name in columns if name in found)
