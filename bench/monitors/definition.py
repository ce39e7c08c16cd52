"""What a formula means, said of a finished trace in lists: who is right where two monitors differ.

It shares nothing with the compiler of rules, and takes the square of the events or more.

>>> import numpy as np
>>> from bench.monitors.definition import values
>>> from bench.monitors.formulas import atom, once
>>> columns = {"time": np.arange(4), "p": np.array([True, False, False, False])}
>>> values(once(atom("p"), within=2), columns)
[1.0, 1.0, 1.0, -1.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from bench.monitors.formulas import Formula

__all__ = ["values"]


def values(formula: Formula, columns: dict[str, np.ndarray]) -> list[float]:
    """The robustness at each event, where a bool is 1 or -1; its sign is truth."""
    times = columns["time"].tolist()
    every = range(len(times))
    if formula.word == "atom":
        return [1.0 if value else -1.0 for value in columns[formula.column]]
    if formula.word == "positive":
        return [float(value) for value in columns[formula.column]]
    parts = [values(part, columns) for part in formula.parts]
    left, right = parts[0], parts[-1]

    def near(i: int, j: int, after: float) -> bool:
        most = math.inf if formula.within is None else formula.within
        return bool(after <= abs(times[i] - times[j]) <= most)

    def most(found: Iterator[float]) -> float:
        return max(found, default=-math.inf)

    def least(found: Iterator[float]) -> float:
        return min(found, default=math.inf)

    def until(i: int) -> float:
        return most(min(right[j], least(iter(left[i:j]))) for j in future[i])

    def unless(i: int) -> float:
        return max(until(i), least(left[j] for j in every[i:] if near(i, j, 0)))

    past = [[j for j in range(i + 1) if near(i, j, formula.after)] for i in every]
    future = [[j for j in every[i:] if near(i, j, formula.after)] for i in every]
    meanings: dict[str, Callable[[int], float]] = {
        "not": lambda i: -left[i],
        "and": lambda i: min(left[i], right[i]),
        "or": lambda i: max(left[i], right[i]),
        "implies": lambda i: max(-left[i], right[i]),
        "previous_event": lambda i: left[i - 1] if i else -math.inf,
        "next_event": lambda i: left[i + 1] if i + 1 < len(times) else -math.inf,
        "once": lambda i: most(left[j] for j in past[i]),
        "historically": lambda i: least(left[j] for j in past[i]),
        "since": lambda i: most(min(right[j], least(iter(left[j + 1 : i + 1]))) for j in past[i]),
        "eventually": lambda i: most(left[j] for j in future[i]),
        "always": lambda i: least(left[j] for j in future[i]),
        "until": until,
        "unless": unless,
    }
    return [meanings[formula.word](i) for i in every]
