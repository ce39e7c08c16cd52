"""Lists, deques and priority queues of the state: Numba's types of them, and what fits into one."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from numba.core import types
from numba.extending import models, register_model

from specstream.compiler.backend.none_types import present
from specstream.compiler.backend.numba_types import ContainerType, shape_type
from specstream.compiler.backend.scalar_kinds import check_kind
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.state_fields import CONTAINER_TYPES
from specstream.compiler.library.state_records import stored_record

__all__ = [
    "DequeField",
    "ListField",
    "QueueField",
    "SequenceIterator",
    "SequenceType",
    "refuse_none",
    "refuse_queue",
    "refuse_slice",
    "stored",
]


class SequenceType(ContainerType, types.IterableType):
    """A list, deque or priority queue of the state."""

    @property
    def element(self) -> types.Type:
        """What it holds."""
        return shape_type(self.container.value, self.state.variant)

    @property
    def iterator_type(self) -> types.Type:
        return SequenceIterator(self, False)


class ListField(SequenceType):
    """``ss.list``."""

    methods_of = "list"


class DequeField(SequenceType):
    """``ss.deque``."""

    methods_of = "deque"


class QueueField(SequenceType):
    """``ss.priority_queue``."""

    methods_of = "priority_queue"


CONTAINER_TYPES |= {"list": ListField, "deque": DequeField, "priority_queue": QueueField}
for _kind in (ListField, DequeField, QueueField):
    register_model(_kind)(models.OpaqueModel)


class SequenceIterator(types.SimpleIteratorType):
    """Goes through one, forwards or backwards."""

    def __init__(self, walked: SequenceType, backwards: bool) -> None:
        self.walked = walked
        self.backwards = backwards
        super().__init__(f"specstream.iterator({walked.name}, {backwards})", walked.element)


@register_model(SequenceIterator)
class _SequenceIteratorModel(models.StructModel):
    def __init__(self, manager: object, of: SequenceIterator) -> None:
        members = [
            ("walked", of.walked),
            ("next", types.EphemeralPointer(types.int64)),
            ("count", types.EphemeralPointer(types.int64)),
            ("changes", types.EphemeralPointer(types.int64)),  # when they were counted
            ("start", types.int64),
            ("mask", types.int64),
        ]
        super().__init__(manager, of, members)


def stored(of: SequenceType, given: types.Type) -> types.Type:
    """As what type a sequence of the state keeps a value; refuses one that does not fit."""
    what, shape = f"field {of.field.name!r}", of.container.value
    given = types.unliteral(given)
    if shape.record is not None:
        return stored_record(shape, given, of.state.variant, what)
    if not shape.is_tuple:
        if isinstance(given, types.BaseTuple):
            raise refuse(f"{what} holds {shape} and gets a tuple; put in one part of it, like x[0]")
        (part,) = shape.parts
        kept = part.number == "str"
        check_kind(given, part.number, what, part.name, keeps_strings=kept)
        return of.element
    if not isinstance(given, types.BaseTuple):
        parts = ", ".join(part.name for part in shape.parts)
        raise refuse(f"{what} holds {shape} and gets {given}; put in a tuple of ({parts})")
    if len(given) != len(shape.parts):
        raise refuse(
            f"{what} holds {shape} and gets a tuple of {len(given)} values; give it "
            f"{len(shape.parts)}"
        )
    for at, (part, one) in enumerate(zip(shape.parts, given, strict=True)):
        kept = part.number == "str"
        named = f"{what}, value {at} of the tuple,"
        check_kind(present(types.unliteral(one)), part.number, named, part.name, keeps_strings=kept)
    return of.element


def refuse_none(of: SequenceType, *values: types.Type) -> None:
    """Refuses what is always None. What may be None is looked at when it is stored."""
    if types.none in values:
        raise refuse(
            f"field {of.field.name!r} holds {of.container.value} and gets None; test it for None "
            "first, and leave it out"
        )


def refuse_slice(of: SequenceType) -> None:
    if isinstance(of, DequeField):
        name = f"state.{of.field.name}"
        raise refuse(f"a deque has no slices; make a list of it first, list({name})[a:b]")


def refuse_queue(of: SequenceType, what: str) -> None:
    if isinstance(of, QueueField):
        name = f"state.{of.field.name}"
        raise refuse(
            f"{what} is not supported for a priority queue, whose items have no positions; write "
            f"{name}.peek(), {name}.pop(), or a loop over it"
        )
