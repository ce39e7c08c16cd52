"""Event time across batches: whatever the batches are, the answer is that of the rows in order."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.checkpoint.fed import Fed
from support.daily import share_of

import specstream as ss
from specstream.checkpoint.inspect.replay import replay
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.checkpoint.run.event_time import Delay, EventTime


class Chain(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    sums = ss.array(float, 7)


@ss.operator(
    state=Chain,
    event={"x": int, "weight": float, "origin": str},
    emits={"x": int, "origin": str, "hash": int, "sum": float},
)
def chain(state, event, emit):
    # Every order of the same events gives another hash.
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.x
    at = event.x % 7
    state.sums[at] += event.weight
    if event.x % 5:
        emit(event.x, event.origin, state.hash, state.sums[at])


@ss.operator(state=Chain, event={"x": int}, emits={"x": int, "seen": int})
def fragile(state, event, emit):
    state.seen += 1
    if event.x < 0:
        raise ValueError(f"x is {event.x}")
    emit(event.x, state.seen)


@ss.operator(state=Chain, event={"x": int}, emits={"x": int})
def apart(state, event, emit):
    state.sums[event.x] += 1.0
    emit(event.x)


SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 4},
    {"threads": 3, "horizon": 16, "chunk": 1, "protocol": "eager"},
    {"threads": 2, "horizon": "auto"},
]
ORIGINS = ["EWR", "JFK", "LGA"]


def stream(rng: np.random.Generator, rows: int, delay: int) -> pa.Table:
    """Events with many ties, each of them at most ``delay`` behind the latest of its source."""
    times = np.sort(rng.integers(0, rows // 2 + 1, rows))
    # Those that would be in order, put off by less than the watermark.
    order = np.argsort(times + rng.integers(0, delay + 1, rows), kind="stable")
    return pa.table(
        {
            "time": times,
            "origin": pa.array(rng.choice(ORIGINS, rows)),
            "x": np.arange(rows),
            "weight": rng.normal(size=rows),
        }
    ).take(order)


def batches(rng: np.random.Generator, table: pa.Table, count: int) -> list[pa.Table]:
    cuts = [0, *sorted(rng.integers(0, table.num_rows + 1, count - 1)), table.num_rows]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]


def oracle(table: pa.Table) -> Any:
    """The sequential run over the rows in their order, worked out apart from specstream."""
    return chain.run_sequential(table.to_pandas().sort_values(["time", "origin"], kind="stable"))


def bits(state: Any) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in state.to_dict().items()}


def committed(batches: list[pa.Table], delay: int, sources: list[str]) -> list[int]:
    """After each batch, how many events are at or below the least frontier: by its definition."""
    counts: list[int] = []
    seen: list[tuple[Any, str]] = []
    latest: dict[str, Any]
    for batch in batches:
        seen += zip(batch["time"].to_pylist(), batch["origin"].to_pylist(), strict=True)
        latest = {name: max((t for t, o in seen if o == name), default=None) for name in sources}
        latest |= {o: max(t for t, p in seen if p == o) for _, o in seen}
        if None in latest.values() or not latest:
            counts.append(0)
            continue
        frontier = min((t - delay, o) for o, t in latest.items())
        counts.append(sum(event <= frontier for event in seen))
    return counts


class Life:
    """Engines that take one batch after the other, with something in between.

    whole: nothing; restored: a snapshot, and a new engine; recorded: a checkpoint file, and
    a new engine; rewound: each batch is run, taken back, and run again.
    """

    def __init__(self, kind: str, options: dict[str, Any], watermark: int, place: Path) -> None:
        self.kind, self.options, self.watermark, self.place = kind, options, watermark, place
        self.batches = 0
        self.begin()

    def begin(self, restore: bytes | None = None) -> None:
        # Each engine has another setting than the one before.
        options = SETTINGS[(SETTINGS.index(self.options) + self.batches) % len(SETTINGS)]
        self.engine = ss.Engine(chain, seed=3, restore=restore, **options)
        self.event_time = EventTime(
            self.engine, order_by="time", source="origin", watermark=self.watermark, sources=ORIGINS
        )
        if self.kind == "recorded":
            self.checkpoint = Checkpoint(self.engine, self.place)

    def end(self) -> None:
        if self.kind == "recorded":
            self.checkpoint.close()
        self.engine.close()

    def run(self, table: pa.Table) -> pa.Table:
        if self.kind == "rewound":
            mark = self.engine.savepoint()
            once = self.event_time.run(table)
            self.engine.rollback(mark)
            again = self.event_time.run(table)
            assert again.equals(once)
            return again
        output = self.event_time.run(table)
        if self.kind == "recorded":
            self.checkpoint.record("q", self.batches, output)
            self.end()
            self.begin()
            assert self.checkpoint.answer("q", self.batches).equals(output)  # type: ignore[union-attr]
        elif self.kind == "restored":
            snapshot = self.engine.snapshot()
            self.end()
            self.begin(snapshot)
        self.batches += 1
        return output


@pytest.mark.slow
@settings(max_examples=share_of(50), suppress_health_check=list(HealthCheck))
@given(
    options=st.sampled_from(SETTINGS),
    rows=st.integers(0, 160),
    delay=st.integers(0, 40),
    count=st.integers(1, 9),
    kind=st.sampled_from(["whole", "restored", "recorded", "rewound"]),
    seed=st.integers(0, 2**32),
)
def test_any_batches_of_any_shuffle_give_the_rows_in_order(
    options: Any, rows: int, delay: int, count: int, kind: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table = stream(rng, rows, delay)
    parts = batches(rng, table, count)
    expected = oracle(table)
    outputs, applied, come = [], [], 0
    with tempfile.TemporaryDirectory() as place:
        life = Life(kind, options, delay, Path(place))
        for part in parts:
            outputs.append(life.run(part))
            applied.append(int(life.engine.state.seen))
            come += part.num_rows
            assert life.engine.stats.pending == come - applied[-1]
        outputs.append(life.event_time.finish())
        life.end()
    found = pa.concat_tables(outputs)
    ids = found["x"].to_pylist()
    store_of = {x: at for at, x in enumerate(expected.output["x"].to_pylist())}
    counts = {
        "lost": len(store_of.keys() - set(ids)),
        "duplicated": len(ids) - len(set(ids)),
        "reordered": sum(store_of[a] > store_of[b] for a, b in itertools.pairwise(ids)),
    }
    assert sum(counts.values()) == 0, counts
    assert found.equals(expected.output)
    assert bits(life.engine.state) == bits(expected.state)
    assert applied == committed(parts, delay, ORIGINS)


def test_what_waits_has_run_already_and_commits_without_running_again() -> None:
    with ss.Engine(apart, threads=2, horizon=8, chunk=1) as engine:
        event_time = EventTime(engine, order_by="time", watermark=100)
        event_time.run(pa.table({"time": [10, 20, 30], "x": [1, 2, 3]}))
        deadline = time.monotonic() + 20
        while engine.stats.speculative_runs < 3:
            assert time.monotonic() < deadline, "what waits does not run"
            time.sleep(0.001)
        engine.savepoint()
        engine.snapshot()
        assert engine.stats.pending == 3
        assert event_time.finish()["x"].to_pylist() == [1, 2, 3]
        assert (engine.stats.speculative_runs, engine.stats.head_runs) == (3, 0)


# ---- frontiers ----


def rows_at(times: list[Any], origin: str | list[str] = "a", of: Any = None) -> pa.Table:
    names = [origin] * len(times) if isinstance(origin, str) else origin
    return pa.table({"time": pa.array(times, of), "origin": names, "x": list(range(len(times)))})


def times_of(outputs: list[pa.Table]) -> list[list[tuple[int, str]]]:
    return [
        list(zip(each["timestamp"].to_pylist(), each["source"].to_pylist(), strict=True))
        for each in outputs
    ]


def run(options: dict[str, Any], *tables: pa.Table) -> list[list[tuple[int, str]]]:
    """The keys of what each batch emits, and at last of what finish() emits."""
    with ss.Engine(fragile, keys=True, threads=2, horizon=4, chunk=2) as engine:
        event_time = EventTime(engine, order_by="time", source="origin", **options)
        return times_of([*map(event_time.run, tables), event_time.finish()])


def test_the_slowest_source_holds_back_the_stream() -> None:
    found = run(
        {"watermark": 10},
        rows_at([100, 50, 45], ["a", "b", "a"]),
        rows_at([105], "a"),
        rows_at([80], "b"),
    )
    # Frontiers: a 90, b 40; a 95, b 40; a 95, b 70.
    assert found == [[], [], [(45, "a"), (50, "b")], [(80, "b"), (100, "a"), (105, "a")]]


def test_a_source_that_the_others_have_left_behind_is_idle() -> None:
    tables = (
        rows_at([100, 50], ["a", "b"]),
        rows_at([130], "a"),  # b is behind by 80, and still waited for
        rows_at([131], "a"),
    )
    options = {"watermark": 10, "late": "drop"}
    assert run(options, *tables)[:3] == [[], [], []]
    options["idle_timeout"] = 80
    assert run(options, *tables)[:3] == [[], [], [(50, "b"), (100, "a")]]
    # b comes again: not below the frontier that the others have reached, 121, and it counts again.
    again = run(options, *tables, rows_at([120, 121], "b"), rows_at([150], "a"))
    assert again[3:] == [[], [(121, "b")], [(130, "a"), (131, "a"), (150, "a")]]


def test_declared_sources_are_waited_for_from_the_stream_s_first_time() -> None:
    tables = (rows_at([100, 95], "a"), rows_at([120], "a"), rows_at([126], "a"))
    assert run({"watermark": 0}, *tables)[0] == [(95, "a"), (100, "a")]
    assert run({"watermark": 0, "sources": ["a", "b"]}, *tables)[:3] == [[], [], []]
    options = {"watermark": 0, "sources": ["a", "b"], "idle_timeout": 30}
    assert run(options, *tables)[:3] == [[], [], [(95, "a"), (100, "a"), (120, "a"), (126, "a")]]


def test_late_rows_are_those_below_their_own_source_s_frontier_when_the_batch_begins() -> None:
    with ss.Engine(fragile, threads=2) as engine:
        event_time = EventTime(engine, order_by="time", source="origin", watermark=10, late="side")
        event_time.run(rows_at([100, 10, 40], ["a", "b", "a"]))  # 40 is not late: the same batch
        assert engine.stats.late == 0
        event_time.run(rows_at([89, 90, 5, 0], ["a", "a", "b", "b"]))
        late = engine.late()
        assert late is not None
        assert late.select(["time", "origin"]).to_pylist() == [
            {"time": 89, "origin": "a"}
        ]  # b's frontier is 0
        assert engine.stats.late == 1
    with ss.Engine(fragile) as engine:
        event_time = EventTime(engine, order_by="time", watermark=10)
        event_time.run(rows_at([100]))
        with pytest.raises(ss.InputError, match=r"1 event.*late.*time=89.*frontier.*late=\"drop\""):
            event_time.run(rows_at([89]))


@pytest.mark.parametrize(
    ("amount", "of", "latest", "frontier"),
    [
        (7, pa.int64(), 100, 93),
        (7, pa.int32(), -(2**31), -(2**31) - 7),
        (7, pa.int64(), -(2**63) + 1, -(2**63)),
        ("10 seconds", pa.timestamp("s"), 100, 90),
        ("1500 ms", pa.timestamp("s"), 100, 98),  # never less than was asked for
        ("10 seconds", pa.timestamp("us", "Europe/Berlin"), 0, -10_000_000),
        (datetime.timedelta(minutes=1), pa.timestamp("ms"), 100_000, 40_000),
        ("2 days", pa.date32(), 10, 8),
        ("25 hours", pa.date32(), 10, 8),
        ("1 day", pa.date64(), 86_400_000, 0),
    ],
)
def test_a_delay_is_in_the_unit_of_the_order_column(
    amount: Any, of: pa.DataType, latest: int, frontier: int
) -> None:
    assert Delay("watermark", amount).before(latest, of, "time") == frontier


@pytest.mark.parametrize("of", [pa.float64(), pa.float32()])
def test_event_times_may_be_fractions(of: pa.DataType) -> None:
    found = run(
        {"watermark": 0.5},
        rows_at([-1.0, 0.25, -0.25], of=of),
        rows_at([0.75, -0.25], of=of),
        rows_at([1.5], of=of),
    )
    assert [[time for time, _ in part] for part in found] == [
        [-1.0, -0.25],
        [-0.25, 0.25],
        [0.75],
        [1.5],
    ]


@pytest.mark.parametrize(
    ("amount", "message"),
    [
        ("ten seconds", "no duration"),
        ("10", "no unit"),
        ("", "no unit"),
        ("NaT", "no time"),
        ("-1 second", "zero or more"),
        (-1, "zero or more"),
        (float("nan"), "zero or more"),
        (float("inf"), "zero or more"),
        (True, "expected a duration"),
        ([10], "expected a duration"),
    ],
)
def test_a_delay_that_is_none_is_refused(amount: Any, message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=f"idle_timeout=.*{message}"):
        Delay("idle_timeout", amount)


@pytest.mark.parametrize(
    ("watermark", "times", "message"),
    [
        ("10 seconds", pa.array([1, 2]), "'time' has type int64; expected a number in the column"),
        (10, pa.array([1, 2], pa.timestamp("us")), "type timestamp.us.; expected a duration"),
        (0.5, pa.array([1, 2]), "type int64; expected an integer"),
        (10, pa.array(["a", "b"]), "type string; expected timestamps, dates or numbers"),
        (10, pa.array([True, False]), "type bool; expected timestamps, dates or numbers"),
        (10, pa.array([3, None]), "column 'time' has 1 null.*row 1"),
        (10, pa.array([None, None]), "column 'time' has 2 null.*row 0"),
        (1.5, pa.array([0.5, np.nan]), "column 'time' has a NaN in row 1"),
    ],
)
def test_a_column_that_has_no_event_time_is_refused(
    watermark: Any, times: pa.Array, message: str
) -> None:
    with ss.Engine(fragile) as engine:
        event_time = EventTime(engine, order_by="time", watermark=watermark)
        with pytest.raises(ss.InputError, match=message):
            event_time.run(pa.table({"time": times, "x": [1, 2]}))
        assert engine.stats.pending == 0


# ---- back to the start of a batch ----


@pytest.mark.parametrize("options", SETTINGS)
def test_rewind_brings_back_the_events_that_waited(options: Any) -> None:
    first, second = rows_at([10, 30, 20], ["a", "b", "a"]), rows_at([40, 35], ["a", "b"])
    bad = second.set_column(2, "x", pa.array([1, -1]))

    def begin(engine: ss.Engine) -> EventTime:
        return EventTime(engine, order_by="time", source="origin", watermark=10)

    with ss.Engine(fragile, **options) as engine:
        event_time = begin(engine)
        expected = [event_time.run(first), event_time.run(second), event_time.finish()]
    with ss.Engine(fragile, **options) as engine:
        event_time = begin(engine)
        found = [event_time.run(first)]
        mark, snapshot = engine.savepoint(), engine.snapshot()
        # The event that raises waits at first: what is undone began two batches before.
        event_time.run(bad)
        with pytest.raises(ValueError, match="x is -1"):
            event_time.finish()
        engine.rollback(mark)
        assert engine.snapshot() == snapshot
        found += [event_time.run(second), event_time.finish()]
        assert found == expected
        assert engine.stats.pending == 0


# ---- the callback ----


class Kept:
    """A sink that is idempotent by batch id."""

    def __init__(self) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self.calls: list[int] = []

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        rows = table.to_pylist()
        assert self.batches.setdefault(batch_id, rows) == rows, "another answer for the same batch"
        self.calls.append(batch_id)


def moments(seconds: list[int], note: str = "") -> pa.Table:
    times = pa.array([at * 1_000_000 for at in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"time": times, "x": seconds, "note": [note] * len(seconds)})


def test_a_feed_keeps_waiting_events_and_late_rows_through_restarts(
    session: Any, tmp_path: Path
) -> None:
    rows, late = Kept(), Kept()

    def feed() -> Any:
        return ss.spark.foreach_batch(
            ss.Engine(fragile, threads=2),
            order_by="time",
            watermark="10 seconds",
            late="side",
            late_to=late,
            to=rows,
            checkpoint=tmp_path / "checkpoint",
        )

    def close(feed: Any) -> None:
        feed.checkpoint.close()
        feed.engine.close()

    def frame(*arguments: Any) -> Any:
        return session.createDataFrame(moments(*arguments))

    one = feed()
    one(frame([20, 5, 30]), 0)
    one(frame([19, 41, 25], "a note"), 1)
    assert (one.stats.events, one.stats.late, one.engine.stats.pending) == (6, 1, 1)
    assert rows.batches == {
        0: [{"x": 5, "seen": 1}, {"x": 20, "seen": 2}],
        1: [{"x": 25, "seen": 3}, {"x": 30, "seen": 4}],
    }
    assert list(late.batches) == [1]
    assert late.batches[1][0] | {"time": 19} == {"time": 19, "x": 19, "note": "a note"}
    close(one)

    two = feed()  # the callback had returned, and Spark does not know
    two(frame([19, 41, 25], "a note"), 1)
    assert (rows.calls, late.calls) == ([0, 1, 1], [1, 1])
    assert (two.stats.repeated, two.engine.stats.pending, two.engine.stats.late) == (1, 1, 1)
    two(frame([60]), 2)
    two.finish()
    assert rows.batches[2] == [{"x": 41, "seen": 5}]
    assert rows.batches[3] == [{"x": 60, "seen": 6}]
    close(two)

    three = feed()
    three.finish()  # as after a crash behind the record
    assert rows.calls[-2:] == [3, 3]
    three(frame([60]), 2)  # Spark has not acknowledged it; the sink has had it
    assert rows.calls[-2:] == [3, 3]
    with pytest.raises(
        ss.ConfigurationError, match=r"finish\(\) has ended the stream with batch 3"
    ):
        three(frame([70]), 3)
    close(three)


def test_an_error_without_a_checkpoint_brings_back_the_events_that_waited(session: Any) -> None:
    rows, broken = Kept(), True

    def sink(table: pa.Table, batch_id: int) -> None:
        if broken and batch_id == 1:
            raise OSError("the disk is full")
        rows(table, batch_id)

    with ss.Engine(fragile, threads=2) as engine:
        feed = ss.spark.foreach_batch(
            engine, order_by="time", watermark=datetime.timedelta(seconds=10), to=sink
        )
        feed(session.createDataFrame(moments([20, 5, 30])), 0)
        snapshot = engine.snapshot()
        with pytest.raises(OSError, match="disk is full"):
            feed(session.createDataFrame(moments([41, 25])), 1)
        assert engine.snapshot() == snapshot
        broken = False
        feed(session.createDataFrame(moments([41, 25])), 1)
        feed.finish()
        feed.finish()
        assert rows.calls == [0, 1, 2]
        assert [row["x"] for part in rows.batches.values() for row in part] == [5, 20, 25, 30, 41]
        with pytest.raises(ss.ConfigurationError, match="has ended the stream"):
            feed(session.createDataFrame(moments([50])), 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"watermark": 1}, "without order_by"),
        ({"order_by": "time", "idle_timeout": 1}, "give watermark="),
        ({"order_by": "time", "sources": ["a"]}, "give watermark="),
        ({"order_by": "time", "late": "drop"}, "give watermark="),
        ({"order_by": "time", "watermark": 1, "late": "later"}, "late='later'; expected one of"),
        ({"order_by": "time", "watermark": 1, "late": "side"}, "without late_to"),
        ({"order_by": "time", "watermark": 1, "late_to": print}, 'late="side"'),
        ({"order_by": "time", "watermark": 1, "late": "side", "late_to": 3}, "late_to=3; expected"),
        ({"order_by": "time", "watermark": 1, "sources": "a"}, "sources='a'; expected a list"),
        ({"sources": "web"}, r"sources='web'; expected a list .* write sources=\['web'\]"),
        ({"order_by": "time", "watermark": 1, "sources": 7}, "sources=7; expected a list"),
        ({"order_by": "time", "watermark": "soon"}, "watermark='soon'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: Any, message: str) -> None:
    with ss.Engine(fragile) as engine, pytest.raises(ss.ConfigurationError, match=message):
        Fed(engine, to=lambda table, batch_id: None, **options)


def test_finish_needs_events_that_wait() -> None:
    with ss.Engine(fragile) as engine:
        feed = Fed(engine, to=lambda table, batch_id: None)
        with pytest.raises(ss.ConfigurationError, match="without watermark="):
            feed.runner.finish()
        calls: list[int] = []
        feed = Fed(
            engine, order_by="time", watermark=1, to=lambda table, batch_id: calls.append(batch_id)
        )
        feed.runner.finish()  # nothing has come
        assert calls == []


TIMES = {
    "int64": (lambda at: at, "t=85", "90"),
    "float64": (float, "t=85.0", "90.0"),
    "timestamp": (
        lambda at: datetime.datetime(2026, 1, 5, 0, 0, at),
        "t=2026-01-05 00:00:45",
        "2026-01-05 00:00:50",
    ),
}


@pytest.mark.parametrize("of", ["int64", "float64", "timestamp"])
def test_an_error_of_late_rows_names_batch_and_frontier_and_is_replayed(
    of: str, tmp_path: Path
) -> None:
    convert, at, frontier = TIMES[of]
    less = 40 if of == "timestamp" else 0

    def table(times: list[int], names: list[str]) -> pa.Table:
        return pa.table(
            {"t": [convert(time - less) for time in times], "a": names, "x": [1] * len(times)}
        )

    with ss.Engine(fragile) as engine:
        feed = Fed(
            engine,
            order_by="t",
            source="a",
            watermark="9 seconds" if of == "timestamp" else 9,
            to=lambda rows, batch_id: None,
            checkpoint=tmp_path,
        )
        feed.send(0, table([99], ["a"]))
        with pytest.raises(ss.InputError) as raised:
            feed.send(1, table([88, 85, 95], ["a", "a", "b"]))
        assert str(raised.value) == (
            f"operator 'fragile', batch 1: 2 event(s) are late, the first of source 'a' at {at}, "
            f"below its frontier {frontier}: nothing of the batch is applied; start again with "
            'late="drop", or late="side" and late_to=; a longer watermark= helps later events only'
        )
        # What is submitted beside the feed is no batch.
        with pytest.raises(ss.InputError, match=r"below its frontier: nothing was submitted; send"):
            engine.submit(table([85], ["a"]), order_by="t", source_column="a")
        feed.close()
    assert replay(tmp_path, 1).difference is None
