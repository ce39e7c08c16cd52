"""``check``: what an operator can do on any stream."""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable
from typing import Any, Literal

from specstream.declarations.options import refuses_unknown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.counterexample import made_table, replay
from specstream.verify.domain import Domain, Given, steps_of_time
from specstream.verify.exploring import Asked, explore
from specstream.verify.induction import Induction, Invariant
from specstream.verify.invariants import prove_with_helpers
from specstream.verify.limits import Limits, check_operator
from specstream.verify.paths import NotModelled, OutOfTime
from specstream.verify.properties import Property, PropertyError
from specstream.verify.questions import (
    Always,
    Deadline,
    Each,
    Functions,
    Question,
    Within,
    deadlines_of,
)
from specstream.verify.report import Report, Verdict
from specstream.verify.search import Search, Shown
from specstream.verify.solvers import OutOfMemory, solve, solvers_within
from specstream.verify.step import Model

__all__ = ["check", "properties_of"]

_FIRST = 2  # events that are looked at before a proof is tried
_FINDINGS = 3  # events of the streams that findings are looked for in


@refuses_unknown
def check(
    operator: Operator,
    *,
    always: Functions = (),
    each: Functions = (),
    within: Within | Iterable[Within] = (),
    can_always: Functions | Literal["rows"] = (),
    assume: Functions = (),
    domain: Given | None = None,
    time_steps: Iterable[int] | None = None,
    within_states: Callable[..., Any] | int | None = None,
    events: int | None = None,
    rounds: int = 4,
    effort: float = 5.0,
    time: float = 60.0,
    memory: int | None = None,
    confirm: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """What an operator can do on *some* stream, or does on *every* one.

    Without a property, the findings: which exceptions there are, and where integers wrap, each with
    the shortest table that shows it. Every table has been run, on the sequential run and on an
    engine of two threads, before it is told.

    Args:
        operator: made by :func:`specstream.operator`, or a pipeline.
        always: functions of ``(state)``, which are to hold before the first event and after each.
        each: functions of any of ``(before, event, rows, after)``, which are to hold of each event.
        within: deadlines, see :func:`within`.
        can_always: with ``domain``: functions of any of ``(before, event, rows, after)``; from each
            state that a stream leads to, another one leads to an event of which it holds. Or
            ``"rows"``: to one that emits a row.
        assume: functions of ``(event)``: only streams are looked at whose events fit.
        domain: the values of each column, by its name; of a pipeline with several sources these of
            each. Then every state is looked at that events of these values lead to, as the
            sequential run makes them: also of operators with timers, priority queues or no
            compiled code.
        time_steps: with ``domain``, of an operator that goes by time: how long after one event the
            next one may come, in the unit of the times; in microseconds where durations are
            declared.
        within_states: with ``domain``: function of ``(state)``, and streams do not go on from
            states of which it does not hold; or the most states, by default 1,000,000.
        events: length of the streams that are looked at where there is no proof; by default 8, with
            ``domain`` as long as new states come.
        rounds: turns of a loop without a known end; what goes on longer is undecided.
        effort: work for one question to a solver, in units of about a second.
        time: the most seconds for all; with ``domain`` it is looked at between two events.
        memory: the most megabytes that the solvers take, together; by default as many as they need.
        confirm: a second solver repeats every step of a proof, and what it does not find as well is
            not proved.
        progress: with ``domain``: called with the number of states, about every thousand.

    Raises:
        ConfigurationError: a question is wrong; names the line of the property.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": bool}, emits={})
    ... def ticks(state, event, emit):
    ...     if event.x and state.count < 3:
    ...         state.count += 1
    >>> def few(state):
    ...     return 0 <= state.count <= 3
    >>> ss.verify.check(ticks, always=few).said
    'proved'
    """
    limits = Limits(
        events=8 if events is None else events,
        rounds=rounds,
        effort=effort,
        time=time,
        memory=memory,
    )
    check_operator("check", operator)
    invariants = properties_of(always, operator, ("state",), "always=")
    steps = properties_of(each, operator, ("before", "event", "rows", "after"), "each=")
    assumed = properties_of(assume, operator, ("event",), "assume=")
    deadlines = deadlines_of(within)
    goals = goals_of(can_always, operator)
    properties = [*invariants, *steps]
    names = distinct(
        [
            *(one.name for one in properties),
            *(one.name for one in deadlines),
            *("a row" if one is None else one.name for one in goals),
        ]
    )
    for one, name in zip(properties, names, strict=False):
        one.name = name
    report = Report(operator.name)
    if domain is not None:
        if confirm:
            raise ConfigurationError(
                "verify.check: confirm=True asks a second solver, and none is asked with domain=; "
                "leave it out"
            )
        of_domain = Domain(operator, domain, assumed, steps_of_time(time_steps, operator))
        later = iter(names[len(properties) :])
        asked = Asked(
            invariants,
            steps,
            [(one, next(later)) for one in deadlines],
            [(one, next(later)) for one in goals],
        )
        bounds = limits.bounds(events, within_states, progress, operator)
        try:
            explore(of_domain, asked, bounds, report)
        except NotModelled as stop:
            _give_up(report, names, f"{stop.what}; {stop.hint}")
        report.seconds = limits.seconds
        return report
    needs_domain(can_always=goals, time_steps=time_steps, within_states=within_states)
    try:
        with solvers_within(limits.memory):
            model = Model(operator, limits.rounds, limits.paths_until)
            questions: list[Question] = [*map(Always, invariants), *map(Each, steps)]
            questions += [
                Deadline(deadline, name, model, at)
                for at, (deadline, name) in enumerate(
                    zip(deadlines, names[len(properties) :], strict=True)
                )
            ]
            _Checking(model, assumed, limits, report, confirm).run(questions)
    except (NotModelled, OutOfMemory, OutOfTime) as stop:
        report.cut_short = isinstance(stop, OutOfTime)
        _give_up(report, names, str(stop))
    report.confirmed = confirm and any(one.said == "proved" for one in report.verdicts)
    report.seconds = limits.seconds
    report.cut_short = report.cut_short or limits.budget.cut_short
    return report


def properties_of(
    given: Functions, operator: Operator, parameters: tuple[str, ...], option: str
) -> list[Property]:
    functions = [given] if callable(given) or isinstance(given, str) else list(given)
    return [Property(one, operator, parameters, option) for one in functions]


def goals_of(given: Any, operator: Operator) -> list[Property | None]:
    """What ``can_always=`` asks for; None: a row."""
    if given == "rows":
        return [None]
    return list(properties_of(given, operator, ("before", "event", "rows", "after"), "can_always="))


def needs_domain(**options: Any) -> None:
    """Refuses options that are only for all states.

    Raises:
        ConfigurationError: one of them is given.
    """
    for name, value in options.items():
        if value is not None and value != [] and value is not False:
            raise ConfigurationError(
                f"verify: {name}= asks about all states of a finite domain; give domain= as well, "
                'the values of each column, like domain={"x": range(4)}'
            )


def distinct(names: list[str]) -> list[str]:
    """Names of which no two are alike, as those of lambdas are: the second one gets a number."""
    found: list[str] = []
    for name in names:
        numbers = (f"{name} ({number})" for number in range(2, len(names) + 2))
        found.append(next(one for one in (name, *numbers) if one not in found))
    return found


def _give_up(report: Report, names: list[str], reason: str) -> None:
    known = {one.name for one in report.verdicts}
    report.verdicts += [
        Verdict(one, "undecided", reason=reason) for one in names if one not in known
    ]
    if not names:
        report.undecided.append(reason)


class _Checking:
    """One call of :func:`check`."""

    def __init__(
        self,
        model: Model,
        assume: list[Property],
        limits: Limits,
        report: Report,
        confirm: bool,
    ) -> None:
        self.model, self.report, self.events = model, report, limits.events
        self.budget = limits.budget
        self.search = Search(model, assume, self.budget)
        self.induction = Induction(model, assume, self.budget, confirm)
        self.assume = assume
        self._stop: tuple[int, str] | None = None
        report.paths = len(model.ways)

    def run(self, questions: list[Question]) -> None:
        if (
            self.assume
            and solve(self.search.unrolled.facts(1, exact=False), self.budget)[0] == "unsat"
        ):
            names = ", ".join(one.name for one in self.assume)
            raise PropertyError(f"assume={names}: no event fits it; all would hold of no stream")
        if questions:
            self._answer(questions)
        else:
            self.report.deepest = min(self.events, _FINDINGS)
            self.report.findings = self.search.findings(self.report.deepest)
            self._note_stopped()
        self.search.validate()
        self.report.validated = len(self.search.validated)
        if self.search.broken:
            reason = f"the model is not the operator: {self.search.broken[0]}; please report it"
            self.report.undecided.append(reason)
            self.report.findings.clear()
            for one in self.report.verdicts:
                one.said, one.reason = "undecided", reason

    def _note_stopped(self) -> None:
        for way in self.model.ways:
            if way.stopped:
                self.report.undecided.append(way.stopped)

    def _answer(self, questions: list[Question]) -> None:
        first = min(_FIRST, self.events)
        refuted = self._look(questions, range(first + 1), is_last=False)
        proved = self._proved(
            [one.invariant for one in questions if one.invariant and one.name not in refuted]
        )
        for one in questions:
            if not isinstance(one, Each) or one.name in refuted:
                continue
            reason = self.induction.each(one.of, proved)
            if reason:
                self.induction.reasons[one.name] = reason
            else:
                self._say(Verdict(one.name, "proved", kind=one.kind))
        done = {one.name for one in self.report.verdicts}
        left = [one for one in questions if one.name not in done]
        if left:
            self._look(left, range(first + 1, self.events + 1), is_last=True)
        names = [one.name for one in questions]
        for verdict in self.report.verdicts:
            verdict.kind = questions[names.index(verdict.name)].kind
        self.report.verdicts.sort(key=lambda one: names.index(one.name))

    def _proved(self, asked: list[Invariant]) -> list[Invariant]:
        """What is proved, with helping invariants where it is not without."""
        began = clock.monotonic()
        proved = prove_with_helpers(self.induction, asked)
        helped = [one.name for one in proved if not one.is_asked]
        seconds = clock.monotonic() - began
        for one in proved:
            if one.is_asked:
                self._say(Verdict(one.name, "proved", helpers=helped, seconds=seconds))
        return proved

    def _say(self, verdict: Verdict) -> None:
        if all(one.name != verdict.name for one in self.report.verdicts):
            self.report.verdicts.append(verdict)

    def _look(self, questions: list[Question], counts: range, is_last: bool) -> set[str]:
        """Looks for streams that refute, from short to long; with ``is_last``, what is open is said
        to hold as far as it was looked."""
        refuted: set[str] = set()
        if self._stop is not None:
            for one in questions:
                self._undecided(one, *self._stop)
            return refuted
        open_ones = list(questions)
        deepest = counts.start - 1
        for count in counts:
            stopped = self.search.stopped(count) if count else None
            for one in list(open_ones):
                began = clock.monotonic()
                found = self._refute(one, count)
                if found is None:
                    continue
                found.seconds = clock.monotonic() - began
                open_ones.remove(one)
                self._say(found)
                refuted.add(one.name)
            if stopped is not None:
                # Longer streams may go on behind it, where nothing is known.
                self._stop = count - 1, stopped.stopped
                for one in open_ones if is_last else ():
                    self._undecided(one, *self._stop)
                return refuted
            deepest = count
        if is_last:
            for one in open_ones:
                reason = self.induction.reasons.get(one.name, "")
                self._say(Verdict(one.name, "holds", max(deepest, 0), f"not proved: {reason}"))
        return refuted

    def _undecided(self, one: Question, events: int, reason: str) -> None:
        more = f"; holds up to {events} events" if events > 0 else ""
        self._say(Verdict(one.name, "undecided", events, reason + more))

    def _refute(self, one: Question, count: int) -> Verdict | None:
        """A stream of so many events that refutes a question; None: there is none."""
        if count < one.least:
            return None
        facts = self.search.unrolled.facts(count)
        keys = self.search.unrolled.touched(count)
        wrong = one.wrong(self.search, count, keys)
        said, _ = solve([*facts, *one.lemmas(self.search, count, keys), wrong], self.budget)
        if said == "unsat":
            return None
        if said == "unknown":
            why = "time is over" if self.budget.cut_short else "no answer; try a larger effort="
            more = f"; holds up to {count - 1} events" if count > 1 else ""
            return Verdict(
                one.name, "undecided", max(count - 1, 0), f"{why}, at {count} events{more}"
            )
        if count == 0:
            table = made_table(self.model.operator, [], [])
            none = Shown(table, replay(self.model.operator, table), [])
            if one.is_wrong(none):
                why = _raised(one) or "it does not hold before the first event"
                return Verdict(one.name, "refuted", 0, why, table)
            return Verdict(one.name, "undecided", 0, "the model says otherwise of the first state")
        shown = self.search.stream([wrong], count)
        if shown is None or shown.differs or not one.is_wrong(shown):
            reason = "a stream of the model does not do it when it is run"
            why = "" if shown is None else shown.differs
            return Verdict(one.name, "undecided", count - 1, f"{reason}: {why}")
        return Verdict(one.name, "refuted", count, _raised(one), table=shown.table)


def _raised(one: Question) -> str:
    """What the property of a question has raised where it fails; "": nothing."""
    return "" if isinstance(one, Deadline) else one.of.raised
