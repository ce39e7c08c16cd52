"""`math` and `numpy` as the oracle has them: the functions that compiled operators have, too.

Where a function's result is that of Python or NumPy it is theirs; integers come back as those of
:mod:`specstream.compiler.language.numbers`, and what leaves 64 bits raises.
"""

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from specstream.columns.exception_texts import in_python
from specstream.compiler.language.numbers import (
    INT64_MAX,
    MATH_CONSTANTS,
    NUMPY_CONSTANTS,
    UINT64_MAX,
    Int64,
    Number,
    Uint64,
    float_to_integer,
    signed,
    to_int64,
    to_oracle,
    unsigned,
    whole,
)
from specstream.compiler.oracle_objects.reductions import NAMES, reduction

__all__ = ["OracleMath", "OracleNumpy"]


def _integral(name: str) -> Callable[[Number], Number]:
    function = getattr(math, name)

    def integral(value: Number) -> Number:
        if isinstance(value, Int64 | Uint64):
            return +value
        return whole(function(value), f"math.{name}")

    integral.__name__ = name
    return integral


def _copysign(value: Number, sign: Number) -> float:
    # The sign of a NaN that arithmetic produced is the processor's or the optimiser's choice: it
    # counts as positive, so that no result depends on it.
    return math.copysign(value, 0.0 if sign != sign else sign)


_PLAIN_MATH: tuple[Callable[..., Any], ...] = (
    *(math.sqrt, math.cbrt, math.pow, math.fmod, math.ldexp, math.fabs),
    *(math.exp, math.exp2, math.expm1, math.log, math.log2, math.log10, math.log1p),
    *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.atan2),
    *(math.sinh, math.cosh, math.tanh, math.asinh, math.acosh, math.atanh),
    *(math.degrees, math.radians, math.erf, math.erfc),
    *(math.isnan, math.isinf, math.isfinite),
    *(math.gamma, math.lgamma, math.remainder, math.nextafter, math.ulp, math.modf),
    *(math.hypot, math.dist, math.fsum, math.isclose),
)
_EXACT_MATH = ("gcd", "lcm", "comb", "perm", "factorial", "isqrt")


def _exact_math(name: str) -> Callable[..., int]:
    """``math.gcd``, ``comb`` and such as the oracle has them: exact, or they raise.

    They raise where a result has more bits than 64, or than 63 where no argument is unsigned.
    """
    function = getattr(math, name)

    def exact(*values: int) -> int:
        if name == "perm" and len(values) == 2 and values[1] is None:
            values = values[:1]
        numbers = [int(operator.index(value)) for value in values]
        is_unsigned = any(isinstance(value, Uint64) for value in values)
        limit = UINT64_MAX if is_unsigned else INT64_MAX
        # More factors than these are beyond 64 bits, and Python would multiply all of them.
        factors = {"factorial": 21, "perm": 21, "comb": 68}.get(name)
        if factors is not None and min(numbers) >= 0:
            most, *taken = numbers
            count = min(taken[0], most - taken[0]) if name == "comb" else (taken or numbers)[0]
            if factors < count <= most:
                raise OverflowError(f"math.{name}: the result has more than 64 bits")
        result = function(*numbers)
        if result > limit:
            raise OverflowError(f"math.{name}: the result {result} has more than 64 bits")
        return int.__new__(Uint64 if is_unsigned else Int64, result)

    exact.__name__ = name
    return exact


def _frexp(value: Number) -> tuple[float, Int64]:
    mantissa, exponent = math.frexp(value)
    return mantissa, Int64(exponent)


def _prod(values: Iterable[Any], *, start: Any = 1) -> Any:
    total = to_oracle(start)
    if isinstance(getattr(values, "zero", None), float):
        total = float(total)
    for value in values:
        total = total * value
    return total


class OracleMath:
    """The part of `math` that operators have; integers come back as `Int64`.

    An attribute that compiled operators lack raises `AttributeError` here as well.

    >>> OracleMath().floor(2.5)
    2
    """

    def __init__(self) -> None:
        names: dict[str, object] = {f.__name__: f for f in _PLAIN_MATH}
        names |= {name: _integral(name) for name in ("floor", "ceil", "trunc")}
        names |= {name: _exact_math(name) for name in _EXACT_MATH}
        names |= {"copysign": _copysign, "frexp": _frexp, "prod": _prod}
        self.__dict__.update(names | MATH_CONSTANTS)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"math.{name} is not supported in an operator; supported are: "
            + ", ".join(sorted(self.__dict__))
        )


def _numpy_int64(value: Number = 0) -> Int64:
    return to_int64(value) if isinstance(value, float) else signed(int(value))


def _numpy_uint64(value: Number = 0) -> Uint64:
    if isinstance(value, float):
        return int.__new__(Uint64, float_to_integer(value, 0, UINT64_MAX, "uint64"))
    return unsigned(int(value))


def _narrow_cast(name: str) -> Callable[[Number], Int64]:
    """``np.int8``, ``np.uint16`` and such in the oracle: casts whose numbers are int64."""
    bounds = np.iinfo(name)

    def narrow(value: Number) -> Int64:
        exact = int(value)
        if not bounds.min <= exact <= bounds.max:
            raise OverflowError(f"np.{name}({value!r}): it holds {bounds.min} to {bounds.max}")
        return Int64(exact)

    narrow.__name__ = name
    return narrow


def _numpy_float32(value: Number) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(float(value)))


def _of_floats(name: str) -> Callable[[Number], float]:
    function = getattr(np, name)

    def of_floats(value: Number) -> float:
        with np.errstate(invalid="ignore", over="ignore"):
            return float(function(float(value)))

    of_floats.__name__ = name
    return of_floats


def _numpy_of_numbers(name: str) -> Callable[[Number], Number]:
    """``np.floor``, ``np.sign`` and such in the oracle: an integer or a float, as given."""
    of_floats = _of_floats(name)

    def of_numbers(value: Number) -> Number:
        if isinstance(value, float):
            return of_floats(value)
        if name in ("absolute", "square"):
            return abs(value) if name == "absolute" else value * value
        if name == "sign":
            return type(value)((value > 0) - (value < 0))
        return value

    of_numbers.__name__ = name
    return of_numbers


def _met(*values: Number) -> list[Any]:
    """Numbers as the type that NumPy makes of them together."""
    if any(isinstance(value, float) for value in values):
        return [float(value) for value in values]
    if all(isinstance(value, bool) for value in values):
        return list(values)
    kind = Uint64 if any(isinstance(value, Uint64) for value in values) else Int64
    return [kind(value) for value in values]


def _minimum(first: Number, second: Number) -> Any:
    left, right = _met(first, second)
    # A NaN wins; of two that are equal the second is taken, which zeros show.
    return left if left != left or left < right else right


def _maximum(first: Number, second: Number) -> Any:
    left, right = _met(first, second)
    return left if left != left or left > right else right


def _clip(value: Number, low: Number, high: Number) -> Any:
    taken, least, most = _met(value, low, high)
    if taken != taken or least != least or most != most:
        return math.nan
    taken = least if taken < least else taken
    return most if taken > most else taken


def _float_test(name: str) -> Callable[[Number], bool]:
    function = getattr(math, name)
    return lambda value: bool(function(float(value)))


def _of_arrays_too(function: Any) -> Callable[..., Any]:
    """A function of numbers, which of arrays is that of each element."""

    def of_each(*values: Any) -> Any:
        for value in values:
            if hasattr(value, "each"):
                return value.each(function, *values)
        return function(*values)

    of_each.__name__ = getattr(function, "__name__", "function")
    return of_each


def _dot(first: Any, second: Any) -> Any:
    if len(first) != len(second):
        of, other = len(first), len(second)
        python = f"shapes ({of},) and ({other},) not aligned: {of} (dim 0) != {other} (dim 0)"
        raise in_python(ValueError(f"np.dot of {of} and {other} elements"), ValueError(python))
    products = [left * right for left, right in zip(first, second, strict=True)]
    total = products[0] if products else Int64(0) * first.zero * second.zero
    for product in products[1:]:
        total = total + product
    return total


class OracleNumpy:
    """The part of `numpy` that operators have: dtypes, constants, and what IEEE 754 fixes.

    `int64(x)` and `uint64(x)` wrap integers; a NaN is a `ValueError` and a float out of range an
    `OverflowError`. Anything else raises `AttributeError`.

    >>> OracleNumpy().uint64(Int64(-1))
    18446744073709551615
    """

    def __init__(self) -> None:
        casts: dict[str, object] = {
            "int64": _numpy_int64,
            "uint64": _numpy_uint64,
            "float64": float,
            "intp": _numpy_int64,
            "double": float,
            "bool_": bool,
            "bool": bool,
            "float32": _numpy_float32,
        }
        narrow = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
        casts |= {name: _narrow_cast(name) for name in narrow}
        casts |= {name: _of_floats(name) for name in ("sqrt", "rint", "fabs")}
        same = ("floor", "ceil", "trunc", "absolute", "sign", "square")
        casts |= {name: _numpy_of_numbers(name) for name in same}
        casts |= {name: _float_test(name) for name in ("isnan", "isinf", "isfinite")}
        casts |= {"minimum": _minimum, "maximum": _maximum, "clip": _clip, "dot": _dot}
        casts["abs"] = casts["absolute"]
        reductions = {name: reduction(name) for name in NAMES}
        reductions |= {"amin": reductions["min"], "amax": reductions["max"]}
        for name, function in casts.items():
            if not isinstance(function, type) and name not in ("dot", *narrow):
                casts[name] = _of_arrays_too(function)
        self.__dict__.update(casts | reductions | NUMPY_CONSTANTS)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"np.{name} is not supported in an operator; supported are: "
            + ", ".join(sorted(self.__dict__))
        )
