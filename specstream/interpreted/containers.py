"""Containers of the state, as interpreted operators see them: with the methods of Python's own."""

from __future__ import annotations

from typing import Any

from specstream.declarations.state_layout import Field, Layout
from specstream.interpreted.coded import Begin, ElementsOf
from specstream.interpreted.keyed import Entries, StateDict, StateSet, StateTimers
from specstream.interpreted.sequences import StateDeque, StateList, StateQueue

__all__ = ["make_container"]


def make_container(
    field: Field, layout: Layout, run: Any, elements_of: ElementsOf, begin: Begin
) -> Any:
    """A container over a backend."""
    assert field.container is not None
    kind, number = field.container.kind, layout.container_number(field)
    if kind in ("dict", "set", "timers"):
        entries = Entries(field, number, run, elements_of, begin)
        made: Any = {"dict": StateDict, "set": StateSet, "timers": StateTimers}[kind]
        return made(entries)
    if kind == "deque":
        return StateDeque(field, number, run, elements_of, begin)
    items = StateList(field, number, run, elements_of, begin)
    return StateQueue(items) if kind == "priority_queue" else items
