"""What a sink says when it fails: which sink, where it writes, and which batch.

The query stops then, and nobody who reads its last message has the batch at hand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from specstream.errors import SinkError, SpecstreamError

__all__ = ["named"]


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
