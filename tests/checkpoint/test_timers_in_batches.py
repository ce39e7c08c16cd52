"""Timers across micro-batches: with a watermark and without, over a restart, to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.commands import invoke
from support.engine.timed import Model, cuts, stream

import specstream as ss
from specstream.checkpoint.inspect.replay import replay
from specstream.checkpoint.run.batch import Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.stream_options import StreamOptions


class State(ss.State):
    timers = ss.timers(str)
    seen = ss.dict(str, int)


def sees(state, event, emit):  # type: ignore[no-untyped-def]
    state.seen[event.user] = state.seen.get(event.user, 0) + 1
    state.timers.set(event.user, event.timestamp + event.wait)


def is_silent(state, timer, emit):  # type: ignore[no-untyped-def]
    emit(timer.key, timer.timestamp, state.seen[timer.key])
    if state.seen[timer.key] > 3:
        state.timers.set(timer.key, timer.at + 4)
    state.seen[timer.key] = 0


sessions = ss.operator(
    state=State,
    event={"user": str, "wait": int},
    emits={"user": str, "time": int, "events": int},
    on_timer=is_silent,
)(sees)


def expected(table: pa.Table, until: int | None) -> list[tuple[Any, ...]]:
    model = Model(sees, is_silent, seen={})
    for sequence, row in enumerate(table.select(["t", "user", "wait"]).to_pylist()):
        model.event(row.pop("t"), 0, sequence, **row)
    if until is not None:
        model.time(until)
    model.end()
    return [row[3:] for row in model.rows]


@pytest.mark.parametrize("watermark", [None, 6])
def test_runs_over_a_restart(tmp_path: Path, watermark: int | None) -> None:
    table = stream(1, 200)
    rng = np.random.default_rng(1)
    came = table
    if watermark is not None:
        # Out of order, by less than the watermark.
        late = np.argsort(table["t"].to_numpy() + rng.uniform(0, watermark, len(table)))
        came = table.take(pa.array(late))
        table = came.take(pa.array(np.argsort(came["t"].to_numpy(), kind="stable")))
    batches: dict[int, pa.Table] = {}
    options = StreamOptions(
        to=lambda rows, batch_id: batches.__setitem__(batch_id, rows),
        order_by="t",
        watermark=watermark,
        checkpoint=str(tmp_path),
        keep_batches=20,
    )
    pieces = cuts(rng, len(came), 6)
    for first in (0, 3):
        with ss.Engine(sessions, threads=2, horizon=4, chunk=2) as engine:
            runner = BatchRunner(engine, options)
            for number in range(first, first + 3):
                begin, end = pieces[number]
                runner.run(Batch(number, "q", came.slice(begin, end - begin)))
            if first == 3:
                runner.finish()
                runner.finish()  # which is the same
            runner.close()
            assert runner.checkpoint is not None
            runner.checkpoint.close()
    reached = None if watermark is None else int(table["t"][-1].as_py()) - watermark
    found = [tuple(row.values()) for at in sorted(batches) for row in batches[at].to_pylist()]
    assert found == expected(table, reached)
    # And what the plain function makes of each batch, that of the end included.
    for number in range(7):
        again = replay(str(tmp_path), number)
        assert again.error is None
        assert again.is_recorded
        assert again.difference is None
        assert again.output == batches[number]
    assert again.output.num_rows > 0
    assert (again.waiting, again.events > 0) == (0, watermark is not None)


@pytest.mark.parametrize("source", ["from", "user"])
@pytest.mark.parametrize("keys", [True, False])
def test_the_rows_of_the_end_have_the_columns_of_those_before(
    tmp_path: Path, keys: bool, source: str
) -> None:
    """Also where who ends it has run no batch."""
    batches: list[pa.Table] = []
    options = StreamOptions(
        to=lambda rows, batch_id: batches.append(rows),
        order_by="t",
        source=source,
        checkpoint=str(tmp_path),
        keep_batches=2,
    )
    table = pa.table(
        {
            "t": pa.array([1, 40], pa.timestamp("s", "UTC")),
            "from": ["a", "b"],
            "user": ["x", "y"],
            "wait": [5, 6],
        }
    )
    for is_end in (False, True):
        with ss.Engine(sessions, keys=keys) as engine:
            runner = BatchRunner(engine, options)
            if is_end:
                runner.finish()
            else:
                runner.run(Batch(0, "q", table))
            runner.close()
            assert runner.checkpoint is not None
            runner.checkpoint.close()
    first, *_, last = batches
    assert (first["user"].to_pylist(), last["user"].to_pylist()) == (["x"], ["y"])
    assert last.schema == first.schema
    if keys:
        assert first.schema.field("timestamp").type == table.schema.field("t").type
    for batch in range(2):
        assert replay(str(tmp_path), batch).difference is None


def test_a_replay_names_the_timers_that_rows_are_of(tmp_path: Path) -> None:
    options = StreamOptions(
        to=lambda rows, batch_id: None, order_by="t", checkpoint=str(tmp_path), keep_batches=2
    )
    times = pa.array([1, 10, 40], pa.timestamp("s", "UTC"))
    table = pa.table({"t": times, "user": ["x", "y", "z"], "wait": [5, 20, 2]})
    with ss.Engine(sessions) as engine:
        runner = BatchRunner(engine, options)
        runner.run(Batch(0, "q", table))
        runner.finish()
        runner.close()
        assert runner.checkpoint is not None
        runner.checkpoint.close()
    for batch, expected in ((0, {0: ("x", 6), 1: ("y", 30)}), (1, {0: ("z", 42)})):
        again = replay(str(tmp_path), batch)
        assert again.places.tolist() == [-1] * len(expected)
        found = {row: (key, getattr(at, "second", at)) for row, (key, at) in again.timers.items()}
        assert found == expected
    result = invoke("replay", tmp_path, "--batch", 0)
    assert result.exit_code == 0, result.output
    assert "timer 'x' at 1970-01-01 00:00:06+00:00" in result.stdout
    assert "-9223" not in result.stdout
    assert result.stderr == ""  # which is no terminal


class Divided(ss.State):
    timers = ss.timers(int)


def divides(state, timer, emit):  # type: ignore[no-untyped-def]
    emit(100 // timer.key)


def sets(state, event, emit):  # type: ignore[no-untyped-def]
    state.timers.set(event.n, event.timestamp + 100)


@pytest.mark.parametrize("watermark", [None, 6])
def test_an_end_that_fails_can_be_replayed(tmp_path: Path, watermark: int | None) -> None:
    operator = ss.operator(state=Divided, event={"n": int}, emits={"part": int}, on_timer=divides)(
        sets
    )
    options = StreamOptions(
        to=lambda rows, batch_id: None,
        order_by="t",
        watermark=watermark,
        checkpoint=str(tmp_path),
    )
    with ss.Engine(operator) as engine:
        runner = BatchRunner(engine, options)
        runner.run(Batch(0, "q", pa.table({"t": [1, 2, 3], "n": [4, 0, 5]})))
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                runner.finish()
        runner.close()
    found = replay(str(tmp_path), 1)
    assert isinstance(found.error, ZeroDivisionError)
    assert found.raised is not None
    assert (found.raised.type, found.difference) == ("ZeroDivisionError", None)
    assert found.output["part"].to_pylist() == [25]
    # Which was mended since:
    mended = ss.operator(state=Divided, event={"n": int}, emits={"part": int}, on_timer=mends)(sets)
    found = replay(str(tmp_path), 1, mended)
    assert found.error is None
    assert found.output["part"].to_pylist() == [25, -1, 20]
    assert found.state.timers == {14: 102, 10: 103, 15: 104}  # which wait on


def mends(state, timer, emit):  # type: ignore[no-untyped-def]
    emit(-1 if timer.key == 0 else 100 // timer.key)
    state.timers.set(timer.key + 10, timer.at + 1)


def test_finish_needs_something_that_waits() -> None:
    @ss.operator(state=_Count, event={"x": int})
    def counts(state, event, emit):  # type: ignore[no-untyped-def]
        state.count += 1

    with ss.Engine(counts) as engine:
        runner = BatchRunner(engine, StreamOptions(to=lambda rows, batch_id: None))
        with pytest.raises(ss.ConfigurationError, match="without watermark="):
            runner.finish()


class _Count(ss.State):
    count = ss.scalar(int)
