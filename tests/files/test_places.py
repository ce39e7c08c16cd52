"""What looks like a URI is one that can be reached, or is refused; it makes no local directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import specstream as ss
from specstream.checkpoint.format.spark_log import SparkLog
from specstream.checkpoint.format.store import store_of
from specstream.checkpoint.run.run_directory import recorded_store
from specstream.cli import main
from specstream.sinks import compact, delta_sink, early_delta_sink, parquet_dataset, parquet_sink

PLACES: dict[str, Callable[[Any], object]] = {
    "checkpoint": store_of,
    "a checkpoint that is read": recorded_store,
    "Spark's": SparkLog,
    "parquet_sink": parquet_sink,
    "parquet_dataset": parquet_dataset,
    "compact": compact,
    "delta_sink": lambda path: delta_sink(path, app_id="a"),
    "early_delta_sink": early_delta_sink,
    "dataset": ss.sources.dataset,
}
WRITTEN = {
    "dbfs:/x": "'/dbfs/x', where Databricks mounts it",
    "file:/x": "'/x' or 'file:///x'",
    "file:x": "'/x' or 'file:///x'",
    "s3:/b/x": "'s3://b/x'",
    "s3:b/x": "'s3://b/x'",
    "s3a:/b/x": "'s3://b/x'",
    "gs:/b/x": "'gs://b/x'",
    "abfss:/c@a/x": "'abfss://c@a/x'",
    "hdfs:/x": "'hdfs://HOST:PORT/x'",
    "oss:/b/x": "a path where it is mounted, or a URI of file, s3, gs, abfss or hdfs (://)",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("what", PLACES)
@pytest.mark.parametrize("text", WRITTEN)
def test_every_place_says_how_what_looks_like_a_uri_is_written(
    here: Path, what: str, text: str
) -> None:
    if "delta" in what:
        pytest.importorskip("deltalake")
    for given in (text, Path(text)):
        with pytest.raises(ss.ConfigurationError) as raised:
            PLACES[what](given)
        said = "looks like a URI, and would be a local directory of that name: write "
        assert f"{said}{WRITTEN[text]}; or './{text}" in str(raised.value)
        assert ("pathlib" in str(raised.value)) == isinstance(given, Path)
    assert not list(here.iterdir())


@pytest.mark.parametrize(("text", "written"), [
    ("s3a://bucket/x", "'s3://bucket/x'"),
    ("s3n://key:secret@bucket/x", "'s3://key:***@bucket/x'"),
    ("S3://bucket/x", "'s3://bucket/x'"),
    ("wasbs://c@a/x", "'abfss://c@a/x'"),
    ("dbfs:///x", "'/dbfs/x', where Databricks mounts it"),
])  # fmt: skip
def test_a_uri_that_goes_by_another_name_is_said(text: str, written: str) -> None:
    for place in (store_of, parquet_sink):
        with pytest.raises(ss.ConfigurationError) as raised:
            place(text)
        assert "is no URI that pyarrow.fs.FileSystem.from_uri reaches: " in str(raised.value)
        assert str(raised.value).endswith(f": write {written}")
        assert "secret" not in str(raised.value)
    with pytest.raises(ss.ConfigurationError, match=r"Unrecognized filesystem.*oss://x$"):
        parquet_sink("oss://x")


def test_local_names_with_a_colon_stay_what_they_are(here: Path) -> None:
    for number, text in enumerate(("./dbfs:/x", "12:30", "run:1", "a:/x", "x/s3://y", "./s3:b")):
        parquet_sink(text)(pa.table({"x": [number]}), 0)
        assert parquet_dataset(text).to_table()["x"].to_pylist() == [number]
        assert (here / text / "part-00000000.parquet").is_file()
    parquet_sink((here / "rows").as_uri())(pa.table({"x": [1]}), 0)
    assert (here / "rows" / "part-00000000.parquet").is_file()


@pytest.mark.parametrize("arguments", [
    ("run", "m.py:f", "--input", "IN", "--order-by", "t", "--output", "URI"),
    ("run", "m.py:f", "--input", "IN", "--order-by", "t", "--output", "o", "--checkpoint", "URI"),
    ("run", "m.py:f", "--input", "IN", "--order-by", "t", "--output", "o", "--errors", "URI"),
    ("run", "m.py:f", "--input", "IN", "--order-by", "t", "--output", "o", "--late-output", "URI"),
    ("run", "m.py:f", "--input", "URI", "--order-by", "t", "--output", "o"),
    ("run", "m.py:f", "--input", "ticks=URI", "--order-by", "t", "--output", "o"),
    ("tune", "m.py:f", "--input", "IN", "--order-by", "t", "--plot", "URI.png"),
    ("checkpoint", "rollback", "cp", "--output", "URI"),
    ("latest", "URI"),
])  # fmt: skip
@pytest.mark.parametrize(("uri", "written"), [
    ("dbfs:/x", "write '/dbfs/x"),
    ("file:/x", "write '/x"),
    ("file:///x", "write '/x"),
    ("s3://bucket/x", "write a path where it is mounted"),
])  # fmt: skip
def test_options_that_name_local_places_take_no_uri(
    here: Path, arguments: tuple[str, ...], uri: str, written: str
) -> None:
    (here / "in").mkdir()
    given = [one.replace("URI", uri).replace("IN", "in") for one in arguments]
    done = CliRunner().invoke(main, given)
    said = " ".join(done.output.split())
    assert done.exit_code == 2, said
    assert f"it looks like a URI, and local paths are read here: {written}" in said
    assert [one.name for one in here.iterdir()] == ["in"]


@pytest.mark.parametrize("arguments", [
    ("checkpoint", "list"), ("checkpoint", "verify"), ("state",), ("replay",), ("compact",),
])  # fmt: skip
def test_commands_that_take_uris_say_how_they_are_written(
    here: Path, arguments: tuple[str, ...]
) -> None:
    done = CliRunner().invoke(main, [*arguments, "s3:/bucket/x"])
    assert done.exit_code == 1
    assert "write 's3://bucket/x'" in " ".join(done.output.split())
    assert not list(here.iterdir())


@pytest.mark.parametrize("text", ["~/rows", "~", "$DATA/rows"])
def test_what_a_shell_would_replace_is_no_name_of_a_directory(text: str, here: Path) -> None:
    """They became directories called ``~`` and ``$DATA``."""
    with pytest.raises(ss.ConfigurationError, match=r"as no shell looks at it: write os.path.exp"):
        ss.sinks.parquet_sink(text)
    ss.sinks.parquet_sink(f"./{text}")
    assert list(here.iterdir()) == [here / text.partition("/")[0]]
