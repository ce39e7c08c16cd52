"""The rules of proof, for what `Rule.why` gives: a step follows if the definition of its part gives
its verdict by the steps below it alone, whatever all else may be. Nothing here searches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Any

from specstream.rules import formula as f

__all__ = ["Checker", "core"]

Claims = Mapping[tuple[Any, ...], bool]
FUTURE = ("next_event", "eventually", "always", "until", "unless")


def core(part: Any) -> tuple[Any, bool]:
    """What steps speak of where a part is a negation that nobody wrote, and its verdict then."""
    is_plain = isinstance(part, f.Not) and part.text in ("", part.part.text)
    return (core(part.part)[0], not core(part.part)[1]) if is_plain else (part, True)


def join(decides: bool, given: Iterable[bool | None]) -> bool | None:
    found = list(given)
    return decides if decides in found else None if None in found else not decides


class Checker:
    """Of one rule and the events of one trace; ``time`` of an event, and the row of each."""

    def __init__(self, names: Any, events: Sequence[Any], rows: Sequence[int], end: str) -> None:
        self.names, self.events, self.rows, self.end = names, events, rows, end

    def accepts(self, node: Any, env: dict[str, Any], supposed: Claims | None = None) -> bool:
        """Whether a step and all below follow; ``env`` has the events and variables around it."""
        part, supposed = node.part, supposed or {}
        if node.is_supposed:
            return supposed.get((part, self.seen(part, env))) is node.verdict is not None
        if node.cases is not None:
            of, where = node.cases
            case = of, self.seen(of, {**env, **where})
            return len(node.children) == 2 and all(
                (one.part, one.verdict, one.event) == (part, node.verdict, node.event)
                and self.accepts(one, env, {**supposed, case: way})
                for way, one in zip((True, False), node.children, strict=True)
            )
        claims: dict[tuple[Any, ...], bool | None] = {}
        for one in node.children:
            inside = {**env, **one.where}
            if isinstance(part, f.Temporal):
                inside[f.variable(part.depth)] = self.rows.index(one.event.row)
            elif one.event != node.event:
                return False
            about = supposed if not isinstance(part, f.Temporal) else None
            if not self.accepts(one, inside, about):
                return False
            claims[one.part, self.seen(one.part, inside), one.event.row] = one.verdict
        if node.verdict is None:  # no proof, but no step that is beside the point either
            waits = isinstance(part, f.Temporal) and part.name in FUTURE
            return set(claims.values()) == {None} or (not claims and waits and self.end == "open")
        return self.follows(part, env, node.event.row, claims) is node.verdict

    def seen(self, part: Any, env: Mapping[str, Any]) -> str:
        return repr([(name, env[name]) for name in sorted(f.free(part))])

    def run(self, code: str, env: Mapping[str, Any]) -> Any:
        events = {n: self.events[v] if re.match(r"v\d", n) else v for n, v in env.items()}
        return eval(code, {**self.names, **events})

    def follows(self, part: Any, env: Any, row: int, claims: Claims) -> bool | None:
        """The verdict by the definition, with claims in place of all that is below."""

        def says(one: Any, inside: Any, at: int = row) -> bool | None:
            one, way = core(one)
            found = claims.get((one, self.seen(one, inside), at))
            return None if found is None else found is way

        match part:
            case f.Constant():
                return part.value
            case f.Atom():
                return bool(self.run(part.code, env))
            case f.Not(part=f.Atom() as one):
                return not self.run(one.code, env)
            case f.Not():
                return join(False, [None if (v := says(part.part, env)) is None else not v])
            case f.And() | f.Or():
                return join(isinstance(part, f.Or), (says(one, env) for one in part.parts))
            case f.Iff():
                one, other = says(part.left, env), says(part.right, env)
                return None if None in (one, other) else one is other
            case f.Quantifier():
                each = [{**env, part.variable: v} for v in self.run(part.domain, env)]
                return join(not part.is_all, (says(part.part, inside) for inside in each))
        i, name, count = env[f.variable(part.at)], part.name, len(self.events)
        first, last = part.parts[0], part.parts[-1]

        def at(one: Any, j: int) -> bool | None:
            return says(one, {**env, f.variable(part.depth): j}, self.rows[j]) if j < count else None

        def window(after: int = part.after) -> list[int]:
            """Positions within the bounds; with the number of events for those to come."""
            within, time = inf if part.within is None else part.within, self.events[i].time
            side = range(i, count) if name in FUTURE else range(i + 1)
            found = [j for j in side if after <= abs(self.events[j].time - time) <= within]
            return found + [count] * (name in FUTURE and within == inf and self.end == "open")

        if name.endswith("_event"):
            j = i + part.n if name in FUTURE else i - part.n
            is_known = j < 0 or (j >= count and self.end == "closed")
            return False if is_known else at(last, j)
        if name in ("once", "eventually", "historically", "always"):
            return join(name in ("once", "eventually"), (at(last, j) for j in window()))
        ways = {j: range(j + 1, i + 1) if name == "since" else range(i, j) for j in window()}
        ends = [join(False, (at(last, j), *(at(first, k) for k in ways[j]))) for j in ways]
        ends += [join(False, (at(first, j) for j in window(0)))] if name == "unless" else []
        return join(True, ends)
