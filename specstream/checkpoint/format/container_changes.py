"""What has changed in the containers of a state from one micro-batch to the next.

Entries are compared, not blocks of memory: a batch that updates a thousand keys of a million
touches a thousand pages, and a thousand entries say all of it. Nor do the files depend on where
entries lie in memory, so that a chain of them gives the same rows as a full one.

A change is: which of the rows before are not there any more, how many rows came in front of those
that are left, how many there are in the end, and the rows that are not what was at their place. Any
change can be said so. How rows before and after belong together, their stamps tell, or the place
where a deque begins; where these mislead, the change is longer, and as right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specstream._native import lib
from specstream.declarations.container_words import stamped
from specstream.declarations.containers import Container
from specstream.declarations.state_content import row_bytes
from specstream.declarations.state_layout import Field, Layout
from specstream.files.untrusted import Buffer, Malformed, natural

__all__ = ["Held", "applied", "changes"]

Words = npt.NDArray[np.int64]

# Before a container's change: its rows removed, put in front, there in the end, and changed.
_HEAD = 4


@dataclass(frozen=True)
class Held:
    """What a container held at one time.

    Attributes:
        rows: as :func:`specstream.declarations.container_words.entries` gives them.
        stamps: of the entries, ascending; none of a sequence.
        start: where the ring of a deque begins, and
        ring: its length.
    """

    rows: Words
    stamps: Words
    start: int
    ring: int

    @classmethod
    def of(cls, words: Words, field: Field) -> Held:
        """What it holds now; a copy."""
        stamps, rows = stamped(words, field)
        start, ring = (
            int(words[field.offset + at]) for at in (lib.SS_HEADER_START, lib.SS_HEADER_CAPACITY)
        )
        return cls(rows, stamps, start, ring)


def changes(before: Iterable[Held], after: Iterable[Held]) -> list[Buffer]:
    """The changes of all containers, as parts of a section."""
    return [row_bytes(part) for pair in zip(before, after, strict=True) for part in _change(*pair)]


def _change(before: Held, after: Held) -> list[Words]:
    removed, front = _removed(before, after)
    left = np.delete(before.rows, removed, axis=0) if len(removed) else before.rows
    count = len(after.rows)
    both = min(len(left), count - front)
    differs = np.ones(count, np.bool_)
    middle = after.rows[front : front + both]
    differs[front : front + both] = (middle != left[:both]).any(axis=1)
    changed = np.flatnonzero(differs)
    head = np.array([len(removed), front, count, len(changed)], np.int64)
    return [head, removed, changed, after.rows[changed]]


def _removed(before: Held, after: Held) -> tuple[Words, int]:
    """Which rows are not there any more, and how many have come before the others."""
    none = np.empty(0, np.int64)
    if len(before.stamps) and len(after.stamps):
        same = min(len(before.stamps), len(after.stamps))
        if np.array_equal(before.stamps[:same], after.stamps[:same]):
            return none, 0
        at = np.searchsorted(after.stamps, before.stamps)
        at[at == len(after.stamps)] = 0
        return np.flatnonzero(after.stamps[at] != before.stamps), 0
    if before.ring and before.ring == after.ring:
        shift = (after.start - before.start) % after.ring
        if shift <= len(before.rows):
            return np.arange(shift), 0
        return none, min(after.ring - shift, len(after.rows))
    return none, 0


def applied(layout: Layout, before: Sequence[Words], section: Buffer) -> tuple[Words, ...]:
    """The rows of all containers after the changes of a section.

    Raises:
        Malformed: they are none of such rows; names the field.
    """
    if len(section) % 8:
        raise Malformed("its changes of containers are no whole words")
    left = np.frombuffer(section, "<i8").astype(np.int64, copy=False)
    found = []
    for field, rows in zip(layout.containers, before, strict=True):
        assert field.container is not None
        made, left = _applied(f"field {field.name!r}", field.container, rows, left)
        found.append(made)
    if len(left):
        raise Malformed(f"its changes of containers have {len(left)} words too many")
    return tuple(found)


def _applied(what: str, of: Container, before: Words, section: Words) -> tuple[Words, Words]:
    """The rows after the change that a section begins with, and the rest of the section."""
    head, rest = section[:_HEAD].tolist(), section[_HEAD:]
    if len(head) < _HEAD:
        raise Malformed(f"{what}: its change is cut short")
    natural(head[0], f"{what}: rows removed", len(before))
    natural(head[2], f"{what}: rows", of.most)
    natural(head[1], f"{what}: rows in front", head[2])
    natural(head[3], f"{what}: rows changed", head[2])
    gone, front, count, new = head
    ends = np.cumsum([gone, new, new * of.row_words]).tolist()
    if ends[-1] > len(rest):
        raise Malformed(f"{what}: its change is cut short")
    removed, changed = rest[: ends[0]], rest[ends[0] : ends[1]]
    for places, length in ((removed, len(before)), (changed, count)):
        is_in_order = (places[1:] > places[:-1]).all()
        if len(places) and not (is_in_order and places[0] >= 0 and places[-1] < length):
            raise Malformed(f"{what}: its change has places that are not some of {length} in order")
    left = np.delete(before, removed, axis=0) if gone else before
    kept = min(len(left), count - front)
    if count - kept > new:  # also: a short section cannot ask for much memory
        raise Malformed(f"{what}: its change has {new} rows, and {count - kept} are new")
    made = np.zeros((count, of.row_words), np.int64)
    made[front : front + kept] = left[:kept]
    made[changed] = rest[ends[1] : ends[2]].reshape(new, of.row_words)
    return made, rest[ends[2] :]
