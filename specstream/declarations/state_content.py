"""What a state holds, apart from where it lies: what is copied, kept and compared of it.

The words of a state with containers are mostly addresses that were never touched, and where an
entry lies in them says nothing. So whoever copies a state, takes it back or writes it down has this
form of it: the words of the other fields one behind the other, and of each container its entries
or elements, in their order. Two states mean the same just if these are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.declarations import container_words
from specstream.declarations.codes import EMPTY
from specstream.declarations.containers import Container
from specstream.declarations.durations import TICKS
from specstream.declarations.element_types import Storage
from specstream.declarations.state_layout import Field, Layout
from specstream.files.untrusted import Buffer, Malformed, natural

__all__ = ["StateContent", "first_repeated", "fixed_words", "row_bytes", "row_codes"]

Words = npt.NDArray[np.int64]

_ONE_NAN = np.array(np.nan).view(np.int64)


@dataclass(frozen=True)
class StateContent:
    """What the state of one layout holds.

    Attributes:
        layout: of the state.
        fixed: words of the fields that are no containers, and those that the headers of containers
            keep, one behind the other.
        rows: of each container, in the order of ``layout.containers``, as
            :func:`specstream.declarations.container_words.entries` gives them; of a part of a
            state, none.
    """

    layout: Layout
    fixed: Words
    rows: tuple[Words, ...] = ()

    @classmethod
    def of(cls, layout: Layout, words: Words) -> StateContent:
        """A copy of what words hold."""
        seen = cls.seen(layout, words)
        is_view = len(layout.stretches) == 1
        return cls(layout, seen.fixed.copy() if is_view else seen.fixed, seen.rows)

    @classmethod
    def seen(cls, layout: Layout, words: Words) -> StateContent:
        """What words hold; of a state without containers a view, whose memory they share."""
        rows = tuple(container_words.entries(words, one) for one in layout.containers)
        return cls(layout, fixed_words(layout, words), rows)

    @classmethod
    def new(cls, layout: Layout) -> StateContent:
        """What a new state holds."""
        return cls.seen(layout, layout.allocate())

    def put_into(self, words: Words) -> None:
        """Has words of the same layout hold just this; an engine that runs on them has to be told
        (``Native.state_changed``)."""
        at = 0
        for first, end in self.layout.stretches:
            words[first:end] = self.fixed[at : at + end - first]
            at += end - first
        for field, rows in zip(self.layout.containers, self.rows, strict=True):
            container_words.replace(words, field, rows)

    def words(self) -> Words:
        """New words that hold this."""
        made = self.layout.allocate()
        self.put_into(made)
        return made

    def elements(self, field: Field) -> npt.NDArray[Any]:
        """The elements of a field that is no container, over :attr:`fixed`."""
        at = 0
        for first, end in self.layout.stretches:
            if first <= field.offset < end:
                return self.layout.elements(self.fixed, field, at + field.offset - first)
            at += end - first
        raise AssertionError(field.name)

    def kept(self, field: Field) -> Words:
        """The words of ``field.kept``, over :attr:`fixed`."""
        at, (begin, end) = 0, field.kept
        for first, last in self.layout.stretches:
            if first <= begin < last:
                return self.fixed[at + begin - first : at + end - first]
            at += last - first
        return self.fixed[:0]  # of most containers

    def records(self, field: Field) -> Words:
        """The records of a field that holds some, a row for each."""
        return self.elements(field).reshape(-1, field.shape[-1])

    def rows_of(self, field: Field) -> Words:
        """The rows of a field that is a container."""
        return dict(zip(self._names, self.rows, strict=True))[field.name]

    @property
    def _names(self) -> list[str]:
        return [field.name for field in self.layout.containers]

    @property
    def codes(self) -> Words:
        """The codes of all strings in it."""
        return np.concatenate([np.empty(0, np.int64), *self.codes_by_field.values()])

    @property
    def codes_by_field(self) -> dict[str, Words]:
        """The codes of the strings that each field holds."""
        found = self.fixed_codes
        for field, rows in zip(self.layout.containers, self.rows, strict=bool(self.rows)):
            found[field.name] = row_codes(field, rows)
        return found

    @property
    def fixed_codes(self) -> dict[str, Words]:
        """The same of the fields that are no containers."""
        found = {field.name: self.elements(field).reshape(-1) for field in self.layout.texts}
        for field in self.layout.plain:
            if field.record is not None:
                found[field.name] = _texts_in(field.record.parts, self.records(field))
        return found

    # ---- as bytes ----

    def buffers(self) -> list[Buffer]:
        """Its bytes, in parts that share its memory; words in little-endian order."""
        return [row_bytes(part) for part in (self.fixed, *self.rows)]

    @staticmethod
    def size(layout: Layout, counts: Sequence[int]) -> int:
        """How many bytes these are, where containers have so many rows.

        Raises:
            Malformed: there cannot be so many; names the field.
        """
        if len(counts) != len(layout.containers):
            raise Malformed(
                f"state {layout.name!r} has rows of {len(counts)} containers, and its fields have "
                f"{len(layout.containers)}"
            )
        words = sum(end - first for first, end in layout.stretches)
        for field, count in zip(layout.containers, counts, strict=True):
            natural(count, f"field {field.name!r}: its number of rows", _of(field).most)
            words += count * _of(field).row_words
        return 8 * words

    @classmethod
    def from_bytes(cls, layout: Layout, content: Buffer, counts: Sequence[int]) -> StateContent:
        """What :meth:`buffers` gave, of :meth:`size` bytes, checked; it shares their memory.

        Raises:
            Malformed: no state holds that; names the field.
        """
        words = np.frombuffer(content, "<i8").astype(np.int64, copy=False)
        at = sum(end - first for first, end in layout.stretches)
        fixed, rows = words[:at], []
        for field, count in zip(layout.containers, counts, strict=True):
            width = _of(field).row_words
            rows.append(words[at : at + count * width].reshape(count, width))
            at += count * width
        made = cls(layout, fixed, tuple(rows))
        made.check()
        return made

    def check(self) -> None:
        """Looks whether a state can hold that; whether codes are of strings is not looked at.

        Raises:
            Malformed: a bool is neither 0 nor 1, a NaN has other bits than all, a key is there
                twice, a container has more than it may; names the field.
        """
        for field in self.layout.plain:
            if field.record is not None:
                _check_columns(field.record.parts, self.records(field), f"field {field.name!r}")
            if field.kind == "bool":
                elements = self.elements(field)
                bits = elements.view(np.uint64 if field.storage.size == 8 else np.uint8)
                if bits.max() > 1:
                    raise Malformed(f"field {field.name!r} is of type bool and holds {bits.max()}")
        for field in self.layout.lasting:
            tick = int(self.kept(field)[0])
            if tick not in (0, *TICKS):
                raise Malformed(f"field {field.name!r} has times that are {tick} ns apart")
        for field, rows in zip(self.layout.containers, self.rows, strict=True):
            _check_rows(field, rows)


def _of(field: Field) -> Container:
    assert field.container is not None
    return field.container


def _parts(field: Field) -> tuple[Any, ...]:
    """The element types of a row."""
    return _of(field).key.parts + _of(field).value.parts


def row_codes(field: Field, rows: Words) -> Words:
    """The codes of the strings in rows of a container."""
    return _texts_in(_parts(field), rows)


def _texts_in(parts: tuple[Storage, ...], rows: Words) -> Words:
    texts = [rows[:, at] for at, of in enumerate(parts) if of.number == "str"]
    return np.concatenate([np.empty(0, np.int64), *texts])


def _check_rows(field: Field, rows: Words) -> None:
    of, what = _of(field), f"field {field.name!r}"
    natural(len(rows), f"{what}: its number of rows", of.most)
    _check_columns(_parts(field), rows, what)
    twice = first_repeated(rows[:, : of.key.words]) if of.is_keyed else None
    if twice is not None:
        raise Malformed(f"{what} has the key of row {twice} twice")


def _check_columns(parts: tuple[Storage, ...], rows: Words, what: str) -> None:
    for at, part in enumerate(parts):
        column = rows[:, at]
        if part.number == "bool" and ((column < 0) | (column > 1)).any():
            strange = column[(column < 0) | (column > 1)]
            raise Malformed(f"{what} holds a bool that is {strange[0]}")
        if part.number == "str" and (column == EMPTY).any():
            raise Malformed(f"{what} holds an empty string with the code {EMPTY}; expected 0")
        if part.number == "float":
            isnan = np.isnan(np.ascontiguousarray(column).view(np.float64))
            if (column[isnan] != _ONE_NAN).any():
                raise Malformed(f"{what} holds a NaN with other bits than all NaNs of a state")


def first_repeated(keys: Words) -> int | None:
    """A row that is there before, too; None: there is none."""
    order = np.lexsort(keys.T)
    ordered = keys[order]
    same = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    # Sorted stably: the later of two is the later row.
    return int(order[same + 1].min()) if len(same) else None


def fixed_words(layout: Layout, words: Words) -> Words:
    """The words of the fields that are no containers; where there are no containers a view."""
    parts = [words[first:end] for first, end in layout.stretches]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])


def row_bytes(words: Words) -> memoryview:
    """The bytes of words, little-endian, without a copy where they lie one behind the other."""
    flat = np.ascontiguousarray(words.astype("<i8", copy=False)).reshape(-1)
    # An empty array cannot be cast.
    return flat.data.cast("B") if len(flat) else memoryview(b"")
