"""Events that wait for one operator, which says the same of all of them: the common case.

Those of a trace stand one behind the other and are settled from the oldest one on, all at once or
up to some age, so that neither bits nor a way back are kept of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specstream.rules.core import blamed, has_part, is_rising, with_value
from specstream.rules.formula import FALSE, TRUE, Temporal, lowered, negation
from specstream.rules.writing import Stored, plain
from specstream.structures import increment
from specstream.verbs.counting import END
from specstream.verbs.writing import entry, indented

if TYPE_CHECKING:
    from specstream.rules.text import RuleText

__all__ = ["Single"]


class Single:
    """Of a rule with one operator that looks ahead, the events that wait."""

    def __init__(self, rule: RuleText) -> None:
        self.rule = rule
        (node,) = rule.nodes
        self.part = node.formula
        self.node = self.operator()
        rising = is_rising(rule.formula, self.part)
        assert rising is not None
        # The value of the part with which the rule holds.
        self.good = rising
        self.keyed = bool(rule.key)
        # Whether they stand in a dict by number, one behind the other, by what they share.
        self.is_chained = self.keyed
        self.within, self.after = self.node.within, self.node.after
        # The value of the part where time passes, or the input ends.
        self.is_weak = self.node.name == "unless"
        self.tells_late = rule.tells_true or self.is_weak != self.good
        self.is_closed = rule.options.at_end == "closed"
        self.one = Stored(rule.waiting, "one")
        self.goal, self.held = self.conditions()
        pairs = blamed(rule.formula, [self.part])
        self.blame = next(
            (one.text for one, _ in pairs if has_part(one, self.part) and one.text),
            rule.formula.text,
        )

    def operator(self) -> Temporal:
        """The operator that looks ahead."""
        assert isinstance(self.part, Temporal)
        return self.part

    def conditions(self) -> tuple[str, str | None]:
        """What is to come, and what is to hold until then, asked of the event that comes."""
        held = lowered(self.node.held, 1)
        goal = plain(self.rule.now_truth(lowered(self.node.goal, 1)))
        return goal, None if held == TRUE else plain(self.rule.now_truth(held))

    def asked_of_one(self) -> list[str]:
        """Statements for ``goal``: what is to come, asked of one that waits."""
        return [f"goal = {self.goal}"]

    def let_go(self) -> list[str]:
        """Statements before one that waits goes."""
        return []

    chain = "key"
    """The name of what those in one chain share."""

    def named_chain(self) -> list[str]:
        """Statements that give it the name, of the event itself."""
        return []

    def gone(self) -> list[str]:
        """Statements after which the oldest one that waits, ``one``, does not."""
        key = entry([self.one.attribute("v0", name) for name in self.rule.key])
        return [
            f"key = {key}",
            "if one.after == 0:",
            "    del state.chains[key]",
            "else:",
            "    first, last = state.chains[key]",
            "    state.chains[key] = (one.after, last)",
            "del state.waiting[number]",
        ]

    def cleared(self) -> list[str]:
        """Statements when all that wait go."""
        return []

    @property
    def is_timed(self) -> bool:
        """Whether time settles something."""
        return self.within is not None

    @property
    def is_lazy(self) -> bool:
        """Whether nothing is told of what time settles, so that it need not be on the minute."""
        return self.is_timed and not self.tells_late

    # ---- rows ----

    def told(self, value: bool, decided: str) -> list[str]:
        """Statements that tell of one that waits, where the operator has a value."""
        holds = value == self.good
        if holds and not self.rule.tells_true:
            return []
        because = "None" if holds else repr(self.blame)
        return self.rule.row(self.one, str(holds), decided, because)

    def own(self, keep: list[str]) -> list[str]:
        """Statements about the event itself.

        Args:
            keep: those that keep it.
        """
        rule = self.rule
        now = rule.event
        sure = with_value(rule.formula, self.part, not self.good)
        possible = with_value(rule.formula, self.part, self.good)
        yes = rule.row(now, "True", "now", "None") if rule.tells_true else []
        no = rule.row(now, "False", "now", repr(self.blame))
        lines = self.settled_at_once(yes, no, [*keep, *self.begun()])
        if possible != TRUE:
            because = rule.blame(possible, rule.now_part)
            wrong = rule.row(now, "False", "now", because)
            test = plain(rule.now(negation(possible)))
            lines = [f"if {test}:", *indented(wrong), "else:", *indented(lines)]
        if sure == FALSE:
            return lines
        if yes:
            return [f"if {plain(rule.now(sure))}:", *indented(yes), "else:", *indented(lines)]
        return [f"if {plain(rule.now(negation(sure)))}:", *indented(lines)]

    def settled_at_once(self, yes: list[str], no: list[str], keep: list[str]) -> list[str]:
        """Statements about the event itself, where it depends on the part that looks ahead.

        Args:
            yes: those that tell that the rule holds.
            no: that it does not.
            keep: those that keep the event.
        """
        known: list[tuple[str, list[str]]] = []
        if self.node.name != "next_event":
            if not self.after:
                known.append(("goal", yes if self.good else no))
            if self.held is not None:
                known.append(("not held", no if self.good else yes))
        lines: list[str] = []
        for at, (test, then) in enumerate(known):
            lines += [f"{'elif' if at else 'if'} {test}:", *indented(then or ["pass"])]
        if not known:
            lines = keep
        elif all(not then for _, then in known):
            tests = [
                test.removeprefix("not ") if "not " in test else f"not {test}" for test, _ in known
            ]
            lines = [f"if {' and '.join(tests)}:", *indented(keep)]
        else:
            lines += ["else:", *indented(keep)]
        return lines

    # ---- text ----

    def lines(self) -> list[str]:
        """Statements for the event: first about those that wait, then about itself."""
        rule = self.rule
        rule.needs_time = True
        rule.waiting.keep("v0.timestamp", "time", int)
        for name in rule.key:
            self.one.attribute("v0", name)
        if self.node.name == "next_event":
            return self._stepped()
        conditions = [f"goal = {self.goal}"]
        if self.held is not None:
            conditions.append(f"held = {self.held}")
        found = [*conditions, *self._those_that_wait(), *self.own(self._kept())]
        if self.is_timed and (self.is_chained or not self.is_lazy):
            self._passed()
        if self.is_closed or (self.is_timed and not self.is_lazy):
            self._ended()
        return found

    def fill(self, lines: list[str]) -> list[str]:
        """The statements, when all that is kept is known."""
        given = {"after": "0"} if "after" in self.rule.waiting.fields else {}
        made = self.rule.waiting.made({"v0": self.rule.event}, given)
        return [one.replace("<Waiting>", made) for one in lines]

    def begun(self) -> list[str]:
        """Statements, where something waits, after which the end of the input is told."""
        if not self.is_closed and (not self.is_timed or self.is_lazy):
            return []
        return self.rule.end_awaited()

    def _those_that_wait(self) -> list[str]:
        rule = self.rule
        if self.keyed:
            rule.fields["waiting"] = f"ss.dict(int, Waiting, limit={rule.options.limit})"
            rule.waiting.fields["after"] = int
            rule.fields["items"] = "ss.scalar(int)"
            rule.fields["chains"] = rule.dict_of("(int, int)")
        else:
            rule.fields["waiting"] = f"ss.deque(Waiting, limit={rule.options.limit})"
        old = f" and now - one.time >= {self.after}" if self.after else ""
        settle = []
        word = "if"
        if self.is_lazy:
            settle += [f"if now - one.time > {self.within}:", "    pass  # time has settled it"]
            word = "elif"
        yes, no = self.told(True, "now"), self.told(False, "now")
        settle += [f"{word} goal{old}:", *indented(yes or ["pass"])]
        if self.held is not None:
            settle += ["elif not held:", *indented(no or ["pass"])]
        settle += ["else:", "    break"]
        if not self.after and self.held is None and not self.is_lazy:
            settle = yes
        tests = ["goal"] if self.held is None else ["goal", "not held"]
        test = tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"
        if self.keyed:
            return [
                f"if {test}:",
                *indented(
                    [
                        "first, last = state.chains.get(key, (0, 0))",
                        "number = first",
                        "while number != 0:",
                        "    one = state.waiting[number]",
                        *indented(settle),
                        "    number_after = one.after",
                        "    del state.waiting[number]",
                        "    number = number_after",
                        "if number != first:",
                        "    if number == 0:",
                        "        del state.chains[key]",
                        "    else:",
                        "        state.chains[key] = (number, last)",
                    ]
                ),
            ]
        drop = []
        if self.is_lazy:
            # Nothing is told of them, but they are not to pile up.
            old = f"now - state.waiting[0].time > {self.within}"
            drop = [f"while len(state.waiting) > 0 and {old}:", "    state.waiting.popleft()"]
        return [
            *drop,
            f"if {test}:",
            *indented(
                [
                    "while len(state.waiting) > 0:",
                    "    one = state.waiting[0]",
                    *indented(settle),
                    "    state.waiting.popleft()",
                ]
            ),
        ]

    def _kept(self) -> list[str]:
        """Statements that keep the event."""
        rule = self.rule
        if self.is_chained:
            rule.names["increment"] = increment
            chain = f"state.chains[{self.chain}]"
            lines = [
                'number = increment(state, "items")',
                *self.named_chain(),
                f"first, last = state.chains.get({self.chain}, (0, 0))",
                "state.waiting[number] = <Waiting>",
                "if first == 0:",
                f"    {chain} = (number, number)",
                "else:",
                "    state.waiting[last].after = number",
                f"    {chain} = (first, number)",
            ]
        else:
            lines = ["state.waiting.append(<Waiting>)"]
        if self.within is not None and (self.is_chained or not self.is_lazy):
            rule.fields["is_set"] = "ss.scalar(bool)"
            rule.timers[1] = "passed(state, timer.at, emit)"
            if self.is_chained:
                rule.fields["oldest"] = "ss.scalar(int)"
            lines += [
                "if not state.is_set:",
                "    state.is_set = True",
                f"    state.timers.set(1, now + {self.within + 1})",
            ]
        return lines

    def _passed(self) -> None:
        """Writes the function that settles what waits, where time has passed."""
        within = self.within
        assert within is not None
        told = self.told(self.is_weak, f"one.time + {within}")
        if self.is_chained:
            body = [
                "number, items = state.oldest, state.items",
                "while number <= items:",
                *indented(
                    [
                        "if number in state.waiting:",
                        *indented(
                            [
                                "one = state.waiting[number]",
                                f"if one.time + {within} >= at:",
                                "    break",
                                *told,
                                *self.gone(),
                            ]
                        ),
                        "number += 1",
                    ]
                ),
                "state.oldest = number",
                "if number <= items:",
            ]
        else:
            body = [
                "while len(state.waiting) > 0:",
                "    one = state.waiting[0]",
                f"    if one.time + {within} >= at:",
                "        break",
                *indented(told),
                "    state.waiting.popleft()",
                "if len(state.waiting) > 0:",
            ]
        # Where nothing is told they may be some more before the next look.
        oldest = "number" if self.is_chained else "0"
        then = "at" if self.is_lazy else f"state.waiting[{oldest}].time"
        body += [
            f"    state.timers.set(1, {then} + {within + 1})",
            "else:",
            "    state.is_set = False",
        ]
        self.rule.helpers.append("\n".join(["def passed(state, at, emit):", *indented(body)]))

    def _ended(self) -> None:
        """Writes the function for the end of the input, which lets all time pass."""
        lines = ["state.is_begun = False"]
        if self.is_timed and not self.is_lazy:
            # Timers that are set while the input ends do not fire any more.
            lines.append(f"passed(state, {END}, emit)")
        if self.is_closed and not self.is_timed:
            told = self.told(self.is_weak, "None")
            if self.is_chained:
                lines += [
                    "for number in list(state.waiting):",
                    "    one = state.waiting[number]",
                    *indented(told or ["pass"]),
                    "state.waiting.clear()",
                    "state.chains.clear()",
                    *self.cleared(),
                ]
            else:
                lines += [
                    "while len(state.waiting) > 0:",
                    "    one = state.waiting.popleft()",
                    *indented(told),
                ]
        self.rule.helpers.append("\n".join(["def ended(state, emit):", *indented(lines)]))

    # ---- so many events away ----

    def _stepped(self) -> list[str]:
        """Statements for ``next_event``: each finds by its number the one that waits for it."""
        rule, n = self.rule, self.node.n
        rule.fields["waiting"] = (
            f"ss.dict({rule.key_type('int') if self.keyed else 'int'}, Waiting, "
            f"limit={rule.options.limit})"
        )
        if self.is_closed:
            told = self.told(self.is_weak, "None")
            body = ["state.is_begun = False"]
            if self.keyed:
                body += ["state.counts.clear()"]
            body += [
                "for place in list(state.waiting):",
                "    one = state.waiting[place]",
                *indented(told or ["pass"]),
                "state.waiting.clear()",
                *self.cleared(),
            ]
            rule.helpers.append("\n".join(["def ended(state, emit):", *indented(body)]))
        good, bad = self.told(self.good, "now"), self.told(not self.good, "now")
        yes, no = (good, bad) if self.good else (bad, good)
        settle: list[str] = []
        if yes and no:
            settle = ["if goal:", *indented(yes), "else:", *indented(no)]
        elif yes or no:
            settle = ["if goal:" if yes else "if not goal:", *indented(yes or no)]
        found = [
            "one = state.waiting[place]",
            *(self.asked_of_one() if settle else []),
            *settle,
            *self.let_go(),
            "del state.waiting[place]",
        ]
        if not self.keyed:
            rule.names["increment"] = increment
            rule.fields["events"] = "ss.scalar(int)"
            return [
                'number = increment(state, "events")',
                f"place = number - {n}",
                "if place in state.waiting:",
                *indented(found),
                *self.own(["state.waiting[number] = <Waiting>"]),
            ]
        rule.fields["counts"] = rule.dict_of("(int, int)")
        place, own = rule.key_and(f"count - {n}"), rule.key_and("count")
        keep = [
            "state.counts[key] = (count, count)",
            f"state.waiting[{own}] = <Waiting>",
        ]
        return [
            # How many events there were since one waits, and the last that does.
            "count, latest = state.counts.get(key, (0, 0))",
            "if count != 0:",
            *indented(
                [
                    "count += 1",
                    f"place = {place}",
                    "if place in state.waiting:",
                    *indented(found),
                    f"if latest > count - {n}:",
                    "    state.counts[key] = (count, latest)",
                    "else:",
                    "    del state.counts[key]",
                    "    count = 1",
                ]
            ),
            "else:",
            "    count = 1",
            *self.own(keep),
        ]
