"""Timers of vertices: when they fire, what runs then, what is left when one raises or is kept."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.engine.timed import stream

import specstream as ss
from specstream.checkpoint.inspect.replay import replay
from specstream.checkpoint.run.batch import Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.stream_options import StreamOptions

CLICK = {"user": str, "wait": int}
NOTE = {"user": str, "what": str, "at": int}


class Sessions(ss.State):
    timers = ss.timers(str)
    clicks = ss.dict(str, int)


def ends(state, timer, emit):
    emit(timer.key, "ends", timer.at)
    emit(timer.key, "clicks", state.clicks.pop(timer.key))


@ss.operator(state=Sessions, event=CLICK, emits=NOTE, on_timer=ends)
def sessions(state, event, emit):
    state.clicks[event.user] = state.clicks.get(event.user, 0) + 1
    state.timers.set(event.user, event.timestamp + event.wait)


class Reminders(ss.State):
    timers = ss.timers((str, int))
    sent = ss.scalar(int)


def reminds(state, timer, emit):
    user, number = timer.key
    state.sent += 1
    emit(user, "remind", timer.timestamp)
    if number > 1:
        state.timers.set((user, number - 1), timer.at + 2)


@ss.operator(
    state=Reminders,
    inputs={"click": {"user": str}, "note": {"user": str, "what": str}},
    emits=NOTE,
    on_timer=reminds,
)
def reminders(state, event, emit):
    if event.changed("note") and event.note.what == "ends":
        state.timers.set((event.note.user, 2), event.timestamp + 5)
        emit(event.note.user, "asleep", event.timestamp)
    if event.changed("click"):
        state.timers.cancel((event.click.user, 2))


class Seen(ss.State):
    rows = ss.scalar(int)


@ss.operator(
    state=Seen, event=NOTE, emits={"user": str, "what": str, "row": int, "now": int, "number": int}
)
def numbered(state, event, emit):
    state.rows += 1
    emit(event.user, event.what, state.rows, event.timestamp, event.sequence)


def pipeline(first: str = "sessions", second: str = "reminders") -> ss.Pipeline:
    p = ss.Pipeline("site")
    clicks = p.source("clicks", CLICK)
    notes = p.add(sessions, clicks, name=first)
    reminded = p.add(reminders, click=clicks, note=notes, name=second)
    p.sink("notes", notes)
    p.sink("numbered", p.add(numbered, reminded))
    return p


def table_of(*clicks: tuple[int, str, int]) -> pa.Table:
    times, users, waits = zip(*clicks, strict=True) if clicks else ((), (), ())
    return pa.table(
        {
            "t": pa.array(times, pa.int64()),
            "user": pa.array(users, pa.string()),
            "wait": pa.array(waits, pa.int64()),
        }
    )


def rows(output: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in output.to_pylist()]


def test_a_firing_runs_what_is_behind_its_vertex() -> None:
    clicks = table_of((0, "ann", 10), (30, "bob", 4))
    run = pipeline().run_sequential(clicks, order_by="t", keys=True, end=True)
    assert rows(run.output["notes"]) == [
        (10, None, 0, "ann", "ends", 10),
        (10, None, 0, "ann", "clicks", 1),
        (34, None, 3, "bob", "ends", 34),
        (34, None, 3, "bob", "clicks", 1),
    ]
    assert rows(run.output["numbered"]) == [
        (10, None, 0, "ann", "asleep", 1, 10, 0),
        (15, None, 1, "ann", "remind", 2, 15, 1),
        (17, None, 2, "ann", "remind", 3, 17, 2),
        (34, None, 3, "bob", "asleep", 4, 34, 3),
    ]
    # What a firing at the end sets stays.
    assert run.state.reminders.timers == {("bob", 2): 39}
    with ss.Engine(pipeline(), threads=2, keys=True) as engine:
        output = engine.process(clicks, order_by="t", end=True)
        assert all(output[name].equals(run.output[name]) for name in output)
        assert engine.state.reminders.timers == {("bob", 2): 39}
        assert engine.state.reminders.table("timers").to_pylist() == [
            {"key_0": "bob", "key_1": 2, "value": 39}
        ]
        assert engine.stats.timers == 4


def test_in_every_setting() -> None:
    clicks = stream(3, 80, users=4).select(["t", "user", "wait"])
    run = ss.testing.check(pipeline(), clicks, order_by="t")
    assert run.output["numbered"].num_rows > 20


# ---- which comes first ----


class Due(ss.State):
    timers = ss.timers(int)
    rows = ss.scalar(int)


def is_due(state, timer, emit):
    emit(timer.key)


@ss.operator(state=Due, event={"key": int, "at": int}, emits={"key": int}, on_timer=is_due)
def due(state, event, emit):
    state.rows += 1
    if event.key >= 0:
        state.timers.set(event.key, event.at)


class Order(ss.State):
    seen = ss.list(int)


@ss.operator(
    state=Order, inputs={name: {"key": int} for name in ("a", "b", "event")}, emits={"key": int}
)
def order(state, event, emit):
    if event.changed("a"):
        emit(100 + event.a.key)
    if event.changed("b"):
        emit(200 + event.b.key)
    if event.changed("event"):
        emit(event.event.key)


def two_of_a_kind() -> ss.Pipeline:
    """Two vertices of one operator, which set the same timers; the second is declared first."""
    p = ss.Pipeline("kind")
    events = p.source("events", {"key": int, "at": int})
    a = p.add(due, events, name="a")
    b = p.add(due, events, name="b")
    p.sink("order", p.add(order, a=a, b=b, event=events))
    return p


def test_of_one_time_the_first_vertex_comes_first_and_then_whatever_was_set_first() -> None:
    p = two_of_a_kind()
    events = {"key": [5, 3, 9, -1], "at": [7, 7, 4, 0], "t": [0, 1, 2, 7]}
    expected = [5, 3, 9, 109, 209, 105, 103, 205, 203, -1]
    run = p.run_sequential(events, order_by="t")
    assert run.output["key"].to_pylist() == expected
    for threads in (1, 2):
        with ss.Engine(p, threads=threads) as engine:
            # Due at 7: before the event at 7.
            assert engine.process(events, order_by="t")["key"].to_pylist() == expected
    ss.testing.check(p, events, order_by="t")


class Past(ss.State):
    timers = ss.timers(int)


def goes_on(state, timer, emit):
    emit(timer.key, timer.at, timer.timestamp)


@ss.operator(
    state=Past, event={"key": int}, emits={"key": int, "at": int, "now": int}, on_timer=goes_on
)
def past(state, event, emit):
    """Sets a timer for before what it is told of."""
    state.timers.set(event.key, event.timestamp - 4)


def behind() -> ss.Pipeline:
    p = ss.Pipeline("behind")
    first = p.add(due, p.source("events", {"key": int, "at": int}), name="first")
    p.sink("past", p.add(past, first))
    return p


def test_behind_a_firing_timers_may_be_set_for_the_past() -> None:
    events = {"key": [1, 2, -1], "at": [10, 11, 0], "t": [0, 1, 12]}
    expected = [(1, 6, 10), (2, 7, 11)]
    for end in (False, True):
        run = behind().run_sequential(events, order_by="t", end=end)
        assert rows(run.output) == expected
    ss.testing.check(behind(), events, order_by="t")


class Shares(ss.State):
    timers = ss.timers(int)
    fired = ss.scalar(int)


def share(state, timer, emit):
    state.fired += 1
    if timer.key == 4:
        state.timers.set(4, timer.at)
    emit(timer.key)


@ss.operator(state=Shares, event={"key": int, "at": int}, emits={"key": int}, on_timer=share)
def shares(state, event, emit):
    if event.key >= 0:
        state.timers.set(event.key, event.at)


@ss.operator(state=Seen, event={"key": int}, emits={"part": int})
def parts(state, event, emit):
    state.rows += 1
    emit(100 // event.key)


def sharing() -> ss.Pipeline:
    p = ss.Pipeline("sharing")
    shared = p.add(shares, p.source("events", {"key": int, "at": int}))
    p.sink("shared", shared)
    p.sink("parts", p.add(parts, shared))
    return p


@pytest.mark.parametrize(
    ("key", "kind", "vertex"), [(0, ZeroDivisionError, "parts"), (4, ValueError, "shares")]
)
def test_a_firing_that_raises_is_applied_nowhere(
    key: int, kind: type[Exception], vertex: str
) -> None:
    p = sharing()
    events = {"key": [5, key, 10], "at": [5, 6, 8], "t": [0, 1, 2]}
    more = {"key": [20, -1], "at": [0, 0], "t": [2, 20]}
    with pytest.raises(kind) as of_oracle:
        p.run_sequential(events, order_by="t", end=True)
    with ss.Engine(p, threads=2) as engine:
        with pytest.raises(kind) as of_engine:
            engine.process(events, order_by="t", end=True)
        for raised in (of_oracle, of_engine):
            assert raised.value.specstream_timer == (("shares", key), 6)  # type: ignore[attr-defined]
            assert raised.value.__notes__ == [
                f"raised by vertex {vertex!r} of pipeline 'sharing', path (0)",
                f"raised by operator 'sharing' when the timer {key} of vertex 'shares' fired, "
                "which was set for 6",
            ]
            partial = raised.value.specstream_partial  # type: ignore[attr-defined]
            assert partial.consumed == 3
            assert rows(partial.output["shared"]) == [(5,)]
            assert rows(partial.output["parts"]) == [(20,)]
        assert engine.state.shares.fired == engine.state.parts.rows == 1
        assert engine.state.shares.timers == {10: 8}
        output = engine.process(more, order_by="t")
        assert rows(output["shared"]) == [(20,), (10,)]  # it is for 0, though set later
        assert engine.state.shares.fired == engine.state.parts.rows == 3


# ---- the end ----


def at_the_end() -> tuple[ss.Pipeline, list[int]]:
    """Timers that wait at the end; the frontier has come to 9 before."""
    p = ss.Pipeline("end")
    keys = p.add(shares, p.source("events", {"key": int, "at": int}))
    p.sink("parts", p.add(parts, keys, name="parts"))
    p.sink("past", p.add(past, keys))
    return p, [10, 0, 5, 20]


@pytest.mark.parametrize("restored", [False, True])
def test_what_is_set_at_the_end_stays_whoever_looks_meanwhile(restored: bool) -> None:
    """One raises in the middle of the end: who goes on with it fires no more than the rest of it,
    though what was set at it, for times that the frontier had passed, is due by then."""
    p, keys = at_the_end()
    engine = ss.Engine(p, sources=["events"], threads=2)
    at = [11, 12, 13, 14]
    engine.submit({"key": keys, "at": at, "t": [1, 2, 3, 9]}, order_by="t", source="events")
    engine.advance("events", 9)
    engine.poll(timeout=None)
    engine.advance("events")
    snapshot = None
    if restored:
        # The timer that has raised is still set there, as nobody has heard of it.
        while engine.stats.timers < 2:
            engine.snapshot()
        snapshot = engine.snapshot()
    found: list[tuple[Any, ...]] = []
    if snapshot is not None:
        engine.close()
        engine = ss.Engine(p, sources=["events"], threads=1)
        engine.restore(snapshot)
        assert engine.state.shares.timers == {0: 12, 5: 13, 20: 14}
        assert engine.state.past.timers == {10: 7}
    with engine:
        with pytest.raises(ZeroDivisionError) as raised:
            engine.poll(timeout=None)
        assert raised.value.specstream_timer == (("shares", 0), 12)  # type: ignore[attr-defined]
        found += rows(raised.value.specstream_partial.output["parts"])  # type: ignore[attr-defined]
        found += rows(engine.poll(timeout=None)["parts"])
        assert found == [(10,), (20,), (5,)]
        assert engine.state.shares.timers == {}
        assert engine.state.past.timers == {10: 7, 5: 9, 20: 10}
        # They are due before the next event.
        engine.submit({"key": [-1], "at": [0], "t": [15]}, order_by="t", source="later")
        engine.advance("later", 15)
        output = engine.poll(timeout=None)
        assert rows(output["past"]) == [(10, 7, 14), (5, 9, 14), (20, 10, 14)]


# ---- kept ----


def run_in_parts(parts: list[pa.Table], *more: tuple[ss.Pipeline, Any]) -> dict[str, list[Any]]:
    """Each part by an engine of its own, which goes on from the one before."""
    found: dict[str, list[Any]] = {}
    snapshot = None
    for number, (part, (p, migrate)) in enumerate(zip(parts, more, strict=True), start=1):
        with ss.Engine(p, threads=2, keys=True) as engine:
            if snapshot is not None:
                engine.restore(snapshot, migrate=migrate)
            output = engine.process(part, order_by="t", end=number == len(parts))
            for name, of in output.items():
                found.setdefault(name, []).extend(rows(of))
            snapshot = engine.snapshot()
    return found


@pytest.fixture(scope="module")
def clicks() -> pa.Table:
    return stream(5, 90, users=5).select(["t", "user", "wait"])


@pytest.fixture(scope="module")
def expected(clicks: pa.Table) -> dict[str, list[Any]]:
    run = pipeline().run_sequential(clicks, order_by="t", keys=True, end=True)
    return {name: rows(of) for name, of in run.output.items()}


def test_snapshots_have_the_timers_of_each_vertex(clicks: pa.Table, expected: Any) -> None:
    cut = [clicks.slice(0, 31), clicks.slice(31, 30), clicks.slice(61)]
    p = pickle.loads(pickle.dumps(pipeline()))
    assert run_in_parts(cut, (pipeline(), None), (p, None), (pipeline(), None)) == expected


def test_timers_go_with_the_name_of_their_vertex(clicks: pa.Table, expected: Any) -> None:
    """A vertex that comes in front takes neither timers nor the clock."""

    def renamed(fields: dict[str, Any]) -> dict[str, Any]:
        return {name.replace("sessions.", "visits."): value for name, value in fields.items()}

    def with_another() -> ss.Pipeline:
        p = ss.Pipeline("site")
        clicks = p.source("clicks", CLICK)
        p.sink("also", p.add(sessions, clicks, name="also"))
        notes = p.add(sessions, clicks, name="visits")
        reminded = p.add(reminders, click=clicks, note=notes)
        p.sink("notes", notes)
        p.sink("numbered", p.add(numbered, reminded))
        return p

    visits = pipeline("visits")
    cut = [clicks.slice(0, 31), clicks.slice(31, 30)]
    found = run_in_parts(cut, (pipeline(), None), (visits, renamed))
    run = pipeline().run_sequential(clicks.slice(0, 61), order_by="t", keys=True, end=True)
    assert found == {name: rows(of) for name, of in run.output.items()}

    with ss.Engine(visits) as engine:
        engine.process(clicks.slice(0, 31), order_by="t")
        kept, snapshot = engine.state.to_dict(), engine.snapshot()
        rest = engine.process(clicks.slice(31), order_by="t")
    with ss.Engine(with_another(), keys=True) as engine:
        engine.restore(snapshot)
        assert engine.state.also.timers == {}
        assert engine.state.visits.timers == kept["visits.timers"] != {}
        assert engine.state.reminders.timers == kept["reminders.timers"] != {}
        output = engine.process(clicks.slice(31), order_by="t")
        assert rows(output["notes"].select(NOTE)) == rows(rest["notes"])
        # Those of three vertices are counted together, from where it was.
        numbers = output["also"]["sequence"].to_pylist() + output["notes"]["sequence"].to_pylist()
        assert min(numbers) >= 3


def test_a_savepoint_has_them(clicks: pa.Table) -> None:
    with ss.Engine(pipeline(), threads=2) as engine:
        engine.process(clicks.slice(0, 40), order_by="t")
        before, timers = engine.savepoint(), engine.state.reminders.timers.copy()
        first = engine.process(clicks.slice(40), order_by="t", end=True)
        engine.rollback(before)
        assert engine.state.reminders.timers == timers
        again = engine.process(clicks.slice(40), order_by="t", end=True)
        assert {name: rows(of) for name, of in again.items()} == {
            name: rows(of) for name, of in first.items()
        }


def test_begins_with_timers_that_it_is_given() -> None:
    initial = {"sessions.timers": {"ann": 3}, "sessions.clicks": {"ann": 8}}
    events = table_of((5, "bob", 9))
    run = pipeline().run_sequential(events, order_by="t", initial=initial)
    assert rows(run.output["notes"]) == [("ann", "ends", 3), ("ann", "clicks", 8)]
    with ss.Engine(pipeline(), initial=initial) as engine:
        assert rows(engine.process(events, order_by="t")["notes"]) == rows(run.output["notes"])


@pytest.mark.parametrize("watermark", [None, 3])
def test_micro_batches_over_a_restart_and_their_replay(
    tmp_path: Path, clicks: pa.Table, expected: Any, watermark: int | None
) -> None:
    got: dict[str, dict[int, pa.Table]] = {"notes": {}, "numbered": {}}
    options = StreamOptions(
        to={name: lambda of, n, name=name: got[name].update({n: of}) for name in got},  # type: ignore[misc]
        order_by="t",
        watermark=watermark,
        checkpoint=str(tmp_path),
        keep_batches=20,
    )
    for first in (0, 3):
        with ss.Engine(pipeline(), threads=2, horizon=4, chunk=2) as engine:
            runner = BatchRunner(engine, options)
            for number in range(first, first + 3):
                runner.run(Batch(number, "q", clicks.slice(15 * number, 15)))
            if first == 3:
                runner.finish()
            runner.close()
            assert runner.checkpoint is not None
            runner.checkpoint.close()
    for name, of in got.items():
        values = [row[3:] for row in expected[name]]
        found = [row for n in sorted(of) for row in rows(of[n])]
        if name == "notes":
            assert found == values
        else:  # numbers of events and firings are those of their arrival
            assert [row[:4] for row in found] == [row[:4] for row in values]
    fired = set()
    for number in range(7):
        again = replay(str(tmp_path), number)
        assert again.error is None
        assert again.is_recorded
        assert again.difference is None
        fired |= {key[0] for key, _ in again.timers.values()}
    assert fired == {"sessions", "reminders"}


# ---- told ----


def test_what_explains_it_names_the_timers_of_a_vertex() -> None:
    text = str(pipeline().explain())
    assert "def reminds(state, timer, emit):" in text
    assert "sessions.timers: timers[str, int]" in text
    assert "reminders.timers" in text
    fields = {field.name for field in pipeline().explain().fields}
    assert {"sessions.timers", "reminders.timers"} <= fields


def test_a_table_without_times_and_hooks_are_refused() -> None:
    with (
        ss.Engine(pipeline()) as engine,
        pytest.raises(ss.InputError, match=r"operator 'site' has timers.*order_by="),
    ):
        engine.process(table_of((0, "ann", 1)))
    with pytest.raises(ss.ConfigurationError, match="'site' has timers, and hooks get events"):
        ss.Engine(pipeline(), on_commit=print)


def test_before_a_phase_of_one_time_those_fire_that_are_due_by_then() -> None:
    p = ss.Pipeline("times", phases="time")
    clicks = p.source("clicks", CLICK)
    notes = p.add(sessions, clicks)
    p.sink("notes", p.add(reminders, click=clicks, note=notes))
    table = table_of((0, "ann", 10), (0, "bob", 7), (7, "bob", 1), (7, "cat", 9), (20, "ann", 5))
    expected = [
        ("bob", "asleep", 7),  # fired before the two of time 7
        ("bob", "asleep", 8),
        ("ann", "asleep", 10),
        ("bob", "remind", 13),
        ("ann", "remind", 15),
        ("bob", "remind", 15),
        ("cat", "asleep", 16),
        ("ann", "remind", 17),
        ("cat", "remind", 21),  # at the end; what it sets does not fire
        ("ann", "asleep", 25),
    ]
    run = p.run_sequential(table, order_by="t", end=True)
    assert rows(run.output) == expected
    with ss.Engine(p, sources=["web"], threads=2, horizon=4) as engine:
        engine.submit(table, order_by="t", source="web")
        engine.advance("web", 7)
        assert rows(engine.poll(timeout=None)) == expected[:1]
        assert engine.state.sessions.timers.copy() == {"ann": 10}
        snapshot = engine.snapshot()
    with ss.Engine(p, sources=["web"], restore=snapshot) as engine:
        engine.advance("web")
        assert rows(engine.poll(timeout=None)) == expected[1:]
