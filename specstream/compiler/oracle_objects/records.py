"""Records in the oracle: objects with checked fields, and what holds them in the state.

A record is a name's object; what it has lies in a *cell*, its own or one of the state. As in
compiled code (``object.c``), an object that is stored is in the state from then on, and one that is
in the state already is copied; what is overwritten or removed leaves the state, and keeps what it
has.
"""

# Operators' functions carry no types, nor do the library's for them.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from specstream.compiler.oracle_objects.elements import LOAD, store_of
from specstream.compiler.oracle_objects.view import View, strides_of
from specstream.declarations.containers import Shape
from specstream.declarations.element_types import storage_of
from specstream.declarations.records import record_fields
from specstream.declarations.state_layout import Field

__all__ = [
    *("OracleRecord", "RecordSlots", "RecordView", "class_of", "forget", "maker", "record_view"),
    *("scalar_record", "values_of"),
]

Journal = list[tuple[Any, ...]]


class _Cell:
    """What a record has.

    Attributes:
        values: one for each field.
        journal: of the state that it is part of; None: it is of none.
        is_fixed: whether it is a place of its own, of an array or scalar; else a container holds
            its object.
        object: whose cell it is.
        second: whose second place it is.
    """

    __slots__ = ("is_fixed", "journal", "object", "second", "values")

    def __init__(self, values: Any, journal: Journal | None = None, is_fixed: bool = False) -> None:
        self.values = values
        self.journal = journal
        self.is_fixed = is_fixed
        self.object: OracleRecord | None = None
        self.second: OracleRecord | None = None


class OracleRecord:
    """A record, as an operator sees it."""

    __slots__ = ("_also", "_cell", "_same", "_shape")

    def __init__(self, shape: Shape, cell: _Cell) -> None:
        object.__setattr__(self, "_shape", shape)
        object.__setattr__(self, "_cell", cell)
        object.__setattr__(self, "_also", None)
        object.__setattr__(self, "_same", None)

    def _at(self, name: str) -> int:
        names = self._shape.names
        if name not in names:
            raise AttributeError(f"record {_class_name(self._shape)} has no field {name!r}")
        at: int = names.index(name)
        return at

    def __getattr__(self, name: str) -> Any:
        at = self._at(name)
        return LOAD[self._shape.parts[at].number](resolved(self)._cell.values[at])

    def __setattr__(self, name: str, value: Any) -> None:
        at = self._at(name)
        _set(resolved(self)._cell, at, _checked(self._shape, at, value))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OracleRecord)
            and other._shape == self._shape
            and all(one == own for one, own in zip(values_of(self), values_of(other), strict=True))
        )

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: {_class_name(self._shape)!r}")

    def __repr__(self) -> str:
        pairs = zip(self._shape.names, values_of(self), strict=True)
        return f"{_class_name(self._shape)}({', '.join(f'{name}={one!r}' for name, one in pairs)})"


def resolved(record: OracleRecord) -> OracleRecord:
    """The oracle's object that holds a record: itself, unless it has met another."""
    while record._same is not None:
        record = record._same
    return record


def values_of(record: OracleRecord) -> list[Any]:
    """Those of its fields."""
    cell, parts = resolved(record)._cell, record._shape.parts
    return [LOAD[part.number](cell.values[at]) for at, part in enumerate(parts)]


def class_of(record: OracleRecord) -> type:
    """The class by which the user declares a record of the oracle."""
    declared: type | None = record._shape.record
    assert declared is not None
    return declared


def _class_name(shape: Shape) -> str:
    assert shape.record is not None
    return shape.record.__name__


def _checked(shape: Shape, at: int, value: Any) -> Any:
    what = f"field {shape.names[at]!r} of {_class_name(shape)}"
    return store_of(shape.parts[at])(value, what)


def _set(cell: _Cell, at: int, value: Any) -> None:
    if cell.journal is not None:
        cell.journal.append((cell.values.__setitem__, at, cell.values[at]))
    cell.values[at] = value


def _own(cell: _Cell, shape: Shape) -> _Cell:
    """A copy that is part of no state."""
    return _Cell([cell.values[at] for at in range(shape.words)])


def maker(shape: Shape, constant: Callable[[Any], Any]) -> Callable[..., OracleRecord]:
    """What a record's class is to an operator in the oracle: it makes one."""
    assert shape.record is not None
    fields = record_fields(shape.record)
    defaults = {one.name: constant(one.default) for one in fields if one.has_default}

    def made(*values: Any, **named: Any) -> OracleRecord:
        given = defaults | dict(zip(shape.names, values, strict=False)) | named
        return OracleRecord(
            shape, _Cell([_checked(shape, at, given[name]) for at, name in enumerate(shape.names)])
        )

    vars(made).update(shape=shape, defaults=defaults)  # for another library than the oracle's
    return made


class RecordSlots:
    """What holds the records of one field of the state.

    Args:
        what: the field, in errors.
        shape: of its records.
        journal: of the state.
        met: cells that an event has got to know; emptied by whoever begins the next one.
    """

    def __init__(self, what: str, shape: Shape, journal: Journal, met: list[_Cell]) -> None:
        self._what, self._shape, self._journal, self._met = what, shape, journal, met

    def check(self, value: Any) -> OracleRecord:
        """A record of the class."""
        if not isinstance(value, OracleRecord) or value._shape != self._shape:
            raise TypeError(f"{self._what} holds {_class_name(self._shape)} and gets {value!r}")
        return resolved(value)

    def made(self, values: Iterable[Any]) -> OracleRecord:
        """A record that a container holds."""
        cell = _Cell(list(values), self._journal)
        cell.object = OracleRecord(self._shape, cell)
        return cell.object

    def is_same(self, held: OracleRecord, record: OracleRecord) -> bool:
        """Whether a record that is to be kept is what is held already."""
        return held._cell is record._cell

    load = None
    """What is held is what operators see."""

    def parts(self, record: OracleRecord) -> list[Any]:
        """What a record has that is held."""
        return values_of(record)

    def _give(self, owner: Any, name: str, value: Any) -> None:
        self._journal.append((object.__setattr__, owner, name, getattr(owner, name)))
        object.__setattr__(owner, name, value)

    def kept(self, record: OracleRecord) -> OracleRecord:
        """What a container holds after it was given a record."""
        cell = record._cell
        if cell.journal is None:
            self._give(cell, "journal", self._journal)
            cell.object = record
            return record
        copy = self.made(_own(cell, self._shape).values)
        self._also(record, copy._cell)
        return copy

    def _also(self, record: OracleRecord, cell: _Cell) -> None:
        if record._also is not None:
            record._also.second = None
        object.__setattr__(record, "_also", cell)
        cell.second = record
        self._met.append(cell)

    def left(self, record: OracleRecord) -> None:
        """A container does not hold this one any more."""
        self._leave(record._cell)

    def replaced(self, before: list[OracleRecord], after: list[Any]) -> list[OracleRecord]:
        """In the oracle, the records of a part of a sequence that was given others.

        They stand in place of those that it held before; who is among both has moved.
        """
        held = {id(one._cell): one for one in before}
        moved = [held.pop(id(one._cell), None) for one in after]
        for one in held.values():
            self.left(one)
        return [
            self.kept(one) if same is None else same for one, same in zip(after, moved, strict=True)
        ]

    def _leave(self, cell: _Cell) -> None:
        """What is there is about to be something else, or nothing."""
        if cell.second is not None:
            object.__setattr__(cell.second, "_also", None)
            cell.second = None
        one = cell.object
        if one is None:
            return
        self._give(cell, "object", None)
        other = one._also
        if other is None:
            self._give(one, "_cell", _own(cell, self._shape))
            return
        other.second = None
        object.__setattr__(one, "_also", None)
        if other.object is None:
            self._give(one, "_cell", other)
            self._name(other, one)
        else:
            self._give(one, "_same", other.object)

    def _name(self, cell: _Cell, record: OracleRecord) -> None:
        cell.object = record
        self._met.append(cell)

    # ---- where a place is a place: arrays and scalars ----

    def at(self, cell: _Cell) -> OracleRecord:
        """The object of what is there."""
        if cell.object is None:
            self._name(cell, OracleRecord(self._shape, cell))
        assert cell.object is not None
        return cell.object

    def put(self, cell: _Cell, value: Any) -> None:
        """Stores a record there."""
        record = self.check(value)
        if record._cell is cell:
            return
        self._leave(cell)
        for at in range(self._shape.words):
            _set(cell, at, record._cell.values[at])
        if record._cell.journal is None:
            self._give(record, "_cell", cell)
            self._name(cell, record)
        else:
            self._also(record, cell)


def forget(met: list[_Cell]) -> None:
    """An event begins in the oracle: it knows no names of records in the state."""
    for cell in met:
        if cell.second is not None:
            object.__setattr__(cell.second, "_also", None)
            cell.second = None
        if cell.is_fixed:
            cell.object = None
    met.clear()


class _Values:
    """What a record of the fixed part has: elements of the state."""

    __slots__ = ("_elements", "_first")

    def __init__(self, elements: list[Any], first: int) -> None:
        self._elements, self._first = elements, first

    def __getitem__(self, at: int) -> Any:
        return self._elements[at][self._first + at]

    def __setitem__(self, at: int, value: Any) -> None:
        self._elements[at][self._first + at] = value


class _Words:
    """The records of a field by their first words."""

    def __init__(self, slots: RecordSlots, elements: list[Any]) -> None:
        self.slots = slots
        self._elements = elements
        self._cells: dict[int, _Cell] = {}

    def cell(self, first: int) -> _Cell:
        if first not in self._cells:
            self._cells[first] = _Cell(
                _Values(self._elements, first), self.slots._journal, is_fixed=True
            )
        return self._cells[first]

    def __getitem__(self, first: int) -> OracleRecord:
        return self.slots.at(self.cell(first))


class RecordView(View):
    """An array of records, or a part of one."""

    __slots__ = ()

    def _view(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> View:
        return _view_of(self._name, self._words, self._journal, offset, shape, strides)

    def _store(self, at: int, value: Any) -> None:
        self._words.slots.put(self._words.cell(at), value)


def _view_of(
    name: str,
    words: Any,
    journal: Journal,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> RecordView:
    view = RecordView(name, storage_of(int, name), words, journal, offset, shape, strides)
    view._load = lambda record: record
    return view


def _words(field: Field, elements: dict[Any, Any], journal: Journal, met: list[_Cell]) -> _Words:
    assert field.record is not None
    slots = RecordSlots(f"state.{field.name}", field.record, journal, met)
    return _Words(slots, [elements["state", part.name] for part in field.record.parts])


def record_view(
    field: Field, elements: dict[Any, Any], journal: Journal, met: list[_Cell]
) -> RecordView:
    """A field of records as operators see it."""
    words, strides = _words(field, elements, journal, met), strides_of(field.shape)
    return _view_of(field.name, words, journal, field.offset, field.shape[:-1], strides[:-1])


def scalar_record(
    field: Field, elements: dict[Any, Any], journal: Journal, met: list[_Cell]
) -> tuple[Callable[[], OracleRecord], Callable[[Any], None]]:
    """In the oracle, what reads and stores a field of the state that is a record."""
    words = _words(field, elements, journal, met)
    cell = words.cell(field.offset)
    return (lambda: words.slots.at(cell)), (lambda value: words.slots.put(cell, value))
