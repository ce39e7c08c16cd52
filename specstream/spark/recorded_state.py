"""The state of a stream at a batch, from its checkpoint, as a DataFrame."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession

from specstream.checkpoint.inspect import recorded_state
from specstream.declarations.options import instance, refuses_unknown
from specstream.errors import ConfigurationError

__all__ = ["checkpoint_state"]


@refuses_unknown
def checkpoint_state(
    session: SparkSession,
    checkpoint: str | os.PathLike[str],
    field: str,
    batch: int | None = None,
) -> DataFrame:
    """A field of the state that a stream had after a micro-batch, as a static DataFrame.

    The driver reads the files. Nothing is written or locked, and the query may be running.

    Args:
        session: the Spark session.
        checkpoint: as of :func:`specstream.checkpoint_state`.
        field: the field: a row for each entry of a container and each element of an array, with the
            columns that ``engine.state.table(field)`` has.
        batch: as of :func:`specstream.checkpoint_state`.

    Raises:
        ConfigurationError: there is no such directory, file or field.
        SnapshotError: a file that leads to the batch is damaged; names it.

    ::

        counts = ss.spark.checkpoint_state(session, "/data/top/checkpoint", "counts")
        counts.orderBy("value", ascending=False).show()
    """
    instance("session", session, SparkSession, "a session of Spark")
    found = recorded_state.checkpoint_state(checkpoint, batch)
    names = found.fields
    if field not in names:
        raise ConfigurationError(
            f"field={field!r}: operator {found.operator!r} has no such field after batch "
            f"{found.batch_id}; it has: {', '.join(names)}"
        )
    return session.createDataFrame(found.table(field))
