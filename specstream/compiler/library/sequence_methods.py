"""Methods of sequences: of local lists, and of lists and deques of the state.

What takes no loop is written in instructions, over the primitives that both have. The rest of the
state's methods is plain Python over the same primitives, compiled along, so that there is one
meaning of it under every variant.
"""

# Numba's internals are only partly typed; what is compiled along carries no types, as operators do.
# mypy: allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from numba.core import types

from specstream.compiler.backend.instructions import BIT, I64, Value, raise_error
from specstream.compiler.backend.local_types import ListType, takes
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.overloads import (
    Meaning,
    Rule,
    also,
    called,
    looking_for,
    of_held,
    of_values,
)
from specstream.compiler.backend.polling import poll_in
from specstream.compiler.language.typing_refusals import no_method, refuse, unnamed_copy
from specstream.compiler.library.arithmetic import eq
from specstream.compiler.library.indices import check_index, index_type
from specstream.compiler.library.local_list_methods import list_from, list_sorted, list_sorted_by
from specstream.compiler.library.local_lists import List, element_of, list_append, list_new
from specstream.compiler.library.method_dispatch import method, not_found, record_of
from specstream.compiler.library.reductions import among, contains
from specstream.compiler.library.sequence_indexing import part_of, replace_part
from specstream.compiler.library.sequence_primitives import (
    SEQUENCES,
    delete,
    get,
    insert,
    limit_of,
    meaning,
    put,
    run_of,
    stored_in,
    turned,
)
from specstream.compiler.library.state_sequence_types import (
    DequeField,
    ListField,
    QueueField,
    SequenceType,
    refuse_none,
    stored,
)
from specstream.compiler.library.state_sequences import Elements

__all__ = ["Role", "extended", "plain_python", "sequence_method"]

Role = Literal["element", "number", "as given"]

_BOTH = (ListField, DequeField)
_ALL = (ListType, *_BOTH)


# ---- methods by their names ----


def sequence_method(
    name: str,
    kinds: tuple[type[types.Type], ...],
    added: int = 0,
    absent: Callable[[Any, Any], Value] | None = None,
) -> Callable[[Rule], Rule]:
    """A decorator that adds a method of sequences.

    It is called with the types of all arguments, of which there are as many as the method's
    record says, and ``added`` ones that the rewriting puts behind them. ``absent``: of a method
    that looks for its first argument, what it does where that is None.
    """

    def add_rule(rule: Rule) -> Rule:
        @method(name).rule
        def checked(context: Any, args: Sequence[types.Type]) -> Meaning | None:
            of, *given = args
            if not isinstance(of, kinds):
                return None
            record, count, asked = record_of(of, name), len(given) - added, rule
            if not record.accepts(count):
                raise refuse(
                    f"{name} of state.{of.field.name} gets {count} values; it takes "
                    f"{record.counts}, as Python's"
                    if isinstance(of, SequenceType)
                    else f"{name} takes {record.counts} value(s) here: see Python's"
                )
            if isinstance(of, SequenceType):
                asked = of_values(rule)
                refuse_none(of, *given)
            return (asked if absent is None else looking_for(1, absent)(asked))(context, args)

        return rule

    return add_rule


def plain_python(function: Callable[..., Any], *roles: Role) -> Rule:
    """A rule: what plain Python does with a sequence and the other arguments.

    Args:
        function: it.
        roles: of the other arguments: an "element" is stored as such, a "number" becomes an int.
    """
    rule = called(compiled(function, apart=True))

    def typed(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        of = args[0]
        assert isinstance(of, SequenceType)
        given: list[types.Type] = [of]
        for role, one in zip(roles, args[1:], strict=False):
            if role == "element":
                one = stored(of, one)
            elif role == "number":
                check_index(one)
                one = types.int64
            given.append(types.unliteral(one))
        return rule(context, given)

    return typed


# ---- putting in ----


@sequence_method("append", _ALL)
def _append(context: Any, args: Sequence[types.Type]) -> Meaning:
    of, value = args
    return meaning(
        types.none, (of, stored_in(of, value)), lambda head, sig, args: head.append(args[1])
    )


@sequence_method("appendleft", (DequeField,))
def _append_left(context: Any, args: Sequence[types.Type]) -> Meaning:
    of, value = args
    return meaning(
        types.none,
        (of, stored_in(of, value)),
        lambda head, sig, args: head.append(args[1], left=True),
    )


append_one = method("append")
append_left = method("appendleft")


def extended(values, given):
    """``values.extend(given)``."""
    for value in given:
        poll_in(values)
        append_one(values, value)


def _extended_left(values, given):
    for value in given:
        poll_in(values)
        append_left(values, value)


sequence_method("extend", _BOTH)(plain_python(extended, "as given"))
sequence_method("extendleft", (DequeField,))(plain_python(_extended_left, "as given"))


@sequence_method("insert", _ALL)
def _insert(context: Any, args: Sequence[types.Type]) -> Meaning:
    of, index, value = args
    most = of.container.maxlen if isinstance(of, DequeField) else None

    def write(head: List | Elements, sig: Any, args: Sequence[Value]) -> None:
        if most is not None:
            is_full = head.builder.icmp_unsigned(">=", head.count(), I64(most))
            head.fault_if(is_full, IndexError)
        head.insert(head.clipped(args[1], sig.args[1]), args[2])

    element = stored_in(of, value)
    return meaning(types.none, (of, index_type(index), element), write)


# ---- taking out ----


@sequence_method("pop", _ALL)
def _pop(context: Any, args: Sequence[types.Type]) -> Meaning:
    of, *index = args

    def write(head: List | Elements, sig: Any, args: Sequence[Value]) -> Value:
        if not index:
            return head.take_last()
        at = head.position(args[1], sig.args[1])
        value = head.get(at)
        head.delete(at, I64(1), I64(1))
        return value

    return meaning(element_of(of), (of, *map(index_type, index)), write)


@sequence_method("popleft", (DequeField,))
def _pop_left(context: Any, args: Sequence[types.Type]) -> Meaning:
    return meaning(element_of(args[0]), args, lambda head, sig, args: head.take_first())


@sequence_method("clear", (*_ALL, QueueField))
def _clear(context: Any, args: Sequence[types.Type]) -> Meaning:
    return meaning(types.none, args, lambda head, sig, args: head.clear())


# ---- looking for ----


def _found(values, value):
    for at, one in enumerate(values):
        poll_in(values)
        if eq(one, value):
            return at
    return -1


def _found_between(values, value, first, last):
    for at in range(first, last):
        poll_in(values)
        if eq(get(values, at), value):
            return at
    return -1


_FIND = called(compiled(_found, apart=True)), called(compiled(_found_between, apart=True))


def _find(context: Any, args: Sequence[types.Type]) -> Meaning:
    """The position of the first element that is equal, or -1: (sequence, value).

    Between two positions where they are given.
    """
    of, value, *within = args
    if not isinstance(of, ListType):
        return _FIND[len(args) > 2](context, args)

    def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
        return head.find(args[1], *(args[2:] or (I64(0), head.count())))

    return meaning(types.int64, (of, takes(of, value), *within), write)


def _where(
    context: Any,
    args: Sequence[types.Type],
    result: types.Type,
    then: Callable[[List | Elements, Value], Value],
) -> Meaning:
    """What is done with the position of an element; where there is none, ValueError.

    The arguments: the sequence, a value, and up to two indices to look between.
    """
    of, value, *bounds = args
    between = [types.int64] * 2 if bounds else []
    _, taken, seek = _find(context, (of, value, *between))

    def write(head: List | Elements, sig: Any, args: Sequence[Value]) -> Value:
        within = [head.clipped(*bound) for bound in zip(args[2:], sig.args[2:], strict=True)]
        if len(within) == 1:
            within.append(head.count())
        sought = types.int64(*taken)
        at = seek(head.context, head.builder, sought, [*args[:2], *within])
        head.fault_if(head.builder.icmp_signed("<", at, I64(0)), ValueError)
        return then(head, at)

    return meaning(result, (*taken[:2], *map(index_type, bounds)), write)


@sequence_method("index", _ALL, absent=not_found)
def _index(context: Any, args: Sequence[types.Type]) -> Meaning:
    return _where(context, args, types.int64, lambda head, at: at)


@sequence_method("remove", _ALL, absent=not_found)
def _remove(context: Any, args: Sequence[types.Type]) -> Meaning:
    return _where(context, args, types.none, lambda head, at: head.delete(at, I64(1), I64(1)))


@of_held
def _contains(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    value, of = args
    if not isinstance(of, SEQUENCES):
        return None
    if value == types.none and isinstance(of, SequenceType):  # no element is None
        return types.boolean, args, lambda context, builder, sig, args: BIT(0)
    if isinstance(of, SequenceType):
        return among(context, args)
    _, taken, seek = _find(context, (of, value))

    def code(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
        at = seek(context, builder, types.int64(*taken), args[::-1])
        return builder.icmp_signed(">=", at, I64(0))

    return types.boolean, taken[::-1], code


for _kind in SEQUENCES:
    also(contains, _contains, types.Any, _kind)


def _counted(values, value):
    found = 0
    for one in values:
        poll_in(values)
        if eq(one, value):
            found += 1
    return found


sequence_method("count", _BOTH, absent=lambda context, builder: I64(0))(
    plain_python(_counted, "as given")
)

# ---- order ----


def _reversed(values):
    low = 0
    high = len(values) - 1
    while low < high:
        poll_in(values)
        value = get(values, low)
        put(values, low, get(values, high))
        put(values, high, value)
        low += 1
        high -= 1


def _rotated(values, by):
    count = len(values)
    if count < 2:
        return
    turned(values)
    by %= count
    if 2 * by > count:
        by -= count
    while by > 0:
        poll_in(values)
        value = get(values, count - 1)
        delete(values, count - 1, 1, 1)
        insert(values, 0, value)
        by -= 1
    while by < 0:
        poll_in(values)
        value = get(values, 0)
        delete(values, 0, 1, 1)
        insert(values, count - 1, value)
        by += 1


def _rotated_once(values):
    _rotate(values, 1)


_rotate = compiled(_rotated, apart=True)
_ROTATE = (plain_python(_rotated_once), plain_python(_rotated, "number"))
sequence_method("reverse", _BOTH)(plain_python(_reversed))


@sequence_method("rotate", (DequeField,))
def _rotate_by(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    return _ROTATE[len(args) - 1](context, args)


def _put_back(values, made):
    for at in range(len(made)):
        poll_in(values)
        put(values, at, made[at])


_put_all = compiled(_put_back, apart=True)


def _sorted(values, backwards):
    made = list_from(run_of(values), values)
    list_sorted(made, backwards)
    _put_all(values, made)


def _sorted_by(values, backwards, keys):
    made = list_from(run_of(values), values)
    if len(made) != len(keys):
        raise_error(ValueError)
    list_sorted_by(made, backwards, keys)
    _put_all(values, made)


sequence_method("sort", (ListField,), added=1)(plain_python(_sorted, "as given"))
_SORTED_BY = called(compiled(_sorted_by, apart=True))


def _of_the_state(function: Callable[..., Any]) -> Rule:
    """A rule of an operation that lists made by the operator have one of their own of."""
    rule = called(compiled(function, apart=True))
    return lambda context, args: rule(context, args) if isinstance(args[0], SequenceType) else None


@list_sorted_by.rule
def _sort_by_keys(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of = args[0]
    if not isinstance(of, SequenceType):
        return None
    if not isinstance(of, ListField):
        raise refuse("; ".join(no_method(of, "sort")))
    return _SORTED_BY(context, args)


# ---- parts ----


def _part(values, first, step, count):
    made = list_new(run_of(values))
    for at in range(count):
        poll_in(values)
        list_append(made, get(values, first + at * step))
    return made


part_of.rule(_of_the_state(_part))


def _replaced(values, first, step, count, given):
    """A part of a list of the state replaced by a list: compiled along, like its methods."""
    other = list_from(run_of(values), given)
    if step != 1 and len(other) != count:
        raise_error(ValueError)
    if len(values) - count + len(other) > limit_of(values):
        raise_error(OverflowError)
    if len(other) < count:
        delete(values, first + len(other), 1, count - len(other))
    for at in range(len(other)):
        poll_in(values)
        if at < count:
            put(values, first + at * step, other[at])
        else:
            insert(values, first + at, other[at])


replace_part.rule(_of_the_state(_replaced))


def _copied(values):
    return list_from(run_of(values), values)


sequence_method("copy", (ListField,))(plain_python(_copied))


@sequence_method("copy", (DequeField,))
def _no_copy(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Refuses the method ``copy`` of deques of the state, which its lists have.

    A deque of the event is known by its name, and is made before anything is typed.
    """
    of = args[0]
    assert isinstance(of, SequenceType)
    raise refuse("; ".join(unnamed_copy(f"state.{of.field.name}")))
