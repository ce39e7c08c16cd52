"""What an element of the state is to the solver: its sort, and what may be stored there.

The counterpart of :mod:`specstream.compiler.oracle_objects.elements`, which it equals in what it
stores and in what it raises.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import z3

from specstream.columns.strings import string_code
from specstream.compiler.language.bool_operators import NullBool
from specstream.compiler.language.numbers import Uint64
from specstream.compiler.language.text import Text
from specstream.declarations.containers import Shape
from specstream.declarations.element_types import Storage
from specstream.verify.paths import path, refuse
from specstream.verify.values import (
    FLOAT,
    NEAREST,
    Bool,
    Float,
    Int,
    String,
    as_float,
    as_int,
    bits,
    truth,
    wide,
)

__all__ = [
    "key_parts",
    "key_sort",
    "key_term",
    "load",
    "refused",
    "sort_of",
    "store",
    "term_of",
    "wide_term",
    "widened",
]

_EMPTY = string_code("")


def sort_of(storage: Storage) -> Any:
    """The sort of an element."""
    if storage.number == "bool":
        return z3.BoolSort()
    if storage.number == "float":
        return FLOAT if storage.size == 8 else z3.Float32()
    return z3.BitVecSort(8 * storage.size)


def load(storage: Storage, term: Any) -> Any:
    """What a read of an element gives."""
    match storage.number:
        case "bool":
            return Bool(term)
        case "float":
            return Float(term if storage.size == 8 else z3.fpFPToFP(NEAREST, term, FLOAT))
        case "str":
            return String(term)
        case "uint":
            return Int(term, False)
    return Int(widened(storage, term))


def widened(storage: Storage, term: Any) -> Any:
    """An integer of few bits as one of 64."""
    more = 64 - term.size()
    if not more:
        return term
    is_signed = storage.bounds is None or storage.bounds[0] < 0
    return (z3.SignExt if is_signed else z3.ZeroExt)(more, term)


def wide_term(storage: Storage, term: Any) -> Any:
    """An element as an exact integer of 128 bits, for sums."""
    return wide(Int(widened(storage, term), storage.number != "uint"), 128)


def _mismatch(what: str, storage: Storage, value: Any) -> TypeError:
    return TypeError(f"{what} is declared {storage.name} and gets {type(value).__name__}")


def store(storage: Storage, value: Any, what: str) -> Any:
    """What an element holds once a value is stored there.

    Raises:
        TypeError, OverflowError: as the oracle does.
    """
    match storage.number:
        case "bool":
            if not isinstance(value, Bool | bool | NullBool):
                raise _mismatch(what, storage, value)
            return truth(value)
        case "float":
            unsigned = isinstance(value, Uint64) or (isinstance(value, Int) and not value.signed)
            found = None if unsigned else as_float(value)
            if found is None:
                raise _mismatch(what, storage, value)
            if storage.size == 8:
                return found.term
            return z3.fpFPToFP(NEAREST, found.term, z3.Float32())
        case "str":
            if not isinstance(value, String | Text | str):
                raise _mismatch(what, storage, value)
            code = as_int(value).term
            return z3.If(code == 0, bits(_EMPTY), code)
    is_text = isinstance(value, String | Text | str)
    whole = as_int(value)
    if whole is None or (is_text and storage.name != "int"):
        raise _mismatch(what, storage, value)
    if whole.signed != (storage.number == "int"):
        raise _mismatch(what, storage, value)
    size = 8 * storage.size
    if size < 64:
        assert storage.bounds is not None
        low, high = storage.bounds
        if not path().fork(z3.And(whole.term >= low, whole.term <= high)):
            raise OverflowError(f"{what} is declared {storage.name}, which does not hold it")
    return z3.Extract(size - 1, 0, whole.term) if size < 64 else whole.term


def term_of(storage: Storage, value: Any) -> Any:
    """A value of Python's, as somebody declares it, as an element."""
    match storage.number:
        case "bool":
            return z3.BoolVal(bool(value))
        case "float":
            return z3.FPVal(float(value), sort_of(storage))
        case "str":
            return bits(string_code(value or ""))
    return z3.BitVecVal(int(value), 8 * storage.size)


def key_sort(shape: Shape) -> Any:
    """The sort of the keys of a dict or set: the words of a key, one behind the other."""
    return z3.BitVecSort(sum(1 if part.number == "bool" else 64 for part in shape.parts))


def key_term(shape: Shape, key: Any, what: str) -> Any:
    """A key as a term; None: a part of it is None, so that it is in no dict."""
    parts = key if isinstance(key, tuple) and shape.is_tuple else (key,)
    if any(one is None for one in parts):
        return None
    if shape.is_tuple and (not isinstance(key, tuple) or len(parts) != len(shape.parts)):
        raise TypeError(f"{what} is declared {shape} and gets something else")
    terms = [store(of, one, what) for of, one in zip(shape.parts, parts, strict=True)]
    return joined_key(shape, terms)


def joined_key(shape: Shape, terms: Iterable[Any]) -> Any:
    """A key, made of the elements of its parts."""
    words = [
        z3.If(one, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) if part.number == "bool" else one
        for part, one in zip(shape.parts, terms, strict=True)
    ]
    return words[0] if len(words) == 1 else z3.Concat(*words)


def key_parts(shape: Shape, key: Any) -> list[Any]:
    """The other way round: the values of a key's parts."""
    found, end = [], key.size()
    for part in shape.parts:
        size = 1 if part.number == "bool" else 64
        word = key if key.size() == size else z3.Extract(end - 1, end - size, key)
        end -= size
        found.append(load(part, word == 1 if part.number == "bool" else word))
    return found


def refused(field: str, what: str, hint: str) -> NoReturn:
    refuse(f"{what} of state.{field}", hint)
