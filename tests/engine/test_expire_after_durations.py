"""Entries that expire after a duration: in whatever unit the times are, and kept with the state."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import PATHS
from support.engine.timed import Expiring, cuts, stream
from support.engine.timed import Model as Timed

import specstream as ss
from specstream.declarations.durations import DAY, described_duration, duration_text, nanoseconds

ENGINES = {name: options for name, options in PATHS.items() if options is not None}
MINUTES = {
    "seconds": (pa.timestamp("s"), 60),
    "milliseconds": (pa.timestamp("ms", "Europe/Berlin"), 60 * 10**3),
    "microseconds": (pa.timestamp("us"), 60 * 10**6),
    "nanoseconds": (pa.timestamp("ns", "UTC"), 60 * 10**9),
}


class State(ss.State):
    last = ss.dict(str, int, expire_after="5 minutes")
    seen = ss.set(str, expire_after=datetime.timedelta(minutes=11))
    plain = ss.dict(str, int)


def act(state, event, emit):  # type: ignore[no-untyped-def]
    emit(event.user, event.user in state.last, event.user in state.seen, len(state.last))
    if event.act < 5:
        state.last[event.user] = event.act
    elif event.act < 8:
        state.seen.add(event.user)
    elif event.act == 8:
        state.plain[event.user] = len(state.seen)
    elif event.act == 9:
        state.last.pop(event.user, 0)


def made(state: type[ss.State]) -> ss.Operator:
    return ss.operator(
        state=state,
        event={"user": str, "act": int},
        emits={"user": str, "a": int, "b": int, "n": int},
        name="lasting",
    )(act)


operator = made(State)


def timed(table: pa.Table, of: pa.DataType, factor: int) -> pa.Table:
    """The stream, whose times count minutes or days, with times of a type."""
    times = table["t"].to_numpy() * factor
    plain = pa.array(times.astype(np.int32)) if of == pa.date32() else pa.array(times)
    return table.set_column(0, "t", plain.cast(of))


def expected(table: pa.Table, **lifetimes: int) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """By a model in plain Python, which counts minutes or days itself."""
    model = Timed(act, act, plain={}, **{name: Expiring(of) for name, of in lifetimes.items()})
    for sequence, row in enumerate(table.to_pylist()):
        model.event(row.pop("t"), row.pop("src"), sequence, **row)
    assert not model.raised
    state = model.state
    rows = [tuple(map(plain, row[3:])) for row in model.rows]
    return rows, (list(state.last.items()), list(state.seen), list(state.plain.items()))


def plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def held(state: Any) -> tuple[Any, ...]:
    return list(state.last.items()), list(state.seen), list(state.plain.items())


def rows_of(*tables: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


# ---- in each unit, on all settings ----


@pytest.mark.parametrize("unit", MINUTES)
def test_the_oracle_is_the_model(unit: str) -> None:
    for seed in range(2):
        table = stream(seed, 250)
        run = operator.run_sequential(timed(table, *MINUTES[unit]), order_by="t", source="src")
        assert (rows_of(run.output), held(run.state)) == expected(table, last=5, seen=11)


@pytest.mark.parametrize("name", ENGINES)
def test_cut_at_random_and_restored(name: str) -> None:
    for seed, unit in enumerate(MINUTES):
        table = stream(20 + seed, 150)
        given = timed(table, *MINUTES[unit])
        found: list[pa.Table] = []
        snapshot: bytes | None = None
        for first, last in cuts(np.random.default_rng(seed), len(table), 3):
            with ss.Engine(operator, restore=snapshot, **ENGINES[name]) as engine:
                piece = given.slice(first, last - first)
                found.append(engine.process(piece, order_by="t", source="src"))
                snapshot, now = engine.snapshot(), held(engine.state)
        assert (rows_of(*found), now) == expected(table, last=5, seen=11)


@pytest.mark.parametrize("unit", MINUTES)
def test_all_settings_out_of_order_as_well(unit: str) -> None:
    given = timed(stream(40, 200), *MINUTES[unit])
    ss.testing.check(operator, given, order_by="t", source="src", seed=3)


@pytest.mark.parametrize("of", [pa.date32(), pa.date64()], ids=str)
def test_days(of: pa.DataType) -> None:
    """What lies between two days is rounded up."""

    class Days(ss.State):
        last = ss.dict(str, int, expire_after="4 days 1 hour")
        seen = ss.set(str, expire_after="11 days")
        plain = ss.dict(str, int)

    table = stream(30, 150)
    given = timed(table, of, 1 if of == pa.date32() else DAY // 10**6)
    run = ss.testing.check(made(Days), given, order_by="t", source="src")
    # date64 counts milliseconds, so that nothing is rounded, and a fifth day is one too many.
    assert (rows_of(run.output), held(run.state)) == expected(table, last=5, seen=11)


def test_less_than_a_tick_is_one() -> None:
    class Short(ss.State):
        last = ss.dict(str, int, expire_after="1500 ms")
        seen = ss.set(str, expire_after="1 ns")
        plain = ss.dict(str, int)

    table = stream(31, 120)
    run = ss.testing.check(
        made(Short), timed(table, pa.timestamp("s"), 1), order_by="t", source="src"
    )
    assert (rows_of(run.output), held(run.state)) == expected(table, last=2, seen=1)


@pytest.mark.parametrize("name", ["two threads", "eager", "plain", "far ahead"])
def test_one_by_one_out_of_order(name: str) -> None:
    """A frontier that comes first begins the job in which the first event settles the unit."""
    start = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    minute = datetime.timedelta(minutes=1)
    table = stream(50, 150)
    rng = np.random.default_rng(5)
    order = np.argsort(np.arange(len(table)) + rng.integers(0, 12, len(table)), kind="stable")
    came = sorted(order.tolist(), key=lambda row: (int(table["src"][row]), row))  # source by source
    snapshot = None
    found: list[pa.Table] = []
    for half in (came[:70], came[70:]):
        with ss.Engine(operator, sources=["0", "1"], restore=snapshot, **ENGINES[name]) as engine:
            if snapshot is None:
                engine.advance("0", start - 30 * minute)
            for row in half:
                one = table.slice(row, 1).to_pylist()[0]
                at, source = start + one.pop("t") * minute, str(one.pop("src"))
                engine.submit_event(at, source, user=one["user"], act=one["act"])
            if snapshot is not None:
                engine.advance("0")
                engine.advance("1")
            found.append(engine.poll(timeout=None))
            snapshot, now = engine.snapshot(), held(engine.state)
    in_order = table.take(pa.array(np.lexsort((table["src"].to_numpy(), table["t"].to_numpy()))))
    assert (rows_of(*found), now) == expected(in_order, last=5, seen=11)


# ---- beside timers ----


class Both(ss.State):
    timers = ss.timers(str)
    last = ss.dict(str, int, expire_after="1 hour")
    count = ss.scalar(int)


SECOND = 10**6


def notes(state, event, emit):  # type: ignore[no-untyped-def]
    state.last[event.user] = event.act
    state.timers.set(event.user, event.timestamp + 3500 * SECOND + event.wait * 60 * SECOND)
    emit(event.user, len(state.last))


def looks(state, timer, emit):  # type: ignore[no-untyped-def]
    emit(timer.key, len(state.last))
    if timer.key in state.last:
        state.last[timer.key] = 9
        state.timers.set(timer.key, timer.at + 4000 * SECOND)


both = ss.operator(
    state=Both,
    event={"user": str, "act": int, "wait": int},
    emits={"user": str, "n": int},
    on_timer=looks,
)(notes)


def test_beside_timers() -> None:
    """The clock of the timers and the unit of the entries are kept side by side."""
    table = stream(70, 150)
    hours = table.set_column(0, "t", pa.array(table["t"].to_numpy() * 600 * SECOND))
    model = Timed(notes, looks, last=Expiring(3600 * SECOND), count=0)
    for sequence, row in enumerate(hours.to_pylist()):
        model.event(row.pop("t"), row.pop("src"), sequence, **row)
    model.end()
    given = timed(hours, pa.timestamp("us"), 1)
    run = ss.testing.check(both, given, order_by="t", source="src")
    assert rows_of(run.output) == [row[3:] for row in model.rows]
    assert run.state.last == dict(model.state.last)


# ---- what is refused changes nothing ----

EVENTS: dict[str, Any] = {
    "t": [datetime.datetime(2026, 3, 1, 12, minute) for minute in (0, 3, 9)],
    "user": ["ann", "bob", "ann"],
    "act": [0, 0, 6],
}
REFUSED: dict[str, Callable[[ss.Engine, Any], object]] = {
    "process": lambda engine, times: engine.process({**EVENTS, "t": times}, order_by="t"),
    "submit": lambda engine, times: engine.submit({**EVENTS, "t": times}, order_by="t"),
    "submit_event": lambda engine, times: engine.submit_event(times[0].as_py(), user="cy", act=1),
    "advance": lambda engine, times: engine.advance(0, times[0].as_py()),
}


@pytest.mark.parametrize("of", [pa.int64(), pa.int16(), pa.uint32(), pa.float64()], ids=str)
@pytest.mark.parametrize("call", REFUSED)
def test_times_without_a_unit_are_refused(call: str, of: pa.DataType) -> None:
    whose = {"submit_event": "the time of source 0", "advance": "the frontier of source 0"}
    says = (
        f"operator 'lasting': entries of field 'last' expire after 5 minutes, and "
        f"{whose.get(call, 'order column ' + repr('t'))} has type .*: declare expire_after= as an "
        "int in the unit of the order column"
    )
    with ss.Engine(operator) as engine:
        before = engine.snapshot()
        with pytest.raises(ss.InputError, match=says):
            REFUSED[call](engine, pa.array([1, 2, 3], of))
        assert engine.snapshot() == before
        # The engine goes on with times.
        output = engine.process(EVENTS, order_by="t")
    assert output.equals(operator.run_sequential(EVENTS, order_by="t").output)
    with pytest.raises(ss.InputError, match="in the unit of the order column"):
        operator.run_sequential({**EVENTS, "t": pa.array([1, 2, 3], of)}, order_by="t")


@pytest.mark.parametrize("call", ["process", "submit", "submit_event", "advance"])
@pytest.mark.parametrize("how", ["at once", "restored", "out of order"])
def test_another_unit_is_refused(how: str, call: str) -> None:
    engine = ss.Engine(operator)
    if how == "out of order":
        engine.submit(EVENTS, order_by="t", ordered=True)
        engine.poll(timeout=None)
    else:
        engine.process(EVENTS, order_by="t")
    if how != "at once":
        snapshot = engine.snapshot()
        engine.close()
        engine = ss.Engine(operator, restore=snapshot)
    times = pa.array(EVENTS["t"], pa.timestamp("ns"))
    days = pa.array([datetime.date(2026, 3, 1 + at) for at in range(3)])
    with engine:
        before = engine.snapshot()
        one_by_one = call in ("submit_event", "advance")
        says = "times that count in units of 1 us, and .* has type .*: cast it"
        if how == "out of order":
            says = "the events before had|as the events before have it|1 us"
        with pytest.raises(ss.InputError, match=says):
            REFUSED[call](engine, days if one_by_one else times)
        assert engine.snapshot() == before
        # The zone may change: the unit is the same.
        zoned = pa.array(EVENTS["t"], pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        engine.process({**EVENTS, "t": zoned}, order_by="t")


def test_no_rows_settle_nothing() -> None:
    nothing: dict[str, list[Any]] = {"t": [], "user": [], "act": []}
    with ss.Engine(operator) as engine:
        engine.process(nothing, order_by="t")
        engine.submit(nothing, order_by="t")
        for of in (pa.timestamp("ns"), pa.timestamp("us")):
            savepoint = engine.savepoint()
            engine.process({**EVENTS, "t": pa.array(EVENTS["t"], of)}, order_by="t")
            assert held(engine.state)[1] == ["ann"]
            engine.rollback(savepoint)  # to where the unit was open
        assert held(engine.state) == ([], [], [])


# ---- kept ----


class Longer(ss.State):
    last = ss.dict(str, int, expire_after="6 minutes")
    seen = ss.set(str, expire_after="11 minutes")
    plain = ss.dict(str, int)


class Numbers(ss.State):
    last = ss.dict(str, int, expire_after=300)
    seen = ss.set(str)
    plain = ss.dict(str, int)


@pytest.mark.parametrize(
    ("state", "found"), [(Longer, "expire_after 6 minutes"), (Numbers, "expire_after 300")]
)
def test_another_lifetime_is_refused_and_migrated(state: type[ss.State], found: str) -> None:
    with ss.Engine(operator) as engine:
        engine.process(EVENTS, order_by="t")
        snapshot = engine.snapshot()
    with pytest.raises(
        ss.SnapshotError,
        match=f"'last' has expire_after 5 minutes in the snapshot and {found} in the operator",
    ):
        ss.Engine(made(state), restore=snapshot)
    # What is migrated stays until it is written, and the unit is open again.
    with ss.Engine(made(state), restore=snapshot, migrate=lambda fields: fields) as engine:
        later = [one + datetime.timedelta(days=9) for one in EVENTS["t"]]
        nanos = pa.array(later, pa.timestamp("ns"))
        engine.process({**EVENTS, "t": nanos, "act": [11, 8, 8]}, order_by="t")
        assert engine.state.plain == {"bob": 1, "ann": 1}


def test_a_field_that_comes_later() -> None:
    """Events that wait may have times that it cannot expire by."""

    class Before(ss.State):
        plain = ss.dict(str, int)

    @ss.operator(state=Before, event={"user": str, "act": int}, name="lasting")
    def before(state, event, emit):  # type: ignore[no-untyped-def]
        state.plain[event.user] = 0

    for times in ([1, 2, 3], EVENTS["t"]):
        with ss.Engine(before) as engine:
            engine.submit({**EVENTS, "t": times}, order_by="t")
            snapshot = engine.snapshot()
        if times is EVENTS["t"]:
            with ss.Engine(operator, restore=snapshot) as engine:
                engine.advance(0)
                assert engine.poll(timeout=None).num_rows == 3
                assert held(engine.state)[1] == ["ann"]
                assert engine.state.last == {}
        else:
            with pytest.raises(ss.SnapshotError, match="not committed has type int64"):
                ss.Engine(operator, restore=snapshot)


def test_a_snapshot_with_a_unit_that_is_none() -> None:
    with ss.Engine(operator) as engine:
        engine.process(EVENTS, order_by="t")
        engine.parts.committed.words[operator.layout.lasting[1].kept[0]] = 77
        snapshot = engine.snapshot()
    with pytest.raises(ss.SnapshotError, match="field 'seen' has times that are 77 ns apart"):
        ss.Engine(operator, restore=snapshot)


# ---- as it is written ----


def test_durations() -> None:
    given = {
        "1 hour": 3600 * 10**9,
        "30 minutes": 1800 * 10**9,
        "90 s": 90 * 10**9,
        "2 days 3 hours": 51 * 3600 * 10**9,
        "1.5 ms": 1_500_000,
    }
    for text, length in given.items():
        assert nanoseconds("x", text) == length
        assert described_duration(duration_text(length)) == length
    assert duration_text(51 * 3600 * 10**9) == "51 hours"
    assert nanoseconds("x", datetime.timedelta(microseconds=1)) == 1000
    for other in (
        "60 minutes",
        "01 hour",
        "1 hours",
        "0 ns",
        "1 fortnight",
        "hour",
        "-1 hour",
        "²",
    ):
        assert described_duration(other) is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("1 fortnight", "'1 fortnight' is no duration"),
        ("60", "'60' is no duration .it has no unit.*expected one such as"),
        ("0 s", "'0 s'; expected a duration above zero"),
        (datetime.timedelta(minutes=-1), "expected a duration above zero"),
        (datetime.timedelta.max, "longer than 292 years"),
        (1.5, '1.5; expected an integer .* or a duration such as "1 hour"'),
        (np.timedelta64(5, "s"), "expected an integer"),
    ],
)
def test_what_is_no_duration(given: Any, says: str) -> None:
    class Bad(ss.State):
        one = ss.dict(int, int, expire_after=given)

    with pytest.raises(
        ss.DeclarationError, match=f"state 'Bad', field 'one': expire_after=.*{says}"
    ):
        Bad.layout()


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads texts; a timedelta, and snapshots of declared operators, need none."""
    with ss.Engine(operator) as engine:
        engine.process(EVENTS, order_by="t")
        snapshot = engine.snapshot()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with ss.Engine(operator, restore=snapshot) as engine:
        assert engine.state.seen == {"ann"}

    class Delta(ss.State):
        one = ss.dict(int, int, expire_after=datetime.timedelta(hours=1))

    assert Delta.layout().describe()[0]["expire_after"] == "1 hour"
    with pytest.raises(ss.ConfigurationError, match=r"give a datetime\.timedelta, or"):
        nanoseconds("watermark", "1 hour 3 minutes")


@pytest.mark.parametrize(
    ("times", "hour"),
    [
        (pa.timestamp("s"), 3600),
        (pa.timestamp("ms"), 3_600_000),
        (pa.timestamp("us", "America/New_York"), 3_600_000_000),
        (pa.timestamp("ns"), 3_600_000_000_000),
    ],
    ids=str,
)
def test_the_units_of_the_page_on_timers(times: pa.DataType, hour: int) -> None:
    class Seen(ss.State):
        count = ss.scalar(int)

    @ss.operator(state=Seen, event={"act": int}, emits={"at": int})
    def tells(state, event, emit):  # type: ignore[no-untyped-def]
        emit(event.timestamp)

    given = pa.array([datetime.datetime(1970, 1, 1), datetime.datetime(1970, 1, 2, 1)])
    days = [datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)]
    for column, expected in [
        (given.cast(pa.timestamp(times.unit)).cast(times), [0, 25 * hour]),
        (pa.array(days), [0, 1]),
        (pa.array(days, pa.date64()), [0, 86_400_000]),
    ]:
        table = pa.table({"t": column, "act": [1, 2]})
        assert tells.run_sequential(table, order_by="t").output["at"].to_pylist() == expected
        with ss.Engine(tells) as engine:
            assert engine.process(table, order_by="t")["at"].to_pylist() == expected
