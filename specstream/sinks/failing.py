"""What a sink says when it fails: which sink, where it writes, and which batch.

The query stops then, and nobody who reads its last message has the batch at hand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from specstream.engine.early_results import EarlyAnswer
from specstream.errors import SinkError, SpecstreamError

__all__ = ["check_begun_here", "named", "of_another_run", "table_of_another_run"]


@contextlib.contextmanager
def named(sink: object, batch_id: int) -> Iterator[None]:
    """Whatever is raised inside becomes a SinkError that names the sink and the batch.

    >>> with named("parquet_sink('/full')", 12):
    ...     raise OSError("No space left on device")
    Traceback (most recent call last):
    specstream.errors.SinkError: parquet_sink('/full'), batch 12: No space left on device; the \
batch is not acknowledged, and comes again when the query is started again: correct the cause first
    """
    try:
        yield
    except SpecstreamError:
        raise
    except Exception as error:
        raise SinkError(
            f"{sink!s}, batch {batch_id}: {str(error).strip() or type(error).__name__}; the batch "
            "is not acknowledged, and comes again when the query is started again: correct the "
            "cause first"
        ) from error


def of_another_run(found: str, anew: str) -> str:
    """What every sink says when it finds rows that its query cannot have written.

    A query that has lost its checkpoint sends its batches under the same ids again, perhaps fewer
    of them: what the former one has written beyond these would stay between the new rows.

    Args:
        found: what is there.
        anew: what the sink needs where the query was begun anew.

    >>> of_another_run("the table has batch 7", "an empty table").partition(". Or ")[0]
    "the table has batch 7 already, which this query has not written. It was begun anew: then all \
that it writes has to be new or empty, here an empty table, and likewise its other sinks, \
checkpoint= and Spark's checkpointLocation"
    """
    return (
        f"{found} already, which this query has not written. It was begun anew: then all that it "
        f"writes has to be new or empty, here {anew}, and likewise its other sinks, checkpoint= "
        "and Spark's checkpointLocation. Or it was taken back to an earlier batch: then take the "
        "later ones out of its sinks first, as specstream checkpoint rollback says (guide: Run "
        "book, Begun anew)"
    )


def check_begun_here(sink: object, batch_id: int, answer: EarlyAnswer, newest: int | None) -> None:
    """Whether the first changes of a start come after all that a table has.

    Args:
        sink: keeps the table.
        batch_id: the batch.
        answer: its changes.
        newest: the largest version in the table; None: it is empty.

    Raises:
        SinkError: they do not.
    """
    if answer.reset and newest is not None and newest > answer.version:
        raise table_of_another_run(sink, batch_id, newest)


def table_of_another_run(sink: object, batch_id: int, newest: int) -> SinkError:
    """What a sink of early results says of a table that has a version of another query."""
    problem = of_another_run(
        f"the table has version {newest}", "an empty table of this query's own"
    )
    return SinkError(f"{sink!s}, batch {batch_id}: {problem}")
