"""Which events a micro-batch commits in event time, worked out without an engine.

What a batch commits is what was waiting before it, and its own rows, up to the frontier that it
ends with. All of that follows from the checkpoint file before and the rows. An engine runs events
ahead of their turn, in whatever order; but what it commits, and in which order, is no matter of
when anything ran. So a replay sorts the events by their keys, and takes those that the frontier has
passed (``open_job.c`` does the same, one by one, as frontiers move).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.checkpoint.inspect.difference import Difference, first_difference
from specstream.checkpoint.run.frontiers import Frontiers
from specstream.checkpoint.run.inputs import Origin
from specstream.columns.events import Events
from specstream.columns.lifetimes import check_unit, settle_unit
from specstream.columns.lists import joined
from specstream.columns.phases import phases_of
from specstream.columns.rejected_rows import RejectedRows
from specstream.columns.strings import StringTable, string_codes
from specstream.columns.unentered import ColumnTexts
from specstream.definition.operator import Operator
from specstream.engine.packed_pending import unpacked
from specstream.engine.pending_bytes import pack_pending, restore_pending
from specstream.engine.pending_events import PendingEvents
from specstream.engine.sources import END, Name, Sources

__all__ = ["Committing", "committing", "first_difference_of_waiting"]


@dataclass(frozen=True)
class Committing:
    """What a batch commits.

    Attributes:
        events: in the order in which they commit; or their phases, where these are by time.
        sequences: number of each within its source (int64); of a phase that of its first event.
        pending: the events that wait afterwards, as the engine packs them.
        waiting: how many events that are.
        frontier: the time that it has reached; None: none yet.
    """

    events: Events
    sequences: npt.NDArray[np.int64]
    pending: bytes
    waiting: int
    frontier: int | None


def committing(
    operator: Operator,
    origin: Origin,
    rows: pa.Table,
    before: bytes,
    strings: StringTable,
    words: npt.NDArray[np.int64],
) -> Committing:
    """What a batch commits that began with these waiting events, as the engine packs them, and this
    state, in which it settles the unit of the times.

    Raises:
        InputError: its rows do not fit, or some are late and that is an error.
        SnapshotError: the events that wait do not fit the operator.
    """
    event_time, order_by = origin.event_time, origin.order_by
    assert event_time is not None
    assert order_by is not None  # an input without it is refused
    what = f"operator {operator.name!r}"
    pending = PendingEvents(
        Sources(strings, what),
        operator.event,
        strings,
        event_time["late"],
        RejectedRows(origin.bad_rows),
        operator.program.reads_timestamp,
        partial(check_unit, operator.layout, words, what=what),
        what,
    )
    pending.sources.declare(event_time["sources"])
    restore_pending(pending, before)
    pending.late.batch_id = origin.batch_id
    if origin.ends:
        reached: Mapping[Name, int | None] = {one.name: None for one in pending.sources}
        pending.has_ended = operator.has_timers and bool(reached)
    else:
        reached = Frontiers.described(order_by, event_time).take_in(
            pending.sources,
            rows,
            lambda: pending.read(
                rows, order_by, 0 if origin.source is None else None, origin.source
            ),
            operator.event.time_unit,
        )
    if pending.times.type is not None:
        settle_unit(operator.layout, words, pending.times.type)
    pending.sources.advance(reached)
    return _below_frontier(pending, operator)


def _below_frontier(pending: PendingEvents, operator: Operator) -> Committing:
    """The events that the frontier has passed, in order, or their phases; those beyond it stay."""
    frontier = pending.sources.frontier()
    dtypes: list[Any] = [np.int64, np.int64, *operator.event.dtypes]
    parts: list[list[npt.NDArray[Any]]] = [[np.empty(0, dtype)] for dtype in dtypes]
    ranks, sequences, numbers = ([np.empty(0, np.int64)] for _ in range(3))
    texts: dict[str, list[ColumnTexts]] = {name: [] for name, _ in operator.event.unentered}
    waiting = 0
    for segment in pending.segments.by_row:
        columns = segment.events.columns
        rank, count = segment.source.rank, segment.events.count
        done = 0
        if frontier is not None:
            # An event at the frontier counts, if its source is the frontier's or comes before it.
            side = "right" if rank <= frontier[1] else "left"
            if operator.event.phases and frontier != (END, END):
                side = "left"  # another source may have more of that time
            done = int(np.searchsorted(columns[0], frontier[0], side))  # type: ignore[call-overload]
        segment.keep_last(count - done)
        waiting += count - done
        for part, column in zip(parts, columns, strict=True):
            part.append(column[:done])
        for name, of in texts.items():
            of.append(segment.events.texts[name].slice(0, done))
        ranks.append(np.full(done, rank, np.int64))
        sequences.append(np.arange(done) + segment.first_sequence)
        numbers.append(np.arange(done) + segment.first)
    merged = [joined(part) for part in parts]
    sequence = np.concatenate(sequences)
    order = np.lexsort((sequence, np.concatenate(ranks), merged[0]))
    keys = pending.segments.keys(np.concatenate(numbers)[order])
    events = Events(
        len(order),
        tuple(column[order] for column in merged),
        (keys["timestamp"], keys["source"]),
        order,
        texts={name: ColumnTexts.joined(of).ordered(order) for name, of in texts.items()},
    )
    sequence = sequence[order]
    if operator.event.phases:
        events = phases_of(events, operator.event, sequence)
        assert events.sequences is not None
        sequence = events.sequences
    reached = None if frontier is None else frontier[0]
    return Committing(events, sequence, pack_pending(pending), waiting, reached)


def first_difference_of_waiting(recorded: bytes, replayed: bytes) -> Difference | None:
    """The first source, or the first event that waits, in which two records differ."""
    if recorded == replayed:
        return None
    (about, events), (other, others) = map(_plain, (recorded, replayed))
    for one, two in zip(about["sources"], other["sources"], strict=False):
        for field in one:
            if one[field] != two[field]:
                name = f"source {one['name']!r}, {field}"
                return Difference("waiting", name, (), one[field], two[field])
    for field in ("sources", "segments"):
        if about[field] != other[field]:
            return Difference("waiting", field, (), about[field], other[field])
    events, others = _with_codes(events), _with_codes(others)
    found = first_difference(events, others)
    if found is None:
        return None
    return Difference("waiting", found.name, found.index, found.recorded, found.replayed)


def _with_codes(events: pa.Table) -> pa.Table:
    """The same with codes for texts: an earlier version has recorded nothing else."""
    for at, column in enumerate(events.column_names):
        if column.startswith("column ") and events.column(at).type == pa.large_string():
            texts = events.column(at).combine_chunks()
            encoded = texts.dictionary_encode()
            codes = np.append(string_codes(encoded.dictionary), np.int64(0))
            numbers = codes[encoded.indices.fill_null(len(codes) - 1).to_numpy()]
            events = events.set_column(at, column, pa.array(numbers))
    return events


def _plain(packed: bytes) -> tuple[dict[str, Any], pa.Table]:
    if not packed:
        return {"sources": [], "segments": []}, pa.table({})
    found = unpacked(packed)
    return asdict(found.about), found.events
