"""Events that raise are set aside, and the stream goes on: rows, state and failed events are those
of the sequential run, however the events come."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import witness
from support.engine.interrupt_driver import OwnStep

import specstream as ss
from specstream.checkpoint.inspect.difference import first_difference, first_difference_of_states

ORDER: dict[str, Any] = {"order_by": "time", "source": "from"}
SETTINGS = ss.testing.settings()
# A thousand are for a quiet night.
EXAMPLES = int(os.environ.get("EXAMPLES", "8"))
EVENT = {"key": int, "value": ss.nullable(float), "code": ss.nullable(str), "on": bool}


class Ledger(ss.State):
    total = ss.scalar(int)
    seen = ss.array(int, 8)
    names = ss.dict(str, int, limit=64)
    latest = ss.deque(float, maxlen=4)


@ss.operator(
    state=Ledger,
    event=EVENT,
    emits={"key": int, "total": int, "code": ss.nullable(str)},
)
def ledger(state, event, emit):
    state.total += 1
    emit(event.key, state.total, None)
    state.seen[event.key] += state.total  # beyond its end from 8 on
    state.latest.append(0.0 if event.is_null("value") else event.value)
    if not event.is_null("code"):
        state.names[event.code] = state.names.get(event.code, 0) + 1
        emit(event.key, state.names[event.code], event.code)
        if event.on and event.value < -1.0:
            raise ValueError(f"{event.code} has {event.value}")
    state.total += 12 // (event.key - 3)


class Waiting(ss.State):
    fired = ss.scalar(int)
    counts = ss.dict(int, int, limit=64)
    alarms = ss.timers(int, limit=64)


def ring(state, timer, emit):
    state.fired += 1
    state.counts[timer.key] = 0
    emit(timer.key, state.fired)
    if timer.key % 3 == 1:
        raise KeyError(timer.key)


@ss.operator(
    state=Waiting,
    event=EVENT,
    emits={"key": int, "number": int},
    on_timer=ring,
)
def alarms(state, event, emit):
    count = state.counts.get(event.key, 0) + 1
    state.counts[event.key] = count
    state.alarms.set(event.key, event.timestamp + 3)
    emit(event.key, count)
    if event.on and count % 2 == 0:
        raise RuntimeError("even")


def interpreted(operator: ss.Operator, **more: Any) -> ss.Operator:
    """The same function, run by Python in the engine's threads."""
    declared: dict[str, Any] = {"event": EVENT, "interpreted": True, **more}
    return ss.operator(**declared)(operator.function)


@st.composite
def tables(draw: Any) -> pa.Table:
    """Events of two sources in their order, of which many raise."""
    rows = draw(st.integers(0, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    time = np.cumsum(rng.choice([0, 1, 1, 2, 7], rows))
    source = rng.integers(0, 2, rows)
    order = np.lexsort((source, time))
    return pa.table(
        {
            "time": time[order],
            "from": source[order],
            "key": rng.integers(0, draw(st.sampled_from([4, 9, 10])), rows),
            "value": pa.array(rng.choice([0.5, -0.0, -2.0], rows), mask=rng.random(rows) < 0.2),
            "code": rng.choice(np.array(["one", "two", "", "ä", None], object), rows),
            "on": rng.random(rows) < draw(st.sampled_from([0.1, 0.5, 1.0])),
        }
    )


def failed_by(engine: ss.Engine) -> list[pa.Table]:
    """The failed events that it has, if any."""
    failed = engine.failed_events()
    assert engine.failed_events() is None  # they are given once
    return [] if failed is None else [failed]


def processed(
    engine: ss.Engine, table: pa.Table, pieces: int, dice: random.Random
) -> tuple[pa.Table, list[pa.Table]]:
    """Batch by batch; its output and its failed events."""
    inner = sorted(dice.randint(0, table.num_rows) for _ in range(pieces - 1))
    output: list[pa.Table] = []
    failed: list[pa.Table] = []
    for at, end in zip([0, *inner], [*inner, table.num_rows], strict=True):
        ends = end == table.num_rows and engine.operator.has_timers
        piece = table.slice(at, end - at)
        output.append(engine.process(piece, **ORDER, end=ends and len(output) == pieces - 1))
        if dice.random() < 0.5:
            failed += failed_by(engine)
    return pa.concat_tables(output), failed + failed_by(engine)


def submitted(
    engine: ss.Engine, table: pa.Table, dice: random.Random
) -> tuple[pa.Table, list[pa.Table]]:
    """Out of order, polled now and then, with a snapshot now and then."""
    output, failed = [], []
    seed = dice.randint(0, 2**32)
    for arrival in ss.testing.arrivals(table, order_by="time", source="from", seed=seed):
        arrival.submit_to(engine)
        if dice.random() < 0.3:
            output.append(engine.poll(dice.choice([0, 0.01, None])))
        if dice.random() < 0.3:
            engine.restore(engine.snapshot())
        if dice.random() < 0.3:
            failed += failed_by(engine)
    for name in (0, 1):
        engine.advance(name)
    output.append(engine.poll(timeout=None))
    return pa.concat_tables(output), failed + failed_by(engine)


def assert_same(
    expected: ss.SequentialRun,
    output: pa.Table,
    failed: list[pa.Table],
    engine: ss.Engine,
    is_submitted: bool,
) -> None:
    # Numbers of submitted events are those of their arrival.
    by_arrival = ["sequence"] if is_submitted else []
    assert first_difference(expected.output.drop(by_arrival), output.drop(by_arrival)) is None
    assert first_difference_of_states(expected.state, engine.state) is None
    wanted = expected.failed_events
    found = pa.concat_tables(failed) if failed else None
    if wanted is None or found is None:
        assert wanted is found is None
    else:
        assert first_difference(wanted.drop(by_arrival), found.drop(by_arrival)) is None
    count = 0 if wanted is None else wanted.num_rows
    assert engine.stats.failed_events == count
    assert len(expected.raised) == count


def check(operator: ss.Operator, table: pa.Table, seed: int) -> None:
    seen: Any = witness.assert_agrees_in_time(
        operator, table, 0, are_none=operator.is_interpreted, **ORDER
    )
    assert len(seen.kept) == table.num_rows
    end = operator.has_timers
    expected = operator.run_sequential(table, **ORDER, errors="side", keys=True, end=end)
    failed = expected.failed_events
    told = [] if failed is None else failed.select(["source", "sequence", "error"]).to_pylist()
    found = [(-1 if one["source"] is None else one["sequence"], one["error"]) for one in told]
    assert found == seen.raised  # plain Python, on objects of its own, has failed there
    dice = random.Random(seed)
    early = [one for one in SETTINGS if one.options.get("early")]
    for setting in [*dice.sample(SETTINGS, 3), dice.choice(early)]:
        names = [0, 1] if setting.batches == 0 else []
        options = {"keys": True, "sources": names, **setting.options}
        with ss.Engine(operator, errors="side", **options) as engine:
            if setting.batches == 0:
                output, of = submitted(engine, table, dice)
            else:
                output, of = processed(engine, table, dice.randint(1, 3), dice)
            assert_same(expected, output, of, engine, setting.batches == 0)


@settings(max_examples=EXAMPLES)
@given(table=tables(), seed=st.integers(0, 2**32 - 1))
def test_rows_state_and_failed_events_are_those_of_the_sequential_run(
    table: pa.Table, seed: int
) -> None:
    check(ledger, table, seed)


@settings(max_examples=EXAMPLES // 4)
@given(table=tables(), seed=st.integers(0, 2**32 - 1))
def test_interpreted_operators_set_aside_what_their_own_functions_raise(
    table: pa.Table, seed: int
) -> None:
    emits = {"key": int, "total": int, "code": ss.nullable(str)}
    check(interpreted(ledger, state=Ledger, emits=emits), table, seed)
    emits = {"key": int, "number": int}
    check(interpreted(alarms, state=Waiting, emits=emits, on_timer=ring), table, seed)


@settings(max_examples=EXAMPLES)
@given(table=tables(), seed=st.integers(0, 2**32 - 1))
def test_timers_that_raise_are_set_aside_as_events_are(table: pa.Table, seed: int) -> None:
    check(alarms, table, seed)


def test_a_failed_event_has_its_key_its_columns_and_the_line_that_raised() -> None:
    table = pa.table(
        {
            "time": pa.array([10, 20, 30], pa.timestamp("ms", "UTC")),
            "from": ["b", "a", "c"],
            "key": [1, 1, 9],
            "value": [1.0, -2.0, None],
            "code": ["one", "two", None],
            "on": [True, True, False],
        }
    )
    with ss.Engine(ledger, errors="side") as engine:
        engine.process(table, **ORDER)
        (failed,) = failed_by(engine)
    lines = failed["traceback"].to_pylist()
    assert failed.column_names == [
        *("timestamp", "source", "sequence", "key", "value", "code", "on"),
        *("error", "message", "traceback"),
    ]
    names = ["sequence", "key", "value", "code", "on", "error"]
    assert list(map(tuple, (row.values() for row in failed.select(names).to_pylist()))) == [
        (1, 1, -2.0, "two", True, "ValueError"),
        (2, 9, None, None, False, "IndexError"),
    ]
    assert failed["timestamp"].to_pylist() == table["time"].to_pylist()[1:]
    assert failed["source"].to_pylist() == ["a", "c"]
    assert failed["message"][0].as_py() == "two has -2.0"
    assert lines[0].splitlines()[0] == "Traceback (most recent call last):"
    assert f'File "{Path(__file__)}"' in lines[0].splitlines()[1]  # and nothing before it
    assert 'raise ValueError(f"{event.code} has {event.value}")' in lines[0]
    assert lines[0].splitlines()[-1] == "ValueError: two has -2.0"


def test_a_firing_that_raises_has_its_time_its_number_and_its_key() -> None:
    table = {"time": [1, 9], "from": ["a", "a"], "key": [4, 4], "value": [0.0] * 2}
    table |= {"code": [None, None], "on": [False, False]}
    with ss.Engine(alarms, errors="side") as engine:
        engine.process(pa.table(table), **ORDER)
        (failed,) = failed_by(engine)
        assert engine.stats.timers == 1
    assert failed.drop(["traceback"]).to_pylist() == [
        {"timestamp": 4, "source": None, "sequence": 0}
        | dict.fromkeys(("key", "value", "code", "on"))
        | {"error": "KeyError", "message": "4", "timer": "4, set for 4"}
    ]


class Count(ss.State):
    n = ss.scalar(int)


@ss.operator(state=Count, event={"x": int}, emits={"x": int, "place": int})
def odd(state, event, emit):
    state.n += 1
    emit(event.x, state.n)
    if event.x % 3 == 2:
        raise ValueError("two")


def numbers(count: int) -> dict[str, list[int]]:
    return {"x": list(range(count))}


def xs(tables_: list[pa.Table]) -> list[int]:
    return [x for table in tables_ for x in table["x"].to_pylist()]


def test_snapshots_and_savepoints_hold_those_that_nobody_has_fetched() -> None:
    with ss.Engine(odd, errors="side", horizon=0) as engine:
        engine.process(numbers(3))
        savepoint, snapshot = engine.savepoint(), engine.snapshot()
        engine.process(numbers(6))
        assert engine.stats.failed_events == 3
        engine.rollback(savepoint)
        assert engine.stats.failed_events == 1
        assert xs(failed_by(engine)) == [2]
        engine.restore(snapshot)
        assert xs(failed_by(engine)) == [2]
        assert b"failed_events" not in engine.snapshot()
    with ss.Engine(odd, restore=snapshot) as engine:  # it raises, and has what another one has set
        assert engine.stats.failed_events == 0
        assert xs(failed_by(engine)) == [2]
        with pytest.raises(ValueError, match="two"):
            engine.process(numbers(3))
        assert engine.failed_events() is None


def test_keys_of_other_types_come_with_the_next_call() -> None:
    with ss.Engine(odd, errors="side", horizon=0) as engine:
        engine.process({"x": [2], "t": [7]}, order_by="t")
        engine.process({"x": [5], "t": pa.array([1], pa.date32())}, order_by="t")
        first, second = engine.failed_events(), engine.failed_events()
    assert first is not None
    assert second is not None
    assert xs([first, second]) == [2, 5]


def test_what_a_hook_raises_is_raised() -> None:
    def on_commit(told: ss.Notification) -> None:
        if told.values["x"] == 1:
            raise LookupError("of the hook")

    with ss.Engine(odd, errors="side", on_commit=on_commit) as engine:
        with pytest.raises(LookupError, match="of the hook"):
            engine.process({"x": [2, 0, 1]})
        assert xs(failed_by(engine)) == [2]
        engine.submit({"x": [2, 1, 5], "t": [1, 2, 3]}, order_by="t")
        engine.advance(0)
        with pytest.raises(LookupError, match="of the hook"):
            engine.poll(timeout=None)
        engine.poll(timeout=None)
        assert xs(failed_by(engine)) == [2, 5]


def test_a_poll_that_waits_for_nothing_does_not_fall_behind() -> None:
    with ss.Engine(odd, errors="side", threads=2) as engine:
        for at in range(0, 600, 60):
            engine.submit({"x": range(at, at + 60), "t": range(at, at + 60)}, order_by="t")
            engine.advance(0, at + 60)
            engine.poll()
        for _ in range(100):
            if engine.stats.pending == 0:
                break
            engine.poll()
        assert engine.stats.pending == 0
        failed = failed_by(engine)
    assert xs(failed) == list(range(2, 600, 3))


def test_early_results_set_aside_what_still_raises_when_it_is_final() -> None:
    with ss.Engine(odd, errors="side", sources=["a"], early=True) as engine:
        for number, x in ((1, 2), (2, 5), (3, 3)):
            engine.submit_event(number, "a", final=False, sequence=number, x=x)
        assert engine.poll_early(timeout=None).changes["place"].to_pylist() == [1]
        assert engine.failed_events() is None  # it may yet be revised
        engine.revise("a", 1, version=2, x=4)
        assert engine.poll_early(timeout=None).changes["place"].to_pylist() == [1, 2]
        engine.confirm("a")
        engine.advance("a")
        assert engine.poll(timeout=None)["x"].to_pylist() == [4, 3]
        assert xs(failed_by(engine)) == [5]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["process", "poll"])
def test_whatever_step_is_interrupted_each_failed_event_is_kept_once(way: str) -> None:
    def use(engine: ss.Engine, left: list[int]) -> list[int]:
        output = engine.process({"x": left}) if way == "process" else engine.poll(timeout=None)
        rows: list[int] = output["x"].to_pylist()
        return rows

    by = OwnStep(way)
    wanted = [2, 5, 0, 8, 1]
    with ss.Engine(odd, errors="side", threads=1, horizon=0) as engine:
        for step in range(100_000):
            by.left, left, rows = step, wanted, []
            if way == "poll":
                engine.submit({"x": left, "t": range(5 * step, 5 * step + 5)}, order_by="t")
                engine.advance(0, 5 * step + 5)
            by.arm(way, 0)
            try:
                by.wanted = True
                rows = use(engine, left)
                by.wanted = False
            except KeyboardInterrupt as error:
                by.wanted = False
                partial = getattr(error, "specstream_partial", None)
                if partial is not None:
                    rows, left = partial.output["x"].to_pylist(), left[partial.consumed :]
                by.disarm()
                rows += use(engine, left)
            by.disarm()
            assert rows == [0, 1]
            assert xs(failed_by(engine)) == [2, 5, 8], step
            if by.left >= 0:
                break
    assert step > 100, "it was interrupted nowhere: it proves nothing"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"errors": "skip"}, "errors"),
        ({"errors": "side", "execution": "log_free"}, 'errors="side" and execution'),
        ({"errors": "side", "execution": "locked"}, 'errors="side" and execution'),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=error):
        ss.Engine(odd, **options)


def test_a_column_with_the_name_of_one_that_tells_the_error_is_refused() -> None:
    @ss.operator(event={"message": int})
    def told(event, emit):
        pass

    for refused in (
        lambda: ss.Engine(told, errors="side"),
        lambda: told.run_sequential({"message": [1]}, errors="side"),
    ):
        with pytest.raises(ss.ConfigurationError, match=r"'message'.*rename"):
            refused()


@pytest.mark.long
def test_a_batch_with_ten_thousand_poison_events_passes() -> None:
    with ss.Engine(odd, errors="side", threads=2) as engine:
        rows = engine.process(numbers(30_000))
        (failed,) = failed_by(engine)
        assert engine.state.n == rows.num_rows == 20_000
    assert xs([failed]) == list(range(2, 30_000, 3))


class Speechless(ValueError):
    def __str__(self) -> str:
        raise KeyError("no words")


@pytest.mark.parametrize("interpreted", [False, True])
def test_an_exception_that_cannot_say_what_it_is_is_set_aside(interpreted: bool) -> None:
    def process(state, event, emit):
        if event.x == 2:
            raise Speechless
        emit(event.x)

    class Nothing(ss.State):
        n = ss.scalar(int)

    operator = ss.operator(
        state=Nothing, event={"x": int}, emits={"x": int}, interpreted=interpreted
    )(process)
    with ss.Engine(operator, errors="side") as engine:
        assert engine.process({"x": [1, 2, 3]})["x"].to_pylist() == [1, 3]
        failed = engine.failed_events()
    assert failed is not None
    assert failed["message"].to_pylist() == ["<exception str() failed>"]
    assert failed["error"].to_pylist() == ["Speechless"]
