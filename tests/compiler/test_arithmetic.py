"""Native arithmetic equals the oracle's, bit for bit, and fails exactly where the oracle raises."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import ast
import inspect
import itertools
import math
import operator
import random
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core import types
from numba.core.errors import TypingError

from specstream.compiler.backend import symbols
from specstream.compiler.backend.instructions import OperatorFault
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language import numbers
from specstream.compiler.language.bool_operators import OF_BOOLS
from specstream.compiler.language.numbers import (
    INT64_MAX,
    INT64_MIN,
    ORACLE_BUILTINS,
    UINT64_MAX,
    Int64,
    Uint64,
    negate,
    power,
    to_oracle,
)
from specstream.compiler.library import arithmetic, conversions, math_functions
from specstream.compiler.library.math_exact import MATH as NATIVE_MATH
from specstream.compiler.library.number_builtins import BUILTINS as NATIVE_BUILTINS
from specstream.compiler.library.numpy_functions import NUMPY as NATIVE_NUMPY
from specstream.compiler.library.numpy_functions import OF_ARRAYS
from specstream.compiler.oracle_objects.modules import OracleMath, OracleNumpy

symbols.register()

NUMBA_TYPES = {
    "int64": types.int64,
    "uint64": types.uint64,
    "float64": types.float64,
    "bool": types.boolean,
}
KINDS = tuple(NUMBA_TYPES)
ORACLE_TYPES: dict[str, Callable[[Any], Any]] = {
    "int64": Int64,
    "uint64": Uint64,
    "float64": float,
    "bool": bool,
}

_NEAR = [0, 2, 10, 31, 63, 2**31, 2**32, 2**52, 2**53, 2**54, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
_AROUND = sorted({sign * near + step for near in _NEAR for sign in (1, -1) for step in (-1, 0, 1)})
_LARGEST = 1.7976931348623157e308
_FLOATS = [0.0, 5e-324, 2.2250738585072014e-308, 1e-300, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25]
_FLOATS += [math.pi, 709.7, 710.0, 745.2, 1023.0, 1024.0, 2.0**52 + 0.5, 2.0**53, 2.0**53 + 2]
_FLOATS += [math.nextafter(2.0**63, 0), 2.0**63, math.nextafter(2.0**64, 0), 2.0**64, 1e300]
_FLOATS += [math.nextafter(1.0, 0), math.nextafter(1.0, 2), _LARGEST, math.inf]

BOUNDARIES: dict[str, list[Any]] = {
    "int64": [value for value in _AROUND if INT64_MIN <= value <= INT64_MAX],
    "uint64": [value for value in _AROUND if 0 <= value <= UINT64_MAX],
    "float64": [*_FLOATS, *(-value for value in _FLOATS), math.nan],
    "bool": [False, True],
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-70, 70)
    | st.integers(INT64_MIN, INT64_MAX)
    | st.sampled_from(BOUNDARIES["int64"]),
    "uint64": st.integers(0, 70)
    | st.integers(0, UINT64_MAX)
    | st.sampled_from(BOUNDARIES["uint64"]),
    "float64": st.floats() | st.floats(-100, 100) | st.sampled_from(BOUNDARIES["float64"]),
    "bool": st.booleans(),
}

SAME = [(kind, kind) for kind in KINDS]
WITH_FLOAT = [pair for pair in itertools.product(KINDS, KINDS) if "float64" in pair]
INTEGERS = [("int64", "int64"), ("uint64", "uint64")]
INTEGER_AND_BOOL = [("int64", "bool"), ("uint64", "bool")]
BOOL_AND_INTEGER = [("bool", "int64"), ("bool", "uint64")]
ARITHMETIC = [*INTEGERS, *WITH_FLOAT, *INTEGER_AND_BOOL]
EVERYTHING = [(kind,) for kind in KINDS]
NUMBERS = [("int64",), ("uint64",), ("float64",)]

Kinds = tuple[str, ...]
MATH = OracleMath()
NUMPY = OracleNumpy()

Functions = dict[type[ast.operator | ast.unaryop | ast.cmpop], Callable[..., Any]]
_BINARY: Functions = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
}
_BITWISE: Functions = {ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor}
_SHIFTS: Functions = {ast.LShift: operator.lshift, ast.RShift: operator.rshift}
_COMPARISONS: Functions = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: Functions = {ast.USub: negate, ast.UAdd: operator.pos}
_MATH_PAIRS = [
    ("float64", "float64"),
    ("int64", "float64"),
    ("float64", "uint64"),
    ("bool", "int64"),
]
_ROUNDINGS = [(kind, "int64") for kind in KINDS]
_EXACT: dict[str, list[Kinds]] = {
    **{name: [("float64",), ("int64",)] for name in ("gamma", "lgamma", "ulp")},
    **{name: [*_MATH_PAIRS[:2]] for name in ("remainder", "nextafter")},
    **{name: [*INTEGERS] for name in ("comb", "perm")},
    **{name: [*INTEGERS, ("int64",) * 3, ("int64", "bool")] for name in ("gcd", "lcm")},
    **{name: [("int64",), ("uint64",)] for name in ("factorial", "isqrt")},
    "hypot": [("float64",), ("float64", "int64"), ("float64",) * 3],
}
"""The functions of `math` that CPython computes by itself, with the kinds to try."""


def _cases() -> Iterable[tuple[Any, Any, Sequence[Kinds]]]:
    with_bools = [*BOOL_AND_INTEGER, ("bool", "bool")]
    for node, function in _BINARY.items():
        asked = OF_BOOLS.get(node, function)
        yield arithmetic.OPERATORS[node], asked, [*ARITHMETIC, *with_bools]
    for node in (*_BITWISE, *_SHIFTS):
        pairs = [*INTEGERS, *INTEGER_AND_BOOL, *with_bools]
        yield arithmetic.OPERATORS[node], OF_BOOLS[node], pairs
    for node, function in _COMPARISONS.items():
        pairs = sorted({*SAME, *WITH_FLOAT, *INTEGER_AND_BOOL, *BOOL_AND_INTEGER})
        yield arithmetic.OPERATORS[node], function, pairs
    for node, function in _UNARY.items():
        yield arithmetic.OPERATORS[node], function, list(NUMBERS)
    yield arithmetic.invert, operator.invert, [("int64",), ("uint64",)]
    yield arithmetic.not_, operator.not_, EVERYTHING
    for name in ("int", "float", "bool", "abs", "round"):
        yield NATIVE_BUILTINS[name], ORACLE_BUILTINS[name], EVERYTHING
    for name in ("min", "max"):
        kinds = [*SAME, ("float64",) * 3, ("int64",) * 4]
        yield NATIVE_BUILTINS[name], ORACLE_BUILTINS[name], kinds
    for name, native in NATIVE_NUMPY.items():
        pairs = [*SAME, ("int64", "float64"), ("bool", "float64")]
        thrice = [(kind,) * 3 for kind in KINDS]
        special: dict[str, Any] = {"minimum": pairs, "maximum": pairs, "clip": thrice}
        original = getattr(np, name, None)
        if isinstance(original, np.ufunc) and original.nin > 1:
            special.setdefault(name, [one for one in pairs if len(one) == original.nin])
        of_numbers = name in ("abs", "absolute", "sign", "square", "floor", "ceil", "trunc")
        usual = NUMBERS if of_numbers else EVERYTHING
        yield native, getattr(NUMPY, name), special.get(name, usual)
    for name, kinds_of_math in _EXACT.items():
        yield NATIVE_MATH[name], getattr(MATH, name), kinds_of_math
    yield NATIVE_BUILTINS["round"], ORACLE_BUILTINS["round"], _ROUNDINGS
    powers = [("float64", "int64"), *INTEGERS, *[(kind,) * 3 for kind in ("int64", "uint64")]]
    yield NATIVE_BUILTINS["pow"], ORACLE_BUILTINS["pow"], powers
    for name, native in math_functions.MATH.items():
        if name in ("atan2", "pow", "fmod", "copysign"):
            yield native, getattr(MATH, name), _MATH_PAIRS
        elif name == "ldexp":
            pairs = [("float64", kind) for kind in ("int64", "uint64", "bool")]
            yield native, MATH.ldexp, [*pairs, ("int64", "int64")]
        else:
            yield native, getattr(MATH, name), EVERYTHING
        if name == "log":
            yield native, MATH.log, _MATH_PAIRS


CASES = [
    pytest.param(native, oracle, kinds, id=f"{native.name}-{'-'.join(kinds[0])}")
    for native, oracle, kinds in _cases()
]


@cache
def compiled(native: Any, kinds: Kinds) -> tuple[Callable[..., Any], str]:
    """The compiled call of `native` over `kinds`, and the kind of its result."""
    names = ", ".join(f"x{position}" for position in range(len(kinds)))
    namespace: dict[str, Any] = {"native": native}
    exec(f"def call({names}): return native({names})", namespace)
    arguments = tuple(NUMBA_TYPES[kind] for kind in kinds)
    function = numba.njit([arguments], nogil=True, error_model="python", _nrt=False)(
        namespace["call"]
    )
    kind = scalar_kind(function.nopython_signatures[0].return_type)
    assert kind is not None
    return function.overloads[arguments].entry_point, kind


def bits(kind: str, value: Any) -> object:
    if kind != "float64":
        return value
    # Which NaN an operation yields is the processor's choice.
    return "nan" if math.isnan(value) else struct.pack("<d", value)


def kind_of(value: Any) -> str:
    return {Int64: "int64", Uint64: "uint64", float: "float64", bool: "bool"}[type(value)]


def check(native: Any, oracle: Callable[..., Any], kinds: Kinds, values: tuple[Any, ...]) -> None:
    function, kind = compiled(native, kinds)
    expected: Any = None
    error: Exception | None = None
    try:
        expected = oracle(*(ORACLE_TYPES[k](v) for k, v in zip(kinds, values, strict=True)))
    except (ValueError, ArithmeticError) as raised:
        error = raised
    try:
        result = function(*values)
    except (ValueError, ArithmeticError, OperatorFault) as raised:
        found: type[Exception] | None = type(raised)
    else:
        found = None
    assert found is (None if error is None else type(error)), (
        f"{native.name}{values}: native raises {found}, the oracle gives {expected}, {error!r}"
    )
    if error is not None:
        return
    assert kind_of(expected) == kind, f"{native.name}{kinds}: {type(expected)}, native {kind}"
    assert bits(kind, result) == bits(kind, expected), f"{native.name}{values}"


# In none of them do two arguments that are swapped give the same.
_TRIED: dict[str, tuple[tuple[float, ...], ...]] = {
    "float64": ((0.5, -0.25, 3.0), (-0.75, 0.5, 1.0), (7.5, -2.0, 0.0), (-0.0, 1.5, -3.0)),
    "int64": ((7, 3, 2), (12, 5, 4), (9, 6, 1)),
}


def arity(function: Any) -> int:
    """How many arguments a function of NumPy or `math` takes at least."""
    if isinstance(function, np.ufunc):
        return int(function.nin)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # math.log and others that say none
        return 1
    return max(
        1, sum(one.default is one.empty for one in parameters if one.kind < one.KEYWORD_ONLY)
    )


def _functions() -> Iterable[tuple[str, Any, Any, Any]]:
    for name, native in NATIVE_NUMPY.items():
        if isinstance(getattr(np, name, None), np.ufunc):
            yield f"np.{name}", native, getattr(NUMPY, name), getattr(np, name)
    for name, native in NATIVE_MATH.items():
        # A Python may be older than one of them; others give pairs, or take options.
        if hasattr(math, name) and name not in ("frexp", "isclose", "modf"):
            yield f"math.{name}", native, getattr(MATH, name), getattr(math, name)


@pytest.mark.parametrize(
    ("native", "oracle", "original"),
    [pytest.param(*one, id=name) for name, *one in _functions()],
)
def test_a_function_takes_what_its_original_takes_and_gives_the_same(
    native: Any, oracle: Callable[..., Any], original: Any
) -> None:
    """All that are there, without being listed: whoever adds one adds it to this test."""
    count = arity(original)
    name = original.__name__
    kinds = _EXACT[name][0] if name in _EXACT else ("float64",) * count
    kinds = ("float64", "int64") if name == "ldexp" else kinds
    assert len(kinds) >= count
    for values in zip(*(_TRIED[kind] for kind in kinds), strict=False):
        # Of each position its own value: the first of the first kind, the second of the second.
        given = tuple(of[at] for at, of in enumerate(values))
        check(native, oracle, kinds, given)
        try:
            with np.errstate(all="ignore"):
                expected = original(*given)
        except (ValueError, OverflowError):
            continue  # the oracle has its own errors
        try:
            found = oracle(*(ORACLE_TYPES[k](v) for k, v in zip(kinds, given, strict=True)))
        except (ValueError, ArithmeticError):
            assert not math.isfinite(expected)
            continue
        kind = kind_of(found)
        assert bits(kind, found) == bits(kind, type(found)(expected)), f"{name}{given}"
    if isinstance(original, np.ufunc):
        for other in (count - 1, count + 1):
            with pytest.raises(TypingError):
                compiled(native, ("float64",) * other)
            with pytest.raises(TypeError):
                oracle(*[0.5] * other)


@pytest.mark.slow
@pytest.mark.parametrize(("native", "oracle", "signatures"), CASES)
def test_native_equals_oracle_at_boundaries(
    native: Any, oracle: Callable[..., Any], signatures: list[Kinds]
) -> None:
    for kinds in signatures:
        candidates = [BOUNDARIES[kind] for kind in kinds]
        grid: Iterable[tuple[Any, ...]] = itertools.product(*candidates)
        if len(kinds) > 2:
            draw = random.Random(1)
            grid = [tuple(map(draw.choice, candidates)) for _ in range(4000)]
        for values in grid:
            check(native, oracle, kinds, values)


@pytest.mark.long
@pytest.mark.parametrize(("native", "oracle", "signatures"), CASES)
@settings(max_examples=100)
@given(data=st.data())
def test_native_equals_oracle_everywhere(
    native: Any, oracle: Callable[..., Any], signatures: list[Kinds], data: st.DataObject
) -> None:
    kinds = data.draw(st.sampled_from(signatures))
    check(native, oracle, kinds, data.draw(st.tuples(*(VALUES[kind] for kind in kinds))))


def test_dense_random_floats_equal_the_oracle() -> None:
    """Hypothesis prefers round numbers; rounding errors show on full mantissas."""
    draw = random.Random(2)
    for name, native in math_functions.MATH.items():
        count = 2 if name in ("atan2", "pow", "fmod") else 1
        if name == "ldexp" or name == "copysign":
            continue
        for _ in range(400):
            scale = 10.0 ** draw.uniform(-3, 3)
            values = tuple(draw.uniform(-scale, scale) for _ in range(count))
            check(native, getattr(MATH, name), ("float64",) * count, values)
    for native, function in (
        (arithmetic.mod, operator.mod),
        (arithmetic.floordiv, operator.floordiv),
        (arithmetic.power, power),
    ):
        for _ in range(2000):
            values = (draw.uniform(-1e3, 1e3), draw.uniform(-10, 10))
            check(native, function, ("float64", "float64"), values)


def test_dense_random_true_division_rounds_once() -> None:
    draw = random.Random(3)
    for kind, low in (("int64", INT64_MIN), ("uint64", 0)):
        for _ in range(4000):
            shifts = draw.randrange(64), draw.randrange(64)
            top = INT64_MAX if kind == "int64" else UINT64_MAX
            values = tuple(draw.randint(low, top) >> shift for shift in shifts)
            check(arithmetic.truediv, operator.truediv, (kind, kind), values)


FROZEN = 7


@numba.njit(_nrt=False, error_model="python")
def with_literals(x):
    local = 3
    a = arithmetic.add(arithmetic.mul(x, 5), FROZEN)
    b = arithmetic.xor(arithmetic.lshift(a, local), 0x9E3779B97F4A7C15)
    return conversions.max_(2, arithmetic.rshift(b, 1))


@given(st.integers(0, UINT64_MAX))
def test_nonnegative_literals_mix_with_uint64(value: int) -> None:
    x = Uint64(value)
    mixed = ((x * Int64(5) + Int64(7)) << Int64(3)) ^ Uint64(0x9E3779B97F4A7C15)
    expected = ORACLE_BUILTINS["max"](Int64(2), mixed >> Int64(1))
    assert type(expected) is Uint64
    assert with_literals(np.uint64(value)) == expected


def test_float_of_a_literal_text_is_a_constant() -> None:
    @numba.njit(_nrt=False)
    def texts(x):
        y = conversions.float_("-inf")
        return arithmetic.add(x, conversions.float_(" 1e-3 ")), y

    assert texts(1.0) == (1.001, -math.inf)

    def wrong():
        return conversions.float_("one")

    with pytest.raises(TypingError, match="specstream: 'one' is not a number; write"):
        numba.njit([()], _nrt=False)(wrong)


def test_extremum_of_literal_and_uint64_is_uint64() -> None:
    @numba.njit(_nrt=False)
    def largest(x):
        return conversions.max_(2, x)

    assert largest(np.uint64(1)) == 2
    assert scalar_kind(largest.nopython_signatures[0].return_type) == "uint64"
    assert type(ORACLE_BUILTINS["max"](Int64(2), Uint64(1))) is Uint64


I64, U64, F64, BOOL = (NUMBA_TYPES[kind] for kind in KINDS)
MIXED = r"specstream: .* mixes uint64 and int64.*np\.uint64\(x\) or np\.int64\(x\)"
OF_A_BOOL = r"specstream: .*= of a bool makes a number of it; write y = int\(x\)"
REJECTED = [
    *((arithmetic.OPERATORS[node], (I64, U64), MIXED) for node in [*_BINARY, *_BITWISE, *_SHIFTS]),
    *((arithmetic.OPERATORS[node], (U64, I64), MIXED) for node in _COMPARISONS),
    *((native, (BOOL, I64), OF_A_BOOL) for native in arithmetic.IN_PLACE.values()),
    (arithmetic.neg, (BOOL,), r"specstream: - of a bool; write -int\(x\)"),
    (arithmetic.pos, (BOOL,), r"specstream: \+ of a bool; write \+int\(x\)"),
    (arithmetic.invert, (BOOL,), r"specstream: ~ of a bool.*write not x"),
    (arithmetic.invert, (F64,), r"specstream: ~ needs an integer"),
    (NATIVE_BUILTINS["round"], (F64, F64), r"specstream: round takes a number of digits .*int\(n"),
    (
        conversions.min_,
        (F64, I64),
        r"specstream: min over different types.*write min\(float",
    ),
    (conversions.max_, (BOOL, I64), r"specstream: max over different types"),
    (conversions.max_, (U64, I64), MIXED),
    (conversions.max_, (I64,), r"specstream: max takes two numbers or more"),
    (arithmetic.lshift, (F64, I64), r"specstream: << needs integers; write int\(x\)"),
    (arithmetic.and_, (I64, F64), r"specstream: & needs integers; write int\(x\)"),
    (math_functions.math_ldexp, (F64, F64), r"specstream: math.ldexp needs an integer exponent"),
    (arithmetic.add, (types.complex128, F64), r"specstream: \+ takes numbers"),
    (arithmetic.add, (I64, types.int32), r"specstream: \+ takes numbers"),
    (math_functions.math_exp, (types.Array(F64, 1, "C"),), r"specstream: math.exp takes numbers"),
    (math_functions.math_exp, (F64, F64), r"specstream: math.exp takes 1 arguments?, got 2"),
]


@pytest.mark.parametrize(
    ("native", "arguments", "message"),
    [pytest.param(*case, id=f"{case[0].name}-{'-'.join(map(str, case[1]))}") for case in REJECTED],
)
def test_rejections_say_what_to_write(
    native: Any, arguments: tuple[types.Type, ...], message: str
) -> None:
    names = ", ".join(f"x{position}" for position in range(len(arguments)))
    namespace: dict[str, Any] = {"native": native}
    exec(f"def call({names}): return native({names})", namespace)
    with pytest.raises(TypingError, match=message):
        numba.njit([arguments], _nrt=False)(namespace["call"])


def test_negative_literal_does_not_mix_with_uint64() -> None:
    minus = -5

    def call(x):
        return arithmetic.add(x, minus)

    with pytest.raises(TypingError, match=r"specstream: \+ mixes uint64 and the negative.* -5"):
        numba.njit([(types.uint64,)], _nrt=False)(call)


WORDS = st.one_of(VALUES["int64"])
WRAPPING = [operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor]
DIVIDING = [operator.floordiv, operator.mod]


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@given(WORDS, WORDS, st.sampled_from(WRAPPING + DIVIDING))
def test_int64_is_python_modulo_two_to_64(
    left: int, right: int, function: Callable[[Any, Any], Any]
) -> None:
    if function in DIVIDING and right == 0:
        with pytest.raises(ZeroDivisionError):
            function(Int64(left), Int64(right))
        return
    expected = _wrapped(function(left, right))
    for a, b in ((Int64(left), Int64(right)), (left, Int64(right)), (Int64(left), right)):
        result = function(a, b)
        assert type(result) is Int64
        assert result == expected


@given(VALUES["uint64"], VALUES["uint64"], st.sampled_from(WRAPPING))
def test_uint64_is_python_modulo_two_to_64(
    left: int, right: int, function: Callable[[Any, Any], Any]
) -> None:
    expected = function(left, right) % 2**64
    for a, b in ((Uint64(left), Uint64(right)), (left, Uint64(right)), (Uint64(left), right)):
        result = function(a, b)
        assert type(result) is Uint64
        assert result == expected


@given(WORDS, st.integers(-3, 70))
def test_shift_counts_are_from_0_to_63(value: int, count: int) -> None:
    for kind, operation in itertools.product((Int64, Uint64), (operator.lshift, operator.rshift)):
        if not 0 <= count <= 63:
            with pytest.raises(ValueError, match="shift count must be from 0 to 63"):
                operation(kind(value), Int64(count))
        else:
            assert operation(kind(value), Int64(count)) == kind(operation(int(kind(value)), count))


@given(WORDS, VALUES["float64"])
def test_int64_with_float_is_pythons_float(value: int, number: float) -> None:
    for function in (operator.add, operator.sub, operator.mul):
        assert bits("float64", function(Int64(value), number)) == bits(
            "float64", function(value, number)
        )
    assert (Int64(value) < number) == (value < number)
    assert (Int64(value) == number) == (value == number)


def test_int64_behaves_as_int_elsewhere() -> None:
    assert hash(Int64(5)) == hash(5)
    assert f"{Int64(5):04d} {Int64(-1)} {Uint64(2**64 - 1)!r}" == "0005 -1 18446744073709551615"
    assert [10, 20, 30][Int64(1)] == 20
    assert float(Int64(3)) == 3.0
    assert Int64(INT64_MIN) // Int64(-1) == INT64_MIN
    assert negate(Int64(INT64_MIN)) == INT64_MIN
    lowest = -(2.0**63)
    assert lowest == Int64(INT64_MIN)
    assert abs(Int64(INT64_MIN)) == INT64_MIN
    assert type(-Uint64(1)) is Uint64


def test_integer_power_wraps_and_refuses_negative_exponents() -> None:
    assert power(Int64(3), Int64(41)) == _wrapped(3**41)
    assert power(Int64(-3), Int64(41)) == _wrapped((-3) ** 41)
    with pytest.raises(ValueError, match="negative power"):
        power(Int64(2), Int64(-1))
    with pytest.raises(ValueError, match="complex"):
        power(-8.0, 0.5)
    with pytest.raises(ZeroDivisionError):
        power(0.0, -1.0)
    with pytest.raises(OverflowError):
        power(10.0, 400)


def test_to_oracle_takes_python_and_numpy_scalars() -> None:
    for value, expected in (
        (True, True),
        (np.bool_(False), False),
        (5, Int64(5)),
        (2**63, Uint64(2**63)),
        (np.int8(-3), Int64(-3)),
        (np.uint16(3), Int64(3)),
        (np.uint64(3), Uint64(3)),
        (np.ulonglong(3), Uint64(3)),
        (np.float16(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (2.5, 2.5),
    ):
        assert to_oracle(value) == expected
        assert type(to_oracle(value)) is type(expected)
    with pytest.raises(OverflowError, match="more than 64 bits"):
        to_oracle(2**64)


def test_builtins_of_the_oracle_return_int64() -> None:
    builtins: dict[str, Any] = dict(ORACLE_BUILTINS)
    assert [type(item) for item in builtins["range"](Int64(2))] == [Int64, Int64]
    assert list(builtins["range"](Int64(5), Int64(0), Int64(-2))) == [5, 3, 1]
    assert [type(item) for item in builtins["range"](Uint64(1))] == [Uint64]
    assert [(type(i), x) for i, x in builtins["enumerate"]("a")] == [(Int64, "a")]
    assert type(builtins["len"]([1, 2])) is Int64
    assert type(builtins["sum"]([Int64(1), True])) is Int64
    # Compensated summation would give 1.0.
    assert builtins["sum"]([1e16, 1.0, -1e16]) == 0.0
    assert builtins["min"]([2.5, 1.5]) == 1.5
    with pytest.raises(ValueError, match="empty"):
        builtins["max"]([])
    assert builtins["round"](2.675, 2) == 2.67
    with pytest.raises(OverflowError, match=r"np\.int64"):
        builtins["int"](Uint64(2**63))


@pytest.mark.parametrize("name", sorted(math_functions.MATH))
def test_oracle_math_is_pythons_math(name: str) -> None:
    if name in ("atan2", "pow", "fmod", "copysign", "ldexp"):
        assert name == "copysign" or getattr(MATH, name) is getattr(math, name)
        return
    for value in BOUNDARIES["float64"]:
        try:
            expected = getattr(math, name)(value)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                getattr(MATH, name)(value)
            continue
        if name in ("floor", "ceil", "trunc") and not INT64_MIN <= expected <= INT64_MAX:
            with pytest.raises(OverflowError):
                getattr(MATH, name)(value)
        else:
            assert bits(kind_of(to_oracle(expected)), getattr(MATH, name)(value)) == bits(
                kind_of(to_oracle(expected)), expected
            )


def test_what_is_not_supported_is_named() -> None:
    with pytest.raises(AttributeError, match=r"math\.sumprod is not supported"):
        MATH.sumprod  # noqa: B018
    with pytest.raises(AttributeError, match=r"np\.exp is not supported"):
        NUMPY.exp  # noqa: B018
    assert set(numbers.MATH_CONSTANTS) == {"pi", "e", "tau", "inf", "nan"}
    assert {*vars(MATH)} == {*NATIVE_MATH, "dist", "fsum", "prod", *numbers.MATH_CONSTANTS}
    assert {*vars(NUMPY)} == {*NATIVE_NUMPY, *OF_ARRAYS, *numbers.NUMPY_CONSTANTS}
    assert {*NATIVE_BUILTINS} < {*numbers.ORACLE_BUILTINS}
