"""What every operator of the library is tested by: all paths, and plain Python.

What its numbers ought to be is for the test that calls this, from an independent implementation.
"""

from __future__ import annotations

import zlib
from typing import Any

import pyarrow as pa

import specstream as ss
from support import witness
from support.operators.dealt import assert_same_of_many_sources

__all__ = ["agrees", "checked"]


def some_settings(name: str) -> list[ss.testing.Setting]:
    """A third of the settings for one operator, others for another one: all are run every day.

    They are of one protocol, as each is compiled for by itself.
    """
    turn = zlib.crc32(name.encode())
    protocol = ("value", "eager")[turn % 2]
    of_both = [one for one in ss.testing.settings() if not one.options.get("horizon", 1)]
    fitting = [
        one
        for one in ss.testing.settings()
        if one not in of_both and one.options.get("protocol", "value") == protocol
    ]
    # There are twice as many of the protocol that is the default.
    step = 2 if protocol == "value" else 1
    return [of_both[turn // 2 % len(of_both)], *fitting[turn // 2 % step :: step]]


def checked(operator: ss.Operator | ss.Pipeline, table: Any, **options: Any) -> ss.SequentialRun:
    """The sequential run over a table, which some settings agree with."""
    found: ss.SequentialRun = ss.testing.check(
        operator, table, settings=some_settings(operator.name), **options
    )
    return found


def agrees(
    operator: ss.Operator,
    table: pa.Table,
    order_by: str | None = None,
    replaced: dict[Any, Any] | None = None,
    left_out: int = 0,
    are_none: bool = False,
    draws: bool = False,
) -> ss.SequentialRun:
    """The sequential run over a table, which settings of all kinds and the witness agree with.

    So does an engine that gets the same events from several sources, with a run over the table in
    the order in which these come together.

    Args:
        operator: one of the library.
        table: its events, in the order of ``order_by`` if there is that.
        order_by: the column of their times; the witness goes by these as well.
        replaced: functions that have another meaning under plain Python: hashes, which wrap on
            purpose.
        left_out: events at most that the witness may leave out, as their integers leave 64 bits.
        are_none: whether the operator asks for nulls by ``is None``.
        draws: whether its answer depends on random numbers, which are those of an event's source.
    """
    found = checked(operator, table, order_by=order_by)
    if not draws:
        fitting = next(one for one in some_settings(operator.name) if one.options.get("horizon"))
        assert_same_of_many_sources(operator, table, order_by, **fitting.options)
    if order_by is not None:
        assert replaced is None, "the witness takes functions of another meaning without times only"
        with_source = table.append_column("source", pa.array([0] * len(table), pa.int64()))
        seen = witness.assert_agrees_in_time(operator, with_source, 0, are_none, order_by, "source")
        kept = len(seen.kept)
    else:
        kept = witness.assert_agrees(operator, table, replaced=replaced, are_none=are_none)
    assert kept >= len(table) - left_out, f"{len(table) - kept} events were not compared"
    return found
