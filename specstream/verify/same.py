"""``same``: whether an operator gives the rows of the one before it, event by event.

Both run over the same events, as one model whose state is that of both. Which words of one state
are those of the other is found by elimination (:mod:`specstream.verify.invariants`).
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import itertools
import time as clock
from typing import Any

import z3

from specstream.declarations.options import refuses_unknown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.checking import properties_of
from specstream.verify.counterexample import replay, small_model, table_of
from specstream.verify.formulas import Formula
from specstream.verify.induction import Induction, Invariant
from specstream.verify.invariants import between
from specstream.verify.limits import Limits
from specstream.verify.paths import NotModelled, OutOfTime
from specstream.verify.questions import Functions
from specstream.verify.report import Report, Verdict
from specstream.verify.rerun import difference
from specstream.verify.search import Search
from specstream.verify.solvers import Budget, solve
from specstream.verify.step import Model, Way, structure

__all__ = ["Pair", "same"]

NAME = "same rows"


@refuses_unknown
def same(
    old: Operator,
    new: Operator,
    *,
    assume: Functions = (),
    events: int = 8,
    rounds: int = 4,
    effort: float = 5.0,
    time: float = 60.0,
) -> Report:
    """Whether two operators give the same rows and raise the same exceptions, event by event.

    Args:
        old: before a change.
        new: after it.
        assume, events, rounds, effort, time: as of :func:`check`.

    Raises:
        ConfigurationError: their events or rows have other columns.

    >>> import specstream as ss
    >>> @ss.operator(event={"x": int}, emits={"y": int})
    ... def twice(event, emit):
    ...     emit(event.x + event.x)
    >>> @ss.operator(event={"x": int}, emits={"y": int})
    ... def shifted(event, emit):
    ...     emit(event.x << 1)
    >>> ss.verify.same(twice, shifted).said
    'proved'
    """
    limits = Limits(events=events, rounds=rounds, effort=effort, time=time)
    for what in ("event", "emits"):
        one, other = (getattr(of, what).describe() for of in (old, new))
        if one != other:
            raise ConfigurationError(
                f"verify.same: {what} of {old.name!r} is {dict(one)} and of {new.name!r} "
                f"{dict(other)}; expected the same columns"
            )
    report = Report(new.name)
    assumed = properties_of(assume, new, ("event",), "assume=")
    try:
        pair = Pair(old, new, limits.rounds, limits.paths_until)
        report.paths = len(pair.ways)
        report.verdicts.append(_answer(pair, assumed, limits.budget, limits.events, report))
    except (NotModelled, OutOfTime) as stop:
        report.verdicts.append(Verdict(NAME, "undecided", reason=str(stop), kind="same"))
    report.seconds = limits.seconds
    report.cut_short = limits.budget.cut_short
    return report


class Pair(Model):
    """Two operators over the same events, as one model.

    A term of the old one's state has ``old:`` before its name.
    """

    def __init__(self, old: Operator, new: Operator, rounds: int, deadline: float) -> None:
        one = Model(old, rounds, deadline, "~old")
        other = Model(new, rounds, deadline)
        self.old, self.new = one, other
        self.operator, self.layout, self.event = new, other.layout, other.event
        self.before = other.before | {f"old:{name}": term for name, term in one.before.items()}
        self.start = other.start | {f"old:{name}": term for name, term in one.start.items()}
        together = [one.before[name] == other.before[name] for name in ("#now", "#events")]
        self.facts = [*other.facts, *structure(one.layout, one.before), *together]
        self.ways = []
        self.differs: list[Any] = []
        for left, right in itertools.product(one.ways, other.ways):
            self._add(left, right)

    def _add(self, left: Way, right: Way) -> None:
        guard = z3.simplify(z3.And(left.guard, right.guard))
        if (
            z3.is_false(guard)
            or solve([*self.facts, guard], Budget(0.3, float("inf")))[0] == "unsat"
        ):
            return
        state = right.state | {f"old:{name}": term for name, term in left.state.items()}
        made = Way(len(self.ways), guard, state, right.rows, right.error, right.place)
        made.stopped = left.stopped or right.stopped
        made.free = [*left.free, *right.free]
        made.changes = left.changes or right.changes
        made.touched = {name: list(keys) for name, keys in right.touched.items()}
        for name, keys in left.touched.items():
            made.touched.setdefault(name, []).extend(keys)
        self.ways.append(made)
        self.differs.append(_differs(left, right))


def _differs(left: Way, right: Way) -> Any:
    """When what two paths give is not the same."""
    if left.error is not right.error or len(left.rows) != len(right.rows):
        return z3.BoolVal(True)
    found = []
    for one, other in zip(left.rows, right.rows, strict=True):
        for name in one.schema.names:
            if one.nulls[name] != other.nulls[name]:
                return z3.BoolVal(True)
            if not one.nulls[name]:
                found.append(one.terms[name] != other.terms[name])
    return z3.Or(*found)


def _answer(pair: Pair, assume: list[Any], budget: Budget, events: int, report: Report) -> Verdict:
    search = Search(pair, assume, budget)
    induction = Induction(pair, assume, budget)
    began = clock.monotonic()
    for count in range(1, min(events, 2) + 1):
        found = _refute(pair, search, count)
        if found is not None:
            return _timed(found, began)
    helpers = induction.prove(between(pair))
    reason = _all_same(pair, induction, helpers)
    if not reason:
        names = [one.name for one in helpers]
        return _timed(Verdict(NAME, "proved", helpers=names, kind="same"), began)
    for count in range(3, events + 1):
        found = _refute(pair, search, count)
        if found is not None:
            return _timed(found, began)
    return _timed(Verdict(NAME, "holds", events, f"not proved: {reason}", kind="same"), began)


def _timed(found: Verdict, began: float) -> Verdict:
    found.seconds = clock.monotonic() - began
    return found


def _all_same(pair: Pair, induction: Induction, helpers: list[Invariant]) -> str:
    """Why it is not shown that every path gives the same; "": it is."""
    for way, differs in zip(pair.ways, pair.differs, strict=True):
        if way.stopped:
            continue
        said = induction.step(way, helpers, Formula("term", z3.Not(differs)))
        if said != "unsat":
            return f"rows may differ from states that may be unreachable (line {way.place.line})"
    return induction.stops(helpers)


def _refute(pair: Pair, search: Search, count: int) -> Verdict | None:
    stopped = search.stopped(count)
    if stopped is not None:
        reason = f"{stopped.stopped}; holds up to {count - 1} events"
        return Verdict(NAME, "undecided", count - 1, reason, kind="same")
    step = search.unrolled.step(count - 1)
    wrong = z3.Or(
        *(
            z3.And(guard, step.renamed(differs))
            for guard, differs in zip(step.guards, pair.differs, strict=True)
        )
    )
    facts = search.unrolled.facts(count)
    said, _ = solve([*facts, wrong], search.budget)
    if said == "unsat":
        return None
    if said == "unknown":
        reason = f"no answer at {count} events; try a larger effort=; holds up to {count - 1}"
        return Verdict(NAME, "undecided", count - 1, reason, kind="same")
    model = small_model([*facts, wrong], search.unrolled, count, search.budget)
    if model is not None:
        table = table_of(pair.operator, search.unrolled, count, model)
        old, new = replay(pair.old.operator, table), replay(pair.operator, table)
        found = difference(old, new)
        if found and old.agrees and new.agrees:
            return Verdict(NAME, "refuted", count, table=table, kind="same", expected=found)
    reason = "a stream of the model does not do it when it is run"
    return Verdict(NAME, "undecided", count - 1, reason, kind="same")
