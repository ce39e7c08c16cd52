"""Paths of a function over unknown values: where it asks for a truth, it goes both ways.

A function is run again and again with a list of decisions; where it asks for the truth of something
unknown and the list is at its end, it goes on with True, and the list with False is left for later.
A loop is left after ``rounds`` turns: such a path is *cut*, and nothing is claimed of what it does.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import z3

from specstream.compiler.language.user_code import is_own

__all__ = [
    "Cut",
    "NotModelled",
    "OutOfTime",
    "Path",
    "Place",
    "Wrap",
    "explore",
    "is_walked",
    "path",
    "place",
    "possible",
    "refuse",
]

# Truths of one line that are not the test of a loop.
_MOST_AT_PLACE = 64
# Truths that are asked for before the solver is asked whether there is such an event.
_UNASKED = 8
_MOST_INDEX = 16


class Place(NamedTuple):
    """A line of the user's."""

    file: str
    line: int


class NotModelled(BaseException):
    """What has no meaning on unknown values. No operator catches it, as it is no Exception."""

    def __init__(self, what: str, hint: str) -> None:
        self.what, self.hint, self.place = what, hint, place()
        super().__init__(f"line {self.place.line}: {what}; {hint}")


class Cut(BaseException):
    """A loop has had all the turns that it may have."""

    def __init__(self) -> None:
        self.place = place()
        super().__init__(f"line {self.place.line}: a loop was left after rounds= turns")


class OutOfTime(BaseException):
    """The time that an exploration may take is over."""

    def __init__(self) -> None:
        super().__init__(
            "the paths of the operator are too many: try fewer rounds=, or a larger time="
        )


class Wrap(NamedTuple):
    """A place where a result may leave 64 bits, and when it does."""

    place: Place
    sign: str
    when: Callable[[], Any]


@dataclass
class Path:
    """One way through a function.

    Attributes:
        decisions: how it goes where the truth of something unknown is asked for.
        loops: lines that are tests of loops.
        rounds: turns of a loop without a known end.
        deadline: by ``time.monotonic``.
        guard: what holds on this way.
        exact: the same as it was asked, before the solver has simplified it.
        wraps: where integers may wrap.
        free: what has any value here, and why.
        touched: keys of fields that were read or written.
    """

    decisions: list[bool]
    loops: frozenset[Place]
    rounds: int
    deadline: float
    guard: list[Any] = field(default_factory=list)
    exact: list[Any] = field(default_factory=list)
    wraps: list[Wrap] = field(default_factory=list)
    free: list[tuple[Place, str]] = field(default_factory=list)
    touched: dict[str, list[Any]] = field(default_factory=dict)
    later: list[list[bool]] = field(default_factory=list)
    _asked: int = 0
    _known: dict[int, bool] = field(default_factory=dict)
    _turns: dict[tuple[int, int], int] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)

    def require(self, condition: Any) -> None:
        """Only what a condition holds of is on this way."""
        self.guard.append(condition)
        self.exact.append(condition)

    def fork(self, condition: Any) -> bool:
        """The truth of a condition on this way."""
        exact = condition
        condition = z3.simplify(condition)
        if z3.is_true(condition) or z3.is_false(condition):
            return bool(z3.is_true(condition))
        if condition.get_id() in self._known:
            return self._known[condition.get_id()]
        if time.monotonic() > self.deadline:
            raise OutOfTime
        over = self._count_turn()
        opposite = z3.simplify(z3.Not(condition))
        if self._asked < len(self.decisions):
            decision = self.decisions[self._asked]
        else:
            decision = self._decide(condition, opposite)
        self._asked += 1
        self.guard.append(condition if decision else opposite)
        self.exact.append(exact if decision else z3.Not(exact))
        self._known[condition.get_id()] = decision
        self._known[opposite.get_id()] = not decision
        self._kept += [condition, opposite]  # a number is given to another term when one is gone
        if over > 1 or (over and decision):
            raise Cut
        return decision

    def _decide(self, condition: Any, opposite: Any) -> bool:
        can_be = can_not_be = True
        if self._asked >= _UNASKED:
            can_be = possible([*self.guard, condition])
            can_not_be = not can_be or possible([*self.guard, opposite])
        decision = can_be
        if can_be and can_not_be:
            self.later.append([*self.decisions, False])
        self.decisions.append(decision)
        return decision

    def _count_turn(self) -> int:
        """How often more than it may be the truth has been asked for in this place."""
        frame = _users(sys._getframe(2))
        if frame is None:
            return 0
        key = id(frame.f_code), frame.f_lasti
        self._turns[key] = self._turns.get(key, 0) + 1
        at = Place(frame.f_code.co_filename, frame.f_lineno)
        most = self.rounds if at in self.loops else _MOST_AT_PLACE
        over: int = self._turns[key] - most
        return max(0, over)

    def turn(self, done: int) -> None:
        """Begins a turn of a loop without a known end, of which so many are done."""
        if done >= self.rounds:
            raise Cut

    def index(self, term: Any) -> int:
        """An unknown integer as one of a few that Python can count with."""
        for value in (*range(_MOST_INDEX), -1):
            if self.fork(term == value):
                return int(value)
        raise Cut

    def touch(self, name: str, key: Any) -> None:
        keys = self.touched.setdefault(name, [])
        if not any(one.eq(key) for one in keys):
            keys.append(key)

    def any_value(self, sort: Any, why: str) -> Any:
        """A value of which nothing is known, in place of one that has no exact meaning."""
        self.free.append((place(), why))
        return z3.FreshConst(sort, "free")


def possible(conditions: list[Any], milliseconds: int = 250) -> bool:
    """Whether conditions can hold at once, as far as the solver finds out in that time."""
    solver = z3.Solver()
    solver.set("timeout", milliseconds)
    solver.add(*conditions)
    return bool(solver.check() != z3.unsat)


_running: list[Path] = []


def path() -> Path:
    """The one that is being walked."""
    if not _running:
        refuse("a condition inside of all, any or sum", "give it a name before")
    return _running[-1]


def is_walked() -> bool:
    """Whether one is."""
    return bool(_running)


def explore(
    run: Callable[[Path], Any],
    loops: frozenset[Place] = frozenset(),
    rounds: int = 4,
    deadline: float = float("inf"),
) -> Iterator[tuple[Path, Any]]:
    """All ways through a function, each with what the function has returned."""
    waiting: list[list[bool]] = [[]]
    while waiting:
        one = Path(waiting.pop(), loops, rounds, deadline)
        _running.append(one)
        try:
            result = run(one)
        finally:
            _running.pop()
        waiting += one.later
        yield one, result


def _users(frame: FrameType | None) -> FrameType | None:
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def place() -> Place:
    """The user's line that runs now."""
    frame = _users(sys._getframe(1))
    return Place("", 0) if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)


def refuse(what: str, hint: str) -> NoReturn:
    """Refuses what has no meaning yet."""
    raise NotModelled(what, hint)
