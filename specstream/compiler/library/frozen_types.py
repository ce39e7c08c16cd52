"""Frozen containers in Numba's terms, and where their data lie.

A list, dict or set is of the type that an event's own has, marked, so that what changes one refuses
it. An array is a view like those of the state.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_constant
from numba.extending import models, register_model, typeof_impl

from specstream._native import ffi, lib
from specstream.compiler.backend.instructions import BIT, I8, I64, POINTER, Instructions, Value
from specstream.compiler.backend.local_types import (
    DictType,
    ListType,
    SetType,
    Unknown,
    has_unknown,
    kinds_of,
    resolved,
    width_of,
)
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import ViewType
from specstream.compiler.backend.overloads import Core, Meaning, resolved_call
from specstream.compiler.language.frozen import (
    EnumMembers,
    Frozen,
    FrozenArray,
    FrozenDict,
    FrozenList,
    FrozenSet,
    Record,
    digest_of,
    freeze,
    record_class,
    to_constants,
)
from specstream.compiler.language.numbers import Uint64
from specstream.compiler.language.text import TEXT, Text
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.arithmetic import eq, ne
from specstream.compiler.library.array_views import make_view
from specstream.compiler.library.local_tables import Table
from specstream.declarations.element_types import storage_of

__all__ = ["FrozenValue", "can_freeze", "conformed", "enum_member", "known_to_llvm", "native"]


class FrozenListType(ListType):
    """A list of a module."""

    def __init__(self, element: types.Type) -> None:
        super().__init__(element)
        self.name: str = f"specstream.frozen_{str(self.name).removeprefix('specstream.')}"


class FrozenDictType(DictType):
    """A dict of a module."""

    def __init__(self, key: types.Type, value: types.Type) -> None:
        super().__init__(key, value)
        self.name: str = f"specstream.frozen_{str(self.name).removeprefix('specstream.')}"


class FrozenSetType(SetType):
    """A set of a module."""

    def __init__(self, key: types.Type) -> None:
        super().__init__(key)
        self.name: str = f"specstream.frozen_{str(self.name).removeprefix('specstream.')}"


for _frozen in (FrozenListType, FrozenDictType, FrozenSetType):
    register_model(_frozen)(models.OpaqueModel)
    _frozen.is_frozen = True


# ---- of which type ----

Refuse = Callable[[str, str], Any]


def type_of(value: Any, refuse_it: Refuse) -> types.Type:
    if isinstance(value, Record):
        parts = [type_of(one, refuse_it) for one in value.values]
        return types.BaseTuple.from_types(parts, record_class(value.name, value.names))
    if isinstance(value, FrozenSet):
        return FrozenSetType(_joined(value, refuse_it, "a set"))
    if isinstance(value, FrozenList):
        return FrozenListType(_joined(value, refuse_it, "a list"))
    if isinstance(value, FrozenDict):
        keys = _joined([key for key, _ in value.items], refuse_it, "a dict")
        return FrozenDictType(keys, _joined([one for _, one in value.items], refuse_it, "a dict"))
    if isinstance(value, FrozenArray):
        return ViewType(_storage(value.array), value.array.ndim, "range", "frozen")
    if isinstance(value, EnumMembers):
        return type_of(value.all, refuse_it)
    if isinstance(value, tuple):
        return types.BaseTuple.from_types([type_of(one, refuse_it) for one in value])
    number = to_constants(value)
    if isinstance(number, Text):
        return TEXT
    if isinstance(number, bool):
        return types.boolean
    if isinstance(number, Uint64):
        return types.uint64
    if isinstance(number, float):
        return types.float64
    return types.none if number is None else types.int64


def _joined(values: Sequence[Any], refuse_it: Refuse, what: str) -> types.Type:
    found: types.Type | None = None
    simple = set(map(type, values))
    if simple in ({int}, {float}, {str}):
        values = values[:1]
    for value in values:
        of = type_of(value, refuse_it)
        met = of if found is None else _common_type(found, of)
        if met is None or of == types.none or isinstance(of, ViewType):
            other = "None" if of == types.none else "arrays" if isinstance(of, ViewType) else of
            refuse_it(
                f"{what} of a module holds {other}"
                + ("" if found is None or met is not None else f" beside {found}"),
                "keep values of one type in it, or make it a tuple",
            )
        found = met
    return Unknown() if found is None else found


def _common_type(one: types.Type, other: types.Type) -> types.Type | None:
    """The type of two elements of a frozen container; an int among floats becomes one."""
    if one == other:
        return one
    if {one, other} == {types.int64, types.float64}:
        return types.float64
    if isinstance(one, types.BaseTuple) and isinstance(other, types.BaseTuple):
        if len(one) != len(other) or getattr(one, "fields", ()) != getattr(other, "fields", ()):
            return None
        parts = [_common_type(*pair) for pair in zip(one, other, strict=True)]
        made = getattr(one, "instance_class", None)
        return None if None in parts else types.BaseTuple.from_types(parts, made)
    if type(one) is type(other) and isinstance(one, ListType | DictType | SetType):
        parts = [
            mine
            if isinstance(theirs, Unknown)
            else theirs
            if isinstance(mine, Unknown)
            else _common_type(mine, theirs)
            for mine, theirs in zip(one.parts, other.parts, strict=True)
        ]
        return None if None in parts else one.with_parts(*parts)
    return None


def conformed(value: Any, refuse_it: Refuse) -> Any:
    """The same, but that the ints among floats are floats."""
    return _as(value, type_of(value, refuse_it)) if isinstance(value, Frozen | tuple) else value


class _Refused(Exception):
    """It cannot be frozen."""


def can_freeze(value: Any) -> bool:
    """Whether a module's container can be frozen in Numba's terms: there is a type for it."""

    def refuse_it(problem: str, hint: str) -> Any:
        raise _Refused(problem)

    try:
        conformed(freeze(value, refuse_it), refuse_it)
    except (_Refused, OverflowError):
        return False
    return True


def _as(value: Any, of: types.Type) -> Any:
    if of is types.int64 or of is TEXT:
        return value
    if of == types.float64:
        return float(value)
    if isinstance(value, Record):
        return Record(value.name, value.names, tuple(map(_as, value.values, of)))
    if isinstance(value, FrozenDict):
        return FrozenDict(
            tuple((_as(key, of.key_type), _as(one, of.value_type)) for key, one in value.items)
        )
    if isinstance(value, FrozenList):
        (part,) = of.parts
        if part in (types.int64, TEXT) or set(map(type, value)) == {float}:
            return value
        return type(value)(_as(one, part) for one in value)
    if isinstance(value, tuple) and isinstance(of, types.BaseTuple):
        return tuple(map(_as, value, of))
    return value


# ---- where ----


class FrozenValue:
    """A frozen container for Numba, and where it lies in this process."""

    def __init__(self, symbol: str, of: types.Type, address: int, shape: tuple[int, ...]) -> None:
        self.symbol, self.of, self.address, self.shape = symbol, of, address, shape

    def __repr__(self) -> str:
        return self.symbol


# By symbol; machine code may use it for as long as the process lives.
_kept: dict[str, tuple[FrozenValue, Any]] = {}


def _never(problem: str, hint: str) -> Any:
    raise AssertionError(problem)


def native(value: Any) -> Any:
    """A frozen value as what Numba takes for it."""
    if isinstance(value, EnumMembers):
        value = value.all
    if isinstance(value, Record):
        return record_class(value.name, value.names)(*map(native, value.values))
    if isinstance(value, tuple) and not isinstance(value, Frozen):
        return tuple(map(native, value))
    if not isinstance(value, Frozen):
        constant = to_constants(value)
        if isinstance(constant, Uint64):
            return np.uint64(constant)
        is_int = isinstance(constant, int) and not isinstance(constant, bool)
        return int(constant) if is_int else constant
    symbol = f"ss_frozen_{digest_of(value)}"
    if symbol not in _kept:
        of = type_of(value, _never)
        address, shape, memory = _laid_out(value, of)
        llvmlite.binding.add_symbol(symbol, address)
        _kept[symbol] = FrozenValue(symbol, of, address, shape), memory
    return _kept[symbol][0]


def known_to_llvm() -> tuple[str, ...]:
    """The symbols of this process."""
    return tuple(_kept)


def _laid_out(value: Any, of: types.Type) -> tuple[int, tuple[int, ...], Any]:
    """Address, shape, and what keeps the memory."""
    if isinstance(value, FrozenArray):
        wide = {"f": np.float64, "b": np.int64, "i": np.int64, "u": np.int64}
        kind = np.uint64 if value.array.dtype == np.uint64 else wide[value.array.dtype.kind]
        words = np.ascontiguousarray(value.array.astype(kind))
        if words.dtype == np.float64:
            words[np.isnan(words)] = np.nan
        if words.size == 0:
            words = np.zeros(1, np.int64)
        return words.ctypes.data, value.array.shape, words
    if isinstance(value, FrozenDict):
        return _table(of.key_type, of.value_type, value.items)
    if isinstance(value, FrozenSet):
        return _table(of.key_type, types.none, tuple((key, None) for key in value))
    element = of.parts[0]
    kept: list[Any] = []
    words = _element_words(list(value), element, kept)
    unknown = isinstance(resolved(element), Unknown)
    head = ffi.new(
        "struct ss_list *",
        {
            "count": len(value),
            "capacity": len(value),
            "words": ffi.cast("uint64_t *", words.ctypes.data),
            "kinds": 0 if unknown else int(kinds_of(element).constant),
            "width": 0 if unknown else width_of(element),
        },
    )
    return int(ffi.cast("uintptr_t", head)), (), (head, words, kept)


def _table(key: types.Type, of: types.Type, items: Any) -> tuple[int, tuple[int, ...], Any]:
    kept: list[Any] = []
    if not items:
        made = lib.ss_table_frozen(0, 0, ffi.NULL, 0)
        return int(ffi.cast("uintptr_t", made)), (), made
    parts = [np.ones((len(items), 1), np.uint64)]
    parts.append(_element_words([one for one, _ in items], key, kept).reshape(len(items), -1))
    kinds = 0
    if of != types.none:
        parts.append(_element_words([one for _, one in items], of, kept).reshape(len(items), -1))
        kinds = int(kinds_of(of).constant)
    words = np.ascontiguousarray(np.concatenate(parts, axis=1))
    made = lib.ss_table_frozen(
        int(kinds_of(key).constant), kinds, ffi.cast("uint64_t *", words.ctypes.data), len(items)
    )
    if made == ffi.NULL:
        raise MemoryError("no memory for a dict of a module")
    return int(ffi.cast("uintptr_t", made)), (), (made, kept)


def _element_words(values: list[Any], of: types.Type, kept: list[Any]) -> Any:
    """The data of a frozen container: the words of its elements, one after the other."""
    if of == types.int64:
        return np.array(values or [0], np.int64).view(np.uint64)
    if of == types.float64:
        return np.array(values or [0.0], np.float64).view(np.uint64)
    words: list[int] = []
    for value in values:
        _pack(value, of, words, kept)
    return np.array(words or [0], np.uint64)


def _pack(value: Any, of: types.Type, words: list[int], kept: list[Any]) -> None:
    if isinstance(of, types.BaseTuple):
        parts = value.values if isinstance(value, Record) else value
        for part, kind in zip(parts, of, strict=True):
            _pack(part, kind, words, kept)
    elif isinstance(value, Frozen):
        address, _, memory = _laid_out(value, of)
        kept.append(memory)
        words.append(address)
    elif of == types.float64:
        words.append(struct.unpack("<Q", struct.pack("<d", float(value)))[0])
    else:
        number = to_constants(value)
        words.append(int(number.code if isinstance(number, Text) else number) & 2**64 - 1)


# ---- for Numba ----


@typeof_impl.register(FrozenValue)
def _typeof(value: FrozenValue, context: object) -> types.Type:
    return value.of


def _address(builder: Any, value: FrozenValue) -> Value:
    module = builder.module
    found = module.globals.get(value.symbol)
    if found is None:
        found = ir.GlobalVariable(module, I8, value.symbol)
    return builder.bitcast(found, POINTER)


@lower_constant(FrozenListType)
@lower_constant(FrozenDictType)
@lower_constant(FrozenSetType)
def _constant(context: Any, builder: Any, of: types.Type, value: FrozenValue) -> Value:
    return _address(builder, value)


@lower_constant(ViewType)
def _constant_view(context: Any, builder: Any, of: ViewType, value: FrozenValue) -> Value:
    # Of the run that the thread is in: words outside of the state are counted from it.
    code = Instructions(context, builder)
    run = code.call("ss_arena_run", POINTER, cgutils.get_null_value(POINTER))
    first = Run(context, builder, run).word_number(_address(builder, value))
    strides = [1]
    for length in reversed(value.shape[1:]):
        strides.insert(0, strides[0] * length)
    shape = [I64(length) for length in value.shape]
    return make_view(context, builder, of, run, first, shape, [I64(one) for one in strides])


def _storage(array: Any) -> Any:
    kinds: dict[str, type] = {"f": float, "b": bool, "i": int, "u": int}
    is_unsigned = array.dtype == np.uint64
    return storage_of(np.uint64 if is_unsigned else kinds[array.dtype.kind], "an array")


enum_member = Core("enum_member", "an enum is called with the value of a member")


@enum_member.rule
def _enum_member(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``Side(value)`` of a frozen enum in Numba's terms; ValueError where no member has it."""
    of, key = args
    if not isinstance(of, FrozenDictType) or has_unknown(of):
        return None
    if types.unliteral(key) != of.key_type:
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        table = Table(context, builder, sig.args[0], args[0])
        entry = table.find(args[1])
        table.fault_if(builder.icmp_unsigned("==", entry, entry.type(None)), ValueError)
        return table.value_of(entry)

    return of.value_type, (of, of.key_type), code


def _record_equality(function: Any) -> Any:
    """``==`` of frozen records and enum members in Numba's terms: where all values are equal.

    Of an enum there are no others."""
    differs = BIT(int(function is ne))

    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 2 or not all(isinstance(one, types.BaseNamedTuple) for one in args):
            return None
        left, right = args
        if left != right:
            raise refuse(f"{left} meets {right}, which are never equal; compare values of them")

        def code(context: Any, builder: Any, sig: Any, given: Any) -> Value:
            same: Value = BIT(1)
            for at, of in enumerate(left):
                pair = [builder.extract_value(one, at) for one in given]
                _, equal = resolved_call(context, builder, eq, (of, of), pair)
                same = builder.and_(same, equal)
            return builder.xor(same, differs)

        return types.boolean, args, code

    return rule


eq.rule(_record_equality(eq))
ne.rule(_record_equality(ne))
