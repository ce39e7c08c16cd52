"""The ten properties of *Timescales*, and traces for them.

After Ulus, *Timescales: a benchmark generator for MTL monitoring tools* (2019): absence,
universality, recurrence and response, globally, after q, before r, and between q and r. Each has a
past form, which is true or false at each event, and a future form. A trace satisfies its property;
its end may violate it. There, the future forms have parts without a bound. Here they have one that
no trace exceeds, as a monitor of bounded future needs.

>>> from bench.monitors.timescales import PROPERTIES, bounds, trace
>>> print(PROPERTIES["absence_after_q"].past(*bounds(10), whole=False).word)
implies
>>> columns = trace("recurrence_globally", 10, 1000, seed=1)
>>> list(columns), bool(columns["p"][0])
(['time', 'p'], True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.monitors.formulas import (
    Formula,
    always,
    atom,
    both,
    either,
    eventually,
    historically,
    implies,
    negated,
    once,
    since,
    until,
)

__all__ = ["BOUNDS", "PROPERTIES", "Property", "bounds", "robust", "trace"]

BOUNDS = (10, 100, 1000)
FEWEST, MOST = 1, 7  # times that p, or p and s, happen between q and r
# No r is further from its q than this many times the bound, nor p or s between them.
BETWEEN = 2
BETWEEN_MANY = 10

P, Q, R, S = (atom(name) for name in "pqrs")


class Rows:
    """The rows of a trace, one after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.length = 0
        self.true: dict[str, list[tuple[int, int]]] = {name: [] for name in "pqrs"}
        self.at_random: list[tuple[str, int, int]] = []

    def add(self, names: str = "", times: int = 1) -> None:
        """So many rows in which these columns are true, and no other."""
        for name in names:
            self.true[name].append((self.length, self.length + times))
        self.length += times

    def add_at_random(self, name: str, times: int = 1) -> None:
        """So many rows in which this column is true or not, and no other is true."""
        self.at_random.append((name, self.length, self.length + times))
        self.length += times

    def between(self, least: int, most: int) -> int:
        """A number at random, both ends included."""
        return int(self.rng.integers(least, most + 1))

    def columns(self, names: str) -> dict[str, np.ndarray]:
        """Times, which are the positions, and columns of bools."""
        made: dict[str, np.ndarray] = {"time": np.arange(self.length, dtype=np.int64)}
        for name in names:
            column = np.zeros(self.length, dtype=bool)
            for begin, end in self.true[name]:
                column[begin:end] = True
            for at_random, begin, end in self.at_random:
                if at_random == name:
                    column[begin:end] = self.rng.random(end - begin) < 0.5
            made[name] = column
        return made


@dataclass(frozen=True)
class Property:
    """A property.

    Attributes:
        name: as published.
        columns: that it reads, one letter each.
        each: its past form at each event, of a lower and an upper bound.
        future: its bounded future form at each event.
        valid: adds rows that satisfy it.
        failing: adds rows that violate it.
        horizon: how far its future form looks, in upper bounds.
    """

    name: str
    columns: str
    each: Callable[[int, int], Formula]
    future: Callable[[int, int], Formula]
    valid: Callable[[Rows, int, int], None]
    failing: Callable[[Rows, int, int], None]
    horizon: int = 1

    def past(self, low: int, high: int, whole: bool = True) -> Formula:
        """Its past form.

        Args:
            low: the lower bound.
            high: the upper bound.
            whole: as published: whether it has held at all events so far, not at this one only.
        """
        each = self.each(low, high)
        return historically(each) if whole else each


def bounds(high: int) -> tuple[int, int]:
    """The lower and upper bound as published: 3 to 10, 30 to 100, 300 to 1,000."""
    return 3 * high // 10, high


def trace(
    name: str, high: int, events: int, seed: int, failing: bool = False
) -> dict[str, np.ndarray]:
    """A trace of a property with whole cycles, so of a few more events than asked for.

    Args:
        name: of the property.
        high: its upper bound.
        events: at least so many.
        seed: of what is at random.
        failing: whether its end violates the property.

    Returns:
        ``time``, the positions, and a column of bools for each letter.
    """
    which, rows, low = PROPERTIES[name], Rows(seed), bounds(high)[0]
    if name == "recurrence_globally":
        rows.add("p")
    while rows.length < events:
        which.valid(rows, low, high)
    if failing:
        which.failing(rows, low, high)
    return rows.columns(which.columns)


def robust(events: int, seed: int) -> dict[str, np.ndarray]:
    """Two random walks, ``x`` and ``y``, for formulas of numbers."""
    rng = np.random.default_rng(seed)
    made: dict[str, np.ndarray] = {"time": np.arange(events, dtype=np.int64)}
    for name in "xy":
        made[name] = np.cumsum(rng.normal(size=events)) * 0.1 + rng.normal(size=events)
    return made


# Between q and r: at r, as published. There, the parentheses of "absence" put its left side alone
# under "historically", which makes it true always; here they are as in the nine others.
_AT_R = both(both(R, negated(Q)), once(Q))


def _from_q(high: int, times: int) -> Formula:
    return both(both(Q, negated(R)), eventually(R, times * high))


def _answered(low: int, high: int) -> Formula:
    """Of past: s only if p was in time, and no p without an s for too long."""
    late = since(negated(S), P, after=high)
    return both(implies(S, once(P, high, low)), negated(late))


def _absence_after_q(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    rows.add(times=high)
    rows.add_at_random("p", high)


def _absence_after_q_fails(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    rows.add(times=high - 1)
    rows.add("p")


def _absence_before_r(rows: Rows, low: int, high: int) -> None:
    rows.add_at_random("p", high)
    rows.add(times=high)
    rows.add("r")


def _absence_before_r_fails(rows: Rows, low: int, high: int) -> None:
    rows.add("p")
    rows.add(times=high - 1)
    rows.add("r")


def _absence_between(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    rows.add(times=rows.between(low, high - 1))
    rows.add("r")
    rows.add_at_random("p")


def _absence_between_fails(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    rows.add(times=high - 1)
    rows.add("p")
    rows.add("r")


def _always_after_q(rows: Rows, low: int, high: int) -> None:
    rows.add("qp")
    rows.add("p", high)
    rows.add_at_random("p", high)


def _always_after_q_fails(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    rows.add("p", high - 1)
    rows.add()


def _always_before_r(rows: Rows, low: int, high: int) -> None:
    rows.add_at_random("p", high)
    rows.add("p", high)
    rows.add("pr")


def _always_before_r_fails(rows: Rows, low: int, high: int) -> None:
    rows.add()
    rows.add("p", high - 1)
    rows.add("pr")


def _always_between(rows: Rows, low: int, high: int) -> None:
    rows.add("qp")
    rows.add("p", rows.between(low, high - 1))
    rows.add("pr")
    rows.add()


def _always_between_fails(rows: Rows, low: int, high: int) -> None:
    rows.add("qp")
    rows.add("p", high + 1)
    rows.add("pr")


def _recurrence(rows: Rows, low: int, high: int) -> None:
    rows.add(times=rows.between(1, high) - 1)
    rows.add("p")


def _recurrence_fails(rows: Rows, low: int, high: int) -> None:
    rows.add(times=high + 1)


def _recurrence_between(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    gap = 1
    for _ in range(rows.between(FEWEST, MOST)):
        gap = rows.between(1, high)
        rows.add(times=gap - 1)
        rows.add("p")
    rows.add(times=gap - 1)
    rows.add("r")
    rows.add(times=gap - 1)


def _recurrence_between_fails(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    rows.add(times=high + 1)
    rows.add("r")


def _response(rows: Rows, low: int, high: int) -> None:
    rows.add("p")
    rows.add(times=rows.between(low + 1, high) - 1)
    rows.add("s")


def _response_fails(rows: Rows, low: int, high: int) -> None:
    rows.add("p")
    rows.add(times=high)


def _response_between(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    rows.add()
    for _ in range(rows.between(FEWEST, MOST)):
        _response(rows, low, high)
        rows.add()
    rows.add("r")


def _response_between_fails(rows: Rows, low: int, high: int) -> None:
    rows.add("q")
    rows.add("p")
    rows.add(times=high + 1)
    rows.add("r")


_ALL = [
    Property(
        "absence_after_q",
        "qp",
        lambda low, high: implies(once(Q, high), since(negated(P), Q)),
        lambda low, high: implies(Q, always(negated(P), high)),
        _absence_after_q,
        _absence_after_q_fails,
    ),
    Property(
        "absence_before_r",
        "pr",
        lambda low, high: implies(R, historically(negated(P), high)),
        lambda low, high: implies(eventually(R, high), until(negated(P), R, high)),
        _absence_before_r,
        _absence_before_r_fails,
    ),
    Property(
        "absence_between_q_and_r",
        "qpr",
        lambda low, high: implies(_AT_R, since(negated(P), Q, high, low)),
        lambda low, high: implies(_from_q(high, BETWEEN), until(negated(P), R, high, low)),
        _absence_between,
        _absence_between_fails,
        BETWEEN,
    ),
    Property(
        "always_after_q",
        "qp",
        lambda low, high: implies(once(Q, high), since(P, Q)),
        lambda low, high: implies(Q, always(P, high)),
        _always_after_q,
        _always_after_q_fails,
    ),
    Property(
        "always_before_r",
        "pr",
        lambda low, high: implies(R, historically(P, high)),
        lambda low, high: implies(eventually(R, high), until(P, R, high)),
        _always_before_r,
        _always_before_r_fails,
    ),
    Property(
        "always_between_q_and_r",
        "qpr",
        lambda low, high: implies(_AT_R, since(P, Q, high, low)),
        lambda low, high: implies(_from_q(high, BETWEEN), until(P, R, high, low)),
        _always_between,
        _always_between_fails,
        BETWEEN,
    ),
    Property(
        "recurrence_globally",
        "p",
        lambda low, high: once(P, high),
        lambda low, high: eventually(P, high),
        _recurrence,
        _recurrence_fails,
    ),
    Property(
        "recurrence_between_q_and_r",
        "qpr",
        lambda low, high: implies(_AT_R, since(once(either(P, Q), high), Q)),
        lambda low, high: implies(
            _from_q(high, BETWEEN_MANY),
            until(eventually(either(P, R), high), R, BETWEEN_MANY * high),
        ),
        _recurrence_between,
        _recurrence_between_fails,
        BETWEEN_MANY + 1,
    ),
    Property(
        "response_globally",
        "ps",
        lambda low, high: _answered(low, high),
        lambda low, high: implies(P, eventually(S, high, low)),
        _response,
        _response_fails,
    ),
    Property(
        "response_between_q_and_r",
        "qpsr",
        lambda low, high: implies(_AT_R, since(_answered(low, high), Q)),
        lambda low, high: implies(
            _from_q(high, BETWEEN_MANY),
            until(
                implies(P, until(negated(R), both(S, negated(R)), high, low)),
                R,
                BETWEEN_MANY * high,
            ),
        ),
        _response_between,
        _response_between_fails,
        BETWEEN_MANY + 1,
    ),
]
PROPERTIES = {one.name: one for one in _ALL}
