"""``state.top[:] = sorted(...)``: the items of a list or tuple become those of a row or slice.

That is NumPy's: so many items, or one for all of them, and for each row where there are more axes.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import cgutils, types

from specstream.compiler.backend.instructions import I64, POINTER, Value
from specstream.compiler.backend.local_types import ListType, LocalType, Unknown, pack
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import present, unwrapped
from specstream.compiler.backend.numba_types import ViewType
from specstream.compiler.backend.overloads import Meaning
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS, check_kind, convert
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import array_windows
from specstream.compiler.library.array_views import View, index_types, index_values, remaining
from specstream.compiler.library.array_windows import Window
from specstream.compiler.library.local_lists import List
from specstream.declarations.element_types import storage_of

__all__ = ["assigned"]

_WIDE: dict[str, Any] = {"int": int, "uint": np.uint64, "float": float, "bool": bool, "str": int}


def assigned(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Assigns the items of a list or tuple to a row or slice, ``view[index] = value``.

    The value comes first.
    """
    value, view, index = args
    if not isinstance(view, ViewType) or not isinstance(value, ListType | types.BaseTuple):
        return None
    index = types.unliteral(index)
    selected = remaining(view, index_types(view, index))
    if not isinstance(selected, ViewType):
        raise refuse(
            "a list or tuple is assigned to one element: assign one item of it, or assign to a "
            "slice"
        )
    for one in _item_types(value):
        check_kind(one, view.kind, "an array", view.storage.name, keeps_strings=True)

    def code(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
        target = View(context, builder, view, args[1])
        at, shape, strides = target.select(
            index_types(view, index), index_values(builder, index, args[2])
        )
        window = Window(target.run, view, at, shape, strides)
        of_list = isinstance(value, ListType)
        source, kind = (_row_of_list if of_list else _row_of_tuple)(
            target.run, view, value, args[0]
        )
        array_windows.copy(
            window, source, lambda one: convert(context, builder, one, kind, view.kind)
        )
        return context.get_dummy_value()

    return types.void, (types.unliteral(value), view, index), code


def _item_types(value: types.Type) -> list[types.Type]:
    """What a list or tuple holds; refuses what is no row of numbers."""
    if isinstance(value, types.BaseTuple):
        items = [present(types.unliteral(item)) for item in value]
    else:
        items = [] if isinstance(value.element, Unknown) else [value.element]
    for item in items:
        if isinstance(item, LocalType | types.BaseTuple):
            raise refuse(
                f"a slice gets {item} for an element: assign row by row in a loop, "
                "state.x[i] = rows[i]"
            )
    return items


def _row_of_list(run: Run, view: ViewType, of: types.Type, value: Value) -> tuple[Window, Any]:
    """The items of a list where they lie, and of which type they are."""
    head = List(run.context, run.builder, of, value)
    element = NUMBA_KINDS[view.kind] if isinstance(head.element, Unknown) else head.element
    number = next(name for name, numba in NUMBA_KINDS.items() if numba == element)
    words = run.builder.bitcast(head.member("words", POINTER), POINTER)
    return _row(run, view, number, words, head.count()), element


def _row_of_tuple(run: Run, view: ViewType, of: types.Type, value: Value) -> tuple[Window, Any]:
    """The items of a tuple on the stack, as what they become."""
    builder, element = run.builder, NUMBA_KINDS[view.kind]
    words: list[Value] = []
    for item, given in zip(cgutils.unpack_tuple(builder, value), of, strict=True):
        given = types.unliteral(given)
        there = unwrapped(run.context, builder, given, item)
        converted = convert(run.context, builder, there, present(given), view.kind)
        words += pack(run, element, converted)
    place = cgutils.alloca_once(builder, I64, size=max(len(words), 1))
    for at, word in enumerate(words):
        builder.store(word, builder.gep(place, [I64(at)], inbounds=True))
    row = _row(run, view, view.kind, builder.bitcast(place, POINTER), I64(len(words)))
    return row, element


def _row(run: Run, view: ViewType, number: str, words: Value, count: Value) -> Window:
    of = ViewType(storage_of(_WIDE[number], "an element"), 1, "range", view.variant)
    return Window(run, of, run.word_number(words), [count], [I64(1)])
