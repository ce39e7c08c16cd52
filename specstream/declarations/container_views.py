"""Containers of the state as Python's own: dicts, sets, lists and deques of Python values.

A list or a deque comes as a copy. A dict or a set comes as a read-only view, which shows, compares
and iterates as Python's does: whoever asks for one key of a million pays for that one. What goes
over all entries has them converted column by column, at one instant.
"""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Set, ValuesView
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from specstream.declarations.codes import Texts, stored_code
from specstream.declarations.containers import Container, Shape
from specstream.declarations.element_types import Storage
from specstream.declarations.ordered_set import OrderedSet
from specstream.declarations.plain_values import plain

__all__ = [
    "Entries",
    "StateDict",
    "StateSet",
    "StillEntries",
    "columns_of",
    "entries_of",
    "key_words",
    "python_of",
    "value_of",
    "values_of",
]

Words = npt.NDArray[np.int64]


class Entries(Protocol):
    """Where a view of a dict or a set has its entries from."""

    def all(self) -> dict[Any, Any]:
        """All entries, at one instant, in their order; of a set with None for the values. Nobody
        changes what it gives."""

    def get(self, key: Any) -> tuple[Any, ...]:
        """The value of a key, alone in a tuple; empty: the key is not there."""

    def count(self) -> int:
        """How many there are."""


class StillEntries:
    """Entries that nobody changes.

    Args:
        of: what the container was declared with.
        rows: gives its rows, as :func:`specstream.declarations.container_words.entries` does, and
            the strings in them.
    """

    def __init__(self, of: Container, rows: Callable[[], tuple[Words, Texts]]) -> None:
        self._of, self._rows = of, rows
        self._entries: dict[Any, Any] | None = None

    def all(self) -> dict[Any, Any]:
        """As of :class:`Entries`."""
        if self._entries is None:
            self._entries = entries_of(self._of, *self._rows())
        return self._entries

    def get(self, key: Any) -> tuple[Any, ...]:
        """As of :class:`Entries`."""
        kept = self.all()
        return (kept[key],) if key in kept else ()

    def count(self) -> int:
        """As of :class:`Entries`."""
        return len(self.all())


class StateDict(Mapping[Any, Any]):
    """A dict of the state, to be read: all that a dict does but change.

    It equals a dict with the same entries, and ``dict(view)`` or ``view.copy()`` is one.
    """

    __slots__ = ("_entries",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def copy(self) -> dict[Any, Any]:
        """A dict with the entries at this instant."""
        return self._entries.all().copy()

    def __getitem__(self, key: Any) -> Any:
        found = self._entries.get(key)
        if not found:
            raise KeyError(key)
        return found[0]

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._entries.get(key)
        return found[0] if found else default

    def __contains__(self, key: object) -> bool:
        return bool(self._entries.get(key))

    def __len__(self) -> int:
        return self._entries.count()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries.all())

    def __reversed__(self) -> Iterator[Any]:
        backwards: Iterator[Any] = reversed(self._entries.all())
        return backwards

    def keys(self) -> KeysView[Any]:
        return self._entries.all().keys()

    def values(self) -> ValuesView[Any]:
        return self._entries.all().values()

    def items(self) -> ItemsView[Any, Any]:
        return self._entries.all().items()

    def __eq__(self, other: object) -> bool:
        return self._entries.all() == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __or__(self, other: Any) -> dict[Any, Any]:
        return self._entries.all() | dict(other)

    def __ror__(self, other: Any) -> dict[Any, Any]:
        return dict(other) | self._entries.all()

    def __repr__(self) -> str:
        return repr(self._entries.all())

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)


class StateSet(Set[Any]):
    """A set of the state, to be read; it iterates in the order of insertion."""

    __slots__ = ("_entries",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    @classmethod
    def _from_iterable(cls, it: Any) -> Any:
        return OrderedSet(it)

    def copy(self) -> set[Any]:
        """A set with the elements at this instant, in the same order."""
        return OrderedSet(self._entries.all())

    def __contains__(self, key: object) -> bool:
        return bool(self._entries.get(key))

    def __len__(self) -> int:
        return self._entries.count()

    def __iter__(self) -> Iterator[Any]:
        elements: Iterator[Any] = iter(self._entries.all())
        return elements

    def __eq__(self, other: object) -> bool:
        return self.copy() == set(other) if isinstance(other, Set) else NotImplemented

    def __repr__(self) -> str:
        elements = ", ".join(map(repr, self))
        return f"{{{elements}}}" if elements else "set()"

    def __reduce__(self) -> Any:
        return OrderedSet, (list(self),)


def python_of(of: Container, rows: Words, texts: Texts) -> Any:
    """What a container holds as a dict, set, list or ``collections.deque`` of its own, in its
    order; a priority queue as a list, the least first."""
    if of.is_keyed:
        entries = entries_of(of, rows, texts)
        return OrderedSet(entries) if of.kind == "set" else entries
    values = values_of(of.value, rows, texts)
    if of.kind == "deque":
        return collections.deque(values, of.maxlen)
    return sorted(values) if of.kind == "priority_queue" else values


def entries_of(of: Container, rows: Words, texts: Texts) -> dict[Any, Any]:
    """The entries of a dict or a set; of a set with None for the values."""
    keys = values_of(of.key, rows[:, : of.key.words], texts)
    if of.kind == "set":
        return dict.fromkeys(keys)
    return dict(zip(keys, values_of(of.value, rows[:, of.key.words :], texts), strict=True))


def values_of(shape: Shape, rows: Words, texts: Texts) -> list[Any]:
    """Keys, values or elements as Python values, one for each row."""
    columns = [column.tolist() for column in columns_of(shape, rows, texts)]
    if shape.record is not None:
        return list(map(shape.record, *columns))
    return list(zip(*columns, strict=True)) if shape.is_tuple else columns[0]


def value_of(shape: Shape, row: Words, text: Callable[[int], str | None]) -> Any:
    """One key, value or element as a Python value; ``text`` gives a string by its code."""
    parts = [_one(part, word, text) for part, word in zip(shape.parts, row.tolist(), strict=True)]
    return shape.made(parts)


def _one(part: Storage, word: int, text: Callable[[int], str | None]) -> Any:
    if part.number == "float":
        return np.array(word, np.int64).view(np.float64).item()
    if part.number == "bool":
        return word != 0
    if part.number == "str":
        return text(word) if word else ""
    return word


def columns_of(shape: Shape, rows: Words, texts: Texts) -> list[npt.NDArray[Any]]:
    """One array for each part: of int64, float64, bool, or of strings."""
    return [
        _column(part, np.ascontiguousarray(rows[:, at]), texts)
        for at, part in enumerate(shape.parts)
    ]


def _column(part: Storage, words: Words, texts: Texts) -> npt.NDArray[Any]:
    if part.number == "float":
        return words.view(np.float64)
    if part.number == "bool":
        return np.not_equal(words, 0)
    if part.number == "str":
        strings: npt.NDArray[Any] = texts(words)
        return strings
    return words


def key_words(shape: Shape, key: Any) -> Words | None:
    """The words of a key that was asked for; None: no key of that shape equals it.

    Raises:
        TypeError: it cannot be a key of any dict.
    """
    hash(key)  # raises, where Python's would
    if not shape.is_tuple:
        key = (key,)
    elif not isinstance(key, tuple) or len(key) != shape.words:
        return None
    words = [_key_word(part, one) for part, one in zip(shape.parts, key, strict=True)]
    return None if None in words else np.array(words, np.int64)


def _key_word(part: Storage, key: Any) -> int | None:
    key = plain(key)
    if part.number == "str":
        return stored_code(key) if isinstance(key, str) else None
    if isinstance(key, float | np.floating):  # 1.0 == 1, and finds it
        number = int(key) if float(key).is_integer() else None
    else:
        try:
            number = operator.index(key)
        except TypeError:
            number = int(key) if isinstance(key, np.bool_) else None
    least, most = (0, 1) if part.number == "bool" else (-(2**63), 2**63 - 1)
    return number if number is not None and least <= number <= most else None
