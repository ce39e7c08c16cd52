"""Arrays, dicts, sets, lists and deques of an unknown state.

Each is a view of a *store*, which holds terms by name: ``f`` for a scalar or the elements of an
array, ``f.part`` for one of several words, ``f#has``, ``f#count``, ``f#at`` for which keys a dict
has, how many, and when they were written, ``f#start`` and ``f#count`` for a sequence, and
``f#sum`` for the exact sum of what is there, which changes with each store.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import z3

from specstream.compiler.language.numbers import INT64_MAX, Int64
from specstream.compiler.language.text import Text
from specstream.declarations.containers import Shape
from specstream.declarations.element_types import Storage
from specstream.declarations.state_layout import Field
from specstream.verify.elements import key_term, load, refused, store, wide_term
from specstream.verify.paths import is_walked, path, place, refuse
from specstream.verify.values import Bool, Int, bits, choose

__all__ = ["Array", "Dict", "Record", "Set", "Slots", "Store", "held_now", "part_names"]

_MOST_ELEMENTS = 64


class Store(dict[str, Any]):
    """The terms of a state, by name, and the records that are views of it.

    Attributes:
        now: the time of the event.
        live: of each field, the records that lie there.
    """

    now: Any = None

    def __init__(self, terms: dict[str, Any]) -> None:
        super().__init__(terms)
        self.live: dict[str, list[Record]] = {}

    def copied(self) -> Store:
        """One that can be changed without this."""
        made = Store(self)
        made.now = self.now
        return made

    def put(self, name: str, storage: Storage, key: Any, value: Any, held: Any = None) -> None:
        """Stores an element; ``held``: whether there was one that counts in the sum."""
        total = f"{name}#sum"
        if total in self:
            before = wide_term(storage, z3.Select(self[name], key))
            if held is not None:
                before = z3.If(held, before, z3.BitVecVal(0, 128))
            self[total] = self[total] - before + wide_term(storage, value)
        self[name] = z3.Store(self[name], key, value)


def part_names(name: str, shape: Shape) -> list[str]:
    """The names of the words of a key, value or record in the store."""
    if shape.is_whole:
        return [name]
    parts = shape.names or tuple(map(str, range(shape.words)))
    return [f"{name}.{part}" for part in parts]


# ---- records ----


class Record:
    """A record: of the event's own, or a view of what lies somewhere in the state."""

    __slots__ = ("_also", "_at", "_shape", "_values")

    def __init__(self, shape: Shape, values: list[Any], at: tuple[Any, Any] | None = None) -> None:
        object.__setattr__(self, "_shape", shape)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_at", at)
        object.__setattr__(self, "_also", False)

    def _number(self, name: str) -> int:
        if name not in self._shape.names:
            raise AttributeError(f"record has no field {name!r}")
        return int(self._shape.names.index(name))

    def __getattr__(self, name: str) -> Any:
        number = self._number(name)
        if self._at is None:
            return self._values[number]
        owner, key = self._at
        return load(self._shape.parts[number], z3.Select(owner.store[owner.parts[number]], key))

    def __setattr__(self, name: str, value: Any) -> None:
        number = self._number(name)
        part = self._shape.parts[number]
        term = store(part, value, f"field {name!r}")
        if self._at is None:
            self._values[number] = load(part, term)
        else:
            owner, key = self._at
            owner.store.put(owner.parts[number], part, key, term)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Record) or other._shape != self._shape:
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self._shape.names)

    __hash__ = None  # type: ignore[assignment]


def record_values(shape: Shape, record: Any, what: str) -> list[Any]:
    """The elements of a record that is about to be stored."""
    if not isinstance(record, Record) or record._shape != shape:
        raise TypeError(f"{what} holds records of another class")
    return [
        store(part, getattr(record, name), what)
        for part, name in zip(shape.parts, shape.names, strict=True)
    ]


class Slots:
    """What holds values of a shape by keys, each word in an array of its own."""

    def __init__(self, name: str, shape: Shape, state: Store) -> None:
        self.name, self.shape, self.store = name, shape, state
        self.parts = part_names(name, shape)

    def _terms(self, value: Any) -> list[Any]:
        what = f"state.{self.name}"
        if self.shape.record is not None:
            return record_values(self.shape, value, what)
        if not self.shape.is_tuple:
            return [store(self.shape.parts[0], value, what)]
        if not isinstance(value, tuple) or len(value) != self.shape.words:
            raise TypeError(f"{what} is declared {self.shape}")
        return [store(of, one, what) for of, one in zip(self.shape.parts, value, strict=True)]

    def value_at(self, key: Any) -> Any:
        if self.shape.record is not None:
            found = Record(self.shape, [], (self, key))
            self.store.live.setdefault(self.name, []).append(found)
            return found
        parts = zip(self.shape.parts, self.parts, strict=True)
        values = [load(part, z3.Select(self.store[name], key)) for part, name in parts]
        return tuple(values) if self.shape.is_tuple else values[0]

    def leave(self, key: Any, but: Any = None) -> None:
        """What lies at a key is about to be something else: its record keeps what it has."""
        for one in list(self.store.live.get(self.name, ())):
            if one is but or not path().fork(one._at[1] == key):
                continue
            if one._also:
                refuse("a record that is stored twice and then overwritten", "store a copy")
            values = [getattr(one, name) for name in self.shape.names]
            object.__setattr__(one, "_values", values)
            object.__setattr__(one, "_at", None)
            self.store.live[self.name].remove(one)

    def keep(self, value: Any, key: Any) -> None:
        """A record that was stored is a view of where it lies from then on."""
        if self.shape.record is None:
            return
        if value._at is not None:
            object.__setattr__(value, "_also", True)
            return
        object.__setattr__(value, "_at", (self, key))
        self.store.live.setdefault(self.name, []).append(value)

    def put_at(self, key: Any, value: Any, held: Any = None) -> None:
        is_record = self.shape.record is not None
        if is_record and isinstance(value, Record) and value._at is not None:
            owner, own = value._at
            if owner.name == self.name and path().fork(own == key):
                return
        terms = self._terms(value)
        if is_record:
            self.leave(key)
        for name, part, term in zip(self.parts, self.shape.parts, terms, strict=True):
            self.store.put(name, part, key, term, held)
        self.keep(value, key)


# ---- arrays ----


class Array:
    """An array field, or a row or slice of one."""

    def __init__(
        self,
        slots: Slots,
        offset: Any,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self._slots, self._offset, self._shape, self._strides = slots, offset, shape, strides

    @classmethod
    def of(cls, field: Field, state: Store) -> Array:
        shape = field.record or Shape((field.storage,))
        lengths = field.dimensions
        strides = [1]
        for length in reversed(lengths[1:]):
            strides.insert(0, strides[0] * length)
        return cls(Slots(field.name, shape, state), 0, lengths, tuple(strides))

    @property
    def name(self) -> str:
        return self._slots.name

    @property
    def size(self) -> int:
        total = 1
        for length in self._shape:
            total *= length
        return total

    def length(self) -> Int64:
        return Int64(self._shape[0])

    def __ss_check_update__(self, name: str, key: Any) -> None:
        """An update has been looked at when the operator was compiled."""

    def _at(self, axis: int, index: Any) -> Any:
        length = self._shape[axis]
        if isinstance(index, bool | Bool | Text) or not isinstance(index, int | Int):
            raise TypeError(f"state.{self.name} is indexed with no integer")
        if isinstance(index, int):
            at = index + length if index < 0 else int(index)
            if not 0 <= at < length:
                raise IndexError(f"index out of bounds for state.{self.name}")
            return int(at)
        term = index.term
        if index.signed:
            if not path().fork(z3.And(term >= -length, term < length)):
                raise IndexError(f"index out of bounds for state.{self.name}")
            return z3.If(term < 0, term + length, term)
        if not path().fork(z3.ULT(term, length)):
            raise IndexError(f"index out of bounds for state.{self.name}")
        return term

    def _select(self, index: Any) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
        parts = index if type(index) is tuple else (index,)
        if len(parts) > len(self._shape):
            raise IndexError(f"too many indices for state.{self.name}")
        offset = self._offset
        shape: list[int] = []
        strides: list[int] = []
        for axis, part in enumerate(parts):
            stride = self._strides[axis]
            if isinstance(part, slice):
                start, stop, step = part.indices(self._shape[axis])
                offset = offset + int(start) * stride
                shape.append(len(range(start, stop, step)))
                strides.append(int(step) * stride)
            else:
                at = self._at(axis, part)
                offset = offset + (at if stride == 1 else at * stride)
        rest = len(parts)
        return offset, (*shape, *self._shape[rest:]), (*strides, *self._strides[rest:])

    def _key(self, offset: Any) -> Any:
        key = bits(offset) if isinstance(offset, int) else offset
        path().touch(self.name, key)
        return key

    def __getitem__(self, index: Any) -> Any:
        offset, shape, strides = self._select(index)
        if shape == ():
            return self._slots.value_at(self._key(offset))
        return Array(self._slots, offset, shape, strides)

    def __setitem__(self, index: Any, value: Any) -> None:
        offset, shape, strides = self._select(index)
        if shape == ():
            self._slots.put_at(self._key(offset), value)
            return
        target = Array(self._slots, offset, shape, strides)
        places = target.places()
        if isinstance(value, Array | list | tuple):
            if len(shape) != 1:
                refused(self.name, "assigning several rows", "assign row by row")
            items = list(value)
            if len(items) not in (1, len(places)):
                raise ValueError(f"could not broadcast into state.{self.name}")
            items = items * len(places) if len(items) == 1 else items
        else:
            items = [value] * len(places)
        for at, item in zip(places, items, strict=True):
            self._slots.put_at(self._key(at), item)

    def places(self) -> list[Any]:
        """Where the elements are, the last axis first."""
        if self.size > _MOST_ELEMENTS:
            refused(
                self.name,
                f"going through {self.size} elements",
                f"at most {_MOST_ELEMENTS} are gone through; ask one element",
            )
        ranges = (range(0, n * by, by) if by else (0,) * n for n, by in self._pairs())
        return [self._offset + sum(steps) for steps in itertools.product(*ranges)]

    def _pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self._shape, self._strides, strict=True)

    def fill(self, value: Any) -> None:
        for at in self.places():
            self._slots.put_at(self._key(at), value)

    def values(self) -> list[Any]:
        return [self._slots.value_at(self._key(at)) for at in self.places()]

    @property
    def zero(self) -> Any:
        return 0.0 if self._slots.shape.parts[0].number == "float" else Int64(0)

    def __iter__(self) -> Iterator[Any]:
        if self._shape[0] > _MOST_ELEMENTS:
            self.places()
        for at in range(self._shape[0]):
            yield self[Int64(at)]

    def __contains__(self, value: object) -> bool:
        return any(own == value for own in self)

    def __getattr__(self, name: str) -> Any:
        refused(self.name, f"the method {name}()", "write it with elements: x[i]")


# ---- dicts and sets ----


class Dict:
    """A dict of the state; of a set, it has no values."""

    def __init__(self, field: Field, state: Store, after: int) -> None:
        assert field.container is not None
        self._of, self._after = field.container, after
        self._slots = Slots(field.name, field.container.value, state)
        self.name, self.store = field.name, state

    def key_of(self, key: Any) -> Any:
        term = key_term(self._of.key, key, f"a key of state.{self.name}")
        if term is not None:
            path().touch(self.name, term)
        return term

    def held(self, key: Any) -> Any:
        """Whether there is an entry of that key, as a term."""
        return held_now(self.name, self._after, self.store, key)

    def length(self) -> Any:
        self._note_count()
        return Int(self.store[f"{self.name}#count"])

    def _note_count(self) -> None:
        """How many have expired is any number."""
        if self._after and is_walked():
            path().free.append((place(), f"how many entries of {self.name} have expired"))

    def __bool__(self) -> bool:
        self._note_count()
        return path().fork(self.store[f"{self.name}#count"] != 0)

    def __contains__(self, key: object) -> bool:
        term = self.key_of(key)
        return term is not None and path().fork(self.held(term))

    def __getitem__(self, key: Any) -> Any:
        term = self.key_of(key)
        if term is None or not path().fork(self.held(term)):
            raise KeyError("?")
        return self._slots.value_at(term)

    def get(self, key: Any, default: Any = None) -> Any:
        term = self.key_of(key)
        if term is None:
            return default
        held = self.held(term)
        if self._of.value.is_whole and default is not None:
            part = self._of.value.parts[0]
            given = load(part, store(part, default, f"state.{self.name}"))
            value = load(part, z3.Select(self.store[self.name], term))
            found = choose(held, value, given)
            if found is not None:
                return found
        return self._slots.value_at(term) if path().fork(held) else default

    def __setitem__(self, key: Any, value: Any) -> None:
        term = self.key_of(key)
        if term is None:
            raise TypeError(f"a key of state.{self.name} is None")
        count, has = f"{self.name}#count", f"{self.name}#has"
        held = self.held(term)
        if not path().fork(held):
            # What is stored is looked at before there is no room for it.
            if self._slots.parts and self._of.value.words:
                self._slots._terms(value)
            if path().fork(self.store[count] >= self._of.limit):
                raise OverflowError(f"state.{self.name} is full")
            self.store[count] = self.store[count] + 1
            self.store[has] = z3.Store(self.store[has], term, z3.BoolVal(True))
            if self._of.value.words:
                self._slots.put_at(term, value, z3.BoolVal(False))
        elif self._of.value.words:
            self._slots.put_at(term, value)
        if self._after:
            at = f"{self.name}#at"
            self.store[at] = z3.Store(self.store[at], term, self.store.now)

    def __delitem__(self, key: Any) -> None:
        term = self.key_of(key)
        if term is None or not path().fork(self.held(term)):
            raise KeyError("?")
        if self._of.value.record is not None:
            self._slots.leave(term)
        count, has = f"{self.name}#count", f"{self.name}#has"
        for name, part in zip(self._slots.parts, self._of.value.parts, strict=False):
            total = f"{name}#sum"
            if total in self.store:
                gone = wide_term(part, z3.Select(self.store[name], term))
                self.store[total] = self.store[total] - gone
        self.store[count] = self.store[count] - 1
        self.store[has] = z3.Store(self.store[has], term, z3.BoolVal(False))

    def pop(self, key: Any, *default: Any) -> Any:
        if default and key not in self:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        if self.store.live.get(self.name):
            refused(self.name, "clear()", "with records of it in names: delete one by one")
        sort = self.store[f"{self.name}#has"].sort().domain()
        self.store[f"{self.name}#has"] = z3.K(sort, z3.BoolVal(False))
        self.store[f"{self.name}#count"] = bits(0)
        for name in self._slots.parts:
            if f"{name}#sum" in self.store:
                self.store[f"{name}#sum"] = z3.BitVecVal(0, 128)

    def __iter__(self) -> Iterator[Any]:
        refused(self.name, "going through the entries", "ask for one key")

    def __getattr__(self, name: str) -> Any:
        refused(self.name, f"the method {name}()", "ask for one key: get, [], in, pop, del")


class Set:
    """A set of the state."""

    def __init__(self, members: Dict) -> None:
        self.members = members
        self.name = members.name

    def length(self) -> Any:
        return self.members.length()

    def __bool__(self) -> bool:
        return bool(self.members)

    def __contains__(self, one: object) -> bool:
        return one in self.members

    def add(self, one: Any) -> None:
        if self.members._after or one not in self.members:
            self.members[one] = None

    def discard(self, one: Any) -> None:
        if one in self.members:
            del self.members[one]

    def remove(self, one: Any) -> None:
        del self.members[one]

    def clear(self) -> None:
        self.members.clear()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members)

    def __getattr__(self, name: str) -> Any:
        refused(self.name, f"the method {name}()", "ask for one element: in, add, discard, remove")


def held_now(name: str, after: int, state: Store, key: Any) -> Any:
    """Whether a dict has a key at the time of the event."""
    has = z3.Select(state[f"{name}#has"], key)
    if not after:
        return has
    at = z3.Select(state[f"{name}#at"], key)
    end = z3.If(at > INT64_MAX - after, bits(INT64_MAX), at + after)
    return z3.And(has, end > state.now)
