"""What events say that are kept: gone through one after the other, by the definitions.

That is for conditions about two events and more, and for operators that look ahead inside of
others: whatever has no value of its own. A value is 0 for false, 2 for true, and 1 while it is not
settled.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specstream.rules.core import with_value
from specstream.rules.formula import (
    TRUE,
    And,
    Atom,
    Constant,
    Formula,
    Iff,
    Not,
    Or,
    Quantifier,
    Temporal,
    has_future,
    leaves_of,
    own,
    parts,
    variable,
    walk,
)
from specstream.rules.writing import Place, Stored, Variable, placed, plain, truth
from specstream.structures import increment
from specstream.verbs.writing import indented

if TYPE_CHECKING:
    from specstream.rules.text import RuleText

__all__ = ["Env", "Scan"]


@dataclass(frozen=True)
class Env:
    """Where events are.

    Attributes:
        places: of events and variables.
        numbers: of events that are kept, expressions for their numbers.
        times: likewise for their times.
        clock: an expression for the time that has come.
        ended: an expression that says whether the input has ended; "": it has not.
    """

    places: dict[str, Place]
    numbers: dict[int, str]
    times: dict[int, str]
    clock: str = "now"
    ended: str = ""

    def with_event(self, depth: int, place: Place, number: str, time: str) -> Env:
        """One more event."""
        return replace(
            self,
            places={**self.places, variable(depth): place},
            numbers={**self.numbers, depth: number},
            times={**self.times, depth: time},
        )


class Scan:
    """A rule's kept events, and what goes through them."""

    def __init__(self, rule: RuleText) -> None:
        self.rule = rule
        self.is_used = False
        # How far back from an event its conditions ask, in time; None: there is no end; -1: they
        # do not.
        self.reach: int | None = -1
        self.count = 0

    # ---- what is kept ----

    def needs(self, formula: Formula) -> None:
        """Events are kept for a formula."""
        if not self.is_used:
            self.is_used = True
            self.rule.notes.append(
                "goes through the events that are kept: their conditions compare events without "
                "an equality to look up, or look ahead inside of one another"
            )
        found = self._reach(formula)
        self.reach = None if self.reach is None or found is None else max(self.reach, found)
        self._collect(formula)

    def _reach(self, formula: Formula) -> int | None:
        """How far back from its event a formula asks, as :attr:`reach`."""
        if isinstance(formula, Temporal) and self.rule.past.is_simple(own(formula)):
            return -1
        inner = [self._reach(one) for one in parts(formula)]
        most = None if None in inner else max([-1, *(one for one in inner if one is not None)])
        if not isinstance(formula, Temporal) or formula.is_future or most is None:
            return most
        # With a length of 0, too, there are events of the same time.
        return None if formula.within is None else formula.within + max(most, 0)

    def _collect(self, formula: Formula) -> None:
        """The operators with values of the state that kept events are asked for."""
        past = self.rule.past
        for one in walk(formula):
            if isinstance(one, Temporal) and past.is_simple(own(one)):
                past.collect(own(one))

    def appended(self) -> list[str]:
        """Statements that keep the event: its number is ``position``."""
        if not self.is_used:
            return []
        rule, seen = self.rule, self.rule.past.seen
        # The fields are known when all conditions are written: the text is put in then.
        rule.names["increment"] = increment
        rule.fields["positions"] = "ss.scalar(int)"
        rule.fields["seen"] = f"ss.dict(int, Seen, limit={rule.options.limit})"
        seen.fields.setdefault("before", int)
        seen.fields.setdefault("after", int)
        seen.keep("v0.timestamp", "time", int)
        if rule.key:
            rule.fields["latest"] = rule.dict_of("int")
            load, store = "state.latest.get(key, 0)", "state.latest[key] = position"
        else:
            rule.fields["latest"] = "ss.scalar(int)"
            load, store = "state.latest", "state.latest = position"
        return [
            'position = increment(state, "positions")',
            f"latest = {load}",
            "state.seen[position] = <Seen>",
            "if latest != 0:",
            "    state.seen[latest].after = position",
            store,
        ]

    def dropped(self, first: str = "") -> list[str]:
        """Statements that let go of kept events that nobody asks for any more.

        Args:
            first: an expression for the number of the first event that waits, 0 if none does; "":
                none ever does.
        """
        if not self.is_used or self.reach is None:
            return []
        rule = self.rule
        if rule.key:
            rule.fields["earliest"] = rule.dict_of("int")
            load = "state.earliest.get(key, position)"
            store = ["state.earliest[key] = at"]
            forget = ["state.latest.pop(key, 0)", "state.earliest.pop(key, 0)"]
        else:
            rule.fields["earliest"] = "ss.scalar(int)"
            load = "state.earliest if state.earliest != 0 else position"
            store = ["state.earliest = at"]
            forget = ["state.latest = 0", "state.earliest = 0"]
        # Without a look back, all before the first that waits; else what is too old for it too.
        by_number = self.reach < 0
        floor = ["needed = position + 1" if by_number else "needed = now"]
        if first:
            needed = "position" if by_number else "time"
            floor += [f"first = {first}", "if first != 0:"]
            floor += [f"    needed = state.waiting[first].{needed}"]
        test = "at < needed" if by_number else f"state.seen[at].time + {self.reach} < needed"
        return [
            *floor,
            f"at = {load}",
            f"while at != 0 and {test}:",
            "    dropped = at",
            "    at = state.seen[at].after",
            "    del state.seen[dropped]",
            "if at == 0:",
            *indented(forget),
            "else:",
            "    state.seen[at].before = 0",
            *indented(store),
        ]

    def fill(self, lines: list[str]) -> list[str]:
        """The statements, when all that is kept is known."""
        seen = self.rule.past.seen
        made = seen.made({"v0": self.rule.event}, {"before": "latest", "after": "0"})
        return [one.replace("<Seen>", made) for one in lines]

    # ---- values ----

    def env(self) -> Env:
        """Where the event that comes is."""
        return Env({"v0": self.rule.event}, {0: "position"}, {0: "now"})

    def value(self, formula: Formula, name: str) -> list[str]:
        """Statements that give a formula a name, which is known with the event that comes."""
        lines, code = self.expression(formula, self.env())
        return [*lines, f"{name} = {plain(code)}"]

    def fresh(self, word: str) -> str:
        """A name."""
        self.count += 1
        return f"{word}_{self.count}"

    def expression(self, formula: Formula, env: Env) -> tuple[list[str], str]:
        """Statements, and then an expression: a bool of what is known with its event, else 0, 1 or
        2."""
        is_open = has_future(formula)
        if is_open and isinstance(formula, And | Or | Iff):
            leaves = Counter(one for one in leaves_of(formula) if has_future(one))
            twice = [one for one, count in leaves.items() if count > 1]
            if twice:
                return self._either_way(formula, twice[0], env)
        match formula:
            case Constant(value=value):
                return [], str(value)
            case Atom(code=code):
                return [], f"({truth(placed(code, env.places, self.rule.names))})"
            case Not(part=part):
                lines, code = self.expression(part, env)
                return lines, f"(2 - {code})" if is_open else f"(not {code})"
            case And(parts=some):
                return self._together(some, env, is_open, True)
            case Or(parts=some):
                return self._together(some, env, is_open, False)
            case Iff(left=left, right=right):
                return self._alike(left, right, env, is_open)
            case Quantifier():
                return self._quantifier(formula, env, is_open)
            case Temporal():
                return self._temporal(formula, env, is_open)
        raise AssertionError(formula)

    def three(self, formula: Formula, env: Env) -> tuple[list[str], str]:
        """Likewise, 0, 1 or 2 in any case."""
        lines, code = self.expression(formula, env)
        return lines, code if has_future(formula) else f"(2 if {code} else 0)"

    def _either_way(self, formula: Formula, part: Formula, env: Env) -> tuple[list[str], str]:
        """A formula in which a part stands twice: while that is open, it is asked both ways."""
        asked, known = self.three(part, env)
        value, one, other = (self.fresh(word) for word in ("asked", "one", "other"))
        lines, yes = self.three(with_value(formula, part, True), env)
        more, no = self.three(with_value(formula, part, False), env)
        return [
            *asked,
            f"{value} = {plain(known)}",
            *lines,
            f"{one} = {plain(yes)}",
            *more,
            f"{other} = {plain(no)}",
        ], f"({one} if {value} == 2 or {one} == {other} else {other} if {value} == 0 else 1)"

    def _together(
        self, some: tuple[Formula, ...], env: Env, is_open: bool, is_and: bool
    ) -> tuple[list[str], str]:
        given = [(self.three if is_open else self.expression)(one, env) for one in some]
        if not is_open and not any(lines for lines, _ in given):
            word = " and " if is_and else " or "
            return [], f"({word.join(code for _, code in given)})"
        name = self.fresh("value")
        if not is_open:
            lines = [*given[0][0], f"{name} = {plain(given[0][1])}"]
            for more, code in given[1:]:
                test = name if is_and else f"not {name}"
                lines += [f"if {test}:", *indented([*more, f"{name} = {plain(code)}"])]
            return lines, name
        lines = [*given[0][0], f"{name} = {plain(given[0][1])}"]
        settled = 0 if is_and else 2
        for more, code in given[1:]:
            one = self.fresh("one")
            better = "<" if is_and else ">"
            lines += [
                f"if {name} != {settled}:",
                *indented(
                    [
                        *more,
                        f"{one} = {plain(code)}",
                        f"if {one} {better} {name}:",
                        f"    {name} = {one}",
                    ]
                ),
            ]
        return lines, name

    def _alike(
        self, left: Formula, right: Formula, env: Env, is_open: bool
    ) -> tuple[list[str], str]:
        if not is_open:
            one, left_code = self.expression(left, env)
            two, right_code = self.expression(right, env)
            return [*one, *two], f"({left_code} == {right_code})"
        one, left_code = self.three(left, env)
        two, right_code = self.three(right, env)
        a, b = self.fresh("left"), self.fresh("right")
        lines = [*one, f"{a} = {plain(left_code)}", *two, f"{b} = {plain(right_code)}"]
        return lines, f"(1 if {a} == 1 or {b} == 1 else 2 if {a} == {b} else 0)"

    def _quantifier(self, formula: Quantifier, env: Env, is_open: bool) -> tuple[list[str], str]:
        name, one = self.fresh("value"), self.fresh("one")
        domain = placed(formula.domain, env.places, self.rule.names)
        place = Variable(formula.variable)
        inside = replace(env, places={**env.places, formula.variable: place})
        lines, code = self.expression(formula.part, inside)
        if not is_open:
            test = f"not {code}" if formula.is_all else code
            body = [*lines, f"if {plain(test)}:", f"    {name} = {not formula.is_all}", "    break"]
            return [
                f"{name} = {formula.is_all}",
                f"for {formula.variable} in {domain}:",
                *indented(body),
            ], name
        better, last = ("<", 0) if formula.is_all else (">", 2)
        return [
            f"{name} = {2 if formula.is_all else 0}",
            f"for {formula.variable} in {domain}:",
            *indented(
                [
                    *lines,
                    f"{one} = {plain(code)}",
                    f"if {one} {better} {name}:",
                    f"    {name} = {one}",
                    f"    if {one} == {last}:",
                    "        break",
                ]
            ),
        ], name

    def _temporal(self, formula: Temporal, env: Env, is_open: bool) -> tuple[list[str], str]:
        alone = own(formula)
        place = env.places[variable(formula.at)]
        past = self.rule.past
        if alone in past.nodes and past.is_simple(alone):
            name = past.nodes[alone]
            if isinstance(place, Stored):
                field = place.record.keep(f"={name}", name, bool)
                return [], f"{place.name}.{field}"
            return [], name
        if formula.name == "previous_event":
            return self._step(formula, env, is_open, "before")
        if formula.name == "next_event":
            return self._step(formula, env, is_open, "after")
        if formula.name == "since":
            return self._back(formula, env, is_open)
        return self._on(formula, env)

    def _step(self, formula: Temporal, env: Env, is_open: bool, way: str) -> tuple[list[str], str]:
        at, name, one = self.fresh("at"), self.fresh("value"), self.fresh("one")
        inside = self._inside(formula, env, one, at)
        lines, code = (self.three if is_open else self.expression)(formula.goal, inside)
        moved = [f"{at} = {env.numbers[formula.at]}"]
        if formula.n == 1:
            moved += [f"{at} = state.seen[{at}].{way}"]
        else:
            moved += [
                f"for _ in range({formula.n}):",
                f"    if {at} != 0:",
                f"        {at} = state.seen[{at}].{way}",
            ]
        missing = "False" if not is_open else "0"
        if way == "after":
            missing = f"(0 if {env.ended} else 1)" if env.ended else "1"
        return [
            *moved,
            f"{name} = {plain(missing)}",
            f"if {at} != 0:",
            *indented([f"{one} = state.seen[{at}]", *lines, f"{name} = {plain(code)}"]),
        ], name

    def _inside(self, formula: Temporal, env: Env, one: str, at: str) -> Env:
        """Where the events of an operator's parts are."""
        return env.with_event(formula.depth, Stored(self.rule.past.seen, one), at, f"{one}.time")

    def _bounds(self, formula: Temporal, env: Env, one: str, past: bool) -> tuple[str, str]:
        start = env.times[formula.at]
        way = f"{start} - {one}.time" if past else f"{one}.time - {start}"
        if formula.within is not None or formula.after:
            self.rule.needs_time = True
        too_far = "" if formula.within is None else f"{way} > {formula.within}"
        near = "" if not formula.after else f"{way} >= {formula.after}"
        return too_far, near

    def _back(self, formula: Temporal, env: Env, is_open: bool) -> tuple[list[str], str]:
        at, name, one = self.fresh("at"), self.fresh("value"), self.fresh("one")
        inside = self._inside(formula, env, one, at)
        too_far, near = self._bounds(formula, env, one, True)
        read = self.three if is_open else self.expression
        goal_lines, goal = read(formula.goal, inside)
        held_lines, held = read(formula.held, inside)
        body = [f"{one} = state.seen[{at}]"]
        if too_far:
            body += [f"if {too_far}:", "    break"]
        if not is_open:
            tested = [*goal_lines, f"if {plain(goal)}:", f"    {name} = True", "    break"]
            ended = [*held_lines, f"if not {held}:", "    break"]
            start = [f"{name} = False"]
        else:
            rest, found = self.fresh("rest"), self.fresh("found")
            start = [f"{name} = 0", f"{rest} = 2"]
            tested = [
                *goal_lines,
                f"{found} = min({plain(goal)}, {rest})",
                f"if {found} > {name}:",
                f"    {name} = {found}",
                f"    if {found} == 2:",
                "        break",
            ]
            ended = [
                *held_lines,
                f"{rest} = min({plain(held)}, {rest})",
                f"if {rest} == 0:",
                "    break",
            ]
        body += [f"if {near}:", *indented(tested)] if near else tested
        if formula.held != TRUE:
            body += ended
        return [
            *start,
            f"{at} = {env.numbers[formula.at]}",
            f"while {at} != 0:",
            *indented([*body, f"{at} = {one}.before"]),
        ], name

    def _on(self, formula: Temporal, env: Env) -> tuple[list[str], str]:
        at, name, one = self.fresh("at"), self.fresh("value"), self.fresh("one")
        rest, found, over = self.fresh("rest"), self.fresh("found"), self.fresh("over")
        inside = self._inside(formula, env, one, at)
        too_far, near = self._bounds(formula, env, one, False)
        goal_lines, goal = self.three(formula.goal, inside)
        held_lines, held = self.three(formula.held, inside)
        start = env.times[formula.at]
        body = [f"{one} = state.seen[{at}]"]
        if too_far:
            body += [f"if {too_far}:", f"    {over} = True", "    break"]
        tested = [
            *goal_lines,
            f"{found} = min({plain(goal)}, {rest})",
            f"if {found} > {name}:",
            f"    {name} = {found}",
            f"    if {found} == 2:",
            "        break",
        ]
        body += [f"if {near}:", *indented(tested)] if near else tested
        if formula.held != TRUE:
            body += [
                *held_lines,
                f"{rest} = min({plain(held)}, {rest})",
                f"if {rest} == 0:",
                "    break",
            ]
        passed = f"{env.clock} - {start} > {formula.within}" if formula.within is not None else ""
        tests = [one for one in (over, env.ended, passed) if one]
        is_over = " or ".join(tests)
        weak = formula.name == "unless"
        return [
            f"{name} = 0",
            f"{rest} = 2",
            f"{over} = False",
            f"{at} = {env.numbers[formula.at]}",
            f"while {at} != 0:",
            *indented([*body, f"{at} = {one}.after"]),
            f"if {name} != 2 and {rest} > {name}:",
            f"    if {is_over}:",
            f"        {name} = {f'max({name}, {rest})' if weak else name}",
            "    else:",
            f"        {name} = max({name}, min(1, {rest}))",
        ], name
