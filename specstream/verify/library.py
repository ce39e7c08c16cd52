"""What the names of the oracle's code stand for when its values are unknown.

Every function of the oracle's library has a meaning here, or is its own with values that are known
and a refusal with others.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import z3

from specstream.compiler.language import numbers
from specstream.compiler.language.bool_operators import OF_BOOLS
from specstream.compiler.language.numbers import INT64_MAX, Int64, Uint64
from specstream.compiler.oracle.rewrite_oracle import ORACLE_MATH, ORACLE_NUMPY
from specstream.compiler.oracle_objects import local, nulls, view
from specstream.compiler.oracle_objects.forms import Formed
from specstream.compiler.oracle_objects.modules import OracleMath, OracleNumpy
from specstream.compiler.oracle_objects.reductions import floats
from specstream.declarations.containers import Shape
from specstream.structures.commutative import add, maximum, minimum
from specstream.structures.counters import increment
from specstream.verify.containers import Array, Dict, Record, Sequence
from specstream.verify.elements import load, store
from specstream.verify.paths import path, refuse
from specstream.verify.values import (
    FLOAT,
    NEAREST,
    Bool,
    Float,
    Int,
    String,
    Symbol,
    as_float,
    as_int,
    bits,
    choose,
    is_unknown,
    less,
    truth,
)

__all__ = ["BOTH", "SAME", "both", "is_none", "meaning"]

_CONTAINERS = (Array, Dict, Sequence, Record)


# ---- nulls ----


def null_or_value(owner: Any, name: str) -> Any:
    value = getattr(owner, name)
    null = owner.null_of(name) if hasattr(type(owner), "null_of") else None
    if null is None or not isinstance(value, Symbol):
        return value
    if isinstance(value, Int):
        return Int(value.term, value.signed, null)
    return type(value)(value.term, null)


def is_none(value: Any) -> Any:
    if isinstance(value, Symbol):
        return False if value.null is None else Bool(value.null)
    return nulls.is_none(value)


def attribute_is_none(owner: Any, name: str) -> Any:
    return is_none(null_or_value(owner, name))


# ---- builtins ----


def _int(value: Any = 0) -> Any:
    if isinstance(value, Float):
        return _whole(value.term, z3.RTZ())
    if isinstance(value, String):
        refuse("int of a string", "compute it of the event alone")
    whole = as_int(value)
    if not whole.signed and path().fork(z3.UGT(whole.term, bits(INT64_MAX))):
        raise OverflowError("cannot convert the uint64 to int64: it is out of range")
    return Int(whole.term)


def _whole(term: Any, rounding: Any) -> Any:
    """A float as an int64, or what Python raises."""
    if path().fork(z3.fpIsNaN(term)):
        raise ValueError("cannot convert float NaN to integer")
    rounded = z3.fpRoundToIntegral(rounding, term)
    limit = z3.FPVal(2.0**63, FLOAT)
    within = z3.And(z3.fpLT(rounded, limit), z3.fpGEQ(rounded, z3.fpNeg(limit)))
    if not path().fork(within):
        raise OverflowError("cannot convert the float to int64: it is out of range")
    return Int(z3.fpToSBV(z3.RTZ(), rounded, z3.BitVecSort(64)))


def _float(value: Any = 0.0) -> Any:
    found = as_float(value)
    if found is None:
        refuse("float of a string", "compute it of the event alone")
    return found


def _bool(value: Any = False) -> Any:
    return Bool(truth(value))


def _absolute(value: Any) -> Any:
    return abs(as_int(value) if isinstance(value, Bool) else value)


def _round(number: Any, ndigits: Any = None) -> Any:
    if isinstance(number, Bool):
        number = as_int(number)
    if isinstance(number, Int) and (ndigits is None or (isinstance(ndigits, int) and ndigits >= 0)):
        return +number
    if isinstance(number, Float) and ndigits is None:
        return _whole(number.term, NEAREST)
    if isinstance(number, Float):
        return Float(path().any_value(FLOAT, "round to digits"))
    return refuse("round of this number", "divide, round and multiply")


def _extremum(name: str, wins: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def extremum(first: Any, *others: Any, key: Any = None, default: Any = numbers._NOTHING) -> Any:
        values = list((first, *others) if others else first)
        if not values:
            return numbers.ORACLE_BUILTINS[name]((), default=default)
        best, *rest = values
        of_uint = [one for one in values if isinstance(one, Uint64) or _is_unsigned(one)]
        if of_uint and any(isinstance(one, Float | float) for one in values):
            refuse(f"{name} of a uint64 and a float", "write float(x)")
        for value in rest:
            one, other = (value, best) if key is None else (key(value), key(best))
            if not isinstance(one, Symbol) and not isinstance(other, Symbol):
                best = value if numbers.ORACLE_BUILTINS[name](other, one) is not other else best
                continue
            if isinstance(one, String) or isinstance(other, String):
                refuse(f"{name} of strings", "compare values of the event alone")
            better = wins(one, other)
            chosen = choose(better, value, best)
            if chosen is None:
                chosen = value if path().fork(better) else best
            best = chosen
        if of_uint:
            return Int(as_int(best).term, False)
        return getattr(best, "plain", best)

    return extremum


def _is_unsigned(value: Any) -> bool:
    return isinstance(value, Int) and not value.signed


def _length(value: Any) -> Any:
    return value.length() if hasattr(type(value), "length") else numbers._length(value)


def _sum(values: Iterable[Any], start: Any = numbers._NOTHING) -> Any:
    total: Any = getattr(values, "zero", Int64(0)) if start is numbers._NOTHING else start
    for value in values:
        total = total + value
    return total


class _Range:
    """``range`` of which a bound is unknown; its step is known."""

    def __init__(self, *arguments: Any) -> None:
        first, *rest = arguments
        self.start = Int64(0) if not rest else first
        self.stop = first if not rest else rest[0]
        self.step = rest[1] if len(rest) > 1 else Int64(1)
        if isinstance(self.step, Symbol) or self.step == 0:
            refuse("range with an unknown step", "write a while loop")

    def __iter__(self) -> Iterator[Any]:
        at, done = self.start, 0
        while at < self.stop if self.step > 0 else at > self.stop:
            path().turn(done)
            yield at
            at = Int(as_int(at).term + int(self.step))
            done += 1


def _sorted(values: Iterable[Any], *, key: Any = None, reverse: Any = False) -> Any:
    made = local.List(values)
    keys = list(made) if key is None else [key(one) for one in made]
    for one in keys:
        if isinstance(one, Float) and path().fork(z3.fpIsNaN(one.term)):
            raise ValueError("cannot sort NaN, which has no order")
        if isinstance(one, tuple) and is_unknown(one):
            refuse("sorting tuples of unknown values", "sort by one number")
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(reverse))
    return local.List(made[at] for at in order)


def _power(base: Any, exponent: Any, mod: Any = None) -> Any:
    if mod is not None or isinstance(exponent, Symbol):
        refuse("a power with an unknown exponent", "write a product")
    whole = isinstance(exponent, int) and isinstance(base, Int | Bool)
    if whole and 0 <= exponent <= _MOST_POWER:
        total: Any = Int(bits(1), as_int(base).signed and not isinstance(exponent, Uint64))
        for _ in range(int(exponent)):
            total = total * base
        return total
    if whole and exponent < 0:
        raise ValueError("an integer to a negative power is not an integer")
    if whole:
        refuse("a high power", "write a loop")
    _may_raise(ValueError, OverflowError, ZeroDivisionError)
    return Float(path().any_value(FLOAT, "** of floats"))


_MOST_POWER = 64


def _may_raise(*classes: type[Exception]) -> None:
    for one in classes:
        if path().fork(path().any_value(z3.BoolSort(), f"whether {one.__name__} is raised")):
            raise one("?")


def _divmod(dividend: Any, divisor: Any) -> Any:
    return dividend // divisor, dividend % divisor


def _negate(value: Any) -> Any:
    return -as_int(value) if isinstance(value, Bool) else -value


# ---- math and NumPy ----


def _sqrt(value: Any) -> Any:
    of = _float(value).term
    if path().fork(z3.fpLT(of, z3.FPVal(0.0, FLOAT))):
        raise ValueError("math domain error")
    return Float(z3.fpSqrt(NEAREST, of))


def _integral(rounding: Any) -> Callable[[Any], Any]:
    def integral(value: Any) -> Any:
        return +value if isinstance(value, Int) else _whole(_float(value).term, rounding)

    return integral


def _float_test(test: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: Bool(test(_float(value).term))


def _is_finite(term: Any) -> Any:
    return z3.Not(z3.Or(z3.fpIsNaN(term), z3.fpIsInf(term)))


def _copysign(value: Any, sign: Any) -> Any:
    of, by = _float(value).term, _float(sign).term
    negative = z3.And(z3.Not(z3.fpIsNaN(by)), z3.fpIsNegative(by))
    return Float(z3.If(negative, z3.fpNeg(z3.fpAbs(of)), z3.fpAbs(of)))


_EXACT_OF_MATH: dict[str, Callable[..., Any]] = {
    "floor": _integral(z3.RTN()),
    "ceil": _integral(z3.RTP()),
    "trunc": _integral(z3.RTZ()),
    "sqrt": _sqrt,
    "fabs": lambda value: abs(_float(value)),
    "isnan": _float_test(z3.fpIsNaN),
    "isinf": _float_test(z3.fpIsInf),
    "isfinite": _float_test(_is_finite),
    "copysign": _copysign,
}
_BOOLS_OF_MATH = ("isclose",)
_TUPLES_OF_MATH = ("frexp", "modf")
_INTS_OF_MATH = ("gcd", "lcm", "comb", "perm", "factorial", "isqrt", "prod", "dist", "fsum")


def _of_math(name: str, original: Any) -> Any:
    if not callable(original):
        return original
    if name in _EXACT_OF_MATH:
        return both(original, _EXACT_OF_MATH[name])
    if name in (*_BOOLS_OF_MATH, *_TUPLES_OF_MATH, *_INTS_OF_MATH):
        return known_only(original, f"math.{name}")

    def any_float(*values: Any) -> Any:
        _may_raise(ValueError, OverflowError)
        return Float(path().any_value(FLOAT, f"math.{name}"))

    return both(original, any_float)


def _np_int64(value: Any = 0) -> Any:
    return _int(value) if isinstance(value, Float) else Int(as_int(value).term)


def _np_uint64(value: Any = 0) -> Any:
    if isinstance(value, Float):
        refuse("np.uint64 of a float", "write np.uint64(int(x))")
    return Int(as_int(value).term, False)


def _narrow(size: int, is_signed: bool) -> Callable[[Any], Any]:
    low, high = (-(2 ** (size - 1)), 2 ** (size - 1) - 1) if is_signed else (0, 2**size - 1)

    def narrow(value: Any) -> Any:
        whole = _int(value)
        if not path().fork(z3.And(whole.term >= low, whole.term <= high)):
            raise OverflowError(f"it holds {low} to {high}")
        return whole

    return narrow


def _float32(value: Any) -> Any:
    rounded = z3.fpFPToFP(NEAREST, _float(value).term, z3.Float32())
    return Float(z3.fpFPToFP(NEAREST, rounded, FLOAT))


def _np_sqrt(value: Any) -> Any:
    return Float(z3.fpSqrt(NEAREST, _float(value).term))


_EXACT_OF_NUMPY: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("int64", "intp"), _np_int64),
    "uint64": _np_uint64,
    "float32": _float32,
    **dict.fromkeys(("float64", "double"), _float),
    **dict.fromkeys(("bool_", "bool"), _bool),
    **{f"int{size}": _narrow(size, True) for size in (8, 16, 32)},
    **{f"uint{size}": _narrow(size, False) for size in (8, 16, 32)},
    "sqrt": _np_sqrt,
    "fabs": lambda value: abs(_float(value)),
    "abs": lambda value: abs(value),
    "absolute": lambda value: abs(value),
    "isnan": _float_test(z3.fpIsNaN),
    "isinf": _float_test(z3.fpIsInf),
    "isfinite": _float_test(_is_finite),
}


def _of_numpy(name: str, original: Any) -> Any:
    if not callable(original):
        return original
    if name in _EXACT_OF_NUMPY:
        return both(original, _EXACT_OF_NUMPY[name])
    return known_only(original, f"np.{name}")


# ---- the table ----


def both(original: Callable[..., Any], meaning: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is its own with known values, and has a meaning with others."""

    def either(*values: Any, **named: Any) -> Any:
        unknown = any(_is_ours(one) for one in (*values, *named.values()))
        return (meaning if unknown else original)(*values, **named)

    return either


def _is_ours(value: Any) -> bool:
    return is_unknown(value) or isinstance(value, (*_CONTAINERS, Iterator))


def known_only(original: Any, name: str) -> Callable[..., Any]:
    """A function that has no meaning with unknown values."""

    def known(*values: Any, **named: Any) -> Any:
        if any(_is_ours(one) for one in (*values, *named.values())):
            refuse(f"{name} of unknown values", "write it with operators and comparisons")
        return original(*values, **named)

    return known


def _of_bools(original: Any) -> Callable[[Any, Any], Any]:
    sign = next(of for of, one in OF_BOOLS.items() if one is original)
    name = {
        "Add": "add",
        "Sub": "sub",
        "Mult": "mul",
        "FloorDiv": "floordiv",
        "Mod": "mod",
        "LShift": "lshift",
        "RShift": "rshift",
        "BitAnd": "and_",
        "BitOr": "or_",
        "BitXor": "xor",
    }[sign.__name__]
    return both(original, getattr(operator, name))


def _update_of(name: str) -> Callable[[Any, Any, Any], None]:
    def update(container: Any, key: Any, value: Any) -> None:
        own = getattr(container, key) if isinstance(key, str) else container[key]
        given = _float(value) if isinstance(own, Float) else value
        if name == "add":
            new = own + given
        else:
            better = less(given, own) if name == "minimum" else less(own, given)
            new = choose(better, given, own)
            if new is None:
                new = given if path().fork(better) else own
        if isinstance(key, str):
            setattr(container, key, new)
        else:
            container[key] = new

    return update


def _increment(container: Any, key: Any) -> Any:
    _update_of("add")(container, key, Int64(1))
    return getattr(container, key) if isinstance(key, str) else container[key]


_B = numbers.ORACLE_BUILTINS
BOTH: dict[Any, Callable[..., Any]] = {
    _B["int"]: _int,
    _B["float"]: _float,
    _B["bool"]: _bool,
    _B["abs"]: _absolute,
    _B["divmod"]: _divmod,
    _B["pow"]: _power,
    _B["min"]: _extremum("min", lambda value, best: less(value, best)),
    _B["max"]: _extremum("max", lambda value, best: less(best, value)),
    _B["round"]: _round,
    _B["sum"]: _sum,
    _B["len"]: _length,
    _B["range"]: _Range,
    _B["sorted"]: _sorted,
    numbers.power: _power,
    numbers.negate: _negate,
}
"""What is another function with unknown values."""
SAME: tuple[Any, ...] = (
    *(any, all, zip, _B["enumerate"], _B["next"], view.by_value, Formed, floats, slice),
    *(local.List, local.Set, local.Dict),
    *(local.BUILTINS["reversed"], tuple, map, filter),
)
_OTHERS: dict[Any, Any] = {
    nulls.null_or_value: null_or_value,
    nulls.is_none: is_none,
    nulls.attribute_is_none: attribute_is_none,
    add: _update_of("add"),
    maximum: _update_of("maximum"),
    minimum: _update_of("minimum"),
    increment: _increment,
}
_RAISING = "specstream.compiler.oracle.raise_arguments"


def _raise_argument(name: str) -> Any:
    """What an exception is made of decides nothing: its class and its line are what counts."""
    if name in ("called", "asked", "item", "is_in"):
        return lambda *values, **named: "?"
    return lambda value, *more: value


def meaning(value: Any) -> Any:
    """What stands in place of a value that the oracle's code reads by a name."""
    if isinstance(value, OracleMath):
        names = {name: _of_math(name, one) for name, one in vars(value).items()}
        return types.SimpleNamespace(**names)
    if isinstance(value, OracleNumpy):
        names = {name: _of_numpy(name, one) for name, one in vars(value).items()}
        return types.SimpleNamespace(**names)
    if not callable(value) or (isinstance(value, type) and issubclass(value, BaseException)):
        return value
    for table in (BOTH, _OTHERS):
        found = next((made for one, made in table.items() if one is value), None)
        if found is not None:
            return both(value, found) if table is BOTH else found
    if any(one is value for one in SAME):
        return value
    if any(one is value for one in OF_BOOLS.values()):
        return _of_bools(value)
    name = getattr(value, "__name__", type(value).__name__)
    if getattr(value, "__module__", "") == _RAISING:
        return _raise_argument(name)
    found = _of_modules.get(id(value))
    if found is not None:
        return found
    shape = getattr(value, "shape", None)
    if isinstance(shape, Shape):
        return _maker(shape, value.defaults)
    return known_only(value, name)


def _maker(shape: Any, defaults: dict[str, Any]) -> Callable[..., Record]:
    def made(*values: Any, **named: Any) -> Record:
        given = defaults | dict(zip(shape.names, values, strict=False)) | named
        return Record(
            shape,
            [
                load(part, store(part, given[name], f"field {name!r}"))
                for part, name in zip(shape.parts, shape.names, strict=True)
            ],
        )

    return made


def _functions_of_modules() -> dict[int, Any]:
    """Functions of ``math`` and NumPy that a name of its own stands for."""
    found: dict[int, Any] = {}
    for module, of in ((ORACLE_MATH, _of_math), (ORACLE_NUMPY, _of_numpy)):
        for name, one in vars(module).items():
            if callable(one) and not any(one is other for other in BOTH):
                found[id(one)] = of(name, one)
    return found


_of_modules = _functions_of_modules()
