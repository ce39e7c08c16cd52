"""Conditions about two events: what is to be equal of both is looked up, the rest is tested.

``once(lambda before: before.user == e.user and before.what == "login")`` has a value for each user,
as if each were a trace of its own. Where more than equalities compares both events
(``before.by != e.by``), the events that will do are kept by what is to be equal, and gone through.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specstream.compiler.language.parsing import parse
from specstream.declarations.chosen_columns import kept_as
from specstream.rules.formula import (
    TRUE,
    And,
    Atom,
    Formula,
    Not,
    Or,
    Temporal,
    captured,
    conjunction,
    free,
    has_future,
    has_temporal,
    lowered,
    negation,
    renamed,
    variable,
)
from specstream.rules.writing import NEVER, Record, Stored, plain, truth
from specstream.structures import increment
from specstream.verbs.writing import indented

if TYPE_CHECKING:
    from specstream.rules.text import RuleText

__all__ = ["Sliced", "conjuncts", "divided", "key_parts", "opposite", "sliced", "unequal"]

_KINDS = ("int", "bool", "str")


@dataclass(frozen=True)
class Sliced:
    """An operator that looks back, by what both events are to share.

    Attributes:
        formula: itself.
        pairs: columns of the event that it looks at, and of the one from which it looks.
        goal: what else is to have been, of the first one alone.
        broken: what ends it, of an event that shares the same.
        rest: what else compares both.
        is_before: it is asked of the event before the one from which it looks.
    """

    formula: Temporal
    pairs: tuple[tuple[str, str], ...]
    goal: Formula
    broken: Formula
    rest: Formula
    is_before: bool = False

    @property
    def closed(self) -> tuple[Formula, ...]:
        """The formulas about the other event alone."""
        return (self.goal, self.broken)

    def lines(self, rule: RuleText, name: str) -> tuple[list[str], list[str]]:
        """Statements that keep what the event says, and those that give the operator's value a
        name."""
        inner = rule.key_and(*(rule.event.attribute("v1", one) for one, _ in self.pairs))
        outer = rule.key_and(*(rule.event.attribute("v0", one) for _, one in self.pairs))
        types = [_type_of(rule, one) for one, _ in self.pairs]
        goal = plain(rule.now_truth(lowered(self.goal, 1)))
        broken = plain(rule.now_truth(lowered(self.broken, 1)))
        if self.formula.within is not None or self.formula.after:
            rule.needs_time = True
        if self.rest != TRUE or self.formula.after:
            return self._kept(rule, name, inner, outer, types, goal)
        own_slice = f"{name}_slice"
        if self.formula.within is None:
            of = rule.key_type(*types) if rule.key else _types(types)
            rule.fields[name] = f"ss.set({of}, limit={rule.options.limit})"
            store = [f"state.{name}.add({own_slice})"]
            forget = [f"state.{name}.discard({own_slice})"]
            value = [f"{name} = {outer} in state.{name}"]
        else:
            latest = f"{name}_latest"
            rule.fields[latest] = _dict(rule, types, "int", self.formula.within)
            store = [f"state.{latest}[{own_slice}] = now"]
            forget = [f"state.{latest}.pop({own_slice}, 0)"]
            value = [
                f"{latest} = state.{latest}.get({outer}, {NEVER})",
                f"{name} = {latest} != {NEVER} and now - {latest} <= {self.formula.within}",
            ]
        if broken == "False":
            return [f"if {goal}:", f"    {own_slice} = {inner}", *indented(store)], value
        return [
            f"{own_slice} = {inner}",
            f"if {goal}:",
            *indented(store),
            f"elif {broken}:",
            *indented(forget),
        ], value

    def _kept(
        self,
        rule: RuleText,
        name: str,
        inner: str,
        outer: str,
        types: list[str],
        goal: str,
    ) -> tuple[list[str], list[str]]:
        """What will do is kept, and gone through from the latest one on."""
        within, after = self.formula.within, self.formula.after
        record = Record(f"Kept{len(rule.more_records) or ''}", rule.stored_columns, rule.names)
        rule.more_records.append(record)
        record.fields["before"] = int
        kept, latest, one, at = f"{name}_kept", f"{name}_latest", f"{name}_one", f"{name}_at"
        lasts = "" if within is None else f", expire_after={within + 1}"
        rule.fields[kept] = f"ss.dict(int, {record.name}, limit={rule.options.limit}{lasts})"
        rule.fields[latest] = _dict(rule, types, "int", within)
        rule.fields[f"{name}_count"] = "ss.scalar(int)"
        rule.names["increment"] = increment
        place = Stored(record, one)
        rest = truth(plain(rule.of_two(self.rest, {"v0": rule.event, "v1": place})))
        near = []
        if within is not None or after:
            record.keep("v0.timestamp", "time", int)
        if within is not None:
            near = [f"if now - {one}.time > {within}:", "    break"]
        test = f"now - {one}.time >= {after} and ({rest})" if after else rest
        made = record.made({"v0": rule.event}, {"before": f"state.{latest}.get({name}_slice, 0)"})
        return [
            f"if {goal}:",
            f"    {name}_slice = {inner}",
            f'    {name}_number = increment(state, "{name}_count")',
            f"    state.{kept}[{name}_number] = {made}",
            f"    state.{latest}[{name}_slice] = {name}_number",
        ], [
            f"{name} = False",
            f"{at} = state.{latest}.get({outer}, 0)",
            f"while {at} != 0:",
            *indented(
                [
                    f"{one} = state.{kept}.get({at})",
                    f"if {one} is None:  # as old as all before it",
                    "    break",
                    *near,
                    f"if {test}:",
                    f"    {name} = True",
                    "    break",
                    f"{at} = {one}.before",
                ]
            ),
        ]


def sliced(formula: Temporal, columns: Mapping[str, Any]) -> Sliced | None:
    """An operator by what both events are to share, where that is possible; None: all events that
    it looks at are gone through."""
    if formula.name == "previous_event" and formula.n == 1:
        return _sliced_before(formula, columns)
    if (
        formula.name != "since"
        or formula.at != 0
        or has_future(formula)
        or captured(formula) != {"v0"}
    ):
        return None
    pairs, rest = key_parts(formula.goal, formula.depth, columns)
    if not pairs:
        return None
    alone, both = divided(rest, formula.depth)
    if any(map(has_temporal, both)):
        return None
    broken: Formula = negation(TRUE)
    if formula.held != TRUE:
        if both or formula.after:
            return None
        ended, more = key_parts(opposite(formula.held), formula.depth, columns)
        alone_too, both_too = divided(more, formula.depth)
        if both_too or set(ended) != set(pairs):
            return None
        broken = conjunction(tuple(alone_too))
    return Sliced(
        formula,
        tuple(pairs),
        conjunction(tuple(alone)),
        broken,
        conjunction(tuple(both)),
    )


def _sliced_before(formula: Temporal, columns: Mapping[str, Any]) -> Sliced | None:
    """Likewise, of an operator as of the event before: what is kept has not heard of this one."""
    goal = formula.goal
    if (
        not isinstance(goal, Temporal)
        or goal.at != formula.depth
        or goal.within is not None
        or goal.after
        or formula.at != 0
        or captured(goal) != {"v0"}
        or any(map(has_temporal, goal.parts))
    ):
        return None
    found = sliced(_as_of_own(goal), columns)
    if found is None or found.rest != TRUE:
        return None
    return replace(found, formula=replace(found.formula, text=formula.text), is_before=True)


def _as_of_own(goal: Temporal) -> Temporal:
    """An operator of ``v1`` that compares ``v2`` with ``v0``, as one of ``v0`` and ``v1``."""
    moved = tuple(renamed(part, {variable(goal.depth): variable(1)}) for part in goal.parts)
    return replace(goal, at=0, depth=1, parts=moved)


def key_parts(
    formula: Formula, depth: int, columns: Mapping[str, Any]
) -> tuple[list[tuple[str, str]], list[Formula]]:
    """Of a conjunction, pairs of columns that are to be equal, of the event at a depth and of
    ``v0``; and the rest."""
    pairs: list[tuple[str, str]] = []
    rest: list[Formula] = []
    for part in conjuncts(formula):
        pair = _pair(part, depth, columns)
        if pair is not None and pair not in pairs:
            pairs.append(pair)
        elif pair is None and part != TRUE:
            rest.append(part)
    return pairs, rest


def unequal(
    formula: Formula, depth: int, columns: Mapping[str, Any], pairs: list[tuple[str, str]]
) -> list[Formula]:
    """Of a conjunction what is left where pairs of columns are equal."""
    found = [one for one in conjuncts(formula) if one != TRUE]
    return [one for one in found if _pair(one, depth, columns) not in pairs]


def conjuncts(formula: Formula) -> list[Formula]:
    """The parts of a conjunction; an ``and`` of plain Python is one as well."""
    if isinstance(formula, And):
        return [found for one in formula.parts for found in conjuncts(one)]
    if isinstance(formula, Atom):
        tree = parse(formula.code, "eval").body
        if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
            return [
                found
                for one in tree.values
                for found in conjuncts(Atom(ast.unparse(one), text=formula.text, line=formula.line))
            ]
    return [formula]


def _pair(formula: Formula, depth: int, columns: Mapping[str, Any]) -> tuple[str, str] | None:
    if not isinstance(formula, Atom):
        return None
    match parse(formula.code, "eval").body:
        case ast.Compare(
            left=ast.Attribute(value=ast.Name(id=left), attr=one),
            ops=[ast.Eq()],
            comparators=[ast.Attribute(value=ast.Name(id=right), attr=other)],
        ):
            own_name = variable(depth)
            if (left, right) == ("v0", own_name):
                one, other, left, right = other, one, right, left
            if (left, right) != (own_name, "v0") or one not in columns or other not in columns:
                return None
            a, b = columns[one], columns[other]
            if a.kind != b.kind or a.kind not in _KINDS or a.nullable or b.nullable:
                return None
            return one, other
    return None


def divided(parts: list[Formula], depth: int) -> tuple[list[Formula], list[Formula]]:
    """What is about the event at a depth alone, and what is about others too."""
    alone: list[Formula] = []
    both: list[Formula] = []
    for one in parts:
        (alone if free(one) <= {variable(depth)} else both).append(one)
    return alone, both


def opposite(formula: Formula) -> Formula:
    """The opposite, as a conjunction where it is one."""
    match formula:
        case Not(part=part):
            return part
        case Or(parts=some):
            return conjunction(tuple(opposite(one) for one in some))
        case Atom(code=code):
            tree = parse(code, "eval").body
            if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
                return Atom(ast.unparse(tree.operand), text=formula.text, line=formula.line)
            if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.Or):
                return conjunction(tuple(opposite(Atom(ast.unparse(o))) for o in tree.values))
            if isinstance(tree, ast.Compare) and [type(one) for one in tree.ops] == [ast.NotEq]:
                equal = ast.Compare(tree.left, [ast.Eq()], tree.comparators)
                return Atom(ast.unparse(equal), text=formula.text, line=formula.line)
    return negation(formula)


def _type_of(rule: RuleText, column: str) -> str:
    return kept_as(rule.columns[column]).__name__


def _types(types: list[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def _dict(rule: RuleText, types: list[str], value: str, within: int | None) -> str:
    return rule.dict_of(value, *types, expires=within)
