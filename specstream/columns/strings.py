"""Strings as 64-bit codes.

Inside an operator a string is a number: the first eight bytes of BLAKE2b of its UTF-8 text, as a
signed integer. The code depends on the content alone, so it is the same in every run and every
process. A table of the strings met so far turns codes into text again; two strings with one code
are found there and are an error.

A stream may have tens of millions of distinct keys, which as Python objects in a dict would take
more than 100 bytes each beside their text. So the table *numbers* the strings in the order in which
it meets them. The texts lie one behind the other in a few Arrow arrays. A hash table of NumPy
arrays finds a code's number; it is searched for all codes of a batch at once. That table needs no
hash function of its own, because the codes are hashes already.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import threading
from bisect import bisect
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.declarations.codes import EMPTY, Texts, string_code
from specstream.errors import InputError

__all__ = ["StringTable", "check_text", "string_code", "string_codes"]

Numbers = npt.NDArray[np.int64]

# Texts that become Python objects together while they are hashed.
_AT_ONCE = 1 << 16
# Single strings that are kept as Python objects before they become an Arrow array.
_LOOSE = 4096


def string_codes(texts: pa.LargeStringArray) -> Numbers:
    """The codes of strings, none of them null.

    >>> string_codes(pa.array(["EWR"], pa.large_string())).tolist() == [string_code("EWR")]
    True
    """
    hashed, parts = hashlib.blake2b, []
    for begin in range(0, len(texts), _AT_ONCE):
        piece = texts.slice(begin, _AT_ONCE)
        _, offsets, data = piece.buffers()
        # The buffer may be longer than its offsets, and no multiple of their length.
        ends = np.frombuffer(offsets, np.int64, piece.offset + len(piece) + 1)[piece.offset :]
        octets = memoryview(data if data is not None else b"")
        digests = [
            hashed(octets[start:end], digest_size=8).digest()
            for start, end in itertools.pairwise(ends.tolist())
        ]
        parts.append(np.frombuffer(b"".join(digests), "<i8"))
    codes = np.concatenate(parts).astype(np.int64) if parts else np.empty(0, np.int64)
    codes[codes == 0] = 1
    return codes


class StringTable:
    """The strings that an engine has met, by code.

    Threads may use it at the same time: hooks look up texts while a batch is read.

    >>> table = StringTable(["EWR"])
    >>> table.text(table.add("JFK")), len(table)
    ('JFK', 2)
    """

    def __init__(self, strings: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._index = _Index()
        self._texts = _Texts()
        self._recent: dict[str, int] = {}  # codes of strings that came one at a time
        for text in strings:
            self.add(text)

    def add(self, text: str) -> int:
        """The code of ``text``, remembered.

        Raises:
            InputError: another string has the same code, or it is no Unicode text.
        """
        code = self._recent.get(text)
        if code is not None:
            return code
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"string {text!r} has a lone surrogate, which no UTF-8 text has: replace it"
            ) from None
        with self._lock:
            code = string_code(text)
            number = self._index.find_one(code)
            if number < 0:
                self._index.add(np.array([code]))
                self._texts.append(text)
            else:
                _check_same(self._texts.one(number), text, code)
            if len(self._recent) >= _LOOSE:
                self._recent.clear()
            self._recent[text] = code
            return code

    def add_all(self, texts: pa.LargeStringArray) -> Numbers:
        """The codes of strings that differ from each other, none null; all are remembered.

        Raises:
            InputError: two strings have the same code, or one is no UTF-8 text; none of them is
                remembered.
        """
        codes = string_codes(texts)
        with self._lock:
            numbers = self._index.find(codes)
            known, new = np.flatnonzero(numbers >= 0), np.flatnonzero(numbers < 0)
            if len(known):
                before, given = self._texts.take(numbers[known]), texts.take(pa.array(known))
                differs = pc.index(pc.not_equal(before, given), True).as_py()
                if differs >= 0:
                    code = int(codes[known[differs]])
                    _check_same(before[differs].as_py(), given[differs].as_py(), code)
            if len(new):
                order = new[np.argsort(codes[new], kind="stable")]
                twice = np.flatnonzero(np.diff(codes[order]) == 0)
                added = texts.take(pa.array(new))
                # Files have such: Parquet, for one, calls texts what nobody has looked at.
                check_text(added)
                if len(twice):
                    one, other = order[twice[0]], order[twice[0] + 1]
                    _check_same(texts[one].as_py(), texts[other].as_py(), int(codes[one]))
                    raise InputError(f"string {texts[one].as_py()!r} comes twice")
                self._index.add(codes[new])
                self._texts.extend(added)
        return codes

    def text(self, code: int) -> str | None:
        """The string with that code, or None where no such string was met."""
        with self._lock:
            number = self._index.find_one(code)
            return None if number < 0 else self._texts.one(number)

    def texts(self, codes: Numbers) -> pa.LargeStringArray:
        """The strings with those codes; null where no such string was met."""
        with self._lock:
            return self._texts.take(self._index.find(codes))

    def objects(self, codes: Numbers) -> npt.NDArray[np.object_]:
        """The strings that a field holds by these codes, as Python's own, in the same shape."""
        return self.part(codes)(codes)

    def part(self, codes: Numbers) -> Texts:
        """The strings that a field holds by these codes, whatever becomes of the table."""
        kinds = np.unique(np.where(codes == 0, EMPTY, codes))
        held = self.texts(kinds)

        def objects(codes: Numbers) -> npt.NDArray[np.object_]:
            texts = np.array(held.to_pylist(), np.object_)
            texts[kinds == EMPTY] = ""
            found = np.empty(codes.shape, np.object_)
            places = np.searchsorted(kinds, np.where(codes == 0, EMPTY, codes))
            found[...] = texts[places]
            return found

        return objects

    def begins_with(self, texts: pa.ChunkedArray) -> bool:
        """Whether its first strings are these, in this order."""
        return bool(self.to_arrow().slice(0, len(texts)).equals(texts))

    def truncate(self, length: int) -> None:
        """Forgets all but the first ``length`` strings. May be begun anew."""
        with self._lock:
            if length < len(self._index):
                self._recent.clear()
                self._texts.truncate(length)
                self._index.truncate(length)

    @property
    def memory(self) -> int:
        """Bytes of the table, its codes and its texts."""
        return self._index.memory + self._texts.memory

    def __len__(self) -> int:
        return len(self._index)

    def to_arrow(self) -> pa.ChunkedArray:
        """All strings, in the order in which they were met; shares their memory."""
        with self._lock:
            return self._texts.all()

    def strings(self) -> list[str]:
        """All strings, in the order in which they were met."""
        return list(self.to_arrow().to_pylist())


def check_text(texts: pa.LargeStringArray) -> None:
    """Refuses what is no UTF-8.

    Raises:
        InputError: one of them is none.
    """
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        octets = texts.cast(pa.large_binary())
        wrong = next(text.as_py() for text in octets if not _is_text(text.as_py()))
        raise InputError(
            f"string {wrong!r} is no UTF-8 text: decode it as what it is, or replace it"
        ) from None


def _is_text(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_same(known: str, text: str, code: int) -> None:
    if known != text:
        raise InputError(
            f"strings {known!r} and {text!r} have the same 64-bit code {code}: rename one of "
            "them, or give the column as numbers"
        )


class _Index:
    """Codes by number, and numbers by code: open addressing with linear probing.

    A slot holds a number or -1. A code's search begins at the slot that its low bits name and goes
    on to the next until it meets the code or an empty slot.
    """

    def __init__(self) -> None:
        self._codes: Numbers = np.empty(16, np.int64)
        self._count = 0
        self._slots = np.full(32, -1, np.int32)

    def __len__(self) -> int:
        return self._count

    @property
    def memory(self) -> int:
        return self._codes.nbytes + self._slots.nbytes

    def find_one(self, code: int) -> int:
        """The number of a code, or -1."""
        last = len(self._slots) - 1
        at = code & last
        number = int(self._slots[at])
        while number >= 0 and self._codes[number] != code:
            at = (at + 1) & last
            number = int(self._slots[at])
        return number

    def find(self, codes: Numbers) -> Numbers:
        """The numbers of codes, -1 where there is none."""
        found = np.full(len(codes), -1, np.int64)
        last = len(self._slots) - 1
        left, slots = np.arange(len(codes)), codes & last
        while len(left):
            numbers = self._slots[slots]
            taken = numbers >= 0
            left, slots, numbers = left[taken], slots[taken], numbers[taken]
            here = self._codes[numbers] == codes[left]
            found[left[here]] = numbers[here]
            left, slots = left[~here], (slots[~here] + 1) & last
        return found

    def add(self, codes: Numbers) -> None:
        """Gives the next numbers to codes that are not there and differ from each other."""
        first, count = self._count, self._count + len(codes)
        if count > len(self._codes):
            grown = np.empty(max(count, 3 * len(self._codes) // 2), np.int64)
            grown[:first] = self._codes[:first]
            self._codes = grown
        self._codes[first:count] = codes
        self._count = count
        if 3 * count > 2 * len(self._slots):
            # Fuller than two thirds, searches would become long.
            self._slots = np.full(1 << (3 * count // 2).bit_length(), -1, np.int32)
            first = 0
        self._place(np.arange(first, count))

    def _place(self, numbers: Numbers) -> None:
        last = len(self._slots) - 1
        slots = self._codes[numbers] & last
        while len(numbers):
            free = self._slots[slots] < 0
            self._slots[slots[free]] = numbers[free]
            # Of several that meant to have one slot, one has got it.
            rest = self._slots[slots] != numbers
            numbers, slots = numbers[rest], (slots[rest] + 1) & last

    def truncate(self, length: int) -> None:
        # All are placed anew: emptying slots could cut off the search for others behind them.
        self._slots.fill(-1)
        self._place(np.arange(length))
        self._count = length  # at last: by it the table knows what is left to do


class _Texts:
    """Texts by number, in Arrow arrays that double in size from the last to the first.

    Neighbours are joined while the later one is not much smaller: so there are few arrays, and a
    text is copied about as often as there are doublings.
    """

    def __init__(self) -> None:
        self._arrays: list[pa.LargeStringArray] = []
        self._starts: list[int] = []  # number of each array's first text
        self._settled = 0
        self._loose: list[str] = []  # the last texts, not yet an array
        self._loose_bytes = 0

    @property
    def memory(self) -> int:
        return self._loose_bytes + sum(int(array.nbytes) for array in self._arrays)

    def append(self, text: str) -> None:
        self._loose.append(text)
        self._loose_bytes += sys.getsizeof(text)
        if len(self._loose) >= _LOOSE:
            self._settle()

    def extend(self, texts: pa.LargeStringArray) -> None:
        self._settle()
        self._push(texts)

    def _settle(self) -> None:
        if self._loose:
            self._push(pa.array(self._loose, pa.large_string()))

    def _push(self, texts: pa.LargeStringArray) -> None:
        """Adds an array, which takes the place of the loose texts if there are any."""
        arrays, starts = [*self._arrays, texts], [*self._starts, self._settled]
        settled = self._settled + len(texts)
        while len(arrays) > 1 and 2 * len(arrays[-1]) > len(arrays[-2]):
            arrays[-2:] = [pa.concat_arrays(arrays[-2:])]
            starts.pop()
        self._set(arrays, starts, settled)

    def _set(self, arrays: list[pa.LargeStringArray], starts: list[int], settled: int) -> None:
        # No call in here, in which a signal handler may raise: all of it, or none.
        self._arrays, self._starts, self._settled = arrays, starts, settled
        self._loose, self._loose_bytes = [], 0

    def one(self, number: int) -> str:
        if number >= self._settled:
            return self._loose[number - self._settled]
        at = bisect(self._starts, number) - 1
        text: str = self._arrays[at][number - self._starts[at]].as_py()
        return text

    def take(self, numbers: Numbers) -> pa.LargeStringArray:
        """Texts by number, null where it is negative."""
        self._settle()
        which = np.searchsorted(np.array(self._starts, np.int64), numbers, side="right") - 1
        parts = [pa.nulls(int(np.count_nonzero(which < 0)), pa.large_string())]
        places = [np.flatnonzero(which < 0)]
        for at, array in enumerate(self._arrays):
            inside = np.flatnonzero(which == at)
            if len(inside):
                parts.append(array.take(pa.array(numbers[inside] - self._starts[at])))
                places.append(inside)
        back = np.empty(len(numbers), np.int64)
        back[np.concatenate(places)] = np.arange(len(numbers))
        return pa.concat_arrays(parts).take(pa.array(back))

    def all(self) -> pa.ChunkedArray:
        self._settle()
        return pa.chunked_array(self._arrays, pa.large_string())

    def truncate(self, length: int) -> None:
        self._settle()
        arrays, starts, settled = [*self._arrays], [*self._starts], self._settled
        while arrays and starts[-1] >= length:
            arrays.pop()
            settled = starts.pop()
        if settled > length:
            arrays[-1] = arrays[-1].slice(0, length - starts[-1])
            settled = length
        self._set(arrays, starts, settled)
