"""The Parquet sink: other filesystems, directories named after columns, batches that come again."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import os
import signal
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import specstream as ss
from specstream.files import tree as trees
from specstream.files.part_files import Part, parts_of, standing
from specstream.files.tree import RemoteTree

ODD = [
    "plain",
    "",
    None,
    "a/b",
    "a=b",
    "100%",
    "Zürich ☕",
    "a b",
    "2026-01-05",
    "it's",
    ".",
    "x:y?",
]


def odd_rows() -> pa.Table:
    return pa.table({"place": pa.array(ODD, pa.string()), "n": list(range(len(ODD)))})


def places(rows: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """As Hive has them: an empty text is a null."""
    return sorted(((place or None, n) for place, n in rows), key=lambda row: row[1])


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A URI of a store: another filesystem, which lies in a directory."""
    under = tmp_path / "store"
    under.mkdir()
    filesystem = fs.SubTreeFileSystem(str(under), fs.LocalFileSystem())

    def of(option: str, text: str) -> tuple[Any, str]:
        head, _, path = text.partition("://")
        return (filesystem, path) if head == "store" else (fs.LocalFileSystem(), text)

    monkeypatch.setattr(trees, "filesystem_of", of)
    return "store://deep/rows"


# ---- other filesystems ----


def test_a_store_has_each_batch_once(remote: str, tmp_path: Path) -> None:
    sink = ss.sinks.parquet_sink(remote)
    assert sink.place == remote
    for batch_id, count in ((0, 1), (12, 2), (12, 3)):
        sink(pa.table({"count": [count]}), batch_id)
    sink.prepare(pa.table({"count": [4]}), 13).abort()
    there = tmp_path / "store" / "deep" / "rows"
    assert [one.name for one in sorted(there.iterdir())] == [
        "part-00000000.parquet",
        "part-00000012.parquet",
    ]
    # What is prepared is there, and nobody sees it.
    prepared = sink.prepare(pa.table({"count": [5]}), 13)
    assert pq.read_table(there / ".part-00000013.parquet.writing")["count"].to_pylist() == [5]
    assert ss.sinks.parquet_dataset(remote).to_table()["count"].to_pylist() == [1, 3]
    prepared.commit()
    assert pyarrow.dataset.dataset(there).to_table()["count"].to_pylist() == [1, 3, 5]


def test_a_store_that_fails_keeps_the_batch_out(remote: str, tmp_path: Path) -> None:
    sink = ss.sinks.parquet_sink(remote, partition_by=["place"])
    (tmp_path / "store" / "deep" / "rows" / "place=b").write_bytes(b"in the way")
    rows = pa.table({"place": ["a", "b"], "n": [1, 2]})
    with pytest.raises(ss.SinkError, match=r"parquet_sink\('store://deep/rows'\), batch 3: "):
        sink(rows, 3)
    assert ss.sinks.parquet_dataset(remote).to_table().num_rows == 0
    assert not list((tmp_path / "store").rglob("*.writing"))


def test_passwords_of_a_store_are_in_no_message() -> None:
    uri = "nowhere://user:secret@host/rows"
    with pytest.raises(ss.ConfigurationError, match=r"nowhere://user:\*\*\*@host") as caught:
        ss.sinks.parquet_sink(uri)
    assert "secret" not in str(caught.value)
    sink = RemoteTree(fs.LocalFileSystem(), "rows", "s3://key:secret@bucket/rows")
    assert repr(sink) == "'s3://key:***@bucket/rows'"


# ---- partition_by ----


def test_directories_are_those_of_hive(tmp_path: Path) -> None:
    sink = ss.sinks.parquet_sink(tmp_path, partition_by=["place"])
    sink(odd_rows(), 0)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(
        [
            "place=.",
            "place=100%25",
            "place=2026-01-05",
            "place=Zürich ☕",
            "place=__HIVE_DEFAULT_PARTITION__",
            "place=a b",
            "place=a%2Fb",
            "place=a%3Db",
            "place=it%27s",
            "place=plain",
            "place=x%3Ay%3F",
        ]
    )


def test_pyarrow_and_pandas_read_the_columns_of_directories(tmp_path: Path) -> None:
    ss.sinks.parquet_sink(tmp_path, partition_by=["place"])(odd_rows(), 0)
    wanted = places(list(zip(ODD, range(len(ODD)), strict=True)))
    found = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()
    for table in (found, ss.sinks.parquet_dataset(tmp_path).to_table()):
        rows = zip(table["place"].to_pylist(), table["n"].to_pylist(), strict=True)
        assert places(list(rows)) == wanted
    # By itself pandas reads such columns as categories, and Arrow has none with nulls.
    frame = pd.read_parquet(tmp_path, partitioning=pyarrow.dataset.HivePartitioning.discover())
    assert (
        places(
            [(p if p == p else None, n) for p, n in zip(frame["place"], frame["n"], strict=True)]
        )
        == wanted
    )
    texts = odd_rows().filter([bool(place) for place in ODD])
    ss.sinks.parquet_sink(tmp_path / "texts", partition_by=["place"])(texts, 0)
    frame = pd.read_parquet(tmp_path / "texts").sort_values("n")
    assert list(map(str, frame["place"])) == texts["place"].to_pylist()


def test_spark_reads_the_columns_of_directories(session: Any, tmp_path: Path) -> None:
    ss.sinks.parquet_sink(tmp_path, partition_by=["place"])(odd_rows(), 0)
    rows = [(row.place, row.n) for row in session.read.parquet(str(tmp_path)).collect()]
    assert places(rows) == places(list(zip(ODD, range(len(ODD)), strict=True)))


def test_several_columns_of_all_types(tmp_path: Path) -> None:
    noon = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "n": pa.array([3, 1, 3, 2, 3], pa.int64()),
            "ok": [True, False, True, None, True],
            "day": pa.array([noon.date()] * 5),
            "at": pa.array([noon] * 5, pa.timestamp("us", "UTC")),
            "price": [decimal.Decimal("1.50")] * 5,
            "text": pa.array(["x", "y", "x", "x", "x"]).dictionary_encode(),
            "place": [0, 1, 2, 3, 4],
        }
    )
    names = ["n", "ok", "day", "price", "text", "at"]
    sink = ss.sinks.parquet_sink(tmp_path, partition_by=names)
    sink(table, 0)
    found = ss.sinks.parquet_dataset(tmp_path).to_table().sort_by("place")
    assert found["n"].to_pylist() == [3, 1, 3, 2, 3]
    assert found["ok"].to_pylist() == ["true", "false", "true", None, "true"]
    assert set(map(str, found["day"].to_pylist())) == {"2026-01-05"}
    assert found["text"].to_pylist() == ["x", "y", "x", "x", "x"]
    # Rows of a directory stay in their order.
    same = next(tmp_path.glob("n=3/ok=true/*/*/*/*/part-00000000.parquet"))
    assert pq.read_table(same, partitioning=None)["place"].to_pylist() == [0, 2, 4]


def test_a_batch_that_comes_again_replaces_its_files_in_all_directories(tmp_path: Path) -> None:
    def rows(*of: tuple[str, int]) -> pa.Table:
        return pa.table({"day": [day for day, _ in of], "n": [n for _, n in of]})

    sink = ss.sinks.parquet_sink(tmp_path, partition_by=["day"])
    sink(rows(("mon", 1), ("tue", 2)), 0)
    sink(rows(("mon", 3)), 1)
    sink(rows(), 2)
    for again in (sink, ss.sinks.parquet_sink(tmp_path, partition_by=["day"])):
        again(rows(("tue", 4), ("wed", 5)), 0)
        found = ss.sinks.parquet_dataset(tmp_path).to_table().sort_by("n")
        assert found["n"].to_pylist() == [3, 4, 5]
        assert found["day"].to_pylist() == ["mon", "tue", "wed"]


def test_killed_between_two_directories_the_batch_is_whole_when_it_comes_again(
    tmp_path: Path,
) -> None:
    sink = ss.sinks.parquet_sink(tmp_path / "rows", partition_by=["day"])
    rows = pa.table({"day": ["mon", "tue", "wed"], "n": [1, 2, 3]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
        process = os.fork()
    if process == 0:
        os.environ["SPECSTREAM_CRASH"] = "between-files@7"
        os.environ["SPECSTREAM_CRASH_LOG"] = str(tmp_path / "crashes")
        with contextlib.suppress(BaseException):
            sink(rows, 7)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL
    assert ss.sinks.parquet_dataset(sink.path).to_table()["n"].to_pylist() == [1]
    for again in (sink, ss.sinks.parquet_sink(sink.path, partition_by=["day"])):
        again(rows, 7)
        assert ss.sinks.parquet_dataset(sink.path).to_table()["n"].to_pylist() == [1, 2, 3]
    assert not list(sink.path.rglob(".*"))


def test_texts_that_arrow_has_as_views_are_partitioned(tmp_path: Path) -> None:
    texts = pa.array(["x", "y", "z"], pa.string_view())
    rows = pa.table({"day": pa.array(["a", "b", "a"], pa.string_view()), "note": texts})
    ss.sinks.parquet_sink(tmp_path, partition_by=["day"])(rows, 0)
    found = ss.sinks.parquet_dataset(tmp_path).to_table().sort_by("note")
    assert found.select(["note", "day"]).to_pydict() == {
        "note": ["x", "y", "z"],
        "day": ["a", "b", "a"],
    }


def test_what_cannot_be_partitioned_is_refused(tmp_path: Path) -> None:
    sink = ss.sinks.parquet_sink
    for bad, match in (
        ("day", "expected a list of columns' names: write partition_by="),
        ([3], "partition_by: a column=3; expected its name"),
        (["day", "day"], "has a column twice"),
        (["_day"], "column '_day': readers leave out"),
    ):
        given: Any = bad
        with pytest.raises(ss.ConfigurationError, match=match):
            sink(tmp_path, partition_by=given)
    days = sink(tmp_path, partition_by=["day"])
    with pytest.raises(ss.SinkError, match=r"batch 0: partition_by= names column 'day', which the"):
        days(pa.table({"n": [1]}), 0)
    with pytest.raises(ss.SinkError, match=r"names all columns \(day\)"):
        days(pa.table({"day": ["x"]}), 0)
    with pytest.raises(ss.SinkError, match=r"column 'day' of type list<.*names of directories"):
        days(pa.table({"day": [[1]], "n": [1]}), 0)
    days(pa.table({"day": ["x"], "n": [1]}), 0)
    for other in ((), ("n",), ("day", "n")):
        with pytest.raises(ss.SinkError, match=r"readers need the same in all files"):
            sink(tmp_path, partition_by=other)(pa.table({"day": ["x"], "n": [1], "m": [1]}), 1)


# ---- which files stand ----


def test_a_file_of_several_batches_supersedes_theirs_in_its_directory() -> None:
    names = [
        "part-00000000.parquet",
        "part-00000000-00000002.parquet",
        "part-00000001-00000002.parquet",
        "part-00000002.parquet",
        "part-00000003.parquet",
        "day=1/part-00000001.parquet",
        "day=1/other.parquet",
        "part-1.parquet",
    ]
    stands, superseded = standing(parts_of(names))
    assert stands == [Part("", 0, 2), Part("", 3, 3), Part("day=1", 1, 1)]
    assert superseded == [Part("", 0, 0), Part("", 1, 2), Part("", 2, 2)]
    with pytest.raises(ss.SinkError, match="have batches in common"):
        standing([Part("", 0, 2), Part("", 2, 3)])
