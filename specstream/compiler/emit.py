"""``emit`` in Numba's terms: one more row of the output."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import (
    intrinsic,
)

from specstream.compiler.instructions import I64, POINTER, Value
from specstream.compiler.kinds import NUMBA_KINDS, check_kind, convert
from specstream.compiler.memory import Run
from specstream.compiler.refusals import refuse
from specstream.compiler.types import (
    EmitType,
)

__all__ = ["emit_row"]


@intrinsic
def emit_row(typing_context: Any, emit: Any, names: Any, *values: Any) -> Any:
    """Appends one row: the event's row number, one word per column, and the nulls.

    ``names`` are those of the columns that the values are for, with commas between them; a column
    that is not among them is null. A value that may be null is of one of Numba's types for that:
    none, or optional.
    """
    given = values[0] if len(values) == 1 and isinstance(values[0], types.BaseTuple) else values
    if not isinstance(emit, EmitType):
        raise refuse(f"{emit} is called like emit, but is not")
    if not isinstance(names, types.StringLiteral):
        # Numba's second try, without literals. On None it would try without optionals as well.
        raise TypingError("the columns of a row are named by a literal")
    columns = dict(emit.schema)
    order = names.literal_value.split(",") if given else []
    for name, value in zip(order, given, strict=True):
        column = columns[name]
        if value != types.none:
            given_as = value.type if isinstance(value, types.Optional) else value
            check_kind(given_as, column.kind, f"emitted column {name!r}", str(column))

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        run = Run(context, builder, args[0])
        words = emit.schema.row_words
        top = run.load_member("emit_top", POINTER)
        following = builder.gep(top, [I64(8 * words)], inbounds=True)
        end = run.load_member("emit_end", POINTER)
        with builder.if_then(builder.icmp_unsigned(">", following, end), likely=False):
            grown = run.call("ss_emit_grow", ir.IntType(1), run.pointer)
            run.leave_if(builder.not_(grown))
        top = run.load_member("emit_top", POINTER)
        row = builder.bitcast(top, I64.as_pointer())
        builder.store(run.load_member("event"), row)
        row_types = list(sig.args[2])
        row_values = cgutils.unpack_tuple(builder, args[2], len(row_types))
        row_of = dict(zip(order, zip(row_types, row_values, strict=True), strict=True))
        null_bits = emit.schema.null_bits
        nulls = dict.fromkeys((word for word, _ in null_bits.values()), I64(0))
        for number, (name, column) in enumerate(emit.schema):
            of, value = row_of.get(name, (types.none, None))
            value, of, is_null = _unwrapped(context, builder, value, of, NUMBA_KINDS[column.kind])
            if number in null_bits:
                word, bit = null_bits[number]
                mark = builder.shl(builder.zext(is_null, I64), I64(bit))
                nulls[word] = builder.or_(nulls[word], mark)
            element = convert(context, builder, value, of, column.kind)
            if column.bounds is not None:
                low, high = map(I64, column.bounds)
                run.fault_if(builder.icmp_signed("<", element, low), OverflowError)
                run.fault_if(builder.icmp_signed(">", element, high), OverflowError)
            bits = run.to_bits(column.kind, element)
            builder.store(bits, builder.gep(row, [I64(1 + number)], inbounds=True))
        for word, marks in nulls.items():
            builder.store(marks, builder.gep(row, [I64(word)], inbounds=True))
        run.store_member("emit_top", builder.gep(top, [I64(8 * words)], inbounds=True))
        return context.get_dummy_value()

    return types.void(
        emit, names, types.BaseTuple.from_types([types.unliteral(value) for value in given])
    ), code


def _unwrapped(
    context: Any, builder: Any, value: Value, of: types.Type, kind: types.Type
) -> tuple[Value, types.Type, Value]:
    """A value that may be null as one that is not, its type, and whether it was null.

    A null becomes a zero at once: what an empty optional holds is undefined.
    """
    if of == types.none:
        return context.get_constant_null(kind), kind, ir.IntType(1)(1)
    if not isinstance(of, types.Optional):
        return value, of, ir.IntType(1)(0)
    optional = context.make_helper(builder, of, value=value)
    valid = cgutils.as_bool_bit(builder, optional.valid)
    zero = context.get_constant_null(of.type)
    return builder.select(valid, optional.data, zero), of.type, builder.not_(valid)
