"""Values that may be None, in Numba's terms: its own Optional, and what a nullable column gave.

An Optional that is None has no value: whoever needs one raises TypeError, as Python does. A null
of a column, kept in a name, *is* None where that is asked, and reads 0 everywhere else, as it does
where the column itself is read.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import cgutils, types
from numba.extending import lower_cast, models, register_model

from specstream.compiler.backend.instructions import BIT, Instructions, Value
from specstream.compiler.language.text import TextType

__all__ = [
    "NullableType",
    "all_present",
    "may_be_none",
    "missing",
    "null_of",
    "present",
    "unwrapped",
    "value_or_zero",
]


class NullableType(types.Type):
    """What a name has that was given a nullable column: its value, and whether that was null."""

    def __init__(self, of: types.Type) -> None:
        self.of = of
        super().__init__(f"specstream.nullable({of})")

    def unify(self, context: Any, other: types.Type) -> types.Type | None:
        if other == types.none:
            return types.Optional(self)
        return self if types.unliteral(other) == self.of else None

    def can_convert_from(self, context: Any, other: types.Type) -> Any:
        return context.can_convert(other, self.of)


@register_model(NullableType)
class _NullableModel(models.StructModel):
    def __init__(self, manager: object, of: NullableType) -> None:
        super().__init__(manager, of, [("value", of.of), ("is_null", types.boolean)])


@lower_cast(types.Any, NullableType)
def _cast_to_nullable(
    context: Any, builder: Any, given: types.Type, wanted: NullableType, value: Value
) -> Value:
    made = cgutils.create_struct_proxy(wanted)(context, builder)
    made.value = context.cast(builder, value, given, wanted.of)
    made.is_null = context.get_constant(types.boolean, False)
    return made._getvalue()


@lower_cast(NullableType, types.Number)
@lower_cast(NullableType, types.Boolean)
@lower_cast(NullableType, TextType)
def _cast_from_nullable(
    context: Any, builder: Any, given: NullableType, wanted: types.Type, value: Value
) -> Value:
    found = cgutils.create_struct_proxy(given)(context, builder, value=value).value
    return context.cast(builder, found, given.of, wanted)


# ---- what there is where it is not None ----


def may_be_none(of: types.Type) -> bool:
    return isinstance(of, types.Optional | NullableType) or of == types.none


def present(of: types.Type) -> types.Type:
    """The type without None; none itself is left as it is."""
    if isinstance(of, types.Optional):
        return present(of.type)
    return of.of if isinstance(of, NullableType) else of


def all_present(args: Sequence[types.Type]) -> list[types.Type]:
    """The types of arguments without None; where there is nothing else, that of the others."""
    found = [present(arg) for arg in args]
    other = next((types.unliteral(one) for one in found if one != types.none), types.int64)
    return [other if one == types.none else one for one in found]


def missing(context: Any, builder: Any, of: types.Type, value: Value) -> Value:
    """Whether there is no value at all: an Optional that is None."""
    if of == types.none:
        return BIT(1)
    if not isinstance(of, types.Optional):
        return BIT(0)
    optional = context.make_helper(builder, of, value=value)
    return builder.not_(cgutils.as_bool_bit(builder, optional.valid))


def value_or_zero(context: Any, builder: Any, of: types.Type, value: Value) -> Value:
    """The value of type ``present(of)``, or a zero: what an empty Optional holds is undefined."""
    if isinstance(of, types.Optional):
        optional = context.make_helper(builder, of, value=value)
        valid = cgutils.as_bool_bit(builder, optional.valid)
        inner = value_or_zero(context, builder, of.type, optional.data)
        return builder.select(valid, inner, context.get_constant_null(present(of)))
    if isinstance(of, NullableType):
        return cgutils.create_struct_proxy(of)(context, builder, value=value).value
    return value


def unwrapped(
    context: Any, builder: Any, of: types.Type, value: Value, wanted: types.Type | None = None
) -> Value:
    """The value of type ``present(of)``, or ``wanted``; where it is None a fault, TypeError."""
    if not may_be_none(of):
        return value if wanted is None else context.cast(builder, value, of, wanted)
    Instructions(context, builder).fault_if(missing(context, builder, of, value), TypeError)
    if of == types.none:
        return context.get_constant_null(wanted or types.int64)
    found = value_or_zero(context, builder, of, value)
    return found if wanted is None else context.cast(builder, found, present(of), wanted)


# ---- asking for it ----


def null_of(context: Any, builder: Any, of: types.Type, value: Value) -> Value:
    """Whether a value of Numba's Optional type, or of NullableType, is None: a bit."""
    if isinstance(of, NullableType):
        is_null = cgutils.create_struct_proxy(of)(context, builder, value=value).is_null
        return cgutils.as_bool_bit(builder, is_null)
    nothing = missing(context, builder, of, value)
    if isinstance(of, types.Optional) and isinstance(of.type, NullableType):
        optional = context.make_helper(builder, of, value=value)
        return builder.or_(nothing, null_of(context, builder, of.type, optional.data))
    return nothing
