"""The settings that are worth trying."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specstream.engine.engine import Amount

__all__ = ["PLAIN", "Candidate", "candidates", "thread_counts"]

# Seconds that a transaction should take, for what a transaction costs to be small beside it.
TRANSACTION = 5e-6
LONGEST_CHUNK = 64


@dataclass(frozen=True)
class Candidate:
    """One setting of an engine.

    >>> print(Candidate(2, 8, 4, "value"))
    2 threads, horizon 8, chunk 4, value
    >>> Candidate(2, "auto", "auto", "value").line("detector")
    'ss.Engine(detector, threads=2)'
    >>> Candidate(4, 8, 4, "eager").line("detector")
    "ss.Engine(detector, threads=4, horizon=8, chunk=4, protocol='eager')"
    """

    threads: int
    horizon: Amount
    chunk: Amount
    protocol: str = "value"

    @property
    def is_plain(self) -> bool:
        """It never speculates."""
        return self.horizon == 0

    @property
    def is_auto(self) -> bool:
        """It chooses for itself."""
        return self.horizon == "auto"

    def __str__(self) -> str:
        if self.is_plain:
            return "plain"
        threads = f"{self.threads} threads"
        if self.is_auto:
            return f"{threads}, Auto"
        return f"{threads}, horizon {self.horizon}, chunk {self.chunk}, {self.protocol}"

    def options(self) -> dict[str, Any]:
        """What makes an engine of it."""
        return {
            "threads": self.threads,
            "horizon": self.horizon,
            "chunk": self.chunk,
            "protocol": self.protocol,
        }

    def line(self, operator: str) -> str:
        """The Python expression that makes this engine."""
        given = [operator, f"threads={self.threads}"]
        if not self.is_auto:
            given.append(f"horizon={self.horizon}")
            if not self.is_plain:
                given.append(f"chunk={self.chunk}")
        if self.protocol != "value":
            given.append(f"protocol={self.protocol!r}")
        return f"ss.Engine({', '.join(given)})"


PLAIN = Candidate(1, 0, 1)


def thread_counts(most: int) -> list[int]:
    """2, 4, 8 ... and the most itself.

    >>> thread_counts(6), thread_counts(2), thread_counts(1)
    ([2, 4, 6], [2], [])
    """
    counts = []
    count = 2
    while count < most:
        counts.append(count)
        count *= 2
    return [*counts, most] if most > 1 else []


def candidates(seconds: float, most_threads: int, protocols: tuple[str, ...]) -> list[Candidate]:
    """Plain, Auto, and around a transaction of a few microseconds what lies next to it.

    Args:
        seconds: an event takes plainly.
        most_threads: largest number of threads.
        protocols: of those, "value" in full and the others with one horizon.

    >>> [str(candidate) for candidate in candidates(1e-3, 2, ("value",))]
    ['plain', '2 threads, Auto', '2 threads, horizon 1, chunk 1, value',
     '2 threads, horizon 2, chunk 1, value', '2 threads, horizon 8, chunk 1, value',
     '2 threads, horizon 32, chunk 1, value']
    """
    fitting = min(max(round(TRANSACTION / seconds), 1), LONGEST_CHUNK)
    # A transaction of more than a millisecond has nothing left to share out.
    longest = min(max(round(1e-3 / seconds), 1), 4 * LONGEST_CHUNK)
    chunks = sorted({1, max(fitting // 4, 1), fitting, min(4 * fitting, longest)})
    if seconds > TRANSACTION:
        chunks = [1]
    found = [PLAIN]
    for threads in thread_counts(most_threads):
        found.append(Candidate(threads, "auto", "auto"))
        for protocol in protocols:
            horizons = [1, threads, 4 * threads, 16 * threads]
            for horizon in horizons if protocol == "value" else [4 * threads]:
                found += [Candidate(threads, horizon, chunk, protocol) for chunk in chunks]
    return found
