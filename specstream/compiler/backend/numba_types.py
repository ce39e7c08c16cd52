"""The Numba types of what an operator touches: run, state, views of arrays, event, emit.

Each is one pointer, to the ``struct ss_run`` of the worker that runs the operator; what differs is
what code is generated for an access. A view adds where in the state it lies.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from numba.core import types
from numba.extending import models, register_model

from specstream._native import lib
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS
from specstream.compiler.frontend.program import CompiledOperation, Program
from specstream.declarations.containers import Shape
from specstream.declarations.element_types import Number, Storage, storage_of
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Field, Layout, Space

__all__ = [
    "BASES",
    "BOOSTED",
    "EAGER",
    "PROFILED",
    "SPECULATIVE",
    "UNDOING",
    "VARIANTS",
    "Base",
    "BoostedType",
    "ContainerType",
    "EmitType",
    "EventType",
    "MovedStateType",
    "RecordType",
    "RecordsType",
    "RowsIterator",
    "RunType",
    "SlotType",
    "StateType",
    "Variant",
    "ViewType",
    "is_alone",
    "shape_type",
]

Variant = str
VARIANTS: dict[Variant, int] = {
    "plain": lib.SS_PLAIN,
    "transactional": lib.SS_TRANSACTIONAL,
    "log_free": lib.SS_LOG_FREE,
    "locked": lib.SS_LOCKED,
    "eager": lib.SS_EAGER,
    "timer": lib.SS_TIMER,
    "profiled": lib.SS_TRANSACTIONAL,
    "profiled_eager": lib.SS_EAGER,
}
# What takes the place of a variant where an engine profiles: the same, and it logs the lines.
PROFILED: dict[Variant, Variant] = {"transactional": "profiled", "eager": "profiled_eager"}
# An operation on a boosted field: direct access with an undo log, to the state or to its shadow.
BOOSTED: Variant = "boosted"
UNDOING = ("plain", BOOSTED)
# Access to the state goes through a protocol.
SPECULATIVE = (*PROFILED, *PROFILED.values())
EAGER = ("eager", PROFILED["eager"])


def is_alone(variant: Variant) -> bool:
    """Whether nobody else changes the state meanwhile: neither speculation nor other threads that
    hold locks of the operator."""
    return variant not in SPECULATIVE and variant != "locked"


class _Pointer(types.Type):
    """A type whose values are the pointer to the run, told apart by name."""


class RunType(_Pointer):
    """The running transaction, under one variant."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        super().__init__(f"specstream.run({variant})")


class StateType(_Pointer):
    """The state of an operator."""

    def __init__(self, layout: Layout, variant: Variant, program: Program) -> None:
        self.layout = layout
        self.variant = variant
        self.program = program
        # The layout has the operations' names only; the code behind them is the program's.
        code = hashlib.sha256(program.fingerprint.encode()).hexdigest()
        ending = f", {code}" if layout.operations else ""
        ending += ", arena" if program.uses_arena else ""
        ending += ", frozen" if program.reads_frozen else ""
        ending += ", python" if program.calls_python else ""
        # Types of one name are one object to Numba, with the program of the first of them.
        ending += f", ahead {program.look_ups}" if program.look_ups else ""
        super().__init__(f"specstream.state({variant}, {layout}{ending})")


# Words of the scratch that say how far the containers of a state are moved: their headers, their
# regions, their numbers, and the words that count their changes.
BASES = ("header", "region", "number", "change")
Base = Literal["header", "region", "number", "change"]


class MovedStateType(StateType):
    """The state of an operator whose fields lie behind those of others: how far is known when it
    runs, so that several such operators share their code. It has no timers, no boosted fields and
    no locks. How far its containers are moved stands in the scratch (:data:`BASES`)."""

    def __init__(self, layout: Layout, variant: Variant, program: Program) -> None:
        super().__init__(layout, variant, program)
        types.Type.__init__(self, f"moved {self.name}")


class BoostedType(_Pointer):
    """A boosted field: what can be done with it is to call its operations."""

    def __init__(self, state: StateType, field: Field) -> None:
        self.state = state
        self.field = field
        super().__init__(f"specstream.boosted({field.name}, {state.name})")

    def operation(self, name: str) -> tuple[int, CompiledOperation] | None:
        """Of Numba's type of a boosted field: an operation by its name, and its number.

        None: no such name.
        """
        layout = self.state.layout
        for number, (field, one) in enumerate(layout.operations):
            if field == self.field and one.name == name:
                return layout.first_operation + number, self.state.program.operations[number]
        return None

    def view(self, variant: Variant) -> ViewType:
        """What an operation gets as the field."""
        return ViewType(self.field.storage, len(self.field.shape), "state", variant)


class ContainerType(_Pointer):
    """A container of the state, by its field. Each kind has a class of its own."""

    def __init__(self, state: StateType, field: Field) -> None:
        assert field.container is not None
        self.state = state
        self.field = field
        self.container = field.container
        self.number = state.layout.container_number(field)
        super().__init__(f"specstream.state_{self.container.kind}({field.name}, {state.name})")

    @property
    def is_moved(self) -> bool:
        """Whether where it lies is known when it runs."""
        return isinstance(self.state, MovedStateType)


class EventType(_Pointer):
    """The running event."""

    methods_of = "event"

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.lacks = "the event has no column"
        self.names = (*schema.names, "timestamp", "source", "sequence")
        super().__init__(f"specstream.event({schema})")


class EmitType(_Pointer):
    """Where rows go."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        super().__init__(f"specstream.emit({schema})")


class ViewType(types.IterableType):
    """An array field, or a row or slice of one: a window of elements, no copy."""

    methods_of = "array"

    def __init__(
        self, storage: Storage, ndim: int, space: Space | Literal["range"], variant: Variant
    ) -> None:
        self.storage = storage
        self.ndim = ndim
        self.space = space
        self.variant = variant
        super().__init__(f"specstream.view({storage.name}, {ndim}, {space}, {variant})")

    @property
    def is_frozen(self) -> bool:
        """Whether it is an array of a module."""
        return self.variant == "frozen"

    @property
    def is_logged(self) -> bool:
        """Of Numba's type of arrays: whether reads are logged, neighbouring ones together."""
        speculative = self.space == "state" and self.variant in SPECULATIVE
        return speculative and not self.storage.is_narrow

    @property
    def kind(self) -> Number:
        """What a read of an element gives."""
        return self.storage.number

    def with_ndim(self, ndim: int) -> types.Type:
        """The Numba type of such a view with fewer axes; where ``ndim`` is 0, of an element."""
        if ndim == 0:
            return NUMBA_KINDS[self.kind]
        return ViewType(self.storage, ndim, self.space, self.variant)

    @property
    def iterator_type(self) -> types.Type:
        return RowsIterator(self)


class _OfRecords(types.Type):
    """A type that is about records of a class, by what they are to code."""

    what: str

    def __init__(self, shape: Shape, variant: Variant, *more: object) -> None:
        assert shape.record is not None
        self.shape = shape
        self.variant = variant
        cls = shape.record
        named = (
            f"{cls.__module__}.{cls.__qualname__}, {', '.join(map(str, (shape, variant, *more)))}"
        )
        super().__init__(f"specstream.{self.what}({named})")

    @property
    def class_name(self) -> str:
        assert self.shape.record is not None
        return self.shape.record.__name__


class RecordType(_OfRecords):
    """A record: the address of its object (``object.c``)."""

    what = "record"


class SlotType(_OfRecords):
    """A record of the state of which a field is read or written at once, and no name is given
    away: where it is."""

    what = "slot"


class RecordsType(_OfRecords, types.IterableType):
    """An array field of records, or a part of one: a window of records, no copy.

    Attributes:
        ndim: axes; those of the view of the words are one more.
        view: of these.
    """

    what = "records"

    def __init__(self, shape: Shape, ndim: int, variant: Variant) -> None:
        super().__init__(shape, variant, ndim)
        self.ndim = ndim
        self.view = ViewType(storage_of(int, "a word"), ndim + 1, "state", variant)

    def with_ndim(self, ndim: int) -> types.Type:
        """Numba's type of an array of records with fewer axes; of one record (``ndim`` 0)."""
        if ndim == 0:
            return RecordType(self.shape, self.variant)
        return RecordsType(self.shape, ndim, self.variant)

    @property
    def iterator_type(self) -> types.Type:
        return RowsIterator(self)


class RowsIterator(types.SimpleIteratorType):
    """Walks along the first axis of a view, or of an array of records."""

    def __init__(self, of: ViewType | RecordsType) -> None:
        self.of = of
        super().__init__(f"iter({of.name})", of.with_ndim(of.ndim - 1))


def shape_type(shape: Shape, variant: Variant | None = None) -> types.Type:
    """What a key, value or element of a container is when it is read.

    Args:
        variant: of who reads, for what may be a record; no key is.
    """
    if shape.record is not None:
        assert variant is not None
        return RecordType(shape, variant)
    parts = [NUMBA_KINDS[part.number] for part in shape.parts]
    return types.BaseTuple.from_types(parts) if shape.is_tuple else parts[0]


for _pointer in (RunType, StateType, BoostedType, EventType, EmitType, RecordType):
    register_model(_pointer)(models.OpaqueModel)


@register_model(MovedStateType)
class _MovedStateModel(models.StructModel):
    def __init__(self, manager: object, state: MovedStateType) -> None:
        # In words, of each space.
        members = [("run", types.voidptr), ("state", types.int64), ("scratch", types.int64)]
        super().__init__(manager, state, members)


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


@register_model(SlotType)
class _SlotModel(models.StructModel):
    def __init__(self, manager: object, place: SlotType) -> None:
        super().__init__(manager, place, [("run", types.voidptr), ("word", types.int64)])


@register_model(RecordsType)
class _RecordsModel(_ViewModel):
    def __init__(self, manager: object, records: RecordsType) -> None:
        super().__init__(manager, records.view)


@register_model(RowsIterator)
class _RowsIteratorModel(models.StructModel):
    def __init__(self, manager: object, iterator: RowsIterator) -> None:
        members = [("of", iterator.of), ("next", types.EphemeralPointer(types.int64))]
        super().__init__(manager, iterator, members)
