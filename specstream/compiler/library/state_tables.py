"""Dicts and sets of the state in Numba's terms (``keyed.c``).

They are dicts and sets like the event's own, and the same rules say what can be done with them;
what differs is written here. Words of keys and values are words of the state, loaded and stored as
such, so that every variant and protocol has them. Where two meet, or one is kept, it is copied to
one of the event's own first.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import models, register_model

from specstream._native import ffi, lib
from specstream.compiler.backend.instructions import I32, I64, POINTER, Value
from specstream.compiler.backend.local_types import DictType, SetType
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import NullableType, may_be_none
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.numba_types import (
    ContainerType,
    RecordType,
    RunType,
    SlotType,
    StateType,
    is_alone,
    shape_type,
)
from specstream.compiler.backend.overloads import Meaning, called
from specstream.compiler.backend.polling import poll_while
from specstream.compiler.backend.scalar_kinds import check_kind
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.local_table_methods import DictView, collect_keys, collect_pairs
from specstream.compiler.library.local_tables import (
    WRITERS,
    Table,
    dict_set,
    keys,
    set_add,
)
from specstream.compiler.library.method_dispatch import method
from specstream.compiler.library.reductions import contains
from specstream.compiler.library.state_fields import CONTAINER_TYPES
from specstream.compiler.library.state_records import SLOT_RULES, Records, make_slot, stored_record
from specstream.declarations.containers import Shape
from specstream.declarations.element_types import storage_of
from specstream.declarations.state_layout import Field

__all__ = [
    "Declared",
    "StateDictType",
    "StateSetType",
    "StateTable",
    "as_declared",
]

NOWHERE = I64(-1)
INT = storage_of(int, "a time")
_VOID = ir.VoidType()
_MAY_BE_NONE = (
    "gets a value that may be None where it stands; use it in an if x is not None: block, or "
    "behind if x is None: return or x = 0, or write int(x), which raises TypeError for None"
)


def _without_null(given: types.Type) -> types.Type:
    """The type of what a dict or set of the state is given.

    A null that was tested for None is a value, as in lists."""
    given = types.unliteral(given)
    return given.of if isinstance(given, NullableType) else given


def as_declared(shape: Shape, given: types.Type, what: str) -> types.Type:
    """The declared type in which a dict or set of the state keeps a key or value.

    Refuses what would lose something or has another form."""
    given = _without_null(given)
    if may_be_none(given):
        raise refuse(f"{what} {_MAY_BE_NONE}")
    is_tuple = isinstance(given, types.BaseTuple)
    if is_tuple != shape.is_tuple or (
        not is_tuple and isinstance(given, TextType) != shape.has_text
    ):
        found = f"a tuple of {len(given)}" if is_tuple else given
        raise refuse(
            f"{what} is declared {shape} and gets {found}: declare it as what it is, such as str "
            "or (int, str), or give what was declared"
        )
    if not shape.is_tuple:
        check_kind(given, shape.parts[0].number, what, shape.parts[0].name, keeps_strings=False)
        return shape_type(shape)
    if not isinstance(given, types.BaseTuple) or len(given) != len(shape.parts):
        raise refuse(
            f"{what} is declared {shape} and gets {given}; give a tuple of {len(shape.parts)}"
        )
    for place, (part, one) in enumerate(zip(shape.parts, given, strict=True)):
        named = f"part {place} of {what}"
        if may_be_none(_without_null(one)):
            raise refuse(f"{named} {_MAY_BE_NONE}")
        is_text = part.number == "str"
        check_kind(_without_null(one), part.number, named, part.name, keeps_strings=is_text)
    return shape_type(shape)


class Declared(ContainerType):
    """What dicts and sets of the state have beside what all have."""

    is_declared = True

    def __init__(self, state: StateType, field: Field) -> None:
        assert field.container is not None
        self.state, self.field, self.container = state, field, field.container
        self.number, self.variant = state.layout.container_number(field), state.variant
        self._key = shape_type(self.container.key)
        self.written = f"state.{field.name}"
        name = f"specstream.state_{self.container.kind}({field.name}, {state.name})"
        types.Type.__init__(self, name)

    def key_as_declared(self, given: types.Type) -> types.Type:
        return as_declared(self.container.key, given, f"a key of state.{self.field.name}")

    def value_as_declared(self, given: types.Type) -> types.Type:
        shape, what = self.container.value, f"a value of state.{self.field.name}"
        if shape.record is not None:
            return stored_record(shape, given, self.variant, what)
        return as_declared(self.container.value, given, f"a value of state.{self.field.name}")

    def with_parts(self, *parts: types.Type) -> Any:
        return self


class StateDictType(Declared, DictType):
    """A dict of the state."""

    def __init__(self, state: StateType, field: Field) -> None:
        super().__init__(state, field)
        self._value = shape_type(self.container.value, state.variant)


class StateSetType(Declared, SetType):
    """A set of the state."""


for _type in (StateDictType, StateSetType):
    register_model(_type)(models.OpaqueModel)
CONTAINER_TYPES["dict"] = StateDictType
CONTAINER_TYPES["set"] = StateSetType


class StateTable(Table):
    """Writes instructions about a dict or set of the state; ``pointer`` is the run's, and an entry
    is the number of its first word."""

    def __init__(self, context: Any, builder: Any, of: types.Type, pointer: Value) -> None:
        super().__init__(context, builder, of, pointer)
        assert isinstance(of, Declared)
        self.of = of
        self.container = of.container
        self.run = Run(context, builder, pointer)
        self.number = self.run.moved(of, "number", of.number)

    # -- words --

    def words_of(self, shape: Shape, value: Value) -> list[Value]:
        """A key as it lies in the state."""
        parts = (
            [self.builder.extract_value(value, at) for at in range(len(shape.parts))]
            if shape.is_tuple
            else [value]
        )
        return [
            self.run.narrow(storage, part) for storage, part in zip(shape.parts, parts, strict=True)
        ]

    def of_parts(self, shape: Shape, parts: list[Value]) -> Value:
        if not shape.is_tuple:
            return parts[0]
        return self.context.make_tuple(self.builder, shape_type(shape), parts)

    def state_call(self, symbol: str, result: Any, *arguments: Value) -> Value:
        """Calls C, which may end the run."""
        found = self.call(symbol, result, self.pointer, self.number, *arguments)
        self.run.leave_if_verdict()
        return found

    # -- what can be done --

    def run_of(self) -> Run:
        return self.run

    def is_null(self, entry: Value) -> Value:
        return self.builder.icmp_unsigned("==", entry, NOWHERE)

    def count(self) -> Value:
        return self.state_call("ss_keyed_count", I64)

    def packed_key(self, key: Value) -> Value:
        return self.in_memory(self.words_of(self.container.key, key))

    def find(self, key: Value) -> Value:
        words = self.words_of(self.container.key, key)
        return self.found(words, self.in_memory(words))

    def found(self, words: list[Value], packed: Value) -> Value:
        """The entry of a key; without a call where the entry was looked up ahead and is there."""
        of, builder = self.of, self.builder
        is_ahead = any(of.field.name == name for name, _ in of.state.program.look_ups)
        if not (is_ahead and is_alone(of.variant)):
            return self.looked_up(words, packed)
        run = self.run
        ahead = run.load_member("ahead", I32.as_pointer(), invariant=True)
        row = builder.and_(run.load_member("event"), I64(lib.SS_AHEAD - 1))
        at = builder.add(row, builder.mul(self.number, I64(lib.SS_AHEAD)))
        hint = builder.zext(builder.load(builder.gep(ahead, [at], inbounds=True)), I64)
        there = builder.icmp_unsigned("!=", hint, I64(0))
        state = builder.bitcast(run.load_member("state", POINTER, invariant=True), I64.as_pointer())
        stamp = builder.load(builder.gep(state, [hint], inbounds=True))
        there = builder.and_(there, builder.icmp_unsigned("!=", stamp, I64(0)))
        for at, word in enumerate(words):
            key = builder.load(builder.gep(state, [builder.add(hint, I64(1 + at))], inbounds=True))
            there = builder.and_(there, builder.icmp_unsigned("==", key, word))
        slot = cgutils.alloca_once(builder, I64)
        with builder.if_else(there) as (known, unknown):
            with known:
                builder.store(hint, slot)
            with unknown:
                builder.store(self.looked_up(words, packed), slot)
        return builder.load(slot)

    def looked_up(self, words: list[Value], packed: Value) -> Value:
        """Most are looked up twice, and the second time without a call."""
        if len(words) > 2:
            return self.state_call("ss_keyed_find", I64, packed)
        builder, run = self.builder, self.run
        same = builder.icmp_unsigned(
            "==", run.load_member("found_in"), builder.add(self.number, I64(1))
        )
        kept = run.member_address("found_key", ir.ArrayType(I64, 2))
        for at, word in enumerate(words):
            known = builder.load(builder.gep(kept, [I64(0), I64(at)], inbounds=True))
            same = builder.and_(same, builder.icmp_unsigned("==", known, word))
        slot = cgutils.alloca_once(builder, I64)
        with builder.if_else(same) as (remembered, looked_up):
            with remembered:
                builder.store(run.load_member("found_entry"), slot)
            with looked_up:
                builder.store(self.state_call("ss_keyed_find", I64, packed), slot)
        return builder.load(slot)

    def put(self, key: Value) -> tuple[Value, Value]:
        builder = self.builder
        words = self.words_of(self.container.key, key)
        packed = self.in_memory(words)
        found = self.found(words, packed)
        is_new = self.is_null(found)
        before = builder.block
        with builder.if_then(is_new):
            made = self.inserted(packed)
            inserting = builder.block
        entry = builder.phi(I64)
        entry.add_incoming(found, before)
        entry.add_incoming(made, inserting)
        if not self.container.value.parts:
            self.put_time(entry)
        return entry, is_new

    def inserted(self, packed: Value) -> Value:
        """The entry of a new key. That the container is full is an error like others: a handler may
        go on."""
        run = self.run
        made = self.call("ss_keyed_insert", I64, self.pointer, self.number, packed)
        with self.builder.if_then(self.is_null(made), likely=False):
            raised = run.load_member("raised", ir.IntType(32))
            full = self.builder.icmp_unsigned("==", raised, I32(lib.SS_FULL))
            with self.builder.if_then(full):
                run.store_member("verdict", I32(lib.SS_COMPLETED))
            self.fault_if(full, OverflowError)
        run.leave_if_verdict()
        return made

    def set(self, key: Value, value: Value) -> None:
        entry, _ = self.put(key)
        self.put_value(entry, value)

    def value_words(self, entry: Value) -> list[Value]:
        first = 1 + self.container.key.words
        return [
            self.builder.add(entry, I64(first + at)) for at in range(self.container.value.words)
        ]

    @property
    def records(self) -> Records | None:
        """Where the values are records."""
        of = self.of.value_type
        if not isinstance(of, RecordType):
            return None
        return Records(self.context, self.builder, of, self.pointer)

    def slot_of(self, entry: Value) -> Value:
        """Where the value of an entry is."""
        return self.builder.add(entry, I64(1 + self.container.key.words))

    def put_time(self, entry: Value) -> None:
        """The time of the last write, of what expires."""
        if not self.container.expires:
            return
        builder, run = self.builder, self.run
        columns = run.load_member("columns", POINTER.as_pointer(), invariant=True)
        times = builder.bitcast(builder.load(columns), I64.as_pointer())
        row = run.load_member("event")
        time = builder.load(builder.gep(times, [row], inbounds=True))
        word = builder.add(entry, I64(self.container.entry_words - 1))
        if is_alone(self.of.variant):
            # The heap of what expires counts on times that grow; otherwise it has to be told.
            last = builder.load(run.word_address("state", word))
            with builder.if_then(builder.icmp_signed("<", time, last), likely=False):
                self.state_call("ss_timers_rewound", _VOID, entry)
        run.store("state", self.of.variant, INT, word, time)

    def put_value(self, entry: Value, value: Value) -> None:
        self.put_time(entry)
        shape = self.container.value
        if self.records is not None:
            self.records.put(self.slot_of(entry), value)
            return
        for at, (storage, word) in enumerate(
            zip(shape.parts, self.value_words(entry), strict=True)
        ):
            part = self.builder.extract_value(value, at) if shape.is_tuple else value
            self.run.store("state", self.of.variant, storage, word, part)

    def key_of(self, entry: Value) -> Value:
        shape = self.container.key
        parts = []
        for at, storage in enumerate(shape.parts):
            word = self.state_call("ss_keyed_key", I64, entry, I64(at))
            parts.append(self.run.widen(storage, word))
        return self.of_parts(shape, parts)

    def value_of(self, entry: Value) -> Value:
        shape = self.container.value
        if not shape.parts:
            return self.context.get_dummy_value()
        if self.records is not None:
            return self.records.object_of(self.slot_of(entry))
        parts = [
            self.run.load("state", self.of.variant, storage, word)
            for storage, word in zip(shape.parts, self.value_words(entry), strict=True)
        ]
        return self.of_parts(shape, parts)

    def remove(self, entry: Value) -> None:
        if self.records is not None:
            self.records.leave(self.slot_of(entry))
        self.state_call("ss_keyed_remove", _VOID, entry)

    def clear(self) -> None:
        if self.records is not None:
            region = self.run.moved(self.of, "region", self.container.region)
            self.records.leave_all(region, I64(self.container.region_words))
        self.state_call("ss_keyed_clear", _VOID)

    # -- going through it --

    def _walk(self) -> Value:
        return self.state_call("ss_keyed_entries", POINTER)

    def _walk_member(self, walk: Value, name: str) -> Value:
        offset = I64(ffi.offsetof("struct ss_keyed_walk", name))
        address = self.builder.gep(walk, [offset], inbounds=True)
        return self.builder.load(self.builder.bitcast(address, I64.as_pointer()))

    def _walk_entry(self, walk: Value, at: Value) -> Value:
        entries = self.builder.inttoptr(self._walk_member(walk, "entries"), I64.as_pointer())
        return self.builder.load(self.builder.gep(entries, [at], inbounds=True))

    def last(self) -> Value:
        builder = self.builder
        walk = self._walk()
        count = self._walk_member(walk, "count")
        before = builder.block
        with builder.if_then(builder.icmp_unsigned("!=", count, I64(0))):
            last = self._walk_entry(walk, builder.sub(count, I64(1)))
            there = builder.block
        entry = builder.phi(I64)
        entry.add_incoming(NOWHERE, before)
        entry.add_incoming(last, there)
        return entry

    def begin_walk(self) -> Value:
        return self.builder.ptrtoint(self._walk(), I64)

    def first_position(self, backwards: bool) -> Value:
        return I64(0)

    def next_entry(self, began: Value, position: Value) -> tuple[Value, Value]:
        return self._stepped(began, position, False)

    def entry_before(self, began: Value, position: Value) -> tuple[Value, Value]:
        return self._stepped(began, position, True)

    def _stepped(self, began: Value, position: Value, backwards: bool) -> tuple[Value, Value]:
        """``position`` counts the entries that were met."""
        builder = self.builder
        walk = builder.inttoptr(began, POINTER)
        now = self.state_call("ss_keyed_changes", I64)
        changed = builder.icmp_unsigned("!=", now, self._walk_member(walk, "changes"))
        self.fault_if(changed, RuntimeError)
        at = builder.load(position)
        count = self._walk_member(walk, "count")
        more = builder.icmp_unsigned("<", at, count)
        slot = cgutils.alloca_once(builder, I64)
        with builder.if_then(more):
            place = builder.sub(builder.sub(count, I64(1)), at) if backwards else at
            builder.store(self._walk_entry(walk, place), slot)
            builder.store(builder.add(at, I64(1)), position)
        return builder.load(slot), more

    # -- where it meets one of the event's own --

    def _called(self, rule: Any, given: Sequence[types.Type], args: Sequence[Value]) -> Value:
        result, taken, code = rule(self.context.typing_context, given)
        return code(self.context, self.builder, result(*taken), args)

    def copied(self) -> Value:
        run = RunType(self.of.variant)
        if isinstance(self.of, DictType):
            pairs = DictView(self.of, "pairs")
            return self._called(collect_pairs, (run, pairs), [self.pointer, self.pointer])
        return self._called(collect_keys, (run, self.of), [self.pointer, self.pointer])

    def own(self) -> Value:
        return self.copied()

    def _by(self, rule: Any, given: Value) -> None:
        of = self.of
        kind = DictType if isinstance(of, DictType) else SetType
        taken = (RunType(of.variant), of, kind(*of.parts))
        self._called(rule, taken, [self.pointer, self.pointer, given])

    def update(self, given: Value) -> None:
        self._by(_UPDATED if isinstance(self.of, DictType) else _UNITED, given)

    def change(self, given: Value, operation: int) -> None:
        if operation == lib.SS_SET_UNION:
            self.update(given)
        else:
            self._by(_CHANGED[operation], given)


_items, _copy, _discard = method("items"), method("copy"), method("discard")


def _updated(run: Any, of: Any, given: Any) -> Any:
    for key, value in _items(given):
        poll_while(run)
        dict_set(of, key, value)


def _united(run: Any, of: Any, given: Any) -> Any:
    for one in given:
        poll_while(run)
        set_add(of, one)


def _kept(run: Any, of: Any, given: Any) -> Any:
    for one in _copy(of):
        poll_while(run)
        if not contains(one, given):
            _discard(of, one)


def _without(run: Any, of: Any, given: Any) -> Any:
    for one in given:
        poll_while(run)
        _discard(of, one)


def _in_one(run: Any, of: Any, given: Any) -> Any:
    for one in given:
        poll_while(run)
        if contains(one, of):
            _discard(of, one)
        else:
            set_add(of, one)


@SLOT_RULES.append
def _slot_of_value(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``d[key].name`` of a dict of the state, a table: the place where it has the value."""
    of, key = args
    if not isinstance(of, StateDictType) or not isinstance(of.value_type, RecordType):
        return None
    result = SlotType(of.value_type.shape, of.variant)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        table = StateTable(context, builder, of, args[0])
        entry = table.find(args[1])
        table.fault_if_missing(entry, args[1])
        return make_slot(context, builder, result, args[0], table.slot_of(entry))

    return result, (of, keys(of, key)), code


_UPDATED, _UNITED = called(compiled(_updated)), called(compiled(_united))
_CHANGED = {
    lib.SS_SET_INTERSECTION: called(compiled(_kept)),
    lib.SS_SET_DIFFERENCE: called(compiled(_without)),
    lib.SS_SET_SYMMETRIC: called(compiled(_in_one)),
}
WRITERS[StateDictType] = WRITERS[StateSetType] = StateTable
