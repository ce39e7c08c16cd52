"""An engine that begins with a snapshot of another one: what was told early before is void."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

import specstream as ss
from specstream.engine.snapshot import Snapshot
from specstream.engine.untold_finals import UntoldFinals


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int}, emits={"x": int, "count": int})
def numbered(state: Any, event: Any, emit: Any) -> None:
    state.count += 1
    emit(event.x, state.count)


def engine_of(**options: Any) -> ss.Engine:
    return ss.Engine(numbered, sources=["a", "b"], early=True, threads=2, horizon=4, **options)


def restarted(how: str, engine: ss.Engine) -> ss.Engine:
    """As after a crash, or the same engine."""
    snapshot = engine.snapshot()
    if how == "the same":
        engine.restore(snapshot)
        return engine
    engine.close()
    if how == "restore=":
        return engine_of(restore=snapshot)
    engine = engine_of()
    engine.restore(snapshot)
    return engine


@pytest.mark.parametrize("how", ["restore=", "restore()", "the same"])
@pytest.mark.parametrize("answers", [1, 3])
def test_the_log_of_all_answers_has_the_final_rows(how: str, answers: int) -> None:
    engine = engine_of()
    log = []
    for number in range(answers):
        engine.submit_event(10 + number, "a", x=number)
        log.append(engine.poll_early(timeout=None))
    for late in (5, 6):
        engine = restarted(how, engine)
        engine.submit_event(late, "b", x=1000 + late)  # before all that was told
        log.append(engine.poll_early(timeout=None))
        assert log[-1].reset
    for source in ("a", "b"):
        engine.advance(source, 100)
    rows = engine.poll(timeout=None)
    log.append(engine.poll_early(timeout=None))
    engine.close()
    versions = [one.version for one in log]
    assert versions == sorted(versions)
    assert ss.early.latest(log).select(["x", "count"]).to_pylist() == rows.to_pylist()
    assert not log[-1].reset


def test_a_snapshot_of_an_engine_that_told_nothing_is_that_of_any_engine() -> None:
    with engine_of() as early, ss.Engine(numbered, sources=["a", "b"]) as other:
        for engine in (early, other):
            engine.submit_event(10, "a", x=1)
        snapshot = early.snapshot()
        assert snapshot == other.snapshot()
        early.poll_early(timeout=None)
    with engine_of(restore=snapshot) as engine:
        assert not engine.poll_early(timeout=None).reset


def test_a_batch_before_the_first_question_keeps_the_reset() -> None:
    with engine_of() as engine:
        engine.submit_event(10, "a", x=1)
        told = engine.poll_early(timeout=None)
        snapshot = engine.snapshot()
    with engine_of(restore=snapshot) as engine:
        engine.advance("a", 50)
        engine.advance("b", 50)
        engine.poll(timeout=None)
        engine.process({"x": [2]})
        answer = engine.poll_early(timeout=None)
        assert answer.reset
        assert answer.version > told.version


class Named(ss.State):
    count = ss.scalar(int)
    last = ss.dict(str, int)
    due = ss.timers(int)


def ring(state: Any, timer: Any, emit: Any) -> None:
    emit("ring", timer.key)


@ss.operator(state=Named, event={"name": str}, emits={"text": str, "count": int}, on_timer=ring)
def named(state: Any, event: Any, emit: Any) -> None:
    state.count += 1
    state.last[event.name] = state.count
    state.due.set(state.count, event.timestamp + 3)
    emit(f"{event.name}!", state.count)
    if state.count % 2:
        emit(event.name, -state.count)


@pytest.mark.parametrize("how", ["restore=", "restore()", "the same"])
@pytest.mark.parametrize("seed", range(6))
def test_what_became_final_before_the_snapshot_is_told_behind_it(how: str, seed: int) -> None:
    """Random histories: whether final rows were polled, told, or neither when it is taken."""
    rng = random.Random(seed)
    sources: list[Any] = ["a", "b"] if seed % 2 else [7, 3]

    def made(**options: Any) -> ss.Engine:
        return ss.Engine(named, early=True, threads=2, horizon=4, **options)

    engine = made(sources=sources)
    log, polled = [engine.poll_early(timeout=None)], []
    reached = dict.fromkeys(sources, 0)
    for number in range(60):
        what, source = rng.choice("eeeeaapyr"), rng.choice(sources)
        if what == "e":
            at = reached[source] + rng.randrange(1, 4)
            engine.submit_event(at, source, name=f"name {seed} {number}")
        elif what == "a":
            reached[source] += rng.randrange(4)
            engine.advance(source, reached[source])
        elif what == "p":
            polled += engine.poll(timeout=None).to_pylist()
        elif what == "y":
            log.append(engine.poll_early(timeout=None))
        else:
            snapshot = engine.snapshot()
            if how == "the same":
                engine.restore(snapshot)
            else:
                engine.close()
                engine = made(restore=snapshot) if how == "restore=" else made(sources=sources)
                if how == "restore()":
                    engine.restore(snapshot)
    for source in sources:
        engine.advance(source)
    polled += engine.poll(timeout=None).to_pylist()
    log.append(engine.poll_early(timeout=None))
    engine.close()
    assert ss.early.latest(log).select(["text", "count"]).to_pylist() == polled
    assert {row["change"] for row in ss.early.latest(log).to_pylist()} == {"final"}


def test_early_rows_of_another_operator_are_refused_and_nothing_changes() -> None:
    with engine_of() as engine:
        engine.poll_early(timeout=None)
        engine.submit_event(1, "a", x=5)
        engine.advance("a", 9)
        engine.advance("b", 9)
        engine.poll(timeout=None)
        snapshot = engine.snapshot()
    saved = Snapshot.as_saved(snapshot, "it")
    untold = UntoldFinals.read(saved.early_rows, numbered.emits.row_words)
    assert untold is not None
    assert untold.names == ["a"]
    narrow = dataclasses.replace(untold, rows=untold.rows[:, :-1]).to_bytes()
    wrong = [narrow, saved.early_rows[:-20], b"no stream"]
    for early_rows in wrong:
        crafted = dataclasses.replace(saved, early_rows=early_rows).to_bytes()
        with pytest.raises(ss.SnapshotError, match="the early results"):
            engine_of(restore=crafted)
    with engine_of() as engine:
        engine.submit_event(1, "a", x=5)
        with pytest.raises(ss.SnapshotError, match="the early results"):
            engine.restore(crafted)
        assert engine.stats.pending == 1
