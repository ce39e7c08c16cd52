"""What an operator does with state, views, events and emit, in Numba's terms.

The rewritten source (:mod:`specstream.compiler.source`) calls the functions defined here; reads of
attributes and items stay as they are and are typed here. Semantics are NumPy's: negative indices,
tuple indices, slices and rows that are views; every index is checked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
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
    lower_getattr_generic,
    models,
    overload,
    register_model,
)

from specstream.compiler import assignment, text
from specstream.compiler.arithmetic import OperatorFault, scalar_kind
from specstream.compiler.assignment import Window
from specstream.compiler.locking import LocksType
from specstream.compiler.memory import F64, I64, POINTER, Run
from specstream.compiler.reserved import RESERVED_COLUMNS
from specstream.compiler.text import TextType
from specstream.compiler.types import (
    BOOSTED,
    NUMBA_KINDS,
    SPECULATIVE,
    UNDOING,
    BoostedType,
    EmitType,
    EventType,
    RunType,
    StateType,
    ViewIterator,
    ViewType,
)
from specstream.declarations.element_types import Number
from specstream.declarations.schema import Kind
from specstream.declarations.state import Field

__all__ = [
    "compiled",
    "contains",
    "emit_row",
    "event_is_null",
    "event_random",
    "event_random_bits",
    "poll_for",
    "poll_while",
    "set_field",
    "set_item",
    "view_max",
    "view_min",
    "view_sum",
]

Value = Any

COMPILE_OPTIONS = {
    "nogil": True,
    "error_model": "python",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # Operators may not allocate, so a frame owns nothing and may be left at any point.
    "_nrt": False,
}


def compiled(function: Callable[..., Any]) -> Any:
    """A function for Numba, under the options that all native code shares."""
    from specstream.compiler.variants import OperatorCompiler

    return numba.njit(pipeline_class=OperatorCompiler, **COMPILE_OPTIONS)(function)


def refuse(message: str) -> TypingError:
    """A typing error that :mod:`specstream.compiler.variants` translates for the user."""
    return TypingError(f"specstream: {message}")


# ---- kinds ----

_ACCEPTED: dict[Kind | Number, tuple[str, ...]] = {
    "int": ("int64", "bool"),
    "uint": ("uint64",),
    "float": ("float64", "int64", "bool"),
    "bool": ("bool",),
    "str": ("string", "int64"),
}
_WAYS_OUT = {
    ("float64", "int"): "write int(x)",
    ("uint64", "int"): "write np.int64(x)",
    ("uint64", "str"): "write np.int64(x)",
    ("uint64", "float"): "write float(x)",
    ("int64", "uint"): "write np.uint64(x)",
    ("bool", "uint"): "write np.uint64(x)",
    ("float64", "uint"): "write np.uint64(x)",
    ("int64", "bool"): "write x != 0",
    ("float64", "bool"): "write x != 0.0",
}


def check_kind(
    value: types.Type,
    kind: Kind | Number,
    what: str,
    declared: str | None = None,
    keeps_strings: bool = False,
) -> None:
    """Refuses a value that would lose something when stored as ``kind``.

    Whether a number is within the range of a narrower type is seen when it is stored. With
    ``keeps_strings``, what is declared int also takes a string, as its code.
    """
    is_text = isinstance(value, TextType)
    found = "string" if is_text else scalar_kind(value)
    if is_text and keeps_strings and (declared or kind) == "int":
        return
    if found not in _ACCEPTED[kind]:
        way_out = _WAYS_OUT.get((found or "", kind), "store one number at a time")
        if is_text:
            way_out = "keep it in an int field, or emit it into a column that is declared str"
        raise refuse(f"{what} is declared {declared or kind} and gets {found or value}: {way_out}")


def convert(
    context: Any, builder: Any, value: Value, given: types.Type, kind: Kind | Number
) -> Value:
    """A scalar as the kind that it is stored as; exact but for int to float, as in Python."""
    return context.cast(builder, value, given, NUMBA_KINDS[kind])


# ---- run ----


def _poll(name: str, variants: tuple[str, ...], why: str) -> Any:
    def rule(typing_context: Any, run: types.Type) -> Any:
        assert isinstance(run, RunType)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            if run.variant in variants:
                Run(context, builder, args[0]).poll()
            return context.get_dummy_value()

        return types.void(run), code

    rule.__name__ = name
    rule.__doc__ = why
    return intrinsic(rule)


poll_for = _poll(
    "poll_for",
    (*SPECULATIVE, BOOSTED),
    "In a bounded loop: on inconsistent data the bound may be anything.",
)
poll_while = _poll(
    "poll_while",
    (*SPECULATIVE, *UNDOING),
    "In an unbounded loop: the user's own endless loop must not outlive Ctrl-C.",
)


# ---- state ----


def _field(state: StateType, name: str) -> Field:
    field = state.layout.field(name)
    if field is None:
        names = ", ".join(field.name for field in state.layout.fields)
        raise refuse(f"state {state.layout.name!r} has no field {name!r}: it has {names}")
    return field


@infer_getattr
class _StateAttribute(AttributeTemplate):
    key = StateType

    def generic_resolve(self, state: StateType, name: str) -> types.Type:
        field = _field(state, name)
        if field.space == "locks":
            return LocksType(field)
        if field.operations:
            return BoostedType(state, field)
        view = ViewType(field.storage, len(field.shape), field.space, state.variant)
        return view.with_ndim(view.ndim)


@lower_getattr_generic(StateType)
def _state_getattr(context: Any, builder: Any, state: StateType, value: Value, name: str) -> Value:
    field = _field(state, name)
    if field.space == "locks" or field.operations:
        return value
    if field.shape == ():
        return Run(context, builder, value).load(
            field.space, state.variant, field.storage, I64(field.start)
        )
    view = ViewType(field.storage, len(field.shape), field.space, state.variant)
    return whole_field(context, builder, view, value, field)


def whole_field(context: Any, builder: Any, view: ViewType, run: Value, field: Field) -> Value:
    """The view of all elements of a field."""
    strides = [1]
    for length in reversed(field.shape[1:]):
        strides.insert(0, strides[0] * length)
    return _make_view(
        context,
        builder,
        view,
        run,
        I64(field.start),
        [I64(length) for length in field.shape],
        [I64(stride) for stride in strides],
    )


@intrinsic(prefer_literal=True)
def set_field(typing_context: Any, value: Any, state: Any, name: Any) -> Any:
    """``state.name = value``: Python evaluates the value first."""
    if not isinstance(state, StateType):
        raise refuse(f"an attribute of {state} cannot be assigned: only fields of the state can")
    if not isinstance(name, types.StringLiteral):
        return None  # Numba's second try, without literals
    field = _field(state, name.literal_value)
    if field.space == "locks":
        raise refuse(f"field {field.name!r} holds locks: write with state.{field.name}[i]")
    if field.operations:
        raise _is_boosted(field)
    if field.shape != ():
        raise refuse(
            f"field {field.name!r} is an array and cannot be replaced: assign elements, "
            f"like state.{field.name}[i] = x"
        )
    what = f"field {field.name!r}"
    check_kind(value, field.kind, what, field.storage.name, keeps_strings=True)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        element = convert(context, builder, args[0], sig.args[0], field.kind)
        Run(context, builder, args[1]).store(
            field.space, state.variant, field.storage, I64(field.start), element
        )
        return context.get_dummy_value()

    return types.void(types.unliteral(value), state, name), code


# ---- views ----


def _make_view(
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


class _View:
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

    def position(self, index: Value, index_type: types.Type, length: Value) -> Value:
        """An index as a position within the axis; a fault when it is outside."""
        builder = self.builder
        if types.unliteral(index_type) == types.int64:
            negative = builder.icmp_signed("<", index, I64(0))
            index = builder.select(negative, builder.add(index, length), index)
        self.run.fault_if(builder.icmp_unsigned(">=", index, length))
        return index

    def select(
        self, index_types: list[types.Type], indices: list[Value]
    ) -> tuple[Value, list[Value], list[Value]]:
        """First element, lengths and strides of what the indices leave."""
        builder = self.builder
        offset = self.offset
        shape, strides = [], []
        for axis, (index_type, index) in enumerate(zip(index_types, indices, strict=True)):
            length, stride = self.shape[axis], self.strides[axis]
            if isinstance(index_type, types.SliceType):
                part = self.context.make_helper(builder, index_type, index)
                if index_type.has_step:
                    self.run.fault_if(builder.icmp_signed("==", part.step, I64(0)))
                slicing.fix_slice(builder, part, length)
                offset = builder.add(offset, builder.mul(part.start, stride))
                shape.append(slicing.get_slice_length(builder, part))
                strides.append(builder.mul(part.step, stride))
            else:
                at = self.position(index, index_type, length)
                offset = builder.add(offset, builder.mul(at, stride))
        rest = len(index_types)
        return offset, shape + self.shape[rest:], strides + self.strides[rest:]

    def sub(self, index_types: list[types.Type], indices: list[Value]) -> Value:
        """The element or the smaller view that the indices select."""
        offset, shape, strides = self.select(index_types, indices)
        if not shape:
            return self.load(offset)
        return self.view(offset, shape, strides)

    def view(self, offset: Value, shape: list[Value], strides: list[Value]) -> Value:
        made = self.type.with_ndim(len(shape))
        assert isinstance(made, ViewType)
        return _make_view(
            self.context, self.builder, made, self.run.pointer, offset, shape, strides
        )


def _index_types(view: ViewType, index: types.Type) -> list[types.Type]:
    """The parts of an index, checked."""
    parts = list(index.types) if isinstance(index, types.BaseTuple) else [index]
    if len(parts) > view.ndim:
        raise refuse(f"{len(parts)} indices for an array of {view.ndim} axes: use fewer")
    for part in parts:
        if isinstance(part, TextType):
            raise refuse("an index is a string: hash it, like (x & 65535) % n")
        if not isinstance(part, types.SliceType) and scalar_kind(part) not in ("int64", "uint64"):
            raise refuse(f"an index has type {part}: write int(x)")
    return parts


def _index_values(builder: Any, index_type: types.Type, index: Value) -> list[Value]:
    if isinstance(index_type, types.BaseTuple):
        return list(cgutils.unpack_tuple(builder, index, len(index_type)))
    return [index]


def _remaining(view: ViewType, parts: list[types.Type]) -> types.Type:
    kept = sum(isinstance(part, types.SliceType) for part in parts)
    return view.with_ndim(view.ndim - len(parts) + kept)


@infer_global(operator.getitem)
class _ViewGetitem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        view, index = args
        if isinstance(view, BoostedType):
            raise _is_boosted(view.field)
        if isinstance(view, TextType):
            raise _no_letters("[]")
        if not isinstance(view, ViewType):
            return None
        index = types.unliteral(index)
        return signature(_remaining(view, _index_types(view, index)), view, index)


@lower_builtin(operator.getitem, ViewType, types.Any)
def _view_getitem(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    view = _View(context, builder, sig.args[0], args[0])
    parts = _index_types(sig.args[0], sig.args[1])
    return view.sub(parts, _index_values(builder, sig.args[1], args[1]))


def _no_letters(what: str) -> TypingError:
    return refuse("; ".join(text.refusal(what)))


def _no_array(owner: types.Type) -> TypingError:
    """Why an item of something cannot be assigned."""
    if isinstance(owner, BoostedType):
        return _is_boosted(owner.field)
    return refuse(f"an item of {owner} cannot be assigned: only arrays of the state can")


def _is_boosted(field: Field) -> TypingError:
    ways = ", ".join(f"state.{field.name}.{one.name}(...)" for one in field.operations)
    return refuse(f"field {field.name!r} is boosted: use its operations, {ways}")


def set_item(value: Any, view: Any, index: Any) -> Any:
    """``view[index] = value``: Python evaluates the value first. Exists in compiled operators
    only."""
    raise TypeError("set_item exists in compiled operators only")


@infer_global(set_item)
class _SetItem(AbstractTemplate):
    """One element, or a row or slice: from a number, or from another row or slice."""

    def generic(self, args: Any, kws: Any) -> Any:
        value, view, index = args
        if not isinstance(view, ViewType):
            raise _no_array(view)
        index = types.unliteral(index)
        remaining = _remaining(view, _index_types(view, index))
        if isinstance(value, _ChangedType):
            return signature(types.void, value, view, index)
        given = value
        if isinstance(value, ViewType):
            if not isinstance(remaining, ViewType):
                raise refuse(
                    "an array is assigned to one element: assign one element of it, or to a slice"
                )
            given = NUMBA_KINDS[value.kind]
        check_kind(given, view.kind, "an array", view.storage.name, keeps_strings=True)
        return signature(types.void, types.unliteral(value), view, index)


@lower_builtin(set_item, types.Any, ViewType, types.Any)
def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    given, view, index = sig.args
    if isinstance(given, _ChangedType):
        return context.get_dummy_value()
    target = _View(context, builder, view, args[1])
    parts = _index_types(view, index)
    at, shape, strides = target.select(parts, _index_values(builder, index, args[2]))
    if isinstance(given, ViewType):
        source = _View(context, builder, given, args[0])
        kind = NUMBA_KINDS[given.kind]
        assignment.copy(
            Window(target.run, view, at, shape, strides),
            Window(target.run, given, source.offset, source.shape, source.strides),
            lambda element: convert(context, builder, element, kind, view.kind),
        )
        return context.get_dummy_value()
    element = convert(context, builder, args[0], given, view.kind)
    if shape:
        assignment.fill(Window(target.run, view, at, shape, strides), element)
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


@overload(update_items)
def _update_items(target: Any, operation: Any, value: Any) -> Any:
    if isinstance(value, ViewType) and value.ndim > 1:
        raise refuse(
            "a slice is changed by an array of more than one axis: write a loop over its rows"
        )

    def by_a_copy(target: Any, operation: Any, value: Any) -> Any:
        # The source may overlap with the target, or be one of its rows.
        update_items(target, operation, _read_whole(value, True))

    def by_an_array(target: Any, operation: Any, value: Any) -> Any:
        length = len(value)
        if length != len(target) and length != 1:
            raise OperatorFault
        for i in range(len(target)):
            set_item(operation(target[i], value[i if length != 1 else 0]), target, i)

    def by_a_number(target: Any, operation: Any, value: Any) -> Any:
        for i in range(len(target)):
            set_item(operation(target[i], value), target, i)

    def row_by_row(target: Any, operation: Any, value: Any) -> Any:
        for i in range(len(target)):
            update_items(target[i], operation, value)

    if isinstance(value, ViewType) and value.space != "range":
        return by_a_copy
    if target.ndim > 1:
        return row_by_row
    return by_an_array if isinstance(value, ViewType) else by_a_number


@overload(len)
def _view_len(view: Any) -> Any:
    if isinstance(view, BoostedType):
        raise _is_boosted(view.field)
    if not isinstance(view, ViewType):
        return None

    def length(view: Any) -> Any:
        return view.shape[0]

    return length


@overload(bool)
def _truth(value: Any) -> Any:
    """Numba asks for it wherever a condition stands."""
    if isinstance(value, ViewType):
        raise refuse("an array has no truth: test len(x) > 0, or an element")
    if isinstance(value, StateType | EventType | EmitType | BoostedType | LocksType):
        raise refuse(f"{value} has no truth: test a field or a column of it")


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


@lower_builtin("getiter", ViewType)
def _view_getiter(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.view = args[0]
    made.next = cgutils.alloca_once_value(builder, I64(0))
    return made._getvalue()


@lower_builtin("iternext", ViewIterator)
@iternext_impl(RefType.UNTRACKED)
def _view_iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    iterator = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    view = _View(context, builder, sig.args[0].view, iterator.view)
    at = builder.load(iterator.next)
    more = builder.icmp_signed("<", at, view.shape[0])
    result.set_valid(more)
    with builder.if_then(more):
        builder.store(builder.add(at, I64(1)), iterator.next)
        result.yield_(view.sub([types.int64], [at]))


@intrinsic(prefer_literal=True)
def _read_whole(typing_context: Any, view: Any, copied: Any) -> Any:
    """A view of one axis, all of whose elements are about to be read: they are logged together.

    With ``copied`` it stays as it is when the state changes.
    """
    if not isinstance(copied, types.BooleanLiteral):
        return None  # Numba's second try, without literals
    moved = view.is_logged or copied.literal_value
    read = assignment.whole_type(view) if moved else view

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        if not moved:
            return args[0]
        own = _View(context, builder, view, args[0])
        window = assignment.read_whole(Window(own.run, view, own.offset, own.shape, own.strides))
        return _make_view(
            context, builder, read, own.run.pointer, window.offset, window.shape, window.strides
        )

    return read(view, copied), code


def _over_view(name: str, implementation: Callable[[ViewType], Any]) -> Any:
    def function(view: Any) -> Any:
        raise TypeError(f"{name} exists in compiled operators only")

    function.__name__ = function.__qualname__ = f"view_{name}"

    @overload(function)
    def typed(view: Any) -> Any:
        if not isinstance(view, ViewType) or view.ndim != 1:
            raise refuse(
                f"{name}() of one value takes an array of one axis, or a row: "
                f"write {name}(a, b) for two numbers"
            )
        return implementation(view)

    return function


def _minimum(view: ViewType) -> Any:
    def implementation(view: Any) -> Any:
        if len(view) == 0:
            raise OperatorFault
        read = _read_whole(view, False)
        least = read[0]
        for i in range(1, len(view)):
            element = read[i]
            if element < least:
                least = element
        return least

    return implementation


def _maximum(view: ViewType) -> Any:
    def implementation(view: Any) -> Any:
        if len(view) == 0:
            raise OperatorFault
        read = _read_whole(view, False)
        most = read[0]
        for i in range(1, len(view)):
            element = read[i]
            if element > most:
                most = element
        return most

    return implementation


def _sum(view: ViewType) -> Any:
    zero = {"float": 0.0, "uint": np.uint64(0)}.get(view.kind, 0)

    def implementation(view: Any) -> Any:
        read = _read_whole(view, False)
        total = zero
        for i in range(len(view)):
            total = total + read[i]
        return total

    return implementation


view_min = _over_view("min", _minimum)
view_max = _over_view("max", _maximum)
view_sum = _over_view("sum", _sum)


def contains(element: Any, container: Any) -> Any:
    """``element in container``; exists in compiled operators only."""
    raise TypeError("contains exists in compiled operators only")


@overload(contains)
def _contains(element: Any, container: Any) -> Any:
    from specstream.compiler.arithmetic import eq

    uniform = isinstance(container, types.UniTuple)
    if isinstance(container, TextType):
        raise _no_letters("in")
    if not uniform and not (isinstance(container, ViewType) and container.ndim == 1):
        raise refuse(
            "`in` takes an array of one axis, a row, or a tuple of numbers of one type: "
            "write the comparisons out"
        )

    def implementation(element: Any, container: Any) -> Any:
        for i in range(len(container)):  # noqa: SIM110 - Numba has no any() of a generator
            if eq(container[i], element):
                return True
        return False

    return implementation


# ---- event ----


@infer_getattr
class _EventAttribute(AttributeTemplate):
    key = EventType

    def generic_resolve(self, event: EventType, name: str) -> types.Type:
        if name in ("timestamp", "source", "sequence"):
            return types.int64
        kind = event.schema.kind(name)
        if kind is None:
            raise refuse(
                f"the event has no column {name!r}: it has {', '.join(event.schema.names)}"
                ", and timestamp, source and sequence"
            )
        return NUMBA_KINDS[kind]


@lower_getattr_generic(EventType)
def _event_getattr(context: Any, builder: Any, event: EventType, value: Value, name: str) -> Value:
    return _event_column(Run(context, builder, value), event, name)


def _event_column(run: Run, event: EventType, name: str) -> Value:
    builder = run.builder
    row = run.load_member("event")
    if name == "sequence":
        return builder.add(row, run.load_member("first_sequence", invariant=True))
    if name in RESERVED_COLUMNS:
        return _element(run, row, RESERVED_COLUMNS.index(name), "int")
    number = event.schema.names.index(name)
    return _element(run, row, len(RESERVED_COLUMNS) + number, event.schema.kinds[number])


def _element(run: Run, row: Value, number: int, kind: Kind) -> Value:
    """What a column has in a row; its bytes are bools."""
    builder = run.builder
    columns = run.load_member("columns", POINTER.as_pointer(), invariant=True)
    column = builder.load(builder.gep(columns, [I64(number)], inbounds=True))
    run.invariant(column)
    width = ir.IntType(8) if kind == "bool" else F64 if kind == "float" else I64
    elements = builder.bitcast(column, width.as_pointer())
    element = builder.load(builder.gep(elements, [row], inbounds=True))
    run.invariant(element)
    if kind == "bool":
        return builder.icmp_unsigned("!=", element, width(0))
    return element


@intrinsic(prefer_literal=True)
def event_is_null(typing_context: Any, event: Any, name: Any) -> Any:
    """Whether a nullable column is null; ``check.py`` has seen to it that there is such a one."""
    if not isinstance(event, EventType):
        raise refuse(f"is_null is a method of the event, not of {event}")
    if not isinstance(name, types.StringLiteral):
        return None  # Numba's second try, without literals
    schema = event.schema
    number = len(RESERVED_COLUMNS) + len(schema) + schema.nullable.index(name.literal_value)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        run = Run(context, builder, args[0])
        return _element(run, run.load_member("event"), number, "bool")

    return types.boolean(event, name), code


def _random_word(
    context: Any, builder: Any, event: EventType, pointer: Value, draw: Value
) -> Value:
    run = Run(context, builder, pointer)
    return run.call(
        "ss_random_bits",
        I64,
        run.load_member("seed", invariant=True),
        _event_column(run, event, "timestamp"),
        _event_column(run, event, "source"),
        _event_column(run, event, "sequence"),
        draw,
    )


def _check_draw(event: types.Type, draw: types.Type) -> None:
    if not isinstance(event, EventType):
        raise refuse(f"random and random_bits are methods of the event, not of {event}")
    if scalar_kind(draw) != "int64":
        raise refuse(f"the number of a draw is an int, not {draw}: write event.random(0)")


@intrinsic
def event_random_bits(typing_context: Any, event: Any, draw: Any) -> Any:
    """64 random bits, a function of seed, order key and ``draw``."""
    _check_draw(event, draw)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return _random_word(context, builder, event, args[0], args[1])

    return types.uint64(event, types.int64), code


@intrinsic
def event_random(typing_context: Any, event: Any, draw: Any) -> Any:
    """A float in [0, 1): the upper 53 of those bits."""
    _check_draw(event, draw)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        word = _random_word(context, builder, event, args[0], args[1])
        upper = builder.uitofp(builder.lshr(word, I64(11)), F64)
        return builder.fmul(upper, F64(2.0**-53))

    return types.float64(event, types.int64), code


# ---- emit ----


@intrinsic
def emit_row(typing_context: Any, emit: Any, names: Any, *values: Any) -> Any:
    """Appends one row: the event's row number, one word per column, and the nulls.

    ``names`` are those of the columns that the values are for, with commas between them; a column
    that is not among them is null. A value that may be null is of one of Numba's types for that:
    none, or optional.
    """
    given = values[0] if len(values) == 1 and isinstance(values[0], types.BaseTuple) else values
    if not isinstance(emit, EmitType):
        raise refuse(f"{emit} is called like emit, but is not")
    if not isinstance(names, types.StringLiteral):
        # Numba's second try, without literals. On None it would try without optionals as well.
        raise TypingError("the columns of a row are named by a literal")
    columns = dict(emit.schema)
    order = names.literal_value.split(",") if given else []
    for name, value in zip(order, given, strict=True):
        column = columns[name]
        if value != types.none:
            given_as = value.type if isinstance(value, types.Optional) else value
            check_kind(given_as, column.kind, f"emitted column {name!r}", str(column))

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        run = Run(context, builder, args[0])
        words = emit.schema.row_words
        top = run.load_member("emit_top", POINTER)
        following = builder.gep(top, [I64(8 * words)], inbounds=True)
        end = run.load_member("emit_end", POINTER)
        with builder.if_then(builder.icmp_unsigned(">", following, end), likely=False):
            grown = run.call("ss_emit_grow", ir.IntType(1), run.pointer)
            run.fault_if(builder.not_(grown))
        top = run.load_member("emit_top", POINTER)
        row = builder.bitcast(top, I64.as_pointer())
        builder.store(run.load_member("event"), row)
        row_types = list(sig.args[2])
        row_values = cgutils.unpack_tuple(builder, args[2], len(row_types))
        row_of = dict(zip(order, zip(row_types, row_values, strict=True), strict=True))
        null_bits = emit.schema.null_bits
        nulls = dict.fromkeys((word for word, _ in null_bits.values()), I64(0))
        for number, (name, column) in enumerate(emit.schema):
            of, value = row_of.get(name, (types.none, None))
            value, of, is_null = _unwrapped(context, builder, value, of, NUMBA_KINDS[column.kind])
            if number in null_bits:
                word, bit = null_bits[number]
                mark = builder.shl(builder.zext(is_null, I64), I64(bit))
                nulls[word] = builder.or_(nulls[word], mark)
            element = convert(context, builder, value, of, column.kind)
            if column.bounds is not None:
                low, high = map(I64, column.bounds)
                run.fault_if(builder.icmp_signed("<", element, low))
                run.fault_if(builder.icmp_signed(">", element, high))
            bits = run.to_bits(column.kind, element)
            builder.store(bits, builder.gep(row, [I64(1 + number)], inbounds=True))
        for word, marks in nulls.items():
            builder.store(marks, builder.gep(row, [I64(word)], inbounds=True))
        run.store_member("emit_top", builder.gep(top, [I64(8 * words)], inbounds=True))
        return context.get_dummy_value()

    return types.void(
        emit, names, types.BaseTuple.from_types([types.unliteral(value) for value in given])
    ), code


def _unwrapped(
    context: Any, builder: Any, value: Value, of: types.Type, kind: types.Type
) -> tuple[Value, types.Type, Value]:
    """A value that may be null as one that is not, its type, and whether it was null.

    A null becomes a zero at once: what an empty optional holds is undefined.
    """
    if of == types.none:
        return context.get_constant_null(kind), kind, ir.IntType(1)(1)
    if not isinstance(of, types.Optional):
        return value, of, ir.IntType(1)(0)
    optional = context.make_helper(builder, of, value=value)
    valid = cgutils.as_bool_bit(builder, optional.valid)
    zero = context.get_constant_null(of.type)
    return builder.select(valid, optional.data, zero), of.type, builder.not_(valid)
