"""Containers of the state, as interpreted operators see them: with the methods of Python's own."""

from __future__ import annotations

from typing import Any

from specstream.compiler.oracle_objects.keyed import keyed
from specstream.declarations.state_layout import Field, Layout
from specstream.interpreted.coded import Begin, PlainCodec
from specstream.interpreted.logged import LoggedEntries
from specstream.interpreted.memory import Memory
from specstream.interpreted.records import Records
from specstream.interpreted.sequences import StateDeque, StateList, StateQueue
from specstream.interpreted.sets import StateSet

__all__ = ["make_container"]


def make_container(field: Field, layout: Layout, run: Any, elements: Any, begin: Begin) -> Any:
    """A container over a backend."""
    of, number, codec = field.container, layout.container_number(field), elements.codec
    assert of is not None
    if of.is_keyed:
        return keyed(_store(field, number, run, elements, begin), codec, StateSet)
    if of.kind == "deque":
        return StateDeque(field, number, run, elements, begin)
    items = StateList(field, number, run, elements, begin)
    return StateQueue(items) if of.kind == "priority_queue" else items


def _store(field: Field, number: int, run: Any, elements: Any, begin: Begin) -> Any:
    """Where the entries of a dict, a set or timers lie."""
    codec: PlainCodec = elements.codec
    records = None
    assert field.container is not None
    if field.container.value.record is not None:
        what = f"state.{field.name}"
        records = Records(what, field.container.value, elements.of, begin)
    if isinstance(run, Memory):
        return run.keyed(number, codec, records)
    return LoggedEntries(field, number, run, codec, elements.of, records)
