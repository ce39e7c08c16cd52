"""Sources of events, and how far each has come (Brito 2010, 4.3.1).

Each says so: its *frontier* is the time below which it sends nothing more. Events commit once the
frontiers of all sources have passed them.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from specstream.columns.strings import StringTable
from specstream.declarations.options import items, one_of, shown, whole
from specstream.declarations.plain_values import plain
from specstream.errors import ConfigurationError, InputError, SpecstreamError

__all__ = ["END", "Late", "Name", "Source", "Sources", "checked_late", "checked_sources"]

Late = Literal["error", "drop", "side"]
LATE: tuple[str, ...] = ("error", "drop", "side")


def checked_late(late: Late) -> Late:
    """The policy.

    Raises:
        ConfigurationError: there is no such.
    """
    one_of("late", late, LATE)
    return late


Name = int | str


def checked_sources(sources: Iterable[Name]) -> tuple[Name, ...]:
    """The names, of which a string would be as many as it has characters.

    Raises:
        ConfigurationError: it is no list of names.
    """
    one = f": write sources=[{shown(sources)}]" if isinstance(sources, str | int) else ""
    given = items("sources", sources, f"a list of sources' names{one}")
    names = tuple(_checked(name, "sources=", ConfigurationError) for name in given)
    for name in names:
        if type(name) is not type(names[0]):
            raise ConfigurationError(
                f"sources={shown(list(names))}; expected names that are all strings or all integers"
            )
    return names


END = 2**63 - 1
# Between the ranks of sources that are declared or come later: room for names in between.
_STEP = 2**40


@dataclass
class Source:
    """One source of events.

    Attributes:
        name: as it was given.
        rank: its place among sources where timestamps are equal.
        code: what ``event.source`` is inside an operator.
        frontier: no event below this timestamp comes any more; None: anything may come.
        next_sequence: number of its next event.
        last: the highest timestamp of its events.
        late: its events that came below its frontier.
        ended: whether nothing of it comes any more, at no time at all; None: a snapshot does not
            say, because it is of version 0.1.
    """

    name: Name
    rank: int
    code: int
    frontier: int | None
    next_sequence: int = 0
    last: int = -(2**63)
    late: int = 0
    ended: bool | None = False

    def end(self) -> None:
        """No event of it comes any more."""
        self.frontier, self.ended = END, True


class Sources:
    """The sources of an engine, ordered by number or by text."""

    def __init__(self, strings: StringTable, what: str) -> None:
        self._strings = strings
        self._what = what
        self._known: dict[Name, Source] = {}
        self._by_rank: dict[int, Name] = {}
        self._declared: frozenset[Name] = frozenset()
        self._highest: tuple[int, int] | None = None  # (timestamp, rank) of all events
        self.whole_times = False  # events of one timestamp are applied together
        self.lowest: int | None = None  # timestamp of all events
        self.late = 0  # events of sources that have not joined with another one
        # The last (timestamp, rank) that the frontier of all came to before the end. What timers
        # do at the end depends on it: those that are due at a frontier fire first.
        self.reached: tuple[int, int] | None = None

    def __iter__(self) -> Iterator[Source]:
        # A copy, because others may look while a new source comes.
        return iter(list(self._known.values()))

    def __len__(self) -> int:
        return len(self._known)

    def name_of(self, rank: int) -> Name:
        """That of the source with this rank."""
        if rank not in self._by_rank:
            self._by_rank = {source.rank: source.name for source in self}
        return self._by_rank[rank]

    def known(self, name: Name) -> Source | None:
        """The source of that name, if there is one."""
        return self._known.get(name)

    def bring_back(self, highest: tuple[int, int] | None, lowest: int | None, late: int) -> None:
        """Takes the first and the last of all events, and the number of late ones, for these."""
        self._highest, self.lowest, self.late = highest, lowest, late

    def truncate(self, length: int) -> None:
        """Forgets all but the first ``length`` sources."""
        for name in list(self._known)[length:]:
            del self._known[name]
        self._by_rank = {}

    def leave_out(self, length: int, joined: Iterable[Source]) -> None:
        """Forgets those behind the first ``length`` of which no event was taken.

        A source joins, and holds back the others, with its first event; a row that is late or no
        event is none.
        """
        names = {source.name for source in joined}
        for name in list(self._known)[length:]:
            if name not in names:
                self.late += self._known.pop(name).late
        self._by_rank = {}

    def declare(self, names: Iterable[Name]) -> None:
        """Sources that hold back commits from the start, also while they are silent."""
        known = [_checked(name, self._what) for name in names]
        self._declared |= frozenset(known)
        for name in sorted(known, key=lambda name: (isinstance(name, str), name)):
            self.get(name)

    def get(self, name: Name) -> Source:
        """The source of that name; a new one begins where nothing is committed yet."""
        # Not by what only equals a name, as True does.
        known = self._known.get(name) if type(name) is int or type(name) is str else None
        if known is not None:
            return known
        name = _checked(name, self._what)
        known = self._known.get(name)
        if known is not None:
            return known
        if name not in self._declared:
            self._check_spelling(name)
        kinds = {type(other) for other in self._known}
        if kinds - {type(name)}:
            raise InputError(
                f"{self._what}: source {name!r} is {type(name).__name__}, and the sources before "
                f"are {kinds.pop().__name__}: name them all alike"
            )
        reached = self.frontier()
        if reached == (END, END):
            # All sources have ended; what comes after their last event is still to be applied.
            reached = self._highest
            if reached is not None and self.whole_times:
                reached = reached[0], END
        rank = self._rank(name)
        code = name if isinstance(name, int) else self._strings.add(name)
        start = None
        if reached is not None:
            # What may commit ends at (timestamp, rank): an event before that comes no more.
            start = reached[0] + (1 if rank < reached[1] else 0)
        source = Source(name, rank, code, start)
        if start is not None and start > END:
            source.end()  # no time is left that its events could have
        self._known[name] = source
        return source

    def _check_spelling(self, name: Name) -> None:
        """Whether a new source is none of those that are declared and silent, written otherwise.

        Events would wait for that one for ever.
        """
        for declared in self._declared:
            other = self._known.get(declared)
            is_silent = other is not None and other.frontier is None and not other.next_sequence
            if is_silent and _letters(declared) == _letters(name):
                raise InputError(
                    f"{self._what}: source {name!r} is not among sources=, and {declared!r} is, "
                    "for which events would wait: write it alike in both places, or declare both"
                )

    def _rank(self, name: Name) -> int:
        """A number that sorts as the name does; those given out before stay."""
        if isinstance(name, int):
            return name
        names = sorted(other for other in self._known if isinstance(other, str))
        at = bisect.bisect(names, name)
        before = self._known[names[at - 1]].rank if at > 0 else None
        after = self._known[names[at]].rank if at < len(names) else None
        if before is None:
            return 0 if after is None else after - _STEP
        if after is None:
            return before + _STEP
        if after - before < 2:
            raise InputError(
                f"{self._what}: no place is left for source {name!r} between {names[at - 1]!r} "
                f"and {names[at]!r}: declare the sources, Engine(..., sources=[...])"
            )
        return (before + after) // 2

    @property
    def type(self) -> pa.DataType:
        """Of the sources' names."""
        named = any(isinstance(name, str) for name in self._known)
        return pa.string() if named else pa.int64()

    @property
    def highest(self) -> tuple[int, int] | None:
        """(timestamp, rank) of the last of all events."""
        return self._highest

    def restore(
        self,
        sources: list[Source],
        highest: Iterable[int] | None,
        lowest: int | None,
        late: int,
        reached: Iterable[int] | None,
    ) -> None:
        """Takes over the sources of a snapshot; those declared since stay."""
        before = self._known
        self.late = late
        if reached is not None:
            timestamp, rank = reached
            self.reached = timestamp, rank
        for source in sources:
            if source.ended is None:
                source.ended = source.frontier == END
        self._known = {source.name: source for source in sources}
        self._by_rank = {}
        if highest is not None:
            timestamp, rank = highest
            self._highest = timestamp, rank
        self.lowest = lowest
        for name in before:
            self.get(name)

    def note(self, first: int, last: int, source: Source) -> None:
        """Events of the source were submitted, from one timestamp to another."""
        if last > source.last:
            source.last = last
        if self.lowest is None or first < self.lowest:
            self.lowest = first
        here = (last, source.rank)
        if self._highest is None or here > self._highest:
            self._highest = here

    def advance(self, reached: Mapping[Name, int | None]) -> None:
        """Moves frontiers, given as they are kept; one that lies behind changes nothing.

        None: the source has ended.
        """
        for name, to in reached.items():
            source = self.get(name)
            if to is None:
                source.end()
                continue
            source.frontier = to if source.frontier is None else max(source.frontier, to)

    def frontier(self) -> tuple[int, int] | None:
        """The last (timestamp, rank) whose events may commit; None: none yet."""
        reached = []
        for source in list(self._known.values()):
            if source.frontier is None:
                return None
            reached.append((source.frontier, END if source.ended else source.rank))
        return min(reached) if reached else None


def _letters(name: Name) -> Name:
    """What two ways of writing a name have in common.

    >>> _letters("Sensor 1") == _letters("sensor_1")
    True
    """
    found = "".join(filter(str.isalnum, str(name))).casefold()
    return found if isinstance(name, str) and found else name


def _checked(name: object, what: str, error: type[SpecstreamError] = InputError) -> Name:
    if isinstance(name, str):
        found: str = plain(name)
        return found
    number = whole(name)
    if number is None:
        raise error(f"{what}: source {shown(name)}; expected an integer or a string")
    if not -(2**63) <= number < END:
        raise error(f"{what}: source {number}; expected an integer from -2**63 to {END - 1}")
    return number
