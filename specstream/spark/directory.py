"""Streaming a directory of Parquet files through a callback until all of them are processed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from specstream.declarations.options import function, instance, integer, refuses_unknown
from specstream.declarations.options import path as checked_path
from specstream.errors import ConfigurationError
from specstream.files.patterns import REFUSED_NAME, pattern_below
from specstream.spark.feed import BatchFeed
from specstream.spark.stopping import ending_on_sigterm
from specstream.spark.union import checked_shared, union
from specstream.spark.unreadable import unreadable_column

__all__ = ["stream_directory"]


@refuses_unknown
def stream_directory(
    session: SparkSession,
    path: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]],
    feed: BatchFeed,
    *,
    checkpoint: str | os.PathLike[str],
    files_per_trigger: int | None = None,
    shared: Iterable[str] = (),
    where: Column | str | None = None,
    on_batch: Callable[[int], object] | None = None,
) -> None:
    """Runs every file of a directory through ``feed`` as micro-batches, and returns at the end.

    Spark takes the files in the order in which they were last modified.

    SIGTERM ends the program when the batch under way is done: what is behind this call does not
    run, but ``finally`` and ``with`` do. That holds in the main thread, and where the program does
    not handle the signal itself; a second one ends the process at once.

    Args:
        session: the Spark session.
        path: the directory; its files have one schema, which is read from them. Of a pipeline with
            several sources a directory of each, by their names.
        feed: what :func:`specstream.spark.foreach_batch` returned.
        checkpoint: Spark's checkpoint directory for this query.
        files_per_trigger: how many files make a micro-batch, of each directory; all of them by
            default.
        shared: of several directories: columns that all have, as for :func:`union`.
        where: only rows that satisfy this condition.
        on_batch: called with the batch id after each batch that was applied, on Spark's thread.

    Raises:
        ConfigurationError: an argument is not what it must be, the name of a file is one that
            Spark takes for a pattern, or a file has a column that Spark does not read.
        Exception: what the operator, the engine or the sink raised, as it was raised.
        SystemExit: with status 143; SIGTERM came, and the batch under way is done.
    """
    instance("session", session, SparkSession, "a session of Spark")
    instance("feed", feed, BatchFeed, "what ss.spark.foreach_batch(...) returned")
    if files_per_trigger is not None:
        files_per_trigger = integer("files_per_trigger", files_per_trigger, 1)
    if where is not None:
        instance("where", where, str | Column, "a condition: a Column of Spark, or SQL")
    if on_batch is not None:
        function("on_batch", on_batch, "a function of the batch id")
    place, common = checked_path("checkpoint", checkpoint), checked_shared(shared)

    def schema_of(option: str, text: str) -> StructType:
        try:
            return session.read.parquet(text).schema
        except PySparkException as error:
            if (trouble := unreadable_column(text)) is not None:
                raise ConfigurationError(f"{option}={text!r}: {trouble}") from error
            raise

    def stream_of(option: str, path: object) -> DataFrame:
        text = checked_path(option, path)
        if (pattern := pattern_below(text)) is not None:
            raise ConfigurationError(f"{option}={text!r}: {pattern!r}: {REFUSED_NAME}")
        if os.path.isfile(text):
            raise ConfigurationError(
                f"{option}={text!r} is a file, and Spark streams directories: give its directory, "
                "or read it without Spark, by ss.sources.dataset(path), specstream run --from PATH"
            )
        reader = session.readStream.schema(schema_of(option, text))
        # Else a later start leaves out files that were modified a week before the newest, as when
        # somebody has copied them with their times.
        reader = reader.option("maxFileAge", "36500d")
        if files_per_trigger is not None:
            reader = reader.option("maxFilesPerTrigger", files_per_trigger)
        return reader.parquet(text)

    if isinstance(path, Mapping):
        frames = {name: stream_of(f"path[{name!r}]", of) for name, of in path.items()}
        stream = union(frames, shared=common)
    else:
        stream = stream_of("path", path)
    if where is not None:
        stream = stream.where(where)

    def run(frame: DataFrame, batch_id: int) -> None:
        feed(frame, batch_id)
        if on_batch is not None:
            on_batch(batch_id)

    query = (
        stream.writeStream.foreachBatch(run)
        .option("checkpointLocation", place)
        .trigger(availableNow=True)
        .start()
    )
    try:
        with ending_on_sigterm(query, feed.wait):
            query.awaitTermination()
    except StreamingQueryException:
        # Spark's exception holds the traceback of the real one as text; raise the real one.
        if feed.error is not None:
            raise feed.error from None
        raise
    finally:
        if query.isActive:
            query.stop()
