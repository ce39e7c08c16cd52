"""Formulas with fewer operators: what is left of them is monitored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from specstream.rules.formula import (
    TRUE,
    And,
    Constant,
    Formula,
    Iff,
    Not,
    Or,
    Temporal,
    conjunction,
    disjunction,
    has_future,
    negation,
    parts,
    rebuilt,
)

__all__ = ["blamed", "core", "has_part", "is_rising", "skeleton", "with_value"]


def core(formula: Formula) -> Formula:
    """The same with ``since``, ``until``, ``unless`` and single steps alone.

    ``once(f)`` is ``since`` with nothing that is to hold; ``historically(f)`` says that not once
    ``f`` failed.
    """
    given = tuple(core(one) for one in parts(formula))
    if isinstance(formula, Temporal):
        if formula.name in ("once", "eventually"):
            name = "since" if formula.name == "once" else "until"
            return replace(formula, name=name, parts=(TRUE, given[0]))
        if formula.name in ("historically", "always"):
            name = "since" if formula.name == "historically" else "until"
            made = replace(formula, name=name, parts=(TRUE, negation(given[0])))
            return Not(made, text=formula.text, line=formula.line)
        return replace(formula, parts=given)
    if isinstance(formula, Not) and isinstance(given[0], Not) and formula.text:
        # What is written is not what is left: not always(f) is until(..) here.
        return replace(given[0].part, text=formula.text, line=formula.line)
    return rebuilt(formula, given) if given else formula


def skeleton(formula: Formula) -> list[Formula]:
    """The parts of a formula that are known with its event, as large as may be, and those that are
    not, each once."""
    found: dict[Formula, None] = {}

    def look(one: Formula) -> None:
        if isinstance(one, And | Or):
            # Parts that are known stay together.
            now = tuple(part for part in one.parts if not has_future(part))
            if now and len(now) < len(one.parts):
                for part in now:
                    found.setdefault(part)
                for part in one.parts:
                    if has_future(part):
                        look(part)
                return
        if not has_future(one) or not isinstance(one, And | Or | Not | Iff):
            found.setdefault(one)
            return
        for part in parts(one):
            look(part)

    look(formula)
    return [one for one in found if not isinstance(one, Constant)]


def with_value(formula: Formula, part: Formula, value: bool) -> Formula:
    """A formula in which a part has a value."""
    if formula == part:
        return Constant(value)
    given = tuple(
        with_value(one, part, value)
        for one in ([] if isinstance(formula, Temporal) else parts(formula))
    )
    match formula:
        case And():
            return conjunction(given, text=formula.text, line=formula.line)
        case Or():
            return disjunction(given, text=formula.text, line=formula.line)
        case Not():
            return negation(given[0], text=formula.text, line=formula.line)
        case Iff():
            left, right = given
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Constant):
                    return other if one.value else negation(other)
            return replace(formula, left=left, right=right)
    return formula


def is_rising(formula: Formula, part: Formula) -> bool | None:
    """Whether a formula can but become true with a part, or but false; None: it can do both."""
    if formula == part:
        return True
    match formula:
        case Not(part=one):
            found = is_rising(one, part)
            return None if found is None else not found
        case And(parts=some) | Or(parts=some):
            known = {is_rising(one, part) for one in some if has_part(one, part)}
            return known.pop() if len(known) == 1 else None
    return None


def has_part(formula: Formula, part: Formula) -> bool:
    """Whether a formula has a part, not counting what stands in its operators."""
    if formula == part:
        return True
    return not isinstance(formula, Temporal) and any(has_part(one, part) for one in parts(formula))


def blamed(formula: Formula, atoms: Collection[Formula] = ()) -> list[tuple[Formula, Formula]]:
    """Of a formula that is false: the first part of each pair is to be blamed where the second
    one is false; the last pair stands for all else. ``atoms`` are blamed as a whole.

    >>> from specstream.rules.formula import Atom
    >>> a, b = Atom("a", text="a"), Atom("b", text="b")
    >>> [one.text for one, _ in blamed(conjunction((a, b)))]
    ['a', 'b']
    """
    match formula:
        case _ if formula in atoms:
            pass
        case And(parts=some):
            return [
                # A part that holds is not to blame for one of its own that does not.
                (blame, Or((one, test)) if test != one else one)
                for one in some
                for blame, test in blamed(one, atoms)
            ]
        case Or(parts=(Not(), other)):
            return blamed(other, atoms)
    return [(formula, formula)]
