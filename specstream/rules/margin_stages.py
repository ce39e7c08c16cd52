"""By how much operators hold, as stages: minima and maxima over what they ask.

Windows are queues of which the first value is the answer, so that their lengths cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from specstream.compiler.language.parsing import parse
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
)
from specstream.rules.margins import Conditions, extreme, minus
from specstream.rules.queues import Cell, Held, Queue
from specstream.rules.stages import Sink, Stages, Taker
from specstream.rules.writing import NEVER, plain
from specstream.verbs.writing import entry, indented

__all__ = ["Margins"]

_LOWER = ("once", "eventually", "since", "until", "unless")


class Margins(Stages):
    """The stages of a rule that tells by how much it holds.

    Attributes:
        first: statements of the event, for what is known with it.
    """

    of = "float"
    rule: Conditions

    def __init__(self, rule: Conditions) -> None:
        super().__init__(rule, f"-{rule.inf}")
        self.known_now: dict[Formula, str] = {}
        self.first: list[str] = []

    # ---- expressions ----

    def value(self, formula: Formula, names: Mapping[Formula, str] | None = None) -> str:
        """An expression for by how much a formula holds, of parts that have names."""
        if names and formula in names:
            return names[formula]
        match formula:
            case Constant(value=value):
                return self.rule.inf if value else f"-{self.rule.inf}"
            case Atom(code=code):
                return self.rule.of_code(formula, parse(code, "eval").body)
            case Not(part=part):
                return minus(self.value(part, names))
            case And(parts=some) | Or(parts=some):
                word = "min" if isinstance(formula, And) else "max"
                return extreme(word, [self.value(one, names) for one in some])
            case Iff(left=left, right=right):
                return f"{self.rule.alike}({self.value(left, names)}, {self.value(right, names)})"
            case Temporal():
                return self.past_now(formula)
        raise AssertionError(formula)

    # ---- what looks back ----

    def past_now(self, formula: Temporal) -> str:
        """The name of the value of an operator that is known with its event."""
        if formula not in self.known_now:
            given = [self.value(lowered(one, 1)) for one in formula.parts]
            name = self.rule.fresh(formula.name)
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
            goal = self.rule.fresh(f"{name}_goal")
            lines.append(f"{goal} = {given[-1]}")
        hold = None
        if len(given) == 2:
            hold = self.rule.fresh(f"{name}_held")
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
        if self.rule.key:
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
        return f"-{self.rule.inf}" if formula.name in _LOWER else self.rule.inf

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
            since = self.rule.fresh(f"{name}_since")
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
        lost = [str(NEVER), *([self.rule.inf] if hold is not None else []), self.nothing(formula)]
        young = self.queue(f"{name}_young", *items, lost=entry(lost), expires=expires)
        held.add(young)
        old, was, had = (self.rule.fresh(f"{name}_{one}") for one in ("old", "was", "had"))
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
            was = self.cell(f"{name}_next", "float", f"-{self.rule.inf}")
            held.add(was)
            found = self.rule.fresh(f"{name}_value")
            return [f"{found} = {was.name}", f"{was.name} = {given}"], found
        some = self.queue(f"{name}_next", "float")
        held.add(some)
        found = self.rule.fresh(f"{name}_value")
        return [
            *some.push(given),
            f"{found} = -{self.rule.inf}",
            f"if {some.size} > {formula.n}:",
            *indented(some.take(found)),
        ], found

    def past_later(self, formula: Temporal, taker: Taker, sink: Sink) -> None:
        name = taker.name
        time, known = self.rule.fresh(f"{name}_time"), taker.known()
        if formula.after and len(formula.parts) == 1:
            self.past_apart(formula, taker, sink)
            return
        times = self.times(f"{name}_times")
        lines, found = self.looking_back(formula, name, taker.values(), time, self.settle_held)
        self.lines += [
            f"while {taker.comes()}:",
            *indented([*taker.take(), *times.take(time), *lines, *sink(found, known, time)]),
        ]

    def past_apart(self, formula: Temporal, taker: Taker, sink: Sink) -> None:
        """What is asked of events some time ago may be known before that of the event itself."""
        self.is_moved_by_events = True
        name, held = taker.name, self.settle_held
        fed, times = self.times(f"{name}_fed"), self.times(f"{name}_times")
        young = self.queue(f"{name}_young", "int", "float", "int")
        latest = self.cell(f"{name}_latest", "int", str(NEVER))
        held.add(young, latest)
        at, time, old, was = (
            self.rule.fresh(f"{name}_{one}") for one in ("at", "time", "old", "was")
        )
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
        self.lines += [
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
        due, time = self.rule.fresh(f"{name}_due"), self.rule.fresh(f"{name}_time")
        goal, hold = self.rule.fresh(f"{name}_goal"), self.rule.fresh(f"{name}_held")
        names = [hold, goal] if len(given) == 2 else [goal]
        ahead_time = f"{waiting.at(ahead.name)}{part}"
        more = f"{ahead.name} < {waiting.size} and {ahead_time} <= {due}"
        known = due
        if taker is None:
            unknown = self.rule.fresh(f"{name}_at")
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
        if not self.rule.key and out:
            leave.append(f"{out} += 1")
            clear = [*clear, f"{out} = 0"]
        elif taker is not None:
            clear = [*clear, f"{latest.name} = {NEVER}"]
        self.lines += [
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
        if self.rule.key:
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
        value = self.rule.fresh(f"{name}_value")
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
        inf, hold, goal = self.rule.inf, *names
        is_apart = bool(formula.after)
        more = ("int", "float") if is_apart else ()
        front = self.queue(f"{name}_front", *more, "float", "float")
        back = self.queue(f"{name}_back", *more[:1], "float", "float")
        back_held = self.cell(f"{name}_back_held", "float", inf)
        back_goal = self.cell(f"{name}_back_goal", "float", f"-{inf}")
        self.settle_held.add(front, back, back_held, back_goal)
        number, all_held, best, value = (
            self.rule.fresh(f"{name}_{one}") for one in ("at", "all_held", "all_goal", "value")
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
