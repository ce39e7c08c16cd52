"""Events as they were recorded: what each of them read and wrote, and what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Access", "Event"]


class Access(NamedTuple):
    """Of a word of the state, or of a narrower element.

    Attributes:
        byte: where in the state it begins.
        value: that is read or stored there.
        size: of the element, in bytes.
    """

    byte: int
    value: int
    size: int = 8


@dataclass(frozen=True)
class Event:
    """What one event did when it ran in sequence.

    Attributes:
        plain: nanoseconds in place.
        speculative: nanoseconds of a speculative run.
        reads: accesses to the state, in order.
        writes: what it left in the state.
        row_words: words of emitted rows.
        retried: a speculative run of it never commits: it passes a limit, or raises.
        updates: bytes of writes that commute or were foretold: they were not read, and nobody locks
            them.
    """

    plain: float
    speculative: float
    reads: Sequence[Access] = ()
    writes: Sequence[Access] = ()
    row_words: int = 0
    retried: bool = False
    updates: frozenset[int] = frozenset()
