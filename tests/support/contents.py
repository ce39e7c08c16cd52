"""What containers of a state hold, in a form that compares bit for bit."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import specstream as ss
from specstream.declarations.container_views import values_of
from specstream.declarations.records import record_fields

NAN = float("nan")


def contents(values: Any) -> list[Any]:
    """The entries or elements, in their order; those of a dict as pairs, records as tuples."""
    if isinstance(values, ss.Record):
        return [exact(values)]
    if isinstance(values, np.ndarray):
        values = values.reshape(-1).tolist()
    items: Iterable[Any] = values.items() if isinstance(values, Mapping) else values
    return [exact(one) for one in items]


def exact(value: Any) -> Any:
    """A value by its bits; there is one NaN."""
    if isinstance(value, ss.Record):
        return tuple(exact(getattr(value, one.name)) for one in record_fields(type(value)))
    if isinstance(value, tuple):
        return tuple(map(exact, value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return struct.pack("d", NAN if value != value else value)
    return int(value)


def of_view(view: Any) -> dict[str, Any]:
    """All fields; containers and records as lists of what is in them."""
    fields: dict[str, Any] = view.to_dict()
    for field in view._layout.containers:
        # Not of the dict: a set has no order there, and a heap another one than its own.
        held = getattr(view, field.name)
        if field.container.kind == "priority_queue":
            held = values_of(field.container.value, *view._rows_and_texts(field))
        fields[field.name] = contents(held)
    for field in view._layout.fields:
        if field.record is not None:
            fields[field.name] = contents(fields[field.name])
    return fields
