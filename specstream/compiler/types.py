"""The Numba types of what an operator touches: run, state, views of arrays, event, emit.

Each is one pointer, to the ``struct ss_run`` of the worker that runs the operator; what differs is
what code is generated for an access. A view adds where in the state it lies.
"""

from __future__ import annotations

from typing import Literal

from numba.core import types
from numba.extending import models, register_model

from specstream._native import lib
from specstream.schema import Schema
from specstream.state import Layout, Space
from specstream.storage import Number, Storage

__all__ = [
    "EAGER",
    "NUMBA_KINDS",
    "PROFILED",
    "SPECULATIVE",
    "VARIANTS",
    "EmitType",
    "EventType",
    "RunType",
    "StateType",
    "Variant",
    "ViewIterator",
    "ViewType",
]

Variant = str
VARIANTS: dict[Variant, int] = {
    "plain": lib.SS_PLAIN,
    "transactional": lib.SS_TRANSACTIONAL,
    "log_free": lib.SS_LOG_FREE,
    "locked": lib.SS_LOCKED,
    "eager": lib.SS_EAGER,
    "profiled": lib.SS_TRANSACTIONAL,
    "profiled_eager": lib.SS_EAGER,
}
# What takes the place of a variant where an engine profiles: the same, and it logs the lines.
PROFILED: dict[Variant, Variant] = {"transactional": "profiled", "eager": "profiled_eager"}
# Access to the state goes through a protocol.
SPECULATIVE = (*PROFILED, *PROFILED.values())
EAGER = ("eager", PROFILED["eager"])

NUMBA_KINDS: dict[str, types.Type] = {
    "int": types.int64,
    "uint": types.uint64,
    "float": types.float64,
    "bool": types.boolean,
    "str": types.int64,
}


class _Pointer(types.Type):
    """A type whose values are the pointer to the run, told apart by name."""


class RunType(_Pointer):
    """The running transaction, under one variant."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        super().__init__(f"specstream.run({variant})")


class StateType(_Pointer):
    """The state of an operator."""

    def __init__(self, layout: Layout, variant: Variant) -> None:
        self.layout = layout
        self.variant = variant
        super().__init__(f"specstream.state({variant}, {layout})")


class EventType(_Pointer):
    """The running event."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        super().__init__(f"specstream.event({schema})")


class EmitType(_Pointer):
    """Where rows go."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        super().__init__(f"specstream.emit({schema})")


class ViewType(types.IterableType):
    """An array field, or a row or slice of one: a window of elements, no copy."""

    def __init__(
        self, storage: Storage, ndim: int, space: Space | Literal["range"], variant: Variant
    ) -> None:
        self.storage = storage
        self.ndim = ndim
        self.space = space
        self.variant = variant
        super().__init__(f"specstream.view({storage.name}, {ndim}, {space}, {variant})")

    @property
    def is_logged(self) -> bool:
        """Reads of its elements go to a log, which can take neighbouring ones together."""
        speculative = self.space == "state" and self.variant in SPECULATIVE
        return speculative and not self.storage.is_narrow

    @property
    def kind(self) -> Number:
        """What a read of an element gives."""
        return self.storage.number

    def with_ndim(self, ndim: int) -> types.Type:
        """The type of an element (``ndim`` 0) or of a view with fewer axes."""
        if ndim == 0:
            return NUMBA_KINDS[self.kind]
        return ViewType(self.storage, ndim, self.space, self.variant)

    @property
    def iterator_type(self) -> types.Type:
        return ViewIterator(self)


class ViewIterator(types.SimpleIteratorType):
    """Walks along the first axis of a view."""

    def __init__(self, view: ViewType) -> None:
        self.view = view
        super().__init__(f"iter({view.name})", view.with_ndim(view.ndim - 1))


for _pointer in (RunType, StateType, EventType, EmitType):
    register_model(_pointer)(models.OpaqueModel)


@register_model(ViewType)
class _ViewModel(models.StructModel):
    def __init__(self, manager: object, view: ViewType) -> None:
        lengths = types.UniTuple(types.int64, view.ndim)
        members = [
            ("run", types.voidptr),
            ("offset", types.int64),  # first element; counted from the start of the space, as below
            ("shape", lengths),
            ("strides", lengths),  # in elements of this size
        ]
        super().__init__(manager, view, members)


@register_model(ViewIterator)
class _ViewIteratorModel(models.StructModel):
    def __init__(self, manager: object, iterator: ViewIterator) -> None:
        members = [("view", iterator.view), ("next", types.EphemeralPointer(types.int64))]
        super().__init__(manager, iterator, members)
