"""What earlier events say: one value of the state for each operator, where one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specstream.rules.captured import Sliced, sliced
from specstream.rules.formula import (
    TRUE,
    Formula,
    Quantifier,
    Temporal,
    captured,
    has_future,
    lowered,
    parts,
    walk,
)
from specstream.rules.writing import NEVER, Record, plain, truth
from specstream.verbs.writing import indented

if TYPE_CHECKING:
    from specstream.rules.text import RuleText

__all__ = ["Past"]

_MOST_BITS = 62


class Past:
    """The operators of a rule that look back from the event that comes."""

    def __init__(self, rule: RuleText) -> None:
        self.rule = rule
        self.nodes: dict[Formula, str] = {}
        self.order: list[Formula] = []
        self.slices: dict[Formula, Sliced] = {}
        self.seen = Record("Seen", rule.stored_columns, rule.names)

    def name_of(self, formula: Formula) -> str:
        """The local name of an operator's value."""
        return self.nodes[formula]

    def collect(self, formula: Formula) -> None:
        """Takes in the operators of a formula that are known with its event."""
        if isinstance(formula, Temporal | Quantifier):
            if has_future(formula) or formula in self.nodes:
                return
            if self.is_simple(formula):
                assert isinstance(formula, Temporal)
                for part in formula.parts:
                    self.collect(lowered(part, 1))
            elif (
                isinstance(formula, Temporal)
                and (found := sliced(formula, self.rule.columns)) is not None
            ):
                self.slices[formula] = found
                for part in found.closed:
                    self.collect(lowered(part, 1))
            else:
                self.rule.scan.needs(formula)
            word = "all" if isinstance(formula, Quantifier) else _word(formula)
            taken = set(self.nodes.values())
            count = 1
            while f"{word}_{count}" in taken:
                count += 1
            self.nodes[formula] = f"{word}_{count}"
            self.order.append(formula)
            return
        for one in parts(formula):
            self.collect(one)

    def is_simple(self, formula: Formula) -> bool:
        """Whether a formula has a value of the state."""
        return (
            isinstance(formula, Temporal)
            and formula.at == 0
            and not captured(formula)
            and not has_future(formula)
            and all(self.is_closed(lowered(part, 1)) for part in formula.parts)
        )

    def is_closed(self, formula: Formula) -> bool:
        """Whether all operators of a formula have such values."""
        if isinstance(formula, Quantifier):
            return False
        if isinstance(formula, Temporal):
            if self.is_simple(formula):
                return True
            return (
                formula.at == 0
                and not has_future(formula)
                and sliced(formula, self.rule.columns) is not None
            )
        return all(map(self.is_closed, parts(formula)))

    def lines(self) -> list[str]:
        """Statements that give each value, and keep what the next event needs; but for those of
        :meth:`late_lines`."""
        found: list[str] = []
        late: list[str] = []
        self.late: list[str] = []
        used = {
            one
            for formula in self.order
            if isinstance(formula, Temporal)
            for part in self._own_parts(formula)
            for one in walk(lowered(part, 1))
        }
        is_settled_now = not self.rule.nodes and not self.rule.options.anchored
        for formula in self.order:
            name = self.nodes[formula]
            if formula in self.slices:
                updates, value = self.slices[formula].lines(self.rule, name)
                if self.slices[formula].is_before:
                    found += [*value, *updates]
                    continue
                found += updates
                if is_settled_now and formula not in used:
                    late += value
                else:
                    found += value
            elif self.is_simple(formula):
                assert isinstance(formula, Temporal)
                found += self._simple(formula, name)
            else:
                late += self.rule.scan.value(formula, name)
        found += self.rule.scan.appended()
        if is_settled_now:
            self.late = late
            return found
        return [*found, *late]

    def _own_parts(self, formula: Temporal) -> tuple[Formula, ...]:
        """The formulas of an operator that are asked of each event when it comes."""
        if formula in self.slices:
            return self.slices[formula].closed
        return formula.parts if self.is_simple(formula) else ()

    def late_lines(self) -> list[str]:
        """Statements for the values that the rule itself needs, and that change nothing."""
        return self.late

    # ---- one value ----

    def _simple(self, formula: Temporal, name: str) -> list[str]:
        goal = self.rule.now(lowered(formula.goal, 1))
        if formula.name == "previous_event":
            return self._previous(formula, name, goal)
        held = lowered(formula.held, 1)
        holds = None if held == TRUE else self.rule.now_truth(held)
        if formula.within is None and not formula.after:
            return self._ever(name, plain(truth(plain(goal))), holds)
        self.rule.needs_time = True
        if not formula.after:
            return self._latest(formula, name, plain(goal), holds)
        return self._queued(formula, name, plain(goal), holds)

    def _previous(self, formula: Temporal, name: str, goal: str) -> list[str]:
        rule, n = self.rule, formula.n
        goal = truth(plain(goal))
        if n > _MOST_BITS:
            return self._ring(n, name, goal)
        if not rule.key and n == 1:
            rule.fields[name] = "ss.scalar(bool)"
            return [
                f"{name} = state.{name}",
                f"{name}_next = {goal}",
                f"if {name}_next != {name}:",
                f"    state.{name} = {name}_next",
            ]
        bits = f"{name}_bits"
        mask = (1 << n) - 1
        lines = [
            f"{name} = {bits} >> {n - 1} & 1 == 1" if n > 1 else f"{name} = {bits} == 1",
            f"{bits}_next = ({bits} << 1 | (1 if {goal} else 0)) & {mask}"
            if n > 1
            else f"{bits}_next = 1 if {goal} else 0",
            f"if {bits}_next != {bits}:",
        ]
        if not rule.key:
            rule.fields[bits] = "ss.scalar(int)"
            return [f"{bits} = state.{bits}", *lines, f"    state.{bits} = {bits}_next"]
        rule.fields[bits] = rule.dict_of("int")
        return [
            f"{bits} = state.{bits}.get(key, 0)",
            *lines,
            f"    if {bits}_next == 0:",
            f"        del state.{bits}[key]",
            "    else:",
            f"        state.{bits}[key] = {bits}_next",
        ]

    def _ring(self, n: int, name: str, goal: str) -> list[str]:
        rule = self.rule
        count, ring = f"{name}_count", f"{name}_held"
        place = rule.key_and(f"{name}_place")
        if rule.key:
            rule.fields[count] = rule.dict_of("int")
            counted = [f"{name}_number = state.{count}.get(key, 0)"]
            kept = [f"state.{count}[key] = {name}_number + 1"]
        else:
            rule.fields[count] = "ss.scalar(int)"
            counted = [f"{name}_number = state.{count}"]
            kept = [f"state.{count} = {name}_number + 1"]
        of = rule.key_type("int") if rule.key else "int"
        rule.fields[ring] = f"ss.set({of}, limit={rule.options.limit})"
        return [
            *counted,
            *kept,
            f"{name}_place = {name}_number % {n}",
            f"{name} = {place} in state.{ring}",
            f"if {goal}:",
            f"    state.{ring}.add({place})",
            "else:",
            f"    state.{ring}.discard({place})",
        ]

    def _ever(self, name: str, goal: str, holds: str | None) -> list[str]:
        rule = self.rule
        was = f"{name}_before"
        kept = was if holds is None else f"({was} and {holds})"
        if not rule.key:
            rule.fields[name] = "ss.scalar(bool)"
            return [
                f"{was} = state.{name}",
                f"{name} = {plain(f'({goal}) or {kept}')}",
                f"if {name} != {was}:",
                f"    state.{name} = {name}",
            ]
        rule.fields[name] = f"ss.set({rule.key_type()}, limit={rule.options.limit})"
        lines = [
            f"{was} = key in state.{name}",
            f"{name} = {plain(f'({goal}) or {kept}')}",
            f"if {name} and not {was}:",
            f"    state.{name}.add(key)",
        ]
        if holds is not None:
            lines += [f"if {was} and not {name}:", f"    state.{name}.discard(key)"]
        return lines

    def _latest(self, formula: Temporal, name: str, goal: str, holds: str | None) -> list[str]:
        """Of the events that will do, the latest one will do the longest."""
        rule, latest = self.rule, f"{name}_latest"
        if rule.key:
            rule.fields[latest] = rule.dict_of("int", expires=formula.within)
            load, store = f"state.{latest}.get(key, {NEVER})", f"state.{latest}[key] = now"
            forget = [f"state.{latest}.pop(key, 0)"]
        else:
            rule.fields[latest] = f"ss.scalar(int, fill={NEVER})"
            load, store = f"state.{latest}", f"state.{latest} = now"
            forget = [f"state.{latest} = {NEVER}"]
        lines = [f"if {goal}:", f"    {store}", f"    {name} = True"]
        if holds is not None:
            lines += [f"elif not {holds}:"]
            lines += indented([f"if {load} != {NEVER}:", *indented(forget), f"{name} = False"])
        lines += [
            "else:",
            f"    {latest} = {load}",
            f"    {name} = {latest} != {NEVER} and now - {latest} <= {formula.within}",
        ]
        return lines

    def _queued(self, formula: Temporal, name: str, goal: str, holds: str | None) -> list[str]:
        """Times wait until they are old enough; of those the latest one will do the longest."""
        rule, within, after = self.rule, formula.within, formula.after
        lines: list[str] = []
        if not rule.key:
            queue, latest = f"state.{name}_queue", f"state.{name}_latest"
            rule.fields[f"{name}_queue"] = f"ss.deque(int, limit={rule.options.limit})"
            rule.fields[f"{name}_latest"] = f"ss.scalar(int, fill={NEVER})"
            if holds is not None:
                lines += [
                    f"if not {holds}:",
                    f"    {queue}.clear()",
                    f"    {latest} = {NEVER}",
                ]
            lines += [
                f"if {goal}:",
                f"    {queue}.append(now)",
                f"while len({queue}) > 0 and now - {queue}[0] >= {after}:",
                f"    {latest} = {queue}.popleft()",
                f"{name}_at = {latest}",
            ]
        else:
            queue, ends = f"state.{name}_queue", f"state.{name}_ends"
            rule.fields[f"{name}_queue"] = rule.dict_of("int", "int", expires=within)
            rule.fields[f"{name}_ends"] = rule.dict_of("(int, int, int)", expires=within)
            first, last, at = f"{name}_first", f"{name}_last", f"{name}_at"
            item = rule.key_and(first)
            lines += [f"{first}, {last}, {at} = {ends}.get(key, (0, 0, {NEVER}))"]
            if holds is not None:
                lines += [
                    f"if not {holds}:",
                    f"    while {first} < {last}:",
                    f"        {queue}.pop({item}, 0)",
                    f"        {first} += 1",
                    f"    {at} = {NEVER}",
                ]
            lines += [
                f"if {goal}:",
                f"    {queue}[{rule.key_and(last)}] = now",
                f"    {last} += 1",
                f"while {first} < {last} and now - {queue}.get({item}, {NEVER // 2}) >= {after}:",
                f"    {at} = {queue}.pop({item}, {NEVER})",
                f"    {first} += 1",
                f"if {first} == {last} and {at} == {NEVER}:",
                f"    {ends}.pop(key, (0, 0, 0))",
                "else:",
                f"    {ends}[key] = ({first}, {last}, {at})",
            ]
        test = f"{name} = {name}_at != {NEVER}"
        if within is not None:
            test += f" and now - {name}_at <= {within}"
        return [*lines, test]


def _word(formula: Formula) -> str:
    assert isinstance(formula, Temporal)
    if formula.name == "previous_event":
        return "previous"
    return "once" if formula.held == TRUE else "since"
