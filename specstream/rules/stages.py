"""Values that become known later than their events, handed on in the order of events.

An operator that looks ahead, or that looks back at what looks ahead, is a *stage*: it takes the
values of its parts in the order of events, as they become known, and gives its own in that order,
so that any stage can stand in any other. What it keeps between them is queues and numbers, so that
neither a bound nor the length of a trace makes an event cost more.

A value becomes known together with the time at which it does. Where stages stand in one another
this is that of their parts: a part that the end of the input leaves open leaves open what stands
around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from specstream.rules.formula import (
    And,
    Constant,
    Formula,
    Iff,
    Not,
    Or,
    Temporal,
    has_future,
    lowered,
    rebuilt,
)
from specstream.rules.queues import Cell, Held, Queue
from specstream.rules.text import RuleText
from specstream.verbs.counting import END
from specstream.verbs.writing import indented

__all__ = ["Sink", "Stages", "Taker"]

Sink = Callable[[str, str, str | None], list[str]]
"""Statements that hand on a value, the time at which it is known, and that of its event if it is
at hand."""


@dataclass
class Taker:
    """A stage, or the rows: what takes values of several parts of a formula as they come.

    Attributes:
        formula: what is computed of them, one for each part of an operator.
        leaves: by part, the queue it comes in and the name it is taken under.
        later: those of them that come with the time at which they were known.
    """

    stages: Stages
    name: str
    formula: tuple[Formula, ...]
    leaves: dict[Formula, tuple[Queue | None, str]] = field(default_factory=dict)
    later: dict[Formula, str] = field(default_factory=dict)

    @property
    def is_sole(self) -> bool:
        """Whether there is one leaf, which is a stage."""
        return len(self.leaves) == len(self.later) == 1

    def comes(self) -> str:
        """Whether all have come."""
        return " and ".join(queue.some for queue, _ in self.leaves.values() if queue)

    def take(self) -> list[str]:
        """Statements that take them."""
        lines: list[str] = []
        for leaf, (queue, name) in self.leaves.items():
            if queue is not None:
                names = f"{name}, {self.later[leaf]}" if leaf in self.later else name
                lines += queue.take(names)
        return lines

    def known(self) -> str:
        """An expression for the time at which all were known."""
        times = list(self.later.values())
        return times[0] if len(times) == 1 else f"max({', '.join(times)})"

    def values(self) -> list[str]:
        """Expressions for what is computed."""
        names = {leaf: name for leaf, (_, name) in self.leaves.items()}
        return [self.stages.value(one, names) for one in self.formula]


class Stages(ABC):
    """The stages of a rule, in the making.

    Attributes:
        rule: whose text they are of.
        event_held: what the statements of the event read and write of the state.
        settle_held: likewise of those that settle what waits.
        pushes: statements of the event, which put the values that come with it into queues.
        lines: those that settle, stage by stage.
        timed: queues of what waits for time to pass, where its time stands in them, and how long.
        is_moved_by_events: whether something else than time settles.
    """

    of: str
    """The type of a value."""
    timer = "1"
    """The number of the timer that settles what waits."""

    def __init__(self, rule: RuleText, nothing: str) -> None:
        self.rule = rule
        # The value of an event that is not there.
        self.nothing_there = nothing
        self.settle_held = Held()
        self.event_held = Held(taken=self.settle_held)
        self.pushes: list[str] = []
        self.lines: list[str] = []
        self.timed: list[tuple[Queue, str, int]] = []
        # Whether the end settles what time does not.
        self.is_closed = False
        self.is_moved_by_events = False
        self.wake_cell: Cell | None = None
        self.pending: Queue | None = None

    # ---- what differs with the values ----

    @abstractmethod
    def value(self, formula: Formula, names: Mapping[Formula, str] | None = None) -> str:
        """An expression for a formula, of parts that have names."""

    @abstractmethod
    def past_later(self, formula: Temporal, taker: Taker, sink: Sink) -> None:
        """Writes the statements of an operator that looks back at what is known later."""

    @abstractmethod
    def window(self, formula: Temporal, name: str, given: Sequence[Formula], sink: Sink) -> None:
        """Writes the statements of an operator that asks events up to some time from each."""

    def word(self, formula: Temporal) -> str:
        """What names of an operator begin with."""
        return formula.name

    # ---- what the state holds ----

    def queue(self, name: str, *items: str, lost: str = "", expires: int | None = None) -> Queue:
        """A queue of the state."""
        made = Queue(self.rule, self.rule.fresh(name), items, lost)
        self.rule.taken |= {made.start, made.stop}
        made.declare(expires)
        return made

    def cell(self, name: str, of: str, fill: str) -> Cell:
        """A number of the state."""
        made = Cell(self.rule, self.rule.fresh(name), of, fill)
        made.declare()
        return made

    def times(self, name: str) -> Queue:
        """A queue of the times of events."""
        queue = self.queue(name, "int")
        self.event_held.add(queue)
        self.settle_held.add(queue)
        self.pushes += queue.push("now")
        self.pending = queue
        return queue

    # ---- who takes whose values ----

    def taker(self, name: str, formulas: Sequence[Formula]) -> Taker:
        """What takes the parts of formulas: those that are known with the event, as large as may
        be, and stages."""
        taker = Taker(self, name, ())
        taker.formula = tuple(self.grouped(one) for one in formulas)
        for one in taker.formula:
            self.leaves(one, taker)
        if not taker.leaves:
            # A constant comes with each event, too.
            self.leaf_now(taker.formula[0], taker)
        return taker

    def grouped(self, formula: Formula) -> Formula:
        """A formula in which what is known with the event stands together."""
        match formula:
            case And(parts=some) | Or(parts=some):
                now = tuple(one for one in some if not has_future(one))
                later = [self.grouped(one) for one in some if has_future(one)]
                if not later or len(now) < 2:
                    return formula if not later else type(formula)((*now, *later))
                return type(formula)((type(formula)(now), *later))
            case Not(part=part):
                return rebuilt(formula, (self.grouped(part),))
            case Iff(left=left, right=right):
                return rebuilt(formula, (self.grouped(left), self.grouped(right)))
        return formula

    def leaves(self, formula: Formula, taker: Taker) -> None:
        """Notes what a taker takes for a formula."""
        if formula in taker.leaves or isinstance(formula, Constant):
            return
        if not has_future(formula):
            self.leaf_now(formula, taker)
        elif isinstance(formula, Temporal):
            count, word = len(taker.leaves) + 1, self.word(formula)
            taker.leaves[formula] = (None, self.rule.fresh(f"{word}_{count}_value"))
            taker.later[formula] = self.rule.fresh(f"{word}_{count}_known")
        else:
            match formula:
                case And(parts=some) | Or(parts=some):
                    for one in some:
                        self.leaves(one, taker)
                case Not(part=part):
                    self.leaves(part, taker)
                case Iff(left=left, right=right):
                    self.leaves(left, taker)
                    self.leaves(right, taker)

    def leaf_now(self, formula: Formula, taker: Taker) -> None:
        """Notes a formula that is known with the event."""
        name = f"{taker.name}_{len(taker.leaves) + 1}"
        queue = self.queue(name, self.of)
        self.event_held.add(queue)
        self.settle_held.add(queue)
        self.pushes += queue.push(self.value(formula))
        taker.leaves[formula] = (queue, self.rule.fresh(f"{name}_value"))

    def feed(self, taker: Taker) -> None:
        """Writes the stages whose values are taken, which go through queues."""
        for leaf in taker.later:
            assert isinstance(leaf, Temporal)
            queue = self.queue(self.rule.fresh(f"{taker.name}_{self.word(leaf)}"), self.of, "int")
            self.settle_held.add(queue)
            taker.leaves[leaf] = (queue, taker.leaves[leaf][1])

            def sink(value: str, known: str, time: str | None, to: Queue = queue) -> list[str]:
                return to.push(value, known)

            self.stage(leaf, sink)

    # ---- stages ----

    def stage(self, formula: Temporal, sink: Sink) -> None:
        """Writes the statements of an operator that is known later than its event."""
        name = self.rule.fresh(self.word(formula))
        given = [lowered(one, 1) for one in formula.parts]
        if formula.is_future and formula.name != "next_event":
            self.window(formula, name, given, sink)
            return
        taker = self.taker(name, given)
        self.feed(taker)
        if formula.name == "next_event":
            self.next_one(formula, taker, sink)
        elif formula.name == "previous_event":
            self.previous_later(formula, taker, sink)
        else:
            self.past_later(formula, taker, sink)

    def next_one(self, formula: Temporal, taker: Taker, sink: Sink) -> None:
        """Writes the statements of an operator that asks the event so many events ahead."""
        self.is_moved_by_events = True
        asked = self.cell(f"{taker.name}_asked", "int", "0")
        self.settle_held.add(asked)
        (value,) = taker.values()
        known = taker.known() if taker.later else "at"
        lines = [
            f"while {taker.comes()}:",
            *indented(
                [
                    *taker.take(),
                    f"if {asked.name} < {formula.n}:",
                    f"    {asked.name} += 1",
                    "else:",
                    *indented(sink(value, known, None)),
                ]
            ),
        ]
        if self.is_closed:
            lines += [
                f"if at == {END}:",
                f"    while {asked.name} > 0:",
                f"        {asked.name} -= 1",
                *indented(indented(sink(self.nothing_there, str(END), None))),
            ]
        self.lines += lines

    def previous_later(self, formula: Temporal, taker: Taker, sink: Sink) -> None:
        """Writes the statements of an operator that asks the event so many events back."""
        self.is_moved_by_events = True
        name, n, fresh = taker.name, formula.n, self.rule.fresh
        times, count = self.times(f"{name}_times"), self.cell(f"{name}_count", "int", "0")
        self.settle_held.add(count)
        time, value, known = (fresh(f"{name}_{one}") for one in ("time", "value", "known"))
        (found,) = taker.values()
        self.lines += [
            f"while {times.some} and ({count.name} < {n} or {taker.comes()}):",
            *indented(
                [
                    *times.take(time),
                    f"{value}, {known} = {self.nothing_there}, {time}",
                    f"if {count.name} < {n}:",
                    f"    {count.name} += 1",
                    "else:",
                    *indented(
                        [
                            *taker.take(),
                            f"{value}, {known} = {found}, max({time}, {taker.known()})",
                        ]
                    ),
                    *sink(value, known, time),
                ]
            ),
        ]

    # ---- where time passes ----

    def wake(self) -> Cell:
        """The time for which the timer is set."""
        if self.wake_cell is None:
            self.wake_cell = self.cell("wake", "int", str(END))
        return self.wake_cell

    def set_timer(self, time: str) -> list[str]:
        """Statements after which what waits is settled at a time."""
        wake = self.wake().name
        return [f"{wake} = {time}", f"state.timers.set({self.rule.timer(self.timer)}, {wake})"]

    def asleep(self) -> list[str]:
        """Statements after which no timer is known to be set."""
        wake = self.wake()
        if self.rule.key:
            return [f"state.{wake.name}.pop(key, {END})"]
        return [f"state.{wake.name} = {END}"]

    def unset_timer(self) -> list[str]:
        """Statements after which none is."""
        return [f"state.timers.cancel({self.rule.timer(self.timer)})", *self.asleep()]

    def settle_lines(self) -> list[str]:
        """Statements that settle what waits, where time has come to ``at``."""
        lines = list(self.lines)
        if self.timed:
            fresh = self.rule.fresh
            wake, soon, due = self.wake(), fresh("soon"), fresh("due")
            self.settle_held.add(wake)
            lines.append(f"{soon} = {wake.name}")
            for waiting, part, within in self.timed:
                # One whose time has passed waits for its parts.
                lines += [
                    f"if {waiting.some}:",
                    f"    {due} = {waiting.at('0')}{part} + {within + 1}",
                    f"    if at < {due} < {soon}:",
                    f"        {soon} = {due}",
                ]
            lines += [f"if {soon} < {wake.name}:", *indented(self.set_timer(soon))]
        return self.settle_held.around(lines)
