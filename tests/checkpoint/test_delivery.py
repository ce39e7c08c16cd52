"""Sinks in two steps: nothing is visible before its batch is recorded, nothing is left behind."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from support.checkpoint.fed import Fed

import specstream as ss
from specstream.sinks.parquet import parquet_sink

WAIT_SECONDS = 60


class Count(ss.State):
    seen = ss.scalar(int)


@ss.operator(state=Count, event={"x": int}, emits={"x": int, "place": int})
def number(state, event, emit):
    state.seen += 1
    emit(event.x, state.seen)


def rows_of(batch_id: int) -> pa.Table:
    return pa.table({"x": [10 * batch_id, 10 * batch_id + 1]})


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture(autouse=True)
def threads() -> Callable[[], int]:
    """How many threads prepare, beside those of other tests' feeds."""

    def there() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name.startswith("specstream-sink")}

    before = there()
    return lambda: len(there() - before)


class Shelf:
    """Writes down what becomes of its batches; it cannot be called."""

    def __init__(self, name: str = "", log: list[str] | None = None) -> None:
        self.name = name
        self.log = [] if log is None else log
        self.shown: dict[int, pa.Table] = {}
        self.preparing: Callable[[int], object] = lambda batch_id: None
        self.committing: Callable[[int], object] = lambda batch_id: None
        self.aborting: Callable[[int], object] = lambda batch_id: None

    def prepare(self, table: pa.Table, batch_id: int) -> Any:
        self.preparing(batch_id)
        shelf = self

        class Put:
            def commit(self) -> None:
                shelf.committing(batch_id)
                shelf.shown[batch_id] = table
                shelf.log.append(f"{shelf.name}commit {batch_id}")

            def abort(self) -> None:
                shelf.log.append(f"{shelf.name}abort {batch_id}")
                shelf.aborting(batch_id)

        return Put()


class Fails:
    """Raises at one batch, the first time."""

    def __init__(self, at: int) -> None:
        self.at: int | None = at

    def __call__(self, batch_id: int) -> None:
        if batch_id == self.at:
            self.at = None
            raise ValueError("no room")


@pytest.fixture
def engine() -> Iterator[ss.Engine]:
    with ss.Engine(number, horizon=0) as engine:
        yield engine


def make_feed(engine: ss.Engine, home: Path | None, to: Any, **options: Any) -> Any:
    if home is not None:
        options["checkpoint"] = home / "checkpoint"
    return Fed(engine, to=to, **options)


def send(feed: Any, batch_id: int, rows: pa.Table | None = None) -> None:
    """What the feed does with a batch when Spark's part of it is done."""
    feed.send(batch_id, rows_of(batch_id) if rows is None else rows, "query")


def is_recorded(home: Path, batch_id: int) -> bool:
    return any((home / "checkpoint").glob(f"{batch_id:010d}.[fi]*"))


def test_a_sink_prepares_while_the_file_is_written_and_shows_when_it_is_there(
    engine: ss.Engine, tmp_path: Path, threads: Callable[[], int]
) -> None:
    sink = Shelf()
    # One after the other, this would wait for ever.
    sink.preparing = lambda batch_id: wait_until(lambda: is_recorded(tmp_path, batch_id))
    unrecorded: list[int] = []
    sink.committing = lambda batch_id: (
        None if feed.checkpoint.recorded.batch_id == batch_id else unrecorded.append(batch_id)
    )
    feed = make_feed(engine, tmp_path, sink)
    for batch_id in range(3):
        send(feed, batch_id)
        assert sink.log[-1] == f"commit {batch_id}"
        assert sink.shown[batch_id]["place"].to_pylist() == [2 * batch_id + 1, 2 * batch_id + 2]
    assert not unrecorded
    assert threads() == 1
    stats = feed.stats
    assert min(stats.running, stats.recording, stats.writing) > 0
    feed.close()
    assert threads() == 0


def test_the_parts_of_a_batch_add_up_though_they_overlap(engine: ss.Engine, tmp_path: Path) -> None:
    sink = Shelf()
    sink.preparing = lambda batch_id: wait_until(lambda: is_recorded(tmp_path, batch_id))
    feed = make_feed(engine, tmp_path, sink)
    began = time.perf_counter()
    for batch_id in range(3):
        send(feed, batch_id)
    taken = time.perf_counter() - began
    stats = feed.stats
    assert stats.running + stats.recording + stats.writing <= taken
    feed.close()


def test_a_file_that_fails_takes_away_what_was_prepared(
    engine: ss.Engine, tmp_path: Path, threads: Callable[[], int]
) -> None:
    parquet = parquet_sink(tmp_path / "out")
    feed = make_feed(engine, tmp_path, Shelf())
    send(feed, 0)
    # A file that is written into a pipe waits for who reads it, and cannot be synced.
    pipe = tmp_path / "checkpoint" / ".0000000001.increment.writing"
    os.mkfifo(pipe)

    def read() -> None:
        while pipe.exists():
            pipe.read_bytes()

    otherwise = threading.Timer(WAIT_SECONDS, read)
    otherwise.start()
    meanwhile: list[bool] = []

    class Both:
        def prepare(self, table: pa.Table, batch_id: int) -> Any:
            prepared = parquet.prepare(table, batch_id)
            (hidden,) = parquet.path.iterdir()
            assert hidden.name == ".part-00000001.parquet.writing"
            meanwhile.append(otherwise.is_alive() and len(pipe.read_bytes()) > 0)
            # The file has failed by the time that the state is as it was.
            wait_until(lambda: engine.state.seen == 2)
            return prepared

    feed.runner.sinks.to = Both()
    with pytest.raises(OSError, match="Invalid argument"):
        send(feed, 1)
    otherwise.cancel()
    assert meanwhile == [True]
    assert engine.state.seen == 2
    assert not list(parquet.path.iterdir())
    feed.runner.sinks.to = parquet
    send(feed, 1)
    assert [path.name for path in parquet.path.iterdir()] == ["part-00000001.parquet"]
    assert pq.read_table(parquet.file(1))["place"].to_pylist() == [3, 4]
    feed.close()
    assert threads() == 0


def test_a_sink_that_cannot_prepare_gets_the_recorded_rows_again(
    engine: ss.Engine, tmp_path: Path, threads: Callable[[], int]
) -> None:
    sink = Shelf()
    sink.preparing = Fails(1)
    feed = make_feed(engine, tmp_path, sink)
    send(feed, 0)
    with pytest.raises(ValueError, match="no room"):
        send(feed, 1)
    # As with any sink that fails: the batch is recorded, and not acknowledged.
    assert engine.state.seen == 4
    assert is_recorded(tmp_path, 1)
    assert sink.log == ["commit 0"]
    feed.close()
    with ss.Engine(number, horizon=0) as another:
        feed = make_feed(another, tmp_path, sink)
        send(feed, 1)
        assert another.state.seen == 4
        assert sink.shown[1]["place"].to_pylist() == [3, 4]
        feed.close()
    assert threads() == 0


def test_without_a_checkpoint_a_sink_that_fails_puts_the_state_back(engine: ss.Engine) -> None:
    sink = Shelf()
    feed = make_feed(engine, None, sink)
    for step in ("preparing", "committing"):
        setattr(sink, step, Fails(engine.state.seen // 2))
        before = engine.state.seen
        with pytest.raises(ValueError, match="no room"):
            send(feed, before // 2)
        assert engine.state.seen == before
        send(feed, before // 2)
    assert sink.log == ["commit 0", "commit 1"]
    feed.close()


@pytest.mark.parametrize("step", ["preparing", "committing"])
def test_a_second_sink_is_taken_back_when_the_first_fails(step: str, tmp_path: Path) -> None:
    log: list[str] = []
    to, side = Shelf("", log), Shelf("side ", log)
    setattr(to, step, Fails(0))

    def cannot(batch_id: int) -> None:
        raise OSError("it is stuck")

    side.aborting = cannot
    with ss.Engine(number, horizon=0, rejected_rows="side") as engine:
        feed = make_feed(engine, tmp_path, to, rejected_rows_to=side)
        rows = pa.table({"x": [1, None, 2]})
        with pytest.raises(ValueError, match="no room") as caught:
            send(feed, 0, rows)
        assert log in (["side abort 0"], [])  # nothing, where it had not begun
        assert engine.state.seen == 2
        if log:
            assert "batch 0: abort() raised OSError('it is stuck')" in caught.value.__notes__[1]
        log.clear()
        send(feed, 0)
        assert log == ["commit 0", "side commit 0"]
        assert side.shown[0]["reason"].length() == 1
        feed.close()


def test_sinks_of_both_kinds_have_their_turns(tmp_path: Path) -> None:
    log: list[str] = []
    with ss.Engine(number, horizon=0, rejected_rows="side") as engine:
        feed = make_feed(
            engine,
            tmp_path,
            lambda table, batch_id: log.append(f"called {batch_id}"),
            rejected_rows_to=Shelf("", log),
        )
        send(feed, 0, pa.table({"x": [1, None]}))
        assert log == ["called 0", "commit 0"]
        feed.close()


def test_the_parquet_sink_leaves_nothing_where_it_fails(tmp_path: Path) -> None:
    sink = parquet_sink(tmp_path)
    with pytest.raises(ss.SinkError, match=r"parquet_sink\('.*'\), batch 7: "):
        sink.prepare(pa.table({"x": pa.nulls(1, pa.month_day_nano_interval())}), 7)
    sink.prepare(rows_of(8), 8).abort()
    sink.file(9).mkdir()
    with pytest.raises(ss.SinkError, match=r"batch 9: .*directory"):
        sink.prepare(rows_of(9), 9).commit()
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000009.parquet"]


PAGE = Path(__file__).parents[2] / "docs" / "guides" / "sources-and-sinks.md"


def test_the_sink_of_the_page_is_in_two_steps(engine: ss.Engine, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (example,) = (block for block in blocks if "class CsvSink" in block)
    namespace: dict[str, Any] = {}
    exec(example, namespace)
    sink = namespace["CsvSink"](tmp_path)
    feed = make_feed(engine, tmp_path, sink)
    for batch_id in range(2):
        send(feed, batch_id)
        send(feed, batch_id)
    left = sink.prepare(rows_of(2), 2)
    (tmp_path / ".00000003.csv").write_text("torn")
    send(feed, 2)
    send(feed, 3)
    found = [pa.csv.read_csv(path) for path in sorted(tmp_path.glob("*.csv"))]
    assert [table["x"].to_pylist() for table in found] == [[0, 1], [10, 11], [20, 21], [30, 31]]
    left.abort()
    assert not list(tmp_path.glob(".*"))
    feed.close()


def test_two_sinks_of_a_feed_have_two_places(tmp_path: Path, engine: ss.Engine) -> None:
    pytest.importorskip("deltalake")
    parquet, delta = ss.sinks.parquet_sink, ss.sinks.delta_sink
    out, link = tmp_path / "out", tmp_path / "link"
    out.mkdir()
    link.symlink_to(out)
    one = parquet(out)
    pairs: list[tuple[Any, Any]] = [
        (one, one),
        (one, parquet(link)),
        (delta(out, app_id="a"), delta(f"{out}/", app_id="a")),
        (delta("s3://bucket/out", app_id="a"), delta("s3://bucket/out/", app_id="a")),
    ]
    for to, late_to in pairs:
        with pytest.raises(
            ss.ConfigurationError,
            match=r"to= and late_to= write to the same directory '.*out': give each its own",
        ):
            make_feed(engine, tmp_path, to, order_by="x", watermark=1, late="side", late_to=late_to)
    with pytest.raises(ss.ConfigurationError, match="are the same sink"):
        make_feed(engine, tmp_path, print, order_by="x", watermark=1, late="side", late_to=print)
    with pytest.raises(
        ss.ConfigurationError, match=r"checkpoint= and to= write to the same directory '.*link'"
    ):
        make_feed(engine, None, one, checkpoint=link)
    make_feed(
        engine,
        tmp_path,
        one,
        order_by="x",
        watermark=1,
        late="side",
        late_to=parquet(tmp_path / "late"),
    ).close()


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("step", ["calling", "preparing", "committing"])
@pytest.mark.parametrize("option", ["to", "late_to", "rejected_rows_to"])
def test_what_a_sink_raises_is_noted(
    option: str, step: str, is_recorded: bool, tmp_path: Path
) -> None:
    def failing(table: pa.Table, batch_id: int) -> None:
        Fails(1)(batch_id)

    broken: Any = failing
    if step != "calling":
        broken = Shelf()
        setattr(broken, step, Fails(1))
    sinks: dict[str, Any] = {name: Shelf() for name in ("to", "late_to", "rejected_rows_to")}
    sinks[option] = broken
    options = {"order_by": "time", "watermark": 1, "late": "side", **sinks}
    with ss.Engine(number, rejected_rows="side") as engine:
        feed = make_feed(engine, tmp_path if is_recorded else None, **options)
        send(feed, 0, pa.table({"time": [9], "x": [1]}))
        with pytest.raises(ValueError, match="no room") as caught:
            send(feed, 1, pa.table({"time": [9, 2, 9], "x": [1, 1, None]}))
        then = (
            "its rows are recorded, and come again when the query is started again"
            if is_recorded
            else "its rows are not recorded: it runs again when the query is started again"
        )
        assert caught.value.__notes__ == [
            f"raised by the sink {option}= of operator 'number', batch 1; {then}"
        ]
        feed.close()


def test_what_a_sink_raises_at_the_end_is_noted(engine: ss.Engine, tmp_path: Path) -> None:
    sink = Shelf()
    sink.committing = Fails(1)
    feed = make_feed(engine, tmp_path, sink, order_by="time", watermark=1)
    send(feed, 0, pa.table({"time": [9], "x": [1]}))
    with pytest.raises(ValueError, match="no room") as caught:
        feed.runner.finish()
    assert caught.value.__notes__ == [
        "raised by the sink to= of operator 'number', batch 1; its rows are recorded, and come "
        "again when finish() is called again"
    ]
    feed.runner.finish()
    assert list(sink.shown) == [0, 1]
    feed.close()
