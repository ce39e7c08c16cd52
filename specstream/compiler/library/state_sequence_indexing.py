"""Indexing of lists and deques of the state in Numba's terms: items, slices, and loops."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import lower_builtin, lower_getattr

from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.local_types import ListType, Unknown, takes
from specstream.compiler.backend.numba_types import RecordType, SlotType
from specstream.compiler.backend.overloads import Core, Meaning, of_values, resolved_call
from specstream.compiler.frontend.error_texts import NO_ITEM
from specstream.compiler.library.indices import check_index, index_type
from specstream.compiler.library.item_assignment import SET_ITEM
from specstream.compiler.library.local_list_methods import delete_item, reversed_list
from specstream.compiler.library.method_dispatch import written_by
from specstream.compiler.library.state_records import SLOT_RULES, make_slot
from specstream.compiler.library.state_sequence_primitives import Elements
from specstream.compiler.library.state_sequence_types import (
    DequeField,
    ListField,
    QueueField,
    SequenceIterator,
    SequenceType,
    refuse_none,
    refuse_queue,
    refuse_slice,
    stored,
)

__all__ = ["part_of", "replace_part"]

_meaning = written_by(Elements)

# ---- items ----

part_of = Core("part_of", "it takes a first position, a step and a number")
"""Elements as a list of the event's own; state_sequence_methods.py has what it does."""
replace_part = Core("replace_part", "it takes a first position, a step, a number and a list")
"""Elements get other values; likewise."""


@infer_global(operator.getitem)
class _Item(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        of, index = args
        if not isinstance(of, SequenceType):
            return None
        index = types.unliteral(index)
        refuse_queue(of, "x[i]")
        if isinstance(index, types.SliceType):
            refuse_slice(of)
            return signature(ListType(of.element), of, index)
        return signature(of.element, of, index_type(index))


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


@SLOT_RULES.append
def _slot_of_element(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Indexing a list or deque of the state, ``x[i].name``: where the element, a record, is."""
    of, index = args
    is_slice = isinstance(types.unliteral(index), types.SliceType)
    if not isinstance(of, SequenceType) or isinstance(of, QueueField) or is_slice:
        return None
    if not isinstance(of.element, RecordType):
        return None
    result = SlotType(of.element.shape, of.element.variant)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        head = Elements(context, builder, of, args[0])
        site = NO_ITEM if isinstance(of, ListField) else 0
        word = head.word_of(head.position(args[1], sig.args[1], site))
        return make_slot(context, builder, result, args[0], word)

    return result, (of, index_type(types.unliteral(index))), code


@SET_ITEM.append
def _set_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Indexed assignment to a list or deque of the state, ``x[i] = value``, value first.

    A slice gets a list.
    """
    value, of, index = args
    if not isinstance(of, SequenceType):
        return None
    refuse_queue(of, "x[i] = ...")
    if isinstance(types.unliteral(index), types.SliceType):
        refuse_slice(of)
        return _set_slice(value, of, types.unliteral(index))
    refuse_none(of, value)
    return _set_one(context, args)


@of_values
def _set_one(context: Any, args: Sequence[types.Type]) -> Meaning:
    value, of, index = args
    assert isinstance(of, SequenceType)
    taken = (stored(of, value), of, index_type(index))

    def write(head: Elements, sig: Any, args: Sequence[Value]) -> None:
        head.put(head.position(args[2], sig.args[2]), args[0])

    return _meaning(types.void, taken, write, of=1)


def _set_slice(value: types.Type, of: SequenceType, index: types.SliceType) -> Meaning:
    """Indexed assignment to a slice of a list of the state, ``x[a:b] = values``, replacing it.

    What the values are is made a list before; an empty one is of the same.
    """
    if isinstance(value, ListType) and isinstance(value.element, Unknown):
        takes(value, of.element)

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
    refuse_queue(of, "del x[i]")
    index = types.unliteral(index)
    if isinstance(index, types.SliceType):
        refuse_slice(of)
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
