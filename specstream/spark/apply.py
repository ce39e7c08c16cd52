"""A back-test: an operator over a static DataFrame, with the answer of one sequential run.

Rows reach the driver in their order and as Arrow, one piece of at most 100,000 rows after the
other. ``DataFrame.sort(...).toArrow()`` would hold all of them at once, in the JVM and here;
``toLocalIterator`` alone fetches partition after partition, but row by row. So the sorted
partitions are packed into Arrow pieces by Spark's own workers, and the local iterator fetches
pieces. The driver holds two sorted partitions and what the operator emits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specstream.columns import compute as pc
from specstream.columns.events import column
from specstream.declarations.options import instance
from specstream.declarations.state_view import StateView
from specstream.definition.operator import Operator
from specstream.engine.engine import Engine, check_engine_options
from specstream.engine.options import checked_operator
from specstream.errors import ConfigurationError
from specstream.spark import packing
from specstream.spark.fetching import reason, result_is_too_large
from specstream.spark.needed import check_columns

__all__ = ["Applied", "apply", "needed_columns"]


@dataclass(frozen=True)
class Applied:
    """What :func:`apply` made of a DataFrame.

    Attributes:
        output: emitted rows, in order: a pyarrow Table; of a pipeline with several sinks a dict of
            tables, by sink.
        state: the state after the last event.
        snapshot: to go on from: ``restore=`` of another call, of an engine, of a stream's engine.
        events: number of events.
        failed_events: with ``errors="side"`` those that were set aside, as
            :meth:`specstream.Engine.failed_events` gives them; None: there are none.
    """

    output: Any
    state: StateView
    snapshot: bytes
    events: int
    failed_events: pa.Table | None = None


def needed_columns(
    frame: DataFrame, operator: Operator, order_by: str | None, source: str | None, option: str
) -> list[str]:
    """The columns of a DataFrame, given as ``option``, that a run of the operator reads.

    Raises:
        DeclarationError: ``operator`` is none.
        ConfigurationError: ``order_by`` or ``source`` is no name.
        InputError: the DataFrame lacks one of the columns; names it.
    """
    instance(option, frame, DataFrame, "a DataFrame of Spark")
    checked_operator(operator)
    named = {"order_by": column("order_by", order_by), "source": column("source", source)}
    what = f"operator {operator.name!r}"
    return check_columns(
        frame, operator, named, what, "the DataFrame", "select or rename it before"
    )


def apply(
    df: DataFrame,
    operator: Operator,
    *,
    order_by: str | None,
    source: str | None = None,
    restore: bytes | None = None,
    **engine_options: Any,
) -> Applied:
    """Runs an operator over a static DataFrame, in one engine on the driver.

    Output and state are those of ``operator.run_sequential`` over the rows in the order
    (``order_by``, ``source``, position), whatever partitions they come in. The position is that of
    the row in the DataFrame, partition by partition. It says something for rows that were read from
    files or made from a table; behind a join or an aggregation Spark gives rows in no certain
    order, and ``order_by`` and ``source`` together have to tell them apart.

    Rows are sorted by Spark and fetched in pieces of at most 100,000: the driver never holds all
    input, but all output.

    Args:
        df: the DataFrame; not a streaming one. For a pipeline with several sources what
            :func:`union` makes of one of each.
        operator: made by :func:`specstream.operator`.
        order_by: column of the event time; None: rows keep their position.
        source: column that tells apart the sources of events with equal times.
        restore: a snapshot to start from. Options are not in it: give ``seed=``, ``order_by`` and
            ``source`` as in the call that it is from, and the two are one run.
        engine_options: as for :class:`specstream.Engine`: ``threads=``, ``seed=``, ``keys=`` ...

    Returns:
        The emitted rows as a pyarrow Table, the state, and a snapshot of it. The rows are already
        on the driver: write them with pyarrow, or give them back to Spark with
        ``session.createDataFrame(applied.output)``.

    Raises:
        ConfigurationError: ``df`` is a stream, or an option has a value that it cannot have.
        InputError: a column is missing, or its values do not fit the operator.
        Exception: what the operator raised, as from :meth:`specstream.Engine.process`; but its
            ``specstream_partial`` counts from the first row of the failing piece on.
        RuntimeError: Spark could not hand the rows over; says why.

    ::

        applied = ss.spark.apply(session.read.parquet(path), operator, order_by="time")
        applied.output, applied.state.total
    """
    columns = needed_columns(df, operator, order_by, source, "df")
    source = operator.source_column(source)
    check_engine_options(apply, engine_options)
    if df.isStreaming:
        raise ConfigurationError(
            f"operator {operator.name!r}: apply= takes a static DataFrame, and this one is a "
            "stream: use ss.spark.foreach_batch or ss.spark.sharded"
        )
    position = _unused("position", df.columns)
    keys = [df[packing.quoted(c)] for c in (order_by, source) if c is not None]
    # Spark's sort is not stable, hence the position. Its order of numbers, times and strings is
    # that of an engine, so a piece holds no event that belongs before an earlier piece.
    ordered = df.withColumn(position, F.monotonically_increasing_id()).sort(*keys, position)
    pieces = packing.pack(ordered, columns, F.lit(0)).select("rows")
    parts: list[Any] = []
    events = 0
    waiting: pa.Table | None = None  # of phases by time, where the next piece may have more of one
    order: dict[str, Any] = {"order_by": order_by, "source": source}
    order["end"] = bool(operator.event.phases)  # each piece has whole times
    with Engine(operator, restore=restore, **engine_options) as engine:
        for piece in _fetched(pieces, f"operator {operator.name!r}"):
            table = packing.to_table(piece)
            events += table.num_rows
            if order_by is not None and operator.event.phases:
                table, waiting = _cut(waiting, table, order_by)
            parts.append(engine.process(table, **order))
        if waiting is not None:
            parts.append(engine.process(waiting, **order))
        if not parts:
            empty = packing.empty_table(df.select(*map(packing.quoted, columns)))
            parts.append(engine.process(empty, **order))
        failed = engine.failed_events()
        return Applied(_joined(parts), engine.state, engine.snapshot(), events, failed)


def _cut(waiting: pa.Table | None, piece: pa.Table, order_by: str) -> tuple[pa.Table, pa.Table]:
    """What waits and a piece, which are in order, before the last time and from it on."""
    table = piece if waiting is None else pa.concat_tables([waiting, piece])
    at = 0
    if table.num_rows:
        at = max(pc.index(table[order_by], table[order_by][-1]).as_py(), 0)
    return table.slice(0, at), table.slice(at)


def _joined(parts: list[Any]) -> Any:
    """One after the other; of a pipeline with several sinks, of each sink."""
    if isinstance(parts[0], dict):
        return {name: pa.concat_tables([one[name] for one in parts]) for name in parts[0]}
    return pa.concat_tables(parts)


def _fetched(pieces: DataFrame, what: str) -> Iterator[bytes]:
    try:
        for (piece,) in pieces.toLocalIterator(prefetchPartitions=True):
            yield piece
    except Py4JError as error:
        why = reason(error)
        hint = (
            ": make the session with a larger spark.driver.maxResultSize (0: no limit), or sort "
            "into smaller partitions, with a larger spark.sql.shuffle.partitions"
        )
        raise RuntimeError(
            f"{what}: Spark failed while rows were fetched ({why})"
            f"{hint if result_is_too_large(why) else ''}"
        ) from error


def _unused(name: str, taken: list[str]) -> str:
    lower = {column.lower() for column in taken}
    while name in lower:
        name += "_"
    return name
