"""The text of a rule's operator: names, conditions about the event that comes, and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.schema import Column, Schema
from specstream.rules.core import blamed, core
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
    own,
    variable,
)
from specstream.rules.writing import ZEROS, Current, Place, Record, placed, plain, truth
from specstream.verbs.counting import END
from specstream.verbs.writing import entry

__all__ = ["Node", "Options", "RuleText"]


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
class Node:
    """An operator that looks ahead, from the events that wait.

    Attributes:
        formula: itself.
        number: of its bits.
        is_wholesale: it says the same of all that wait, from the oldest one up to some one; else
            each is looked at by itself.
        is_tested: each is compared with each event that comes, and with no other.
        is_nested: it asks others that look ahead, and its value comes through stages.
    """

    formula: Formula
    number: int
    is_wholesale: bool
    is_tested: bool = False
    is_nested: bool = False


class RuleText:
    """The text of a rule's operator, in the making.

    Attributes:
        past: the operators that look back.
        scan: what goes through kept events.
        nodes: those that look ahead.
        timers_by_key: whether timers have the key beside their number.
    """

    past: Any
    scan: Any
    nodes: list[Node]
    timers_by_key = False

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
        # Of a key with a null there is no trace.
        nullable = [one for one in key if self.columns[one].nullable]
        parts = dict(zip(key, self.key_parts(), strict=True)) if key else {}
        places = {one: parts[one] for one in nullable}
        self.event = Current(self.columns, places)
        bare = {one: Column(self.columns[one].kind, self.columns[one].arrow) for one in nullable}
        self.stored_columns = {**self.columns, **bare}
        self.fields: dict[str, str] = {}
        self.helpers: list[str] = []
        self.notes: list[str] = []
        self.waiting = Record("Waiting", self.stored_columns, self.names)
        self.timers: dict[int, str] = {}
        self.more_records: list[Record] = []
        self.needs_time = False
        self.taken = {*self.names, *self.columns, name}

    # ---- names ----

    def fresh(self, wanted: str) -> str:
        """A name that conditions do not use, nor anything else."""
        name, count = wanted, 1
        while not self.taken.isdisjoint((name, f"{name}_start", f"{name}_stop")):
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    def key_type(self, *more: str) -> str:
        """Of the dicts by key."""
        found = [kept_as(self.columns[one]).__name__ for one in self.key]
        found += more
        return found[0] if len(found) == 1 else f"({', '.join(found)})"

    def key_and(self, *more: str) -> str:
        """An expression for the key of the event, and what is behind it."""
        if not self.key:
            return entry(more)
        return entry([*self.key_parts(), *more])

    def key_parts(self) -> list[str]:
        """Expressions for the columns of the key."""
        return ["key"] if len(self.key) == 1 else [f"key[{at}]" for at in range(len(self.key))]

    def timer(self, number: str, of_key: bool = True) -> str:
        """An expression for a timer: of the key at hand where timers are by key, or of none."""
        if not self.timers_by_key:
            return number
        zeros = [ZEROS[kept_as(self.columns[one])] for one in self.key]
        return entry([number, *(self.key_parts() if of_key else zeros)])

    def dict_of(self, value: str, *more: str, expires: int | None = None) -> str:
        """A dict of the state, by the key and more."""
        lasts = "" if expires is None else f", expire_after={expires + 1}"
        return f"ss.dict({self.key_type(*more)}, {value}, limit={self.options.limit}{lasts})"

    def end_awaited(self) -> list[str]:
        """Statements after which a timer fires when the input ends."""
        self.fields["is_begun"] = "ss.scalar(bool)"
        self.timers[0] = "ended(state, emit)"
        return [
            "if not state.is_begun:",
            "    state.is_begun = True",
            f"    state.timers.set({self.timer('0', of_key=False)}, {END})",
        ]

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
                return str(self.past.name_of(formula))
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
                return str(self.past.name_of(own(formula)))
        return self.now(formula)

    def now_part(self, formula: Formula) -> str:
        found = self.now(formula)
        return f"({found})" if isinstance(formula, Atom) else found

    def now_truth(self, formula: Formula) -> str:
        return f"({truth(plain(self.now(formula)))})"

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
