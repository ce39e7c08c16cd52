"""The numbers of the oracle: Python integers that behave as machine words.

An operator has four kinds of scalars: int64, uint64, float64 and bool. `float` and `bool` are
Python's own. Integers are the two classes here; their results wrap modulo 2**64, so that the oracle
and the compiled operator agree in every bit. Everything that a processor leaves undefined or that
differs from Python (division by zero, shifts by 64, int of a NaN) is Python's choice, or an error.

Three limits come from Python itself. `a ** b` and `-a` must be called as `power` and `negate`
(`ORACLE_OPERATORS`). `True + Int64(1)` is computed by `bool`, which never asks
`Int64`, and yields a plain `int`; compiled operators therefore reject a bool on the left of an
integer. And a plain `int` that is no result of these classes does not wrap: the compiler turns
every integer literal and every shim's result into an `Int64`.
"""

import ast
import builtins
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from specstream.columns.exception_texts import in_python

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1

_MODULUS = 2**64
_SIGN = 2**63

Number = bool | int | float


_Class = TypeVar("_Class", bound=type)


def shown_as(name: str) -> Callable[[_Class], _Class]:
    """A decorator: what Python's own errors call a class of the oracle."""

    def rename(cls: _Class) -> _Class:
        cls.__name__ = name
        return cls

    return rename


def signed(value: int) -> "Int64":
    """Wrap an exact integer to int64."""
    if INT64_MIN <= value <= INT64_MAX:
        return int.__new__(Int64, value)
    return int.__new__(Int64, ((value + _SIGN) & UINT64_MAX) - _SIGN)


def unsigned(value: int) -> "Uint64":
    """Wrap an exact integer to uint64."""
    return int.__new__(Uint64, value & UINT64_MAX)


def _shift_count(count: int) -> None:
    if not 0 <= count <= 63:
        error = ValueError(
            f"a shift count must be from 0 to 63, got {int(count)}; "
            "test the count before shifting if it can be larger"
        )
        raise error if count > 0 else in_python(error, ValueError("negative shift count"))


@shown_as("int")
class Int64(int):
    """A signed integer of 64 bits; every integer result wraps modulo 2**64.

    With another `Int64`, a bool or an int the result is an `Int64`, with a `Uint64` a `Uint64`,
    with a float a float. `/` is Python's correctly rounded division; comparisons are exact.

    >>> Int64(2**63 - 1) + Int64(1)
    -9223372036854775808
    >>> Int64(-7) // Int64(2), Int64(-7) % Int64(2)
    (-4, 1)
    """

    __slots__ = ()

    def __new__(cls, value: Any = 0) -> "Int64":
        return signed(int(value))

    def __neg__(self) -> int:
        # Exact, not wrapped: CPython negates the integer when it compares it with a float of the
        # same size, and a wrapped -INT64_MIN would make -2.0**63 == Int64(-2**63) false. Operators
        # call `negate`.
        value = int.__neg__(self)
        return int.__new__(Int64, value) if value <= INT64_MAX else value

    def __pos__(self) -> "Int64":
        return self

    def __invert__(self) -> "Int64":
        return int.__new__(Int64, int.__invert__(self))

    def __abs__(self) -> "Int64":
        return signed(int.__abs__(self))


@shown_as("int")
class Uint64(int):
    """An unsigned integer of 64 bits; every integer result wraps modulo 2**64.

    >>> Uint64(0) - Uint64(1)
    18446744073709551615
    >>> Uint64(2**63) + Int64(1)
    9223372036854775809
    """

    __slots__ = ()

    def __new__(cls, value: Any = 0) -> "Uint64":
        return unsigned(int(value))

    def __neg__(self) -> "Uint64":
        return unsigned(int.__neg__(self))

    def __pos__(self) -> "Uint64":
        return self

    def __invert__(self) -> "Uint64":
        return unsigned(int.__invert__(self))

    def __abs__(self) -> "Uint64":
        return self


for _class in (Int64, Uint64):
    for _name in ("bit_count", "bit_length"):
        _counted = getattr(int, _name)
        setattr(_class, _name, lambda self, counted=_counted: int.__new__(Int64, counted(self)))


def _signed_method(exact: Callable[[int, int], Any]) -> Callable[[Int64, Any], Any]:
    # The first branch is the whole cost of an ordinary addition in the oracle: no call but `exact`
    # and the constructor.
    new = int.__new__

    def method(self: Int64, other: Any) -> Any:
        result = exact(self, other)
        if other.__class__ is Int64:
            if INT64_MIN <= result <= INT64_MAX:
                return new(Int64, result)
            return signed(result)
        if result is NotImplemented:
            return result
        return unsigned(result) if isinstance(other, Uint64) else signed(result)

    return method


def _unsigned_method(exact: Callable[[int, int], Any]) -> Callable[[Uint64, Any], Any]:
    new = int.__new__

    def method(self: Uint64, other: Any) -> Any:
        result = exact(self, other)
        if result is NotImplemented:
            return result
        return new(Uint64, result & UINT64_MAX)

    return method


def _left_shift(value: int, count: int) -> Any:
    if not isinstance(count, int):
        return NotImplemented
    _shift_count(count)
    return int.__lshift__(value, count)


def _right_shift(value: int, count: int) -> Any:
    if not isinstance(count, int):
        return NotImplemented
    _shift_count(count)
    return int.__rshift__(value, count)


def _reflected_left_shift(count: int, value: int) -> Any:
    return _left_shift(value, count) if isinstance(value, int) else NotImplemented


def _reflected_right_shift(count: int, value: int) -> Any:
    return _right_shift(value, count) if isinstance(value, int) else NotImplemented


def _integer_power(base: int, exponent: int) -> "Int64 | Uint64":
    if exponent < 0:
        raise ValueError(
            f"an integer to the negative power {int(exponent)} is not an integer; "
            "write float(base) ** exponent for a float result"
        )
    wrap = unsigned if isinstance(base, Uint64) or isinstance(exponent, Uint64) else signed
    return wrap(pow(int(base), int(exponent), _MODULUS))


def power(base: Number, exponent: Number) -> Number:
    """`base ** exponent` as compiled operators compute it.

    Two integers give an exact integer, wrapped modulo 2**64. With a float the result is that of
    Python's float power.

    Raises
    ------
    ValueError
        A negative exponent of an integer, or a complex result, such as `(-8.0) ** 0.5`.
    ZeroDivisionError
        `0.0` to a negative power.
    OverflowError
        A float result beyond the largest float.

    >>> power(Int64(3), Int64(40))
    -6289078614652622815
    """
    if isinstance(base, int) and isinstance(exponent, int):
        return _integer_power(base, exponent)
    if base is None or exponent is None:
        return operator.pow(base, exponent)  # which raises
    if hasattr(base, "each") or hasattr(exponent, "each"):  # an array
        return base**exponent
    x, y = float(base), float(exponent)
    if x < 0.0 and math.isfinite(x) and math.isfinite(y) and y != math.floor(y):
        raise ValueError(
            f"{x!r} ** {y!r} is a complex number; operators have none: "
            "test the sign of the base first"
        )
    result: float = x**y
    return result


def negate(value: Number) -> Number:
    """`-value` as compiled operators compute it; see `Int64.__neg__` for why it is a function.

    >>> negate(Int64(-2**63))
    -9223372036854775808
    """
    return signed(int.__neg__(value)) if value.__class__ is Int64 else -value


def _integer_power_method(self: int, other: Any, modulo: None = None) -> Any:
    if modulo is not None or not isinstance(other, int):
        return NotImplemented
    return _integer_power(self, other)


def _reflected_integer_power_method(self: int, other: Any, modulo: None = None) -> Any:
    if modulo is not None or not isinstance(other, int):
        return NotImplemented
    return _integer_power(other, self)


# One loop in place of 40 methods that differ in a name. `/` and the comparisons are inherited:
# their results are no integers, and int's are exact.
_EXACT: dict[str, Callable[[int, int], Any]] = {
    f"__{reflected}{name}__": getattr(int, f"__{reflected}{name}__")
    for name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor")
    for reflected in ("", "r")
} | {
    "__lshift__": _left_shift,
    "__rshift__": _right_shift,
    "__rlshift__": _reflected_left_shift,
    "__rrshift__": _reflected_right_shift,
}
for _name, _exact in _EXACT.items():
    setattr(Int64, _name, _signed_method(_exact))
    setattr(Uint64, _name, _unsigned_method(_exact))
for _class in (Int64, Uint64):
    setattr(_class, "__pow__", _integer_power_method)  # noqa: B010 - a type's slot, set as above
    setattr(_class, "__rpow__", _reflected_integer_power_method)  # noqa: B010


def integer(value: int) -> Int64 | Uint64:
    """The oracle's constant for an integer literal: `Uint64` from 2**63 on, else `Int64`.

    Raises
    ------
    OverflowError
        The literal fits in neither.
    """
    if INT64_MIN <= value <= INT64_MAX:
        return int.__new__(Int64, value)
    if 0 <= value <= UINT64_MAX:
        return int.__new__(Uint64, value)
    raise OverflowError(
        f"the integer {value} has more than 64 bits; write a float, such as {value}.0, "
        "or split it into two words"
    )


def to_oracle(value: Any) -> Any:
    """The oracle's number for a Python or NumPy scalar; anything else is returned unchanged.

    They widen as elements of the state do: `np.uint64` becomes `Uint64`, as does a Python integer
    from 2**63 on, all other integers become `Int64`, floats `float`.

    >>> type(to_oracle(np.uint8(3))).__qualname__
    'Int64'
    """
    kind = value.__class__
    if kind is float or kind is bool or kind is Int64 or kind is Uint64:
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, np.unsignedinteger) and value.dtype.itemsize == 8:
        return int.__new__(Uint64, int(value))
    if isinstance(value, np.integer):
        return int.__new__(Int64, int(value))
    if isinstance(value, float | np.floating):
        return float(value)
    return value


def float_to_integer(value: float, low: int, high: int, name: str) -> int:
    # int() raises ValueError for a NaN and OverflowError for an infinity.
    exact = int(value)
    if not low <= exact <= high:
        raise OverflowError(f"cannot convert the float {value!r} to {name}: it is out of range")
    return exact


def to_int64(value: Number = 0) -> Int64:
    """`int(x)` of the oracle's numbers: the value itself, or an error; never a wrapped one."""
    if isinstance(value, float):
        return int.__new__(Int64, float_to_integer(value, INT64_MIN, INT64_MAX, "int64"))
    exact = int(value)
    if exact > INT64_MAX:
        raise OverflowError(
            f"cannot convert the uint64 {exact} to int64: it is out of range; "
            "write np.int64(x) to wrap"
        )
    return signed(exact)


def _absolute(value: Number) -> Number:
    return Int64(value) if value.__class__ is bool else abs(value)


def _round(number: Number, ndigits: int | None = None) -> Number:
    if number is None:
        return round(number, ndigits)  # which raises
    if ndigits is not None and isinstance(number, float):
        return round(number, int(ndigits))
    if isinstance(number, Int64 | Uint64) and (ndigits is None or ndigits >= 0):
        return +number
    exact = round(number) if ndigits is None else round(int(number), max(int(ndigits), -64))
    if isinstance(number, Uint64) and exact <= UINT64_MAX:
        return int.__new__(Uint64, exact)
    return whole(int(exact), "round")


def _power(base: Number, exp: Number, mod: int | None = None) -> Number:
    """`pow(x, y)` as the operator has it; with a modulus exact, as it never leaves 64 bits."""
    if mod is None:
        return power(base, exp)
    if base is None or exp is None:
        return pow(base, exp, mod)  # which raises
    exact = pow(int(base), int(exp), int(mod))
    is_unsigned = any(isinstance(one, Uint64) for one in (base, exp, mod))
    return int.__new__(Uint64 if is_unsigned else Int64, exact)


def _divmod(dividend: Number, divisor: Number) -> tuple[Number, Number]:
    if dividend is None or divisor is None:
        divmod(dividend, divisor)  # which raises
    try:
        return dividend // divisor, dividend % divisor
    except ZeroDivisionError:
        is_float = isinstance(dividend, float) or isinstance(divisor, float)
        divmod(1.0 if is_float else 1, 0)  # which says what Python says
        raise


def whole(exact: int, name: str) -> Int64:
    if not INT64_MIN <= exact <= INT64_MAX:
        raise OverflowError(f"{name}: the result {float(exact)!r} is out of the range of int64")
    return int.__new__(Int64, exact)


NOTHING: Any = object()


def _extremum(name: str, wins: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def extremum(
        first: Any, *others: Any, key: Callable[[Any], Any] | None = None, default: Any = NOTHING
    ) -> Any:
        values: Iterator[Any] = iter((first, *others) if others else first)
        best = next(values, NOTHING)
        if best is NOTHING:
            if default is not NOTHING:
                return default
            return getattr(builtins, name)(())  # which raises
        unsigned = best.__class__ is Uint64
        best_key = best if key is None else key(best)
        for value in values:
            unsigned = unsigned or value.__class__ is Uint64
            value_key = value if key is None else key(value)
            # Not "unless it loses": with a NaN nothing wins, and the first stays.
            if wins(value_key, best_key):
                best, best_key = value, value_key
        # max(0, u) of a uint64 u is a uint64, also when the literal wins.
        if unsigned:
            return int.__new__(Uint64, best)
        return getattr(best, "plain", best)  # a null is only a zero to whoever computes with it

    extremum.__name__ = name
    return extremum


def _length(value: Any) -> Int64:
    return int.__new__(Int64, len(value))


def _sum(values: Iterable[Any], start: Any = NOTHING) -> Any:
    # Python's own sum compensates rounding errors from 3.12 on; native code does not. An array
    # begins with a zero of its own kind.
    total: Any = getattr(values, "zero", Int64(0)) if start is NOTHING else start
    for value in values:
        total = total + value
    return total


def _next(values: Iterator[Any], default: Any = NOTHING) -> Any:
    found = next(values) if default is NOTHING else next(values, default)
    return getattr(found, "plain", found)  # a null is only a zero to whoever computes with it


@shown_as("range")
class _Range:
    """`range` whose items are `Int64`, or `Uint64` when an argument is one."""

    __slots__ = ("_item", "_range")

    def __init__(self, *arguments: SupportsIndex) -> None:
        self._range = builtins.range(*arguments)
        unsigned = any(isinstance(argument, Uint64) for argument in arguments)
        self._item: Callable[[int], int] = partial(int.__new__, Uint64 if unsigned else Int64)

    def __iter__(self) -> Iterator[int]:
        return map(self._item, self._range)

    def __len__(self) -> int:
        return len(self._range)

    def __reversed__(self) -> Iterator[int]:
        return map(self._item, reversed(self._range))


def _enumerate(iterable: Iterable[Any], start: int = 0) -> Iterator[tuple[Int64, Any]]:
    count = signed(operator.index(start))
    one = Int64(1)
    for value in iterable:
        yield count, value
        count = count + one  # type: ignore[assignment]


ORACLE_OPERATORS: dict[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Pow: power,
    ast.USub: negate,
}
"""The operators that the oracle must call as functions; the others are the classes' own."""

ORACLE_BUILTINS: dict[str, Callable[..., Any]] = {
    "int": to_int64,
    "float": float,
    "bool": bool,
    "any": any,
    "all": all,
    "abs": _absolute,
    "divmod": _divmod,
    "pow": _power,
    "min": _extremum("min", lambda value, best: bool(value < best)),
    "max": _extremum("max", lambda value, best: bool(value > best)),
    "round": _round,
    "sum": _sum,
    "len": _length,
    "range": _Range,
    "enumerate": _enumerate,
    "zip": zip,
    "next": _next,
}
"""What the oracle finds under the name of a builtin."""

MATH_CONSTANTS: dict[str, float] = {
    name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")
}
NUMPY_CONSTANTS: dict[str, float] = {
    name: float(getattr(np, name)) for name in ("pi", "e", "inf", "nan", "euler_gamma")
}
