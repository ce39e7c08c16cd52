"""The instants of a micro-batch at which a crash matters, by name.

A crash cannot be imitated by an exception: nothing is unwound, no file is closed, no lock is given
back. So the tests that crash a query have the process killed where it stands. The variable
``SPECSTREAM_CRASH`` names the instant, like ``before-rename@3`` for batch 3; the process writes
that down in the file that ``SPECSTREAM_CRASH_LOG`` names, and sends itself SIGKILL.
"""

from __future__ import annotations

import os
import signal

__all__ = ["STEPS", "hit"]

STEPS = (
    "before-run",  # the rows are fetched
    "before-write",  # the events are applied, nothing of it is on disk
    "half-written",
    "before-rename",  # the checkpoint file is on disk under a temporary name
    "after-rename",  # and under its own, of which the disk may not know yet
    "before-delete",  # the file is durable, those that it supersedes are still there
    "between-deletes",
    "prepared",  # a sink has its rows where nobody sees them, beside the writing of the file
    "before-sink",
    "before-commit",  # the file is durable, what the sink has prepared is not visible
    "between-sinks",  # one sink of several has its rows, the next one has not
    "after-sink",  # Spark has not acknowledged the batch
    "before-early",  # final rows are in their sink, early ones are not
)


def hit(step: str, batch_id: int) -> None:
    """Does nothing, unless a test asked for a crash at this step of this batch.

    >>> hit("before-rename", 3)
    """
    crash = os.environ.get("SPECSTREAM_CRASH")
    if crash is None or crash != f"{step}@{batch_id}":
        return
    with open(os.environ["SPECSTREAM_CRASH_LOG"], "a") as log:
        log.write(f"{crash}\n")
    os.kill(os.getpid(), signal.SIGKILL)
