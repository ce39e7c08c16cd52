"""What a sink says when it fails: which sink, where it writes, and which batch.

The query stops then, and nobody who reads its last message has the batch at hand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from specstream.engine.early_results import EarlyAnswer
from specstream.errors import SinkError, SpecstreamError

__all__ = ["check_begun_here", "named"]


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
        raise SinkError(
            f"{sink!s}, batch {batch_id}: the table has version {newest}, and the first changes of "
            f"this start have {answer.version}, which should be above it. The query was begun "
            "anew, with an empty checkpoint=, or another one writes to the table: give each query "
            "a table of its own, empty when the query begins"
        )
