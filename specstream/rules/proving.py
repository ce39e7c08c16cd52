"""The smallest proof of what a rule says of an event of a finished trace.

The definitions are evaluated on lists: nothing here knows what an operator keeps of a stream. What
later events would decide is unknown, and a part of a rule has a verdict where it has the same one
whatever the unknown parts turn out to be; so ``eventually(f) or not eventually(f)`` is true.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import Any, NamedTuple

from specstream.rules.formula import (
    And,
    Atom,
    Constant,
    Formula,
    Iff,
    Not,
    Or,
    Quantifier,
    Temporal,
    free,
    has_future,
    parts,
    variable,
)

__all__ = ["Found", "Prover", "RaisedError", "is_implicit", "shown_as"]

Verdict = bool | None
Key = tuple[Any, ...]
Supposed = Mapping[Key, bool]
_NOTHING: Supposed = {}
_MOST_CASES = 8


class RaisedError(Exception):
    """A condition has raised, of which the latest event is at this position of the trace."""

    def __init__(self, position: int, error: Exception) -> None:
        super().__init__(position, error)
        self.position, self.error = position, error


class Bound(NamedTuple):
    """What a variable of a quantifier stands for, and what tells it from others."""

    key: Any
    value: Any


Names = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """A step of a proof, or of what is said in place of one where nothing is settled.

    Attributes:
        part: what has the verdict.
        position: of the event in the trace.
        verdict: None: it is open.
        children: what it follows from.
        window: the first and the last position that its operator speaks of; None: it speaks of none
            that are seen.
        where: what the variables of quantifiers stand for, of those that it names.
        events: the positions of the events that it names, by their variables.
        missed: the position of the nearest event that would do, and is too far away; None: there
            is none.
        is_supposed: it is one of the two cases that are told apart further up.
        cases: the part of which both cases are gone through, and what its variables stand for.
        size: steps in all.
    """

    part: Formula
    position: int
    verdict: Verdict
    children: tuple[Found, ...] = ()
    window: tuple[int, int] | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=dict)
    missed: int | None = None
    is_supposed: bool = False
    cases: tuple[Formula, Mapping[str, Any]] | None = None
    size: int = 1


def is_implicit(formula: Formula) -> bool:
    """Whether a negation is not written as one: ``implies(a, b)`` is ``not a or b``. A proof says
    of it what ``a`` is."""
    return isinstance(formula, Not) and formula.text in ("", formula.part.text)


def shown_as(formula: Formula) -> Formula:
    """The formula of the step that speaks of one."""
    while is_implicit(formula):
        formula = formula.part  # type: ignore[attr-defined]
    return formula


class _Part:
    """A part of a rule, made ready.

    Attributes:
        formula: as it is written.
        same: a number that it shares with those that say the same.
        names: of events and variables that it takes from around it.
        parts: that it is made of.
        function: of an atom or a quantifier, what computes the condition or the domain.
        least: the steps that a proof that it is false has at least, and one that it is true.
        may_split: whether a part that needs later events may stand in it both plainly and negated,
            so that it can be settled though that part is not.
    """

    def __init__(self, formula: Formula, same: dict[Formula, int], names: Names) -> None:
        self.formula = formula
        self.same = same.setdefault(formula, len(same))
        # A name of the file may look like that of an event.
        self.names = tuple(sorted(free(formula) - names.keys()))
        self.parts = tuple(_Part(one, same, names) for one in parts(formula))
        self.function: Callable[..., Any] | None = None
        if isinstance(formula, Atom | Quantifier):
            code = formula.code if isinstance(formula, Atom) else formula.domain
            self.used = tuple(sorted(free(Atom(code)) - names.keys()))
            text = f"lambda {', '.join(self.used)}: ({code})"
            self.function = eval(compile(text, "<rule>", "eval"), dict(names))
        self.is_implicit = is_implicit(formula)
        self.least = _least(self, False), _least(self, True)
        ways = list(_ways(formula, True))
        self.may_split = isinstance(formula, And | Or | Iff | Not | Quantifier) and any(
            (one, not way) in ways for one, way in ways
        )


def _ways(formula: Formula, way: bool) -> Iterator[tuple[Formula, bool]]:
    """The parts that need later events, and whether the whole can become true with each."""
    match formula:
        case Temporal():
            if has_future(formula):
                yield formula, way
        case Not(part=part):
            yield from _ways(part, not way)
        case Iff():
            for one in parts(formula):
                yield from _ways(one, True)
                yield from _ways(one, False)
        case _:
            for one in parts(formula):
                yield from _ways(one, way)


def _least(part: _Part, verdict: bool) -> int:
    of = [one.least for one in part.parts]
    match part.formula:
        case Not(part=inner):
            return of[0][not verdict] + (not part.is_implicit) if not isinstance(inner, Atom) else 1
        case And() | Or():
            needs_all = isinstance(part.formula, And) is verdict
            found = {(one.same, one.least[verdict]) for one in part.parts}
            return 1 + (sum if needs_all else min)(least for _, least in found)
        case Iff():
            # Sides that say the same are one step.
            one, other = of
            pairs = [(True, verdict), (False, not verdict)]
            return 1 + min(max(one[left], other[right]) for left, right in pairs)
        case Quantifier(is_all=is_all):
            return 1 if is_all is verdict else 1 + of[0][verdict]
    return 1


class Prover:
    """The verdicts of a rule over one finished trace, and proofs of them.

    Args:
        formula: of the rule.
        names: what names in its conditions stand for.
        events: of the trace, as conditions read them.
        times: of them, ascending.
        is_closed: nothing comes behind the last one; else anything may, and all time passes.
    """

    def __init__(
        self,
        formula: Formula,
        names: Names,
        events: Sequence[Any],
        times: Sequence[int],
        is_closed: bool,
    ) -> None:
        self.root = _Part(formula, {}, names)
        self.events, self.times, self.is_closed = events, times, is_closed
        self.count = len(events)
        self.verdicts: dict[Key, Verdict] = {}
        self.domains: dict[Key, list[Bound]] = {}
        self.proofs: dict[Key, Found | None] = {}

    def explained(self, position: int) -> Found:
        """The smallest proof of the verdict at a position; where that is open, what it waits for.

        Raises:
            RaisedError: a condition has raised.
        """
        names = {"v0": position}
        verdict = self.value(self.root, names)
        if verdict is None:
            return self.waiting(self.root, names, position)
        found = self.best(self.root, verdict, names, position)
        assert found is not None
        return found

    # ---- verdicts ----

    def key(self, part: _Part, names: Names) -> Key:
        found = (names[name] for name in part.names)
        return (part.same, *(one.key if isinstance(one, Bound) else one for one in found))

    def computed(self, part: _Part, names: Names) -> Any:
        """What an atom's condition gives, or the domain of a quantifier."""
        assert part.function is not None
        given = [names[name] for name in part.used]
        try:
            found = part.function(
                *(one.value if isinstance(one, Bound) else self.events[one] for one in given)
            )
            return bool(found) if isinstance(part.formula, Atom) else list(found)
        except Exception as error:
            places = [one for one in given if isinstance(one, int)]
            places = places or [one for one in names.values() if isinstance(one, int)]
            raise RaisedError(max(places), error) from error

    def instances(self, part: _Part, names: Names) -> Iterator[dict[str, Any]]:
        """The names of a quantifier's part, for each of its domain."""
        formula = part.formula
        assert isinstance(formula, Quantifier)
        key = self.key(part, names)
        if key not in self.domains:
            self.domains[key] = [Bound(_told(one), one) for one in self.computed(part, names)]
        for one in self.domains[key]:
            yield {**names, formula.variable: one}

    def below(self, part: _Part, names: Names) -> Iterator[tuple[_Part, Names]]:
        """The parts of a connective or a quantifier, with their names."""
        if isinstance(part.formula, Quantifier):
            for inside in self.instances(part, names):
                yield part.parts[0], inside
        else:
            for one in part.parts:
                yield one, names

    def value(self, part: _Part, names: Names) -> Verdict:
        """The verdict of a part; None: what comes decides it."""
        key = self.key(part, names)
        if key not in self.verdicts:
            found = self.known(part, names, _NOTHING)
            if found is None and part.may_split:
                cases = list(self.undecided(part, names))[:_MOST_CASES]
                found = self.in_all_cases(part, names, cases, {})
            self.verdicts[key] = found
        return self.verdicts[key]

    def in_all_cases(
        self, part: _Part, names: Names, cases: list[Key], supposed: dict[Key, bool]
    ) -> Verdict:
        found = self.known(part, names, supposed)
        if found is not None or not cases:
            return found
        first, *rest = cases
        found = self.in_all_cases(part, names, rest, {**supposed, first: False})
        if found is None:
            return None
        other = self.in_all_cases(part, names, rest, {**supposed, first: True})
        return found if other is found else None

    def known(self, part: _Part, names: Names, supposed: Supposed) -> Verdict:
        """The verdict by tables of three values, where some parts are supposed to have one."""
        match part.formula:
            case Constant(value=value):
                return value
            case Atom():
                key = self.key(part, names)
                if key not in self.verdicts:
                    self.verdicts[key] = self.computed(part, names)
                return self.verdicts[key]
            case Not():
                return _not(self.known(part.parts[0], names, supposed))
            case Iff():
                one, other = (self.known(of, names, supposed) for of in part.parts)
                return None if one is None or other is None else one == other
            case Temporal():
                key = self.key(part, names)
                if key in supposed:
                    return supposed[key]
                if key not in self.verdicts:
                    self.verdicts[key] = self.of_others(part, part.formula, names)
                return self.verdicts[key]
        below = self.below(part, names)
        return _join(_decides(part), (self.known(*one, supposed) for one in below))

    def undecided(self, part: _Part, names: Names) -> dict[Key, tuple[_Part, Names]]:
        """The open operators in a part that stand in it both plainly and negated."""
        places: dict[tuple[Key, bool], tuple[_Part, Names]] = {}

        def look(one: _Part, names: Names, ways: tuple[bool, ...]) -> None:
            formula = one.formula
            if isinstance(formula, Temporal):
                if has_future(formula) and self.value(one, names) is None:
                    for way in ways:
                        places[self.key(one, names), way] = one, names
            elif has_future(formula):
                if isinstance(formula, Not):
                    ways = tuple(not way for way in ways)
                elif isinstance(formula, Iff):
                    ways = (True, False)
                for below in self.below(one, names):
                    look(*below, ways)

        look(part, names, (True,))
        return {key: of for (key, way), of in places.items() if way and (key, False) in places}

    # ---- other events ----

    def span(self, formula: Temporal, i: int, *, from_here: bool = False) -> tuple[int, int, bool]:
        """The first and the last position that an operator looks at from one, and whether events to
        come are among them; with ``from_here`` whatever ``after`` is."""
        after = 0 if from_here else formula.after
        time, within = self.times[i], inf if formula.within is None else formula.within
        if not formula.is_future:
            last = bisect_right(self.times, time - after) - 1
            return bisect_left(self.times, time - within), min(i, last), False
        first = max(i, bisect_left(self.times, time + after))
        last = bisect_right(self.times, time + within) - 1
        return first, last, within == inf and not self.is_closed

    def at(self, part: _Part, formula: Temporal, names: Names, position: int) -> Verdict:
        """The verdict of an operator's part at an event."""
        return self.value(part, {**names, variable(formula.depth): position})

    def of_others(self, part: _Part, formula: Temporal, names: Names) -> Verdict:
        """An operator's verdict, by its definition."""
        i = names[variable(formula.at)]
        held, goal = part.parts[0], part.parts[-1]
        if formula.name.endswith("_event"):
            j = i + formula.n if formula.is_future else i - formula.n
            if j >= self.count and not self.is_closed:
                return None
            return 0 <= j < self.count and self.at(goal, formula, names, j)
        first, last, is_open = self.span(formula, i)
        if formula.name in ("once", "eventually", "historically", "always"):
            asked = (self.at(goal, formula, names, j) for j in _near(formula, first, last))
            return _join(_decides(part), _and_then(asked, is_open))
        if formula.name == "since":
            return _join(True, self.reached(part, names, _near(formula, first, i), (first, last)))
        seen = self.reached(part, names, range(i, self.count), (first, last), is_open)
        if formula.name == "until":
            return _join(True, seen)
        _, last, is_open = self.span(formula, i, from_here=True)
        all_the_way = (self.at(held, formula, names, j) for j in range(i, last + 1))
        whole = _join(False, _and_then(all_the_way, is_open))
        return True if whole else _join(True, chain(seen, [whole]))

    def reached(
        self,
        part: _Part,
        names: Names,
        way: Iterable[int],
        window: tuple[int, int],
        is_open: bool = False,
    ) -> Iterator[Verdict]:
        """For each position on a way, whether the goal is there and all before it on the way is as
        it must be."""
        formula, (held, goal) = part.formula, part.parts
        assert isinstance(formula, Temporal)
        so_far: Verdict = True
        first, last = window
        for j in way:
            if j > last and formula.is_future:
                break
            if first <= j <= last:
                yield _join(False, (so_far, self.at(goal, formula, names, j)))
            # What holds until then is asked of this event, and what holds since then not.
            so_far = _join(False, (so_far, self.at(held, formula, names, j)))
            if so_far is False:
                return
        if is_open:
            yield None

    # ---- proofs ----

    def best(
        self, part: _Part, verdict: bool, names: Names, at: int, supposed: Supposed = _NOTHING
    ) -> Found | None:
        """The smallest proof of a verdict; None: there is none.

        Args:
            at: position of the event that the part is about.
            supposed: verdicts of open operators about the same event.
        """
        if part.is_implicit:
            return self.best(part.parts[0], not verdict, names, at, supposed)
        key = (id(part), verdict, at, self.key(part, names), frozenset(supposed.items()))
        if key not in self.proofs:
            self.proofs[key] = self.searched(part, verdict, names, at, supposed)
        return self.proofs[key]

    def searched(
        self, part: _Part, verdict: bool, names: Names, at: int, supposed: Supposed
    ) -> Found | None:
        formula = part.formula
        if isinstance(formula, Temporal):
            if supposed.get(self.key(part, names)) is verdict:
                return self.step(part, verdict, names, at, is_supposed=True)
            if self.value(part, names) is not verdict:
                return None
            return self.of_operator(part, formula, verdict, names, at)
        if isinstance(formula, Constant | Atom) or _is_literal(formula):
            is_so = self.known(part, names, _NOTHING) is verdict
            return self.step(part, verdict, names, at) if is_so else None
        found = self.by_parts(part, verdict, names, at, supposed)
        if not part.may_split or (found and found.size <= 1 + 2 * part.least[verdict]):
            return found
        try:
            cases = {
                key: of for key, of in self.undecided(part, names).items() if key not in supposed
            }
        except RaisedError:
            if found is None:
                raise
            return found
        for key, (one, inside) in list(cases.items())[:_MOST_CASES]:
            both = [
                self.best(part, verdict, names, at, {**supposed, key: way}) for way in (True, False)
            ]
            if None not in both:
                told = one.formula, _values(one, inside)
                split = self.step(part, verdict, names, at, both, cases=told)
                found = _smaller(found, split)
        return found

    def by_parts(
        self, part: _Part, verdict: bool, names: Names, at: int, supposed: Supposed
    ) -> Found | None:
        """Of a connective or a quantifier."""
        if isinstance(part.formula, Not):
            below = self.best(part.parts[0], not verdict, names, at, supposed)
            return None if below is None else self.step(part, verdict, names, at, [below])
        if isinstance(part.formula, Iff):
            for left in (True, False):
                right = left if verdict else not left
                sides = [
                    self.best(one, way, names, at, supposed)
                    for one, way in zip(part.parts, (left, right), strict=True)
                ]
                if None not in sides:
                    return self.step(part, verdict, names, at, self.each_once(sides))
            return None
        if verdict is _decides(part):
            found = None
            for one, inside in self.below(part, names):
                try:
                    below = self.best(one, verdict, inside, at, supposed)
                except RaisedError:
                    # Python does not look at what stands behind a part that decides.
                    if found is None:
                        raise
                    break
                if below is not None:
                    found = _smaller(found, below)
                    if found is below and found.size <= part.least[verdict] - 1:
                        break
            return None if found is None else self.step(part, verdict, names, at, [found])
        needed = []
        for one, inside in self.below(part, names):
            needed.append(self.best(one, verdict, inside, at, supposed))
            if needed[-1] is None:
                return None
        return self.step(part, verdict, names, at, self.each_once(needed))

    def each_once(self, given: Iterable[Found | None]) -> list[Found]:
        """Steps without those that say the same as another one about the same event."""
        found: dict[Key, Found] = {}
        for one in given:
            assert one is not None
            told = tuple((name, _told(value)) for name, value in one.where.items())
            found.setdefault((one.part, one.position, told), one)
        return list(found.values())

    def step(
        self,
        part: _Part,
        verdict: Verdict,
        names: Names,
        at: int,
        children: Iterable[Found | None] = (),
        window: tuple[int, int] | None = None,
        **more: Any,
    ) -> Found:
        below = tuple(one for one in children if one is not None)
        size = 1 + sum(one.size for one in below)
        where = _values(part, names)
        events = {name: names[name] for name in part.names if isinstance(names[name], int)}
        return Found(part.formula, at, verdict, below, window, where, events, size=size, **more)

    def of_operator(
        self, part: _Part, formula: Temporal, verdict: bool, names: Names, at: int
    ) -> Found:
        """Of an operator about other events, which has the verdict."""
        i = names[variable(formula.at)]
        goal = part.parts[-1]

        def below(one: _Part, way: bool, j: int) -> Found:
            found = self.best(one, way, {**names, variable(formula.depth): j}, j)
            assert found is not None
            return found

        if formula.name.endswith("_event"):
            j = i + formula.n if formula.is_future else i - formula.n
            is_there = 0 <= j < self.count
            children = [below(goal, verdict, j)] if is_there else []
            return self.step(part, verdict, names, at, children)
        first, last, _ = self.span(formula, i)
        window = (first, last) if first <= last else None
        if formula.name in ("once", "eventually", "historically", "always"):
            children = []
            if verdict is _decides(part):
                best = None
                for j in _near(formula, first, last):
                    if self.at(goal, formula, names, j) is verdict:
                        best = _smaller(best, below(goal, verdict, j))
                        if best.size <= goal.least[verdict]:
                            break
                assert best is not None
                children = [best]
            else:
                children = [below(goal, verdict, j) for j in range(first, last + 1)]
            missed = None if verdict else self.missed(goal, formula, names, first, last)
            return self.step(part, verdict, names, at, children, window, missed=missed)
        way = _Way(self, part, formula, names, i, below)
        children = way.to_goal() if verdict else way.to_break()
        return self.step(part, verdict, names, at, children, window)

    def missed(
        self, goal: _Part, formula: Temporal, names: Names, first: int, last: int
    ) -> int | None:
        """Of ``once`` or ``eventually``, which is false, the nearest event that is too far away."""
        if formula.within is None or formula.name in ("historically", "always"):
            return None
        far = range(last + 1, self.count) if formula.is_future else range(first - 1, -1, -1)
        try:
            return next((j for j in far if self.at(goal, formula, names, j) is True), None)
        except RaisedError:
            return None

    # ---- what is open ----

    def waiting(self, part: _Part, names: Names, at: int) -> Found:
        """The open parts of a part that is open."""
        formula = part.formula
        if part.is_implicit:
            return self.waiting(part.parts[0], names, at)
        if isinstance(formula, Temporal):
            return self.step(part, None, names, at, self.awaited(part, formula, names))
        below = (of for of in self.below(part, names) if self.value(*of) is None)
        return self.step(
            part, None, names, at, self.each_once(self.waiting(*of, at) for of in below)
        )

    def awaited(self, part: _Part, formula: Temporal, names: Names) -> list[Found]:
        """What is open at the events that an operator looks at."""
        i = names[variable(formula.at)]
        if formula.name.endswith("_event"):
            j = i + formula.n if formula.is_future else i - formula.n
            looked_at = [(part.parts[0], j)] if 0 <= j < self.count else []
        else:
            first, last, is_open = self.span(formula, i)
            goal, held = part.parts[-1], part.parts[0]
            looked_at = [(goal, j) for j in range(first, last + 1)]
            if len(part.parts) == 2:
                looked_at = []
                end = self.count - 1 if is_open else last
                way = range(i, end + 1) if formula.is_future else range(i, first - 1, -1)
                for j in way:
                    if first <= j <= last:
                        looked_at.append((goal, j))
                    looked_at.append((held, j))
                    if self.at(held, formula, names, j) is False:
                        break
        found = []
        for one, j in looked_at:
            inside = {**names, variable(formula.depth): j}
            if self.value(one, inside) is None:
                found.append(self.waiting(one, inside, j))
        return sorted(self.each_once(found), key=lambda of: of.position)


class _Way:
    """What ``since``, ``until`` and ``unless`` follow from: the events from the one from which they
    look to the one where the goal is, or to one that breaks what is to hold.

    Args:
        prover: of the trace.
        part: with the operator.
        formula: the operator.
        names: what its events and variables stand for.
        i: position from which it looks.
        below: gives the smallest proof about a part at a position.
    """

    def __init__(
        self,
        prover: Prover,
        part: _Part,
        formula: Temporal,
        names: Names,
        i: int,
        below: Callable[[_Part, bool, int], Found],
    ) -> None:
        self.prover, self.formula, self.names, self.below = prover, formula, names, below
        self.held, self.goal = part.parts
        self.first, self.last, self.is_open = prover.span(formula, i)
        _, self.end, self.goes_on = prover.span(formula, i, from_here=True)
        if formula.is_future:
            self.way = range(i, self.end + 1)
        else:
            self.way = range(i, self.first - 1, -1)

    def says(self, part: _Part, j: int) -> Verdict:
        return self.prover.at(part, self.formula, self.names, j)

    def to_goal(self) -> list[Found]:
        """The smallest set of steps from which it is true."""
        return _in_order(self._to_goal())

    def _to_goal(self) -> list[Found]:
        best: list[Found] | None = None
        so_far: list[Found] = []
        size = 0
        more = 0 if self.is_weak else self.goal.least[True]
        for j in self.way:
            if self.first <= j <= self.last and self.says(self.goal, j) is True:
                best = _fewer(best, [*so_far, self.below(self.goal, True, j)])
            if best is not None and size + more >= _size(best):
                return best
            if self.says(self.held, j) is not True:
                assert best is not None
                return best
            so_far.append(self.below(self.held, True, j))
            size += so_far[-1].size
        if self.is_weak and not self.goes_on:
            best = _fewer(best, so_far)
        assert best is not None
        return best

    def to_break(self) -> list[Found]:
        """The smallest set of steps from which it is false: up to an event that breaks what is to
        hold there is no goal."""
        best: list[Found] | None = None
        so_far: list[Found] = []
        size = 0
        for j in self.way:
            is_goal = self.first <= j <= self.last
            if is_goal and self.says(self.goal, j) is not False:
                assert best is not None
                return best
            if is_goal:
                so_far.append(self.below(self.goal, False, j))
                size += so_far[-1].size
            if best is not None and size >= _size(best):
                return best
            if self.says(self.held, j) is False:
                # The goal may be that the same thing holds.
                is_said = is_goal and self.held.same == self.goal.same
                broken = [] if is_said else [self.below(self.held, False, j)]
                best = _fewer(best, [*_in_order(so_far), *broken])
        if not self.goes_on and not self.is_weak:
            best = _fewer(best, _in_order(so_far))
        assert best is not None
        return best

    @property
    def is_weak(self) -> bool:
        return self.formula.name == "unless"


def _is_literal(formula: Formula) -> bool:
    """Whether it is a condition that is written with ``not``."""
    return isinstance(formula, Not) and isinstance(formula.part, Atom)


def _decides(part: _Part) -> bool:
    """The verdict of one of many from which that of all follows."""
    match part.formula:
        case Quantifier(is_all=is_all):
            return not is_all
        case Temporal(name=name):
            return name in ("once", "eventually")
    return isinstance(part.formula, Or)


def _near(formula: Temporal, first: int, last: int) -> range:
    """Positions, those first that are nearest to the event."""
    return range(first, last + 1) if formula.is_future else range(last, first - 1, -1)


def _join(decides: bool, verdicts: Iterable[Verdict]) -> Verdict:
    is_open = False
    for one in verdicts:
        if one is decides:
            return decides
        is_open |= one is None
    return None if is_open else not decides


def _not(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def _and_then(seen: Iterable[Verdict], is_open: bool) -> Iterator[Verdict]:
    """What seen events say, and those to come."""
    yield from seen
    if is_open:
        yield None


def _told(value: Any) -> Any:
    """What tells a value from others."""
    try:
        hash(value)
    except TypeError:
        return type(value), repr(value)
    return type(value), value


def _values(part: _Part, names: Names) -> dict[str, Any]:
    # In the order in which the quantifiers stand around one another.
    used = frozenset(part.names)
    return {
        name: one.value for name, one in names.items() if isinstance(one, Bound) and name in used
    }


def _in_order(given: Iterable[Found]) -> list[Found]:
    return sorted(given, key=lambda one: one.position)


def _size(given: Iterable[Found]) -> int:
    return sum(one.size for one in given)


def _fewer(one: list[Found] | None, other: list[Found]) -> list[Found]:
    """The smaller one; the first, where both are alike."""
    return list(other) if one is None or _size(other) < _size(one) else one


def _smaller(one: Found | None, other: Found) -> Found:
    return other if one is None or other.size < one.size else one
