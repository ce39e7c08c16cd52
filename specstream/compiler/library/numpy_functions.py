"""NumPy's functions of numbers, where IEEE 754 fixes the result; and its dtypes as functions.

Zeros and NaN are as NumPy has them: a NaN wins in ``np.minimum``, and of two equal zeros the second
is taken. Of an integer they give an integer, as NumPy does from 2.1 on.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import types

from specstream.compiler.backend.instructions import F32, F64, I64, Instructions, Value
from specstream.compiler.backend.scalar_functions import (
    Native,
    Rule,
    Writer,
    require_count,
    require_scalar,
    to_kind,
)
from specstream.compiler.backend.scalar_kinds import integer_kind
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import conversions
from specstream.compiler.library.arithmetic import write_comparison
from specstream.compiler.library.conversions import write_as_int64
from specstream.compiler.library.math_functions import (
    float_test,
    floats,
    write_isnan,
    write_magnitude,
)

__all__ = ["NUMPY", "OF_ARRAYS"]


def _same_kind(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, 1)
        kind = require_scalar(what, args[0])
        if kind == "bool":
            raise refuse(f"{what} of a bool; write int(x)")
        return kind, (kind,)

    return rule


def _common_type(what: str, count: int) -> Rule:
    """The type that a NumPy function of several numbers, like ``np.minimum``, computes in.

    That is NumPy's common type of them.
    """

    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, count)
        kinds = {require_scalar(what, arg) for arg in args}
        if "float64" in kinds:
            kind = "float64"
        else:
            kind = "bool" if kinds == {"bool"} else integer_kind(what, args)
        return kind, (kind,) * count

    return rule


def _rounded(intrinsic: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return code.llvm(intrinsic, args[0]) if kinds[0] == "float64" else args[0]

    return write


def _float_of(intrinsic: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return code.llvm(intrinsic, args[0])

    return write


def _write_absolute(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "float64":
        return code.llvm("llvm.fabs", args[0])
    if kinds[0] == "uint64":
        return args[0]
    negative = code.builder.icmp_signed("<", args[0], I64(0))
    return code.builder.select(negative, code.builder.neg(args[0]), args[0])


def _write_square(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    multiply = code.builder.fmul if kinds[0] == "float64" else code.builder.mul
    return multiply(args[0], args[0])


def _write_sign(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    builder = code.builder
    (value,) = args
    zero = (F64(0.0) if kinds[0] == "float64" else I64(0),)
    both = (kinds[0], kinds[0])
    above = write_comparison(">")(code, both, (value, *zero))
    below = write_comparison("<")(code, both, (value, *zero))
    if kinds[0] != "float64":
        return builder.sub(builder.zext(above, I64), builder.zext(below, I64))
    sign = builder.select(above, F64(1.0), builder.select(below, F64(-1.0), F64(0.0)))
    return builder.select(code.is_nan(value), value, sign)


def _write_extremum(predicate: str) -> Writer:
    compare = write_comparison(predicate)

    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        left, right = args
        wins = compare(code, kinds, args)
        if kinds[0] == "float64":
            wins = code.builder.or_(wins, code.is_nan(left))
        return code.builder.select(wins, left, right)

    return write


def _write_clip(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    builder = code.builder
    value, low, high = args
    below = write_comparison("<")(code, kinds[:2], (value, low))
    value = builder.select(below, low, value)
    above = write_comparison(">")(code, kinds[:2], (value, high))
    value = builder.select(above, high, value)
    if kinds[0] == "float64":
        for one in args:
            value = builder.select(code.is_nan(one), F64(float("nan")), value)
    return value


def _write_float32(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.builder.fpext(code.builder.fptrunc(args[0], F32), F64)


def _narrow(name: str) -> Native:
    low, high = int(np.iinfo(name).min), int(np.iinfo(name).max)

    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        builder = code.builder
        value = write_as_int64(code, kinds, args)
        outside = builder.or_(
            builder.icmp_signed("<", value, I64(low)), builder.icmp_signed(">", value, I64(high))
        )
        if kinds[0] == "uint64":
            outside = builder.icmp_unsigned(">", value, I64(high))
        code.fault_if(outside, OverflowError)
        return value

    return Native(f"as_{name}", to_kind(f"np.{name}", "int64"), write)


as_float32 = Native("as_float32", floats("np.float32", 1), _write_float32)
absolute = Native("np_absolute", _same_kind("np.abs"), _write_absolute)
NUMPY: dict[str, Any] = conversions.NUMPY | {
    "intp": conversions.as_int64,
    "double": conversions.as_float64,
    "bool": conversions.as_bool,
    "float32": as_float32,
    **{name: _narrow(name) for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32")},
    "sqrt": Native("np_sqrt", floats("np.sqrt", 1), _float_of("llvm.sqrt")),
    "fabs": Native("np_fabs", floats("np.fabs", 1), _float_of("llvm.fabs")),
    "rint": Native("np_rint", floats("np.rint", 1), _float_of("llvm.rint")),
    "abs": absolute,
    "absolute": absolute,
    "square": Native("np_square", _same_kind("np.square"), _write_square),
    "sign": Native("np_sign", _same_kind("np.sign"), _write_sign),
    "floor": Native("np_floor", _same_kind("np.floor"), _rounded("llvm.floor")),
    "ceil": Native("np_ceil", _same_kind("np.ceil"), _rounded("llvm.ceil")),
    "trunc": Native("np_trunc", _same_kind("np.trunc"), _rounded("llvm.trunc")),
    "minimum": Native("np_minimum", _common_type("np.minimum", 2), _write_extremum("<")),
    "maximum": Native("np_maximum", _common_type("np.maximum", 2), _write_extremum(">")),
    "clip": Native("np_clip", _common_type("np.clip", 3), _write_clip),
    "isnan": Native("np_isnan", float_test("np.isnan"), write_isnan),
    "isinf": Native("np_isinf", float_test("np.isinf"), write_magnitude("==")),
    "isfinite": Native("np_isfinite", float_test("np.isfinite"), write_magnitude("<")),
}
"""All functions of `numpy` that operators have, dtypes among them."""
OF_ARRAYS = (
    *("sum", "mean", "std", "var", "min", "max", "amin", "amax", "argmin", "argmax", "any", "all"),
    "dot",
)
"""Functions of `numpy` over whole arrays: array_methods.py has them."""
