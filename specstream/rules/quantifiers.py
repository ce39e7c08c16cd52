"""All, or some, of what an event holds, where each of them waits for later events.

What an event holds is gone through when it comes. Those whose part is not settled then are kept, by
number, with what their conditions need of them; the first one that decides does.
"""

from __future__ import annotations

import ast
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from specstream.compiler.language.parsing import parse
from specstream.declarations.pure import pure_mark
from specstream.rules.core import is_rising, with_value
from specstream.rules.formula import (
    FALSE,
    TRUE,
    And,
    Formula,
    Or,
    Quantifier,
    Temporal,
    captured,
    conjunction,
    disjunction,
    has_future,
    has_temporal,
    leaves_of,
    negation,
    own,
)
from specstream.rules.tested import Tested, compares
from specstream.rules.writing import Place, Record, StoredVariable, Variable, placed, plain, truth
from specstream.structures import increment
from specstream.verbs.writing import indented

if TYPE_CHECKING:
    from specstream.rules.text import RuleText

__all__ = ["Instances", "has_instances"]


def _opened(formula: Quantifier) -> tuple[list[tuple[Quantifier, Formula]], Formula]:
    """Quantifiers of one kind inside of one another, each with what settles one of its values
    before the next one is looked at; and what is in them."""
    loops: list[tuple[Quantifier, Formula]] = []
    while True:
        part = formula.part
        some = part.parts if isinstance(part, Or if formula.is_all else And) else (part,)
        inner = [one for one in some if isinstance(one, Quantifier) and has_future(one)]
        rest = tuple(one for one in some if one not in inner)
        if len(inner) != 1 or inner[0].is_all != formula.is_all or any(map(has_future, rest)):
            return [*loops, (formula, FALSE)], part
        known = disjunction(rest) if formula.is_all else negation(conjunction(rest))
        loops.append((formula, known))
        (formula,) = inner


def has_instances(rule: RuleText, formula: Formula) -> bool:
    """Whether each of what an event holds waits for one operator, which compares it with what
    comes."""
    if not isinstance(formula, Quantifier):
        return False
    loops, body = _opened(formula)
    ahead = {one for one in leaves_of(body) if has_future(one)}
    if len(ahead) != 1:
        return False
    (node,) = ahead
    others = [one for one in leaves_of(body) if one != node]
    others += [one for _, known in loops for one in leaves_of(known)]
    return (
        compares(rule, node)
        and all(one == "v0" or one.startswith("each_") for one in captured(node))
        and all(not has_temporal(one) or rule.past.is_simple(own(one)) for one in others)
        and is_rising(body, node) is not None
    )


class Instances(Tested):
    """Of a rule with such a quantifier, the events that wait."""

    part: Quantifier

    def operator(self) -> Temporal:
        """The operator that looks ahead."""
        assert isinstance(self.part, Quantifier)
        opened, self.body = _opened(self.part)
        self.loops = [one for one, _ in opened]
        self.known = [one for _, one in opened]
        (node,) = {one for one in leaves_of(self.body) if has_future(one)}
        assert isinstance(node, Temporal)
        return node

    def __init__(self, rule: RuleText) -> None:
        self.instance = Record("Instance", rule.stored_columns, rule.names)
        super().__init__(rule)
        self.pairs, self.filter = [], TRUE
        node = self.node
        rising = is_rising(self.body, node)
        assert rising is not None
        # The value of the operator with which an instance holds.
        self.good_of_instance = rising
        # What one instance says for all.
        self.decisive = not self.part.is_all
        self.is_weak = (node.name == "unless") == rising
        self.tells_late = rule.tells_true or self.is_weak != self.good
        self.goal_of_slice = node.goal
        self.broken = FALSE if node.held == TRUE else negation(node.held)
        self.types = {one.variable: _types(one.domain, rule) for one in self.loops}
        rule.more_records.append(self.instance)
        rule.fields["instances"] = f"ss.dict(int, Instance, limit={rule.options.limit})"
        rule.fields["made"] = "ss.scalar(int)"
        rule.waiting.fields.update({"instances": int, "open": int, "left": int})

    def conditions(self) -> tuple[str, str | None]:
        """They are asked of each instance."""
        return "", None

    # ---- conditions ----

    @property
    def variables(self) -> dict[str, Place]:
        """Those of the quantifiers, while their loops run."""
        return {one.variable: Variable(one.variable) for one in self.loops}

    def of_instance(self, formula: Formula) -> str:
        """A condition about an instance that is kept, and the event that comes."""
        kept = {
            one.variable: StoredVariable(self.instance, "each", self.types[one.variable])
            for one in self.loops
        }
        places: dict[str, Place] = {"v0": self.one, f"v{self.node.depth}": self.rule.event, **kept}
        return truth(plain(self.rule.of_two(formula, places)))

    def of_variables(self, formula: Formula) -> str:
        """Likewise, about one whose loop runs."""
        event = self.rule.event
        places: dict[str, Place] = {"v0": event, f"v{self.node.depth}": event, **self.variables}
        return truth(plain(self.rule.of_two(formula, places)))

    # ---- text ----

    def looped(self, inner: list[str], ends: str) -> list[str]:
        """Statements for each of what the event holds, until something is so."""
        lines = inner
        for loop, known in reversed(list(zip(self.loops, self.known, strict=True))):
            if known != FALSE:
                lines = [f"if {self.of_variables(known)}:", "    continue", *lines]
            domain = placed(loop.domain, {"v0": self.rule.event, **self.variables}, self.rule.names)
            ended = [f"if {ends}:", "    break"] if ends else []
            lines = [f"for {loop.variable} in {domain}:", *indented([*lines, *ended])]
        return lines

    def value_of_one(self, then: dict[int, list[str]]) -> list[str]:
        """Statements for the value of an instance whose loop runs: false, open or true."""
        body, node = self.body, self.node
        sure = with_value(body, node, not self.good_of_instance)
        possible = with_value(body, node, self.good_of_instance)
        yes, no = (2, 0) if self.good_of_instance else (0, 2)
        tests: list[tuple[str, int]] = []
        if sure != FALSE:
            tests.append((self.of_variables(sure), 2))
        if possible != TRUE:
            tests.append((self.of_variables(negation(possible)), 0))
        if node.name != "next_event":
            if not self.after:
                tests.append((self.of_variables(node.goal), yes))
            if node.held != TRUE:
                tests.append((self.of_variables(negation(node.held)), no))
        lines: list[str] = []
        for at, (test, value) in enumerate(tests):
            lines += [f"{'elif' if at else 'if'} {test}:", *indented(then[value] or ["pass"])]
        if not tests:
            return then[1]
        return [*lines, "else:", *indented(then[1] or ["pass"])]

    def settled_at_once(self, yes: list[str], no: list[str], keep: list[str]) -> list[str]:
        """Statements about the event itself, where it depends on what it holds."""
        if not self.good:
            yes, no = no, yes
        decisive = 2 if self.decisive else 0
        other = 2 - decisive
        then = {decisive: ["is_decided = True"], other: [], 1: ["open += 1"]}
        found = [
            "open = 0",
            "is_decided = False",
            *self.looped(self.value_of_one(then), "is_decided"),
        ]
        first, second = (yes, no) if self.decisive else (no, yes)
        return [
            *found,
            "if is_decided:",
            *indented(first or ["pass"]),
            "elif open == 0:",
            *indented(second or ["pass"]),
            "else:",
            *indented(keep),
        ]

    def with_instances(self, keep: list[str]) -> list[str]:
        """Statements that keep the event, and what waits of it."""
        made = [
            'made = increment(state, "made")',
            "if instances == 0:",
            "    instances = made",
            "state.instances[made] = <Instance>",
        ]
        self.rule.names["increment"] = increment
        then = {0: [], 2: [], 1: made}
        return ["instances = 0", *self.looped(self.value_of_one(then), ""), *keep]

    def _kept(self) -> list[str]:
        return self.with_instances(super()._kept())

    def own(self, keep: list[str]) -> list[str]:
        """Statements about the event itself."""
        if self.node.name == "next_event":
            keep = self.with_instances(keep)
        return super().own(keep)

    def fill(self, lines: list[str]) -> list[str]:
        """The statements, when all that is kept is known."""
        given = {"instances": "instances", "open": "open", "left": "open"}
        if self.node.name != "next_event":
            given |= {"before": "last", "after": "0"}
        waiting = self.rule.waiting.made({"v0": self.rule.event}, given)
        instance = self.instance.made({"v0": self.rule.event, **self.variables}, {})
        return [one.replace("<Waiting>", waiting).replace("<Instance>", instance) for one in lines]

    def of_one(self, body: list[str]) -> list[str]:
        """Statements for each instance of one that waits."""
        return ["for index in range(one.instances, one.instances + one.open):", *indented(body)]

    def asked_of_one(self) -> list[str]:
        """Statements for ``goal``, the value of all instances together: of ``next_event`` all are
        settled at once."""
        goal = self.of_instance(self.node.goal)
        holds = goal if self.good_of_instance else f"not ({goal})"
        test = f"not ({holds})" if self.part.is_all else holds
        return [
            f"goal = {self.part.is_all}",
            *self.of_one(
                [
                    "each = state.instances[index]",
                    f"if {plain(test)}:",
                    f"    goal = {not self.part.is_all}",
                    "    break",
                ]
            ),
        ]

    def settle_one(self) -> list[str]:
        """Statements that go on to the next one, but where ``one`` is settled: that is told."""
        goal = self.of_instance(self.goal_of_slice)
        if self.after:
            goal = f"now - one.time >= {self.after} and ({goal})"
        tests = [(goal, self.good_of_instance)]
        if self.broken != FALSE:
            tests.append((self.of_instance(self.broken), not self.good_of_instance))
        body = ["if index not in state.instances:", "    continue", "each = state.instances[index]"]
        for at, (test, holds) in enumerate(tests):
            decides = holds == self.decisive
            then = (
                ["is_decided = True", "break"]
                if decides
                else ["del state.instances[index]", "left -= 1"]
            )
            body += [f"{'elif' if at else 'if'} {test}:", *indented(then)]
        decided, other = self.told(self.decisive, "now"), self.told(not self.decisive, "now")
        lines = ["left = one.left", "is_decided = False"]
        ask = self.of_one(body)
        if self.is_lazy:
            # Nothing is told of what time has settled.
            lines += [f"is_over = now - one.time > {self.within}", "if is_over:", "    left = 0"]
            lines += ["else:", *indented(ask)]
            other = other and ["if not is_over:", *indented(other)]
        else:
            lines += ask
        return [
            *lines,
            "if not is_decided and left > 0:",
            "    one.left = left",
            "    number = one.after",
            "    continue",
            "if is_decided:",
            *indented(decided or ["pass"]),
            *(["else:", *indented(other)] if other else []),
        ]

    def let_go(self) -> list[str]:
        """Statements before one that waits goes: its instances do."""
        return self.of_one(["if index in state.instances:", "    del state.instances[index]"])

    def cleared(self) -> list[str]:
        """Statements when all that wait go."""
        return ["state.instances.clear()"]


def _types(domain: str, rule: RuleText) -> Mapping[str, type]:
    """The types of what a domain gives: by field, or as a whole as ""."""
    tree = parse(domain, "eval").body
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        if tree.func.id == "range":
            return {"": int}
        mark = pure_mark(rule.names.get(tree.func.id))
        if mark is not None:
            return _of_annotation(mark.returns)
    if isinstance(tree, ast.Tuple | ast.List):
        if not tree.elts:
            return {"": int}
        values = [one.value for one in tree.elts if isinstance(one, ast.Constant)]
        if len(values) == len(tree.elts) and len(set(map(type, values))) == 1:
            return {"": type(values[0])}
    return {}


def _of_annotation(returns: Any) -> Mapping[str, type]:
    if typing.get_origin(returns) is not list:
        return {}
    (element,) = typing.get_args(returns)
    if element in (int, float, bool, str):
        return {"": element}
    fields = getattr(element, "_fields", None)
    if fields is None:
        return {}
    return {
        name: of
        for name, of in typing.get_type_hints(element).items()
        if of in (int, float, bool, str)
    }
