"""Containers of the state, as interpreted operators see them: with the methods of Python's own."""

from __future__ import annotations

from typing import Any

from specstream.compiler.oracle_objects.keyed import keyed
from specstream.compiler.oracle_objects.sequences import sequence
from specstream.declarations.state_layout import Field, Layout
from specstream.interpreted.coded import Begin
from specstream.interpreted.logged import LoggedEntries
from specstream.interpreted.logged_sequence import LoggedSequence
from specstream.interpreted.memory import Memory
from specstream.interpreted.records import CellRecords, Records

__all__ = ["make_container"]


def make_container(field: Field, layout: Layout, run: Any, elements: Any, begin: Begin) -> Any:
    """A container over a backend."""
    of, number, codec = field.container, layout.container_number(field), elements.codec
    assert of is not None
    what, value = f"state.{field.name}", of.value
    has_records = value.record is not None
    store: Any
    if isinstance(run, Memory):
        cells = CellRecords(what, value, codec, run.journal, begin) if has_records else None
        store = run.store(number, codec, cells)
    else:
        slots = Records(what, value, elements.of, begin) if has_records else None
        if of.is_keyed:
            store = LoggedEntries(field, number, run, codec, elements.of, slots)
        else:
            store = LoggedSequence(field, number, run, elements.of, slots)
    return keyed(store, codec) if of.is_keyed else sequence(store, codec)
