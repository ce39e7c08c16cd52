"""A state as its readers see it: Python values, NumPy arrays, and Arrow tables of containers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.declarations.codes import Texts
from specstream.declarations.container_views import (
    Entries,
    StateDict,
    StateSet,
    StillEntries,
    columns_of,
    entries_of,
    python_of,
    values_of,
)
from specstream.declarations.container_words import count, entries
from specstream.declarations.containers import Shape
from specstream.declarations.records import Record
from specstream.declarations.state_content import StateContent
from specstream.declarations.state_layout import Field, Layout
from specstream.display.sheet import Sheet
from specstream.display.values import MOST, short
from specstream.errors import SpecstreamError

__all__ = ["Moving", "StateView", "Words", "column_names"]

Words = npt.NDArray[np.int64]

_NUMPY: dict[str, type] = {"int": np.int64, "float": np.float64, "bool": np.bool_, "str": object}
_ARROW = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.large_string()}


class Moving(Protocol):
    """A state that others may change while it is looked at: how it is read."""

    def fields(self) -> tuple[Words | StateContent, Texts]:
        """The fields that are no containers, live or as they are now, and the strings in them."""

    def content(self) -> tuple[StateContent, Texts]:
        """The whole state, at one instant."""

    def rows(self, field: Field) -> tuple[Words, Texts]:
        """The rows of a container, at one instant."""

    def first(self, field: Field, most: int | None) -> tuple[int, Words, Texts]:
        """How many rows a container has, and the first of them, at one instant."""

    def entries(self, field: Field) -> Entries:
        """What a view of a dict or a set reads."""


class StateView:
    """Committed state, by field name: scalars as Python values, arrays as read-only NumPy arrays.

    The arrays are of the declared NumPy type and keep their memory alive, also after the engine was
    closed. A field of type ``bool`` comes as a NumPy array of bool, which is a copy; one of type
    ``np.bool_`` is a view like the others. Strings come as Python's own: an array of them is a
    copy, of NumPy's type ``object``. An array of records comes as a structured array, one record as
    an object of its class.

    Containers come as Python's: a list or a ``collections.deque``, which are copies; of a priority
    queue a list, the least first; a dict or a set as a read-only view, that equals, shows and
    iterates as one does, in the order of insertion. Asking it for a key costs the same however many
    it has. ``view.copy()`` is a dict or a set of its own.
    """

    def __init__(self, layout: Layout, memory: Words | StateContent, texts: Texts) -> None:
        self._layout = layout
        self._seen: tuple[Words | StateContent, Texts] | None = (memory, texts)
        self._moving: Moving | None = None

    @classmethod
    def of_moving(cls, layout: Layout, moving: Moving) -> StateView:
        """A view that looks when it is asked; at all fields that are no containers at once."""
        view = cls.__new__(cls)
        view._layout, view._seen, view._moving = layout, None, moving
        return view

    @property
    def _memory(self) -> Words | StateContent:
        return self._fields()[0]

    def _fields(self) -> tuple[Words | StateContent, Texts]:
        if self._seen is None:
            assert self._moving is not None
            self._seen = self._moving.fields()
        return self._seen

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise AttributeError(
                f"state {self._layout.name!r} is shown, not changed: {name!r} is set by events, or "
                "by initial= of an engine"
            )
        super().__setattr__(name, value)

    def __getattribute__(self, name: str) -> Any:
        # A field that is called as the method is the field, as it was before there was the method.
        if name == "table" and self._layout.field("table") is not None:
            return self.__getattr__("table")
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        if self._layout.field(name) is None and self._layout.has_part(name):
            return StatePart(self, name)
        return self._value(self._field(name, AttributeError))

    def _field(self, name: str, error: type[Exception]) -> Field:
        field = None if name.startswith("_") else self._layout.field(name)
        if field is None or field.space != "state":
            raise error(
                f"state {self._layout.name!r} has no field {name!r}; it has: {', '.join(dir(self))}"
            )
        return field

    def _value(self, field: Field) -> Any:
        of = field.container
        if of is None:
            return self._plain(field)
        if of.is_keyed:
            entries = (
                StillEntries(of, lambda: self._rows_and_texts(field))
                if self._moving is None
                else self._moving.entries(field)
            )
            return (StateSet if of.kind == "set" else StateDict)(entries)
        return python_of(of, *self._rows_and_texts(field))

    def _rows_and_texts(self, field: Field) -> tuple[Words, Texts]:
        if self._moving is not None:
            return self._moving.rows(field)
        memory, texts = self._fields()
        if isinstance(memory, StateContent):
            return memory.rows_of(field), texts
        return entries(memory, field), texts

    def _plain(self, field: Field, most: int | None = None) -> Any:
        elements, texts = self._elements(field)
        if field.dimensions:
            elements = elements[:most]
        if field.record is not None:
            return _records(field.record, elements, texts)
        if field.storage.name == "bool":
            elements = elements != 0
        elif field.kind == "str":
            elements = texts(elements)
        if field.shape == ():
            return elements.item()
        elements = elements.view()
        elements.flags.writeable = False
        return elements

    def _elements(self, field: Field) -> tuple[npt.NDArray[Any], Texts]:
        """Of a field that is no container."""
        memory, texts = self._fields()
        if isinstance(memory, StateContent):
            return memory.elements(field), texts
        return self._layout.elements(memory, field), texts

    def __reduce__(self) -> Any:
        raise TypeError(
            f"state {self._layout.name!r} is a view of what is elsewhere, and can be neither "
            "copied nor pickled: take its to_dict()"
        )

    def __dir__(self) -> list[str]:
        return [field.name for field in self._layout.fields if field.space == "state"]

    def __repr__(self) -> str:
        return self._sheet(typed=False).text()

    def _repr_html_(self) -> str:
        return self._sheet(typed=True).html()

    def _sheet(self, typed: bool) -> Sheet:
        """The first elements of each field; containers one after the other, where events go on."""
        rows = []
        fields = [field for field in self._layout.fields if field.space == "state"]
        try:
            for field in fields:
                filled, value = self._first(field)
                kind = " x ".join([*(f"{one:,}" for one in field.dimensions), field.type_name])
                if field.container is not None:
                    kind += f", {filled:,} in it"
                rows.append([field.name, *([kind] if typed else []), short(value, filled)])
        except SpecstreamError as error:  # asked for by a hook, for example: nothing can be seen
            names = [[field.name] for field in fields]
            return Sheet(f"State {self._layout.name}", names, notes=[str(error)])
        head = ["field", "type", "value"] if typed else ()
        return Sheet(f"State {self._layout.name}", rows, head)

    def _first(self, field: Field) -> tuple[int | None, Any]:
        """The first elements of a field, and of a container how many there are."""
        if field.container is None:
            value = self._plain(field, MOST)
            return (field.shape[0] if field.dimensions else None), value
        # The least element of a queue may be anywhere.
        most = None if field.container.kind == "priority_queue" else MOST
        filled, rows, texts = self._first_rows(field, most)
        if field.container.kind == "set":
            return filled, entries_of(field.container, rows, texts).keys()
        return filled, python_of(field.container, rows, texts)

    def _first_rows(self, field: Field, most: int | None) -> tuple[int, Words, Texts]:
        if self._moving is not None:
            return self._moving.first(field, most)
        memory, texts = self._fields()
        if isinstance(memory, StateContent):
            rows = memory.rows_of(field)
            return len(rows), rows[:most], texts
        return count(memory, field), entries(memory, field, most), texts

    def to_dict(self) -> dict[str, Any]:
        """All fields at one instant, copied: as NumPy arrays, but for a scalar field of strings, a
        str, and for containers, which are Python's own. A set iterates in the order of insertion.
        """
        if self._moving is not None and self._layout.containers:
            return StateView(self._layout, *self._moving.content()).to_dict()
        # Not by attribute: a field may have the name of a method.
        return {one.name: self._copied(one) for one in self._layout.fields if one.space == "state"}

    def _copied(self, field: Field) -> Any:
        if field.container is not None:
            return python_of(field.container, *self._rows_and_texts(field))
        value = self._plain(field)
        return value if isinstance(value, str | Record) else np.copy(value)

    def table(self, name: str) -> pa.Table:
        """A field as an Arrow table, one row for each entry or element, in their order.

        Args:
            name: of the field.

        Returns:
            Of a container columns ``key`` and ``value``, those of them that it has; of an array
            ``index`` and ``value``; of a scalar ``value`` in one row. Where a key is a tuple, or an
            array has several dimensions, ``key_0``, ``key_1`` and so on; where a value is a record,
            ``value_price`` and so on. Of type int64, float64, bool or large_string, and of an array
            of a narrower type that one. A priority queue has its elements as the heap has them, the
            least first.

        Raises:
            KeyError: the state has no such field.

        >>> import specstream as ss
        >>> class Seen(ss.State):
        ...     last = ss.dict((str, int), float)
        ...     counts = ss.array(int, 2)
        >>> @ss.operator(state=Seen, event={"x": int}, emits={"x": int})
        ... def nothing(state, event, emit):
        ...     pass
        >>> with ss.Engine(nothing, initial={"last": {("a", 1): 0.5}}) as engine:
        ...     engine.state.table("last").to_pylist()
        ...     engine.state.table("counts").to_pylist()
        [{'key_0': 'a', 'key_1': 1, 'value': 0.5}]
        [{'index': 0, 'value': 0}, {'index': 1, 'value': 0}]
        """
        field = self._field(name, KeyError)
        of = field.container
        if of is None:
            return self._plain_table(field)
        rows, texts = self._rows_and_texts(field)
        columns: dict[str, pa.Array] = {}
        at = 0
        for what, shape in (("key", of.key), ("value", of.value)):
            columns |= _shown(what, shape, rows[:, at : at + shape.words], texts)
            at += shape.words
        return pa.table(columns)

    def _plain_table(self, field: Field) -> pa.Table:
        elements, texts = self._elements(field)
        elements = elements.copy()  # Arrow would share the memory, where events go on
        many = len(field.dimensions)
        columns: dict[str, pa.Array] = {}
        for number, at in enumerate(np.indices(field.dimensions)):
            columns["index" if many == 1 else f"index_{number}"] = pa.array(at.reshape(-1))
        if field.record is not None:
            rows = elements.reshape(-1, field.record.words)
            return pa.table(columns | _shown("value", field.record, rows, texts))
        elements = elements.reshape(-1)
        if field.kind == "str":
            values = pa.array(texts(elements), pa.large_string())
        else:
            values = pa.array(elements != 0 if field.storage.number == "bool" else elements)
        return pa.table(columns | {"value": values})


class StatePart:
    """The fields of one vertex of a pipeline, as :class:`StateView` has them."""

    def __init__(self, view: StateView, name: str) -> None:
        self._view, self._name = view, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._view._value(self._view._field(f"{self._name}.{name}", AttributeError))

    def __dir__(self) -> list[str]:
        prefix = f"{self._name}."
        return [one.removeprefix(prefix) for one in dir(self._view) if one.startswith(prefix)]

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in dir(self) if "." not in name)
        return f"{self._name}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """As :meth:`StateView.to_dict`, of these fields only."""
        every, prefix = self._view.to_dict(), f"{self._name}."
        return {
            name.removeprefix(prefix): value
            for name, value in every.items()
            if name.startswith(prefix)
        }

    def table(self, name: str) -> pa.Table:
        """As :meth:`StateView.table`."""
        return self._view.table(f"{self._name}.{name}")


def _records(shape: Shape, words: Words, texts: Texts) -> Any:
    """Records of the fixed part: one as an object, an array as a structured array of NumPy's. That
    shares the memory of what has no bools and strings."""
    if words.ndim == 1:
        return values_of(shape, words.reshape(1, -1), texts)[0]
    kinds = [_NUMPY[part.number] for part in shape.parts]
    of = np.dtype(list(zip(shape.names, kinds, strict=True)))
    if all(part.number in ("int", "float") for part in shape.parts):
        found: npt.NDArray[Any] = words.view(of)[..., 0]
    else:
        found = np.empty(words.shape[:-1], of)
        for name, column in zip(
            shape.names, columns_of(shape, words.reshape(-1, shape.words), texts), strict=True
        ):
            found[name] = column.reshape(found.shape)
    found.flags.writeable = False
    return found


def _shown(what: str, shape: Shape, rows: Words, texts: Texts) -> dict[str, pa.Array]:
    """The columns of keys or values in a table."""
    parts = columns_of(shape, rows, texts)
    named = zip(column_names(what, shape), shape.parts, parts, strict=True)
    return {name: pa.array(values, _ARROW[part.number]) for name, part, values in named}


def column_names(what: str, shape: Shape) -> list[str]:
    """The columns of keys or values in a table."""
    if shape.is_whole:
        return [what][: shape.words]
    return [f"{what}_{name}" for name in shape.names or range(shape.words)]
