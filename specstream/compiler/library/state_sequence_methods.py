"""Methods of lists and deques of the state: plain Python, compiled along.

Each is made of the few things that :mod:`specstream.compiler.library.state_sequence_indexing`
has instructions for, so that there is one meaning of it under every variant.
"""

# Numba's internals are only partly typed; what is compiled along carries no types, as operators do.
# mypy: allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from numba.core import types

from specstream.compiler.backend.instructions import I64, Value, raise_error
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.overloads import (
    Meaning,
    Rule,
    called,
    looking_for,
    of_values,
)
from specstream.compiler.backend.polling import poll_in
from specstream.compiler.language.typing_refusals import no_method, refuse, unnamed_copy
from specstream.compiler.library.arithmetic import eq
from specstream.compiler.library.indices import check_index
from specstream.compiler.library.local_list_methods import list_from, list_sorted, list_sorted_by
from specstream.compiler.library.local_lists import list_append, list_new
from specstream.compiler.library.method_dispatch import method, not_found, record_of, written_by
from specstream.compiler.library.state_sequence_indexing import part_of, replace_part
from specstream.compiler.library.state_sequence_primitives import (
    Elements,
    clipped,
    delete,
    get,
    insert,
    item_position,
    limit_of,
    put,
    run_of,
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

__all__ = ["Role", "extended", "plain_python", "sequence_method"]

Role = Literal["element", "number", "as given"]

_meaning = written_by(Elements)
_BOTH = (ListField, DequeField)
_ANY = (*_BOTH, QueueField)


# ---- methods by their names ----


def sequence_method(
    name: str,
    kinds: tuple[type[SequenceType], ...],
    added: int = 0,
    absent: Callable[[Any, Any], Value] | None = None,
) -> Callable[[Rule], Rule]:
    """A decorator that adds a method of lists or deques of the state.

    It is called with the types of all arguments, of which there are as many as the method's
    record says, and ``added`` ones that the rewriting puts behind them. ``absent``: of a method
    that looks for its first argument, what it does where that is None.
    """

    def add_rule(rule: Rule) -> Rule:
        @method(name).rule
        def checked(context: Any, args: Sequence[types.Type]) -> Meaning | None:
            of = args[0]
            if not isinstance(of, kinds):
                return None
            record = record_of(of, name)
            if not record.accepts(len(args) - 1 - added):
                raise refuse(
                    f"{name} of state.{of.field.name} gets {len(args) - 1 - added} values; "
                    f"it takes {record.counts}, as Python's"
                )
            refuse_none(of, *args[1:])
            asked = of_values(rule)
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


@sequence_method("append", _BOTH)
def _append(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of, value = args
    assert isinstance(of, SequenceType)
    return _meaning(types.none, (of, stored(of, value)), lambda head, sig, args: head.push(args[1]))


@sequence_method("appendleft", (DequeField,))
def _append_left(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of, value = args
    assert isinstance(of, SequenceType)
    return _meaning(
        types.none, (of, stored(of, value)), lambda head, sig, args: head.push(args[1], left=True)
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


def _inserted(values, index, value):
    insert(values, clipped(values, index), value)


def _inserted_within(values, index, value):
    if len(values) >= values.maxlen:
        raise_error(IndexError)
    insert(values, clipped(values, index), value)


_INSERT = plain_python(_inserted, "as given", "element")
_INSERT_WITHIN = plain_python(_inserted_within, "as given", "element")


@sequence_method("insert", _BOTH)
def _insert(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of = args[0]
    assert isinstance(of, SequenceType)
    bounded = of.container.maxlen is not None
    return (_INSERT_WITHIN if bounded else _INSERT)(context, args)


# ---- taking out ----


def _popped(values, index):
    at = item_position(values, index)
    value = get(values, at)
    delete(values, at, 1, 1)
    return value


_POP_AT = plain_python(_popped, "as given")


@sequence_method("pop", (ListField,))
def _pop(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) > 1:
        return _POP_AT(context, args)
    return _pop_last(context, args)


@sequence_method("pop", (DequeField,))
def _pop_last(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    (of,) = args
    assert isinstance(of, SequenceType)
    return _meaning(of.element, (of,), lambda head, sig, args: head.take_last())


@sequence_method("popleft", (DequeField,))
def _pop_left(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    (of,) = args
    assert isinstance(of, SequenceType)
    return _meaning(of.element, (of,), lambda head, sig, args: head.take_first())


def _removed(values, value):
    for at, one in enumerate(values):
        poll_in(values)
        if eq(one, value):
            delete(values, at, 1, 1)
            return
    raise_error(ValueError)


sequence_method("remove", _BOTH, absent=not_found)(plain_python(_removed, "as given"))


@sequence_method("clear", _ANY)
def _clear(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    def write(head: Elements, sig: Any, args: Sequence[Value]) -> None:
        head.leave(I64(0), I64(1), head.count())
        head.set_count(I64(0))

    return _meaning(types.none, args, write)


# ---- looking for ----


def _position(values, value):
    for at, one in enumerate(values):
        poll_in(values)
        if eq(one, value):
            return at
    raise_error(ValueError)
    return -1


def _position_from(values, value, start):
    return _position_between(values, value, start, len(values))


def _position_between(values, value, start, stop):
    low = clipped(values, start)
    high = clipped(values, stop)
    for at in range(low, high):
        poll_in(values)
        if eq(get(values, at), value):
            return at
    raise_error(ValueError)
    return -1


def _counted(values, value):
    found = 0
    for one in values:
        poll_in(values)
        if eq(one, value):
            found += 1
    return found


_position_between = compiled(_position_between, apart=True)
_INDEX = (
    plain_python(_position, "as given"),
    plain_python(_position_from, "as given", "as given"),
    called(_position_between),
)


@sequence_method("index", _BOTH, absent=not_found)
def _index(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    return _INDEX[len(args) - 2](context, args)


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


part_of.rule(called(compiled(_part, apart=True)))


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


replace_part.rule(called(compiled(_replaced, apart=True)))


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
