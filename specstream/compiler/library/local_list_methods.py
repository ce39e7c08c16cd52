"""What only local lists have: loops over their words in C, and what makes one of an iterable.

What needs no loop they share with the sequences of the state
(:mod:`specstream.compiler.library.sequence_methods`). Those have their loops in plain Python. Here
C has one for elements of all types, whose call is compiled in 1 to 3 ms; a loop of plain Python
takes 20 to 30. With one for ``x in xs`` and ``xs.remove(x)``, the operators of ``tests/corpus``
that have these took 16 to 22 % longer to compile.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import types

from specstream._native import lib
from specstream.compiler.backend.instructions import BIT, F64, I32, I64, POINTER, Value
from specstream.compiler.backend.local_types import (
    ListType,
    LocalIterator,
    LocalType,
    known,
    own,
    resolved,
    takes,
)
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.numba_types import ContainerType, RecordType
from specstream.compiler.backend.overloads import (
    Core,
    Meaning,
    also,
    but_of,
    called,
    of_values,
)
from specstream.compiler.backend.polling import poll_while
from specstream.compiler.backend.scalar_functions import Native
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import arithmetic
from specstream.compiler.library.local_lists import (
    List,
    element_of,
    list_append,
    list_new,
    list_walk,
    same_elements,
)
from specstream.compiler.library.method_dispatch import adding, written_by
from specstream.compiler.library.reductions import OF_AN_ARRAY

__all__ = [
    "as_list",
    "delete_item",
    "list_from",
    "list_sorted",
    "list_sorted_by",
    "nothing",
    "reversed_list",
]

_VOID = ir.VoidType()
_meaning = written_by(List)
_method = functools.partial(adding, ListType)


# ---- methods ----


@_method("extend")
def _extend(of: ListType, by: types.Type) -> Meaning:
    if not isinstance(by, ListType):
        raise refuse(f"a list is extended by {by}: write x.extend(list(...))")
    same_elements(of, by)

    def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
        head.leave_unless(head.call("ss_list_extend", BIT, *args))

    return _meaning(types.none, (of, by), write)


@_method("count", absent=lambda context, builder: I64(0))
def _count(of: ListType, value: types.Type) -> Meaning:
    def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
        packed = head.packed(args[1])
        return head.call("ss_list_count", I64, head.pointer, head.kinds, packed)

    return _meaning(types.int64, (of, takes(of, value)), write)


@_method("copy")
def _copy(of: ListType) -> Meaning:
    return _meaning(own(of), (of,), lambda head, sig, args: copied(head))


def copied(head: List) -> Value:
    return head.part(I64(0), I64(1), head.count())


@_method("reverse")
def _reverse(of: ListType) -> Meaning:
    def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
        head.call("ss_list_reverse", _VOID, head.pointer)

    return _meaning(types.none, (of,), write)


# ---- sorting ----

list_sorted = Core("list_sorted", "it sorts lists")
list_sorted_by = Core("list_sorted_by", "it sorts lists")


def _ordered(element: types.Type, what: str) -> None:
    """Refuses elements that have no order."""
    element = resolved(element)
    if isinstance(element, ListType):
        _ordered(element.element, what)
    elif isinstance(element, types.BaseTuple):
        for part in element:
            _ordered(part, what)
    elif isinstance(element, RecordType):
        raise refuse(
            f"{what} of records, which have no order: sort by a field of theirs, with key="
        )
    elif isinstance(element, LocalType):
        raise refuse(f"{what} of {element}, which has no order: sort by a number, with key=")


def _sorting(what: str, args: Sequence[types.Type], result: types.Type) -> Meaning:
    """Sorts a list in place: (list, backwards), and maybe another list, of the keys to sort by."""
    of, backwards, *by = args
    keys = by[0] if by else of
    assert isinstance(keys, ListType)
    _ordered(keys.element, what)
    _flag(backwards)

    def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
        order = args[2] if by else head.pointer
        head.fault_if(head.call("ss_list_has_nan", BIT, order), ValueError)
        flag = head.builder.zext(args[1], I32)
        head.leave_unless(head.call("ss_list_sort", BIT, head.pointer, order, flag))
        return None if result == types.none else head.pointer

    return _meaning(result, (of, types.boolean, *by), write)


@list_sorted.rule
def _sorted(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Sorts a list in place, and is that list."""
    of = args[0]
    return _sorting("a sort", args, resolved(of)) if isinstance(of, ListType) else None


@list_sorted_by.rule
def _sorted_by(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Likewise by the elements of another list."""
    of, _, keys = args
    if not isinstance(of, ListType) or not isinstance(keys, ListType):
        return None
    return _sorting("a sort by keys", args, resolved(of))


def _flag(given: types.Type) -> None:
    if scalar_kind(given) not in ("bool", "int64"):
        raise refuse(f"reverse is {given}: write reverse=True or reverse=False")


@_method("sort", added=1)
def _sort_in_place(*args: types.Type) -> Meaning:
    """The rewriting always says whether backwards."""
    return _sorting("a sort", args, types.none)


nothing = Core("nothing", "it takes one value")
"""A call whose value is not used: None in Python."""


@nothing.rule
def _nothing(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return context.get_dummy_value()

    return types.none, args, code


# ---- one of whatever can be gone through ----

list_from = Core("list_from", "write list(x) of an iterable")


@list_from.rule
def _copy_by_list(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Like the method ``copy`` of a local list: the built-in ``list(x)``, (run, list)."""
    of = args[1]
    if not isinstance(of, ListType):
        return None
    return _meaning(own(of), args, lambda head, sig, args: copied(head), of=1)


def _collected(run: Any, values: Any) -> Any:
    made = list_new(run)
    for value in values:
        poll_while(run)
        list_append(made, value)
    return made


_COLLECT = called(compiled(_collected))
list_from.rule(but_of(ListType, _COLLECT))

as_list = Core("as_list", "write list(x) of an iterable")


@as_list.rule
def _iterable_as_list(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """For methods of local lists, any iterable as a list: (run, iterable). A list is itself."""
    if not isinstance(args[1], ListType):
        found: Meaning = _COLLECT(context, args)
        return found
    return resolved(args[1]), args, lambda context, builder, sig, args: args[1]


# ---- del ----

delete_item = Core("delete_item", "del takes items and slices of lists, and keys of dicts")


# ---- operators ----


def _both_lists(args: Sequence[types.Type]) -> bool:
    return len(args) == 2 and all(isinstance(one, ListType) for one in args)


def _check_meets_no_tuple(verb: str, args: Sequence[types.Type]) -> None:
    """Python has no ``+`` and no order for the two, and they are never equal."""
    given = [types.unliteral(one) for one in args]
    if any(isinstance(one, ListType) for one in given) and any(
        isinstance(one, types.BaseTuple) for one in given
    ):
        raise refuse(
            f"a list is {verb} a tuple, which Python does not take for a list: make one of it, "
            "list(x), or [...] in the place of (...)"
        )


def _add(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if not _both_lists(args):
        _check_meets_no_tuple("added to", args)
        return None
    made = same_elements(*args)

    def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
        return head.leave_if_null(head.call("ss_list_joined", POINTER, *args))

    return _meaning(made, args, write)


def _add_in_place(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if not _both_lists(args):
        is_kept = isinstance(args[1], ContainerType)  # one of the state: see there
        if isinstance(args[0], ListType) and scalar_kind(args[1]) is None and not is_kept:
            raise refuse(f"+= puts {args[1]} behind a list: write x.extend(y)")
        return None
    made = same_elements(*args)

    def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
        head.leave_unless(head.call("ss_list_extend", BIT, *args))
        return head.pointer

    return _meaning(made, args, write)


def _repeating(in_place: bool) -> Any:
    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 2 or not any(isinstance(one, ListType) for one in args):
            return None
        at = 0 if isinstance(args[0], ListType) else 1
        times = args[1 - at]
        if scalar_kind(times) not in ("int64", "bool"):
            raise refuse(f"a list is multiplied by {times}: write [x] * n with an integer n")

        def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
            if not in_place:
                head.pointer = copied(head)
            head.leave_unless(head.call("ss_list_repeat", BIT, head.pointer, args[1 - at]))
            return head.pointer

        taken = [types.int64, types.int64]
        taken[at] = args[at]
        return _meaning(own(args[at]), taken, write, of=at)

    return of_values(rule)


_RELATIONS: dict[Native, int] = {
    arithmetic.eq: lib.SS_EQUAL,
    arithmetic.ne: lib.SS_UNEQUAL,
    arithmetic.lt: lib.SS_LESS,
    arithmetic.le: lib.SS_LESS_EQUAL,
    arithmetic.gt: lib.SS_GREATER,
    arithmetic.ge: lib.SS_GREATER_EQUAL,
}


def _comparing(function: Native, relation: int) -> Any:
    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not _both_lists(args):
            _check_meets_no_tuple("compared with", args)
            return None
        found = same_elements(*args)
        if function not in (arithmetic.eq, arithmetic.ne):
            assert isinstance(found, ListType)
            _ordered(found.element, "a comparison of lists")

        def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
            return head.call("ss_list_compare", BIT, *args, I32(relation))

        return _meaning(types.boolean, args, write)

    return rule


arithmetic.add.rule(_add)
arithmetic.iadd.rule(_add_in_place)
arithmetic.mul.rule(_repeating(False))
arithmetic.imul.rule(_repeating(True))
for _function, _relation in _RELATIONS.items():
    _function.rule(_comparing(_function, _relation))

# ---- builtins ----


def _extreme(relation: int) -> Any:
    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], ListType):
            return None
        element = element_of(args[0])
        _ordered(element, "min or max")

        def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
            head.fault_if(head.builder.icmp_unsigned("==", head.count(), I64(0)), ValueError)
            return head.get(head.call("ss_list_extreme", I64, head.pointer, I32(relation)))

        return _meaning(element, args, write)

    return rule


def _sum(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 1 or not isinstance(args[0], ListType):
        return None
    element = element_of(args[0])
    if scalar_kind(element) is None:
        raise refuse(f"sum of a list of {element}: write a loop")
    total = types.int64 if element == types.boolean else element

    def write(head: List, sig: Any, args: Sequence[Value]) -> Value:
        bits = head.call("ss_list_sum", I64, head.pointer)
        return head.builder.bitcast(bits, F64) if total == types.float64 else bits

    return _meaning(total, args, write)


also(OF_AN_ARRAY["min"], _extreme(lib.SS_LESS), ListType)
also(OF_AN_ARRAY["max"], _extreme(lib.SS_GREATER), ListType)
also(OF_AN_ARRAY["sum"], _sum, ListType)


def _reversed(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of = args[0]
    if len(args) != 1 or not isinstance(of, ListType):
        return None
    walk = LocalIterator(resolved(of), "reversed", known(of.element, "a list"))

    return (
        walk,
        args,
        lambda context, builder, sig, args: list_walk(context, builder, walk, args[0]),
    )


reversed_list = Core("reversed", "reversed takes a list: write reversed(list(x))")
reversed_list.rule(_reversed)
