"""Columns of strings that are not entered, of events that are submitted: nobody can tell."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed
from support.engine.arriving import PATIENCE
from support.operators.unentered_columns import (
    HARMLESS,
    NULLABLE,
    changed,
    harmless,
    harmless_table,
)

import specstream as ss
from specstream.checkpoint.inspect.committing import first_difference_of_waiting
from specstream.checkpoint.inspect.replay import replay
from specstream.engine.pending_bytes import pack_pending

SOURCES = ["a", "b"]
VALUES = ["i", *HARMLESS, *NULLABLE]


def arrivals(rng: random.Random, round_: int, count: int) -> pa.Table:
    """Events of both sources, none below ten times the number of the round."""
    table = harmless_table(rng, count, round_)
    times = [10 * round_ + rng.randrange(25) for _ in range(count)]
    table = table.append_column("time", pa.array(times))
    return table.append_column("origin", pa.array(rng.choices(SOURCES, k=count)))


def as_strings(table: pa.Table) -> pa.Table:
    """In the one form in which tables of several forms go together."""
    return pa.table({name: pa.array(table[name].to_pylist()) for name in table.column_names})


def texts_of(engine: ss.Engine) -> set[str]:
    return set(engine.parts.committed.strings.strings())


def drained(engine: ss.Engine) -> tuple[pa.Table, pa.Table | None]:
    """What is left, and all events that have failed."""
    for source in SOURCES:
        engine.advance(source)
    output = engine.poll(timeout=None)
    assert engine.stats.pending == 0
    return output, engine.failed_events()


def joined(tables: list[pa.Table | None]) -> pa.Table:
    return pa.concat_tables([one for one in tables if one is not None]).combine_chunks()


@pytest.mark.parametrize("seed", range(4))
def test_submitted_events_are_those_of_one_table(seed: int) -> None:
    """In tables and one by one, with snapshots and ways back in between."""
    rng = random.Random(seed)
    options: dict[str, Any] = {
        "threads": 2,
        "horizon": 8,
        "chunk": 2,
        "errors": "side",
        "sources": SOURCES,
        "keys": True,
    }
    engine = ss.Engine(harmless, **options)
    come, output, failed = [], [], []
    known = {*harmless.program.strings, *SOURCES}
    for round_ in range(5):
        table = arrivals(rng, round_, 40)
        come.append(as_strings(table))
        mark = engine.savepoint()
        if rng.random() < 0.5:
            engine.submit(table, order_by="time", source_column="origin")
            engine.rollback(mark)
        if rng.random() < 0.5:
            engine.submit(table, order_by="time", source_column="origin")
        else:
            for row in come[-1].to_pylist():
                time, origin = row.pop("time"), row.pop("origin")
                engine.submit_event(time, origin, **row)
        output.append(engine.poll())
        if rng.random() < 0.6:
            snapshot = engine.snapshot()
            engine.close()
            engine = ss.Engine(harmless, **options, restore=snapshot)
        for source in SOURCES:
            engine.advance(source, 10 * round_ + 10)
        failed.append(engine.failed_events())
        assert texts_of(engine) <= known
    last, more = drained(engine)
    engine.close()
    expected = harmless.run_sequential(
        pa.concat_tables(come), order_by="time", source="origin", errors="side", keys=True
    )
    keys = ["which", "timestamp", "source"]
    assert joined([*output, last]).select(keys) == expected.output.select(keys)
    found, wanted = joined([*failed, more]), expected.failed_events
    assert wanted is not None
    assert found.drop_columns(["sequence"]) == wanted.drop_columns(["sequence"])


@pytest.mark.parametrize("seed", range(3))
def test_tentative_events_are_those_that_they_become(seed: int) -> None:
    rng = random.Random(seed)
    rows = as_strings(arrivals(rng, 0, 60)).to_pylist()
    other = as_strings(arrivals(rng, 0, 60)).to_pylist()
    with ss.Engine(
        harmless, threads=2, early=True, errors="side", sources=SOURCES, keys=True
    ) as engine:
        numbers = dict.fromkeys(SOURCES, 0)
        places = []
        for row in rows:
            values = {name: row[name] for name in VALUES}
            source = row["origin"]
            number = numbers[source]
            numbers[source] += 1
            places.append((source, number))
            engine.submit_event(row["time"], source, final=False, sequence=number, **values)
        engine.poll_early(timeout=PATIENCE)
        gone = set(rng.sample(range(60), 5))
        for at, ((source, number), row, new) in enumerate(zip(places, rows, other, strict=True)):
            if at in gone:
                engine.retract(source, number)
                continue
            some = {name: new[name] for name in rng.sample(VALUES, rng.randrange(1, 8))}
            row.update(some)
            engine.revise(source, number, version=2, **some)
            if at == 30:
                engine.poll_early(timeout=PATIENCE)
        for source in SOURCES:
            engine.confirm(source)
        output, failed = drained(engine)
        assert texts_of(engine) <= {*harmless.program.strings, *SOURCES}
    table = pa.Table.from_pylist([row for at, row in enumerate(rows) if at not in gone])
    expected = harmless.run_sequential(
        table, order_by="time", source="origin", errors="side", keys=True
    )
    keys = ["which", "timestamp", "source"]
    assert output.select(keys).combine_chunks() == expected.output.select(keys)
    assert failed is not None
    assert expected.failed_events is not None
    # Nobody reads that column: what is said of it alone changes nothing.
    apart = ["sequence", "h_unread"]
    assert failed.drop_columns(apart) == expected.failed_events.drop_columns(apart)


def waiting(entered: bool) -> tuple[bytes, pa.Table]:
    """A snapshot of an engine with events that wait, and these."""
    rows: list[dict[str, Any]] = [
        {"i": at, "a": a, "b": b, "c": c, "d": d}
        for at, (a, b, c, d) in enumerate(
            [
                ("BUY", None, "x", "one"),
                ("SELL", "SELL", "", "two"),
                ("", "", "ünï", ""),
                ("fail", None, "longer than sixteen bytes", "d"),
                ("BUY", "BUY", "xx", "five"),
            ]
        )
    ]
    with ss.Engine(changed(entered), sources=["s"]) as engine:
        engine.submit(
            pa.Table.from_pylist(rows[:3]).append_column("t", pa.array([1, 2, 3])),
            order_by="t",
            source="s",
        )
        for row in rows[3:]:
            engine.submit_event(1 + row["i"], "s", **row)
        return engine.snapshot(), pa.Table.from_pylist(rows)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_an_operator_that_was_changed_goes_on_with_events_that_waited(
    before: bool, after: bool
) -> None:
    """Whether a column was entered, and is to be."""
    snapshot, rows = waiting(before)
    operator = changed(after)
    expected = operator.run_sequential(rows, errors="side")
    with ss.Engine(operator, restore=snapshot, errors="side", sources=["s"]) as engine:
        engine.advance("s")
        assert engine.poll(timeout=None) == expected.output
        failed = engine.failed_events()
        assert failed is not None
        assert expected.failed_events is not None
        told = ["i", "a", "b", "c", "d", "message"]
        assert failed.select(told) == expected.failed_events.select(told)
        assert engine.state.last == expected.state.last
        assert dict(engine.state.texts) == dict(expected.state.texts)
        assert ("five" in texts_of(engine)) == (before or after)


def test_records_of_before_have_codes_for_texts() -> None:
    """What a replay finds to wait is compared with them."""
    packed = []
    for entered in (False, True):
        snapshot, _ = waiting(entered)
        with ss.Engine(changed(entered), restore=snapshot, sources=["s"]) as engine:
            packed.append(pack_pending(engine.durable.pending))
            engine.submit_event(9, "s", i=0, a="", b=None, c="", d="other")
            packed.append(pack_pending(engine.durable.pending))
    assert packed[0] != packed[2]
    assert first_difference_of_waiting(packed[0], packed[2]) is None
    assert first_difference_of_waiting(packed[1], packed[3]) is None
    assert first_difference_of_waiting(packed[0], packed[3]) is not None


def test_what_is_no_utf8_cannot_wait() -> None:
    wrong = pa.array([b"\xff", b"ok"]).cast(pa.string(), safe=False)
    table = pa.table({"i": [1, 2], "a": wrong, "b": ["", ""], "c": ["", ""], "d": ["", ""]})
    table = table.append_column("t", pa.array([1, 2]))
    with ss.Engine(changed(False), sources=["s"]) as engine:
        with pytest.raises(ss.InputError, match=r"string b'\\xff' is no UTF-8 text"):
            engine.submit(table, order_by="t", source="s")
        with pytest.raises(ss.InputError, match="lone surrogate"):
            engine.submit_event(1, "s", i=1, a="\ud800", b=None, c="", d="")
        with pytest.raises(ss.InputError, match="column 'a' gets 5"):
            engine.submit_event(1, "s", i=1, a=5, b=None, c="", d="")
        assert engine.stats.pending == 0


@pytest.mark.parametrize("entered", [False, True])
def test_batches_with_a_watermark_are_replayed(entered: bool, tmp_path: Path) -> None:
    """Events wait from one batch to the next, in the checkpoint's files as well."""
    rng = random.Random(7)

    def batch(at: int) -> pa.Table:
        texts = ["BUY", "SELL", "", f"new {at}", f"a longer text of batch {at}"]
        columns: dict[str, Any] = {name: rng.choices(texts, k=20) for name in "acd"}
        columns["b"] = rng.choices([None, *texts], k=20)
        columns |= {"i": rng.choices(range(40), k=20), "s": rng.choices("xy", k=20)}
        return pa.table({**columns, "t": [10 * at + rng.randrange(20) for _ in range(20)]})

    tables = [batch(at) for at in range(5)]
    rows: list[pa.Table] = []
    options: dict[str, Any] = {
        "order_by": "t",
        "source": "s",
        "watermark": 12,
        "sources": ["x", "y"],
        "keep_batches": 10,
        "to": lambda rows_, _: rows.append(rows_),
        "errors_to": lambda rows_, _: None,
    }
    for at, table in enumerate(tables):
        engine = ss.Engine(changed(entered), errors="side", late="drop")
        feed = Fed(engine, checkpoint=tmp_path, **options)
        feed.send(at, table)
        feed.close()
    for at in range(5):
        assert replay(tmp_path, at).difference is None
    assert joined(list(rows)).num_rows
