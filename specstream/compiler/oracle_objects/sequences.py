"""Lists, deques and priority queues of the state, as operators see them.

Where their elements lie is a *store*: Python's memory
(:class:`specstream.compiler.oracle_objects.memory_sequence.MemorySequence`), or the logs of a run
(:class:`specstream.interpreted.logged_sequence.LoggedSequence`). What elements are as Python's
objects, a :class:`specstream.compiler.oracle_objects.codec.Codec` knows; what only looks at a list
asks a copy of it, which is one of the codec's.
"""

# The library's functions for operators carry no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import collections
import copy
import operator
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any

from specstream.compiler.language import standard_library
from specstream.compiler.language.numbers import Int64, shown_as
from specstream.compiler.oracle_objects.codec import Codec
from specstream.compiler.oracle_objects.local import equal
from specstream.compiler.oracle_objects.view import ByValue, by_value

__all__ = ["StateDeque", "StateList", "StateQueue", "sequence"]


@shown_as("list")
class StateList(MutableSequence[Any]):
    """A list of the state."""

    __slots__ = ("_check", "_codec", "_items", "store")
    __hash__ = None  # type: ignore[assignment]
    _beyond = "list index out of range"

    def __init__(self, store: Any, codec: Codec) -> None:
        self.store, self._codec, self._items = store, codec, store.reader
        self._check: Callable[[Any], Any]
        if store.slots is not None:
            self._check = store.slots.check
        else:
            self._check = codec.check(store.of.value, f"state.{store.name}")

    def _whole(self) -> Any:
        """A copy, as a list of the codec's."""
        return self._codec.list_of(self._items)

    def _place(self, index: Any, problem: str) -> int:
        at, count = self._codec.index(index, self.store), len(self._items)
        if not -count <= at < count:
            raise IndexError(problem)
        return int(at) % count

    @property
    def zero(self) -> Any:
        """What a sum of machine numbers begins with."""
        return 0.0 if self.store.of.value.parts[0].number == "float" else Int64(0)

    # ---- what is read ----

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            items = self._items
            return self._codec.list_of([items[at] for at in range(*index.indices(len(items)))])
        return self._at(index)

    def _at(self, index: Any) -> Any:
        if not isinstance(index, int):
            index = self._codec.index(index, self.store)
        try:
            return self._items[index]
        except IndexError:
            raise IndexError(self._beyond) from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __contains__(self, value: object) -> bool:
        return any(equal(own, value) for own in self)

    def index(self, value: Any, *between: Any) -> Any:
        return self._whole().index(value, *between)

    def count(self, value: Any) -> Any:
        return self._whole().count(value)

    def copy(self) -> Any:
        return self._whole()

    def __copy__(self) -> Any:
        return self._whole()

    def __deepcopy__(self, memo: Any) -> Any:
        return copy.deepcopy(self._whole(), memo)

    def __repr__(self) -> str:
        return repr(self._whole())

    def _with(self, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
        """What an operation with a copy gives."""
        return operation(self._whole(), other._whole() if isinstance(other, StateList) else other)

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return other + self._whole()

    def __mul__(self, times: Any) -> Any:
        return self._whole() * times

    __rmul__ = __mul__

    def __eq__(self, other: object) -> Any:
        return self._with(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._with(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._with(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._with(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._with(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._with(other, operator.ge)

    # ---- what is written ----

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            at = self._place(index, "list assignment index out of range")
            self.store.put(at, self._check(value))
            return
        values = [self._check(one) for one in list(value)]
        start, stop, step = index.indices(len(self._items))
        places = range(start, max(start, stop) if step == 1 else stop, step)
        if step != 1 and len(values) != len(places):
            raise ValueError(
                f"attempt to assign sequence of size {len(values)} to extended slice of size "
                f"{len(places)}"
            )
        self.store.replace(places, values)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            places = range(*index.indices(len(self._items)))
            self.store.delete(places if places.step > 0 else places[::-1])
        else:
            self._delete(self._place(index, "list assignment index out of range"))

    def _insert(self, at: int, value: Any) -> None:
        self.store.insert(at, value)

    def _delete(self, at: int) -> None:
        self.store.delete(range(at, at + 1))

    def append(self, value: Any) -> None:
        value = self._check(value)
        self.store.insert(len(self._items), value)

    def extend(self, values: Iterable[Any]) -> None:
        for one in list(values):
            self.append(one)

    def __iadd__(self, values: Iterable[Any]) -> Any:  # type: ignore[misc]
        self.extend(values)
        return self

    def __imul__(self, times: Any) -> Any:
        self[:] = self._whole() * times
        return self

    def insert(self, index: Any, value: Any) -> None:
        start, _, _ = slice(operator.index(index), None).indices(len(self._items))
        self._insert(start, self._check(value))

    def pop(self, index: Any = -1) -> Any:
        if index is None:
            operator.index(index)  # type: ignore[arg-type]  # which raises
        if not len(self._items):
            raise IndexError("pop from empty list")
        return self._taken(self._place(index, "pop index out of range"))

    def _taken(self, at: int) -> Any:
        value = self._items[at]
        self._delete(at)
        return value

    def remove(self, value: Any) -> None:
        self._whole().remove(value)  # which raises as Python does
        self._delete(int(self.index(value)))

    def clear(self) -> None:
        self.store.delete(range(len(self._items)))

    def reverse(self) -> None:
        self.store.permute(list(range(len(self._items)))[::-1])

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: Any = False) -> None:
        values = list(self)
        self.store.permute(
            self._codec.order(values if key is None else list(map(key, values)), reverse)
        )


@shown_as("collections.deque")
class StateDeque(StateList):
    """A deque of the state.

    Attributes:
        changes: what an iterator looks at, as one of Python's does.
    """

    __slots__ = ("changes",)
    _beyond = "deque index out of range"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.changes = 0

    @property
    def maxlen(self) -> Any:
        most = self.store.of.maxlen
        return None if most is None else self._codec.integer(most)

    def _whole(self) -> Any:
        return self._codec.deque_of(self, self.maxlen)

    def __repr__(self) -> str:
        return repr(collections.deque(self, self.store.of.maxlen))

    def __iter__(self) -> Iterator[Any]:
        changes = self.changes
        for value in self._items:
            yield value
            self._unchanged_since(changes)

    def __reversed__(self) -> Iterator[Any]:
        changes = self.changes
        for at in range(len(self._items) - 1, -1, -1):
            self._unchanged_since(changes)  # CPython does not look once it is at the end
            yield self._items[at]

    def _unchanged_since(self, changes: int) -> None:
        if self.changes != changes:
            raise RuntimeError("deque mutated during iteration")

    def __getitem__(self, index: Any) -> Any:
        return self._at(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self._place(index, self._beyond)
        self.store.put(at, self._check(value))

    def __delitem__(self, index: Any) -> None:
        self._delete(self._place(index, self._beyond))

    def _insert(self, at: int, value: Any) -> None:
        self.changes += 1
        self.store.insert(at, value)

    def _delete(self, at: int) -> None:
        self.changes += 1
        self.store.delete(range(at, at + 1))

    def _put(self, at: int, value: Any, dropped: int) -> None:
        """Puts an element in at an end; of one that has ``maxlen``, the other end drops out."""
        value, most = self._check(value), self.store.of.maxlen
        self.changes += 1
        if most is not None and len(self._items) >= most:
            if not most:
                return
            self.store.delete(range(dropped, dropped + 1))
            at = min(at, len(self._items))
        self.store.insert(at, value)

    def append(self, value: Any) -> None:
        self._put(len(self._items), value, 0)

    def appendleft(self, value: Any) -> None:
        self._put(0, value, len(self._items) - 1)

    def extendleft(self, values: Iterable[Any]) -> None:
        for one in list(values):
            self.appendleft(one)

    def insert(self, index: Any, value: Any) -> None:
        index, most = operator.index(index), self.store.of.maxlen
        if most is not None and len(self._items) >= most:
            raise IndexError("deque already at its maximum size")
        super().insert(index, value)

    def pop(self) -> Any:  # type: ignore[override]
        return self._end(-1)

    def popleft(self) -> Any:
        return self._end(0)

    def _end(self, at: int) -> Any:
        count = len(self._items)
        if not count:
            raise IndexError("pop from an empty deque")
        return self._taken(at % count)

    def clear(self) -> None:
        self.changes += 1
        super().clear()

    def copy(self) -> Any:
        self._codec.refuse_of_deque("copy", f"state.{self.store.name}")
        return self._whole()

    def __imul__(self, times: Any) -> Any:
        self._codec.refuse_of_deque("*=", f"state.{self.store.name}")
        made = self._whole() * times
        self.clear()
        self.extend(made)
        return self

    @property
    def sort(self) -> Any:
        raise AttributeError("'collections.deque' object has no attribute 'sort'")

    def rotate(self, by: Any = 1) -> None:
        by, count = operator.index(by), len(self._items)
        if count > 1:
            self.changes += 1
            cut = int(-by % count)
            self.store.permute([*range(cut, count), *range(cut)])


class StateQueue:
    """A priority queue of the state, whose items lie as those of ``heapq`` do."""

    __slots__ = ("_heap", "items")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *given: Any) -> None:
        self.items = StateList(*given)
        self._heap = _Compared(self.items)

    @property
    def store(self) -> Any:
        return self.items.store

    @property
    def zero(self) -> Any:
        return self.items.zero

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __contains__(self, value: object) -> bool:
        return value in self.items

    def push(self, value: Any) -> None:
        standard_library.heappush(self._heap, value)

    def pop(self) -> Any:
        self.peek()
        return _plain(standard_library.heappop(self._heap))

    def peek(self) -> Any:
        if not len(self.items):
            raise IndexError("the priority queue is empty")
        return self.items[0]

    def pushpop(self, value: Any) -> Any:
        value = self.items._check(value)
        return _plain(standard_library.heappushpop(self._heap, by_value(value)))

    def replace(self, value: Any) -> Any:
        self.peek()
        return _plain(standard_library.heapreplace(self._heap, value))

    def clear(self) -> None:
        self.items.clear()


class _Compared:
    """The items of a heap, compared by value, as compiled code compares them."""

    __slots__ = ("_items",)

    def __init__(self, items: StateList) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: int) -> Any:
        return by_value(self._items[at])

    def __setitem__(self, at: int, value: Any) -> None:
        self._items[at] = _plain(value)

    def append(self, value: Any) -> None:
        self._items.append(value)

    def pop(self) -> Any:
        return by_value(self._items.pop())


def _plain(value: Any) -> Any:
    return value.plain if isinstance(value, ByValue) else value


def sequence(store: Any, codec: Codec) -> Any:
    """What operators see of a store."""
    kinds = {"list": StateList, "deque": StateDeque, "priority_queue": StateQueue}
    return kinds[store.of.kind](store, codec)
