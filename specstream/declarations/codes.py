"""Strings as 64-bit codes: which number stands for which string.

Of the table that turns codes into texts again see :mod:`specstream.columns.strings`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["EMPTY", "Texts", "stored_code", "string_code"]

Texts = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.object_]]
"""From codes to strings."""


def string_code(text: str) -> int:
    """The int64 code of a string; never 0, which stands for "no string" in a fresh state.

    >>> string_code("EWR") == string_code("EWR") != string_code("JFK")
    True
    """
    digest = hashlib.blake2b(str.encode(text, "utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1


EMPTY = string_code("")


def stored_code(text: str) -> int:
    """What a field of strings holds: 0 for the empty one, so that a new state is all zeros."""
    return string_code(text) if text else 0
