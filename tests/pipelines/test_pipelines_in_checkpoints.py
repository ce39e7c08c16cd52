"""Pipelines and durability, without Spark: pickled, recorded, restarted, replayed, delivered."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import pickle
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed
from support.commands import invoke
from support.pipelines.desk import (
    BATCHES,
    Chain,
    assert_same_state,
    desk,
    expected,
    headline,
    mixed,
    rows_of,
    tables,
    trade,
    whole,
)
from support.pipelines.graphs import events_of, random_pipeline
from support.pipelines.phases import Phases
from support.pipelines.vertices import SOURCE, VERTICES, always, failing, sometimes
from support.processes import TESTS

import specstream as ss
from specstream.checkpoint.inspect.replay import Replay, replay
from specstream.checkpoint.run import checkpoint as checkpoints

DESK = TESTS / "support" / "pipelines" / "desk.py"
SINKS = ("trades", "mixed")


class Kept:
    """A sink that keeps what it gets, by batch; it fails at some batches, once each.

    Attributes:
        calls: batch id and rows of all calls, those that have failed as well.
    """

    def __init__(self, *fails_at: int) -> None:
        self.fails_at = list(fails_at)
        self.calls: list[tuple[int, pa.Table]] = []
        self.by_batch: dict[int, pa.Table] = {}

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        self.calls.append((batch_id, table))
        if batch_id in self.fails_at:
            self.fails_at.remove(batch_id)
            raise OSError("the disk is full")
        self.by_batch[batch_id] = table

    @property
    def rows(self) -> list[dict[str, Any]]:
        return rows_of(list(self.by_batch.values()))


class KeptUnseen(Kept):
    """Likewise, in two steps; it fails when it is to show a batch."""

    def prepare(self, table: pa.Table, batch_id: int) -> Any:
        sink = self

        class Put:
            def commit(self) -> None:
                Kept.__call__(sink, table, batch_id)

            def abort(self) -> None:
                pass

        return Put()


def feed_of(engine: ss.Engine, home: Path | None, to: Any, **options: Any) -> Fed:
    if home is not None:
        options["checkpoint"] = home / "recorded"
    return Fed(engine, **{"order_by": "time", "to": to, **options})


@pytest.fixture(scope="module")
def oracle() -> Any:
    return expected()


def assert_same(sinks: dict[str, Any], engine: ss.Engine, oracle: Any) -> None:
    for name, sink in sinks.items():
        assert sink.rows == oracle.output[name].to_pylist(), name
    assert_same_state(engine.state, oracle.state)


# ---- delivery ----


@pytest.mark.parametrize("kind", [Kept, KeptUnseen])
@pytest.mark.parametrize("failing", SINKS)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_batch_that_one_sink_has_had_comes_again_for_both_from_the_record(
    kind: Any, failing: str, is_new: bool, oracle: Any, tmp_path: Path
) -> None:
    sinks = {name: kind(*([2] if name == failing else [])) for name in SINKS}
    engine = ss.Engine(desk(), threads=2, horizon=4, chunk=4)
    feed = feed_of(engine, tmp_path, sinks)
    for batch_id in range(3):
        if batch_id == 2:
            with pytest.raises(OSError, match="full") as caught:
                feed.send(batch_id, whole(tables(batch_id)))
            assert caught.value.__notes__ == [
                f"raised by the sink to={{'{failing}': ...}} of operator 'desk', batch 2; its rows "
                "are recorded, and come again when the query is started again"
            ]
        else:
            feed.send(batch_id, whole(tables(batch_id)))
    if is_new:
        feed.close()
        engine = ss.Engine(desk(), threads=2, horizon=4, chunk=4)
        feed = feed_of(engine, tmp_path, sinks)
    for batch_id in range(2, BATCHES):
        feed.send(batch_id, whole(tables(batch_id)))
    assert feed.stats.repeated == 1
    assert_same(sinks, engine, oracle)
    feed.close()
    again = {name: [n for n, _ in sink.calls].count(2) for name, sink in sinks.items()}
    # The first of them has it before the second one fails; none is left out the second time.
    assert again == {"trades": 2, "mixed": 2 if failing == "mixed" else 1}
    for sink in sinks.values():
        of_2 = [table for n, table in sink.calls if n == 2]
        assert all(table.equals(of_2[0]) for table in of_2)


@pytest.mark.parametrize("failing", SINKS)
def test_without_a_checkpoint_a_sink_that_fails_puts_the_state_back(
    failing: str, oracle: Any
) -> None:
    sinks = {name: Kept(*([1] if name == failing else [])) for name in SINKS}
    with ss.Engine(desk(), threads=2, horizon=4, chunk=4) as engine:
        feed = feed_of(engine, None, sinks)
        feed.send(0, whole(tables(0)))
        before = engine.snapshot()
        with pytest.raises(OSError, match="full"):
            feed.send(1, whole(tables(1)))
        assert engine.snapshot() == before
        for batch_id in range(1, BATCHES):
            feed.send(batch_id, whole(tables(batch_id)))
        assert_same(sinks, engine, oracle)
        feed.close()


def test_every_sink_is_called_for_every_batch(tmp_path: Path) -> None:
    sinks = {name: Kept() for name in SINKS}
    with ss.Engine(desk()) as engine:
        feed = feed_of(engine, tmp_path, sinks)
        feed.send(0, whole(tables(0)).filter(pa.array([False] * 40)))
        feed.close()
    for sink in sinks.values():
        ((batch_id, table),) = sink.calls
        assert (batch_id, table.num_rows) == (0, 0)
    assert sinks["mixed"].calls[0][1].schema.field("text").type == pa.string()


def test_a_delta_table_and_a_function_have_each_batch_once(oracle: Any, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    mixed = Kept(1, 3)
    for start in (0, 1, 3):
        with ss.Engine(desk()) as engine:
            trades = ss.sinks.delta_sink(tmp_path / "trades", app_id="trades")
            feed = feed_of(engine, tmp_path, {"mixed": mixed, "trades": trades})
            for batch_id in range(start, BATCHES):
                try:
                    feed.send(batch_id, whole(tables(batch_id)))
                except OSError:
                    break
            feed.close()
    assert mixed.rows == oracle.output["mixed"].to_pylist()
    found = deltalake.DeltaTable(tmp_path / "trades").to_pyarrow_table()
    assert sorted(found["hash"].to_pylist()) == sorted(oracle.output["trades"]["hash"].to_pylist())


def test_batches_that_were_prefetched_are_caught_up_for_both_sinks(
    oracle: Any, tmp_path: Path
) -> None:
    sinks = {"trades": Kept(), "mixed": Kept(3)}
    engine = ss.Engine(desk())
    feed = feed_of(engine, tmp_path, sinks, prefetch=True)
    for batch_id in range(4):
        feed.send(batch_id, whole(tables(batch_id)))
    with pytest.raises(OSError, match="full"):
        feed.close()
    with ss.Engine(desk()) as engine:
        feed = feed_of(engine, tmp_path, sinks, prefetch=True)
        assert 3 in sinks["mixed"].by_batch  # before any batch came
        feed.send(4, whole(tables(4)))
        feed.wait()
        assert_same(sinks, engine, oracle)
        feed.close()


def one_sink() -> ss.Pipeline:
    p = ss.Pipeline("one")
    p.sink("rows", p.add(trade, p.source("ticks", {"symbol": int, "price": float})))
    return p


@pytest.mark.parametrize("by_name", [False, True])
def test_a_pipeline_with_one_sink_is_fed_like_an_operator(by_name: bool, tmp_path: Path) -> None:
    ticks = tables(0)["ticks"]
    alone, in_pipeline = Kept(), Kept()
    for operator, sink in ((trade, alone), (one_sink(), in_pipeline)):
        with ss.Engine(operator, keys=True) as engine:
            to = {"rows": sink} if by_name and sink is in_pipeline else sink
            feed = feed_of(engine, tmp_path / operator.name, to)
            feed.send(0, ticks)
            feed.close()
    assert in_pipeline.by_batch[0].equals(alone.by_batch[0])


def test_keys_are_in_the_rows_of_every_sink(tmp_path: Path) -> None:
    sinks = {name: Kept() for name in SINKS}
    with ss.Engine(desk(), keys=True) as engine:
        feed = feed_of(engine, tmp_path, sinks)
        feed.send(0, whole(tables(0)))
        feed.close()
    for name, sink in sinks.items():
        columns = sink.by_batch[0].column_names
        assert columns[:3] == ["timestamp", "source", "sequence"], name
    assert set(sinks["mixed"].by_batch[0]["source"].to_pylist()) == {"ticks", "news"}


TO: list[tuple[Any, Any, str]] = [
    (
        {"trades": print},
        desk,
        r"pipeline 'desk': to= has nothing for its sink 'mixed'; it has the sinks trades, mixed: "
        r'give to=\{"trades": sink, "mixed": sink\}',
    ),
    (
        {"trades": print, "mixed": repr, "audit": str},
        desk,
        r"pipeline 'desk': to= has a sink for 'audit', which is none of its own; it has the sinks "
        r"trades, mixed: give",
    ),
    (
        {"trade": print, "mixed": repr},
        desk,
        r"nothing for its sink 'trades' and a sink for 'trade', which is none of its own",
    ),
    (print, desk, r"has the sinks trades, mixed, and to= is one for all of them, .*print.*: give"),
    ({}, desk, r"nothing for its sink 'trades'"),
    ({"trades": print, "mixed": 5}, desk, r"to\['mixed'\]=5.*expected a sink"),
    ({"rows": print}, lambda: trade, r"operator 'trade' has one output, .*by name \(rows\)"),
    ({"other": print}, one_sink, r"pipeline 'one': to= has nothing for its sink 'rows' and a"),
    (
        {"trades": print, "mixed": print},
        desk,
        r"to=\{'trades': ...\} and to=\{'mixed': ...\} are the same sink",
    ),
]


@pytest.mark.parametrize(("to", "made", "message"), TO)
def test_sinks_that_do_not_fit_are_named(to: Any, made: Any, message: str) -> None:
    with ss.Engine(made()) as engine, pytest.raises(ss.ConfigurationError, match=message):
        Fed(engine, order_by="time", to=to)


def test_two_sinks_and_the_sink_of_late_rows_have_places_of_their_own(tmp_path: Path) -> None:
    one, other = (ss.sinks.parquet_sink(tmp_path / "out") for _ in range(2))
    options = {"order_by": "time", "watermark": 1, "late": "side"}
    with ss.Engine(desk()) as engine:
        with pytest.raises(
            ss.ConfigurationError,
            match=r"to=\{'trades': ...\} and to=\{'mixed': ...\} write to the same directory",
        ):
            Fed(engine, to={"trades": one, "mixed": other})
        with pytest.raises(
            ss.ConfigurationError, match=r"to=\{'mixed': ...\} and late_to= write to the same"
        ):
            Fed(engine, to={"trades": print, "mixed": one}, late_to=other, **options)


def without_mixed() -> ss.Pipeline:
    p = ss.Pipeline("desk")
    news = p.source("news", {"symbol": int, "text": ss.nullable(str)})
    p.sink("trades", p.add(trade, p.source("ticks", {"symbol": int, "price": float})))
    p.sink("headlines", p.add(headline, news))
    p.sink("ticks", "ticks")
    return p


def test_rows_recorded_for_other_sinks_are_delivered_by_the_pipeline_as_it_was(
    tmp_path: Path,
) -> None:
    def migrate(fields: dict[str, Any]) -> dict[str, Any]:
        return {name: fields[name] for name in fields if not name.startswith("mixed.")}

    with ss.Engine(desk()) as engine:
        feed = feed_of(engine, tmp_path, {"trades": Kept(), "mixed": Kept(0)})
        with pytest.raises(OSError, match="full"):
            feed.send(0, whole(tables(0)))
        feed.close()
    sinks = {"trades": Kept(), "headlines": Kept(), "ticks": Kept()}
    with ss.Engine(without_mixed()) as engine:
        feed = feed_of(engine, tmp_path, sinks, migrate=migrate)
        message = (
            "operator 'desk', batch 0: its rows were recorded for the sinks trades, mixed, and to= "
            "is for trades, headlines, ticks: start the query once with the pipeline and to= as "
            "they were"
        )
        with pytest.raises(ss.ConfigurationError, match=message):
            feed.send(0, whole(tables(0)))
        feed.close()
    before = {name: Kept() for name in SINKS}
    with ss.Engine(desk()) as engine:
        feed = feed_of(engine, tmp_path, before)
        feed.send(0, whole(tables(0)))
        assert (feed.stats.repeated, feed.stats.batches) == (1, 0)
        feed.close()
    with ss.Engine(without_mixed()) as engine:
        feed = feed_of(engine, tmp_path, sinks, migrate=migrate)
        feed.send(1, whole(tables(1)))
        feed.close()
    wanted = expected(2).output["trades"].to_pylist()
    assert before["trades"].rows + sinks["trades"].rows == wanted


# ---- snapshots and restarts ----


def test_a_snapshot_goes_on_in_another_engine(oracle: Any) -> None:
    parts: dict[str, list[pa.Table]] = {name: [] for name in SINKS}
    snapshot: bytes | None = None
    for batch_id in range(BATCHES):
        with ss.Engine(desk(), threads=2, horizon=4, chunk=4, restore=snapshot) as engine:
            output = engine.process(tables(batch_id), order_by="time")
            snapshot = engine.snapshot()
            for name, table in output.items():
                parts[name].append(table)
    for name in SINKS:
        assert rows_of(parts[name]) == oracle.output[name].to_pylist()
    assert snapshot is not None
    described = str(ss.describe_snapshot(snapshot))
    assert "trade.hash" in described
    assert "headline.counts" in described
    state = ss.describe_snapshot(snapshot).state
    assert state.trade.hash == oracle.state.trade.hash
    assert state.headline.counts == oracle.state.headline.counts


def test_a_rollback_brings_states_and_last_values_back() -> None:
    with ss.Engine(desk(), threads=2, horizon=4, chunk=4) as engine:
        engine.process(tables(0), order_by="time")
        savepoint = engine.savepoint()
        first = engine.process(tables(1), order_by="time")
        engine.rollback(savepoint)
        again = engine.process(tables(1), order_by="time")
        assert {name: table.to_pylist() for name, table in first.items()} == {
            name: table.to_pylist() for name, table in again.items()
        }


def test_states_are_migrated_by_vertex_and_field(tmp_path: Path) -> None:
    class Counted(ss.State):
        trades = ss.scalar(int)
        hash = ss.scalar(int)

    @ss.operator(
        state=Counted, event={"symbol": int, "price": float}, emits={"trades": int}, name="trade"
    )
    def counted(state, event, emit):
        state.trades += 1
        emit(state.trades)

    def changed() -> ss.Pipeline:
        p = ss.Pipeline("one")
        ticks = p.source("ticks", {"symbol": int, "price": float})
        p.sink("rows", p.add(counted, ticks))
        p.sink("again", p.add(trade, ticks, name="again"))
        return p

    given: dict[str, Any] = {}

    def migrate(fields: dict[str, Any]) -> dict[str, Any]:
        given.update(fields)
        return {"trade.trades": fields["trade.seen"], "again.hash": fields["trade.hash"]}

    sink = Kept()
    with ss.Engine(one_sink()) as engine:
        feed = feed_of(engine, tmp_path, sink)
        feed.send(0, tables(0)["ticks"])
        hash = engine.state.trade.hash
        feed.close()
    sinks = {"rows": Kept(), "again": Kept()}
    with ss.Engine(changed()) as engine, pytest.raises(ss.SnapshotError, match=r"'trade\.seen'"):
        feed_of(engine, tmp_path, sinks)
    with ss.Engine(changed()) as engine:
        feed = feed_of(engine, tmp_path, sinks, migrate=migrate)
        assert sorted(given) == ["trade.hash", "trade.seen", "trade.sums"]
        assert (engine.state.trade.trades, engine.state.again.hash) == (30, hash)
        feed.send(1, tables(1)["ticks"])
        feed.close()
    assert sinks["rows"].rows[-1] == {"trades": 60}


TWO_INPUTS: dict[str, Any] = {
    "a": {"symbol": int},
    "b": {"price": float, "note": ss.nullable(str)},
}


@ss.operator(state=Chain, inputs=TWO_INPUTS, emits={"price": float, "known": bool}, name="pair")
def reads_more(state, event, emit):
    state.seen += 1
    if event.known("a") and event.b.note is not None:
        emit(event.b.price, event.known("b"))


@ss.operator(state=Chain, inputs=TWO_INPUTS, emits={"price": float, "known": bool}, name="pair")
def reads_less(state, event, emit):
    state.seen += 1
    if event.a.symbol >= 0:
        emit(event.b.price, state.seen > 1)


def pair_of(operator: ss.Operator, name: str = "pair") -> ss.Pipeline:
    p = ss.Pipeline("pairs")
    a = p.source("a", {"symbol": int})
    b = p.source("b", {"price": float, "note": ss.nullable(str)})
    p.sink("out", p.add(operator, a=a, b=b, name=name))
    return p


def test_a_last_value_that_nobody_reads_any_more_is_dropped(tmp_path: Path) -> None:
    first = {"b": {"time": [1], "price": [2.5], "note": ["n"]}}
    then = {"a": {"time": [2], "symbol": [3]}}
    with ss.Engine(pair_of(reads_more)) as engine:
        feed = feed_of(engine, tmp_path, Kept())
        feed.send(0, pair_of(reads_more).events_table(first, "", ("time",)))
        snapshot = engine.snapshot()
        feed.close()
        assert set(engine.state.pair.to_dict()) >= {"a.known", "b.known", "b.note", "b.note.null"}
    sink = Kept()
    with ss.Engine(pair_of(reads_less)) as engine:
        feed = feed_of(engine, tmp_path, sink)
        feed.send(1, pair_of(reads_less).events_table(then, "", ("time",)))
        feed.close()
        # The symbol is new, and the price was kept.
        kept = engine.state.pair.to_dict()
        del kept["sums"]
        assert kept == {"seen": 2, "hash": 0, "a.symbol": 3, "b.price": 2.5}
    assert sink.rows == [{"price": 2.5, "known": True}]
    # A function that hands on what it does not change need not know of them.
    with ss.Engine(pair_of(reads_less)) as engine:
        engine.restore(snapshot, migrate=lambda old: {**old, "pair.seen": 7})
        assert engine.process(then, order_by="time").to_pylist() == sink.rows
        assert engine.state.pair.seen == 8
    # What is of another vertex may not be left out.
    refused = pytest.raises(ss.SnapshotError, match=r"has a field 'seen' of a vertex 'pair', which")
    with ss.Engine(pair_of(reads_less, "other")) as engine, refused:
        engine.restore(snapshot)


def test_a_vertex_that_is_new_begins_with_its_fill(tmp_path: Path) -> None:
    def grown() -> ss.Pipeline:
        p = desk()
        p.sink("first", p.add(trade, "ticks", name="first"))
        return p

    with ss.Engine(desk()) as engine:
        feed = feed_of(engine, tmp_path, {name: Kept() for name in SINKS})
        feed.send(0, whole(tables(0)))
        feed.close()
    with ss.Engine(grown()) as engine:
        feed = feed_of(engine, tmp_path, {name: Kept() for name in (*SINKS, "first")})
        feed.send(1, whole(tables(1)))
        assert (engine.state.trade.seen, engine.state.first.seen) == (60, 30)
        feed.close()


RANDOM = ("sometimes", "adding", "eight")
"""They draw by the number of an event within its source, which is another where events wait."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_random_pipelines_through_failures_and_restarts(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sinks fail, and the feed ends, at any batch; every batch can be replayed then. Of the last
    pipelines most vertices are interpreted."""
    monkeypatch.setattr(checkpoints, "INCREMENTS", 2)
    draw = random.Random(seed)
    waits = seed % 2 == 1
    of = [one for one in VERTICES if one.name not in RANDOM] if waits else None
    p = random_pipeline(seed, most=4, of=of, in_python=0.7 if seed >= 8 else 0.0)
    assert p.calls_python == (seed >= 8)
    table, _ = events_of(p, 60, seed)
    times = [2 * at + waits * draw.randint(0, 20) for at in range(60)]
    table = table.append_column("time", pa.array(times))
    wanted = p.run_sequential(table, order_by="time")
    sinks = {name: Kept(*draw.sample(range(6), 2)) for name in p.sinks}
    options = {"watermark": 25} if waits else {}
    batch_id, ended = 0, False
    while not ended:
        copy = pickle.loads(pickle.dumps(p))
        with ss.Engine(copy, threads=2, horizon=4, chunk=2) as engine:
            feed = feed_of(engine, tmp_path, sinks, keep_batches=9, **options)
            try:
                while batch_id < 6:
                    feed.send(batch_id, table.slice(10 * batch_id, 10))
                    batch_id += 1
                    if draw.random() < 0.3:
                        break
                else:
                    if waits:
                        feed.runner.finish()
                    assert_same_state(engine.state, wanted.state)
                    ended = True
            except OSError:
                pass
            feed.close()
    output = wanted.output if len(sinks) > 1 else {p.sinks[0]: wanted.output}
    for name, sink in sinks.items():
        assert pa.concat_tables(sink.by_batch.values()).equals(output[name]), name
        for n, rows in sink.calls:
            assert rows.equals(sink.by_batch[n])
    for n in range(6 + waits):
        found = replay(tmp_path / "recorded", n)
        assert found.recorded is not None
        assert found.difference is None, (n, str(found.difference))


# ---- event time ----


def late_tables() -> list[pa.Table]:
    """Batches that overlap in time; the last one has an event of each source that is too late."""
    found = []
    for batch_id in range(BATCHES):
        of = tables(batch_id)
        overlapping = {
            name: table.set_column(
                0, "time", pa.array([t - 960 * batch_id for t in table["time"].to_pylist()])
            )
            for name, table in of.items()
        }
        found.append(whole(overlapping))
    late = {
        "ticks": pa.table({"time": [-500], "symbol": [7], "price": [1.0]}),
        "news": pa.table({"time": [-500], "symbol": [7], "text": ["late"]}),
    }
    found[-1] = pa.concat_tables([found[-1], whole(late)])
    return found


@pytest.mark.parametrize("crashes", [False, True])
def test_events_wait_for_the_watermark_of_their_source(crashes: bool, tmp_path: Path) -> None:
    batches = late_tables()
    sinks, late = {"trades": Kept(), "mixed": Kept(2) if crashes else Kept()}, Kept()
    options: dict[str, Any] = {"watermark": 60, "late": "side", "late_to": late, "keep_batches": 9}
    options["sources"] = ["ticks", "news"]
    engine = ss.Engine(desk(), threads=2, horizon=4, chunk=4)
    feed = feed_of(engine, tmp_path, sinks, **options)
    waited = []
    batch_id = 0
    while batch_id < BATCHES:
        try:
            feed.send(batch_id, batches[batch_id])
        except OSError:
            feed.close()
            engine = ss.Engine(desk(), threads=2, horizon=4, chunk=4)
            feed = feed_of(engine, tmp_path, sinks, **options)
            continue
        waited.append(engine.stats.pending)
        batch_id += 1
    feed.runner.finish()
    assert max(waited) > 10
    assert late.by_batch[BATCHES - 1].column_names[:2] == ["stream", "time"]
    assert sorted(late.by_batch[BATCHES - 1]["stream"].to_pylist()) == ["news", "ticks"]
    on_time = pa.concat_tables(batches)
    on_time = on_time.filter(pa.array([t >= 0 for t in on_time["time"].to_pylist()]))
    assert_same(sinks, engine, desk().run_sequential(on_time, order_by="time"))
    feed.close()
    for batch_id in range(BATCHES + 1):
        found = replay(tmp_path / "recorded", batch_id)
        assert found.difference is None, (batch_id, str(found.difference))
        assert found.is_recorded


# ---- pickled ----


@pytest.mark.parametrize("seed", range(3))
def test_a_copy_gives_the_same_answer_and_shares_the_compiled_code(seed: int) -> None:
    p = random_pipeline(seed, most=5)
    table, _ = events_of(p, 40, seed)
    copy = pickle.loads(pickle.dumps(p))
    assert repr(copy) == repr(p)
    assert copy.program.fingerprint == p.program.fingerprint
    assert copy.layout.describe() == p.layout.describe()
    one, other = (each.run_sequential(table, on_error="skip").output for each in (p, copy))
    one, other = (each if isinstance(each, dict) else {"": each} for each in (one, other))
    assert {name: rows.to_pylist() for name, rows in one.items()} == {
        name: rows.to_pylist() for name, rows in other.items()
    }


def test_a_graph_that_is_not_in_use_is_pickled_as_far_as_it_is_declared() -> None:
    p = ss.Pipeline("half")
    p.add(sometimes, "ticks", name="early")
    copy = pickle.loads(pickle.dumps(p))
    copy.source("ticks", SOURCE)
    copy.sink("rows", copy.add(always, "early"))
    table, each = events_of(copy, 30, 5)
    seen = Phases(copy, dict.fromkeys(("early", "always"), 0))
    for source, values in each:
        seen.phase(source, values)
    assert len(seen.rows["rows"]) == copy.run_sequential(table).output.num_rows > 0
    with pytest.raises(ss.DeclarationError, match="it has no source"):
        _ = p.plan


def test_it_needs_no_module_of_its_operators(tmp_path: Path, oracle: Any) -> None:
    (tmp_path / "elsewhere.py").write_text(DESK.read_text())
    (tmp_path / "empty").mkdir()
    dump = "import pickle, sys, elsewhere; pickle.dump(elsewhere.desk(), open(sys.argv[1], 'wb'))"
    pickled = str(tmp_path / "pickled")
    subprocess.run([sys.executable, "-c", dump, pickled], cwd=tmp_path, check=True)
    load = """
import pickle, sys
import pyarrow.parquet as pq
p = pickle.load(open(sys.argv[1], "rb"))
assert "elsewhere" not in sys.modules
ran = p.run_sequential(pq.read_table(sys.argv[2]), order_by="time")
print({name: table["hash"].to_pylist() for name, table in ran.output.items()})
"""
    events = str(tmp_path / "events.parquet")
    import pyarrow.parquet as pq

    pq.write_table(pa.concat_tables([whole(tables(n)) for n in range(BATCHES)]), events)
    found = subprocess.run(
        [sys.executable, "-c", load, pickled, events],
        cwd=tmp_path / "empty", check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    wanted = {name: table["hash"].to_pylist() for name, table in oracle.output.items()}
    assert found.strip() == str(wanted)


# ---- replayed ----


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Batches with their rows."""
    home = tmp_path_factory.mktemp("desk")
    with ss.Engine(desk(), threads=2, horizon=4, chunk=4, keys=True) as engine:
        feed = feed_of(engine, home, {name: Kept() for name in SINKS}, keep_batches=BATCHES)
        for batch_id in range(BATCHES):
            feed.send(batch_id, whole(tables(batch_id)))
        feed.close()
    return home / "recorded"


@pytest.mark.parametrize("batch", [0, 3])
def test_a_batch_comes_out_bit_for_bit(recorded: Path, batch: int) -> None:
    found = replay(recorded, batch)
    assert found.recorded is not None
    assert found.difference is None, str(found.difference)
    assert found.events == 40
    assert set(found.output["sink"].to_pylist()) == set(SINKS)
    assert found.state.trade.seen == 30 * (batch + 1)


def test_another_operator_in_a_vertex_differs_at_its_field(recorded: Path) -> None:
    @ss.operator(
        state=Chain,
        event={"symbol": int, "price": float},
        emits={"symbol": int, "hash": int, "sum": float},
        name="trade",
    )
    def slower(state, event, emit):
        state.seen += 1 if event.symbol % 50 else 2
        state.hash = state.hash * 6364136223846793005 + event.symbol
        state.sums[event.symbol % 5] += event.price
        emit(event.symbol, state.hash, state.sums[event.symbol % 5])

    p = ss.Pipeline("desk")
    ticks = p.source("ticks", {"symbol": int, "price": float})
    news = p.source("news", {"symbol": int, "text": ss.nullable(str)})
    trades = p.add(slower, ticks)
    p.sink("trades", trades)
    p.sink("mixed", p.add(mixed, trade=trades, headline=p.add(headline, news)))
    found: Replay = replay(recorded, 3, p)
    assert str(found.difference) == "state.trade.seen: recorded 120, replayed 121"


def test_the_command_prints_rows_and_the_verdict(recorded: Path) -> None:
    result = invoke("replay", recorded, "--batch", "2", "--rows", "3")
    assert result.exit_code == 0, result.output
    assert "identical to the record" in result.output
    lines = [line.split() for line in result.output.splitlines()]
    titles = [line[1] for line in lines if line[:1] == ["sink"]]
    assert sorted(titles) == sorted(
        {row["sink"] for row in replay(recorded, 2).output.slice(0, 3).to_pylist()}
    )
    assert ["event", "timestamp", "source", "sequence", "symbol", "text", "hash"] in lines


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """A pipeline of which a vertex raises in the first batch."""
    p = ss.Pipeline("failing")
    ticks = p.source("ticks", SOURCE)
    p.sink("rows", p.add(failing, p.add(always, ticks)))
    p.sink("ticks", ticks)
    table, _ = events_of(p, 60, 1)
    table = table.append_column("time", pa.array(range(60)))
    with ss.Engine(p) as engine:
        feed = feed_of(engine, tmp_path, {"rows": Kept(), "ticks": Kept()})
        with pytest.raises(ValueError, match="four"):
            feed.send(0, table)
        assert engine.state.failing.count == 0
        feed.close()
    return tmp_path / "recorded"


def test_a_batch_that_failed_raises_again_in_its_vertex(failed: Path) -> None:
    found = replay(failed)
    assert found.difference is None
    assert isinstance(found.error, ValueError)
    assert "vertex 'failing' of pipeline 'failing', path (0)" in " ".join(found.error.__notes__)
    result = invoke("replay", failed)
    assert "raises what the record says" in result.output


@pytest.mark.slow
def test_the_debugger_stops_in_each_vertex_and_where_one_raised(failed: Path) -> None:
    talk = [
        "p 'always', int(event.x)", "r", "n", "p 'failing', int(event.x)",
        "c", "p 'raised', int(event.x % 13)", "q",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "specstream.cli", "replay", failed, "--pdb"],
        input="\n".join(talk), capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout, done.stderr)
    assert "event 0, (timestamp, source, sequence) = (0, 0, 0): x=" in done.stdout
    said = re.findall(r"^\(Pdb\) \('(\w+)', (\d+)\)$", done.stdout, re.MULTILINE)
    assert [name for name, _ in said] == ["always", "failing", "raised"]
    assert said[-1] == ("raised", "4")
    assert '-> raise ValueError("four")' in done.stdout
