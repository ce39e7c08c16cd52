"""Views of arrays in Numba's terms: indices, slices, rows, length, shape and loops.

Semantics are NumPy's: negative indices, tuple indices, slices and rows that are views; every index
is checked.
"""

from __future__ import annotations

import operator
from typing import Any

import numba
from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import (
    intrinsic,
    lower_builtin,
    overload,
)

from specstream.compiler.backend.instructions import BIT, I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import present, unwrapped
from specstream.compiler.backend.numba_types import (
    BoostedType,
    EmitType,
    EventType,
    RecordsType,
    RowsIterator,
    StateType,
    ViewType,
)
from specstream.compiler.backend.overloads import resolved_call
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.frontend.error_texts import NO_ELEMENT
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import is_boosted, no_letters, refuse
from specstream.compiler.library import array_windows
from specstream.compiler.library.array_windows import Window
from specstream.compiler.library.indices import slice_of
from specstream.compiler.library.locking import LocksType

__all__ = ["View", "index_types", "index_values", "make_view", "read_whole", "remaining"]


def make_view(
    context: Any,
    builder: Any,
    view: ViewType,
    run: Value,
    offset: Value,
    shape: list[Value],
    strides: list[Value],
) -> Value:
    made = cgutils.create_struct_proxy(view)(context, builder)
    made.run = run
    made.offset = offset
    made.shape = cgutils.pack_array(builder, shape)
    made.strides = cgutils.pack_array(builder, strides)
    return made._getvalue()


class View:
    """A view's parts, and what an index selects of it."""

    def __init__(self, context: Any, builder: Any, view: ViewType, value: Value) -> None:
        parts = cgutils.create_struct_proxy(view)(context, builder, value=value)
        self.context = context
        self.builder = builder
        self.type = view
        self.run = Run(context, builder, parts.run)
        self.offset = parts.offset
        self.shape = cgutils.unpack_tuple(builder, parts.shape, view.ndim)
        self.strides = cgutils.unpack_tuple(builder, parts.strides, view.ndim)

    def load(self, at: Value) -> Value:
        return self.run.load(self.type.space, self.type.variant, self.type.storage, at)

    def store(self, at: Value, element: Value) -> None:
        self.run.store(self.type.space, self.type.variant, self.type.storage, at, element)

    def position(self, index: Value, index_type: types.Type, axis: int) -> Value:
        """An index as a position within an axis; a fault when it is outside."""
        builder, length, at = self.builder, self.shape[axis], index
        is_signed = types.unliteral(index_type) == types.int64
        if is_signed:
            negative = builder.icmp_signed("<", index, I64(0))
            at = builder.select(negative, builder.add(index, length), index)
        outside = builder.icmp_unsigned(">=", at, length)
        if getattr(self.context, "tells_texts", False):
            with builder.if_then(outside, likely=False):
                kinds = ("int" if is_signed else "uint", "int", "int")
                self.run.store_told(kinds, [index, I64(axis), length])
                self.run.fault_if(BIT(1), IndexError, NO_ELEMENT)
        else:
            self.run.fault_if(outside, IndexError)
        return at

    def select(
        self, index_types: list[types.Type], indices: list[Value]
    ) -> tuple[Value, list[Value], list[Value]]:
        """What indices leave of an array's view, in LLVM: first element, lengths, strides."""
        builder = self.builder
        offset = self.offset
        shape, strides = [], []
        for axis, (index_type, index) in enumerate(zip(index_types, indices, strict=True)):
            length, stride = self.shape[axis], self.strides[axis]
            if isinstance(index_type, types.SliceType):
                first, step, count = slice_of(self.run, index_type, index, length)
                offset = builder.add(offset, builder.mul(first, stride))
                shape.append(count)
                strides.append(builder.mul(step, stride))
            else:
                index = unwrapped(self.context, builder, index_type, index)
                at = self.position(index, present(index_type), axis)
                offset = builder.add(offset, builder.mul(at, stride))
        rest = len(index_types)
        return offset, shape + self.shape[rest:], strides + self.strides[rest:]

    def sub(self, index_types: list[types.Type], indices: list[Value]) -> Value:
        """What indices select of an array's view, as an LLVM value: an element, or a view."""
        offset, shape, strides = self.select(index_types, indices)
        if not shape:
            return self.load(offset)
        return self.view(offset, shape, strides)

    def view(self, offset: Value, shape: list[Value], strides: list[Value]) -> Value:
        made = self.type.with_ndim(len(shape))
        assert isinstance(made, ViewType)
        return make_view(self.context, self.builder, made, self.run.pointer, offset, shape, strides)


def index_types(view: ViewType, index: types.Type) -> list[types.Type]:
    """Checks the types of the indices of an array's view, as in ``view[i, 2:]``."""
    parts = list(index.types) if isinstance(index, types.BaseTuple) else [index]
    if len(parts) > view.ndim:
        raise refuse(f"{len(parts)} indices for an array of {view.ndim} axes: use fewer")
    for part in map(present, parts):
        if isinstance(part, TextType):
            raise refuse("an index is a string: hash it, like (x & 65535) % n")
        if not isinstance(part, types.SliceType) and scalar_kind(part) not in ("int64", "uint64"):
            raise refuse(f"an index has type {part}: write int(x)")
    return parts


def index_values(builder: Any, index_type: types.Type, index: Value) -> list[Value]:
    if isinstance(index_type, types.BaseTuple):
        return list(cgutils.unpack_tuple(builder, index, len(index_type)))
    return [index]


def remaining(view: ViewType, parts: list[types.Type]) -> types.Type:
    kept = sum(isinstance(part, types.SliceType) for part in parts)
    return view.with_ndim(view.ndim - len(parts) + kept)


@infer_global(operator.getitem)
class _ViewGetitem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        view, index = args
        if isinstance(view, BoostedType):
            raise is_boosted(view.field)
        if isinstance(view, TextType):
            raise no_letters("[]")
        if not isinstance(view, ViewType):
            return None
        index = types.unliteral(index)
        return signature(remaining(view, index_types(view, index)), view, index)


@lower_builtin(operator.getitem, ViewType, types.Any)
def _view_getitem(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    view = View(context, builder, sig.args[0], args[0])
    parts = index_types(sig.args[0], sig.args[1])
    return view.sub(parts, index_values(builder, sig.args[1], args[1]))


@overload(len)
def _view_len(view: Any) -> Any:
    if isinstance(view, BoostedType):
        raise is_boosted(view.field)
    if not isinstance(view, ViewType):
        return None

    def length(view: Any) -> Any:
        return view.shape[0]

    return length


@overload(bool)
def _truth(value: Any) -> Any:
    """Refuses the truth of views and of the state.

    Numba asks for it wherever a condition stands.
    """
    if isinstance(value, ViewType):
        raise refuse("an array has no truth value: test len(x) > 0, or an element")
    if isinstance(value, StateType | EventType | EmitType | BoostedType | LocksType):
        raise refuse(f"{value} has no truth value: test a field or a column of it")


@infer_getattr
class _ViewAttribute(AttributeTemplate):
    key = ViewType

    def resolve_shape(self, view: ViewType) -> types.Type:
        return types.UniTuple(types.int64, view.ndim)

    def resolve_ndim(self, view: ViewType) -> types.Type:
        return types.int64


@numba.extending.lower_getattr(ViewType, "ndim")
def _view_ndim(context: Any, builder: Any, view: ViewType, value: Value) -> Value:
    return I64(view.ndim)


@numba.extending.lower_getattr(ViewType, "shape")
def _view_shape(context: Any, builder: Any, view: ViewType, value: Value) -> Value:
    shape = cgutils.create_struct_proxy(view)(context, builder, value=value).shape
    return context.make_tuple(
        builder,
        types.UniTuple(types.int64, view.ndim),
        cgutils.unpack_tuple(builder, shape, view.ndim),
    )


# ---- going through the first axis, of records as well ----


@lower_builtin("getiter", ViewType)
@lower_builtin("getiter", RecordsType)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.of = args[0]
    made.next = cgutils.alloca_once_value(builder, I64(0))
    return made._getvalue()


@lower_builtin("iternext", RowsIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    iterator = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    of = sig.args[0].of
    shape = cgutils.create_struct_proxy(of)(context, builder, value=iterator.of).shape
    at = builder.load(iterator.next)
    more = builder.icmp_signed("<", at, builder.extract_value(shape, 0))
    result.set_valid(more)
    with builder.if_then(more):
        builder.store(builder.add(at, I64(1)), iterator.next)
        given = (of, types.int64), (iterator.of, at)
        result.yield_(resolved_call(context, builder, operator.getitem, *given)[1])


@intrinsic(prefer_literal=True)
def read_whole(typing_context: Any, view: Any, copied: Any) -> Any:
    """Makes a view of one axis, all of whose elements are about to be read, logged together.

    With ``copied`` it stays as it is when the state changes.
    """
    if not isinstance(copied, types.BooleanLiteral):
        return None  # Numba's second try, without literals
    moved = view.is_logged or copied.literal_value
    read = array_windows.whole_type(view) if moved else view

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        if not moved:
            return args[0]
        own = View(context, builder, view, args[0])
        window = array_windows.read_whole(Window(own.run, view, own.offset, own.shape, own.strides))
        return make_view(
            context, builder, read, own.run.pointer, window.offset, window.shape, window.strides
        )

    return read(view, copied), code
