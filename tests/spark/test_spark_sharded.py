"""Sharded mode and back-tests: the answer of the sequential run, whatever happens."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import processes
from support.spark.sharded_chain import Chain, Other, TooHeavy, chain, make, mixed
from support.spark.state_store import ROCKSDB, STATE_STORE

import specstream as ss

pyspark = pytest.importorskip("pyspark")
pytest.importorskip("google.protobuf")

import pandas as pd  # noqa: E402
from pyspark.errors import StreamingQueryException  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

from specstream.spark import packing  # noqa: E402
from specstream.spark.sharded import _kept, _Shards  # noqa: E402

pytestmark = pytest.mark.usefixtures("rocksdb")

WAIT_SECONDS = 120
FILES, ROWS, SHARDS = 4, 60, 5


@ss.operator(state=Chain, event={"value": int})
def digest(state, event, emit):
    state.hash = mixed(state.hash, event.value)


def part(number: int) -> pa.Table:
    """File ``number``: rows in no order of time, with many equal times; later than other files."""
    rng = np.random.default_rng(number)
    accounts = [f"account {k}" for k in range(3 if number == 0 else 40)]  # new shards come later
    return pa.table(
        {
            "time": pa.array(
                rng.integers(0, ROWS // 4, ROWS) + number * 1000, pa.timestamp("us", "UTC")
            ),
            "origin": pa.array(rng.choice(["EWR", "JFK"], ROWS)),
            "x": np.arange(ROWS) + number * ROWS,
            "weight": rng.normal(size=ROWS),
            "account": pa.array(rng.choice(accounts, ROWS)),
        }
    )


def everything() -> pa.Table:
    return pa.concat_tables(part(number) for number in range(FILES))


def write(directory: Path, *numbers: int) -> None:
    directory.mkdir(exist_ok=True)
    for number in numbers:
        path = directory / f"{number}.parquet"
        pq.write_table(part(number), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def by_shard(table: pa.Table, shard_of: dict[str, int]) -> dict[int, list[Any]]:
    shards: dict[int, list[Any]] = {}
    for row in table.to_pylist():
        shards.setdefault(shard_of[row["account"]], []).append(row)
    return shards


def expected(table: pa.Table, shard_of: dict[str, int]) -> dict[int, list[Any]]:
    """The sequential run of every shard."""
    shard = np.array([shard_of[account] for account in table["account"].to_pylist()])
    return {
        int(number): chain.run_sequential(
            table.filter(pa.array(shard == number)), order_by="time", source="origin"
        ).output.to_pylist()
        for number in np.unique(shard)
    }


@pytest.fixture(scope="module")
def shard_of(session: Any) -> dict[str, int]:
    """Where the documentation says that a key goes."""
    accounts = session.createDataFrame([(f"account {k}",) for k in range(40)], "account string")
    rows = accounts.select("account", F.expr(f"pmod(xxhash64(account), {SHARDS})")).collect()
    return {account: int(shard) for account, shard in rows}


class Run:
    """Streams a directory through the operator, as a user does, until it is at its end."""

    def __init__(self, session: Any, path: Path) -> None:
        self.session, self.path = session, path
        self.files, self.checkpoint = path / "files", path / "checkpoint"
        self.batches: dict[int, pa.Table] = {}
        self.queries: list[Any] = []
        write(self.files, 0)
        self.schema = session.read.parquet(str(self.files)).schema

    def rows(self, operator: ss.Operator, shards: int = SHARDS, **options: Any) -> Any:
        stream = (
            self.session.readStream.schema(self.schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self.files))
        )
        return ss.spark.sharded(
            stream, operator, by="account", shards=shards, order_by="time", source="origin",
            **options,
        )  # fmt: skip

    def __call__(self, rows: Any) -> pa.Table:
        def sink(frame: Any, batch_id: int) -> None:
            self.batches[batch_id] = frame.toArrow()

        query = (
            rows.writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        self.queries.append(query)
        assert query.awaitTermination(WAIT_SECONDS)
        return pa.concat_tables(self.batches[batch] for batch in sorted(self.batches))


@pytest.fixture
def run(session: Any, tmp_path: Path) -> Iterator[Run]:
    run = Run(session, tmp_path)
    yield run
    for query in run.queries:
        query.stop()


def test_every_shard_gives_its_sequential_answer_also_after_restarts(
    run: Run, shard_of: dict[str, int]
) -> None:
    rows = run.rows(chain)
    assert rows.isStreaming
    first = run(rows)
    assert by_shard(first, shard_of) == expected(part(0), shard_of)
    write(run.files, 1, 2)
    pq.write_table(part(0).slice(0, 0), run.files / "nothing.parquet")
    os.utime(run.files / "nothing.parquet", (1_000_000_001.5, 1_000_000_001.5))
    run(rows)  # the same frame: its workers may have kept the engines
    assert [table.num_rows for table in run.batches.values()] == [ROWS, ROWS, 0, ROWS]
    write(run.files, 3)
    output = run(run.rows(chain, threads=2, horizon=4, chunk=3))
    assert by_shard(output, shard_of) == expected(everything(), shard_of)
    assert len(by_shard(output, shard_of)) > len(by_shard(first, shard_of))
    assert output.schema.names == list(chain.emits.names)


def test_an_operator_that_raises_fails_the_query_and_nothing_is_applied_twice(
    run: Run, shard_of: dict[str, int]
) -> None:
    write(run.files, *range(FILES))
    worst = FILES * ROWS - 7
    with pytest.raises(StreamingQueryException) as raised:
        run(run.rows(make(heaviest=worst)))
    text = str(raised.value)
    assert "TooHeavy" in text
    assert "is too heavy" in text
    assert f"({SHARDS} shards by 'account') of operator 'chain'" in text
    assert "x=" in text
    assert "raise TooHeavy" in text  # the line of the source, which executors do not have
    assert sorted(run.batches) == [0, 1, 2]
    output = run(run.rows(chain))
    assert by_shard(output, shard_of) == expected(everything(), shard_of)


def test_a_checkpoint_that_does_not_fit_is_refused_by_name(run: Run) -> None:
    run(run.rows(chain))
    write(run.files, 1)
    with pytest.raises(StreamingQueryException, match=r"field 'sums' has shape \[7\] in the snap"):
        run(run.rows(make(state=Other)))
    with pytest.raises(StreamingQueryException, match="shards was 5 and is now 7"):
        run(run.rows(chain, shards=7))
    assert sorted(run.batches) == [0]


def numbered(name: str, state: type[ss.State] = Chain) -> ss.Operator:
    @ss.operator(state=state, event={"x": int}, emits={"x": int, "place": int}, name=name)
    def numbered(state, event, emit):
        state.hash += 1
        emit(event.x, state.hash)

    return numbered


class OneKey:
    """A stream of one key, in five rows a batch."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.files = run.path / "one"
        self.files.mkdir()
        # Of four shards it is in one that two do not have.
        keys = run.session.range(100).selectExpr("CAST(id AS string) AS key")
        (self.key,) = keys.where("pmod(xxhash64(key), 4) >= 2").first()
        self.count = 0
        self.send(5)
        self.schema = run.session.read.parquet(str(self.files)).schema

    def send(self, rows: int) -> None:
        x = np.arange(rows) + 5 * self.count
        table = pa.table({"key": pa.array([self.key] * rows, pa.string()), "time": x, "x": x})
        pq.write_table(table, self.files / f"{self.count}.parquet")
        self.count += 1

    def rows(self, **changed: Any) -> Any:
        stream = self.run.session.readStream.schema(self.schema).parquet(str(self.files))
        options = {
            "operator": numbered("numbered"), "by": "key", "shards": 2, "order_by": "time",
            **changed,
        }  # fmt: skip
        return ss.spark.sharded(stream, **options)

    def places(self) -> list[int]:
        return sorted(
            place for table in self.run.batches.values() for place in table["place"].to_pylist()
        )


# It starts a query for each option.
@pytest.mark.long
def test_no_option_that_decides_the_answer_changes_under_a_checkpoint(run: Run) -> None:
    """Though the batch after the change meets a shard that nothing is stored of."""
    stream = OneKey(run)
    run(stream.rows())
    stream.send(0)  # an empty batch says nothing of the options
    run(stream.rows(shards=3))
    assert [table.num_rows for table in run.batches.values()] == [5, 0]
    stream.send(5)
    for changed, told in (
        ({"shards": 4}, "checkpoint: shards was 2 and is now 4: start"),
        (
            {
                "operator": numbered("another"), "by": "x", "order_by": "x", "source": "time",
                "seed": 1,
            },
            "operator was 'numbered' and is now 'another'; by was 'key' and is now 'x'; "
            "the key's type was string and is now bigint; order_by was 'time' and is now 'x'; "
            "source was None and is now 'time'; seed was 0 and is now 1: start",
        ),
    ):  # fmt: skip
        with pytest.raises(StreamingQueryException) as raised:
            run(stream.rows(**changed))
        assert told in str(raised.value)
        assert "a new checkpointLocation" in str(raised.value), "what to do"
    # What may change has changed, and the refused attempts have left nothing.
    run(stream.rows(threads=2, horizon=4, chunk=2, rejected_rows="side"))
    assert stream.places() == list(range(1, 11))


@pytest.mark.long
def test_a_first_batch_that_failed_does_not_settle_the_options(run: Run) -> None:
    stream = OneKey(run)

    @ss.operator(state=Chain, event={"x": int}, emits={"x": int, "place": int})
    def numbered(state, event, emit):
        raise ValueError("not yet")

    with pytest.raises(StreamingQueryException, match="not yet"):
        run(stream.rows(operator=numbered))
    run(stream.rows(shards=4))
    stream.send(5)
    with pytest.raises(StreamingQueryException, match="shards was 4 and is now 2"):
        run(stream.rows())
    assert stream.places() == [1, 2, 3, 4, 5]


def test_options_that_cannot_be_are_refused_before_the_query_starts(session: Any, run: Run) -> None:
    def refused(match: str, error: type[Exception] = ss.ConfigurationError, **changed: Any) -> None:
        stream = session.readStream.schema(run.schema).parquet(str(run.files))
        options = {"stream": stream, "operator": chain, "by": "account", **changed}
        with pytest.raises(error, match=match):
            ss.spark.sharded(**options)

    refused("is static", stream=session.read.parquet(str(run.files)))
    refused("no column of the stream", ss.InputError, by="nothing")
    refused("type double; expected strings", ss.InputError, by="weight")
    refused("shards=0; expected", shards=0)
    refused("order_by= names column 'nothing'", ss.InputError, order_by="nothing")
    refused("restore= cannot be given", restore=b"")
    refused("initial= cannot be given .*: all shards would begin with all of it", initial={})
    refused("on_commit= cannot be given", on_commit=print)
    refused("threads=0; expected", threads=0)
    refused("expected an operator", ss.DeclarationError, operator=print)
    session.conf.set(STATE_STORE, "org.example.Other")
    try:
        refused("needs Spark's RocksDB state store, and the session has org.example.Other")
    finally:
        session.conf.set(STATE_STORE, ROCKSDB)


def settings(shards: int = 5) -> dict[str, Any]:
    return {"operator": "chain", "by": "account", "shards": shards, "seed": 0}


def harness_of(shards: _Shards) -> Any:
    """Spark's own harness of a processor, without a stream."""
    reason = "PySpark has it since 4.2"
    harness = pytest.importorskip("pyspark.sql.streaming.tws_tester", reason=reason)
    return harness.TwsTester(shards)


def value_state(tester: Any, name: str, key: int) -> tuple[Any, ...]:
    value: tuple[Any, ...] | None = tester.peekValueState(name, key)
    assert value is not None
    return value


def test_a_checkpoint_from_before_there_was_a_record_goes_on_as_it_was(session: Any) -> None:
    rows = pd.DataFrame({"position": [0], "rows": [packing.to_bytes(part(0))]})
    mark = pd.DataFrame({"position": [0], "rows": [b""]})

    def tester(shards: int) -> Any:
        return harness_of(_Shards(chain, "time", "origin", {}, settings(shards), f"of {shards}"))

    new = tester(5)
    new.testInPandas(3, rows)
    states = {name: value_state(new, name, 3) for name in ("snapshot", "version")}
    same, other = tester(5), tester(7)
    for old in (same, other):
        old.updateValueState("snapshot", 3, states["snapshot"])
        old.updateValueState("version", 3, (states["version"][0], "5 shards by 'account'"))
        old.testInPandas(packing.MARK, mark)
    assert len(same.testInPandas(3, rows)) == 1
    assert value_state(same, "version", packing.MARK)[1] == value_state(new, "version", 3)[1]
    with pytest.raises(ss.SnapshotError, match="shards was 5 and is now 7"):
        other.testInPandas(3, rows)


def test_an_engine_that_is_kept_is_used_only_for_the_state_that_it_left(session: Any) -> None:
    """Two stores and one process: each finds the engine that the other has left."""
    tables = [part(number) for number in range(3)]
    streams = [tables, tables[::-1]]
    testers = [
        harness_of(_Shards(chain, "time", "origin", {"horizon": 0}, settings(), "a call"))
        for _ in streams
    ]
    outputs: list[list[pa.Table]] = [[], []]
    for batches in zip(*streams, strict=True):
        for tester, table, output in zip(testers, batches, outputs, strict=True):
            for half in (table.slice(0, 30), table.slice(30)):  # the second finds its own engine
                rows = pd.DataFrame({"position": [0], "rows": [packing.to_bytes(half)]})
                found = tester.testInPandas(3, rows)
                output.extend(map(packing.to_table, found["rows"]))
                (version, _), kept = value_state(tester, "version", 3), _kept["a call", 3]
                assert kept.version == version
    for stream, output in zip(streams, outputs, strict=True):
        with ss.Engine(chain, horizon=0) as engine:
            for table in stream:
                for half in (table.slice(0, 30), table.slice(30)):
                    same = engine.process(half, order_by="time", source="origin")
                    assert output.pop(0).equals(same)
        assert output == []


# A minute and a half: it starts a cluster, and Spark waits before it gives an executor up.
@pytest.mark.long
def test_an_executor_that_is_killed_in_mid_batch_changes_nothing(
    tmp_path: Path, shard_of: dict[str, int]
) -> None:
    write(tmp_path / "files", *range(FILES))
    # A process of its own, because a process has one Spark at a time.
    found = subprocess.run(
        processes.command("support.spark.killing", tmp_path, SHARDS), env=processes.environment(),
        capture_output=True, text=True, timeout=6 * WAIT_SECONDS,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-4000:]
    killed = {marker.read_text() for marker in tmp_path.glob("killed-*")}
    assert len(killed) == 2
    assert set((tmp_path / "executors").read_text().split()) > killed, "others have gone on"
    batches = sorted(tmp_path.glob("output-*.parquet"))
    output = pa.concat_tables(pq.read_table(path) for path in batches)
    assert by_shard(output, shard_of) == expected(everything(), shard_of)


# ---- back-tests ----


@pytest.fixture(scope="module")
def frame(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All events in many partitions, not in their order."""
    path = tmp_path_factory.mktemp("static") / "events.parquet"
    table = everything().take(np.random.default_rng(1).permutation(FILES * ROWS))
    pq.write_table(table, path)
    return session.read.parquet(str(path))


def test_a_back_test_is_the_sequential_run(frame: Any) -> None:
    oracle = chain.run_sequential(frame.toArrow(), order_by="time", source="origin", keys=True)
    applied = ss.spark.apply(
        frame, chain, order_by="time", source="origin", keys=True, horizon=4, chunk=2
    )
    assert applied.output.equals(oracle.output)
    assert applied.events == FILES * ROWS
    assert applied.state.hash == oracle.state.hash
    assert applied.state.sums.tobytes() == oracle.state.sums.tobytes()


def test_a_back_test_over_many_partitions_keeps_the_order(session: Any, frame: Any) -> None:
    oracle = chain.run_sequential(frame.toArrow())
    assert ss.spark.apply(frame, chain, order_by=None).output.equals(oracle.output)
    oracle = chain.run_sequential(frame.toArrow(), order_by="time", source="origin")
    partitions = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "5"}
    before = {name: session.conf.get(name) for name in partitions}
    for name, value in partitions.items():
        session.conf.set(name, value)
    try:
        applied = ss.spark.apply(frame, chain, order_by="time", source="origin")
        assert applied.output.equals(oracle.output)
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def test_a_back_test_takes_more_rows_than_one_piece_holds(session: Any) -> None:
    rows = 2 * packing.MOST_ROWS + 50_000
    numbers = session.range(0, rows, 1, 1).selectExpr("-id AS value", "id % 3 AS time")
    applied = ss.spark.apply(numbers, digest, order_by="time")
    with ss.Engine(digest, horizon=0) as engine:
        value = np.arange(rows)
        engine.process({"value": -value, "time": value % 3}, order_by="time")
        assert applied.events == rows
        assert applied.state.hash == engine.state.hash


def test_a_back_test_goes_on_from_a_snapshot(frame: Any) -> None:
    oracle = chain.run_sequential(frame.toArrow(), order_by="time", source="origin")
    half = F.col("x") < FILES * ROWS // 2
    one = ss.spark.apply(frame.where(half), chain, order_by="time", source="origin")
    two = ss.spark.apply(
        frame.where(~half), chain, order_by="time", source="origin", restore=one.snapshot
    )
    assert pa.concat_tables([one.output, two.output]).equals(oracle.output)
    nothing = ss.spark.apply(frame.where("x < 0"), chain, order_by="time", restore=two.snapshot)
    assert nothing.output.equals(oracle.output.slice(0, 0))
    assert nothing.state.hash == oracle.state.hash


def test_a_back_test_names_what_is_wrong(session: Any, frame: Any) -> None:
    with pytest.raises(ss.InputError, match="operator reads column 'weight'"):
        ss.spark.apply(frame.drop("weight"), chain, order_by="time")
    with pytest.raises(TooHeavy, match="is too heavy") as raised:
        ss.spark.apply(frame, make(heaviest=100), order_by="time", source="origin")
    assert "operator 'chain'" in "".join(raised.value.__notes__)
    stream = session.readStream.format("rate").load()
    with pytest.raises(ss.ConfigurationError, match="is a stream"):
        ss.spark.apply(stream, digest, order_by="timestamp")
