"""Comparing two runs bit for bit: rows that were emitted, and state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["first_difference_in_rows", "first_difference_in_state"]


def _bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Floats as their bits, so that NaN equals itself and 0.0 differs from -0.0."""
    return values.view(np.int64) if values.dtype == np.float64 else values


def first_difference_in_rows(expected: pa.Table, found: pa.Table) -> str | None:
    """Where two tables of emitted rows differ first, in words; None where they are identical.

    >>> import pyarrow as pa
    >>> first_difference_in_rows(pa.table({"count": [1, 2]}), pa.table({"count": [1, 3]}))
    "row 1, column 'count': expected 2, found 3"
    """
    if expected.column_names != found.column_names:
        return f"columns: expected {expected.column_names}, found {found.column_names}"
    rows = min(expected.num_rows, found.num_rows)
    first: tuple[int, str] | None = None
    for name in expected.column_names:
        left, right = expected[name].slice(0, rows), found[name].slice(0, rows)
        if left.type != right.type:
            return f"column {name!r}: expected type {left.type}, found {right.type}"
        if pa.types.is_floating(left.type):
            unequal = _bits(left.to_numpy()) != _bits(right.to_numpy())
            differs = bool(unequal.any())
        else:
            differs = not left.equals(right)
            if differs:
                unequal = np.array(
                    [a != b for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)]
                )
        if differs:
            row = int(np.flatnonzero(unequal)[0])
            if first is None or row < first[0]:
                first = (
                    row,
                    f"row {row}, column {name!r}: expected {left[row].as_py()!r}, "
                    f"found {right[row].as_py()!r}",
                )
    if first is not None:
        return first[1]
    if expected.num_rows != found.num_rows:
        return f"expected {expected.num_rows} rows, found {found.num_rows}"
    return None


def first_difference_in_state(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Where two states, as dictionaries of arrays, differ first; None where they are identical.

    >>> import numpy as np
    >>> first_difference_in_state({"sums": np.array([0.0, 1.0])}, {"sums": np.array([-0.0, 1.0])})
    'state sums[0]: expected 0.0, found -0.0'
    """
    if list(expected) != list(found):
        return f"state: expected fields {list(expected)}, found {list(found)}"
    for name, values in expected.items():
        left, right = np.asarray(values), np.asarray(found[name])
        if left.shape != right.shape or left.dtype != right.dtype:
            return f"state {name}: {left.dtype}{left.shape} and {right.dtype}{right.shape}"
        unequal = np.argwhere(_bits(left) != _bits(right))
        if len(unequal):
            at = tuple(int(index) for index in unequal[0])
            place = ", ".join(map(str, at))
            return f"state {name}[{place}]: expected {left[at]}, found {right[at]}"
    return None
