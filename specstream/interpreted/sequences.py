"""Lists, deques and priority queues of the state, as interpreted operators see them.

Each does what a few primitives of a backend do: insert and delete elements, and say where one is.
"""

# The library's functions for operators carry no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import copy
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any

from specstream.compiler.language import standard_library
from specstream.compiler.oracle_objects.entries import full
from specstream.declarations.options import shown
from specstream.declarations.plain_values import plain
from specstream.declarations.state_layout import Field
from specstream.interpreted.coded import Begin, Coded
from specstream.interpreted.records import Records

__all__ = ["StateDeque", "StateList", "StateQueue"]


class StateList(MutableSequence[Any]):
    """A list of the state."""

    __slots__ = ("_checked", "_coded", "_name", "_number", "_of", "_records", "_run")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, field: Field, number: int, run: Any, elements: Any, begin: Begin) -> None:
        assert field.container is not None
        self._of, self._name, self._number, self._run = field.container, field.name, number, run
        what = f"state.{field.name}"
        self._records: Records | None = None
        self._coded: Any = None
        if self._of.value.record is not None:
            self._records = Records(what, self._of.value, elements.of, begin)
            self._checked = self._records.values
        else:
            self._coded = Coded(self._of.value, elements.of)
            self._checked = elements.codec.check(self._of.value, what)

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
            full(self._name, self._of)
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
                    self._coded.store(self._word(place), values[at])
            return
        held = [self._records.read(self._word(at)) for at in range(len(order))]
        for place, at in enumerate(order):
            if place != at:
                self._records.write(self._word(place), held[at])
        back = {at: place for place, at in enumerate(order)}
        self._moved(lambda place: back[place])

    def _index(self, index: Any, problem: str) -> int:
        count = len(self)
        try:
            at = operator.index(plain(index))
        except TypeError:
            raise TypeError(
                f"state.{self._name} is a {self._of.kind} and is indexed with {shown(index)} "
                f"({type(index).__name__}); expected an int: write int(x)"
            ) from None
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
        at = int(plain(index))
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

    def index(self, value: Any, *between: Any) -> int:
        at: int = self._as_python().index(value, *between)
        return at

    def remove(self, value: Any) -> None:
        self._as_python().remove(value)  # which raises as Python does
        del self[self.index(value)]

    def _as_python(self) -> Any:
        return list(self)

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

    def __copy__(self) -> Any:
        return self._as_python()

    def __deepcopy__(self, memo: Any) -> Any:
        return copy.deepcopy(self._as_python(), memo)

    def __add__(self, other: Any) -> Any:
        return self._as_python() + (other._as_python() if isinstance(other, StateList) else other)

    def __radd__(self, other: Any) -> Any:
        return other + self._as_python()

    def __mul__(self, times: int) -> Any:
        return self._as_python() * times

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> StateList:  # type: ignore[misc]
        self[:] = list(self) * times
        return self

    def _other(self, other: object) -> list[Any] | None:
        is_one = isinstance(other, list | StateList) and not isinstance(other, StateDeque)
        return list(other) if is_one else None  # type: ignore[call-overload]

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
        return repr(self._as_python())


class StateDeque(StateList):
    """A deque of the state."""

    __slots__ = ("_changes",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._changes = 0  # what an iterator of Python's deque looks at, too

    def _other(self, other: object) -> list[Any] | None:
        return list(other) if isinstance(other, deque | StateDeque) else None

    def _as_python(self) -> Any:
        return deque(self, self.maxlen)

    def _insert(self, at: int, value: Any, checked: Any) -> None:
        self._changes += 1
        super()._insert(at, value, checked)

    def _delete(self, first: int, step: int, length: int) -> None:
        self._changes += length > 0
        super()._delete(first, step, length)

    @property
    def maxlen(self) -> int | None:
        return self._of.maxlen

    def _drops(self) -> bool:
        return self._of.maxlen is not None and len(self) >= self._of.maxlen

    def append(self, value: Any) -> None:
        checked = self._checked(value)
        if self._drops():
            if not self._of.maxlen:
                self._changes += 1
                return
            self._delete(0, 1, 1)
        self._insert(len(self), value, checked)

    def appendleft(self, value: Any) -> None:
        checked = self._checked(value)
        if self._drops():
            if not self._of.maxlen:
                self._changes += 1
                return
            self._delete(len(self) - 1, 1, 1)
        self._insert(0, value, checked)

    def insert(self, index: Any, value: Any) -> None:
        if self._drops():
            raise IndexError("deque already at its maximum size")
        super().insert(index, value)

    def copy(self) -> deque[Any]:  # type: ignore[override]
        made: deque[Any] = self._as_python()
        return made

    @property
    def sort(self) -> Any:
        raise AttributeError("'collections.deque' object has no attribute 'sort'")

    def __imul__(self, times: Any) -> StateDeque:  # type: ignore[misc]
        made = self._as_python() * times
        self.clear()
        self.extend(made)
        return self

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
            self._changes += 1
            cut = -int(plain(by)) % count
            self._permute([*range(cut, count), *range(cut)])

    def _index(self, index: Any, problem: str) -> int:
        if isinstance(index, slice):
            raise TypeError("sequence index must be integer, not 'slice'")
        return super()._index(index, "deque index out of range")

    def __getitem__(self, index: Any) -> Any:
        return self._held_at(self._index(index, ""))

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self._index(index, "")
        self._store(at, value, self._checked(value))

    def __delitem__(self, index: Any) -> None:
        self._delete(self._index(index, ""), 1, 1)

    def __iter__(self) -> Iterator[Any]:
        return self._walk(range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        return self._walk(range(len(self))[::-1])

    def _walk(self, places: range) -> Iterator[Any]:
        changes = self._changes

        def check() -> None:
            if self._changes != changes:
                raise RuntimeError("deque mutated during iteration")

        for at in places:
            check()
            yield self._held_at(at)
        check()  # Python notices what the last round has done as well


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
