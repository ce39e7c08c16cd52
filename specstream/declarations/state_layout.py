"""How the fields of an operator's state are laid out in one row of 64-bit words."""

from __future__ import annotations

import collections
import dataclasses
import math
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypedDict, cast, get_args

import numpy as np
import numpy.typing as npt

from specstream.declarations.codes import stored_code
from specstream.declarations.containers import (
    Container,
    ContainerKind,
    Declared,
    Shape,
    record_shape,
    shape_named,
)
from specstream.declarations.durations import duration_text
from specstream.declarations.element_types import Number, Storage, storage_of, type_named
from specstream.declarations.operations import Operation
from specstream.declarations.options import not_called, refuses_unknown, shown, whole
from specstream.declarations.plain_values import plain
from specstream.declarations.records import (
    Record,
    is_record,
    record_fields,
    record_named,
    stored_value,
)
from specstream.errors import DeclarationError
from specstream.files.untrusted import Malformed

__all__ = ["Description", "Field", "Layout", "Part", "Space", "State", "array", "scalar", "scratch"]

Space = Literal["state", "scratch", "locks"]
Fill = int | float | bool | str | tuple[Any, ...]
WORD_BYTES = 8
# The index of a word has 32 bits in the logs.
MOST_WORDS = 2**32 - 1


class _Described(TypedDict):
    name: str
    kind: str
    shape: list[int]


class Description(_Described, total=False):
    """A field as plain data: its name, the name of its element type, its shape. Of a container the
    name of its kind, no shape, and what it was declared with."""

    key: str
    value: str
    limit: int
    maxlen: int
    expire_after: int | str


@dataclass(frozen=True)
class Declaration:
    """What :func:`array`, :func:`scalar` and :func:`scratch` return: a field without a name yet."""

    dtype: type
    shape: tuple[int, ...]
    fill: Fill | Record | None  # None: the zero of the type
    space: Space
    share: int | None = None
    operations: tuple[Operation, ...] = ()


@dataclass(frozen=True)
class Field:
    """One field of a layout.

    Attributes:
        name: as declared in the state class.
        storage: type of an element, in memory and when read.
        shape: empty for a scalar.
        fill: every element at the start.
        space: "state", "scratch" for memory private to the running event, or "locks".
        offset: first word, or first lock, within its space.
        share: protocol "eager": so many neighbouring words share an ownership record; None: as many
            as the engine says. Machine code does not depend on it, hence it is not in the repr,
            which keys the cache.
        operations: of a boosted field: the only way to it.
        container: of a dict, set, list or deque, whose header these words are; else None.
        record: of an array or scalar of records, whose words are the elements, the last axis those
            of one record; else None. ``fill`` then has one value for each.
    """

    name: str
    storage: Storage
    shape: tuple[int, ...]
    fill: Fill
    space: Space
    offset: int
    share: int | None = dataclasses.field(default=None, repr=False)
    operations: tuple[Operation, ...] = ()
    container: Container | None = None
    record: Shape | None = None

    @property
    def kind(self) -> Number:
        """What a read of an element gives."""
        return self.storage.number

    @property
    def type_name(self) -> str:
        """The type of an element, or of the container, for people."""
        if self.container is not None:
            of = self.container
            parts = ", ".join(str(one) for one in (of.key, of.value) if one.parts)
            return f"{of.kind}[{parts}]"
        return "text" if self.kind == "str" else str(self.record or self.storage.name)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The shape of its elements, each record counted as one; empty for a container."""
        if self.container is not None:
            return ()
        return self.shape if self.record is None else self.shape[:-1]

    @property
    def is_timers(self) -> bool:
        """Whether it holds the operator's timers."""
        return self.container is not None and self.container.kind == "timers"

    @property
    def filled(self) -> int | float | bool | tuple[Any, ...]:
        """What every element holds at the start; the words of a record."""
        if self.record is not None:
            assert isinstance(self.fill, tuple)
            pairs = zip(self.record.parts, self.fill, strict=True)
            return tuple(_word(part, value) for part, value in pairs)
        return stored_code(self.fill) if isinstance(self.fill, str) else self.fill

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def words(self) -> int:
        """Number of words; the last one may be padded."""
        return -(-self.size * self.storage.size // WORD_BYTES)

    @property
    def kept(self) -> tuple[int, int]:
        """Of a field of the state, the first word and the end of those that mean something where
        they are: all, or of a container :attr:`Container.kept`."""
        if self.container is None:
            return self.offset, self.offset + self.words
        first, end = self.container.kept
        return self.offset + first, self.offset + end

    @property
    def start(self) -> int:
        """First element, counted in elements of this size from the start of the space."""
        return self.offset * WORD_BYTES // self.storage.size


class State:
    """Base of a state declaration: a class whose attributes are fields.

    >>> import specstream as ss
    >>> class Totals(ss.State):
    ...     seen = ss.scalar(int)
    ...     sums = ss.array(float, (10, 2))
    ...     local = ss.scratch(int, 5)
    >>> [(field.name, field.shape) for field in Totals.layout().fields]
    [('seen', ()), ('sums', (10, 2)), ('local', (5,))]
    """

    def __init__(self, *args: object) -> None:
        if args:
            raise DeclarationError(
                f"ss.State is the base of states' classes, and is given {shown(args[0])}: write "
                "class MyState(ss.State): ..."
            )

    @classmethod
    def layout(cls) -> Layout:
        """The fields, packed in the order of their declaration, base classes first."""
        declared: dict[str, Declaration | Declared] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Declaration | Declared):
                    declared[name] = value
                elif base not in (State, object) and not name.startswith("__"):
                    raise _no_field(f"state {cls.__name__!r}", name, value)
        annotated = vars(cls).get("__annotations__", {})
        if not declared and annotated:
            raise DeclarationError(
                f"state {cls.__name__!r} has {', '.join(annotated)} by annotation alone, and "
                f"fields are what is assigned: write {next(iter(annotated))} = ss.scalar(int), or "
                "whatever it is"
            )
        return Layout.pack(cls.__name__, declared)


@dataclass(frozen=True)
class Layout:
    """Where each field lies. Laid out once.

    Attributes:
        name: of the state.
        fields: in the order of their declaration.
        parts: names of those that :meth:`joined` has joined.
        reserved: words at the beginning of the scratch that are no field's.
    """

    name: str
    fields: tuple[Field, ...]
    parts: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    reserved: int = dataclasses.field(default=0, repr=False)
    first_operation: ClassVar[int] = 0

    def __getstate__(self) -> dict[str, Any]:
        # Without what is kept of it to be found faster.
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}

    @classmethod
    def pack(cls, name: str, declared: Mapping[str, Declaration | Declared]) -> Layout:
        """Fields one after the other, each space for itself, each from a whole word on; behind
        them the regions of the containers."""
        fields: list[Field] = []
        used = {"state": 0, "scratch": 0, "locks": 0}
        for field_name, declaration in declared.items():
            what = f"state {name!r}, field {field_name!r}"
            if isinstance(declaration, Declared):
                container = declaration.container(what)
                # Of a pipeline each vertex may have one.
                part = field_name.rpartition(".")[0]
                others = [
                    one.name
                    for one in fields
                    if one.is_timers and one.name.rpartition(".")[0] == part
                ]
                if container.kind == "timers" and others:
                    raise DeclarationError(
                        f"{what} is a second ss.timers(...), beside {others[0]!r}; expected one in "
                        "a state: put the kind of a timer into its key, like ss.timers((str, int))"
                    )
                shape = (container.header_words,)
                header = Field(
                    field_name,
                    storage_of(int, what),
                    shape,
                    0,
                    "state",
                    used["state"],
                    container=container,
                )
                used["state"] += header.words
                fields.append(header)
                continue
            if is_record(declaration.dtype):
                packed = _of_records(field_name, declaration, used["state"], what)
                used["state"] += packed.words
                fields.append(packed)
                continue
            storage = storage_of(declaration.dtype, what)
            packed = Field(
                field_name,
                storage,
                _shape(declaration.shape, what),
                _fill(declaration.fill, storage, what),
                declaration.space,
                used[declaration.space],
                _share(declaration.share, what),
                declaration.operations,
            )
            used[declaration.space] += packed.words
            fields.append(packed)
        if used["state"] == 0:
            raise DeclarationError(
                f"state {name!r} declares no state field; expected at least one ss.array(...) or "
                "ss.scalar(...), or no state="
            )
        fields, words = _with_regions(fields, used["state"])
        if words > MOST_WORDS:
            raise DeclarationError(
                f"state {name!r} takes {words} words of 8 bytes; a state holds less than "
                "2**32: declare narrower types, shorter arrays, or a smaller limit= of a container"
            )
        return cls(name, tuple(fields))

    @classmethod
    def joined(
        cls, name: str, parts: Mapping[str, Layout], more: Layout | None, reserved: int = 0
    ) -> Layout:
        """Several layouts one after the other, as one; a field is called ``part.field`` there.

        Args:
            more: fields with names of their own, behind all others.
            reserved: words of the scratch before all others.
        """
        fields: list[Field] = []
        used: dict[Space, int] = {"state": 0, "scratch": reserved, "locks": 0}
        named = [(f"{part}.", layout) for part, layout in parts.items()]
        for prefix, layout in [*named, ("", more)] if more is not None else named:
            fields += [
                dataclasses.replace(
                    one, name=prefix + one.name, offset=one.offset + used[one.space]
                )
                for one in layout.fields
            ]
            for space in used:
                used[space] += layout.fields_words(space)
        placed, words = _with_regions(fields, used["state"])
        if words > MOST_WORDS:
            raise DeclarationError(
                f"the states of {name} take {words} words of 8 bytes; together they hold less than "
                "2**32: declare narrower types, shorter arrays, or smaller limits of containers"
            )
        return cls(name, tuple(placed), tuple(parts), reserved)

    def has_part(self, name: str) -> bool:
        """Whether it is one of those that are joined, whose fields are called ``name.field``."""
        return name in self.parts

    def is_unread(self, name: object) -> bool:
        """Whether a field's name is that of a last value, ``part.input.column``, which is not kept
        because nobody reads it any more."""
        if not isinstance(name, str):
            return False
        part, _, rest = name.partition(".")
        return "." in rest and part in self.parts and self.field(name) is None

    def part(self, prefix: str, name: str) -> Part:
        """One of those that :meth:`joined` has joined, where it lies now."""
        return dataclasses.replace(self._joined[prefix], name=name)

    @cached_property
    def _joined(self) -> dict[str, Part]:
        found: dict[str, Part] = {name: Part(name, ()) for name in self.parts}
        fields: dict[str, list[Field]] = {name: [] for name in self.parts}
        containers = operations = 0
        changes = self._first_change
        for one in self.fields:
            part, _, own = one.name.rpartition(".")
            if part in fields:
                if not fields[part]:
                    found[part] = Part(
                        part,
                        (),
                        first_container=containers,
                        first_operation=operations,
                        first_change=changes,
                    )
                fields[part].append(dataclasses.replace(one, name=own))
            containers += one.container is not None
            operations += len(one.operations)
            changes += one.container is not None and not one.container.is_keyed
        return {
            name: dataclasses.replace(part, fields=tuple(fields[name]))
            for name, part in found.items()
        }

    @cached_property
    def _first_change(self) -> int:
        return self.words("scratch") - len(self._sequences)

    def container_number(self, field: Field) -> int:
        """Which of the runtime's containers a field is."""
        return self.containers.index(field)

    @property
    def containers(self) -> tuple[Field, ...]:
        """The fields that are containers; numbered from 0, as the runtime has them."""
        return tuple(field for field in self.fields if field.container is not None)

    @cached_property
    def all_timers(self) -> tuple[Field, ...]:
        """The fields that hold timers, in the order in which those fire that are due at one time:
        one, or of a pipeline one for each vertex that has some."""
        return tuple(field for field in self.fields if field.is_timers)

    @property
    def timers(self) -> Field | None:
        """The first of these, if there is one. It has the clock, and how many have fired."""
        return next(iter(self.all_timers), None)

    @cached_property
    def lasting(self) -> tuple[Field, ...]:
        """The containers whose entries expire after a duration."""
        return tuple(one for one in self.containers if one.container and one.container.is_duration)

    @property
    def goes_by_time(self) -> bool:
        """Whether there are timers, or entries that expire."""
        return any(
            one.container is not None and (one.is_timers or one.container.expires > 0)
            for one in self.containers
        )

    @property
    def has_records(self) -> bool:
        """Whether any field holds records."""
        return any(
            one.record is not None
            or (one.container is not None and one.container.value.record is not None)
            for one in self.fields
        )

    @property
    def state_words(self) -> int:
        """Words of the state with the regions of its containers: addresses, of which only those
        that are touched take memory."""
        return _with_regions(list(self.fields), self.words("state"))[1]

    @property
    def texts(self) -> tuple[Field, ...]:
        """The fields of the state that hold strings."""
        return tuple(one for one in self.fields if one.space == "state" and one.kind == "str")

    @property
    def strings(self) -> tuple[str, ...]:
        """Strings that are in a state before any event."""
        fills = [str(one.fill) for one in self.fields if one.kind == "str"]
        for shape, fill in [
            (one.record, one.fill) for one in self.fields if one.record is not None
        ]:
            assert isinstance(fill, tuple)
            pairs = zip(shape.parts, fill, strict=True)
            fills += [value for part, value in pairs if part.number == "str"]
        fills += ["" for one in self.containers if one.container and one.container.has_text]
        return tuple(dict.fromkeys(["", *fills] if fills else []))

    @property
    def plain(self) -> tuple[Field, ...]:
        """The fields of the state that are no containers."""
        return tuple(one for one in self.fields if one.space == "state" and one.container is None)

    @cached_property
    def stretches(self) -> tuple[tuple[int, int], ...]:
        """Where these lie in the state, and the words that headers keep (:attr:`Field.kept`):
        first word and end of each row of neighbours."""
        found: list[tuple[int, int]] = []
        for field in self.fields:
            begin, end = field.kept
            if field.space != "state" or begin == end:
                continue
            if found and found[-1][1] == begin:
                begin = found.pop()[0]
            found.append((begin, end))
        return tuple(found)

    def words(self, space: Space) -> int:
        """Number of words of a space, without the regions of containers; of the space "locks",
        number of locks."""
        more = self.reserved + len(self._sequences) if space == "scratch" else 0
        return self.fields_words(space) + more

    def fields_words(self, space: Space) -> int:
        """Of these those of the fields."""
        return sum(field.words for field in self.fields if field.space == space)

    @cached_property
    def _sequences(self) -> tuple[Field, ...]:
        return tuple(
            one for one in self.containers if one.container is None or not one.container.is_keyed
        )

    @property
    def first_change_word(self) -> int:
        """The first of the words of :meth:`changes_of`."""
        return self._first_change

    def changes_of(self, sequence: Field) -> int:
        """The word of the scratch in which an event counts what it puts into a sequence and takes
        out of it: who goes through one is told."""
        return self._first_change + self._sequences.index(sequence)

    @property
    def operations(self) -> tuple[tuple[Field, Operation], ...]:
        """Operations on boosted fields, those of one field side by side; numbered from
        ``first_operation`` on."""
        return tuple((field, one) for field in self.fields for one in field.operations)

    def with_operations(self, operations: Sequence[Operation]) -> Layout:
        """The same, with these for the operations, in the order of their numbers."""
        given = iter(operations)
        return dataclasses.replace(
            self,
            fields=tuple(
                dataclasses.replace(field, operations=tuple(next(given) for _ in field.operations))
                for field in self.fields
            ),
        )

    def field(self, name: str) -> Field | None:
        """The field of that name, if there is one."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {one.name: one for one in reversed(self.fields)}

    def allocate(self) -> npt.NDArray[np.int64]:
        """New state words, filled as declared; aligned to a cache line of 64 bytes.

        The system gives memory to what is zero only where it is touched, so that a large state
        takes no time to make and no more memory than its events use.
        """
        words = self.state_words
        if self.containers:
            memory = _reserved(words)
        else:
            # Zero, so that padding is the same in every snapshot.
            raw = np.zeros(words + 8, np.int64)
            start = (-(raw.ctypes.data // 8)) % 8
            memory = raw[start : start + words]
        for field in self.fields:
            elements = self.elements(memory, field) if field.space == "state" else None
            # By its bits: -0.0 is a zero, too.
            if elements is not None and any(np.array(field.filled, elements.dtype).tobytes()):
                elements[...] = field.filled
        return memory

    def elements(
        self, memory: npt.NDArray[np.int64], field: Field, offset: int | None = None
    ) -> npt.NDArray[Any]:
        """The field's elements as an array over ``memory``, where they begin with the word
        ``offset``, by default the field's own; those of type bool as int64."""
        offset = field.offset if offset is None else offset
        words = memory[offset : offset + field.words]
        return words.view(field.storage.dtype)[: field.size].reshape(field.shape)

    def describe(self) -> list[Description]:
        """The layout as plain data, as a snapshot stores it."""
        return [_description(field) for field in self.fields if field.space == "state"]

    def regions(self, shift: int) -> list[tuple[int, int]]:
        """Where in the state how many words share an ownership record: (first word, log2 of them).

        A field that declares ``share`` is a region of its own, and shares records with no other
        field; those between two such fields are one region with the engine's ``shift``.

        >>> import specstream as ss
        >>> class Two(ss.State):
        ...     rows = ss.array(int, 100, share=8)
        ...     total = ss.scalar(int)
        >>> Two.layout().regions(0)
        [(0, 3), (100, 0)]
        """
        regions: list[tuple[int, int]] = []
        may_join = False
        for field in self.fields:
            if field.space != "state":
                continue
            if field.share is not None:
                regions.append((field.offset, field.share.bit_length() - 1))
            elif not may_join:
                regions.append((field.offset, shift))
            may_join = field.share is None
        return regions

    @classmethod
    def described(cls, name: str, description: Sequence[Description]) -> Layout:
        """The layout that :meth:`describe` has described, without scratch and with zero fills.

        Raises:
            Malformed: no state can be declared so; names the field.
        """
        declared: dict[str, Declaration | Declared] = {}
        try:
            for field in description:
                if field["name"] in declared:
                    raise Malformed(f"state {name!r} has the field {field['name']!r} twice")
                declared[field["name"]] = _declared(field)
            packed = cls.pack(name, declared) if declared else cls(name, ())
        except DeclarationError as error:
            raise Malformed(str(error)) from None
        for found, given in zip(packed.describe(), description, strict=True):
            if found != given:
                raise Malformed(
                    f"state {name!r}, field {given['name']!r}: {dict(given)} is no field"
                )
        return packed


@dataclass(frozen=True, kw_only=True)
class Part(Layout):
    """A layout within another one: its fields are where they are in all of it.

    Attributes:
        first_container: what the runtime's number of its first container is.
        first_operation: likewise of its first operation on a boosted field.
        first_change: likewise the word of its first count of changes.
    """

    first_container: int = 0
    first_operation: int = 0  # type: ignore[misc]
    first_change: int = 0

    @property
    def _first_change(self) -> int:
        return self.first_change

    def container_number(self, field: Field) -> int:
        return self.first_container + self.containers.index(field)


_LIKE_FIELDS = {
    dict: "ss.dict(str, int)",
    list: "ss.list(int)",
    set: "ss.set(str)",
    collections.deque: "ss.deque(int)",
    np.ndarray: "ss.array(float, 100)",
    bool: "ss.scalar(bool)",
    int: "ss.scalar(int)",
    float: "ss.scalar(float)",
    str: "ss.scalar(str)",
}


def _no_field(what: str, name: str, value: object) -> DeclarationError:
    """The error for an attribute of a state that is no field of it."""
    declares = not_called(value)
    if declares is not None:
        return DeclarationError(
            f"{what}, field {name!r}: {declares} is not called; expected its types in "
            f"parentheses: {name} = {declares}(...)"
        )
    like = next((write for of, write in _LIKE_FIELDS.items() if isinstance(value, of)), None)
    hint = "constants belong into the operator's module or closure"
    if like is not None:
        hint = f"write {name} = {like}, with your types, for what changes; {hint}"
    return DeclarationError(
        f"{what} has attribute {name!r}, which is no field; expected ss.array(...), "
        "ss.scalar(...), ss.scratch(...), ss.dict(...) or another container: "
        f"{hint}"
    )


def _description(field: Field) -> Description:
    of = field.container
    if of is None:
        return {
            "name": field.name,
            "kind": str(field.record or field.storage.name),
            "shape": list(field.shape[:-1] if field.record else field.shape),
        }
    described: Description = {"name": field.name, "kind": of.kind, "shape": [], "limit": of.limit}
    if of.key.parts:
        described["key"] = str(of.key)
    if of.value.parts:
        described["value"] = str(of.value)
    if of.maxlen is not None:
        described["maxlen"] = of.maxlen
    if of.expires:
        described["expire_after"] = duration_text(of.expires) if of.is_duration else of.expires
    return described


def _declared(described: Description) -> Declaration | Declared:
    kind = described["kind"]
    if kind not in get_args(ContainerKind):
        rest = [name for name in described if name not in ("name", "kind", "shape")]
        if rest:
            raise DeclarationError(
                f"field {described['name']!r} of type {kind} has {' and '.join(rest)}"
            )
        of = record_named(kind) or type_named(kind)
        return Declaration(of, tuple(described["shape"]), None, "state")
    key, value = (described.get(part) for part in ("key", "value"))
    return Declared(
        cast(ContainerKind, kind),
        None if key is None else shape_named(str(key)),
        None if value is None else shape_named(str(value)),
        None,
        described.get("limit"),
        described.get("maxlen") if kind == "deque" else None,
        described.get("expire_after") if kind in ("dict", "set") else None,
    )


def _of_records(name: str, declaration: Declaration, offset: int, what: str) -> Field:
    """A field of records: an array of words, whose last axis is the fields."""
    shape = record_shape(declaration.dtype)
    if declaration.space != "state" or declaration.operations:
        raise DeclarationError(
            f"{what} has type {declaration.dtype.__name__}; expected numbers: records are elements "
            "of ss.array, ss.scalar and containers, and an event's own values"
        )
    fill = declaration.fill
    named = record_fields(declaration.dtype)
    if fill is not None and type(fill) is not declaration.dtype:
        raise DeclarationError(
            f"{what} has fill {shown(fill)}; expected a {declaration.dtype.__name__}(...)"
        )
    values = tuple(
        one.default if fill is None else stored_value(one.storage, getattr(fill, one.name), what)
        for one in named
    )
    return Field(
        name,
        storage_of(int, what),
        (*_shape(declaration.shape, what), shape.words),
        values,
        "state",
        offset,
        _share(declaration.share, what),
        record=shape,
    )


def _word(part: Storage, value: Any) -> int:
    """A value as the word that holds it."""
    if part.number == "str":
        return stored_code(value)
    return int(np.array([value], part.dtype).view(np.int64)[0])


# Regions begin with a page.
_PAGE_WORDS = 512
# Address space without a promise of memory; of Linux on all processors that we know.
_MAP_NORESERVE = 0x4000


def _with_regions(fields: list[Field], used: int) -> tuple[list[Field], int]:
    """The fields with the regions of their containers behind all of them; the end of the last."""
    placed = []
    for field in fields:
        if field.container is not None:
            used = -(-used // _PAGE_WORDS) * _PAGE_WORDS
            container = dataclasses.replace(field.container, region=used)
            used += container.region_words
            field = dataclasses.replace(field, container=container)
        placed.append(field)
    return placed, used


def _reserved(words: int) -> npt.NDArray[np.int64]:
    """So many zero words; the system gives them memory where they are touched, and promises none
    before."""
    try:
        pages = mmap.mmap(
            -1, words * WORD_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        )
    except OSError as error:
        raise MemoryError(
            f"the state's containers may take {words * WORD_BYTES} bytes of addresses, and the "
            f"system gives none ({error}): declare smaller limits, like ss.dict(..., limit=1000)"
        ) from None
    return np.frombuffer(pages, np.int64)


@refuses_unknown
def array(
    dtype: type,
    shape: int | Sequence[int],
    fill: Fill | Record | None = None,
    share: int | None = None,
) -> Any:
    """An array field.

    Args:
        dtype: element type. ``int`` (int64), ``float`` (float64) and ``bool`` take 8 bytes an
            element; ``np.int8`` to ``np.int32``, ``np.uint8`` to ``np.uint32``, ``np.float32`` and
            ``np.bool_`` (one byte) are packed densely. Reads widen to int64, float64 or bool; a
            store of an integer that does not fit raises OverflowError; one of a float into
            float32 rounds to nearest. ``np.uint64`` holds uint64 numbers, and nothing else. ``str``
            holds strings of any length, 8 bytes an element: their codes. A class derived from
            :class:`specstream.Record` holds records, 8 bytes for each of its fields.
        shape: one length, or a tuple of any rank.
        fill: value of every element at the start; by default 0, False or ""; of records what the
            class says, and zeros where it says nothing.
        share: with protocol "eager", how many neighbouring words of 8 bytes share one ownership
            record; a power of two. By default the engine's ``record_shift`` decides.

    Raises:
        DeclarationError: when the state is laid out, for a type, shape, fill or share that is not
            allowed; names the field.

    >>> import numpy as np
    >>> import specstream as ss
    >>> class Sketch(ss.State):
    ...     counts = ss.array(np.uint16, (4, 1000), share=8)
    >>> Sketch.layout().words("state")
    1000
    """
    return Declaration(dtype, _lengths(shape), fill, "state", share)


@refuses_unknown
def scalar(dtype: type, fill: Fill | Record | None = None) -> Any:
    """A scalar field, read and written as ``state.name``.

    Args:
        dtype: type of the value, as of :func:`array`.
        fill: value at the start; by default 0, False or ""; of a record what the class says.

    Raises:
        DeclarationError: when the state is laid out, for a type or fill that is not allowed; names
            the field.
    """
    return Declaration(dtype, (), fill, "state")


@refuses_unknown
def scratch(dtype: type, shape: int | Sequence[int]) -> Any:
    """An array private to the running event: zero (or "") at its start, never logged, in no
    snapshot.

    Args:
        dtype: element type, as of :func:`array`.
        shape: one length, or a tuple of any rank.

    Raises:
        DeclarationError: when the state is laid out, for a type or shape that is not allowed; names
            the field.
    """
    return Declaration(dtype, _lengths(shape), None, "scratch")


def _lengths(shape: int | Sequence[int]) -> tuple[int, ...]:
    """As they were given: that they are lengths is looked at where the field has a name."""
    try:
        return tuple(shape)  # type: ignore[arg-type]
    except Exception:
        return (shape,)  # type: ignore[return-value]


def _shape(shape: tuple[int, ...], what: str) -> tuple[int, ...]:
    lengths = tuple(whole(length) or 0 for length in shape)
    if any(length < 1 for length in lengths):
        raise DeclarationError(f"{what} has shape {shown(shape)}; expected lengths of at least 1")
    if math.prod(lengths) >= 2**32:
        raise DeclarationError(
            f"{what} has shape {shown(shape)}; a state holds less than 2**32 elements: expected "
            "shorter lengths"
        )
    return lengths


def _share(share: object, what: str) -> int | None:
    if share is None:
        return None
    words = whole(share)
    if words is None or words < 1 or words > 2**31 or words & (words - 1) != 0:
        raise DeclarationError(
            f"{what} has share {shown(share)}; expected the number of words that share an "
            "ownership record, a power of two: 1, 2, 4, 8 ..."
        )
    return words


def _fill(fill: Any, storage: Storage, what: str) -> Fill:
    fill = plain(fill)
    if storage.number == "str":
        if isinstance(fill, str | None):
            return _text(fill or "", what)
        raise DeclarationError(
            f"{what} has fill {shown(fill)}; expected a string, as its type is str"
        )
    fill = 0 if fill is None else fill
    value: int | float | bool | None = whole(fill)
    if storage.number == "bool":
        value = bool(fill) if value in (0, 1) or isinstance(fill, bool | np.bool_) else None
    elif storage.number == "float" and isinstance(fill, float | np.floating):
        value = float(fill)
    if value is None:
        raise DeclarationError(
            f"{what} has fill {shown(fill)}; expected a value of type {storage.name}"
        )
    if not _holds(storage, value):
        raise DeclarationError(
            f"{what} has fill {shown(fill)}, outside of {storage.dtype.name}: declare a wider type "
            "or another fill"
        )
    return value


def _text(fill: str, what: str) -> str:
    try:
        fill.encode()
    except UnicodeEncodeError:
        raise DeclarationError(
            f"{what} has fill {fill!r} with a lone surrogate, which no UTF-8 text has: replace it"
        ) from None
    return fill


def _holds(storage: Storage, value: int | float | bool) -> bool:
    """Whether a fill is within the range of the elements."""
    if storage.bounds is not None:
        return storage.bounds[0] <= value <= storage.bounds[1]
    if storage.number == "bool":
        return True
    try:
        exact = float(value)
    except OverflowError:  # an int beyond all floats
        return False
    with np.errstate(over="ignore"):
        return math.isinf(exact) or not np.isinf(storage.dtype.type(exact))
