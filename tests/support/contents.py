"""What containers of a state hold, in a form that compares bit for bit."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from specstream.declarations import container_words
from specstream.declarations.state import Field

NAN = float("nan")


def contents(values: Any) -> list[Any]:
    """The entries or elements, in their order; those of a dict as pairs."""
    items: Iterable[Any] = values.items() if isinstance(values, Mapping) else values
    return [exact(one) for one in items]


def exact(value: Any) -> Any:
    """A value by its bits; there is one NaN."""
    if isinstance(value, tuple):
        return tuple(map(exact, value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return struct.pack("d", NAN if value != value else value)
    return int(value)


def of_view(view: Any) -> dict[str, Any]:
    """All fields; containers as lists of what is in them."""
    fields: dict[str, Any] = view.to_dict()
    for field in view._layout.containers:
        if isinstance(fields[field.name], np.ndarray):
            fields[field.name] = of_words(view, field)
        fields[field.name] = contents(fields[field.name])
    return fields


def of_words(view: Any, field: Field) -> list[Any]:
    of = field.container
    assert of is not None
    rows = container_words.entries(view._memory, field)
    columns: list[list[Any]] = []
    for part, column in zip((*of.key.parts, *of.value.parts), rows.T, strict=True):
        if part.number == "str":
            columns.append(view._texts(column).tolist())
        elif part.number == "float":
            columns.append(column.copy().view(np.float64).tolist())
        else:
            columns.append(column.tolist())
    keys = list(zip(*columns[: of.key.words], strict=True)) if of.is_keyed else []
    values = list(zip(*columns[of.key.words :], strict=True))
    keys = keys if of.key.is_tuple else [key for (key,) in keys]
    values = values if of.value.is_tuple else [value for (value,) in values]
    if of.kind == "set":
        return keys
    return list(zip(keys, values, strict=True)) if of.is_keyed else values
