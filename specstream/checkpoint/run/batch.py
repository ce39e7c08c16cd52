"""A micro-batch on its way: the rows that came, and what the sinks are to have of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

__all__ = ["OF_SOURCES", "Batch", "Result"]

# The query of batches that come from a source without Spark, whose own ids are UUIDs.
OF_SOURCES = "specstream.sources"


@dataclass(frozen=True)
class Batch:
    """Rows that are to be run under one id.

    Attributes:
        batch_id: ids follow each other; a batch that comes again has the same one.
        query: id of the query that it belongs to; None for a batch given by hand.
        rows: what came; None: the stream ends, and what waits is committed.
        reading: seconds that it took to fetch the rows, and to keep them.
        run: id of the query's present run, which is another one whenever it is started.
        position: where the source stands behind the rows, to be recorded with them; None: whoever
            sends the batch knows.
    """

    batch_id: int
    query: str | None
    rows: pa.Table | None
    reading: float = 0.0
    run: str | None = None
    position: bytes | None = None


class Result(NamedTuple):
    """What a batch has for the sinks.

    Attributes:
        output: what it has emitted, for all sinks of a pipeline in one table.
        late: late rows for a sink; None: there are none, or no sink.
        rejected: likewise.
        early: rows that have become final, as early results tell them; None: nobody asks.
        failed: failed events for a sink; None: there are none, or no sink.
    """

    output: pa.Table
    late: pa.Table | None = None
    rejected: pa.Table | None = None
    early: pa.Table | None = None
    failed: pa.Table | None = None
