"""Strings as 64-bit codes.

Inside an operator a string is a number: the first eight bytes of BLAKE2b of its UTF-8 text, as a
signed integer. The code depends on the content alone, so it is the same in every run and every
process. A table of the strings met so far turns codes into text again; two strings with one code
are found there and are an error.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable

from specstream.errors import InputError

__all__ = ["StringTable", "string_code"]


def string_code(text: str) -> int:
    """The int64 code of a string; never 0, which stands for "no string" in a fresh state.

    >>> string_code("EWR") == string_code("EWR") != string_code("JFK")
    True
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1


class StringTable:
    """The strings that an engine has met, by code."""

    def __init__(self, strings: Iterable[str] = ()) -> None:
        self._text: dict[int, str] = {}
        self._bytes = 0  # of codes and texts
        for text in strings:
            self.add(text)

    def add(self, text: str) -> int:
        """The code of ``text``, remembered.

        Raises:
            InputError: another string has the same code.
        """
        code = string_code(text)
        length = len(self._text)
        known = self._text.setdefault(code, text)
        if len(self._text) != length:
            self._bytes += _size(code, text)
        if known != text:
            raise InputError(
                f"strings {known!r} and {text!r} have the same 64-bit code {code}: rename one of "
                "them, or give the column as numbers"
            )
        return code

    def text(self, code: int) -> str | None:
        """The string with that code, or None where no such string was met."""
        return self._text.get(code)

    def truncate(self, length: int) -> None:
        """Forgets all but the first ``length`` strings."""
        for code in list(self._text)[length:]:
            del self._text[code]
        self._bytes = sum(_size(code, text) for code, text in self._text.items())

    @property
    def memory(self) -> int:
        """Bytes of the table, its codes and its texts."""
        return sys.getsizeof(self._text) + self._bytes

    def __len__(self) -> int:
        return len(self._text)

    def strings(self) -> list[str]:
        """All strings, in the order in which they were met."""
        return list(self._text.values())


def _size(code: int, text: str) -> int:
    return sys.getsizeof(code) + sys.getsizeof(text)
