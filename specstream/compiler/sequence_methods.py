"""What lists, deques and priority queues of the state can do: plain Python, compiled along.

Each is made of the few things that :mod:`specstream.compiler.state_sequences` has instructions for,
so that there is one meaning of it under every variant. The heap is CPython's, item by item.
"""

# Numba's internals are only partly typed; what is compiled along carries no types, as operators do.
# mypy: allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types

from specstream.compiler import arithmetic, conversions
from specstream.compiler.arithmetic import add, eq, lt, mul
from specstream.compiler.core_function import (
    Meaning,
    also,
    called,
    of_held,
    of_values,
)
from specstream.compiler.instructions import BIT, I64, Value, raise_error
from specstream.compiler.kinds import scalar_kind
from specstream.compiler.list_methods import (
    as_list,
    list_from,
    list_sorted,
    list_sorted_by,
    reversed_list,
)
from specstream.compiler.local_lists import check_index, list_append, list_new
from specstream.compiler.local_methods import method, truth, written_by
from specstream.compiler.local_types import ListType
from specstream.compiler.pipeline import compiled
from specstream.compiler.polling import poll_for
from specstream.compiler.reductions import OF_AN_ARRAY, contains
from specstream.compiler.refusals import no_method, refuse
from specstream.compiler.state_sequences import (
    DequeField,
    Elements,
    ListField,
    QueueField,
    SequenceType,
    append,
    clipped,
    delete,
    get,
    insert,
    item_position,
    part_of,
    put,
    refuse_none,
    replace_part,
    run_of,
    run_of_either,
    sequence_iterator,
    stored,
    take_last,
    turned,
)

__all__ = ["TAKE_A_LIST"]

TAKE_A_LIST = ("extend", "extendleft")
"""Methods that take whatever a loop goes over."""

_meaning = written_by(Elements)
_ANY = (ListField, DequeField, QueueField)


# ---- methods by their names ----


def _method(
    name: str, kinds: tuple[type[SequenceType], ...], least: int, most: int | None = None
) -> Any:
    """A decorator that adds what a method is of some kinds; called with the types of all
    arguments, of which there are so many beside the sequence."""
    most = least if most is None else most

    def add_rule(rule: Callable[[Any, Sequence[types.Type]], Meaning]) -> Any:
        @method(name).rule
        def checked(context: Any, args: Sequence[types.Type]) -> Meaning | None:
            of = args[0]
            if not isinstance(of, kinds):
                return None
            if not least <= len(args) - 1 <= most:
                expected = str(most) if least == most else f"{least} to {most}"
                raise refuse(
                    f"{name} of state.{of.field.name} gets {len(args) - 1} values; "
                    f"it takes {expected}, as Python's"
                )
            refuse_none(of, *args[1:])
            meaning: Meaning = of_values(rule)(context, args)
            return meaning

        return rule

    return add_rule


def _python(function: Callable[..., Any], *roles: str) -> Any:
    """A rule: what plain Python does with a sequence and the other arguments.

    Args:
        function: it.
        roles: of the other arguments: "element", which is stored; "index"; "as given".
    """
    rule = called(compiled(function, apart=True))

    def typed(context: Any, args: Sequence[types.Type]) -> Meaning:
        of = args[0]
        given: list[types.Type] = [of]
        for role, one in zip(roles, args[1:], strict=False):
            if role == "element":
                one = stored(of, one)  # type: ignore[arg-type]
            elif role == "integer":
                check_index(one)
                one = types.int64
            given.append(types.unliteral(one))
        meaning: Meaning = rule(context, given)
        return meaning

    return typed


# ---- putting in ----


@_method("append", (ListField, DequeField), 1)
def _append(context: Any, args: Sequence[types.Type]) -> Meaning:
    of, value = args
    assert isinstance(of, SequenceType)
    most = of.container.maxlen

    def write(head: Elements, sig: Any, args: Sequence[Value]) -> None:
        if most == 0:
            head.changed()
            return
        if most is not None:
            full = head.builder.icmp_unsigned(">=", head.count(), I64(most))
            with head.builder.if_then(full):
                head.delete(I64(0), I64(1), I64(1))
        head.append(args[1])

    return _meaning(types.none, (of, stored(of, value)), write)


@_method("appendleft", (DequeField,), 1)
def _append_left(context: Any, args: Sequence[types.Type]) -> Meaning:
    of, value = args
    assert isinstance(of, SequenceType)
    most = of.container.maxlen

    def write(head: Elements, sig: Any, args: Sequence[Value]) -> None:
        if most == 0:
            head.changed()
            return
        if most is not None:
            count = head.count()
            full = head.builder.icmp_unsigned(">=", count, I64(most))
            with head.builder.if_then(full):
                head.delete(head.builder.sub(count, I64(1)), I64(1), I64(1))
        head.insert(I64(0), args[1])

    return _meaning(types.none, (of, stored(of, value)), write)


append_one = method("append")
append_left = method("appendleft")


def _extended(values, given):
    for value in given:
        poll_for(run_of(values))
        append_one(values, value)


def _extended_left(values, given):
    for value in given:
        poll_for(run_of(values))
        append_left(values, value)


_method("extend", (ListField, DequeField), 1)(_python(_extended, "as given"))
_method("extendleft", (DequeField,), 1)(_python(_extended_left, "as given"))


def _inserted(values, index, value):
    insert(values, clipped(values, index), value)


def _inserted_within(values, index, value):
    if len(values) >= values.maxlen:
        raise_error(IndexError)
    insert(values, clipped(values, index), value)


_INSERT = _python(_inserted, "index", "element")
_INSERT_WITHIN = _python(_inserted_within, "index", "element")


@_method("insert", (ListField, DequeField), 2)
def _insert(context: Any, args: Sequence[types.Type]) -> Meaning:
    of = args[0]
    assert isinstance(of, SequenceType)
    bounded = of.container.maxlen is not None
    meaning: Meaning = (_INSERT_WITHIN if bounded else _INSERT)(context, args)
    return meaning


# ---- taking out ----


def _popped(values, index):
    at = item_position(values, index)
    value = get(values, at)
    delete(values, at, 1, 1)
    return value


_POP_AT = _python(_popped, "index")


@_method("pop", (ListField,), 0, 1)
def _pop(context: Any, args: Sequence[types.Type]) -> Meaning:
    if len(args) > 1:
        meaning: Meaning = _POP_AT(context, args)
        return meaning
    return _pop_last(context, args)


@_method("pop", (DequeField,), 0)
def _pop_last(context: Any, args: Sequence[types.Type]) -> Meaning:
    (of,) = args
    assert isinstance(of, SequenceType)
    return _meaning(of.element, (of,), lambda head, sig, args: head.delete_last())


def _popped_left(values):
    if len(values) == 0:
        raise_error(IndexError)
    value = get(values, 0)
    delete(values, 0, 1, 1)
    return value


_method("popleft", (DequeField,), 0)(_python(_popped_left))


def _removed(values, value):
    at = 0
    for one in values:
        poll_for(run_of(values))
        if eq(one, value):
            delete(values, at, 1, 1)
            return
        at += 1
    raise_error(ValueError)


_method("remove", (ListField, DequeField), 1)(_python(_removed, "as given"))


@_method("clear", _ANY, 0)
def _clear(context: Any, args: Sequence[types.Type]) -> Meaning:
    def write(head: Elements, sig: Any, args: Sequence[Value]) -> None:
        if head.is_deque:
            head.delete(I64(0), I64(1), head.count())
        else:
            head.set_count(I64(0))

    return _meaning(types.none, args, write)


# ---- looking for ----


def _found(values, value):
    for one in values:
        poll_for(run_of(values))
        if eq(one, value):
            return True
    return False


def _position(values, value):
    at = 0
    for one in values:
        poll_for(run_of(values))
        if eq(one, value):
            return at
        at += 1
    raise_error(ValueError)
    return -1


def _position_from(values, value, start):
    return _position_between(values, value, start, len(values))


def _position_between(values, value, start, stop):
    low = clipped(values, start)
    high = clipped(values, stop)
    for at in range(low, high):
        poll_for(run_of(values))
        if eq(get(values, at), value):
            return at
    raise_error(ValueError)
    return -1


def _counted(values, value):
    found = 0
    for one in values:
        poll_for(run_of(values))
        if eq(one, value):
            found += 1
    return found


_position_between = compiled(_position_between, apart=True)
_INDEX = (
    _python(_position, "as given"),
    _python(_position_from, "as given", "index"),
    called(_position_between),
)


@_method("index", (ListField, DequeField), 1, 3)
def _index(context: Any, args: Sequence[types.Type]) -> Meaning:
    meaning: Meaning = _INDEX[len(args) - 2](context, args)
    return meaning


_method("count", (ListField, DequeField), 1)(_python(_counted, "as given"))
_found_in = compiled(_found, apart=True)


def _is_in(value, values):
    return _found_in(values, value)


_CONTAINS = of_held(called(compiled(_is_in, apart=True)))


def _contains(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 2 or not isinstance(args[1], SequenceType):
        return None
    if args[0] == types.none:  # no element is None
        return types.boolean, args, lambda context, builder, sig, args: BIT(0)
    meaning: Meaning = _CONTAINS(context, args)
    return meaning


also(contains, _contains, types.Any, SequenceType)


# ---- order ----


def _reversed(values):
    low = 0
    high = len(values) - 1
    while low < high:
        poll_for(run_of(values))
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
        poll_for(run_of(values))
        value = get(values, count - 1)
        delete(values, count - 1, 1, 1)
        insert(values, 0, value)
        by -= 1
    while by < 0:
        poll_for(run_of(values))
        value = get(values, 0)
        delete(values, 0, 1, 1)
        insert(values, count - 1, value)
        by += 1


def _rotated_once(values):
    _rotate(values, 1)


_rotate = compiled(_rotated, apart=True)
_ROTATE = (_python(_rotated_once), _python(_rotated, "integer"))
_method("reverse", (ListField, DequeField), 0)(_python(_reversed))


@_method("rotate", (DequeField,), 0, 1)
def _rotate_by(context: Any, args: Sequence[types.Type]) -> Meaning:
    meaning: Meaning = _ROTATE[len(args) - 1](context, args)
    return meaning


def _put_back(values, made):
    for at in range(len(made)):
        poll_for(run_of(values))
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


_method("sort", (ListField,), 1)(_python(_sorted, "as given"))
_SORTED_BY = called(compiled(_sorted_by, apart=True))


@list_sorted_by.rule
def _sort_by_keys(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of = args[0]
    if not isinstance(of, SequenceType):
        return None
    if not isinstance(of, ListField):
        raise refuse("; ".join(no_method(of, "sort")))
    meaning: Meaning = _SORTED_BY(context, args)
    return meaning


# ---- parts ----


def _part(values, first, step, count):
    made = list_new(run_of(values))
    for at in range(count):
        poll_for(run_of(values))
        list_append(made, get(values, first + at * step))
    return made


part_of.rule(called(compiled(_part, apart=True)))


def _replaced(values, first, step, count, given):
    """``values[first:...:step] = given``."""
    other = list_from(run_of(values), given)
    if step != 1 and len(other) != count:
        raise_error(ValueError)
    if len(other) < count:
        delete(values, first + len(other), 1, count - len(other))
    for at in range(len(other)):
        poll_for(run_of(values))
        if at < count:
            put(values, first + at * step, other[at])
        else:
            insert(values, first + at, other[at])


replace_part.rule(called(compiled(_replaced, apart=True)))


def _copied(values):
    return list_from(run_of(values), values)


_method("copy", (ListField,), 0)(_python(_copied))

# ---- operators ----


def _extended_in_place(values, given):
    _extend(values, as_list(run_of(values), given))
    return values


_extend = compiled(_extended, apart=True)
_ADD_IN_PLACE = called(compiled(_extended_in_place, apart=True))


def _add_in_place(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if not isinstance(args[0], SequenceType):
        return None
    if isinstance(args[0], QueueField):
        raise refuse(
            f"+= is asked of a priority queue; write state.{args[0].field.name}.push(x) in a loop"
        )
    if scalar_kind(args[1]) is not None:
        raise refuse(
            f"+= puts {types.unliteral(args[1])} behind a {args[0].container.kind}; write "
            f"state.{args[0].field.name}.append(x)"
        )
    meaning: Meaning = _ADD_IN_PLACE(context, args)
    return meaning


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


def _new_list(what: str, meanings: tuple[Any, Any], others: type | None) -> Any:
    """A rule: an operator that makes a list of a list of the state, on either side."""

    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 2 or not any(isinstance(one, SequenceType) for one in args):
            return None
        at = 0 if isinstance(args[0], SequenceType) else 1
        of, other = args[at], args[1 - at]
        fits = others is None or isinstance(other, ListType | ListField)
        if not isinstance(of, ListField) or not fits:
            shown = types.unliteral(other)
            raise refuse(
                f"{what} between {of} and {shown}; make lists of them before, like "
                f"list(state.{of.field.name})"  # type: ignore[union-attr]
            )
        meaning: Meaning = meanings[at](context, args)
        return meaning

    return rule


arithmetic.iadd.others.append(_add_in_place)
arithmetic.add.others.append(_new_list("+", _JOINED, ListType))
arithmetic.mul.others.append(_new_list("*", _REPEATED, None))
arithmetic.not_.others.append(truth(SequenceType, _meaning, True))
conversions.bool_.others.append(truth(SequenceType, _meaning, False))
also(bool, truth(SequenceType, _meaning, False), SequenceType)


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
        lists = all(isinstance(one, ListType | ListField) for one in args)
        if not lists and not all(isinstance(one, DequeField) for one in args):
            left, right = map(types.unliteral, args)
            raise refuse(
                f"{left} is compared with {right}; compare lists with lists: list(x) makes one"
            )
        meaning: Meaning = meaning_of_both(context, args)
        return meaning

    return rule


for _function in (
    *(arithmetic.eq, arithmetic.ne),
    *(arithmetic.lt, arithmetic.le, arithmetic.gt, arithmetic.ge),
):
    _function.others.append(_comparison(_function, _function in (arithmetic.eq, arithmetic.ne)))

# ---- builtins ----

reversed_list.rule(sequence_iterator)


def _least(values):
    if len(values) == 0:
        raise_error(ValueError)
    found = get(values, 0)
    for one in values:
        poll_for(run_of(values))
        if lt(one, found):
            found = one
    return found


def _greatest(values):
    if len(values) == 0:
        raise_error(ValueError)
    found = get(values, 0)
    for one in values:
        poll_for(run_of(values))
        if lt(found, one):
            found = one
    return found


def _total(values):
    total = 0
    for one in values:
        poll_for(run_of(values))
        total = add(total, one)
    return total


def _total_of_floats(values):
    total = 0.0
    for one in values:
        poll_for(run_of(values))
        total = add(total, one)
    return total


_EXTREMES = {
    "min": called(compiled(_least, apart=True)),
    "max": called(compiled(_greatest, apart=True)),
}
_TOTALS = called(compiled(_total, apart=True)), called(compiled(_total_of_floats, apart=True))


def _builtin(name: str) -> Any:
    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], SequenceType):
            return None
        (of,) = args
        if name != "sum":
            ordered(of, f"{name} of")
            meaning: Meaning = _EXTREMES[name](context, args)
            return meaning
        if scalar_kind(of.element) is None:
            raise refuse(
                f"sum of state.{of.field.name}, which holds {of.container.value}; write a loop"
            )
        meaning = _TOTALS[of.element == types.float64](context, args)
        return meaning

    return rule


def ordered(of: SequenceType, what: str) -> None:
    """Refuses elements that have no order."""
    if of.container.value.has_text:
        raise refuse(
            f"{what} state.{of.field.name}, which holds {of.container.value}, compares strings, "
            "and those have no order here; keep a number in place of the string, such as an index"
        )


for _name in ("min", "max", "sum"):
    also(OF_AN_ARRAY[_name], _builtin(_name), SequenceType)

# ---- heaps, as CPython has them: the same items end up in the same places ----


def _moved_up(heap, first, at):
    item = get(heap, at)
    while at > first:
        above = (at - 1) >> 1
        parent = get(heap, above)
        if not lt(item, parent):
            break
        put(heap, at, parent)
        at = above
    put(heap, at, item)


def _moved_down(heap, at):
    end = len(heap)
    first = at
    item = get(heap, at)
    child = 2 * at + 1
    while child < end:
        right = child + 1
        if right < end and not lt(get(heap, child), get(heap, right)):
            child = right
        put(heap, at, get(heap, child))
        at = child
        child = 2 * at + 1
    put(heap, at, item)
    _up(heap, first, at)


_up = compiled(_moved_up, apart=True)
_down = compiled(_moved_down, apart=True)


def _pushed(heap, item):
    append(heap, item)
    _up(heap, 0, len(heap) - 1)


def _popped_least(heap):
    last = take_last(heap)
    if len(heap) == 0:
        return last
    least = get(heap, 0)
    put(heap, 0, last)
    _down(heap, 0)
    return least


def _peeked(heap):
    if len(heap) == 0:
        raise_error(IndexError)
    return get(heap, 0)


def _replaced_least(heap, item):
    if len(heap) == 0:
        raise_error(IndexError)
    least = get(heap, 0)
    put(heap, 0, item)
    _down(heap, 0)
    return least


def _pushed_and_popped(heap, item):
    if len(heap) > 0 and lt(get(heap, 0), item):
        least = get(heap, 0)
        put(heap, 0, item)
        _down(heap, 0)
        return least
    return item


def _of_queues(name: str, function: Callable[..., Any], *roles: str) -> None:
    rule = _python(function, *roles)

    @_method(name, (QueueField,), len(roles))
    def checked(context: Any, args: Sequence[types.Type]) -> Meaning:
        assert isinstance(args[0], QueueField)
        ordered(args[0], f"{name} of")
        meaning: Meaning = rule(context, args)
        return meaning


_of_queues("push", _pushed, "element")
_of_queues("pop", _popped_least)
_of_queues("peek", _peeked)
_of_queues("replace", _replaced_least, "element")
_of_queues("pushpop", _pushed_and_popped, "element")
