"""Emitted formatted strings, put together of their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.strings import StringTable
from specstream.declarations.forms import MOST_TOLD, Form, kinds_of, number_of
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
                _part(rows[which, at + 1 + form.place(number) :], kind, form, strings)
                for number, kind in enumerate(kinds_of(head, form.count))
            ]
            made = [form.function(*one) for one in zip(*parts, strict=True)]
            texts[which] = np.array(made or [form.function()] * int(which.sum()), object)
        found[column] = heads != 0, texts[heads != 0].tolist()
    return found


def _part(words: npt.NDArray[np.int64], kind: str, form: Form, strings: StringTable) -> list[Any]:
    """A part of several rows; its words begin theirs."""
    if kind != "error":
        return _values(np.ascontiguousarray(words[:, 0]), kind, strings)
    assert form.made is not None
    made: list[Any] = [None] * len(words)
    for packed in np.unique(words[:, 1]).tolist():
        which = np.flatnonzero(words[:, 1] == packed)
        parts = [
            _values(np.ascontiguousarray(words[which, 2 + at]), kind, strings)
            for at, kind in enumerate(kinds_of(packed, MOST_TOLD))
        ]
        for row, status, *told in zip(which, words[which, 0].tolist(), *parts, strict=True):
            made[row] = form.made(status, told)
    return made


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
