"""Lists, deques and priority queues of the state in Numba's terms: their elements, one by one.

What an operator does with one is made of a few things: the number of elements, one of them read or
stored, one put in, some taken out. These are here; the rest is plain Python over them
(:mod:`specstream.compiler.sequence_methods`). Elements are loaded and stored as all words of the
state; C puts them where they belong (``sequence.c``), but at the end of a list.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.cpython import slicing
from numba.extending import (
    intrinsic,
    lower_builtin,
    lower_getattr,
    models,
    register_model,
)

from specstream._native import lib
from specstream.compiler.core_function import Core, Meaning, also, of_values, resolved_call
from specstream.compiler.error_texts import NO_ITEM
from specstream.compiler.instructions import BIT, I32, I64, Value
from specstream.compiler.item_assignment import SET_ITEM
from specstream.compiler.kinds import NUMBA_KINDS, check_kind
from specstream.compiler.list_methods import delete_item
from specstream.compiler.local_lists import check_index
from specstream.compiler.local_methods import length, written_by
from specstream.compiler.local_types import ListType
from specstream.compiler.memory import Run
from specstream.compiler.none_types import present, unwrapped
from specstream.compiler.refusals import refuse
from specstream.compiler.state_fields import CONTAINER_TYPES
from specstream.compiler.state_records import PLACES, Records, make_place, stored_record
from specstream.compiler.types import ContainerType, PlaceType, RecordType, RunType
from specstream.declarations.element_types import storage_of

__all__ = [
    "DequeField",
    "Elements",
    "ListField",
    "QueueField",
    "SequenceType",
    "append",
    "clipped",
    "delete",
    "get",
    "insert",
    "item_position",
    "limit_of",
    "ordered",
    "part_of",
    "put",
    "refuse_none",
    "replace_part",
    "run_of",
    "run_of_either",
    "sequence_iterator",
    "stored",
    "take_last",
    "turned",
]

_WORD = storage_of(int, "a word of a header")
_VOID = ir.VoidType()


class SequenceType(ContainerType, types.IterableType):
    """A list, deque or priority queue of the state."""

    @property
    def element(self) -> types.Type:
        """What it holds."""
        if self.container.value.record is not None:
            return RecordType(self.container.value, self.state.variant)
        parts = [NUMBA_KINDS[part.number] for part in self.container.value.parts]
        return types.BaseTuple.from_types(parts) if self.container.value.is_tuple else parts[0]

    @property
    def iterator_type(self) -> types.Type:
        return SequenceIterator(self, False)


class ListField(SequenceType):
    """``ss.list``."""


class DequeField(SequenceType):
    """``ss.deque``."""


class QueueField(SequenceType):
    """``ss.priority_queue``."""


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
    """As what a value is kept; refuses one that does not fit."""
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


def ordered(of: SequenceType, what: str) -> None:
    """Refuses elements that have no order."""
    if of.container.value.has_text:
        raise refuse(
            f"{what} state.{of.field.name}, which holds {of.container.value}, compares strings, "
            "and those have no order here; keep a number in place of the string, such as an index"
        )


class Elements(Run):
    """Writes instructions about one sequence."""

    def __init__(self, context: Any, builder: Any, of: SequenceType, pointer: Value) -> None:
        super().__init__(context, builder, pointer)
        self.of = of
        self.variant = of.state.variant
        self.width = of.container.entry_words
        self.is_deque = isinstance(of, DequeField)

    # -- words --

    def header(self, word: int) -> Value:
        return self.load("state", self.variant, _WORD, I64(self.of.field.offset + word))

    def set_header(self, word: int, value: Value) -> None:
        self.store("state", self.variant, _WORD, I64(self.of.field.offset + word), value)

    def count(self) -> Value:
        return self.header(lib.SS_HEADER_COUNT)

    def set_count(self, count: Value) -> None:
        self.set_header(lib.SS_HEADER_COUNT, count)
        self.changed()

    def ring(self) -> tuple[Value, Value]:
        """Where elements begin, and how many of them the ring has, less one; of a list both are
        constants."""
        most = I64(self.of.container.room - 1)
        if not self.is_deque:
            return I64(0), most
        start = self.header(lib.SS_HEADER_START)
        capacity = self.header(lib.SS_HEADER_CAPACITY)
        # Whatever a run on inconsistent data has read: it stays within the region.
        return start, self.builder.and_(self.builder.sub(capacity, I64(1)), most)

    def word_of(self, at: Value, ring: tuple[Value, Value] | None = None) -> Value:
        """The first word of an element; the caller has checked the bounds."""
        builder = self.builder
        if self.is_deque:
            start, mask = self.ring() if ring is None else ring
            at = builder.and_(builder.add(start, at), mask)
        offset = builder.mul(at, I64(self.width))
        return builder.add(I64(self.of.container.region), offset)

    def changed(self) -> None:
        """It gets or loses an element, or turns: who goes through it is told."""
        at = self.counter()
        after = self.builder.add(self.load("scratch", self.variant, _WORD, at), I64(1))
        self.store("scratch", self.variant, _WORD, at, after)

    def changes(self) -> Value:
        return self.load("scratch", self.variant, _WORD, self.counter())

    def counter(self) -> Value:
        return I64(self.of.state.layout.changes_of(self.of.field))

    # -- elements --

    @property
    def records(self) -> Records | None:
        """Where it holds records."""
        of = self.of.element
        if not isinstance(of, RecordType):
            return None
        return Records(self.context, self.builder, of, self.pointer)

    def leave(self, first: Value, step: Value, length: Value) -> None:
        """Records are about to be removed; nothing where no record of the event is known."""
        records, builder = self.records, self.builder
        if records is None:
            return
        known = builder.icmp_unsigned("!=", self.load_member("objects"), I64(0))
        count = builder.select(known, length, I64(0))
        with cgutils.for_range(builder, count) as loop:
            at = builder.add(first, builder.mul(loop.index, step))
            records.leave(self.word_of(at))

    def get(self, at: Value, ring: tuple[Value, Value] | None = None) -> Value:
        word = self.word_of(at, ring)
        if self.records is not None:
            return self.records.object_of(word)
        parts = [
            self.load("state", self.variant, part, self.builder.add(word, I64(place)))
            for place, part in enumerate(self.of.container.value.parts)
        ]
        if not self.of.container.value.is_tuple:
            return parts[0]
        return self.context.make_tuple(self.builder, self.of.element, parts)

    def put(self, at: Value, value: Value, ring: tuple[Value, Value] | None = None) -> None:
        self.put_words(self.word_of(at, ring), value)

    def put_words(self, word: Value, value: Value) -> None:
        if self.records is not None:
            self.records.put(word, value)
            return
        for place, part in enumerate(self.of.container.value.parts):
            own = value
            if self.of.container.value.is_tuple:
                own = self.builder.extract_value(value, place)
            target = self.builder.add(word, I64(place))
            self.store("state", self.variant, part, target, own)

    # -- putting in and taking out --

    def insert(self, at: Value, value: Value) -> None:
        """Before position ``at``, from 0 to the count."""
        self.store_member("raised", I32(0))
        arguments = (self.pointer, I64(self.of.number), at)
        word = self.call("ss_sequence_insert", I64, *arguments)
        builder = self.builder
        with builder.if_then(builder.icmp_unsigned("==", word, I64(-1)), likely=False):
            full = builder.icmp_unsigned("==", self.load_member("raised", I32), I32(lib.SS_FULL))
            self.leave_if(builder.not_(full))
            self.store_member("verdict", I32(lib.SS_COMPLETED))  # a handler may go on
            self.fault_if(BIT(1), OverflowError)
        self.put_words(word, value)
        self.changed()

    def append(self, value: Value, left: bool = False) -> None:
        """Behind all, or before. Only to make room C is called."""
        builder, count = self.builder, self.count()
        full = builder.icmp_unsigned(">=", count, I64(self.of.container.limit))
        if not self.is_deque:
            self.fault_if(full, OverflowError)
            self.put(count, value)
            self.set_count(builder.add(count, I64(1)))
            return
        capacity = self.header(lib.SS_HEADER_CAPACITY)
        full = builder.or_(full, builder.icmp_unsigned(">=", count, capacity))
        with builder.if_else(full, likely=False) as (by_c, here):
            with by_c:
                self.insert(I64(0) if left else count, value)
            with here:
                self.put_beside(count, value, left)
                self.set_count(builder.add(count, I64(1)))

    def push(self, value: Value, left: bool = False) -> None:
        """To a deque that drops what is at the other end."""
        most, builder = self.of.container.maxlen, self.builder
        if most is None:
            self.append(value, left)
            return
        if most == 0:
            self.changed()
            return
        count = self.count()
        with builder.if_else(builder.icmp_unsigned(">=", count, I64(most))) as (over, room):
            with over:  # it is as long as before
                start, mask = self.put_beside(count, value, left)
                if not left:
                    after = builder.and_(builder.add(start, I64(1)), mask)
                    self.set_header(lib.SS_HEADER_START, after)
                self.changed()
            with room:
                self.append(value, left)

    def put_beside(self, count: Value, value: Value, left: bool) -> tuple[Value, Value]:
        """Puts an element into a deque's ring, next to the others, and gives the ring."""
        builder = self.builder
        start, mask = self.ring()
        if left:
            start = builder.and_(builder.sub(start, I64(1)), mask)
            self.set_header(lib.SS_HEADER_START, start)
        self.put(I64(0) if left else count, value, (start, mask))
        return start, mask

    def delete(self, first: Value, step: Value, length: Value) -> None:
        """Elements first, first + step ...; ``step`` may be negative."""
        builder = self.builder
        last = builder.add(first, builder.mul(step, builder.sub(length, I64(1))))
        backwards = builder.icmp_signed("<", step, I64(0))
        first = builder.select(backwards, last, first)
        step = builder.select(backwards, builder.neg(step), step)
        some = builder.icmp_signed(">", length, I64(0))
        with builder.if_then(some):
            self.leave(first, step, length)
            arguments = (self.pointer, I64(self.of.number), first, step, length)
            self.call("ss_sequence_delete", _VOID, *arguments)
            self.leave_if_verdict()
            self.changed()

    def take_last(self) -> Value:
        """Takes the last one out; a fault where there is none."""
        last = self.position(I64(-1), types.int64)
        value = self.get(last)
        self.leave(last, I64(1), I64(1))
        self.set_count(last)
        return value

    def take_first(self) -> Value:
        """Likewise the first one of a deque."""
        builder, count = self.builder, self.count()
        self.fault_if(builder.icmp_unsigned("==", count, I64(0)), IndexError)
        start, mask = self.ring()
        value = self.get(I64(0), (start, mask))
        self.leave(I64(0), I64(1), I64(1))
        after = builder.and_(builder.add(start, I64(1)), mask)
        self.set_header(lib.SS_HEADER_START, after)
        self.set_count(builder.sub(count, I64(1)))
        return value

    # -- indices --

    def position(self, index: Value, of: types.Type, site: int = 0) -> Value:
        """An index as a position; a fault when it is outside, whose text ``site`` says."""
        builder = self.builder
        index, of = unwrapped(self.context, builder, of, index), present(of)
        count = self.count()
        if types.unliteral(of) == types.int64:
            negative = builder.icmp_signed("<", index, I64(0))
            index = builder.select(negative, builder.add(index, count), index)
        self.fault_if(builder.icmp_unsigned(">=", index, count), IndexError, site)
        return index

    def clipped(self, index: Value, of: types.Type) -> Value:
        """An index as a position from 0 to the end, as slices have them."""
        builder = self.builder
        index, of = unwrapped(self.context, builder, of, index), present(of)
        count = self.count()
        if types.unliteral(of) == types.int64:
            negative = builder.icmp_signed("<", index, I64(0))
            shifted = builder.add(index, count)
            shifted = builder.select(builder.icmp_signed("<", shifted, I64(0)), I64(0), shifted)
            index = builder.select(negative, shifted, index)
        beyond = builder.icmp_unsigned(">", index, count)
        return builder.select(beyond, count, index)

    def selected(self, of: types.SliceType, index: Value) -> tuple[Value, Value, Value]:
        """First position, step and number of what a slice selects."""
        builder = self.builder
        part = self.context.make_helper(builder, of, index)
        if of.has_step:
            self.fault_if(builder.icmp_signed("==", part.step, I64(0)), ValueError)
        slicing.fix_slice(builder, part, self.count())
        return part.start, part.step, slicing.get_slice_length(builder, part)


_meaning = written_by(Elements)


def _is_index(given: types.Type) -> types.Type:
    check_index(given)
    return types.unliteral(given)


# ---- what all else is made of ----

get = Core("get_element", "it takes a position")
put = Core("put_element", "it takes a position and a value")
append = Core("append_element", "it takes a value")
take_last = Core("take_last", "it takes a sequence")
insert = Core("insert_element", "it takes a position and a value")
delete = Core("delete_elements", "it takes a first position, a step and a number")
item_position = Core("item_position", "it takes an index")
clipped = Core("clipped_position", "it takes an index")
turned = Core("turned", "it takes a deque")


@get.rule
def _get(context: Any, args: Sequence[types.Type]) -> Meaning:
    """An element at a position that it has."""
    of = args[0]
    assert isinstance(of, SequenceType)
    return _meaning(of.element, (of, types.int64), lambda head, sig, args: head.get(args[1]))


@put.rule
def _put(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Likewise: it gets another value."""
    of, _, value = args
    assert isinstance(of, SequenceType)
    taken = (of, types.int64, stored(of, value))
    return _meaning(types.none, taken, lambda head, sig, args: head.put(*args[1:]))


@append.rule
def _append(context: Any, args: Sequence[types.Type]) -> Meaning:
    """An element behind all."""
    of, value = args
    assert isinstance(of, SequenceType)
    return _meaning(
        types.none, (of, stored(of, value)), lambda head, sig, args: head.append(args[1])
    )


@take_last.rule
def _take_last(context: Any, args: Sequence[types.Type]) -> Meaning:
    """The last element, which is there no more; IndexError where there is none."""
    (of,) = args
    assert isinstance(of, SequenceType)
    return _meaning(of.element, (of,), lambda head, sig, args: head.take_last())


@insert.rule
def _insert(context: Any, args: Sequence[types.Type]) -> Meaning:
    """An element before a position from 0 to the length."""
    of, _, value = args
    assert isinstance(of, SequenceType)
    taken = (of, types.int64, stored(of, value))
    return _meaning(types.none, taken, lambda head, sig, args: head.insert(*args[1:]))


@delete.rule
def _delete(context: Any, args: Sequence[types.Type]) -> Meaning:
    """So many elements that are there: first, first + step ..."""
    taken = (args[0], types.int64, types.int64, types.int64)
    return _meaning(types.none, taken, lambda head, sig, args: head.delete(*args[1:]))


@item_position.rule
def _item_position(context: Any, args: Sequence[types.Type]) -> Meaning:
    """The position that an index is of; IndexError where there is none."""
    of, index = args
    return _meaning(
        types.int64,
        (of, _is_index(index)),
        lambda head, sig, args: head.position(args[1], sig.args[1]),
    )


@clipped.rule
def _clipped(context: Any, args: Sequence[types.Type]) -> Meaning:
    """The position that a bound of a slice is."""
    of, index = args
    return _meaning(
        types.int64,
        (of, _is_index(index)),
        lambda head, sig, args: head.clipped(args[1], sig.args[1]),
    )


@turned.rule
def _turned(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Who goes through a deque is to be told."""
    return _meaning(types.none, args, lambda head, sig, args: head.changed())


@intrinsic
def run_of(typing_context: Any, of: Any) -> Any:
    """The run."""
    return RunType(of.state.variant)(of), lambda context, builder, sig, args: args[0]


@intrinsic
def limit_of(typing_context: Any, of: Any) -> Any:
    """How many elements it holds at most."""
    most = of.container.limit
    return types.int64(of), lambda context, builder, sig, args: I64(most)


@intrinsic
def run_of_either(typing_context: Any, left: Any, right: Any) -> Any:
    """The run of two values, one of which is a sequence at least."""
    at = 0 if isinstance(left, SequenceType) else 1
    run = RunType((left, right)[at].state.variant)
    return run(left, right), lambda context, builder, sig, args: args[at]


also(len, length(SequenceType, _meaning), SequenceType)

# ---- items ----

part_of = Core("part_of", "it takes a first position, a step and a number")
"""Elements as a list of the event's own; sequence_methods.py has what it does."""
replace_part = Core("replace_part", "it takes a first position, a step, a number and a list")
"""Elements get other values; likewise."""


def _no_slice(of: SequenceType) -> None:
    if isinstance(of, DequeField):
        name = f"state.{of.field.name}"
        raise refuse(f"a deque has no slices; make a list of it first, list({name})[a:b]")


@infer_global(operator.getitem)
class _Item(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        of, index = args
        if not isinstance(of, SequenceType):
            return None
        index = types.unliteral(index)
        _no_queue(of, "x[i]")
        if isinstance(index, types.SliceType):
            _no_slice(of)
            return signature(ListType(of.element), of, index)
        return signature(of.element, of, _is_index(index))


def _no_queue(of: SequenceType, what: str) -> None:
    if isinstance(of, QueueField):
        name = f"state.{of.field.name}"
        raise refuse(
            f"{what} does not go with a priority queue, whose items have no positions; write "
            f"{name}.peek(), {name}.pop(), or a loop over it"
        )


@lower_builtin(operator.getitem, SequenceType, types.Any)
def _item(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    of, index = sig.args
    head = Elements(context, builder, of, args[0])
    if isinstance(index, types.SliceType):
        selected = head.selected(index, args[1])
        given = (of, *[types.int64] * 3)
        return resolved_call(context, builder, part_of, given, (args[0], *selected))[1]
    site = NO_ITEM if isinstance(of, ListField) else 0
    return head.get(head.position(args[1], index, site))


@PLACES.append
def _place_of_element(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``x[i].name``: where the element is."""
    of, index = args
    is_slice = isinstance(types.unliteral(index), types.SliceType)
    if not isinstance(of, SequenceType) or isinstance(of, QueueField) or is_slice:
        return None
    if not isinstance(of.element, RecordType):
        return None
    result = PlaceType(of.element.shape, of.element.variant)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        head = Elements(context, builder, of, args[0])
        site = NO_ITEM if isinstance(of, ListField) else 0
        word = head.word_of(head.position(args[1], sig.args[1], site))
        return make_place(context, builder, result, args[0], word)

    return result, (of, _is_index(types.unliteral(index))), code


@SET_ITEM.append
def _set_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``x[i] = value``, with the value first; of a slice by a list."""
    value, of, index = args
    if not isinstance(of, SequenceType):
        return None
    _no_queue(of, "x[i] = ...")
    if isinstance(types.unliteral(index), types.SliceType):
        _no_slice(of)
        return _replacing(value, of, types.unliteral(index))
    refuse_none(of, value)
    return _set_one(context, args)


def refuse_none(of: SequenceType, *values: types.Type) -> None:
    is_record = isinstance(of.element, RecordType)  # it is looked at when it is stored
    for one in values:
        if (isinstance(one, types.Optional) and not is_record) or one == types.none:
            found = "None" if one == types.none else "what may be None"
            raise refuse(
                f"field {of.field.name!r} holds {of.container.value} and gets {found}; test it for "
                "None first, and leave it out"
            )


@of_values
def _set_one(context: Any, args: Sequence[types.Type]) -> Meaning:
    value, of, index = args
    assert isinstance(of, SequenceType)
    taken = (stored(of, value), of, _is_index(index))

    def write(head: Elements, sig: Any, args: Sequence[Value]) -> None:
        head.put(head.position(args[2], sig.args[2]), args[0])

    return _meaning(types.void, taken, write, of=1)


def _replacing(value: types.Type, of: SequenceType, index: types.SliceType) -> Meaning:
    """``x[a:b] = values``: what they are is made a list before."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        head = Elements(context, builder, of, args[1])
        selected = head.selected(index, args[2])
        given = (of, *[types.int64] * 3, value)
        resolved_call(context, builder, replace_part, given, (args[1], *selected, args[0]))
        return context.get_dummy_value()

    return types.void, (value, of, index), code


@delete_item.rule
def _delete_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of, index = args
    if not isinstance(of, SequenceType):
        return None
    _no_queue(of, "del x[i]")
    index = types.unliteral(index)
    if isinstance(index, types.SliceType):
        _no_slice(of)
    else:
        check_index(index)

    def write(head: Elements, sig: Any, args: Sequence[Value]) -> None:
        if isinstance(index, types.SliceType):
            head.delete(*head.selected(index, args[1]))
        else:
            head.delete(head.position(args[1], index), I64(1), I64(1))

    return _meaning(types.none, (of, index), write)


@infer_getattr
class _DequeAttribute(AttributeTemplate):
    key = DequeField

    def resolve_maxlen(self, of: DequeField) -> types.Type:
        return types.none if of.container.maxlen is None else types.int64


@lower_getattr(DequeField, "maxlen")
def _maxlen(context: Any, builder: Any, of: DequeField, value: Value) -> Value:
    most = of.container.maxlen
    return context.get_dummy_value() if most is None else I64(most)


# ---- going through one ----


@lower_builtin("getiter", SequenceType)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    return _iterator(context, builder, sig.return_type, args[0])


def _iterator(context: Any, builder: Any, walk: SequenceIterator, value: Value) -> Value:
    head = Elements(context, builder, walk.walked, value)
    count = head.count()
    first = builder.sub(count, I64(1)) if walk.backwards else I64(0)
    made = cgutils.create_struct_proxy(walk)(context, builder)
    made.walked = value
    made.next = cgutils.alloca_once_value(builder, first)
    made.count = cgutils.alloca_once_value(builder, count)
    made.changes = cgutils.alloca_once_value(builder, head.changes())
    made.start, made.mask = head.ring()
    return made._getvalue()


def sequence_iterator(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """A rule: ``reversed(x)``."""
    (of,) = args
    if not isinstance(of, SequenceType):
        return None
    _no_queue(of, "reversed()")
    walk = SequenceIterator(of, True)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return _iterator(context, builder, walk, args[0])

    return walk, args, code


@lower_builtin("iternext", SequenceIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    """A list may change on the way, and the walk sees it; a deque may not."""
    (walk,) = sig.args
    iterator = cgutils.create_struct_proxy(walk)(context, builder, value=args[0])
    head = Elements(context, builder, walk.walked, iterator.walked)
    at = builder.load(iterator.next)
    changes = head.changes()
    apart = builder.icmp_unsigned("!=", changes, builder.load(iterator.changes))
    if head.is_deque:
        if walk.backwards:  # CPython looks whether it is at the end before
            apart = builder.and_(apart, builder.icmp_signed(">=", at, I64(0)))
        head.fault_if(apart, RuntimeError)
    else:
        with builder.if_then(apart):
            builder.store(changes, iterator.changes)
            builder.store(head.count(), iterator.count)
    more = builder.icmp_unsigned("<", at, builder.load(iterator.count))  # -1 is the largest
    result.set_valid(more)
    with builder.if_then(more):
        step = I64(-1 if walk.backwards else 1)
        builder.store(builder.add(at, step), iterator.next)
        result.yield_(head.get(at, (iterator.start, iterator.mask)))
