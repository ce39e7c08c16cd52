"""Builtins over numbers that need more than a few instructions, and the methods of numbers.

``divmod``, ``pow`` with a modulus, ``round`` to digits; ``x.is_integer()``, ``n.bit_count()`` and
``n.bit_length()``.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import types

from specstream.compiler.backend.instructions import BIT, F64, I32, I64, Instructions, Value
from specstream.compiler.backend.overloads import Core, Meaning, of_values
from specstream.compiler.backend.scalar_functions import (
    Native,
    require_count,
    require_scalar,
)
from specstream.compiler.backend.scalar_kinds import SCALARS, integer_kind, scalar_kind
from specstream.compiler.language.methods import method_of
from specstream.compiler.language.numbers import INT64_MAX, UINT64_MAX
from specstream.compiler.language.typing_refusals import no_method, refuse
from specstream.compiler.library import arithmetic, conversions
from specstream.compiler.library.method_dispatch import method

__all__ = ["BUILTINS"]


def _magnitude(code: Instructions, kind: str, value: Value) -> tuple[Value, Value]:
    """For ``round`` to digits and ``pow`` with a modulus: an integer's size and sign."""
    if kind == "uint64":
        return value, BIT(0)
    negative = code.builder.icmp_signed("<", value, I64(0))
    return code.builder.select(negative, code.builder.neg(value), value), negative


# ---- round ----


def _rounding(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    if len(args) == 1:
        return conversions.same_or_int64("round", "int64")(args)
    require_count("round", args, 1, 2)
    kind = require_scalar("round", args[0])
    if scalar_kind(args[1]) not in ("int64", "bool"):
        raise refuse(f"round takes a number of digits that is an int, not {args[1]}: write int(n)")
    return ("int64" if kind == "bool" else kind), ("int64" if kind == "bool" else kind, "int64")


def _write_round(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if len(args) == 1:
        return conversions.write_rounded("llvm.rint")(code, kinds, args)
    builder = code.builder
    if kinds[0] == "float64":
        return code.call_checked("ss_float_round", *args)
    size, negative = _magnitude(code, kinds[0], args[0])
    # -INT64_MIN, with more digits than there are, is still itself.
    keeps = builder.icmp_signed(">=", args[1], I64(0))
    least = builder.icmp_signed("<", args[1], I64(-64))
    digits = builder.select(least, I64(64), builder.neg(args[1]))
    digits = builder.select(keeps, I64(0), digits)
    limit = I64(UINT64_MAX)
    if kinds[0] == "int64":
        limit = builder.select(negative, I64(INT64_MAX + 1), I64(INT64_MAX))
    rounded = code.call_checked("ss_int_round", size, digits, limit, result=I64)
    return builder.select(negative, builder.neg(rounded), rounded)


# ---- pow ----


def _power_rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    if len(args) == 2:
        return arithmetic.power_rule(args)
    require_count("pow", args, 2, 3)
    for arg in args:
        if require_scalar("pow", arg) == "float64":
            raise refuse("pow with a modulus takes integers; write int(x) for a float")
    kind = integer_kind("pow", args)
    return kind, (kind,) * 3


def _write_power(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if len(args) == 2:
        return arithmetic.write_power(code, kinds, args)
    builder = code.builder
    kind = kinds[0]
    modulus, below = _magnitude(code, kind, args[2])
    code.fault_if(builder.icmp_unsigned("==", modulus, I64(0)), ValueError)
    base, base_negative = _magnitude(code, kind, args[0])
    base = builder.urem(base, modulus)
    none = builder.icmp_unsigned("==", base, I64(0))
    turned = builder.and_(base_negative, builder.not_(none))
    base = builder.select(turned, builder.sub(modulus, base), base)
    exponent, inverse = _magnitude(code, kind, args[1])
    result = code.call_checked(
        "ss_int_power_modulo", base, exponent, modulus, builder.zext(inverse, I32), result=I64
    )
    # Of a negative modulus the result is negative, as the rest of a division is.
    none = builder.icmp_unsigned("==", result, I64(0))
    shifted = builder.and_(below, builder.not_(none))
    return builder.select(shifted, builder.sub(result, modulus), result)


# ---- divmod ----

divmod_ = Core("divmod_", "write divmod(x, y) of two numbers")


@divmod_.rule
@of_values
def _divmod(typing_context: Any, args: Sequence[types.Type]) -> Meaning:
    require_count("divmod", args, 2)
    kind, _ = arithmetic.division_rule(args)
    scalar = SCALARS[kind]

    def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        instructions = Instructions(context, builder)
        arithmetic.fault_if_zero(instructions, kind, values[1], "divmod")
        both = [
            write(instructions, (kind, kind), values)
            for write in (arithmetic.write_floordiv, arithmetic.write_mod)
        ]
        return context.make_tuple(builder, types.UniTuple(scalar, 2), both)

    return types.UniTuple(scalar, 2), [scalar, scalar], code


# ---- methods ----


def _of_a_number(name: str, kinds: tuple[str, ...], result: types.Type, write: Any) -> None:
    @method(name).rule
    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        kind = scalar_kind(args[0]) if args else None
        if kind is None:
            return None
        if method_of("float" if kind == "float64" else "int", name) is None and kind in kinds:
            raise refuse("; ".join(no_method(args[0], name)))
        if len(args) != 1 or kind not in kinds:
            raise refuse(f"{name} is a method of {' and '.join(kinds)} and takes nothing")

        def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            return write(Instructions(context, builder), kind, values[0])

        return result, [SCALARS[kind]], code


def _is_integer(code: Instructions, kind: str, value: Value) -> Value:
    builder = code.builder
    whole = builder.fcmp_ordered("==", code.llvm("llvm.floor", value), value)
    finite = builder.fcmp_ordered("<", code.llvm("llvm.fabs", value), F64(float("inf")))
    return builder.and_(whole, finite)


def _of_bits(code: Instructions, name: str, *arguments: Value) -> Value:
    function = ir.FunctionType(I64, [one.type for one in (arguments)])
    intrinsic = code.builder.module.declare_intrinsic(name, [I64], function)
    return code.builder.call(intrinsic, arguments)


def _bit_count(code: Instructions, kind: str, value: Value) -> Value:
    return _of_bits(code, "llvm.ctpop", _magnitude(code, kind, value)[0])


def _bit_length(code: Instructions, kind: str, value: Value) -> Value:
    zeros = _of_bits(code, "llvm.ctlz", _magnitude(code, kind, value)[0], BIT(0))
    return code.builder.sub(I64(64), zeros)


_INTEGERS = ("int64", "uint64")
_of_a_number("is_integer", ("float64",), types.boolean, _is_integer)
_of_a_number("bit_count", _INTEGERS, types.int64, _bit_count)
_of_a_number("bit_length", _INTEGERS, types.int64, _bit_length)

BUILTINS: dict[str, Any] = conversions.BUILTINS | {
    "round": Native("round_", _rounding, _write_round),
    "pow": Native("pow_", _power_rule, _write_power),
    "divmod": divmod_,
}
"""Builtins over numbers."""
