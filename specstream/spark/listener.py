"""Spark's progress of a streaming query, with the figures of the engines that it feeds.

Spark tells listeners of each micro-batch when it is over, on a thread of its own and perhaps long
after: the next batch may be running by then. So a feed keeps the figures of its latest batches,
each with query, run and batch id, and the listener puts them to the progress with the same three.

Why it is done from outside: Spark's own ways to attach figures to its progress do not reach here.
``DataFrame.observe`` aggregates columns of the stream's own plan, which ends where ``foreachBatch``
begins (observing the callback's frame is allowed and comes to nothing: that frame is a query of its
own), and metrics of sources and sinks are for connectors written against Spark's Java interfaces.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from specstream.checkpoint.run.batch_log import Record, figures_of
from specstream.declarations.options import instance, path, refused, refuses_unknown
from specstream.errors import ConfigurationError
from specstream.files.places import not_local
from specstream.files.writing import writing

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ["ProgressListener", "watch"]

log = logging.getLogger("specstream.spark")


class ProgressListener(StreamingQueryListener):
    """Tells of each micro-batch; made by :func:`watch`.

    Attributes:
        records: records told so far.
        error: what ``to`` raised the last time that it did, or None.
    """

    def __init__(self, session: SparkSession, to: Callable[[Record], object]) -> None:
        self.records = 0
        self.error: BaseException | None = None
        self._session = session
        self._to = to
        self._file: TextIO | None = None
        self._closed = False

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing: Spark waits for it before a query starts."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Joins Spark's progress with the figures of the same batch, and hands the record on."""
        if self._closed:
            return
        # Whatever is wrong in here must not reach Spark, and need not be said each time anew.
        try:
            record: Record = json.loads(event.progress.json)
            record["specstream"] = figures_of(record["id"], record["runId"], record["batchId"])
            self._to(record)
            self.records += 1
        except BaseException as error:
            if type(error) is not type(self.error):
                log.exception("a record of Spark's progress was not passed on; the query goes on")
            self.error = error

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing: the query says what ended it."""

    def close(self) -> None:
        """Tells no more. Records of batches that are over may get lost."""
        self._closed = True
        self._session.streams.removeListener(self)
        if self._file is not None:
            self._file.close()


@refuses_unknown
def watch(
    session: SparkSession, to: Callable[[Record], object] | str | os.PathLike[str] | logging.Logger
) -> ProgressListener:
    """Tells of each micro-batch of a session's queries, with the figures of the engines.

    A record is Spark's progress as it is (``id``, ``runId``, ``name``, ``batchId``,
    ``numInputRows``, ``durationMs``, ``observedMetrics`` ...) and, under ``specstream``, a list
    with one entry for each engine that took part in the batch: ``operator``; ``batch``, the
    figures of this batch alone; ``feed`` (:class:`FeedStats`) and ``engine``
    (:class:`specstream.Statistics`), the totals after it. The list is empty for a query without an
    engine, and where a trigger had no rows.

    Args:
        session: the Spark session.
        to: a function of the record, called on a thread of Spark's; or a file, to which records
            are appended, one line of JSON each; or a logger, which gets them likewise, at INFO.
            What it raises is logged, once for each type of error, and never reaches the query.

    Returns:
        The listener; ``close()`` ends it.

    Raises:
        ConfigurationError: ``to`` is nothing of that kind.
        OSError: the file cannot be opened.
    """
    instance("session", session, SparkSession, "a session of Spark")
    if isinstance(to, logging.Logger):
        logger = to
        listener = ProgressListener(session, lambda record: logger.info(json.dumps(record)))
    elif isinstance(to, str | os.PathLike):
        if (trouble := not_local(text := path("to", to))) is not None:
            raise ConfigurationError(f"to={text!r}: {trouble}")
        file = open(text, "a", encoding="utf-8")  # noqa: SIM115

        def write(record: Record) -> None:
            with writing(to):
                file.write(json.dumps(record) + "\n")
                file.flush()

        listener = ProgressListener(session, write)
        listener._file = file
    elif callable(to):
        listener = ProgressListener(session, to)
    else:
        raise refused("to", to, "a function of one record, the path of a file, or a logger")
    session.streams.addListener(listener)
    return listener
