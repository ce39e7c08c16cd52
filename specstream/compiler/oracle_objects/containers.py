"""Containers of the state in the oracle, made of its words when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specstream.columns.strings import StringTable
from specstream.compiler.oracle_objects.codec import Codec, MachineCodec
from specstream.compiler.oracle_objects.entries import Journal, memory_entries
from specstream.compiler.oracle_objects.keyed import keyed
from specstream.compiler.oracle_objects.lookup import ABSENT, FoundEntries
from specstream.compiler.oracle_objects.memory_sequence import MemorySequence
from specstream.compiler.oracle_objects.records import RecordSlots
from specstream.compiler.oracle_objects.sequences import sequence
from specstream.declarations.container_words import Words, count, entries
from specstream.declarations.state_layout import Field

__all__ = ["Find", "key_of", "loaded"]

Find = Callable[[Field, Words], Words | None]
"""The words of an entry, without its stamp, by those of its key; None: there is none."""


def key_of(words: Words, field: Field, texts: StringTable | None) -> Any:
    """A key of a dict, a set or timers, made of its words."""
    assert field.container is not None
    return MachineCodec(texts).values(words.reshape(1, -1), field.container.key)[0]


def loaded(
    words: Words,
    field: Field,
    journal: Journal,
    texts: StringTable | None,
    met: list[Any],
    now: Callable[[], int],
    find: Find | None = None,
) -> Any:
    """The container of a field, a :class:`StateDict` or another, made of words of the state.

    ``met``: what :class:`RecordSlots` notes there;
    ``now``: gives the time of what runs; ``find``: an entry's words by those of its key, of one
    that is changed once and then forgotten."""
    of, codec = field.container, MachineCodec(texts)
    assert of is not None
    slots = None
    if of.value.record is not None:
        slots = RecordSlots(f"state.{field.name}", of.value, journal, met)
    given = words, journal, codec, slots
    if not of.is_keyed:
        return sequence(MemorySequence(field, *given), codec)
    found = None if find is None else _found(words, field, codec, slots, find)
    return keyed(memory_entries(field, *given, now, found), codec)


def _found(
    words: Words, field: Field, codec: Codec, slots: RecordSlots | None, find: Find
) -> FoundEntries:
    """The entries of a field as they are asked for."""
    of = field.container
    assert of is not None

    words_of = codec.to_words(of.key)

    def values_in(rows: Words) -> list[Any]:
        if not of.value.words:
            return [None] * len(rows)
        values = codec.values(rows[:, of.key.words :], of.value)
        return values if slots is None else list(map(slots.made, values))

    def value_of(key: Any) -> Any:
        if key is None:
            return ABSENT
        row = find(field, np.array(words_of(key), np.int64))
        return ABSENT if row is None else values_in(row.reshape(1, -1))[0]

    def all_of_them() -> dict[Any, Any]:
        rows = entries(words, field)
        return dict(zip(codec.values(rows, of.key), values_in(rows), strict=True))

    return FoundEntries(count(words, field), value_of, all_of_them)
