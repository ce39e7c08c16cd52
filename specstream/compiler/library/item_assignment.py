"""``view[index] = value`` and ``view[index] op= value``, in Numba's terms.

The target is one element, or a row or slice: for those
:mod:`specstream.compiler.library.array_windows` writes the instructions.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import (
    AbstractTemplate,
    infer_global,
    signature,
)
from numba.extending import (
    lower_builtin,
    models,
    overload,
    register_model,
)

from specstream.compiler.backend.instructions import Value, raise_error
from specstream.compiler.backend.local_types import ListType, refuse_frozen
from specstream.compiler.backend.none_types import present, unwrapped
from specstream.compiler.backend.numba_types import (
    BoostedType,
    StateType,
    ViewType,
)
from specstream.compiler.backend.overloads import Rules, lower_by_rules, meaning_of
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS, check_kind, convert
from specstream.compiler.language.typing_refusals import absent, is_boosted, refuse
from specstream.compiler.library import array_windows
from specstream.compiler.library.array_views import (
    View,
    index_types,
    index_values,
    read_whole,
    remaining,
)
from specstream.compiler.library.array_windows import Window

__all__ = ["SET_ITEM", "set_item", "updated"]


def _no_array(owner: types.Type) -> TypingError:
    """Why an item of something cannot be assigned."""
    if isinstance(owner, BoostedType):
        return is_boosted(owner.field)
    if isinstance(owner, StateType):
        return refuse("an item of the state cannot be assigned; write state.name = value")
    if isinstance(owner, types.Optional):
        return absent("an item is assigned to")
    return refuse(f"an item of {owner} cannot be assigned: only arrays of the state can")


def set_item(value: Any, view: Any, index: Any) -> Any:
    """``view[index] = value``: Python evaluates the value first. Exists in compiled operators
    only."""
    raise TypeError("set_item exists in compiled operators only")


SET_ITEM: Rules = []
"""What it means for others than arrays, and where a list or tuple is assigned."""


@infer_global(set_item)
class _SetItem(AbstractTemplate):
    """One element, or a row or slice: from a number, or from another row or slice."""

    def generic(self, args: Any, kws: Any) -> Any:
        value, view, index = args
        refuse_frozen(view)
        found = meaning_of(SET_ITEM, self.context, args)
        if found is not None:
            return signature(found[0], *found[1])
        if not isinstance(view, ViewType):
            raise _no_array(view)
        index = types.unliteral(index)
        selected = remaining(view, index_types(view, index))
        if isinstance(value, _ChangedType):
            return signature(types.void, value, view, index)
        given = present(value)
        if isinstance(value, ViewType):
            if not isinstance(selected, ViewType):
                raise refuse(
                    "an array is assigned to one element: assign one element of it, or to a slice"
                )
            given = NUMBA_KINDS[value.kind]
        check_kind(given, view.kind, "an array", view.storage.name, keeps_strings=True)
        return signature(types.void, types.unliteral(value), view, index)


@lower_builtin(set_item, types.Any, types.Any, types.Any)
def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    given, view, index = sig.args
    if not isinstance(view, ViewType) or isinstance(given, ListType | types.BaseTuple):
        return lower_by_rules(SET_ITEM, context, builder, sig, args)
    if isinstance(given, _ChangedType):
        return context.get_dummy_value()
    target = View(context, builder, view, args[1])
    parts = index_types(view, index)
    at, shape, strides = target.select(parts, index_values(builder, index, args[2]))
    if isinstance(given, ViewType):
        source = View(context, builder, given, args[0])
        kind = NUMBA_KINDS[given.kind]
        array_windows.copy(
            Window(target.run, view, at, shape, strides),
            Window(target.run, given, source.offset, source.shape, source.strides),
            lambda element: convert(context, builder, element, kind, view.kind),
        )
        return context.get_dummy_value()
    value = unwrapped(context, builder, given, args[0])
    element = convert(context, builder, value, present(given), view.kind)
    if shape:
        array_windows.fill(Window(target.run, view, at, shape, strides), element)
    else:
        target.store(at, element)
    return context.get_dummy_value()


class _ChangedType(types.Type):
    """An array whose elements have been updated: nothing is left to be stored."""

    def __init__(self) -> None:
        super().__init__("specstream.changed")


_CHANGED = _ChangedType()
register_model(_ChangedType)(models.OpaqueModel)


def updated(item: Any, operation: Any, value: Any) -> Any:
    """What ``view[index] op= value`` stores, ``item`` being ``view[index]``: for an element the
    result. An array is updated by this. Exists in compiled operators only."""
    raise TypeError("updated exists in compiled operators only")


@infer_global(updated)
class _Updated(AbstractTemplate):
    prefer_literal = True  # as the operations

    def generic(self, args: Any, kws: Any) -> Any:
        item, operation, value = args
        refuse_frozen(item)
        if isinstance(item, ViewType):
            function = self.context.resolve_value_type(update_items)
            of = self.context.resolve_function_type(function, (item, operation, value), {})
            return signature(_CHANGED, *of.args)
        of = self.context.resolve_function_type(operation, (item, value), {})
        return signature(of.return_type, of.args[0], operation, of.args[1])


@lower_builtin(updated, types.Any, types.Any, types.Any)
def _updated(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    item, operation, value = sig.args
    if not isinstance(item, ViewType):
        of = signature(sig.return_type, item, value)
        return context.get_function(operation, of)(builder, (args[0], args[2]))
    function = context.typing_context.resolve_value_type(update_items)
    of = context.typing_context.resolve_function_type(function, sig.args, {})
    call = context.get_function(function, of)
    context.add_linking_libs(getattr(call, "libs", ()))
    call(builder, args)
    return context.get_dummy_value()


def update_items(target: Any, operation: Any, value: Any) -> Any:
    """``target op= value`` of an array; exists in compiled operators only."""
    raise TypeError("update_items exists in compiled operators only")


def update_from(target: Any, operation: Any, value: Any) -> Any:
    """The same, of what lies apart from the target; exists in compiled operators only."""
    raise TypeError("update_from exists in compiled operators only")


@overload(update_items)
def _update_items(target: Any, operation: Any, value: Any) -> Any:
    if isinstance(value, ViewType) and value.ndim > 1:
        raise refuse(
            "a slice is changed by an array of more than one axis: write a loop over its rows"
        )

    def by_a_copy(target: Any, operation: Any, value: Any) -> Any:
        # The source may overlap with the target, or be one of its rows.
        update_from(target, operation, read_whole(value, True))

    def directly(target: Any, operation: Any, value: Any) -> Any:
        update_from(target, operation, value)

    may_overlap = isinstance(value, ViewType) and (
        value.space != "range" or target.space == "range"
    )
    return by_a_copy if may_overlap else directly


@overload(update_from)
def _update_from(target: Any, operation: Any, value: Any) -> Any:
    def by_an_array(target: Any, operation: Any, value: Any) -> Any:
        length = len(value)
        if length != len(target) and length != 1:
            raise_error(ValueError)
        for i in range(len(target)):
            set_item(operation(target[i], value[i if length != 1 else 0]), target, i)

    def by_a_number(target: Any, operation: Any, value: Any) -> Any:
        for i in range(len(target)):
            set_item(operation(target[i], value), target, i)

    def row_by_row(target: Any, operation: Any, value: Any) -> Any:
        for i in range(len(target)):
            update_from(target[i], operation, value)

    if target.ndim > 1:
        return row_by_row
    return by_an_array if isinstance(value, ViewType) else by_a_number
