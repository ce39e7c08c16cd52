"""Rows that are pulled out of an engine are those of `process`, in order, each once: through
delays, ends, errors, signals, and callers who stop halfway."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import datetime
import gc
import random
import signal
import socket
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from support.engine.interrupt_driver import NthStep, OwnStep

import specstream as ss

pull, iterate = ss.sources.pull, ss.sources.iterate
BAD = 99


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(
    state=Seen, event={"x": int}, emits={"x": int, "count": int, "drawn": float}, name="spread"
)
def spread(state, event, emit):
    """As many rows as the remainder says; each order of the events gives others."""
    state.count += 1
    if event.x == 99:
        raise ValueError("no 99")
    for row in range(event.x % 3):
        emit(event.x, state.count, event.random(row))


@ss.operator(event={"x": int, "count": int}, emits={"count": int})
def even(event, emit):
    if event.x % 2 == 0:
        emit(event.count)


def two_sinks() -> ss.Pipeline:
    pipeline = ss.Pipeline("two_sinks")
    spreads = pipeline.add(spread, pipeline.source("xs", {"x": int}))
    pipeline.sink("all", spreads)
    pipeline.sink("even", pipeline.add(even, spreads))
    return pipeline


class Silence(ss.State):
    due = ss.timers(str)


def ring(state, timer, emit):
    if timer.key == "bad":
        raise ValueError("no bad")
    emit(timer.key, timer.at)


@ss.operator(
    state=Silence,
    event={"name": str},
    emits={"name": str, "at": int},
    on_timer=ring,
    time_unit="us",
)
def silent(state, event, emit):
    state.due.set(event.name, event.timestamp + 10)


class Moods(ss.State):
    mood = ss.scalar(int)


@ss.operator(
    state=Moods,
    inputs={"tick": {"price": float}, "news": {"mood": int}},
    emits={"price": float, "mood": int},
)
def decide(state, event, emit):
    if event.changed("news"):
        state.mood = 3 * state.mood + event.news.mood
    else:
        emit(event.tick.price, state.mood)


def desk() -> ss.Pipeline:
    pipeline = ss.Pipeline("desk")
    ticks = pipeline.source("ticks", {"price": float})
    news = pipeline.source("news", {"mood": int})
    pipeline.sink("signals", pipeline.add(decide, tick=ticks, news=news))
    return pipeline


def events(*xs: int) -> list[dict[str, Any]]:
    return [{"x": x} for x in xs]


def processed(xs: list[int], operator: ss.Operator = spread, **options: Any) -> Any:
    with ss.Engine(operator, **options) as engine:
        return rows_of(engine.process({"x": pa.array(xs, pa.int64())}))


def rows_of(output: Any) -> Any:
    if isinstance(output, dict):
        return {sink: table.to_pylist() for sink, table in output.items()}
    return output.to_pylist()


class Given:
    """An iterator that says how many items it has given, on which threads, and that it is closed.

    Args:
        items: what it gives.
        between: called before each of them.
        error: raised behind them.
    """

    def __init__(
        self,
        items: list[Any],
        between: Callable[[], object] = lambda: None,
        error: Exception | None = None,
    ) -> None:
        self.items, self.between, self.error = items, between, error
        self.count = 0
        self.threads: set[threading.Thread] = set()
        self.closed = 0

    def __iter__(self) -> Given:
        return self

    def __next__(self) -> Any:
        self.threads.add(threading.current_thread())
        self.between()
        at = self.count
        if at < len(self.items):
            self.count = at + 1
            return self.items[at]
        if self.error is not None:
            raise self.error
        raise StopIteration

    def close(self) -> None:
        self.closed += 1


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.001)  # another thread makes it hold


def pulling_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "specstream-pull"]


XS = [1, 2, 0, 3, 5, 4, 8, 7, 6, 2, 2]


async def slowly(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


KINDS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: iterate(iter(events(*XS))),
    "lists": lambda: iterate([events(*XS[:3]), [], [events(*XS[3:4]), events(*XS[4:])]]),
    "tables": lambda: iterate([pa.table({"x": XS[:6]}), pa.table({"x": XS[6:]})]),
    "batches": lambda: iterate(pa.table({"x": XS}).to_batches(4)),
    "async": lambda: iterate(slowly(events(*XS))),
    "dataset": lambda: ss.sources.dataset(pa.table({"x": XS, "y": XS})),
}


@pytest.mark.parametrize("prefetch", [0, 1, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_process_one_by_one(kind: str, prefetch: int) -> None:
    if kind == "async" and not prefetch:
        pytest.skip("it needs a thread")
    expected = processed(XS, keys=True)
    for asked in (list, stepped):
        with ss.Engine(spread, keys=True) as engine:
            rows = pull(engine, KINDS[kind](), prefetch=prefetch)
            assert asked(rows) == expected
            assert rows.ended
            assert rows.pending == 0
            assert next(rows, None) is None
            assert rows.step() is None
            assert engine.state.count == len(XS)


def stepped(rows: ss.sources.PulledRows) -> list[dict[str, Any]]:
    found = []
    while not rows.ended:
        row = rows.step()
        if row is not None:
            found.append(row)
    return found


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_step_takes_exactly_one_event_in(prefetch: int) -> None:
    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(Given(events(0, 2, 0, 0, 1))), prefetch=prefetch)
        assert rows.step() is None
        assert engine.state.count == 1
        first = rows.step()
        assert first is not None
        assert first["count"] == engine.state.count == 2
        second = rows.step()  # which waits
        assert second is not None
        assert second["drawn"] != first["drawn"]
        assert engine.state.count == 2
        assert rows.step() is None
        assert engine.state.count == 3
        assert next(rows)["count"] == engine.state.count == 5
        assert not rows.ended
        assert rows.step() is None
        assert rows.ended


def test_without_a_thread_no_event_is_asked_for_before_it_is_needed() -> None:
    given = Given(events(1, 0, 1, 1))
    with ss.Engine(spread) as engine:
        before = threading.active_count()
        rows = pull(engine, iterate(given), prefetch=0)
        asked = []
        for _ in range(2):
            asked.append(given.count)
            next(rows)
        assert [*asked, given.count] == [0, 1, 3]
        assert rows.pending == 0
        assert given.threads == {threading.current_thread()}
        assert threading.active_count() == before


@pytest.mark.parametrize("prefetch", [1, 5])
def test_one_thread_reads_ahead_to_its_bound_and_goes_on_from_there(prefetch: int) -> None:
    given = Given(events(*[1] * 100))
    with ss.Engine(spread) as engine, pull(engine, iterate(given), prefetch=prefetch) as rows:
        for done in range(20):
            wait_for(lambda: given.count == done + prefetch)  # noqa: B023
            time.sleep(0.002)  # it has all the time that it wants
            assert given.count == done + prefetch
            assert rows.pending == prefetch
            assert next(rows)["count"] == done + 1
        assert len(given.threads) == len(pulling_threads()) == 1
        assert len(list(rows)) == 80
        assert given.closed == 1
    assert not pulling_threads()


def test_timers_fire_between_events_and_at_the_end_as_in_process() -> None:
    table = {"name": ["ann", "bob", "ann", "eve"], "time": [0, 4, 12, 30]}
    with ss.Engine(silent, keys=True) as engine:
        expected = rows_of(engine.process(table, order_by="time", end=True))
    assert len(expected) == 4
    for prefetch in (0, 3):
        source = iterate([pa.table(table)], columns={"time": int})
        with ss.Engine(silent, keys=True) as engine:
            rows = pull(engine, source, order_by="time", prefetch=prefetch)
            steps = [rows.step() for _ in range(7)]
            assert [row and row["name"] for row in steps] == [
                *(None, None, "ann", "bob", "ann"),  # what is due fires before an event
                *("eve", None),
            ]
            assert [row for row in steps if row] == expected
    items = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    with ss.Engine(silent, keys=True) as engine:
        source = iterate(items, columns={"time": int})
        rows = pull(engine, source, order_by="time", finish=False)
        assert list(rows) == expected[:3]
        assert rows.ended
        again = pull(engine, iterate([], columns={"time": int}), order_by="time")
        assert [row["name"] for row in again] == ["eve"]


def test_the_end_has_times_of_the_type_of_the_events() -> None:
    times = pa.array([datetime.datetime(2026, 1, 5), datetime.datetime(2026, 1, 6)])
    table = pa.table({"name": ["ann", "bob"], "time": times})
    with ss.Engine(silent, keys=True) as engine:
        expected = rows_of(engine.process(table, order_by="time", end=True))
    assert isinstance(expected[-1]["timestamp"], datetime.datetime)
    with ss.Engine(silent, keys=True) as engine:
        assert list(pull(engine, ss.sources.dataset(table), order_by="time")) == expected


def test_each_sink_has_its_own_pace() -> None:
    expected = processed(XS, two_sinks())
    for prefetch in (0, 4):
        with ss.Engine(two_sinks()) as engine:
            rows = pull(engine, KINDS["dicts"](), prefetch=prefetch)
            evens = rows["even"]
            found = [next(evens), next(evens)]
            assert engine.state.spread.count < len(XS)
            before = engine.state.spread.count
            assert rows["all"].step() == expected["all"][0]  # it waits
            assert engine.state.spread.count == before
            assert [expected["all"][0], *rows["all"]] == expected["all"]
            assert rows["all"].ended
            assert not evens.ended
            assert not rows.ended
            assert [*found, *evens] == expected["even"]
            assert rows.ended


def test_rows_of_another_sink_may_wait_up_to_the_limit_and_none_is_lost() -> None:
    xs = [1, 1, 1, 1, 4, 1, 2]
    expected = processed(xs, two_sinks())
    with ss.Engine(two_sinks()) as engine:
        rows = pull(engine, iterate(events(*xs)), limit=2)
        said = (
            r"operator 'two_sinks': 3 rows of sink 'all' wait while those of 'even' are asked for; "
            r"expected limit=2 at most: take some from rows\['all'\]"
        )
        for _ in range(2):
            with pytest.raises(ss.ConfigurationError, match=said):
                next(rows["even"])
        found = [next(rows["all"]) for _ in range(3)]
        assert next(rows["even"]) == expected["even"][0]
        assert [*found, *rows["all"]] == expected["all"]
        assert [expected["even"][0], *rows["even"]] == expected["even"]


def test_sinks_may_be_asked_on_different_threads() -> None:
    xs = [x % 7 for x in range(300)]
    expected = processed(xs, two_sinks())
    found: dict[str, Any] = {}
    with ss.Engine(two_sinks()) as engine:
        rows = pull(engine, iterate(events(*xs)), prefetch=3)

        def ask(sink: str) -> None:
            found[sink] = list(rows[sink])

        threads = [threading.Thread(target=ask, args=[sink]) for sink in expected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert found == expected


def test_who_waits_for_an_event_takes_no_processor() -> None:
    # A live source that has nothing for a while: what is measured is the waiting.
    given = Given(events(1), lambda: time.sleep(0.3))
    with ss.Engine(spread) as engine:
        engine.process({"x": [1]})  # compiled
        rows = pull(engine, iterate(given))
        before = time.thread_time()
        next(rows)
        assert time.thread_time() - before < 0.15


TICKS = [{"time": 3 * at, "price": float(at)} for at in range(30)]
NEWS = [{"time": 9 * at, "mood": at} for at in range(13)]


@pytest.mark.parametrize("prefetch", [0, 1, 20])
@pytest.mark.parametrize("as_union", [False, True])
def test_several_sources_run_in_the_order_of_their_times(prefetch: int, as_union: bool) -> None:
    given = Given(TICKS)
    sources: Any = {
        "ticks": iterate(given, columns={"time": int}),
        "news": ss.sources.dataset(pa.Table.from_pylist(NEWS)),
    }
    with ss.Engine(desk()) as engine:
        tables = {"ticks": TICKS, "news": NEWS}
        expected = rows_of(engine.process(tables, order_by="time"))
    with ss.Engine(desk()) as engine:
        sources = ss.sources.union(sources) if as_union else sources
        rows = pull(engine, sources, order_by="time", prefetch=prefetch)
        assert list(rows["signals"]) == expected
        assert rows.pending == 0
    assert len(given.threads) == 1


def test_times_of_several_types_have_no_order() -> None:
    sources: Any = {
        "ticks": ss.sources.dataset(pa.table({"time": [1.5], "price": [1.0]})),
        "news": ss.sources.dataset(pa.table({"time": [1], "mood": [1]})),
    }
    with ss.Engine(desk()) as engine:
        rows = pull(engine, sources, order_by="time")
        with pytest.raises(
            ss.InputError, match="column 'time' has several types, int64 from 'news', double from"
        ):
            next(rows)
        assert rows.ended


@pytest.mark.parametrize("prefetch", [0, 2, 64])
def test_what_a_source_raises_comes_behind_the_rows_before_it(prefetch: int) -> None:
    given = Given(events(1, 2, 0), error=OSError("the line is dead"))
    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(given), prefetch=prefetch)
        found: list[Any] = []
        with pytest.raises(OSError, match="the line is dead"):
            found.extend(iter(rows.__next__, None))
        assert rows.ended
        assert list(rows) == []
        assert engine.state.count == 3
        wait_for(lambda: given.closed == 1)
        assert not pulling_threads()


@pytest.mark.parametrize("prefetch", [0, 2, 64])
def test_what_an_event_raises_comes_behind_the_rows_before_it(prefetch: int) -> None:
    given = Given(events(1, 2, BAD, 1, 1))
    before = processed([1, 2])
    found: list[Any] = []
    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(given), prefetch=prefetch)
        with pytest.raises(ValueError, match="no 99") as raised:
            found.extend(iter(rows.__next__, None))
        assert found == before
        assert "raised by event 2 of the iterator Given" in raised.value.__notes__
        assert rows.ended
        assert [*rows, rows.step()] == [None]
        wait_for(lambda: given.closed == 1)
        assert rows.pending == given.count - 3
        # It goes on with the next call.
        assert engine.state.count == 2
        assert engine.process({"x": [1]})["count"].to_pylist() == [3]


def test_what_an_event_raises_is_told_to_each_sink_behind_its_own_rows() -> None:
    expected = processed([2, 4, 2], two_sinks())
    with ss.Engine(two_sinks()) as engine:
        rows = pull(engine, iterate(events(2, 4, 2, BAD)))
        for sink in ("all", "even"):
            found: list[Any] = []
            with pytest.raises(ValueError, match="no 99"):
                found.extend(iter(rows[sink].__next__, None))
            assert found == expected[sink]
            assert list(rows[sink]) == []


def test_rows_of_timers_come_before_what_their_event_or_the_next_timer_raises() -> None:
    names = ["ann", "bad", "eve"]
    source = ss.sources.dataset(pa.table({"name": names, "time": [0, 1, 2]}))
    with ss.Engine(silent) as engine:
        rows = pull(engine, source, order_by="time")
        assert next(rows)["name"] == "ann"
        with pytest.raises(ValueError, match="no bad"):
            next(rows)
        assert list(rows) == []
        empty = {"name": [], "time": pa.array([], pa.int64())}
        end = engine.process(empty, order_by="time", end=True)
        assert end["name"].to_pylist() == ["eve"]


@pytest.mark.parametrize("prefetch", [0, 3])
def test_failed_events_and_rejected_rows_are_set_aside_as_ever(prefetch: int) -> None:
    items = [*events(1, BAD, 2), {"x": None}, pa.table({"x": [None, 1], "y": ["odd", "right"]})]
    with ss.Engine(spread, errors="side", rejected_rows="side") as engine:
        rows = list(pull(engine, iterate(items), prefetch=prefetch))
        assert [row["x"] for row in rows] == [1, 2, 2, 1]
        failed, rejected = engine.failed_events(), engine.rejected_rows()
        assert failed is not None
        assert failed["x"].to_pylist() == [BAD]
        assert rejected is not None
        assert rejected.num_rows == 2
        assert rejected["y"].to_pylist() == [None, "odd"]  # as it was given


def test_an_item_that_is_no_event_is_told_behind_the_rows_before_it() -> None:
    for wrong, told in [
        ({"y": 1}, "event 2 of the iterator list: column 'x' is missing"),
        ([{"x": 0}, {"x": "one"}], "event 3 of the iterator list: column 'x' is 'one'"),
        ("one", "gave 'one'; expected a dict"),
        (
            pa.table({"x": pa.array([0, None])}),
            "event 3 of the iterator list has no value of column 'x'",
        ),
    ]:
        with ss.Engine(spread) as engine:
            rows = pull(engine, iterate([*events(1, 1), wrong, *events(1)]))
            assert [next(rows)["count"], next(rows)["count"]] == [1, 2]
            with pytest.raises(ss.InputError, match=told):
                next(rows)
            assert rows.ended


def test_a_line_that_is_no_event_is_told_behind_the_lines_before_it() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def send() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b'{"x": 1}\n{"x": 2}\n{"y": 3}\n')

    threading.Thread(target=send, daemon=True).start()
    with ss.Engine(spread) as engine:
        source = ss.sources.tcp("127.0.0.1", server.getsockname()[1])
        rows = pull(engine, source)
        found = [next(rows)["x"] for _ in range(3)]
        with pytest.raises(ss.InputError, match=r"line 2 of tcp://.*column 'x' is missing"):
            next(rows)
        assert found == [1, 2, 2]
    server.close()


# ---- closing ----


def close_it(rows: list[ss.sources.PulledRows]) -> None:
    rows[0].close()


def leave_it(rows: list[ss.sources.PulledRows]) -> None:
    with rows[0]:
        next(rows[0])


def drop_it(rows: list[ss.sources.PulledRows]) -> None:
    rows.clear()


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("end", [close_it, leave_it, drop_it])
def test_closing_halfway_ends_the_thread_and_closes_the_iterator(
    end: Callable[[list[ss.sources.PulledRows]], None], prefetch: int
) -> None:
    closed: list[str] = []

    def endless() -> Iterator[Any]:
        try:
            while True:
                yield {"x": 1}
        finally:
            closed.append(threading.current_thread().name)

    with ss.Engine(spread) as engine:
        kept = [pull(engine, iterate(endless()), prefetch=prefetch)]
        next(kept[0])
        end(kept)
        wait_for(lambda: len(closed) == 1 and not pulling_threads())
        assert closed == ["specstream-pull" if prefetch else threading.current_thread().name]
        done = engine.state.count
        assert [row for one in kept for row in one] == []
        assert engine.state.count == done
        assert all(one.ended for one in kept)
        assert engine.process({"x": [1]})["count"].to_pylist() == [done + 1]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_what_is_read_and_not_run_is_counted_and_rows_that_wait_are_given(prefetch: int) -> None:
    given = Given([pa.table({"x": [2, 1, 1]}), *events(1, 1, 1, 1, 1)])
    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(given), prefetch=prefetch)
        next(rows)
        rows.close()
        read = given.count + 2  # a table of three is an item
        assert rows.pending == read - 1
        assert not rows.ended
        assert [row["x"] for row in rows] == [2]
        assert rows.ended
        assert engine.state.count == 1
        assert given.closed == 1


def test_an_iterator_that_does_not_come_back_is_not_waited_for() -> None:
    goes_on, closed = threading.Event(), threading.Event()

    def stuck() -> Iterator[Any]:
        try:
            yield {"x": 1}
            goes_on.wait(60)
            yield {"x": 1}
        finally:
            closed.set()

    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(stuck()))
        next(rows)
        began = time.monotonic()
        rows.close()
        assert time.monotonic() - began < 30
        assert not closed.is_set()
        assert list(rows) == []
        goes_on.set()
        assert closed.wait(30)


def test_who_waits_for_a_row_is_let_go_when_another_thread_closes() -> None:
    goes_on, asked = threading.Event(), threading.Event()

    def stuck() -> Iterator[Any]:
        asked.set()
        goes_on.wait(60)
        yield {"x": 1}

    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(stuck()))
        found: list[Any] = ["nothing yet"]
        waits = threading.Thread(target=lambda: found.append(next(rows, None)))
        waits.start()
        assert asked.wait(30)
        rows.close()
        waits.join(30)
        assert found == ["nothing yet", None]
        assert engine.state.count == 0
        goes_on.set()


def test_what_an_iterator_raises_when_it_is_closed_is_told() -> None:
    def holds_on() -> Iterator[Any]:
        try:
            while True:
                yield {"x": 1}
        finally:
            raise OSError("not yet")

    for prefetch in (0, 2):
        with ss.Engine(spread) as engine:
            rows = pull(engine, iterate(holds_on()), prefetch=prefetch)
            next(rows)
            with pytest.raises(OSError, match="not yet"):
                rows.close()
            rows.close()
            assert list(rows) == []


def test_an_asynchronous_iterator_is_closed_as_well() -> None:
    closed = threading.Event()

    async def endless() -> AsyncIterator[Any]:
        try:
            while True:
                yield {"x": 1}
        finally:
            closed.set()

    with ss.Engine(spread) as engine, pull(engine, iterate(endless()), prefetch=2) as rows:
        assert next(rows)["count"] == 1
    assert closed.is_set()
    assert not pulling_threads()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_engine_that_nobody_holds_goes_without_the_collector(prefetch: int) -> None:
    gc.disable()
    try:
        for last in (1, BAD):
            engine = ss.Engine(spread)
            held = weakref.ref(engine)
            rows = pull(engine, iterate(iter(events(1, 1, last))), prefetch=prefetch)
            with contextlib.suppress(ValueError):
                list(rows)
            del engine, rows
            assert held() is None
    finally:
        gc.enable()


# ---- signals ----


def silences() -> Any:
    names = ["ann", "bob", "ann", "eve"]
    return ss.sources.dataset(pa.table({"name": names, "time": [0, 4, 12, 30]}))


def two_sources() -> Any:
    return {
        "ticks": iterate(Given([TICKS[:2], *TICKS[2:4]]), columns={"time": int}),
        "news": iterate(Given(NEWS[:2]), columns={"time": int}),
    }


# Operator, source, and options of the engine and of the pull.
INTERRUPTED: dict[str, tuple[Callable[[], ss.Operator], Callable[[], Any], Any, Any]] = {
    "dicts": (lambda: spread, lambda: iterate(Given(events(*XS[:6]))), {}, {}),
    "parts": (
        lambda: spread,
        lambda: iterate(Given([events(*XS[:2]), pa.table({"x": XS[2:5]})])),
        {},
        {},
    ),
    "dataset": (lambda: spread, lambda: ss.sources.dataset(pa.table({"x": XS[:5]})), {}, {}),
    "timers": (lambda: silent, silences, {}, {"order_by": "time"}),
    "sinks": (two_sinks, lambda: iterate(Given(events(4, 1, 2))), {}, {}),
    "sources": (desk, two_sources, {}, {"order_by": "time"}),
    "failed": (two_sinks, lambda: iterate(Given(events(4, 1, BAD))), {}, {}),
    "dead": (lambda: spread, lambda: iterate(Given(events(1, 2), error=OSError("dead"))), {}, {}),
    "aside": (
        lambda: spread,
        lambda: iterate(Given([*events(1, BAD), {"x": None}, pa.table({"x": [None, 1]})])),
        {"errors": "side", "rejected_rows": "side"},
        {},
    ),
}


def interrupted(what: str, prefetch: int, by: NthStep, number: int, kept: list[Any]) -> Any:
    """A run whose calls are interrupted, each at the n-th step where Python looks for signals, but
    for the call behind; how many were, and all that came of the run."""
    operator, source, of_engine, options = INTERRUPTED[what]
    hits, was_hit = 0, False
    with ss.Engine(operator(), horizon=0, keys=True, **of_engine) as engine:
        rows = pull(engine, source(), prefetch=prefetch, **options)
        kept.append(rows)  # an interrupt in a finaliser would confuse the profiler
        sinks = engine.operator.sinks
        several = {sink: rows[sink] for sink in sinks} if sinks else {"": rows}
        found: dict[str, list[Any]] = {sink: [] for sink in several}
        left, turn = list(several), 0
        while left:
            sink = left[turn // 2 % len(left)]
            one, row, is_over = several[sink], None, False
            by.left, was_hit = 10**9 if was_hit else number, False
            by.arm("next", 0)
            try:
                by.wanted = True
                row = one.step() if turn % 4 else one.__next__()
                by.wanted = False  # no call since
            except KeyboardInterrupt:
                by.wanted, was_hit = False, True
                hits += 1
            except StopIteration:
                by.wanted, is_over = False, True
            except (ValueError, OSError) as error:
                by.wanted = False
                found[sink].append((type(error), str(error)))
            by.disarm()
            turn += 1
            found[sink] += [] if row is None else [row]
            if is_over or one.ended:
                left.remove(sink)
        assert rows.ended
        assert rows.pending == 0
        rows.close()
        stats = engine.stats
        aside = [engine.rejected_rows(), engine.failed_events()]
        tables = [None if table is None else table.to_pylist() for table in aside]
        return hits, (found, tables, stats.events, stats.rejected_rows, stats.failed_events)


DAILY = [("parts", 0), ("dead", 2), ("timers", 0), ("aside", 2)]


# Every day some steps of some runs.
@pytest.mark.parametrize(
    ("what", "prefetch", "kind", "stride"),
    [
        *((what, prefetch, OwnStep, 4) for what, prefetch in DAILY),
        *(
            pytest.param(what, prefetch, kind, 1, marks=[pytest.mark.slow, pytest.mark.long])
            for what in INTERRUPTED
            for prefetch in (0, 2)
            for kind in (OwnStep, NthStep)
        ),
    ],
)
def test_whatever_step_is_interrupted_no_row_is_lost_and_none_comes_twice(
    what: str, prefetch: int, kind: type[NthStep], stride: int
) -> None:
    gc.collect()  # finalisers now, and not in between
    by, kept = kind("next"), list[Any]()
    _, expected = interrupted(what, prefetch, by, 10**9, kept)
    for number in range(0, 10_000, stride):
        hits, found = interrupted(what, prefetch, by, number, kept)
        assert found == expected, number
        if not hits:
            break
    assert number > 50, "it was interrupted nowhere: it proves nothing"


class TimesUp(Exception):
    """What handlers of SIGALRM like to raise, and no BaseException only."""


@pytest.mark.parametrize("prefetch", [0, 3])
def test_what_a_signal_handler_raises_goes_out_and_the_next_call_goes_on(prefetch: int) -> None:
    xs = [x % 9 for x in range(300)]
    expected, found, raised = processed(xs), [], 0
    rng = random.Random(prefetch)
    wanted = False

    def alarm(number: int, frame: object) -> None:
        if wanted:
            raise TimesUp

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        with ss.Engine(spread) as engine:
            rows = pull(engine, iterate(Given(events(*xs))), prefetch=prefetch)
            while not rows.ended:
                row = None
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 4e-4))
                try:
                    wanted = True
                    row = rows.step()
                    wanted = False  # no call since
                except TimesUp:
                    wanted = False
                    raised += 1
                found += [] if row is None else [row]
    finally:
        wanted = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found == expected
    assert raised > 20


def test_a_generator_that_was_interrupted_itself_is_not_taken_for_one_that_has_ended() -> None:
    def interrupts() -> Iterator[Any]:
        yield {"x": 1}
        signal.raise_signal(signal.SIGINT)
        yield {"x": 1}

    made: tuple[Callable[[], Any], ...] = (interrupts, lambda: map(dict, interrupts()))
    for make in made:
        with ss.Engine(spread) as engine:
            rows = pull(engine, iterate(make()), prefetch=0)
            next(rows)
            with pytest.raises(KeyboardInterrupt):
                next(rows)
            with pytest.raises(ss.SourceError, match=r"interrupted by a KeyboardInterrupt.*thread"):
                next(rows)
            assert list(rows) == []


def test_a_call_in_the_middle_of_another_is_refused() -> None:
    rows: Any = None

    def asks() -> Iterator[Any]:
        yield {"x": 1}
        next(rows)

    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(asks()), prefetch=0)
        next(rows)
        with pytest.raises(ss.SpecstreamError, match="in the middle of another call of this thre"):
            next(rows)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_rows_may_be_closed_by_their_own_source(prefetch: int) -> None:
    rows: Any = None
    closed = []

    def has_enough() -> Iterator[Any]:
        try:
            yield {"x": 1}
            while rows is None:
                time.sleep(0.001)  # the test's own thread gives it the name
            rows.close()
            yield {"x": 1}
        finally:
            closed.append(True)

    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(has_enough()), prefetch=prefetch)
        assert len(list(rows)) <= 1
        wait_for(lambda: bool(closed))
        assert rows.ended


# ---- what is refused ----


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"prefetch": -1}, "prefetch=-1; expected an integer of at least 0, so many events are"),
        ({"prefetch": True}, "prefetch=True; expected an integer"),
        ({"prefetch": 1.5}, "prefetch=1.5; expected an integer"),
        ({"limit": -1}, "limit=-1; expected an integer of at least 0, so many rows may wait"),
        ({"finish": "no"}, "finish='no'; expected True or False"),
        ({"order_by": 7}, "order_by=7; expected"),
        ({"prefech": 7}, "pull has no option prefech=: did you mean prefetch="),
        ({"watermark": 7}, "pull has no option watermark="),
        ({"order_by": "time"}, "order_by='time' .*columns={'time': int}"),
    ],
)
def test_an_option_that_cannot_be_is_told(options: dict[str, Any], told: str) -> None:
    with ss.Engine(spread) as engine:
        with pytest.raises(ss.ConfigurationError, match=told):
            pull(engine, iterate([]), **options)
        assert list(pull(engine, iterate([]))) == []


def test_what_is_no_source_or_engine_is_told() -> None:
    wrong: Any
    with ss.Engine(spread) as engine:
        for wrong, told in (
            (events(1), r"events=.*; expected a source such as.*ss\.sources\.iterate"),
            ("in", r"events='in'; expected a source such as.*ss\.sources\.dataset\('in'\)"),
            ({"x": 1}, "expected sources by name"),
            ({"xs": iterate([])}, "operator 'spread' has the sources none, and the union"),
        ):
            with pytest.raises(ss.ConfigurationError, match=told):
                pull(engine, wrong)
    wrong = spread
    with pytest.raises(ss.ConfigurationError, match=r"engine=.*; expected an ss.Engine: pull\(ss"):
        pull(wrong, iterate([]))
    with pytest.raises(ss.EngineClosedError, match="engine of 'spread' is closed"):
        pull(engine, iterate([]))


def test_sinks_are_asked_by_their_names() -> None:
    with ss.Engine(two_sinks()) as engine:
        rows = pull(engine, iterate(events(1)))
        with pytest.raises(ss.ConfigurationError, match=r"sinks all, even: .*next\(rows\['all'\]"):
            next(rows)
        with pytest.raises(ss.ConfigurationError, match="sinks all, even"):
            rows.step()
        with pytest.raises(ss.ConfigurationError, match=r"no sink 'al'; .*did you mean 'all'"):
            rows["al"]
        assert engine.stats.events == 0
    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(events(1)))
        with pytest.raises(ss.ConfigurationError, match="operator 'spread' has no sinks"):
            rows["all"]
        assert len(list(rows)) == 1


def test_what_needs_an_order_is_refused_without_one() -> None:
    with ss.Engine(silent) as engine, pytest.raises(ss.InputError, match="give order_by="):
        pull(engine, silences())
    with (
        ss.Engine(desk()) as engine,
        pytest.raises(ss.ConfigurationError, match="2 sources have no common order: give order_by"),
    ):
        pull(engine, {"ticks": iterate([]), "news": iterate([])})
    by_time = ss.Pipeline("by_time", phases="time")
    by_time.sink("all", by_time.add(spread, by_time.source("xs", {"x": int})))
    with (
        ss.Engine(by_time) as engine,
        pytest.raises(ss.ConfigurationError, match=r"phases by time.*watermark=.*end=True"),
    ):
        pull(engine, iterate([], columns={"time": int}), order_by="time")


def test_an_engine_with_submitted_events_that_wait_is_refused() -> None:
    with ss.Engine(spread, sources=["a", "b"]) as engine:
        engine.submit({"x": [1], "time": [5]}, order_by="time", source="a")
        with pytest.raises(
            ss.ConfigurationError,
            match=r"engine of 'spread': 1 submitted event.*not committed.*advance\(\).*poll\(\)",
        ):
            pull(engine, iterate(events(1)))
        engine.advance("a")
        engine.advance("b")
        engine.poll(timeout=None)
        assert [row["count"] for row in pull(engine, iterate(events(1)))] == [2]


def test_an_iterator_that_was_read_is_refused() -> None:
    def two() -> Iterator[Any]:
        yield from events(1, 1)

    async def one() -> AsyncIterator[Any]:
        yield {"x": 1}

    with ss.Engine(spread) as engine:
        ended = two()
        assert list(ended)
        with pytest.raises(
            ss.ConfigurationError, match="generator has ended already; expected one"
        ):
            pull(engine, iterate(ended))
        for source in (iterate(two()), iterate(one())):
            rows = pull(engine, source)
            for _ in range(2):
                with pytest.raises(ss.ConfigurationError, match="was read before"):
                    pull(engine, source)
            assert len(list(rows)) in (1, 2)  # that does not disturb who reads it
        source = iterate(iter(events(1, 1)))
        ss.sources.run(engine, source, to=lambda table, batch_id: None)
        with pytest.raises(ss.ConfigurationError, match="was read before"):
            pull(engine, source)
        # What begins anew each time may be read again.
        source = iterate(events(1))
        assert [len(list(pull(engine, source))) for _ in range(2)] == [1, 1]
        assert ss.sources.run(engine, source, to=lambda table, batch_id: None).events == 1


def test_what_needs_a_thread_is_refused_without_one() -> None:
    with ss.Engine(spread) as engine:
        for source in (ss.sources.tcp("127.0.0.1", 0, listen=True), iterate(slowly([]))):
            with pytest.raises(ss.ConfigurationError, match=r"prefetch=0 with .*at least 1"):
                pull(engine, source, prefetch=0)


def test_an_engine_that_is_closed_meanwhile_is_told() -> None:
    with ss.Engine(spread) as engine:
        rows = pull(engine, iterate(events(2, 1, 1)))
        next(rows)
    assert next(rows)["x"] == 2
    with pytest.raises(ss.EngineClosedError, match="engine of 'spread' is closed"):
        next(rows)
    assert rows.ended
    assert rows.pending == 2


# ---- random delays ----


class Drawn:
    """A run that is drawn: items, delays, a failing event or source, sinks, and who has enough."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.xs = [rng.randrange(9) for _ in range(rng.randrange(40))]
        for at in range(len(self.xs)):
            if rng.random() < 0.02:
                self.xs[at] = BAD
        self.sets_aside = rng.random() < 0.3
        self.operator = two_sinks() if rng.random() < 0.5 else spread
        self.error = OSError("dead") if rng.random() < 0.2 else None
        self.stops_at = rng.randrange(60) if rng.random() < 0.3 else None
        self.delay = rng.choice([0.0, 0.0003, 0.001])
        self.items: list[Any] = []
        self.counts: list[int] = []  # of events, by item
        left = self.xs
        while left:
            count = 1 if rng.random() < 0.7 else rng.randrange(1, 6)
            part, left = left[:count], left[count:]
            kind = rng.choice(["dicts", "table"]) if count > 1 else "dict"
            self.items.append(
                events(*part)
                if kind == "dicts"
                else pa.table({"x": part})
                if kind == "table"
                else events(*part)[0]
            )
            self.counts.append(len(part))
        self.given = Given(self.items, self.sleep, self.error)

    def sleep(self) -> None:
        if self.rng.random() < 0.2:
            time.sleep(self.delay * self.rng.random())  # the random delay that is tested

    def expected(self) -> tuple[Any, Exception | None]:
        """Rows by sink, and what is raised behind them."""
        xs = self.xs
        error: Exception | None = self.error
        if BAD in xs and not self.sets_aside:
            xs, error = xs[: xs.index(BAD)], ValueError()
        errors: Any = "side" if self.sets_aside else "raise"
        rows = processed(xs, self.operator, errors=errors, keys=True)
        return (rows if isinstance(rows, dict) else {None: rows}), error

    def run(self) -> None:
        expected, error = self.expected()
        prefetch = self.rng.choice([0, 1, 2, 5, 64])
        errors: Any = "side" if self.sets_aside else "raise"
        with ss.Engine(self.operator, errors=errors, keys=True) as engine:
            rows = pull(engine, iterate(self.given), prefetch=prefetch)
            found: dict[Any, list[Any]] = {sink: [] for sink in expected}
            left, has_failed = dict.fromkeys(expected), False
            while left:
                total = sum(map(len, found.values()))
                if self.stops_at is not None and total >= self.stops_at:
                    rows.close()
                sink = self.rng.choice(list(left))
                one = rows if sink is None else rows[sink]
                self.sleep()
                try:
                    row = next(one) if self.rng.random() < 0.5 else one.step()
                    found[sink] += [] if row is None else [row]
                except StopIteration:
                    assert one.ended
                    del left[sink]
                except (ValueError, OSError) as raised:
                    has_failed = isinstance(raised, ValueError)
                    is_told = type(raised) is type(error), found[sink] == expected[sink], one.ended
                    assert all(is_told), is_told
            for sink in expected:
                length = len(found[sink]) if self.stops_at is not None else None
                assert found[sink] == expected[sink][:length]
            assert rows.ended
            wait_for(lambda: self.given.closed == 1)
            done = engine.stats.events + engine.stats.failed_events + has_failed
            read = sum(self.counts[: self.given.count])
            assert read - rows.pending == done, (read, rows.pending, done, engine.stats, has_failed)
            assert len(self.given.threads) <= 1


RUNS = 100


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(at, marks=pytest.mark.long) for at in range(RUNS, 1000, RUNS))]
)
def test_nothing_is_lost_and_all_is_in_order_whatever_the_delays(first: int) -> None:
    for seed in range(first, first + RUNS):
        Drawn(seed).run()
    wait_for(lambda: not pulling_threads())
