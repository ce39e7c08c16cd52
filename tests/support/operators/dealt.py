"""One table dealt out to several sources: what comes of them is what comes of one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from conftest import Result, assert_identical, partial_of, run_oracle

import specstream as ss
from support import contents

__all__ = ["assert_same_of_many_sources", "dealt", "of_sources"]

SOURCES = ("alpha", "beta", "gamma")
Piece = tuple[str, pa.Table]


def dealt(table: pa.Table, dice: int) -> tuple[pa.Table, list[Piece]]:
    """A table with a column ``time`` in the order of the events, and as pieces of three sources.

    Events of one time are dealt to different sources, and a source sends its own out of order too:
    so a number that counts one source's events says nothing about those of another one.
    """
    rng = np.random.default_rng(dice)
    source = rng.integers(0, len(SOURCES), table.num_rows)
    pieces: list[Piece] = []
    for number, name in enumerate(SOURCES):
        own = table.take(pa.array(np.flatnonzero(source == number)))
        pieces += [(name, own.slice(at, 9)) for at in range(0, own.num_rows, 9)]
    pieces = [pieces[at] for at in rng.permutation(len(pieces))]
    sent = pa.concat_tables([piece for _, piece in pieces])
    names = [name for name, piece in pieces for _ in range(piece.num_rows)]
    times = sent["time"].to_pylist()
    order = sorted(range(len(times)), key=lambda at: (times[at], names[at]))
    return sent.take(pa.array(order, pa.int64())), pieces


def of_sources(operator: ss.Operator, pieces: list[Piece], **options: Any) -> Result:
    """What an engine makes of these pieces, none of which is final before all are there."""
    parts, raised = [], []
    with ss.Engine(operator, sources=SOURCES, **options) as engine:
        for name, piece in pieces:
            engine.submit(piece, order_by="time", source=name)
        for name in SOURCES:
            engine.advance(name)
        while True:
            try:
                parts.append(engine.poll(timeout=None))
                break
            except Exception as error:
                parts.append(partial_of(error).output)
                row = -1 if hasattr(error, "specstream_timer") else 0
                raised.append((row, type(error).__name__, str(error)))
        return Result(pa.concat_tables(parts), contents.of_view(engine.state), tuple(raised))


def assert_same_of_many_sources(
    operator: ss.Operator, table: pa.Table, order_by: str | None, **options: Any
) -> None:
    """Events of several sources come to what one run over the merged table comes to.

    A table without times gets some, three events at a time.
    """
    if order_by is None:
        table = table.append_column("time", pa.array(np.arange(len(table)) // 3 - 7))
    elif order_by != "time":
        table = table.append_column("time", table[order_by])
    merged, pieces = dealt(table, len(table))
    expected = run_oracle(operator, merged, order_by="time", end=True)
    # Which row has raised is known of one table only.
    raised = tuple((min(row, 0), kind, text) for row, kind, text in expected.raised)
    found = of_sources(operator, pieces, **options)
    assert_identical(found, Result(expected.output, expected.state, raised))
