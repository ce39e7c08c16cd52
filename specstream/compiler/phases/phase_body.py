"""The body of a phase, in machine code: the vertices in the order of their numbers."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import itertools

from specstream.columns.strings import string_code
from specstream.compiler.backend.instructions import BIT, I64
from specstream.compiler.language.reserved import RESERVED_COLUMNS
from specstream.compiler.library.event import event_column, phase_column
from specstream.compiler.library.state_timers import timer_slot
from specstream.compiler.phases.inlined_vertices import write_in_line
from specstream.compiler.phases.plan import SOURCE
from specstream.compiler.phases.vertex import Sent, VertexWriter
from specstream.compiler.phases.waiting import Waiting

__all__ = ["MOST_IN_LINE", "write_event_phase", "write_timer_phase"]

# So many vertices are looked at one after the other; among more, those that have a message are
# found by their bits.
MOST_IN_LINE = 64


def write_event_phase(phase: VertexWriter) -> None:
    """Writes the body of the phase of an event, or of all events of one time."""
    sources = _sources(phase)
    _write_vertices(phase, sources)
    for name, sent in sources.items():
        for sink in phase.plan.sinks_of(name):
            phase.sinks.events(sink, sent.count, sent.first)


def write_timer_phase(phase: VertexWriter) -> None:
    """Writes the body of the phase of a timer that fires: its vertex, then those behind it.

    The vertex of the timer that fires runs ``on_timer``. No source has a row, nor has any vertex
    that is behind none with timers.
    """
    phase.fires = timer_slot(phase.run)
    names = {one.planned.name for one in phase.vertices}
    silent = [name for name in phase.plan.order if name not in names]
    _write_vertices(phase, {name: Sent(I64(0)) for name in silent})


def _write_vertices(phase: VertexWriter, sources: dict[str, Sent]) -> None:
    if len(phase.vertices) <= MOST_IN_LINE:
        write_in_line(phase, sources)
    else:
        Waiting(phase, sources).write()


def _sources(phase: VertexWriter) -> dict[str, Sent]:
    """What each source sends in this phase."""
    names, builder = list(phase.plan.sources), phase.builder
    if phase.plan.by_time:
        return {
            name: Sent(phase_column(phase.run, at + 1), phase_column(phase.run, at))
            for name, at in zip(names, itertools.count(len(RESERVED_COLUMNS), 2), strict=False)
        }
    if len(names) == 1:
        return {names[0]: Sent(None)}
    given = event_column(phase.run, phase.event, SOURCE)
    found = {name: builder.icmp_unsigned("==", given, I64(string_code(name))) for name in names}
    known = BIT(0)
    for one in found.values():
        known = builder.or_(known, one)
    phase.run.fault_if(builder.not_(known), ValueError)
    return {name: Sent(builder.zext(one, I64)) for name, one in found.items()}
