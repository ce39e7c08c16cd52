"""Arithmetic with whole arrays: ``state.a[:10] * x + state.b[:10]``, in LLVM instructions.

Each operation is done element by element into an array of its own in the worker's arena, as NumPy
does it, so what is on the right is evaluated whole before anything is stored. Shapes have to be
equal but for axes of length 1, which are repeated, and missing ones in front. What is done to an
element is what the same operation does to numbers.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import cgutils, types

from specstream._native import ffi
from specstream.compiler.backend.instructions import I64, POINTER, Value
from specstream.compiler.backend.local_types import kinds_of
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import Variant, ViewType
from specstream.compiler.backend.overloads import Meaning, of_values
from specstream.compiler.backend.scalar_functions import Native
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS, scalar_kind
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import arithmetic, array_windows, conversions
from specstream.compiler.library.array_views import View, make_view
from specstream.compiler.library.array_windows import Window
from specstream.compiler.library.item_assignment import update_items
from specstream.compiler.library.numpy_functions import NUMPY
from specstream.declarations.element_types import storage_of

__all__ = ["array_type", "made_type", "new_list", "new_window", "view_of", "window_of"]

_STORED = {"int64": int, "uint64": np.uint64, "float64": float, "bool": bool, "string": str}


_ADDING = {
    arithmetic.OPERATORS[node]
    for node in (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow)
}

# What these do with what may be None, none_rules.py says.
_NONE_APART = (arithmetic.eq, arithmetic.ne, NUMPY["clip"])


def made_type(view: ViewType, kind: str, ndim: int) -> ViewType:
    """The type of an array in the arena, made of another one."""
    return array_type(kind, ndim, view.variant)


def array_type(kind: str, ndim: int, variant: Variant) -> ViewType:
    """The type of an array that is in no field."""
    return ViewType(storage_of(_STORED[kind], "an element"), ndim, "range", variant)


def window_of(context: Any, builder: Any, view: ViewType, value: Value) -> Window:
    own = View(context, builder, view, value)
    return Window(own.run, view, own.offset, own.shape, own.strides)


def view_of(window: Window) -> Value:
    run = window.run
    return make_view(
        run.context,
        run.builder,
        window.type,
        run.pointer,
        window.offset,
        window.shape,
        window.strides,
    )


def new_list(run: Run, kinds: Value, count: Value) -> tuple[Value, Value]:
    """Room for the words of an array expression's result: a list, and where they lie."""
    builder = run.builder
    # Should array_use.py have missed that there are arrays, the event ends here and says so.
    run.leave_if(cgutils.is_null(builder, run.load_member("arena", POINTER)))
    made = run.call("ss_list_new", POINTER, run.pointer, kinds, count)
    run.leave_if(cgutils.is_null(builder, made))
    offset = I64(ffi.offsetof("struct ss_list", "words"))
    place = builder.gep(made, [offset], inbounds=True)
    return made, builder.load(builder.bitcast(place, POINTER.as_pointer()))


def new_window(run: Run, of: ViewType, shape: list[Value]) -> Window:
    """The array that an array expression gives, in the arena, still without its elements."""
    builder = run.builder
    count = I64(1)
    strides: list[Value] = []
    for length in reversed(shape):
        strides.insert(0, count)
        count = builder.mul(count, length)
    none = builder.icmp_signed("==", count, I64(0))
    room = builder.select(none, I64(1), count)
    _, words = new_list(run, kinds_of(NUMBA_KINDS[of.kind]), room)
    first = run.word_number(words)
    return Window(run, of, first, shape, strides)


def _together(run: Run, windows: list[Window]) -> tuple[list[Value], list[Window]]:
    """The shape of what comes of arrays, and they in that shape: a repeated axis has stride 0."""
    builder = run.builder
    ndim = max(len(window.shape) for window in windows)
    shape: list[Value] = [I64(1)] * ndim
    for window in windows:
        missing = ndim - len(window.shape)
        for axis, length in enumerate(window.shape, start=missing):
            one = builder.icmp_signed("==", shape[axis], I64(1))
            shape[axis] = builder.select(one, length, shape[axis])
    fitted = []
    for window in windows:
        missing = ndim - len(window.shape)
        strides: list[Value] = [I64(0)] * missing
        for axis, length in enumerate(window.shape, start=missing):
            same = builder.icmp_signed("==", length, shape[axis])
            one = builder.icmp_signed("==", length, I64(1))
            run.fault_if(builder.not_(builder.or_(same, one)), ValueError)
            strides.append(builder.select(same, window.strides[axis - missing], I64(0)))
        fitted.append(replace(window, shape=shape, strides=strides))
    return shape, fitted


def _operands_read(windows: list[Window]) -> list[Window]:
    """The operands of array arithmetic, whose logged arrays are read as a whole.

    The last one may stay in the worker's buffer.
    """
    whole = [at for at, one in enumerate(windows) if one.type.is_logged and len(one.shape) == 1]
    read = list(windows)
    for at in whole:
        own = array_windows.read_whole(windows[at])
        if at != whole[-1]:
            kept = new_window(own.run, own.type, own.shape)
            with cgutils.loop_nest(own.run.builder, own.shape, I64) as indices:
                kept.store(indices, own.load(indices))
            own = kept
        read[at] = own
    return read


def _scalar(of: types.Type) -> types.Type:
    return NUMBA_KINDS[of.kind] if isinstance(of, ViewType) else of


def _elementwise(function: Native) -> Any:
    """A rule: the function of each element."""

    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        views = [one for one in args if isinstance(one, ViewType)]
        if not views or not all(
            isinstance(one, ViewType | TextType) or scalar_kind(one) is not None for one in args
        ):
            return None
        known = typing_context.resolve_value_type(function)
        scalars = typing_context.resolve_function_type(known, tuple(map(_scalar, args)), {})
        kind = scalar_kind(scalars.return_type)
        assert kind is not None
        if function in _ADDING and all(scalar_kind(_scalar(one)) == "bool" for one in args):
            raise refuse("arithmetic with arrays of bools alone: write x | y, x & y, or a loop")
        made = made_type(views[0], kind, max(one.ndim for one in views))
        taken = [types.unliteral(one) for one in args]

        def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            places = [at for at, one in enumerate(taken) if isinstance(one, ViewType)]
            windows = [window_of(context, builder, taken[at], values[at]) for at in places]
            run = windows[0].run
            shape, _ = _together(run, windows)  # which may raise, before anything is read
            _, windows = _together(run, _operands_read(windows))
            result = new_window(run, made, shape)
            call = context.get_function(known, scalars)
            context.add_linking_libs(getattr(call, "libs", ()))
            with cgutils.loop_nest(builder, shape, I64) as indices:
                elements = list(values)
                for at, window in zip(places, windows, strict=True):
                    elements[at] = window.load(indices)
                cast = [
                    context.cast(builder, element, _scalar(of), wanted)
                    for element, of, wanted in zip(elements, taken, scalars.args, strict=True)
                ]
                result.store(indices, call(builder, cast))
            return view_of(result)

        return made, taken, code

    return _elementwise_without_none(rule) if function in _NONE_APART else of_values(rule)


def _elementwise_without_none(rule: Any) -> Any:
    """The rule of array arithmetic without None: a nullable column has a value in any case."""
    plain = of_values(rule)

    def asked(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if any(isinstance(one, types.Optional) or one == types.none for one in args):
            return None
        found: Meaning | None = plain(typing_context, args)
        return found

    return asked


def _in_place(function: Native, operation: Native) -> Any:
    """A rule of ``x += y``: an array is changed where it is; a number becomes an array."""
    anew = _elementwise(operation)

    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not any(isinstance(one, ViewType) for one in args):
            return None
        target, value = args
        if not isinstance(target, ViewType):
            made: Meaning | None = anew(typing_context, args)
            return made
        if not isinstance(value, ViewType | TextType) and scalar_kind(value) is None:
            return None
        known = typing_context.resolve_value_type(update_items)
        of_operation = typing_context.resolve_value_type(operation)
        given = (target, of_operation, types.unliteral(value))
        update = typing_context.resolve_function_type(known, given, {})

        def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            call = context.get_function(known, update)
            context.add_linking_libs(getattr(call, "libs", ()))
            call(builder, (values[0], context.get_dummy_value(), values[1]))
            return values[0]

        return target, [target, types.unliteral(value)], code

    return of_values(rule)


def _no_truth(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if any(isinstance(one, ViewType) for one in args):
        raise refuse("an array has no truth value: test len(x) > 0, an element, or x.any()")
    return None


for _node, _function in arithmetic.OPERATORS.items():
    _function.rule(_no_truth if _node is ast.Not else _elementwise(_function))
for _step, _function in arithmetic.IN_PLACE.items():
    _function.rule(_in_place(_function, arithmetic.OPERATORS[_step]))
for _function in {*NUMPY.values(), conversions.abs_} - set(conversions.NUMPY.values()):
    if isinstance(_function, Native) and not _function.name.startswith("as_"):
        _function.rule(_elementwise(_function))
