"""Columns of strings whose texts are not entered into the table of strings.

An operator that compares a column with literals of its own, and does nothing else with it, needs to
know of each text which of these it is, and no more; one whose column Python alone reads, or nobody,
not even that (:mod:`specstream.compiler.facts.text_use` finds out). So such a column is neither
hashed nor remembered: its numbers are the codes of the literals, and one other number for all other
texts. Whoever needs a text itself reads it from the batch, which is kept beside the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi, lib
from specstream.columns import compute as pc
from specstream.columns.strings import check_text, native_columns
from specstream.declarations.codes import string_code

__all__ = ["ColumnTexts", "number_of", "numbers_of", "other_number"]

Numbers = npt.NDArray[np.int64]


def other_number(literals: tuple[str, ...]) -> int:
    """The number of a text that is none of the literals: no code of one of them, and not 0."""
    codes = {string_code(one) for one in literals}
    return next(number for number in range(1, len(codes) + 2) if number not in codes)


class _Literals:
    """The literals that a column meets, as native code looks them up."""

    def __init__(self, literals: tuple[str, ...]) -> None:
        self.codes = {one: string_code(one) for one in literals}
        self.other = other_number(literals)
        self._places = 1 << (2 * len(literals)).bit_length()
        self._table = ffi.new("struct ss_literal[]", self._places)
        self._bytes = []
        for one in literals:
            octets = one.encode()
            kept = ffi.new("char[]", octets)
            self._bytes.append(kept)
            lib.ss_literals_add(self._table, self._places, kept, len(octets), self.codes[one])

    def find(self, texts: pa.Array) -> Numbers:
        """The number of each text; 0 of a null."""
        numbers = np.empty(len(texts), np.int64)
        if not len(texts):
            return numbers
        columns, _kept = native_columns([texts])
        into = ffi.cast("int64_t *", numbers.ctypes.data)
        lib.ss_literals_find(self._table, self._places, columns, self.other, into)
        return numbers


# One for each column of each operator.
_literals = lru_cache(maxsize=1024)(_Literals)


def numbers_of(texts: pa.Array, literals: tuple[str, ...]) -> Numbers:
    """What an operator has of a column that meets nothing but these literals.

    >>> numbers = numbers_of(pa.array(["a", "b", None, "c"]), ("b",))
    >>> numbers.tolist() == [1, string_code("b"), 0, 1]
    True
    """
    if not literals:
        # Nobody reads them; where it is null another array says.
        return np.zeros(len(texts), np.int64)
    found = _literals(literals)
    if not pa.types.is_dictionary(texts.type):
        return found.find(texts)
    each = np.append(found.find(texts.dictionary), np.int64(0))
    indices = texts.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(len(each) - 1)
    numbers: Numbers = each[indices.to_numpy(zero_copy_only=False)]
    return numbers


def number_of(text: str | None, literals: tuple[str, ...]) -> int:
    """The same for one text; None: it is null."""
    if text is None or not literals:
        return 0
    found = _literals(literals)
    return found.codes.get(text, found.other)


class ColumnTexts:
    """The texts of a column that is not entered, of a batch of events.

    Args:
        given: Arrow's, of the rows of a table.
        rows: which row each event is; None: they are in the order of the table.

    >>> texts = ColumnTexts(pa.array(["a", None, "c"]), np.array([2, 0, 1]))
    >>> texts[0], texts[2], texts.take(np.array([1, 1]))[0]
    ('c', None, 'a')
    """

    def __init__(self, given: pa.Array, rows: Numbers | None = None) -> None:
        self._given = given
        self._rows = rows

    def __len__(self) -> int:
        return len(self._given) if self._rows is None else len(self._rows)

    def __getitem__(self, event: int) -> str | None:
        """The text of an event; None: it is null. What is no UTF-8 has U+FFFD for it."""
        at = int(event) if self._rows is None else int(self._rows[event])
        one = self._given[at]
        try:
            text: str | None = one.as_py()
        except UnicodeDecodeError:
            value = one.value if isinstance(one, pa.DictionaryScalar) else one
            text = value.as_buffer().to_pybytes().decode(errors="replace")
        return text

    def ordered(self, rows: Numbers) -> ColumnTexts:
        """The same in another order, or some of them; nothing is copied."""
        return ColumnTexts(self._given, rows if self._rows is None else self._rows[rows])

    def array(self) -> pa.Array:
        """All of them, in order, as Arrow has them."""
        return self._given if self._rows is None else _some(self._given, self._rows)

    def slice(self, first: int, count: int | None = None) -> ColumnTexts:
        """Some of them that follow each other, of a copy."""
        assert self._rows is None
        return ColumnTexts(self._given.slice(first, count))

    def kept(self) -> ColumnTexts:
        """A copy, for longer than the table is there.

        Raises:
            InputError: one of them is no UTF-8 text, which nobody could bring back.
        """
        array = self.take(np.arange(len(self))).array().cast(pa.large_string())
        check_text(array)
        return ColumnTexts(array)

    @staticmethod
    def joined(parts: Sequence[ColumnTexts]) -> ColumnTexts:
        """Copies, one behind the other."""
        empty = pa.array([], pa.large_string())
        return ColumnTexts(pa.concat_arrays([empty, *(part.array() for part in parts)]))

    def take(self, rows: Numbers) -> ColumnTexts:
        """Some of them, copied."""
        some = _some(self._given, rows if self._rows is None else self._rows[rows])
        if pa.types.is_dictionary(some.type):
            some = some.dictionary_decode()  # or all of the dictionary would be kept
        return ColumnTexts(some)


def _some(texts: pa.Array, rows: Numbers) -> pa.Array:
    return pc.without_views(texts).take(pa.array(rows))
