"""Where the conflicts are, and what may help (Brito 2010, 4.3.2, 4.6).

``hot_words`` turns what the C runtime has counted into fields, indices and lines; ``advice`` are
rules over the :class:`Profile` that comes out, ``plot`` its picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from specstream.compiler.frontend.program import Program
from specstream.declarations.state_layout import Field, Layout
from specstream.profiling.advice import advise
from specstream.profiling.hot_words import HotPlace, conflicts_by_vertex, hot_places, hot_words
from specstream.profiling.profile import Profile

__all__ = ["HotPlace", "Profile", "conflicts_by_vertex", "hot_places", "profile_of"]

# The reasons of an abort that name a word. Of a run that has kept the head waiting it is one that
# it has read, and that has changed.
CONFLICTS = ("conflict", "inconsistent_snapshot", "locked", "stolen", "shadow", "runaway")


class Counts(Protocol):
    """What is needed of :class:`specstream.Statistics`, which belongs to the engine."""

    @property
    def events(self) -> int: ...
    @property
    def speculative_runs(self) -> int: ...
    @property
    def aborts(self) -> Mapping[str, int]: ...
    @property
    def horizon(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def time_per_event(self) -> float: ...


def profile_of(
    program: Program,
    layout: Layout,
    counts: Counts,
    places: Sequence[HotPlace],
    protocol: str,
    record_shift: int,
    lines_counted: bool,
    part: Callable[[Field, int], str],
) -> Profile:
    """From what the runtime has counted; ``part`` says which part of a container a word is."""
    conflicts = sum(counts.aborts[reason] for reason in CONFLICTS)
    words = hot_words(program, layout, places, protocol, record_shift, conflicts, part)
    found = Profile(
        operator=program.operator,
        protocol=protocol,
        events=counts.events,
        speculative_runs=counts.speculative_runs,
        aborts=dict(counts.aborts),
        conflicts=conflicts,
        horizon=counts.horizon,
        chunk=counts.chunk,
        lines_counted=lines_counted,
        words=words,
        shapes={
            field.name: field.shape if field.record is None else field.shape[:-1]
            for field in layout.fields
            if any(word.field == field.name for word in words)
        },
    )
    return replace(found, advice=advise(found, program, counts.time_per_event))
