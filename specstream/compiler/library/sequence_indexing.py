"""Indexing of sequences in Numba's terms: items and slices, of local lists and of the state's.

What differs is what a slice is: of a local list C copies and replaces the words, of one of the
state plain Python the elements (:mod:`specstream.compiler.library.sequence_methods`).
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.local_types import ListType, Unknown, own, takes
from specstream.compiler.backend.numba_types import RecordType, SlotType
from specstream.compiler.backend.overloads import Core, Meaning, of_values, resolved_call
from specstream.compiler.frontend.error_texts import NO_ITEM
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.indices import check_index, index_type
from specstream.compiler.library.item_assignment import SET_ITEM
from specstream.compiler.library.local_list_methods import delete_item
from specstream.compiler.library.local_lists import List, element_of, same_elements
from specstream.compiler.library.sequence_primitives import SEQUENCES, meaning, stored_in
from specstream.compiler.library.state_records import SLOT_RULES, make_slot
from specstream.compiler.library.state_sequence_types import (
    DequeField,
    QueueField,
    SequenceType,
    refuse_none,
    refuse_queue,
    refuse_slice,
)
from specstream.compiler.library.state_sequences import Elements

__all__ = ["part_of", "replace_part"]

# ---- items ----

part_of = Core("part_of", "it takes a first position, a step and a number")
"""Elements as a new list of the event's own."""
replace_part = Core("replace_part", "it takes a first position, a step, a number and a list")
"""Elements get other values."""
_POSITIONS = [types.int64] * 3


def _site(of: types.Type) -> int:
    """Which text an IndexError of an item has."""
    return 0 if isinstance(of, DequeField) else NO_ITEM


@infer_global(operator.getitem)
class _Item(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        of, index = args
        if not isinstance(of, SEQUENCES):
            return None
        index = types.unliteral(index)
        refuse_queue(of, "x[i]")
        if isinstance(index, types.SliceType):
            refuse_slice(of)
            made = own(of) if isinstance(of, ListType) else ListType(of.element)
            return signature(made, of, index)
        check_index(index)
        return signature(element_of(of), of, index)


@lower_builtin(operator.getitem, ListType, types.Any)
@lower_builtin(operator.getitem, SequenceType, types.Any)
def _item(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    of, index = sig.args

    def write(head: List | Elements, sig: Any, args: Sequence[Value]) -> Value:
        if not isinstance(index, types.SliceType):
            return head.get(head.position(args[1], index, _site(of)))
        selected = head.selected(index, args[1])
        return resolved_call(context, builder, part_of, (of, *_POSITIONS), (args[0], *selected))[1]

    return meaning(sig.return_type, sig.args, write)[2](context, builder, sig, args)


@part_of.rule
def _part_of_local(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of = args[0]
    if not isinstance(of, ListType):
        return None
    return meaning(own(of), args, lambda head, sig, args: head.part(*args[1:]))


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
        word = head.word_of(head.position(args[1], sig.args[1], _site(of)))
        return make_slot(context, builder, result, args[0], word)

    return result, (of, index_type(types.unliteral(index))), code


@SET_ITEM.append
def _set_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Indexed assignment to a sequence, ``x[i] = value``, value first; a slice gets a list."""
    value, of, index = args
    if not isinstance(of, SEQUENCES):
        return None
    refuse_queue(of, "x[i] = ...")
    if isinstance(types.unliteral(index), types.SliceType):
        refuse_slice(of)
        return _set_slice(value, of, types.unliteral(index))
    if isinstance(of, ListType):
        return _set_one(context, args)
    refuse_none(of, value)
    return of_values(_set_one)(context, args)


def _set_one(context: Any, args: Sequence[types.Type]) -> Meaning:
    value, of, index = args
    index = index_type(index)

    def write(head: List | Elements, sig: Any, args: Sequence[Value]) -> None:
        head.put(head.position(args[2], sig.args[2]), args[0])

    return meaning(types.void, (stored_in(of, value), of, index), write, of=1)


def _set_slice(value: types.Type, of: types.Type, index: types.SliceType) -> Meaning:
    """``x[a:b] = values``. What they are is a list; an empty one is of the same elements."""
    if isinstance(of, ListType):
        if not isinstance(value, ListType):
            raise refuse(f"a slice of a list gets {value}: assign a list, such as list(...)")
        same_elements(of, value)
    elif isinstance(value, ListType) and isinstance(value.element, Unknown):
        takes(value, of.element)

    def write(head: List | Elements, sig: Any, args: Sequence[Value]) -> None:
        given = (of, *_POSITIONS, value)
        values = (args[1], *head.selected(index, args[2]), args[0])
        resolved_call(head.context, head.builder, replace_part, given, values)

    return meaning(types.void, (value, of, index), write, of=1)


@replace_part.rule
def _replace_part_of_local(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if not isinstance(args[0], ListType):
        return None

    def write(head: List, sig: Any, args: Sequence[Value]) -> None:
        by = List(head.context, head.builder, sig.args[4], args[4])
        first, step, length = args[1:4]
        head.replace(first, step, length, by)

    return meaning(types.none, args, write)


@delete_item.rule
def _delete_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of, index = args
    if not isinstance(of, SEQUENCES):
        return None
    refuse_queue(of, "del x[i]")
    index = types.unliteral(index)
    if isinstance(index, types.SliceType):
        refuse_slice(of)
    else:
        check_index(index)

    def write(head: List | Elements, sig: Any, args: Sequence[Value]) -> None:
        if isinstance(index, types.SliceType):
            head.delete(*head.selected(index, args[1]))
        else:
            head.delete(head.position(args[1], index), I64(1), I64(1))

    return meaning(types.none, (of, index), write)
