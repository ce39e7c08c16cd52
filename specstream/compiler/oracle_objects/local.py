"""Lists, dicts and sets of an operator in the oracle: Python's own, but for what compiled code
cannot have.

There are no objects in compiled code, so a NaN is never found by being the same one: ``==``,
``in``, ``index`` and the like compare by value, as do tuples. A NaN in a sort or as a key raises.
Positions and counts are integers of 64 bits. A set has the order in which its elements came, as a
dict has; and who goes through either is told when keys have come *and* gone, too.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MappingView,
    MutableSet,
    ValuesView,
)
from typing import Any, ClassVar

from specstream.compiler.language import numbers
from specstream.compiler.language.numbers import Int64, shown_as
from specstream.compiler.oracle_objects.view import ByValue, View, by_value
from specstream.declarations.ordered_set import MutableInOrder

__all__ = [
    *("BUILTINS", "Deque", "Dict", "List", "Set", "as_set", "equal", "is_mapping"),
    *("iterate", "sorted_places"),
]

_ABSENT = object()


def equal(left: Any, right: Any) -> bool:
    """``left == right`` by value, also of what lies in tuples."""
    return bool(by_value(left) == right)


def has_nan(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(has_nan, value))
    return isinstance(value, float) and value != value


def _checked_key(key: Any) -> Any:
    if has_nan(key):
        raise ValueError(
            "a NaN cannot be a key of a dict or set, because it is not equal to anything; test "
            "math.isnan(x) first"
        )
    return key


def as_python_does(function: Callable[[Any], Any], value: Any) -> Exception:
    """What Python raises of an operator's own empty list or deque, and so the oracle."""
    try:
        function(value)
    except ValueError as error:
        return error
    raise AssertionError("it raises")


@shown_as("list")
class List(list[Any]):
    """A list."""

    __slots__ = ()
    __hash__ = None
    _empty: ClassVar[Any] = []
    """One of Python's, which raises its own errors."""

    @property
    def zero(self) -> Any:
        """What a sum begins with."""
        first = self[0] if self else Int64(0)
        return (
            0.0 if isinstance(first, float) else type(first)(0) if first is not True else Int64(0)
        )

    def __getitem__(self, index: Any) -> Any:
        found = list.__getitem__(self, index)
        return List(found) if isinstance(index, slice) else found

    def __contains__(self, value: object) -> bool:
        return any(equal(own, value) for own in self)

    def __add__(self, other: Any) -> Any:
        return List(list.__add__(self, other)) if isinstance(other, list) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return List(list.__mul__(self, times) if isinstance(times, int) else [] * times)

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> Any:
        self[:] = self * times
        return self

    def copy(self) -> List:
        return List(self)

    def extend(self, values: Iterable[Any]) -> None:
        """Only when all has been gone through does anything change."""
        list.extend(self, list(values))

    def index(self, value: Any, start: Any = 0, stop: Any = numbers.INT64_MAX) -> Int64:
        if start is None or stop is None:
            self._empty.index(value, start, stop)  # which raises
        for at in range(*slice(start, stop).indices(len(self))):
            if equal(self[at], value):
                return Int64(at)
        raise as_python_does(self._empty.index, value)

    def count(self, value: Any) -> Int64:
        return Int64(sum(equal(own, value) for own in self))

    def remove(self, value: Any) -> None:
        for at, own in enumerate(self):
            if equal(own, value):
                del self[at]
                return
        raise as_python_does(self._empty.remove, value)

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: Any = False) -> None:
        order = sorted_places(list(self) if key is None else list(map(key, self)), reverse)
        self[:] = [self[at] for at in order]

    def _compared(self, other: object, compare: Callable[[Any, Any], Any]) -> Any:
        if not isinstance(other, list):
            return NotImplemented
        return compare(ByValue(self), ByValue(other))

    def __eq__(self, other: object) -> Any:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, operator.ne)

    def __lt__(self, other: object) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: object) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: object) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: object) -> Any:
        return self._compared(other, operator.ge)


def sorted_places(keys: list[Any], reverse: Any) -> list[int]:
    """The places of keys in their order."""
    if any(map(has_nan, keys)):
        raise ValueError(
            "cannot sort NaN, which has no order: leave it out first, [x for x in xs if not "
            "math.isnan(x)]"
        )
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(reverse))


class Deque(List):
    """What a deque of the state has, to be asked; it raises the errors of one."""

    __slots__ = ()
    _empty: ClassVar[Any] = deque()


@shown_as("dict")
class Dict:
    """A dict."""

    __slots__ = ("changes", "entries")
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def __init__(self, given: Any = ()) -> None:
        self.changes = 0
        self.entries: dict[Any, Any] = {}
        self.update(given)

    def __len__(self) -> int:
        return len(self.entries)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = getattr(key, "plain", key)  # of a null, the zero that it reads
        self.changes += _checked_key(key) not in self.entries
        self.entries[key] = value

    def __getitem__(self, key: Any) -> Any:
        return self.entries[_checked_key(key)]

    def __delitem__(self, key: Any) -> None:
        del self.entries[_checked_key(key)]
        self.changes += 1

    def __contains__(self, key: object) -> bool:
        return _checked_key(key) in self.entries

    def walk(self, items: Iterator[Any], what: str = "dictionary") -> Iterator[Any]:
        """Goes through items; raises where keys have come or gone."""
        return iterate(self, items, what)

    def __iter__(self) -> Iterator[Any]:
        return self.walk(iter(self.entries))

    def __reversed__(self) -> Iterator[Any]:
        return self.walk(reversed(self.entries))

    def __eq__(self, other: object) -> Any:
        if not is_mapping(other):
            return NotImplemented
        others = dict(other.items())  # type: ignore[attr-defined]
        return len(self) == len(others) and all(
            key in others and equal(value, others[key]) for key, value in self.entries.items()
        )

    def __or__(self, other: Any) -> Any:
        if not is_mapping(other):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def keys(self) -> _Keys:
        return _Keys(self)

    def values(self) -> _Values:
        return _Values(self)

    def items(self) -> _Items:
        return _Items(self)

    def get(self, key: Any, default: Any = None) -> Any:
        return self.entries.get(_checked_key(key), default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: Any, default: Any = _ABSENT) -> Any:
        if default is not _ABSENT and key not in self:
            return default
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[Any, Any]:
        pair = self.entries.popitem()
        self.changes += 1
        return pair

    def update(self, given: Any = ()) -> None:
        """Only when all has been gone through does anything change."""
        pairs = list(given.items() if isinstance(given, Dict | Mapping) else given)
        for key, _ in pairs:
            _checked_key(key)
        for key, value in pairs:
            self[key] = value

    def clear(self) -> None:
        self.changes += len(self) > 0
        self.entries.clear()

    def copy(self) -> Dict:
        return Dict(self)


def is_mapping(value: Any) -> bool:
    """Whether a value is a dict of whatever kind."""
    return isinstance(value, Dict | Mapping)


class _DictView(MappingView):
    """What keys(), values() and items() give."""

    __slots__ = ()
    _mapping: Any
    _part: ClassVar[str]

    def _items(self) -> Any:
        return getattr(self._mapping.entries, self._part)()

    def __iter__(self) -> Iterator[Any]:
        found: Iterator[Any] = self._mapping.walk(iter(self._items()))
        return found

    def __reversed__(self) -> Iterator[Any]:
        found: Iterator[Any] = self._mapping.walk(reversed(self._items()))
        return found

    def __contains__(self, one: object) -> bool:
        return any(equal(own, one) for own in self)

    def __repr__(self) -> str:
        return f"dict_{self._part}({list(self)!r})"


class _Keys(_DictView, KeysView[Any]):
    __slots__ = ()
    _part = "keys"
    __contains__ = KeysView.__contains__


class _Values(_DictView, ValuesView[Any]):
    __slots__ = ()
    _part = "values"


class _Items(_DictView, ItemsView[Any, Any]):
    __slots__ = ()
    _part = "items"

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        key, value = item
        return key in self._mapping and equal(self._mapping[key], value)


def iterate(of: Any, items: Iterator[Any], what: str) -> Iterator[Any]:
    """Goes through a dict or set, from now on; raises where keys came or went.

    Python sees that the size has changed; here it is enough that keys have come or gone."""
    changes = of.changes

    def walk() -> Iterator[Any]:
        while True:
            if of.changes != changes:
                raise RuntimeError(f"{what} changed size during iteration")
            try:
                item = next(items)
            except StopIteration:
                return
            yield item

    return walk()


def as_set(given: Iterable[Any]) -> Set:
    """What a method of a set is given, as a set."""
    return given if isinstance(given, Set) else Set(given)


@shown_as("set")
class Set(MutableInOrder, MutableSet[Any]):
    """A set, in the order in which its elements came."""

    __slots__ = ("members",)
    __hash__ = None  # type: ignore[assignment]
    members_of: ClassVar[type[Dict]] = Dict

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if len(self) else "set()"

    def __init__(self, given: Iterable[Any] = ()) -> None:
        self.members = self.members_of()
        for one in given:
            self.add(one)

    def _made(self, elements: Iterable[Any]) -> Any:
        return Set(elements)

    def _taken(self, others: Iterable[Iterable[Any]]) -> Iterable[Iterable[Any]]:
        return map(as_set, others)

    def __len__(self) -> int:
        return len(self.members)

    def __contains__(self, one: object) -> bool:
        return one in self.members

    def __iter__(self) -> Iterator[Any]:
        return self.members.walk(iter(self.members.entries), "Set")

    def add(self, one: Any) -> None:
        if one not in self.members:
            self.members[one] = None

    def discard(self, one: Any) -> None:
        if one in self.members:
            del self.members[one]

    def remove(self, one: Any) -> None:
        del self.members[one]

    def pop(self) -> Any:
        if not len(self):
            raise KeyError("pop from an empty set")
        return self.members.popitem()[0]

    def clear(self) -> None:
        self.members.clear()

    def copy(self) -> Any:
        return self._made(self)

    def issubset(self, given: Iterable[Any]) -> bool:
        others: set[Any] = set(*self._taken([given]))
        return all(one in others for one in self)

    def issuperset(self, given: Iterable[Any]) -> bool:
        return all(one in self for other in self._taken([given]) for one in other)

    def isdisjoint(self, given: Iterable[Any]) -> bool:
        return not any(one in self for other in self._taken([given]) for one in other)


def _sorted(values: Iterable[Any], *, key: Any = None, reverse: Any = False) -> List:
    made = List(values)
    made.sort(key=key, reverse=reverse)
    return made


View.list_of = List

BUILTINS: dict[str, Callable[..., Any]] = {
    "list": List,
    "dict": Dict,
    "set": Set,
    "sorted": _sorted,
    "reversed": reversed,
    "tuple": tuple,
    "map": map,
    "filter": filter,
}
"""What the oracle finds under the names of builtins."""
numbers.ORACLE_BUILTINS.update(BUILTINS)
