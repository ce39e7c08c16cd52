"""Methods, views and built-in functions of local dicts, and what dicts and sets share."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types
from numba.extending import lower_builtin, models, register_model

from specstream.compiler.backend.instructions import Value, raise_error
from specstream.compiler.backend.local_types import (
    DictType,
    LocalIterator,
    SetType,
    TableType,
    known,
    meet,
    own,
    resolved,
)
from specstream.compiler.backend.none_types import present
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.numba_types import RecordType
from specstream.compiler.backend.overloads import Core, Meaning, also, but_of, called, of_held
from specstream.compiler.backend.polling import poll_while
from specstream.compiler.backend.scalar_functions import Native
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import arithmetic
from specstream.compiler.library.local_list_methods import delete_item, reversed_list
from specstream.compiler.library.local_tables import (
    Table,
    dict_new,
    dict_set,
    keys,
    set_add,
    set_new,
    start_walk,
    table_of,
    values,
)
from specstream.compiler.library.method_dispatch import adding, method, sized, written_by
from specstream.compiler.library.reductions import (
    OF_AN_ARRAY,
    among,
    contains,
    total_of,
)

__all__ = [
    "DictView",
    "collect_keys",
    "collect_pairs",
    "dict_from",
    "get_or_none",
    "last_entry",
    "same_tables",
    "set_from",
]

_meaning = written_by(table_of)


# ---- of both ----


@adding(TableType, "clear")
def _clear(of: TableType) -> Meaning:
    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        table.clear()

    return _meaning(types.none, (of,), write)


@adding(TableType, "copy")
def _copy(of: TableType) -> Meaning:
    return _meaning(own(of), (of,), lambda table, sig, args: table.copied())


@of_held
def _contains(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    key, of = args
    if not isinstance(of, TableType):
        return None

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        return table.builder.not_(table.is_null(table.find(args[0])))

    return _meaning(types.boolean, (keys(of, key), of), write, of=1)


sized(TableType, _meaning)
also(contains, _contains, types.Any, TableType)


# ---- dicts ----


@adding(DictType, "get")
def _get(of: DictType, key: types.Type, *default: types.Type) -> Meaning:
    if default in ((), (types.none,)):
        return get_or_none(of, key, default)
    taken = keys(of, key), values(of, *default)

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry = table.find(args[1])
        return _value_or(table, entry, args[2])

    return _meaning(taken[1], (of, *taken), write)


def _value(table: Table, entry: Value) -> Value:
    return table.value_of(entry)


def get_or_none(
    of: TableType, key: types.Type, default: tuple[types.Type, ...], give: Any = _value
) -> Meaning:
    """``d.get(key)``, ``d.pop(key, None)`` of a local dict: None where there is no such key."""
    result = types.Optional(known(of.value_type, "a dict"))

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        context, builder = table.context, table.builder

        def optional(table: Table, entry: Value) -> Value:
            return context.make_optional_value(builder, result.type, give(table, entry))

        none = context.make_optional_none(builder, result.type)
        return _value_or(table, table.find(args[1]), none, optional)

    given = (of, keys(of, key), *default)
    return _meaning(result, given, write)


def _value_or(table: Table, entry: Value, default: Value, give: Any = _value) -> Value:
    """What an entry gives, or something else where it is null."""
    builder = table.builder
    with builder.if_else(table.is_null(entry)) as (missing, there):
        with missing:
            nowhere = builder.block
        with there:
            value = give(table, entry)
            somewhere = builder.block
    found = builder.phi(value.type)
    found.add_incoming(default, nowhere)
    found.add_incoming(value, somewhere)
    return found


@adding(DictType, "setdefault")
def _setdefault(of: DictType, key: types.Type, default: types.Type = types.none) -> Meaning:
    name = of.written
    if default == types.none:
        raise refuse(f"setdefault of {name} gets None; give it a value, {name}.setdefault(key, 0)")
    if isinstance(default, types.Optional) and not isinstance(present(default), RecordType):
        raise refuse(
            f"setdefault of {name} gets a value that may be None; write it where there is a value: "
            f"if value is not None: {name}.setdefault(key, value)"
        )
    taken = keys(of, key), values(of, default)

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry, is_new = table.put(args[1])
        with table.builder.if_then(is_new):
            table.put_value(entry, args[2])
        return table.value_of(entry)

    return _meaning(taken[1], (of, *taken), write)


@adding(DictType, "pop")
def _pop(of: DictType, key: types.Type, *default: types.Type) -> Meaning:
    if default == (types.none,):
        return get_or_none(of, key, default, _taken)
    taken = keys(of, key), *(values(of, one) for one in default)
    value = known(of.value_type, "a dict")

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry = table.find(args[1])
        if default:
            return _value_or(table, entry, args[2], _taken)
        table.fault_if_missing(entry, args[1])
        return _taken(table, entry)

    return _meaning(value, (of, *taken), write)


def _taken(table: Table, entry: Value) -> Value:
    """The value of an entry that is removed."""
    value = table.value_of(entry)
    table.remove(entry)
    return value


@adding(DictType, "popitem")
def _popitem(of: DictType) -> Meaning:
    pair = types.BaseTuple.from_types(
        [known(of.key_type, "a dict"), known(of.value_type, "a dict")]
    )

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry = last_entry(table)
        key = table.key_of(entry)
        return table.context.make_tuple(table.builder, pair, [key, _taken(table, entry)])

    return _meaning(pair, (of,), write)


def last_entry(table: Table) -> Value:
    entry = table.last()
    table.fault_if(table.is_null(entry), KeyError)
    return entry


def same_tables(left: types.Type, right: types.Type) -> types.Type:
    if isinstance(left, DictType) != isinstance(right, DictType):
        raise refuse(f"{left} meets {right}: write set(d) for the keys of the dict")
    found = meet(own(left), own(right))
    if found is None:
        raise refuse(f"{left} meets {right}: keep keys and values of one type in both")
    return found


@method("update").rule
def _updated(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """By another one, or by what a loop goes over, of a dict pairs: (table, run, by)."""
    if not isinstance(args[0], TableType):
        return None
    of, run, *others = args
    if isinstance(of, DictType) and len(others) > 1:
        raise refuse("update of a dict takes one value: write d.update(e) for each of them")
    parts = [_update_argument(context, of, run, by) for by in others]

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        for (_, give), one in zip(parts, args[2:], strict=True):
            table.update(give(table, args[1], one))

    return _meaning(types.none, (of, run, *(taken for taken, _ in parts)), write)


def _update_argument(
    context: Any, of: TableType, run: types.Type, by: types.Type
) -> tuple[types.Type, Any]:
    """An argument of ``update`` of a local dict or set: its type, and what makes a table of it.

    That is a table of the event's own.
    """
    taken, make = by, None
    # Of a dict a set takes the keys.
    if not isinstance(by, TableType) or (isinstance(of, SetType) and not isinstance(by, SetType)):
        collect = collect_pairs if isinstance(of, DictType) else collect_keys
        by, (_, taken), make = collect(context, (run, by))
    same_tables(of, by)

    def give(table: Table, pointer: Value, one: Value) -> Value:
        if make is not None:
            made: Value = make(table.context, table.builder, by(run, taken), [pointer, one])
            return made
        is_own = not by.is_declared
        return one if is_own else table_of(table.context, table.builder, by, one).own()

    return taken, give


@delete_item.rule
def _delete(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    of, key = args
    if not isinstance(of, DictType):
        return None

    def write(table: Table, sig: Any, args: Sequence[Value]) -> Value:
        entry = table.find(args[1])
        table.fault_if_missing(entry, args[1])
        table.remove(entry)

    return _meaning(types.none, (of, keys(of, key)), write)


# ---- views of dicts ----


class DictView(types.IterableType):
    """``d.keys()``, ``d.values()``, ``d.items()``."""

    def __init__(self, table: DictType, walk: Any) -> None:
        self.table = table
        self.walk = walk
        super().__init__(f"specstream.dict_view({table.name}, {walk})")

    @property
    def yields(self) -> types.Type:
        key, value = known(self.table.key_type, "a dict"), known(self.table.value_type, "a dict")
        of = {"keys": key, "values": value}
        return of.get(self.walk) or types.BaseTuple.from_types([key, value])

    @property
    def iterator_type(self) -> types.Type:
        return LocalIterator(resolved(self.table), self.walk, self.yields)

    def unify(self, context: Any, other: types.Type) -> types.Type | None:
        if not isinstance(other, DictView) or self.walk != other.walk:
            return None
        table = meet(self.table, other.table)
        return None if table is None else DictView(table, self.walk)


register_model(DictView)(models.OpaqueModel)


def _viewed(name: str, walk: str) -> None:
    @adding(DictType, name)
    def view(of: DictType) -> Meaning:
        found = resolved(of)
        assert isinstance(found, DictType)
        return _meaning(DictView(found, walk), (of,), lambda table, sig, args: args[0])


_viewed("keys", "keys")
_viewed("values", "values")
_viewed("items", "pairs")


@lower_builtin("getiter", DictView)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    return start_walk(context, builder, sig.return_type, args[0])


@reversed_list.rule
def _reversed(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``reversed(d)``, or of a view of it: from the last insertion to the first."""
    (of,) = args
    if isinstance(of, SetType):
        raise refuse("a set has no last element in Python: write sorted(s, reverse=True)")
    if not isinstance(of, DictView | DictType):
        return None
    table = resolved(of.table if isinstance(of, DictView) else of)
    assert isinstance(table, DictType)
    view = DictView(table, of.walk if isinstance(of, DictView) else "keys")
    how: Any = f"{view.walk} backwards"
    walk = LocalIterator(table, how, view.yields)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return start_walk(context, builder, walk, args[0])

    return walk, args, code


def _view_length(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if not isinstance(args[0], DictView):
        return None
    table = args[0].table

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return table_of(context, builder, table, args[0]).count()

    return types.int64, args, code


def _pair_among(pair: Any, of: Any) -> Any:
    key, value = pair
    if not contains(key, of):
        return False
    return arithmetic_eq(of[key], value)


arithmetic_eq = arithmetic.eq
_PAIR_AMONG = called(compiled(_pair_among))


@of_held
def _view_contains(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    key, of = args
    if not isinstance(of, DictView):
        return None
    if of.walk == "values":
        return among(context, args)
    is_pair = isinstance(key, types.BaseTuple) and len(key) == 2
    if of.walk == "pairs" and not is_pair:
        raise refuse(f"items() holds pairs, not {key}: write (key, value) in d.items()")
    table = resolved(of.table)
    rule = _PAIR_AMONG if of.walk == "pairs" else _contains
    found = rule(context, (key, table))
    assert found is not None
    result, (sought, _), write = found
    taken = result(sought, table)
    return (
        result,
        (sought, of),
        lambda context, builder, sig, args: write(context, builder, taken, args),
    )


def _no_set(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if not any(isinstance(one, DictView) for one in args):
        return None
    raise refuse("keys(), values() or items() where a set is needed: write set(d) for the keys")


for _operator in (arithmetic.and_, arithmetic.or_, arithmetic.sub, arithmetic.xor):
    _operator.rule(_no_set)
also(len, _view_length, DictView)
also(contains, _view_contains, types.Any, DictView)


# ---- one of whatever can be gone through ----

dict_from = Core("dict_from", "write dict(d), or dict(...) of what gives pairs")
set_from = Core("set_from", "write set(x) of an iterable")


def _copying(kind: type[TableType]) -> Any:
    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        of = args[1]
        if not isinstance(of, kind):
            return None
        return _meaning(own(of), args, lambda table, sig, args: table.copied(), of=1)

    return rule


def _dict_collected(run: Any, pairs: Any) -> Any:
    made = dict_new(run)
    for key, value in pairs:
        poll_while(run)
        dict_set(made, key, value)
    return made


def _set_collected(run: Any, values: Any) -> Any:
    made = set_new(run)
    for value in values:
        poll_while(run)
        set_add(made, value)
    return made


collect_pairs = called(compiled(_dict_collected))
collect_keys = called(compiled(_set_collected))
dict_from.rule(_copying(DictType))
dict_from.rule(but_of(DictType, collect_pairs))
set_from.rule(_copying(SetType))
set_from.rule(but_of(SetType, collect_keys))

# ---- builtins ----


_WALKED = (DictView, TableType)


def _sum(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 1 or not isinstance(args[0], _WALKED):
        return None
    kind = args[0].iterator_type.yield_type
    if kind not in (types.int64, types.boolean, types.float64):
        raise refuse(f"sum of {kind}: write a loop")
    return total_of[kind == types.float64](context, args)


def _choosing(wins: Any) -> Any:
    def best_of(values: Any) -> Any:
        found = False
        best: Any
        for one in values:
            if not found:
                best = one
                found = True
            elif wins(one, best):
                best = one
        if not found:
            raise_error(ValueError)
        return best

    return called(compiled(best_of))


def _extreme(wins: Native) -> Any:
    choose = _choosing(wins)

    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], _WALKED):
            return None
        found: Meaning = choose(context, args)
        return found

    return rule


for _kind in _WALKED:
    also(OF_AN_ARRAY["sum"], _sum, _kind)
    also(OF_AN_ARRAY["min"], _extreme(arithmetic.lt), _kind)
    also(OF_AN_ARRAY["max"], _extreme(arithmetic.gt), _kind)
