"""Where another monitor says something else than rules, by the smallest formula and trace.

Rules say what the definition says (:mod:`bench.monitors.definition`), which the tests hold against
it, and what the other one says against the other one. ``python -m bench agreement`` looks for more.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.monitors import formulas
from bench.monitors.definition import values
from bench.monitors.formulas import (
    Formula,
    atom,
    both,
    either,
    eventually,
    negated,
    next_event,
    once,
    positive,
    previous_event,
    since,
    unless,
    until,
)

__all__ = ["DIFFERENCES", "Known"]

P, Q, X, Y = atom("p"), atom("q"), positive("x"), positive("y")
YES, NO = True, False


@dataclass(frozen=True)
class Known:
    """A difference.

    Attributes:
        peer: who says something else.
        formula: ours.
        theirs: the same in its words.
        columns: of the trace, whose n-th event has time n.
        at: the event.
        said: what it says of that event: a verdict or a robustness, None: nothing; or a text, the
            class of the error that it raises.
        because: why.
        robust: whether it is about the robustness.
    """

    peer: str
    formula: Formula
    theirs: str
    columns: Mapping[str, Sequence[float]]
    at: int
    said: bool | float | str | None
    because: str
    robust: bool = False

    @property
    def trace(self) -> dict[str, np.ndarray]:
        """The columns with times."""
        made = {name: np.array(column) for name, column in self.columns.items()}
        return {"time": np.arange(len(next(iter(made.values())))), **made}

    @property
    def ours(self) -> bool | float:
        """What the definition says of the event, and so do rules."""
        value = values(self.formula, self.trace)[self.at]
        return value + 0.0 if self.robust else value > 0

    @property
    def text(self) -> str:
        """What the rule returns."""
        return formulas.rule(self.formula).rpartition("return ")[2].strip()


DIFFERENCES = [
    Known(
        "reelay",
        once(Q, 0),
        "once[:0] ({q})",
        {"q": [YES, NO]},
        1,
        True,
        "An upper bound of 0 is none there.",
    ),
    Known(
        "reelay",
        previous_event(X),
        "pre ({x >= 0})",
        {"x": [1.0]},
        0,
        -sys.float_info.max,
        "Where there is no event, it has the least float.",
        robust=True,
    ),
    Known(
        "reelay",
        since(X, Y, after=1),
        "({x >= 0}) since[1:] ({y >= 0})",
        {"x": [1.0, -2.0], "y": [3.0, -1.0]},
        1,
        -1.0,
        "The only event that is far enough away has y = 3, and x is -2 after it: -2 is the least of"
        " both. Its verdict is ours.",
        robust=True,
    ),
    Known(
        "mstlo",
        until(P, Q, 0),
        "(p > 0.5) U[0,0] (q > 0.5)",
        {"p": [NO], "q": [YES]},
        0,
        False,
        "Its U asks for the left side at the event of the right one, too, as some authors have it.",
    ),
    Known(
        "mstlo",
        eventually(P, 1),
        "F[0,1] (p > 0.5)",
        {"p": [NO]},
        0,
        None,
        "It tells nothing of an event whose window is open at the end; rules tell it as soon as"
        " time has passed.",
    ),
    Known(
        "rtamt",
        previous_event(P),
        "prev (x_p)",
        {"p": [NO, NO]},
        0,
        True,
        "Its prev holds where there is no event; its s_prev is ours.",
    ),
    Known(
        "rtamt",
        next_event(P),
        "next (x_p)",
        {"p": [NO, NO]},
        1,
        True,
        "Likewise its next; its s_next is ours.",
    ),
    Known(
        "rtamt",
        either(both(X, Y), both(negated(X), negated(Y))),
        "(x_x) iff (x_y)",
        {"x": [1.0, 1.0], "y": [3.0, 3.0]},
        0,
        -2.0,
        "Its iff is -abs(x - y), which is negative where both hold.",
        robust=True,
    ),
    Known(
        "rtamt",
        negated(X),
        "not (x_x)",
        {"x": [0.0, 0.0]},
        0,
        -0.0,
        "It has a minus zero; rules have none, so that equal values have equal bits.",
        robust=True,
    ),
    Known(
        "rtamt",
        once(P),
        "once (x_p)",
        {"p": [YES]},
        0,
        "UnboundLocalError",
        "It takes no trace of one event.",
    ),
    Known(
        "rtamt",
        unless(P, Q),
        "(x_p) unless (x_q)",
        {"p": [YES, YES], "q": [NO, NO]},
        0,
        "AttributeError",
        "It has no unless without a bound.",
    ),
    Known(
        "rtamt",
        unless(P, Q, 3),
        "(x_p) unless[0:3] (x_q)",
        {"p": [YES, YES], "q": [NO, NO]},
        0,
        "IndexError",
        "Bounds of its unless do not reach beyond the trace.",
    ),
]
