"""Containers of the state, as interpreted operators see them: with the methods of Python's own.

Each does what a few primitives of a backend do: find, insert and remove an entry, count them, walk
through them in the order of insertion; or insert and delete elements of a sequence. Everything else
follows from these by :mod:`collections.abc`.
"""

# The library's functions for operators carry no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    MutableMapping,
    MutableSequence,
    MutableSet,
)
from typing import Any, NoReturn

from specstream._native import lib
from specstream.compiler import standard_library
from specstream.compiler.oracle_local import Set
from specstream.declarations.containers import Container, Shape
from specstream.declarations.element_types import storage_of
from specstream.declarations.state import Field, Layout
from specstream.interpreted.records import Records
from specstream.interpreted.values import INT64, Texts, stored, whole

__all__ = ["make_container"]

_INT = storage_of(int, "a time")
ElementsOf = Callable[[str, Any], Any]
Begin = list[Callable[[], None]]


class _Coded:
    """Values of a shape and the words that they are."""

    def __init__(self, shape: Shape, what: str, elements_of: ElementsOf) -> None:
        self.shape, self.what = shape, what
        self._convert = [stored(part) for part in shape.parts]
        self._words = [elements_of("state", part) for part in shape.parts]

    def parts(self, value: Any) -> tuple[Any, ...]:
        """The parts of a value, checked."""
        convert, what = self._convert, self.what
        if not self.shape.is_tuple:
            return (convert[0](value, what),)
        if not isinstance(value, tuple) or len(value) != len(convert):
            raise TypeError(f"{what} is declared {self.shape} and gets {value!r}")
        return tuple([one(part, what) for one, part in zip(convert, value, strict=True)])

    def codes(self, parts: tuple[Any, ...]) -> tuple[int, ...]:
        """The words of a key."""
        return tuple(
            [
                words.code(part) if isinstance(words, Texts) else int(part)
                for words, part in zip(self._words, parts, strict=True)
            ]
        )

    def of_codes(self, codes: tuple[int, ...]) -> Any:
        """A key, of its words."""
        parts = [
            words.text(code)
            if isinstance(words, Texts)
            else bool(code)
            if of.number == "bool"
            else code
            for words, of, code in zip(self._words, self.shape.parts, codes, strict=True)
        ]
        return tuple(parts) if self.shape.is_tuple else parts[0]

    def load(self, word: int) -> Any:
        if not self.shape.is_tuple:
            return self._words[0][word]
        return tuple([words[word + at] for at, words in enumerate(self._words)])

    def store(self, word: int, parts: tuple[Any, ...]) -> None:
        for at, (words, part) in enumerate(zip(self._words, parts, strict=True)):
            words[word + at] = part


def _full(name: str, of: Container) -> NoReturn:
    raise OverflowError(
        of.full
        or f"state.{name} is full: it holds limit={of.limit} entries: declare a larger limit=, or "
        "remove some"
    )


# ---- keyed ----


class _Entries:
    """The entries of a keyed container: what a dict, a set and timers do with them."""

    def __init__(self, field: Field, number: int, run: Any, elements_of: ElementsOf, begin: Begin):
        assert field.container is not None
        self.of, self.name, self.number, self.run = field.container, field.name, number, run
        self.key = _Coded(self.of.key, f"a key of state.{field.name}", elements_of)
        self.records: Records | None = None
        self.value: _Coded | None = None
        what = f"state.{field.name}"
        if self.of.value.record is not None:
            self.records = Records(what, self.of.value, elements_of, begin)
        elif self.of.value.words:
            self.value = _Coded(self.of.value, what, elements_of)
        self._first = 1 + self.of.key.words
        self._times = elements_of("state", _INT) if self.of.expires else None

    def codes(self, key: Any) -> tuple[int, ...]:
        return self.key.codes(self.key.parts(key))

    def find(self, key: Any) -> int:
        """The entry of a key; -1: it has none. None is no part of any key."""
        if key is None or (isinstance(key, tuple) and None in key):
            return -1
        found: int = self.run.keyed_find(self.number, self.codes(key))
        return found

    def has(self, entry: int) -> Any:
        """The value of an entry."""
        first = self._first
        if self.records is not None:
            return self.records.at(entry, lambda: entry + first)
        return None if self.value is None else self.value.load(entry + first)

    def put(self, key: Any, value: Any) -> None:
        first, records, parts = self._first, self.records, ()
        codes = self.codes(key)
        if records is not None:
            values = records.values(value)
        elif self.value is not None:
            parts = self.value.parts(value)
        entry = self.run.keyed_find(self.number, codes)
        is_new = entry == -1
        if is_new:
            entry = self.run.keyed_insert(self.number, codes)
            if entry == -2:
                _full(self.name, self.of)
        self._written(entry, is_new)
        if records is not None:
            records.put(entry, lambda: entry + first, value, values)
        elif self.value is not None:
            self.value.store(entry + first, parts)

    def _written(self, entry: int, is_new: bool) -> None:
        times = self._times
        if times is None:
            return
        time, word = self.run.column(0, ord("i"), 8), entry + self.of.entry_words - 1
        # Who keeps what expires counts on times that grow; otherwise it has to be told.
        if not self.run.speculates() and time < times[word]:
            self.run.keyed_rewound(self.number, entry)
        times[word] = time

    def remove(self, entry: int) -> None:
        if self.records is not None:
            self.records.left(entry)
        self.run.keyed_remove(self.number, entry)

    def clear(self) -> None:
        if self.records is not None:
            for entry in list(self.records.objects):
                self.records.left(entry)
        self.run.keyed_clear(self.number)

    def count(self) -> int:
        found: int = self.run.keyed_count(self.number)
        return found

    def key_of(self, entry: int) -> Any:
        return self.key.of_codes(self.run.keyed_key(self.number, entry, self.of.key.words))

    def walk(self, what: str, backwards: bool = False) -> Iterator[int]:
        """The entries in the order of their insertion."""
        run, number = self.run, self.number
        changes = run.keyed_changes(number)
        entries = run.keyed_entries(number)
        for entry in reversed(entries) if backwards else entries:
            if run.keyed_changes(number) != changes:
                raise RuntimeError(f"{what} changed size during iteration")
            yield entry

    def last(self, problem: str) -> int:
        entries = self.run.keyed_entries(self.number)
        if not entries:
            raise KeyError(problem)
        last: int = entries[-1]
        return last


class StateDict(MutableMapping[Any, Any]):
    """A dict of the state."""

    __slots__ = ("_entries",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: _Entries) -> None:
        self._entries = entries

    def __getitem__(self, key: Any) -> Any:
        entry = self._entries.find(key)
        if entry < 0:
            raise KeyError(key)
        return self._entries.has(entry)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._entries.put(key, value)

    def __delitem__(self, key: Any) -> None:
        entry = self._entries.find(key)
        if entry < 0:
            raise KeyError(key)
        self._entries.remove(entry)

    def __contains__(self, key: object) -> bool:
        return self._entries.find(key) >= 0

    def get(self, key: Any, default: Any = None) -> Any:
        entry = self._entries.find(key)
        return default if entry < 0 else self._entries.has(entry)

    def __len__(self) -> int:
        return self._entries.count()

    def __iter__(self) -> Iterator[Any]:
        return map(self._entries.key_of, self._entries.walk("dictionary"))

    def __reversed__(self) -> Iterator[Any]:
        return map(self._entries.key_of, self._entries.walk("dictionary", backwards=True))

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[Any, Any]:
        entry = self._entries.last("popitem(): dictionary is empty")
        pair = self._entries.key_of(entry), self._entries.has(entry)
        self._entries.remove(entry)
        return pair

    def clear(self) -> None:
        self._entries.clear()

    def copy(self) -> dict[Any, Any]:
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        return (
            self.copy() | dict(other)
            if isinstance(other, MutableMapping | dict)
            else NotImplemented
        )

    def __ior__(self, other: Any) -> StateDict:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return repr(self.copy())


class StateSet(MutableSet[Any]):
    """A set of the state."""

    __slots__ = ("_entries",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: _Entries) -> None:
        self._entries = entries

    @classmethod
    def _from_iterable(cls, given: Iterable[Any]) -> Any:
        return Set(given)

    def __contains__(self, one: object) -> bool:
        return self._entries.find(one) >= 0

    def __iter__(self) -> Iterator[Any]:
        return map(self._entries.key_of, self._entries.walk("Set"))

    def __len__(self) -> int:
        return self._entries.count()

    def add(self, one: Any) -> None:
        if self._entries.of.expires or one not in self:
            self._entries.put(one, None)

    def discard(self, one: Any) -> None:
        entry = self._entries.find(one)
        if entry >= 0:
            self._entries.remove(entry)

    def pop(self) -> Any:
        entry = self._entries.last("pop from an empty set")
        one = self._entries.key_of(entry)
        self._entries.remove(entry)
        return one

    def clear(self) -> None:
        self._entries.clear()

    def copy(self) -> Any:
        return Set(self)

    def update(self, *given: Iterable[Any]) -> None:
        for other in given:
            for one in list(other):
                self.add(one)

    def union(self, *given: Iterable[Any]) -> Any:
        return Set(self).union(*given)

    def intersection(self, *given: Iterable[Any]) -> Any:
        return Set(self).intersection(*given)

    def difference(self, *given: Iterable[Any]) -> Any:
        return Set(self).difference(*given)

    def symmetric_difference(self, given: Iterable[Any]) -> Any:
        return Set(self).symmetric_difference(given)

    def intersection_update(self, *given: Iterable[Any]) -> None:
        for other in [Set(one) for one in given]:
            for one in [one for one in self if one not in other]:
                self.discard(one)

    def difference_update(self, *given: Iterable[Any]) -> None:
        for other in [list(one) for one in given]:
            for one in other:
                self.discard(one)

    def symmetric_difference_update(self, given: Iterable[Any]) -> None:
        for one in Set(given):
            if one in self:
                self.discard(one)
            else:
                self.add(one)

    def issubset(self, given: Iterable[Any]) -> bool:
        return Set(self).issubset(given)

    def issuperset(self, given: Iterable[Any]) -> bool:
        return all(one in self for one in given)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}"


class StateTimers:
    """The timers of the state."""

    __slots__ = ("_entries",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: _Entries) -> None:
        self._entries = entries

    def set(self, key: Any, at: Any) -> None:
        of = self._entries
        at = whole(at, f"the time of a timer of state.{of.name}", "int", *INT64)
        answer = of.run.timer_set(of.number, of.codes(key), at)
        if answer == lib.SS_TIMER_TOO_EARLY:
            raise ValueError(
                f"state.{of.name}.set: the timer that fires sets one for {at}, which is not after "
                "its own time; expected a later one"
            )
        if answer == lib.SS_TIMERS_FULL:
            _full(of.name, of.of)

    def cancel(self, key: Any) -> None:
        entry = self._entries.find(key)
        if entry >= 0:
            self._entries.remove(entry)

    def get(self, key: Any) -> int | None:
        entry = self._entries.find(key)
        return None if entry < 0 else self._entries.has(entry)

    def clear(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return self._entries.count()

    def __contains__(self, key: object) -> bool:
        return self._entries.find(key) >= 0

    def __iter__(self) -> Iterator[Any]:
        return map(self._entries.key_of, self._entries.walk("dictionary"))


# ---- sequences ----


class StateList(MutableSequence[Any]):
    """A list of the state."""

    __slots__ = ("_begin", "_coded", "_name", "_number", "_of", "_records", "_run")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, field: Field, number: int, run: Any, elements_of: ElementsOf, begin: Begin
    ) -> None:
        assert field.container is not None
        self._of, self._name, self._number, self._run = field.container, field.name, number, run
        what = f"state.{field.name}"
        self._records: Records | None = None
        self._coded: Any = None
        if self._of.value.record is not None:
            self._records = Records(what, self._of.value, elements_of, begin)
        else:
            self._coded = _Coded(self._of.value, what, elements_of)

    # ---- elements by their places ----

    def _word(self, at: int) -> int:
        found: int = self._run.sequence_element(self._number, at)
        return found

    def _held_at(self, at: int) -> Any:
        if self._records is None:
            return self._coded.load(self._word(at))
        return self._records.objects.get(at) or self._bound(at)

    def _place(self, at: int) -> Callable[[], int]:
        """Of the object that is at a place now, wherever that place is later."""
        place = [at]

        def word() -> int:
            return self._word(place[0])

        word.place = place  # type: ignore[attr-defined]
        return word

    def _bound(self, at: int) -> Any:
        assert self._records is not None
        return self._records.at(at, self._place(at))

    def _checked(self, value: Any) -> Any:
        return self._coded.parts(value) if self._records is None else self._records.values(value)

    def _store(self, at: int, value: Any, checked: Any) -> None:
        if self._records is None:
            self._coded.store(self._word(at), checked)
        else:
            self._records.put(at, self._place(at), value, checked)

    def _moved(self, to: Callable[[int], int]) -> None:
        """The objects of places that have moved; -1: it is not there any more."""
        if self._records is None or not self._records.objects:
            return
        objects = dict(self._records.objects)
        self._records.objects.clear()
        for at, one in objects.items():
            place = to(at)  # type: ignore[arg-type]
            one.__dict__["_specstream_word"].place[0] = place
            self._records.objects[place] = one

    def _insert(self, at: int, value: Any, checked: Any) -> None:
        if self._run.sequence_insert(self._number, at) == -2:
            _full(self._name, self._of)
        self._moved(lambda place: place + (place >= at))
        self._store(at, value, checked)

    def _delete(self, first: int, step: int, length: int) -> None:
        if length == 0:
            return
        gone = range(first, first + step * length, step)
        if self._records is not None:
            for at in gone:
                self._records.left(at)
        self._run.sequence_delete(self._number, first, step, length)
        self._moved(lambda place: place - sum(at < place for at in gone))

    def _permute(self, order: list[int]) -> None:
        """Puts the element ``order[i]`` to place i."""
        if self._records is None:
            values = [self._held_at(at) for at in range(len(order))]
            for place, at in enumerate(order):
                if place != at:
                    self._coded.store(self._word(place), self._coded.parts(values[at]))
            return
        held = [self._records.read(self._word(at)) for at in range(len(order))]
        for place, at in enumerate(order):
            if place != at:
                self._records.write(self._word(place), held[at])
        back = {at: place for place, at in enumerate(order)}
        self._moved(lambda place: back[place])

    def _index(self, index: Any, problem: str) -> int:
        count = len(self)
        at: int = index.__index__() if not isinstance(index, int) else index
        if not -count <= at < count:
            raise IndexError(problem)
        return at % count

    # ---- what operators see ----

    def __len__(self) -> int:
        found: int = self._run.sequence_count(self._number)
        return found

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._held_at(at) for at in range(*index.indices(len(self)))]
        return self._held_at(self._index(index, "list index out of range"))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._set_slice(index, list(value))
            return
        at = self._index(index, "list assignment index out of range")
        self._store(at, value, self._checked(value))

    def _set_slice(self, index: slice, values: list[Any]) -> None:
        places = range(*index.indices(len(self)))
        checked = [self._checked(one) for one in values]
        if index.step not in (None, 1) and len(values) != len(places):
            raise ValueError(
                f"attempt to assign sequence of size {len(values)} to extended slice of size "
                f"{len(places)}"
            )
        if self._records is not None:
            # Records that come again are copies of what they are now.
            values = [one if type(one) is self._records.record else None for one in values]
        for at, value, one in zip(places, values, checked, strict=False):
            self._store(at, value, one)
        if len(places) > len(values):
            self._delete(places[len(values)], 1, len(places) - len(values))
        first = places.start + len(places)
        for at in range(len(places), len(values)):
            self._insert(first + at - len(places), values[at], checked[at])

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            places = range(*index.indices(len(self)))
            places = places if places.step > 0 else places[::-1]
            self._delete(places.start, places.step, len(places))
            return
        self._delete(self._index(index, "list assignment index out of range"), 1, 1)

    def insert(self, index: Any, value: Any) -> None:
        count = len(self)
        at = int(index)
        at = max(at + count, 0) if at < 0 else min(at, count)
        self._insert(at, value, self._checked(value))

    def append(self, value: Any) -> None:
        checked = self._checked(value)
        self._insert(len(self), value, checked)

    def extend(self, values: Iterable[Any]) -> None:
        for one in list(values):
            self.append(one)

    def __iadd__(self, values: Iterable[Any]) -> StateList:  # type: ignore[misc]
        self.extend(values)
        return self

    def pop(self, index: Any = -1) -> Any:
        if not len(self):
            raise IndexError("pop from empty list")
        at = self._index(index, "pop index out of range")
        value = self._held_at(at)
        self._delete(at, 1, 1)
        return value

    def clear(self) -> None:
        self._delete(0, 1, len(self))

    def reverse(self) -> None:
        self._permute(list(range(len(self)))[::-1])

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: Any = False) -> None:
        values = list(self)
        keys = values if key is None else list(map(key, values))
        self._permute(sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(reverse)))

    def copy(self) -> list[Any]:
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while at < len(self):
            yield self._held_at(at)
            at += 1

    def __add__(self, other: Any) -> list[Any]:
        return list(self) + list(other)

    def __radd__(self, other: Any) -> list[Any]:
        return list(other) + list(self)

    def __mul__(self, times: int) -> list[Any]:
        return list(self) * times

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> StateList:  # type: ignore[misc]
        self[:] = list(self) * times
        return self

    def _other(self, other: object) -> list[Any] | None:
        return list(other) if isinstance(other, list | StateList) else None

    def __eq__(self, other: object) -> Any:
        given = self._other(other)
        return NotImplemented if given is None else list(self) == given

    def __lt__(self, other: Any) -> Any:
        given = self._other(other)
        return NotImplemented if given is None else list(self) < given

    def __le__(self, other: Any) -> Any:
        given = self._other(other)
        return NotImplemented if given is None else list(self) <= given

    def __gt__(self, other: Any) -> Any:
        given = self._other(other)
        return NotImplemented if given is None else list(self) > given

    def __ge__(self, other: Any) -> Any:
        given = self._other(other)
        return NotImplemented if given is None else list(self) >= given

    def __repr__(self) -> str:
        return repr(list(self))


class StateDeque(StateList):
    """A deque of the state."""

    __slots__ = ()

    @property
    def maxlen(self) -> int | None:
        return self._of.maxlen

    def _drops(self) -> bool:
        return self._of.maxlen is not None and len(self) >= self._of.maxlen

    def append(self, value: Any) -> None:
        checked = self._checked(value)
        if self._drops():
            self._delete(0, 1, 1)
        self._insert(len(self), value, checked)

    def appendleft(self, value: Any) -> None:
        checked = self._checked(value)
        if self._drops():
            self._delete(len(self) - 1, 1, 1)
        self._insert(0, value, checked)

    def insert(self, index: Any, value: Any) -> None:
        if self._drops():
            raise IndexError("deque already at its maximum size")
        super().insert(index, value)

    def extendleft(self, values: Iterable[Any]) -> None:
        for one in list(values):
            self.appendleft(one)

    def pop(self) -> Any:  # type: ignore[override]
        if not len(self):
            raise IndexError("pop from an empty deque")
        return super().pop()

    def popleft(self) -> Any:
        if not len(self):
            raise IndexError("pop from an empty deque")
        return super().pop(0)

    def rotate(self, by: Any = 1) -> None:
        count = len(self)
        if count > 1:
            cut = -int(by) % count
            self._permute([*range(cut, count), *range(cut)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise TypeError("sequence index must be integer, not 'slice'")
        return self._held_at(self._index(index, "deque index out of range"))

    def __iter__(self) -> Iterator[Any]:
        count = len(self)
        for at in range(count):
            if len(self) != count:
                raise RuntimeError("deque mutated during iteration")
            yield self._held_at(at)


class StateQueue:
    """A priority queue of the state, whose items lie as those of ``heapq`` do."""

    __slots__ = ("_items",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, items: StateList) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __contains__(self, value: object) -> bool:
        return value in self._items

    def push(self, value: Any) -> None:
        standard_library.heappush(self._items, value)

    def pop(self) -> Any:
        self.peek()
        return standard_library.heappop(self._items)

    def peek(self) -> Any:
        if not len(self._items):
            raise IndexError("the priority queue is empty")
        return self._items[0]

    def pushpop(self, value: Any) -> Any:
        return standard_library.heappushpop(self._items, value)

    def replace(self, value: Any) -> Any:
        self.peek()
        return standard_library.heapreplace(self._items, value)

    def clear(self) -> None:
        self._items.clear()


def make_container(
    field: Field, layout: Layout, run: Any, elements_of: ElementsOf, begin: Begin
) -> Any:
    """A container over a backend."""
    assert field.container is not None
    kind, number = field.container.kind, layout.container_number(field)
    if kind in ("dict", "set", "timers"):
        entries = _Entries(field, number, run, elements_of, begin)
        made: Any = {"dict": StateDict, "set": StateSet, "timers": StateTimers}[kind]
        return made(entries)
    if kind == "deque":
        return StateDeque(field, number, run, elements_of, begin)
    items = StateList(field, number, run, elements_of, begin)
    return StateQueue(items) if kind == "priority_queue" else items
