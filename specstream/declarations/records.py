"""Records: classes of named fields, as elements of arrays and containers and as local values.

In words a record is one word for each field, in their order. Under plain Python it is an object
like that of a dataclass.
"""

from __future__ import annotations

import copyreg
import dataclasses
import importlib
import re
import typing
from dataclasses import dataclass
from typing import Any

from specstream.declarations.element_types import Number, Storage, storage_of
from specstream.declarations.options import shown
from specstream.declarations.plain_values import plain
from specstream.errors import DeclarationError

__all__ = ["Record", "RecordField", "is_record", "record_fields", "record_named", "stored_value"]

# Four bits each say in C what they are, and a word has 64.
MOST_FIELDS = 16
_TYPES = (int, float, bool, str)
_TEXT = re.compile(r"record\[(\w+: (int|float|bool|str)(, (?!\]))?)+\]")
_ZEROS: dict[Number, Any] = {"int": 0, "float": 0.0, "bool": False, "str": ""}


@dataclass(frozen=True)
class RecordField:
    """A field of a record.

    Attributes:
        name: of the field.
        storage: its type; a whole word.
        default: what it has where it is not given.
        has_default: whether the class says that; else ``default`` is the zero of the type.
    """

    name: str
    storage: Storage
    default: Any
    has_default: bool


class _RecordClass(type):
    """The type of records' classes, so that :mod:`pickle` asks how they travel."""


@typing.dataclass_transform(eq_default=True)
class Record(metaclass=_RecordClass):
    """Base of a record: a class whose annotations are its fields.

    Fields are of type ``int``, ``float``, ``bool`` or ``str``, at most 16, with defaults as those
    of a dataclass. A record is mutable, and equals another of its class with equal fields.

    Raises:
        DeclarationError: where the class is made; names the field that cannot be.

    >>> import specstream as ss
    >>> class Order(ss.Record):
    ...     price: float
    ...     quantity: int
    ...     side: bool = True
    >>> Order(2.5, quantity=3)
    Order(price=2.5, quantity=3, side=True)
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *args: object) -> None:
        # Of this class alone: each other one has that of a dataclass.
        if args:
            raise DeclarationError(
                f"ss.Record is the base of records' classes, and is given {shown(args[0])}: write "
                "class MyRecord(ss.Record): ..."
            )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__slots__" in vars(cls):
            raise DeclarationError(f"record {cls.__name__!r} has __slots__: leave them out")
        dataclasses.dataclass(eq=False)(cls)
        record_fields(cls)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, one) == getattr(other, one) for one in self._names())

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return tuple(one.name for one in record_fields(cls))


def is_record(declared: object) -> bool:
    """Whether a type is a record's class."""
    return isinstance(declared, type) and issubclass(declared, Record) and declared is not Record


_known: dict[type, tuple[RecordField, ...]] = {}


def record_fields(cls: type) -> tuple[RecordField, ...]:
    """The fields of a record's class, in the order of its words.

    Raises:
        DeclarationError: names the one that cannot be.
    """
    if cls in _known:
        return _known[cls]
    what = f"record {cls.__name__!r}"
    given: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(cls)
    if not given:
        raise DeclarationError(f"{what} has no fields; expected annotations, like price: float")
    if len(given) > MOST_FIELDS:
        raise DeclarationError(
            f"{what} has {len(given)} fields; expected at most {MOST_FIELDS}: make two of it"
        )
    try:
        hints = typing.get_type_hints(cls)
    except Exception as error:
        raise DeclarationError(
            f"{what} has annotations that cannot be read ({error}); expected int, float, bool, str"
        ) from None
    _known[cls] = tuple(
        _field(one, hints[one.name], f"{what}, field {one.name!r}") for one in given
    )
    return _known[cls]


def _field(given: dataclasses.Field[Any], hint: Any, what: str) -> RecordField:
    if given.name.startswith("_"):
        raise DeclarationError(f"{what}: a field's name does not begin with an underscore")
    if hint not in _TYPES:
        found = hint.__name__ if isinstance(hint, type) else shown(hint)
        raise DeclarationError(f"{what} has type {found}; expected int, float, bool or str")
    storage = storage_of(hint, what)
    if given.default_factory is not dataclasses.MISSING or not given.init:
        raise DeclarationError(
            f"{what} is made by field(...); expected a value, like {given.name} = 0"
        )
    if given.default is dataclasses.MISSING:
        return RecordField(given.name, storage, _ZEROS[storage.number], False)
    return RecordField(given.name, storage, stored_value(storage, given.default, what), True)


_Packed = tuple[tuple[str, str, bool, Any], ...]


def _packed(cls: type) -> Any:
    """A class as plain data: who reads it need not have its module."""
    if not is_record(cls):
        return cls.__qualname__
    fields = tuple(
        (one.name, one.storage.name, one.has_default, one.default) for one in record_fields(cls)
    )
    return _unpacked, (cls.__module__, cls.__qualname__, fields)


_made: dict[tuple[str, str, str], type] = {}


def _unpacked(module: str, name: str, fields: _Packed) -> type:
    """The class itself where it is to be had, else one with the same fields."""
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        if is_record(found) and _packed(found)[1][2] == fields:
            return typing.cast(type, found)
    except (ImportError, AttributeError):
        pass
    key = module, name, repr(fields)
    if key not in _made:
        named = {one.__name__: one for one in _TYPES}
        body: dict[str, Any] = {
            "__module__": module,
            "__qualname__": name,
            "__annotations__": {field: named[of] for field, of, _, _ in fields},
            **{field: default for field, _, has_default, default in fields if has_default},
        }
        _made[key] = _RecordClass(name.rpartition(".")[2], (Record,), body)
    return _made[key]


copyreg.pickle(_RecordClass, _packed)


def record_named(text: str) -> type | None:
    """A class for a record whose shape ``str`` has given; None: it is none.

    >>> [one.name for one in record_fields(record_named("record[price: float, n: int]"))]
    ['price', 'n']
    """
    if _TEXT.fullmatch(text) is None:
        return None
    named = {one.__name__: one for one in _TYPES}
    fields = [one.split(": ") for one in text[len("record[") : -1].split(", ")]
    annotations = {"__annotations__": {name: named[of] for name, of in fields}}
    return _RecordClass("Record", (Record,), annotations)


def stored_value(storage: Storage, value: Any, what: str) -> Any:
    """A value as a field of that type holds it.

    Raises:
        DeclarationError: it cannot.
    """
    number, value = storage.number, plain(value)
    if number == "float" and type(value) in (int, bool):
        value = float(value)
    if number == "int" and type(value) is bool:
        value = int(value)
    if type(value).__name__ != number:
        raise DeclarationError(f"{what} has the value {shown(value)}; expected {number}")
    if number == "int" and not -(2**63) <= value < 2**63:
        raise DeclarationError(f"{what} has the value {value}; expected one that fits 64 bits")
    return value
