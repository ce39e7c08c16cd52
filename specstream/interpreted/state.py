"""The state of an interpreted operator: its fields as attributes, over a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specstream.columns.strings import StringTable
from specstream.declarations.element_types import Storage
from specstream.declarations.state import Field, Layout
from specstream.interpreted.arrays import Array
from specstream.interpreted.containers import make_container
from specstream.interpreted.records import make_records
from specstream.interpreted.values import Texts, layout_of, stored

__all__ = ["Elements", "make_state"]


class Elements:
    """The elements of a backend, by where they are and their type; each made once."""

    def __init__(self, run: Any, layout: Layout, strings: StringTable) -> None:
        # Of the whole state, also where the fields are those of one vertex.
        self._run, self._layout = run, layout
        self._strings = strings
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


def _scalar(field: Field, words: Any) -> property:
    at, convert, what = field.start, stored(field.storage), f"state.{field.name}"

    def put(self: Any, value: Any) -> None:
        words[at] = convert(value, what)

    return property(lambda self: words[at], put)


def _whole(field: Field, held: Any) -> property:
    """A field that cannot be replaced; ``state.x |= other`` gives it back."""

    def put(self: Any, value: Any) -> None:
        if value is not held:
            is_array = field.container is None
            what = "an array" if is_array else f"a {field.container.kind}"  # type: ignore[union-attr]
            way_out = "state.x[:] = values" if is_array else "its methods, like update"
            raise AttributeError(
                f"state.{field.name} is {what} and cannot be replaced; expected {way_out}"
            )

    return property(lambda self: held, put)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for length in reversed(shape[1:]):
        strides.insert(0, strides[0] * length)
    return tuple(strides)


class _Locks:
    """A field of locks: transactions need none."""

    def __getitem__(self, index: Any) -> _Locks:
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    acquire = release = __enter__


def make_state(
    layout: Layout, run: Any, elements: Elements
) -> tuple[Any, list[Callable[[], None]]]:
    """The state over a backend; and what is to be called when an event begins."""
    begin: list[Callable[[], None]] = []
    members: dict[str, Any] = {}
    for field in layout.fields:
        held: Any
        if field.space == "locks":
            held = _Locks()
        elif field.container is not None:
            held = make_container(field, layout, run, elements.of, begin)
        elif field.record is not None:
            members[field.name] = make_records(field, elements.of, begin)
            continue
        else:
            words = elements.of(field.space, field.storage)
            if field.shape == ():
                members[field.name] = _scalar(field, words)
                continue
            held = Array(
                field.name, field.storage, words, field.start, field.shape, _strides(field.shape)
            )
        members[field.name] = _whole(field, held)

    def lacks(self: Any, name: str) -> Any:
        raise AttributeError(
            f"state {layout.name!r} has no field {name!r}; it has "
            f"{', '.join(one.name for one in layout.fields) or 'none'}"
        )

    members |= {"__slots__": (), "__getattr__": lacks}
    return type("State", (), members)(), begin
