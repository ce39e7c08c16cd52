"""Methods and operators of local sets, and the operators that dicts have as well."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types

from specstream._native import lib
from specstream.compiler.backend.instructions import BIT, I32, POINTER, Value
from specstream.compiler.backend.local_types import (
    DictType,
    SetType,
    TableType,
    known,
    own,
    resolved,
)
from specstream.compiler.backend.overloads import Core, Meaning
from specstream.compiler.language.methods import METHODS
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import arithmetic
from specstream.compiler.library.local_table_methods import (
    collect_keys,
    last_entry,
    same_tables,
)
from specstream.compiler.library.local_tables import Table, keys, table_of
from specstream.compiler.library.method_dispatch import adding, method, written_by

__all__ = ["as_set"]

_meaning = written_by(table_of)

# ---- methods ----


@adding(SetType, "discard")
def _discard(of: SetType, key: types.Type) -> Meaning:
    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry = table.find(args[1])
        there = table.builder.not_(table.is_null(entry))
        with table.builder.if_then(there):
            table.remove(entry)

    return _meaning(types.none, (of, keys(of, key)), write)


@adding(SetType, "remove")
def _remove(of: SetType, key: types.Type) -> Meaning:
    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry = table.find(args[1])
        table.fault_if_missing(entry, args[1])
        table.remove(entry)

    return _meaning(types.none, (of, keys(of, key)), write)


@adding(SetType, "pop")
def _pop_of_set(of: SetType) -> Meaning:
    key = known(of.key_type, "a set")

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry = last_entry(table)
        value = table.key_of(entry)
        table.remove(entry)
        return value

    return _meaning(key, (of,), write)


def _own(table: Table, sig: Any, args: Sequence[Value]) -> list[Value]:
    """Both as the event's own: C knows of no others."""
    return [
        table_of(table.context, table.builder, of, arg).own()
        for of, arg in zip(sig.args, args, strict=True)
    ]


def _of_several(rule: Any, is_method: bool) -> Any:
    """The rule for one set and any number of others, one behind the other."""

    def asked(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        of = args[0]
        if len(args) == 2 or not isinstance(of, SetType):
            found: Meaning | None = rule(context, args)
            return found
        steps: list[Meaning] = []
        for other in args[1:]:
            step = rule(context, (of, other))
            if step is None:
                return None
            steps.append(step)
            of = of if is_method else step[0]
        if not steps:
            made = types.none if is_method else own(of)
            return _meaning(
                made, args, lambda table, sig, args: None if is_method else table.copied()
            )

        def code(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
            value = args[0]
            for (result, taken, write), other in zip(steps, args[1:], strict=True):
                made = write(context, builder, result(*taken), [value, other])
                value = value if is_method else made
            return made

        return steps[-1][0], (args[0], *(taken[1] for _, taken, _ in steps)), code

    return asked


def _two_tables(args: Sequence[types.Type]) -> bool:
    return len(args) == 2 and all(isinstance(one, TableType) for one in args)


def _combined(operation: int, what: str) -> Any:
    """A new set of two; of two dicts their union, ``d | e``."""

    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not _two_tables(args):
            return None
        made = same_tables(*args)
        is_union = operation == lib.SS_SET_UNION
        if isinstance(made, DictType) and not is_union:
            raise refuse(f"{what} of dicts: write set(d) {what} set(e)")

        def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
            if is_union:
                pointer = table.copied()
                _, right = _own(table, sig, args)
                table.leave_unless(table.call("ss_table_update", BIT, pointer, right))
                return pointer
            found = table.call("ss_set_combined", POINTER, *_own(table, sig, args), I32(operation))
            return table.leave_if_null(found)

        return _meaning(made, args, write)

    return rule


def _changed(operation: int, what: str, is_method: bool = False) -> Any:
    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not _two_tables(args):
            if isinstance(args[0], DictType) and what == "|=":
                name = args[0].written
                raise refuse(
                    f"|= of {name} takes a dict and gets {types.unliteral(args[1])}; write "
                    f"{name}.update(pairs)"
                )
            return None
        made = same_tables(*args)
        if isinstance(made, DictType) and operation != lib.SS_SET_UNION:
            raise refuse(f"{what} of dicts: write set(d) and set(e)")
        made = args[0] if args[0].is_declared else made

        def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
            table.change(
                table_of(table.context, table.builder, sig.args[1], args[1]).own(), operation
            )
            return None if is_method else table.pointer

        return _meaning(types.none if is_method else made, args, write)

    return rule


for _operation, _operators, _name in (
    (lib.SS_SET_UNION, (arithmetic.or_, arithmetic.ior, "|"), "union"),
    (lib.SS_SET_INTERSECTION, (arithmetic.and_, arithmetic.iand, "&"), "intersection"),
    (lib.SS_SET_DIFFERENCE, (arithmetic.sub, arithmetic.isub, "-"), "difference"),
    (lib.SS_SET_SYMMETRIC, (arithmetic.xor, arithmetic.ixor, "^"), "symmetric_difference"),
):
    _operators[0].rule(_combined(_operation, _operators[2]))
    _operators[1].rule(_changed(_operation, f"{_operators[2]}="))
    _new, _change = _combined(_operation, _name), _changed(_operation, _name, is_method=True)
    if METHODS["set", _name].most is None:
        _new, _change = _of_several(_new, False), _of_several(_change, True)
    method(_name).rule(_new)
    if _name != "union":
        method(f"{_name}_update").rule(_change)


def _asked(write: Callable[[Table, Sequence[Value]], Value], what: str, of_dicts: bool) -> Any:
    """A rule of two sets that gives a bool."""

    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not _two_tables(args):
            return None
        if isinstance(same_tables(*args), DictType) and not of_dicts:
            raise refuse(f"{what} of dicts: write set(d) and set(e)")

        def written(table: Table, sig: Any, args: Sequence[Value]) -> Value:
            return write(table, _own(table, sig, args))

        return _meaning(types.boolean, args, written)

    return rule


def _equal(table: Table, args: Sequence[Value]) -> Value:
    return table.call("ss_table_equal", BIT, *args)


def _within(table: Table, args: Sequence[Value]) -> Value:
    return table.call("ss_set_within", BIT, *args)


def _smaller(table: Table, args: Sequence[Value]) -> Value:
    """Within it, and not the same."""
    builder = table.builder
    of = own(table.type)
    counts = [Table(table.context, builder, of, one).count() for one in args]
    fewer = builder.icmp_unsigned("<", *counts)
    return builder.and_(_within(table, args), fewer)


def _swapped(write: Any) -> Any:
    return lambda table, args: write(table, args[::-1])


def _not(write: Any) -> Any:
    return lambda table, args: table.builder.not_(write(table, args))


arithmetic.eq.rule(_asked(_equal, "==", True))
arithmetic.ne.rule(_asked(_not(_equal), "!=", True))
arithmetic.le.rule(_asked(_within, "<=", False))
arithmetic.ge.rule(_asked(_swapped(_within), ">=", False))
arithmetic.lt.rule(_asked(_smaller, "<", False))
arithmetic.gt.rule(_asked(_swapped(_smaller), ">", False))
method("issubset").rule(_asked(_within, "issubset", False))
method("issuperset").rule(_asked(_swapped(_within), "issuperset", False))
method("isdisjoint").rule(
    _asked(lambda table, args: table.call("ss_set_disjoint", BIT, *args), "isdisjoint", False)
)


# ---- what they take ----

as_set = Core("as_set", "write set(x) of an iterable")


@as_set.rule
def _iterable_as_set(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """For methods of local sets, any iterable as a set: (run, iterable). A set is itself."""
    if not isinstance(args[1], SetType):
        found: Meaning = collect_keys(context, args)
        return found
    return resolved(args[1]), args, lambda context, builder, sig, args: args[1]
