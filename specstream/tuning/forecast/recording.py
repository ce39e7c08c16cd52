"""A sequential run, taken down: what each event read, wrote, and took."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import ffi, lib
from specstream.declarations.limits import Limits
from specstream.definition.operator import Operator
from specstream.engine.engine import Engine
from specstream.tuning.forecast.events import Access, Event

if TYPE_CHECKING:
    from specstream._native import ss_recorder_p

__all__ = ["Recording", "record", "under_eager"]

# Log entries of one recording; 16 bytes each.
MOST_ENTRIES = 1 << 22
# A range of events that the clock measures well.
RANGE_SECONDS = 10e-6
REPEAT = 5


@dataclass(frozen=True)
class Recording:
    """What events did on one thread.

    Attributes:
        events: with what each of them took, plainly and speculatively.
        range: events of a range that was timed.
    """

    events: list[Event]
    range: int = 1


@dataclass(frozen=True)
class _Pass:
    """One run over the events in chunks: records and log entries."""

    records: npt.NDArray[np.void]
    entries: npt.NDArray[np.void]

    @property
    def nanoseconds(self) -> npt.NDArray[np.float64]:
        """Of each run, without reading the clock."""
        return np.maximum(self.records["nanoseconds"] - clock_nanoseconds(), 1.0)


_MEMBERS = {
    **dict.fromkeys(("first", "last", "nanoseconds"), np.int64),
    **dict.fromkeys(("speculative", "dropped"), np.bool_),
    **dict.fromkeys(("entry", "reads", "writes", "row_words"), np.uint64),
}
_RECORD = np.dtype(
    {
        "names": list(_MEMBERS),
        "formats": list(_MEMBERS.values()),
        "offsets": [ffi.offsetof("struct ss_record", name) for name in _MEMBERS],
        "itemsize": ffi.sizeof("struct ss_record"),
    }
)
# The kind is that of a write: enum ss_delta.
_ENTRY = np.dtype(
    [("word", np.uint32), ("bytes", np.uint16), ("kind", np.uint16), ("value", np.uint64)]
)


def clock_nanoseconds() -> float:
    """What reading the clock takes: the least of some."""
    return float(min(lib.ss_clock_nanoseconds() for _ in range(20)))


def record(
    operator: Operator, warm_up: pa.Table, batch: pa.Table, order: dict[str, Any]
) -> Recording:
    """Runs a batch on one thread and takes down what its events did.

    Args:
        operator: what to run.
        warm_up: events that come before; not recorded.
        batch: the events.
        order: the columns of the order key, as of :meth:`specstream.Engine.process`.

    Short events are timed in ranges, and a range's time is shared out among its events in
    proportion to what each took by itself. Each time is the least of several runs: anything else
    that the machine does only adds.
    """

    def passes(events: pa.Table, chunk: int, speculate: bool) -> list[_Pass]:
        return [_run(operator, warm_up, events, order, chunk, speculate) for _ in range(REPEAT)]

    found = _run(operator, warm_up, batch, order, 1, True, MOST_ENTRIES)
    count = len(found.records)
    batch = batch.slice(0, count)  # the log entries of the rest had no room
    single = passes(batch, 1, True)
    each = _least(single)
    entries = single[0].records["reads"] + single[0].records["writes"]
    fitting = Limits().reads // 4 // max(int(entries.max()), 1)
    chunk = round(RANGE_SECONDS * 1e9 / max(float(each.mean()), 1.0))
    chunk = max(1, min(64, chunk, fitting))
    ranged = passes(batch, chunk, True)
    speculative = _scaled(each, ranged, chunk)
    plain = _scaled(_least(passes(batch, 1, False)), passes(batch, chunk, False), chunk)
    events = []
    for number in range(count):
        row = found.records[number]
        at, reads, writes = int(row["entry"]), int(row["reads"]), int(row["writes"])
        written = found.entries[at + reads : at + reads + writes]
        kinds = written["kind"]
        foretold = _keys(written[kinds == lib.SS_FORESEEN])
        updates = written[(kinds >= lib.SS_FIRST_DELTA) & (kinds <= lib.SS_LAST_DELTA)]
        events.append(
            Event(
                float(plain[number]),
                float(speculative[number]),
                _accesses(found.entries[at : at + reads]),
                _accesses(written),
                int(row["row_words"]),
                bool(row["dropped"]),
                foretold | _keys(updates),
            )
        )
    return Recording(events, chunk)


def under_eager(
    known: Recording,
    operator: Operator,
    warm_up: pa.Table,
    batch: pa.Table,
    order: dict[str, Any],
) -> Recording:
    """The same events under protocol ``eager``: what its runs take.

    Its log holds versions, so what the events read and wrote is that of the recording before.
    """

    def passes(chunk: int) -> list[_Pass]:
        return [
            _run(operator, warm_up, batch, order, chunk, True, protocol="eager")
            for _ in range(REPEAT)
        ]

    batch = batch.slice(0, len(known.events))
    single = passes(1)
    speculative = _scaled(_least(single), passes(known.range), known.range)
    records = single[0].records
    events = [
        replace(
            event,
            speculative=float(speculative[number]),
            retried=bool(records["dropped"][number]),
        )
        for number, event in enumerate(known.events)
    ]
    return Recording(events, known.range)


def _run(
    operator: Operator,
    warm_up: pa.Table,
    batch: pa.Table,
    order: dict[str, Any],
    chunk: int,
    speculate: bool,
    most_entries: int = 0,
    protocol: str = "value",
) -> _Pass:
    most = 2 * batch.num_rows + 1
    records = np.zeros(most, _RECORD)
    entries = np.zeros(most_entries, _ENTRY)
    recorder: ss_recorder_p = ffi.new("struct ss_recorder *")
    recorder.records = ffi.cast("struct ss_record *", records.ctypes.data)
    recorder.record_capacity = most
    if most_entries:  # otherwise they are counted only, which takes no time
        recorder.entries = ffi.cast("struct ss_read *", entries.ctypes.data)
        recorder.entry_capacity = most_entries
    # With a horizon of 1, one thread runs every head in place, transaction by transaction.
    with Engine(
        operator,
        threads=1,
        horizon=1,
        chunk=chunk,
        protocol=protocol,
        execution="speculate" if speculate else "ordered",
    ) as engine:
        engine.process(warm_up, **order)
        engine.parts.native.record(recorder)
        engine.process(batch, **order)
    found = records[: recorder.record_count]
    if speculate:
        found = found[found["speculative"]]
    return _Pass(found, entries[: recorder.entry_count])


def _least(passes: list[_Pass]) -> npt.NDArray[np.float64]:
    """Nanoseconds of each run: the least of the passes."""
    least: npt.NDArray[np.float64] = np.min([one.nanoseconds for one in passes], axis=0)
    return least


def _scaled(
    each: npt.NDArray[np.float64], ranged: list[_Pass], chunk: int
) -> npt.NDArray[np.float64]:
    """The events' own times, made to add up to those of their ranges."""
    of_range = _least(ranged)
    place = np.arange(len(each)) // chunk
    place = np.minimum(place, len(of_range) - 1)
    sums = np.bincount(place, weights=each, minlength=len(of_range))
    return each * (of_range / np.maximum(sums, 1e-9))[place]


def _keys(entries: npt.NDArray[np.void]) -> frozenset[int]:
    return frozenset(access.byte for access in _accesses(entries))


def _accesses(entries: npt.NDArray[np.void]) -> list[Access]:
    """Log entries as accesses; one may be to several narrow elements beside each other."""
    found: list[Access] = []
    for word, mask, _, value in entries.tolist():
        if mask == 0:
            found.append(Access(8 * word, value))
            continue
        byte = 0
        while mask >> byte:
            # The largest element that may begin here and has all of its bytes in the mask.
            sizes = (size for size in (4, 2, 1) if byte % size == 0 and _has(mask, byte, size))
            size = next(sizes, 0)
            if size:
                part = value >> (8 * byte) & (1 << 8 * size) - 1
                found.append(Access(8 * word + byte, part, size))
            byte += size or 1
    return found


def _has(mask: int, byte: int, size: int) -> bool:
    wanted = (1 << size) - 1
    return mask >> byte & wanted == wanted
