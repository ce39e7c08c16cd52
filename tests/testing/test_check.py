"""What ``ss.testing`` is for: whatever differs from the sequential run is noticed and named."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.operators import families
from support.operators.families import FAMILY

import specstream as ss
from specstream.columns.events import read_events
from specstream.columns.strings import StringTable
from specstream.declarations.updates import update
from specstream.testing import checking


class Totals(ss.State):
    of = ss.array(float, 4)
    count = ss.scalar(int)


@ss.operator(
    state=Totals, event={"item": int, "price": float}, emits={"total": float, "n": ss.nullable(int)}
)
def totals(state, event, emit):
    state.count += 1
    if event.price < 0.0:
        raise ValueError("a price below zero")
    state.of[event.item] += event.price
    emit(state.of[event.item], state.count if event.item > 0 else None)


@ss.operator(state=Totals, event={"item": int, "price": float}, emits={"r": float, "at": int})
def drawn(state, event, emit):
    state.count += event.timestamp
    emit(event.random(state.count), event.sequence)


@ss.operator(state=Totals, event={"item": int}, emits={"i": int, "n": float, "c": int})
def drawn_otherwise(state, event, emit):
    emit(event.integer(0, 9, 1), event.normal(2), event.choice(5, 3))


EVENTS: dict[str, Any] = {
    "item": [at % 4 for at in range(60)],
    "price": [0.5 * at - 1.0 for at in range(60)],
}


def test_what_is_drawn_goes_by_the_number_of_arrival() -> None:
    run = ss.testing.check(drawn_otherwise, {"item": range(60)})
    assert run.output.num_rows == 60


def test_the_sequential_run_is_returned_with_what_raised() -> None:
    found = ss.testing.check(totals, EVENTS)
    assert found.output.column_names == ["total", "n"]
    assert [row for row, _ in found.raised] == [0, 1]
    assert found.failed_events is not None
    assert found.failed_events["price"].to_pylist() == [-1.0, -0.5]
    assert found.state.count == 58


@pytest.mark.parametrize("order", [{}, {"order_by": "time"}, {"order_by": "time", "source": "s"}])
@pytest.mark.parametrize("operator", [totals, drawn], ids=lambda one: one.name)
def test_with_times_and_sources_in_any_order(operator: ss.Operator, order: dict[str, Any]) -> None:
    random = np.random.default_rng(4)
    times, sources = random.integers(0, 12, 60), [("b", "a")[k % 2] for k in range(60)]
    ss.testing.check(operator, {**EVENTS, "time": times, "s": sources}, seed=3, **order)


@pytest.mark.parametrize("operator", FAMILY[:4], ids=lambda operator: operator.name)
def test_the_families(operator: ss.Operator) -> None:
    ss.testing.check(operator, families.events(100, 3))


def test_of_no_events() -> None:
    assert ss.testing.check(totals, []).output.num_rows == 0


@update
def add(container: Any, key: Any, value: Any) -> None:
    """Named like the runtime's own update, and written as something else."""
    container[key] -= value


@ss.operator(state=Totals, event={"item": int, "price": float}, emits={"total": float})
def astray(state, event, emit):
    add(state.of, event.item, event.price)
    emit(event.price)


def test_an_operator_whose_compiled_code_does_something_else_is_noticed() -> None:
    with pytest.raises(AssertionError) as caught:
        ss.testing.check(astray, {"item": [1, 2], "price": [2.0, 0.0]})
    assert str(caught.value) == (
        "operator 'astray', Engine(threads=1, horizon=0), in one batch, is not what the "
        "sequential run is: state.of[1]: expected -2.0, found 2.0"
    )


def last_row_twice(output: pa.Table) -> pa.Table:
    return pa.concat_tables([output, output.slice(output.num_rows - 1)])


def other_sign(output: pa.Table) -> pa.Table:
    at = output.column_names.index("total")
    return output.set_column(at, "total", pa.compute.negate(output["total"]))


def null_for_zero(output: pa.Table) -> pa.Table:
    at = output.column_names.index("n")
    return output.set_column(at, "n", pa.compute.fill_null(output["n"], 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (last_row_twice, r"output row 58: expected no such row, found \{'total'.*found row:"),
        (other_sign, "output row 0, column 'total': expected 0.0, found -0.0\nexpected row: .*"),
        (null_for_zero, "output row 2, column 'n': expected None, found 0"),
    ],
)
@pytest.mark.parametrize("submitted", [False, True])
def test_a_planted_fault_of_one_setting_is_noticed_and_named(
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pa.Table], pa.Table],
    message: str,
    submitted: bool,
) -> None:
    name = "poll" if submitted else "process"
    right = getattr(ss.Engine, name)

    def wrong(self: ss.Engine, *args: Any, **options: Any) -> pa.Table:
        output = right(self, *args, **options)
        return change(output) if self.protocol == "eager" and output.num_rows else output

    monkeypatch.setattr(ss.Engine, name, wrong)
    how = "submitted out of order" if submitted else "in one batch"
    with pytest.raises(AssertionError, match=rf"(?s)protocol='eager'[^()]*\), {how}, .*{message}"):
        ss.testing.check(totals, {name: values[2:] for name, values in EVENTS.items()})


def test_an_exception_that_one_setting_lacks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_told", lambda error, said=[]: said.append(1) or str(len(said)))
    with pytest.raises(AssertionError, match="exception number 0: expected 1, found 3"):
        ss.testing.check(totals, EVENTS)


@pytest.mark.parametrize("submitted", [False, True])
def test_a_failed_event_that_one_setting_lacks_or_has_otherwise_is_noticed(
    monkeypatch: pytest.MonkeyPatch, submitted: bool
) -> None:
    right = ss.Engine.failed_events
    settings = [one for one in ss.testing.settings() if (one.batches == 0) == submitted]

    def lacks_all(failed: pa.Table) -> pa.Table | None:
        return None

    def has_another_price(failed: pa.Table) -> pa.Table:
        at = failed.column_names.index("price")
        return failed.set_column(at, "price", pa.compute.negate(failed["price"]))

    for change, message in (
        (lacks_all, "expected 2 failed events, found 0"),
        (has_another_price, "failed event 0, column 'price': expected -1.0, found 1.0"),
    ):

        def wrong(self: ss.Engine, change: Any = change) -> pa.Table | None:
            failed = right(self)
            return change(failed) if failed is not None and self.protocol == "eager" else failed

        monkeypatch.setattr(ss.Engine, "failed_events", wrong)
        with pytest.raises(AssertionError, match=f"protocol='eager'.* errors=\"side\": {message}"):
            ss.testing.check(totals, EVENTS, settings=settings)


def test_what_sets_nothing_aside_is_tried_as_far_as_it_goes() -> None:
    @ss.operator(event={"message": int}, emits={"message": int})
    def told(event, emit):
        emit(10 // event.message)

    found = ss.testing.check(told, {"message": [5, 0, 2]})
    assert (len(found.raised), found.failed_events) == (1, None)

    @ss.operator(event={"x": int}, emits={"x": int})
    def divided(event, emit):
        emit(10 // event.x)

    only = [ss.testing.Setting({"threads": 1, "execution": "log_free"})]
    assert len(ss.testing.check(divided, {"x": [5, 0, 2]}, settings=only).raised) == 1


def test_each_setting_is_another_and_all_can_be_had() -> None:
    every = ss.testing.settings()
    assert len(set(map(str, every))) == len(every)
    assert {one.options.get("protocol", "value") for one in every} == {"value", "eager"}
    assert {one.batches for one in every} == {0, 1, 3}
    only = [ss.testing.Setting({"threads": 2, "chunk": 2, "horizon": 3}, 2)]
    ss.testing.check(totals, EVENTS, settings=only)


# ---- streams ----


@ss.operator(
    state=Totals,
    event={
        "i": int,
        "f": ss.nullable(float),
        "b": bool,
        "s": ss.nullable(str),
        "t": ss.timestamp("ns", "UTC"),
        "m": ss.timestamp("s"),
        "d": ss.decimal(3),
    },
    emits={"i": int, "s": ss.nullable(str)},
)
def every_type(state, event, emit):
    state.count += event.i ^ event.t ^ event.d ^ event.m
    emit(state.count, event.s)


@given(ss.testing.streams(every_type, columns={"time": st.integers(0, 9)}, min_size=1))
@hypothesis_settings(max_examples=30)
def test_streams_fit_the_declaration_and_have_what_is_asked_for(table: pa.Table) -> None:
    read_events(table, every_type.event, StringTable(()), "streams", 0, order_by="time")
    assert set(table.column_names) == {*every_type.event.names, "time"}
    assert all(0 <= time <= 9 for time in table["time"].to_pylist())


@given(ss.testing.streams(every_type, max_size=30), st.integers(0, 9))
@hypothesis_settings(max_examples=2, suppress_health_check=list(HealthCheck))
def test_streams_run_on_all_settings(table: pa.Table, seed: int) -> None:
    ss.testing.check(every_type, table, seed=seed)


def test_streams_find_a_planted_defect() -> None:
    @given(ss.testing.streams(astray, columns={"item": st.integers(0, 3)}))
    @hypothesis_settings(max_examples=50, database=None, report_multiple_bugs=False)
    def found(table: pa.Table) -> None:
        ss.testing.check(astray, table, settings=ss.testing.settings()[:1])

    with pytest.raises(AssertionError, match="is not what the sequential run is"):
        found()


# ---- arrivals ----


@given(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from("ab")), max_size=40),
    st.integers(0, 12),
    st.integers(1, 9),
    st.integers(0, 5),
)
@hypothesis_settings(max_examples=100)
def test_arrivals_are_the_rows_and_their_frontiers_hold(
    keys: list[tuple[int, str]], disorder: int, rows: int, seed: int
) -> None:
    table = pa.table(
        {
            "t": pa.array([time for time, _ in keys], pa.int64()),
            "s": pa.array([source for _, source in keys], pa.string()),
            "n": pa.array(range(len(keys)), pa.int64()),
        }
    )
    order: dict[str, Any] = {"order_by": "t", "source": "s", "disorder": disorder, "seed": seed}
    late = ss.testing.shuffled(table, **order)
    assert sorted(late["n"].to_pylist()) == list(range(len(keys)))
    pieces = ss.testing.arrivals(table, rows=rows, **order)
    assert pa.concat_tables([one.table for one in pieces]).equals(late)
    if disorder == 0:
        assert late["t"].to_pylist() == sorted(late["t"].to_pylist())
    ended: set[str] = set()
    frontier: dict[str, int] = {}
    last: dict[tuple[int, str], int] = {}
    for piece in pieces:
        for row in piece.table.to_pylist():
            assert row["s"] not in ended
            assert row["t"] >= frontier.get(row["s"], 0)
            assert (
                last.get((row["t"], row["s"]), -1) < row["n"]
            )  # those of one key keep their order
            last[row["t"], row["s"]] = row["n"]
        for source, to in piece.frontiers.items():
            if to is None:
                ended.add(source)
            else:
                frontier[source] = to.as_py()
    assert ended == {source for _, source in keys}


@ss.operator(event={"n": int}, emits={"n": int})
def numbers(event: Any, emit: Any) -> None:
    emit(event.n)


@given(
    keys=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=30),
    disorder=st.integers(0, 40),
    rows=st.integers(1, 12),
    seed=st.integers(0, 9),
)
@example(keys=[(1, 1), (2, 1), (1, 2)], disorder=0, rows=1, seed=0)
@example(keys=[(1, 2), (2, 2), (1, 1)], disorder=0, rows=1, seed=0)
@hypothesis_settings(max_examples=100, deadline=None)
def test_arrivals_are_never_late_where_no_sources_are_declared(
    keys: list[tuple[int, int]], disorder: int, rows: int, seed: int
) -> None:
    table = {
        "t": pa.array([time for time, _ in keys], pa.int64()),
        "s": pa.array([source for _, source in keys], pa.int64()),
        "n": pa.array(range(len(keys)), pa.int64()),
    }
    order: dict[str, Any] = {"order_by": "t", "source": "s"}
    with ss.Engine(numbers, threads=1, horizon=0) as engine:
        for arrival in ss.testing.arrivals(table, **order, disorder=disorder, rows=rows, seed=seed):
            arrival.submit_to(engine)
        found = engine.poll(timeout=None)["n"].to_pylist()
    assert found == sorted(range(len(keys)), key=lambda at: keys[at])


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ss.ConfigurationError, match="the table has no column 'time'; it has item"):
        ss.testing.arrivals(EVENTS, order_by="time")


# ---- what is imported ----


def test_nothing_but_check_is_had_without_the_extra() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = sys.modules['pytest'] = None\n"
        "import specstream as ss; ss.testing.check; ss.testing.arrivals\n"
        "for name in ('streams', 'spark_session'):\n"
        "    try: getattr(ss.testing, name)\n"
        "    except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        'specstream.testing.streams needs hypothesis: pip install "specstream[testing]"',
        'specstream.testing.spark_session needs pytest: pip install "specstream[testing]"',
    ]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ss.testing.Setting(batches=-1), "batches=-1; expected an integer from 0 to 65536"),
        (lambda: ss.testing.Setting(batches=cast(Any, "2")), "batches='2'; expected an integer"),
        (lambda: ss.testing.Setting({"seed": 5}), "the option seed is the same for all engines"),
        (lambda: ss.testing.Setting(cast(Any, 3)), "options=3; expected a dict"),
    ],
)
def test_a_setting_that_cannot_be_is_told(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=told):
        make()


@pytest.mark.parametrize(("settings", "told"), [([], "settings is empty"), (["a"], "settings='a'")])
def test_settings_are_looked_at(settings: Any, told: str) -> None:
    class Nothing(ss.State):
        n = ss.scalar(int)

    @ss.operator(state=Nothing, event={"x": int}, emits={"x": int})
    def copies(state, event, emit):
        emit(event.x)

    with pytest.raises(ss.ConfigurationError, match=told):
        ss.testing.check(copies, {"x": [1]}, settings=settings)


@pytest.mark.spark
def test_the_fixture_gives_tests_a_session_that_ends_with_them(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from specstream.testing import spark_session\n")
    (tmp_path / "test_it.py").write_text(
        "def test_one(spark_session):\n"
        "    assert spark_session.range(3).count() == 3\n"
        "def test_two(spark_session):\n"
        "    assert spark_session.conf.get('spark.sql.session.timeZone') == 'UTC'\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, timeout=300, capture_output=True, text=True, cwd=tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


class _Silence(ss.State):
    timers = ss.timers(str)
    missing = ss.set(str)


def _is_silent(state, timer, emit):
    state.missing.add(timer.key)
    emit(timer.key)


@ss.operator(state=_Silence, event={"user": str}, emits={"user": str}, on_timer=_is_silent)
def heartbeat(state, event, emit):
    state.missing.discard(event.user)
    state.timers.set(event.user, event.timestamp + 15)


def test_input_ends_for_timers_in_every_setting() -> None:
    events = {"user": ["a", "b", "a", "c"], "time": [0, 5, 30, 31]}
    run = ss.testing.check(heartbeat, events, order_by="time")
    assert run.output["user"].to_pylist() == ["a", "b", "a", "c"]


def _may_fail(state, timer, emit):
    state.missing.add(timer.key)
    emit(timer.key)
    if timer.key == "b":
        raise KeyError("b")


def test_timers_that_fail_are_set_aside_in_every_setting() -> None:
    declared: dict[str, Any] = {"event": {"user": str}, "emits": {"user": str}}
    made = ss.operator(state=_Silence, on_timer=_may_fail, **declared)(heartbeat.function)
    events = {"user": ["a", "b", "a", "c"], "time": [0, 5, 30, 31]}
    run = ss.testing.check(made, events, order_by="time")
    assert run.output["user"].to_pylist() == ["a", "a", "c"]
    assert run.failed_events is not None
    assert run.failed_events["timer"].to_pylist() == ["'b', set for 20"]


def test_input_may_go_on_after_the_table() -> None:
    events = {"user": ["a", "b", "a", "c"], "time": [0, 5, 30, 31]}
    run = ss.testing.check(heartbeat, events, order_by="time", end=False)
    assert run.output["user"].to_pylist() == ["a", "b"]
    with pytest.raises(ss.ConfigurationError, match=r"^end='no'; expected True or False"):
        ss.testing.check(heartbeat, events, order_by="time", end="no")  # type: ignore[arg-type]


class Entry(ss.Record):
    count: int = 0


class Held(ss.State):
    by_name = ss.dict(str, int)
    entries = ss.dict(str, Entry)
    seen = ss.set(str)
    few = ss.dict(int, int, limit=1)
    items = ss.list(int)
    last = ss.deque(int)
    queue = ss.priority_queue(int)
    cells = ss.array(int, 3)


def value_of(values, key):
    return values[key]


def raises_by_form(state, event, emit):
    match event.form:
        case 0:
            emit(state.by_name[event.name])
        case 1:
            del state.by_name[event.name]
        case 2:
            state.by_name[event.name] += 1
        case 3:
            emit(state.by_name.pop(event.name))
        case 4:
            emit(state.by_name.popitem()[1])
        case 5:
            emit(state.entries[event.name].count)
        case 6:
            state.entries[event.name].count += 1
        case 7:
            state.seen.remove(event.name)
        case 8:
            emit(event.form if state.seen.pop() == event.name else 0)
        case 9:
            emit(state.items[event.form])
        case 10:
            state.items.remove(9)
        case 11:
            emit(state.last.popleft())
        case 12:
            emit(state.queue.pop())
        case 13:
            emit(state.cells[event.form])
        case 14:
            emit(value_of(state.by_name, event.name))
        case 15:
            emit(max(state.items))
        case 16:
            state.few[1] = 1
            state.few[2] = 2
        case 17:
            try:
                emit(value_of(state.by_name, event.name))
            except KeyError as error:
                raise ValueError(event.name) from error
        case 18:
            try:
                state.seen.remove(event.name)
            except KeyError:
                state.last.pop()
        case 19:
            state.by_name[event.name] = 1
            del state.by_name[event.name]
            emit(state.by_name[event.name])
        case _:
            emit(event.form)


def test_failed_events_have_the_traceback_of_the_sequential_run() -> None:
    columns = {"form": int, "name": str}
    operator = ss.operator(state=Held, event=columns, emits={"n": int})(raises_by_form)
    events = {"form": [*range(21)] * 2, "name": ["a", "b"] * 21}
    ss.testing.check(operator, events)
    with ss.Engine(operator, errors="side") as engine:
        engine.process(events)
        table = engine.failed_events()
    assert table is not None
    failed = table.to_pylist()
    assert [row["form"] for row in failed] == [*range(20)] * 2
    for row in failed:
        frames = [line for line in row["traceback"].splitlines() if line.startswith("  File ")]
        assert frames
        assert all(f'"{__file__}"' in line for line in frames)
