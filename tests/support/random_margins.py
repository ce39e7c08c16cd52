"""Formulas of ``robustness.py`` at random, their text as rules, and traces."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from random import Random
from typing import Any, NamedTuple

from support.robustness import CONNECTIVES, FUTURE, PAST

__all__ = ["EVENT", "Event", "random_formula", "random_trace", "text_of"]

EVENT = {"x": float, "y": int, "k": int}
SIGNS = (">=", ">", "<=", "<")
ARITY = {"and": 2, "or": 2, "implies": 2, "if": 3, "iff": 2, "since": 2, "until": 2, "unless": 2}


class Event(NamedTuple):
    time: int
    x: float
    y: int
    k: int


def random_trace(random: Random, length: int) -> list[Event]:
    """Events of equal times, close ones, and ones far apart; a minus zero, and infinities."""
    time, events = 0, []
    some = [-1.0, 0.0, -0.0, 1.5, 2.0, 0.5, 3.25, *([inf, -inf] if random.random() < 0.2 else [])]
    for _ in range(length):
        x, y = random.choice(some), random.randrange(-2, 4)
        events.append(Event(time, x, y, random.randrange(2)))
        time += random.choice((0, 0, 1, 1, 2, 3, 9))
    return events


def text_of(formula: Any, event: str = "e") -> str:
    """A formula as it is written in a rule."""
    name, *given = formula
    if name in SIGNS:
        a, b = (f"{event}.{one}" if isinstance(one, str) else repr(one) for one in given)
        return f"({a} {name} {b})"
    forms = {"not": "(not {})", "and": "({} and {})", "or": "({} or {})"}
    forms |= {"implies": "implies({}, {})", "if": "({1} if {0} else {2})", "iff": "(({}) == ({}))"}
    if name in forms:
        return forms[name].format(*(text_of(one, event) for one in given))
    inner = chr(ord(event[0]) + 1)
    parts = [f"lambda {inner}: {text_of(one, inner)}" for one in given if isinstance(one, tuple)]
    if name.endswith("_event"):
        return f"{name}({parts[0]}, {given[0]})"
    bounds = [f"after={given[0]}"] * (given[0] > 0) + [f"within={given[1]}"] * (given[1] < inf)
    return f"{name}({', '.join([*parts, *bounds])})"


def random_formula(random: Random, depth: int, kinds: Sequence[str] = ()) -> Any:
    """A formula of all forms, or of some."""
    kinds = kinds or ("previous_event", "next_event", *PAST, *FUTURE, *CONNECTIVES)
    if depth == 0 or random.random() < 0.1:
        sides = random.choice([("x", random.randrange(-2, 3)), ("x", "y"), (0.5, "y")])
        return (random.choice(SIGNS), *sides)
    name = random.choice(list(kinds))
    parts = [random_formula(random, depth - 1, kinds) for _ in range(ARITY.get(name, 1))]
    if name.endswith("_event"):
        return (name, random.choice((1, 1, 2, 3)), *parts)
    if name in CONNECTIVES:
        return (name, *parts)
    after = random.choice((0, 0, 0, 1, 2, 4))
    within = after + random.choice((0, 1, 3, 6))
    return (name, after, inf if name in PAST and random.random() < 0.3 else within, *parts)
