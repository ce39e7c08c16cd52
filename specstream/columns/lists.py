"""Columns of lists: what Python makes of an event that is a list of numbers, bools and strings.

Such a column holds the address of each event's list: a word that says how many elements there are,
and the words of these. Events that have equal values share a list. The arrays of addresses keep the
words alive, and so does every array that is taken of one: what travels with the events needs to
know nothing of it. Two things do not carry on what they are made of: joining arrays
(:func:`joined`), and copying elements from one into another.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi
from specstream.columns.strings import StringTable
from specstream.declarations.derived import Part, Scalar

__all__ = ["Addresses", "addresses", "joined", "list_at"]

Words = npt.NDArray[np.int64]
_FEW = 16  # strings that are coded one by one


class Addresses(np.ndarray[Any, Any]):
    """Addresses of lists, and what keeps them alive."""

    held: tuple[Words, ...] = ()

    def __array_finalize__(self, made_of: Any) -> None:
        self.held = getattr(made_of, "held", ())


def addresses(part: Part, lists: Sequence[Any], strings: StringTable) -> Addresses:
    """Where lists lie, as words in memory.

    Args:
        part: says what their elements are.
        lists: of tuples with as many values as an element has words, as they are to be stored; None
            for a list that nobody reads.
        strings: gets those that are in the lists.
    """
    given = [one or () for one in lists]
    width = len(part.words)
    counts = np.array([len(one) for one in given], np.int64)
    starts = np.cumsum(counts * width + 1) - (counts * width + 1)
    flat = np.empty(int((counts * width + 1).sum()), np.int64)
    held: list[Words] = [flat]
    is_element = np.ones(len(flat), np.bool_)
    is_element[starts] = False
    flat[starts] = counts
    elements = list(itertools.chain.from_iterable(given))
    if elements:
        columns = zip(part.words, zip(*elements, strict=True), strict=True)
        words = [_words(kind, values, strings) for kind, values in columns]
        flat[is_element] = np.column_stack(words).reshape(-1)
        held += itertools.chain.from_iterable(getattr(one, "held", ()) for one in words)
    found = (starts * flat.itemsize + flat.ctypes.data).view(Addresses)
    found.held = tuple(held)
    return found


def _words(kind: Scalar | Part, values: tuple[Any, ...], strings: StringTable) -> Words:
    if isinstance(kind, Part):
        return addresses(kind, values, strings)
    if kind == "float":
        return np.array(values, np.float64).view(np.int64)
    if kind != "str":
        return np.array(values, np.int64)
    if len(values) <= _FEW:
        return np.array([strings.add(value) for value in values], np.int64)
    return strings.add_all(pa.array(values, pa.large_string()))


def joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays one after the other; what they hold stays alive."""
    made = np.concatenate(arrays)
    held = [one.held for one in arrays if isinstance(one, Addresses)]
    if not held:
        return made
    kept = np.asarray(made).view(Addresses)
    kept.held = tuple(itertools.chain.from_iterable(held))
    return kept


def list_at(part: Part, address: int) -> list[tuple[Any, ...]]:
    """The elements of a list, each a tuple of its words: integers, floats, codes of strings, and
    addresses of lists.

    >>> texts, part = StringTable(), Part("list", items=("int", "float"))
    >>> made = addresses(part, [[(1, 0.5), (2, 1.5)]], texts)
    >>> list_at(part, int(made[0]))
    [(1, 0.5), (2, 1.5)]
    """
    start, width = ffi.cast("int64_t *", address), len(part.words)
    count = int(start[0])
    words = np.frombuffer(ffi.buffer(start + 1, 8 * count * width), np.int64).reshape(count, width)
    columns = [
        (column.view(np.float64) if kind == "float" else column).tolist()
        for kind, column in zip(part.words, np.ascontiguousarray(words.T), strict=True)
    ]
    return list(zip(*columns, strict=True))
