"""Timers in the oracle: the field of the state that holds them, and when one fires."""

# Operators' functions carry no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from specstream._native import lib
from specstream.compiler.language.numbers import Int64
from specstream.compiler.oracle_objects.elements import STORE
from specstream.declarations.container_words import Words
from specstream.declarations.state_layout import Field

__all__ = ["Due", "StateTimers", "timer_key", "timer_text"]

_SIGN = 2**63

Due = tuple[int, int, Any]
"""Time, stamp and key of a timer."""


def timer_text(key: Any, field: Field) -> str:
    """A timer in errors; that of a vertex with its name."""
    vertex = field.name.rpartition(".")[0]
    return f"{plain(key)!r} of vertex {vertex!r}" if vertex else repr(plain(key))


def timer_key(key: Any, field: Field) -> Any:
    """A timer's key as Python's own values; that of a vertex with its name in front."""
    vertex = field.name.rpartition(".")[0]
    return (vertex, plain(key)) if vertex else plain(key)


def plain(key: Any) -> Any:
    """A timer's key in the oracle as Python's own values."""
    if isinstance(key, tuple):
        return tuple(map(plain, key))
    return key if isinstance(key, bool) else int(key) if isinstance(key, int) else str(key)


class StateTimers:
    """The timers of the state, or of a vertex.

    Attributes:
        members: a ``StateDict`` of their times.
        fired: of the first of a pipeline's: how many of all have fired.
        clock: likewise, the largest time of events and firings so far.
        floor: time of the timer that fires now; None: none does.
    """

    __slots__ = ("_heap", "_name", "clock", "fired", "floor", "members")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, members: Any, field: Field, words: Words, fires: bool = True) -> None:
        self.members = members
        self._name = field.name
        self.floor: int | None = None
        self.fired = int(words[field.offset + lib.SS_HEADER_FIRED])
        self.clock = int(words[field.offset + lib.SS_HEADER_CLOCK]) % 2**64 ^ _SIGN
        if self.clock >= _SIGN:
            self.clock -= 2**64
        # Of what one event is run on alone, nothing fires.
        self._heap: list[tuple[int, int, Any]] = [
            (int(at), members.stamps[key], key)
            for key, at in (members.entries.items() if fires else ())
        ]
        heapq.heapify(self._heap)

    def write(self, field: Field, words: Words) -> None:
        """The header's words."""
        clock = self.clock % 2**64 ^ _SIGN
        words[field.offset + lib.SS_HEADER_FIRED] = self.fired
        words[field.offset + lib.SS_HEADER_CLOCK] = clock - 2**64 if clock >= _SIGN else clock

    # -- what operators see --

    def set(self, key: Any, at: Any) -> None:
        at = STORE["int"](at, f"the time of a timer of state.{self._name}")
        if self.floor is not None and at <= self.floor:
            raise ValueError(
                f"state.{self._name}.set: the timer that fires is for {self.floor} and sets one "
                f"for {int(at)}; expected a later time"
            )
        key = self.members.held_key(key)
        if key in self.members:
            del self.members[key]
        self.members[key] = Int64(at)
        heapq.heappush(self._heap, (int(at), self.members.stamps[key], key))

    def cancel(self, key: Any) -> None:
        if key in self.members:
            del self.members[key]

    def get(self, key: Any) -> Any:
        return self.members.get(key)

    def clear(self) -> None:
        self.members.clear()

    def __len__(self) -> int:
        return len(self.members)

    def __contains__(self, key: object) -> bool:
        return key in self.members

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members)

    # -- what fires --

    @property
    def last_stamp(self) -> int:
        """That of the timer that was set last; between two events."""
        return max(self.members.stamps.values(), default=0)

    def due(self, time: int, stamp: int | None = None) -> Due | None:
        """The next that is due by ``time``, or has a stamp up to that; between two events."""
        later = []
        found: Due | None = None
        while self._heap:
            at, own, key = self._heap[0]
            if self.members.stamps.get(key) != own:
                heapq.heappop(self._heap)
            elif stamp is not None and own > stamp:
                later.append(heapq.heappop(self._heap))
            else:
                found = (at, own, key) if stamp is not None or at <= time else None
                break
        for item in later:
            heapq.heappush(self._heap, item)
        return found
