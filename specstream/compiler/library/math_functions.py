"""The `math` module in compiled operators: its functions, and where they raise.

Those that the processor does not round correctly are C's own (``ss_math_*``), one libm for all.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from collections.abc import Sequence

from numba.core import types

from specstream.compiler.backend.instructions import F64, I64, Instructions, Value
from specstream.compiler.backend.scalar_functions import (
    Native,
    Rule,
    Writer,
    require_count,
    require_scalar,
)
from specstream.compiler.language.numbers import INT64_MAX, MATH_CONSTANTS
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.arithmetic import fault_if_zero
from specstream.compiler.library.conversions import same_or_int64, write_rounded


def floats(what: str, low: int, high: int | None = None) -> Rule:
    """The typing rule of a function of the `math` module that takes and gives floats.

    Integers and bools are converted exactly as Python does."""

    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, low, high)
        return "float64", [require_scalar(what, arg) and "float64" for arg in args]

    return rule


def float_test(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, 1)
        require_scalar(what, args[0])
        return "bool", ("float64",)

    return rule


def _ldexp_rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    require_count("math.ldexp", args, 2)
    require_scalar("math.ldexp", args[0])
    kind = require_scalar("math.ldexp", args[1])
    if kind == "float64":
        raise refuse("math.ldexp needs an integer exponent; write math.ldexp(x, int(i))")
    return "float64", ("float64", "int64" if kind == "bool" else kind)


def _fault_if_undefined(code: Instructions, name: str, argument: Value, result: Value) -> None:
    """Python's test of a `math` function: no NaN from a number, no infinity from a finite one."""
    builder = code.builder
    infinity = F64(float("inf"))
    nan = builder.and_(code.is_nan(result), builder.fcmp_ordered("ord", argument, argument))
    infinite = builder.fcmp_ordered("==", code.llvm("llvm.fabs", result), infinity)
    finite = builder.fcmp_ordered("<", code.llvm("llvm.fabs", argument), infinity)
    undefined = builder.or_(nan, builder.and_(infinite, finite))
    if name in _OVERFLOWING:
        code.fault_either(undefined, nan, ValueError, OverflowError)
    else:
        code.fault_if(undefined, ValueError)


def _call_math(code: Instructions, name: str, argument: Value) -> Value:
    result = code.call(f"ss_math_{name}", F64, argument)
    if name not in _TOTAL:
        _fault_if_undefined(code, name, argument, result)
    return result


def _write_math(name: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return _call_math(code, name, args[0])

    return write


def _write_math_log(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    result = _call_math(code, "log", args[0])
    if len(args) == 1:
        return result
    base = _call_math(code, "log", args[1])
    fault_if_zero(code, "float64", base)
    return code.builder.fdiv(result, base)


def _write_math_sqrt(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    # Correctly rounded by every processor: LLVM's instruction is libm's result.
    code.fault_if(code.builder.fcmp_ordered("<", args[0], F64(0.0)), ValueError)
    return code.llvm("llvm.sqrt", args[0])


def _write_fabs(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.llvm("llvm.fabs", args[0])


def _write_copysign(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    # As in the oracle: which sign a NaN has may differ between LLVM and the processor.
    sign = code.builder.select(code.is_nan(args[1]), F64(0.0), args[1])
    return code.llvm("llvm.copysign", args[0], sign)


def _write_scaled(factor: float) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return code.builder.fmul(args[0], F64(factor))

    return write


def _write_checked(symbol: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return code.call_checked(symbol, *args)

    return write


def _write_ldexp(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    exponent = args[1]
    if kinds[1] == "uint64":
        builder = code.builder
        beyond = builder.icmp_signed("<", exponent, I64(0))
        exponent = builder.select(beyond, I64(INT64_MAX), exponent)
    return code.call_checked("ss_math_ldexp", args[0], exponent)


def write_isnan(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.is_nan(args[0])


def write_magnitude(predicate: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        magnitude = code.llvm("llvm.fabs", args[0])
        return code.builder.fcmp_ordered(predicate, magnitude, F64(float("inf")))

    return write


def _write_atan2(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.call("ss_math_atan2", F64, *args)


_OVERFLOWING = frozenset({"exp", "exp2", "expm1", "sinh", "cosh"})
"""`math` functions that raise OverflowError where the result is infinite; others ValueError."""
_TOTAL = frozenset({"atan", "tanh", "asinh", "erf", "erfc", "cbrt"})
"""`math` functions that are defined everywhere, so that no test follows the call."""


def _math(name: str) -> Native:
    return Native(f"math_{name}", floats(f"math.{name}", 1), _write_math(name))


math_exp = _math("exp")
math_exp2 = _math("exp2")
math_expm1 = _math("expm1")
math_log = Native("math_log", floats("math.log", 1, 2), _write_math_log)
math_log2 = _math("log2")
math_log10 = _math("log10")
math_log1p = _math("log1p")
math_sin = _math("sin")
math_cos = _math("cos")
math_tan = _math("tan")
math_asin = _math("asin")
math_acos = _math("acos")
math_atan = _math("atan")
math_sinh = _math("sinh")
math_cosh = _math("cosh")
math_tanh = _math("tanh")
math_asinh = _math("asinh")
math_acosh = _math("acosh")
math_atanh = _math("atanh")
math_erf = _math("erf")
math_erfc = _math("erfc")
math_cbrt = _math("cbrt")
math_sqrt = Native("math_sqrt", floats("math.sqrt", 1), _write_math_sqrt)
math_atan2 = Native("math_atan2", floats("math.atan2", 2), _write_atan2)
math_pow = Native("math_pow", floats("math.pow", 2), _write_checked("ss_math_pow"))
math_fmod = Native("math_fmod", floats("math.fmod", 2), _write_checked("ss_math_fmod"))
math_ldexp = Native("math_ldexp", _ldexp_rule, _write_ldexp)
math_copysign = Native("math_copysign", floats("math.copysign", 2), _write_copysign)
math_fabs = Native("math_fabs", floats("math.fabs", 1), _write_fabs)
math_floor = Native("math_floor", same_or_int64("math.floor", "int64"), write_rounded("llvm.floor"))
math_ceil = Native("math_ceil", same_or_int64("math.ceil", "int64"), write_rounded("llvm.ceil"))
math_trunc = Native("math_trunc", same_or_int64("math.trunc", "int64"), write_rounded("llvm.trunc"))
math_degrees = Native(
    "math_degrees", floats("math.degrees", 1), _write_scaled(180.0 / MATH_CONSTANTS["pi"])
)
math_radians = Native(
    "math_radians", floats("math.radians", 1), _write_scaled(MATH_CONSTANTS["pi"] / 180.0)
)
math_isnan = Native("math_isnan", float_test("math.isnan"), write_isnan)
math_isinf = Native("math_isinf", float_test("math.isinf"), write_magnitude("=="))
math_isfinite = Native("math_isfinite", float_test("math.isfinite"), write_magnitude("<"))
MATH: dict[str, Native] = {
    native.name.removeprefix("math_"): native
    for native in list(globals().values())
    if isinstance(native, Native) and native.name.startswith("math_")
}
