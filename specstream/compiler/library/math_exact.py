"""The functions of `math` that CPython computes by itself, and those of integers, which are exact.

Beside those of :mod:`specstream.compiler.library.math_functions`, which are the libm's. A function
of integers raises where its result has more bits than its kind.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from numba.core import cgutils, types

from specstream.compiler.backend.instructions import F64, I32, I64, Instructions, Value
from specstream.compiler.backend.overloads import Core, Meaning, of_values
from specstream.compiler.backend.scalar_functions import (
    Native,
    Rule,
    Writer,
    require_count,
    require_scalar,
)
from specstream.compiler.backend.scalar_kinds import integer_kind
from specstream.compiler.language.numbers import INT64_MAX, UINT64_MAX
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import math_functions
from specstream.compiler.library.math_functions import floats

__all__ = ["DEFAULTS", "MATH", "OF_SEVERAL", "norm", "norm_of"]

# CPython changed how it adds up squares.
_BY_FMA = int(sys.version_info >= (3, 12))


# ---- of floats ----


def _checked(name: str, count: int = 1) -> Native:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return code.call_checked(f"ss_math_{name}", *args)

    return Native(f"math_{name}", floats(f"math.{name}", count), write)


def _called(name: str, count: int = 1) -> Native:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        return code.call(f"ss_math_{name}", F64, *args)

    return Native(f"math_{name}", floats(f"math.{name}", count), write)


def _write_hypot(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    return norm(code, args)


def norm(code: Instructions, parts: Sequence[Value]) -> Value:
    """The square root of the sum of squares of doubles, as CPython has it."""
    place = cgutils.alloca_once(code.builder, F64, size=max(len(parts), 1))
    for at, part in enumerate(parts):
        code.builder.store(part, code.builder.gep(place, [I64(at)], inbounds=True))
    return norm_of(code, place, I64(len(parts)))


def norm_of(code: Instructions, doubles: Value, count: Value) -> Value:
    """The same of doubles in memory, which are overwritten."""
    return code.call("ss_math_hypot", F64, doubles, count, I32(_BY_FMA))


def _isclose_rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    require_count("math.isclose", args, 4)
    return "bool", [require_scalar("math.isclose", arg) and "float64" for arg in args]


def _write_isclose(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    builder = code.builder
    for tolerance in args[2:]:
        code.fault_if(builder.fcmp_ordered("<", tolerance, F64(0.0)), ValueError)
    close = code.call("ss_math_isclose", I32, *args)
    return builder.icmp_unsigned("!=", close, I32(0))


# ---- of integers ----


def _integers(what: str, low: int, high: int | None = None) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, low, high)
        for arg in args:
            if require_scalar(what, arg) == "float64":
                raise refuse(f"{what} takes integers; write int(x) for a float")
        kind = integer_kind(what, args)
        return kind, (kind,) * len(args)

    return rule


def _limit(kind: str) -> Value:
    return I64(INT64_MAX if kind == "int64" else UINT64_MAX)


def _magnitude(code: Instructions, kind: str, value: Value) -> Value:
    if kind == "uint64":
        return value
    negative = code.builder.icmp_signed("<", value, I64(0))
    return code.builder.select(negative, code.builder.neg(value), value)


def _write_gcd(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    result = I64(0)
    for kind, arg in zip(kinds, args, strict=True):
        result = code.call("ss_math_gcd", I64, result, _magnitude(code, kind, arg))
    if kinds[0] == "int64":
        code.fault_if(code.builder.icmp_signed("<", result, I64(0)), OverflowError)
    return result


def _write_lcm(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    result, limit = I64(1), _limit(kinds[0])
    magnitudes = [_magnitude(code, kind, arg) for kind, arg in zip(kinds, args, strict=True)]
    zero = code.builder.icmp_unsigned("==", magnitudes[0], I64(0))
    for magnitude in magnitudes[1:]:
        none = code.builder.icmp_unsigned("==", magnitude, I64(0))
        zero = code.builder.or_(zero, none)
    # A multiple on the way is no larger than the last one, unless that is 0.
    for magnitude in magnitudes:
        factor = code.builder.select(zero, I64(0), magnitude)
        result = code.call_checked("ss_math_lcm", result, factor, limit, result=I64)
    return result


def _write_ways(name: str) -> Writer:
    """perm and comb; of one argument, its permutations."""

    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        if kinds[0] == "int64":
            for arg in args:
                code.fault_if(code.builder.icmp_signed("<", arg, I64(0)), ValueError)
        both = (args[0], args[-1])
        return code.call_checked(f"ss_math_{name}", *both, _limit(kinds[0]), result=I64)

    return write


def _write_isqrt(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "int64":
        code.fault_if(code.builder.icmp_signed("<", args[0], I64(0)), ValueError)
    return code.call("ss_math_isqrt", I64, args[0])


# ---- with two results ----

math_frexp = Core("math_frexp", "write math.frexp(x) of a number")
math_modf = Core("math_modf", "write math.modf(x) of a number")


def _in_two(function: Core, symbol: str, second: types.Type, of: Any) -> None:
    @function.rule
    @of_values
    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning:
        name = function.name.replace("_", ".")
        require_count(name, args, 1)
        require_scalar(name, args[0])
        made = types.BaseTuple.from_types([types.float64, second])

        def code(context: Any, builder: Any, sig: Any, values: Any) -> Value:
            slot = cgutils.alloca_once(builder, of)
            first = Instructions(context, builder).call(symbol, F64, values[0], slot)
            return context.make_tuple(builder, made, [first, builder.load(slot)])

        return made, [types.float64], code


_in_two(math_frexp, "ss_math_frexp", types.int64, I64)
_in_two(math_modf, "ss_math_modf", types.float64, F64)


MATH: dict[str, Any] = math_functions.MATH | {
    "gamma": _checked("gamma"),
    "lgamma": _checked("lgamma"),
    "remainder": _checked("remainder", 2),
    "nextafter": _called("nextafter", 2),
    "ulp": _called("ulp"),
    "hypot": Native("math_hypot", floats("math.hypot", 1, 64), _write_hypot),
    "isclose": Native("math_isclose", _isclose_rule, _write_isclose),
    "gcd": Native("math_gcd", _integers("math.gcd", 1, 64), _write_gcd),
    "lcm": Native("math_lcm", _integers("math.lcm", 1, 64), _write_lcm),
    "comb": Native("math_comb", _integers("math.comb", 2), _write_ways("comb")),
    "perm": Native("math_perm", _integers("math.perm", 1, 2), _write_ways("perm")),
    "factorial": Native("math_factorial", _integers("math.factorial", 1), _write_ways("perm")),
    "isqrt": Native("math_isqrt", _integers("math.isqrt", 1), _write_isqrt),
    "frexp": math_frexp,
    "modf": math_modf,
}
"""All functions of `math` that operators have."""

OF_SEVERAL = ("fsum", "prod", "dist")
"""Functions of `math` over arrays, tuples and lists: array_methods.py has them."""
DEFAULTS: dict[str, tuple[tuple[str, Any], ...]] = {
    "prod": (("iterable", ...), ("start", 1)),
    "isclose": (("a", ...), ("b", ...), ("rel_tol", 1e-09), ("abs_tol", 0.0)),
}
"""The parameters of functions that may be called with keywords; ``...``: no default."""
