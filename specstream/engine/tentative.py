"""Tentative events: those that may still be changed or withdrawn, known by their sequence numbers.

They come from who guesses: a feed that sends a first version of a trade, another engine whose early
results are events here. They are applied like all others, and not final before they are confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from specstream.engine.segments import Segment
from specstream.engine.sources import Name, Source
from specstream.errors import InputError

__all__ = ["TentativeEvents"]


@dataclass
class _Tentative:
    segment: Segment
    version: int


@dataclass
class _OfSource:
    """Of one source: up to which number its events are confirmed, those that are not, and the
    times of those that never came."""

    confirmed: int = -1
    events: dict[int, _Tentative] = field(default_factory=dict)
    retracted: dict[int, int] = field(default_factory=dict)


class TentativeEvents:
    """Those of one engine; ``what`` names its operator in messages."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._of: dict[Name, _OfSource] = {}

    def __len__(self) -> int:
        return sum(len(of.events) for of in self._of.values())

    # ---- in ----

    def check_numbers(self, source: Source, numbers: npt.NDArray[np.int64]) -> None:
        """Looks whether these may be numbers of new events of a source.

        Raises:
            InputError: one was given before, or is none.
        """
        at = int(numbers.argmin())
        of = self._of.get(source.name, _OfSource())
        gone = [number for number in numbers.tolist() if number in of.retracted]
        if gone:
            raise InputError(
                f"{self._what}: event {gone[0]} of source {source.name!r} was retracted, and its "
                f"sequence number stays unused; expected {source.next_sequence} or more"
            )
        if numbers[at] < source.next_sequence:
            raise InputError(
                f"{self._what}: sequence number {int(numbers[at])} of source {source.name!r} is "
                f"not above {source.next_sequence - 1}, the last one that has come; expected "
                f"{source.next_sequence} or more; events that have come are changed by revise()"
            )
        if len(np.unique(numbers)) < len(numbers):
            found, counts = np.unique(numbers, return_counts=True)
            raise InputError(
                f"{self._what}: sequence number {int(found[counts > 1][0])} of source "
                f"{source.name!r} is there {int(counts.max())} times; expected one for each event"
            )

    def take(self, segment: Segment, sequence: int, version: int) -> None:
        """A tentative event, or one that is confirmed by its number."""
        of = self._of.setdefault(segment.source.name, _OfSource())
        segment.native.is_tentative = sequence > of.confirmed
        if segment.native.is_tentative:
            of.events[sequence] = _Tentative(segment, version)

    def leave_out(self, rows: int) -> None:
        """Forgets events from that row on; one that they were to replace stays."""
        for of in self._of.values():
            for sequence, event in list(of.events.items()):
                if event.segment.first >= rows:
                    old = event.segment.replaces
                    if old is None:
                        del of.events[sequence]
                    else:
                        of.events[sequence] = _Tentative(old, event.version - 1)

    # ---- what is said of them ----

    def version(self, segment: Segment) -> int:
        """The latest that was given of an event."""
        return self._of[segment.source.name].events[segment.first_sequence].version

    def find(self, source: Source, sequence: int, version: int | None) -> Segment | None:
        """A tentative event to be changed or withdrawn; None: that has been done before.

        Args:
            source: of the event.
            sequence: its number.
            version: of the change; None: it is withdrawn.

        Raises:
            InputError: there is no such event, or it does not change any more.
        """
        of = self._of.get(source.name, _OfSource())
        event = of.events.get(sequence)
        call = "retract" if version is None else "revise"
        which = f"{self._what}: {call} of event {sequence} of source {source.name!r}"
        if event is not None:
            is_old = version is not None and version <= event.version
            return None if is_old else event.segment
        if sequence in of.retracted:
            if version is None:
                return None
            raise InputError(
                f"{which}: it was retracted; expected an event that is tentative: submit it anew, "
                "with a number of its own"
            )
        if sequence >= source.next_sequence:
            raise InputError(f"{which}: no event with that number has come")
        why = "it is confirmed" if sequence <= of.confirmed else "it was not submitted as tentative"
        raise InputError(
            f"{which}: {why}, and does not change any more; expected an event that was submitted "
            "with final=False and is not confirmed"
        )

    def note_version(self, segment: Segment, version: int) -> None:
        """A change of it changes nothing that the operator reads."""
        self._of[segment.source.name].events[segment.first_sequence].version = version

    def note_retracted(self, segment: Segment) -> None:
        """It was withdrawn."""
        of = self._of[segment.source.name]
        of.retracted[segment.first_sequence] = segment.since
        of.events.pop(segment.first_sequence, None)

    def confirmable(self, source: Source, up_to: int) -> list[Segment]:
        """Tentative events of a source up to that number."""
        of = self._of.get(source.name, _OfSource())
        return [event.segment for at, event in sorted(of.events.items()) if at <= up_to]

    def note_confirmed(self, source: Source, up_to: int) -> None:
        """All up to that number are; those that come later as well."""
        of = self._of.setdefault(source.name, _OfSource())
        of.confirmed = max(of.confirmed, up_to)
        for sequence in [at for at in of.events if at <= up_to]:
            del of.events[sequence]
        frontier = source.frontier
        if frontier is not None:
            of.retracted = {at: time for at, time in of.retracted.items() if time >= frontier}

    # ---- snapshots ----

    def confirmed(self, places: Mapping[Name, int]) -> list[tuple[int, int]]:
        """Up to which number, by place of the source."""
        return [(places[name], of.confirmed) for name, of in self._of.items() if name in places]

    def retracted(self, places: Mapping[Name, int]) -> list[tuple[int, int, int]]:
        """Places of sources, numbers and times of events that never came."""
        return [
            (places[name], sequence, time)
            for name, of in self._of.items()
            if name in places
            for sequence, time in of.retracted.items()
        ]

    def restore(
        self, confirmed: Iterable[tuple[Name, int]], retracted: Iterable[tuple[Name, int, int]]
    ) -> None:
        """Takes over what the two before have given."""
        for name, up_to in confirmed:
            self._of.setdefault(name, _OfSource()).confirmed = up_to
        for name, sequence, time in retracted:
            self._of.setdefault(name, _OfSource()).retracted[sequence] = time
