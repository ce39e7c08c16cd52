"""Where the conflicts are: what :meth:`specstream.Engine.profile` returns (Brito 2010, 4.3.2, 4.6).

The C runtime counts which elements runs were dropped for (``profile.c``), and with
``Engine(..., profile=True)`` on which lines they were accessed. Here words become fields and
indices, and counts become advice (:mod:`specstream.profiling.advice`).
"""

from __future__ import annotations

import ast
import bisect
import os
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from specstream._native import ffi, lib
from specstream.compiler.source import Program, Written
from specstream.state import Field, Layout
from specstream.stats import Statistics

__all__ = ["CONFLICTS", "HotWord", "Line", "Place", "Profile", "hot_places", "uses_of"]

# The reasons of an abort that name a word.
CONFLICTS = ("conflict", "inconsistent_snapshot", "locked", "stolen", "shadow")
_HOT_ENTRIES = 512  # that a thread remembers; see profile.c
_WORD_BYTES = 8


@dataclass(frozen=True)
class Place:
    """One remembered place, as the runtime knows it.

    Attributes:
        word: index in the state.
        bytes: mask of the element's bytes in the word; 0 for all.
        site: number of the line; 0 where lines are not counted.
        aborts: runs dropped for it, at least.
    """

    word: int
    bytes: int
    site: int
    aborts: int


@dataclass(frozen=True)
class Line:
    """A line of an operator's source.

    Attributes:
        filename: of the source.
        line: its number.
        function: that it is in.
        text: of the line.
        aborts: runs dropped for what it had accessed; None: not counted, but it names the field.
    """

    filename: str
    line: int
    function: str
    text: str
    aborts: int | None

    def __str__(self) -> str:
        return f"{os.path.basename(self.filename)}:{self.line} in {self.function}: {self.text}"


@dataclass(frozen=True)
class HotWord:
    """An element of the state that speculative runs were dropped for.

    Attributes:
        field: its name.
        index: in the field; empty for a scalar.
        aborts: runs dropped for it, at least.
        share: of all conflicts, 0 to 1.
        record: under protocol "eager": number of the ownership record. Elements with the same one
            conflict with each other. Under "value" -1.
        lines: that accessed it, those that cost most first.
    """

    field: str
    index: tuple[int, ...]
    aborts: int
    share: float
    record: int
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        """As the operator writes it: ``total``, ``counts[3]``, ``grid[3, 4]``."""
        return self.field + (f"[{', '.join(map(str, self.index))}]" if self.index else "")


@dataclass(frozen=True)
class Profile:
    """What speculation was lost to, since the engine was made.

    Attributes:
        operator: its name.
        protocol: "value" or "eager".
        events: that were applied.
        speculative_runs: transactions run speculatively.
        aborts: how many of them were dropped, by reason.
        conflicts: how many of them were dropped for a word.
        horizon: transactions that may start ahead of the head, as it stands.
        chunk: events of a transaction, as it stands.
        lines_counted: whether the lines are those that were executed, with
            ``Engine(..., profile=True)``; else they are all that name the field.
        words: those that cost the most, first.
        shapes: of the fields that they are in.
        advice: what may help, in sentences.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     total = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
    ... def running_total(state, event, emit):
    ...     state.total += event.x
    ...     emit(state.total)
    >>> with ss.Engine(running_total, horizon=4, chunk=1, execution="speculate",
    ...                profile=True) as engine:
    ...     while engine.stats.aborts["conflict"] == 0:
    ...         _ = engine.process({"x": range(1000)})
    ...     hottest = engine.profile().words[0]
    >>> hottest.name, hottest.lines[0].text
    ('total', 'state.total += event.x')
    """

    operator: str
    protocol: str
    events: int
    speculative_runs: int
    aborts: Mapping[str, int]
    conflicts: int
    horizon: int
    chunk: int
    lines_counted: bool
    words: tuple[HotWord, ...]
    shapes: Mapping[str, tuple[int, ...]]
    advice: tuple[str, ...] = ()

    @property
    def abort_rate(self) -> float:
        """Dropped speculative runs per speculative run; 0.0 before the first."""
        return sum(self.aborts.values()) / self.speculative_runs if self.speculative_runs else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        plain = asdict(replace(self, aborts=dict(self.aborts), shapes=dict(self.shapes)))
        for word, own in zip(plain["words"], self.words, strict=True):
            word["name"] = own.name
        return {**plain, "abort_rate": self.abort_rate}

    def plot(self, path: str | Path) -> None:
        """Draws the hottest words and where in their fields they lie, into a file.

        Raises:
            ImportError: matplotlib is not installed.
        """
        from specstream.profiling.plot import save_plot

        save_plot(self, Path(path))

    def text(self, most: int = 10) -> str:
        """For people: the hottest words with their lines, and the advice."""
        reasons = ", ".join(f"{n:,} {name}" for name, n in self.aborts.items() if n) or "none"
        rows = [
            f"operator {self.operator!r}, protocol {self.protocol!r}: {self.events:,} events, "
            f"{self.speculative_runs:,} speculative runs",
            f"aborts: {reasons}",
        ]
        for word in self.words[:most]:
            rows.append(f"{word.share:7.1%}  {word.name}  ({word.aborts:,} aborts)")
            rows += [f"{'':9}{line}" for line in word.lines[:3]]
        if len(self.words) > most:
            rows.append(f"{'':9}... and {len(self.words) - most} more words")
        return "\n".join(rows + [f"- {sentence}" for sentence in self.advice])

    def __str__(self) -> str:
        return self.text()

    @classmethod
    def of(
        cls,
        program: Program,
        layout: Layout,
        statistics: Statistics,
        places: Sequence[Place],
        protocol: str,
        record_shift: int,
        lines_counted: bool,
    ) -> Profile:
        """From what the runtime has counted."""
        from specstream.profiling.advice import advice

        conflicts = sum(statistics.aborts[reason] for reason in CONFLICTS)
        words = _hot_words(program, layout, places, protocol, record_shift, conflicts)
        found = cls(
            operator=program.operator,
            protocol=protocol,
            events=statistics.events,
            speculative_runs=statistics.speculative_runs,
            aborts=statistics.aborts,
            conflicts=conflicts,
            horizon=statistics.horizon,
            chunk=statistics.chunk,
            lines_counted=lines_counted,
            words=words,
            shapes={
                field.name: field.shape
                for field in layout.fields
                if any(word.field == field.name for word in words)
            },
        )
        return replace(found, advice=advice(found, program, statistics.time_per_event))


def hot_places(native: Any, threads: int) -> tuple[Place, ...]:
    """What the runtime remembers; the counts of all threads together."""
    room = threads * _HOT_ENTRIES
    found = ffi.new("struct ss_hot_place[]", room)
    counted: Counter[tuple[int, int, int]] = Counter()
    for at in range(min(lib.ss_engine_hot_places(native, found, room), room)):
        one = found[at]
        counted[one.word, one.bytes, one.site] += one.aborts - one.others
    return tuple(Place(*key, aborts) for key, aborts in counted.most_common())


def _hot_words(
    program: Program,
    layout: Layout,
    places: Sequence[Place],
    protocol: str,
    record_shift: int,
    conflicts: int,
) -> tuple[HotWord, ...]:
    fields = [field for field in layout.fields if field.space == "state"]
    starts = [field.offset for field in fields]
    regions = layout.regions(record_shift)
    by_element: defaultdict[tuple[str, tuple[int, ...], int], Counter[int]] = defaultdict(Counter)
    for place in places:
        field = fields[bisect.bisect_right(starts, place.word) - 1]
        record = _record(regions, place.word) if protocol == "eager" else -1
        by_element[field.name, _index(field, place), record][place.site] += place.aborts
    hot = [
        HotWord(
            name,
            index,
            sites.total(),
            sites.total() / max(conflicts, 1),
            record,
            _lines(program, name, sites),
        )
        for (name, index, record), sites in by_element.items()
    ]
    return tuple(sorted(hot, key=lambda word: (-word.aborts, word.name)))


def _index(field: Field, place: Place) -> tuple[int, ...]:
    """Which element of a field lies there; of a word without a mask the first."""
    lowest = (place.bytes & -place.bytes).bit_length() - 1 if place.bytes else 0
    byte = (place.word - field.offset) * _WORD_BYTES + lowest
    at = byte // field.storage.size
    index = []
    for length in reversed(field.shape):
        at, within = divmod(at, length)
        index.append(within)
    return tuple(reversed(index))


def _record(regions: list[tuple[int, int]], word: int) -> int:
    """A number for the ownership record: the first word of those that share it."""
    first, shift = regions[bisect.bisect_right([region[0] for region in regions], word) - 1]
    return int(first + ((word - first) >> shift << shift))


def _lines(program: Program, field: str, sites: Counter[int]) -> tuple[Line, ...]:
    counted = []
    for site, aborts in sites.most_common():
        for function, written in program.written.items():
            lines = written.text.splitlines()
            if 0 <= site - written.site < len(lines):
                counted.append(_line(function, written, site - written.site, aborts))
    return tuple(counted) or tuple(
        _line(function, written, node.lineno - 1, None)
        for function, written, node in uses_of(program, field)
    )


def _line(function: Any, written: Written, at: int, aborts: int | None) -> Line:
    text = written.text.splitlines()[at].strip()
    return Line(written.filename, written.line + at, function.__name__, text, aborts)


def uses_of(program: Program, field: str) -> Iterator[tuple[Any, Written, ast.Attribute]]:
    """Every ``x.field`` in an operator's functions, in the order of their lines."""
    for function, written in program.written.items():
        tree = ast.parse(textwrap.dedent(written.text))
        found = (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr == field
        )
        for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
            yield function, written, node
