"""Star in an assignment: a tuple taken apart where its type is known, or a list when it is run."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from specstream.compiler.backend.instructions import I64
from specstream.compiler.backend.local_types import ListType, own
from specstream.compiler.backend.none_types import may_be_none
from specstream.compiler.backend.overloads import Core, Meaning, meaning_of
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.local_list_methods import as_list
from specstream.compiler.library.local_lists import List, element_of

__all__ = ["listed", "spread", "taken_apart", "unpacked"]

taken_apart = Core("taken_apart", "a star in an assignment takes a tuple, a list or an array")


@taken_apart.rule
def _taken_apart(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """What a star may take apart: a tuple, or all else as a list: (run, value)."""
    given = args[1]
    if isinstance(given, types.BaseTuple) or may_be_none(given):
        return given, args, lambda context, builder, sig, args: args[1]
    return meaning_of(as_list.rules, context, args)


listed = Core("listed", "a star in an assignment takes a tuple, a list or an array")


@listed.rule
def _listed(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """What a star has taken of a tuple, as a list: (run, values). Of none, and of values of several
    types, which no list of an operator holds, it stays a tuple."""
    given = args[1]
    if isinstance(given, types.UniTuple):
        return meaning_of(as_list.rules, context, args)
    return given, args, lambda context, builder, sig, args: args[1]


spread = Core("spread", "it takes a tuple, a list or an array")


@spread.rule
def _spread(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """A tuple of so many values, -1 for as many as it has: (run, value, count, least, columns).

    Of one that has fewer, but ``least``, the rest is None.
    """
    if not all(isinstance(one, types.Literal) for one in args[2:]):
        return None
    count, least, columns = (one.literal_value for one in args[2:])
    given = types.unliteral(args[1])
    if isinstance(given, types.BaseTuple):
        if count in (-1, len(given)):
            return given, args, lambda context, builder, sig, args: args[1]
        if not least <= len(given) < count:
            if columns:
                raise refuse(
                    f"a star gives emit {len(given)} values for {count} columns, {columns}: give "
                    "each a value"
                )
            raise refuse(f"a tuple of {len(given)} values is put where {count} are: name them")
        return _filled_with_none(given, args, count)
    if columns and (isinstance(given, types.Number | types.Boolean) or given == types.none):
        raise refuse(
            f"a star gives emit {given}, which is not a tuple, for {count} columns, {columns}: "
            "give a tuple, which (x,) is"
        )
    if count < 0:
        raise refuse(
            "a tuple is made of a list, whose length is known only at run time: make a list, "
            "list(x), or write its items out, (x[0], x[1])"
        )
    found = meaning_of(as_list.rules, context, (args[0], given))
    assert found is not None
    of, taken, make = found
    assert isinstance(of, ListType)
    result = types.BaseTuple.from_types([element_of(of)] * count)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        head = List(context, builder, of, make(context, builder, of(*taken), args[:2]))
        head.fault_if(builder.icmp_unsigned("!=", head.count(), I64(count)), TypeError)
        parts = [head.get(I64(at)) for at in range(count)]
        return context.make_tuple(builder, result, parts)

    return result, (*taken, *args[2:]), code


def _filled_with_none(given: types.BaseTuple, args: Sequence[types.Type], count: int) -> Meaning:
    """A tuple that has a star and is too short, with None behind it."""
    more = count - len(given)
    whole = types.BaseTuple.from_types([*given, *[types.none] * more])

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        parts = cgutils.unpack_tuple(builder, args[1], len(given))
        return context.make_tuple(builder, whole, [*parts, *[context.get_dummy_value()] * more])

    return whole, args, code


def _of_a_list(value: ListType, before: Any, after: Any) -> Any:
    """Parts of a list; a fault where it is too short."""
    first, last = before.literal_value, after.literal_value
    element, rest = element_of(value), own(value)
    result = types.Tuple([*[element] * first, rest, *[element] * last])

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        head = List(context, builder, sig.args[0], args[0])
        count = head.count()
        left = builder.sub(count, I64(first + last))
        head.fault_if(builder.icmp_signed("<", left, I64(0)), ValueError)
        parts = [head.get(I64(at)) for at in range(first)]
        parts.append(head.part(I64(first), I64(1), left))
        parts += [head.get(builder.sub(count, I64(last - at))) for at in range(last)]
        return context.make_tuple(builder, sig.return_type, parts)

    return result(value, before, after), code


@intrinsic(prefer_literal=True)
def unpacked(typing_context: Any, value: Any, before: Any, after: Any) -> Any:
    """A tuple as what stands before the star, what the star takes, and what stands behind."""
    if not isinstance(before, types.IntegerLiteral):
        return None  # what was refused is tried once more, without literals
    if isinstance(value, ListType):
        return _of_a_list(value, before, after)
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
