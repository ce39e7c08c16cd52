"""The state of an interpreted operator: its fields as attributes, over a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from specstream.columns.strings import StringTable
from specstream.compiler.language.hints import names_it_has
from specstream.compiler.oracle.oracle import OracleLocks
from specstream.compiler.oracle_objects.view import strides_of
from specstream.declarations.element_types import Storage
from specstream.declarations.state_layout import Field, Layout
from specstream.declarations.updates import misfit_of_field
from specstream.interpreted.arrays import Array
from specstream.interpreted.coded import PlainCodec
from specstream.interpreted.containers import make_container
from specstream.interpreted.records import Member, record_array, scalar_record
from specstream.interpreted.values import Texts, layout_of, stored

__all__ = ["Elements", "make_state"]


class Elements:
    """The elements of a backend, by where they are and their type; each made once.

    Attributes:
        codec: of what containers hold.
    """

    def __init__(self, run: Any, layout: Layout, strings: StringTable) -> None:
        # Of the whole state, also where the fields are those of one vertex.
        self._run, self._layout = run, layout
        self._strings, self.codec = strings, PlainCodec(strings)
        self._made: dict[tuple[str, str], Any] = {}

    def of(self, space: str, storage: Storage) -> Any:
        """Elements of a type, counted from the start of the space."""
        found = self._made.get((space, storage.name))
        if found is None:
            words = self._layout.state_words if space == "state" else self._layout.words("scratch")
            length = words * 8 // storage.size
            found = self._run.elements(*layout_of(storage), length, space == "scratch")
            if storage.number == "str":
                found = Texts(found, self._strings)
            self._made[space, storage.name] = found
        return found


def _scalar(field: Field, words: Any) -> Member:
    at, convert, what = field.start, stored(field.storage), f"state.{field.name}"

    def put(value: Any) -> None:
        words[at] = convert(value, what)

    return property(lambda self: words[at]), put


def _whole(field: Field, held: Any) -> Member:
    """A field that cannot be replaced; ``state.x |= other`` gives it back."""

    def put(value: Any) -> None:
        if value is not held:
            raise AttributeError(
                f"state.{field.name} {_is(field)} and cannot be replaced; {_way_in(field)}"
            )

    return property(lambda self: held), put


def _is(field: Field) -> str:
    if field.space == "locks":
        return "holds locks"
    if field.container is None:
        return "is an array"
    return "holds timers" if field.is_timers else f"is a {field.container.kind.replace('_', ' ')}"


_WAYS_IN = {
    "array": "state.{0}[:] = values, or state.{0}[i] = value",
    "dict": "state.{0}.clear(), and state.{0}.update(values)",
    "set": "state.{0}.clear(), and state.{0}.update(values)",
    "list": "state.{0}[:] = values",
    "deque": "state.{0}.clear(), and state.{0}.extend(values)",
    "priority_queue": "state.{0}.clear(), and state.{0}.push(value)",
    "timers": "state.{0}.clear(), and state.{0}.set(key, at)",
}


def _way_in(field: Field) -> str:
    """How what a field holds is changed."""
    if field.space == "locks":
        return f"take one by with state.{field.name}[i]:"
    kind = "array" if field.container is None else field.container.kind
    return f"change what it holds, by {_WAYS_IN[kind].format(field.name)}"


def make_state(
    layout: Layout, run: Any, elements: Elements
) -> tuple[Any, list[Callable[[], None]]]:
    """The state over a backend; and what is to be called when an event begins."""
    begin: list[Callable[[], None]] = []
    found: dict[str, Member] = {}
    for field in layout.fields:
        if field.space == "locks":
            found[field.name] = _whole(field, OracleLocks(field.name, field.size))
        elif field.container is not None:
            made = make_container(field, layout, run, elements, begin)
            found[field.name] = _whole(field, made)
        elif field.record is not None and len(field.shape) == 1:
            found[field.name] = scalar_record(field, elements.of, begin)
        elif field.record is not None:
            found[field.name] = _whole(field, record_array(field, elements.of, begin))
        else:
            words = elements.of(field.space, field.storage)
            if field.shape == ():
                found[field.name] = _scalar(field, words)
                continue
            strides = strides_of(field.shape)
            array = Array(field.name, field.storage, words, field.start, field.shape, strides)
            found[field.name] = _whole(field, array)
    puts = {name: put for name, (_, put) in found.items()}

    def lacks(self: Any, name: str) -> NoReturn:
        has = names_it_has(name, puts) if puts else "it has none"
        raise AttributeError(f"state {layout.name!r} has no field {name!r}; {has}")

    def assign(self: Any, name: str, value: Any) -> None:
        put = puts.get(name)
        if put is None:
            lacks(self, name)
        put(value)

    def delete(self: Any, name: str) -> None:
        field = layout.field(name)
        if field is None:
            lacks(self, name)
        is_scalar = field.container is None and field.dimensions == ()
        way = f"assign another value, state.{name} = value" if is_scalar else _way_in(field)
        raise AttributeError(f"state.{name} cannot be deleted: the fields of a state stay; {way}")

    def check_update(self: Any, name: str, key: Any) -> None:
        misfit = misfit_of_field(name, layout, key)
        if misfit is not None:
            raise TypeError(str(misfit))

    members: dict[str, Any] = {name: of for name, (of, _) in found.items()}
    members |= {"__slots__": (), "__getattr__": lacks, "__setattr__": assign}
    members |= {"__delattr__": delete, "__ss_check_update__": check_update}
    return type("State", (), members)(), begin
