"""Tuples in native code: compared, joined and searched, part by part as the parts are."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numba.core import types

from specstream.compiler.backend.instructions import BIT, I64, Value
from specstream.compiler.backend.local_types import LocalType
from specstream.compiler.backend.none_types import present
from specstream.compiler.backend.overloads import Core, Meaning, also, resolved_call
from specstream.compiler.backend.scalar_functions import Native
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import arithmetic, conversions
from specstream.compiler.library.number_builtins import BUILTINS
from specstream.compiler.library.reductions import OF_AN_ARRAY, contains

__all__ = ["tuple_of", "tuple_whole"]

tuple_of = Core("tuple_of", "write (a, b)")


@tuple_of.rule
def _of(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``(x, 1)``: of literals Numba would keep the values in the type, and a loop over the tuple or
    an index that is no literal asks for parts of one type."""
    made = types.BaseTuple.from_types([types.unliteral(one) for one in args])

    def code(context: Any, builder: Any, sig: Any, values: Any) -> Value:
        return context.make_tuple(builder, made, values)

    return made, list(made), code


tuple_whole = Core("tuple_whole", "write (*a, b) of tuples")


@tuple_whole.rule
def _whole(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """What a star puts into a tuple: (run, tuple)."""
    if not isinstance(args[1], types.BaseTuple):
        raise refuse(
            f"a star puts {types.unliteral(args[1])} into a tuple, whose length is not known then: "
            "make a list, [*x, y]"
        )
    made = types.BaseTuple.from_types(_parts(args[1]))
    return made, (args[0], made), lambda context, builder, sig, values: values[1]


def _parts(of: types.Type) -> list[types.Type]:
    return [types.unliteral(part) for part in of]


def _both_tuples(args: Sequence[types.Type]) -> bool:
    return len(args) == 2 and all(isinstance(one, types.BaseTuple) for one in args)


def _typed(typing_context: Any, function: Native, *args: types.Type) -> Any:
    known = typing_context.resolve_value_type(function)
    return typing_context.resolve_function_type(known, args, {})


def _comparing(function: Native, compare: Any, only_equal: bool) -> Any:
    """The first parts that are not equal decide, else the lengths."""

    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not _both_tuples(args):
            return None
        pairs = list(zip(*map(_parts, args), strict=False))
        for pair in pairs:
            _typed(typing_context, arithmetic.eq, *pair)
            if not only_equal:
                _typed(typing_context, function, *pair)

        def code(context: Any, builder: Any, sig: Any, values: Any) -> Value:
            found: Value = BIT(int(compare(len(args[0]), len(args[1]))))
            if only_equal and len(args[0]) != len(args[1]):
                return found
            for at, pair in reversed(list(enumerate(pairs))):
                parts = [builder.extract_value(value, at) for value in values]
                _, equal = resolved_call(context, builder, arithmetic.eq, pair, parts)
                if only_equal:
                    decided = BIT(int(function is arithmetic.ne))
                else:
                    _, decided = resolved_call(context, builder, function, pair, parts)
                found = builder.select(equal, found, decided)
            return found

        return types.boolean, [types.BaseTuple.from_types(_parts(one)) for one in args], code

    return rule


for _function, _compare in (
    (arithmetic.eq, operator.eq),
    (arithmetic.ne, operator.ne),
    (arithmetic.lt, operator.lt),
    (arithmetic.le, operator.le),
    (arithmetic.gt, operator.gt),
    (arithmetic.ge, operator.ge),
):
    _only_equal = _compare in (operator.eq, operator.ne)
    _function.rule(_comparing(_function, _compare, _only_equal))


def _add(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if not _both_tuples(args):
        return None
    given = [types.BaseTuple.from_types(_parts(one)) for one in args]
    made = types.BaseTuple.from_types([*given[0], *given[1]])

    def code(context: Any, builder: Any, sig: Any, values: Any) -> Value:
        parts = [
            builder.extract_value(value, at)
            for value, of in zip(values, given, strict=True)
            for at in range(len(of))
        ]
        return context.make_tuple(builder, made, parts)

    return made, given, code


def _multiply(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 2 or not any(isinstance(one, types.BaseTuple) for one in args):
        return None
    if any(isinstance(present(one), LocalType) for one in args):
        return None  # a list is what is multiplied, then
    at = 0 if isinstance(args[0], types.BaseTuple) else 1
    of, times = args[at], args[1 - at]
    if not isinstance(times, types.IntegerLiteral):
        raise refuse(
            "a tuple is repeated by a count that is not a literal, so its length is not known: "
            "use a list, [x] * n"
        )
    given = types.BaseTuple.from_types(_parts(of))
    count = max(times.literal_value, 0)
    made = types.BaseTuple.from_types(list(given) * count)

    def code(context: Any, builder: Any, sig: Any, values: Any) -> Value:
        parts = [builder.extract_value(values[at], part) for part in range(len(given))]
        return context.make_tuple(builder, made, parts * count)

    taken: list[types.Type] = [given, given]
    taken[1 - at] = times
    return made, taken, code


def _truth(negated: bool) -> Any:
    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], types.BaseTuple):
            return None
        is_true = (len(args[0]) > 0) != negated
        return types.boolean, args, lambda context, builder, sig, values: BIT(int(is_true))

    return rule


arithmetic.add.rule(_add)
arithmetic.iadd.rule(_add)
arithmetic.mul.rule(_multiply)
arithmetic.imul.rule(_multiply)
arithmetic.not_.rule(_truth(True))
conversions.bool_.rule(_truth(False))


def _contains(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    element, of = args
    if not isinstance(of, types.BaseTuple):
        return None
    element = types.unliteral(element)
    parts = _parts(of)
    for part in parts:
        _typed(typing_context, arithmetic.eq, part, element)

    def code(context: Any, builder: Any, sig: Any, values: Any) -> Value:
        found: Value = BIT(0)
        for at, part in enumerate(parts):
            own = builder.extract_value(values[1], at)
            pair = (part, element)
            _, equal = resolved_call(context, builder, arithmetic.eq, pair, (own, values[0]))
            found = builder.or_(found, equal)
        return found

    return types.boolean, (element, types.BaseTuple.from_types(parts)), code


also(contains, _contains, types.Any, types.BaseTuple)


def _extremum(name: str) -> Any:
    """``min`` and ``max`` of a tuple in native code: ``max((a, b))`` is ``max(a, b)``."""

    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], types.BaseTuple):
            return None
        parts = _parts(args[0])
        if not parts:
            raise refuse(f"{name} of no value raises ValueError; write {name}(x, default=y)")
        result = parts[0]
        if len(parts) > 1:
            result = _typed(typing_context, BUILTINS[name], *parts).return_type

        def code(context: Any, builder: Any, sig: Any, values: Any) -> Value:
            found = [builder.extract_value(values[0], at) for at in range(len(parts))]
            if len(parts) == 1:
                return found[0]
            return resolved_call(context, builder, BUILTINS[name], parts, found)[1]

        return result, [types.BaseTuple.from_types(parts)], code

    return rule


def _sum(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``sum`` of a tuple in native code, part by part: from left to right, beginning with 0."""
    if len(args) != 1 or not isinstance(args[0], types.BaseTuple):
        return None
    parts = _parts(args[0])
    total: types.Type = types.int64
    if parts and scalar_kind(parts[0]) == "uint64":
        total = types.uint64
    totals = [total]
    for part in parts:
        totals.append(_typed(typing_context, arithmetic.add, totals[-1], part).return_type)

    def code(context: Any, builder: Any, sig: Any, values: Any) -> Value:
        found: Value = I64(0)
        for at, part in enumerate(parts):
            pair = (totals[at], part)
            both = (found, builder.extract_value(values[0], at))
            _, found = resolved_call(context, builder, arithmetic.add, pair, both)
        return found

    return totals[-1], [types.BaseTuple.from_types(parts)], code


for _name in ("min", "max"):
    also(OF_AN_ARRAY[_name], _extremum(_name), types.BaseTuple)
also(OF_AN_ARRAY["sum"], _sum, types.BaseTuple)
