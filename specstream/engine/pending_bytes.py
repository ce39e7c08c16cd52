"""Pending events to bytes and back: what snapshots and checkpoints hold of them.

The bytes themselves, and the checks of what may come from anywhere, are in ``packed_pending.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.derived import NO_TEXTS, Texts, derived_columns
from specstream.columns.events import Events
from specstream.columns.tables import in_zones
from specstream.engine.event_columns import array_of_one
from specstream.engine.packed_pending import Waiting, column_names, columns_of, packed, unpacked
from specstream.engine.pending_events import PendingEvents
from specstream.engine.segments import Block, SingleEvent
from specstream.errors import SnapshotError
from specstream.files.untrusted import Malformed

__all__ = ["check_held", "pack_pending", "pending_codes", "pending_words", "restore_pending"]


def pack_pending(pending: PendingEvents) -> bytes:
    """The sources, and the events that are not applied; while nothing commits."""
    numbers = {source.name: number for number, source in enumerate(pending.sources)}
    if not numbers:
        return b""
    if pending.segments.phases is not None:
        pending.segments.phases.note()
    unentered = dict(pending.schema.unentered)
    pieces: list[pa.Table] = []
    segments: list[tuple[int, int, int]] = []
    tentative: list[tuple[int, int]] = []
    for segment in pending.segments.by_row:
        left = 0 if segment.is_released else segment.not_applied
        if not left:
            continue
        events = segment.events
        done = events.count - left
        if segment.native.is_tentative:
            tentative.append((len(segments), pending.tentative.version(segment)))
        segments.append((numbers[segment.source.name], segment.first_sequence + done, left))
        # What is derived of them is derived again, maybe by another version of the operator.
        own = 2 + len(pending.schema.declared_dtypes)
        columns = [pa.array(column[done:]) for column in events.columns[:own]]
        del columns[1]  # the source
        for number, name in enumerate(pending.schema.names, start=1):
            if name in unentered:
                columns[number] = events.texts[name].slice(done).array()
        names = ["key", *column_names(pending.schema)]
        pieces.append(pa.table([events.keys[0].slice(done), *columns], names=names))
    about = Waiting(
        list(pending.sources),
        pending.sources.highest,
        pending.schema.describe(),
        segments,
        pending.held is not None,
        pending.sources.lowest,
        [numbers[source.name] for source, _ in pending.times.frontiers],
        len(pending.late.side),
        pending.sources.late,
        pending.sources.reached,
        pending.due,
        pending.ending,
        pending.has_ended,
        tentative,
        pending.tentative.confirmed(numbers),
        pending.tentative.retracted(numbers),
    )
    tables = [] if pending.held is None else [pending.held]
    frontiers = [array_of_one(to) for _, to in pending.times.frontiers]
    if frontiers:
        tables.append(pa.table({str(at): to for at, to in enumerate(frontiers)}))
    tables += pending.late.side
    nothing = pa.table({"key": pa.array([], pending.times.type)})
    return packed(about, pa.concat_tables(pieces) if pieces else nothing, tables)


def pending_codes(pending: PendingEvents) -> Iterator[npt.NDArray[np.int64]]:
    """Codes of strings in what :func:`pack_pending` gives, and those of the sources."""
    yield np.array([source.code for source in pending.sources], np.int64)
    texts = [2 + at for at, (_, column) in enumerate(pending.schema) if column.kind == "str"]
    for segment in pending.segments.by_row:
        left = 0 if segment.is_released else segment.not_applied
        if left and texts:
            columns = segment.columns
            yield from (columns[at][len(columns[at]) - left :] for at in texts)


def pending_words(pending: PendingEvents) -> Iterator[npt.NDArray[np.int64]]:
    """Words of the events that somebody may still ask for, codes of strings among them, and the
    codes of the sources."""
    yield np.array([source.code for source in pending.sources], np.int64)
    blocks: dict[int, Block] = {}
    for segment in pending.segments.by_row:
        if isinstance(segment, SingleEvent) and not segment.is_released:
            blocks[id(segment.kept)] = segment.kept
        elif not segment.is_released:
            yield from _words_of(segment.columns[2:])
    for block in blocks.values():
        yield from _words_of(column[: block.used] for column in block.columns[2:])
        yield from _words_of(block.held)


def restore_pending(pending: PendingEvents, content: bytes) -> None:
    """Takes over what :func:`pack_pending` gave; the events are to be submitted again.

    Raises:
        Malformed: it gave none such.
        SnapshotError: events are pending that do not fit the operator.
    """
    if not content:
        return
    about, table, pending.held, given, side = unpacked(content)
    expected = pending.schema.describe()
    if about.segments and _without_zones(about.event) != _without_zones(expected):
        raise SnapshotError(
            f"{pending.what}: the snapshot holds {table.num_rows} event(s) that are not "
            f"committed, with the columns {dict(about.event)}, and the operator declares "
            f"{dict(expected)}: poll until nothing is pending before a snapshot "
            "for another operator"
        )
    columns: tuple[npt.NDArray[Any], ...] = ()
    texts: Texts = NO_TEXTS
    if about.segments:
        columns, texts = columns_of(table, pending.schema, pending.strings)
        declared = (columns[0], columns[0], *columns[1:])
        derived = derived_columns(pending.schema, declared, pending.strings, texts)
        columns = (*columns, *derived)
    key = table.column("key")
    pending.times.type = None if pa.types.is_null(key.type) else key.type
    pending.sources.restore(
        [replace(source) for source in about.sources],
        about.highest,
        about.lowest,
        about.late,
        about.reached,
    )
    pending.due, pending.ending, pending.has_ended = about.due, about.ending, about.has_ended
    known = list(pending.sources)
    pending.times.frontiers = [
        (known[number], to) for number, to in zip(about.given, given, strict=True)
    ]
    pending.late.side = side
    begin = 0
    versions = dict(about.tentative)
    pending.tentative.restore(
        [(known[number].name, up_to) for number, up_to in about.confirmed],
        [(known[number].name, at, time) for number, at, time in about.retracted],
    )
    for at, (number, sequence, count) in enumerate(about.segments):
        piece = slice(begin, begin + count)
        begin += count
        times = columns[0][piece]
        if (times[1:] < times[:-1]).any():
            raise Malformed(f"events of source {known[number].name!r} are not in order")
        events = Events(
            count,
            (times, times, *(column[piece] for column in columns[1:])),
            (key.slice(piece.start, count).combine_chunks(), pa.array([])),
            np.arange(count),
            texts={name: of.slice(piece.start, count) for name, of in texts.items()},
        )
        source = known[number]
        following = source.next_sequence
        source.next_sequence = sequence
        segment = pending.add(source, events)
        source.next_sequence = following
        if at in versions:
            pending.add_tentative(segment, sequence, versions[at])
        pending.unsent.append(segment)


def check_held(pending: PendingEvents, expected: pa.Schema) -> None:
    """Looks whether what ``pending.held`` has goes together with later output.

    Raises:
        SnapshotError: it is of another operator, or of an engine with another ``keys``.
    """
    if pending.held is None:
        return
    pending.held = in_zones(pending.held, expected)
    if pending.held.schema != expected:
        columns = [
            ", ".join(f"{field.name} ({field.type})" for field in schema)
            for schema in (pending.held.schema, expected)
        ]
        raise SnapshotError(
            f"{pending.what}: the snapshot holds {pending.held.num_rows} row(s) that nobody has "
            f"polled, with the columns {columns[0]}, and the engine's output has {columns[1]}: "
            "poll before a snapshot for another operator, or restore with the same keys="
        )


def _words_of(columns: Iterable[npt.NDArray[Any]]) -> Iterator[npt.NDArray[np.int64]]:
    """Those of columns that may hold codes of strings, and of the lists that they point to."""
    for column in columns:
        if column.dtype == np.int64:
            yield column
        yield from getattr(column, "held", ())


def _without_zones(described: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Columns as a snapshot describes them, but for the zones of times, which are no part of what
    an operator reads."""
    return [(name, re.sub(r", tz=[^]]+", "", of)) for name, of in described]
