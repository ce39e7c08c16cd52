"""Streams of a few events: a model, unrolled from the initial state.

Each event has terms of its own; the state after it is made by substitution, one of the paths' for
each term. A search for something goes from one event to more, so that what it finds is shortest.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

from specstream.verify.formulas import PropertyState
from specstream.verify.properties import Property
from specstream.verify.step import Event, Model, Way

__all__ = ["Step", "Unrolled"]


@dataclass
class Step:
    """One event of a stream.

    Attributes:
        event: its terms.
        before: the state that it finds.
        after: the state that it leaves.
        guards: of each path, when it is taken.
        facts: what holds of every stream that fits.
        touched: keys of fields that it may read or write.
    """

    event: Event
    before: dict[str, Any]
    after: dict[str, Any]
    guards: list[Any]
    facts: list[Any]
    touched: dict[str, list[Any]]
    renamed: Callable[[Any], Any]


class Unrolled:
    """A model over the events 1, 2, 3 ... from the initial state."""

    def __init__(self, model: Model, assume: list[Property]) -> None:
        self.model, self.assume = model, assume
        self.steps: list[Step] = []
        self.start = model.start

    def step(self, number: int) -> Step:
        """The event of that number, from 0 on."""
        while len(self.steps) <= number:
            self.steps.append(self._next())
        return self.steps[number]

    def _next(self) -> Step:
        model = self.model
        before = self.steps[-1].after if self.steps else self.start
        at = len(self.steps) + 1
        event = Event(model.operator.event, f"@{at}")
        pairs = [(model.before[name], before[name]) for name in model.before]
        pairs += [(model.event.terms[name], event.terms[name]) for name in event.terms]
        pairs += [(one, z3.Const(f"{one}@{at}", one.sort())) for one in self._own]

        def renamed(term: Any) -> Any:
            return z3.substitute(term, *pairs)

        guards = [renamed(way.guard) for way in model.ways]
        after = dict(before)
        after["#now"] = event.terms["#time"]
        after["#events"] = z3.simplify(before["#events"] + 1)
        known = [(way, one) for way, one in zip(model.ways, guards, strict=True) if not way.stopped]
        for name in before:
            if name not in ("#now", "#events"):
                after[name] = _merged(name, before[name], known, renamed)
        facts = [renamed(one) for one in model.facts]
        view = Model.view(event)
        facts += [
            one.formula(
                event=view, state=PropertyState(model.layout, before, before["#now"])
            ).assumed({}, {})
            for one in self.assume
        ]
        touched: dict[str, list[Any]] = {}
        for way in model.ways:
            for name, keys in way.touched.items():
                touched.setdefault(name, []).extend(map(renamed, keys))
        return Step(event, before, after, guards, facts, touched, renamed)

    @property
    def _own(self) -> list[Any]:
        """Constants of the paths that are neither of the state nor of the event: any value."""
        if not hasattr(self, "_found"):
            given = {one.get_id() for one in self.model.before.values()}
            given |= {one.get_id() for one in self.model.event.terms.values()}
            self._found = [one for one in constants(self._terms()) if one.get_id() not in given]
        return self._found

    def _terms(self) -> Iterator[Any]:
        for way in self.model.ways:
            yield way.guard
            yield from way.state.values()
            for row in way.rows:
                yield from row.terms.values()

    def touched(self, count: int) -> dict[str, list[Any]]:
        """Of each field, the keys that a stream of so many events may read or write."""
        found: dict[str, list[Any]] = {}
        for number in range(count):
            for name, keys in self.step(number).touched.items():
                found.setdefault(name, []).extend(keys)
        return found

    def facts(self, count: int, exact: bool = True) -> list[Any]:
        """What holds of every stream of so many events, none of which stops on the way.

        Args:
            exact: the paths that are cut or have no meaning are left out.
        """
        found: list[Any] = []
        for number in range(count):
            step = self.step(number)
            found += step.facts
            if not exact:
                continue
            pairs = list(zip(self.model.ways, step.guards, strict=True))
            found += [z3.Not(guard) for way, guard in pairs if way.stopped]
            # What is any value on a path is one with which some path is taken.
            found.append(z3.Or(*(guard for way, guard in pairs if not way.stopped)))
        return found


def _merged(name: str, before: Any, ways: list[tuple[Way, Any]], renamed: Any) -> Any:
    """A term of the state after an event: by the path that it took."""
    by_term: dict[int, tuple[Any, list[Any]]] = {}
    for way, guard in ways:
        term = renamed(way.state[name])
        if not term.eq(before):
            by_term.setdefault(term.get_id(), (term, []))[1].append(guard)
    found = before
    for term, guards in by_term.values():
        found = z3.If(z3.Or(*guards) if len(guards) > 1 else guards[0], term, found)
    return found


def constants(terms: Iterator[Any]) -> list[Any]:
    """The unknown constants in terms."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = list(terms)
    while waiting:
        one = waiting.pop()
        if one.get_id() in seen:
            continue
        seen.add(one.get_id())
        if z3.is_const(one) and one.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[one.get_id()] = one
        waiting += one.children()
    return list(found.values())
