"""What is asked of an operator: of its states, of each event, or of how soon it answers.

A question is a term of the solver that is true of a stream on which it fails, a formula for the
proof, and a look at what came out when a stream was run.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import z3

from specstream.declarations.options import integer, refuses_unknown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.bounded import Step
from specstream.verify.counterexample import events_seen
from specstream.verify.formulas import Formula, PropertyState
from specstream.verify.induction import Invariant, of_event
from specstream.verify.properties import Property, PropertyError
from specstream.verify.search import Search, Shown
from specstream.verify.solvers import Budget, solve
from specstream.verify.step import Model, Way
from specstream.verify.values import INT, bits

__all__ = [
    "Always",
    "Deadline",
    "Each",
    "Functions",
    "Question",
    "Within",
    "deadlines_of",
    "holds",
    "is_late",
    "property_or_none",
    "within",
]

Functions = Callable[..., Any] | Iterable[Callable[..., Any]]
_OF_EVENT = ("before", "event", "rows", "after")


@refuses_unknown
@dataclass(frozen=True)
class Within:
    """A deadline, as :func:`within` makes it.

    Attributes:
        events: within how many something is answered.
        trigger: whether an event asks for an answer; None: each does.
        response: whether an event answers; None: where it emits a row.
    """

    events: int
    trigger: Callable[..., Any] | None = None
    response: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        response = "a row" if self.response is None else self.response.__name__
        behind = "" if self.trigger is None else f" of {self.trigger.__name__}"
        return f"{response} within {self.events} event{'s'[: self.events != 1]}{behind}"


@refuses_unknown
def within(
    events: int,
    trigger: Callable[..., Any] | None = None,
    response: Callable[..., Any] | None = None,
) -> Within:
    """A deadline for ``check(..., within=...)``: what is asked for is answered soon.

    Args:
        events: at most so many, the one that asks among them: with 1 it is answered at once.
        trigger: function of any of ``(before, event, rows, after)``, whether an event asks for an
            answer. By default each does: of so many events in a row one answers.
        response: likewise, whether an event answers all that was asked for; by default, whether it
            emits a row.

    Raises:
        ConfigurationError: the number is none, or less than 1.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": bool}, emits={"count": int})
    ... def third(state, event, emit):
    ...     state.count = state.count + 1 if state.count < 2 else 0
    ...     if state.count == 0:
    ...         emit(3)
    >>> ss.verify.check(third, within=ss.verify.within(3)).said
    'proved'
    >>> print(ss.verify.check(third, within=ss.verify.within(2)).verdicts[0])
    refuted
    """
    return Within(integer("verify.within: events", events, 1, 1000), trigger, response)


class Always:
    """A property of every state."""

    kind = "always"
    least = 0
    """Events of the shortest stream on which it may fail."""

    def __init__(self, of: Property) -> None:
        self.of, self.name = of, of.name
        self.invariant = Invariant(of.name, self._formula)

    def _formula(self, state: PropertyState) -> Formula:
        found: Formula = self.of.formula(state=state)
        return found

    def wrong(self, search: Search, count: int, keys: Any) -> Any:
        """When a stream of so many events is one on which it fails."""
        return z3.Not(self._formula(search.state(count)).shown(keys, {}))

    def lemmas(self, search: Search, count: int, keys: Any) -> list[Any]:
        """No shorter stream is one."""
        return _held_before(self._formula, search, count, keys)

    def is_wrong(self, shown: Shown) -> bool:
        """Whether it fails of what came out, of the oracle and of the engine."""
        run = shown.replay
        return not any(holds(self.of, state=one) for one in (run.states[-1], run.engine_state))


class Each:
    """A property of every event, and of what it does."""

    kind = "each"
    least = 1
    invariant: Invariant | None = None

    def __init__(self, of: Property) -> None:
        self.of, self.name = of, of.name

    def wrong(self, search: Search, count: int, keys: Any) -> Any:
        step = search.unrolled.step(count - 1)
        model = search.model
        ways = [
            z3.And(guard, z3.Not(self._of_event(model, way, step).shown(keys, {})))
            for way, guard in zip(model.ways, step.guards, strict=True)
            if not way.stopped
        ]
        return z3.Or(*ways)

    def _of_event(self, model: Model, way: Way, step: Step) -> Formula:
        layout = model.layout
        after = {name: step.renamed(term) for name, term in way.state.items()}
        rows = []
        for row in way.rows:
            terms = {name: step.renamed(term) for name, term in row.terms.items()}
            rows.append(type(row)(row.schema, terms, row.nulls))
        found: Formula = self.of.formula(
            before=PropertyState(layout, step.before, step.before["#now"]),
            after=PropertyState(layout, after, after["#now"]),
            event=Model.view(step.event),
            rows=rows,
        )
        return found

    def lemmas(self, search: Search, count: int, keys: Any) -> list[Any]:
        return []

    def is_wrong(self, shown: Shown) -> bool:
        *_, last = events_seen(shown.table, shown.replay)
        return not holds(self.of, **last)


class Deadline:
    """Something is answered within so many events.

    A word of the state counts the events since something waits for its answer: 1 at the event that
    asks, 0 where nothing waits. It is the number of events that is to stay below.
    """

    kind = "within"

    def __init__(self, of: Within, name: str, model: Model, number: int) -> None:
        self.events, self.name, self.least = of.events, name, of.events
        self.word = f"#waiting{number}"
        self.response = property_or_none(of.response, model.operator, "response=")
        self.trigger = property_or_none(of.trigger, model.operator, "trigger=")
        self.invariant: Invariant | None = Invariant(self.name, self._formula)
        self._count(model)

    def _formula(self, state: PropertyState) -> Formula:
        waiting = vars(state)["_store"][self.word]
        return Formula("term", z3.And(waiting >= 0, waiting < self.events))

    def _count(self, model: Model) -> None:
        """Adds the word to a model."""
        before = model.before[self.word] = z3.Const(self.word, INT)
        model.start[self.word] = bits(0)
        asks = []
        for way in model.ways:
            if way.stopped:
                way.state[self.word] = before
                continue
            answered = z3.BoolVal(bool(way.rows))
            if self.response is not None:
                answered = _exact(self.response, model, way)
            asked = z3.BoolVal(True)
            if self.trigger is not None:
                asked = _exact(self.trigger, model, way)
                asks.append(z3.And(way.guard, asked))
            waits = z3.If(before > 0, before + 1, z3.If(asked, bits(1), bits(0)))
            way.state[self.word] = z3.simplify(z3.If(answered, bits(0), waits))
            way.changes = True
        if self.trigger is not None and _never(model, asks):
            self.trigger.refuse_all("no event asks for an answer", "ask for what may happen")

    def wrong(self, search: Search, count: int, keys: Any) -> Any:
        return vars(search.state(count))["_store"][self.word] >= self.events

    def lemmas(self, search: Search, count: int, keys: Any) -> list[Any]:
        return _held_before(self._formula, search, count, keys)

    def is_wrong(self, shown: Shown) -> bool:
        seen = events_seen(shown.table, shown.replay)
        return is_late(self.events, self.trigger, self.response, seen)


def is_late(
    events: int,
    trigger: Property | None,
    response: Property | None,
    seen: Iterable[dict[str, Any]],
) -> bool:
    """Whether the last of some events is one too many for an answer."""
    waiting = 0
    for one in seen:
        answers = bool(one["rows"]) if response is None else holds(response, **one)
        asks = trigger is None or holds(trigger, **one)
        waiting = 0 if answers else waiting + 1 if waiting else int(asks)
    return waiting >= events


Question = Always | Each | Deadline


def _held_before(
    formula: Callable[[PropertyState], Formula], search: Search, count: int, keys: Any
) -> list[Any]:
    """What an invariant says of the states before the last one of so many events."""
    return [formula(state).assumed(keys, {}) for state in map(search.state, range(count))]


def property_or_none(
    function: Callable[..., Any] | None, operator: Operator, option: str
) -> Property | None:
    """What a deadline asks about."""
    return None if function is None else Property(function, operator, _OF_EVENT, option)


def _exact(of: Property, model: Model, way: Way) -> Any:
    """What a property says of an event on a path, as a term that says neither more nor less."""
    found = of_event(of, model, way)
    if not found.is_exact:
        of.refuse_all("it goes through a field", "a trigger or response asks for single values")
    return found.shown({}, {})


def _never(model: Model, cases: list[Any]) -> bool:
    facts = [*model.facts, z3.Or(*cases)]
    return solve(facts, Budget(1.0, float("inf")))[0] == "unsat"


def holds(one: Property, **values: Any) -> bool:
    """Whether a property holds of values that are known; one that raises does not, and says so."""
    try:
        return one.holds(**values)
    except PropertyError as error:
        if str(error).startswith("property "):
            raise
        one.refuse_all(*str(error).split("; ", 1))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        one.raised = f"property {one.name!r} raises {type(error).__name__} there, {error}"
        return False


def deadlines_of(given: Within | Iterable[Within]) -> list[Within]:
    """The deadlines that somebody asks about.

    Raises:
        ConfigurationError: something else is given.
    """
    several: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    for one in several:
        if not isinstance(one, Within):
            raise ConfigurationError(
                f"verify.check: within={one!r}; expected what ss.verify.within(events, ...) makes"
            )
    return several
