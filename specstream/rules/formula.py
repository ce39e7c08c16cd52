"""What a rule says, as a tree: conditions, connectives, and operators about other events.

Events are named by how deep their function stands in others: ``v0`` is the event that the rule is
about, ``v1`` that of a function that an operator around it is given, and so on. A formula about
``v1`` that names ``v0`` has *captured* it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from specstream.compiler.language.parsing import parse

__all__ = [
    *("And", "Atom", "Constant", "FALSE", "Formula", "Iff", "Not", "Or", "Quantifier"),
    *(
        "TRUE",
        "Temporal",
        "captured",
        "conjunction",
        "disjunction",
        "free",
        "has_future",
        "has_temporal",
    ),
    *("leaves_of", "lowered", "negation", "own", "parts", "renamed", "variable", "walk"),
]

PAST = ("previous_event", "once", "historically", "since")
FUTURE = ("next_event", "eventually", "always", "until", "unless")


@dataclass(frozen=True)
class Formula:
    """A part of a rule.

    Attributes:
        text: as it is written.
        line: where.
    """

    text: str = field(compare=False, kw_only=True, default="")
    line: int = field(compare=False, kw_only=True, default=0)


@dataclass(frozen=True)
class Constant(Formula):
    """True or False."""

    value: bool


@dataclass(frozen=True)
class Atom(Formula):
    """A condition of plain Python.

    Attributes:
        code: an expression over ``v0``, ``v1`` and so on, and names of the rule.
    """

    code: str


@dataclass(frozen=True)
class Not(Formula):
    """The opposite."""

    part: Formula


@dataclass(frozen=True)
class And(Formula):
    """All of them, from left to right."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Or(Formula):
    """Some of them, from left to right."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Iff(Formula):
    """Both alike."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class Temporal(Formula):
    """What other events say.

    Attributes:
        name: of the operator, like "once".
        at: the depth of the event from which it looks.
        depth: of the event that its parts are about.
        parts: one formula, or two.
        n: how many events away, of ``previous_event`` and ``next_event``.
        within: the longest way in time; None: there is no end.
        after: the shortest.
    """

    name: str
    at: int
    depth: int
    parts: tuple[Formula, ...]
    n: int = 1
    within: int | None = None
    after: int = 0

    @property
    def is_future(self) -> bool:
        """Whether it looks ahead."""
        return self.name in FUTURE

    @property
    def held(self) -> Formula:
        """What is to hold all the way."""
        return self.parts[0] if len(self.parts) == 2 else TRUE

    @property
    def goal(self) -> Formula:
        """What is to come, or to have been."""
        return self.parts[-1]


@dataclass(frozen=True)
class Quantifier(Formula):
    """All, or some, of what an event holds.

    Attributes:
        is_all: which of both.
        variable: a name for each one.
        domain: an expression that gives them.
        part: what is to hold.
    """

    is_all: bool
    variable: str
    domain: str
    part: Formula


TRUE = Constant(True)
FALSE = Constant(False)


def negation(part: Formula, **written: object) -> Formula:
    """The opposite of a formula, as simple as may be."""
    if isinstance(part, Constant):
        return FALSE if part.value else TRUE
    if isinstance(part, Not):
        return part.part
    return Not(part, **written)  # type: ignore[arg-type]


def conjunction(given: tuple[Formula, ...], **written: object) -> Formula:
    """All of them."""
    found: list[Formula] = []
    for one in given:
        if one == FALSE:
            return FALSE
        if one != TRUE:
            found += one.parts if isinstance(one, And) else [one]
    if not found:
        return TRUE
    return found[0] if len(found) == 1 else And(tuple(found), **written)  # type: ignore[arg-type]


def disjunction(given: tuple[Formula, ...], **written: object) -> Formula:
    """Some of them."""
    found: list[Formula] = []
    for one in given:
        if one == TRUE:
            return TRUE
        if one != FALSE:
            found += one.parts if isinstance(one, Or) else [one]
    if not found:
        return FALSE
    return found[0] if len(found) == 1 else Or(tuple(found), **written)  # type: ignore[arg-type]


def parts(formula: Formula) -> tuple[Formula, ...]:
    """The formulas that one is made of."""
    match formula:
        case Not(part=part) | Quantifier(part=part):
            return (part,)
        case And(parts=some) | Or(parts=some) | Temporal(parts=some):
            return some
        case Iff(left=left, right=right):
            return left, right
    return ()


def rebuilt(formula: Formula, given: tuple[Formula, ...]) -> Formula:
    """A formula with other parts."""
    match formula:
        case Not():
            return negation(given[0], text=formula.text, line=formula.line)
        case And():
            return conjunction(given, text=formula.text, line=formula.line)
        case Or():
            return disjunction(given, text=formula.text, line=formula.line)
        case Iff():
            return replace(formula, left=given[0], right=given[1])
        case Quantifier():
            return replace(formula, part=given[0])
        case Temporal():
            return replace(formula, parts=given)
    return formula


def walk(formula: Formula) -> Iterator[Formula]:
    """A formula and all that is in it."""
    yield formula
    for one in parts(formula):
        yield from walk(one)


def variable(depth: int) -> str:
    """The name of an event."""
    return f"v{depth}"


_EVENT = re.compile(r"\bv(\d+)\b")


@functools.cache
def _names(code: str) -> frozenset[str]:
    return frozenset(
        node.id for node in ast.walk(parse(code, "eval")) if isinstance(node, ast.Name)
    )


@functools.cache
def free(formula: Formula) -> frozenset[str]:
    """The events and the variables of quantifiers that a formula takes from around it."""
    match formula:
        case Atom(code=code):
            return frozenset(one for one in _names(code) if _is_variable(one))
        case Temporal():
            inside = frozenset[str]().union(*map(free, formula.parts))
            return (inside - {variable(formula.depth)}) | {variable(formula.at)}
        case Quantifier():
            own = frozenset(one for one in _names(formula.domain) if _is_variable(one))
            return own | (free(formula.part) - {formula.variable})
    return frozenset[str]().union(*map(free, parts(formula)))


def _is_variable(name: str) -> bool:
    return bool(re.fullmatch(r"v\d+|each_\w+", name))


def lowered(formula: Formula, by: int) -> Formula:
    """A formula about an event that stands less deep."""
    if by == 0:
        return formula

    def moved(code: str) -> str:
        return _EVENT.sub(lambda found: f"v{int(found[1]) - by}", code)

    match formula:
        case Atom():
            return replace(formula, code=moved(formula.code))
        case Quantifier():
            formula = replace(formula, domain=moved(formula.domain))
        case Temporal():
            formula = replace(formula, at=formula.at - by, depth=formula.depth - by)
    given = parts(formula)
    return rebuilt(formula, tuple(lowered(one, by) for one in given)) if given else formula


def renamed(formula: Formula, names: dict[str, str]) -> Formula:
    """A formula without operators, about other events."""
    if isinstance(formula, Atom):
        return replace(
            formula, code=_EVENT.sub(lambda one: names.get(one[0], one[0]), formula.code)
        )
    given = parts(formula)
    return rebuilt(formula, tuple(renamed(one, names) for one in given)) if given else formula


@functools.cache
def captured(formula: Formula) -> frozenset[str]:
    """What the functions of an operator take from around them."""
    assert isinstance(formula, Temporal)
    inside = frozenset[str]().union(*map(free, formula.parts))
    return inside - {variable(formula.depth)}


@functools.cache
def own(formula: Formula) -> Formula:
    """An operator as one about ``v0``, where it takes nothing from around the event from which it
    looks; else itself."""
    if not isinstance(formula, Temporal) or captured(formula):
        return formula
    return lowered(formula, formula.at)


@functools.cache
def has_temporal(formula: Formula) -> bool:
    """Whether other events matter."""
    return any(isinstance(one, Temporal) for one in walk(formula))


@functools.cache
def has_future(formula: Formula) -> bool:
    """Whether later events matter."""
    return any(isinstance(one, Temporal) and one.is_future for one in walk(formula))


def leaves_of(formula: Formula) -> Iterator[Formula]:
    """The parts of a formula that are no connectives."""
    if isinstance(formula, And | Or | Not | Iff):
        for one in parts(formula):
            yield from leaves_of(one)
    else:
        yield formula
