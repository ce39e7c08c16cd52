"""Fields of the state in Numba's terms: ``state.name``, and assigning to a scalar field.

An array field is a view (:mod:`specstream.compiler.library.array_views`) of all its elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import (
    AttributeTemplate,
    infer_getattr,
    signature,
)
from numba.extending import (
    intrinsic,
    lower_getattr_generic,
)

from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import present, unwrapped
from specstream.compiler.backend.numba_types import (
    BoostedType,
    ContainerType,
    MovedStateType,
    RecordsType,
    RecordType,
    StateType,
    ViewType,
)
from specstream.compiler.backend.overloads import Rules, meaning_of
from specstream.compiler.backend.scalar_kinds import check_kind, convert
from specstream.compiler.language.hints import names_it_has
from specstream.compiler.language.typing_refusals import is_boosted, refuse, without_literals
from specstream.compiler.library.array_views import make_view
from specstream.compiler.library.locking import LocksType
from specstream.declarations.containers import ContainerKind
from specstream.declarations.state_layout import WORD_BYTES, Field

__all__ = [
    *("CONTAINER_TYPES", "SET_FIELD", "field_of", "run_and_start", "run_and_word", "set_field"),
    "whole_field",
]

SET_FIELD: Rules = []
"""What it means for others than the state, and for fields of it that hold records."""
RECORD_FIELD: list[Any] = []
"""What reads a scalar field of records: of (context, builder, type, run, first word)."""

CONTAINER_TYPES: dict[ContainerKind, Callable[[StateType, Field], ContainerType]] = {}
"""What a field is that holds a container, by the kind of that."""


def field_of(state: StateType, name: str) -> Field:
    field = state.layout.field(name)
    if field is None:
        names = names_it_has(name, [one.name for one in state.layout.fields])
        raise refuse(f"state {state.layout.name!r} has no field {name!r}; {names}")
    return field


@infer_getattr
class _StateAttribute(AttributeTemplate):
    key = StateType

    def generic_resolve(self, state: StateType, name: str) -> types.Type:
        field = field_of(state, name)
        if field.space == "locks":
            return LocksType(field)
        if field.container is not None:
            return CONTAINER_TYPES[field.container.kind](state, field)
        if field.operations:
            return BoostedType(state, field)
        if field.record is not None:
            return RecordsType(field.record, len(field.shape) - 1, state.variant).with_ndim(
                len(field.shape) - 1
            )
        view = ViewType(field.storage, len(field.shape), field.space, state.variant)
        return view.with_ndim(view.ndim)


def run_and_word(
    context: Any, builder: Any, state: StateType, value: Value, field: Field
) -> tuple[Value, Value]:
    """The run, and where a field begins, in words."""
    if not isinstance(state, MovedStateType):
        return value, I64(field.offset)
    of = cgutils.create_struct_proxy(state)(context, builder, value=value)
    return of.run, builder.add(getattr(of, field.space), I64(field.offset))


def run_and_start(
    context: Any, builder: Any, state: StateType, value: Value, field: Field
) -> tuple[Value, Value]:
    """The same in elements of the field's size."""
    run, word = run_and_word(context, builder, state, value, field)
    return run, builder.mul(word, I64(WORD_BYTES // field.storage.size))


@lower_getattr_generic(StateType)
def _state_getattr(context: Any, builder: Any, state: StateType, value: Value, name: str) -> Value:
    field = field_of(state, name)
    if field.container is not None:
        return run_and_word(context, builder, state, value, field)[0]
    if field.space == "locks" or field.operations:
        return value
    if field.record is not None and len(field.shape) == 1:
        of = RecordType(field.record, state.variant)
        run, word = run_and_word(context, builder, state, value, field)
        read: Value = RECORD_FIELD[0](context, builder, of, run, word)
        return read
    run, start = run_and_start(context, builder, state, value, field)
    if field.shape == ():
        return Run(context, builder, run).load(field.space, state.variant, field.storage, start)
    view = ViewType(field.storage, len(field.shape), field.space, state.variant)
    return whole_field(context, builder, view, run, field, start)


def whole_field(
    context: Any,
    builder: Any,
    view: ViewType,
    run: Value,
    field: Field,
    start: Value | None = None,
) -> Value:
    """``state.name`` of an array field: the view of all elements of this field of the state.

    It begins where the layout says, or elsewhere."""
    strides = [1]
    for length in reversed(field.shape[1:]):
        strides.insert(0, strides[0] * length)
    return make_view(
        context,
        builder,
        view,
        run,
        I64(field.start) if start is None else start,
        [I64(length) for length in field.shape],
        [I64(stride) for stride in strides],
    )


@intrinsic(prefer_literal=True)
def set_field(typing_context: Any, value: Any, state: Any, name: Any) -> Any:
    """``state.name = value``: Python evaluates the value first."""
    if isinstance(name, types.StringLiteral):
        found = meaning_of(SET_FIELD, typing_context, (value, state, name))
        if found is not None:
            return signature(found[0], *found[1]), found[2]
    if not isinstance(state, StateType):
        raise refuse(
            f"an attribute of {state} cannot be assigned; only fields of the state can: keep the "
            "value in a local name, or emit it"
        )
    if not isinstance(name, types.StringLiteral):
        raise without_literals()
    field = field_of(state, name.literal_value)
    if field.space == "locks":
        raise refuse(f"field {field.name!r} holds locks: write with state.{field.name}[i]")
    if field.container is not None:
        return _same_container(value, state, name, field)
    if field.operations:
        raise is_boosted(field)
    if field.shape != ():
        raise refuse(
            f"field {field.name!r} is an array and cannot be replaced: assign elements, "
            f"like state.{field.name}[i] = x"
        )
    what = f"field {field.name!r}"
    check_kind(present(value), field.kind, what, field.storage.name, keeps_strings=True)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        given = unwrapped(context, builder, sig.args[0], args[0])
        element = convert(context, builder, given, present(sig.args[0]), field.kind)
        run, start = run_and_start(context, builder, state, args[1], field)
        Run(context, builder, run).store(field.space, state.variant, field.storage, start, element)
        return context.get_dummy_value()

    return types.void(types.unliteral(value), state, name), code


def _same_container(value: types.Type, state: StateType, name: types.Type, field: Field) -> Any:
    """``state.items += x`` has changed the container that the field is; nothing else fits."""
    assert field.container is not None
    kind = field.container.kind
    if not isinstance(value, ContainerType) or value.field != field:
        if field.is_timers:
            raise refuse(
                f"field {field.name!r} holds timers and cannot be replaced: state.{field.name}."
                f"clear() takes all away, and state.{field.name}.set(key, at) sets one"
            )
        raise refuse(
            f"field {field.name!r} is a {kind} and cannot be replaced: change what it holds, "
            f"with state.{field.name}.clear() and what puts elements into it"
        )

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return context.get_dummy_value()

    return types.void(value, state, name), code
