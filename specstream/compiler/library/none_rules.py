"""What operators do with values that may be None: ``is None``, ``==``, truth, needing one.

Arithmetic and order are not here: every
:class:`~specstream.compiler.backend.scalar_functions.Native` takes such operands, and raises
TypeError where one is None.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer, infer_global, signature
from numba.extending import intrinsic, lower_builtin

from specstream.compiler.backend.instructions import BIT, Value
from specstream.compiler.backend.none_types import (
    NullableType,
    may_be_none,
    missing,
    null_of,
    present,
    unwrapped,
    value_or_zero,
)
from specstream.compiler.backend.numba_types import EventType, ViewType
from specstream.compiler.backend.overloads import Meaning, resolved_call
from specstream.compiler.backend.scalar_functions import Native
from specstream.compiler.language.typing_refusals import refuse, without_literals
from specstream.compiler.library.arithmetic import eq, ne, not_
from specstream.compiler.library.conversions import bool_, slice_bound
from specstream.compiler.library.event import null_bit
from specstream.compiler.library.math_exact import MATH
from specstream.compiler.library.number_builtins import BUILTINS
from specstream.compiler.library.numpy_functions import NUMPY

__all__ = [
    *("attribute_is_none", "column", "fits_none", "is_none", "is_not_none", "some", "tested"),
]


def _bit_where(builder: Any, there: Value, ask: Callable[[], Value], otherwise: Value) -> Value:
    """A bit asked of a value that may be None only where it is there; else ``otherwise``.

    Of a list that is not there, nobody may load the length.
    """
    found = cgutils.alloca_once_value(builder, otherwise)
    with builder.if_then(there):
        builder.store(ask(), found)
    return builder.load(found)


def _equality(function: Any) -> Any:
    """``==`` or ``!=``: None is equal to None and to nothing else, and nothing is raised."""
    differs = BIT(int(function is ne))

    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 2 or not any(map(may_be_none, args)):
            return None
        left, right = map(present, args)
        if isinstance(left, ViewType) or isinstance(right, ViewType):
            if not any(isinstance(one, types.Optional) for one in args):
                return None
            raise refuse(
                "an array is compared with a value that may be None: test it for None first"
            )
        both = types.none not in (left, right)
        if both:  # refuses what can never be equal
            known = typing_context.resolve_value_type(function)
            typing_context.resolve_function_type(known, (left, right), {})

        def code(context: Any, builder: Any, sig: Any, given: Any) -> Value:
            pairs = list(zip(args, given, strict=True))
            absent = [missing(context, builder, *pair) for pair in pairs]
            of_absent = builder.xor(builder.and_(*absent), differs)
            if not both:
                return builder.select(builder.or_(*absent), of_absent, differs)

            def compare() -> Value:
                values = [value_or_zero(context, builder, *pair) for pair in pairs]
                return resolved_call(context, builder, function, (left, right), values)[1]

            return _bit_where(builder, builder.not_(builder.or_(*absent)), compare, of_absent)

        return types.boolean, args, code

    return rule


def _no_bound(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if any(isinstance(one, types.Optional) or one == types.none for one in args):
        raise refuse(
            "np.clip gets a value that may be None, which is no bound to NumPy: write "
            "np.minimum(x, high) or np.maximum(x, low) where there is one"
        )
    return None


NUMPY["clip"].rule(_no_bound)


def _none_as_end(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """The rule of None as the bound of a slice: where it may be None, it may mean the end.

    The end comes along where the step is known.
    """
    bound, *end = args
    if not isinstance(bound, types.Optional) and bound != types.none:
        return None
    if not end:
        raise refuse(
            "a slice gets a value that may be None, and a step that is not known: write its "
            "bounds out"
        )

    def code(context: Any, builder: Any, sig: Any, given: Any) -> Value:
        if bound == types.none:
            return given[1]
        there = value_or_zero(context, builder, bound, given[0])
        _, number = resolved_call(context, builder, slice_bound, (present(bound),), (there,))
        return builder.select(missing(context, builder, bound, given[0]), given[1], number)

    return types.int64, [bound, types.int64], code


slice_bound.rule(_none_as_end)


def _none_as_left_out(function: Native, count: int) -> None:
    """Adds the rule of None as a last argument, which is left out, as in ``pow(x, y, None)``.

    It is that of a call with ``count`` arguments.
    """

    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        *before, last = args
        if len(args) != count or not (isinstance(last, types.Optional) or last == types.none):
            return None
        known = typing_context.resolve_value_type(function)

        def result(given: Sequence[types.Type]) -> types.Type:
            return typing_context.resolve_function_type(known, tuple(given), {}).return_type

        without, there = result(before), [*before, present(last)]
        if last != types.none and result(there) != without:
            name = function.name.strip("_")
            raise refuse(
                f"the last argument of {name} may be None, where it gives another type: write the "
                f"branches out, {name}({', '.join('xyz'[: count - 1])}) where it is None"
            )

        def code(context: Any, builder: Any, sig: Any, given: Any) -> Value:
            def call(wanted: Sequence[types.Type], values: Sequence[Value]) -> Value:
                return resolved_call(context, builder, function, wanted, values)[1]

            if last == types.none:
                return call(before, given[:-1])
            place = cgutils.alloca_once(builder, context.get_value_type(without))
            absent = missing(context, builder, last, given[-1])
            with builder.if_else(absent) as (is_none, is_there):
                with is_none:
                    builder.store(call(before, given[:-1]), place)
                with is_there:
                    value = value_or_zero(context, builder, last, given[-1])
                    builder.store(call(there, [*given[:-1], value]), place)
            return builder.load(place)

        return without, args, code

    function.rule(rule)


_none_as_left_out(BUILTINS["pow"], 3)
_none_as_left_out(BUILTINS["round"], 2)
_none_as_left_out(MATH["perm"], 2)
eq.rule(_equality(eq))
ne.rule(_equality(ne))


def _write_truth(context: Any, builder: Any, of: types.Type, value: Value) -> Value:
    """None is false."""
    if of == types.none:
        return BIT(0)

    def ask() -> Value:
        inner = value_or_zero(context, builder, of, value)
        return resolved_call(context, builder, bool_, (present(of),), (inner,))[1]

    return _bit_where(builder, builder.not_(missing(context, builder, of, value)), ask, BIT(0))


def _truth(negated: bool) -> Any:
    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not may_be_none(args[0]):
            return None
        (of,) = args
        if of != types.none:
            known = typing_context.resolve_value_type(bool_)
            typing_context.resolve_function_type(known, (present(of),), {})

        def code(context: Any, builder: Any, sig: Any, given: Any) -> Value:
            holds = _write_truth(context, builder, of, given[0])
            return builder.not_(holds) if negated else holds

        return types.boolean, args, code

    return rule


not_.rule(_truth(True))
bool_.rule(_truth(False))


@infer_global(bool)
class _Condition(AbstractTemplate):
    """Numba asks for a truth wherever a condition stands.

    It asks this rule, of a narrower target, before its own: those take the value of what may be
    None, and raise where it is.
    """

    metadata = {"target": "cpu"}  # noqa: RUF012 - Numba's own attribute

    def generic(self, args: Any, kws: Any) -> Any:
        (of,) = args
        is_ours = isinstance(of, types.Optional) and _is_ours(of.type)
        if not is_ours and not isinstance(of, NullableType):
            return None
        known = self.context.resolve_value_type(bool_)
        self.context.resolve_function_type(known, (present(of),), {})
        return signature(types.boolean, of)


def _is_ours(of: types.Type) -> bool:
    return isinstance(present(of), types.Number | types.Boolean | types.BaseTuple) or (
        type(present(of)).__module__.startswith("specstream.")
    )


@lower_builtin(bool, types.Optional)
@lower_builtin(bool, NullableType)
def _condition(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    return _write_truth(context, builder, sig.args[0], args[0])


# ---- values that have to be there ----


@intrinsic
def some(typing_context: Any, value: Any) -> Any:
    """A value that is not None, for what takes no others; where it is None a fault."""
    of = present(value)
    if of == types.none:  # or nobody knows yet what else it is
        raise refuse("this is always None; leave the operation out")

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return unwrapped(context, builder, value, args[0])

    return of(value), code


@intrinsic
def tested(typing_context: Any, value: Any) -> Any:
    """A value where a test has let pass what is not None. Where it is always None, as what a
    function was given, nobody gets here."""
    of = present(value)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return args[0] if of == types.none else value_or_zero(context, builder, value, args[0])

    return of(value), code


@infer
class _ItemOfTuple(AbstractTemplate):
    """``pair[0]`` of what may be None: TypeError where it is, as Python has it."""

    key = "static_getitem"

    def generic(self, args: Any, kws: Any) -> Any:
        of, index = args
        inner = present(of)
        if not isinstance(of, types.Optional) or not isinstance(inner, types.BaseTuple):
            return None
        found = self.context.resolve_static_getitem(inner, index)
        return None if found is None else signature(found.return_type, of, *found.args[1:])


@lower_builtin("static_getitem", types.Optional, types.Any)
def _item_of_tuple(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    of, index = sig.args
    inner = present(of)
    value = unwrapped(context, builder, of, args[0], inner)
    plain = signature(sig.return_type, inner, index)
    code = context.get_function("static_getitem", plain)
    return code(builder, (value, args[1]))


# ---- nullable columns ----


@intrinsic(prefer_literal=True)
def column(typing_context: Any, event: Any, value: Any, name: Any) -> Any:
    """A value that may be None: ``event.name`` kept in a name, with whether it was null."""
    if not isinstance(name, types.StringLiteral):
        raise without_literals()
    is_column = isinstance(event, EventType) and name.literal_value in event.schema.nullable
    if not is_column:
        return value(event, value, name), lambda context, builder, sig, args: args[1]
    made = NullableType(types.unliteral(value))

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        found = cgutils.create_struct_proxy(made)(context, builder)
        found.value = args[1]
        found.is_null = null_bit(context, builder, event, args[0], name.literal_value)
        return found._getvalue()

    return made(event, value, name), code


@intrinsic(prefer_literal=True)
def attribute_is_none(typing_context: Any, owner: Any, value: Any, name: Any) -> Any:
    """``owner.name is None``: of a nullable column whether it is null; of anything else, such as a
    hidden column, what the value says."""
    if not isinstance(name, types.StringLiteral):
        raise without_literals()
    is_column = isinstance(owner, EventType) and name.literal_value in owner.schema.nullable

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        if not is_column:
            return null_of(context, builder, value, args[1])
        return null_bit(context, builder, owner, args[0], name.literal_value)

    return types.boolean(owner, value, name), code


@intrinsic
def fits_none(typing_context: Any, value: Any) -> Any:
    """Whether ``case None`` fits a value that may be None; refused: a nullable column's."""
    if isinstance(value.type if isinstance(value, types.Optional) else value, NullableType):
        raise refuse(
            "case None is matched against a value of a nullable column; write if x is None before "
            "it"
        )

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return missing(context, builder, value, args[0])

    return types.boolean(value), code


@intrinsic
def is_none(typing_context: Any, value: Any) -> Any:
    """``value is None`` of a value that may be None, like a nullable column in a name."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return null_of(context, builder, value, args[0])

    return types.boolean(value), code


@intrinsic
def is_not_none(typing_context: Any, value: Any) -> Any:
    """``value is not None`` of a value that may be None."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return builder.not_(null_of(context, builder, value, args[0]))

    return types.boolean(value), code
