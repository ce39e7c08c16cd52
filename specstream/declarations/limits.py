"""How much a speculative run may log, and what all logs together may take."""

from __future__ import annotations

from dataclasses import dataclass, fields

from specstream.declarations.options import integer, refuses_unknown

__all__ = ["Limits"]


@refuses_unknown
@dataclass(frozen=True)
class Limits:
    """What one speculative run of a transaction may log.

    A run that needs more is dropped (``stats.aborts["log_full"]``) and its transaction runs as the
    head, which has no limit: results never depend on these figures. They count for a whole
    transaction, that is for a chunk of events. An engine allocates the logs of all transactions
    within its horizon in full; the system gives them memory only where they are touched.

    Attributes:
        reads: words that it may read, repeated reads of a word counted, 1 to 2**24; 16 bytes each.
        writes: different words that it may write, and commutative updates one by one, 1 to 2**24
            (2**19 where there are updates); where a row or slice is assigned as a whole, two words
            count as one, with one more for all of it; 16 bytes each, 32 with protocol "eager". Each
            thread has an index of them, of 64 to 128 bytes each, touched at once.
        rows: rows that it may emit, 1 to 2**24; 8 bytes for each column, and 8 more.
        elements: words of 8 bytes that the lists, dicts and sets of one event may take, 1 to 2**24:
            about two for each number that they hold, and five in a dict. A thread keeps 16 kB, and
            more only while events need it.
        early: bytes that may be held for events that are applied and not final
            (``Engine(early=True)``), 1 to 2**62: some 300 for an event that reads and writes few
            words. Later ones wait, as they do without early results.

    Raises:
        ConfigurationError: a limit is no integer in its range.

    >>> Limits(reads=1000)
    Limits(reads=1000, writes=4096, rows=1024, elements=65536, early=268435456)
    """

    reads: int = 1 << 14
    writes: int = 1 << 12
    rows: int = 1 << 10
    elements: int = 1 << 16
    early: int = 1 << 28

    def __post_init__(self) -> None:
        for field in fields(self):
            most = 1 << 62 if field.name == "early" else 1 << 24
            limit = integer(f"Limits: {field.name}", getattr(self, field.name), 1, most)
            object.__setattr__(self, field.name, limit)
