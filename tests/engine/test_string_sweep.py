"""Strings that nothing refers to go, and no others.

A stream that never ends keeps its size. Whatever keeps a string (state, timers, pending events,
hidden columns, rows that nobody has fetched, early results, savepoints, snapshots) gets it back as
it was.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from specstream.engine import string_sweep
from specstream.engine.answers import Answering
from specstream.engine.string_sweep import StringSweep


class Entry(ss.Record):
    name: str
    at: int


class Kept(ss.State):
    last = ss.scalar(str)
    ring = ss.array(str, 8)
    by_name = ss.dict(str, int, expire_after=300)
    recent = ss.deque(str, maxlen=16)
    records = ss.dict(int, Entry)
    pairs = ss.dict((str, int), str)
    seen = ss.set(str)
    timers = ss.timers(str)


EVENT = {"id": str, "t": int}
EMITS = {"a": str, "b": str, "c": str, "d": str}


def fired(state, timer, emit):
    state.seen.discard(timer.key)
    emit(timer.key, "fired", state.last, "")


def keeps(state, event, emit):
    small = event.id.lower()  # what Python computes of the event before
    at = event.t % 8
    emit(event.id, state.last, state.ring[at], small)
    state.ring[at] = state.last
    state.last = event.id
    state.by_name[event.id] = event.t
    state.recent.append(small)
    state.records[at] = Entry(name=state.ring[at], at=event.t)
    state.pairs[small, at] = event.id
    if len(state.pairs) > 20:
        del state.pairs[next(iter(state.pairs))]
    if event.t % 5 == 0:
        state.seen.add(event.id)
        state.timers.set(event.id, event.t + 37)


keep = ss.operator(state=Kept, event=EVENT, emits=EMITS, on_timer=fired, name="keep")(keeps)


class Last(ss.State):
    last = ss.scalar(str)
    by_name = ss.dict(str, str)


@ss.operator(state=Last, event=EVENT, emits={"made": str, "before": str}, interpreted=True)
def makes(state, event, emit):
    made = f"made of {event.id}"
    emit(made, state.last)
    state.last = made
    state.by_name[event.id] = made
    while len(state.by_name) > 10:
        del state.by_name[next(iter(state.by_name))]


class Count(ss.State):
    n = ss.scalar(int)


@ss.operator(state=Count, event={"id": str}, emits={"n": int})
def count(state, event, emit):
    state.n += 1
    if event.id.endswith("00"):
        emit(state.n)


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert repr(found) == repr(wanted)


def rows(first: int, count: int) -> dict[str, Any]:
    """Ever new ids, and now and then one that has been there long ago."""
    ids = [f"Order-{at if at % 13 else at // 3}" for at in range(first, first + count)]
    return {"id": ids, "t": list(range(first, first + count))}


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep whenever there could be one."""
    monkeypatch.setattr(StringSweep, "is_due", True)


@pytest.fixture
def at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps as often as their rule lets them, also of small tables."""
    monkeypatch.setattr(string_sweep, "LEAST", 64)


SETTINGS = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 2},
    {"threads": 2, "horizon": 8, "chunk": 1, "protocol": "eager"},
]


# ---- what goes ----


def test_a_table_of_strings_that_nobody_keeps_stays_small(at_least_one: None) -> None:
    sizes, snapshots = [], []
    with ss.Engine(count, threads=2) as engine:
        for batch in range(40):
            engine.process({"id": [f"order {500 * batch + at}" for at in range(500)]})
            sizes.append(engine.stats.string_bytes)
            snapshots.append(len(engine.snapshot()))
        stats = engine.stats
    assert max(snapshots) < min(snapshots) + 8  # digits of the count
    assert max(sizes[20:]) <= 1.1 * max(sizes[:20])
    assert stats.string_sweeps > 10
    assert 0 < stats.longest_string_sweep <= stats.string_sweep_seconds
    assert "string sweeps" in repr(stats)


def test_a_small_table_beside_a_large_state_is_left_alone(at_least_one: None) -> None:
    class Wide(ss.State):
        last = ss.scalar(str)
        counts = ss.array(int, 1 << 16)

    @ss.operator(state=Wide, event={"id": str}, emits={})
    def wide(state, event, emit):
        state.last = event.id

    with ss.Engine(wide, threads=1) as engine:
        for batch in range(10):
            engine.process({"id": [f"{batch} {at}" for at in range(100)]})
        assert engine.stats.string_sweeps == 0
        for batch in range(100):
            engine.process({"id": [f"more {batch} {at}" for at in range(100)]})
        assert engine.stats.string_sweeps >= 1
        assert engine.state.last == "more 99 99"


def test_refused_events_leave_no_strings_for_good(eager: None) -> None:
    with ss.Engine(keep, threads=2) as engine:
        before = len(engine.durable.strings)
        for at in range(20):
            with pytest.raises(ss.InputError):
                engine.submit({"id": [f"bad {at}", None], "t": [1, 2]}, order_by="t")
            with pytest.raises(ss.InputError):
                engine.process({"id": [f"worse {at}"], "t": [None]})
        engine.snapshot()
        assert len(engine.durable.strings) == before


# ---- what stays ----


def cut(dice: random.Random, total: int) -> Iterator[tuple[int, int]]:
    at = 0
    while at < total:
        count = min(dice.randrange(1, 120), total - at)
        yield at, count
        at += count


@pytest.mark.parametrize("setting", SETTINGS)
def test_batches_with_savepoints_rollbacks_and_restores(
    eager: None, setting: dict[str, Any]
) -> None:
    dice = random.Random(3)
    total = 1500
    expected = keep.run_sequential(rows(0, total), order_by="t")
    outputs: list[pa.Table] = []
    engine = ss.Engine(keep, **setting)
    other = ss.Engine(keep, threads=1)
    savepoints: list[tuple[ss.Savepoint, bytes]] = []
    try:
        for first, some in cut(dice, total):
            way = dice.randrange(5)
            if way == 0:  # begun, and undone
                savepoint, snapshot = engine.savepoint(), engine.snapshot()
                engine.process(rows(first + 7, 60), order_by="t")
                engine.rollback(savepoint)
                assert engine.snapshot() == snapshot
            elif way == 1:
                snapshot = engine.snapshot()
                engine.close()
                engine = ss.Engine(keep, restore=snapshot, **setting)
                assert engine.snapshot() == snapshot
            elif way == 2:
                savepoints.append((engine.savepoint(), engine.snapshot()))
            elif way == 3 and savepoints:  # an old one, in another engine
                savepoint, snapshot = dice.choice(savepoints)
                other.rollback(savepoint)
                assert other.snapshot() == snapshot
                other.process(rows(10**6, 50), order_by="t")
            outputs.append(engine.process(rows(first, some), order_by="t"))
        assert pa.concat_tables(outputs).to_pylist() == expected.output.to_pylist()
        assert_same(engine.state.to_dict(), expected.state.to_dict())
    finally:
        engine.close()
        other.close()


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("setting", SETTINGS)
def test_submitted_events_pending_unfetched_and_early(
    eager: None, setting: dict[str, Any], early: bool
) -> None:
    """Two sources, one behind the other; rows are fetched now and then."""
    dice = random.Random(int(early))
    total = 900
    table = rows(0, total)
    expected = keep.run_sequential(table, order_by="t").output.to_pylist()
    found: list[dict[str, Any]] = []
    engine = ss.Engine(keep, early=early, sources=[0, 1], **setting)
    try:
        for first, some in cut(dice, total):
            part = range(first, first + some)
            for source in (1, 0):
                mine = [at for at in part if at % 2 == source]
                if mine:
                    engine.submit(
                        {name: [table[name][at] for at in mine] for name in table},
                        order_by="t",
                        source=source,
                    )
            if early:
                engine.poll_early()
            frontier = first + dice.randrange(some + 1)
            engine.advance(0, frontier)
            engine.advance(1, frontier - 1)
            if dice.randrange(3) == 0:
                found += engine.poll(timeout=None).to_pylist()
            way = dice.randrange(8)
            if way == 0:
                snapshot = engine.snapshot()
                engine.close()
                engine = ss.Engine(keep, early=early, restore=snapshot, **setting)
            elif way == 1:
                engine.restore(engine.snapshot())
            elif way == 2:
                engine.rollback(engine.savepoint())
        for source in (0, 1):
            engine.advance(source, total + 1)
        found += engine.poll(timeout=None).to_pylist()
        assert found == expected
    finally:
        engine.close()


def test_early_rows_keep_their_texts_through_a_restore_in_place() -> None:
    """Those that are final and were not told: nothing else refers to them."""
    table = rows(0, 40)
    with ss.Engine(keep, early=True, sources=[0]) as engine:
        engine.poll_early()
        engine.submit(table, order_by="t")
        engine.advance(0, 50)
        expected = engine.poll(timeout=None).to_pylist()
        engine.restore(engine.snapshot())
        told = engine.poll_early(timeout=None).changes.select(list(EMITS))
    assert told.num_rows in (0, len(expected))
    assert told.to_pylist() in ([], expected)
    assert told.num_rows


def test_early_rows_keep_their_texts_until_somebody_asks(eager: None) -> None:
    """Final by then, and fetched as such: nothing else refers to them, and no run is in flight."""
    with ss.Engine(keep, early=True, sources=[0]) as engine:
        engine.poll_early()
        engine.submit(rows(0, 200), order_by="t")
        engine.advance(0, 250)
        expected = engine.poll(timeout=None).to_pylist()
        engine.restore(engine.snapshot())
        engine.submit(rows(250, 1), order_by="t")  # sweeps before it begins
        told = engine.poll_early(timeout=None).changes.select(list(EMITS)).to_pylist()
    assert told[: len(expected)] == expected


def test_a_snapshot_is_taken_while_runs_of_a_restored_engine_are_in_flight() -> None:
    with ss.Engine(keep, threads=2, horizon=4, chunk=1, sources=[0, 1]) as engine:
        engine.submit_event(1, 0, id="one", t=1)
        engine.restore(engine.snapshot())
        engine.poll(timeout=None)
        for at in range(2, 40):
            engine.submit_event(at, 0, id=f"event {at}", t=at)
            engine.snapshot()
        for source in (0, 1):
            engine.advance(source)
        assert engine.poll(timeout=None).num_rows >= 39


def test_strings_that_runs_in_flight_have_made(eager: None) -> None:
    total = 1500
    table = rows(0, total)
    expected = makes.run_sequential(table).output.to_pylist()
    found: list[dict[str, Any]] = []
    with ss.Engine(makes, threads=4, horizon=16, chunk=1) as engine:
        for first in range(0, total, 10):
            some = {name: values[first : first + 10] for name, values in table.items()}
            engine.submit(some, order_by="t", ordered=True)
            engine.snapshot()
            if first % 50 == 0:
                found += engine.poll().to_pylist()
        engine.advance(0, total)
        found += engine.poll(timeout=None).to_pylist()
        assert found == expected
        assert len(engine.durable.strings) < total


@pytest.mark.parametrize("early", [False, True])
def test_what_an_event_has_been_answered_stays_until_it_runs_again(
    early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python says what a caught KeyError says; nothing refers to it before the row has it."""

    class Pairs(ss.State):
        pairs = ss.dict((str, int), float)

    @ss.operator(state=Pairs, event={"id": str}, emits={"text": str})
    def asking(state, event, emit):
        try:
            emit(f"{state.pairs[event.id, 3]}")
        except KeyError as error:
            emit(f"{error}")

    answers = Answering.answers

    sweeps: list[StringSweep] = []
    begin = StringSweep.__init__

    def noted(sweep: StringSweep, *arguments: Any) -> None:
        begin(sweep, *arguments)
        sweeps.append(sweep)

    def answer_and_sweep(answering: Answering, row: int, firing: Any) -> Any:
        found = answers(answering, row, firing)
        sweeps[0].sweep()  # whoever answers has the turn
        return found

    monkeypatch.setattr(StringSweep, "__init__", noted)
    monkeypatch.setattr(Answering, "answers", answer_and_sweep)
    with ss.Engine(asking, early=early, sources=[0], threads=2) as engine:
        ids = [f"order {number}" for number in range(20)]
        engine.submit({"id": ids, "t": list(range(20))}, order_by="t", source=0)
        engine.advance(0, 10)
        engine.advance(0)
        found = engine.poll(timeout=None)["text"].to_pylist()
    assert found == [str((one, 3)) for one in ids]


def test_readers_in_other_threads_see_the_text(eager: None) -> None:
    stop, wrong = threading.Event(), []
    with ss.Engine(keep, threads=2) as engine:
        engine.process(rows(0, 50), order_by="t")

        def read() -> None:
            while not stop.is_set():
                state = engine.state
                texts = [*state.by_name, *state.recent, *state.pairs.values()]
                if not all(isinstance(text, str) and "rder-" in text for text in texts):
                    wrong.append(texts)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for first in range(50, 2000, 50):
                engine.process(rows(first, 50), order_by="t")
        finally:
            stop.set()
            reader.join()
    assert not wrong


def test_failed_events_keep_their_texts(eager: None) -> None:
    @ss.operator(state=Count, event={"id": str}, emits={"id": str})
    def picky(state, event, emit):
        state.n += 1
        if state.n % 3 == 0:
            raise ValueError(f"no {event.id}")
        emit(event.id)

    ids = [f"one {at}" for at in range(30)]
    with ss.Engine(picky, threads=2, errors="side") as engine:
        for at in range(0, 30, 6):
            engine.process({"id": ids[at : at + 6]})
        failed = engine.failed_events()
    assert failed is not None
    # A failed event changes nothing, so each event behind the second success fails.
    assert failed["id"].to_pylist() == ids[2:]
    assert failed["message"].to_pylist() == [f"no {text}" for text in ids[2:]]


# ---- on disk ----


def test_checkpoints_stay_small_and_are_read_again(at_least_one: None, tmp_path: Any) -> None:
    from specstream.checkpoint.run.checkpoint import Checkpoint

    total, size = 40, 100
    expected = keep.run_sequential(rows(0, total * size), order_by="t")
    lengths = []
    outputs = []
    engine = ss.Engine(keep, threads=2)
    checkpoint = Checkpoint(engine, tmp_path)
    for batch in range(total):
        if batch % 7 == 3:
            checkpoint.close()
            engine.close()
            engine = ss.Engine(keep, threads=2)
            checkpoint = Checkpoint(engine, tmp_path)
        output = engine.process(rows(batch * size, size), order_by="t")
        checkpoint.record("query", batch, output)
        outputs.append(output)
        lengths.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
    state = engine.state.to_dict()
    checkpoint.close()
    engine.close()
    assert pa.concat_tables(outputs).to_pylist() == expected.output.to_pylist()
    assert_same(state, expected.state.to_dict())
    assert max(lengths[20:]) < 1.5 * max(lengths[5:20])


# ---- without end ----


def stream_without_end(total: int, size: int) -> None:
    """Memory, snapshot and time of a batch stay as they are."""

    class Expiring(ss.State):
        last = ss.dict(str, int, expire_after=10_000)

    @ss.operator(state=Expiring, event=EVENT, emits={"n": int})
    def expiring(state, event, emit):
        state.last[event.id] = event.t

    memory, snapshots = [], []
    with ss.Engine(expiring, threads=2) as engine:
        for first in range(0, total, size):
            at = np.arange(first, first + size)
            ids = pa.compute.binary_join_element_wise("order", pa.array(at).cast(pa.string()), " ")
            engine.process(pa.table({"id": ids, "t": at}), order_by="t")
            memory.append(engine.stats.string_bytes)
            if first // size % 10 == 9:
                snapshots.append(len(engine.snapshot()))
        stats = engine.stats
        assert len(engine.state.last) == 10_000
        assert next(iter(engine.state.last)) == f"order {total - 10_000}"
    half = len(memory) // 2
    assert max(memory[half:]) <= 1.1 * max(memory[:half])
    assert max(snapshots) <= 1.05 * snapshots[0]
    assert stats.string_sweeps >= total // size // 20


def test_a_million_new_ids_through_a_dict_that_keeps_ten_thousand() -> None:
    stream_without_end(1_000_000, 50_000)


@pytest.mark.long
@pytest.mark.parametrize("total", [10_000_000, 100_000_000], ids="{:,}".format)
def test_many_millions_of_them(total: int) -> None:
    stream_without_end(total, 100_000)
