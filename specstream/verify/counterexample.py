"""From a model of the solver to a table of events that has been run.

The values are made small first. Then the table goes through the oracle and through an engine of two
threads; only what both show is told.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import decimal
import math
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import z3

from specstream.columns.strings import string_code
from specstream.compiler.frontend.inputs import column_of
from specstream.compiler.phases.plan import SINK
from specstream.declarations.schema import Column
from specstream.definition.operator import Operator
from specstream.engine.engine import Engine
from specstream.verify.bounded import Unrolled
from specstream.verify.properties import PropertyError
from specstream.verify.reads import read_by_operator
from specstream.verify.solvers import Budget, solve
from specstream.verify.step import raised_at

__all__ = ["TIME", "Replay", "Seen", "Table", "replay", "small_model", "table_of"]

TIME = "time"
_STRINGS = ("a", "b", "c", "d", "e", "f", "g", "h", "")
_FLOATS = (0.0, 1.0, 2.0, -1.0, 0.5, 3.0, 10.0, 100.0, 1e9, 1e308, math.inf, math.nan)
_SECONDS = 0.2
_MOST_SECONDS = 5.0
_MOST_SLOW = 4  # questions without an answer, after which values stay as they are


@dataclass
class Table:
    """A stream: the values of its events, and the table that they are.

    Attributes:
        values: of each event, by column; None: null.
        order_by: the column of the times; None: the operator does not go by time.
        times: of the events, also where the operator does not go by them.
    """

    values: list[dict[str, Any]]
    table: pa.Table
    order_by: str | None
    times: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)


def small_model(conditions: list[Any], unrolled: Unrolled, count: int, budget: Budget) -> Any:
    """A model of conditions with small values; None: the solver no longer finds one."""
    strings = (*_STRINGS, *unrolled.model.operator.program.strings)
    events = [unrolled.step(number).event for number in range(count)]
    every = list(conditions)
    for event in events:
        for name, column in event.schema:
            if column.kind == "str":
                codes = [event.terms[name] == string_code(one) for one in strings]
                every.append(z3.Or(event.terms.get(f"{name}?", z3.BoolVal(False)), *codes))
    said, model = solve(every, budget)
    if said != "sat":
        return None
    smaller = _Smaller(every, model, budget)
    for event in events:
        for name, column in event.schema:
            if f"{name}?" in event.terms:
                smaller.first(event.terms[f"{name}?"], [z3.BoolVal(False)])
            term = event.terms[name]
            if column.kind == "str":
                smaller.first(term, [z3.BitVecVal(string_code(one), 64) for one in strings])
            elif column.kind == "bool":
                smaller.first(term, [z3.BoolVal(False)])
            elif column.kind == "float":
                smaller.first(term, [z3.FPVal(one, term.sort()) for one in _FLOATS])
            else:
                smaller.least(term)
        smaller.least(event.terms["#time"])
    return smaller.model


class _Smaller:
    """Makes the values of a model small, one after the other; each is fixed then.

    Attributes:
        model: the one with the smallest values so far.
    """

    def __init__(self, conditions: list[Any], model: Any, budget: Budget) -> None:
        self.model, self._budget = model, budget
        self._solver = z3.Solver()
        self._solver.set("timeout", int(_SECONDS * 1000))
        self._solver.add(z3.simplify(z3.And(*conditions)))
        self._end = min(budget.left / 2, _MOST_SECONDS)
        self._began = budget.left
        self._is_slow, self._slow = False, 0

    def _can_be(self, condition: Any) -> bool:
        if self._began - self._budget.left > self._end or self._slow >= _MOST_SLOW:
            return False
        self._solver.push()
        self._solver.add(condition)
        found = self._solver.check()
        if found == z3.sat:
            self.model = self._solver.model()
        self._is_slow = found == z3.unknown
        self._slow += self._is_slow
        self._solver.pop()
        return bool(found == z3.sat)

    def _now(self, term: Any) -> Any:
        return self.model.eval(term, model_completion=True)

    def _fix(self, term: Any) -> None:
        now = self._now(term)
        same = z3.fpIsNaN(term) if z3.is_fp(term) and now.isNaN() else term == now
        self._solver.add(same)

    def first(self, term: Any, values: list[Any]) -> bool:
        """Fixes a term to the first of some values that it can have; else it stays."""
        found = any(self._now(term).eq(one) or self._can_be(term == one) for one in values)
        self._fix(term)
        return found

    def least(self, term: Any) -> None:
        """Fixes an integer to one that is as near to 0 as may be."""
        for value in (0, 1):
            if known(self._now(term)) == value or self._can_be(term == value):
                self._fix(term)
                return
        low, high = 0, abs(known(self._now(term)))
        while high - low > 1:
            middle = (low + high) // 2
            if self._can_be(z3.And(term <= middle, term >= -middle)):
                high = abs(known(self._now(term)))
            elif self._is_slow:
                break  # and so would all that follow be
            else:
                low = middle
        self._fix(term)


def table_of(operator: Operator, unrolled: Unrolled, count: int, model: Any) -> Table:
    """The stream of a model."""
    texts = {string_code(one): one for one in (*_STRINGS, *operator.program.strings)}
    values: list[dict[str, Any]] = []
    times: list[int] = []
    for number in range(count):
        event = unrolled.step(number).event
        row: dict[str, Any] = {}
        for name, column in operator.event:
            null = event.terms.get(f"{name}?")
            if null is not None and z3.is_true(model.eval(null, model_completion=True)):
                row[name] = None
            else:
                row[name] = known(model.eval(event.terms[name], model_completion=True))
                if column.kind == "str":
                    row[name] = texts.get(row[name], "a")
        values.append(row)
        times.append(known(model.eval(event.terms["#time"], model_completion=True)))
    return made_table(operator, values, times)


def made_table(operator: Operator, values: list[dict[str, Any]], times: list[int]) -> Table:
    """A table of events."""
    arrays = {
        name: array_of(column, [one[name] for one in values]) for name, column in operator.event
    }
    order_by = None
    has_time = operator.program.reads_timestamp
    if operator.program.is_interpreted:  # which may read everything
        has_time = "timestamp" in read_by_operator(operator)
    if has_time or operator.layout.goes_by_time:
        order_by = TIME if TIME not in arrays else "event_time"
        zone = pa.timestamp("us") if operator.layout.lasting else pa.int64()
        arrays[order_by] = pa.array(times, pa.int64()).cast(zone)
        values = [one | {order_by: at} for one, at in zip(values, times, strict=True)]
    table = pa.table(arrays) if arrays else pa.table({"event": list(range(len(values)))})
    return Table(values, table, order_by, times)


def array_of(column: Column, values: list[Any]) -> pa.Array:
    """Values, as an operator has them, as a column of a table."""
    of = column.arrow
    if pa.types.is_decimal(of):
        with decimal.localcontext() as context:
            context.prec = 60
            scaled = [
                None if one is None else decimal.Decimal(one).scaleb(-of.scale) for one in values
            ]
            return pa.array(scaled, of)
    if pa.types.is_timestamp(of):
        return pa.array(values, pa.int64()).cast(of)
    if pa.types.is_date(of):
        return pa.array(values, pa.int32()).cast(of)
    return pa.array(values, of)


def known(term: Any) -> Any:
    """A value of the solver's as one of Python's."""
    if z3.is_bv_value(term):
        return term.as_signed_long()
    if z3.is_true(term) or z3.is_false(term):
        return bool(z3.is_true(term))
    if z3.is_fp(term):
        if term.isNaN():
            return math.nan
        if term.isInf():
            return -math.inf if term.isNegative() else math.inf
        bits = z3.simplify(z3.fpToIEEEBV(term)).as_long()
        of = np.uint64 if term.sort().ebits() == 11 else np.uint32
        return float(np.array([bits], of).view(np.float64 if of is np.uint64 else np.float32)[0])
    raise ValueError(f"{term} is not known")


# ---- what has been run ----


@dataclass
class Replay:
    """What the oracle made of a table, and whether an engine made the same.

    Attributes:
        rows: of each event, those that it emitted.
        errors: of each event, the class of what it raised, or None.
        raised: of each event, the classes and lines of all that came: of the timers that it let
            fire, and its own.
        states: before the first event, and after each.
        agrees: whether the engine of two threads gave the same rows, errors and state.
    """

    rows: list[list[dict[str, Any]]]
    errors: list[str | None]
    lines: list[int]
    raised: list[list[tuple[str, int]]] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)
    agrees: bool = True
    engine_state: Any = None


def replay(operator: Operator, of: Table) -> Replay:
    """Runs a table through the oracle and through an engine of two threads."""
    found = Replay([], [None] * len(of), [0] * len(of))
    plain: dict[str | None, list[dict[str, Any]]] = {}
    for count in range(len(of) + 1):
        run = operator.run_sequential(
            of.table.slice(0, count), on_error="skip", order_by=of.order_by
        )
        found.states.append(plain_state(operator, run.state))
        before = plain
        plain = {sink: rows_seen(sink, one, operator) for sink, one in tables_of(run.output)}
        if count:
            found.rows.append(
                [row for sink, rows in plain.items() for row in rows[len(before[sink]) :]]
            )
            told = [(type(error).__name__, raised_at(error).line) for _, error in run.raised]
            found.raised.append(told[sum(map(len, found.raised)) :])
    for at, error in run.raised:
        if at is not None:
            found.errors[at] = type(error).__name__
            found.lines[at] = raised_at(error).line
    with Engine(operator, threads=2, errors="side") as engine:
        output = engine.process(of.table, order_by=of.order_by)
        failed = engine.failed_events()
        found.engine_state = plain_state(operator, engine.state)
    raised = 0 if failed is None else failed.num_rows
    by_engine = {sink: rows_seen(sink, one, operator) for sink, one in tables_of(output)}
    found.agrees = (
        repr(by_engine) == repr(plain)
        and raised == len(run.raised)
        and repr(found.engine_state) == repr(found.states[-1])
    )
    return found


def tables_of(output: Any) -> list[tuple[str | None, pa.Table]]:
    """Rows by their sinks; None: there is only one."""
    return list(output.items()) if isinstance(output, dict) else [(None, output)]


def rows_seen(sink: str | None, table: pa.Table, operator: Operator) -> list[dict[str, Any]]:
    """Rows with the columns of all sinks, as a pipeline has them inside."""
    rows: list[dict[str, Any]] = table.to_pylist()
    if sink is None:
        return rows
    others = dict.fromkeys(operator.emits.names)
    return [
        others | {SINK: sink} | {column_of(sink, name): value for name, value in row.items()}
        for row in rows
    ]


class Seen:
    """An event or a row as properties see it. A column of a pipeline with several sources, or
    sinks, is ``event.source.column``, ``row.sink.column``."""

    def __init__(self, what: str, values: dict[str, Any], prefix: str = "") -> None:
        vars(self).update(_what=what, _values=values, _prefix=prefix)

    def __getattr__(self, name: str) -> Any:
        values, whole = self._values, self._prefix + name
        if whole in values:
            return values[whole]
        if any(one.startswith(f"{whole}.") for one in values):
            return Seen(self._what, values, f"{whole}.")
        raise PropertyError(
            f"{self._what} has no column {whole!r}; it has {', '.join(values) or 'none'}"
        )

    def __getitem__(self, name: Any) -> Any:
        raise PropertyError(
            f"{self._what} is asked for [{name!r}]; its columns are attributes, like "
            f"{next(iter(self._values), 'x')}"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Seen):
            raise PropertyError(f"{self._what} is compared with {other!r}; compare its columns")
        return repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"


def events_seen(of: Table, run: Replay) -> Iterator[dict[str, Any]]:
    """What properties ask about, of each event of a table that was run."""
    for at, values in enumerate(of.values):
        own = {"timestamp": at if of.order_by is None else values[of.order_by], "sequence": at}
        yield {
            "before": run.states[at],
            "after": run.states[at + 1],
            "event": Seen("the event", values | own),
            "rows": [Seen("a row", row) for row in run.rows[at]],
        }


def plain_state(operator: Operator, view: Any) -> Any:
    """A state as Python has it: lists, dicts, numbers."""
    found: dict[str, Any] = {}
    for one in operator.layout.fields:
        if one.space != "state":
            continue
        found[one.name] = plain_value(getattr(view, one.name))
        vertex, dot, name = one.name.partition(".")
        if dot:  # of a pipeline: state.vertex.field
            part = found.setdefault(vertex, types.SimpleNamespace())
            setattr(part, name, found[one.name])
    return types.SimpleNamespace(**found)


def plain_value(value: Any) -> Any:
    """A value of a state view as Python has it."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return [
                types.SimpleNamespace(**dict(zip(value.dtype.names, one, strict=True)))
                for one in value.tolist()
            ]
        return value.tolist()
    if hasattr(value, "items") and hasattr(value, "copy"):
        return dict(value.items())
    if type(value).__name__ == "StateSet":
        return list(value)
    return value


def shown(values: list[dict[str, Any]]) -> Iterator[str]:
    """A stream in a few words: one column after the other."""
    for name in values[0] if values else ():
        yield f"{name} = {', '.join(map(_shown, (one[name] for one in values)))}"


def _shown(value: Any) -> str:
    return "null" if value is None else repr(value)
