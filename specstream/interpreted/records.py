"""Records of the state, as interpreted operators see them: objects of the user's own class.

A record that is read from the state is an object of that class, whose fields are those of the
state: what is set of it is stored, for as long as it is there. What is overwritten or removed
leaves the state, and its object keeps what it has. An object that is stored is in the state from
then on, as in Python; one that is in the state already is copied.

An object changes its class for that: while it is in the state it is of a subclass, whose fields are
properties. Which object stands for which place is known as long as an event runs, so that a place
has one object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from specstream.compiler.language.hints import names_it_has
from specstream.compiler.oracle_objects.entries import Journal
from specstream.compiler.oracle_objects.view import strides_of
from specstream.declarations.containers import Shape
from specstream.declarations.element_types import Storage
from specstream.declarations.records import Record
from specstream.declarations.state_layout import Field
from specstream.interpreted.arrays import Array
from specstream.interpreted.coded import Begin, ElementsOf, PlainCodec, as_read
from specstream.interpreted.values import stored

__all__ = ["CellRecords", "Member", "Records", "record_array", "scalar_record"]

Member = tuple[property, Callable[[Any], None]]
"""A field of the state: what reads it, and what is called when it is assigned."""

_WORD = "_specstream_word"


def _blank(record: Any) -> Any:
    return object.__new__(record)


class Records:
    """The records of one field.

    Args:
        what: the field, in errors.
        shape: of a record.
        elements_of: gives the elements of a space and a type.
        begin: where to put what is called when an event begins.
    """

    def __init__(
        self,
        what: str,
        shape: Shape,
        elements_of: ElementsOf,
        begin: Begin,
    ) -> None:
        record: Any = shape.record
        self.record, self._what, self._names = record, what, shape.names
        self._convert = [
            (self._converter(part), f"field {name!r} of {record.__name__}")
            for name, part in zip(shape.names, shape.parts, strict=True)
        ]
        self._elements = [elements_of("state", part) for part in shape.parts]
        # Made without the checks of a declaration: it declares nothing.
        self._bound: Any = type.__new__(type(record), record.__name__, (record,), self._members())
        self.objects: dict[Hashable, Any] = {}
        begin.append(self.objects.clear)

    def _converter(self, part: Storage) -> Callable[[Any, str], Any]:
        """What checks a value of a field; see :func:`stored`."""
        return stored(part)

    def _members(self) -> dict[str, Any]:
        """Of the class whose objects are in the state. A copy of one, and what its class makes when
        it is called, is a record by itself."""
        record, names, store = self.record, self._names, self._set
        places = {
            name: (at, *convert)
            for at, (name, convert) in enumerate(zip(names, self._convert, strict=True))
        }

        def assign(own: Any, name: str, value: Any) -> None:
            place = places.get(name)
            if place is not None:
                at, convert, what = place
                store(own.__dict__[_WORD](), at, convert(value, what))
            elif hasattr(getattr(record, name, None), "__set__"):  # a property of the user's
                object.__setattr__(own, name, value)
            else:
                raise AttributeError(
                    f"record {record.__name__} has no field {name!r}; {names_it_has(name, names)}"
                )

        def delete(own: Any, name: str) -> None:
            raise AttributeError(
                f"field {name!r} of {record.__name__} cannot be deleted: assign another value to it"
            )

        def reduced(own: Any) -> Any:
            return _blank, (record,), {name: getattr(own, name) for name in names}

        members: dict[str, Any] = {name: self._property(at) for name, (at, *_) in places.items()}
        members |= {one: getattr(record, one) for one in ("__doc__", "__module__", "__qualname__")}
        members |= {"__setattr__": assign, "__delattr__": delete, "__reduce__": reduced}
        members["__new__"] = lambda cls, *given, **named: record(*given, **named)
        if record.__eq__ is Record.__eq__:
            members["__eq__"] = lambda own, other: _values(own, record) == _values(other, record)
            members["__hash__"] = None
        return members

    def _property(self, at: int) -> property:
        """Reads a field of an object in the state."""
        elements = self._elements[at]
        return property(lambda own: elements[own.__dict__[_WORD]() + at])

    def _set(self, word: Any, at: int, value: Any) -> None:
        """Stores a field that was checked."""
        self._elements[at][word + at] = value

    def values(self, value: Any) -> list[Any]:
        """What a record has, checked."""
        if not isinstance(value, self.record):
            raise TypeError(
                f"{self._what} holds {self.record.__name__} and gets {value!r} "
                f"({type(value).__name__})"
            )
        return [
            convert(getattr(value, name), what)
            for name, (convert, what) in zip(self._names, self._convert, strict=True)
        ]

    def check(self, value: Any) -> tuple[Any, list[Any]]:
        """A record and what it has, as :meth:`put` takes them."""
        return value, self.values(value)

    def to_copy(self, checked: list[Any]) -> list[Any]:
        """Several that are stored at once: those that are in the state already become copies of
        what they are now, wherever they were."""
        return [(one if type(one) is self.record else None, values) for one, values in checked]

    def at(self, place: Hashable, word: Callable[[], Any]) -> Any:
        """The object of a place, whose first word is what ``word()`` gives."""
        found = self.objects.get(place)
        if found is None:
            found = self.objects[place] = object.__new__(self._bound)
            found.__dict__[_WORD] = word
        return found

    def read(self, word: Any) -> list[Any]:
        """The values that lie there."""
        return [elements[word + at] for at, elements in enumerate(self._elements)]

    def write(self, word: Any, values: list[Any]) -> None:
        """Puts values there that were checked."""
        for at, value in enumerate(values):
            self._set(word, at, value)

    def put(self, place: Hashable, word: Callable[[], Any], value: Any, values: list[Any]) -> None:
        """Stores a record in a place; ``values`` are what it has."""
        if value is not None and self.objects.get(place) is value:
            return
        self.left(place)
        self.write(word(), values)
        self.adopt(place, word, value)

    def adopt(self, place: Hashable, word: Callable[[], Any], value: Any) -> None:
        """A record whose values are there already is in the state from now on."""
        if type(value) is self.record:
            value.__dict__[_WORD] = word
            object.__setattr__(value, "__class__", self._bound)
            self.objects[place] = value

    def left(self, place: Hashable) -> None:
        """What is in a place is about to be something else, or nothing."""
        one = self.objects.pop(place, None)
        if one is not None:
            values = self.read(one.__dict__[_WORD]())
            _release(one, self.record)
            one.__dict__.clear()
            one.__dict__.update(zip(self._names, values, strict=True))


Cell = list[Any]
"""What a record has that a container in Python's memory holds."""


class CellRecords(Records):
    """The records of a container in Python's memory: in place of a word there is a cell.

    Args:
        what: the field, in errors.
        shape: of a record.
        codec: of what containers hold.
        journal: of the memory.
        begin: where to put what is called when an event begins.
    """

    def __init__(
        self, what: str, shape: Shape, codec: PlainCodec, journal: Journal, begin: Begin
    ) -> None:
        self._numbers = [part.number for part in shape.parts]
        self._codec, self._journal = codec, journal
        super().__init__(what, shape, lambda space, part: None, begin)

    def _converter(self, part: Storage) -> Callable[[Any, str], Any]:
        if part.number != "str":
            return stored(part)
        return lambda value, what: self._codec.part(part, what)(value)

    def _property(self, at: int) -> property:
        if self._numbers[at] == "float":
            return property(lambda own: as_read(own.__dict__[_WORD]()[at]))
        return property(lambda own: own.__dict__[_WORD]()[at])

    def _set(self, word: Cell, at: int, value: Any) -> None:
        self._journal.append((word.__setitem__, at, word[at]))
        word[at] = value

    def read(self, word: Cell) -> list[Any]:
        return word.copy()

    parts = read

    def made(self, values: Iterable[Any]) -> Cell:
        """The cell of values."""
        return list(values)

    def load(self, cell: Cell) -> Any:
        return self.at(id(cell), lambda: cell)

    def is_same(self, cell: Cell, checked: tuple[Any, list[Any]]) -> bool:
        """Whether a record that is to be kept is that of the cell already."""
        return self.objects.get(id(cell)) is checked[0]

    def kept(self, checked: tuple[Any, Cell]) -> Cell:
        """The cell of a record that is in the state from now on."""
        value, cell = checked
        self.adopt(id(cell), lambda: cell, value)
        return cell

    def left(self, cell: Any) -> None:
        super().left(id(cell))

    def replaced(self, before: list[Cell], after: list[Any]) -> list[Cell]:
        """Cells in place of others: they are among those, or those of records to be kept."""
        new = iter(self.to_copy([one for one in after if isinstance(one, tuple)]))
        stay = {id(one) for one in after}
        for cell in before:
            if id(cell) not in stay:
                self.left(cell)
        return [self.kept(next(new)) if isinstance(one, tuple) else one for one in after]


def _values(one: Any, record: Any) -> Any:
    return [getattr(one, name) for name in record._names()] if isinstance(one, record) else None


def _release(one: Any, record: Any) -> None:
    object.__setattr__(one, "__class__", record)


class _RecordSlots:
    """The elements of an array of records, by their first words."""

    __slots__ = ("_records",)

    def __init__(self, records: Records) -> None:
        self._records = records

    def __getitem__(self, word: int) -> Any:
        return self._records.at(word, lambda: word)

    def __setitem__(self, word: int, value: Any) -> None:
        records = self._records
        records.put(word, lambda: word, value, records.values(value))


class RecordArray(Array):
    """An array of records, or a part of one."""

    __slots__ = ()

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._converted = _as_it_is  # whoever puts it in its place checks it

    def _view(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        return RecordArray(self._name, self._storage, self._words, offset, shape, strides)

    def _other_ways(self, index: Any) -> str:
        return f"take a list, list(state.{self._name})"

    def _put(self, value: Any) -> None:
        values = list(value) if isinstance(value, list | tuple | Array) else None
        places = list(self._elements())
        if values is not None and len(values) != len(places):
            raise ValueError(
                f"could not broadcast {len(values)} records into {len(places)} of "
                f"state.{self._name}"
            )
        for number, at in enumerate(places):
            self._words[at] = value if values is None else values[number]

    def _copied(self) -> Any:
        raise TypeError(
            f"state.{self._name} is an array of records, which NumPy has not; take a field of "
            f"each, [one.x for one in state.{self._name}], or a list, list(state.{self._name})"
        )


def _as_it_is(value: Any, what: str) -> Any:
    return value


def _record_slots(field: Field, elements_of: ElementsOf, begin: Begin) -> _RecordSlots:
    assert field.record is not None
    return _RecordSlots(Records(f"state.{field.name}", field.record, elements_of, begin))


def scalar_record(field: Field, elements_of: ElementsOf, begin: Begin) -> Member:
    """A field that is one record."""
    slots, first = _record_slots(field, elements_of, begin), field.offset

    def put(value: Any) -> None:
        slots[first] = value

    return property(lambda self: slots[first]), put


def record_array(field: Field, elements_of: ElementsOf, begin: Begin) -> RecordArray:
    """A field that is an array of them."""
    slots, strides = _record_slots(field, elements_of, begin), strides_of(field.shape)
    return RecordArray(
        field.name, field.storage, slots, field.offset, field.dimensions, strides[:-1]
    )
