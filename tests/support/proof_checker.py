# fmt: off
"""The rules of proof, for what ``Rule.why`` gives: a step follows if the definition of its part
gives its verdict by the steps below it alone, whatever all else may be. Nothing here searches."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from specstream.rules import formula as f

__all__ = ["Checker", "core"]
Env = dict[str, Any]
Claims = Mapping[tuple[Any, ...], bool | None]
def core(part: Any) -> tuple[Any, bool]:
    """What steps say of a negation that nobody wrote is of its part, and the opposite."""
    is_plain = isinstance(part, f.Not) and part.text in ("", part.part.text)
    return (core(part.part)[0], not core(part.part)[1]) if is_plain else (part, True)

def join(decides: bool, given: Iterable[bool | None]) -> bool | None:
    found = list(given)
    return decides if decides in found else None if None in found else not decides
class Checker:
    """Of one trace: events with a ``time``, their rows, and "open" or "closed" for its end."""
    def __init__(self, names: Env, events: Sequence[Any], rows: Sequence[int], end: str) -> None:
        self.names, self.events, self.rows, self.end = names, events, list(rows), end

    def accepts(self, node: Any, env: Env, supposed: Claims | None = None) -> bool:
        """Whether a step and all below follow; ``env``: the events and variables around it."""
        part, supposed = node.part, supposed or {}
        if node.is_supposed:
            return supposed.get((part, self.told(part, env))) is node.verdict is not None
        if node.cases is not None:
            of, where = node.cases
            key = of, self.told(of, env | where)
            return len(node.children) == 2 and node.verdict is not None and all(
                (one.part, one.verdict, one.event) == (part, node.verdict, node.event)
                and self.accepts(one, env, {**supposed, key: way})
                for way, one in zip((True, False), node.children, strict=True))
        claims: dict[tuple[Any, ...], bool | None] = {}
        is_temporal = isinstance(part, f.Temporal)
        for one in node.children:
            inside = env | one.where
            if is_temporal:
                inside[f.variable(part.depth)] = self.rows.index(one.event.row)
            elif one.event != node.event:
                return False
            if not self.accepts(one, inside, None if is_temporal else supposed):
                return False
            claims[one.part, self.told(one.part, inside), one.event.row] = one.verdict
        if node.verdict is None:  # that is no proof; what it names is open, or has not come
            waits = not claims and is_temporal and part.is_future and self.end == "open"
            return waits or set(claims.values()) == {None}
        return self.follows(part, env, node.event.row, claims) is node.verdict

    def told(self, part: Any, env: Env) -> str:
        return repr([(name, env[name]) for name in sorted(f.free(part))])
    def run(self, code: str, env: Env) -> Any:
        events = {n: self.events[v] if re.match(r"v\d", n) else v for n, v in env.items()}
        return eval(code, {**self.names, **events})

    def follows(self, part: Any, env: Env, row: int, claims: Claims) -> bool | None:
        """The verdict by the definition, with claims in place of all that is below."""
        def says(one: Any, inside: Env = env, at: int = row) -> bool | None:
            one, way = core(one)
            found = claims.get((one, self.told(one, inside), at))
            return None if found is None else found is way
        match part:
            case f.Constant(value=value):
                return bool(value)
            case f.Atom(code=code) | f.Not(part=f.Atom(code=code)):
                return bool(self.run(code, env)) is isinstance(part, f.Atom)
            case f.Not(part=one):
                return None if says(one) is None else not says(one)
            case f.And() | f.Or():
                return join(isinstance(part, f.Or), map(says, part.parts))
            case f.Iff(left=one, right=other):
                return None if None in (says(one), says(other)) else says(one) is says(other)
            case f.Quantifier():
                each = [env | {part.variable: v} for v in self.run(part.domain, env)]
                return join(not part.is_all, (says(part.part, inside) for inside in each))
        i, name, count = env[f.variable(part.at)], part.name, len(self.events)
        first, last = part.parts[0], part.parts[-1]
        def at(one: Any, j: int) -> bool | None:
            return says(one, env | {f.variable(part.depth): j}, self.rows[j]) if j < count else None
        def window(after: int = part.after) -> list[int]:  # "count" stands for events to come
            within, time = inf if part.within is None else part.within, self.events[i].time
            side = range(i, count) if part.is_future else range(i + 1)
            found = [j for j in side if after <= abs(self.events[j].time - time) <= within]
            return found + [count] * (part.is_future and within == inf and self.end == "open")
        if name.endswith("_event"):
            j = i + part.n if part.is_future else i - part.n
            return False if j < 0 or (j >= count and self.end == "closed") else at(last, j)
        if name in ("once", "eventually", "historically", "always"):
            return join(name in ("once", "eventually"), (at(last, j) for j in window()))
        ways = {j: range(j + 1, i + 1) if name == "since" else range(i, j) for j in window()}
        ends = [join(False, (at(last, j), *(at(first, k) for k in ways[j]))) for j in ways]
        whole = [join(False, (at(first, j) for j in window(0)))] if name == "unless" else []
        return join(True, ends + whole)
