"""By how much a rule holds: the definitions, on lists. A formula is a tuple: a name, its parts.

``told`` gives for each event of a trace its value and when that is known: at the time of an event,
or, half a unit behind a deadline, when all events up to it are there. None: it is never known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

__all__ = ["CONNECTIVES", "FUTURE", "PAST", "Told", "told"]

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
        sides = [[getattr(e, str(one), one) for one in given] for e in events]
        return [(atom(name, a, b), time) for (a, b), time in zip(sides, times, strict=True)]
    if name in CONNECTIVES:
        join, found = CONNECTIVES[name], list[tuple[float, float] | None]()
        for row in zip(*(told(one, events, at_end) for one in given), strict=True):
            some = [one for one in row if one]
            values, known = zip(*some, strict=True) if some else ((), ())
            found.append((join(*values), max(known)) if len(some) == len(given) else None)
        return found
    if name == "next_event":
        behind = (-inf, inf) if at_end == "closed" else None
        return [*told(given[1], events, at_end), *[behind] * given[0]][given[0] :]
    if name == "previous_event":
        before = [*[(-inf, -inf)] * given[0], *told(given[1], events, at_end)]
        return [x and (x[0], max(x[1], t)) for x, t in zip(before, times, strict=False)]
    after, within, *inner = given
    parts, found = [told(one, events, at_end) for one in inner], []
    for i, now in enumerate(times):
        ahead = [j for j in range(i, count) if times[j] - now <= within]
        asked = ahead if name in FUTURE else list(range(i + 1))
        if name in ("once", "historically"):
            asked = [j for j in asked if now - times[j] >= after]
        some = [one for part in parts for j in asked if (one := part[j])]
        if len(some) < len(parts) * len(asked):
            found.append(None)
            continue
        f, g = ({j: x[0] for j in asked if (x := part[j])} for part in (parts[0], parts[-1]))
        window = [j for j in asked if after <= abs(times[j] - now) <= within]
        if name in ("once", "eventually"):
            value = max((g[j] for j in window), default=-inf)
        elif name in ("historically", "always"):
            value = min((g[j] for j in window), default=inf)
        elif name == "since":
            ways = [[g[j], *(f[k] for k in range(j + 1, i + 1))] for j in window]
            value = max(map(min, ways), default=-inf)
        else:
            ways = [[g[j], *(f[k] for k in range(i, j))] for j in window]
            value = max(map(min, ways), default=-inf)
        if name == "unless":
            value = max(value, min(f[j] for j in ahead))
        own = now + within + 0.5 if name in FUTURE else now
        found.append((value, max([own, *(known for _, known in some)])))
    return found
