"""Phases by time: all events of one timestamp together, as workers read them.

A *phase* is a row of arrays of its own: its time, 0 for a source, and of each source of the
pipeline the number of its first event and how many there are. Behind these arrays lie those of the
events' columns, in which a source's events of one timestamp are neighbours.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.conversion import time_at
from specstream.columns.events import Events
from specstream.columns.strings import string_code
from specstream.declarations.schema import Schema

__all__ = ["first_column", "note_phase", "phases_of"]

_RESERVED = 2  # timestamp and source


def first_column(schema: Schema) -> int:
    """Which of the arrays is that of the first column of the events."""
    return _RESERVED + 2 * len(schema.phases)


def phases_of(
    events: Events, schema: Schema, sequences: npt.NDArray[np.int64] | None = None
) -> Events:
    """The phases of events, which are in the order of their keys.

    Args:
        events: all that there are of each timestamp.
        schema: of the events; says what sources there are.
        sequences: their sequence numbers, where these do not run on.

    >>> from specstream.declarations.schema import Column
    >>> schema = Schema(("x",), (Column("int", pa.int64()),), phases=("ticks",))
    >>> times, x = np.array([3, 3, 5]), np.array([7, 8, 9])
    >>> events = Events(3, (times, 0 * times, x), (pa.array(times), pa.array([0, 0, 0])), times)
    >>> phases = phases_of(events, schema)
    >>> phases.count, phases.starts.tolist(), [one.tolist() for one in phases.columns]
    (2, [0, 2, 3], [[3, 5], [0, 0], [0, 2], [2, 1], [7, 8, 9]])
    """
    times, members = events.columns[0], events.columns[_RESERVED:]
    is_first = np.ones(events.count, np.bool_)
    is_first[1:] = times[1:] != times[:-1]
    firsts = np.flatnonzero(is_first)
    count, sources = len(firsts), len(schema.phases)
    starts = np.append(firsts, events.count).astype(np.int64)
    if sources == 1:
        counts = np.diff(starts).reshape(count, 1)
    else:
        phase = np.cumsum(is_first) - 1
        which = _sources(members[0], schema)
        order = np.lexsort((which, phase))  # those of a source keep theirs
        members = tuple(column[order] for column in members)
        counts = np.bincount(phase * sources + which, minlength=count * sources)
        counts = counts.reshape(count, sources).astype(np.int64)
    flat = counts.reshape(-1)
    numbers = (np.cumsum(flat) - flat).reshape(count, sources)
    own = [times[firsts], np.zeros(count, np.int64)]
    for at in range(sources):
        own += [np.ascontiguousarray(numbers[:, at]), np.ascontiguousarray(counts[:, at])]
    at_first = pa.array(firsts)
    return Events(
        count,
        (*own, *members),
        (events.keys[0].take(at_first), events.keys[1].take(at_first)),
        events.positions,
        events.rejected,
        starts,
        len(own),
        None if sequences is None else sequences[firsts],
        (events, sequences),
    )


def note_phase(error: BaseException, events: Events, row: int) -> None:
    """Says on an exception which phase has raised it, for who goes on behind that: as
    ``specstream_phase``, its time and the number of its events."""
    vars(error)["specstream_phase"] = time_at(events.keys[0], row), events.events_in(row)


def _sources(codes: npt.NDArray[np.int64], schema: Schema) -> npt.NDArray[np.int64]:
    """Which source each event is of; the first column has the names, and was looked at."""
    which = np.zeros(len(codes), np.int64)
    for number, name in enumerate(schema.phases):
        which[codes == string_code(name)] = number
    return which
