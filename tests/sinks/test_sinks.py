"""Sinks: whatever comes again changes nothing, and a failure says where it was."""

from __future__ import annotations

import decimal
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest

import specstream as ss

deltalake = pytest.importorskip("deltalake")


def rows(*counts: int) -> pa.Table:
    return pa.table({"count": pa.array(counts, pa.int64())})


def delta_rows(path: Path) -> list[int]:
    return sorted(deltalake.DeltaTable(path).to_pyarrow_table()["count"].to_pylist())


# ---- Delta ----


def test_a_batch_that_comes_again_is_in_the_delta_table_once(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    sink = ss.sinks.delta_sink(path, app_id="counts")
    sink(rows(), 0)
    assert delta_rows(path) == []
    for batch_id in (1, 1, 2, 3, 3):
        sink(rows(batch_id, 10 * batch_id), batch_id)
    # Another process, which knows nothing of the first.
    ss.sinks.delta_sink(path, app_id="counts")(rows(3, 30), 3)
    assert delta_rows(path) == [1, 2, 3, 10, 20, 30]
    version = deltalake.DeltaTable(path).version()
    sink(rows(), 4)
    assert deltalake.DeltaTable(path).version() == version
    # What a crash leaves between the rows and the commit is no part of the table.
    (path / "part-torn.parquet").write_bytes(b"PAR1")
    assert delta_rows(path) == [1, 2, 3, 10, 20, 30]


WRITER = """
import sys, pyarrow as pa, specstream as ss
sink = ss.sinks.delta_sink(sys.argv[1], app_id="counts")
for batch_id in range(1000):
    print(batch_id, flush=True)
    sink(pa.table({"count": [batch_id, -batch_id]}), batch_id)
"""


@pytest.mark.slow
@pytest.mark.parametrize("last", [0, 7])
def test_a_writer_killed_in_a_batch_leaves_a_delta_table_to_go_on_from(
    tmp_path: Path, last: int
) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "rows")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == last:
                process.kill()
                break
        rest = [int(line) for line in process.stdout]
    assert process.returncode == -signal.SIGKILL
    # The batch that was under way, stored or not, comes again; those before it are acknowledged.
    under_way = rest[-1] if rest else last
    sink = ss.sinks.delta_sink(tmp_path / "rows", app_id="counts")
    for batch_id in range(under_way, under_way + 3):
        sink(rows(batch_id, -batch_id), batch_id)
    expected = [sign * batch_id for batch_id in range(under_way + 3) for sign in (1, -1)]
    assert delta_rows(tmp_path / "rows") == sorted(expected)


def test_two_queries_append_to_one_delta_table(tmp_path: Path) -> None:
    first, second = (ss.sinks.delta_sink(tmp_path, app_id=name) for name in ("one", "two"))
    first(rows(1), 0)
    second(rows(2), 0)
    second(rows(2), 0)
    assert delta_rows(tmp_path) == [1, 2]


def test_a_query_begun_anew_does_not_lose_its_rows_to_the_batches_of_the_last_one(
    tmp_path: Path,
) -> None:
    sink = ss.sinks.delta_sink(tmp_path, app_id="counts")
    for batch_id in range(3):
        sink(rows(batch_id), batch_id)
    with pytest.raises(ss.SinkError, match=r"batch 0: the table has batch 2 of app_id='counts'"):
        sink(rows(7), 0)
    assert delta_rows(tmp_path) == [0, 1, 2]


def test_delta_partitions_and_types(tmp_path: Path) -> None:
    sink = ss.sinks.delta_sink(tmp_path, app_id="counts", partition_by=["name"])
    table = pa.table(
        {
            "name": ["a b", "ä"],
            "time": pa.array([1000, 2000], pa.timestamp("ns")),
            "price": pa.array([1, 2], pa.decimal128(19, 2)),
        }
    )
    sink(table, 0)
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("name")
    assert found["time"].cast(pa.int64()).to_pylist() == [1, 2]
    assert found["price"].to_pylist() == table["price"].to_pylist()
    late = table.set_column(1, "time", pa.array([1001, 0], pa.timestamp("ns")))
    with pytest.raises(ss.SinkError, match=r"batch 1: .*lose data"):
        sink(late, 1)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([decimal.Decimal("5.00")]), "decimal128"),
        (pa.array([b"x"]), "binary"),
        (pa.array(["x", ""]), "has '' in the batch"),
        (pa.array(["x", ""]).dictionary_encode(), "has '' in the batch"),
        (pa.array(["__HIVE_DEFAULT_PARTITION__"]), "has '__HIVE_DEFAULT_PARTITION__' in"),
    ],
)
def test_delta_partitions_that_would_not_come_back_are_refused(
    tmp_path: Path, column: pa.Array, why: str
) -> None:
    sink = ss.sinks.delta_sink(tmp_path / "rows", app_id="counts", partition_by=["k"])
    batch = pa.table({"k": column, "n": list(range(len(column)))})
    with pytest.raises(ss.SinkError, match=rf"batch 0: partition_by= names column 'k' .*{why}"):
        sink(batch, 0)
    assert not (tmp_path / "rows").exists()


def test_a_delta_table_that_has_partitions_stays_readable(tmp_path: Path) -> None:
    price = [decimal.Decimal("5.00"), decimal.Decimal("-0.05")]
    batches = [pa.table({"k": pa.array([one], pa.decimal128(19, 2)), "n": [1]}) for one in price]
    deltalake.write_deltalake(tmp_path, batches[0], partition_by=["k"])
    sink = ss.sinks.delta_sink(tmp_path, app_id="counts")  # which does not know of the partitions
    with pytest.raises(ss.SinkError, match=r"batch 0: .*'k' .*negative value.* unreadable"):
        sink(batches[1], 0)
    sink(batches[0], 0)
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table()["k"].to_pylist() == [price[0]] * 2


ODD = ["a/b", "a b", "%41", "ü", None, "a=b", "x:y", "null", "a\nb"]
COMES_BACK: list[pa.Array] = [
    pa.array(ODD),
    pa.array([0.1, -0.0, None, float("inf")]),
    pa.array([2**63 - 1, -1, None]),
    pa.array([True, False, None]),
    pa.array([-1, 1, None], pa.timestamp("us", "UTC")),
]


@pytest.mark.parametrize("column", COMES_BACK, ids=[str(one.type) for one in COMES_BACK])
def test_other_delta_partitions_come_back(tmp_path: Path, column: pa.Array) -> None:
    sink = ss.sinks.delta_sink(tmp_path, app_id="counts", partition_by=["k"])
    sink(pa.table({"k": column, "n": list(range(len(column)))}), 0)
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("n")["k"]
    assert str(found.to_pylist()) == str(column.to_pylist())


@pytest.mark.parametrize(
    "of", [pa.time64("us"), pa.duration("s"), pa.decimal256(60, 2), pa.list_(pa.float16())], ids=str
)
def test_types_that_delta_does_not_have_are_refused_by_the_column(
    tmp_path: Path, of: pa.DataType
) -> None:
    sink = ss.sinks.delta_sink(tmp_path / "rows", app_id="counts")
    with pytest.raises(ss.SinkError, match=r"batch 0: column 'x' is of type .* convert it") as told:
        sink(pa.table({"n": [1], "x": pa.nulls(1, of)}), 0)
    assert str(of) in str(told.value)
    assert "unknown" not in str(told.value)
    assert not (tmp_path / "rows").exists()


def test_unsigned_numbers_come_back_from_delta(tmp_path: Path) -> None:
    sink = ss.sinks.delta_sink(tmp_path, app_id="counts")
    bits = (8, 16, 32, 64)
    largest = {f"u{n}": pa.array([2**n - 1, None], f"uint{n}") for n in bits}
    for batch_id in range(2):
        sink(pa.table(largest | {"half": pa.array([1.5, None], pa.float16())}), batch_id)
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table()
    for n in bits:
        assert found[f"u{n}"].to_pylist() == [2**n - 1, None] * 2
    assert found["half"].to_pylist() == [1.5, None] * 2


def test_a_failing_sink_names_itself_and_the_batch(tmp_path: Path) -> None:
    delta = ss.sinks.delta_sink(tmp_path / "delta", app_id="counts")
    delta(rows(1), 0)
    with pytest.raises(ss.SinkError, match=r"delta_sink\('.*/delta'\), batch 1: .*no column 'oth"):
        delta(pa.table({"other": ["x"]}), 1)
    parquet = ss.sinks.parquet_sink(tmp_path / "parquet")
    parquet.file(7).mkdir()  # in the way
    with pytest.raises(ss.SinkError, match=r"parquet_sink\('.*'\), batch 7: .*directory") as caught:
        parquet(rows(1), 7)
    assert isinstance(caught.value.__cause__, OSError)


def test_delta_needs_a_name(tmp_path: Path) -> None:
    for bad in (3, "", None):
        with pytest.raises(ss.ConfigurationError, match=f"app_id={bad!r}: expected a name"):
            ss.sinks.delta_sink(tmp_path, app_id=bad)
    with pytest.raises(ss.ConfigurationError, match="partition_by='day'; expected a list"):
        ss.sinks.delta_sink(tmp_path, app_id="a", partition_by="day")


# ---- memory ----


def test_the_memory_sink_keeps_batches_in_their_order() -> None:
    sink = ss.sinks.memory_sink("counts")
    assert sink.to_arrow().num_columns == 0
    for batch_id, count in ((0, 1), (2, 5), (1, 3), (2, 4)):
        sink(rows(count), batch_id)
    assert sink.to_arrow().equals(rows(1, 3, 4))
    assert list(sink.batches) == [0, 1, 2]
    with pytest.raises(ss.ConfigurationError, match="name='no view'"):
        ss.sinks.memory_sink("no view")


# ---- Parquet ----


def test_the_sink_writes_a_batch_once_whole_and_for_readers(tmp_path: Path) -> None:
    sink = ss.sinks.parquet_sink(tmp_path / "deep" / "out")
    schema = pa.schema([("count", pa.int64())])
    sink(schema.empty_table(), 0)
    sink(pa.table({"count": [1, 2]}), 12)
    sink(pa.table({"count": [3]}), 12)
    assert sorted(path.name for path in sink.path.iterdir()) == [
        "part-00000000.parquet",
        "part-00000012.parquet",
    ]
    # What a crash in the middle of a write leaves is invisible, and gone after the replay.
    torn = sink.path / ".part-00000012.parquet.writing"
    torn.write_bytes(b"PAR1")
    read = pyarrow.dataset.dataset(sink.path, format="parquet").to_table()
    assert read.equals(pa.table({"count": [3]}))
    sink(pa.table({"count": [3]}), 12)
    assert not torn.exists()


def test_the_sink_refuses_what_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ss.ConfigurationError, match="'nowhere://bucket/rows' is no URI that"):
        ss.sinks.parquet_sink("nowhere://bucket/rows")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ss.ConfigurationError, match="cannot be a directory"):
        ss.sinks.parquet_sink(file)
