"""A query whose checkpoint was lost finds what the former one has written, and refuses to mix."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import specstream as ss
from specstream.sinks import compact, delta_sink, parquet_dataset, parquet_sink


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int}, emits={"x": int, "place": int})
def number(state, event, emit):
    if event.x >= 0:
        state.count += 1
        emit(event.x, state.count)


def run(directory: Path, count: int, to: Any, *, checkpoint: bool = True, **options: Any) -> None:
    """Runs a table in batches of 10."""
    if checkpoint:
        options["checkpoint"] = directory / "checkpoint"
    errors: Any = "side" if "errors_to" in options else "raise"
    with ss.Engine(number, horizon=0, errors=errors) as engine:
        source = ss.sources.dataset(pa.table({"x": range(count)}))
        ss.sources.run(engine, source, to=to, max_rows=10, **options)


def rows_of(path: Path) -> list[int]:
    return sorted(parquet_dataset(path).to_table()["x"].to_pylist())


def in_delta(path: Path) -> Any:
    pytest.importorskip("deltalake")
    return delta_sink(path, app_id="number")


@pytest.mark.parametrize(("make", "has"), [
    (parquet_sink, "there is 'part-00000006.parquet' already"),
    (lambda path: parquet_sink(path, partition_by=["place"]), "there is 'place=.*' already"),
    (in_delta, "the table has batch 6 of app_id='number' already"),
])  # fmt: skip
def test_all_sinks_say_what_else_has_to_be_empty(
    tmp_path: Path, make: Callable[[Path], Any], has: str
) -> None:
    run(tmp_path, 70, make(tmp_path / "rows"))
    before = sorted((tmp_path / "rows").rglob("*"))
    shutil.rmtree(tmp_path / "checkpoint")
    said = rf"batch 0: {has}, which this query has not written. It was begun anew: .* its other "
    said += r"sinks, checkpoint= and Spark's checkpointLocation\. Or it was taken back"
    for _ in range(2):
        with pytest.raises(ss.SinkError, match=said):
            run(tmp_path, 45, make(tmp_path / "rows"))
    assert sorted((tmp_path / "rows").rglob("*")) == before
    # Nothing is recorded of the batch: it may go elsewhere.
    run(tmp_path, 45, parquet_sink(tmp_path / "other"))
    assert rows_of(tmp_path / "other") == list(range(45))


def test_files_of_one_batch_are_of_another_run_as_well(tmp_path: Path) -> None:
    run(tmp_path, 10, parquet_sink(tmp_path / "rows"))
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(ss.SinkError, match=r"part-00000000.parquet' already"):
        run(tmp_path, 10, parquet_sink(tmp_path / "rows"))


def test_a_sink_that_has_no_rows_of_the_first_batch_is_asked_all_the_same(tmp_path: Path) -> None:
    failed = parquet_sink(tmp_path / "failed")
    failed(pa.table({"x": [1]}), 3)
    with pytest.raises(ss.SinkError, match=r"failed'\), batch 0: there is 'part-00000003"):
        run(tmp_path, 30, parquet_sink(tmp_path / "rows"), errors_to=failed)
    assert not list((tmp_path / "rows").iterdir())


def test_what_comes_again_is_the_query_s_own(tmp_path: Path) -> None:
    calls = []

    class Failing:
        """Has shown the rows, and fails then."""

        def __call__(self, table: pa.Table, batch_id: int) -> None:
            parquet_sink(tmp_path / "rows")(table, batch_id)
            calls.append(batch_id)
            if len(calls) in (1, 5):
                raise OSError("gone")

        def check_first_batch(self, batch_id: int, *, is_new: bool) -> None:
            parquet_sink(tmp_path / "rows").check_first_batch(batch_id, is_new=is_new)

    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            run(tmp_path, 70, Failing())
    compact(tmp_path / "rows", grace=0, leave=0)
    run(tmp_path, 70, Failing())
    run(tmp_path, 90, Failing())
    assert calls == [0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8]
    assert rows_of(tmp_path / "rows") == list(range(90))


def test_without_a_checkpoint_all_files_are_of_another_run(tmp_path: Path) -> None:
    """A source begins anew: of two runs of one batch, the second took the place of the first."""
    rows = tmp_path / "rows"
    run(tmp_path, 10, parquet_sink(rows), checkpoint=False)
    with pytest.raises(ss.SinkError, match=r"part-00000000.parquet' already, which this query"):
        run(tmp_path, 45, parquet_sink(rows), checkpoint=False)
    assert rows_of(rows) == list(range(10))


def test_without_a_checkpoint_spark_may_send_a_batch_again(tmp_path: Path) -> None:
    sink = parquet_sink(tmp_path / "rows")
    sink(pa.table({"x": [1]}), 0)
    sink.check_first_batch(0, is_new=False)  # a crash behind the sink
    sink(pa.table({"x": [2]}), 1)
    with pytest.raises(ss.SinkError, match=r"part-00000001.parquet' already, which this query"):
        sink.check_first_batch(0, is_new=False)


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    """Readers took the rows of a loop that had written there for the query's."""
    (tmp_path / "rows").mkdir()
    pq.write_table(pa.table({"x": [7]}), tmp_path / "rows" / "part-00000-5c0e.snappy.parquet")
    said = r"'part-00000-5c0e.snappy.parquet' already, which no sink .* a directory of its own"
    for checkpoint in (False, True):
        with pytest.raises(ss.SinkError, match=said):
            run(tmp_path, 10, parquet_sink(tmp_path / "rows"), checkpoint=checkpoint)


def test_a_text_that_readers_take_for_a_null_is_refused(tmp_path: Path) -> None:
    sink = parquet_sink(tmp_path / "rows", partition_by=["k"])
    with pytest.raises(ss.SinkError, match="column 'k' of partition_by= has the text '__HIVE_D"):
        sink(pa.table({"k": ["__HIVE_DEFAULT_PARTITION__", "x"], "v": [1, 2]}), 0)
    assert not any((tmp_path / "rows").iterdir())
