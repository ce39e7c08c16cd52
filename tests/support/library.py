"""What every operator of the library is tested by: all paths, and plain Python.

What its numbers ought to be is for the test that calls this, from an independent implementation.
"""

from __future__ import annotations

import zlib
from typing import Any

import pyarrow as pa
import witness

import specstream as ss

__all__ = ["agrees"]


def agrees(
    operator: ss.Operator,
    table: pa.Table,
    order_by: str | None = None,
    replaced: dict[Any, Any] | None = None,
    left_out: int = 0,
    are_none: bool = False,
) -> ss.SequentialRun:
    """The sequential run over a table, which settings of all kinds and the witness agree with.

    Args:
        operator: one of the library.
        table: its events, in the order of ``order_by`` if there is that.
        order_by: the column of their times; the witness goes by these as well.
        replaced: functions that have another meaning under plain Python: hashes, which wrap on
            purpose.
        left_out: events at most that the witness may leave out, as their integers leave 64 bits.
        are_none: whether the operator asks for nulls by ``is None``.
    """
    # A third of the settings for one operator, others for another one: all are run every day.
    turn = zlib.crc32(operator.name.encode()) % 3
    settings = ss.testing.settings()[turn::3]
    found: ss.SequentialRun = ss.testing.check(
        operator, table, order_by=order_by, settings=settings
    )
    if order_by is not None:
        assert replaced is None, "the witness takes functions of another meaning without times only"
        with_source = table.append_column("source", pa.array([0] * len(table), pa.int64()))
        seen = witness.assert_agrees_in_time(operator, with_source, 0, are_none, order_by, "source")
        kept = len(seen.kept)
    else:
        kept = witness.assert_agrees(operator, table, replaced=replaced, are_none=are_none)
    assert kept >= len(table) - left_out, f"{len(table) - kept} events were not compared"
    return found
