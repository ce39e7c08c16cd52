"""Builtins from numbers to a number: int, float, bool, abs, round, min, max, and NumPy's dtypes.

`len`, `range`, `sum`, `enumerate` and `zip` need the array types and are not among them.
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
    to_kind,
    truth,
    write_bool,
)
from specstream.compiler.backend.scalar_kinds import SCALARS, integer_kind, scalar_kind
from specstream.compiler.language.numbers import INT64_MAX
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.arithmetic import write_comparison


def _to_float(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    require_count("float", args, 1)
    if isinstance(args[0], types.StringLiteral):
        text = args[0].literal_value
        try:
            float(text)
        except ValueError:
            raise refuse(f'{text!r} is not a number; write float("inf") or such') from None
        return "float64", (text,)
    return to_kind("float", "float64")(args)


def _integer_to_int64(what: str) -> Rule:
    """The rule of a conversion to int64: of integers and bools alone, which say where."""

    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        kind = scalar_kind(args[0])
        if kind not in ("int64", "uint64", "bool"):
            raise refuse(f"{what} takes integers, and gets {args[0]}; write int(x)")
        return "int64", (kind,)

    return rule


def _slice_bound_rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
    """The rule of a conversion to int64: of a slice's bound, and what it is where None."""
    result, taken = _integer_to_int64("a slice")(args)
    return result, (*taken, "int64")[: len(args)]


def same_or_int64(what: str, floats: str) -> Rule:
    """A conversion's rule, such as that of ``abs(x)``: a bool becomes int64, an integer stays.

    A float gives what `floats` says.
    """

    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, 1)
        kind = require_scalar(what, args[0])
        if kind == "bool":
            return "int64", ("int64",)
        return (floats if kind == "float64" else kind), (kind,)

    return rule


def _extremum_rule(what: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        if len(args) < 2:
            raise refuse(f"{what} takes two numbers or more, or one array; got {len(args)}")
        if all(isinstance(arg, TextType) for arg in args):
            return "string", ("string",) * len(args)
        kinds = {require_scalar(what, arg) for arg in args}
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


def _write_float(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] not in SCALARS:
        return F64(float(kinds[0]))
    return code.to_float(args[0], kinds[0])


def _write_int(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "uint64":
        code.fault_if(code.builder.icmp_signed("<", args[0], I64(0)), OverflowError)
    return write_as_int64(code, kinds, args)


def write_as_int64(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "float64":
        return code.to_int64(args[0])
    return code.builder.zext(args[0], I64) if kinds[0] == "bool" else args[0]


def _write_as_uint64(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "float64":
        return code.to_uint64(args[0])
    return code.builder.zext(args[0], I64) if kinds[0] == "bool" else args[0]


def _write_slice_bound(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] != "uint64":
        return write_as_int64(code, kinds, args)
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
    compare = write_comparison(predicate)

    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        best = args[0]
        for value in args[1:]:
            # An ordered comparison: a NaN never wins and is never beaten, as in Python.
            wins = compare(code, kinds[:2], (value, best))
            best = code.builder.select(wins, value, best)
        return best

    return write


def write_rounded(intrinsic: str) -> Writer:
    def write(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
        if kinds[0] == "float64":
            return code.to_int64(code.llvm(intrinsic, args[0]))
        return args[0]

    return write


int_ = Native("int_", to_kind("int", "int64"), _write_int)
float_ = Native("float_", _to_float, _write_float)
bool_ = Native("bool_", truth("bool"), write_bool)
abs_ = Native("abs_", same_or_int64("abs", "float64"), _write_abs)
min_ = Native("min_", _extremum_rule("min"), _write_extremum("<"))
max_ = Native("max_", _extremum_rule("max"), _write_extremum(">"))
slice_bound = Native("slice_bound", _slice_bound_rule, _write_slice_bound)
enumerate_start = Native(
    "enumerate_start", _integer_to_int64("the start of enumerate"), write_as_int64
)
as_int64 = Native("as_int64", to_kind("np.int64", "int64"), write_as_int64)
as_uint64 = Native("as_uint64", to_kind("np.uint64", "uint64"), _write_as_uint64)
as_float64 = Native("as_float64", to_kind("np.float64", "float64"), _write_float)
as_bool = Native("as_bool", to_kind("np.bool_", "bool"), write_bool)
BUILTINS: dict[str, Native] = {
    "int": int_,
    "float": float_,
    "bool": bool_,
    "abs": abs_,
    "min": min_,
    "max": max_,
}
"""Builtins over scalars. `len`, `range`, `sum`, `enumerate`, `zip` need the array types."""
NUMPY: dict[str, Native] = {
    "int64": as_int64,
    "uint64": as_uint64,
    "float64": as_float64,
    "bool_": as_bool,
}
