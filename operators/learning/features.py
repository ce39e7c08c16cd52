"""Feature vectors: columns of floats that the user of an operator names.

An operator has the names from the function that makes it, and reads such a column by
``getattr(event, name)``. What all of these operators refuse is here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from specstream.declarations.chosen_columns import column_name
from specstream.declarations.options import items, refused

__all__ = ["MOST", "check_features", "column_names"]

MOST = 256


def column_names(option: str, features: object, taken: Collection[str] = ()) -> tuple[str, ...]:
    """The names of the features, as a tuple; ``taken`` are those of the operator's other columns.

    >>> column_names("network: features", ["x", "y"])
    ('x', 'y')

    Raises:
        ConfigurationError: they are not 1 to 256 names, of which each can be that of a column.
    """
    expected = f"1 to {MOST} different names of columns"
    names = items(option, features, expected)
    for name in names:
        column_name(option, name, taken)
    if not 1 <= len(names) <= MOST or len(set(names)) < len(names):
        raise refused(option, features, expected)
    return names


def check_features(x: Sequence[float], operator: str, names: tuple[str, ...]) -> None:
    """Refuses features that would spoil sums for good, as a NaN does, or whose squares overflow."""
    for i in range(len(x)):
        if not -1e100 <= x[i] <= 1e100:
            raise ValueError(f"{operator}: {names[i]}={x[i]}; expected a number up to 1e100")
