"""``range`` in Numba's terms, as CPython has it, and what ``zip(..., strict=True)`` takes.

Numba's own takes floats, and counts in signed words: a span of more than 2**63 has no items there.
Here a range is its first item, its step and how many items it has, which may be up to 2**64 - 1.
The last item is never passed, so nothing overflows at the end of the integers.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from specstream.compiler.backend.instructions import I64, Instructions, Value
from specstream.compiler.backend.none_types import all_present, may_be_none, unwrapped
from specstream.compiler.backend.overloads import Core, Meaning, resolved_call
from specstream.compiler.backend.scalar_kinds import integer_kind, scalar_kind
from specstream.compiler.language.typing_refusals import refuse

__all__ = ["BUILTINS", "as_long_as", "integers"]


class RangeType(types.IterableType):
    """Integers at equal distances, all int64 or all uint64."""

    def __init__(self, of: types.Type) -> None:
        self.of = of
        super().__init__(f"specstream.range({of})")

    @property
    def iterator_type(self) -> types.Type:
        return RangeIterator(self)


class RangeIterator(types.SimpleIteratorType):
    """Goes through a range."""

    def __init__(self, walked: RangeType) -> None:
        super().__init__(f"iter({walked.name})", walked.of)


@register_model(RangeType)
class _RangeModel(models.StructModel):
    def __init__(self, manager: object, of: RangeType) -> None:
        members = [("start", of.of), ("step", of.of), ("count", types.uint64)]
        super().__init__(manager, of, members)


@register_model(RangeIterator)
class _RangeIteratorModel(models.StructModel):
    def __init__(self, manager: object, iterator: RangeIterator) -> None:
        members = [
            ("next", types.EphemeralPointer(iterator.yield_type)),
            ("step", iterator.yield_type),
            ("left", types.EphemeralPointer(types.uint64)),
        ]
        super().__init__(manager, iterator, members)


def integers(*arguments: Any) -> Any:
    """``range(*arguments)``; exists in compiled operators only."""
    raise TypeError("integers exists in compiled operators only")


@infer_global(integers)
class _Integers(AbstractTemplate):
    # A literal's value decides whether it may meet a uint64.
    prefer_literal = True

    def generic(self, args: Sequence[types.Type], kws: Any) -> Any:
        if not 1 <= len(args) <= 3:
            raise refuse(
                f"range takes 1 to 3 integers, and gets {len(args)}: write range(start, stop, step)"
            )
        there = all_present(args)
        for one in there:
            if scalar_kind(one) not in ("int64", "uint64", "bool"):
                raise refuse(f"range takes integers, and gets {one}: write int(x)")
        of = types.uint64 if integer_kind("range", there) == "uint64" else types.int64
        return signature(RangeType(of), *(one if may_be_none(one) else of for one in args))


@lower_builtin(integers, types.VarArg(types.Any))
def _integers(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
    args = [
        unwrapped(context, builder, given, arg, sig.return_type.of)
        for given, arg in zip(sig.args, args, strict=True)
    ]
    start, stop, step = I64(0), args[0], I64(1)
    if len(args) > 1:
        start, stop = args[:2]
    if len(args) > 2:
        step = args[2]
        zero = builder.icmp_unsigned("==", step, I64(0))
        Instructions(context, builder).fault_if(zero, ValueError)
    before = builder.icmp_signed if sig.return_type.of == types.int64 else builder.icmp_unsigned
    backwards = before("<", step, I64(0))
    low = builder.select(backwards, stop, start)
    high = builder.select(backwards, start, stop)
    stride = builder.select(backwards, builder.neg(step), step)
    # Unsigned, a difference of two words is exact, and so is the size of the least int64.
    last = builder.sub(builder.sub(high, low), I64(1))
    count = builder.add(builder.udiv(last, stride), I64(1))
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.start = start
    made.step = step
    made.count = builder.select(before("<", low, high), count, I64(0))
    return made._getvalue()


@infer_global(len)
class _Length(AbstractTemplate):
    def generic(self, args: Sequence[types.Type], kws: Any) -> Any:
        (walked,) = args
        return signature(types.intp, walked) if isinstance(walked, RangeType) else None


@lower_builtin(len, RangeType)
def _length(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
    count = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0]).count
    Instructions(context, builder).fault_if(builder.icmp_signed("<", count, I64(0)), OverflowError)
    return count


@infer_global(operator.getitem)
class _Item(AbstractTemplate):
    def generic(self, args: Sequence[types.Type], kws: Any) -> Any:
        if isinstance(args[0], RangeType):
            raise refuse("an item of a range cannot be taken: write start + i * step")


@lower_builtin("getiter", RangeType)
def _getiter(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
    walked = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.next = cgutils.alloca_once_value(builder, walked.start)
    made.step = walked.step
    made.left = cgutils.alloca_once_value(builder, walked.count)
    return made._getvalue()


@lower_builtin("iternext", RangeIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Sequence[Value], result: Any) -> None:
    iterator = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    left = builder.load(iterator.left)
    more = builder.icmp_unsigned("!=", left, I64(0))
    result.set_valid(more)
    with builder.if_then(more):
        item = builder.load(iterator.next)
        builder.store(builder.sub(left, I64(1)), iterator.left)
        builder.store(builder.add(item, iterator.step), iterator.next)
        result.yield_(item)


as_long_as = Core("as_long_as", "zip(..., strict=True) takes what has a length")


@as_long_as.rule
def _as_long_as(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """What an iteration by ``zip(..., strict=True)`` takes: a value as long as another one."""
    given = [types.unliteral(one) for one in args]

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        counts = [
            resolved_call(context, builder, len, (of,), (arg,))[1]
            for of, arg in zip(given, args, strict=True)
        ]
        different = builder.icmp_unsigned("!=", *counts)
        Instructions(context, builder).fault_if(different, ValueError)
        return args[0]

    for one in given:
        known = context.resolve_function_type(context.resolve_value_type(len), (one,), {})
        if known is None:
            raise refuse(f"zip(..., strict=True) takes {one}, which has no length: write list(x)")
    return given[0], given, code


BUILTINS: dict[str, Any] = {"range": integers, "len": len, "enumerate": enumerate, "zip": zip}
"""Builtins about arrays and loops, by what takes their place; ``len`` and the last two are Numba's
own."""
