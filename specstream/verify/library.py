"""What the names of the oracle's code stand for when its values are unknown.

Every function of the oracle's library has a meaning here, or is its own with values that are known
and a refusal with others.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import z3

from specstream.compiler.language import numbers
from specstream.compiler.language.bool_operators import OF_BOOLS
from specstream.compiler.language.numbers import Int64
from specstream.compiler.oracle.rewrite_oracle import ORACLE_MATH, ORACLE_NUMPY
from specstream.compiler.oracle_objects import local, nulls, view
from specstream.compiler.oracle_objects.forms import Formed
from specstream.compiler.oracle_objects.modules import OracleMath, OracleNumpy
from specstream.compiler.oracle_objects.reductions import floats
from specstream.declarations.containers import Shape
from specstream.structures.commutative import add, maximum, minimum
from specstream.structures.counters import increment
from specstream.verify.builtin_functions import (
    BOTH,
    attribute_is_none,
    both,
    is_none,
    known_only,
    may_raise,
    null_or_value,
    to_bool,
    to_float,
    to_int,
    whole,
)
from specstream.verify.containers import Record
from specstream.verify.elements import load, store
from specstream.verify.local import Dict, Set, of_frozen
from specstream.verify.paths import path, refuse
from specstream.verify.values import (
    FLOAT,
    NEAREST,
    Bool,
    Float,
    Int,
    as_int,
    choose,
    less,
)

__all__ = ["OTHERS", "SAME", "meaning"]


# ---- math and NumPy ----


def _sqrt(value: Any) -> Any:
    of = to_float(value).term
    if path().fork(z3.fpLT(of, z3.FPVal(0.0, FLOAT))):
        raise ValueError("math domain error")
    return Float(z3.fpSqrt(NEAREST, of))


def _integral(rounding: Any) -> Callable[[Any], Any]:
    def integral(value: Any) -> Any:
        return +value if isinstance(value, Int) else whole(to_float(value).term, rounding)

    return integral


def _float_test(test: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: Bool(test(to_float(value).term))


def _is_finite(term: Any) -> Any:
    return z3.Not(z3.Or(z3.fpIsNaN(term), z3.fpIsInf(term)))


def _copysign(value: Any, sign: Any) -> Any:
    of, by = to_float(value).term, to_float(sign).term
    negative = z3.And(z3.Not(z3.fpIsNaN(by)), z3.fpIsNegative(by))
    return Float(z3.If(negative, z3.fpNeg(z3.fpAbs(of)), z3.fpAbs(of)))


_EXACT_OF_MATH: dict[str, Callable[..., Any]] = {
    "floor": _integral(z3.RTN()),
    "ceil": _integral(z3.RTP()),
    "trunc": _integral(z3.RTZ()),
    "sqrt": _sqrt,
    "fabs": lambda value: abs(to_float(value)),
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
        may_raise(ValueError, OverflowError)
        return Float(path().any_value(FLOAT, f"math.{name}"))

    return both(original, any_float)


def _np_int64(value: Any = 0) -> Any:
    return to_int(value) if isinstance(value, Float) else Int(as_int(value).term)


def _np_uint64(value: Any = 0) -> Any:
    if isinstance(value, Float):
        refuse("np.uint64 of a float", "write np.uint64(int(x))")
    return Int(as_int(value).term, False)


def _narrow(size: int, is_signed: bool) -> Callable[[Any], Any]:
    low, high = (-(2 ** (size - 1)), 2 ** (size - 1) - 1) if is_signed else (0, 2**size - 1)

    def narrow(value: Any) -> Any:
        whole = to_int(value)
        if not path().fork(z3.And(whole.term >= low, whole.term <= high)):
            raise OverflowError(f"it holds {low} to {high}")
        return whole

    return narrow


def _float32(value: Any) -> Any:
    rounded = z3.fpFPToFP(NEAREST, to_float(value).term, z3.Float32())
    return Float(z3.fpFPToFP(NEAREST, rounded, FLOAT))


def _np_sqrt(value: Any) -> Any:
    return Float(z3.fpSqrt(NEAREST, to_float(value).term))


_EXACT_OF_NUMPY: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("int64", "intp"), _np_int64),
    "uint64": _np_uint64,
    "float32": _float32,
    **dict.fromkeys(("float64", "double"), to_float),
    **dict.fromkeys(("bool_", "bool"), to_bool),
    **{f"int{size}": _narrow(size, True) for size in (8, 16, 32)},
    **{f"uint{size}": _narrow(size, False) for size in (8, 16, 32)},
    "sqrt": _np_sqrt,
    "fabs": lambda value: abs(to_float(value)),
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
        given = to_float(value) if isinstance(own, Float) else value
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


SAME: tuple[Any, ...] = (
    *(any, all, zip, numbers.ORACLE_BUILTINS["enumerate"], numbers.ORACLE_BUILTINS["next"]),
    *(view.by_value, Formed, floats, slice),
    local.List,
    *(local.BUILTINS["reversed"], tuple, map, filter),
)


def _is_truth(value: Any, truth: bool) -> Any:
    if isinstance(value, Bool):
        return value if truth else Bool(z3.Not(value.term))
    return value is truth


OTHERS: dict[Any, Any] = {
    local.Dict: Dict,
    local.Set: Set,
    view.is_truth: _is_truth,
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
    value = of_frozen(value)
    # A named tuple holds whatever it is given.
    if not callable(value) or (
        isinstance(value, type) and issubclass(value, BaseException | tuple)
    ):
        return value
    for table in (BOTH, OTHERS):
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
