"""By how much a rule holds: the definitions, on lists; and rules at random, as tuples and as text.

``told`` gives for each event of a trace its value and when that is known: at the time of an event,
or, half a unit behind a deadline, when all events up to it are there. None: it is never known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from random import Random
from typing import Any

__all__ = ["FUTURE", "PAST", "Told", "random_formula", "text_of", "told"]

Told = list[tuple[float, float] | None]
PAST, FUTURE = ("once", "historically", "since"), ("eventually", "always", "until", "unless")
CONNECTIVES: dict[str, Callable[..., float]] = {
    "not": lambda a: 0.0 - a,
    "and": min,
    "or": max,
    "implies": lambda a, b: max(0.0 - a, b),
    "if": lambda a, b, c: max(min(a, b), min(0.0 - a, c)),
    "iff": lambda a, b: max(min(a, b), min(0.0 - a, 0.0 - b)),
}


def atom(sign: str, a: float, b: float) -> float:
    difference, holds = (a - b, a >= b) if ">" in sign else (b - a, a <= b)
    if sign in "<>":
        holds = holds and a != b
    return float(difference) + 0.0 if difference == difference else inf if holds else -inf


def told(formula: Any, events: Sequence[Any], at_end: str = "open") -> Told:
    name, *given = formula
    times, count = [event.time for event in events], len(events)
    if name in (">=", ">", "<=", "<"):
        a, b = ([getattr(e, one, one) if isinstance(one, str) else one for e in events]
                for one in given)  # fmt: skip
        return [(atom(name, x, y), t) for x, y, t in zip(a, b, times, strict=True)]
    if name in CONNECTIVES:
        rows = zip(*(told(one, events, at_end) for one in given), strict=True)
        return [None if None in row else (CONNECTIVES[name](*(value for value, _ in row)),
                max(known for _, known in row)) for row in rows]  # fmt: skip
    if name == "next_event":
        ahead = [*told(given[1], events, at_end), *[(-inf, inf) if at_end == "closed" else None] * given[0]]
        return ahead[given[0] :]
    if name == "previous_event":
        before: Told = [*[(-inf, -inf)] * given[0], *told(given[1], events, at_end)]
        return [x and (x[0], max(x[1], t)) for x, t in zip(before, times, strict=False)]
    after, within, *parts = given
    *held, goal = (told(one, events, at_end) for one in parts)
    found: Told = []
    for i, now in enumerate(times):
        ahead = [j for j in range(i, count) if times[j] - now <= within]
        asked = ahead if name in FUTURE else range(i + 1)
        if name in ("once", "historically"):
            asked = [j for j in asked if now - times[j] >= after]
        known = [x[j] for x in (*held, goal) for j in asked]
        if None in known:
            found.append(None)
            continue
        window = [j for j in asked if after <= abs(times[j] - now) <= within]
        g = {j: goal[j][0] for j in asked}
        f = {j: held[0][j][0] for j in asked} if held else {}
        way = {j: range(i, j) if name in FUTURE else range(j + 1, i + 1) for j in window}
        best = [min([g[j], *(f[k] for k in way[j])] if held else [g[j]]) for j in window]
        value = min(g[j] for j in window) if name in ("always", "historically") and window else (
            inf if name in ("always", "historically") else max(best, default=-inf))  # fmt: skip
        if name == "unless":
            value = max(value, min(f[j] for j in ahead))
        own = now + within + 0.5 if name in FUTURE else now
        found.append((value, max([own, *(x[1] for x in known)])))
    return found


def text_of(formula: Any, event: str = "e") -> str:
    """A formula as it is written in a rule."""
    name, *given = formula
    if name in (">=", ">", "<=", "<"):
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
        return (random.choice((">=", ">", "<=", "<")), *sides)
    name = random.choice([one for one in kinds])
    arity = {"not": 1, "and": 2, "or": 2, "implies": 2, "if": 3, "iff": 2}.get(name)
    arity = arity or (2 if name in ("since", "until", "unless") else 1)
    parts = [random_formula(random, depth - 1, kinds) for _ in range(arity)]
    if name.endswith("_event"):
        return (name, random.choice((1, 1, 2, 3)), *parts)
    if name in CONNECTIVES:
        return (name, *parts)
    after = random.choice((0, 0, 0, 1, 2, 4))
    within = after + random.choice((0, 1, 3, 6))
    return (name, after, inf if name in PAST and random.random() < 0.3 else within, *parts)
