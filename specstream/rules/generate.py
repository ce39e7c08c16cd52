"""From a rule's formula to the text of an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.schema import Schema
from specstream.errors import DeclarationError
from specstream.rules.core import blamed, core, is_rising, skeleton
from specstream.rules.formula import (
    And,
    Atom,
    Constant,
    Formula,
    Iff,
    Not,
    Or,
    Quantifier,
    Temporal,
    captured,
    disjunction,
    has_future,
    has_temporal,
    lowered,
    negation,
    own,
    variable,
    walk,
)
from specstream.rules.future import Future
from specstream.rules.past import Past
from specstream.rules.quantifiers import Instances, has_instances
from specstream.rules.scan import Scan
from specstream.rules.single import Single
from specstream.rules.tested import Tested, is_tested
from specstream.rules.writing import (
    Current,
    Place,
    Record,
    indented,
    placed,
    plain,
    truth,
)
from specstream.verbs.writing import entry, read

__all__ = ["Options", "Written", "written"]

END = 2**63 - 1
_MOST_GUESSES = 6


@dataclass(frozen=True)
class Options:
    """How a rule is told.

    Attributes:
        at_end: what the end of the input says of what is not settled: "open" or "closed".
        report: which verdicts there are rows of: "violations" or "all"; of a rule of first events
            "changes" or "all".
        keep: columns of the event that rows have as well.
        anchored: it is asked of the first event of each trace alone.
        limit: the most events that wait.
    """

    at_end: str = "open"
    report: str = "violations"
    keep: tuple[str, ...] = ()
    anchored: bool = False
    limit: int = 2**24


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


@dataclass
class Node:
    """An operator that looks ahead, from the events that wait.

    Attributes:
        formula: itself.
        number: of its bits.
        is_wholesale: it says the same of all that wait, from the oldest one up to some one; else
            each is looked at by itself.
        is_tested: each is compared with each event that comes, and with no other.
    """

    formula: Formula
    number: int
    is_wholesale: bool
    is_tested: bool = False


class Generator:
    """An operator in the making."""

    def __init__(
        self,
        name: str,
        formula: Formula,
        names: Mapping[str, Any],
        columns: Schema,
        key: tuple[str, ...],
        options: Options,
    ) -> None:
        self.name, self.key, self.options = name, key, options
        self.columns = dict(columns)
        self.formula = core(formula)
        self.names = dict(names)
        self.event = Current(self.columns)
        self.fields: dict[str, str] = {}
        self.helpers: list[str] = []
        self.notes: list[str] = []
        self.waiting = Record("Waiting", self.columns, self.names)
        self.past = Past(self)
        self.scan = Scan(self)
        self.timers: dict[int, str] = {}
        self.more_records: list[Record] = []
        self.needs_time = False
        self.count = 0

    # ---- names ----

    def key_type(self, *more: str) -> str:
        """Of the dicts by key."""
        found = [kept_as(self.columns[one]).__name__ for one in self.key]
        found += more
        return found[0] if len(found) == 1 else f"({', '.join(found)})"

    def key_and(self, *more: str) -> str:
        """An expression for the key of the event, and what is behind it."""
        if not self.key:
            return entry(more)
        parts = ["key"] if len(self.key) == 1 else [f"key[{at}]" for at in range(len(self.key))]
        return entry([*parts, *more])

    def dict_of(self, value: str, *more: str, expires: int | None = None) -> str:
        """A dict of the state, by the key and more."""
        lasts = "" if expires is None else f", expire_after={expires + 1}"
        return f"ss.dict({self.key_type(*more)}, {value}, limit={self.options.limit}{lasts})"

    # ---- conditions ----

    def now(self, formula: Formula) -> str:
        """An expression for a formula that is known with the event."""
        match formula:
            case Constant(value=value):
                return str(value)
            case Atom(code=code):
                return placed(code, {"v0": self.event}, self.names)
            case Not(part=part):
                return f"(not {self.now_part(part)})"
            case And(parts=some):
                return f"({' and '.join(map(self.now_part, some))})"
            case Or(parts=some):
                return f"({' or '.join(map(self.now_part, some))})"
            case Iff(left=left, right=right):
                return f"({self.now_truth(left)} == {self.now_truth(right)})"
            case Temporal() | Quantifier():
                return self.past.name_of(formula)
        raise AssertionError(formula)

    def of_two(self, formula: Formula, places: Mapping[str, Place]) -> str:
        """An expression for a formula about the event that comes and one that is kept."""
        match formula:
            case Atom(code=code):
                return f"({placed(code, places, self.names)})"
            case Not(part=part):
                return f"(not {self.of_two(part, places)})"
            case And(parts=some) | Or(parts=some):
                word = " and " if isinstance(formula, And) else " or "
                return f"({word.join(self.of_two(one, places) for one in some)})"
            case Iff(left=left, right=right):
                sides = [truth(plain(self.of_two(one, places))) for one in (left, right)]
                return f"({sides[0]} == {sides[1]})"
            case Temporal() if isinstance(places[variable(formula.at)], Current):
                return self.past.name_of(own(formula))
        return self.now(formula)

    def now_part(self, formula: Formula) -> str:
        found = self.now(formula)
        return f"({found})" if isinstance(formula, Atom) else found

    def now_truth(self, formula: Formula) -> str:
        return f"({truth(plain(self.now(formula)))})"

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
            if node.is_tested and not node.is_wholesale:
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

    # ---- rows ----

    def row(self, place: Place, verdict: str, decided: str, because: str) -> list[str]:
        """A statement that sends a row about an event."""
        is_event = isinstance(place, Current)
        time = "now" if is_event else place.attribute("v0", "timestamp")
        values = [self.column(place, one) for one in self.key]
        values += [time, verdict, decided, because]
        values += [self.column(place, one) for one in self.options.keep]
        return [f"emit({', '.join(values)})"]

    def column(self, place: Place, name: str) -> str:
        found = place.attribute("v0", name)
        if isinstance(place, Current) and self.columns[name].nullable and name not in self.key:
            return f"None if {found} is None else {found}"
        return plain(found)

    def blame(
        self, formula: Formula, value: Callable[[Formula], str], atoms: Sequence[Formula] = ()
    ) -> str:
        """An expression for the text of the part that failed."""
        pairs = blamed(formula, atoms)
        texts = [one.text or formula.text for one, _ in pairs]
        if len(set(texts)) == 1:
            return repr(texts[0])
        found = repr(texts[-1])
        for text, (_, test) in reversed(list(zip(texts[:-1], pairs[:-1], strict=True))):
            found = f"{text!r} if not {value(test)} else {found}"
        return f"({found})"

    @property
    def tells_true(self) -> bool:
        return self.options.report != "violations"

    def told_now(self) -> list[str]:
        """Statements for a rule that is settled with each event."""
        because = self.blame(self.formula, self.now_part)
        no = self.row(self.event, "False", "now", because)
        test = plain(self.now(self.formula))
        late = self.past.late_lines()
        if late and isinstance(self.formula, Or) and not self.tells_true:
            # What is costly is looked up for the events that it matters to.
            first = [one for one in self.formula.parts if not has_temporal(one)]
            rest = tuple(one for one in self.formula.parts if has_temporal(one))
            if first and rest:
                then = plain(self.now(disjunction(rest)))
                return [
                    f"if {plain(self.now(negation(disjunction(tuple(first)))))}:",
                    *indented([*late, f"if not ({then}):", *indented(no)]),
                ]
        if late:
            return [*late, *self._told_both(test, no)]
        return self._told_both(test, no)

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
            state.append("timers = ss.timers(int)")
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
            for at, (number, call) in enumerate(timers):
                word = "if" if at == 0 else "elif"
                test = f"{word} timer.key == {number}:" if number >= 0 else "else:"
                if number < 0 and at == 0:
                    test = "if timer.key >= 0:"
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
