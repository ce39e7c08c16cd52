"""When a difference counts: where it is greater than what interleaved rounds differ by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["MARGIN", "Quartiles", "above", "quartiles", "shown"]

# First quartile, median, third quartile.
Quartiles = Sequence[float]

MARGIN = (
    "Numbers are medians of interleaved rounds, in brackets their quartiles. One is above another "
    "where these brackets do not overlap."
)


def quartiles(values: Sequence[float]) -> list[float]:
    """First quartile, median, third quartile of what was measured in rounds.

    >>> quartiles([4.0, 1.0, 2.0, 3.0, 5.0])
    [2.0, 3.0, 4.0]
    """
    return [float(value) for value in np.quantile(values, (0.25, 0.5, 0.75))]


def above(high: Quartiles, low: Quartiles) -> bool:
    """Whether the first is greater by more than the rounds differ.

    >>> above([2.0, 3.0, 4.0], [1.0, 1.5, 1.9])
    True
    >>> above([2.0, 3.0, 4.0], [1.0, 1.5, 2.0])
    False
    """
    return high[0] > low[2]


def shown(values: Quartiles, form: str = "{:.2f}") -> str:
    """The median, with the quartiles in brackets.

    >>> shown([1.8, 1.851, 1.9])
    '1.85 (1.80-1.90)'
    """
    low, middle, high = (form.format(value) for value in values)
    return f"{middle} ({low}-{high})"
