"""Unknown numbers and strings: what the oracle's integers, floats, bools and texts are to a solver.

Integers are vectors of 64 bits, floats IEEE's, a string its code. With a number that is known they
compute as the oracle's numbers do (:mod:`specstream.compiler.language.numbers`); what asks for
their truth forks (:mod:`specstream.verify.paths`).
"""

# z3 carries no types, and numbers have forty methods that differ in a name.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import z3

from specstream.columns.strings import string_code
from specstream.compiler.language.numbers import INT64_MAX, INT64_MIN, UINT64_MAX, Uint64
from specstream.compiler.language.text import Text
from specstream.verify.paths import Wrap, path, place, refuse

__all__ = [
    *("Bool", "FLOAT", "Float", "INT", "Int", "NEAREST", "String", "Symbol", "bits", "choose"),
    *("as_float", "as_int", "is_unknown", "less", "same", "truth", "wide"),
]

INT = z3.BitVecSort(64)
FLOAT = z3.Float64()
NEAREST = z3.RNE()
_DOWN = z3.RTZ()
_EMPTY = string_code("")


class Symbol:
    """Something unknown.

    Attributes:
        term: the solver's.
        null: of a nullable column that is kept in a name, when it is null; else None.
    """

    __slots__ = ("null", "term")
    is_unknown = True

    def __init__(self, term: Any, null: Any = None) -> None:
        self.term, self.null = term, null

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.term})"

    def __format__(self, spec: str) -> str:
        return "?"  # in the text of an exception

    def __str__(self) -> str:
        return "?"

    def __hash__(self) -> int:
        refuse(
            "a set or dict of the event's own with an unknown key",
            "keep it in a dict of the state, or compare one by one",
        )


class Bool(Symbol):
    """An unknown truth."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return path().fork(self.term)

    def __invert__(self) -> Any:
        return ~as_int(self)

    def __int__(self) -> int:
        return int(bool(self))

    __index__ = __int__


class Int(Symbol):
    """An unknown integer of 64 bits; ``signed``: an int64, else a uint64."""

    __slots__ = ("signed",)

    def __init__(self, term: Any, signed: bool = True, null: Any = None) -> None:
        super().__init__(term, null)
        self.signed = signed

    def __bool__(self) -> bool:
        return path().fork(self.term != 0)

    def __index__(self) -> int:
        return path().index(self.term)

    def __neg__(self) -> Any:
        if self.signed:
            _may_wrap("-", lambda: self.term == z3.BitVecVal(INT64_MIN, 64))
        return Int(-self.term, self.signed)

    def __pos__(self) -> Any:
        return Int(self.term, self.signed)

    def __invert__(self) -> Any:
        return Int(~self.term, self.signed)

    def __abs__(self) -> Any:
        if not self.signed:
            return self
        _may_wrap("abs", lambda: self.term == z3.BitVecVal(INT64_MIN, 64))
        return Int(z3.If(self.term < 0, -self.term, self.term))

    def bit_length(self) -> Any:
        size = z3.If(self.term < 0, -self.term, self.term) if self.signed else self.term
        found = bits(0)
        for bit in range(64):
            found = z3.If(z3.Extract(bit, bit, size) == 1, bits(bit + 1), found)
        return Int(found)


class Float(Symbol):
    """An unknown float."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return path().fork(z3.Not(z3.fpIsZero(self.term)))

    def __neg__(self) -> Any:
        return Float(z3.fpNeg(self.term))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return Float(z3.fpAbs(self.term))

    def is_integer(self) -> Any:
        whole = z3.fpRoundToIntegral(_DOWN, self.term)
        finite = z3.Not(z3.Or(z3.fpIsNaN(self.term), z3.fpIsInf(self.term)))
        return Bool(z3.And(finite, z3.fpEQ(whole, self.term)))


class String(Symbol):
    """An unknown string: its code."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return path().fork(z3.And(self.term != 0, self.term != z3.BitVecVal(_EMPTY, 64)))

    def _letters(self, *_: Any) -> Any:
        refuse("the letters of an unknown string", "compare it as a whole, with ==")

    __len__ = __contains__ = startswith = endswith = _letters


# ---- from one to the other ----


def is_unknown(value: Any) -> bool:
    """Whether a value is unknown, or something unknown is in it."""
    if isinstance(value, tuple | list):
        return any(map(is_unknown, value))
    return isinstance(value, Symbol)


def bits(value: int) -> Any:
    return z3.BitVecVal(value, 64)


def as_int(value: Any) -> Any:
    """A number as an unknown integer; None: it is none."""
    if isinstance(value, Int):
        return value
    if isinstance(value, Bool):
        return Int(z3.If(value.term, bits(1), bits(0)))
    if isinstance(value, Text):
        return Int(bits(int(value.code)))
    if isinstance(value, str):  # of a property
        return Int(bits(string_code(value)))
    if isinstance(value, String):
        return Int(value.term)
    if isinstance(value, Uint64):
        return Int(bits(int(value)), False)
    if isinstance(value, int):
        exact = int(value)
        if not INT64_MIN <= exact <= UINT64_MAX:
            refuse(f"the integer {exact} has more than 64 bits", "compare with a smaller one")
        return Int(bits(exact), exact <= INT64_MAX)
    return None


def as_float(value: Any) -> Any:
    """A number as an unknown float, rounded as ``float(x)`` does; None: it is none."""
    if isinstance(value, Float):
        return value
    if isinstance(value, float):
        return Float(z3.FPVal(value, FLOAT))
    whole = None if isinstance(value, String | Text | str) else as_int(value)
    if whole is None:
        return None
    if whole.signed:
        return Float(z3.fpSignedToFP(NEAREST, whole.term, FLOAT))
    return Float(z3.fpUnsignedToFP(NEAREST, whole.term, FLOAT))


def truth(value: Any) -> Any:
    """The truth of a value as a term, without a fork."""
    match value:
        case Bool():
            return value.term
        case Int():
            return value.term != 0
        case Float():
            return z3.Not(z3.fpIsZero(value.term))
        case String():
            return z3.And(value.term != 0, value.term != bits(_EMPTY))
    return z3.BoolVal(bool(value))


def wide(value: Any, size: int = 66) -> Any:
    """An integer as a signed term of more bits."""
    more = size - value.term.size()
    return (z3.SignExt if value.signed else z3.ZeroExt)(more, value.term)


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """One of two values by a condition, without a fork where both are of one kind; else None."""
    if isinstance(yes, Float | float) and isinstance(no, Float | float):
        return Float(z3.If(condition, as_float(yes).term, as_float(no).term))
    of_bool = (Bool, bool)
    if isinstance(yes, of_bool) and isinstance(no, of_bool):
        return Bool(z3.If(condition, truth(yes), truth(no)))
    if isinstance(yes, String | Text | str) and isinstance(no, String | Text | str):
        return String(z3.If(condition, as_int(yes).term, as_int(no).term))
    whole = (Int, int)
    if isinstance(yes, whole) and isinstance(no, whole) and not isinstance(yes, bool):
        left, right = as_int(yes), as_int(no)
        if left.signed == right.signed and not isinstance(no, bool):
            return Int(z3.If(condition, left.term, right.term), left.signed)
    return None


# ---- comparing ----


def _of_int_and_float(whole: Any, of: Any, compare: str) -> Any:
    """``whole < of`` or another comparison, exact as Python's: no rounding."""
    nan = z3.fpIsNaN(of.term)
    size = 70
    limit = z3.FPVal(2.0**64, FLOAT)
    above, below = z3.fpGEQ(of.term, limit), z3.fpLEQ(of.term, z3.fpNeg(limit))
    part = z3.fpToSBV(_DOWN, of.term, z3.BitVecSort(size))
    exact = wide(whole, size)
    floor = z3.fpRoundToIntegral(_DOWN, of.term)
    more = z3.fpGT(of.term, floor)  # behind the point, away from the part
    less_ = z3.fpLT(of.term, floor)
    is_less = z3.If(
        above, True, z3.If(below, False, z3.Or(exact < part, z3.And(exact == part, more)))
    )
    is_equal = z3.And(z3.Not(above), z3.Not(below), exact == part, z3.Not(more), z3.Not(less_))
    found = {
        "lt": is_less,
        "le": z3.Or(is_less, is_equal),
        "eq": is_equal,
        "gt": z3.Not(z3.Or(is_less, is_equal)),
        "ge": z3.Not(is_less),
    }[compare]
    return z3.And(z3.Not(nan), found)


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
_OF_FLOATS = {"lt": z3.fpLT, "le": z3.fpLEQ, "gt": z3.fpGT, "ge": z3.fpGEQ, "eq": z3.fpEQ}


def _compared(left: Any, right: Any, compare: str) -> Any:
    """A comparison as a term; None: there is none of these."""
    if isinstance(left, Float) or isinstance(right, Float | float):
        if isinstance(left, Float) and isinstance(right, Float | float):
            return _OF_FLOATS[compare](left.term, as_float(right).term)
        if isinstance(left, Float):
            whole = None if isinstance(right, String | Text | str) else as_int(right)
            if whole is None:
                return None
            return _of_int_and_float(whole, left, _MIRRORED[compare])
        return _of_int_and_float(as_int(left), as_float(right), compare)
    if isinstance(right, int) and not INT64_MIN <= right <= UINT64_MAX:
        is_above = right > 0
        return z3.BoolVal({"lt": is_above, "le": is_above, "eq": False}.get(compare, not is_above))
    one, other = as_int(left), as_int(right)
    if other is None:
        return None
    if one.signed == other.signed:
        a, b = one.term, other.term
        if one.signed or compare == "eq":
            return getattr(operator, compare)(a, b)
        return {"lt": z3.ULT, "le": z3.ULE, "gt": z3.UGT, "ge": z3.UGE}[compare](a, b)
    return getattr(operator, compare)(wide(one), wide(other))


def less(left: Any, right: Any) -> Any:
    """``left < right`` of numbers, one of them unknown, as a term."""
    if isinstance(left, Symbol):
        return _compared(left, right, "lt")
    return _compared(right, left, "gt")


def same(left: Any, right: Any) -> Any:
    """``left == right`` of numbers and strings as a term; None: neither can be the other."""
    if left is None or right is None:
        return z3.BoolVal(left is right)
    if not isinstance(left, Symbol):
        left, right = right, left
    if not isinstance(left, Symbol):
        return z3.BoolVal(bool(left == right))
    return _compared(left, right, "eq")


def _comparison(compare: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(self, String) or isinstance(other, String | Text | str):
            refuse("the order of strings", "compare values of the event alone")
        found = _compared(self, other, compare)
        return NotImplemented if found is None else Bool(found)

    return method


def _equal(self: Any, other: Any) -> Any:
    if other is None:
        return False
    found = _compared(self, other, "eq")
    return NotImplemented if found is None else Bool(found)


def _different(self: Any, other: Any) -> Any:
    found = _equal(self, other)
    if found is NotImplemented:
        return found
    return True if found is False else Bool(z3.Not(found.term))


# ---- arithmetic ----


def _may_wrap(sign: str, when: Callable[[], Any]) -> None:
    path().wraps.append(Wrap(place(), sign, when))


def _add(a: Any, b: Any) -> Any:
    if a.signed and b.signed:
        _may_wrap("+", lambda: _leaves(wide(a, 65) + wide(b, 65)))
    return a.term + b.term


def _sub(a: Any, b: Any) -> Any:
    if a.signed and b.signed:
        _may_wrap("-", lambda: _leaves(wide(a, 65) - wide(b, 65)))
    return a.term - b.term


def _mul(a: Any, b: Any) -> Any:
    if a.signed and b.signed:
        _may_wrap("*", lambda: _leaves(wide(a, 128) * wide(b, 128)))
    return a.term * b.term


def _leaves(exact: Any) -> Any:
    """Whether a term of more bits has a value beyond 64."""
    return z3.SignExt(exact.size() - 64, z3.Extract(63, 0, exact)) != exact


def _check_divisor(divisor: Any, message: str) -> None:
    if path().fork(divisor == 0):
        raise ZeroDivisionError(message)


def _floordiv(a: Any, b: Any) -> Any:
    _check_divisor(b.term, "integer division or modulo by zero")
    if a.signed != b.signed:
        return z3.Extract(63, 0, _floored(wide(a), wide(b)))
    if not a.signed:
        return z3.UDiv(a.term, b.term)
    _may_wrap("//", lambda: z3.And(a.term == bits(INT64_MIN), b.term == -1))
    return _floored(a.term, b.term)


def _floored(a: Any, b: Any) -> Any:
    rest = z3.SRem(a, b)
    return a / b - z3.If(z3.And(rest != 0, (rest < 0) != (b < 0)), _one(a), _one(a) * 0)


def _one(like: Any) -> Any:
    return z3.BitVecVal(1, like.size())


def _mod(a: Any, b: Any) -> Any:
    _check_divisor(b.term, "integer division or modulo by zero")
    if not a.signed and not b.signed:
        return z3.URem(a.term, b.term)
    left, right = (a.term, b.term) if a.signed == b.signed else (wide(a), wide(b))
    rest = z3.SRem(left, right)
    found = z3.If(z3.And(rest != 0, (rest < 0) != (right < 0)), rest + right, rest)
    return found if found.size() == 64 else z3.Extract(63, 0, found)


def _check_count(count: Any) -> None:
    within = z3.And(count.term >= 0, count.term <= 63) if count.signed else z3.ULE(count.term, 63)
    if not path().fork(within):
        raise ValueError("a shift count must be from 0 to 63")


def _lshift(a: Any, b: Any) -> Any:
    _check_count(b)
    return a.term << b.term


def _rshift(a: Any, b: Any) -> Any:
    _check_count(b)
    return a.term >> b.term if a.signed else z3.LShR(a.term, b.term)


_OF_INTS: dict[str, Callable[[Any, Any], Any]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "floordiv": _floordiv,
    "mod": _mod,
    "and": lambda a, b: a.term & b.term,
    "or": lambda a, b: a.term | b.term,
    "xor": lambda a, b: a.term ^ b.term,
    "lshift": _lshift,
    "rshift": _rshift,
}
_EXACT_OF_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: z3.fpAdd(NEAREST, a, b),
    "sub": lambda a, b: z3.fpSub(NEAREST, a, b),
    "mul": lambda a, b: z3.fpMul(NEAREST, a, b),
}


def _of_floats(name: str, a: Any, b: Any) -> Any:
    if name in _EXACT_OF_FLOATS:
        return Float(_EXACT_OF_FLOATS[name](a.term, b.term))
    if name not in ("truediv", "floordiv", "mod"):
        return NotImplemented
    if path().fork(z3.fpIsZero(b.term)):
        raise ZeroDivisionError("float division by zero")
    if name == "truediv":
        return Float(z3.fpDiv(NEAREST, a.term, b.term))
    return Float(path().any_value(FLOAT, f"float {'//' if name == 'floordiv' else '%'}"))


def _quotient(a: Any, b: Any) -> Any:
    """``a / b`` of integers, correctly rounded: exact where both are floats, else any value."""
    _check_divisor(b.term, "division by zero")

    def is_small(one: Any) -> Any:
        exact = wide(one)
        return z3.And(exact <= 2**53, exact >= -(2**53))

    both = z3.And(is_small(a), is_small(b))
    exact = z3.fpDiv(NEAREST, as_float(a).term, as_float(b).term)
    if path().fork(both):
        return Float(exact)
    return Float(path().any_value(FLOAT, "/ of integers beyond 2**53"))


def _operate(name: str, left: Any, right: Any) -> Any:
    if isinstance(left, String | Text | str) or isinstance(right, String | Text | str):
        if name not in ("and", "or", "xor", "lshift", "rshift"):
            return NotImplemented
    elif isinstance(left, Float | float) or isinstance(right, Float | float):
        a, b = as_float(left), as_float(right)
        return NotImplemented if a is None or b is None else _of_floats(name, a, b)
    one, other = as_int(left), as_int(right)
    if one is None or other is None:
        return NotImplemented
    if name == "truediv":
        return _quotient(one, other)
    of_bools = isinstance(left, Bool | bool) and isinstance(right, Bool | bool)
    if of_bools and name in ("and", "or", "xor"):
        a, b = truth(left), truth(right)
        return Bool({"and": z3.And, "or": z3.Or, "xor": z3.Xor}[name](a, b))
    signed = one.signed and other.signed
    if name in ("lshift", "rshift"):
        # A shifted int64 has the bits of one also where the count is a uint64.
        found = _OF_INTS[name](one, other)
        return Int(found, signed)
    return Int(_OF_INTS[name](one, other), signed)


def _method(name: str, reflected: bool) -> Callable[[Any, Any], Any]:
    if reflected:
        return lambda self, other: _operate(name, other, self)
    return lambda self, other: _operate(name, self, other)


for _class in (Bool, Int, Float, String):
    for _name in (*_OF_INTS, "truediv"):
        setattr(_class, f"__{_name}__", _method(_name, False))
        setattr(_class, f"__r{_name}__", _method(_name, True))
    for _name in ("lt", "le", "gt", "ge"):
        setattr(_class, f"__{_name}__", _comparison(_name))
    setattr(_class, "__eq__", _equal)  # noqa: B010 - as above
    setattr(_class, "__ne__", _different)  # noqa: B010
    setattr(_class, "__hash__", Symbol.__hash__)  # noqa: B010
