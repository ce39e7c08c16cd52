"""An engine that begins with a snapshot of another one: what was told early before is void."""

from __future__ import annotations

from typing import Any

import pytest

import specstream as ss


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
