"""What a run without Spark shares with a query: checkpoint, event time, what is set aside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.sources.feeding_driver import chain, events, expected, rows_of
from support.sources.running import Running

import specstream as ss
from specstream.checkpoint.run.batch import Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.stream_options import StreamOptions


def table_of(count: int) -> pa.Table:
    return pa.Table.from_pylist(events(0, count))


def run(directory: Path, source: Any, engine: ss.Engine | None = None, **options: Any) -> Any:
    options = {
        "to": ss.sinks.parquet_sink(directory / "out"),
        "checkpoint": directory / "recorded",
        "max_rows": 30,
        **options,
    }
    with engine or ss.Engine(chain, threads=2, horizon=4) as engine:
        return ss.sources.run(engine, source, **options)


def close(runner: BatchRunner) -> None:
    runner.close()
    assert runner.checkpoint is not None
    runner.checkpoint.close()


def test_a_sink_that_fails_gets_the_recorded_rows_at_the_next_start(tmp_path: Path) -> None:
    calls: list[tuple[int, Any]] = []

    def sink(table: pa.Table, batch_id: int) -> None:
        calls.append((batch_id, table.to_pydict()))
        if len(calls) == 3:
            raise OSError("no room")

    source = ss.sources.dataset
    with pytest.raises(OSError, match="no room") as raised:
        run(tmp_path, source(table_of(100)), to=sink)
    assert any("batch 2: rows 60 to 89 of a table" in note for note in raised.value.__notes__)
    run(tmp_path, source(table_of(100)), to=sink)
    assert [batch for batch, _ in calls] == [0, 1, 2, 2, 3]
    assert calls[2] == calls[3]


def test_an_operator_that_raises_leaves_the_state_of_the_batch_before(tmp_path: Path) -> None:
    class Seen(ss.State):
        count = ss.scalar(int)

    @ss.operator(state=Seen, event={"x": int}, emits={"x": int, "count": int})
    def checked(state, event, emit):  # type: ignore[no-untyped-def]
        state.count += 1
        if event.x == 45:
            raise ValueError("no 45")
        emit(event.x, state.count)

    with ss.Engine(checked) as engine:
        with pytest.raises(ValueError, match="no 45") as raised:
            ss.sources.run(
                engine, ss.sources.dataset(table_of(100)), to=lambda *_: None, max_rows=30
            )
        assert engine.state.count == 30
    assert any("batch 1: rows 30 to 59" in note for note in raised.value.__notes__)
    failed: list[pa.Table] = []
    options: Any = {"to": ss.sinks.parquet_sink(tmp_path / "out"), "max_rows": 30}
    with ss.Engine(checked, errors="side") as engine:
        stats = ss.sources.run(
            engine,
            ss.sources.dataset(table_of(100)),
            errors_to=lambda table, _: failed.append(table),
            **options,
        )
        assert engine.state.count == 99
    assert stats.failed == 1
    assert pa.concat_tables(failed)["x"].to_pylist() == [45]
    assert rows_of(tmp_path)["x"].to_pylist() == [x for x in range(100) if x != 45]


def test_a_checkpoint_belongs_to_one_source_and_to_no_query(tmp_path: Path) -> None:
    run(tmp_path, ss.sources.dataset(table_of(50)))
    pq.write_table(table_of(50), tmp_path / "a.parquet")
    other = ss.sources.dataset(tmp_path / "a.parquet")
    with pytest.raises(ss.SnapshotError, match=r"written for a table, and this is the dataset"):
        run(tmp_path, other)
    # A query of Spark's is refused there,
    options = StreamOptions(to=print, checkpoint=tmp_path / "recorded")
    with ss.Engine(chain) as engine:
        runner = BatchRunner(engine, options)
        with pytest.raises(ss.ConfigurationError, match=r"streaming query specstream.sources"):
            runner.repeat("e3b0c442", 2)
        close(runner)
    # and a source where a query has been.
    options = StreamOptions(to=print, checkpoint=tmp_path / "query")
    with ss.Engine(chain) as engine:
        runner = BatchRunner(engine, options)
        runner.run(Batch(0, "e3b0c442", table_of(3)))
        close(runner)
    with pytest.raises(ss.SnapshotError, match="says nothing of a source: foreach_batch"):
        run(tmp_path, other, checkpoint=tmp_path / "query")


def test_another_order_is_refused_in_the_words_of_a_run(tmp_path: Path) -> None:
    run(tmp_path, ss.sources.dataset(table_of(50)))
    with pytest.raises(ss.SnapshotError, match=r"order_by was None and is now 'x': ") as refused:
        run(tmp_path, ss.sources.dataset(table_of(50)), order_by="x")
    assert "start the run as before; or, " in str(refused.value)
    assert "checkpointLocation" not in str(refused.value)


def test_a_start_gives_the_sinks_the_last_batch_again_and_goes_on(tmp_path: Path) -> None:
    """Nothing waits without a watermark: the end of the source is none of the stream."""
    calls: list[tuple[int, Any]] = []
    for count in (50, 80, 80):
        run(
            tmp_path,
            ss.sources.dataset(table_of(count)),
            to=lambda table, batch_id: calls.append((batch_id, table.num_rows)),
            max_rows=50,
        )
    assert calls == [(0, 50), (0, 50), (1, 30), (1, 30)]


def test_a_damaged_newest_file_is_not_gone_behind(tmp_path: Path) -> None:
    pq.write_table(table_of(100), tmp_path / "a.parquet")
    run(tmp_path, ss.sources.dataset(tmp_path / "a.parquet"))
    newest = max((tmp_path / "recorded").glob("*.increment"))
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1
    newest.write_bytes(content)
    with (
        pytest.warns(RuntimeWarning, match="going on from the state after batch 2"),
        pytest.raises(ss.SnapshotError, match=r"that of batch 2, and there were files up to .* 3"),
    ):
        run(tmp_path, ss.sources.dataset(tmp_path / "a.parquet"))
    newest.unlink()
    (tmp_path / "out" / "part-00000003.parquet").unlink()
    run(tmp_path, ss.sources.dataset(tmp_path / "a.parquet"))
    assert rows_of(tmp_path).equals(expected(100))


def test_the_order_of_times_is_kept_across_batches(tmp_path: Path) -> None:
    rows = events(0, 200)
    mixed = [rows[at ^ 7] for at in range(200)]  # never off by more than seven
    options: dict[str, Any] = {"order_by": "x", "watermark": 8, "max_rows": 9}
    run(tmp_path, ss.sources.dataset(pa.Table.from_pylist(mixed)), **options)
    assert rows_of(tmp_path).equals(expected(200))


def test_a_field_that_only_an_option_names_needs_a_type() -> None:
    rows = [{**one, "at": 100 - one["x"]} for one in events(0, 10)]
    with pytest.raises(ss.ConfigurationError, match=r"order_by='at' .* columns={'at': int}"):
        Running(ss.sources.iterate(rows), order_by="at").end()
    with pytest.raises(ss.DeclarationError, match=r"columns= field 'at' has type 'int'; expected"):
        Running(ss.sources.iterate(rows, columns={"at": "int"}), order_by="at").end()
    running = Running(ss.sources.iterate([rows], columns={"at": int}), order_by="at")
    running.wait_for(10)
    assert running.end()["x"].to_pylist() == list(range(9, -1, -1))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"prefetch": True}, "prefetch=True; expected False"),
        ({"max_rows": 0}, "max_rows=0; expected an integer of at least 1"),
        ({"max_wait": -1}, "max_wait=-1; expected seconds"),
        ({"finish": "no"}, "finish='no'; expected True or False"),
        ({"signals": ["TERM"]}, "signals=.*; expected a list of signals"),
        ({"to": "rows"}, "to='rows'; expected a sink"),
    ],
)
def test_an_option_that_cannot_be_is_told(options: dict[str, Any], told: str) -> None:
    with ss.Engine(chain) as engine:
        with pytest.raises(ss.ConfigurationError, match=told):
            ss.sources.run(engine, ss.sources.iterate([]), **{"to": print, **options})
        with pytest.raises(ss.ConfigurationError, match=r"events=.*; expected a source such as"):
            ss.sources.run(engine, cast(Any, []), to=print)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_behind_its_batch(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    tables: list[pa.Table] = []
    given = 0

    def sink(table: pa.Table, batch_id: int) -> None:
        if not tables:
            while given <= table.num_rows + 10:  # until others wait behind it
                time.sleep(0.01)
            os.kill(os.getpid(), number)
        tables.append(table)

    def endless() -> Any:
        nonlocal given
        while True:
            given += 1
            yield events(given - 1, 1)[0]

    with ss.Engine(chain) as engine:
        stats = ss.sources.run(engine, ss.sources.iterate(endless()), to=sink, max_rows=10)
    # What was taken in is run as well, but for the one that found the buffer full.
    assert stats.events == given - 1
    assert pa.concat_tables(tables).equals(expected(stats.events))
    assert signal.getsignal(number) is before


@pytest.mark.slow
def test_all_of_it_runs_without_pyspark(tmp_path: Path) -> None:
    code = """
        import sys
        sys.modules["pyspark"] = sys.modules["py4j"] = None
        sys.path.insert(0, sys.argv[1])
        from pathlib import Path
        import specstream as ss
        from sums import sums

        for first in (0, 3):
            with ss.Engine(sums) as engine:
                ss.sources.run(
                    engine,
                    ss.sources.iterate({"x": x} for x in range(first, first + 3)),
                    to=ss.sinks.parquet_sink(sys.argv[1] + "/out"),
                    checkpoint=sys.argv[1] + "/recorded",
                    at_most_once=True,
                )
    """
    (tmp_path / "sums.py").write_text(
        textwrap.dedent(
            """
            import specstream as ss

            class Seen(ss.State):
                total = ss.scalar(int)

            @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
            def sums(state, event, emit):
                state.total += event.x
                emit(state.total)
            """
        )
    )
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), tmp_path], check=True)
    assert rows_of(tmp_path)["total"].to_pylist() == [0, 1, 3, 6, 10, 15]


def test_sources_that_no_column_tells_apart_are_refused() -> None:
    @ss.operator(event={"x": int}, emits={"x": int})
    def passes(event: Any, emit: Any) -> None:
        emit(event.x)

    rows = [{"at": at, "x": at} for at in range(3)]
    taken: list[int] = []

    def run(**options: Any) -> None:
        with ss.Engine(passes) as engine:
            ss.sources.run(
                engine,
                ss.sources.iterate(rows, columns={"at": int}),
                to=lambda table, batch: taken.extend(table["x"].to_pylist()),
                order_by="at",
                watermark=0,
                **options,
            )

    said = r"sources=\[1, 2\] without source=: all rows are of source 0.*wait for 1 for ever"
    with pytest.raises(ss.ConfigurationError, match=said):
        run(sources=[1, 2])
    run(sources=[0])
    assert taken == [0, 1, 2]
