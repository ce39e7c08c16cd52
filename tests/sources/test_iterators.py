"""Iterators as sources: rows as they come, back-pressure, and how a run is stopped."""

from __future__ import annotations

import asyncio
import datetime
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from support.sources.feeding_driver import chain, events, expected

import specstream as ss


def collected() -> tuple[list[pa.Table], Any]:
    tables: list[pa.Table] = []
    return tables, lambda table, batch_id: tables.append(table)


async def slowly(rows: list[Any]) -> AsyncIterator[Any]:
    for row in rows:
        await asyncio.sleep(0)
        yield row


@pytest.mark.parametrize("max_wait", [0, 0.01])
@pytest.mark.parametrize("kind", ["async", "plain", "lists", "tables", "batches"])
def test_what_an_iterator_gives_is_run_in_its_order(kind: str, max_wait: float) -> None:
    rows = events(0, 500)
    parts = [rows[at : at + 70] for at in range(0, 500, 70)]
    made: dict[str, Callable[[], Any]] = {
        "async": lambda: slowly(rows),
        "plain": lambda: iter(rows),
        "lists": lambda: slowly(parts),
        "tables": lambda: map(pa.Table.from_pylist, parts),
        "batches": lambda: slowly(list(map(pa.RecordBatch.from_pylist, parts))),
    }
    items = made[kind]()
    tables, sink = collected()
    with ss.Engine(chain, threads=2, horizon=4) as engine:
        stats = ss.sources.run(
            engine, ss.sources.iterate(items), to=sink, max_rows=64, max_wait=max_wait
        )
    assert pa.concat_tables(tables).equals(expected(500))
    assert stats.events == 500
    assert max(table.num_rows for table in tables) <= 64


def test_rows_and_tables_may_take_turns() -> None:
    rows = events(0, 9)
    items = [rows[0], pa.Table.from_pylist(rows[1:4]), rows[4:6], pa.Table.from_pylist(rows[6:])]
    tables, sink = collected()
    with ss.Engine(chain) as engine:
        ss.sources.run(engine, ss.sources.iterate(items), to=sink, max_wait=0.05)
    assert pa.concat_tables(tables).equals(expected(9))


def test_an_iterator_is_asked_for_no_more_than_there_is_room_for() -> None:
    given = 0
    goes_on = threading.Event()
    highest: list[int] = []

    async def counted() -> AsyncIterator[Any]:
        nonlocal given
        for row in events(0, 1000):
            given += 1
            yield row

    def sink(table: pa.Table, batch_id: int) -> None:
        if batch_id == 0:
            # The iterator has all the time that it wants.
            assert not goes_on.wait(0.3)
            highest.append(given)

    with ss.Engine(chain) as engine:
        stats = ss.sources.run(engine, ss.sources.iterate(counted()), to=sink, max_rows=20)
    # A batch, a full buffer, and the one that finds it full.
    assert highest[0] <= 2 * 20 + 1
    assert stats.events == given == 1000


def test_what_an_iterator_raises_comes_behind_what_it_has_given() -> None:
    def broken() -> Iterator[Any]:
        yield from events(0, 30)
        raise OSError("the line is dead")

    tables, sink = collected()
    with ss.Engine(chain) as engine, pytest.raises(OSError, match="the line is dead"):
        ss.sources.run(engine, ss.sources.iterate(broken()), to=sink)
    assert pa.concat_tables(tables).equals(expected(30))


def test_a_run_in_an_event_loop_leaves_that_its_turn() -> None:
    async def main() -> int:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        answers: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def asked() -> AsyncIterator[Any]:
            assert asyncio.get_running_loop() is loop
            while (event := await queue.get()) is not None:
                yield event

        def sink(table: pa.Table, batch_id: int) -> None:
            for x in table["x"].to_pylist():
                loop.call_soon_threadsafe(answers.put_nowait, x)

        with ss.Engine(chain) as engine:
            run = asyncio.create_task(
                ss.sources.arun(engine, ss.sources.iterate(asked()), to=sink, max_wait=0)
            )
            for x in range(5):  # each is answered before the next one comes
                await queue.put({"x": x, "name": "n"})
                assert await asyncio.wait_for(answers.get(), 30) == x
            await queue.put(None)
            stats = await run
            return int(stats.events)

    assert asyncio.run(main()) == 5


def test_a_cancelled_run_finishes_what_it_has_taken() -> None:
    taken, tables = [], []

    async def main() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def endless() -> AsyncIterator[Any]:
            x = 0
            while True:
                await asyncio.sleep(0)
                taken.append(x)
                yield {"x": x, "name": "n"}
                x += 1

        def sink(table: pa.Table, batch_id: int) -> None:
            tables.append(table)
            loop.call_soon_threadsafe(begun.set)

        with ss.Engine(chain) as engine:
            run = asyncio.create_task(
                ss.sources.arun(engine, ss.sources.iterate(endless()), to=sink, max_rows=10)
            )
            await begun.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    asyncio.run(main())
    found = [x for table in tables for x in table["x"].to_pylist()]
    # One may be in the hands of the iterator, which nobody wanted any more.
    assert found == taken[: len(found)]
    assert len(taken) - len(found) <= 1


def test_a_checkpoint_without_a_source_that_can_send_again_has_to_be_agreed_to(
    tmp_path: Any,
) -> None:
    with ss.Engine(chain) as engine:
        with pytest.raises(ss.ConfigurationError, match="at_most_once=True"):
            ss.sources.run(engine, ss.sources.iterate([]), to=print, checkpoint=tmp_path)
        tables, sink = collected()
        options: Any = {"to": sink, "checkpoint": tmp_path, "at_most_once": True}
        ss.sources.run(engine, ss.sources.iterate(events(0, 20)), **options)
    with ss.Engine(chain) as engine:  # the state goes on, and so do the ids of batches
        ss.sources.run(engine, ss.sources.iterate(events(20, 20)), **options)
    again = {tuple(table["x"].to_pylist()): table for table in tables}
    assert pa.concat_tables(again.values()).equals(expected(40))


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"x": 1}, r"event 3 of .*: column 'name' is missing \(it has x\); expected str"),
        ({"x": 1.5, "name": "n"}, "event 3 of .*: column 'x' is 1.5; expected int"),
        (
            {"x": 2**70, "name": "n"},
            "event 3 of .*: column 'x' is 1180.*, which does not fit int",
        ),
        ({"x": None, "name": "n"}, "event 3 of .*: column 'x' is null; expected int"),
        ({"x": pd.NaT, "name": "n"}, "event 3 of .*: column 'x' is null; expected int"),
        ({"x": pa.scalar(None), "name": "n"}, "event 3 of .*: column 'x' is null; expected int"),
        ("x=1", "'x=1'; expected a dict"),
        (pa.table({"x": ["one"], "name": ["n"]}), "'x' has type string"),
    ],
)
def test_an_item_that_is_no_event_is_told(item: Any, told: str) -> None:
    with ss.Engine(chain) as engine, pytest.raises(ss.InputError, match=told):
        ss.sources.run(engine, ss.sources.iterate([*events(0, 3), item]), to=print)


def test_times_may_be_what_python_and_json_have_for_them() -> None:
    class Last(ss.State):
        at = ss.scalar(int)

    @ss.operator(
        state=Last,
        event={"at": ss.timestamp("ms"), "day": datetime.date, "paid": ss.decimal(2)},
        emits={"at": int, "paid": int, "day": int},
    )
    def last(state, event, emit):  # type: ignore[no-untyped-def]
        state.at = event.at
        emit(event.at, event.paid, event.day)

    zone = datetime.timezone(datetime.timedelta(hours=2))
    times: list[Any] = [
        "1970-01-01T00:00:01Z",
        "1970-01-01 02:00:01.5+02:00",
        "1970-01-01T00:00:02",
        datetime.datetime(1970, 1, 1, 2, 0, 3, tzinfo=zone),
        4000,
        "1970-01-02",
    ]
    paid: list[Any] = ["1.5", 2, "-0.25", 3, "4.00", "5"]
    rows = [
        {"at": at, "day": "1970-01-03", "paid": amount}
        for at, amount in zip(times, paid, strict=True)
    ]
    tables, sink = collected()
    with ss.Engine(last) as engine:
        ss.sources.run(engine, ss.sources.iterate(rows), to=sink, max_wait=0.1)
    table = pa.concat_tables(tables)
    assert table["at"].to_pylist() == [1000, 1500, 2000, 3000, 4000, 86_400_000]
    assert table["paid"].to_pylist() == [150, 200, -25, 300, 400, 500]
    assert table["day"].to_pylist() == [2] * 6


class Times(ss.State):
    seen = ss.scalar(int)


@ss.operator(
    state=Times, event={"at": ss.nullable(datetime.datetime)}, emits={"seen": int}, name="times"
)
def times(state, event, emit):  # type: ignore[no-untyped-def]
    if event.at is not None:
        state.seen += 1
    emit(state.seen)


@pytest.mark.parametrize("wrong", [1.5, True, "no time", [1]])
def test_times_of_several_kinds_and_none_are_one_column(wrong: Any) -> None:
    right = [{"at": None}, {"at": "2026-01-01"}, {"at": 0}, {"at": datetime.datetime(2026, 1, 2)}]
    tables, sink = collected()
    with ss.Engine(times) as engine:
        ss.sources.run(engine, ss.sources.iterate([right]), to=sink)
        with pytest.raises(ss.InputError, match="column 'at' is"):
            ss.sources.run(engine, ss.sources.iterate([[*right, {"at": wrong}]]), to=sink)
    assert pa.concat_tables(tables)["seen"].to_pylist() == [0, 1, 2, 3]


@ss.operator(event={"x": int, "raw": str, "error": str}, emits={"x": int})
def with_errors(event, emit):  # type: ignore[no-untyped-def]
    emit(event.x)


def test_a_field_with_the_name_of_what_is_put_beside_rejected_rows_is_refused() -> None:
    rows = [{"x": 1, "raw": "r", "error": "e"}]
    with (
        ss.Engine(with_errors, rejected_rows="side") as engine,
        pytest.raises(ss.ConfigurationError, match="aside with a column 'error' beside their"),
    ):
        ss.sources.run(engine, ss.sources.iterate(iter(rows)), to=lambda table, _: None)
