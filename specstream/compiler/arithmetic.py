"""The arithmetic of compiled operators, equal to the oracle's in every bit.

Numba's own arithmetic is neither Python's nor the oracle's: it mixes int64 and uint64 into
float64, adds bools, shifts by any count, and lets LLVM choose the libm. So the compiler rewrites
each operator, builtin and `math` function of a user's function into a call of an object defined
here. Each is typed over exactly four scalars and writes its LLVM instructions in place, which
compiles many times faster than an `@overload` and leaves nothing to Numba's rules.

Where Python raises, native code returns Numba's status of a user exception, always with
`OperatorFault`. Which exception it was is found by running the oracle on the same event.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

import ast
from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, builtin_registry, signature

from specstream.compiler.instructions import BIT, F64, I64, Instructions, Value
from specstream.compiler.kinds import SCALAR_KINDS, SCALARS, scalar_kind
from specstream.compiler.numbers import INT64_MAX, MATH_CONSTANTS, NUMPY_CONSTANTS
from specstream.compiler.refusals import no_letters, refuse
from specstream.compiler.text import TextType

_TWO53 = 2**53


def _scalar(what: str, numba_type: types.Type) -> str:
    kind = scalar_kind(numba_type)
    if isinstance(numba_type, TextType):
        raise no_letters(what)
    if kind is None:
        raise refuse(
            f"{what} takes numbers (int64, uint64, float64, bool), not {numba_type}; "
            "write it with single elements, such as x[i]"
        )
    return kind


Rule = Callable[[Sequence[types.Type]], tuple[str, Sequence[str]]]
"""From Numba's argument types to the result's kind and the kinds that the arguments are cast to."""
Writer = Callable[[Instructions, Sequence[str], Sequence[Value]], Value]
"""Writes the instructions; receives the kinds and values of the arguments."""


class Native:
    """A function of compiled operators; a global that Numba resolves in a call.

    Outside compiled code the oracle's counterpart does its work.
    """

    def __init__(self, name: str, rule: Rule, write: Writer) -> None:
        self.name = name
        _register(self, rule, write)

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.name} exists in compiled operators only; see compiler.numbers")

    def __repr__(self) -> str:
        return f"<native {self.name}>"


def _register(function: Native, rule: Rule, write: Writer) -> None:
    class Template(AbstractTemplate):
        key = function
        # A literal's value decides whether it may meet a uint64.
        prefer_literal = True

        def generic(self, args: Sequence[types.Type], kws: dict[str, types.Type]) -> Any:
            if kws:
                raise refuse(f"{function.name} takes no keyword arguments; pass them by position")
            result, kinds = rule(args)
            # The text of float("inf") stays a literal: it is all that the writer needs.
            cast = [SCALARS.get(kind, arg) for kind, arg in zip(kinds, args, strict=True)]
            return signature(SCALARS[result], *cast)

    builtin_registry.register_global(function, types.Function(Template))

    def lower(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
        kinds = [SCALAR_KINDS.get(arg) or arg.literal_value for arg in sig.args]
        return write(Instructions(context, builder), kinds, args)

    lower_builtin(function, types.VarArg(types.Any))(lower)


def _count(what: str, args: Sequence[types.Type], low: int, high: int | None = None) -> None:
    if not low <= len(args) <= (high or low):
        expected = str(low) if high is None else f"{low} to {high}"
        raise refuse(f"{what} takes {expected} arguments, got {len(args)}")


def integer_kind(what: str, args: Sequence[types.Type]) -> str:
    """The integer kind in which two integers or bools meet."""
    kinds = [scalar_kind(arg) for arg in args]
    if "uint64" not in kinds:
        return "int64"
    for arg, kind in zip(args, kinds, strict=True):
        if kind != "int64":
            continue
        if not isinstance(arg, types.IntegerLiteral):
            raise refuse(
                f"{what} mixes uint64 and int64, which have no common type; "
                "write np.uint64(x) or np.int64(x) for one of them"
            )
        if arg.literal_value < 0:
            raise refuse(
                f"{what} mixes uint64 and the negative number {arg.literal_value}; "
                f"write np.uint64({arg.literal_value}) or np.int64(x)"
            )
    return "uint64"


def _arithmetic_kind(what: str, args: Sequence[types.Type], left_bool: bool = False) -> str:
    kinds = [_scalar(what, arg) for arg in args]
    if "float64" in kinds:
        return "float64"
    if kinds == ["bool", "bool"]:
        raise refuse(f"{what} of two bools; write int(x) {what} int(y)")
    if kinds[0] == "bool" and not left_bool:
        # Python computes it by bool's own method, as an int that does not wrap.
        raise refuse(
            f"{what} with a bool on its left and an integer on its right; write int(x) {what} y"
        )
    return integer_kind(what, args)


def _arithmetic(what: str, left_bool: bool = False) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        _count(what, args, 2)
        kind = _arithmetic_kind(what, args, left_bool)
        return kind, (kind, kind)

    return rule


def _true_division(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    # A float result needs no wrapping: a bool is harmless on the left.
    _count("/", args, 2)
    kind = _arithmetic_kind("/", args, left_bool=True)
    return "float64", (kind, kind)


def _integers_only(what: str, args: Sequence[types.Type]) -> Sequence[types.Type]:
    """The arguments of a bit operation: those of a string are its code's."""
    _count(what, args, 2)
    args = [types.int64 if isinstance(arg, TextType) else arg for arg in args]
    if "float64" in [_scalar(what, arg) for arg in args]:
        raise refuse(f"{what} needs integers; write int(x) for a float")
    return args


def _shift(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        kind = _arithmetic_kind(what, _integers_only(what, args))
        return kind, (kind, kind)

    return rule


def _bitwise(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        args = _integers_only(what, args)
        if all(scalar_kind(arg) == "bool" for arg in args):
            return "bool", ("bool", "bool")
        kind = _arithmetic_kind(what, args)
        return kind, (kind, kind)

    return rule


def _comparison(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        _count(what, args, 2)
        if what in ("==", "!=") and any(isinstance(arg, TextType) for arg in args):
            return "bool", _codes(what, args)
        left, right = kinds = [_scalar(what, arg) for arg in args]
        if left == right:
            return "bool", kinds
        if "float64" not in kinds:
            kind = integer_kind(what, args)
            return "bool", (kind, kind)
        # An integer of 64 bits does not fit in a double: it is compared as what it is.
        return "bool", ["float64" if kind == "bool" else kind for kind in kinds]

    return rule


def _codes(what: str, args: Sequence[types.Type]) -> Sequence[str]:
    """A string is equal to another, or to an integer: an int field in which a code was kept."""
    if not all(isinstance(arg, TextType) or scalar_kind(arg) == "int64" for arg in args):
        left, right = map(types.unliteral, args)
        raise refuse(
            f"{what} between {left} and {right} is never true; "
            "compare a string with a string, or with an int field that keeps one"
        )
    return "int64", "int64"


def _unary(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        _count(what, args, 1)
        kind = _scalar(what, args[0])
        if kind == "bool":
            raise refuse(f"{what} of a bool; write {what}int(x)")
        return kind, (kind,)

    return rule


def _inversion(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    _count("~", args, 1)
    kind = _scalar("~", args[0])
    if kind == "bool":
        raise refuse("~ of a bool is -1 or -2 in Python; write not x")
    if kind == "float64":
        raise refuse("~ needs an integer; write ~int(x) for a float")
    return kind, (kind,)


def _to(what: str, result: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        _count(what, args, 1)
        return result, (_scalar(what, args[0]),)

    return rule


def _to_float(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    _count("float", args, 1)
    if isinstance(args[0], types.StringLiteral):
        text = args[0].literal_value
        try:
            float(text)
        except ValueError:
            raise refuse(f'{text!r} is not a number; write float("inf") or such') from None
        return "float64", (text,)
    return _to("float", "float64")(args)


def _position(what: str) -> Rule:
    """An integer that says where, as an int64."""

    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        kind = scalar_kind(args[0])
        if kind not in ("int64", "uint64", "bool"):
            raise refuse(f"{what} takes integers, and gets {args[0]}; write int(x)")
        return "int64", (kind,)

    return rule


def _same_or_int64(what: str, floats: str) -> Rule:
    """bool gives int64, integers themselves, and a float what `floats` says."""

    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        _count(what, args, 1)
        kind = _scalar(what, args[0])
        if kind == "bool":
            return "int64", ("int64",)
        return (floats if kind == "float64" else kind), (kind,)

    return rule


def _rounding(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    if len(args) == 2:
        raise refuse("round(x, n) is not supported; write round(x * 100.0) / 100.0, or such")
    return _same_or_int64("round", "int64")(args)


def _extremum_rule(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        if len(args) < 2:
            raise refuse(f"{what} takes two numbers or more, or one array; got {len(args)}")
        kinds = {_scalar(what, arg) for arg in args}
        if kinds == {"int64", "uint64"}:
            kind = integer_kind(what, args)
        elif len(kinds) == 1:
            (kind,) = kinds
        else:
            raise refuse(
                f"{what} over different types ({', '.join(sorted(kinds))}) has no single type; "
                f"write {what}(float(x), y), {what}(0.0, y) or such"
            )
        return kind, (kind,) * len(args)

    return rule


def _floats(what: str, low: int, high: int | None = None) -> Rule:
    """A float function of floats; integers and bools are converted exactly as Python does."""

    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        _count(what, args, low, high)
        return "float64", [_scalar(what, arg) and "float64" for arg in args]

    return rule


def _float_test(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        _count(what, args, 1)
        _scalar(what, args[0])
        return "bool", ("float64",)

    return rule


def _ldexp_rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    _count("math.ldexp", args, 2)
    _scalar("math.ldexp", args[0])
    kind = _scalar("math.ldexp", args[1])
    if kind == "float64":
        raise refuse("math.ldexp needs an integer exponent; write math.ldexp(x, int(i))")
    return "float64", ("float64", "int64" if kind == "bool" else kind)


def _by_kind(integers: str, floats: str) -> Writer:
    """An instruction of the builder for integers, another for floats; neither can fail."""

    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return getattr(code.builder, floats if kinds[0] == "float64" else integers)(*args)

    return write


def _fault_if_zero(code: Instructions, kind: str, divisor: Value) -> None:
    if kind == "float64":
        zero = code.builder.fcmp_ordered("==", divisor, F64(0.0))
    else:
        zero = code.builder.icmp_unsigned("==", divisor, I64(0))
    code.fault_if(zero)


def _floor_division(code: Instructions, left: Value, right: Value) -> tuple[Value, Value, Value]:
    """Quotient, remainder and whether the divisor is -1, of signed integers by floor.

    The processor traps on INT64_MIN / -1, so -1 is replaced by 1 before dividing.
    """
    builder = code.builder
    minus_one = builder.icmp_signed("==", right, I64(-1))
    divisor = builder.select(minus_one, I64(1), right)
    quotient = builder.sdiv(left, divisor)
    rest = builder.sub(left, builder.mul(quotient, divisor))
    # Truncation and floor differ where a rest remains whose sign is not the divisor's.
    above = builder.and_(
        builder.icmp_signed("!=", rest, I64(0)),
        builder.icmp_signed("<", builder.xor(rest, divisor), I64(0)),
    )
    floor = builder.sub(quotient, builder.zext(above, I64))
    modulus = builder.add(rest, builder.select(above, divisor, I64(0)))
    return floor, modulus, minus_one


def _write_floordiv(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    left, right = args
    _fault_if_zero(code, kinds[0], right)
    if kinds[0] == "float64":
        return code.call("ss_float_floordiv", F64, *args)
    if kinds[0] == "uint64":
        return code.builder.udiv(left, right)
    quotient, _, minus_one = _floor_division(code, left, right)
    return code.builder.select(minus_one, code.builder.sub(I64(0), left), quotient)


def _write_mod(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    left, right = args
    _fault_if_zero(code, kinds[0], right)
    if kinds[0] == "float64":
        return code.call("ss_float_mod", F64, *args)
    if kinds[0] == "uint64":
        return code.builder.urem(left, right)
    return _floor_division(code, left, right)[1]


def _write_truediv(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    builder = code.builder
    left, right = args
    kind = kinds[0]
    _fault_if_zero(code, kind, right)
    if kind == "float64":
        return builder.fdiv(left, right)

    def converts_exactly(value: Value) -> Value:
        if kind == "uint64":
            return builder.icmp_unsigned("<=", value, I64(_TWO53))
        return builder.icmp_unsigned("<=", builder.add(value, I64(_TWO53)), I64(2 * _TWO53))

    # Two exact doubles: the division rounds once, as Python's does. Otherwise it would round twice.
    small = builder.and_(converts_exactly(left), converts_exactly(right))
    with builder.if_else(small, likely=True) as (then, otherwise):
        with then:
            fast = builder.fdiv(code.to_float(left, kind), code.to_float(right, kind))
            fast_block = builder.block
        with otherwise:
            suffix = "i64" if kind == "int64" else "u64"
            slow = code.call(f"ss_int_true_divide_{suffix}", F64, *args)
            slow_block = builder.block
    quotient = builder.phi(F64)
    quotient.add_incoming(fast, fast_block)
    quotient.add_incoming(slow, slow_block)
    return quotient


def _write_power(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "float64":
        return code.call_checked("ss_float_power", *args)
    if kinds[0] == "int64":
        code.fault_if(code.builder.icmp_signed("<", args[1], I64(0)))
    return code.call("ss_int_power", I64, *args)


def _write_shift(signed: str, unsigned: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        # Unsigned, so that a negative count fails too.
        code.fault_if(code.builder.icmp_unsigned(">", args[1], I64(63)))
        return getattr(code.builder, signed if kinds[0] == "int64" else unsigned)(*args)

    return write


_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _write_comparison(predicate: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        builder = code.builder
        left, right = kinds
        if left == right:
            if left == "float64":
                return _compare_floats(builder, predicate, *args)
            compare = builder.icmp_signed if left == "int64" else builder.icmp_unsigned
            return compare(predicate, *args)
        if left == "float64":
            return _compare_exactly(code, _SWAPPED[predicate], right, args[1], args[0])
        return _compare_exactly(code, predicate, left, args[0], args[1])

    return write


def _compare_floats(builder: Any, predicate: str, left: Value, right: Value) -> Value:
    if predicate == "!=":
        return builder.fcmp_unordered(predicate, left, right)
    return builder.fcmp_ordered(predicate, left, right)


def _compare_exactly(
    code: Instructions, predicate: str, kind: str, integer: Value, number: Value
) -> Value:
    """An integer against a float, as if both had unlimited precision.

    Rounding is monotonic. So where the rounded integer differs from the float, they are ordered as
    the integer and the float are. Where it equals the float, the float is whole, and the two are
    compared as integers; but it may be 2**63 (2**64), above every integer.
    """
    builder = code.builder
    rounded = code.to_float(integer, kind)
    top = F64(2.0**63 if kind == "int64" else 2.0**64)
    equal = builder.and_(
        builder.fcmp_ordered("==", rounded, number), builder.fcmp_ordered("!=", number, top)
    )
    whole = builder.select(equal, number, F64(0.0))
    if kind == "int64":
        exact = builder.icmp_signed(predicate, integer, builder.fptosi(whole, I64))
    else:
        exact = builder.icmp_unsigned(predicate, integer, builder.fptoui(whole, I64))
    apart = _compare_floats(builder, predicate, rounded, number)
    at_top = builder.fcmp_ordered("==", number, top)
    below = BIT(int(predicate in ("<", "<=", "!=")))
    return builder.select(equal, exact, builder.select(at_top, below, apart))


def _write_neg(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "float64":
        return code.builder.fneg(args[0])
    return code.builder.sub(I64(0), args[0])


def _write_itself(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return args[0]


def _write_invert(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.builder.xor(args[0], I64(-1))


def _write_not(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.builder.not_(code.to_bool(args[0], kinds[0]))


def _write_bool(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.to_bool(args[0], kinds[0])


def _write_float(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] not in SCALARS:
        return F64(float(kinds[0]))
    return code.to_float(args[0], kinds[0])


def _write_int(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "uint64":
        code.fault_if(code.builder.icmp_signed("<", args[0], I64(0)))
    return _write_as_int64(code, kinds, args)


def _write_as_int64(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "float64":
        return code.to_int64(args[0])
    return code.builder.zext(args[0], I64) if kinds[0] == "bool" else args[0]


def _write_as_uint64(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "float64":
        return code.to_uint64(args[0])
    return code.builder.zext(args[0], I64) if kinds[0] == "bool" else args[0]


def _write_slice_bound(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] != "uint64":
        return _write_as_int64(code, kinds, args)
    # Whatever lies beyond the end is the same as the end, for a step as well.
    beyond = code.builder.icmp_signed("<", args[0], I64(0))
    return code.builder.select(beyond, I64(INT64_MAX), args[0])


def _write_abs(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    builder = code.builder
    (value,) = args
    if kinds[0] == "float64":
        return code.llvm("llvm.fabs", value)
    if kinds[0] == "uint64":
        return value
    negative = builder.icmp_signed("<", value, I64(0))
    return builder.select(negative, builder.sub(I64(0), value), value)


def _write_extremum(predicate: str) -> Writer:
    compare = _write_comparison(predicate)

    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        best = args[0]
        for value in args[1:]:
            # An ordered comparison: a NaN never wins and is never beaten, as in Python.
            wins = compare(code, kinds[:2], (value, best))
            best = code.builder.select(wins, value, best)
        return best

    return write


def _write_rounded(intrinsic: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        if kinds[0] == "float64":
            return code.to_int64(code.llvm(intrinsic, args[0]))
        return args[0]

    return write


def _fault_if_undefined(code: Instructions, argument: Value, result: Value) -> None:
    """Python's test of a `math` function: no NaN from a number, no infinity from a finite one."""
    builder = code.builder
    infinity = F64(float("inf"))
    nan = builder.and_(code.is_nan(result), builder.fcmp_ordered("ord", argument, argument))
    infinite = builder.fcmp_ordered("==", code.llvm("llvm.fabs", result), infinity)
    finite = builder.fcmp_ordered("<", code.llvm("llvm.fabs", argument), infinity)
    code.fault_if(builder.or_(nan, builder.and_(infinite, finite)))


def _call_math(code: Instructions, name: str, argument: Value) -> Value:
    result = code.call(f"ss_math_{name}", F64, argument)
    if name not in _TOTAL:
        _fault_if_undefined(code, argument, result)
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
    _fault_if_zero(code, "float64", base)
    return code.builder.fdiv(result, base)


def _write_math_sqrt(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    # Correctly rounded by every processor: LLVM's instruction is libm's result.
    code.fault_if(code.builder.fcmp_ordered("<", args[0], F64(0.0)))
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


def _write_isnan(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.is_nan(args[0])


def _write_magnitude(predicate: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        magnitude = code.llvm("llvm.fabs", args[0])
        return code.builder.fcmp_ordered(predicate, magnitude, F64(float("inf")))

    return write


def _write_atan2(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return code.call("ss_math_atan2", F64, *args)


add = Native("add", _arithmetic("+"), _by_kind("add", "fadd"))
sub = Native("sub", _arithmetic("-"), _by_kind("sub", "fsub"))
mul = Native("mul", _arithmetic("*"), _by_kind("mul", "fmul"))
truediv = Native("truediv", _true_division, _write_truediv)
floordiv = Native("floordiv", _arithmetic("//"), _write_floordiv)
mod = Native("mod", _arithmetic("%"), _write_mod)
power = Native("power", _arithmetic("**", left_bool=True), _write_power)
lshift = Native("lshift", _shift("<<"), _write_shift("shl", "shl"))
rshift = Native("rshift", _shift(">>"), _write_shift("ashr", "lshr"))
and_ = Native("and_", _bitwise("&"), _by_kind("and_", "and_"))
or_ = Native("or_", _bitwise("|"), _by_kind("or_", "or_"))
xor = Native("xor", _bitwise("^"), _by_kind("xor", "xor"))
eq = Native("eq", _comparison("=="), _write_comparison("=="))
ne = Native("ne", _comparison("!="), _write_comparison("!="))
lt = Native("lt", _comparison("<"), _write_comparison("<"))
le = Native("le", _comparison("<="), _write_comparison("<="))
gt = Native("gt", _comparison(">"), _write_comparison(">"))
ge = Native("ge", _comparison(">="), _write_comparison(">="))
neg = Native("neg", _unary("-"), _write_neg)
pos = Native("pos", _unary("+"), _write_itself)
invert = Native("invert", _inversion, _write_invert)
not_ = Native("not_", _to("not", "bool"), _write_not)

int_ = Native("int_", _to("int", "int64"), _write_int)
float_ = Native("float_", _to_float, _write_float)
bool_ = Native("bool_", _to("bool", "bool"), _write_bool)
abs_ = Native("abs_", _same_or_int64("abs", "float64"), _write_abs)
round_ = Native("round_", _rounding, _write_rounded("llvm.rint"))
min_ = Native("min_", _extremum_rule("min"), _write_extremum("<"))
max_ = Native("max_", _extremum_rule("max"), _write_extremum(">"))

slice_bound = Native("slice_bound", _position("a slice"), _write_slice_bound)
enumerate_start = Native("enumerate_start", _position("the start of enumerate"), _write_as_int64)

as_int64 = Native("as_int64", _to("np.int64", "int64"), _write_as_int64)
as_uint64 = Native("as_uint64", _to("np.uint64", "uint64"), _write_as_uint64)
as_float64 = Native("as_float64", _to("np.float64", "float64"), _write_float)
as_bool = Native("as_bool", _to("np.bool_", "bool"), _write_bool)

_TOTAL = frozenset({"atan", "tanh", "asinh", "erf", "erfc", "cbrt"})
"""`math` functions that are defined everywhere, so that no test follows the call."""


_UNARY_IN_C: list[str] = ["log"]


def _math(name: str) -> Native:
    _UNARY_IN_C.append(name)
    return Native(f"math_{name}", _floats(f"math.{name}", 1), _write_math(name))


math_exp = _math("exp")
math_exp2 = _math("exp2")
math_expm1 = _math("expm1")
math_log = Native("math_log", _floats("math.log", 1, 2), _write_math_log)
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
math_sqrt = Native("math_sqrt", _floats("math.sqrt", 1), _write_math_sqrt)
math_atan2 = Native("math_atan2", _floats("math.atan2", 2), _write_atan2)
math_pow = Native("math_pow", _floats("math.pow", 2), _write_checked("ss_math_pow"))
math_fmod = Native("math_fmod", _floats("math.fmod", 2), _write_checked("ss_math_fmod"))
math_ldexp = Native("math_ldexp", _ldexp_rule, _write_ldexp)
math_copysign = Native("math_copysign", _floats("math.copysign", 2), _write_copysign)
math_fabs = Native("math_fabs", _floats("math.fabs", 1), _write_fabs)
math_floor = Native(
    "math_floor", _same_or_int64("math.floor", "int64"), _write_rounded("llvm.floor")
)
math_ceil = Native("math_ceil", _same_or_int64("math.ceil", "int64"), _write_rounded("llvm.ceil"))
math_trunc = Native(
    "math_trunc", _same_or_int64("math.trunc", "int64"), _write_rounded("llvm.trunc")
)
math_degrees = Native(
    "math_degrees", _floats("math.degrees", 1), _write_scaled(180.0 / MATH_CONSTANTS["pi"])
)
math_radians = Native(
    "math_radians", _floats("math.radians", 1), _write_scaled(MATH_CONSTANTS["pi"] / 180.0)
)
math_isnan = Native("math_isnan", _float_test("math.isnan"), _write_isnan)
math_isinf = Native("math_isinf", _float_test("math.isinf"), _write_magnitude("=="))
math_isfinite = Native("math_isfinite", _float_test("math.isfinite"), _write_magnitude("<"))

OPERATORS: dict[type[ast.operator | ast.unaryop | ast.cmpop], Native] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: truediv,
    ast.FloorDiv: floordiv,
    ast.Mod: mod,
    ast.Pow: power,
    ast.LShift: lshift,
    ast.RShift: rshift,
    ast.BitAnd: and_,
    ast.BitOr: or_,
    ast.BitXor: xor,
    ast.Eq: eq,
    ast.NotEq: ne,
    ast.Lt: lt,
    ast.LtE: le,
    ast.Gt: gt,
    ast.GtE: ge,
    ast.USub: neg,
    ast.UAdd: pos,
    ast.Invert: invert,
    ast.Not: not_,
}
BUILTINS: dict[str, Native] = {
    "int": int_,
    "float": float_,
    "bool": bool_,
    "abs": abs_,
    "round": round_,
    "min": min_,
    "max": max_,
}
"""Builtins over scalars. `len`, `range`, `sum`, `enumerate`, `zip` need the array types."""
MATH: dict[str, Native] = {
    native.name.removeprefix("math_"): native
    for native in list(globals().values())
    if isinstance(native, Native) and native.name.startswith("math_")
}
NUMPY: dict[str, Native] = {
    "int64": as_int64,
    "uint64": as_uint64,
    "float64": as_float64,
    "bool_": as_bool,
}
CONSTANTS: dict[str, dict[str, float]] = {"math": MATH_CONSTANTS, "numpy": NUMPY_CONSTANTS}

SYMBOLS: tuple[str, ...] = (
    *(f"ss_math_{name}" for name in _UNARY_IN_C),
    "ss_math_atan2",
    "ss_math_pow",
    "ss_math_fmod",
    "ss_math_ldexp",
    "ss_float_power",
    "ss_float_mod",
    "ss_float_floordiv",
    "ss_int_power",
    "ss_int_true_divide_i64",
    "ss_int_true_divide_u64",
)
"""The C functions that compiled code refers to by name."""
