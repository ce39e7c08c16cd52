"""Events that wait for one operator that compares them with what comes.

Those that share what is to be equal stand one behind the other; where nothing is to be equal all of
a trace do. An event that comes is tested against each of them, and settles some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specstream.declarations.chosen_columns import kept_as
from specstream.rules.captured import conjuncts, divided, key_parts, opposite, unequal
from specstream.rules.formula import (
    FALSE,
    TRUE,
    Formula,
    Quantifier,
    Temporal,
    captured,
    conjunction,
    has_future,
    lowered,
    own,
    walk,
)
from specstream.rules.single import Single
from specstream.rules.writing import plain, truth
from specstream.verbs.writing import entry, indented

if TYPE_CHECKING:
    from specstream.rules.text import RuleText

__all__ = ["Tested", "is_tested"]


def is_tested(rule: RuleText, formula: Formula) -> bool:
    """Whether an operator compares each event that comes with each that waits, and no others."""
    return compares(rule, formula) and captured(formula) <= {"v0"}


def compares(rule: RuleText, formula: Formula) -> bool:
    """Likewise, or with variables of quantifiers around it."""
    if not isinstance(formula, Temporal) or not formula.is_future or formula.at != 0:
        return False
    inside = [one for part in formula.parts for one in walk(part)]
    return (
        not any(map(has_future, formula.parts))
        and not any(isinstance(one, Quantifier) for one in inside)
        and all(
            one.at == formula.depth and rule.past.is_simple(own(one))
            for one in inside
            if isinstance(one, Temporal)
        )
    )


class Tested(Single):
    """Of a rule with one such operator, the events that wait."""

    chain = "shared"

    def __init__(self, rule: RuleText) -> None:
        super().__init__(rule)
        self.is_chained = True
        node, depth = self.node, self.node.depth
        self.pairs: list[tuple[str, str]] = []
        alone: list[Formula] = []
        if node.name != "next_event":
            pairs, rest = key_parts(node.goal, depth, rule.columns)
            broken: Formula = FALSE
            if node.held != TRUE:
                # What is to be equal of both is looked up, and what of one of them is tested.
                ended, _ = key_parts(opposite(node.held), depth, rule.columns)
                pairs = [one for one in pairs if one in ended]
                rest = unequal(node.goal, depth, rule.columns, pairs)
                more = unequal(opposite(node.held), depth, rule.columns, pairs)
                broken = conjunction(tuple(more))
            if pairs:
                self.pairs = pairs
                alone = divided(rest, depth)[0]
                self.goal_of_slice, self.broken = conjunction(tuple(rest)), broken
        if not self.pairs:
            self.goal_of_slice = node.goal
            self.broken = FALSE if node.held == TRUE else opposite(node.held)
            alone = divided(conjuncts(node.goal), depth)[0]
            if node.name != "next_event":
                rule.notes.append(
                    f"goes through all that wait, as nothing is to be equal in {node.text}"
                )
        # An event of which this is false settles nothing, whatever waits.
        self.filter = conjunction(tuple(alone)) if self.broken == FALSE else TRUE

    def conditions(self) -> tuple[str, str | None]:
        """What is to come, and what is to hold until then, of the event itself."""
        held = self.node.held
        goal = self._both(self.node.goal, own=True)
        return goal, None if held == TRUE else self._both(held, own=True)

    def _both(self, formula: Formula, own: bool) -> str:
        """A condition about what waits, or about the event itself, and the event that comes."""
        first = self.rule.event if own else self.one
        places = {"v0": first, f"v{self.node.depth}": self.rule.event}
        return truth(plain(self.rule.of_two(formula, places)))

    def asked_of_one(self) -> list[str]:
        """Statements for ``goal``: what is to come, asked of one that waits."""
        return [f"goal = {self._both(self.node.goal, own=False)}"]

    @property
    def slice_of_event(self) -> str:
        """What those that wait share with the event that comes."""
        event = self.rule.event
        parts = [event.attribute("v1", one) for one, _ in self.pairs]
        return self.rule.key_and(*parts) if self.rule.key or parts else "0"

    def slice_of_own(self, stored: bool) -> str:
        """What an event that waits has for it."""
        place = self.one if stored else self.rule.event
        parts = [place.attribute("v0", one) for one in self.rule.key] if stored else []
        more = [place.attribute("v0", one) for _, one in self.pairs]
        if stored:
            return entry([*parts, *more]) if parts or more else "0"
        return self.rule.key_and(*more) if self.rule.key or more else "0"

    def lines(self) -> list[str]:
        """Statements for the event: first about those that wait, then about itself."""
        rule = self.rule
        if self.node.name == "next_event":
            return super().lines()
        rule.needs_time = True
        rule.waiting.keep("v0.timestamp", "time", int)
        rule.waiting.fields.update({"before": int, "after": int})
        self.slice_of_own(stored=True)
        waits = self._those_that_wait()
        own_lines = self.own(self._kept())
        if self.is_timed:
            self._passed()
        if self.is_closed or (self.is_timed and not self.is_lazy):
            self._ended()
        self._forget()
        return [*waits, *own_lines]

    def settled_at_once(self, yes: list[str], no: list[str], keep: list[str]) -> list[str]:
        """Statements about the event itself, where it depends on the part that looks ahead."""
        found = super().settled_at_once(yes, no, keep)
        if self.node.name == "next_event":
            return found
        conditions = [f"goal = {self.goal}"] if not self.after else []
        if self.held is not None:
            conditions.append(f"held = {self.held}")
        return [*conditions, *found]

    def _those_that_wait(self) -> list[str]:
        rule = self.rule
        rule.fields["waiting"] = f"ss.dict(int, Waiting, limit={rule.options.limit})"
        rule.fields["items"] = "ss.scalar(int)"
        types = [kept_as(rule.columns[one]).__name__ for one, _ in self.pairs]
        of = rule.key_type(*types) if rule.key or types else "int"
        rule.fields["chains"] = f"ss.dict({of}, (int, int), limit={rule.options.limit})"
        settle = self.settle_one()
        body = [
            f"shared = {self.slice_of_event}",
            "number, last = state.chains.get(shared, (0, 0))",
            "while number != 0:",
            *indented(
                [
                    "one = state.waiting[number]",
                    *settle,
                    "number_after = one.after",
                    *self.let_go(),
                    "forget(state, shared, number)",
                    "number = number_after",
                ]
            ),
        ]
        if self.filter == TRUE:
            return body
        alone = plain(rule.now_truth(lowered(self.filter, self.node.depth)))
        return [f"if {alone}:", *indented(body)]

    def settle_one(self) -> list[str]:
        """Statements that go on to the next one, but where ``one`` is settled: that is told."""
        goal = self._both(self.goal_of_slice, own=False)
        if self.after:
            goal = f"now - one.time >= {self.after} and ({goal})"
        settle: list[str] = []
        word = "if"
        if self.is_lazy:
            settle += [f"if now - one.time > {self.within}:", "    pass  # time has settled it"]
            word = "elif"
        settle += [f"{word} {goal}:", *indented(self.told(True, "now") or ["pass"])]
        if self.broken != FALSE:
            settle += [
                f"elif {self._both(self.broken, own=False)}:",
                *indented(self.told(False, "now") or ["pass"]),
            ]
        return [*settle, "else:", "    number = one.after", "    continue"]

    def named_chain(self) -> list[str]:
        """Statements that give what is shared its name, of the event itself."""
        return [f"shared = {self.slice_of_own(stored=False)}"]

    def gone(self) -> list[str]:
        """Statements after which the oldest one that waits, ``one``, does not."""
        return [*self.let_go(), f"forget(state, {self.slice_of_own(stored=True)}, number)"]

    def fill(self, lines: list[str]) -> list[str]:
        """The statements, when all that is kept is known."""
        given = {} if self.node.name == "next_event" else {"before": "last", "after": "0"}
        made = self.rule.waiting.made({"v0": self.rule.event}, given)
        return [one.replace("<Waiting>", made) for one in lines]

    def _forget(self) -> None:
        """Writes the function that lets an event go."""
        body = [
            "one = state.waiting[number]",
            "before, after = one.before, one.after",
            "first, last = state.chains[shared]",
            "if before != 0:",
            "    state.waiting[before].after = after",
            "if after != 0:",
            "    state.waiting[after].before = before",
            "del state.waiting[number]",
            "if first == last:",
            "    del state.chains[shared]",
            "elif number == first:",
            "    state.chains[shared] = (after, last)",
            "elif number == last:",
            "    state.chains[shared] = (first, before)",
        ]
        self.rule.helpers.insert(
            0, "\n".join(["def forget(state, shared, number):", *indented(body)])
        )
