"""Rules and traces at random: the text of a module with a rule, and events with its columns.

The text needs the operators among its globals, those of the definitions or those of the product.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import NamedTuple

__all__ = ["EVENT", "FUTURE", "OPERATORS", "PAST", "Event", "random_rule", "random_trace"]

PAST = ("previous_event", "once", "historically", "since")
FUTURE = ("next_event", "eventually", "always", "until", "unless")
OPERATORS = PAST + FUTURE
EVENT = {"p": bool, "q": bool, "x": int, "k": int}


class Event(NamedTuple):
    time: int
    p: bool
    q: bool
    x: int
    k: int


def random_trace(random: Random, length: int) -> list[Event]:
    """Events of equal times, close ones, and ones far apart."""
    time, events = 0, []
    for _ in range(length):
        p, q = random.random() < 0.5, random.random() < 0.4
        events.append(Event(time, p, q, random.randrange(4), random.randrange(3)))
        time += random.choice((0, 0, 1, 1, 2, 3, 9))
    return events


def random_rule(
    random: Random,
    depth: int,
    *,
    kinds: Collection[str] = OPERATORS,
    captured: bool = False,
    bounds: bool = True,
    nested: bool = True,
) -> str:
    """A module that defines ``rule``, of parts inside one another down to a depth.

    Args:
        kinds: operators that may occur.
        captured: with functions that compare several events, and quantifiers over what one holds.
        bounds: with ``within`` and ``after``.
        nested: with future operators inside future ones.
    """
    writer = _Writer(random, kinds, captured, bounds, nested)
    text = writer.part(depth, ["e"], [], True)
    head = ["from functools import partial\n"] if "partial(" in text + str(writer.defs) else []
    return "\n\n".join([*head, *writer.defs, f"def rule(e):\n    return {text}\n"])


class _Writer:
    def __init__(
        self, random: Random, kinds: Collection[str], captured: bool, bounds: bool, nested: bool
    ) -> None:
        self.random, self.kinds, self.captured = random, list(kinds), captured
        self.bounds, self.nested = bounds, nested
        self.defs: list[str] = []

    def part(self, depth: int, events: list[str], numbers: list[str], future: bool) -> str:
        """A truth value about the last of the events, which are in scope as the numbers are."""
        if depth == 0 or self.random.random() < 0.1:
            return self.atom(events, numbers)
        if self.random.random() < 0.55:
            kinds = [kind for kind in self.kinds if future or kind not in FUTURE]
            if kinds:
                return self.operator(self.random.choice(kinds), depth, events, numbers, future)
        forms = ["not ({0})", "({0} and {1})", "({0} or {1})", "implies({0}, {1})"]
        forms += ["({0} if {1} else {2})", "(({0}) == ({1}))", "helper"]
        form = self.random.choice([*forms, "quantifier", "quantifier"] if self.captured else forms)
        if form == "helper":
            return f"{self.define(depth - 1, future)}({events[-1]})"
        if form == "quantifier":
            number = f"n{len(numbers)}"
            domains = ["(1, 2)", "()", *(f"range({bound})" for bound in numbers)]
            domain = self.random.choice([*domains, f"range({self.random.choice(events)}.x)"])
            body = self.part(depth - 1, events, [*numbers, number], future)
            return f"{self.random.choice(('all', 'any'))}({body} for {number} in {domain})"
        count = form.count("{")
        return form.format(*(self.part(depth - 1, events, numbers, future) for _ in range(count)))

    def operator(
        self, kind: str, depth: int, events: list[str], numbers: list[str], future: bool
    ) -> str:
        future = future and (self.nested or kind not in FUTURE)
        count = 2 if kind in ("since", "until", "unless") else 1
        given = [self.function(depth - 1, events, numbers, future) for _ in range(count)]
        if kind.endswith("_event"):
            given += self.random.choice(([], [], ["2"], ["n=3"]))
        elif self.bounds:
            after = self.random.randrange(4)
            within = after + self.random.randrange(6)
            some = [f"within={within}", f"after={after}"]
            given += self.random.choice(([], some[:1], some[1:], some))
        return f"{kind}({', '.join(given)})"

    def function(self, depth: int, events: list[str], numbers: list[str], future: bool) -> str:
        choice = self.random.random()
        if choice < 0.15:
            return self.define(depth, future)
        if choice < 0.25:
            least = self.random.randrange(4)
            if self.random.random() < 0.5:
                return f"partial({self.define(depth, future, 'least, a')}, {least})"
            return f"partial({self.define(depth, future, 'a, least')}, least={least})"
        event = "ebcdghijklmnopqr"[len(events)]
        if not self.captured:
            return f"lambda {event}: {self.part(depth, [event], [], future)}"
        return f"lambda {event}: {self.part(depth, [*events, event], numbers, future)}"

    def define(self, depth: int, future: bool, arguments: str = "a") -> str:
        """The name of a function of one event, and of a number that `partial` gives."""
        text = self.part(depth, ["a"], ["least"] if "least" in arguments else [], future)
        name = f"f{len(self.defs)}"
        self.defs.append(f"def {name}({arguments}):\n    return {text}\n")
        return name

    def atom(self, events: list[str], numbers: list[str]) -> str:
        e, number = events[-1], self.random.randrange(4)
        if numbers and self.random.random() < 0.5:
            bound = self.random.choice(numbers)
            return self.random.choice((f"{e}.x >= {bound}", f"{e}.k == {bound}"))
        if len(events) > 1 and self.random.random() < 0.7:
            o, another = self.random.choice(events[:-1]), self.random.choice(events[:-1])
            pairs = [f"{e}.k == {o}.k", f"{e}.x > {o}.x", f"{e}.k == {o}.k and {e}.x > {another}.x"]
            pairs += [f"{e}.p != {o}.p", f"{e}.x + {another}.k >= {o}.x", f"{e}.x - {o}.x == 1"]
            return f"({self.random.choice(pairs)})"
        plain = [f"{e}.p", f"{e}.q", f"not {e}.p", f"{e}.x >= {number}", f"{e}.k == {number % 3}"]
        return self.random.choice([*plain, f"{e}.p", f"{e}.q", f"0 < {e}.x < 3", f"{e}.x % 2 == 0"])
