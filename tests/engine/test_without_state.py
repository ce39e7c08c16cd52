"""Operators without a state: alone, in pipelines, and on all that works with a state otherwise."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from support.checkpoint.fed import Fed

import specstream as ss
from specstream.checkpoint.inspect.replay import replay
from specstream.tuning.rivals import under_one_lock

TICK: dict[str, Any] = {"symbol": str, "price": float}
TABLE: dict[str, list[Any]] = {
    "symbol": ["a", "b", "c", "a"] * 20,
    "price": [1.0, 200.0, 300.0, 50.0] * 20,
}
LARGE = [{"symbol": one, "price": price} for one, price in (("b", 200.0), ("c", 300.0))] * 20


def at_least(event, least):
    return event.price >= least


@ss.operator(event=TICK, emits=TICK)
def large(event, emit, *, least=100.0):
    if at_least(event, least):
        emit(event.symbol, event.price)


@ss.operator(event={"symbol": str}, emits={"symbol": str, "draw": int})
def twice(event, emit):
    for k in range(2):
        emit(event.symbol.upper(), event.integer(0, 10, k))


@ss.operator(event={"price": float}, emits={"inverse": float})
def inverse(event, emit):
    emit(1.0 / (event.price - 300.0))


@ss.operator(inputs={"all": TICK, "large": TICK}, emits={"ratio": float, "is_large": bool})
def beside(event, emit):
    if event.known("large"):
        emit(event.all.price / event.large.price, event.changed("large"))


def pipeline() -> ss.Pipeline:
    p = ss.Pipeline("filters")
    ticks = p.source("ticks", TICK)
    found = p.add(large, ticks)
    p.sink("beside", p.add(beside, all=ticks, large=found))
    p.sink("large", found)
    p.sink("twice", p.add(twice, ticks))
    return p


@pytest.mark.parametrize("operator", [large, twice, pipeline()], ids=lambda one: str(one.name))
def test_it_is_as_sequential_everywhere(operator: Any) -> None:
    ss.testing.check(operator, TABLE)


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_it_runs_profiled_and_goes_on_from_a_snapshot(protocol: Any) -> None:
    options: dict[str, Any] = {"threads": 2, "horizon": 8, "chunk": 2, "protocol": protocol}
    with ss.Engine(large, profile=True, **options) as engine:
        assert engine.process(TABLE).to_pylist() == LARGE
        assert engine.state.to_dict() == {}
        assert engine.profile().operator == "large"
        snapshot = engine.snapshot()
    with ss.Engine(large, keys=True, **options) as engine:
        engine.restore(snapshot)
        assert engine.process(TABLE)["sequence"].to_pylist()[:2] == [81, 82]


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_pipeline_goes_on_from_a_snapshot(protocol: Any) -> None:
    p = pipeline()
    expected = p.run_sequential({name: of * 2 for name, of in TABLE.items()}).output
    with ss.Engine(p, threads=2, protocol=protocol, profile=True) as engine:
        first = engine.process(TABLE)
        snapshot = engine.snapshot()
    with ss.Engine(pickle.loads(pickle.dumps(p)), threads=2, protocol=protocol) as engine:
        engine.restore(snapshot)
        second = engine.process(TABLE)
        assert engine.state.beside.to_dict()["large.price"] == 300.0
        assert engine.state.large.to_dict() == {}
    for name, table in expected.items():
        assert first[name].to_pylist() + second[name].to_pylist() == table.to_pylist()


def test_a_pipeline_of_streams_alone_goes_on_from_a_snapshot() -> None:
    p = ss.Pipeline("raw")
    p.sink("all", p.source("ticks", TICK))
    with ss.Engine(p) as engine:
        assert engine.process(TABLE).num_rows == 80
        engine.restore(engine.snapshot())


def test_what_it_raises_is_raised() -> None:
    with ss.Engine(inverse, threads=2) as engine:
        with pytest.raises(ZeroDivisionError) as caught:
            engine.process({"price": [299.0, 300.0]})
        assert "row 1 of the batch in order: price=300.0" in caught.value.__notes__[-1]
        assert engine.process({"price": [301.0]})["inverse"].to_pylist() == [1.0]


def test_it_tells_what_it_reads() -> None:
    told = large.explain()
    assert told.columns_read == ("price", "symbol")
    assert not told.accesses
    assert "no event needs what another one changes" in str(told)
    of_pipeline = pipeline().explain()
    assert "all.price" in of_pipeline.vertices["beside"].columns_read
    vertices = pipeline().describe().vertices
    assert [one.name for one in vertices if one.several_rows] == ["twice"]
    assert {one.state_words for one in vertices} == {0}


def test_the_locked_rival_of_it() -> None:
    with ss.Engine(under_one_lock(large), threads=2, execution="locked") as engine:
        assert engine.process(TABLE).num_rows == 40


@pytest.mark.parametrize("operator", [large, pipeline()], ids=lambda one: str(one.name))
def test_a_checkpoint_of_it(operator: Any, tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table(TABLE)
    wanted = operator.run_sequential(table).output
    wanted = wanted["large"] if operator.sinks else wanted
    kept: list[Any] = []
    for batch_id in range(2):
        with ss.Engine(operator, threads=2) as engine:
            put = {one: lambda table, batch_id: None for one in operator.sinks}
            to: Any = {**put, "large": lambda table, batch_id: kept.append(table)}
            to = to if operator.sinks else to["large"]
            feed = Fed(engine, to=to, checkpoint=tmp_path / "kept", keep_batches=9)
            feed.send(batch_id, table.slice(40 * batch_id, 40))
            feed.close()
    assert pa.concat_tables(kept).equals(wanted)
    assert all(replay(tmp_path / "kept", n).difference is None for n in range(2))


class Count(ss.State):
    count = ss.scalar(int)


def counting(state, event, emit):
    state.count += 1
    emit(event.symbol, event.price)


def counting_now(event, emit):
    state.count += 1  # type: ignore[name-defined]  # noqa: F821
    emit(event.symbol, event.price)


def test_a_state_comes_and_goes() -> None:
    with_state = ss.operator(state=Count, event=TICK, emits=TICK, name="large")(counting)
    with ss.Engine(large) as engine:
        engine.process(TABLE)
        snapshot = engine.snapshot()
    with ss.Engine(with_state) as engine:
        engine.restore(snapshot, migrate=dict)
        engine.process(TABLE)
        assert engine.state.count == 80
        snapshot = engine.snapshot()
    with ss.Engine(large) as engine, pytest.raises(ss.SnapshotError, match="count"):
        engine.restore(snapshot)


def wrong_order(emit, event):
    pass


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (counting, ss.DeclarationError, r"\(state, event, emit\) and has no state=.*exactly two"),
        (wrong_order, ss.DeclarationError, r"takes \(emit, event\); expected \(event, emit\)"),
        (counting_now, ss.CompileError, "'state' is not defined.*give it state="),
    ],
)
def test_what_is_refused(function: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        ss.operator(event=TICK, emits=TICK)(function)
    with pytest.raises(ss.DeclarationError, match="has on_timer=, and no state="):
        ss.operator(event=TICK, emits=TICK, on_timer=counting)(large.function)
