"""What stands, early rows and final ones, by what a sink of early results has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from specstream import early
from specstream.declarations.options import refuses_unknown
from specstream.errors import InputError
from specstream.sinks.early_database import EarlyDatabaseSink
from specstream.sinks.early_delta import EarlyDeltaSink
from specstream.sinks.memory import MemorySink
from specstream.sinks.parquet import ParquetSink

__all__ = ["latest"]


@refuses_unknown
def latest(
    log: (
        pa.Table
        | Iterable[pa.Table]
        | EarlyDatabaseSink
        | EarlyDeltaSink
        | MemorySink
        | ParquetSink
    ),
    *,
    by: str | Sequence[str] = (),
) -> pa.Table:
    """The rows that stand, read from what ``early_to=`` was given.

    Args:
        log: a sink that was given as ``early_to=``, or one that is made like it, in another
            process: :func:`early_delta_sink`, :func:`early_database_sink`, :func:`parquet_sink` or
            :func:`memory_sink`; or tables, as a function gets them.
        by: as of :func:`specstream.early.latest`.

    Returns:
        As of :func:`specstream.early.latest`; without columns where nothing has come yet.

    Raises:
        InputError: these are no changes, or have no column of ``by``.

    >>> import pyarrow as pa
    >>> from specstream.sinks import memory_sink
    >>> sink = memory_sink("early")
    >>> key = {"timestamp": [7], "source": ["b"], "sequence": [0], "n": [0]}
    >>> sink(pa.table(key | {"price": [3.5], "change": ["early"], "version": [1]}), 0)
    >>> sink(pa.table(key | {"price": [3.0], "change": ["final"], "version": [2]}), 1)
    >>> latest(sink)["price"].to_pylist()
    [3.0]
    """
    tables: Any
    if isinstance(log, EarlyDatabaseSink | EarlyDeltaSink):
        found = log.read()
        tables = [] if found is None else [found]
    elif isinstance(log, MemorySink):
        tables = list(log.batches.values())
    elif isinstance(log, ParquetSink):
        tables = [one.to_table() for one in log.dataset().get_fragments()]
    elif isinstance(log, pa.Table | Iterable):
        tables = log
    else:
        raise InputError(
            f"ss.sinks.latest: log is a {type(log).__name__}; expected a sink that keeps changes, "
            "or tables of them"
        )
    if isinstance(tables, list) and not tables:
        return pa.table({})
    return early.latest(tables, by=by)
