"""Lists, deques and queues of the state in LLVM instructions: their elements, and loops over them.

What an operator does with one is made of a few things: the number of elements, one of them read or
stored, one put in, some taken out. Elements and headers are loaded and stored as all words of the
state; C (``sequence.c``) is called where elements have to make room or to move.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_builtin, lower_getattr

from specstream._native import lib
from specstream.compiler.backend.instructions import BIT, I32, I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import RecordType
from specstream.compiler.backend.overloads import Meaning
from specstream.compiler.library.indices import Indexed
from specstream.compiler.library.local_list_methods import reversed_list
from specstream.compiler.library.state_records import Records
from specstream.compiler.library.state_sequence_types import (
    DequeField,
    SequenceIterator,
    SequenceType,
    refuse_queue,
)
from specstream.declarations.element_types import storage_of

__all__ = ["Elements"]

_WORD = storage_of(int, "a word of a header")
_VOID = ir.VoidType()


class Elements(Indexed, Run):
    """The primitives of one sequence of the state: writes instructions about its elements."""

    def __init__(self, context: Any, builder: Any, of: SequenceType, pointer: Value) -> None:
        super().__init__(context, builder, pointer)
        self.of = of
        self.variant = of.state.variant
        self.width = of.container.entry_words
        self.is_deque = isinstance(of, DequeField)

    # -- words --

    def header_word(self, word: int) -> Value:
        return self.moved(self.of, "header", self.of.field.offset + word)

    def number(self) -> Value:
        return self.moved(self.of, "number", self.of.number)

    def header(self, word: int) -> Value:
        return self.load("state", self.variant, _WORD, self.header_word(word))

    def set_header(self, word: int, value: Value) -> None:
        self.store("state", self.variant, _WORD, self.header_word(word), value)

    def count(self) -> Value:
        return self.header(lib.SS_HEADER_COUNT)

    def set_count(self, count: Value) -> None:
        self.set_header(lib.SS_HEADER_COUNT, count)
        self.changed()

    def ring(self) -> tuple[Value, Value]:
        """Where the elements of a sequence begin, and how many its ring has, less one.

        Of a list both are constants."""
        most = I64(self.of.container.room - 1)
        if not self.is_deque:
            return I64(0), most
        start = self.header(lib.SS_HEADER_START)
        capacity = self.header(lib.SS_HEADER_CAPACITY)
        # Whatever a run on inconsistent data has read: it stays within the region.
        return start, self.builder.and_(self.builder.sub(capacity, I64(1)), most)

    def word_of(self, at: Value, ring: tuple[Value, Value] | None = None) -> Value:
        """The first word of an element of the sequence; the caller has checked the bounds."""
        builder = self.builder
        if self.is_deque:
            start, mask = self.ring() if ring is None else ring
            at = builder.and_(builder.add(start, at), mask)
        offset = builder.mul(at, I64(self.width))
        return builder.add(self.moved(self.of, "region", self.of.container.region), offset)

    def changed(self) -> None:
        """The sequence gets or loses an element, or turns: who goes through it is told."""
        at = self.counter()
        after = self.builder.add(self.load("scratch", self.variant, _WORD, at), I64(1))
        self.store("scratch", self.variant, _WORD, at, after)

    def changes(self) -> Value:
        return self.load("scratch", self.variant, _WORD, self.counter())

    def counter(self) -> Value:
        return self.moved(self.of, "change", self.of.state.layout.changes_of(self.of.field))

    # -- elements --

    @property
    def records(self) -> Records | None:
        """What writes about the elements of the sequence as records, where it holds such."""
        of = self.of.element
        if not isinstance(of, RecordType):
            return None
        return Records(self.context, self.builder, of, self.pointer)

    def leave(self, first: Value, step: Value, length: Value) -> None:
        """Primitive: records leave the sequence, whose elements are about to be taken out.

        Nothing is done where no record of the event is known."""
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
        """Primitive: puts an element before position ``at`` of the sequence, 0 to the count."""
        self.store_member("raised", I32(0))
        arguments = (self.pointer, self.number(), at)
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
        """Primitive: puts an element behind all of the sequence, or before.

        A deque that has its greatest length drops what is at the other end."""
        most, builder = self.of.container.maxlen, self.builder
        if most is None:
            self._added(value, left)
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
                self._added(value, left)

    def _added(self, value: Value, left: bool = False) -> None:
        """Primitive: puts an element into a sequence that drops none.

        Only to make room C is called."""
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

    def put_beside(self, count: Value, value: Value, left: bool) -> tuple[Value, Value]:
        """Primitive: puts an element beside the others of a deque's ring; gives the ring."""
        builder = self.builder
        start, mask = self.ring()
        if left:
            start = builder.and_(builder.sub(start, I64(1)), mask)
            self.set_header(lib.SS_HEADER_START, start)
        self.put(I64(0) if left else count, value, (start, mask))
        return start, mask

    def delete(self, first: Value, step: Value, length: Value) -> None:
        """Primitive: takes elements out of the sequence: first, first + step ...

        ``step`` may be negative."""
        builder = self.builder
        last = builder.add(first, builder.mul(step, builder.sub(length, I64(1))))
        backwards = builder.icmp_signed("<", step, I64(0))
        first = builder.select(backwards, last, first)
        step = builder.select(backwards, builder.neg(step), step)
        some = builder.icmp_signed(">", length, I64(0))
        with builder.if_then(some):
            self.leave(first, step, length)
            arguments = (self.pointer, self.number(), first, step, length)
            self.call("ss_sequence_delete", _VOID, *arguments)
            self.leave_if_verdict()
            self.changed()

    def take_last(self) -> Value:
        """Primitive: takes the sequence's last element out; a fault where there is none."""
        last = self.position(I64(-1), types.int64)
        value = self.get(last)
        self.leave(last, I64(1), I64(1))
        self.set_count(last)
        return value

    def clear(self) -> None:
        """Primitive: takes all elements out of the sequence."""
        self.leave(I64(0), I64(1), self.count())
        self.set_count(I64(0))

    def take_first(self) -> Value:
        """Primitive: takes the first element of a deque of the state out; likewise."""
        builder, count = self.builder, self.count()
        self.fault_if(builder.icmp_unsigned("==", count, I64(0)), IndexError)
        start, mask = self.ring()
        value = self.get(I64(0), (start, mask))
        self.leave(I64(0), I64(1), I64(1))
        after = builder.and_(builder.add(start, I64(1)), mask)
        self.set_header(lib.SS_HEADER_START, after)
        self.set_count(builder.sub(count, I64(1)))
        return value


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


@reversed_list.rule
def _reversed(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """A loop over the indices of a list or deque of the state, backwards: ``reversed(x)``."""
    (of,) = args
    if not isinstance(of, SequenceType):
        return None
    refuse_queue(of, "reversed()")
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
