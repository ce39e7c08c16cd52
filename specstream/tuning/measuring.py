"""Options that whatever measures has: how many threads at most, and how long."""

from __future__ import annotations

from specstream.declarations.options import integer, number
from specstream.tuning import machine

__all__ = ["MOST_THREADS", "checked_seconds", "checked_threads"]

MOST_THREADS = 256
SHORTEST = 0.1  # seconds


def checked_threads(threads: int | None) -> int:
    """So many, or one per core.

    Raises:
        ConfigurationError: it is no number of threads.
    """
    return (
        machine.cores()
        if threads is None
        else integer("threads", threads, 1, MOST_THREADS, " or None")
    )


def checked_seconds(seconds: float) -> float:
    """The seconds.

    Raises:
        ConfigurationError: they are too few, or no number.
    """
    return number("seconds", seconds, SHORTEST, 1e9, f"a number of at least {SHORTEST}")
