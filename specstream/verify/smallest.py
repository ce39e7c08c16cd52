"""``smallest``: the least bound of a number of the state, or a stream along which it grows."""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from typing import Any

from specstream.compiler.language.definitions import keep_text
from specstream.compiler.language.parsing import parse
from specstream.declarations.options import refuses_unknown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.checking import properties_of
from specstream.verify.counterexample import made_table, plain_state
from specstream.verify.induction import Induction
from specstream.verify.invariants import prove_with_helpers
from specstream.verify.limits import Limits, check_operator
from specstream.verify.paths import NotModelled, OutOfTime
from specstream.verify.properties import Property, PropertyError
from specstream.verify.questions import Always, Functions
from specstream.verify.report import Report, Verdict
from specstream.verify.search import Search, Shown
from specstream.verify.solvers import Budget, OutOfMemory, solve, solvers_within
from specstream.verify.step import Model

__all__ = ["number_of", "smallest"]

# Events for which a stream is repeated, to see whether it grows all the time.
_REPEATED = 2_000
_LEAST_TURNS = 4


@refuses_unknown
def smallest(
    operator: Operator,
    size: Callable[..., Any],
    *,
    assume: Functions = (),
    events: int = 8,
    rounds: int = 4,
    effort: float = 5.0,
    time: float = 60.0,
    memory: int | None = None,
) -> Report:
    """The least bound of a number of the state, like the length of a queue.

    The verdict is "proved" with the bound, which some stream reaches; "refuted" with a stream that
    makes it grow as often as it is repeated, 2,000 events long; else "holds", with the greatest
    number of streams of so many events.

    Args:
        operator: made by :func:`specstream.operator`, or a pipeline.
        size: function of ``(state)`` that gives an int.
        assume, events, rounds, effort, time, memory: as of :func:`check`.

    Raises:
        ConfigurationError: the question is wrong.

    >>> import specstream as ss
    >>> class Waiting(ss.State):
    ...     queue = ss.deque(int)
    >>> @ss.operator(state=Waiting, event={"x": int}, emits={"both": int})
    ... def pairs(state, event, emit):
    ...     state.queue.append(event.x)
    ...     if len(state.queue) == 2:
    ...         emit(state.queue.popleft() + state.queue.popleft())
    >>> def waiting(state):
    ...     return len(state.queue)
    >>> ss.verify.smallest(pairs, waiting).verdicts[0].bound
    1
    """
    limits = Limits(events=events, rounds=rounds, effort=effort, time=time, memory=memory, least=1)
    check_operator("smallest", operator)
    assumed = properties_of(assume, operator, ("event",), "assume=")
    of = _Size(size, operator)
    report = Report(operator.name)
    try:
        with solvers_within(limits.memory):
            model = Model(operator, limits.rounds, limits.paths_until)
            report.paths = len(model.ways)
            search = _Growth(of, model, assumed, limits.budget)
            report.verdicts.append(search.answer(limits.events))
            report.validated = len(search.search.validated)
    except (NotModelled, OutOfMemory, OutOfTime) as stop:
        report.verdicts.append(Verdict(of.name, "undecided", reason=str(stop), kind="smallest"))
    report.seconds = report.verdicts[0].seconds = limits.seconds
    report.cut_short = limits.budget.cut_short
    return report


def number_of(text: str, operator: Operator) -> Callable[..., Any]:
    """The function that an expression of ``state`` is, like ``len(state.queue)``; of a container
    alone its length.

    Raises:
        ConfigurationError: it is no expression.
    """
    try:
        tree = parse(text.strip(), "eval").body
    except SyntaxError as error:
        raise ConfigurationError(
            f"--smallest {text!r}: {error.msg}; expected an expression like len(state.queue)"
        ) from None
    field = operator.layout.field(ast.unparse(tree).removeprefix("state."))
    is_several = field is not None and (field.container is not None or field.dimensions != ())
    body = f"len({text.strip()})" if is_several else text.strip()
    source, file = f"def size(state):\n    return {body}\n", f"<{text}>"
    keep_text(file, source)
    names: dict[str, Any] = {}
    exec(compile(source, file, "exec"), names)
    made: Callable[..., Any] = names["size"]
    vars(made)["text"] = body
    return made


class _Size:
    """A number of the state."""

    def __init__(self, size: Callable[..., Any], operator: Operator) -> None:
        self.size, self.operator = size, operator
        self.name = getattr(size, "text", size.__name__)
        self.at_most(0)  # what is wrong with the function is said at once
        none = made_table(operator, [], [])
        self.first = self.of(operator.run_sequential(none.table, order_by=none.order_by).state)

    def of(self, view: Any) -> int:
        """Of a state that is known."""
        try:
            found = self.size(plain_state(self.operator, view))
        except Exception as error:
            raise PropertyError(
                f"property {self.name!r} raises {type(error).__name__}, {error}; it has to be a "
                "number of every state, the first one among them"
            ) from None
        if isinstance(found, bool) or not isinstance(found, int):
            raise PropertyError(
                f"property {self.name!r}: it returns {type(found).__name__}, no int; like "
                "len(state.queue)"
            )
        return found

    def at_most(self, bound: int) -> Always:
        """The property that it is at most a bound."""
        size = self.size

        # It is read as a property, and so has no types.
        def at_most(state):  # type: ignore[no-untyped-def]
            return size(state) <= bound

        made = Property(at_most, self.operator, ("state",), "size")
        made.name = self.name
        return Always(made)


class _Growth:
    """The search for the greatest number, and for a stream along which it grows."""

    def __init__(self, of: _Size, model: Model, assume: list[Property], budget: Budget) -> None:
        self.of, self.model, self.budget = of, model, budget
        self.search = Search(model, assume, budget)
        self.induction = Induction(model, assume, budget)
        self.bound, self.table = of.first, made_table(model.operator, [], [])

    def answer(self, events: int) -> Verdict:
        """The verdict after streams of up to so many events."""
        tried: int | None = None  # the bound that is not proved; each is tried once
        for count in range(1, events + 1):
            stopped = self.search.stopped(count)
            if stopped is not None:
                why = f"{stopped.stopped}; at most {self.bound} up to {count - 1} events"
                return self._verdict("undecided", count - 1, why)
            found = self._greatest(count)
            if isinstance(found, str):
                return self._verdict("undecided", count - 1, f"{found}, at {count} events")
            if found is not None:
                grows = self._repeated(found)
                if grows:
                    return self._verdict("refuted", len(self.table), grows)
            if self.bound == tried or (found is not None and count < events):
                continue
            if self._is_proved():
                return self._verdict("proved", 0, f"at most {self.bound}, which a stream reaches")
            tried = self.bound
        reason = self.induction.reasons.get(self.of.name, "no answer")
        return self._verdict("holds", events, f"at most {self.bound}; not proved: {reason}")

    def _verdict(self, said: Any, events: int, reason: str) -> Verdict:
        found = Verdict(self.of.name, said, events, reason, kind="smallest")
        found.table = self.table if len(self.table) else None
        found.bound = None if said in ("refuted", "undecided") else self.bound
        return found

    def _is_proved(self) -> bool:
        """Whether the number stays at most what was reached."""
        asked = self.of.at_most(self.bound).invariant
        return any(one.is_asked for one in prove_with_helpers(self.induction, [asked]))

    def _above(self, bound: int, count: int) -> Any:
        keys = self.search.unrolled.touched(count)
        return self.of.at_most(bound).wrong(self.search, count, keys)

    def _greatest(self, count: int) -> Shown | str | None:
        """A stream of so many events that makes it greater than it was, as great as it can be; a
        text: why that is not known."""
        facts = self.search.unrolled.facts(count)
        below, above = self.bound - 1, 2**63 - 1  # it gets above the one, and not above the other
        step = 1
        while above - below > 1:
            middle = min(below + step, (below + above + 1) // 2)
            said, _ = solve([*facts, self._above(middle, count)], self.budget)
            if said == "unknown":
                return "no answer; try a larger effort="
            if said == "sat":
                below, step = middle, 2 * step
            elif middle == self.bound:
                return None
            else:
                above, step = middle, 2**63
        shown = self.search.stream([self._above(below, count)], count)
        if shown is None or shown.differs:
            why = "" if shown is None else f": {shown.differs}"
            return f"a stream of the model does not do it when it is run{why}"
        reached = self.of.size(shown.replay.states[-1])
        if reached <= self.bound:
            return "a stream of the model does not do it when it is run"
        self.bound, self.table = reached, shown.table
        return shown

    def _repeated(self, shown: Shown) -> str:
        """How it grows along a stream whose end is repeated; "": it does not, and what the longer
        stream has reached is the bound."""
        values, count = shown.table.values, len(shown.table)
        for period in range(1, count + 1):
            turns = max(_LEAST_TURNS, _REPEATED // period)
            at, times = list(values), self._times(shown, period, turns)
            for _ in range(turns):
                at += values[count - period :]
            table = made_table(self.model.operator, at, times)
            few = count + _LEAST_TURNS * period
            sizes = [self._size_after(table, end) for end in range(count, few + 1, period)]
            steps = {later - one for one, later in itertools.pairwise(sizes)}
            if len(steps) != 1 or (step := steps.pop()) <= 0:
                continue
            reached = self._size_after(table, len(at))
            if reached != sizes[0] + step * turns:
                self._note(at, times, reached)
            else:
                self.table = made_table(self.model.operator, at[:few], times[:few])
                by = f"grows by {step} every {period} event{'s'[: period != 1]}"
                return f"{by}, of {turns} turns run"
        return ""

    def _note(self, values: list[dict[str, Any]], times: list[int], reached: int) -> None:
        """A long stream has reached more than short ones."""
        if reached <= self.bound:
            return
        whole = made_table(self.model.operator, values, times)
        low, high = 0, len(values)
        while high - low > 1:  # it does not shrink before it has reached that
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self._size_after(whole, middle) >= reached else (middle, high)
            )
        self.bound = reached
        self.table = made_table(self.model.operator, values[:high], times[:high])

    def _times(self, shown: Shown, period: int, turns: int) -> list[int]:
        """The times of a stream whose last events are repeated, each turn behind the other."""
        times, count = shown.table.times, len(shown.table)
        begun = times[count - period - 1] if count > period else times[0]
        more = times[-1] - begun
        last = times[count - period :]
        return times + [one + more * turn for turn in range(1, turns + 1) for one in last]

    def _size_after(self, table: Any, events: int) -> int:
        run = self.model.operator.run_sequential(
            table.table.slice(0, events), on_error="skip", order_by=table.order_by
        )
        return self.of.of(run.state)
