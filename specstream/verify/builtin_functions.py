"""Python's builtins, and what asks for null, on unknown values."""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import z3

from specstream.compiler.language import numbers
from specstream.compiler.language.numbers import INT64_MAX, Int64, Uint64
from specstream.compiler.oracle_objects import local, nulls
from specstream.verify.containers import Array, Dict, Record, Set
from specstream.verify.paths import path, refuse
from specstream.verify.sequences import Sequence
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

__all__ = [
    *("BOTH", "attribute_is_none", "both", "is_none", "is_unsigned", "known_only", "may_raise"),
    *("null_or_value", "to_bool", "to_float", "to_int", "whole"),
]

_CONTAINERS = (Array, Dict, Set, Sequence, Record)


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


def to_int(value: Any = 0) -> Any:
    if isinstance(value, Float):
        return whole(value.term, z3.RTZ())
    if isinstance(value, String):
        refuse("int of a string", "compute it of the event alone")
    exact = as_int(value)
    if not exact.signed and path().fork(z3.UGT(exact.term, bits(INT64_MAX))):
        raise OverflowError("cannot convert the uint64 to int64: it is out of range")
    return Int(exact.term)


def whole(term: Any, rounding: Any) -> Any:
    """A float as an int64, or what Python raises."""
    if path().fork(z3.fpIsNaN(term)):
        raise ValueError("cannot convert float NaN to integer")
    rounded = z3.fpRoundToIntegral(rounding, term)
    limit = z3.FPVal(2.0**63, FLOAT)
    within = z3.And(z3.fpLT(rounded, limit), z3.fpGEQ(rounded, z3.fpNeg(limit)))
    if not path().fork(within):
        raise OverflowError("cannot convert the float to int64: it is out of range")
    return Int(z3.fpToSBV(z3.RTZ(), rounded, z3.BitVecSort(64)))


def to_float(value: Any = 0.0) -> Any:
    found = as_float(value)
    if found is None:
        refuse("float of a string", "compute it of the event alone")
    return found


def to_bool(value: Any = False) -> Any:
    return Bool(truth(value))


def _absolute(value: Any) -> Any:
    return abs(as_int(value) if isinstance(value, Bool) else value)


def _round(number: Any, ndigits: Any = None) -> Any:
    if isinstance(number, Bool):
        number = as_int(number)
    if isinstance(number, Int) and (ndigits is None or (isinstance(ndigits, int) and ndigits >= 0)):
        return +number
    if isinstance(number, Float) and ndigits is None:
        return whole(number.term, NEAREST)
    if isinstance(number, Float):
        return Float(path().any_value(FLOAT, "round to digits"))
    return refuse("round of this number", "divide, round and multiply")


def _extremum(name: str, wins: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def extremum(first: Any, *others: Any, key: Any = None, default: Any = numbers.NOTHING) -> Any:
        values = list((first, *others) if others else first)
        if not values:
            return numbers.ORACLE_BUILTINS[name]((), default=default)
        best, *rest = values
        of_uint = [one for one in values if isinstance(one, Uint64) or is_unsigned(one)]
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


def is_unsigned(value: Any) -> bool:
    return isinstance(value, Int) and not value.signed


def _length(value: Any) -> Any:
    return value.length() if hasattr(type(value), "length") else numbers._length(value)


def _sum(values: Iterable[Any], start: Any = numbers.NOTHING) -> Any:
    total: Any = getattr(values, "zero", Int64(0)) if start is numbers.NOTHING else start
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
    may_raise(ValueError, OverflowError, ZeroDivisionError)
    return Float(path().any_value(FLOAT, "** of floats"))


_MOST_POWER = 64


def may_raise(*classes: type[Exception]) -> None:
    for one in classes:
        if path().fork(path().any_value(z3.BoolSort(), f"whether {one.__name__} is raised")):
            raise one("?")


def _divmod(dividend: Any, divisor: Any) -> Any:
    return dividend // divisor, dividend % divisor


def _negate(value: Any) -> Any:
    return -as_int(value) if isinstance(value, Bool) else -value


# ---- known or not ----


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


_B = numbers.ORACLE_BUILTINS
BOTH: dict[Any, Callable[..., Any]] = {
    _B["int"]: to_int,
    _B["float"]: to_float,
    _B["bool"]: to_bool,
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
