"""Writes the vertices of a phase inline, one after the other; each checks whether it has a row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from specstream.compiler.backend.instructions import Value
from specstream.compiler.phases.vertex import Compiled, Sent, VertexWriter

__all__ = ["write_in_line"]

# Whether streams have a row is asked where at least so many vertices each depend on it.
_GATES_PAY = 3


def write_in_line(phase: VertexWriter, sources: dict[str, Sent]) -> None:
    """Writes all vertices of a phase, as far as there are rows."""
    streams: dict[str, Value] = {}
    gates: list[str] = []
    with ExitStack() as silence:
        for at, compiled in enumerate(phase.vertices):
            rest, before = phase.vertices[at:], gates
            # A timer may be that of any vertex.
            gates = _gates(rest) if phase.fires is None else []
            if gates != before and _GATES_PAY * len(gates) <= len(rest):
                counts = [phase.count(sources, streams, name) for name in gates]
                silence.enter_context(phase.where_some(phase.any_of(counts)))
            phase.in_place(compiled, sources, streams)


def _gates(rest: Sequence[Compiled]) -> list[str]:
    """The streams that feed the vertices still to be written inline, from those before.

    From them alone something can come to these, the first of which is the next in line. Without
    a row in them the phase is over."""
    own = {one.planned.name for one in rest}
    read = dict.fromkeys(of.stream for one in rest for of in one.planned.inputs)
    return [name for name in read if name not in own]
