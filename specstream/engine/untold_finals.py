"""Rows that are final, and of which no early answer has told it yet, as a snapshot keeps them.

An engine that begins with the snapshot tells of them first. Words as they were gathered, with the
names of the sources beside them; strings are codes, and their texts are in the snapshot.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import lib
from specstream.engine.sources import Name
from specstream.files.arrow_stream import stream_of
from specstream.files.untrusted import Malformed, json_of, made_of, read_table

__all__ = ["UntoldFinals"]

_WHAT = "the early results"


@dataclass(frozen=True)
class _About:
    """The schema's metadata."""

    final: tuple[int, int | str | None, int] | None


@dataclass(frozen=True)
class UntoldFinals:
    """Those of one engine.

    Attributes:
        rows: of each its event's time, the place of its source among the names, its sequence
            number, its place among the event's rows, and the row as it was emitted.
        is_told: of each row, whether it was told as an early one.
        names: of each row, its source; None: it is a timer's.
        final: (timestamp, source, sequence) of the last event that is final; None: there is none.
    """

    rows: npt.NDArray[np.int64]
    is_told: npt.NDArray[np.bool_]
    names: list[Name | None]
    final: tuple[int, Name | None, int] | None

    def to_bytes(self) -> bytes:
        """As :meth:`read` takes it."""
        texts = [name if isinstance(name, str) else None for name in self.names]
        numbers = [name if isinstance(name, int) else None for name in self.names]
        columns = {
            "told": pa.array(self.is_told),
            "name": pa.array(texts, pa.string()),
            "number": pa.array(numbers, pa.int64()),
            **{str(at): pa.array(words) for at, words in enumerate(self.rows.T)},
        }
        about = json.dumps({"final": self.final})
        return bytes(stream_of(pa.table(columns).replace_schema_metadata({"about": about})))

    @classmethod
    def read(cls, content: bytes, row_words: int) -> UntoldFinals | None:
        """What :meth:`to_bytes` gave, checked; None: there is nothing.

        Args:
            content: as a snapshot has it.
            row_words: of an emitted row.

        Raises:
            Malformed: it is something else, or of other rows.
        """
        if not content:
            return None
        table = read_table(content, _WHAT)
        words = [str(at) for at in range(lib.SS_KEY_WORDS + row_words)]
        types = {"told": pa.bool_(), "name": pa.string(), "number": pa.int64()}
        expected = pa.schema({**types, **dict.fromkeys(words, pa.int64())})
        if not table.schema.equals(expected):
            raise Malformed(f"{_WHAT} have the columns {table.column_names}, of other rows")
        if any(table[name].null_count for name in ("told", *words)):
            raise Malformed(f"{_WHAT} have nulls")
        about = made_of(
            json_of((table.schema.metadata or {}).get(b"about", b""), _WHAT), _About, _WHAT
        )
        rows = np.column_stack([table[name].to_numpy() for name in words])
        texts, numbers = table["name"].to_pylist(), table["number"].to_pylist()
        names = [
            number if text is None else text for text, number in zip(texts, numbers, strict=True)
        ]
        return cls(rows, table["told"].to_numpy(), names, about.final)
