"""The entries and elements of a container, out of the words of a state and into them.

What :mod:`specstream.declarations.containers` declares lies in words as
``stm_native/include/specstream_containers.h`` says. Here it is rows of raw words: strings as their
codes, floats as their bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from specstream._native import lib
from specstream.declarations.containers import Container
from specstream.declarations.state import Field

__all__ = ["Words", "copied", "count", "entries", "replace"]

Words = npt.NDArray[np.int64]


def _of(field: Field) -> Container:
    assert field.container is not None
    return field.container


def count(words: Words, field: Field) -> int:
    """Entries or elements."""
    return int(words[field.offset + lib.SS_HEADER_COUNT])


def entries(words: Words, field: Field) -> Words:
    """One row for each entry, in the order of insertion: key words, then value words; or for each
    element of a sequence, from the first to the last. A copy."""
    of, header = _of(field), words[field.offset : field.offset + lib.SS_HEADER_WORDS]
    width = of.entry_words
    if of.is_keyed:
        used = int(header[lib.SS_HEADER_USED])
        rows = words[of.region : of.region + used * width].reshape(used, width)
        rows = rows[rows[:, 0] != 0]
        stamps = rows[:, 0]
        if (stamps[1:] < stamps[:-1]).any():
            rows = rows[np.argsort(stamps)]
        found: Words = rows[:, 1:].copy()
        return found
    filled, start, ring = (
        int(header[at]) for at in (lib.SS_HEADER_COUNT, lib.SS_HEADER_START, lib.SS_HEADER_CAPACITY)
    )
    at = np.arange(start, start + filled) % (ring or max(filled, 1))
    if of.kind != "deque":
        at = np.arange(filled)
    rows = words[of.region : of.region + of.region_words].reshape(of.room, width)
    chosen: Words = rows[at]
    return chosen


def replace(words: Words, field: Field, rows: Words) -> None:
    """Has a container hold just these rows, as :func:`entries` gives them; an engine that runs on
    the words has to be told (``ss_engine_state_changed``)."""
    of = _of(field)
    filled = len(rows)
    header = words[field.offset : field.offset + of.header_words]
    before = int(header[lib.SS_HEADER_USED])
    header[:] = 0
    header[lib.SS_HEADER_COUNT] = filled
    region = words[of.region : of.region + of.region_words].reshape(of.room, of.entry_words)
    if of.is_keyed:
        header[lib.SS_HEADER_USED] = filled
        region[:filled, 0] = np.arange(1, filled + 1)
        region[:filled, 1:] = rows
        region[filled:before, 0] = 0
        return
    region[:filled] = rows
    if of.kind == "deque" and filled:
        least = 1 << max(filled - 1, 15).bit_length()
        header[lib.SS_HEADER_CAPACITY] = min(least, of.room)


def copied(words: Words, field: Field, target: Words) -> None:
    """Has ``target``, words of the same layout, hold what this container holds."""
    replace(target, field, entries(words, field))
