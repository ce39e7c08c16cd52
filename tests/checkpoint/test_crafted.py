"""Bytes from anywhere: whoever wrote them, they are refused by name or what comes of them works."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from support.checkpoint import crafted, readers

import specstream as ss
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.checkpoint.run.inputs import Input
from specstream.checkpoint.run.prefetch import catch_up
from specstream.errors import SnapshotError

INPUTS = 40


@pytest.mark.slow
@pytest.mark.parametrize("name", readers.NAMES)
def test_crafted_bytes_are_refused_or_work(name: str, tmp_path: Path) -> None:
    reader = readers.make(name, tmp_path)
    try:
        taken = [reader.attempt(random.Random(f"{name} {number}")) for number in range(INPUTS)]
    finally:
        reader.close()
    assert 0 < sum(taken) < INPUTS  # else nothing was tried


# ---- snapshots ----


class Small(ss.State):
    n = ss.scalar(int)
    flags = ss.array(bool, 3)
    bits = ss.array(np.bool_, 3)


def follow(state, event, emit):
    state.n += event.x
    state.flags[event.x % 3] = True
    emit(event.name, state.n)


EVENT: dict[str, Any] = {"x": int, "name": str, "yes": bool, "maybe": ss.nullable(int)}
small = ss.operator(state=Small, event=EVENT, emits={"name": str, "n": int})(follow)


def batch(times: list[int]) -> dict[str, Any]:
    return {
        "time": times,
        "from": ["b" if time % 2 else "a" for time in times],
        "x": times,
        "name": [f"event {time}" for time in times],
        "yes": [True for _ in times],
        "maybe": pa.array([None if time % 3 else time for time in times], pa.int64()),
    }


@pytest.fixture(scope="module")
def snapshot() -> bytes:
    """States, strings in a stream, events of two sources that wait, held output, bad rows."""
    with (
        mock.patch("specstream.engine.snapshot._LISTED", 1),
        ss.Engine(small, threads=2, rejected_rows="side") as engine,
    ):
        engine.submit(batch([2, 5, 4, 9, 8, 7]), order_by="time", source_column="from")
        engine.submit(
            {**batch([10]), "x": pa.nulls(1, pa.int64())}, order_by="time", source_column="from"
        )
        for source in ("a", "b"):
            engine.advance(source, 5)
        readers.wait(lambda: engine.stats.events == 2)
        found = engine.snapshot()
    header, sections = crafted.snapshot_parts(found)
    assert type(header["strings"]) is int
    assert sections["arrivals"]
    assert sections["bad_rows"]
    return found


@pytest.fixture(scope="module")
def engine() -> Iterator[ss.Engine]:
    with ss.Engine(small, threads=2, rejected_rows="side") as engine:
        yield engine


def refused(engine: ss.Engine, snapshot: bytes, message: str) -> None:
    """Asserts that a snapshot is refused, and that nothing of it is left."""
    before = engine.snapshot()
    with pytest.raises(SnapshotError, match=f"'follow'.*{message}"):
        engine.restore(snapshot)
    assert engine.snapshot() == before


def changed(snapshot: bytes, name: str, change: Callable[[Any], Any]) -> bytes:
    """A snapshot whose header, or one of whose sections, was changed."""
    header, sections = crafted.snapshot_parts(snapshot)
    if name == "header":
        return crafted.snapshot_of(json.dumps(change(header) or header).encode(), sections)
    sections[name] = change(sections[name])
    if name in header:
        header[name] = len(sections[name])
    return crafted.snapshot_of(json.dumps(header).encode(), sections)


def test_the_snapshot_that_is_changed_here_is_good(snapshot: bytes, engine: ss.Engine) -> None:
    header, sections = crafted.snapshot_parts(snapshot)
    assert crafted.snapshot_of(json.dumps(header).encode(), sections) == snapshot
    engine.restore(snapshot)
    [rest] = [table for table in readers.finish(engine) if table.num_rows]
    assert rest["name"].to_pylist() == [f"event {time}" for time in (2, 4, 5, 7, 8, 9)]
    rejected = engine.rejected_rows()
    assert rejected is not None
    assert rejected.num_rows == 1


def put(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda header: header.__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # Three values, and the header says forty: what follows them in memory was shown.
        (lambda h: h["fields"][1].__setitem__("shape", [40]), "length of section 'bad_rows'"),
        (lambda h: h["fields"][1].__setitem__("shape", [2**31]), "length of section 'state'"),
        (lambda h: h["fields"][1].__setitem__("shape", [2**70]), r"shape\[0\].*beyond 64 bits"),
        (lambda h: h["fields"][1].__setitem__("shape", [-1]), r"'flags' has shape \(-1,\)"),
        (lambda h: h["fields"][0].__setitem__("kind", "int7"), "no element type 'int7'"),
        (lambda h: h["fields"].append(h["fields"][0]), "the field 'n' twice"),
        (lambda h: h["fields"].clear(), "bytes follow its last section"),
        (put("fields", {"n": 1}), "fields is a dict; expected list"),
        (put("next_sequence", -1), "next_sequence is -1"),
        (put("next_sequence", 2**63 - 1), "next_sequence is 9223372036854775807"),
        (put("next_sequence", 1.0), "next_sequence is 1.0; expected int"),
        (put("next_sequence", True), "next_sequence is True; expected int"),
        (put("strings", -8), "section 'strings' is -8"),
        (put("strings", 2**62), "section 'strings' is 4611686018427387904"),
        (put("strings", [7]), "strings"),
        (put("strings", ["\ud800"]), "strings"),
        (put("arrivals", 2**40), "section 'arrivals' is 1099511627776"),
        (put("bad_rows", 0), "bytes follow its last section"),
        (put("pickle", 1), "a member 'pickle', which it cannot have"),
        (lambda h: h.pop("state") and None, "no member 'state'"),
        (lambda h: [h], "the header is a list"),
    ],
)
def test_what_a_header_says_is_checked(
    snapshot: bytes, engine: ss.Engine, change: Callable[[Any], Any], message: str
) -> None:
    refused(engine, changed(snapshot, "header", change), message)


def test_a_header_is_no_json(snapshot: bytes, engine: ss.Engine) -> None:
    _, sections = crafted.snapshot_parts(snapshot)
    for header in (crafted.NESTED.encode(), b"\xff\xfe", b"", b"{", b'{"n": 1' + b"0" * 9999):
        refused(engine, crafted.snapshot_of(header, sections), "the header: no JSON")
    refused(engine, crafted.snapshot_of(b"{}", sections, 2**63), "header's length")


def test_a_bool_is_true_or_false(snapshot: bytes, engine: ss.Engine) -> None:
    for at, field in ((8, "flags"), (32, "bits")):
        words = lambda content, at=at: content[:at] + b"\2" + content[at + 1 :]  # noqa: E731
        refused(engine, changed(snapshot, "words", words), f"'{field}' is of type bool and holds 2")


def texts(column: pa.Array, name: str = "strings") -> Callable[[bytes], bytes]:
    return lambda _: crafted.stream(pa.table({name: column}))


def with_end(content: bytes, end: int) -> bytes:
    """Strings whose last one ends elsewhere."""
    [table] = crafted.tables(content)
    strings = table["strings"].chunks[-1]
    offsets = strings.buffers()[1].to_pybytes()[: 8 * (len(strings) + 1)]
    before, found, after = content.rpartition(offsets)
    assert found
    return before + found[:-8] + struct.pack("<q", end) + after


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (texts(pa.array(["a", None], pa.large_string())), "1 of them are null"),
        (texts(pa.array(["a", "b"])), r"columns strings \(string\); expected"),
        (texts(pa.array(["a"], pa.large_string()), "other"), "columns other"),
        (texts(pa.array(["a", "a"], pa.large_string())), "string 'a' comes twice"),
        (lambda content: content + content, "2 Arrow streams; expected one"),
        (lambda content: content[:-40], "no sound Arrow stream"),
        (lambda content: content.replace(b"event ", b"event\xff"), "no sound Arrow.*UTF8"),
        # The end of a text, far behind the last one and behind the end of the memory.
        (lambda content: with_end(content, 2**40), "no sound Arrow stream"),
        (lambda content: with_end(content, -1), "no sound Arrow stream"),
    ],
)
def test_strings_are_checked(
    snapshot: bytes, engine: ss.Engine, change: Callable[[bytes], bytes], message: str
) -> None:
    refused(engine, changed(snapshot, "strings", change), message)


def test_a_few_bytes_cannot_claim_more_rows_than_there_is_memory(
    snapshot: bytes, engine: ss.Engine
) -> None:
    schema = pa.schema([("x", pa.null()), ("reason", pa.string())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema.remove(1)) as writer:
        nothing = pa.Array.from_buffers(pa.null(), 2**30, [None])
        writer.write_batch(pa.record_batch([nothing], schema=schema.remove(1)))
    claimed = sink.getvalue().to_pybytes()
    refused(engine, changed(snapshot, "bad_rows", lambda _: claimed), "claims 1073741824 rows")
    other = crafted.stream(pa.table({"x": [1]}))
    refused(engine, changed(snapshot, "bad_rows", lambda _: other), "texts 'reason'")


def about(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    """What a snapshot says of waiting events, changed."""

    def of(content: bytes) -> bytes:
        events, *rest = crafted.tables(content)
        said = json.loads(events.schema.metadata[b"arrivals"])
        change(said)
        events = events.replace_schema_metadata({"arrivals": json.dumps(said)})
        return b"".join(map(crafted.stream, (events, *rest)))

    return of


def source(number: int, **values: Any) -> Callable[[bytes], bytes]:
    return about(lambda said: said["sources"][number].update(values))


def column(name: str, values: Any) -> Callable[[bytes], bytes]:
    """A column of the waiting events, changed."""

    def of(content: bytes) -> bytes:
        events, *rest = crafted.tables(content)
        at = events.column_names.index(name)
        made = values(events.column(at).to_pylist()) if callable(values) else values
        events = events.set_column(at, name, pa.array(made, getattr(made, "type", None)))
        return b"".join(map(crafted.stream, (events, *rest)))

    return of


def twice(name: str, content: bytes) -> bytes:
    """A column of the waiting events, once more."""
    events, *rest = crafted.tables(content)
    events = events.append_column(name, events[name])
    return b"".join(map(crafted.stream, (events, *rest)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (about(lambda said: said["segments"][0].__setitem__(0, 2)), "place of a source is 2"),
        (about(lambda said: said["segments"][0].__setitem__(0, -1)), "place of a source is -1"),
        (about(lambda said: said["segments"][0].__setitem__(2, 2**40)), "number of events"),
        (about(lambda said: said["segments"][0].__setitem__(2, 0)), "number of events"),
        (about(lambda said: said["segments"][0].__setitem__(1, -1)), "a sequence number is -1"),
        (about(lambda said: said["segments"][0].__setitem__(1, 9)), "a sequence number is 9"),
        (about(lambda said: said["segments"].pop()), "of no segment"),
        (about(lambda said: said.update(event=[["x", "int", "y"]])), r"event\[0\] is a list"),
        (about(lambda said: said.update(event=[["x", "int"]])), "poll until nothing is pending"),
        (about(lambda said: said.update(held=False)), "2 Arrow streams; expected 1"),
        (about(lambda said: said.update(highest=[1, 0])), "is not the last of their events"),
        (about(lambda said: said.update(highest=[1, 0], lowest=None)), "is not the last of their"),
        (about(lambda said: said.update(lowest=2**63)), "does not fit int64"),
        (source(0, name="b"), "one name twice"),
        (source(0, name=3), "one name twice, or numbers and texts"),
        (source(0, code=1), "'a' has code 1"),
        (source(0, rank=2**50), "not ranked in the order"),
        (source(0, rank=2**63 - 1), "'a' has code"),
        (source(0, frontier="5"), "frontier is '5'"),
        (source(0, frontier=2**63), "does not fit int64"),
        (source(0, next_sequence=2**63 - 1), "next_sequence is"),
        (source(0, late=-1), "late is -1"),
        (source(0, other=-1), "a member 'other'"),
        (column("timestamp", lambda v: [one + 1 for one in v]), "not the same times"),
        (lambda content: twice("key", content), "not one column 'key'"),
        (column("key", pa.array([0.5] * 4)), "not the same times"),
        (column("key", pa.array(["x"] * 4)), "times of events: .*has type string"),
        (column("key", lambda v: [None, *v[1:]]), "1 without a time"),
        (column("column x", pa.array([1.0] * 4)), "column x is of type double"),
        (column("column x", pa.array([None] * 4, pa.int64())), "with 4 null"),
        (column("column yes", pa.array([2] * 4, pa.uint8())), "'yes' holds what is neither"),
        (column("null maybe", pa.array([9] * 4, pa.uint8())), "'maybe' holds what is neither"),
        (column("column name", lambda v: [7, *v[1:]]), "'name' holds codes of no known string"),
    ],
)
def test_events_that_wait_are_checked(
    snapshot: bytes, engine: ss.Engine, change: Callable[[bytes], bytes], message: str
) -> None:
    refused(engine, changed(snapshot, "arrivals", change), message)


def test_events_that_wait_are_in_order(snapshot: bytes, engine: ss.Engine) -> None:
    def back(content: bytes) -> bytes:
        for name in ("key", "timestamp"):
            content = column(name, lambda values: values[::-1])(content)
        return content

    refused(engine, changed(snapshot, "arrivals", back), "not in order")


def test_output_that_was_not_polled_is_of_the_same_columns(snapshot: bytes) -> None:
    with ss.Engine(small, keys=True) as engine:
        refused(engine, snapshot, r"holds 2 row\(s\) that nobody has polled.*same keys=")


# ---- what would make a snapshot that is refused ----


def test_a_text_that_is_none_is_refused_when_it_comes() -> None:
    octets = pa.array([b"fine", b"not \xff"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 2, octets.buffers())
    with ss.Engine(small, horizon=0) as engine:
        before = engine.snapshot()
        with pytest.raises(ss.InputError, match=r"b'not \\xff' is no UTF-8 text"):
            engine.process({**batch([1, 2]), "name": broken})
        assert engine.snapshot() == before


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1, 2], pa.timestamp("us", "Nowhere/Nothing")),
        pa.array([2**62, 2**62 + 1], pa.timestamp("us")),
    ],
    ids=["no such zone", "no such year"],
)
def test_times_that_python_has_not_are_shown_as_numbers(times: pa.Array) -> None:
    def refuse(state, event, emit):
        state.n += 1
        if state.n == 2:
            raise ValueError("the second")

    operator = ss.operator(state=Small, event={"x": int})(refuse)
    given = pa.table({"time": times, "x": [1, 2]})
    seen: list[Any] = []

    def submit(engine: ss.Engine) -> None:
        engine.submit(given, order_by="time")
        engine.advance(0)
        engine.poll(timeout=None)

    for run in (lambda engine: engine.process(given, order_by="time"), submit):
        with (
            ss.Engine(operator, on_commit=lambda found: seen.append(found.timestamp)) as engine,
            pytest.raises(ValueError, match="the second"),
        ):
            run(engine)
    assert seen == [times.cast(pa.int64())[0].as_py()] * 2


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (pa.scalar(1, pa.timestamp("us", "Nowhere/Nothing")), r"of type timestamp\[us, tz=Nowhere"),
        (datetime.datetime(2013, 1, 1), "2013-01-01 00:00:00"),
    ],
    ids=["no such zone", "a time"],
)
def test_a_restored_frontier_of_another_type_is_refused_with_the_first_event(
    time: Any, shown: str
) -> None:
    with ss.Engine(small, threads=2) as engine:
        engine.advance("a", time)
        engine.restore(engine.snapshot())
        with pytest.raises(ss.InputError, match=f"the frontier {shown}.* of source 'a' is no int"):
            engine.submit(batch([2]), order_by="time", source_column="from")


def test_frontiers_given_before_any_event_are_checked() -> None:
    with ss.Engine(small, threads=2) as engine:
        engine.advance("a", 5)
        engine.advance("b", 6)
        snapshot = engine.snapshot()
        for given, message in (
            (pa.table({"0": [5], "1": ["x"]}), "has type string"),
            (pa.table({"0": [5], "1": [[7]]}), "has type list"),
            (pa.table({"0": [5], "1": pa.array([None], pa.int64())}), "one is null"),
            (pa.table({"0": [5]}), "expected one of 2"),
            (pa.table({"0": [5, 5], "1": [5, 5]}), r"2 row\(s\)"),
        ):

            def put(content: bytes, given: pa.Table = given) -> bytes:
                return b"".join(map(crafted.stream, (crafted.tables(content)[0], given)))

            refused(engine, changed(snapshot, "arrivals", put), message)
        refused(
            engine, changed(snapshot, "arrivals", source(0, last=7)), "is not the last of their"
        )


def test_columns_that_no_order_has_are_refused() -> None:
    one = pa.table(batch([1, 2]))
    interval = pa.array([pa.MonthDayNano([1, 2, 3])] * 2)
    with ss.Engine(small, horizon=0, rejected_rows="side") as engine:
        with pytest.raises(ss.InputError, match="'time' has type month_day_nano_interval"):
            engine.process(one.set_column(0, "time", interval), order_by="time")
        with pytest.raises(ss.InputError, match="more than one column 'time'"):
            engine.submit(one.append_column("time", one["time"]), order_by="time")
        bad = one.set_column(2, "x", pa.array([None, 1], pa.int64()))
        runs = pa.RunEndEncodedArray.from_arrays(pa.array([2]), pa.array([7]))
        with pytest.raises(ss.InputError, match="Arrow cannot take them out"):
            engine.process(bad.append_column("runs", runs))


# ---- a checkpoint ----


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[readers.CheckpointReader]:
    made = readers.CheckpointReader(tmp_path_factory.mktemp("checkpoint"))
    assert {name.partition(".")[2] for name in made.files} == {"full", "increment", "input"}
    yield made
    made.close()


def sections(at: int, change: Callable[[bytes], bytes]) -> Callable[[Any, list[bytes]], None]:
    def of(header: dict[str, Any], found: list[bytes]) -> None:
        found[at] = change(found[at])
        header["sections"][at] = len(found[at])

    return of


LAST = "0000000003.increment"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (LAST, lambda h, s: h.update(sections=[1]), "1 sections; expected"),
        (LAST, lambda h, s: h["sections"].__setitem__(1, 2**50), "length of section 1"),
        (LAST, lambda h, s: h["sections"].__setitem__(1, -8), "length of section 1 is -8"),
        (LAST, lambda h, s: h.update(batch_id=2), "it is the file of batch 2"),
        (LAST, lambda h, s: h.update(next_sequence=-2), "next_sequence is -2"),
        (LAST, lambda h, s: h.update(named=[*h["named"][:-1], "arrivals"]), "one name twice"),
        (LAST, lambda h, s: h["fields"][0].update(kind="float"), "its fields are not those"),
        (LAST, lambda h, s: h.update(other=1), "a member 'other'"),
        (LAST, sections(0, lambda _: b"[1]"), r"new strings\[0\] is 1"),
        (LAST, sections(0, lambda _: crafted.NESTED.encode()), "new strings: no JSON"),
        (LAST, sections(1, lambda b: struct.pack("<q", 2**40) + b[8:]), "changed blocks"),
        (LAST, sections(1, lambda b: struct.pack("<q", -1) + b[8:]), "changed blocks"),
        (LAST, sections(1, lambda b: b[:8] + b), "changed blocks"),
        (LAST, sections(1, lambda b: b + b"123"), "no whole words"),
        (LAST, sections(2, lambda b: b[8:]), "words; expected"),
        (LAST, sections(3, lambda b: b[:50]), "output is no sound Arrow stream"),
        (LAST, sections(4, lambda b: b[:50]), "events that wait is no sound Arrow stream"),
        (LAST, sections(5, lambda b: b + b), "holds 2 Arrow streams"),
        ("0000000000.full", lambda h, s: h["fields"][0].update(kind="?"), "no element type"),
        ("0000000000.full", sections(0, lambda b: b[:-9]), "damaged"),
    ],
)
def test_a_checkpoint_file_is_checked(
    files: readers.CheckpointReader, name: str, change: Callable[..., None], message: str
) -> None:
    header, found = crafted.checkpoint_file_parts(files.files[name])
    change(header, found)
    made = {**files.files, name: crafted.checkpoint_file_of(json.dumps(header).encode(), found)}
    files.put(made)
    engine = files.engine
    before = engine.snapshot()
    with pytest.raises(SnapshotError, match=f"checkpoint .*(file {name}|batch 3).*{message}"):
        Checkpoint(engine, files.directory)
    assert engine.snapshot() == before


def test_an_increment_is_no_full_file(files: readers.CheckpointReader) -> None:
    files.put({"0000000003.full": files.files[LAST]})
    with pytest.raises(SnapshotError, match=r"file 0000000003\.full.*it is an increment"):
        Checkpoint(files.engine, files.directory)


def test_rows_that_were_fetched_ahead_are_checked(files: readers.CheckpointReader) -> None:
    content = crafted.stream(readers.table(4))
    files.put({**files.files, "0000000004.rows": content[:-99]})
    checkpoint = files.open()
    try:
        with pytest.raises(SnapshotError, match=r"0000000004\.rows in .*no sound Arrow stream"):
            catch_up(mock.Mock(checkpoint=checkpoint, run=mock.Mock(side_effect=AssertionError)))
    finally:
        checkpoint.close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"bad_rows": "drop"}, "bad_rows is 'drop'"),
        ({"order_by": None}, "event_time and no order_by"),
        ({"event_time": {}}, "event_time has no member"),
        ({"builds_on": [1]}, "builds_on is a list"),
        ({"raised": {"event": "0", "type": "E", "message": ""}}, "raised: event is '0'"),
        ({"version": "2"}, "version is '2'"),
        ({"columns": 1}, "columns is 1"),
    ],
)
def test_an_input_is_checked(
    files: readers.CheckpointReader, changes: dict[str, Any], message: str
) -> None:
    content = files.files["0000000003.input"]
    [rows] = crafted.tables(content[:-12])
    metadata = dict(rows.schema.metadata)
    origin = {**json.loads(metadata[b"specstream"]), **changes}
    metadata[b"specstream"] = json.dumps(origin).encode()
    body = crafted.stream(rows.replace_schema_metadata(metadata))
    with pytest.raises(SnapshotError, match=message):
        Input.from_bytes(crafted.input_of(body))
