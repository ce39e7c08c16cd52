"""What snapshots and checkpoints hold of events that are not committed, as bytes.

Arrow streams: of the events, with the sources as JSON in the schema's metadata; of the output that
nobody has polled; of frontiers given before any event; of late events that nobody has fetched.
Those of which there is something. As it may come from anywhere, all of it is checked when it is
read: C reads the columns.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.columns.events import order_key
from specstream.columns.strings import StringTable, string_code
from specstream.columns.unentered import ColumnTexts, numbers_of
from specstream.declarations.schema import Schema
from specstream.engine.sources import END, Source
from specstream.errors import InputError
from specstream.files.arrow_stream import stream_of
from specstream.files.untrusted import MOST, Malformed, json_of, made_of, natural, read_tables

__all__ = ["Unpacked", "Waiting", "column_names", "columns_of", "packed", "unpacked"]


@dataclass(frozen=True)
class Waiting:
    """What a snapshot says of events that are not committed.

    Attributes:
        sources: of the engine.
        highest: (timestamp, rank) of the last of all their events.
        event: the operator's event schema.
        segments: place of the source, sequence number of the first event, and number of events.
        held: whether there is output that nobody has polled.
        lowest: timestamp of the first of all events; earlier snapshots have not got it, nor:
        given: numbers of the sources whose frontier was given before any event.
        side: number of tables of late events that nobody has fetched.
        late: late events of sources that have not joined.
        reached: (timestamp, rank) that the frontier came to last before the end.
        due: whether timers are due at the frontier.
        ending: how many of the first timers fire at an end that has begun; 0: it has not. Of a
            pipeline the fields of its vertices, and how many of each.
        has_ended: whether timers have been told of the end of these sources.
        tentative: places of the segments of tentative events, and their versions.
        confirmed: places of sources, and the number up to which their events are.
        retracted: places of sources, numbers of events of theirs that never came, and the times
            that these had.
    """

    sources: list[Source]
    highest: tuple[int, int] | None
    event: list[tuple[str, str]]
    segments: list[tuple[int, int, int]]
    held: bool
    lowest: int | None = None
    given: list[int] = field(default_factory=list)
    side: int = 0
    late: int = 0
    reached: tuple[int, int] | None = None
    due: bool = False
    ending: int | list[tuple[str, int]] = 0
    has_ended: bool = False
    tentative: list[tuple[int, int]] = field(default_factory=list)
    confirmed: list[tuple[int, int]] = field(default_factory=list)
    retracted: list[tuple[int, int, int]] = field(default_factory=list)


def packed(about: Waiting, events: pa.Table, others: list[pa.Table]) -> bytes:
    """Events that wait, and the tables that ``about`` tells of, as Arrow streams."""
    events = events.replace_schema_metadata({"arrivals": json.dumps(about, default=vars)})
    return b"".join(map(stream_of, [events, *others]))


class Unpacked(NamedTuple):
    """What :func:`packed` gave.

    Attributes:
        about: what it says.
        events: those that wait.
        held: output that nobody has polled.
        given: frontiers given before any event, as Arrow has them.
        side: late events that nobody has fetched.
    """

    about: Waiting
    events: pa.Table
    held: pa.Table | None
    given: list[pa.Scalar]
    side: list[pa.Table]


def unpacked(packed: bytes) -> Unpacked:
    """What :func:`packed` gave.

    Raises:
        Malformed: it gave none such.
    """
    what = "events that wait"
    tables = read_tables(packed, what)
    metadata = (tables[0].schema.metadata or {}) if tables else {}
    about = made_of(json_of(metadata.get(b"arrivals", b""), what), Waiting, what)
    natural(about.late, f"{what}: late events")
    for count in [n for _, n in about.ending] if isinstance(about.ending, list) else [about.ending]:
        natural(count, f"{what}: timers at the end")
    natural(about.side, f"{what}: tables of late events", len(tables))
    expected = 1 + about.held + bool(about.given) + about.side
    if len(tables) != expected:
        raise Malformed(f"{what}: {len(tables)} Arrow streams; expected {expected}")
    events = tables.pop(0)
    held = tables.pop(0) if about.held else None
    given = _frontiers(about, tables.pop(0)) if about.given else []
    if events.column_names.count("key") != 1:
        raise Malformed(f"{what} have not one column 'key'")
    _check_sources(about)
    left = events.num_rows
    ends: list[tuple[int, int, int]] = []
    for number, sequence, count in about.segments:
        natural(number, f"{what}: place of a source", len(about.sources) - 1)
        natural(count - 1, f"{what}: number of events, less one,", left - 1)
        left -= count
        natural(sequence, f"{what}: a sequence number", about.sources[number].next_sequence - count)
        ends.append((number, sequence, sequence + count))
    for at, version in about.tentative:
        natural(at, f"{what}: place of a tentative one", len(about.segments) - 1)
        natural(version, f"{what}: version of a tentative one")
        natural(
            about.segments[at][2] - 1, f"{what}: number of tentative ones together, less one,", 0
        )
    for number, *_ in (*about.confirmed, *about.retracted):
        natural(number, f"{what}: place of a source of tentative ones", len(about.sources) - 1)
    ends.sort()
    if left or any(a[0] == b[0] and b[1] < a[2] for a, b in itertools.pairwise(ends)):
        raise Malformed(f"{what}: {left} of no segment, or two with one sequence number")
    key = events.column("key")
    if key.null_count or (len(key) == 0 and not pa.types.is_null(key.type)):
        # Without events no time was looked at; the type must be one that times can have.
        _order_key(key.slice(0, 0))
    if key.null_count:
        raise Malformed(f"{what}: {key.null_count} without a time")
    return Unpacked(about, events, held, given, tables)


def _frontiers(about: Waiting, table: pa.Table) -> list[pa.Scalar]:
    """Those given before any event, one in each column."""
    what = "frontiers given before any event"
    for number in about.given:
        natural(number, f"{what}: place of a source", len(about.sources) - 1)
    if table.num_rows != 1 or table.num_columns != len(about.given):
        raise Malformed(
            f"{what}: {table.num_rows} row(s) of {table.num_columns}; "
            f"expected one of {len(about.given)}"
        )
    given = [column[0] for column in table.columns]
    if not all(to.is_valid for to in given):
        raise Malformed(f"{what}: one is null")
    for column in table.columns:
        _order_key(column)
    return given


def _check_sources(about: Waiting) -> None:
    """Looks whether sources are such as :class:`Sources` makes."""
    what = "sources of events that wait"
    names = [source.name for source in about.sources]
    if len(set(names)) < len(names) or len({type(name) for name in names}) > 1:
        raise Malformed(f"{what} have one name twice, or numbers and texts for names")
    numbers = [*(about.highest or ()), *(about.reached or ())]
    numbers += [] if about.lowest is None else [about.lowest]
    for source in about.sources:
        of = f"source {source.name!r}"
        if isinstance(source.name, int):
            code, rank = source.name, source.name
        else:
            code, rank = string_code(source.name), max(-MOST, min(source.rank, MOST))
        if source.code != code or source.rank != rank or source.name == END:
            raise Malformed(f"{of} has code {source.code} and rank {source.rank}")
        natural(source.next_sequence, f"{of}: next_sequence")
        natural(source.late, f"{of}: late")
        if source.ended and source.frontier != END:
            raise Malformed(f"{of} has ended, and its frontier is {source.frontier}")
        numbers += [source.last, source.rank if source.frontier is None else source.frontier]
    if not all(-(2**63) <= number <= END for number in numbers):
        raise Malformed(f"{what}: a time does not fit int64")
    ranks = [source.rank for source in sorted(about.sources, key=_by_name)]
    if any(later <= earlier for earlier, later in itertools.pairwise(ranks)):
        raise Malformed(f"{what} are not ranked in the order of their names")
    sent = [
        (source.last, source.rank)
        for source in about.sources
        if source.next_sequence or source.last > -(2**63)
    ]
    if about.highest != max(sent, default=None) or (about.lowest is not None and not sent):
        raise Malformed(f"{what}: {about.highest} is not the last of their events")


def _by_name(source: Source) -> Any:
    return source.name


def _order_key(times: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The order column of a snapshot's events as int64 of the same order."""
    try:
        return order_key(times.combine_chunks(), "key", "events that wait")
    except (InputError, pa.ArrowException) as error:
        raise Malformed(f"times of events: {error}") from None


def columns_of(
    table: pa.Table, schema: Schema, strings: StringTable
) -> tuple[tuple[npt.NDArray[Any], ...], dict[str, ColumnTexts]]:
    """The columns of events that :func:`packed` has written: as C reads them, so checked; and the
    texts of those that the operator does not enter.

    Of those that the operator did not enter that wrote them there are texts, of others codes; which
    of them it enters itself may be another matter.
    """
    names = column_names(schema)
    dtypes: list[Any] = [np.int64, *schema.declared_dtypes]
    if table.column_names != ["key", *names]:
        raise Malformed(
            f"events have the columns {', '.join(map(ascii, table.column_names))}; expected "
            f"{', '.join(['key', *names])}"
        )
    columns: list[npt.NDArray[Any]] = []
    texts: dict[int, pa.Array] = {}
    for at, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
        column = table.column(name)
        if column.type == pa.large_string() and schema.kinds[at - 1 : at] == ("str",):
            texts[at] = column.combine_chunks()
            columns.append(np.zeros(len(column), np.int64))
            continue
        if column.type != pa.from_numpy_dtype(dtype) or column.null_count:
            raise Malformed(
                f"events: {name} is of type {column.type} with {column.null_count} null(s); "
                f"expected {np.dtype(dtype)} without"
            )
        # Aligned: a stream may have its buffers anywhere.
        columns.append(np.require(column.to_numpy(), requirements=["C", "A"]))
    if not np.array_equal(columns[0], _order_key(table.column("key"))):
        raise Malformed("events: key and timestamp are not the same times")
    nulls = dict(zip(schema.nullable, columns[1 + len(schema) :], strict=True))
    for (name, column), values in zip(schema, columns[1:], strict=False):
        flags = [values] if column.kind == "bool" else []
        flags += [nulls[name]] if name in nulls else []
        if any(flag.max() > 1 for flag in flags):
            raise Malformed(f"events: column {name!r} holds what is neither true nor false")
        if pa.types.is_date(column.arrow) and (values != values.astype(np.int32)).any():
            raise Malformed(f"events: column {name!r} holds what is no day")
    kept = _with_texts(columns, texts, nulls, schema, strings)
    return tuple(columns), kept


def _with_texts(
    columns: list[npt.NDArray[Any]],
    texts: dict[int, pa.Array],
    nulls: dict[str, npt.NDArray[Any]],
    schema: Schema,
    strings: StringTable,
) -> dict[str, ColumnTexts]:
    """The texts of the columns that the operator does not enter; the others get their codes."""
    literals, kept = dict(schema.unentered), {}
    for at, (name, column) in enumerate(schema, start=1):
        if column.kind != "str":
            continue
        is_null = nulls.get(name, np.zeros(len(columns[at]), np.uint8)) != 0
        of = texts.get(at)
        if of is None:
            codes, places = np.unique(columns[at], return_inverse=True)
            found = strings.texts(codes).take(pa.array(places))
            if (found.is_null().to_numpy(zero_copy_only=False) & ~is_null).any():
                raise Malformed(f"events: column {name!r} holds codes of no known string")
            if name in literals:
                of = pc.if_else(pa.array(is_null), pa.scalar(None, found.type), found)
        elif not np.array_equal(of.is_null().to_numpy(zero_copy_only=False), is_null):
            raise Malformed(f"events: column {name!r} has no text where it is not null")
        if name in literals:
            kept[name] = ColumnTexts(of)
            columns[at] = numbers_of(of, literals[name])
        elif of is not None:
            encoded = of.dictionary_encode()
            codes = np.append(strings.add_all(encoded.dictionary), np.int64(0))
            columns[at] = codes[encoded.indices.fill_null(len(codes) - 1).to_numpy()]
    return kept


def column_names(schema: Schema) -> list[str]:
    """Of the events' columns in a snapshot, behind their key."""
    return [
        "timestamp",
        *(f"column {name}" for name in schema.names),
        *(f"null {name}" for name in schema.nullable),
    ]
