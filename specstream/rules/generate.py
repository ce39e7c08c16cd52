"""From a rule's formula to the text of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.schema import Schema
from specstream.errors import DeclarationError
from specstream.rules.core import is_rising, skeleton
from specstream.rules.formula import (
    And,
    Formula,
    Or,
    Temporal,
    captured,
    conjunction,
    disjunction,
    has_future,
    has_temporal,
    lowered,
    negation,
    own,
    walk,
)
from specstream.rules.future import Future
from specstream.rules.nested import is_nested, known_parts
from specstream.rules.past import Past
from specstream.rules.quantifiers import Instances, has_instances
from specstream.rules.scan import Scan
from specstream.rules.single import Single
from specstream.rules.tested import Tested, is_tested
from specstream.rules.text import Node, Options, RuleText
from specstream.rules.writing import Record, plain
from specstream.verbs.writing import entry, indented, read

__all__ = ["Options", "Written", "written"]


@dataclass
class Written:
    """The text of an operator, and what names in it stand for.

    Attributes:
        text: its module, from the classes of its state on.
        names: objects that it takes from elsewhere.
        has_timers: whether it does something where time passes.
        needs_time: whether it asks for an order.
        notes: what its explanation says beside.
    """

    text: str
    names: dict[str, Any]
    has_timers: bool
    needs_time: bool
    notes: list[str]


class Generator(RuleText):
    """The text, put together."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.past = Past(self)
        self.scan = Scan(self)

    # ---- the whole ----

    def write(self) -> Written:
        """The text."""
        top = self.formula
        ahead = [one for one in skeleton(top) if has_future(one)]
        self.past.collect(top)
        self.nodes = [Node(one, at, self.is_wholesale(one)) for at, one in enumerate(ahead)]
        if len(ahead) == 1 and not self.options.anchored and is_rising(top, ahead[0]) is not None:
            (node,) = self.nodes
            node.is_tested = is_tested(self, node.formula) or has_instances(self, node.formula)
        for node in self.nodes:
            node.is_nested = not self.options.anchored and is_nested(self, node.formula)
            if node.is_nested:
                for part in known_parts(node.formula):
                    self.past.collect(part)
            elif node.is_tested and not node.is_wholesale:
                for one in walk(node.formula):
                    if isinstance(one, Temporal) and not one.is_future:
                        self.past.collect(own(one))
            elif node.is_wholesale:
                for part in node.formula.parts:  # type: ignore[attr-defined]
                    self.past.collect(lowered(part, 1))
            else:
                self.scan.needs(node.formula)
        later = self.ahead() if self.nodes or self.options.anchored else None
        first = self.past.lines()
        body = [*first, *(self.told_now() if later is None else later.lines())]
        if later is None:
            body += self.scan.dropped()
        if later is not None:
            body = later.fill(body)
        body = self.scan.fill(body)
        return self.module(["now = event.timestamp", *body])

    def is_wholesale(self, formula: Formula) -> bool:
        """Whether an operator's parts are about its own event alone, and known with it."""
        return (
            isinstance(formula, Temporal)
            and not captured(formula)
            and not any(map(has_future, formula.parts))
            and all(self.past.is_closed(lowered(part, 1)) for part in formula.parts)
        )

    def told_now(self) -> list[str]:
        """Statements for a rule that is settled with each event."""
        because = self.blame(self.formula, self.now_part)
        no = self.row(self.event, "False", "now", because)
        test = plain(self.now(self.formula))
        late = self.past.late_lines()
        if late and isinstance(self.formula, And | Or):
            # What is costly, or may raise, is asked of the events that it matters to.
            some = self.formula.parts
            first = tuple(one for one in some if not has_temporal(one))
            rest = tuple(one for one in some if has_temporal(one))
            if first and rest:
                return self._guarded(first, rest, late, no)
        if late:
            return [*late, *self._told_both(test, no)]
        return self._told_both(test, no)

    def _guarded(
        self,
        first: tuple[Formula, ...],
        rest: tuple[Formula, ...],
        late: list[str],
        no: list[str],
    ) -> list[str]:
        """Statements that ask some parts first, and the rest where these do not settle it."""
        yes = self.row(self.event, "True", "now", "None") if self.tells_true else []
        if isinstance(self.formula, Or):
            guard, then = negation(disjunction(first)), disjunction(rest)
            otherwise = yes
        else:
            guard, then = conjunction(first), conjunction(rest)
            because = self.blame(guard, self.now_part)
            otherwise = self.row(self.event, "False", "now", because)
        test = plain(self.now(then))
        told = [f"if {test}:", *indented(yes), "else:", *indented(no)]
        if not yes:
            told = [f"if not ({test}):", *indented(no)]
        return [
            f"if {plain(self.now(guard))}:",
            *indented([*late, *told]),
            *(["else:", *indented(otherwise)] if otherwise else []),
        ]

    def _told_both(self, test: str, no: list[str]) -> list[str]:
        if self.tells_true:
            yes = self.row(self.event, "True", "now", "None")
            return [f"if {test}:", *indented(yes), "else:", *indented(no)]
        return [f"if not ({test}):", *indented(no)]

    # ---- what waits ----

    def ahead(self) -> Future | Single:
        """What waits, of a rule that needs later events."""
        if len(self.nodes) == 1 and not self.options.anchored:
            (node,) = self.nodes
            if is_rising(self.formula, node.formula) is not None:
                if node.is_wholesale:
                    return Single(self)
                if node.is_tested:
                    is_one = isinstance(node.formula, Temporal)
                    return Tested(self) if is_one else Instances(self)
        return Future(self)

    # ---- text ----

    def module(self, body: list[str]) -> Written:
        state = [f"{name} = {of}" for name, of in self.fields.items()]
        has_timers = bool(self.timers)
        if has_timers:
            by = self.key if self.timers_by_key else ()
            of = [kept_as(self.columns[one]).__name__ for one in by]
            state.append(f"timers = ss.timers({entry(['int', *of])})")
        lines: list[str] = []
        for one in self.records:
            try:
                lines += [*one.declared(), "", ""]
            except DeclarationError as error:
                raise DeclarationError(f"rule {self.name!r}: {error}") from None
        if state:
            lines += ["class State(ss.State):", *indented(state), "", ""]
        for helper in self.helpers:
            lines += [*helper.splitlines(), "", ""]
        parameters = "state, event, emit" if state else "event, emit"
        body = self.keyed(body)
        if has_timers:
            fired: list[str] = []
            timers = sorted(self.timers.items(), key=_otherwise_last)
            number_of = "timer.key[0]" if self.timers_by_key else "timer.key"
            for at, (number, call) in enumerate(timers):
                word = "if" if at == 0 else "elif"
                test = f"{word} {number_of} == {number}:" if number >= 0 else "else:"
                if number < 0 and at == 0:
                    test = f"if {number_of} >= 0:"
                fired += [test, f"    {call}"]
            lines += ["def on_timer(state, timer, emit):", *indented(fired), "", ""]
        lines += [f"def {self.name}({parameters}):", *indented(body)]
        return Written("\n".join(lines) + "\n", self.names, has_timers, self.needs_time, self.notes)

    @property
    def records(self) -> list[Record]:
        """Classes of records, those that are used."""
        some = [one for one in (self.past.seen, self.waiting) if one.fields]
        return [*some, *self.more_records]

    def keyed(self, body: list[str]) -> list[str]:
        """Statements of the event's key; an event whose key is null is dropped."""
        if not self.key:
            return body
        parts = [read(one) for one in self.key]
        lines = [f"key = {entry(parts)}", *body]
        tests = [f"{read(one)} is not None" for one in self.key if self.columns[one].nullable]
        return [f"if {' and '.join(tests)}:", *indented(lines)] if tests else lines


def _otherwise_last(timer: tuple[int, str]) -> bool:
    return timer[0] < 0


def written(
    name: str,
    formula: Formula,
    names: Mapping[str, Any],
    columns: Schema,
    key: tuple[str, ...],
    options: Options,
) -> Written:
    """The operator of a rule, as text.

    Args:
        name: of its function.
        formula: what it says.
        names: what names in conditions stand for.
        columns: of the event.
        key: names of the columns whose values are traces of their own.
        options: how it is told.
    """
    return Generator(name, formula, names, columns, key, options).write()
