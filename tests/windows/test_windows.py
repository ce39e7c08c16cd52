"""Windows are what their definitions say, by brute force; and all paths agree."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import itertools
import operator as operators
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.operators.library import agrees

import specstream as ss
from specstream import windows

EVENT = {"user": str, "room": int, "x": int}


class Known(ss.Record):
    count: int = 0
    sum: int = 0
    last: int = 0


def add(known, event):
    known.count += 1
    known.sum += event.x
    known.last = event.x


def merge(known, other):
    """Not commutative, and both have events: the last one is that of the later record."""
    known.count += other.count
    known.sum += other.sum
    known.last = other.last


def remove(known, other):
    """The last one is still there."""
    known.count -= other.count
    known.sum -= other.sum


def keep(event):
    return Known(1, event.x, event.x)


def of_rows(rows):
    return len(rows), sum(row.sum for row in rows), rows[-1].last


# How windows are kept.
WAYS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "each": (Known, add, {}),
    "merged": (Known, add, {"merge": merge}),
    "removed": (Known, add, {"merge": merge, "remove": remove}),
    "collected": (
        Known,
        keep,
        {
            "collect": True,
            "result": of_rows,
            "emits": {"count": int, "sum": int, "last": int},
        },
    ),
}
Events = list[tuple[int, str, int, int]]
Row = tuple[Any, ...]


def comes_to(of: Events) -> Row:
    return len(of), sum(x for *_, x in of), of[-1][3]


def keys_of(key: tuple[str, ...], one: tuple[int, str, int, int]) -> Row:
    return tuple({"user": one[1], "room": one[2]}[name] for name in key)


def by_key(key: tuple[str, ...], events: Events) -> dict[Row, Events]:
    found: dict[Row, Events] = {}
    for one in events:
        found.setdefault(keys_of(key, one), []).append(one)
    return found


def timed_windows(
    way: str, events: Events, key: tuple[str, ...], length: int, step: int, origin: int = 0
) -> list[Row]:
    """Every window that has an event, from its definition."""
    rows = []
    for of, own in by_key(key, events).items():
        first, last = own[0][0], own[-1][0]
        start = (first - length - origin) // step * step + origin
        while start <= last:
            inside = [one for one in own if start <= one[0] < start + length]
            if inside:
                rows.append((*of, start, start + length, "on time", *comes_to(inside)))
            start += step
    return sorted(rows)


def table_of(events: Events) -> pa.Table:
    times, users, rooms, xs = zip(*events, strict=True) if events else ((), (), (), ())
    return pa.table(
        {
            "t": pa.array(times, pa.int64()),
            "user": pa.array(users, pa.string()),
            "room": pa.array(rooms, pa.int64()),
            "x": pa.array(xs, pa.int64()),
        }
    )


def random_events(seed: int, count: int = 150, gap: int = 40) -> Events:
    """With equal times, gaps, and times below zero."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([0, 0, 1, 2, 3, gap], count, p=[0.2, 0.2, 0.2, 0.2, 0.15, 0.05])
    times = -20 + np.cumsum(steps)
    users, rooms = rng.choice(["a", "b", "c"], count), rng.integers(0, 2, count)
    xs = rng.integers(-50, 50, count)
    return [
        (int(t), str(u), int(r), int(x)) for t, u, r, x in zip(times, users, rooms, xs, strict=True)
    ]


def rows_of(found: ss.SequentialRun) -> list[Row]:
    return [tuple(row.values()) for row in found.output.to_pylist()]


def timed(way: str, key: Any, length: int, step: int | None, **more: Any) -> ss.Operator:
    record, function, options = WAYS[way]
    return windows.by_time(record, function, length, step, event=EVENT, key=key, **options, **more)


@pytest.mark.parametrize(
    ("way", "key", "length", "step"),
    [
        ("each", ("user",), 10, 4),
        ("merged", ("user", "room"), 12, 3),
        ("removed", ("user",), 10, 4),
        ("collected", (), 7, 7),
    ],
)
def test_windows_by_time_on_all_paths(
    way: str, key: tuple[str, ...], length: int, step: int
) -> None:
    events = random_events(1)
    found = agrees(timed(way, key, length, step), table_of(events), order_by="t")
    rows = rows_of(found)
    assert sorted(rows) == timed_windows(way, events, key, length, step)
    ends = [row[len(key) + 1] for row in rows]
    assert ends == sorted(ends)


event_lists = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 1, 2, 5, 60]),
        st.sampled_from("ab"),
        st.integers(0, 1),
        st.integers(-9, 9),
    ),
    max_size=40,
)


def at_times(given: Events, first: int) -> Events:
    times = itertools.accumulate((gap for gap, *_ in given), initial=first)
    return [(time, *rest) for time, (_, *rest) in zip(times, given, strict=False)]  # type: ignore[misc]


@settings(max_examples=share_of(60))
@given(
    event_lists,
    st.integers(-30, 30),
    st.sampled_from(list(WAYS)),
    st.sampled_from([(), ("user",), ("room", "user")]),
    st.integers(1, 12),
    st.integers(1, 20),
    st.integers(-5, 5),
)
@example([], 0, "merged", (), 3, 1, 0)
def test_windows_by_time_are_their_definition(
    given: Events, first: int, way: str, key: tuple[str, ...], length: int, step: int, origin: int
) -> None:
    events = at_times(given, first)
    operator = timed(way, key, length, step, origin=origin)
    run = operator.run_sequential(table_of(events), order_by="t", end=True)
    expected = timed_windows(way, events, key, length, step, origin)
    assert sorted(rows_of(run)) == expected
    assert_only_the_last_end_is_left(run, expected, len(key))


def assert_only_the_last_end_is_left(run: ss.SequentialRun, rows: list[Row], keys: int) -> None:
    left = run.state.to_dict()
    assert left.pop("ended") == max((row[keys + 1] for row in rows), default=-(2**63))
    for name, of in left.items():
        assert len(of) == 0, name


def counted_windows(
    way: str, events: Events, key: tuple[str, ...], length: int, step: int
) -> list[Row]:
    rows = []
    for of, own in by_key(key, events).items():
        for start in range(0, len(own) - length + 1, step):
            inside = own[start : start + length]
            rows.append((*of, start, start + length, "on time", *comes_to(inside)))
    return sorted(rows)


def counted(way: str, key: Any, length: int, step: int) -> ss.Operator:
    record, function, options = WAYS[way]
    return windows.by_count(record, function, length, step, event=EVENT, key=key, **options)


@settings(max_examples=share_of(30))
@given(
    event_lists,
    st.sampled_from(list(WAYS)),
    st.sampled_from([(), ("user",)]),
    st.integers(1, 8),
    st.integers(1, 12),
)
def test_windows_by_count_are_their_definition(
    given: Events, way: str, key: tuple[str, ...], length: int, step: int
) -> None:
    events = at_times(given, 0)
    run = counted(way, key, length, step).run_sequential(table_of(events))
    assert sorted(rows_of(run)) == counted_windows(way, events, key, length, step)


@pytest.mark.parametrize(("way", "length", "step"), [("merged", 6, 2), ("collected", 5, 3)])
def test_windows_by_count_on_all_paths(way: str, length: int, step: int) -> None:
    events = random_events(2)
    found = agrees(counted(way, ("user",), length, step), table_of(events))
    assert sorted(rows_of(found)) == counted_windows(way, events, ("user",), length, step)


class Candle(ss.Record):
    """None of its fields has a default that a price would not change."""

    trades: int = 0
    open: int = 777
    high: int = -777
    low: int = 777
    close: int = 777


def trade(candle, event):
    if candle.trades == 0:
        candle.open = event.x
    candle.trades += 1
    candle.high = max(candle.high, event.x)
    candle.low = min(candle.low, event.x)
    candle.close = event.x


def join(candle, later):
    """As if each of the two had a trade, which is what merge is promised."""
    if candle.trades * later.trades == 0:
        raise ValueError("a record without events")
    candle.trades += later.trades
    candle.high = max(candle.high, later.high)
    candle.low = min(candle.low, later.low)
    candle.close = later.close


def leave(candle, earlier):
    """Of a window that goes on: its last trade is still there."""
    if candle.trades <= earlier.trades:
        raise ValueError("nothing is left")
    candle.trades -= earlier.trades


def closes(candle):
    return candle.trades, candle.close


CANDLES: dict[str, dict[str, Any]] = {
    "merged": {"merge": join},
    "removed": {
        "merge": join,
        "remove": leave,
        "result": closes,
        "emits": {"trades": int, "close": int},
    },
}


def candle_of(way: str, xs: list[int]) -> Row:
    if way == "removed":
        return len(xs), xs[-1]
    return len(xs), xs[0], max(xs), min(xs), xs[-1]


def candles(way: str, events: Events, length: int, step: int, *, by_count: bool) -> list[Row]:
    """From the definition, of the key ``user``."""
    rows = []
    for (user,), own in by_key(("user",), events).items():
        places = range(len(own)) if by_count else [time for time, *_ in own]
        first = 0 if by_count else (min(places) - length) // step * step
        last = len(own) - length if by_count else max(places)
        for start in range(first, last + 1, step):
            inside = [
                one[3]
                for place, one in zip(places, own, strict=True)
                if start <= place < start + length
            ]
            if inside:
                rows.append((user, start, start + length, "on time", *candle_of(way, inside)))
    return sorted(rows)


@settings(max_examples=share_of(40))
@given(
    event_lists,
    st.sampled_from(list(CANDLES)),
    st.integers(1, 12),
    st.integers(1, 15),
    st.booleans(),
)
@example([(1, "a", 0, 5), (1, "a", 0, 6), (5, "a", 0, 7)], "merged", 10, 5, False)
@example([(0, "a", 0, 5), (2, "a", 0, 6), (60, "a", 0, 7)], "removed", 12, 3, False)
def test_only_records_with_events_are_merged(
    given: Events, way: str, length: int, step: int, by_count: bool
) -> None:
    events = at_times(given, 0)
    make = windows.by_count if by_count else windows.by_time
    operator = make(Candle, trade, length, step, event=EVENT, key="user", **CANDLES[way])
    order: dict[str, Any] = {} if by_count else {"order_by": "t", "end": True}
    run = operator.run_sequential(table_of(events), **order)
    assert sorted(rows_of(run)) == candles(way, events, length, step, by_count=by_count)


@pytest.mark.parametrize("way", CANDLES)
def test_candles_on_all_paths(way: str) -> None:
    events = random_events(6, gap=25)
    operator = windows.by_time(Candle, trade, 20, 4, event=EVENT, key="user", **CANDLES[way])
    found = agrees(operator, table_of(events), order_by="t")
    assert sorted(rows_of(found)) == candles(way, events, 20, 4, by_count=False)


def sessions(events: Events, key: tuple[str, ...], gap: int) -> list[Row]:
    rows = []
    for of, own in by_key(key, events).items():
        begins = [at for at in range(len(own)) if at == 0 or own[at][0] - own[at - 1][0] >= gap]
        for begin, end in zip(begins, [*begins[1:], len(own)], strict=True):
            inside = own[begin:end]
            last = inside[-1][0] + gap
            rows.append((*of, inside[0][0], last, "on time", *comes_to(inside)))
    return sorted(rows)


@settings(max_examples=share_of(30))
@given(event_lists, st.sampled_from([(), ("user",)]), st.integers(1, 8))
def test_sessions_are_their_definition(given: Events, key: tuple[str, ...], gap: int) -> None:
    events = at_times(given, 0)
    operator = windows.by_session(Known, add, gap, event=EVENT, key=key)
    run = operator.run_sequential(table_of(events), order_by="t", end=True)
    expected = sessions(events, key, gap)
    assert sorted(rows_of(run)) == expected
    assert_only_the_last_end_is_left(run, expected, len(key))


def test_sessions_on_all_paths() -> None:
    events = random_events(3)
    operator = windows.by_session(Known, add, 4, event=EVENT, key="user", early=3)
    found = rows_of(agrees(operator, table_of(events), order_by="t"))
    assert sorted(row for row in found if row[3] == "on time") == sessions(events, ("user",), 4)
    early = [row for row in found if row[3] == "early"]
    assert early
    assert all(row[4] % 3 == 0 for row in early)
    assert len(early) == sum(row[4] // 3 for row in found if row[3] == "on time")


def begins(event):
    return event.x > 30


def ends(event):
    return event.x < -30


def landmarks(events: Events, key: tuple[str, ...]) -> list[Row]:
    rows = []
    for of, own in by_key(key, events).items():
        inside: Events = []
        for one in own:
            if inside or one[3] > 30:
                inside.append(one)
            if inside and one[3] < -30:
                row = comes_to(inside)
                rows.append((*of, inside[0][0], one[0], "on time", *row))
                inside = []
    return sorted(rows)


def test_windows_by_landmark_on_all_paths() -> None:
    events = random_events(4, 300)
    operator = windows.by_landmark(Known, add, begins, ends, event=EVENT, key="user")
    found = rows_of(agrees(operator, table_of(events), order_by="t"))
    assert sorted(found) == landmarks(events, ("user",))
    assert len(found) > 10


def test_one_event_may_begin_and_end_a_window() -> None:
    operator = windows.by_landmark(Known, add, always, always, event={"x": int}, key=())
    found = rows_of(operator.run_sequential({"x": [4, 5]}))
    assert found == [(0, 0, "on time", 1, 4, 4), (1, 1, "on time", 1, 5, 5)]


def always(event):
    return True


def test_early_rows_of_windows_by_time() -> None:
    events: Events = [
        (0, "a", 0, 1),
        (1, "a", 0, 2),
        (2, "a", 0, 3),
        (3, "b", 0, 4),
        (6, "a", 0, 5),
    ]
    operator = timed("each", "user", 5, 5, early=2)
    found = rows_of(agrees(operator, table_of(events), order_by="t"))
    assert found == [
        ("a", 0, 5, "early", 2, 3, 2),
        ("a", 0, 5, "on time", 3, 6, 3),
        ("b", 0, 5, "on time", 1, 4, 4),
        ("a", 5, 10, "on time", 1, 5, 5),
    ]


def test_windows_end_while_nothing_comes() -> None:
    """By the frontier; and what comes late is set aside."""
    operator = timed("each", "user", 10, 10)
    with ss.Engine(operator, sources=["web"], late="side") as engine:
        engine.submit(table_of([(3, "a", 0, 1)]), order_by="t", source="web")
        engine.advance("web", 9)
        assert engine.poll(timeout=None).num_rows == 0
        engine.advance("web", 10)
        assert [tuple(row.values()) for row in engine.poll(timeout=None).to_pylist()] == [
            ("a", 0, 10, "on time", 1, 1, 1)
        ]
        engine.submit(table_of([(4, "a", 0, 2)]), order_by="t", source="web")
        late = engine.late()
        assert late is not None
        assert late["t"].to_pylist() == [4]


def touchy(known):
    return (10 // (known.sum - 3),)


def test_a_session_whose_result_raises_is_over() -> None:
    operator = windows.by_session(Known, add, 10, event={"x": int}, result=touchy, emits={"q": int})
    table = {"t": [0, 50, 51], "x": [3, 1, 1]}
    run = operator.run_sequential(table, order_by="t", end=True, on_error="skip")
    assert rows_of(run) == [(50, 61, "on time", -10)]
    assert [type(error) for _, error in run.raised] == [ZeroDivisionError]


def test_times_too_far_from_0_raise() -> None:
    by_column = late_ones(5, 5, 0, 0, 0)
    for operator, more in (
        (timed("each", (), 5, 5), {"room": [0]}),
        (windows.by_session(Known, add, 5, event=EVENT), {"room": [0]}),
        (by_column, {}),
    ):
        for time in (2**62 + 1, -(2**62) - 1):
            table = {"t": [time], "user": ["a"], "x": [1], **more}
            order_by = None if operator is by_column else "t"
            with pytest.raises(OverflowError, match="within 2\\*\\*62 of 0"):
                operator.run_sequential(table, order_by=order_by)
    last: Events = [(2**62, "a", 0, 1)]
    for way in WAYS:
        operator = timed(way, (), 2**61, 2**61)
        run = operator.run_sequential(table_of(last), order_by="t", end=True)
        assert sorted(rows_of(run)) == timed_windows(way, last, (), 2**61, 2**61)


def test_a_full_container_is_found_by_an_event_and_not_by_a_window_that_ends() -> None:
    record, function, options = WAYS["merged"]
    operator = windows.by_time(record, function, 10, 5, event=EVENT, key="user", limit=3, **options)
    events: Events = [(1 + at, user, 0, 1) for at, user in enumerate("abcd")]
    run = operator.run_sequential(table_of(events), order_by="t", end=True, on_error="skip")
    assert [row for row, _ in run.raised] == [3]
    assert sorted(rows_of(run)) == timed_windows("merged", events[:3], ("user",), 10, 5)


def test_durations_are_in_the_unit_of_the_order_column() -> None:
    minutes = pa.array([0, 40, 70, 200], pa.timestamp("s"))
    table = pa.table({"t": minutes, "x": [1, 2, 3, 4]})
    operator = windows.by_time(Known, add, "1 minute", event={"x": int}, unit="s", name="by_minute")
    run = operator.run_sequential(table, order_by="t", end=True)
    assert [row[:2] for row in rows_of(run)] == [(0, 60), (60, 120), (180, 240)]
    assert operator.name == "by_minute"


def test_a_snapshot_in_the_middle_goes_on() -> None:
    events = random_events(5)
    table = table_of(events)
    operator = timed("merged", ("user",), 10, 2)
    parts, snapshot = [], None
    for at in range(0, len(events), 30):
        with ss.Engine(operator, threads=2, restore=snapshot) as engine:
            last = at + 30 >= len(events)
            parts.append(engine.process(table.slice(at, 30), order_by="t", end=last))
            snapshot = engine.snapshot()
    whole = operator.run_sequential(table, order_by="t", end=True).output
    assert pa.concat_tables(parts).equals(whole)


def test_windows_far_apart_cost_nothing_between() -> None:
    """By count: the next window begins where nobody has looked yet."""
    for way in ("merged", "removed", "collected", "each"):
        operator = counted(way, (), 1, 10**12)
        run = operator.run_sequential(table_of(random_events(7, 20)))
        assert len(rows_of(run)) == 1
    operator = timed("merged", (), 2, 10**12)
    far: Events = [
        (0, "a", 0, 1),
        (10**12, "a", 0, 2),
        (10**15, "a", 0, 3),
        (10**15 + 1, "a", 0, 4),
    ]
    run = operator.run_sequential(table_of(far), order_by="t", end=True)
    assert [row[3:] for row in rows_of(run)] == [(1, 1, 1), (1, 2, 2), (2, 7, 4)]


# ---- times that do not come in order ----


def told_of(
    events: list[tuple[int, str, int]],
    length: int,
    step: int,
    delay: int,
    lateness: int,
    early: int,
) -> tuple[list[Row], int]:
    """Rows, and how many events are left out: by looking at all that was before, at each event."""
    rows: list[Row] = []
    accepted: list[tuple[int, str, int]] = []  # window, user, x; in the order of arrival
    left_out = 0
    for at, (time, user, x) in enumerate(events):
        before = max((one[0] for one in events[:at]), default=None)
        watermark = None if before is None else before - delay
        starts = [s for s in range(-200, 400) if s % step == 0 and s <= time < s + length]
        kept = [s for s in starts if watermark is None or s + length + lateness > watermark]
        left_out += bool(starts) and not kept
        for start in reversed(kept):
            accepted.append((start, user, x))
            inside = [one[2] for one in accepted if one[:2] == (start, user)]
            row = (len(inside), sum(inside), inside[-1])
            if watermark is not None and start + length <= watermark:
                rows.append((user, start, start + length, "late", *row))
            elif early and len(inside) % early == 0 and start + length > time - delay:
                rows.append((user, start, start + length, "early", *row))
        if before is None or time > before:
            ended = {
                one[:2]: None
                for one in accepted
                if one[0] + length <= time - delay
                and (watermark is None or one[0] + length > watermark)
            }
            for start, of in sorted(ended, key=lambda one: one[0]):
                inside = [one[2] for one in accepted if one[:2] == (start, of)]
                row = (len(inside), sum(inside), inside[-1])
                rows.append((of, start, start + length, "on time", *row))
    return rows, left_out


def late_ones(length: int, step: int, delay: int, lateness: int, early: int) -> ss.Operator:
    return windows.by_column(
        Known, add, "t", length, step, event={"t": int, "user": str, "x": int}, key="user",
        delay=delay, lateness=lateness, early=early,
    )  # fmt: skip


def arrived(events: list[tuple[int, str, int]]) -> pa.Table:
    times, users, xs = zip(*events, strict=True) if events else ((), (), ())
    return pa.table(
        {
            "t": pa.array(times, pa.int64()),
            "user": pa.array(users, pa.string()),
            "x": pa.array(xs, pa.int64()),
        }
    )


@settings(max_examples=share_of(60))
@given(
    st.lists(
        st.tuples(st.integers(-20, 60), st.sampled_from("ab"), st.integers(-9, 9)), max_size=25
    ),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 10),
    st.integers(0, 20),
    st.integers(0, 3),
)
def test_rows_early_on_time_and_late_are_their_definition(
    events: list[tuple[int, str, int]],
    length: int,
    step: int,
    delay: int,
    lateness: int,
    early: int,
) -> None:
    operator = late_ones(length, step, delay, lateness, early)
    run = operator.run_sequential(arrived(events))
    rows, left_out = told_of(events, length, step, delay, lateness, early)
    assert rows_of(run) == rows
    assert run.state.dropped == left_out


def test_rows_early_on_time_and_late_on_all_paths() -> None:
    rng = np.random.default_rng(6)
    times = np.clip(np.arange(200) // 2 + rng.integers(-20, 3, 200), 0, None)
    events = [(int(t), str(u), int(x)) for t, u, x in zip(
        times, rng.choice(["a", "b"], 200), rng.integers(-50, 50, 200), strict=True
    )]  # fmt: skip
    found = agrees(late_ones(12, 5, 3, 10, 4), arrived(events))
    rows, left_out = told_of(events, 12, 5, 3, 10, 4)
    assert rows_of(found) == rows
    assert found.state.dropped == left_out > 0
    assert {row[3] for row in rows} == {"early", "on time", "late"}


def test_what_is_forgotten_leaves_nothing() -> None:
    events = [(3, "a", 1), (9, "b", 2), (4, "a", 3), (1000, "c", 4)]
    run = late_ones(5, 5, 2, 6, 0).run_sequential(arrived(events))
    state = run.state.to_dict()
    assert {name: len(of) for name, of in state.items() if name not in ("latest", "dropped")} == {
        "windows": 1, "counts": 1, "places": 1, "ends": 1, "open": 1, "kept": 1,
    }  # fmt: skip


# ---- what is refused ----


COLLECTED: dict[str, Any] = {"result": of_rows, "emits": {"count": int, "sum": int, "last": int}}


class Bare(ss.Record):
    user: int = 0


class NoDefault(ss.Record):
    count: int


def test_what_a_window_is_given_back_is_refused() -> None:
    """A function that made a new record left all windows empty."""

    def renewed(known, event):
        return Known(1, event.x, event.x)

    def inner(known, event):
        def smallest(a, b):
            return min(a, b)

        known.last = smallest(known.last, event.x)
        return

    given: dict[str, Any] = {"record": Known, "length": 5, "event": EVENT}
    said = r"by_time: add=renewed returns Known\(1, event.x, event.x\), which nobody takes"
    with pytest.raises(ss.ConfigurationError, match=said):
        windows.by_time(add=renewed, **given)
    with pytest.raises(ss.ConfigurationError, match="merge=renewed returns"):
        windows.by_time(add=add, merge=renewed, **given)
    windows.by_time(add=inner, **given)


@pytest.mark.parametrize("kind", ["by_time", "by_session"])
def test_durations_over_integers_ask_for_a_unit(kind: str) -> None:
    """Milliseconds since 1970 were taken for microseconds: an hour was 41 days."""

    def made(**unit: Any) -> ss.Operator:
        found: ss.Operator = getattr(windows, kind)(Known, add, "1 hour", event=EVENT, **unit)
        return found

    table = table_of(random_events(0, 5))
    said = r"='1 hour' is a duration, .* has type int64, and unit= is not given"
    with ss.Engine(made()) as engine, pytest.warns(UserWarning, match=said):
        engine.process(table, order_by="t", end=True)
    with ss.Engine(made(unit="ms")) as engine, warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.process(table, order_by="t", end=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record": int}, "by_time: record=.*class of records"),
        ({"length": 0}, "by_time: length=0; expected"),
        ({"length": "5 parsecs"}, "by_time: length='5 parsecs' is no duration"),
        ({"length": "1 ms", "unit": "s"}, "length='1 ms' is no whole number of s"),
        ({"unit": "h"}, "by_time: unit='h'"),
        ({"step": -1}, "by_time: step=-1"),
        ({"key": "who"}, "by_time: key='who'; expected the name of a column.*, of user, room, x"),
        ({"record": Bare, "key": "user"}, "rows have two columns 'user'"),
        ({"result": of_rows}, "result= and emits= go together"),
        ({"remove": remove}, "remove= takes back what merge= adds"),
        ({"collect": True, "merge": merge, **COLLECTED}, "collect=True keeps all rows"),
        ({"early": 2, "merge": merge}, "early=2 goes with windows that are kept each by itself"),
        ({"merge": 3}, "by_time: merge=3; expected a function"),
        ({"add": 3}, "by_time: add=3; expected a function"),
        ({"limit": 0}, "by_time: limit=0"),
        (
            {"event": {"user": ss.nullable(str)}, "key": "user"},
            "columns without nulls: 'user' is nullable$",
        ),
        ({"event": {"end": int}, "key": "end"}, "rows have two columns 'end'"),
        ({"key": ["user", "user"]}, "by_time: key=.*several different ones"),
        ({"key": None}, "by_time: key=None; expected the name of a column"),
        ({"record": NoDefault}, "record=NoDefault, whose field 'count' has no default"),
        (
            {"collect": True},
            "collect=True gives the rows of a window to result=, and there is none",
        ),
        ({"collect": "yes"}, "by_time: collect='yes'"),
        ({"add": keep}, r"add cannot be called as add\(window, event\)"),
        ({"length": 2**62}, "by_time: length="),
        (
            {"length": "1 hour", "step": 5},
            "length='1 hour' is a duration, and step=5 a number,.*write step= as a duration too",
        ),
        ({"length": 3600, "step": datetime.timedelta(seconds=1)}, "write length= as a duration"),
        (
            {"length": "1 hour", "step": "1 ms"},
            "length='1 hour' and step='1 ms' put each event into 3,600,000 windows; expected at "
            "most 100,000: give a longer step= or a shorter length=",
        ),
        ({"length": 100_001, "step": 1}, "put each event into 100,001 windows"),
        (
            {"length": 3_600_000, "step": 3_599_999, "merge": merge},
            "cut each window into 3,600,000 panes.*longer than 1; expected at most 100,000",
        ),
        (
            {"event": {"user": float}, "key": "user"},
            "columns of ints or strings: 'user' is one of floats",
        ),
    ],
)
def test_what_makes_no_window_is_refused(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"record": Known, "add": add, "length": 5, "event": EVENT}
    with pytest.raises(ss.ConfigurationError, match=message):
        windows.by_time(**{**given, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "when"}, "by_column: time='when'; expected a column"),
        ({"time": "user"}, "by_column: time='user'; expected a column"),
        ({"lateness": -1}, "by_column: lateness=-1"),
        ({"delay": "soon"}, "by_column: delay='soon' is no duration"),
    ],
)
def test_what_tells_no_times_is_refused(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"time": "x", "length": 5, "event": EVENT} | options
    with pytest.raises(ss.ConfigurationError, match=message):
        windows.by_column(Known, add, **given)


# ---- what is said ----


def one_value(known):
    return known.count


def two_values(known):
    return known.count, known.sum


def either(known):
    if known.count > 1:
        return (known.count,)
    return known.count + known.sum


def nothing(known):
    known.count = 0


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (one_value, "by_time: result=one_value returns one value, known.count; expected .*(n,)"),
        (two_values, "by_time: result=two_values returns 2 values, .* has the columns n; expected"),
        (either, "by_time: result=either returns one value, known.count \\+ known.sum; expected"),
        (nothing, "by_time: result=nothing returns nothing; expected a tuple"),
        (
            operators.attrgetter("count"),
            r"by_time: result=operator.attrgetter.* is from the",
        ),
    ],
)
def test_a_result_that_is_no_row_is_told_by_the_window(result: Any, message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        windows.by_time(Known, add, 5, event=EVENT, result=result, emits={"n": int})


def test_a_lambda_is_taken_where_it_stands() -> None:
    made = windows.by_count(
        Known, add, 1, event={"x": int}, result=lambda known: (known.sum,), emits={"n": int}
    )
    assert rows_of(made.run_sequential({"x": [5]})) == [(0, 1, "on time", 5)]
    with pytest.raises(ss.ConfigurationError, match="result=<lambda> returns one value"):
        windows.by_count(
            Known, add, 1, event={"x": int}, result=lambda known: known.sum + 1, emits={"n": int}
        )


def test_a_window_without_a_name_is_refused() -> None:
    makers: list[Any] = [
        lambda **name: windows.by_time(Known, add, 5, event=EVENT, **name),
        lambda **name: windows.by_count(Known, add, 5, event=EVENT, **name),
        lambda **name: windows.by_session(Known, add, 5, event=EVENT, **name),
        lambda **name: windows.by_landmark(Known, add, begins, ends, event=EVENT, **name),
        lambda **name: windows.by_column(Known, add, "x", 5, event=EVENT, **name),
    ]
    for make in makers:
        for name in ("", 5):
            with pytest.raises(ss.ConfigurationError, match=r"^by_\w+: name="):
                make(name=name)


@pytest.mark.parametrize("way", WAYS)
def test_a_limit_that_is_reached_is_told_by_the_window(way: str) -> None:
    operator = timed(way, "user", 10, 10, limit=1, name="hourly")
    message = "by_time, 'hourly': limit=1 windows, panes or rows are kept already"
    events: Events = [(1, "a", 0, 1), (1, "b", 0, 1)]
    with pytest.raises(OverflowError, match=message):
        operator.run_sequential(table_of(events), order_by="t")
    with ss.Engine(operator) as engine, pytest.raises(OverflowError, match=message):
        engine.process(table_of(events), order_by="t")


def test_a_key_of_a_schema_that_may_be_null_is_told_how_it_is_not() -> None:
    schema = pa.schema([("user", pa.string()), ("x", pa.int64())])
    with pytest.raises(ss.ConfigurationError, match=r"'user', \.\.\., nullable=False"):
        windows.by_time(Known, add, 5, event=schema, key="user")
    schema = pa.schema([pa.field("user", pa.string(), nullable=False), ("x", pa.int64())])
    assert "user" in windows.by_time(Known, add, 5, event=schema, key="user").emits.names


# ---- columns of times ----


def test_starts_and_ends_are_of_the_type_of_the_order_column() -> None:
    zoned = pa.timestamp("s", "UTC")
    table = pa.table({"t": pa.array([0, 40, 70], zoned), "x": [1, 2, 3]})
    unit = ss.timestamp("s", "UTC")
    for operator, ends in (
        (windows.by_time(Known, add, "1 minute", event={"x": int}, unit=unit), [60, 120]),
        (windows.by_session(Known, add, "35 s", event={"x": int}, unit=unit), [75, 105]),
    ):
        run = operator.run_sequential(table, order_by="t", end=True).output
        assert run["end"].type == run["start"].type == zoned
        if operator.name == "by_time":
            assert run["end"].cast(pa.int64()).to_pylist() == ends
        with ss.Engine(operator) as engine:
            assert engine.process(table, order_by="t", end=True).equals(run)


def test_windows_of_dates_are_of_days() -> None:
    days = pa.array([datetime.date(2024, 2, day) for day in (1, 8, 27)])
    operator = windows.by_time(Known, add, "7 days", event={"x": int}, unit=datetime.date)
    table = pa.table({"t": days, "x": [1, 2, 3]})
    with ss.Engine(operator) as engine:
        output = engine.process(table, order_by="t", end=True)
    assert output["start"].type == pa.date32()
    assert output["start"].to_pylist() == [datetime.date(2024, 2, day) for day in (1, 8, 22)]
    with pytest.raises(ss.ConfigurationError, match="length='1 hour' is no whole number of days"):
        windows.by_time(Known, add, "1 hour", event={"x": int}, unit=datetime.date)


@pytest.mark.parametrize("wrong", [int, "h", ss.nullable(ss.timestamp("s"))])
def test_what_is_no_unit_is_refused(wrong: Any) -> None:
    with pytest.raises(ss.ConfigurationError, match=r"^by_session: unit=.*; expected one of s, ms"):
        windows.by_session(Known, add, 5, event=EVENT, unit=wrong)


@pytest.mark.parametrize(
    ("of", "length", "step"),
    [
        (ss.timestamp("ms"), "1 minute", datetime.timedelta(minutes=1)),
        (pa.timestamp("ns", "UTC"), "1 minute", datetime.timedelta(minutes=1)),
        (datetime.date, "2 days", datetime.timedelta(days=2)),
    ],
)
def test_by_column_has_the_unit_and_the_type_of_its_column(
    of: Any, length: str, step: datetime.timedelta
) -> None:
    if isinstance(of, pa.DataType):
        of = pa.field("at", of, nullable=False)
    event = {"at": of, "x": int}
    operator = windows.by_column(Known, add, "at", length, event=event, delay=length)
    arrow = operator.event.columns[0].arrow
    begin = datetime.datetime(2024, 1, 1)
    times = pa.array([begin, begin + 5 * step], pa.timestamp("s")).cast(pa.timestamp("ns"))
    times = times.cast(arrow if arrow == pa.date32() else pa.timestamp("ns"))
    output = operator.run_sequential({"at": times.cast(arrow), "x": [1, 2]}).output
    assert output["start"].type == output["end"].type == arrow
    (start,), (end,) = output["start"].to_pylist(), output["end"].to_pylist()
    assert end - start == step
    with pytest.raises(ss.ConfigurationError, match="by_column: unit='s'; expected '"):
        windows.by_column(Known, add, "at", 5, event=event, unit="s")


# ---- the order of the rows ----


def test_rows_of_windows_that_end_at_once_are_in_their_order() -> None:
    """By the end; of one end, by the first event of each; of sessions, by the last one."""
    events: Events = [
        (0, "b", 0, 1),
        (1, "a", 0, 1),
        (6, "a", 0, 1),
        (6, "b", 0, 1),
        (99, "c", 0, 1),
    ]
    for way in WAYS:
        run = timed(way, "user", 10, 5).run_sequential(table_of(events), order_by="t")
        assert [row[:3] for row in rows_of(run)] == [
            *(("b", -5, 5), ("a", -5, 5), ("b", 0, 10), ("a", 0, 10), ("a", 5, 15), ("b", 5, 15)),
        ]
    sessions_of = windows.by_session(Known, add, 10, event=EVENT, key="user")
    events = [(0, "b", 0, 1), (3, "a", 0, 1), (3, "b", 0, 1), (99, "c", 0, 1)]
    run = sessions_of.run_sequential(table_of(events), order_by="t")
    assert [row[:3] for row in rows_of(run)] == [("a", 3, 13), ("b", 0, 13)]


def test_lengths_of_time_by_a_column_are_all_of_one_kind() -> None:
    options: Any = {"event": {"at": int}, "time": "at"}
    with pytest.raises(
        ss.ConfigurationError, match="length='1 hour' is a duration, and lateness=5"
    ):
        ss.windows.by_column(Known, add, length="1 hour", lateness=5, **options)
    with pytest.raises(ss.ConfigurationError, match="put each event into 1,000,000 windows"):
        ss.windows.by_column(Known, add, length=1_000_000, step=1, **options)
    # No time is none in any unit.
    ss.windows.by_column(Known, add, length="1 hour", lateness=0, delay="1 second", **options)


def test_windows_by_number_that_one_event_has_too_many_of_are_refused() -> None:
    options: Any = {"event": {"at": int}}
    said = "by_count: length=100001 and step=1 put each event into 100,001 windows"
    with pytest.raises(ss.ConfigurationError, match=said):
        ss.windows.by_count(Known, add, 100_001, 1, **options)
    ss.windows.by_count(Known, add, 100_000, 1, **options)
    # Panes cost nothing where nothing is merged.
    ss.windows.by_count(Known, add, 10**9 + 1, 10**9, **options)
