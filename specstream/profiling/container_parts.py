"""Which part of a container a word of the state is, as an operator would write it."""

from __future__ import annotations

from typing import Any

import numpy as np

from specstream._native import lib
from specstream.declarations.codes import EMPTY, Texts
from specstream.declarations.container_words import Words
from specstream.declarations.element_types import Storage
from specstream.declarations.state_layout import Field, Layout

__all__ = ["container_of", "part_of"]


def container_of(layout: Layout, word: int) -> Field | None:
    """The container whose header or region a word lies in."""
    for field in layout.containers:
        of = field.container
        assert of is not None
        if 0 <= word - field.offset < field.words or 0 <= word - of.region < of.region_words:
            return field
    return None


def part_of(field: Field, word: int, words: Words, texts: Texts) -> str:
    """What the word stands for: ``positions['IBM']``, ``len(positions)``, ``recent[2]``.

    Args:
        field: that :func:`container_of` gives.
        word: number of the word in the state.
        words: the state as it is now: a key that is no longer there is not named.
        texts: strings by their codes.
    """
    of = field.container
    assert of is not None
    at = word - field.offset
    if 0 <= at < field.words:
        if at == lib.SS_HEADER_COUNT:
            return f"len({field.name})"
        if at == lib.SS_HEADER_CHANGES:
            return f"{field.name} (which keys there are)"
        is_absence = at >= lib.SS_HEADER_WORDS
        return f"{field.name} ({'keys that are not there' if is_absence else 'where it lies'})"
    number = (word - of.region) // of.entry_words
    if not of.is_keyed:
        start, ring = (
            int(words[field.offset + place])
            for place in (lib.SS_HEADER_START, lib.SS_HEADER_CAPACITY)
        )
        return f"{field.name}[{(number - start) % ring if ring else number}]"
    entry = of.region + number * of.entry_words
    if words[entry] == 0:
        return f"{field.name}[a key that was removed]"
    parts = [
        _shown(storage, int(words[entry + 1 + place]), texts)
        for place, storage in enumerate(of.key.parts)
    ]
    return f"{field.name}[{', '.join(parts)}]"


def _shown(storage: Storage, word: int, texts: Texts) -> str:
    value: Any = word
    if storage.number == "str":
        value = texts(np.array([word or EMPTY], np.int64))[0]
    elif storage.number == "bool":
        value = bool(word)
    return repr(value)
