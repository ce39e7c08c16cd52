"""Formulas of one stream, and how each monitor writes them.

A formula is written once, and printed for our rules, reelay, mstlo and rtamt. Its meaning is that
of rules: ``since(f, g)``: g at some event up to this one, f at all after that one, this one
included; ``until(f, g)``: g at some event from this one on, f at all before that one, this one
included. Bounds are distances in event time, both ends included, and so is the event itself.

What each monitor can say, and what its definition is:

reelay
    Past only. The same definition, in discrete time: the n-th event has time n. It takes an upper
    bound of 0 for none. Its dense-time monitor takes values to hold *between* events as well, which
    is another question.
mstlo
    Bounded future only, over signals that keep their value until the next sample. At events that
    are one apart, with whole bounds, that is the same but for one thing: its ``f U g`` asks for f
    at the event of g too, as some authors define it for signals. That matters where g comes
    without f, as in no trace here; :func:`closed_by_hand` says ours in its words. It tells no
    verdict whose window reaches beyond the last event.
rtamt
    Past and future, discrete time, by whole traces. The same definition; what is past the end
    decides nothing (``eventually`` is false, ``always`` true), as ours once the trace has ended.
    Its ``prev`` and ``next`` hold where there is no event; ours are its ``s_prev`` and ``s_next``.
    A bounded ``until`` costs it the square of the bound at each event. So it gets the same with an
    unbounded one, which costs one step: see :func:`bounded_by_hand`. Its traces have two events at
    least, and are longer than any bound: else it lengthens its own input, and fails or is wrong.

:mod:`bench.monitors.differences` has each with its smallest formula and trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

__all__ = [
    "CannotSayError",
    "Formula",
    "always",
    "atom",
    "both",
    "bounded_by_hand",
    "closed_by_hand",
    "either",
    "eventually",
    "historically",
    "implies",
    "mstlo",
    "negated",
    "next_event",
    "once",
    "positive",
    "previous_event",
    "reelay",
    "rtamt",
    "rule",
    "since",
    "unless",
    "until",
]


class CannotSayError(ValueError):
    """A monitor has no such formula."""


@dataclass(frozen=True)
class Formula:
    """A formula.

    Attributes:
        word: ``atom``, ``positive``, ``not``, ``and``, ``or``, ``implies``, or the name of a
            temporal operator.
        parts: what it is made of.
        column: of an atom, which holds where it is true; of ``positive``, where it is at least 0.
        after: the least distance in time.
        within: the greatest, or None.
    """

    word: str
    parts: tuple[Formula, ...] = ()
    column: str = ""
    after: int = 0
    within: int | None = None


def atom(column: str) -> Formula:
    """A column of bools."""
    return Formula("atom", column=column)


def positive(column: str) -> Formula:
    """A column of numbers is at least 0; its robustness is the number."""
    return Formula("positive", column=column)


def negated(part: Formula) -> Formula:
    """Not."""
    return Formula("not", (part,))


def both(left: Formula, right: Formula) -> Formula:
    """And."""
    return Formula("and", (left, right))


def either(left: Formula, right: Formula) -> Formula:
    """Or."""
    return Formula("or", (left, right))


def implies(left: Formula, right: Formula) -> Formula:
    """Where the left one holds, the right one does."""
    return Formula("implies", (left, right))


def previous_event(part: Formula) -> Formula:
    """It held at the event before; false at the first."""
    return Formula("previous_event", (part,))


def next_event(part: Formula) -> Formula:
    """It will hold at the event after; false at the last."""
    return Formula("next_event", (part,))


def once(part: Formula, within: int | None = None, after: int = 0) -> Formula:
    """It held at some event so far."""
    return Formula("once", (part,), after=after, within=within)


def historically(part: Formula, within: int | None = None, after: int = 0) -> Formula:
    """It held at all events so far."""
    return Formula("historically", (part,), after=after, within=within)


def since(left: Formula, right: Formula, within: int | None = None, after: int = 0) -> Formula:
    """The left one has held since the right one did."""
    return Formula("since", (left, right), after=after, within=within)


def eventually(part: Formula, within: int | None = None, after: int = 0) -> Formula:
    """It will hold at some event."""
    return Formula("eventually", (part,), after=after, within=within)


def always(part: Formula, within: int | None = None, after: int = 0) -> Formula:
    """It will hold at all events."""
    return Formula("always", (part,), after=after, within=within)


def until(left: Formula, right: Formula, within: int | None = None, after: int = 0) -> Formula:
    """The left one will hold until the right one does."""
    return Formula("until", (left, right), after=after, within=within)


def unless(left: Formula, right: Formula, within: int | None = None, after: int = 0) -> Formula:
    """Likewise, or the left one will hold at all events, and the right one at none."""
    return Formula("unless", (left, right), after=after, within=within)


# Those of events around an event, from the outermost one.
_EVENTS = "ebcdfg"
_TEMPORAL = (
    "previous_event",
    "next_event",
    "once",
    "historically",
    "since",
    "eventually",
    "always",
    "until",
    "unless",
)


def rule(formula: Formula) -> str:
    """A module with ``def rule(e)``, to be given to ``@ss.rule``."""
    used: set[str] = set()
    text = _as_rule(formula, 0, used)
    names = ", ".join(sorted(used))
    head = f"from specstream.rules import {names}\n\n\n" if names else ""
    return f"{head}def rule(e):\n    return {text}\n"


def _as_rule(formula: Formula, depth: int, used: set[str]) -> str:
    event = _EVENTS[depth]
    if formula.word in ("atom", "positive"):
        return f"{event}.{formula.column}" + (" >= 0.0" if formula.word == "positive" else "")
    if formula.word in _TEMPORAL:
        used.add(formula.word)
        inner = _EVENTS[depth + 1]
        given = [f"lambda {inner}: {_as_rule(part, depth + 1, used)}" for part in formula.parts]
        if formula.after:
            given.append(f"after={formula.after}")
        if formula.within is not None:
            given.append(f"within={formula.within}")
        return f"{formula.word}({', '.join(given)})"
    parts = [_as_rule(part, depth, used) for part in formula.parts]
    if formula.word == "implies":
        used.add("implies")
        return f"implies({parts[0]}, {parts[1]})"
    if formula.word == "not":
        inside = formula.parts[0].word not in ("atom", *_TEMPORAL)
        return f"not ({parts[0]})" if inside else f"not {parts[0]}"
    return f"({parts[0]} {formula.word} {parts[1]})"


def _printed(
    formula: Formula,
    leaf: Callable[[Formula], str],
    words: dict[str, str],
    bounds: Callable[[Formula], str],
    who: str,
) -> str:
    """A formula with all parts in parentheses, as the three others take it."""
    if formula.word in ("atom", "positive"):
        return leaf(formula)
    if formula.word not in words:
        raise CannotSayError(f"{who} has no {formula.word}")
    word = words[formula.word] + (bounds(formula) if formula.word in _TEMPORAL else "")
    parts = [f"({_printed(part, leaf, words, bounds, who)})" for part in formula.parts]
    return f"{word} {parts[0]}" if len(parts) == 1 else f"{parts[0]} {word} {parts[1]}"


def reelay(formula: Formula) -> str:
    """As reelay takes it: past, with bounds ``[a:b]``, ``[:b]``, ``[a:]``."""

    def bounds(of: Formula) -> str:
        if not of.after and of.within is None:
            return ""
        return f"[{of.after or ''}:{'' if of.within is None else of.within}]"

    def leaf(of: Formula) -> str:
        return f"{{{of.column} >= 0}}" if of.word == "positive" else f"{{{of.column}}}"

    words = {"not": "not", "and": "and", "or": "or", "implies": "->", "previous_event": "pre"}
    words |= {word: word for word in ("once", "historically", "since")}
    return _printed(formula, leaf, words, bounds, "reelay")


def mstlo(formula: Formula, exact: bool = False) -> str:
    """As mstlo takes it: bounded future, of signals of numbers.

    Args:
        formula: to print.
        exact: whether ``until`` means ours where its right side holds without its left one.
    """

    def bounds(of: Formula) -> str:
        if of.within is None:
            raise CannotSayError(f"mstlo has no {of.word} without a bound")
        return f"[{of.after},{of.within}]"

    def leaf(of: Formula) -> str:
        return f"{of.column} > {0.0 if of.word == 'positive' else 0.5}"

    words = {"not": "!", "and": "&&", "or": "||", "implies": "->"}
    words |= {"eventually": "F", "always": "G", "until": "U"}
    return _printed(closed_by_hand(formula) if exact else formula, leaf, words, bounds, "mstlo")


def rtamt(formula: Formula, by_hand: bool = True) -> str:
    """As rtamt takes it, of columns that are 1 for true and -1 for false.

    Args:
        formula: to print.
        by_hand: whether a bounded ``until`` becomes an unbounded one.
    """

    def bounds(of: Formula) -> str:
        if of.after and of.within is None:
            raise CannotSayError(f"rtamt has no {of.word} with a lower bound only")
        if of.word == "unless" and of.within is None:
            raise CannotSayError("rtamt has no unless without a bound")
        return "" if of.within is None else f"[{of.after}:{of.within}]"

    words = {word: word for word in ("not", "and", "or", "implies", *_TEMPORAL)}
    # Its `prev` is true at the first event, its `next` at the last one; these are not.
    words |= {"previous_event": "s_prev", "next_event": "s_next"}
    return _printed(
        bounded_by_hand(formula) if by_hand else formula,
        lambda of: f"x_{of.column}",
        words,
        bounds,
        "rtamt",
    )


def bounded_by_hand(formula: Formula) -> Formula:
    """The same without a bounded ``until``: with an unbounded one, whose first witness is near.

    ``f until[a:b] g`` is f in all of [0:a-1], and a later f until g with a g in [0:b-a].
    """
    parts = tuple(bounded_by_hand(part) for part in formula.parts)
    if formula.word != "until" or formula.within is None:
        return replace(formula, parts=parts)
    left, right = parts
    low, high = formula.after, formula.within
    near = both(until(left, right), eventually(right, high - low))
    return _later(left, near, low)


def closed_by_hand(formula: Formula) -> Formula:
    """The same where ``until`` asks for its left side at the event of its right one, too.

    In booleans, and in robustness.
    """
    parts = tuple(closed_by_hand(part) for part in formula.parts)
    if formula.word != "until" or formula.within is None:
        return replace(formula, parts=parts)
    left, right = parts
    low, high = formula.after, formula.within
    return _later(left, until(either(left, right), right, high - low), low)


def _later(left: Formula, then: Formula, low: int) -> Formula:
    """The left one up to an event, and from there on the other."""
    return both(always(left, low - 1), eventually(then, low, low)) if low else then
