"""Lists, dicts and sets of an operator in the oracle: Python's own, but for what compiled code
cannot have.

There are no objects in compiled code, so a NaN is never found by being the same one: ``==``,
``in``, ``index`` and the like compare by value. A NaN in a sort or as a key raises. Positions
and counts are integers of 64 bits. A set has the order in which its elements came, as a dict has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from specstream.compiler import numbers
from specstream.compiler.numbers import Int64

__all__ = ["BUILTINS", "Dict", "List", "Set", "equal"]


def equal(left: Any, right: Any) -> bool:
    """``left == right`` by value, also of what lies in tuples."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def has_nan(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(has_nan, value))
    return isinstance(value, float) and value != value


def _checked_key(key: Any) -> Any:
    if has_nan(key):
        raise ValueError(
            "a NaN is no key of a dict or set, because it is equal to nothing; test "
            "math.isnan(x) before"
        )
    return key


class List(list[Any]):
    """A list."""

    __slots__ = ()
    __hash__ = None

    def __getitem__(self, index: Any) -> Any:
        found = list.__getitem__(self, index)
        return List(found) if isinstance(index, slice) else found

    def __contains__(self, value: object) -> bool:
        return any(equal(own, value) for own in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and len(self) == len(other) and all(map(equal, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other


class Dict(dict[Any, Any]):
    """A dict."""

    __slots__ = ("changes",)
    __hash__ = None

    def __init__(self, given: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> None:
        self.changes = 0
        super().__init__()
        pairs = given.items() if isinstance(given, Mapping) else given
        for key, value in pairs:
            self[key] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        self.changes += _checked_key(key) not in self
        dict.__setitem__(self, key, value)

    def __getitem__(self, key: Any) -> Any:
        return dict.__getitem__(self, _checked_key(key))

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, _checked_key(key))

    def __iter__(self) -> Iterator[Any]:
        return _walk(self, dict.__iter__(self))


class Set:
    """A set, in the order in which its elements came."""

    __slots__ = ("members",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, given: Iterable[Any] = ()) -> None:
        self.members = Dict()
        for one in given:
            self.add(one)

    def add(self, one: Any) -> None:
        if one not in self.members:
            self.members[one] = None

    def __len__(self) -> int:
        return len(self.members)

    def __contains__(self, one: object) -> bool:
        return one in self.members

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members)


def _walk(of: Dict, items: Iterator[Any]) -> Iterator[Any]:
    """Python sees that the size has changed; here it is enough that keys have come or gone."""
    changes = of.changes
    while True:
        if of.changes != changes:
            raise RuntimeError("dictionary changed size during iteration")
        try:
            yield next(items)
        except StopIteration:
            return


BUILTINS: dict[str, Callable[..., Any]] = {"list": List, "dict": Dict, "set": Set}
"""What the oracle finds under the names of builtins."""
numbers.ORACLE_BUILTINS.update(BUILTINS)

_ = Int64
