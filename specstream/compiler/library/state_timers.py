"""Timers in Numba's terms: the field of the state that holds them, and the one that fires.

The field is a table of the state whose keys have a time each (:mod:`.state_tables`); setting one
goes by the runtime (``timer_heap.c``), which has to know of it. What ``on_timer`` gets is an event
of its own kind: one row whose columns are the time of the firing, the null of a source, the timer's
time, and the words of its key as they lie in the state.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numba.core import types
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
)
from numba.extending import lower_getattr, models, register_model

from specstream._native import lib
from specstream.compiler.backend.instructions import I32, I64, POINTER, Value
from specstream.compiler.backend.local_types import TableType
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import present
from specstream.compiler.backend.numba_types import EventType, StateType, shape_type
from specstream.compiler.backend.overloads import Meaning
from specstream.compiler.backend.scalar_kinds import check_kind, convert
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import TIMER_NAMES, refuse
from specstream.compiler.library.item_assignment import SET_ITEM
from specstream.compiler.library.local_list_methods import delete_item
from specstream.compiler.library.local_table_methods import get_or_none
from specstream.compiler.library.local_tables import WRITERS, Table, keys, table_of
from specstream.compiler.library.method_dispatch import adding, written_by
from specstream.compiler.library.state_fields import CONTAINER_TYPES
from specstream.compiler.library.state_tables import Declared, StateTable
from specstream.declarations.containers import Shape
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Field

__all__ = ["StateTimersType", "TimerType", "timer_slot"]

# Of the row that a firing timer is: behind the reserved columns and its time.
_FIRST_KEY_COLUMN = 3

_meaning = written_by(table_of)


class StateTimersType(Declared, TableType):
    """The timers of an operator."""

    methods_of = "timers"

    def __init__(self, state: StateType, field: Field) -> None:
        super().__init__(state, field)
        self.key_type = shape_type(self.container.key)
        self.value_type = types.int64


register_model(StateTimersType)(models.OpaqueModel)
CONTAINER_TYPES["timers"] = StateTimersType
WRITERS[StateTimersType] = StateTable


@adding(StateTimersType, "set", form="set(key, at)")
def _set(of: StateTimersType, key: types.Type, at: types.Type) -> Meaning:
    what = f"the time of a timer of state.{of.field.name}"
    if isinstance(present(at), TextType):
        raise refuse(
            f"{what} is an int in the unit of event.timestamp, and is given a string: write it "
            "like event.timestamp + 30"
        )
    check_kind(types.unliteral(at), "int", what)
    given = types.unliteral(at)

    def write(table: StateTable, sig: Any, args: Sequence[Value]) -> Value:
        builder = table.builder
        time = convert(table.context, builder, args[2], given, "int")
        answer = table.call(
            "ss_timer_set", I64, table.pointer, table.number, table.packed_key(args[1]), time
        )
        full = builder.icmp_unsigned("==", answer, I64(lib.SS_TIMERS_FULL))
        with builder.if_then(full, likely=False):
            # An error like others: a handler may go on.
            table.run.store_member("verdict", I32(lib.SS_COMPLETED))
        table.fault_if(full, OverflowError)
        table.run.leave_if_verdict()
        early = builder.icmp_unsigned("==", answer, I64(lib.SS_TIMER_TOO_EARLY))
        table.fault_if(early, ValueError)

    return _meaning(types.none, (of, keys(of, key), given), write)


@adding(StateTimersType, "cancel", form="cancel(key)")
def _cancel(of: StateTimersType, key: types.Type) -> Meaning:
    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry = table.find(args[1])
        there = table.builder.not_(table.is_null(entry))
        with table.builder.if_then(there):
            table.remove(entry)

    return _meaning(types.none, (of, keys(of, key)), write)


@adding(StateTimersType, "get", form="get(key)")
def _get(of: StateTimersType, key: types.Type) -> Meaning:
    return get_or_none(of, key, ())


@delete_item.rule
def _delete(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if isinstance(args[0], StateTimersType):
        state = f"state.{args[0].field.name}"
        raise refuse(f"a timer of {state} is not deleted as an item: write {state}.cancel(key)")
    return None


@SET_ITEM.append
def _set_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if isinstance(args[1], StateTimersType):
        state = f"state.{args[1].field.name}"
        raise refuse(f"a timer of {state} is not set as an item: write {state}.set(key, at)")
    return None


@infer_global(operator.getitem)
class _Item(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], StateTimersType):
            state = f"state.{args[0].field.name}"
            raise refuse(f"a timer of {state} is not read as an item: write {state}.get(key)")


# ---- the one that fires ----


class TimerType(EventType):
    """What ``on_timer`` gets as its timer.

    Attributes:
        key: what the keys of the timers are.
    """

    methods_of = "timer"

    def __init__(self, schema: Schema, key: Shape) -> None:
        super().__init__(schema)
        self.shape = key
        self.lacks, self.names = "the timer has no", TIMER_NAMES
        types.Type.__init__(self, f"specstream.timer({schema}, {key})")


register_model(TimerType)(models.OpaqueModel)


def _timer_word(run: Run, column: int) -> Value:
    """A word of the state's timer that fires: what it has in a column, as it is a row."""
    builder = run.builder
    columns = run.load_member("columns", POINTER.as_pointer(), invariant=True)
    words = builder.load(builder.gep(columns, [I64(column)], inbounds=True))
    words = builder.bitcast(words, I64.as_pointer())
    return builder.load(builder.gep(words, [run.load_member("event")], inbounds=True))


def timer_slot(run: Run) -> Value:
    """Which of the state's fields of timers it was in, from 0."""
    return _timer_word(run, lib.SS_TIMER_PLACE)


@infer_getattr
class _TimerAttribute(AttributeTemplate):
    key = TimerType

    def resolve_key(self, timer: TimerType) -> types.Type:
        return shape_type(timer.shape)


@lower_getattr(TimerType, "key")
def _timer_key(context: Any, builder: Any, timer: TimerType, value: Value) -> Value:
    run = Run(context, builder, value)
    parts = []
    for at, storage in enumerate(timer.shape.parts):
        parts.append(run.widen(storage, _timer_word(run, _FIRST_KEY_COLUMN + at)))
    if not timer.shape.is_tuple:
        return parts[0]
    return context.make_tuple(builder, shape_type(timer.shape), parts)
