"""An operator that goes by the numbers of times says their unit: columns are cast to it, or
refused, and one that does not say it is warned of."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import datetime
import pickle
import warnings
from typing import Any

import pyarrow as pa
import pytest

import specstream as ss
from specstream.operators.signals import exponential_average

UNITS = ("s", "ms", "us", "ns")
SECOND = 1_000_000
NOON = datetime.datetime(2026, 1, 5, 12)


class Sessions(ss.State):
    timers = ss.timers(str)
    clicks = ss.dict(str, int)


def ends(state, timer, emit):
    emit(timer.key, state.clicks.pop(timer.key), timer.at)


def sessions_of(**options: Any) -> ss.Operator:
    @ss.operator(
        state=Sessions,
        event={"user": str},
        emits={"user": str, "clicks": int, "end": ss.timestamp("us", None)},
        on_timer=ends,
        **options,
    )
    def sessions(state, event, emit):
        state.clicks[event.user] = state.clicks.get(event.user, 0) + 1
        state.timers.set(event.user, event.timestamp + 30 * SECOND)

    return sessions


IN_MICROSECONDS = sessions_of(time_unit="us")
UNSAID = sessions_of()


def clicks(unit: str) -> pa.Table:
    times = [NOON + datetime.timedelta(seconds=seconds) for seconds in (0, 10, 20, 55)]
    return pa.table(
        {"time": pa.array(times, pa.timestamp(unit)), "user": ["ann", "bob", "ann", "eve"]}
    )


def expected() -> list[tuple[Any, ...]]:
    ends_at = {"bob": (1, 40), "ann": (2, 50), "eve": (1, 85)}
    return [
        (user, count, NOON + datetime.timedelta(seconds=at))
        for user, (count, at) in ends_at.items()
    ]


def values(table: pa.Table) -> list[tuple[Any, ...]]:
    return [(row["user"], row["clicks"], row["end"]) for row in table.to_pylist()]


@pytest.mark.parametrize("unit", UNITS)
def test_timers_fire_at_the_same_time_whatever_the_column_counts(unit: str) -> None:
    table = clicks(unit)
    sequential = IN_MICROSECONDS.run_sequential(table, order_by="time", end=True)
    assert values(sequential.output) == expected()
    with ss.Engine(IN_MICROSECONDS, keys=True) as engine:
        found = engine.process(table, order_by="time", end=True)
    assert values(found) == expected()
    assert found["timestamp"].type == pa.timestamp("us")


@pytest.mark.parametrize("unit", UNITS)
def test_so_they_do_where_events_are_submitted(unit: str) -> None:
    with ss.Engine(IN_MICROSECONDS) as engine:
        engine.submit(clicks(unit), order_by="time", source="web")
        engine.submit_event(NOON + datetime.timedelta(seconds=60), "web", user="zoe")
        engine.advance("web", NOON + datetime.timedelta(seconds=86))
        assert values(engine.poll(timeout=None)) == expected()


def test_tables_of_several_units_follow_one_another() -> None:
    with ss.Engine(IN_MICROSECONDS) as engine:
        for number, unit in enumerate(("ns", "s", "us", "ms")):
            engine.submit(clicks(unit).slice(number, 1), order_by="time", source="web")
        engine.advance("web")
        assert values(engine.poll(timeout=None)) == expected()


def test_a_time_that_would_lose_digits_is_refused_or_set_aside() -> None:
    odd = pa.table({"time": pa.array([1_000, 2_500], pa.timestamp("ns")), "user": ["ann", "bob"]})
    with (
        ss.Engine(IN_MICROSECONDS) as engine,
        pytest.raises(ss.InputError, match=r"timestamp\[ns\].*row 1.*time_unit='us'"),
    ):
        engine.process(odd, order_by="time")
    with ss.Engine(IN_MICROSECONDS, rejected_rows="side") as engine:
        engine.process(odd, order_by="time")
        rejected = engine.rejected_rows()
    assert rejected is not None
    assert rejected["user"].to_pylist() == ["bob"]
    far = pa.table({"time": pa.array([2**60], pa.timestamp("s")), "user": ["ann"]})
    with pytest.raises(ss.InputError, match=r"does not fit timestamp\[us\]"):
        IN_MICROSECONDS.run_sequential(far, order_by="time")


def test_dates_and_days_are_cast_as_well() -> None:
    @ss.operator(event={}, emits={"day": int}, time_unit="day")
    def days(event, emit):
        emit(event.timestamp + 1)

    midnights = pa.array([datetime.datetime(1970, 1, 3)], pa.timestamp("ns", "UTC"))
    assert days.run_sequential({"t": midnights}, order_by="t").output["day"].to_pylist() == [3]
    with pytest.raises(ss.InputError, match="does not fit date32"):
        days.run_sequential({"t": [NOON]}, order_by="t")
    dates = pa.table({"time": [datetime.date(1970, 1, 2)], "user": ["ann"]})
    found = IN_MICROSECONDS.run_sequential(dates, order_by="time", end=True).output
    assert found["end"].to_pylist() == [datetime.datetime(1970, 1, 2, 0, 0, 30)]


def test_integers_have_no_unit_and_stay() -> None:
    table = {"user": ["ann"], "time": [7]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for operator in (IN_MICROSECONDS, UNSAID):
            found = operator.run_sequential(table, order_by="time", end=True).output
            assert found["end"].cast(pa.int64()).to_pylist() == [7 + 30 * SECOND]


def test_an_operator_that_does_not_say_its_unit_is_warned_of_with_its_line() -> None:
    said = r"adds to a time, event.timestamp \+ 30 \* SECOND, and does not say.*'time'.*nanoseconds"
    with pytest.warns(FutureWarning, match=said) as caught:
        UNSAID.run_sequential(clicks("ns"), order_by="time")
    assert caught[0].filename == __file__
    with ss.Engine(UNSAID) as engine, pytest.warns(FutureWarning, match="microseconds"):
        engine.submit_event(NOON, "web", user="ann")
    pipeline = ss.Pipeline("p")
    events = pipeline.source("clicks", {"user": str})
    pipeline.sink("ended", pipeline.add(UNSAID, events))
    with ss.Engine(pipeline) as engine, pytest.warns(FutureWarning, match="vertex 'sessions'"):
        engine.process(clicks("us"), order_by="time")


class Kept(ss.State):
    last = ss.dict(str, int)
    expiring = ss.set(str, expire_after=30)


class Plain(ss.State):
    last = ss.dict(str, int)
    timers = ss.timers(str)


def test_the_check_takes_times_in_another_unit() -> None:
    found = ss.testing.check(IN_MICROSECONDS, clicks("ns"), order_by="time")
    expected = IN_MICROSECONDS.run_sequential(clicks("us"), order_by="time", end=True)
    assert found.output.equals(expected.output)


def test_a_frontier_may_be_a_scalar_of_arrow_in_another_unit() -> None:
    whole, odd = (pa.scalar(time, pa.timestamp("ns")) for time in (10**15, 10**15 + 1))
    with ss.Engine(IN_MICROSECONDS, sources=["a"]) as engine:
        engine.submit(clicks("ns"), order_by="time", source="a")
        engine.advance("a", whole)
        with pytest.raises(ss.InputError, match=r"is no timestamp\[us\]"):
            engine.advance("a", odd)


class Note(ss.Record):
    at: int
    n: int = 0


class Notes(ss.State):
    by_user = ss.dict(str, Note)


def counted(function: Any, state: Any = Plain, **options: Any) -> str:
    timed: dict[str, Any] = {"on_timer": ends_quietly} if state is Plain else {}
    made = ss.operator(state=state, event={"user": str}, emits={"n": int}, **timed, **options)
    return made(function).event.counts_times


def ends_quietly(state, timer, emit):
    emit(timer.at)


def older(time):
    return time - 30


def keeps(state, event, emit):
    state.last[event.user] = event.timestamp
    emit(event.timestamp)


def compares_kept(state, event, emit):
    if event.timestamp - state.last.get(event.user, 0) > 30:
        emit(1)


def adds_later(state, event, emit):
    before = state.last.get(event.user, 0)
    state.last[event.user] = event.timestamp
    emit(before + 30)


def by_a_helper(state, event, emit):
    emit(older(event.timestamp))


def in_a_record(state, event, emit):
    note = state.by_user.get(event.user)
    if note is not None:
        emit(note.at // 60)
    state.by_user[event.user] = Note(event.timestamp)


def sets_a_number(state, event, emit):
    state.timers.set(event.user, 5)


def sets_its_time(state, event, emit):
    state.timers.set(event.user, event.timestamp)


def difference(state, event, emit):
    emit(event.timestamp - state.last.get(event.user, event.timestamp))
    state.last[event.user] = event.timestamp


def test_what_counts_is_found_where_it_is() -> None:
    assert "subtract" in counted(compares_kept) or "compares" in counted(compares_kept)
    assert "before + 30" in counted(adds_later)
    assert "time - 30" in counted(by_a_helper)
    assert "note.at // 60" in counted(in_a_record, Notes)
    assert "sets a timer to a number, 5" in counted(sets_a_number)
    assert "'expiring' expire after 30" in counted(keeps, Kept)
    for function in (keeps, sets_its_time, difference):
        assert counted(function) == ""


def test_windows_and_ready_operators_say_theirs() -> None:
    class Count(ss.Record):
        n: int = 0

    def add(count, event):
        count.n += 1

    by_hour = ss.windows.by_time(Count, add, "1 hour", event={"user": str})
    by_number = ss.windows.by_time(Count, add, 3_600, event={"user": str})
    in_seconds = ss.windows.by_time(Count, add, 3_600, event={"user": str}, unit="s")
    assert [one.event.time_unit for one in (by_hour, by_number, in_seconds)] == ["us", None, "s"]
    rows = by_hour.run_sequential(clicks("ns"), order_by="time", end=True).output
    assert rows["n"].to_pylist() == [4]
    assert in_seconds.run_sequential(clicks("ms"), order_by="time", end=True).output.num_rows == 1
    with pytest.warns(FutureWarning, match="its length=3600 is a number"):
        by_number.run_sequential(clicks("s"), order_by="time")
    assert exponential_average().event.counts_times == ""
    assert exponential_average(by="time", time_unit="s").event.time_unit == "s"


def test_the_unit_travels_with_the_operator() -> None:
    operator = pickle.loads(pickle.dumps(IN_MICROSECONDS))
    assert values(operator.run_sequential(clicks("ns"), order_by="time", end=True).output) == (
        expected()
    )


def test_a_pipeline_has_one_unit() -> None:
    pipeline = ss.Pipeline("two_units")
    events = pipeline.source("clicks", {"user": str})
    pipeline.sink("a", pipeline.add(IN_MICROSECONDS, events))
    pipeline.sink("b", pipeline.add(sessions_of(time_unit="ns", name="other"), events))
    with pytest.raises(ss.DeclarationError, match="time_unit='us', and vertex 'other' in 'ns'"):
        ss.Engine(pipeline)


def test_a_unit_that_is_none_is_refused() -> None:
    with pytest.raises(ss.DeclarationError, match="time_unit='hours'; expected one of s, ms"):
        sessions_of(time_unit="hours")
