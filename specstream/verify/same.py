"""``same``: whether an operator gives the rows of the one before it, event by event.

Both run over the same events, as one model whose state is that of both. Which words of one state
are those of the other is found by elimination (:mod:`specstream.verify.invariants`).
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import itertools
import time as clock
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import z3

from specstream.declarations.options import one_of, refuses_unknown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.checking import needs_domain, properties_of
from specstream.verify.counterexample import replay, small_model, table_of
from specstream.verify.domain import Domain, Given, steps_of_time
from specstream.verify.elements import sort_of
from specstream.verify.events import column_storage
from specstream.verify.exploring import explore_pair
from specstream.verify.formulas import Formula
from specstream.verify.induction import Induction, Invariant
from specstream.verify.invariants import between
from specstream.verify.limits import Limits, check_operator
from specstream.verify.paths import NotModelled, OutOfTime
from specstream.verify.questions import Functions
from specstream.verify.report import Report, Verdict
from specstream.verify.same_question import Question
from specstream.verify.search import Search
from specstream.verify.solvers import Budget, OutOfMemory, solve, solvers_within
from specstream.verify.step import Model, Row, Way
from specstream.verify.values import INT, bits

__all__ = ["Pair", "same"]


@refuses_unknown
def same(
    old: Operator,
    new: Operator,
    *,
    rows: Literal["stepwise", "sequence"] = "stepwise",
    each: Callable[..., Any] | None = None,
    assume: Functions = (),
    domain: Given | None = None,
    time_steps: Iterable[int] | None = None,
    within_states: int | None = None,
    events: int | None = None,
    rounds: int = 4,
    effort: float = 5.0,
    time: float = 60.0,
    memory: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Whether two operators give the same rows, and raise the same exceptions in the same events.

    Args:
        old: before a change.
        new: after it.
        rows: "stepwise": event by event; "sequence": one after the other, whenever they come, as
            far as both have given some.
        each: function of any of ``(event, old, new)``, the latter two lists of rows, which is to
            hold of each event; by default, that both are equal.
        assume, domain, time_steps, within_states, events, rounds, effort, time, memory, progress:
            as of :func:`check`.

    Raises:
        ConfigurationError: their events or rows have other columns, or another question is wrong.

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
    limits = Limits(
        events=8 if events is None else events,
        rounds=rounds,
        effort=effort,
        time=time,
        memory=memory,
    )
    for operator in (old, new):
        check_operator("same", operator)
    for what in ("event", "emits"):
        before, after = (dict(getattr(of, what).describe()) for of in (old, new))
        if before != after:
            raise ConfigurationError(
                f"verify.same: {what} of {old.name!r} is {before} and of {new.name!r} {after}; "
                "expected the same columns"
            )
    asked = Question(each, new, one_of("rows", rows, ("stepwise", "sequence")) == "sequence")
    report = Report(new.name)
    assumed = properties_of(assume, new, ("event",), "assume=")
    if domain is not None:
        by_time = old if old.layout.goes_by_time else new
        steps = steps_of_time(time_steps, by_time)
        other = Domain(new, domain, assumed, steps)
        bounds = limits.bounds(events, within_states, progress, new)
        try:
            explore_pair(other.of_another(old), other, asked, bounds, report)
        except NotModelled as stop:
            reason = f"{stop.what}; {stop.hint}"
            report.verdicts.append(Verdict(asked.name, "undecided", reason=reason, kind="same"))
        report.seconds = limits.seconds
        return report
    needs_domain(time_steps=time_steps, within_states=within_states)
    try:
        with solvers_within(limits.memory):
            pair = Pair(old, new, limits.rounds, limits.paths_until, asked)
            report.paths = len(pair.ways)
            report.verdicts.append(_answer(pair, assumed, limits.budget, limits.events))
    except (NotModelled, OutOfMemory, OutOfTime) as stop:
        report.verdicts.append(Verdict(asked.name, "undecided", reason=str(stop), kind="same"))
    report.seconds = limits.seconds
    report.cut_short = limits.budget.cut_short
    return report


class Pair(Model):
    """Two operators over the same events, as one model.

    A term of the old one's state has ``old:`` before its name.
    """

    def __init__(
        self, old: Operator, new: Operator, rounds: int, deadline: float, asked: Question
    ) -> None:
        one = Model(old, rounds, deadline, "~old")
        other = Model(new, rounds, deadline)
        self.old, self.new, self.asked = one, other, asked
        if asked.in_sequence:
            for model in (one, other):
                _keep_rows(model)
        self.operator, self.layout, self.event = new, other.layout, other.event
        self.before = other.before | {f"old:{name}": term for name, term in one.before.items()}
        self.start = other.start | {f"old:{name}": term for name, term in one.start.items()}
        together = [one.before[name] == other.before[name] for name in ("#now", "#events")]
        self.facts = [*other.facts, *one.facts, *together]
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
        self.differs.append(self._differs(left, right))

    def _differs(self, left: Way, right: Way) -> Any:
        """When what two paths give is not as was asked."""
        if left.error is not right.error:
            return z3.BoolVal(True)
        if self.asked.of is not None:
            view = self.view(self.event)
            said = self.asked.of.formula(event=view, old=left.rows, new=right.rows)
            return z3.Not(said.shown({}, {}))
        if self.asked.in_sequence:
            return _differ_in_sequence(self.old, left, self.new, right)
        if len(left.rows) != len(right.rows):
            return z3.BoolVal(True)
        pairs = zip(left.rows, right.rows, strict=True)
        return z3.Or(*(_row_differs(one, other) for one, other in pairs))


def _row_differs(one: Row, other: Row) -> Any:
    found = []
    for name in one.schema.names:
        if one.nulls[name] != other.nulls[name]:
            return z3.BoolVal(True)
        if not one.nulls[name]:
            found.append(one.terms[name] != other.terms[name])
    return z3.Or(*found)


# ---- rows one after the other ----

ROWS = "#rows"


def _kept(model: Model) -> Iterator[tuple[str, str, Any]]:
    """Of each column the words that keep its values and nulls, and their sort."""
    for name, column in model.operator.emits:
        yield f"#row:{name}", name, sort_of(column_storage(column))
        if column.nullable:
            yield f"#null:{name}", name, z3.BoolSort()


def _keep_rows(model: Model) -> None:
    """Adds words to a model: how many rows there were, and what they were, by their number."""
    suffix = "~old" if str(model.before["#now"]) != "#now" else ""
    count = model.before[ROWS] = z3.Const(f"{ROWS}{suffix}", INT)
    model.start[ROWS] = bits(0)
    model.facts = [*model.facts, count >= 0, count < 2**61]
    for word, _, sort in _kept(model):
        model.before[word] = z3.Const(f"{word}{suffix}", z3.ArraySort(INT, sort))
        zero = z3.BoolVal(False) if word.startswith("#null:") else _zero(sort)
        model.start[word] = z3.K(INT, zero)
    for way in model.ways:
        way.state[ROWS] = count + len(way.rows)
        way.changes = way.changes or bool(way.rows)
        for word, name, _ in _kept(model):
            kept = model.before[word]
            for at, row in enumerate(way.rows):
                is_null = row.nulls[name]
                if word.startswith("#null:"):
                    kept = z3.Store(kept, count + at, z3.BoolVal(is_null))
                elif not is_null:
                    kept = z3.Store(kept, count + at, row.terms[name])
            way.state[word] = kept


def _zero(sort: Any) -> Any:
    if sort == z3.BoolSort():
        return z3.BoolVal(False)
    return z3.FPVal(0.0, sort) if z3.is_fp_sort(sort) else z3.BitVecVal(0, sort)


def _differ_in_sequence(old: Model, left: Way, new: Model, right: Way) -> Any:
    """When a row of either is not the one of its number of the other."""
    found = []
    for one, way, other in ((old, left, right), (new, right, left)):
        for at in range(len(way.rows)):
            number = one.before[ROWS] + at
            wrong = []
            for word, name, _ in _kept(one):
                is_other = way.state[word][number] != other.state[word][number]
                if not word.startswith("#null:") and f"#null:{name}" in way.state:
                    is_null = way.state[f"#null:{name}"][number]
                    is_other = z3.And(z3.Not(is_null), is_other)
                wrong.append(is_other)
            found.append(z3.And(number < other.state[ROWS], z3.Or(*wrong)))
    return z3.Or(*found)


# ---- the answer ----


def _answer(pair: Pair, assume: list[Any], budget: Budget, events: int) -> Verdict:
    search = Search(pair, assume, budget)
    induction = Induction(pair, assume, budget)
    name, began = pair.asked.name, clock.monotonic()
    for count in range(1, min(events, 2) + 1):
        found = _refute(pair, search, count)
        if found is not None:
            return _timed(found, began)
    helpers = induction.prove(between(pair))
    reason = _all_same(pair, induction, helpers)
    if not reason:
        names = [one.name for one in helpers]
        return _timed(Verdict(name, "proved", helpers=names, kind="same"), began)
    for count in range(3, events + 1):
        found = _refute(pair, search, count)
        if found is not None:
            return _timed(found, began)
    return _timed(Verdict(name, "holds", events, f"not proved: {reason}", kind="same"), began)


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
    name = pair.asked.name
    stopped = search.stopped(count)
    if stopped is not None:
        reason = f"{stopped.stopped}; holds up to {count - 1} events"
        return Verdict(name, "undecided", count - 1, reason, kind="same")
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
        return Verdict(name, "undecided", count - 1, reason, kind="same")
    model = small_model([*facts, wrong], search.unrolled, count, search.budget)
    if model is not None:
        table = table_of(pair.operator, search.unrolled, count, model)
        old, new = replay(pair.old.operator, table), replay(pair.operator, table)
        found = pair.asked.difference(table, old, new)
        if found and old.agrees and new.agrees:
            return Verdict(name, "refuted", count, table=table, kind="same", expected=found)
    reason = "a stream of the model does not do it when it is run"
    return Verdict(name, "undecided", count - 1, reason, kind="same")
