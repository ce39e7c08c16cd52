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

from collections.abc import Callable, Hashable
from typing import Any

from specstream.declarations.containers import Shape
from specstream.declarations.state import Field
from specstream.interpreted.arrays import Array
from specstream.interpreted.values import stored

__all__ = ["Records", "make_records"]

_WORD = "_specstream_word"


def _property(name: str, at: int, words: Any, convert: Callable[[Any, str], Any], what: str) -> Any:
    def put(self: Any, value: Any) -> None:
        words[self.__dict__[_WORD]() + at] = convert(value, what)

    return property(lambda self: words[self.__dict__[_WORD]() + at], put)


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
        elements_of: Callable[[str, Any], Any],
        begin: list[Callable[[], None]],
    ) -> None:
        record: Any = shape.record
        self.record, self._what, self._names = record, what, shape.names
        self._convert = [
            (stored(part), f"field {name!r} of {record.__name__}")
            for name, part in zip(shape.names, shape.parts, strict=True)
        ]
        self._words = [elements_of("state", part) for part in shape.parts]
        members: dict[str, Any] = {
            name: _property(name, at, words, *convert)
            for at, (name, words, convert) in enumerate(
                zip(shape.names, self._words, self._convert, strict=True)
            )
        }
        members["__eq__"] = lambda own, other: _values(own, shape) == _values(other, shape)
        members["__hash__"] = None
        # Made without the checks of a declaration: it declares nothing.
        self._bound: Any = type.__new__(type(record), record.__name__, (record,), members)
        self.objects: dict[Hashable, Any] = {}
        begin.append(self.objects.clear)

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

    def at(self, place: Hashable, word: Callable[[], int]) -> Any:
        """The object of a place, whose first word is what ``word()`` gives."""
        found = self.objects.get(place)
        if found is None:
            found = self.objects[place] = object.__new__(self._bound)
            found.__dict__[_WORD] = word
        return found

    def read(self, word: int) -> list[Any]:
        """The values that lie there."""
        return [words[word + at] for at, words in enumerate(self._words)]

    def write(self, word: int, values: list[Any]) -> None:
        """Puts values there that were checked."""
        for at, (words, value) in enumerate(zip(self._words, values, strict=True)):
            words[word + at] = value

    def put(self, place: Hashable, word: Callable[[], int], value: Any, values: list[Any]) -> None:
        """Stores a record in a place; ``values`` are what it has."""
        if self.objects.get(place) is value:
            return
        self.left(place)
        self.write(word(), values)
        self.adopt(place, word, value)

    def adopt(self, place: Hashable, word: Callable[[], int], value: Any) -> None:
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


def _values(record: Any, shape: Shape) -> Any:
    if not isinstance(record, shape.record):  # type: ignore[arg-type]
        return NotImplemented
    return [getattr(record, name) for name in shape.names]


def _release(one: Any, record: Any) -> None:
    object.__setattr__(one, "__class__", record)


class _Places:
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
            f"state.{self._name} is an array of records, which NumPy has not; expected "
            "[one.field for one in state.field]"
        )


def _as_it_is(value: Any, what: str) -> Any:
    return value


def make_records(
    field: Field, elements_of: Callable[[str, Any], Any], begin: list[Callable[[], None]]
) -> property:
    """A field of records: a scalar or an array."""
    assert field.record is not None
    records = Records(f"state.{field.name}", field.record, elements_of, begin)
    places = _Places(records)
    if len(field.shape) == 1:
        first = field.offset

        def put(self: Any, value: Any) -> None:
            places[first] = value

        return property(lambda self: places[first], put)
    strides = [1]
    for length in reversed(field.shape[1:]):
        strides.insert(0, strides[0] * length)
    array = RecordArray(
        field.name, field.storage, places, field.offset, field.shape[:-1], tuple(strides[:-1])
    )

    def same(self: Any, value: Any) -> None:
        if value is not array:
            raise AttributeError(f"state.{field.name} is an array and cannot be replaced")

    return property(lambda self: array, same)
