"""Sinks of early results keep the latest of each row; what comes again alters nothing."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import itertools
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed
from support.early.streams import KEY, WATERMARK, chain, events, oracle, told_rows
from support.sinks.postgres_dbapi import connect

import specstream as ss
from specstream.engine.early_results import ANSWER_BITS, EarlyAnswer

Sink = Any
Make = Callable[[], Sink]
NUMBERS = itertools.count()


@pytest.fixture(params=["delta", "database"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """A sink as each start of a query makes it, on one table."""
    if request.param == "delta":
        pytest.importorskip("deltalake")
        return lambda: ss.sinks.early_delta_sink(tmp_path / "early")
    path = tmp_path / "desk"
    return lambda: ss.sinks.early_database_sink(lambda: sqlite3.connect(path), "early")


@pytest.fixture(params=["delta", "database", pytest.param("postgres", marks=pytest.mark.slow)])
def make_any(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """As ``make``, and on a PostgreSQL server."""
    if request.param == "delta":
        pytest.importorskip("deltalake")
        return lambda: ss.sinks.early_delta_sink(tmp_path / "early")
    if request.param == "database":
        return lambda: ss.sinks.early_database_sink(
            lambda: sqlite3.connect(tmp_path / "desk"), "early"
        )
    server = request.getfixturevalue("server")
    name = f"early_{next(NUMBERS)}"
    return lambda: ss.sinks.early_database_sink(lambda: connect(server.uri), name, placeholder="%s")


def told(incarnation: int, number: int, *rows: Any, reset: bool = False) -> EarlyAnswer:
    """An answer with rows (time, sequence, price, change)."""
    version = (incarnation << ANSWER_BITS) + number
    times, sequences, prices, changes = zip(*rows, strict=True) if rows else ([], [], [], [])
    table = pa.table(
        {
            "price": pa.array(prices, pa.float64()),
            "timestamp": pa.array(times, pa.int64()),
            "source": pa.array(["a"] * len(rows), pa.string()),
            "sequence": pa.array(sequences, pa.int64()),
            "n": pa.array([0] * len(rows), pa.int64()),
            "version": pa.array([version] * len(rows), pa.int64()),
            "change": pa.array(changes, pa.string()),
        }
    )
    return EarlyAnswer(table, None, None, reset, version)


def kept(sink: Sink) -> list[tuple[int, float, str]]:
    """All rows of the table, tombstones included."""
    table = sink.read()
    rows = [] if table is None else table.to_pylist()
    return sorted((row["timestamp"], row["price"], row["change"]) for row in rows)


class Repeating:
    """Gives a sink its changes, and then some of them again: the last ones, and older ones."""

    def __init__(self, sink: Sink, answers: list[tuple[EarlyAnswer, int]]) -> None:
        self.sink, self.answers = sink, answers
        self.dice = random.Random(len(answers))

    def apply(self, answer: EarlyAnswer, batch_id: int) -> None:
        self.sink.apply(answer, batch_id)
        before = ss.sinks.latest(self.sink)
        # The first answer of a start comes again only before there is another one.
        older = [one for one in self.answers if not one[0].reset]
        self.answers.append((answer, batch_id))
        for again in [(answer, batch_id), *self.dice.sample(older, min(2, len(older)))]:
            self.sink.apply(*again)
        assert ss.sinks.latest(self.sink).equals(before)


@pytest.mark.slow
def test_the_table_is_what_is_applied_through_restarts_and_repetitions(
    make: Make, tmp_path: Path
) -> None:
    batches = events(np.random.default_rng(5), 8, 12)
    answers: list[tuple[EarlyAnswer, int]] = []
    tombstones = 0

    def begin() -> Fed:
        return Fed(
            ss.Engine(chain, threads=1, early=True),
            to=lambda rows, batch_id: None,
            early_to=Repeating(make(), answers),
            order_by="time",
            source="origin",
            watermark=WATERMARK,
            checkpoint=tmp_path / "recorded",
        )

    fed = begin()
    for number, batch in enumerate(batches):
        if number in (3, 6):
            fed.close()
            fed = begin()
        fed.send(number, batch)
        found = make().read()
        tombstones += found["change"].to_pylist().count("withdrawn")
        rows = found.select(KEY).to_pylist()
        assert len({tuple(row.values()) for row in rows}) == len(rows)
        assert told_rows(ss.sinks.latest(make())) == told_rows(oracle(batches[: number + 1]))
    fed.runner.finish()
    fed.close()
    assert tombstones
    stands = ss.sinks.latest(make())
    assert set(stands["change"].to_pylist()) == {"final"}
    assert told_rows(stands) == told_rows(oracle(batches))
    of_places = ss.sinks.latest(make(), by="origin")
    assert sorted(of_places["origin"].to_pylist()) == ["EWR", "JFK"]
    assert of_places.slice(1).equals(stands.slice(stands.num_rows - 1))


@pytest.mark.parametrize("table", ["main.early", "desk.early", "DESK.Early"])
def test_a_table_of_sqlite_may_be_named_with_its_schema(table: str, tmp_path: Path) -> None:
    """Of an attached database as well, whose tables and indexes are not those of the main one."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "main")
        connection.execute("ATTACH ? AS desk", [str(tmp_path / "desk")])
        return connection

    other = ss.sinks.early_database_sink(connect, "early")
    sink = ss.sinks.early_database_sink(connect, table)
    sink.apply(told(0, 0), 0)
    assert sink.read() is None
    sink.apply(told(0, 1, (5, 0, 2.5, "early"), (7, 1, 3.5, "early")), 1)
    sink.apply(told(0, 2, (5, 0, 2.0, "final"), (7, 1, 3.5, "withdrawn")), 2)
    assert kept(sink) == [(5, 2.0, "final"), (7, 3.5, "withdrawn")]
    schema = table.partition(".")[0].lower()
    with sqlite3.connect(tmp_path / schema) as connection:
        (index,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'index'")
    assert index == (3,)  # two of keys, with and without a source, and one of changes
    assert (other.read() is None) == (schema != "main")


def test_a_withdrawn_row_stays_withdrawn(make: Make) -> None:
    sink = make()
    first = told(1, 1, (5, 0, 1.0, "early"), (7, 1, 2.0, "early"), (9, 2, 3.0, "early"))
    sink.apply(first, 0)
    sink.apply(told(1, 2, (5, 0, 1.0, "final"), (7, 1, 2.0, "withdrawn")), 1)
    # Nothing later than it is final: its tombstone keeps it away.
    assert kept(sink) == [(5, 1.0, "final"), (7, 2.0, "withdrawn"), (9, 3.0, "early")]
    sink.apply(first, 0)
    assert kept(sink) == [(5, 1.0, "final"), (7, 2.0, "withdrawn"), (9, 3.0, "early")]
    # It may come back until it is final that it does not.
    sink.apply(told(1, 3, (7, 1, 2.5, "early")), 2)
    sink.apply(told(1, 4, (7, 1, 2.5, "withdrawn"), (9, 2, 3.5, "final")), 3)
    assert kept(sink) == [(5, 1.0, "final"), (9, 3.5, "final")]
    for number, answer in enumerate([first, told(1, 3, (7, 1, 2.5, "early"))]):
        make().apply(answer, number)
        assert kept(sink) == [(5, 1.0, "final"), (9, 3.5, "final")]


def test_what_a_restart_makes_void_is_withdrawn(make: Make) -> None:
    sink = make()
    sink.apply(told(1, 1, (5, 0, 1.0, "early"), (7, 1, 2.0, "early"), (9, 2, 3.0, "early")), 0)
    # The word "final" of the time before, which was lost, and one row that is told anew.
    before = told(1, 2, (5, 0, 1.5, "final")).changes
    anew = told(2, 1, (9, 2, 3.5, "early"), reset=True)
    both = pa.concat_tables([before, anew.changes])
    answer = EarlyAnswer(both, None, None, True, anew.version)
    for _ in range(2):
        make().apply(answer, 1)
        assert kept(sink) == [(5, 1.5, "final"), (7, 2.0, "withdrawn"), (9, 3.5, "early")]
    make().apply(told(3, 1, reset=True), 2)
    assert kept(sink) == [(5, 1.5, "final"), (7, 2.0, "withdrawn"), (9, 3.5, "withdrawn")]


class Silence(ss.State):
    due = ss.timers(str, limit=100)


def ring(state, timer, emit):
    emit(timer.key, timer.at)


@ss.operator(state=Silence, event={"name": str}, emits={"name": str, "since": int}, on_timer=ring)
def silent(state, event, emit):
    state.due.set(event.name, event.timestamp + 10)


def test_rows_of_timers_are_kept_once_each_and_go_when_they_are_withdrawn(make_any: Make) -> None:
    """They have no source, and in SQL no null equals another one."""
    answers: list[EarlyAnswer] = []

    def standing(engine: ss.Engine) -> list[tuple[str, int, str]]:
        answers.append(engine.poll_early(timeout=None))
        # The newest again, and then older ones.
        for number in (len(answers) - 1, len(answers) - 1, *range(1, len(answers))):
            make_any().apply(answers[number], number)
        rows = [row for row in make_any().read().to_pylist() if row["change"] != "withdrawn"]
        names = ("name", "since", "change")
        found = sorted(tuple(row[name] for name in names) for row in rows)
        for log in (ss.sinks.latest(make_any()), ss.early.latest(answers)):
            assert sorted(tuple(row[name] for name in names) for row in log.to_pylist()) == found
        return found

    with ss.Engine(silent, sources=["log", "post"], early=True, threads=1) as engine:
        answers.append(engine.poll_early())
        make_any().apply(answers[0], 0)
        at = {"time": [0, 25], "name": ["ada", "bob"]}
        engine.submit(at, order_by="time", source="log")
        assert standing(engine) == [("ada", 10, "early")]
        engine.submit_event(4, "post", name="ada")
        assert standing(engine) == [("ada", 14, "early")]
        # The number of ada's timer, a part of its key, is another one now.
        engine.submit_event(2, "post", name="zoe")
        assert standing(engine) == [("ada", 14, "early"), ("zoe", 12, "early")]
        for source in ("log", "post"):
            engine.advance(source)
        final = [("ada", 14, "final"), ("bob", 35, "final"), ("zoe", 12, "final")]
        assert standing(engine) == final
    # Tombstones from before the last row that is final are gone, and nothing comes back.
    assert make_any().read().num_rows == len(final)
    for number, answer in enumerate(answers):
        if number:
            make_any().apply(answer, number)
    kept_now = [row["change"] for row in make_any().read().to_pylist()]
    assert kept_now == ["final"] * len(final)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("N", "columns 'N' and 'n' differ only in upper and lower case, .* 'N' by another name"),
        ("Price", "columns 'price' and 'Price' differ only in upper and lower case"),
        ("a`b", "column 'a`b' has a backtick in its name"),
    ],
)
def test_names_that_cannot_be_merged_are_refused_at_the_first_batch(
    make: Make, name: str, words: str
) -> None:
    answer = told(1, 1, (5, 0, 1.0, "early"))
    table = answer.changes.add_column(0, name, pa.array([1]))
    if name == "Price":
        table = answer.changes.append_column(name, pa.array([1]))
    sink = make()
    with pytest.raises(ss.SinkError, match=f"batch 7: {words}"):
        sink.apply(EarlyAnswer(table, None, None, False, answer.version), 7)
    assert sink.read() is None


def test_sqlite_has_no_decimals(tmp_path: Path) -> None:
    sink = ss.sinks.early_database_sink(lambda: sqlite3.connect(tmp_path / "desk"), "early")
    answer = told(1, 1, (5, 0, 1.0, "early"))
    column = pa.array([1], pa.decimal128(9, 2))
    table = answer.changes.append_column("paid", column)
    with pytest.raises(ss.SinkError, match=r"batch 3: column 'paid' is decimal.*emit a number"):
        sink.apply(EarlyAnswer(table, None, None, False, answer.version), 3)


def test_a_query_that_begins_anew_needs_an_empty_table(make: Make) -> None:
    make().apply(told(1, 1, (5, 0, 1.0, "early"), reset=True), 0)
    make().apply(told(1, 2, (7, 1, 1.0, "early")), 1)
    with pytest.raises(ss.SinkError, match=r"batch 0: the table has version \d+ already, .* anew"):
        make().apply(told(1, 1, (1, 0, 1.0, "early"), reset=True), 0)
    assert kept(make()) == [(5, 1.0, "early"), (7, 1.0, "early")]
    # Asked before the first batch of a new checkpoint, also where its versions would be above.
    make().check_first_batch(0, is_new=False)
    with pytest.raises(ss.SinkError, match=r"batch 0: the table has version \d+ already, .* anew"):
        make().check_first_batch(0, is_new=True)


def test_before_the_first_row_there_is_no_table(make: Make) -> None:
    make().check_first_batch(0, is_new=True)
    make().apply(told(1, 1, reset=True), 0)
    make().check_first_batch(0, is_new=True)
    assert ss.sinks.latest(make()).equals(pa.table({}))
    make().apply(told(1, 2, (5, 0, 1.0, "early")), 1)
    assert kept(make()) == [(5, 1.0, "early")]


BEGIN = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
TIMES: list[pa.Array] = [
    pa.array([BEGIN + datetime.timedelta(seconds=n) for n in range(3)], pa.timestamp("us", zone))
    for zone in (None, "UTC", "Europe/Berlin")
]
TIMES += [
    pa.array([datetime.date(2026, 1, 5 + n) for n in range(3)]),
    pa.array([0.5, 1.5, 2.5]),
]


@pytest.mark.parametrize("times", TIMES, ids=[str(times.type) for times in TIMES])
def test_times_of_all_types(make: Make, times: pa.Array) -> None:
    def at(answer: EarlyAnswer, taken: list[int]) -> EarlyAnswer:
        column = times.take(pa.array(taken))
        table = answer.changes.set_column(1, "timestamp", column)
        table = table.append_column("name", pa.array(["ä'%s"] * len(taken)))
        table = table.append_column("good", pa.array([True] * len(taken)))
        table = table.append_column("none", pa.array([None] * len(taken), pa.int64()))
        return EarlyAnswer(table, None, None, False, answer.version)

    first = at(told(1, 1, (0, 0, 1.0, "early"), (0, 1, 2.0, "early")), [0, 1])
    make().apply(first, 0)
    make().apply(at(told(1, 2, (0, 1, 2.0, "withdrawn"), (0, 2, 3.0, "final")), [1, 2]), 1)
    make().apply(at(told(1, 3, (0, 0, 1.0, "final")), [0]), 2)
    make().apply(first, 0)
    found = ss.sinks.latest(make())
    assert found["price"].to_pylist() == [1.0, 3.0]
    assert found["name"].to_pylist() == ["ä'%s"] * 2
    assert found["none"].to_pylist() == [None] * 2
    if pa.types.is_timestamp(found["timestamp"].type):
        assert (
            found["timestamp"]
            .cast(pa.int64())
            .equals(pa.chunked_array([times.take(pa.array([0, 2])).cast(pa.int64())]))
        )
