"""Star in an assignment: a tuple taken apart where its type is known."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from specstream.compiler.refusals import refuse

__all__ = ["unpacked"]


@intrinsic(prefer_literal=True)
def unpacked(typing_context: Any, value: Any, before: Any, after: Any) -> Any:
    """A tuple as what stands before the star, what the star takes, and what stands behind."""
    if not isinstance(before, types.IntegerLiteral):
        return None  # what was refused is tried once more, without literals
    if not isinstance(value, types.BaseTuple):
        raise refuse(
            f"a star in an assignment takes a tuple apart, and gets {types.unliteral(value)}: "
            "take its items one by one, x[0], and what is left as a slice, x[1:]"
        )
    first, last = before.literal_value, len(value) - after.literal_value
    if last < first:
        raise refuse(
            f"a tuple of {len(value)} is too short for {first + after.literal_value} names and a "
            "star: leave names out"
        )
    parts = [*value.types[:first], types.Tuple(value.types[first:last]), *value.types[last:]]
    result = types.Tuple(parts)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        items = cgutils.unpack_tuple(builder, args[0])
        taken = context.make_tuple(builder, sig.return_type.types[first], items[first:last])
        return context.make_tuple(builder, sig.return_type, [*items[:first], taken, *items[last:]])

    return result(value, before, after), code
