"""Proofs for streams of any length: the beginning, and one step of every path.

A property that holds before an event has to hold after it, on each path by itself. What is assumed
of all entries is assumed of those that the event touches, and of the unknown one that is asked
about. What fails is taken out, and the rest is tried again without it.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import z3

from specstream.verify.elements import wide_term
from specstream.verify.formulas import Formula, PropertyState, SeenField, Shared
from specstream.verify.properties import Property
from specstream.verify.solvers import Budget, solve
from specstream.verify.step import Model, Way

__all__ = ["Induction", "Invariant", "of_event"]


_OF_HELPERS = 0.3


def _fails(model: Any, term: Any) -> bool:
    return bool(z3.is_false(model.eval(term, model_completion=True)))


def of_event(of: Property, model: Model, way: Way) -> Formula:
    """What a property says of an event on a path."""
    before, after = (
        PropertyState(model.layout, terms, terms["#now"]) for terms in (model.before, way.state)
    )
    found: Formula = of.formula(
        before=before, after=after, state=after, event=Model.view(model.event), rows=way.rows
    )
    return found


@dataclass(frozen=True)
class Invariant:
    """A property of states, as formulas of one.

    Attributes:
        name: what it says.
        of: makes the formula of a state.
        is_asked: whether somebody has asked for it; else it is a helper.
    """

    name: str
    of: Any
    is_asked: bool = True


@dataclass
class Induction:
    """Proofs over one model.

    Attributes:
        confirm: whether a second solver has to find each step as well.
        reasons: of what is not proved, by name: where it failed.
    """

    model: Model
    assume: list[Property]
    budget: Budget
    confirm: bool = False
    reasons: dict[str, str] = field(default_factory=dict)
    _whole: dict[str, bool] = field(default_factory=dict)

    def _solve(self, conditions: list[Any], budget: Budget, effort: Any = None) -> tuple[str, Any]:
        return solve(conditions, budget, effort, self.confirm)

    def _state(self, terms: dict[str, Any]) -> PropertyState:
        return PropertyState(self.model.layout, terms, terms["#now"])

    def prove(self, invariants: list[Invariant]) -> list[Invariant]:
        """Those of some invariants that hold of every stream; together they carry each other."""
        begun = self.model.start
        left = [one for one in invariants if self._begins(one, begun)]
        while left:
            lost = self._lost(left)
            if not lost:
                if self.stops(left):
                    return []
                return left
            left = [one for one in left if one not in lost]
        return left

    def _begins(self, one: Invariant, begun: dict[str, Any]) -> bool:
        formula = one.of(self._state(begun))
        said, _ = self._solve([z3.Not(formula.shown({}, {}))], self.budget)
        if said != "unsat":
            self.reasons[one.name] = "it does not hold before the first event"
        return said == "unsat"

    def _lost(self, left: list[Invariant]) -> list[Invariant]:
        """Those that a step may break; all are assumed before it."""
        lost: list[Invariant] = []
        formulas = [one.of(self._state(self.model.before)) for one in left]
        self._whole = {}
        for way in self.model.ways:
            if way.stopped or not (way.changes or self.model.layout.goes_by_time):
                continue
            open_ones = [one for one in left if one not in lost]
            lost += self._lost_on(way, formulas, open_ones)
        return lost

    def _lost_on(
        self, way: Way, before: list[Formula], open_ones: list[Invariant]
    ) -> list[Invariant]:
        """Those that one path may break: a model breaks some at once, and is asked for again."""
        lost: list[Invariant] = []
        fresh = Shared()
        after = self._state(way.state)
        shown = [(one, one.of(after).shown(way.touched, fresh)) for one in open_ones]
        given = self._given(way, before, fresh)
        while shown:
            wrong = z3.Or(*(z3.Not(term) for _, term in shown))
            said, model = self._solve([*given, wrong], self.budget, self._effort(shown))
            if said == "unsat":
                return lost
            broken = [] if said == "unknown" else [one for one in shown if _fails(model, one[1])]
            if not broken:
                return lost + self._one_by_one(way, given, shown)
            for one in broken:
                shown.remove(one)
                lost.append(one[0])
                self._note(one[0], way, "sat")
        return lost

    def _effort(self, shown: list[Any]) -> float:
        """What nobody has asked for is given up sooner."""
        asked = any(one.is_asked for one, _ in shown)
        return self.budget.effort if asked else min(self.budget.effort, _OF_HELPERS)

    def _one_by_one(self, way: Way, given: list[Any], shown: list[Any]) -> list[Invariant]:
        lost = []
        for one in shown:
            said, _ = self._solve([*given, z3.Not(one[1])], self.budget, self._effort([one]))
            if said != "unsat":
                lost.append(one[0])
                self._note(one[0], way, said)
        return lost

    def _note(self, one: Invariant, way: Way, said: str) -> None:
        at = f"path {way.number + 1} of {len(self.model.ways)}"
        self.reasons[one.name] = (
            f"an event breaks it from a state that may be unreachable ({at}): ask for an invariant "
            "that excludes it as well"
            if said == "sat"
            else f"no answer for {at}: try a larger effort"
        )

    def step(self, way: Way, known: list[Invariant], after: Formula) -> str:
        """Whether a formula holds after a path, given what holds before it: "unsat" is yes."""
        state = self._state(self.model.before)
        return self._step(way, [one.of(state) for one in known], after)

    def _step(self, way: Way, before: list[Formula], after: Formula) -> str:
        fresh: dict[str, list[Any]] = {}
        shown = after.shown(way.touched, fresh)
        return self._solve([*self._given(way, before, fresh), z3.Not(shown)], self.budget)[0]

    def _given(self, way: Way, before: list[Formula], fresh: dict[str, list[Any]]) -> list[Any]:
        """What is known of a path from a state of which formulas hold."""
        keys = {
            name: [*way.touched.get(name, ()), *fresh.get(name, ())]
            for name in {*way.touched, *fresh}
        }
        return [
            *self.model.facts,
            way.guard,
            *self._assumed(),
            *(one.assumed(keys, {}) for one in before),
            *self._parts(before, keys),
        ]

    def _assumed(self) -> list[Any]:
        view, state = Model.view(self.model.event), self._state(self.model.before)
        return [one.formula(event=view, state=state).assumed({}, {}) for one in self.assume]

    def each(self, of: Property, invariants: list[Invariant]) -> str:
        """Whether a property of every event holds; "": it does, else why it is not shown."""
        before = self._state(self.model.before)
        known = [one.of(before) for one in invariants]
        for way in self.model.ways:
            if way.stopped:
                continue
            said = self._step(way, known, of_event(of, self.model, way))
            if said != "unsat":
                at = f"path {way.number + 1} of {len(self.model.ways)}"
                if said == "sat":
                    return (
                        f"an event breaks it from a state that may be unreachable ({at}): ask for "
                        "an invariant that excludes it, with always="
                    )
                return f"no answer for {at}: try a larger effort"
        return self.stops(invariants)

    def stops(self, invariants: list[Invariant]) -> str:
        """Why a stream may get to a path of which nothing is known; "": none does."""
        formulas = [one.of(self._state(self.model.before)) for one in invariants]
        for way in self.model.ways:
            if not way.stopped:
                continue
            conditions = [
                *self.model.facts,
                way.guard,
                *self._assumed(),
                *(one.assumed(way.touched, {}) for one in formulas),
            ]
            if self._solve(conditions, self.budget)[0] != "unsat":
                for one in invariants:
                    self.reasons[one.name] = way.stopped
                return way.stopped
        return ""

    # ---- parts of a whole ----

    def _parts(self, before: list[Formula], keys: dict[str, list[Any]]) -> list[Any]:
        """Non-negative parts of an exact sum are at most the sum, and so are two different ones."""
        found: list[Any] = []
        for one in self.model.layout.fields:
            if one.space != "state" or (one.dimensions == () and one.container is None):
                continue
            if one.container is not None and one.container.kind in ("timers", "priority_queue"):
                continue
            seen: SeenField = getattr(self._state(self.model.before), one.name)
            for name, part in zip(seen.slots.parts, seen.slots.shape.parts, strict=False):
                total = self.model.before.get(f"{name}#sum")
                if total is None or not self._is_whole(name, part, seen, before):
                    continue
                elements = [
                    (
                        key,
                        seen.has_key(key),
                        wide_term(part, z3.Select(self.model.before[name], key)),
                    )
                    for key in keys.get(one.name, ())
                ]
                found.append(total >= 0)
                found += [z3.Implies(there, of <= total) for _, there, of in elements]
                found += [
                    z3.Implies(z3.And(a[1], b[1], a[0] != b[0]), a[2] + b[2] <= total)
                    for a, b in itertools.combinations(elements, 2)
                ]
        return found

    def _is_whole(self, name: str, part: Any, seen: SeenField, before: list[Formula]) -> bool:
        """Whether what is assumed says that no element is negative."""
        if name not in self._whole:
            key = z3.FreshConst(seen.sort, "part")
            element = wide_term(part, z3.Select(self.model.before[name], key))
            known = [one.assumed({seen.field.name: [key]}, {}) for one in before]
            said, _ = self._solve([*known, seen.has_key(key), element < 0], self.budget, 0.2)
            self._whole[name] = said == "unsat"
        return self._whole[name]
