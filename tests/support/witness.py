"""The third witness: the *unrewritten* function of an operator, under plain Python.

Engine and oracle come from one rewritten tree, so an error of the rewriting is made by both. Here
the function's own bytecode runs: on NumPy arrays of Python's objects as array fields, on ints,
floats, bools and strings as everything else. Nothing of the compiler is imported.

Where operators may differ from Python is a short list: of numbers in
docs/explanations/arithmetic.md, of all else in docs/guides/operators.md ("Where it is not Python").
Most of it is about integers that leave their 64 bits. So integers are :class:`Int` here, Python's
own but that an operation whose exact result is none of 64 bits raises :class:`Outside`; constants
are replaced by such. An event that gets there is left out of the stream, as if it had never come:
what remains is the stream on which Python and the oracle have to agree in every bit.

It is one file because a witness should be read in one go: what it trusts is all here.
"""

from __future__ import annotations

import builtins
import collections
import collections.abc
import copy
import datetime
import dis
import functools
import hashlib
import heapq
import itertools
import math
import operator as comparing
import struct
import sys
import types
import zoneinfo
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from conftest import run_oracle

import specstream as ss
from specstream import structures
from specstream.declarations.records import is_record, record_fields
from support.contents import contents

LOW, HIGH, TOP = -(2**63), 2**63 - 1, 2**64 - 1
NAN = float("nan")


class Outside(BaseException):
    """The event gets to where operators are not Python. An operator may catch this by a bare
    ``except``, and goes on in vain: ``met`` counts."""

    met = 0

    def __init__(self, why: str) -> None:
        Outside.met += 1
        super().__init__(why)


class Int(int):
    """A Python int that does not leave the signed 64 bits."""

    def __new__(cls, value: Any = 0) -> Int:
        made = super().__new__(cls, value)
        if not LOW <= made <= HIGH:
            raise Outside(f"{int(made)} is no int64")
        return made


class Unsigned(Int):
    """An int modulo 2**64, as NumPy's uint64 is."""

    def __new__(cls, value: Any = 0) -> Unsigned:
        return int.__new__(cls, int(value) & TOP)


def checked(name: str, is_reflected: bool) -> Callable[[Int, Any], Any]:
    exact = getattr(int, f"__r{name}__" if is_reflected else f"__{name}__")

    def method(self: Int, other: Any) -> Any:
        if isinstance(other, int):
            right = self if is_reflected else other
            if name == "pow" and right < 0:
                raise Outside("an int to a negative power")
            if name in ("pow", "lshift", "rshift") and right > 63:
                raise Outside("a power or shift beyond 64 bits")
        result = exact(self, other)
        if result is NotImplemented:
            return result
        return (Unsigned if Unsigned in (type(self), type(other)) else Int)(result)

    return method


def checked_unary(name: str) -> Callable[[Int], Int]:
    exact = getattr(int, f"__{name}__")
    return lambda self: type(self)(exact(self))


_BITS = ("and", "or", "xor", "lshift", "rshift")
for _name in (*_BITS, "add", "sub", "mul", "floordiv", "mod", "pow"):
    setattr(Int, f"__{_name}__", checked(_name, False))
    setattr(Int, f"__r{_name}__", checked(_name, True))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Int, f"__{_name}__", checked_unary(_name))


class Text(str):
    """A string; its bits are those of its code, which Python's strings do not have.

    A field of ints holds the code, and is compared with strings later.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return self.code() == other if isinstance(other, Int) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def code(self) -> Int:
        digest = hashlib.blake2b(self.encode(), digest_size=8).digest()
        return Int(int.from_bytes(digest, "little", signed=True) or 1)


class NullText(Text):
    """What is read of a null: no string, and its code is 0."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NullText)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return 0

    def code(self) -> Int:
        return Int(0)


def bits(name: str) -> Callable[[Text, Any], Any]:
    def method(self: Text, other: Any) -> Any:
        return getattr(self.code(), name)(other.code() if isinstance(other, Text) else other)

    return method


for _name in _BITS:
    setattr(Text, f"__{_name}__", bits(f"__{_name}__"))
    setattr(Text, f"__r{_name}__", bits(f"__r{_name}__"))


# ---- the state ----


def converter(storage: Any) -> Callable[[Any], Any]:
    """What a field of this type holds of a value, as a NumPy array of the type would."""
    if storage.number == "bool":
        return bool
    if storage.number == "str":
        return text
    if storage.name == "float32":

        def rounded(value: Any) -> float:
            with np.errstate(over="ignore"):
                return float(np.float32(float(value)))

        return rounded
    if storage.number == "float":
        return float
    low, high = storage.bounds

    def integer(value: Any) -> Int:
        if isinstance(value, str):  # a formatted one is no Text
            value = value if isinstance(value, Text) else Text(value)
        number = value.code() if isinstance(value, Text) else Int(value)
        if not low <= number <= high:
            raise OverflowError(f"{number} is not from {low} to {high}")
        return number

    return Unsigned if storage.number == "uint" else integer


def text(value: Any) -> Text:
    """What a field of strings holds: a null is an empty one."""
    assert value is None or isinstance(value, str), f"{value!r} is no string"
    return Text(value or "")


class Array(np.ndarray[Any, Any]):
    """NumPy's array, of Python's objects; each converted to the field's type when it is stored."""

    convert: Callable[[Any], Any] | None

    def __array_finalize__(self, base: Any) -> None:
        # A part of a field has its type; what a field gives anew holds numbers, narrow or not.
        is_part = is_array(base) and np.may_share_memory(self, base)
        self.convert = getattr(base, "convert", None) if is_part else None

    def converted(self, value: Any) -> Any:
        """A number as this array holds it."""
        if self.convert is not None:
            return self.convert(value)
        if not self.size or self.dtype != object:
            return value
        return float(value) if isinstance(self.flat[0], float) else number_of(value)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return found.item() if isinstance(found, np.generic) else found

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__getitem__(index)  # which is looked at before the value is
        each = np.frompyfunc(self.converted, 1, 1)
        if isinstance(value, list | tuple):
            items, value = value, np.empty(len(value), object)
            value[:] = list(items)
        is_many = isinstance(value, np.ndarray) and value.size > 0
        try:
            converted = (
                each(value) if is_many else value if is_array(value) else self.converted(value)
            )
        except OverflowError:
            # What comes before the one that does not fit is stored, and may be seen by a handler.
            if is_many:
                target = self[index]
                for place, one in np.ndenumerate(np.broadcast_to(value, target.shape).copy()):
                    target[place] = one
            raise
        super().__setitem__(index, converted)

    # Methods go from left to right, over Python's numbers; a NaN wins, as among NumPy's floats.

    def elements(self) -> list[Any]:
        return [one.item() if isinstance(one, np.generic) else one for one in self.flat]

    def sum(self) -> Any:  # type: ignore[override]
        first, *rest = self.elements() or [Int(0)]
        total = Int(first) if isinstance(first, bool) else first
        for one in rest:
            total = total + one
        return total + 0.0 if isinstance(total, float) else total

    def mean(self) -> float:  # type: ignore[override]
        return float(self.sum() / self.size) if self.size else NAN

    def var(self) -> float:  # type: ignore[override]
        mean = self.mean()
        squares = [(float(one) - mean) * (float(one) - mean) for one in self.elements()]
        total = 0.0
        for square in squares:
            total += square
        return total / self.size if self.size else NAN

    def std(self) -> float:  # type: ignore[override]
        return math.sqrt(self.var())

    def best(self, name: str, wins: Callable[[Any, Any], bool]) -> tuple[Int, Any]:
        values = self.elements()
        if not values:
            getattr(np.empty(0), name)()  # says it
        best = 0
        for at, value in enumerate(values):
            if values[best] == values[best] and (value != value or wins(value, values[best])):
                best = at
        return Int(best), values[best]

    def min(self) -> Any:  # type: ignore[override]
        return self.best("min", lambda one, other: bool(one <= other))[1]

    def max(self) -> Any:  # type: ignore[override]
        return self.best("max", lambda one, other: bool(one >= other))[1]

    def argmin(self) -> Any:  # type: ignore[override]
        return self.best("argmin", lambda one, other: bool(one < other))[0]

    def argmax(self) -> Any:  # type: ignore[override]
        return self.best("argmax", lambda one, other: bool(one > other))[0]

    def any(self) -> bool:  # type: ignore[override]
        return any(self.elements())

    def all(self) -> bool:  # type: ignore[override]
        return all(self.elements())

    def fill(self, value: Any) -> None:
        self[...] = value


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


# ---- its containers: Python's own, which hold what was declared, and so many of it ----


def converter_of(shape: Any) -> Callable[[Any], Any]:
    """What a container holds of a value. Each NaN is an object of its own: none is found by being
    the same."""
    if shape.record is not None:
        return lambda value: record_of(shape.record, value)
    parts = [converter(one) for one in shape.parts]

    def one_of(convert: Callable[[Any], Any], value: Any) -> Any:
        found = convert(value)
        return float("nan") if isinstance(found, float) and found != found else found

    if not shape.is_tuple:
        return lambda value: one_of(parts[0], value)
    return lambda value: tuple(one_of(*pair) for pair in zip(parts, value, strict=True))


# ---- records: objects of their class, whose fields hold what was declared ----


@functools.cache
def witnessed(cls: Any) -> Any:
    """A record's class whose objects convert what their fields are given, as a state's do."""
    converters = {one.name: converter(one.storage) for one in record_fields(cls)}

    def set_field(self: Any, name: str, value: Any) -> None:
        object.__setattr__(self, name, converters[name](value))

    return type(cls.__name__, (cls,), {"__setattr__": set_field})


def record_of(cls: Any, value: Any) -> Any:
    """What holds records of a class holds objects of it."""
    if not isinstance(value, cls):
        raise TypeError(f"{value!r} is no {cls.__name__}")
    return value


def own(value: Any) -> Any:
    """Records are changed where they are: what is to be gone back to are others."""
    return copy.copy(value) if isinstance(value, ss.Record) else value


class Held:
    """What a container was declared with."""

    def __init__(self, declared: Any) -> None:
        self.limit: int = declared.limit
        self.most: int | None = declared.maxlen
        self.expires: int = declared.expires
        self.key = converter_of(declared.key) if declared.key.parts else None
        self.convert = converter_of(declared.value) if declared.value.parts else lambda value: value

    def room_for(self, count: int) -> None:
        if count > self.limit:
            raise OverflowError(f"full: limit={self.limit}")


def asked(key: Any) -> Any:
    """A key that is looked for: a null is an empty string, as it is where keys are kept."""
    if isinstance(key, tuple):
        return tuple(map(asked, key))
    return Text("") if key is None or isinstance(key, NullText) else key


class Expiring:
    """A dict or a set that notes when an entry was written.

    Attributes:
        written: the time of the last write, by key.
        now: that of the event or firing that runs.
    """

    held: Any
    written: dict[Any, Int]
    now = Int(0)

    def expire(self: Any, reached: int) -> None:
        """Forgets, for good, what was not written for long."""
        if self.held is not None and self.held.expires:
            for key in [key for key in self if key in self.written]:
                if int(self.written[key]) + self.held.expires <= reached:
                    (self.pop if isinstance(self, Dict) else self.discard)(key)


class Dict(dict[Any, Any], Expiring):
    def __init__(self, declared: Any) -> None:
        super().__init__()
        self.held = Held(declared)
        self.written = {}

    def __contains__(self, key: object) -> bool:
        return super().__contains__(asked(key))

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(asked(key))

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(asked(key))

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else self.given(default)

    def pop(self, key: Any, *default: Any) -> Any:
        return super().pop(asked(key), *map(self.given, default))

    def given(self, default: Any) -> Any:
        """A default, of which the type is that of the values."""
        return self.held.convert(default) if isinstance(default, int | float | tuple) else default

    def __setitem__(self, key: Any, value: Any) -> None:
        key = self.held.key(key)
        self.held.room_for(len(self) + (key not in self))
        super().__setitem__(key, self.held.convert(value))
        self.written[key] = self.now

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, given: Any = (), **named: Any) -> None:  # type: ignore[override]
        for key, value in list(dict(given).items()):
            self[key] = value
        for name, value in named.items():
            self[Text(name)] = value

    def __ior__(self, given: Any) -> Dict:  # type: ignore[misc]
        self.update(given)
        return self

    def refill(self, items: list[Any]) -> None:
        self.clear()
        dict.update(self, items)


class Set(collections.abc.MutableSet[Any], Expiring):
    """A set in the order of insertion, as is promised; Python's has an order of its own."""

    def __init__(self, given: Any = (), declared: Any = None) -> None:
        self.members: dict[Any, None] = dict.fromkeys(given)
        self.held = None if declared is None else Held(declared)
        self.written = {}

    def __contains__(self, one: object) -> bool:
        return asked(one) in self.members

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def add(self, one: Any) -> None:
        if self.held is not None:
            one = self.held.key(one)
            self.held.room_for(len(self) + (one not in self))
        self.members[one] = None
        self.written[one] = self.now

    def discard(self, one: Any) -> None:
        self.members.pop(asked(one), None)

    def pop(self) -> Any:
        if not self.members:
            set().pop()  # says it
        return self.members.popitem()[0]

    def clear(self) -> None:
        self.members.clear()

    def copy(self) -> Set:
        return Set(self)

    def update(self, *given: Any) -> None:
        for one in itertools.chain(*map(list, given)):
            self.add(one)

    def union(self, *given: Any) -> Any:
        return Set(itertools.chain(self, *given))

    def intersection(self, *given: Any) -> Any:
        others = list(map(Set, given))
        return Set(one for one in self if all(one in other for other in others))

    def __and__(self, given: Any) -> Any:
        return self.intersection(given)

    def difference(self, *given: Any) -> Any:
        return self - Set(itertools.chain(*given))

    def symmetric_difference(self, given: Any) -> Any:
        return self ^ Set(given)

    def intersection_update(self, *given: Any) -> None:
        for other in map(Set, given):
            self &= other

    def difference_update(self, *given: Any) -> None:
        self -= Set(itertools.chain(*given))

    def symmetric_difference_update(self, given: Any) -> None:
        self ^= Set(given)

    def issubset(self, given: Any) -> bool:
        return self <= Set(given)

    def issuperset(self, given: Any) -> bool:
        return self >= Set(given)

    def refill(self, items: list[Any]) -> None:
        self.members = dict.fromkeys(items)


class List(list[Any]):
    def __init__(self, declared: Any) -> None:
        super().__init__()
        self.held = Held(declared)

    def append(self, one: Any) -> None:
        self.held.room_for(len(self) + 1)
        super().append(self.held.convert(one))

    def insert(self, at: Any, one: Any) -> None:
        self.held.room_for(len(self) + 1)
        super().insert(at, self.held.convert(one))

    def extend(self, given: Any) -> None:
        for one in list(given):
            self.append(one)

    def __iadd__(self, given: Any) -> List:  # type: ignore[misc]
        self.extend(given)
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            super().__setitem__(index, self.held.convert(value))
            return
        after = list(self)
        after[index] = map(self.held.convert, value)
        self.held.room_for(len(after))
        super().__setitem__(slice(None), after)

    def refill(self, items: list[Any]) -> None:
        super().__setitem__(slice(None), items)


class Deque(collections.deque[Any]):
    def __init__(self, declared: Any) -> None:
        super().__init__(maxlen=declared.maxlen)
        self.held = Held(declared)

    def room(self) -> None:
        if self.maxlen is None or len(self) < self.maxlen:
            self.held.room_for(len(self) + 1)

    def append(self, one: Any) -> None:
        self.room()
        super().append(self.held.convert(one))

    def appendleft(self, one: Any) -> None:
        self.room()
        super().appendleft(self.held.convert(one))

    def insert(self, at: Any, one: Any) -> None:
        self.room()
        super().insert(at, self.held.convert(one))

    def extend(self, given: Any) -> None:
        for one in list(given):
            self.append(one)

    def copy(self) -> Any:
        return collections.deque(self, self.maxlen)

    def extendleft(self, given: Any) -> None:
        for one in list(given):
            self.appendleft(one)

    def __iadd__(self, given: Any) -> Deque:  # type: ignore[misc]
        self.extend(given)
        return self

    def __setitem__(self, index: Any, one: Any) -> None:
        if index is None:
            made: Any = collections.deque()
            made[index] = one  # which raises, with a text of its own
        super().__setitem__(index, self.held.convert(one))

    def refill(self, items: list[Any]) -> None:
        self.clear()
        super().extend(items)


# What Python's own errors and texts call them.
for _class, _name in (
    *((Int, "int"), (Unsigned, "int"), (Text, "str"), (Array, "numpy.ndarray"), (List, "list")),
    *((Dict, "dict"), (Set, "set"), (Deque, "collections.deque")),
):
    _class.__name__ = _name


class Heap:
    """A priority queue: the items lie as those of ``heapq`` do."""

    def __init__(self, declared: Any) -> None:
        self.items: list[Any] = []
        self.held = Held(declared)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def push(self, one: Any) -> None:
        self.held.room_for(len(self) + 1)
        heapq.heappush(self.items, self.held.convert(one))

    def pop(self) -> Any:
        return heapq.heappop(self.items)

    def peek(self) -> Any:
        return self.items[0]

    def pushpop(self, one: Any) -> Any:
        return heapq.heappushpop(self.items, self.held.convert(one))

    def replace(self, one: Any) -> Any:
        return heapq.heapreplace(self.items, self.held.convert(one))

    def clear(self) -> None:
        self.items.clear()

    def refill(self, items: list[Any]) -> None:
        self.items[:] = items


class Timers:
    """The timers: times by key, in the order in which they were set.

    Attributes:
        at: of each key its time, an object of its own for each call of ``set``.
        floor: the time of the one that fires; None: none does.
        clock: the latest of the times of events and firings.
        fired: how many have.
    """

    def __init__(self, declared: Any = None) -> None:
        self.at: dict[Any, Time] = {}
        self.held = None if declared is None else Held(declared)
        self.floor: int | None = None
        self.clock = LOW
        self.fired = 0

    def set(self, key: Any, at: Any) -> None:
        at = Time(Int(at))
        if self.floor is not None and at.at <= self.floor:
            raise ValueError("no later time")
        assert self.held is not None
        key = self.held.key(key)  # type: ignore[misc]
        self.held.room_for(len(self.at) + (key not in self.at))
        self.at.pop(key, None)
        self.at[key] = at

    def cancel(self, key: Any) -> None:
        self.at.pop(asked(key), None)

    def get(self, key: Any) -> Int | None:
        found = self.at.get(asked(key))
        return None if found is None else found.at

    def clear(self) -> None:
        self.at.clear()

    def __contains__(self, key: object) -> bool:
        return asked(key) in self.at

    def __len__(self) -> int:
        return len(self.at)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.at)

    def items(self) -> list[tuple[Any, Int]]:
        return [(key, time.at) for key, time in self.at.items()]

    def first(self, until: int) -> Any:
        """The key of the one that is due by then and comes first; None: there is none."""
        due = [key for key, time in self.at.items() if time.at <= until]
        return min(due, key=lambda key: self.at[key].at, default=None)  # the first of equal ones


class Time:
    """When a timer fires: it is itself and no other, were it set for the same time."""

    def __init__(self, at: Int) -> None:
        self.at = at


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "dict": Dict,
    "set": lambda declared: Set((), declared),
    "list": List,
    "deque": Deque,
    "priority_queue": Heap,
    "timers": Timers,
}
# What is beside the values of a state, under names that no field has.
TIMERS, WRITTEN = "the timers", "when entries were written"


class State:
    """Fields as attributes: numbers, :class:`Array`, and containers."""

    converters: dict[str, Callable[[Any], Any]]
    scratch: dict[str, Any]

    def __init__(self, layout: Any) -> None:
        converters: dict[str, Callable[[Any], Any]] = {}
        self.__dict__["converters"] = converters
        made: Any
        for one in layout.fields:
            if one.container is not None:
                self.__dict__[one.name] = CONTAINERS[one.container.kind](one.container)
                continue
            if one.record is not None:
                held = self.records(one)
                self.__dict__[one.name] = held
                if not is_array(held):
                    converters[one.name] = functools.partial(record_of, one.record.record)
                continue
            convert = converter(one.storage)
            if one.shape == ():
                converters[one.name] = convert
                self.__dict__[one.name] = convert(one.fill)
                continue
            made = np.full(one.shape, None, object).view(Array)
            made.convert = convert
            made[...] = one.fill
            self.__dict__[one.name] = made
        self.__dict__["scratch"] = {
            one.name: one.fill for one in layout.fields if one.space == "scratch"
        }

    @staticmethod
    def records(of: Any) -> Any:
        """A field of records: one object, or an array of as many."""
        cls = witnessed(of.record.record)
        if len(of.shape) == 1:
            return cls(*of.fill)
        made = np.empty(of.shape[:-1], object).view(Array)
        made.convert = functools.partial(record_of, of.record.record)
        for at in np.ndindex(made.shape):
            made[at] = cls(*of.fill)
        return made

    def is_twice(self) -> bool:
        """Whether one object is in two places, where the state has two records."""
        seen: set[int] = set()
        for value in self.__dict__.values():
            several = value.values() if isinstance(value, Dict) else value
            held = value.flat if is_array(value) else [value]
            if isinstance(several, collections.abc.Iterable) and not isinstance(several, str):
                held = list(held if is_array(value) else several)
            for one in held:
                if isinstance(one, ss.Record):
                    if id(one) in seen:
                        return True
                    seen.add(id(one))
        return False

    def __setattr__(self, name: str, value: Any) -> None:
        if value is not self.__dict__[name] or name in self.converters:  # state.x |= other
            value = self.converters[name](value)
        self.__dict__[name] = value

    def values(self) -> dict[str, Any]:
        """A copy of all fields, to compare and to go back to."""
        kept = {}
        for name, value in self.__dict__.items():
            if name not in ("converters", "scratch"):
                kept[name] = value.copy() if is_array(value) else own(value)
                if is_array(value) and isinstance(value.flat[0], ss.Record):
                    kept[name].flat[:] = list(map(own, value.flat))
                if isinstance(value, Dict):
                    kept[name] = [(key, own(one)) for key, one in value.items()]
                elif hasattr(value, "refill"):
                    kept[name] = list(map(own, value))
                elif isinstance(value, Timers):
                    kept[name] = value.items()
                    kept[TIMERS] = value, dict(value.at), value.clock, value.fired
        kept[WRITTEN] = [(one, dict(one.written)) for one in expiring_in(self)]
        return kept

    def restore(self, values: dict[str, Any]) -> None:
        for one, written in values[WRITTEN]:
            one.written = dict(written)
        for name, value in values.items():
            if name == TIMERS:
                timers, at, timers.clock, timers.fired = value
                timers.at = dict(at)
            elif name == WRITTEN or isinstance(self.__dict__[name], Timers):
                continue
            elif is_array(value):
                np.copyto(self.__dict__[name], value)
            elif hasattr(self.__dict__[name], "refill"):
                self.__dict__[name].refill(value)
            else:
                self.__dict__[name] = value

    def begin(self) -> None:
        for name, fill in self.scratch.items():
            self.__dict__[name][...] = fill


def expiring_in(state: State) -> list[Any]:
    """The dicts and sets whose entries expire."""
    held = vars(state).values()
    return [one for one in held if isinstance(one, Expiring) and one.held.expires]


def timers_of(state: State) -> Timers:
    """Those of the state; none are ever set where it has no such field."""
    return next((one for one in vars(state).values() if isinstance(one, Timers)), Timers())


# ---- events and rows ----


def philox(seed: int, counter: list[int], stream: int = 0) -> list[int]:
    """Philox4x64-10 (Salmon and others 2011)."""
    key = [seed, stream]
    for _ in range(10):
        one, other = 0xD2E7470EE14C6C93 * counter[0], 0xCA5A826395121157 * counter[2]
        counter = [
            (other >> 64) ^ counter[1] ^ key[0],
            other & TOP,
            (one >> 64) ^ counter[3] ^ key[1],
            one & TOP,
        ]
        key = [(key[0] + 0x9E3779B97F4A7C15) & TOP, (key[1] + 0xBB67AE8584CAA73B) & TOP]
    return counter


_SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def value_of(value: Any, column: Any) -> Any:
    """What an operator is told to see of a value of a table."""
    if value is None:
        return {"int": Int(0), "float": 0.0, "bool": False, "str": NullText()}[column.kind]
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, bool | float):
        return float(value) if column.kind == "float" else value
    if isinstance(value, datetime.date):
        return Moment.of(value, column.arrow)
    if isinstance(value, Decimal):
        return Amount.of(value, column.arrow)
    return float(value) if column.kind == "float" else Int(raw(value, column.arrow))


class Counting(Int):
    """The number of a date, time or decimal: shown, compared and asked it is Python's own.

    What is computed of it is an int.
    """

    own: Any
    number_formats = "bcdoxX"

    def __str__(self) -> str:
        return str(self.own)

    def __repr__(self) -> str:
        return repr(self.own)

    def __format__(self, spec: str) -> str:
        is_of_number = "%" not in spec and spec[-1:] in [*self.number_formats]
        return format(int(self) if is_of_number else self.own, spec)

    def __getattr__(self, name: str) -> Any:
        if name == "own":
            raise AttributeError(name)  # while it is made
        return getattr(self.own, name)

    def compared(self, how: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, datetime.date | datetime.timedelta | Decimal):
            return how(self.own, other)
        return how(int(self), int(other) if isinstance(other, Counting) else other)

    def __eq__(self, other: Any) -> Any:
        return self.compared(comparing.eq, other)

    def __ne__(self, other: Any) -> Any:
        return self.compared(comparing.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self.compared(comparing.lt, other)

    def __le__(self, other: Any) -> Any:
        return self.compared(comparing.le, other)

    def __gt__(self, other: Any) -> Any:
        return self.compared(comparing.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self.compared(comparing.ge, other)

    __hash__ = int.__hash__


class Amount(Counting):
    """The number of a decimal."""

    @classmethod
    def of(cls, value: Decimal, arrow: pa.DataType) -> Amount:
        made = cls(raw(value, arrow))
        made.own = value.quantize(Decimal(1).scaleb(-arrow.scale))
        return made


class Moment(Counting):
    """The number of a timestamp or a date, which knows what it counts."""

    when: datetime.datetime
    number_formats = "bcdoxXeEfFgGn"

    @classmethod
    def of(cls, value: datetime.date, arrow: pa.DataType) -> Moment:
        made = cls(raw(value, arrow))
        zone = zoneinfo.ZoneInfo(getattr(arrow, "tz", None) or "UTC")
        is_day = pa.types.is_date(arrow)
        if not isinstance(value, datetime.datetime):
            value = datetime.datetime(value.year, value.month, value.day)
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.UTC)
        made.when = value.astimezone(zone)
        has_zone = getattr(arrow, "tz", None) is not None
        made.own = made.when.date() if is_day else made.when
        if not is_day and not has_zone:
            made.own = made.when.replace(tzinfo=None)
        return made


def when(value: Any) -> datetime.datetime:
    """``ss.when``, by the standard library."""
    if not isinstance(value, Moment):
        raise Outside("what a number counts")
    return value.when


def raw(value: Any, arrow: pa.DataType) -> int:
    """The whole number that stands for a timestamp, a date or a decimal."""
    if isinstance(value, Decimal):
        return int(value.scaleb(arrow.scale))
    if isinstance(value, datetime.datetime):
        epoch = datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo and datetime.UTC)
        micros = (value - epoch) // datetime.timedelta(microseconds=1)
        return micros * _SECONDS[arrow.unit] // 10**6
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    return int(value)


class Event:
    key: Any  # of a timer
    at: Any

    def __init__(
        self, row: dict[str, Any], schema: Any, sequence: int, seed: int, are_none: bool = False
    ) -> None:
        self.nulls = {name for name, _ in schema if row[name] is None}
        self.seed = seed
        for name, column in schema:
            is_none = are_none and row[name] is None
            setattr(self, name, None if is_none else value_of(row[name], column))
        self.timestamp = self.sequence = Int(sequence)
        self.source = Int(0)

    def is_null(self, name: str) -> bool:
        return name in self.nulls

    def random_bits(self, draw: int) -> Unsigned:
        return Unsigned(self.words(draw, 0)[0])

    def words(self, draw: int, stream: int) -> list[int]:
        key = (self.timestamp, self.source, self.sequence, draw)
        return philox(self.seed, [int(part) & TOP for part in key], stream)

    def random(self, draw: int) -> float:
        return (int(self.random_bits(draw)) >> 11) * 2.0**-53

    def normal(self, draw: int) -> float:
        first, second, *_ = self.words(draw, 2)
        upper, turn = ((first >> 11) + 1) * 2.0**-53, (second >> 11) * 2.0**-53
        return math.sqrt(-2.0 * math.log(upper)) * math.cos(2.0 * math.pi * turn)

    def integer(self, low: int, high: int, draw: int) -> Int:
        count = int(high) - int(low)
        if count <= 0:
            raise ValueError("an empty range")
        for block in range(1000):
            for word in self.words(draw, 1 + (block << 32)):
                above, below = divmod(word * count, 2**64)
                if below >= 2**64 % count:
                    return Int(int(low) + above)
        raise AssertionError("a word in two is taken")

    def choice(self, count: int, draw: int) -> Int:
        return self.integer(0, count, draw)


def emitting(schema: Any, rows: list[tuple[Any, ...]]) -> Callable[..., None]:
    def emit(*values: Any, **named: Any) -> None:
        given = dict(zip(schema.names, values, strict=False)) | named
        row = []
        for name, column in schema:
            value = given.get(name)
            if value is not None and not isinstance(value, NullText):
                value = Int(value) if column.kind == "int" else value
                value = float(value) if column.kind == "float" else value
                if column.bounds and not column.bounds[0] <= value <= column.bounds[1]:
                    raise OverflowError(f"{value} is not from {column.bounds}")
                value = value.code() if isinstance(value, Text) else value
                if column.kind == "str" and isinstance(value, str):
                    value = Text(value).code()
            else:
                value = None
            row.append(value)
        rows.append(tuple(row))

    return emit


# ---- the function ----


def add(container: Any, key: Any, value: Any) -> None:
    change(container, key, lambda own: own + (float(value) if type(own) is float else value))


def minimum(container: Any, key: Any, value: Any) -> None:
    change(container, key, lambda own: min(own, float(value) if type(own) is float else value))


def maximum(container: Any, key: Any, value: Any) -> None:
    change(container, key, lambda own: max(own, float(value) if type(own) is float else value))


def increment(container: Any, key: Any) -> Any:
    change(container, key, lambda own: own + 1)
    return getattr(container, key) if isinstance(key, str) else container[key]


def change(container: Any, key: Any, function: Callable[[Any], Any]) -> None:
    if isinstance(key, str):
        setattr(container, key, function(getattr(container, key)))
    else:
        container[key] = function(container[key])


def left_to_right(values: Any, start: Any = 0) -> Any:
    """``sum`` as it was before Python 3.12 compensated."""
    total = start
    for value in values:
        total = total + value
    return total


def integers(*bounds: int) -> Iterator[Int]:
    return map(Int, range(*bounds))


def copysign(x: float, y: float) -> float:
    if y != y:
        raise Outside("the sign of a NaN")
    return math.copysign(x, y)


def whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes an int of a float."""

    def made(*values: Any) -> Any:
        return Unsigned(values[0]) if type(values[0]) is Unsigned else Int(function(*values))

    return made


def rounded(number: Any, ndigits: Any = None) -> Any:
    return whole(round)(number) if ndigits is None else number_of(round(number, int(ndigits)))


def number_of(value: Any) -> Any:
    """A number as operators have it."""
    if isinstance(value, tuple):
        return tuple(map(number_of, value))
    if isinstance(value, np.generic):
        value = value.item()
    return Int(value) if type(value) is int else value


def power(base: Any, exp: Any, mod: Any = None) -> Any:
    return base**exp if mod is None else Int(pow(*map(as_plain, (base, exp, mod))))


def with_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: number_of(function(*(as_plain(one) for one in values)))


def as_plain(value: Any) -> Any:
    return int(value) if isinstance(value, Int) else value


def of_numpy(name: str) -> Callable[..., Any]:
    """A function of NumPy's, of single numbers and of arrays of objects."""
    function = getattr(np, name)

    def of_numbers(*values: Any) -> Any:
        if any(is_array(one) for one in values):
            return np.frompyfunc(of_numbers, len(values), 1)(*values).view(Array)
        with np.errstate(all="ignore"):
            return number_of(function(*map(as_plain, values)))

    return of_numbers


def of_elements(name: str) -> Callable[[Any], Any]:
    """A function of NumPy's over all elements of an array, or of a list."""

    def of_all(values: Any) -> Any:
        if not is_array(values):
            array = np.empty(len(values), object)
            array[:] = values
            values = array.view(Array)
        return getattr(values, name)()

    return of_all


def dot(first: Any, second: Any) -> Any:
    if len(first) != len(second):
        raise ValueError("different lengths")
    return (first * second).sum()


class OfIntegers(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, int)


class Integer(metaclass=OfIntegers):
    """``int``. A digest, written in another base than ten, may have as many bits as it likes."""

    def __new__(cls, *values: Any, **named: Any) -> Any:
        made = int(*values, **named)
        is_digest = len(values) + len(named) > 1 and not LOW <= made <= HIGH
        return made if is_digest else Int(made)

    from_bytes = int.from_bytes


BUILTINS = vars(builtins) | {
    "int": Integer,
    "round": rounded,
    "pow": power,
    "divmod": with_numbers(divmod),
    "sum": left_to_right,
    "range": integers,
    "enumerate": lambda values, start=0: zip(itertools.count(Int(start)), values, strict=False),
    "reversed": lambda values: reversed([*values] if isinstance(values, map) else values),
}
MATH = types.SimpleNamespace(
    **vars(math)
    | {name: whole(getattr(math, name)) for name in ("floor", "ceil", "trunc")}
    | {name: with_numbers(getattr(math, name)) for name in ("gcd", "lcm", "comb", "perm")}
    | {name: with_numbers(getattr(math, name)) for name in ("factorial", "isqrt", "frexp")}
    | {"copysign": copysign}
)
NUMPY = types.SimpleNamespace(
    int64=lambda x: Int(int(x) - (2**64 if type(x) is Unsigned and x > HIGH else 0)),
    uint64=lambda x: Unsigned(int(x)),
    float64=float,
    bool_=bool,
    dot=dot,
    amin=of_elements("min"),
    amax=of_elements("max"),
    **{
        name: of_elements(name)
        for name in ("sum", "mean", "std", "var", "min", "max", "argmin", "argmax", "any", "all")
    },
    **{
        name: of_numpy(name)
        for name in (
            *("sqrt", "abs", "absolute", "fabs", "floor", "ceil", "trunc", "rint", "sign"),
            *("square", "minimum", "maximum", "clip", "isnan", "isinf", "isfinite"),
            *("float32", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
        )
    },
    **{name: getattr(np, name) for name in ("pi", "e", "inf", "nan", "euler_gamma")},
)


def putting(function: Callable[..., Any], grows: int) -> Callable[[Any, Any], Any]:
    """A function of ``heapq``, which is written in C and puts items into any list as they are."""

    def put(heap: Any, one: Any) -> Any:
        if isinstance(heap, List):
            heap.held.room_for(len(heap) + grows)
            one = heap.held.convert(one)
        return function(heap, one)

    return put


HEAPQ = types.SimpleNamespace(
    **vars(heapq)
    | {
        "heappush": putting(heapq.heappush, 1),
        "heappushpop": putting(heapq.heappushpop, 0),
        "heapreplace": putting(heapq.heapreplace, 0),
    }
)
MEANING: dict[Any, Any] = {
    structures.add: add,
    structures.minimum: minimum,
    structures.maximum: maximum,
    structures.increment: increment,
}


def meaning(value: Any, known: dict[Any, Any]) -> Any:
    """What a name or a constant of a function stands for here."""
    if value is math or value is np:
        return MATH if value is math else NUMPY
    if value is ss:
        return types.SimpleNamespace(when=when)
    if value is heapq:
        return HEAPQ
    if is_of_a_library(value):
        is_of_heaps = isinstance(value, types.BuiltinFunctionType) and value.__module__ == "_heapq"
        return getattr(HEAPQ, value.__name__) if is_of_heaps else value
    if type(value) is int and LOW <= value <= TOP:
        return Int(value) if value <= HIGH else Unsigned(value)
    if type(value) in (tuple, list, set, frozenset):
        return type(value)(meaning(one, known) for one in value)
    if type(value) is dict:
        return {meaning(key, known): meaning(one, known) for key, one in value.items()}
    if is_array(value):
        made = np.empty(value.shape, object)
        for at, one in np.ndenumerate(value):
            made[at] = meaning(one.item(), known)
        return made.view(Array)
    if isinstance(value, np.generic):
        return Unsigned(value) if isinstance(value, np.uint64) else meaning(value.item(), known)
    if isinstance(value, types.FunctionType):
        return plain(value, known)
    if isinstance(value, functools.partial):
        named = {name: meaning(one, known) for name, one in value.keywords.items()}
        return functools.partial(meaning(value.func, known), *meaning(value.args, known), **named)
    if is_record(value):
        return witnessed(value)
    if isinstance(value, types.ModuleType) and value is not structures:
        return Module(value, known)
    if isinstance(value, types.CodeType):
        return value.replace(co_consts=tuple(meaning(one, known) for one in value.co_consts))
    return value


def is_of_a_library(value: Any) -> bool:
    """Whether a module or a function is the standard library's."""
    is_module = isinstance(value, types.ModuleType)
    name = value.__name__ if is_module else getattr(value, "__module__", None)
    is_callable = is_module or isinstance(value, types.FunctionType | types.BuiltinFunctionType)
    return is_callable and str(name).split(".")[0] in sys.stdlib_module_names - {"__main__"}


class Module:
    """A module of a user's, with the meaning of what it has."""

    def __init__(self, module: types.ModuleType, known: dict[Any, Any]) -> None:
        self._module = module
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return meaning(getattr(self._module, name), self._known)


def names_of(code: types.CodeType) -> set[str]:
    """The names that a function reads, itself or in what is nested in it."""
    nested = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*map(names_of, nested))


def plain(function: Any, known: dict[Any, Any]) -> Any:
    """The function's own bytecode, over other names and constants."""
    if function in known:
        return known[function]
    code = function.__code__
    names: dict[str, Any] = {"__builtins__": BUILTINS}
    constants = tuple(meaning(one, known) for one in code.co_consts)
    cells = tuple(
        types.CellType(meaning(cell.cell_contents, known)) for cell in function.__closure__ or ()
    )
    # Known before its names are looked up: an attribute may be called as the function is.
    made = known[function] = types.FunctionType(
        code.replace(co_consts=constants), names, function.__name__, None, cells
    )
    for name in names_of(code):
        if name in function.__globals__:
            names[name] = meaning(function.__globals__[name], known)
    made.__defaults__ = meaning(function.__defaults__, known)
    named = function.__kwdefaults__ or {}
    made.__kwdefaults__ = {name: meaning(value, known) for name, value in named.items()}
    return made


# ---- a run ----


@dataclass
class Testimony:
    """What the witness saw.

    Attributes:
        kept: rows of the table whose events are Python's.
        has_ended: all timers that waited at the end have fired.
        keys: (time, sequence) of the event or firing of each row.
        rows: what they emitted; strings by their codes.
        state: the fields after the last of them.
        raised: which of them raised, and what.
        said: the texts of those that a raise or assert statement of the function raised.
    """

    state: dict[str, Any]
    has_ended: bool = False
    kept: list[int] = field(default_factory=list)
    keys: list[tuple[int, int]] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    raised: list[tuple[int, str]] = field(default_factory=list)
    said: dict[int, str] = field(default_factory=dict)


def is_own(error: BaseException) -> bool:
    """Whether a statement raised it, and not an operation of Python's or of an object here."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    code = trace.tb_frame.f_code
    is_raised = code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    # What is raised while another is handled may tell its text, which can be NumPy's.
    return code.co_filename != __file__ and is_raised and error.__context__ is None


def run(
    operator: ss.Operator,
    table: pa.Table,
    seed: int = 0,
    replaced: dict[Any, Any] | None = None,
    are_none: bool = False,
) -> Testimony:
    """Runs the unrewritten function over a table, without the events that get :class:`Outside`.

    ``replaced`` gives functions that it calls another meaning: hashes, which wrap on purpose.
    ``are_none`` is for functions that ask whether a null is None before they use it.
    """
    function = plain(operator.function, MEANING | (replaced or {}))
    process = function if operator.layout.fields else lambda _, *given: function(*given)
    state = State(operator.layout)
    seen = Testimony({})
    emit = emitting(operator.emits, seen.rows)
    for at, row in enumerate(table.to_pylist()):
        before, mark, met = state.values(), len(seen.rows), Outside.met
        state.begin()
        event = Event(row, operator.event, len(seen.kept), seed, are_none)
        try:
            process(state, event, emit)
            if state.is_twice():
                raise Outside("a record in two places")
        except (Exception, Outside) as error:
            raised: list[tuple[int, str]] = [(len(seen.kept), type(error).__name__)]
            said = str(error) if is_own(error) else None
        else:
            raised, said = [], None
        if raised or Outside.met > met:
            state.restore(before)
            del seen.rows[mark:]
        if Outside.met == met:
            if said is not None:
                seen.said[len(seen.kept)] = said
            seen.raised += raised
            seen.kept.append(at)
    seen.state = state.values()
    return seen


def word(value: Any) -> Any:
    """A value by its bits; there is one NaN."""
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, float):
        return value if value is None else int(value)
    return struct.pack("d", NAN if value != value else value)


class Timed:
    """A run by the events' time, with the timers between the events.

    An event that gets :class:`Outside` is left out, together with what fired before it, which then
    fires before the next one. A timer that gets there cannot be: all behind it is.
    """

    def __init__(self, operator: ss.Operator, seed: int, are_none: bool) -> None:
        known = dict(MEANING)
        self.operator, self.seed, self.are_none = operator, seed, are_none
        self.process = plain(operator.function, known)
        self.on_timer = None if operator.on_timer is None else plain(operator.on_timer, known)
        self.state = State(operator.layout)
        self.timers = timers_of(self.state)
        self.seen = Testimony({})
        self.emit = emitting(operator.emits, self.seen.rows)

    def run(self, table: pa.Table, order_by: str, source: str) -> Testimony:
        seen = self.seen
        for at, row in enumerate(table.to_pylist()):
            before, rows, raised = self.state.values(), len(seen.rows), len(seen.raised)
            sequence = len(seen.kept)
            event = Event(row, self.operator.event, sequence, self.seed, self.are_none)
            event.timestamp, event.source = Int(row[order_by]), Int(row[source])
            within = self.fire(int(event.timestamp))
            if within and self.one(self.process, event, sequence):
                seen.kept.append(at)
                continue
            self.state.restore(before)
            del seen.rows[rows:], seen.keys[rows:], seen.raised[raised:]
            if not within:
                break
        else:
            before, rows, raised = self.state.values(), len(seen.rows), len(seen.raised)
            waiting = list(self.timers.at.values())
            seen.has_ended = self.fire(HIGH, waiting)
            if not seen.has_ended:
                self.state.restore(before)
                del seen.rows[rows:], seen.keys[rows:], seen.raised[raised:]
        seen.state = self.state.values()
        return seen

    def fire(self, time: int, waiting: list[Time] | None = None) -> bool:
        """Those that are due by then, or that have waited; False: one gets Outside."""
        timers = self.timers
        while True:
            if waiting is None:
                key = timers.first(max(time, timers.clock))
            else:
                left = [one for one in timers.at if any(timers.at[one] is w for w in waiting)]
                key = min(left, key=lambda one: timers.at[one].at, default=None)
            if key is None:
                return True
            timer = Event({}, (), timers.fired, self.seed)
            timer.key, timer.at = key, timers.at.pop(key).at
            timers.clock = max(timers.clock, int(timer.at))
            timer.timestamp, timer.source = Int(timers.clock), Int(LOW)
            timers.fired += 1
            timers.floor = int(timer.at)
            is_python = self.one(self.on_timer, timer, -1)
            timers.floor = None
            if not is_python:
                return False

    def one(self, function: Any, of: Any, row: int) -> bool:
        """One event or firing; False: it gets Outside."""
        state, seen, reached = self.state, self.seen, max(int(of.timestamp), self.timers.clock)
        for container in expiring_in(state):
            container.expire(reached)
            container.now = of.timestamp
        before, mark, met = state.values(), len(seen.rows), Outside.met
        state.begin()
        try:
            function(state, of, self.emit)
            if state.is_twice():
                raise Outside("a record in two places")
        except (Exception, Outside) as error:
            state.restore(before)
            del seen.rows[mark:]
            seen.raised.append((row, type(error).__name__))
        else:
            self.timers.clock = reached
        seen.keys += [(int(of.timestamp), int(of.sequence))] * (len(seen.rows) - mark)
        return Outside.met == met


def assert_agrees(
    operator: ss.Operator,
    table: pa.Table,
    seed: int = 0,
    replaced: dict[Any, Any] | None = None,
    are_none: bool = False,
) -> int:
    """The oracle gives what the witness saw; how many of the events could be compared."""
    seen = run(operator, table, seed, replaced, are_none)
    expected = run_oracle(operator, table.take(pa.array(seen.kept, pa.int64())), seed=seed)
    assert_same(operator, seen, expected)
    return len(seen.kept)


def assert_agrees_in_time(
    operator: ss.Operator,
    table: pa.Table,
    seed: int,
    are_none: bool,
    order_by: str,
    source: str,
) -> Testimony:
    """The same of an operator that goes by time: it has timers or entries that expire, or reads
    ``event.timestamp``. The table is in the order of its events."""
    seen = Timed(operator, seed, are_none).run(table, order_by, source)
    options: dict[str, Any] = {"order_by": order_by, "source": source, "end": seen.has_ended}
    some = table.take(pa.array(seen.kept, pa.int64()))
    expected = run_oracle(operator, some, seed=seed, keys=True, **options)
    assert_same(operator, seen, expected)
    keys = zip(
        *(expected.output[name].to_pylist() for name in ("timestamp", "sequence")), strict=True
    )
    assert list(keys) == seen.keys
    return seen


def assert_same(operator: ss.Operator, seen: Testimony, expected: Any) -> None:
    assert [(row, kind) for row, kind, _ in expected.raised] == seen.raised
    said = {row: text for row, _, text in expected.raised if row in seen.said}
    assert said == seen.said, [(said[k], v) for k, v in seen.said.items() if said[k] != v][:3]
    columns = [
        [None if one is None else told(one, column) for one in expected.output[name].to_pylist()]
        for name, column in operator.emits
    ]
    texts = {one for part in columns for one in part if isinstance(one, Text)}
    known = {text.code() for text in texts}
    emitted = [
        tuple(
            None if column.kind == "str" and value not in known else word(value)
            for value, (_, column) in zip(row, operator.emits, strict=True)
        )
        for row in seen.rows
    ]
    found = [
        tuple(word(one.code() if isinstance(one, Text) else one) for one in row)
        for row in zip(*columns, strict=True)
    ]
    assert found == emitted if columns else expected.output.num_rows == len(emitted)
    for name, values in expected.state.items():
        if isinstance(values, list):  # what a container holds
            assert values == contents(seen.state[name]), f"field {name}"
            continue
        theirs = np.asarray(seen.state[name], object).reshape(-1).tolist()
        ours = np.asarray(values, object).reshape(-1).tolist()
        assert list(map(word, ours)) == list(map(word, theirs)), f"field {name}"


def told(value: Any, column: Any) -> Any:
    if isinstance(value, str):
        return Text(value)
    return value if isinstance(value, bool | float) else raw(value, column.arrow)
