"""Operators that look ahead inside of others, as stages of truth values.

Each event's value is known when it is settled, and not only when its bound has passed: all that
wait for an operator are settled from the oldest one on, by what comes or by time. So an event costs
the same whatever the bounds, and is told when the values inside have come in the order of events.

An operator inside must be settled by time, or by the end of the input: a value that never comes
would hold back those behind it, of which the definitions may know enough. Where that cannot be, and
where functions compare events, :mod:`~specstream.rules.scan` goes through the events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from specstream.rules.formula import (
    TRUE,
    And,
    Constant,
    Formula,
    Iff,
    Not,
    Or,
    Quantifier,
    Temporal,
    captured,
    has_future,
    leaves_of,
    lowered,
    parts,
)
from specstream.rules.stages import Sink, Stages, Taker
from specstream.rules.writing import NEVER, plain
from specstream.verbs.counting import END
from specstream.verbs.writing import indented

if TYPE_CHECKING:
    from specstream.rules.text import RuleText

__all__ = ["Nested", "is_nested", "known_parts"]


def is_nested(rule: RuleText, formula: Formula) -> bool:
    """Whether an operator that looks ahead asks others that do, and stages can tell its value."""
    return (
        isinstance(formula, Temporal)
        and formula.is_future
        and formula.at == 0
        and not captured(formula)
        and any(map(has_future, formula.parts))
        and all(_comes(rule, lowered(part, 1)) for part in formula.parts)
    )


def _comes(rule: RuleText, formula: Formula) -> bool:
    """Whether the value of a part comes for each event, at latest at the end of the input."""
    if isinstance(formula, Quantifier):
        return False
    if not has_future(formula):
        return bool(rule.past.is_closed(formula))
    if isinstance(formula, Temporal):
        if formula.at != 0 or captured(formula):
            return False
        is_settled = rule.options.at_end == "closed" or formula.within is not None
        if formula.is_future and not is_settled:
            return False
        return all(_comes(rule, lowered(part, 1)) for part in formula.parts)
    return all(_comes(rule, one) for one in parts(formula))


def known_parts(formula: Formula) -> Iterator[Formula]:
    """The parts of an operator, at any depth, that are known with their event."""
    if not has_future(formula):
        yield formula
    elif isinstance(formula, Temporal):
        for part in formula.parts:
            yield from known_parts(lowered(part, 1))
    else:
        for one in parts(formula):
            yield from known_parts(one)


class Nested(Stages):
    """The stages of a rule that tells verdicts."""

    of = "bool"
    timer = "900"

    def __init__(self, rule: RuleText) -> None:
        super().__init__(rule, "False")
        self.is_closed = rule.options.at_end == "closed"

    def word(self, formula: Temporal) -> str:
        # Those that look back, and are known at once, are named by their words.
        return formula.name if formula.is_future else f"later_{formula.name}"

    def value(self, formula: Formula, names: Mapping[Formula, str] | None = None) -> str:
        if names is None:
            return plain(self.rule.now_truth(formula))
        if formula in names:
            return names[formula]
        match formula:
            case Constant(value=value):
                return str(value)
            case Not(part=part):
                return _opposite(self.value(part, names))
            case And(parts=some) | Or(parts=some):
                return _joined(isinstance(formula, And), [self.value(one, names) for one in some])
            case Iff(left=left, right=right):
                return f"({self.value(left, names)} == {self.value(right, names)})"
        raise AssertionError(formula)

    def taken(self, taker: Taker, time: str) -> tuple[list[str], list[str]]:
        """Statements of a loop that take the values of the next event, or leave it; and others in
        front of those that look whether there is one.

        A value that does not matter, whatever it will be, is not waited for: it goes when it comes.

        Args:
            taker: of them.
            time: an expression for the time of the next event.
        """
        needs = {leaf: self.needs(taker, leaf) for leaf in taker.later}
        queues = {leaf: queue for leaf, (queue, _) in taker.leaves.items() if queue is not None}
        missing = [
            _joined(True, [need, f"not {queues[leaf].some}"]) for leaf, need in needs.items()
        ]
        lines = [
            f"{name} = {queues[leaf].at('0')}"
            for leaf, (_, name) in taker.leaves.items()
            if leaf not in taker.later
        ]
        lines += [f"if {plain(_joined(False, missing))}:", "    break"]
        before: list[str] = []
        for leaf, (_, name) in taker.leaves.items():
            queue = queues[leaf]
            if leaf not in taker.later:
                lines += queue.take()
                continue
            known = taker.later[leaf]
            take = queue.take(f"{name}, {known}")
            if needs[leaf] == "True":
                lines += take
                continue
            owed = self.cell(f"{queue.name}_owed", "int", "0")
            self.settle_held.add(owed)
            before += [
                f"while {owed.name} > 0 and {queue.some}:",
                *indented([*queue.take(), f"{owed.name} -= 1"]),
            ]
            lines += [
                f"if {plain(needs[leaf])}:",
                *indented(take),
                "else:",
                f"    {name}, {known} = False, {time}",
                f"    if {queue.some}:",
                *indented(indented(queue.take())),
                "    else:",
                f"        {owed.name} += 1",
            ]
        return lines, before

    def needs(self, taker: Taker, leaf: Formula) -> str:
        """An expression for whether the value of a leaf matters, of what is known with the event;
        "True" where that takes others that are not."""
        names = {one: name for one, (_, name) in taker.leaves.items()}
        found: list[str] = []
        for one in taker.formula:
            later = {part for part in leaves_of(one) if part in taker.later}
            if leaf not in later:
                continue
            if len(later) > 1:
                return "True"
            yes, no = (self.value(one, {**names, leaf: text}) for text in ("True", "False"))
            if {yes, no}.isdisjoint(("True", "False")):
                found.append(f"({yes} != {no})")
            elif no in ("True", "False"):
                found.append(yes if no == "False" else _opposite(yes))
            else:
                found.append(no if yes == "False" else _opposite(no))
        return _joined(False, found)

    def past_later(self, formula: Temporal, taker: Taker, sink: Sink) -> None:
        name, within, after = taker.name, formula.within, formula.after
        times, time = self.times(f"{name}_times"), self.rule.fresh(f"{name}_time")
        latest = self.cell(f"{name}_latest", "int", str(NEVER))
        self.settle_held.add(latest)
        held, goal = map(plain, taker.values())
        broken = [] if formula.held == TRUE else [f"{latest.name} = {NEVER}"]
        if not after:
            lines = [f"if {goal}:", f"    {latest.name} = {time}"]
            if broken:
                lines += [f"elif not ({held}):", *indented(broken)]
        else:
            # Times wait until they are old enough.
            young = self.queue(f"{name}_young", "int")
            self.settle_held.add(young)
            lines = []
            if broken:
                lines += [f"if not ({held}):", *indented([*young.clear(), *broken])]
            lines += [
                f"if {goal}:",
                *indented(young.push(time)),
                f"while {young.some} and {young.first} <= {time} - {after}:",
                *indented(young.take(latest.name)),
            ]
        found = f"{latest.name} != {NEVER}"
        if within is not None:
            found = f"({found} and {time} - {latest.name} <= {within})"
        take, before = self.taken(taker, times.at("0"))
        self.lines += [
            *before,
            f"while {times.some}:",
            *indented([*take, *times.take(time), *lines]),
            *indented(sink(found, taker.known(), time)),
        ]

    def window(self, formula: Temporal, name: str, given: Sequence[Formula], sink: Sink) -> None:
        self.is_moved_by_events = True
        fresh, within, after = self.rule.fresh, formula.within, formula.after
        asked = list(given) if formula.held != TRUE else [given[-1]]
        is_weak = formula.name == "unless"
        taker: Taker | None = None
        if any(map(has_future, asked)):
            taker = self.taker(name, asked)
            self.feed(taker)
            waiting, part = self.times(f"{name}_open"), ""
        else:
            waiting, part = self.queue(f"{name}_open", "int", *["bool"] * len(asked)), "[0]"
            self.event_held.add(waiting)
            self.pushes += waiting.push("now", *map(self.value, asked))
        # Of those that wait, so many have had their parts.
        ahead = self.cell(f"{name}_ahead", "int", "0")
        self.settle_held.add(waiting, ahead)
        count, value, known, due, good = (
            fresh(f"{name}_{one}") for one in ("count", "value", "known", "due", "good")
        )
        names = [fresh(f"{name}_{one}") for one in ("held", "goal")[-len(asked) :]]
        goal, is_next = names[-1], f"{ahead.name} < {waiting.size}"
        next_time = f"{waiting.at(ahead.name)}{part}"
        clear, before = list[str](), list[str]()
        if taker is None:
            take = [f"{', '.join([known, *names])} = {waiting.at(ahead.name)}"]
            late = due
        else:
            latest = self.cell(f"{name}_latest", "int", str(NEVER))
            self.settle_held.add(latest)
            late = f"max({due}, {latest.name})"
            take, before = self.taken(taker, next_time)
            take += [f"{one} = {plain(of)}" for one, of in zip(names, taker.values(), strict=True)]
            take += [
                f"{latest.name} = max({latest.name}, {taker.known()})",
                f"{known} = {latest.name}",
            ]
            clear = [f"if not {waiting.some}:", f"    {latest.name} = {NEVER}"]
        if after:
            take += [
                f"if {goal}:",
                f"    while {good} < {ahead.name} and "
                f"{waiting.at(good)}{part} + {after} <= {next_time}:",
                f"        {good} += 1",
                f"    {count} = {good}",
                f"{ahead.name} += 1",
            ]
            if len(names) == 2:
                take += [f"if not {names[0]}:", f"    {count} = {ahead.name}"]
        else:
            take += [
                f"{ahead.name} += 1",
                f"if {goal}:",
                f"    {count}, {value} = {ahead.name}, True",
            ]
            if len(names) == 2:
                take += [f"elif not {names[0]}:", f"    {count} = {ahead.name}"]
        over = [f"{good} = {count}"] if after and is_weak else []
        over += [f"{value} = True"] if is_weak and not after else []
        if within is not None:
            body = [
                f"{due} = {waiting.at('0')}{part} + {within}",
                f"if {due} < ({next_time} if {ahead.name} < {waiting.size} else at):",
                *indented([f"{count}, {known} = 1, {late}", *over]),
                f"elif {is_next}:",
                *indented(take),
            ]
        else:
            body = [f"if {is_next}:", *indented(take)]
            if self.is_closed:
                body += [
                    f"elif at == {END} and {ahead.name} > 0:",
                    *indented([f"{count}, {known} = {ahead.name}, {END}", *over]),
                ]
        start = [f"{count}, {known} = 0, at", f"{good} = 0" if after else f"{value} = False"]
        leave = [f"{count} -= 1", *waiting.take(), f"{ahead.name} -= 1"]
        if after:
            leave += [f"{value} = {good} > 0", f"{good} -= 1"]
        self.lines += [
            *before,
            f"while {waiting.some}:",
            *indented(
                [
                    *start,
                    *body,
                    "else:",
                    "    break",
                    f"while {count} > 0:",
                    *indented([*leave, *sink(value, known, None)]),
                ]
            ),
            *clear,
        ]
        if within is not None:
            self.timed.append((waiting, part, within))


def _opposite(value: str) -> str:
    return {"True": "False", "False": "True"}.get(value) or f"(not {value})"


def _joined(is_and: bool, values: Sequence[str]) -> str:
    """Expressions joined by ``and`` or ``or``, without those that do not matter."""
    decides, neutral = ("False", "True") if is_and else ("True", "False")
    given = [one for one in values if one != neutral]
    if decides in given:
        return decides
    word = " and " if is_and else " or "
    return f"({word.join(given)})" if len(given) > 1 else given[0] if given else neutral
