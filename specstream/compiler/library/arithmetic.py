"""Python's operators in native code, equal to the oracle's in every bit.

They are + - * / // % **, bits and shifts, comparisons, signs and `not`.

Numba's own arithmetic is neither Python's nor the oracle's: it mixes int64 and uint64 into
float64, adds bools, shifts by any count, and lets LLVM choose the libm. So the compiler rewrites
each operator, builtin (:mod:`specstream.compiler.library.conversions`) and `math` function
(:mod:`specstream.compiler.library.math_functions`) of a user's function into a call of a
:class:`~specstream.compiler.backend.scalar_functions.Native`.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

import ast
from collections.abc import Sequence
from typing import Any

from numba.core import types

from specstream.compiler.backend.instructions import BIT, F64, I64, Instructions, Value
from specstream.compiler.backend.scalar_functions import (
    Native,
    Rule,
    Writer,
    require_count,
    require_scalar,
    truth,
    write_bool,
)
from specstream.compiler.backend.scalar_kinds import integer_kind, scalar_kind
from specstream.compiler.frontend.error_texts import division_site
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import refuse

_TWO53 = 2**53
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _arithmetic_kind(what: str, args: Sequence[types.Type]) -> str:
    _refuse_mixture(what, args)
    kinds = [require_scalar(what, arg) for arg in args]
    if "float64" in kinds:
        return "float64"
    return "int64" if kinds == ["bool", "bool"] else integer_kind(what, args)


def _arithmetic(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, 2)
        kind = _arithmetic_kind(what, args)
        return kind, (kind, kind)

    return rule


def _keeping_bools(rule: Rule, what: str) -> Rule:
    """The rule of ``x += y`` and so on in native code: what is a bool goes on being one."""

    def of_same(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        kind, kinds = rule(args)
        if kind != "bool" and scalar_kind(args[0]) == "bool":
            raise refuse(f"{what}= of a bool makes a number of it; write y = int(x) {what} ...")
        return kind, kinds

    return of_same


def _true_division(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    require_count("/", args, 2)
    kind = _arithmetic_kind("/", args)
    return "float64", (kind, kind)


def _integers_only(what: str, args: Sequence[types.Type]) -> Sequence[types.Type]:
    """The arguments of a bit operation: those of a string are its code's."""
    require_count(what, args, 2)
    args = [types.int64 if isinstance(arg, TextType) else arg for arg in args]
    if "float64" in [require_scalar(what, arg) for arg in args]:
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


def _refuse_mixture(what: str, args: Sequence[types.Type]) -> None:
    """A string and a number, of which Python makes nothing either."""
    others = [arg for arg in args if not isinstance(arg, TextType)]
    if len(others) != 1 or scalar_kind(others[0]) is None or what in ("*", "%"):
        return
    lacks = "order" if what in _SWAPPED else "sum or difference"
    raise refuse(
        f"{what} between a string and {types.unliteral(others[0])}, which have no {lacks} in "
        "Python; write int(x), float(x) or len(x) of the string, or hash its bits, x & 65535"
    )


def _comparison(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, 2)
        if what in ("==", "!=") and any(isinstance(arg, TextType) for arg in args):
            return "bool", _codes(what, args)
        if len(args) == 2 and all(isinstance(arg, TextType) for arg in args):
            return "bool", ("string", "string")
        _refuse_mixture(what, args)
        left, right = kinds = [require_scalar(what, arg) for arg in args]
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
        require_count(what, args, 1)
        kind = require_scalar(what, args[0])
        if kind == "bool":
            raise refuse(f"{what} of a bool; write {what}int(x)")
        return kind, (kind,)

    return rule


def _inversion(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    require_count("~", args, 1)
    kind = require_scalar("~", args[0])
    if kind == "bool":
        raise refuse("~ of a bool is -1 or -2 in Python; write not x")
    if kind == "float64":
        raise refuse("~ needs an integer; write ~int(x) for a float")
    return kind, (kind,)


def _by_kind(integers: str, floats: str) -> Writer:
    """An instruction of the builder for integers, another for floats; neither can fail."""

    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return getattr(code.builder, floats if kinds[0] == "float64" else integers)(*args)

    return write


def fault_if_zero(code: Instructions, kind: str, divisor: Value, what: str = "") -> None:
    """Raises ZeroDivisionError, with Python's text of an operator, if there is one."""
    if kind == "float64":
        zero = code.builder.fcmp_ordered("==", divisor, F64(0.0))
    else:
        zero = code.builder.icmp_unsigned("==", divisor, I64(0))
    site = division_site(what, kind == "float64") if what else 0
    code.fault_if(zero, ZeroDivisionError, site)


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


def write_floordiv(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    left, right = args
    fault_if_zero(code, kinds[0], right, "//")
    if kinds[0] == "float64":
        return code.call("ss_float_floordiv", F64, *args)
    if kinds[0] == "uint64":
        return code.builder.udiv(left, right)
    quotient, _, minus_one = _floor_division(code, left, right)
    return code.builder.select(minus_one, code.builder.sub(I64(0), left), quotient)


def write_mod(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    left, right = args
    fault_if_zero(code, kinds[0], right, "%")
    if kinds[0] == "float64":
        return code.call("ss_float_mod", F64, *args)
    if kinds[0] == "uint64":
        return code.builder.urem(left, right)
    return _floor_division(code, left, right)[1]


def _write_truediv(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    builder = code.builder
    left, right = args
    kind = kinds[0]
    fault_if_zero(code, kind, right, "/")
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


def write_power(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "float64":
        return code.call_checked("ss_float_power", *args)
    if kinds[0] == "int64":
        code.fault_if(code.builder.icmp_signed("<", args[1], I64(0)), ValueError)
    return code.call("ss_int_power", I64, *args)


def _write_shift(signed: str, unsigned: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        # Unsigned, so that a negative count fails too.
        code.fault_if(code.builder.icmp_unsigned(">", args[1], I64(63)), ValueError)
        return getattr(code.builder, signed if kinds[0] == "int64" else unsigned)(*args)

    return write


def write_comparison(predicate: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        builder = code.builder
        left, right = kinds
        if left == right:
            if left == "string" and predicate not in ("==", "!="):
                order = code.call("ss_text_order", I64, *args)
                return builder.icmp_signed(predicate, order, I64(0))
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
    return code.builder.not_(write_bool(code, kinds, args))


division_rule = _arithmetic("//")
power_rule = _arithmetic("**")
add = Native("add", _arithmetic("+"), _by_kind("add", "fadd"))
sub = Native("sub", _arithmetic("-"), _by_kind("sub", "fsub"))
mul = Native("mul", _arithmetic("*"), _by_kind("mul", "fmul"))
truediv = Native("truediv", _true_division, _write_truediv)
floordiv = Native("floordiv", division_rule, write_floordiv)
mod = Native("mod", _arithmetic("%"), write_mod)
power = Native("power", power_rule, write_power)
lshift = Native("lshift", _shift("<<"), _write_shift("shl", "shl"))
rshift = Native("rshift", _shift(">>"), _write_shift("ashr", "lshr"))
and_ = Native("and_", _bitwise("&"), _by_kind("and_", "and_"))
or_ = Native("or_", _bitwise("|"), _by_kind("or_", "or_"))
xor = Native("xor", _bitwise("^"), _by_kind("xor", "xor"))
eq = Native("eq", _comparison("=="), write_comparison("=="))
ne = Native("ne", _comparison("!="), write_comparison("!="))
lt = Native("lt", _comparison("<"), write_comparison("<"))
le = Native("le", _comparison("<="), write_comparison("<="))
gt = Native("gt", _comparison(">"), write_comparison(">"))
ge = Native("ge", _comparison(">="), write_comparison(">="))
neg = Native("neg", _unary("-"), _write_neg)
pos = Native("pos", _unary("+"), _write_itself)
invert = Native("invert", _inversion, _write_invert)
not_ = Native("not_", truth("not"), _write_not)
# In place, which of a list or set is another thing: all its names see it.
iadd = Native("iadd", _keeping_bools(_arithmetic("+"), "+"), _by_kind("add", "fadd"))
isub = Native("isub", _keeping_bools(_arithmetic("-"), "-"), _by_kind("sub", "fsub"))
imul = Native("imul", _keeping_bools(_arithmetic("*"), "*"), _by_kind("mul", "fmul"))
iand = Native("iand", _keeping_bools(_bitwise("&"), "&"), _by_kind("and_", "and_"))
ior = Native("ior", _keeping_bools(_bitwise("|"), "|"), _by_kind("or_", "or_"))
ixor = Native("ixor", _keeping_bools(_bitwise("^"), "^"), _by_kind("xor", "xor"))
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
IN_PLACE: dict[type[ast.operator], Native] = {
    ast.Div: Native("itruediv", _keeping_bools(_true_division, "/"), _write_truediv),
    ast.FloorDiv: Native("ifloordiv", _keeping_bools(division_rule, "//"), write_floordiv),
    ast.Mod: Native("imod", _keeping_bools(_arithmetic("%"), "%"), write_mod),
    ast.Pow: Native("ipower", _keeping_bools(power_rule, "**"), write_power),
    ast.LShift: Native("ilshift", _keeping_bools(_shift("<<"), "<<"), _write_shift("shl", "shl")),
    ast.RShift: Native("irshift", _keeping_bools(_shift(">>"), ">>"), _write_shift("ashr", "lshr")),
    ast.Add: iadd,
    ast.Sub: isub,
    ast.Mult: imul,
    ast.BitAnd: iand,
    ast.BitOr: ior,
    ast.BitXor: ixor,
}
"""The operators of augmented assignments."""
