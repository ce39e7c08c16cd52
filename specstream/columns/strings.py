"""Strings as 64-bit codes.

Inside an operator a string is a number: the first eight bytes of BLAKE2b of its UTF-8 text, as a
signed integer. The code depends on the content alone, so it is the same in every run and every
process. A table of the strings met so far turns codes into text again; two strings with one code
are found there and are an error.

The table is the C runtime's (``string_table.c``), which reads Arrow's buffers as they are, with the
interpreter's lock released. It *numbers* the strings in the order in which it meets them: what
came since some moment are those from a number on. A sweep drops the strings that nothing refers to;
others keep their numbers, and a string that comes again gets a new one.
"""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi, lib
from specstream.columns import compute as pc
from specstream.declarations.codes import EMPTY, Texts, string_code
from specstream.errors import InputError

if TYPE_CHECKING:
    from specstream._native import CData, Pointer, int64_t, ss_texts_p

__all__ = ["StringTable", "check_text", "native_columns", "string_code", "string_codes"]

Numbers = npt.NDArray[np.int64]

# Single strings whose codes are kept in a dict of Python's, which finds them faster.
_RECENT = 4096
# Words that are looked through at a time.
_AT_ONCE = 1 << 16
# Of the indexes of all tables: nobody outside can choose strings that meet there.
_SECRET = ffi.new("uint64_t[]", [secrets.randbits(64), secrets.randbits(64)])
_NOTHING = ffi.new("uint8_t[8]")  # the data of columns that have none


def string_codes(texts: pa.LargeStringArray) -> Numbers:
    """The codes of strings, none of them null.

    >>> string_codes(pa.array(["EWR"], pa.large_string())).tolist() == [string_code("EWR")]
    True
    """
    codes = np.empty(len(texts), np.int64)
    columns, _kept = native_columns([texts])
    if len(texts) and not lib.ss_string_codes(columns, _threads(), _words(codes)):
        raise MemoryError("no memory for the codes of strings")
    return codes


class StringTable:
    """The strings that an engine has met, by code.

    Threads may use it at the same time: hooks look up texts while a batch is read.

    Attributes:
        epoch: sweeps so far.
        held_by: whoever keeps codes outside of the engine, and has them among its ``words``.
        track_drops: whether codes that sweeps drop are kept for :meth:`take_dropped`.

    >>> table = StringTable(["EWR"])
    >>> table.text(table.add("JFK")), len(table)
    ('JFK', 2)
    """

    def __init__(self, strings: Iterable[str] = ()) -> None:
        table = lib.ss_strings_open(_SECRET)
        if table == ffi.NULL:
            raise MemoryError("no memory for a table of strings")
        self._table = ffi.gc(table, lib.ss_strings_close)
        self._recent: dict[str, int] = {}
        self._one_sweep = threading.Lock()
        self.epoch = 0
        self.held_by: weakref.WeakSet[Any] = weakref.WeakSet()
        self.track_drops = False
        self._dropped: list[Numbers] = []
        for text in strings:
            self.add(text)

    def add(self, text: str) -> int:
        """The code of ``text``, remembered.

        Raises:
            InputError: another string has the same code, or it is no Unicode text.
        """
        recent = self._recent  # which a sweep replaces
        code = recent.get(text)
        if code is not None:
            return code
        try:
            octets = text.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"string {text!r} has a lone surrogate, which no UTF-8 text has: replace it"
            ) from None
        found: Pointer[int64_t] = ffi.new("int64_t *")
        texts: ss_texts_p = ffi.new("struct ss_texts *")
        status = lib.ss_strings_add_one(self._table, octets, len(octets), found, texts)
        if status != lib.SS_STRINGS_DONE:
            _refuse(status, texts)
        code = int(found[0])
        if len(recent) >= _RECENT:
            recent.clear()
        recent[text] = code
        return code

    def add_all(self, texts: pa.Array | pa.ChunkedArray) -> Numbers:
        """The codes of strings of any layout, 0 for a null; all are remembered.

        Of dictionaries these are the strings that are in use.

        Raises:
            InputError: two strings have the same code, or one is no UTF-8 text; none of them is
                remembered.
        """
        if pa.types.is_dictionary(texts.type):
            return self._add_dictionaries(texts)
        codes = np.empty(len(texts), np.int64)
        columns, _kept = native_columns(
            texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
        )
        told: ss_texts_p = ffi.new("struct ss_texts *")
        status = lib.ss_strings_add(self._table, columns, len(columns), _words(codes), told)
        if status != lib.SS_STRINGS_DONE:
            _refuse(status, told)
        return codes

    def _add_dictionaries(self, texts: pa.Array | pa.ChunkedArray) -> Numbers:
        """Of each value that is in use once."""
        arrays = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
        places, values = [], []
        for array in arrays:
            count = len(array.dictionary)
            bounds = pc.min_max(array.indices).as_py()
            if bounds["max"] is not None and not 0 <= bounds["min"] <= bounds["max"] < count:
                raise IndexError(f"an index beyond a dictionary of {count} values")
            at = array.indices.cast(pa.int64()).fill_null(count).to_numpy(zero_copy_only=False)
            used = np.zeros(count + 1, np.bool_)
            used[at] = True
            places.append((at, used))
            held = array.dictionary.cast(pa.large_string())
            values.append(held.filter(pa.array(used[:-1])))
        codes = self.add_all(pa.chunked_array(values, pa.large_string()))
        parts, begin = [np.empty(0, np.int64)], 0
        for at, used in places:
            of_values = np.zeros(len(used), np.int64)
            end = begin + int(np.count_nonzero(used[:-1]))
            of_values[:-1][used[:-1]] = codes[begin:end]
            parts.append(of_values[at])
            begin = end
        return np.concatenate(parts)

    @property
    def pointer(self) -> Any:
        """The table in C, which goes with this object."""
        return self._table

    def text(self, code: int) -> str | None:
        """The string with that code, or None where no such string was met."""
        text: str | None = self.texts(np.array([code], np.int64))[0].as_py()
        return text

    def texts(self, codes: Numbers) -> pa.LargeStringArray:
        """The strings with those codes; null where no such string was met."""
        codes = np.ascontiguousarray(codes, np.int64)
        texts: ss_texts_p = ffi.new("struct ss_texts *")
        if not lib.ss_strings_texts(self._table, _words(codes), len(codes), texts):
            raise MemoryError("no memory for the texts of strings")
        return _array(texts)

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

    def referred(self, words: Iterable[Numbers]) -> pa.LargeStringArray:
        """The strings whose codes are among these words, in the order of their codes."""
        found = [np.empty(0, np.int64)]
        codes = np.empty(_AT_ONCE, np.int64)
        for part in words:
            flat = np.ascontiguousarray(part).reshape(-1).view(np.int64)
            for begin in range(0, len(flat), _AT_ONCE):
                some = flat[begin : begin + _AT_ONCE]
                known = lib.ss_strings_known(self._table, _words(some), len(some), _words(codes))
                if known:
                    found.append(np.unique(codes[:known]))
        return self.texts(np.unique(np.concatenate(found))).drop_null()

    def sweep(
        self, referred: Iterable[Numbers], since: Callable[[], int | None] = lambda: None
    ) -> int:
        """Drops the strings whose codes are in none of the arrays; how many these were.

        Those stay that others add meanwhile, or find to be there; and those for which that was so
        in epoch ``since()`` or later. It is called when the sweep has begun, so that whatever it
        does not know of is added meanwhile; None: these are all.
        """
        wanted = self.track_drops
        codes: Pointer[Pointer[int64_t]] = ffi.new("int64_t **")
        with self._sweeping():
            lib.ss_strings_sweep_begin(self._table)
            self.epoch += 1
            first = since()
            window = -1 if first is None else self.epoch - 1 - first
            for words in referred:
                held = np.ascontiguousarray(words).reshape(-1).view(np.int64)
                lib.ss_strings_mark(self._table, _words(held), len(held))
            count: int = lib.ss_strings_sweep_end(
                self._table, window, codes if wanted else ffi.NULL
            )
        if count < 0:
            raise MemoryError("no memory for the strings that stay")
        if wanted and count:
            self._dropped.append(np.frombuffer(ffi.buffer(codes[0], 8 * count), np.int64).copy())
            lib.ss_codes_free(codes[0])
        return count

    @contextmanager
    def _sweeping(self) -> Iterator[None]:
        with self._one_sweep:
            try:
                self._recent = {}
                yield
            finally:
                lib.ss_strings_sweep_abandon(self._table)  # unless it has ended
                self._recent = {}

    def take_dropped(self) -> Numbers:
        """The codes that sweeps have dropped since this was asked last, each once.

        A string that has come again since is among them.
        """
        dropped, self._dropped = self._dropped, []
        return np.unique(np.concatenate([np.empty(0, np.int64), *dropped]))

    @property
    def mark(self) -> int:
        """The number that the next new string gets."""
        return int(lib.ss_strings_next(self._table))

    @property
    def memory(self) -> int:
        """Bytes of the table, its codes and its texts."""
        return int(lib.ss_strings_bytes(self._table))

    def __len__(self) -> int:
        return int(lib.ss_strings_count(self._table))

    def since(self, number: int) -> pa.LargeStringArray:
        """The strings that have this number or a later one, in the order in which they were met."""
        texts: ss_texts_p = ffi.new("struct ss_texts *")
        if not lib.ss_strings_since(self._table, number, texts):
            raise MemoryError("no memory for the texts of strings")
        return _array(texts)

    def to_arrow(self) -> pa.ChunkedArray:
        """All strings, in the order in which they were met; a copy."""
        return pa.chunked_array([self.since(0)])

    def strings(self) -> list[str]:
        """All strings, in the order in which they were met."""
        return list(self.to_arrow().to_pylist())


def check_text(texts: pa.Array) -> None:
    """Refuses what is no UTF-8.

    Raises:
        InputError: one of them is none.
    """
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        octets = texts.cast(pa.large_binary()).to_pylist()
        _refuse_octets(next(one for one in octets if one is not None and not _is_text(one)))


def _is_text(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_octets(octets: bytes) -> NoReturn:
    raise InputError(
        f"string {octets!r} is no UTF-8 text: decode it as what it is, or replace it"
    ) from None


def _threads() -> int:
    return len(os.sched_getaffinity(0))


def _words(codes: Numbers) -> Any:
    return ffi.from_buffer("int64_t[]", codes)


def native_columns(arrays: list[pa.Array]) -> tuple[Any, Any]:
    """Arrow's arrays as C reads them, and what has to be kept while it does."""
    arrays = [array for array in arrays if len(array)]
    columns, kept = ffi.new("struct ss_string_column[]", len(arrays)), []
    for column, array in zip(columns, arrays, strict=True):
        if pa.types.is_string_view(array.type):
            layout = lib.SS_VIEWS
        elif pa.types.is_string(array.type):
            layout = lib.SS_OFFSETS_32
        else:
            layout = lib.SS_OFFSETS_64
            array = array.cast(pa.large_string())
        validity, places, *data = buffers = array.buffers()
        column.layout, column.first, column.count = layout, array.offset, len(array)
        if array.null_count:
            column.validity = _bytes(validity)
        column.places = _bytes(places)
        if layout == lib.SS_VIEWS:
            column.buffers = held = ffi.new("uint8_t *[]", [_bytes(buffer) for buffer in data])
            kept.append(held)
        else:
            column.data = _bytes(data[0])
        kept.append(buffers)
    return columns, kept


def _bytes(buffer: pa.Buffer | None) -> Any:
    return _NOTHING if buffer is None else ffi.cast("uint8_t *", buffer.address)


def _array(texts: ss_texts_p) -> pa.LargeStringArray:
    """Texts of C's, whose memory goes with the last that refers to it."""
    owner = ffi.gc(texts, lib.ss_texts_free)

    def buffer(begin: CData, size: int) -> pa.Buffer | None:
        if begin == ffi.NULL:
            return None
        return pa.foreign_buffer(int(ffi.cast("uintptr_t", begin)), size, base=owner)

    count = texts.count
    return pa.Array.from_buffers(
        pa.large_string(),
        count,
        [
            buffer(texts.validity, (count + 7) // 8),
            buffer(texts.offsets, 8 * (count + 1)),
            buffer(texts.data, texts.bytes),
        ],
        texts.null_count,
    )


def _refuse(status: int, told: ss_texts_p) -> NoReturn:
    if status == lib.SS_STRINGS_NO_MEMORY:
        raise MemoryError("no memory for the strings that are new")
    texts = _array(told).cast(pa.large_binary()).to_pylist()
    if status == lib.SS_STRINGS_NO_UTF8:
        _refuse_octets(texts[0])
    known, text = (octets.decode() for octets in texts)
    raise InputError(
        f"strings {known!r} and {text!r} have the same 64-bit code {string_code(text)}: rename one "
        "of them, or give the column as numbers"
    )
