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
from specstream.declarations.state_layout import Field

__all__ = ["Words", "count", "entries", "replace", "set_apart", "stamped", "used_bytes"]

Words = npt.NDArray[np.int64]


def _of(field: Field) -> Container:
    assert field.container is not None
    return field.container


def count(words: Words, field: Field) -> int:
    """Entries or elements."""
    return int(words[field.offset + lib.SS_HEADER_COUNT])


def used_bytes(words: Words, field: Field) -> int:
    """Bytes of the region that were ever taken by entries or elements."""
    header = words[field.offset : field.offset + lib.SS_HEADER_WORDS]
    of = _of(field)
    at = lib.SS_HEADER_USED if of.is_keyed else lib.SS_HEADER_COUNT
    if of.kind == "deque":
        at = lib.SS_HEADER_CAPACITY
    return 8 * min(int(header[at]), of.room) * of.entry_words


def entries(words: Words, field: Field, most: int | None = None) -> Words:
    """One row for each entry, in the order of insertion: key words, then value words; or for each
    element of a sequence, from the first to the last. A copy; of the first ``most`` of them, where
    that is given."""
    return stamped(words, field, most)[1]


def stamped(words: Words, field: Field, most: int | None = None) -> tuple[Words, Words]:
    """The stamps of the entries, ascending, and :func:`entries`; of a sequence no stamps."""
    of, header = _of(field), words[field.offset : field.offset + lib.SS_HEADER_WORDS]
    if of.is_keyed:
        # Speculative runs may have asked for more entries than there is room for.
        used = min(int(header[lib.SS_HEADER_USED]), of.room)
        region = words[of.region : of.region + used * of.entry_words].reshape(used, of.entry_words)
        live = np.flatnonzero(region[:, 0])
        stamps = region[live, 0]
        if (stamps[1:] < stamps[:-1]).any():
            order = np.argsort(stamps)[:most]
            return stamps[order], region[live[order], 1:]
        rows = region[:most, 1:].copy() if len(live) == used else region[live[:most], 1:]
        return stamps[:most], rows
    filled, start, ring = (
        int(header[at]) for at in (lib.SS_HEADER_COUNT, lib.SS_HEADER_START, lib.SS_HEADER_CAPACITY)
    )
    region = words[of.region : of.region + of.region_words].reshape(of.room, of.entry_words)
    filled = filled if most is None else min(filled, most)
    start %= max(ring, 1)
    first = min(filled, ring - start) if of.kind == "deque" else filled
    rows = np.concatenate([region[start : start + first], region[: filled - first]])
    return np.empty(0, np.int64), rows


def set_apart(words: Words, field: Field, first: int, by: int) -> None:
    """Gives all entries but the ``first`` ones stamps that are higher ``by`` so much; of a
    container that :func:`replace` has just filled."""
    of, filled = _of(field), count(words, field)
    region = words[of.region : of.region + filled * of.entry_words].reshape(filled, of.entry_words)
    region[first:, 0] += by


def replace(words: Words, field: Field, rows: Words) -> None:
    """Has a container hold just these rows, as :func:`entries` gives them; an engine that runs on
    the words has to be told (``ss_engine_state_changed``)."""
    of = _of(field)
    filled = len(rows)
    header = words[field.offset : field.offset + of.header_words]
    before = int(header[lib.SS_HEADER_USED])
    first, end = of.kept
    kept = header[first:end].copy()
    header[:] = 0
    header[first:end] = kept
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
