"""``emit`` in Numba's terms: one more row of the output."""

from __future__ import annotations

import re
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import (
    intrinsic,
)

from specstream.compiler.backend.caught import CaughtType, words_of
from specstream.compiler.backend.instructions import BIT, I64, POINTER, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import may_be_none, missing, present, value_or_zero
from specstream.compiler.backend.numba_types import (
    EmitType,
)
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS, check_kind, convert, scalar_kind
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import refuse, without_literals
from specstream.declarations.element_types import Number
from specstream.declarations.forms import head_of
from specstream.declarations.schema import Schema

__all__ = ["KEPT", "WRITERS", "OutputRow", "emit_row"]

KEPT = "~"


class OutputRow:
    """A row at the end of the output."""

    def __init__(self, context: Any, builder: Any, emit: EmitType, value: Value) -> None:
        self.run = Run(context, builder, value)
        self.words = emit.schema.row_words

    def begin(self) -> Value:
        """Makes room; where the row is, of which the first word is written."""
        run, builder = self.run, self.run.builder
        top = run.load_member("emit_top", POINTER)
        following = builder.gep(top, [I64(8 * self.words)], inbounds=True)
        end = run.load_member("emit_end", POINTER)
        with builder.if_then(builder.icmp_unsigned(">", following, end), likely=False):
            grown = run.call("ss_emit_grow", ir.IntType(1), run.pointer)
            run.leave_if(builder.not_(grown))
        self.top = run.load_member("emit_top", POINTER)
        row = builder.bitcast(self.top, I64.as_pointer())
        builder.store(run.load_member("event"), row)
        return row

    def end(self) -> None:
        """Ends a row that ``emit`` writes: the next one begins behind it."""
        following = self.run.builder.gep(self.top, [I64(8 * self.words)], inbounds=True)
        self.run.store_member("emit_top", following)


WRITERS: dict[type, Any] = {}
"""Who writes rows that go elsewhere, by the type of ``emit``; else :class:`OutputRow`."""


@intrinsic
def emit_row(typing_context: Any, emit: Any, names: Any, *values: Any) -> Any:
    """Appends one row: the event's row number, one word per column, and the nulls.

    ``names`` are those of the columns that the values are for, with commas between them; a column
    that is not among them is null, and one of strings that ends with :data:`KEPT` may get a code.
    A value that may be null is of one of Numba's types for that: none, or optional. A formatted
    string is ``name:number``, the number that of its form, and its values are the parts.
    """
    given, order, forms = _checked(emit, names, values)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        writer = WRITERS.get(type(emit), OutputRow)(context, builder, emit, args[0])
        run, row = writer.run, writer.begin()
        row_types = list(sig.args[2])
        row_values = cgutils.unpack_tuple(builder, args[2], len(row_types))
        row_of = dict(zip(order, zip(row_types, row_values, strict=True), strict=True))
        _store_forms(run, emit.schema, row, forms, list(zip(row_types, row_values, strict=True)))
        null_bits = emit.schema.null_bits
        nulls = dict.fromkeys((word for word, _ in null_bits.values()), I64(0))
        for number, (name, column) in enumerate(emit.schema):
            of, value = row_of.get(name, (types.none, None))
            is_null = missing(context, builder, of, value)
            if of == types.none:
                value, of = context.get_constant_null(NUMBA_KINDS[column.kind]), None
            elif may_be_none(of):
                value = value_or_zero(context, builder, of, value)
            if not column.nullable and isinstance(of, types.Optional):
                run.fault_if(is_null, TypeError)
            if name in forms:
                is_null = BIT(0)
            if number in null_bits:
                word, bit = null_bits[number]
                mark = builder.shl(builder.zext(is_null, I64), I64(bit))
                nulls[word] = builder.or_(nulls[word], mark)
            element = value
            if of is not None:
                element = convert(context, builder, value, present(of), column.kind)
            if column.bounds is not None:
                low, high = map(I64, column.bounds)
                run.fault_if(builder.icmp_signed("<", element, low), OverflowError)
                run.fault_if(builder.icmp_signed(">", element, high), OverflowError)
            bits = run.to_bits(column.kind, element)
            builder.store(bits, builder.gep(row, [I64(1 + number)], inbounds=True))
        for word, marks in nulls.items():
            builder.store(marks, builder.gep(row, [I64(word)], inbounds=True))
        writer.end()
        return context.get_dummy_value()

    return types.void(
        emit, names, types.BaseTuple.from_types([types.unliteral(value) for value in given])
    ), code


def _checked(emit: Any, names: Any, values: Any) -> tuple[Any, list[str], Any]:
    """The values that are given, the columns that they are for, and which are formatted strings."""
    given = values[0] if len(values) == 1 and isinstance(values[0], types.BaseTuple) else values
    if not isinstance(emit, EmitType):
        raise refuse(f"{emit} is called like emit, but is not")
    if not isinstance(names, types.StringLiteral):
        raise without_literals()
    columns = dict(emit.schema)
    written = names.literal_value.split(",") if names.literal_value else []
    order, forms = _taken(emit.schema, written)
    kept = {name.removesuffix(KEPT) for name in written if name.endswith(KEPT)}
    if len(order) != len(given):  # the one value is a tuple itself
        raise refuse(
            f"emitted column {order[0]!r} gets a tuple; give each column its own value, like "
            f"emit({', '.join(emit.schema.names)})"
        )
    _check_forms(emit.schema, forms, given)
    for name, value in zip(order, given, strict=True):
        if name not in columns:
            continue
        column = columns[name]
        if value == types.none:
            continue
        found = scalar_kind(present(value))
        if column.kind == "str" and found == "int64" and name not in kept:
            raise refuse(
                f"emitted column {name!r} is declared {column} and gets {found}; write str(x)"
            )
        check_kind(present(value), column.kind, f"emitted column {name!r}", str(column))
    return given, order, forms


Forms = dict[str, tuple[int, range]]
"""By the column: number of the form, and which of the values are its parts."""

_PARTS = {"int64": "int", "uint64": "uint", "float64": "float", "bool": "bool"}


def _taken(schema: Schema, names: list[str]) -> tuple[list[str], Forms]:
    """What each value is for, by the names of a row; a part of a form is for nothing by itself."""
    order: list[str] = []
    forms: Forms = {}
    for name in names:
        column, is_form, number = name.removesuffix(KEPT).partition(":")
        if is_form:
            count = schema.forms[int(number)].count
            forms[column] = int(number), range(len(order), len(order) + count)
            order += [f"{column}:{at}" for at in range(count)]
        else:
            order.append(column)
    return order, forms


def _part_kind(given: types.Type) -> str:
    if isinstance(given, TextType):
        return "str"
    if isinstance(given, CaughtType):
        return "error"
    kind = scalar_kind(given)
    if kind is None:
        raise refuse(
            f"a formatted string that is emitted has a part of type {given}; its parts are "
            "numbers, bools and strings that are never None"
        )
    return _PARTS[kind]


def _check_forms(schema: Schema, forms: Forms, given: Any) -> None:
    for number, places in forms.values():
        form = schema.forms[number]
        try:
            form.check(tuple(_part_kind(given[at]) for at in places))
        except (ValueError, TypeError) as error:
            raise refuse(_told(form.text, str(error))) from None


def _told(text: str, error: str) -> str:
    """What is wrong with a formatted string; Python has other errors where it is no f-string."""
    found = re.match("Unknown format code '(.)' for object of type 'float'", error)
    if found is None:
        return f"{text} that is emitted: {error}; write a format that fits"
    if not text.startswith("f"):
        error = f"%{found[1]} of a float, which is for ints here"
    return (
        f"{text} that is emitted: {error}; write a format that fits, or int(x), which cuts off "
        "what is behind the point"
    )


def _store_forms(
    run: Run, schema: Schema, row: Value, forms: Forms, values: list[tuple[types.Type, Value]]
) -> None:
    """The words of formatted strings; zeros, where a column has none in this row."""
    builder = run.builder
    words = schema.form_words
    following = [*words.values(), schema.row_words][1:]
    for (column, at), end in zip(words.items(), following, strict=True):
        name = schema.names[column]
        stored: list[Value] = []
        if name in forms:
            number, places = forms[name]
            kinds = tuple(_part_kind(values[place][0]) for place in places)
            stored.append(I64(head_of(number, kinds)))
            asking = schema.forms[number].asking
            for part, (place, kind) in enumerate(zip(places, kinds, strict=True)):
                given, value = values[place]
                if kind == "error":
                    stored += words_of(run, given, value, part in asking)
                    continue
                value = run.context.cast(builder, value, given, NUMBA_KINDS[kind])
                stored.append(run.to_bits(cast(Number, kind), value))
        stored += [I64(0)] * (end - at - len(stored))
        for offset, word in enumerate(stored):
            builder.store(word, builder.gep(row, [I64(at + offset)], inbounds=True))
