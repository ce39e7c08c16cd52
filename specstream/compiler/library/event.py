"""The running event in Numba's terms: its columns, their nulls, and its order key."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import (
    AttributeTemplate,
    infer_getattr,
)
from numba.extending import (
    intrinsic,
    lower_getattr_generic,
)

from specstream.columns.phases import first_column
from specstream.compiler.backend.exception_status import STATUS, raise_known
from specstream.compiler.backend.instructions import BIT, F64, I64, POINTER, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import (
    EventType,
)
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS
from specstream.compiler.language.hints import names_it_has
from specstream.compiler.language.reserved import RESERVED_COLUMNS
from specstream.compiler.language.typing_refusals import refuse, without_literals
from specstream.compiler.library.event_lists import list_type, write_list
from specstream.declarations.derived import Place
from specstream.declarations.schema import Kind

__all__ = [
    *("READERS", "column_number", "event_column", "event_is_null"),
    *("event_null", "null_bit", "order_key", "phase_column"),
]


@infer_getattr
class _EventAttribute(AttributeTemplate):
    key = EventType

    def generic_resolve(self, event: EventType, name: str) -> types.Type:
        if name in ("timestamp", "source", "sequence"):
            return types.int64
        place = event.schema.derived_place(name)
        if place is not None:
            return _derived_type(place)
        kind = event.schema.kind(name)
        if kind is None and (own := [one for one in event.names if one.startswith(f"{name}.")]):
            raise refuse(
                f"input {name!r} is read from an expression that is not a name for the event; "
                f"write event.{own[0]}, where event is a parameter or a name for it"
            )
        if kind is None:
            raise refuse(f"{event.lacks} {name!r}; {names_it_has(name, event.names)}")
        return NUMBA_KINDS[kind]


READERS: dict[type, Any] = {}
"""What is done for an event of another kind, by its type. Each is made of (context, builder, type,
value), and has ``run``, ``column``, ``null``, ``seed`` and ``key``."""


@lower_getattr_generic(EventType)
def _event_getattr(context: Any, builder: Any, event: EventType, value: Value, name: str) -> Value:
    reader = READERS.get(type(event))
    if reader is not None:
        read: Value = reader(context, builder, event, value).column(name)
        return read
    return event_column(Run(context, builder, value), event, name)


def event_column(run: Run, event: EventType, name: str, row: Value | None = None) -> Value:
    """A column, or a derived value, of the running row of the batch; where that is a phase, of one
    of its events, whose ``row`` is given."""
    place = event.schema.derived_place(name)
    if place is None:
        return _event_column(run, event, name, row)
    return _derived(run, event, place, row)


def _derived_type(place: Place) -> types.Type:
    if place.part is None:
        return types.boolean
    if place.part.kind == "list":
        return list_type(place.part)
    kind = NUMBA_KINDS[place.part.kind]
    return types.Optional(kind) if place.part.nullable else kind


def _derived(run: Run, event: EventType, place: Place, row: Value | None) -> Value:
    """A derived value, or false where only that there is one is asked; a fault where there is
    none, but an exception."""
    first, row = first_column(event.schema), run.load_member("event") if row is None else row
    raised = _element(run, row, first + place.raised, "int")
    with run.builder.if_then(run.builder.icmp_unsigned("!=", raised, I64(0)), likely=False):
        if place.tells:
            text = _element(run, row, first + place.raised + 1, "int")
            run.store_told(("str",), [text])
        raise_known(run.builder, run.builder.trunc(raised, STATUS))
    if place.part is None:
        return BIT(0)
    if place.part.kind == "list":
        return write_list(
            run, list_type(place.part), _element(run, row, first + place.values, "int")
        )
    value = _element(run, row, first + place.values, place.part.kind)
    if not place.part.nullable:
        return value
    optional = run.context.make_helper(run.builder, _derived_type(place))
    optional.data = value
    is_none = _element(run, row, first + place.values + 1, "bool")
    optional.valid = run.builder.not_(is_none)
    return optional._getvalue()


def column_number(event: EventType, name: str) -> int:
    """Which of the run's columns a column of the event is."""
    return first_column(event.schema) + event.schema.names.index(name)


def phase_column(run: Run, number: int) -> Value:
    """One of the numbers that a phase has in front of the columns of its events."""
    return _element(run, run.load_member("event"), number, "int")


def _event_column(run: Run, event: EventType, name: str, row: Value | None = None) -> Value:
    builder = run.builder
    if name in RESERVED_COLUMNS:
        return phase_column(run, RESERVED_COLUMNS.index(name))
    if row is None:
        row = run.load_member("event")
    if name == "sequence":
        return builder.add(row, run.load_member("first_sequence", invariant=True))
    number = event.schema.names.index(name)
    return _element(run, row, column_number(event, name), event.schema.kinds[number])


def _element(run: Run, row: Value, number: int, kind: Kind) -> Value:
    """What a column has in a row; its bytes are bools."""
    builder = run.builder
    columns = run.load_member("columns", POINTER.as_pointer(), invariant=True)
    column = builder.load(builder.gep(columns, [I64(number)], inbounds=True))
    run.invariant(column)
    width = ir.IntType(8) if kind == "bool" else F64 if kind == "float" else I64
    elements = builder.bitcast(column, width.as_pointer())
    element = builder.load(builder.gep(elements, [row], inbounds=True))
    run.invariant(element)
    if kind == "bool":
        return builder.icmp_unsigned("!=", element, width(0))
    return element


@intrinsic(prefer_literal=True)
def event_is_null(typing_context: Any, event: Any, name: Any) -> Any:
    """Whether a nullable column is null; ``check.py`` has seen to it that there is such a one."""
    if not isinstance(event, EventType):
        raise refuse(f"is_null is a method of the event, not of {event}")
    if not isinstance(name, types.StringLiteral):
        raise without_literals()

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return null_bit(context, builder, event, args[0], name.literal_value)

    return types.boolean(event, name), code


def null_bit(context: Any, builder: Any, event: EventType, pointer: Value, name: str) -> Value:
    """Whether a nullable column is null."""
    reader = READERS.get(type(event))
    if reader is not None:
        read: Value = reader(context, builder, event, pointer).null(name)
        return read
    return event_null(Run(context, builder, pointer), event, name)


def event_null(run: Run, event: EventType, name: str, row: Value | None = None) -> Value:
    """The same of the running row of the batch, or of an event of the phase."""
    schema = event.schema
    number = first_column(schema) + len(schema) + schema.nullable.index(name)
    return _element(run, run.load_member("event") if row is None else row, number, "bool")


def order_key(run: Run, event: EventType) -> list[Value]:
    """The key of the running row of the batch."""
    return [_event_column(run, event, name) for name in ("timestamp", "source", "sequence")]
