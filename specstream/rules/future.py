"""Events that wait for later ones: what is kept of them, what settles them, and when time does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specstream.errors import DeclarationError
from specstream.rules.core import skeleton
from specstream.rules.formula import (
    TRUE,
    And,
    Constant,
    Formula,
    Iff,
    Not,
    Or,
    Temporal,
    has_future,
    lowered,
    walk,
)
from specstream.rules.nested import Nested
from specstream.rules.queues import Queue
from specstream.rules.scan import Env
from specstream.rules.writing import Place, Record, Stored, plain
from specstream.structures import increment
from specstream.verbs.counting import END
from specstream.verbs.writing import entry, indented

if TYPE_CHECKING:
    from specstream.rules.text import Node, RuleText

__all__ = ["Future"]

_MOST_GUESSES = 4
_MOST_BITS = 60


class Future:
    """Of a rule, the events that wait."""

    def __init__(self, rule: RuleText) -> None:
        self.rule = rule
        self.leaves = [one for one in skeleton(rule.formula) if not has_future(one)]
        self.nodes = rule.nodes
        self.wholesale = [one for one in self.nodes if one.is_wholesale]
        self.nested = [one for one in self.nodes if one.is_nested]
        self.scanned = [one for one in self.nodes if not one.is_wholesale and not one.is_nested]
        self.steps = [one for one in self.wholesale if self.of(one).name == "next_event"]
        self.timed = [one for one in self.wholesale if self.of(one).within is not None]
        self.keyed = bool(rule.key)
        self.chain = "chain" if self.keyed else "state"
        # Whether all that wait are looked at, one after the other.
        self.is_linked = bool(self.wholesale or self.scanned or rule.options.anchored)
        self.waiting = rule.waiting
        self.is_closed = rule.options.at_end == "closed"
        rule.timers_by_key = bool(self.nested and rule.key)
        self.stages = Nested(rule)
        self.numbers: list[Queue] = []
        self.bounds = sorted(
            {
                one.within
                for node in self.scanned
                for one in walk(node.formula)
                if isinstance(one, Temporal) and one.is_future and one.within is not None
            }
        )

    @staticmethod
    def of(node: Node) -> Temporal:
        assert isinstance(node.formula, Temporal)
        return node.formula

    # ---- bits ----

    def settled(self, node: Node) -> int:
        return int(1 << (len(self.leaves) + node.number))

    def value(self, node: Node) -> int:
        return int(1 << (len(self.leaves) + len(self.nodes) + node.number))

    def of_bits(self, formula: Formula, node: Callable[[Node], str]) -> str:
        """A formula of bits."""
        for at, leaf in enumerate(self.leaves):
            if formula == leaf:
                return f"(known & {1 << at} != 0)"
        for one in self.nodes:
            if formula == one.formula:
                return node(one)
        match formula:
            case Constant(value=value):
                return str(value)
            case Not(part=part):
                return f"(not {self.of_bits(part, node)})"
            case And(parts=some) | Or(parts=some):
                word = " and " if isinstance(formula, And) else " or "
                return f"({word.join(self.of_bits(one, node) for one in some)})"
            case Iff(left=left, right=right):
                return f"({self.of_bits(left, node)} == {self.of_bits(right, node)})"
        raise AssertionError(formula)

    def three_of_bits(self, formula: Formula) -> str:
        """Likewise, 0, 1 or 2."""
        for leaf in self.leaves:
            if formula == leaf:
                return f"(2 if {self.of_bits(leaf, str)} else 0)"
        for one in self.nodes:
            if formula == one.formula:
                return (
                    f"((2 if known & {self.value(one)} != 0 else 0) "
                    f"if known & {self.settled(one)} != 0 else 1)"
                )
        match formula:
            case Constant(value=value):
                return "2" if value else "0"
            case Not(part=part):
                return f"(2 - {self.three_of_bits(part)})"
            case And(parts=some) | Or(parts=some):
                word = "min" if isinstance(formula, And) else "max"
                return f"{word}({', '.join(map(self.three_of_bits, some))})"
            case Iff(left=left, right=right):
                a, b = self.three_of_bits(left), self.three_of_bits(right)
                return f"(1 if {a} == 1 or {b} == 1 else 2 if {a} == {b} else 0)"
        raise AssertionError(formula)

    def verdict(self) -> str:
        """The text of a function that gives the verdict of what is known: 0, 1 or 2."""
        count = len(self.nodes)
        formula = self.rule.formula
        if count > _MOST_GUESSES:
            return f"def verdict(known):\n    return {plain(self.three_of_bits(formula))}"
        first, second = len(self.leaves), len(self.leaves) + count
        holds = plain(self.of_bits(formula, lambda one: f"(guess & {1 << one.number} != 0)"))
        return "\n".join(
            [
                "def verdict(known):",
                "    # What is settled is as it is; all else may come out either way.",
                "    can_hold = can_fail = False",
                f"    for guess in range({1 << count}):",
                f"        differs = (guess ^ known >> {second}) & {(1 << count) - 1}",
                f"        if differs & (known >> {first}) == 0:",
                f"            if {holds}:",
                "                can_hold = True",
                "            else:",
                "                can_fail = True",
                "    return 1 if can_hold and can_fail else 2 if can_hold else 0",
            ]
        )

    # ---- text ----

    def lines(self) -> list[str]:
        """Statements for the event: first about those that wait, then about itself."""
        rule = self.rule
        total = len(self.leaves) + 2 * len(self.nodes)
        if total > _MOST_BITS:
            raise DeclarationError(
                f"rule {rule.name!r} has {len(self.nodes)} operators that look ahead and "
                f"{len(self.leaves)} conditions beside them; expected less: make two rules of it"
            )
        rule.names["increment"] = increment
        rule.needs_time = True
        rule.fields["items"] = "ss.scalar(int)"
        rule.fields["waiting"] = f"ss.dict(int, Waiting, limit={rule.options.limit})"
        if self.is_linked:
            self.waiting.fields.update({"before": int, "after": int})
        self.waiting.fields["known"] = int
        self.waiting.keep("v0.timestamp", "time", int)
        ends = ["first", "last", *(f"head_{one.number}" for one in self.wholesale)]
        if self.steps:
            ends.append("count")
            self.waiting.fields["count"] = int
        if self.scanned:
            self.waiting.fields["position"] = int
        if not self.is_linked:
            pass
        elif self.keyed:
            chain = Record("Chain", rule.stored_columns, rule.names)
            chain.fields.update(dict.fromkeys(ends, int))
            rule.more_records.append(chain)
            self.chain_record = chain
            rule.fields["chains"] = rule.dict_of("Chain")
        else:
            rule.fields.update(dict.fromkeys(ends, "ss.scalar(int)"))
        for name in rule.key:
            Stored(self.waiting, "one").attribute("v0", name)
        rule.helpers.append(self.verdict())
        conditions = self.conditions()
        waits = self.those_that_wait() if self.is_linked else []
        own = self.first() if rule.options.anchored else self.own()
        if self.nested:
            own = ["number = 0", *own, *self.through_stages()]
        for node in self.timed:
            self.passed(node)
        if self.bounds:
            self.rescanned()
        is_timed = bool(self.timed or self.stages.timed)
        if self.is_closed or is_timed:
            self.ended()
        rule.helpers.append(self.forget())
        begun = []
        if self.is_closed or is_timed:
            begun = rule.end_awaited()
        return [*begun, *conditions, *waits, *own, *self.dropped()]

    def conditions(self) -> list[str]:
        found: list[str] = []
        for node in self.wholesale:
            formula = self.of(node)
            goal, held = lowered(formula.goal, 1), lowered(formula.held, 1)
            found.append(f"goal_{node.number} = {plain(self.rule.now_truth(goal))}")
            if held != TRUE:
                found.append(f"held_{node.number} = {plain(self.rule.now_truth(held))}")
        return found

    def mark(self, node: Node, value: str) -> list[str]:
        """Statements that settle a node for ``one``."""
        settled, both = self.settled(node), self.settled(node) | self.value(node)
        if value in ("True", "False"):
            return [f"one.known |= {both if value == 'True' else settled}"]
        return [f"one.known |= {both} if {value} else {settled}"]

    def those_that_wait(self) -> list[str]:
        c = self.chain
        body: list[str] = ["touched = [0 for _ in range(0)]"]
        if self.steps:
            body.append(f"{c}.count += 1")
        for node in self.wholesale:
            body += self.walked(node)
        if self.scanned:
            body += self.scanned_again("now")
        body += [
            "for number in sorted(touched):",
            "    if number in state.waiting:",
            *indented(indented(self.told("now"))),
        ]
        if not self.keyed:
            return body
        return [
            "chain = state.chains.get(key)",
            "if chain is not None:",
            *indented(body),
        ]

    def walked(self, node: Node) -> list[str]:
        c, number = self.chain, node.number
        formula = self.of(node)
        goal, held = f"goal_{number}", f"held_{number}"
        is_held = formula.held == TRUE
        old = f"now - one.time >= {formula.after}"
        if formula.name == "next_event":
            decide = [f"if {c}.count - one.count < {formula.n}:", "    break"]
            mark = self.mark(node, goal)
        else:
            decide = [f"if {goal}{f' and {old}' if formula.after else ''}:", "    value = True"]
            if not is_held:
                decide += [f"elif not {held}:", "    value = False"]
            decide += ["else:", "    break"]
            mark = self.mark(node, "value")
        return [
            f"number = {c}.head_{number}",
            "while number != 0:",
            "    one = state.waiting[number]",
            *indented(decide),
            f"    if one.known & {self.settled(node)} == 0:",
            *indented(indented([*mark, "touched.append(number)"])),
            "    number = one.after",
            f"{c}.head_{number} = number",
        ]

    def env(self, clock: str, ended: str = "") -> Env:
        place = Stored(self.waiting, "one")
        return Env({"v0": place}, {0: "one.position"}, {0: "one.time"}, clock, ended)

    def scanned_again(self, clock: str) -> list[str]:
        """Statements that ask again of each that waits."""
        body: list[str] = []
        for node in self.scanned:
            lines, code = self.rule.scan.expression(node.formula, self.env(clock))
            body += [
                f"if one.known & {self.settled(node)} == 0:",
                *indented(
                    [
                        *lines,
                        f"settled = {plain(code)}",
                        "if settled != 1:",
                        *indented([*self.mark(node, "settled == 2"), "touched.append(number)"]),
                    ]
                ),
            ]
        return [
            f"number = {self.chain}.first",
            "while number != 0:",
            "    one = state.waiting[number]",
            *indented(body),
            "    number = one.after",
        ]

    def because(self) -> str:
        """An expression for the text of the part that failed, of what is known."""
        # What is open has not failed.
        return self.rule.blame(
            self.rule.formula,
            lambda one: f"({self.three_of_bits(one)} != 0)",
            [*self.leaves, *(one.formula for one in self.nodes)],
        )

    def told(self, decided: str) -> list[str]:
        """Statements that tell the verdict of one that waits, where it is settled."""
        rule = self.rule
        place = Stored(self.waiting, "one")
        because = self.because()
        if rule.options.anchored:
            tell = self.store_status("outcome")
            if decided != "now" or rule.options.report == "changes":
                tell += self.status_row(place, decided, "outcome", because)
        else:
            no = rule.row(place, "False", decided, because)
            yes = rule.row(place, "True", decided, "None") if rule.tells_true else []
            tell = [
                *(["if outcome == 2:", *indented(yes)] if yes else []),
                "if outcome == 0:",
                *indented(no),
            ]
        return [
            "one = state.waiting[number]",
            "known = one.known",
            "outcome = verdict(known)",
            "if outcome != 1:",
            *indented(
                [*tell, f"forget({'state, key, number' if self.keyed else 'state, number'})"]
            ),
        ]

    # ---- of the first event of a trace alone ----

    def store_status(self, value: str) -> list[str]:
        return [f"state.status[key] = {value}" if self.keyed else f"state.status = {value}"]

    def status_row(self, place: Place, time: str, status: str, because: str) -> list[str]:
        """Statements that send how it stands."""
        key = [self.rule.column(place, one) for one in self.rule.key]
        return [
            f"if {status} == 1:",
            f"    emit({', '.join([*key, time, 'None', 'None'])})",
            f"elif {status} == 2:",
            f"    emit({', '.join([*key, time, 'True', 'None'])})",
            "else:",
            f"    emit({', '.join([*key, time, 'False', because])})",
        ]

    def first(self) -> list[str]:
        """Statements about the event, if it is the first of its trace."""
        rule = self.rule
        if self.keyed:
            rule.fields["status"] = rule.dict_of("int")
            load = "state.status.get(key, -1)"
        else:
            rule.fields["status"] = "ss.scalar(int, fill=-1)"
            load = "state.status"
        lines = [
            f"status = {load}",
            "if status == -1:",
            *indented(
                [
                    *self.own_known(),
                    "outcome = verdict(known)",
                    *self.store_status("outcome"),
                    *self.status_row(rule.event, "now", "outcome", self.because()),
                    "if outcome == 1:",
                    *indented(self.kept()),
                ]
            ),
        ]
        if rule.options.report == "all":
            lines += ["else:", *indented(self.status_row(rule.event, "now", "status", "None"))]
        return lines

    def own_known(self) -> list[str]:
        """Statements for what is known of the event itself."""
        rule = self.rule
        found = ["known = 0"]
        for at, leaf in enumerate(self.leaves):
            found += [f"if {plain(rule.now(leaf))}:", f"    known |= {1 << at}"]
        for node in self.nodes:
            settled, both = self.settled(node), self.settled(node) | self.value(node)
            if node.is_nested:
                continue
            if not node.is_wholesale:
                lines, code = rule.scan.expression(node.formula, rule.scan.env())
                found += [
                    *lines,
                    f"settled = {plain(code)}",
                    "if settled == 2:",
                    f"    known |= {both}",
                    "elif settled == 0:",
                    f"    known |= {settled}",
                ]
                continue
            formula = self.of(node)
            if formula.name == "next_event":
                continue
            word = "if"
            if not formula.after:
                found += [f"if goal_{node.number}:", f"    known |= {both}"]
                word = "elif"
            if formula.held != TRUE:
                found += [f"{word} not held_{node.number}:", f"    known |= {settled}"]
        return found

    def own(self) -> list[str]:
        rule = self.rule
        found = self.own_known()
        because = self.because()
        no = rule.row(rule.event, "False", "now", because)
        found += ["outcome = verdict(known)", "if outcome == 0:", *indented(no)]
        if rule.tells_true:
            yes = rule.row(rule.event, "True", "now", "None")
            found += ["elif outcome == 2:", *indented(yes)]
        return [*found, "elif outcome == 1:", *indented(self.kept())]

    def kept(self) -> list[str]:
        """Statements that keep the event."""
        rule, c = self.rule, self.chain
        lines = ['number = increment(state, "items")']
        if not self.is_linked:
            return [*lines, "state.waiting[number] = <Waiting>"]
        if self.keyed:
            lines += [
                "chain = state.chains.get(key)",
                "if chain is None:",
                "    state.chains[key] = Chain("
                + ", ".join(f"{one}=0" for one in self.chain_record.fields)
                + ")",
                "    chain = state.chains[key]",
            ]
        lines += [
            f"before = {c}.last",
            "state.waiting[number] = <Waiting>",
            "if before != 0:",
            "    state.waiting[before].after = number",
            "else:",
            f"    {c}.first = number",
            f"{c}.last = number",
        ]
        for node in self.wholesale:
            lines += [
                f"if {c}.head_{node.number} == 0:",
                f"    {c}.head_{node.number} = number",
            ]
        for node in self.timed:
            at = node.number
            rule.fields[f"oldest_{at}"] = "ss.scalar(int)"
            rule.fields[f"is_set_{at}"] = "ss.scalar(bool)"
            rule.timers[at + 1] = f"passed_{at}(state, timer.at, emit)"
            lines += [
                f"if not state.is_set_{at} and known & {self.settled(node)} == 0:",
                f"    state.is_set_{at} = True",
                f"    state.timers.set({self.timer(at + 1)}, now + {self.of(node).within + 1})",  # type: ignore[operator]
            ]
        return lines

    def fill(self, lines: list[str]) -> list[str]:
        """The statements, when all that is kept is known."""
        given = {"known": "known"}
        if self.is_linked:
            given |= {"before": "before", "after": "0"}
        if self.steps:
            given["count"] = f"{self.chain}.count"
        if self.scanned:
            given["position"] = "position"
        made = self.waiting.made({"v0": self.rule.event}, given)
        return [one.replace("<Waiting>", made) for one in lines]

    # ---- operators inside of operators ----

    def timer(self, number: int | str) -> str:
        """An expression for a timer that is of no key."""
        return self.rule.timer(str(number), of_key=False)

    def through_stages(self) -> list[str]:
        """Statements of the event, after which all is settled that its stages can tell."""
        rule, stages = self.rule, self.stages
        key = "key, " if self.keyed else ""
        for node in self.nested:
            # Of each event its number among those that wait; 0: it does not wait.
            numbers = stages.queue(f"waits_{node.number}", "int")
            stages.event_held.add(numbers)
            stages.settle_held.add(numbers)
            stages.pushes += numbers.push("number")

            def sink(
                value: str, known: str, _: str | None, node: Node = node, numbers: Queue = numbers
            ) -> list[str]:
                decided = [f"decided = {known}"] if self.is_closed else []
                time = f"None if decided == {END} else decided" if self.is_closed else known
                return [
                    *numbers.take("number"),
                    "if number != 0 and number in state.waiting:",
                    "    one = state.waiting[number]",
                    *indented([*self.mark(node, value), *decided, *self.told(time)[1:]]),
                ]

            stages.stage(self.of(node), sink)
            self.numbers.append(numbers)
        settle = stages.settle_lines()
        rule.helpers.append("\n".join([f"def settle(state, {key}at, emit):", *indented(settle)]))
        if stages.timed:
            rule.helpers.append(
                "\n".join(
                    [
                        f"def woken(state, {key}at, emit):",
                        *indented(stages.asleep()),
                        f"    settle(state, {key}at, emit)",
                    ]
                )
            )
            parts = [f"timer.key[{at + 1}]" for at in range(len(rule.key))]
            of = f"{entry(parts)}, " if self.keyed else ""
            rule.timers[int(stages.timer)] = f"woken(state, {of}timer.at, emit)"
        return [*stages.event_held.around(stages.pushes), f"settle(state, {key}now, emit)"]

    def stages_ended(self) -> list[str]:
        """Statements that let all time pass for the stages."""
        if not self.nested:
            return []
        forget = self.stages.unset_timer() if self.stages.timed else []
        if not self.keyed:
            return [*forget, f"settle(state, {END}, emit)"]
        lines: list[str] = []
        for numbers in self.numbers:
            lines += [
                f"for key in list(state.{numbers.name}_ends):",
                *indented([*forget, f"settle(state, key, {END}, emit)"]),
            ]
        return lines

    # ---- where time passes ----

    def key_of_one(self) -> list[str]:
        if not self.keyed:
            return []
        place = Stored(self.waiting, "one")
        key = entry([place.attribute("v0", name) for name in self.rule.key])
        return [f"key = {key}"]

    def passed(self, node: Node) -> None:
        """Writes the function that settles what waits for one operator, where time has passed."""
        at, formula = node.number, self.of(node)
        assert formula.within is not None
        mark = self.mark(node, str(formula.name == "unless"))
        chain = ["chain = state.chains[key]"] if self.keyed else []
        body = [
            "one = state.waiting[number]",
            f"if one.known & {self.settled(node)} == 0:",
            *indented(
                [
                    f"deadline = one.time + {formula.within}",
                    "if deadline >= at:",
                    "    break",
                    *mark,
                    *self.key_of_one(),
                    *chain,
                    f"{self.chain}.head_{at} = one.after",
                    *self.told("deadline"),
                ]
            ),
        ]
        lines = [
            f"def passed_{at}(state, at, emit):",
            *indented(
                [
                    f"number = state.oldest_{at}",
                    "while number <= state.items:",
                    "    if number in state.waiting:",
                    *indented(indented(body)),
                    "    number += 1",
                    f"state.oldest_{at} = number",
                    "if number <= state.items:",
                    f"    due = state.waiting[number].time + {formula.within + 1}",
                    f"    state.timers.set({self.timer(at + 1)}, due)",
                    "else:",
                    f"    state.is_set_{at} = False",
                ]
            ),
        ]
        self.rule.helpers.append("\n".join(lines))

    def rescanned(self) -> None:
        """Writes the function that asks again where time has passed a bound from a kept event."""
        rule = self.rule
        body = []
        if self.keyed:
            seen = Stored(rule.past.seen, "event")
            key = entry([seen.attribute("v0", name) for name in rule.key])
            body = ["event = state.seen[position]", f"key = {key}", "chain = state.chains.get(key)"]
            body += ["if chain is not None:"]
        inner = [
            "touched = [0 for _ in range(0)]",
            *self.scanned_again("at"),
            "for number in sorted(touched):",
            "    if number in state.waiting:",
            *indented(indented(self.told("at - 1"))),
        ]
        body += indented(inner) if self.keyed else inner
        lines = [
            "def passed_again(state, position, at, emit):",
            "    if position in state.seen:",
            *indented(indented(body)),
        ]
        rule.helpers.append("\n".join(lines))
        first, count = 1000, len(self.bounds)
        number = "timer.key[0]" if rule.timers_by_key else "timer.key"
        rule.timers[-1] = f"passed_again(state, ({number} - {first}) // {count}, timer.at, emit)"

    def dropped(self) -> list[str]:
        """Statements that set timers for kept events, and let go of those that nobody asks for."""
        lines: list[str] = []
        if self.scanned and not self.rule.options.anchored:
            first = f"{self.chain}.first"
            if self.keyed:
                lines.append("chain = state.chains.get(key)")
                first = "0 if chain is None else chain.first"
            lines += self.rule.scan.dropped(first)
        for at, bound in enumerate(self.bounds):
            timer = self.timer(f"1000 + position * {len(self.bounds)} + {at}")
            lines.append(f"state.timers.set({timer}, now + {bound + 1})")
        return lines

    def ended(self) -> None:
        """Writes the function for the end of the input, which lets all time pass."""
        rule = self.rule
        # Timers that are set while the input ends do not fire any more.
        lines = ["state.is_begun = False"]
        lines += [f"passed_{node.number}(state, {END}, emit)" for node in self.timed]
        lines += self.stages_ended()
        if self.is_closed:
            body: list[str] = ["one = state.waiting[number]"]
            for node in self.wholesale:
                weak = self.of(node).name == "unless"
                body += [
                    f"if one.known & {self.settled(node)} == 0:",
                    *indented(self.mark(node, str(weak))),
                ]
            for node in self.scanned:
                scanned, code = rule.scan.expression(node.formula, self.env(str(END), "True"))
                body += [
                    f"if one.known & {self.settled(node)} == 0:",
                    *indented(
                        [*scanned, f"settled = {plain(code)}", *self.mark(node, "settled == 2")]
                    ),
                ]
            body += [*self.key_of_one(), *self.told("None")]
            lines += ["for number in list(state.waiting):", *indented(body)]
        rule.helpers.append("\n".join(["def ended(state, emit):", *indented(lines)]))

    def forget(self) -> str:
        """The text of a function that lets an event go."""
        c = self.chain
        parameters = "state, key, number" if self.keyed else "state, number"
        if not self.is_linked:
            return f"def forget({parameters}):\n    del state.waiting[number]"
        body = [
            "one = state.waiting[number]",
            "before, after = one.before, one.after",
            *(["chain = state.chains[key]"] if self.keyed else []),
            "if before != 0:",
            "    state.waiting[before].after = after",
            "else:",
            f"    {c}.first = after",
            "if after != 0:",
            "    state.waiting[after].before = before",
            "else:",
            f"    {c}.last = before",
        ]
        for node in self.wholesale:
            body += [
                f"if {c}.head_{node.number} == number:",
                f"    {c}.head_{node.number} = after",
            ]
        body.append("del state.waiting[number]")
        if self.keyed:
            body += [f"if {c}.first == 0:", "    del state.chains[key]"]
        return "\n".join([f"def forget({parameters}):", *indented(body)])
