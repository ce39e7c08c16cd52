"""The first place at which what was replayed is not what was recorded, bit for bit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.declarations.records import Record
from specstream.declarations.state_view import StateView

__all__ = ["Difference", "first_difference", "first_difference_of_states"]


@dataclass(frozen=True)
class Difference:
    """A place, and what is there.

    Attributes:
        where: "error", "columns", "output", "state", "failed", for failed events, or "waiting", for
            the events that wait for the frontier of their source.
        name: of the column or field, or of what it is of a source.
        index: the row of the output, or the indices of the field's element; () for a scalar.
        recorded: what the record has there; None also where it has nothing.
        replayed: what the replay has there.

    >>> print(Difference("state", "counts", (2, 5), 7, 8))
    state.counts[2, 5]: recorded 7, replayed 8
    """

    where: str
    name: str
    index: tuple[int, ...]
    recorded: Any
    replayed: Any

    def __str__(self) -> str:
        place = {"error": "error", "columns": "columns of the output"}.get(self.where)
        if place is None and self.where == "output":
            place = f"output row {self.index[0]}" + (f", column {self.name!r}" if self.name else "")
        elif place is None and self.where == "waiting":
            place = "waiting events" + "".join(f", row {at}" for at in self.index)
            place += f", {self.name}" if self.name else ""
        elif place is None and self.where == "failed":
            place = "failed events" + "".join(f", row {at}" for at in self.index)
            place += f", column {self.name!r}" if self.name else ""
        elif place is None:
            place = f"state.{self.name}"
            place += f"[{', '.join(map(str, self.index))}]" if self.index else ""
        return f"{place}: recorded {_shown(self.recorded)}, replayed {_shown(self.replayed)}"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return value if isinstance(value, str) and ": " in value else repr(value)


def first_difference(recorded: pa.Table, replayed: pa.Table) -> Difference | None:
    """The first row that differs, and in it the first column; None: all are the same.

    >>> one = pa.table({"x": [1, 2], "y": [0.5, 0.0]})
    >>> other = pa.table({"x": [1, 2], "y": [0.5, -0.0]})
    >>> print(first_difference(one, other))
    output row 1, column 'y': recorded 0.0, replayed -0.0
    """
    columns = [[f"{field.name}: {field.type}" for field in t.schema] for t in (recorded, replayed)]
    if columns[0] != columns[1]:
        return Difference("columns", "", (), *columns)
    rows = min(recorded.num_rows, replayed.num_rows)
    first, name = rows, ""
    for column in recorded.column_names:
        one, other = (table.column(column).slice(0, rows) for table in (recorded, replayed))
        differs = _differs(one, other)
        if differs.any() and int(differs.argmax()) < first:
            first, name = int(differs.argmax()), column
    if name:
        values = (table.column(name)[first].as_py() for table in (recorded, replayed))
        return Difference("output", name, (first,), *values)
    if recorded.num_rows == replayed.num_rows:
        return None
    both = (recorded, replayed)
    found = (t.slice(rows, 1).to_pylist()[0] if t.num_rows > rows else None for t in both)
    return Difference("output", "", (rows,), *found)


def _differs(one: pa.ChunkedArray, other: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Where two columns of one type differ, a null from every value."""
    nulls = pc.not_equal(one.is_null(), other.is_null())
    if pa.types.is_floating(one.type):
        # By their bits: a NaN is itself, and the two zeros are two.
        bits = [c.fill_null(0.0).to_numpy().view(np.int64) for c in (one, other)]
        values = bits[0] != bits[1]
    else:
        values = pc.not_equal(one, other).fill_null(False).to_numpy()
    return np.asarray(values | nulls.to_numpy(), np.bool_)


def first_difference_of_states(recorded: StateView, replayed: StateView) -> Difference | None:
    """The first field in which two states of one layout differ, and in it the first element.

    Of a container it is the first entry or element, in their order, with its place for an index.
    """
    for name in dir(recorded):
        one, other = (getattr(state, name) for state in (recorded, replayed))
        if isinstance(one, Record):
            found = _first_of_rows(name, [one], [other], ())
        elif isinstance(one, np.ndarray) and one.dtype.names:
            found = _first_of_rows(
                name, one.reshape(-1).tolist(), other.reshape(-1).tolist(), one.shape
            )
        elif isinstance(one, np.ndarray) or not isinstance(one, Collection) or isinstance(one, str):
            found = _first_of_elements(name, _elements(one), _elements(other))
        elif isinstance(one, Mapping):
            found = _first_of_rows(name, list(one.items()), list(other.items()))
        else:
            found = _first_of_rows(name, list(one), list(other))
        if found is not None:
            return found
    return None


def _elements(value: Any) -> npt.NDArray[Any]:
    return np.asarray(value, object if isinstance(value, str) else None)


def _first_of_elements(
    name: str, one: npt.NDArray[Any], other: npt.NDArray[Any]
) -> Difference | None:
    if one.dtype.names is not None:  # records, by their texts as below
        pairs = zip(one.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)
        differs = np.array([repr(recorded) != repr(replayed) for recorded, replayed in pairs])
    elif one.dtype == object:
        differs = (one != other).reshape(-1)
    else:
        size = one.dtype.itemsize
        bits = [np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (one, other)]
        differs = (bits[0] != bits[1]).reshape(-1, size).any(axis=1)
    if not differs.any():
        return None
    at = int(differs.argmax())
    index = tuple(map(int, np.unravel_index(at, one.shape)))
    values = (each.reshape(-1).tolist()[at] for each in (one, other))
    return Difference("state", name, index, *values)


def _first_of_rows(
    name: str, one: list[Any], other: list[Any], shape: tuple[int, ...] | None = None
) -> Difference | None:
    """Between entries, elements or records, in their order; the shape is that of an array."""
    for at, (recorded, replayed) in enumerate(zip_longest(one, other)):
        # By their texts: the two zeros are two, a NaN is itself, and True is not 1.
        if repr(recorded) != repr(replayed):
            index = (at,) if shape is None else tuple(map(int, np.unravel_index(at, shape)))
            return Difference("state", name, index, recorded, replayed)
    return None
