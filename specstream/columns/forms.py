"""Emitted formatted strings, put together of their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.strings import StringTable
from specstream.declarations.forms import kinds_of, number_of
from specstream.declarations.schema import Schema

__all__ = ["formed_texts"]


def formed_texts(
    rows: npt.NDArray[np.int64], schema: Schema, strings: StringTable
) -> dict[int, tuple[npt.NDArray[np.bool_], list[str]]]:
    """Of each column that has such strings: the rows that have one, and their texts."""
    found = {}
    for column, at in schema.form_words.items():
        heads = rows[:, at]
        texts = np.empty(len(rows), object)
        for head in np.unique(heads[heads != 0]).tolist():
            form = schema.forms[number_of(head)]
            which = heads == head
            parts = [
                _values(np.ascontiguousarray(rows[which, at + 1 + place]), kind, strings)
                for place, kind in enumerate(kinds_of(head, form.count))
            ]
            made = [form.function(*one) for one in zip(*parts, strict=True)]
            texts[which] = np.array(made or [form.function()] * int(which.sum()), object)
        found[column] = heads != 0, texts[heads != 0].tolist()
    return found


def _values(words: npt.NDArray[np.int64], kind: str, strings: StringTable) -> list[Any]:
    """Words as the values that they are."""
    if kind == "str":
        codes, places = np.unique(words, return_inverse=True)
        texts = strings.texts(codes).to_pylist()
        return [texts[place] for place in places.tolist()]
    if kind == "bool":
        return list((words != 0).tolist())
    views = {"float": np.float64, "uint": np.uint64}
    return list(words.view(views.get(kind, np.int64)).tolist())
