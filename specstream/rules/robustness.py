"""By how much a rule holds: a number for each event in place of a verdict.

A condition like ``a >= b`` gives ``a - b``; connectives are minima and maxima, and operators about
other events those over what they ask. What looks back has its value with the event. What looks
ahead is a *stage*: it takes the values of its parts in the order of events, as they become known,
and gives its own in that order, so that any stage can stand in any other. Windows are queues of
which the first value is the answer, so that their lengths cost nothing.

A value becomes known together with the time at which it does. Where stages stand in one another
this is that of their parts: a part that the end of the input leaves open leaves open what stands
around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specstream.compiler.language.parsing import parse
from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.schema import Schema
from specstream.rules.formula import (
    And,
    Atom,
    Constant,
    Formula,
    Iff,
    Not,
    Or,
    Temporal,
    has_future,
    lowered,
    rebuilt,
    walk,
)
from specstream.rules.generate import Written
from specstream.rules.margins import Conditions, extreme, minus
from specstream.rules.queues import Cell, Held, Queue
from specstream.rules.text import Options
from specstream.rules.writing import NEVER, ZEROS, Stored, plain
from specstream.verbs.counting import END
from specstream.verbs.writing import entry, indented

__all__ = ["robust"]

_LOWER = ("once", "eventually", "since", "until", "unless")


def robust(
    name: str,
    formula: Formula,
    names: Mapping[str, Any],
    columns: Schema,
    key: tuple[str, ...],
    options: Options,
) -> Written:
    """The operator that tells by how much a rule holds, as text.

    Args:
        name: of its function.
        formula: what the rule says.
        names: what names in conditions stand for.
        columns: of the event.
        key: names of the columns whose values are traces of their own.
        options: how it is told.

    Raises:
        DeclarationError: there is no such number, or nothing tells when it is known.
    """
    return _Robustness(name, formula, names, columns, key, options).write()


# ---- who takes whose values ----


@dataclass
class _Taker:
    """A stage, or the rows: what takes values of several parts of a formula as they come.

    Attributes:
        formula: what is computed of them, one for each part of an operator.
        leaves: by part, the queue it comes in and the name it is taken under.
        later: those of them that come with the time at which they were known.
    """

    rule: _Robustness
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
        lines: list[str] = []
        for leaf, (queue, name) in self.leaves.items():
            if queue is not None:
                names = f"{name}, {self.later[leaf]}" if leaf in self.later else name
                lines += queue.take(names)
        return lines

    def known(self) -> str:
        """An expression for the time at which all were known."""
        return extreme("max", list(self.later.values()))

    def values(self) -> list[str]:
        """Expressions for what is computed."""
        names = {leaf: name for leaf, (_, name) in self.leaves.items()}
        return [self.rule.value(one, names) for one in self.formula]


Sink = Callable[[str, str, str | None], list[str]]
"""Statements that hand on a value, the time at which it is known, and that of its event if it is
at hand."""


class _Robustness(Conditions):
    """The operator in the making."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.known_now: dict[Formula, str] = {}
        self.settle_held = Held()
        self.event_held = Held(taken=self.settle_held)
        self.first: list[str] = []
        self.pushes: list[str] = []
        self.stages: list[str] = []
        self.timed: list[tuple[Queue, str, int]] = []
        has_next = any(
            isinstance(one, Temporal) and one.name == "next_event" for one in walk(self.formula)
        )
        # Whether the end settles what time does not.
        self.is_closed = has_next and self.options.at_end == "closed"
        self.is_moved_by_events = False
        self.wake_cell: Cell | None = None
        self.pending: Queue | None = None

    def queue(self, name: str, *items: str, lost: str = "", expires: int | None = None) -> Queue:
        made = Queue(self, self.fresh(name), items, lost)
        self.taken |= {made.start, made.stop}
        made.declare(expires)
        return made

    def cell(self, name: str, of: str, fill: str) -> Cell:
        made = Cell(self, self.fresh(name), of, fill)
        made.declare()
        return made

    # ---- expressions ----

    def value(self, formula: Formula, names: Mapping[Formula, str] | None = None) -> str:
        """An expression for by how much a formula holds, of parts that have names."""
        if names and formula in names:
            return names[formula]
        match formula:
            case Constant(value=value):
                return self.inf if value else f"-{self.inf}"
            case Atom(code=code):
                return self.of_code(formula, parse(code, "eval").body)
            case Not(part=part):
                return minus(self.value(part, names))
            case And(parts=some) | Or(parts=some):
                word = "min" if isinstance(formula, And) else "max"
                return extreme(word, [self.value(one, names) for one in some])
            case Iff(left=left, right=right):
                return f"{self.alike}({self.value(left, names)}, {self.value(right, names)})"
            case Temporal():
                return self.past_now(formula)
        raise AssertionError(formula)

    # ---- what looks back ----

    def past_now(self, formula: Temporal) -> str:
        """The name of the value of an operator that is known with its event."""
        if formula not in self.known_now:
            given = [self.value(lowered(one, 1)) for one in formula.parts]
            name = self.fresh(formula.name)
            lines, found = self.looking_back(formula, name, given, "now", self.event_held)
            self.first += [*lines, f"{name} = {found}"]
            self.known_now[formula] = name
        return self.known_now[formula]

    def looking_back(
        self, formula: Temporal, name: str, given: Sequence[str], time: str, held: Held
    ) -> tuple[list[str], str]:
        """Statements that take the next values of an operator's parts, those of the event of a
        time, and an expression for its own."""
        expires = formula.within if held is self.event_held else None
        if formula.name == "previous_event":
            return self.previous(formula, name, given[0], held)
        goal, lines = given[-1], list[str]()
        if not goal.isidentifier():
            goal = self.fresh(f"{name}_goal")
            lines.append(f"{goal} = {given[-1]}")
        hold = None
        if len(given) == 2:
            hold = self.fresh(f"{name}_held")
            lines.append(f"{hold} = {given[0]}")
        if formula.within is None and not formula.after:
            run = self.cell(name=f"{name}_running", of="float", fill=self.nothing(formula))
            held.add(run)
            return [*lines, *self.run(formula, run, hold, goal)], run.name
        enter: Callable[[str, str | None, str], list[str]]
        best: Queue | None = None
        if formula.within is None:
            run = self.cell(f"{name}_running", "float", self.nothing(formula))
            held.add(run)

            def enter(_: str, hold: str | None, goal: str) -> list[str]:
                return self.run(formula, run, hold, goal)

        else:
            best = self.queue(
                f"{name}_best", "int", "float", lost=f"({NEVER}, 0.0)", expires=expires
            )
            held.add(best)

            def enter(at: str, hold: str | None, goal: str) -> list[str]:
                return self.better(formula, best, at, hold, goal, name)

        forget = []
        if best is not None:
            forget = [
                f"while {best.some} and {best.first}[0] < {time} - {formula.within}:",
                *indented(best.take()),
            ]
        if not formula.after:
            assert best is not None
            return [*lines, *forget, *enter(time, hold, goal)], f"{best.at('0')}[1]"
        moved, least = self.young(formula, name, time, hold, goal, enter, held, expires)
        if self.key:
            # What the state has forgotten is not to be asked.
            lines += forget
        lines += [*moved, *forget]
        found = run.name if best is None else self.first_of(formula, best)
        if least is not None:
            # What has held since then, too.
            found = f"min({found}, {least.at('0')}[1])"
        return lines, found

    def nothing(self, formula: Temporal) -> str:
        """What there is where nothing is asked."""
        return f"-{self.inf}" if formula.name in _LOWER else self.inf

    def first_of(self, formula: Temporal, best: Queue) -> str:
        return f"({best.at('0')}[1] if {best.some} else {self.nothing(formula)})"

    def run(self, formula: Temporal, run: Cell, hold: str | None, goal: str) -> list[str]:
        """Statements for a value that goes on."""
        word = "max" if formula.name in _LOWER else "min"
        before = run.name if hold is None else f"min({run.name}, {hold})"
        return [f"{run.name} = {word}({before}, {goal})"]

    def better(
        self, formula: Temporal, best: Queue, at: str, hold: str | None, goal: str, name: str
    ) -> list[str]:
        """Statements that put a value into a queue of which the first one is the best, and each
        later one the best of those behind it."""
        lines: list[str] = []
        if hold is not None:
            # All that are better than what held are now as good as that, and the latest of them
            # lasts the longest.
            since = self.fresh(f"{name}_since")
            lines += [
                f"if {best.some} and {best.at('0')}[1] > {hold}:",
                f"    {since} = {best.at('0')}[0]",
                f"    while {best.some} and {best.at('0')}[1] >= {hold}:",
                f"        {since} = {best.at('0')}[0]",
                *indented(indented(best.take())),
                *indented(best.push_first(since, hold)),
            ]
        sign = "<=" if formula.name in _LOWER else ">="
        lines += [f"while {best.some} and {best.last}[1] {sign} {goal}:"]
        return [*lines, *indented(best.take_last()), *best.push(at, goal)]

    def young(
        self,
        formula: Temporal,
        name: str,
        time: str,
        hold: str | None,
        goal: str,
        enter: Callable[[str, str | None, str], list[str]],
        held: Held,
        expires: int | None,
    ) -> tuple[list[str], Queue | None]:
        """Statements for values that wait until they are old enough, and a queue of which the
        first one is the least that has held since."""
        items = ("int", "float") if hold is None else ("int", "float", "float")
        lost = [str(NEVER), *([self.inf] if hold is not None else []), self.nothing(formula)]
        young = self.queue(f"{name}_young", *items, lost=entry(lost), expires=expires)
        held.add(young)
        old, was, had = (self.fresh(f"{name}_{one}") for one in ("old", "was", "had"))
        lines = young.push(*[time, *([hold] if hold is not None else []), goal])
        least: Queue | None = None
        if hold is not None:
            least = self.queue(
                f"{name}_least", "int", "float", lost=f"({NEVER}, 0.0)", expires=expires
            )
            held.add(least)
            lines += [
                f"while {least.some} and {least.first}[0] <= {time} - {formula.after}:",
                *indented(least.take()),
                f"while {least.some} and {least.last}[1] >= {hold}:",
                *indented(least.take_last()),
                *least.push(time, hold),
            ]
        names = [old, *([had] if hold is not None else []), was]
        lines += [
            f"while {young.some} and {young.first}[0] <= {time} - {formula.after}:",
            *indented(young.take(", ".join(names))),
            *indented(enter(old, had if hold is not None else None, was)),
        ]
        return lines, least

    def previous(
        self, formula: Temporal, name: str, given: str, held: Held
    ) -> tuple[list[str], str]:
        if formula.n == 1:
            was = self.cell(f"{name}_next", "float", f"-{self.inf}")
            held.add(was)
            found = self.fresh(f"{name}_value")
            return [f"{found} = {was.name}", f"{was.name} = {given}"], found
        some = self.queue(f"{name}_next", "float")
        held.add(some)
        found = self.fresh(f"{name}_value")
        return [
            *some.push(given),
            f"{found} = -{self.inf}",
            f"if {some.size} > {formula.n}:",
            *indented(some.take(found)),
        ], found

    # ---- stages ----

    def taker(self, name: str, formulas: Sequence[Formula]) -> _Taker:
        """What takes the parts of formulas: those that are known with the event, as large as may
        be, and stages."""
        taker = _Taker(self, name, ())
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

    def leaves(self, formula: Formula, taker: _Taker) -> None:
        if formula in taker.leaves or isinstance(formula, Constant):
            return
        if not has_future(formula):
            self.leaf_now(formula, taker)
        elif isinstance(formula, Temporal):
            count = len(taker.leaves) + 1
            taker.leaves[formula] = (None, self.fresh(f"{formula.name}_{count}_value"))
            taker.later[formula] = self.fresh(f"{formula.name}_{count}_known")
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

    def leaf_now(self, formula: Formula, taker: _Taker) -> None:
        name = f"{taker.name}_{len(taker.leaves) + 1}"
        queue = self.queue(name, "float")
        self.event_held.add(queue)
        self.settle_held.add(queue)
        self.pushes += queue.push(self.value(formula))
        taker.leaves[formula] = (queue, self.fresh(f"{name}_value"))

    def feed(self, taker: _Taker) -> None:
        """Writes the stages whose values are taken, which go through queues."""
        for leaf in taker.later:
            assert isinstance(leaf, Temporal)
            queue = self.queue(self.fresh(f"{taker.name}_{leaf.name}"), "float", "int")
            self.settle_held.add(queue)
            taker.leaves[leaf] = (queue, taker.leaves[leaf][1])

            def sink(value: str, known: str, time: str | None, to: Queue = queue) -> list[str]:
                return to.push(value, known)

            self.stage(leaf, sink)

    def stage(self, formula: Temporal, sink: Sink) -> None:
        """Writes the statements of an operator that is known later than its event."""
        name = self.fresh(formula.name)
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

    def next_one(self, formula: Temporal, taker: _Taker, sink: Sink) -> None:
        self.is_moved_by_events = True
        name = taker.name
        asked = self.cell(f"{name}_asked", "int", "0")
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
                *indented(indented(sink(f"-{self.inf}", str(END), None))),
            ]
        self.stages += lines

    def times(self, name: str) -> Queue:
        """A queue of the times of events."""
        queue = self.queue(name, "int")
        self.event_held.add(queue)
        self.settle_held.add(queue)
        self.pushes += queue.push("now")
        self.pending = queue
        return queue

    def previous_later(self, formula: Temporal, taker: _Taker, sink: Sink) -> None:
        self.is_moved_by_events = True
        name, n = taker.name, formula.n
        times, count = self.times(f"{name}_times"), self.cell(f"{name}_count", "int", "0")
        self.settle_held.add(count)
        time, value, known = (self.fresh(f"{name}_{one}") for one in ("time", "value", "known"))
        (found,) = taker.values()
        self.stages += [
            f"while {times.some} and ({count.name} < {n} or {taker.comes()}):",
            *indented(
                [
                    *times.take(time),
                    f"{value}, {known} = -{self.inf}, {time}",
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

    def past_later(self, formula: Temporal, taker: _Taker, sink: Sink) -> None:
        name = taker.name
        time, known = self.fresh(f"{name}_time"), taker.known()
        if formula.after and len(formula.parts) == 1:
            self.past_apart(formula, taker, sink)
            return
        times = self.times(f"{name}_times")
        lines, found = self.looking_back(formula, name, taker.values(), time, self.settle_held)
        self.stages += [
            f"while {taker.comes()}:",
            *indented([*taker.take(), *times.take(time), *lines, *sink(found, known, time)]),
        ]

    def past_apart(self, formula: Temporal, taker: _Taker, sink: Sink) -> None:
        """What is asked of events some time ago may be known before that of the event itself."""
        self.is_moved_by_events = True
        name, held = taker.name, self.settle_held
        fed, times = self.times(f"{name}_fed"), self.times(f"{name}_times")
        young = self.queue(f"{name}_young", "int", "float", "int")
        latest = self.cell(f"{name}_latest", "int", str(NEVER))
        held.add(young, latest)
        at, time, old, was = (self.fresh(f"{name}_{one}") for one in ("at", "time", "old", "was"))
        (value,) = taker.values()
        if formula.within is None:
            run = self.cell(f"{name}_running", "float", self.nothing(formula))
            held.add(run)
            enter, forget, found = self.run(formula, run, None, was), list[str](), run.name
        else:
            best = self.queue(f"{name}_best", "int", "float")
            held.add(best)
            enter = self.better(formula, best, old, None, was, name)
            forget = [
                f"while {best.some} and {best.first}[0] < {time} - {formula.within}:",
                *indented(best.take()),
            ]
            found = self.first_of(formula, best)
        self.stages += [
            f"while {taker.comes()}:",
            *indented([*taker.take(), *fed.take(at), *young.push(at, value, taker.known())]),
            f"while {times.some} and not ({fed.some} and {fed.first} <= {times.first} - "
            f"{formula.after}):",
            *indented(
                [
                    *times.take(time),
                    f"while {young.some} and {young.first}[0] <= {time} - {formula.after}:",
                    *indented([*young.take(f"{old}, {was}, {latest.name}"), *enter]),
                    *forget,
                    *sink(found, f"max({time}, {latest.name})", time),
                ]
            ),
        ]

    # ---- windows ahead ----

    def window(self, formula: Temporal, name: str, given: Sequence[Formula], sink: Sink) -> None:
        """Writes the statements of an operator that asks events up to some time from each."""
        is_now = not any(map(has_future, given))
        within, after = formula.within, formula.after
        assert within is not None
        held = self.settle_held
        if is_now:
            waiting = self.queue(f"{name}_open", "int", *["float"] * len(given))
            self.event_held.add(waiting)
            self.pushes += waiting.push("now", *map(self.value, given))
            taker = None
        else:
            taker = self.taker(name, given)
            self.feed(taker)
            waiting = self.times(f"{name}_open")
        self.pending = waiting
        ahead = self.cell(f"{name}_ahead", "int", "0")
        held.add(waiting, ahead)
        part = "[0]" if is_now else ""
        due, time = self.fresh(f"{name}_due"), self.fresh(f"{name}_time")
        goal, hold = self.fresh(f"{name}_goal"), self.fresh(f"{name}_held")
        names = [hold, goal] if len(given) == 2 else [goal]
        ahead_time = f"{waiting.at(ahead.name)}{part}"
        more = f"{ahead.name} < {waiting.size} and {ahead_time} <= {due}"
        known = due
        if taker is None:
            unknown = self.fresh(f"{name}_at")
            take = [f"{', '.join([unknown, *names])} = {waiting.at(ahead.name)}"]
            stop = []
        else:
            latest = self.cell(f"{name}_latest", "int", str(NEVER))
            held.add(latest)
            take = [*taker.take(), f"{latest.name} = {taker.known()}"]
            take += [f"{one} = {of}" for one, of in zip(names, taker.values(), strict=True)]
            stop = [f"if {more}:", "    break"]
            more += f" and {taker.comes()}"
            known = f"max({due}, {latest.name})"
        out = self.number_of(waiting, name, formula)
        of_window = self.until if len(given) == 2 else self.best_ahead
        insert, slide, found, clear = of_window(
            formula, name, names, waiting, out, ahead, f"{time} + {after}", part
        )
        leave = [*waiting.take(), f"{ahead.name} -= 1"]
        if not self.key and out:
            leave.append(f"{out} += 1")
            clear = [*clear, f"{out} = 0"]
        elif taker is not None:
            clear = [*clear, f"{latest.name} = {NEVER}"]
        self.stages += [
            f"while {waiting.some} and {waiting.at('0')}{part} + {within} < at:",
            *indented(
                [
                    f"{time} = {waiting.at('0')}{part}",
                    f"{due} = {time} + {within}",
                    f"while {more}:",
                    *indented([*take, *insert, f"{ahead.name} += 1"]),
                    *stop,
                    *slide,
                    *leave,
                    *sink(found, known, time),
                ]
            ),
            *([f"if not {waiting.some}:", *indented(clear)] if clear else []),
        ]
        self.timed.append((waiting, part, within))

    def number_of(self, waiting: Queue, name: str, formula: Temporal) -> str:
        """A name for the number of the first event that waits, if it is asked for."""
        if len(formula.parts) == 2 and not formula.after:
            return ""
        if self.key:
            return waiting.start
        out = self.cell(f"{name}_number", "int", "0")
        self.settle_held.add(out)
        return out.name

    def best_ahead(
        self,
        formula: Temporal,
        name: str,
        names: list[str],
        waiting: Queue,
        out: str,
        ahead: Cell,
        start: str,
        part: str,
    ) -> tuple[list[str], list[str], str, list[str]]:
        best = self.queue(f"{name}_best", "int", "float")
        self.settle_held.add(best)
        insert = self.better(formula, best, f"{out} + {ahead.name}", None, names[0], name)
        first = f"{best.at('0')}[0]"
        early = f"{first} < {out}"
        if formula.after:
            early = f"({early} or {waiting.at(f'{first} - {out}')}{part} < {start})"
        slide = [f"while {best.some} and {early}:", *indented(best.take())]
        value = self.fresh(f"{name}_value")
        found = self.first_of(formula, best) if formula.after else f"{best.at('0')}[1]"
        return insert, [*slide, f"{value} = {plain(found)}"], value, best.clear()

    def until(
        self,
        formula: Temporal,
        name: str,
        names: list[str],
        waiting: Queue,
        out: str,
        ahead: Cell,
        start: str,
        part: str,
    ) -> tuple[list[str], list[str], str, list[str]]:
        """Each event makes ``max(goal, min(held, x))`` of what the next one makes, x. Such
        functions in a row are one again, so a window of them is two stacks: the front one has at
        each event what all from there to its end make."""
        inf, hold, goal = self.inf, *names
        is_apart = bool(formula.after)
        more = ("int", "float") if is_apart else ()
        front = self.queue(f"{name}_front", *more, "float", "float")
        back = self.queue(f"{name}_back", *more[:1], "float", "float")
        back_held = self.cell(f"{name}_back_held", "float", inf)
        back_goal = self.cell(f"{name}_back_goal", "float", f"-{inf}")
        self.settle_held.add(front, back, back_held, back_goal)
        number, all_held, best, value = (
            self.fresh(f"{name}_{one}") for one in ("at", "all_held", "all_goal", "value")
        )
        insert = [
            *back.push(*([f"{out} + {ahead.name}"] if is_apart else []), hold, goal),
            f"{back_goal.name} = max({back_goal.name}, min({back_held.name}, {goal}))",
            f"{back_held.name} = min({back_held.name}, {hold})",
        ]
        one, own = ([number], [number, hold]) if is_apart else ([], [])
        turn = [
            f"if not {front.some}:",
            *indented(
                [
                    f"{all_held}, {best} = {inf}, -{inf}",
                    f"while {back.some}:",
                    *indented(
                        [
                            *back.take_last(", ".join([*one, hold, goal])),
                            f"{best} = max({goal}, min({hold}, {best}))",
                            f"{all_held} = min({hold}, {all_held})",
                            *front.push(*own, all_held, best),
                        ]
                    ),
                    f"{back_held.name}, {back_goal.name} = {inf}, -{inf}",
                ]
            ),
        ]
        joined = [
            f"{best} = max({best}, min({all_held}, {back_goal.name}))",
            f"{all_held} = min({all_held}, {back_held.name})",
        ]
        is_weak = formula.name == "unless"
        found = f"max({best}, {all_held})" if is_weak else best
        if not is_apart:
            slide = [*turn, *front.take_last(f"{all_held}, {best}"), *joined]
            return insert, [*slide, f"{value} = {found}"], value, []
        # What is before the window has but to hold.
        least = self.queue(f"{name}_least", "int", "float")
        self.settle_held.add(least)
        slide = [
            f"while {front.some} or {back.some}:",
            *indented(
                [
                    *turn,
                    f"if {waiting.at(f'{front.last}[0] - {out}')}{part} >= {start}:",
                    "    break",
                    *front.take_last(f"{number}, {hold}, {all_held}, {best}"),
                    f"while {least.some} and {least.last}[1] >= {hold}:",
                    *indented(least.take_last()),
                    *least.push(number, hold),
                ]
            ),
            f"while {least.at('0')}[0] < {out}:",
            *indented(least.take()),
            f"{all_held}, {best} = {inf}, -{inf}",
            f"if {front.some}:",
            *indented([f"{number}, {hold}, {all_held}, {best} = {front.last}", *joined]),
            f"{value} = min({least.at('0')}[1], {found})",
        ]
        clear = [*front.clear(), *back.clear(), *least.clear()]
        clear += [f"{back_held.name}, {back_goal.name} = {inf}, -{inf}"]
        return insert, slide, value, clear

    # ---- the whole ----

    def write(self) -> Written:
        self.check()
        self.needs_time = any(isinstance(one, Temporal) for one in walk(self.formula))
        if not has_future(self.formula):
            told = self.row_of_event(self.value(self.formula))
            body = self.event_held.around([*self.first, *told])
            return self.text(["now = event.timestamp", *body], None)
        return self.text(*self.later())

    def row_of_event(self, value: str) -> list[str]:
        values = [self.column(self.event, one) for one in self.key]
        values += ["now", value, "now"]
        values += [self.column(self.event, one) for one in self.options.keep]
        return [f"emit({', '.join(values)})"]

    def later(self) -> tuple[list[str], list[str]]:
        """Statements of the event, and of the function that settles what waits."""
        top = self.taker(self.fresh("row"), [self.formula])
        if top.is_sole:
            (leaf,) = top.later
            assert isinstance(leaf, Temporal)
            has_time = leaf.name != "next_event"
            rows = self.rows(has_time)
            # Kept in the order in which the text reads: rows last.
            name = top.leaves[leaf][1]

            def sink(value: str, at: str, time: str | None) -> list[str]:
                found = self.value(top.formula[0], {leaf: name})
                given = [] if found == name else [f"{name} = {value}"]
                return [*given, *self.told(rows, found if given else value, at, time)]

            self.stage(leaf, sink)
        else:
            rows = self.rows(False)
            self.feed(top)
            (found,) = top.values()
            self.stages += [
                f"while {top.comes()}:",
                *indented([*top.take(), *self.told(rows, found, top.known(), None)]),
            ]
        if rows is not None:
            self.pending = rows
        return self.event_lines(), self.settle_lines()

    def rows(self, has_time: bool) -> Queue | None:
        """What is kept of an event until its row is told."""
        keep, record = self.options.keep, self.waiting
        if has_time and not keep:
            return None
        if not keep:
            return self.times("rows")
        if not has_time:
            record.keep("v0.timestamp", "time", int)
        for name in keep:
            Stored(record, "one").attribute("v0", name)
        rows = self.queue("rows", record.name)
        self.event_held.add(rows)
        self.settle_held.add(rows)
        self.pushes += rows.push(record.made({"v0": self.event}, {}))
        return rows

    def told(self, rows: Queue | None, value: str, known: str, time: str | None) -> list[str]:
        """Statements that send the row of the next event."""
        lines: list[str] = []
        place = Stored(self.waiting, "one")
        if rows is not None and self.options.keep:
            lines += rows.take("one")
            time = time or "one.time"
        elif rows is not None:
            time = "time"
            lines += rows.take(time)
        assert time is not None
        decided = known
        if self.is_closed:
            lines.append(f"decided = {known}")
            decided = f"None if decided == {END} else decided"
        values = [*self.key_parts(), time, value, decided]
        values += [plain(place.attribute("v0", one)) for one in self.options.keep]
        return [*lines, f"emit({', '.join(values)})"]

    def event_lines(self) -> list[str]:
        call = f"settle(state, {'key, ' if self.key else ''}now, emit)"
        lines = [*self.first, *self.pushes]
        if not self.is_moved_by_events:
            # Time alone settles, and its timer has fired before this event.
            wake = self.wake()
            self.event_held.add(wake)
            soon = min(within for _, _, within in self.timed) + 1
            lines += [f"if now + {soon} < {wake.name}:", *indented(self.set_timer(f"now + {soon}"))]
        body = self.event_held.around(lines)
        if self.is_moved_by_events:
            body.append(call)
        begun = []
        if self.timed or self.is_closed:
            self.fields["is_begun"] = "ss.scalar(bool)"
            end = entry(["0", *(ZEROS[kept_as(self.columns[one])] for one in self.key)])
            begun = [
                "if not state.is_begun:",
                "    state.is_begun = True",
                f"    state.timers.set({end}, {END})",
            ]
        return ["now = event.timestamp", *begun, *body]

    def wake(self) -> Cell:
        """The time for which the timer is set."""
        if self.wake_cell is None:
            self.wake_cell = self.cell("wake", "int", str(END))
        return self.wake_cell

    def set_timer(self, time: str) -> list[str]:
        wake = self.wake().name
        timer = entry(["1", *self.key_parts()])
        return [f"{wake} = {time}", f"state.timers.set({timer}, {wake})"]

    def settle_lines(self) -> list[str]:
        lines = list(self.stages)
        if self.timed:
            wake, soon, due = self.wake(), self.fresh("soon"), self.fresh("due")
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

    def text(self, body: list[str], settle: list[str] | None) -> Written:
        """The module."""
        has_timers = "is_begun" in self.fields
        lines: list[str] = []
        if self.waiting.fields:
            lines += [*self.waiting.declared(), "", ""]
        state = [f"{name} = {of}" for name, of in self.fields.items()]
        if has_timers:
            of = [kept_as(self.columns[one]).__name__ for one in self.key]
            state.append(f"timers = ss.timers({entry(['int', *of])})")
        if state:
            lines += ["class State(ss.State):", *indented(state), "", ""]
        for helper in self.needed([*body, *(settle or [])]):
            lines += [*helper.splitlines(), "", ""]
        if settle is not None:
            key = "key, " if self.key else ""
            lines += [f"def settle(state, {key}at, emit):", *indented(settle), "", ""]
        if has_timers:
            lines += ["def on_timer(state, timer, emit):", *indented(self.fired()), "", ""]
        parameters = "state, event, emit" if state else "event, emit"
        lines += [f"def {self.name}({parameters}):", *indented(self.keyed(body))]
        return Written("\n".join(lines) + "\n", self.names, has_timers, self.needs_time, self.notes)

    def fired(self) -> list[str]:
        """Statements of timers: that of the end, and that of the time that is next to pass."""
        if not self.key:
            lines = ["if timer.key == 0:", "    state.is_begun = False"]
            if self.timed:
                lines += ["    state.timers.cancel(1)", f"state.{self.wake().name} = {END}"]
            return [*lines, "settle(state, timer.at, emit)"]
        assert self.pending is not None
        lines = [
            "if timer.key[0] == 0:",
            "    state.is_begun = False",
            f"    for key in list(state.{self.pending.name}_ends):",
            f"        settle(state, key, {END}, emit)",
        ]
        if self.timed:
            timer = entry(["1", *self.key_parts()])
            forget = [f"state.timers.cancel({timer})", f"state.{self.wake().name}.pop(key, {END})"]
            lines[-1:-1] = indented(indented(forget))
            key = entry([f"timer.key[{at + 1}]" for at in range(len(self.key))])
            lines += [
                "else:",
                f"    key = {key}",
                f"    state.{self.wake().name}.pop(key, {END})",
                "    settle(state, key, timer.at, emit)",
            ]
        return lines
