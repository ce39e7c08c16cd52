"""An event's own dicts and sets in Numba's terms: what can be done with one (``local_table.c``)."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from specstream.compiler.backend.instructions import BIT, F64, I32, I64, POINTER, Value
from specstream.compiler.backend.local_types import (
    DictType,
    LocalIterator,
    LocalType,
    SetType,
    TableType,
    Unknown,
    kinds_of,
    known,
    meet,
    pack,
    resolved,
    storable,
    unpack,
    width_of,
)
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import NullableType, may_be_none
from specstream.compiler.backend.numba_types import RecordType, RunType
from specstream.compiler.backend.overloads import Core, Meaning, of_values
from specstream.compiler.frontend.error_texts import NO_KEY
from specstream.compiler.language.text import TEXT
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.item_assignment import SET_ITEM
from specstream.compiler.library.local_lists import STEPS, Head
from specstream.compiler.library.method_dispatch import method
from specstream.declarations.element_types import Number

__all__ = [
    *("WRITERS", "Table", "dict_new", "dict_of", "dict_set", "keys", "set_add", "set_new"),
    *("set_of", "start_walk", "table_of", "values"),
]

_VOID = ir.VoidType()
_WORDS = I64.as_pointer()


_TOLD_KEYS: dict[types.Type, Number] = {
    types.int64: "int",
    types.float64: "float",
    TEXT: "str",
}


class Table(Head):
    """Writes instructions about one dict or set."""

    struct = "struct ss_table"

    def __init__(self, context: Any, builder: Any, of: types.Type, pointer: Value) -> None:
        super().__init__(context, builder, pointer)
        found = resolved(of)
        assert isinstance(found, TableType)
        self.type = found

    def kinds(self, of: types.Type) -> Value:
        return I64(0) if isinstance(of, Unknown) or of == types.none else kinds_of(of)

    def count(self) -> Value:
        return self.member("count")

    def packed_key(self, key: Value) -> Value:
        """The address of a key's words; a fault where a number in it is a NaN."""
        words = pack(self, self.type.key_type, key)
        for word, of in zip(words, _leaf_types(self.type.key_type), strict=True):
            if of == types.float64:
                self.fault_if(self.is_nan(self.builder.bitcast(word, F64)), ValueError)
        return self.in_memory(words)

    def find(self, key: Value) -> Value:
        """The entry of a key, or null."""
        kinds = self.kinds(self.type.key_type)
        return self.call("ss_table_find", _WORDS, self.pointer, kinds, self.packed_key(key))

    def fault_if_missing(self, entry: Value, key: Value) -> None:
        """Raises KeyError of a key that has no entry."""
        missing = self.is_null(entry)
        kind = _TOLD_KEYS.get(self.type.key_type)
        if kind is None or not getattr(self.context, "tells_texts", False):
            self.fault_if(missing, KeyError)
            return
        with self.builder.if_then(missing, likely=False):
            run = self.run_of()
            run.store_told((kind,), [run.to_bits(kind, key)])
            self.fault_if(BIT(1), KeyError, NO_KEY)

    def run_of(self) -> Run:
        """The run that it belongs to: of one that is frozen, that of the thread."""
        own = self.call("ss_arena_run", POINTER, self.member("run", POINTER))
        return Run(self.context, self.builder, own)

    def put(self, key: Value) -> tuple[Value, Value]:
        """The entry of a key, made where there is none, and whether it is new."""
        is_new = cgutils.alloca_once(self.builder, I64)
        kinds = self.kinds(self.type.key_type), self.kinds(self.type.value_type)
        entry = self.call(
            "ss_table_put", _WORDS, self.pointer, *kinds, self.packed_key(key), is_new
        )
        self.leave_if_null(entry)
        return entry, self.builder.icmp_unsigned("!=", self.builder.load(is_new), I64(0))

    def set(self, key: Value, value: Value) -> None:
        words = pack(self, self.type.value_type, value)
        entry, _ = self.put(key)
        self.put_words(self.value_address(entry), words)

    def put_value(self, entry: Value, value: Value) -> None:
        self.put_words(self.value_address(entry), pack(self, self.type.value_type, value))

    def is_null(self, entry: Value) -> Value:
        return cgutils.is_null(self.builder, entry)

    def remove(self, entry: Value) -> None:
        self.call("ss_table_remove", _VOID, self.pointer, entry)

    def clear(self) -> None:
        self.call("ss_table_clear", _VOID, self.pointer)

    def last(self) -> Value:
        """The entry that came last, or null."""
        return self.call("ss_table_last", _WORDS, self.pointer)

    def copied(self) -> Value:
        """The address of a new dict or set of the event's own."""
        return self.leave_if_null(self.call("ss_table_copy", POINTER, self.pointer))

    def update(self, given: Value) -> None:
        """By another one of the event's own, at this address."""
        self.leave_unless(self.call("ss_table_update", BIT, self.pointer, given))

    def change(self, given: Value, operation: int) -> None:
        """By another one of the event's own: ``enum ss_set_operation``."""
        self.leave_unless(self.call("ss_set_change", BIT, self.pointer, given, I32(operation)))

    def own(self) -> Value:
        """The address as that of one of the event's own, to be read."""
        return self.pointer

    def begin_walk(self) -> Value:
        """What a walk remembers."""
        return self.member("changes")

    def first_position(self, backwards: bool) -> Value:
        """Where a walk is when it begins."""
        return self.member("filled") if backwards else I64(0)

    def fault_if_changed(self, began: Value) -> None:
        changed = self.builder.icmp_unsigned("!=", self.member("changes"), began)
        self.fault_if(changed, RuntimeError)

    def next_entry(self, began: Value, position: Value) -> tuple[Value, Value]:
        """The next entry of a walk, and whether there is one; a fault where keys have come or gone
        since it began. ``position``: where it is."""
        self.fault_if_changed(began)
        entry = self.call("ss_table_next", _WORDS, self.pointer, position)
        return entry, self.builder.not_(self.is_null(entry))

    def entry_before(self, began: Value, position: Value) -> tuple[Value, Value]:
        """Likewise, of a walk from the last entry to the first."""
        builder = self.builder
        self.fault_if_changed(began)
        slot = cgutils.alloca_once(builder, _WORDS)
        look, done = (builder.append_basic_block(name) for name in ("look", "done"))
        builder.branch(look)
        builder.position_at_end(look)
        at = builder.load(position)
        builder.store(_WORDS(None), slot)
        with builder.if_then(builder.icmp_unsigned("!=", at, I64(0))):
            at = builder.sub(at, I64(1))
            builder.store(at, position)
            first = builder.mul(at, self.member("entry_words"))
            entry = builder.gep(self.member("entries", _WORDS), [first], inbounds=True)
            builder.store(entry, slot)
            removed = builder.icmp_unsigned("==", builder.load(entry), I64(0))
            builder.cbranch(removed, look, done)
        builder.branch(done)
        builder.position_at_end(done)
        found = builder.load(slot)
        return found, builder.not_(self.is_null(found))

    def value_address(self, entry: Value) -> Value:
        return self.builder.gep(entry, [I64(1 + width_of(self.type.key_type))], inbounds=True)

    def key_of(self, entry: Value) -> Value:
        address = self.builder.gep(entry, [I64(1)], inbounds=True)
        return unpack(
            self, self.type.key_type, self.words_at(address, width_of(self.type.key_type))
        )

    def value_of(self, entry: Value) -> Value:
        words = self.words_at(self.value_address(entry), width_of(self.type.value_type))
        return unpack(self, self.type.value_type, words)


WRITERS: dict[type, type[Table]] = {}
"""What writes the instructions about a kind of dict or set, if not :class:`Table`."""


def table_of(context: Any, builder: Any, of: types.Type, pointer: Value) -> Table:
    """A writer of instructions about a dict or set, the event's own or another."""
    return WRITERS.get(type(resolved(of)), Table)(context, builder, of, pointer)


def _leaf_types(of: types.Type) -> list[types.Type]:
    of = resolved(of)
    if isinstance(of, types.BaseTuple):
        return [leaf for part in of for leaf in _leaf_types(part)]
    return [of]


def keys(of: TableType, given: types.Type) -> types.Type:
    """What the keys of an event's own dict or set, a local table, are after one was given.

    Refuses what is no key, or does not fit.
    """
    if of.is_declared:
        return of.key_as_declared(given)
    what = "a dict" if isinstance(of, DictType) else "a set"
    key = storable(given.of if isinstance(given, NullableType) else given, what)
    leaves = _leaf_types(key)
    if any(isinstance(leaf, LocalType) for leaf in leaves):
        raise refuse(f"{key} is a key: keys are numbers, strings and tuples of these")
    record = next((leaf for leaf in leaves if isinstance(leaf, RecordType)), None)
    if record is not None:
        fields = ", ".join(f"x.{name}" for name in record.shape.names)
        raise refuse(
            f"a key of {what} is a record of {record.class_name}, which can change: keys are "
            f"numbers, strings and tuples of these, like ({fields},)"
        )
    found = meet(of.key_type, key)
    if found is None:
        raise refuse(
            f"the keys of {what} are {of.key_type}, but one is {key}: give all keys the same type"
        )
    return found


def values(of: DictType, given: types.Type) -> types.Type:
    """What the values of an event's own dict, a local table, are after one was given."""
    if of.is_declared:
        return of.value_as_declared(given)
    value = storable(given, "a dict")
    found = meet(of.value_type, value)
    if found is None:
        raise refuse(
            f"the values of a dict are {of.value_type}, but one is {value}: give all values the "
            "same type"
        )
    return found


# ---- making one ----

dict_new = Core("dict_new", "write {}")
set_new = Core("set_new", "write set()")
dict_of = Core("dict_of", "write {key: value}")
set_of = Core("set_of", "write {a, b}")


def _new_table(context: Any, builder: Any, of: types.Type, run: Value) -> Table:
    made = Table(context, builder, of, run)
    made.pointer = made.leave_if_null(made.call("ss_table_new", POINTER, run))
    return made


def _makes(core: Core, kind: Any, parts: int) -> None:
    @core.rule
    def new(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], RunType):
            return None

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            return _new_table(context, builder, sig.return_type, args[0]).pointer

        return kind(*(Unknown() for _ in range(parts))), args, code


_makes(dict_new, DictType, 2)
_makes(set_new, SetType, 1)


@dict_of.rule
def _dict_of(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """The keys and values in turn."""
    run, *given = args
    made = DictType(Unknown(), Unknown())
    for key, value in zip(given[::2], given[1::2], strict=True):
        made = DictType(keys(made, key), values(made, value))

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        table = _new_table(context, builder, sig.return_type, args[0])
        for key, value in zip(args[1::2], args[2::2], strict=True):
            table.set(key, value)
        return table.pointer

    return made, (run, *[made.key_type, made.value_type] * (len(given) // 2)), code


@set_of.rule
def _set_of(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    run, *given = args
    made = SetType(Unknown())
    for key in given:
        made = SetType(keys(made, key))

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        table = _new_table(context, builder, sig.return_type, args[0])
        for key in args[1:]:
            table.put(key)
        return table.pointer

    return made, (run, *[made.key_type] * len(given)), code


# ---- items ----

dict_set = Core("dict_set", "write x[key] = value")
set_add = method("add")


@dict_set.rule
def _set_key(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Stores a key and a value in a local table that is a dict."""
    if not isinstance(args[0], DictType):
        return None
    key, value = keys(args[0], args[1]), values(args[0], args[2])

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        table_of(context, builder, sig.args[0], args[0]).set(args[1], args[2])
        return context.get_dummy_value()

    return types.none, (args[0], key, value), code


@set_add.rule
def _add(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 2 or not isinstance(args[0], SetType):
        return None
    key = keys(args[0], args[1])

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        table_of(context, builder, sig.args[0], args[0]).put(args[1])
        return context.get_dummy_value()

    return types.none, (args[0], key), code


@infer_global(operator.getitem)
class _Item(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        of, key = args
        if isinstance(of, SetType):
            raise refuse("a set has no items: iterate over it, or write x in s")
        if not isinstance(of, DictType):
            return None
        taken = keys(of, key)
        return signature(known(of.value_type, "a dict"), of, taken)


@lower_builtin(operator.getitem, DictType, types.Any)
def _item(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    table = table_of(context, builder, sig.args[0], args[0])
    entry = table.find(args[1])
    table.fault_if_missing(entry, args[1])
    return table.value_of(entry)


@SET_ITEM.append
def _set_dict_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``x[key] = value`` of a local table that is a dict, or of another dict; value first."""
    value, of, key = args
    if not isinstance(of, DictType):
        return None
    if of.is_declared and isinstance(value, types.Optional) and not may_be_none(key):
        return of_values(_set_one)(context, args)  # as in a field that holds one value
    return _set_one(context, args)


def _set_one(context: Any, args: Sequence[types.Type]) -> Meaning:
    value, of, key = args
    assert isinstance(of, DictType)
    key, value = keys(of, key), values(of, value)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        table_of(context, builder, sig.args[1], args[1]).set(args[2], args[0])
        return context.get_dummy_value()

    return types.void, (value, of, key), code


# ---- going through one ----


@lower_builtin("getiter", TableType)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    return start_walk(context, builder, sig.return_type, args[0])


def is_backwards(of: LocalIterator) -> bool:
    return of.walk.endswith("backwards")


def start_walk(context: Any, builder: Any, of: LocalIterator, pointer: Value) -> Value:
    table = table_of(context, builder, of.walked, pointer)
    made = cgutils.create_struct_proxy(of)(context, builder)
    made.walked = pointer
    made.next = cgutils.alloca_once_value(builder, table.first_position(is_backwards(of)))
    made.changes = table.begin_walk()
    return made._getvalue()


def _next_entry(context: Any, builder: Any, of: LocalIterator, iterator: Any, result: Any) -> None:
    table = table_of(context, builder, of.walked, iterator.walked)
    step = table.entry_before if is_backwards(of) else table.next_entry
    entry, more = step(iterator.changes, iterator.next)
    result.set_valid(more)
    with builder.if_then(more):
        if of.walk.startswith("keys"):
            result.yield_(table.key_of(entry))
        elif of.walk.startswith("values"):
            result.yield_(table.value_of(entry))
        else:
            pair = [table.key_of(entry), table.value_of(entry)]
            result.yield_(context.make_tuple(builder, of.yield_type, pair))


for _walk in ("keys", "values", "pairs"):
    STEPS |= {_walk: _next_entry, f"{_walk} backwards": _next_entry}
