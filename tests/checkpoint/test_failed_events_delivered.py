"""Failed events reach their sink exactly once, whatever batch comes again and whenever the process
dies; and a batch of which too many fail leaves no trace."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.checkpoint import failing_driver
from support.checkpoint.failing_driver import life
from support.checkpoint.fed import Fed
from support.commands import invoke as run_command

import specstream as ss
from specstream.checkpoint.inspect.difference import first_difference, first_difference_of_states
from specstream.checkpoint.inspect.replay import replay

CRASHES = (
    ("before-write", 2),
    ("between-sinks", 4),  # the emitted rows are there, the failed events are not
    ("before-commit", failing_driver.BATCHES),  # in finish()
)


@pytest.mark.slow
def test_killed_at_any_step_each_failed_event_is_in_the_sink_once(tmp_path: Path) -> None:
    for step, batch_id in CRASHES:
        assert life(tmp_path, f"{step}@{batch_id}") == -signal.SIGKILL
    assert life(tmp_path) == 0
    expected = failing_driver.sequential()
    assert expected.failed_events is not None
    assert expected.failed_events["timer"].null_count < expected.failed_events.num_rows
    for sink, wanted in (("out", expected.output), ("failed", expected.failed_events)):
        # Numbers of events are those of their arrival.
        rows = failing_driver.found(tmp_path / sink).drop(["sequence"])
        assert first_difference(wanted.drop(["sequence"]), rows) is None
    with ss.Engine(
        failing_driver.sums, restore=(tmp_path / "final").read_bytes(), horizon=0
    ) as engine:
        assert first_difference_of_states(expected.state, engine.state) is None
    found = replay(tmp_path / "recorded", failing_driver.BATCHES - 1)
    assert found.difference is None
    assert found.failed is not None


class Count(ss.State):
    n = ss.scalar(int)
    others = ss.array(int, 20_000)  # so that an increment is smaller than a full file


@ss.operator(state=Count, event={"x": int}, emits={"x": int, "place": int})
def odd(state, event, emit):
    state.n += 1
    emit(event.x, state.n)
    if event.x % 3 == 2:
        raise ValueError(f"{event.x} leaves two")


class Kept:
    """A sink that keeps what it gets, by batch, and every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[int]]] = []

    def __call__(self, rows: pa.Table, batch_id: int) -> None:
        self.calls.append((batch_id, rows["x"].to_pylist()))


def fed(engine: ss.Engine, **options: Any) -> tuple[Fed, Kept, Kept]:
    to, errors = Kept(), Kept()
    return Fed(engine, to=to, errors_to=errors, **options), to, errors


def numbers(*xs: int) -> pa.Table:
    return pa.table({"x": pa.array(xs, pa.int64())})


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_batch_that_comes_again_brings_the_same_failed_events(
    checkpoint: bool, tmp_path: Path
) -> None:
    where = {"checkpoint": tmp_path} if checkpoint else {}
    with ss.Engine(odd, errors="side", horizon=0) as engine:
        feed, to, errors = fed(engine, **where)
        for batch_id, rows in ((0, numbers(1, 2)), (0, numbers(1, 2)), (1, numbers(3))):
            feed.send(batch_id, rows)
        assert to.calls == [(0, [1]), (0, [1]), (1, [3])]
        assert errors.calls == [(0, [2]), (0, [2])]
        assert engine.failed_events() is None
        assert (feed.stats.failed, engine.stats.failed_events) == (1, 1)
    if checkpoint:
        feed.checkpoint.close()
        with ss.Engine(odd, errors="side", horizon=0) as engine:
            feed, to, errors = fed(engine, **where)
            feed.send(2, numbers(5, 8, 9))
            feed.checkpoint.close()
        with ss.Engine(odd, errors="side", horizon=0) as engine:
            feed, to, errors = fed(engine, **where)
            feed.send(2, numbers(6))  # it was applied: the record answers
            assert (to.calls, errors.calls) == ([(2, [9])], [(2, [5, 8])])
            feed.checkpoint.close()


@pytest.mark.parametrize("checkpoint", [True, False])
@pytest.mark.parametrize("watermark", [None, 0])
def test_above_the_limit_the_batch_fails_and_leaves_no_trace(
    watermark: int | None, checkpoint: bool, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"checkpoint": tmp_path} if checkpoint else {}
    options |= {} if watermark is None else {"watermark": watermark, "order_by": "x"}
    with ss.Engine(odd, errors="side", horizon=0) as engine:
        feed, _, errors = fed(engine, errors_limit=2, **options)
        feed.send(0, numbers(2, 3, 5, 6))
        before = engine.snapshot()
        with pytest.raises(ss.FailedEventsError) as caught:
            feed.send(1, numbers(7, 8, 11, 12, 14, 17, 20))
        assert (caught.value.count, caught.value.limit) == (3, 2)
        assert str(caught.value).startswith("operator 'odd', batch 1: 3 event(s) have failed, and")
        assert "ValueError: 8 leaves two" in str(caught.value)
        assert isinstance(caught.value.__cause__, ValueError)
        assert engine.snapshot() == before
        assert engine.stats.failed_events == feed.stats.failed == len(errors.calls[0][1])
        if checkpoint:
            found = replay(tmp_path)
            assert (found.batch_id, found.difference) == (1, None)
            assert isinstance(found.error, ss.FailedEventsError)
        feed.send(1, numbers(7, 8, 11, 12))  # as many as may fail
        # With a watermark an event waits until another time has come.
        assert [x for _, xs in errors.calls for x in xs] == [2, 5, 8, 11]
        if checkpoint:
            feed.checkpoint.close()


def test_without_a_sink_the_checkpoint_keeps_them_for_who_asks_the_engine(tmp_path: Path) -> None:
    for batch_id in range(3):
        with ss.Engine(odd, errors="side", horizon=0) as engine:
            feed = Fed(engine, to=Kept(), checkpoint=tmp_path)
            feed.send(batch_id, numbers(3 * batch_id + 2))
            feed.checkpoint.close()
    with ss.Engine(odd, errors="side", horizon=0) as engine:
        feed = Fed(engine, to=Kept(), checkpoint=tmp_path)
        failed = engine.failed_events()
        assert failed is not None
        assert failed["x"].to_pylist() == [2, 5, 8]
        feed.checkpoint.close()


def test_failed_events_recorded_for_a_sink_need_it_again(tmp_path: Path) -> None:
    with ss.Engine(odd, errors="side", horizon=0) as engine:
        feed, _, _ = fed(engine, checkpoint=tmp_path)
        feed.send(0, numbers(2))
        feed.checkpoint.close()
    with ss.Engine(odd, errors="side", horizon=0) as engine:
        feed = Fed(engine, to=Kept(), checkpoint=tmp_path)
        with pytest.raises(ss.ConfigurationError, match=r"1 failed row.*give errors_to="):
            feed.send(0, numbers(2))
        feed.checkpoint.close()


@pytest.mark.parametrize("option", ["errors_to", "errors_limit"])
def test_an_engine_that_sets_nothing_aside_takes_no_such_option(option: str) -> None:
    given: dict[str, Any] = {option: print if option == "errors_to" else 3}
    with ss.Engine(odd, horizon=0) as engine:
        with pytest.raises(ss.ConfigurationError, match=rf'{option}=.*errors="side"'):
            Fed(engine, to=Kept(), **given)
        with pytest.raises(ss.ConfigurationError, match=option):
            Fed(engine, to=Kept(), **{option: -1})


def test_a_replay_shows_the_failed_events(tmp_path: Path) -> None:
    with ss.Engine(odd, errors="side", horizon=0) as engine:
        feed, _, _ = fed(engine, checkpoint=tmp_path, keep_batches=2)
        feed.send(0, numbers(1, 2, 3, 5))
        feed.checkpoint.close()
    found = replay(tmp_path, 0)
    assert found.difference is None
    assert (found.events, found.done) == (4, 4)
    assert found.failed is not None
    assert found.failed["message"].to_pylist() == ["2 leaves two", "5 leaves two"]
    shown = run_command("replay", str(tmp_path))
    assert shown.exit_code == 0
    assert "4 of 4 events applied, 2 of them failed, 2 rows" in shown.stdout.replace("\n", " ")
    assert "5 leaves two" in shown.stdout
    report = json.loads(run_command("replay", str(tmp_path), "--json").stdout)
    assert report["failed"] == 2
    assert [one["x"] for one in report["failed_events"]] == [2, 5]
    assert report["identical"]

    @ss.operator(state=Count, event={"x": int}, emits={"x": int, "place": int}, name="odd")
    def mended(state, event, emit):
        state.n += 1
        emit(event.x, state.n)
        if event.x % 3 == 2:
            raise ValueError(f"{event.x} is wrong")

    other = replay(tmp_path, 0, mended)
    assert str(other.difference).startswith("failed events, row 0, column 'message': recorded")


class Names(ss.State):
    n = ss.scalar(int)


@ss.operator(state=Names, event={"name": str}, emits={})
def named(state, event, emit):
    state.n += 1
    raise KeyError(event.name)


def test_an_exception_made_of_a_text_has_it_when_the_batch_is_undone() -> None:
    """The batch has brought the text, which the engine forgets with it."""
    with ss.Engine(named) as engine:
        fed = Fed(engine, to=Kept())
        with pytest.raises(KeyError) as caught:
            fed.apply(0, pa.table({"name": ["ada"]}))
        assert caught.value.args == ("ada",)
        assert str(caught.value) == "'ada'"
