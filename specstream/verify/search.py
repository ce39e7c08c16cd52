"""The search for streams: from one event to more, each found stream made small and run."""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import z3

from specstream.columns.strings import string_code
from specstream.compiler.phases.plan import SINK
from specstream.verify.bounded import Unrolled
from specstream.verify.counterexample import (
    Replay,
    Table,
    known,
    replay,
    small_model,
    table_of,
)
from specstream.verify.formulas import PropertyState
from specstream.verify.properties import Property
from specstream.verify.report import Finding
from specstream.verify.solvers import Budget, solve
from specstream.verify.step import Model, Row, Way

__all__ = ["Search", "Shown"]


@dataclass
class Shown:
    """A stream that has been run.

    Attributes:
        ways: the paths that the model says the events take.
        differs: how oracle, engine and model differ; "": they do not.
    """

    table: Table
    replay: Replay
    ways: list[Way]
    differs: str = ""


@dataclass
class Search:
    """Streams of a model, from the initial state.

    Attributes:
        validated: numbers of the paths of which a table was run and did what the model says.
        broken: where the model differs from the oracle though nothing is over-approximated.
    """

    model: Model
    assume: list[Property]
    budget: Budget
    validated: set[int] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)
    unrolled: Unrolled = field(init=False)

    def __post_init__(self) -> None:
        self.unrolled = Unrolled(self.model, self.assume)

    def stream(self, conditions: list[Any], count: int) -> Shown | None:
        """A small stream of so many events of which conditions hold, run; None: there is no small
        one."""
        every = [*self.unrolled.facts(count), *conditions]
        model = small_model(every, self.unrolled, count, self.budget)
        if model is None:
            return None
        table = table_of(self.model.operator, self.unrolled, count, model)
        found = Shown(table, replay(self.model.operator, table), self.taken(model, count))
        found.differs = self._differs(found, model)
        if found.differs and not any(way.free for way in found.ways):
            self.broken.append(found.differs)
        if not found.differs:
            self.validated |= {way.number for way in found.ways}
        return found

    def taken(self, model: Any, count: int) -> list[Way]:
        """The paths that the events of a model take."""
        found = []
        for number in range(count):
            guards = self.unrolled.step(number).guards
            for way, guard in zip(self.model.ways, guards, strict=True):
                if z3.is_true(model.eval(guard, model_completion=True)):
                    found.append(way)
                    break
        return found

    # ---- what the model says, and what came out ----

    def _differs(self, of: Shown, model: Any) -> str:
        if not of.replay.agrees:
            return "the oracle and an engine of two threads differ"
        for at, way in enumerate(of.ways):
            raised = of.replay.errors[at]
            if not way.raises(raised):
                expected = None if way.error is None else way.error.__name__
                return f"event {at + 1} was to raise {expected}, and raised {raised}"
            step = self.unrolled.step(at)
            rows = [
                {
                    name: None
                    if row.nulls[name]
                    else known(model.eval(step.renamed(term), model_completion=True))
                    for name, term in _row_terms(row)
                }
                for row in self._in_order(way.rows)
            ]
            if not _same_rows(rows, of.replay.rows[at], self.model.operator.emits):
                return f"the rows of event {at + 1} were to be {rows}, and are {of.replay.rows[at]}"
        return self._state_differs(of, model)

    def _in_order(self, rows: list[Row]) -> list[Row]:
        """As a user gets them: of several sinks, those of one after the other."""
        sinks = getattr(self.model.operator, "sinks", ())
        if len(sinks) < 2:
            return rows
        codes = [string_code(one) for one in sinks]
        return sorted(rows, key=lambda row: codes.index(row.terms[SINK].as_signed_long()))

    def _state_differs(self, of: Shown, model: Any) -> str:
        """Compares scalars, counts and sums, and elements that events touched."""
        last = self.unrolled.step(len(of.table) - 1)
        state = of.replay.states[-1]
        for one in self.model.layout.fields:
            if one.space != "state":
                continue
            actual = getattr(state, one.name)
            container = one.container
            if container is None and one.dimensions == () and one.record is None:
                found = known(model.eval(last.after[one.name], model_completion=True))
                if one.kind != "str" and not _equal(found, actual):
                    return f"state.{one.name} was to be {found}, and is {actual}"
            elif container is not None and not container.expires and hasattr(actual, "__len__"):
                term = last.after[f"{one.name}#count"]
                found = known(model.eval(term, model_completion=True))
                if found != len(actual):
                    return f"len(state.{one.name}) was to be {found}, and is {len(actual)}"
            total = last.after.get(f"{one.name}#sum")
            if total is not None and one.kind == "int" and len(one.dimensions) <= 1:
                values = list(actual.values()) if isinstance(actual, dict) else list(actual)
                found = model.eval(total, model_completion=True).as_signed_long()
                if all(isinstance(value, int) for value in values) and found != sum(values):
                    return f"sum(state.{one.name}) was to be {found}, and is {sum(values)}"
            if isinstance(actual, list) and one.kind in ("int", "float", "bool") and not container:
                wrong = self._element_differs(one.name, actual, model, len(of.table))
                if wrong:
                    return wrong
        return ""

    def _element_differs(self, name: str, actual: list[Any], model: Any, count: int) -> str:
        steps = self.unrolled.steps[:count]  # there may be more, of longer streams
        last = steps[-1].after[name]
        for step in steps:
            for key in step.touched.get(name, ()):
                at = known(model.eval(key, model_completion=True))
                if 0 <= at < len(actual) and not isinstance(actual[at], list):
                    term = z3.Select(last, z3.BitVecVal(at, 64))
                    found = model.eval(term, model_completion=True)
                    if z3.is_bv_value(found) and found.size() < 64:
                        continue
                    if not _equal(known(found), actual[at]):
                        return f"state.{name}[{at}] was to be {found}, and is {actual[at]}"
        return ""

    # ---- findings ----

    def findings(self, events: int) -> list[Finding]:
        """Which exceptions there are, and where integers wrap, each with its shortest stream."""
        found: list[Finding] = []
        targets = self._targets()
        for count in range(1, events + 1):
            if self.budget.left <= 0:
                break
            for key in list(targets):
                what, line = key
                step = self.unrolled.step(count - 1)
                any_of = [
                    z3.And(step.guards[way.number], *([step.renamed(when())] if when else []))
                    for way, when in targets[key]
                ]
                facts = self.unrolled.facts(count)
                said, _ = solve([*facts, z3.Or(*any_of)], self.budget, 1.0)
                if said != "sat":
                    continue
                shown = self.stream([z3.Or(*any_of)], count)
                if shown is None or shown.differs:
                    continue
                if what.startswith("raises") and shown.replay.lines[-1] != line:
                    continue
                del targets[key]
                found.append(Finding(what, line, shown.table))
        return sorted(found, key=lambda one: one.line)

    def _targets(self) -> dict[tuple[str, int], list[tuple[Way, Any]]]:
        targets: dict[tuple[str, int], list[tuple[Way, Any]]] = {}
        for way in self.model.ways:
            if way.stopped:
                continue
            if way.error is not None:
                what = f"raises {way.error.__name__}"
                targets.setdefault((what, way.place.line), []).append((way, None))
                continue  # its results go nowhere
            for wrap in way.wraps:
                key = (f"wraps {wrap.sign}", wrap.place.line)
                targets.setdefault(key, []).append((way, wrap.when))
        return targets

    def validate(self, events: int = 4) -> None:
        """Runs a table for each path that a stream of a few events reaches."""
        for count in range(1, events + 1):
            for way in self.model.ways:
                if way.stopped or way.number in self.validated or self.budget.left <= 0:
                    continue
                guard = self.unrolled.step(count - 1).guards[way.number]
                said, _ = solve([*self.unrolled.facts(count), guard], self.budget, 0.5)
                if said == "sat":
                    self.stream([guard], count)
            if self.broken:
                return

    def stopped(self, count: int) -> Way | None:
        """A path of which nothing is known, and that a stream of so many events may get to."""
        facts = self.unrolled.facts(count - 1)
        step = self.unrolled.step(count - 1)
        for way, guard in zip(self.model.ways, step.guards, strict=True):
            if way.stopped:
                said, _ = solve([*facts, *step.facts, guard], self.budget, 1.0)
                if said != "unsat":
                    return way
        return None

    def state(self, count: int) -> PropertyState:
        """The state after so many events."""
        terms = self.unrolled.step(count - 1).after if count else self.unrolled.start
        return PropertyState(self.model.layout, terms, terms["#now"])


def _row_terms(row: Any) -> list[tuple[str, Any]]:
    return [(name, row.terms.get(name)) for name in row.schema.names]


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


def _same_rows(said: list[dict[str, Any]], found: list[dict[str, Any]], emits: Any) -> bool:
    if len(said) != len(found):
        return False
    for left, right in zip(said, found, strict=True):
        for name, column in emits:
            one, other = left[name], right[name]
            if (one is None) != (other is None):
                return False
            if one is None or column.kind == "str" or not column.is_plain:
                continue  # the text of a code, or a decimal or time of the same int
            if not _equal(one, other):
                return False
    return True
