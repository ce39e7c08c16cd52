"""Dicts, sets, lists and deques as fields of the state: what is declared, and how it lies there.

See ``stm_native/include/specstream_containers.h`` for the words.
"""

from __future__ import annotations

import datetime
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from specstream._native import lib
from specstream.declarations.durations import described_duration, nanoseconds
from specstream.declarations.element_types import Storage, found_storage, type_named, type_shown
from specstream.declarations.options import integer
from specstream.declarations.records import is_record, record_fields, record_named
from specstream.errors import DeclarationError, SpecstreamError

__all__ = [
    *("KEYED", "MOST_IN_ENTRY", "MOST_IN_KEY"),
    *("Container", "ContainerKind", "Declared", "Shape", "lifetime", "record_shape"),
    *("shape_named", "shape_of"),
]

ContainerKind = Literal["dict", "set", "list", "deque", "priority_queue", "timers"]
KEYED: tuple[ContainerKind, ...] = ("dict", "set", "timers")

DEFAULT_LIMIT = 2**24
# Entries that speculative runs may have taken beside those that are there.
SLACK = 2**16
MOST_IN_KEY: int = lib.SS_MOST_KEY_WORDS
MOST_IN_ENTRY: int = lib.SS_MOST_ENTRY_WORDS - 1  # of a dict, key and value
_KEYS = ("int", "str", "bool")
_VALUES = ("int", "float", "bool", "str")


@dataclass(frozen=True)
class Shape:
    """What a key, value or element is: one number or string, a tuple of them, or a record.

    Attributes:
        parts: one for each word.
        is_tuple: whether it is a tuple, of one part as well.
        record: the class, if it is a record.
        names: of its fields, which are the parts.
    """

    parts: tuple[Storage, ...]
    is_tuple: bool = False
    record: type | None = None
    names: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        return len(self.parts)

    @property
    def is_whole(self) -> bool:
        """Whether its one part is all of it: it is neither a tuple nor a record."""
        return not self.is_tuple and self.record is None

    def made(self, parts: Iterable[Any]) -> Any:
        """The value, of those of its parts."""
        if self.record is not None:
            return self.record(*parts)
        return tuple(parts) if self.is_tuple else next(iter(parts))

    @property
    def has_text(self) -> bool:
        """Whether a string is in it."""
        return any(part.number == "str" for part in self.parts)

    def __str__(self) -> str:
        if self.record is not None:
            fields = [f"{name}: {of.name}" for name, of in zip(self.names, self.parts, strict=True)]
            return f"record[{', '.join(fields)}]"
        names = ", ".join(part.name for part in self.parts)
        return f"tuple[{names}]" if self.is_tuple else names


NOTHING = Shape(())


@dataclass(frozen=True)
class Container:
    """What a field holds that is a container.

    Attributes:
        kind: which.
        key: of dicts and sets; of the others :data:`NOTHING`.
        value: of a dict's values, or of the elements of a sequence; of a set :data:`NOTHING`.
        limit: entries or elements at most.
        maxlen: of a deque that drops what is at the other end.
        region: first word of its entries or elements in the state; 0: not yet laid out.
        expires: an entry goes so long after its last write; 0: it stays.
        is_duration: that is in nanoseconds, and not in the unit of the events' times.
        full: what is said when it is full; "": as of any field of the state.
    """

    kind: ContainerKind
    key: Shape
    value: Shape
    limit: int
    maxlen: int | None = None
    region: int = 0
    expires: int = 0
    is_duration: bool = False
    full: str = field(default="", compare=False, repr=False)

    def expires_after(self, tick: int) -> int:
        """The same in the unit of times that are so many nanoseconds apart, rounded up."""
        return -(-self.expires // tick) if self.is_duration and tick else self.expires

    @property
    def is_keyed(self) -> bool:
        return self.kind in KEYED

    @property
    def has_text(self) -> bool:
        """Whether a string is in a key or a value."""
        return self.key.has_text or self.value.has_text

    @property
    def entry_words(self) -> int:
        """Words of an entry or element."""
        return (1 if self.is_keyed else 0) + self.row_words

    @property
    def row_words(self) -> int:
        """Words of an entry or element without what belongs to its place. That of its last write is
        behind all others."""
        return self.key.words + self.value.words + (1 if self.expires else 0)

    @property
    def most(self) -> int:
        """Entries or elements that it can have."""
        return self.limit if self.maxlen is None else min(self.limit, self.maxlen)

    @property
    def room(self) -> int:
        """Entries or elements that the region has room for."""
        if self.is_keyed:
            return self.limit + SLACK
        # The ring of a deque is a power of two.
        return 1 << (self.limit - 1).bit_length() if self.kind == "deque" else self.limit

    @property
    def header_words(self) -> int:
        keyed = lib.SS_ABSENCE_WORDS if self.is_keyed else 0
        return int(lib.SS_HEADER_WORDS + keyed)

    @property
    def kept(self) -> tuple[int, int]:
        """Of the header, the words that are part of what the state means: of timers how many have
        fired, and the clock; of what expires after a duration, the tick."""
        if self.kind == "timers":
            return lib.SS_HEADER_FIRED, lib.SS_HEADER_CLOCK + 1
        return lib.SS_HEADER_TICK, lib.SS_HEADER_TICK + int(self.is_duration)

    @property
    def is_mapping(self) -> bool:
        """Whether its keys have values."""
        return self.is_keyed and self.value.words > 0

    @property
    def region_words(self) -> int:
        return self.room * self.entry_words


@dataclass(frozen=True)
class Declared:
    """What :func:`specstream.dict` and its like return: a container without a name yet."""

    kind: ContainerKind
    key: object
    value: object
    capacity: object
    limit: object
    maxlen: object = None
    expires: object = None
    full: str = ""

    def container(self, what: str) -> Container:
        """Checked.

        Raises:
            DeclarationError: names the field and what it cannot have.
        """
        keyed = self.kind in KEYED
        key = shape_of(self.key, _KEYS, f"{what}: key") if keyed else NOTHING
        value = NOTHING if self.kind == "set" else shape_of(self.value, _VALUES, f"{what}: value")
        if self.kind == "priority_queue" and value.record is not None:
            raise DeclarationError(
                f"{what} holds records, which have no order; expected a tuple that begins with "
                "what they are ordered by, like (float, int)"
            )
        limit = DEFAULT_LIMIT
        maxlen = None
        if self.maxlen is not None:
            maxlen = limit = integer(f"{what}: maxlen", self.maxlen, 0, 2**31, "", DeclarationError)
            limit = max(limit, 1)
        if self.limit is not None:
            limit = integer(f"{what}: limit", self.limit, 1, 2**31, "", DeclarationError)
        if maxlen is not None and limit < maxlen:
            raise DeclarationError(
                f"{what}: limit={limit} is less than maxlen={maxlen}, which it could never reach; "
                "expected maxlen alone"
            )
        if self.capacity is not None:
            most = f", which is its limit={limit}"
            integer(f"{what}: capacity", self.capacity, 1, limit, most, DeclarationError)
        expires, is_duration = lifetime(f"{what}: expire_after", self.expires)
        made = Container(
            *(self.kind, key, value, limit, maxlen),
            expires=expires,
            is_duration=is_duration,
            full=self.full,
        )
        if key.words > MOST_IN_KEY or made.entry_words > lib.SS_MOST_ENTRY_WORDS:
            raise DeclarationError(
                f"{what} has {key.words} parts in a key and {value.words} in a value; expected at "
                f"most {MOST_IN_KEY} in a key and {MOST_IN_ENTRY} in both"
            )
        return made


def lifetime(
    option: str, given: object, error: type[SpecstreamError] = DeclarationError
) -> tuple[int, bool]:
    """After how long entries expire, and whether that is in nanoseconds; None: they do not.

    Raises:
        error: it is neither a duration nor an integer, or none above zero.

    >>> lifetime("expire_after", "1 second"), lifetime("expire_after", 60)
    ((1000000000, True), (60, False))
    """
    if given is None:
        return 0, False
    if isinstance(given, str | datetime.timedelta):
        # A description is read without pandas.
        described = described_duration(given) if isinstance(given, str) else None
        length = described or nanoseconds(option, given, error)
        if length <= 0:
            raise error(f"{option}={given!r}; expected a duration above zero")
        return length, True
    other = ', in the unit of event.timestamp, or a duration such as "1 hour"'
    return integer(option, given, 1, 2**62, other, error), False


def shape_named(name: str) -> object:
    """What to declare for a shape that ``str`` has given: a type, or a tuple of them.

    Raises:
        DeclarationError: it is of none.

    >>> shape_named("int"), shape_named("tuple[int, str]")
    (<class 'int'>, (<class 'int'>, <class 'str'>))
    """
    if name.startswith("tuple[") and name.endswith("]"):
        return tuple(type_named(part) for part in name[len("tuple[") : -1].split(", "))
    return record_named(name) or type_named(name)


def record_shape(declared: type) -> Shape:
    """The shape of a record's class."""
    fields = record_fields(declared)
    parts, names = tuple(one.storage for one in fields), tuple(one.name for one in fields)
    return Shape(parts, record=declared, names=names)


def shape_of(declared: object, allowed: tuple[str, ...], what: str) -> Shape:
    """The shape that a type stands for, or a tuple of types, or ``tuple[...]``.

    Raises:
        DeclarationError: it stands for none.
    """
    if "float" in allowed and is_record(declared):
        assert isinstance(declared, type)
        return record_shape(declared)
    parts: tuple[Any, ...]
    is_tuple = isinstance(declared, tuple) or typing.get_origin(declared) is tuple
    parts = declared if isinstance(declared, tuple) else typing.get_args(declared)
    if not is_tuple:
        parts = (declared,)
    if not parts:
        raise DeclarationError(f"{what} is an empty tuple; expected one type at least")
    storages = []
    for part in parts:
        if isinstance(part, Declared):
            raise DeclarationError(
                f"{what} is a {part.kind}; expected {', '.join(allowed)}, or a tuple of these: no "
                "container holds containers; give the key one part more, like "
                "ss.dict((str, int), float), or keep two fields"
            )
        storage = found_storage(part)
        if storage is None or storage.name not in allowed:
            raise DeclarationError(
                f"{what} has type {type_shown(part)}; expected {', '.join(allowed)}, or a tuple of "
                "these" + (", or a class derived from ss.Record" if "float" in allowed else "")
            )
        storages.append(storage)
    return Shape(tuple(storages), is_tuple)
