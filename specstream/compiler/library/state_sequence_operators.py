"""Operators and builtins of lists and deques of the state: plain Python, compiled along.

What makes a list makes one of the event's own.
"""

# Numba's internals are only partly typed; what is compiled along carries no types, as operators do.
# mypy: allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from numba.core import types
from numba.core.typing.templates import signature

from specstream.compiler.backend.instructions import Value, raise_error
from specstream.compiler.backend.local_types import ListType, LocalType
from specstream.compiler.backend.none_types import may_be_none, present
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.numba_types import RecordType, RunType
from specstream.compiler.backend.overloads import (
    Meaning,
    Rule,
    also,
    called,
    meaning_of,
    resolved_call,
)
from specstream.compiler.backend.polling import poll_for, poll_in
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import arithmetic, array_methods
from specstream.compiler.library.arithmetic import eq, gt, lt, mul
from specstream.compiler.library.item_assignment import SET_ITEM, set_item
from specstream.compiler.library.local_list_methods import as_list, list_from
from specstream.compiler.library.method_dispatch import method
from specstream.compiler.library.reductions import (
    OF_AN_ARRAY,
    total_of,
)
from specstream.compiler.library.row_assignment import assigned
from specstream.compiler.library.sequence_methods import extended
from specstream.compiler.library.sequence_primitives import (
    get,
    run_of,
    run_of_either,
)
from specstream.compiler.library.state_sequence_types import (
    DequeField,
    ListField,
    QueueField,
    SequenceType,
)

__all__: list[str] = []

# ---- operators ----


def _extended_in_place(values, given):
    _extend(values, as_list(run_of(values), given))
    return values


_extend = compiled(extended, apart=True)
_ADD_IN_PLACE = called(compiled(_extended_in_place, apart=True))


def _joined_in_place(values, other):
    list_extend(values, list_from(run_of(other), other))
    return values


_JOIN_IN_PLACE = called(compiled(_joined_in_place, apart=True))


def _add_in_place(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if isinstance(args[0], ListType) and isinstance(args[1], SequenceType):
        return _JOIN_IN_PLACE(context, args)
    if not isinstance(args[0], SequenceType):
        return None
    if isinstance(args[0], QueueField):
        name = f"state.{args[0].field.name}"
        raise refuse(f"+= is not supported for a priority queue; write {name}.push(x) in a loop")
    if scalar_kind(args[1]) is not None:
        raise refuse(
            f"+= puts {types.unliteral(args[1])} behind a {args[0].container.kind}; write "
            f"state.{args[0].field.name}.append(x)"
        )
    return _ADD_IN_PLACE(context, args)


def _joined(values, other):
    made = list_from(run_of(values), values)
    list_extend(made, as_list(run_of(values), other))
    return made


def _joined_to(other, values):
    made = list_from(run_of(values), other)
    list_extend(made, list_from(run_of(values), values))
    return made


def _repeated(values, times):
    return mul(list_from(run_of(values), values), times)


def _repeated_times(times, values):
    return mul(list_from(run_of(values), values), times)


list_extend = method("extend")
_JOINED = called(compiled(_joined, apart=True)), called(compiled(_joined_to, apart=True))
_REPEATED = called(compiled(_repeated, apart=True)), called(compiled(_repeated_times, apart=True))


def _repeated_in_place(values, times):
    set_item(mul(list_from(run_of(values), values), times), values, slice(None, None))
    return values


_REPEAT_IN_PLACE = called(compiled(_repeated_in_place, apart=True))


def _multiply_in_place(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of = args[0]
    if not isinstance(of, SequenceType) or _is_of_an_event(args[1]):
        return None
    if not isinstance(of, ListField):
        name, kind = f"state.{of.field.name}", of.container.kind.replace("_", " ")
        hint = f"{name}.push(x) in a loop"
        if isinstance(of, DequeField):
            hint = f"{name}.extend(list({name}) * (n - 1)), where n is 1 or more"
        raise refuse(f"*= is not supported for a {kind} of the state, {name}; write {hint}")
    return _REPEAT_IN_PLACE(context, args)


def _is_of_an_event(of: types.Type) -> bool:
    """Whether a list or tuple of the event's own is what is multiplied, as its rule says."""
    return isinstance(present(of), LocalType | types.BaseTuple)


def _new_list(what: str, meanings: tuple[Rule, Rule], others: type | None) -> Any:
    """A rule: an operator that makes a list of a list of the state, on either side."""

    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 2 or not any(isinstance(one, SequenceType) for one in args):
            return None
        at = 0 if isinstance(args[0], SequenceType) else 1
        of, other = args[at], args[1 - at]
        assert isinstance(of, SequenceType)
        if others is None and _is_of_an_event(other):
            return None
        fits = others is None or isinstance(other, ListType | ListField)
        if not isinstance(of, ListField) or not fits:
            shown = types.unliteral(other)
            raise refuse(
                f"{what} between {of} and {shown}; make lists of them before, like "
                f"list(state.{of.field.name})"
            )
        return meanings[at](context, args)

    return rule


arithmetic.iadd.rule(_add_in_place)
arithmetic.imul.rule(_multiply_in_place)
arithmetic.add.rule(_new_list("+", _JOINED, ListType))
arithmetic.mul.rule(_new_list("*", _REPEATED, None))


def _comparison(function: Any, is_equality: bool) -> Any:
    """The first elements that differ decide, else the lengths."""

    def compare(left, right):
        if is_equality and len(left) != len(right):
            return function(0, 1)
        for at in range(min(len(left), len(right))):
            poll_for(run_of_either(left, right))
            if not eq(left[at], right[at]):
                return function(left[at], right[at])
        return function(len(left), len(right))

    meaning_of_both = called(compiled(compare, apart=True))

    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 2 or not any(isinstance(one, SequenceType) for one in args):
            return None
        if is_equality and any(may_be_none(one) or isinstance(one, RecordType) for one in args):
            return None
        lists = all(isinstance(one, ListType | ListField) for one in args)
        if not lists and not all(isinstance(one, DequeField) for one in args):
            left, right = map(types.unliteral, args)
            raise refuse(f"{left} is compared with {right}; compare two lists: list(x) makes one")
        return meaning_of_both(context, args)

    return rule


for _function in (
    *(arithmetic.eq, arithmetic.ne),
    *(arithmetic.lt, arithmetic.le, arithmetic.gt, arithmetic.ge),
):
    _function.rule(_comparison(_function, _function in (arithmetic.eq, arithmetic.ne)))


# ---- where one of the event's own is needed, it is copied ----


def _for_state_sequences(rule: Rule) -> Rule:
    """An operator's or function's rule for local lists, for lists and deques of the state too.

    Those are copied.
    """

    def asked(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not any(isinstance(one, ListField | DequeField) for one in args):
            return None
        given = [
            ListType(one.element) if isinstance(one, SequenceType) else types.unliteral(one)
            for one in args
        ]
        found = rule(context, given)
        if found is None:
            return None
        result, wanted, code = found
        taken = [
            of if isinstance(of, SequenceType) else one
            for of, one in zip(args, wanted, strict=True)
        ]

        def copied(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            lists = [
                resolved_call(
                    context, builder, list_from, (RunType(of.state.variant), of), (value, value)
                )[1]
                if isinstance(of, SequenceType)
                else value
                for of, value in zip(taken, values, strict=True)
            ]
            return code(context, builder, signature(result, *wanted), lists)

        return result, taken, copied

    return asked


for _core in {*array_methods.MATH.values(), *array_methods.NUMPY.values()}:
    _core.rule(_for_state_sequences(functools.partial(meaning_of, list(_core.rules))))
SET_ITEM.append(_for_state_sequences(assigned))

# ---- builtins ----


def _extreme(wins):
    def extreme_of(values):
        if len(values) == 0:
            raise_error(ValueError)
        found = get(values, 0)
        for one in values:
            poll_in(values)
            if wins(one, found):
                found = one
        return found

    return called(compiled(extreme_of, apart=True))


_EXTREMES: dict[str, Rule] = {"min": _extreme(lt), "max": _extreme(gt)}


def _builtin(name: str) -> Any:
    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], SequenceType):
            return None
        (of,) = args
        if name != "sum":
            return _EXTREMES[name](context, args)
        if scalar_kind(of.element) is None:
            raise refuse(
                f"sum of state.{of.field.name}, which holds {of.container.value}; write a loop"
            )
        return total_of[of.element == types.float64](context, args)

    return rule


for _name in ("min", "max", "sum"):
    also(OF_AN_ARRAY[_name], _builtin(_name), SequenceType)
